//! The part of the bar that says what is open, what is being opened, and what was done.

use std::collections::BTreeSet;

use bubblescope::open::stem;
use eframe::egui::{
    self, Align, Label, Layout, Response, RichText, Sense, TextStyle, TextWrapMode, Ui, UiBuilder, WidgetText,
};

use super::App;
use crate::command::Command;
use crate::format;
use crate::load::{Loading, Stage};
use crate::panels;
use crate::theme::Palette;

/// Seconds for which the bar says what was saved.
const SAVED_SHOWN: f64 = 8.0;
/// The least width of a name that is cut.
const LEAST_NAME: f32 = 64.0;
/// What a name has beyond its width, so that rounding cuts nothing.
const ROUNDING: f32 = 1.0;
/// Share of the room that the name of the only trace takes at most.
const NAME_SHARE: f32 = 0.4;
/// Share of the room, and width, that the names of several traces leave to what is told beside them, also while nothing
/// is: so they stay where they are when something is.
const ASIDE_SHARE: f32 = 0.35;
const MOST_ASIDE: f32 = 260.0;
/// Share of what room is left that one thing which is told takes at most, so that there is some for others.
const SHARE: f32 = 0.6;
/// The room that the button takes which ends the filter of bubbles.
const FILTER_FROM: f32 = 80.0;
/// The least room for words.
const LEAST_WORDS: f32 = 60.0;

/// How the names of the opened traces stand in the bar.
struct Names {
    /// What stands for each.
    shown: Vec<String>,
    /// How wide the first of them are. The others stand in a list.
    widths: Vec<f32>,
    /// The width of all that.
    width: f32,
}

impl App {
    /// What is open, and at the other end what is being done, which comes and goes without moving a name. To be called in a
    /// layout from right to left.
    pub(super) fn traces_ui(&mut self, ctx: &egui::Context, ui: &mut Ui, palette: &Palette) {
        let area = ui.available_rect_before_wrap();
        let names = self.names(ui, area.width());
        let told = area.with_min_x((area.left() + names.width).min(area.right()));
        let layout = Layout::right_to_left(Align::Center);
        let mut told = ui.new_child(UiBuilder::new().id_salt("told").max_rect(told).layout(layout));
        // What has no room there is not shown, rather than over the names.
        told.shrink_clip_rect(told.max_rect());
        let cancelled = self.told_ui(ctx, &mut told, palette);
        let names_area = area.with_max_x(told.min_rect().left());
        let layout = Layout::left_to_right(Align::Center);
        let mut ui = ui.new_child(UiBuilder::new().id_salt("names").max_rect(names_area).layout(layout));
        ui.shrink_clip_rect(names_area);
        self.names_ui(&mut ui, palette, &names);
        if let Some(at) = cancelled.and_then(|order| self.loading.iter().position(|loading| loading.order == order)) {
            self.cancel(at);
        }
    }

    /// What is being done, and what was done. Each thing comes to stand left of those before, and its button right of its
    /// words, which change. Gives the order of the trace that shall no longer be opened.
    fn told_ui(&mut self, ctx: &egui::Context, ui: &mut Ui, palette: &Palette) -> Option<u64> {
        self.recording_ui(ctx, ui);
        let cancelled = self.loading_ui(ctx, ui);
        if ui.available_width() > FILTER_FROM {
            self.filter_told_ui(ctx, ui, palette);
        }
        let saved = self.saved.as_ref().filter(|(_, at)| self.now - at < SAVED_SHOWN);
        if let Some((saved, _)) = saved {
            ctx.request_repaint_after(std::time::Duration::from_secs(1));
            // The figures of the only trace stay in sight.
            let share = if self.docs.len() == 1 { SHARE } else { 1.0 };
            short_ui(ui, saved, ui.available_width() * share);
        } else if self.docs.len() > 1
            && let Some(place) = self.panels.compare.place()
            && width(ui, &place) < ui.available_width()
        {
            ui.label(RichText::new(place).color(palette.weak_text)).on_hover_text("The Compare tab changes it");
        }
        cancelled
    }

