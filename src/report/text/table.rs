//! Aligned tables and wrapped paragraphs, with colour where it is wanted.

use std::io::{self, Write};

use anstyle::Style as Paint;
use unicode_width::UnicodeWidthStr;

use super::Style;
use super::names::{cut, elide, harmless};

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Align {
    /// Names: left, and too long ones lose their middle.
    Left,
    /// Sentences: left, and too long ones lose their end.
    Sentence,
    /// Figures.
    Right,
}

/// One cell of a table.
#[derive(Clone, Default)]
pub(super) struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    pub(super) fn painted(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: harmless(text.into().trim()), paint }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(text, Paint::new())
    }
}

/// A table. Columns are as wide as their widest cell; where that is wider than the page, the one elastic column gives.
pub(super) struct Table {
    columns: Vec<(&'static str, Align)>,
    elastic: usize,
    rows: Vec<Vec<Cell>>,
    /// Lines beneath rows: the row, columns to the left of the text, the text.
    lines: Vec<(usize, usize, String)>,
}

/// Columns between two columns of a table.
const GAP: usize = 2;
/// The elastic column is never narrower than this.
const NARROWEST: usize = 16;

impl Table {
    /// A table with these columns, of which `elastic` is made narrower when the page is.
    pub(super) fn new(columns: &[(&'static str, Align)], elastic: usize) -> Self {
        Self { columns: columns.to_vec(), elastic, rows: Vec::new(), lines: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// Adds a row of any length.
    pub(super) fn row_of(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Adds a line beneath the last row, indented by so much more than the table.
    pub(super) fn beneath(&mut self, indent: usize, text: String) {
        if let Some(row) = self.rows.len().checked_sub(1) {
            self.lines.push((row, indent, harmless(&text)));
        }
    }

    /// The columns that it takes when nothing is made narrower.
    pub(super) fn width(&self) -> usize {
        self.widths().iter().sum::<usize>() + GAP * self.columns.len().saturating_sub(1)
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(heading, _)| heading.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        widths
    }

    /// Leaves out columns in which no row has anything.
    pub(super) fn without_empty_columns(mut self) -> Self {
        for column in (0..self.columns.len()).rev() {
            let empty = |row: &Vec<Cell>| row.get(column).is_none_or(|cell| cell.text.is_empty());
            if self.rows.iter().all(empty) {
                self.columns.remove(column);
                self.elastic -= usize::from(column < self.elastic);
                for row in self.rows.iter_mut().filter(|row| column < row.len()) {
                    row.remove(column);
                }
            }
        }
        self
    }

    /// Writes the table, indented. Without headings the first line is a row.
    pub(super) fn write(&self, out: &mut dyn Write, style: Style, indent: usize) -> io::Result<()> {
        let mut widths = self.widths();
        let total = indent + self.width();
        if let (Some(over), Some(elastic)) = (total.checked_sub(style.width), widths.get_mut(self.elastic)) {
            *elastic = elastic.saturating_sub(over).max(NARROWEST.min(*elastic));
        }
        if self.columns.iter().any(|(heading, _)| !heading.is_empty()) {
            let headings: Vec<Cell> =
                self.columns.iter().map(|(heading, _)| Cell::painted(*heading, style.faint())).collect();
            self.write_row(out, style, indent, &widths, &headings)?;
        }
        let mut lines = self.lines.iter().peekable();
        for (index, row) in self.rows.iter().enumerate() {
            self.write_row(out, style, indent, &widths, row)?;
            while let Some((_, further, text)) = lines.next_if(|(row, ..)| *row == index) {
                let indent = indent + further;
                write!(out, "{:indent$}", "")?;
                style.paint(out, style.faint(), &elide(text, style.width.saturating_sub(indent)))?;
                writeln!(out)?;
            }
        }
        Ok(())
    }

    fn write_row(
        &self,
        out: &mut dyn Write,
        style: Style,
        indent: usize,
        widths: &[usize],
        row: &[Cell],
    ) -> io::Result<()> {
        // Blanks are held back until something follows them, so that no line ends in one.
        let mut blanks = indent;
        for ((cell, &width), (_, align)) in row.iter().zip(widths).zip(&self.columns) {
            let text = if *align == Align::Sentence { cut(&cell.text, width) } else { elide(&cell.text, width) };
            let padding = width - text.width();
            let (before, after) = if *align == Align::Right { (padding, 0) } else { (0, padding) };
            if !text.is_empty() {
                write!(out, "{:1$}", "", blanks + before)?;
                style.paint(out, cell.paint, &text)?;
                blanks = 0;
            } else {
                blanks += before;
            }
            blanks += after + GAP;
        }
        writeln!(out)
    }
}

/// Whether a word is the unit of the number before it, which stays on its line.
fn is_unit(word: &str) -> bool {
    ["ns", "µs", "ms", "s", "%"].contains(&word.trim_end_matches([',', '.', ';', ':', ')']))
}

/// Writes a paragraph in lines that fit the page: the first begins with `first`, the others are indented as far.
pub(super) fn paragraph(out: &mut dyn Write, style: Style, paint: Paint, first: &str, text: &str) -> io::Result<()> {
    labelled(out, style, (Paint::new(), first), (paint, text))
}

/// A paragraph whose first line begins with something in a colour of its own.
pub(super) fn labelled(
    out: &mut dyn Write,
    style: Style,
    (label_paint, label): (Paint, &str),
    (paint, text): (Paint, &str),
) -> io::Result<()> {
    let indent = label.width();
    let room = style.width.saturating_sub(indent).max(20);
    let mut lines: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace().map(harmless) {
        match words.last_mut().filter(|number| is_unit(&word) && number.ends_with(|last: char| last.is_ascii_digit())) {
            Some(number) => *number = format!("{number} {word}"),
            None => words.push(word),
        }
    }
    for word in words {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    let label_alone = lines.is_empty();
    style.paint(out, label_paint, if label_alone { label.trim_end() } else { label })?;
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            write!(out, "\n{:indent$}", "")?;
        }
        style.paint(out, paint, line)?;
    }
    writeln!(out)
}
