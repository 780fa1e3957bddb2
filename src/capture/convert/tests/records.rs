//! What becomes of the records of one process.

use cupti::spool::{End, Graphs, Header, Text, Writer};
use cupti_sys::bindings as c;

use super::{
    Bytes, EPOCH, KERNEL_NAME, RANGE_NAME, call, context, convert, device, header, joined, kernel, marker, spool, sync,
};
use crate::trace::{
    CallIdx, CaptureMode, CorrelationId, Detail, GraphId, Interval, MemoryKind, Ns, OpIdx, OpKind, OverheadKind,
    StreamKind, SyncKind, WorkloadRun,
};

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
