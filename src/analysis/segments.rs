//! Cuts a bubble into segments.

use rustc_hash::FxHashMap;

use crate::trace::{ApiKind, CallIdx, GraphId, Interval, Ns, OpIdx, ProcessIdx, Side, StreamKind, ThreadIdx, Trace};

use super::cause::{Cause, SegmentKind};
use super::host::{RangeReader, TimelineReader};
use super::options::Constants;
use super::partition::Gap;
use super::result::{Segment, SegmentDetail};
use super::waits::{Awaited, Waits};

/// Why the op that ends a bubble did not start earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Its launch is unknown.
    Unknown,
    /// It belongs to the same graph launch as an op before the bubble.
    SameGraph,
    /// It was enqueued in time, and this held it.
    Enqueued(Hold),
    /// The device had nothing to run: the launch came too late.
    Starved {
        /// The launch.
        launch: CallIdx,
    },
}

/// What held an op that was enqueued in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// A recorded wait of its stream, by the call that told the stream to wait; known to be the last thing it waited
    /// for if `resolved`.
    Wait { call: Option<CallIdx>, resolved: bool },
    /// A host function ran on its stream.
    HostFunction,
    /// The op before it, on another stream: one of the two is the legacy default stream, which the other serialises with.
    DefaultStream,
    /// Its own stream was free before, so it must have been something on another one.
    OtherStream,
    /// Nothing but the op before it.
    Queue,
}

/// What is needed to explain the bubbles of one device.
pub(super) struct Explainer<'a> {
    pub(super) trace: &'a Trace,
    pub(super) waits: &'a Waits,
    pub(super) host: TimelineReader<'a>,
    pub(super) ranges: RangeReader<'a>,
    pub(super) constants: &'a Constants,
    /// The usual latency λ from a launch's start to its op's start.
    pub(super) latency: Ns,
    /// For each stream its host functions: start, in order, and the latest end so far.
    pub(super) host_functions: &'a [Vec<(Ns, Ns)>],
}

