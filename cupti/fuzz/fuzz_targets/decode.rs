//! No byte string makes the decoder panic, loop or read outside of it, whatever the version and the learned sizes.
#![no_main]

use cupti::decode::{SizeTable, records, strings};
use libfuzzer_sys::fuzz_target;

const VERSIONS: [u32; 16] =
    [18, 20, 21, 22, 23, 24, 26, 27, 28, 130_000, 130_001, 130_101, 130_202, 130_301, 130_401, 130_500];

fuzz_target!(|input: (u8, Vec<(u16, u16)>, Vec<u8>)| {
    let (version, learned, buffer) = input;
    let mut table = SizeTable::for_version(VERSIONS[usize::from(version) % VERSIONS.len()]);
    for (kind, size) in learned {
        table.set(u32::from(kind), u32::from(size));
    }
    let mut records = records(&table, &buffer);
    let decoded = records.by_ref().count() as u64;
    let summary = records.summary();
    assert_eq!(summary.records, decoded);
    let read = summary.fault.map_or(buffer.len() as u64, |fault| fault.offset);
    assert_eq!(read + summary.unread_bytes, buffer.len() as u64);
    let stepped = decoded + summary.skipped.values().sum::<u64>();
    assert!(stepped <= read / 8);
    // The whole input as one record, of every kind.
    for kind in 0..=64 {
        assert!(strings(kind, &buffer).count() <= 2);
    }
});
