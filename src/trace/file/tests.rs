use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::builder::{CallInput, EventInput, OpInput, SyncInput, TraceBuilder};
use super::super::ids::{ContextIdx, CorrelationId, GraphId, ProcessIdx, StreamIdx};
use super::super::meta::{CaptureMode, WorkloadRun};
use super::super::model::{Detail, Device, MemoryKind, OverheadKind, RangeKind, StreamKind, SyncKind, Trace};
use super::super::time::{Interval, Ns};
use super::read::guard::{guarded, is_guarded};
use super::read::read_checked;
use super::schema::{GROUP_ROWS, Spelled, most_rows, padding};
use super::{TraceFileError, read, read_path, write, write_path};
use crate::progress::Unwatched;

fn written(trace: &Trace) -> Vec<u8> {
    let mut file = Vec::new();
    write(trace, &mut file).unwrap();
    file
}

/// One record of any kind; the numbers are taken modulo what exists.
#[derive(Clone, Debug)]
struct Record {
    table: u8,
    start: i64,
    length: i64,
    lane: u32,
    variant: u8,
    name: u8,
    correlation: u64,
    number: u64,
    small: u32,
}

fn record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![0..2_000_000i64, -5..5i64, any::<i32>().prop_map(i64::from)];
    let number = prop_oneof![Just(0), 0..3u64, any::<u64>()];
    let small = prop_oneof![Just(0), 0..3u32, any::<u32>()];
    (0..7u8, time, -1..3_000i64, 0..24u32, any::<u8>(), 0..9u8, number.clone(), number, small).prop_map(
        |(table, start, length, lane, variant, name, correlation, number, small)| Record {
            table,
            start,
            length,
            lane,
            variant,
            name,
            correlation,
            number,
            small,
        },
    )
}

fn pick<E: Spelled>(variant: u8) -> E {
    E::SPELLINGS[variant as usize % E::SPELLINGS.len()].0
}

fn detail(variant: u8, number: u64) -> Detail {
    let size = number as u32;
    match variant % 4 {
        0 => Detail::None,
        1 => Detail::Kernel {
            grid: [size, 1, 1],
            block: [128, 1, 1],
            cluster: [0; 3],
            registers: 32,
            static_shared: 0,
            dynamic_shared: size,
        },
        2 => {
            Detail::Copy { from: MemoryKind::Pageable, to: MemoryKind::Device, asynchronous: number.is_multiple_of(2) }
        }
        _ => Detail::Memset { to: MemoryKind::Managed, asynchronous: true },
    }
}

fn home(builder: &mut TraceBuilder, lane: u32) -> (ProcessIdx, ContextIdx, StreamIdx) {
    let process = builder.process(100 + lane % 2);
    let device = builder.device(7 - lane % 3);
    let context = builder.context(process, lane % 3, device);
    (process, context, builder.stream(context, lane / 3))
}

fn push(builder: &mut TraceBuilder, record: &Record) {
    let &Record { start, length, lane, variant, number, small, .. } = record;
    let end = start + length;
    let correlation = CorrelationId(record.correlation);
    let name = builder
        .name(["", "a", "gemm", "cudaLaunchKernel", "cuCtxSynchronize", "ü", "x\"y", "n", "b"][record.name as usize]);
    let (process, context, stream) = home(builder, lane);
    let thread = builder.thread(process, u64::from(lane / 2));
    match record.table {
        0 => builder.push_op(OpInput {
            start,
            end,
            stream,
            kind: pick(variant),
            name,
            correlation,
            bytes: number,
            graph: GraphId(small),
            graph_node: number,
            detail: detail(variant, number),
        }),
        1 => builder.push_call(CallInput { start, end, thread, name, correlation, result: small as i32 }),
        2 => builder.push_sync(SyncInput {
            start,
            end,
            kind: pick::<SyncKind>(variant),
            process,
            context: (variant % 3 > 0).then_some(context),
            stream: (variant % 5 > 1).then_some(stream),
            event: (variant % 2 > 0).then_some(small),
            event_sync: (variant % 7 > 3).then_some(number),
            awaited_record: CorrelationId(number),
            correlation,
        }),
        3 => builder.push_event(EventInput {
            process,
            context: (variant % 3 > 0).then_some(context),
            stream: (variant % 5 > 1).then_some(stream),
            event: small,
            event_sync: (variant % 7 > 3).then_some(number),
            device_time: start,
            correlation,
        }),
        4 => builder.push_host_function(start, end, stream, correlation, GraphId(small)),
        5 => builder.push_range(start, end, thread, name, pick::<RangeKind>(variant)),
        _ => {
            let kind = pick::<OverheadKind>(variant);
            builder.push_overhead(start, end, kind, process, (variant % 3 > 0).then_some(thread), correlation);
        }
    }
}

