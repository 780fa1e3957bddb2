//! Where a moment of host time falls in the order in which work was submitted to a stream.

use crate::trace::{CorrelationId, Ns, OpIdx, StreamIdx, Trace};

/// When an op was submitted: the start of its launch call, or its own start when the call is unknown.
pub(crate) fn submitted(trace: &Trace, op: OpIdx) -> Ns {
    trace.ops.launch(op).map_or(trace.ops.start[op.index()], |call| trace.calls.start[call.index()])
}

/// The last op of a stream that was submitted before `moment`.
pub(crate) fn last_submitted_before(trace: &Trace, stream: StreamIdx, moment: Ns) -> Option<OpIdx> {
    last_where(trace, stream, |op| submitted(trace, op) < moment)
}

/// The last op of a stream whose correlation id is lower than `id`.
pub(super) fn last_correlated_before(trace: &Trace, stream: StreamIdx, id: CorrelationId) -> Option<OpIdx> {
    last_where(trace, stream, |op| trace.ops.correlation[op.index()] < id)
}

/// The last op of the leading part of a stream for which `before` holds. A stream runs its work in the order in which
/// it was submitted, so the ops for which it holds come first.
fn last_where(trace: &Trace, stream: StreamIdx, before: impl Fn(OpIdx) -> bool) -> Option<OpIdx> {
    let range = trace.streams.get(stream.index())?.ops.clone();
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(OpIdx(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low > range.start).then(|| OpIdx(low - 1))
}
