//! Patterns that people can fix, each with what fixing it recovers.
//!
//! A pattern is found in the trace, and becomes a finding only when the [`replay`](super::replay) of the recording with
//! the remedy shows that the span gets shorter. The rules against false alarms:
//!
//! | no finding | because |
//! |---|---|
//! | when every device is idle for less than 2 % of its span | there is nothing to recover |
//! | of something that does not recur: 8 times, or in half of the iterations | it is no loop; set-up that lies inside the span is a finding of its own, which says so |
//! | of a wait that no launch of its process follows | the end of a program has to wait |
//! | that recovers less than 1 % of the span, or less than the replay errs | it would not show |
//! | of a wait that recovers so much only because its calls take time themselves | the host is the bottleneck, not the wait |
//! | at all when idle time is not reliable or the replay withholds its answers | nothing could be promised |
//!
//! A call belongs to one finding at most, the most specific one. Gains of several findings do not add up.

mod calls;
mod program;
mod setup;
mod streams;
mod subject;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::bubbles::Host;
use super::cause::{Cause, Rule};
use super::finding::{FindingId, Severity};
use super::options::{FindingLimits, Options};
use super::replay::{Change, Replay};
use super::result::{Analysis, Bubble, DeviceAnalysis, Segment};
use super::words::{percent, time};
use crate::progress::{Cancelled, Until};
use crate::trace::{CallIdx, Ns, Trace};
pub(super) use calls::reads_scalar;
use program::HostSteps;
use subject::Subject;

/// The patterns of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Those that are worth fixing, the one that recovers most first.
    pub found: Vec<Finding>,
    /// Why none can be told, one sentence; `None` when they were looked for.
    pub withheld: Option<String>,
}

/// A pattern that can be fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which pattern.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// One line for people.
    pub title: String,
    /// What the span loses in a replay with the remedy.
    pub recoverable: Ns,
    /// How often the pattern occurs.
    pub count: u64,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// What to do about it.
    pub remedy: &'static str,
    /// What was changed for the replay.
    pub changes: Vec<Change>,
    /// That in words.
    pub change: String,
    /// The span in the replay.
    pub span: Ns,
    /// What the promise takes for granted.
    pub assumptions: Vec<&'static str>,
    /// The calls that it changes, in the order of the call table; none for patterns that are not about single calls.
    calls: Vec<CallIdx>,
    /// Which bubbles are its steps, for [`FindingId::HostBoundStep`].
    host_steps: Option<HostSteps>,
}

impl Finding {
    /// Whether a bubble of `device` is one of those that the pattern makes: the set-up goes on in it; or one of the
    /// finding's calls is to blame for it, drained the device before it or makes it part of its refill; or it is of the
    /// kind that the pattern is about.
    pub fn concerns(&self, device: &DeviceAnalysis, bubble: &Bubble) -> bool {
        self.concerns_with(device, bubble, |call| self.calls.binary_search(&call).is_ok())
    }

    /// The same, where it is known which calls are the finding's.
    fn concerns_with(&self, device: &DeviceAnalysis, bubble: &Bubble, is_ours: impl Fn(CallIdx) -> bool) -> bool {
        let root = &bubble.root;
        match self.id {
            FindingId::DefaultStream => root.rule == Rule::LegacyDefaultStream,
            FindingId::NoOverlap => root.cause == Cause::Dependency && root.rule != Rule::LegacyDefaultStream,
            FindingId::HostBoundStep => self.host_steps.is_some_and(|steps| steps.contain(device, bubble)),
            FindingId::TinyLaunches => matches!(root.cause, Cause::LaunchBound | Cause::Dispatch),
            FindingId::OneTimeSetup => device.segments_of(bubble).iter().filter_map(Segment::call).any(is_ours),
            _ => {
                let blamed = root.call.filter(|_| root.cause.blames_call() || root.rule == Rule::LaunchCallLong);
                let calls = [blamed, bubble.drained_by.map(|drain| drain.call), bubble.refill_of];
                calls.into_iter().flatten().any(is_ours)
            }
        }
    }
}

/// What shows a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// One line for people.
    pub text: String,
    /// The API called.
    pub api: Option<String>,
    /// The innermost range around the calls, a trailing number cut off.
    pub site: Option<String>,
    /// A few moments at which it happens.
    pub at: Vec<Ns>,
}

/// A pattern before the replay has said what it is worth.
#[derive(Clone, Debug)]
struct Candidate {
    id: FindingId,
    title: String,
    count: u64,
    evidence: Vec<Evidence>,
    remedy: &'static str,
    changes: Vec<Change>,
    change: String,
    /// What has to recover enough too. Taking calls that wait out also saves the time that they take without a wait; a
    /// program bound by its host gains that by taking any call out, so it is no reason to blame the wait.
    wait: Option<Change>,
    host_steps: Option<HostSteps>,
    /// Idle time that has to do with it: the order in which candidates are replayed when there are too many.
    estimate: Ns,
}

