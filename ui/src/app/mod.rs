//! The window: its state, what changes it, and its panels.

mod bar;
mod commands;
mod files;
mod messages;
mod open_files;
mod pictures;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use bubblescope::open::recordings_in;
use bubblescope::progress::Watch;
use bubblescope::trace::Trace;
use eframe::egui::{self, Pos2, Rect, Ui};
use serde::{Deserialize, Serialize};

use crate::arrange::Arrangement;
use crate::background;
use crate::command::Command;
use crate::dialog::{Export, FileDialogs, PASSES};
use crate::document::{Document, Pick};
use crate::load::{Ended, Loaded, Loading, Stage};
use crate::panels::{self, Chosen, Panels, Recorder, Versions};
use crate::theme::Palette;
use crate::timeline::{Action, Timeline};
use crate::view::{History, Viewport};
use files::Writing;
pub use messages::{About, Messages};
pub use pictures::Gpu;

/// Recent files that are kept.
const MOST_RECENT: usize = 10;
/// Recordings of a folder that are opened at most: each takes memory and rows.
const MOST_OF_FOLDER: usize = 8;
/// The panel below the timeline.
const TABLES: &str = "tables";
/// Its height, unless the overview needs more.
const TABLES_HEIGHT: f32 = 270.0;
/// Its least height.
const LEAST_TABLES: f32 = 90.0;
/// The width of the details, and their least.
const DETAILS_WIDTH: f32 = 330.0;
const LEAST_DETAILS: f32 = 150.0;
/// The height that most details take.
const DETAILS_HEIGHT: f32 = 400.0;
/// The width that the details leave to the timeline, with its names.
const LEAST_TIMELINE_WIDTH: f32 = 420.0;
/// The name under which [`Kept`] is stored; another name when its fields change their meaning.
const KEPT: &str = "bubblescope-1";

/// What is kept from one start to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    recent: Vec<PathBuf>,
    names_width: f32,
    details: bool,
    tables_sized: bool,
    command: String,
    arrangement: Arrangement,
}

/// Where going back and forward stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stop {
    view: Viewport,
    selected: Option<Pick>,
}

/// The application.
#[derive(Debug, Default)]
pub struct App {
    /// The opened traces, from top to bottom.
    pub docs: Vec<Document>,
    /// The timeline.
    pub timeline: Timeline,
    /// What is told above the timeline.
    pub messages: Messages,
    /// Whether the keys are listed.
    pub help: bool,
    /// Whether the details of the selection are shown.
    pub details: bool,
    /// Whether the panel below the timeline is shown.
    pub tables: bool,
    /// The panel below the timeline.
    pub panels: Panels,
    /// Whether the user has given it its height.
    tables_sized: bool,
    /// Changes whenever something is known that was not.
    version: u64,
    /// Changes whenever the opened traces do.
    traces: u64,
    /// Files that were opened before, the latest first.
    pub recent: Vec<PathBuf>,
    /// The dialogs for files.
    pub dialogs: FileDialogs,
    /// The window that records.
    pub recorder: Recorder,
    /// What to save once the frame is painted.
    saving: Option<(Export, PathBuf)>,
    /// What paints pictures.
    pub gpu: Option<Gpu>,
    writing: Writing,
    /// What was saved last, and when.
    saved: Option<(String, f64)>,
    /// The view that what is open was first shown in; `None` while nothing is open.
    placed: Option<Viewport>,
    history: History<Stop>,
    /// Whether a field had the keyboard in the last frame.
    typing: bool,
    /// Where the last step from an op to its launch, or the like, led from and to.
    followed: Option<(Pick, Pick)>,
    /// Whether to go to the next bubble, or to the one before, as soon as the filtered ones are known.
    stepping: Option<bool>,
    /// The last of the traces that others were opened instead of.
    replaced: u64,
    /// How many traces were asked for.
    asked: u64,
    /// Of those that were asked for together, the last that are shown: see [`Loading::together`].
    begun: u64,
    loading: Vec<Loading>,
    now: f64,
}

impl App {
    /// An application that opens these files.
    pub fn new(ctx: &egui::Context, paths: &[PathBuf]) -> Self {
        Palette::apply(ctx);
        ctx.options_mut(|options| options.max_passes = PASSES);
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
        self.details = kept.details;
        self.tables_sized = kept.tables_sized;
        self.recorder.command = kept.command;
        self.timeline.arrangement = kept.arrangement;
    }

