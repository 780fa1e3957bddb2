//! Makes the model: walks the calls in the order in which they began and notes what each had to wait for.

mod block;
mod groups;
mod usual;
mod wait;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::model::{Before, Flags, Follows, Model, NONE, Step, Work};
use super::order::{self, Entry};
use crate::analysis::options::Constants;
use crate::analysis::waits::{Wait, WaitCause, Waits};
use crate::progress::Until;
use crate::trace::{CallIdx, CorrelationId, Interval, Ns, OpIdx, OpKind, ProcessIdx, StreamIdx, Trace};
use block::BlockOp;
use groups::GroupLanes;

/// A thread that called this recently goes on by itself; after a longer silence it was another thread that let it.
const OWN_THREAD_GAP: Ns = Ns(20_000);

/// Makes the model of the calls that begin inside `window` and of the ops they submit; of all when it is `None`. Ops
/// that were submitted before the window and reach into it stay where they were. Gives up early, with a part of the model,
/// when it is over.
pub(super) fn prepare(
    trace: &Trace,
    waits: &Waits,
    window: Option<Interval>,
    constants: &Constants,
    until: Until<'_>,
) -> Model {
    let mut maker = Maker::new(trace, waits);
    for (turn, entry) in order::entries(trace, waits, window).into_iter().enumerate() {
        if until.is_over_at(turn) {
            break;
        }
        if entry.call == NONE {
            maker.orphan(OpIdx(entry.last));
        } else {
            maker.call(entry);
        }
    }
    maker.finish(constants.graph_node_call)
}

/// A thread's calls so far.
#[derive(Clone, Copy, Default)]
struct ThreadState {
    calls: u32,
    last_end: Ns,
    /// Where the spin began that its last call is part of.
    spin: Option<Ns>,
}

/// A process's calls so far.
#[derive(Clone, Default)]
struct ProcessState {
    /// Ends of calls that may still be open, with their thread and number there.
    open: BinaryHeap<Reverse<(Ns, u32, u32)>>,
    /// The call that ended last: thread, number, end.
    ended: Option<(u32, u32, Ns)>,
}

struct Maker<'a> {
    trace: &'a Trace,
    waits: &'a Waits,
    model: Model,
    threads: Vec<ThreadState>,
    processes: Vec<ProcessState>,
    /// Recorded value of each lane; `Ns::MIN` before anything happened.
    lanes: Vec<Ns>,
    lane_of: GroupLanes,
    /// For each stream, how many of its waits for events are behind.
    stream_waits: Vec<u32>,
    /// For each stream, the last step that had work on it.
    touched: Vec<u32>,
    /// For each stream, whether its last work was a copy.
    copied: Vec<bool>,
    /// For each stream, whether an event was recorded on it since its last work.
    marked: Vec<bool>,
    /// The stream of each call that records an event.
    events: FxHashMap<CallIdx, StreamIdx>,
    work_of_op: Vec<u32>,
    marks: FxHashMap<(OpIdx, bool), u32>,
    host_functions: FxHashMap<(ProcessIdx, CorrelationId), Vec<u32>>,
    latencies: Vec<[Vec<Ns>; 2]>,
    /// Per device, of ops that were queued, by [`Follows`].
    gaps: Vec<[Vec<Ns>; 2]>,
    call_gaps: Vec<Ns>,
    submits: Vec<Ns>,
    launches: Vec<Ns>,
    graph_calls: Vec<Ns>,
    block: Vec<BlockOp>,
}

impl<'a> Maker<'a> {
    fn new(trace: &'a Trace, waits: &'a Waits) -> Self {
        let streams = trace.streams.len();
        let mut model = Model { threads: trace.threads.len(), lanes: streams, ..Model::default() };
        let lane_of = GroupLanes::new(trace, waits, &mut model.lanes);
        model.group_offsets.push(0);
        for stream in 0..streams {
            model.groups.extend(lane_of.of(trace, stream));
            model.group_offsets.push(model.groups.len() as u32);
        }
        model.stream_device = trace.streams.iter().map(|stream| stream.device.0).collect();
        model.steps.reserve(trace.calls.len());
        model.works.reserve(trace.ops.len());
        let mut host_functions: FxHashMap<_, Vec<u32>> = FxHashMap::default();
        for (row, host) in trace.host_functions.iter().enumerate() {
            let process = trace.streams[host.stream.index()].process;
            host_functions.entry((process, host.correlation)).or_default().push(row as u32);
        }
        Self {
            trace,
            waits,
            threads: vec![ThreadState::default(); trace.threads.len()],
            processes: vec![ProcessState::default(); trace.processes.len()],
            lanes: vec![Ns::MIN; model.lanes],
            lane_of,
            model,
            stream_waits: vec![0; streams],
            touched: vec![NONE; streams],
            copied: vec![false; streams],
            marked: vec![false; streams],
            events: trace.events.iter().filter_map(|event| Some((event.call?, event.stream?))).collect(),
            work_of_op: vec![NONE; trace.ops.len()],
            marks: FxHashMap::default(),
            host_functions,
            latencies: vec![<[Vec<Ns>; 2]>::default(); trace.devices.len()],
            gaps: vec![<[Vec<Ns>; 2]>::default(); trace.devices.len()],
            call_gaps: Vec::new(),
            submits: Vec::new(),
            launches: Vec::new(),
            graph_calls: Vec::new(),
            block: Vec::new(),
        }
    }

