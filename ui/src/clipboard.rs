//! Whether the desktop's clipboard takes what is copied. egui tells that to the log alone, so this listens to the log.

use std::sync::{Mutex, PoisonError};

use log::{Level, LevelFilter, Log, Metadata, Record};

/// Where egui's messages about the clipboard come from.
const TARGET: &str = "egui_winit::clipboard";

static EAR: Ear = Ear { heard: Mutex::new(Heard { unreachable: None, failed: None }) };

/// What was heard.
#[derive(Debug)]
struct Heard {
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
    fn begin(&self) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).failed = None;
    }

    /// Of Wayland's own clipboard nothing is told; the one that cannot be reached is then another, which is not used.
    fn failure(&self, wayland: bool) -> Option<String> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.failed.clone().or_else(|| heard.unreachable.clone().filter(|_| !wayland))
    }
}

/// Listens from now on. To be called before the window opens; of several calls only the first counts.
pub fn listen() {
    if log::set_logger(&EAR).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// Something is about to be copied.
pub fn begin() {
    EAR.begin();
}

/// Why what was copied last is not on the clipboard, as far as is known: that takes a frame.
pub fn failure() -> Option<String> {
    // As winit chooses.
    let wayland = ["WAYLAND_DISPLAY", "WAYLAND_SOCKET"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    EAR.failure(wayland)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_clipboard_refuses_is_heard_until_the_next_copy() {
        let ear = Ear { heard: Mutex::new(Heard { unreachable: None, failed: None }) };
        let tell = |level: Level, target: &str, message: &str| {
            ear.log(&Record::builder().level(level).target(target).args(format_args!("{message}")).build());
        };
        tell(Level::Error, "wgpu", "copy: something else");
        tell(Level::Error, TARGET, "arboard paste error: no text");
        tell(Level::Info, TARGET, "copy: fine");
        assert_eq!(ear.failure(false), None);
        tell(Level::Error, TARGET, "arboard copy/cut error: refused");
        assert_eq!(ear.failure(true).as_deref(), Some("arboard copy/cut error: refused"));
        ear.begin();
        assert_eq!(ear.failure(false), None);
        tell(Level::Warn, TARGET, "Failed to initialize arboard clipboard: no display");
        ear.begin();
        assert!(ear.failure(false).is_some_and(|why| why.ends_with("no display")));
        assert_eq!(ear.failure(true), None, "the desktop has another clipboard");
    }
}
