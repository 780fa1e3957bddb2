//! The recording as the replay needs it: what each call and each op has to wait for, and by how much it follows.

use crate::trace::{CallIdx, Ns, OpIdx, Trace};

/// No position.
pub(super) const NONE: u32 = u32::MAX;

/// A launch call must have returned this long before an op's predecessor ended for the op to be known as queued.
pub(super) const QUEUED_MARGIN: Ns = Ns(2_000);
/// The dispatch gap when no op was truly queued.
pub(super) const DEFAULT_GAP: Ns = Ns(1_000);
/// The launch latency when no op found its stream empty.
pub(super) const DEFAULT_LATENCY: Ns = Ns(5_000);
/// An op that started no later than this beyond the usual gap after what it had to wait for was held by that, and not
/// by its launch.
pub(super) const GAP_TOLERANCE: Ns = Ns(500);

/// The end of a call that another call's start refers to: a thread's latest call, or the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before(u32);

impl Before {
    /// Nothing before: the call starts when it was recorded to start.
    pub(super) const NOTHING: Self = Self(NONE);
    /// The step is no call; its op follows its stream alone.
    pub(super) const NO_CALL: Self = Self(NONE - 1);

    pub(super) const fn latest(thread: u32) -> Self {
        Self(thread * 2)
    }

    pub(super) const fn older(thread: u32) -> Self {
        Self(thread * 2 + 1)
    }

    /// The thread, and whether the call before its latest is meant.
    pub(super) const fn call(self) -> Option<(usize, bool)> {
        if self.0 >= Self::NO_CALL.0 { None } else { Some(((self.0 / 2) as usize, self.0 % 2 == 1)) }
    }
}

/// What is known about a step: about its block, unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    /// All that the block had to wait for was over when its launch call began.
    pub(super) const EMPTY: Self = Self(1);
    /// Its launch call had returned well before what it had to wait for was over.
    pub(super) const QUEUED: Self = Self(2);
    /// What it had to wait for held it, and not its launch.
    pub(super) const HELD: Self = Self(4);
    /// It is a graph's.
    pub(super) const GRAPH: Self = Self(8);
    /// Its call launches a graph of which every op was recorded.
    pub(super) const NODES: Self = Self(128);
    /// The call goes on with the spin of the call before it on its thread: together they are one call.
    pub(super) const CONTINUES: Self = Self(32);
    /// Its call launches one kernel.
    pub(super) const LAUNCH: Self = Self(64);
    /// It is a copy that passes through the driver's own memory or waits for itself: the call does work of its own
    /// before it submits the copy.
    pub(super) const STAGED: Self = Self(16);

    pub(super) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    pub(super) fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }
}

/// One call with the ops it submitted (its block), or an op without a call. In the order in which calls began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// From the end of `before` to this call's start; with nothing before, the recorded start itself.
    pub(super) gap: Ns,
    /// How long the call takes; of a call that waits, from the end of what it waits for to its return.
    pub(super) length: Ns,
    /// From the call's start to its block's start, as recorded.
    pub(super) latency: Ns,
    pub(super) before: Before,
    /// The thread; `NONE` when the step is no call.
    pub(super) thread: u32,
    /// The step's works end here; they begin where the step before has its end.
    pub(super) works_end: u32,
    /// The lane whose end the call waits for, `NONE` when it does not wait.
    pub(super) wait: u32,
    /// The call; `NONE` when the step is no call.
    pub(super) call: u32,
    /// The device of its first op.
    pub(super) device: u32,
    pub(super) flags: Flags,
}

/// One op of a block. A block keeps its shape: all its ops move together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// From the block's start to the op's start.
    pub(super) offset: Ns,
    pub(super) length: Ns,
    /// From the end of its stream's work before the block to the op's start, as recorded; `Ns::MIN` when that does not
    /// hold the op.
    pub(super) gap: Ns,
    /// Position of the stream, which is also its lane.
    pub(super) stream: u32,
    /// The op; `NONE` for a host function, which is no device work.
    pub(super) op: u32,
    /// Of all that the block had to wait for, this stream's work ended last.
    pub(super) binds: bool,
    /// It is a copy.
    pub(super) copy: bool,
    /// An event was recorded between the work before it on its stream and itself.
    pub(super) marked: bool,
    /// How it followed the work before it on its stream in the recording.
    pub(super) follows: Follows,
}

