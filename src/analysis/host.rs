//! What each host thread was doing at every instant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::trace::{ApiKind, CallIdx, Interval, Ns, Overhead, OverheadKind, ProcessIdx, RangeIdx, ThreadIdx, Trace};

use super::calls::CallClasses;
use super::captures::Captures;
use super::cause::{Cause, SegmentKind};
use super::near::Places;

/// No call stands behind a slice.
const NO_CALL: u32 = u32::MAX;

/// For each thread, time cut into slices of one explanation each.
///
/// At each instant that is the first open of profiler, module load, graph build, allocation, blocking call, launch
/// call, other call, and host code when none is; of several of one kind the outermost. A call that was captured, and
/// neither waits nor allocates, builds a graph.
///
/// A slice lasts until the next one begins or, if a call stands behind it, until that has returned. What is then left
/// before the next slice is host code.
pub(super) struct HostTimeline {
    starts: Vec<Ns>,
    kinds: Vec<SegmentKind>,
    calls: Vec<u32>,
    /// Where each thread's slices begin; one more entry than threads.
    offsets: Vec<usize>,
}

/// A part of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) interval: Interval,
    pub(super) kind: SegmentKind,
    pub(super) call: Option<CallIdx>,
}

/// Something that is open on a thread: what outranks what is the order of `(rank, order)`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    rank: u8,
    /// The call's position, or [`NO_CALL`] for overhead, which yields to a call of its kind.
    order: u32,
    end: Ns,
}

/// The kinds in the order in which they outrank each other.
const RANKS: [SegmentKind; 8] = [
    SegmentKind::Profiler,
    SegmentKind::ModuleLoad,
    SegmentKind::GraphBuild,
    SegmentKind::Allocation,
    SegmentKind::SyncReturn,
    SegmentKind::LaunchCall,
    SegmentKind::Api,
    SegmentKind::HostCode,
];

fn rank(trace: &Trace, classes: &CallClasses, captures: &Captures, call: CallIdx) -> u8 {
    match (classes.drain(call), trace.calls.kind[call.index()]) {
        (_, ApiKind::Profiler) => 0,
        (_, ApiKind::ModuleLoad) => 1,
        (_, ApiKind::GraphBuild) => 2,
        (Some(Cause::Allocation), _) => 3,
        (Some(_), _) => 4,
        (None, _) if captures.contains(call) => 2,
        // It does not wait for the device, and yet a pool that grows keeps its caller for milliseconds.
        (None, ApiKind::AllocAsync) => 3,
        (None, kind) if kind.submits() => 5,
        (None, _) => 6,
    }
}

impl HostTimeline {
    pub(super) fn new(trace: &Trace, classes: &CallClasses, captures: &Captures) -> Self {
        let slices = trace.calls.len() + trace.threads.len();
        let mut timeline = Self {
            starts: Vec::with_capacity(slices),
            kinds: Vec::with_capacity(slices),
            calls: Vec::with_capacity(slices),
            offsets: vec![0],
        };
        let overheads = Overheads::new(trace);
        for index in 0..trace.threads.len() {
            let thread = ThreadIdx::from_index(index);
            let overheads = overheads.of(thread, trace.threads[index].process);
            timeline.thread(trace, thread, &overheads, |call| rank(trace, classes, captures, call));
            timeline.offsets.push(timeline.starts.len());
        }
        timeline
    }

    /// For moments that come in order of time on each thread.
    pub(super) fn reader<'a>(&'a self, trace: &'a Trace) -> TimelineReader<'a> {
        TimelineReader { timeline: self, ends: &trace.calls.end, places: Places::new(trace.threads.len()) }
    }

