//! Makes a [`Trace`](super::Trace) out of records in any order.

mod finish;
mod input;
mod intake;
mod order;

use rustc_hash::FxHashMap;

use super::ids::{ContextIdx, CorrelationId, DetailId, DeviceIdx, GraphId, NameId, ProcessIdx, StreamIdx, ThreadIdx};
use super::meta::Meta;
use super::model::{Context, Detail, Device, OverheadKind, Process, RangeKind, Stream, StreamKind, Thread};
use super::names::Names;
use super::outline::Outline;
use super::part::{CallSeen, EventAwaited, OpSeen, RecordSeen, Seen};

pub use finish::BuildError;
pub use input::{CallInput, EventInput, OpInput, SyncInput};
use intake::Intake;

/// Collects records in any order and makes a [`Trace`](super::Trace) of them.
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
    /// The moment that becomes the trace's zero when there is no record of which it could be the first.
    pub zero: i64,
    /// What is done with events.
    intake: Intake,
    names: Names,
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

    /// Takes over what an outline holds, each thing at its position there, so that records can refer to it by that. False,
    /// and nothing is taken over, when something is in the builder already, or the outline contradicts itself.
    pub fn restore(&mut self, outline: &Outline) -> bool {
        let untouched = self.names.is_empty() && self.processes.is_empty() && self.devices.is_empty();
        if !untouched {
            return false;
        }
        let mut restored = Self { drop_duplicates: self.drop_duplicates, ..Self::default() };
        let whole = restored.add_all(outline).is_some();
        if whole {
            restored.meta = outline.meta.clone();
            *self = restored;
        }
        whole
    }

    /// Adds everything in an outline; `None` as soon as something is not new or refers to what is not there.
    fn add_all(&mut self, outline: &Outline) -> Option<()> {
        fn new_at(position: usize, index: usize) -> Option<()> {
            (position == index).then_some(())
        }
        for (at, text) in outline.names.iter().enumerate() {
            new_at(at, self.name(text).index())?;
        }
        for (at, process) in outline.processes.iter().enumerate() {
            let row = self.process(process.pid);
            new_at(at, row.index())?;
            self.set_process_name(row, &process.name);
        }
        for (at, device) in outline.devices.iter().enumerate() {
            let row = self.device(device.id);
            new_at(at, row.index())?;
            self.describe_device(row, device.clone());
        }
        for (at, context) in outline.contexts.iter().enumerate() {
            self.processes.get(context.process.index())?;
            self.devices.get(context.device.index())?;
            new_at(at, self.context(context.process, context.id, context.device).index())?;
        }
        for (at, stream) in outline.streams.iter().enumerate() {
            let context = self.contexts.get(stream.context.index())?;
            new_at(context.device.index(), stream.device.index())?;
            new_at(context.process.index(), stream.process.index())?;
            let row = self.stream(stream.context, stream.id);
            new_at(at, row.index())?;
            self.set_stream_kind(row, stream.kind);
        }
        for (at, thread) in outline.threads.iter().enumerate() {
            self.processes.get(thread.process.index())?;
            let row = self.thread(thread.process, thread.tid);
            new_at(at, row.index())?;
            self.set_thread_name(row, &thread.name);
        }
        for (at, &detail) in outline.details.iter().enumerate() {
            new_at(at, self.detail(detail).index())?;
        }
        Some(())
    }

    /// The id of a set of details.
    fn detail(&mut self, detail: Detail) -> DetailId {
        let details = &mut self.details;
        *self.detail_ids.entry(detail).or_insert_with(|| {
            details.push(detail);
            DetailId::from_index(details.len() - 1)
        })
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
        if op.start == 0 && op.end == 0 {
            self.meta.losses.ops_without_time += 1;
        } else if !possible(op.start, if op.end == 0 { op.start } else { op.end }) {
            self.meta.losses.impossible_times += 1;
        } else if self.takes_op(&op) {
            let detail = self.detail(op.detail);
            self.ops.push((op, detail));
        }
    }

    fn takes_op(&mut self, op: &OpInput) -> bool {
        if matches!(self.intake, Intake::All) {
            return true;
        }
        let Stream { process, context, .. } = self.streams[op.stream.index()];
        let end = if op.end == 0 { Seen::OPEN } else { op.end };
        let seen = Seen { process, start: op.start, end, id: op.correlation };
        let device = self.contexts[context.index()].device;
        let takes = self.intake.op(&seen, &OpSeen { process, device, name: op.name, graph: op.graph });
        if !takes {
            self.meta.losses.unfinished_ops += u64::from(op.end == 0);
        }
        takes
    }

    /// Adds an API call.
    pub fn push_call(&mut self, call: CallInput) {
        if self.check(call.start, call.end) && self.takes_call(&call) {
            self.calls.push(call);
        }
    }

    fn takes_call(&mut self, call: &CallInput) -> bool {
        if matches!(self.intake, Intake::All) {
            return true;
        }
        let process = self.threads[call.thread.index()].process;
        let seen = Seen { process, start: call.start, end: call.end, id: call.correlation };
        let CallInput { thread, name, result, .. } = *call;
        self.intake.call(&seen, &CallSeen { process, thread, name, result }, &self.names)
    }

    /// Adds a synchronisation. A stream that is known tells the context, and a context the process.
    pub fn push_sync(&mut self, mut sync: SyncInput) {
        if self.takes_sync(&sync) {
            (sync.process, sync.context) = self.home(sync.process, sync.context, sync.stream);
            self.syncs.push(sync);
        }
    }

    /// Whether a synchronisation is to be added, for those who add it only later, when its stream and context are known:
    /// they are of its process. One that is not has been taken account of.
    pub(crate) fn takes_sync(&mut self, sync: &SyncInput) -> bool {
        if !self.check(sync.start, sync.end) {
            return false;
        }
        if matches!(self.intake, Intake::All) {
            return true;
        }
        let (process, _) = self.home(sync.process, sync.context, sync.stream);
        let seen = Seen { process, start: sync.start, end: sync.end, id: sync.correlation };
        let awaited = EventAwaited { event_sync: sync.event_sync, record: sync.awaited_record, event: sync.event };
        self.intake.sync(&seen, &awaited)
    }

    /// Adds an event record. A stream that is known tells the context, and a context the process. A device time that
    /// cannot be true is counted and left out.
    pub fn push_event(&mut self, mut event: EventInput) {
        if !self.takes_event(&event) {
            return;
        }
        if !self.check(event.device_time, event.device_time) {
            event.device_time = 0;
        }
        (event.process, event.context) = self.home(event.process, event.context, event.stream);
        self.events.push(event);
    }

    /// Whether an event record is to be added, for those who add it only later, when its stream and context are known:
    /// they are of its process. One that is not has been taken account of.
    pub(crate) fn takes_event(&mut self, event: &EventInput) -> bool {
        if matches!(self.intake, Intake::All) {
            return true;
        }
        let (process, _) = self.home(event.process, event.context, event.stream);
        let EventInput { event: handle, event_sync, correlation: id, .. } = *event;
        let takes = self.intake.record(&RecordSeen { process, id, event_sync, event: handle });
        if !takes {
            self.check(event.device_time, event.device_time);
        }
        takes
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
        let process = self.streams[stream.index()].process;
        if self.takes(process, start, end, correlation) {
            self.host_functions.push((start, end, stream, correlation, graph));
        }
    }

    /// Adds a named range. Times are absolute.
    pub fn push_range(&mut self, start: i64, end: i64, thread: ThreadIdx, name: NameId, kind: RangeKind) {
        let process = self.threads[thread.index()].process;
        let seen = Seen { process, start, end, id: CorrelationId::NONE };
        if self.check(start, end) && self.intake.range(&seen, thread) {
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
        let process = thread.map_or(process, |thread| self.threads[thread.index()].process);
        if self.takes(process, start, end, CorrelationId::NONE) {
            self.overheads.push((start, end, kind, process, thread, correlation));
        }
    }

    /// Whether an event is to be added that belongs to others by its correlation id, if it has one.
    fn takes(&mut self, process: ProcessIdx, start: i64, end: i64, id: CorrelationId) -> bool {
        self.check(start, end) && self.intake.other(&Seen { process, start, end, id })
    }

    /// Whether a record's times are possible; counts it when not.
    fn check(&mut self, start: i64, end: i64) -> bool {
        let possible = possible(start, end);
        self.meta.losses.impossible_times += u64::from(!possible);
        possible
    }
}

/// Whether a record's times can be true.
fn possible(start: i64, end: i64) -> bool {
    start <= end && start > -MAX_TIME && end < MAX_TIME
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