/// The findings in the part of `trace` that `analysis` and `replay` are of, and how many changes were replayed for
/// them: at most [`Options::max_changes`].
///
/// # Errors
/// When it is over before.
pub(super) fn find(
    trace: &Trace,
    host: &Host,
    analysis: &Analysis,
    replay: &Replay<'_>,
    options: &Options,
    until: Until<'_>,
) -> Result<(Findings, usize), Cancelled> {
    if let Some(reason) = withheld(analysis, replay) {
        return Ok((Findings { found: Vec::new(), withheld: Some(reason) }, 0));
    }
    if is_busy(analysis, &options.findings) {
        return Ok((Findings::default(), 0));
    }
    let subject = Subject::new(trace, host, analysis, options, until);
    until.check()?;
    let mut candidates = calls::candidates(&subject, until)?;
    until.check()?;
    candidates.extend(program::candidates(&subject));
    until.check()?;
    candidates.extend(streams::candidates(&subject));
    until.check()?;
    candidates.extend(setup::candidate(&subject, &candidates));
    until.check()?;
    candidates.sort_by_key(|candidate| (std::cmp::Reverse(candidate.estimate), candidate.id));
    let set_up = candidates.iter().find(|candidate| candidate.id == FindingId::OneTimeSetup);
    let set_up = set_up.map_or(Ns::ZERO, |candidate| candidate.estimate);
    let replayed = affordable(&mut candidates, options.max_changes);
    let mut found = worthwhile(candidates, replay, &options.findings);
    let (idle, devices) = (analysis.idle_of_all(), analysis.devices.len());
    for finding in &mut found {
        until.check()?;
        let [part, roots, less] = bubbles_of(finding, trace, analysis, set_up);
        let more = [part, less, roots, beyond_idle(finding, trace, idle, devices)];
        finding.evidence.extend(more.into_iter().flatten().map(|text| Evidence { text, ..Evidence::default() }));
    }
    Ok((Findings { found, withheld: None }, replayed))
}

/// Under which root causes the bubbles of a finding stand, so that both can be read together; of set-up how much of them it
/// is (`set_up`), and of calls why the gain is less than they last.
fn bubbles_of(finding: &Finding, trace: &Trace, analysis: &Analysis, set_up: Ns) -> [Option<String>; 3] {
    // There may be millions of both.
    let mut is_ours = vec![false; trace.calls.len()];
    finding.calls.iter().for_each(|call| is_ours[call.index()] = true);
    let mut causes: BTreeMap<Cause, Ns> = BTreeMap::new();
    for device in &analysis.devices {
        let concerned = |bubble: &&Bubble| finding.concerns_with(device, bubble, |call| is_ours[call.index()]);
        for bubble in device.bubbles.iter().filter(concerned) {
            *causes.entry(bubble.root.cause).or_default() += bubble.interval.len();
        }
    }
    let of_all = (finding.id == FindingId::OneTimeSetup).then(|| set_up_in(causes.values().copied().sum(), set_up));
    let less = less_than_bubbles(finding, causes.values().copied().sum());
    let mut causes: Vec<(Cause, Ns)> = causes.into_iter().collect();
    causes.sort_by_key(|&(cause, idle)| (std::cmp::Reverse(idle), cause));
    // Those are more than the ones that exist because of the calls.
    let those = match finding.id {
        FindingId::DefaultStream
        | FindingId::NoOverlap
        | FindingId::HostBoundStep
        | FindingId::TinyLaunches
        | FindingId::OneTimeSetup => "its bubbles",
        _ => "the bubbles that it caused, began or prolonged",
    };
    if let [(cause, _)] = causes.as_slice() {
        return [of_all.flatten(), Some(format!("{those} have the root cause {cause}")), less];
    }
    let (most, others) = causes.split_at(causes.len().min(3));
    let mut parts: Vec<String> = most.iter().map(|&(cause, idle)| format!("{cause} {}", time(idle))).collect();
    if !others.is_empty() {
        parts.push(format!("others {}", time(others.iter().map(|&(_, idle)| idle).sum())));
    }
    let roots = (!parts.is_empty()).then(|| format!("{those} have the root causes {}", parts.join(", ")));
    [of_all.flatten(), roots, less]
}

/// Why a finding about waits of its calls gains less than its bubbles last, where that is much less.
fn less_than_bubbles(finding: &Finding, bubbles: Ns) -> Option<String> {
    let is_async = finding.changes.iter().any(|change| matches!(change, Change::Async(_)));
    (is_async && !share_exceeds(finding.recoverable, bubbles, 90)).then(|| {
        format!(
            "the gain is less than the {} that these bubbles last: without the wait the host still has to submit the \
             work, and the GPU to switch from one op to the next",
            time(bubbles)
        )
    })
}

/// How much of the bubbles in which set-up lies is set-up, where that is not nearly all: they may be long for other reasons.
fn set_up_in(bubbles: Ns, set_up: Ns) -> Option<String> {
    (!share_exceeds(set_up, bubbles, 90)).then(|| {
        let share = percent(set_up.0 as f64 / bubbles.0.max(1) as f64);
        format!("set-up is {} of the {} that its bubbles last, {share}: the rest is not", time(set_up), time(bubbles))
    })
}

