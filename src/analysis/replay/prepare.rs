//! Makes the model: walks the calls in the order in which they began and notes what each had to wait for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::model::{
    Before, DEFAULT_GAP, DEFAULT_LATENCY, Dependency, DependencyKind, Flags, Follows, GAP_TOLERANCE, Mark, Model, NONE,
    QUEUED_MARGIN, Step, Usual, Work, low_median, quantile, usual_node_gap,
};
use super::order::{self, Entry};
use crate::analysis::options::Constants;
use crate::analysis::waits::lanes::last_submitted_before;
use crate::analysis::waits::{Awaited, CLOCK_SLACK, Target, Wait, WaitCause, Waits};
use crate::trace::{
    ApiKind, CallIdx, CaptureMode, CorrelationId, Detail, Interval, MemoryKind, Ns, OpIdx, OpKind, ProcessIdx,
    StreamIdx, StreamKind, Trace,
};

/// A thread that called this recently goes on by itself; after a longer silence it was another thread that let it.
const OWN_THREAD_GAP: Ns = Ns(20_000);
/// A call that waits for its own op has submitted it by then, however long it takes.
const SUBMITTED_WITHIN: Ns = Ns(10_000);
/// From fewer samples than this of a latency or a gap, only one shorter than the default is taken to be usual.
const MIN_SAMPLES: usize = 5;
/// A search for the work that a contradictory wait was for looks at this many ops of a stream.
const LOOK_BACK: u32 = 64;

/// One op of a block under construction.
#[derive(Clone, Copy)]
struct BlockOp {
    start: Ns,
    end: Ns,
    stream: StreamIdx,
    op: u32,
}

