//! What the numbers are worth: reliability, losses, the tracer's share, the replay's own error, and where the recording
//! is from.

use bubblescope::analysis::{Analysis, Quality};
use bubblescope::report::text;
use bubblescope::trace::CaptureMode;
use eframe::egui::{self, RichText, Ui};

use crate::document::Document;
use crate::format;
use crate::rows::RowKind;
use crate::theme::Palette;

/// One line of the panel.
struct Fact {
    name: &'static str,
    value: String,
    hint: &'static str,
    /// Whether it speaks against the figures.
    bad: bool,
}

/// What is true of all times.
fn traced(quality: &Quality) -> String {
    format!(
        "{}: that counts where launches set the pace, and Record can measure it by comparing with runs that are not \
         recorded.",
        text::while_recording(quality.graph_ops, quality.graph_launch_idle)
    )
}

/// Between two groups of facts.
const APART: f32 = 24.0;

/// Room for the name of a fact, and for its value at least.
const NAMES_WIDTH: f32 = 165.0;

/// Shows what the figures of each trace are worth.
pub(super) fn quality_ui(ui: &mut Ui, docs: &[Document]) {
    let palette = Palette::of(ui.visuals());
    egui::ScrollArea::both().id_salt("quality").auto_shrink(false).show(ui, |ui| {
        for (at, doc) in docs.iter().enumerate() {
            if docs.len() > 1 {
                ui.heading(&doc.name);
            }
            let Some(analysis) = doc.analysis() else {
                ui.label("The analysis is not through yet.");
                continue;
            };
            reliability_ui(ui, &analysis.quality, !analysis.devices.is_empty(), &palette);
            ui.add_space(4.0);
            let values = ((ui.available_width() - 2.0 * APART) / 3.0 - NAMES_WIDTH).max(NAMES_WIDTH);
            ui.horizontal_top(|ui| {
                // A grid would let values run out of the panel.
                ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Wrap);
                facts_ui(ui, ("recorded", at), "The recording", &recorded(doc, analysis), values, &palette);
                ui.add_space(APART);
                facts_ui(ui, ("computed", at), "The figures", &computed(doc, analysis), values, &palette);
                ui.add_space(APART);
                source_ui(ui, at, doc, values, &palette);
            });
            ui.add_space(10.0);
        }
    });
}

/// Whether idle figures can be relied on, and every reservation.
pub(super) fn reliability_ui(ui: &mut Ui, quality: &Quality, any_device: bool, palette: &Palette) {
    if !quality.idle_reliable {
        ui.colored_label(ui.visuals().warn_fg_color, "Idle figures cannot be relied on:");
    }
    for reason in quality.reasons.iter().chain(&quality.warnings) {
        ui.label(reason);
    }
    if quality.idle_reliable && any_device {
        let text = match quality.warnings.is_empty() {
            true => "Nothing was lost or is in doubt in the recording.",
            false => "Idle figures can be relied on, with what is said above.",
        };
        ui.colored_label(palette.weak_text, format!("{text} {}", traced(quality)));
    }
}

fn recorded(doc: &Document, analysis: &Analysis) -> Vec<Fact> {
    let quality = &analysis.quality;
    let losses = quality.losses;
    let count = |name, count: u64, hint| Fact { name, value: format::count(count), hint, bad: count > 0 };
    let mut rows = doc.scene.sections.iter().flat_map(|section| &section.rows);
    let any_graph = rows.any(|row| matches!(row.kind, RowKind::Replays(_)));
    let mode = match quality.capture_mode {
        CaptureMode::Node if !any_graph => "none was launched",
        CaptureMode::Node => "node by node",
        CaptureMode::Graph => "whole launches",
        _ => "unknown",
    };
    vec![
        count("Records dropped", losses.dropped_records, "Records that CUPTI or the recorder dropped"),
        count("Ops without times", losses.ops_without_time, "Ops whose times could not be collected: left out"),
        count("Unfinished ops", losses.unfinished_ops, "Ops that were still running when recording ended"),
        count("Unreadable records", losses.unreadable_records, "Records that could not be read: left out"),
        count("Impossible times", losses.impossible_times, "Records whose times cannot be true: left out"),
        count("Bytes cut off", losses.cut_bytes, "Bytes after the last whole record of a cut file"),
        count(
            "Orphan ops",
            quality.orphan_ops,
            "Ops whose launch is not in the recording: idle time before them has no cause",
        ),
        count("Launches without ops", quality.launches_without_ops, "Launches that succeeded and have no op"),
        Fact {
            name: "Graphs recorded",
            value: mode.to_owned(),
            hint: "Idle time inside a graph is seen only when it is recorded node by node",
            bad: quality.capture_mode == CaptureMode::Graph,
        },
    ]
}

