//! Small traces worked out by hand, to the nanosecond.

mod cancelling;
mod collectives;
mod device;
mod graphs;
mod host;
mod iterations;
mod part;
mod quality;
mod waits;

use super::scene::Scene;
use super::{Analysis, Cause, DeviceAnalysis, Options, SegmentKind, analyze};
use crate::trace::{Ns, Trace};

fn analysis(trace: &Trace) -> Analysis {
    let analysis = analyze(trace, &Options::default());
    for device in &analysis.devices {
        assert_sums(device);
    }
    analysis
}

/// The identities that hold on every device of every trace.
fn assert_sums(device: &DeviceAnalysis) {
    assert_eq!(device.partition.span(), device.span.len());
    assert_eq!(device.bubbles.iter().map(|bubble| bubble.interval.len()).sum::<Ns>(), device.idle_ns());
    assert_eq!(device.idle_by_root.values().copied().sum::<Ns>(), device.idle_ns());
    assert_eq!(device.idle_by_segment.values().copied().sum::<Ns>(), device.idle_ns());
    for bubble in &device.bubbles {
        let mut at = bubble.interval.start;
        for segment in device.segments_of(bubble) {
            assert_eq!(segment.interval.start, at);
            assert!(!segment.interval.is_empty());
            at = segment.interval.end;
        }
        assert_eq!(at, bubble.interval.end);
    }
}

fn segments(device: &DeviceAnalysis, bubble: usize) -> Vec<(SegmentKind, i64)> {
    let segments = device.segments_of(&device.bubbles[bubble]);
    segments.iter().map(|segment| (segment.kind, segment.interval.len().0)).collect()
}

fn causes(device: &DeviceAnalysis) -> Vec<Cause> {
    device.bubbles.iter().map(|bubble| bubble.root.cause).collect()
}

/// Each round: one kernel of 20 µs, a sync, 2 µs of host code, a launch of 3 µs, 1 µs to start.
fn synced_loop(rounds: i64) -> Trace {
    let mut scene = Scene::new();
    for round in 0..rounds {
        let at = round * 30_000;
        scene.launch(round as u64 * 2 + 1, (at, at + 3_000), 7, (at + 4_000, at + 24_000));
        scene.stream_sync(round as u64 * 2 + 2, 7, at + 3_500, at + 28_000);
    }
    scene.finish()
}
