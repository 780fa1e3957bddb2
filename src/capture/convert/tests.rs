use std::path::{Path, PathBuf};

use cupti::collector::RECORDER_NOTE;
use cupti::inject::{Effect, Fault};
use cupti::process::Birth;
use cupti::spool::{
    Anchor, Beside, CallbackName, Drops, End, Ending, Graphs, Header, Machine, Other, Reader, Status, Text, Writer,
    annotate,
};
use cupti_sys::bindings as c;

use super::{ConvertError, Survey, trace_from_bytes, trace_from_collected, trace_from_spools};
use crate::analysis::{Options, analyze};
use crate::trace::{
    CallIdx, CaptureMode, CorrelationId, Detail, GraphId, Interval, MemoryKind, Ns, OpIdx, OpKind, OverheadKind,
    StreamKind, SyncKind, Trace, WorkloadRun,
};

/// CUPTI of CUDA 13.0 update 1; its record sizes are those of the buffers here.
const VERSION: u32 = 130_001;
const EPOCH: u64 = 1_764_000_000_000_000_000;
const KERNEL_NAME: u64 = 0x7000_1000;
const RANGE_NAME: u64 = 0x7000_2000;
const DEVICE_NAME: u64 = 0x7000_3000;

/// A record made by hand: its kind, its size, and fields at CUPTI's offsets.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(kind: u32, size: usize) -> Self {
        let mut bytes = vec![0; size];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        Self(bytes)
    }

    fn put(mut self, at: usize, field: &[u8]) -> Self {
        self.0[at..at + field.len()].copy_from_slice(field);
        self
    }

    fn u8(self, at: usize, value: u8) -> Self {
        self.put(at, &[value])
    }

    fn u16(self, at: usize, value: u16) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    fn u32(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    fn u64(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    fn times(self, at: usize, start: u64, end: u64) -> Self {
        self.u64(at, EPOCH + start).u64(at + 8, EPOCH + end)
    }
}

fn kernel(start: u64, end: u64, stream: u32, correlation: u32) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 216)
        .u16(6, 40)
        .times(16, start, end)
        .u32(44, 1)
        .u32(48, stream)
        .u32(52, 256)
        .u32(56, 1)
        .u32(60, 1)
        .u32(64, 128)
        .u32(68, 1)
        .u32(72, 1)
        .u32(92, correlation)
        .u64(104, KERNEL_NAME)
}

fn call(start: u64, end: u64, cbid: u32, correlation: u32) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_RUNTIME, 40)
        .u32(4, cbid)
        .times(8, start, end)
        .u32(24, 4242)
        .u32(28, 4243)
        .u32(32, correlation)
}

fn sync(kind: u32, start: u64, end: u64, context: u32, stream: u32, correlation: u32) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 56)
        .u32(4, kind)
        .times(8, start, end)
        .u32(24, correlation)
        .u32(28, context)
        .u32(32, stream)
        .u32(36, u32::MAX)
        .u64(40, u64::from(u32::MAX))
}

fn marker(flags: u32, time: u64, id: u32, name: u64) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_MARKER, 56)
        .u32(4, flags)
        .u64(8, EPOCH + time)
        .u32(16, id)
        .u32(20, c::CUPTI_ACTIVITY_OBJECT_THREAD)
        .u32(24, 4242)
        .u32(28, 4243)
        .u64(40, name)
}

fn device(id: u32, uuid: u8) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_DEVICE, 184)
        .u32(44, 132)
        .u32(104, 9)
        .u32(108, 0)
        .u32(112, id)
        .put(120, &[uuid; 16])
        .u64(136, DEVICE_NAME)
}

fn context(id: u32, device: u32, null_stream: u16) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_CONTEXT, 32).u32(4, id).u32(8, device).u16(14, null_stream)
}

fn joined(records: &[Bytes]) -> Vec<u8> {
    records.iter().flat_map(|record| record.0.iter().copied()).collect()
}

fn header(pid: u32) -> Header {
    Header {
        recorder: "bubblescope 0.1.0".into(),
        cupti_version: VERSION,
        driver_version: 13_000,
        pid,
        exe: "/usr/bin/python3".into(),
        command_line: vec!["python3".into(), "train.py".into()],
        start_realtime_ns: EPOCH as i64,
        kinds: vec![
            c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
            c::CUPTI_ACTIVITY_KIND_RUNTIME,
            c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        ],
        machine: Machine { os: "Linux 6.8".into(), cpus: 16, ..Machine::default() },
        ..Header::default()
    }
}

fn anchor(after: i64) -> Anchor {
    Anchor {
        realtime_ns: EPOCH as i64 + after,
        monotonic_ns: 77 + after,
        cupti_ns: EPOCH + after as u64,
        uncertainty_ns: 60,
    }
}

/// A spool with these buffers, ended in order.
fn spool(header: &Header, buffers: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Writer::new(Vec::new(), header).unwrap();
    out.anchor(&anchor(0)).unwrap();
    let text = |pointer, text: &str| Text { pointer, text: text.into() };
    out.strings(0, &[text(KERNEL_NAME, "solve"), text(RANGE_NAME, "step"), text(DEVICE_NAME, "NVIDIA H200")]).unwrap();
    let name = |cbid, name: &str| CallbackName { domain: c::CUPTI_CB_DOMAIN_RUNTIME_API, cbid, name: name.into() };
    out.callback_names(&[name(211, "cudaLaunchKernel_v7000"), name(131, "cudaStreamSynchronize_v3020")]).unwrap();
    for (seq, buffer) in buffers.iter().enumerate() {
        out.buffer(seq as u64, buffer).unwrap();
    }
    out.anchor(&anchor(1_000_000)).unwrap();
    out.end(&End::default()).unwrap();
    out.into_inner()
}

