//! Figures of the launches, and launches of which no work was recorded.

use crate::trace::{ApiKind, CallIdx, Interval, Ns, OpKind, ThreadIdx, Trace};

use super::bubbles::empty_device_latencies;
use super::captures::Captures;
use super::result::{DeviceAnalysis, LaunchFigures};
use super::stats::Tally;

/// What the launches of the window say.
pub(super) struct Launches {
    pub(super) figures: LaunchFigures,
    /// Successful calls of a submitting kind without any op, outside stream capture.
    pub(super) without_ops: u64,
    /// Those of them that come after the last of their process that has any: the recording ended before their work ran.
    pub(super) at_the_end: u64,
    /// Of the last ones, whether any may have been captured: made while a capture was open of which the trace has only
    /// one end.
    pub(super) perhaps_captured_at_the_end: bool,
    /// How many of the others may have been.
    pub(super) perhaps_captured: u64,
    /// Ops without a known launch.
    pub(super) orphans: u64,
    /// Ops that launches of graphs submitted, each recorded by itself.
    pub(super) graph_ops: u64,
}

/// Looks at every call and op that begins in the window.
pub(super) fn launches(trace: &Trace, window: Interval, devices: &[DeviceAnalysis], captures: &Captures) -> Launches {
    let mut lengths = Tally::default();
    let mut op_counts = Tally::default();
    let mut without: Vec<CallIdx> = Vec::new();
    let mut last_with = vec![None; trace.processes.len()];
    for thread in 0..trace.threads.len() {
        let mut outer_end = Ns::MIN;
        for call in trace.thread_calls(ThreadIdx::from_index(thread)) {
            let interval = trace.calls.interval(call);
            let nested = interval.end <= outer_end;
            outer_end = outer_end.max(interval.end);
            if !window.contains(interval.start) {
                continue;
            }
            let ops = trace.call_ops(call).len();
            if ops > 0 {
                lengths.add(interval.len().0);
                op_counts.add(ops as i64);
                let last = &mut last_with[trace.call_process(call).index()];
                *last = (*last).max(Some(interval.start));
            } else if !nested && !captures.contains(call) && must_have_ops(trace, call) {
                lengths.add(interval.len().0);
                without.push(call);
            }
        }
    }
    let (ending, lost): (Vec<CallIdx>, Vec<CallIdx>) = without.iter().partition(|&&call| {
        last_with[trace.call_process(call).index()].is_some_and(|last| trace.calls.start[call.index()] > last)
    });
    let perhaps = |call: &&CallIdx| captures.may_contain(trace, **call);
    let (mut orphans, mut negative, mut worst, mut graph_ops) = (0, 0, Ns::ZERO, 0);
    for op in trace.ops.indices().filter(|op| window.contains(trace.ops.start[op.index()])) {
        match trace.ops.launch(op) {
            None => orphans += 1,
            Some(call) => {
                let latency = trace.ops.start[op.index()] - trace.calls.start[call.index()];
                negative += u64::from(latency < Ns::ZERO);
                worst = worst.min(latency);
                graph_ops += u64::from(
                    trace.calls.kind[call.index()] == ApiKind::GraphLaunch
                        && trace.ops.kind[op.index()] != OpKind::Graph,
                );
            }
        }
    }
    let bubbles = devices.iter().flat_map(|device| &device.bubbles).map(|bubble| (bubble.interval, bubble.launch));
    let mut latencies: Tally = empty_device_latencies(trace, bubbles).collect();
    Launches {
        figures: LaunchFigures {
            count: lengths.len() as u64,
            call_p50: Ns(lengths.low_median().unwrap_or_default()),
            latency_p50: Ns(latencies.low_median().unwrap_or_default()),
            negative_latency: negative,
            worst_negative_latency: worst,
            ops_per_launch_p50: op_counts.low_median().unwrap_or_default().unsigned_abs(),
        },
        without_ops: without.len() as u64,
        at_the_end: ending.len() as u64,
        perhaps_captured_at_the_end: ending.iter().any(|call| perhaps(&call)),
        perhaps_captured: lost.iter().filter(perhaps).count() as u64,
        orphans,
        graph_ops,
    }
}

/// Whether a call that returned success must have submitted device work. Host functions make no op.
fn must_have_ops(trace: &Trace, call: CallIdx) -> bool {
    trace.calls.kind[call.index()].launches() && trace.calls.result[call.index()] == 0
}
