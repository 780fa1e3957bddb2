//! Writes a trace, and the bubbles found in it, in forms that other programs read.
//!
//! * [`chrome()`]: Chrome's JSON, which Perfetto and `chrome://tracing` open.
//! * [`csv()`]: a table with one row for each event and bubble.
//! * [`comparison_csv`]: a comparison, a row for each variant.

mod chrome;
mod comparison;
mod csv;
mod tracks;

pub use chrome::chrome;
pub use comparison::comparison_csv;
pub use csv::{COLUMNS as CSV_COLUMNS, csv};
