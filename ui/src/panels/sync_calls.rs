//! The table of blocking calls.

use bubblescope::analysis::{Evidence, SyncCallRow};
use bubblescope::trace::CallIdx;

use crate::document::Document;
use crate::table::{Cell, Column, Row, Unit};

/// One kind of blocking call of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRow {
    /// Position of the document.
    pub doc: usize,
    /// Position in the analysis.
    pub index: usize,
}

impl SyncRow {
    /// The blocking calls of all opened traces.
    pub fn all(docs: &[Document]) -> Vec<Self> {
        let docs = docs.iter().enumerate();
        docs.flat_map(|(doc, found)| {
            let rows = found.analysis().map_or(0, |analysis| analysis.sync_calls.len());
            (0..rows).map(move |index| Self { doc, index })
        })
        .collect()
    }

    fn found(self, docs: &[Document]) -> Option<&SyncCallRow> {
        docs.get(self.doc)?.analysis()?.sync_calls.get(self.index)
    }

    /// The longest of its calls.
    pub(super) fn longest(self, docs: &[Document]) -> Option<CallIdx> {
        let trace = &docs.get(self.doc)?.trace;
        let calls = &self.found(docs)?.call_list;
        calls.iter().copied().max_by_key(|&call| (trace.calls.interval(call).len(), std::cmp::Reverse(call)))
    }

    /// Whether the replay gives the least to expect: so it is for calls of a finding of which that is said.
    fn gains_at_least(self, docs: &[Document]) -> bool {
        let full = docs.get(self.doc).and_then(Document::full);
        let (Some(full), Some(found)) = (full, self.found(docs)) else { return false };
        let mut least = full.findings.found.iter().filter(|finding| finding.id.gains_at_least());
        let is_ours = |evidence: &Evidence| evidence.api.as_deref() == Some(&found.api) && evidence.site == found.site;
        least.any(|finding| finding.evidence.iter().any(is_ours))
    }

    /// A cell with something of the row.
    fn cell<'a>(self, docs: &'a [Document], of: impl FnOnce(&'a SyncCallRow) -> Cell<'a>) -> Cell<'a> {
        self.found(docs).map_or(Cell::Unknown, of)
    }
}

impl Row for SyncRow {
    const ONE: &'static str = "kind of blocking call";
    const NAME: &'static str = "kinds of blocking calls";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::words("API", "The call", 180.0, |docs, row: Self| row.cell(docs, |found| Cell::text(&found.api))),
        Column::words_if_any("Site", "The range around it", 120.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::text(found.site.as_deref().unwrap_or_default()))
        }),
        Column::counts("Calls", "How many", 60.0, |docs, row: Self| row.cell(docs, |found| Cell::Count(found.calls()))),
        Column::gains(
            "Recoverable",
            "What the span would lose without these calls alone or, where they submit work such as copies, without their \
             wait; from the replay: the promise. It may be more than they block, as the host also gets further ahead; \
             what several kinds gain does not add up. It is of all calls of the kind: a finding of some of them, say of those \
             that work follows, gains a little less",
            90.0,
            Unit::Time,
            |docs, row: Self| {
                row.cell(docs, |found| match found.recoverable {
                    Some(gain) if row.gains_at_least(docs) => Cell::AtLeast(gain),
                    gain => Cell::maybe(gain),
                })
            },
        ),
        Column::times("Blocked", "Time inside the calls; not a cost", 85.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.blocked))
        }),
        Column::times(
            "Useful wait",
            "Device busy while blocked; what is neither lies outside its span",
            85.0,
            |docs, row: Self| row.cell(docs, |found| Cell::Duration(found.useful_wait)),
        ),
        Column::times(
            "Idle while blocked",
            "Device idle while blocked, inside its span; of several threads at once each counts",
            120.0,
            |docs, row: Self| row.cell(docs, |found| Cell::Duration(found.idle_while_blocked)),
        ),
        Column::times("Bubbles caused", "Whole bubbles whose root cause it is", 105.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.bubbles_caused))
        }),
        Column::times(
            "Bubbles drained",
            "Whole bubbles that began during it, or behind its own copy, before the launch that ended them",
            110.0,
            |docs, row: Self| row.cell(docs, |found| Cell::Duration(found.bubbles_drained)),
        ),
        Column::times("Refill", "Later bubbles until work was queued again", 80.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.refill))
        }),
        Column::times("Median", "Median length of a call", 80.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.lengths.p50))
        }),
        Column::times("95 %", "Nineteen calls of twenty are no longer", 80.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.lengths.p95))
        }),
        Column::times("Longest", "The longest call; a click on the row goes there", 80.0, |docs, row: Self| {
            row.cell(docs, |found| Cell::Duration(found.lengths.max))
        }),
        Column::trace(|docs, row: Self| super::trace_name(docs, row.doc)),
    ];

    const SORT: usize = 7;
}
