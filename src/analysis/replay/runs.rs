//! Finds the runs of launches that could be one graph each.
//!
//! A run may fork to other streams and join them again through events, as stream capture does: the calls that record
//! and await these events are part of the graph. What a capture would refuse is no graph: a stream that was not forked
//! from the first launch's stream or is not joined to it in the end, a wait for work outside, an event that nobody in
//! the graph waits for or that the host uses.

use rustc_hash::{FxHashMap, FxHashSet};

use super::model::{Model, NONE, Step};
use super::pass::Action;
use crate::analysis::waits::{Awaited, Waits};
use crate::progress::Until;
use crate::trace::{ApiKind, CallIdx, Ns, OpIdx, ProcessIdx, SyncKind, Trace};

/// Host code between two launches that takes longer computes something, and parts the run.
const MAX_GAP: Ns = Ns::from_us(200);
/// A run in which one op repeats has no period to cut it by; it is cut into graphs of so many ops.
const SAME_OPS: usize = 32;
/// What is repeated so often, in most of a run, is a loop whatever stands beside it.
const MIN_REPETITIONS: usize = 8;
/// A graph over more streams than this is not looked for.
const MAX_STREAMS: usize = 16;

/// What a step is to a run.
#[derive(Clone, Copy)]
enum Part {
    /// Launches one op.
    Launch { stream: u32, op: u32 },
    /// Records an event that streams wait for.
    Record { stream: u32 },
    /// Makes a stream wait for an op.
    Wait { stream: u32, on: u32 },
    /// Does nothing to the device.
    Nothing,
}

/// A step of a run, by its position.
#[derive(Clone, Copy)]
struct Item {
    step: u32,
    part: Part,
}

/// A run in the making, which begins with a launch.
#[derive(Clone, Default)]
struct Run {
    items: Vec<Item>,
    streams: Vec<u32>,
    ops: FxHashSet<u32>,
}

impl Run {
    /// Takes a step in, unless it cannot go on this run.
    fn take(&mut self, step: u32, part: Part) -> bool {
        let ours = |stream| self.streams.contains(&stream);
        let goes_on = match part {
            Part::Launch { stream, .. } | Part::Record { stream } => ours(stream),
            Part::Wait { on, .. } => self.ops.contains(&on),
            Part::Nothing => !self.items.is_empty(),
        };
        if goes_on {
            self.push(step, part);
        }
        goes_on
    }

    fn push(&mut self, step: u32, part: Part) {
        if let Part::Launch { stream, .. } | Part::Wait { stream, .. } = part
            && !self.streams.contains(&stream)
        {
            self.streams.push(stream);
        }
        if let Part::Launch { op, .. } = part {
            self.ops.insert(op);
        }
        self.items.push(Item { step, part });
    }

    fn clear(&mut self) {
        self.items.clear();
        self.streams.clear();
        self.ops.clear();
    }
}

/// Marks every run of at least two launches from one thread, with nothing but harmless calls between them, as one
/// graph. A run that repeats a sequence of ops is one graph per repetition. Gives up early when it is over.
pub(super) fn submit_as_graphs(trace: &Trace, waits: &Waits, model: &Model, actions: &mut [Action], until: Until<'_>) {
    let events = Events::new(trace, waits);
    let mut runs = vec![Run::default(); model.threads];
    for (index, step) in model.steps.iter().enumerate() {
        if until.is_over_at(index) {
            return;
        }
        if step.thread == NONE || actions[index] == Action::Remove {
            continue;
        }
        let run = &mut runs[step.thread as usize];
        let part = launched(trace, model, index, step, actions[index]).or_else(|| events.part(trace, step));
        if let Some(part) = part
            && step.gap <= MAX_GAP
            && run.take(index as u32, part)
        {
            continue;
        }
        close(trace, run, actions);
        if let Some(part @ Part::Launch { .. }) = part {
            run.push(index as u32, part);
        }
    }
    for run in &mut runs {
        close(trace, run, actions);
    }
}

/// The launch of the one op that a step submits, if it may become a node.
fn launched(trace: &Trace, model: &Model, index: usize, step: &Step, action: Action) -> Option<Part> {
    let kind = trace.calls.kind[step.call()?.index()];
    let submits = matches!(
        kind,
        ApiKind::Launch | ApiKind::CopyAsync | ApiKind::MemsetAsync | ApiKind::CopyBlocking | ApiKind::MemsetBlocking
    );
    let waits = step.wait != NONE && action != Action::NoWait;
    let [work] = &model.works[model.works_of(index)] else { return None };
    (submits && !waits && work.op().is_some()).then_some(Part::Launch { stream: work.stream, op: work.op })
}

/// The calls by which streams wait for each other.
struct Events {
    records: FxHashMap<CallIdx, u32>,
    waits: FxHashMap<CallIdx, (u32, u32)>,
}

