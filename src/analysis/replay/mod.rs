//! What a change would gain: replays the recorded timeline with it.
//!
//! **Host.** A call starts when the call that let it go on ends, plus the recorded gap: the thread's own last call if
//! that was recent, otherwise the call of the process that ended last, so that threads that hand work over keep their
//! order. Hosts of different processes do not know each other. A call keeps its length; one that waits ends when what
//! it waits for is done ([`waits`](super::waits)), plus the time it took to return. A call that is not made takes no
//! time, and the least time between two calls goes with it.
//!
//! **Device.** An op starts a launch latency after its call started, a dispatch gap after the work before it on its
//! stream ended and after the events its stream waits for, whichever is last; it keeps its length. All ops of one call,
//! as a graph's nodes, move together. Which of these held an op in the recording decides what is taken from there: an
//! op that was queued well before its predecessor ended was held by that, and its dispatch gap is real; one that found
//! its stream empty was held by its launch, and its latency is real. In between, an op that started within 500 ns of
//! the usual gap after its predecessor was held by that, any other by its launch. What did not hold it is taken to be
//! no longer than is usual on that device: the low median over the ops whose case is clear. A kernel that follows a kernel
//! only because the copy between them, or the event, is taken away follows as kernels do.
//!
//! Of two calls, the one that began first is taken to have submitted its work first, also where two threads use one
//! stream.
//!
//! **How far to trust it.** [`Replay::unchanged_error`] is the error of replaying the recording unchanged with usual
//! times wherever the case is not clear. Above [`MAX_UNCHANGED_ERROR`] gains are withheld. Where a source does not
//! tell which stream waits for which, so are those of changes that go by it.
//!
//! A replay is one walk over the calls in the order in which they began, up to eight changes side by side.

mod change;
mod cost;
mod model;
mod order;
mod pass;
mod plan;
mod prepare;
mod runs;

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;

use crate::progress::Until;
use crate::trace::{ApiKind, CallIdx, Detail, DeviceIdx, Interval, MemoryKind, Ns, OpIdx, Trace};

use super::copies::{is_from_host, is_to_host};
use super::options::Constants;
use super::waits::{WaitCause, Waits, unknown_stream_orders};
pub use change::{CallSet, Change, ParseChangeError, TracerCost};
pub use cost::{DEFAULT_MAX_CHANGES, sync_cost};
use model::{Model, NONE, Step};
use pass::{Blind, Extent, Observer, Plan};

/// Above this error of the unchanged replay, gains are withheld.
pub const MAX_UNCHANGED_ERROR: f64 = 0.05;

/// Plans replayed in one walk.
const WIDTH: usize = 8;

/// A recording made ready for replays.
#[derive(Debug)]
pub struct Replay<'t> {
    trace: &'t Trace,
    waits: &'t Waits,
    until: Until<'t>,
    model: Model,
    /// For each call, its position among the steps; `NONE` for nested calls and those outside the window.
    step_of_call: Vec<u32>,
    unchanged: Vec<Extent>,
    unchanged_error: f64,
    /// Whether it is known which stream waits for which.
    orders_known: bool,
}

/// What came of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the first op's start to the last op's end, over all devices.
    pub span: Ns,
    /// What that is shorter than in the replay without changes; negative when it is longer. `None` when the replay
    /// reproduces the recording too badly to promise anything, or the source does not tell what the changes depend on.
    pub gain: Option<Ns>,
    /// Each device that has ops.
    pub devices: Vec<DeviceOutcome>,
    /// What the answer takes for granted.
    pub assumptions: Vec<&'static str>,
}

/// One device in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOutcome {
    /// The device.
    pub device: DeviceIdx,
    /// From its first op's start to its last op's end.
    pub span: Ns,
    /// What that is shorter than in the replay without changes; `None` when withheld.
    pub gain: Option<Ns>,
}

/// New times of everything that was replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// For each op of the trace; `None` when it is outside the window or does not happen.
    pub ops: Vec<Option<Interval>>,
    /// For each call of the trace; `None` when it is outside the window, nested in another, or not made.
    pub calls: Vec<Option<Interval>>,
}

impl<'t> Replay<'t> {
    /// Prepares the calls that begin inside `window` and the ops they submit; the whole trace when it is `None`.
    pub fn new(trace: &'t Trace, waits: &'t Waits, window: Option<Interval>) -> Self {
        Self::with_constants(trace, waits, window, &Constants::default())
    }

    /// The same with constants of one's own.
    pub fn with_constants(trace: &'t Trace, waits: &'t Waits, window: Option<Interval>, constants: &Constants) -> Self {
        Self::until(trace, waits, window, constants, Until::DONE)
    }