fn convert(spool: &[u8]) -> Trace {
    trace_from_bytes(&[spool]).unwrap()
}

#[test]
fn every_kind_of_record_finds_its_place() {
    let records = [
        device(0, 0xab),
        sync(c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, 9_000, 12_000, 1, 13, 2),
        call(1_000, 3_000, 211, 1),
        kernel(5_000, 11_000, 13, 1),
        call(8_500, 12_500, 131, 2),
        context(1, 0, 7),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_STREAM, 24).u32(4, 1).u32(8, 13).u32(16, 2),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_MEMCPY, 96)
            .u8(4, 2)
            .u8(5, 3)
            .u8(6, 1)
            .u8(7, 1)
            .u64(8, 4)
            .times(16, 13_000, 14_000)
            .u32(36, 1)
            .u32(40, 7)
            .u32(44, 3),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_MEMCPY2, 96)
            .u8(4, 10)
            .u8(5, 3)
            .u8(6, 3)
            .u64(8, 1 << 20)
            .times(16, 15_000, 16_000)
            .u32(36, 1)
            .u32(40, 7)
            .u32(52, 1)
            .u32(60, 4),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_MEMSET, 88)
            .u64(8, 64)
            .times(16, 17_000, 18_000)
            .u32(36, 1)
            .u32(40, 7)
            .u32(44, 5)
            .u16(50, 3),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 56)
            .u32(4, 6)
            .times(8, 20_000, 30_000)
            .u32(24, i32::MAX as u32)
            .u32(28, 42)
            .u32(32, i32::MAX as u32)
            .u32(36, 13)
            .u32(52, 1),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_CUDA_EVENT, 56)
            .u32(4, 7)
            .u32(8, 1)
            .u32(12, 13)
            .u32(16, 99)
            .u64(40, EPOCH + 31_000)
            .u64(48, 5),
        sync(c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, 32_000, 33_000, 1, u32::MAX, 8),
        sync(99, 32_000, 33_000, 1, u32::MAX, 8),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_OVERHEAD, 56)
            .u32(4, c::CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING)
            .u32(8, c::CUPTI_ACTIVITY_OBJECT_THREAD)
            .u32(12, 4242)
            .u32(16, 4243)
            .times(24, 1_500, 2_000)
            .u32(40, 1),
        Bytes::new(c::CUPTI_ACTIVITY_KIND_JIT, 72).times(16, 500, 700).u32(64, 4242).u32(68, 4243),
        marker(c::CUPTI_ACTIVITY_FLAG_MARKER_END, 12_600, 1, 0),
        marker(c::CUPTI_ACTIVITY_FLAG_MARKER_START, 900, 1, RANGE_NAME),
        marker(c::CUPTI_ACTIVITY_FLAG_MARKER_START, 950, 2, RANGE_NAME),
        marker(c::CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, 960, 3, RANGE_NAME),
        kernel(0, 0, 13, 9).u64(16, 0).u64(24, 0),
        kernel(34_000, 0, 13, 10).u64(24, 0),
    ];
    let trace = convert(&spool(&header(4242), &[joined(&records)]));

    assert_eq!(trace.meta.epoch_ns, EPOCH as i64 + 500);
    assert_eq!(trace.end, Ns(33_500));
    assert_eq!(trace.processes[0].name, "python3 train.py");
    let [gpu] = &trace.devices[..] else { panic!("one device") };
    assert_eq!((gpu.name.as_str(), gpu.multiprocessors, gpu.compute_capability), ("NVIDIA H200", 132, (9, 0)));
    assert_eq!(gpu.uuid, "ab".repeat(16));
    let kinds: Vec<_> = trace.streams.iter().map(|stream| (stream.id, stream.kind)).collect();
    assert_eq!(kinds, [(7, StreamKind::Null), (13, StreamKind::NonBlocking)]);

    let ops: Vec<_> = trace.ops.indices().map(|op| (trace.op_name(op), trace.ops.kind[op.index()])).collect();
    assert_eq!(
        ops,
        [
            ("Memcpy DtoH (Device -> Pageable)", OpKind::Copy),
            ("Memcpy PtoP (Device -> Device)", OpKind::Copy),
            ("Memset (Device)", OpKind::Memset),
            ("solve", OpKind::Kernel),
            ("graph 42", OpKind::Graph),
            ("solve", OpKind::Kernel),
        ]
    );
    assert_eq!(
        trace.op_detail(OpIdx(0)),
        Detail::Copy { from: MemoryKind::Device, to: MemoryKind::Pageable, asynchronous: true }
    );
    assert_eq!(
        trace.op_detail(OpIdx(1)),
        Detail::Copy { from: MemoryKind::Device, to: MemoryKind::Peer, asynchronous: false }
    );
    assert!(matches!(
        trace.op_detail(OpIdx(3)),
        Detail::Kernel { grid: [256, 1, 1], block: [128, 1, 1], registers: 40, .. }
    ));
    assert_eq!(trace.ops.graph[4], GraphId(42));
    assert_eq!(trace.ops.bytes[..3], [4, 1 << 20, 64]);

    assert_eq!(trace.call_name(CallIdx(0)), "cudaLaunchKernel");
    assert_eq!(trace.ops.launch(OpIdx(3)), Some(CallIdx(0)));
    let syncs: Vec<_> = trace.syncs.iter().map(|sync| (sync.kind, sync.stream.is_some(), sync.call)).collect();
    assert_eq!(syncs, [(SyncKind::Stream, true, Some(CallIdx(1))), (SyncKind::Context, false, None)]);
    assert!(trace.syncs.iter().all(|sync| sync.context.is_some() && sync.event.is_none() && sync.event_sync.is_none()));
    let event = &trace.events[0];
    assert_eq!((event.event, event.event_sync, event.device_time), (99, Some(5), Some(Ns(30_500))));

    let ranges: Vec<_> = trace.ranges.iter().map(|range| (range.interval, trace.names.get(range.name))).collect();
    assert_eq!(ranges, [(Interval::new(Ns(400), Ns(12_100)), "step"), (Interval::new(Ns(460), Ns(460)), "step"),]);
    let overheads: Vec<_> = trace.overheads.iter().map(|overhead| (overhead.kind, overhead.correlation)).collect();
    assert_eq!(
        overheads,
        [(OverheadKind::Compiler, CorrelationId::NONE), (OverheadKind::LazyLoading, CorrelationId(1))]
    );

    let losses = trace.meta.losses;
    assert_eq!((losses.ops_without_time, losses.unfinished_ops, losses.unreadable_records), (1, 1, 1));
    assert_eq!((losses.dropped_records, losses.cut_bytes, losses.impossible_times), (0, 0, 0));
    assert_eq!(trace.meta.warnings, ["1 range has only one end in the recording and was left out"]);
}

