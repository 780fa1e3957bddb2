//! The bubbles of a device, with their segments, root causes, drains and refills.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::progress::{Cancelled, Until};
use crate::threads::at_once;
use crate::trace::{CallIdx, Detail, DeviceIdx, Interval, MemoryKind, Ns, OpIdx, Trace};

use super::calls::{CallClasses, Drainers, HostGaps};
use super::captures::Captures;
use super::cause::{Cause, SegmentKind};
use super::host::{HostTimeline, RangeStacks};
use super::options::Constants;
use super::parallel::in_order;
use super::partition::{Gap, Sweep};
use super::peers::PeerWaits;
use super::result::{Bubble, DeviceAnalysis, Segment};
use super::roots::Judge;
use super::segments::{Explainer, Readiness, host_functions};
use super::stats::{Histogram, Tally};
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
    /// Looks at the host, and does `meanwhile` with what the calls are.
    pub(super) fn new<R: Send>(
        trace: &Trace,
        until: Until<'_>,
        meanwhile: impl FnOnce(&CallClasses) -> Result<R, Cancelled> + Send,
    ) -> Result<(Self, R), Cancelled> {
        let ((waits, classes), (captures, ranges, host_functions, usual_launch)) = at_once(
            || {
                let waits = Waits::new(trace);
                let classes = CallClasses::new(trace, &waits);
                (waits, classes)
            },
            || (Captures::new(trace), RangeStacks::new(trace), host_functions(trace), usual_launch(trace)),
        );
        until.check()?;
        let (found, host) = at_once(
            || meanwhile(&classes),
            || {
                let timeline = HostTimeline::new(trace, &classes, &captures);
                until.check()?;
                Ok((timeline, HostGaps::new(trace, &classes), Drainers::new(trace, &classes)))
            },
        );
        let (found, (timeline, gaps, drainers)) = (found?, host?);
        until.check()?;
        let host = Self { waits, classes, drainers, captures, timeline, ranges, gaps, host_functions, usual_launch };
        Ok((host, found))
    }
}

/// The low median of the lengths of calls that launch a kernel or graph which was recorded.
fn usual_launch(trace: &Trace) -> Ns {
    let launches = trace
        .calls
        .indices()
        .filter(|call| trace.calls.kind[call.index()].launches() && !trace.call_ops(*call).is_empty());
    let mut lengths: Tally = launches.map(|call| trace.calls.interval(call).len()).collect();
    Ns(lengths.low_median().unwrap_or_default())
}

/// Explains the bubbles that the pass over one device found.
pub(super) fn device(
    trace: &Trace,
    device: DeviceIdx,
    sweep: Sweep,
    constants: &Constants,
    host: &Host,
    until: Until<'_>,
) -> Result<DeviceAnalysis, Cancelled> {
    let Sweep { span, partition, exposed_comm, ops, gaps, streams } = sweep;
    let latency = usual_latency(trace, &gaps, &host.classes, constants);
    let factor = Ns(host.usual_launch.0.saturating_mul(constants.long_launch_factor));
    let long_launch = factor.max(constants.long_launch);
    let first_launches = OnceLock::new();
    let work = |gaps| {
        until.check()?;
        let explainer = Explainer {
            trace,
            waits: &host.waits,
            host: host.timeline.reader(trace),
            ranges: host.ranges.reader(trace),
            constants,
            latency,
            host_functions: &host.host_functions,
        };
        let judge = Judge {
            explainer: &explainer,
            classes: &host.classes,
            drainers: host.drainers.reader(),
            host_gaps: host.gaps.reader(),
            long_launch,
            first_launches: &first_launches,
        };
        Ok::<_, Cancelled>(explain(device, &judge, gaps))
    };
    let mut found = Found::new(gaps.len());
    in_order(gaps.chunks(PART), work, |part: Result<Part<'_>, Cancelled>| {
        if let Ok(part) = part {
            found.take(part);
        }
    });
    until.check()?;
    Ok(DeviceAnalysis {
        device,
        span,
        partition,
        exposed_comm_ns: exposed_comm,
        peer_waits: PeerWaits::default(),
        usual_latency: latency,
        ops,
        idle_by_root: found.by_root.filled(),
        idle_by_segment: found.by_segment.filled(),
        histogram: found.histogram.filled(),
        bubble_lengths: found.lengths.percentiles(),
        bubbles: found.bubbles,
        segments: found.segments,
        streams,
    })
}

