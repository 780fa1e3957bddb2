//! How much is in a spool, told by the heads of its chunks alone.

use super::frame::{Encoding, HEAD, Head, MAX_PAYLOAD, PREAMBLE, Tag};
use super::reader::parse;
use super::{Anchor, Chunk};
use std::io::{self, BufReader, ErrorKind, Read, Seek};

/// No encoding makes so many bytes of one.
const MOST_GROWTH: u32 = 256;

/// How much is in a spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Bytes of activity records, with the few that stand before them in each chunk.
    pub record_bytes: u64,
    /// The last reading of the clocks.
    pub last_anchor: Option<Anchor>,
}

/// Looks through a spool without reading its records. What is damaged or cut ends the look, as nothing behind it can be
/// read either.
///
/// # Errors
/// When `source` fails.
pub fn outline(source: impl Read + Seek) -> io::Result<Outline> {
    let mut source = BufReader::with_capacity(4 << 10, source);
    let mut outline = Outline::default();
    if read(&mut source, &mut [0; PREAMBLE])?.is_none() {
        return Ok(outline);
    }
    let mut head = [0; HEAD];
    while read(&mut source, &mut head)?.is_some() {
        let head = Head::from_bytes(&head);
        if head.stored > MAX_PAYLOAD || head.plain > MAX_PAYLOAD {
            break;
        }
        let is_plain = Encoding::from_u8(head.encoding) == Some(Encoding::Plain);
        match Tag::from_u8(head.tag) {
            Some(tag @ Tag::Anchor) if is_plain && head.stored <= tag.longest() => {
                let mut payload = vec![0; head.stored as usize];
                if read(&mut source, &mut payload)?.is_none() {
                    break;
                }
                if let Ok(Some(Chunk::Anchor(anchor))) = parse(tag, payload) {
                    outline.last_anchor = Some(anchor);
                }
                continue;
            }
            Some(Tag::Buffer) => {
                outline.record_bytes += u64::from(head.plain.min(head.stored.saturating_mul(MOST_GROWTH)));
            }
            _ => {}
        }
        source.seek_relative(i64::from(head.stored))?;
    }
    Ok(outline)
}

/// Fills `buffer`; `None` at the end of the source.
fn read(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<()>> {
    match source.read_exact(buffer) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
