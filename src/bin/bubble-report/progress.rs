//! Progress on a terminal, and nothing elsewhere.

use std::path::Path;
use std::time::Duration;

use bubblescope::open::{OpenError, open_part_watched, open_watched};
use bubblescope::progress::Watch;
use bubblescope::trace::Trace;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::WindowArgs;

/// A bar over a known number of steps, on standard error; hidden unless that is a terminal.
pub(crate) fn bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)") {
        bar.set_style(style);
    }
    tick(&bar);
    bar
}

/// A sign of life for work of unknown length, on standard error; hidden unless that is a terminal.
pub(crate) fn spinner(message: &'static str) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        spinner.set_style(style);
    }
    spinner.set_message(message);
    tick(&spinner);
    spinner
}

/// Lets it move, which takes a thread of its own: not for what nobody sees.
fn tick(bar: &ProgressBar) {
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(250));
    }
}

/// Shows a sign of life during work of unknown length.
pub(crate) fn during<T>(message: &'static str, work: impl FnOnce() -> T) -> T {
    let spinner = spinner(message);
    let done = work();
    spinner.finish_and_clear();
    done
}

/// Shows how far reading is.
struct Reading(ProgressBar);

impl Watch for Reading {
    fn progress(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    fn is_cancelled(&self) -> bool {
        // An interrupt ends the program.
        false
    }
}

/// Opens a recording and shows how far that is.
pub(crate) fn open(path: &Path) -> Result<Trace, OpenError> {
    reading(path, |watch| open_watched(path, watch))
}

/// Opens as much of a recording as a window needs, and shows how far that is.
pub(crate) fn open_for(path: &Path, window: &WindowArgs) -> Result<Trace, OpenError> {
    reading(path, |watch| open_for_watched(path, window, watch))
}

/// The same, and tells `watch` how far that is.
pub(crate) fn open_for_watched(path: &Path, window: &WindowArgs, watch: &dyn Watch) -> Result<Trace, OpenError> {
    match window.part() {
        Some(part) => open_part_watched(path, part, watch),
        None => open_watched(path, watch),
    }
}

fn reading<T>(path: &Path, open: impl FnOnce(&dyn Watch) -> T) -> T {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent} % of {msg} read") {
        bar.set_style(style);
    }
    bar.set_message(path.display().to_string());
    let reading = Reading(bar);
    let opened = open(&reading);
    reading.0.finish_and_clear();
    opened
}