/// Why a finding promises more than `idle`, the time in which no device worked, if it does.
fn beyond_idle(finding: &Finding, trace: &Trace, idle: Ns, devices: usize) -> Option<String> {
    if finding.recoverable <= idle {
        return None;
    }
    let removed = finding.changes.iter().filter(|change| matches!(change, Change::Remove(_))).flat_map(Change::calls);
    let work: Ns = removed.flat_map(|&call| trace.call_ops(call)).map(|&op| trace.ops.interval(op).len()).sum();
    let overlaps =
        finding.changes.iter().any(|change| matches!(change, Change::NoDefaultStream | Change::NoStreamWaits));
    let why = if overlaps {
        "work of different streams would also run at the same time".to_owned()
    } else if work > Ns::ZERO {
        format!("the {} that the GPU works for these calls go too", time(work))
    } else {
        "work that now runs one after the other would also run at the same time".to_owned()
    };
    let idle = match devices {
        1 => format!("the GPU's idle time of {}", time(idle)),
        _ => format!("the {} in which no GPU worked", time(idle)),
    };
    Some(format!("the gain is more than {idle}, because {why}"))
}

/// Why nothing can be said, if so.
fn withheld(analysis: &Analysis, replay: &Replay<'_>) -> Option<String> {
    if !analysis.quality.idle_reliable {
        let reasons = analysis.quality.reasons.join("; ");
        return Some(match reasons.is_empty() {
            true => "idle time is not reliable".to_owned(),
            false => format!("idle time is not reliable: {reasons}"),
        });
    }
    replay.is_withheld().then(|| {
        let error = percent(replay.unchanged_error());
        format!("a replay without any change misses the recording's length by {error}, too much for a promise")
    })
}

/// Whether no device is idle for long enough.
fn is_busy(analysis: &Analysis, limits: &FindingLimits) -> bool {
    let idles = |idle: Ns, span: Ns| share_exceeds(idle, span, limits.min_idle_percent);
    !analysis.devices.iter().any(|device| idles(device.idle_ns(), device.span.len()))
}

/// Whether `part` is at least so many percent of `whole`.
fn share_exceeds(part: Ns, whole: Ns, percent: i64) -> bool {
    part > Ns::ZERO && i128::from(part.0) * 100 >= i128::from(whole.0) * i128::from(percent)
}

/// Keeps the first candidates that need no more replays than `limit`; how many they need.
fn affordable(candidates: &mut Vec<Candidate>, limit: usize) -> usize {
    let mut replayed = 0;
    let all = candidates.iter().position(|candidate| {
        let needed = 1 + usize::from(candidate.wait.is_some());
        let too_many = replayed + needed > limit;
        replayed += if too_many { 0 } else { needed };
        too_many
    });
    candidates.truncate(all.unwrap_or(candidates.len()));
    replayed
}

/// Replays every candidate and keeps those that recover enough.
fn worthwhile(candidates: Vec<Candidate>, replay: &Replay<'_>, limits: &FindingLimits) -> Vec<Finding> {
    let mut changes: Vec<Vec<Change>> = candidates.iter().map(|candidate| candidate.changes.clone()).collect();
    changes.extend(candidates.iter().filter_map(|candidate| candidate.wait.clone()).map(|wait| vec![wait]));
    let span = replay.unchanged().span;
    #[expect(clippy::cast_possible_truncation, reason = "a share of a span is no longer than the span")]
    let error = Ns((replay.unchanged_error() * span.0 as f64) as i64);
    let enough = |gain: &Ns| share_exceeds(*gain, span, limits.min_gain_percent) && *gain > error;
    let mut outcomes = replay.each(&changes);
    let mut waits = outcomes.split_off(candidates.len()).into_iter();
    let mut found: Vec<Finding> = Vec::new();
    for (candidate, outcome) in candidates.into_iter().zip(outcomes) {
        let wait = candidate.wait.as_ref().and_then(|_| waits.next());
        if wait.is_some_and(|wait| !wait.gain.is_some_and(|gain| enough(&gain))) {
            continue;
        }
        let Some(recoverable) = outcome.gain.filter(enough) else { continue };
        let mut calls: Vec<CallIdx> = candidate.changes.iter().flat_map(Change::calls).copied().collect();
        calls.sort_unstable();
        found.push(Finding {
            id: candidate.id,
            severity: severity(recoverable, span),
            title: candidate.title,
            recoverable,
            count: candidate.count,
            evidence: candidate.evidence,
            remedy: candidate.remedy,
            changes: candidate.changes,
            change: candidate.change,
            span: outcome.span,
            assumptions: outcome.assumptions,
            calls,
            host_steps: candidate.host_steps,
        });
    }
    found.sort_by_key(|finding| (std::cmp::Reverse(finding.recoverable), finding.id));
    found
}

/// How much a gain matters.
fn severity(gain: Ns, span: Ns) -> Severity {
    if share_exceeds(gain, span, 10) {
        Severity::High
    } else if share_exceeds(gain, span, 3) {
        Severity::Medium
    } else {
        Severity::Low
    }
}
