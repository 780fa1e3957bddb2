//! Tables of any length over the opened traces: only the rows on screen are laid out.
//!
//! A table is its columns, each with a function from a row to what its cell says. Sorting, filtering, copying, drawing
//! and clicking are the same for all of them.

use std::borrow::Cow;
use std::sync::Arc;

use bubblescope::trace::Ns;
use crossbeam_channel::{Receiver, bounded};
use eframe::egui::{self, Align2, FontId, Pos2, Rect, Role, Sense, Ui, Vec2};

use crate::background::{Background, Wanted};
use crate::document::Document;
use crate::format;
use crate::text::Widths;
use crate::theme::Palette;

/// On both sides of what a cell says.
const SIDE: f32 = 8.0;
/// Rows that are looked at for how wide columns are.
const MEASURED_ROWS: usize = 200;
/// Height of a row.
const ROW_HEIGHT: f32 = 20.0;

/// What a cell says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A length of time.
    Duration(Ns),
    /// A moment of the trace.
    Moment(Ns),
    /// A number of things.
    Count(u64),
    /// A part of a whole.
    Share(Ns, Ns),
    /// Nothing is known.
    Unknown,
}

impl<'a> Cell<'a> {
    /// Words.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A length of time, if it is known.
    pub fn maybe(duration: Option<Ns>) -> Self {
        duration.map_or(Self::Unknown, Self::Duration)
    }

    /// As people read it.
    fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Duration(ns) => Cow::Owned(format::duration(ns.0)),
            Self::Moment(ns) => Cow::Owned(format::moment(ns.0)),
            Self::Count(count) => Cow::Owned(format::count(*count)),
            Self::Share(part, whole) => Cow::Owned(format::percent(part.0, whole.0)),
            Self::Unknown => Cow::Borrowed("–"),
        }
    }

    /// The same, taken out.
    fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            other => Cow::Owned(other.shown().into_owned()),
        }
    }

    /// What it sorts by among figures; what is unknown is least.
    fn figure(&self) -> i64 {
        match self {
            Self::Duration(ns) | Self::Moment(ns) => ns.0,
            Self::Count(count) => i64::try_from(*count).unwrap_or(i64::MAX),
            Self::Share(part, whole) if whole.0 > 0 => {
                (i128::from(part.0) * 1_000_000 / i128::from(whole.0)).try_into().unwrap_or(i64::MAX)
            }
            Self::Text(_) | Self::Share(..) | Self::Unknown => i64::MIN,
        }
    }

    /// As a program reads it: nanoseconds, plain numbers, shares from 0 to 1, quoted words.
    fn csv(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            Self::Duration(_) | Self::Moment(_) | Self::Count(_) => self.figure().to_string(),
            Self::Share(_, whole) if whole.0 > 0 => format!("{:.6}", self.figure() as f64 / 1e6),
            Self::Share(..) | Self::Unknown => String::new(),
        }
    }
}

/// Gives what a row's cell says.
type CellOf<R> = for<'a> fn(&'a [Document], R) -> Cell<'a>;

/// A column of a table.
#[derive(Debug)]
pub struct Column<R> {
    title: &'static str,
    hint: &'static str,
    /// How wide it stays, if what it holds is wider, where there is too little room.
    width: f32,
    /// Whether it holds figures, which stand on the right and sort from the greatest.
    figures: bool,
    /// Whether it is shown only when several traces are open.
    of_several: bool,
    cell: CellOf<R>,
}

impl<R> Column<R> {
    /// A column of words.
    pub const fn words(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { title, hint, width, figures: false, of_several: false, cell }
    }

    /// A column of figures.
    pub const fn figures(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { title, hint, width, figures: true, of_several: false, cell }
    }

    /// The column that names the trace.
    pub const fn trace(cell: CellOf<R>) -> Self {
        Self { title: "Trace", hint: "The file", width: 90.0, figures: false, of_several: true, cell }
    }

    /// Whether it says nothing, with so many traces.
    fn is_left_out(&self, traces: usize) -> bool {
        self.of_several && traces < 2
    }
}

/// A row of a table: names a thing of the opened traces.
pub trait Row: Copy + PartialEq + Send + Sync + 'static {
    /// What a row is.
    const ONE: &'static str;
    /// What the rows are, in the plural.
    const NAME: &'static str;
    /// The columns.
    const COLUMNS: &'static [Column<Self>];
    /// The column that sorts at first.
    const SORT: usize;
}

