//! The window: its state, what changes it, and its panels.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bubblescope::trace::{Interval, Ns, Trace};
use eframe::egui::{self, RichText, Ui};
use serde::{Deserialize, Serialize};

use crate::command::{COMMANDS, Command, of_event};
use crate::document::{BubbleRef, Document, Item, Pick};
use crate::load::{Ended, Loaded, Loading};
use crate::panels::{self, Align, Chosen, Panels, Tab};
use crate::theme::Palette;
use crate::timeline::{Action, Timeline};
use crate::view::{History, Viewport};

/// Share of the span that one press of a key moves.
const PAN_STEP: f64 = 0.15;
/// How much closer one press of a key zooms.
const ZOOM_STEP: f64 = 1.4;

/// Recent files that are kept.
const MOST_RECENT: usize = 10;
/// The name under which [`Kept`] is stored; another name when its fields change their meaning.
const KEPT: &str = "bubblescope-1";

/// What is kept from one start to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    recent: Vec<PathBuf>,
    names_width: f32,
    details: bool,
    tables: bool,
}

/// The application.
#[derive(Debug, Default)]
pub struct App {
    /// The opened traces, from top to bottom.
    pub docs: Vec<Document>,
    /// The timeline.
    pub timeline: Timeline,
    /// Messages to the user, the newest last.
    pub messages: Vec<String>,
    /// Whether the keys are listed.
    pub help: bool,
    /// Whether the details of the selection are shown.
    pub details: bool,
    /// Whether the panel below the timeline is shown.
    pub tables: bool,
    /// The panel below the timeline.
    pub panels: Panels,
    /// Changes whenever the documents do.
    version: u64,
    /// Files that were opened before, the latest first.
    pub recent: Vec<PathBuf>,
    /// What was typed so far of a file to open, while the window for it is open.
    opening: Option<String>,
    history: History,
    /// How many traces were asked for.
    asked: u64,
    loading: Vec<Loading>,
    now: f64,
}

impl App {
    /// An application that opens these files.
    pub fn new(ctx: &egui::Context, paths: &[PathBuf]) -> Self {
        let mut app = Self { details: true, tables: true, ..Self::default() };
        for path in paths {
            app.open(ctx, path);
        }
        app
    }

    /// Takes over what was kept when the window was closed last; what cannot be read is left out.
    pub fn restore(&mut self, storage: &dyn eframe::Storage) {
        let Some(kept) = eframe::get_value::<Kept>(storage, KEPT) else { return };
        self.recent = kept.recent;
        self.timeline.names_width = kept.names_width;
        (self.details, self.tables) = (kept.details, kept.tables);
    }

    /// Opens a file in the background.
    pub fn open(&mut self, ctx: &egui::Context, path: &Path) {
        self.recent.retain(|other| other != path);
        self.recent.insert(0, path.to_owned());
        self.recent.truncate(MOST_RECENT);
        let ctx = ctx.clone();
        self.wait_for(Loading::file(path, move || ctx.request_repaint()));
    }

    /// Shows a trace that is already in memory, and analyses it in the background.
    pub fn show(&mut self, ctx: &egui::Context, name: &str, trace: Trace) {
        let ctx = ctx.clone();
        self.wait_for(Loading::start(Path::new(name), move || ctx.request_repaint(), |_| Ok(trace)));
    }

    fn wait_for(&mut self, mut loading: Loading) {
        self.asked += 1;
        loading.order = self.asked;
        self.loading.push(loading);
    }

    /// Whether something is being opened or analysed.
    pub fn is_loading(&self) -> bool {
        !self.loading.is_empty()
    }

    /// Names of the files that are being opened, each with whether only its analysis is missing.
    pub fn loading(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.loading.iter().map(|loading| (loading.path.as_path(), loading.shown))
    }

    /// Takes what the loading threads have finished.
    fn poll(&mut self) {
        let mut loading = std::mem::take(&mut self.loading);
        loading.retain_mut(|one| {
            loop {
                match one.take() {
                    Ok(Some(Loaded::Document(document))) => {
                        let mut document = *document;
                        document.order = one.order;
                        self.add(document);
                    }
                    Ok(Some(Loaded::Analysis(analysis))) => {
                        if let Some(doc) = self.docs.iter_mut().find(|doc| doc.order == one.order) {
                            doc.set_analysis(Arc::clone(&analysis));
                            self.documents_changed();
                        }
                        return false;
                    }
                    Ok(Some(Loaded::Failed(message))) => {
                        self.messages.push(message);
                        return false;
                    }
                    Ok(None) => return true,
                    Err(Ended) => {
                        let name = one.path.display();
                        self.messages.push(format!("{name}: could not be shown because of a fault in Bubblescope"));
                        return false;
                    }
                }
            }
        });
        self.loading.append(&mut loading);
    }

