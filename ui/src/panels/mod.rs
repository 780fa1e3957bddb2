//! Panels beside and below the timeline.

mod bubbles;
mod compare;
mod details;
mod findings;
mod launches;
mod measure;
mod overview;
mod quality;
mod record;
mod search;
mod sync_calls;

pub use bubbles::BubbleRow;
pub use compare::{Align, Comparison, comparison_csv};
pub use details::{details_ui, summary};
pub use findings::{FindingRow, FindingsPanel};
pub use launches::LaunchRow;
pub use measure::Measured;
pub use overview::{Wanted, overview_ui};
pub use record::Recorder;
pub use search::{Hit, Search};
pub use sync_calls::SyncRow;

use bubblescope::trace::CallIdx;
use eframe::egui::{self, Color32, Sense, Ui, Vec2};

use crate::command::Command;
use crate::document::{BubbleRef, Document, Item, Pick};
use crate::table::{Cell, Source, Table};
use crate::timeline::{Action, Timeline};

/// What the panel below the timeline shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// Where the time went.
    #[default]
    Overview,
    /// What can be fixed.
    Findings,
    /// Every bubble.
    Bubbles,
    /// Calls that wait for the device.
    SyncCalls,
    /// Calls that submit device work.
    Launches,
    /// What the numbers are worth.
    Quality,
    /// What a measured interval holds.
    Measure,
    /// Names that were searched for.
    Search,
    /// The opened traces side by side.
    Compare,
}

impl Tab {
    /// All tabs with their names.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Overview, "Overview"),
        (Self::Findings, "Findings"),
        (Self::Bubbles, "Bubbles"),
        (Self::SyncCalls, "Sync calls"),
        (Self::Launches, "Launches"),
        (Self::Quality, "Quality"),
        (Self::Measure, "Measure"),
        (Self::Search, "Search"),
        (Self::Compare, "Compare"),
    ];
}

/// The panel below the timeline.
#[derive(Debug, Default)]
pub struct Panels {
    /// What it shows.
    pub tab: Tab,
    /// What it showed in the last frame.
    shown: Option<Tab>,
    /// The height in which the overview needs not be scrolled, with all around it, once it was shown.
    pub overview_height: Option<f32>,
    /// What can be fixed.
    pub findings: FindingsPanel,
    /// The table of bubbles.
    pub bubbles: Table<BubbleRow>,
    /// The table of blocking calls.
    pub sync_calls: Table<SyncRow>,
    /// The table of launches.
    pub launches: Table<LaunchRow>,
    /// The measured interval.
    pub measured: Measured,
    /// The search.
    pub search: Search,
    /// The comparison of the opened traces.
    pub compare: Comparison,
}

/// What the user did in a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chosen {
    /// Something that the timeline can do.
    Action(Action),
    /// A bubble to look at.
    Bubble(Pick),
    /// Something to look at together with the bubble that it caused.
    Place(Pick),
    /// Lay the traces over each other as the comparison says.
    Align,
    /// Something that a menu can do, too.
    Command(Command),
}

/// Numbers that change when what the panels show does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Changes whenever the opened traces do.
    pub traces: u64,
    /// Changes also whenever more is known of them.
    pub known: u64,
}

impl Panels {
    /// Shows the overview, and filters no table.
    pub fn start_afresh(&mut self) {
        self.tab = Tab::Overview;
        self.bubbles.filter.clear();
        self.sync_calls.filter.clear();
        self.launches.filter.clear();
        self.findings.start_afresh();
    }

    /// The tabs. When a key goes to another one, the keyboard's focus goes with it.
    fn tabs_ui(&mut self, ui: &mut Ui) {
        let gone_to = self.shown.filter(|shown| *shown != self.tab).map(|_| self.tab);
        ui.horizontal(|ui| {
            let tabs = Tab::ALL.map(|(tab, name)| (tab, ui.selectable_value(&mut self.tab, tab, name)));
            let focused = tabs.iter().any(|(_, response)| response.has_focus());
            if let Some((_, response)) = tabs.iter().find(|(tab, _)| Some(*tab) == gone_to && focused) {
                response.request_focus();
            }
        });
        self.shown = Some(self.tab);
    }

