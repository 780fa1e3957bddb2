//! Graphs: captured, built and launched.

use super::super::scene::Scene;
use super::super::{Cause, Rule, SegmentKind};
use super::{analysis, causes, segments};
use crate::trace::{Detail, MemoryKind, Ns, OpKind};

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
    assert_eq!((found.launches.ops_per_launch_p50, found.quality.graph_ops), (4, 4));
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
    scene.op(OpKind::Graph, Detail::None, 7, 1, 9_000, 109_000);
    let found = analysis(&scene.finish());
    assert_eq!(found.devices[0].partition.compute_only, Ns(100_000));
    assert!(found.quality.warnings.iter().any(|warning| warning.contains("recorded whole")));
    assert_eq!(found.quality.graph_ops, 0, "recording costs time for one op");
}

#[test]
fn idle_time_in_the_launch_of_a_graph_may_come_from_recording_up_to_a_microsecond_for_each_op() {
    // The device is idle for 30 µs of the first launch, which has 3 ops, for 2 µs of the second, which begins beside work,
    // for all 5 µs of a launch of a kernel, and for 8 µs of that of a graph that is recorded as one op.
    let mut scene = Scene::new();
    scene.launch(1, (0, 4_000), 7, (5_000, 10_000));
    scene.call("cudaGraphLaunch_v10000", 2, 20_000, 50_000);
    (0..3).for_each(|node| scene.kernel(7, 2, 51_000 + 2_000 * node, 52_000 + 2_000 * node));
    scene.call("cudaGraphLaunch_v10000", 3, 53_000, 58_000);
    (0..3).for_each(|node| scene.kernel(7, 3, 58_000 + 2_000 * node, 59_000 + 2_000 * node));
    scene.launch(4, (70_000, 75_000), 7, (76_000, 80_000));
    scene.call("cudaGraphLaunch_v10000", 5, 90_000, 98_000);
    scene.op(OpKind::Graph, Detail::None, 7, 5, 99_000, 109_000);
    let quality = analysis(&scene.finish()).quality;
    assert_eq!((quality.graph_ops, quality.graph_launch_idle), (6, Ns(3_000 + 2_000)));
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
    scene.node(7, correlation, graph, (call.1 + 1_000, call.1 + 2_000));
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