#[test]
fn what_was_recorded_and_where_is_told() {
    let trace = convert(&spool(&header(4242), &[joined(&[call(0, 10, 211, 1)])]));
    let meta = &trace.meta;
    assert!(meta.recorded.calls && meta.recorded.ops && meta.recorded.syncs);
    assert!(!meta.recorded.events && !meta.recorded.overheads && !meta.recorded.ranges);
    assert_eq!(meta.capture_mode, CaptureMode::Node);
    assert_eq!(meta.source.format, "bubcap");
    assert_eq!(meta.source.command.as_deref(), Some("python3 train.py"));
    assert_eq!(meta.source.captured_on.as_deref(), Some("2025-11-24T16:00:00Z"));
    assert_eq!(meta.machine["CUPTI"], "13.0.1 (130001)");
    assert_eq!(meta.machine["driver"], "CUDA 13.0");
    assert!(!meta.machine.contains_key("processor"), "what is not known is not there");

    let graphs = Header { graphs: Graphs::Graph, ..header(1) };
    assert_eq!(convert(&spool(&graphs, &[])).meta.capture_mode, CaptureMode::Graph);
}

#[test]
fn the_workload_is_told_with_its_measured_part() {
    let run = WorkloadRun {
        workload: "scalar-readback".into(),
        variant: "sync".into(),
        iterations: 7,
        measured: Some(Interval::new(Ns(EPOCH as i64 + 100), Ns(EPOCH as i64 + 900))),
        ..WorkloadRun::default()
    };
    let note = |json: &str| {
        let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
        out.note("workload", json).unwrap();
        out.buffer(0, &joined(&[call(40, 1_000, 211, 1)])).unwrap();
        out.end(&End::default()).unwrap();
        convert(&out.into_inner())
    };
    let told = note(&serde_json::to_string(&run).unwrap()).meta.workload.unwrap();
    assert_eq!(told, WorkloadRun { measured: Some(Interval::new(Ns(60), Ns(860))), ..run });

    let broken = note("[1, 2").meta;
    assert!(broken.workload.is_none() && broken.warnings[0].contains("workload"));
}

#[test]
fn a_name_means_what_the_last_text_before_its_buffer_said() {
    let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
    for (seq, name) in ["first", "second"].into_iter().enumerate() {
        out.strings(seq as u64, &[Text { pointer: KERNEL_NAME, text: name.into() }]).unwrap();
        out.buffer(seq as u64, &joined(&[kernel(seq as u64 * 100, seq as u64 * 100 + 50, 7, 0)])).unwrap();
    }
    let trace = convert(&out.into_inner());
    assert_eq!([trace.op_name(OpIdx(0)), trace.op_name(OpIdx(1))], ["first", "second"]);
}

#[test]
fn correlation_ids_do_not_repeat_when_cuptis_wrap() {
    let records = [
        call(0, 10, 211, u32::MAX),
        kernel(20, 30, 7, u32::MAX),
        call(40, 50, 211, 1),
        kernel(60, 70, 7, 1),
        call(80, 90, 211, 2),
    ];
    let trace = convert(&spool(&header(1), &[joined(&records)]));
    assert_eq!(trace.calls.correlation, [u64::from(u32::MAX), (1 << 32) + 1, (1 << 32) + 2].map(CorrelationId));
    assert_eq!(trace.ops.launch(OpIdx(1)), Some(CallIdx(1)));
}