    /// Opens a file in the background, or every recording in a folder.
    pub fn open(&mut self, ctx: &egui::Context, path: &Path) {
        if !path.is_dir() {
            return self.open_file(ctx, path);
        }
        let failed = About::Opening(self.asked);
        match recordings_in(path) {
            Ok((found, _)) if found.is_empty() => {
                self.messages.push(failed, format!("there is no recording in {}", path.display()));
            }
            Ok((found, _)) => {
                if found.len() > MOST_OF_FOLDER {
                    let (folder, count) = (path.display(), found.len());
                    let told = format!(
                        "{folder} holds {count} recordings, of which the first {MOST_OF_FOLDER} are opened; `bubble-report \
                         {folder}` compares them all"
                    );
                    // They are asked for next.
                    self.messages.push(About::Opening(self.asked + 1), told);
                }
                found.iter().take(MOST_OF_FOLDER).for_each(|file| self.open_file(ctx, file));
            }
            Err(error) => {
                self.messages.push(failed, format!("cannot read the folder {}: {error}", path.display()));
            }
        }
    }

    fn open_file(&mut self, ctx: &egui::Context, path: &Path) {
        let ctx = ctx.clone();
        self.wait_for(Loading::file(path, move || ctx.request_repaint()));
    }

    /// Opens files instead of what is open, which stays until the first of them is read.
    pub fn open_instead(&mut self, ctx: &egui::Context, paths: &[PathBuf]) {
        let last = self.asked;
        let before = self.loading.len();
        paths.iter().for_each(|path| self.open(ctx, path));
        self.loading[before..].iter_mut().for_each(|loading| loading.instead_of = Some(last));
    }

    /// Opens what `read` reads, in the background.
    pub fn open_with(
        &mut self,
        ctx: &egui::Context,
        name: &str,
        read: impl FnOnce(&Path, &dyn Watch) -> anyhow::Result<Trace> + Send + 'static,
    ) {
        let ctx = ctx.clone();
        self.wait_for(Loading::start(Path::new(name), move || ctx.request_repaint(), read));
    }

    /// Shows a trace that is already in memory, and analyses it in the background.
    pub fn show(&mut self, ctx: &egui::Context, name: &str, trace: Trace) {
        self.open_with(ctx, name, |_, _| Ok(trace));
    }

    /// Notes that a file was opened.
    fn remember(&mut self, path: &Path) {
        self.recent.retain(|other| other != path);
        self.recent.insert(0, path.to_owned());
        self.recent.truncate(MOST_RECENT);
    }

    /// Shows what comes of what is being opened, as it comes.
    pub fn wait_for(&mut self, mut loading: Loading) {
        self.asked += 1;
        loading.order = self.asked;
        let reading = self.loading.iter().find(|other| other.stage == Stage::Reading);
        loading.together = reading.map_or(loading.order, |other| other.together);
        self.loading.push(loading);
    }

    /// Whether something is being opened or analysed. The replay may still run.
    pub fn is_loading(&self) -> bool {
        self.loading.iter().any(|loading| loading.stage < Stage::Replaying)
    }

    /// Whether something is being opened, analysed or replayed.
    pub fn is_working(&self) -> bool {
        !self.loading.is_empty()
    }

    /// Takes what the loading threads have finished.
    fn poll(&mut self) {
        let mut loading = std::mem::take(&mut self.loading);
        loading.retain_mut(|one| {
            loop {
                match one.take() {
                    Ok(Some(loaded)) => {
                        if !self.take(one, loaded) {
                            return false;
                        }
                    }
                    Ok(None) => return true,
                    Err(Ended) => {
                        let (name, doing) = (one.path.display(), one.stage.doing());
                        let told = format!("a fault in Bubblescope ended it while {doing} {name}");
                        self.messages.push(About::Opening(one.order), told);
                        return false;
                    }
                }
            }
        });
        loading.retain(|one| one.order > self.replaced);
        self.loading.append(&mut loading);
    }

