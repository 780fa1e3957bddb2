//! Signals that end `bubble-report` in the middle of its work: it dies by them, and leaves nothing behind.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::fixture;
use super::place::{Going, Place, program};

const SIGNALS: [(&str, i32); 4] = [("INT", 2), ("TERM", 15), ("HUP", 1), ("USR1", 10)];

/// How often a moment is tried that is a matter of luck.
const AT_ONCE: usize = 40;

/// Waits until something is there.
pub(super) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A named pipe.
fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The end of a named pipe to write into, as soon as somebody reads from it.
fn read_from(path: &Path) -> File {
    let nonblocking = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
    until(|| match nonblocking() {
        Ok(file) => Some(file),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => None,
        Err(error) => panic!("{}: {error}", path.display()),
    })
}

fn send(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

fn ended(child: &mut Child) -> ExitStatus {
    until(|| child.try_wait().unwrap())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_recording_that_is_being_read_leaves_no_folder() {
    for (name, number) in SIGNALS {
        let place = Place::new();
        fs::write(place.path("t.bubbles.parquet"), "as it was").unwrap();
        let script = "mkfifo \"$folder/$$-1.bubcap\"; leave \"$1\" 5000001; echo ready; echo \"$folder/$$-1.bubcap\"";
        let mut going = Going::start(&place, script);
        let spool = PathBuf::from(going.says());
        let _spool = read_from(&spool);
        assert!(spool.exists());
        going.signal(name);
        let output = going.end();
        assert_eq!(output.status.signal(), Some(number), "{output:?}");
        assert_eq!(place.files(), BTreeSet::from(["t.bubbles.parquet".to_owned()]), "{name}");
        assert_eq!(fs::read(place.path("t.bubbles.parquet")).unwrap(), b"as it was");
    }
}

#[test]
fn a_folder_that_is_kept_stays() {
    let place = Place::new();
    let script = "leave \"$1\" $$; rm -f t.bubbles.parquet; mkdir t.bubbles.parquet; echo ready";
    let going = Going::start(&place, script);
    let output = going.end();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let kept = entries(place.folder.path());
    assert!(said.contains("raw recordings are kept"), "{said}");
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[test]
fn the_next_recording_says_where_that_of_a_killed_one_lies() {
    let place = Place::new();
    let going = Going::start(&place, "leave \"$1\" $$; mkfifo go; echo ready; read -r _ < go");
    let said = |place: &Place| {
        let output = place.record(&["-o", "other.bubbles.parquet"], "exit 0").output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let hidden = || entries(place.folder.path()).into_iter().find(|path| path.is_dir()).unwrap();
    let folder = hidden();
    // Others are none of its kind.
    fs::create_dir_all(place.path(".bubble-report-other/folder.bubcap")).unwrap();
    std::os::unix::fs::symlink(fixture("kernels-1/sync.bubcap"), place.path(".bubble-report-other/link.bubcap"))
        .unwrap();
    pipe(&place.path(".bubble-report-other/pipe.bubcap"));
    pipe(&place.path(".bubble-report-pipe"));
    assert!(!said(&place).contains("earlier run"), "it goes on");
    going.signal("KILL");
    // The program that it recorded goes on, and ends when it is told to.
    fs::write(place.path("go"), "\n").unwrap();
    assert_eq!(going.end().status.signal(), Some(9));
    let said = said(&place);
    let advice = format!("`bubble-report analyze {}`", folder.display());
    assert!(said.contains(&advice) && said.matches("earlier run").count() == 1, "{said}");
    let read = Command::new(program()).arg("analyze").arg(&folder).output().unwrap();
    let (stdout, stderr) = [&read.stdout, &read.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).into();
    assert!(read.status.success() && stdout.contains("was idle"), "{stdout}{stderr}");
}

/// A half written spool, which is written while its source is read.
#[test]
fn a_file_that_is_being_written_goes_and_the_one_before_stays() {
    let spool = fs::read(fixture("kernels-4/sync.bubcap")).unwrap();
    for (name, number) in SIGNALS {
        let folder = tempfile::tempdir().unwrap();
        let [input, output] = ["input", "out.bubcap"].map(|name| folder.path().join(name));
        pipe(&input);
        fs::write(&output, "as it was").unwrap();
        let mut child = Command::new(program()).arg("convert").arg(&input).arg("-o").arg(&output).spawn().unwrap();
        let mut end = read_from(&input);
        end.write_all(&spool[..5_000]).unwrap();
        until(|| entries(folder.path()).into_iter().find(|path| path.extension().is_some_and(|end| end == "tmp")));
        send(&child, name);
        assert_eq!(ended(&mut child).signal(), Some(number));
        assert_eq!(BTreeSet::from_iter(entries(folder.path())), BTreeSet::from([input, output.clone()]), "{name}");
        assert_eq!(fs::read(output).unwrap(), b"as it was");
    }
}

/// Every form, interrupted at many moments.
#[test]
fn whenever_it_comes_there_is_a_whole_file_or_none() {
    let input = fixture("kernels-12/sync.bubcap");
    let wholes: Vec<(String, Vec<u8>)> = ["bubbles.parquet", "json", "json.gz", "csv", "bubcap"]
        .map(|form| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format!("out.{form}"));
            let mut convert = Command::new(program());
            convert.arg("convert").arg(&input).arg("-o").arg(&path).stderr(Stdio::null());
            assert!(convert.status().unwrap().success());
            (form.to_owned(), fs::read(path).unwrap())
        })
        .into();
    for (form, whole) in wholes {
        for moment in 0..8 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(format!("out.{form}"));
            let mut convert = Command::new(program());
            convert.arg("convert").arg(&input).arg("-o").arg(&path).stderr(Stdio::null());
            let mut child = convert.spawn().unwrap();
            // From before the signals are taken until it has ended.
            std::thread::sleep(Duration::from_millis(1 << moment));
            send(&child, "TERM");
            let status = ended(&mut child);
            let left = entries(folder.path());
            if left.is_empty() {
                assert_eq!(status.signal(), Some(15), "{form} {moment}");
            } else {
                assert_eq!(left, std::slice::from_ref(&path), "{form} {moment}");
                assert_eq!(fs::read(path).unwrap().len(), whole.len(), "{form} {moment}");
            }
        }
    }
}

/// Commands that work in a temporary folder, interrupted as soon as it is there, and while their child process waits for
/// a driver that does not load.
#[test]
fn commands_with_a_temporary_folder_remove_it() {
    let folder = tempfile::tempdir().unwrap();
    let [libraries, temporary] = ["lib", "tmp"].map(|name| folder.path().join(name));
    fs::create_dir(&libraries).unwrap();
    fs::create_dir(&temporary).unwrap();
    // Whoever loads it waits until somebody writes into it.
    let driver = libraries.join("libcuda.so.1");
    pipe(&driver);
    for command in [&["doctor"][..], &["run", "scalar-readback"], &["compare", "scalar-readback"]] {
        let start = || {
            Command::new(program())
                .args(command)
                .env("LD_LIBRARY_PATH", &libraries)
                .env("TMPDIR", &temporary)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        for (name, number) in SIGNALS {
            let mut child = start();
            let _driver = read_from(&driver);
            send(&child, name);
            assert_eq!(ended(&mut child).signal(), Some(number), "{command:?}");
            assert_eq!(entries(&temporary), [] as [PathBuf; 0], "{command:?}");
        }
        for _ in 0..AT_ONCE {
            let mut child = start();
            // Within some microseconds, which a process that starts another one takes longer for.
            let script = "while set -- *; [ ! -e \"$1\" ]; do :; done; kill -s TERM \"$0\"";
            let sender =
                Command::new("sh").args(["-c", script, &child.id().to_string()]).current_dir(&temporary).status();
            assert!(sender.unwrap().success());
            assert_eq!(ended(&mut child).signal(), Some(15), "{command:?}");
            assert_eq!(entries(&temporary), [] as [PathBuf; 0], "{command:?}");
        }
    }
}

/// As at a terminal: the child process gets it too, and its sudden end is no failure to be told.
#[test]
fn an_interrupt_of_all_processes_ends_the_one_that_waits_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libcuda.so.1");
    pipe(&driver);
    for _ in 0..10 {
        let child = Command::new(program())
            .args(["run", "scalar-readback"])
            .env("LD_LIBRARY_PATH", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let _driver = read_from(&driver);
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args(["-s", "INT", "--", &group]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.signal(), output.stderr.as_slice()), (Some(2), &b""[..]), "{output:?}");
    }
}

/// Also while it waits for a driver that does not load.
#[test]
fn a_child_process_ends_after_the_one_that_asked_it() {
    let folder = tempfile::tempdir().unwrap();
    let driver = folder.path().join("libcuda.so.1");
    pipe(&driver);
    let mut child = Command::new(program())
        .args(["run", "scalar-readback"])
        .env("LD_LIBRARY_PATH", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both have it, and it ends when the last of them does.
    let mut stderr = child.stderr.take().unwrap();
    let _driver = read_from(&driver);
    send(&child, "KILL");
    assert_eq!(ended(&mut child).signal(), Some(9));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(stderr.read_to_end(&mut Vec::new())));
    assert!(told.recv_timeout(Duration::from_secs(120)).is_ok(), "its child process goes on");
}

/// What a file may not grow beyond is an error like a full disk, and no signal that kills.
#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$0\" convert \"$1\" -o \"$2\""])
        .arg(program())
        .args([fixture("kernels-12/sync.bubcap"), folder.path().join("out.json")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("out.json") && said.contains("File too large"), "{said}");
    assert_eq!(entries(folder.path()), [] as [PathBuf; 0]);
}
