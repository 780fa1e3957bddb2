//! What commands and clicks do to the view and the selection.

use std::sync::Arc;

use bubblescope::trace::{Interval, Ns};
use eframe::egui;

use super::{App, Stop};
use crate::arrange::RowAct;
use crate::command::{Command, of_event};
use crate::dialog::{Export, Purpose};
use crate::document::{BubbleRef, Document, Item, Pick, blames};
use crate::panels::{BubbleRow, Tab};
use crate::timeline::Action;
use crate::view::Viewport;

/// Share of the span that one press of a key moves.
const PAN_STEP: f64 = 0.15;
/// How much closer one press of a key zooms.
const ZOOM_STEP: f64 = 1.4;
/// The least share of the view that a thing takes which can be seen among what is around it.
const SEEN: f64 = 0.02;

impl App {
    /// All opened traces together.
    pub fn bounds(&self) -> Interval {
        let all = self.docs.iter().map(Document::interval);
        let all = all.reduce(|a, b| Interval::new(a.start.min(b.start), a.end.max(b.end)));
        all.unwrap_or(Interval::new(Ns::ZERO, Ns(1_000_000)))
    }

    pub(super) fn everything(&self) -> Viewport {
        Viewport::of(self.bounds(), 0.02)
    }

    /// What is worth a look of all traces: of a workload's run its measured part.
    fn start_view(&self) -> Viewport {
        let all = self.docs.iter().map(Document::focus);
        let all = all.reduce(|a, b| Interval::new(a.start.min(b.start), a.end.max(b.end)));
        Viewport::of(all.unwrap_or(self.bounds()), 0.02).clamped(self.bounds())
    }

    /// What is shown and selected.
    fn stop(&self) -> Stop {
        Stop { view: self.timeline.view, selected: self.timeline.selected }
    }

    /// Moves the view, to be undone by going back.
    pub fn go(&mut self, view: Viewport) {
        self.go_to(view, self.timeline.selected);
    }

    /// Selects something and moves the view, to be undone together by going back.
    fn go_to(&mut self, view: Viewport, selected: Option<Pick>) {
        let view = view.clamped(self.bounds());
        let stop = Stop { view, selected };
        if stop != self.stop() {
            self.history.leave(self.stop(), self.now);
            (self.timeline.view, self.timeline.selected) = (view, selected);
        }
    }

    /// Shows again what was gone away from.
    fn return_to(&mut self, stop: Option<Stop>) {
        if let Some(Stop { view, selected }) = stop {
            (self.timeline.view, self.timeline.selected) = (view, selected);
            selected.into_iter().for_each(|pick| self.timeline.reveal(pick));
        }
    }

    /// Does what the user did on the timeline or in a table.
    pub fn act(&mut self, action: Action) {
        match action {
            Action::View(view) => self.go(view),
            Action::Select(pick) => self.timeline.selected = pick,
            Action::ZoomTo(pick) => {
                self.timeline.expose(&self.docs, pick);
                self.select(pick);
                self.fit(pick);
            }
            Action::Show(pick) => {
                self.timeline.expose(&self.docs, pick);
                self.show_thing(pick);
            }
            Action::Measure(measured) => {
                self.timeline.measured = measured;
                if measured.is_some() {
                    self.panels.tab = Tab::Measure;
                }
            }
        }
    }

    /// Selects a thing and makes sure that it is on screen.
    pub fn select(&mut self, pick: Pick) {
        self.timeline.reveal(pick);
        let view = self.timeline.view;
        let view = self.times(pick).map_or(view, |times| view.showing(times));
        self.go_to(view, Some(pick));
    }

    /// When a thing happened, on the common time scale.
    pub fn times(&self, pick: Pick) -> Option<Interval> {
        let doc = self.docs.get(pick.doc)?;
        Some(doc.shifted(doc.times(pick.item)?))
    }

    fn fit(&mut self, pick: Pick) {
        if let Some(times) = self.times(pick) {
            self.go(Viewport::of(times, 1.0));
        }
    }

    /// Lays the traces over each other, the first one staying where it is. Where nothing has been looked at yet, all
    /// that is worth a look is shown.
    pub(super) fn align(&mut self) {
        self.lay_over();
        if self.placed == Some(self.timeline.view) {
            self.timeline.view = self.start_view();
            self.placed = Some(self.timeline.view);
        }
    }

