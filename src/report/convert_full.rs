//! Makes a [`Report`] with findings and gains of a [`FullAnalysis`].

use super::contract::{Evidence, Finding, Replay, Report, WhatIf};
use super::convert::Options;
use crate::analysis::{self, FullAnalysis, ReplayFacts};
use crate::trace::{Ns, Trace};

impl Report {
    /// The report on `full`, which is of `trace`: with findings, what waits cost, and what changes would gain.
    pub fn full(trace: &Trace, full: &FullAnalysis, options: &Options) -> Self {
        let findings = &full.findings;
        Self {
            findings: findings.withheld.is_none().then(|| findings.found.iter().map(finding).collect()),
            findings_withheld: findings.withheld.clone(),
            replay: full.replay.as_ref().map(Replay::from),
            ..Self::new(trace, &full.analysis, options)
        }
    }
}

impl From<&ReplayFacts> for Replay {
    fn from(facts: &ReplayFacts) -> Self {
        Self {
            unchanged_error: facts.unchanged_error,
            withheld: facts.withheld,
            idle_ns: Some(facts.idle),
            what_if: facts.what_if.iter().map(|what| what_if(what, facts.span)).collect(),
            all_together: facts.all_together.as_ref().map(|what| what_if(what, facts.span)),
            remedies_together: facts.remedies_together.as_ref().map(|what| what_if(what, facts.span)),
        }
    }
}

fn what_if(what: &analysis::WhatIf, before: Ns) -> WhatIf {
    WhatIf {
        change: what.change.clone(),
        span_ns: what.span,
        gain_ns: what.gain,
        gain_fraction: if before.0 > 0 { what.gain.0 as f64 / before.0 as f64 } else { 0.0 },
        at_least: what.at_least,
        assumptions: what.assumptions.iter().map(|&text| text.to_owned()).collect(),
    }
}

fn finding(found: &analysis::Finding) -> Finding {
    Finding {
        id: found.id,
        severity: found.severity,
        title: found.title.clone(),
        recoverable_ns: found.recoverable,
        at_least: found.id.gains_at_least(),
        count: found.count,
        evidence: found.evidence.iter().map(evidence).collect(),
        remedy: found.remedy.to_owned(),
    }
}

fn evidence(found: &analysis::Evidence) -> Evidence {
    Evidence { text: found.text.clone(), api: found.api.clone(), site: found.site.clone(), at_ns: found.at.clone() }
}
