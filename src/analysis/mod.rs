//! Finds why devices were idle: the partition of the span, bubbles, their segments and root causes, the cost of waiting.
//!
//! Pure functions of a [`Trace`]: no file, no clock, no CUPTI.

mod cause;
mod options;
pub mod replay;
mod result;
#[cfg(test)]
mod scene;
pub mod waits;

pub use cause::{Cause, Confidence, Rule, SegmentKind};
pub use options::{Constants, Options};
pub use result::{
    Analysis, Bubble, DeviceAnalysis, Drain, HistogramBucket, IterationSource, Iterations, LaunchFigures, Partition,
    Percentiles, Quality, RootCause, RunAheadFigures, Segment, SegmentDetail, StreamFigures, SyncCallRow,
};

use crate::trace::{Interval, Ns, Trace};

/// Analyses the part of `trace` that `options` ask for.
pub fn analyze(trace: &Trace, options: &Options) -> Analysis {
    let whole = Interval::new(Ns::ZERO, trace.end);
    Analysis { window: options.window.map_or(whole, |window| window.intersect(whole)), ..Analysis::default() }
}
