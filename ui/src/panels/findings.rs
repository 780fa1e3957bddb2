//! What people can fix: the findings as a table, and beside it what the chosen one rests on and its remedy.

use bubblescope::analysis::{Finding, FullAnalysis, Severity};
use bubblescope::trace::Ns;
use eframe::egui::{self, Color32, RichText, Ui};

use super::overview::{NOTHING_TO_FIX, longest_cause_ui};
use super::{Chosen, link_ui};
use crate::describe;
use crate::document::{Document, Item, Pick};
use crate::format;
use crate::table::{Cell, Column, Row, Source, Table, Unit};
use crate::theme::Palette;

/// One finding of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindingRow {
    /// Position of the document.
    pub doc: usize,
    /// Position among its findings.
    pub index: usize,
}

impl FindingRow {
    /// The findings of all opened traces; of equal gains the more severe comes first.
    fn all(docs: &[Document]) -> Vec<Self> {
        let rows = docs.iter().enumerate().flat_map(|(doc, found)| {
            let count = found.full().map_or(0, |full| full.findings.found.len());
            (0..count).map(move |index| Self { doc, index })
        });
        let mut rows: Vec<Self> = rows.collect();
        rows.sort_by_key(|row| row.found(docs).map(|(_, finding)| finding.severity));
        rows
    }

    fn found(self, docs: &[Document]) -> Option<(&FullAnalysis, &Finding)> {
        let full = docs.get(self.doc)?.full()?;
        Some((full, full.findings.found.get(self.index)?))
    }

    /// A cell with something of the finding.
    fn cell<'a>(self, docs: &'a [Document], of: impl FnOnce(&'a FullAnalysis, &'a Finding) -> Cell<'a>) -> Cell<'a> {
        self.found(docs).map_or(Cell::Unknown, |(full, finding)| of(full, finding))
    }
}

/// The span that gains are of.
fn span(full: &FullAnalysis) -> Ns {
    full.replay.as_ref().map_or(Ns::ZERO, |replay| replay.span)
}

impl Row for FindingRow {
    const ONE: &'static str = "finding";
    const NAME: &'static str = "findings";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::gains(
            "Gains",
            "What the span loses in a replay with the remedy",
            80.0,
            Unit::Time,
            |docs, row: Self| {
                row.cell(docs, |_, finding| match finding.id.gains_at_least() {
                    true => Cell::AtLeast(finding.recoverable),
                    false => Cell::Duration(finding.recoverable),
                })
            },
        ),
        Column::gains("Of the span", "That as a share of the span", 80.0, Unit::Share, |docs, row: Self| {
            row.cell(docs, |full, finding| match finding.id.gains_at_least() {
                true => Cell::ShareAtLeast(finding.recoverable, span(full)),
                false => Cell::Share(finding.recoverable, span(full)),
            })
        }),
        Column::words("Severity", "How much it matters", 65.0, |docs, row: Self| {
            row.cell(docs, |_, finding| Cell::text(finding.severity.as_str()))
        }),
        Column::words(
            "Finding",
            "What can be fixed, as `bubble-report check --forbid` names it",
            150.0,
            |docs, row: Self| row.cell(docs, |_, finding| Cell::text(finding.id.as_str())),
        ),
        Column::counts("Times", "How often it happens", 55.0, |docs, row: Self| {
            row.cell(docs, |_, finding| Cell::Count(finding.count))
        }),
        Column::trace(|docs, row: Self| super::trace_name(docs, row.doc)),
    ];

    const SORT: usize = 0;
}

/// The findings of the opened traces.
#[derive(Debug, Default)]
pub struct FindingsPanel {
    table: Table<FindingRow>,
    chosen: Option<FindingRow>,
    /// What was selected when the findings were asked for: its own finding is to be chosen, or its trace's first.
    asked_of: Option<Pick>,
    /// What the evidence of a finding leads to, and for which finding and version of what is known.
    places: Option<((FindingRow, u64), Vec<Places>)>,
}

/// Between words and the bar that scrolls them.
const SCROLL_BAR_GAP: f32 = 8.0;

/// Moments that evidence names, in order of time, with what happened then.
type Places = Vec<(Ns, Option<Item>)>;

