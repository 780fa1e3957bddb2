//! One pass over a device's ops: the partition of its span, its streams' figures and where nothing ran.

use crate::progress::Until;
use crate::trace::{CallIdx, DeviceIdx, Interval, NameId, Ns, OpIdx, OpKind, StreamIdx, Trace};

use super::calls::CallClasses;
use super::cause::Cause;
use super::intervals::{clip, device_ops};
use super::result::{Partition, StreamFigures};

/// An idle interval with what is known from the ops around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) interval: Interval,
    /// One op that ended at its start.
    pub(super) before: OpIdx,
    /// The op that ended it.
    pub(super) after: OpIdx,
    /// Whether an op that ended at its start belongs to the same graph launch as `after`.
    pub(super) in_graph: bool,
    /// Whether, since the gap before, an op of another launch started while the device was busy.
    pub(super) fed: bool,
    /// The blocking copy of the process of `after` whose op ended at its start.
    pub(super) own_copy: Option<CallIdx>,
}

/// What the pass over one device found.
pub(super) struct Sweep {
    pub(super) span: Interval,
    pub(super) partition: Partition,
    pub(super) exposed_comm: Ns,
    pub(super) ops: u64,
    pub(super) gaps: Vec<Gap>,
    pub(super) streams: Vec<StreamFigures>,
}

/// Whether each name is that of a collective's kernel (NCCL, RCCL, NVSHMEM).
pub fn collective_names(trace: &Trace) -> Vec<bool> {
    let is_collective = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["nccl", "rccl", "nvshmem"].iter().any(|library| name.contains(library))
    };
    trace.names.iter().map(|(_, name)| is_collective(name)).collect()
}

/// How far each class of ops reaches, at the sweep's position, and what was summed up to it.
#[derive(Default)]
struct Cover {
    position: Ns,
    kernels: Ns,
    copies: Ns,
    collectives: Ns,
    other_kernels: Ns,
    partition: Partition,
    exposed_comm: Ns,
}

impl Cover {
    fn starting_at(position: Ns) -> Self {
        let covers = Self { position, kernels: position, copies: position, ..Self::default() };
        Self { collectives: position, other_kernels: position, ..covers }
    }

    /// Sums what the ops so far do up to `to`. All of them began at or before the position, so each class covers a
    /// first part of the step.
    fn advance(&mut self, to: Ns) {
        let position = self.position;
        let part = |reach: Ns| (reach.min(to) - position).max_zero();
        let (kernels, copies) = (part(self.kernels), part(self.copies));
        self.partition.overlapped += kernels.min(copies);
        self.partition.compute_only += (kernels - copies).max_zero();
        self.partition.exposed_copy += (copies - kernels).max_zero();
        self.partition.idle += to - position - kernels.max(copies);
        self.exposed_comm += (part(self.collectives) - part(self.other_kernels)).max_zero();
        self.position = to;
    }

    fn add(&mut self, kind: OpKind, collective: bool, end: Ns) {
        let reach = |reach: &mut Ns| *reach = (*reach).max(end);
        if kind.is_copy() {
            reach(&mut self.copies);
        } else {
            reach(&mut self.kernels);
            reach(if collective { &mut self.collectives } else { &mut self.other_kernels });
        }
    }
}

/// The gaps of a device as its ops pass by in groups of one start.
struct GapFinder<'a> {
    trace: &'a Trace,
    classes: &'a CallClasses,
    gaps: Vec<Gap>,
    /// The end of all ops so far, ops without length inside a gap left out.
    busy_until: Ns,
    /// The ops that end there.
    enders: Vec<OpIdx>,
    /// The launch of the op that began the busy run.
    run_launch: Option<CallIdx>,
    fed: bool,
    /// Ops without length in the gap that is open: the last group of them ends it if nothing follows.
    tail: Option<(Ns, OpIdx)>,
}

impl GapFinder<'_> {
    /// Takes all ops that start at `start`, with the ends of what the window leaves of them.
    fn group(&mut self, start: Ns, group: &[(OpIdx, Ns)]) {
        let lasting = group.iter().any(|&(_, end)| end > start);
        if start > self.busy_until {
            let next = self.next_op(group);
            if !lasting {
                self.tail = next.map(|op| (start, op));
                return;
            }
            if let Some(next) = next {
                self.close(start, next);
            }
            self.busy_until = start;
            self.enders.clear();
        } else {
            self.fed |= group.iter().any(|&(op, _)| {
                let launch = self.trace.ops.launch(op);
                launch.is_some() && launch != self.run_launch
            });
        }
        self.tail = None;
        for &(op, end) in group {
            if end > self.busy_until {
                self.busy_until = end;
                self.enders.clear();
            }
            if end == self.busy_until {
                self.enders.push(op);
            }
        }
    }

    fn finish(mut self) -> Vec<Gap> {
        if let Some((start, op)) = self.tail {
            self.close(start, op);
        }
        self.gaps
    }

    /// Of the ops that start together the one with a known launch, then the earliest launch, stream, correlation.
    fn next_op(&self, group: &[(OpIdx, Ns)]) -> Option<OpIdx> {
        let ops = &self.trace.ops;
        let key = |op: OpIdx| {
            let launch = ops.launch(op).map(|call| self.trace.calls.start[call.index()]);
            (launch.is_none(), launch, ops.stream[op.index()], ops.correlation[op.index()], op)
        };
        group.iter().map(|&(op, _)| op).min_by_key(|&op| key(op))
    }

    fn close(&mut self, end: Ns, after: OpIdx) {
        let trace = self.trace;
        let ops = &trace.ops;
        let key =
            |op: OpIdx| (!same_graph_launch(trace, op, after), ops.stream[op.index()] != ops.stream[after.index()], op);
        let Some(before) = self.enders.iter().copied().min_by_key(|&op| key(op)) else { return };
        let process = trace.op_process(after);
        let own_copy = self
            .enders
            .iter()
            .filter(|&&op| trace.op_process(op) == process)
            .find_map(|&op| ops.launch(op).filter(|&call| self.classes.drain(call) == Some(Cause::BlockingCopy)));
        self.gaps.push(Gap {
            interval: Interval::new(self.busy_until, end),
            before,
            after,
            in_graph: same_graph_launch(trace, before, after),
            fed: self.fed,
            own_copy,
        });
        self.run_launch = ops.launch(after);
        self.fed = false;
    }
}

