//! The table of bubbles.

use bubblescope::analysis::Bubble;
use bubblescope::trace::CallIdx;

use crate::describe;
use crate::document::{BubbleRef, Document};
use crate::table::{AllOf, Cell, Column, Row, Source};

/// One bubble of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BubbleRow {
    /// Position of the document.
    pub doc: usize,
    /// The bubble.
    pub at: BubbleRef,
}

impl BubbleRow {
    /// The bubbles of all opened traces.
    pub fn all(docs: &[Document]) -> Vec<Self> {
        let docs = docs.iter().enumerate();
        docs.flat_map(|(doc, found)| found.bubbles().map(move |(at, _)| Self { doc, at })).collect()
    }

    /// How many there are.
    pub fn count(docs: &[Document]) -> usize {
        let devices = docs.iter().filter_map(Document::analysis).flat_map(|analysis| &analysis.devices);
        devices.map(|device| device.bubbles.len()).sum()
    }

    /// Where the table has its rows from; `version` changes whenever they do.
    pub fn source(docs: &[Document], version: u64) -> Source<AllOf<Self>> {
        Source { version, len: Self::count(docs), all: Self::all }
    }

    fn found(self, docs: &[Document]) -> Option<(&Document, &Bubble)> {
        let doc = docs.get(self.doc)?;
        Some((doc, doc.bubble(self.at)?.1))
    }

    /// A cell with something of the bubble.
    fn cell<'a>(self, docs: &'a [Document], of: impl FnOnce(&'a Document, &'a Bubble) -> Cell<'a>) -> Cell<'a> {
        self.found(docs).map_or(Cell::Unknown, |(doc, bubble)| of(doc, bubble))
    }
}

fn call_name(doc: &Document, call: Option<CallIdx>) -> Cell<'_> {
    Cell::text(call.map_or("", |call| doc.trace.call_name(call)))
}

impl Row for BubbleRow {
    const ONE: &'static str = "bubble";
    const NAME: &'static str = "bubbles";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::moments("Start", "When the device ran dry, on the ruler", 140.0, |docs, row: Self| {
            row.cell(docs, |doc, bubble| Cell::Moment(doc.on_ruler(bubble.interval.start)))
        }),
        Column::times("Length", "How long nothing ran", 80.0, |docs, row: Self| {
            row.cell(docs, |_, bubble| Cell::Duration(bubble.interval.len()))
        }),
        Column::words("Cause", "The one reason that best explains it", 110.0, |docs, row: Self| {
            row.cell(docs, |_, bubble| Cell::text(bubble.root.cause.as_str()))
        }),
        Column::words("Confidence", "How sure that is", 80.0, |docs, row: Self| {
            row.cell(docs, |_, bubble| Cell::text(bubble.root.confidence.as_str()))
        }),
        Column::words(
            "Call",
            "The call to blame; with “in”, the one in which most of the bubble passed; none where only the next launch came \
             late",
            170.0,
            |docs, row: Self| {
                row.cell(docs, |doc, _| match describe::call_of(doc, row.at) {
                    Some((call, true)) => call_name(doc, Some(call)),
                    Some((call, false)) => Cell::text(format!("in {}", doc.trace.call_name(call))),
                    None => call_name(doc, None),
                })
            },
        ),
        Column::words(
            "Drained by",
            "The call that was open when the device ran dry, or whose copy ended then",
            150.0,
            |docs, row: Self| row.cell(docs, |doc, bubble| call_name(doc, bubble.drained_by.map(|drain| drain.call))),
        ),
        Column::words("Before", "The op before, and its stream", 160.0, |docs, row: Self| {
            row.cell(docs, |doc, bubble| Cell::text(describe::op_on_stream(doc, bubble.before)))
        }),
        Column::words("After", "The op after, and its stream", 160.0, |docs, row: Self| {
            row.cell(docs, |doc, bubble| Cell::text(describe::op_on_stream(doc, bubble.after)))
        }),
        Column::counts("GPU", "The device", 50.0, |docs, row: Self| {
            row.cell(docs, |doc, bubble| {
                doc.trace.devices.get(bubble.device.index()).map_or(Cell::Unknown, |gpu| Cell::Count(u64::from(gpu.id)))
            })
        }),
        Column::trace(|docs, row: Self| super::trace_name(docs, row.doc)),
    ];

    const SORT: usize = 1;
}