    fn lay_over(&mut self) {
        let overlay = self.panels.compare.overlay();
        let moment = |at: usize| overlay.as_ref().and_then(|overlay| overlay.moments.get(at)).map_or(0, |ns| ns.0);
        let first = moment(0);
        let mut moved = false;
        for (at, doc) in self.docs.iter_mut().enumerate() {
            let offset = first.saturating_sub(moment(at));
            moved |= std::mem::replace(&mut doc.offset, offset) != offset;
        }
        if moved {
            // Tables say where on the ruler things are.
            self.documents_changed();
        }
    }

    /// Lays the traces over each other as was asked for, and shows what they are compared at.
    pub(super) fn show_aligned(&mut self) {
        self.lay_over();
        let overlay = self.panels.compare.overlay();
        let view = match &overlay {
            Some(overlay) => {
                let first = overlay.moments.first().map_or(0, |moment| moment.0);
                let shown = Interval::new(Ns(first), Ns(first.saturating_add(overlay.length.0)));
                Viewport::of(shown, 0.1)
            }
            None => self.everything(),
        };
        self.go(view);
    }

    /// Does a command.
    pub fn run(&mut self, ctx: &egui::Context, command: Command) {
        let before = self.timeline.view;
        self.obey(ctx, command);
        if self.timeline.view != before {
            self.timeline.glide();
        }
    }

    fn obey(&mut self, ctx: &egui::Context, command: Command) {
        let view = self.timeline.view;
        let pointer = self.timeline.pointer.unwrap_or(0.5);
        match command {
            Command::Open => self.ask_for(ctx, Purpose::Open),
            Command::Reload => self.reload(ctx),
            Command::Add => self.ask_for(ctx, Purpose::Add),
            Command::Close => self.close(self.meant()),
            Command::Quit => ctx.send_viewport_cmd(egui::ViewportCommand::Close),
            Command::Record => self.recorder.open = !self.recorder.open,
            Command::SavePng => self.ask_for(ctx, Purpose::Save(Export::Png)),
            Command::SaveSvg => self.ask_for(ctx, Purpose::Save(Export::Svg)),
            Command::ReportText => self.ask_for(ctx, Purpose::Save(Export::ReportText)),
            Command::ReportJson => self.ask_for(ctx, Purpose::Save(Export::ReportJson)),
            Command::CompareJson => self.ask_for(ctx, Purpose::Save(Export::CompareJson)),
            Command::CompareCsv => self.ask_for(ctx, Purpose::Save(Export::CompareCsv)),
            Command::RowAbove => self.timeline.step_row(&self.docs, false),
            Command::RowBelow => self.timeline.step_row(&self.docs, true),
            Command::MoveRowUp => self.timeline.arrange(&self.docs, RowAct::MoveUp),
            Command::MoveRowDown => self.timeline.arrange(&self.docs, RowAct::MoveDown),
            Command::PinRow => self.timeline.arrange(&self.docs, RowAct::Pin),
            Command::FoldRow => self.timeline.arrange(&self.docs, RowAct::Fold),
            Command::HideRow => self.timeline.arrange(&self.docs, RowAct::Hide),
            Command::ShowRows => self.timeline.arrangement.show_all(),
            Command::ZoomIn => self.go(view.zoomed(ZOOM_STEP, pointer)),
            Command::ZoomOut => self.go(view.zoomed(1.0 / ZOOM_STEP, pointer)),
            Command::PanLeft => self.go(view.panned(-PAN_STEP)),
            Command::PanRight => self.go(view.panned(PAN_STEP)),
            Command::FitSelection => match (self.timeline.measured, self.timeline.selected) {
                (Some(measured), _) => self.go(Viewport::of(measured, 0.05)),
                (None, Some(pick)) => self.fit(pick),
                (None, None) => self.go(self.everything()),
            },
            Command::FitAll => self.go(self.everything()),
            Command::StartView => self.go(self.start_view()),
            Command::Back => {
                let stop = self.history.back(self.stop());
                self.return_to(stop);
            }
            Command::Forward => {
                let stop = self.history.forward(self.stop());
                self.return_to(stop);
            }
            Command::NextBubble => self.step_bubble(ctx, true),
            Command::PreviousBubble => self.step_bubble(ctx, false),
            Command::LongestBubble => self.longest_bubble(),
            Command::NextInLane => self.step_in_lane(true),
            Command::PreviousInLane => self.step_in_lane(false),
            Command::FollowLaunch => self.follow_launch(),
            Command::Deselect => self.step_out(),
            Command::Search => {
                self.tables = true;
                self.panels.tab = Tab::Search;
                self.panels.search.focus = true;
            }
            Command::ToggleTables => self.tables = !self.tables,
            Command::ToggleDetails => self.details = !self.details,
            Command::ToggleTheme => {
                let dark = ctx.global_style().visuals.dark_mode;
                ctx.set_theme(if dark { egui::Theme::Light } else { egui::Theme::Dark });
            }
            Command::Findings => {
                self.tables = true;
                self.panels.tab = Tab::Findings;
                self.panels.findings.choose_of(self.timeline.selected);
            }
            Command::Help => self.help = !self.help,
        }
    }

