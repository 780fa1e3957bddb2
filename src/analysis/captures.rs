//! Which calls were captured into a graph instead of being carried out.

use crate::trace::{CallIdx, ThreadIdx, Trace, base_name};

/// For every call whether it went into a stream capture.
///
/// Those are the calls of a thread between one that begins a capture and the one that ends it, without those of which
/// device work was recorded: they went to a stream that was not captured. A capture whose end is not in the trace, or
/// lies on another thread, is not known.
pub(super) struct Captures {
    /// Empty when no capture is known.
    captured: Vec<bool>,
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
}

impl Captures {
    pub(super) fn new(trace: &Trace) -> Self {
        let edges: Vec<Option<Edge>> = trace.names.iter().map(|(_, name)| edge(name)).collect();
        if !edges.contains(&Some(Edge::End)) {
            return Self { captured: Vec::new() };
        }
        let mut captured = vec![false; trace.calls.len()];
        for thread in 0..trace.threads.len() {
            let calls = outermost(trace, ThreadIdx::from_index(thread));
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
                        }
                    }
                    _ => {}
                }
            }
            let mut open = 0;
            for (call, step) in calls.iter().zip(steps) {
                open += step;
                if open > 0 && !call.has_ops {
                    captured[call.first..call.until].fill(true);
                }
            }
        }
        Self { captured }
    }

    /// Whether the call was captured.
    #[inline]
    pub(super) fn contains(&self, call: CallIdx) -> bool {
        self.captured.get(call.index()).copied().unwrap_or(false)
    }
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
        let (index, end) = (call.index(), trace.calls.end[call.index()]);
        match found.last_mut().filter(|outer| end <= trace.calls.end[outer.first]) {
            Some(outer) => {
                outer.until = index + 1;
                outer.has_ops |= has_ops;
            }
            None => found.push(Outermost { first: index, until: index + 1, has_ops }),
        }
    }
    found
}