/// The rows of a table before they are sorted and filtered.
#[derive(Clone, Copy, Debug)]
pub struct Source<F> {
    /// Changes whenever there would be other rows.
    pub version: u64,
    /// About how many there are.
    pub len: usize,
    /// Gives every row.
    pub all: F,
}

/// Gives every row of some documents.
pub type AllOf<R> = fn(&[Document]) -> Vec<R>;

/// What a table's rows were made for: the version of their source, the column that sorts, whether the greatest is on
/// top, and the filter.
type Made = (u64, usize, bool, String);

/// How a table is sorted and filtered, and the rows that result.
#[derive(Debug)]
pub struct Table<R> {
    /// The column that sorts.
    pub sort: usize,
    /// Whether the greatest is on top.
    pub descending: bool,
    /// What a row must contain to be shown.
    pub filter: String,
    rows: Background<Made, Arc<[R]>>,
    copying: Option<Receiver<String>>,
    /// How wide the columns would be, for these rows and so many traces.
    natural: Option<(Arc<[R]>, usize, Vec<f32>)>,
    /// What was selected in the last frame.
    selected: Option<R>,
    /// Whether to scroll to the selection once its row is known.
    reveal: bool,
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        let descending = R::COLUMNS.get(R::SORT).is_some_and(|column| column.figures);
        let (rows, copying) = (Background::default(), None);
        let (sort, filter) = (R::SORT, String::new());
        Self { sort, descending, filter, rows, copying, natural: None, selected: None, reveal: false }
    }
}

/// Up to so many rows are sorted and filtered at once, which takes a few milliseconds; more by a thread of their own.
const FEW_ROWS: usize = 2_000;
/// Rows between two looks at whether they are still wanted.
const ROWS_PER_LOOK: usize = 4_096;

/// Sorts and filters rows. Gives up early, with any rows, when they are no longer `wanted`.
pub fn arranged<R: Row>(
    docs: &[Document],
    mut rows: Vec<R>,
    (sort, descending, filter): (usize, bool, &str),
    wanted: &Wanted,
) -> Vec<R> {
    let filter = filter.trim().to_lowercase();
    let (looked_at, filter) = searched::<R>(&filter);
    if let ([column], Some(bound)) = (looked_at, Bound::of(filter)) {
        rows.retain(|&row| bound.holds(&(column.cell)(docs, row)));
    } else if !filter.is_empty() {
        let holds = |column: &Column<R>, row| holds(&(column.cell)(docs, row).shown(), filter);
        let mut at = 0;
        rows.retain(|&row| {
            at += 1;
            let over = at % ROWS_PER_LOOK == 0 && wanted.is_over();
            !over && looked_at.iter().any(|column| holds(column, row))
        });
    }
    if wanted.is_over() {
        return rows;
    }
    if let Some(column) = R::COLUMNS.get(sort) {
        if column.figures {
            let mut keyed: Vec<(i64, R)> = rows.iter().map(|&row| ((column.cell)(docs, row).figure(), row)).collect();
            keyed.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
            rows = keyed.into_iter().map(|(_, row)| row).collect();
        } else {
            let text = |row| (column.cell)(docs, row).into_text();
            let mut keyed: Vec<(Cow<'_, str>, R)> = rows.iter().map(|&row| (text(row), row)).collect();
            keyed.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
            rows = keyed.into_iter().map(|(_, row)| row).collect();
        }
    }
    rows
}

/// What can be written into the field that filters.
const FILTER_HINT: &str = "Words that a row holds; “column: words” looks at one column only. “column: >50” and “column: <2 ms” compare \
    figures: times are in µs unless ns, ms or s is written.";

/// A bound that a filter sets to figures: `>50`, `<= 1.5 ms`. Holds them exactly, as digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound<'a> {
    above: bool,
    or_equal: bool,
    digits: i128,
    decimals: u32,
    unit: &'a str,
}

