//! Queries in a spin: a loop that asks until the work is done waits as a synchronisation does.

use super::{Finder, Wait, WaitCause};
use crate::trace::{ApiKind, CallIdx, Ns, ThreadIdx, Trace};

/// Fewer queries in a row are not a spin.
const MIN_QUERIES: usize = 3;
/// Queries further apart are polls between other work, not a spin.
const MAX_GAP: Ns = Ns::from_us(100);
/// `cudaErrorNotReady` and `CUDA_ERROR_NOT_READY`.
const NOT_READY: i32 = 600;

/// Whether the source gives the values that calls returned: some query of the recording was told "not ready".
pub(super) fn results_known(trace: &Trace) -> bool {
    let calls = &trace.calls;
    let in_trace =
        || calls.indices().any(|call| calls.result[call.index()] == NOT_READY && calls.kind[call.index()].queries());
    let mut elsewhere = trace.calls_elsewhere();
    in_trace() || elsewhere.any(|(_, name, result)| result == NOT_READY && ApiKind::of(name).queries())
}

/// Adds the spins of a thread to its waits, which stand at `from` and after, in table order.
pub(super) fn merge(finder: &Finder<'_>, results_known: bool, thread: ThreadIdx, from: usize, waits: &mut Vec<Wait>) {
    let trace = finder.trace;
    let calls = &trace.calls;
    let known = waits.len();
    let mut run: Vec<CallIdx> = Vec::new();
    let mut outer_end = Ns::MIN;
    for call in trace.thread_calls(thread) {
        if calls.end[call.index()] <= outer_end {
            continue;
        }
        outer_end = calls.end[call.index()];
        let query = calls.kind[call.index()].queries();
        let continues = run.last().is_some_and(|last| {
            calls.name[last.index()] == calls.name[call.index()]
                && calls.start[call.index()] - calls.end[last.index()] <= MAX_GAP
        });
        if !(query && continues) {
            close(finder, results_known, &mut run, waits);
        }
        if query {
            run.push(call);
            if run.len() > 1 && calls.result[call.index()] == 0 && calls.result[run[0].index()] == NOT_READY {
                close(finder, results_known, &mut run, waits);
            }
        }
    }
    close(finder, results_known, &mut run, waits);
    if waits.len() > known {
        waits[from..].sort_by_key(|wait| wait.call);
    }
}

/// Turns a run of queries into waits if it is a spin, and empties it.
///
/// With results, a spin asks until the answer is no longer "not ready"; queries that all found their work done are
/// none. Sources without results give 0 for all: then the length of the run decides.
fn close(finder: &Finder<'_>, results_known: bool, run: &mut Vec<CallIdx>, waits: &mut Vec<Wait>) {
    let trace = finder.trace;
    if let (true, Some(&last)) = (run.len() >= MIN_QUERIES, run.last()) {
        let waited = run.iter().any(|call| trace.calls.result[call.index()] == NOT_READY);
        if waited || !results_known {
            let target = finder.recorded(last).unwrap_or(super::Target::Process(trace.call_process(last)));
            let cause = |call| if call == last { WaitCause::SpinEnd } else { WaitCause::SpinBody };
            waits.extend(run.iter().map(|&call| Wait { call, cause: cause(call), target }));
        }
    }
    run.clear();
}
