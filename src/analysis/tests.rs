//! Small traces worked out by hand, to the nanosecond.

use super::scene::Scene;
use super::*;
use crate::trace::{GraphId, Interval, MemoryKind, OpKind, OverheadKind, StreamKind, SyncKind, Trace, Unrecorded};

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

/// Launches of 5 µs, one after the other, of kernels of 2 µs.
fn launch_bound_loop(count: i64) -> Trace {
    let mut scene = Scene::new();
    for index in 0..count {
        let at = index * 6_000;
        scene.launch(index as u64 + 1, (at, at + 5_000), 7, (at + 5_500, at + 7_500));
    }
    scene.finish()
}

#[test]
fn a_launch_that_straddles_the_end_of_work_is_launch_bound_not_dispatch() {
    let trace = launch_bound_loop(10);
    let found = analysis(&trace);
    let device = &found.devices[0];
    assert_eq!(device.bubbles.len(), 9);
    assert_eq!(causes(device), vec![Cause::LaunchBound; 9]);
    assert_eq!(segments(device, 0), [(SegmentKind::LaunchCall, 3_500), (SegmentKind::LaunchLatency, 500)]);
    assert!(device.bubbles.iter().all(|bubble| bubble.drained_by.is_none() && bubble.refill_of.is_none()));
    assert_eq!(device.busy_ns(), Ns(20_000));
    assert_eq!(device.idle_ns(), Ns(36_000));
    assert!(found.sync_calls.is_empty());
    assert!(found.quality.idle_reliable, "{:?}", found.quality.reasons);
}

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
fn a_program_whose_every_step_computes_is_host_bound() {
    // A kernel of 20 µs, then the host alone: there is no shorter gap to compare with.
    let every = |host: i64| {
        let mut scene = Scene::new();
        for step in 0..8 {
            let at = step * (host + 5_000);
            scene.launch(step as u64 + 1, (at, at + 5_000), 7, (at + 6_000, at + 26_000));
        }
        let found = analysis(&scene.finish());
        let device = &found.devices[0];
        device.bubbles.iter().map(|bubble| (bubble.root.cause, bubble.root.rule)).collect::<Vec<_>>()
    };
    assert_eq!(every(300_000), [(Cause::HostBound, Rule::HostCodeFillsHalf); 7]);
    assert_eq!(every(60_000), [(Cause::LaunchBound, Rule::LaunchLate); 7]);
}

