//! SQLite exports of Nsight Systems.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bubblescope::analysis::{Options, analyze, full};
use bubblescope::open::{OpenError, open};
use bubblescope::trace::{CaptureMode, Detail, MemoryKind, Ns, OpIdx, OpKind, RangeKind, Stream, SyncKind, Trace};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::corpus;

/// The tables that most tests need, as schema 3.24 has them but for the columns that nothing reads.
const SCHEMA: &str = "
    CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
    INSERT INTO META_DATA_EXPORT VALUES
        ('EXPORT_PRODUCT_VERSION', '2025.5.2.266'), ('EXPORT_SCHEMA_VERSION', '3.24.0'),
        ('EXPORT_HOST', 'secret-host'), ('EXPORT_PARAM_INPUT_PATH', '/secret/path');
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
        correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
        streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
        gridX INTEGER, blockX INTEGER, graphNodeId INTEGER, graphId INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
        streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER,
        dstKind INTEGER, migrationCause INTEGER, graphNodeId INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
        streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER,
        eventSyncId INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
        streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);
    CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
        textId INTEGER);
    CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, uuid TEXT, smCount INTEGER, computeMajor INTEGER,
        computeMinor INTEGER);
    CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);
    CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT);
    INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'void step<float>(float*)'), (3, 'step'),
        (4, 'cudaMemcpyAsync_v3020'), (5, 'epoch');
";

/// The global id of a process, and of its thread with this id.
fn global(pid: i64, tid: i64) -> i64 {
    (7 << 48) | (pid << 24) | tid
}

/// An export of these tables and rows.
fn export(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with ? and #.sqlite");
    let sql = format!("PRAGMA synchronous = OFF; BEGIN; {sql} ; COMMIT;");
    Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
    (folder, path)
}

/// What the usual tables with these rows become.
fn imported(rows: &str) -> Trace {
    let (_folder, path) = export(&format!("{SCHEMA}{rows}"));
    open(&path).unwrap()
}

fn refused(path: &Path) -> String {
    let error = open(path).unwrap_err();
    format!("{:#}", anyhow::Error::from(error))
}

/// A call and its kernel for each of `ids`, 100 us apart, in process `pid` on device 0.
fn launches(pid: i64, ids: std::ops::Range<i64>) -> String {
    let (process, thread) = (global(pid, 0), global(pid, pid + 1));
    ids.map(|id| {
        let at = id * 100_000;
        format!(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({at}, {}, 0, {thread}, {id}, 1, 0, NULL);
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
                 ({}, {}, 0, 1, 7, {id}, {process}, 2, 3, 64, 256, NULL, 0);",
            at + 5_000,
            at + 10_000,
            at + 60_000
        )
    })
    .collect()
}

#[test]
fn calls_and_kernels_are_linked_and_described() {
    let gpu =
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H200', 'B15C2A57-42ed-1d24-2c84-067081698645', 132, 9, 0),
                   (1, 'another', '', 1, 1, 1);
               INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1785620044423518993, '2026-08-01T21:34:04');";
    let trace = imported(&format!("{}{gpu}", launches(42, 1..4)));
    assert_eq!((trace.ops.len(), trace.calls.len(), trace.processes.len()), (3, 3, 1));
    assert_eq!((trace.processes[0].pid, trace.threads[0].tid), (42, 43));
    for op in trace.ops.indices() {
        let launch = trace.ops.launch(op).unwrap();
        assert_eq!(trace.ops.start[op.index()] - trace.calls.start[launch.index()], Ns(10_000));
        assert_eq!(trace.call_name(launch), "cudaLaunchKernel");
        assert_eq!(trace.op_name(op), "void step<float>(float*)");
    }
    let Detail::Kernel { grid, block, .. } = trace.op_detail(OpIdx(0)) else { panic!("a kernel has its shape") };
    assert_eq!((grid[0], block[0]), (64, 256));
    let [device] = trace.devices.as_slice() else { panic!("{:?}", trace.devices) };
    assert_eq!((device.name.as_str(), device.multiprocessors, device.compute_capability), ("NVIDIA H200", 132, (9, 0)));
    assert_eq!(device.uuid, "b15c2a5742ed1d242c84067081698645");
    let meta = &trace.meta;
    assert_eq!(meta.source.format, "nsys");
    assert_eq!(meta.source.captured_on.as_deref(), Some("2026-08-01T21:34:04Z"));
    assert_eq!(meta.epoch_ns, 1_785_620_044_423_518_993 + 100_000);
    assert_eq!(meta.machine["Nsight Systems"], "2025.5.2.266");
    assert!(meta.recorded.calls && meta.recorded.ops && meta.recorded.syncs && !meta.recorded.events);
    assert_eq!(meta.losses.unreadable_records, 0);
    assert_eq!(meta.capture_mode, CaptureMode::Node, "without graph launches no node is missing");
    let device = &analyze(&trace, &Options::default()).devices[0];
    assert_eq!((device.partition.span(), device.partition.idle), (Ns(250_000), Ns(100_000)));
}