    fn thread(&mut self, trace: &Trace, thread: ThreadIdx, overheads: &[(Interval, u8)], rank: impl Fn(CallIdx) -> u8) {
        let from = self.starts.len();
        let mut open: BinaryHeap<Reverse<Open>> = BinaryHeap::new();
        let mut overheads = overheads.iter().copied().peekable();
        self.push(from, Ns::MIN, None);
        for call in trace.thread_calls(thread) {
            let interval = trace.calls.interval(call);
            while let Some((overhead, rank)) = overheads.next_if(|(overhead, _)| overhead.start <= interval.start) {
                self.open(from, &mut open, overhead.start, Open { rank, order: NO_CALL, end: overhead.end });
            }
            let rank = rank(call);
            self.open(from, &mut open, interval.start, Open { rank, order: call.0, end: interval.end });
        }
        for (overhead, rank) in overheads {
            self.open(from, &mut open, overhead.start, Open { rank, order: NO_CALL, end: overhead.end });
        }
        self.close_until(from, &mut open, Ns::MAX);
    }

    /// Lets what ended by `start` end, then opens `new`.
    fn open(&mut self, from: usize, open: &mut BinaryHeap<Reverse<Open>>, start: Ns, new: Open) {
        self.close_until(from, open, start);
        if new.end > start {
            open.push(Reverse(new));
            self.push(from, start, open.peek().map(|top| top.0));
        }
    }

    /// Only the end of what outranks all else changes the slice, so what is covered may stay until it is on top.
    fn close_until(&mut self, from: usize, open: &mut BinaryHeap<Reverse<Open>>, moment: Ns) {
        while let Some(end) = open.peek().map(|top| top.0.end).filter(|&end| end <= moment) {
            while open.peek().is_some_and(|top| top.0.end <= end) {
                open.pop();
            }
            self.push(from, end, open.peek().map(|top| top.0));
        }
    }

    fn push(&mut self, from: usize, start: Ns, top: Option<Open>) {
        let kind = top.map_or(SegmentKind::HostCode, |top| RANKS[usize::from(top.rank)]);
        let call = top.map_or(NO_CALL, |top| top.order);
        if top.is_none() && self.starts.len() > from && self.calls.last() != Some(&NO_CALL) {
            // The call of the last slice returns now, and that says it.
            return;
        }
        if self.starts.len() > from && self.starts.last() == Some(&start) {
            self.starts.pop();
            self.kinds.pop();
            self.calls.pop();
        }
        if self.starts.len() > from && self.kinds.last() == Some(&kind) && self.calls.last() == Some(&call) {
            return;
        }
        self.starts.push(start);
        self.kinds.push(kind);
        self.calls.push(call);
    }
}

/// Reads a [`HostTimeline`].
pub(super) struct TimelineReader<'a> {
    timeline: &'a HostTimeline,
    /// When each call returned.
    ends: &'a [Ns],
    places: Places,
}

impl TimelineReader<'_> {
    /// Visits the slices of `thread` inside `within`, which tile it, in order.
    #[inline]
    pub(super) fn visit(&self, thread: ThreadIdx, within: Interval, mut visit: impl FnMut(Slice)) {
        if within.is_empty() {
            return;
        }
        let offsets = &self.timeline.offsets;
        let lane = offsets[thread.index()]..offsets[thread.index() + 1];
        let (starts, kinds, calls) =
            (&self.timeline.starts[lane.clone()], &self.timeline.kinds[lane.clone()], &self.timeline.calls[lane]);
        let mut piece = |start, end, kind, call| {
            let interval = Interval::new(start, end).intersect(within);
            if !interval.is_empty() {
                visit(Slice { interval, kind, call });
            }
        };
        // The first slice of a lane starts before any moment.
        let first = self.places.partition_point(thread.index(), starts, |&start| start <= within.start);
        for at in first.saturating_sub(1)..starts.len() {
            let start = starts[at];
            if start >= within.end {
                break;
            }
            let next = starts.get(at + 1).copied().unwrap_or(Ns::MAX);
            if calls[at] == NO_CALL {
                piece(start, next, kinds[at], None);
            } else {
                let end = self.ends[calls[at] as usize].min(next);
                piece(start, end, kinds[at], Some(CallIdx(calls[at])));
                piece(end, next, SegmentKind::HostCode, None);
            }
        }
    }
}

/// Overhead that keeps threads from working, as positions by thread and, where the source names none, by process.
struct Overheads<'t> {
    overheads: &'t [Overhead],
    by_thread: Vec<Vec<u32>>,
    by_process: Vec<Vec<u32>>,
}

