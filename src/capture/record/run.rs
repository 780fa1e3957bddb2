//! Starts the target and waits for it.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use cupti::inject::{self, CUDA_VARIABLE, REQUEST_VARIABLE, Request, Window};
use cupti::loader::Driver;
use signal_hook::consts::{SIGINT, SIGKILL, SIGTERM};

use super::RecordError;
use super::neighbours::{Neighbours, Seen};
use super::outliving::{Heirs, alive, heirs};
use crate::signals::{Event, Events};

/// How long a target that was told to end may take before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often processes that outlive the target are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long they are waited for, in looks: where everything stands still for a while, nobody's time is over by that.
#[derive(Clone, Copy, Debug)]
struct Looks {
    /// For recorded processes.
    recorded: u32,
    /// For processes that have not started CUDA: most of what is left in the background never does.
    heirs: u32,
}

const AFTERWARDS: Looks = Looks { recorded: 100, heirs: 20 };

/// After so many looks it is told that somebody is waited for.
const UNTOLD: u32 = 10;

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program, looked for on the path if its name has no folder.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The recorder library that is loaded into it.
    pub library: PathBuf,
    /// An empty folder for what the processes leave.
    pub folder: PathBuf,
    /// What to record.
    pub config: cupti::Config,
    /// When to record.
    pub window: Window,
}

/// Something the user should know at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The first interrupt: the target has it, and is waited for.
    Interrupted,
    /// Another interrupt: the target is told to end, and will be killed.
    Ending,
    /// The target did not end in time, or there was one more interrupt: it is killed.
    Killing,
    /// These processes outlive the target and are waited for.
    Outlived(Vec<u32>),
    /// These still run and are not waited for any longer. What they do from now on is not recorded.
    LeftRunning(Vec<u32>),
}

/// A target that has ended.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub status: ExitStatus,
    /// From its start to its end.
    pub wall: Duration,
    /// What was seen on the devices meanwhile.
    pub seen: Seen,
}

impl Ran {
    /// The code for this process to end with: the target's own, or 128 and the number of the signal that ended it.
    pub fn exit_code(&self) -> u8 {
        exit_code(self.status)
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Runs the target to its end, recorded. Its input, output, working directory and environment are this process's, but
/// for the variables that have it recorded.
///
/// Signals to this process go to the target, unless the terminal has sent them to both. After a second interrupt the
/// target is told to end, and killed if it does not. From the end of the target on, signals do to this process what they
/// usually do.
///
/// # Errors
/// When the target does not start. An error afterwards is [`RecordError::Wait`] alone.
pub fn run(plan: &Plan, notice: &mut dyn FnMut(Notice)) -> Result<Ran, RecordError> {
    refuse_company()?;
    let request = Request {
        folder: plan.folder.clone(),
        config: plan.config.clone(),
        window: plan.window.clone(),
        driver_version: Driver::probe().map_or(0, |driver| driver.version()),
    };
    let environment = inject::environment(&request, &plan.library).map_err(RecordError::Environment)?;
    // Before the start, so that none is lost.
    let events = Events::new().map_err(RecordError::Signals)?;
    let started = Instant::now();
    let child = Command::new(&plan.program).args(&plan.arguments).envs(environment).spawn();
    let mut child =
        child.map_err(|source| RecordError::Start { program: plan.program.to_string_lossy().into_owned(), source })?;
    let neighbours = Neighbours::watch();
    let status = wait(&mut child, &events.0, PATIENCE, notice).map_err(RecordError::Wait)?;
    let wall = started.elapsed();
    outlast(&plan.folder, &events.0, AFTERWARDS, notice);
    Ok(Ran { status, wall, seen: neighbours.seen() })
}

/// CUDA loads one library into a process and CUPTI serves one tool.
fn refuse_company() -> Result<(), RecordError> {
    for variable in [REQUEST_VARIABLE, CUDA_VARIABLE] {
        if let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
            return Err(RecordError::Taken { variable, value: value.to_string_lossy().into_owned() });
        }
    }
    Ok(())
}

/// How the target is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Force {
    None,
    /// It got an interrupt.
    Asked,
    /// It is killed at this moment.
    Told(Instant),
    Killed,
}

fn wait(
    child: &mut Child,
    events: &Receiver<Event>,
    patience: Duration,
    notice: &mut dyn FnMut(Notice),
) -> std::io::Result<ExitStatus> {
    let mut force = Force::None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        // A signal it cannot get is no failure of ours.
        let send = |signal| drop(cupti::process::signal(child, signal));
        let event = match force {
            Force::Told(until) => events.recv_timeout(until.saturating_duration_since(Instant::now())),
            _ => events.recv().map_err(RecvTimeoutError::from),
        };
        match event {
            Ok(Event::Child) => {}
            Ok(Event::Signal { signal: SIGINT, reached_target }) => {
                force = match force {
                    Force::None => {
                        if !reached_target {
                            send(SIGINT);
                        }
                        notice(Notice::Interrupted);
                        Force::Asked
                    }
                    Force::Asked => {
                        send(SIGTERM);
                        notice(Notice::Ending);
                        Force::Told(Instant::now() + patience)
                    }
                    Force::Told(_) | Force::Killed => {
                        send(SIGKILL);
                        notice(Notice::Killing);
                        Force::Killed
                    }
                };
            }
            Ok(Event::Signal { signal, reached_target: false }) => send(signal),
            Ok(Event::Signal { .. }) => {}
            Err(RecvTimeoutError::Timeout) => {
                send(SIGKILL);
                notice(Notice::Killing);
                force = Force::Killed;
            }
            Err(RecvTimeoutError::Disconnected) => return child.wait(),
        }
    }
}