impl FindingsPanel {
    /// Filters nothing, and chooses the first.
    pub(super) fn start_afresh(&mut self) {
        self.table.filter.clear();
        (self.chosen, self.asked_of) = (None, None);
    }

    /// Chooses, once it is known, the finding that the selection belongs to, else the first of its trace.
    pub fn choose_of(&mut self, selected: Option<Pick>) {
        self.asked_of = selected;
    }

    /// Shows the findings; gives the places that were clicked.
    pub(super) fn show(&mut self, ui: &mut Ui, docs: &[Document], version: u64) -> Option<Chosen> {
        let palette = Palette::of(ui.visuals());
        let mut place = None;
        for (at, doc) in docs.iter().enumerate() {
            if let Some(state) = state(doc) {
                ui.horizontal_wrapped(|ui| {
                    if doc.full().is_none() && !doc.replay_is_stopped() {
                        ui.spinner();
                    }
                    ui.strong(&doc.name);
                    ui.colored_label(palette.weak_text, state);
                    if doc.full().is_some() || doc.replay_is_stopped() {
                        let bubble = longest_cause_ui(ui, doc, &palette);
                        place = bubble.map(|bubble| super::bubble_of(at, bubble)).or(place);
                    }
                });
            }
        }
        let all = FindingRow::all(docs);
        if all.is_empty() {
            return place;
        }
        if let Some(pick) = self.asked_of.filter(|pick| docs.get(pick.doc).is_some_and(|doc| doc.full().is_some())) {
            self.asked_of = None;
            self.chosen = of_thing(docs, pick).or(self.chosen);
        }
        let source = Source { version, len: all.len(), all: FindingRow::all };
        let (rows, _) = self.table.rows(ui.ctx(), docs, &source);
        let shown = self.chosen.filter(|row| rows.contains(row)).or(rows.first().copied());
        let width = ui.available_width();
        ui.horizontal_top(|ui| {
            ui.vertical(|ui| {
                ui.set_width((width * 0.5).max(300.0));
                if let Some(row) = self.table.show(ui, docs, shown, &source) {
                    self.chosen = Some(row);
                }
            });
            ui.separator();
            ui.vertical(|ui| {
                egui::ScrollArea::vertical().id_salt("finding").auto_shrink(false).show(ui, |ui| {
                    // Words do not touch the bar.
                    ui.set_max_width(ui.available_width() - SCROLL_BAR_GAP);
                    if let Some((row, (full, finding))) = shown.and_then(|row| Some((row, row.found(docs)?))) {
                        let places = self.places.take().filter(|(of, _)| *of == (row, version));
                        let (_, places) = self
                            .places
                            .insert(places.unwrap_or_else(|| ((row, version), places_of(docs, row.doc, finding))));
                        place = finding_ui(ui, docs, row.doc, (full, finding), places, &palette).or(place);
                    }
                });
            });
        });
        place
    }
}

/// What each piece of evidence leads to. Takes time in proportion to the trace's events.
fn places_of(docs: &[Document], doc: usize, finding: &Finding) -> Vec<Places> {
    let places = finding.evidence.iter().map(|evidence| {
        let item = |moment: Ns| docs.get(doc)?.at_moment(evidence.api.as_deref(), moment);
        let mut places: Places = evidence.at.iter().map(|&moment| (moment, item(moment))).collect();
        places.sort_by_key(|(moment, _)| *moment);
        places
    });
    places.collect()
}

/// The finding that a thing belongs to, else the first of its trace.
fn of_thing(docs: &[Document], pick: Pick) -> Option<FindingRow> {
    let doc = docs.get(pick.doc)?;
    let found = &doc.full()?.findings.found;
    let bubble = if let Item::Bubble(at) = pick.item { doc.bubble(at) } else { None };
    let own = bubble.and_then(|(device, bubble)| found.iter().position(|finding| finding.concerns(device, bubble)));
    (!found.is_empty()).then(|| FindingRow { doc: pick.doc, index: own.unwrap_or(0) })
}

