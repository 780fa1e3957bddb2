//! Tables of any length over the opened traces: only the rows on screen are laid out.
//!
//! A table is its columns, each with a function from a row to what its cell says. Sorting, filtering, copying, drawing
//! and clicking are the same for all of them.

use std::borrow::Cow;

use bubblescope::trace::Ns;
use eframe::egui::{self, Align2, FontId, Pos2, Rect, Role, Sense, Ui, Vec2};

use crate::document::Document;
use crate::format;
use crate::text::Widths;
use crate::theme::Palette;

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
    width: f32,
    /// Whether it holds figures, which stand on the right and sort from the greatest.
    figures: bool,
    cell: CellOf<R>,
}

impl<R> Column<R> {
    /// A column of words.
    pub const fn words(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { title, hint, width, figures: false, cell }
    }

    /// A column of figures.
    pub const fn figures(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { title, hint, width, figures: true, cell }
    }
}

/// A row of a table: names a thing of the opened traces.
pub trait Row: Copy + PartialEq + 'static {
    /// What the rows are, in the plural.
    const NAME: &'static str;
    /// The columns.
    const COLUMNS: &'static [Column<Self>];
    /// The column that sorts at first.
    const SORT: usize;
}

/// How a table is sorted and filtered, and the rows that result.
#[derive(Debug)]
pub struct Table<R> {
    /// The column that sorts.
    pub sort: usize,
    /// Whether the greatest is on top.
    pub descending: bool,
    /// What a row must contain to be shown.
    pub filter: String,
    rows: Vec<R>,
    made_for: Option<(u64, usize, bool, String)>,
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        let descending = R::COLUMNS.get(R::SORT).is_some_and(|column| column.figures);
        Self { sort: R::SORT, descending, filter: String::new(), rows: Vec::new(), made_for: None }
    }
}

impl<R: Row> Table<R> {
    /// The rows, sorted and filtered. `all` gives every row; `version` changes whenever it would give others.
    pub fn rows(&mut self, docs: &[Document], version: u64, all: impl FnOnce() -> Vec<R>) -> &[R] {
        let wanted = (version, self.sort, self.descending, self.filter.clone());
        if self.made_for.as_ref() != Some(&wanted) {
            self.rows = all();
            let filter = self.filter.to_lowercase();
            if !filter.is_empty() {
                let holds = |column: &Column<R>, row| (column.cell)(docs, row).shown().to_lowercase().contains(&filter);
                self.rows.retain(|&row| R::COLUMNS.iter().any(|column| holds(column, row)));
            }
            if let Some(column) = R::COLUMNS.get(self.sort) {
                if column.figures {
                    self.rows.sort_by_cached_key(|&row| (column.cell)(docs, row).figure());
                } else {
                    self.rows.sort_by_cached_key(|&row| (column.cell)(docs, row).shown().into_owned());
                }
            }
            if self.descending {
                self.rows.reverse();
            }
            self.made_for = Some(wanted);
        }
        &self.rows
    }

    /// Sorts by a column, or turns the order around.
    pub fn sort_by(&mut self, column: usize) {
        let figures = R::COLUMNS.get(column).is_some_and(|column| column.figures);
        self.descending = if self.sort == column { !self.descending } else { figures };
        self.sort = column;
    }

    /// The rows as comma-separated values with a heading.
    pub fn csv(&mut self, docs: &[Document], version: u64, all: impl FnOnce() -> Vec<R>) -> String {
        let mut csv = R::COLUMNS.iter().map(|column| Cell::text(column.title).csv()).collect::<Vec<_>>().join(",");
        csv.push('\n');
        for &row in self.rows(docs, version, all) {
            let cells = R::COLUMNS.iter().map(|column| (column.cell)(docs, row).csv());
            csv.push_str(&cells.collect::<Vec<_>>().join(","));
            csv.push('\n');
        }
        csv
    }

