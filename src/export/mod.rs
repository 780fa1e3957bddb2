//! Writes a trace, and the bubbles found in it, in forms that other programs read.
//!
//! * [`chrome()`]: Chrome's JSON, which Perfetto and `chrome://tracing` open.
//! * [`csv()`]: a table with one row for each event and bubble.

mod chrome;
mod csv;
mod tracks;

pub use chrome::chrome;
pub use csv::{COLUMNS as CSV_COLUMNS, csv};
