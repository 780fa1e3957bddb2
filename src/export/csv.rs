//! A table with one row for each event and bubble.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::analysis::Analysis;
use crate::report::demangle;
use crate::trace::{CallIdx, CorrelationId, Interval, Ns, OpKind, OverheadKind, RangeKind, StreamIdx, SyncKind, Trace};

/// The columns, named as in the trace file where they mean the same. Times are nanoseconds from the trace's start; what does not apply is empty.
///
/// | column | meaning |
/// |---|---|
/// | `kind` | `kernel`, `copy`, `memset`, `graph`, `call`, `sync`, `event`, `host-function`, `range`, `overhead` or `bubble` |
/// | `category` | of a range, sync or overhead its kind; of a bubble its root cause |
/// | `name` | kernel, copy, call or range |
/// | `start_ns`, `dur_ns` | when, and how long |
/// | `device`, `context`, `stream` | of device work |
/// | `pid`, `tid` | of host activity; the process also of device work |
/// | `correlation` | links a call to its work within a process |
/// | `bytes`, `graph` | copied or set; the executable graph |
/// | `call`, `drained_by` | of a bubble: the call that its root cause names, and the call that emptied the device |
pub const COLUMNS: [&str; 15] = [
    "kind",
    "category",
    "name",
    "start_ns",
    "dur_ns",
    "device",
    "context",
    "stream",
    "pid",
    "tid",
    "correlation",
    "bytes",
    "graph",
    "call",
    "drained_by",
];

/// One row, cell by cell.
#[derive(Default)]
struct Row<'t> {
    record: &'static str,
    kind: &'static str,
    name: Cow<'t, str>,
    start: Option<Ns>,
    length: Option<Ns>,
    device: Option<u32>,
    context: Option<u32>,
    stream: Option<u32>,
    pid: Option<u32>,
    tid: Option<u64>,
    correlation: CorrelationId,
    bytes: Option<u64>,
    graph: Option<u32>,
    call: &'t str,
    drained_by: &'t str,
}

impl Row<'_> {
    fn at(record: &'static str, interval: Interval) -> Self {
        Self { record, start: Some(interval.start), length: Some(interval.len()), ..Self::default() }
    }

    fn write(&self, line: &mut String) {
        line.clear();
        line.push_str(self.record);
        text(line, self.kind);
        text(line, &self.name);
        number(line, self.start.map(Ns::get));
        number(line, self.length.map(Ns::get));
        number(line, self.device);
        number(line, self.context);
        number(line, self.stream);
        number(line, self.pid);
        number(line, self.tid);
        number(line, self.correlation.is_some().then_some(self.correlation.0));
        number(line, self.bytes);
        number(line, self.graph);
        text(line, self.call);
        text(line, self.drained_by);
        line.push('\n');
    }
}

pub(super) fn number(line: &mut String, value: Option<impl std::fmt::Display>) {
    line.push(',');
    if let Some(value) = value {
        let _ = write!(line, "{value}");
    }
}

/// A cell of text, quoted where a reader would else take a part of it for the end of the cell (RFC 4180).
pub(super) fn text(line: &mut String, value: &str) {
    line.push(',');
    if value.contains(['"', ',', '\n', '\r']) {
        line.push('"');
        line.push_str(&value.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(value);
    }
}

/// Writes [`COLUMNS`] and a row for each op, call, synchronisation, event record, host function, range and overhead of
/// the trace and each bubble of the analysis.
///
/// # Errors
/// When `out` cannot be written.
pub fn csv(trace: &Trace, analysis: &Analysis, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    let mut line = String::new();
    let mut put = |row: Row<'_>| {
        row.write(&mut line);
        out.write_all(line.as_bytes())
    };
    ops(trace, &mut put)?;
    calls(trace, &mut put)?;
    waits(trace, &mut put)?;
    host(trace, &mut put)?;
    bubbles(trace, analysis, &mut put)
}

/// Where a stream is.
fn lane<'t>(trace: &Trace, stream: StreamIdx, row: Row<'t>) -> Row<'t> {
    let Some(lane) = trace.streams.get(stream.index()) else { return row };
    Row {
        device: trace.devices.get(lane.device.index()).map(|device| device.id),
        context: trace.contexts.get(lane.context.index()).map(|context| context.id),
        stream: Some(lane.id),
        pid: trace.processes.get(lane.process.index()).map(|process| process.pid),
        ..row
    }
}

