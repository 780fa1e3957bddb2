//! Reports and comparisons made by hand, for tests.

use std::collections::BTreeMap;

use super::compare::{Alignment, Compare, Origin, Recorded, Repetition, Setting, Skipped};
use super::contract::{
    Blamed, Bubble, BubbleFigures, Device, DrainedBy, Evidence, Finding, IterationSource, Iterations, Launches,
    PeerWait, Process, Quality, Replay, Report, Root, RunAhead, Segment, Source, Stream, SyncCall, Thread, WhatIf,
    Window, Workload,
};
use crate::analysis::{Cause, Confidence, FindingId, Rule, SegmentKind, Severity};
use crate::trace::{CaptureMode, Ns, StreamKind};

fn map<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn source(path: &str) -> Source {
    Source {
        path: path.to_owned(),
        format: "bubcap".to_owned(),
        captured_on: Some("2026-11-29T21:03:44Z".to_owned()),
        capture_mode: CaptureMode::Node,
        command: None,
        machine: map([("CUPTI", "12.9"), ("GPU", "NVIDIA H200"), ("driver", "570.86.15")]),
        workload: None,
    }
}

/// A device whose partition and sums hold; idle time follows from the roots.
pub(super) fn device(number: u32, compute: i64, copy: i64, roots: &[(Cause, i64)], count: u64) -> Device {
    let idle: i64 = roots.iter().map(|(_, ns)| ns).sum();
    let span = compute + copy + idle;
    let per_bubble = if count == 0 { 0 } else { idle / count as i64 };
    Device {
        device: number,
        name: "NVIDIA H200".to_owned(),
        span_ns: Ns(span),
        busy_ns: Ns(compute + copy),
        compute_only_ns: Ns(compute - copy / 4),
        overlapped_ns: Ns(copy / 4),
        exposed_copy_ns: Ns(copy),
        exposed_comm_ns: Ns::ZERO,
        waits_for_peer_ns: Some(Ns::ZERO),
        peers: Vec::new(),
        idle_ns: Ns(idle),
        idle_fraction: idle as f64 / span as f64,
        ops: 3_000,
        bubbles: BubbleFigures {
            count,
            p50_ns: Ns(per_bubble),
            p95_ns: Ns(per_bubble * 5 / 4),
            max_ns: Ns(per_bubble * 7),
            max_besides_profiler_ns: None,
            histogram: Vec::new(),
        },
        idle_by_root: roots.iter().map(|&(cause, ns)| (cause, Ns(ns))).collect(),
        blamed: roots.iter().filter_map(|&(cause, ns)| blamed(cause, ns, count)).collect(),
        host_time: Vec::new(),
        idle_by_segment: BTreeMap::from([
            (SegmentKind::SyncReturn, Ns(idle / 2)),
            (SegmentKind::LaunchLatency, Ns(idle - idle / 2)),
        ]),
        streams: vec![Stream {
            stream: 7,
            context: 1,
            pid: 4242,
            kind: StreamKind::NonBlocking,
            ops: 3_000,
            busy_ns: Ns(compute + copy),
            stream_gap_ns: Ns(idle),
        }],
    }
}

/// The calls of one API that are to blame for all of a cause.
fn blamed(cause: Cause, ns: i64, bubbles: u64) -> Option<Blamed> {
    let api = match cause {
        Cause::Sync => "cuStreamSynchronize",
        Cause::BlockingCopy => "cuMemcpyDtoH",
        Cause::Allocation => "cuMemFree",
        Cause::ModuleLoad => "cuModuleLoadData",
        _ => return None,
    };
    Some(Blamed { cause, api: api.to_owned(), bubbles, idle_ns: Ns(ns) })
}

/// A recording without anything to complain of.
pub(super) fn clean() -> Report {
    Report {
        source: source("train.bubbles.parquet"),
        window: Window { start_ns: Ns(0), end_ns: Ns(1_204_000_000) },
        devices: vec![device(
            0,
            1_190_000_000,
            2_000_000,
            &[(Cause::Dispatch, 900_000), (Cause::LaunchBound, 4_000)],
            1_126,
        )],
        processes: vec![Process {
            pid: 4242,
            name: "train".to_owned(),
            threads: vec![Thread { tid: 4242, name: String::new(), calls: 9_000 }],
        }],
        launches: Launches {
            count: 3_000,
            call_p50_ns: Ns(3_900),
            latency_p50_ns: Ns(6_100),
            negative_latency: 0,
            ops_per_launch_p50: 1,
        },
        findings: Some(Vec::new()),
        quality: Quality { idle_reliable: true, ..Quality::default() },
        ..Report::default()
    }
}