impl Explainer<'_> {
    /// Whether the op after a bubble was enqueued in time, and what held it then.
    pub(super) fn readiness(&self, gap: &Gap) -> Readiness {
        let Some(launch) = self.trace.ops.launch(gap.after) else { return Readiness::Unknown };
        if gap.in_graph {
            return Readiness::SameGraph;
        }
        let call = self.trace.calls.interval(launch);
        if call.end <= gap.interval.start && gap.interval.start - call.start >= self.latency {
            Readiness::Enqueued(self.hold(gap))
        } else {
            Readiness::Starved { launch }
        }
    }

    /// What held an op that was enqueued in time.
    fn hold(&self, gap: &Gap) -> Hold {
        let ops = &self.trace.ops;
        let stream = ops.stream[gap.after.index()];
        let lane = self.trace.streams[stream.index()].ops.clone();
        let ahead = (gap.after.0 > lane.start).then(|| OpIdx(gap.after.0 - 1));
        let free = ahead.map_or(Ns::MIN, |op| ops.end[op.index()]);
        if let Some(wait) = self.recorded_wait(gap, ahead, free) {
            return wait;
        }
        let functions = &self.host_functions[stream.index()];
        let begun = functions.partition_point(|&(start, _)| start < gap.interval.end);
        if begun > 0 && functions[begun - 1].1 > gap.interval.start {
            return Hold::HostFunction;
        }
        if self.serialises(gap.before, gap.after) {
            return Hold::DefaultStream;
        }
        if gap.interval.start - free >= self.latency { Hold::OtherStream } else { Hold::Queue }
    }

    /// Whether `later` waits for `earlier` because one of them is on the legacy default stream: work on it waits for what
    /// was launched before into blocking streams of the context, and theirs for its.
    fn serialises(&self, earlier: OpIdx, later: OpIdx) -> bool {
        let trace = self.trace;
        let stream = |op: OpIdx| &trace.streams[trace.ops.stream[op.index()].index()];
        let launched = |op: OpIdx| Some(trace.calls.start[trace.ops.launch(op)?.index()]);
        let (first, then) = (stream(earlier), stream(later));
        let kinds = matches!(
            (first.kind, then.kind),
            (StreamKind::Null, StreamKind::Blocking) | (StreamKind::Blocking, StreamKind::Null)
        );
        kinds && first.context == then.context && launched(earlier).is_some_and(|start| Some(start) <= launched(later))
    }

    /// A wait of the op's stream between its predecessor's launch and its own. One whose work was over before the op
    /// could have started anyway held nothing.
    fn recorded_wait(&self, gap: &Gap, ahead: Option<OpIdx>, free: Ns) -> Option<Hold> {
        let ops = &self.trace.ops;
        let stream = ops.stream[gap.after.index()];
        let correlation = ops.correlation[gap.after.index()];
        let from = ahead.map(|op| ops.correlation[op.index()]).unwrap_or_default();
        let waits = self.waits.of_stream(stream);
        let until = waits.partition_point(|wait| wait.correlation < correlation);
        let between = waits[..until].iter().rev().take_while(|wait| wait.correlation > from);
        let mut unresolved = None;
        for wait in between {
            match wait.awaited {
                Awaited::Op(op) => {
                    let end = ops.end[op.index()];
                    if end >= free && gap.interval.start - end < self.latency && end <= gap.interval.end {
                        return Some(Hold::Wait { call: wait.call, resolved: true });
                    }
                }
                Awaited::Unknown => unresolved = Some(Hold::Wait { call: wait.call, resolved: false }),
                Awaited::Nothing => {}
            }
        }
        unresolved
    }

    /// Appends the segments of a bubble.
    pub(super) fn segments(&self, gap: &Gap, readiness: Readiness, segments: &mut Vec<Segment>) {
        let bubble = gap.interval;
        let whole = |kind, what| Segment { interval: bubble, kind, what };
        let launch = self.trace.ops.launch(gap.after).map_or(SegmentDetail::None, SegmentDetail::Call);
        let held = |kind| {
            let copies = |op: OpIdx| self.trace.ops.kind[op.index()].is_copy();
            let constants = self.constants;
            let limit =
                if copies(gap.before) == copies(gap.after) { constants.stall_gap } else { constants.stall_handover };
            let stalled = bubble.len() > limit;
            whole(if stalled { SegmentKind::Stalled } else { kind }, launch)
        };
        segments.push(match readiness {
            Readiness::Unknown => whole(SegmentKind::Unattributed, SegmentDetail::None),
            Readiness::SameGraph => held(SegmentKind::GraphInternal),
            Readiness::Enqueued(Hold::Wait { call, .. }) => {
                whole(SegmentKind::Dependency, call.map_or(launch, SegmentDetail::Call))
            }
            Readiness::Enqueued(Hold::HostFunction) => whole(SegmentKind::Dependency, launch),
            Readiness::Enqueued(Hold::DefaultStream | Hold::OtherStream) => held(SegmentKind::Dependency),
            Readiness::Enqueued(Hold::Queue) => held(SegmentKind::Dispatch),
            Readiness::Starved { launch } => return self.starved(bubble, launch, segments),
        });
    }

    fn starved(&self, bubble: Interval, launch: CallIdx, segments: &mut Vec<Segment>) {
        let from = segments.len();
        let call = self.trace.calls.interval(launch);
        let thread = self.trace.calls.thread[launch.index()];
        let before = Interval::new(bubble.start, call.start.clamp(bubble.start, bubble.end));
        self.host.visit(thread, before, |slice| {
            let what = slice.call.map_or(SegmentDetail::None, SegmentDetail::Call);
            push(segments, from, slice.interval, slice.kind, what);
        });
        for segment in &mut segments[from..] {
            if segment.kind == SegmentKind::HostCode {
                segment.what = self.range_at_middle(thread, segment.interval);
            }
        }
        let during = Interval::new(before.end, call.end.clamp(before.end, bubble.end));
        self.host.visit(thread, during, |slice| {
            // The launch may have loaded its kernel, or waited for the profiler; otherwise it is itself.
            let own = slice.kind.hinders_launch();
            let (kind, what) = if own { (slice.kind, slice.call) } else { (SegmentKind::LaunchCall, Some(launch)) };
            push(segments, from, slice.interval, kind, what.map_or(SegmentDetail::None, SegmentDetail::Call));
        });
        let after = Interval::new(during.end, bubble.end);
        if !after.is_empty() {
            let late = after.len() > self.constants.stall_latency;
            let kind = if late { SegmentKind::Stalled } else { SegmentKind::LaunchLatency };
            push(segments, from, after, kind, SegmentDetail::Call(launch));
        }
    }

    /// How long `thread` ran its own code inside `within`.
    pub(super) fn host_code(&self, thread: ThreadIdx, within: Interval) -> Ns {
        let mut total = Ns::ZERO;
        self.host.visit(thread, within, |slice| {
            if slice.kind == SegmentKind::HostCode {
                total += slice.interval.len();
            }
        });
        total
    }

    fn range_at_middle(&self, thread: ThreadIdx, stretch: Interval) -> SegmentDetail {
        let middle = Ns(stretch.start.0 + stretch.len().0 / 2);
        self.ranges.innermost(self.trace, thread, middle).map_or(SegmentDetail::None, SegmentDetail::Range)
    }
}

