//! Tables of any length: only the rows on screen are laid out.

use eframe::egui::{self, Align2, FontId, Pos2, Rect, Role, Sense, Ui, Vec2};

use crate::text::Widths;
use crate::theme::Palette;

/// Height of a row.
const ROW_HEIGHT: f32 = 20.0;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// What it means.
    pub hint: &'static str,
    /// Its width.
    pub width: f32,
    /// Whether it holds figures, which stand on the right and sort from the greatest.
    pub figures: bool,
}

/// Where a table's rows come from.
pub trait Source {
    /// Names a row.
    type Row: Copy + PartialEq;
    /// The columns.
    const COLUMNS: &'static [Column];
    /// Every row.
    fn rows(&self) -> Vec<Self::Row>;
    /// What a cell says.
    fn text(&self, row: Self::Row, column: usize) -> String;
    /// What a cell of figures sorts by.
    fn figure(&self, row: Self::Row, column: usize) -> i64;
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

impl<R: Copy + PartialEq> Table<R> {
    /// A table that is sorted by a column of figures, the greatest on top.
    pub fn sorted_by(column: usize) -> Self {
        Self { sort: column, descending: true, filter: String::new(), rows: Vec::new(), made_for: None }
    }

    /// The rows, sorted and filtered. `version` changes whenever the source does.
    pub fn rows<S: Source<Row = R>>(&mut self, source: &S, version: u64) -> &[R] {
        let wanted = (version, self.sort, self.descending, self.filter.clone());
        if self.made_for.as_ref() != Some(&wanted) {
            self.rows = source.rows();
            let filter = self.filter.to_lowercase();
            if !filter.is_empty() {
                let holds = |row: R, column| source.text(row, column).to_lowercase().contains(&filter);
                self.rows.retain(|&row| (0..S::COLUMNS.len()).any(|column| holds(row, column)));
            }
            let column = self.sort.min(S::COLUMNS.len() - 1);
            if S::COLUMNS[column].figures {
                self.rows.sort_by_cached_key(|&row| source.figure(row, column));
            } else {
                self.rows.sort_by_cached_key(|&row| source.text(row, column));
            }
            if self.descending {
                self.rows.reverse();
            }
            self.made_for = Some(wanted);
        }
        &self.rows
    }

    /// Sorts by a column, or turns the order around.
    pub fn sort_by(&mut self, column: usize, figures: bool) {
        self.descending = if self.sort == column { !self.descending } else { figures };
        self.sort = column;
    }

    /// The rows as comma-separated values with a heading.
    pub fn csv<S: Source<Row = R>>(&mut self, source: &S, version: u64) -> String {
        let quote = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let mut csv = S::COLUMNS.iter().map(|column| quote(column.title)).collect::<Vec<_>>().join(",");
        csv.push('\n');
        for &row in self.rows(source, version) {
            let cells = S::COLUMNS.iter().enumerate().map(|(at, column)| {
                if column.figures { source.figure(row, at).to_string() } else { quote(&source.text(row, at)) }
            });
            csv.push_str(&cells.collect::<Vec<_>>().join(","));
            csv.push('\n');
        }
        csv
    }

