//! The tables of a trace.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api::ApiKind;
use super::ids::{
    CallIdx, ContextIdx, CorrelationId, DetailId, DeviceIdx, GraphId, NameId, OpIdx, ProcessIdx, StreamIdx, ThreadIdx,
};
use super::meta::Meta;
use super::names::Names;
use super::part::Rest;
use super::time::{Interval, Ns};

/// A recording: what the host called and what the devices did, on one clock.
///
/// Ops are sorted by stream, then start, then end; calls by thread, then start, then longest first. So every lane is
/// one contiguous range of its table. Ops of one stream may overlap (programmatic dependent launch), and calls of one
/// thread may nest. Made by [`TraceBuilder`](super::TraceBuilder) or read from a trace file, both of which guarantee
/// the order and resolve the links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Where the trace comes from and what it is worth.
    pub meta: Meta,
    /// Every string of the trace.
    pub names: Names,
    /// The end of the trace: no record ends later. Its start is 0.
    pub end: Ns,
    /// Processes.
    pub processes: Vec<Process>,
    /// Devices, in order of their number.
    pub devices: Vec<Device>,
    /// CUDA contexts.
    pub contexts: Vec<Context>,
    /// Streams: the lanes of ops.
    pub streams: Vec<Stream>,
    /// Host threads: the lanes of calls and ranges.
    pub threads: Vec<Thread>,
    /// Device work.
    pub ops: Ops,
    /// Host API calls.
    pub calls: Calls,
    /// Synchronisation records.
    pub syncs: Vec<Sync>,
    /// CUDA event records.
    pub events: Vec<EventRecord>,
    /// Host functions run in stream order.
    pub host_functions: Vec<HostFunction>,
    /// Named host ranges, sorted by thread, then start, then longest first.
    pub ranges: Vec<NamedRange>,
    /// Profiler and driver overhead, sorted by start.
    pub overheads: Vec<Overhead>,
    /// Details shared by ops of the same shape.
    pub details: Vec<Detail>,
    /// What is known of the recording beyond these events, where they are only a part of it. No file keeps it.
    pub rest: Option<Box<Rest>>,
    /// For each call, where its ops stand in `call_ops`: one more entry than calls.
    pub(super) call_op_offsets: Vec<u32>,
    /// The ops of each call, sorted by start within a call.
    pub(super) call_ops: Vec<OpIdx>,
}

/// One process of the recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Operating system process id.
    pub pid: u32,
    /// Command or a name from the source; empty when unknown.
    pub name: String,
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Device number as the source gives it.
    pub id: u32,
    /// Product name; empty when unknown.
    pub name: String,
    /// UUID as lower-case hexadecimal; empty when unknown.
    pub uuid: String,
    /// Number of multiprocessors; 0 when unknown.
    pub multiprocessors: u32,
    /// Compute capability, major and minor; 0.0 when unknown.
    pub compute_capability: (u32, u32),
}

/// One CUDA context of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The process it belongs to.
    pub process: ProcessIdx,
    /// The device it is on.
    pub device: DeviceIdx,
    /// CUPTI's context id.
    pub id: u32,
}

/// How a stream behaves towards the legacy default stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamKind {
    /// The source does not tell.
    #[default]
    Unknown,
    /// The legacy default (NULL) stream.
    Null,
    /// Created with the default flags: serialises with the legacy default stream.
    Blocking,
    /// Created with `cudaStreamNonBlocking`.
    NonBlocking,
}

/// One stream: a lane of ops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The context it belongs to.
    pub context: ContextIdx,
    /// The device its ops run on.
    pub device: DeviceIdx,
    /// The process that owns it.
    pub process: ProcessIdx,
    /// CUPTI's stream id.
    pub id: u32,
    /// Its behaviour towards the default stream.
    pub kind: StreamKind,
    /// Its ops, a range of [`Trace::ops`].
    #[serde(skip)]
    pub ops: Range<u32>,
}

impl Stream {
    /// The id of the lane that stands for a context's migrations of unified memory, which run on no stream. CUPTI keeps
    /// the number for "does not apply".
    pub const MIGRATIONS: u32 = u32::MAX;
}

