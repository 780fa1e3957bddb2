//! What must not stay behind when this process ends before its work is done: temporary folders, and files that are not
//! whole.
//!
//! Each goes away with the value that stands for it. A signal that ends the process runs no destructors, so all of them
//! are listed as well, and removed before ([`crate::signals`]). Whoever finishes something strikes it off the list in the
//! same step: what is finished is not left over.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All there is at this moment.
static LIST: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A locked list is true: what has been made and is not finished is in it.
fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One entry of the list, struck off when this goes away. Remove what it stands for before.
#[derive(Debug)]
pub(crate) struct Listed {
    path: PathBuf,
}

impl Listed {
    /// Lists what `make` makes at a path, which it tells. No signal ends the process in between.
    pub(crate) fn new<T>(
        make: impl FnOnce() -> io::Result<T>,
        path: impl FnOnce(&T) -> PathBuf,
    ) -> io::Result<(T, Self)> {
        let mut list = list();
        let made = make()?;
        let path = path(&made);
        list.push(path.clone());
        Ok((made, Self { path }))
    }

    /// Finishes what this stands for by moving it to the path `to`: neither is left over from then on.
    pub(crate) fn moved<T>(self, to: &Path, finish: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let mut list = list();
        let done = finish()?;
        list.retain(|path| *path != self.path && path != to);
        // Dropping `self` takes the list again.
        drop(list);
        Ok(done)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        list().retain(|path| *path != self.path);
    }
}

/// An empty file that holds a name until something whole stands there.
#[derive(Debug)]
pub struct Held {
    path: Option<PathBuf>,
    /// Struck off when the file is gone or whole.
    _listed: Listed,
}

impl Held {
    /// Makes the file.
    ///
    /// # Errors
    /// When something is there already ([`io::ErrorKind::AlreadyExists`]), or the file system refuses.
    pub fn new(path: &Path) -> io::Result<Self> {
        let make = || {
            fs::OpenOptions::new().write(true).create_new(true).open(path)?;
            // As whoever replaces it names it.
            path.canonicalize().or_else(|_| std::path::absolute(path))
        };
        let (path, listed) = Listed::new(make, PathBuf::clone)?;
        Ok(Self { path: Some(path), _listed: listed })
    }

    /// Lets stand what stands there now.
    pub fn keep(mut self) {
        self.path = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Nothing but the name is lost if it stays.
            let _ = fs::remove_file(path);
        }
    }
}

/// A temporary folder. It is removed with all that is in it when this goes away, or when a signal ends the process.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    stays: bool,
    /// The folder itself, locked for as long as somebody works in it: the system unlocks it however this process ends. A
    /// file system without locks has none.
    _lock: Option<fs::File>,
    /// Struck off when the folder is gone.
    _listed: Listed,
}

impl Scratch {
    /// Makes a folder among the system's temporary files.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), "bubblescope-")
    }

    /// Makes a folder inside `parent` whose name begins with `prefix`.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn new_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        // The working directory may change.
        let parent = std::path::absolute(parent)?;
        let make = || tempfile::Builder::new().prefix(prefix).tempdir_in(&parent);
        let (folder, listed) = Listed::new(make, |folder| folder.path().to_owned())?;
        let lock = fs::File::open(folder.path()).ok().filter(|file| file.try_lock().is_ok());
        Ok(Self { path: folder.keep(), stays: false, _lock: lock, _listed: listed })
    }

    /// The folders in `parent` that were made with this prefix and in which nobody works any more: whoever did was killed,
    /// or let them stay. Sorted.
    pub fn abandoned(parent: &Path, prefix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| {
            entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes())
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
        });
        // A lock that is had goes with the file at once.
        let free = |path: &PathBuf| fs::File::open(path).is_ok_and(|file| file.try_lock().is_ok());
        let mut found: Vec<PathBuf> = ours.map(|entry| entry.path()).filter(free).collect();
        found.sort();
        found
    }

    /// Where it is: an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the folder stay for good.
    pub fn keep(mut self) -> PathBuf {
        self.stays = true;
        self.path.clone()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.stays {
            // A signal that came in between would find nothing under the name, and end the process before all is gone.
            undisturbed(|| remove(&self.path));
        }
    }
}

