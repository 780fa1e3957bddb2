//! The opened traces as variants of one piece of work, side by side.

use bubblescope::analysis::Analysis;
use bubblescope::export;
use bubblescope::report::compare::{PerIteration, Variant};
use bubblescope::report::{Aligned, Compare, ComparedTrace, Report};
use bubblescope::trace::{Interval, Ns};
use eframe::egui::{self, Context, Rect, RichText, Sense, Ui, Vec2};

use super::{Chosen, swatch};
use crate::align::{self, Overlay, Part, Places};
use crate::background::{Background, Wanted};
use crate::clipboard::Copied;
use crate::command::Command;
use crate::document::Document;
use crate::format;
use crate::theme::Palette;

/// How wide the bar of the longest iteration is, as there is room.
const BAR_WIDTHS: egui::Rangef = egui::Rangef { min: 160.0, max: 900.0 };

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
    /// Where the traces are laid over each other, if the user has chosen.
    chosen: Option<Align>,
    found: Background<u64, Found>,
    /// Which traces are open.
    traces: u64,
    /// Which traces were laid over each other last.
    laid: Option<u64>,
    /// What was copied last.
    copied: Option<Copied>,
}

/// Compares traces by their iterations.
fn compare(docs: &[Document]) -> Found {
    let unknown = Analysis::default();
    let analyses: Vec<&Analysis> = docs.iter().map(|doc| doc.analysis().unwrap_or(&unknown)).collect();
    let paths: Vec<String> = docs.iter().map(|doc| doc.path.display().to_string()).collect();
    let each = docs.iter().zip(&paths).zip(&analyses);
    let aligned: Result<Vec<Aligned>, String> = each
        .map(|((doc, path), analysis)| Aligned::find(path, &doc.trace, analysis).map_err(|error| error.to_string()))
        .collect();
    let window = |at: usize| Some(aligned.as_ref().ok()?.get(at)?.window);
    let parts = docs.iter().zip(&analyses).enumerate();
    let parts: Vec<Part<'_>> = parts
        .map(|(at, (doc, analysis))| Part {
            trace: &doc.trace,
            analysis,
            window: window(at).unwrap_or(Interval::new(Ns::ZERO, doc.trace.end)),
        })
        .collect();
    let places = align::places(&parts);
    Found { compare: aligned.and_then(|aligned| figures(docs, &paths, &aligned)), places }
}

/// What an iteration of each trace costs.
fn figures(docs: &[Document], paths: &[String], aligned: &[Aligned]) -> Result<Compare, String> {
    let each = docs.iter().zip(paths).zip(aligned);
    let reports: Vec<Report> = each.map(|((doc, path), part)| part.report(path, &doc.trace)).collect();
    let each = paths.iter().zip(aligned).zip(&reports);
    let compared: Vec<ComparedTrace<'_>> =
        each.map(|((path, aligned), report)| ComparedTrace { path, aligned, report }).collect();
    Compare::of_traces(&compared).map_err(|error| error.to_string())
}

/// A comparison as comma-separated values.
pub fn comparison_csv(compare: &Compare) -> String {
    let mut csv = Vec::new();
    // Writing into memory does not fail.
    drop(export::comparison_csv(compare, &mut csv));
    String::from_utf8_lossy(&csv).into_owned()
}

impl Comparison {
    /// The comparison of what is open, if there is one.
    pub fn found(&self) -> Option<&Found> {
        self.found.last().filter(|(traces, _)| *traces == self.traces).map(|(_, found)| found)
    }

    /// The figures per iteration, or why there are none.
    ///
    /// # Errors
    /// A sentence without its full stop.
    pub fn figures(&self) -> Result<&Compare, &str> {
        match self.found() {
            Some(found) => found.compare.as_ref().map_err(String::as_str),
            None => Err("two or more traces must be open, and analysed"),
        }
    }