    /// Takes in one result; tells whether there is more to come.
    fn take(&mut self, loading: &mut Loading, loaded: Loaded) -> bool {
        let order = loading.order;
        let doc = self.docs.iter_mut().find(|doc| doc.order == order);
        match (loaded, doc) {
            (Loaded::Document(mut document), _) => {
                document.order = order;
                if loading.is_file {
                    self.remember(&loading.path);
                }
                if order <= self.replaced {
                    // Something else was opened instead.
                    background::release(document);
                    return false;
                }
                if loading.together > self.begun {
                    self.begun = loading.together;
                    self.start_afresh();
                }
                // What came of earlier tries is of no interest any more; what is asked for together with it is.
                let together = loading.together;
                // A reload is together with nothing.
                let is_over = |other| if together == 0 { other == order } else { other < together };
                self.messages.forget(|about| matches!(about, About::Opening(other) if is_over(other)));
                self.warn_of(&document);
                if let Some(last) = loading.instead_of.filter(|last| *last > self.replaced) {
                    loading.before = self.make_room(last);
                }
                loading.before.extend(self.replace(order, Some(*document)));
                true
            }
            (Loaded::Analysis(explanation), Some(doc)) => {
                doc.set_analysis(*explanation);
                background::release(std::mem::take(&mut loading.before));
                self.documents_changed();
                true
            }
            (Loaded::Full(full), Some(doc)) => {
                doc.set_full(full);
                self.version += 1;
                false
            }
            (Loaded::Failed(message), _) => {
                self.messages.push(About::Opening(order), message);
                false
            }
            // The document was closed.
            (Loaded::Analysis(..) | Loaded::Full(_), None) => false,
        }
    }

    /// Says at the top of the window that a recording was cut off, which all figures suffer from.
    fn warn_of(&mut self, doc: &Document) {
        let losses = &doc.trace.meta.losses;
        let what = if losses.cut_bytes > 0 { "was cut off" } else { "is cut off or damaged" };
        let about = About::Trace(doc.order);
        self.messages.forget(|other| other == about);
        if losses.cut_bytes > 0 || losses.is_damaged() {
            let text = format!("{} {what}; what came before is shown. The tab Quality says what is missing.", doc.name);
            self.messages.push(about, text);
        }
    }

    /// Takes away every trace that was asked for up to this one.
    fn make_room(&mut self, last: u64) -> Vec<Document> {
        self.replaced = last;
        let orders: Vec<u64> = self.docs.iter().map(|doc| doc.order).filter(|order| *order <= last).collect();
        let before = orders.into_iter().filter_map(|order| self.replace(order, None)).collect();
        (self.timeline.selected, self.timeline.measured) = (None, None);
        self.history = History::default();
        before
    }

    /// Shows what is opened from its beginning: the overview, every row, and no table filtered.
    fn start_afresh(&mut self) {
        self.tables = true;
        self.panels.start_afresh();
        self.timeline.arrangement.show_whole();
        self.stepping = None;
    }

    fn documents_changed(&mut self) {
        self.version += 1;
    }

    /// Puts a trace into its place among the others, or nothing; gives what was there.
    fn replace(&mut self, order: u64, document: Option<Document>) -> Option<Document> {
        let at = self.docs.partition_point(|other| other.order < order);
        let before = self.docs.get(at).is_some_and(|doc| doc.order == order).then(|| self.docs.remove(at));
        if document.is_none() {
            self.messages.forget(|about| about == About::Trace(order));
        }
        let more = usize::from(document.is_some());
        let moved = |mut pick: Pick| match pick.doc.cmp(&at) {
            Ordering::Less => Some(pick),
            // What is selected may not be there any more.
            Ordering::Equal if before.is_some() => None,
            Ordering::Equal | Ordering::Greater => {
                pick.doc = pick.doc + more - usize::from(before.is_some());
                Some(pick)
            }
        };
        self.timeline.selected = self.timeline.selected.and_then(moved);
        self.history.stops_mut().for_each(|stop| stop.selected = stop.selected.and_then(moved));
        if let Some(mut document) = document {
            document.offset = before.as_ref().map_or(0, |before| before.offset);
            self.docs.insert(at, document);
        }
        self.documents_changed();
        self.followed = None;
        self.traces += 1;
        if self.docs.is_empty() {
            self.placed = None;
        } else if self.placed.is_none() {
            self.timeline.view = Viewport::of(self.docs[0].focus(), 0.02);
            self.placed = Some(self.timeline.view);
        }
        before
    }

    /// Gives up opening a trace. The window is then as it was; only the replay can be left out of a trace that stays.
    pub fn cancel(&mut self, position: usize) {
        let mut loading = self.loading.remove(position);
        match loading.stage {
            Stage::Reading => {}
            Stage::Analysing => {
                let given_up = self.replace(loading.order, None);
                background::release(given_up);
                for before in std::mem::take(&mut loading.before) {
                    // What others were opened instead of does not come back beside them.
                    if before.order == loading.order || before.order <= self.replaced {
                        self.warn_of(&before);
                        let order = before.order;
                        self.replace(order, Some(before));
                    }
                }
            }
            Stage::Replaying => {
                if let Some(doc) = self.docs.iter_mut().find(|doc| doc.order == loading.order) {
                    doc.stop_replay();
                }
                self.documents_changed();
            }
        }
    }

