//! No byte string makes the spool reader panic, loop or take more memory than it has bytes for.
#![no_main]

use cupti::spool::Reader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let chunks = reader.by_ref().filter(Result::is_ok).count();
    // A chunk has a head of sixteen bytes.
    assert!(chunks <= bytes.len() / 16);
    assert!(reader.offset() <= bytes.len() as u64);
});