/// Appends a segment to those of one bubble, which begin at `from`, or lengthens the last one if it says the same.
fn push(segments: &mut Vec<Segment>, from: usize, interval: Interval, kind: SegmentKind, what: SegmentDetail) {
    match segments[from..].last_mut() {
        Some(last) if (last.kind, last.what) == (kind, what) => last.interval.end = interval.end,
        _ => segments.push(Segment { interval, kind, what }),
    }
}

impl SegmentKind {
    /// Whether it explains time inside a launch call better than the call does.
    fn hinders_launch(self) -> bool {
        matches!(self, Self::Profiler | Self::ModuleLoad | Self::GraphBuild | Self::Allocation)
    }
}

/// For each stream its host functions: start, in order, and the latest end so far.
pub(super) fn host_functions(trace: &Trace) -> Vec<Vec<(Ns, Ns)>> {
    let mut functions: Vec<Vec<(Ns, Ns)>> = vec![Vec::new(); trace.streams.len()];
    for function in &trace.host_functions {
        let lane = &mut functions[function.stream.index()];
        let reach = lane.last().map_or(Ns::MIN, |&(_, reach)| reach);
        lane.push((function.interval.start, reach.max(function.interval.end)));
    }
    functions
}

/// The calls that launch the first op of each name, and each executable graph first, in each process, found when first
/// asked for.
pub(super) struct FirstLaunches {
    /// By process and name: the start and position of the first launch.
    names: Vec<Vec<Option<(Ns, CallIdx)>>>,
    /// The same of each graph.
    graphs: FxHashMap<(ProcessIdx, GraphId), (Ns, CallIdx)>,
}

impl FirstLaunches {
    pub(super) fn new(trace: &Trace) -> Self {
        let mut names = vec![vec![None; trace.names.len()]; trace.processes.len()];
        let mut graphs: FxHashMap<(ProcessIdx, GraphId), (Ns, CallIdx)> = FxHashMap::default();
        // What ran before the part of the recording that the trace holds had its first launch there.
        const ELSEWHERE: (Ns, CallIdx) = (Ns::MIN, CallIdx(u32::MAX));
        if let Some(rest) = &trace.rest {
            for (process, _, name, _) in rest.ops.iter().filter(|op| op.3 == Side::Before) {
                names[process.index()][name.index()] = Some(ELSEWHERE);
            }
            graphs.extend(rest.graphs_before.iter().map(|&graph| (graph, ELSEWHERE)));
        }
        for op in trace.ops.indices() {
            let Some(call) = trace.ops.launch(op) else { continue };
            let process = trace.op_process(op);
            let launch = (trace.calls.start[call.index()], call);
            let slot = &mut names[process.index()][trace.ops.name[op.index()].index()];
            if slot.is_none_or(|known| launch < known) {
                *slot = Some(launch);
            }
            let graph = trace.ops.graph[op.index()];
            if graph.is_some() {
                let first = graphs.entry((process, graph)).or_insert(launch);
                *first = launch.min(*first);
            }
        }
        Self { names, graphs }
    }

    /// What a launch has done beside launching if it is a first one: loaded the code of its kernel, or taken to the
    /// device the graph that was instantiated.
    pub(super) fn work(&self, trace: &Trace, call: CallIdx) -> Option<Cause> {
        let process = trace.call_process(call);
        let is_first = |first: Option<&(Ns, CallIdx)>| first.is_some_and(|&(_, first)| first == call);
        let mut ops = trace.call_ops(call).iter().map(|op| op.index());
        if trace.calls.kind[call.index()] == ApiKind::GraphLaunch {
            let first = ops.any(|op| is_first(self.graphs.get(&(process, trace.ops.graph[op]))));
            first.then_some(Cause::GraphBuild)
        } else {
            let names = &self.names[process.index()];
            ops.any(|op| is_first(names[trace.ops.name[op].index()].as_ref())).then_some(Cause::ModuleLoad)
        }
    }
}