fn trace() -> impl Strategy<Value = Trace> {
    (vec(record(), 0..120), any::<i64>(), 0..9u8).prop_map(|(records, measured, variant)| {
        let mut builder = TraceBuilder::new();
        for record in &records {
            push(&mut builder, record);
        }
        builder.meta.warnings.push(format!("warning \"{variant}\""));
        builder.meta.capture_mode = [CaptureMode::Node, CaptureMode::Graph, CaptureMode::Unknown][variant as usize % 3];
        builder.meta.workload = (variant > 3).then(|| WorkloadRun {
            workload: "scalar-readback".into(),
            measured: Some(Interval::new(Ns(measured), Ns(measured))),
            ..WorkloadRun::default()
        });
        let process = builder.process(100);
        builder.set_process_name(process, "python");
        let (_, _, stream) = home(&mut builder, 0);
        builder.set_stream_kind(stream, [StreamKind::Null, StreamKind::NonBlocking][variant as usize % 2]);
        let device = builder.device(7);
        builder.describe_device(
            device,
            Device { name: "NVIDIA H200".into(), compute_capability: (9, 0), ..Device::default() },
        );
        builder.finish().unwrap()
    })
}

/// A small trace with every kind of row.
fn sample() -> Trace {
    let mut builder = TraceBuilder::new();
    for at in 0..700u32 {
        push(
            &mut builder,
            &Record {
                table: (at % 7) as u8,
                start: 1_000_000 + i64::from(at) * 977,
                length: i64::from(at % 13) * 31,
                lane: at / 7 % 24,
                variant: at as u8,
                name: (at % 9) as u8,
                correlation: u64::from(at / 7),
                number: u64::from(at % 5),
                small: at % 3,
            },
        );
    }
    builder.finish().unwrap()
}

/// Reads what may be damaged, as [`read`] does, but past the checksum, which would hide the checks behind it.
fn read_past_checksum(file: Vec<u8>) -> Result<Trace, TraceFileError> {
    guarded(|| read_checked(Bytes::from(file), false, &Unwatched))
}

