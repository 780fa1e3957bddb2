//! Converts the records of one spool, that is of one process.

use cupti::decode::{self, ApiDomain, CorrelationExtender, NOT_APPLICABLE, Record, records};
use cupti::spool::{Chunk, Strings};
use cupti_sys::bindings as c;
use rustc_hash::{FxHashMap, FxHashSet};

use super::clock::Clock;
use super::devices::{LocalDevices, device_in_trace};
use super::namesakes::Namesake;
use super::survey::{Survey, short};
use crate::report::text::counted;
use crate::trace::{
    CallInput, ContextIdx, CorrelationId, Detail, EventInput, GraphId, MemoryKind, NameId, OpInput, OpKind,
    OverheadKind, ProcessIdx, RangeKind, StreamIdx, StreamKind, SyncInput, SyncKind, ThreadIdx, TraceBuilder,
};

/// What a graph record has in the place of a device and a context where the graph starts or ends on the host.
const ON_HOST: u32 = i32::MAX.cast_unsigned();

/// Feeds one spool into the builder.
pub(super) struct ProcessConverter<'b> {
    builder: &'b mut TraceBuilder,
    survey: &'b Survey,
    devices: LocalDevices,
    clock: Clock,
    process: ProcessIdx,
    strings: Strings,
    /// Names of the pointers looked up since the last new texts.
    pointers: FxHashMap<u64, NameId>,
    calls: FxHashMap<(ApiDomain, u32), NameId>,
    copies: FxHashMap<[u8; 3], NameId>,
    /// CUPTI numbers the calls of a process through. Buffers come in order of completion, so ids in the order of the
    /// spool are far less than 2³¹ out of order.
    correlations: CorrelationExtender,
    /// Half-open ranges by their id.
    ranges: FxHashMap<u32, HalfRange>,
    /// Records that name a context whose device is told by others, perhaps later.
    later: Vec<Later>,
    /// The places of those that are not kept.
    places: FxHashSet<Place>,
    null_streams: Vec<(u32, u32)>,
    unreadable: u64,
}

/// One end of a range whose other end has not come yet.
#[derive(Clone, Copy)]
enum HalfRange {
    Open { start: i64, thread: ThreadIdx, name: NameId },
    Closed { end: i64 },
}

/// A context and a stream as a record names them, and its device if it does.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    device: Option<u32>,
    context: u32,
    stream: u32,
}

/// A record that is converted when all contexts are known. What it says of context and stream is filled in then.
enum Later {
    Sync(SyncInput, Place),
    Event(EventInput, Place),
    Stream(decode::Stream),
    /// The first of the records at a place that are not kept.
    Other(Place),
}

impl Later {
    fn place(&self) -> Option<Place> {
        match self {
            Self::Sync(_, place) | Self::Event(_, place) | Self::Other(place) => Some(*place),
            Self::Stream(_) => None,
        }
    }
}

impl<'b> ProcessConverter<'b> {
    pub(super) fn new(
        builder: &'b mut TraceBuilder,
        devices: LocalDevices,
        survey: &'b Survey,
        clock: Clock,
        process: ProcessIdx,
        namesake: Option<Namesake>,
    ) -> Self {
        let header = &survey.header;
        let mut name = if header.command_line.is_empty() { header.exe.clone() } else { header.command_line.join(" ") };
        let told = match namesake {
            Some(Namesake::AfterExec) => format!(" (process {} after exec)", header.pid),
            Some(Namesake::Later) => format!(" (a later process {})", header.pid),
            Some(Namesake::Elsewhere) => format!(" (process {} of another machine or container)", header.pid),
            None if builder.pid(process) != header.pid => format!(" (process {})", header.pid),
            None => String::new(),
        };
        name.push_str(&told);
        builder.set_process_name(process, name.trim());
        Self {
            builder,
            survey,
            devices,
            clock,
            process,
            strings: Strings::default(),
            pointers: FxHashMap::default(),
            calls: FxHashMap::default(),
            copies: FxHashMap::default(),
            correlations: CorrelationExtender::new(),
            ranges: FxHashMap::default(),
            later: Vec::new(),
            places: FxHashSet::default(),
            null_streams: Vec::new(),
            unreadable: 0,
        }
    }

