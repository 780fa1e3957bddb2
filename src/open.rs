//! Opens any recording this crate can read, told by its content and not by its name.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::capture::convert::{self, ConvertError};
use crate::trace::Trace;
use crate::trace::file::{self, TraceFileError};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A trace file (`*.bubbles.parquet`).
    TraceFile,
    /// A spool (`*.bubcap`).
    Spool,
}

/// Why a recording cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is empty.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The content is no format that is known here.
    #[error("{} is neither a trace file (.bubbles.parquet) nor a spool (.bubcap){hint}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it looks like and what to do about it; empty or starting with a separator.
        hint: &'static str,
    },
    /// The spool cannot be made a trace.
    #[error("cannot use the spool {}", path.display())]
    Spool {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ConvertError,
    },
    /// The trace file cannot be read.
    #[error("cannot use the trace file {}", path.display())]
    TraceFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: TraceFileError,
    },
}

/// Tells what `head`, the first bytes of a file, belong to.
pub fn sniff(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        Some(Format::TraceFile)
    } else if head.starts_with(&cupti::spool::MAGIC) {
        Some(Format::Spool)
    } else {
        None
    }
}

/// What an unknown file looks like, as advice.
fn hint(head: &[u8]) -> &'static str {
    if head.starts_with(b"SQLite format 3")
        || head.starts_with(&[0x1f, 0x8b])
        || head.trim_ascii_start().starts_with(b"{")
    {
        "; this version reads what bubble-report recorded"
    } else {
        ""
    }
}

/// Opens a recording.
///
/// # Errors
/// When the file cannot be read, is of no known format, or is damaged beyond use.
pub fn open(path: &Path) -> Result<Trace, OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: path.to_owned(), source };
    let mut head = Vec::new();
    File::open(path).map_err(unreadable)?.take(64).read_to_end(&mut head).map_err(unreadable)?;
    if head.is_empty() {
        return Err(OpenError::Empty { path: path.to_owned() });
    }
    match sniff(&head) {
        Some(Format::TraceFile) => {
            file::read_path(path).map_err(|source| OpenError::TraceFile { path: path.to_owned(), source })
        }
        Some(Format::Spool) => {
            convert::trace_from_spools(&[path]).map_err(|source| OpenError::Spool { path: path.to_owned(), source })
        }
        None => Err(OpenError::Unknown { path: path.to_owned(), hint: hint(&head) }),
    }
}
