//! CUPTI's C interface: generated constants and types, and the functions of a loaded library.

#[expect(unsafe_code, reason = "looks functions of a C library up and calls them")]
pub mod api;
#[expect(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    reason = "generated: the names are CUPTI's, and their meaning stands in its headers"
)]
pub mod bindings;

pub use api::{Api, LoadError};

#[cfg(all(test, target_pointer_width = "64"))]
mod layout;
