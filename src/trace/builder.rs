//! Makes a [`Trace`] out of records in any order.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::api::ApiKind;
use super::ids::{ContextIdx, CorrelationId, DetailId, DeviceIdx, GraphId, NameId, ProcessIdx, StreamIdx, ThreadIdx};
use super::link;
use super::meta::Meta;
use super::model::{
    Calls, Context, Detail, Device, EventRecord, HostFunction, NamedRange, OpKind, Ops, Overhead, OverheadKind,
    Process, RangeKind, Stream, StreamKind, Sync, SyncKind, Thread, Trace,
};
use super::names::Names;
use super::time::{Interval, Ns};
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

/// One op as a source gives it. Times are absolute, on the source's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInput {
    /// Start, in nanoseconds. Start and end both 0 mean that the times could not be collected.
    pub start: i64,
    /// End, in nanoseconds. 0 with a start means that the op was still running.
    pub end: i64,
    /// The stream.
    pub stream: StreamIdx,
    /// The kind.
    pub kind: OpKind,
    /// The name.
    pub name: NameId,
    /// The correlation id.
    pub correlation: CorrelationId,
    /// Bytes copied or set.
    pub bytes: u64,
    /// The graph.
    pub graph: GraphId,
    /// The graph node.
    pub graph_node: u64,
    /// Launch shape or copy kind.
    pub detail: Detail,
}

/// One API call as a source gives it. Times are absolute, on the source's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInput {
    /// Start, in nanoseconds.
    pub start: i64,
    /// End, in nanoseconds.
    pub end: i64,
    /// The thread.
    pub thread: ThreadIdx,
    /// The name.
    pub name: NameId,
    /// The correlation id.
    pub correlation: CorrelationId,
    /// The returned value.
    pub result: i32,
}

/// One synchronisation as a source gives it. Times are absolute, on the source's clock.
#[derive(Clone, Copy, Debug)]
pub struct SyncInput {
    /// Start, in nanoseconds.
    pub start: i64,
    /// End, in nanoseconds.
    pub end: i64,
    /// What was waited for.
    pub kind: SyncKind,
    /// The process.
    pub process: ProcessIdx,
    /// The context.
    pub context: Option<ContextIdx>,
    /// The stream.
    pub stream: Option<StreamIdx>,
    /// The event's id.
    pub event: Option<u32>,
    /// The synchronisation id shared with the event record.
    pub event_sync: Option<u64>,
    /// The correlation id of the awaited event record, when the source names it.
    pub awaited_record: CorrelationId,
    /// The correlation id.
    pub correlation: CorrelationId,
}

/// One event record as a source gives it. The time is absolute, on the source's clock.
#[derive(Clone, Copy, Debug)]
pub struct EventInput {
    /// The process.
    pub process: ProcessIdx,
    /// The context.
    pub context: Option<ContextIdx>,
    /// The stream.
    pub stream: Option<StreamIdx>,
    /// The event's id.
    pub event: u32,
    /// The synchronisation id shared with the waits for it.
    pub event_sync: Option<u64>,
    /// When the device reached it; 0 when not collected.
    pub device_time: i64,
    /// The correlation id.
    pub correlation: CorrelationId,
}

/// Collects records in any order and makes a [`Trace`] of them.
///
/// Records with impossible times are counted in [`Meta::losses`] and left out; nothing else is dropped.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    /// What is known about the trace as a whole. Losses found while building are added to it. The measured part of
    /// a workload run is absolute here, like every time that goes in.
    pub meta: Meta,
    /// Whether the source may hold records twice, as merged files do. Calls that are equal in all are then kept once
    /// and counted; where there are such, so are ops and ranges.
    pub drop_duplicates: bool,
    names: Names,
    kinds: Vec<Option<ApiKind>>,
    processes: Vec<Process>,
    process_ids: FxHashMap<u32, ProcessIdx>,
    /// How many numbers have been looked at for processes that cannot have their own.
    stand_ins: u32,
    devices: Vec<Device>,
    device_ids: FxHashMap<u32, DeviceIdx>,
    contexts: Vec<Context>,
    context_ids: FxHashMap<(ProcessIdx, u32), ContextIdx>,
    streams: Vec<Stream>,
    stream_ids: FxHashMap<(ContextIdx, u32), StreamIdx>,
    threads: Vec<Thread>,
    thread_ids: FxHashMap<(ProcessIdx, u64), ThreadIdx>,
    details: Vec<Detail>,
    detail_ids: FxHashMap<Detail, DetailId>,
    ops: Vec<(OpInput, DetailId)>,
    calls: Vec<CallInput>,
    syncs: Vec<SyncInput>,
    events: Vec<EventInput>,
    host_functions: Vec<(i64, i64, StreamIdx, CorrelationId, GraphId)>,
    ranges: Vec<(i64, i64, ThreadIdx, NameId, RangeKind)>,
    overheads: Vec<(i64, i64, OverheadKind, ProcessIdx, Option<ThreadIdx>, CorrelationId)>,
}

