//! The bubbles of a device, with their segments, root causes, drains and refills.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use crate::trace::{ApiKind, CallIdx, DeviceIdx, Interval, Ns, Trace};

use super::calls::{CallClasses, Drainers, HostGaps};
use super::cause::{Cause, SegmentKind};
use super::host::{HostTimeline, RangeStacks};
use super::options::Constants;
use super::partition::{Gap, Sweep, sweep};
use super::result::{Bubble, DeviceAnalysis, Segment};
use super::roots::Judge;
use super::segments::{Explainer, Readiness, host_functions};
use super::stats;
use super::waits::Waits;

/// What is known of the host, once for all devices.
pub(super) struct Host {
    pub(super) waits: Waits,
    pub(super) classes: CallClasses,
    pub(super) drainers: Drainers,
    timeline: HostTimeline,
    pub(super) ranges: RangeStacks,
    gaps: HostGaps,
    host_functions: Vec<Vec<(Ns, Ns)>>,
    /// The low median of the lengths of calls that launch kernels or graphs.
    usual_launch: Ns,
}

impl Host {
    pub(super) fn new(trace: &Trace) -> Self {
        let waits = Waits::new(trace);
        let classes = CallClasses::new(trace, &waits);
        Self {
            drainers: Drainers::new(trace, &classes),
            timeline: HostTimeline::new(trace, &classes),
            ranges: RangeStacks::new(trace),
            gaps: HostGaps::new(trace, &waits),
            host_functions: host_functions(trace),
            usual_launch: usual_launch(trace),
            waits,
            classes,
        }
    }
}

/// The low median of the lengths of calls that launch a kernel or graph which was recorded.
fn usual_launch(trace: &Trace) -> Ns {
    let launches = trace.calls.indices().filter(|call| {
        matches!(trace.calls.kind[call.index()], ApiKind::Launch | ApiKind::GraphLaunch)
            && !trace.call_ops(*call).is_empty()
    });
    let mut lengths: Vec<Ns> = launches.map(|call| trace.calls.interval(call).len()).collect();
    stats::low_median(&mut lengths).unwrap_or_default()
}

/// Analyses one device; `None` when it has no op in the window.
pub(super) fn device(
    trace: &Trace,
    device: DeviceIdx,
    window: Interval,
    constants: &Constants,
    collective: &[bool],
    host: &Host,
) -> Option<DeviceAnalysis> {
    let Sweep { span, partition, exposed_comm, ops, gaps, streams } =
        sweep(trace, device, window, collective, &host.classes)?;
    let latency = usual_latency(trace, &gaps, constants);
    let explainer = Explainer {
        trace,
        waits: &host.waits,
        host: &host.timeline,
        ranges: &host.ranges,
        constants,
        latency,
        host_functions: &host.host_functions,
    };
    let factor = Ns(host.usual_launch.0.saturating_mul(constants.long_launch_factor));
    let judge = Judge {
        explainer: &explainer,
        classes: &host.classes,
        drainers: &host.drainers,
        host_gaps: &host.gaps,
        long_launch: factor.max(constants.long_launch),
        first_launches: OnceCell::new(),
    };
    let mut segments: Vec<Segment> = Vec::with_capacity(gaps.len() * 2);
    let mut refill = Refill::default();
    let bubbles: Vec<Bubble> = gaps
        .iter()
        .map(|gap| {
            let first = segments.len();
            let readiness = explainer.readiness(gap);
            explainer.segments(gap, readiness, &mut segments);
            let drained_by = match readiness {
                Readiness::Starved { launch } => judge.drain(gap, launch),
                _ => None,
            };
            let root = judge.root(gap, readiness, drained_by, &segments[first..]);
            let refill_of = refill.next(gap, readiness, drained_by.map(|drain| drain.call), root.cause);
            Bubble {
                device,
                interval: gap.interval,
                before: gap.before,
                after: gap.after,
                launch: trace.ops.launch(gap.after),
                root,
                drained_by,
                refill_of,
                first_segment: first as u32,
                segment_count: (segments.len() - first) as u32,
            }
        })
        .collect();
    drop(gaps);
    let mut lengths: Vec<Ns> = bubbles.iter().map(|bubble| bubble.interval.len()).collect();
    Some(DeviceAnalysis {
        device,
        span,
        partition,
        exposed_comm_ns: exposed_comm,
        usual_latency: latency,
        ops,
        idle_by_root: sums(Cause::ALL, bubbles.iter().map(|bubble| (bubble.root.cause, bubble.interval.len()))),
        idle_by_segment: sums(SegmentKind::ALL, segments.iter().map(|segment| (segment.kind, segment.interval.len()))),
        histogram: stats::histogram(lengths.iter().copied()),
        bubble_lengths: stats::percentiles(&mut lengths),
        bubbles,
        segments,
        streams,
    })
}

/// The low median time from a launch's start to its op's start over ops that found the device empty, within bounds.
fn usual_latency(trace: &Trace, gaps: &[Gap], constants: &Constants) -> Ns {
    let mut samples: Vec<Ns> =
        empty_device_latencies(trace, gaps.iter().map(|gap| (gap.interval, gap.after))).collect();
    if samples.len() < constants.latency_samples {
        return constants.latency_default;
    }
    let median = stats::low_median(&mut samples).unwrap_or(constants.latency_default);
    median.min(constants.latency_max).max(constants.latency_min)
}

/// Times from a launch's start to its op's start, of ops that end a bubble and were launched inside it.
pub(super) fn empty_device_latencies<'a>(
    trace: &'a Trace,
    bubbles: impl Iterator<Item = (Interval, crate::trace::OpIdx)> + 'a,
) -> impl Iterator<Item = Ns> + 'a {
    bubbles.filter_map(|(bubble, after)| {
        let launch = trace.calls.start[trace.ops.launch(after)?.index()];
        bubble.contains(launch).then(|| bubble.end - launch)
    })
}

/// Follows which draining call's refill the bubbles belong to.
#[derive(Default)]
struct Refill {
    drain: Option<CallIdx>,
}

impl Refill {
    /// Takes the next bubble and says whose refill it is.
    fn next(&mut self, gap: &Gap, readiness: Readiness, drained_by: Option<CallIdx>, root: Cause) -> Option<CallIdx> {
        if gap.fed {
            self.drain = None;
        }
        match readiness {
            Readiness::Starved { .. } if drained_by.is_some() => {
                self.drain = drained_by;
                None
            }
            Readiness::Starved { .. } if root == Cause::LaunchBound => self.drain,
            // An op was enqueued in time, or the host had another reason to be late: the drain is over.
            Readiness::Starved { .. } | Readiness::Enqueued(_) => {
                self.drain = None;
                None
            }
            // Says nothing of what the host had enqueued.
            Readiness::SameGraph | Readiness::Unknown => None,
        }
    }
}

/// Sums by word, leaving out what does not occur. `#[repr(u8)]` gives each word its place.
fn sums<K: Copy + Ord + Into<usize>>(all: &[K], lengths: impl Iterator<Item = (K, Ns)>) -> BTreeMap<K, Ns> {
    let mut totals = vec![Ns::ZERO; all.len()];
    for (key, length) in lengths {
        totals[key.into()] += length;
    }
    all.iter().copied().zip(totals).filter(|&(_, total)| total != Ns::ZERO).collect()
}
