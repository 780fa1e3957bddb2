//! What people and programs read: the JSON contract, the text report, the comparison and the CI gate.

pub mod checked;
pub mod compare;
mod compare_traces;
pub mod contract;
mod convert;
mod convert_full;
mod demangle;
pub mod gate;
mod limits;
pub mod ranks;
#[cfg(test)]
pub(crate) mod samples;
pub mod schema;
mod stats;
pub mod text;

pub use compare::{Alignment, Compare, Origin, Recorded, Repetition, Setting, Skipped};
pub use compare_traces::{Aligned, ComparedTrace};
pub use contract::{Inflation, Report};
pub use convert::Options;
pub use demangle::demangle;
pub use limits::{Amount, Limit, LimitError, Share, parse_time};

use serde::Serialize;

use crate::trace::Ns;

/// A report or a comparison as the JSON that its contract promises: the bytes of a file.
///
/// # Errors
/// Never for the types of this module; as [`serde_json::to_vec_pretty`] for others.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

/// The sum, which stays at the greatest length when it would be greater: figures may come from any file.
fn total(parts: impl IntoIterator<Item = Ns>) -> Ns {
    Ns(parts.into_iter().fold(0i64, |sum, part| sum.saturating_add(part.0)))
}
