//! The rules again, tick by tick and by looking at every record each time. Slow, and nothing shared with the analysis
//! but the trace model and the list of blocking calls.

use std::collections::{BTreeMap, BTreeSet};

use bubblescope::analysis::waits::{Awaited, Target, WaitCause, Waits};
use bubblescope::analysis::{Cause, Confidence, Constants, Rule, SegmentKind};
use bubblescope::trace::{
    ApiKind, CallIdx, Detail, DeviceIdx, MemoryKind, OpIdx, OpKind, ProcessIdx, RangeIdx, StreamKind, ThreadIdx, Trace,
};

/// A segment: start, end, kind, call, range.
pub(crate) type Piece = (i64, i64, SegmentKind, Option<CallIdx>, Option<RangeIdx>);

#[derive(Debug, PartialEq)]
pub(crate) struct PlainBubble {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) before: OpIdx,
    pub(crate) after: OpIdx,
    pub(crate) root: (Cause, Confidence, Rule, Option<CallIdx>, Option<RangeIdx>),
    pub(crate) drained_by: Option<(CallIdx, Cause, Confidence)>,
    pub(crate) refill_of: Option<CallIdx>,
    pub(crate) segments: Vec<Piece>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct PlainDevice {
    pub(crate) device: DeviceIdx,
    pub(crate) span: (i64, i64),
    /// Compute only, overlapped, exposed copy, idle, exposed collectives.
    pub(crate) partition: [i64; 5],
    pub(crate) ops: u64,
    pub(crate) latency: i64,
    pub(crate) bubbles: Vec<PlainBubble>,
    /// Per device that came last to a collective: the device, collectives, wait; then the whole wait.
    pub(crate) peers: (Vec<(u32, u64, i64)>, i64),
    /// Per stream: ops, busy, gap.
    pub(crate) streams: Vec<(u32, u64, i64, i64)>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct PlainRow {
    pub(crate) calls: Vec<CallIdx>,
    /// Blocked, useful, idle, drained, caused, refill.
    pub(crate) sums: [i64; 6],
    pub(crate) counts: [u64; 2],
    pub(crate) longest: i64,
    pub(crate) ahead_most: i64,
    pub(crate) ahead_ops_median: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) devices: Vec<PlainDevice>,
    pub(crate) rows: BTreeMap<(String, Option<String>), PlainRow>,
    pub(crate) orphans: u64,
    pub(crate) without_ops: u64,
    pub(crate) negative: u64,
    pub(crate) profiler: i64,
}

pub(crate) struct Oracle<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) waits: &'a Waits,
    pub(crate) constants: &'a Constants,
    pub(crate) window: (i64, i64),
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort();
    if values.is_empty() { None } else { Some(values[(values.len() - 1) / 2]) }
}

