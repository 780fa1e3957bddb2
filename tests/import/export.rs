//! What is written for other programs, read back by readers that share nothing with the writers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bubblescope::analysis::replay::Change;
use bubblescope::analysis::{Analysis, FindingId, FullAnalysis, Options, analyze, full};
use bubblescope::export::{CSV_COLUMNS, chrome, csv};
use bubblescope::open::open;
use bubblescope::trace::{
    CallInput, CorrelationId, Detail, EventInput, GraphId, Ns, OpInput, OpKind, OverheadKind, RangeKind, StreamKind,
    SyncInput, SyncKind, Trace, TraceBuilder,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::corpus::figures;

/// A trace with everything: streams whose ops overlap, calls and ranges that nest and that cross, two processes with the
/// same numbers, names with every kind of character.
fn eventful(times: &[(i64, i64)]) -> Trace {
    let mut builder = TraceBuilder::new();
    for (index, &(at, length)) in times.iter().enumerate() {
        let pid = 10 + (index % 2) as u32;
        let process = builder.process(pid);
        let device = builder.device(u32::from(index % 3 == 0));
        let context = builder.context(process, device.0 + 1, device);
        let stream = builder.stream(context, 7 + (index % 5 / 3) as u32);
        let thread = builder.thread(process, 5);
        let correlation = CorrelationId(index as u64 / 2 + 1);
        let kinds = [OpKind::Kernel, OpKind::Copy, OpKind::Memset, OpKind::Graph];
        let name = builder.name(["k\"e\\r,n\nel", "_Z4stepPf", "Memcpy HtoD", "\u{1F600}"][index % 4]);
        let launch = builder.name(["cudaLaunchKernel_v7000", "cuLaunchKernel"][index % 2]);
        builder.push_call(CallInput { start: at, end: at + length / 2, thread, name: launch, correlation, result: 0 });
        builder.push_op(OpInput {
            start: at + 7,
            end: at + 7 + length,
            stream,
            kind: kinds[index % 4],
            name,
            correlation,
            bytes: 8,
            graph: GraphId((index % 2) as u32),
            graph_node: index as u64,
            detail: Detail::None,
        });
        builder.push_range(at - 3, at + length, thread, name, RangeKind::Nvtx);
        builder.push_range(at - 2, at + 1, thread, launch, RangeKind::Operator);
        let overheads = [
            OverheadKind::Compiler,
            OverheadKind::ProfilerBuffer,
            OverheadKind::ProfilerInstrumentation,
            OverheadKind::ProfilerResource,
            OverheadKind::ProfilerDeviceBuffer,
            OverheadKind::ModuleLoading,
            OverheadKind::LazyLoading,
            OverheadKind::CommandBufferFull,
        ];
        let overhead = overheads[index % overheads.len()];
        builder.push_overhead(at, at + 2, overhead, process, Some(thread), CorrelationId::NONE);
        let (context, stream) = (Some(context), (index % 4 > 0).then_some(stream));
        builder.push_event(EventInput {
            process,
            context,
            stream,
            event: 3,
            event_sync: (index % 3 == 0).then_some(u64::MAX - index as u64),
            device_time: at * (index as i64 % 2),
            correlation,
        });
        let kinds = [SyncKind::Event, SyncKind::StreamWaitEvent, SyncKind::Stream, SyncKind::Context];
        builder.push_sync(SyncInput {
            start: at,
            end: at + length,
            kind: kinds[index % 4],
            process,
            context: context.filter(|_| index % 5 > 0),
            stream,
            event: (index % 2 == 0).then_some(3),
            event_sync: None,
            awaited_record: CorrelationId((index as u64 % 3).wrapping_sub(u64::from(index % 7 == 0))),
            correlation,
        });
        if let Some(stream) = stream {
            builder.push_host_function(at, at + length, stream, correlation, GraphId(index as u32 % 3));
            builder.set_stream_kind(stream, StreamKind::NonBlocking);
        }
    }
    builder.meta.epoch_ns = 1_764_000_000_000_000_000;
    builder.finish().unwrap()
}

fn recorded() -> Trace {
    open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scalar-readback/kernels-4/sync.bubcap")).unwrap()
}

fn of(trace: &Trace) -> Analysis {
    analyze(trace, &Options::default())
}

/// The events of the Chrome JSON of a trace.
fn events(trace: &Trace, analysis: &Analysis) -> Vec<Value> {
    let mut text = Vec::new();
    chrome(trace, analysis, &mut text).unwrap();
    let json: Value = serde_json::from_slice(&text).expect("strict JSON");
    assert_eq!(json["baseTimeNanoseconds"], trace.meta.epoch_ns);
    let Value::Array(events) = &json["traceEvents"] else { panic!("traceEvents is a list") };
    events.clone()
}

/// Microseconds with three decimals as nanoseconds.
fn ns(micros: &Value) -> i64 {
    let micros = micros.as_f64().unwrap();
    (micros * 1_000.0).round() as i64
}

/// One complete slice: track, start, end, category, name and arguments.
type Slice<'v> = ((i64, i64), i64, i64, &'v str, &'v str, &'v Value);