fn computed(doc: &Document, analysis: &Analysis) -> Vec<Fact> {
    let quality = &analysis.quality;
    let idle: i64 = analysis.devices.iter().map(|device| device.idle_ns().0).sum();
    let of_idle = |ns: i64| format!("{} ({} of idle time)", format::duration(ns), format::percent(ns, idle));
    let launches = analysis.launches;
    let mut facts = vec![
        Fact {
            name: "Tracer in bubbles",
            value: of_idle(quality.profiler.0),
            hint: "Time that the profiler says it spent while a device was idle",
            bad: i128::from(quality.profiler.0) * 100 > i128::from(idle) * 5,
        },
        Fact {
            name: "Stalled",
            value: of_idle(quality.stalled.0),
            hint: "Idle time that something not recorded explains: another process on the device, say",
            bad: quality.stalled.0 > 0,
        },
        Fact {
            name: "Ops before their launch",
            value: match quality.negative_latency {
                0 => "0".to_owned(),
                count => {
                    let worst = format::duration(-launches.worst_negative_latency.0);
                    format!("{}, by up to {worst}", format::count(count))
                }
            },
            hint: "The clocks of host and device differ by at least as much",
            bad: quality.negative_latency > 0,
        },
    ];
    let (value, bad) = match doc.full() {
        None if doc.replay_is_stopped() => ("the replay was stopped".to_owned(), false),
        None => ("the replay still runs".to_owned(), false),
        Some(full) => match &full.replay {
            None => ("nothing to replay".to_owned(), false),
            Some(replay) => {
                let error = format!("{} of the span", text::percent(replay.unchanged_error));
                let withheld = if replay.withheld { ", too much: gains are withheld" } else { "" };
                (format!("{error}{withheld}"), replay.withheld)
            }
        },
    };
    let hint = "How far a replay of the recording without any change is off";
    facts.push(Fact { name: "Replay's error", value, hint, bad });
    facts
}

fn facts_ui(ui: &mut Ui, salt: (&'static str, usize), title: &str, facts: &[Fact], values: f32, palette: &Palette) {
    ui.vertical(|ui| {
        ui.strong(title);
        egui::Grid::new(salt).num_columns(2).spacing([14.0, 3.0]).max_col_width(values).show(ui, |ui| {
            for fact in facts {
                ui.colored_label(palette.weak_text, fact.name).on_hover_text(fact.hint);
                let color = if fact.bad { ui.visuals().warn_fg_color } else { palette.text };
                ui.label(RichText::new(&fact.value).color(color)).on_hover_text(fact.hint);
                ui.end_row();
            }
        });
    });
}

/// With a capital first letter.
fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The format of the file, and the one it was made from where that is another.
fn format_of(doc: &Document) -> String {
    let (from, kept) = (&doc.trace.meta.source.format, "bubbles.parquet");
    if doc.name.ends_with(kept) && !from.is_empty() && from != kept {
        return format!("{kept}, made from {from}");
    }
    from.clone()
}

/// Where a recording is from.
fn source_ui(ui: &mut Ui, at: usize, doc: &Document, values: f32, palette: &Palette) {
    let meta = &doc.trace.meta;
    ui.vertical(|ui| {
        ui.strong("Where it is from");
        egui::Grid::new(("source", at)).num_columns(2).spacing([14.0, 3.0]).max_col_width(values).show(ui, |ui| {
            let mut line = |name: &str, value: &str| {
                if !value.is_empty() {
                    ui.colored_label(palette.weak_text, capital(name));
                    ui.label(value);
                    ui.end_row();
                }
            };
            line("File", &doc.path.display().to_string());
            line("Format", &format_of(doc));
            line("Recorded", meta.source.captured_on.as_deref().unwrap_or_default());
            line("Command", meta.source.command.as_deref().unwrap_or_default());
            if let Some(run) = &meta.workload {
                line("Workload", &format!("{} {}", run.workload, run.variant));
            }
            for (name, value) in &meta.machine {
                line(name, value);
            }
            line("Events", &format::count(doc.trace.event_count() as u64));
        });
    });
}
