//! Everything that can be said about a recording: the analysis, what its waits cost, the findings, and what changes
//! would gain.

use super::bubbles::Host;
#[cfg(doc)]
use super::finding::FindingId;
use super::findings::{self, Findings};
use super::options::Options;
use super::replay::{self, Change, Outcome, Replay};
use super::result::Analysis;
use crate::progress::{Cancelled, Until, Watch, uncancelled};
use crate::trace::{CallIdx, Ns, Trace};

/// Everything that can be said about a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FullAnalysis {
    /// The analysis. Its [`sync_calls`](Analysis::sync_calls) say what is recoverable.
    pub analysis: Analysis,
    /// The patterns that people can fix.
    pub findings: Findings,
    /// What the replay showed; `None` when there was nothing to replay.
    pub replay: Option<ReplayFacts>,
}

/// What the replay showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayFacts {
    /// How far the replay without any change is off the recording, as a share of the span.
    pub unchanged_error: f64,
    /// Whether that is too much for gains to be given.
    pub withheld: bool,
    /// The span of the replay without changes.
    pub span: Ns,
    /// [`Analysis::idle_of_all`]: what more than that is gained comes of work that overlaps or goes away.
    pub idle: Ns,
    /// The changes that were asked for and those that the findings propose, the one that gains most first.
    pub what_if: Vec<WhatIf>,
    /// All of them at once; `None` when there are none.
    pub all_together: Option<WhatIf>,
    /// Those that the findings propose at once: what is asked for besides is a question, and no remedy. `None` when there
    /// are none.
    pub remedies_together: Option<WhatIf>,
}

/// What a change gains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WhatIf {
    /// The change.
    pub change: String,
    /// The span with it.
    pub span: Ns,
    /// What the span loses; negative when it gets longer.
    pub gain: Ns,
    /// Whether that is the least to expect ([`FindingId::gains_at_least`]).
    pub at_least: bool,
    /// What the answer takes for granted.
    pub assumptions: Vec<&'static str>,
}

/// The first half of [`full`]: the analysis, and what the replay needs to know of the host.
pub struct HalfWay {
    /// The analysis. What is recoverable is not known yet.
    pub analysis: Analysis,
    host: Host,
}

/// Analyses the part of `trace` that `options` ask for, and replays it: at most [`Options::max_changes`] changes, those
/// of [`Options::what_if`] and all together not counted.
pub fn full(trace: &Trace, options: &Options) -> FullAnalysis {
    half_way(trace, options).finish(trace, options)
}

/// Begins with [`full`], for those who want to use the analysis while the replay goes on.
pub fn half_way(trace: &Trace, options: &Options) -> HalfWay {
    let (analysis, host) = uncancelled(|until| super::analyze_until(trace, options, until));
    HalfWay { analysis, host }
}

/// The same while somebody waits for it. How far it is is not told.
///
/// # Errors
/// When it is cancelled.
pub fn half_way_watched(trace: &Trace, options: &Options, watch: &dyn Watch) -> Result<HalfWay, Cancelled> {
    let (analysis, host) = super::analyze_until(trace, options, Until::cancelled(watch))?;
    Ok(HalfWay { analysis, host })
}

impl HalfWay {
    /// The second half, of the same trace with the same options.
    pub fn finish(self, trace: &Trace, options: &Options) -> FullAnalysis {
        uncancelled(|until| self.finish_until(trace, options, until))
    }

    /// The same while somebody waits for it. How far it is is not told.
    ///
    /// # Errors
    /// When it is cancelled.
    pub fn finish_watched(
        self,
        trace: &Trace,
        options: &Options,
        watch: &dyn Watch,
    ) -> Result<FullAnalysis, Cancelled> {
        self.finish_until(trace, options, Until::cancelled(watch))
    }