#[test]
fn losses_are_counted_and_told() {
    let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
    out.drops(&Drops { records: 3, ..Drops::default() }).unwrap();
    out.drops(&Drops { records: 5, discarded_buffers: 2, discarded_bytes: 100, unwritten_buffers: 1 }).unwrap();
    let mut damaged = joined(&[call(0, 10, 211, 1)]);
    damaged.extend(900u32.to_le_bytes());
    damaged.extend([0; 8]);
    out.buffer(0, &damaged).unwrap();
    let mut flushed = joined(&[call(20, 30, 211, 2)]);
    flushed.extend([0; 40]);
    out.buffer(1, &flushed).unwrap();
    let trace = convert(&out.into_inner());
    assert_eq!(trace.calls.len(), 2);
    assert_eq!(trace.meta.losses.dropped_records, 5 + 2 + 1);
    assert_eq!(trace.meta.losses.cut_bytes, 12 + 40);
    let warnings = trace.meta.warnings.join("\n");
    for part in ["2 buffers (100 bytes) were discarded", "1 buffers are missing", "kind 900", "not stopped in order"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}

#[test]
fn a_spool_cut_anywhere_gives_its_whole_buffers() {
    let buffers: Vec<Vec<u8>> = (0..5)
        .map(|at| joined(&[call(at * 100, at * 100 + 10, 211, 1), kernel(at * 100 + 20, at * 100 + 30, 7, 1)]))
        .collect();
    let whole = spool(&header(4242), &buffers);
    for length in 0..=whole.len() {
        let cut = &whole[..length];
        let (kept, damaged_at) = match Reader::new(cut) {
            Ok(mut reader) => {
                let chunks = reader.by_ref();
                let kept = chunks.filter(|chunk| matches!(chunk, Ok(cupti::spool::Chunk::Buffer { .. }))).count();
                match reader.ending() {
                    Some(Ending::Cut { offset, .. }) => (kept, Some(offset)),
                    _ => (kept, None),
                }
            }
            Err(_) => {
                assert!(matches!(trace_from_bytes(&[cut]), Err(ConvertError::Spool { .. })));
                continue;
            }
        };
        if let (0, Some(at)) = (kept, damaged_at) {
            let refused = trace_from_bytes(&[cut]);
            assert!(matches!(refused, Err(ConvertError::Cut { offset, .. }) if offset == at), "cut at {length}");
            continue;
        }
        let trace = convert(cut);
        assert_eq!(trace.meta.losses.damaged_at, damaged_at, "cut at {length}");
        assert_eq!((trace.ops.len(), trace.calls.len()), (kept, kept), "cut at {length}");
        assert_eq!(trace.meta.warnings.is_empty(), length == whole.len());
    }
}

#[test]
fn a_flipped_byte_anywhere_is_told_with_its_place() {
    let buffers: Vec<Vec<u8>> = (0..3)
        .map(|at| joined(&[call(at * 100, at * 100 + 10, 211, 1), kernel(at * 100 + 20, at * 100 + 30, 7, 1)]))
        .collect();
    let whole = spool(&header(4242), &buffers);
    let header_ends = usize::try_from(Reader::new(whole.as_slice()).unwrap().offset()).unwrap();
    let mut kept = [0; 4];
    for at in header_ends..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let told = match trace_from_bytes(&[&damaged]) {
            Ok(trace) => {
                kept[trace.ops.len()] += 1;
                let losses = trace.meta.losses;
                let place = losses.damaged_at.unwrap();
                assert!(losses.is_damaged() && losses.cut_bytes == whole.len() as u64 - place);
                assert!(trace.meta.warnings[0].contains(&format!("at byte {place}")), "{:?}", trace.meta.warnings);
                place
            }
            Err(ConvertError::Cut { offset, .. }) => offset,
            Err(ConvertError::Spool { source, .. }) => source.damaged_at().unwrap(),
            Err(error) => panic!("{error}"),
        };
        assert!(told <= at as u64, "the chunk of byte {at} starts before it, not at {told}");
    }
    assert!(kept[1] > 0 && kept[2] > 0, "whole chunks before the damage are kept: {kept:?}");
}

#[test]
fn a_spool_cannot_make_many_long_names_of_one() {
    let long = "n".repeat(60 << 10);
    let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
    out.strings(0, &[Text { pointer: DEVICE_NAME, text: long.into() }]).unwrap();
    let devices: Vec<Bytes> = (0..3000).map(|id| device(id, 0)).collect();
    out.buffer(0, &joined(&devices)).unwrap();
    let bytes = out.into_inner();
    let survey = Survey::of(Reader::new(bytes.as_slice()).unwrap()).unwrap();
    assert!((1..3000).contains(&survey.devices.len()));
    assert!(survey.devices.iter().all(|(_, name)| (1..300).contains(&name.len())));
}

#[test]
fn an_error_names_each_cause_once() {
    let whole = spool(&header(1), &[joined(&[call(0, 10, 211, 1)])]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.bubcap");
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let Err(error) = crate::open::open(&path) else { continue };
        let line = format!("{:#}", anyhow::Error::from(error));
        let mut parts: Vec<_> = line.split(": ").collect();
        parts.sort_unstable();
        assert!(parts.windows(2).all(|pair| pair[0] != pair[1]), "{line}");
        assert_eq!(line.matches("one.bubcap").count(), 1, "{line}");
    }
}