    /// The trace that is to be closed: that of the selection, else the last. Where the pointer happens to be says nothing
    /// about what is meant.
    pub(super) fn meant(&self) -> usize {
        let of = self.timeline.selected.map(|pick| pick.doc);
        of.filter(|doc| *doc < self.docs.len()).unwrap_or(self.docs.len().saturating_sub(1))
    }

    /// The document that commands about one trace mean: that of the selection, else the first.
    pub(super) fn current(&self) -> usize {
        self.timeline.selected.map_or(0, |pick| pick.doc)
    }

    /// Selects the bubble after, or before, the selection or the middle of the view: of those that the table of bubbles
    /// shows, if it is filtered.
    pub(super) fn step_bubble(&mut self, ctx: &egui::Context, forward: bool) {
        let filtered = match self.filtered_bubbles(ctx) {
            Some((rows, true)) => Some(rows),
            // They come a few frames later.
            Some((_, false)) => return self.stepping = Some(forward),
            None => None,
        };
        let of = |doc: usize| filtered.as_ref().map(|rows| rows.iter().filter(move |row| row.doc == doc));
        let has_any = |doc: usize| of(doc).is_none_or(|mut rows| rows.next().is_some());
        // What is selected says in which trace to go on, unless the filter lets through only another's.
        let selected = self.timeline.selected.filter(|pick| has_any(pick.doc));
        let view = self.timeline.view.interval();
        let (from, at) = match selected {
            Some(pick) => (
                self.times(pick).map_or(view.start, |times| times.start),
                if let Item::Bubble(at) = pick.item { Some(at) } else { None },
            ),
            None if forward => (view.start, None),
            None => (view.end, None),
        };
        let next = |(index, doc): (usize, &Document)| {
            let from = doc.unshifted(Interval::new(from, from)).start;
            let at = match of(index) {
                None => doc.next_bubble(from, at, forward),
                Some(rows) => {
                    let key = (from, at);
                    let started = rows.filter_map(|row| Some((doc.times(Item::Bubble(row.at))?.start, Some(row.at))));
                    let found = if forward {
                        started.filter(|other| *other > key).min()
                    } else {
                        started.filter(|other| *other < key).max()
                    };
                    found.and_then(|(_, at)| at)
                }
            }?;
            let pick = Pick { doc: index, item: Item::Bubble(at) };
            Some((self.times(pick)?.start, pick))
        };
        let docs = self.docs.iter().enumerate();
        let docs = docs.filter(|(index, _)| selected.is_none_or(|pick| pick.doc == *index));
        let found = docs.filter_map(next);
        let found = if forward {
            found.min_by_key(|(start, _)| *start)
        } else {
            // Of bubbles that start together the first trace's, as forward.
            found.rev().max_by_key(|(start, _)| *start)
        };
        if let Some((_, pick)) = found {
            self.show_thing(pick);
        }
    }

    /// The bubbles that the table of bubbles shows, and whether it is done with filtering; `None` when it shows all.
    pub(super) fn filtered_bubbles(&mut self, ctx: &egui::Context) -> Option<(Arc<[BubbleRow]>, bool)> {
        let table = &mut self.panels.bubbles;
        let source = BubbleRow::source(&self.docs, self.version);
        (!self.docs.is_empty() && !table.filter.trim().is_empty()).then(|| table.rows(ctx, &self.docs, &source))
    }

    /// Selects the longest bubble: of the trace of the selection, else of all.
    fn longest_bubble(&mut self) {
        let of = self.timeline.selected.map(|pick| pick.doc);
        let docs = self.docs.iter().enumerate().filter(|(doc, _)| of.is_none_or(|of| of == *doc));
        let longest = docs.filter_map(|(doc, found)| {
            let at = found.longest_bubble(|_| true)?;
            Some((found.bubble(at)?.1.interval.len(), Pick { doc, item: Item::Bubble(at) }))
        });
        // Of equals the first.
        if let Some((_, pick)) = longest.rev().max_by_key(|(length, _)| *length) {
            self.show_thing(pick);
        }
    }

