//! Where the time of each device went.

use std::collections::BTreeMap;
use std::fmt::Display;

use bubblescope::analysis::{Analysis, DeviceAnalysis, HistogramBucket, Partition};
use bubblescope::trace::Ns;
use eframe::egui::{self, Color32, Pos2, Rect, RichText, Sense, Ui, Vec2};

use super::quality::reliability_ui;
use super::swatch;
use crate::describe;
use crate::document::Document;
use crate::format;
use crate::theme::Palette;

/// Share of the span below which idle time is not worth a word, in percent.
const NEGLIGIBLE_PERCENT: i64 = 2;

/// Shows what the analysis of a document found; tells whether the user wants to see the findings.
pub fn overview_ui(ui: &mut Ui, doc: &Document, named: bool) -> bool {
    if named {
        ui.heading(&doc.name);
    }
    let palette = Palette::of(ui.visuals());
    let mut wanted = false;
    match doc.analysis() {
        Some(analysis) => {
            figures_ui(ui, doc, analysis, |ui| wanted = remedy_ui(ui, doc, &palette));
            if analysis.window.len() < doc.trace.end {
                let part = "These figures are of the workload's measured part: set-up and warm-up are left out.";
                ui.colored_label(palette.weak_text, part);
            }
        }
        None => {
            ui.label("The analysis is not through yet.");
        }
    }
    wanted
}

/// The finding that gains most, as a link to all of them.
fn remedy_ui(ui: &mut Ui, doc: &Document, palette: &Palette) -> bool {
    let Some(full) = doc.full() else { return false };
    let (Some(finding), Some(replay)) = (full.findings.found.first(), &full.replay) else { return false };
    ui.horizontal_wrapped(|ui| {
        let gain = format::duration(finding.recoverable.0);
        let share = format::percent(finding.recoverable.0, replay.span.0);
        ui.strong("What to fix:");
        let link = ui.link(&finding.title).on_hover_text("Show what it rests on, and the remedy");
        ui.colored_label(palette.weak_text, format!("gains {gain}, {share} of the span"));
        link.clicked()
    })
    .inner
}

/// Shows the figures of an analysis of a document, or of a part of it; `then` shows what follows the first verdict.
pub(super) fn figures_ui(ui: &mut Ui, doc: &Document, analysis: &Analysis, then: impl FnOnce(&mut Ui)) {
    let mut then = Some(then);
    let palette = Palette::of(ui.visuals());
    if analysis.devices.is_empty() {
        let why = if analysis.quality.gpu_not_captured {
            "Launches were recorded, but no GPU activity: nothing can be said about idle time."
        } else {
            "No GPU activity here."
        };
        ui.label(why);
    }
    for device in &analysis.devices {
        ui.label(RichText::new(verdict(doc, device)).size(15.0).strong());
        if let Some(then) = then.take() {
            then(ui);
        }
        partition_ui(ui, &device.partition, &palette);
        ui.add_space(4.0);
        ui.horizontal_top(|ui| {
            let width = ((ui.available_width() - 40.0) / 3.0).clamp(240.0, 460.0);
            let idle = device.idle_ns();
            column_ui(ui, width, |ui| {
                ui.strong("Idle by root cause");
                let meaning = |cause| describe::cause(cause);
                breakdown_ui(ui, &device.idle_by_root, idle, |cause| palette.cause(cause), meaning, &palette);
            });
            column_ui(ui, width, |ui| {
                ui.strong("Idle by what the host did");
                let meaning = |kind| describe::segment(kind);
                breakdown_ui(ui, &device.idle_by_segment, idle, |kind| palette.segment(kind), meaning, &palette);
            });
            column_ui(ui, width, |ui| {
                ui.strong("Idle by length of bubble");
                histogram_ui(ui, &device.histogram, idle, &palette);
            });
        });
        ui.add_space(8.0);
    }
    reliability_ui(ui, analysis, &palette);
}

fn column_ui(ui: &mut Ui, width: f32, contents: impl FnOnce(&mut Ui)) {
    ui.vertical(|ui| {
        ui.set_width(width);
        contents(ui);
    });
    ui.add_space(8.0);
}

/// One sentence about a device.
pub(super) fn verdict(doc: &Document, device: &DeviceAnalysis) -> String {
    let id = doc.trace.devices.get(device.device.index()).map_or(0, |device| device.id);
    let (idle, span) = (device.idle_ns().0, device.span.len().0);
    let share = format::percent(idle, span);
    if i128::from(idle) * 100 < i128::from(span) * i128::from(NEGLIGIBLE_PERCENT) {
        return format!("GPU {id} is busy: {share} idle of {}.", format::duration(span));
    }
    let most = device.idle_by_root.iter().max_by_key(|(cause, ns)| (**ns, std::cmp::Reverse(**cause)));
    let most = most.map_or_else(String::new, |(cause, ns)| format!(", {} of it {cause}", format::percent(ns.0, idle)));
    format!("GPU {id} stands idle for {share} of {}: {}{most}.", format::duration(span), format::duration(idle))
}

