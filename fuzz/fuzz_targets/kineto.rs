//! No text makes the importer of PyTorch's traces panic, loop or keep more than it has bytes for.
#![no_main]

use bubblescope::analysis::{Options, analyze};
use bubblescope::import::kineto;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = kineto::read(bytes) {
        // The shortest event that is kept has a phase, a category, a start and a length.
        let shortest = r#"{"ph":"X","cat":"Kernel","ts":1,"dur":1}"#.len();
        // A synchronisation may name an event record as well. Compressed text is longer than its bytes.
        assert!(kineto::is_gzip(bytes) || trace.event_count() <= bytes.len() / shortest * 2);
        analyze(&trace, &Options::default());
    }
});