    /// Goes one step out of what the user is in: a dialog, messages, the measured interval, the selection.
    fn step_out(&mut self) {
        if self.dialogs.is_shown() {
            self.dialogs.close();
        } else if self.help {
            self.help = false;
        } else if self.recorder.open {
            self.recorder.open = false;
        } else if !self.messages.is_empty() {
            self.messages.clear();
        } else if self.timeline.measured.is_some() {
            self.timeline.measured = None;
        } else {
            self.timeline.selected = None;
        }
    }

    /// Selects a bubble and shows it.
    pub fn show_bubble(&mut self, doc: usize, at: BubbleRef) {
        self.show_thing(Pick { doc, item: Item::Bubble(at) });
    }

    /// Selects a thing and, unless it can already be seen well, zooms so that it can.
    pub fn show_thing(&mut self, pick: Pick) {
        self.timeline.reveal(pick);
        let view = self.timeline.view;
        let view = self.times(pick).map_or(view, |times| {
            let share = times.len().0 as f64 / view.span() as f64;
            if (SEEN..0.8).contains(&share) { view.showing(times) } else { Viewport::of(times, 2.0) }
        });
        self.go_to(view, Some(pick));
    }

    /// Selects a thing and shows it together with the bubble that it caused or began, unless it could then not be seen.
    pub fn show_place(&mut self, pick: Pick) {
        let Pick { doc, item: Item::Call(call) } = pick else {
            return match pick.item {
                Item::Bubble(at) => self.show_bubble(pick.doc, at),
                _ => self.act(Action::ZoomTo(pick)),
            };
        };
        self.timeline.expose(&self.docs, pick);
        let Some(times) = self.times(pick) else { return };
        let mut shown = times;
        if let Some(found) = self.docs.get(doc) {
            let bubble = found.bubbles().find(|(_, bubble)| blames(bubble, call));
            if let Some(bubble) = bubble.map(|(_, bubble)| found.shifted(bubble.interval)) {
                shown = Interval::new(shown.start.min(bubble.start), shown.end.max(bubble.end));
            }
        }
        let view = Viewport::of(shown, 1.0);
        let widest = times.len().0.max(1) as f64 / SEEN;
        let middle = (times.start.0.midpoint(times.end.0) - view.start()) as f64 / view.span() as f64;
        self.go_to(view.zoomed((view.span() as f64 / widest).max(1.0), middle), Some(pick));
    }

    fn step_in_lane(&mut self, forward: bool) {
        let Some(pick) = self.timeline.selected else {
            return self.run_pan(forward);
        };
        let next = self.docs.get(pick.doc).and_then(|doc| {
            let spot = doc.scene.find(&doc.trace, pick.item, doc.times(pick.item)?.start.0)?;
            let (kind, lane) = doc.scene.lane(spot)?;
            let at = if forward { spot.at + 1 } else { spot.at.checked_sub(1)? };
            (at < lane.len()).then(|| kind.item(lane.item(at)))
        });
        if let Some(item) = next {
            self.select(Pick { doc: pick.doc, item });
        }
    }

    fn run_pan(&mut self, forward: bool) {
        self.go(self.timeline.view.panned(if forward { PAN_STEP } else { -PAN_STEP }));
    }

    /// Selects what the selection hangs together with, or goes back to where this led here from.
    fn follow_launch(&mut self) {
        let Some(pick) = self.timeline.selected else {
            let hint = "Select an op, a call or a bubble first: L leads from it to what it hangs together with.";
            return self.saved = Some((hint.to_owned(), self.now));
        };
        let back = self.followed.filter(|(_, to)| *to == pick).map(|(from, _)| from);
        let other = back.or_else(|| Some(Pick { doc: pick.doc, item: self.docs.get(pick.doc)?.other_end(pick.item)? }));
        if let Some(other) = other {
            self.followed = Some((pick, other));
            self.act(Action::Show(other));
        }
    }

    pub(super) fn keys(&mut self, ctx: &egui::Context) {
        // Escape leaves a field or closes a menu, and nothing else with it. egui has taken the focus away by now.
        let escaped = ctx.input(|input| input.key_pressed(egui::Key::Escape));
        let within = std::mem::take(&mut self.typing) || egui::Popup::is_any_open(ctx);
        if escaped && within && !self.dialogs.is_shown() {
            if std::mem::take(&mut self.timeline.filtering) {
                self.timeline.arrangement.filter.clear();
            }
            return;
        }
        if ctx.text_edit_focused() {
            return;
        }
        let commands: Vec<Command> = ctx.input(|input| input.events.iter().filter_map(of_event).collect());
        for command in commands {
            self.run(ctx, command);
        }
    }
}
