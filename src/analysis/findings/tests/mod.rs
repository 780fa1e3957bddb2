//! Traces made by hand.

mod guards;
mod patterns;

use super::{FindingId, Findings, Severity};
use crate::analysis::replay::Replay;
use crate::analysis::scene::Scene;
use crate::analysis::waits::Waits;
use crate::analysis::{Options, full};
use crate::trace::MemoryKind::{Device, Pinned};
use crate::trace::Trace;

const US: i64 = 1_000;

/// The findings of a whole trace. What holds for all is checked here.
fn findings(trace: &Trace) -> Findings {
    let full = full(trace, &Options::default());
    let waits = Waits::new(trace);
    let replay = Replay::new(trace, &waits, None);
    let span = replay.unchanged().span;
    for finding in &full.findings.found {
        let outcome = replay.with(&finding.changes);
        assert_eq!(outcome.gain, Some(finding.recoverable), "{}: promises what the replay shows", finding.id);
        assert!(finding.recoverable.0 * 100 >= span.0, "{}", finding.id);
        let share = finding.recoverable.0 * 100 / span.0;
        let severity = if share >= 10 {
            Severity::High
        } else if share >= 3 {
            Severity::Medium
        } else {
            Severity::Low
        };
        assert_eq!(finding.severity, severity);
        assert!(finding.count > 0 && !finding.evidence.is_empty() && !finding.remedy.is_empty());
        assert!(finding.evidence.iter().flat_map(|evidence| &evidence.at).all(|&at| at <= trace.end));
    }
    assert!(full.findings.found.is_sorted_by(|a, b| a.recoverable >= b.recoverable));
    let facts = full.replay.unwrap();
    assert_eq!(facts.what_if.len(), full.findings.found.len());
    assert_eq!(facts.all_together.is_some(), !full.findings.found.is_empty());
    full.findings
}

fn ids(trace: &Trace) -> Vec<FindingId> {
    let findings = findings(trace);
    assert_eq!(findings.withheld, None);
    findings.found.iter().map(|finding| finding.id).collect()
}

/// A trace of `count` steps. Each is told its number, correlation ids to use from, and when it begins; it says when the
/// next one begins.
fn steps(count: u64, mut step: impl FnMut(&mut Scene, u64, u64, i64) -> i64) -> Trace {
    let mut scene = Scene::new();
    let mut at = 0;
    for index in 0..count {
        at = step(&mut scene, index, index * 100 + 1, at);
    }
    scene.finish()
}

/// Launches a kernel of 12 µs on an idle device and copies `bytes` from it to pinned memory; then waits for both.
fn read_back(scene: &mut Scene, bytes: u64, id: u64, at: i64) -> i64 {
    scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 17 * US));
    let (call, op) = ((at + 4_200, at + 6 * US), (7, at + 18 * US, at + 19 * US));
    scene.copies(("cudaMemcpyAsync_v3020", bytes), (Device, Pinned), id + 1, call, op);
    scene.stream_sync(id + 2, 7, at + 6_200, at + 22 * US);
    at + 23 * US
}