/// The low median time from a launch's start to its op's start over ops that found the device empty, within bounds.
///
/// Copies that hold their caller, or whose pageable memory the host moves first, do not count: they take as long as their
/// bytes do.
fn usual_latency(trace: &Trace, gaps: &[Gap], classes: &CallClasses, constants: &Constants) -> Ns {
    let starts_at_once = |op: OpIdx| {
        let holds = |call| classes.drain(call) == Some(Cause::BlockingCopy);
        !trace.ops.launch(op).is_some_and(holds) && !is_pageable(trace, op)
    };
    let empty = gaps.iter().filter(|gap| starts_at_once(gap.after));
    let empty = empty.map(|gap| (gap.interval, trace.ops.launch(gap.after)));
    let mut samples: Tally = empty_device_latencies(trace, empty).collect();
    if samples.len() < constants.latency_samples {
        return constants.latency_default;
    }
    let median = samples.low_median().map_or(constants.latency_default, Ns);
    median.min(constants.latency_max).max(constants.latency_min)
}

/// Whether an op copies from or to pageable memory.
fn is_pageable(trace: &Trace, op: OpIdx) -> bool {
    let pageable = |memory| memory == MemoryKind::Pageable;
    matches!(trace.op_detail(op), Detail::Copy { from, to, .. } if pageable(from) || pageable(to))
}

/// Times from a launch's start to its op's start, of ops that end a bubble and were launched inside it.
pub(super) fn empty_device_latencies<'a>(
    trace: &'a Trace,
    bubbles: impl Iterator<Item = (Interval, Option<CallIdx>)> + 'a,
) -> impl Iterator<Item = Ns> + 'a {
    bubbles.filter_map(|(bubble, launch)| {
        let launch = trace.calls.start[launch?.index()];
        bubble.contains(launch).then(|| bubble.end - launch)
    })
}

/// So many bubbles are explained at a time: few enough for what is found to stay in a core's cache until it is taken.
const PART: usize = 1 << 11;

/// Consecutive bubbles explained.
struct Part<'g> {
    gaps: &'g [Gap],
    /// Without refills; their segments are counted from the part's first.
    bubbles: Vec<Bubble>,
    segments: Vec<Segment>,
    turns: Vec<Turn>,
}

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
fn explain<'g>(device: DeviceIdx, judge: &Judge<'_>, gaps: &'g [Gap]) -> Part<'g> {
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
    Part { gaps, bubbles, segments, turns }
}

/// What is found of a device's bubbles, as they come in order of time.
struct Found {
    bubbles: Vec<Bubble>,
    segments: Vec<Segment>,
    by_root: Sums<Cause>,
    by_segment: Sums<SegmentKind>,
    lengths: Tally,
    histogram: Histogram,
    /// The call whose refill goes on.
    drain: Option<CallIdx>,
}

impl Found {
    fn new(bubbles: usize) -> Self {
        Self {
            bubbles: Vec::with_capacity(bubbles),
            segments: Vec::with_capacity(bubbles * 2),
            by_root: Sums::new(Cause::ALL),
            by_segment: Sums::new(SegmentKind::ALL),
            lengths: Tally::default(),
            histogram: Histogram::new(),
            drain: None,
        }
    }

    /// Adds the next bubbles and finds out whose refill each is.
    fn take(&mut self, part: Part<'_>) {
        let moved = self.segments.len() as u32;
        for ((gap, turn), bubble) in part.gaps.iter().zip(part.turns).zip(part.bubbles) {
            if gap.fed {
                self.drain = None;
            }
            let mut refill_of = None;
            match turn {
                Turn::Drains => self.drain = bubble.drained_by.map(|drained_by| drained_by.call),
                Turn::Late => refill_of = self.drain,
                Turn::Ends => self.drain = None,
                Turn::Silent => {}
            }
            let length = bubble.interval.len();
            self.by_root.add(bubble.root.cause, length);
            self.lengths.add(length.0);
            self.histogram.add(length);
            self.bubbles.push(Bubble { refill_of, first_segment: bubble.first_segment + moved, ..bubble });
        }
        for segment in &part.segments {
            self.by_segment.add(segment.kind, segment.interval.len());
        }
        self.segments.extend(part.segments);
    }
}

/// Sums by word. `#[repr(u8)]` gives each word its place.
pub(super) struct Sums<K: 'static> {
    all: &'static [K],
    totals: Vec<Ns>,
}

impl<K: Copy + Ord + Into<usize>> Sums<K> {
    pub(super) fn new(all: &'static [K]) -> Self {
        Self { all, totals: vec![Ns::ZERO; all.len()] }
    }

    #[inline]
    pub(super) fn add(&mut self, word: K, length: Ns) {
        self.totals[word.into()] += length;
    }

    /// Without what does not occur.
    pub(super) fn filled(self) -> BTreeMap<K, Ns> {
        self.all.iter().copied().zip(self.totals).filter(|&(_, total)| total != Ns::ZERO).collect()
    }
}
