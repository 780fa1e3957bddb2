//! Works changes out for each step.

use rustc_hash::FxHashMap;

use super::change::{CallSet, Change};
use super::model::{Flags, Model, NONE, Step};
use super::pass::{Action, Plan};
use super::runs;
use crate::analysis::waits::{WaitCause, Waits};
use crate::progress::Until;
use crate::trace::{ApiKind, Interval, Ns, ProcessIdx, Trace};

/// The plan that makes all of `changes`, whatever their order; any plan when it is over before.
pub(super) fn plan(
    trace: &Trace,
    waits: &Waits,
    model: &Model,
    step_of_call: &[u32],
    changes: &[Change],
    until: Until<'_>,
) -> Plan {
    let mut plan = Plan::default();
    let (mut host, mut steps): (Option<u32>, Option<u32>) = (None, None);
    let mut once: Vec<(ProcessIdx, Interval)> = Vec::new();
    let least = |known: Option<u32>, millionths: u32| Some(known.map_or(millionths, |known| known.min(millionths)));
    let mut planner = Planner { trace, waits, model, step_of_call, actions: Vec::new() };
    for change in changes {
        match change {
            Change::Remove(calls) => planner.each(calls, |_, _| Some(Action::Remove)),
            Change::Async(calls) => planner.each(calls, |step, cause| {
                cause.map(without_wait).or_else(|| step.flags.has(Flags::STAGED).then_some(Action::NoWait))
            }),
            Change::Usual(calls) => planner.each(calls, |_, _| Some(Action::Usual)),
            Change::Pinned => planner.pin_copies(),
            Change::NoStreamWaits => plan.no_events = true,
            Change::NoDefaultStream => plan.no_default_stream = true,
            Change::Host { millionths } => host = least(host, *millionths),
            Change::HostSteps { millionths, once: more } => {
                steps = least(steps, *millionths);
                once.extend_from_slice(more);
            }
            Change::NoTracer(cost) => plan.tracer = Some(plan.tracer.map_or(*cost, |known| known.and(*cost))),
            Change::Graph => {}
        }
    }
    plan.once_millionths = host.unwrap_or(plan.once_millionths);
    plan.host_millionths = steps.map_or(plan.once_millionths, |steps| steps.min(plan.once_millionths));
    plan.once = planner.done_once(once);
    plan.unmarked = planner.unmarked();
    // Last, because a call that is not made does not part a run of launches.
    if changes.contains(&Change::Graph) {
        planner.make_room();
        runs::submit_as_graphs(trace, waits, model, &mut planner.actions, until);
    }
    plan.actions = planner.actions;
    plan
}

/// What becomes of a blocking call that must not wait.
fn without_wait(cause: WaitCause) -> Action {
    match cause {
        WaitCause::Sync | WaitCause::SpinBody | WaitCause::SpinEnd => Action::Remove,
        WaitCause::BlockingCopy
        | WaitCause::PageableCopy
        | WaitCause::Memset
        | WaitCause::Free
        | WaitCause::BlockingLaunch
        | WaitCause::Recorded => Action::NoWait,
    }
}

struct Planner<'a> {
    trace: &'a Trace,
    waits: &'a Waits,
    model: &'a Model,
    step_of_call: &'a [u32],
    actions: Vec<Action>,
}

impl Planner<'_> {
    fn make_room(&mut self) {
        self.actions.resize(self.model.steps.len(), Action::Keep);
    }

    /// The steps whose ops follow their streams without the events that were recorded between.
    fn unmarked(&self) -> Vec<bool> {
        if self.model.events.is_empty() || !self.actions.contains(&Action::Remove) {
            return Vec::new();
        }
        let mut events = self.model.events.iter().peekable();
        // For each stream with events since its last op, whether none of them is recorded.
        let mut none_left: FxHashMap<u32, bool> = FxHashMap::default();
        let steps = self.actions.iter().enumerate().map(|(index, &action)| {
            if let Some(&(_, stream)) = events.next_if(|&&(step, _)| step as usize == index) {
                *none_left.entry(stream).or_insert(true) &= action == Action::Remove;
            }
            if action == Action::Remove {
                return false;
            }
            let works = self.model.works[self.model.works_of(index)].iter();
            // Each stream is looked at, not only up to the first.
            works.filter(|work| none_left.remove(&work.stream) == Some(true)).count() > 0
        });
        steps.collect()
    }

    /// How much of the host time before each step lies in stretches of its process; only the steps before which any does.
    fn done_once(&self, mut stretches: Vec<(ProcessIdx, Interval)>) -> Vec<(u32, Ns)> {
        stretches.sort_unstable_by_key(|&(process, time)| (process, time.start));
        let mut apart: Vec<(ProcessIdx, Interval)> = Vec::with_capacity(stretches.len());
        for (process, time) in stretches {
            match apart.last_mut().filter(|last| last.0 == process && time.start <= last.1.end) {
                Some((_, last)) => last.end = last.end.max(time.end),
                None => apart.push((process, time)),
            }
        }
        if apart.is_empty() {
            return Vec::new();
        }
        let steps = self.model.steps.iter().enumerate().filter(|(_, step)| step.before.call().is_some());
        let once = steps.filter_map(|(index, step)| {
            let call = step.call()?;
            let start = self.trace.calls.start[call.index()];
            let (process, gap) = (self.trace.call_process(call), Interval::new(start.saturating_sub(step.gap), start));
            let from = apart.partition_point(|&(of, time)| (of, time.end) <= (process, gap.start));
            let met = apart[from..].iter().take_while(|&&(of, time)| of == process && time.start < gap.end);
            let long: Ns = met.map(|(_, time)| time.overlap(gap)).sum();
            (long > Ns::ZERO).then_some((index as u32, long))
        });
        once.collect()
    }

    /// Lets no asynchronous copy wait or stage pageable memory.
    fn pin_copies(&mut self) {
        self.make_room();
        for (step, action) in self.model.steps.iter().zip(&mut self.actions) {
            let kind = step.call().map(|call| self.trace.calls.kind[call.index()]);
            if step.flags.has(Flags::STAGED) && kind == Some(ApiKind::CopyAsync) {
                *action = action.and(Action::NoWait);
            }
        }
    }

    /// Adds an action to every call of a set.
    fn each(&mut self, calls: &CallSet, action: impl Fn(&Step, Option<WaitCause>) -> Option<Action>) {
        self.make_room();
        for call in calls.calls(self.trace, self.waits) {
            let step = self.step_of_call.get(call.index()).copied().unwrap_or(NONE);
            let Some(row) = self.model.steps.get(step as usize) else { continue };
            let cause = self.waits.of(call).map(|wait| wait.cause);
            if let Some(action) = action(row, cause) {
                let known = &mut self.actions[step as usize];
                *known = known.and(action);
            }
        }
    }
}