/// Makes the model of the calls that begin inside `window` and of the ops they submit; of all when it is `None`. Ops
/// that were submitted before the window and reach into it stay where they were.
pub(super) fn prepare(trace: &Trace, waits: &Waits, window: Option<Interval>, constants: &Constants) -> Model {
    let mut maker = Maker::new(trace, waits);
    for entry in order::entries(trace, waits, window) {
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

/// The lanes of groups of streams; `NONE` where nothing waits for the group.
struct GroupLanes {
    context: Vec<u32>,
    process: Vec<u32>,
    /// Per context: the default stream, the streams that serialise with it, and both.
    default: Vec<[u32; 3]>,
}

impl GroupLanes {
    fn new(trace: &Trace, waits: &Waits, lanes: &mut usize) -> Self {
        let mut groups = Self {
            context: vec![NONE; trace.contexts.len()],
            process: vec![NONE; trace.processes.len()],
            default: vec![[NONE; 3]; trace.contexts.len()],
        };
        let mut lane = |slot: &mut u32| {
            if *slot == NONE {
                *slot = *lanes as u32;
                *lanes += 1;
            }
        };
        for wait in waits.calls() {
            match wait.target {
                Target::Context(context) => lane(&mut groups.context[context.index()]),
                Target::Process(process) => lane(&mut groups.process[process.index()]),
                Target::DefaultStream(context) => lane(&mut groups.default[context.index()][2]),
                Target::Stream(_) | Target::Op(_) | Target::OpStart(_) | Target::Nothing => {}
            }
        }
        for stream in trace.streams.iter().filter(|stream| stream.kind == StreamKind::Null) {
            let [null, blocking, _] = &mut groups.default[stream.context.index()];
            lane(null);
            lane(blocking);
        }
        groups
    }

    /// The groups that a stream is in.
    fn of(&self, trace: &Trace, stream: usize) -> impl Iterator<Item = u32> {
        let row = &trace.streams[stream];
        let [null, blocking, both] = self.default[row.context.index()];
        let default = match row.kind {
            StreamKind::Null => [null, both],
            StreamKind::Blocking => [blocking, both],
            StreamKind::NonBlocking | StreamKind::Unknown => [NONE, NONE],
        };
        [self.context[row.context.index()], self.process[row.process.index()], default[0], default[1]]
            .into_iter()
            .filter(|&lane| lane != NONE)
    }
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

    /// Gathers the ops of a call and of the calls nested in it, by start.
    fn collect_block(&mut self, entry: Entry) {
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
    fn add_block(&mut self, step: &mut Step, call: Interval, wait: Option<Wait>) {
        let trace = self.trace;
        let block = std::mem::take(&mut self.block);
        let base = block[0].start;
        let number = self.model.steps.len() as u32;
        let (first_work, first_dependency) = (self.model.works.len(), self.model.dependencies.len());
        let first_op = (block[0].op != NONE).then_some(block[0].op as usize);
        step.latency = base.saturating_sub(call.start);
        step.device = trace.streams[block[0].stream.index()].device.0;
        if step.call().is_some_and(|call| trace.calls.kind[call.index()] == ApiKind::Launch) {
            step.flags.set(Flags::LAUNCH);
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

    /// Turns a wait into the lane it waits for and the time it takes to return. A wait for work that went on after the
    /// call returned was for something else: the work of the same target that ended last before.
    fn add_wait(&mut self, step: &mut Step, wait: Wait, call: Interval) {
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

    fn sample_length(&mut self, call: CallIdx, step: &Step) {
        match self.trace.calls.kind[call.index()] {
            ApiKind::CopyAsync if !step.flags.has(Flags::STAGED) => self.submits.push(step.length),
            ApiKind::Launch => self.launches.push(step.length),
            ApiKind::GraphLaunch => self.graph_calls.push(step.length),
            _ => {}
        }
    }

    fn finish(mut self, node_call: Ns) -> Model {
        let mut model = self.model;
        model.marks.sort_by_key(|mark| mark.work);
        model.usual = (0..self.trace.devices.len())
            .map(|device| {
                let [single, graph] = &mut self.latencies[device];
                let few = single.len() < MIN_SAMPLES;
                let single = low_median(single).map(|latency| if few { latency.min(DEFAULT_LATENCY) } else { latency });
                let graph = low_median(graph).or(single).unwrap_or(DEFAULT_LATENCY);
                let [direct, parted] = &mut self.gaps[device];
                let few = direct.len() < MIN_SAMPLES;
                let direct = low_median(direct).unwrap_or(DEFAULT_GAP);
                let direct = if few { direct.min(DEFAULT_GAP) } else { direct };
                let parted = low_median(parted).unwrap_or(direct);
                Usual { latency: [single.unwrap_or(graph).max_zero(), graph.max_zero()], gaps: [direct, parted] }
            })
            .collect();
        model.transition = quantile(&mut self.call_gaps, 1, 10).unwrap_or(Ns::ZERO).max_zero();
        let launch = low_median(&mut self.launches);
        model.launch = launch.unwrap_or(DEFAULT_LATENCY);
        model.submit = low_median(&mut self.submits).unwrap_or(model.launch);
        model.graph_call = low_median(&mut self.graph_calls);
        model.node_gap = usual_node_gap(self.trace);
        // With graph-level records the calls cost what they do without a recorder.
        let opaque = self.trace.meta.capture_mode == CaptureMode::Graph;
        model.node_call = if opaque { Ns::ZERO } else { node_call };
        mark_held(&mut model);
        model
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

/// Gives an op's moment a lane of its own, once.
fn mark(
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

/// Tells which blocks were held by what they had to wait for, now that the usual gap is known.
fn mark_held(model: &mut Model) {
    let mut dependency = 0;
    for index in 0..model.steps.len() {
        let works = model.works_of(index);
        let mut bound = model.works[works].iter().filter(|work| work.binds).map(|work| work.gap).min();
        while let Some(next) = model.dependencies.get(dependency)
            && next.step as usize == index
        {
            if next.binds {
                bound = Some(next.gap);
            }
            dependency += 1;
        }
        let step = &mut model.steps[index];
        let Some(bound) = bound else { continue };
        let usual = model.usual[step.device as usize].gap(Follows::Directly).saturating_add(GAP_TOLERANCE);
        if step.flags.has(Flags::QUEUED) || (!step.flags.has(Flags::EMPTY) && bound <= usual) {
            step.flags.set(Flags::HELD);
        }
    }
}
