//! Which API calls wait for device work, and for which: decided from the records, not from the calls' names alone.
//!
//! | call | waits when | for |
//! |---|---|---|
//! | any with a synchronisation record | always | what the record says |
//! | a synchronisation without a record | always | all earlier work of the process that was done when it returned |
//! | a copy whose name is not `Async` | unless it is device to device, or returned before its op started | its own op |
//! | an `Async` copy of pageable memory | it returned after its op started | its own op |
//! | a memset whose name is not `Async` | it returned after its op, which is on host memory or had to queue | its own op |
//! | a kernel launch | the process runs with blocking launches, as its long kernels show | its own op |
//! | a free | unless work submitted before it was still running when it returned | the context that it drained |
//! | a stream or event query | it is part of a spin | as a synchronisation |
//!
//! Where calls nest (a driver call inside a runtime call), the outermost one carries the wait.

mod default_stream;
mod events;
pub(crate) mod lanes;
mod recorded;
mod spins;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::trace::{
    ApiKind, CallIdx, ContextIdx, CorrelationId, Detail, MemoryKind, Ns, OpIdx, ProcessIdx, Stream, StreamIdx,
    StreamKind, Sync, SyncKind, ThreadIdx, Trace,
};

use super::near::Places;
pub use default_stream::default_stream_wait;
pub use events::Awaited;
use events::EventIndex;
use lanes::last_submitted_before;

/// CUPTI's number for the legacy default stream of a context.
const DEFAULT_STREAM: u32 = 7;
/// Device clocks are mapped to the host's with an error; an op that ends no later than this after a call returned may
/// still be what the call waited for.
pub(crate) const CLOCK_SLACK: Ns = Ns(1_000);
/// A kernel must run this long before the time of its launch call tells whether launches block.
const LONG_KERNEL: Ns = Ns::from_us(50);
/// So many launches of long kernels must have been seen before launches are said to block.
const MIN_LONG_KERNELS: usize = 8;

/// Why a call is held to have waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitCause {
    /// It is a synchronisation.
    Sync,
    /// It is a copy that promises to wait.
    BlockingCopy,
    /// It is an asynchronous copy, made to wait by pageable memory.
    PageableCopy,
    /// It is a memset that waited for itself.
    Memset,
    /// It frees memory, which waits for the work that may use it.
    Free,
    /// It is a query in a spin, and not the last of it.
    SpinBody,
    /// It is the query that ended a spin.
    SpinEnd,
    /// It launches, and launches block in this process (`CUDA_LAUNCH_BLOCKING`).
    BlockingLaunch,
    /// A synchronisation record shows that it waited, whatever its name.
    Recorded,
}

/// The device work that a call waited for. Work that was submitted after the call began is never part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Everything submitted to a stream.
    Stream(StreamIdx),
    /// Everything submitted to the legacy default stream of a context and to the streams that serialise with it.
    DefaultStream(ContextIdx),
    /// Everything submitted to a context.
    Context(ContextIdx),
    /// No record names the work: everything the process submitted that had ended when the call returned.
    Process(ProcessIdx),
    /// The end of this op: the call's own, or the last one before an event was recorded.
    Op(OpIdx),
    /// The start of this op of the call's own: pageable memory had been staged by then.
    OpStart(OpIdx),
    /// An event without work before it.
    Nothing,
}

/// One blocking call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The call: the outermost one where calls nest.
    pub call: CallIdx,
    /// Why it is held to have waited.
    pub cause: WaitCause,
    /// What for.
    pub target: Target,
}

/// A stream that was told to wait for an event, on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWait {
    /// The stream that waits.
    pub stream: StreamIdx,
    /// The correlation id of the call that told it.
    pub correlation: CorrelationId,
    /// The call.
    pub call: Option<CallIdx>,
    /// What is waited for.
    pub awaited: Awaited,
    /// The correlation id of the call that recorded the event; [`CorrelationId::NONE`] when that is not known.
    pub recorded: CorrelationId,
}

/// Every wait of a stream for an event, sorted by stream, then correlation. Looks at events and synchronisations only.
pub fn stream_waits(trace: &Trace) -> Vec<StreamWait> {
    stream_waits_with(trace, &EventIndex::new(trace))
}

fn stream_waits_with(trace: &Trace, events: &EventIndex) -> Vec<StreamWait> {
    let waits = trace.syncs.iter().filter(|sync| sync.kind == SyncKind::StreamWaitEvent);
    let mut waits: Vec<StreamWait> = waits
        .filter_map(|sync| {
            let stream = sync.stream?;
            let record = events.record(trace, sync);
            let awaited = Awaited::by(trace, record);
            let recorded = record.map_or(CorrelationId::NONE, |record| record.correlation);
            Some(StreamWait { stream, correlation: sync.correlation, call: sync.call, awaited, recorded })
        })
        .collect();
    waits.sort_by_key(|wait| (wait.stream, wait.correlation));
    waits
}

