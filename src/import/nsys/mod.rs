//! SQLite exports of Nsight Systems, schema 2.9 (2022) to 3.25 (2026).
//!
//! Tables are found by name and columns by name, so that what a version lacks is absent and nothing else changes. What
//! NVIDIA says about them stands in the exporter's documentation
//! (<https://docs.nvidia.com/nsight-systems/UserGuide/index.html#sqlite-schema-reference>). The environment, the captured
//! output and the paths that an export keeps are never read.

mod convert;
mod database;
mod enums;
mod lanes;
mod strings;

use std::path::Path;

use crate::import::ImportError;
use crate::progress::{Unwatched, Watch};
use crate::trace::Trace;
use database::Database;

/// The first bytes of every SQLite database.
pub const MAGIC: &[u8] = b"SQLite format 3\0";

/// Makes a trace of the export in `path`, a regular file.
///
/// # Errors
/// When it is no export of Nsight Systems, is damaged, or cannot be read.
pub fn import(path: &Path) -> Result<Trace, ImportError> {
    import_watched(path, &Unwatched)
}

/// The same while somebody waits for it.
///
/// # Errors
/// As [`import`], and when it is cancelled.
pub fn import_watched(path: &Path, watch: &dyn Watch) -> Result<Trace, ImportError> {
    let found = path.metadata().map_err(|source| ImportError::Read { at: 0, source })?;
    if !found.is_file() {
        let what = "it is a SQLite database and no regular file, which SQLite needs: save it as one first";
        return Err(ImportError::NotARecording(what.to_owned()));
    }
    let mut database = Database::open(path, found.len(), watch)?;
    database.expect(convert::tables());
    convert::convert(&database, watch)
}