    /// An op whose launch is not replayed. One that no call submitted follows its stream as it was recorded; one that
    /// was submitted before the window stays where it was.
    fn orphan(&mut self, op: OpIdx) {
        let time = self.trace.ops.interval(op);
        let stream = self.trace.ops.stream[op.index()];
        let before = self.lanes[stream.index()];
        let follows = self.trace.ops.launch(op).is_none() && before != Ns::MIN;
        let mut flags = Flags::default();
        for flag in [Flags::EMPTY, Flags::QUEUED, Flags::HELD] {
            flags.set(flag);
        }
        let step = Step {
            gap: time.start,
            length: Ns::ZERO,
            latency: Ns::ZERO,
            before: if follows { Before::NO_CALL } else { Before::NOTHING },
            thread: NONE,
            works_end: self.model.works.len() as u32 + 1,
            wait: NONE,
            call: NONE,
            device: self.trace.streams[stream.index()].device.0,
            flags,
        };
        self.work_of_op[op.index()] = self.model.works.len() as u32;
        self.model.works.push(Work {
            offset: Ns::ZERO,
            length: time.len(),
            gap: if follows { time.start.saturating_sub(before) } else { Ns::MIN },
            stream: stream.0,
            op: op.0,
            binds: true,
            copy: self.trace.ops.kind[op.index()] == OpKind::Copy,
            marked: false,
            follows: Follows::Directly,
        });
        self.copied[stream.index()] = self.trace.ops.kind[op.index()] == OpKind::Copy;
        self.ended(stream.index(), time.end);
        self.model.steps.push(step);
    }

    /// Notes that work on a stream ended.
    fn ended(&mut self, stream: usize, end: Ns) {
        self.lanes[stream] = self.lanes[stream].max(end);
        for &group in self.model.groups_of(stream) {
            let lane = &mut self.lanes[group as usize];
            *lane = (*lane).max(end);
        }
    }

    fn call(&mut self, entry: Entry) {
        let call = CallIdx(entry.call);
        let time = self.trace.calls.interval(call);
        let wait = self.waits.calls().get(entry.wait as usize).copied();
        let thread = self.trace.calls.thread[call.index()];
        let (before, mut gap) = self.before(call, time.start);
        let mut step = Step {
            gap,
            length: time.len(),
            latency: Ns::ZERO,
            before,
            thread: thread.0,
            works_end: 0,
            wait: NONE,
            call: call.0,
            device: 0,
            flags: Flags::default(),
        };
        if let Some(stream) = self.events.get(&call) {
            self.marked[stream.index()] = true;
            self.model.events.push((self.model.steps.len() as u32, stream.0));
        }
        self.collect_block(entry);
        if !self.block.is_empty() {
            self.add_block(&mut step, time, wait);
        }
        step.works_end = self.model.works.len() as u32;

        // The queries of a spin are one call: they take no time of their own, and the last one waits for all.
        let state = &mut self.threads[thread.index()];
        let spin = state.spin.take();
        if spin.is_some() {
            (step.before, gap) = (Before::latest(thread.0), Ns::ZERO);
            step.flags.set(Flags::CONTINUES);
        }
        step.gap = gap;
        match wait {
            Some(Wait { cause: WaitCause::SpinBody, .. }) => {
                state.spin = Some(spin.unwrap_or(time.start));
                step.length = Ns::ZERO;
            }
            Some(wait) => {
                let began = spin.unwrap_or(time.start);
                self.add_wait(&mut step, wait, Interval::new(began, time.end));
            }
            None => self.sample_length(call, &step),
        }
        self.model.steps.push(step);
        let state = &mut self.threads[thread.index()];
        state.last_end = time.end;
        state.calls += u32::from(spin.is_none());
        if state.spin.is_some() {
            return;
        }
        let open = Reverse((time.end, thread.0, state.calls - 1));
        self.processes[self.trace.call_process(call).index()].open.push(open);
    }

    /// What a call's start refers to, and by how much it followed.
    fn before(&mut self, call: CallIdx, start: Ns) -> (Before, Ns) {
        let process = &mut self.processes[self.trace.call_process(call).index()];
        while let Some(&Reverse((end, thread, number))) = process.open.peek()
            && end <= start
        {
            process.ended = Some((thread, number, end));
            process.open.pop();
        }
        let thread = self.trace.calls.thread[call.index()];
        let own = self.threads[thread.index()];
        let own_gap = start.saturating_sub(own.last_end);
        if own.calls > 0 {
            self.call_gaps.push(own_gap);
            if own_gap <= OWN_THREAD_GAP {
                return (Before::latest(thread.0), own_gap);
            }
        }
        let Some((other, number, end)) = process.ended else { return (Before::NOTHING, start) };
        let gap = start.saturating_sub(end);
        match self.threads[other as usize].calls - number {
            1 => (Before::latest(other), gap),
            2 => (Before::older(other), gap),
            _ if own.calls > 0 => (Before::latest(thread.0), own_gap),
            _ => (Before::NOTHING, start),
        }
    }
}
