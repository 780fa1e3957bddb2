//! What the analysis of a part has to know of the rest of the recording.

use super::super::scene::Scene;
use super::super::{Analysis, Options, analyze};
use crate::trace::{Detail, Interval, Ns, OpKind, RangeIdx, RangeKind, SyncKind, Trace};

/// The same moment in milliseconds.
const fn ms(time: i64) -> i64 {
    time * 1_000_000
}

/// The analysis of a window of the whole, and of the part that it is in, of which each event in the window is.
fn both(trace: &Trace, (from, to): (i64, i64), around: i64) -> [Analysis; 2] {
    let window = Interval::new(Ns(from), Ns(to));
    let part = trace.clone().part_with(Some(window.start), Some(window.end), Ns(around));
    assert!(part.rest.is_some(), "it is a part");
    let options = Options { window: Some(window), ..Options::default() };
    [analyze(trace, &options), analyze(&part, &options)]
}

#[test]
fn a_capture_that_is_open_far_around_a_part_is_known() {
    let mut scene = Scene::new();
    scene.launch(1, (ms(1), ms(1) + 5_000), 7, (ms(1) + 8_000, ms(2)));
    scene.call("cudaStreamBeginCapture_v10000", 2, ms(3), ms(3) + 1_000);
    for at in 4..100 {
        scene.call("cudaLaunchKernel_v7000", 100 + at as u64, ms(at), ms(at) + 1_000);
    }
    scene.call("cudaStreamEndCapture_v10000", 3, ms(110), ms(110) + 1_000);
    // Another stream works meanwhile, and other captures come before and after.
    for (at, id) in [(40, 500), (50, 501), (60, 502), (120, 503)] {
        scene.launch(id, (ms(at) + 300_000, ms(at) + 305_000), 8, (ms(at) + 310_000, ms(at + 2)));
    }
    for at in [0, 130] {
        let id = 600 + at as u64;
        scene.call("cudaStreamBeginCapture_v10000", id, ms(at), ms(at) + 1_000);
        scene.call("cudaStreamEndCapture_v10000", id + 1, ms(at) + 2_000, ms(at) + 3_000);
    }
    let trace = scene.finish();
    let [whole, part] = both(&trace, (ms(38), ms(64)), ms(3));
    assert_eq!(whole.quality.launches_without_ops, 0);
    assert_eq!(part.quality.launches_without_ops, 0);
    let kept = trace.part_with(Some(Ns(ms(38))), Some(Ns(ms(64))), Ns(ms(3)));
    let captures = kept.calls.indices().filter(|&call| kept.call_name(call).contains("Capture")).count();
    assert_eq!(captures, 2, "the others do not matter");
}

#[test]
fn the_bodies_of_a_conditional_node_that_runs_for_long_have_their_launch() {
    let mut scene = Scene::new();
    scene.call("cudaGraphLaunch_v10000", 1, ms(1), ms(1) + 9_000);
    for at in 2..100 {
        scene.node(7, 0, 5, (ms(at), ms(at) + 600_000));
    }
    scene.call("cudaStreamSynchronize_v3020", 2, ms(1) + 20_000, ms(99));
    let trace = scene.finish();
    let [whole, part] = both(&trace, (ms(50), ms(60)), ms(1));
    assert_eq!([whole.quality.orphan_ops, part.quality.orphan_ops], [0, 0]);
    assert_eq!(whole.devices[0].idle_by_root, part.devices[0].idle_by_root);
}

