//! What the pages of a column claim to hold once they are decompressed, read before the decoder believes it.
//!
//! A page header is a `PageHeader` of `parquet.thrift` in Thrift's compact protocol.

use super::TraceFileError;

/// `PageHeader.type`.
const TYPE: i16 = 1;
/// `PageHeader.uncompressed_page_size`.
const PLAIN_SIZE: i16 = 2;
/// `PageHeader.compressed_page_size`.
const STORED_SIZE: i16 = 3;
/// `PageType.DICTIONARY_PAGE`.
const DICTIONARY_PAGE: u64 = 2;
/// Structs within structs that a header may have; the deepest there is has three.
const DEEPEST: u32 = 8;

/// The most bytes that a page of one column may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) dictionary: u64,
    pub(super) data: u64,
}

/// Checks every page of a column of one row group, which must fill `chunk`.
pub(super) fn check(chunk: &[u8], bounds: Bounds) -> Result<(), TraceFileError> {
    let mut rest = Fields(chunk);
    while !rest.0.is_empty() {
        let page = rest.page().ok_or_else(|| TraceFileError::Damaged("a page has no readable header".to_owned()))?;
        let most = if page.kind == DICTIONARY_PAGE { bounds.dictionary } else { bounds.data };
        if page.plain > most {
            let claim = format!("a page claims {} bytes where there can be {most} at the most", page.plain);
            return Err(TraceFileError::Damaged(claim));
        }
        let stored = usize::try_from(page.stored).ok();
        let stored = stored.and_then(|stored| rest.take(stored));
        stored.ok_or_else(|| TraceFileError::Damaged("a page ends beyond its column".to_owned()))?;
    }
    Ok(())
}

/// What is needed of a header.
struct Page {
    kind: u64,
    plain: u64,
    stored: u64,
}

/// Takes values off the front; `None` where they are not what they must be.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// The next field of a struct: its number and type. Type 0 ends the struct.
    fn field(&mut self, last: &mut i16) -> Option<(i16, u8)> {
        let head = self.byte()?;
        let (step, kind) = (head >> 4, head & 0xf);
        if kind != 0 {
            *last = match step {
                0 => i16::try_from(self.zigzag()?).ok()?,
                step => last.checked_add(step.into())?,
            };
        }
        Some((*last, kind))
    }

    fn page(&mut self) -> Option<Page> {
        let [mut page_type, mut plain, mut stored] = [None; 3];
        let mut last = 0;
        loop {
            let (number, kind) = self.field(&mut last)?;
            let place = match number {
                _ if kind == 0 => return Some(Page { kind: page_type?, plain: plain?, stored: stored? }),
                TYPE => &mut page_type,
                PLAIN_SIZE => &mut plain,
                STORED_SIZE => &mut stored,
                _ => {
                    self.skip(kind, DEEPEST)?;
                    continue;
                }
            };
            // Twice the same field could mean one thing here and another to the decoder.
            if kind != 5 || place.is_some() {
                return None;
            }
            *place = Some(u64::try_from(self.zigzag()?).ok()?);
        }
    }

    /// Passes over a value of one of the protocol's types, which is a field.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // The type of a truth value is its value.
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => drop(self.take(8)?),
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.take(length)?;
            }
            12 => {
                let mut last = 0;
                loop {
                    let (_, kind) = self.field(&mut last)?;
                    if kind == 0 {
                        break;
                    }
                    self.skip(kind, depth)?;
                }
            }
            // A page header has no lists and no maps.
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// A page with a header as parquet writes it.
    fn page(kind: u64, plain: u64, stored: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for value in [kind, plain, stored] {
            bytes.push(0x15);
            bytes.extend(varint(value << 1));
        }
        // A DataPageHeader (field 5) with two numbers, statistics with a text and a truth value, and the end of each.
        bytes.extend([0x2c, 0x15, 2, 0x15, 0, 0x3c, 0x18, 1, b'x', 0x11, 0, 0, 0]);
        bytes.resize(bytes.len() + stored as usize, 0xff);
        bytes
    }

    const BOUNDS: Bounds = Bounds { dictionary: 500, data: 1000 };

    proptest! {
        #[test]
        fn what_claims_too_much_is_refused(pages in prop::collection::vec((0..4u64, 0..1500u64, 0..50u64), 0..5)) {
            let chunk: Vec<u8> = pages.iter().flat_map(|&(kind, plain, stored)| page(kind, plain, stored)).collect();
            let holds = |&(kind, plain, _): &(u64, u64, u64)| plain <= if kind == 2 { 500 } else { 1000 };
            prop_assert_eq!(check(&chunk, BOUNDS).is_ok(), pages.iter().all(holds));
        }

        #[test]
        fn no_byte_string_is_a_matter_for_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = check(&bytes, BOUNDS);
            let _ = check(&[page(0, 10, 20), bytes].concat(), BOUNDS);
        }
    }

    #[test]
    fn headers_that_could_be_read_in_two_ways_are_refused() {
        let good = page(0, 10, 4);
        assert!(check(&good, BOUNDS).is_ok());
        for cut in 1..good.len() {
            assert!(check(&good[..cut], BOUNDS).is_err(), "{cut}");
        }
        let twice = [0x15, 0, 0x15, 20, 0x15, 0, 0x05, 4, 20, 0];
        assert!(check(&twice, BOUNDS).is_err(), "the size is told twice");
        let wider = [0x15, 0, 0x16, 20, 0x15, 0, 0];
        assert!(check(&wider, BOUNDS).is_err(), "the size is of another type");
        let deep = [&[0x15, 0, 0x15, 20, 0x15, 0][..], &[0x1c; 5000]].concat();
        assert!(check(&deep, BOUNDS).is_err(), "nothing nests like that");
    }
}
