//! The table of bubbles.

use bubblescope::analysis::Bubble;

use crate::describe;
use crate::document::{BubbleRef, Document};
use crate::format;
use crate::table::{Column, Source};

/// One bubble of one trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BubbleRow {
    /// Position of the document.
    pub doc: usize,
    /// The bubble.
    pub at: BubbleRef,
}

/// The bubbles of all opened traces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bubbles<'a>(pub(super) &'a [Document]);

/// The column of lengths.
pub(super) const LENGTH: usize = 1;

impl Bubbles<'_> {
    fn bubble(&self, row: BubbleRow) -> Option<(&Document, &Bubble)> {
        let doc = self.0.get(row.doc)?;
        Some((doc, doc.bubble(row.at)?.1))
    }
}

impl Source for Bubbles<'_> {
    type Row = BubbleRow;

    const COLUMNS: &'static [Column] = &[
        Column { title: "Start", hint: "When the device ran dry, from the trace's start", width: 140.0, figures: true },
        Column { title: "Length", hint: "How long nothing ran", width: 80.0, figures: true },
        Column { title: "Cause", hint: "The one reason that best explains it", width: 110.0, figures: false },
        Column { title: "Confidence", hint: "How sure that is", width: 80.0, figures: false },
        Column { title: "Call", hint: "The call to blame, or the launch that came late", width: 170.0, figures: false },
        Column {
            title: "Drained by",
            hint: "The call that was open when the device ran dry",
            width: 150.0,
            figures: false,
        },
        Column { title: "Before", hint: "The op before", width: 160.0, figures: false },
        Column { title: "After", hint: "The op after", width: 160.0, figures: false },
        Column { title: "GPU", hint: "The device", width: 50.0, figures: true },
        Column { title: "Trace", hint: "The file", width: 90.0, figures: false },
    ];

    fn rows(&self) -> Vec<BubbleRow> {
        let docs = self.0.iter().enumerate();
        docs.flat_map(|(doc, found)| found.bubbles().map(move |(at, _)| BubbleRow { doc, at })).collect()
    }

    fn text(&self, row: BubbleRow, column: usize) -> String {
        let Some((doc, bubble)) = self.bubble(row) else { return String::new() };
        let call = |call| doc.trace.call_name(call).to_owned();
        match column {
            0 => format::moment(bubble.interval.start.0),
            LENGTH => format::duration(bubble.interval.len().0),
            2 => bubble.root.cause.to_string(),
            3 => bubble.root.confidence.to_string(),
            4 => bubble.root.call.map_or_else(String::new, call),
            5 => bubble.drained_by.map_or_else(String::new, |drain| call(drain.call)),
            6 => describe::op_name(doc, bubble.before).to_owned(),
            7 => describe::op_name(doc, bubble.after).to_owned(),
            8 => self.figure(row, column).to_string(),
            _ => doc.name.clone(),
        }
    }

    fn figure(&self, row: BubbleRow, column: usize) -> i64 {
        let Some((doc, bubble)) = self.bubble(row) else { return 0 };
        match column {
            0 => bubble.interval.start.0,
            LENGTH => bubble.interval.len().0,
            _ => doc.trace.devices.get(bubble.device.index()).map_or(0, |device| i64::from(device.id)),
        }
    }
}
