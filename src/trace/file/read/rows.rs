//! The rows of every table.

use super::super::schema::{Column, Table};
use super::guard::guarded;
use super::lanes::Lookup;
use super::source::Source;
use super::tasks::{run_all, take, tasks};
use super::{TraceFileError, damaged, ensure};
use crate::trace::{
    Calls, DetailId, EventRecord, HostFunction, Interval, NamedRange, Names, Ns, OpKind, Ops, Overhead, OverheadKind,
    RangeKind, Sync, SyncKind, Trace, derived,
};

/// Reads the rows of every table into the trace, and checks them.
pub(super) fn read_rows(source: &Source<'_>, trace: &mut Trace) -> Result<(), TraceFileError> {
    use Column as C;
    use Table as T;
    let lookup = Lookup::of(trace)?;
    let (lookup, end, names) = (&lookup, trace.end, &trace.names);
    tasks! {
        call_times = source.times(T::Calls, end);
        op_times = source.times(T::Ops, end);
        call_names = source.names(T::Calls, names);
        op_names = source.names(T::Ops, names);
        call_lanes = source.threads(T::Calls, lookup);
        op_lanes = source.streams(T::Ops, lookup);
        call_correlations = source.correlations(T::Calls, C::Correlation);
        op_correlations = source.correlations(T::Ops, C::Correlation);
        op_kinds = source.spelled::<OpKind>(T::Ops, C::Kind);
        results = source.int32(T::Calls, C::Result, 0, |value| value as i32);
        bytes = source.int64(T::Ops, C::Bytes, 0, |value| value);
        nodes = source.int64(T::Ops, C::Node, 0, |value| value);
        details = source.int32(T::Ops, C::Detail, DetailId(u32::MAX), DetailId);
        graphs = source.graphs(T::Ops);
        syncs = read_syncs(source, lookup, end);
        ranges = read_ranges(source, lookup, names, end);
        events = read_events(source, lookup);
        host_functions = read_host_functions(source, lookup, end);
        overheads = read_overheads(source, lookup, end);
    }
    ensure(details.iter().all(|detail| detail.index() < trace.details.len()), "an op with unknown details")?;
    let call_kinds = derived::call_kinds(&call_names, names);
    trace.ops = Ops {
        start: op_times.0,
        end: op_times.1,
        stream: op_lanes,
        kind: op_kinds,
        name: op_names,
        correlation: op_correlations,
        bytes,
        graph: graphs,
        graph_node: nodes,
        detail: details,
        launch: Vec::new(),
    };
    trace.calls = Calls {
        start: call_times.0,
        end: call_times.1,
        thread: call_lanes,
        name: call_names,
        kind: call_kinds,
        correlation: call_correlations,
        result: results,
    };
    (trace.syncs, trace.events, trace.host_functions) = (syncs, events, host_functions);
    (trace.ranges, trace.overheads) = (ranges, overheads);
    check_order(trace)?;
    derived::set_lanes(trace);
    Ok(())
}

/// Whether `before(row - 1, row)` holds for every row but the first.
fn ordered(len: usize, before: impl Fn(usize, usize) -> bool) -> bool {
    (1..len).all(|row| before(row - 1, row))
}

/// Checks that rows are in the order that [`Trace`] promises.
fn check_order(trace: &Trace) -> Result<(), TraceFileError> {
    let ops = &trace.ops;
    let sorted = ordered(ops.len(), |a, b| {
        (ops.stream[a], ops.start[a], ops.end[a]) <= (ops.stream[b], ops.start[b], ops.end[b])
    });
    ensure(sorted, "its ops are not in order")?;
    let calls = &trace.calls;
    let sorted = ordered(calls.len(), |a, b| {
        (calls.thread[a], calls.start[a], calls.end[b]) <= (calls.thread[b], calls.start[b], calls.end[a])
    });
    ensure(sorted, "its calls are not in order")?;
    let sorted = trace.ranges.is_sorted_by(|a, b| {
        (a.thread, a.interval.start, b.interval.end) <= (b.thread, b.interval.start, a.interval.end)
    });
    ensure(sorted, "its ranges are not in order")?;
    ensure(trace.syncs.is_sorted_by_key(|sync| sync.interval.start), "its synchronisations are not in order")?;
    ensure(trace.events.is_sorted_by_key(|event| (event.process, event.correlation)), "its events are not in order")?;
    let sorted = trace.host_functions.is_sorted_by_key(|host| host.interval.start);
    ensure(sorted, "its host functions are not in order")?;
    ensure(trace.overheads.is_sorted_by_key(|overhead| overhead.interval.start), "its overheads are not in order")
}

