//! What a measured interval holds: the analysis of just that interval, made in the background.

use bubblescope::analysis::{Analysis, Options, analyze};
use bubblescope::trace::{Interval, Ns};
use eframe::egui::{self, Ui};

use super::overview::figures_ui;
use crate::background::{Background, Wanted};
use crate::document::{BubbleRef, Document};
use crate::format;

/// The figures of the measured interval.
#[derive(Debug, Default)]
pub struct Measured {
    figures: Background<(Interval, u64), Vec<Analysis>>,
}

impl Measured {
    /// The figures of the interval that was measured last, one per document.
    pub fn figures(&self) -> Option<(Interval, &[Analysis])> {
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
        let ctx = ui.ctx().clone();
        let figures = self.figures.get(&ctx, (interval, version), || {
            let windows: Vec<_> = docs.iter().map(|doc| (doc.trace.clone(), doc.unshifted(interval))).collect();
            move |_: &Wanted| {
                let figures = windows
                    .iter()
                    .map(|(trace, window)| analyze(trace, &Options { window: Some(*window), ..Options::default() }));
                figures.collect()
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
                wanted = figures_ui(ui, doc, figures, |_| ()).map(|bubble| (at, bubble)).or(wanted);
                if !figures.sync_calls.is_empty() {
                    ui.strong("Blocking calls in it");
                }
                for row in &figures.sync_calls {
                    let blocked = format::duration(row.blocked.0);
                    let drained = format::duration(row.bubbles_drained.0);
                    let calls = format::things(row.calls(), "call", "calls");
                    let drained = match row.bubbles_drained {
                        Ns::ZERO => "no bubble began under it".to_owned(),
                        _ => format!("bubbles that began under it: {drained}"),
                    };
                    ui.label(format!("{} · {calls} · blocked for {blocked} · {drained}", row.api));
                }
            }
        });
        wanted
    }
}
