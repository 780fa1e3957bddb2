//! Where the time of each device went.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use bubblescope::analysis::{
    Analysis, Bubble, DeviceAnalysis, HistogramBucket, Marked, Partition, Quality, beyond_idle,
};
use bubblescope::trace::{Interval, Ns};
use eframe::egui::{self, Color32, Pos2, Rect, Response, RichText, Sense, Stroke, StrokeKind, Ui, Vec2};

use super::quality::reliability_ui;
use super::{link_ui, swatch, swatch_of};
use crate::describe;
use crate::document::{BubbleRef, Document};
use crate::format;
use crate::theme::Palette;

/// Share of the span below which idle time is not worth a word, in percent.
const NEGLIGIBLE_PERCENT: i64 = 2;

/// What the figures are of, when that is not the whole recording.
const MEASURED_PART: &str = "Of the workload's measured part: set-up and warm-up are left out.";

/// What is said where a recording has no finding: a pattern may be there that is not worth a change.
pub(super) const NOTHING_TO_FIX: &str = "nothing was found that would gain enough";

/// What is shown of an analysis, or of a marked interval.
pub(super) struct Figures<'a> {
    interval: Interval,
    devices: &'a [Arc<DeviceAnalysis>],
    quality: &'a Quality,
    /// What does not belong to a device's span counts, too.
    marked: bool,
}

impl<'a> Figures<'a> {
    fn of(analysis: &'a Analysis) -> Self {
        let Analysis { window, devices, quality, .. } = analysis;
        Self { interval: *window, devices, quality, marked: false }
    }

    pub(super) fn of_marked(marked: &'a Marked) -> Self {
        let Marked { interval, devices, quality, .. } = marked;
        Self { interval: *interval, devices, quality, marked: true }
    }

    /// The time that a device's figures add up to.
    fn whole(&self, device: &DeviceAnalysis) -> Ns {
        if self.marked { self.interval.len() } else { device.span.len() }
    }
}

/// What the user wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// What can be fixed.
    Findings,
    /// A bubble.
    Bubble(BubbleRef),
}

/// Shows what the analysis of a document found; gives what the user wants to see of it.
pub fn overview_ui(ui: &mut Ui, doc: &Document, named: bool) -> Option<Wanted> {
    if named {
        ui.heading(&doc.name);
    }
    let palette = Palette::of(ui.visuals());
    let mut wanted = None;
    match doc.analysis() {
        Some(analysis) => {
            let mut remedy = None;
            let bubble = figures_ui(ui, doc, &Figures::of(analysis), |ui| {
                if analysis.window.len() < doc.trace.end {
                    ui.colored_label(palette.weak_text, MEASURED_PART);
                }
                remedy = remedy_ui(ui, doc, &palette);
            });
            wanted = remedy.or(bubble.map(Wanted::Bubble));
        }
        None => {
            ui.label("The analysis is not through yet.");
        }
    }
    wanted
}

/// The finding that gains most, as a link to all of them; without one, where most idle time comes from. Its place is there
/// from the start, so that nothing moves under the pointer when it comes.
fn remedy_ui(ui: &mut Ui, doc: &Document, palette: &Palette) -> Option<Wanted> {
    ui.horizontal_wrapped(|ui| {
        ui.strong("What to fix:");
        let Some(full) = doc.full() else {
            let why = if doc.replay_is_stopped() { "not worked out" } else { "being worked out" };
            ui.colored_label(palette.weak_text, why);
            return None;
        };
        let Some(finding) = full.findings.found.first() else {
            let why = full.findings.withheld.as_deref().unwrap_or(NOTHING_TO_FIX);
            ui.colored_label(palette.weak_text, format!("{why}."));
            return longest_cause_ui(ui, doc, palette).map(Wanted::Bubble);
        };
        let link = link_ui(ui, &finding.title).on_hover_text("Show what it rests on, and the remedy");
        let clicked = link.clicked().then_some(Wanted::Findings);
        let Some(replay) = &full.replay else { return clicked };
        let gain = format::duration(finding.recoverable.0);
        let least = if finding.id.gains_at_least() { "at least " } else { "" };
        let share = format::percent(finding.recoverable.0, replay.span.0);
        let beyond = beyond_idle(finding.recoverable, replay.idle, full.analysis.devices.len());
        ui.colored_label(palette.weak_text, format!("gains {least}{gain}, {share} of the span{beyond}"));
        clicked
    })
    .inner
}