    /// Converts one chunk; the survey has read all but texts and buffers.
    pub(super) fn chunk(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Strings { texts, .. } => {
                for text in &texts {
                    self.pointers.remove(&text.pointer);
                }
                self.strings.extend(texts);
            }
            Chunk::Buffer { bytes, .. } => {
                let survey = self.survey;
                for record in records(&survey.sizes, &bytes) {
                    self.record(&record);
                }
            }
            _ => {}
        }
    }

    /// Converts what had to wait for the end of the spool.
    pub(super) fn finish(mut self) {
        let later = std::mem::take(&mut self.later);
        for place in later.iter().filter_map(Later::place) {
            if let (Some(device), Some(context)) = (place.device, applicable(place.context)) {
                self.context(device, context);
            }
        }
        for later in later {
            match later {
                Later::Sync(mut sync, place) => {
                    (sync.context, sync.stream) = self.home(place);
                    self.builder.push_sync(sync);
                }
                Later::Event(mut event, place) => {
                    (event.context, event.stream) = self.home(place);
                    self.builder.push_event(event);
                }
                Later::Stream(stream) => self.stream_kind(&stream),
                Later::Other(place) => drop(self.home(place)),
            }
        }
        for (context, stream) in std::mem::take(&mut self.null_streams) {
            self.set_kind(context, stream, StreamKind::Null);
        }
        let unpaired = self.ranges.len();
        let meta = &mut self.builder.meta;
        if unpaired > 0 {
            meta.warnings.push(counted(
                unpaired as u64,
                "range has only one end in the recording and was left out",
                "ranges have only one end in the recording and were left out",
            ));
        }
        meta.losses.unreadable_records = meta.losses.unreadable_records.saturating_add(self.unreadable);
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::Kernel(kernel) => self.kernel(kernel),
            Record::Memcpy(copy) => self.copy(copy),
            Record::MemcpyPeer(copy) => self.peer_copy(copy),
            Record::Memset(memset) => self.memset(memset),
            Record::GraphTrace(graph) => self.graph(graph),
            Record::DeviceGraphTrace(graph) => self.device_graph(graph),
            Record::Api(call) => self.call(call),
            Record::Synchronization(sync) => self.sync(sync),
            Record::CudaEvent(event) => self.event(event),
            Record::Stream(stream) => self.later.push(Later::Stream(*stream)),
            Record::Overhead(overhead) => self.overhead(overhead),
            Record::Jit(jit) => self.jit(jit),
            Record::Context(context) => {
                self.context(context.device_id, context.context_id);
                self.null_streams.push((context.context_id, context.null_stream_id.into()));
            }
            Record::Marker(marker) => self.marker(marker),
            Record::HostLaunch(host) => {
                let stream = self.stream(host.device_id, host.context_id, host.stream_id);
                self.host_function(host.start, host.end, stream, host.correlation_id, GraphId::NONE);
            }
            Record::GraphHostNode(host) => {
                let stream = self.stream(host.device_id, host.context_id, host.stream_id);
                self.host_function(host.start, host.end, stream, host.correlation_id, GraphId(host.graph_id));
            }
            Record::Name(name) if name.object_kind == c::CUPTI_ACTIVITY_OBJECT_THREAD => {
                if let Some(text) = self.strings.get(name.name.0) {
                    let thread = self.builder.thread(self.process, name.object_id.thread_id().into());
                    self.builder.set_thread_name(thread, short(text));
                }
            }
            Record::Device(_)
            | Record::MarkerData(_)
            | Record::ExternalCorrelation(_)
            | Record::Name(_)
            | Record::Memory(_) => {}
        }
    }

    fn correlation(&mut self, id: u32) -> CorrelationId {
        CorrelationId(self.correlations.extend(id))
    }

    fn context(&mut self, device: u32, context: u32) -> ContextIdx {
        // Most records are of a context that is known.
        if let Some(known) = self.builder.find_context(self.process, context) {
            return known;
        }
        let device = device_in_trace(self.builder, &self.devices, device);
        self.builder.context(self.process, context, device)
    }

    fn stream(&mut self, device: u32, context: u32, stream: u32) -> StreamIdx {
        let context = self.context(device, context);
        self.builder.stream(context, stream)
    }

    /// The name behind a pointer.
    fn text(&mut self, pointer: u64, unknown: &str) -> NameId {
        if let Some(&name) = self.pointers.get(&pointer) {
            return name;
        }
        let Some(text) = self.strings.get(pointer) else { return self.builder.name(unknown) };
        let name = self.builder.name(text);
        self.pointers.insert(pointer, name);
        name
    }

    fn kernel(&mut self, kernel: &decode::Kernel) {
        let size = |number: i32| number.max(0).cast_unsigned();
        let stream = self.stream(kernel.device_id, kernel.context_id, kernel.stream_id);
        let op = OpInput {
            start: self.clock.time(kernel.start),
            end: self.clock.time(kernel.end),
            stream,
            kind: OpKind::Kernel,
            name: self.text(kernel.name.0, "(kernel without a name)"),
            correlation: self.correlation(kernel.correlation_id),
            bytes: 0,
            graph: GraphId(kernel.graph_id),
            graph_node: kernel.graph_node_id,
            detail: Detail::Kernel {
                grid: [size(kernel.grid_x), size(kernel.grid_y), size(kernel.grid_z)],
                block: [size(kernel.block_x), size(kernel.block_y), size(kernel.block_z)],
                cluster: [kernel.cluster_x, kernel.cluster_y, kernel.cluster_z],
                registers: kernel.registers_per_thread.into(),
                static_shared: size(kernel.static_shared_memory),
                dynamic_shared: size(kernel.dynamic_shared_memory),
            },
        };
        self.builder.push_op(op);
    }

    fn copy(&mut self, copy: &decode::Memcpy) {
        let stream = self.stream(copy.device_id, copy.context_id, copy.stream_id);
        let op = OpInput {
            start: self.clock.time(copy.start),
            end: self.clock.time(copy.end),
            stream,
            kind: OpKind::Copy,
            name: self.copy_name(copy.copy_kind, copy.src_kind, copy.dst_kind),
            correlation: self.correlation(copy.correlation_id),
            bytes: copy.bytes,
            graph: GraphId(copy.graph_id),
            graph_node: copy.graph_node_id,
            detail: Detail::Copy {
                from: memory_kind(copy.src_kind.into()),
                to: memory_kind(copy.dst_kind.into()),
                asynchronous: u32::from(copy.flags) & c::CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC != 0,
            },
        };
        self.builder.push_op(op);
    }

    fn peer_copy(&mut self, copy: &decode::MemcpyPeer) {
        let stream = self.stream(copy.device_id, copy.context_id, copy.stream_id);
        let side = |device: u32, kind: u8| {
            if device == copy.device_id { memory_kind(kind.into()) } else { MemoryKind::Peer }
        };
        let op = OpInput {
            start: self.clock.time(copy.start),
            end: self.clock.time(copy.end),
            stream,
            kind: OpKind::Copy,
            name: self.copy_name(copy.copy_kind, copy.src_kind, copy.dst_kind),
            correlation: self.correlation(copy.correlation_id),
            bytes: copy.bytes,
            graph: GraphId(copy.graph_id),
            graph_node: copy.graph_node_id,
            detail: Detail::Copy {
                from: side(copy.src_device_id, copy.src_kind),
                to: side(copy.dst_device_id, copy.dst_kind),
                asynchronous: u32::from(copy.flags) & c::CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC != 0,
            },
        };
        self.builder.push_op(op);
    }

    /// The name that profilers give to a copy.
    fn copy_name(&mut self, copy: u8, from: u8, to: u8) -> NameId {
        let builder = &mut *self.builder;
        *self.copies.entry([copy, from, to]).or_insert_with(|| {
            let (from, to) = (memory_label(from.into()), memory_label(to.into()));
            builder.name(&format!("Memcpy {} ({from} -> {to})", copy_label(copy.into())))
        })
    }

    fn memset(&mut self, memset: &decode::Memset) {
        let stream = self.stream(memset.device_id, memset.context_id, memset.stream_id);
        let kind = u32::from(memset.memory_kind);
        let op = OpInput {
            start: self.clock.time(memset.start),
            end: self.clock.time(memset.end),
            stream,
            kind: OpKind::Memset,
            name: self.builder.name(&format!("Memset ({})", memory_label(kind))),
            correlation: self.correlation(memset.correlation_id),
            bytes: memset.bytes,
            graph: GraphId(memset.graph_id),
            graph_node: memset.graph_node_id,
            detail: Detail::Memset {
                to: memory_kind(kind),
                asynchronous: u32::from(memset.flags) & c::CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC != 0,
            },
        };
        self.builder.push_op(op);
    }

    fn graph(&mut self, graph: &decode::GraphTrace) {
        // A graph that starts with host code has its device at its other end; one of host code alone has none.
        let start = (graph.device_id, graph.context_id);
        let end = (graph.end_device_id.unwrap_or(ON_HOST), graph.end_context_id.unwrap_or(ON_HOST));
        let Some((device, context)) = [start, end].into_iter().find(|&(device, _)| device != ON_HOST) else { return };
        let stream = self.stream(device, context, graph.stream_id);
        let correlation = self.correlation(graph.correlation_id);
        self.graph_op(graph.start, graph.end, stream, graph.graph_id, correlation);
    }

    fn device_graph(&mut self, graph: &decode::DeviceGraphTrace) {
        let Ok(stream) = u32::try_from(graph.stream_id) else {
            self.unreadable += 1;
            return;
        };
        let stream = self.stream(graph.device_id, graph.context_id, stream);
        self.graph_op(graph.start, graph.end, stream, graph.graph_id, CorrelationId::NONE);
    }

    fn graph_op(&mut self, start: u64, end: u64, stream: StreamIdx, graph: u32, correlation: CorrelationId) {
        let op = OpInput {
            start: self.clock.time(start),
            end: self.clock.time(end),
            stream,
            kind: OpKind::Graph,
            name: self.builder.name(&format!("graph {graph}")),
            correlation,
            bytes: 0,
            graph: GraphId(graph),
            graph_node: 0,
            detail: Detail::None,
        };
        self.builder.push_op(op);
    }

    fn call(&mut self, call: &decode::ApiCall) {
        let input = CallInput {
            start: self.clock.time(call.start),
            end: self.clock.time(call.end),
            thread: self.builder.thread(self.process, call.thread_id.into()),
            name: self.call_name(call.domain, call.cbid),
            correlation: self.correlation(call.correlation_id),
            result: call.return_value.cast_signed(),
        };
        self.builder.push_call(input);
    }

    fn call_name(&mut self, domain: ApiDomain, cbid: u32) -> NameId {
        let (builder, callbacks) = (&mut *self.builder, &self.survey.callbacks);
        *self.calls.entry((domain, cbid)).or_insert_with(|| {
            let (cupti_domain, unknown) = match domain {
                ApiDomain::Runtime => (c::CUPTI_CB_DOMAIN_RUNTIME_API, "runtime call"),
                ApiDomain::Driver => (c::CUPTI_CB_DOMAIN_DRIVER_API, "driver call"),
                ApiDomain::InternalLaunch => return builder.name("(launch inside the driver)"),
            };
            match callbacks.get(&(cupti_domain, cbid)) {
                Some(name) => builder.name(name),
                None => builder.name(&format!("{unknown} {cbid}")),
            }
        })
    }

    fn sync(&mut self, sync: &decode::Synchronization) {
        let correlation = self.correlation(sync.correlation_id);
        let kind = match sync.sync_type {
            c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE => SyncKind::Event,
            c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT => SyncKind::StreamWaitEvent,
            c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE => SyncKind::Stream,
            c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE => SyncKind::Context,
            _ => {
                self.unreadable += 1;
                return;
            }
        };
        let input = SyncInput {
            start: self.clock.time(sync.start),
            end: self.clock.time(sync.end),
            kind,
            process: self.process,
            context: None,
            stream: None,
            event: applicable(sync.cuda_event_id),
            event_sync: event_sync(sync.cuda_event_sync_id),
            awaited_record: CorrelationId::NONE,
            correlation,
        };
        let place = Place { device: None, context: sync.context_id, stream: sync.stream_id };
        if self.builder.takes_sync(&input) {
            self.later.push(Later::Sync(input, place));
        } else {
            self.other(place);
        }
    }

    fn event(&mut self, event: &decode::CudaEvent) {
        let input = EventInput {
            process: self.process,
            context: None,
            stream: None,
            event: event.event_id,
            event_sync: event_sync(event.cuda_event_sync_id),
            device_time: self.clock.time(event.device_timestamp.unwrap_or(0)),
            correlation: self.correlation(event.correlation_id),
        };
        let place = Place { device: event.device_id, context: event.context_id, stream: event.stream_id };
        if self.builder.takes_event(&input) {
            self.later.push(Later::Event(input, place));
        } else {
            self.other(place);
        }
    }

    /// Remembers where something happened that is not kept.
    fn other(&mut self, place: Place) {
        if self.places.insert(place) {
            self.later.push(Later::Other(place));
        }
    }

    /// The context and the stream of a record, as far as they apply and are known.
    fn home(&mut self, place: Place) -> (Option<ContextIdx>, Option<StreamIdx>) {
        let context = applicable(place.context).and_then(|id| self.builder.find_context(self.process, id));
        let stream = context.and_then(|context| Some(self.builder.stream(context, applicable(place.stream)?)));
        (context, stream)
    }

    fn stream_kind(&mut self, stream: &decode::Stream) {
        let kind = match stream.flag & c::CUPTI_ACTIVITY_STREAM_CREATE_MASK {
            c::CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT => StreamKind::Blocking,
            c::CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING => StreamKind::NonBlocking,
            c::CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL => StreamKind::Null,
            _ => return,
        };
        self.set_kind(stream.context_id, stream.stream_id, kind);
    }

    /// Sets the kind of a stream that something happened on.
    fn set_kind(&mut self, context: u32, stream: u32, kind: StreamKind) {
        let context = self.builder.find_context(self.process, context);
        if let Some(stream) = context.and_then(|context| self.builder.find_stream(context, stream)) {
            self.builder.set_stream_kind(stream, kind);
        }
    }

    fn overhead(&mut self, overhead: &decode::Overhead) {
        let on_thread = overhead.object_kind == c::CUPTI_ACTIVITY_OBJECT_THREAD;
        let thread = on_thread.then(|| self.builder.thread(self.process, overhead.object_id.thread_id().into()));
        let (start, end) = (self.clock.time(overhead.start), self.clock.time(overhead.end));
        let correlation = self.correlation(overhead.correlation_id.unwrap_or(0));
        let kind = overhead_kind(overhead.overhead_kind);
        self.builder.push_overhead(start, end, kind, self.process, thread, correlation);
    }

    fn jit(&mut self, jit: &decode::Jit) {
        let thread = jit.thread_id.map(|thread| self.builder.thread(self.process, thread.into()));
        let (start, end) = (self.clock.time(jit.start), self.clock.time(jit.end));
        let correlation = self.correlation(jit.correlation_id);
        self.builder.push_overhead(start, end, OverheadKind::Compiler, self.process, thread, correlation);
    }

    fn host_function(&mut self, start: u64, end: u64, stream: StreamIdx, correlation: u32, graph: GraphId) {
        let (start, end) = (self.clock.time(start), self.clock.time(end));
        let correlation = self.correlation(correlation);
        self.builder.push_host_function(start, end, stream, correlation, graph);
    }

    /// Pairs the two ends of a range, whichever comes first; an instant is a range without length.
    fn marker(&mut self, marker: &decode::Marker) {
        let time = self.clock.time(marker.timestamp);
        let on_thread = marker.object_kind == c::CUPTI_ACTIVITY_OBJECT_THREAD;
        let tid = if on_thread { marker.object_id.thread_id() } else { 0 };
        if marker.flags & c::CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS != 0 {
            let (thread, name) = (self.builder.thread(self.process, tid.into()), self.text(marker.name.0, "(mark)"));
            self.builder.push_range(time, time, thread, name, RangeKind::Nvtx);
        } else if marker.flags & c::CUPTI_ACTIVITY_FLAG_MARKER_START != 0 {
            let (thread, name) = (self.builder.thread(self.process, tid.into()), self.text(marker.name.0, "(range)"));
            match self.ranges.remove(&marker.id) {
                Some(HalfRange::Closed { end }) => self.builder.push_range(time, end, thread, name, RangeKind::Nvtx),
                _ => {
                    self.ranges.insert(marker.id, HalfRange::Open { start: time, thread, name });
                }
            }
        } else if marker.flags & c::CUPTI_ACTIVITY_FLAG_MARKER_END != 0 {
            match self.ranges.remove(&marker.id) {
                Some(HalfRange::Open { start, thread, name }) => {
                    self.builder.push_range(start, time, thread, name, RangeKind::Nvtx);
                }
                _ => {
                    self.ranges.insert(marker.id, HalfRange::Closed { end: time });
                }
            }
        }
    }
}