#[test]
fn processes_with_the_same_correlation_ids_keep_apart() {
    let devices = "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 42), (3, 0, 77)";
    let trace = imported(&format!("{}{}{devices}", launches(42, 1..4), launches(77, 1..4)));
    assert_eq!(trace.devices.iter().map(|device| device.id).collect::<Vec<_>>(), [0, 3]);
    for op in trace.ops.indices() {
        let launch = trace.ops.launch(op).unwrap();
        assert_eq!(trace.call_process(launch), trace.op_process(op));
        let pid = trace.processes[trace.op_process(op).index()].pid;
        assert_eq!(trace.devices[trace.op_device(op).index()].id, if pid == 42 { 0 } else { 3 });
    }
}

#[test]
fn what_a_version_lacks_is_absent_and_nothing_else_changes() {
    // No contexts, no processes, no event classes, two devices; an old name of the table of facts.
    let (_folder, path) = export(
        "CREATE TABLE StringIds (id INTEGER, value TEXT);
         CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
             shortName INT);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, correlationId INT, globalTid INT, nameId INT);
         INSERT INTO StringIds VALUES (9, 'gemm'), (7, 'cudaLaunchKernel');
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1000, 0, 7, 1, 9), (500, 2500, 1, 7, 2, 9);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (-3000, -500, 1, 1, 7), (-400, -100, 2, 1, 7);",
    );
    let trace = open(&path).unwrap();
    assert_eq!((trace.ops.len(), trace.devices.len(), trace.processes.len()), (2, 2, 1));
    assert!(trace.ops.indices().all(|op| trace.ops.launch(op).is_some() && trace.op_name(op) == "gemm"));
    assert_eq!((trace.ops.start[0], trace.end), (Ns(3_000), Ns(5_500)));
    assert!(!trace.meta.recorded.syncs);
}

#[test]
fn a_call_recorded_with_its_stack_too_counts_once() {
    let thread = global(42, 43);
    let rows = format!(
        "{}INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
             (99000, 106000, 67, {thread}, 1, 1, 0, 5), (900000, 901000, 67, {thread}, 900, 1, 0, 5),
             (100500, 104000, 1, {thread}, 1, 1, 0, NULL);",
        launches(42, 1..2)
    );
    let trace = imported(&rows);
    // The launch, the driver's call inside it, and the one that was only recorded with its stack.
    assert_eq!(trace.calls.len(), 3);
    let launch = trace.ops.launch(OpIdx(0)).unwrap();
    assert_eq!(trace.calls.interval(launch).len(), Ns(5_000), "the outermost call is the launch");
}

