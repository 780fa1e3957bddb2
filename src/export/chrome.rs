//! Chrome's trace JSON, as Perfetto and `chrome://tracing` open it.
//!
//! The names of categories and arguments are those of PyTorch's profiler, so that tools for its traces read these too.

use std::collections::hash_map::Entry;
use std::fmt::Display;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::csv::overhead_kind;
use super::tracks::Tracks;
use crate::analysis::{Analysis, Bubble, DeviceAnalysis};
use crate::report::demangle;
use crate::trace::{
    CallIdx, ContextIdx, CorrelationId, Detail, Device, DeviceIdx, EventRecord, Interval, NameId, Ns, OpIdx, OpKind,
    Outline, OverheadKind, ProcessIdx, RangeKind, Stream, StreamIdx, SyncKind, ThreadIdx, Trace,
};

/// Writes the trace with the bubbles of `analysis`.
///
/// Each device is a process with a track of its bubbles and one for each stream; each process has, for each thread, a
/// track of its calls and one of its ranges. Slices that overlap in part on one of these get further tracks, since
/// Perfetto would drop them. An arrow leads from each launch to the first op it submitted. Times are microseconds from the
/// trace's start with three decimals, which is to the nanosecond; `baseTimeNanoseconds` is the start itself. Beside the events stand the
/// devices, and everything else that the trace knows beside its events ([`Outline`]); arguments of events refer to that by
/// position, so that the file opens again as the same trace.
///
/// # Errors
/// When `out` cannot be written.
pub fn chrome(trace: &Trace, analysis: &Analysis, out: &mut impl Write) -> io::Result<()> {
    write!(
        out,
        "{{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":{},\"deviceProperties\":",
        trace.meta.epoch_ns
    )?;
    let devices: Vec<serde_json::Value> = trace.devices.iter().map(properties).collect();
    serde_json::to_writer(&mut *out, &devices).map_err(io::Error::from)?;
    write!(out, ",\"{OUTLINE_KEY}\":")?;
    serde_json::to_writer(&mut *out, &Outline::of(trace)).map_err(io::Error::from)?;
    out.write_all(b",\"traceEvents\":[")?;
    let (call_tracks, readable) = (FxHashMap::default(), FxHashMap::default());
    let mut writer = Writer { trace, out, any: false, tracks: 0, call_tracks, readable };
    writer.hosts()?;
    for device in 0..trace.devices.len() {
        let found = analysis.devices.iter().find(|found| found.device.index() == device);
        writer.device(device, found.map(Arc::as_ref))?;
    }
    out.write_all(b"\n]}\n")
}

/// The key of the outline, beside the events.
const OUTLINE_KEY: &str = "bubblescope";

/// A device as PyTorch's profiler describes it.
fn properties(device: &Device) -> serde_json::Value {
    let (major, minor) = device.compute_capability;
    serde_json::json!({
        "id": device.id,
        "name": device.name,
        "numSms": device.multiprocessors,
        "computeMajor": major,
        "computeMinor": minor,
    })
}

/// One track: Chrome's process and thread. Threads are numbered through the whole file: Perfetto takes two of one number
/// for one.
#[derive(Clone, Copy)]
struct Track {
    process: usize,
    thread: u32,
}

struct Writer<'w, 't, W> {
    trace: &'t Trace,
    out: &'w mut W,
    /// Whether an event was written.
    any: bool,
    /// Tracks so far.
    tracks: u32,
    /// Where each call that submitted work was drawn.
    call_tracks: FxHashMap<CallIdx, Track>,
    /// Names of ops, each demangled once.
    readable: FxHashMap<NameId, Rc<str>>,
}

/// A correlation id, if there is one.
fn known(id: CorrelationId) -> Option<u64> {
    id.is_some().then_some(id.0)
}

/// The lanes of one name, one for each process that has any.
struct Beside {
    label: &'static str,
    of: FxHashMap<ProcessIdx, Lane>,
}

impl Beside {
    fn new(label: &'static str) -> Self {
        Self { label, of: FxHashMap::default() }
    }
}

/// A lane that has been given its tracks.
struct Lane {
    label: String,
    process: usize,
    tracks: Tracks,
    threads: Vec<Track>,
}

