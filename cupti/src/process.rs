//! Signals to other processes, and what tells a process from all others.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::process::Child;

/// The beginning of a process. Together with the process's number it tells one process of a system from all others that
/// ran since the system started, whatever programs it becomes by `exec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// Which namespace its number is of: the inode of `/proc/self/ns/pid` (pid_namespaces(7)).
    pub pid_namespace: u64,
    /// When it began, in clock ticks since the start of the system (`starttime` in proc_pid_stat(5)).
    pub start_ticks: u64,
}

impl Birth {
    /// That of this process; `None` where `/proc` does not tell.
    pub fn of_this_process() -> Option<Self> {
        let pid_namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
        let start_ticks = start_ticks(&fs::read("/proc/self/stat").ok()?)?;
        Some(Self { pid_namespace, start_ticks })
    }
}

/// The fields of `/proc/PID/stat` from the third on, which is the state (proc_pid_stat(5)); `None` if it is no such text.
/// The name in the second may hold anything; what follows comes after its last parenthesis.
pub fn stat_fields(stat: &[u8]) -> Option<impl Iterator<Item = &str>> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    Some(std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace())
}

/// The 22nd field.
fn start_ticks(stat: &[u8]) -> Option<u64> {
    stat_fields(stat)?.nth(22 - 3)?.parse().ok()
}

/// Sends a signal to a child (kill(2)). It must not have been waited for: its number may be another process's then.
///
/// # Errors
/// When the system refuses, as for a child that has become another user.
pub fn signal(child: &Child, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    // SAFETY: kill takes two numbers.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    #[test]
    fn a_child_gets_the_signal() {
        let mut child = Command::new("sleep").arg("20").spawn().unwrap();
        signal(&child, libc::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn a_process_began_once_and_its_children_later() {
        let own = Birth::of_this_process().unwrap();
        assert_eq!(Birth::of_this_process(), Some(own));
        let mut child = Command::new("sleep").arg("20").spawn().unwrap();
        let theirs = start_ticks(&fs::read(format!("/proc/{}/stat", child.id())).unwrap()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(0 < own.start_ticks && own.start_ticks <= theirs, "{own:?} {theirs}");
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        assert_eq!(start_ticks(format!("7 (a ) (b) {}", fields.join(" ")).as_bytes()), Some(22));
        for broken in ["", "7 (a", "7 (a) S 1", "7 (a) \u{e9}"] {
            assert_eq!(start_ticks(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn what_is_no_signal_is_refused() {
        let mut child = Command::new("true").spawn().unwrap();
        assert!(signal(&child, 9_999).is_err());
        child.wait().unwrap();
    }
}
