//! From records to rows.

use thiserror::Error;

use super::super::ids::DetailId;
use super::super::model::{Calls, EventRecord, HostFunction, NamedRange, Ops, Overhead, Sync, Trace};
use super::super::names::Names;
use super::super::time::{Interval, Ns};
use super::super::{derived, link};
use super::intake::Intake;
use super::order::{RangeInput, call_order, op_order, range_order};
use super::{CallInput, EventInput, OpInput, SyncInput, TraceBuilder};
use crate::progress::{Cancelled, Unwatched, Watch, check};

/// Why records do not make a trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A table would have more rows than its indices can tell apart.
    #[error("too many {what}: {count}, at most {} fit", u32::MAX - 1)]
    TooMany {
        /// The table.
        what: &'static str,
        /// Its rows.
        count: usize,
    },
    /// It was no longer wanted.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl TraceBuilder {
    /// The earliest and the latest moment of any record.
    fn bounds(&self) -> Option<(i64, i64)> {
        if let Intake::Part(part) = &self.intake {
            return part.0.bounds();
        }
        let ops = self.ops.iter().map(|(op, _)| (op.start, op.end.max(op.start)));
        let calls = self.calls.iter().map(|call| (call.start, call.end));
        let syncs = self.syncs.iter().map(|sync| (sync.start, sync.end));
        let host = self.host_functions.iter().map(|host| (host.0, host.1));
        let ranges = self.ranges.iter().map(|range| (range.0, range.1));
        let overheads = self.overheads.iter().map(|overhead| (overhead.0, overhead.1));
        ops.chain(calls)
            .chain(syncs)
            .chain(host)
            .chain(ranges)
            .chain(overheads)
            .reduce(|(start, end), (s, e)| (start.min(s), end.max(e)))
    }

    /// Sorts, links and rebases everything into a trace that starts at 0.
    ///
    /// # Errors
    /// When a table has too many rows.
    pub fn finish(self) -> Result<Trace, BuildError> {
        self.finish_watched(&Unwatched)
    }

    /// The same while somebody waits for it. How far it is is not told.
    ///
    /// # Errors
    /// As [`Self::finish`], and when it is cancelled.
    pub fn finish_watched(mut self, watch: &dyn Watch) -> Result<Trace, BuildError> {
        for (what, count) in [("ops", self.ops.len()), ("calls", self.calls.len()), ("ranges", self.ranges.len())] {
            if count >= u32::MAX as usize {
                return Err(BuildError::TooMany { what, count });
            }
        }
        let (origin, end) = self.bounds().unwrap_or((self.zero, self.zero));
        self.meta.epoch_ns = self.meta.epoch_ns.saturating_add(origin);
        let at = |absolute: i64| Ns(absolute.saturating_sub(origin));
        if let Some(measured) = self.meta.workload.as_mut().and_then(|run| run.measured.as_mut()) {
            *measured = Interval::new(at(measured.start.0), at(measured.end.0));
        }
        for (op, _) in &mut self.ops {
            if op.end == 0 {
                op.end = end;
                self.meta.losses.unfinished_ops += 1;
            }
        }
        self.order_lanes();
        check(watch)?;
        if self.drop_duplicates {
            self.without_duplicates();
            check(watch)?;
        }

        let mut trace = Trace { meta: self.meta, end: at(end), ..Trace::default() };
        trace.ops = op_columns(&mut self.ops, at);
        check(watch)?;
        trace.calls = call_columns(&mut self.calls, &self.names, at);
        check(watch)?;
        trace.ranges = range_rows(&mut self.ranges, at);
        check(watch)?;

        self.syncs.sort_by_key(|sync| (sync.start, sync.end, sync.correlation));
        trace.syncs = self.syncs.iter().map(|sync| sync_row(sync, at)).collect();
        self.events.sort_by_key(|event| (event.process, event.correlation));
        trace.events = self.events.iter().map(|event| event_row(event, at)).collect();
        self.host_functions.sort_by_key(|host| (host.0, host.1, host.2));
        trace.host_functions = self
            .host_functions
            .iter()
            .map(|&(start, end, stream, correlation, graph)| HostFunction {
                interval: Interval::new(at(start), at(end)),
                stream,
                correlation,
                graph,
            })
            .collect();
        self.overheads.sort_by_key(|overhead| (overhead.0, overhead.1, overhead.3));
        trace.overheads = self
            .overheads
            .iter()
            .map(|&(start, end, kind, process, thread, correlation)| Overhead {
                interval: Interval::new(at(start), at(end)),
                kind,
                process,
                thread,
                correlation,
            })
            .collect();

        trace.names = self.names;
        trace.processes = self.processes;
        trace.devices = self.devices;
        trace.contexts = self.contexts;
        trace.streams = self.streams;
        trace.threads = self.threads;
        trace.details = self.details;
        if let Intake::Part(part) = self.intake {
            trace.rest = (part.1.events > 0).then(|| Box::new(part.1));
        }
        derived::set_lanes(&mut trace);
        link::link(&mut trace);
        Ok(trace)
    }
}

