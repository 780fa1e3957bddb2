//! One walk over the model that replays up to `K` plans side by side.

use super::change::TracerCost;
use super::model::{Before, DependencyKind, Flags, Follows, Model, NONE, Step};
use crate::progress::Until;
use crate::trace::Ns;

/// What happens to a step in a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Action {
    /// As recorded.
    #[default]
    Keep,
    /// The call is not made; its device work does not happen.
    Remove,
    /// The call is made and does not wait.
    NoWait,
    /// The call is made and takes no longer than such a call usually does.
    Usual,
    /// The call launches a graph that begins with its op.
    GraphHead {
        /// How many nodes it has besides that op.
        more: u16,
        /// Nothing of its own holds the call up: another change says that it takes no longer than is usual.
        usual: bool,
    },
    /// The call is not made, nor is the host code before it; its op is a node of the graph before it.
    GraphInside,
}

impl Action {
    /// What becomes of a step that two changes concern, in whatever order they are made: the one that leaves less of it.
    pub(super) fn and(self, other: Self) -> Self {
        if other.reach() > self.reach() { other } else { self }
    }

    /// How little of a step an action leaves.
    const fn reach(self) -> u8 {
        match self {
            Self::Keep => 0,
            Self::Usual => 1,
            Self::NoWait => 2,
            Self::Remove => 3,
            Self::GraphHead { .. } | Self::GraphInside => 4,
        }
    }

    /// Whether its op has no longer launch latency than is usual.
    const fn is_free(self) -> bool {
        matches!(self, Self::NoWait | Self::Usual | Self::GraphHead { usual: true, .. })
    }
}

/// Changes, worked out for each step.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// One for each step; none at all when every step is kept.
    pub(super) actions: Vec<Action>,
    /// Steps whose ops follow their streams without the events that were recorded in between, as those are no longer
    /// recorded: the device does not stop for them. One for each step; none at all when there are no such.
    pub(super) unmarked: Vec<bool>,
    pub(super) host_millionths: u32,
    /// The same of the host time in `once`.
    pub(super) once_millionths: u32,
    /// How much of the host time before a step is told apart from the rest; in the order of the steps, and only those
    /// with any.
    pub(super) once: Vec<(u32, Ns)>,
    pub(super) tracer: Option<TracerCost>,
    /// Streams do not wait for events.
    pub(super) no_events: bool,
    /// No stream serialises with the legacy default stream.
    pub(super) no_default_stream: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            actions: Vec::new(),
            unmarked: Vec::new(),
            host_millionths: MILLION,
            once_millionths: MILLION,
            once: Vec::new(),
            tracer: None,
            no_events: false,
            no_default_stream: false,
        }
    }
}

pub(super) const MILLION: u32 = 1_000_000;
/// From a graph's last node to the first node of the graph behind it, on an H200.
const GRAPH_GAP: Ns = Ns(1_500);

/// First start and last end of a device's ops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: Ns,
    pub(super) end: Ns,
}

impl Extent {
    pub(super) const EMPTY: Self = Self { start: Ns::MAX, end: Ns::MIN };

    pub(super) fn span(self) -> Ns {
        if self.end < self.start { Ns::ZERO } else { self.end.saturating_sub(self.start) }
    }

    /// Reaches up to a moment, which is not before the start of what was there before.
    #[inline]
    fn reach(&mut self, moment: Ns) {
        let moment = if *self == Self::EMPTY { moment } else { moment.max(self.start) };
        self.include(moment, moment);
    }

    #[inline]
    pub(super) fn include(&mut self, start: Ns, end: Ns) {
        self.start = self.start.min(start);
        self.end = self.end.max(end);
    }
}

/// Is told every new time.
pub(super) trait Observer<const K: usize> {
    /// A call begins and ends, in each plan that makes it.
    fn call(&mut self, step: &Step, start: &[Ns; K], end: &[Ns; K], made: &[bool; K]);
    /// An op begins and ends in a plan.
    fn op(&mut self, plan: usize, op: u32, start: Ns, end: Ns);
}

