//! Search over the names of ops, calls and ranges.

use std::sync::Arc;

use bubblescope::report::demangle;
use bubblescope::trace::{CallIdx, NameId, Ns, OpIdx, RangeIdx, Trace};
use eframe::egui::{self, Context, Ui};

use crate::background::{Background, Wanted};
use crate::document::{Document, Item, Pick};
use crate::format;
use crate::table::{Cell, Column, Row, Source, Table};
use crate::timeline::{Action, Timeline};

/// What kind of thing has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Op,
    Call,
    Range,
}

/// All things of one kind with one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    doc: usize,
    kind: Kind,
    name: NameId,
    count: u64,
    /// How many of them start in the part that was analysed.
    measured: u64,
    total: Ns,
    longest: Ns,
}

/// One thing that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thing {
    /// When it starts, on the common time scale.
    start: Ns,
    doc: u32,
    kind: Kind,
    /// Its position in the table of its kind.
    at: u32,
}

impl Thing {
    fn pick(self) -> Pick {
        let item = match self.kind {
            Kind::Op => Item::Op(OpIdx(self.at)),
            Kind::Call => Item::Call(CallIdx(self.at)),
            Kind::Range => Item::Range(RangeIdx(self.at)),
        };
        Pick { doc: self.doc as usize, item }
    }
}

/// Every thing of some hits, by start.
type Things = Arc<[Thing]>;

/// The search.
#[derive(Debug, Default)]
pub struct Search {
    /// What is searched for.
    pub text: String,
    /// Whether the field takes the keyboard in the next frame.
    pub focus: bool,
    hits: Background<(String, u64), Arc<[Hit]>>,
    /// Counts the searches.
    searches: u64,
    searched: Option<(String, u64)>,
    table: Table<Hit>,
    /// The things that are walked through: of one hit, or of all.
    things: Background<(Option<Hit>, u64, u64), Things>,
    /// Whether to go to the next thing of a hit, of any if it is not said, as soon as it is known.
    next: Option<Option<Hit>>,
    /// Which of how many things was gone to last.
    place: Option<(usize, usize)>,
}

/// Up to so many events are searched at once, which takes less than a millisecond; more by a thread of their own.
const FEW_EVENTS: usize = 50_000;

/// Start, end and name of every thing of a kind, in the order of its table.
fn things(trace: &Trace, kind: Kind) -> Box<dyn Iterator<Item = (Ns, Ns, NameId)> + '_> {
    match kind {
        Kind::Op => {
            let ops = &trace.ops;
            Box::new(ops.indices().map(|op| (ops.start[op.index()], ops.end[op.index()], ops.name[op.index()])))
        }
        Kind::Call => {
            let calls = &trace.calls;
            Box::new(calls.indices().map(|at| (calls.start[at.index()], calls.end[at.index()], calls.name[at.index()])))
        }
        Kind::Range => {
            Box::new(trace.ranges.iter().map(|range| (range.interval.start, range.interval.end, range.name)))
        }
    }
}

/// Counts what has a name that contains `text`, upper and lower case alike; nothing when it is no longer `wanted`.
fn find(docs: &[Document], text: &str, wanted: &Wanted) -> Vec<Hit> {
    let text = text.to_lowercase();
    let mut hits = Vec::new();
    if text.is_empty() {
        return hits;
    }
    for (doc, found) in docs.iter().enumerate() {
        let (trace, window) = (&found.trace, found.analysis().map(|analysis| analysis.window));
        let matches: Vec<bool> = trace
            .names
            .iter()
            .map(|(_, name)| name.to_lowercase().contains(&text) || demangle(name).to_lowercase().contains(&text))
            .collect();
        if !matches.contains(&true) {
            continue;
        }
        for kind in [Kind::Op, Kind::Call, Kind::Range] {
            if wanted.is_over() {
                return Vec::new();
            }
            let mut by_name: Vec<Option<Hit>> = vec![None; matches.len()];
            for (start, end, name) in
                things(trace, kind).filter(|(_, _, name)| matches.get(name.index()) == Some(&true))
            {
                let none = Hit { doc, kind, name, count: 0, measured: 0, total: Ns::ZERO, longest: Ns::ZERO };
                let hit = by_name[name.index()].get_or_insert(none);
                let length = end.0.saturating_sub(start.0);
                hit.count += 1;
                hit.measured += u64::from(window.is_some_and(|window| window.contains(start)));
                hit.total = Ns(hit.total.0.saturating_add(length));
                hit.longest = hit.longest.max(Ns(length));
            }
            hits.extend(by_name.into_iter().flatten());
        }
    }
    hits
}

