//! The bubbles of a device, with their segments, root causes, drains and refills.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::trace::{ApiKind, CallIdx, DeviceIdx, Interval, Ns, Trace};

use super::calls::{CallClasses, Drainers, HostGaps};
use super::captures::Captures;
use super::cause::{Cause, SegmentKind};
use super::host::{HostTimeline, RangeStacks};
use super::options::Constants;
use super::parallel::{both, map_parts};
use super::partition::{Gap, Sweep, sweep};
use super::peers::PeerWaits;
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
    pub(super) captures: Captures,
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
        let captures = Captures::new(trace);
        let (timeline, (drainers, ranges, gaps)) = both(
            || HostTimeline::new(trace, &classes, &captures),
            || (Drainers::new(trace, &classes), RangeStacks::new(trace), HostGaps::new(trace, &waits)),
        );
        Self {
            drainers,
            timeline,
            ranges,
            gaps,
            host_functions: host_functions(trace),
            usual_launch: usual_launch(trace),
            waits,
            classes,
            captures,
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
        first_launches: OnceLock::new(),
    };
    let parts = map_parts(&gaps, SMALLEST_PART, |gaps| explain(device, &judge, gaps));
    let (mut bubbles, segments, turns) = joined(parts);
    follow_refills(&gaps, &turns, &mut bubbles);
    drop((gaps, turns));
    let mut lengths: Vec<Ns> = bubbles.iter().map(|bubble| bubble.interval.len()).collect();
    Some(DeviceAnalysis {
        device,
        span,
        partition,
        exposed_comm_ns: exposed_comm,
        peer_waits: PeerWaits::default(),
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

/// Fewer bubbles than this are not worth a thread.
const SMALLEST_PART: usize = 1 << 14;

/// Consecutive bubbles, their segments, and what each does to the refill.
type Explained = (Vec<Bubble>, Vec<Segment>, Vec<Turn>);

/// What a bubble says about the refill of the draining call before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// A call drained the device anew.
    Drains,
    /// A launch came late.
    Late,
    /// An op was enqueued in time, or the host had another reason to be late: the refill is over.
    Ends,
    /// Says nothing of what the host had enqueued.
    Silent,
}

/// Explains bubbles, but for whose refill they are.
fn explain(device: DeviceIdx, judge: &Judge<'_>, gaps: &[Gap]) -> Explained {
    let explainer = judge.explainer;
    let mut bubbles = Vec::with_capacity(gaps.len());
    let mut segments: Vec<Segment> = Vec::with_capacity(gaps.len() * 2);
    let mut turns = Vec::with_capacity(gaps.len());
    for gap in gaps {
        let first = segments.len();
        let readiness = explainer.readiness(gap);
        explainer.segments(gap, readiness, &mut segments);
        let drained_by = match readiness {
            Readiness::Starved { launch } => judge.drain(gap, launch),
            _ => None,
        };
        let root = judge.root(gap, readiness, drained_by, &segments[first..]);
        turns.push(match readiness {
            Readiness::Starved { .. } if drained_by.is_some() => Turn::Drains,
            Readiness::Starved { .. } if root.cause == Cause::LaunchBound => Turn::Late,
            Readiness::Starved { .. } | Readiness::Enqueued(_) => Turn::Ends,
            Readiness::SameGraph | Readiness::Unknown => Turn::Silent,
        });
        bubbles.push(Bubble {
            device,
            interval: gap.interval,
            before: gap.before,
            after: gap.after,
            launch: explainer.trace.ops.launch(gap.after),
            root,
            drained_by,
            refill_of: None,
            first_segment: first as u32,
            segment_count: (segments.len() - first) as u32,
        });
    }
    (bubbles, segments, turns)
}

/// The parts one after the other.
fn joined(parts: Vec<Explained>) -> Explained {
    let mut parts = parts.into_iter();
    let (mut bubbles, mut segments, mut turns) = parts.next().unwrap_or_default();
    for (more_bubbles, more_segments, more_turns) in parts {
        let moved = segments.len() as u32;
        let at_new_place = |bubble: Bubble| Bubble { first_segment: bubble.first_segment + moved, ..bubble };
        bubbles.extend(more_bubbles.into_iter().map(at_new_place));
        segments.extend(more_segments);
        turns.extend(more_turns);
    }
    (bubbles, segments, turns)
}

/// Finds out whose refill each bubble is.
fn follow_refills(gaps: &[Gap], turns: &[Turn], bubbles: &mut [Bubble]) {
    let mut drain: Option<CallIdx> = None;
    for ((gap, turn), bubble) in gaps.iter().zip(turns).zip(bubbles) {
        if gap.fed {
            drain = None;
        }
        match turn {
            Turn::Drains => drain = bubble.drained_by.map(|drained_by| drained_by.call),
            Turn::Late => bubble.refill_of = drain,
            Turn::Ends => drain = None,
            Turn::Silent => {}
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
