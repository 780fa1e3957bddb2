//! Finds the record that a wait for a CUDA event waited for.

use rustc_hash::FxHashMap;

use super::lanes::last_correlated_before;
use crate::trace::{ContextIdx, CorrelationId, EventRecord, OpIdx, ProcessIdx, Sync, Trace};

/// What a wait for an event waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// The last op before the event was recorded, on the stream it was recorded into.
    Op(OpIdx),
    /// The event was recorded into a stream without work before it.
    Nothing,
    /// The record is not in the trace, or does not tell its stream.
    Unknown,
}

impl Awaited {
    /// What a wait for this record waited for.
    pub(super) fn by(trace: &Trace, record: Option<&EventRecord>) -> Self {
        let Some(record) = record else { return Self::Unknown };
        let (Some(stream), true) = (record.stream, record.correlation.is_some()) else { return Self::Unknown };
        last_correlated_before(trace, stream, record.correlation).map_or(Self::Nothing, Self::Op)
    }
}

/// A position in [`Trace::events`].
type Row = u32;

/// Event records by each of the ways in which a wait names them.
pub(super) struct EventIndex {
    by_sync: FxHashMap<(ProcessIdx, u64), Vec<Row>>,
    /// For each handle in each context, its records in correlation order.
    by_handle: FxHashMap<(ProcessIdx, u32, Option<ContextIdx>), Vec<Row>>,
}

impl EventIndex {
    /// Looks at every event record once.
    pub(super) fn new(trace: &Trace) -> Self {
        let mut index = Self { by_sync: FxHashMap::default(), by_handle: FxHashMap::default() };
        for (row, event) in trace.events.iter().enumerate() {
            if let Some(sync) = event.event_sync {
                index.by_sync.entry((event.process, sync)).or_default().push(row as Row);
            }
            index.by_handle.entry((event.process, event.event, event.context)).or_default().push(row as Row);
        }
        index
    }

    /// What `sync` waited for: by the synchronisation id that wait and record share, else by the record's correlation
    /// id, else by the last record of the same handle before it. A record after the wait never counts.
    pub(super) fn awaited(&self, trace: &Trace, sync: &Sync) -> Awaited {
        Awaited::by(trace, self.record(trace, sync))
    }

    /// The record that `sync` waited for.
    pub(super) fn record<'t>(&self, trace: &'t Trace, sync: &Sync) -> Option<&'t EventRecord> {
        if let Some(id) = sync.event_sync {
            // An id that no record carries means that the record is missing; its handle may since name another.
            let rows = self.by_sync.get(&(sync.process, id))?;
            return last_before(trace, rows, sync.correlation);
        }
        if sync.awaited_record.is_some() {
            let key = (sync.process, sync.awaited_record);
            let at = trace.events.binary_search_by_key(&key, |event| (event.process, event.correlation)).ok()?;
            let record = &trace.events[at];
            return (record.correlation < sync.correlation).then_some(record);
        }
        let handle = sync.event?;
        let in_context = |context| {
            let rows = self.by_handle.get(&(sync.process, handle, context))?;
            last_before(trace, rows, sync.correlation)
        };
        let last = |records: &mut dyn Iterator<Item = &'t EventRecord>| records.max_by_key(|event| event.correlation);
        let untold = in_context(None);
        match sync.context {
            Some(context) => last(&mut in_context(Some(context)).into_iter().chain(untold)),
            None => {
                let contexts = (0..trace.contexts.len()).map(ContextIdx::from_index);
                last(&mut contexts.filter_map(|context| in_context(Some(context))).chain(untold))
            }
        }
    }
}

/// The last of `rows`, which are in correlation order, before `wait`.
fn last_before<'t>(trace: &'t Trace, rows: &[Row], wait: CorrelationId) -> Option<&'t EventRecord> {
    let record = |row: Row| &trace.events[row as usize];
    let end = rows.partition_point(|&row| record(row).correlation < wait);
    rows[..end].last().map(|&row| record(row))
}
