//! The whole of all traces in a strip: how idle each part is, and which part the timeline shows.

use bubblescope::trace::Interval;
use eframe::egui::{self, Rangef, Rect, Role, Sense, Stroke, StrokeKind, Ui};

use crate::cells::{CellCache, LaneKey};
use crate::document::Document;
use crate::lanes;
use crate::paint::{Columns, Look, Quads};
use crate::rows::RowKind;
use crate::theme::Palette;
use crate::view::Viewport;

/// Height of the strip of one trace.
const STRIP_HEIGHT: f32 = 18.0;

/// Height of the minimap of so many traces.
pub fn height(docs: usize) -> f32 {
    docs as f32 * STRIP_HEIGHT + 4.0
}

/// Shows the minimap; gives the view that the user asked for.
#[expect(clippy::too_many_arguments, reason = "all of it is the geometry of one strip")]
pub fn minimap_ui(
    ui: &Ui,
    area: Rect,
    docs: &[Document],
    view: Viewport,
    bounds: Interval,
    palette: &Palette,
    cells: &mut CellCache,
    columns: &mut Columns,
) -> Option<Viewport> {
    let painter = ui.painter_at(area);
    let whole = Viewport::of(bounds, 0.02);
    let pixel = 1.0 / painter.pixels_per_point();
    let mut quads = Quads::default();
    quads.add(area, palette.canvas_alternate);
    for (doc, document) in docs.iter().enumerate() {
        let top = area.top() + 2.0 + doc as f32 * STRIP_HEIGHT;
        let y = Rangef::new(top, top + STRIP_HEIGHT - 2.0);
        strip(&mut quads, area, y, doc, document, whole, pixel, palette, cells, columns);
    }
    painter.add(quads.into_mesh());

    let x = |time: i64| area.left() + whole.x_of(time, area.width());
    let (from, to) = (x(view.start()).max(area.left()), x(view.end()).min(area.right()));
    let shade = palette.canvas.gamma_multiply(0.6);
    for outside in [area.left()..=from, to..=area.right()] {
        painter.rect_filled(Rect::from_x_y_ranges(outside, area.y_range()), 0.0, shade);
    }
    let window = Rect::from_x_y_ranges(from..=to.max(from + 3.0), area.y_range());
    painter.rect_stroke(window, 2.0, Stroke::new(1.0, palette.text), StrokeKind::Inside);
    painter.hline(area.x_range(), area.bottom() - 0.5, Stroke::new(1.0, palette.grid));

    let response = ui.interact(area, ui.scope_id().with("minimap"), Sense::click_and_drag());
    response.widget_info(|| egui::WidgetInfo::labeled(Role::Canvas, true, "minimap"));
    let pointer = response.interact_pointer_pos().filter(|_| response.clicked() || response.dragged())?;
    let time = whole.time_at(pointer.x - area.left(), area.width());
    Some(Viewport::new(time.saturating_sub(view.span() / 2), view.span()))
}

/// The bubbles of a trace's first device, or its first row as long as it is not analysed.
#[expect(clippy::too_many_arguments, reason = "all of it is the geometry of one strip")]
fn strip(
    quads: &mut Quads,
    area: Rect,
    y: Rangef,
    doc: usize,
    document: &Document,
    whole: Viewport,
    pixel: f32,
    palette: &Palette,
    cells: &mut CellCache,
    columns: &mut Columns,
) {
    let rows = document.scene.sections.iter().flat_map(|section| &section.rows);
    let Some(row) =
        rows.clone().find(|row| matches!(row.kind, RowKind::Bubbles { .. })).or_else(|| rows.clone().next())
    else {
        return;
    };
    let Some(lane) = row.lanes.first() else { return };
    // The strip's level is not that of the timeline's lane, so it is kept under a key of its own.
    let key = LaneKey { doc, section: usize::MAX, row: 0, lane: 0 };
    let view = whole.moved(document.offset.saturating_neg());
    let width = (area.width() / pixel).round() as usize;
    columns.fill(lane, view, width, |lane, level| cells.get(key, lane, level, view));
    columns.paint(quads, area.left(), pixel, y, Look::Bars, |at| lanes::color(document, palette, row.kind, lane, at));
}
