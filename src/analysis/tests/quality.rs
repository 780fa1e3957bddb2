//! Whether idle time can be relied on.

use super::super::scene::Scene;
use super::super::{Options, analyze};
use super::analysis;
use crate::trace::{Interval, Ns, Unrecorded};

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
fn work_that_something_held_is_told_with_who_may_have_done_so() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 3_000));
    // It waits for two milliseconds, though nothing else runs.
    scene.launch(2, (4_000, 5_000), 7, (2_005_000, 2_006_000));
    let mut trace = scene.finish();
    let quality = analysis(&trace).quality;
    let expected = "2.00 ms of idle time comes from something that was not recorded, such as another process on the GPU \
                    (`nvidia-smi` may name it)";
    assert_eq!(quality.reasons, [expected]);
    let devices = vec![trace.devices[0].id];
    trace.meta.unrecorded = vec![Unrecorded { pid: Some(77), name: "other".into(), devices, ..Unrecorded::default() }];
    let reasons = analysis(&trace).quality.reasons;
    assert!(reasons[0].ends_with("something that was not recorded"), "{reasons:?}");
    assert!(reasons[1].contains("process 77 (other)"), "{reasons:?}");
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