    /// That something is being recorded, also while the window that records is closed.
    fn recording_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        if !self.recorder.is_running() {
            return;
        }
        let told = self.recorder.status().unwrap_or_default();
        if ui.button("Recording…").on_hover_text(format!("{told}\nA click shows it")).clicked() {
            self.recorder.open = true;
        }
        ui.spinner();
        ui.separator();
        // The spinner turns.
        ctx.request_repaint_after(std::time::Duration::from_millis(200));
    }

    /// What is being opened: the first, and a list of the others. Gives the order of that which shall be no longer.
    fn loading_ui(&self, ctx: &egui::Context, ui: &mut Ui) -> Option<u64> {
        let (first, others) = self.loading.split_first()?;
        let mut cancelled = cancel_ui(ui, first).then_some(first.order);
        if !others.is_empty() {
            ui.menu_button(format!("and {} more", others.len()), |ui| {
                for loading in others {
                    ui.horizontal(|ui| {
                        if cancel_ui(ui, loading) {
                            cancelled = Some(loading.order);
                        }
                        loading_told_ui(ui, loading, f32::INFINITY);
                    });
                }
            });
        }
        let share = if self.docs.is_empty() { 1.0 } else { SHARE };
        loading_told_ui(ui, first, ui.available_width() * share);
        ui.separator();
        // The percentage and the seconds go on though nothing else happens.
        ctx.request_repaint_after(std::time::Duration::from_millis(200));
        cancelled
    }

    /// How the names stand in this room, whatever else is told there.
    fn names(&self, ui: &Ui, room: f32) -> Names {
        let spacing = ui.spacing().item_spacing.x;
        let button = 2.0 * ui.spacing().button_padding.x + spacing;
        let beside = spacing + button + width(ui, "×");
        let more = button + width(ui, &format!("{} more…", self.docs.len()));
        let sizes = |names: &[&str]| -> Vec<f32> { names.iter().map(|name| width(ui, name)).collect() };
        let whole: Vec<&str> = self.docs.iter().map(|doc| doc.name.as_str()).collect();
        let mut natural = sizes(&whole);
        let (shown, widths) = if let [natural] = natural[..] {
            (whole, vec![natural.min((room * NAME_SHARE - beside).max(LEAST_NAME))])
        } else {
            let room = room - (room * ASIDE_SHARE).min(MOST_ASIDE);
            let mut shown = whole;
            let stems: Vec<&str> = shown.iter().map(|name| stem(name)).collect();
            let are_distinct = stems.iter().collect::<BTreeSet<_>>().len() == stems.len();
            if natural.iter().map(|name| name + beside).sum::<f32>() > room && are_distinct {
                natural = sizes(&stems);
                shown = stems;
            }
            let widths = fitted(&natural, room, beside, more);
            (shown, widths)
        };
        let list = if widths.len() < shown.len() { more } else { 0.0 };
        let width = widths.iter().map(|name| name + ROUNDING + beside).sum::<f32>() + list;
        Names { shown: shown.into_iter().map(str::to_owned).collect(), widths, width }
    }

    /// The names of the traces, each with a button that closes it, and of the only one its figures.
    fn names_ui(&mut self, ui: &mut Ui, palette: &Palette, names: &Names) {
        let meant = self.meant();
        let alone = self.docs.len() == 1;
        let (mut closed, mut gone_to) = (None, None);
        let mut name_ui = |ui: &mut Ui, at: usize, name: &str, most: Option<f32>| {
            let doc = &self.docs[at];
            let color = if at == meant { palette.text } else { palette.weak_text };
            let name = RichText::new(name).color(color);
            let label = match most {
                Some(most) => short_ui(ui, name, most),
                None => ui.add(Label::new(name).extend().selectable(false).sense(Sense::click())),
            };
            let closes = if at == meant { format!("\n{} closes it", close_key()) } else { String::new() };
            let label = label.on_hover_text(format!("{}\n{}{closes}", doc.path.display(), panels::summary(doc)));
            if label.clicked() {
                gone_to = Some(at);
            }
            if close_ui(ui, &doc.name, at == meant) {
                closed = Some(at);
            }
        };
        for (at, width) in names.widths.iter().enumerate() {
            name_ui(ui, at, &names.shown[at], Some(width + ROUNDING));
        }
        let rest = self.docs.iter().enumerate().skip(names.widths.len());
        if rest.len() > 0 {
            ui.menu_button(format!("{} more…", rest.len()), |ui| {
                egui::ScrollArea::vertical().show(ui, |ui| {
                    egui::Grid::new("more traces").num_columns(2).show(ui, |ui| {
                        for (at, doc) in rest {
                            name_ui(ui, at, &doc.name, None);
                            ui.end_row();
                        }
                    });
                });
            });
        }
        if alone {
            let figures = panels::summary(&self.docs[0]);
            ui.add(Label::new(RichText::new(figures).color(palette.weak_text)).truncate());
        }
        if let Some(at) = gone_to {
            self.timeline.go_to_trace(at);
        }
        if let Some(at) = closed {
            self.close(at);
        }
    }

    /// Tells which bubbles are gone through while the table of bubbles is filtered.
    fn filter_told_ui(&mut self, ctx: &egui::Context, ui: &mut Ui, palette: &Palette) {
        let Some((rows, ready)) = self.filtered_bubbles(ctx) else { return };
        let hint = "The table of bubbles is filtered. Go through all of them again";
        if ui.small_button("All bubbles").on_hover_text(hint).clicked() {
            self.panels.bubbles.filter.clear();
        }
        let count = if ready { format::things(rows.len() as u64, "bubble", "bubbles") } else { "bubbles".to_owned() };
        let told = format!("] and [ go through {count} with “{}”", self.panels.bubbles.filter.trim());
        if ui.available_width() > LEAST_WORDS {
            short_ui(ui, RichText::new(told).color(palette.link), ui.available_width() * SHARE);
        }
        ui.separator();
    }
}