    fn documents_changed(&mut self) {
        self.version += 1;
    }

    fn add(&mut self, document: Document) {
        let at = self.docs.partition_point(|other| other.order < document.order);
        self.docs.insert(at, document);
        if let Some(pick) = self.timeline.selected.as_mut().filter(|pick| pick.doc >= at) {
            pick.doc += 1;
        }
        self.documents_changed();
        if self.docs.len() == 1 {
            self.timeline.view = Viewport::of(self.docs[0].focus(), 0.02);
        }
    }

    /// All opened traces together.
    pub fn bounds(&self) -> Interval {
        let all = self.docs.iter().map(Document::interval);
        let all = all.reduce(|a, b| Interval::new(a.start.min(b.start), a.end.max(b.end)));
        all.unwrap_or(Interval::new(Ns::ZERO, Ns(1_000_000)))
    }

    fn everything(&self) -> Viewport {
        Viewport::of(self.bounds(), 0.02)
    }

    /// Moves the view, to be undone by going back.
    pub fn go(&mut self, view: Viewport) {
        let view = view.clamped(self.bounds());
        if view != self.timeline.view {
            self.history.leave(self.timeline.view, self.now);
            self.timeline.view = view;
        }
    }

    /// Does what the user did on the timeline or in a table.
    pub fn act(&mut self, action: Action) {
        match action {
            Action::View(view) => self.go(view),
            Action::Select(pick) => self.timeline.selected = pick,
            Action::ZoomTo(pick) => {
                self.select(pick);
                self.fit(pick);
            }
            Action::Measure(measured) => {
                self.timeline.measured = measured;
                if measured.is_some() {
                    self.panels.tab = Tab::Measure;
                }
            }
            Action::Fold(key) => self.timeline.arrangement.toggle(key),
            Action::Hide(key) => {
                self.timeline.arrangement.hidden.insert(key);
            }
            Action::ShowAllRows => self.timeline.arrangement.hidden.clear(),
        }
    }

