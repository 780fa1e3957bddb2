//! Reads recordings of the replay probe: one record a line.
//!
//! `W t0 t1 L nk variant` opens a window (variant 0 pinned read-back and stream sync, 1 stream sync and blocking
//! read-back, 2 neither, 3 a device sync after every launch); `K` and `M start end correlation stream graph name` are
//! ops, `S start end correlation stream event type` synchronisations, `R start end correlation thread 0 name` calls.

use std::io::{BufRead, BufReader};
use std::path::Path;

use bubblescope::trace::{
    CallInput, ContextIdx, CorrelationId, Detail, GraphId, MemoryKind, OpInput, OpKind, ProcessIdx, SyncInput,
    SyncKind, Trace, TraceBuilder,
};

/// One window of the probe.
pub(crate) struct Window {
    pub(crate) long_loop: u32,
    pub(crate) kernels: u32,
    pub(crate) variant: u32,
    pub(crate) trace: Trace,
}

/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE`.
const NOT_APPLICABLE: u32 = u32::MAX;

struct Record {
    kind: char,
    start: i64,
    end: i64,
    correlation: u64,
    lane: u64,
    name: String,
}

/// Reads every window of a file, gzip or plain.
pub(crate) fn read(path: &Path) -> Vec<Window> {
    let file = std::fs::File::open(path).unwrap();
    let lines: Vec<String> = if path.extension().is_some_and(|extension| extension == "gz") {
        BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines().map(Result::unwrap).collect()
    } else {
        BufReader::new(file).lines().map(Result::unwrap).collect()
    };
    let mut windows = Vec::new();
    let mut records = Vec::new();
    for line in &lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |field: usize| fields[field].parse::<u64>().unwrap();
        match fields[0] {
            "W" => windows.push([number(1), number(2), number(3), number(4), number(5)]),
            "O" => {}
            kind => records.push(Record {
                kind: kind.chars().next().unwrap(),
                start: number(1) as i64,
                end: number(2) as i64,
                correlation: number(3),
                lane: number(4),
                name: fields[6].to_owned(),
            }),
        }
    }
    windows
        .into_iter()
        .map(|[from, to, long_loop, kernels, variant]| Window {
            long_loop: long_loop as u32,
            kernels: kernels as u32,
            variant: variant as u32,
            trace: trace(&records, from as i64, to as i64),
        })
        .collect()
}

/// The calls that begin in a window, and what belongs to them.
fn trace(records: &[Record], from: i64, to: i64) -> Trace {
    let inside = |record: &&Record| record.kind == 'R' && (from..to).contains(&record.start);
    let ids: std::collections::HashSet<u64> = records.iter().filter(inside).map(|call| call.correlation).collect();
    let mut builder = TraceBuilder::new();
    let process = builder.process(1);
    let device = builder.device(0);
    let context = builder.context(process, 1, device);
    for record in records.iter().filter(|record| ids.contains(&record.correlation)) {
        add(&mut builder, process, context, record);
    }
    builder.finish().unwrap()
}

fn add(builder: &mut TraceBuilder, process: ProcessIdx, context: ContextIdx, record: &Record) {
    let &Record { start, end, lane, .. } = record;
    let correlation = CorrelationId(record.correlation);
    match record.kind {
        'R' => {
            let (thread, name) = (builder.thread(process, lane), builder.name(&record.name));
            builder.push_call(CallInput { start, end, thread, name, correlation, result: 0 });
        }
        'S' => {
            let kind = match record.name.as_str() {
                "type1" => SyncKind::Event,
                "type2" => SyncKind::StreamWaitEvent,
                "type3" => SyncKind::Stream,
                _ => SyncKind::Context,
            };
            let stream = (lane as u32 != NOT_APPLICABLE).then(|| builder.stream(context, lane as u32));
            builder.push_sync(SyncInput {
                start,
                end,
                kind,
                process,
                context: Some(context),
                stream,
                event: None,
                event_sync: None,
                awaited_record: CorrelationId::NONE,
                correlation,
            });
        }
        kind => {
            let (kind, detail) = if kind == 'K' { (OpKind::Kernel, Detail::None) } else { copy(&record.name) };
            let (stream, name) = (builder.stream(context, lane as u32), builder.name(&record.name));
            builder.push_op(OpInput {
                start,
                end,
                stream,
                kind,
                name,
                correlation,
                bytes: 4,
                graph: GraphId::NONE,
                graph_node: 0,
                detail,
            });
        }
    }
}

/// `copy2_src3_dst2_4`: the memories are numbered as in `CUpti_ActivityMemoryKind`.
fn copy(name: &str) -> (OpKind, Detail) {
    let memory = |part: &str| {
        let at = name.find(part).unwrap() + part.len();
        match &name[at..=at] {
            "1" => MemoryKind::Pageable,
            "2" => MemoryKind::Pinned,
            "3" => MemoryKind::Device,
            _ => MemoryKind::Unknown,
        }
    };
    (OpKind::Copy, Detail::Copy { from: memory("src"), to: memory("dst"), asynchronous: false })
}