#[test]
fn a_graph_launch_recorded_whole_is_busy_and_never_counts_twice() {
    let (process, thread) = (global(42, 0), global(42, 43));
    let rows = format!(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 5000, 0, {thread}, 1, 1, 0, NULL),
             (6000, 9000, 0, {thread}, 2, 1, 0, NULL);
         INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10000, 50000, 0, 1, 13, 1, {process}, 4, 5),
             (60000, 90000, 0, 1, 13, 2, {process}, 4, 5);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
             (60000, 70000, 0, 1, 13, 2, {process}, 2, 3, 1, 1, 17179869185, NULL),
             (80000, 90000, 0, 1, 13, 2, {process}, 2, 3, 1, 1, 17179869186, NULL);"
    );
    let trace = imported(&rows);
    assert_eq!(trace.ops.kind, [OpKind::Graph, OpKind::Kernel, OpKind::Kernel]);
    assert!(trace.ops.graph.iter().all(|graph| graph.0 == 4), "{:?}", trace.ops.graph);
    assert_eq!(trace.call_ops(trace.ops.launch(OpIdx(1)).unwrap()).len(), 2);
    assert_eq!(trace.meta.capture_mode, CaptureMode::Unknown, "some of each");
    assert!(trace.meta.warnings.iter().any(|warning| warning.starts_with("1 graph launch left out")));
    assert_eq!(analyze(&trace, &Options::default()).devices[0].partition.idle, Ns(20_000));
}

#[test]
fn migrations_of_unified_memory_belong_to_no_launch_and_no_stream() {
    let process = global(42, 0);
    let rows = format!(
        "{}INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
             (120000, 130000, 0, 1, 0, 1, {process}, 65536, 11, NULL, NULL, 2, NULL),
             (125000, 135000, 0, 1, 0, 1, {process}, 65536, 12, NULL, NULL, 2, NULL);",
        launches(42, 1..2)
    );
    let trace = imported(&rows);
    let lanes: Vec<u32> = trace.streams.iter().map(|stream| stream.id).collect();
    assert_eq!(lanes, [7, Stream::MIGRATIONS]);
    for op in trace.ops.indices().filter(|op| trace.ops.kind[op.index()] == OpKind::Copy) {
        assert_eq!(trace.ops.launch(op), None);
        assert!(trace.op_name(op).starts_with("Unified memory"), "{}", trace.op_name(op));
    }
    assert_eq!(trace.call_ops(trace.ops.launch(OpIdx(0)).unwrap()).len(), 1);
}

#[test]
fn copies_say_what_they_moved_between() {
    let (process, thread) = (global(42, 0), global(42, 43));
    let rows = format!(
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 5, 0, {thread}, 1, 4, 0, NULL);
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
             (10, 20, 0, 1, 7, 1, {process}, 4096, 1, 0, 2, NULL, NULL),
             (30, 40, 0, 1, 7, 2, {process}, 8, 2, 2, 1, NULL, NULL);"
    );
    let trace = imported(&rows);
    assert_eq!(trace.op_name(OpIdx(0)), "Memcpy HtoD (Pageable -> Device)");
    assert_eq!(trace.op_name(OpIdx(1)), "Memcpy DtoH (Device -> Pinned)");
    let sides = |op| match trace.op_detail(OpIdx(op)) {
        Detail::Copy { from, to, asynchronous } => (from, to, asynchronous),
        other => panic!("{other:?}"),
    };
    assert_eq!(sides(0), (MemoryKind::Pageable, MemoryKind::Device, true));
    assert_eq!(sides(1), (MemoryKind::Device, MemoryKind::Pinned, false));
    assert_eq!(trace.ops.bytes, [4096, 8]);
}

#[test]
fn synchronisations_are_told_by_what_they_name() {
    let (process, none) = (global(42, 0), u32::MAX);
    let rows = format!(
        "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES
             (1, 2, 0, 1, 13, 1, {process}, 2, {none}, {none}), (3, 4, 0, 1, 13, 2, {process}, 3, {none}, {none}),
             (5, 6, 0, 1, 13, 3, {process}, 2, 7, 70), (7, 8, 0, 1, {none}, 4, {process}, 1, 7, 70),
             (9, 10, 0, 1, {none}, 5, {process}, 4, {none}, {none});"
    );
    let kinds: Vec<SyncKind> = imported(&rows).syncs.iter().map(|sync| sync.kind).collect();
    let expected = [SyncKind::Stream, SyncKind::Stream, SyncKind::StreamWaitEvent, SyncKind::Event, SyncKind::Context];
    assert_eq!(kinds, expected);
}