impl<W: Write> Writer<'_, '_, W> {
    /// Begins an event; what follows are its members.
    fn event(&mut self) -> io::Result<()> {
        let separator = if self.any { ",\n{" } else { "\n{" };
        self.any = true;
        self.out.write_all(separator.as_bytes())
    }

    fn string(&mut self, text: &str) -> io::Result<()> {
        serde_json::to_writer(&mut *self.out, text).map_err(io::Error::from)
    }

    fn readable(&mut self, op: OpIdx) -> Rc<str> {
        let name = self.trace.ops.name[op.index()];
        self.readable.entry(name).or_insert_with(|| demangle(self.trace.names.get(name)).into()).clone()
    }

    /// A further argument of an event.
    fn text_argument(&mut self, key: &str, text: &str) -> io::Result<()> {
        write!(self.out, ",\"{key}\":")?;
        self.string(text)
    }

    /// Names a process and puts it in its place.
    fn process(&mut self, process: usize, name: &str) -> io::Result<()> {
        self.event()?;
        write!(self.out, "\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{process},\"tid\":0,\"args\":{{\"name\":")?;
        self.string(name)?;
        self.out.write_all(b"}}")?;
        self.event()?;
        write!(
            self.out,
            "\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{process},\"tid\":0,\"args\":{{\"sort_index\":{process}}}}}"
        )
    }

    fn lane(&self, process: usize, label: String, tracks: Tracks) -> Lane {
        Lane { label, process, tracks, threads: Vec::new() }
    }