impl Events {
    fn new(trace: &Trace, waits: &Waits) -> Self {
        let awaited_by = |kind| -> FxHashSet<(ProcessIdx, u32)> {
            let syncs = trace.syncs.iter().filter(|sync| sync.kind == kind);
            syncs.filter_map(|sync| Some((sync.process, sync.event?))).collect()
        };
        let (by_streams, by_host) = (awaited_by(SyncKind::StreamWaitEvent), awaited_by(SyncKind::Event));
        let records = trace.events.iter().filter(|record| {
            let event = (record.process, record.event);
            by_streams.contains(&event) && !by_host.contains(&event)
        });
        let waits = waits.stream_waits().iter().filter_map(|wait| match wait.awaited {
            Awaited::Op(op) => Some((wait.call?, (wait.stream.0, op.0))),
            Awaited::Nothing | Awaited::Unknown => None,
        });
        Self {
            records: records.filter_map(|record| Some((record.call?, record.stream?.0))).collect(),
            waits: waits.collect(),
        }
    }

    /// What a call is that submits no op and does not wait.
    fn part(&self, trace: &Trace, step: &Step) -> Option<Part> {
        let call = step.call().filter(|_| step.wait == NONE)?;
        match trace.calls.kind[call.index()] {
            ApiKind::Other => Some(Part::Nothing),
            ApiKind::EventRecord => self.records.get(&call).map(|&stream| Part::Record { stream }),
            ApiKind::StreamWait => self.waits.get(&call).map(|&(stream, on)| Part::Wait { stream, on }),
            _ => None,
        }
    }
}

/// Marks a run's graphs and empties it.
fn close(trace: &Trace, run: &mut Run, actions: &mut [Action]) {
    for repetition in repetitions(trace, &run.items) {
        if can_be_captured(repetition) {
            mark(repetition, actions);
            continue;
        }
        // Without the events, what goes to one stream without a break.
        let stream = |item: &Item| match item.part {
            Part::Launch { stream, .. } => Some(stream),
            _ => None,
        };
        let event = |item: &Item| matches!(item.part, Part::Record { .. } | Part::Wait { .. });
        for unbroken in repetition.split(event) {
            let mut rest = unbroken;
            while let Some(first) = rest.iter().position(|item| stream(item).is_some()) {
                let of = stream(&rest[first]);
                let other = |item: &Item| stream(item).is_some() && stream(item) != of;
                let end = rest[first..].iter().position(other).map_or(rest.len(), |at| first + at);
                for graph in repetitions(trace, &rest[first..end]) {
                    mark(graph, actions);
                }
                rest = &rest[end..];
            }
        }
    }
    run.clear();
}

/// Cuts steps, the first of which launches, where the sequence of ops begins again.
fn repetitions<'i>(trace: &Trace, items: &'i [Item]) -> Vec<&'i [Item]> {
    let launches = items.iter().enumerate().filter_map(|(at, item)| match item.part {
        Part::Launch { stream, op } => {
            let op = OpIdx(op).index();
            Some((at, (stream, trace.ops.name[op], trace.ops.detail[op], trace.ops.kind[op])))
        }
        _ => None,
    });
    let (at, keys): (Vec<usize>, Vec<_>) = launches.unzip();
    let mut begins = Vec::new();
    cut(&keys, 0, &mut begins);
    let ends = begins.iter().skip(1).map(|&next| at[next]).chain([items.len()]);
    begins.iter().zip(ends).map(|(&from, to)| &items[at[from]..to]).collect()
}

/// Adds where each graph begins among values that stand at `from`: at each repetition of a sequence. What comes only
/// before or behind the repetitions is a graph by itself, so that a single copy does not make one graph of a whole loop.
fn cut<T: PartialEq>(values: &[T], from: usize, begins: &mut Vec<usize>) {
    let whole = period(values);
    let found = if whole * 2 > values.len() { repeated(values) } else { None };
    let Some((first, last, period)) = found else {
        begins.extend((0..values.len()).step_by(graph_size(whole)).map(|at| from + at));
        return;
    };
    cut(&values[..first], from, begins);
    begins.extend((first..last).step_by(graph_size(period)).map(|at| from + at));
    cut(&values[last..], from + last, begins);
}

/// The part of the values that a sequence is repeated in, and how long that is, if it is most of them: what is repeated in
/// their middle, as far as that goes on to both sides.
fn repeated<T: PartialEq>(values: &[T]) -> Option<(usize, usize, usize)> {
    let len = values.len();
    let (mut first, mut last) = (len / 4, len - len / 4);
    let period = period(&values[first..last]);
    if period == 0 || period * 2 > last - first {
        return None;
    }
    while first > 0 && values[first - 1] == values[first - 1 + period] {
        first -= 1;
    }
    while last < len && values[last] == values[last - period] {
        last += 1;
    }
    let long = last - first;
    let is_loop = long * 4 >= len * 3 && long >= MIN_REPETITIONS * graph_size(period);
    is_loop.then_some((first, last - long % period, period))
}

