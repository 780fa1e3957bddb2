//! What is no finding, what is not promised, and how much is replayed for it.

use super::super::FindingId;
use super::{US, ids, read_back, steps};
use crate::analysis::replay::{Change, Replay};
use crate::analysis::scene::Scene;
use crate::analysis::waits::Waits;
use crate::analysis::{Options, full};
use crate::trace::MemoryKind::{Device, Pinned};
use crate::trace::{Ns, SyncKind, Trace};

#[test]
fn a_busy_device_has_no_finding() {
    // A synchronisation per kernel, each of which costs 8 µs of 1 ms.
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 1_000 * US));
        scene.stream_sync(id + 1, 7, at + 4_200, at + 1_002 * US);
        at + 1_003 * US
    });
    assert_eq!(ids(&trace), []);
}

#[test]
fn one_synchronisation_at_the_end_is_no_finding() {
    let mut scene = Scene::new();
    for index in 0..100 {
        let (call, start) = (index * 5 * US, 6 * US + index * 21 * US);
        scene.launch(index as u64 + 1, (call, call + 4 * US), 7, (start, start + 20 * US));
    }
    scene.call("cudaDeviceSynchronize_v3020", 1_000, 501 * US, 2_110 * US);
    assert_eq!(ids(&scene.finish()), []);
}

#[test]
fn a_few_synchronisations_are_no_loop() {
    let trace = steps(200, |scene, index, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 20 * US));
        if index % 80 == 40 {
            scene.stream_sync(id + 1, 7, at + 4_200, at + 500 * US);
            return at + 501 * US;
        }
        at + 17 * US
    });
    assert_eq!(ids(&trace), []);
}

/// Ten kernels that the host launches more slowly than they run. `waits`
/// makes calls behind them that find the device done, and says when the host goes on.
fn host_bound(waits: impl Fn(&mut Scene, u64, u64, i64) -> i64) -> Trace {
    steps(40, |scene, index, id, at| {
        for launch in 0..10 {
            let at = at + launch * 20 * US;
            scene.launch(id + launch as u64, (at, at + 4 * US), 7, (at + 5 * US, at + 6 * US));
        }
        waits(scene, index, id + 10, at + 200 * US)
    })
}

#[test]
fn calls_that_only_take_host_time_are_no_waits() {
    let gain = |trace: &Trace, api: &str| {
        let waits = Waits::new(trace);
        let replay = Replay::new(trace, &waits, None);
        let gain = replay.with(&[format!("remove={api}").parse().unwrap()]).gain.unwrap();
        (gain.0 * 100, replay.unchanged().span.0)
    };
    let scalar = host_bound(|scene, _, id, at| {
        scene.copies(
            ("cudaMemcpyAsync_v3020", 4),
            (Device, Pinned),
            id,
            (at, at + 8 * US),
            (7, at + 7 * US, at + 8 * US),
        );
        scene.stream_sync(id + 1, 7, at + 8 * US, at + 9 * US);
        at + 10 * US
    });
    let timing = host_bound(|scene, index, id, at| {
        scene.record_event(id, at, 7, 9, Some(index + 1));
        scene.call("cudaEventSynchronize_v3020", id + 1, at + US, at + 2 * US);
        let event = Some((9, Some(index + 1)));
        scene.sync_record(SyncKind::Event, id + 1, (at + US, at + 2 * US), None, event);
        scene.call("cudaEventElapsedTime_v3020", id + 2, at + 2 * US, at + 10 * US);
        at + 11 * US
    });
    for (name, trace, api) in [
        ("scalar", &scalar, "cudaMemcpyAsync,cudaStreamSynchronize"),
        ("timing", &timing, "cudaEventSynchronize,cudaEventElapsedTime"),
    ] {
        let (gain, span) = gain(trace, api);
        assert!(gain > span, "{name}: without these calls the program is faster, {gain} of {span}");
        let found = ids(trace);
        assert!(
            !found.contains(&FindingId::ScalarReadback) && !found.contains(&FindingId::EventTiming),
            "{name}: {found:?}"
        );
        assert!(
            found.contains(&FindingId::HostBoundStep) || found.contains(&FindingId::TinyLaunches),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn what_recovers_too_little_is_no_finding() {
    // The host's own 400 µs per step dwarf a wait of 2 µs.
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 6 * US));
        scene.stream_sync(id + 1, 7, at + 4_200, at + 7 * US);
        at + 407 * US
    });
    assert_eq!(ids(&trace), [FindingId::HostBoundStep]);
}

#[test]
fn nothing_is_promised_on_unreliable_records() {
    let mut scene = Scene::new();
    for index in 0..40 {
        read_back(&mut scene, 4, index * 100 + 1, index as i64 * 23 * US);
    }
    scene.builder.meta.losses.dropped_records = 3;
    let full = full(&scene.finish(), &Options::default());
    assert_eq!(full.findings.found, []);
    assert_eq!(
        full.findings.withheld.as_deref(),
        Some("idle time is not reliable: 3 records were dropped while recording")
    );
    assert!(full.analysis.sync_calls.iter().all(|row| row.recoverable.is_none()));
}

