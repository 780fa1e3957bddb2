//! What a program does once to get ready: allocations, code loading and the building of graphs that are no loop.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::subject::Subject;
use super::{Candidate, Evidence, FindingId, share_exceeds};
use crate::analysis::cause::{Cause, SegmentKind};
use crate::analysis::replay::{CallSet, Change};
use crate::analysis::segments::FirstLaunches;
use crate::analysis::words::{counted, time};
use crate::trace::{ApiKind, CallIdx, Ns, loads_code};

/// The calls of one API at one site that did one kind of thing.
#[derive(Default)]
struct Part {
    idle: Ns,
    /// With the idle time of each.
    calls: BTreeMap<CallIdx, Ns>,
}

/// Idle time in calls that get the program ready and that `taken`, the findings of loops, do not hold. `None` when that
/// is too little to matter.
pub(super) fn candidate(subject: &Subject<'_>, taken: &[Candidate]) -> Option<Candidate> {
    let mut parts = parts(subject, taken);
    let idle: Ns = parts.iter().map(|(_, part)| part.idle).sum();
    if !share_exceeds(idle, subject.span.len(), subject.limits.min_gain_percent) {
        return None;
    }
    parts.sort_by_key(|(_, part)| std::cmp::Reverse(part.idle));
    let calls: BTreeMap<CallIdx, Ns> = parts.iter().flat_map(|(_, part)| part.calls.clone()).collect();
    let kinds = &subject.trace.calls.kind;
    let (made, held): (Vec<CallIdx>, Vec<CallIdx>) = calls.keys().partition(|call| prepares(kinds[call.index()]));
    Some(Candidate {
        id: FindingId::OneTimeSetup,
        title: format!(
            "Set-up that is done once lies inside the span: the GPU is idle for {} in {}",
            time(idle),
            counted(calls.len() as u64, "call", "calls")
        ),
        count: calls.len() as u64,
        evidence: parts.iter().take(3).map(|(key, part)| evidence(key, part, subject)).collect(),
        remedy: "Get ready before the work that counts: allocate, build the graphs and launch every kernel once while \
                 warming up. To judge the rest by itself, leave the set-up out (--from with a moment behind it, or \
                 --iteration). In a longer run it weighs less.",
        changes: vec![Change::Remove(CallSet::Calls(made)), Change::Usual(CallSet::Calls(held))],
        change: format!("{}: set-up done before", FindingId::OneTimeSetup),
        wait: None,
        host_steps: None,
        estimate: idle,
    })
}

/// Whether a call does nothing but get something ready.
const fn prepares(kind: ApiKind) -> bool {
    matches!(kind, ApiKind::Alloc | ApiKind::Free | ApiKind::ModuleLoad | ApiKind::GraphBuild)
}

/// What makes a part.
type Key = (SegmentKind, String, Option<String>);

fn parts(subject: &Subject<'_>, taken: &[Candidate]) -> Vec<(Key, Part)> {
    let trace = subject.trace;
    let taken: FxHashSet<CallIdx> =
        taken.iter().flat_map(|candidate| &candidate.changes).flat_map(Change::calls).copied().collect();
    let mut first_launches = None;
    let mut idle: BTreeMap<(SegmentKind, CallIdx), Ns> = BTreeMap::new();
    for device in &subject.analysis.devices {
        for segment in &device.segments {
            let Some(call) = segment.call().filter(|call| !taken.contains(call)) else { continue };
            let kind = match segment.kind {
                kind @ (SegmentKind::Allocation | SegmentKind::ModuleLoad | SegmentKind::GraphBuild) => kind,
                // A launch that took long because it was a first one.
                SegmentKind::LaunchCall if segment.interval.len() >= subject.long_launch => {
                    let firsts = first_launches.get_or_insert_with(|| FirstLaunches::new(trace));
                    match firsts.work(trace, call) {
                        Some(Cause::GraphBuild) => SegmentKind::GraphBuild,
                        Some(_) => SegmentKind::ModuleLoad,
                        None => continue,
                    }
                }
                _ => continue,
            };
            *idle.entry((kind, call)).or_default() += segment.interval.len();
        }
    }
    let mut parts: BTreeMap<Key, Part> = BTreeMap::new();
    for ((kind, call), idle) in idle {
        let key = (kind, trace.call_name(call).to_owned(), subject.site(call));
        let part = parts.entry(key).or_default();
        part.idle += idle;
        part.calls.insert(call, idle);
    }
    for ((kind, ..), part) in &mut parts {
        part.retain_single(*kind, subject);
    }
    parts.into_iter().filter(|(_, part)| !part.calls.is_empty()).collect()
}

impl Part {
    /// Leaves out a loop of these calls, which is another matter, whatever became of it; but each module and kernel is
    /// loaded only once, and only first calls take remarkably long to look one up. Other look-ups are made again and
    /// again, be it in a loop that is short beside the program's start.
    fn retain_single(&mut self, kind: SegmentKind, subject: &Subject<'_>) {
        let trace = subject.trace;
        let loads = |call: CallIdx, idle: Ns| {
            kind == SegmentKind::ModuleLoad && (loads_code(trace.call_name(call)) || idle >= subject.long_launch)
        };
        let others = self.calls.iter().filter(|&(&call, &idle)| !loads(call, idle));
        let others: Vec<Ns> = others.map(|(&call, _)| subject.start(call)).collect();
        let is_loop = match kind {
            SegmentKind::ModuleLoad => subject.recurs(&others),
            _ => subject.keeps_recurring(&others),
        };
        if is_loop {
            self.calls.retain(|&call, &mut idle| loads(call, idle));
            self.idle = self.calls.values().copied().sum();
        }
    }
}

fn evidence((kind, api, site): &Key, part: &Part, subject: &Subject<'_>) -> Evidence {
    let launches = |call: &CallIdx| subject.trace.calls.kind[call.index()] == ApiKind::GraphLaunch;
    let what = match kind {
        SegmentKind::Allocation => "memory was allocated or freed",
        SegmentKind::GraphBuild if part.calls.keys().any(launches) => "a graph was launched for the first time",
        SegmentKind::GraphBuild => "a graph was built",
        _ => "code was loaded or compiled",
    };
    let within = site.as_ref().map_or_else(String::new, |site| format!(" in {site}"));
    let mut calls = counted(part.calls.len() as u64, "call", "calls");
    let host: Ns = part.calls.keys().map(|&call| subject.trace.calls.interval(call).len()).sum();
    // What kept the host also kept it from launching for a device that was still busy.
    if host.0 > part.idle.0.saturating_add(part.idle.0 / 10) {
        calls.push_str(&format!(" that kept the host for {}", time(host)));
    }
    let mut longest: Vec<(CallIdx, Ns)> = part.calls.iter().map(|(&call, &idle)| (call, idle)).collect();
    longest.sort_by_key(|&(call, idle)| (std::cmp::Reverse(idle), call));
    Evidence {
        text: format!("{api}{within}: {what} for {} of idle time, in {calls}", time(part.idle)),
        api: Some(api.clone()),
        site: site.clone(),
        at: longest.iter().take(3).map(|&(call, _)| subject.start(call)).collect(),
    }
}
