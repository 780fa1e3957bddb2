//! A part of a recording, with what its analysis has to know of the rest.
//!
//! A part is asked for as an interval, and reaches [`SURROUNDINGS`] further on both sides. It holds
//!
//! * every event that touches its reach,
//! * every op, call, synchronisation, event record and host function that has the correlation id of one of those,
//! * the records of the events that its synchronisations wait for,
//! * where it holds the body of a conditional node, which names no launch, the last graph launches before it,
//! * the calls that begin and end the stream captures that are open in it,
//! * the ranges in which a call of it began.
//!
//! Names and lanes stay as they are in the whole recording, and so do its start, from which time is counted, and its
//! end. What else there is, [`Rest`] tells. Whether events come one by one or lie in a trace, the part is the same.

mod cut;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::mem;

use rustc_hash::{FxHashMap, FxHashSet};

use super::api::{ApiKind, CaptureEdge};
use super::ids::{CorrelationId, DeviceIdx, GraphId, NameId, ProcessIdx, ThreadIdx};
use super::model::Trace;
use super::names::Names;
use super::time::{Interval, Ns};

/// How far a part reaches beyond the interval that is asked for: 1 s. What is usual in the program is taken from there
/// alone. Whatever else a bubble in the interval has to do with lies there or is joined to it by its correlation id; but
/// of a call that began before, it is not known how much work that had ended before it found enqueued, and of any call not
/// how much that was launched before all that is here and ran after it.
pub const SURROUNDINGS: Ns = Ns::from_us(1_000_000);

/// So many graph launches before a part are kept for conditional nodes' bodies in it: more than can be enqueued at once
/// in practice, as each holds up the host when the device's queue is full (1,024 launches).
const GRAPH_LAUNCHES: usize = 1_024;

/// What is known of a recording beyond the events that a trace holds of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rest {
    /// The part of which every event is in the trace.
    pub reach: Interval,
    /// How many events are not in the trace.
    pub events: u64,
    /// From the first op's start to the last one's end in the whole recording.
    pub work: Interval,
    /// What ops that are not in the trace are named, where they ran and on which side of [`Self::reach`].
    pub ops: FxHashSet<(ProcessIdx, DeviceIdx, NameId, Side)>,
    /// The graphs that those of them are of that began before.
    pub graphs_before: FxHashSet<(ProcessIdx, GraphId)>,
    /// What calls that are not in the trace are named, and what they returned.
    pub calls: FxHashSet<(ProcessIdx, NameId, i32)>,
    /// How many calls of each thread are not in the trace.
    pub thread_calls: BTreeMap<ThreadIdx, u64>,
}

/// On which side of what a part reaches to something began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before it.
    Before,
    /// After it.
    After,
}

impl Rest {
    /// Whether ops that are not in the trace ran on a device, on that side of [`Self::reach`].
    pub fn worked(&self, device: DeviceIdx, side: Side) -> bool {
        self.ops.iter().any(|&(_, of, _, on)| (of, on) == (device, side))
    }

    /// Takes account of an op that is not in the trace.
    fn op(&mut self, op: &OpSeen, side: Side) {
        self.events += 1;
        self.ops.insert((op.process, op.device, op.name, side));
        if side == Side::Before && op.graph.is_some() {
            self.graphs_before.insert((op.process, op.graph));
        }
    }

    /// Takes account of a call that is not in the trace.
    fn call(&mut self, call: &CallSeen) {
        self.events += 1;
        self.calls.insert((call.process, call.name, call.result));
        *self.thread_calls.entry(call.thread).or_default() += 1;
    }

    /// Takes account of anything else, unless the trace has it.
    pub(super) fn other(&mut self, has: bool) -> bool {
        self.events += u64::from(!has);
        has
    }

    /// Follows devices and threads to their new positions.
    pub(super) fn reorder(&mut self, devices: &[u32], threads: &[u32]) {
        let ops = mem::take(&mut self.ops).into_iter();
        self.ops = ops
            .map(|(process, device, name, side)| (process, DeviceIdx(devices[device.index()]), name, side))
            .collect();
        let calls = mem::take(&mut self.thread_calls).into_iter();
        self.thread_calls = calls.map(|(thread, calls)| (ThreadIdx(threads[thread.index()]), calls)).collect();
    }
}

impl Trace {
    /// The calls of the recording that are not in the trace, each kind once: whose, their name, and what they returned.
    pub fn calls_elsewhere(&self) -> impl Iterator<Item = (ProcessIdx, &str, i32)> {
        let calls = self.rest.iter().flat_map(|rest| &rest.calls);
        calls.map(|&(process, name, result)| (process, self.names.get(name), result))
    }
}

