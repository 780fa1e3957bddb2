//! `check`: the CI gate.

use anyhow::anyhow;
use bubblescope::report::{Limit, gate, text};

use crate::analyze::{chosen, report_on};
use crate::args::CheckArgs;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::progress::{self, open};

/// Holds one trace against the limits.
pub(crate) fn check(args: &CheckArgs) -> Outcome {
    let path = args.trace.display().to_string();
    let trace = open(&args.trace).map_err(anyhow::Error::from)?;
    let window = chosen(&trace, &args.window)?;
    let report = progress::during("analysing", || report_on(&trace, &path, window, 0))?;
    let limits: Vec<Limit> = [
        args.max_idle.map(Limit::MaxIdle),
        args.max_recoverable.map(Limit::MaxRecoverable),
        args.max_bubble.map(Limit::MaxBubble),
    ]
    .into_iter()
    .flatten()
    .chain(args.forbid.iter().copied().map(Limit::Forbid))
    .collect();
    let verdict = gate::check(&report, &limits);
    output::page(|out, style| text::render_gate(&verdict, out, style))?;
    if verdict.passed() {
        return Ok(());
    }
    let broken = verdict.failures().count() + usize::from(!verdict.unreliable.is_empty());
    let limits = if broken == 1 { "1 demand is" } else { &format!("{broken} demands are") };
    Err(Failure::Gate(anyhow!("{limits} not met by {path}")))
}
