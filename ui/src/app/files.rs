//! Files: opening, dropping, reloading, saving what is shown, exporting what was found.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bubblescope::analysis::full;
use bubblescope::atomic::write_atomically;
use bubblescope::open::stem;
use bubblescope::report::text::{self, Style};
use bubblescope::report::{self, Report};
use crossbeam_channel::{Receiver, Sender, unbounded};
use eframe::egui;

use super::{About, App};
use crate::background;
use crate::dialog::{Export, Purpose};
use crate::document::Document;
use crate::load::{self, Loading, Stage};
use crate::panels;
use crate::view::History;

/// Bubbles that an exported report lists.
const EXPORTED_BUBBLES: usize = 100;

/// What came of writing a file: the sentence to show, or why not.
type Written = Result<String, String>;

/// Files that are being written. When this goes away with the window, those that were begun are whole.
#[derive(Debug)]
pub(super) struct Writing {
    send: Sender<Written>,
    done: Receiver<Written>,
    /// Whether the window was closed; locked by all that write.
    closed: Arc<RwLock<bool>>,
}

impl Default for Writing {
    fn default() -> Self {
        let (send, done) = unbounded();
        Self { send, done, closed: Arc::default() }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        // Threads end with the process: none may be at it then.
        *self.closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl Writing {
    /// What writes the file at a path, whole or not at all, and tells what came of it. It works in any thread.
    fn to(&self, path: PathBuf) -> impl FnOnce(Result<Vec<u8>, String>) + Send + 'static {
        let (send, closed) = (self.send.clone(), Arc::clone(&self.closed));
        move |content| {
            let closed = closed.read().unwrap_or_else(PoisonError::into_inner);
            if *closed {
                return;
            }
            let written = content.and_then(|content| {
                let result = write_atomically(&path, |out| out.write_all(&content));
                result.map_err(|error: io::Error| format!("cannot write {}: {error}", path.display()))?;
                Ok(format!("saved {}", path.display()))
            });
            // Nobody listens any more when the window was closed.
            drop(send.send(written));
        }
    }
}

impl App {
    /// Asks for a file.
    pub(super) fn ask_for(&mut self, ctx: &egui::Context, purpose: Purpose) {
        let doc = self.docs.get(self.current());
        let beside = doc.map(|doc| doc.path.as_path()).or(self.recent.first().map(PathBuf::as_path));
        let folder = beside.and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
        let suggested = match (purpose, doc) {
            (Purpose::Open | Purpose::Add, _) => folder,
            (Purpose::Save(export), Some(doc)) => folder.join(format!("{}.{}", stem(&doc.name), export.ending())),
            (Purpose::Save(_), None) => return,
        };
        let of = match purpose {
            Purpose::Open | Purpose::Add => None,
            Purpose::Save(_) if self.docs.len() > 1 => Some(format!("all {} traces", self.docs.len())),
            Purpose::Save(_) => doc.map(|doc| doc.name.clone()),
        };
        self.dialogs.ask(ctx, purpose, of.as_deref(), suggested);
    }

    /// Does what the dialogs were for.
    pub(super) fn dialogs(&mut self, ctx: &egui::Context) {
        match self.dialogs.show(ctx, &self.recent) {
            Some((Purpose::Open, paths)) => self.open_instead(ctx, &paths),
            Some((Purpose::Add, paths)) => paths.iter().for_each(|path| self.open(ctx, path)),
            Some((Purpose::Save(export), paths)) => {
                self.saving = paths.into_iter().next().map(|path| (export, path));
                ctx.request_repaint();
            }
            None => {}
        }
    }

    pub(super) fn dropped(&mut self, ctx: &egui::Context) {
        let files = ctx.input(|input| input.raw.dropped_files.clone());
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
        self.open_instead(ctx, &paths);
    }

    /// A word over the window while files hang over it.
    pub(super) fn hovered_ui(&self, ctx: &egui::Context) {
        let files = ctx.input(|input| input.raw.hovered_files.len());
        if files == 0 {
            return;
        }
        let layer = egui::LayerId::new(egui::Order::Foreground, egui::Id::unique("dropping"));
        let (painter, screen) = (ctx.layer_painter(layer), ctx.content_rect());
        painter.rect_filled(screen, 0.0, egui::Color32::from_black_alpha(160));
        let font = egui::FontId::proportional(22.0);
        let text = if files == 1 { "Drop it to open it" } else { "Drop them to open and compare them" };
        painter.text(screen.center(), egui::Align2::CENTER_CENTER, text, font, egui::Color32::WHITE);
    }

    pub(super) fn reload(&mut self, ctx: &egui::Context) {
        // Each stays until it is read anew.
        let reopened: Vec<(PathBuf, u64)> = self.docs.iter().map(|doc| (doc.path.clone(), doc.order)).collect();
        for (path, order) in reopened {
            if self.loading.iter().any(|loading| loading.order == order && loading.stage == Stage::Reading) {
                continue;
            }
            self.loading.retain(|loading| loading.order != order);
            let ctx = ctx.clone();
            let mut loading = Loading::file(&path, move || ctx.request_repaint());
            loading.order = order;
            self.loading.push(loading);
        }
    }

