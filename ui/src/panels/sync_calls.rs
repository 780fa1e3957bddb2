//! The table of blocking calls.

use bubblescope::analysis::SyncCallRow;
use bubblescope::trace::CallIdx;

use crate::document::Document;
use crate::format;
use crate::table::{Column, Source};

/// One kind of blocking call of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRow {
    /// Position of the document.
    pub doc: usize,
    /// Position in the analysis.
    pub index: usize,
}

/// The blocking calls of all opened traces.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncCalls<'a>(pub(super) &'a [Document]);

/// The column of drained bubbles.
pub(super) const DRAINED: usize = 6;

impl SyncCalls<'_> {
    fn found(&self, row: SyncRow) -> Option<&SyncCallRow> {
        self.0.get(row.doc)?.analysis.as_ref()?.sync_calls.get(row.index)
    }

    /// The longest of a row's calls.
    pub(super) fn longest(&self, row: SyncRow) -> Option<CallIdx> {
        let trace = &self.0.get(row.doc)?.trace;
        let calls = &self.found(row)?.call_list;
        calls.iter().copied().max_by_key(|&call| (trace.calls.interval(call).len(), std::cmp::Reverse(call)))
    }
}

impl Source for SyncCalls<'_> {
    type Row = SyncRow;

    const COLUMNS: &'static [Column] = &[
        Column { title: "API", hint: "The call", width: 180.0, figures: false },
        Column { title: "Site", hint: "The range around it", width: 120.0, figures: false },
        Column { title: "Calls", hint: "How many", width: 60.0, figures: true },
        Column { title: "Blocked", hint: "Time inside the calls; not a cost", width: 85.0, figures: true },
        Column { title: "Useful wait", hint: "Device busy while blocked", width: 85.0, figures: true },
        Column { title: "Idle while blocked", hint: "Device idle while blocked", width: 120.0, figures: true },
        Column { title: "Bubbles drained", hint: "Whole bubbles that began under it", width: 110.0, figures: true },
        Column { title: "Bubbles caused", hint: "Whole bubbles whose root cause it is", width: 105.0, figures: true },
        Column { title: "Refill", hint: "Later bubbles until work was queued again", width: 80.0, figures: true },
        Column {
            title: "Recoverable",
            hint: "What the span would lose without the calls, from the replay",
            width: 90.0,
            figures: true,
        },
        Column { title: "Median", hint: "Median length of a call", width: 80.0, figures: true },
        Column { title: "Longest", hint: "The longest call", width: 80.0, figures: true },
        Column { title: "Trace", hint: "The file", width: 90.0, figures: false },
    ];

    fn rows(&self) -> Vec<SyncRow> {
        let docs = self.0.iter().enumerate();
        docs.flat_map(|(doc, found)| {
            let rows = found.analysis.as_ref().map_or(0, |analysis| analysis.sync_calls.len());
            (0..rows).map(move |index| SyncRow { doc, index })
        })
        .collect()
    }

    fn text(&self, row: SyncRow, column: usize) -> String {
        let Some(found) = self.found(row) else { return String::new() };
        match column {
            0 => found.api.clone(),
            1 => found.site.clone().unwrap_or_default(),
            2 => format::count(found.calls()),
            9 if found.recoverable.is_none() => "–".to_owned(),
            12 => self.0[row.doc].name.clone(),
            _ => format::duration(self.figure(row, column)),
        }
    }

    fn figure(&self, row: SyncRow, column: usize) -> i64 {
        let Some(found) = self.found(row) else { return 0 };
        match column {
            2 => i64::try_from(found.calls()).unwrap_or(i64::MAX),
            3 => found.blocked.0,
            4 => found.useful_wait.0,
            5 => found.idle_while_blocked.0,
            DRAINED => found.bubbles_drained.0,
            7 => found.bubbles_caused.0,
            8 => found.refill.0,
            9 => found.recoverable.map_or(0, |ns| ns.0),
            10 => found.lengths.p50.0,
            _ => found.lengths.max.0,
        }
    }
}
