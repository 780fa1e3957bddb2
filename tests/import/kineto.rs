//! Traces of PyTorch's profiler: real ones with known figures, and small ones with one fault each.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use bubblescope::analysis::{self, Analysis, Options, analyze};
use bubblescope::export;
use bubblescope::import::{ImportError, kineto};
use bubblescope::open::{OpenError, open};
use bubblescope::report::{self, Report};
use bubblescope::trace::{Detail, Interval, MemoryKind, Ns, OpKind, RangeKind, SyncKind, Trace};
use proptest::prelude::*;
use serde_json::Value;

use crate::corpus::{expected, figures, folder};

#[test]
fn every_real_trace_has_its_known_figures() {
    let Some(corpus) = folder() else { return };
    for (name, answer) in expected(&corpus, ".json").into_iter().chain(expected(&corpus, ".json.gz")) {
        let trace = open(&corpus.join("kineto").join(&name)).unwrap();
        assert_eq!(known(&trace), answer["devices"], "{name}");
        let losses = trace.meta.losses;
        assert_eq!((losses.unreadable_records, losses.impossible_times), (0, 0), "{name}");
        assert!(!losses.is_damaged(), "{name}");
        for device in analyze(&trace, &Options::default()).devices {
            assert_eq!(device.idle_by_root.values().copied().sum::<Ns>(), device.idle_ns(), "{name}");
            assert_eq!(device.idle_by_segment.values().copied().sum::<Ns>(), device.idle_ns(), "{name}");
        }
    }
}