#[test]
fn memory_moved_by_the_host_during_a_copy_is_the_copys_fault_even_if_it_returns_early() {
    let bubble = |from: MemoryKind, length: i64| {
        let mut scene = Scene::new();
        scene.launch(1, (0, 3_000), 7, (4_000, 10_000));
        scene.call("cudaMemcpy_v3020", 2, 11_000, 11_000 + length);
        scene.copy((from, MemoryKind::Device), 7, 2, 12_000 + length, 20_000 + length);
        analysis(&scene.finish()).devices[0].bubbles[0].root
    };
    let staged = bubble(MemoryKind::Pageable, 200_000);
    assert_eq!((staged.cause, staged.rule, staged.call.is_some()), (Cause::BlockingCopy, Rule::FillsHalf, true));
    assert_eq!(bubble(MemoryKind::Pinned, 200_000).cause, Cause::LaunchBound);
    assert_eq!(bubble(MemoryKind::Pageable, 40_000).cause, Cause::LaunchBound);
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
fn gaps_within_one_graph_launch_are_its_own() {
    let mut scene = Scene::new();
    scene.call("cudaGraphLaunch_v10000", 1, 0, 8_000);
    scene.kernel(7, 1, 9_000, 10_000);
    scene.kernel(7, 1, 10_080, 11_000);
    scene.kernel(8, 1, 11_100, 12_000);
    scene.kernel(7, 1, 40_000, 41_000);
    let found = analysis(&scene.finish());
    let device = &found.devices[0];
    assert_eq!(causes(device), [Cause::GraphInternal, Cause::GraphInternal, Cause::Stalled]);
    assert_eq!(device.idle_by_root[&Cause::GraphInternal], Ns(180));
    assert_eq!(found.launches.count, 1);
    assert_eq!(found.launches.ops_per_launch_p50, 4);
}

#[test]
fn chunks_of_one_pageable_copy_are_not_a_graph() {
    let mut scene = Scene::new();
    scene.call("cudaMemcpy_v3020", 1, 0, 20_000);
    scene.copy((MemoryKind::Pageable, MemoryKind::Device), 7, 1, 5_000, 10_000);
    scene.copy((MemoryKind::Pageable, MemoryKind::Device), 7, 1, 12_000, 17_000);
    let found = analysis(&scene.finish());
    assert_eq!(causes(&found.devices[0]), [Cause::BlockingCopy]);
    assert_eq!(segments(&found.devices[0], 0), [(SegmentKind::LaunchCall, 2_000)]);
}

#[test]
fn an_opaque_graph_launch_is_busy() {
    let mut scene = Scene::new();
    scene.call("cudaGraphLaunch_v10000", 1, 0, 8_000);
    scene.op(OpKind::Graph, crate::trace::Detail::None, 7, 1, 9_000, 109_000);
    let found = analysis(&scene.finish());
    assert_eq!(found.devices[0].partition.compute_only, Ns(100_000));
    assert!(found.quality.warnings.iter().any(|warning| warning.contains("recorded whole")));
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
fn the_first_long_launch_of_a_kernel_loads_its_module() {
    let mut scene = Scene::new();
    for index in 0..8 {
        let at = index * 10_000;
        scene.launch(index as u64 + 1, (at, at + 2_000), 7, (at + 3_000, at + 11_000));
    }
    let at = 80_000;
    scene.call("cudaLaunchKernel_v7000", 100, at, at + 900_000);
    let name = scene.builder.name("fresh");
    let stream = scene.stream(7);
    scene.builder.push_op(crate::trace::OpInput {
        start: at + 901_000,
        end: at + 910_000,
        stream,
        kind: OpKind::Kernel,
        name,
        correlation: crate::trace::CorrelationId(100),
        bytes: 0,
        graph: GraphId::NONE,
        graph_node: 0,
        detail: crate::trace::Detail::None,
    });
    let found = analysis(&scene.finish());
    let root = found.devices[0].bubbles.last().unwrap().root;
    assert_eq!((root.cause, root.rule), (Cause::ModuleLoad, Rule::FirstLaunchLong));
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
fn launches_without_any_device_record_are_not_captured_never_idle() {
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel_v7000", 1, 0, 1_000);
    scene.call("cudaDeviceSynchronize_v3020", 2, 2_000, 9_000);
    let found = analysis(&scene.finish());
    assert!(found.devices.is_empty());
    assert!(found.quality.gpu_not_captured);
    assert!(!found.quality.idle_reliable);
    assert_eq!(found.quality.launches_without_ops, 1);
}

#[test]
fn launches_at_the_end_whose_work_did_not_run_any_more_are_no_loss() {
    let ended = |late: u64, lost: u64| {
        let mut scene = Scene::new();
        let mut launch = |id: u64, works: bool| {
            let at = id as i64 * 10_000;
            if works {
                scene.launch(id, (at, at + 1_000), 7, (at + 2_000, at + 3_000));
            } else {
                scene.call("cudaLaunchKernel_v7000", id, at, at + 1_000);
            }
        };
        (1..=10).for_each(|id| launch(id, true));
        (11..11 + lost).for_each(|id| launch(id, false));
        launch(30, true);
        (31..31 + late).for_each(|id| launch(id, false));
        analysis(&scene.finish()).quality
    };
    let quality = ended(5, 0);
    assert!(quality.idle_reliable, "{:?}", quality.reasons);
    assert_eq!(quality.launches_without_ops, 5);
    assert!(quality.warnings.iter().any(|warning| warning.contains("the last 5 launches")), "{:?}", quality.warnings);
    let quality = ended(5, 2);
    assert_eq!(quality.reasons, ["2 of 18 launches have no device work in the trace"]);
}

#[test]
fn a_process_that_was_not_recorded_makes_idle_time_unreliable_by_name() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 3_000));
    let mut trace = scene.finish();
    assert!(analysis(&trace).quality.idle_reliable);
    let id = trace.devices[0].id;
    for (process, words) in [
        (
            Unrecorded { pid: Some(77), name: "other".into(), devices: vec![id], ..Unrecorded::default() },
            "process 77 (other) was on",
        ),
        (
            Unrecorded { pid: Some(77), reason: Some("it is old".into()), ..Unrecorded::default() },
            "process 77 used CUDA and was not recorded: it is old",
        ),
        (Unrecorded { devices: vec![id], ..Unrecorded::default() }, "cannot be seen from here was on device"),
    ] {
        trace.meta.unrecorded = vec![process];
        let quality = analysis(&trace).quality;
        assert!(!quality.idle_reliable);
        assert!(quality.reasons[0].contains(words), "{:?}", quality.reasons);
    }
}

