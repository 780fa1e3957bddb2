//! The opened traces as variants of one piece of work, side by side.

use std::sync::Arc;

use bubblescope::analysis::{Analysis, Options, analyze};
use bubblescope::report::compare::{PerIteration, Variant};
use bubblescope::report::{self, Aligned, Compare, ComparedTrace, Report};
use bubblescope::trace::{Interval, Ns, Trace};
use eframe::egui::{self, Rect, Sense, Ui, Vec2};

use super::{Chosen, swatch};
use crate::align::{self, Overlay, Part, Places};
use crate::background::Background;
use crate::document::Document;
use crate::format;
use crate::theme::Palette;

/// Where the traces are laid over each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Their first moments.
    #[default]
    Start,
    /// The iteration with this number, counted from 0 after warm-up.
    Iteration(usize),
    /// The first range with this name that lies in the compared part.
    Range(String),
}

/// What the traces have in common.
#[derive(Debug)]
pub struct Found {
    /// The figures per iteration, or why there are none.
    pub compare: Result<Compare, String>,
    /// Where the traces can be laid over each other.
    pub places: Places,
}

/// The comparison of the opened traces.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Where the traces are laid over each other.
    pub align: Align,
    found: Background<u64, Found>,
}

/// Compares traces by their iterations.
fn compare(traces: &[(String, Arc<Trace>)]) -> Found {
    let analyses: Vec<Analysis> = traces.iter().map(|(_, trace)| analyze(trace, &Options::default())).collect();
    let aligned: Result<Vec<Aligned>, String> = traces
        .iter()
        .zip(&analyses)
        .map(|((name, trace), analysis)| Aligned::find(name, trace, analysis).map_err(|error| error.to_string()))
        .collect();
    let window = |at: usize| Some(aligned.as_ref().ok()?.get(at)?.window);
    let parts = traces.iter().zip(&analyses).enumerate();
    let parts: Vec<Part<'_>> = parts
        .map(|(at, ((_, trace), analysis))| Part {
            trace,
            analysis,
            window: window(at).unwrap_or(Interval::new(Ns::ZERO, trace.end)),
        })
        .collect();
    let places = align::places(&parts);
    Found { compare: aligned.and_then(|aligned| figures(traces, &aligned)), places }
}

/// What an iteration of each trace costs.
fn figures(traces: &[(String, Arc<Trace>)], aligned: &[Aligned]) -> Result<Compare, String> {
    let reports: Vec<Report> = traces
        .iter()
        .zip(aligned)
        .map(|((name, trace), part)| {
            let analysis = analyze(trace, &Options { window: Some(part.window), ..Options::default() });
            Report::new(trace, &analysis, &report::Options { path: name.clone(), top: 0 })
        })
        .collect();
    let compared: Vec<ComparedTrace<'_>> = traces
        .iter()
        .zip(aligned)
        .zip(&reports)
        .map(|(((name, _), aligned), report)| ComparedTrace { path: name, aligned, report })
        .collect();
    Compare::of_traces(&compared).map_err(|error| error.to_string())
}

impl Comparison {
    /// The last comparison, if there is one.
    pub fn found(&self) -> Option<&Found> {
        self.found.last().map(|(_, found)| found)
    }

    /// What the traces are laid over each other at; `None` when they have no such place.
    pub fn overlay(&self) -> Option<Overlay> {
        let places = &self.found()?.places;
        match &self.align {
            Align::Start => None,
            Align::Iteration(number) => places.at_iteration(*number),
            Align::Range(name) => places.at_range(name),
        }
    }

    /// Shows the comparison.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document], version: u64) -> Option<Chosen> {
        if docs.len() < 2 {
            ui.label("Open two to four traces of the same work to compare them: with and without its syncs, say.");
            return None;
        }
        let ctx = ui.ctx().clone();
        let found = self.found.get(&ctx, version, || {
            let traces: Vec<_> = docs.iter().map(|doc| (doc.name.clone(), doc.trace.clone())).collect();
            move || compare(&traces)
        });
        let Some(found) = found else {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label("Comparing…");
            });
            return None;
        };
        let mut align = self.align.clone();
        align_ui(ui, &mut align, &found.places);
        match &found.compare {
            Err(why) => {
                ui.label(format!("No figures per iteration: {why}"));
            }
            Ok(compare) => {
                egui::ScrollArea::both().id_salt("compare").auto_shrink(false).show(ui, |ui| compare_ui(ui, compare));
            }
        }
        let changed = align != self.align;
        self.align = align;
        changed.then_some(Chosen::Align)
    }
}

/// Where to lay the traces over each other.
fn align_ui(ui: &mut Ui, align: &mut Align, places: &Places) {
    ui.horizontal(|ui| {
        ui.label("Lay over each other:");
        ui.radio_value(align, Align::Start, "starts");
        let last = places.iterations().saturating_sub(1);
        let mut number = if let Align::Iteration(number) = align { (*number).min(last) } else { 0 };
        let chosen = matches!(align, Align::Iteration(_));
        ui.add_enabled_ui(places.iterations() > 0, |ui| {
            let radio = ui.radio(chosen, "iteration").on_hover_text("Counted from 0 after warm-up");
            let value = egui::DragValue::new(&mut number).range(0..=last).speed(0.1);
            let moved = ui.add(value).labelled_by(radio.id).changed();
            if radio.clicked() || moved {
                *align = Align::Iteration(number);
            }
        });
        ui.add_enabled_ui(!places.ranges.is_empty(), |ui| {
            let chosen = if let Align::Range(name) = align { Some(name.clone()) } else { None };
            let radio = ui.radio(chosen.is_some(), "range").on_hover_text("A range that all traces have");
            let mut name = chosen.or_else(|| Some(places.ranges.first()?.name.clone())).unwrap_or_default();
            let before = name.clone();
            let list = egui::ComboBox::from_id_salt("range").selected_text(&name).width(160.0);
            let list = list.show_ui(ui, |ui| {
                for range in &places.ranges {
                    ui.selectable_value(&mut name, range.name.clone(), &range.name);
                }
            });
            list.response.labelled_by(radio.id);
            if (radio.clicked() || name != before) && !name.is_empty() {
                *align = Align::Range(name);
            }
        });
    });
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
