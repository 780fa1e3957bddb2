//! The analysis equals a slow second implementation on thousands of generated timelines.

#![expect(clippy::unwrap_used, reason = "a test helper that fails fails the test")]

mod generate;
mod plain;

use std::collections::{BTreeMap, BTreeSet};

use bubblescope::analysis::waits::Waits;
use bubblescope::analysis::{Analysis, Cause, Constants, DeviceAnalysis, Options, Rule, SegmentKind, analyze, marked};
use bubblescope::trace::{Interval, Ns, OpIdx, Trace};
use generate::{Random, chaos, chaos_of, program};
use plain::{Oracle, Plain, PlainBubble, PlainDevice, PlainRow};

/// The constants of the rules at the scale of the generated timelines.
fn constants() -> Constants {
    Constants {
        latency_min: Ns(1),
        latency_max: Ns(6),
        latency_default: Ns(3),
        latency_samples: 3,
        stall_gap: Ns(8),
        stall_handover: Ns(12),
        stall_latency: Ns(6),
        long_launch: Ns(6),
        long_launch_factor: 3,
        host_gap_factor: 2,
        host_gap_min: Ns(6),
        host_gap_max: Ns(30),
        host_gap_always: Ns(7),
        ..Constants::default()
    }
}

/// The analysis in the oracle's terms.
fn restate(analysis: &Analysis) -> Plain {
    let bubbles = |device: &DeviceAnalysis| {
        let restated = device.bubbles.iter().map(|bubble| PlainBubble {
            start: bubble.interval.start.0,
            end: bubble.interval.end.0,
            before: bubble.before,
            after: bubble.after,
            root: (bubble.root.cause, bubble.root.confidence, bubble.root.rule, bubble.root.call, bubble.root.site),
            drained_by: bubble.drained_by.map(|drain| (drain.call, drain.cause, drain.confidence)),
            refill_of: bubble.refill_of,
            segments: device
                .segments_of(bubble)
                .iter()
                .map(|segment| {
                    let interval = segment.interval;
                    (interval.start.0, interval.end.0, segment.kind, segment.call(), segment.range())
                })
                .collect(),
        });
        restated.collect()
    };
    let devices = analysis.devices.iter().map(|device| PlainDevice {
        device: device.device,
        span: (device.span.start.0, device.span.end.0),
        partition: [
            device.partition.compute_only.0,
            device.partition.overlapped.0,
            device.partition.exposed_copy.0,
            device.partition.idle.0,
            device.exposed_comm_ns.0,
        ],
        ops: device.ops,
        latency: device.usual_latency.0,
        bubbles: bubbles(device),
        peers: (
            device.peer_waits.by_peer.iter().map(|(peer, wait)| (peer.0, wait.collectives, wait.wait.0)).collect(),
            device.peer_waits.total.0,
        ),
        streams: device.streams.iter().map(|lane| (lane.stream.0, lane.ops, lane.busy.0, lane.stream_gap.0)).collect(),
    });
    let rows = analysis.sync_calls.iter().map(|row| {
        let restated = PlainRow {
            calls: row.call_list.clone(),
            sums: [
                row.blocked.0,
                row.useful_wait.0,
                row.idle_while_blocked.0,
                row.bubbles_drained.0,
                row.bubbles_caused.0,
                row.refill.0,
            ],
            counts: [row.drained_count, row.caused_count],
            longest: row.lengths.max.0,
            ahead_most: row.run_ahead.work.max.0,
            ahead_ops_median: row.run_ahead.ops_p50,
        };
        ((row.api.clone(), row.site.clone()), restated)
    });
    Plain {
        devices: devices.collect(),
        rows: rows.collect(),
        orphans: analysis.quality.orphan_ops,
        without_ops: analysis.quality.launches_without_ops,
        negative: analysis.quality.negative_latency,
        profiler: analysis.quality.profiler.0,
    }
}

/// Compares one timeline, and checks the sums that hold on any.
fn compare(what: &str, trace: &Trace, window: Option<Interval>) -> Analysis {
    let options = Options { window, constants: constants(), ..Options::default() };
    let analysis = analyze(trace, &options);
    for device in &analysis.devices {
        let idle = device.idle_ns();
        assert_eq!(device.partition.span(), device.span.len(), "{what}");
        assert_eq!(device.idle_by_root.values().copied().sum::<Ns>(), idle, "{what}");
        assert_eq!(device.idle_by_segment.values().copied().sum::<Ns>(), idle, "{what}");
        let mut by_root: BTreeMap<Cause, Ns> = BTreeMap::new();
        for bubble in &device.bubbles {
            *by_root.entry(bubble.root.cause).or_default() += bubble.interval.len();
        }
        assert_eq!(device.idle_by_root, by_root, "{what}");
    }
    let window = match window {
        // An edge beyond the trace is no edge.
        Some(window) => (
            if window.start <= Ns::ZERO { -1 } else { window.start.0 },
            if window.end >= trace.end { trace.end.0 + 1 } else { window.end.0 },
        ),
        None => (-1, trace.end.0 + 1),
    };
    let waits = Waits::new(trace);
    let oracle = Oracle { trace, waits: &waits, constants: &options.constants, window };
    for op in trace.ops.indices() {
        assert_eq!(trace.ops.launch(op), oracle.linked(op), "{what}: {op:?}");
    }
    let (expected, found) = (oracle.run(), restate(&analysis));
    for (expected, found) in expected.devices.iter().zip(&found.devices) {
        for (expected, found) in expected.bubbles.iter().zip(&found.bubbles) {
            assert_eq!(expected, found, "{what}");
        }
    }
    assert_eq!(expected, found, "{what}");
    analysis
}

