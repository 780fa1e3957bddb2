//! How long the records of the loaded library are.

use crate::spool::RecordSize;
use cupti_sys::Api;
use rustc_hash::FxHashMap;

/// Record sizes by kind. The first record of each kind that is met is measured with the library itself, whatever a
/// table said: its answer is what was written.
#[derive(Debug, Default)]
pub(super) struct Strides {
    known: FxHashMap<u32, Stride>,
    news: Vec<RecordSize>,
}

#[derive(Clone, Copy, Debug)]
struct Stride {
    bytes: u32,
    measured: bool,
}

impl Strides {
    pub(super) fn new(table: &[RecordSize]) -> Self {
        let known = table.iter().map(|size| (size.kind, Stride { bytes: size.bytes, measured: false })).collect();
        Self { known, news: Vec::new() }
    }

    /// Sizes that the table did not have or had wrong, since the last call.
    pub(super) fn take_news(&mut self) -> Vec<RecordSize> {
        std::mem::take(&mut self.news)
    }

    /// Bytes from the record at `offset` to the next, or `None` when there is no further record that can be read.
    pub(super) fn step(&mut self, api: &Api, buffer: &[u8], offset: usize) -> Option<(u32, usize)> {
        let kind = buffer.get(offset..offset + 4)?;
        let kind = u32::from_le_bytes(kind.try_into().ok()?);
        let stride = match self.known.get(&kind) {
            Some(stride) if stride.measured => stride.bytes,
            known => {
                let known = known.map(|stride| stride.bytes);
                match measure(api, buffer, offset) {
                    Some(bytes) => {
                        self.known.insert(kind, Stride { bytes, measured: true });
                        if known != Some(bytes) {
                            self.news.push(RecordSize { kind, bytes });
                        }
                        bytes
                    }
                    // The last record of a buffer cannot be measured.
                    None => known?,
                }
            }
        };
        let stride = stride as usize;
        (kind != 0 && stride >= 8 && offset + stride <= buffer.len()).then_some((kind, stride))
    }
}

/// The distance from the record at `offset` to the one after it, as the library sees it.
fn measure(api: &Api, buffer: &[u8], offset: usize) -> Option<u32> {
    let start = buffer.as_ptr().cast_mut();
    // SAFETY: `offset` lies within the buffer.
    let current = unsafe { start.add(offset) };
    let mut record = current.cast();
    // SAFETY: the buffer holds whole records of this library up to its length; the function only reads it.
    let result = unsafe { (api.activity_get_next_record)(start, buffer.len(), &raw mut record) };
    let stride = (record as usize).checked_sub(current as usize)?;
    (result == 0 && stride > 0).then(|| u32::try_from(stride).ok())?
}
