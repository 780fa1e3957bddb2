//! The window that records: what, where to, and what the recorder says.

use std::path::PathBuf;
use std::process::Command;

use eframe::egui::{self, Align, Context, Layout, Rect, RichText, Sense, Ui, UiBuilder, Vec2};
use workloads::{VariantInfo, WorkloadInfo};

use crate::dialog::centred;
use crate::recorder::{self, Recording, State, Subject};
use crate::theme::Palette;

/// What kind of thing is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// A bundled workload.
    #[default]
    Workload,
    /// A command.
    Command,
}

/// The size of the window, if the screen has room for it. It stays the same whatever is recorded, so that no
/// button moves away from under the pointer.
const SIZE: Vec2 = Vec2::new(694.0, 540.0);
/// What is left of the screen around it.
const AROUND: Vec2 = Vec2::splat(20.0);
/// The room for what has come of it.
const STATUS_HEIGHT: f32 = 52.0;
/// The least room for what the recorder says.
const LEAST_LOG: f32 = 80.0;

/// A recording that was started.
#[derive(Debug)]
struct Run {
    kind: Kind,
    recording: Recording,
    /// Why it failed, if it did.
    failed: Option<String>,
}

/// The window that records.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Whether it is shown.
    pub open: bool,
    /// The program that records; found when `None`.
    pub program: Option<PathBuf>,
    /// The command to record.
    pub command: String,
    kind: Kind,
    workload: usize,
    variant: usize,
    /// Values of the workload's options, as they are listed.
    options: Vec<u64>,
    /// Where to record into, when it was typed.
    output: Option<String>,
    run: Option<Run>,
    /// Why nothing was started.
    error: Option<String>,
}

