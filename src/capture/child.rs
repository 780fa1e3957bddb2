//! Work in a process of its own: the request, the reply, and both ends of the pipe.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// Asks a child process one thing.
fn ask(program: &Path, request: &Request) -> Result<Reply, RepetitionError> {
    let mut child = Command::new(program)
        .arg("child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let text = serde_json::to_vec(request).map_err(io::Error::other)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that died already says more through its exit status than this broken pipe would.
        let _ = stdin.write_all(&text);
    }
    let output = child.wait_with_output()?;
    match serde_json::from_slice(&output.stdout) {
        Ok(reply) => Ok(reply),
        Err(_) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let said = said.lines().last().map_or(String::new(), |line| format!(": {line}"));
            Err(RepetitionError::Silent { status: output.status.to_string(), said })
        }
    }
}

/// The child's side: reads a request, runs it, writes the reply.
///
/// # Errors
/// When standard input holds no request or standard output is closed.
pub fn serve() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    let request: Request = serde_json::from_slice(&text).map_err(io::Error::other)?;
    let reply = match &request {
        Request::Repeat(repeat) => match perform(repeat) {
            Ok(outcome) => Reply::Done(outcome),
            Err((kind, message)) => Reply::Failed { kind, message },
        },
        Request::Probe(recording) => Reply::Probed(try_out(recording)),
    };
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, &reply)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
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