/// When something was, and to what it belongs. Times count from any moment, but always from the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) process: ProcessIdx,
    pub(super) start: i64,
    /// [`Self::OPEN`] of an op that was still running at the end.
    pub(super) end: i64,
    /// [`CorrelationId::NONE`] for what belongs to nothing else.
    pub(super) id: CorrelationId,
}

impl Seen {
    /// The end of what was still running at the end. No record that a trace takes has such a time.
    pub(super) const OPEN: i64 = i64::MAX;

    fn of(process: ProcessIdx, interval: Interval, id: CorrelationId) -> Self {
        Self { process, start: interval.start.0, end: interval.end.0, id }
    }
}

/// What matters of an op.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpSeen {
    pub(super) process: ProcessIdx,
    pub(super) device: DeviceIdx,
    pub(super) name: NameId,
    pub(super) graph: GraphId,
}

/// What matters of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallSeen {
    pub(super) process: ProcessIdx,
    pub(super) thread: ThreadIdx,
    pub(super) name: NameId,
    pub(super) result: i32,
}

/// What matters of a synchronisation: which event's record it waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventAwaited {
    pub(super) event_sync: Option<u64>,
    pub(super) record: CorrelationId,
    pub(super) event: Option<u32>,
}

/// What matters of an event's record.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordSeen {
    pub(super) process: ProcessIdx,
    pub(super) id: CorrelationId,
    pub(super) event_sync: Option<u64>,
    pub(super) event: u32,
}

/// From the first to the last moment of any record, where there is any, and of any op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    whole: Option<(i64, i64)>,
    work: Option<(i64, i64)>,
    /// Whether some op was still running at the end.
    unfinished: bool,
    /// How many events there are.
    events: u64,
}

impl Extent {
    pub(super) fn include(&mut self, seen: &Seen) {
        self.events += 1;
        widen(&mut self.whole, seen);
    }

    pub(super) fn include_op(&mut self, seen: &Seen) {
        self.include(seen);
        widen(&mut self.work, seen);
        self.unfinished |= seen.end == Seen::OPEN;
    }

    /// From the first op's start to the last one's end, from the first moment on.
    fn work(&self) -> Interval {
        let (Some((origin, last)), Some((start, end))) = (self.whole, self.work) else { return Interval::default() };
        let end = if self.unfinished { last } else { end };
        Interval::new(Ns(start.saturating_sub(origin)), Ns(end.saturating_sub(origin)))
    }
}

fn widen(extent: &mut Option<(i64, i64)>, seen: &Seen) {
    let (start, end) = extent.unwrap_or((i64::MAX, i64::MIN));
    let last = if seen.end == Seen::OPEN { seen.start } else { seen.end };
    *extent = Some((start.min(seen.start), end.max(last)));
}

/// What a call does, where that matters for a part that it does not touch.
#[derive(Clone, Copy, Debug)]
enum Telling {
    Nothing,
    GraphLaunch,
    Capture(CaptureEdge),
}

impl Telling {
    fn of(name: &str) -> Self {
        match CaptureEdge::of(name) {
            Some(edge) => Self::Capture(edge),
            None if ApiKind::of(name) == ApiKind::GraphLaunch => Self::GraphLaunch,
            None => Self::Nothing,
        }
    }
}

/// A call that begins or ends a stream capture.
#[derive(Clone, Copy, Debug)]
struct Edge {
    edge: CaptureEdge,
    seen: Seen,
    call: CallSeen,
}

/// Which events belong to a part: all are shown to it once, and then it can tell.
#[derive(Debug)]
pub(crate) struct Choice {
    extent: Extent,
    /// The first and the last moment that the part reaches to; the other way round when there is none.
    reach: (i64, i64),
    ids: FxHashSet<(ProcessIdx, CorrelationId)>,
    event_syncs: FxHashSet<(ProcessIdx, u64)>,
    records: FxHashSet<(ProcessIdx, CorrelationId)>,
    /// Events that are awaited by waits that do not tell which of their records they mean.
    handles: FxHashSet<(ProcessIdx, u32)>,
    /// Processes with the body of a conditional node in the part.
    with_bodies: BTreeSet<ProcessIdx>,
    /// The last graph launches of each process before the part.
    graph_launches: FxHashMap<ProcessIdx, BinaryHeap<Reverse<(i64, CorrelationId)>>>,
    /// Every call that begins or ends a stream capture.
    capture_edges: Vec<Edge>,
    /// Whether there are ranges beyond what the part reaches to.
    ranges_beyond: bool,
    /// When calls of the part began that began beyond it, of each thread.
    begun_beyond: FxHashMap<ThreadIdx, Vec<i64>>,
    /// What calls of each name do, as far as known.
    by_name: Vec<Option<Telling>>,
    touching: u64,
}

