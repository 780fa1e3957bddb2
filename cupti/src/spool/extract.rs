//! The few records of a spool that tell of its process and not of what it did.

use super::{Chunk, Reader, SpoolError, Writer};
use crate::decode::{SizeTable, record_ends};
use std::io::{self, Read};

/// Makes a spool in memory of one with records of some `kinds` (`CUpti_ActivityKind`) alone, without the texts and names
/// that others need. It needs memory for what it keeps, however long the source is; of a damaged one, what is good.
///
/// # Errors
/// When the source has no whole header.
pub fn extract(source: impl Read, kinds: &[u32]) -> Result<Vec<u8>, SpoolError> {
    let mut reader = Reader::new(source)?;
    let mut sizes: SizeTable = reader.header().size_table();
    let unwritten = |source: io::Error| SpoolError::Write { source };
    let mut writer = Writer::new(Vec::new(), reader.header()).map_err(unwritten)?;
    for chunk in reader.by_ref().map_while(Result::ok) {
        let kept = match chunk {
            Chunk::Strings { .. } | Chunk::CallbackNames(_) => continue,
            Chunk::Buffer { seq, bytes } => {
                let bytes = records_of(&sizes, &bytes, kinds);
                if bytes.is_empty() {
                    continue;
                }
                Chunk::Buffer { seq, bytes }
            }
            Chunk::Sizes(news) => {
                for size in &news {
                    sizes.set(size.kind, size.bytes);
                }
                Chunk::Sizes(news)
            }
            other => other,
        };
        writer.chunk(&kept).map_err(unwritten)?;
    }
    Ok(writer.into_inner())
}

/// The records of these kinds in a buffer.
fn records_of(sizes: &SizeTable, buffer: &[u8], kinds: &[u32]) -> Vec<u8> {
    let mut found = Vec::new();
    let mut start = 0;
    for end in record_ends(sizes, buffer) {
        let record = &buffer[start..end];
        if record.first_chunk().is_some_and(|kind| kinds.contains(&u32::from_le_bytes(*kind))) {
            found.extend_from_slice(record);
        }
        start = end;
    }
    found
}