    /// The height that the panel below the timeline takes at most: a few rows stay in sight.
    fn most_for_tables(&self, room: f32) -> f32 {
        (room - Timeline::least_height(self.docs.len())).max(LEAST_TABLES.min(room / 2.0))
    }

    /// Gives the panel below the timeline the height that the overview takes, unless the rows or the details need it, for as
    /// long as the user has not given it another.
    fn size_tables(&mut self, ui: &Ui) {
        let id = ui.scope_id().with(TABLES);
        let is_dragged = ui.ctx().read_response(id.with("__resize")).is_some_and(|edge| edge.dragged());
        self.tables_sized |= is_dragged;
        let Some(needed) = self.panels.overview_height.filter(|_| !self.tables_sized) else { return };
        let room = ui.available_height();
        let beside = if self.details { DETAILS_HEIGHT } else { 0.0 };
        let spare = room - self.timeline.height(&self.docs).max(beside);
        let height = needed.min(spare).max(TABLES_HEIGHT).min(self.most_for_tables(room)).round();
        let area = ui.available_rect_before_wrap();
        let outer_rect = Rect::from_min_max(Pos2::new(area.left(), area.bottom() - height), area.max);
        ui.ctx().data_mut(|data| data.insert_persisted(id, egui::containers::panel::PanelState { outer_rect }));
    }

    /// Shows one frame.
    pub fn frame(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.now = ctx.input(|input| input.time);
        self.poll();
        self.poll_writing();
        match self.recorder.poll() {
            Some(Ok(path)) => {
                self.messages.forget(|about| about == About::Recording);
                self.open(&ctx, &path);
            }
            // The window that records says it itself.
            Some(Err(why)) if !self.recorder.open => self.messages.push(About::Recording, why),
            Some(Err(_)) | None => {}
        }
        self.dropped(&ctx);
        self.keys(&ctx);
        if let Some(forward) = self.stepping.take() {
            self.step_bubble(&ctx, forward);
        }
        if self.panels.compare.update(&ctx, &self.docs, self.traces) {
            self.align();
        }
        egui::Panel::top("bar").show(ui, |ui| self.bar_ui(&ctx, ui));
        self.messages.panel_ui(ui);
        let mut actions = Vec::new();
        let mut chosen = Vec::new();
        if self.tables && !self.docs.is_empty() {
            self.size_tables(ui);
            let most = self.most_for_tables(ui.available_height());
            let panel = egui::Panel::bottom(TABLES).resizable(true).default_size(TABLES_HEIGHT.min(most));
            panel.min_size(LEAST_TABLES.min(most)).max_size(most).show(ui, |ui| {
                // Without it the panel would take the size of what it shows at the moment.
                ui.set_min_height(ui.available_height());
                let versions = Versions { traces: self.traces, known: self.version };
                chosen = self.panels.show(ui, &self.docs, &self.timeline, versions);
            });
        }
        let mut findings = false;
        if self.details && !self.docs.is_empty() {
            let most = (ui.available_width() - LEAST_TIMELINE_WIDTH).max(LEAST_DETAILS);
            let panel = egui::Panel::right("details").default_size(DETAILS_WIDTH.min(most));
            panel.min_size(LEAST_DETAILS.min(most)).max_size(most).show(ui, |ui| {
                egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                    findings = panels::details_ui(ui, &self.docs, &self.timeline, &mut actions);
                });
            });
        }
        if findings {
            self.run(&ctx, Command::Findings);
        }
        self.timeline.described = self.details;
        let shown = egui::CentralPanel::no_frame().show(ui, |ui| {
            if self.docs.is_empty() {
                self.welcome_ui(&ctx, ui);
            } else {
                actions.extend(self.timeline.show(ui, &self.docs));
            }
        });
        self.save_shown(&ctx, shown.response.rect.width());
        for chosen in chosen {
            match chosen {
                Chosen::Action(action) => actions.push(action),
                Chosen::Bubble(pick) => actions.push(Action::Show(pick)),
                Chosen::Align => self.show_aligned(),
                Chosen::Command(command) => self.run(&ctx, command),
                Chosen::Place(pick) => self.show_place(pick),
            }
        }
        for action in actions {
            self.act(action);
        }
        if self.help {
            self.help_ui(&ctx);
        }
        if self.recorder.open {
            self.recorder.show(&ctx);
        }
        self.dialogs(&ctx);
        self.hovered_ui(&ctx);
        self.typing = ctx.text_edit_focused();
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
            tables_sized: self.tables_sized,
            command: self.recorder.command.clone(),
            arrangement: self.timeline.arrangement.clone(),
        };
        eframe::set_value(storage, KEPT, &kept);
    }
}