/// Times beyond this many nanoseconds (about 146 years either way of 1970) are taken for damage.
const MAX_TIME: i64 = i64::MAX / 2;

impl TraceBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of a name.
    pub fn name(&mut self, text: &str) -> NameId {
        self.names.intern(text)
    }

    /// The process with this id, new if it was not there.
    pub fn process(&mut self, pid: u32) -> ProcessIdx {
        *self.process_ids.entry(pid).or_insert_with(|| {
            self.processes.push(Process { pid, name: String::new() });
            ProcessIdx::from_index(self.processes.len() - 1)
        })
    }

    /// A process that is none of those that are there. It has this number if no other has it, and otherwise one that
    /// stands in for it: those of one trace are all different, while processes of several machines or containers, and
    /// programs that follow each other in one process, can have the same.
    pub fn separate_process(&mut self, pid: Option<u32>) -> ProcessIdx {
        let free = |pid: &u32| !self.process_ids.contains_key(pid);
        let pid = pid.filter(free).unwrap_or_else(|| {
            // From the top, where no system has processes: Linux numbers them with 22 bits (`PID_MAX_LIMIT`), so no
            // stand-in takes the number of a process that comes later. Where one starts, the one before has stopped.
            let stand_in = (self.stand_ins..u32::MAX).map(|step| u32::MAX - step).find(free).unwrap_or(0);
            self.stand_ins = u32::MAX - stand_in;
            stand_in
        });
        self.process(pid)
    }

    /// The process with this id, if it was added.
    pub fn find_process(&self, pid: u32) -> Option<ProcessIdx> {
        self.process_ids.get(&pid).copied()
    }

    /// The number of a process.
    pub fn pid(&self, process: ProcessIdx) -> u32 {
        self.processes[process.index()].pid
    }

    /// The device with this number, new if it was not there.
    pub fn device(&mut self, id: u32) -> DeviceIdx {
        *self.device_ids.entry(id).or_insert_with(|| {
            self.devices.push(Device { id, ..Device::default() });
            DeviceIdx::from_index(self.devices.len() - 1)
        })
    }

    /// The context with this id in this process, new on this device if it was not there.
    pub fn context(&mut self, process: ProcessIdx, id: u32, device: DeviceIdx) -> ContextIdx {
        *self.context_ids.entry((process, id)).or_insert_with(|| {
            self.contexts.push(Context { process, device, id });
            ContextIdx::from_index(self.contexts.len() - 1)
        })
    }

    /// The context with this id in this process, if it was added.
    pub fn find_context(&self, process: ProcessIdx, id: u32) -> Option<ContextIdx> {
        self.context_ids.get(&(process, id)).copied()
    }

    /// The stream with this id in this context, if it was added.
    pub fn find_stream(&self, context: ContextIdx, id: u32) -> Option<StreamIdx> {
        self.stream_ids.get(&(context, id)).copied()
    }

    /// The stream with this id in this context, new if it was not there.
    pub fn stream(&mut self, context: ContextIdx, id: u32) -> StreamIdx {
        *self.stream_ids.entry((context, id)).or_insert_with(|| {
            let Context { process, device, .. } = self.contexts[context.index()];
            self.streams.push(Stream { context, device, process, id, kind: StreamKind::Unknown, ops: 0..0 });
            StreamIdx::from_index(self.streams.len() - 1)
        })
    }

    /// The thread with this id in this process, new if it was not there.
    pub fn thread(&mut self, process: ProcessIdx, tid: u64) -> ThreadIdx {
        *self.thread_ids.entry((process, tid)).or_insert_with(|| {
            self.threads.push(Thread { process, tid, name: String::new(), calls: 0..0, ranges: 0..0 });
            ThreadIdx::from_index(self.threads.len() - 1)
        })
    }

    /// The calls so far.
    pub fn calls(&self) -> &[CallInput] {
        &self.calls
    }

    /// The process of a thread.
    pub fn process_of(&self, thread: ThreadIdx) -> ProcessIdx {
        self.threads[thread.index()].process
    }

    /// Names a process.
    pub fn set_process_name(&mut self, process: ProcessIdx, name: &str) {
        self.processes[process.index()].name = name.to_owned();
    }

    /// Names a thread.
    pub fn set_thread_name(&mut self, thread: ThreadIdx, name: &str) {
        self.threads[thread.index()].name = name.to_owned();
    }

    /// Tells how a stream behaves.
    pub fn set_stream_kind(&mut self, stream: StreamIdx, kind: StreamKind) {
        self.streams[stream.index()].kind = kind;
    }

    /// Describes a device; its number stays.
    pub fn describe_device(&mut self, device: DeviceIdx, description: Device) {
        let id = self.devices[device.index()].id;
        self.devices[device.index()] = Device { id, ..description };
    }

    /// Adds an op. Ops without times are counted and left out.
    pub fn push_op(&mut self, op: OpInput) {
        let losses = &mut self.meta.losses;
        if op.start == 0 && op.end == 0 {
            losses.ops_without_time += 1;
        } else if !possible(op.start, if op.end == 0 { op.start } else { op.end }) {
            losses.impossible_times += 1;
        } else {
            let details = &mut self.details;
            let detail = *self.detail_ids.entry(op.detail).or_insert_with(|| {
                details.push(op.detail);
                DetailId::from_index(details.len() - 1)
            });
            self.ops.push((op, detail));
        }
    }

    /// Adds an API call.
    pub fn push_call(&mut self, call: CallInput) {
        if self.check(call.start, call.end) {
            self.calls.push(call);
        }
    }

    /// Adds a synchronisation. A stream that is known tells the context, and a context the process.
    pub fn push_sync(&mut self, mut sync: SyncInput) {
        if self.check(sync.start, sync.end) {
            (sync.process, sync.context) = self.home(sync.process, sync.context, sync.stream);
            self.syncs.push(sync);
        }
    }

    /// Adds an event record. A stream that is known tells the context, and a context the process. A device time that
    /// cannot be true is counted and left out.
    pub fn push_event(&mut self, mut event: EventInput) {
        if !self.check(event.device_time, event.device_time) {
            event.device_time = 0;
        }
        (event.process, event.context) = self.home(event.process, event.context, event.stream);
        self.events.push(event);
    }

    /// The process and context of a record, as far as its stream and context tell.
    fn home(
        &self,
        process: ProcessIdx,
        context: Option<ContextIdx>,
        stream: Option<StreamIdx>,
    ) -> (ProcessIdx, Option<ContextIdx>) {
        let context = stream.map(|stream| self.streams[stream.index()].context).or(context);
        (context.map_or(process, |context| self.contexts[context.index()].process), context)
    }

    /// Adds a host function that ran in stream order. Times are absolute.
    pub fn push_host_function(
        &mut self,
        start: i64,
        end: i64,
        stream: StreamIdx,
        correlation: CorrelationId,
        graph: GraphId,
    ) {
        if self.check(start, end) {
            self.host_functions.push((start, end, stream, correlation, graph));
        }
    }

    /// Adds a named range. Times are absolute.
    pub fn push_range(&mut self, start: i64, end: i64, thread: ThreadIdx, name: NameId, kind: RangeKind) {
        if self.check(start, end) {
            self.ranges.push((start, end, thread, name, kind));
        }
    }

    /// Adds an interval of overhead. Times are absolute. A thread that is known tells the process.
    pub fn push_overhead(
        &mut self,
        start: i64,
        end: i64,
        kind: OverheadKind,
        process: ProcessIdx,
        thread: Option<ThreadIdx>,
        correlation: CorrelationId,
    ) {
        if self.check(start, end) {
            let process = thread.map_or(process, |thread| self.threads[thread.index()].process);
            self.overheads.push((start, end, kind, process, thread, correlation));
        }
    }

    /// Whether a record's times are possible; counts it when not.
    fn check(&mut self, start: i64, end: i64) -> bool {
        let possible = possible(start, end);
        self.meta.losses.impossible_times += u64::from(!possible);
        possible
    }

    /// The earliest and the latest moment of any record.
    fn bounds(&self) -> Option<(i64, i64)> {
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
        let (origin, end) = self.bounds().unwrap_or((0, 0));
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
        trace.ops = op_columns(&mut self.ops, &mut self.streams, at);
        check(watch)?;
        trace.calls = call_columns(&mut self.calls, &mut self.threads, &self.names, &mut self.kinds, at);
        check(watch)?;
        trace.ranges = range_rows(&mut self.ranges, &mut self.threads, at);
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
        link::link(&mut trace);
        Ok(trace)
    }

    /// Keeps of equal records one.
    ///
    /// No thread makes two calls of one correlation id in the same nanoseconds, so equal calls show that the source
    /// holds records twice. Equal ops alone do not: a graph launch may run like nodes at once.
    fn without_duplicates(&mut self) {
        self.calls.sort_by_key(call_order);
        let mut dropped = dedup(&mut self.calls, |a, b| a == b && a.correlation.is_some());
        if dropped > 0 {
            self.ops.sort_by_key(|(op, _)| op_order(op));
            dropped += dedup(&mut self.ops, |a, b| a.0 == b.0);
            self.ranges.sort_by_key(range_order);
            dropped += dedup(&mut self.ranges, |a, b| a == b);
        }
        self.meta.losses.duplicate_records = dropped;
    }

    /// Puts devices, streams and threads in order of their numbers, whatever order their records came in.
    fn order_lanes(&mut self) {
        let devices = permutation(self.devices.len(), |index| self.devices[index].id);
        self.devices = reorder(&self.devices, &devices);
        for device in self.contexts.iter_mut().map(|context| &mut context.device) {
            *device = DeviceIdx(devices[device.index()]);
        }
        for stream in &mut self.streams {
            stream.device = self.contexts[stream.context.index()].device;
        }

        let streams = permutation(self.streams.len(), |index| {
            let stream = &self.streams[index];
            (stream.device, stream.process, self.contexts[stream.context.index()].id, stream.id)
        });
        self.streams = reorder(&self.streams, &streams);
        let moved = |stream: StreamIdx| StreamIdx(streams[stream.index()]);
        self.ops.iter_mut().for_each(|(op, _)| op.stream = moved(op.stream));
        self.syncs.iter_mut().for_each(|sync| sync.stream = sync.stream.map(moved));
        self.events.iter_mut().for_each(|event| event.stream = event.stream.map(moved));
        self.host_functions.iter_mut().for_each(|host| host.2 = moved(host.2));

        let threads = permutation(self.threads.len(), |index| {
            let thread = &self.threads[index];
            (thread.process, thread.tid)
        });
        self.threads = reorder(&self.threads, &threads);
        let moved = |thread: ThreadIdx| ThreadIdx(threads[thread.index()]);
        self.calls.iter_mut().for_each(|call| call.thread = moved(call.thread));
        self.ranges.iter_mut().for_each(|range| range.2 = moved(range.2));
        self.overheads.iter_mut().for_each(|overhead| overhead.4 = overhead.4.map(moved));
    }
}