/// Does not look.
pub(super) struct Blind;

impl<const K: usize> Observer<K> for Blind {
    #[inline]
    fn call(&mut self, _: &Step, _: &[Ns; K], _: &[Ns; K], _: &[bool; K]) {}
    #[inline]
    fn op(&mut self, _: usize, _: u32, _: Ns, _: Ns) {}
}

/// Replays `plans`. With `typical`, every time that the recording does not show beyond doubt is the usual one, which
/// tells how well the model knows the recording.
///
/// Returns the extent of each device's ops, per plan. Gives up early, with any extents, when it is over.
pub(super) fn run<const K: usize>(
    model: &Model,
    plans: [&Plan; K],
    typical: bool,
    observer: &mut impl Observer<K>,
    until: Until<'_>,
) -> Vec<[Extent; K]> {
    let mut lanes = vec![[Ns::MIN; K]; model.lanes];
    // Whether the last work of each stream is a copy.
    let mut copies = vec![[false; K]; model.stream_device.len()];
    let mut threads = vec![[[Ns::MIN; K]; 2]; model.threads];
    let mut extents = vec![[Extent::EMPTY; K]; model.usual.len()];
    // Where the first node of each thread's latest graph started.
    let mut heads = vec![[Ns::MIN; K]; model.threads];
    let changed = plans.map(|plan| !plan.actions.is_empty());
    let any_changed = changed.contains(&true);
    let any_once = plans.iter().any(|plan| !plan.once.is_empty());
    let mut once_at = [0; K];
    let (mut works_from, mut dependency, mut mark) = (0, 0, 0);
    for (index, step) in model.steps.iter().enumerate() {
        if until.is_over_at(index) {
            break;
        }
        let actions: [Action; K] = if any_changed {
            std::array::from_fn(|k| plans[k].actions.get(index).copied().unwrap_or_default())
        } else {
            [Action::Keep; K]
        };
        let once: [Ns; K] = if any_once {
            std::array::from_fn(|k| {
                let next = plans[k].once.get(once_at[k]).filter(|next| next.0 as usize == index);
                once_at[k] += usize::from(next.is_some());
                next.map_or(Ns::ZERO, |next| next.1)
            })
        } else {
            [Ns::ZERO; K]
        };
        let start = call_start(model, step, &plans, &actions, &once, &threads);

        let works = works_from..step.works_end as usize;
        works_from = works.end;
        // What recording adds to the launch of a graph is told by its ops.
        let more = if step.flags.has(Flags::NODES) { works.len().saturating_sub(1) } else { 0 };
        let dependencies_from = dependency;
        while model.dependencies.get(dependency).is_some_and(|next| next.step as usize == index) {
            dependency += 1;
        }
        if !works.is_empty() {
            let usual = &model.usual[step.device as usize];
            let block = Block { model, index, step, works: works.clone(), dependencies: dependencies_from..dependency };
            let latency = step.latency(usual, typical);
            let mut base: [Ns; K] = std::array::from_fn(|k| match actions[k] {
                Action::GraphInside => heads.get(step.thread as usize).map_or(Ns::MIN, |head| head[k]),
                action => {
                    let latency = if action.is_free() { step.usual_latency(latency, usual) } else { latency };
                    start[k].saturating_add(match action {
                        Action::GraphHead { more, .. } => {
                            plans[k].latency(latency.saturating_add(model.graph_nodes(more)), more.into())
                        }
                        _ => plans[k].latency(latency, more),
                    })
                }
            });
            block.hold(&mut base, &plans, &actions, typical, (&lanes, &copies));
            if let Some(head) = heads.get_mut(step.thread as usize) {
                for k in (0..K).filter(|&k| matches!(actions[k], Action::GraphHead { .. })) {
                    head[k] = base[k];
                }
            }
            for at in works {
                let work = &model.works[at];
                let stream = work.stream as usize;
                let groups = model.groups_of(stream);
                let device = model.stream_device[stream] as usize;
                let mut starts = [Ns::MIN; K];
                for k in 0..K {
                    if actions[k] == Action::Remove {
                        starts[k] = lanes[stream][k];
                        if work.op != NONE {
                            // The program still comes to this place: without its first or last op it is no shorter.
                            let reached =
                                start[k].saturating_add(plans[k].latency(step.usual_latency(latency, usual), more));
                            extents[device][k].reach(reached);
                        }
                        continue;
                    }
                    let begin = base[k].saturating_add(work.offset);
                    let end = begin.saturating_add(work.length);
                    starts[k] = begin;
                    lanes[stream][k] = lanes[stream][k].max(end);
                    copies[stream][k] = work.copy;
                    for &group in groups {
                        let lane = &mut lanes[group as usize][k];
                        *lane = (*lane).max(end);
                    }
                    if work.op != NONE {
                        extents[device][k].include(begin, end);
                        observer.op(k, work.op, begin, end);
                    }
                }
                while let Some(next) = model.marks.get(mark)
                    && next.work as usize == at
                {
                    lanes[next.lane as usize] = if next.at_start {
                        starts
                    } else {
                        std::array::from_fn(|k| match actions[k] {
                            Action::Remove => starts[k],
                            _ => starts[k].saturating_add(work.length),
                        })
                    };
                    mark += 1;
                }
            }
        }

        if step.thread != NONE {
            let end: [Ns; K] = std::array::from_fn(|k| match actions[k] {
                Action::Remove | Action::GraphInside => start[k],
                Action::NoWait => start[k].saturating_add(plans[k].length(model.submit, more)),
                Action::GraphHead { more, usual } => {
                    let one = match step.wait {
                        NONE if usual => step.length.min(model.usual_length(step)),
                        NONE => step.length,
                        _ => model.submit,
                    };
                    let length = model.graph_call.unwrap_or(one.saturating_add(model.graph_nodes(more)));
                    start[k].saturating_add(plans[k].length(length, more.into()))
                }
                Action::Usual if step.wait == NONE => {
                    start[k].saturating_add(plans[k].length(step.length.min(model.usual_length(step)), more))
                }
                Action::Keep if step.wait == NONE => start[k].saturating_add(plans[k].length(step.length, more)),
                Action::Keep | Action::Usual => {
                    let done = start[k].max(lanes[step.wait as usize][k]);
                    start[k].max(done.saturating_add(plans[k].length(step.length, more)))
                }
            });
            let thread = &mut threads[step.thread as usize];
            let before = if step.flags.has(Flags::CONTINUES) { thread[0] } else { thread[1] };
            *thread = [before, end];
            let made = actions.map(|action| !matches!(action, Action::Remove | Action::GraphInside));
            observer.call(step, &start, &end, &made);
        }
    }
    extents
}