fn bubble(start: i64, length: i64) -> Bubble {
    Bubble {
        device: 0,
        start_ns: Ns(start),
        dur_ns: Ns(length),
        before: "Memcpy DtoH (Device -> Pinned)".to_owned(),
        after: "void solver::jacobi_step<float, 256>(float const*, float*, float*, int)".to_owned(),
        root: Root {
            cause: Cause::Sync,
            api: Some("cuStreamSynchronize".to_owned()),
            site: None,
            tid: Some(4242),
            confidence: Confidence::Certain,
            rule: Rule::DrainFillsHalf,
        },
        drained_by: Some(DrainedBy {
            api: "cuStreamSynchronize".to_owned(),
            tid: 4242,
            confidence: Confidence::Certain,
        }),
        segments: vec![
            Segment {
                kind: SegmentKind::SyncReturn,
                start_ns: Ns(start),
                dur_ns: Ns(length / 2),
                api: Some("cuStreamSynchronize".to_owned()),
                range: None,
            },
            Segment {
                kind: SegmentKind::LaunchLatency,
                start_ns: Ns(start + length / 2),
                dur_ns: Ns(length - length / 2),
                api: Some("cuLaunchKernel".to_owned()),
                range: None,
            },
        ],
    }
}

/// A loop that reads a scalar back in every iteration.
pub(super) fn sync_bound() -> Report {
    let mut report = clean();
    report.source = source("sync.bubbles.parquet");
    report.source.workload = Some(Workload {
        workload: "scalar-readback".to_owned(),
        variant: "sync".to_owned(),
        options: map([("kernel-us", "2"), ("kernels", "1"), ("size", "65536")]),
        iterations: 1_000,
        warmup: 50,
        answer: "0x3f9d70a4".to_owned(),
        measured_ns: Some(Ns(19_200_000)),
    });
    report.window = Window { start_ns: Ns(35_120_334), end_ns: Ns(54_320_334) };
    report.devices = vec![device(
        0,
        7_400_000,
        1_200_000,
        &[
            (Cause::Sync, 9_810_000),
            (Cause::LaunchBound, 700_000),
            (Cause::Dispatch, 12_000),
            (Cause::HostBound, 9_000),
        ],
        1_000,
    )];
    report.sync_calls = vec![
        SyncCall {
            api: "cuStreamSynchronize".to_owned(),
            site: None,
            calls: 1_000,
            blocked_ns: Ns(12_400_000),
            useful_wait_ns: Ns(8_300_000),
            idle_while_blocked_ns: Ns(4_100_000),
            bubbles_drained_ns: Ns(10_200_000),
            bubbles_caused_ns: Ns(9_810_000),
            refill_ns: Ns::ZERO,
            recoverable_ns: Some(Ns(7_810_000)),
            p50_ns: Ns(12_300),
            p95_ns: Ns(13_900),
            max_ns: Ns(80_000),
            run_ahead: Some(RunAhead { p50_ns: Ns(8_100), p95_ns: Ns(8_500), max_ns: Ns(9_000), ops_p50: 2 }),
        },
        SyncCall {
            api: "cudaMemcpy".to_owned(),
            site: Some("log metrics".to_owned()),
            calls: 1,
            blocked_ns: Ns(21_400),
            useful_wait_ns: Ns(21_400),
            p50_ns: Ns(21_400),
            p95_ns: Ns(21_400),
            max_ns: Ns(21_400),
            ..SyncCall::default()
        },
    ];
    report.iterations = Some(Iterations {
        source: IterationSource::LaunchSequence { launches: 2 },
        count: 1_000,
        warmup: 50,
        period_p50_ns: Ns(19_130),
        period_p95_ns: Ns(21_050),
        idle_p50_ns: Ns(10_480),
        blocking_calls_p50: 1,
    });
    let assumption = "the decision may lag one iteration behind";
    let remedy = WhatIf {
        change: "async=cuStreamSynchronize".to_owned(),
        span_ns: Ns(11_321_000),
        gain_ns: Ns(7_810_000),
        gain_fraction: 0.408,
        at_least: false,
        assumptions: vec![assumption.to_owned()],
    };
    report.replay = Some(Replay {
        unchanged_error: 0.0081,
        withheld: false,
        idle_ns: Some(report.devices[0].idle_ns),
        what_if: vec![
            remedy.clone(),
            WhatIf {
                change: "host=0.5".to_owned(),
                span_ns: Ns(16_001_000),
                gain_ns: Ns(3_130_000),
                gain_fraction: 0.164,
                at_least: false,
                assumptions: Vec::new(),
            },
        ],
        all_together: Some(WhatIf {
            change: "async=cuStreamSynchronize, host=0.5".to_owned(),
            span_ns: Ns(10_900_000),
            gain_ns: Ns(8_231_000),
            gain_fraction: 0.430,
            at_least: false,
            assumptions: vec![assumption.to_owned()],
        }),
        // As if a faster host had been asked for.
        remedies_together: Some(remedy),
    });
    report.findings = Some(vec![
        Finding {
            id: FindingId::ScalarReadback,
            severity: Severity::High,
            title: "A few bytes are read back to the host, 1,000 times: each time the GPU runs dry".to_owned(),
            recoverable_ns: Ns(7_810_000),
            at_least: false,
            count: 1_000,
            evidence: vec![Evidence {
                text: "4 bytes are copied to the host, and cuStreamSynchronize waits for them before the next launch"
                    .to_owned(),
                api: Some("cuStreamSynchronize".to_owned()),
                site: None,
                at_ns: vec![Ns(35_139_000), Ns(35_158_210), Ns(35_177_404), Ns(35_196_000)],
            }],
            remedy: "Copy the scalar into pinned memory with an asynchronous copy, record an event behind it, and let \
                     the decision lag a few iterations; or decide on the device, with a conditional graph node."
                .to_owned(),
        },
        Finding {
            id: FindingId::TinyLaunches,
            severity: Severity::Low,
            title: "Launches take longer than the kernels they start".to_owned(),
            recoverable_ns: Ns(310_000),
            at_least: false,
            count: 1,
            evidence: Vec::new(),
            remedy: "Submit several iterations as one graph.".to_owned(),
        },
    ]);
    report.bubbles = vec![bubble(36_201_442, 73_617), bubble(51_000_001, 21_502), bubble(40_118_766, 13_998)];
    report.bubbles[2].root.cause = Cause::LaunchBound;
    report.bubbles[2].root.api = Some("cuLaunchKernel".to_owned());
    report.bubbles[2].root.confidence = Confidence::Guess;
    (report.bubbles[2].segments[0].kind, report.bubbles[2].segments[0].api) = (SegmentKind::HostCode, None);
    report.quality.profiler_ns = Ns(140_000);
    report
}