#[test]
fn a_kernel_that_ran_before_a_part_is_not_loaded_in_it() {
    let mut scene = Scene::new();
    for at in 0..200 {
        let name = if at % 100 == 60 { "rare" } else { "usual" };
        // A launch in the window takes long, though its kernel had been launched before.
        let length = if at == 160 { 700_000 } else { 5_000 };
        scene.launch_named(
            name,
            at as u64 + 1,
            (ms(at), ms(at) + length),
            7,
            (ms(at) + length + 3_000, ms(at) + 950_000),
        );
    }
    let [whole, part] = both(&scene.finish(), (ms(150), ms(170)), ms(5));
    assert_eq!(whole.devices[0].idle_by_root, part.devices[0].idle_by_root);
    assert!(
        !part.devices[0].idle_by_root.contains_key(&super::Cause::ModuleLoad),
        "{:?}",
        part.devices[0].idle_by_root
    );
}

#[test]
fn idle_time_at_the_edges_of_a_window_is_told_though_the_work_around_is_far_away() {
    let mut scene = Scene::new();
    for (id, at) in [(1, 0), (2, 100), (3, 101), (4, 200)] {
        scene.launch(id, (ms(at), ms(at) + 5_000), 7, (ms(at) + 8_000, ms(at) + 900_000));
    }
    let [whole, part] = both(&scene.finish(), (ms(60), ms(140)), ms(2));
    let edges =
        |found: &Analysis| found.quality.warnings.iter().find(|text| text.contains("begins or ends in idle")).cloned();
    assert!(edges(&whole).is_some());
    assert_eq!(edges(&whole), edges(&part));
}

#[test]
fn a_call_that_waits_since_before_a_part_is_told_to_have_found_more_work_than_is_known() {
    let mut scene = Scene::new();
    for at in 0..100 {
        scene.launch(at as u64 + 1, (at * 6_000, at * 6_000 + 5_000), 7, (ms(at) + 8_000, ms(at) + 900_000));
    }
    scene.stream_sync(200, 7, ms(1), ms(100));
    scene.call("cudaGetDevice", 300, ms(200), ms(200) + 1_000);
    let trace = scene.finish();
    let [whole, part] = both(&trace, (ms(50), ms(70)), ms(2));
    let ahead = |found: &Analysis| found.sync_calls[0].run_ahead.work.p50;
    assert!(ahead(&part) < ahead(&whole));
    let says_so = |found: &Analysis| found.quality.warnings.iter().any(|text| text.contains("run-ahead of calls"));
    assert!(says_so(&part) && !says_so(&whole));
    assert_eq!(part.devices[0].idle_by_root, whole.devices[0].idle_by_root);
    // Of one that began within what is looked at, all is known.
    let [whole, part] = both(&trace, (ms(1), ms(70)), ms(2));
    assert_eq!(ahead(&part), ahead(&whole));
    assert!(!says_so(&part));
}

#[test]
fn the_ranges_around_launches_long_before_a_part_are_known() {
    let mut scene = Scene::new();
    let process = scene.builder.process(1);
    let thread = scene.builder.thread(process, 1);
    let range = |scene: &mut Scene, name: &str, start: i64, end: i64| {
        let name = scene.builder.name(name);
        scene.builder.push_range(start, end, thread, name, RangeKind::Nvtx);
    };
    range(&mut scene, "all", 0, ms(200));
    for at in 0..100 {
        // Ever further ahead, in a range of its own, and one that the call outlasts.
        let call = at * 10_000;
        range(
            &mut scene,
            if at % 2 == 0 { "even" } else { "odd" },
            call,
            call + if at % 3 == 0 { 1_000 } else { 9_000 },
        );
        scene.launch(at as u64 + 1, (call + 500, call + 5_000), 7, (ms(at) + 8_000, ms(at) + 900_000));
    }
    let trace = scene.finish();
    let [whole, part] = both(&trace, (ms(50), ms(70)), ms(2));
    let kept = trace.clone().part_with(Some(Ns(ms(50))), Some(Ns(ms(70))), Ns(ms(2)));
    let sites = |found: &Analysis, trace: &Trace| -> Vec<_> {
        let name = |site: RangeIdx| trace.names.get(trace.ranges[site.index()].name).to_owned();
        found.devices[0].bubbles.iter().map(|bubble| bubble.root.site.map(name)).collect()
    };
    assert_eq!(sites(&whole, &trace), sites(&part, &kept));
    let named = |name: &str| kept.ranges.iter().filter(|range| kept.names.get(range.name) == name).count();
    assert_eq!([named("all"), named("even"), named("odd")], [1, 12, 12]);
}

