//! What is known about the selection.

use eframe::egui::{self, Align, Layout, RichText, Ui};

use super::link_ui;
use crate::describe;
use crate::document::{BubbleRef, Document, Item, Pick};
use crate::format;
use crate::theme::Palette;
use crate::timeline::{Action, Timeline};

/// A trace in one line.
pub fn summary(doc: &Document) -> String {
    let Some(analysis) = doc.analysis() else {
        return format::things(doc.trace.event_count() as u64, "event", "events");
    };
    let parts = analysis.devices.iter().map(|device| {
        let idle = format::percent(device.idle_ns().0, device.span.len().0);
        let id = doc.trace.devices.get(device.device.index()).map_or(0, |device| device.id);
        let bubbles = format::things(device.bubbles.len() as u64, "bubble", "bubbles");
        format!("GPU {id}: {idle} idle in {bubbles}")
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "no GPU activity".to_owned() } else { parts.join(" · ") }
}

/// Room for the name of a fact, and between it and its value.
const NAMES_WIDTH: f32 = 100.0;
const SPACING: f32 = 12.0;

/// Above the heading of some facts.
const GROUP_GAP: f32 = 6.0;

/// What is known about the selection. Gives whether the user wants to see the findings it belongs to.
pub fn details_ui(ui: &mut Ui, docs: &[Document], timeline: &Timeline, actions: &mut Vec<Action>) -> bool {
    let palette = Palette::of(ui.visuals());
    let Some(pick) = timeline.selected else {
        ui.add_space(8.0);
        ui.colored_label(palette.weak_text, "Select something on the timeline. ] and [ go from bubble to bubble.");
        return false;
    };
    let Some(doc) = docs.get(pick.doc) else { return false };
    let Some(found) = describe::describe(doc, pick.item) else { return false };
    let mut findings = false;
    ui.add_space(4.0);
    ui.colored_label(palette.weak_text, &found.kind);
    ui.heading(&found.title);
    if ui.button("Zoom to it").clicked() {
        actions.push(Action::ZoomTo(pick));
    }
    ui.add_space(4.0);
    // Values wrap beside the names: whatever is selected, the panel stays as wide as it is.
    let values = (ui.available_width() - NAMES_WIDTH - SPACING).max(100.0);
    egui::Grid::new("selection").num_columns(2).spacing([SPACING, 4.0]).max_col_width(values).show(ui, |ui| {
        // A grid would let links run out of the panel.
        ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Wrap);
        for (at, (name, value)) in found.facts.iter().enumerate() {
            // At the top of the row, so that a name stands beside the first line of its value.
            let top = Layout::top_down(Align::Min);
            if *name == describe::DEPENDENCY {
                // The heading of the facts below it, which it parts from those above.
                for words in [*name, value] {
                    ui.with_layout(top, |ui| {
                        ui.add_space(GROUP_GAP);
                        ui.strong(words);
                    });
                }
                ui.end_row();
                continue;
            }
            ui.with_layout(top, |ui| ui.colored_label(palette.weak_text, *name));
            let link = found.links.iter().find(|(of, _)| *of == at);
            ui.with_layout(top, |ui| match link {
                Some(&(_, item)) => {
                    if link_ui(ui, value).on_hover_text("Select it and show it").clicked() {
                        actions.push(Action::Show(Pick { doc: pick.doc, item }));
                    }
                }
                None if *name == describe::FINDING => {
                    let link = link_ui(ui, value).on_hover_text("Show what it rests on, and the remedy");
                    findings |= link.clicked();
                }
                None => {
                    ui.label(value);
                }
            });
            ui.end_row();
        }
    });
    if let Item::Bubble(at) = pick.item {
        let clicked = segments_ui(ui, doc, at, &palette);
        actions.extend(clicked.map(|item| Action::Show(Pick { doc: pick.doc, item })));
    }
    findings
}

/// Where the nanoseconds of a bubble went. Gives the call or range that was clicked.
fn segments_ui(ui: &mut Ui, doc: &Document, at: BubbleRef, palette: &Palette) -> Option<Item> {
    let (device, bubble) = doc.bubble(at)?;
    let mut clicked = None;
    ui.add_space(8.0);
    ui.strong("Where the time went");
    for segment in device.segments_of(bubble) {
        ui.horizontal_wrapped(|ui| {
            super::swatch(ui, palette.segment(segment.kind));
            let share = format::percent(segment.interval.len().0, bubble.interval.len().0);
            let figures = format!("{share} · {}", format::duration(segment.interval.len().0));
            // A number and its unit stay on one line.
            let figures = figures.replace(' ', "\u{a0}").replace("\u{a0}·\u{a0}", " · ");
            ui.label(format!("{} · {figures}", segment.kind));
        });
        ui.indent(segment.interval.start.0, |ui| {
            let item = segment.call().map(Item::Call).or(segment.range().map(Item::Range));
            if let Some((name, item)) = describe::behind(doc, segment).zip(item)
                && link_ui(ui, name).on_hover_text("Select it and show it").clicked()
            {
                clicked = Some(item);
            }
            ui.add(egui::Label::new(RichText::new(describe::segment(segment.kind)).color(palette.weak_text)).wrap());
        });
    }
    clicked
}
