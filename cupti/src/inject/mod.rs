//! What the program that launches a target and the recorder library inside the target say to each other.
//!
//! The launcher sets [`environment`] for the target. Every process that starts CUDA then loads the library, which reads
//! its [`Request`] from [`REQUEST_VARIABLE`] and leaves files in the request's folder: a spool, and, if it could not
//! record or had a fault while recording, a [`Fault`]. Both are named after the process, see [`Place`]. Children inherit
//! the environment and do the same for themselves.

mod place;

pub use place::{Left, Place, faults, spools};

use crate::Config;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The environment variable that holds the [`Request`] as JSON.
pub const REQUEST_VARIABLE: &str = "BUBBLESCOPE_INJECT";

/// Names the library that libcuda loads when a process starts CUDA (CUPTI documentation, "injection").
pub const CUDA_VARIABLE: &str = "CUDA_INJECTION64_PATH";

/// Names the library that NVTX loads at a library's first NVTX call (`nvtxInit.h`).
pub const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// What the recorder library is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// Where each process puts its files. It has to be there, and should be an absolute path: a process may change its
    /// working directory before it starts CUDA.
    pub folder: PathBuf,
    /// What to record.
    pub config: Config,
    /// When to record.
    pub window: Window,
    /// `cuDriverGetVersion` as the launcher sees it ([`crate::loader::Driver::probe`]), for a process that cannot ask at
    /// that moment; 0 when it is not known.
    pub driver_version: u32,
}

/// When a process is recorded. The default is from its start of CUDA to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// Time from the start of CUDA in the process before recording may begin.
    pub delay: Option<Duration>,
    /// Time from the beginning of recording to its end.
    pub duration: Option<Duration>,
    /// Recording begins and ends with a range the program marks: the first one that begins after `delay`.
    pub range: Option<CaptureRange>,
}

impl Window {
    /// Whether the process may use CUDA before recording begins.
    pub fn begins_late(&self) -> bool {
        self.delay.is_some() || self.range.is_some()
    }

    /// Whether the whole process is recorded.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// A range of the program that is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureRange {
    /// From `cudaProfilerStart` to `cudaProfilerStop` (or `cuProfilerStart`, `cuProfilerStop`).
    CudaProfilerApi,
    /// From the beginning to the end of an NVTX range, in any domain and thread.
    Nvtx {
        /// The range's text.
        name: String,
    },
}

/// Why a process could not be recorded, or only in part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    /// The process.
    pub pid: u32,
    /// Its executable.
    pub exe: String,
    /// Its arguments, the first being the name it was called by.
    pub command_line: Vec<String>,
    /// What went wrong, in one line.
    pub message: String,
    /// What it did to the recording.
    pub effect: Effect,
    /// Buffers of records that could not be written to the spool.
    pub lost_buffers: u64,
    /// Records in them.
    pub lost_records: u64,
    /// From when to when (`CLOCK_REALTIME`, nanoseconds) the process used CUDA at most without being recorded, for one
    /// that was not recorded at all and has ended.
    pub lived: Option<(i64, i64)>,
}

/// What a fault did to the recording of its process, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Something is missing in it.
    #[default]
    Incomplete,
    /// It ends before its time: what the process did later is not in the spool.
    EndsEarly,
    /// There is none.
    NotRecorded,
}

impl Fault {
    /// A fault of this process.
    pub fn of_this_process(message: String, effect: Effect) -> Self {
        let (exe, command_line) = crate::collector::this_process();
        Self { pid: std::process::id(), exe, command_line, message, effect, ..Self::default() }
    }

    /// The command line of the process, or its executable, in a length to be shown.
    pub fn name(&self) -> String {
        short_name(&self.command_line, &self.exe)
    }

    /// What it means, in one sentence.
    pub fn sentence(&self) -> String {
        let name = self.name();
        let name = if name.is_empty() { name } else { format!(" ({name})") };
        let Self { pid, message, effect, .. } = self;
        match effect {
            Effect::NotRecorded => format!("process {pid}{name} was not recorded: {message}"),
            Effect::Incomplete | Effect::EndsEarly => {
                format!("the recording of process {pid}{name} is not complete: {message}")
            }
        }
    }

    /// Everything that may hold a path.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        self.command_line.iter_mut().chain([&mut self.exe, &mut self.message])
    }
}

/// The name of a process by its arguments, or by its executable, in a length to be shown.
pub fn short_name(command_line: &[String], exe: &str) -> String {
    const LONGEST: usize = 80;
    let name = if command_line.is_empty() { exe.to_owned() } else { command_line.join(" ") };
    match name.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name,
    }
}

/// The environment variables to set for a target that shall be recorded, `library` being the recorder library's path.
/// All others stay as they are.
///
/// # Errors
/// When a path in the request is not UTF-8.
pub fn environment(request: &Request, library: &Path) -> Result<Vec<(OsString, OsString)>, serde_json::Error> {
    let mut variables: Vec<(OsString, OsString)> =
        vec![(REQUEST_VARIABLE.into(), serde_json::to_string(request)?.into()), (CUDA_VARIABLE.into(), library.into())];
    // NVTX reads it at a library's first NVTX call, which may come before the start of CUDA.
    if request.config.nvtx || matches!(request.window.range, Some(CaptureRange::Nvtx { .. })) {
        variables.push((NVTX_VARIABLE.into(), library.into()));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_as_it_was() {
        let request = Request {
            folder: "/tmp/a folder".into(),
            config: Config { nvtx: true, cupti: Some("/x/libcupti.so.13".into()), ..Config::default() },
            window: Window {
                delay: Some(Duration::from_millis(1500)),
                duration: Some(Duration::from_nanos(7)),
                range: Some(CaptureRange::Nvtx { name: "step \"3\"".to_owned() }),
            },
            driver_version: 13_000,
        };
        let json = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&json).unwrap(), request);
        let shortest: Request = serde_json::from_str(r#"{"folder":"/x"}"#).unwrap();
        assert_eq!(shortest, Request { folder: "/x".into(), ..Request::default() });
        assert!(shortest.window.is_everything());
    }

    #[test]
    fn nvtx_is_taken_over_only_when_it_is_wanted() {
        let names = |request: &Request| -> Vec<OsString> {
            environment(request, Path::new("/lib.so")).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        let mut request = Request::default();
        assert_eq!(names(&request), [REQUEST_VARIABLE, CUDA_VARIABLE]);
        request.window.range = Some(CaptureRange::CudaProfilerApi);
        assert_eq!(names(&request).len(), 2);
        request.window.range = Some(CaptureRange::Nvtx { name: "step".to_owned() });
        assert_eq!(names(&request), [REQUEST_VARIABLE, CUDA_VARIABLE, NVTX_VARIABLE]);
        request.window.range = None;
        request.config.nvtx = true;
        assert_eq!(names(&request).len(), 3);
    }
}