impl Choice {
    /// For the part from one moment to another, counted from the first of the `extent`, with so much around.
    pub(crate) fn new(extent: Extent, from: Option<Ns>, to: Option<Ns>, around: Ns) -> Self {
        let (origin, end) = extent.whole.unwrap_or_default();
        let last = end.saturating_sub(origin);
        let (from, to) = (from.map_or(0, |from| from.0.max(0)), to.map_or(last, |to| to.0.min(last)));
        let reach = if from < to {
            let at = |offset: i64| origin.saturating_add(offset);
            (at(from.saturating_sub(around.0)), at(to.saturating_add(around.0)))
        } else {
            (i64::MAX, i64::MIN)
        };
        Self {
            extent,
            reach,
            ids: FxHashSet::default(),
            event_syncs: FxHashSet::default(),
            records: FxHashSet::default(),
            handles: FxHashSet::default(),
            with_bodies: BTreeSet::new(),
            graph_launches: FxHashMap::default(),
            capture_edges: Vec::new(),
            ranges_beyond: false,
            begun_beyond: FxHashMap::default(),
            by_name: Vec::new(),
            touching: 0,
        }
    }

    /// The first and the last moment of all events.
    pub(super) fn bounds(&self) -> Option<(i64, i64)> {
        self.extent.whole
    }

    /// How many events touch the part, of how many.
    pub(crate) fn share(&self) -> (u64, u64) {
        (self.touching, self.extent.events)
    }

    /// What is known of the rest before anything of it is seen.
    pub(super) fn rest(&self) -> Rest {
        let (origin, end) = self.extent.whole.unwrap_or_default();
        let whole = Interval::new(Ns::ZERO, Ns(end.saturating_sub(origin)));
        let at = |moment: i64| Ns(moment.saturating_sub(origin));
        let reach = if self.reach.0 <= self.reach.1 {
            Interval::new(at(self.reach.0), at(self.reach.1)).intersect(whole)
        } else {
            Interval::default()
        };
        Rest { reach, work: self.extent.work(), ..Rest::default() }
    }

    fn touches(&self, seen: &Seen) -> bool {
        seen.start <= self.reach.1 && seen.end >= self.reach.0
    }

    /// Looks at an event that belongs to others by its correlation id, if it has one.
    pub(super) fn look(&mut self, seen: &Seen) -> bool {
        let touches = self.touches(seen);
        if touches {
            self.touching += 1;
            if seen.id.is_some() {
                self.ids.insert((seen.process, seen.id));
            }
        }
        touches
    }

    pub(super) fn look_at_op(&mut self, seen: &Seen, graph: GraphId) {
        if self.look(seen) && graph.is_some() && !seen.id.is_some() {
            self.with_bodies.insert(seen.process);
        }
    }

    pub(super) fn look_at_call(&mut self, seen: &Seen, call: &CallSeen, names: &Names) {
        let touches = self.look(seen);
        if self.by_name.len() <= call.name.index() {
            self.by_name.resize(names.len().max(call.name.index() + 1), None);
        }
        let telling = *self.by_name[call.name.index()].get_or_insert_with(|| Telling::of(names.get(call.name)));
        match telling {
            Telling::Capture(edge) => self.capture_edges.push(Edge { edge, seen: *seen, call: *call }),
            Telling::GraphLaunch if !touches && seen.start < self.reach.0 && seen.id.is_some() => {
                let latest = self.graph_launches.entry(seen.process).or_default();
                latest.push(Reverse((seen.start, seen.id)));
                if latest.len() > GRAPH_LAUNCHES {
                    latest.pop();
                }
            }
            Telling::GraphLaunch | Telling::Nothing => {}
        }
    }

    pub(super) fn look_at_sync(&mut self, seen: &Seen, awaited: &EventAwaited) {
        if !self.look(seen) {
            return;
        }
        if let Some(id) = awaited.event_sync {
            self.event_syncs.insert((seen.process, id));
        } else if awaited.record.is_some() {
            self.records.insert((seen.process, awaited.record));
        } else if let Some(event) = awaited.event {
            self.handles.insert((seen.process, event));
        }
    }

    pub(super) fn look_at_range(&mut self, seen: &Seen) {
        self.ranges_beyond |= !self.look(seen);
    }

    /// Whether it has to be shown each call once more, to [`Self::begins`].
    pub(crate) fn asks_again(&self) -> bool {
        self.ranges_beyond && !self.ids.is_empty()
    }

