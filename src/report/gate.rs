//! The CI gate: a report against limits. What cannot be evaluated never passes.

use super::contract::{Device, Report};
use super::limits::{Amount, Limit};
use crate::analysis::FindingId;
use crate::trace::Ns;

/// What a gate found.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Why the report's idle time is not reliable, which is a failure of its own; empty when it is.
    pub unreliable: Vec<String>,
    /// Every limit with its figure; a limit that several devices break stands here once for each.
    pub checks: Vec<Check>,
}

/// One limit and what it met.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The limit.
    pub limit: Limit,
    /// What it met.
    pub outcome: Outcome,
}

/// What a limit met.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The figure is within the limit.
    Kept(Figure),
    /// It is not.
    Broken(Figure),
    /// There is no figure, for this reason. That is a failure.
    Unknown(String),
}

/// The figure that a limit is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Idle time of a device.
    Idle {
        /// The device's number.
        device: u32,
        /// Its idle time.
        idle: Ns,
        /// Its span.
        span: Ns,
    },
    /// What all replayed changes gain together.
    Recoverable {
        /// The gain.
        gain: Ns,
        /// The span without the changes.
        span: Ns,
    },
    /// The longest bubble of a device.
    Bubble {
        /// The device's number.
        device: u32,
        /// Its length.
        length: Ns,
        /// Whether the profiler made a longer one, which does not count.
        besides_profiler: bool,
    },
    /// A finding.
    Finding {
        /// How often it occurs; 0 when it is not there.
        count: u64,
        /// What fixing it would recover.
        recoverable: Ns,
    },
}

impl Verdict {
    /// Whether the gate lets the report pass: there are limits, and all are known to be kept.
    pub fn passed(&self) -> bool {
        self.unreliable.is_empty()
            && !self.checks.is_empty()
            && self.checks.iter().all(|check| matches!(check.outcome, Outcome::Kept(_)))
    }

    /// The limits that were not kept, or not known to be.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !matches!(check.outcome, Outcome::Kept(_)))
    }
}

/// Holds `report` against `limits`. Without any limit nothing passes.
pub fn check(report: &Report, limits: &[Limit]) -> Verdict {
    let quality = &report.quality;
    let unreliable = match (quality.idle_reliable, quality.reasons.as_slice()) {
        (true, _) => Vec::new(),
        (false, []) => vec!["the report gives no reason".to_owned()],
        (false, reasons) => reasons.to_vec(),
    };
    let outcomes = |limit: &Limit| {
        let limit = *limit;
        evaluate(report, limit).into_iter().map(move |outcome| Check { limit, outcome })
    };
    Verdict { unreliable, checks: limits.iter().flat_map(outcomes).collect() }
}

fn evaluate(report: &Report, limit: Limit) -> Vec<Outcome> {
    if report.devices.is_empty() {
        return vec![Outcome::Unknown("there is no GPU activity".to_owned())];
    }
    match limit {
        Limit::MaxIdle(share) => devices(
            report,
            |device| share.is_exceeded(device.idle_ns, device.span_ns),
            |device| device.idle_fraction,
            |device| Figure::Idle { device: device.device, idle: device.idle_ns, span: device.span_ns },
        ),
        Limit::MaxBubble(limit) => devices(
            report,
            |device| device.bubbles.longest_besides_profiler() > limit,
            |device| device.bubbles.longest_besides_profiler().0 as f64,
            |device| Figure::Bubble {
                device: device.device,
                length: device.bubbles.longest_besides_profiler(),
                besides_profiler: device.bubbles.max_besides_profiler_ns.is_some(),
            },
        ),
        Limit::MaxRecoverable(limit) => vec![recoverable(report, limit)],
        Limit::Forbid(finding) => vec![forbidden(report, finding)],
    }
}

/// Every device that breaks a limit or, when none does, the one that comes closest.
fn devices(
    report: &Report,
    breaks: impl Fn(&Device) -> bool,
    size: impl Fn(&Device) -> f64,
    figure: impl Fn(&Device) -> Figure,
) -> Vec<Outcome> {
    let broken: Vec<Outcome> =
        report.devices.iter().filter(|device| breaks(device)).map(|device| Outcome::Broken(figure(device))).collect();
    if !broken.is_empty() {
        return broken;
    }
    let closest = report.devices.iter().max_by(|one, other| size(one).total_cmp(&size(other)));
    closest.map(|device| Outcome::Kept(figure(device))).into_iter().collect()
}

