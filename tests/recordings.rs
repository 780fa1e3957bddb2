//! What the bundled recordings from an H200 must show, with the figures computed another way.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use bubblescope::analysis;
use bubblescope::capture::convert::trace_from_spools;
use bubblescope::open::open;
use bubblescope::trace::{ApiKind, CallIdx, Interval, Ns, OpKind, Trace};
use serde_json::Value;

const KERNELS: [usize; 3] = [1, 4, 12];

fn fixture(kernels: usize, variant: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/fixtures/scalar-readback/kernels-{kernels}/{variant}.bubcap"))
}

fn measured(trace: &Trace) -> Interval {
    trace.meta.workload.as_ref().and_then(|run| run.measured).expect("the recording tells its measured part")
}

/// The report that the program prints as JSON.
fn reported(path: &Path) -> Value {
    let output =
        Command::cargo_bin("bubble-report").unwrap().args(["analyze", "--format", "json"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON alone on standard output")
}

/// Time by what ran, from counters that step at every start and end. One device.
fn swept(trace: &Trace) -> BTreeMap<&'static str, i64> {
    let window = measured(trace);
    let mut steps: Vec<(Ns, i32, bool)> = Vec::new();
    for op in trace.ops.indices() {
        let part = trace.ops.interval(op).intersect(window);
        let outside = trace.ops.interval(op).end <= window.start || trace.ops.interval(op).start >= window.end;
        if !outside {
            let copy = matches!(trace.ops.kind[op.index()], OpKind::Copy | OpKind::Memset);
            steps.push((part.start, 1, copy));
            steps.push((part.end, -1, copy));
        }
    }
    steps.sort();
    let mut time =
        BTreeMap::from([("compute_only_ns", 0), ("overlapped_ns", 0), ("exposed_copy_ns", 0), ("idle_ns", 0)]);
    let (mut kernels, mut copies) = (0, 0);
    let mut last = steps[0].0;
    let mut bubbles = 0;
    for (at, step, copy) in steps {
        let what = match (kernels > 0, copies > 0) {
            (true, false) => "compute_only_ns",
            (true, true) => "overlapped_ns",
            (false, true) => "exposed_copy_ns",
            (false, false) => "idle_ns",
        };
        *time.get_mut(what).unwrap() += (at - last).get();
        bubbles += i64::from(what == "idle_ns" && at > last);
        last = at;
        if copy { copies += step } else { kernels += step }
    }
    time.insert("bubbles", bubbles);
    time
}

#[test]
fn the_partition_of_every_recording_is_exact_and_equals_a_second_computation() {
    for kernels in KERNELS {
        for variant in ["sync", "async", "graph", "none"] {
            let path = fixture(kernels, variant);
            let report = reported(&path);
            let devices = report["devices"].as_array().unwrap();
            assert_eq!(devices.len(), 1);
            let device = &devices[0];
            let figure = |name: &str| device[name].as_i64().unwrap();
            let sum =
                figure("compute_only_ns") + figure("overlapped_ns") + figure("exposed_copy_ns") + figure("idle_ns");
            assert_eq!(sum, figure("span_ns"), "{path:?}");
            for by in ["idle_by_root", "idle_by_segment"] {
                let parts: i64 = device[by].as_object().unwrap().values().map(|part| part.as_i64().unwrap()).sum();
                assert_eq!(parts, figure("idle_ns"), "{path:?} {by}");
            }
            let second = swept(&open(&path).unwrap());
            for (name, value) in &second {
                let reported =
                    if *name == "bubbles" { device["bubbles"]["count"].as_i64().unwrap() } else { figure(name) };
                assert_eq!(reported, *value, "{path:?} {name}");
            }
            assert_eq!(report["quality"]["idle_reliable"], true, "{path:?}");
            assert_eq!(report["quality"]["dropped_records"], 0, "{path:?}");
        }
    }
}

/// What bubbles blame calls for, and what the table of calls says that they caused.
#[test]
fn the_table_of_calls_accounts_for_every_bubble_that_blames_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for fixture in [
        "workloads/pipeline/serial.bubcap",
        "workloads/pipeline/async-pageable.bubcap",
        "planted/pageable-copy.bubcap",
        "planted/allocation.bubcap",
        "compat/torch-eager.bubcap",
    ] {
        let report = reported(&folder.join(fixture));
        let mut blamed: BTreeMap<&str, i64> = BTreeMap::new();
        for row in report["devices"].as_array().unwrap().iter().flat_map(|device| device["blamed"].as_array().unwrap())
        {
            if ["sync", "blocking-copy", "allocation"].contains(&row["cause"].as_str().unwrap()) {
                *blamed.entry(row["api"].as_str().unwrap()).or_default() += row["idle_ns"].as_i64().unwrap();
            }
        }
        let mut caused: BTreeMap<&str, i64> = BTreeMap::new();
        for row in report["sync_calls"].as_array().unwrap() {
            *caused.entry(row["api"].as_str().unwrap()).or_default() += row["bubbles_caused_ns"].as_i64().unwrap();
        }
        caused.retain(|_, ns| *ns > 0);
        assert!(!blamed.is_empty(), "{fixture}");
        assert_eq!(caused, blamed, "{fixture}");
    }
}

