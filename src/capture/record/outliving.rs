//! Which processes outlive the target, as far as `/proc` tells.

use std::fs;
use std::ops::Range;
use std::path::Path;

use cupti::inject::{self, REQUEST_VARIABLE, Request};
use cupti::process::stat_fields;

/// What the target has left in the background.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heirs {
    /// The processes that live and would be recorded into the folder if they started CUDA, as far as `/proc` tells.
    pub(super) found: Vec<u32>,
    /// Whether another look may find more.
    pub(super) undecided: bool,
}

pub(super) fn heirs(folder: &Path) -> Heirs {
    let mut heirs = Heirs { found: Vec::new(), undecided: false };
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        match environment(pid) {
            Environment::Known(environment) if records_into(&environment, folder) => heirs.found.push(pid),
            Environment::Known(_) => {}
            Environment::Changing => heirs.undecided = true,
        }
    }
    heirs
}

/// The environment that a process began with.
enum Environment {
    /// Empty if it has none, has ended, is the kernel's or is not for us to see.
    Known(Vec<u8>),
    /// The process starts another program (`execve`). What is read meanwhile is cut short or empty: the memory of the
    /// one before goes before arguments and environment of the next are in place.
    Changing,
}

fn environment(pid: u32) -> Environment {
    let none = Environment::Known(Vec::new());
    let Some(before) = Stat::of(pid).filter(Stat::runs_a_program) else { return none };
    let Ok(bytes) = fs::read(format!("/proc/{pid}/environ")) else { return none };
    let Some(after) = Stat::of(pid).filter(Stat::runs_a_program) else { return none };
    match after.environment() {
        // Each program that is started has its own place for it, or one of another length.
        Some(range) if before.environment() == Some(range.clone()) && bytes.len() as u64 == range.end - range.start => {
            Environment::Known(bytes)
        }
        _ => Environment::Changing,
    }
}

fn records_into(environment: &[u8], folder: &Path) -> bool {
    let mut variables = environment.split(|&byte| byte == 0);
    let request = variables.find_map(|variable| variable.strip_prefix(REQUEST_VARIABLE.as_bytes())?.strip_prefix(b"="));
    let request = request.and_then(|request| serde_json::from_slice::<Request>(request).ok());
    request.is_some_and(|request| request.folder == folder)
}

/// The processes that have a spool in `folder` and live.
pub(super) fn alive(folder: &Path) -> Vec<u32> {
    let spools = inject::spools(folder).unwrap_or_default();
    let mut pids: Vec<u32> = spools.iter().filter_map(|spool| pid_of(spool)).filter(|&pid| is_alive(pid)).collect();
    pids.dedup();
    pids
}

/// The process that a file in the folder is named after.
pub(super) fn pid_of(file: &Path) -> Option<u32> {
    file.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Whether a process lives, as far as `/proc` tells. One that has ended and was not waited for does not.
pub(super) fn is_alive(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.is_alive())
}

/// What `/proc/PID/stat` says after the name of the program (proc_pid_stat(5)).
struct Stat(Vec<String>);

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some(Self(stat_fields(&stat)?.map(str::to_owned).collect()))
    }

    /// The field that the manual gives this number: the state is the third.
    fn field(&self, number: usize) -> Option<&str> {
        self.0.get(number - 3).map(String::as_str)
    }

    fn number(&self, number: usize) -> u64 {
        self.field(number).and_then(|field| field.parse().ok()).unwrap_or(0)
    }

    fn is_alive(&self) -> bool {
        !matches!(self.field(3), Some("Z" | "X") | None)
    }

    /// Whether it lives and is no thread of the kernel's (`PF_KTHREAD` of its flags).
    fn runs_a_program(&self) -> bool {
        self.is_alive() && self.number(9) & 0x0020_0000 == 0
    }

    /// Where the environment lies in the process's memory (`env_start`, `env_end`), if it is in place.
    fn environment(&self) -> Option<Range<u64>> {
        let (start, end) = (self.number(50), self.number(51));
        (end != 0 && start <= end).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cupti::inject::Window;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_that_has_ended_is_not_alive_even_before_it_is_waited_for() {
        assert!(is_alive(std::process::id()));
        let mut child = Command::new("true").spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while is_alive(child.id()) {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }

    /// A process that never ends: it is ended with the test, however that goes.
    struct Endless(Child);

    impl Drop for Endless {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_that_starts_one_program_after_another_is_always_an_heir() {
        let folder = Path::new("/recorded/here");
        let request = Request {
            folder: folder.to_owned(),
            config: cupti::Config::default(),
            window: Window::default(),
            driver_version: 0,
        };
        let script = "exec sh -c \"$script\"";
        let mut child = Command::new("sh");
        child.args(["-c", script]).env("script", script);
        child.env(REQUEST_VARIABLE, serde_json::to_string(&request).unwrap());
        let child = Endless(child.spawn().unwrap());
        let mut looks = 0;
        while looks < 200 {
            if let Environment::Known(environment) = environment(child.0.id()) {
                looks += 1;
                assert!(records_into(&environment, folder), "at look {looks}: {environment:?}");
            }
        }
        while looks < 205 {
            let Heirs { found, undecided } = heirs(folder);
            if !undecided || !found.is_empty() {
                looks += 1;
                assert_eq!(found, [child.0.id()], "at look {looks}");
            }
        }
        drop(child);
        assert!(heirs(folder).found.is_empty());
    }

    #[test]
    fn spools_are_named_after_their_process() {
        assert_eq!(pid_of(Path::new("/x-y/812-99381.bubcap")), Some(812));
        for other in ["/x/a-1.bubcap", "/x/.bubcap", "/x/812.bubcap", "/"] {
            assert_eq!(pid_of(Path::new(other)), None);
        }
    }
}
