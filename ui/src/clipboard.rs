//! What is copied, and whether the desktop's clipboard takes it. egui tells that to the log alone, so this listens to the
//! log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use eframe::egui::{Context, Ui};
use log::{Level, LevelFilter, Log, Metadata, Record};

/// Where egui's messages about the clipboard come from.
const TARGET: &str = "egui_winit::clipboard";

/// How long it is told that something was copied, in seconds.
const TOLD_SECONDS: f64 = 4.0;

static EAR: Ear = Ear { heard: Mutex::new(Heard { copies: 0, unreachable: None, failed: None }) };

/// What was heard.
#[derive(Debug)]
struct Heard {
    /// How often something was copied.
    copies: u64,
    /// Why there is no clipboard; told once, when the window opens.
    unreachable: Option<String>,
    /// Why the last copy came to nothing.
    failed: Option<String>,
}

/// Listens to the log.
#[derive(Debug)]
struct Ear {
    heard: Mutex<Heard>,
}

impl Log for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn && metadata.target() == TARGET
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let message = record.args().to_string();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed paste is an error too, but leaves the field as it was, which everyone sees.
        match record.level() {
            Level::Warn => heard.unreachable = Some(message),
            _ if message.contains("copy") => heard.failed = Some(message),
            _ => {}
        }
    }

    fn flush(&self) {}
}

impl Ear {
    /// Something is about to be copied; gives its number.
    fn begin(&self) -> u64 {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.failed = None;
        heard.copies += 1;
        heard.copies
    }

    /// Why that copy is not on the clipboard, as far as is known: that takes a frame. Of Wayland's own clipboard nothing is
    /// told; the one that cannot be reached is then another, which is not used.
    fn failure(&self, copy: u64, wayland: bool) -> Option<String> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = heard.failed.clone().filter(|_| heard.copies == copy);
        failed.or_else(|| heard.unreachable.clone().filter(|_| !wayland))
    }
}

/// Listens from now on. To be called before the window opens; of several calls only the first counts.
pub fn listen() {
    if log::set_logger(&EAR).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// Something that was copied, of which it is told for a while.
#[derive(Debug)]
pub struct Copied {
    number: u64,
    what: String,
    since: f64,
}

impl Copied {
    /// Puts a text on the clipboard; `what` says in a word or two what it is.
    pub fn put(ctx: &Context, text: String, what: String) -> Self {
        let number = EAR.begin();
        ctx.copy_text(text);
        Self { number, what, since: ctx.input(|input| input.time) }
    }

    /// Tells for a while that it was copied, or that it was not.
    pub fn show(&self, ui: &mut Ui) {
        if let Some(why) = EAR.failure(self.number, is_wayland()) {
            ui.colored_label(ui.visuals().error_fg_color, format!("not copied: {why}"));
            return;
        }
        let left = self.since + TOLD_SECONDS - ui.input(|input| input.time);
        if left > 0.0 {
            ui.colored_label(ui.visuals().text_color(), format!("copied {}", self.what));
            ui.ctx().request_repaint_after(Duration::from_secs_f64(left));
        }
    }
}

/// Whether the window is one of Wayland, as winit chooses.
fn is_wayland() -> bool {
    let names = ["WAYLAND_DISPLAY", "WAYLAND_SOCKET"];
    names.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_clipboard_refuses_is_heard_until_the_next_copy() {
        let ear = Ear { heard: Mutex::new(Heard { copies: 0, unreachable: None, failed: None }) };
        let tell = |level: Level, target: &str, message: &str| {
            ear.log(&Record::builder().level(level).target(target).args(format_args!("{message}")).build());
        };
        let before = ear.begin();
        let refused = ear.begin();
        tell(Level::Error, "wgpu", "copy: something else");
        tell(Level::Error, TARGET, "arboard paste error: no text");
        tell(Level::Info, TARGET, "copy: fine");
        assert_eq!(ear.failure(refused, false), None);
        tell(Level::Error, TARGET, "arboard copy/cut error: refused");
        assert_eq!(ear.failure(refused, true).as_deref(), Some("arboard copy/cut error: refused"));
        assert_eq!(ear.failure(before, true), None, "that was another");
        let next = ear.begin();
        assert_eq!(ear.failure(next, false), None);
        tell(Level::Warn, TARGET, "Failed to initialize arboard clipboard: no display");
        let last = ear.begin();
        assert!(ear.failure(last, false).is_some_and(|why| why.ends_with("no display")));
        assert_eq!(ear.failure(last, true), None, "the desktop has another clipboard");
    }
}
