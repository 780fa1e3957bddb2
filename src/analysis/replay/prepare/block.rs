//! The ops of one call, which move together, and what they had to wait for.

use super::super::model::{Dependency, DependencyKind, Flags, Follows, Model, NONE, QUEUED_MARGIN, Step, Work};
use super::super::order::Entry;
use super::Maker;
use super::wait::mark;
use crate::analysis::waits::{Awaited, CLOCK_SLACK, Target, Wait, WaitCause};
use crate::trace::{ApiKind, CallIdx, Detail, Interval, MemoryKind, Ns, OpIdx, OpKind, StreamIdx, StreamKind, Trace};

/// A call that waits for its own op has submitted it by then, however long it takes.
const SUBMITTED_WITHIN: Ns = Ns(10_000);

/// One op of a block under construction.
#[derive(Clone, Copy)]
pub(super) struct BlockOp {
    start: Ns,
    end: Ns,
    stream: StreamIdx,
    op: u32,
}

impl Maker<'_> {
    /// Gathers the ops of a call and of the calls nested in it, by start.
    pub(super) fn collect_block(&mut self, entry: Entry) {
        let trace = self.trace;
        self.block.clear();
        for call in entry.call..entry.last {
            let call = CallIdx(call);
            for &op in trace.call_ops(call) {
                let time = trace.ops.interval(op);
                let stream = trace.ops.stream[op.index()];
                self.block.push(BlockOp { start: time.start, end: time.end, stream, op: op.0 });
            }
            if self.host_functions.is_empty() {
                continue;
            }
            let key = (trace.call_process(call), trace.calls.correlation[call.index()]);
            for row in self.host_functions.remove(&key).unwrap_or_default() {
                let host = &trace.host_functions[row as usize];
                let Interval { start, end } = host.interval;
                self.block.push(BlockOp { start, end, stream: host.stream, op: NONE });
            }
        }
        self.block.sort_by_key(|op| op.start);
    }

    /// Adds the gathered ops as the block of `step` and notes what the block had to wait for.
    pub(super) fn add_block(&mut self, step: &mut Step, call: Interval, wait: Option<Wait>) {
        let trace = self.trace;
        let block = std::mem::take(&mut self.block);
        let base = block[0].start;
        let number = self.model.steps.len() as u32;
        let (first_work, first_dependency) = (self.model.works.len(), self.model.dependencies.len());
        let first_op = (block[0].op != NONE).then_some(block[0].op as usize);
        step.latency = base.saturating_sub(call.start);
        step.device = trace.streams[block[0].stream.index()].device.0;
        match step.call().map(|call| trace.calls.kind[call.index()]) {
            Some(ApiKind::Launch) => step.flags.set(Flags::LAUNCH),
            Some(ApiKind::GraphLaunch) if block.len() > 1 => step.flags.set(Flags::NODES),
            _ => {}
        }
        if block.len() > 1 || first_op.is_some_and(|op| trace.ops.graph[op].is_some()) {
            step.flags.set(Flags::GRAPH);
        }
        if first_op.is_some_and(|op| is_staged(trace, OpIdx::from_index(op), wait)) {
            step.flags.set(Flags::STAGED);
        }
        // What was over last among all that the block had to wait for: its end as seen from the block's start.
        let mut latest = Ns::MIN;
        for op in &block {
            let offset = op.start.saturating_sub(base);
            let stream = op.stream.index();
            let mut gap = Ns::MIN;
            let copy = op.op != NONE && trace.ops.kind[op.op as usize] == OpKind::Copy;
            let marked = std::mem::take(&mut self.marked[stream]);
            let follows = Follows::new(copy || marked || self.copied[stream]);
            self.copied[stream] = copy;
            if self.touched[stream] != number {
                self.touched[stream] = number;
                let before = self.lanes[stream];
                if before != Ns::MIN {
                    gap = op.start.saturating_sub(before);
                    latest = latest.max(before.saturating_sub(offset));
                }
                self.add_dependencies(op, offset, number);
            }
            if op.op != NONE {
                self.work_of_op[op.op as usize] = self.model.works.len() as u32;
            }
            self.model.works.push(Work {
                offset,
                length: op.end.saturating_sub(op.start),
                gap,
                stream: op.stream.0,
                op: op.op,
                binds: false,
                copy,
                marked,
                follows,
            });
        }
        for dependency in &self.model.dependencies[first_dependency..] {
            latest = latest.max(base.saturating_sub(dependency.gap));
        }
        for op in &block {
            self.ended(op.stream.index(), op.end);
        }
        self.block = block;

        let waits_for_own = wait.is_some_and(|wait| matches!(wait.target, Target::Op(_) | Target::OpStart(_)));
        let submitted = match waits_for_own {
            // Pageable memory is copied first, and nobody knows for how long.
            _ if first_op.is_some_and(|op| reads_pageable(trace, OpIdx::from_index(op))) => Ns::MAX,
            true => call.end.min(call.start.saturating_add(SUBMITTED_WITHIN)),
            false => call.end,
        };
        let graph = usize::from(step.flags.has(Flags::GRAPH));
        if latest <= call.start {
            step.flags.set(Flags::EMPTY);
            if !step.flags.has(Flags::STAGED) {
                self.latencies[step.device as usize][graph].push(step.latency);
            }
        } else if submitted.saturating_add(QUEUED_MARGIN) <= latest {
            step.flags.set(Flags::QUEUED);
        }
        if latest == Ns::MIN {
            return;
        }
        let bound = base.saturating_sub(latest);
        for work in &mut self.model.works[first_work..] {
            work.binds = work.gap == bound && work.gap != Ns::MIN;
        }
        for dependency in &mut self.model.dependencies[first_dependency..] {
            dependency.binds = dependency.gap == bound;
        }
        if step.flags.has(Flags::QUEUED) && bound >= Ns::ZERO && graph == 0 {
            let first = &self.model.works[first_work];
            let follows = if first.binds { first.follows } else { Follows::Parted };
            self.gaps[step.device as usize][follows as usize].push(bound);
        }
    }

    /// Adds what the first op of a block on its stream has to wait for besides that stream's work: events, and the
    /// legacy default stream. What had not ended when the op started was not waited for.
    fn add_dependencies(&mut self, op: &BlockOp, offset: Ns, step: u32) {
        let trace = self.trace;
        let add = |model: &mut Model, lane: u32, end: Ns, kind: DependencyKind| {
            if end != Ns::MIN && end <= op.start.saturating_add(CLOCK_SLACK) {
                let gap = op.start.saturating_sub(end);
                model.dependencies.push(Dependency { step, lane, gap, offset, binds: false, kind });
            }
        };
        if op.op != NONE {
            let correlation = trace.ops.correlation[op.op as usize];
            let waits = self.waits.of_stream(op.stream);
            while let Some(wait) = waits.get(self.stream_waits[op.stream.index()] as usize)
                && wait.correlation < correlation
            {
                self.stream_waits[op.stream.index()] += 1;
                if let Awaited::Op(awaited) = wait.awaited
                    && let Some(lane) =
                        mark(&mut self.model, &mut self.marks, &mut self.lanes, &self.work_of_op, awaited, false)
                {
                    add(&mut self.model, lane, trace.ops.end[awaited.index()], DependencyKind::Event);
                }
            }
        }
        let row = &trace.streams[op.stream.index()];
        let [null, blocking, _] = self.lane_of.default[row.context.index()];
        let lane = match row.kind {
            StreamKind::Null => blocking,
            StreamKind::Blocking => null,
            StreamKind::NonBlocking | StreamKind::Unknown => NONE,
        };
        if lane != NONE {
            add(&mut self.model, lane, self.lanes[lane as usize], DependencyKind::DefaultStream);
        }
    }
}

/// Whether a call's first op is a copy that the call did work for before it submitted it: pageable memory is staged, a
/// copy that waits for itself takes a way of its own through the driver.
fn is_staged(trace: &Trace, op: OpIdx, wait: Option<Wait>) -> bool {
    let waits = wait.is_some_and(|wait| matches!(wait.cause, WaitCause::BlockingCopy | WaitCause::PageableCopy));
    waits || matches!(trace.op_detail(op), Detail::Copy { from, to, .. } if [from, to].contains(&MemoryKind::Pageable))
}

/// Whether an op copies from pageable memory.
fn reads_pageable(trace: &Trace, op: OpIdx) -> bool {
    matches!(trace.op_detail(op), Detail::Copy { from: MemoryKind::Pageable, .. })
}
