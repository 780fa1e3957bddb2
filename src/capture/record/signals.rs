//! The signals that this process gets while it waits for another.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use signal_hook::consts as c;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::{Cause, Origin};

/// What would end this process, and is for the target.
const FOR_TARGET: [i32; 6] = [c::SIGHUP, c::SIGINT, c::SIGQUIT, c::SIGTERM, c::SIGUSR1, c::SIGUSR2];

/// Something that happened to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
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

/// Signals as events, for as long as this lives. Afterwards they do to this process what they usually do.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) events: Receiver<Event>,
    usual: Arc<AtomicBool>,
}

impl Signals {
    /// Takes the signals that are not ignored. What is ignored stays so, here and in the target: a shell starts
    /// background commands with `SIGINT` ignored, `nohup` any with `SIGHUP`.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn take() -> io::Result<Self> {
        let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
        let wanted = FOR_TARGET.into_iter().filter(|number| ignored >> (number - 1) & 1 == 0);
        let mut signals = SignalsInfo::<WithOrigin>::new(wanted.chain([c::SIGCHLD]))?;
        let (sender, events) = channel();
        let usual = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&usual);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for origin in &mut signals {
                pass_on(&origin, &has_ended, &sender);
            }
        })?;
        Ok(Self { events, usual })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.usual.store(true, Ordering::Release);
    }
}

fn pass_on(origin: &Origin, usual: &AtomicBool, sender: &Sender<Event>) {
    if usual.load(Ordering::Acquire) {
        // For SIGCHLD that is nothing.
        let _ = emulate_default_handler(origin.signal);
        return;
    }
    let event = if FOR_TARGET.contains(&origin.signal) {
        // A terminal's signal goes to all of the foreground process group, so to the target as well.
        Event::Signal { signal: origin.signal, reached_target: matches!(origin.cause, Cause::Kernel) }
    } else {
        Event::Child
    };
    // Without a receiver the process is about to end.
    let _ = sender.send(event);
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
