//! What stands around the timeline: menus, what is being loaded, messages, the first window, the list of keys.

use bubblescope::analysis::Cause;
use bubblescope::trace::{ApiKind, Detail, MemoryKind, OpKind};
use eframe::egui::{self, RichText, Sense, Ui, Vec2};

use super::App;
use crate::command::{COMMANDS, Command, Entry, Shortcut};
use crate::dialog::centred;
use crate::format;
use crate::load::Stage;
use crate::paint::Quads;
use crate::panels;
use crate::theme::Palette;
use crate::tint::{Tint, Tints};

/// Seconds for which the bar says what was saved.
const SAVED_SHOWN: f64 = 8.0;
/// Width beside the menus from which on there is room for the buttons of frequent commands.
const SHORTCUTS_FROM: f32 = 560.0;
/// Height that messages take at most; more of them scroll.
const MESSAGES_HEIGHT: f32 = 130.0;

impl App {
    pub(super) fn bar_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        let palette = Palette::of(ui.visuals());
        ui.horizontal(|ui| {
            ui.strong("Bubblescope");
            ui.separator();
            self.menus_ui(ctx, ui);
            ui.separator();
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                let shortcuts = [
                    (Command::Help, "?"),
                    (Command::ToggleTheme, "Theme"),
                    (Command::FitAll, "Fit"),
                    (Command::StartView, "Measured part"),
                ];
                // The menus have them all.
                let shown = if ui.available_width() < SHORTCUTS_FROM { 1 } else { shortcuts.len() };
                for &(command, label) in &shortcuts[..shown] {
                    if ui.button(label).on_hover_text(hint(command.entry())).clicked() {
                        self.run(ctx, command);
                    }
                }
                ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                    // What has no room there is not shown, rather than over the buttons.
                    ui.set_clip_rect(ui.clip_rect().intersect(ui.max_rect()));
                    self.traces_ui(ctx, ui, &palette);
                });
            });
        });
    }

    /// The menus: one for each group of commands.
    fn menus_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        let mut chosen = None;
        let mut reopened = None;
        for group in COMMANDS.chunk_by(|a, b| a.group == b.group) {
            let Some(first) = group.first() else { continue };
            ui.menu_button(first.group, |ui| {
                for entry in group {
                    let keys = entry.keys.first().map(Shortcut::text).unwrap_or_default();
                    let button = egui::Button::new(entry.title).shortcut_text(keys);
                    if ui.add_enabled(self.can(entry.command), button).clicked() {
                        chosen = Some(entry.command);
                        ui.close();
                    }
                    if entry.command == Command::Open && !self.recent.is_empty() {
                        ui.menu_button("Open again", |ui| {
                            for path in &self.recent {
                                if ui.button(path.display().to_string()).clicked() {
                                    reopened = Some(path.clone());
                                    ui.close();
                                }
                            }
                        });
                    }
                }
            });
        }
        if let Some(command) = chosen {
            self.run(ctx, command);
        }
        if let Some(path) = reopened {
            self.open_instead(ctx, &[path]);
        }
    }

    /// Whether a command has something to work on.
    fn can(&self, command: Command) -> bool {
        match command {
            Command::Open | Command::Add | Command::Record | Command::ToggleTheme | Command::Help => true,
            Command::CompareJson | Command::CompareCsv => self.panels.compare.figures().is_ok(),
            Command::ShowRows => self.timeline.arrangement.hides_any(),
            _ => !self.docs.is_empty(),
        }
    }

    /// What is open, and what is being opened.
    fn traces_ui(&mut self, ctx: &egui::Context, ui: &mut Ui, palette: &Palette) {
        let mut cancelled = None;
        for (at, loading) in self.loading.iter().enumerate() {
            ui.spinner();
            let (doing, number) = (loading.stage.doing(), loading.stage.number());
            let name = loading.path.file_name().unwrap_or(loading.path.as_os_str()).to_string_lossy();
            let seconds = loading.elapsed().as_secs();
            let elapsed = if seconds > 0 { format!(" · {seconds} s") } else { String::new() };
            let percent = loading.percent().map_or_else(String::new, |percent| format!(" · {percent} %"));
            let (label, hint) = match loading.stage {
                Stage::Reading | Stage::Analysing => ("Cancel", "Leaves the window as it was"),
                Stage::Replaying => ("Stop", "Keeps the trace without findings"),
            };
            if ui.small_button(label).on_hover_text(hint).clicked() {
                cancelled = Some(at);
            }
            // Behind the button, which would else move away from under the pointer.
            ui.label(format!("{doing} {name}{percent} · {number} of {}{elapsed}", Stage::COUNT));
        }
        if !self.loading.is_empty() {
            // The percentage and the seconds go on though nothing else happens.
            ctx.request_repaint_after(std::time::Duration::from_millis(200));
        }
        if let Some(at) = cancelled {
            self.cancel(at);
        }
        self.filter_told_ui(ctx, ui, palette);
        let saved = self.saved.as_ref().filter(|(_, at)| self.now - at < SAVED_SHOWN);
        if saved.is_some() {
            ctx.request_repaint_after(std::time::Duration::from_secs(1));
        }
        let saved_ui = |ui: &mut Ui| {
            if let Some((saved, _)) = saved {
                ui.add(egui::Label::new(saved.as_str()).truncate());
            }
        };
        if let [doc] = self.docs.as_slice() {
            ui.label(&doc.name);
            let closed = close_ui(ui, &doc.name);
            ui.add(egui::Label::new(RichText::new(panels::summary(doc)).color(palette.weak_text)).truncate());
            // Behind the figures, which stay where they are.
            saved_ui(ui);
            if closed {
                self.close(0);
            }
        } else if saved.is_some() {
            saved_ui(ui);
        } else if !self.docs.is_empty() {
            if let Some(place) = self.panels.compare.place() {
                ui.label(RichText::new(place).color(palette.weak_text)).on_hover_text("The Compare tab changes it");
                ui.separator();
            }
            let mut closed = None;
            let area = egui::ScrollArea::horizontal().id_salt("traces");
            let area = area.scroll_bar_visibility(egui::scroll_area::ScrollBarVisibility::AlwaysHidden);
            area.show(ui, |ui| {
                for (at, doc) in self.docs.iter().enumerate() {
                    ui.label(&doc.name).on_hover_text(panels::summary(doc));
                    if close_ui(ui, &doc.name) {
                        closed = Some(at);
                    }
                }
            });
            if let Some(at) = closed {
                self.close(at);
            }
        }
    }

    /// Tells which bubbles are gone through while the table of bubbles is filtered.
    fn filter_told_ui(&mut self, ctx: &egui::Context, ui: &mut Ui, palette: &Palette) {
        let Some((rows, ready)) = self.filtered_bubbles(ctx) else { return };
        let hint = "The table of bubbles is filtered. Go through all of them again";
        if ui.small_button("All bubbles").on_hover_text(hint).clicked() {
            self.panels.bubbles.filter.clear();
        }
        let count = if ready { format::things(rows.len() as u64, "bubble", "bubbles") } else { "bubbles".to_owned() };
        let told = format!("] and [ go through {count} with “{}”", self.panels.bubbles.filter.trim());
        ui.label(RichText::new(told).color(palette.link));
        ui.separator();
    }

    pub(super) fn messages_ui(&mut self, ui: &mut Ui) {
        let mut closed = None;
        // However many there are, what is open stays in view.
        let area =
            egui::ScrollArea::vertical().id_salt("messages").max_height(MESSAGES_HEIGHT).auto_shrink([false, true]);
        area.show(ui, |ui| {
            for (at, message) in self.messages.iter().enumerate() {
                ui.horizontal(|ui| {
                    if ui.small_button("Dismiss").clicked() {
                        closed = Some(at);
                    }
                    let text = RichText::new(message).color(ui.visuals().error_fg_color).strong();
                    ui.add(egui::Label::new(text).wrap());
                });
            }
        });
        if let Some(at) = closed {
            self.messages.remove(at);
        }
    }

    /// What there is to do while nothing is open.
    pub(super) fn welcome_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        let palette = Palette::of(ui.visuals());
        ui.painter().rect_filled(ui.max_rect(), 0.0, palette.canvas);
        let mut opened = None;
        ui.vertical_centered(|ui| {
            ui.add_space((ui.available_height() * 0.28).max(20.0));
            ui.label(RichText::new("See when and why a GPU stood idle").size(22.0).strong());
            ui.add_space(10.0);
            if !self.loading.is_empty() {
                ui.label(RichText::new("Opening…").size(15.0).color(palette.weak_text));
                return;
            }
            ui.label(RichText::new("Drop traces here, or").size(15.0).color(palette.weak_text));
            ui.add_space(6.0);
            ui.allocate_ui(Vec2::new(300.0, 30.0), |ui| {
                ui.columns(2, |columns| {
                    for (ui, command) in columns.iter_mut().zip([Command::Open, Command::Record]) {
                        let button = egui::Button::new(RichText::new(command.entry().title).size(15.0));
                        if ui.add_sized([140.0, 30.0], button).clicked() {
                            self.run(ctx, command);
                        }
                    }
                });
            });
            ui.add_space(14.0);
            let formats =
                "bubblescope .bubbles.parquet and .bubcap · PyTorch or Kineto .json[.gz] · Nsight Systems .sqlite";
            ui.label(RichText::new(formats).color(palette.weak_text));
            if !self.recent.is_empty() {
                ui.add_space(22.0);
                ui.label(RichText::new("Opened before").color(palette.weak_text));
                for path in &self.recent {
                    if panels::link_ui(ui, path.display().to_string()).clicked() {
                        opened = Some(path.clone());
                    }
                }
            }
        });
        if let Some(path) = opened {
            self.open(ctx, &path);
        }
    }

    pub(super) fn help_ui(&mut self, ctx: &egui::Context) {
        let mut open = self.help;
        centred(ctx, "Keys").open(&mut open).resizable(false).show(ctx, |ui| {
            let groups: Vec<&[Entry]> = COMMANDS.chunk_by(|a, b| a.group == b.group).collect();
            ui.horizontal_top(|ui| {
                for (at, some) in groups.chunks(2).enumerate() {
                    ui.vertical(|ui| {
                        some.iter().for_each(|group| keys_ui(ui, group));
                        if at + 1 == groups.len().div_ceil(2) {
                            mouse_ui(ui);
                            ui.add_space(6.0);
                            legend_ui(ui);
                        }
                    });
                    ui.add_space(18.0);
                }
            });
        });
        self.help = open;
    }
}