    /// Looks where a call began, of which it can tell by now whether the part has it.
    pub(super) fn begins(&mut self, seen: &Seen, thread: ThreadIdx) {
        let beyond = seen.start < self.reach.0 || seen.start > self.reach.1;
        if beyond && self.has(seen) {
            self.begun_beyond.entry(thread).or_default().push(seen.start);
        }
    }

    /// Ends the second look at calls.
    pub(super) fn settle_begins(&mut self) {
        self.begun_beyond.values_mut().for_each(|starts| starts.sort_unstable());
    }

    /// Ends the look at all events.
    pub(super) fn settle(&mut self) {
        for process in &self.with_bodies {
            let latest = self.graph_launches.remove(process).unwrap_or_default();
            self.ids.extend(latest.into_iter().map(|Reverse((_, id))| (*process, id)));
        }
        self.graph_launches = FxHashMap::default();
        self.settle_captures();
    }

    /// Finds the calls that begin and end the captures that are open in the part. Of those of which the recording has only
    /// one end, the first that begins and the last that ends say as much as all.
    fn settle_captures(&mut self) {
        let mut edges = mem::take(&mut self.capture_edges);
        edges.sort_by_key(|edge| (edge.call.thread, edge.seen.start, Reverse(edge.seen.end), edge.seen.id));
        let mut first_begun: BTreeMap<ProcessIdx, Seen> = BTreeMap::new();
        let mut last_ended: BTreeMap<ProcessIdx, Seen> = BTreeMap::new();
        for edges in edges.chunk_by(|a, b| a.call.thread == b.call.thread) {
            let mut open: Vec<Seen> = Vec::new();
            let mut outer_end = i64::MIN;
            for Edge { edge, seen, call } in edges {
                // A driver call inside a runtime call is part of that.
                if seen.end <= outer_end {
                    continue;
                }
                outer_end = seen.end;
                match edge {
                    CaptureEdge::Begin if call.result == 0 => open.push(*seen),
                    CaptureEdge::Begin => {}
                    CaptureEdge::End => match open.pop() {
                        Some(begin) if begin.start <= self.reach.1 && seen.end >= self.reach.0 => {
                            self.ids.extend([(begin.process, begin.id), (seen.process, seen.id)]);
                        }
                        None if call.result == 0 => {
                            let last = last_ended.entry(seen.process).or_insert(*seen);
                            if (last.start, last.id) < (seen.start, seen.id) {
                                *last = *seen;
                            }
                        }
                        Some(_) | None => {}
                    },
                }
            }
            if let Some(begun) = open.first() {
                let first = first_begun.entry(begun.process).or_insert(*begun);
                if (begun.start, begun.id) < (first.start, first.id) {
                    *first = *begun;
                }
            }
        }
        self.ids.extend(first_begun.values().chain(last_ended.values()).map(|seen| (seen.process, seen.id)));
        self.ids.retain(|(_, id)| id.is_some());
    }

    /// Whether the part has an event that was looked at.
    pub(super) fn has(&self, seen: &Seen) -> bool {
        self.touches(seen) || (seen.id.is_some() && self.ids.contains(&(seen.process, seen.id)))
    }

    /// Whether the part has a range.
    pub(super) fn has_range(&self, seen: &Seen, thread: ThreadIdx) -> bool {
        let begun_in_it = |starts: &Vec<i64>| {
            let first = starts.partition_point(|&start| start < seen.start);
            starts.get(first).is_some_and(|&start| start <= seen.end)
        };
        self.touches(seen) || self.begun_beyond.get(&thread).is_some_and(begun_in_it)
    }

    /// Whether the part has an op; what it has not is taken account of.
    pub(super) fn has_op(&self, seen: &Seen, op: &OpSeen, rest: &mut Rest) -> bool {
        let has = self.has(seen);
        if !has {
            rest.op(op, if seen.start < self.reach.0 { Side::Before } else { Side::After });
        }
        has
    }

    /// Whether the part has a call; what it has not is taken account of.
    pub(super) fn has_call(&self, seen: &Seen, call: &CallSeen, rest: &mut Rest) -> bool {
        let has = self.has(seen);
        if !has {
            rest.call(call);
        }
        has
    }

    /// Whether the part has the record of an event.
    pub(super) fn has_record(&self, record: &RecordSeen) -> bool {
        let by_id = (record.process, record.id);
        let known = |ids: &FxHashSet<_>| record.id.is_some() && ids.contains(&by_id);
        known(&self.ids)
            || known(&self.records)
            || record.event_sync.is_some_and(|id| self.event_syncs.contains(&(record.process, id)))
            || self.handles.contains(&(record.process, record.event))
    }
}