/// Keeps the first of neighbours that are the same; how many went.
fn dedup<T>(rows: &mut Vec<T>, same: impl Fn(&T, &T) -> bool) -> u64 {
    let before = rows.len();
    rows.dedup_by(|later, first| same(first, later));
    (before - rows.len()) as u64
}

fn op_order(op: &OpInput) -> (StreamIdx, i64, i64, CorrelationId, u64) {
    (op.stream, op.start, op.end, op.correlation, op.graph_node)
}

fn call_order(call: &CallInput) -> (ThreadIdx, i64, Reverse<i64>, CorrelationId) {
    (call.thread, call.start, Reverse(call.end), call.correlation)
}

fn range_order(&(start, end, thread, name, _): &RangeInput) -> (ThreadIdx, i64, Reverse<i64>, NameId) {
    (thread, start, Reverse(end), name)
}

/// Whether a record's times can be true.
fn possible(start: i64, end: i64) -> bool {
    start <= end && start > -MAX_TIME && end < MAX_TIME
}

/// New position of each row when rows are sorted by `key`.
fn permutation<K: Ord>(len: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by_key(|&index| key(index));
    let mut to = vec![0; len];
    for (new, &old) in order.iter().enumerate() {
        to[old] = new as u32;
    }
    to
}

/// The rows in their new positions.
fn reorder<T: Clone>(rows: &[T], to: &[u32]) -> Vec<T> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&old| to[old]);
    order.into_iter().map(|old| rows[old].clone()).collect()
}

