//! What an op waits for by the rule of the legacy default stream.

use super::CLOCK_SLACK;
use super::lanes::{last_submitted_before, submitted};
use crate::trace::{Ns, OpIdx, StreamIdx, StreamKind, Trace};

/// The op that held an op back because one of the two is on the legacy default stream and the other's stream serialises
/// with it: of those submitted before it, the one that ended last. `None` when it ended before the op was submitted, or
/// not after the work before it on the op's own stream: then it held nothing.
///
/// Takes time in proportion to the streams.
pub fn default_stream_wait(trace: &Trace, op: OpIdx) -> Option<OpIdx> {
    let own = *trace.ops.stream.get(op.index())?;
    let stream = trace.streams.get(own.index())?;
    let other = match stream.kind {
        StreamKind::Null => StreamKind::Blocking,
        StreamKind::Blocking => StreamKind::Null,
        StreamKind::NonBlocking | StreamKind::Unknown => return None,
    };
    let began = submitted(trace, op);
    let ends = |op: &OpIdx| trace.ops.end[op.index()];
    let ahead = if op.0 > stream.ops.start { ends(&OpIdx(op.0 - 1)) } else { Ns::MIN };
    let serialised = trace.streams.iter().enumerate();
    let serialised = serialised.filter(|(_, found)| found.context == stream.context && found.kind == other);
    let before = serialised.filter_map(|(at, _)| last_submitted_before(trace, StreamIdx::from_index(at), began));
    let last = before.max_by_key(|op| (ends(op), *op))?;
    let (end, start) = (ends(&last), trace.ops.start[op.index()]);
    (end > began && end > ahead && end <= start.saturating_add(CLOCK_SLACK)).then_some(last)
}