#[test]
fn processes_stand_side_by_side_and_share_devices_by_uuid() {
    // Each process calls its own device 0; the second sees the first's as 1.
    let first = [device(0, 0xaa), context(1, 0, 7), call(0, 10, 211, 1), kernel(20, 30, 7, 1)];
    let second = [
        device(0, 0xbb),
        device(1, 0xaa),
        context(1, 1, 7),
        context(2, 0, 7),
        call(0, 12, 211, 1),
        kernel(40, 50, 7, 1),
        kernel(40, 60, 7, 1).u32(44, 2),
    ];
    let spools = [spool(&header(10), &[joined(&first)]), spool(&header(11), &[joined(&second)])];
    let trace = trace_from_bytes(&[&spools[0], &spools[1]]).unwrap();
    let uuids: Vec<_> = trace.devices.iter().map(|device| (device.id, &device.uuid[..2])).collect();
    assert_eq!(uuids, [(0, "aa"), (1, "bb")]);
    let ops: Vec<_> = trace
        .ops
        .indices()
        .map(|op| (trace.op_device(op).0, trace.processes[trace.op_process(op).index()].pid))
        .collect();
    assert_eq!(ops, [(0, 10), (0, 11), (1, 11)]);
    for op in trace.ops.indices() {
        let call = trace.ops.launch(op).expect("every op has a launch");
        assert_eq!(trace.call_process(call), trace.op_process(op), "ids are those of a process");
    }
}

const SECOND: u64 = 1_000_000_000;

/// How a recording begins and ends, in seconds, and its kernels' seconds on device `uuid`.
struct Part {
    pid: u32,
    uuid: u8,
    kernels: &'static [u64],
    begins: u64,
    late: bool,
    /// Where the clocks were read last.
    until: u64,
    /// Whether it was switched off then.
    off: bool,
    /// Bytes of its end that are missing.
    cut: usize,
}

impl Part {
    /// Of a process that is recorded from its start to its end.
    fn whole(pid: u32, kernels: &'static [u64]) -> Self {
        Self { pid, uuid: 0xaa, kernels, begins: 0, late: false, until: 10, off: false, cut: 0 }
    }

    fn spool(&self) -> Vec<u8> {
        let started = (EPOCH + self.begins * SECOND) as i64;
        let machine = Machine { boot: "boot".into(), ..Machine::default() };
        let header = Header { start_realtime_ns: started, begins_late: self.late, machine, ..header(self.pid) };
        let mut out = Writer::new(Vec::new(), &header).unwrap();
        out.anchor(&anchor((self.begins * SECOND) as i64)).unwrap();
        let mut records = vec![device(0, self.uuid)];
        records.extend(self.kernels.iter().map(|&at| kernel(at * SECOND, at * SECOND + 50, 7, 0)));
        if !self.kernels.is_empty() {
            out.buffer(0, &joined(&records)).unwrap();
        }
        out.anchor(&anchor((self.until * SECOND) as i64)).unwrap();
        if self.off {
            let off_since_ns = (EPOCH + self.until * SECOND) as i64;
            out.status(&Status { off_since_ns, ..Status::default() }).unwrap();
        }
        out.end(&End::default()).unwrap();
        let mut spool = out.into_inner();
        spool.truncate(spool.len() - self.cut);
        spool
    }
}

/// The bytes of the last chunk.
const END: usize = 16 + 24;

/// Who is stated as recorded in part, with the seconds that are missing.
fn missing(parts: &[Part], faults: &[Fault]) -> Vec<(u32, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    let mut beside = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        paths.push(folder.path().join(at.to_string()));
        std::fs::write(&paths[at], part.spool()).unwrap();
        let fault = faults.iter().find(|fault| fault.pid == part.pid).cloned();
        beside.push(Beside { fault, ..Beside::default() });
    }
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let (trace, _) = trace_from_collected(&paths, &beside).unwrap();
    let mut found = Vec::new();
    for process in &trace.meta.unrecorded {
        assert!(process.partly && process.devices == [0] && process.name == "python3 train.py");
        let fault = faults.iter().find(|fault| Some(fault.pid) == process.pid);
        assert!(fault.is_none_or(|fault| process.reason.as_ref() == Some(&fault.message)));
        let seconds = |time: Ns| (time.0 as u64).div_ceil(SECOND);
        found
            .extend(process.times.iter().map(|times| (process.pid.unwrap(), seconds(times.start), seconds(times.end))));
    }
    // Each kept alone with what is known beside it says the same of itself, as alone it has the device for itself.
    for (path, beside) in paths.iter().zip(&beside) {
        let mut out = Vec::new();
        annotate(std::fs::read(path).unwrap().as_slice(), &mut out, beside).unwrap();
        if let Ok(alone) = trace_from_bytes(&[&out]) {
            assert_eq!(alone.meta.unrecorded, []);
            assert_eq!(alone.meta.losses.dropped_records, beside.fault.as_ref().map_or(0, |fault| fault.lost_records));
        }
    }
    found
}

