//! Calls that wait, the bubbles that they drain and the refill behind those.

use super::super::scene::Scene;
use super::super::{Cause, Confidence, Rule, SegmentKind};
use super::{analysis, causes, segments, synced_loop};
use crate::trace::{MemoryKind, Ns, StreamKind, SyncKind};

#[test]
fn a_long_kernel_and_one_sync_at_the_end_have_no_bubble() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 3_000), 7, (6_000, 10_006_000));
    scene.stream_sync(2, 7, 4_000, 10_010_000);
    let found = analysis(&scene.finish());
    let device = &found.devices[0];
    assert!(device.bubbles.is_empty());
    assert_eq!((device.busy_ns(), device.idle_ns()), (Ns(10_000_000), Ns(0)));
    let row = &found.sync_calls[0];
    assert_eq!((row.api.as_str(), row.calls()), ("cudaStreamSynchronize", 1));
    assert_eq!(row.blocked, Ns(10_006_000));
    assert_eq!(row.useful_wait, Ns(10_000_000));
    // The device did nothing before its first op and after its last one, but was not idle.
    assert_eq!(row.idle_while_blocked, Ns(0));
    assert_eq!((row.bubbles_drained, row.bubbles_caused, row.refill), (Ns(0), Ns(0), Ns(0)));
    assert_eq!((row.run_ahead.work.max, row.run_ahead.ops_p50), (Ns(10_000_000), 1));
}

#[test]
fn a_sync_drains_and_explains_the_bubble_after_it() {
    let trace = synced_loop(6);
    let found = analysis(&trace);
    let device = &found.devices[0];
    assert_eq!(causes(device), vec![Cause::Sync; 5]);
    assert_eq!(
        segments(device, 2),
        [
            (SegmentKind::SyncReturn, 4_000),
            (SegmentKind::HostCode, 2_000),
            (SegmentKind::LaunchCall, 3_000),
            (SegmentKind::LaunchLatency, 1_000),
        ]
    );
    let drain = device.bubbles[2].drained_by.unwrap();
    assert_eq!((drain.cause, drain.confidence), (Cause::Sync, Confidence::Certain));
    assert_eq!(trace.call_name(drain.call), "cudaStreamSynchronize");
    assert_eq!(device.bubbles[2].root.call, Some(drain.call));
    assert_eq!(device.usual_latency, Ns(4_000));
    let row = &found.sync_calls[0];
    assert_eq!((row.calls(), row.drained_count, row.caused_count), (6, 5, 5));
    assert_eq!((row.bubbles_drained, row.bubbles_caused), (Ns(50_000), Ns(50_000)));
    assert_eq!(row.blocked, Ns(6 * 24_500));
    assert_eq!(row.useful_wait, Ns(6 * 20_000));
    // In each bubble: 4 µs until the wait returns, and 500 ns before the kernel that the next one waits for.
    assert_eq!(row.idle_while_blocked, Ns(5 * 4_500));
}

#[test]
fn a_wait_that_began_after_the_launch_did_not_drain() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 3_000), 7, (4_000, 10_000));
    // Launched in good time but for the latency, waited for at once.
    scene.launch(2, (5_500, 8_000), 7, (11_000, 12_000));
    scene.stream_sync(3, 7, 8_500, 14_000);
    let found = analysis(&scene.finish());
    let bubble = found.devices[0].bubbles[0];
    assert_eq!((bubble.root.cause, bubble.drained_by), (Cause::LaunchBound, None));
}

#[test]
fn a_pause_of_the_host_is_no_refill() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 3_000), 7, (4_000, 10_000));
    scene.stream_sync(2, 7, 3_500, 13_000);
    scene.launch(3, (14_000, 17_000), 7, (18_000, 19_000));
    scene.launch(4, (900_000, 903_000), 7, (904_000, 905_000));
    scene.launch(5, (904_500, 907_500), 7, (908_500, 909_000));
    let found = analysis(&scene.finish());
    assert_eq!(causes(&found.devices[0]), [Cause::Sync, Cause::HostBound, Cause::LaunchBound]);
    assert_eq!(found.sync_calls[0].refill, Ns(0));
}

#[test]
fn a_long_trace_is_explained_in_parts_as_a_whole() {
    let mut scene = Scene::new();
    let rounds = 20_000;
    for round in 0..rounds {
        let (at, id) = (round * 40_000, round as u64 * 5);
        scene.launch(id + 1, (at, at + 3_000), 7, (at + 4_000, at + 5_000));
        scene.launch(id + 2, (at + 6_000, at + 9_000), 7, (at + 10_000, at + 11_000));
        scene.launch(id + 3, (at + 12_000, at + 15_000), 7, (at + 16_000, at + 17_000));
        scene.stream_sync(id + 4, 7, at + 15_500, at + 38_000);
    }
    let found = analysis(&scene.finish());
    let row = &found.sync_calls[0];
    assert_eq!(row.drained_count, rounds as u64 - 1);
    assert_eq!(row.bubbles_caused, Ns(27_000 * (rounds - 1)));
    // The two launches after each wait but the first round's.
    assert_eq!(row.refill, Ns(2 * 5_000 * (rounds - 1)));
    let device = &found.devices[0];
    let before = [(SegmentKind::SyncReturn, 21_000), (SegmentKind::HostCode, 2_000)];
    let after = [(SegmentKind::LaunchCall, 3_000), (SegmentKind::LaunchLatency, 1_000)];
    for drained in 0..rounds as usize - 1 {
        assert_eq!(segments(device, 3 * drained + 2), [before, after].concat());
    }
}

