//! The recorder library that is loaded into other people's programs.
//!
//! libcuda loads the library that `CUDA_INJECTION64_PATH` names while it starts, and calls `InitializeInjection`. Each
//! library that uses NVTX loads the one that `NVTX_INJECTION64_PATH` names at its first NVTX call. What to do stands in
//! the environment, see [`cupti::inject`].
//!
//! The program comes first: nothing is printed, no panic crosses the border, no CUDA function is called, and whatever
//! goes wrong is written into a file while the program runs on.

#![expect(unsafe_code, reason = "is called by C libraries")]

#[cfg(panic = "abort")]
compile_error!("a panic of the recorder must not end the program that it records: build with panic = \"unwind\"");

mod range;
mod session;

use session::Session;
use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;

/// So that a recording can say what the recorder itself takes of the program's memory.
#[global_allocator]
static ALLOCATOR: cupti::heap::Counting = cupti::heap::Counting;

/// What libcuda calls once, within `cuInit`: 1 means that it went well. The program goes on either way.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    guarded(|session| {
        session.cuda_starts();
        true
    })
}

/// What NVTX 3 calls at a library's first NVTX call; hands NVTX over to the CUPTI in use. 0 switches NVTX off for that
/// library.
///
/// # Safety
/// Called by NVTX with its function that gives tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_export_table: *mut c_void) -> c_int {
    // SAFETY: the argument is what CUPTI's function expects.
    guarded(|session| unsafe { session.nvtx_starts(|api| api.nvtx_initialize2, get_export_table) })
}

/// As [`InitializeInjectionNvtx2`], for NVTX 2.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx(get_export_table: *mut c_void) -> c_int {
    // SAFETY: the argument is what CUPTI's function expects.
    guarded(|session| unsafe { session.nvtx_starts(|api| api.nvtx_initialize, get_export_table) })
}

fn guarded(work: impl FnOnce(&'static Session) -> bool + std::panic::UnwindSafe) -> c_int {
    let done = catch_unwind(|| {
        let Some(session) = Session::of_this_process() else { return false };
        session::without_signals(|| work(session))
    });
    c_int::from(done.unwrap_or(false))
}