/// Events of kinds that tell nothing here may look as they like.
#[test]
fn kinds_that_are_of_no_use_do_no_harm() {
    let kernel =
        r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":2,"args":{"device":0,"stream":7}}"#;
    for kind in ["python_function", "ac2g", "fwdbwd", "gpu_user_annotation", "cuda_event", "host_function", "other"] {
        for times in ["", r#","ts":1"#, r#","ts":"x","dur":"y""#, r#","ts":1,"dur":-1"#, r#","ts":1e300,"dur":1"#] {
            let text = format!(r#"[{kernel},{{"ph":"X","cat":"{kind}","name":"n","pid":1,"tid":1{times}}}]"#);
            let trace = kineto::read(text.as_bytes()).unwrap();
            assert_eq!((trace.ops.len(), trace.names.len()), (1, 1), "{text}");
            assert_eq!((&trace.meta.losses, &trace.meta.warnings), (&Default::default(), &Vec::new()), "{text}");
        }
    }
}

/// The figures in the form of the known answers, which end a bubble at an op of no length too, as files that round to
/// microseconds have them. Here such an op is no device time, and the bubble around it one.
fn known(trace: &Trace) -> Value {
    let mut figures = figures(trace);
    let intervals: Vec<Interval> = trace.ops.indices().map(|op| trace.ops.interval(op)).collect();
    let alone = |op: &&Interval| {
        op.start == op.end
            && !intervals.iter().any(|other| other.start <= op.start && op.start <= other.end && !other.is_empty())
    };
    let between = intervals.iter().filter(|op| op.start == op.end).filter(alone).count();
    if between > 0 {
        let bubbles = &mut figures["0"]["bubbles"];
        *bubbles = (bubbles.as_u64().unwrap() + between as u64).into();
    }
    figures
}

/// The figures of a trace of one device.
struct One {
    trace: Trace,
    analysis: Analysis,
}

impl One {
    fn of(trace: Trace) -> Self {
        let analysis = analyze(&trace, &Options::default());
        assert_eq!(analysis.devices.len(), 1);
        Self { trace, analysis }
    }

    fn span(&self) -> i64 {
        self.analysis.devices[0].partition.span().get()
    }

    fn busy(&self) -> i64 {
        self.analysis.devices[0].partition.busy().get()
    }

    fn warned(&self, of: &str) -> bool {
        self.analysis.quality.warnings.iter().any(|warning| warning.contains(of))
    }

    /// The kernel that most small inputs hold twice, 20 and 30 µs long with 20 µs between.
    fn assert_base(&self) {
        assert_eq!((self.span(), self.busy(), self.trace.ops.len()), (70_000, 50_000, 2));
        let bubbles: Vec<Ns> = self.analysis.devices[0].bubbles.iter().map(|bubble| bubble.interval.len()).collect();
        assert_eq!(bubbles, [Ns(20_000)]);
        assert!(self.trace.ops.indices().all(|op| self.trace.ops.launch(op).is_some()));
    }
}

/// What is asked of each small input, by its file's name.
fn check_small(name: &str, opened: Result<Trace, OpenError>) {
    let number = &name[..3];
    match number {
        "r12" => return assert!(matches!(opened, Err(OpenError::Empty { .. }))),
        "r46" => {
            let Err(OpenError::Import { source: ImportError::NotARecording(why), .. }) = opened else {
                panic!("{name} is refused")
            };
            return assert!(why.contains("autograd"), "{why}");
        }
        "r10" => {
            let trace = opened.unwrap();
            return assert!(trace.ops.is_empty() && trace.calls.is_empty());
        }
        _ => {}
    }
    let trace = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
    let losses = trace.meta.losses;
    if number == "r32" {
        assert_eq!((trace.devices.len(), trace.processes.len(), trace.ops.len()), (2, 2, 2));
        for op in trace.ops.indices() {
            let launch = trace.ops.launch(op).unwrap();
            assert_eq!(trace.ops.start[op.index()] - trace.calls.start[launch.index()], Ns(10_000));
            assert_eq!(trace.call_process(launch), trace.op_process(op));
        }
        return assert!(trace.meta.warnings.iter().any(|warning| warning.contains("several processes")));
    }
    let one = One::of(trace);
    match number {
        "r00" | "r24" | "r26" | "r28" | "r36" | "r38" => {
            one.assert_base();
            assert!(one.analysis.quality.warnings.is_empty() && one.analysis.quality.idle_reliable);
        }
        "r02" => {
            one.assert_base();
            assert!(losses.ops_without_time == 1 && one.warned("have no end"));
        }
        "r04" => {
            assert_eq!((one.trace.ops.len(), one.busy()), (2, 4_000));
            let sum: Ns = one.trace.ops.indices().map(|op| one.trace.ops.interval(op).len()).sum();
            assert_eq!(sum, Ns(5_776));
            assert!(one.analysis.quality.warnings.is_empty());
        }
        "r05" => {
            assert_eq!((one.span(), one.busy()), (60_000, 40_000));
            assert!(!one.analysis.quality.idle_reliable && losses.impossible_times == 1);
            assert!(one.warned("1 op lasts far into later ops of its own stream"));
        }
        "r06" => {
            let launches: Vec<_> = one.trace.ops.indices().map(|op| one.trace.ops.launch(op)).collect();
            assert!(launches.len() == 5 && launches.iter().all(|&launch| launch.is_some() && launch == launches[0]));
            assert_eq!(one.analysis.launches.count, 1);
        }
        "r08" => {
            assert_eq!((one.trace.ops.len(), one.busy(), one.analysis.quality.orphan_ops), (7, 90_000, 5));
            assert!(one.warned("have no launch in the trace"));
        }
        "r14" => {
            one.assert_base();
            assert!(one.warned("is not closed"));
        }
        "r16" => {
            // It holds the same events again and again.
            one.assert_base();
            assert!(losses.is_damaged() && losses.duplicate_records > 10);
            assert!(one.warned("the file was cut"));
        }
        "r18" => one.assert_base(),
        "r20" => {
            one.assert_base();
            assert!(one.warned("control character inside a string: read as it stands (at byte 8"));
        }
        "r22" => {
            one.assert_base();
            assert!(one.warned("a backslash that escapes nothing"));
        }
        "r30" => {
            let kinds: Vec<OpKind> = one.trace.ops.kind.clone();
            assert_eq!(kinds, [OpKind::Kernel, OpKind::Copy]);
            assert_eq!((one.trace.streams.len(), one.trace.streams[0].id, one.trace.calls.len()), (1, 7, 1));
            assert_eq!(one.trace.threads[0].tid, 3_239_786_240);
        }
        "r34" => {
            assert_eq!((one.analysis.devices[0].partition.idle, one.trace.streams.len()), (Ns::ZERO, 2));
        }
        "r40" => {
            assert_eq!(one.trace.ops.len(), 3);
            assert!(one.trace.ops.indices().all(|op| one.trace.ops.launch(op).is_some()));
        }
        "r42" => {
            one.assert_base();
            assert_eq!(one.trace.devices[0].name, "Late GPU");
            assert_eq!(one.trace.meta.machine["rank"], "3 of 8");
            assert_eq!(one.trace.meta.epoch_ns, 1_727_743_122_000_100_000);
        }
        "r44" => {
            one.assert_base();
            assert!(losses.duplicate_records == 4 && one.warned("more than once"));
        }
        _ => panic!("nothing is asked of {name}"),
    }
}

#[test]
fn every_small_trace_reads_as_its_sentence_says() {
    let Some(corpus) = folder() else { return };
    let index = std::fs::read_to_string(corpus.join("small/INDEX.json")).unwrap();
    let index: Vec<Value> = serde_json::from_str(&index).unwrap();
    let names = index.iter().map(|row| row["file"].as_str().unwrap()).filter(|name| name.starts_with('r'));
    let mut count = 0;
    for name in names {
        check_small(name, open(&corpus.join("small").join(name)));
        count += 1;
    }
    assert!(count > 20, "{count} small traces");
}

/// The whole report on a real trace.
fn report(corpus: &Path, name: &str) -> Value {
    let trace = open(&corpus.join("kineto").join(name)).unwrap();
    let full = analysis::full(&trace, &Options::default());
    let options = report::Options { path: name.to_owned(), top: 5 };
    serde_json::to_value(Report::full(&trace, &full, &options)).unwrap()
}

#[test]
fn a_busy_device_gives_no_finding() {
    let Some(corpus) = folder() else { return };
    for name in ["vllm_decode_graph", "ns_resolution_v100", "triton_compile", "large_integer"] {
        let report = report(&corpus, &format!("{name}.json.gz"));
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{name}");
    }
}

#[test]
fn reports_name_what_differs_and_what_is_to_blame() {
    let Some(corpus) = folder() else { return };
    // The same training step, which reads its loss back in one of them.
    let read_back = |report: &Value| -> u64 {
        let calls = report["sync_calls"].as_array().unwrap().iter();
        let of_item = calls.filter(|call| call["site"] == "aten::_local_scalar_dense");
        of_item.map(|call| call["calls"].as_u64().unwrap()).sum()
    };
    let [item, none] = ["h200_train_item.json.gz", "h200_train_none.json.gz"].map(|name| report(&corpus, name));
    assert_eq!((read_back(&item), read_back(&none)), (20, 0));
    assert_eq!(
        (&item["iterations"]["blocking_calls_p50"], &none["iterations"]["blocking_calls_p50"]),
        (&1.into(), &0.into())
    );
    // The data loader keeps this one waiting, not the copies that drain the device.
    let owlv2 = report(&corpus, "owlv2_h100.json.gz");
    let device = &owlv2["devices"][0];
    let share =
        |root: &str| device["idle_by_root"][root].as_u64().unwrap_or(0) * 100 / device["idle_ns"].as_u64().unwrap();
    assert!(share("host-bound") > 90 && share("blocking-copy") < 2, "{}", device["idle_by_root"]);
    let finding = &owlv2["findings"][0];
    assert_eq!(finding["id"], "host-bound-step");
    assert!(finding["evidence"].to_string().contains("enumerate(DataLoader)"), "{finding}");
}

/// One launch and its kernel, 10 µs later: the `index`th of a stream.
fn pair(index: i64) -> [String; 2] {
    let (start, correlation) = (index * 40, index + 1);
    [
        format!(
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": {start}, "dur": 5, "args": {{"cbid": 211, "correlation": {correlation}}}}}"#
        ),
        format!(
            r#"{{"ph": "X", "cat": "kernel", "name": "k{index}", "pid": 0, "tid": 7, "ts": {}, "dur": 20, "args": {{"device": 0, "context": 1, "stream": 7, "correlation": {correlation}, "grid": [1, 2, 3], "block": [32, 1, 1]}}}}"#,
            start + 10
        ),
    ]
}

/// A trace of these events.
fn trace_of(events: &[String]) -> String {
    format!(r#"{{"schemaVersion": 1, "traceEvents": [{}], "traceName": "t.json"}}"#, events.join(",\n"))
}

/// The events of some pairs.
fn pairs(count: i64) -> Vec<String> {
    (0..count).flat_map(pair).collect()
}

fn read(text: impl AsRef<[u8]>) -> Result<Trace, ImportError> {
    kineto::read(text.as_ref())
}

fn warnings(trace: &Trace) -> String {
    trace.meta.warnings.join("; ")
}

#[test]
fn a_sound_trace_reads_without_a_word() {
    let trace = read(trace_of(&pairs(3))).unwrap();
    assert_eq!((trace.ops.len(), trace.calls.len(), warnings(&trace).as_str()), (3, 3, ""));
    assert_eq!(trace.meta.source.format, "kineto");
    let Detail::Kernel { grid, block, .. } = trace.details[trace.ops.detail[0].index()] else { panic!() };
    assert_eq!((grid, block), ([1, 2, 3], [32, 1, 1]));
    // The same, whatever the outermost value, its white space and its byte order mark.
    for text in [
        format!("[{}]", pairs(3).join(",")),
        format!("\u{feff} \n[{}]\n\n", pairs(3).join("\t,\r\n")),
        format!(r#"{{"traceEvents":[{}]}}"#, pairs(3).join(",")),
    ] {
        assert_eq!(read(text).unwrap(), trace);
    }
}

/// Damage to one event of five pairs, as what it is replaced by; what the note says; how many ops are left.
fn faults() -> Vec<(&'static str, String, &'static str, usize)> {
    let kernel = pair(2)[1].clone();
    let swap = |from: &str, to: &str| {
        assert!(kernel.contains(from), "{from}");
        kernel.replacen(from, to, 1)
    };
    vec![
        ("a control character", swap("k2", "k\u{1}2"), "a control character inside a string", 5),
        ("a line break", swap("k2", "k\n2"), "a control character inside a string", 5),
        ("a path of Windows", swap("k2", r"torch\cuda\__init__.py"), "a backslash that escapes nothing", 5),
        ("quotation marks", swap("k2", r#"op "k2" of "x, y": z"#), "quotation marks inside a string", 5),
        ("NaN", swap("[1, 2, 3]", "NaN"), "NaN or Infinity", 5),
        ("Infinity", swap("[1, 2, 3]", "[1, -Infinity, 3]"), "NaN or Infinity", 5),
        ("a time that is none", swap(r#""ts": 90"#, r#""ts": NaN"#), "no time that can be read", 4),
        ("a time in words", swap(r#""ts": 90"#, r#""ts": "soon""#), "no time that can be read", 4),
        ("a time beyond 64 bits", swap(r#""ts": 90"#, r#""ts": 99999999999999999999"#), "times that no clock shows", 4),
        ("a length beyond 64 bits", swap(r#""dur": 20"#, r#""dur": 18446744073709551615"#), "no clock shows", 4),
        ("a negative length", swap(r#""dur": 20"#, r#""dur": -20"#), "has no end", 4),
        ("no length", swap(r#""dur": 20, "#, ""), "has no end", 4),
        ("a device below zero", swap(r#""device": 0"#, r#""device": -1"#), "on a device that cannot be", 4),
        (
            "a device beyond 32 bits",
            swap(r#""device": 0"#, r#""device": 1099511627776"#),
            "on a device that cannot be",
            4,
        ),
        ("a device in words", swap(r#""device": 0"#, r#""device": "GPU""#), "on a device that cannot be", 4),
        (
            "a process below zero that is the device",
            swap(r#""device": 0, "#, "").replacen(r#""pid": 0"#, r#""pid": -1"#, 1),
            "on a device that cannot be",
            4,
        ),
        ("a brace too few", kernel.trim_end_matches('}').to_owned() + "}", "could not be read", 4),
        ("a brace too many", kernel.clone() + "}", "could not be read", 5),
        ("no value", swap(r#""dur": 20"#, r#""dur": "#), "could not be read", 4),
        ("no colon", swap(r#""dur": 20"#, r#""dur" 20"#), "could not be read", 4),
        ("no comma", swap(r#""dur": 20,"#, r#""dur": 20"#), "could not be read", 4),
        ("a bracket that stays open", swap("[1, 2, 3]", "[1, 2, 3"), "could not be read", 4),
        ("a string that stays open", swap(r#""k2""#, r#""k2"#), "could not be read", 4),
        ("half an event", kernel[..60].to_owned(), "could not be read", 4),
        ("other text", "<html>500</html>".to_owned(), "could not be read", 4),
        ("a deep value", swap("[1, 2, 3]", &("[".repeat(5_000) + &"]".repeat(5_000))), "could not be read", 4),
    ]
}

#[test]
fn damage_costs_one_event_and_is_noted_with_its_place() {
    for (what, event, note, ops) in faults() {
        for bare in [false, true] {
            let mut events = pairs(5);
            events[5] = event.clone();
            let text = if bare { format!("[{}]", events.join(",\n")) } else { trace_of(&events) };
            let trace = read(&text).unwrap_or_else(|error| panic!("{what}: {error}"));
            let notes = warnings(&trace);
            assert!(notes.contains(note), "{what}: {notes}");
            let at = text.find(&event).unwrap();
            assert!(notes.contains(&format!("at byte {at}")) || what == "a brace too many", "{what}, {at}: {notes}");
            assert_eq!((trace.ops.len(), trace.calls.len()), (ops, 5), "{what}: {notes}");
            let reliable = analyze(&trace, &Options::default()).quality.idle_reliable;
            assert_eq!(reliable, ops == 5 && note != "could not be read", "{what}");
        }
    }
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    let text = trace_of(&pairs(2)).into_bytes();
    let at = text.windows(2).position(|pair| pair == b"k1").unwrap();
    let mut broken = text.clone();
    broken[at + 1] = 0xff;
    let trace = read(broken).unwrap();
    assert_eq!(trace.names.get(trace.ops.name[1]), "k\u{fffd}");
    assert!(warnings(&trace).contains("no UTF-8"));
}

#[test]
fn damage_before_the_events_does_not_hide_them() {
    for head in [r#"{"a": "b"c", "traceEvents": ["#, r#"{"deviceProperties": [{"id": 0,}], "traceEvents": ["#, "{{["] {
        let trace = read(format!("{head}{}]}}", pairs(3).join(","))).unwrap();
        assert_eq!((trace.ops.len(), trace.calls.len()), (3, 3), "{head}");
        assert!(warnings(&trace).contains("damaged text before the events"), "{head}");
    }
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let parquet_report = r#"{"schema": "bubblescope.report/1", "tool": {}}"#;
    for (text, why) in [
        (r#"{"a": [1, 2], "b": {"traceEvents": []}}"#, "without traceEvents (of a, b)"),
        ("{}", "without traceEvents (empty)"),
        (parquet_report, "it is a report of this program"),
        (r#"[{"ph": "X", "cat": "net", "ts": 1, "dur": 2, "name": "n"}]"#, "it has 1 event (net), and no kernel"),
        (
            r#"[{"ph": "X", "cat": "kernel", "ts": 1e30, "dur": 2, "name": "n"}]"#,
            "of its 1 event none can be used: 1 event has times that no clock shows",
        ),
        (
            r#"[{"ph": "X", "cat": "kernel", "ts": 1, "dur": 2, "name": "n", "args": {"device": -1}}]"#,
            "of its 1 event none can be used: 1 op is on a device that cannot be",
        ),
        ("   \n", "it holds no text"),
        ("hello", "it is no JSON"),
        ("{\"a\": ", "ends at byte 6 before any event"),
        ("{\"a\" 5}", "damaged text before the events"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{text}: {error}");
    }
    for text in [r#"{"traceEvents": []}"#, "[]", r#"[{"ph": "M", "name": "process_name", "pid": 1}]"#, "[1, 2]"] {
        assert!(read(text).unwrap().ops.is_empty(), "{text}");
    }
}

/// One quotation mark that is missing must not make an op of nothing, with nothing said.
#[test]
fn an_event_without_one_of_its_quotation_marks_is_whole_or_told() {
    let events = pairs(3);
    let whole = read(trace_of(&events)).unwrap();
    let times = |trace: &Trace| -> Vec<_> { trace.ops.indices().map(|op| trace.ops.interval(op)).collect() };
    let mut places = 0;
    for (index, event) in events.iter().enumerate() {
        for (place, _) in event.match_indices('"') {
            let mut changed = events.clone();
            changed[index].remove(place);
            let trace = read(trace_of(&changed)).unwrap();
            let told = trace.meta.losses.unreadable_records > 0 || trace.meta.losses.is_damaged();
            assert!(told || (times(&trace) == times(&whole) && trace.calls.len() == 3), "{}", changed[index]);
            places += 1;
        }
    }
    assert!(places > 100, "{places}");
}

#[test]
fn ids_are_numbers_in_quotation_marks_and_names_too() {
    let call = |pid: &str, tid: &str, ts: i64| {
        format!(r#"{{"ph":"X","cat":"Runtime","name":"cudaFree","pid":{pid},"tid":{tid},"ts":{ts},"dur":1}}"#)
    };
    let events = [
        call("12", "-5", 1),
        call(r#""12""#, r#""-5""#, 2),
        call("-3", "18446744073709551615", 3),
        call(r#""worker""#, r#""main""#, 4),
        call(r#""worker""#, r#""main""#, 5),
        call("99999999999", "1", 6),
        call("null", "null", 7),
        r#"{"ph":"M","name":"process_name","pid":12,"args":{"name":"python"}}"#.to_owned(),
        r#"{"ph":"M","name":"thread_name","pid":"12","tid":-5,"args":{"name":"loader"}}"#.to_owned(),
    ];
    let trace = read(trace_of(&events)).unwrap();
    assert_eq!(trace.calls.len(), 7);
    let mut names: Vec<&str> = trace.processes.iter().map(|process| process.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["", "process -3", "process 99999999999", "python", "worker"]);
    let mut threads: Vec<(&str, usize)> =
        trace.threads.iter().map(|thread| (thread.name.as_str(), thread.calls.len())).collect();
    threads.sort_unstable();
    assert_eq!(threads, [("", 1), ("", 1), ("", 1), ("loader", 2), ("main", 2)]);
}

#[test]
fn categories_become_what_they_are() {
    let row = |category: &str, name: &str, extra: &str| {
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":1,"ts":10,"dur":100,"args":{{"correlation":5,"device":0,"context":1,"stream":3{extra}}}}}"#
        )
    };
    let events = [
        row("GPU_MEMCPY", "Memcpy HtoD (Pageable -> Device)", r#","bytes":64"#),
        row("Memset", "Memset (Device)", r#","bytes":8"#),
        row("cuda_driver", "cuMemcpyHtoDAsync_v2", ""),
        row("hip_runtime", "hipEventSynchronize", ""),
        row("Operator", "aten::item", ""),
        row("user_annotation", "ProfilerStep#3", ""),
        row("gpu_user_annotation", "ProfilerStep#3", ""),
        row("python_function", "train.py(3): step", ""),
        row("overhead", "Command Buffer Full", ""),
        row("cuda_sync", "Stream Sync", r#","cuda_sync_kind":"Stream Sync""#),
        row(
            "cuda_sync",
            "Stream Wait Event",
            r#","wait_on_stream":9,"wait_on_cuda_event_id":4,"wait_on_cuda_event_record_corr_id":2"#,
        ),
        row("cuda_sync", "Event Sync", r#","wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":-1"#),
    ];
    let trace = read(trace_of(&events)).unwrap();
    assert_eq!(warnings(&trace), "");
    assert_eq!((trace.ops.len(), trace.calls.len(), trace.overheads.len()), (2, 2, 1));
    let details: Vec<Detail> = trace.ops.detail.iter().map(|detail| trace.details[detail.index()]).collect();
    let copy = Detail::Copy { from: MemoryKind::Pageable, to: MemoryKind::Device, asynchronous: true };
    assert!(details.contains(&copy), "{details:?}");
    let ranges: Vec<(&str, RangeKind)> =
        trace.ranges.iter().map(|range| (trace.names.get(range.name), range.kind)).collect();
    assert_eq!(ranges.len(), 2);
    assert!(ranges.contains(&("aten::item", RangeKind::Operator)));
    assert!(ranges.contains(&("ProfilerStep#3", RangeKind::Annotation)));
    let kinds: Vec<SyncKind> = trace.syncs.iter().map(|sync| sync.kind).collect();
    for kind in [SyncKind::Stream, SyncKind::StreamWaitEvent, SyncKind::Event] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    // The wait names the stream and the record of its event.
    let record = &trace.events[0];
    assert_eq!((trace.events.len(), record.correlation.0, record.event), (1, 2, 4));
    assert_eq!(trace.streams[record.stream.unwrap().index()].id, 9);
}

#[test]
fn what_is_written_for_perfetto_reads_as_the_same_trace() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["scalar-readback/kernels-4/sync.bubcap", "scalar-readback/kernels-4/none.bubcap"] {
        let trace = open(&fixtures.join(name)).unwrap();
        let mut text = Vec::new();
        export::chrome(&trace, &analyze(&trace, &Options::default()), &mut text).unwrap();
        let back = read(text).unwrap();
        assert_eq!(figures(&back), figures(&trace), "{name}");
        assert_eq!(back.meta.epoch_ns, trace.meta.epoch_ns);
        let launches = |trace: &Trace| -> Vec<_> {
            let call = |op| trace.ops.launch(op).map(|call| trace.calls.interval(call));
            trace.ops.indices().map(|op| (trace.ops.interval(op), call(op))).collect()
        };
        assert_eq!(launches(&back), launches(&trace), "{name}");
    }
}

#[test]
fn gzip_is_read_in_members_and_to_where_it_is_cut() {
    let text = trace_of(&pairs(40));
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let whole = read(&text).unwrap();
    assert_eq!(read(gzip(&text)).unwrap(), whole);
    let (first, second) = text.split_at(1_000);
    assert_eq!(read([gzip(first), gzip(second)].concat()).unwrap(), whole);
    let packed = gzip(&text);
    let cut = read(&packed[..packed.len() / 2]).unwrap();
    assert!((1..40).contains(&cut.ops.len()) && cut.meta.losses.is_damaged(), "{}", warnings(&cut));
    assert!(read(&packed[..12]).is_err());
    assert!(read([0x1f, 0x8b]).is_err());
}

/// What is read is right only if the checksum behind it is, which stands behind the last event.
#[test]
fn gzip_whose_checksum_differs_is_damaged_however_whole_its_text_is() {
    let text = trace_of(&pairs(40));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(text.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    assert!(!read(&*packed).unwrap().meta.losses.is_damaged());
    let digit = packed.windows(6).position(|bytes| bytes == b"\"dur\":").unwrap() + 7;
    let length = packed.len();
    for place in [digit, length - 8, length - 5, length - 4, length - 1] {
        let mut changed = packed.clone();
        changed[place] ^= 1;
        let trace = read(&*changed).unwrap();
        assert!(trace.meta.losses.is_damaged(), "byte {place} of {length}");
        assert!(warnings(&trace).contains("the file is damaged: "), "{}", warnings(&trace));
        assert!(!analyze(&trace, &Options::default()).quality.idle_reliable);
    }
    for cut in 1..=8 {
        let trace = read(&packed[..length - cut]).unwrap();
        assert!(trace.ops.len() == 40 && trace.meta.losses.is_damaged(), "{cut} bytes less: {}", warnings(&trace));
    }
}

#[test]
fn what_stands_behind_the_end_is_told() {
    let text = trace_of(&pairs(3));
    let gzip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let whole = read(&text).unwrap();
    assert_eq!(read(format!("{text} \n\r\t\0\0")).unwrap(), whole);
    let long = " ".repeat(3 << 20);
    assert_eq!(read(format!("{text}{long}")).unwrap(), whole);
    let other = trace_of(&pairs(5));
    let left = |space: &str| (format!("{text}{space}{other}"), text.len() + space.len());
    for (both, at) in [left(""), left("\n"), left(&long)] {
        let from = format!(", from byte {at} on, were not read");
        for trace in [read(&both).unwrap(), read(gzip(&both)).unwrap()] {
            assert_eq!(trace.ops.len(), 3);
            assert!(warnings(&trace).contains(&from), "{from}: {}", warnings(&trace));
            assert!(!analyze(&trace, &Options::default()).quality.idle_reliable);
        }
    }
    let trace = read([gzip(&text), gzip(&other)].concat()).unwrap();
    assert!(warnings(&trace).contains("behind the end of the recording"), "{}", warnings(&trace));
}

#[test]
fn hostile_text_costs_no_more_than_its_length() {
    // A value that never ends, a name that is all the file, and as many processes as events.
    let many = (0..20_000).fold(String::from("["), |mut text, index| {
        let _ = write!(
            text,
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaFree","pid":{index},"tid":1,"ts":{index},"dur":1}},"#
        );
        text
    });
    assert_eq!(read(many).unwrap().processes.len(), 20_000);
    let mut events = pairs(3);
    events.insert(2, format!(r#"{{"ph":"X","cat":"kernel","name":"{}","ts":1,"dur":1}}"#, "n".repeat(12 << 20)));
    let trace = read(trace_of(&events)).unwrap();
    assert_eq!((trace.ops.len(), trace.calls.len()), (3, 3), "{}", warnings(&trace));
    let trace = read(format!("{{\"a\": {}, \"traceEvents\": [{}", "[".repeat(100_000), pairs(3).join(","))).unwrap();
    assert_eq!(trace.ops.len(), 3, "{}", warnings(&trace));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_trace_cut_anywhere_keeps_what_comes_before(count in 1..6i64, cut in any::<prop::sample::Index>(), bare: bool) {
        let events = pairs(count);
        let text = if bare { format!("[{}]", events.join(",")) } else { trace_of(&events) };
        let cut = cut.index(text.len());
        match read(&text[..cut]) {
            Ok(trace) => {
                let whole = events.iter().filter(|event| text.find(event.as_str()).unwrap() + event.len() <= cut);
                prop_assert_eq!(trace.ops.len() + trace.calls.len(), whole.count());
                prop_assert!(!trace.meta.warnings.is_empty());
            }
            Err(_) => prop_assert!(cut < 45),
        }
    }

    #[test]
    fn a_changed_byte_costs_two_events_at_most(at in any::<prop::sample::Index>(), byte: u8) {
        let mut text = trace_of(&pairs(6)).into_bytes();
        let from = text.windows(4).position(|four| four == b"[{\"p").unwrap() + 1;
        let to = text.len() - 24;
        let at = from + at.index(to - from);
        text[at] = byte;
        let trace = read(&text).unwrap();
        prop_assert!(trace.ops.len() + trace.calls.len() >= 10, "{}", warnings(&trace));
        prop_assert!(trace.ops.len() + trace.calls.len() <= 12);
    }

    #[test]
    fn no_text_is_too_strange(pieces in prop::collection::vec((any::<prop::sample::Index>(), 0..200usize, any::<u8>()), 1..12)) {
        let text = trace_of(&pairs(4)).into_bytes();
        let mut strange = Vec::new();
        for (from, len, byte) in pieces {
            let from = from.index(text.len());
            strange.extend_from_slice(&text[from..(from + len).min(text.len())]);
            strange.push(byte);
        }
        for start in [&b"["[..], b"{\"traceEvents\":[", b""] {
            if let Ok(trace) = read([start, &strange].concat()) {
                prop_assert!(trace.ops.len() + trace.calls.len() <= strange.len() / 30 + 1);
            }
        }
    }
}