    /// The same, and every replay of it gives up early when it is over: what it says then means nothing.
    pub(super) fn until(
        trace: &'t Trace,
        waits: &'t Waits,
        window: Option<Interval>,
        constants: &Constants,
        until: Until<'t>,
    ) -> Self {
        let model = prepare::prepare(trace, waits, window, constants, until);
        let mut step_of_call = vec![NONE; trace.calls.len()];
        let mut recorded = vec![Extent::EMPTY; trace.devices.len()];
        for (index, step) in model.steps.iter().enumerate() {
            if let Some(call) = step.call() {
                step_of_call[call.index()] = index as u32;
            }
        }
        for op in model.works.iter().filter_map(model::Work::op) {
            let time = trace.ops.interval(op);
            recorded[trace.op_device(op).index()].include(time.start, time.end);
        }
        let as_recorded = Plan::default();
        let alone = |typical| -> Vec<Extent> {
            let extents = pass::run::<1>(&model, [&as_recorded], typical, &mut Blind, until);
            extents.into_iter().map(|[extent]| extent).collect()
        };
        let (typical, unchanged) = (alone(true), alone(false));
        let unchanged_error = error(&typical, &recorded).max(error(&unchanged, &recorded));
        let orders_known = unknown_stream_orders(trace) == 0;
        Self { trace, waits, until, model, step_of_call, unchanged, unchanged_error, orders_known }
    }

    /// By which part of the span a replay without changes misses the recording, where every time that the recording
    /// does not show beyond doubt is the usual one; the device with the largest error counts.
    pub fn unchanged_error(&self) -> f64 {
        self.unchanged_error
    }

    /// Whether gains are withheld because of that error.
    pub fn is_withheld(&self) -> bool {
        self.unchanged_error > MAX_UNCHANGED_ERROR
    }

    /// The replay without changes.
    pub fn unchanged(&self) -> Outcome {
        self.outcome(&self.unchanged, &[])
    }

    /// Replays once with all of `changes`.
    pub fn with(&self, changes: &[Change]) -> Outcome {
        let plan = self.plan(changes);
        let extents: Vec<Extent> = pass::run::<1>(&self.model, [&plan], false, &mut Blind, self.until)
            .into_iter()
            .map(|[extent]| extent)
            .collect();
        self.outcome(&extents, changes)
    }

    /// Replays each of several lists of changes, several in one walk.
    pub fn each(&self, lists: &[Vec<Change>]) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(lists.len());
        for some in lists.chunks(WIDTH) {
            let plans: Vec<Plan> = some.iter().map(|changes| self.plan(changes)).collect();
            let as_recorded = Plan::default();
            let plans = std::array::from_fn(|k| plans.get(k).unwrap_or(&as_recorded));
            let extents = pass::run::<WIDTH>(&self.model, plans, false, &mut Blind, self.until);
            for (k, changes) in some.iter().enumerate() {
                let extents: Vec<Extent> = extents.iter().map(|extents| extents[k]).collect();
                outcomes.push(self.outcome(&extents, changes));
            }
        }
        outcomes
    }

    /// The new times of every call and op with all of `changes`.
    pub fn timeline(&self, changes: &[Change]) -> Timeline {
        let plan = self.plan(changes);
        let mut timeline =
            Timeline { ops: vec![None; self.trace.ops.len()], calls: vec![None; self.trace.calls.len()] };
        pass::run::<1>(&self.model, [&plan], false, &mut timeline, self.until);
        timeline
    }

    /// What the answers to some changes take for granted.
    fn assumptions(&self, changes: &[Change]) -> Vec<&'static str> {
        // A change of no call takes nothing for granted.
        let is_empty = |change: &&Change| match change {
            Change::Usual(set) => set.calls(self.trace, self.waits).next().is_none(),
            _ => false,
        };
        let mut list = general_assumptions(changes.iter().filter(|change| !is_empty(change)));
        for change in changes {
            let (Change::Remove(set) | Change::Async(set)) = change else { continue };
            if set.calls(self.trace, self.waits).any(|call| self.may_bring_results(call)) {
                list.push("the host does the same whether or not it has the results that it waited for");
            }
            let made = matches!(change, Change::Async(_));
            if !made {
                let kinds = |call: CallIdx| self.trace.calls.kind[call.index()];
                list.extend(set.calls(self.trace, self.waits).filter_map(|call| needless(kinds(call))));
                list.sort_unstable();
                list.dedup();
            }
            if made && set.calls(self.trace, self.waits).any(|call| self.stages(call)) {
                list.push(SAME_SPEED);
            }
        }
        list.sort_unstable();
        list.dedup();
        list
    }

    /// Whether the host may have waited in a call for what the device computed: in any wait that is not for memory to be
    /// freed or for its own work to be done, and in a copy to the host.
    fn may_bring_results(&self, call: CallIdx) -> bool {
        match self.waits.of(call).map(|wait| wait.cause) {
            Some(WaitCause::Sync | WaitCause::SpinBody | WaitCause::SpinEnd | WaitCause::BlockingLaunch) => true,
            Some(WaitCause::Free | WaitCause::Memset) => false,
            Some(WaitCause::BlockingCopy | WaitCause::PageableCopy | WaitCause::Recorded) | None => {
                self.trace.call_ops(call).iter().any(|&op| is_to_host(self.trace, op))
            }
        }
    }

    /// Whether a call copies to the device what is not known to lie in page-locked memory.
    fn stages(&self, call: CallIdx) -> bool {
        let pinned = |op| matches!(self.trace.op_detail(op), Detail::Copy { from: MemoryKind::Pinned, .. });
        self.trace.call_ops(call).iter().any(|&op| is_from_host(self.trace, op) && !pinned(op))
    }

    fn plan(&self, changes: &[Change]) -> Plan {
        if self.until.is_over() {
            return Plan::default();
        }
        plan::plan(self.trace, self.waits, &self.model, &self.step_of_call, changes, self.until)
    }

    fn outcome(&self, extents: &[Extent], changes: &[Change]) -> Outcome {
        let orders = |change: &Change| matches!(change, Change::Graph | Change::NoStreamWaits);
        let unknown = !self.orders_known && changes.iter().any(orders);
        let promised = |gain: Ns| (!self.is_withheld() && !unknown).then_some(gain);
        let devices = self.unchanged.iter().zip(extents).enumerate();
        let devices = devices
            .filter(|(_, (unchanged, _))| **unchanged != Extent::EMPTY)
            .map(|(index, (unchanged, extent))| DeviceOutcome {
                device: DeviceIdx::from_index(index),
                span: extent.span(),
                gain: promised(unchanged.span().saturating_sub(extent.span())),
            })
            .collect();
        let span = whole(extents).span();
        let gain = promised(whole(&self.unchanged).span().saturating_sub(span));
        Outcome { span, gain, devices, assumptions: self.assumptions(changes) }
    }
}