#[test]
fn a_process_that_was_recorded_in_part_matters_where_idle_time_is_counted() {
    let mut scene = Scene::new();
    for at in [0, 10_000_000, 20_000_000] {
        scene.launch(at as u64 + 1, (at, at + 1_000), 7, (at + 2_000, at + 3_000));
    }
    let mut trace = scene.finish();
    let (end, id) = (trace.end, trace.devices[0].id);
    let missing = |from: i64, to: Ns| Interval::new(Ns(from), to);
    let mut reasons = |times: &[Interval], device: u32, window: Option<Interval>| {
        let times = times.to_vec();
        let process = Unrecorded { pid: Some(7), devices: vec![device], partly: true, times, ..Unrecorded::default() };
        trace.meta.unrecorded = vec![process];
        let quality = analyze(&trace, &Options { window, ..Options::default() }).quality;
        assert_eq!(quality.idle_reliable, quality.reasons.is_empty());
        quality.reasons.join("; ")
    };
    for (times, words) in [
        (&[missing(12_000_000, end)][..], "was recorded only until 12.0 ms"),
        (&[missing(0, Ns(3_000_000))], "was recorded only from 3.00 ms on"),
        (&[missing(0, Ns(3_000_000)), missing(12_000_000, end)], "was recorded only from 3.00 ms until 12.0 ms"),
        (&[missing(3_000_000, Ns(12_000_000))], "was not recorded from 3.00 ms until 12.0 ms"),
        (&[missing(0, end)], "was not recorded at that time"),
    ] {
        let said = reasons(times, id, None);
        assert!(said.starts_with("process 7 was on device") && said.ends_with(words), "{said}");
    }
    // Before the device's first op, on another device, and outside the window.
    assert_eq!(reasons(&[missing(0, Ns(2_000))], id, None), "");
    assert_eq!(reasons(&[missing(12_000_000, end)], id + 1, None), "");
    let before = Some(missing(0, Ns(11_000_000)));
    assert_eq!(reasons(&[missing(12_000_000, end)], id, before), "");
    assert_ne!(reasons(&[missing(5_000_000, end)], id, before), "");
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
fn launches_into_a_capture_make_no_ops() {
    let mut scene = Scene::new();
    scene.call("cudaStreamBeginCapture_v10000", 1, 0, 1_000);
    scene.call("cudaLaunchKernel_v7000", 2, 2_000, 3_000);
    scene.call("cudaStreamEndCapture_v10000", 3, 4_000, 5_000);
    scene.launch(4, (6_000, 7_000), 7, (8_000, 9_000));
    assert_eq!(analysis(&scene.finish()).quality.launches_without_ops, 0);
}

#[test]
fn a_capture_without_an_end_is_none_and_launches_with_work_are_not_captured() {
    let mut scene = Scene::new();
    scene.call("cudaStreamBeginCapture_v10000", 1, 0, 1_000);
    scene.launch(2, (2_000, 3_000), 7, (4_000, 5_000));
    scene.launch(3, (20_000, 30_000), 7, (31_000, 32_000));
    scene.call("cudaStreamEndCapture_v10000", 4, 33_000, 34_000);
    scene.call("cudaStreamBeginCapture_v10000", 5, 35_000, 36_000);
    scene.call("cudaLaunchKernel_v7000", 6, 37_000, 38_000);
    let found = analysis(&scene.finish());
    assert_eq!(found.quality.launches_without_ops, 1);
    assert_eq!(
        found.quality.warnings,
        ["the recording ended before the work of the last launch ran, or while a stream capture took it"]
    );
    let launched =
        [(SegmentKind::HostCode, 15_000), (SegmentKind::LaunchCall, 10_000), (SegmentKind::LaunchLatency, 1_000)];
    assert_eq!(segments(&found.devices[0], 0), launched);
}

/// As PyTorch's backward pass does: a thread of its own launches into the stream that another one captures.
#[test]
fn launches_of_other_threads_into_a_capture_make_no_ops() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 500), 7, (600, 700));
    scene.call("cudaStreamBeginCapture_v10000", 2, 1_000, 2_000);
    scene.call("cudaStreamEndCapture_v10000", 3, 20_000, 21_000);
    scene.launch(4, (40_000, 41_000), 7, (42_000, 43_000));
    scene.on_thread(1, 2);
    scene.call("cudaLaunchKernel_v7000", 11, 500, 900);
    scene.call("cudaLaunchKernelExC_v11060", 12, 3_000, 9_000);
    scene.call("cuLaunchKernelEx", 12, 4_000, 8_000);
    scene.launch(13, (10_000, 11_000), 8, (12_000, 13_000));
    scene.call("cudaEventQuery_v3020", 14, 14_000, 15_000);
    scene.call("cudaLaunchKernel_v7000", 15, 22_000, 23_000);
    let found = analysis(&scene.finish());
    // Only those before and after the capture lack their work; what has work, or submits none, was not captured.
    assert_eq!(found.quality.launches_without_ops, 2);
    assert_eq!(found.launches.count, 5);
    assert_eq!(found.quality.reasons, ["2 of 5 launches have no device work in the trace"]);
}