    /// Shows the table in the rest of `ui`; gives the row that was clicked.
    pub fn show(
        &mut self,
        ui: &mut Ui,
        docs: &[Document],
        version: u64,
        selected: Option<R>,
        all: impl Fn() -> Vec<R>,
    ) -> Option<R> {
        let palette = Palette::of(ui.visuals());
        let font = FontId::proportional(12.0);
        let widths = Widths::of(ui.painter(), &font);
        ui.horizontal(|ui| {
            let label = ui.label("Filter");
            ui.add(egui::TextEdit::singleline(&mut self.filter).desired_width(180.0)).labelled_by(label.id);
            if ui.button("Copy as CSV").clicked() {
                let csv = self.csv(docs, version, &all);
                ui.ctx().copy_text(csv);
            }
            let count = self.rows(docs, version, &all).len() as u64;
            ui.colored_label(palette.weak_text, format!("{} {}", format::count(count), R::NAME));
        });
        let total: f32 = R::COLUMNS.iter().map(|column| column.width).sum();
        // The widest column of words takes what is left.
        let spare = (ui.available_width() - total - 12.0).max(0.0);
        let words = R::COLUMNS.iter().enumerate().filter(|(_, column)| !column.figures);
        let wide = words.max_by(|(_, a), (_, b)| a.width.total_cmp(&b.width)).map_or(0, |(at, _)| at);
        let edges: Vec<f32> = R::COLUMNS
            .iter()
            .enumerate()
            .scan(0.0, |left, (at, column)| {
                *left += column.width + if at == wide { spare } else { 0.0 };
                Some(*left)
            })
            .collect();
        let mut clicked = None;
        egui::ScrollArea::horizontal().id_salt(R::NAME).auto_shrink(false).show(ui, |ui| {
            self.heading_ui(ui, &edges, &widths, &palette);
            let rows = self.rows(docs, version, &all);
            let height = ROW_HEIGHT - ui.spacing().item_spacing.y;
            egui::ScrollArea::vertical().id_salt("rows").auto_shrink(false).show_rows(
                ui,
                height,
                rows.len(),
                |ui, shown| {
                    for (at, &row) in shown.clone().zip(&rows[shown]) {
                        let (rect, response) = ui.allocate_exact_size(Vec2::new(total + spare, height), Sense::click());
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
                            let cell = Rect::from_x_y_ranges(left + 4.0..=right - 4.0, rect.y_range());
                            left = right;
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
                        if response.clicked() {
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
                let (rect, response) = ui.allocate_exact_size(Vec2::new(edge - left, ROW_HEIGHT), Sense::click());
                left = edge;
                response.widget_info(|| egui::WidgetInfo::labeled(Role::ColumnHeader, true, column.title));
                if response.clicked() {
                    self.sort_by(at);
                }
                let sorted = self.sort == at;
                let color = if sorted || response.hovered() { palette.text } else { palette.weak_text };
                let room = rect.width() - 8.0 - if sorted { MARK } else { 0.0 };
                let title = widths.fit(column.title, room).unwrap_or_default();
                let painted = if column.figures {
                    let at = Pos2::new(rect.right() - 4.0, rect.center().y);
                    ui.painter().text(at, Align2::RIGHT_CENTER, title, widths.font().clone(), color)
                } else {
                    let at = Pos2::new(rect.left() + 4.0, rect.center().y);
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
        const NAME: &'static str = "words";
        const COLUMNS: &'static [Column<Self>] = &[
            Column::words("Word", "", 10.0, |_, row: Self| Cell::text(WORDS[row.0].0)),
            Column::figures("Figure", "", 10.0, |_, row: Self| Cell::Count(WORDS[row.0].1)),
        ];
        const SORT: usize = 1;
    }

    #[test]
    fn rows_are_sorted_filtered_and_copied() {
        let all = || vec![Word(0), Word(1), Word(2)];
        let numbers = |rows: &[Word]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
        let mut table = Table::default();
        assert_eq!(numbers(table.rows(&[], 0, all)), [1, 2, 0]);
        table.sort_by(1);
        assert_eq!(numbers(table.rows(&[], 0, all)), [0, 2, 1]);
        table.sort_by(0);
        assert_eq!(numbers(table.rows(&[], 0, all)), [2, 1, 0]);
        table.filter = "SYNC".to_owned();
        assert_eq!(numbers(table.rows(&[], 0, all)), [2, 0]);
        assert_eq!(table.csv(&[], 0, all), "\"Word\",\"Figure\"\n\"Sync\",20\n\"sync \"\"now\"\"\",9\n");
        assert_eq!(numbers(table.rows(&[], 1, || vec![Word(0)])), [0], "a new version is read again");
    }

    #[test]
    fn figures_are_exact_for_programs_and_readable_for_people() {
        for (cell, shown, csv) in [
            (Cell::Duration(Ns(1_234_567)), "1.235 ms", "1234567"),
            (Cell::Moment(Ns(5)), "0.000 000 005 s", "5"),
            (Cell::Count(1_234), "1 234", "1234"),
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
