//! The order in which work was submitted.

use super::model::NONE;
use crate::analysis::waits::Waits;
use crate::trace::{Interval, Ns, OpIdx, ThreadIdx, Trace};

/// What happens at one place of the order.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// When the call began, or an op without a call was submitted at the latest.
    pub(super) order: Ns,
    /// The call, or `NONE` for an op without a call inside the window.
    pub(super) call: u32,
    /// One past the last call nested in it; or the op.
    pub(super) last: u32,
    /// Position in [`Waits::calls`].
    pub(super) wait: u32,
}

/// Outermost calls and ops without a call, sorted by start.
pub(super) fn entries(trace: &Trace, waits: &Waits, window: Option<Interval>) -> Vec<Entry> {
    let calls = &trace.calls;
    let inside = |moment: Ns| window.is_none_or(|window| window.contains(moment));
    let mut entries: Vec<Entry> = Vec::with_capacity(calls.len());
    let mut wait = 0;
    for thread in 0..trace.threads.len() {
        let mut outer_end = Ns::MIN;
        let mut current: Option<usize> = None;
        for call in trace.thread_calls(ThreadIdx::from_index(thread)) {
            if calls.end[call.index()] <= outer_end {
                if let Some(current) = current {
                    entries[current].last = call.0 + 1;
                }
                continue;
            }
            outer_end = calls.end[call.index()];
            while waits.calls().get(wait).is_some_and(|known| known.call < call) {
                wait += 1;
            }
            let known = waits.calls().get(wait).is_some_and(|known| known.call == call);
            let start = calls.start[call.index()];
            current = inside(start).then_some(entries.len());
            if current.is_some() {
                let wait = if known { wait as u32 } else { NONE };
                entries.push(Entry { order: start, call: call.0, last: call.0 + 1, wait });
            }
        }
    }
    // An op without a call was submitted before whatever follows it on its stream, so it comes before that's call.
    let (mut stream, mut next) = (NONE, Ns::MAX);
    for op in (0..trace.ops.len()).rev().map(OpIdx::from_index) {
        if trace.ops.stream[op.index()].0 != stream {
            (stream, next) = (trace.ops.stream[op.index()].0, Ns::MAX);
        }
        let time = trace.ops.interval(op);
        let called = trace.ops.launch(op).map(|call| calls.start[call.index()]);
        next = next.min(called.unwrap_or(time.start));
        let orphan = match (called, window) {
            (None, None) => true,
            (Some(_), None) => false,
            (called, Some(window)) => {
                called.is_none_or(|called| called < window.start) && time.start < window.end && time.end > window.start
            }
        };
        if orphan {
            entries.push(Entry { order: next, call: NONE, last: op.0, wait: NONE });
        }
    }
    // Stable, and quick on sorted runs: threads and streams are sorted already.
    entries.sort_by_key(|entry| (entry.order, if entry.call == NONE { entry.last } else { NONE }));
    entries
}