/// One host thread: a lane of calls and a lane of ranges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The process it belongs to.
    pub process: ProcessIdx,
    /// Operating system thread id, or the source's number for it.
    pub tid: u64,
    /// Thread name; empty when unknown.
    pub name: String,
    /// Its calls, a range of [`Trace::calls`].
    #[serde(skip)]
    pub calls: Range<u32>,
    /// Its ranges, a range of [`Trace::ranges`].
    #[serde(skip)]
    pub ranges: Range<u32>,
}

/// What kind of device work an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum OpKind {
    /// A kernel.
    Kernel,
    /// A copy, of any direction.
    Copy,
    /// A memset.
    Memset,
    /// A whole graph launch, recorded without its nodes. It counts as a kernel: busy and opaque.
    Graph,
}

impl OpKind {
    /// Whether the op counts as a copy in the partition of the span (copies and memsets do).
    #[inline]
    pub const fn is_copy(self) -> bool {
        matches!(self, Self::Copy | Self::Memset)
    }
}

/// Device work in columns, all of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ops {
    /// When each op started.
    pub start: Vec<Ns>,
    /// When each op ended; never before its start.
    pub end: Vec<Ns>,
    /// The stream it ran on.
    pub stream: Vec<StreamIdx>,
    /// What it is.
    pub kind: Vec<OpKind>,
    /// Its name, as the source gives it (kernel names are mangled or demangled as recorded).
    pub name: Vec<NameId>,
    /// The correlation id it carries.
    pub correlation: Vec<CorrelationId>,
    /// Bytes copied or set; 0 for kernels.
    pub bytes: Vec<u64>,
    /// The executable graph it is part of.
    pub graph: Vec<GraphId>,
    /// The node of that graph; 0 when none.
    pub graph_node: Vec<u64>,
    /// Launch shape or copy kind, a position in [`Trace::details`].
    pub detail: Vec<DetailId>,
    /// Position of the launch call, `u32::MAX` when unknown; read it through [`Ops::launch`].
    pub(super) launch: Vec<u32>,
}

/// Details shared by ops of the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detail {
    /// The source has none.
    None,
    /// How a kernel was launched.
    Kernel {
        /// Blocks in x, y and z.
        grid: [u32; 3],
        /// Threads per block in x, y and z.
        block: [u32; 3],
        /// Blocks per cluster in x, y and z; 0 without clusters.
        cluster: [u32; 3],
        /// Registers per thread.
        registers: u32,
        /// Static shared memory per block, in bytes.
        static_shared: u32,
        /// Dynamic shared memory per block, in bytes.
        dynamic_shared: u32,
    },
    /// What a copy moved between.
    Copy {
        /// Source memory.
        from: MemoryKind,
        /// Destination memory.
        to: MemoryKind,
        /// Whether the call was an asynchronous one, as CUPTI's copy flags say.
        asynchronous: bool,
    },
    /// What a memset wrote to.
    Memset {
        /// The memory set.
        to: MemoryKind,
        /// Whether the call was an asynchronous one.
        asynchronous: bool,
    },
}

/// Where memory lives (`CUpti_ActivityMemoryKind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// Not told.
    #[default]
    Unknown,
    /// Ordinary host memory.
    Pageable,
    /// Page-locked host memory.
    Pinned,
    /// Device memory.
    Device,
    /// A CUDA array.
    Array,
    /// Managed memory.
    Managed,
    /// Another device's memory.
    Peer,
}

impl MemoryKind {
    /// Whether it is on a device.
    pub const fn on_device(self) -> bool {
        matches!(self, Self::Device | Self::Array | Self::Peer)
    }
}

/// Host API calls in columns, all of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls {
    /// When each call began.
    pub start: Vec<Ns>,
    /// When it returned; never before its start.
    pub end: Vec<Ns>,
    /// The thread that called.
    pub thread: Vec<ThreadIdx>,
    /// The call's name as the source gives it.
    pub name: Vec<NameId>,
    /// What the call does.
    pub kind: Vec<ApiKind>,
    /// Its correlation id.
    pub correlation: Vec<CorrelationId>,
    /// The value it returned (`CUresult` or `cudaError_t`); 0 is success.
    pub result: Vec<i32>,
}

/// What a synchronisation record waited for (`CUpti_ActivitySynchronizationType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncKind {
    /// The host waited for an event.
    Event,
    /// A stream was told to wait for an event; the host did not wait.
    StreamWaitEvent,
    /// The host waited for a stream.
    Stream,
    /// The host waited for a context.
    Context,
}