/// When a step's call starts in each plan.
#[inline]
fn call_start<const K: usize>(
    model: &Model,
    step: &Step,
    plans: &[&Plan; K],
    actions: &[Action; K],
    once: &[Ns; K],
    threads: &[[[Ns; K]; 2]],
) -> [Ns; K] {
    let Some((thread, older)) = step.before.call() else {
        let start = if step.before == Before::NOTHING { step.gap } else { Ns::MIN };
        return [start; K];
    };
    let before = &threads[thread][usize::from(!older)];
    // A thread's calls keep their order, whichever call let it go on.
    let own = threads.get(step.thread as usize).map(|thread| &thread[1]);
    std::array::from_fn(|k| {
        let gap = match actions[k] {
            Action::GraphInside => Ns::ZERO,
            Action::Remove => step.gap.saturating_sub(model.transition).max_zero().min(step.gap),
            Action::Keep | Action::NoWait | Action::Usual | Action::GraphHead { .. } => step.gap,
        };
        let start = before[k].saturating_add(plans[k].host(gap, once[k]));
        if step.thread as usize == thread && !older { start } else { own.map_or(start, |own| start.max(own[k])) }
    })
}

/// A step's ops and what they have to wait for.
struct Block<'a> {
    model: &'a Model,
    index: usize,
    step: &'a Step,
    works: std::ops::Range<usize>,
    dependencies: std::ops::Range<usize>,
}

