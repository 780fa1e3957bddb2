//! The trace file: one Parquet file, `*.bubbles.parquet`.
//!
//! # The table
//! One row is one event. Rows come table by table (ops, calls, syncs, event records, host functions, ranges, overheads),
//! and within a table in the order of [`Trace`](super::Trace): lane by lane, each sorted by start. A row group never holds rows of
//! two tables. A column that has no meaning for a row is null.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `kind` | string | `kernel`, `copy`, `memset`, `graph`; `call`; `sync`; `event`; `host-function`; `range`; `overhead` |
//! | `start_ns` | int64 | start, in nanoseconds after the trace's start; of an `event`, when the device reached it |
//! | `dur_ns` | int64 | length in nanoseconds; null for an `event` |
//! | `name` | string | of the kernel, copy, call or range |
//! | `category` | string | of a `sync`: `event`, `stream-wait-event`, `stream`, `context`; of a `range`: `nvtx`, `operator`, `annotation`; of an `overhead`: what made it |
//! | `device` | uint32 | device number |
//! | `pid` | uint32 | process |
//! | `context`, `stream` | uint32 | CUPTI's context and stream ids, unique within a process and a context |
//! | `tid` | uint64 | host thread |
//! | `correlation` | uint64 | joins an op to its call, within a process |
//! | `bytes` | uint64 | copied or set |
//! | `graph`, `node` | uint32, uint64 | executable graph and node |
//! | `detail` | uint32 | position in `bubblescope.details`: launch shape or copy kind |
//! | `result` | int32 | what the call returned; 0 is success |
//! | `event`, `event_sync` | uint32, uint64 | CUDA event, and the id that a record and its waits share |
//! | `awaited_correlation` | uint64 | the event record that a `sync` waits for, where the source names it |
//!
//! # The metadata
//! Key-value pairs of the file's footer, JSON unless said otherwise:
//!
//! | key | value |
//! |---|---|
//! | `bubblescope.schema` | plain text, `bubblescope.trace/1` |
//! | `bubblescope.meta` | [`Meta`](super::Meta); its `epoch_ns` is the Unix time of `start_ns` 0 |
//! | `bubblescope.end_ns` | the end of the trace |
//! | `bubblescope.tables` | number of rows of each table, in file order |
//! | `bubblescope.names` | every string of the trace |
//! | `bubblescope.processes`, `.devices`, `.contexts`, `.streams`, `.threads`, `.details` | the tables of [`Trace`](super::Trace) of these names |
//! | `bubblescope.checksum` | number of bytes before the footer and their CRC-32 |
//! | `bubblescope.padding` | spaces, only where the table is so regular that it would compress beyond what a reader accepts |

mod pages;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod write;

use std::io;

use parquet::errors::ParquetError;
use thiserror::Error;

use crate::progress::Cancelled;

pub use read::{read, read_path, read_path_watched, read_watched};
pub use write::{write, write_path};

/// What the name of a trace file ends in.
pub const EXTENSION: &str = ".bubbles.parquet";

/// Why a trace file cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceFileError {
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no Parquet file, or a damaged one.
    #[error("not a readable Parquet file")]
    Parquet(#[source] ParquetError),
    /// It is a Parquet file of something else.
    #[error("a Parquet file, but not a trace: {0}")]
    NotATrace(String),
    /// A newer version wrote it.
    #[error("the trace has the schema {found}, but this version reads up to bubblescope.trace/{supported}: update it")]
    NewerSchema {
        /// The schema of the file.
        found: String,
        /// The newest schema that can be read.
        supported: u32,
    },
    /// A metadata value is not what it must be.
    #[error("the trace's metadata {key} cannot be read")]
    Metadata {
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        source: serde_json::Error,
    },
    /// The parts of the file do not fit together.
    #[error("damaged trace: {0}")]
    Damaged(String),
    /// The trace in memory breaks a guarantee of [`Trace`](super::Trace), so that a file could not give it back.
    #[error("the trace cannot be written: {0}")]
    Inconsistent(String),
    /// It was no longer wanted.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// The file system's errors come wrapped, in layers that each tell the same cause again.
impl From<ParquetError> for TraceFileError {
    fn from(mut error: ParquetError) -> Self {
        loop {
            let ParquetError::External(inner) = error else { return Self::Parquet(error) };
            let io = match inner.downcast::<ParquetError>() {
                Ok(nested) => {
                    error = *nested;
                    continue;
                }
                Err(inner) => match inner.downcast::<io::Error>() {
                    Ok(io) => *io,
                    Err(inner) => return Self::Parquet(ParquetError::External(inner)),
                },
            };
            match io.downcast::<ParquetError>() {
                Ok(nested) => error = nested,
                Err(io) => return Self::Io(io),
            }
        }
    }
}
