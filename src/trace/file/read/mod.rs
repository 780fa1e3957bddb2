//! Reading a trace file: column by column on all cores, believing nothing.

mod columns;
pub(super) mod guard;
mod lanes;
mod metadata;
mod rows;
mod source;
mod tasks;

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::TraceFileError;
use super::schema::{Checksum, TableRows, key};
use crate::progress::{Unwatched, Watch, check, read_file};
use crate::trace::{Trace, link};
use guard::guarded;
use metadata::{Metadata, read_tables};
use rows::read_rows;
use source::Source;

/// Reads a trace file from a path.
///
/// # Errors
/// When the file cannot be read or is no trace file; see [`read`].
pub fn read_path(path: &Path) -> Result<Trace, TraceFileError> {
    read_path_watched(path, &Unwatched)
}

/// The same while somebody waits for it.
///
/// # Errors
/// As [`read_path`], and when it is cancelled.
pub fn read_path_watched(path: &Path, watch: &dyn Watch) -> Result<Trace, TraceFileError> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    // Then the columns are decoded, which counts as much.
    read_watched(read_file(file, bytes, bytes.saturating_mul(2), watch)?, watch)
}

/// Reads a trace file that is in memory.
///
/// Everything is checked, so that the trace keeps what [`Trace`] promises whatever the file holds.
///
/// # Errors
/// When the bytes are no trace file, one of a newer version, or a damaged one.
pub fn read(file: impl Into<Bytes>) -> Result<Trace, TraceFileError> {
    read_watched(file, &Unwatched)
}

/// The same while somebody waits for it.
///
/// # Errors
/// As [`read`], and when it is cancelled.
pub fn read_watched(file: impl Into<Bytes>, watch: &dyn Watch) -> Result<Trace, TraceFileError> {
    let file = file.into();
    guarded(|| read_checked(file, true, watch))
}

/// Reads a trace file, and compares its checksum if asked to.
pub(super) fn read_checked(file: Bytes, compare_checksum: bool, watch: &dyn Watch) -> Result<Trace, TraceFileError> {
    let reader = SerializedFileReader::new(file.clone())?;
    let metadata = Metadata::of(reader.metadata())?;
    if compare_checksum {
        let Checksum { bytes, crc32 } = metadata.json(key::CHECKSUM)?;
        let data = usize::try_from(bytes).ok().and_then(|bytes| file.get(..bytes));
        ensure(data.map(crc32fast::hash) == Some(crc32), "its checksum differs")?;
    }
    let mut trace = read_tables(&metadata)?;
    let rows: TableRows = metadata.json(key::TABLES)?;
    let source = Source::of(&reader, rows, &file, &trace.names, watch)?;
    read_rows(&source, &mut trace)?;
    check(watch)?;
    link::link(&mut trace);
    Ok(trace)
}

fn damaged<T>(what: impl Into<String>) -> Result<T, TraceFileError> {
    Err(TraceFileError::Damaged(what.into()))
}

fn ensure(holds: bool, what: &str) -> Result<(), TraceFileError> {
    if holds { Ok(()) } else { damaged(what) }
}