/// Waits for processes that outlive the target and are recorded, or may be soon, for a while; any signal ends that.
fn outlast(folder: &Path, events: &Receiver<Event>, most: Looks, notice: &mut dyn FnMut(Notice)) {
    let mut looks = 0;
    let mut told = false;
    let mut interrupted = false;
    loop {
        let recorded = alive(folder);
        let (alive, undecided, patience) = if recorded.is_empty() {
            let Heirs { found, undecided } = heirs(folder);
            (found, undecided, most.heirs)
        } else {
            (recorded, false, most.recorded)
        };
        if alive.is_empty() && !undecided {
            return;
        }
        if interrupted || looks >= patience {
            if !alive.is_empty() {
                notice(Notice::LeftRunning(alive));
            }
            return;
        }
        if !told && !alive.is_empty() && looks >= UNTOLD {
            told = true;
            notice(Notice::Outlived(alive));
        }
        match events.recv_timeout(LOOK_AGAIN) {
            Ok(Event::Signal { .. }) => interrupted = true,
            Ok(Event::Child) => {}
            Err(RecvTimeoutError::Timeout) => looks += 1,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(LOOK_AGAIN);
                looks += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_exit_code_is_the_targets() {
        for code in [0, 1, 3, 125, 255] {
            assert_eq!(exit_code(ExitStatus::from_raw(code << 8)), u8::try_from(code).unwrap());
        }
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137, "killed");
        assert_eq!(exit_code(ExitStatus::from_raw(11 | 0x80)), 139, "with a core dump");
    }

    const INTERRUPT: Event = Event::Signal { signal: SIGINT, reached_target: false };

    /// A target that ignores signals, and what is told while it gets these interrupts.
    fn interrupted(interrupts: usize, patience: Duration) -> Vec<Notice> {
        let mut child = Command::new("sh")
            .args(["-c", "trap '' INT TERM; echo ready; exec sleep 600"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let (sender, events) = channel();
        (0..interrupts).for_each(|_| sender.send(INTERRUPT).unwrap());
        let mut said = Vec::new();
        let status = std::thread::scope(|scope| {
            let (over, is_over) = channel::<()>();
            scope.spawn(move || {
                while is_over.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
                    sender.send(Event::Child).unwrap();
                }
            });
            let status = wait(&mut child, &events, patience, &mut |notice| said.push(notice));
            drop(over);
            status.unwrap()
        });
        assert_eq!(status.signal(), Some(SIGKILL));
        said
    }

    #[test]
    fn a_target_is_killed_at_the_third_interrupt_or_when_patience_ends() {
        let said = [Notice::Interrupted, Notice::Ending, Notice::Killing];
        assert_eq!(interrupted(3, Duration::from_secs(3600)), said);
        assert_eq!(interrupted(2, Duration::from_millis(1)), said);
    }

    /// A process that lives until its input ends. It is recorded, or may be.
    fn left_running(folder: &Path, is_recorded: bool) -> Child {
        let mut child = Command::new("sh");
        child.args(["-c", "read line"]).stdin(Stdio::piped());
        if !is_recorded {
            let request = Request { folder: folder.to_owned(), ..Request::default() };
            child.env(REQUEST_VARIABLE, serde_json::to_string(&request).unwrap());
        }
        let child = child.spawn().unwrap();
        if is_recorded {
            std::fs::write(folder.join(format!("{}-1.bubcap", child.id())), "").unwrap();
        }
        child
    }

    #[test]
    fn what_outlives_the_target_is_waited_for_for_a_while() {
        for is_recorded in [true, false] {
            let waiting = |looks: u32, interrupted: bool, ends: bool| {
                let folder = tempfile::tempdir().unwrap();
                let mut child = left_running(folder.path(), is_recorded);
                let (sender, events) = channel();
                if interrupted {
                    sender.send(INTERRUPT).unwrap();
                }
                let most =
                    if is_recorded { Looks { recorded: looks, heirs: 0 } } else { Looks { recorded: 0, heirs: looks } };
                let mut said = Vec::new();
                outlast(folder.path(), &events, most, &mut |notice| {
                    said.push(notice);
                    if ends {
                        drop(child.stdin.take());
                    }
                });
                drop(child.stdin.take());
                child.wait().unwrap();
                (said, vec![child.id()])
            };
            let (said, pids) = waiting(u32::MAX, false, true);
            assert_eq!(said, [Notice::Outlived(pids)], "it is waited for until it ends");
            let (said, pids) = waiting(2, false, false);
            assert_eq!(said, [Notice::LeftRunning(pids)]);
            let (said, pids) = waiting(UNTOLD + 1, false, false);
            assert_eq!(said, [Notice::Outlived(pids.clone()), Notice::LeftRunning(pids)]);
            let (said, pids) = waiting(u32::MAX, true, false);
            assert_eq!(said, [Notice::LeftRunning(pids)], "an interrupt ends it");
        }
    }
}