/// Every thing of some hits.
fn things_of(docs: &[Document], hits: &[Hit]) -> Things {
    let mut found = Vec::new();
    for hit in hits {
        let Some(doc) = docs.get(hit.doc) else { continue };
        let ours = things(&doc.trace, hit.kind).enumerate().filter(|(_, (_, _, name))| *name == hit.name);
        found.extend(ours.map(|(at, (start, _, _))| Thing {
            start: doc.on_ruler(start),
            doc: hit.doc as u32,
            kind: hit.kind,
            at: at as u32,
        }));
    }
    found.sort_unstable();
    found.into()
}

/// Where to go on: what follows the thing that is selected, if it is one of them, else the first that starts at `from`
/// or later; after the last comes the first.
fn next(things: &[Thing], selected: Option<Pick>, from: Ns) -> Option<usize> {
    let first = things.partition_point(|thing| thing.start < from);
    let mut together = things.iter().enumerate().skip(first).take_while(|(_, thing)| thing.start == from);
    let own = together.find(|(_, thing)| Some(thing.pick()) == selected).map(|(at, _)| at + 1);
    (!things.is_empty()).then(|| own.unwrap_or(first) % things.len())
}

impl Row for Hit {
    const ONE: &'static str = "name";
    const NAME: &'static str = "names";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::words("Name", "The name", 300.0, |docs, row: Self| {
            docs.get(row.doc).map_or(Cell::Unknown, |doc| Cell::text(demangle(doc.trace.names.get(row.name))))
        }),
        Column::words("Kind", "Op, call or range", 70.0, |_, row: Self| {
            Cell::text(match row.kind {
                Kind::Op => "op",
                Kind::Call => "call",
                Kind::Range => "range",
            })
        }),
        Column::counts("Count", "How many there are in the whole recording", 80.0, |_, row: Self| {
            Cell::Count(row.count)
        }),
        Column::counts(
            "Measured",
            "How many of them start in the measured part, which all other figures are of",
            80.0,
            |docs, row: Self| match docs.get(row.doc).and_then(Document::analysis) {
                Some(_) => Cell::Count(row.measured),
                None => Cell::Unknown,
            },
        ),
        Column::times("Total", "Their lengths together", 100.0, |_, row: Self| Cell::Duration(row.total)),
        Column::times("Longest", "The longest", 100.0, |_, row: Self| Cell::Duration(row.longest)),
        Column::trace(|docs, row: Self| super::trace_name(docs, row.doc)),
    ];

    const SORT: usize = 4;
}

impl Search {
    /// The hits, if they are known.
    fn hits(&mut self, ctx: &Context, docs: &[Document], version: u64) -> Option<Arc<[Hit]>> {
        let wanted = (self.text.clone(), version);
        let text = self.text.clone();
        let hits = if is_small(docs) {
            Some(self.hits.get_now(wanted.clone(), || find(docs, &text, &Wanted::default()).into()))
        } else {
            self.hits.get(ctx, wanted.clone(), || {
                let docs: Vec<Document> = docs.iter().map(Document::without_rows).collect();
                move |until: &Wanted| find(&docs, &text, until).into()
            })
        };
        let hits = Arc::clone(hits?);
        if self.searched.as_ref() != Some(&wanted) {
            (self.searched, self.place) = (Some(wanted), None);
            self.searches += 1;
        }
        Some(hits)
    }

    /// The next thing, once it is known.
    fn step(
        &mut self,
        ctx: &Context,
        docs: &[Document],
        version: u64,
        hits: &Arc<[Hit]>,
        timeline: &Timeline,
    ) -> Option<Action> {
        let of = self.next?;
        let wanted = (of, self.searches, version);
        let hits = match of {
            Some(hit) => [hit].into(),
            None => Arc::clone(hits),
        };
        let things = if is_small(docs) {
            self.things.get_now(wanted, || things_of(docs, &hits))
        } else {
            self.things.get(ctx, wanted, || {
                let docs: Vec<Document> = docs.iter().map(Document::without_rows).collect();
                move |_: &Wanted| things_of(&docs, &hits)
            })?
        };
        self.next = None;
        // A selection that is out of sight is not where the user looks.
        let view = timeline.view.interval();
        let start = |pick: Pick| {
            let doc = docs.get(pick.doc)?;
            let times = doc.shifted(doc.times(pick.item)?);
            (times.start <= view.end && view.start <= times.end).then_some(times.start)
        };
        let selected = timeline.selected.and_then(|pick| Some((pick, start(pick)?)));
        let from = selected.map_or(view.start, |(_, start)| start);
        let at = next(things, selected.map(|(pick, _)| pick), from)?;
        self.place = Some((at + 1, things.len()));
        things.get(at).map(|thing| Action::ZoomTo(thing.pick()))
    }