    /// Selects a thing and makes sure that it is on screen.
    pub fn select(&mut self, pick: Pick) {
        self.timeline.selected = Some(pick);
        self.timeline.reveal(pick);
        if let Some(times) = self.times(pick) {
            self.go(self.timeline.view.showing(times));
        }
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

    /// Lays the traces over each other, the first one staying where it is.
    fn align(&mut self) {
        let starts = match self.panels.compare.align {
            Align::Start => None,
            Align::Iteration => self.panels.compare.found().map(|found| found.starts.clone()),
        };
        let first = starts.as_ref().and_then(|starts| starts.first()).map_or(0, |start| start.0);
        for (at, doc) in self.docs.iter_mut().enumerate() {
            let start = starts.as_ref().and_then(|starts| starts.get(at)).map_or(0, |start| start.0);
            doc.offset = first.saturating_sub(start);
        }
        self.go(self.everything());
    }

    /// Does a command.
    pub fn run(&mut self, ctx: &egui::Context, command: Command) {
        let view = self.timeline.view;
        let pointer = self.timeline.pointer.unwrap_or(0.5);
        match command {
            Command::Open => self.opening = Some(String::new()),
            Command::Reload => self.reload(ctx),
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
            Command::Back => {
                if let Some(view) = self.history.back(view) {
                    self.timeline.view = view;
                }
            }
            Command::Forward => {
                if let Some(view) = self.history.forward(view) {
                    self.timeline.view = view;
                }
            }
            Command::NextBubble => self.step_bubble(true),
            Command::PreviousBubble => self.step_bubble(false),
            Command::LongestBubble => self.longest_bubble(),
            Command::NextInLane => self.step_in_lane(true),
            Command::PreviousInLane => self.step_in_lane(false),
            Command::FollowLaunch => self.follow_launch(),
            Command::Deselect => {
                self.timeline.selected = None;
                self.timeline.measured = None;
                self.help = false;
                self.opening = None;
            }
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
            Command::Help => self.help = !self.help,
        }
    }

    fn reload(&mut self, ctx: &egui::Context) {
        let paths: Vec<PathBuf> = self.docs.drain(..).map(|doc| doc.path).collect();
        self.timeline.selected = None;
        self.documents_changed();
        for path in paths {
            self.open(ctx, &path);
        }
    }

    /// The document that commands about bubbles mean: that of the selection, else the first.
    fn current(&self) -> usize {
        self.timeline.selected.map_or(0, |pick| pick.doc)
    }

    /// Selects the bubble after, or before, the selection or the middle of the view.
    fn step_bubble(&mut self, forward: bool) {
        let current = self.current();
        let Some(doc) = self.docs.get(current) else { return };
        let selected = self.timeline.selected.map(|pick| pick.item);
        let view = doc.unshifted(self.timeline.view.interval());
        let from = match selected.and_then(|item| doc.times(item)) {
            Some(times) => times.start,
            None => Ns(view.start.0.midpoint(view.end.0)),
        };
        // Bubbles of several devices may start at one moment, so the order is by start and then device.
        let key = match selected {
            Some(Item::Bubble(at)) => (from, Some(at)),
            _ => (from, None),
        };
        let bubbles = doc.bubbles().map(|(at, bubble)| (bubble.interval.start, Some(at)));
        let next = if forward {
            bubbles.filter(|other| *other > key).min()
        } else {
            bubbles.filter(|other| *other < key).max()
        };
        if let Some((_, Some(at))) = next {
            self.show_bubble(current, at);
        }
    }

    fn longest_bubble(&mut self) {
        let current = self.current();
        let Some(doc) = self.docs.get(current) else { return };
        let longest = doc.bubbles().max_by_key(|(at, bubble)| (bubble.interval.len(), std::cmp::Reverse(*at)));
        if let Some((at, _)) = longest {
            self.show_bubble(current, at);
        }
    }

    /// Selects a bubble and, unless it can already be seen well, zooms so that it can.
    pub fn show_bubble(&mut self, doc: usize, at: BubbleRef) {
        let pick = Pick { doc, item: Item::Bubble(at) };
        self.timeline.selected = Some(pick);
        self.timeline.reveal(pick);
        let Some(times) = self.times(pick) else { return };
        let share = times.len().0 as f64 / self.timeline.view.span() as f64;
        if (0.02..0.8).contains(&share) {
            self.go(self.timeline.view.showing(times));
        } else {
            self.go(Viewport::of(times, 2.0));
        }
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

    fn follow_launch(&mut self) {
        let Some(pick) = self.timeline.selected else { return };
        let Some(doc) = self.docs.get(pick.doc) else { return };
        let other = match pick.item {
            Item::Op(op) => doc.trace.ops.launch(op).map(Item::Call),
            Item::Call(call) => doc.trace.call_ops(call).first().map(|&op| Item::Op(op)),
            Item::Bubble(at) => doc.bubble(at).and_then(|(_, bubble)| bubble.root.call).map(Item::Call),
            Item::Replay(_, call) => Some(Item::Call(call)),
            Item::Range(_) => None,
        };
        if let Some(item) = other {
            self.select(Pick { doc: pick.doc, item });
        }
    }

    fn keys(&mut self, ctx: &egui::Context) {
        if ctx.text_edit_focused() {
            return;
        }
        let commands: Vec<Command> = ctx.input(|input| input.events.iter().filter_map(of_event).collect());
        for command in commands {
            self.run(ctx, command);
        }
    }

    fn dropped(&mut self, ctx: &egui::Context) {
        let files = ctx.input(|input| input.raw.dropped_files.clone());
        for file in files {
            self.open(ctx, file.path());
        }
    }

    /// Shows one frame.
    pub fn frame(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.now = ctx.input(|input| input.time);
        self.poll();
        self.dropped(&ctx);
        self.keys(&ctx);
        egui::Panel::top("bar").show(ui, |ui| self.bar_ui(&ctx, ui));
        if !self.messages.is_empty() {
            egui::Panel::top("messages").show(ui, |ui| self.messages_ui(ui));
        }
        let mut actions = Vec::new();
        let mut chosen = Vec::new();
        if self.tables && !self.docs.is_empty() {
            egui::Panel::bottom("tables").resizable(true).default_size(270.0).show(ui, |ui| {
                // Without it the panel would take the size of what it shows at the moment.
                ui.set_min_height(ui.available_height());
                chosen = self.panels.show(ui, &self.docs, &self.timeline, self.version);
            });
        }
        if self.details && !self.docs.is_empty() {
            egui::Panel::right("details").default_size(330.0).show(ui, |ui| {
                egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                    panels::details_ui(ui, &self.docs, &self.timeline, &mut actions);
                });
            });
        }
        egui::CentralPanel::no_frame().show(ui, |ui| {
            if self.docs.is_empty() {
                self.welcome_ui(ui);
            } else {
                actions.extend(self.timeline.show(ui, &self.docs));
            }
        });
        for chosen in chosen {
            match chosen {
                Chosen::Action(action) => actions.push(action),
                Chosen::Bubble(Pick { doc, item: Item::Bubble(at) }) => self.show_bubble(doc, at),
                Chosen::Bubble(pick) => actions.push(Action::ZoomTo(pick)),
                Chosen::Align => self.align(),
                Chosen::Call(doc, call) => actions.push(Action::ZoomTo(Pick { doc, item: Item::Call(call) })),
            }
        }
        for action in actions {
            self.act(action);
        }
        if self.help {
            self.help_ui(&ctx);
        }
        if self.opening.is_some() {
            self.open_ui(&ctx);
        }
    }