    /// Shows the panel.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document], timeline: &Timeline, versions: Versions) -> Vec<Chosen> {
        let version = versions.known;
        let mut chosen = Vec::new();
        self.tabs_ui(ui);
        ui.separator();
        match self.tab {
            Tab::Overview => {
                let area = egui::ScrollArea::vertical().id_salt("overview").auto_shrink(false);
                let top = ui.cursor().top() - ui.max_rect().top();
                let shown = area.show(ui, |ui| {
                    for (at, doc) in docs.iter().enumerate() {
                        match overview_ui(ui, doc, docs.len() > 1) {
                            Some(Wanted::Findings) => self.tab = Tab::Findings,
                            Some(Wanted::Bubble(bubble)) => chosen.push(bubble_of(at, bubble)),
                            None => {}
                        }
                    }
                });
                let margin = egui::Frame::side_top_panel(ui.style()).total_margin().sum().y;
                self.overview_height = Some(top + shown.content_size.y + margin);
            }
            Tab::Findings => chosen.extend(self.findings.show(ui, docs, version)),
            Tab::Bubbles => {
                let selected = timeline.selected.and_then(|pick| match pick.item {
                    Item::Bubble(at) => Some(BubbleRow { doc: pick.doc, at }),
                    _ => None,
                });
                let row = self.bubbles.show(ui, docs, selected, &BubbleRow::source(docs, version));
                chosen.extend(row.map(|row| bubble_of(row.doc, row.at)));
            }
            Tab::SyncCalls => {
                let source = Source { version, len: SyncRow::all(docs).len(), all: SyncRow::all };
                let row = self.sync_calls.show(ui, docs, None, &source);
                chosen.extend(row.and_then(|row| Some(call(row.doc, row.longest(docs)?))));
            }
            Tab::Launches => {
                let source = Source { version, len: LaunchRow::all(docs).len(), all: LaunchRow::all };
                let row = self.launches.show(ui, docs, None, &source);
                chosen.extend(row.and_then(|row| Some(call(row.doc, row.found(docs)?.longest))));
            }
            Tab::Quality => quality::quality_ui(ui, docs),
            Tab::Measure => {
                let wanted = self.measured.show(ui, docs, timeline.measured, versions.traces);
                chosen.extend(wanted.map(|(doc, bubble)| bubble_of(doc, bubble)));
            }
            Tab::Compare => chosen.extend(self.compare.show(ui, docs)),
            Tab::Search => chosen.extend(self.search.show(ui, docs, timeline, version).map(Chosen::Action)),
        }
        chosen
    }
}

fn bubble_of(doc: usize, at: BubbleRef) -> Chosen {
    Chosen::Bubble(Pick { doc, item: Item::Bubble(at) })
}

fn call(doc: usize, call: CallIdx) -> Chosen {
    Chosen::Place(Pick { doc, item: Item::Call(call) })
}

/// The cell with the name of a row's trace.
fn trace_name(docs: &[Document], doc: usize) -> Cell<'_> {
    docs.get(doc).map_or(Cell::Unknown, |doc| Cell::text(&doc.name))
}

/// From the line on which letters stand to the line below a link.
const UNDERLINE: f32 = 2.0;

/// Words that lead somewhere. Under the pointer a line stands below the letters, where egui's own would touch them.
pub(crate) fn link_ui(ui: &mut Ui, text: impl Into<egui::WidgetText>) -> egui::Response {
    let (at, galley, response) = egui::Label::new(text).selectable(false).sense(Sense::click()).layout_in_ui(ui);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Link, ui.is_enabled(), galley.text()));
    let color = ui.visuals().hyperlink_color;
    if response.hovered() || response.has_focus() {
        let pixel = 1.0 / ui.pixels_per_point();
        for row in galley.rows.iter().filter(|row| !row.glyphs.is_empty()) {
            let baseline = row.glyphs.iter().map(|glyph| glyph.pos.y).fold(0.0, f32::max);
            let y = ((at.y + row.pos.y + baseline + UNDERLINE) / pixel).round() * pixel;
            let x = at.x + row.pos.x..=at.x + row.pos.x + row.size.x;
            ui.painter().rect_filled(egui::Rect::from_x_y_ranges(x, y..=y + pixel.max(1.0)), 0.0, color);
        }
    }
    ui.painter().galley(at, galley, color);
    response.on_hover_cursor(egui::CursorIcon::PointingHand)
}

/// A small square that says which colour stands for a line of text.
pub(crate) fn swatch(ui: &mut Ui, color: Color32) {
    swatch_of(ui, |painter, square| {
        painter.rect_filled(square, 2.0, color);
    });
}

/// A small square that looks like what a line of text is about.
pub(crate) fn swatch_of(ui: &mut Ui, paint: impl FnOnce(&egui::Painter, egui::Rect)) {
    let (square, _) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    paint(ui.painter(), square);
}
