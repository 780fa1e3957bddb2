//! Which calls were captured into a graph instead of being carried out.

use crate::trace::{CallIdx, CaptureEdge, Interval, Ns, ThreadIdx, Trace};

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
    /// The captures of each process of which the trace has only one end; empty when no capture is known.
    half_known: Vec<HalfKnown>,
}

/// Captures of which only one end is known: one without an end goes on for ever, one without a beginning was always
/// open, so that one of each says as much as all.
#[derive(Clone, Copy, Default)]
struct HalfKnown {
    /// When the first began of those without an end.
    begun: Option<Ns>,
    /// When the last ended of those without a beginning.
    ended: Option<Ns>,
}

impl HalfKnown {
    fn contains(self, moment: Ns) -> bool {
        self.begun.is_some_and(|begun| begun <= moment) || self.ended.is_some_and(|ended| moment < ended)
    }
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
        let edges: Vec<Option<CaptureEdge>> = trace.names.iter().map(|(_, name)| CaptureEdge::of(name)).collect();
        if edges.iter().all(Option::is_none) {
            return Self { captured: Vec::new(), half_known: Vec::new() };
        }
        let mut captured = vec![false; trace.calls.len()];
        let mut half_known = vec![HalfKnown::default(); trace.processes.len()];
        // When each process captured.
        let mut during: Vec<Vec<Interval>> = vec![Vec::new(); trace.processes.len()];
        for thread in (0..trace.threads.len()).map(ThreadIdx::from_index) {
            let process = trace.threads[thread.index()].process.index();
            let half_known = &mut half_known[process];
            let calls = outermost(trace, thread);
            let start = |at: usize| trace.calls.start[calls[at].first];
            let mut begun: Vec<usize> = Vec::new();
            // How many captures are open from each call on, less those from the call before on.
            let mut steps = vec![0_i32; calls.len() + 1];
            for (at, call) in calls.iter().enumerate() {
                match edges.get(trace.calls.name[call.first].index()).copied().flatten() {
                    Some(CaptureEdge::Begin) if trace.calls.result[call.first] == 0 => begun.push(at),
                    Some(CaptureEdge::End) => {
                        if let Some(begin) = begun.pop() {
                            steps[begin + 1] += 1;
                            steps[at] -= 1;
                            during[process].push(Interval::new(start(begin), start(at)));
                        } else if trace.calls.result[call.first] == 0 {
                            half_known.ended = half_known.ended.max(Some(start(at)));
                        }
                    }
                    _ => {}
                }
            }
            // The calls are in order of time.
            if let Some(&first) = begun.first() {
                half_known.begun = Some(half_known.begun.map_or(start(first), |begun| begun.min(start(first))));
            }
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
        let known = self.half_known.get(trace.call_process(call).index());
        known.is_some_and(|known| known.contains(trace.calls.start[call.index()]))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::scene::Scene;
    use crate::trace::ProcessIdx;

    proptest! {
        /// Captures begun and ended on any thread of two processes: a launch may have been captured whenever any of
        /// those is open of which its thread has only one end.
        #[test]
        fn one_end_of_each_kind_says_as_much_as_all(
            calls in prop::collection::vec((1_u32..3, 1_u64..4, 0_u8..3), 1..40),
        ) {
            let mut scene = Scene::new();
            for (at, &(pid, tid, what)) in calls.iter().enumerate() {
                scene.on_thread(pid, u64::from(pid) * 10 + tid);
                let name = ["cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaLaunchKernel"][usize::from(what)];
                let start = at as i64 * 10;
                scene.call(name, at as u64 + 1, start, start + 5);
            }
            let trace = scene.finish();
            let captures = Captures::new(&trace);
            let of_kind = |call: CallIdx| CaptureEdge::of(trace.call_name(call));
            // The edges of each thread that have no other end.
            let mut alone: Vec<(ProcessIdx, CaptureEdge, Ns)> = Vec::new();
            for thread in (0..trace.threads.len()).map(ThreadIdx::from_index) {
                let mut open: Vec<CallIdx> = Vec::new();
                for call in trace.thread_calls(thread) {
                    let ended = of_kind(call) == Some(CaptureEdge::End) && open.pop().is_none();
                    if of_kind(call) == Some(CaptureEdge::Begin) {
                        open.push(call);
                    } else if ended {
                        alone.push((trace.call_process(call), CaptureEdge::End, trace.calls.start[call.index()]));
                    }
                }
                let begun = |call: CallIdx| (trace.call_process(call), CaptureEdge::Begin, trace.calls.start[call.index()]);
                alone.extend(open.into_iter().map(begun));
            }
            for call in trace.calls.indices().filter(|call| of_kind(*call).is_none()) {
                let (process, start) = (trace.call_process(call), trace.calls.start[call.index()]);
                let expected = alone.iter().any(|&(of, edge, at)| {
                    of == process && if edge == CaptureEdge::Begin { at <= start } else { start < at }
                });
                prop_assert_eq!(captures.may_contain(&trace, call), expected);
            }
        }
    }
}
