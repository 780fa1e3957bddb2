//! CUPTI recorder and decoder.

#[expect(unsafe_code, reason = "is called by a C library and owns its buffers")]
pub mod collector;
pub mod decode;
#[expect(unsafe_code, reason = "is an allocator")]
pub mod heap;
pub mod inject;
#[expect(unsafe_code, reason = "loads and calls C libraries")]
pub mod loader;
#[expect(unsafe_code, reason = "calls the C library")]
pub mod process;
pub mod spool;

pub use collector::{Config, Recorder, RecorderError, Summary};
pub use cupti_sys::{Api, LoadError, api::RawResult, bindings::CUPTI_SUCCESS};