/// A recording that lost records.
pub(super) fn unreliable() -> Report {
    let mut report = sync_bound();
    report.source.workload = None;
    report.source.command = Some("python train.py --batch 64".to_owned());
    report.source.capture_mode = CaptureMode::Graph;
    report.findings = None;
    report.iterations = None;
    report.replay = Some(Replay { unchanged_error: 0.082, withheld: true, ..Replay::default() });
    report.sync_calls.iter_mut().for_each(|row| row.recoverable_ns = None);
    report.launches.negative_latency = 3;
    report.quality = Quality {
        idle_reliable: false,
        reasons: vec![
            "12,004 records were dropped: ops may be missing where the device looks idle.".to_owned(),
            "Process 4711 shared GPU 0 and was not recorded.".to_owned(),
        ],
        dropped_records: 12_004,
        ops_without_time: 1,
        cut_bytes: 1_312,
        orphan_ops: 17,
        warnings: vec!["The clock of the host was set back while recording.".to_owned()],
        ..Quality::default()
    };
    report
}

/// A recording of four devices, one of which idles.
pub(super) fn many_devices() -> Report {
    let mut report = clean();
    report.source = source("ranks.json.gz");
    report.source.format = "kineto".to_owned();
    report.source.capture_mode = CaptureMode::Unknown;
    report.devices = vec![
        device(0, 980_000_000, 10_000_000, &[(Cause::Dispatch, 10_000_000)], 3_121),
        device(1, 700_000_000, 10_000_000, &[(Cause::HostBound, 240_000_000), (Cause::Dispatch, 50_000_000)], 2_877),
        device(2, 1_000_000_000, 0, &[], 0),
        device(3, 880_000_000, 0, &[(Cause::HostBound, 120_000_000)], 1),
    ];
    report.devices[2].exposed_comm_ns = Ns(412_000_000);
    report.devices[2].waits_for_peer_ns = Some(Ns(301_000_000));
    report.devices[2].peers = vec![
        PeerWait { device: 1, collectives: 38, wait_ns: Ns(290_000_000) },
        PeerWait { device: 3, collectives: 1, wait_ns: Ns(11_000_000) },
    ];
    (report.quality.graph_ops, report.quality.graph_launch_idle_ns) = (40_000, Ns(31_200_000));
    report.bubbles = vec![bubble(3_201_442, 120_000_000)];
    report.bubbles[0].device = 3;
    report.bubbles[0].root =
        Root { cause: Cause::HostBound, api: Some("cudaLaunchKernel".to_owned()), ..report.bubbles[0].root.clone() };
    (report.bubbles[0].segments[0].kind, report.bubbles[0].segments[0].api) = (SegmentKind::HostCode, None);
    report
}

