//! What the figures are worth.

use std::io::{self, Write};

use super::Style;
use super::table::paragraph;
use super::units::{counted, time};
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
    notes.push(graphs.to_owned());
    if report.launches.negative_latency > 0 {
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
        None => "All times were taken while recording, which adds a microsecond or two to each launch; `bubble-report \
                 compare` measures how much."
            .to_owned(),
    });
    notes.extend(quality.warnings.iter().cloned());
    for note in notes {
        paragraph(out, style, anstyle::Style::new(), "  - ", &note)?;
    }
    Ok(())
}

/// What was lost, one sentence each.
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
    let told = lost.iter().filter(|(number, ..)| *number > 0);
    told.map(|&(number, one, many, what)| format!("{} {what}.", counted(number, one, many))).collect()
}