impl<'a> Bound<'a> {
    /// Reads a bound; `None` if it is none, or not whole yet.
    fn of(text: &'a str) -> Option<Self> {
        let (above, rest) = match text.strip_prefix('>') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('<')?),
        };
        let (or_equal, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let rest = rest.trim();
        let end = rest
            .find(|letter: char| !(letter.is_ascii_digit() || letter == '.' || letter == ','))
            .unwrap_or(rest.len());
        let (number, unit) = (rest[..end].replace(',', ""), rest[end..].trim());
        let (whole, part) = number.split_once('.').unwrap_or((&number, ""));
        if whole.len() + part.len() > 18 {
            return None;
        }
        Some(Self {
            above,
            or_equal,
            digits: format!("{whole}{part}").parse().ok()?,
            decimals: part.len() as u32,
            unit,
        })
    }

    /// Whether a figure is within it; a cell that holds none never is.
    fn holds(self, cell: &Cell<'_>) -> bool {
        let unit = match (cell, self.unit) {
            (Cell::Duration(_) | Cell::Moment(_), unit) => match unit {
                "ns" => 1,
                "" | "us" | "µs" | "μs" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                _ => return false,
            },
            (Cell::Count(_), "") => 1,
            // The figure of a share is in millionths.
            (Cell::Share(_, whole), "" | "%") if whole.0 > 0 => 10_000,
            _ => return false,
        };
        let (figure, bound) = (i128::from(cell.figure()) * 10_i128.pow(self.decimals), self.digits * unit);
        (self.or_equal && figure == bound) || if self.above { figure > bound } else { figure < bound }
    }
}

/// Widths of columns for so much room: columns of words give way.
fn fitted<R: Row>(mut natural: Vec<f32>, available: f32) -> Vec<f32> {
    let over = natural.iter().sum::<f32>() - available;
    let spare = |column: &Column<R>, width: f32| if column.figures { 0.0 } else { (width - column.width).max(0.0) };
    let all: f32 = R::COLUMNS.iter().zip(&natural).map(|(column, width)| spare(column, *width)).sum();
    if over > 0.0 && all > 0.0 {
        for (column, width) in R::COLUMNS.iter().zip(&mut natural) {
            *width -= spare(column, *width) * (over / all).min(1.0);
        }
    }
    natural
}

/// The columns that a filter looks at, and what it looks for there: `cause: sync` looks at one column only.
fn searched<R: Row>(filter: &str) -> (&'static [Column<R>], &str) {
    let named = filter.split_once(':').and_then(|(name, text)| {
        let at = R::COLUMNS.iter().position(|column| column.title.eq_ignore_ascii_case(name.trim()))?;
        Some((&R::COLUMNS[at..=at], text.trim()))
    });
    named.unwrap_or((R::COLUMNS, filter))
}

/// Whether a text contains another that is in lower case, upper and lower case alike.
fn holds(text: &str, lower: &str) -> bool {
    if text.is_ascii() && lower.is_ascii() {
        let (text, lower) = (text.as_bytes(), lower.as_bytes());
        text.windows(lower.len()).any(|part| part.eq_ignore_ascii_case(lower))
    } else {
        text.to_lowercase().contains(lower)
    }
}

/// Rows as comma-separated values with a heading.
fn csv<R: Row>(docs: &[Document], rows: &[R]) -> String {
    let mut csv = R::COLUMNS.iter().map(|column| Cell::text(column.title).csv()).collect::<Vec<_>>().join(",");
    csv.push('\n');
    for &row in rows {
        for (at, column) in R::COLUMNS.iter().enumerate() {
            if at > 0 {
                csv.push(',');
            }
            csv.push_str(&(column.cell)(docs, row).csv());
        }
        csv.push('\n');
    }
    csv
}

/// The documents for another thread to read in.
fn to_read(docs: &[Document]) -> Vec<Document> {
    docs.iter().map(Document::without_rows).collect()
}

impl<R: Row> Table<R> {
    /// The rows, sorted and filtered, and whether they are those that are wanted now: many rows come a few frames
    /// later, and until then the ones before are given.
    pub fn rows<F>(&mut self, ctx: &egui::Context, docs: &[Document], source: &Source<F>) -> (Arc<[R]>, bool)
    where
        F: Fn(&[Document]) -> Vec<R> + Clone + Send + 'static,
    {
        let wanted = (source.version, self.sort, self.descending, self.filter.clone());
        let (sort, descending, filter) = (self.sort, self.descending, self.filter.clone());
        if source.len <= FEW_ROWS {
            let make = || arranged(docs, (source.all)(docs), (sort, descending, &filter), &Wanted::default()).into();
            return (Arc::clone(self.rows.get_now(wanted, make)), true);
        }
        let rows = self.rows.get(ctx, wanted, || {
            let (docs, all) = (to_read(docs), source.all.clone());
            move |until: &Wanted| arranged(&docs, all(&docs), (sort, descending, &filter), until).into()
        });
        if let Some(rows) = rows {
            return (Arc::clone(rows), true);
        }
        (self.rows.last().map_or_else(|| [].into(), |(_, rows)| Arc::clone(rows)), false)
    }

