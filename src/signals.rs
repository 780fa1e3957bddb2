//! The signals that this process gets.
//!
//! From [`take`] on, one that ends the process first removes what would be left over ([`crate::leftover`]). While another
//! process is waited for, signals are for that one.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use signal_hook::consts as c;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::backend::Handle;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::{Cause, Origin};

use crate::leftover;

/// What ends this process, or is for the one that it waits for.
const ENDING: [i32; 6] = [c::SIGHUP, c::SIGINT, c::SIGQUIT, c::SIGTERM, c::SIGUSR1, c::SIGUSR2];

/// Of each signal that is taken, whether one has come that was not heard yet.
static CAUGHT: OnceLock<Vec<(i32, Arc<AtomicBool>)>> = OnceLock::new();

/// Who gets signals while another process is waited for.
static HEARER: Mutex<Option<Sender<Event>>> = Mutex::new(None);

/// Takes the signals that would end this process and are not ignored; a second time nothing happens. What is ignored
/// stays so, here and in processes that are started: a shell starts background commands with `SIGINT` ignored, `nohup`
/// any with `SIGHUP`.
///
/// A file that grows beyond the limit of this process (`RLIMIT_FSIZE`) is an error of whoever writes it from then on.
///
/// # Errors
/// When the system refuses.
pub fn take() -> io::Result<()> {
    taken().map(drop)
}

/// Waits while a signal that has come is not dealt with yet, and so for the end of this process if that is what it means.
///
/// To be called before this process tells of a failure, or ends by itself: what the signal has removed, or whom it has
/// ended as well, may be why something failed.
pub fn settle() {
    const LOOK_AGAIN: Duration = Duration::from_millis(1);
    while CAUGHT.get().is_some_and(|caught| caught.iter().any(|(_, caught)| caught.load(Ordering::Acquire))) {
        std::thread::sleep(LOOK_AGAIN);
    }
    leftover::undisturbed(|| ());
}

fn taken() -> io::Result<&'static Handle> {
    static TAKEN: OnceLock<Handle> = OnceLock::new();
    static FIRST: Mutex<()> = Mutex::new(());
    let _first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = TAKEN.get() {
        return Ok(handle);
    }
    let wanted: Vec<i32> = ENDING.into_iter().filter(|&number| !is_ignored(number)).collect();
    let (ready, is_ready) = channel();
    // The thread first: without it nobody may take the signals.
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // Threads start, and functions of the C library are looked up at their first use, under the lock of its loader,
        // which whoever loads a library holds: neither may be left until a signal comes.
        let _ = std::fs::symlink_metadata("/");
        match handle(&wanted) {
            Ok(mut signals) => {
                let _ = ready.send(Ok(signals.handle()));
                for origin in &mut signals {
                    hear(&origin);
                    let caught = CAUGHT.get().into_iter().flatten().find(|(number, _)| *number == origin.signal);
                    caught.inspect(|(_, caught)| caught.store(false, Ordering::Release));
                }
            }
            Err(error) => drop(ready.send(Err(error))),
        }
    })?;
    let handle = is_ready.recv().map_err(io::Error::other)??;
    Ok(TAKEN.get_or_init(|| handle))
}

/// Lets programs that are started from here get `SIGINT`, also when this process was started with it ignored, as by a
/// shell in the background. Here it stays without effect then.
///
/// # Errors
/// When the system refuses.
pub fn interrupts_reach_programs() -> io::Result<()> {
    static HANDLED: Mutex<bool> = Mutex::new(false);
    let mut handled = HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*handled && is_ignored(c::SIGINT) {
        // What a process handles, the programs that it starts do not ignore (execve(2)). Any handler does.
        signal_hook::flag::register(c::SIGINT, Arc::new(AtomicBool::new(false)))?;
    }
    *handled = true;
    Ok(())
}

/// Has these signals handled.
fn handle(wanted: &[i32]) -> io::Result<SignalsInfo<WithOrigin>> {
    // What may fail comes first: from the first handler on, signals do nothing by themselves.
    let signals = SignalsInfo::<WithOrigin>::new::<_, i32>([])?;
    // Any handler does: the write fails then.
    signal_hook::flag::register(c::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let caught = CAUGHT.get_or_init(|| wanted.iter().map(|&number| (number, Arc::default())).collect());
    for (number, caught) in caught {
        // First, so that a signal that is heard has been noted before.
        signal_hook::flag::register(*number, Arc::clone(caught))?;
        signals.add_signal(*number)?;
    }
    // One that has come in between was heard by nobody.
    if let Some((number, _)) = caught.iter().find(|(_, caught)| caught.load(Ordering::Acquire)) {
        end(*number);
    }
    Ok(signals)
}

/// Something that happened to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A child changed its state.
    Child,
    /// A signal for the target.
    Signal {
        /// Its number.
        signal: i32,
        /// Whether the terminal sent it, to the target too.
        reached_target: bool,
    },
}

/// Signals as events, for as long as this lives. Afterwards they end this process again.
#[derive(Debug)]
pub(crate) struct Events(pub(crate) Receiver<Event>);

impl Events {
    /// Takes the signals if that was not done.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn new() -> io::Result<Self> {
        taken()?.add_signal(c::SIGCHLD)?;
        let (sender, events) = channel();
        *HEARER.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        Ok(Self(events))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        *HEARER.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn hear(origin: &Origin) {
    let hearer = HEARER.lock().unwrap_or_else(PoisonError::into_inner);
    let is_child = origin.signal == c::SIGCHLD;
    if let Some(hearer) = &*hearer {
        // A terminal's signal goes to all of the foreground process group, so to the target as well.
        let reached_target = matches!(origin.cause, Cause::Kernel);
        let event = if is_child { Event::Child } else { Event::Signal { signal: origin.signal, reached_target } };
        // Without a receiver nobody waits any more.
        let _ = hearer.send(event);
    } else if !is_child {
        end(origin.signal);
    }
}

/// Ends this process by a signal, with nothing left behind.
fn end(signal: i32) {
    leftover::remove_all(|| drop(emulate_default_handler(signal)));
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
    ignored >> (signal - 1) & 1 == 1
}

/// The mask of ignored signals in `/proc/PID/status` (proc_pid_status(5)): bit `n - 1` stands for signal `n`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001006\nSigCgt:\t00000001800144e8\n";
        assert_eq!(ignored(status), 0x1006);
        assert_eq!(ignored(status) >> (c::SIGINT - 1) & 1, 1);
        assert_eq!(ignored(status) >> (c::SIGHUP - 1) & 1, 0);
        for nothing in ["", "SigIgn:", "SigIgn:\tx", "SigIgn:\t11112222333344445555"] {
            assert_eq!(ignored(nothing), 0);
        }
    }
}
