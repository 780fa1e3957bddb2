//! Finds the runs of launches that could be one graph each.

use super::model::{DependencyKind, Model, NONE, Step};
use super::pass::Action;
use crate::trace::{ApiKind, Ns, OpIdx, Trace};

/// Host code between two launches that takes longer computes something, and parts the run.
const MAX_GAP: Ns = Ns::from_us(200);
/// A run in which one op repeats has no period to cut it by; it is cut into graphs of so many ops.
const SAME_OPS: usize = 32;

/// A run in the making: steps with one op each.
#[derive(Clone, Default)]
struct Run {
    /// The streams it launches to, the one it began with first.
    streams: Vec<u32>,
    /// Where its works begin.
    first_work: usize,
    /// Positions of the launches.
    steps: Vec<u32>,
    /// Positions of the calls between them that do nothing to the device.
    between: Vec<u32>,
}

/// Marks every run of at least two launches from one thread, with nothing but harmless calls between them, as one graph.
/// As when a stream is captured, the run is on one stream and on those that wait for an event behind its work. A run
/// that repeats a sequence of ops is one graph per repetition.
pub(super) fn submit_as_graphs(trace: &Trace, model: &Model, actions: &mut [Action]) {
    let mut runs = vec![Run::default(); model.threads];
    let mut pending: Vec<Vec<u32>> = vec![Vec::new(); model.threads];
    let work_of_lane = works_waited_for(model);
    let mut dependencies_from = 0;
    for (index, step) in model.steps.iter().enumerate() {
        let dependencies = dependencies_from;
        while model.dependencies.get(dependencies_from).is_some_and(|next| next.step as usize == index) {
            dependencies_from += 1;
        }
        if step.thread == NONE || actions[index] == Action::Remove {
            continue;
        }
        let (run, pending) = (&mut runs[step.thread as usize], &mut pending[step.thread as usize]);
        let launch = launched(trace, model, index, step, actions[index]);
        let far = step.gap > MAX_GAP;
        match launch {
            Some(stream) if !run.steps.is_empty() && !far && run.streams.contains(&stream) => {
                run.between.append(pending);
            }
            Some(stream)
                if !run.steps.is_empty() && !far && {
                    let waited = model.dependencies[dependencies..dependencies_from].iter();
                    let mut waited = waited.filter(|wait| wait.kind == DependencyKind::Event);
                    waited.any(|wait| run.holds(model, work_of_lane[wait.lane as usize]))
                } =>
            {
                run.streams.push(stream);
                run.between.append(pending);
            }
            None if is_harmless(trace, step) && !far => {
                pending.push(index as u32);
                continue;
            }
            _ => {
                close(trace, model, run, actions);
                pending.clear();
            }
        }
        if let Some(stream) = launch {
            if run.steps.is_empty() {
                run.streams = vec![stream];
                run.first_work = model.works_of(index).start;
            }
            run.steps.push(index as u32);
        }
    }
    for run in &mut runs {
        close(trace, model, run, actions);
    }
}

impl Run {
    /// Whether a work is part of the run so far.
    fn holds(&self, model: &Model, work: u32) -> bool {
        let row = model.works.get(work as usize);
        row.is_some_and(|row| work as usize >= self.first_work && self.streams.contains(&row.stream))
    }
}

/// For each lane the work that it is the end of, `NONE` for other lanes.
fn works_waited_for(model: &Model) -> Vec<u32> {
    let mut works = vec![NONE; model.lanes];
    for mark in &model.marks {
        if let (Some(work), false) = (works.get_mut(mark.lane as usize), mark.at_start) {
            *work = mark.work;
        }
    }
    works
}

/// The stream of the one op that a step launches, if it may become a node.
fn launched(trace: &Trace, model: &Model, index: usize, step: &Step, action: Action) -> Option<u32> {
    let kind = trace.calls.kind[step.call()?.index()];
    let submits = matches!(
        kind,
        ApiKind::Launch | ApiKind::CopyAsync | ApiKind::MemsetAsync | ApiKind::CopyBlocking | ApiKind::MemsetBlocking
    );
    let waits = step.wait != NONE && action != Action::NoWait;
    let [work] = &model.works[model.works_of(index)] else { return None };
    (submits && !waits && work.op().is_some()).then_some(work.stream)
}

/// Whether a call does nothing to the device and does not wait.
fn is_harmless(trace: &Trace, step: &Step) -> bool {
    let kind = step.call().map(|call| trace.calls.kind[call.index()]);
    step.wait == NONE && matches!(kind, Some(ApiKind::Other | ApiKind::EventRecord | ApiKind::StreamWait))
}

/// Marks a run's graphs and empties it.
fn close(trace: &Trace, model: &Model, run: &mut Run, actions: &mut [Action]) {
    let key = |step: u32| {
        let op = OpIdx(model.works[model.works_of(step as usize).start].op);
        (trace.ops.name[op.index()], trace.ops.detail[op.index()], trace.ops.kind[op.index()])
    };
    let keys: Vec<_> = run.steps.iter().map(|&step| key(step)).collect();
    let size = match period(&keys) {
        0 | 1 => SAME_OPS,
        period => period,
    };
    for graph in run.steps.chunks(size).filter(|graph| graph.len() > 1) {
        actions[graph[0] as usize] = Action::GraphHead;
        for &step in &graph[1..] {
            actions[step as usize] = Action::GraphInside;
        }
        let (first, last) = (graph[0], graph[graph.len() - 1]);
        let from = run.between.partition_point(|&step| step < first);
        for &step in run.between[from..].iter().take_while(|&&step| step < last) {
            actions[step as usize] = Action::GraphInside;
        }
    }
    run.steps.clear();
    run.between.clear();
}

/// The length of the shortest sequence that the values repeat, the last time perhaps in part (Knuth, Morris, Pratt).
fn period<T: PartialEq>(values: &[T]) -> usize {
    let mut border = vec![0usize; values.len()];
    for at in 1..values.len() {
        let mut known = border[at - 1];
        while known > 0 && values[at] != values[known] {
            known = border[known - 1];
        }
        border[at] = known + usize::from(values[at] == values[known]);
    }
    values.len() - border.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::period;

    #[test]
    fn periods() {
        for (text, expected) in
            [("", 0), ("a", 1), ("aaaa", 1), ("abab", 2), ("ababa", 2), ("abcab", 3), ("abca", 3), ("abcd", 4)]
        {
            assert_eq!(period(text.as_bytes()), expected, "{text}");
        }
    }
}
