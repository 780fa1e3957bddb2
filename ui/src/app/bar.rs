//! What stands around the timeline: the bar with its menus, the first window, the list of keys.

use bubblescope::analysis::Cause;
use bubblescope::open::stem;
use bubblescope::trace::{ApiKind, Detail, MemoryKind, OpKind};
use eframe::egui::{self, RichText, Sense, Ui, Vec2};

use super::App;
use crate::command::{COMMANDS, Command, Entry, Shortcut};
use crate::dialog::centred;
use crate::paint::Quads;
use crate::panels;
use crate::theme::Palette;
use crate::tint::{Tint, Tints};

/// The width in which sentences beside the list of keys are set. Of themselves they would take another in each of the first
/// frames.
const KEYS_COLUMN: f32 = 420.0;
/// Between two columns of the list of keys.
const KEYS_GAP: f32 = 24.0;
/// Width of the window from which on the list of keys has what the pointer does beside them.
const KEYS_BESIDE: f32 = 1200.0;
/// Room that stays around the list of keys, its frame and its title.
const AROUND_KEYS: Vec2 = Vec2::new(40.0, 70.0);
/// Letters of a trace's name that a menu shows.
const MOST_OF_NAME: usize = 28;
/// Width from which on the bar has room for the program's name.
const NAME_FROM: f32 = 800.0;
/// Width beside the menus from which on there is room for the buttons of frequent commands.
const SHORTCUTS_FROM: f32 = 560.0;

impl App {
    pub(super) fn bar_ui(&mut self, ctx: &egui::Context, ui: &mut Ui) {
        let palette = Palette::of(ui.visuals());
        ui.horizontal(|ui| {
            if ui.available_width() > NAME_FROM {
                ui.strong("Bubblescope");
                ui.separator();
            }
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
                    let button = ui.add_enabled(self.can(command), egui::Button::new(label));
                    if button.on_hover_text(hint(command.entry())).clicked() {
                        self.run(ctx, command);
                    }
                }
                self.traces_ui(ctx, ui, &palette);
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
                    let button = egui::Button::new(self.title(entry)).shortcut_text(keys);
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

    /// What a command would do now.
    fn title(&self, entry: &Entry) -> String {
        match (entry.command, self.docs.get(self.meant())) {
            (Command::Close, Some(doc)) if self.docs.len() > 1 => {
                let name = stem(&doc.name);
                let short: String = name.chars().take(MOST_OF_NAME).collect();
                let dots = if short.len() < name.len() { "…" } else { "" };
                format!("{}: {short}{dots}", entry.title)
            }
            _ => entry.title.to_owned(),
        }
    }

    /// Whether a command has something to work on.
    fn can(&self, command: Command) -> bool {
        match command {
            Command::Open | Command::Add | Command::Record | Command::ToggleTheme | Command::Help | Command::Quit => {
                true
            }
            Command::Deselect => !self.docs.is_empty() || !self.messages.is_empty(),
            Command::CompareJson | Command::CompareCsv => self.panels.compare.figures().is_ok(),
            Command::ShowRows => self.timeline.arrangement.hides_any(),
            _ => !self.docs.is_empty(),
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
        centred(ctx, "Keys").open(&mut open).auto_sized().show(ctx, |ui| {
            let screen = ctx.content_rect().size();
            let area =
                egui::ScrollArea::both().max_width(screen.x - AROUND_KEYS.x).max_height(screen.y - AROUND_KEYS.y);
            area.show(ui, |ui| {
                let groups: Vec<&[Entry]> = COMMANDS.chunk_by(|a, b| a.group == b.group).collect();
                let beside = screen.x > KEYS_BESIDE;
                ui.horizontal_top(|ui| {
                    ui.spacing_mut().item_spacing.x = KEYS_GAP;
                    let (first, second) = groups.split_at(groups.len() / 2);
                    for some in [first, second] {
                        ui.vertical(|ui| some.iter().for_each(|group| self.keys_ui(ui, group)));
                    }
                    if beside {
                        ui.vertical(about_ui);
                    }
                });
                if !beside {
                    ui.vertical(about_ui);
                }
            });
        });
        self.help = open;
    }

    fn keys_ui(&self, ui: &mut Ui, group: &[Entry]) {
        let Some(first) = group.first() else { return };
        ui.strong(first.group);
        egui::Grid::new(("keys", first.group)).num_columns(2).spacing([24.0, 4.0]).show(ui, |ui| {
            for entry in group {
                ui.label(self.title(entry));
                let keys: Vec<String> = entry.keys.iter().map(Shortcut::text).collect();
                ui.monospace(keys.join("  "));
                ui.end_row();
            }
        });
        ui.add_space(6.0);
    }
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

/// What is not about keys.
fn about_ui(ui: &mut Ui) {
    ui.set_width(KEYS_COLUMN);
    mouse_ui(ui);
    ui.add_space(6.0);
    legend_ui(ui);
}

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

/// What a command does, with its key.
fn hint(entry: &Entry) -> String {
    match entry.keys.first() {
        Some(key) => format!("{} ({})", entry.title, key.text()),
        None => entry.title.to_owned(),
    }
}
