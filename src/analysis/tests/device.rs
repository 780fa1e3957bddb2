//! What a device does by itself: how its ops lie, and what they wait for among each other.

use super::super::scene::Scene;
use super::super::{Analysis, Cause, Confidence, Options, Rule, analyze};
use super::{analysis, causes};
use crate::trace::{Interval, MemoryKind, Ns, StreamKind};

#[test]
fn copies_under_kernels_overlap_and_alone_are_exposed() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 100), 7, (1_000, 5_000));
    scene.copy((MemoryKind::Pinned, MemoryKind::Device), 8, 0, 3_000, 7_000);
    scene.kernel(9, 0, 6_000, 6_500);
    scene.kernel(9, 0, 8_000, 9_000);
    let found = analysis(&scene.finish());
    let partition = found.devices[0].partition;
    assert_eq!(partition.compute_only, Ns(2_000 + 1_000));
    assert_eq!(partition.overlapped, Ns(2_000 + 500));
    assert_eq!(partition.exposed_copy, Ns(1_500));
    assert_eq!(partition.idle, Ns(1_000));
    assert_eq!(causes(&found.devices[0]), [Cause::Unattributed]);
    assert_eq!(found.quality.orphan_ops, 3);
    let streams: Vec<(i64, i64)> =
        found.devices[0].streams.iter().map(|stream| (stream.busy.0, stream.stream_gap.0)).collect();
    assert_eq!(streams, [(4_000, 0), (4_000, 0), (1_500, 1_500)]);
}

#[test]
fn copies_that_take_their_time_do_not_make_launches_late() {
    // Set-up: the device is empty before each copy. Then kernels, launched 8 µs before their turn.
    let found = |memory: (MemoryKind, MemoryKind), name: &str, loop_only: bool| {
        let mut scene = Scene::new();
        for index in 0..8 {
            let at = index * 100_000;
            scene.copies((name, 1 << 20), memory, index as u64 + 1, (at, at + 80_000), (7, at + 18_000, at + 70_000));
        }
        for index in 0..20 {
            let at = 1_000_000 + index * 10_000;
            scene.launch(index as u64 + 100, (at - 9_000, at - 7_000), 7, (at, at + 9_000));
        }
        let window = loop_only.then(|| Interval::new(Ns(990_000), Ns(1_300_000)));
        let options = Options { window, ..Options::default() };
        let found = analyze(&scene.finish(), &options);
        let device = &found.devices[0];
        (device.usual_latency, causes(device).split_off(device.bubbles.len() - 19))
    };
    let (pageable, pinned) = ((MemoryKind::Pageable, MemoryKind::Device), (MemoryKind::Pinned, MemoryKind::Device));
    let from_device = (MemoryKind::Device, MemoryKind::Pinned);
    for (memory, name) in
        [(pageable, "cudaMemcpyAsync_v3020"), (pageable, "cudaMemcpy"), (from_device, "cuMemcpyDtoH_v2")]
    {
        for loop_only in [false, true] {
            let expected = (Ns(5_000), vec![Cause::Dispatch; 19]);
            assert_eq!(found(memory, name, loop_only), expected, "{name}, the loop alone: {loop_only}");
        }
    }
    assert_eq!(found(pinned, "cudaMemcpyAsync_v3020", false).0, Ns(18_000), "such a copy starts at once");
}

/// Two streams: a kernel on 7, an event recorded after it, stream 8 waits for it, all enqueued long before.
fn cross_stream(handle_reused: bool) -> Analysis {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 50_000));
    scene.record_event(2, 1_100, 7, 5, None);
    scene.launch(3, (1_300, 2_000), 8, (3_000, 4_000));
    scene.wait_event(4, 2_100, 8, 5, None);
    scene.launch(5, (2_300, 3_000), 8, (51_500, 60_000));
    if handle_reused {
        // A later recording of the same handle is no answer to an earlier wait.
        scene.record_event(6, 3_100, 8, 5, None);
    }
    analysis(&scene.finish())
}

#[test]
fn a_recorded_wait_is_a_dependency() {
    for reused in [false, true] {
        let found = cross_stream(reused);
        let bubble = found.devices[0].bubbles[0];
        assert_eq!(bubble.interval, Interval::new(Ns(50_000), Ns(51_500)));
        let root = bubble.root;
        assert_eq!(
            (root.cause, root.confidence, root.rule),
            (Cause::Dependency, Confidence::Certain, Rule::RecordedWait)
        );
    }
}