/// Why there is nothing to show of a trace; `None` when there is.
fn state(doc: &Document) -> Option<String> {
    let Some(full) = doc.full() else {
        if doc.replay_is_stopped() {
            return Some("The replay was stopped, so no gain can be told: reload to run it.".to_owned());
        }
        return Some(
            "The recording is being replayed with each change that might help: gains are promised only from that."
                .to_owned(),
        );
    };
    if let Some(why) = &full.findings.withheld {
        return Some(format!("No finding can be told: {why}."));
    }
    full.findings.found.is_empty().then(|| format!("What to fix: {NOTHING_TO_FIX}."))
}

/// What a finding rests on, and what to do about it.
fn finding_ui(
    ui: &mut Ui,
    docs: &[Document],
    doc: usize,
    (full, finding): (&FullAnalysis, &Finding),
    places: &[Places],
    palette: &Palette,
) -> Option<Chosen> {
    let mut place = None;
    ui.add(egui::Label::new(RichText::new(&finding.title).size(15.0).strong()).wrap());
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(finding.severity.as_str()).color(severity(finding.severity, ui.visuals().dark_mode)));
        let (gain, span) = (finding.recoverable, span(full));
        let share = format::percent(gain.0, span.0);
        let text = format!(
            "fixing it takes {}{} ({share}) off the span of {}",
            if finding.id.gains_at_least() { "at least " } else { "" },
            format::duration(gain.0),
            format::duration(span.0)
        );
        ui.label(text);
    });
    ui.add_space(4.0);
    ui.strong("Remedy");
    ui.add(egui::Label::new(finding.remedy).wrap());
    ui.add_space(4.0);
    ui.strong("What shows it");
    for (evidence, places) in finding.evidence.iter().zip(places) {
        let site = evidence.site.as_ref().map_or_else(String::new, |site| format!(", in {site}"));
        ui.add(egui::Label::new(format!("{}{site}", evidence.text)).wrap());
        if evidence.at.is_empty() {
            continue;
        }
        ui.horizontal_wrapped(|ui| {
            // A link is one place to click: it goes to the next line whole.
            ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Extend);
            for &(moment, item) in places {
                let shown = docs.get(doc).map_or(moment, |doc| doc.on_ruler(moment));
                let name = docs.get(doc).zip(item).map(|(doc, item)| match item {
                    Item::Bubble(_) => "bubble".to_owned(),
                    _ => describe::label(doc, item).into_owned(),
                });
                let name = name.map_or_else(|| "at".to_owned(), |name| format!("{name} at"));
                let link = link_ui(ui, format!("{name} {}", format::moment(shown.0)));
                if link.on_hover_text("Show it on the timeline").clicked() {
                    place = item.map(|item| Chosen::Place(Pick { doc, item })).or(place);
                }
            }
        });
    }
    if !finding.assumptions.is_empty() {
        ui.add_space(4.0);
        ui.strong("Takes for granted");
        for assumption in &finding.assumptions {
            ui.add(egui::Label::new(RichText::new(*assumption).color(palette.weak_text)).wrap());
        }
    }
    if let Some(all) = full.replay.as_ref().and_then(|replay| replay.remedies_together.as_ref())
        && full.findings.found.len() > 1
    {
        ui.add_space(4.0);
        let gain = format::duration(all.gain.0);
        let least = if all.at_least { "at least " } else { "" };
        let share = format::percent(all.gain.0, span(full).0);
        ui.colored_label(
            palette.weak_text,
            format!("Gains do not add up: all findings together gain {least}{gain} ({share})."),
        );
    }
    place
}

/// The colour of a severity; its word stands beside it.
fn severity(severity: Severity, dark: bool) -> Color32 {
    match (severity, dark) {
        (Severity::High, true) => Color32::from_rgb(0xff, 0x8a, 0x5c),
        (Severity::High, false) => Color32::from_rgb(0xb8, 0x3a, 0x00),
        (Severity::Medium, true) => Color32::from_rgb(0xe6, 0xb4, 0x40),
        (Severity::Medium, false) => Color32::from_rgb(0x8a, 0x5c, 0x00),
        (Severity::Low, true) => Color32::from_rgb(0x93, 0x9a, 0xa8),
        (Severity::Low, false) => Color32::from_rgb(0x5f, 0x67, 0x75),
    }
}
