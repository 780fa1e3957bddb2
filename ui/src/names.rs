//! The names of rows: what they are called, and where they are folded, hidden, pinned, moved and made higher.

use eframe::egui::{self, Align2, Color32, Pos2, Rect, Response, Role, Sense, Shape, Stroke, Ui, Vec2};

use crate::arrange::{Arrangement, FoldKey, Key, Place, ROW_GAP, RowAct};
use crate::command::{Command, Shortcut};
use crate::document::Document;
use crate::format;
use crate::lanes::Group;
use crate::rows::Section;
use crate::text::Widths;
use crate::theme::Palette;

/// How far above its lower edge a row can be taken to make it higher.
const HANDLE: f32 = 5.0;

/// A row whose name is shown.
struct Named<'a> {
    doc: usize,
    section: &'a Section,
    key: Key,
    lanes: usize,
}

/// Shows the names of a group's lines in `area`, and changes the arrangement as the user asks.
pub fn names_ui(
    ui: &Ui,
    docs: &[Document],
    group: &Group<'_>,
    area: Rect,
    arrangement: &mut Arrangement,
    palette: &Palette,
    widths: &Widths,
) {
    let painter = ui.painter().with_clip_rect(area);
    for line in group.shown() {
        let rect = Rect::from_x_y_ranges(area.x_range(), group.y_of(line));
        let (fold, title, note, row) = match line.place {
            Place::Trace { doc } => {
                let shifted = match docs[doc].offset {
                    0 => String::new(),
                    offset => format!("{}{}", if offset > 0 { "+" } else { "" }, format::duration(offset)),
                };
                (FoldKey::Trace(doc), docs[doc].name.clone(), shifted, None)
            }
            Place::Section { doc, section } => {
                let found = &docs[doc].scene.sections[section];
                let empty = if found.empty > 0 { format!("{} empty", found.empty) } else { String::new() };
                (FoldKey::Section(found.key), found.title.clone(), empty, None)
            }
            Place::Row { doc, section, row, .. } => {
                let section = &docs[doc].scene.sections[section];
                let found = &section.rows[row];
                let named = Named { doc, section, key: found.key, lanes: found.lanes.len() };
                (FoldKey::Row(found.key), found.title.clone(), found.note.clone(), Some(named))
            }
        };
        let doc = match line.place {
            Place::Trace { doc } | Place::Section { doc, .. } | Place::Row { doc, .. } => doc,
        };
        let sense = if row.is_some() { Sense::click_and_drag() } else { Sense::click() };
        let response = ui.interact(rect.intersect(area), ui.scope_id().with((fold, doc)), sense);
        response.widget_info(|| egui::WidgetInfo::labeled(Role::Button, true, &title));
        let fill = match (&row, response.hovered() || response.dragged()) {
            (None, _) => palette.section,
            (Some(_), true) => palette.canvas_alternate,
            (Some(_), false) => palette.canvas,
        };
        painter.rect_filled(rect, 0.0, fill);
        let pinned = row.as_ref().is_some_and(|row| arrangement.is_pinned(row.key));
        let mut left = rect.left() + if row.is_some() { 20.0 } else { 6.0 };
        let mark = Pos2::new(rect.left() + 11.0, rect.top() + rect.height().min(24.0) / 2.0);
        if row.is_none() {
            painter.add(fold_mark(mark, arrangement.is_folded(fold), palette.weak_text));
            left += 16.0;
        } else if pinned {
            painter.circle_filled(mark, 3.0, palette.weak_text);
        } else if row.as_ref().is_some_and(|row| row.lanes > 1) {
            painter.add(fold_mark(mark, arrangement.is_folded(fold), palette.grid));
        }
        let middle = if row.is_some() { rect.top() + ROW_GAP / 2.0 + 9.0 } else { rect.center().y };
        let width = rect.right() - left - 6.0;
        let is_trace = matches!(line.place, Place::Trace { .. });
        if is_trace {
            painter.hline(rect.x_range(), rect.top() + 0.5, Stroke::new(1.0, palette.weak_text));
        }
        if let Some(text) = widths.fit(&title, width) {
            let color = if is_trace { palette.link } else { palette.text };
            painter.text(Pos2::new(left, middle), Align2::LEFT_CENTER, text, widths.font().clone(), color);
        }
        let rest = width - widths.width(&title) - 10.0;
        let below = rest < widths.width(&note) && rect.height() > 38.0 && row.is_some();
        let (room, at, align) = if below {
            (width, Pos2::new(left, middle + 15.0), Align2::LEFT_CENTER)
        } else {
            (rest, Pos2::new(rect.right() - 6.0, middle), Align2::RIGHT_CENTER)
        };
        if let Some(text) = widths.fit(&note, room) {
            painter.text(at, align, text, widths.font().clone(), palette.weak_text);
        }
        if response.clicked() {
            arrangement.toggle(fold);
        }
        if let Some(row) = row {
            height_ui(ui, &row, rect, area, arrangement);
            drag_ui(&response, docs, group, &row, arrangement);
            menu_ui(&response, Some(&row), fold, arrangement);
            let above = if pinned { format!("{} · ", row.section.title) } else { String::new() };
            response.on_hover_text(format!("{above}{title}\n{note}"));
        } else {
            menu_ui(&response, None, fold, arrangement);
            let note = match line.place {
                Place::Trace { .. } if !note.is_empty() => format!("shifted by {note}"),
                _ => note,
            };
            if !note.is_empty() {
                response.on_hover_text(format!("{title}\n{note}"));
            }
        }
    }
}