    /// Compares the traces in the background when there are several; `traces` changes whenever they do. Tells whether
    /// the traces have to be laid over each other anew.
    pub fn update(&mut self, ctx: &Context, docs: &[Document], traces: u64) -> bool {
        self.traces = traces;
        if docs.len() < 2 {
            self.found = Background::default();
            return false;
        }
        if !docs.iter().all(|doc| doc.analysis().is_some()) {
            return false;
        }
        let found = self.found.get(ctx, traces, || {
            let docs: Vec<Document> = docs.iter().map(Document::without_rows).collect();
            move |_: &Wanted| compare(&docs)
        });
        found.is_some() && self.laid.replace(traces) != Some(traces)
    }

    /// Where the traces are laid over each other: unless the user chose, at their first iteration after warm-up, else
    /// at their starts.
    pub fn align(&self) -> Align {
        let Some(found) = self.found() else { return Align::Start };
        match &self.chosen {
            Some(Align::Range(name)) if found.places.at_range(name).is_some() => Align::Range(name.clone()),
            Some(Align::Iteration(number)) if *number < found.places.iterations() => Align::Iteration(*number),
            Some(Align::Start) => Align::Start,
            _ if found.places.iterations() > 0 => Align::Iteration(0),
            _ => Align::Start,
        }
    }

    /// Where the traces are laid over each other, in words; `None` while there is no comparison.
    pub fn place(&self) -> Option<String> {
        self.found()?;
        Some(match self.align() {
            Align::Start => "aligned at their starts".to_owned(),
            Align::Iteration(number) => format!("aligned at iteration {number}"),
            Align::Range(name) => format!("aligned at range {name}"),
        })
    }

    /// What the traces are laid over each other at; `None` when that is their starts.
    pub fn overlay(&self) -> Option<Overlay> {
        let places = &self.found()?.places;
        match self.align() {
            Align::Start => None,
            Align::Iteration(number) => places.at_iteration(number),
            Align::Range(name) => places.at_range(&name),
        }
    }

    /// Shows the comparison.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document]) -> Option<Chosen> {
        if docs.len() < 2 {
            ui.label("Open two or more traces of the same work to compare them: with and without its syncs, say.");
            return None;
        }
        let before = self.align();
        let Some(found) = self.found() else {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label("Comparing…");
            });
            return None;
        };
        let mut align = before;
        let mut chose = false;
        let (mut chosen, mut copied) = (None, None);
        ui.horizontal_wrapped(|ui| {
            chose = align_ui(ui, &mut align, &found.places);
            if let Ok(compare) = &found.compare {
                ui.separator();
                (chosen, copied) = export_ui(ui, compare);
            }
            // Behind the buttons, which stay where they are.
            copied.iter().chain(&self.copied).take(1).for_each(|copied| copied.show(ui));
        });
        match &found.compare {
            Err(why) => {
                ui.label(format!("No figures per iteration: {why}."));
            }
            Ok(compare) => {
                let width = ui.available_width();
                let area = egui::ScrollArea::both().id_salt("compare").auto_shrink(false);
                area.show(ui, |ui| compare_ui(ui, compare, width));
            }
        }
        if copied.is_some() {
            self.copied = copied;
        }
        if chose {
            self.chosen = Some(align);
            chosen = Some(Chosen::Align);
        }
        chosen
    }
}

/// What can be done with the table: what the user chose of it, and what was copied.
fn export_ui(ui: &mut Ui, compare: &Compare) -> (Option<Chosen>, Option<Copied>) {
    let copied = ui.button("Copy as CSV").clicked().then(|| {
        let rows = format::things(compare.variants.len() as u64, "row", "rows");
        Copied::put(ui.ctx(), comparison_csv(compare), rows)
    });
    let each = [(Command::CompareCsv, "Export CSV…"), (Command::CompareJson, "Export JSON…")];
    let clicked = each.into_iter().filter(|(_, label)| ui.button(*label).clicked());
    (clicked.last().map(|(command, _)| Chosen::Command(command)), copied)
}