#[test]
fn nothing_is_promised_when_the_replay_misses_the_recording() {
    // The second kernel starts 15 µs after the first, launched neither before nor after it: nothing says why.
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 15 * US));
        scene.launch(id + 1, (at + 10 * US, at + 14 * US), 7, (at + 30 * US, at + 40 * US));
        scene.stream_sync(id + 2, 7, at + 14_200, at + 42 * US);
        at + 43 * US
    });
    let full = full(&trace, &Options::default());
    assert_eq!(full.findings.found, []);
    let reason = full.findings.withheld.unwrap();
    assert!(reason.starts_with("a replay without any change misses the recording's length by "), "{reason}");
    assert!(full.replay.unwrap().withheld);
}

#[test]
fn nothing_is_promised_of_a_trace_without_device_work() {
    let mut scene = Scene::new();
    scene.call("cudaLaunchKernel_v7000", 1, 0, 4 * US);
    let full = full(&scene.finish(), &Options::default());
    assert!(full.findings.withheld.is_some() && full.replay.is_none());
}

#[test]
fn no_more_changes_are_replayed_than_allowed() {
    let trace = steps(40, |scene, _, id, at| read_back(scene, 4, id, at));
    let none = full(&trace, &Options { max_changes: 0, ..Options::default() });
    assert_eq!(none.findings.found, []);
    assert!(none.analysis.sync_calls.iter().all(|row| row.recoverable.is_none()));
    // The finding takes two: without the calls, and with calls that do not wait.
    for (max_changes, findings, rows) in [(1, 0, 1), (2, 1, 0), (3, 1, 1)] {
        let some = full(&trace, &Options { max_changes, ..Options::default() });
        assert_eq!(some.findings.found.len(), findings, "{max_changes}");
        let known = some.analysis.sync_calls.iter().filter(|row| row.recoverable.is_some()).count();
        assert_eq!(known, rows, "{max_changes}");
    }
}

#[test]
fn changes_that_were_asked_for_are_answered_besides() {
    let trace = steps(40, |scene, _, id, at| read_back(scene, 4, id, at));
    let asked: Vec<Change> = ["host=0.5", "no-sync"].iter().map(|text| text.parse().unwrap()).collect();
    let full = full(&trace, &Options { what_if: asked.clone(), ..Options::default() });
    let facts = full.replay.unwrap();
    assert_eq!(facts.what_if.len(), 3);
    assert!(facts.what_if.is_sorted_by(|a, b| a.gain >= b.gain));
    let mut all = full.findings.found[0].changes.clone();
    all.extend(asked.clone());
    let waits = Waits::new(&trace);
    let replay = Replay::new(&trace, &waits, None);
    assert_eq!(facts.all_together.unwrap().span, replay.with(&all).span);
    // The remedies are those of the findings, whatever is asked.
    let remedies = facts.remedies_together.unwrap();
    assert_eq!(remedies.span, replay.with(&full.findings.found[0].changes).span);
    assert_eq!(
        (remedies.change, remedies.gain),
        (full.findings.found[0].change.clone(), full.findings.found[0].recoverable)
    );

    // What is asked twice has one answer.
    let twice = [asked.as_slice(), asked.as_slice()].concat();
    let again = full_with(&trace, twice);
    assert_eq!(again.what_if, facts.what_if);
}

#[test]
fn a_change_that_is_a_findings_remedy_is_answered_once() {
    let trace = host_bound(|_, _, _, at| at + 400 * US);
    let found = full(&trace, &Options::default()).findings.found;
    assert!(!found.is_empty());
    let asked: Vec<Change> = found.iter().flat_map(|finding| finding.changes.clone()).collect();
    let (plain, asked) = (full_with(&trace, Vec::new()), full_with(&trace, asked));
    assert_eq!(plain.what_if, asked.what_if);
    assert_eq!(plain.remedies_together, asked.remedies_together);
    assert_eq!(plain.remedies_together, plain.all_together);
}

fn full_with(trace: &Trace, what_if: Vec<Change>) -> crate::analysis::ReplayFacts {
    full(trace, &Options { what_if, ..Options::default() }).replay.unwrap()
}

#[test]
fn calls_whose_gain_is_known_come_first_the_largest_gain_before_the_others() {
    // One wait drains more, the other gains more: behind it, host code takes as long whether or not it is there.
    let trace = steps(40, |scene, _, id, at| {
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 45 * US));
        scene.stream_sync(id + 1, 7, at + 4_200, at + 47 * US);
        scene.launch(id + 2, (at + 300 * US, at + 304 * US), 7, (at + 305 * US, at + 405 * US));
        scene.call("cudaDeviceSynchronize_v3020", id + 3, at + 304_200, at + 407 * US);
        at + 410 * US
    });
    for max_changes in [1, 16] {
        let rows = full(&trace, &Options { max_changes, ..Options::default() }).analysis.sync_calls;
        let gains: Vec<Option<Ns>> = rows.iter().map(|row| row.recoverable).collect();
        assert_eq!(rows.len(), 2);
        assert!(gains.is_sorted_by(|a, b| a >= b), "{gains:?}");
    }
}
