//! Writing a file whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::leftover::{Listed, undisturbed};

/// Symbolic links in a row before they are taken for a loop, as Linux does.
const MOST_LINKS: u32 = 40;

/// Writes a file through `write`: whole or not at all, and what stood there before stays until the new one is whole. A
/// signal that ends the process leaves nothing either, if they are taken ([`crate::signals`]).
/// So `write` may still read the file it replaces.
///
/// A symbolic link stays, and what it points at is replaced. What is no regular file (a device, a pipe, a handle that is
/// open already, such as `/dev/stdout`) is written into as it is.
///
/// # Errors
/// When `write` fails, or the file system does.
pub fn write_atomically<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    match Target::of(path)? {
        Target::Straight => {
            let mut output = BufWriter::new(OpenOptions::new().write(true).truncate(true).open(path)?);
            let written = write(&mut output)?;
            output.flush()?;
            Ok(written)
        }
        Target::File { path, permissions } => {
            let folder = path.parent().unwrap_or(Path::new("."));
            let make = || {
                let mut builder = tempfile::Builder::new();
                builder.prefix(".").suffix(".tmp");
                builder.make_in(folder, |path| OpenOptions::new().write(true).create_new(true).open(path))
            };
            let (temporary, listed) = Listed::new(make, |temporary| temporary.path().to_owned())?;
            let (file, temporary) = temporary.into_parts();
            let mut output = BufWriter::new(file);
            let written = write(&mut output)?;
            let file = output.into_inner().map_err(io::IntoInnerError::into_error)?;
            if let Some(permissions) = permissions {
                file.set_permissions(permissions)?;
            }
            listed.moved(&path, || temporary.persist(&path).map_err(|error| error.error))?;
            Ok(written)
        }
    }
}

/// Tries whether [`write_atomically`] could write at `path`, as far as that can be told before. Nothing stays of it.
///
/// # Errors
/// When it could not.
pub fn check(path: &Path) -> io::Result<()> {
    match Target::of(path)? {
        Target::Straight if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Target::Straight => Ok(()),
        Target::File { path, .. } => {
            undisturbed(|| tempfile::tempfile_in(path.parent().unwrap_or(Path::new(".")))).map(drop)
        }
    }
}

/// What an output path stands for.
enum Target {
    /// Something that only makes sense written into.
    Straight,
    /// A regular file, there or not; the links are resolved.
    File { path: PathBuf, permissions: Option<fs::Permissions> },
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let permissions = match fs::metadata(path) {
            Ok(found) if !found.is_file() => return Ok(Self::Straight),
            Ok(found) => Some(found.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let name =
                path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = folder.canonicalize()?;
            // The links in `/proc/…/fd` are open handles; a new file of the same name would not be what they lead to.
            if folder.starts_with("/proc") {
                return Ok(Self::Straight);
            }
            path = folder.join(name);
            match fs::read_link(&path) {
                Ok(target) => path = folder.join(target),
                Err(_) => return Ok(Self::File { path, permissions }),
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "too many symbolic links"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, text: &str) -> io::Result<()> {
        write_atomically(path, |out| out.write_all(text.as_bytes()))
    }

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_file_is_new_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        put(&path, "first").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        let failed = write_atomically(&path, |out| -> io::Result<()> {
            out.write_all(b"half")?;
            Err(io::Error::other("full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(entries(folder.path()), 1, "nothing is left beside it");
        assert_eq!(put(&folder.path().join("no/folder"), "").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(put(folder.path(), "").is_err(), "a folder is no file");
        for (path, expected) in [
            ("out", None),
            ("new", None),
            ("no/folder", Some(io::ErrorKind::NotFound)),
            ("", Some(io::ErrorKind::IsADirectory)),
        ] {
            let found = check(&folder.path().join(path)).err().map(|error| error.kind());
            assert_eq!(found, expected, "{path}");
        }
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), entries(folder.path())), ("first", 1), "as before");
    }

    #[test]
    fn a_panic_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let panicked =
            std::panic::catch_unwind(|| write_atomically(&path, |_| -> io::Result<()> { panic!("on purpose") }));
        assert!(panicked.is_err());
        assert_eq!(entries(folder.path()), 0);
    }

    #[test]
    fn a_file_may_be_written_from_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("same");
        put(&path, "abc").unwrap();
        let mut source = File::open(&path).unwrap();
        write_atomically(&path, |out| {
            io::copy(&mut source, out)?;
            out.write_all(b"d")
        })
        .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "abcd");
    }

    #[cfg(unix)]
    mod unix {
        use super::*;
        use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};

        #[test]
        fn links_stay_and_their_target_is_written() {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            fs::create_dir(at("deep")).unwrap();
            symlink("deep/real", at("relative")).unwrap();
            symlink(at("relative"), at("absolute")).unwrap();
            symlink("deep", at("folder")).unwrap();
            // The first write meets a link that points at nothing yet.
            for (turn, name) in ["absolute", "relative", "folder/real", "deep/real"].into_iter().enumerate() {
                put(&at(name), &turn.to_string()).unwrap();
                assert_eq!(fs::read_to_string(at("deep/real")).unwrap(), turn.to_string(), "{name}");
            }
            assert!(at("absolute").is_symlink() && at("relative").is_symlink() && !at("deep/real").is_symlink());
            assert_eq!((entries(folder.path()), entries(&at("deep"))), (4, 1));
            symlink("missing/real", at("astray")).unwrap();
            check(&at("absolute")).unwrap();
            assert_eq!(check(&at("astray")).unwrap_err().kind(), io::ErrorKind::NotFound);
            symlink("loop", at("loop")).unwrap();
            assert!(put(&at("loop"), "").is_err());
            assert!(at("loop").is_symlink());
        }

        #[test]
        fn permissions_stay() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("private");
            put(&path, "a").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            put(&path, "b").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        }

        #[test]
        fn devices_and_pipes_are_written_into() {
            put(Path::new("/dev/null"), "gone").unwrap();
            check(Path::new("/dev/null")).unwrap();
            assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

            let folder = tempfile::tempdir().unwrap();
            let pipe = folder.path().join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
            assert!(made.success());
            let link = folder.path().join("link");
            symlink("pipe", &link).unwrap();
            let reader = std::thread::spawn({
                let pipe = pipe.clone();
                move || fs::read_to_string(pipe).unwrap()
            });
            put(&link, "through").unwrap();
            assert_eq!(reader.join().unwrap(), "through");
            assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo() && link.is_symlink());
        }

        #[cfg(target_os = "linux")]
        #[test]
        fn an_open_handle_is_written_into() {
            use std::os::fd::AsRawFd as _;
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("open");
            let handle = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
            for place in ["/proc/self/fd", "/dev/fd"] {
                put(&Path::new(place).join(handle.as_raw_fd().to_string()), place).unwrap();
                assert_eq!(handle.metadata().unwrap().len(), place.len() as u64, "the same file");
                assert_eq!(fs::read_to_string(&path).unwrap(), place);
            }
        }
    }
}