fn slices(events: &[Value]) -> Vec<Slice<'_>> {
    let complete = events.iter().filter(|event| event["ph"] == "X");
    complete
        .map(|event| {
            let track = (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap());
            let start = ns(&event["ts"]);
            let text = |key: &str| event[key].as_str().unwrap();
            (track, start, start + ns(&event["dur"]), text("cat"), text("name"), &event["args"])
        })
        .collect()
}

/// Checks what Perfetto needs and would not complain about.
fn assert_drawable(events: &[Value]) {
    let slices = slices(events);
    let mut tracks: BTreeMap<(i64, i64), Vec<(i64, i64)>> = BTreeMap::new();
    for &(track, start, end, ..) in &slices {
        tracks.entry(track).or_default().push((start, end));
    }
    let threads: BTreeSet<i64> = tracks.keys().map(|&(_, tid)| tid).collect();
    assert_eq!(threads.len(), tracks.len(), "a thread's number is used once in the file");
    let named: BTreeSet<(i64, i64)> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap()))
        .collect();
    assert_eq!(named, tracks.keys().copied().collect());
    for (track, mut inside) in tracks {
        inside.sort_by_key(|&(start, end)| (start, -end));
        let mut open: Vec<i64> = Vec::new();
        for (start, end) in inside {
            while open.last().is_some_and(|&last| last <= start) {
                open.pop();
            }
            assert!(open.last().is_none_or(|&last| end <= last), "a slice crosses another on {track:?}");
            open.push(end);
        }
    }
    let begins: BTreeSet<((i64, i64), i64)> = slices.iter().map(|&(track, start, ..)| (track, start)).collect();
    let mut ends: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "s" || event["ph"] == "f") {
        let track = (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap());
        assert!(begins.contains(&(track, ns(&event["ts"]))), "an arrow's end lies on a slice: {event}");
        ends.entry(event["id"].as_i64().unwrap()).or_default().push(event["ph"].as_str().unwrap());
    }
    assert!(ends.values().all(|ends| *ends == ["s", "f"]), "each arrow has two ends");
}

/// Every op, call, range and bubble of the trace is there once, to the nanosecond.
fn assert_complete(trace: &Trace, analysis: &Analysis, events: &[Value]) {
    let slices = slices(events);
    let of = |wanted: &[&str]| -> Vec<(i64, i64)> {
        let mut found: Vec<(i64, i64)> = slices
            .iter()
            .filter(|(_, _, _, category, ..)| wanted.contains(category))
            .map(|&(_, start, end, ..)| (start, end))
            .collect();
        found.sort_unstable();
        found
    };
    let sorted = |mut all: Vec<(i64, i64)>| {
        all.sort_unstable();
        all
    };
    let ops = trace.ops.indices().map(|op| (trace.ops.start[op.index()].0, trace.ops.end[op.index()].0)).collect();
    assert_eq!(of(&["kernel", "gpu_memcpy", "gpu_memset"]), sorted(ops));
    let calls = trace.calls.indices().map(|call| (trace.calls.start[call.index()].0, trace.calls.end[call.index()].0));
    assert_eq!(of(&["cuda_runtime", "cuda_driver"]), sorted(calls.collect()));
    let ranges = trace.ranges.iter().map(|range| (range.interval.start.0, range.interval.end.0)).collect();
    assert_eq!(of(&["nvtx", "cpu_op", "user_annotation"]), sorted(ranges));
    let bubbles = analysis.devices.iter().flat_map(|device| &device.bubbles);
    let bubbles = bubbles.map(|bubble| (bubble.interval.start.0, bubble.interval.end.0)).collect();
    assert_eq!(of(&["bubble"]), sorted(bubbles));
    for (_, start, end, category, name, args) in &slices {
        if *category == "bubble" {
            let segments = args["segments"].as_array().unwrap();
            let tiled: i64 = segments.iter().map(|segment| segment["ns"].as_i64().unwrap()).sum();
            assert_eq!(tiled, end - start);
            assert!(name.starts_with(args["cause"].as_str().unwrap()), "{name}: {args}");
        }
    }
}