fn read_syncs(source: &Source<'_>, lookup: &Lookup, end: Ns) -> Result<Vec<Sync>, TraceFileError> {
    let table = Table::Syncs;
    let intervals = source.intervals(table, end)?;
    let kinds = source.spelled::<SyncKind>(table, Column::Category)?;
    let homes = source.homes(table, lookup)?;
    let events = source.int32(table, Column::Event, None, Some)?;
    let event_syncs = source.int64(table, Column::EventSync, None, Some)?;
    let awaited = source.correlations(table, Column::Awaited)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let rows = intervals.into_iter().enumerate();
    let sync = |(row, interval): (usize, Interval)| Sync {
        interval,
        kind: kinds[row],
        process: homes[row].process,
        context: homes[row].context,
        stream: homes[row].stream,
        event: events[row],
        event_sync: event_syncs[row],
        awaited_record: awaited[row],
        correlation: correlations[row],
        call: None,
    };
    Ok(rows.map(sync).collect())
}

fn read_events(source: &Source<'_>, lookup: &Lookup) -> Result<Vec<EventRecord>, TraceFileError> {
    let table = Table::Events;
    let homes = source.homes(table, lookup)?;
    let times = source.int64(table, Column::Start, None, |value| Some(Ns(value as i64)))?;
    let ids = source.int32(table, Column::Event, None, Some)?;
    let event_syncs = source.int64(table, Column::EventSync, None, Some)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let mut events = Vec::with_capacity(homes.len());
    for (row, home) in homes.into_iter().enumerate() {
        let Some(event) = ids[row] else { return damaged("an event without an id") };
        events.push(EventRecord {
            process: home.process,
            context: home.context,
            stream: home.stream,
            event,
            event_sync: event_syncs[row],
            device_time: times[row],
            correlation: correlations[row],
            call: None,
        });
    }
    Ok(events)
}

fn read_host_functions(source: &Source<'_>, lookup: &Lookup, end: Ns) -> Result<Vec<HostFunction>, TraceFileError> {
    let table = Table::HostFunctions;
    let intervals = source.intervals(table, end)?;
    let streams = source.streams(table, lookup)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let graphs = source.graphs(table)?;
    let rows = intervals.into_iter().enumerate();
    let host = |(row, interval): (usize, Interval)| HostFunction {
        interval,
        stream: streams[row],
        correlation: correlations[row],
        graph: graphs[row],
    };
    Ok(rows.map(host).collect())
}

fn read_ranges(
    source: &Source<'_>,
    lookup: &Lookup,
    names: &Names,
    end: Ns,
) -> Result<Vec<NamedRange>, TraceFileError> {
    let table = Table::Ranges;
    let intervals = source.intervals(table, end)?;
    let threads = source.threads(table, lookup)?;
    let names = source.names(table, names)?;
    let kinds = source.spelled::<RangeKind>(table, Column::Category)?;
    let rows = intervals.into_iter().enumerate();
    let range = |(row, interval): (usize, Interval)| NamedRange {
        interval,
        thread: threads[row],
        name: names[row],
        kind: kinds[row],
    };
    Ok(rows.map(range).collect())
}

fn read_overheads(source: &Source<'_>, lookup: &Lookup, end: Ns) -> Result<Vec<Overhead>, TraceFileError> {
    let table = Table::Overheads;
    let intervals = source.intervals(table, end)?;
    let kinds = source.spelled::<OverheadKind>(table, Column::Category)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let places = source.owners(table, lookup)?;
    let rows = intervals.into_iter().enumerate();
    let overhead = |(row, interval): (usize, Interval)| Overhead {
        interval,
        kind: kinds[row],
        process: places[row].0,
        thread: places[row].1,
        correlation: correlations[row],
    };
    Ok(rows.map(overhead).collect())
}