impl Block<'_> {
    /// Moves the block's start behind everything it has to wait for.
    #[inline]
    fn hold<const K: usize>(
        &self,
        base: &mut [Ns; K],
        plans: &[&Plan; K],
        actions: &[Action; K],
        typical: bool,
        (lanes, copies): (&[[Ns; K]], &[[bool; K]]),
    ) {
        let usual = &self.model.usual[self.step.device as usize];
        for work in &self.model.works[self.works.clone()] {
            if work.gap == Ns::MIN && !actions.contains(&Action::GraphInside) {
                continue;
            }
            let gap = match work.gap {
                Ns::MIN => Ns::MIN,
                gap => self.step.gap_after(gap, work.binds, work.follows, usual, typical),
            };
            for k in 0..K {
                let marked = work.marked && plans[k].unmarked.get(self.index) != Some(&true);
                let follows = Follows::new(work.copy || marked || copies[work.stream as usize][k]);
                // What parted them in the recording is not there any more.
                let joined = follows == Follows::Directly && work.follows == Follows::Parted;
                let gap = if joined { gap.min(usual.gap(Follows::Directly)) } else { gap };
                let gap = match actions[k] {
                    Action::GraphInside => self.model.node_gap,
                    Action::GraphHead { .. } => gap.max(GRAPH_GAP),
                    _ if gap == Ns::MIN => continue,
                    _ => gap,
                };
                let after = lanes[work.stream as usize][k].saturating_add(gap.saturating_sub(work.offset));
                base[k] = base[k].max(after);
            }
        }
        for dependency in &self.model.dependencies[self.dependencies.clone()] {
            let gap = self.step.gap_after(dependency.gap, dependency.binds, Follows::Parted, usual, typical);
            let lane = &lanes[dependency.lane as usize];
            for (k, plan) in plans.iter().enumerate() {
                let gap = match (actions[k], dependency.kind) {
                    (Action::GraphInside, DependencyKind::Event) => self.model.node_gap,
                    _ => gap,
                };
                let ignored = match dependency.kind {
                    DependencyKind::Event => plan.no_events,
                    DependencyKind::DefaultStream => plan.no_default_stream,
                };
                if !ignored {
                    base[k] = base[k].max(lane[k].saturating_add(gap.saturating_sub(dependency.offset)));
                }
            }
        }
    }
}

impl Plan {
    /// Time between calls, of which so much is told apart.
    #[inline]
    fn host(&self, gap: Ns, once: Ns) -> Ns {
        if self.host_millionths == MILLION {
            return gap;
        }
        if once == Ns::ZERO {
            return scaled(gap, self.host_millionths);
        }
        let once = once.min(gap.max_zero());
        scaled(gap.saturating_sub(once), self.host_millionths).saturating_add(scaled(once, self.once_millionths))
    }

    /// The length of a call that submits so many ops of a graph besides the first.
    #[inline]
    fn length(&self, length: Ns, more: usize) -> Ns {
        self.tracer.map_or(length, |tracer| without(length, tracer.per_call, tracer.of_graph(more)))
    }

    /// A launch latency, of so many ops of a graph besides the first.
    #[inline]
    fn latency(&self, latency: Ns, more: usize) -> Ns {
        self.tracer.map_or(latency, |tracer| without(latency, tracer.per_latency, tracer.of_graph(more)))
    }
}

/// So many millionths of a time.
fn scaled(time: Ns, millionths: u32) -> Ns {
    let scaled = i128::from(time.get()) * i128::from(millionths) / i128::from(MILLION);
    Ns(i64::try_from(scaled).unwrap_or(i64::MAX))
}

/// A time without the tracer's part in it, which is never taken to be more than half; with the ops of a graph three quarters.
fn without(time: Ns, cost: Ns, of_graph: Ns) -> Ns {
    let most = if of_graph > Ns::ZERO { time.get() / 4 * 3 } else { time.get() / 2 };
    time.saturating_sub(cost.saturating_add(of_graph).max_zero().min(Ns(most).max_zero()))
}