#[test]
fn synchronisations_are_on_the_device_of_their_context() {
    let (process, none) = (global(42, 0), u32::MAX);
    let rows = format!(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 1, 2, 15, 1, {process}, 2, 3, 1, 1, NULL, 0);
         INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES
             (1, 30, 0, 2, 15, 2, {process}, 3, {none}, {none});"
    );
    let trace = imported(&rows);
    assert_eq!((trace.devices.len(), trace.contexts.len(), trace.streams.len()), (1, 1, 1));
    assert_eq!(trace.syncs[0].stream, Some(trace.ops.stream[0]));
}

#[test]
fn ranges_have_a_text_or_the_id_of_one() {
    let thread = global(42, 43);
    let rows = format!(
        "{}INSERT INTO NVTX_EVENTS VALUES (90000, 200000, 59, 'step', {thread}, NULL),
             (91000, 150000, 60, NULL, {thread}, 5), (92000, NULL, 34, 'mark', {thread}, NULL),
             (93000, NULL, 59, 'open', {thread}, NULL), (94000, NULL, 75, 'CCCL', {thread}, NULL),
             (95000, NULL, 39, 'rank 0', {thread}, NULL),
             (96000, 97000, 59, 'aten::mm, seq = 5, sizes = [[2, 2], [2, 2]]', {thread}, NULL),
             (98000, 99000, 59, 'aten::copy_, op_id = 317164', {thread}, NULL);",
        launches(42, 1..2)
    );
    let trace = imported(&rows);
    let ranges: Vec<(&str, i64)> =
        trace.ranges.iter().map(|range| (trace.names.get(range.name), range.interval.len().0)).collect();
    let expected = [("step", 110_000), ("epoch", 59_000), ("mark", 0), ("aten::mm", 1_000), ("aten::copy_", 1_000)];
    assert_eq!(ranges, expected);
    assert_eq!((trace.ranges[0].kind, trace.ranges[3].kind), (RangeKind::Nvtx, RangeKind::Operator));
    assert_eq!(trace.threads[0].name, "rank 0");
    let left_out = "1 range left out: it was not closed while nsys recorded";
    assert!(trace.meta.warnings.iter().any(|warning| warning == left_out), "{:?}", trace.meta.warnings);
}

#[test]
fn a_name_that_leads_nowhere_is_shown_as_its_id() {
    let trace = imported(&format!("{}DELETE FROM StringIds WHERE id = 2;", launches(42, 1..3)));
    assert_eq!(trace.ops.len(), 2);
    assert_eq!(trace.op_name(OpIdx(0)), "(name 2)");
}

#[test]
fn rows_without_what_they_need_are_counted() {
    let process = global(42, 0);
    let rows = format!(
        "{}INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
             (NULL, 5, 0, 1, 7, 9, {process}, 2, 3, 1, 1, NULL, 0), (5, 6, -1, 1, 7, 9, {process}, 2, 3, 1, 1, NULL, 0),
             ('x', 6, 0, 1, 7, 9, {process}, 2, 3, 1, 1, NULL, 0), (0, 0, 0, 1, 7, 9, {process}, 2, 3, 1, 1, NULL, 0),
             (9, 8, 0, 1, 7, 9, {process}, 2, 3, 1, 1, NULL, 0), (10, NULL, 0, 1, 7, 9, {process}, 2, 3, 1, 1, NULL, 0);",
        launches(42, 1..2)
    );
    let trace = imported(&rows);
    let losses = trace.meta.losses;
    assert_eq!((losses.unreadable_records, losses.ops_without_time), (3, 1));
    assert_eq!((losses.impossible_times, losses.unfinished_ops), (1, 1));
    assert_eq!(trace.ops.len(), 2);
}