/// The cause of most idle time, as a link to its longest bubble, which is given when it was clicked.
pub(super) fn longest_cause_ui(ui: &mut Ui, doc: &Document, palette: &Palette) -> Option<BubbleRef> {
    let devices = &doc.analysis()?.devices;
    let causes =
        devices.iter().flat_map(|device| device.idle_by_root.iter().map(move |(&cause, &idle)| (device, cause, idle)));
    let (device, cause, idle) =
        causes.max_by_key(|&(device, cause, idle)| (idle, std::cmp::Reverse((device.device, cause))))?;
    ui.colored_label(palette.weak_text, "Most idle time:");
    let link = link_ui(ui, cause.to_string()).on_hover_text(LONGEST);
    let of = match devices.as_slice() {
        [_] => "the span".to_owned(),
        _ => format!("the span of {}", gpu(doc, device)),
    };
    let share = format::percent(idle.0, device.span.len().0);
    ui.colored_label(palette.weak_text, format!("{}, {share} of {of}", format::duration(idle.0)));
    let ours = |bubble: &Bubble| bubble.device == device.device && bubble.root.cause == cause;
    let wanted = link.clicked().then(|| doc.longest_bubble(ours)).flatten();
    // Who goes to the longest bubble would else take its cause for this one.
    let longest = doc.longest_of_all().and_then(|at| Some((at, doc.bubble(at)?.1)));
    let Some((at, bubble)) = longest.filter(|(_, bubble)| bubble.root.cause != cause) else { return wanted };
    ui.colored_label(palette.weak_text, "· the longest bubble has another cause:");
    let link = link_ui(ui, bubble.root.cause.to_string()).on_hover_text("Show the longest bubble");
    ui.colored_label(palette.weak_text, format::duration(bubble.interval.len().0));
    link.clicked().then_some(at).or(wanted)
}

/// A device as people call it.
fn gpu(doc: &Document, device: &DeviceAnalysis) -> String {
    let id = doc.trace.devices.get(device.device.index()).map_or(0, |device| device.id);
    format!("GPU {id}")
}

/// Shows the figures of a document's analysis or of a marked interval; `then` shows what follows the first verdict. Gives
/// the longest bubble of the cause that was clicked.
pub(super) fn figures_ui(
    ui: &mut Ui,
    doc: &Document,
    figures: &Figures<'_>,
    then: impl FnOnce(&mut Ui),
) -> Option<BubbleRef> {
    let mut wanted = None;
    let mut then = Some(then);
    let palette = Palette::of(ui.visuals());
    if figures.devices.is_empty() {
        let why = if figures.quality.gpu_not_captured {
            "Launches were recorded, but no GPU activity: nothing can be said about idle time."
        } else {
            "No GPU activity here."
        };
        ui.label(why);
    }
    for device in figures.devices {
        let whole = figures.whole(device);
        ui.label(RichText::new(verdict(doc, device, whole)).size(15.0).strong());
        if let Some(then) = then.take() {
            then(ui);
        }
        partition_ui(ui, &device.partition, whole, &palette);
        ui.add_space(4.0);
        ui.horizontal_top(|ui| {
            let width = ((ui.available_width() - 40.0) / 3.0).clamp(240.0, 460.0);
            let idle = device.idle_ns();
            column_ui(ui, width, |ui| {
                ui.strong("Idle by root cause");
                let meaning = |cause| (describe::cause(cause), Some(LONGEST));
                let clicked =
                    breakdown_ui(ui, &device.idle_by_root, idle, |cause| palette.cause(cause), meaning, &palette);
                let is = |bubble: &Bubble, cause| {
                    let within =
                        bubble.interval.start < figures.interval.end && bubble.interval.end > figures.interval.start;
                    within && bubble.device == device.device && bubble.root.cause == cause
                };
                let longest = clicked.and_then(|cause| doc.longest_bubble(|bubble| is(bubble, cause)));
                wanted = longest.or(wanted);
            });
            column_ui(ui, width, |ui| {
                ui.strong("Idle by what was going on");
                let meaning = |kind| (describe::segment(kind), None);
                breakdown_ui(ui, &device.idle_by_segment, idle, |kind| palette.segment(kind), meaning, &palette);
            });
            column_ui(ui, width, |ui| {
                ui.strong("Idle by length of bubble");
                histogram_ui(ui, &device.histogram, idle, &palette);
                if figures.marked {
                    for text in cut_bubbles(doc, device) {
                        ui.label(RichText::new(text).size(11.0).color(palette.weak_text));
                    }
                }
            });
        });
        ui.add_space(8.0);
    }
    reliability_ui(ui, figures.quality, !figures.devices.is_empty(), &palette);
    wanted
}

