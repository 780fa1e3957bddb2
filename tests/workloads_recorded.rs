//! What the analysis says of the bundled workloads' variants as recorded on an H200.

mod recorded;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bubblescope::analysis::Cause;
use bubblescope::trace::ApiKind;
use recorded::Recorded;
use serde_json::Value;

/// What must be said of a variant's idle time.
enum Idle {
    /// It is more than 2 % of the span, and more of it has this root than any other; of that, most is blamed on one of
    /// these calls, if any are named.
    From(Cause, &'static [&'static str]),
    /// It is no more than this share of the span, in percent.
    AtMost(i64),
}

use Idle::{AtMost, From};

const EXPECTED: [(&str, &str, Idle); 26] = [
    // A free waits for the work that may use the memory; a pool's does not.
    ("allocation", "malloc", From(Cause::Allocation, &["cuMemFree"])),
    ("allocation", "pool", From(Cause::Dispatch, &["cuLaunchKernel"])),
    ("allocation", "reuse", From(Cause::Dispatch, &["cuLaunchKernel"])),
    // The legacy stream makes the others wait for it and for each other.
    ("default-stream", "legacy", From(Cause::Dependency, &["cuLaunchKernel"])),
    ("default-stream", "non-blocking", AtMost(1)),
    ("default-stream", "per-thread", AtMost(1)),
    ("graph-replay", "sync-each", From(Cause::Sync, &["cuCtxSynchronize"])),
    ("graph-replay", "launches", From(Cause::LaunchBound, &["cuLaunchKernel"])),
    ("graph-replay", "graph", From(Cause::Dispatch, &["cuGraphLaunch"])),
    ("graph-replay", "graph-update", From(Cause::Dispatch, &["cuGraphLaunch"])),
    // Captured launches build the graph as much as the calls that are about nothing else.
    ("graph-replay", "graph-rebuilt", From(Cause::GraphBuild, &["cuGraphInstantiateWithFlags"])),
    ("graph-replay", "fused", From(Cause::Dispatch, &["cuLaunchKernel"])),
    // Each copy back waits for the kernel; the next copy to the device then moves pageable memory on the host.
    ("pipeline", "serial", From(Cause::BlockingCopy, &["cuMemcpyHtoD", "cuMemcpyDtoH"])),
    ("pipeline", "async-pageable", From(Cause::BlockingCopy, &["cuMemcpyDtoHAsync"])),
    ("pipeline", "async-pinned", From(Cause::Dispatch, &[])),
    ("pipeline", "streams-2", AtMost(10)),
    ("pipeline", "streams-4", AtMost(2)),
    ("pipeline", "graph", AtMost(2)),
    ("timing", "device-sync", From(Cause::Sync, &["cuCtxSynchronize"])),
    ("timing", "events", From(Cause::Dispatch, &["cuLaunchKernel"])),
    ("timing", "none", From(Cause::Dispatch, &["cuLaunchKernel"])),
    ("scalar-readback", "sync-pinned", From(Cause::Sync, &["cuStreamSynchronize"])),
    ("scalar-readback", "event", From(Cause::Sync, &["cuEventSynchronize"])),
    // The host polls memory that the device writes, which no record shows: what is left to see is a late launch.
    ("scalar-readback", "mapped-flag", From(Cause::LaunchBound, &["cuLaunchKernel"])),
    ("scalar-readback", "persistent", AtMost(0)),
    // The kernels of a conditional node's body have the graph's launch, though no correlation id says so.
    ("scalar-readback", "device-control", From(Cause::GraphInternal, &["cuGraphLaunch"])),
];

fn fixture(workload: &str, variant: &str) -> Recorded {
    Recorded::new(&format!("workloads/{workload}/{variant}.bubcap"))
}