#[test]
fn a_process_that_was_recorded_in_part_is_stated_where_another_used_its_device() {
    let other = || Part::whole(2, &[0, 9]);
    let off = Part { until: 4, off: true, ..Part::whole(1, &[1, 3]) };
    assert_eq!(missing(&[off, other()], &[]), [(1, 4, 10)]);
    let late = Part { begins: 2, late: true, ..Part::whole(1, &[3, 4]) };
    assert_eq!(missing(&[other(), late], &[]), [(1, 0, 2)]);
    let within = Part { begins: 2, late: true, until: 4, off: true, ..Part::whole(1, &[3]) };
    assert_eq!(missing(&[other(), within], &[]), [(1, 0, 2), (1, 4, 10)]);
    // Cut before its end and within a chunk.
    for cut in [END, END + 7] {
        let killed = Part { until: 4, cut, ..Part::whole(1, &[1, 3]) };
        let until = if cut == END { 4 } else { 0 };
        assert_eq!(missing(&[killed, other()], &[]), [(1, until, 10)]);
    }
    // Before it used a device it may still have used any if it was recorded in part, but not if it was killed.
    for (part, expected) in [
        (Part { until: 4, off: true, ..Part::whole(1, &[]) }, &[(1, 4, 10)][..]),
        (Part { until: 4, cut: END, ..Part::whole(1, &[]) }, &[]),
    ] {
        assert_eq!(missing(&[part, other()], &[]), expected);
    }
}

#[test]
fn a_part_that_is_not_missing_in_the_trace_is_not_stated() {
    let other = || Part::whole(2, &[0, 5]);
    let after = Part { until: 6, off: true, ..Part::whole(1, &[1, 5]) };
    assert_eq!(missing(&[after, other()], &[]), [], "it ends when the other's work is over");
    let later = Part { begins: 2, ..Part::whole(1, &[3]) };
    assert_eq!(missing(&[later, other()], &[]), [], "it started later and was recorded from its start");
    let elsewhere = Part { uuid: 0xbb, until: 2, off: true, ..Part::whole(1, &[1]) };
    assert_eq!(missing(&[elsewhere, other()], &[]), [], "it has another device");
    let alone = Part { begins: 1, late: true, until: 2, off: true, ..Part::whole(1, &[1]) };
    assert_eq!(missing(&[alone], &[]), [], "the window is the window");
    let alone = Part { until: 2, cut: END, ..Part::whole(1, &[1, 3]) };
    assert_eq!(missing(&[alone], &[]), []);
    // A program that became another one: the second recording begins where the first must have ended.
    let first = Part { until: 1, cut: END, ..Part::whole(1, &[0]) };
    let second = Part { begins: 2, ..Part::whole(1, &[3]) };
    assert_eq!(missing(&[first, second, other()], &[]), [(1, 1, 2)]);
}

#[test]
fn a_spool_that_could_not_be_written_to_its_end_says_why_and_counts_what_is_lost() {
    let fault = Fault {
        pid: 1,
        message: "the disk is full".into(),
        effect: Effect::EndsEarly,
        lost_buffers: 2,
        lost_records: 70,
        ..Fault::default()
    };
    let early = || Part { until: 4, cut: END, ..Part::whole(1, &[1, 3]) };
    assert_eq!(missing(&[early(), Part::whole(2, &[0, 9])], std::slice::from_ref(&fault)), [(1, 4, 10)]);
    let mut kept = Vec::new();
    let beside = Beside { fault: Some(fault), ..Beside::default() };
    annotate(early().spool().as_slice(), &mut kept, &beside).unwrap();
    let meta = convert(&kept).meta;
    assert_eq!((meta.losses.dropped_records, meta.unrecorded.len()), (70, 0));
    assert!(meta.warnings.iter().any(|warning| warning.contains("the disk is full")), "{:?}", meta.warnings);
}

#[test]
fn buffers_that_were_not_given_back_are_counted_with_an_end_and_without() {
    for (statuses, end, held) in
        [(&[2, 3][..], None, 3), (&[2, 0], None, 0), (&[2], Some(1), 1), (&[2], Some(0), 0), (&[], None, 0)]
    {
        let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
        out.buffer(0, &joined(&[kernel(0, 50, 7, 0)])).unwrap();
        for &held_buffers in statuses {
            out.status(&Status { held_buffers, ..Status::default() }).unwrap();
        }
        if let Some(outstanding) = end {
            out.end(&End { outstanding, ..End::default() }).unwrap();
        }
        let trace = convert(&out.into_inner());
        assert_eq!(trace.meta.losses.held_buffers, held);
        let quality = analyze(&trace, &Options::default()).quality;
        assert_eq!(quality.idle_reliable, held == 0, "{:?}", quality.reasons);
        assert_eq!(
            quality.reasons.iter().filter(|reason| reason.contains("not given back")).count(),
            usize::from(held > 0)
        );
    }
}

