//! Bubbles that the host explains by what it does: launching, computing, loading code.

use super::super::scene::Scene;
use super::super::{Cause, Confidence, Rule, SegmentKind};
use super::{analysis, causes, segments};
use crate::trace::{MemoryKind, Ns, OverheadKind, Trace};

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

/// The root of the last bubble after ten launches in a row, the last of a kernel that ends at `dry`, when from 60 µs on
/// the host does what `then` says, and launches once more at 360 µs.
fn after_a_loop(dry: i64, then: impl FnOnce(&mut Scene)) -> (Cause, Rule) {
    let mut scene = Scene::new();
    for index in 0..10 {
        let at = index * 6_000;
        let until = if index == 9 { dry } else { at + 7_500 };
        scene.launch(index as u64 + 1, (at, at + 5_000), 7, (at + 5_500, until));
    }
    then(&mut scene);
    scene.on_thread(1, 1);
    scene.launch(100, (360_000, 365_000), 7, (365_500, 370_000));
    let root = analysis(&scene.finish()).devices[0].bubbles.last().unwrap().root;
    (root.cause, root.rule)
}

/// Calls of 14 µs with 1 µs between them.
fn calls(scene: &mut Scene, name: &str, count: i64) {
    for index in 0..count {
        let at = 60_000 + index * 15_000;
        scene.call(name, 200 + index as u64, at, at + 14_000);
    }
}

#[test]
fn what_fills_a_long_gap_between_launches_is_its_reason() {
    // The device runs dry when the gap begins, in the midst of it, and just before it ends.
    for dry in [61_500, 200_000, 355_000] {
        let filled = |name: &'static str, count| after_a_loop(dry, |scene| calls(scene, name, count));
        assert_eq!(filled("", 0), (Cause::HostBound, Rule::HostGap), "{dry}");
        for kept in ["cudaGetDeviceProperties", "cudaStreamCreateWithPriority", "cudaEventRecord_v3020"] {
            assert_eq!(filled(kept, 20), (Cause::LaunchBound, Rule::LaunchLate), "{kept} {dry}");
        }
        assert_eq!(filled("cudaGetDeviceProperties", 4).0, Cause::HostBound, "a fifth of it {dry}");
        let whole = |name| after_a_loop(dry, move |scene| scene.call(name, 200, 60_000, 359_000));
        assert_eq!(whole("cudaGetDeviceProperties"), (Cause::LaunchBound, Rule::LaunchLate), "{dry}");
    }
    for dry in [61_500, 200_000] {
        for allocates in
            ["cuMemSetAccess", "cuMemImportFromShareableHandle", "cudaMallocAsync_v11020", "cudaMalloc_v3020"]
        {
            let filled = after_a_loop(dry, |scene| calls(scene, allocates, 20));
            assert_eq!(filled, (Cause::Allocation, Rule::FillsHalf), "{allocates} {dry}");
        }
    }
}

#[test]
fn where_nothing_fills_half_of_a_long_gap_the_most_decides() {
    // 295 µs from 61.5 µs on: so much allocation, so many other calls, the rest host code.
    let filled = |allocation: i64, others: i64| {
        after_a_loop(61_500, |scene| {
            scene.call("cudaMalloc_v3020", 200, 62_000, 62_000 + allocation);
            scene.call("cudaStreamCreateWithPriority", 201, 62_000 + allocation, 62_000 + allocation + others);
        })
    };
    assert_eq!(filled(140_000, 40_000), (Cause::Allocation, Rule::FillsMost));
    assert_eq!(filled(40_000, 140_000), (Cause::LaunchBound, Rule::LaunchLate));
    assert_eq!(filled(80_000, 80_000), (Cause::HostBound, Rule::FillsMost));
    assert_eq!(filled(160_000, 0), (Cause::Allocation, Rule::FillsHalf));
    assert_eq!(filled(40_000, 40_000).1, Rule::HostGap);
}

#[test]
fn long_host_code_is_no_launching_whatever_calls_come_before_the_launch() {
    let computes = (Cause::HostBound, Rule::HostCodeFillsHalf);
    let ends_with = |name: &'static str| after_a_loop(61_500, move |scene| scene.call(name, 200, 350_000, 358_000));
    for name in ["cudaDeviceSynchronize_v3020", "cudaFree_v3020", "cudaMemcpy_v3020"] {
        assert_eq!(ends_with(name), computes, "{name}");
    }
    let polls = after_a_loop(61_500, |scene| {
        for poll in 0..12 {
            let at = 330_000 + poll * 2_000;
            scene.call_returning("cudaEventQuery_v3020", 200 + poll as u64, at, at + 1_000, 600);
        }
    });
    assert_eq!(polls, computes);
    let meanwhile = after_a_loop(61_500, |scene| {
        scene.on_thread(1, 2);
        for poll in 0..100 {
            let at = 60_000 + poll * 3_000;
            scene.call_returning("cudaEventQuery_v3020", 200 + poll as u64, at, at + 1_000, 600);
        }
        scene.call("cudaDeviceSynchronize_v3020", 400, 357_000, 359_000);
    });
    assert_eq!(meanwhile, computes, "another thread's calls");
}

#[test]
fn what_comes_before_a_process_first_call_counts_from_the_bubbles_start() {
    let first_call = |at: i64| {
        let mut scene = Scene::new();
        // The launch of this one was before the recording.
        scene.kernel(7, 900, 0, 10_000);
        scene.launch(1, (at, at + 5_000), 7, (at + 6_000, at + 9_000));
        analysis(&scene.finish()).devices[0].bubbles[0].root.cause
    };
    assert_eq!(first_call(20_000_000), Cause::HostBound);
    assert_eq!(first_call(70_000), Cause::HostBound);
    assert_eq!(first_call(50_000), Cause::LaunchBound);
    assert_eq!(first_call(9_000), Cause::LaunchBound, "launched before the device was dry");
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
fn the_first_long_launch_of_a_kernel_loads_its_module() {
    let mut scene = Scene::new();
    for index in 0..8 {
        let at = index * 10_000;
        scene.launch(index as u64 + 1, (at, at + 2_000), 7, (at + 3_000, at + 11_000));
    }
    let at = 80_000;
    scene.launch_named("fresh", 100, (at, at + 900_000), 7, (at + 901_000, at + 910_000));
    let found = analysis(&scene.finish());
    let root = found.devices[0].bubbles.last().unwrap().root;
    assert_eq!((root.cause, root.rule), (Cause::ModuleLoad, Rule::FirstLaunchLong));
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