/// A button that ends opening a trace; tells whether it was clicked.
fn cancel_ui(ui: &mut Ui, loading: &Loading) -> bool {
    let (label, hint) = match loading.stage {
        Stage::Reading | Stage::Analysing => ("Cancel", "Leaves the window as it was"),
        Stage::Replaying => ("Stop", "Keeps the trace without findings"),
    };
    ui.small_button(label).on_hover_text(format!("{}: {hint}", name_of(loading))).clicked()
}

/// How far a trace that is being opened has come.
fn loading_told_ui(ui: &mut Ui, loading: &Loading, most: f32) {
    ui.spinner();
    let (doing, number) = (loading.stage.doing(), loading.stage.number());
    let seconds = loading.elapsed().as_secs();
    let elapsed = if seconds > 0 { format!(" · {seconds} s") } else { String::new() };
    let percent = loading.percent().map_or_else(String::new, |percent| format!(" · {percent} %"));
    short_ui(ui, format!("{doing} {}{percent} · {number} of {}{elapsed}", name_of(loading), Stage::COUNT), most);
}

fn name_of(loading: &Loading) -> std::borrow::Cow<'_, str> {
    loading.path.file_name().unwrap_or(loading.path.as_os_str()).to_string_lossy()
}

/// The key that closes a trace, as people write it.
fn close_key() -> String {
    Command::Close.entry().keys.first().map(crate::command::Shortcut::text).unwrap_or_default()
}

/// The button beside a trace's name; tells whether it was clicked.
fn close_ui(ui: &mut Ui, name: &str, by_key: bool) -> bool {
    let label = format!("Close {name}");
    let hint = if by_key { format!("{label} ({})", close_key()) } else { label.clone() };
    let button = ui.small_button("×").on_hover_text(hint);
    button.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &label));
    button.clicked()
}

/// Text that takes at most this width and can be clicked. What is cut can be read under the pointer.
fn short_ui(ui: &mut Ui, text: impl Into<WidgetText>, most: f32) -> Response {
    ui.scope(|ui| {
        ui.set_max_width(most.min(ui.available_width()));
        ui.add(Label::new(text).truncate().selectable(false).sense(Sense::click()))
    })
    .inner
}

/// The width of a text on one line.
fn width(ui: &Ui, text: &str) -> f32 {
    WidgetText::from(text).into_galley(ui, Some(TextWrapMode::Extend), f32::INFINITY, TextStyle::Body).size().x
}

/// How wide each of the first names is shown: whole while there is room, else the longest are cut. `beside` stands beside
/// each, and `more` behind them unless all have their place.
fn fitted(natural: &[f32], room: f32, beside: f32, more: f32) -> Vec<f32> {
    let shown = |count: usize| {
        let names = &natural[..count];
        let mut left = room - beside * count as f32 - if count < natural.len() { more } else { 0.0 };
        let mut widths = names.to_vec();
        let mut shortest_first: Vec<usize> = (0..count).collect();
        shortest_first.sort_by(|a, b| names[*a].total_cmp(&names[*b]));
        for (rank, at) in shortest_first.into_iter().enumerate() {
            widths[at] = names[at].min(left / (count - rank) as f32);
            left -= widths[at];
        }
        let can_be_read = widths.iter().zip(names).all(|(width, whole)| *width >= whole.min(LEAST_NAME));
        can_be_read.then_some(widths)
    };
    (0..=natural.len()).rev().find_map(shown).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_place_or_are_counted_whatever_the_room() {
        let (beside, more) = (30.0, 70.0);
        for count in 1..20_usize {
            let natural: Vec<f32> = (0..count).map(|at| 20.0 + (at * 37 % 11) as f32 * 25.0).collect();
            let whole = natural.iter().map(|name| name + beside).sum::<f32>();
            let mut before = 0;
            for room in (0..4_000_u16).step_by(50).map(f32::from) {
                let widths = fitted(&natural, room, beside, more);
                let all = widths.len() == count;
                let taken = widths.iter().map(|width| width + beside).sum::<f32>() + if all { 0.0 } else { more };
                assert!(widths.is_empty() || taken <= room + 0.01, "{natural:?} in {room}: {widths:?}");
                assert!(widths.iter().zip(&natural).all(|(width, whole)| *width >= whole.min(LEAST_NAME)));
                assert!(widths.len() >= before, "more room for fewer");
                assert_eq!(widths == natural, room >= whole, "{natural:?} in {room}: {widths:?}");
                before = widths.len();
            }
            assert_eq!(before, count);
        }
    }
}
