//! Cutting buffers into pieces, so that a spool that is cut loses little.

use crate::decode::{SizeTable, record_ends};

/// About so many bytes are in a piece that a recorder writes: compression finds as much in it as in the whole.
pub(super) const RECORDED: usize = 1 << 20;
/// About so many in one that is kept. The recordings of the repository, of up to 1.5 MB each, are 0.1 % larger by it
/// together.
pub(super) const KEPT: usize = 384 << 10;

/// A buffer in pieces of whole records, each of `about` to twice as many bytes and a record. What follows a record whose
/// size is not known is in the last piece.
pub(super) fn pieces<'b>(table: &SizeTable, buffer: &'b [u8], about: usize) -> Vec<&'b [u8]> {
    let count = buffer.len() / about;
    if count < 2 {
        return vec![buffer];
    }
    let share = buffer.len() / count;
    let (mut pieces, mut from) = (Vec::with_capacity(count), 0);
    for end in record_ends(table, buffer) {
        if end - from >= share && end < buffer.len() {
            pieces.push(&buffer[from..end]);
            from = end;
        }
    }
    pieces.push(&buffer[from..]);
    pieces
}
