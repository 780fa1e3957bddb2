//! `check`: the CI gate.

use anyhow::anyhow;
use bubblescope::report::checked::Checked;
use bubblescope::report::{Limit, gate};

use crate::analyze::{chosen, report_on};
use crate::args::CheckArgs;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::progress::{self, open_for};
use crate::ranks::reports;

/// Holds every trace against the limits.
pub(crate) fn check(args: &CheckArgs) -> Outcome {
    let limits: Vec<Limit> = [
        args.max_idle.map(Limit::MaxIdle),
        args.max_recoverable.map(Limit::MaxRecoverable),
        args.max_bubble.map(Limit::MaxBubble),
    ]
    .into_iter()
    .flatten()
    .chain(args.forbid.iter().copied().map(Limit::Forbid))
    .collect();
    let (files, failure) = match args.traces.as_slice() {
        [one] if !one.is_dir() => {
            let path = one.display().to_string();
            let trace = open_for(one, &args.window).map_err(anyhow::Error::from)?;
            let window = chosen(&trace, &path, &args.window)?;
            let report = progress::during("analysing", || report_on(&trace, &path, window, 0))?;
            (vec![(path, Ok(report))], None)
        }
        several => {
            let results = reports(several, &args.window, &|trace, path| {
                report_on(trace, path, chosen(trace, path, &args.window)?, 0)
            })?;
            results.remark();
            let failure = results.failure();
            let files = results.files.into_iter().map(|(path, result)| (path.display().to_string(), result));
            (files.collect(), failure)
        }
    };
    let mut broken = Vec::new();
    let verdicts: Vec<_> = files
        .into_iter()
        .map(|(path, report)| {
            let verdict = report.map(|report| gate::check(&report, &limits)).map_err(|failure| failure.to_string());
            if let Ok(verdict) = verdict.as_ref()
                && !verdict.passed()
            {
                let demands = verdict.failures().count() + usize::from(!verdict.unreliable.is_empty());
                broken.push((path.clone(), demands));
            }
            (path, verdict)
        })
        .collect();
    output::gate(&verdicts, || Checked::new(&verdicts), args.format.format)?;
    if let Some((path, _)) = broken.first() {
        let demands: usize = broken.iter().map(|(_, demands)| demands).sum();
        let demands = if demands == 1 { "1 demand is".to_owned() } else { format!("{demands} demands are") };
        let by = if broken.len() == 1 { path.clone() } else { format!("{} files, {path} first", broken.len()) };
        return Err(Failure::Gate(anyhow!("{demands} not met by {by}")));
    }
    failure.map_or(Ok(()), Err)
}