/// What [`Trace`] promises, as far as a consumer's safety hangs on it.
fn assert_sound(trace: &Trace) {
    let ops = &trace.ops;
    for op in ops.indices() {
        let interval = ops.interval(op);
        assert!(interval.start >= Ns::ZERO && interval.start <= interval.end && interval.end <= trace.end);
        assert!(trace.streams[ops.stream[op.index()].index()].ops.contains(&op.0));
        let _ = (trace.op_name(op), trace.op_detail(op), trace.op_device(op), trace.op_process(op));
        if let Some(call) = ops.launch(op) {
            assert!(trace.call_ops(call).contains(&op));
        }
    }
    for call in trace.calls.indices() {
        let interval = trace.calls.interval(call);
        assert!(interval.start >= Ns::ZERO && interval.start <= interval.end && interval.end <= trace.end);
        assert!(trace.threads[trace.calls.thread[call.index()].index()].calls.contains(&call.0));
        let _ = (trace.call_name(call), trace.call_process(call));
    }
    for (at, range) in trace.ranges.iter().enumerate() {
        assert!(trace.threads[range.thread.index()].ranges.contains(&(at as u32)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_trace_read_back_is_equal(trace in trace()) {
        let back = read(written(&trace)).unwrap();
        assert_sound(&back);
        prop_assert_eq!(back, trace);
    }

    #[test]
    fn a_changed_byte_is_noticed(at in any::<prop::sample::Index>(), by in 1..=255u8) {
        let mut file = written(&sample());
        let data = file.len() - footer_length(&file);
        let at = at.index(data);
        file[at] ^= by;
        prop_assert!(read(file).is_err());
    }

    #[test]
    fn no_damage_gets_through(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut file = written(&sample());
        for (at, to) in changes {
            let at = at.index(file.len());
            file[at] = to;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        if let Ok(trace) = read_past_checksum(file) {
            assert_sound(&trace);
        }
    }

    #[test]
    fn padding_is_what_a_reader_asks_for(rows in 0..u64::from(u32::MAX), bytes in 0..100_000_000u64) {
        let padding = padding(rows, bytes);
        prop_assert!(rows <= most_rows(bytes + padding));
        prop_assert!(padding == 0 || rows > most_rows(bytes + padding - 1));
    }

    #[test]
    fn no_byte_string_gets_through(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(read(bytes).is_err());
    }
}

/// Bytes of the footer, its length and the magic number at the end.
fn footer_length(file: &[u8]) -> usize {
    let length = &file[file.len() - 8..file.len() - 4];
    u32::from_le_bytes(length.try_into().unwrap()) as usize + 8
}

#[test]
fn the_sample_has_every_kind_of_row_and_survives() {
    let trace = sample();
    assert!(!trace.ops.is_empty() && !trace.calls.is_empty() && !trace.syncs.is_empty() && !trace.events.is_empty());
    assert!(!trace.host_functions.is_empty() && !trace.ranges.is_empty() && !trace.overheads.is_empty());
    assert!(trace.ops.len() > GROUP_ROWS, "a table of several row groups");
    assert!(trace.ops.indices().any(|op| trace.ops.launch(op).is_some()));
    assert_eq!(read(written(&trace)).unwrap(), trace);
}

#[test]
fn an_empty_trace_survives() {
    let trace = TraceBuilder::new().finish().unwrap();
    assert_eq!(read(written(&trace)).unwrap(), trace);
}

#[test]
fn a_path_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.bubbles.parquet");
    let trace = sample();
    write_path(&trace, &path).unwrap();
    assert_eq!(read_path(&path).unwrap(), trace);

    let mut broken = trace.clone();
    broken.ops.stream[0] = StreamIdx(1_000_000);
    assert!(matches!(write_path(&broken, &path), Err(TraceFileError::Inconsistent(_))));
    assert_eq!(read_path(&path).unwrap(), trace, "the file that stood there is untouched");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");

    assert!(matches!(write_path(&trace, &folder.path().join("no/such/folder")), Err(TraceFileError::Io(_))));
    assert!(matches!(read_path(&folder.path().join("none")), Err(TraceFileError::Io(_))));
}

/// The file with one text in its footer replaced by another of the same length.
fn patched(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut file = written(&sample());
    let footer = file.len() - footer_length(&file);
    let mut at = footer;
    let mut found = 0;
    while at + from.len() <= file.len() {
        if &file[at..at + from.len()] == from.as_bytes() {
            file[at..at + from.len()].copy_from_slice(to.as_bytes());
            found += 1;
        }
        at += 1;
    }
    assert!(found > 0, "{from} is in the footer");
    file
}

#[test]
fn other_files_are_told_apart() {
    assert!(matches!(read(Vec::new()), Err(TraceFileError::Parquet(_))));
    assert!(matches!(read(b"PAR1 but nothing else PAR1".to_vec()), Err(TraceFileError::Parquet(_))));
    let newer = read(patched("bubblescope.trace/1", "bubblescope.trace/9"));
    assert!(matches!(newer, Err(TraceFileError::NewerSchema { ref found, .. }) if found == "bubblescope.trace/9"));
    assert!(matches!(read(patched("bubblescope.schema", "bubblescope.scheme")), Err(TraceFileError::NotATrace(_))));
    assert!(matches!(read(patched("correlation", "correlatiom")), Err(TraceFileError::NotATrace(_))));
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    for (from, to) in [
        (r#""ops":100,"calls":100"#, r#""ops":101,"calls":199"#),
        (r#""ops":100,"calls":100"#, r#""ops":100,"calls":999"#),
        (r#"{"pid":100,"#, r#"{"pid":101,"#),
    ] {
        let result = read(patched(from, to));
        assert!(matches!(result, Err(TraceFileError::Damaged(_))), "{from} → {to}: {:?}", result.err());
    }
    assert!(matches!(
        read(patched("bubblescope.streams", "bubblescope.streamz")),
        Err(TraceFileError::Metadata { key: "bubblescope.streams", .. })
    ));
}

#[test]
fn a_full_disk_is_told_once() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let trace = sample();
    let length = written(&trace).len();
    for room in (0..length).step_by(97) {
        let error = write(&trace, Full(room)).unwrap_err();
        assert!(matches!(error, TraceFileError::Io(_)), "{error:?}");
        let line = format!("{:#}", anyhow::Error::from(error));
        assert_eq!(line, std::io::Error::from(std::io::ErrorKind::StorageFull).to_string());
    }
}

#[test]
fn a_panic_of_the_decoder_is_an_error_and_says_nothing() {
    assert!(!is_guarded());
    let result = guarded::<()>(|| {
        assert!(is_guarded());
        assert!(guarded::<()>(|| panic!("within")).is_err() && is_guarded());
        panic!("a page cannot be like that")
    });
    assert!(matches!(result, Err(TraceFileError::Damaged(text)) if text.contains("cannot be like that")));
    assert!(!is_guarded(), "panics outside are told");
}