impl Recorder {
    /// The workload that is chosen.
    fn workload(&self) -> Option<&'static WorkloadInfo> {
        workloads::catalogue().get(self.workload)
    }

    fn subject(&self) -> Result<Subject, String> {
        match self.kind {
            Kind::Workload => {
                let info = self.workload().ok_or("there is no such workload")?;
                let variant = info.variants.get(self.variant).ok_or("there is no such variant")?;
                let options = info.options.iter().zip(&self.options);
                let changed = options.filter(|(option, value)| option.default != **value);
                Ok(Subject::Workload {
                    name: info.name.to_owned(),
                    variant: variant.name.to_owned(),
                    options: changed.map(|(option, value)| (option.name.to_owned(), *value)).collect(),
                })
            }
            Kind::Command => {
                let words = recorder::words(&self.command)?;
                if words.is_empty() {
                    Err("type the command to record".to_owned())
                } else {
                    Ok(Subject::Command(words))
                }
            }
        }
    }

    /// The file to record into.
    fn output(&self) -> PathBuf {
        if let Some(typed) = self.output.as_deref().map(str::trim).filter(|typed| !typed.is_empty()) {
            return PathBuf::from(typed);
        }
        let folder = std::env::current_dir().unwrap_or_else(|_| std::env::temp_dir());
        let stem = self.subject().map_or_else(|_| "recording".to_owned(), |subject| subject.file_stem());
        recorder::free_file(&folder, &stem)
    }

    fn start(&mut self, ctx: &Context) -> Result<(), String> {
        let program = self.program.clone().map_or_else(recorder::program, Ok)?;
        let (wake, output) = (ctx.clone(), self.output());
        let mut command = Command::new(program);
        command.args(self.subject()?.arguments(&output));
        let recording = Recording::start(command, output, move || wake.request_repaint())?;
        self.run = Some(Run { kind: self.kind, recording, failed: None });
        Ok(())
    }

    /// Takes what the recorder has said; gives the file when there is a new recording, or why there is none.
    pub fn poll(&mut self) -> Option<Result<PathBuf, String>> {
        let run = self.run.as_mut()?;
        let status = run.recording.poll()?;
        if !status.success() {
            run.failed = Some(match status.code() {
                Some(4) => "No usable GPU or CUPTI: `bubble-report doctor` says what is missing.".to_owned(),
                Some(code) => format!("The recorder ended with exit code {code}."),
                None => "The recorder was ended by a signal.".to_owned(),
            });
        }
        let output = run.recording.output.clone();
        Some(if output.is_file() { Ok(output) } else { Err(run.status().0) })
    }

    /// Whether something is being recorded.
    pub fn is_running(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.recording.is_running())
    }

    /// What has come of what was started, in words.
    pub fn status(&self) -> Option<String> {
        self.run.as_ref().map(|run| run.status().0)
    }

    /// What the recorder said.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.run.iter().flat_map(|run| &run.recording.lines).map(String::as_str)
    }

    /// Shows the window.
    pub fn show(&mut self, ctx: &Context) {
        let mut open = self.open;
        let size = SIZE.min(ctx.content_rect().size() - AROUND).max(Vec2::splat(100.0));
        centred(ctx, "Record").open(&mut open).fixed_size(size).show(ctx, |ui| {
            let all = ui.available_rect_before_wrap();
            ui.allocate_rect(all, Sense::hover());
            self.contents_ui(ctx, ui, all);
        });
        self.open = open;
    }

    /// From top to bottom: what to record, what the recorder says, what has come of it, and the buttons.
    fn contents_ui(&mut self, ctx: &Context, ui: &mut Ui, all: Rect) {
        let (gap, button) = (ui.spacing().item_spacing.y, ui.spacing().interact_size.y + 4.0);
        let (above_buttons, buttons) = all.split_top_bottom_at_y(all.bottom() - button);
        let (upper, status) = above_buttons.split_top_bottom_at_y(above_buttons.bottom() - STATUS_HEIGHT - gap);
        let mut part = |ui: &mut Ui, rect: Rect, layout: Layout, show: &mut dyn FnMut(&mut Self, &mut Ui)| {
            ui.scope_builder(UiBuilder::new().max_rect(rect).layout(layout), |ui| show(self, ui));
        };
        let down = Layout::top_down(Align::Min);
        part(ui, upper, down, &mut |this, ui| {
            let height = (upper.height() - LEAST_LOG).max(0.0);
            let area = egui::ScrollArea::vertical().id_salt("what to record").auto_shrink([false, true]);
            area.max_height(height).min_scrolled_height(height).show(ui, |ui| this.what_ui(ui));
            this.lines_ui(ui);
        });
        part(ui, status, down, &mut |this, ui| this.status_ui(ui));
        part(ui, buttons, Layout::left_to_right(Align::Center), &mut |this, ui| this.buttons_ui(ctx, ui));
    }

    /// The buttons: none ever takes the place of another.
    fn buttons_ui(&mut self, ctx: &Context, ui: &mut Ui) {
        let state = self.run.as_ref().map(|run| run.recording.state());
        let running = self.is_running();
        if ui.add_enabled(!running, egui::Button::new("Start recording")).clicked() {
            self.error = self.start(ctx).err();
        }
        if running {
            ui.spinner();
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let end = ui.add_enabled(state == Some(State::Stopping), egui::Button::new("End it now"));
            let end = end.on_hover_text("At once, which may lose what was recorded");
            let stop = ui.add_enabled(state == Some(State::Running), egui::Button::new("Stop"));
            let stop = stop.on_hover_text("As Ctrl+C does, so that what was recorded is kept");
            if let Some(run) = &mut self.run {
                if stop.clicked() {
                    run.recording.stop();
                }
                if end.clicked() {
                    run.recording.end();
                }
            }
        });
    }

    /// What was started, if it is of the kind that is shown.
    fn shown(&self) -> Option<&Run> {
        self.run.as_ref().filter(|run| run.recording.is_running() || run.kind == self.kind)
    }

    fn status_ui(&self, ui: &mut Ui) {
        let told = match &self.error {
            Some(error) => Some((error.clone(), true)),
            None => self.shown().map(Run::status),
        };
        let Some((text, failed)) = told else { return };
        let color = if failed { ui.visuals().error_fg_color } else { ui.visuals().text_color() };
        egui::ScrollArea::vertical().id_salt("status").auto_shrink(false).show(ui, |ui| {
            ui.add(egui::Label::new(RichText::new(text).color(color)).wrap());
        });
    }

    fn what_ui(&mut self, ui: &mut Ui) {
        let kind = self.kind;
        ui.add_enabled_ui(!self.is_running(), |ui| {
            ui.horizontal(|ui| {
                ui.radio_value(&mut self.kind, Kind::Workload, "A bundled workload");
                ui.radio_value(&mut self.kind, Kind::Command, "A command");
            });
            ui.add_space(2.0);
            match self.kind {
                Kind::Workload => self.workload_ui(ui),
                Kind::Command => {
                    ui.horizontal(|ui| {
                        let label = ui.label("Command");
                        let field = egui::TextEdit::singleline(&mut self.command);
                        let field = field.hint_text("python train.py --steps 10").desired_width(500.0);
                        ui.add(field).labelled_by(label.id);
                    });
                }
            }
            let suggested = self.output().display().to_string();
            ui.horizontal(|ui| {
                let label = ui.label("Into");
                let field = egui::TextEdit::singleline(self.output.get_or_insert_default());
                ui.add(field.hint_text(suggested).desired_width(500.0)).labelled_by(label.id);
            });
        });
        if self.kind != kind {
            self.error = None;
        }
    }

    fn workload_ui(&mut self, ui: &mut Ui) {
        let palette = Palette::of(ui.visuals());
        let Some(info) = self.workload() else { return };
        let before = self.workload;
        egui::Grid::new("workload").num_columns(2).spacing([12.0, 4.0]).show(ui, |ui| {
            let label = ui.label("Workload");
            let list = egui::ComboBox::from_id_salt("workload").selected_text(info.name).width(200.0);
            let list = list.show_ui(ui, |ui| {
                for (at, info) in workloads::catalogue().iter().enumerate() {
                    ui.selectable_value(&mut self.workload, at, info.name).on_hover_text(info.summary);
                }
            });
            list.response.labelled_by(label.id);
            ui.end_row();
            ui.label("");
            weak_ui(ui, info.summary, &palette);
            ui.end_row();
            let label = ui.label("Variant");
            let variant: Option<&VariantInfo> = info.variants.get(self.variant);
            let name = variant.map_or("", |variant| variant.name);
            let list = egui::ComboBox::from_id_salt("variant").selected_text(name).width(200.0);
            let list = list.show_ui(ui, |ui| {
                for (at, variant) in info.variants.iter().enumerate() {
                    ui.selectable_value(&mut self.variant, at, variant.name).on_hover_text(variant.summary);
                }
            });
            list.response.labelled_by(label.id);
            ui.end_row();
            ui.label("");
            weak_ui(ui, variant.map_or("", |variant| variant.summary), &palette);
            ui.end_row();
            if self.options.len() != info.options.len() {
                self.options = info.options.iter().map(|option| option.default).collect();
            }
            for (option, value) in info.options.iter().zip(&mut self.options) {
                let label = ui.label(option.name).on_hover_text(option.help);
                ui.horizontal(|ui| {
                    let step = option.multiple_of.max(1);
                    ui.add(egui::DragValue::new(value).range(option.min..=option.max)).labelled_by(label.id);
                    *value = (*value / step * step).clamp(option.min, option.max);
                    weak_ui(ui, option.help, &palette);
                });
                ui.end_row();
            }
        });
        if self.workload != before {
            (self.variant, self.options) = (0, Vec::new());
        }
    }

    /// What the recorder said, in as many rows as it takes.
    fn lines_ui(&self, ui: &mut Ui) {
        let Some(run) = self.shown().filter(|run| !run.recording.lines.is_empty()) else { return };
        ui.separator();
        let font = egui::TextStyle::Monospace.resolve(ui.style());
        let (letter, height) = ui.fonts_mut(|fonts| (fonts.glyph_width(&font, 'm'), fonts.row_height(&font)));
        let width = ui.available_width() - ui.spacing().scroll.allocated_width();
        let rows: Vec<&str> =
            run.recording.lines.iter().flat_map(|line| rows(line, (width / letter.max(1.0)) as usize)).collect();
        let area = egui::ScrollArea::vertical().id_salt("output").stick_to_bottom(true).auto_shrink(false);
        area.show_rows(ui, height, rows.len(), |ui, shown| {
            for row in rows.get(shown).unwrap_or_default() {
                ui.add(egui::Label::new(RichText::new(*row).monospace()).extend());
            }
        });
    }
}