/// Where to lay the traces over each other; tells whether the user has chosen, if only the same place again.
fn align_ui(ui: &mut Ui, align: &mut Align, places: &Places) -> bool {
    ui.label("Lay over each other:");
    let mut chose = ui.radio_value(align, Align::Start, "starts").clicked();
    let last = places.iterations().saturating_sub(1);
    let mut number = if let Align::Iteration(number) = align { (*number).min(last) } else { 0 };
    let chosen = matches!(align, Align::Iteration(_));
    ui.add_enabled_ui(places.iterations() > 0, |ui| {
        let radio = ui.radio(chosen, "iteration").on_hover_text("Counted from 0 after warm-up");
        let value = egui::DragValue::new(&mut number).range(0..=last).speed(0.1);
        let moved = ui.add(value).labelled_by(radio.id).changed();
        if radio.clicked() || moved {
            *align = Align::Iteration(number);
            chose = true;
        }
    });
    ui.add_enabled_ui(!places.ranges.is_empty(), |ui| {
        let chosen = if let Align::Range(name) = align { Some(name.clone()) } else { None };
        let radio = ui.radio(chosen.is_some(), "range").on_hover_text("A range that all traces have");
        let mut name = chosen.or_else(|| Some(places.ranges.first()?.name.clone())).unwrap_or_default();
        let before = name.clone();
        // Where there is nothing to choose, its room is for what is told behind the buttons.
        let width = if places.ranges.is_empty() { 50.0 } else { 160.0 };
        let list = egui::ComboBox::from_id_salt("range").selected_text(&name).width(width);
        let list = list.show_ui(ui, |ui| {
            for range in &places.ranges {
                ui.selectable_value(&mut name, range.name.clone(), &range.name);
            }
        });
        list.response.labelled_by(radio.id);
        if (radio.clicked() || name != before) && !name.is_empty() {
            *align = Align::Range(name);
            chose = true;
        }
    });
    chose
}

/// Shows the figures, and below them, in the width that is in sight, what they are worth.
fn compare_ui(ui: &mut Ui, compare: &Compare, width: f32) {
    let palette = Palette::of(ui.visuals());
    let longest = compare.variants.iter().filter_map(wall).max().unwrap_or(1).max(1);
    let width = width - ui.spacing().scroll.allocated_width();
    // Wherever it is scrolled to.
    let end = ui.max_rect().left() + width;
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
            variant_ui(ui, variant, longest, end, &palette);
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
        swatch(ui, palette.kernels());
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
    ui.scope(|ui| {
        ui.set_max_width(width);
        for remark in compare.warnings.iter().cloned().chain(remarks(compare)) {
            ui.add(egui::Label::new(RichText::new(remark).color(ui.visuals().warn_fg_color)).wrap());
        }
    });
}

/// How a clause begins that says that a variant did something else.
const OTHER_WORK: &str = "not the same work";

/// What speaks against the figures of a variant, a clause each.
fn clauses(variant: &Variant) -> Vec<String> {
    let unusable = variant.unusable.iter().map(|why| format!("no figures: {why}"));
    let unreliable = variant.recorded.as_ref().filter(|recorded| !recorded.idle_reliable);
    let reasons = unreliable.into_iter().flat_map(|recorded| &recorded.reasons);
    unusable.chain(variant.marks.iter().chain(reasons).cloned()).collect()
}

/// What is said of one kind, and of which variants each.
type Said<'a> = Vec<(String, Vec<&'a str>)>;