/// One synchronisation record. Sorted by start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sync {
    /// When the wait began and ended on the host.
    pub interval: Interval,
    /// What was waited for.
    pub kind: SyncKind,
    /// The process that waited.
    pub process: ProcessIdx,
    /// The context, when known.
    pub context: Option<ContextIdx>,
    /// The stream waited for, or the stream that waits for an event; `None` when it does not apply.
    pub stream: Option<StreamIdx>,
    /// The CUDA event's id; ids are reused.
    pub event: Option<u32>,
    /// The synchronisation id that this wait shares with the record it waits for (CUPTI 12.8 on).
    pub event_sync: Option<u64>,
    /// For sources that name it, the correlation id of the event record that is waited for.
    pub awaited_record: CorrelationId,
    /// Correlation id of the call.
    pub correlation: CorrelationId,
    /// The call.
    pub call: Option<CallIdx>,
}

/// One recording of a CUDA event into a stream. Sorted by process, then correlation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// The process that recorded it.
    pub process: ProcessIdx,
    /// The context, when known.
    pub context: Option<ContextIdx>,
    /// The stream it was recorded into.
    pub stream: Option<StreamIdx>,
    /// The CUDA event's id; ids are reused.
    pub event: u32,
    /// The synchronisation id that waits for this record share (CUPTI 12.8 on).
    pub event_sync: Option<u64>,
    /// When the device reached it, if that was recorded.
    pub device_time: Option<Ns>,
    /// Correlation id of the call.
    pub correlation: CorrelationId,
    /// The call.
    pub call: Option<CallIdx>,
}

/// A host function that ran in stream order: the stream waited for the host meanwhile. Sorted by start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFunction {
    /// When it ran.
    pub interval: Interval,
    /// The stream that waited.
    pub stream: StreamIdx,
    /// Correlation id of the call that enqueued it.
    pub correlation: CorrelationId,
    /// The graph it is a node of.
    pub graph: GraphId,
}

/// A named range of host time: NVTX, a framework's operator, a user annotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedRange {
    /// When it was open.
    pub interval: Interval,
    /// The thread that opened it.
    pub thread: ThreadIdx,
    /// Its name.
    pub name: NameId,
    /// Where it comes from.
    pub kind: RangeKind,
}

/// Where a range comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RangeKind {
    /// An NVTX range.
    Nvtx,
    /// A framework's operator (`aten::item`).
    Operator,
    /// A user's annotation (`ProfilerStep#3`).
    Annotation,
}

/// What made overhead (`CUpti_ActivityOverheadKind`), or a JIT operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverheadKind {
    /// The driver compiled code (`DRIVER_COMPILER`, or a JIT record).
    Compiler,
    /// The profiler handed buffers over (`BUFFER_FLUSH`, `ACTIVITY_BUFFER_REQUEST`).
    ProfilerBuffer,
    /// The profiler instrumented code (`INSTRUMENTATION`).
    ProfilerInstrumentation,
    /// The profiler created or destroyed resources (`RESOURCE`, `UVM_ACTIVITY_INIT`).
    ProfilerResource,
    /// The profiler took a buffer on the device that was used before, as the number and the length of a launch let
    /// conclude; no record says so.
    ProfilerDeviceBuffer,
    /// A module was loaded because a call needed it (`RUNTIME_TRIGGERED_MODULE_LOADING`).
    ModuleLoading,
    /// A function was loaded at its first use (`LAZY_FUNCTION_LOADING`).
    LazyLoading,
    /// A launch waited because the command buffer was full (`COMMAND_BUFFER_FULL`).
    CommandBufferFull,
    /// Not known to this version.
    Unknown,
}

impl OverheadKind {
    /// Whether the profiler itself made it.
    pub const fn is_profiler(self) -> bool {
        matches!(
            self,
            Self::ProfilerBuffer | Self::ProfilerInstrumentation | Self::ProfilerResource | Self::ProfilerDeviceBuffer
        )
    }

    /// Whether it loads or compiles code.
    pub const fn is_loading(self) -> bool {
        matches!(self, Self::Compiler | Self::ModuleLoading | Self::LazyLoading)
    }
}

/// One interval of profiler or driver overhead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overhead {
    /// When it happened.
    pub interval: Interval,
    /// What made it.
    pub kind: OverheadKind,
    /// The process.
    pub process: ProcessIdx,
    /// The host thread, when the source names one.
    pub thread: Option<ThreadIdx>,
    /// Correlation id of the call it happened in, if any.
    pub correlation: CorrelationId,
}

