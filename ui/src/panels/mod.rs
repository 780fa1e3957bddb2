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
pub use overview::overview_ui;
pub use record::Recorder;
pub use search::{Hit, Search};
pub use sync_calls::SyncRow;

use bubblescope::trace::CallIdx;
use eframe::egui::{self, Color32, Sense, Ui, Vec2};
use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::document::{Document, Item, Pick};
use crate::table::{Cell, Source, Table};
use crate::timeline::{Action, Timeline};

/// What the panel below the timeline shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Shows the panel.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document], timeline: &Timeline, versions: Versions) -> Vec<Chosen> {
        let version = versions.known;
        let mut chosen = Vec::new();
        ui.horizontal(|ui| {
            for (tab, name) in Tab::ALL {
                ui.selectable_value(&mut self.tab, tab, name);
            }
        });
        ui.separator();
        match self.tab {
            Tab::Overview => {
                let area = egui::ScrollArea::vertical().id_salt("overview").auto_shrink(false);
                let wanted = area.show(ui, |ui| {
                    let mut wanted = false;
                    // Every overview is shown, also those below one whose findings are wanted.
                    for doc in docs {
                        wanted |= overview_ui(ui, doc, docs.len() > 1);
                    }
                    wanted
                });
                if wanted.inner {
                    self.tab = Tab::Findings;
                }
            }
            Tab::Findings => chosen.extend(self.findings.show(ui, docs, version)),
            Tab::Bubbles => {
                let selected = timeline.selected.and_then(|pick| match pick.item {
                    Item::Bubble(at) => Some(BubbleRow { doc: pick.doc, at }),
                    _ => None,
                });
                let source = Source { version, len: BubbleRow::count(docs), all: BubbleRow::all };
                let row = self.bubbles.show(ui, docs, selected, &source);
                chosen.extend(row.map(|row| Chosen::Bubble(Pick { doc: row.doc, item: Item::Bubble(row.at) })));
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
            Tab::Measure => self.measured.show(ui, docs, timeline.measured, versions.traces),
            Tab::Compare => chosen.extend(self.compare.show(ui, docs)),
            Tab::Search => chosen.extend(self.search.show(ui, docs, version).map(Chosen::Action)),
        }
        chosen
    }
}

fn call(doc: usize, call: CallIdx) -> Chosen {
    Chosen::Place(Pick { doc, item: Item::Call(call) })
}

/// The cell with the name of a row's trace.
fn trace_name(docs: &[Document], doc: usize) -> Cell<'_> {
    docs.get(doc).map_or(Cell::Unknown, |doc| Cell::text(&doc.name))
}

/// A small square that says which colour stands for a line of text.
fn swatch(ui: &mut Ui, color: Color32) {
    let (square, _) = ui.allocate_exact_size(Vec2::splat(10.0), Sense::hover());
    ui.painter().rect_filled(square, 2.0, color);
}