/// The button beside a trace's name; tells whether it was clicked.
fn close_ui(ui: &mut Ui, name: &str) -> bool {
    let label = format!("Close {name}");
    let button = ui.small_button("×").on_hover_text(&label);
    button.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, &label));
    button.clicked()
}

/// What the pointer does.
const MOUSE: &[(&str, &str)] = &[
    ("Ctrl+wheel, pinch", "zoom at the pointer"),
    ("Drag, wheel, Shift+wheel", "move"),
    ("Drag on the ruler, Shift+drag", "measure"),
    ("Click, double click", "select, zoom to it"),
    ("Click on a name", "fold; a right click has more"),
    ("Ctrl+plus, Ctrl+minus, Ctrl+0", "letters larger, smaller, as they were"),
];

fn mouse_ui(ui: &mut Ui) {
    ui.strong("Pointer");
    egui::Grid::new("mouse").num_columns(2).spacing([24.0, 4.0]).show(ui, |ui| {
        for (what, how) in MOUSE {
            ui.label(*what);
            ui.weak(*how);
            ui.end_row();
        }
    });
}

/// What colours and stripes on the timeline mean.
fn legend_ui(ui: &mut Ui) {
    let copy = Detail::Copy { from: MemoryKind::Pinned, to: MemoryKind::Device, asynchronous: true };
    let looks = [
        (Tint::op(OpKind::Copy, 0, copy), "a copy or a memset; kernels are plain"),
        (Tint::cause(Cause::LaunchBound), "a bubble that the host caused"),
        (Tint::cause(Cause::Dependency), "a bubble though the work was enqueued"),
        (Tint::call(ApiKind::StreamSync), "a call that waits for the GPU"),
    ];
    ui.strong("Colours and stripes");
    let tints = Tints::of(&Palette::of(ui.visuals()));
    for (tint, meaning) in looks {
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(Vec2::new(30.0, 12.0), Sense::hover());
            let mut quads = Quads::default();
            quads.add(rect, tints.get(tint));
            quads.add_pattern(rect, tint, &tints);
            ui.painter().add(quads.into_mesh());
            ui.weak(meaning);
        });
    }
    ui.weak("The colours of causes stand in the overview.");
    ui.weak("Outlined: the call to blame for the chosen bubble. Dashed: to blame for nothing, only the launch of the next op.");
}

fn keys_ui(ui: &mut Ui, group: &[Entry]) {
    let Some(first) = group.first() else { return };
    ui.strong(first.group);
    egui::Grid::new(("keys", first.group)).num_columns(2).spacing([24.0, 4.0]).show(ui, |ui| {
        for entry in group {
            ui.label(entry.title);
            let keys: Vec<String> = entry.keys.iter().map(Shortcut::text).collect();
            ui.monospace(keys.join("  "));
            ui.end_row();
        }
    });
    ui.add_space(6.0);
}

/// What a command does, with its key.
fn hint(entry: &Entry) -> String {
    match entry.keys.first() {
        Some(key) => format!("{} ({})", entry.title, key.text()),
        None => entry.title.to_owned(),
    }
}
