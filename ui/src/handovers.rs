//! Ops that waited on the device for ops of other streams: through CUDA events, or through the legacy default stream.

use std::collections::HashMap;

use bubblescope::analysis::waits::{Awaited, StreamWait, stream_waits};
use bubblescope::trace::{ApiKind, CallIdx, CorrelationId, EventRecord, OpIdx, ProcessIdx, StreamIdx, Trace};

use crate::document::Item;

/// What makes one stream wait for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// An event, by the call that told the stream to wait.
    Event,
    /// The legacy default stream, which serialises with every blocking stream of its context.
    DefaultStream,
}

/// One wait of a stream for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// What makes it wait.
    pub through: Through,
    /// The last op before the event was recorded; `None` when there was none, or it is not known.
    pub first: Option<OpIdx>,
    /// The call that recorded the event.
    pub record: Option<CallIdx>,
    /// The call that told the stream to wait.
    pub wait: Option<CallIdx>,
    /// The first op that was submitted to the waiting stream after that.
    pub then: Option<OpIdx>,
}

/// The waits of a trace, found by each of their parts.
#[derive(Clone, Debug, Default)]
pub struct Handovers {
    all: Vec<Handover>,
    /// Positions in `all`, for each part sorted by it. A wait that lacks the part is not among them.
    orders: [Vec<u32>; 4],
}

impl Handover {
    /// One through the legacy default stream.
    pub fn through_default_stream(first: OpIdx, then: OpIdx) -> Self {
        Self { through: Through::DefaultStream, first: Some(first), record: None, wait: None, then: Some(then) }
    }
}

/// The parts of a handover, in the order of [`Handovers::orders`].
const PARTS: [fn(&Handover) -> Option<u32>; 4] = [
    |handover| handover.first.map(|op| op.0),
    |handover| handover.record.map(|call| call.0),
    |handover| handover.wait.map(|call| call.0),
    |handover| handover.then.map(|op| op.0),
];

impl Handovers {
    /// Finds the waits. Takes time in proportion to waits and event records, and to calls if there are any of these.
    pub fn new(trace: &Trace) -> Self {
        let waits = stream_waits(trace);
        if waits.is_empty() {
            return Self::default();
        }
        let records = record_calls(trace);
        let handover = |wait: &StreamWait| {
            let process = trace.streams.get(wait.stream.index())?.process;
            Some(Handover {
                through: Through::Event,
                first: if let Awaited::Op(op) = wait.awaited { Some(op) } else { None },
                record: records.get(&(process, wait.recorded)).copied(),
                wait: wait.call,
                then: first_after(trace, wait.stream, wait.correlation),
            })
        };
        let all: Vec<Handover> = waits.iter().filter_map(handover).collect();
        let orders = PARTS.map(|part| {
            let mut order: Vec<(u32, u32)> =
                all.iter().enumerate().filter_map(|(at, handover)| Some((part(handover)?, at as u32))).collect();
            order.sort_unstable();
            order.into_iter().map(|(_, at)| at).collect()
        });
        Self { all, orders }
    }

    /// The waits that held an op back.
    pub fn before(&self, op: OpIdx) -> impl Iterator<Item = &Handover> {
        self.with(3, op.0)
    }

    /// The waits that a thing has a part in.
    pub fn of(&self, item: Item) -> impl Iterator<Item = &Handover> {
        let (parts, number) = match item {
            Item::Op(op) => ([0, 3], op.0),
            Item::Call(call) => ([1, 2], call.0),
            Item::Range(_) | Item::Bubble(_) | Item::Replay(..) => ([0, 3], u32::MAX),
        };
        parts.into_iter().flat_map(move |part| self.with(part, number))
    }

    fn with(&self, part: usize, number: u32) -> impl Iterator<Item = &Handover> {
        let (order, of) = (&self.orders[part], PARTS[part]);
        let handover = |at: u32| &self.all[at as usize];
        let first = order.partition_point(|&at| of(handover(at)) < Some(number));
        order[first..].iter().map(move |&at| handover(at)).take_while(move |found| of(found) == Some(number))
    }
}

/// The first op of a stream whose correlation id is not lower than `id`. A stream runs its work in the order in which it
/// was submitted.
fn first_after(trace: &Trace, stream: StreamIdx, id: CorrelationId) -> Option<OpIdx> {
    let ops = trace.streams.get(stream.index()).filter(|_| id.is_some())?.ops.clone();
    let correlations = trace.ops.correlation.get(ops.start as usize..ops.end as usize)?;
    let at = correlations.partition_point(|&correlation| correlation < id);
    (at < correlations.len()).then(|| OpIdx(ops.start + at as u32))
}

/// The calls that record events; of nested ones the outermost.
fn record_calls(trace: &Trace) -> HashMap<(ProcessIdx, CorrelationId), CallIdx> {
    let mut calls = HashMap::new();
    let records = trace.calls.indices().filter(|call| trace.calls.kind[call.index()] == ApiKind::EventRecord);
    for call in records {
        let key = (trace.call_process(call), trace.calls.correlation[call.index()]);
        // Calls of a thread are sorted by their start.
        calls.entry(key).or_insert(call);
    }
    calls
}

/// What a call recorded, if it recorded an event.
pub fn event_of(trace: &Trace, call: CallIdx) -> Option<&EventRecord> {
    let key = (trace.call_process(call), *trace.calls.correlation.get(call.index())?);
    let at = trace.events.binary_search_by_key(&key, |event| (event.process, event.correlation)).ok()?;
    trace.events.get(at).filter(|_| key.1.is_some())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_wait_is_found_by_each_of_its_parts_and_orders_its_ops() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/planted");
        let trace = bubblescope::open::open(&folder.join("dependency.bubcap")).unwrap();
        let found = Handovers::new(&trace);
        assert_eq!(found.all.len(), stream_waits(&trace).len());
        let complete = |handover: &&Handover| {
            handover.first.is_some() && handover.record.is_some() && handover.wait.is_some() && handover.then.is_some()
        };
        assert!(found.all.iter().filter(complete).count() > 100, "the recording was made of such waits");
        for handover in &found.all {
            let parts = [
                handover.first.map(Item::Op),
                handover.record.map(Item::Call),
                handover.wait.map(Item::Call),
                handover.then.map(Item::Op),
            ];
            for item in parts.into_iter().flatten() {
                assert!(found.of(item).any(|other| other == handover), "{item:?} of {handover:?}");
            }
            if let (Some(first), Some(then)) = (handover.first, handover.then) {
                assert!(trace.ops.end[first.index()] <= trace.ops.start[then.index()], "{handover:?}");
                assert_ne!(trace.ops.stream[first.index()], trace.ops.stream[then.index()], "{handover:?}");
            }
            if let (Some(record), Some(wait)) = (handover.record, handover.wait) {
                assert!(trace.calls.start[record.index()] < trace.calls.start[wait.index()], "{handover:?}");
                assert_eq!(trace.calls.kind[wait.index()], ApiKind::StreamWait);
                assert!(event_of(&trace, record).is_some());
            }
        }
        let mut ops = trace.ops.indices();
        assert!(ops.any(|op| found.of(Item::Op(op)).next().is_none()), "others wait for nothing");
        assert_eq!(found.of(Item::Op(OpIdx(u32::MAX))).count(), 0);
    }
}