    /// Shows the field and what was found; a click on a row goes to its things one after the other.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document], timeline: &Timeline, version: u64) -> Option<Action> {
        let ctx = ui.ctx().clone();
        let hits = self.hits(&ctx, docs, version);
        ui.horizontal(|ui| {
            let label = ui.label("Search names");
            let field = ui.add(egui::TextEdit::singleline(&mut self.text).desired_width(300.0)).labelled_by(label.id);
            if std::mem::take(&mut self.focus) {
                field.request_focus();
            }
            if field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter)) {
                self.next = Some(None);
                field.request_focus();
            }
            if self.text.is_empty() {
                ui.weak("Names of ops, API calls and ranges; upper and lower case are alike.");
            } else if let Some(hits) = &hits {
                let things: u64 = hits.iter().map(|hit| hit.count).sum();
                let place =
                    self.place.map(|(at, of)| format!("{} of {}", format::count(at as u64), format::count(of as u64)));
                let place = place.unwrap_or_else(|| {
                    let measured: u64 = hits.iter().map(|hit| hit.measured).sum();
                    let all = format!("{} in all", format::count(things));
                    match measured < things && docs.iter().all(|doc| doc.analysis().is_some()) {
                        true => format!("{all}; {} in the measured part", format::count(measured)),
                        false => all,
                    }
                });
                ui.weak(format!("{place}. Enter goes to the next."));
            } else {
                ui.spinner();
            }
        });
        let hits = hits.or_else(|| self.hits.last().map(|(_, hits)| Arc::clone(hits))).unwrap_or_else(|| [].into());
        let all = Arc::clone(&hits);
        let source = Source { version: self.searches, len: hits.len(), all: move |_: &[Document]| all.to_vec() };
        let clicked = self.table.show(ui, docs, None, &source);
        if clicked.is_some() {
            self.next = Some(clicked);
        }
        let known = self.searched.as_ref().is_some_and(|(text, of)| (text, *of) == (&self.text, version));
        if !known {
            return None;
        }
        if hits.is_empty() {
            self.next = None;
        }
        self.step(&ctx, docs, version, &hits, timeline)
    }
}

/// Whether everything can be looked at within a frame.
fn is_small(docs: &[Document]) -> bool {
    docs.iter().map(|doc| doc.trace.event_count()).sum::<usize>() <= FEW_EVENTS
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::testing;

    #[test]
    fn names_are_found_counted_and_walked_through() {
        let docs = [Document::new(Path::new("a"), Arc::new(testing::trace(1, 8)))];
        let hits = find(&docs, "SAXPY(", &Wanted::default());
        assert_eq!(hits.len(), 1, "demangled names are searched");
        let starts: Vec<Ns> = {
            let ops = &docs[0].trace.ops;
            ops.indices().filter(|op| ops.name[op.index()] == hits[0].name).map(|op| ops.start[op.index()]).collect()
        };
        assert_eq!(hits[0].count as usize, starts.len());
        let things = things_of(&docs, &hits);
        let (mut selected, mut from) = (None, Ns::ZERO);
        let mut seen = Vec::new();
        for _ in 0..=starts.len() {
            let thing = things[next(&things, selected, from).unwrap()];
            (selected, from) = (Some(thing.pick()), thing.start);
            seen.push(thing.start);
        }
        assert_eq!(seen[..starts.len()], starts);
        assert_eq!(seen.last(), starts.first(), "after the last comes the first");
        let middle = starts.len() / 2;
        assert_eq!(next(&things, None, starts[middle]), Some(middle), "it begins where one looks");
        assert_eq!(next(&things, None, Ns(i64::MAX)), Some(0));
        assert_eq!(next(&[], None, Ns::ZERO), None);
        let none = |text| find(&docs, text, &Wanted::default()).is_empty();
        assert!(none("no such name") && none(""));
    }
}
