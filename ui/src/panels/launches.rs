//! The table of launches.

use crate::document::Document;
use crate::launches::LaunchFigures;
use crate::table::{Cell, Column, Row};

/// The launches of one API of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchRow {
    /// Position of the document.
    pub doc: usize,
    /// Position among its launches.
    pub index: usize,
}

impl LaunchRow {
    /// The launches of all opened traces.
    pub fn all(docs: &[Document]) -> Vec<Self> {
        let docs = docs.iter().enumerate();
        docs.flat_map(|(doc, found)| (0..found.launches.len()).map(move |index| Self { doc, index })).collect()
    }

    /// Its figures.
    pub fn found(self, docs: &[Document]) -> Option<&LaunchFigures> {
        docs.get(self.doc)?.launches.get(self.index)
    }

    /// A cell with something of the row.
    fn cell<'a>(self, docs: &'a [Document], of: impl FnOnce(&'a LaunchFigures) -> Cell<'a>) -> Cell<'a> {
        self.found(docs).map_or(Cell::Unknown, of)
    }
}

impl Row for LaunchRow {
    const ONE: &'static str = "kind of launch";
    const NAME: &'static str = "kinds of launches";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::words("API", "The call that submitted device work", 220.0, |docs, row: Self| {
            let doc = docs.get(row.doc);
            row.cell(docs, |found| doc.map_or(Cell::Unknown, |doc| Cell::text(doc.trace.call_name(found.longest))))
        }),
        Column::counts("Calls", "Calls that submitted device work", 80.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Count(found.count))
        }),
        Column::times("Call, median", "Median length of a call: what it costs the host", 95.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.call_p50))
        }),
        Column::times("Call, 95 %", "Nineteen calls of twenty are no longer", 90.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.call_p95))
        }),
        Column::times("Longest", "The longest call; a click on the row goes there", 90.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.call_max))
        }),
        Column::times(
            "Launch to start, median",
            "From a call's start to its op's start, in the median of ops that found the device empty",
            150.0,
            |docs, row: Self| row.cell(docs, |found| Cell::maybe(found.latency_p50)),
        ),
        Column::counts("Ops per call", "Median number of ops that a call submitted", 90.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Count(found.ops_p50))
        }),
        Column::counts("Ops", "Ops that the calls submitted", 80.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Count(found.ops))
        }),
        Column::trace(|docs, row: Self| super::trace_name(docs, row.doc)),
    ];

    const SORT: usize = 1;
}
