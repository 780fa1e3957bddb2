//! The few functions of libcuda that are called without CUPTI.

use std::ffi::{c_char, c_int};

fn result() -> c_int {
    std::env::var("MOCK_CUDA").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    let result = result();
    if result == 0 {
        // SAFETY: the caller gives a place for the result.
        unsafe { *version = 13_000 };
    }
    result
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuInit(_: u32) -> c_int {
    result()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    // SAFETY: the caller gives a place for the result.
    unsafe { *count = 2 };
    0
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> c_int {
    let text = if device == 0 { c"Mock GPU A" } else { c"Mock GPU B" };
    let text = text.to_bytes_with_nul();
    assert!(usize::try_from(len).is_ok_and(|len| len >= text.len()));
    // SAFETY: the caller says that there is room.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len()) };
    0
}