#[test]
fn launches_into_half_a_capture_are_counted_and_the_doubt_is_told() {
    for cut_at_its_end in [true, false] {
        let mut scene = Scene::new();
        scene.launch(1, (0, 500), 7, (600, 700));
        if cut_at_its_end {
            scene.call("cudaStreamBeginCapture_v10000", 2, 1_000, 2_000);
        }
        scene.call("cudaLaunchKernel_v7000", 3, 3_000, 4_000);
        scene.call("cudaLaunchKernel_v7000", 4, 5_000, 6_000);
        if !cut_at_its_end {
            scene.call("cudaStreamEndCapture_v10000", 5, 7_000, 8_000);
        }
        // Another thread goes on launching to a stream that is not captured.
        scene.on_thread(1, 2);
        scene.launch(6, (9_000, 10_000), 8, (11_000, 12_000));
        let quality = analysis(&scene.finish()).quality;
        assert!(!quality.idle_reliable);
        assert_eq!(
            quality.reasons,
            [
                "2 of 4 launches have no device work in the trace; 2 were made during a stream capture of which the trace \
              has only one end, and may have been captured"
            ]
        );
    }
}

#[test]
fn captured_calls_build_their_graph() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 3_000));
    scene.call("cudaStreamBeginCapture_v10000", 2, 4_000, 5_000);
    // The second capture lies inside the first one; the runtime's calls have the driver's inside them.
    scene.call("cudaStreamBeginCapture_v10000", 3, 5_000, 6_000);
    scene.call("cudaLaunchKernel_v7000", 4, 6_000, 16_000);
    scene.call("cuLaunchKernel", 4, 7_000, 15_000);
    scene.call("cudaStreamEndCapture_v10000", 5, 16_000, 17_000);
    scene.call("cudaMemcpyAsync_v3020", 6, 17_000, 27_000);
    scene.call("cudaStreamEndCapture_v10000", 7, 27_000, 28_000);
    scene.launch(8, (29_000, 30_000), 7, (31_000, 32_000));
    let found = analysis(&scene.finish());
    let built = segments(&found.devices[0], 0).into_iter().filter(|(kind, _)| *kind == SegmentKind::GraphBuild);
    assert_eq!(built.map(|(_, length)| length).sum::<i64>(), 24_000);
    let root = found.devices[0].bubbles[0].root;
    assert_eq!((root.cause, root.rule), (Cause::GraphBuild, Rule::FillsHalf));
}