/// How many calls make streams wait for events and have no record of it, because the source has no synchronisation
/// records, where that matters: where a process has work on several streams. In which order these run is not known then.
pub(crate) fn unknown_stream_orders(trace: &Trace) -> u64 {
    let recorded = |kind| trace.syncs.iter().any(|sync| sync.kind == kind);
    if trace.meta.recorded.syncs || recorded(SyncKind::StreamWaitEvent) {
        return 0;
    }
    let used = |process| trace.streams.iter().filter(|row| row.process == process && !row.ops.is_empty()).count();
    let several: Vec<bool> = (0..trace.processes.len()).map(|row| used(ProcessIdx::from_index(row)) > 1).collect();
    let unknown = trace.calls.indices().filter(|&call| {
        let kind = trace.calls.kind[call.index()];
        kind == ApiKind::StreamWait && several[trace.call_process(call).index()]
    });
    unknown.count() as u64
}

/// Whether a legacy default stream and others of its context have work, and the source does not tell how any stream of the
/// context behaves towards it.
pub(crate) fn has_unknown_default_stream(trace: &Trace) -> bool {
    let used = || trace.streams.iter().filter(|row| !row.ops.is_empty() && row.id != Stream::MIGRATIONS);
    used().filter(|row| row.id == DEFAULT_STREAM && row.kind == StreamKind::Unknown).any(|default| {
        let others = || used().filter(|row| row.context == default.context && row.id != default.id);
        others().next().is_some() && others().all(|row| row.kind == StreamKind::Unknown)
    })
}

/// Every wait of a trace.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// In the order of the call table.
    calls: Vec<Wait>,
    /// Sorted by stream, then correlation.
    streams: Vec<StreamWait>,
    /// Where each stream's waits begin in `streams`: one more entry than streams.
    stream_offsets: Vec<u32>,
    unresolved_events: u64,
    /// Each wait of the host for an event whose record is known: the call that recorded it, if that is known too, and the
    /// one that waited, sorted.
    recorded_for_host: Vec<(Option<CallIdx>, Option<CallIdx>)>,
}

impl Waits {
    /// Finds every wait. Linear in the trace, but for a logarithm on waits and event records.
    pub fn new(trace: &Trace) -> Self {
        let events = EventIndex::new(trace);
        let mut waits = Self::default();
        let records = host_records(trace);
        let blocking_launches = processes_with_blocking_launches(trace);
        let places = Places::new(1);
        let finder =
            Finder { trace, events: &events, records: &records, places, blocking_launches: &blocking_launches };
        let results_known = spins::results_known(trace);
        for thread in 0..trace.threads.len() {
            let thread = ThreadIdx::from_index(thread);
            let from = waits.calls.len();
            waits.unresolved_events += finder.thread(thread, &mut waits.calls);
            spins::merge(&finder, results_known, thread, from, &mut waits.calls);
        }
        waits.streams = stream_waits_with(trace, &events);
        waits.unresolved_events += waits.streams.iter().filter(|wait| wait.awaited == Awaited::Unknown).count() as u64;
        let begins = |stream| waits.streams.partition_point(|wait| wait.stream.index() < stream) as u32;
        waits.stream_offsets = (0..=trace.streams.len()).map(begins).collect();
        let by_host = trace.syncs.iter().filter(|sync| sync.kind == SyncKind::Event);
        let recorded = by_host.filter_map(|sync| Some((events.record(trace, sync)?.call, sync.call)));
        waits.recorded_for_host = recorded.collect();
        waits.recorded_for_host.sort_unstable();
        waits
    }

    /// The blocking calls, in the order of the call table.
    pub fn calls(&self) -> &[Wait] {
        &self.calls
    }

    /// What a call waited for, if it is a blocking call.
    pub fn of(&self, call: CallIdx) -> Option<&Wait> {
        let at = self.calls.binary_search_by_key(&call, |wait| wait.call).ok()?;
        self.calls.get(at)
    }

    /// Waits of streams for events, sorted by stream, then correlation.
    pub fn stream_waits(&self) -> &[StreamWait] {
        &self.streams
    }

    /// The waits of one stream, sorted by correlation.
    pub fn of_stream(&self, stream: StreamIdx) -> &[StreamWait] {
        let offset = |at: usize| self.stream_offsets.get(at).map_or(self.streams.len(), |&offset| offset as usize);
        &self.streams[offset(stream.index())..offset(stream.index() + 1)]
    }

