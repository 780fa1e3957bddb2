//! Runs `bubble-report` as a child process that records something, and reads what it says.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

/// The name of the program that records.
const PROGRAM: &str = "bubble-report";
/// Lines of output that are kept, the last ones.
const MOST_LINES: usize = 5_000;
/// For how long a program that has ended may still be heard.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A bundled workload.
    Workload {
        /// Its name.
        name: String,
        /// Its variant.
        variant: String,
        /// Options that are not as by default.
        options: Vec<(String, u64)>,
    },
    /// A program with its arguments.
    Command(Vec<String>),
}

impl Subject {
    /// The arguments of `bubble-report` that record it into a file.
    pub fn arguments(&self, output: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        match self {
            Self::Workload { name, variant, options } => {
                arguments.extend(["run", name, "--variant", variant].map(OsString::from));
                for (name, value) in options {
                    arguments.extend(["--set".to_owned(), format!("{name}={value}")].map(OsString::from));
                }
                arguments.extend(["-o".into(), output.into()]);
            }
            Self::Command(words) => {
                arguments.extend(["record".into(), "-o".into(), output.into(), "--".into()]);
                arguments.extend(words.iter().map(OsString::from));
            }
        }
        arguments
    }

    /// A name for the file to record into, without its ending.
    pub fn file_stem(&self) -> String {
        match self {
            Self::Workload { name, variant, .. } => format!("{name}-{variant}"),
            Self::Command(words) => {
                let program = words.first().map(Path::new).and_then(Path::file_stem);
                program.map_or_else(|| "recording".to_owned(), |name| name.to_string_lossy().into_owned())
            }
        }
    }
}

/// A file in `folder` that is not there yet: `STEM.bubbles.parquet`, numbered if need be.
pub fn free_file(folder: &Path, stem: &str) -> PathBuf {
    let named = |number: u32| match number {
        1 => folder.join(format!("{stem}.bubbles.parquet")),
        _ => folder.join(format!("{stem}-{number}.bubbles.parquet")),
    };
    (1..=9_999).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(1))
}

/// The program that records: beside this one, else on the path.
///
/// # Errors
/// One line that says what to do when there is none.
pub fn program() -> Result<PathBuf, String> {
    let beside = std::env::current_exe().ok().and_then(|this| Some(this.parent()?.join(PROGRAM)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM));
    let found = beside.into_iter().chain(on_path).find(|program| program.is_file());
    found.ok_or_else(|| {
        format!("{PROGRAM} is neither beside this program nor on the PATH: `cargo install --path .` puts it there")
    })
}

/// Splits a command line as a shell does: at spaces, except within quotes and after a backslash.
///
/// # Errors
/// When a quote is not closed.
pub fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        None => return Err("a quote is not closed"),
                        Some(end) if end == letter => break,
                        Some('\\') if letter == '"' => word.extend(letters.next()),
                        Some(inner) => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

/// What a recording has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It was asked to end.
    Stopping,
    /// It has ended.
    Ended(ExitStatus),
}

#[derive(Debug)]
enum Event {
    Line(String),
    Ended(std::io::Result<ExitStatus>),
}

/// A recording.
#[derive(Debug)]
pub struct Recording {
    /// The file that it makes.
    pub output: PathBuf,
    /// What it said, the last lines.
    pub lines: VecDeque<String>,
    state: State,
    process: u32,
    events: Receiver<Event>,
}

impl Recording {
    /// Starts a program that records into `output`. `wake` is called whenever there is something to take.
    ///
    /// # Errors
    /// One line that says why the program cannot be started.
    pub fn start(
        mut command: Command,
        output: PathBuf,
        wake: impl Fn() + Clone + Send + 'static,
    ) -> Result<Self, String> {
        command.env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that an interrupt reaches the recorded program too, and not this one.
        bubblescope::signals::interrupts_reach_programs().map_err(|error| format!("cannot handle signals: {error}"))?;
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let started = command.spawn();
        let mut child =
            started.map_err(|error| format!("cannot start {}: {error}", command.get_program().display()))?;
        let (send, events) = unbounded();
        let process = child.id();
        let readers = [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ];
        let (reads, all_read) = bounded::<()>(0);
        for pipe in readers.into_iter().flatten() {
            let (send, wake, reads) = (send.clone(), wake.clone(), reads.clone());
            spawn(move || {
                read_lines(pipe, &send, &wake);
                drop(reads);
            })?;
        }
        drop(reads);
        spawn(move || {
            let status = child.wait();
            // Its last words say why nothing was recorded: they come before its end. What it has left behind may keep its
            // pipes open for as long as it likes.
            let _ = all_read.recv_timeout(LAST_WORDS);
            // Nobody listens any more when the window was closed.
            drop(send.send(Event::Ended(status)));
            wake();
        })?;
        Ok(Self { output, lines: VecDeque::new(), state: State::Running, process, events })
    }

    /// Takes what has arrived; the exit status when it has just ended.
    pub fn poll(&mut self) -> Option<ExitStatus> {
        let mut ended = None;
        while let Ok(event) = self.events.try_recv() {
            match event {
                Event::Line(line) => self.say(line),
                Event::Ended(Ok(status)) => {
                    self.state = State::Ended(status);
                    ended = Some(status);
                }
                Event::Ended(Err(error)) => {
                    self.say(format!("{PROGRAM} is lost: {error}"));
                    self.state = State::Ended(ExitStatus::default());
                }
            }
        }
        ended
    }

