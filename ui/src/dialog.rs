//! Asks for a file: with the desktop's own dialog where there is one, else with a window of our own.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use eframe::egui::{self, Context};

/// What a file is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Traces to open instead of those that are.
    Open,
    /// Traces to open beside those that are.
    Add,
    /// Where to save something.
    Save(Export),
}

/// What can be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// The timeline as pixels.
    Png,
    /// The timeline as shapes.
    Svg,
    /// The report for people.
    ReportText,
    /// The report for programs.
    ReportJson,
    /// The comparison for programs.
    CompareJson,
    /// The comparison as a table.
    CompareCsv,
}

impl Export {
    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Png => "Save the timeline as a picture",
            Self::Svg => "Save the timeline as a drawing",
            Self::ReportText => "Export the report as text",
            Self::ReportJson => "Export the report as JSON",
            Self::CompareJson => "Export the comparison as JSON",
            Self::CompareCsv => "Export the comparison as CSV",
        }
    }

    /// The ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
            Self::ReportText => "report.txt",
            Self::ReportJson => "report.json",
            Self::CompareJson => "compare.json",
            Self::CompareCsv => "compare.csv",
        }
    }
}

impl Purpose {
    fn title(self) -> &'static str {
        match self {
            Self::Open => "Open traces",
            Self::Add => "Add traces to compare",
            Self::Save(export) => export.title(),
        }
    }
}

/// The files that were chosen, and what for.
pub type Chosen = (Purpose, Vec<PathBuf>);

/// What a dialog of the desktop gave.
#[derive(Debug)]
enum Answer {
    Chosen(Vec<PathBuf>),
    Closed,
    /// There is no such dialog.
    NotShown,
}

/// A dialog that ends without a file sooner than this was never shown: nobody closes one so fast. The library that shows
/// it does not tell the two apart.
const NOT_SHOWN: Duration = Duration::from_millis(300);

/// The window that asks for a path, where the desktop has no dialog.
#[derive(Debug)]
struct PathWindow {
    purpose: Purpose,
    title: String,
    text: String,
    /// Why it is shown in place of the desktop's dialog.
    instead: bool,
    /// The file that is there already and would be replaced.
    replaces: Option<PathBuf>,
    /// Whether it has been shown.
    shown: bool,
}

/// The dialogs for files.
#[derive(Debug, Default)]
pub struct FileDialogs {
    /// Whether to try the desktop's dialogs first.
    pub native: bool,
    waiting: Option<(Purpose, String, PathBuf, Receiver<Answer>)>,
    window: Option<PathWindow>,
}

impl FileDialogs {
    /// Asks for a file. `of` says of what, `suggested` is the file to save, or the folder to start in.
    pub fn ask(&mut self, ctx: &Context, purpose: Purpose, of: Option<&str>, suggested: PathBuf) {
        if self.waiting.is_some() {
            return;
        }
        let title = of.map_or_else(|| purpose.title().to_owned(), |of| format!("{}: {of}", purpose.title()));
        if !self.native {
            self.fall_back(purpose, title, &suggested, false);
            return;
        }
        let (send, answers) = bounded(1);
        let (wake, start, shown) = (ctx.clone(), suggested.clone(), title.clone());
        let thread = move || {
            // Nobody listens any more when the window was closed.
            drop(send.send(native(purpose, &shown, &start)));
            wake.request_repaint();
        };
        match std::thread::Builder::new().name("dialog".to_owned()).spawn(thread) {
            Ok(_) => self.waiting = Some((purpose, title, suggested, answers)),
            Err(_) => self.fall_back(purpose, title, &suggested, true),
        }
    }

    fn fall_back(&mut self, purpose: Purpose, title: String, suggested: &Path, instead: bool) {
        let text = match purpose {
            Purpose::Open | Purpose::Add => String::new(),
            Purpose::Save(_) => suggested.display().to_string(),
        };
        self.window = Some(PathWindow { purpose, title, text, instead, replaces: None, shown: false });
    }

    /// Whether a file is being asked for.
    pub fn is_open(&self) -> bool {
        self.waiting.is_some() || self.window.is_some()
    }

    /// Whether the window is shown.
    pub fn is_shown(&self) -> bool {
        self.window.is_some()
    }

    /// Closes the window.
    pub fn close(&mut self) {
        self.window = None;
    }