fn ops(trace: &Trace, put: &mut impl FnMut(Row<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut readable: Vec<Option<String>> = vec![None; trace.names.len()];
    for op in trace.ops.indices() {
        let index = op.index();
        let name = trace.ops.name[index];
        let known = readable.get_mut(name.index());
        let name = known.map_or("", |known| known.get_or_insert_with(|| demangle(trace.names.get(name))));
        let record = match trace.ops.kind[index] {
            OpKind::Kernel => "kernel",
            OpKind::Copy => "copy",
            OpKind::Memset => "memset",
            OpKind::Graph => "graph",
        };
        put(Row {
            name: name.into(),
            correlation: trace.ops.correlation[index],
            bytes: trace.ops.kind[index].is_copy().then_some(trace.ops.bytes[index]),
            graph: trace.ops.graph[index].is_some().then_some(trace.ops.graph[index].0),
            ..lane(trace, trace.ops.stream[index], Row::at(record, trace.ops.interval(op)))
        })?;
    }
    Ok(())
}

fn calls(trace: &Trace, put: &mut impl FnMut(Row<'_>) -> io::Result<()>) -> io::Result<()> {
    for call in trace.calls.indices() {
        put(Row {
            name: trace.names.get(trace.calls.name[call.index()]).into(),
            pid: trace.processes.get(trace.call_process(call).index()).map(|process| process.pid),
            tid: trace.threads.get(trace.calls.thread[call.index()].index()).map(|thread| thread.tid),
            correlation: trace.calls.correlation[call.index()],
            ..Row::at("call", trace.calls.interval(call))
        })?;
    }
    Ok(())
}

fn waits(trace: &Trace, put: &mut impl FnMut(Row<'_>) -> io::Result<()>) -> io::Result<()> {
    for sync in &trace.syncs {
        let row = Row::at("sync", sync.interval);
        let row = match sync.stream {
            Some(stream) => lane(trace, stream, row),
            None => Row { pid: trace.processes.get(sync.process.index()).map(|process| process.pid), ..row },
        };
        let kind = match sync.kind {
            SyncKind::Event => "event",
            SyncKind::StreamWaitEvent => "stream-wait-event",
            SyncKind::Stream => "stream",
            SyncKind::Context => "context",
        };
        put(Row { kind, correlation: sync.correlation, ..row })?;
    }
    for event in &trace.events {
        let row = Row { record: "event", start: event.device_time, ..Row::default() };
        let row = match event.stream {
            Some(stream) => lane(trace, stream, row),
            None => row,
        };
        put(Row { correlation: event.correlation, ..row })?;
    }
    for function in &trace.host_functions {
        let row = lane(trace, function.stream, Row::at("host-function", function.interval));
        put(Row { correlation: function.correlation, ..row })?;
    }
    Ok(())
}

fn host(trace: &Trace, put: &mut impl FnMut(Row<'_>) -> io::Result<()>) -> io::Result<()> {
    for range in &trace.ranges {
        let thread = trace.threads.get(range.thread.index());
        put(Row {
            kind: range_kind(range.kind),
            name: trace.names.get(range.name).into(),
            pid: thread.and_then(|thread| trace.processes.get(thread.process.index())).map(|process| process.pid),
            tid: thread.map(|thread| thread.tid),
            ..Row::at("range", range.interval)
        })?;
    }
    for overhead in &trace.overheads {
        put(Row {
            kind: overhead_kind(overhead.kind),
            pid: trace.processes.get(overhead.process.index()).map(|process| process.pid),
            tid: overhead.thread.and_then(|thread| trace.threads.get(thread.index())).map(|thread| thread.tid),
            correlation: overhead.correlation,
            ..Row::at("overhead", overhead.interval)
        })?;
    }
    Ok(())
}

fn bubbles(trace: &Trace, analysis: &Analysis, put: &mut impl FnMut(Row<'_>) -> io::Result<()>) -> io::Result<()> {
    let name = |call: Option<CallIdx>| call.map_or("", |call| trace.call_name(call));
    for device in &analysis.devices {
        let id = trace.devices.get(device.device.index()).map(|device| device.id);
        for bubble in &device.bubbles {
            put(Row {
                kind: bubble.root.cause.as_str(),
                device: id,
                call: name(bubble.root.call),
                drained_by: name(bubble.drained_by.map(|drain| drain.call)),
                ..Row::at("bubble", bubble.interval)
            })?;
        }
    }
    Ok(())
}

/// A word for where a range comes from.
pub(super) const fn range_kind(kind: RangeKind) -> &'static str {
    match kind {
        RangeKind::Nvtx => "nvtx",
        RangeKind::Operator => "operator",
        RangeKind::Annotation => "annotation",
    }
}

/// A word for what made overhead.
pub(super) const fn overhead_kind(kind: OverheadKind) -> &'static str {
    match kind {
        OverheadKind::Compiler => "compiler",
        OverheadKind::ProfilerBuffer => "profiler-buffer",
        OverheadKind::ProfilerInstrumentation => "profiler-instrumentation",
        OverheadKind::ProfilerResource => "profiler-resource",
        OverheadKind::ProfilerDeviceBuffer => "profiler-device-buffer",
        OverheadKind::ModuleLoading => "module-loading",
        OverheadKind::LazyLoading => "lazy-loading",
        OverheadKind::CommandBufferFull => "command-buffer-full",
        OverheadKind::Unknown => "unknown",
    }
}
