//! Work in a process of its own: the request, the reply, and both ends of the pipe.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use cupti::spool::Reader;
use cupti::{Config, Recorder, RecorderError};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use workloads::{Outcome, RunSpec, WorkloadError};

use crate::trace::{Interval, Ns, WorkloadRun};

/// The key of the note in a spool that tells which workload ran, as [`WorkloadRun`] in JSON with absolute times.
pub const WORKLOAD_NOTE: &str = "workload";

/// What a child process is asked to do. Travels as JSON on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Run a workload once.
    Repeat(Repeat),
    /// Start CUDA and a recording, to see whether they work.
    Probe(Recording),
}

/// One repetition of a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Repeat {
    /// The workload, variant and options.
    pub spec: RunSpec,
    /// How to record it; an unprofiled repetition has none.
    pub recording: Option<Recording>,
}

/// How a profiled repetition is recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// The spool to write.
    pub spool: PathBuf,
    /// What to record, and how.
    pub config: Config,
}

/// What a child process answers. Travels as JSON on its standard output.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The repetition ran.
    Done(Outcome),
    /// What a probe saw.
    Probed(Probe),
    /// It could not be done.
    Failed {
        /// What kind of failure it is.
        kind: FailureKind,
        /// What happened, in one line.
        message: String,
    },
}

/// Whether CUDA and recording work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The names of the GPUs, or why there are none.
    pub gpus: Result<Vec<String>, String>,
    /// What recorded, or why recording does not work.
    pub recording: Result<Recorded, String>,
}

/// A recording that worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The libcupti that recorded.
    pub library: String,
    /// Its `cuptiGetVersion`.
    pub version: u32,
    /// The activity kinds that were recorded, as numbers of `CUpti_ActivityKind`, in the order in which they were
    /// switched on.
    pub kinds: Vec<u32>,
}

/// What kind of failure stopped a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// No usable GPU, driver or CUPTI.
    NoGpu,
    /// This GPU, driver or CUDA cannot run the variant.
    Unsupported,
    /// The workload or the recorder failed.
    Failed,
}

/// Why a repetition did not give a result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepetitionError {
    /// No usable GPU, driver or CUPTI.
    #[error("{0}")]
    NoGpu(String),
    /// This GPU, driver or CUDA cannot run the variant.
    #[error("{0}")]
    Unsupported(String),
    /// The workload or the recorder failed.
    #[error("{0}")]
    Failed(String),
    /// The child process could not be started or talked to.
    #[error("the child process that runs the workload could not be used")]
    Child(#[from] io::Error),
    /// The child process ended without an answer.
    #[error("the child process that runs the workload ended without an answer ({status}){said}")]
    Silent {
        /// How it ended.
        status: String,
        /// What it had printed, if anything.
        said: String,
    },
}

/// Runs one repetition in a child process of `program`, which must answer to `child` with [`serve`].
///
/// # Errors
/// When the child cannot be started, fails, or dies.
pub fn repeat(program: &Path, repeat: Repeat) -> Result<Outcome, RepetitionError> {
    match ask(program, &Request::Repeat(repeat))? {
        Reply::Done(outcome) => Ok(outcome),
        Reply::Failed { kind: FailureKind::NoGpu, message } => Err(RepetitionError::NoGpu(message)),
        Reply::Failed { kind: FailureKind::Unsupported, message } => Err(RepetitionError::Unsupported(message)),
        Reply::Failed { kind: FailureKind::Failed, message } => Err(RepetitionError::Failed(message)),
        Reply::Probed(_) => Err(RepetitionError::Failed("the child process answered another question".to_owned())),
    }
}

/// Tries CUDA and a recording in a child process of `program`.
///
/// # Errors
/// When the child cannot be started or dies.
pub fn probe(program: &Path, recording: Recording) -> Result<Probe, RepetitionError> {
    match ask(program, &Request::Probe(recording))? {
        Reply::Probed(probe) => Ok(probe),
        Reply::Failed { message, .. } => Err(RepetitionError::Failed(message)),
        Reply::Done(_) => Err(RepetitionError::Failed("the child process answered another question".to_owned())),
    }
}

/// What a line of standard output with a reply starts with; libraries may print there too.
const REPLY: &str = "bubblescope-reply: ";