    /// How many waits for an event could not be traced to the record they waited for.
    pub fn unresolved_events(&self) -> u64 {
        self.unresolved_events
    }
}

/// Positions in [`Trace::syncs`] of the host's waits, sorted by their call.
fn host_records(trace: &Trace) -> Vec<(CallIdx, u32)> {
    let mut records: Vec<(CallIdx, u32)> = trace
        .syncs
        .iter()
        .enumerate()
        .filter(|(_, sync)| sync.kind != SyncKind::StreamWaitEvent)
        .filter_map(|(index, sync)| Some((sync.call?, index as u32)))
        .collect();
    records.sort_unstable();
    records
}

/// Processes whose launches return only after their kernel: nearly all launches of long kernels did.
fn processes_with_blocking_launches(trace: &Trace) -> Vec<bool> {
    let mut seen = vec![(0usize, 0usize); trace.processes.len()];
    for op in trace.ops.indices() {
        let op_time = trace.ops.interval(op);
        if op_time.len() < LONG_KERNEL {
            continue;
        }
        let Some(call) = trace.ops.launch(op) else { continue };
        if trace.calls.kind[call.index()] != ApiKind::Launch {
            continue;
        }
        let (long, waited) = &mut seen[trace.op_process(op).index()];
        *long += 1;
        *waited += usize::from(trace.calls.end[call.index()] >= op_time.end);
    }
    seen.iter().map(|&(long, waited)| long >= MIN_LONG_KERNELS && waited * 20 >= long * 19).collect()
}

/// Decides call by call.
struct Finder<'a> {
    trace: &'a Trace,
    events: &'a EventIndex,
    records: &'a [(CallIdx, u32)],
    /// Where the last search in the records ended: calls are asked for in the order of their table.
    places: Places,
    blocking_launches: &'a [bool],
}