impl Observer<1> for Timeline {
    fn call(&mut self, step: &Step, start: &[Ns; 1], end: &[Ns; 1], made: &[bool; 1]) {
        if let Some(call) = step.call().filter(|_| made[0]) {
            self.calls[CallIdx::index(call)] = Some(Interval::new(start[0], end[0]));
        }
    }

    fn op(&mut self, _: usize, op: u32, start: Ns, end: Ns) {
        self.ops[OpIdx(op).index()] = Some(Interval::new(start, end));
    }
}

/// The extent over all devices.
fn whole(extents: &[Extent]) -> Extent {
    extents.iter().fold(Extent::EMPTY, |mut all, extent| {
        all.include(extent.start, extent.end);
        all
    })
}

/// The largest error of a device's span, as part of the recorded one.
fn error(replayed: &[Extent], recorded: &[Extent]) -> f64 {
    let of = |(replayed, recorded): (&Extent, &Extent)| {
        let (replayed, recorded) = (replayed.span().get(), recorded.span().get());
        if recorded == 0 { 0.0 } else { replayed.abs_diff(recorded) as f64 / recorded as f64 }
    };
    replayed.iter().zip(recorded).map(of).fold(0.0, f64::max)
}

/// What is taken for granted of calls that are taken out, as what they get is there already.
const fn needless(kind: ApiKind) -> Option<&'static str> {
    match kind {
        ApiKind::Alloc | ApiKind::Free => Some(
            "memory is there when it is needed without these calls, kept or from a pool, and getting it takes no time",
        ),
        ApiKind::ModuleLoad => Some("code that was loaded before is at hand in the loop without any call"),
        ApiKind::GraphBuild => Some("a graph that was built before does for every step"),
        _ => None,
    }
}

/// What is taken for granted of copies that are to be made from page-locked memory.
const SAME_SPEED: &str = "a copy takes as long on the device from page-locked memory as from pageable memory";

/// What the answers to some changes take for granted, but for what depends on the calls.
fn general_assumptions<'c>(changes: impl Iterator<Item = &'c Change>) -> Vec<&'static str> {
    let mut list: Vec<&'static str> = Vec::new();
    for change in changes {
        list.extend_from_slice(match change {
            Change::Remove(_) | Change::Async(_) => &[][..],
            Change::Graph => &[
                "the launches of a run can be captured, and the host code between them only serves to launch",
                "kernels that a graph runs side by side take as long as one after the other",
                "a graph is instantiated once, outside the recording",
                "where no launch of a graph was recorded, it takes as long as one launch call and a fixed time for each \
                 further node: 0.75 µs, as on an H200 where every node is recorded",
            ],
            Change::Pinned => &[SAME_SPEED],
            Change::Usual(_) => &["what held these calls up can be avoided, and slowed nothing else down"],
            Change::NoStreamWaits | Change::NoDefaultStream => {
                &["the streams' work does not depend on each other, and ops keep their length when they overlap"]
            }
            Change::Host { .. } | Change::HostSteps { .. } => &["time inside API calls stays as it is"],
            Change::NoTracer(_) => &["the tracer adds the same to every call, to every launch and to every op of a graph"],
        });
    }
    list
}