/// What the generated timelines reached.
#[derive(Default)]
struct Reached {
    rules: BTreeSet<Rule>,
    causes: BTreeSet<Cause>,
    segments: BTreeSet<SegmentKind>,
    refills: usize,
    /// Waits in collectives for a device.
    peers: usize,
}

impl Reached {
    fn note(&mut self, analysis: &Analysis) {
        for device in &analysis.devices {
            self.rules.extend(device.bubbles.iter().map(|bubble| bubble.root.rule));
            self.causes.extend(device.idle_by_root.keys());
            self.segments.extend(device.idle_by_segment.keys());
            self.peers += device.peer_waits.by_peer.len();
            self.refills += device.bubbles.iter().filter(|bubble| bubble.refill_of.is_some()).count();
        }
    }
}

#[test]
fn unrelated_records() {
    let mut bodies = 0;
    for seed in 0..1_000 {
        let trace = chaos(seed);
        compare(&format!("chaos {seed}"), &trace, None);
        let is_body = |op: &OpIdx| !trace.ops.correlation[op.index()].is_some() && trace.ops.launch(*op).is_some();
        bodies += trace.ops.indices().filter(is_body).count();
    }
    assert!(bodies > 30, "{bodies}");
}

#[test]
fn programs_reach_every_rule() {
    let mut reached = Reached::default();
    for seed in 0..1_500 {
        reached.note(&compare(&format!("program {seed}"), &program(seed), None));
    }
    // A comparison that never meets a rule would say nothing about it.
    assert_eq!(reached.rules.len(), 17, "{:?}", reached.rules);
    assert_eq!(reached.causes.len(), Cause::ALL.len(), "{:?}", reached.causes);
    assert_eq!(reached.segments.len(), SegmentKind::ALL.len(), "{:?}", reached.segments);
    assert!(reached.refills > 100, "{}", reached.refills);
    assert!(reached.peers > 50, "{}", reached.peers);
}

#[test]
fn windows() {
    for seed in 0..700 {
        let trace = if seed % 2 == 0 { program(seed) } else { chaos(seed) };
        let mut random = Random::new(seed);
        let start = random.range(-5, trace.end.0 + 5);
        let window = Interval::new(Ns(start), Ns(start + random.range(0, trace.end.0 + 5)));
        compare(&format!("window {window:?} of {seed}"), &trace, Some(window));
    }
}

#[test]
fn every_tick_of_a_marked_interval_counts() {
    let mut reached = [0; 5];
    for seed in 0..400 {
        let trace = if seed % 2 == 0 { program(seed) } else { chaos(seed) };
        let mut random = Random::new(seed);
        let start = random.range(-5, trace.end.0 + 5);
        let interval = Interval::new(Ns(start), Ns(start + random.range(0, trace.end.0 + 5)));
        let whole = analyze(&trace, &Options { constants: constants(), ..Options::default() });
        let found = marked(&trace, &[], interval, &constants());
        let what = format!("{interval:?} of {seed}");
        assert_eq!(found, marked(&trace, &whole.devices, interval, &constants()), "{what}");
        assert_eq!(found.devices.len(), whole.devices.len(), "{what}");
        for (part, device) in found.devices.iter().zip(&whole.devices) {
            let ops = trace.ops.indices().filter(|&op| trace.op_device(op) == device.device);
            let ops: Vec<(bool, Interval)> =
                ops.map(|op| (trace.ops.kind[op.index()].is_copy(), trace.ops.interval(op))).collect();
            let first = ops.iter().map(|(_, op)| op.start).min().unwrap();
            let last = ops.iter().map(|(_, op)| op.end).max().unwrap();
            let mut did = [0; 5];
            let (mut by_root, mut by_segment) = (BTreeMap::new(), BTreeMap::new());
            for tick in (interval.start.0..interval.end.0).map(Ns) {
                let runs = |copies: bool| ops.iter().any(|(copy, op)| *copy == copies && op.contains(tick));
                let now = match (runs(false), runs(true)) {
                    (true, false) => 0,
                    (true, true) => 1,
                    (false, true) => 2,
                    (false, false) if first <= tick && tick < last => 3,
                    (false, false) => 4,
                };
                did[now] += 1;
                if now == 3 {
                    let bubble = device.bubbles.iter().find(|bubble| bubble.interval.contains(tick)).unwrap();
                    let pieces = device.segments_of(bubble);
                    let piece = pieces.iter().find(|piece| piece.interval.contains(tick)).unwrap();
                    *by_root.entry(bubble.root.cause).or_insert(Ns::ZERO) += Ns(1);
                    *by_segment.entry(piece.kind).or_insert(Ns::ZERO) += Ns(1);
                }
            }
            let partition = part.partition;
            let figures = [partition.compute_only, partition.overlapped, partition.exposed_copy, partition.idle];
            let figures: Vec<i64> = figures.into_iter().chain([found.outside(part)]).map(Ns::get).collect();
            assert_eq!(figures, did, "{what}");
            assert_eq!((&part.idle_by_root, &part.idle_by_segment), (&by_root, &by_segment), "{what}");
            for bubble in &part.bubbles {
                let pieces = part.segments_of(bubble).iter().map(|piece| piece.interval.len());
                assert_eq!(pieces.sum::<Ns>(), bubble.interval.len(), "{what}: its pieces tile it");
            }
            reached.iter_mut().zip(did).for_each(|(reached, ticks)| *reached += i64::from(ticks > 0));
        }
    }
    assert!(reached.iter().all(|&times| times > 50), "{reached:?}");
}

#[test]
fn centuries_do_no_harm() {
    for seed in 0..300 {
        let trace = chaos_of(seed, i64::MAX / 500);
        for device in &analyze(&trace, &Options::default()).devices {
            assert_eq!(device.partition.span(), device.span.len());
        }
    }
}