/// How the span divides, as one bar with a legend.
fn partition_ui(ui: &mut Ui, partition: &Partition, palette: &Palette) {
    let parts = [
        ("kernels only", partition.compute_only, Color32::from_rgb(0x5b, 0x7f, 0xb5)),
        ("kernels and copies", partition.overlapped, Color32::from_rgb(0x4f, 0x93, 0xab)),
        ("copies only", partition.exposed_copy, Color32::from_rgb(0x3a, 0xa8, 0x76)),
        ("idle", partition.idle, Color32::from_rgb(0xd5, 0x5e, 0x00)),
    ];
    let span = partition.span().0.max(1);
    let (bar, _) = ui.allocate_exact_size(Vec2::new(ui.available_width().min(900.0), 16.0), Sense::hover());
    let mut left = bar.left();
    for (_, part, color) in parts {
        let right = left + (part.0 as f64 / span as f64 * f64::from(bar.width())) as f32;
        ui.painter().rect_filled(Rect::from_x_y_ranges(left..=right, bar.y_range()), 0.0, color);
        left = right;
    }
    ui.horizontal(|ui| {
        for (name, part, color) in parts {
            swatch(ui, color);
            ui.label(name);
            let figures = format!("{} · {}", format::duration(part.0), format::percent(part.0, span));
            ui.colored_label(palette.weak_text, figures);
            ui.add_space(10.0);
        }
    });
}

/// Parts of the idle time, the greatest first, each with a bar.
fn breakdown_ui<K: Copy + Ord + Display>(
    ui: &mut Ui,
    parts: &BTreeMap<K, Ns>,
    idle: Ns,
    color: impl Fn(K) -> Color32,
    meaning: impl Fn(K) -> &'static str,
    palette: &Palette,
) {
    let mut parts: Vec<(K, Ns)> = parts.iter().map(|(&kind, &ns)| (kind, ns)).collect();
    parts.sort_by_key(|&(kind, ns)| (std::cmp::Reverse(ns), kind));
    for (kind, ns) in parts {
        bar_ui(ui, &kind.to_string(), ns, idle, color(kind), meaning(kind), palette);
    }
}

fn histogram_ui(ui: &mut Ui, buckets: &[HistogramBucket], idle: Ns, palette: &Palette) {
    for bucket in buckets.iter().filter(|bucket| bucket.count > 0) {
        let name = format!("{} · {} ×", lengths(bucket), format::count(bucket.count));
        let hint = format!("{} of such a length", format::things(bucket.count, "bubble", "bubbles"));
        bar_ui(ui, &name, bucket.total, idle, palette.weak_text, &hint, palette);
    }
}

/// The lengths of a bucket: `10 to 20 µs`, `500 µs to 1 ms`.
fn lengths(bucket: &HistogramBucket) -> String {
    let from = short(bucket.from.0);
    let Some(to) = bucket.to.map(|to| short(to.0)) else { return format!("{from} and more") };
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((from, unit)), Some((_, other))) if unit == other || from == "0" => format!("{from} to {to}"),
        _ => format!("{from} to {to}"),
    }
}

/// A length without the digits that a round number does not need.
fn short(ns: i64) -> String {
    format::duration(ns).replace(".000 ", " ").replace(".00 ", " ").replace(".0 ", " ")
}

/// A line with a name, a bar as long as its share, and figures.
fn bar_ui(ui: &mut Ui, name: &str, part: Ns, whole: Ns, color: Color32, hint: &str, palette: &Palette) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 18.0), Sense::hover());
    let share = if whole.0 > 0 { part.0 as f64 / whole.0 as f64 } else { 0.0 };
    let bar = Rect::from_min_size(rect.min, Vec2::new((f64::from(rect.width()) * share) as f32, rect.height()));
    ui.painter().rect_filled(rect.shrink2(Vec2::new(0.0, 1.0)), 2.0, palette.canvas_alternate);
    ui.painter().rect_filled(bar.shrink2(Vec2::new(0.0, 1.0)), 2.0, color.gamma_multiply(0.55));
    ui.painter().rect_filled(Rect::from_min_size(rect.min, Vec2::new(3.0, rect.height())), 0.0, color);
    let font = egui::FontId::proportional(12.0);
    let left = Pos2::new(rect.left() + 9.0, rect.center().y);
    ui.painter().text(left, egui::Align2::LEFT_CENTER, name, font.clone(), palette.text);
    let figures = format!("{} · {}", format::duration(part.0), format::percent(part.0, whole.0));
    let right = Pos2::new(rect.right() - 4.0, rect.center().y);
    ui.painter().text(right, egui::Align2::RIGHT_CENTER, &figures, font, palette.text);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, format!("{name}: {figures}")));
    response.on_hover_text(hint);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_bubbles_read_well() {
        let named = |from: i64, to: Option<i64>| {
            lengths(&HistogramBucket { from: Ns(from), to: to.map(Ns), count: 1, total: Ns(1) })
        };
        assert_eq!(named(0, Some(1_000)), "0 to 1 µs");
        assert_eq!(named(10_000, Some(20_000)), "10 to 20 µs");
        assert_eq!(named(500_000, Some(1_000_000)), "500 µs to 1 ms");
        assert_eq!(named(5_000_000_000, None), "5 s and more");
    }
}
