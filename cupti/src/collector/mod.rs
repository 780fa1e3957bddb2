//! The recorder: takes CUPTI's activity buffers and appends them to a spool while the program runs.

mod config;

pub use config::Config;

use crate::spool::Drops;
use std::path::Path;

/// A recording in progress. At most one in the life of a process.
#[derive(Debug)]
pub struct Recorder {
    _private: (),
}

/// What a recording came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Buffers in the spool.
    pub buffers: u64,
    /// Bytes of records in them.
    pub bytes: u64,
    /// Records in them; those behind an unreadable one are not counted.
    pub records: u64,
    /// What was lost.
    pub drops: Drops,
    /// Buffers that CUPTI has not given back.
    pub outstanding: u64,
    /// Why the spool ends early, if it could not be written to the end.
    pub write_error: Option<String>,
}

/// Why recording cannot start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// Not built yet.
    #[error("recording is not available")]
    Unavailable,
}

impl Recorder {
    /// Starts recording this process into a new spool at `spool`. Call it before the first use of CUDA in the process.
    ///
    /// # Errors
    /// When there is no NVIDIA driver or no CUPTI, when CUPTI refuses, or when the spool cannot be created.
    pub fn start(config: &Config, spool: &Path) -> Result<Self, RecorderError> {
        let _ = (config, spool);
        Err(RecorderError::Unavailable)
    }

    /// Adds a note to the spool: a key and a JSON text.
    pub fn note(&self, key: &str, json: &str) {
        let _ = (key, json);
    }

    /// Fetches all records, also of work that is still running, and ends the spool.
    ///
    /// # Errors
    /// When called in a forked child.
    pub fn stop(self) -> Result<Summary, RecorderError> {
        Err(RecorderError::Unavailable)
    }
}