#[test]
fn a_recording_is_whole_in_chromes_json() {
    let trace = recorded();
    let analysis = of(&trace);
    let events = events(&trace, &analysis);
    assert_drawable(&events);
    assert_complete(&trace, &analysis, &events);
    let arrows = events.iter().filter(|event| event["ph"] == "s").count();
    let launches = trace.calls.indices().filter(|&call| !trace.call_ops(call).is_empty()).count();
    assert!(launches > 100 && arrows == launches, "{arrows} arrows for {launches} launches");
    let drained = slices(&events).iter().filter(|slice| slice.5["drained by"].is_string()).count();
    assert!(drained > 10, "{drained}");
}

/// Every recording of the repository.
fn fixtures() -> Vec<PathBuf> {
    fn add(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "bubcap") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    add(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"), &mut found);
    found.sort();
    assert!(found.len() > 50);
    found
}

/// The trace in each form in which it is written and read back.
fn read_back(trace: &Trace) -> [(&'static str, Trace); 2] {
    let mut parquet = Vec::new();
    bubblescope::trace::file::write(trace, &mut parquet).unwrap();
    let mut json = Vec::new();
    // Bubbles are written for people, and not read back.
    chrome(trace, &Analysis::default(), &mut json).unwrap();
    [
        ("trace file", bubblescope::trace::file::read(parquet).unwrap()),
        ("Chrome's JSON", bubblescope::import::kineto::read(&*json).unwrap()),
    ]
}

/// What is read back is the trace that was written, so that every answer about it is the same.
#[test]
fn what_is_written_and_read_back_is_the_same_trace() {
    for fixture in fixtures() {
        let trace = open(&fixture).unwrap();
        for (form, again) in read_back(&trace) {
            let at = format!("{} as {form}", fixture.display());
            assert_eq!(again.meta, trace.meta, "{at}");
            assert_eq!(again.syncs, trace.syncs, "{at}");
            assert_eq!(again.events, trace.events, "{at}");
            assert!(again == trace, "{at}: it is another trace");
        }
    }
}

/// Without any record but that of an event there is nothing that tells when the trace begins.
#[test]
fn what_holds_nothing_is_read_back_too() {
    let mut builder = TraceBuilder::new();
    builder.meta.epoch_ns = 1_764_000_000_000_000_000;
    let process = builder.process(7);
    let correlation = CorrelationId(1);
    let (context, stream, event_sync) = (None, None, None);
    builder.push_event(EventInput { process, context, stream, event: 3, event_sync, device_time: 50, correlation });
    for trace in [eventful(&[]), builder.finish().unwrap()] {
        for (form, again) in read_back(&trace) {
            assert_eq!(again, trace, "{form}");
        }
    }
}

/// The answers themselves, on recordings of which those were once others when they were read back.
#[test]
fn answers_about_what_is_read_back_are_the_same() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["workloads/graph-replay/launches", "planted/dependency", "workloads/default-stream/legacy"] {
        let trace = open(&fixtures.join(name).with_extension("bubcap")).unwrap();
        let answer = |trace: &Trace| {
            let window = trace.meta.workload.as_ref().and_then(|run| run.measured);
            full(trace, &Options { window, ..Options::default() })
        };
        let before = answer(&trace);
        assert!(!before.findings.found.is_empty(), "{name}");
        for (form, again) in read_back(&trace) {
            assert_eq!(answer(&again), before, "{name} as {form}");
        }
    }
}

/// The events as another profiler would have written them: without what only this export tells.
fn as_of_another(trace: &Trace) -> Trace {
    let mut text = Vec::new();
    chrome(trace, &of(trace), &mut text).unwrap();
    let mut json: Value = serde_json::from_slice(&text).unwrap();
    json.as_object_mut().unwrap().remove("bubblescope").unwrap();
    let ours = ["cuda_sync", "cuda_event", "host_function", "nvtx"];
    let Value::Array(events) = &mut json["traceEvents"] else { panic!("traceEvents is a list") };
    events.retain(|event| !event["cat"].as_str().is_some_and(|category| ours.contains(&category)));
    bubblescope::import::kineto::read(serde_json::to_vec(&json).unwrap().as_slice()).unwrap()
}

/// What a trace of another profiler cannot tell is not promised, and said.
#[test]
fn what_another_profiler_does_not_record_is_withheld_and_said() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let orders = "wait for another, and the source does not record for what";
    let default = "which streams serialise with the legacy default stream";
    for (name, id, said) in [
        ("workloads/graph-replay/launches", FindingId::TinyLaunches, orders),
        ("planted/dependency", FindingId::NoOverlap, orders),
        ("planted/default-stream", FindingId::DefaultStream, default),
        ("workloads/default-stream/legacy", FindingId::DefaultStream, default),
    ] {
        let trace = open(&fixtures.join(name).with_extension("bubcap")).unwrap();
        let whole = full(&trace, &Options::default());
        let other = as_of_another(&trace);
        assert_eq!(figures(&other), figures(&trace), "{name}");
        let asked = vec![Change::Graph, Change::NoStreamWaits, Change::Host { millionths: 500_000 }];
        let options = Options { what_if: asked, ..Options::default() };
        let less = full(&other, &options);
        let has = |full: &FullAnalysis| full.findings.found.iter().any(|finding| finding.id == id);
        assert!(has(&whole) && !has(&less), "{name}");
        let says = |full: &FullAnalysis| full.analysis.quality.warnings.iter().any(|line| line.contains(said));
        assert!(!says(&whole) && says(&less), "{name}: {:?}", less.analysis.quality.warnings);
        let replay = less.replay.unwrap();
        let answers = replay.what_if;
        // All together are those that have an answer.
        let names: Vec<&str> = answers.iter().map(|what| what.change.as_str()).collect();
        assert_eq!(replay.all_together.map(|what| what.change), Some(names.join(", ")), "{name}");
        let given = |change: &str| answers.iter().any(|what| what.change == change);
        assert_eq!((given("graph"), given("no-stream-waits")), (said != orders, said != orders), "{name}");
    }
    // Where one stream does all the work there is nothing to be told.
    let trace = open(&fixtures.join("scalar-readback/kernels-4/sync.bubcap")).unwrap();
    let (whole, other) = (full(&trace, &Options::default()), full(&as_of_another(&trace), &Options::default()));
    let gains = |full: &FullAnalysis| {
        let found = full.findings.found.iter();
        found.map(|finding| (finding.id, finding.recoverable, finding.count)).collect::<Vec<_>>()
    };
    assert_eq!(gains(&other), gains(&whole));
    assert_eq!(other.analysis.quality.warnings, Vec::<String>::new());
}