/// How an op follows the one before it on its stream. A device goes on from kernel to kernel at once; changing to a copy
/// that was queued and back, or recording an event in between, takes several times as long, or hardly longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// A kernel behind a kernel, with nothing in between.
    Directly,
    /// A copy is one of the two, or an event was recorded in between.
    Parted,
}

impl Follows {
    pub(super) const fn new(parted: bool) -> Self {
        if parted { Self::Parted } else { Self::Directly }
    }
}

/// Something besides its streams that a block has to wait for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dependency {
    pub(super) step: u32,
    /// The lane whose end is waited for.
    pub(super) lane: u32,
    /// From that end to the start of the op that waits, as recorded.
    pub(super) gap: Ns,
    /// From the block's start to the start of that op.
    pub(super) offset: Ns,
    /// Of all that the block had to wait for, this ended last.
    pub(super) binds: bool,
    pub(super) kind: DependencyKind,
}

/// What made a block depend on another stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DependencyKind {
    /// A wait for an event.
    Event,
    /// The legacy default stream and the streams that serialise with it.
    DefaultStream,
}

/// A moment of an op that is kept because something waits for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) work: u32,
    pub(super) lane: u32,
    /// The op's start instead of its end.
    pub(super) at_start: bool,
}

/// What is usual on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// From a launch call's start to its op's start on an empty stream; of graphs apart.
    pub(super) latency: [Ns; 2],
    /// From an op's end to the start of the op queued behind it, by [`Follows`].
    pub(super) gaps: [Ns; 2],
}

impl Usual {
    pub(super) const fn gap(&self, follows: Follows) -> Ns {
        self.gaps[follows as usize]
    }
}

/// The prepared recording. Lanes hold the latest end of something: of a stream, of a group of streams, of one op.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) steps: Vec<Step>,
    pub(super) works: Vec<Work>,
    /// In the order of their steps.
    pub(super) dependencies: Vec<Dependency>,
    /// In the order of their works.
    pub(super) marks: Vec<Mark>,
    /// Which steps record an event on which stream, in order.
    pub(super) events: Vec<(u32, u32)>,
    pub(super) usual: Vec<Usual>,
    pub(super) threads: usize,
    pub(super) lanes: usize,
    /// For each stream, its range of `groups`.
    pub(super) group_offsets: Vec<u32>,
    /// The lanes of the groups that a stream is in.
    pub(super) groups: Vec<u32>,
    /// For each stream, its device.
    pub(super) stream_device: Vec<u32>,
    /// The least time from one call's end to the next one's start, nothing happening in between.
    pub(super) transition: Ns,
    /// How long a call takes that submits a copy and does not wait.
    pub(super) submit: Ns,
    /// How long a call takes that launches a kernel.
    pub(super) launch: Ns,
    /// How long a call takes that launches a graph, if there was any.
    pub(super) graph_call: Option<Ns>,
    /// From a node's end to the next node's start inside a graph.
    pub(super) node_gap: Ns,
    /// What each node after the first adds to the call that launches a graph, and holds up its first op.
    pub(super) node_call: Ns,
}

impl Model {
    /// The works of a step.
    pub(super) fn works_of(&self, step: usize) -> std::ops::Range<usize> {
        let from = if step == 0 { 0 } else { self.steps[step - 1].works_end as usize };
        from..self.steps[step].works_end as usize
    }

    /// How long a call takes that does what this step's does and is not held up.
    pub(super) fn usual_length(&self, step: &Step) -> Ns {
        if step.flags.has(Flags::LAUNCH) {
            self.launch
        } else if step.flags.has(Flags::GRAPH) {
            self.graph_call.unwrap_or(step.length)
        } else {
            self.submit
        }
    }