    /// Closes a trace, and what is being read in its place.
    pub(super) fn close(&mut self, at: usize) {
        let Some(order) = self.docs.get(at).map(|doc| doc.order) else { return };
        let (closed, rest) = std::mem::take(&mut self.loading).into_iter().partition(|one| one.order == order);
        self.loading = rest;
        let closed: Vec<Loading> = closed;
        let document = self.replace(order, None);
        if let Some(document) = document.as_ref().filter(|_| !self.docs.is_empty()) {
            self.saved = Some((format!("closed {}", document.name), self.now));
        }
        background::release((closed, document));
        if self.docs.is_empty() {
            (self.timeline.measured, self.history) = (None, History::default());
        }
    }

    /// Saves what was asked for; pictures are as wide as the timeline.
    pub(super) fn save_shown(&mut self, ctx: &egui::Context, width: f32) {
        let Some((export, path)) = self.saving.take() else { return };
        self.save_as(ctx, width, export, path);
    }

    /// What writes the file at a path and tells it.
    pub(super) fn writer(
        &self,
        ctx: &egui::Context,
        path: PathBuf,
    ) -> impl FnOnce(Result<Vec<u8>, String>) + Send + 'static {
        let (to_file, wake) = (self.writing.to(path), ctx.clone());
        move |content| {
            to_file(content);
            wake.request_repaint();
        }
    }

    fn save_as(&mut self, ctx: &egui::Context, width: f32, export: Export, path: PathBuf) {
        match export {
            Export::Png => self.save_png(ctx, width, path),
            Export::Svg => self.save_svg(ctx, width, path),
            Export::ReportText | Export::ReportJson => {
                let write = self.writer(ctx, path);
                let docs: Vec<Document> = self.docs.iter().map(Document::without_rows).collect();
                in_background(move || {
                    let reports = docs.iter().map(|doc| {
                        let known = doc.full().cloned();
                        let full = known.unwrap_or_else(|| Arc::new(full(&doc.trace, &load::options(&doc.trace))));
                        let options = report::Options { path: doc.path.display().to_string(), top: EXPORTED_BUBBLES };
                        Report::full(&doc.trace, &full, &options)
                    });
                    write(exported(&reports.collect::<Vec<_>>(), export));
                });
            }
            Export::CompareJson | Export::CompareCsv => match self.panels.compare.figures() {
                Ok(compare) => {
                    let write = self.writer(ctx, path);
                    let bytes = match export {
                        Export::CompareJson => {
                            report::to_json(compare).map_err(|error| format!("cannot write JSON: {error}"))
                        }
                        _ => Ok(panels::comparison_csv(compare).into_bytes()),
                    };
                    in_background(move || write(bytes));
                }
                Err(why) => {
                    self.messages.push(About::Saving, format!("There is no comparison to export: {why}."));
                }
            },
        }
    }

    /// Takes what came of writing files.
    pub(super) fn poll_writing(&mut self) {
        while let Ok(written) = self.writing.done.try_recv() {
            match written {
                Ok(sentence) => {
                    self.messages.forget(|about| about == About::Saving);
                    self.saved = Some((sentence, self.now));
                }
                Err(message) => self.messages.push(About::Saving, message),
            }
        }
    }
}

pub(super) fn in_background(work: impl FnOnce() + Send + 'static) {
    // Without a thread the work is lost, and with it nothing but a file that can be saved again.
    drop(std::thread::Builder::new().name("save".to_owned()).spawn(work));
}

/// Reports as the bytes of a file: as text one after the other, as JSON a list unless it is one.
fn exported(reports: &[Report], export: Export) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    match (export, reports) {
        (Export::ReportJson, reports) => {
            let json = if let [one] = reports { report::to_json(one) } else { report::to_json(&reports) };
            bytes = json.map_err(|error| format!("cannot write JSON: {error}"))?;
        }
        (_, reports) => {
            for (at, report) in reports.iter().enumerate() {
                if at > 0 {
                    bytes.extend_from_slice(b"\n\n");
                }
                text::render(report, &mut bytes, Style::PLAIN).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_begun_when_the_window_is_closed_is_whole_and_none_is_begun_later() {
        let folder = std::env::temp_dir().join(format!("bubblescope-{}-closing", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let names =
            || -> Vec<_> { std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect() };
        let writing = Writing::default();
        let (first, second) = (writing.to(folder.join("first")), writing.to(folder.join("second")));
        let length = 32_usize << 20;
        let thread = std::thread::spawn(move || first(Ok(vec![7; length])));
        while names().is_empty() {
            std::thread::yield_now();
        }
        drop(writing);
        assert_eq!(names(), ["first"]);
        assert_eq!(std::fs::metadata(folder.join("first")).unwrap().len(), length as u64);
        second(Ok(vec![7]));
        assert_eq!(names(), ["first"]);
        thread.join().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
