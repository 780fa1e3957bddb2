//! The verdict of the gate.

use std::io::{self, Write};

use anstyle::Style as Paint;

use super::Style;
use super::table::{labelled, paragraph};
use super::units::{counted, percent_of, time};
use crate::report::gate::{Figure, Outcome, Verdict};
use crate::report::limits::{Amount, Limit, tell_time};

/// Writes each limit with its figure, and whether the gate lets the report pass.
///
/// # Errors
/// Those of `out`.
pub fn render(verdict: &Verdict, out: &mut impl Write, style: Style) -> io::Result<()> {
    let out: &mut dyn Write = out;
    for reason in &verdict.unreliable {
        line(out, style, style.alarm(), "FAILED", &format!("idle time is not reliable: {reason}"))?;
    }
    for check in &verdict.checks {
        let (paint, state, text) = match &check.outcome {
            Outcome::Kept(figure) => (style.good(), "ok", told(figure, check.limit)),
            Outcome::Broken(figure) => (style.alarm(), "FAILED", told(figure, check.limit)),
            Outcome::Unknown(reason) => {
                (style.alarm(), "FAILED", format!("{}: not known, {reason}", check.limit.what()))
            }
        };
        line(out, style, paint, state, &text)?;
    }
    let failed = verdict.failures().count() + verdict.unreliable.len();
    let (paint, text) = match (verdict.passed(), verdict.checks.len()) {
        (true, 1) => (style.good(), "The gate passed: the limit is kept.".to_owned()),
        (true, all) => (style.good(), format!("The gate passed: all {all} limits are kept.")),
        (false, 0) => (style.alarm(), "The gate failed: no limit was given.".to_owned()),
        (false, _) => (style.alarm(), format!("The gate failed: {}.", counted(failed as u64, "failure", "failures"))),
    };
    paragraph(out, style, paint, "", &text)
}

/// Writes the verdict on each of several files, or why there is none; of one file without its name.
///
/// # Errors
/// Those of `out`.
pub fn render_all(
    verdicts: &[(String, Result<Verdict, String>)],
    out: &mut impl Write,
    style: Style,
) -> io::Result<()> {
    for (index, (path, verdict)) in verdicts.iter().enumerate() {
        if verdicts.len() > 1 {
            if index > 0 {
                writeln!(out)?;
            }
            paragraph(out, style, style.heading(), "", path)?;
        }
        match verdict {
            Ok(verdict) => render(verdict, out, style)?,
            Err(reason) => line(out, style, style.alarm(), "FAILED", reason)?,
        }
    }
    Ok(())
}

fn line(out: &mut dyn Write, style: Style, paint: Paint, state: &str, text: &str) -> io::Result<()> {
    labelled(out, style, (paint, &format!("{state:<8}")), (Paint::new(), text))
}

/// A figure beside what is allowed.
fn told(figure: &Figure, limit: Limit) -> String {
    let allowed = limit.allowed().unwrap_or_default();
    match (figure, limit) {
        (Figure::Idle { device, idle, span }, Limit::MaxIdle(share)) => {
            format!("GPU {device} is idle {} of its span, {allowed} allowed", share.tell(*idle, *span))
        }
        (Figure::Recoverable { gain, span }, Limit::MaxRecoverable(Amount::Share(share))) => {
            let part = share.tell(*gain, *span);
            format!("{part} of the span ({}) is recoverable, {allowed} allowed", time(*gain))
        }
        (Figure::Recoverable { gain, span }, Limit::MaxRecoverable(Amount::Time(most))) => {
            let share = percent_of(*gain, *span);
            format!("{} ({share} of the span) is recoverable, {allowed} allowed", tell_time(*gain, most))
        }
        (Figure::Bubble { device, length, besides_profiler }, Limit::MaxBubble(most)) => {
            let which = if *besides_profiler { ", but for the profiler's," } else { "" };
            format!("the longest bubble of GPU {device}{which} is {}, {allowed} allowed", tell_time(*length, most))
        }
        (Figure::Finding { count: 0, .. }, limit) => format!("no {}", limit.what()),
        (Figure::Finding { count, recoverable }, limit) => {
            let times = counted(*count, "time", "times");
            format!("{} is forbidden and found {times}, {} recoverable", limit.what(), time(*recoverable))
        }
        (figure, _) => format!("{figure:?}"),
    }
}