    /// Shows what there is to show; gives what was chosen. `recent` files are offered for opening.
    pub fn show(&mut self, ctx: &Context, recent: &[PathBuf]) -> Option<Chosen> {
        if let Some((purpose, title, suggested, answers)) = self.waiting.take() {
            match answers.try_recv() {
                Ok(Answer::Chosen(paths)) => return Some((purpose, paths)),
                Ok(Answer::Closed) => {}
                Ok(Answer::NotShown) | Err(TryRecvError::Disconnected) => {
                    self.fall_back(purpose, title, &suggested, true);
                }
                Err(TryRecvError::Empty) => self.waiting = Some((purpose, title, suggested, answers)),
            }
        }
        self.window_ui(ctx, recent)
    }

    fn window_ui(&mut self, ctx: &Context, recent: &[PathBuf]) -> Option<Chosen> {
        let window = self.window.as_mut()?;
        let mut chosen = None;
        let mut keep = true;
        let frame = centred(ctx, &window.title).open(&mut keep).resizable(false);
        frame.show(ctx, |ui| {
            ui.set_min_width(560.0);
            ui.horizontal(|ui| {
                let label = ui.label("File");
                let field = egui::TextEdit::singleline(&mut window.text).desired_width(440.0);
                let field = ui.add(field).labelled_by(label.id);
                let entered = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
                if entered || !std::mem::replace(&mut window.shown, true) {
                    field.request_focus();
                }
                let path = PathBuf::from(window.text.trim());
                let replaces = window.replaces.as_ref() == Some(&path);
                let button = match window.purpose {
                    Purpose::Open => "Open",
                    Purpose::Add => "Add",
                    Purpose::Save(_) if replaces => "Replace",
                    Purpose::Save(_) => "Save",
                };
                if (ui.button(button).clicked() || entered) && !path.as_os_str().is_empty() {
                    if matches!(window.purpose, Purpose::Save(_)) && !replaces && path.exists() {
                        window.replaces = Some(path);
                    } else {
                        chosen = Some(path);
                    }
                }
            });
            if let Some(path) = &window.replaces {
                let text = format!("{} is there already: once more to replace it.", path.display());
                ui.colored_label(ui.visuals().warn_fg_color, text);
            }
            if window.instead {
                ui.weak(
                    "This desktop has no file dialog (xdg-desktop-portal or zenity would bring one): type the path.",
                );
            }
            if !matches!(window.purpose, Purpose::Save(_)) {
                ui.weak("Files can also be dropped onto the window.");
                for path in recent {
                    if ui.link(path.display().to_string()).clicked() {
                        chosen = Some(path.clone());
                    }
                }
            }
        });
        let purpose = window.purpose;
        if chosen.is_some() || !keep {
            self.window = None;
        }
        chosen.map(|path| (purpose, vec![path]))
    }
}

/// The frames in which a window is shown.
#[derive(Clone, Copy, Debug)]
struct Shown {
    first: u64,
    last: u64,
}

/// How often what is seen is laid out at most within one frame: twice to learn the size of a window, and then in its place.
pub const PASSES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);

/// A window that appears in the middle, at once in the size that it has.
pub fn centred<'a>(ctx: &Context, title: &str) -> egui::Window<'a> {
    let (id, now) = (egui::Id::unique(("centred", title)), ctx.cumulative_frame_nr());
    let shown = ctx.data(|data| data.get_temp::<Shown>(id)).filter(|shown| shown.last + 1 >= now);
    let shown = Shown { first: shown.map_or(now, |shown| shown.first), last: now };
    ctx.data_mut(|data| data.insert_temp(id, shown));
    if shown.first == now {
        ctx.request_discard("the size of a window that opens");
    }
    let window = egui::Window::new(title.to_owned()).collapsible(false);
    window.pivot(egui::Align2::CENTER_CENTER).default_pos(ctx.content_rect().center())
}

/// Shows the desktop's dialog and waits for it.
fn native(purpose: Purpose, title: &str, suggested: &Path) -> Answer {
    let shown = Instant::now();
    let dialog = rfd::FileDialog::new().set_title(title);
    let folder = if suggested.is_dir() { Some(suggested) } else { suggested.parent() };
    let dialog = match folder.filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => dialog.set_directory(folder),
        None => dialog,
    };
    let chosen = match purpose {
        Purpose::Open | Purpose::Add => dialog
            .add_filter("Recordings", &["parquet", "bubcap", "json", "gz", "sqlite"])
            .add_filter("All files", &["*"])
            .pick_files()
            .unwrap_or_default(),
        Purpose::Save(_) => {
            let name = suggested.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            dialog.set_file_name(name).save_file().into_iter().collect()
        }
    };
    match chosen.is_empty() {
        false => Answer::Chosen(chosen),
        true if shown.elapsed() < NOT_SHOWN => Answer::NotShown,
        true => Answer::Closed,
    }
}