/// What speaks against the figures, line by line: what is of one kind stands together, and what is the same is said once
/// of all that it holds for.
fn remarks(compare: &Compare) -> Vec<String> {
    let mut kinds: Vec<(String, Said<'_>)> = Vec::new();
    for variant in &compare.variants {
        for clause in clauses(variant) {
            let clause = clause.trim_end_matches('.');
            let (kind, rest) = clause.split_once(": ").unwrap_or((clause, ""));
            let at = kinds.iter().position(|(other, _)| other == kind).unwrap_or_else(|| {
                kinds.push((kind.to_owned(), Vec::new()));
                kinds.len() - 1
            });
            let said = &mut kinds[at].1;
            match said.iter_mut().find(|(other, _)| other == rest) {
                Some((_, names)) => names.push(&variant.variant),
                None => said.push((rest.to_owned(), vec![&variant.variant])),
            }
        }
    }
    let mut lines = Vec::new();
    for (kind, said) in kinds {
        match said.as_slice() {
            [(rest, names)] if rest.is_empty() => lines.push(format!("(!) {}: {kind}.", names.join(", "))),
            [(rest, names)] => lines.push(format!("(!) {}: {kind}: {rest}.", names.join(", "))),
            _ => {
                lines.push(format!("(!) {kind}:"));
                let each = said.iter().map(|(rest, names)| format!("      {}: {rest}.", names.join(", ")));
                lines.extend(each);
            }
        }
    }
    lines
}

fn wall(variant: &Variant) -> Option<i64> {
    variant.unprofiled.or(variant.profiled).map(|wall| wall.median_ns.0)
}

fn variant_ui(ui: &mut Ui, variant: &Variant, longest: i64, end: f32, palette: &Palette) {
    let clauses = clauses(variant);
    if clauses.is_empty() {
        ui.label(&variant.variant);
    } else {
        let name = format!("{} (!)", variant.variant);
        ui.colored_label(ui.visuals().warn_fg_color, name).on_hover_text(clauses.join("\n"));
    }
    if variant.unusable.is_some() {
        for _ in 0..6 {
            ui.label("–");
        }
        return;
    }
    ui.label(format::count(variant.iterations));
    let wall = wall(variant);
    ui.label(wall.map_or_else(|| "–".to_owned(), format::duration));
    match variant.speedup {
        Some(speedup) => ui.label(format!("{:.2} ×", speedup.ratio)),
        None => {
            let other_work = variant.marks.iter().find(|mark| mark.starts_with(OTHER_WORK));
            let why = other_work.map_or("there is nothing to compare it with, or the answers differ", String::as_str);
            ui.label("–").on_hover_text(why)
        }
    };
    let Some(recorded) = &variant.recorded else {
        ui.label("not recorded");
        return;
    };
    ui.label(format::duration(recorded.busy_ns.0));
    ui.label(format::duration(recorded.bubble_ns.0));
    ui.label(format!("{:.1}", recorded.sync_calls));
    bar_ui(ui, recorded, longest, end, palette);
}

/// Busy time and bubbles by root as one bar that ends there at most; all variants have one scale.
fn bar_ui(ui: &mut Ui, recorded: &PerIteration, longest: i64, end: f32, palette: &Palette) {
    let width = (end - ui.available_rect_before_wrap().left()).clamp(BAR_WIDTHS.min, BAR_WIDTHS.max);
    let (bar, response) = ui.allocate_exact_size(Vec2::new(width, 16.0), Sense::hover());
    let parts = std::iter::once(("busy", recorded.busy_ns, palette.kernels()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_speaks_against_figures_is_said_once_of_all_that_it_holds_for() {
        let variant = |name: &str, marks: &[&str]| Variant {
            variant: name.to_owned(),
            marks: marks.iter().map(|mark| (*mark).to_owned()).collect(),
            ..Variant::default()
        };
        let (cut, other) = ("it was cut: 7 bytes after its last whole record", "not the same work: busy for 1 µs");
        let mut compare = Compare { variants: vec![variant("a", &[]), variant("b", &[cut])], ..Compare::default() };
        assert_eq!(remarks(&compare), [format!("(!) b: {cut}.")]);
        compare.variants.push(variant("c", &[cut, other]));
        compare.variants.push(variant("d", &["not the same work: busy for 2 µs", "its times are unreliable"]));
        compare.variants.push(Variant { unusable: Some("it is empty".to_owned()), ..variant("e", &[]) });
        let both = format!("(!) b, c: {cut}.");
        let expected = [
            both.as_str(),
            "(!) not the same work:",
            "      c: busy for 1 µs.",
            "      d: busy for 2 µs.",
            "(!) d: its times are unreliable.",
            "(!) e: no figures: it is empty.",
        ];
        assert_eq!(remarks(&compare), expected);
    }
}
