//! Signals to other processes.

use std::io;
use std::process::Child;

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
    fn what_is_no_signal_is_refused() {
        let mut child = Command::new("true").spawn().unwrap();
        assert!(signal(&child, 9_999).is_err());
        child.wait().unwrap();
    }
}