/// Moves a row while its name is dragged over others.
fn drag_ui(response: &Response, docs: &[Document], group: &Group<'_>, row: &Named<'_>, arrangement: &mut Arrangement) {
    if !response.dragged() {
        return;
    }
    let Some(pointer) = response.interact_pointer_pos() else { return };
    response.ctx.set_cursor_icon(egui::CursorIcon::Grabbing);
    let Some(line) = group.shown().iter().find(|line| group.y_of(line).contains(pointer.y)) else { return };
    if let Place::Row { doc, section, row: at, .. } = line.place {
        let target = docs[doc].scene.sections[section].rows[at].key;
        // A high row would jump back at once if a lower one made room for it before the pointer is past its middle.
        let own = group.shown().iter().find(|line| is_row(docs, line.place, row));
        let (own_y, target_y) = (own.map(|line| group.y_of(line)), group.y_of(line));
        let past = own_y.is_some_and(|own| {
            if own.min < target_y.min {
                pointer.y > target_y.max - own.span()
            } else {
                pointer.y < target_y.min + own.span()
            }
        });
        if target != row.key && past {
            arrangement.move_to(row.section, row.key, target);
        }
    }
}

fn is_row(docs: &[Document], place: Place, row: &Named<'_>) -> bool {
    matches!(place, Place::Row { doc, section, row: at, .. }
        if doc == row.doc && docs[doc].scene.sections[section].rows[at].key == row.key)
}

/// The lower edge of a row, which makes its lanes higher when it is dragged.
fn height_ui(ui: &Ui, row: &Named<'_>, rect: Rect, area: Rect, arrangement: &mut Arrangement) {
    let edge = Rect::from_x_y_ranges(rect.x_range(), rect.bottom() - HANDLE..=rect.bottom());
    let edge = edge.intersect(area);
    if !edge.is_positive() {
        return;
    }
    let response = ui.interact(edge, ui.scope_id().with(("height", row.key, row.doc)), Sense::click_and_drag());
    if response.double_clicked() {
        arrangement.set_height(row.key, None);
    } else if let Some(pointer) = response.interact_pointer_pos().filter(|_| response.dragged()) {
        let height = (pointer.y - rect.top() - ROW_GAP) / row.lanes as f32;
        arrangement.set_height(row.key, Some(height));
    }
    response.on_hover_and_drag_cursor(egui::CursorIcon::ResizeVertical);
}

/// What a right click on a name offers: what the keys do to the current row, too.
fn menu_ui(response: &Response, row: Option<&Named<'_>>, fold: FoldKey, arrangement: &mut Arrangement) {
    response.context_menu(|ui| {
        let entry = |ui: &mut Ui, command: Command, text: &str, enabled: bool| {
            let keys = command.entry().keys.first().map(Shortcut::text).unwrap_or_default();
            ui.add_enabled(enabled, egui::Button::new(text).shortcut_text(keys)).clicked()
        };
        if let Some(row) = row {
            let pin = if arrangement.is_pinned(row.key) { "Unpin" } else { "Pin to the top" };
            let above = arrangement.neighbour(row.section, row.key, false).is_some();
            let below = arrangement.neighbour(row.section, row.key, true).is_some();
            for (command, act, text, enabled) in [
                (Command::PinRow, RowAct::Pin, pin, true),
                (Command::MoveRowUp, RowAct::MoveUp, "Move up", above),
                (Command::MoveRowDown, RowAct::MoveDown, "Move down", below),
                (Command::HideRow, RowAct::Hide, "Hide", true),
            ] {
                if entry(ui, command, text, enabled) {
                    arrangement.act(row.section, row.key, act);
                }
            }
        }
        let fold = row.map_or(fold, |row| Arrangement::fold_of(row.section, row.key));
        let section = if matches!((row, fold), (Some(_), FoldKey::Section(_))) { " the section" } else { "" };
        let word = if arrangement.is_folded(fold) { "Expand" } else { "Collapse" };
        if entry(ui, Command::FoldRow, &format!("{word}{section}"), true) {
            arrangement.toggle(fold);
        }
        ui.separator();
        if let Some(row) = row {
            let own = arrangement.has_height(row.key);
            if ui.add_enabled(own, egui::Button::new("Usual height")).clicked() {
                arrangement.set_height(row.key, None);
            }
        }
        let command = Command::ShowRows;
        if entry(ui, command, command.entry().title, arrangement.hides_any()) {
            arrangement.show_all();
        }
    });
}

/// The triangle before a name that folds: down when open, right when folded.
fn fold_mark(centre: Pos2, folded: bool, color: Color32) -> Shape {
    let corners =
        if folded { [(-2.5, -4.0), (3.0, 0.0), (-2.5, 4.0)] } else { [(-4.0, -2.5), (4.0, -2.5), (0.0, 3.0)] };
    let points = corners.map(|(x, y)| centre + Vec2::new(x, y)).to_vec();
    Shape::convex_polygon(points, color, Stroke::NONE)
}