#[test]
fn what_is_known_beside_a_spool_is_stated_once_and_only_where_it_matters() {
    let at = |second: u64| (EPOCH + second * SECOND) as i64;
    let uuid = |byte: &str| vec![byte.repeat(16)];
    let named = |name: &str| Other { name: name.into(), ..Other::default() };
    let others = vec![
        named("anywhere"),
        Other { devices: uuid("aa"), lived: Some((at(0) - 7, at(2))), ..named("here") },
        Other { devices: uuid("cc"), ..named("on a device of no account") },
        Other { lived: Some((at(0) - 7, at(0))), ..named("before") },
        Other { pid: Some(2), has_spool: true, ..named("read too") },
        Other { pid: Some(3), has_spool: true, ..named("not read") },
    ];
    let beside = Beside { others, remarks: vec!["a remark".into()], fault: None };
    let spools = [Part::whole(1, &[0, 9]), Part::whole(2, &[1])].map(|part| {
        let mut beside = beside.clone();
        // None names itself.
        beside.others.retain(|other| other.pid != Some(part.pid));
        let mut out = Vec::new();
        annotate(part.spool().as_slice(), &mut out, &beside).unwrap();
        out
    });
    let meta = trace_from_bytes(&[&spools[0], &spools[1]]).unwrap().meta;
    let found: Vec<_> =
        meta.unrecorded.iter().map(|process| (&*process.name, &*process.devices, &*process.times)).collect();
    let until_two = [Interval::new(Ns(0), Ns(2 * SECOND as i64))];
    assert_eq!(found, [("anywhere", &[][..], &[][..]), ("here", &[0], &until_two), ("not read", &[], &[])]);
    assert_eq!(meta.warnings, ["a remark"]);
    assert_eq!(convert(&spools[0]).meta.unrecorded.len(), 4, "one more of which the recording is missing");
}

#[test]
fn of_spools_of_one_number_all_have_to_be_read() {
    let spool = |name: &str| {
        let other = Other { pid: Some(1), has_spool: true, name: name.into(), ..Other::default() };
        let mut out = Vec::new();
        let beside = Beside { others: vec![other], ..Beside::default() };
        annotate(Part::whole(1, &[0, 9]).spool().as_slice(), &mut out, &beside).unwrap();
        out
    };
    let [first, second] = ["second", "first"].map(spool);
    assert_eq!(convert(&first).meta.unrecorded.len(), 1);
    assert_eq!(trace_from_bytes(&[&first, &second]).unwrap().meta.unrecorded, []);
}

/// A spool of a process that began `after` nanoseconds, when the clock had been set by `set`, with one kernel at once.
fn begun(pid: u32, boot: &str, after: u64, set: i64) -> Vec<u8> {
    let machine = Machine { boot: boot.into(), ..Machine::default() };
    let started = (EPOCH + after).strict_add_signed(set);
    let header = Header { start_realtime_ns: started as i64, machine, ..header(pid) };
    let mut out = Writer::new(Vec::new(), &header).unwrap();
    let anchor =
        Anchor { realtime_ns: started as i64, monotonic_ns: 77 + after as i64, cupti_ns: started, uncertainty_ns: 60 };
    out.anchor(&anchor).unwrap();
    let start = started - EPOCH;
    out.buffer(0, &joined(&[device(0, 0xaa), kernel(start, start + 50, 7, 0)])).unwrap();
    out.end(&End::default()).unwrap();
    out.into_inner()
}

#[test]
fn processes_are_put_on_one_clock_though_it_was_set_between_them() {
    for set in [0, 3_600_000_000_000, 40_000_000_000, -500_000_000] {
        let spools = [begun(1, "boot", 0, 0), begun(2, "boot", SECOND, set), begun(3, "boot", 2 * SECOND, set)];
        let spools: Vec<&[u8]> = spools.iter().map(Vec::as_slice).collect();
        let trace = trace_from_bytes(&spools).unwrap();
        let mut starts: Vec<i64> = trace.ops.start.iter().map(|start| start.0).collect();
        starts.sort_unstable();
        assert_eq!(starts, [0, SECOND as i64, 2 * SECOND as i64], "set by {set}");
        let told = trace.meta.warnings.iter().filter(|warning| warning.contains("the clock was set by")).count();
        assert_eq!(told, if set == 0 { 0 } else { 2 }, "{:?}", trace.meta.warnings);
    }
    // Nothing is known about the clocks of two machines but that both show the time.
    for boots in [["one", "other"], ["", ""]] {
        let spools = [begun(1, boots[0], 0, 0), begun(2, boots[1], SECOND, 40)];
        let trace = trace_from_bytes(&[&spools[0], &spools[1]]).unwrap();
        assert_eq!(trace.meta.warnings, [""; 0]);
    }
}

#[test]
fn of_several_processes_each_warning_names_its_own() {
    let good = spool(&header(10), &[joined(&[kernel(0, 50, 7, 0)])]);
    let bad = spool(&header(11), &[joined(&[kernel(100, 150, 7, 0)]), joined(&[kernel(200, 250, 7, 0)])]);
    let cut = &bad[..bad.len() - 40];
    let trace = trace_from_bytes(&[&good, cut]).unwrap();
    assert!(!trace.meta.warnings.is_empty());
    assert!(trace.meta.warnings.iter().all(|warning| warning.starts_with("process 11: ")), "{:?}", trace.meta.warnings);
    let unharmed = trace_from_bytes(&[&good, &spool(&header(12), &[])]).unwrap();
    assert_eq!(unharmed.meta.warnings, [""; 0], "a process that did nothing on the device does no harm");
    assert_eq!(unharmed.ops.len(), 1);
}