/// An id, unless it stands for "does not apply".
fn applicable(id: u32) -> Option<u32> {
    (id != NOT_APPLICABLE).then_some(id)
}

/// The id that an event record and its waits share. It has 64 bits, but "does not apply" is the 32-bit value.
fn event_sync(id: Option<u64>) -> Option<u64> {
    id.filter(|&id| id as u32 != NOT_APPLICABLE)
}

fn memory_kind(kind: u32) -> MemoryKind {
    match kind {
        c::CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE => MemoryKind::Pageable,
        c::CUPTI_ACTIVITY_MEMORY_KIND_PINNED => MemoryKind::Pinned,
        c::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE | c::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC => MemoryKind::Device,
        c::CUPTI_ACTIVITY_MEMORY_KIND_ARRAY => MemoryKind::Array,
        c::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED | c::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC => MemoryKind::Managed,
        _ => MemoryKind::Unknown,
    }
}

fn memory_label(kind: u32) -> &'static str {
    match kind {
        c::CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE => "Pageable",
        c::CUPTI_ACTIVITY_MEMORY_KIND_PINNED => "Pinned",
        c::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE => "Device",
        c::CUPTI_ACTIVITY_MEMORY_KIND_ARRAY => "Array",
        c::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED => "Managed",
        c::CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC => "Device Static",
        c::CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC => "Managed Static",
        _ => "Unknown",
    }
}

fn copy_label(kind: u32) -> &'static str {
    match kind {
        c::CUPTI_ACTIVITY_MEMCPY_KIND_HTOD => "HtoD",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_DTOH => "DtoH",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_HTOA => "HtoA",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_ATOH => "AtoH",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_ATOA => "AtoA",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_ATOD => "AtoD",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_DTOA => "DtoA",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_DTOD => "DtoD",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_HTOH => "HtoH",
        c::CUPTI_ACTIVITY_MEMCPY_KIND_PTOP => "PtoP",
        _ => "Unknown",
    }
}

fn overhead_kind(kind: u32) -> OverheadKind {
    match kind {
        c::CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER => OverheadKind::Compiler,
        c::CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH | c::CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST => {
            OverheadKind::ProfilerBuffer
        }
        c::CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION => OverheadKind::ProfilerInstrumentation,
        c::CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE | c::CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT => {
            OverheadKind::ProfilerResource
        }
        c::CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING => OverheadKind::ModuleLoading,
        c::CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING => OverheadKind::LazyLoading,
        c::CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL => OverheadKind::CommandBufferFull,
        _ => OverheadKind::Unknown,
    }
}
