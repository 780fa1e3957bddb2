//! Tables on screen.

use std::sync::Arc;

use eframe::egui::{self, Align2, FontId, Pos2, Rect, Role, Sense, Ui, Vec2};

use super::filter::{self, Filter};
use super::{Column, Row, Source, Table, Unit};
use crate::document::Document;
use crate::format;
use crate::text::Widths;
use crate::theme::Palette;

/// On both sides of what a cell says.
const SIDE: f32 = 8.0;
/// Rows that are looked at for how wide columns are.
const MEASURED_ROWS: usize = 200;
/// Width of the field that filters, which holds its longest hint.
const FILTER_WIDTH: f32 = 240.0;
/// Height of a row.
const ROW_HEIGHT: f32 = 20.0;
/// Room for the mark of the column that sorts.
const MARK: f32 = 12.0;

impl<R: Row> Table<R> {
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
            if column.is_silent(docs, rows) {
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
        if let Some((rows, text)) = self.copying.as_ref().and_then(|written| written.try_recv().ok()) {
            self.copying = None;
            self.put(&ctx, rows, text);
        }
        let palette = Palette::of(ui.visuals());
        let font = FontId::proportional(12.0);
        let widths = Widths::of(ui.painter(), &font);
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Filter");
            let field = egui::TextEdit::singleline(&mut self.filter).desired_width(FILTER_WIDTH);
            let field = field.hint_text(format!("words, or {}", filter::example::<R>()));
            ui.add(field).labelled_by(label.id).on_hover_text(filter::HINT);
            let filter = Filter::of::<R>(&self.filter);
            if let Some(understood) = filter.understood::<R>() {
                ui.colored_label(palette.weak_text, understood).on_hover_text(filter::HINT);
            }
            let (rows, ready) = self.rows(&ctx, docs, source);
            let copy = egui::Button::new("Copy as CSV");
            if ui.add_enabled(ready && self.copying.is_none(), copy).clicked() {
                self.copy(&ctx, docs, &rows);
            }
            self.copied.iter().for_each(|copied| copied.show(ui));
            let found = if rows.is_empty() && ready && !filter.is_empty() {
                filter
                    .problem::<R>(docs.len())
                    .unwrap_or_else(|| format!("no {} matches, of {}", R::ONE, format::count(source.len as u64)))
            } else {
                format::things(rows.len() as u64, R::ONE, R::NAME)
            };
            ui.colored_label(palette.weak_text, found);
            shifts_ui::<R>(ui, docs, &palette);
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
        // Wider than those that were measured, of rows that are in sight.
        let mut wider: Vec<(usize, f32)> = Vec::new();
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
                        for (number, (column, edge)) in R::COLUMNS.iter().zip(&edges).enumerate() {
                            let right = rect.left() + edge;
                            let cell = Rect::from_x_y_ranges(left + SIDE..=right - SIDE, rect.y_range());
                            left = right;
                            if cell.width() <= 0.0 {
                                continue;
                            }
                            let shown = (column.cell)(docs, row);
                            let shown = shown.shown();
                            let text = widths.fit(&shown, cell.width());
                            if text.as_deref() != Some(&*shown) {
                                wider.push((number, (widths.width(&shown) + 1.0).ceil() + 2.0 * SIDE));
                            }
                            let Some(text) = text else { continue };
                            let (at, align) = if column.figures.is_some() {
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
        if let Some((.., natural)) = &mut self.natural {
            for (column, width) in wider {
                if let Some(natural) = natural.get_mut(column).filter(|natural| **natural < width) {
                    *natural = width;
                    ctx.request_repaint();
                }
            }
        }
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
                let painted = if column.figures.is_some() {
                    let at = Pos2::new(rect.right() - SIDE, rect.center().y);
                    ui.painter().text(at, Align2::RIGHT_CENTER, title, widths.font().clone(), color)
                } else {
                    let at = Pos2::new(rect.left() + SIDE, rect.center().y);
                    ui.painter().text(at, Align2::LEFT_CENTER, title, widths.font().clone(), color)
                };
                if sorted {
                    let x = if column.figures.is_some() {
                        painted.left() - MARK / 2.0
                    } else {
                        painted.right() + MARK / 2.0
                    };
                    ui.painter().add(sort_mark(Pos2::new(x, rect.center().y), self.descending, color));
                }
                response.on_hover_text(column.hint);
            }
        });
        ui.separator();
    }
}

/// Says that moments are not those of the recordings, where traces are shifted.
fn shifts_ui<R: Row>(ui: &mut Ui, docs: &[Document], palette: &Palette) {
    let moments = R::COLUMNS.iter().find(|column| column.figures == Some(Unit::Moment));
    let shifted = docs.iter().filter(|doc| doc.offset != 0);
    let shifts: Vec<String> = shifted.map(|doc| format!("{} by {}", doc.name, format::duration(doc.offset))).collect();
    if let Some(column) = moments.filter(|_| !shifts.is_empty()) {
        let text = format!("{} is on the ruler, where traces are shifted", column.title);
        ui.colored_label(palette.weak_text, text).on_hover_text(format!("Shifted: {}", shifts.join(", ")));
    }
}

/// Widths of columns for so much room: columns of words give way.
fn fitted<R: Row>(mut natural: Vec<f32>, available: f32) -> Vec<f32> {
    let over = natural.iter().sum::<f32>() - available;
    let spare =
        |column: &Column<R>, width: f32| if column.figures.is_some() { 0.0 } else { (width - column.width).max(0.0) };
    let all: f32 = R::COLUMNS.iter().zip(&natural).map(|(column, width)| spare(column, *width)).sum();
    if over > 0.0 && all > 0.0 {
        for (column, width) in R::COLUMNS.iter().zip(&mut natural) {
            *width -= spare(column, *width) * (over / all).min(1.0);
        }
    }
    natural
}

/// The triangle beside the heading that sorts.
fn sort_mark(centre: Pos2, descending: bool, color: egui::Color32) -> egui::Shape {
    let tip = if descending { 2.5 } else { -2.5 };
    let points = [(-3.0, -tip), (3.0, -tip), (0.0, tip)].map(|(x, y)| centre + Vec2::new(x, y));
    egui::Shape::convex_polygon(points.to_vec(), color, egui::Stroke::NONE)
}