/// How many ops a graph has of a run that repeats so many.
const fn graph_size(period: usize) -> usize {
    if period < 2 { SAME_OPS } else { period }
}

/// Makes one graph of steps, the first of which launches, if they launch several ops.
fn mark(graph: &[Item], actions: &mut [Action]) {
    let last = graph.iter().rposition(|item| !matches!(item.part, Part::Nothing));
    let launches = graph.iter().filter(|item| matches!(item.part, Part::Launch { .. })).count();
    if let (Some(last), true) = (last, launches > 1) {
        let head = &mut actions[graph[0].step as usize];
        let more = u16::try_from(launches - 1).unwrap_or(u16::MAX);
        *head = Action::GraphHead { more, usual: *head != Action::Keep };
        for item in &graph[1..=last] {
            actions[item.step as usize] = Action::GraphInside;
        }
    }
}

/// Whether steps, the first of which launches, fork from its stream and join it again.
fn can_be_captured(items: &[Item]) -> bool {
    // For each stream, how far it is behind which stream: a vector clock.
    let mut streams: Vec<u32> = Vec::new();
    let mut clocks: Vec<[u32; MAX_STREAMS]> = Vec::new();
    let mut at_op: FxHashMap<u32, [u32; MAX_STREAMS]> = FxHashMap::default();
    let mut last_op = [NONE; MAX_STREAMS];
    let (mut recorded, mut awaited) = (FxHashSet::default(), FxHashSet::default());
    for item in items {
        let (Part::Launch { stream, .. } | Part::Record { stream } | Part::Wait { stream, .. }) = item.part else {
            continue;
        };
        let at = streams.iter().position(|&known| known == stream).unwrap_or_else(|| {
            streams.push(stream);
            clocks.push([0; MAX_STREAMS]);
            streams.len() - 1
        });
        if at >= MAX_STREAMS {
            return false;
        }
        match item.part {
            Part::Launch { op, .. } => {
                clocks[at][at] += 1;
                if clocks[at][0] == 0 {
                    return false;
                }
                at_op.insert(op, clocks[at]);
                last_op[at] = op;
            }
            Part::Wait { on, .. } => {
                let Some(before) = at_op.get(&on) else { return false };
                for (own, &before) in clocks[at].iter_mut().zip(before) {
                    *own = before.max(*own);
                }
                clocks[at][at] += 1;
                awaited.insert(on);
            }
            Part::Record { .. } => {
                recorded.insert(last_op[at]);
            }
            Part::Nothing => {}
        }
    }
    let joined = clocks.iter().enumerate().all(|(at, clock)| clocks[0][at] == clock[at]);
    joined && recorded.is_subset(&awaited)
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
    use super::cut;

    /// The graphs that a sequence of ops is cut into.
    fn graphs(text: &str) -> Vec<&str> {
        let mut begins = Vec::new();
        cut(text.as_bytes(), 0, &mut begins);
        let ends = begins.iter().skip(1).copied().chain([text.len()]);
        begins.iter().zip(ends).map(|(&from, to)| &text[from..to]).collect()
    }

    #[test]
    fn each_repetition_is_a_graph() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("aaaa", &["aaaa"]),
            ("abab", &["ab", "ab"]),
            ("ababa", &["ab", "ab", "a"]),
            ("abcab", &["abc", "ab"]),
            ("abca", &["abc", "a"]),
            ("abcd", &["abcd"]),
            ("aaaab", &["aaaab"]),
            ("aaaabaaaab", &["aaaab", "aaaab"]),
        ] {
            assert_eq!(graphs(text), expected, "{text}");
        }
        let same = "a".repeat(80);
        assert_eq!(graphs(&same).iter().map(|graph| graph.len()).collect::<Vec<_>>(), [32, 32, 16]);
    }

    #[test]
    fn what_stands_before_or_behind_a_loop_does_not_change_it() {
        let lengths = |text: &str| graphs(text).iter().map(|graph| graph.len()).collect::<Vec<_>>();
        for (step, times) in [("aaaab", 20), ("abc", 50), ("a", 640)] {
            let repeated = step.repeat(times);
            let alone = lengths(&repeated);
            for odd in ["x", "xy", "xyz"] {
                let behind = lengths(&format!("{repeated}{odd}"));
                assert_eq!(behind, [&alone[..], &[odd.len()]].concat(), "{step} {odd}");
                let before = lengths(&format!("{odd}{repeated}"));
                assert_eq!(before, [&[odd.len()], &alone[..]].concat(), "{step} {odd}");
                let both = lengths(&format!("{odd}{repeated}{odd}"));
                assert_eq!(both, [&[odd.len()], &alone[..], &[odd.len()]].concat(), "{step} {odd}");
            }
            // In the middle of a step, too.
            let torn = lengths(&repeated[1..]);
            assert!(torn.iter().all(|&length| length <= alone[0]), "{torn:?}");
        }
        // What is no loop is one graph.
        assert_eq!(graphs("aabbccdd"), ["aabbccdd"]);
    }
}
