//! No database makes the importer of Nsight Systems' exports panic, loop or take more memory than it has bytes for.
#![no_main]

use std::io::Write as _;

use bubblescope::analysis::{Options, analyze};
use bubblescope::import::nsys;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(nsys::MAGIC).and_then(|()| file.write_all(bytes)).expect("it can be written");
    if let Ok(trace) = nsys::import(file.path()) {
        let records = trace.event_count() as u64;
        assert!(records <= (bytes.len() + nsys::MAGIC.len()) as u64);
        analyze(&trace, &Options::default());
    }
});
