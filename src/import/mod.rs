//! Makes traces of what other tools recorded.
//!
//! Each importer feeds a [`TraceBuilder`](crate::trace::TraceBuilder) and follows the same rules:
//!
//! * A file that is not what its importer reads is refused with an [`ImportError`] that says in one line what it is.
//! * What is missing or damaged inside a file that is read all the same is counted in [`Notes`], which become
//!   [`Meta::warnings`](crate::trace::Meta::warnings): each kind of thing once, with how often it was met and the
//!   first place. What makes idle time unreliable is counted in [`Losses`](crate::trace::Losses) as well.
//! * Memory follows what is kept, not the length of the file, and no content makes an importer panic.
//!
//! Importers know nothing of paths: who opens a file names it in the error.

pub mod kineto;
mod notes;
pub mod nsys;

use std::io;

use thiserror::Error;

use crate::progress::Cancelled;
use crate::trace::BuildError;

pub use notes::Notes;

/// Why the recording of another tool cannot be made a trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Reading failed.
    #[error("reading stopped after {at} bytes")]
    Read {
        /// So many bytes had been read.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// It is no recording, or none that is known here. Says what it is and what to do about it.
    #[error("{0}")]
    NotARecording(String),
    /// It is a recording, and so damaged that nothing of it can be read.
    #[error("nothing can be read of it: {0}")]
    Damaged(String),
    /// It has more than a trace can hold.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It was no longer wanted.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}