#[test]
fn absent_tables_are_told_from_empty_ones() {
    let meta = "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);";
    let calls = "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
        correlationId INTEGER, nameId INTEGER);";
    let (_folder, path) = export(meta);
    let trace = open(&path).unwrap();
    assert!(trace.ops.is_empty() && trace.meta.warnings[0].contains("no CUDA tables"), "{:?}", trace.meta.warnings);
    let (_folder, path) = export(&format!("{meta}{calls}"));
    assert!(open(&path).unwrap().meta.warnings[0].contains("no table of GPU work"));
    let empty = imported("");
    assert!(empty.meta.warnings.is_empty() && empty.ops.is_empty(), "{:?}", empty.meta.warnings);
}

#[test]
fn processes_of_one_number_on_many_machines_stay_apart() {
    const MACHINES: i64 = 4_000;
    let rows = format!(
        "WITH RECURSIVE machine(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM machine WHERE i < {MACHINES})
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME
             SELECT i * 10, i * 10 + 5, 0, (i << 48) | (300 << 24) | 301, i, 1, 0, NULL FROM machine"
    );
    let trace = imported(&rows);
    assert_eq!((trace.processes.len(), trace.calls.len()), (MACHINES as usize, MACHINES as usize));
    let others =
        trace.processes.iter().filter(|process| process.name == "(process 300 of another machine or container)");
    assert_eq!(others.filter(|process| process.pid != 300).count(), MACHINES as usize - 1);
}

#[test]
fn nothing_of_the_machine_or_the_captured_output_is_shown() {
    let trace = imported(&format!(
        "{}CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);
         INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('TOKEN', 'secret-token');
         CREATE TABLE PROCESS_STREAMS (globalPid INTEGER, filenameId INTEGER, contentId INTEGER);
         INSERT INTO StringIds VALUES (90, 'secret-output');
         INSERT INTO PROCESS_STREAMS VALUES (1, 90, 90);",
        launches(42, 1..2)
    ));
    let shown = format!("{trace:?}");
    assert!(shown.contains("step<float>") && !shown.contains("secret"), "{shown}");
}

#[test]
fn nothing_that_a_database_defines_is_evaluated() {
    let forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT i AS start, i + 1 AS end, 0 AS deviceId FROM n";
    let (_folder, path) = export(&format!(
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
         CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {forever};
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER AS (length(zeroblob(900000000))));
         INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start) VALUES (5);"
    ));
    let trace = open(&path).unwrap();
    assert_eq!((trace.ops.len(), trace.meta.losses.unfinished_ops), (1, 1), "the made-up end is not there");
}

#[test]
fn what_is_no_export_is_refused_in_one_line() {
    let (_folder, path) = export("CREATE TABLE StringTable (id INTEGER); CREATE TABLE t (x INTEGER);");
    assert!(refused(&path).contains("no export of Nsight Systems"), "{}", refused(&path));

    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("my run.nsys-rep");
    std::fs::write(&report, b"\x01\x02 anything").unwrap();
    let told = refused(&report);
    let advice = format!(
        "nsys export --type sqlite --output '{}' '{}'",
        folder.path().join("my run.sqlite").display(),
        report.display()
    );
    assert!(told.ends_with(&advice), "{told}");

    let pointer = folder.path().join("pointer.sqlite");
    std::fs::write(&pointer, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n").unwrap();
    assert!(refused(&pointer).contains("git lfs pull"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_in_one_line() {
    let (folder, path) = export(SCHEMA);
    let bytes = std::fs::read(path).unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || drop(std::fs::write(pipe, bytes))
    });
    let told = refused(&pipe);
    writer.join().unwrap();
    assert!(told.contains("save it as one first"), "{told}");
}

#[test]
fn a_cut_or_damaged_database_is_one_line() {
    let (folder, path) = export(&format!("{SCHEMA}{}", launches(42, 1..500)));
    let bytes = std::fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.sqlite");
    for length in [100, 4096, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&damaged, &bytes[..length]).unwrap();
        if let Err(error) = open(&damaged) {
            assert!(matches!(error, OpenError::Import { .. }), "{error:?}");
            let told = format!("{:#}", anyhow::Error::from(error));
            assert!(told.contains("export it again") && !told.contains('\n'), "{told}");
        } else {
            assert!(length == bytes.len() - 1, "cut at {length} of {} and read", bytes.len());
        }
    }
}

/// An export of a few pages to damage.
static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let (_folder, path) = export(&format!("{SCHEMA}{}", launches(42, 1..100)));
    std::fs::read(path).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn damage_anywhere_is_survived(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut bytes = SOUND.clone();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()).max(16));
        }
        bytes[..16].copy_from_slice(b"SQLite format 3\0");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.sqlite");
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(trace) = open(&path) {
            analyze(&trace, &Options::default());
        }
    }
}

