//! The part of the bar that says what is open, what is being opened, and what was done.

use std::collections::BTreeSet;

use eframe::egui::{self, Label, Response, RichText, Sense, TextStyle, TextWrapMode, Ui, WidgetText};

use super::App;
use super::files::stem;
use crate::command::Command;
use crate::format;
use crate::load::{Loading, Stage};
use crate::panels;
use crate::theme::Palette;

/// Seconds for which the bar says what was saved.
const SAVED_SHOWN: f64 = 8.0;
/// The least width of a name that is cut.
const LEAST_NAME: f32 = 64.0;
/// Share of what room is left that something else than the names takes at most, where several traces are open.
const SHARE: f32 = 0.35;
/// The room from which on the bar says how bubbles are filtered, where several traces are open: their names go first.
const FILTER_FROM: f32 = 260.0;
/// The room from which on the bar says where traces are laid over each other.
const PLACE_FROM: f32 = 400.0;

impl App {
    /// What is open, and what is being opened.
    pub(super) fn traces_ui(&mut self, ctx: &egui::Context, ui: &mut Ui, palette: &Palette) {
        self.recording_ui(ctx, ui);
        self.loading_ui(ctx, ui);
        if self.docs.len() < 2 || ui.available_width() > FILTER_FROM {
            self.filter_told_ui(ctx, ui, palette);
        }
        let saved = self.saved.as_ref().filter(|(_, at)| self.now - at < SAVED_SHOWN);
        if saved.is_some() {
            ctx.request_repaint_after(std::time::Duration::from_secs(1));
        }
        let saved = saved.map(|(saved, _)| saved.as_str());
        match self.docs.as_slice() {
            [] => {
                saved.map(|saved| short_ui(ui, saved, f32::INFINITY));
            }
            [doc] => {
                let most = ui.available_width() * 0.5;
                short_ui(ui, doc.name.as_str(), most);
                let closed = close_ui(ui, &doc.name, true);
                ui.add(Label::new(RichText::new(panels::summary(doc)).color(palette.weak_text)).truncate());
                // Behind the figures, which stay where they are.
                saved.map(|saved| short_ui(ui, saved, f32::INFINITY));
                if closed {
                    self.close(0);
                }
            }
            _ => {
                if let Some(saved) = saved {
                    let most = ui.available_width() * SHARE;
                    short_ui(ui, saved, most);
                    ui.separator();
                } else if ui.available_width() > PLACE_FROM
                    && let Some(place) = self.panels.compare.place()
                {
                    ui.label(RichText::new(place).color(palette.weak_text)).on_hover_text("The Compare tab changes it");
                    ui.separator();
                }
                self.names_ui(ui, palette);
            }
        }
    }

    /// That something is being recorded, also while the window that records is closed.
    fn recording_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        if !self.recorder.is_running() {
            return;
        }
        ui.spinner();
        let told = self.recorder.status().unwrap_or_default();
        if ui.button("Recording…").on_hover_text(format!("{told}\nA click shows it")).clicked() {
            self.recorder.open = true;
        }
        ui.separator();
        // The spinner turns.
        ctx.request_repaint_after(std::time::Duration::from_millis(200));
    }

    /// What is being opened: the first, and a list of the others.
    fn loading_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        let most = if self.docs.is_empty() { f32::INFINITY } else { ui.available_width() * SHARE };
        let mut cancelled = None;
        if let Some((first, others)) = self.loading.split_first() {
            if one_loading_ui(ui, first, most) {
                cancelled = Some(0);
            }
            if !others.is_empty() {
                ui.menu_button(format!("and {} more", others.len()), |ui| {
                    for (at, loading) in others.iter().enumerate() {
                        ui.horizontal(|ui| {
                            if one_loading_ui(ui, loading, f32::INFINITY) {
                                cancelled = Some(at + 1);
                            }
                        });
                    }
                });
            }
            // The percentage and the seconds go on though nothing else happens.
            ctx.request_repaint_after(std::time::Duration::from_millis(200));
        }
        if let Some(at) = cancelled {
            self.cancel(at);
        }
    }

    /// The names of several traces, each with a button that closes it. Those that have no room stand in a list.
    fn names_ui(&mut self, ui: &mut Ui, palette: &Palette) {
        let spacing = ui.spacing().item_spacing.x;
        let button = 2.0 * ui.spacing().button_padding.x + spacing;
        let beside = spacing + button + width(ui, "×");
        let room = ui.available_width();
        let more = button + width(ui, &format!("{} more…", self.docs.len()));
        let whole: Vec<&str> = self.docs.iter().map(|doc| doc.name.as_str()).collect();
        let sizes = |ui: &Ui, names: &[&str]| -> Vec<f32> { names.iter().map(|name| width(ui, name)).collect() };
        let mut natural = sizes(ui, &whole);
        let mut names = whole.clone();
        let stems: Vec<&str> = whole.iter().map(|name| stem(name)).collect();
        let are_distinct = stems.iter().collect::<BTreeSet<_>>().len() == stems.len();
        if natural.iter().map(|name| name + beside).sum::<f32>() > room && are_distinct {
            natural = sizes(ui, &stems);
            names = stems;
        }
        let widths = fitted(&natural, room, beside, more);
        let meant = self.meant();
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
        for (at, width) in widths.iter().enumerate() {
            // A pixel more, so that rounding cuts nothing.
            name_ui(ui, at, names[at], Some(width + 1.0));
        }
        if widths.len() < whole.len() {
            ui.menu_button(format!("{} more…", whole.len() - widths.len()), |ui| {
                egui::ScrollArea::vertical().show(ui, |ui| {
                    egui::Grid::new("more traces").num_columns(2).show(ui, |ui| {
                        for (at, name) in whole.iter().enumerate().skip(widths.len()) {
                            name_ui(ui, at, name, None);
                            ui.end_row();
                        }
                    });
                });
            });
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
        let most = ui.available_width() * if self.docs.len() > 1 { SHARE } else { 0.6 };
        short_ui(ui, RichText::new(told).color(palette.link), most);
        ui.separator();
    }
}

/// One trace that is being opened; tells whether that is to end.
fn one_loading_ui(ui: &mut Ui, loading: &Loading, most: f32) -> bool {
    ui.spinner();
    let (doing, number) = (loading.stage.doing(), loading.stage.number());
    let name = loading.path.file_name().unwrap_or(loading.path.as_os_str()).to_string_lossy();
    let seconds = loading.elapsed().as_secs();
    let elapsed = if seconds > 0 { format!(" · {seconds} s") } else { String::new() };
    let percent = loading.percent().map_or_else(String::new, |percent| format!(" · {percent} %"));
    let (label, hint) = match loading.stage {
        Stage::Reading | Stage::Analysing => ("Cancel", "Leaves the window as it was"),
        Stage::Replaying => ("Stop", "Keeps the trace without findings"),
    };
    let ended = ui.small_button(label).on_hover_text(hint).clicked();
    // Behind the button, which would else move away from under the pointer.
    short_ui(ui, format!("{doing} {name}{percent} · {number} of {}{elapsed}", Stage::COUNT), most);
    ended
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