    /// The track for the next slice of a lane; a new one is named.
    fn place(&mut self, lane: &mut Lane, slice: Interval) -> io::Result<Track> {
        let place = lane.tracks.place(slice);
        while lane.threads.len() <= place {
            self.tracks += 1;
            let track = Track { process: lane.process, thread: self.tracks };
            let (pid, tid) = (track.process, track.thread);
            self.event()?;
            write!(self.out, "\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":")?;
            let more = lane.threads.len();
            let label = if more == 0 { lane.label.clone() } else { format!("{} ({})", lane.label, more + 1) };
            self.string(&label)?;
            self.out.write_all(b"}}")?;
            self.event()?;
            write!(
                self.out,
                "\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"sort_index\":{tid}}}}}"
            )?;
            lane.threads.push(track);
        }
        Ok(lane.threads[place])
    }

    /// Begins a slice, up to the opening of its arguments.
    fn slice(&mut self, track: Track, category: &str, name: &str, slice: Interval) -> io::Result<()> {
        self.event()?;
        let Track { process, thread } = track;
        write!(self.out, "\"ph\":\"X\",\"cat\":\"{category}\",\"pid\":{process},\"tid\":{thread},\"ts\":")?;
        self.micros(slice.start)?;
        self.out.write_all(b",\"dur\":")?;
        self.micros(slice.len())?;
        self.out.write_all(b",\"name\":")?;
        self.string(name)?;
        self.out.write_all(b",\"args\":{")
    }

    fn end(&mut self) -> io::Result<()> {
        self.out.write_all(b"}}")
    }

    /// Microseconds with three decimals, from the integer itself.
    fn micros(&mut self, time: Ns) -> io::Result<()> {
        let sign = if time.0 < 0 { "-" } else { "" };
        let (whole, rest) = (time.0.unsigned_abs() / 1_000, time.0.unsigned_abs() % 1_000);
        write!(self.out, "{sign}{whole}.{rest:03}")
    }

    /// The number of a recorded process among the processes of the file: behind the devices, which have theirs from 1.
    /// Perfetto takes process 0 for the idle one.
    fn host(&self, process: usize) -> usize {
        self.trace.devices.len() + process + 1
    }

    fn hosts(&mut self) -> io::Result<()> {
        let trace = self.trace;
        for (index, process) in trace.processes.iter().enumerate() {
            let name = if process.name.is_empty() { "process" } else { &process.name };
            self.process(self.host(index), &format!("{name} ({})", process.pid))?;
        }
        for (index, thread) in trace.threads.iter().enumerate() {
            let index = ThreadIdx::from_index(index);
            let host = self.host(thread.process.index());
            let name = if thread.name.is_empty() { "thread" } else { &thread.name };
            let label = format!("{name} {}", thread.tid);
            let mut ranges = self.lane(host, format!("{label} ranges"), Tracks::nesting());
            for range in trace.thread_ranges(index) {
                let track = self.place(&mut ranges, range.interval)?;
                let category = match range.kind {
                    RangeKind::Nvtx => "nvtx",
                    RangeKind::Operator => "cpu_op",
                    RangeKind::Annotation => "user_annotation",
                };
                self.slice(track, category, trace.names.get(range.name), range.interval)?;
                write!(self.out, "\"thread\":{}", index.0)?;
                self.end()?;
            }
            let mut calls = self.lane(host, label, Tracks::nesting());
            for call in trace.thread_calls(index) {
                let interval = trace.calls.interval(call);
                let track = self.place(&mut calls, interval)?;
                if !trace.call_ops(call).is_empty() {
                    self.call_tracks.insert(call, track);
                }
                self.call(call, track)?;
            }
        }
        self.overheads()?;
        self.syncs()?;
        self.events()?;
        self.host_functions()
    }

    fn call(&mut self, call: CallIdx, track: Track) -> io::Result<()> {
        let calls = &self.trace.calls;
        let name = self.trace.names.get(calls.name[call.index()]);
        let driver = name.starts_with("cu") && !name.starts_with("cuda");
        self.slice(track, if driver { "cuda_driver" } else { "cuda_runtime" }, name, calls.interval(call))?;
        let (thread, correlation) = (calls.thread[call.index()].0, calls.correlation[call.index()].0);
        write!(self.out, "\"thread\":{thread},\"correlation\":{correlation}")?;
        if calls.result[call.index()] != 0 {
            write!(self.out, ",\"result\":{}", calls.result[call.index()])?;
        }
        self.end()
    }

    /// Draws something of a process that has no lane of its own in the trace, up to the opening of its arguments, of which
    /// the process is the first. What is drawn on one set of lanes comes in order of its start.
    fn beside(
        &mut self,
        lanes: &mut Beside,
        process: ProcessIdx,
        category: &str,
        name: &str,
        slice: Interval,
    ) -> io::Result<()> {
        let host = self.host(process.index());
        let lane = match lanes.of.entry(process) {
            Entry::Occupied(lane) => lane.into_mut(),
            Entry::Vacant(new) => new.insert(self.lane(host, lanes.label.to_owned(), Tracks::flat())),
        };
        let track = self.place(lane, slice)?;
        self.slice(track, category, name, slice)?;
        write!(self.out, "\"process\":{}", process.0)
    }

    /// A further argument of an event, where it is known.
    fn argument(&mut self, key: &str, value: Option<impl Display>) -> io::Result<()> {
        value.map_or(Ok(()), |value| write!(self.out, ",\"{key}\":{value}"))
    }

    fn overheads(&mut self) -> io::Result<()> {
        let mut lanes = Beside::new("overhead");
        for overhead in &self.trace.overheads {
            let profiler = overhead.kind.is_profiler() || overhead.kind == OverheadKind::Unknown;
            let category = if profiler { "overhead" } else { "cuda_overhead" };
            let name = overhead_kind(overhead.kind);
            self.beside(&mut lanes, overhead.process, category, name, overhead.interval)?;
            self.argument("thread", overhead.thread.map(|thread| thread.0))?;
            self.argument("correlation", known(overhead.correlation))?;
            self.end()?;
        }
        Ok(())
    }

    /// The synchronisations, in the terms of PyTorch's profiler and in ours.
    fn syncs(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut lanes = Beside::new("synchronisations");
        for sync in &trace.syncs {
            let name = match sync.kind {
                SyncKind::Event => "Event Sync",
                SyncKind::StreamWaitEvent => "Stream Wait Event",
                SyncKind::Stream => "Stream Sync",
                SyncKind::Context => "Context Sync",
            };
            self.beside(&mut lanes, sync.process, "cuda_sync", name, sync.interval)?;
            self.text_argument("cuda_sync_kind", name)?;
            self.place_arguments(sync.context, sync.stream)?;
            self.argument("correlation", known(sync.correlation))?;
            self.argument("wait_on_cuda_event_id", sync.event)?;
            self.argument("wait_on_cuda_event_record_corr_id", known(sync.awaited_record))?;
            self.argument("event_sync", sync.event_sync)?;
            self.end()?;
        }
        Ok(())
    }

    /// The records of CUDA events, each at its call.
    fn events(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let at = |event: &EventRecord| event.call.map_or(Ns::ZERO, |call| trace.calls.start[call.index()]);
        let mut events: Vec<&EventRecord> = trace.events.iter().collect();
        events.sort_by_key(|event| at(event));
        let mut lanes = Beside::new("events");
        for event in events {
            let at = at(event);
            self.beside(&mut lanes, event.process, "cuda_event", "Event Record", Interval::new(at, at))?;
            self.place_arguments(event.context, event.stream)?;
            self.argument("correlation", known(event.correlation))?;
            self.argument("event_id", Some(event.event))?;
            self.argument("event_sync", event.event_sync)?;
            self.argument("device_ns", event.device_time.map(|time| time.0))?;
            self.end()?;
        }
        Ok(())
    }

    fn host_functions(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let mut lanes = Beside::new("host functions");
        for host in &trace.host_functions {
            let stream = &trace.streams[host.stream.index()];
            self.beside(&mut lanes, stream.process, "host_function", "host function", host.interval)?;
            self.place_arguments(Some(stream.context), Some(host.stream))?;
            self.argument("correlation", known(host.correlation))?;
            self.argument("graph id", host.graph.is_some().then_some(host.graph.0))?;
            self.end()?;
        }
        Ok(())
    }

    /// Where on a device something was, by the numbers that CUDA gives and by our positions.
    fn place_arguments(&mut self, context: Option<ContextIdx>, stream: Option<StreamIdx>) -> io::Result<()> {
        let row = |context: ContextIdx| self.trace.contexts.get(context.index());
        let number = context.and_then(row);
        let device = number.and_then(|context| self.trace.devices.get(context.device.index()));
        let id = stream.and_then(|stream| self.trace.streams.get(stream.index())).map(|stream| stream.id);
        let (device, number) = (device.map(|device| device.id), number.map(|context| context.id));
        self.argument("device", device)?;
        self.argument("context", number)?;
        self.argument("stream", id)?;
        self.argument("at_context", context.map(|context| context.0))?;
        self.argument("lane", stream.map(|stream| stream.0))
    }

    fn device(&mut self, index: usize, found: Option<&DeviceAnalysis>) -> io::Result<()> {
        let trace = self.trace;
        let device = &trace.devices[index];
        let process = index + 1;
        self.process(process, format!("GPU {} {}", device.id, device.name).trim_end())?;
        if let Some(found) = found {
            let mut lane = self.lane(process, "bubbles".to_owned(), Tracks::flat());
            for bubble in &found.bubbles {
                let track = self.place(&mut lane, bubble.interval)?;
                self.bubble(track, found, bubble)?;
            }
        }
        for at in trace.device_streams(DeviceIdx::from_index(index)) {
            let stream = &trace.streams[at.index()];
            let mut lane = self.lane(process, self.stream_label(stream), Tracks::flat());
            for op in trace.stream_ops(at) {
                let track = self.place(&mut lane, trace.ops.interval(op))?;
                self.op(op, stream, device.id, track)?;
            }
        }
        Ok(())
    }

    /// A stream's name, with its process and context where a device has several.
    fn stream_label(&self, stream: &Stream) -> String {
        let mut label =
            if stream.id == Stream::MIGRATIONS { "unified memory".to_owned() } else { format!("stream {}", stream.id) };
        let beside = |other: &&Stream| other.device == stream.device && other.context != stream.context;
        if let Some(context) =
            self.trace.contexts.get(stream.context.index()).filter(|_| self.trace.streams.iter().any(|s| beside(&s)))
        {
            label = format!("{label} context {}", context.id);
            if self.trace.processes.len() > 1 {
                let pid = self.trace.processes.get(stream.process.index()).map_or(0, |process| process.pid);
                label = format!("{label} of {pid}");
            }
        }
        label
    }

    fn op(&mut self, op: OpIdx, stream: &Stream, device: u32, track: Track) -> io::Result<()> {
        let (trace, index) = (self.trace, op.index());
        let kind = trace.ops.kind[index];
        let category = match kind {
            OpKind::Kernel | OpKind::Graph => "kernel",
            OpKind::Copy => "gpu_memcpy",
            OpKind::Memset => "gpu_memset",
        };
        let name = self.readable(op);
        self.slice(track, category, &name, trace.ops.interval(op))?;
        let context = trace.contexts.get(stream.context.index()).map_or(0, |context| context.id);
        write!(
            self.out,
            "\"device\":{device},\"context\":{context},\"stream\":{},\"correlation\":{}",
            stream.id, trace.ops.correlation[index].0
        )?;
        write!(self.out, ",\"lane\":{},\"detail\":{}", trace.ops.stream[index].0, trace.ops.detail[index].0)?;
        if *name != *trace.op_name(op) {
            write!(self.out, ",\"symbol\":{}", trace.ops.name[index].0)?;
        }
        if kind == OpKind::Graph {
            write!(self.out, ",\"whole graph\":1")?;
        }
        if kind.is_copy() || trace.ops.bytes[index] > 0 {
            write!(self.out, ",\"bytes\":{}", trace.ops.bytes[index])?;
        }
        if trace.ops.graph[index].is_some() || trace.ops.graph_node[index] > 0 {
            let (graph, node) = (trace.ops.graph[index].0, trace.ops.graph_node[index]);
            write!(self.out, ",\"graph id\":{graph},\"graph node id\":{node}")?;
        }
        if let Detail::Kernel { grid, block, registers, .. } = trace.op_detail(op) {
            write!(self.out, ",\"grid\":{grid:?},\"block\":{block:?},\"registers per thread\":{registers}")?;
        }
        self.end()?;
        let Some(call) = trace.ops.launch(op).filter(|&call| trace.call_ops(call).first() == Some(&op)) else {
            return Ok(());
        };
        let Some(&from) = self.call_tracks.get(&call) else { return Ok(()) };
        self.arrow("s", op, from, trace.calls.start[call.index()])?;
        self.arrow("f\",\"bp\":\"e", op, track, trace.ops.start[index])
    }

    /// One end of the arrow to `op`.
    fn arrow(&mut self, phase: &str, op: OpIdx, track: Track, at: Ns) -> io::Result<()> {
        self.event()?;
        let (id, Track { process, thread }) = (op.0, track);
        write!(
            self.out,
            "\"ph\":\"{phase}\",\"id\":{id},\"cat\":\"ac2g\",\"name\":\"launch\",\"pid\":{process},\"tid\":{thread},\"ts\":"
        )?;
        self.micros(at)?;
        self.out.write_all(b"}")
    }

    fn bubble(&mut self, track: Track, device: &DeviceAnalysis, bubble: &Bubble) -> io::Result<()> {
        let trace = self.trace;
        let root = bubble.root;
        let name = match root.call {
            Some(call) => format!("{}: {}", root.cause, trace.call_name(call)),
            None => root.cause.to_string(),
        };
        self.slice(track, "bubble", &name, bubble.interval)?;
        write!(self.out, "\"cause\":\"{}\",\"confidence\":\"{}\"", root.cause, root.confidence)?;
        if let Some(call) = root.call {
            self.text_argument("call", trace.call_name(call))?;
        }
        if let Some(site) = root.site.and_then(|site| trace.ranges.get(site.index())) {
            self.text_argument("site", trace.names.get(site.name))?;
        }
        if let Some(drain) = bubble.drained_by {
            self.text_argument("drained by", trace.call_name(drain.call))?;
        }
        for (key, op) in [("before", bubble.before), ("after", bubble.after)] {
            let name = self.readable(op);
            self.text_argument(key, &name)?;
        }
        self.out.write_all(b",\"segments\":[")?;
        for (index, segment) in device.segments_of(bubble).iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(self.out, "{separator}{{\"kind\":\"{}\",\"ns\":{}", segment.kind, segment.interval.len().0)?;
            if let Some(call) = segment.call() {
                self.text_argument("call", trace.call_name(call))?;
            }
            if let Some(range) = segment.range().and_then(|range| trace.ranges.get(range.index())) {
                self.text_argument("range", trace.names.get(range.name))?;
            }
            self.out.write_all(b"}")?;
        }
        self.out.write_all(b"]")?;
        self.end()
    }
}
