//! Compares the size table and the walk with CUPTI's own `cuptiActivityGetNextRecord`, for the library that
//! `BUBBLESCOPE_LIBCUPTI` names. Up to 13.1 that works without a driver and a GPU; 13.2 crashes at the first call, so it
//! must not be named, and newer ones refuse, which skips the comparison. The Python wheels `nvidia-cuda-cupti` and
//! `nvidia-cuda-cupti-cu12` hold such libraries.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "calls the C library that it compares with")]
#![expect(clippy::unwrap_used, reason = "a test that fails on what it does not find")]

use std::mem::ManuallyDrop;

use cupti::decode::{SizeTable, records};
use cupti_sys::bindings as c;
use libloading::Library;

/// The newest version whose `cuptiActivityGetNextRecord` works without a driver.
const NEWEST: u32 = 130_199;

struct Cupti {
    version: u32,
    /// Never unloaded: CUPTI does not survive that.
    library: ManuallyDrop<Library>,
}

impl Cupti {
    /// The named library, unless it refuses to work without a driver. Loaded once: a process holds one CUPTI.
    fn named() -> Option<Self> {
        let Some(path) = std::env::var_os("BUBBLESCOPE_LIBCUPTI") else {
            println!("skipped: BUBBLESCOPE_LIBCUPTI is not set");
            return None;
        };
        // SAFETY: loading libcupti runs its initialisers, which need nothing.
        let library = ManuallyDrop::new(unsafe { Library::new(path) }.unwrap());
        let mut version = 0;
        // SAFETY: this is the function's type (cupti_version.h), and `version` can be written.
        let result = unsafe {
            let get = library.get::<unsafe extern "C" fn(*mut u32) -> c::CUptiResult>(b"cuptiGetVersion\0").unwrap();
            get(&raw mut version)
        };
        let works = result == c::CUPTI_SUCCESS && version <= NEWEST;
        if !works {
            println!("skipped: CUPTI {version} does not work without a driver");
        }
        works.then_some(Self { version, library })
    }

    /// The offsets of the records in `buffer`, which is aligned like CUPTI's own.
    fn offsets(&self, buffer: &mut [u64]) -> Vec<usize> {
        type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut c::CUpti_Activity) -> c::CUptiResult;
        let start = buffer.as_mut_ptr().cast::<u8>();
        let bytes = size_of_val(buffer);
        let mut record = std::ptr::null_mut();
        let mut offsets = Vec::new();
        // SAFETY: this is the function's type (cupti_activity.h); it reads kinds inside the buffer, and `record` is
        // null or what it returned before.
        unsafe {
            let next = self.library.get::<Next>(b"cuptiActivityGetNextRecord\0").unwrap();
            while next(start, bytes, &raw mut record) == c::CUPTI_SUCCESS {
                offsets.push(record.addr() - start.addr());
            }
        }
        offsets
    }
}

#[test]
fn the_library_steps_as_the_decoder_does() {
    let Some(cupti) = Cupti::named() else { return };
    let table = SizeTable::for_version(cupti.version);
    assert!(table.is_exact(), "CUPTI {} is new", cupti.version);
    for (kind, size) in table.iter() {
        let words = size as usize / 8;
        let mut buffer = vec![0; 3 * words];
        for record in buffer.chunks_exact_mut(words) {
            record[0] = u64::from(kind);
        }
        let expected = [0, size as usize, 2 * size as usize];
        assert_eq!(cupti.offsets(&mut buffer), expected, "CUPTI {}, kind {kind}", cupti.version);
    }

    if cupti.version == 130_001 {
        let bytes = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/h200_cupti130001_raw.bin")).unwrap();
        let mut buffer: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let found = cupti.offsets(&mut buffer);
        assert_eq!(found.len(), records(&table, &bytes).count());
        let mut at = 0;
        for offset in found {
            assert_eq!(offset, at);
            let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            at += table.get(kind).unwrap();
        }
        assert_eq!(at, bytes.len());
    }
}