    /// Whether the rows that are shown name things of the documents as they are now.
    fn is_current(&self, version: u64) -> bool {
        self.rows.last().is_some_and(|((of, ..), _)| *of == version)
    }

    /// Sorts by a column, or turns the order around.
    pub fn sort_by(&mut self, column: usize) {
        let figures = R::COLUMNS.get(column).is_some_and(|column| column.figures);
        self.descending = if self.sort == column { !self.descending } else { figures };
        self.sort = column;
    }

    /// Copies rows as comma-separated values, once they are written.
    fn copy(&mut self, ctx: &egui::Context, docs: &[Document], rows: &Arc<[R]>) {
        if rows.len() <= FEW_ROWS {
            ctx.copy_text(csv(docs, rows));
            return;
        }
        let (send, written) = bounded(1);
        let (docs, rows, wake) = (to_read(docs), Arc::clone(rows), ctx.clone());
        let work = move || {
            // Nobody listens any more when the window was closed.
            drop(send.send(csv(&docs, &rows)));
            wake.request_repaint();
        };
        if std::thread::Builder::new().name("copy".to_owned()).spawn(work).is_ok() {
            self.copying = Some(written);
        }
    }

    /// How wide each column would be to show all that it says.
    fn widths_of(&mut self, docs: &[Document], rows: &Arc<[R]>, widths: &Widths) -> Vec<f32> {
        if let Some((of, traces, natural)) = &self.natural
            && Arc::ptr_eq(of, rows)
            && *traces == docs.len()
        {
            return natural.clone();
        }
        let step = rows.len().div_ceil(MEASURED_ROWS).max(1);
        let natural = R::COLUMNS.iter().map(|column| {
            if column.is_left_out(docs.len()) {
                return 0.0;
            }
            let cells = rows.iter().step_by(step).map(|&row| widths.width(&(column.cell)(docs, row).shown()));
            cells.fold(widths.width(column.title) + MARK, f32::max).ceil() + 2.0 * SIDE
        });
        let natural: Vec<f32> = natural.collect();
        self.natural = Some((Arc::clone(rows), docs.len(), natural.clone()));
        natural
    }