/// No request and no reply is longer, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// Asks a child process one thing.
fn ask(program: &Path, request: &Request) -> Result<Reply, RepetitionError> {
    let mut child = Command::new(program)
        .arg("child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let mut text = serde_json::to_vec(request).map_err(io::Error::other)?;
    text.push(b'\n');
    // It stays open until the child is done: when it closes before, the child knows that nobody waits any more.
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &mut stdin {
        // A child that died already says more through its exit status than this broken pipe would.
        let _ = stdin.write_all(&text);
    }
    let heard = child.stdout.take().map(|output| listen(BufReader::new(output))).transpose();
    let status = child.wait()?;
    let Heard { reply, said } = heard?.unwrap_or_default();
    reply.ok_or_else(|| RepetitionError::Silent { status: status.to_string(), said })
}

/// What a child process printed.
#[derive(Default)]
struct Heard {
    reply: Option<Reply>,
    /// The start of the last line that is no reply.
    said: String,
}

/// Finds the reply among whatever else is printed, keeping one line at a time.
fn listen(mut output: impl BufRead) -> io::Result<Heard> {
    const SHOWN: usize = 300;
    let mut heard = Heard::default();
    let mut line = Vec::new();
    let mut at_start = true;
    while output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0 {
        if at_start {
            let reply = line.strip_prefix(REPLY.as_bytes()).and_then(|text| serde_json::from_slice(text).ok());
            let words = line[..line.len().min(SHOWN)].trim_ascii();
            if reply.is_some() {
                heard.reply = reply;
            } else if !words.is_empty() {
                heard.said = format!(": {}", String::from_utf8_lossy(words));
            }
        }
        at_start = line.ends_with(b"\n");
        line.clear();
    }
    Ok(heard)
}

/// The child's side: reads a request, runs it, writes the reply.
///
/// A request that ends with a line end comes from a process that keeps standard input open for as long as it wants the
/// reply; this process ends when that one does.
///
/// # Errors
/// When standard input holds no request or standard output is closed.
pub fn serve() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().lock().take(LONGEST_LINE).read_until(b'\n', &mut text)?;
    let request: Request = serde_json::from_slice(&text).map_err(io::Error::other)?;
    if text.ends_with(b"\n") {
        end_with_input();
    }
    let reply = match &request {
        Request::Repeat(repeat) => match perform(repeat) {
            Ok(outcome) => Reply::Done(outcome),
            Err((kind, message)) => Reply::Failed { kind, message },
        },
        Request::Probe(recording) => Reply::Probed(try_out(recording)),
    };
    say(&reply, &mut io::stdout().lock())
}

/// Writes a reply on a line of its own.
fn say(reply: &Reply, output: &mut impl io::Write) -> io::Result<()> {
    // A library may have begun a line.
    let line = format!("\n{REPLY}{}\n", serde_json::to_string(reply)?);
    output.write_all(line.as_bytes())?;
    output.flush()
}

/// Ends this process as soon as standard input ends.
///
/// What runs at the exit may wait for the device for ever, or for the lock of the C library's loader, which whoever loads
/// a driver holds. The start of a thread, and what a thread does for the first time, take that lock as well: so both
/// threads have begun when this returns.
fn end_with_input() {
    const PATIENCE: Duration = Duration::from_secs(2);
    let (exiting, is_exiting) = channel::<()>();
    let begun = spawn(move |begun| {
        let _ = is_exiting.recv_timeout(Duration::from_millis(1));
        begun();
        let _ = is_exiting.recv();
        std::thread::sleep(PATIENCE);
        std::process::abort();
    });
    if begun {
        when_closed(io::stdin(), move || {
            drop(exiting);
            std::process::exit(1);
        });
    }
}

/// Does something in a thread of its own as soon as `input` ends. The thread has begun when this returns.
fn when_closed(mut input: impl io::Read + Send + 'static, then: impl FnOnce() + Send + 'static) {
    // Without the thread, the process ends when its work does.
    spawn(move |begun| {
        begun();
        // A broken input has ended too.
        let _ = io::copy(&mut input, &mut io::sink());
        then();
    });
}

/// Starts a thread and waits until it says that it has begun. Whether there is one.
fn spawn(work: impl FnOnce(&dyn Fn()) + Send + 'static) -> bool {
    let (tell, told) = channel();
    let thread = std::thread::Builder::new().spawn(move || {
        work(&|| {
            let _ = tell.send(());
        });
    });
    thread.is_ok() && told.recv().is_ok()
}