impl Finder<'_> {
    /// Appends the waits of a thread, queries left out; says how many event waits stayed unresolved.
    fn thread(&self, thread: ThreadIdx, waits: &mut Vec<Wait>) -> u64 {
        let calls = &self.trace.calls;
        let mut unresolved = 0;
        let mut outer: Option<CallIdx> = None;
        for call in self.trace.thread_calls(thread) {
            let around = outer.filter(|outer| calls.end[call.index()] <= calls.end[outer.index()]);
            let at = around.unwrap_or(call);
            outer = Some(at);
            if calls.kind[at.index()].queries() || waits.last().is_some_and(|wait| wait.call == at) {
                continue;
            }
            // Device work and records belong to the outermost call of their correlation id. A call inside another one
            // speaks for it only with evidence of its own.
            if around.is_some() && !calls.kind[call.index()].synchronises() && self.trace.call_ops(call).is_empty() {
                let Some(target) = self.recorded(call) else { continue };
                waits.push(Wait { call: at, cause: WaitCause::Recorded, target });
            } else if let Some((cause, target)) = self.wait(call) {
                unresolved += u64::from(self.is_unresolved_event(call, target));
                waits.push(Wait { call: at, cause, target });
            }
        }
        unresolved
    }

    fn wait(&self, call: CallIdx) -> Option<(WaitCause, Target)> {
        let kind = self.trace.calls.kind[call.index()];
        if let Some(target) = self.recorded(call) {
            let cause = match kind {
                kind if kind.synchronises() => WaitCause::Sync,
                ApiKind::CopyBlocking => WaitCause::BlockingCopy,
                ApiKind::Free => WaitCause::Free,
                _ => WaitCause::Recorded,
            };
            return Some((cause, target));
        }
        match kind {
            ApiKind::StreamSync | ApiKind::DeviceSync | ApiKind::EventSync => {
                Some((WaitCause::Sync, Target::Process(self.trace.call_process(call))))
            }
            ApiKind::CopyBlocking => self.blocking_copy(call),
            ApiKind::CopyAsync => self.pageable_copy(call),
            ApiKind::MemsetBlocking => self.memset(call),
            ApiKind::Launch if self.blocking_launches[self.trace.call_process(call).index()] => {
                let op = self.last_own_op(call)?;
                Some((WaitCause::BlockingLaunch, Target::Op(op)))
            }
            ApiKind::Free => self.free(call),
            _ => None,
        }
    }

    /// What the synchronisation record of a call says it waited for; of several the one that ended last.
    fn recorded(&self, call: CallIdx) -> Option<Target> {
        let from = self.places.partition_point(0, self.records, |&(of, _)| of < call);
        let records = self.records[from..].iter().take_while(|&&(of, _)| of == call);
        let syncs = records.map(|&(_, index)| &self.trace.syncs[index as usize]);
        syncs.max_by_key(|sync| sync.interval.end).map(|sync| self.target(sync))
    }

    fn target(&self, sync: &Sync) -> Target {
        let process = Target::Process(sync.process);
        match sync.kind {
            SyncKind::Event | SyncKind::StreamWaitEvent => match self.events.awaited(self.trace, sync) {
                Awaited::Op(op) => Target::Op(op),
                Awaited::Nothing => Target::Nothing,
                Awaited::Unknown => process,
            },
            SyncKind::Stream => sync.stream.map_or(process, |stream| {
                let row = &self.trace.streams[stream.index()];
                if row.kind == StreamKind::Null { Target::DefaultStream(row.context) } else { Target::Stream(stream) }
            }),
            SyncKind::Context => sync.context.map_or(process, Target::Context),
        }
    }

    fn is_unresolved_event(&self, call: CallIdx, target: Target) -> bool {
        self.trace.calls.kind[call.index()] == ApiKind::EventSync && matches!(target, Target::Process(_))
    }

    fn last_own_op(&self, call: CallIdx) -> Option<OpIdx> {
        self.trace.call_ops(call).iter().copied().max_by_key(|op| (self.trace.ops.end[op.index()], *op))
    }

    /// `cudaMemcpy` and its kin: device to device they return at once, and small pageable memory is staged.
    fn blocking_copy(&self, call: CallIdx) -> Option<(WaitCause, Target)> {
        let Some(op) = self.last_own_op(call) else {
            return Some((WaitCause::BlockingCopy, Target::Process(self.trace.call_process(call))));
        };
        if let Detail::Copy { from, to, .. } = self.trace.op_detail(op)
            && from.on_device()
            && to.on_device()
        {
            return None;
        }
        Some((WaitCause::BlockingCopy, self.own_target(call, op)?))
    }

    /// An asynchronous copy of pageable memory that was not handed over before its op began.
    fn pageable_copy(&self, call: CallIdx) -> Option<(WaitCause, Target)> {
        let op = self.last_own_op(call)?;
        let Detail::Copy { from, to, .. } = self.trace.op_detail(op) else { return None };
        if from != MemoryKind::Pageable && to != MemoryKind::Pageable {
            return None;
        }
        Some((WaitCause::PageableCopy, self.own_target(call, op)?))
    }

    /// The end of the op if the call returned after it, else its start if the call returned after that.
    fn own_target(&self, call: CallIdx, op: OpIdx) -> Option<Target> {
        let returned = self.trace.calls.end[call.index()];
        let time = self.trace.ops.interval(op);
        if returned.saturating_add(CLOCK_SLACK) >= time.end {
            Some(Target::Op(op))
        } else if returned >= time.start {
            Some(Target::OpStart(op))
        } else {
            None
        }
    }

    /// `cudaMemset` of device memory returns at once; of host memory it waits. Where the records do not tell the
    /// memory, returning after an op that had to queue behind others shows that it waited.
    fn memset(&self, call: CallIdx) -> Option<(WaitCause, Target)> {
        let op = self.last_own_op(call)?;
        if self.trace.calls.end[call.index()] < self.trace.ops.end[op.index()] {
            return None;
        }
        let on_host = matches!(
            self.trace.op_detail(op),
            Detail::Memset { to: MemoryKind::Pageable | MemoryKind::Pinned | MemoryKind::Managed, .. }
        );
        let lane = self.trace.streams[self.trace.ops.stream[op.index()].index()].ops.clone();
        let queued = op.0 > lane.start && self.trace.ops.end[op.index() - 1] > self.trace.calls.start[call.index()];
        (on_host || queued).then_some((WaitCause::Memset, Target::Op(op)))
    }

    /// A free waits for everything that may use the memory, unless work outlived it.
    fn free(&self, call: CallIdx) -> Option<(WaitCause, Target)> {
        let trace = self.trace;
        let process = trace.call_process(call);
        let time = trace.calls.interval(call);
        let (mut drained, mut outlived) = (None, false);
        for (index, stream) in trace.streams.iter().enumerate() {
            if stream.process != process {
                continue;
            }
            let Some(last) = last_submitted_before(trace, StreamIdx::from_index(index), time.start) else { continue };
            let end = trace.ops.end[last.index()];
            if end > time.end.saturating_add(CLOCK_SLACK) {
                outlived = true;
            } else if end > time.start {
                drained = Some(stream.context);
            }
        }
        match drained {
            Some(context) => Some((WaitCause::Free, Target::Context(context))),
            None if outlived => None,
            None => Some((WaitCause::Free, Target::Process(process))),
        }
    }
}
