//! What a measured interval holds, from its first nanosecond to its last; worked out in the background.

use bubblescope::analysis::{Bubble, Constants, Marked, marked_watched};
use bubblescope::trace::{Interval, Ns};
use eframe::egui::{self, Ui};

use super::overview::{Figures, figures_ui};
use crate::background::{Background, Wanted};
use crate::document::{BubbleRef, Document};
use crate::format;

/// The figures of the measured interval.
#[derive(Debug, Default)]
pub struct Measured {
    figures: Background<(Interval, u64), Vec<Marked>>,
}

impl Measured {
    /// The figures of the interval that was measured last, one per document.
    pub fn figures(&self) -> Option<(Interval, &[Marked])> {
        self.figures.last().map(|((interval, _), figures)| (*interval, figures.as_slice()))
    }

    /// Shows the figures; gives the bubble that the user wants to see, and its document.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        docs: &[Document],
        measured: Option<Interval>,
        version: u64,
    ) -> Option<(usize, BubbleRef)> {
        let Some(interval) = measured else {
            ui.label("Drag on the ruler, or on the timeline with Shift held, to measure an interval.");
            return None;
        };
        let (from, to) = (format::moment(interval.start.0), format::moment(interval.end.0));
        ui.label(format!("{} from {from} to {to}", format::duration(interval.len().0)));
        if docs.iter().any(|doc| doc.analysis().is_none()) {
            ui.label("The analysis is not through yet.");
            return None;
        }
        let ctx = ui.ctx().clone();
        let figures = self.figures.get(&ctx, (interval, version), || {
            let known = |doc: &Document| doc.analysis().map_or_else(Vec::new, |analysis| analysis.devices.clone());
            let parts = docs.iter().map(|doc| (doc.trace.clone(), known(doc), doc.unshifted(interval)));
            let parts: Vec<_> = parts.collect();
            move |until: &Wanted| {
                let figures = parts.iter().map(|(trace, known, interval)| {
                    marked_watched(trace, known, *interval, &Constants::default(), until)
                });
                // What was cancelled is not looked at.
                figures.collect::<Result<_, _>>().unwrap_or_default()
            }
        });
        let Some(figures) = figures else {
            ui.spinner();
            return None;
        };
        let mut wanted = None;
        egui::ScrollArea::vertical().id_salt("measured").auto_shrink(false).show(ui, |ui| {
            for (at, (doc, figures)) in docs.iter().zip(figures).enumerate() {
                if docs.len() > 1 {
                    ui.heading(&doc.name);
                }
                if counts_beyond(doc, figures) {
                    ui.label(
                        "Part of it lies outside what was analysed, such as a workload's measured part: the bubbles \
                         there count here and are not drawn in the timeline.",
                    );
                }
                wanted =
                    figures_ui(ui, doc, &Figures::of_marked(figures), |_| ()).map(|bubble| (at, bubble)).or(wanted);
                if !figures.sync_calls.is_empty() {
                    ui.strong("Blocking calls in it");
                }
                for row in &figures.sync_calls {
                    let blocked = format::duration(row.blocked.0);
                    let drained = format::duration(row.bubbles_drained.0);
                    let calls = format::things(row.calls(), "call", "calls");
                    let drained = match row.bubbles_drained {
                        Ns::ZERO => "no bubble behind it".to_owned(),
                        _ => format!("{drained} of bubbles behind it"),
                    };
                    ui.label(format!("{} · {calls} · blocked for {blocked} · {drained}", row.api));
                }
            }
        });
        wanted
    }
}

/// Whether bubbles count in an interval that the document does not have.
fn counts_beyond(doc: &Document, figures: &Marked) -> bool {
    let known = |bubble: &Bubble| {
        let mut devices = doc.analysis().into_iter().flat_map(|analysis| &analysis.devices);
        let device = devices.find(|device| device.device == bubble.device);
        device.is_some_and(|device| !device.span.intersect(bubble.interval).is_empty())
    };
    !figures.devices.iter().flat_map(|device| &device.bubbles).all(known)
}
