//! The window that records: what, where to, and what the recorder says.

use std::path::PathBuf;
use std::process::Command;

use eframe::egui::{self, Context, RichText, Ui};
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
    running: Option<Recording>,
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
        self.running = Some(Recording::start(command, output, move || wake.request_repaint())?);
        Ok(())
    }

    /// Takes what the recorder has said; gives the file when there is a new recording.
    pub fn poll(&mut self) -> Option<PathBuf> {
        let recording = self.running.as_mut()?;
        let status = recording.poll()?;
        if !status.success() {
            self.error = Some(match status.code() {
                Some(4) => "No usable GPU or CUPTI: `bubble-report doctor` says what is missing.".to_owned(),
                Some(code) => format!("The recorder ended with exit code {code}; what it said stands below."),
                None => "The recorder was ended by a signal.".to_owned(),
            });
        }
        recording.output.is_file().then(|| recording.output.clone())
    }

    /// Whether something is being recorded.
    pub fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(Recording::is_running)
    }

    /// What the recorder said.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.running.iter().flat_map(|recording| &recording.lines).map(String::as_str)
    }

    /// Shows the window.
    pub fn show(&mut self, ctx: &Context) {
        let mut open = self.open;
        centred(ctx, "Record").open(&mut open).default_width(640.0).show(ctx, |ui| {
            self.contents_ui(ctx, ui);
        });
        self.open = open;
    }

    fn contents_ui(&mut self, ctx: &Context, ui: &mut Ui) {
        let running = self.is_running();
        ui.add_enabled_ui(!running, |ui| {
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
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            if running {
                let stopping = self.running.as_ref().map(Recording::state) == Some(State::Stopping);
                ui.spinner();
                let text = if stopping { "End it now" } else { "Stop" };
                let hint = "The first time as Ctrl+C does, so that what was recorded is kept";
                if ui.button(text).on_hover_text(hint).clicked()
                    && let Some(recording) = &mut self.running
                {
                    recording.stop();
                }
            } else if ui.button("Start recording").clicked() {
                self.error = self.start(ctx).err();
            }
            if let Some(recording) = &self.running {
                ui.weak(format!("into {}", recording.output.display()));
            }
        });
        if let Some(error) = &self.error {
            ui.add(egui::Label::new(RichText::new(error).color(ui.visuals().error_fg_color)).wrap());
        }
        self.lines_ui(ui);
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
            ui.colored_label(palette.weak_text, info.summary);
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
            ui.colored_label(palette.weak_text, variant.map_or("", |variant| variant.summary));
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
                    ui.colored_label(palette.weak_text, option.help);
                });
                ui.end_row();
            }
        });
        if self.workload != before {
            (self.variant, self.options) = (0, Vec::new());
        }
    }

    /// What the recorder said.
    fn lines_ui(&self, ui: &mut Ui) {
        let Some(recording) = self.running.as_ref().filter(|recording| !recording.lines.is_empty()) else { return };
        ui.separator();
        let height = ui.text_style_height(&egui::TextStyle::Monospace);
        let area = egui::ScrollArea::both().id_salt("output").stick_to_bottom(true).max_height(260.0);
        area.auto_shrink(false).show_rows(ui, height, recording.lines.len(), |ui, shown| {
            for line in recording.lines.range(shown) {
                ui.add(egui::Label::new(RichText::new(line).monospace()).extend());
            }
        });
    }
}
