//! Search over the names of ops, calls and ranges.

use bubblescope::report::demangle;
use bubblescope::trace::{CallIdx, NameId, Ns, OpIdx, RangeIdx, Trace};
use eframe::egui::{self, Ui};

use crate::document::{Document, Item, Pick};
use crate::table::{Cell, Column, Row, Table};
use crate::timeline::Action;

/// What kind of thing has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    total: Ns,
    longest: Ns,
}

/// The search.
#[derive(Debug, Default)]
pub struct Search {
    /// What is searched for.
    pub text: String,
    /// Whether the field takes the keyboard in the next frame.
    pub focus: bool,
    hits: Vec<Hit>,
    made_for: Option<(String, u64)>,
    searches: u64,
    table: Table<Hit>,
    last: Option<Pick>,
}

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

/// Counts what has a name that contains `text`, upper and lower case alike.
fn find(docs: &[Document], text: &str) -> Vec<Hit> {
    let text = text.to_lowercase();
    let mut hits = Vec::new();
    if text.is_empty() {
        return hits;
    }
    for (doc, found) in docs.iter().enumerate() {
        let trace = &found.trace;
        let matches: Vec<bool> = trace
            .names
            .iter()
            .map(|(_, name)| name.to_lowercase().contains(&text) || demangle(name).to_lowercase().contains(&text))
            .collect();
        if !matches.contains(&true) {
            continue;
        }
        for kind in [Kind::Op, Kind::Call, Kind::Range] {
            let mut by_name: Vec<Option<Hit>> = vec![None; matches.len()];
            for (start, end, name) in
                things(trace, kind).filter(|(_, _, name)| matches.get(name.index()) == Some(&true))
            {
                let none = Hit { doc, kind, name, count: 0, total: Ns::ZERO, longest: Ns::ZERO };
                let hit = by_name[name.index()].get_or_insert(none);
                let length = end.0.saturating_sub(start.0);
                hit.count += 1;
                hit.total = Ns(hit.total.0.saturating_add(length));
                hit.longest = hit.longest.max(Ns(length));
            }
            hits.extend(by_name.into_iter().flatten());
        }
    }
    hits
}

/// The next thing of a hit after a moment, or the first if there is none.
fn next(docs: &[Document], hit: Hit, after: Option<Pick>) -> Option<Pick> {
    let doc = docs.get(hit.doc)?;
    let item = |at: usize| match hit.kind {
        Kind::Op => Item::Op(OpIdx::from_index(at)),
        Kind::Call => Item::Call(CallIdx::from_index(at)),
        Kind::Range => Item::Range(RangeIdx::from_index(at)),
    };
    let all = || things(&doc.trace, hit.kind).enumerate().filter(|(_, (_, _, name))| *name == hit.name);
    let all = || all().map(|(at, (start, _, _))| (start, at));
    let after = after.filter(|pick| pick.doc == hit.doc);
    let position = after.and_then(|pick| all().find(|&(_, at)| item(at) == pick.item));
    let following = position.and_then(|position| all().filter(|other| *other > position).min());
    following.or_else(|| all().min()).map(|(_, at)| Pick { doc: hit.doc, item: item(at) })
}

impl Row for Hit {
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
        Column::figures("Count", "How many", 80.0, |_, row: Self| Cell::Count(row.count)),
        Column::figures("Total", "Their lengths together", 100.0, |_, row: Self| Cell::Duration(row.total)),
        Column::figures("Longest", "The longest", 100.0, |_, row: Self| Cell::Duration(row.longest)),
        Column::words("Trace", "The file", 120.0, |docs, row: Self| super::trace_name(docs, row.doc)),
    ];

    const SORT: usize = 3;
}

impl Search {
    /// Searches if the text or the documents have changed.
    fn update(&mut self, docs: &[Document], version: u64) {
        let wanted = (self.text.clone(), version);
        if self.made_for.as_ref() != Some(&wanted) {
            self.hits = find(docs, &self.text);
            self.made_for = Some(wanted);
            self.searches += 1;
            self.last = None;
        }
    }

    /// The next thing of the first row.
    fn step(&mut self, docs: &[Document], hit: Option<Hit>) -> Option<Action> {
        let hit = match hit {
            Some(hit) => hit,
            None => *self.table.rows(docs, self.searches, || self.hits.clone()).first()?,
        };
        let pick = next(docs, hit, self.last)?;
        self.last = Some(pick);
        Some(Action::ZoomTo(pick))
    }

    /// Shows the field and what was found; a click on a row goes to its things one after the other.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document], version: u64) -> Option<Action> {
        let mut stepped = false;
        ui.horizontal(|ui| {
            let label = ui.label("Search names");
            let field = ui.add(egui::TextEdit::singleline(&mut self.text).desired_width(300.0)).labelled_by(label.id);
            if std::mem::take(&mut self.focus) {
                field.request_focus();
            }
            if field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter)) {
                stepped = true;
                field.request_focus();
            }
            ui.weak("Enter goes to the next");
        });
        self.update(docs, version);
        let clicked = self.table.show(ui, docs, self.searches, None, || self.hits.clone());
        if stepped || clicked.is_some() { self.step(docs, clicked) } else { None }
    }
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
        let hits = find(&docs, "SAXPY(");
        assert_eq!(hits.len(), 1, "demangled names are searched");
        let starts: Vec<Ns> = {
            let ops = &docs[0].trace.ops;
            ops.indices().filter(|op| ops.name[op.index()] == hits[0].name).map(|op| ops.start[op.index()]).collect()
        };
        assert_eq!(hits[0].count as usize, starts.len());
        let mut last = None;
        let mut seen = Vec::new();
        for _ in 0..=starts.len() {
            last = next(&docs, hits[0], last);
            let Some(Pick { item: Item::Op(op), .. }) = last else { panic!("no op") };
            seen.push(docs[0].trace.ops.start[op.index()]);
        }
        assert_eq!(seen[..starts.len()], starts);
        assert_eq!(seen.last(), starts.first(), "after the last comes the first");
        assert!(find(&docs, "no such name").is_empty() && find(&docs, "").is_empty());
    }
}
