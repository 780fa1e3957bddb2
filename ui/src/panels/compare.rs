//! The opened traces as variants of one piece of work, side by side.

use bubblescope::analysis::{Options, analyze};
use bubblescope::report::compare::{PerIteration, Variant};
use bubblescope::report::{self, Aligned, Compare, ComparedTrace, Report};
use bubblescope::trace::{Ns, Trace};
use eframe::egui::{self, Rect, Sense, Ui, Vec2};

use super::{Chosen, swatch};
use crate::background::Background;
use crate::document::Document;
use crate::format;
use crate::theme::Palette;

/// Where the traces are laid over each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Their first moments.
    #[default]
    Start,
    /// The first iteration after warm-up.
    Iteration,
}

/// A comparison, or why there is none.
type Outcome = Result<Found, String>;

/// A comparison and where the compared part of each trace starts.
#[derive(Debug)]
pub struct Found {
    /// The figures.
    pub compare: Compare,
    /// The start of the compared part of each trace, in its own time.
    pub starts: Vec<Ns>,
}

/// The comparison of the opened traces.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Where the traces are laid over each other.
    pub align: Align,
    outcome: Background<u64, Outcome>,
}

/// Compares traces by their iterations.
fn compare(traces: &[(String, std::sync::Arc<Trace>)]) -> Outcome {
    let text = |error: report::compare::CompareError| error.to_string();
    let mut aligned = Vec::new();
    let mut reports = Vec::new();
    for (name, trace) in traces {
        let part = Aligned::find(name, trace, &analyze(trace, &Options::default())).map_err(text)?;
        let analysis = analyze(trace, &Options { window: Some(part.window), ..Options::default() });
        reports.push(Report::new(trace, &analysis, &report::Options { path: name.clone(), top: 0 }));
        aligned.push(part);
    }
    let compared: Vec<ComparedTrace<'_>> = traces
        .iter()
        .zip(&aligned)
        .zip(&reports)
        .map(|(((name, _), aligned), report)| ComparedTrace { path: name, aligned, report })
        .collect();
    let compare = Compare::of_traces(&compared).map_err(text)?;
    Ok(Found { compare, starts: aligned.iter().map(|part| part.window.start).collect() })
}

impl Comparison {
    /// The last comparison, if there is one.
    pub fn found(&self) -> Option<&Found> {
        self.outcome.last().and_then(|(_, outcome)| outcome.as_ref().ok())
    }

    /// Shows the comparison.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document], version: u64) -> Option<Chosen> {
        if docs.len() < 2 {
            ui.label("Open two to four traces of the same work to compare them: with and without its syncs, say.");
            return None;
        }
        let mut align = self.align;
        let ctx = ui.ctx().clone();
        let outcome = self.outcome.get(&ctx, version, || {
            let traces: Vec<_> = docs.iter().map(|doc| (doc.name.clone(), doc.trace.clone())).collect();
            move || compare(&traces)
        });
        ui.horizontal(|ui| {
            ui.label("Lay over each other:");
            ui.radio_value(&mut align, Align::Start, "starts");
            ui.radio_value(&mut align, Align::Iteration, "first measured iterations");
        });
        match outcome {
            None => {
                ui.spinner();
            }
            Some(Err(why)) => {
                ui.label(format!("No comparison by iteration: {why}"));
            }
            Some(Ok(found)) => {
                egui::ScrollArea::both()
                    .id_salt("compare")
                    .auto_shrink(false)
                    .show(ui, |ui| compare_ui(ui, &found.compare));
            }
        }
        let changed = align != self.align;
        self.align = align;
        changed.then_some(Chosen::Align)
    }
}

fn compare_ui(ui: &mut Ui, compare: &Compare) {
    let palette = Palette::of(ui.visuals());
    let longest = compare.variants.iter().filter_map(wall).max().unwrap_or(1).max(1);
    egui::Grid::new("variants").striped(true).num_columns(8).spacing([18.0, 6.0]).show(ui, |ui| {
        let headings = [
            "Variant",
            "Iterations",
            "Per iteration",
            "Speed-up",
            "Busy",
            "Bubbles",
            "Blocking calls",
            "Where an iteration goes",
        ];
        for heading in headings {
            ui.strong(heading);
        }
        ui.end_row();
        for variant in &compare.variants {
            variant_ui(ui, variant, longest, &palette);
            ui.end_row();
        }
    });
    ui.add_space(6.0);
    ui.horizontal_wrapped(|ui| {
        let mut causes: Vec<_> = compare
            .variants
            .iter()
            .filter_map(|variant| variant.recorded.as_ref())
            .flat_map(|recorded| recorded.bubble_ns_by_root.keys().copied())
            .collect();
        causes.sort_unstable();
        causes.dedup();
        swatch(ui, BUSY);
        ui.label("busy");
        for cause in causes {
            swatch(ui, palette.cause(cause));
            ui.label(cause.as_str());
        }
    });
    ui.colored_label(
        palette.weak_text,
        format!("Per iteration, told apart by {}. Recording takes part in the times.", compare.aligned_by),
    );
    for warning in &compare.warnings {
        ui.colored_label(ui.visuals().warn_fg_color, warning);
    }
}

const BUSY: egui::Color32 = egui::Color32::from_rgb(0x5b, 0x7f, 0xb5);

fn wall(variant: &Variant) -> Option<i64> {
    variant.unprofiled.or(variant.profiled).map(|wall| wall.median_ns.0)
}

fn variant_ui(ui: &mut Ui, variant: &Variant, longest: i64, palette: &Palette) {
    ui.label(&variant.variant);
    ui.label(format::count(variant.iterations));
    let wall = wall(variant);
    ui.label(wall.map_or_else(|| "–".to_owned(), format::duration));
    ui.label(variant.speedup.map_or_else(|| "–".to_owned(), |speedup| format!("{:.2} ×", speedup.ratio)));
    let Some(recorded) = &variant.recorded else {
        ui.label("not recorded");
        return;
    };
    ui.label(format::duration(recorded.busy_ns.0));
    ui.label(format::duration(recorded.bubble_ns.0));
    ui.label(format!("{:.1}", recorded.sync_calls));
    bar_ui(ui, recorded, longest, palette);
}

/// Busy time and bubbles by root as one bar; all variants have one scale.
fn bar_ui(ui: &mut Ui, recorded: &PerIteration, longest: i64, palette: &Palette) {
    let (bar, response) = ui.allocate_exact_size(Vec2::new(420.0, 16.0), Sense::hover());
    let parts = std::iter::once(("busy", recorded.busy_ns, BUSY));
    let roots = recorded.bubble_ns_by_root.iter().map(|(cause, &ns)| (cause.as_str(), ns, palette.cause(*cause)));
    let mut left = bar.left();
    let mut text = String::new();
    for (name, part, color) in parts.chain(roots) {
        let width = (part.0 as f64 / longest as f64 * f64::from(bar.width())) as f32;
        let right = (left + width).min(bar.right());
        ui.painter().rect_filled(Rect::from_x_y_ranges(left..=right, bar.y_range()), 0.0, color);
        left = right;
        text.push_str(&format!("{name}: {}\n", format::duration(part.0)));
    }
    response.on_hover_text(text.trim_end());
}