/// Why there is nothing to tell of a recording of devices alone.
const NO_CALL: &str = "no host call was recorded";

fn recoverable(report: &Report, limit: Amount) -> Outcome {
    let Some(replay) = &report.replay else { return Outcome::Unknown("no change was replayed".to_owned()) };
    if replay.what_if.is_empty() && !report.has_host_calls() {
        return Outcome::Unknown(NO_CALL.to_owned());
    }
    if replay.withheld {
        return Outcome::Unknown("the replay's error is too large for an answer".to_owned());
    }
    let (gain, after) = match (&replay.all_together, replay.what_if.as_slice()) {
        (Some(all), _) | (None, [all]) => (all.gain_ns, all.span_ns),
        (None, []) => (Ns::ZERO, Ns::ZERO),
        (None, _) => return Outcome::Unknown("the changes were not replayed together".to_owned()),
    };
    let span = super::total([gain, after]);
    let broken = match limit {
        Amount::Share(share) => share.is_exceeded(gain, span),
        Amount::Time(most) => gain > most,
    };
    let figure = Figure::Recoverable { gain, span };
    if broken { Outcome::Broken(figure) } else { Outcome::Kept(figure) }
}

fn forbidden(report: &Report, finding: FindingId) -> Outcome {
    let Some(findings) = &report.findings else {
        let reason = report.findings_withheld.as_deref().unwrap_or("findings were not looked for");
        return Outcome::Unknown(reason.to_owned());
    };
    if let Some(found) = findings.iter().find(|found| found.id == finding) {
        return Outcome::Broken(Figure::Finding { count: found.count, recoverable: found.recoverable_ns });
    }
    if !report.has_host_calls() {
        return Outcome::Unknown(NO_CALL.to_owned());
    }
    // A finding is only made when the replay promises a gain, so without the replay its absence means nothing.
    match &report.replay {
        Some(replay) if replay.withheld => {
            Outcome::Unknown("the replay's error is too large to tell what is worth a finding".to_owned())
        }
        _ => Outcome::Kept(Figure::Finding { count: 0, recoverable: Ns::ZERO }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::contract::{Replay, WhatIf};
    use crate::report::samples;

    fn outcome(report: &Report, limit: Limit) -> Outcome {
        let verdict = check(report, &[limit]);
        assert_eq!(verdict.checks.len(), 1);
        verdict.checks[0].outcome.clone()
    }

    fn idle(share: &str) -> Limit {
        Limit::MaxIdle(share.parse().unwrap())
    }

    #[test]
    fn idle_is_broken_just_below_its_figure_and_kept_at_it() {
        let mut report = samples::clean();
        report.devices[0].span_ns = Ns(1_000);
        report.devices[0].idle_ns = Ns(290);
        report.devices[0].idle_fraction = 0.29;
        let figure = Figure::Idle { device: 0, idle: Ns(290), span: Ns(1_000) };
        assert_eq!(outcome(&report, idle("29%")), Outcome::Kept(figure.clone()));
        assert_eq!(outcome(&report, idle("28.9%")), Outcome::Broken(figure));
        assert!(check(&report, &[idle("29%")]).passed());
        assert!(!check(&report, &[idle("28.9%")]).passed());
    }

    #[test]
    fn each_device_that_breaks_a_limit_is_named() {
        let report = samples::many_devices();
        let named = |limit| {
            let verdict = check(&report, &[limit]);
            let device = |check: &Check| match &check.outcome {
                Outcome::Broken(Figure::Idle { device, .. } | Figure::Bubble { device, .. }) => (*device, true),
                Outcome::Kept(Figure::Idle { device, .. } | Figure::Bubble { device, .. }) => (*device, false),
                other => panic!("{other:?}"),
            };
            verdict.checks.iter().map(device).collect::<Vec<_>>()
        };
        assert_eq!(named(idle("10%")), [(1, true), (3, true)]);
        assert_eq!(named(idle("50%")), [(1, false)]);
        assert_eq!(named(Limit::MaxBubble(Ns(500_000))), [(1, true), (3, true)]);
        assert_eq!(named(Limit::MaxBubble(Ns(840_000_000))), [(3, false)]);
    }

    #[test]
    fn a_bubble_of_the_profiler_breaks_no_limit() {
        let mut report = samples::clean();
        report.devices[0].bubbles.max_ns = Ns(300_000);
        report.devices[0].bubbles.max_besides_profiler_ns = Some(Ns(20_000));
        let figure = Figure::Bubble { device: 0, length: Ns(20_000), besides_profiler: true };
        assert_eq!(outcome(&report, Limit::MaxBubble(Ns(20_000))), Outcome::Kept(figure.clone()));
        assert_eq!(outcome(&report, Limit::MaxBubble(Ns(19_999))), Outcome::Broken(figure));
        report.devices[0].bubbles.max_besides_profiler_ns = None;
        let figure = Figure::Bubble { device: 0, length: Ns(300_000), besides_profiler: false };
        assert_eq!(outcome(&report, Limit::MaxBubble(Ns(20_000))), Outcome::Broken(figure));
    }

    #[test]
    fn what_is_recoverable_is_what_all_changes_gain_together() {
        let report = samples::sync_bound();
        let figure = Figure::Recoverable { gain: Ns(8_231_000), span: Ns(19_131_000) };
        let limit = |text: &str| Limit::MaxRecoverable(text.parse().unwrap());
        assert_eq!(outcome(&report, limit("43%")), Outcome::Broken(figure.clone()));
        assert_eq!(outcome(&report, limit("44%")), Outcome::Kept(figure.clone()));
        assert_eq!(outcome(&report, limit("8.230999ms")), Outcome::Broken(figure.clone()));
        assert_eq!(outcome(&report, limit("8.231ms")), Outcome::Kept(figure));
    }

    #[test]
    fn a_finding_is_forbidden_by_name() {
        let report = samples::sync_bound();
        let found = Figure::Finding { count: 1_000, recoverable: Ns(7_810_000) };
        assert_eq!(outcome(&report, Limit::Forbid(FindingId::ScalarReadback)), Outcome::Broken(found));
        let absent = Figure::Finding { count: 0, recoverable: Ns::ZERO };
        assert_eq!(outcome(&report, Limit::Forbid(FindingId::BusyPolling)), Outcome::Kept(absent));
    }

    /// Every way in which a figure can be missing, for every limit.
    #[test]
    fn what_cannot_be_evaluated_never_passes() {
        let forbid = Limit::Forbid(FindingId::BusyPolling);
        let recoverable = Limit::MaxRecoverable("100%".parse().unwrap());
        let all = [idle("100%"), recoverable, Limit::MaxBubble(Ns::MAX), forbid];

        let mut no_device = samples::sync_bound();
        no_device.devices.clear();
        let mut no_replay = samples::sync_bound();
        no_replay.replay = None;
        let mut withheld = samples::sync_bound();
        withheld.replay = Some(Replay { withheld: true, ..Replay::default() });
        let mut apart = samples::sync_bound();
        apart.replay = Some(Replay { what_if: vec![WhatIf::default(); 2], ..Replay::default() });
        let mut no_findings = samples::sync_bound();
        no_findings.findings = None;
        let mut no_calls = samples::clean();
        no_calls.replay = Some(Replay::default());
        no_calls.processes.clear();

        for (report, limits) in [
            (no_device, all.as_slice()),
            (no_replay, &[recoverable]),
            (withheld, &[recoverable, forbid]),
            (apart, &[recoverable]),
            (no_findings, &[forbid]),
            (no_calls, &[recoverable, forbid]),
        ] {
            for &limit in limits {
                assert!(matches!(outcome(&report, limit), Outcome::Unknown(_)), "{limit:?}");
                assert!(!check(&report, &[limit]).passed());
            }
        }
        assert!(check(&samples::sync_bound(), &all).passed());
        assert!(!check(&samples::sync_bound(), &[]).passed(), "no limit at all");
    }

    #[test]
    fn unreliable_idle_time_fails_whatever_the_limits_are() {
        let mut report = samples::clean();
        assert!(check(&report, &[idle("50%")]).passed());
        report.quality.idle_reliable = false;
        let verdict = check(&report, &[idle("50%"), Limit::Forbid(FindingId::BusyPolling)]);
        assert!(!verdict.passed());
        assert_eq!(verdict.unreliable, ["the report gives no reason"]);
        assert_eq!(verdict.failures().count(), 0);
    }
}