    fn say(&mut self, line: String) {
        if self.lines.len() == MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// What it has come to.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it goes on.
    pub fn is_running(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }

    /// Asks the program to end, as Ctrl+C does, so that it can keep what it has.
    pub fn stop(&mut self) {
        if self.state == State::Running {
            self.signal("INT");
            self.state = State::Stopping;
        }
    }

    /// Ends the program, which may lose what was recorded.
    pub fn end(&mut self) {
        if self.is_running() {
            self.signal("KILL");
        }
    }

    /// Sends a signal to the program and everything that it has started.
    fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.args(["-s", name, "--", &format!("-{}", self.process)]);
        // A group that is gone has ended, which is what was asked for.
        drop(kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status());
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_running() {
            self.signal("INT");
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name("recording".to_owned()).spawn(work);
    thread.map(drop).map_err(|error| format!("no thread for the recording: {error}"))
}

/// Reads lines, whatever bytes they hold. What a progress bar writes over itself is a line of its own.
fn read_lines(pipe: Box<dyn Read + Send>, send: &Sender<Event>, wake: &impl Fn()) {
    let mut pipe = BufReader::new(pipe);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match pipe.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&bytes);
        for line in text.trim_end_matches(['\n', '\r']).split('\r') {
            let line: String = line.replace('\t', "    ").chars().filter(|letter| !letter.is_control()).collect();
            if send.send(Event::Line(line)).is_err() {
                return;
            }
        }
        wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_as_by_a_shell() {
        for (line, expected) in [
            ("python train.py --steps 10", vec!["python", "train.py", "--steps", "10"]),
            ("  a   b ", vec!["a", "b"]),
            ("'a b' \"c \\\" d\" e\\ f", vec!["a b", "c \" d", "e f"]),
            ("a''b ''", vec!["ab", ""]),
            ("", vec![]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        assert!(words("python 'train.py").is_err());
    }

    #[test]
    fn what_is_recorded_becomes_arguments() {
        let workload = Subject::Workload {
            name: "scalar-readback".to_owned(),
            variant: "graph".to_owned(),
            options: vec![("kernels".to_owned(), 4)],
        };
        let output = Path::new("o.bubbles.parquet");
        let expected =
            ["run", "scalar-readback", "--variant", "graph", "--set", "kernels=4", "-o", "o.bubbles.parquet"];
        assert_eq!(workload.arguments(output), expected.map(OsString::from));
        let command = Subject::Command(vec!["/usr/bin/python3".to_owned(), "-o".to_owned()]);
        let expected = ["record", "-o", "o.bubbles.parquet", "--", "/usr/bin/python3", "-o"];
        assert_eq!(command.arguments(output), expected.map(OsString::from));
        assert_eq!((workload.file_stem(), command.file_stem()), ("scalar-readback-graph".into(), "python3".into()));
    }

    #[cfg(unix)]
    #[test]
    fn output_arrives_and_an_interrupt_ends_it() {
        let start = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            Recording::start(shell, "o".into(), || ()).unwrap()
        };
        let until = |recording: &mut Recording, done: &dyn Fn(&Recording) -> bool| {
            let start = std::time::Instant::now();
            while !done(recording) {
                assert!(start.elapsed().as_secs() < 120, "{recording:?}");
                std::thread::sleep(Duration::from_millis(5));
                recording.poll();
            }
        };
        let mut recording = start("echo one; printf 'two\\rthree\\n' >&2; exit 3");
        until(&mut recording, &|recording| !recording.is_running() && recording.lines.len() == 3);
        let mut lines: Vec<&str> = recording.lines.iter().map(String::as_str).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["one", "three", "two"]);
        assert!(matches!(recording.state(), State::Ended(status) if status.code() == Some(3)));

        for _ in 0..20 {
            let mut recording = start("seq 1 2000; exit 0");
            until(&mut recording, &|recording| !recording.is_running());
            assert_eq!(recording.lines.back().map(String::as_str), Some("2000"), "its last words come before its end");
        }

        let mut recording = start("trap 'echo kept; exit 0' INT; echo ready; while :; do sleep 0.02; done");
        until(&mut recording, &|recording| recording.lines.len() == 1);
        recording.stop();
        until(&mut recording, &|recording| !recording.is_running() && recording.lines.len() == 2);
        assert_eq!(recording.lines[1], "kept");
        assert!(Recording::start(Command::new("/no/such/program"), "o".into(), || ()).is_err());
    }

    /// As a desktop may start the window.
    #[cfg(unix)]
    #[test]
    fn an_interrupt_ends_it_also_where_this_process_ignores_them() {
        let ignoring = "trap '' INT; exec \"$0\" --exact recorder::tests::output_arrives_and_an_interrupt_ends_it";
        let this = std::env::current_exe().unwrap();
        let output = Command::new("sh").args(["-c", ignoring]).arg(this).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn files_are_never_taken_twice() {
        let folder = std::env::temp_dir().join(format!("bubblescope-{}-free", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let first = free_file(&folder, "run");
        std::fs::write(&first, b"").unwrap();
        let second = free_file(&folder, "run");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(first.ends_with("run.bubbles.parquet") && second.ends_with("run-2.bubbles.parquet"));
    }
}
