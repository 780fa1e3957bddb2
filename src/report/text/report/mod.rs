//! The report on one recording.

mod bubbles;
mod calls;
mod devices;
mod findings;
mod quality;
mod verdict;
mod what_if;

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::table::paragraph;
use super::units::{count, counted, moment, percent_of, time};
use super::{Style, names, table, units, words};
use crate::report::contract::{IterationSource, Report, Source};
use crate::trace::Ns;

/// Below this share of the span, idle time is not worth a word.
const NEGLIGIBLE: f64 = 0.02;
/// Writes `report` for people: the verdict, where idle time went, the costliest calls, the findings, the longest
/// bubbles, and what the figures are worth.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &Report, out: &mut impl Write, style: Style) -> io::Result<()> {
    let out: &mut dyn Write = out;
    verdict::verdict(report, out, style)?;
    recording(report, out, style)?;
    if !report.devices.is_empty() {
        devices::devices(report, out, style)?;
        devices::idle(report, out, style)?;
        iterations(report, out, style)?;
        calls::calls(report, out, style)?;
        findings::findings(report, out, style)?;
        what_if::what_if(report, out, style)?;
        bubbles::bubbles(report, out, style)?;
    }
    quality::quality(report, out, style)
}

fn recording(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let source = &report.source;
    style.section(out, "Recording")?;
    let by = recorder(source).map(|by| format!("by {by}"));
    let on = source.captured_on.as_ref().map(|when| format!("on {when}"));
    let how: Vec<String> = by.into_iter().chain(on).collect();
    let how = if how.is_empty() { String::new() } else { format!("recorded {}", how.join(" ")) };
    let parts = [source.path.as_str(), how.as_str()].into_iter().filter(|text| !text.is_empty());
    let what = parts.collect::<Vec<_>>().join(", ");
    let pairs = |pairs: &BTreeMap<String, String>, between: &str| {
        pairs.iter().map(|(name, value)| format!("{name}{between}{value}")).collect::<Vec<_>>().join(", ")
    };
    let run = source.workload.as_ref().map_or_else(String::new, |run| {
        let warmup = if run.warmup > 0 { format!(" after {} of warm-up", count(run.warmup)) } else { String::new() };
        let options = if run.options.is_empty() { String::new() } else { format!("; {}", pairs(&run.options, "=")) };
        let iterations = counted(run.iterations, "iteration", "iterations");
        format!("{}, variant {}: {iterations}{warmup}{options}", run.workload, run.variant)
    });
    let command = if run.is_empty() { source.command.clone().unwrap_or_default() } else { String::new() };
    let window = report.window;
    let length = time(Ns(window.end_ns.0.saturating_sub(window.start_ns.0)));
    let window = match window.start_ns {
        Ns::ZERO => format!("{length} analysed, from the start of the recording"),
        start => format!("{length} analysed, from {} after the start of the recording", moment(start)),
    };
    for text in [what, run, command, pairs(&source.machine, " "), window] {
        if !text.is_empty() {
            paragraph(out, style, style.faint(), "  ", &text)?;
        }
    }
    Ok(())
}

/// What made a recording, whatever form its file has now.
fn recorder(source: &Source) -> Option<String> {
    // What is left of a damaged export says of its format only that of the file.
    if source.machine.contains_key("recorder") {
        return Some("bubblescope".to_owned());
    }
    match source.format.as_str() {
        "" => None,
        "bubcap" => Some("bubblescope".to_owned()),
        "kineto" => Some("PyTorch's profiler".to_owned()),
        "nsys" => Some("Nsight Systems".to_owned()),
        other => Some(other.to_owned()),
    }
}

fn iterations(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(iterations) = &report.iterations else { return Ok(()) };
    // What repeats need not be what the workload calls an iteration.
    let told = report.source.workload.as_ref().map(|run| run.iterations);
    let found = iterations.count + iterations.warmup;
    let agree = |told: u64| found <= told.saturating_add(told / 20) && found.saturating_add(told / 20) >= told;
    let (what, one) = match iterations.source {
        IterationSource::LaunchSequence { launches } if told.is_some_and(|told| !agree(told)) => {
            let repeated = counted(launches, "call that launches or waits", "calls that launch or wait");
            (format!("{} of {repeated}", counted(iterations.count, "repetition", "repetitions")), "repetition")
        }
        _ => (counted(iterations.count, "iteration", "iterations"), "iteration"),
    };
    let warmup = match iterations.warmup {
        0 => String::new(),
        warmup => format!(" after {} of warm-up", count(warmup)),
    };
    let text = format!(
        "{what}{warmup}, each {} long (median; 95 % are under {}). In the median {one} the GPU is idle for {} ({}) and the \
         host makes {}.",
        time(iterations.period_p50_ns),
        time(iterations.period_p95_ns),
        time(iterations.idle_p50_ns),
        percent_of(iterations.idle_p50_ns, iterations.period_p50_ns),
        counted(iterations.blocking_calls_p50, "blocking call", "blocking calls"),
    );
    style.section(out, "Iterations")?;
    paragraph(out, style, anstyle::Style::new(), "  ", &text)
}

/// Whether no device's idle time is worth a word.
fn negligible(report: &Report) -> bool {
    report.devices.iter().all(|device| device.idle_fraction < NEGLIGIBLE)
}

/// Says that a table was cut.
fn more(out: &mut dyn Write, style: Style, rows: usize) -> io::Result<()> {
    match rows.saturating_sub(style.rows) {
        0 => Ok(()),
        rest => paragraph(out, style, style.faint(), "  ", &format!("… and {rest} more; --format json has them all.")),
    }
}
