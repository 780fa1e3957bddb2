//! What a call that waits waited for.

use rustc_hash::FxHashMap;

use super::super::model::{Mark, Model, NONE, Step};
use super::Maker;
use crate::analysis::waits::lanes::last_submitted_before;
use crate::analysis::waits::{CLOCK_SLACK, Target, Wait};
use crate::trace::{Interval, Ns, OpIdx, StreamIdx};

/// A search for the work that a contradictory wait was for looks at this many ops of a stream.
const LOOK_BACK: u32 = 64;

impl Maker<'_> {
    /// Turns a wait into the lane it waits for and the time it takes to return. A wait for work that went on after the
    /// call returned was for something else: the work of the same target that ended last before.
    pub(super) fn add_wait(&mut self, step: &mut Step, wait: Wait, call: Interval) {
        step.length = call.len();
        let lane = match wait.target {
            Target::Stream(stream) => Some(stream.0),
            Target::Context(context) => Some(self.lane_of.context[context.index()]),
            Target::Process(process) => Some(self.lane_of.process[process.index()]),
            Target::DefaultStream(context) => Some(self.lane_of.default[context.index()][2]),
            Target::Op(op) => self.lane_of_op(op, false),
            Target::OpStart(op) => self.lane_of_op(op, true),
            Target::Nothing => None,
        };
        let Some(mut lane) = lane.filter(|&lane| self.lanes[lane as usize] != Ns::MIN) else { return };
        if self.lanes[lane as usize] > call.end.saturating_add(CLOCK_SLACK) {
            let Some(op) = self.last_done(wait, call) else { return };
            let Some(marked) = self.lane_of_op(op, false) else { return };
            lane = marked;
        }
        let awaited = self.lanes[lane as usize];
        step.wait = lane;
        step.length = call.end.saturating_sub(call.start.max(awaited));
    }

    /// The op that ended last before a call returned, among those of the wait's streams that were submitted before it.
    fn last_done(&self, wait: Wait, call: Interval) -> Option<OpIdx> {
        let trace = self.trace;
        let limit = call.end.saturating_add(CLOCK_SLACK);
        let process = trace.call_process(wait.call);
        let mut best: Option<OpIdx> = None;
        for (index, row) in trace.streams.iter().enumerate() {
            let stream = StreamIdx::from_index(index);
            let meant = match wait.target {
                Target::Stream(wanted) => wanted == stream,
                Target::Context(context) | Target::DefaultStream(context) => row.context == context,
                Target::Process(_) | Target::Op(_) | Target::OpStart(_) | Target::Nothing => row.process == process,
            };
            let Some(last) = last_submitted_before(trace, stream, call.start).filter(|_| meant) else { continue };
            let first = row.ops.start.max(last.0.saturating_sub(LOOK_BACK));
            let done = (first..=last.0).rev().map(OpIdx).find(|op| trace.ops.end[op.index()] <= limit);
            best = best.into_iter().chain(done).max_by_key(|op| trace.ops.end[op.index()]);
        }
        best.filter(|op| trace.ops.end[op.index()] > call.start)
    }

    /// The lane that holds an op's end or start, if the op has been replayed by now.
    fn lane_of_op(&mut self, op: OpIdx, at_start: bool) -> Option<u32> {
        let stream = self.trace.ops.stream[op.index()];
        let last = self.model.works.last().is_some_and(|work| work.op == op.0);
        if !at_start && last && self.lanes[stream.index()] == self.trace.ops.end[op.index()] {
            return Some(stream.0);
        }
        mark(&mut self.model, &mut self.marks, &mut self.lanes, &self.work_of_op, op, at_start).inspect(|&lane| {
            let moment = if at_start { self.trace.ops.start[op.index()] } else { self.trace.ops.end[op.index()] };
            self.lanes[lane as usize] = moment;
        })
    }
}

/// Gives an op's moment a lane of its own, once.
pub(super) fn mark(
    model: &mut Model,
    marks: &mut FxHashMap<(OpIdx, bool), u32>,
    lanes: &mut Vec<Ns>,
    work_of_op: &[u32],
    op: OpIdx,
    at_start: bool,
) -> Option<u32> {
    let work = work_of_op[op.index()];
    if work == NONE {
        return None;
    }
    Some(*marks.entry((op, at_start)).or_insert_with(|| {
        let lane = lanes.len() as u32;
        lanes.push(Ns::MIN);
        model.lanes = lanes.len();
        model.marks.push(Mark { work, lane, at_start });
        lane
    }))
}
