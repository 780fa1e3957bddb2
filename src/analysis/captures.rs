//! Which calls were captured into a graph instead of being carried out.

use crate::trace::{CallIdx, Interval, Ns, ProcessIdx, ThreadIdx, Trace, base_name};

/// For every call whether it went into a stream capture.
///
/// Those are the calls of a thread between one that begins a capture and the one that ends it, without those of which
/// device work was recorded: they went to a stream that was not captured. So are calls without device work that submit
/// some, made meanwhile by other threads of the process: a stream is captured whoever launches into it, as PyTorch's
/// thread for the backward pass does. A capture of which only one end is in the trace, or whose ends lie on two threads,
/// is not known; see [`Self::may_contain`].
pub(super) struct Captures {
    /// Empty when no capture is known.
    captured: Vec<bool>,
    /// When captures were open of which the trace has only one end, by process.
    half_known: Vec<(ProcessIdx, Interval)>,
}

/// What a call does to the captures of its thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Begin,
    End,
}

/// A call that lies in no other one, with those that lie in it: a range of the call table.
struct Outermost {
    first: usize,
    until: usize,
    has_ops: bool,
    /// Whether one of them submits device work.
    submits: bool,
}

impl Captures {
    pub(super) fn new(trace: &Trace) -> Self {
        let edges: Vec<Option<Edge>> = trace.names.iter().map(|(_, name)| edge(name)).collect();
        if edges.iter().all(Option::is_none) {
            return Self { captured: Vec::new(), half_known: Vec::new() };
        }
        let mut captured = vec![false; trace.calls.len()];
        let mut half_known = Vec::new();
        // When each process captured.
        let mut during: Vec<Vec<Interval>> = vec![Vec::new(); trace.processes.len()];
        for thread in (0..trace.threads.len()).map(ThreadIdx::from_index) {
            let process = trace.threads[thread.index()].process;
            let calls = outermost(trace, thread);
            let start = |at: usize| trace.calls.start[calls[at].first];
            let mut begun: Vec<usize> = Vec::new();
            // How many captures are open from each call on, less those from the call before on.
            let mut steps = vec![0_i32; calls.len() + 1];
            for (at, call) in calls.iter().enumerate() {
                match edges.get(trace.calls.name[call.first].index()).copied().flatten() {
                    Some(Edge::Begin) if trace.calls.result[call.first] == 0 => begun.push(at),
                    Some(Edge::End) => {
                        if let Some(begin) = begun.pop() {
                            steps[begin + 1] += 1;
                            steps[at] -= 1;
                            during[process.index()].push(Interval::new(start(begin), start(at)));
                        } else if trace.calls.result[call.first] == 0 {
                            half_known.push((process, Interval::new(Ns::MIN, start(at))));
                        }
                    }
                    _ => {}
                }
            }
            half_known.extend(begun.into_iter().map(|begin| (process, Interval::new(start(begin), Ns::MAX))));
            let mut open = 0;
            for (call, step) in calls.iter().zip(steps) {
                open += step;
                if open > 0 && !call.has_ops {
                    captured[call.first..call.until].fill(true);
                }
            }
        }
        for thread in (0..trace.threads.len()).map(ThreadIdx::from_index) {
            let during = &mut during[trace.threads[thread.index()].process.index()];
            if during.is_empty() {
                continue;
            }
            *during = union(std::mem::take(during));
            for call in outermost(trace, thread).iter().filter(|call| call.submits && !call.has_ops) {
                let start = trace.calls.start[call.first];
                let begun = during.partition_point(|capture| capture.start < start);
                if begun > 0 && start < during[begun - 1].end {
                    captured[call.first..call.until].fill(true);
                }
            }
        }
        Self { captured, half_known }
    }

    /// Whether the call was captured.
    #[inline]
    pub(super) fn contains(&self, call: CallIdx) -> bool {
        self.captured.get(call.index()).copied().unwrap_or(false)
    }

    /// Whether a call that is not known to have been captured may have been: it was made after the beginning of a
    /// capture of its process whose end is not in the trace, or before the end of one whose beginning is not.
    pub(super) fn may_contain(&self, trace: &Trace, call: CallIdx) -> bool {
        let (process, start) = (trace.call_process(call), trace.calls.start[call.index()]);
        self.half_known.iter().any(|(of, times)| *of == process && times.contains(start))
    }
}

/// Intervals in order of time, those that overlap joined.
fn union(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
    intervals
}

/// Whether calls of this name begin or end a capture.
fn edge(name: &str) -> Option<Edge> {
    let base = base_name(name);
    let stem = ["cuda", "cu", "hip"].iter().find_map(|prefix| base.strip_prefix(prefix))?;
    if stem.starts_with("StreamBeginCapture") {
        Some(Edge::Begin)
    } else {
        stem.starts_with("StreamEndCapture").then_some(Edge::End)
    }
}

/// The calls of a thread that lie in no other one.
fn outermost(trace: &Trace, thread: ThreadIdx) -> Vec<Outermost> {
    let mut found: Vec<Outermost> = Vec::new();
    for call in trace.thread_calls(thread) {
        let has_ops = !trace.call_ops(call).is_empty();
        let submits = trace.calls.kind[call.index()].submits();
        let (index, end) = (call.index(), trace.calls.end[call.index()]);
        match found.last_mut().filter(|outer| end <= trace.calls.end[outer.first]) {
            Some(outer) => {
                outer.until = index + 1;
                outer.has_ops |= has_ops;
                outer.submits |= submits;
            }
            None => found.push(Outermost { first: index, until: index + 1, has_ops, submits }),
        }
    }
    found
}
