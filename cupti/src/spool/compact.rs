//! Making a spool small, for keeping.

use super::{Ending, Header, Reader, SpoolError, Writer};
use std::io::{self, Read, Write};

/// Copies a spool chunk by chunk, compressed with zstd: the same chunks in the same order, in the same format. A cut
/// spool gives the copy of its whole chunks. `edit` may change the header, for instance with [`Header::without_paths`].
///
/// # Errors
/// When the source is damaged (its good part has been copied then) or `out` cannot be written.
pub fn compact(
    source: impl Read,
    out: impl Write,
    edit: impl FnOnce(Header) -> Header,
) -> Result<Option<Ending>, SpoolError> {
    let mut reader = Reader::new(source)?;
    let header = edit(reader.header().clone());
    let at = |offset: u64| move |source: io::Error| SpoolError::Io { offset, source };
    let mut writer = Writer::new(out, &header).map_err(at(reader.offset()))?;
    while let Some(chunk) = reader.next() {
        writer.compressed(&chunk?).map_err(at(reader.offset()))?;
    }
    Ok(reader.ending())
}