/// The bubbles that reach beyond a marked interval, of which the figures have a part only.
fn cut_bubbles(doc: &Document, device: &DeviceAnalysis) -> Vec<String> {
    let (ops, mut found) = (&doc.trace.ops, Vec::new());
    let edges = [device.bubbles.first(), device.bubbles.get(1..).and_then(<[Bubble]>::last)];
    for bubble in edges.into_iter().flatten() {
        let (Some(start), Some(end)) = (ops.end.get(bubble.before.index()), ops.start.get(bubble.after.index())) else {
            continue;
        };
        let (inside, whole) = (bubble.interval.len(), Ns(end.0.saturating_sub(start.0)));
        if inside < whole {
            let (inside, whole) = (format::duration(inside.0), format::duration(whole.0));
            found.push(format!("Of a bubble of {whole}, which reaches beyond the interval, {inside} count."));
        }
    }
    found
}

/// What a click on a cause does.
const LONGEST: &str = "A click goes to the longest bubble of this cause; ] and [ go on from there.";

fn column_ui(ui: &mut Ui, width: f32, contents: impl FnOnce(&mut Ui)) {
    ui.vertical(|ui| {
        ui.set_width(width);
        contents(ui);
    });
    ui.add_space(8.0);
}

/// One sentence about a device, of `whole` time.
pub(super) fn verdict(doc: &Document, device: &DeviceAnalysis, whole: Ns) -> String {
    let gpu = gpu(doc, device);
    let (idle, outside, whole) = (device.idle_ns().0, outside(&device.partition, whole).0, whole.0);
    let share = format::percent(idle, whole);
    let outside = match outside {
        0 => String::new(),
        ns => format!("; {} lie {OUTSIDE}", format::duration(ns)),
    };
    if i128::from(idle) * 100 < i128::from(whole) * i128::from(NEGLIGIBLE_PERCENT) {
        // Who has no work is not busy.
        let does = if device.busy_ns() == Ns::ZERO { "has nothing to do" } else { "is busy" };
        return format!("{gpu} {does}: {share} idle of {}{outside}.", format::duration(whole));
    }
    let most = device.idle_by_root.iter().max_by_key(|(cause, ns)| (**ns, std::cmp::Reverse(**cause)));
    let most = most.map_or_else(String::new, |(cause, ns)| format!(", {} of it {cause}", format::percent(ns.0, idle)));
    format!("{gpu} stands idle for {share} of {}: {}{most}{outside}.", format::duration(whole), format::duration(idle))
}

/// Where time lies that is neither busy nor idle.
const OUTSIDE: &str = "before its first work or after its last";

/// The part of `whole` that is neither busy nor idle.
fn outside(partition: &Partition, whole: Ns) -> Ns {
    whole - partition.span()
}

/// How the time divides, as one bar with a legend.
fn partition_ui(ui: &mut Ui, partition: &Partition, whole: Ns, palette: &Palette) {
    let mut parts = vec![
        ("kernels only", partition.compute_only, Some(palette.kernels())),
        ("kernels and copies", partition.overlapped, Some(palette.overlapped())),
        ("copies only", partition.exposed_copy, Some(palette.copies())),
        // Nothing ran, and nothing is drawn, as on the timeline.
        ("idle", partition.idle, None),
    ];
    let outside = outside(partition, whole);
    if outside != Ns::ZERO {
        parts.push((OUTSIDE, outside, Some(palette.section)));
    }
    let span = whole.0.max(1);
    let (bar, _) = ui.allocate_exact_size(Vec2::new(ui.available_width().min(900.0), 16.0), Sense::hover());
    let mut left = bar.left();
    for &(_, part, color) in &parts {
        let right = left + (part.0 as f64 / span as f64 * f64::from(bar.width())) as f32;
        let fill = color.unwrap_or(palette.canvas);
        ui.painter().rect_filled(Rect::from_x_y_ranges(left..=right, bar.y_range()), 0.0, fill);
        left = right;
    }
    ui.painter().rect_stroke(bar, 0.0, Stroke::new(1.0, palette.weak_text), StrokeKind::Inside);
    ui.horizontal(|ui| {
        for (name, part, color) in parts {
            match color {
                Some(color) => swatch(ui, color),
                None => swatch_of(ui, |painter, square| {
                    painter.rect(square, 2.0, palette.canvas, Stroke::new(1.0, palette.weak_text), StrokeKind::Inside);
                }),
            }
            ui.label(name);
            let figures = format!("{} · {}", format::duration(part.0), format::percent(part.0, span));
            ui.colored_label(palette.weak_text, figures);
            ui.add_space(10.0);
        }
    });
}