/// Starts a recording and then CUDA, in the order in which a recorded program does.
fn try_out(recording: &Recording) -> Probe {
    let recorder = Recorder::start(&recording.config, &recording.spool).map_err(|error| chain(&error));
    let gpus =
        cupti::loader::gpus().map(|gpus| gpus.into_iter().map(|gpu| gpu.name).collect()).map_err(|error| chain(&error));
    let recording = recorder.and_then(|recorder| {
        recorder.stop().map_err(|error| chain(&error))?;
        let spool = File::open(&recording.spool).map_err(|error| chain(&error))?;
        let spool = Reader::new(spool).map_err(|error| chain(&error))?;
        let header = spool.header();
        Ok(Recorded { library: header.cupti_path.clone(), version: header.cupti_version, kinds: header.kinds.clone() })
    });
    Probe { gpus, recording }
}

/// Runs the workload, recorded or not.
fn perform(request: &Repeat) -> Result<Outcome, (FailureKind, String)> {
    let Some(recording) = &request.recording else {
        return workloads::run(&request.spec).map_err(|error| workload_failure(&error));
    };
    let recorder = Recorder::start(&recording.config, &recording.spool).map_err(|error| recorder_failure(&error))?;
    let result = workloads::run(&request.spec);
    if let Ok(outcome) = &result {
        recorder.note(WORKLOAD_NOTE, &note(&request.spec, outcome));
    }
    let stopped = recorder.stop().map_err(|error| recorder_failure(&error));
    let outcome = result.map_err(|error| workload_failure(&error))?;
    stopped.map(|_| outcome)
}

/// What the spool says about the run, so that a recording explains itself.
fn note(spec: &RunSpec, outcome: &Outcome) -> String {
    let (start, end) = outcome.measured_realtime_ns;
    let run = WorkloadRun {
        workload: spec.workload().to_owned(),
        variant: spec.variant().to_owned(),
        options: spec.options().iter().map(|(&name, value)| (name.to_owned(), value.to_string())).collect(),
        iterations: outcome.iterations,
        warmup: outcome.warmup,
        answer: outcome.answer.clone(),
        measured: Some(Interval::new(Ns(start), Ns(end))),
    };
    serde_json::to_string(&run).unwrap_or_default()
}

fn workload_failure(error: &WorkloadError) -> (FailureKind, String) {
    let kind = match error {
        WorkloadError::NoGpu(_) => FailureKind::NoGpu,
        WorkloadError::Unsupported { .. } => FailureKind::Unsupported,
        _ => FailureKind::Failed,
    };
    (kind, chain(error))
}

fn recorder_failure(error: &RecorderError) -> (FailureKind, String) {
    let unavailable = matches!(error, RecorderError::Driver(_) | RecorderError::Loader(_) | RecorderError::Busy { .. });
    (if unavailable { FailureKind::NoGpu } else { FailureKind::Failed }, chain(error))
}

/// An error and its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Reply {
        Reply::Failed { kind: FailureKind::Failed, message: "two\nlines".to_owned() }
    }

    #[test]
    fn a_reply_is_found_among_what_libraries_print() {
        let mut said = Vec::new();
        say(&reply(), &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        let noise = "x".repeat(3 << 20);
        for before in ["", "a line\n", "half a line", "bubblescope-reply: {\n", &noise, &format!("{noise}\n")] {
            for after in ["", "goodbye", "more\nand more\n", &noise] {
                let heard = listen(format!("{before}{said}{after}").as_bytes()).unwrap();
                let Some(Reply::Failed { message, .. }) = heard.reply else {
                    panic!("no reply between {} and {} bytes", before.len(), after.len())
                };
                assert_eq!(message, "two\nlines");
                assert!(heard.said.len() < 400);
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_told_in_short() {
        for (output, said) in [
            ("", ""),
            ("\n\n", ""),
            ("fatal: a\nfatal: b\n\n", ": fatal: b"),
            ("bubblescope-reply: 7\n", ": bubblescope-reply: 7"),
        ] {
            let heard = listen(output.as_bytes()).unwrap();
            assert!(heard.reply.is_none());
            assert_eq!(heard.said, said);
        }
        let middle =
            format!("{}bubblescope-reply: {}\n", "x".repeat(1 << 20), serde_json::to_string(&reply()).unwrap());
        assert!(listen(middle.as_bytes()).unwrap().reply.is_none(), "a line that goes on starts no reply");
    }

    #[test]
    fn the_end_of_input_is_noticed_and_not_before() {
        let (input, mut output) = io::pipe().unwrap();
        let (tell, told) = channel();
        when_closed(input, move || tell.send(()).unwrap());
        output.write_all(b"still here").unwrap();
        assert!(told.recv_timeout(Duration::from_millis(50)).is_err());
        drop(output);
        told.recv_timeout(Duration::from_secs(120)).unwrap();
    }
}