/// Damage is found, and its outline does no harm.
#[test]
fn a_damaged_export_says_so() {
    let trace = recorded();
    let mut text = Vec::new();
    chrome(&trace, &of(&trace), &mut text).unwrap();
    let cut = bubblescope::import::kineto::read(&text[..text.len() / 2]).unwrap();
    assert!(cut.meta.losses.is_damaged() && cut.meta.source.format == "kineto");
    assert!(!of(&cut).quality.idle_reliable);
    let text = String::from_utf8(text).unwrap();
    for (from, to, same) in [
        ("\"context\":0,\"device\":0,\"process\":0,", "\"context\":7,\"device\":0,\"process\":0,", false),
        ("\"bubblescope\":{", "\"other\":{", true),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        let read = bubblescope::import::kineto::read(changed.as_bytes()).unwrap();
        assert_eq!(figures(&read), figures(&trace));
        assert_eq!(read.meta.warnings.is_empty(), same, "{:?}", read.meta.warnings);
    }
}

/// Events that tell nothing that only this export tells, as when another tool adds them or changes them, stand where they
/// were among those that do.
#[test]
fn events_without_our_arguments_keep_their_times() {
    let trace = recorded();
    let mut json: Value = {
        let mut text = Vec::new();
        chrome(&trace, &Analysis::default(), &mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    let Value::Array(events) = &mut json["traceEvents"] else { panic!("traceEvents is a list") };
    for arguments in events.iter_mut().step_by(3).filter_map(|event| event["args"].as_object_mut()) {
        ["lane", "thread", "process", "detail"].iter().for_each(|key| drop(arguments.remove(*key)));
    }
    let read = bubblescope::import::kineto::read(serde_json::to_vec(&json).unwrap().as_slice()).unwrap();
    let times = |trace: &Trace| {
        let absolute = |time: &Ns| trace.meta.epoch_ns + time.0;
        let both = |start: &[Ns], end: &[Ns]| {
            let mut times: Vec<_> = start.iter().map(absolute).zip(end.iter().map(absolute)).collect();
            times.sort_unstable();
            times
        };
        [both(&trace.ops.start, &trace.ops.end), both(&trace.calls.start, &trace.calls.end)]
    };
    assert!(times(&read) == times(&trace));
}

/// Counts as large as counts can be, and what is lost besides.
#[test]
fn losses_never_overflow() {
    let mut text = Vec::new();
    chrome(&recorded(), &Analysis::default(), &mut text).unwrap();
    let mut json: Value = serde_json::from_slice(&text).unwrap();
    let losses = json["bubblescope"]["meta"]["losses"].as_object_mut().unwrap();
    losses.values_mut().for_each(|value| *value = u64::MAX.into());
    let Value::Array(events) = &mut json["traceEvents"] else { panic!("traceEvents is a list") };
    let slices = events.iter_mut().filter(|event| event["cat"] == "kernel");
    for (event, (key, value)) in slices.zip([("dur", Value::Null), ("ts", "x".into()), ("ts", (1_u64 << 55).into())]) {
        event[key] = value;
    }
    let text = serde_json::to_string(&json).unwrap().replacen("\"traceEvents\":[", "\"traceEvents\":[{@},", 1);
    let read = bubblescope::import::kineto::read(text.as_bytes()).unwrap();
    let found = serde_json::to_value(read.meta.losses).unwrap();
    assert!(found.as_object().unwrap().values().all(|count| *count == u64::MAX), "{found}");
    of(&read);
}

/// Cells of a table as RFC 4180 has them.
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => cell.extend(chars.next()),
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut cell)),
            ('\n', false) => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            (c, _) => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty() && !quoted, "the last row ends like the others");
    rows
}

