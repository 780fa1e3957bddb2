//! Reports for people: aligned tables and plain sentences.
//!
//! What is written holds colour codes when [`Style::color`] is set. Write it through `anstream`, which takes them out
//! again where they are not wanted: no terminal, or `NO_COLOR`.

mod compare;
mod gate;
mod names;
mod ranks;
mod report;
mod summary;
mod table;
mod units;
mod words;

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Paint};

pub use crate::analysis::words::{bytes, counted, grouped, moment, percent, percent_of, rate, time, while_recording};
pub use compare::render as render_compare;
pub use gate::{render as render_gate, render_all as render_gates};
pub use ranks::render as render_ranks;
pub use report::render;
pub use summary::contents;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the page. Tables and paragraphs fit from about 80 on.
    pub width: usize,
    /// Whether to write colour codes.
    pub color: bool,
    /// The most rows of the tables that could be endless.
    pub rows: usize,
}

impl Default for Style {
    /// A page of 100 columns in colour.
    fn default() -> Self {
        Self { width: 100, color: true, rows: 10 }
    }
}

impl Style {
    /// A page of 100 columns without colour.
    pub const PLAIN: Self = Self { width: 100, color: false, rows: 10 };

    fn paint(self, out: &mut dyn Write, paint: Paint, text: &str) -> io::Result<()> {
        if self.color && paint != Paint::new() { write!(out, "{paint}{text}{paint:#}") } else { write!(out, "{text}") }
    }

    /// Headings.
    fn heading(self) -> Paint {
        Paint::new().bold()
    }

    /// What is there for reference.
    fn faint(self) -> Paint {
        Paint::new().dimmed()
    }

    /// What must be seen.
    fn alarm(self) -> Paint {
        AnsiColor::Red.on_default().bold()
    }

    /// What costs.
    fn costly(self) -> Paint {
        AnsiColor::Yellow.on_default()
    }

    /// What is well.
    fn good(self) -> Paint {
        AnsiColor::Green.on_default()
    }

    /// Writes the heading of a section, after an empty line.
    fn section(self, out: &mut dyn Write, title: &str) -> io::Result<()> {
        writeln!(out)?;
        self.paint(out, self.heading(), title)?;
        writeln!(out)
    }
}

#[cfg(test)]
mod tests;