/// Launches, and nothing from a device.
pub(super) fn not_captured() -> Report {
    let mut report = clean();
    report.devices.clear();
    report.findings = None;
    report.quality = Quality {
        idle_reliable: false,
        reasons: vec!["GPU activity was not captured: 3,000 launches and no op.".to_owned()],
        gpu_not_captured: true,
        launches_without_ops: 3_000,
        ..Quality::default()
    };
    report
}

/// One run of `iterations` iterations, recorded or not.
pub(super) fn run(variant: &str, per_iteration: i64, iterations: u64, idle: Option<&[(Cause, i64)]>) -> Repetition {
    Repetition {
        variant: variant.to_owned(),
        wall: Ns(per_iteration * iterations as i64),
        iterations,
        answer: Some("0x3f9d70a4".to_owned()),
        recorded: idle.map(|roots| Recorded {
            busy: Ns(8_000 * iterations as i64),
            idle_by_root: roots.iter().map(|&(cause, ns)| (cause, Ns(ns * iterations as i64))).collect(),
            sync_calls: if variant == "sync" { iterations } else { iterations / 8 },
            idle_reliable: true,
            reasons: Vec::new(),
        }),
    }
}

/// Nine interleaved rounds of three variants, each with and without recording.
pub(crate) fn compared() -> Compare {
    let mut runs = Vec::new();
    for round in 0..9 {
        let noise = (round * 7 % 9) * 20;
        runs.push(run("sync", 19_010 + noise, 1_000, None));
        runs.push(run(
            "sync",
            22_140 + noise,
            1_000,
            Some(&[(Cause::Sync, 13_020 + noise), (Cause::LaunchBound, 650)]),
        ));
        runs.push(run("async", 8_590 + noise, 1_000, None));
        runs.push(run("async", 11_020 + noise, 1_000, Some(&[(Cause::LaunchBound, 2_500 + noise)])));
        runs.push(run("graph", 5_680 + noise, 1_000, None));
        runs.push(run("graph", 5_930 + noise, 1_000, Some(&[(Cause::GraphInternal, 900 + noise), (Cause::Sync, 310)])));
    }
    let setting = Setting {
        workload: Some("scalar-readback".to_owned()),
        options: map([("kernel-us", "2"), ("kernels", "1"), ("size", "65536")]),
        machine: map([("CUPTI", "12.9"), ("GPU", "NVIDIA H200"), ("driver", "570.86.15")]),
        skipped: vec![Skipped {
            variant: "device-graph".to_owned(),
            reason: "the driver is older than CUDA 12.4, which it needs.".to_owned(),
        }],
        ..Setting::default()
    };
    Compare::new(setting, &runs).unwrap()
}

/// Two trace files.
pub(super) fn compared_traces() -> Compare {
    let setting = Setting { from: Origin::Traces, aligned_by: Alignment::LaunchSequence, ..Setting::default() };
    let runs = [
        run("before.json.gz", 1_204_000, 120, Some(&[(Cause::BlockingCopy, 410_000), (Cause::HostBound, 95_500)])),
        run("after.json.gz", 1_000_100, 118, Some(&[(Cause::HostBound, 201_000)])),
    ];
    let mut compare = Compare::new(setting, &runs).unwrap();
    for variant in &mut compare.variants {
        variant.path = Some(variant.variant.clone());
    }
    compare
}