    fn finish_until(self, trace: &Trace, options: &Options, until: Until<'_>) -> Result<FullAnalysis, Cancelled> {
        let Self { mut analysis, host } = self;
        until.check()?;
        if analysis.devices.is_empty() {
            let reason = match analysis.quality.gpu_not_captured {
                true => "GPU activity was not captured",
                false => "there is no GPU activity",
            };
            let findings = Findings { found: Vec::new(), withheld: Some(reason.to_owned()) };
            return Ok(FullAnalysis { analysis, findings, replay: None });
        }
        let window = options.window.map(|_| analysis.window);
        let replay = Replay::until(trace, &host.waits, window, &options.constants, until);
        until.check()?;
        let (findings, replayed) = findings::find(trace, &host, &analysis, &replay, options, until)?;
        let groups: Vec<Vec<CallIdx>> = analysis.sync_calls.iter().map(|row| row.call_list.clone()).collect();
        let limit = if analysis.quality.idle_reliable { options.max_changes.saturating_sub(replayed) } else { 0 };
        until.check()?;
        let spared = |trace: &Trace, call| findings::reads_scalar(trace, call, options.findings.scalar_bytes);
        let costs = replay::sync_cost(&replay, &groups, limit, spared);
        until.check()?;
        for (row, cost) in analysis.sync_calls.iter_mut().zip(costs) {
            row.recoverable = cost;
        }
        // A stable sort: rows whose gain is not known stay in their order, behind the others.
        analysis.sync_calls.sort_by_key(|row| std::cmp::Reverse(row.recoverable));
        let replay = facts(&replay, &findings, analysis.idle_of_all(), &options.what_if);
        until.check()?;
        Ok(FullAnalysis { analysis, findings, replay: Some(replay) })
    }
}

fn facts(replay: &Replay<'_>, findings: &Findings, idle: Ns, asked: &[Change]) -> ReplayFacts {
    let mut facts = ReplayFacts {
        unchanged_error: replay.unchanged_error(),
        withheld: replay.is_withheld(),
        span: replay.unchanged().span,
        idle,
        what_if: Vec::new(),
        all_together: None,
        remedies_together: None,
    };
    if facts.withheld {
        return facts;
    }
    // What is asked twice, or is the remedy of a finding, has one answer.
    let mut lists: Vec<Vec<Change>> = Vec::new();
    for change in asked {
        let known = |changes: &Vec<Change>| changes.as_slice() == std::slice::from_ref(change);
        if !lists.iter().any(known) && !findings.found.iter().any(|finding| known(&finding.changes)) {
            lists.push(vec![change.clone()]);
        }
    }
    let remedies: Vec<Change> = findings.found.iter().flat_map(|finding| finding.changes.clone()).collect();
    let mut all = remedies.clone();
    let outcomes = replay.each(&lists);
    for (change, outcome) in lists.into_iter().flatten().zip(outcomes) {
        // What has no answer would leave all together without one.
        let Some(answer) = what_if(change.to_string(), outcome) else { continue };
        facts.what_if.push(answer);
        if !all.contains(&change) {
            all.push(change);
        }
    }
    let proposed = findings.found.iter().map(|finding| WhatIf {
        change: finding.change.clone(),
        span: finding.span,
        gain: finding.recoverable,
        at_least: finding.id.gains_at_least(),
        assumptions: finding.assumptions.clone(),
    });
    let mut proposed: Vec<WhatIf> = proposed.collect();
    proposed.sort_by_key(|what| std::cmp::Reverse(what.gain));
    let besides = !facts.what_if.is_empty();
    facts.what_if.extend(proposed.iter().cloned());
    facts.what_if.sort_by_key(|what| std::cmp::Reverse(what.gain));
    facts.all_together = together(replay, &facts.what_if, &all);
    facts.remedies_together = if besides { together(replay, &proposed, &remedies) } else { facts.all_together.clone() };
    facts
}

/// What changes gain at once, `each` of which is answered; `None` when there are none.
fn together(replay: &Replay<'_>, each: &[WhatIf], changes: &[Change]) -> Option<WhatIf> {
    let names: Vec<&str> = each.iter().map(|what| what.change.as_str()).collect();
    let at_least = each.iter().all(|what| what.at_least);
    let outcome = (!changes.is_empty()).then(|| replay.with(changes))?;
    what_if(names.join(", "), outcome).map(|what| WhatIf { at_least, ..what })
}

/// An answer; `None` when it is withheld.
fn what_if(change: String, outcome: Outcome) -> Option<WhatIf> {
    let Outcome { span, gain, assumptions, .. } = outcome;
    Some(WhatIf { change, span, gain: gain?, at_least: false, assumptions })
}
