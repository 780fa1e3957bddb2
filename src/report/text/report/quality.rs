//! What the figures are worth.

use std::io::{self, Write};

use super::Style;
use super::table::paragraph;
use super::units::{count, counted, time, while_recording};
use crate::report::contract::{Inflation, Quality, Report};
use crate::trace::{CaptureMode, Ns};

/// What the figures are worth.
pub(super) fn quality(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    style.section(out, "What these figures are worth")?;
    let quality = &report.quality;
    if quality.idle_reliable {
        paragraph(out, style, style.good(), "  ", "Idle time is reliable.")?;
    } else {
        let why = if quality.reasons.is_empty() { "" } else { ", for the reasons at the top" };
        paragraph(out, style, style.alarm(), "  ", &format!("IDLE TIME IS NOT RELIABLE{why}."))?;
    }
    let mut notes = losses(quality);
    if notes.is_empty() && quality.idle_reliable && quality.warnings.is_empty() {
        notes.push("Nothing was lost: no record was dropped, unreadable or without a time.".to_owned());
    }
    let graphs = match report.source.capture_mode {
        CaptureMode::Node => "CUDA graphs, if there are any, were recorded node by node.",
        CaptureMode::Graph => {
            "Each launch of a CUDA graph was recorded as one piece of work: gaps inside count as busy."
        }
        CaptureMode::Unknown => "The file does not tell whether CUDA graphs were recorded node by node or as a whole.",
    };
    if !says(quality, &["graph launches were recorded whole"]) {
        notes.push(graphs.to_owned());
    }
    if report.launches.negative_latency > 0 && !says(quality, &["before its launch", "before their launch"]) {
        let ops = counted(report.launches.negative_latency, "op starts before its", "ops start before their");
        notes.push(format!("{ops} launch: the clocks of host and GPU differ a little."));
    }
    if quality.profiler_ns > Ns::ZERO {
        notes.push(format!("The profiler itself was at work during {} of the idle time.", time(quality.profiler_ns)));
    }
    notes.push(match quality.inflation {
        Some(Inflation { unprofiled_ns, profiled_ns, ratio }) => format!(
            "All times were taken while recording: an iteration takes {}, and {} without ({:+.0} %).",
            time(profiled_ns),
            time(unprofiled_ns),
            100.0 * (ratio - 1.0),
        ),
        None => {
            let compare = "`bubble-report compare WORKLOAD` measures how much, on a workload of its own.";
            let times = while_recording(quality.graph_ops, quality.graph_launch_idle_ns);
            match (quality.graph_ops, report.source.format.as_str()) {
                (0, _) => format!("{times}: {compare}"),
                (_, "bubcap") => format!("{times}. `record --graphs graph` does not add that. {compare}"),
                _ => format!("{times}. {compare}"),
            }
        }
    });
    notes.extend(quality.warnings.iter().map(|warning| sentence(warning)));
    for note in notes {
        paragraph(out, style, anstyle::Style::new(), "  - ", &note)?;
    }
    Ok(())
}

/// Whether a reason or a warning has one of these words.
fn says(quality: &Quality, words: &[&str]) -> bool {
    let mut told = quality.reasons.iter().chain(&quality.warnings);
    told.any(|told| words.iter().any(|words| told.contains(words)))
}

/// A reason or a warning as a sentence. A name that it begins with, of a file or a library, stays as it is.
pub(super) fn sentence(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_name = word.starts_with("lib") || word.contains(['.', '/', '_', '`']);
    let mut chars = text.chars();
    let first = chars.next().filter(|_| !is_name);
    let capital =
        first.map_or_else(|| text.to_owned(), |first| first.to_uppercase().collect::<String>() + chars.as_str());
    if capital.ends_with(['.', '!', '?']) { capital } else { capital + "." }
}

/// What was lost, one sentence each. What a reason or a warning tells with the same number is not told again.
fn losses(quality: &Quality) -> Vec<String> {
    let lost = [
        (quality.dropped_records, "record was dropped", "records were dropped", "while recording"),
        (quality.ops_without_time, "op has", "ops have", "no times and had to be left out"),
        (quality.unfinished_ops, "op was", "ops were", "still running when recording ended"),
        (quality.unreadable_records, "record", "records", "could not be read, or had impossible times"),
        (quality.cut_bytes, "byte", "bytes", "at the file's end belong to no whole record: it was cut off"),
        (quality.orphan_ops, "op has", "ops have", "no recorded launch"),
        (quality.launches_without_ops, "launch has", "launches have", "no recorded work"),
    ];
    let is_told = |number: u64, one: &str| {
        let (number, what) = (count(number), one.split(' ').next().unwrap_or_default());
        let has = |text: &String| text.split_whitespace().any(|word| word.trim_matches([',', '.', ':', ';']) == number);
        quality.reasons.iter().chain(&quality.warnings).any(|text| has(text) && text.contains(what))
    };
    let told = lost.iter().filter(|&&(number, one, ..)| number > 0 && !is_told(number, one));
    told.map(|&(number, one, many, what)| format!("{} {what}.", counted(number, one, many))).collect()
}