    /// Shows the table; gives the row that was clicked.
    pub fn show<S: Source<Row = R>>(
        &mut self,
        ui: &mut Ui,
        name: &str,
        source: &S,
        version: u64,
        selected: Option<R>,
    ) -> Option<R> {
        let palette = Palette::of(ui.visuals());
        let font = FontId::proportional(12.0);
        let widths = Widths::of(ui.painter(), &font);
        ui.horizontal(|ui| {
            let label = ui.label("Filter");
            ui.add(egui::TextEdit::singleline(&mut self.filter).desired_width(180.0)).labelled_by(label.id);
            if ui.button("Copy as CSV").clicked() {
                let csv = self.csv(source, version);
                ui.ctx().copy_text(csv);
            }
            let count = self.rows(source, version).len() as u64;
            ui.colored_label(palette.weak_text, format!("{} {name}", crate::format::count(count)));
        });
        let total: f32 = S::COLUMNS.iter().map(|column| column.width).sum();
        // The first column without figures takes what is left.
        let spare = (ui.available_width() - total - 12.0).max(0.0);
        let wide = S::COLUMNS.iter().rposition(|column| !column.figures).unwrap_or(0);
        let width_of = |at: usize| S::COLUMNS[at].width + if at == wide { spare } else { 0.0 };
        let mut clicked = None;
        egui::ScrollArea::horizontal().id_salt(name).auto_shrink(false).show(ui, |ui| {
            self.heading_ui(ui, S::COLUMNS, width_of, &widths, &palette);
            let rows = self.rows(source, version);
            egui::ScrollArea::vertical().id_salt("rows").auto_shrink(false).show_rows(
                ui,
                ROW_HEIGHT - ui.spacing().item_spacing.y,
                rows.len(),
                |ui, shown| {
                    for (at, &row) in shown.clone().zip(&rows[shown]) {
                        let size = Vec2::new(total + spare, ROW_HEIGHT - ui.spacing().item_spacing.y);
                        let (rect, response) = ui.allocate_exact_size(size, Sense::click());
                        let rect = rect.expand2(Vec2::new(0.0, ui.spacing().item_spacing.y / 2.0));
                        if Some(row) == selected {
                            ui.painter().rect_filled(rect, 0.0, ui.visuals().selection.bg_fill);
                        } else if response.hovered() {
                            ui.painter().rect_filled(rect, 0.0, palette.section);
                        } else if at % 2 == 1 {
                            ui.painter().rect_filled(rect, 0.0, ui.visuals().faint_bg_color);
                        }
                        let mut left = rect.left();
                        for (column, spec) in S::COLUMNS.iter().enumerate() {
                            let width = width_of(column);
                            let cell = Rect::from_x_y_ranges(left + 4.0..=left + width - 4.0, rect.y_range());
                            left += width;
                            let text = source.text(row, column);
                            let Some(text) = widths.fit(&text, cell.width()) else { continue };
                            let (at, align) = if spec.figures {
                                (Pos2::new(cell.right(), cell.center().y), Align2::RIGHT_CENTER)
                            } else {
                                (Pos2::new(cell.left(), cell.center().y), Align2::LEFT_CENTER)
                            };
                            ui.painter().text(at, align, text, font.clone(), palette.text);
                        }
                        response.widget_info(|| egui::WidgetInfo::labeled(Role::Row, true, format!("{name} row {at}")));
                        if response.clicked() {
                            clicked = Some(row);
                        }
                    }
                },
            );
        });
        clicked
    }

    fn heading_ui(
        &mut self,
        ui: &mut Ui,
        columns: &[Column],
        width_of: impl Fn(usize) -> f32,
        widths: &Widths,
        palette: &Palette,
    ) {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = 0.0;
            for (at, column) in columns.iter().enumerate() {
                let (rect, response) = ui.allocate_exact_size(Vec2::new(width_of(at), ROW_HEIGHT), Sense::click());
                response.widget_info(|| egui::WidgetInfo::labeled(Role::ColumnHeader, true, column.title));
                if response.clicked() {
                    self.sort_by(at, column.figures);
                }
                let sorted = self.sort == at;
                let mark = match (sorted, self.descending) {
                    (false, _) => "",
                    (true, true) => " v",
                    (true, false) => " ^",
                };
                let text = format!("{}{mark}", column.title);
                let (x, align) = if column.figures {
                    (rect.right() - 4.0, Align2::RIGHT_CENTER)
                } else {
                    (rect.left() + 4.0, Align2::LEFT_CENTER)
                };
                let color = if sorted || response.hovered() { palette.text } else { palette.weak_text };
                ui.painter().text(Pos2::new(x, rect.center().y), align, text, widths.font().clone(), color);
                response.on_hover_text(column.hint);
            }
        });
        ui.separator();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words(&'static [(&'static str, i64)]);

    impl Source for Words {
        type Row = usize;
        const COLUMNS: &'static [Column] = &[
            Column { title: "Word", hint: "", width: 10.0, figures: false },
            Column { title: "Figure", hint: "", width: 10.0, figures: true },
        ];
        fn rows(&self) -> Vec<usize> {
            (0..self.0.len()).collect()
        }
        fn text(&self, row: usize, column: usize) -> String {
            if column == 0 { self.0[row].0.to_owned() } else { self.0[row].1.to_string() }
        }
        fn figure(&self, row: usize, _: usize) -> i64 {
            self.0[row].1
        }
    }

    #[test]
    fn rows_are_sorted_filtered_and_copied() {
        let words = Words(&[("sync \"now\"", 9), ("copy", 100), ("Sync", 20)]);
        let mut table = Table::sorted_by(1);
        assert_eq!(table.rows(&words, 0), [1, 2, 0]);
        table.sort_by(1, true);
        assert_eq!(table.rows(&words, 0), [0, 2, 1]);
        table.sort_by(0, false);
        assert_eq!(table.rows(&words, 0), [2, 1, 0]);
        table.filter = "SYNC".to_owned();
        assert_eq!(table.rows(&words, 0), [2, 0]);
        assert_eq!(table.csv(&words, 0), "\"Word\",\"Figure\"\n\"Sync\",20\n\"sync \"\"now\"\"\",9\n");
        let other = Words(&[("sync", 1)]);
        assert_eq!(table.rows(&other, 1), [0], "a new version is read again");
    }
}