impl Run {
    /// What has come of it, and whether that is bad.
    fn status(&self) -> (String, bool) {
        let output = self.recording.output.display();
        match self.recording.state() {
            State::Running => return (format!("Recording into {output}"), false),
            State::Stopping => return (format!("Stopping: what was recorded is being kept in {output}"), false),
            State::Ended(_) => {}
        }
        let failed = self.failed.as_deref();
        if self.recording.output.is_file() {
            return match failed {
                Some(why) => (format!("{why} What was recorded is in {output}"), true),
                None => (format!("Recorded into {output}"), false),
            };
        }
        // The recorder's own last word says why.
        let own = self.recording.lines.iter().rev().find_map(|line| line.strip_prefix(OWN));
        let why = own.map(|own| format!("{}.", own.trim_end_matches('.')));
        let why = why.map(|why| why.strip_prefix("nothing was recorded: ").map(str::to_owned).unwrap_or(why));
        let told = [Some("Nothing was recorded."), failed, why.as_deref()].into_iter().flatten();
        (told.map(sentence).collect::<Vec<_>>().join(" "), true)
    }
}

/// How the recorder's own lines begin, among those of the program that it records.
const OWN: &str = "bubble-report: ";

/// With a capital letter at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A line cut into rows of this many letters.
fn rows(line: &str, letters: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let end = line.char_indices().nth(letters.max(1)).map(|(end, _)| end);
        let (row, left) = end.map_or((line, None), |end| (&line[..end], Some(&line[end..])));
        rest = left;
        Some(row)
    })
}

/// Words of less weight, in as many lines as they take.
fn weak_ui(ui: &mut Ui, text: &str, palette: &Palette) {
    ui.add(egui::Label::new(RichText::new(text).color(palette.weak_text)).wrap());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_whole_whatever_the_width() {
        for line in ["", "one", "äöü and so on", "0123456789"] {
            for letters in 0..12 {
                let rows: Vec<&str> = rows(line, letters).collect();
                assert_eq!(rows.concat(), line);
                assert!(rows.iter().all(|row| row.chars().count() <= letters.max(1)), "{rows:?}");
                assert!(!rows.is_empty() && (rows.len() == 1 || rows.iter().all(|row| !row.is_empty())), "{rows:?}");
            }
        }
    }
}