    /// Shows the table in the rest of `ui`; gives the row that was clicked.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        docs: &[Document],
        selected: Option<R>,
        source: &Source<impl Fn(&[Document]) -> Vec<R> + Clone + Send + 'static>,
    ) -> Option<R> {
        let ctx = ui.ctx().clone();
        if let Some(text) = self.copying.as_ref().and_then(|written| written.try_recv().ok()) {
            ctx.copy_text(text);
            self.copying = None;
        }
        let palette = Palette::of(ui.visuals());
        let font = FontId::proportional(12.0);
        let widths = Widths::of(ui.painter(), &font);
        ui.horizontal(|ui| {
            let label = ui.label("Filter");
            let field = egui::TextEdit::singleline(&mut self.filter).desired_width(180.0);
            let column = R::COLUMNS.iter().find(|column| column.figures).map_or("column", |column| column.title);
            let column = R::COLUMNS.get(R::SORT).filter(|by| by.figures).map_or(column, |by| by.title).to_lowercase();
            let field = field.hint_text(format!("words, or {column}: >50"));
            ui.add(field).labelled_by(label.id).on_hover_text(FILTER_HINT);
            let (rows, ready) = self.rows(&ctx, docs, source);
            let copy = egui::Button::new("Copy as CSV");
            if ui.add_enabled(ready && self.copying.is_none(), copy).clicked() {
                self.copy(&ctx, docs, &rows);
            }
            let found = if rows.is_empty() && ready && !self.filter.trim().is_empty() {
                format!("no {} matches, of {}", R::ONE, format::count(source.len as u64))
            } else {
                format::things(rows.len() as u64, R::ONE, R::NAME)
            };
            ui.colored_label(palette.weak_text, found);
            if !ready || self.copying.is_some() {
                ui.spinner();
                ui.colored_label(palette.weak_text, if ready { "Copying…" } else { "Sorting…" });
            }
        });
        let available = ui.available_width() - 12.0;
        let (rows, _) = self.rows(&ctx, docs, source);
        let columns = fitted::<R>(self.widths_of(docs, &rows, &widths), available);
        let edges: Vec<f32> = columns
            .iter()
            .scan(0.0, |left, width| {
                *left += width;
                Some(*left)
            })
            .collect();
        let total = edges.last().copied().unwrap_or(0.0).max(available);
        let mut clicked = None;
        egui::ScrollArea::horizontal().id_salt(R::NAME).auto_shrink(false).show(ui, |ui| {
            self.heading_ui(ui, &edges, &widths, &palette);
            let (rows, ready) = self.rows(&ctx, docs, source);
            if selected != self.selected {
                (self.selected, self.reveal) = (selected, selected.is_some());
            }
            let revealed = selected.filter(|_| self.reveal && ready);
            let revealed = revealed.and_then(|selected| rows.iter().position(|row| *row == selected));
            self.reveal &= !ready;
            let height = ROW_HEIGHT - ui.spacing().item_spacing.y;
            egui::ScrollArea::vertical().id_salt("rows").auto_shrink(false).show_rows(
                ui,
                height,
                rows.len(),
                |ui, shown| {
                    if let Some(at) = revealed {
                        let top = ui.max_rect().top() + (at as f32 - shown.start as f32) * ROW_HEIGHT;
                        let left = ui.max_rect().left();
                        // With the rows above and below: the edges of the area are faint.
                        let y = top - ROW_HEIGHT..=top + 2.0 * ROW_HEIGHT;
                        ui.scroll_to_rect(Rect::from_x_y_ranges(left..=left, y), None);
                    }
                    for (at, &row) in shown.clone().zip(&rows[shown]) {
                        let (rect, response) = ui.allocate_exact_size(Vec2::new(total, height), Sense::click());
                        let rect = rect.expand2(Vec2::new(0.0, ui.spacing().item_spacing.y / 2.0));
                        if Some(row) == selected {
                            ui.painter().rect_filled(rect, 0.0, ui.visuals().selection.bg_fill);
                        } else if response.hovered() {
                            ui.painter().rect_filled(rect, 0.0, palette.section);
                        } else if at % 2 == 1 {
                            ui.painter().rect_filled(rect, 0.0, ui.visuals().faint_bg_color);
                        }
                        let mut left = rect.left();
                        for (column, edge) in R::COLUMNS.iter().zip(&edges) {
                            let right = rect.left() + edge;
                            let cell = Rect::from_x_y_ranges(left + SIDE..=right - SIDE, rect.y_range());
                            left = right;
                            if cell.width() <= 0.0 {
                                continue;
                            }
                            let shown = (column.cell)(docs, row);
                            let shown = shown.shown();
                            let Some(text) = widths.fit(&shown, cell.width()) else { continue };
                            let (at, align) = if column.figures {
                                (Pos2::new(cell.right(), cell.center().y), Align2::RIGHT_CENTER)
                            } else {
                                (Pos2::new(cell.left(), cell.center().y), Align2::LEFT_CENTER)
                            };
                            ui.painter().text(at, align, text, font.clone(), palette.text);
                        }
                        let name = format!("{} row {at}", R::NAME);
                        response.widget_info(|| egui::WidgetInfo::labeled(Role::Row, true, &name));
                        if response.clicked() && self.is_current(source.version) {
                            clicked = Some(row);
                        }
                    }
                },
            );
        });
        clicked
    }

    fn heading_ui(&mut self, ui: &mut Ui, edges: &[f32], widths: &Widths, palette: &Palette) {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 0.0;
            let mut left = 0.0;
            for (at, (column, &edge)) in R::COLUMNS.iter().zip(edges).enumerate() {
                if edge <= left {
                    continue;
                }
                let (rect, response) = ui.allocate_exact_size(Vec2::new(edge - left, ROW_HEIGHT), Sense::click());
                left = edge;
                response.widget_info(|| egui::WidgetInfo::labeled(Role::ColumnHeader, true, column.title));
                if response.clicked() {
                    self.sort_by(at);
                }
                let sorted = self.sort == at;
                let color = if sorted || response.hovered() { palette.text } else { palette.weak_text };
                let room = rect.width() - 2.0 * SIDE - if sorted { MARK } else { 0.0 };
                let title = widths.fit(column.title, room).unwrap_or_default();
                let painted = if column.figures {
                    let at = Pos2::new(rect.right() - SIDE, rect.center().y);
                    ui.painter().text(at, Align2::RIGHT_CENTER, title, widths.font().clone(), color)
                } else {
                    let at = Pos2::new(rect.left() + SIDE, rect.center().y);
                    ui.painter().text(at, Align2::LEFT_CENTER, title, widths.font().clone(), color)
                };
                if sorted {
                    let x = if column.figures { painted.left() - MARK / 2.0 } else { painted.right() + MARK / 2.0 };
                    ui.painter().add(sort_mark(Pos2::new(x, rect.center().y), self.descending, color));
                }
                response.on_hover_text(column.hint);
            }
        });
        ui.separator();
    }
}