/// Parts of the idle time, the greatest first, each with a bar. Says what each means and, if it can be clicked, what that
/// does; gives the one that was clicked.
fn breakdown_ui<K: Copy + Ord + Display>(
    ui: &mut Ui,
    parts: &BTreeMap<K, Ns>,
    idle: Ns,
    color: impl Fn(K) -> Color32,
    meaning: impl Fn(K) -> (&'static str, Option<&'static str>),
    palette: &Palette,
) -> Option<K> {
    let mut parts: Vec<(K, Ns)> = parts.iter().map(|(&kind, &ns)| (kind, ns)).collect();
    parts.sort_by_key(|&(kind, ns)| (std::cmp::Reverse(ns), kind));
    let mut clicked = None;
    for (kind, ns) in parts {
        let (meaning, click) = meaning(kind);
        let hint = click.unwrap_or(meaning);
        let bar = Bar { name: &kind.to_string(), part: ns, whole: idle, color: color(kind), hint };
        if bar.show(ui, click.is_some(), palette).clicked() {
            clicked = Some(kind);
        }
        ui.label(RichText::new(meaning).size(11.0).color(palette.weak_text));
    }
    clicked
}

fn histogram_ui(ui: &mut Ui, buckets: &[HistogramBucket], idle: Ns, palette: &Palette) {
    for bucket in buckets.iter().filter(|bucket| bucket.count > 0) {
        let name = format!("{} · {} ×", lengths(bucket), format::count(bucket.count));
        let hint = format!("{} of such a length", format::things(bucket.count, "bubble", "bubbles"));
        let bar = Bar { name: &name, part: bucket.total, whole: idle, color: palette.weak_text, hint: &hint };
        bar.show(ui, false, palette);
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
    format::duration(ns).replace(".00 ", " ").replace(".0 ", " ")
}

/// A line with a name and figures, and below it a bar as long as the share.
struct Bar<'a> {
    name: &'a str,
    part: Ns,
    whole: Ns,
    color: Color32,
    hint: &'a str,
}

impl Bar<'_> {
    fn show(self, ui: &mut Ui, clickable: bool, palette: &Palette) -> Response {
        let sense = if clickable { Sense::click() } else { Sense::hover() };
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 20.0), sense);
        let hovered = clickable && (response.hovered() || response.has_focus());
        if hovered {
            ui.painter().rect_filled(rect.expand2(Vec2::new(3.0, 1.0)), 2.0, palette.section);
        }
        let share = if self.whole.0 > 0 { self.part.0 as f64 / self.whole.0 as f64 } else { 0.0 };
        let track = Rect::from_min_max(Pos2::new(rect.left(), rect.bottom() - 5.0), rect.max - Vec2::new(0.0, 1.0));
        let mut bar = track;
        bar.max.x = track.left() + ((f64::from(track.width()) * share) as f32).max(2.0);
        ui.painter().rect_filled(track, 2.0, if palette.dark { palette.section } else { palette.grid });
        ui.painter().rect_filled(bar, 2.0, self.color);
        let font = egui::FontId::proportional(12.0);
        let y = rect.top() + 7.0;
        let color = if clickable { palette.link } else { palette.text };
        ui.painter().text(Pos2::new(rect.left(), y), egui::Align2::LEFT_CENTER, self.name, font.clone(), color);
        let figures = format!("{} · {}", format::duration(self.part.0), format::percent(self.part.0, self.whole.0));
        let right = Pos2::new(rect.right(), y);
        ui.painter().text(right, egui::Align2::RIGHT_CENTER, &figures, font, palette.weak_text);
        let role = if clickable { egui::Role::Button } else { egui::Role::Label };
        response.widget_info(|| egui::WidgetInfo::labeled(role, true, format!("{}: {figures}", self.name)));
        let response = response.on_hover_text(self.hint);
        if clickable { response.on_hover_cursor(egui::CursorIcon::PointingHand) } else { response }
    }
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
        for (unit, size) in [("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)] {
            for number in [1, 2, 5, 10, 20, 50, 100, 200, 500] {
                assert_eq!(named(number * size, None), format!("{number} {unit} and more"));
            }
        }
    }
}