/// Whether two ops are nodes of one launch of a graph. A body of a conditional node has no correlation id to tell it.
fn same_graph_launch(trace: &Trace, a: OpIdx, b: OpIdx) -> bool {
    let ops = &trace.ops;
    let correlation = ops.correlation[a.index()];
    let launch = ops.launch(b).filter(|call| trace.calls.kind[call.index()] == crate::trace::ApiKind::GraphLaunch);
    let same_id = correlation.is_some()
        && correlation == ops.correlation[b.index()]
        && trace.op_process(a) == trace.op_process(b)
        && (ops.graph[b.index()].is_some() || launch.is_some());
    same_id || (launch.is_some() && launch == ops.launch(a))
}

/// Passes over the ops of `device` inside `window`; `None` when there is none. Gives up early, with a part of them, when it
/// is over.
pub(super) fn sweep(
    trace: &Trace,
    device: DeviceIdx,
    window: Interval,
    collective: &[bool],
    classes: &CallClasses,
    until: Until<'_>,
) -> Option<Sweep> {
    let is_collective = |name: NameId| collective.get(name.index()).copied().unwrap_or(false);
    let mut ops = device_ops(trace, device, window)
        .filter_map(|op| clip(trace.ops.interval(op), window).map(|interval| (op, interval)))
        .peekable();
    let first = ops.peek()?.1.start;
    let mut cover = Cover::starting_at(first);
    let mut lanes = Lanes::default();
    let mut finder = GapFinder {
        trace,
        classes,
        gaps: Vec::new(),
        busy_until: first,
        enders: Vec::new(),
        run_launch: None,
        fed: false,
        tail: None,
    };
    let mut group: Vec<(OpIdx, Ns)> = Vec::new();
    let (mut count, mut last) = (0, first);
    for turn in 0.. {
        let Some((op, Interval { start, end })) = ops.next().filter(|_| !until.is_over_at(turn)) else { break };
        cover.advance(start);
        group.clear();
        group.push((op, end));
        while let Some(&(op, interval)) = ops.peek().filter(|(_, interval)| interval.start == start) {
            group.push((op, interval.end));
            ops.next();
        }
        for &(op, end) in &group {
            let kind = trace.ops.kind[op.index()];
            cover.add(kind, is_collective(trace.ops.name[op.index()]), end);
            lanes.add(trace.ops.stream[op.index()], Interval::new(start, end));
            last = last.max(end);
        }
        count += group.len() as u64;
        finder.group(start, &group);
    }
    cover.advance(last);
    Some(Sweep {
        span: Interval::new(first, last),
        partition: cover.partition,
        exposed_comm: cover.exposed_comm,
        ops: count,
        gaps: finder.finish(),
        streams: lanes.finish(),
    })
}

/// The figures of the streams as their ops pass by.
#[derive(Default)]
struct Lanes {
    first: Option<usize>,
    streams: Vec<Option<StreamFigures>>,
}

impl Lanes {
    #[inline]
    fn add(&mut self, stream: StreamIdx, op: Interval) {
        // The streams of a device stand together, so few positions stay unused.
        let first = *self.first.get_or_insert(stream.index());
        if stream.index() < first {
            let missing = first - stream.index();
            self.streams.splice(0..0, std::iter::repeat_n(None, missing));
            self.first = Some(stream.index());
        }
        let at = stream.index() - self.first.unwrap_or(0);
        if at >= self.streams.len() {
            self.streams.resize(at + 1, None);
        }
        let empty = StreamFigures {
            stream,
            ops: 0,
            span: Interval::new(op.start, op.start),
            busy: Ns::ZERO,
            stream_gap: Ns::ZERO,
        };
        let figures = self.streams[at].get_or_insert(empty);
        figures.ops += 1;
        figures.busy += (op.end - op.start.max(figures.span.end)).max_zero();
        figures.span.end = figures.span.end.max(op.end);
    }

    fn finish(self) -> Vec<StreamFigures> {
        let gap = |figures: StreamFigures| StreamFigures { stream_gap: figures.span.len() - figures.busy, ..figures };
        self.streams.into_iter().flatten().map(gap).collect()
    }
}