/// Room for the mark of the column that sorts.
const MARK: f32 = 12.0;

/// The triangle beside the heading that sorts.
fn sort_mark(centre: Pos2, descending: bool, color: egui::Color32) -> egui::Shape {
    let tip = if descending { 2.5 } else { -2.5 };
    let points = [(-3.0, -tip), (3.0, -tip), (0.0, tip)].map(|(x, y)| centre + Vec2::new(x, y));
    egui::Shape::convex_polygon(points.to_vec(), color, egui::Stroke::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [(&str, u64); 3] = [("sync \"now\"", 9), ("copy", 100), ("Sync", 20)];

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Word(usize);

    impl Row for Word {
        const ONE: &'static str = "word";
        const NAME: &'static str = "words";
        const COLUMNS: &'static [Column<Self>] = &[
            Column::words("Word", "", 10.0, |_, row: Self| Cell::text(WORDS[row.0].0)),
            Column::figures("Figure", "", 10.0, |_, row: Self| Cell::Count(WORDS[row.0].1)),
        ];
        const SORT: usize = 1;
    }

    fn words(_: &[Document]) -> Vec<Word> {
        vec![Word(0), Word(1), Word(2)]
    }

    #[test]
    fn rows_are_sorted_filtered_and_copied() {
        let ctx = egui::Context::default();
        let numbers = |table: &mut Table<Word>| {
            let (rows, ready) = table.rows(&ctx, &[], &Source { version: 0, len: 3, all: words });
            assert!(ready, "few rows are there at once");
            rows.iter().map(|row| row.0).collect::<Vec<_>>()
        };
        let mut table = Table::default();
        assert_eq!(numbers(&mut table), [1, 2, 0]);
        table.sort_by(1);
        assert_eq!(numbers(&mut table), [0, 2, 1]);
        table.sort_by(0);
        assert_eq!(numbers(&mut table), [2, 1, 0]);
        table.filter = "SYNC".to_owned();
        assert_eq!(numbers(&mut table), [2, 0]);
        table.filter = "word: now".to_owned();
        assert_eq!(numbers(&mut table), [0]);
        for other in ["figure: sync", "sync:"] {
            table.filter = other.to_owned();
            assert_eq!(numbers(&mut table), [0_usize; 0], "{other} is in no such column");
        }
        table.filter = " Figure :100 ".to_owned();
        assert_eq!(numbers(&mut table), [1]);
        assert_eq!(csv(&[], &[Word(2), Word(0)]), "\"Word\",\"Figure\"\n\"Sync\",20\n\"sync \"\"now\"\"\",9\n");
        for (filter, rows) in [
            ("figure: >20", &[1][..]),
            ("figure: >= 20", &[1, 2]),
            ("FIGURE:<20.5", &[2, 0]),
            ("figure: <1,000", &[1, 2, 0]),
            ("figure: >20 ms", &[]),
            ("word: >2", &[]),
            (">20", &[]),
        ] {
            table.filter = filter.to_owned();
            table.sort = 1;
            table.descending = true;
            assert_eq!(numbers(&mut table), rows, "{filter}");
        }
        table.filter.clear();
        let one = Source { version: 1, len: 1, all: |_: &[Document]| vec![Word(0)] };
        assert_eq!(*table.rows(&ctx, &[], &one).0, [Word(0)], "a new version is read again");
    }

    #[test]
    fn bounds_are_exact_and_know_units() {
        let holds = |bound: &str, cell: Cell<'_>| Bound::of(bound).is_some_and(|bound| bound.holds(&cell));
        for (bound, ns, held) in [
            (">50", 50_000, false),
            (">50", 50_001, true),
            (">=50", 50_000, true),
            ("< 1.5 ms", 1_499_999, true),
            ("<1.5ms", 1_500_000, false),
            (">2s", 2_000_000_001, true),
            (">7 ns", 8, true),
            (">7 apples", 8_000_000, false),
        ] {
            assert_eq!(holds(bound, Cell::Duration(Ns(ns))), held, "{bound} {ns}");
        }
        assert!(holds(">33 %", Cell::Share(Ns(1), Ns(3))) && !holds(">34", Cell::Share(Ns(1), Ns(3))));
        assert!(!holds("<1", Cell::Unknown) && !holds("<1", Cell::text("0")));
        for text in ["", ">", "<=", ">x", ">1.2.3", ">99999999999999999999", "50"] {
            assert_eq!(Bound::of(text), None, "{text}");
        }
    }

    #[test]
    fn equal_rows_stay_in_their_order_whichever_way_they_are_sorted() {
        let rows: Vec<Figure> = [(5, 0), (7, 1), (5, 2), (7, 3)].map(|(figure, order)| Figure { figure, order }).into();
        let sorted = arranged(&[], rows.clone(), (0, true, ""), &Wanted::default());
        assert_eq!(sorted.iter().map(|row| row.order).collect::<Vec<_>>(), [1, 3, 0, 2]);
        let sorted = arranged(&[], rows, (0, false, ""), &Wanted::default());
        assert_eq!(sorted.iter().map(|row| row.order).collect::<Vec<_>>(), [0, 2, 1, 3]);
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Figure {
        figure: u64,
        order: usize,
    }

    impl Row for Figure {
        const ONE: &'static str = "figure";
        const NAME: &'static str = "figures";
        const COLUMNS: &'static [Column<Self>] =
            &[Column::figures("Figure", "", 10.0, |_, row: Self| Cell::Count(row.figure))];
        const SORT: usize = 0;
    }

    #[test]
    fn many_rows_come_later_and_never_those_of_an_older_question() {
        let ctx = egui::Context::default();
        let all = |_: &[Document]| (0..100_000).map(|at| Word(at % 3)).collect::<Vec<_>>();
        let source = Source { version: 0, len: 100_000, all };
        let mut table: Table<Word> = Table { filter: "copy".to_owned(), ..Table::default() };
        assert!(!table.rows(&ctx, &[], &source).1, "they are not made within a frame");
        table.filter = "now".to_owned();
        let start = std::time::Instant::now();
        let rows = loop {
            let (rows, ready) = table.rows(&ctx, &[], &source);
            if ready {
                break rows;
            }
            assert!(start.elapsed().as_secs() < 20, "the rows never come");
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        assert_eq!((rows.len(), rows[0]), (33_334, Word(0)));
    }

    #[test]
    fn letters_of_either_case_are_found() {
        for (text, lower, found) in [("cudaMemcpy", "mem", true), ("GRÖSSE", "größe", false), ("Größe", "größ", true)]
        {
            assert_eq!(holds(text, lower), found, "{text} {lower}");
        }
        assert!(!holds("a", "ab") && !holds("", "a"));
    }

    #[test]
    fn figures_are_exact_for_programs_and_readable_for_people() {
        for (cell, shown, csv) in [
            (Cell::Duration(Ns(1_234_567)), "1.23 ms", "1234567"),
            (Cell::Moment(Ns(5)), "0.000 ms", "5"),
            (Cell::Count(1_234), "1,234", "1234"),
            (Cell::Share(Ns(1), Ns(3)), "33.3 %", "0.333333"),
            (Cell::Share(Ns(1), Ns(0)), "–", ""),
            (Cell::Unknown, "–", ""),
        ] {
            assert_eq!(cell.shown(), shown);
            assert_eq!(cell.csv(), csv);
        }
        assert!(Cell::Unknown.figure() < Cell::Duration(Ns(-1)).figure());
    }
}