#[test]
fn real_exports_have_the_known_answers() {
    let Some(corpus) = corpus::folder() else { return };
    for (name, expected) in corpus::expected(&corpus, ".sqlite") {
        let trace = open(&corpus.join("nsys").join(&name)).unwrap();
        assert_eq!(corpus::figures(&trace), expected["devices"], "{name}");
        assert_eq!(trace.meta.losses.unreadable_records, 0, "{name}");
    }
    let healthy = open(&corpus.join("nsys/healthy_1pct.sqlite")).unwrap();
    let found = full(&healthy, &Options::default());
    assert!(found.findings.found.is_empty(), "{:?}", found.findings);
}

#[test]
fn small_inputs_that_break_tools_do_not_break_this_one() {
    let Some(corpus) = corpus::folder() else { return };
    let at = |name: &str| corpus.join("small").join(name);
    let device = |trace: &Trace| {
        let found = analyze(trace, &Options::default());
        let part = found.devices[0].partition;
        [part.span().0, part.busy().0, part.idle.0]
    };
    let base = open(&at("s00_base.sqlite")).unwrap();
    assert_eq!(device(&base), [70_000, 50_000, 20_000]);

    let no_calls = open(&at("s02_kernel_no_runtime.sqlite")).unwrap();
    assert_eq!(device(&no_calls), [70_000, 50_000, 20_000]);
    assert!(no_calls.meta.warnings[0].contains("no CUDA calls"), "{:?}", no_calls.meta.warnings);

    let marks = open(&at("s04_nvtx_null_end.sqlite")).unwrap();
    assert_eq!((marks.ranges.len(), device(&marks)), (2, [70_000, 50_000, 20_000]));
    assert!(marks.ranges.iter().all(|range| !marks.names.get(range.name).is_empty()));

    assert!(matches!(open(&at("s06_zero_len.sqlite")), Err(OpenError::Empty { .. })));
    assert!(refused(&at("s08_not_sqlite.sqlite")).contains("Git LFS"));

    let graph = open(&at("s10_graph_trace.sqlite")).unwrap();
    assert_eq!(device(&graph), [150_000, 110_000, 40_000]);
    assert_eq!(graph.meta.capture_mode, CaptureMode::Graph);

    let dangling = open(&at("s12_dangling_string.sqlite")).unwrap();
    assert_eq!((dangling.ops.len(), dangling.op_name(OpIdx(0))), (1, "(name 999)"));

    let unified = open(&at("s14_uvm_migrations.sqlite")).unwrap();
    let copies: Vec<OpIdx> = unified.ops.indices().filter(|op| unified.ops.kind[op.index()].is_copy()).collect();
    assert_eq!(copies.len(), 15);
    for op in copies {
        assert_eq!(unified.ops.launch(op), None);
        assert_eq!(unified.streams[unified.ops.stream[op.index()].index()].id, Stream::MIGRATIONS);
    }
}
