//! No byte string makes the spool reader panic, loop or take more memory than it has bytes for; neither as it is nor when
//! its checksums are right, without which nothing behind them would be reached.
#![no_main]

use cupti::decode::records;
use cupti::spool::{Beside, Chunk, Reader, annotate};
use libfuzzer_sys::fuzz_target;

/// Bytes before the first chunk, and before a chunk's payload.
const PREAMBLE: usize = 12;
const HEAD: usize = 16;

/// The same spool with the checksum that each chunk should have.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let mut mended = bytes.to_vec();
    let mut rest = mended.get_mut(PREAMBLE..).unwrap_or_default();
    while let Some((head, behind)) = rest.split_first_chunk_mut::<HEAD>() {
        let stored = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let Some((payload, next)) = behind.split_at_mut_checked(stored as usize) else { break };
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head[..12]);
        sum.update(payload);
        head[12..].copy_from_slice(&sum.finalize().to_le_bytes());
        rest = next;
    }
    mended
}

fn read(bytes: &[u8]) {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let sizes = reader.header().size_table();
    let mut chunks = 0;
    for chunk in reader.by_ref().filter_map(Result::ok) {
        chunks += 1;
        if let Chunk::Buffer { bytes, .. } = chunk {
            records(&sizes, &bytes).for_each(drop);
        }
    }
    // A chunk has a head of sixteen bytes.
    assert!(chunks <= bytes.len() / HEAD);
    assert!(reader.offset() <= bytes.len() as u64);
    // What can be read can be read with a remark, and has it.
    let beside = Beside { remarks: vec!["a remark".to_owned()], ..Beside::default() };
    let mut annotated = Vec::new();
    annotate(bytes, &mut annotated, &beside).expect("it can be read");
    let mut reader = Reader::new(&annotated[..]).expect("it can still be read");
    assert!(matches!(reader.next(), Some(Ok(Chunk::Beside(found))) if *found == beside));
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&mended(bytes));
});