#[test]
fn most_idle_time_of_each_variant_has_the_root_that_the_variant_is_about() {
    for (workload, variant, expected) in &EXPECTED {
        let what = format!("{workload} {variant}");
        let recorded = fixture(workload, variant);
        let device = recorded.device();
        let (idle, span) = (device.idle_ns().get(), device.span.len().get());
        match *expected {
            AtMost(percent) => assert!(idle * 100 <= span * percent, "{what}: idle {idle} of {span} ns"),
            From(root, calls) => {
                assert!(idle * 100 > span * 2, "{what}: idle {idle} of {span} ns");
                let most = device.idle_by_root.iter().max_by_key(|(_, time)| **time).unwrap();
                assert_eq!(*most.0, root, "{what}: {:?}", device.idle_by_root);
                let named = |call: Option<_>| call.is_some_and(|call| calls.contains(&recorded.trace.call_name(call)));
                let of_root = device.bubbles.iter().filter(|bubble| bubble.root.cause == root);
                let blamed = of_root.filter(|bubble| calls.is_empty() || named(bubble.root.call));
                let blamed: i64 = blamed.map(|bubble| bubble.interval.len().get()).sum();
                assert!(blamed * 2 > most.1.get(), "{what}: {calls:?} are blamed for {blamed} of {}", most.1);
            }
        }
    }
}

#[test]
fn copies_and_kernels_overlap_where_streams_or_branches_let_them() {
    let overlapped = |variant: &str| {
        let recorded = fixture("pipeline", variant);
        let device = recorded.device();
        device.partition.overlapped.get() * 100 / device.span.len().get()
    };
    for serial in ["serial", "async-pageable", "async-pinned"] {
        assert_eq!(fixture("pipeline", serial).device().partition.overlapped.get(), 0, "{serial}");
    }
    assert!(overlapped("streams-2") > 30);
    assert!(overlapped("streams-4") > 70);
    assert!(overlapped("graph") > 70);
}

#[test]
fn control_on_the_device_takes_one_launch_and_no_round_trip() {
    for variant in ["device-control", "persistent"] {
        let recorded = fixture("scalar-readback", variant);
        let trace = &recorded.trace;
        let measured = recorded.analysis.window;
        let mut calls: Vec<_> =
            trace.calls.indices().filter(|call| trace.calls.interval(*call).overlap(measured).get() > 0).collect();
        calls.sort_by_key(|call| trace.calls.start[call.index()]);
        let kinds: Vec<ApiKind> = calls.iter().map(|call| trace.calls.kind[call.index()]).collect();
        let launch = if variant == "persistent" { ApiKind::Launch } else { ApiKind::GraphLaunch };
        assert_eq!(kinds, [launch, ApiKind::DeviceSync], "{variant}");
        let quality = &recorded.analysis.quality;
        assert_eq!((quality.launches_without_ops, quality.orphan_ops), (0, 0), "{variant}");
    }
}

#[test]
fn a_variant_that_does_not_wait_has_no_drained_bubble() {
    for (workload, variant) in [
        ("allocation", "reuse"),
        ("graph-replay", "launches"),
        ("graph-replay", "graph"),
        ("pipeline", "async-pinned"),
        ("timing", "none"),
        ("timing", "events"),
    ] {
        let recorded = fixture(workload, variant);
        let drained = recorded.device().bubbles.iter().filter(|bubble| bubble.drained_by.is_some()).count();
        assert_eq!(drained, 0, "{workload} {variant}");
    }
}

#[test]
fn every_recording_that_a_campaign_names_is_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/workloads");
    let campaigns: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("campaign.json"))
        .filter(|path| path.exists())
        .collect();
    assert_eq!(campaigns.len(), 6);
    for path in campaigns {
        let campaign: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let repetitions = campaign["repetitions"].as_array().unwrap();
        let answers: BTreeSet<&str> = repetitions.iter().map(|run| run["answer"].as_str().unwrap()).collect();
        assert_eq!(answers.len(), 1, "{path:?}: all variants compute the same");
        for variant in campaign["variants"].as_array().unwrap() {
            let of_variant = || repetitions.iter().filter(|run| run["variant"] == *variant);
            assert!(of_variant().any(|run| run["spool"].is_null()), "{path:?} {variant}");
            let spool = of_variant().find_map(|run| run["spool"].as_str()).unwrap();
            assert_eq!(Value::from(spool.trim_end_matches(".bubcap")), *variant);
            assert!(path.with_file_name(spool).exists(), "{path:?} {variant}");
        }
    }
}