/// The rank of an overhead among what is open on a thread.
fn overhead_rank(kind: OverheadKind) -> Option<u8> {
    if kind.is_profiler() {
        Some(0)
    } else if kind.is_loading() {
        Some(1)
    } else {
        None
    }
}

impl<'t> Overheads<'t> {
    fn new(trace: &'t Trace) -> Self {
        let mut by_thread = vec![Vec::new(); trace.threads.len()];
        let mut by_process = vec![Vec::new(); trace.processes.len()];
        for (index, overhead) in trace.overheads.iter().enumerate() {
            if overhead_rank(overhead.kind).is_some() {
                match overhead.thread {
                    Some(thread) => by_thread[thread.index()].push(index as u32),
                    None => by_process[overhead.process.index()].push(index as u32),
                }
            }
        }
        Self { overheads: &trace.overheads, by_thread, by_process }
    }

    /// What touches a thread, with its rank, sorted by start.
    fn of(&self, thread: ThreadIdx, process: ProcessIdx) -> Vec<(Interval, u8)> {
        let rows = self.by_thread[thread.index()].iter().chain(&self.by_process[process.index()]);
        let overheads = rows.map(|&row| &self.overheads[row as usize]);
        let mut found: Vec<(Interval, u8)> =
            overheads.filter_map(|overhead| Some((overhead.interval, overhead_rank(overhead.kind)?))).collect();
        found.sort();
        found
    }
}

/// Finds the innermost range at a moment.
pub(super) struct RangeStacks {
    /// For each range the one that was innermost when it began, `u32::MAX` for none.
    parents: Vec<u32>,
}

impl RangeStacks {
    pub(super) fn new(trace: &Trace) -> Self {
        let mut parents = vec![u32::MAX; trace.ranges.len()];
        let mut stack: Vec<u32> = Vec::new();
        for thread in &trace.threads {
            stack.clear();
            for index in thread.ranges.clone() {
                let start = trace.ranges[index as usize].interval.start;
                while stack.last().is_some_and(|&top| trace.ranges[top as usize].interval.end <= start) {
                    stack.pop();
                }
                parents[index as usize] = stack.last().copied().unwrap_or(u32::MAX);
                stack.push(index);
            }
        }
        Self { parents }
    }

    /// Of the ranges of `thread` that are open at `moment` the one that began last.
    pub(super) fn innermost(&self, trace: &Trace, thread: ThreadIdx, moment: Ns) -> Option<RangeIdx> {
        let begun = trace.thread_ranges(thread).partition_point(|range| range.interval.start <= moment);
        self.innermost_of(trace, thread, begun, moment)
    }

    /// For moments that come in order of time on each thread.
    pub(super) fn reader(&self, trace: &Trace) -> RangeReader<'_> {
        RangeReader { stacks: self, places: Places::new(trace.threads.len()) }
    }

    /// The same, of the first `begun` ranges of the thread.
    fn innermost_of(&self, trace: &Trace, thread: ThreadIdx, begun: usize, moment: Ns) -> Option<RangeIdx> {
        let mut at = trace.threads[thread.index()].ranges.start + begun.checked_sub(1)? as u32;
        while at != u32::MAX {
            if trace.ranges[at as usize].interval.contains(moment) {
                return Some(RangeIdx(at));
            }
            at = self.parents[at as usize];
        }
        None
    }
}

/// Reads [`RangeStacks`].
pub(super) struct RangeReader<'a> {
    stacks: &'a RangeStacks,
    places: Places,
}

impl RangeReader<'_> {
    /// Of the ranges of `thread` that are open at `moment` the one that began last.
    pub(super) fn innermost(&self, trace: &Trace, thread: ThreadIdx, moment: Ns) -> Option<RangeIdx> {
        let ranges = trace.thread_ranges(thread);
        let begun = self.places.partition_point(thread.index(), ranges, |range| range.interval.start <= moment);
        self.stacks.innermost_of(trace, thread, begun, moment)
    }
}