#[test]
fn a_wait_that_was_over_long_ago_is_no_dependency() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 3_000));
    scene.record_event(2, 1_100, 7, 5, None);
    scene.launch(3, (1_300, 2_000), 8, (4_000, 60_000));
    scene.wait_event(4, 2_100, 8, 5, None);
    scene.launch(5, (2_300, 3_000), 8, (61_000, 62_000));
    let found = analysis(&scene.finish());
    assert_eq!(causes(&found.devices[0]).last(), Some(&Cause::Dispatch));
}

#[test]
fn a_wait_that_was_over_before_the_op_ahead_is_no_dependency() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 59_500));
    scene.record_event(2, 1_100, 7, 5, None);
    scene.launch(3, (1_300, 2_000), 8, (4_000, 60_000));
    scene.wait_event(4, 2_100, 8, 5, None);
    scene.launch(5, (2_300, 3_000), 8, (61_000, 62_000));
    let found = analysis(&scene.finish());
    assert_eq!(causes(&found.devices[0]), [Cause::Dispatch]);
}

#[test]
fn the_legacy_default_stream_is_named_where_it_held_an_op() {
    // The second op was launched long before the first one ended; nothing else held it.
    let rule = |kinds: [StreamKind; 2], launches: [i64; 2]| {
        let mut scene = Scene::new();
        scene.stream_kind(7, kinds[0]);
        scene.stream_kind(13, kinds[1]);
        scene.launch(1, (launches[0], launches[0] + 1_000), 7, (20_000, 60_000));
        scene.launch(2, (launches[1], launches[1] + 1_000), 13, (62_000, 70_000));
        let root = analysis(&scene.finish()).devices[0].bubbles[0].root;
        (root.cause, root.confidence, root.rule)
    };
    let held = (Cause::Dependency, Confidence::Certain, Rule::LegacyDefaultStream);
    let guessed = (Cause::Dependency, Confidence::Guess, Rule::StreamWasFree);
    assert_eq!(rule([StreamKind::Null, StreamKind::Blocking], [0, 2_000]), held);
    assert_eq!(rule([StreamKind::Blocking, StreamKind::Null], [0, 2_000]), held);
    // An op waits only for what was launched before it.
    assert_eq!(rule([StreamKind::Null, StreamKind::Blocking], [2_000, 0]), guessed);
    for kinds in [
        [StreamKind::Null, StreamKind::NonBlocking],
        [StreamKind::Blocking, StreamKind::Blocking],
        [StreamKind::Unknown, StreamKind::Null],
    ] {
        assert_eq!(rule(kinds, [0, 2_000]), guessed, "{kinds:?}");
    }
}

#[test]
fn overlapping_ops_of_one_stream_are_normal() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 10_000));
    scene.launch(2, (1_100, 2_000), 7, (9_000, 12_000));
    let found = analysis(&scene.finish());
    assert_eq!(found.devices[0].streams[0].busy, Ns(10_000));
    assert_eq!(found.devices[0].streams[0].stream_gap, Ns(0));
    assert_eq!(found.devices[0].idle_ns(), Ns(0));
}

#[test]
fn engines_take_longer_to_hand_over_than_to_go_on() {
    let root = |copy: bool, gap: i64| {
        let mut scene = Scene::new();
        scene.launch(1, (0, 1_000), 7, (2_000, 100_000));
        let op = (100_000 + gap, 200_000 + gap);
        if copy {
            let memory = (MemoryKind::Device, MemoryKind::Pinned);
            scene.copies(("cudaMemcpyAsync_v3020", 4), memory, 2, (1_100, 2_000), (7, op.0, op.1));
        } else {
            scene.launch(2, (1_100, 2_000), 7, op);
        }
        analysis(&scene.finish()).devices[0].bubbles[0].root.cause
    };
    assert_eq!((root(true, 60_000), root(true, 60_001)), (Cause::Dispatch, Cause::Stalled));
    assert_eq!((root(false, 20_000), root(false, 20_001)), (Cause::Dispatch, Cause::Stalled));
}
