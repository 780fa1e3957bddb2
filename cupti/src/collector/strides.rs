//! How long the records of the loaded library are.

use crate::decode::SizeTable;
use crate::spool::RecordSize;
use cupti_sys::Api;
use rustc_hash::FxHashSet;

/// Record sizes by kind. The first record of each kind that is met is measured with the library itself, whatever the
/// table says: the library's answer is what was written.
#[derive(Debug)]
pub(super) struct Strides {
    table: SizeTable,
    measured: FxHashSet<u32>,
    news: Vec<RecordSize>,
}

impl Strides {
    pub(super) fn new(table: SizeTable) -> Self {
        Self { table, measured: FxHashSet::default(), news: Vec::new() }
    }

    /// The sizes so far.
    pub(super) fn table(&self) -> &SizeTable {
        &self.table
    }

    /// Sizes that the table did not have or had wrong, since the last call.
    pub(super) fn take_news(&mut self) -> Vec<RecordSize> {
        std::mem::take(&mut self.news)
    }

    /// Kind and length of the record at `offset`, or `None` when there is no further record that can be read.
    pub(super) fn step(&mut self, api: &Api, buffer: &[u8], offset: usize) -> Option<(u32, usize)> {
        let kind = u32::from_le_bytes(*buffer.get(offset..)?.first_chunk()?);
        if kind == 0 {
            return None;
        }
        if !self.measured.contains(&kind) {
            self.measure(api, buffer, offset, kind);
        }
        let bytes = self.table.get(kind)?;
        (offset + bytes <= buffer.len()).then_some((kind, bytes))
    }

    /// The last record of a buffer cannot be measured, and has the table's size until another one has been.
    fn measure(&mut self, api: &Api, buffer: &[u8], offset: usize, kind: u32) {
        let Some(bytes) = distance(api, buffer, offset) else { return };
        let known = self.table.get(kind);
        if self.table.set(kind, bytes) {
            self.measured.insert(kind);
            if known != Some(bytes as usize) {
                self.news.push(RecordSize { kind, bytes });
            }
        }
    }
}

/// The distance from the record at `offset` to the one after it, as the library sees it.
fn distance(api: &Api, buffer: &[u8], offset: usize) -> Option<u32> {
    let start = buffer.as_ptr().cast_mut();
    // SAFETY: `offset` lies within the buffer.
    let current = unsafe { start.add(offset) };
    let mut record = current.cast();
    // SAFETY: the buffer holds whole records of this library up to its length; the function only reads it.
    let result = unsafe { (api.activity_get_next_record)(start, buffer.len(), &raw mut record) };
    let stride = (record as usize).checked_sub(current as usize)?;
    (result == 0 && stride > 0).then(|| u32::try_from(stride).ok())?
}
