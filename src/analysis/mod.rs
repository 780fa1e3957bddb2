//! Finds why devices were idle: the partition of the span, bubbles, their segments and root causes, the cost of waiting.
//!
//! Pure functions of a [`Trace`]: no file, no clock, no CUPTI.

mod because;
mod beyond;
mod bubbles;
mod calls;
mod captures;
mod cause;
mod copies;
mod finding;
pub mod findings;
mod full;
mod host;
mod intervals;
mod iterations;
mod launches;
mod marked;
mod near;
mod options;
mod parallel;
mod partition;
mod peers;
mod quality;
pub mod replay;
mod result;
mod roots;
mod run_ahead;
#[cfg(test)]
mod scene;
mod segments;
mod stats;
mod sync_cost;
#[cfg(test)]
mod tests;
pub mod waits;
pub mod windows;
pub(crate) mod words;

pub use because::{Because, HostTime, because, host_time};
pub use beyond::beyond_idle;
pub use cause::{Cause, Confidence, Rule, SegmentKind};
pub use finding::{FindingId, Severity, UnknownFinding};
pub use findings::{Evidence, Finding, Findings};
pub use full::{FullAnalysis, HalfWay, ReplayFacts, WhatIf, full, half_way, half_way_watched};
pub use marked::{Marked, marked, marked_watched};
pub use options::{Constants, FindingLimits, Options};
pub use partition::collective_names;
pub use peers::{PeerWait, PeerWaits};
pub use result::{
    Analysis, Bubble, DeviceAnalysis, Drain, HistogramBucket, IterationSource, Iterations, LaunchFigures, Partition,
    Percentiles, Quality, RootCause, RunAheadFigures, Segment, SegmentDetail, StreamFigures, SyncCallRow,
};
pub use run_ahead::{RunAhead, run_ahead};
pub use sync_cost::site_name;

use std::sync::Arc;

use crate::progress::{Cancelled, Until, uncancelled};
use crate::threads::at_once;
use crate::trace::{DeviceIdx, Interval, Ns, Trace};

/// Analyses the part of `trace` that `options` ask for. [`full`] adds what only the replay can tell.
pub fn analyze(trace: &Trace, options: &Options) -> Analysis {
    uncancelled(|until| analyze_until(trace, options, until)).0
}

/// The same while it is wanted, and what is known of the host.
fn analyze_until(trace: &Trace, options: &Options, until: Until<'_>) -> Result<(Analysis, bubbles::Host), Cancelled> {
    let whole = Interval::new(Ns::ZERO, trace.end);
    let window = options.window.map_or(whole, |window| window.intersect(whole));
    let bounds = open_ended(window, whole);
    let collective = partition::collective_names(trace);
    let (host, (mut peer_waits, sweeps)) = bubbles::Host::new(trace, until, |classes| {
        let devices = (0..trace.devices.len()).map(DeviceIdx::from_index);
        let sweep = |device| Some((device, partition::sweep(trace, device, bounds, &collective, classes, until)?));
        let sweeps: Vec<_> = devices.filter_map(sweep).collect();
        until.check()?;
        Ok((peers::peer_waits(trace, &collective, bounds), sweeps))
    })?;
    let explained = sweeps.into_iter().map(|(device, sweep)| {
        let found = bubbles::device(trace, device, sweep, &options.constants, &host, until)?;
        Ok(DeviceAnalysis { peer_waits: peer_waits.remove(&device).unwrap_or_default(), ..found })
    });
    let devices: Vec<DeviceAnalysis> = explained.collect::<Result<_, Cancelled>>()?;
    let (sync_calls, rest) = at_once(
        || sync_cost::rows(trace, bounds, &devices, &host, until),
        || {
            let launches = launches::launches(trace, bounds, &devices, &host.captures);
            until.check()?;
            Ok((launches, iterations::iterations(trace, bounds, &devices, &host)))
        },
    );
    let (sync_calls, (launches, iterations)) = (sync_calls?, rest?);
    until.check()?;
    let analysis = Analysis {
        window,
        sync_calls,
        launches: launches.figures,
        iterations,
        quality: quality::quality(trace, bounds, &devices, &launches, &host.waits, &options.constants),
        devices: devices.into_iter().map(Arc::new).collect(),
    };
    Ok((analysis, host))
}

/// The window without the edges that are the trace's own, so that an op without length at the trace's end is inside.
fn open_ended(window: Interval, whole: Interval) -> Interval {
    Interval::new(
        if window.start <= whole.start { Ns::MIN } else { window.start },
        if window.end >= whole.end { Ns::MAX } else { window.end },
    )
}
