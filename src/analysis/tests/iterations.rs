//! Iterations and windows.

use super::super::scene::Scene;
use super::super::{IterationSource, Options, analyze, windows};
use super::{analysis, assert_sums, synced_loop};
use crate::trace::{Interval, Ns, RangeKind, Trace, WorkloadRun};

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

/// Steps of one kernel on each of three streams, each kernel three steps long; four streams' worth of steps per iteration
/// of the workload.
fn beside_each_other(kernel: i64) -> Trace {
    let mut scene = Scene::new();
    for step in 0..60 {
        let at = step * 10_000;
        let name = ["a", "b", "c"][step as usize % 3];
        let begin = at + 3_000;
        scene.launch_named(name, step as u64 + 1, (at, at + 2_000), 7 + step as u32 % 3, (begin, begin + kernel));
        // What parts steps, so that none follows the other at once.
        if step % 3 == 2 && step % 7 == 0 {
            scene.launch_named("odd", 1_000 + step as u64, (at + 2_500, at + 4_500), 10, (at + 5_000, at + 5_500));
        }
    }
    scene.finish()
}

/// Times that overlap are no periods: all together may not last longer than they take.
#[test]
fn iterations_do_not_last_longer_than_the_span() {
    for kernel in [1_000, 5_000, 20_000, 29_000] {
        let trace = beside_each_other(kernel);
        let found = analysis(&trace);
        let span = found.devices[0].span.len();
        if let Some(found) = found.iterations {
            let together: Ns = found.intervals.iter().map(|interval| interval.len()).sum();
            assert!(together.0 * 100 <= span.0 * 105, "{kernel}: {together} of {span}");
        }
    }
}

/// Four equal launches per iteration look like four iterations, unless the recording tells.
#[test]
fn iterations_are_those_that_a_workload_tells_of() {
    let with = |iterations: u64, warmup: u64, per: u64| {
        let mut scene = Scene::new();
        let count = (iterations + warmup) * per;
        for launch in 0..count {
            let at = launch as i64 * 10_000;
            scene.launch(launch + 1, (at, at + 2_000), 7, (at + 3_000, at + 9_000));
        }
        let mut trace = scene.finish();
        let (from, to) = ((warmup * per) as i64 * 10_000, count as i64 * 10_000);
        let measured = Some(Interval::new(Ns(from), Ns(to)));
        trace.meta.workload = Some(WorkloadRun { iterations, warmup, measured, ..WorkloadRun::default() });
        trace
    };
    for (iterations, warmup, per) in [(12, 0, 4), (12, 3, 4), (30, 1, 2), (30, 5, 1)] {
        let found = analysis(&with(iterations, warmup, per)).iterations.unwrap();
        assert_eq!(found.source, IterationSource::LaunchSequence { launches: per as usize });
        assert_eq!(found.count + found.warmup, iterations + warmup, "{per}");
        assert_eq!(found.period.p50, Ns(per as i64 * 10_000));
    }
    // What does not fit is left as it is found.
    let mut trace = with(12, 0, 4);
    trace.meta.workload.as_mut().unwrap().iterations = 17;
    assert_eq!(analysis(&trace).iterations.unwrap().count, 48);
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
        scene.builder.push_range(at, at + 29_000, thread, name, RangeKind::Annotation);
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
            scene.builder.push_range(begin, begin + 39_000, thread, step, RangeKind::Nvtx);
            for at in (0..3).map(|number| begin + 10_000 * number + 5_000) {
                scene.builder.push_range(at, at + 4_000, thread, layer, RangeKind::Nvtx);
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