#[test]
fn a_bubble_far_longer_than_the_wait_that_drained_it_is_not_the_waits() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 3_000), 7, (4_000, 10_000));
    scene.stream_sync(2, 7, 3_500, 12_000);
    // 500 ms of data loading.
    scene.launch(3, (500_012_000, 500_015_000), 7, (500_016_000, 500_020_000));
    let found = analysis(&scene.finish());
    let device = &found.devices[0];
    assert_eq!(causes(device), [Cause::HostBound]);
    assert!(device.bubbles[0].drained_by.is_some());
    assert_eq!(found.sync_calls[0].bubbles_drained, Ns(500_006_000));
    assert_eq!(found.sync_calls[0].bubbles_caused, Ns(0));
}

#[test]
fn bubbles_after_a_drain_are_its_refill_until_an_op_is_enqueued_in_time() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 3_000), 7, (4_000, 10_000));
    scene.stream_sync(2, 7, 3_500, 13_000);
    scene.launch(3, (14_000, 17_000), 7, (18_000, 19_000)); // drained: bubble [10, 18)
    scene.launch(4, (17_500, 20_500), 7, (21_500, 40_000)); // refill: [19, 21.5)
    scene.launch(5, (21_000, 24_000), 7, (41_000, 42_000)); // enqueued: [40, 41)
    scene.launch(6, (41_500, 44_500), 7, (45_500, 46_000)); // launch-bound, no refill: [42, 45.5)
    let trace = scene.finish();
    let found = analysis(&trace);
    let device = &found.devices[0];
    let refills: Vec<bool> = device.bubbles.iter().map(|bubble| bubble.refill_of.is_some()).collect();
    assert_eq!(refills, [false, true, false, false]);
    assert_eq!(causes(device), [Cause::Sync, Cause::LaunchBound, Cause::Dispatch, Cause::LaunchBound]);
    assert_eq!(found.sync_calls[0].refill, Ns(2_500));
}

#[test]
fn another_threads_wait_that_ended_before_the_launch_is_a_likely_drain() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 3_000), 7, (4_000, 10_000));
    scene.on_thread(1, 2);
    scene.stream_sync(2, 7, 3_500, 13_000);
    scene.on_thread(1, 1);
    scene.launch(3, (14_000, 17_000), 7, (18_000, 19_000));
    let found = analysis(&scene.finish());
    let drain = found.devices[0].bubbles[0].drained_by.unwrap();
    assert_eq!((drain.cause, drain.confidence), (Cause::Sync, Confidence::Likely));
    assert_eq!(segments(&found.devices[0], 0)[0], (SegmentKind::HostCode, 4_000));
}

#[test]
fn a_copy_that_keeps_the_device_waiting_for_itself_is_no_drain() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 10_000));
    let memory = (MemoryKind::Device, MemoryKind::Pageable);
    scene.copies(("cudaMemcpy_v3020", 1 << 20), memory, 2, (5_000, 90_000), (7, 70_000, 80_000));
    let bubble = analysis(&scene.finish()).devices[0].bubbles[0];
    assert_eq!((bubble.root.cause, bubble.root.rule), (Cause::BlockingCopy, Rule::OwnLaunchFillsHalf));
    assert_eq!(bubble.drained_by, None);
}

#[test]
fn a_copy_that_drained_the_device_after_its_call_is_a_likely_drain() {
    let confidence = |returned: i64| {
        let mut scene = Scene::new();
        scene.launch(1, (0, 1_000), 7, (2_000, 10_000));
        let memory = (MemoryKind::Pageable, MemoryKind::Device);
        scene.copies(("cudaMemcpyAsync_v3020", 1 << 20), memory, 2, (5_000, returned), (7, 12_000, 50_000));
        scene.launch(3, (60_000, 61_000), 7, (64_000, 65_000));
        let bubble = *analysis(&scene.finish()).devices[0].bubbles.last().unwrap();
        bubble.drained_by.map(|drain| (drain.cause, drain.confidence))
    };
    assert_eq!(confidence(50_000), Some((Cause::BlockingCopy, Confidence::Certain)));
    assert_eq!(confidence(55_000), Some((Cause::BlockingCopy, Confidence::Certain)));
    assert_eq!(confidence(49_999), Some((Cause::BlockingCopy, Confidence::Likely)));
    assert_eq!(confidence(20_000), Some((Cause::BlockingCopy, Confidence::Likely)));
}

#[test]
fn an_allocation_that_fills_the_bubble_is_named() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 10_000));
    scene.call("cudaMalloc_v3020", 2, 9_000, 60_000);
    scene.launch(3, (61_000, 62_000), 7, (64_000, 65_000));
    let trace = scene.finish();
    let found = analysis(&trace);
    let bubble = found.devices[0].bubbles[0];
    assert_eq!(bubble.root.cause, Cause::Allocation);
    assert_eq!(bubble.drained_by.map(|drain| trace.call_name(drain.call)), Some("cudaMalloc"));
    assert_eq!(found.sync_calls[0].api, "cudaMalloc");
}

#[test]
fn a_null_stream_sync_and_a_context_sync_wait_for_their_device_only() {
    let mut scene = Scene::new();
    scene.stream_kind(7, StreamKind::Null);
    scene.launch(1, (0, 1_000), 7, (2_000, 10_000));
    scene.call("cudaDeviceSynchronize_v3020", 2, 1_500, 12_000);
    scene.sync_record(SyncKind::Context, 2, (1_500, 12_000), None, None);
    scene.on_context(1, 1, 2);
    scene.launch(3, (100, 900), 7, (1_000, 40_000));
    let found = analysis(&scene.finish());
    assert_eq!(found.devices.len(), 2);
    let row = found.sync_calls.iter().find(|row| row.api == "cudaDeviceSynchronize").unwrap();
    assert_eq!(row.useful_wait, Ns(8_000));
}