impl Ops {
    /// Number of ops.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there is no op.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// When the op ran.
    #[inline]
    pub fn interval(&self, op: OpIdx) -> Interval {
        Interval::new(self.start[op.index()], self.end[op.index()])
    }

    /// The call that launched it: the outermost one with its correlation id in its process. An op of a graph without a
    /// correlation id (the body of a conditional node) has the latest graph launch before it that has no other ops.
    #[inline]
    pub fn launch(&self, op: OpIdx) -> Option<CallIdx> {
        let call = self.launch[op.index()];
        (call != u32::MAX).then_some(CallIdx(call))
    }

    /// All ops in table order.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = OpIdx> + use<> {
        (0..self.start.len()).map(OpIdx::from_index)
    }
}

impl Calls {
    /// Number of calls.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there is no call.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// When the call was open.
    #[inline]
    pub fn interval(&self, call: CallIdx) -> Interval {
        Interval::new(self.start[call.index()], self.end[call.index()])
    }

    /// All calls in table order.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = CallIdx> + use<> {
        (0..self.start.len()).map(CallIdx::from_index)
    }
}

impl Trace {
    /// Number of recorded events of every kind.
    pub fn event_count(&self) -> usize {
        self.ops.len()
            + self.calls.len()
            + self.syncs.len()
            + self.events.len()
            + self.host_functions.len()
            + self.ranges.len()
            + self.overheads.len()
    }

    /// The ops of a stream, sorted by start.
    pub fn stream_ops(&self, stream: StreamIdx) -> impl DoubleEndedIterator<Item = OpIdx> + ExactSizeIterator + use<> {
        let range = self.streams[stream.index()].ops.clone();
        (range.start..range.end).map(OpIdx)
    }

    /// The calls of a thread, sorted by start, an enclosing call before the calls inside it.
    pub fn thread_calls(
        &self,
        thread: ThreadIdx,
    ) -> impl DoubleEndedIterator<Item = CallIdx> + ExactSizeIterator + use<> {
        let range = self.threads[thread.index()].calls.clone();
        (range.start..range.end).map(CallIdx)
    }

    /// The ranges of a thread, sorted by start, an enclosing range before the ranges inside it.
    pub fn thread_ranges(&self, thread: ThreadIdx) -> &[NamedRange] {
        let range = self.threads[thread.index()].ranges.clone();
        &self.ranges[range.start as usize..range.end as usize]
    }

    /// The streams of a device.
    pub fn device_streams(&self, device: DeviceIdx) -> impl Iterator<Item = StreamIdx> + '_ {
        let streams = self.streams.iter().enumerate();
        streams.filter(move |(_, stream)| stream.device == device).map(|(index, _)| StreamIdx::from_index(index))
    }

    /// The ops that a call submitted, sorted by start: one for a launch or copy, many for a graph launch.
    #[inline]
    pub fn call_ops(&self, call: CallIdx) -> &[OpIdx] {
        let from = self.call_op_offsets[call.index()] as usize;
        let to = self.call_op_offsets[call.index() + 1] as usize;
        &self.call_ops[from..to]
    }

    /// The device an op ran on.
    #[inline]
    pub fn op_device(&self, op: OpIdx) -> DeviceIdx {
        self.streams[self.ops.stream[op.index()].index()].device
    }

    /// The process an op belongs to.
    #[inline]
    pub fn op_process(&self, op: OpIdx) -> ProcessIdx {
        self.streams[self.ops.stream[op.index()].index()].process
    }

    /// The process a call belongs to.
    #[inline]
    pub fn call_process(&self, call: CallIdx) -> ProcessIdx {
        self.threads[self.calls.thread[call.index()].index()].process
    }

    /// An op's name.
    pub fn op_name(&self, op: OpIdx) -> &str {
        self.names.get(self.ops.name[op.index()])
    }

    /// A call's name without version suffixes.
    pub fn call_name(&self, call: CallIdx) -> &str {
        super::api::base_name(self.names.get(self.calls.name[call.index()]))
    }

    /// An op's details.
    pub fn op_detail(&self, op: OpIdx) -> Detail {
        self.details.get(self.ops.detail[op.index()].index()).copied().unwrap_or(Detail::None)
    }
}
