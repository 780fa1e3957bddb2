//! Making a spool small, for keeping.

use super::{Chunk, Ending, Reader, SpoolError, Writer, file_name};
use std::io::{self, Read, Write};

/// What becomes of the absolute paths in a spool: of the program, of libcupti, of the compiler's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// They stay.
    Keep,
    /// Only their last part stays, as for a spool that is given away.
    Leave,
}

/// Copies a spool chunk by chunk, compressed with zstd: the same chunks in the same order, in the same format, but long
/// buffers in more pieces. A cut spool gives the copy of its whole chunks.
///
/// # Errors
/// When the source is damaged (its good part has been copied then) or `out` cannot be written.
pub fn compact(source: impl Read, out: impl Write, paths: Paths) -> Result<Option<Ending>, SpoolError> {
    let mut reader = Reader::new(source)?;
    let mut header = reader.header().clone();
    if paths == Paths::Leave {
        header = header.without_paths();
    }
    let unwritten = |source: io::Error| SpoolError::Write { source };
    let mut writer = Writer::new(out, &header).map_err(unwritten)?;
    for chunk in reader.by_ref() {
        let mut chunk = chunk?;
        match (paths, &mut chunk) {
            (Paths::Leave, Chunk::Strings { texts, .. }) => {
                for text in texts {
                    if let Some(name) = file_name(&text.text) {
                        text.text = name.into();
                    }
                }
            }
            (Paths::Leave, Chunk::Beside(beside)) => beside.leave_paths(),
            _ => {}
        }
        writer.compressed(&chunk).map_err(unwritten)?;
    }
    Ok(reader.ending())
}
