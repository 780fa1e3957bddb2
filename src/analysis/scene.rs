//! Small traces for tests, written line by line.

use crate::trace::{
    CallInput, ContextIdx, CorrelationId, Detail, EventInput, GraphId, MemoryKind, OpInput, OpKind, OverheadKind,
    StreamIdx, StreamKind, SyncInput, SyncKind, ThreadIdx, Trace, TraceBuilder,
};

/// A trace in the making: device 0 with context 1, process 1, thread 1, unless told otherwise. Times in nanoseconds.
pub(crate) struct Scene {
    pub(crate) builder: TraceBuilder,
    pub(crate) context: ContextIdx,
    thread: ThreadIdx,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let mut builder = TraceBuilder::new();
        let process = builder.process(1);
        let device = builder.device(0);
        let context = builder.context(process, 1, device);
        let thread = builder.thread(process, 1);
        Self { builder, context, thread }
    }

    /// Lets the calls that follow come from another thread, of another process if so.
    pub(crate) fn on_thread(&mut self, pid: u32, tid: u64) {
        let process = self.builder.process(pid);
        self.thread = self.builder.thread(process, tid);
    }

    /// Lets what follows belong to another process, device and context.
    pub(crate) fn on_context(&mut self, pid: u32, device: u32, context: u32) {
        let process = self.builder.process(pid);
        let device = self.builder.device(device);
        self.context = self.builder.context(process, context, device);
        self.thread = self.builder.thread(process, 1);
    }

    pub(crate) fn stream(&mut self, id: u32) -> StreamIdx {
        self.builder.stream(self.context, id)
    }

    pub(crate) fn stream_kind(&mut self, id: u32, kind: StreamKind) {
        let stream = self.stream(id);
        self.builder.set_stream_kind(stream, kind);
    }

    pub(crate) fn call(&mut self, name: &str, correlation: u64, start: i64, end: i64) {
        self.call_returning(name, correlation, start, end, 0);
    }

    pub(crate) fn call_returning(&mut self, name: &str, correlation: u64, start: i64, end: i64, result: i32) {
        let name = self.builder.name(name);
        let (thread, correlation) = (self.thread, CorrelationId(correlation));
        self.builder.push_call(CallInput { start, end, thread, name, correlation, result });
    }

    pub(crate) fn kernel(&mut self, stream: u32, correlation: u64, start: i64, end: i64) {
        self.op(OpKind::Kernel, Detail::None, stream, correlation, start, end);
    }

    pub(crate) fn copy(
        &mut self,
        (from, to): (MemoryKind, MemoryKind),
        stream: u32,
        correlation: u64,
        start: i64,
        end: i64,
    ) {
        self.op(OpKind::Copy, Detail::Copy { from, to, asynchronous: false }, stream, correlation, start, end);
    }

    /// A call that copies so many bytes between host and device.
    pub(crate) fn copies(
        &mut self,
        (name, bytes): (&str, u64),
        memory: (MemoryKind, MemoryKind),
        correlation: u64,
        call: (i64, i64),
        (stream, start, end): (u32, i64, i64),
    ) {
        self.call(name, correlation, call.0, call.1);
        let detail = Detail::Copy { from: memory.0, to: memory.1, asynchronous: name.contains("Async") };
        self.op_of_bytes((OpKind::Copy, bytes), detail, stream, correlation, start, end);
    }

    /// Overhead on the current thread.
    pub(crate) fn overhead(&mut self, kind: OverheadKind, start: i64, end: i64) {
        let (thread, process) = (self.thread, self.builder.process(1));
        self.builder.push_overhead(start, end, kind, process, Some(thread), CorrelationId::NONE);
    }

    pub(crate) fn op(&mut self, kind: OpKind, detail: Detail, stream: u32, correlation: u64, start: i64, end: i64) {
        self.op_of_bytes((kind, 0), detail, stream, correlation, start, end);
    }

    fn op_of_bytes(
        &mut self,
        (kind, bytes): (OpKind, u64),
        detail: Detail,
        stream: u32,
        correlation: u64,
        start: i64,
        end: i64,
    ) {
        self.op_named((kind, bytes, "op"), detail, stream, correlation, start, end);
    }

    pub(crate) fn op_named(
        &mut self,
        (kind, bytes, name): (OpKind, u64, &str),
        detail: Detail,
        stream: u32,
        correlation: u64,
        start: i64,
        end: i64,
    ) {
        let stream = self.stream(stream);
        let name = self.builder.name(name);
        self.builder.push_op(OpInput {
            start,
            end,
            stream,
            kind,
            name,
            correlation: CorrelationId(correlation),
            bytes,
            graph: GraphId::NONE,
            graph_node: 0,
            detail,
        });
    }

    /// A kernel that is the only node of an executable graph.
    pub(crate) fn node(&mut self, stream: u32, correlation: u64, graph: u32, (start, end): (i64, i64)) {
        let (stream, name) = (self.stream(stream), self.builder.name("node"));
        self.builder.push_op(OpInput {
            start,
            end,
            stream,
            kind: OpKind::Kernel,
            name,
            correlation: CorrelationId(correlation),
            bytes: 0,
            graph: GraphId(graph),
            graph_node: 1,
            detail: Detail::None,
        });
    }

    /// A call that launches one kernel.
    pub(crate) fn launch(&mut self, correlation: u64, call: (i64, i64), stream: u32, op: (i64, i64)) {
        self.call("cudaLaunchKernel_v7000", correlation, call.0, call.1);
        self.kernel(stream, correlation, op.0, op.1);
    }

    /// The same with a kernel of this name.
    pub(crate) fn launch_named(&mut self, kernel: &str, id: u64, call: (i64, i64), stream: u32, op: (i64, i64)) {
        self.call("cudaLaunchKernel_v7000", id, call.0, call.1);
        self.op_named((OpKind::Kernel, 0, kernel), Detail::None, stream, id, op.0, op.1);
    }

    pub(crate) fn sync_record(
        &mut self,
        kind: SyncKind,
        correlation: u64,
        (start, end): (i64, i64),
        stream: Option<u32>,
        event: Option<(u32, Option<u64>)>,
    ) {
        let process = self.builder.process(1);
        let stream = stream.map(|id| self.stream(id));
        self.builder.push_sync(SyncInput {
            start,
            end,
            kind,
            process,
            context: Some(self.context),
            stream,
            event: event.map(|(id, _)| id),
            event_sync: event.and_then(|(_, sync)| sync),
            awaited_record: CorrelationId::NONE,
            correlation: CorrelationId(correlation),
        });
    }

    /// A stream synchronisation with its record.
    pub(crate) fn stream_sync(&mut self, correlation: u64, stream: u32, start: i64, end: i64) {
        self.call("cudaStreamSynchronize_v3020", correlation, start, end);
        self.sync_record(SyncKind::Stream, correlation, (start, end), Some(stream), None);
    }

    /// An event recorded into a stream, with its call.
    pub(crate) fn record_event(&mut self, correlation: u64, start: i64, stream: u32, event: u32, sync: Option<u64>) {
        self.call("cudaEventRecord_v3020", correlation, start, start + 100);
        let process = self.builder.process(1);
        let stream = Some(self.stream(stream));
        self.builder.push_event(EventInput {
            process,
            context: Some(self.context),
            stream,
            event,
            event_sync: sync,
            device_time: 0,
            correlation: CorrelationId(correlation),
        });
    }

    /// A stream made to wait for an event, with its call.
    pub(crate) fn wait_event(&mut self, correlation: u64, start: i64, stream: u32, event: u32, sync: Option<u64>) {
        self.call("cudaStreamWaitEvent_v3020", correlation, start, start + 100);
        let time = (start, start + 100);
        self.sync_record(SyncKind::StreamWaitEvent, correlation, time, Some(stream), Some((event, sync)));
    }

    pub(crate) fn finish(self) -> Trace {
        self.builder.finish().unwrap()
    }
}