/// Walks rows sorted by lane and tells each lane its range.
pub(super) fn set_ranges(
    len: usize,
    lane_of: impl Fn(usize) -> usize,
    mut set: impl FnMut(usize, std::ops::Range<u32>),
) {
    let mut from = 0;
    while from < len {
        let lane = lane_of(from);
        let mut to = from + 1;
        while to < len && lane_of(to) == lane {
            to += 1;
        }
        set(lane, from as u32..to as u32);
        from = to;
    }
}

fn op_columns(rows: &mut [(OpInput, DetailId)], streams: &mut [Stream], at: impl Fn(i64) -> Ns) -> Ops {
    rows.sort_by_key(|(op, _)| op_order(op));
    set_ranges(rows.len(), |row| rows[row].0.stream.index(), |lane, range| streams[lane].ops = range);
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

fn call_columns(
    rows: &mut [CallInput],
    threads: &mut [Thread],
    names: &Names,
    kinds: &mut Vec<Option<ApiKind>>,
    at: impl Fn(i64) -> Ns,
) -> Calls {
    rows.sort_by_key(call_order);
    set_ranges(rows.len(), |row| rows[row].thread.index(), |lane, range| threads[lane].calls = range);
    kinds.resize(names.len(), None);
    Calls {
        start: rows.iter().map(|call| at(call.start)).collect(),
        end: rows.iter().map(|call| at(call.end)).collect(),
        thread: rows.iter().map(|call| call.thread).collect(),
        name: rows.iter().map(|call| call.name).collect(),
        kind: rows
            .iter()
            .map(|call| *kinds[call.name.index()].get_or_insert_with(|| ApiKind::of(names.get(call.name))))
            .collect(),
        correlation: rows.iter().map(|call| call.correlation).collect(),
        result: rows.iter().map(|call| call.result).collect(),
    }
}

type RangeInput = (i64, i64, ThreadIdx, NameId, RangeKind);

fn range_rows(rows: &mut [RangeInput], threads: &mut [Thread], at: impl Fn(i64) -> Ns) -> Vec<NamedRange> {
    rows.sort_by_key(range_order);
    set_ranges(rows.len(), |row| rows[row].2.index(), |lane, range| threads[lane].ranges = range);
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

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;

    #[test]
    fn separate_processes_have_numbers_of_their_own() {
        let mut builder = TraceBuilder::new();
        let mut add = |pid| {
            let process = builder.separate_process(pid);
            builder.pid(process)
        };
        assert_eq!([Some(100), Some(99), Some(100), Some(98)].map(&mut add), [100, 99, u32::MAX, 98]);
        // A number that stands in for another's may be a later one's own.
        assert_eq!([Some(u32::MAX), Some(u32::MAX - 3)].map(&mut add), [u32::MAX - 1, u32::MAX - 3]);
        assert_eq!([None, None, Some(u32::MAX - 3)].map(&mut add), [u32::MAX - 2, u32::MAX - 4, u32::MAX - 5]);
        assert_eq!(builder.find_process(98).map(|process| builder.pid(process)), Some(98));
        assert_eq!(builder.find_process(97), None);
    }

    #[test]
    fn a_hundred_thousand_namesakes_are_told_apart_in_no_time() {
        let mut builder = TraceBuilder::new();
        let pids: FxHashSet<u32> = (0..100_000)
            .map(|_| {
                let process = builder.separate_process(Some(7));
                builder.pid(process)
            })
            .collect();
        assert_eq!(pids.len(), 100_000);
    }
}