#[test]
fn queries_that_found_their_work_done_are_no_spin_where_others_were_told_to_wait() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 5_000), 7, (8_000, ms(1)));
    scene.call_returning("cudaStreamQuery_v3020", 2, 9_000, 10_000, 600);
    for at in 0..40 {
        scene.launch(
            10 + at as u64,
            (ms(50 + at), ms(50 + at) + 5_000),
            7,
            (ms(50 + at) + 8_000, ms(50 + at) + 20_000),
        );
        for query in 0..4 {
            let start = ms(50 + at) + 30_000 + query * 10_000;
            scene.call("cudaStreamQuery_v3020", 1_000 + (at * 4 + query) as u64, start, start + 2_000);
        }
    }
    let [whole, part] = both(&scene.finish(), (ms(60), ms(70)), ms(2));
    assert_eq!(whole.sync_calls, []);
    assert_eq!(part.sync_calls, []);
}

#[test]
fn collectives_at_the_edges_of_a_part_lead_to_no_wrong_partner() {
    // Two pairs of devices at their own pace, whose collectives overlap those of the other at times, and each of which one
    // device comes first to and waits.
    let mut scene = Scene::new();
    for round in 0..1_000_i64 {
        for (devices, at, late, end) in
            [([0, 1], round * 1_000_000, 400_000, 700_000), ([2, 3], round * 830_000, 90_000, 600_000)]
        {
            for (device, from) in [(devices[0], 0), (devices[1], late)] {
                let skew = i64::from(device) * 900;
                scene.on_context(1, device, device + 1);
                let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
                let (start, end) = (at + from, at + end + skew);
                scene.op_named((OpKind::Kernel, 0, name), Detail::None, 7, 0, start, end);
            }
        }
    }
    let trace = scene.finish();
    for step in 0..40 {
        let from = 300_000_000 + step * 31_000;
        let [whole, part] = both(&trace, (from, from + ms(20)), ms(30));
        for (whole, part) in whole.devices.iter().zip(&part.devices) {
            assert_eq!(whole.peer_waits, part.peer_waits, "{step}");
        }
    }
}

#[test]
fn who_uses_events_elsewhere_is_known() {
    let mut scene = Scene::new();
    for at in 0..100_u64 {
        let start = ms(at as i64);
        scene.launch(at * 10 + 1, (start, start + 5_000), 7, (start + 8_000, start + 300_000));
        scene.record_event(at * 10 + 2, start + 6_000, 7, 1, Some(at + 1));
        scene.call("cudaEventSynchronize_v3020", at * 10 + 3, start + 7_000, start + 301_000);
        let time = (start + 7_000, start + 301_000);
        scene.sync_record(SyncKind::Event, at * 10 + 3, time, Some(7), Some((1, Some(at + 1))));
    }
    // The times between events are read at the end.
    scene.call("cudaEventElapsedTime_v3020", 5_000, ms(150), ms(150) + 2_000);
    let trace = scene.finish();
    let window = (Some(Ns(ms(40))), Some(Ns(ms(60))));
    let kept = trace.clone().part_with(window.0, window.1, Ns(ms(2)));
    let recorded = |trace: &Trace| {
        let waits = super::super::waits::Waits::new(trace);
        let waiting: Vec<_> = waits.calls().iter().map(|wait| wait.call).collect();
        (
            waits.recorded_only_for(trace, &waiting).len(),
            waits.recorded_for_time(trace).len(),
            waits.unresolved_events(),
        )
    };
    assert_eq!(recorded(&trace), (0, 0, 0), "they are for the times, too");
    assert_eq!(recorded(&kept), (0, 0, 0));
}