fn op_columns(rows: &mut [(OpInput, DetailId)], at: impl Fn(i64) -> Ns) -> Ops {
    rows.sort_by_key(|(op, _)| op_order(op));
    Ops {
        start: rows.iter().map(|(op, _)| at(op.start)).collect(),
        end: rows.iter().map(|(op, _)| at(op.end)).collect(),
        stream: rows.iter().map(|(op, _)| op.stream).collect(),
        kind: rows.iter().map(|(op, _)| op.kind).collect(),
        name: rows.iter().map(|(op, _)| op.name).collect(),
        correlation: rows.iter().map(|(op, _)| op.correlation).collect(),
        bytes: rows.iter().map(|(op, _)| op.bytes).collect(),
        graph: rows.iter().map(|(op, _)| op.graph).collect(),
        graph_node: rows.iter().map(|(op, _)| op.graph_node).collect(),
        detail: rows.iter().map(|&(_, detail)| detail).collect(),
        launch: Vec::new(),
    }
}

fn call_columns(rows: &mut [CallInput], names: &Names, at: impl Fn(i64) -> Ns) -> Calls {
    rows.sort_by_key(call_order);
    let name: Vec<_> = rows.iter().map(|call| call.name).collect();
    Calls {
        start: rows.iter().map(|call| at(call.start)).collect(),
        end: rows.iter().map(|call| at(call.end)).collect(),
        thread: rows.iter().map(|call| call.thread).collect(),
        kind: derived::call_kinds(&name, names),
        name,
        correlation: rows.iter().map(|call| call.correlation).collect(),
        result: rows.iter().map(|call| call.result).collect(),
    }
}

fn range_rows(rows: &mut [RangeInput], at: impl Fn(i64) -> Ns) -> Vec<NamedRange> {
    rows.sort_by_key(range_order);
    rows.iter()
        .map(|&(start, end, thread, name, kind)| NamedRange {
            interval: Interval::new(at(start), at(end)),
            thread,
            name,
            kind,
        })
        .collect()
}

fn sync_row(sync: &SyncInput, at: impl Fn(i64) -> Ns) -> Sync {
    Sync {
        interval: Interval::new(at(sync.start), at(sync.end)),
        kind: sync.kind,
        process: sync.process,
        context: sync.context,
        stream: sync.stream,
        event: sync.event,
        event_sync: sync.event_sync,
        awaited_record: sync.awaited_record,
        correlation: sync.correlation,
        call: None,
    }
}

fn event_row(event: &EventInput, at: impl Fn(i64) -> Ns) -> EventRecord {
    EventRecord {
        process: event.process,
        context: event.context,
        stream: event.stream,
        event: event.event,
        event_sync: event.event_sync,
        device_time: (event.device_time != 0).then(|| at(event.device_time)),
        correlation: event.correlation,
        call: None,
    }
}
