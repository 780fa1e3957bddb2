//! The files of each process.

use super::Fault;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const SPOOL: &str = ".bubcap";
const FAULT: &str = ".fault.json";

/// Where one process leaves its files: `folder/PID-NS.bubcap` and `folder/PID-NS.fault.json`, `NS` being
/// `CLOCK_MONOTONIC` when the place was chosen. So neither a pid that is used again nor an `exec` nor two processes of
/// the same number in different pid namespaces meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    stem: PathBuf,
}

impl Place {
    /// A place for this process.
    pub fn for_this_process(folder: &Path) -> Self {
        let now = crate::collector::monotonic_ns();
        Self { stem: folder.join(format!("{}-{now}", std::process::id())) }
    }

    /// The spool.
    pub fn spool(&self) -> PathBuf {
        self.file(SPOOL)
    }

    /// The fault, which is there only if there was one.
    pub fn fault(&self) -> PathBuf {
        self.file(FAULT)
    }

    /// Writes a fault, in one go: a reader finds the whole of it or nothing. A second fault replaces the first.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn report(&self, fault: &Fault) -> io::Result<()> {
        let temporary = self.file(".fault.tmp");
        let written = File::create(&temporary)
            .and_then(|mut file| file.write_all(&serde_json::to_vec(fault)?))
            .and_then(|()| fs::rename(&temporary, self.fault()));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn file(&self, end: &str) -> PathBuf {
        let mut path = self.stem.clone().into_os_string();
        path.push(end);
        path.into()
    }
}

/// The spools in a folder, in the order of their names.
///
/// # Errors
/// When the folder cannot be read.
pub fn spools(folder: &Path) -> io::Result<Vec<PathBuf>> {
    files(folder, SPOOL)
}

/// A fault that was found in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// What went wrong.
    pub fault: Fault,
    /// The spool of the same process and program, if it is there.
    pub spool: PathBuf,
}

/// The faults in a folder, in the order of their files' names.
///
/// # Errors
/// When the folder or one of them cannot be read.
pub fn faults(folder: &Path) -> io::Result<Vec<Left>> {
    files(folder, FAULT)?
        .into_iter()
        .map(|path| {
            let fault = serde_json::from_slice(&fs::read(&path)?)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))?;
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let stem = name.strip_suffix(FAULT).unwrap_or(name);
            Ok(Left { fault, spool: path.with_file_name(format!("{stem}{SPOOL}")) })
        })
        .collect()
}

fn files(folder: &Path, end: &str) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.ends_with(end)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_side_leaves_the_other_finds() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (Place::for_this_process(folder.path()), Place::for_this_process(folder.path()));
        assert_ne!(first, second);
        File::create(first.spool()).unwrap();
        File::create(folder.path().join("other.txt")).unwrap();
        let fault = |message: &str| Fault { pid: 7, message: message.to_owned(), ..Fault::default() };
        second.report(&fault("first")).unwrap();
        second.report(&fault("second")).unwrap();
        assert_eq!(spools(folder.path()).unwrap(), [first.spool()]);
        let left = Left { fault: fault("second"), spool: second.spool() };
        assert_eq!(faults(folder.path()).unwrap(), [left]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no temporary file is left");
        fs::write(first.fault(), "{").unwrap();
        assert!(faults(folder.path()).unwrap_err().to_string().contains(first.fault().to_str().unwrap()));
    }
}