#[test]
fn processes_of_one_id_stay_apart() {
    let one = spool(&header(1), &[joined(&[call(0, 10, 211, 1), kernel(20, 30, 7, 1)])]);
    let trace = trace_from_bytes(&[&one, &one]).unwrap();
    assert_eq!((trace.processes.len(), trace.ops.len()), (2, 2));
    assert_ne!(trace.ops.launch(OpIdx(0)), trace.ops.launch(OpIdx(1)));
    assert!(trace.processes.iter().any(|process| process.name.contains("process 1 of another")));
}

/// A spool of process 7 that is known to have gone on from one second to another.
fn lasted(boot: &str, seconds: std::ops::Range<u64>, birth: Option<(u64, u64)>) -> Vec<u8> {
    let machine = Machine { boot: boot.into(), ..Machine::default() };
    let (from, to) = (seconds.start * SECOND, seconds.end * SECOND);
    let header = Header { start_realtime_ns: (EPOCH + from) as i64, machine, ..header(7) };
    let mut out = Writer::new(Vec::new(), &header).unwrap();
    let process = birth.map(|(pid_namespace, start_ticks)| Birth { pid_namespace, start_ticks });
    out.note(RECORDER_NOTE, &serde_json::json!({ "config": {}, "process": process }).to_string()).unwrap();
    out.anchor(&anchor(from as i64)).unwrap();
    out.buffer(0, &joined(&[device(0, 0xaa), kernel(from, from + 50, 7, 0)])).unwrap();
    out.anchor(&anchor(to as i64)).unwrap();
    out.into_inner()
}

#[test]
fn what_processes_of_one_number_are_to_each_other_is_told() {
    type Birth = Option<(u64, u64)>;
    let names = |spools: [(&str, std::ops::Range<u64>, Birth); 2]| {
        let [first, second] = spools.map(|(boot, seconds, birth)| lasted(boot, seconds, birth));
        let told = |spools: &[&[u8]]| {
            let trace = trace_from_bytes(spools).unwrap();
            let starts = trace.processes.iter().enumerate().map(|(at, process)| {
                let own = trace.ops.indices().find(|&op| trace.op_process(op).index() == at).unwrap();
                (
                    process.pid,
                    trace.ops.start[own.index()],
                    process.name.replace("python3 train.py", "").trim().to_owned(),
                )
            });
            starts.collect::<Vec<_>>()
        };
        let found = told(&[&first, &second]);
        assert_eq!(told(&[&second, &first]), found, "in the order of time, however they come");
        assert!(found.is_sorted_by_key(|(_, start, _)| *start), "{found:?}");
        assert_eq!((found[0].0, &*found[0].2), (7, ""));
        found[1].2.clone()
    };
    const EXEC: &str = "(process 7 after exec)";
    const LATER: &str = "(a later process 7)";
    const ELSEWHERE: &str = "(process 7 of another machine or container)";
    let born = Some((1, 500));
    for (first, second, expected) in [
        // Where the recorder did not tell which process it is, time tells.
        (("a", 0..3, None), ("a", 3..5, None), EXEC),
        (("a", 0..3, None), ("a", 4..5, born), EXEC),
        (("a", 0..3, None), ("a", 2..5, None), ELSEWHERE),
        (("a", 0..3, born), ("a", 3..5, born), EXEC),
        (("a", 0..3, born), ("a", 3..5, Some((1, 900))), LATER),
        (("a", 0..3, born), ("a", 3..5, Some((2, 500))), ELSEWHERE),
        (("a", 0..3, born), ("a", 1..5, Some((2, 501))), ELSEWHERE),
        (("a", 0..3, born), ("b", 4..5, born), ELSEWHERE),
        (("", 0..3, None), ("", 4..5, None), ELSEWHERE),
    ] {
        assert_eq!(names([first.clone(), second.clone()]), expected, "{first:?} {second:?}");
    }
}

#[test]
fn one_process_may_become_many_programs_and_one_number_go_to_many_processes() {
    for (ages, word) in [(0, "(process 7 after exec)"), (1, "(a later process 7)")] {
        let spools: Vec<Vec<u8>> = (0..4).map(|at| lasted("a", at..at + 1, Some((1, 500 + ages * at)))).collect();
        let spools: Vec<&[u8]> = spools.iter().rev().map(Vec::as_slice).collect();
        let trace = trace_from_bytes(&spools).unwrap();
        let told: Vec<bool> = trace.processes.iter().map(|process| process.name.ends_with(word)).collect();
        assert_eq!(told, [false, true, true, true], "{word}");
        assert_eq!(trace.meta.unrecorded, [], "each ends where the next begins: {word}");
    }
}

#[test]
fn paths_are_read_and_named_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bubcap");
    std::fs::write(&path, spool(&header(1), &[joined(&[call(0, 10, 211, 1)])])).unwrap();
    assert_eq!(trace_from_spools(&[&path]).unwrap().calls.len(), 1);
    let none = trace_from_spools(&[&folder.path().join("none.bubcap")]).unwrap_err();
    assert!(none.to_string().contains("none.bubcap"), "{none}");
    std::fs::write(&path, "something else").unwrap();
    assert!(trace_from_spools(&[&path]).unwrap_err().to_string().contains("a.bubcap"));
    assert!(matches!(trace_from_spools(&[]), Err(ConvertError::NoSpool)));
}