/// Does something that leaves nothing behind if no signal ends the process meanwhile, which none does.
pub fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let _list = list();
    work()
}

/// Removes everything that is listed and then does `end`, which is to end the process. Nothing new is made meanwhile.
pub(crate) fn remove_all(end: impl FnOnce()) {
    let mut list = list();
    for path in list.drain(..) {
        remove(&path);
    }
    end();
}

/// Removes a file, or a folder with all that is in it. Others may still be writing there.
fn remove(path: &Path) {
    const ATTEMPTS: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(10);
    // Whoever goes on writing would fill it as fast as it is emptied: under another name it is found by nobody.
    let mut moved = path.file_name().map_or_else(OsString::new, ToOwned::to_owned);
    moved.push(".removed");
    let moved = path.with_file_name(moved);
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let path = if is_folder && fs::rename(path, &moved).is_ok() { &moved } else { path };
    for _ in 0..ATTEMPTS {
        let removed = match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(_) => return,
        };
        if removed.is_ok() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::write_atomically;
    use std::io::Write as _;

    fn is_listed(path: &Path) -> bool {
        list().iter().any(|listed| listed == path)
    }

    #[test]
    fn a_folder_is_listed_until_it_is_gone_or_kept() {
        let outer = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(outer.path(), "x-").unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        assert!(path.is_absolute() && is_listed(&path));
        drop(scratch);
        assert!(!path.exists() && !is_listed(&path));
        let kept = Scratch::new_in(outer.path(), "x-").unwrap().keep();
        assert!(kept.is_dir() && !is_listed(&kept));
    }

    #[test]
    fn a_folder_is_abandoned_once_nobody_works_in_it() {
        let outer = tempfile::tempdir().unwrap();
        let scratch = Scratch::new_in(outer.path(), ".x-").unwrap();
        let other = Scratch::new_in(outer.path(), ".y-").unwrap().keep();
        fs::write(outer.path().join(".x-file"), "").unwrap();
        assert!(Scratch::abandoned(outer.path(), ".x-").is_empty());
        let kept = scratch.keep();
        assert_eq!(Scratch::abandoned(outer.path(), ".x-"), [kept]);
        assert_eq!(Scratch::abandoned(outer.path(), ".y-"), [other]);
        assert!(Scratch::abandoned(&outer.path().join("none"), ".x-").is_empty());
    }

    #[test]
    fn a_held_name_is_free_again_unless_something_whole_stands_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("name");
        let held = Held::new(&path).unwrap();
        assert!(path.is_file() && is_listed(&path));
        assert_eq!(Held::new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(is_listed(&path));
        drop(held);
        assert!(!path.exists() && !is_listed(&path));

        let held = Held::new(&path).unwrap();
        write_atomically(&path, |out| -> io::Result<()> {
            let temporary = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
            assert!(temporary.filter(|file| is_listed(&folder.path().canonicalize().unwrap().join(file))).count() == 2);
            out.write_all(b"whole")
        })
        .unwrap();
        assert!(
            !list().iter().any(|listed| listed.starts_with(path.parent().unwrap())),
            "what is whole is not left over"
        );
        held.keep();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn what_others_write_into_at_the_same_time_is_removed_with_it() {
        let outer = tempfile::tempdir().unwrap();
        for by_signal in [false, true] {
            let scratch = Scratch::new_in(outer.path(), "x-").unwrap();
            let writer = std::thread::spawn({
                let path = scratch.path().to_owned();
                move || (0..).take_while(|at| fs::write(path.join(at.to_string()), "").is_ok()).count()
            });
            while fs::read_dir(scratch.path()).unwrap().count() < 10 {}
            if by_signal {
                remove(scratch.path());
            }
            drop(scratch);
            writer.join().unwrap();
            assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0, "{by_signal}");
        }
        let file = outer.path().join("file");
        fs::write(&file, "").unwrap();
        remove(&file);
        remove(&file);
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}