/// A graph launch with one node, which starts 1 µs after the call and takes 1 µs.
fn graph_launch(scene: &mut Scene, correlation: u64, graph: u32, call: (i64, i64)) {
    scene.call("cudaGraphLaunch_v10000", correlation, call.0, call.1);
    let (stream, name) = (scene.stream(7), scene.builder.name("node"));
    scene.builder.push_op(crate::trace::OpInput {
        start: call.1 + 1_000,
        end: call.1 + 2_000,
        stream,
        kind: OpKind::Kernel,
        name,
        correlation: crate::trace::CorrelationId(correlation),
        bytes: 0,
        graph: GraphId(graph),
        graph_node: 0,
        detail: crate::trace::Detail::None,
    });
}

#[test]
fn the_first_long_launch_of_a_graph_takes_it_to_the_device() {
    let mut scene = Scene::new();
    let mut at = 0;
    let launches = [(4, 2_000), (4, 2_000), (4, 2_000), (4, 900_000), (5, 900_000), (5, 900_000)];
    for (correlation, (graph, length)) in (1..).zip(launches) {
        graph_launch(&mut scene, correlation, graph, (at, at + length));
        at += length + 3_000;
    }
    let found = analysis(&scene.finish());
    let roots = found.devices[0].bubbles[2..].iter().map(|bubble| (bubble.root.cause, bubble.root.rule));
    let late = (Cause::LaunchBound, Rule::LaunchCallLong);
    assert_eq!(roots.collect::<Vec<_>>(), [late, (Cause::GraphBuild, Rule::FirstLaunchLong), late]);
}

#[test]
fn the_first_launch_of_a_graph_counts_with_building_it() {
    let mut scene = Scene::new();
    graph_launch(&mut scene, 1, 4, (0, 1_000));
    // Of 39 µs building takes 12 and the launch 20.
    scene.call("cudaGraphInstantiate_v12000", 2, 7_000, 19_000);
    graph_launch(&mut scene, 3, 5, (21_000, 41_000));
    // As long, and the graph was launched before.
    scene.call("cudaGraphInstantiate_v12000", 4, 47_000, 59_000);
    graph_launch(&mut scene, 5, 5, (61_000, 81_000));
    let found = analysis(&scene.finish());
    let roots = found.devices[0].bubbles.iter().map(|bubble| (bubble.root.cause, bubble.root.rule));
    let built = (Cause::GraphBuild, Rule::FillsHalf);
    assert_eq!(roots.collect::<Vec<_>>(), [built, (Cause::LaunchBound, Rule::LaunchLate)]);
}

#[test]
fn an_op_before_its_launch_is_counted_and_not_clipped() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 3_000));
    scene.launch(2, (9_000, 10_000), 7, (8_000, 8_500));
    let found = analysis(&scene.finish());
    assert_eq!((found.quality.negative_latency, found.launches.worst_negative_latency), (1, Ns(-1_000)));
    assert_eq!(segments(&found.devices[0], 0), [(SegmentKind::HostCode, 5_000)]);
    assert_eq!(found.devices[0].bubbles[0].root.confidence, Confidence::Guess);
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
fn a_window_clips_ops_and_leaves_its_edges_out_of_the_bubbles() {
    let trace = synced_loop(6);
    // From the middle of the second kernel to the middle of the bubble after the third.
    let window = Interval::new(Ns(44_000), Ns(89_000));
    let found = analyze(&trace, &Options { window: Some(window), ..Options::default() });
    let device = &found.devices[0];
    assert_sums(device);
    assert_eq!(device.span, Interval::new(Ns(44_000), Ns(84_000)));
    assert_eq!((device.busy_ns(), device.idle_ns()), (Ns(10_000 + 20_000), Ns(10_000)));
    // Calls are clipped as well.
    assert_eq!(found.sync_calls[0].blocked, Ns((58_000 - 44_000) + (88_000 - 63_500)));
}