    /// What so many nodes add to the call that launches a graph; nothing where the recording tells how long such calls
    /// are.
    pub(super) fn graph_nodes(&self, nodes: u16) -> Ns {
        if self.graph_call.is_some() { Ns::ZERO } else { Ns(self.node_call.get().saturating_mul(i64::from(nodes))) }
    }

    /// The groups of a stream.
    pub(super) fn groups_of(&self, stream: usize) -> &[u32] {
        &self.groups[self.group_offsets[stream] as usize..self.group_offsets[stream + 1] as usize]
    }
}

impl Step {
    pub(super) fn call(&self) -> Option<CallIdx> {
        (self.call != NONE).then_some(CallIdx(self.call))
    }

    /// Start of the call minus latency, as the replay takes it: recorded where the launch held the block, otherwise no
    /// longer than usual.
    pub(super) fn latency(&self, usual: &Usual, typical: bool) -> Ns {
        let common = usual.latency[usize::from(self.flags.has(Flags::GRAPH))];
        match typical {
            true if self.flags.has(Flags::EMPTY) => self.latency,
            // What a call does before it submits is the host's time, which a replay keeps as it was.
            true if self.flags.has(Flags::STAGED) && !self.flags.has(Flags::QUEUED) => self.latency,
            true => common,
            false if self.flags.has(Flags::HELD) => self.latency.min(common),
            false => self.latency,
        }
    }

    /// The same when the call is not held up by anything of its own: no longer than usual.
    pub(super) fn usual_latency(&self, latency: Ns, usual: &Usual) -> Ns {
        latency.min(usual.latency[usize::from(self.flags.has(Flags::GRAPH))])
    }

    /// The gap to something that the block has to wait for, as the replay takes it: recorded where that held the
    /// block, otherwise no longer than usual.
    pub(super) fn gap_after(&self, recorded: Ns, binds: bool, follows: Follows, usual: &Usual, typical: bool) -> Ns {
        let known = if typical { self.flags.has(Flags::QUEUED) } else { self.flags.has(Flags::HELD) };
        match (known && binds, typical) {
            (true, _) => recorded,
            // A copy that was submitted late follows as a kernel does.
            (false, true) if recorded >= Ns::ZERO => usual.gap(Follows::Directly),
            (false, true) => recorded.min(usual.gap(Follows::Directly)),
            (false, false) => recorded.min(usual.gap(follows)),
        }
    }
}

impl Work {
    pub(super) fn op(&self) -> Option<OpIdx> {
        (self.op != NONE).then_some(OpIdx(self.op))
    }
}

/// The low median, which empties the order of `values`.
pub(super) fn low_median(values: &mut [Ns]) -> Option<Ns> {
    quantile(values, 1, 2)
}

/// The value that `part` of `whole` of the values do not exceed, rounded down.
pub(super) fn quantile(values: &mut [Ns], part: usize, whole: usize) -> Option<Ns> {
    let last = values.len().checked_sub(1)?;
    let at = last * part / whole;
    Some(*values.select_nth_unstable(at).1)
}

/// The middle of the gaps between a graph's nodes that did not overlap; what was measured on an H200 (64 to 96 ns)
/// where the trace has none.
pub(super) fn usual_node_gap(trace: &Trace) -> Ns {
    let ops = &trace.ops;
    let mut gaps: Vec<Ns> = Vec::new();
    for pair in 1..ops.len() {
        let same = ops.stream[pair] == ops.stream[pair - 1]
            && ops.graph[pair].is_some()
            && ops.graph[pair] == ops.graph[pair - 1]
            && ops.correlation[pair] == ops.correlation[pair - 1];
        let gap = ops.start[pair].saturating_sub(ops.end[pair - 1]);
        if same && gap >= Ns::ZERO {
            gaps.push(gap);
        }
    }
    low_median(&mut gaps).unwrap_or(Ns(80))
}
