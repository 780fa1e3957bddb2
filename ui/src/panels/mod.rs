//! Panels beside and below the timeline.

mod bubbles;
mod compare;
mod details;
mod measure;
mod overview;
mod search;
mod sync_calls;

pub use bubbles::BubbleRow;
pub use compare::{Align, Comparison};
pub use details::{details_ui, summary};
pub use measure::Measured;
pub use overview::overview_ui;
pub use search::{Hit, Search};
pub use sync_calls::SyncRow;

use bubblescope::trace::CallIdx;
use eframe::egui::{self, Color32, Sense, Ui, Vec2};

use crate::document::{Document, Item, Pick};
use crate::table::Table;
use crate::timeline::{Action, Timeline};

/// What the panel below the timeline shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// Where the time went.
    #[default]
    Overview,
    /// Every bubble.
    Bubbles,
    /// Calls that wait for the device.
    SyncCalls,
    /// What a measured interval holds.
    Measure,
    /// Names that were searched for.
    Search,
    /// The opened traces side by side.
    Compare,
}

impl Tab {
    /// All tabs with their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Overview, "Overview"),
        (Self::Bubbles, "Bubbles"),
        (Self::SyncCalls, "Sync calls"),
        (Self::Measure, "Measure"),
        (Self::Search, "Search"),
        (Self::Compare, "Compare"),
    ];
}

/// The panel below the timeline.
#[derive(Debug)]
pub struct Panels {
    /// What it shows.
    pub tab: Tab,
    /// The table of bubbles.
    pub bubbles: Table<BubbleRow>,
    /// The table of blocking calls.
    pub sync_calls: Table<SyncRow>,
    /// The measured interval.
    pub measured: Measured,
    /// The search.
    pub search: Search,
    /// The comparison of the opened traces.
    pub compare: Comparison,
}

impl Default for Panels {
    fn default() -> Self {
        Self {
            tab: Tab::default(),
            bubbles: Table::sorted_by(bubbles::LENGTH),
            sync_calls: Table::sorted_by(sync_calls::DRAINED),
            measured: Measured::default(),
            search: Search::default(),
            compare: Comparison::default(),
        }
    }
}

/// What the user did in a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Chosen {
    /// Something that the timeline can do.
    Action(Action),
    /// A bubble to look at.
    Bubble(Pick),
    /// A call to look at.
    Call(usize, CallIdx),
    /// Lay the traces over each other as the comparison says.
    Align,
}

impl Panels {
    /// Shows the panel. `version` changes whenever the documents do.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document], timeline: &Timeline, version: u64) -> Vec<Chosen> {
        let mut chosen = Vec::new();
        ui.horizontal(|ui| {
            for (tab, name) in Tab::ALL {
                ui.selectable_value(&mut self.tab, tab, name);
            }
        });
        ui.separator();
        match self.tab {
            Tab::Overview => {
                egui::ScrollArea::vertical().id_salt("overview").auto_shrink(false).show(ui, |ui| {
                    for doc in docs {
                        overview_ui(ui, doc, docs.len() > 1);
                    }
                });
            }
            Tab::Bubbles => {
                let selected = timeline.selected.and_then(|pick| match pick.item {
                    Item::Bubble(at) => Some(BubbleRow { doc: pick.doc, at }),
                    _ => None,
                });
                let row = self.bubbles.show(ui, "bubbles", &bubbles::Bubbles(docs), version, selected);
                chosen.extend(row.map(|row| Chosen::Bubble(Pick { doc: row.doc, item: Item::Bubble(row.at) })));
            }
            Tab::SyncCalls => {
                let source = sync_calls::SyncCalls(docs);
                if let Some(row) = self.sync_calls.show(ui, "kinds of blocking calls", &source, version, None) {
                    chosen.extend(source.longest(row).map(|call| Chosen::Call(row.doc, call)));
                }
            }
            Tab::Measure => self.measured.show(ui, docs, timeline.measured, version),
            Tab::Compare => chosen.extend(self.compare.show(ui, docs, version)),
            Tab::Search => chosen.extend(self.search.show(ui, docs, version).map(Chosen::Action)),
        }
        chosen
    }
}

/// A small square that says which colour stands for a line of text.
fn swatch(ui: &mut Ui, color: Color32) {
    let (square, _) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    ui.painter().rect_filled(square, 2.0, color);
}