#[test]
fn collectives_under_no_other_kernel_are_exposed() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 4_000));
    let name = scene.builder.name("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    let stream = scene.stream(8);
    scene.builder.push_op(crate::trace::OpInput {
        start: 3_000,
        end: 10_000,
        stream,
        kind: OpKind::Kernel,
        name,
        correlation: crate::trace::CorrelationId(0),
        bytes: 0,
        graph: GraphId::NONE,
        graph_node: 0,
        detail: crate::trace::Detail::None,
    });
    let found = analysis(&scene.finish());
    assert_eq!(found.devices[0].exposed_comm_ns, Ns(6_000));
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

#[test]
fn a_first_launch_that_loads_code_is_no_slow_launch() {
    let root = |kernel: &str| {
        let mut scene = Scene::new();
        scene.launch_named("first", 1, (0, 1_000), 7, (2_000, 10_000));
        // Of its 86 µs, 40 are recorded as loading.
        scene.overhead(OverheadKind::LazyLoading, 14_000, 54_000);
        scene.launch_named(kernel, 2, (12_000, 98_000), 7, (99_000, 100_000));
        let trace = scene.finish();
        let root = analysis(&trace).devices[0].bubbles[0].root;
        (root.cause, root.call.map(|call| trace.calls.correlation[call.index()].0))
    };
    assert_eq!(root("second"), (Cause::ModuleLoad, Some(2)));
    assert_eq!(root("first"), (Cause::LaunchBound, Some(2)), "its code was there");
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

#[test]
fn iterations_are_found_in_the_launch_sequence() {
    let mut scene = Scene::new();
    let mut at = 0;
    let mut correlation = 0;
    let mut next = || {
        correlation += 1;
        correlation
    };
    let mut starts = Vec::new();
    for round in 0..12 {
        // The first two are slow.
        let pause = if round < 2 { 100_000 } else { 10_000 };
        at += pause;
        starts.push(at);
        for _ in 0..4 {
            scene.launch(next(), (at, at + 2_000), 7, (at + 3_000, at + 4_000));
            at += 5_000;
        }
        scene.stream_sync(next(), 7, at, at + 1_000);
        at += 1_000;
    }
    let trace = scene.finish();
    let found = analysis(&trace).iterations.unwrap();
    let origin = starts[0];
    assert_eq!(found.source, IterationSource::LaunchSequence { launches: 5 });
    // An iteration begins with the op after the longest pause.
    let begun: Vec<i64> = found.intervals.iter().map(|interval| interval.start.0 - 3_000 + origin).collect();
    assert_eq!(begun, starts);
    assert_eq!((found.count, found.warmup), (11, 1));
    assert_eq!(found.period.p50, Ns(31_000));
    assert_eq!(found.blocking_calls_p50, 1);
    let (third, next) = (found.intervals[3], found.intervals[4]);
    assert_eq!(third.end, next.start);
    assert_eq!(windows::of_iteration(Some(&found), 3), Ok(Interval::new(third.start, next.start + Ns(1))));
    let count = found.intervals.len();
    let missing = windows::of_iteration(Some(&found), 99);
    assert_eq!(missing, Err(windows::WindowError::NoIteration { asked: 99, count }));
}

#[test]
fn counted_ranges_are_iterations_and_windows() {
    let mut scene = Scene::new();
    let process = scene.builder.process(1);
    let thread = scene.builder.thread(process, 1);
    for round in 0..5 {
        let at = round * 30_000;
        scene.launch(round as u64 * 2 + 1, (at, at + 3_000), 7, (at + 4_000, at + 24_000));
        let name = scene.builder.name(&format!("ProfilerStep#{round}"));
        scene.builder.push_range(at, at + 29_000, thread, name, crate::trace::RangeKind::Annotation);
    }
    let trace = scene.finish();
    let found = analysis(&trace).iterations.unwrap();
    assert_eq!(found.source, IterationSource::Range("ProfilerStep".to_owned()));
    assert_eq!((found.count, found.warmup, found.period.p50), (5, 0, Ns(30_000)));
    assert_eq!(windows::of_range(&trace, "ProfilerStep#2"), Ok(Interval::new(Ns(60_000), Ns(89_000))));
    assert_eq!(windows::of_range(&trace, "ProfilerStep"), Ok(Interval::new(Ns(0), Ns(149_000))));
    let error = windows::of_range(&trace, "step#3").unwrap_err().to_string();
    assert_eq!(error, "no range is named \"step#3\"; there is \"ProfilerStep#3\"");
    assert!(windows::between(&trace, Some(Ns(200_000)), None).is_err());
}

#[test]
fn ranges_of_one_name_are_iterations_if_nearly_all_is_launched_in_them() {
    // Five steps of three layers, each with a launch, and so many launches after the last step.
    let source = |after: usize| {
        let mut scene = Scene::new();
        let process = scene.builder.process(1);
        let thread = scene.builder.thread(process, 1);
        let (step, layer) = (scene.builder.name("step"), scene.builder.name("layer"));
        let mut correlation = 0;
        let mut launch = |scene: &mut Scene, at: i64| {
            correlation += 1;
            scene.launch(correlation, (at, at + 3_000), 7, (at + 4_000, at + 9_000 + 100 * correlation as i64));
        };
        for round in 0..5 {
            let begin = round * 40_000;
            scene.builder.push_range(begin, begin + 39_000, thread, step, crate::trace::RangeKind::Nvtx);
            for at in (0..3).map(|number| begin + 10_000 * number + 5_000) {
                scene.builder.push_range(at, at + 4_000, thread, layer, crate::trace::RangeKind::Nvtx);
                launch(&mut scene, at);
            }
        }
        (0..after as i64).for_each(|number| launch(&mut scene, 200_000 + 10_000 * number));
        analysis(&scene.finish()).iterations.map(|found| found.source)
    };
    assert_eq!(source(0), Some(IterationSource::Range("step".to_owned())), "the outer ones");
    assert_eq!(source(3), Some(IterationSource::Range("step".to_owned())));
    assert_ne!(source(4), Some(IterationSource::Range("step".to_owned())), "15 of 19 launches");
}

/// A collective's kernel on a device's stream.
fn collective(scene: &mut Scene, device: u32, name: &str, stream: u32, (start, end): (i64, i64)) {
    scene.on_context(device + 1, device, device + 1);
    let name = scene.builder.name(name);
    let stream = scene.stream(stream);
    scene.builder.push_op(crate::trace::OpInput {
        start,
        end,
        stream,
        kind: OpKind::Kernel,
        name,
        correlation: crate::trace::CorrelationId(0),
        bytes: 0,
        graph: GraphId::NONE,
        graph_node: 0,
        detail: crate::trace::Detail::None,
    });
}

#[test]
fn a_rank_waits_for_the_one_that_comes_last_to_a_collective() {
    const REDUCE: &str = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    let mut scene = Scene::new();
    // The first one of device 1 has no partner: device 0 was not recorded yet.
    collective(&mut scene, 1, REDUCE, 7, (100, 200));
    for (early, late, end) in [(1_000, 5_000, 6_000), (7_000, 9_500, 10_000)] {
        collective(&mut scene, 0, REDUCE, 7, (early, end));
        collective(&mut scene, 1, REDUCE, 7, (late, end));
    }
    // Another collective, to which device 0 comes last, on another stream at the same time.
    collective(&mut scene, 1, "ncclDevKernel_Broadcast_RING_LL", 8, (4_000, 6_000));
    collective(&mut scene, 0, "ncclDevKernel_Broadcast_RING_LL", 8, (4_500, 6_000));
    let trace = scene.finish();
    let found = analysis(&trace);
    let waits = |device: usize| {
        let waits = &found.devices[device].peer_waits;
        let by_peer: Vec<_> = waits.by_peer.iter().map(|(peer, wait)| (peer.0, wait.collectives, wait.wait)).collect();
        (by_peer, waits.total)
    };
    assert_eq!(waits(0), (vec![(1, 2, Ns(4_000 + 2_500))], Ns(6_500)));
    assert_eq!(waits(1), (vec![(0, 1, Ns(500))], Ns(500)));
    // A window counts what lies in it.
    let window = Some(Interval::new(Ns(2_000), Ns(8_000)));
    let found = analyze(&trace, &Options { window, ..Options::default() });
    assert_eq!(found.devices[0].peer_waits.total, Ns(3_000 + 1_000));
}

#[test]
fn one_device_waits_for_nobody() {
    let mut scene = Scene::new();
    collective(&mut scene, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 7, (100, 200));
    collective(&mut scene, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 8, (150, 250));
    assert_eq!(analysis(&scene.finish()).devices[0].peer_waits, super::PeerWaits::default());
}