/// The calls of the measured part, in order, without the synchronisation that ends it.
fn calls(trace: &Trace) -> Vec<&str> {
    let window = measured(trace);
    let mut found: Vec<_> = trace
        .calls
        .indices()
        .filter(|call| {
            let call = trace.calls.interval(*call);
            call.start >= window.start && call.end <= window.end
        })
        .collect();
    found.sort_by_key(|call| trace.calls.start[call.index()]);
    let mut names: Vec<&str> = found.iter().map(|call| trace.call_name(*call)).collect();
    assert_eq!(names.pop(), Some("cuCtxSynchronize"));
    names
}

#[test]
fn every_iteration_makes_exactly_the_calls_that_its_variant_is_about() {
    for kernels in KERNELS {
        let launches = vec!["cuLaunchKernel"; kernels];
        let iterations = 200;

        let sync = open(&fixture(kernels, "sync")).unwrap();
        let iteration: Vec<&str> = launches.iter().copied().chain(["cuMemcpyDtoH"]).collect();
        assert_eq!(calls(&sync), iteration.repeat(iterations));

        let none = open(&fixture(kernels, "none")).unwrap();
        assert_eq!(calls(&none), launches.repeat(iterations));

        let graph = open(&fixture(kernels, "graph")).unwrap();
        assert_eq!(calls(&graph), ["cuGraphLaunch", "cuStreamSynchronize"].repeat(iterations / 10));

        // The decision lags four iterations behind, so four more are launched, and four fewer waits are made.
        let lagging = open(&fixture(kernels, "async")).unwrap();
        let submit: Vec<&str> = launches.iter().copied().chain(["cuMemcpyDtoHAsync", "cuEventRecord"]).collect();
        let wait_and_submit: Vec<&str> = ["cuEventSynchronize"].into_iter().chain(submit.iter().copied()).collect();
        let expected: Vec<&str> = submit
            .repeat(4)
            .into_iter()
            .chain(wait_and_submit.repeat(iterations - 1))
            .chain(["cuEventSynchronize"])
            .collect();
        assert_eq!(calls(&lagging), expected);
    }
}

#[test]
fn every_launch_of_every_recording_has_its_work() {
    for kernels in KERNELS {
        for variant in ["sync", "async", "graph", "none"] {
            let trace = open(&fixture(kernels, variant)).unwrap();
            let window = measured(&trace);
            let per_graph = kernels * 10 + 1;
            let mut submitted = 0;
            for call in trace.calls.indices().filter(|call| trace.calls.interval(*call).overlap(window) > Ns::ZERO) {
                let ops = trace.call_ops(call).len();
                match trace.calls.kind[call.index()] {
                    ApiKind::Launch | ApiKind::CopyBlocking | ApiKind::CopyAsync => assert_eq!(ops, 1),
                    ApiKind::GraphLaunch => assert_eq!(ops, per_graph),
                    _ => assert_eq!(ops, 0),
                }
                submitted += ops;
            }
            assert!(submitted >= kernels * 200, "{variant} {kernels}: {submitted}");
        }
    }
}

#[test]
fn each_read_back_drains_the_device_once() {
    for kernels in KERNELS {
        let trace = open(&fixture(kernels, "sync")).unwrap();
        let window = measured(&trace);
        let options = analysis::Options { window: Some(window), ..analysis::Options::default() };
        let found = analysis::analyze(&trace, &options);
        let read_back = |call: CallIdx| trace.call_name(call) == "cuMemcpyDtoH";
        let mut drained: BTreeMap<CallIdx, Vec<Interval>> = BTreeMap::new();
        for bubble in &found.devices[0].bubbles {
            if let Some(drain) = bubble.drained_by.filter(|drain| read_back(drain.call)) {
                drained.entry(drain.call).or_default().push(bubble.interval);
            }
        }
        // Nothing follows the last of the 200 but the synchronisation that ends the measured part.
        assert_eq!(drained.len(), 199, "{kernels}");
        for (call, bubbles) in drained {
            let copy = trace.call_ops(call)[0];
            assert_eq!(bubbles.len(), 1, "{kernels}");
            assert_eq!(bubbles[0].start, trace.ops.interval(copy).end, "the device runs dry at the end of its copy");
        }
    }
}