    fn bar_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        let palette = Palette::of(ui.visuals());
        ui.horizontal(|ui| {
            ui.strong("Bubblescope");
            ui.separator();
            for doc in &self.docs {
                ui.label(&doc.name);
                ui.colored_label(palette.weak_text, panels::summary(doc));
            }
            for loading in &self.loading {
                ui.spinner();
                let doing = if loading.shown { "analysing" } else { "reading" };
                ui.label(format!("{doing} {}", loading.path.display()));
            }
            if !self.loading.is_empty() && ui.button("Cancel").clicked() {
                self.loading.clear();
            }
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                for (command, label) in [
                    (Command::Help, "?"),
                    (Command::ToggleTheme, "Theme"),
                    (Command::FitAll, "Fit"),
                    (Command::Open, "Open…"),
                ] {
                    if ui.button(label).on_hover_text(command.entry().title).clicked() {
                        self.run(ctx, command);
                    }
                }
            });
        });
    }

    fn messages_ui(&mut self, ui: &mut Ui) {
        let mut closed = None;
        for (at, message) in self.messages.iter().enumerate() {
            ui.horizontal(|ui| {
                if ui.small_button("Dismiss").clicked() {
                    closed = Some(at);
                }
                ui.colored_label(ui.visuals().error_fg_color, message);
            });
        }
        if let Some(at) = closed {
            self.messages.remove(at);
        }
    }

    fn welcome_ui(&self, ui: &mut Ui) {
        ui.centered_and_justified(|ui| {
            let text = if self.loading.is_empty() {
                "Drop a trace here, or start with: bubblescope TRACE…\n\n\
                 Traces: .bubbles.parquet, .bubcap, PyTorch or Kineto JSON, Nsight Systems .sqlite"
            } else {
                "Opening…"
            };
            ui.label(RichText::new(text).size(16.0).weak());
        });
    }

    /// The window that asks for a file.
    fn open_ui(&mut self, ctx: &egui::Context) {
        let mut chosen = None;
        let mut keep = true;
        egui::Window::new("Open a trace").open(&mut keep).collapsible(false).resizable(false).show(ctx, |ui| {
            let Some(text) = &mut self.opening else { return };
            ui.horizontal(|ui| {
                let label = ui.label("File");
                let field = ui.add(egui::TextEdit::singleline(text).desired_width(480.0)).labelled_by(label.id);
                if ui.memory(|memory| memory.focused().is_none()) {
                    field.request_focus();
                }
                let entered = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
                if (ui.button("Open").clicked() || entered) && !text.trim().is_empty() {
                    chosen = Some(PathBuf::from(text.trim()));
                }
            });
            ui.weak("Or drop files onto the window.");
            for path in &self.recent {
                if ui.link(path.display().to_string()).clicked() {
                    chosen = Some(path.clone());
                }
            }
        });
        if let Some(path) = chosen {
            self.open(ctx, &path);
            keep = false;
        }
        if !keep {
            self.opening = None;
        }
    }

    fn help_ui(&mut self, ctx: &egui::Context) {
        let mut open = self.help;
        egui::Window::new("Keys").open(&mut open).collapsible(false).resizable(false).show(ctx, |ui| {
            let mut group = "";
            egui::Grid::new("keys").num_columns(2).spacing([24.0, 4.0]).show(ui, |ui| {
                for entry in COMMANDS {
                    if entry.group != group {
                        group = entry.group;
                        ui.strong(group);
                        ui.end_row();
                    }
                    ui.label(entry.title);
                    let keys: Vec<String> = entry.keys.iter().map(crate::command::Shortcut::text).collect();
                    ui.monospace(keys.join("  "));
                    ui.end_row();
                }
            });
            ui.separator();
            ui.label("Ctrl+wheel zooms at the pointer, drag moves, drag on the ruler or with Shift measures.");
            ui.label("A double click zooms to what is under the pointer.");
        });
        self.help = open;
    }
}

impl eframe::App for App {
    fn ui(&mut self, ui: &mut Ui, _frame: &mut eframe::Frame) {
        self.frame(ui);
    }

    fn save(&mut self, storage: &mut dyn eframe::Storage) {
        let kept = Kept {
            recent: self.recent.clone(),
            names_width: self.timeline.names_width,
            details: self.details,
            tables: self.tables,
        };
        eframe::set_value(storage, KEPT, &kept);
    }
}