fn assert_table(trace: &Trace, analysis: &Analysis) {
    let mut text = Vec::new();
    csv(trace, analysis, &mut text).unwrap();
    let rows = cells(std::str::from_utf8(&text).unwrap());
    assert_eq!(rows[0], CSV_COLUMNS);
    assert!(rows.iter().all(|row| row.len() == CSV_COLUMNS.len()));
    let bubbles = analysis.devices.iter().map(|device| device.bubbles.len()).sum::<usize>();
    assert_eq!(rows.len() - 1, trace.event_count() + bubbles);
    let length = |record: &str| -> i64 {
        rows.iter().filter(|row| row[0] == record).map(|row| row[4].parse::<i64>().unwrap()).sum()
    };
    let idle: i64 = analysis.devices.iter().map(|device| device.partition.idle.0).sum();
    assert_eq!(length("bubble"), idle);
    assert_eq!(length("call"), trace.calls.indices().map(|call| trace.calls.interval(call).len().0).sum::<i64>());
    let of_ops: i64 = ["kernel", "copy", "memset", "graph"].into_iter().map(length).sum();
    assert_eq!(of_ops, trace.ops.indices().map(|op| trace.ops.interval(op).len().0).sum::<i64>());
    for name in trace.ranges.iter().map(|range| trace.names.get(range.name)) {
        assert!(rows.iter().any(|row| row[0] == "range" && row[2] == name), "{name:?}");
    }
}

#[test]
fn a_recording_is_whole_in_a_table() {
    let trace = recorded();
    assert_table(&trace, &of(&trace));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn anything_is_whole_and_drawable(times in proptest::collection::vec((10..3_000_i64, 0..400_i64), 0..60)) {
        let trace = eventful(&times);
        let analysis = of(&trace);
        let events = events(&trace, &analysis);
        assert_drawable(&events);
        assert_complete(&trace, &analysis, &events);
        assert_table(&trace, &analysis);
        for (form, again) in read_back(&trace) {
            prop_assert_eq!(&again, &trace, "{}", form);
        }
    }

    /// Whatever becomes of the text of an export, it is read as far as it can be, or refused.
    #[test]
    fn a_changed_export_does_no_harm(
        times in proptest::collection::vec((10..900_i64, 0..400_i64), 1..6),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut text = Vec::new();
        chrome(&eventful(&times), &Analysis::default(), &mut text).unwrap();
        for (at, byte) in changes {
            let at = at.index(text.len());
            // Digits above all: other positions in the outline.
            text[at] = if text[at].is_ascii_digit() { b'0' + byte % 10 } else { byte };
        }
        if let Ok(trace) = bubblescope::import::kineto::read(&*text) {
            of(&trace);
        }
    }
}