impl Oracle<'_> {
    fn op(&self, op: OpIdx) -> (i64, i64) {
        (self.trace.ops.start[op.index()].0, self.trace.ops.end[op.index()].0)
    }

    fn call(&self, call: CallIdx) -> (i64, i64) {
        (self.trace.calls.start[call.index()].0, self.trace.calls.end[call.index()].0)
    }

    fn inside(&self, (start, end): (i64, i64)) -> bool {
        let (from, to) = self.window;
        if start == end { from <= start && start < to } else { start < to && end > from }
    }

    fn clipped(&self, (start, end): (i64, i64)) -> (i64, i64) {
        (start.max(self.window.0), end.min(self.window.1))
    }

    /// The ops of a device in the window, with what the window leaves of them.
    fn ops_of(&self, device: DeviceIdx) -> Vec<(OpIdx, i64, i64)> {
        let all = self.trace.ops.indices();
        let on = all.filter(|&op| self.trace.op_device(op) == device && self.inside(self.op(op)));
        on.map(|op| {
            let (start, end) = self.clipped(self.op(op));
            (op, start, end)
        })
        .collect()
    }

    /// From the first op of a device to its last one.
    fn span_of(&self, device: DeviceIdx) -> Option<(i64, i64)> {
        let ops = self.ops_of(device);
        Some((ops.iter().map(|op| op.1).min()?, ops.iter().map(|op| op.2).max()?))
    }

    pub(crate) fn run(&self) -> Plain {
        let trace = self.trace;
        let devices: Vec<PlainDevice> =
            (0..trace.devices.len()).filter_map(|index| self.device(DeviceIdx::from_index(index))).collect();
        let begun = |op: &OpIdx| (self.window.0..self.window.1).contains(&self.op(*op).0);
        let launched_later = |op: &OpIdx| trace.ops.launch(*op).is_some_and(|call| self.call(call).0 > self.op(*op).0);
        let profiler = |tick: i64| {
            trace.overheads.iter().any(|overhead| {
                overhead.kind.is_profiler() && overhead.interval.start.0 <= tick && tick < overhead.interval.end.0
            })
        };
        let idle_ticks =
            devices.iter().flat_map(|device| device.bubbles.iter().flat_map(|bubble| bubble.start..bubble.end));
        Plain {
            orphans: trace.ops.indices().filter(begun).filter(|&op| trace.ops.launch(op).is_none()).count() as u64,
            without_ops: self.without_ops(),
            negative: trace.ops.indices().filter(begun).filter(launched_later).count() as u64,
            profiler: idle_ticks.filter(|&tick| profiler(tick)).count() as i64,
            rows: self.rows(&devices),
            devices,
        }
    }

    fn device(&self, device: DeviceIdx) -> Option<PlainDevice> {
        let trace = self.trace;
        let ops = self.ops_of(device);
        let from = ops.iter().map(|op| op.1).min()?;
        let to = ops.iter().map(|op| op.2).max()?;
        let mut partition = [0; 5];
        let mut idle = Vec::new();
        for tick in from..to {
            let running = |want: &dyn Fn(OpIdx) -> bool| {
                ops.iter().any(|&(op, start, end)| start <= tick && tick < end && want(op))
            };
            let copy = |op: OpIdx| matches!(trace.ops.kind[op.index()], OpKind::Copy | OpKind::Memset);
            let collective = |op: OpIdx| !copy(op) && trace.op_name(op).contains("nccl");
            let (kernels, copies) = (running(&|op| !copy(op)), running(&copy));
            partition[match (kernels, copies) {
                (true, false) => 0,
                (true, true) => 1,
                (false, true) => 2,
                (false, false) => 3,
            }] += 1;
            if running(&collective) && !running(&|op| !copy(op) && !collective(op)) {
                partition[4] += 1;
            }
            if !kernels && !copies {
                idle.push(tick);
            }
        }
        let mut gaps: Vec<(i64, i64)> = Vec::new();
        for tick in idle {
            match gaps.last_mut() {
                Some(last) if last.1 == tick => last.1 += 1,
                _ => gaps.push((tick, tick + 1)),
            }
        }
        let next: Vec<OpIdx> = gaps.iter().map(|gap| self.next_op(&ops, gap.1)).collect();
        let latency = self.latency(&gaps, &next);
        let mut refill = None;
        let mut bubbles = Vec::new();
        for (index, (&(start, end), &after)) in gaps.iter().zip(&next).enumerate() {
            let last = index.checked_sub(1).map(|last| (gaps[last].1, next[last]));
            bubbles.push(self.bubble(&ops, (start, end), after, latency, last, &mut refill));
        }
        let lanes: BTreeSet<u32> = ops.iter().map(|&(op, ..)| trace.ops.stream[op.index()].0).collect();
        let streams = lanes.into_iter().map(|lane| {
            let mine: Vec<_> = ops.iter().filter(|&&(op, ..)| trace.ops.stream[op.index()].0 == lane).collect();
            let from = mine.iter().map(|op| op.1).min().unwrap();
            let to = mine.iter().map(|op| op.2).max().unwrap();
            let busy = (from..to).filter(|tick| mine.iter().any(|op| op.1 <= *tick && *tick < op.2)).count() as i64;
            (lane, mine.len() as u64, busy, to - from - busy)
        });
        Some(PlainDevice {
            device,
            span: (from, to),
            partition,
            ops: ops.len() as u64,
            latency,
            bubbles,
            peers: self.peers(device),
            streams: streams.collect(),
        })
    }

    fn collective(&self, op: OpIdx) -> bool {
        !matches!(self.trace.ops.kind[op.index()], OpKind::Copy | OpKind::Memset)
            && self.trace.op_name(op).contains("nccl")
    }

    /// Every collective: the ops of one number on streams that always run them together; where that leaves a stream over,
    /// of all ops, of which a device has one at a time, those that run when one of them ends.
    fn collectives(&self) -> Vec<Vec<OpIdx>> {
        let trace = self.trace;
        let all: Vec<OpIdx> = trace.ops.indices().filter(|&op| self.collective(op)).collect();
        let names: BTreeSet<&str> = all.iter().map(|&op| trace.op_name(op)).collect();
        let mut found = Vec::new();
        for name in names {
            let mut lanes: BTreeMap<(DeviceIdx, u32), Vec<OpIdx>> = BTreeMap::new();
            for &op in all.iter().filter(|&&op| trace.op_name(op) == name) {
                lanes.entry((trace.op_device(op), trace.ops.stream[op.index()].0)).or_default().push(op);
            }
            lanes.values_mut().for_each(|lane| lane.sort_by_key(|&op| self.op(op).0));
            let instant = |a: OpIdx, b: OpIdx| self.op(a).0.max(self.op(b).0) < self.op(a).1.min(self.op(b).1);
            let together = |a: &(DeviceIdx, u32), b: &(DeviceIdx, u32)| {
                a.0 != b.0
                    && lanes[a].len() == lanes[b].len()
                    && (0..lanes[a].len()).all(|at| instant(lanes[a][at], lanes[b][at]))
            };
            let mut taken: BTreeSet<(DeviceIdx, u32)> = BTreeSet::new();
            let mut numbered: Vec<Vec<OpIdx>> = Vec::new();
            for first in lanes.keys() {
                let mut group = vec![*first];
                for lane in lanes.keys().filter(|lane| *lane > first && !taken.contains(first) && !taken.contains(lane))
                {
                    if group.iter().all(|member| together(member, lane)) {
                        group.push(*lane);
                    }
                }
                if group.len() > 1 {
                    let members = |at: usize| group.iter().map(|lane| lanes[lane][at]).collect();
                    numbered.extend((0..lanes[first].len()).map(members));
                    taken.extend(group);
                }
            }
            if taken.len() == lanes.len() {
                found.extend(numbered);
                continue;
            }
            let mut left: BTreeMap<DeviceIdx, Vec<OpIdx>> = BTreeMap::new();
            for (lane, ops) in &lanes {
                left.entry(lane.0).or_default().extend(ops);
            }
            left.values_mut().for_each(|lane| lane.sort_by_key(|&op| self.op(op).0));
            for tick in all.iter().map(|&op| self.op(op).1).collect::<BTreeSet<i64>>() {
                // All that are over by this tick, one after the other. One that was behind a longer one is over long since.
                let over = |left: &BTreeMap<DeviceIdx, Vec<OpIdx>>| {
                    let fronts = left.values().filter_map(|lane| lane.first().copied());
                    fronts.filter(|&op| self.op(op).1 <= tick).min_by_key(|&op| self.op(op).1)
                };
                while let Some(over) = over(&left) {
                    let (start, end) = self.op(over);
                    let runs = |op: OpIdx| self.op(op).0 < end && start < end;
                    let mut members = Vec::new();
                    for lane in left.values_mut() {
                        if lane.first().is_some_and(|&op| op == over || runs(op)) {
                            members.push(lane.remove(0));
                        }
                    }
                    if members.len() > 1 {
                        found.push(members);
                    }
                }
            }
        }
        found
    }

    fn peers(&self, device: DeviceIdx) -> (Vec<(u32, u64, i64)>, i64) {
        let trace = self.trace;
        let mut waits: BTreeMap<u32, Vec<(i64, i64)>> = BTreeMap::new();
        for members in self.collectives() {
            let latest = members.iter().map(|&op| self.op(op).0).max().unwrap();
            let last =
                members.iter().filter(|&&op| self.op(op).0 == latest).map(|&op| trace.op_device(op)).min().unwrap();
            for &op in members.iter().filter(|&&op| trace.op_device(op) == device) {
                let (from, to) = self.clipped((self.op(op).0, latest));
                if from < to {
                    waits.entry(last.0).or_default().push((from, to));
                }
            }
        }
        let ticks =
            |waits: &[(i64, i64)]| waits.iter().flat_map(|wait| wait.0..wait.1).collect::<BTreeSet<i64>>().len() as i64;
        let all: Vec<(i64, i64)> = waits.values().flatten().copied().collect();
        (waits.iter().map(|(&peer, waits)| (peer, waits.len() as u64, ticks(waits))).collect(), ticks(&all))
    }

    fn next_op(&self, ops: &[(OpIdx, i64, i64)], end: i64) -> OpIdx {
        let trace = self.trace;
        let mut candidates: Vec<OpIdx> = ops.iter().filter(|op| op.1 == end).map(|op| op.0).collect();
        candidates.sort_by_key(|&op| {
            let launch = trace.ops.launch(op);
            (
                launch.is_none(),
                launch.map(|call| self.call(call).0),
                trace.ops.stream[op.index()],
                trace.ops.correlation[op.index()],
                op,
            )
        });
        candidates[0]
    }

    fn latency(&self, gaps: &[(i64, i64)], next: &[OpIdx]) -> i64 {
        let mut samples = Vec::new();
        for (&(start, end), &op) in gaps.iter().zip(next) {
            if let Some(call) = self.trace.ops.launch(op) {
                let launched = self.call(call).0;
                let slow = match self.trace.op_detail(op) {
                    Detail::Copy { from, to, .. } => from == MemoryKind::Pageable || to == MemoryKind::Pageable,
                    _ => false,
                };
                let slow = slow || self.drain_kind(call) == Some(Cause::BlockingCopy);
                if !slow && start <= launched && launched < end {
                    samples.push(end - launched);
                }
            }
        }
        if samples.len() < self.constants.latency_samples {
            return self.constants.latency_default.0;
        }
        median(samples).unwrap().clamp(self.constants.latency_min.0, self.constants.latency_max.0)
    }

    fn same_graph(&self, a: OpIdx, b: OpIdx) -> bool {
        let trace = self.trace;
        let id = trace.ops.correlation[a.index()];
        let launched =
            |op: OpIdx| self.linked(op).filter(|call| trace.calls.kind[call.index()] == ApiKind::GraphLaunch);
        if id.is_some() {
            let replay = trace.ops.graph[b.index()].is_some() || launched(b).is_some();
            return id == trace.ops.correlation[b.index()] && trace.op_process(a) == trace.op_process(b) && replay;
        }
        launched(a).is_some() && launched(a) == launched(b)
    }

    /// The launch of an op, found among all calls.
    pub(crate) fn linked(&self, op: OpIdx) -> Option<CallIdx> {
        let trace = self.trace;
        let calls = || trace.calls.indices().filter(|&call| trace.call_process(call) == trace.op_process(op));
        let id = trace.ops.correlation[op.index()];
        if id.is_some() {
            let same_id = calls().filter(|call| trace.calls.correlation[call.index()] == id);
            return same_id.min_by_key(|&call| (self.call(call).0, -self.call(call).1, call));
        }
        if !trace.ops.graph[op.index()].is_some() {
            return None;
        }
        let graphs: Vec<CallIdx> =
            calls().filter(|call| trace.calls.kind[call.index()] == ApiKind::GraphLaunch).collect();
        let around = |inner: CallIdx| {
            let thread = trace.calls.thread[inner.index()];
            let earlier = graphs.iter().filter(|&&call| call < inner && trace.calls.thread[call.index()] == thread);
            let last = earlier.copied().min_by_key(|&call| (-self.call(call).1, call));
            last.filter(|&call| self.call(call).1 >= self.call(inner).1)
        };
        let has_ops = |call: CallIdx| {
            let mut with_id = trace.ops.indices().filter(|op| trace.ops.correlation[op.index()].is_some());
            with_id.any(|op| self.linked(op) == Some(call))
        };
        let bare = graphs.iter().copied().filter(|&call| {
            around(call).is_none()
                && trace.calls.result[call.index()] == 0
                && !has_ops(call)
                && !graphs.iter().any(|&inner| around(inner) == Some(call) && has_ops(inner))
        });
        bare.filter(|&call| self.call(call).0 < self.op(op).0).max_by_key(|&call| (self.call(call).0, call))
    }

    /// What kind of drain a call can be.
    fn drain_kind(&self, call: CallIdx) -> Option<Cause> {
        if matches!(self.trace.calls.kind[call.index()], ApiKind::Alloc | ApiKind::Free) {
            return Some(Cause::Allocation);
        }
        let wait = self.waits.calls().iter().find(|wait| wait.call == call)?;
        Some(match wait.cause {
            WaitCause::BlockingCopy | WaitCause::PageableCopy | WaitCause::Memset => Cause::BlockingCopy,
            WaitCause::Free => Cause::Allocation,
            _ => Cause::Sync,
        })
    }

    fn bubble(
        &self,
        ops: &[(OpIdx, i64, i64)],
        (b0, b1): (i64, i64),
        after: OpIdx,
        latency: i64,
        last: Option<(i64, OpIdx)>,
        refill: &mut Option<CallIdx>,
    ) -> PlainBubble {
        let trace = self.trace;
        let enders: Vec<OpIdx> = ops.iter().filter(|op| op.2 == b0).map(|op| op.0).collect();
        let before = *enders
            .iter()
            .min_by_key(|&&op| {
                let other = trace.ops.stream[op.index()] != trace.ops.stream[after.index()];
                (!self.same_graph(op, after), other, op)
            })
            .unwrap();
        let in_graph = enders.iter().any(|&op| self.same_graph(op, after));
        if let Some((run, first)) = last {
            let launch = trace.ops.launch(first);
            let fed = ops.iter().any(|&(op, start, _)| {
                run < start && start <= b0 && trace.ops.launch(op).is_some() && trace.ops.launch(op) != launch
            });
            if fed {
                *refill = None;
            }
        }
        let bubble = |root: (Cause, Confidence, Rule, Option<CallIdx>), segments: Vec<Piece>| PlainBubble {
            start: b0,
            end: b1,
            before,
            after,
            root: (root.0, root.1, root.2, root.3, self.site(root.0, root.3, &segments)),
            drained_by: None,
            refill_of: None,
            segments,
        };
        let Some(launch) = trace.ops.launch(after) else {
            let segments = vec![(b0, b1, SegmentKind::Unattributed, None, None)];
            return bubble((Cause::Unattributed, Confidence::Guess, Rule::NoLaunch, None), segments);
        };
        let copies = |op: OpIdx| matches!(trace.ops.kind[op.index()], OpKind::Copy | OpKind::Memset);
        let limit = match copies(before) == copies(after) {
            true => self.constants.stall_gap,
            false => self.constants.stall_handover,
        };
        let long = b1 - b0 > limit.0;
        let held = |cause, kind, confidence, rule| {
            if long {
                let segments = vec![(b0, b1, SegmentKind::Stalled, Some(launch), None)];
                bubble((Cause::Stalled, Confidence::Likely, Rule::QueuedGapTooLong, Some(launch)), segments)
            } else {
                bubble((cause, confidence, rule, Some(launch)), vec![(b0, b1, kind, Some(launch), None)])
            }
        };
        if in_graph {
            return held(Cause::GraphInternal, SegmentKind::GraphInternal, Confidence::Certain, Rule::SameGraphLaunch);
        }
        let (l0, l1) = self.call(launch);
        if l1 <= b0 && l0 + latency <= b0 {
            *refill = None;
            return match self.wait_before(after, b0, b1, latency) {
                Some((call, confidence)) => {
                    let call = Some(call.unwrap_or(launch));
                    let segments = vec![(b0, b1, SegmentKind::Dependency, call, None)];
                    bubble((Cause::Dependency, confidence, Rule::RecordedWait, call), segments)
                }
                None if self.serialises(before, after) => {
                    held(Cause::Dependency, SegmentKind::Dependency, Confidence::Certain, Rule::LegacyDefaultStream)
                }
                None if self.free_at(after).is_none_or(|free| free + latency <= b0) => {
                    held(Cause::Dependency, SegmentKind::Dependency, Confidence::Guess, Rule::StreamWasFree)
                }
                None => held(Cause::Dispatch, SegmentKind::Dispatch, Confidence::Certain, Rule::QueuedBehind),
            };
        }
        let segments = self.starved_segments(launch, (b0, b1));
        let drained_by = self.drain(&enders, after, launch, b0);
        let root = self.starved_root(launch, (b0, b1), drained_by, &segments);
        let mut refill_of = None;
        if let Some((call, ..)) = drained_by {
            *refill = Some(call);
        } else if root.0 == Cause::LaunchBound {
            refill_of = *refill;
        } else {
            *refill = None;
        }
        PlainBubble { drained_by, refill_of, ..bubble(root, segments) }
    }

    /// The op ahead of `op` on its stream, whatever the window.
    fn ahead(&self, op: OpIdx) -> Option<OpIdx> {
        let stream = self.trace.ops.stream[op.index()];
        self.trace.stream_ops(stream).take_while(|&other| other != op).last()
    }

    /// Whether `later` waits for `earlier` because one of them is on the legacy default stream.
    fn serialises(&self, earlier: OpIdx, later: OpIdx) -> bool {
        let trace = self.trace;
        let stream = |op: OpIdx| &trace.streams[trace.ops.stream[op.index()].index()];
        let launched = |op: OpIdx| trace.ops.launch(op).map(|call| self.call(call).0);
        let kinds = (stream(earlier).kind, stream(later).kind);
        stream(earlier).context == stream(later).context
            && (kinds == (StreamKind::Null, StreamKind::Blocking) || kinds == (StreamKind::Blocking, StreamKind::Null))
            && launched(earlier).is_some_and(|first| launched(later).is_some_and(|then| first <= then))
    }

    fn free_at(&self, op: OpIdx) -> Option<i64> {
        self.ahead(op).map(|ahead| self.op(ahead).1)
    }

    fn wait_before(&self, op: OpIdx, b0: i64, b1: i64, latency: i64) -> Option<(Option<CallIdx>, Confidence)> {
        let trace = self.trace;
        let stream = trace.ops.stream[op.index()];
        let from = self.ahead(op).map(|ahead| trace.ops.correlation[ahead.index()]).unwrap_or_default();
        let mut waits: Vec<_> = self
            .waits
            .stream_waits()
            .iter()
            .filter(|wait| wait.stream == stream)
            .filter(|wait| from < wait.correlation && wait.correlation < trace.ops.correlation[op.index()])
            .collect();
        waits.reverse();
        for wait in &waits {
            if let Awaited::Op(producer) = wait.awaited {
                let end = self.op(producer).1;
                if self.free_at(op).is_none_or(|free| end >= free) && end + latency > b0 && end <= b1 {
                    return Some((wait.call, Confidence::Certain));
                }
            }
        }
        if let Some(unknown) = waits.iter().rev().find(|wait| wait.awaited == Awaited::Unknown) {
            return Some((unknown.call, Confidence::Likely));
        }
        let function = trace.host_functions.iter().any(|function| {
            function.stream == stream && function.interval.start.0 < b1 && function.interval.end.0 > b0
        });
        function.then_some((None, Confidence::Certain))
    }

    /// What a thread does at a tick.
    fn doing(&self, thread: ThreadIdx, tick: i64) -> (SegmentKind, Option<CallIdx>) {
        let trace = self.trace;
        let calls: Vec<CallIdx> =
            trace.thread_calls(thread).filter(|&call| self.call(call).0 <= tick && tick < self.call(call).1).collect();
        let overhead = |wanted: &dyn Fn(bubblescope::trace::OverheadKind) -> bool| {
            trace.overheads.iter().any(|overhead| {
                let here = overhead.thread == Some(thread)
                    || (overhead.thread.is_none() && overhead.process == trace.threads[thread.index()].process);
                here && wanted(overhead.kind) && overhead.interval.start.0 <= tick && tick < overhead.interval.end.0
            })
        };
        let first = |wanted: &dyn Fn(CallIdx) -> bool| calls.iter().copied().find(|&call| wanted(call));
        let kind = |call: CallIdx| trace.calls.kind[call.index()];
        let special =
            |call: CallIdx| matches!(kind(call), ApiKind::Profiler | ApiKind::ModuleLoad | ApiKind::GraphBuild);
        let builds = |call: CallIdx| {
            kind(call) == ApiKind::GraphBuild || (self.captured(call) && self.drain_kind(call).is_none())
        };
        let allocates = |call: CallIdx| match self.drain_kind(call) {
            Some(cause) => !special(call) && cause == Cause::Allocation,
            None => kind(call) == ApiKind::AllocAsync,
        };
        if let Some(call) = first(&|call| kind(call) == ApiKind::Profiler) {
            (SegmentKind::Profiler, Some(call))
        } else if overhead(&|kind| kind.is_profiler()) {
            (SegmentKind::Profiler, None)
        } else if let Some(call) = first(&|call| kind(call) == ApiKind::ModuleLoad) {
            (SegmentKind::ModuleLoad, Some(call))
        } else if overhead(&|kind| kind.is_loading()) {
            (SegmentKind::ModuleLoad, None)
        } else if let Some(call) = first(&builds) {
            (SegmentKind::GraphBuild, Some(call))
        } else if let Some(call) = first(&allocates) {
            (SegmentKind::Allocation, Some(call))
        } else if let Some(call) = first(&|call| !special(call) && self.drain_kind(call).is_some()) {
            (SegmentKind::SyncReturn, Some(call))
        } else if let Some(call) = first(&|call| kind(call).submits()) {
            (SegmentKind::LaunchCall, Some(call))
        } else if let Some(&call) = calls.first() {
            (SegmentKind::Api, Some(call))
        } else {
            (SegmentKind::HostCode, None)
        }
    }

    fn starved_segments(&self, launch: CallIdx, (b0, b1): (i64, i64)) -> Vec<Piece> {
        let (l0, l1) = self.call(launch);
        let thread = self.trace.calls.thread[launch.index()];
        let mut pieces: Vec<Piece> = Vec::new();
        for tick in b0..b1 {
            let (kind, call) = if tick < l0 {
                self.doing(thread, tick)
            } else if tick < l1 {
                let (kind, call) = self.doing(thread, tick);
                match kind {
                    SegmentKind::Profiler
                    | SegmentKind::ModuleLoad
                    | SegmentKind::GraphBuild
                    | SegmentKind::Allocation => (kind, call),
                    _ => (SegmentKind::LaunchCall, Some(launch)),
                }
            } else {
                (SegmentKind::LaunchLatency, Some(launch))
            };
            match pieces.last_mut() {
                Some(last) if (last.2, last.3) == (kind, call) => last.1 = tick + 1,
                _ => pieces.push((tick, tick + 1, kind, call, None)),
            }
        }
        for piece in &mut pieces {
            match piece.2 {
                SegmentKind::HostCode => piece.4 = self.innermost(thread, (piece.0 + piece.1).div_euclid(2)),
                SegmentKind::LaunchLatency if piece.1 - piece.0 > self.constants.stall_latency.0 => {
                    piece.2 = SegmentKind::Stalled;
                }
                _ => {}
            }
        }
        pieces
    }

    fn innermost(&self, thread: ThreadIdx, tick: i64) -> Option<RangeIdx> {
        let lane = self.trace.threads[thread.index()].ranges.clone();
        lane.rev().map(RangeIdx).find(|range| {
            let interval = self.trace.ranges[range.index()].interval;
            interval.start.0 <= tick && tick < interval.end.0
        })
    }

    fn site(&self, cause: Cause, call: Option<CallIdx>, segments: &[Piece]) -> Option<RangeIdx> {
        if cause == Cause::HostBound {
            let longest = longest(segments, SegmentKind::HostCode);
            if let Some(range) = longest.and_then(|piece| piece.4) {
                return Some(range);
            }
        }
        self.innermost(self.trace.calls.thread[call?.index()], self.call(call?).0)
    }

    fn drain(&self, enders: &[OpIdx], after: OpIdx, launch: CallIdx, b0: i64) -> Option<(CallIdx, Cause, Confidence)> {
        let trace = self.trace;
        let thread = trace.calls.thread[launch.index()];
        let process = trace.call_process(launch);
        let open = |thread: ThreadIdx| {
            trace
                .thread_calls(thread)
                .find(|&call| self.drain_kind(call).is_some() && self.call(call).0 <= b0 && b0 <= self.call(call).1)
        };
        let certain = |call: CallIdx| (call, self.drain_kind(call).unwrap(), Confidence::Certain);
        let launched = self.call(launch).0;
        let earlier = |call: CallIdx| call != launch && self.call(call).0 <= launched;
        if let Some(call) = open(thread)
            && earlier(call)
        {
            return Some(certain(call));
        }
        for &op in enders {
            if let Some(call) = trace.ops.launch(op)
                && trace.op_process(op) == trace.op_process(after)
                && self.drain_kind(call) == Some(Cause::BlockingCopy)
            {
                if !earlier(call) {
                    break;
                }
                let (start, end) = self.call(call);
                let confidence = if start <= b0 && b0 <= end { Confidence::Certain } else { Confidence::Likely };
                return Some((call, Cause::BlockingCopy, confidence));
            }
        }
        let mut others: Vec<CallIdx> = (0..trace.threads.len())
            .map(ThreadIdx::from_index)
            .filter(|&other| other != thread && trace.threads[other.index()].process == process)
            .filter_map(open)
            .filter(|&call| self.call(call).1 <= launched)
            .collect();
        others.sort_by_key(|&call| (-self.call(call).1, call));
        others.first().map(|&call| (call, self.drain_kind(call).unwrap(), Confidence::Likely))
    }

    fn starved_root(
        &self,
        launch: CallIdx,
        (b0, b1): (i64, i64),
        drained_by: Option<(CallIdx, Cause, Confidence)>,
        segments: &[Piece],
    ) -> (Cause, Confidence, Rule, Option<CallIdx>) {
        let trace = self.trace;
        let half = |length: i64| 2 * length >= b1 - b0;
        let total = |kind: SegmentKind| -> i64 {
            segments.iter().filter(|piece| piece.2 == kind).map(|piece| piece.1 - piece.0).sum()
        };
        let (l0, _) = self.call(launch);
        let likely = if l0 < b1 { Confidence::Likely } else { Confidence::Guess };
        if total(SegmentKind::Stalled) > 0 && half(total(SegmentKind::Stalled)) {
            return (Cause::Stalled, likely, Rule::LatencyTooLong, Some(launch));
        }
        let straddles = self.call(launch).0 <= b0 && b0 <= self.call(launch).1;
        let itself = self.drain_kind(launch).filter(|_| straddles).map(|cause| (launch, cause, Confidence::Certain));
        if let Some((call, cause, confidence)) = drained_by.or(itself)
            && half(self.call(call).1 - self.call(call).0)
        {
            let rule = if drained_by.is_some() { Rule::DrainFillsHalf } else { Rule::OwnLaunchFillsHalf };
            return (cause, confidence, rule, Some(call));
        }
        let mut best: Option<(SegmentKind, i64)> = None;
        for kind in [
            SegmentKind::Profiler,
            SegmentKind::ModuleLoad,
            SegmentKind::GraphBuild,
            SegmentKind::Allocation,
            SegmentKind::SyncReturn,
        ] {
            let mut time = total(kind);
            let graph = trace.calls.kind[launch.index()] == ApiKind::GraphLaunch;
            let prepared = if graph { SegmentKind::GraphBuild } else { SegmentKind::ModuleLoad };
            if kind == prepared && time > 0 && self.is_first(launch) {
                let own = segments.iter().filter(|piece| piece.2 == SegmentKind::LaunchCall && piece.3 == Some(launch));
                time += own.map(|piece| piece.1 - piece.0).sum::<i64>();
            }
            if time > best.map_or(0, |best| best.1) {
                best = Some((kind, time));
            }
        }
        if let Some((kind, total)) = best
            && half(total)
        {
            let call = longest(segments, kind).unwrap().3;
            let cause = match kind {
                SegmentKind::Profiler => Cause::Profiler,
                SegmentKind::ModuleLoad => Cause::ModuleLoad,
                SegmentKind::GraphBuild => Cause::GraphBuild,
                SegmentKind::Allocation => Cause::Allocation,
                _ => self.drain_kind(call.unwrap()).unwrap(),
            };
            // Loading that no call was seen to do is the first launch's.
            let graph = trace.calls.kind[launch.index()] == ApiKind::GraphLaunch;
            let own = call.is_none() && cause == Cause::ModuleLoad && !graph && self.is_first(launch);
            return (cause, likely, Rule::FillsHalf, if own { Some(launch) } else { call });
        }
        if let Some(&(from, to, _, Some(call), _)) = longest(segments, SegmentKind::LaunchCall) {
            let pageable = trace.ops.indices().any(|op| {
                trace.ops.launch(op) == Some(call)
                    && matches!(trace.op_detail(op), Detail::Copy { from: MemoryKind::Pageable, .. })
            });
            if pageable && to - from >= self.constants.long_launch.0 && half(to - from) {
                return (Cause::BlockingCopy, likely, Rule::FillsHalf, Some(call));
            }
        }
        if let Some(piece) = longest(segments, SegmentKind::LaunchCall) {
            let launches = trace.calls.indices().filter(|&call| {
                matches!(trace.calls.kind[call.index()], ApiKind::Launch | ApiKind::GraphLaunch)
                    && !trace.call_ops(call).is_empty()
            });
            let usual = median(launches.map(|call| self.call(call).1 - self.call(call).0).collect()).unwrap_or(0);
            let length = piece.1 - piece.0;
            if length >= self.constants.long_launch.0
                && length >= usual * self.constants.long_launch_factor
                && half(length)
            {
                let call = piece.3.unwrap();
                return if self.is_first(call) {
                    let graph = trace.calls.kind[call.index()] == ApiKind::GraphLaunch;
                    let cause = if graph { Cause::GraphBuild } else { Cause::ModuleLoad };
                    (cause, likely, Rule::FirstLaunchLong, Some(call))
                } else {
                    (Cause::LaunchBound, likely, Rule::LaunchCallLong, Some(call))
                };
            }
        }
        let process = trace.call_process(launch);
        let busy: Vec<CallIdx> = trace
            .calls
            .indices()
            .filter(|&call| trace.call_process(call) == process)
            .filter(|&call| !trace.call_ops(call).is_empty() || self.waits.calls().iter().any(|wait| wait.call == call))
            .collect();
        let gap_before = |call: CallIdx| {
            let ends = busy.iter().filter(|&&other| other != call).map(|&other| self.call(other).1);
            ends.filter(|&end| end <= self.call(call).0).max().map(|end| self.call(call).0 - end)
        };
        let usual = median(busy.iter().filter_map(|&call| gap_before(call)).collect::<Vec<_>>()).unwrap_or(0);
        let limit = (usual * self.constants.host_gap_factor)
            .clamp(self.constants.host_gap_min.0, self.constants.host_gap_max.0);
        let before = l0.clamp(b0, b1) - b0;
        let since = gap_before(launch).unwrap_or(before);
        let own = total(SegmentKind::HostCode);
        let thread = trace.calls.thread[launch.index()];
        let computing = |tick: &i64| self.doing(thread, *tick).0 == SegmentKind::HostCode;
        let in_gap = || (l0 - since..l0).filter(computing).count() as i64;
        if since >= limit && (half(own) || (2 * own >= before && 2 * in_gap() >= since)) {
            return (Cause::HostBound, likely, Rule::HostGap, Some(launch));
        }
        let stretch = longest(segments, SegmentKind::HostCode).map_or(0, |piece| piece.1 - piece.0);
        if half(own) && since.max(stretch) >= self.constants.host_gap_always.0 {
            return (Cause::HostBound, likely, Rule::HostCodeFillsHalf, Some(launch));
        }
        if since >= limit && 2 * before >= since {
            let most = SegmentKind::ALL.iter().map(|&kind| total(kind)).max().unwrap();
            let kind = *SegmentKind::ALL.iter().find(|&&kind| total(kind) == most).unwrap();
            let cause = match kind {
                SegmentKind::Profiler => Cause::Profiler,
                SegmentKind::ModuleLoad => Cause::ModuleLoad,
                SegmentKind::GraphBuild => Cause::GraphBuild,
                SegmentKind::Allocation => Cause::Allocation,
                SegmentKind::HostCode => return (Cause::HostBound, likely, Rule::FillsMost, Some(launch)),
                _ => return (Cause::LaunchBound, likely, Rule::LaunchLate, Some(launch)),
            };
            return (cause, likely, Rule::FillsMost, longest(segments, kind).unwrap().3);
        }
        (Cause::LaunchBound, likely, Rule::LaunchLate, Some(launch))
    }

    /// Whether a call launches the first op of some name in its process or, if it launches a graph, of some graph.
    fn is_first(&self, call: CallIdx) -> bool {
        let trace = self.trace;
        let process: ProcessIdx = trace.call_process(call);
        let graph = trace.calls.kind[call.index()] == ApiKind::GraphLaunch;
        let alike = |a: OpIdx, b: OpIdx| {
            let ids = (trace.ops.graph[a.index()], trace.ops.graph[b.index()]);
            if graph {
                ids.0.is_some() && ids.0 == ids.1
            } else {
                trace.ops.name[a.index()] == trace.ops.name[b.index()]
            }
        };
        let first = |of: OpIdx| {
            let ops = trace.ops.indices().filter(|&op| trace.op_process(op) == process && alike(op, of));
            ops.filter_map(|op| trace.ops.launch(op)).min_by_key(|&call| (self.call(call).0, call))
        };
        trace.call_ops(call).iter().any(|&op| first(op) == Some(call))
    }

    /// The call around a call on its thread, or itself.
    fn outermost(&self, call: CallIdx) -> CallIdx {
        let earlier = self.trace.thread_calls(self.trace.calls.thread[call.index()]).take_while(|&other| other < call);
        let last = earlier.min_by_key(|&other| (-self.call(other).1, other));
        last.filter(|&other| self.call(other).1 >= self.call(call).1).unwrap_or(call)
    }

    /// Whether a call is not carried out but captured into a graph.
    fn captured(&self, call: CallIdx) -> bool {
        let trace = self.trace;
        let of_thread = || trace.thread_calls(trace.calls.thread[call.index()]);
        let outer = self.outermost(call);
        let carried_out = of_thread().any(|other| self.outermost(other) == outer && !trace.call_ops(other).is_empty());
        if carried_out {
            return false;
        }
        self.captures(trace.calls.thread[call.index()]).iter().any(|&(begin, end)| begin < outer && outer < end)
            || self.captured_by_another(outer)
    }

    /// The calls that begin and end each capture of a thread.
    fn captures(&self, thread: ThreadIdx) -> Vec<(CallIdx, CallIdx)> {
        let trace = self.trace;
        let edge = |call: CallIdx| match trace.call_name(call) {
            "cudaStreamBeginCapture" if trace.calls.result[call.index()] == 0 => 1,
            "cudaStreamEndCapture" => -1,
            _ => 0,
        };
        let edges: Vec<(CallIdx, i32)> = trace
            .thread_calls(thread)
            .filter(|&call| self.outermost(call) == call && edge(call) != 0)
            .map(|call| (call, edge(call)))
            .collect();
        // A capture begins, and ends with the first call that closes as many as have begun since.
        let begins = edges.iter().enumerate().filter(|(_, begin)| begin.1 == 1);
        begins
            .filter_map(|(at, &(begin, _))| {
                let mut open = 0;
                let end = edges[at..].iter().find(|(_, edge)| {
                    open += edge;
                    open == 0
                });
                end.map(|&(end, _)| (begin, end))
            })
            .collect()
    }

    /// Whether a call, or one inside it, submits work while any thread of its process captures.
    fn captured_by_another(&self, outer: CallIdx) -> bool {
        let trace = self.trace;
        let thread = trace.calls.thread[outer.index()];
        let submits = trace
            .thread_calls(thread)
            .any(|call| self.outermost(call) == outer && trace.calls.kind[call.index()].submits());
        let start = self.call(outer).0;
        submits
            && (0..trace.threads.len())
                .map(ThreadIdx::from_index)
                .filter(|other| trace.threads[other.index()].process == trace.threads[thread.index()].process)
                .flat_map(|other| self.captures(other))
                .any(|(begin, end)| self.call(begin).0 < start && start < self.call(end).0)
    }

    /// Launches that should have work and have none.
    fn without_ops(&self) -> u64 {
        let trace = self.trace;
        let bare = trace.calls.indices().filter(|&call| {
            let begins = self.call(call).0;
            matches!(trace.calls.kind[call.index()], ApiKind::Launch | ApiKind::GraphLaunch)
                && trace.calls.result[call.index()] == 0
                && trace.call_ops(call).is_empty()
                && self.window.0 <= begins
                && begins < self.window.1
                && self.outermost(call) == call
                && !self.captured(call)
        });
        bare.count() as u64
    }

    fn rows(&self, devices: &[PlainDevice]) -> BTreeMap<(String, Option<String>), PlainRow> {
        let trace = self.trace;
        let key = |call: CallIdx| {
            let range = self.innermost(trace.calls.thread[call.index()], self.call(call).0);
            // The generator's only counted ranges are "step 1" and "step 2".
            let site = range.map(|range| trace.names.get(trace.ranges[range.index()].name).to_owned());
            let site = site.map(|name| if name.starts_with("step") { "step".to_owned() } else { name });
            (trace.call_name(call).to_owned(), site)
        };
        let mut rows: BTreeMap<_, PlainRow> = BTreeMap::new();
        let mut blocking = BTreeSet::new();
        let mut ahead: BTreeMap<_, Vec<(i64, u64)>> = BTreeMap::new();
        let blamed = devices.iter().flat_map(|device| &device.bubbles).filter_map(|bubble| match bubble.root {
            (Cause::Sync | Cause::BlockingCopy | Cause::Allocation, _, _, call, _) => call,
            _ => None,
        });
        let blamed: BTreeSet<CallIdx> = blamed.collect();
        for call in trace.calls.indices() {
            let counts = self.drain_kind(call).is_some() || blamed.contains(&call);
            if !counts || !self.inside(self.call(call)) {
                continue;
            }
            let (start, end) = self.clipped(self.call(call));
            let wait = self.waits.calls().iter().find(|wait| wait.call == call);
            let process = trace.call_process(call);
            let relevant: Vec<DeviceIdx> = match wait.map(|wait| wait.target) {
                Some(Target::Stream(stream)) => vec![trace.streams[stream.index()].device],
                Some(Target::Context(context) | Target::DefaultStream(context)) => {
                    vec![trace.contexts[context.index()].device]
                }
                Some(Target::Op(op) | Target::OpStart(op)) => vec![trace.op_device(op)],
                Some(Target::Process(_) | Target::Nothing) | None => (0..trace.devices.len())
                    .map(DeviceIdx::from_index)
                    .filter(|&device| self.ops_of(device).iter().any(|op| trace.op_process(op.0) == process))
                    .collect(),
            };
            let running: Vec<(OpIdx, i64, i64)> = relevant.iter().flat_map(|&device| self.ops_of(device)).collect();
            let spans: Vec<(i64, i64)> = relevant.iter().filter_map(|&device| self.span_of(device)).collect();
            let runs = |tick: i64| running.iter().any(|op| op.1 <= tick && tick < op.2);
            let in_span = |tick: i64| spans.iter().any(|span| span.0 <= tick && tick < span.1);
            let useful = (start..end).filter(|&tick| runs(tick)).count() as i64;
            let idle = (start..end).filter(|&tick| in_span(tick) && !runs(tick)).count() as i64;
            let row = rows.entry(key(call)).or_default();
            row.calls.push(call);
            row.sums[0] += end - start;
            row.sums[1] += useful;
            row.sums[2] += idle;
            row.longest = row.longest.max(self.call(call).1 - self.call(call).0);
            if wait.is_some() {
                blocking.insert(key(call));
                ahead.entry(key(call)).or_default().push(self.run_ahead(process, self.call(call).0));
            }
        }
        for bubble in devices.iter().flat_map(|device| &device.bubbles) {
            let length = bubble.end - bubble.start;
            let mut add = |call: CallIdx, sum: usize, count: Option<usize>| {
                if let Some(row) = rows.get_mut(&key(call)).filter(|row| row.calls.contains(&call)) {
                    row.sums[sum] += length;
                    if let Some(count) = count {
                        row.counts[count] += 1;
                    }
                }
            };
            if let Some((call, ..)) = bubble.drained_by {
                add(call, 3, Some(0));
            }
            if let (Cause::Sync | Cause::BlockingCopy | Cause::Allocation, _, _, Some(call), _) = bubble.root {
                add(call, 4, Some(1));
            }
            if let Some(call) = bubble.refill_of {
                add(call, 5, None);
            }
        }
        rows.retain(|key, row| blocking.contains(key) || row.counts != [0, 0]);
        for (key, row) in &mut rows {
            let ahead = ahead.remove(key).unwrap_or_default();
            row.ahead_most = ahead.iter().map(|ahead| ahead.0).max().unwrap_or(0);
            row.ahead_ops_median = median(ahead.iter().map(|ahead| ahead.1).collect()).unwrap_or(0);
        }
        rows
    }

    /// Device time and ops enqueued and not done, in order of each stream.
    fn run_ahead(&self, process: ProcessIdx, moment: i64) -> (i64, u64) {
        let trace = self.trace;
        let (mut work, mut count) = (0, 0);
        for stream in trace.streams.iter().filter(|stream| stream.process == process) {
            for op in stream.ops.clone().map(OpIdx) {
                let Some(call) = trace.ops.launch(op) else { continue };
                if self.call(call).1 > moment {
                    break;
                }
                let (start, end) = self.op(op);
                if end > moment {
                    work += end - start.max(moment);
                    count += 1;
                }
            }
        }
        (work, count)
    }
}

/// The first of the longest pieces of a kind.
fn longest(segments: &[Piece], kind: SegmentKind) -> Option<&Piece> {
    let mut best: Option<&Piece> = None;
    for piece in segments.iter().filter(|piece| piece.2 == kind) {
        if best.is_none_or(|best| piece.1 - piece.0 > best.1 - best.0) {
            best = Some(piece);
        }
    }
    best
}
