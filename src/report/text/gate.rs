//! The verdict of the gate.

use std::io::{self, Write};

use anstyle::Style as Paint;

use super::Style;
use super::table::{labelled, paragraph};
use super::units::{count, counted, percent_of, time};
use crate::report::gate::{Figure, Outcome, Verdict};
use crate::report::limits::{Amount, Limit};
use crate::trace::Ns;

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

/// A figure beside what is allowed. Where rounding would show both alike, the figure is exact.
fn told(figure: &Figure, limit: Limit) -> String {
    match (figure, limit) {
        (Figure::Idle { device, idle, span }, Limit::MaxIdle(share)) => {
            format!("GPU {device} is idle {} of its span, {share} allowed", share_of(*idle, *span, &share.to_string()))
        }
        (Figure::Recoverable { gain, span }, Limit::MaxRecoverable(Amount::Share(share))) => {
            let part = share_of(*gain, *span, &share.to_string());
            format!("{part} of the span ({}) is recoverable, {share} allowed", time(*gain))
        }
        (Figure::Recoverable { gain, span }, Limit::MaxRecoverable(Amount::Time(most))) => {
            let share = percent_of(*gain, *span);
            format!("{} ({share} of the span) is recoverable, {} allowed", length(*gain, most), time(most))
        }
        (Figure::Bubble { device, length: found }, Limit::MaxBubble(most)) => {
            format!("the longest bubble of GPU {device} is {}, {} allowed", length(*found, most), time(most))
        }
        (Figure::Finding { count: 0, .. }, limit) => format!("no {}", limit.what()),
        (Figure::Finding { count, recoverable }, limit) => {
            let times = counted(*count, "time", "times");
            format!("{} is forbidden and found {times}, {} recoverable", limit.what(), time(*recoverable))
        }
        (figure, _) => format!("{figure:?}"),
    }
}

/// A share, exact enough to differ from what is allowed.
fn share_of(part: Ns, whole: Ns, allowed: &str) -> String {
    let short = percent_of(part, whole);
    if short.replace(".0 %", " %") == allowed && whole.0 > 0 {
        format!("{:.5} %", part.0 as f64 / whole.0 as f64 * 100.0)
    } else {
        short
    }
}

/// A length of time, exact where rounding would make it look like what is allowed.
fn length(found: Ns, allowed: Ns) -> String {
    if found != allowed && time(found) == time(allowed) {
        format!("{} ns", count(found.0.unsigned_abs()))
    } else {
        time(found)
    }
}
