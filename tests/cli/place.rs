//! Where `bubble-report` runs in tests, and what it records there.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use super::fixture;

/// `bubble-report` in a folder without a recorder library, so that the one it carries is used: where cargo puts it there
/// may be one beside it that was built some time ago.
pub(super) fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        heed_signals();
        link_to(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("program/bin"))
    })
}

/// Lets programs that are started from here get the signals that whoever started the tests has ignored, as a shell does
/// for what runs in the background: what a process handles, the programs that it starts do not ignore (execve(2)).
fn heed_signals() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2] {
        if ignored >> (signal - 1) & 1 == 1 {
            signal_hook::flag::register(signal, Arc::default()).unwrap();
        }
    }
}

/// Links the program into a folder.
pub(super) fn link_to(folder: &Path) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_bubble-report"));
    fs::create_dir_all(folder).unwrap();
    let (program, fresh) = (folder.join("bubble-report"), folder.join(format!("fresh-{}", std::process::id())));
    // The folder may be on another file system.
    fs::hard_link(built, &fresh).or_else(|_| fs::copy(built, &fresh).map(drop)).unwrap();
    fs::rename(&fresh, &program).unwrap();
    // Renaming one link of a file over another does nothing.
    let _ = fs::remove_file(&fresh);
    program
}

/// What scripts begin with: the folder, and a way to leave a spool as the process of a number.
const PRELUDE: &str = r#"
folder=$(printf %s "$BUBBLESCOPE_INJECT" | sed 's/.*"folder":"\([^"]*\)".*/\1/')
leave() { cp "$1" "$folder/$2-1.bubcap"; }
"#;

/// A folder to record in, and its scripts.
pub(super) struct Place {
    pub(super) folder: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `bubble-report record OPTIONS -- sh -c SCRIPT`, not started. The script has the two spools as `$1` and `$2`.
    pub(super) fn record(&self, options: &[&str], script: &str) -> Command {
        let mut command = self.bubble_report(options);
        command.args(["sh", "-c", &format!("{PRELUDE}{script}"), "sh"]);
        command.args(["kernels-1/sync.bubcap", "kernels-4/graph.bubcap"].map(fixture));
        command
    }

    pub(super) fn bubble_report(&self, options: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.arg("record").args(options).arg("--").current_dir(self.folder.path());
        for variable in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "BUBBLESCOPE_INJECT"] {
            command.env_remove(variable);
        }
        command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command
    }

    /// The names of the files there, without those of scripts.
    pub(super) fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A recording that is going on.
pub(super) struct Going {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Going {
    /// Starts it in a process group of its own, and waits until the program says `ready`.
    pub(super) fn start(place: &Place, script: &str) -> Self {
        let mut child = place
            .record(&["-o", "t.bubbles.parquet"], script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut going = Self { child, stdout, stderr };
        assert_eq!(going.says(), "ready");
        going
    }

    /// Sends a signal to bubble-report alone.
    pub(super) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// The next line of the program.
    pub(super) fn says(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Reads what is said next.
    pub(super) fn hears(&mut self, words: &str) {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        assert!(line.contains(words), "{line}");
    }

    pub(super) fn end(mut self) -> Output {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.stderr.read_to_end(&mut stderr).unwrap();
        self.stdout.read_to_end(&mut stdout).unwrap();
        Output { status: self.child.wait().unwrap(), stdout, stderr }
    }
}
