//! The spool's file inside a foreign process.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};

/// Which file a descriptor stands for. A program may close descriptors it did not open, and then gets the same number for
/// a file of its own, which must neither be written nor closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    fd: RawFd,
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(fd: RawFd) -> io::Result<Self> {
        Self::and_deleted(fd).map(|(identity, _)| identity)
    }

    /// And whether the file has no name, as one that was deleted.
    fn and_deleted(fd: RawFd) -> io::Result<(Self, bool)> {
        let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the pointer is valid; on success the structure is written.
        let stat = unsafe {
            if libc::fstat(fd, stat.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            stat.assume_init()
        };
        Ok((Self { fd, device: stat.st_dev, inode: stat.st_ino }, stat.st_nlink == 0))
    }

    fn is_still(self) -> bool {
        Self::of(self.fd).is_ok_and(|now| now == self)
    }

    /// Closes the descriptor in a forked child. It is async-signal-safe.
    pub(super) fn close_in_child(self) {
        if self.is_still() {
            // SAFETY: the descriptor is that of the spool. The file object belongs to a thread that does not exist in
            // this process, so nothing else will close it.
            unsafe { libc::close(self.fd) };
        }
    }
}

/// A file that writes and closes only what it opened.
#[derive(Debug)]
pub(super) struct SpoolFile {
    file: ManuallyDrop<File>,
    identity: Identity,
    /// Whether this file system tells when a file is deleted.
    tells_deletion: bool,
}

impl SpoolFile {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let file = beyond_standard(file)?;
        let (identity, deleted) = Identity::and_deleted(file.as_raw_fd())?;
        Ok(Self { file: ManuallyDrop::new(file), identity, tells_deletion: !deleted })
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Takes away what stands behind `length`, so that half a chunk holds no room on a full disk.
    pub(super) fn cut(&self, length: u64) {
        if self.identity.is_still() {
            let _ = self.file.set_len(length);
        }
    }

    fn ours(&mut self) -> io::Result<&mut File> {
        match Identity::and_deleted(self.identity.fd) {
            Ok((now, true)) if now == self.identity && self.tells_deletion => {
                // Nobody will read it, and it would fill the disk unseen.
                let _ = self.file.set_len(0);
                Err(io::Error::other("it was deleted"))
            }
            Ok((now, _)) if now == self.identity => Ok(&mut self.file),
            _ => Err(closed()),
        }
    }
}

fn closed() -> io::Error {
    io::Error::other("the program has closed the recorder's file")
}

/// What came of writing: the program may have closed the file since it was looked at.
fn told(written: io::Result<usize>) -> io::Result<usize> {
    written.map_err(|error| if error.raw_os_error() == Some(libc::EBADF) { closed() } else { error })
}

/// The file under a number above those of standard input, output and error: a program that has closed these may still
/// write to them.
fn beyond_standard(file: File) -> io::Result<File> {
    if file.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(file);
    }
    // SAFETY: it takes numbers; the descriptor is open.
    let other = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) };
    if other < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened right now, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(other) })
}

impl Write for SpoolFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        told(self.ours()?.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        told(self.ours()?.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        if self.identity.is_still() {
            // SAFETY: it is dropped here only.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_that_was_deleted_takes_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let file = File::create(&path).unwrap();
        let seen = file.try_clone().unwrap();
        let mut spool = SpoolFile::new(file).unwrap();
        spool.write_all(b"one").unwrap();
        assert_eq!(seen.metadata().unwrap().len(), 3);
        std::fs::remove_file(&path).unwrap();
        assert!(spool.write_all(b"two").is_err());
        assert_eq!(seen.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_file_of_the_program_under_the_same_number_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let create = |name: &str| File::create(folder.path().join(name)).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let mut spool = SpoolFile::new(create("spool")).unwrap();
        spool.write_all(b"one").unwrap();
        let other = create("other");
        // SAFETY: both descriptors are open; the second now stands for the other file, as when a program closed ours.
        assert!(unsafe { libc::dup2(other.as_raw_fd(), spool.identity().fd) } >= 0);
        assert!(spool.write_all(b"two").is_err());
        spool.cut(0);
        let fd = spool.identity().fd;
        drop(spool);
        assert!(Identity::of(fd).is_ok(), "it is still open");
        assert_eq!((read("spool").as_str(), read("other").as_str()), ("one", ""));
    }
}
