//! The recorder library that is loaded into recorded programs.
//!
//! `bubble-report` carries it. A file of its own is needed for loading: one that was installed beside the executable is
//! taken if there is one, otherwise the library is written once into the user's cache.

use crate::atomic::write_atomically;
use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The library's file name.
pub const FILE_NAME: &str = "libbubblescope_inject.so";

#[cfg(target_os = "linux")]
const EMBEDDED: Option<&[u8]> = Some(include_bytes!(concat!(env!("OUT_DIR"), "/libbubblescope_inject.so")));
#[cfg(not(target_os = "linux"))]
const EMBEDDED: Option<&[u8]> = None;

/// The library's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its path, absolute if that of the spare folder is.
    pub path: PathBuf,
    /// Why it is in the spare folder, if it is.
    pub not_kept: Option<String>,
}

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// This build carries none.
    #[error("programs can be recorded on Linux only")]
    NotCarried,
    /// It can be written nowhere.
    #[error("the recorder library can be written neither to the cache folder nor to the recording's own")]
    Unwritable(#[source] io::Error),
}

/// Finds the library beside the executable or in `../lib`, or writes it into the user's cache
/// (`$XDG_CACHE_HOME/bubblescope` or `~/.cache/bubblescope`), or, when that cannot be written, into the folder `spare`,
/// which has to stay until the recorded program has ended.
///
/// # Errors
/// When this build carries no library, or when it can be written nowhere.
pub fn locate(spare: &Path) -> Result<Library, LibraryError> {
    if let Some(path) = env::current_exe().ok().and_then(|exe| beside(&exe)) {
        return Ok(Library { path, not_kept: None });
    }
    let bytes = EMBEDDED.ok_or(LibraryError::NotCarried)?;
    library(cache(&|name| env::var_os(name)), spare, bytes)
}

/// The library with these bytes in the cache folder, or else in the spare one.
fn library(cache: Option<PathBuf>, spare: &Path, bytes: &[u8]) -> Result<Library, LibraryError> {
    let reason = match cache.map(|cache| kept(&cache, bytes).map_err(|error| (cache, error))) {
        Some(Ok(path)) => return Ok(Library { path, not_kept: None }),
        Some(Err((cache, error))) => format!("the cache folder {} cannot be written: {error}", cache.display()),
        None => "there is no cache folder: neither HOME nor XDG_CACHE_HOME is set".to_owned(),
    };
    // Nothing makes the spare folder again: it is gone when a signal ends this process.
    let path = spare.join(FILE_NAME);
    write_atomically(&path, |out| out.write_all(bytes)).map_err(LibraryError::Unwritable)?;
    Ok(Library { path, not_kept: Some(reason) })
}

fn beside(exe: &Path) -> Option<PathBuf> {
    let exe = exe.canonicalize().ok()?;
    let folder = exe.parent()?;
    [folder.join(FILE_NAME), folder.parent()?.join("lib").join(FILE_NAME)].into_iter().find(|path| path.is_file())
}

/// The user's cache folder.
fn cache(variable: &dyn Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("bubblescope"))
}

/// The file below `folder` that holds these bytes and no others, written if it is not there.
fn kept(folder: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let folder = folder.join(format!("{:016x}", hash(bytes)));
    let path = folder.join(FILE_NAME);
    if fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(path);
    }
    fs::create_dir_all(&folder)?;
    write_atomically(&path, |out| out.write_all(bytes))?;
    Ok(path)
}

/// FNV-1a: names a version of the library; its content is compared all the same.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_cache_is_kept_and_a_damaged_one_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("not/yet");
        let path = kept(&cache, b"library").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"library");
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(kept(&cache, b"library").unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written, "not written again");
        fs::write(&path, b"librarx").unwrap();
        assert_eq!(kept(&cache, b"library").unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"library");
        let other = kept(&cache, b"another").unwrap();
        assert_ne!(other, path);
        assert!(path.is_file() && other.is_file(), "versions do not replace each other");
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_an_error_here() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(kept(&file, b"library").is_err());
        let spare = folder.path().join("spare");
        let gone = library(Some(file.clone()), &spare, b"library");
        assert!(matches!(gone, Err(LibraryError::Unwritable(_))) && !spare.exists(), "it does not come back");
        fs::create_dir(&spare).unwrap();
        let not_kept = library(Some(file.clone()), &spare, b"library").unwrap();
        assert_eq!(fs::read(&not_kept.path).unwrap(), b"library");
        assert!(not_kept.path.starts_with(&spare) && not_kept.not_kept.unwrap().contains(file.to_str().unwrap()));
        assert!(library(None, &spare, b"library").unwrap().not_kept.unwrap().contains("HOME"));
        assert_eq!(library(Some(folder.path().join("cache")), &spare, b"library").unwrap().not_kept, None);
        assert!(matches!(library(None, &file, b"library"), Err(LibraryError::Unwritable(_))));
        let gone = folder.path().join("gone");
        assert!(matches!(library(None, &gone, b"library"), Err(LibraryError::Unwritable(_))));
        assert!(!gone.exists());
    }

    #[test]
    fn the_cache_is_where_the_environment_says() {
        let cache = |variables: &[(&str, &str)]| {
            cache(&|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
        };
        assert_eq!(cache(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), Some("/c/bubblescope".into()));
        assert_eq!(cache(&[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")]), Some("/h/.cache/bubblescope".into()));
        assert_eq!(cache(&[]), None);
    }

    #[test]
    fn a_library_beside_the_executable_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (bin, lib) = (root.join("bin"), root.join("lib"));
        fs::create_dir(&bin).unwrap();
        fs::create_dir(&lib).unwrap();
        let exe = bin.join("bubble-report");
        fs::write(&exe, "").unwrap();
        assert_eq!(beside(&exe), None);
        fs::write(lib.join(FILE_NAME), "").unwrap();
        assert_eq!(beside(&exe), Some(lib.join(FILE_NAME)));
        fs::write(bin.join(FILE_NAME), "").unwrap();
        assert_eq!(beside(&exe), Some(bin.join(FILE_NAME)));
        let link = root.join("link");
        std::os::unix::fs::symlink(&exe, &link).unwrap();
        assert_eq!(beside(&link), Some(bin.join(FILE_NAME)), "where the executable really is");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_carried_is_a_library_with_the_entry() {
        let bytes = EMBEDDED.unwrap();
        assert_eq!(&bytes[..4], b"\x7fELF");
        for name in ["InitializeInjection\0", "InitializeInjectionNvtx2\0"] {
            assert!(bytes.windows(name.len()).any(|window| window == name.as_bytes()), "{name}");
        }
    }
}