#[test]
fn reading_back_costs_more_idle_time_than_not_waiting_for_it() {
    for kernels in KERNELS {
        let idle = |variant: &str| swept(&open(&fixture(kernels, variant)).unwrap())["idle_ns"];
        let (sync, lagging, graph) = (idle("sync"), idle("async"), idle("graph"));
        assert!(sync * 10 > lagging * 12, "{kernels}: {sync} against {lagging}");
        assert!(sync > 2 * graph, "{kernels}: {sync} against {graph}");
    }
}

/// What one program gave the GPU to do, by kind.
fn work(trace: &Trace) -> BTreeMap<&'static str, u64> {
    let mut found = BTreeMap::from([("kernels", 0), ("graphs", 0), ("copies", 0), ("memsets", 0)]);
    for kind in &trace.ops.kind {
        let name = match kind {
            OpKind::Kernel => "kernels",
            OpKind::Graph => "graphs",
            OpKind::Copy => "copies",
            OpKind::Memset => "memsets",
        };
        *found.get_mut(name).unwrap() += 1;
    }
    found
}

#[test]
fn programs_of_every_kind_are_recorded_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let results = std::fs::read(root.join("docs/compatibility/compat.json")).unwrap();
    let results: Value = serde_json::from_slice(&results).unwrap();
    let mut compared = 0;
    for (name, case) in results["cases"].as_object().unwrap() {
        let fixtures = case["fixtures"].as_object().into_iter().flatten();
        let paths: Vec<PathBuf> = fixtures
            .map(|(file, _)| root.join("tests/fixtures/compat").join(file))
            .filter(|path| path.exists())
            .collect();
        if paths.is_empty() {
            continue;
        }
        let mut all: BTreeMap<&str, u64> = BTreeMap::new();
        for path in &paths {
            let trace = open(path).unwrap_or_else(|error| panic!("{name}: {error}"));
            for (kind, count) in work(&trace) {
                *all.entry(kind).or_default() += count;
            }
            let orphans = trace.ops.indices().filter(|&op| trace.ops.launch(op).is_none()).count();
            assert_eq!(orphans, 0, "{name}: each piece of work has its launch");
        }
        for (kind, count) in all {
            assert_eq!(Some(count), case["recorded"][kind].as_u64(), "{name}: {kind}");
        }
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

/// Two processes with a GPU each; the second sleeps before each all-reduce, so the first GPU waits in it.
#[test]
fn a_late_rank_is_the_one_that_is_waited_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let results = std::fs::read(root.join("docs/compatibility/nccl.json")).unwrap();
    let results: Value = serde_json::from_slice(&results).unwrap();
    let late = &results["runs"]["rank 1 late"]["late"];
    let (steps, each) = (late["steps"].as_u64().unwrap(), late["late_ns"].as_i64().unwrap());
    let slept = Ns(each * i64::try_from(steps).unwrap());

    let spools = [1, 2].map(|process| root.join(format!("tests/fixtures/nccl/nccl-late-1-{process}.bubcap")));
    let trace = trace_from_spools(&[&spools[0], &spools[1]]).unwrap();
    assert_eq!((trace.processes.len(), trace.devices.len()), (2, 2));
    let found = analysis::full(&trace, &analysis::Options::default()).analysis;
    let device = |id: u32| found.devices.iter().find(|device| trace.devices[device.device.index()].id == id).unwrap();
    let (early, late) = (device(0), device(1));
    let waited = early.peer_waits.by_peer[&late.device];
    assert!(waited.collectives >= steps * 9 / 10, "{waited:?}");
    assert!(waited.wait >= slept && waited.wait.0 <= 2 * slept.0, "{waited:?}: slept {slept}");
    assert!(early.exposed_comm_ns >= waited.wait, "nothing else ran meanwhile");
    assert!(late.peer_waits.total.0 * 20 <= waited.wait.0, "the late one hardly waits: {:?}", late.peer_waits);
}
