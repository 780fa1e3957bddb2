//! The whole of all traces in a strip: how idle each part is, and which part the timeline shows.

use std::sync::Arc;

use bubblescope::trace::Interval;
use eframe::egui::{self, Mesh, Painter, Rangef, Rect, Role, Sense, Shape, Stroke, StrokeKind, Ui};

use crate::document::Document;
use crate::paint::{Columns, Look, Quads};
use crate::rows::RowKind;
use crate::theme::Palette;
use crate::tint::Tints;
use crate::view::Viewport;

/// Height of the strip of one trace.
const STRIP_HEIGHT: f32 = 18.0;

/// Height of the minimap of so many traces.
pub fn height(docs: usize) -> f32 {
    docs as f32 * STRIP_HEIGHT + 4.0
}

/// The strips of the last frame, which are painted again as long as they show the same.
#[derive(Debug, Default)]
pub struct Minimap {
    painted: Option<(Shown, Arc<Mesh>)>,
}

/// What strips show.
#[derive(Debug, PartialEq)]
struct Shown {
    area: Rect,
    pixel: f32,
    palette: Palette,
    whole: Viewport,
    /// The version of each scene, and where it stands on the common time scale.
    docs: Vec<(u64, i64)>,
}

impl Minimap {
    /// Shows the minimap; gives the view that the user asked for.
    pub fn show(
        &mut self,
        ui: &Ui,
        area: Rect,
        docs: &[Document],
        view: Viewport,
        bounds: Interval,
        tints: &Tints,
    ) -> Option<Viewport> {
        let whole = Viewport::of(bounds, 0.02);
        let painter = ui.painter_at(area);
        let shown = Shown {
            area,
            pixel: 1.0 / painter.pixels_per_point(),
            palette: *tints.palette(),
            whole,
            docs: docs.iter().map(|doc| (doc.scene.version(), doc.offset)).collect(),
        };
        let painted = self.painted.take().filter(|(before, _)| *before == shown);
        let (_, mesh) = self.painted.insert(painted.unwrap_or_else(|| {
            let mesh = Arc::new(shown.paint(docs, tints));
            (shown, mesh)
        }));
        painter.add(Shape::Mesh(Arc::clone(mesh)));
        window_ui(ui, &painter, area, whole, view, tints.palette())
    }
}

impl Shown {
    fn paint(&self, docs: &[Document], tints: &Tints) -> Mesh {
        let area = self.area;
        let mut quads = Quads::default();
        quads.add(area, self.palette.canvas_alternate);
        let width = (area.width() / self.pixel).round() as usize;
        for (doc, document) in docs.iter().enumerate() {
            let top = area.top() + 2.0 + doc as f32 * STRIP_HEIGHT;
            let columns = strip(document, self.whole.moved(document.offset.saturating_neg()), width);
            let y = Rangef::new(top, top + STRIP_HEIGHT - 2.0);
            quads.add_runs(columns.runs(Look::Bars, tints), area.left(), self.pixel, y);
        }
        quads.into_mesh()
    }
}

/// Shows which part the timeline shows; gives the view that the user asked for.
fn window_ui(
    ui: &Ui,
    painter: &Painter,
    area: Rect,
    whole: Viewport,
    view: Viewport,
    palette: &Palette,
) -> Option<Viewport> {
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

/// How idle the devices are on average, or what the first row shows as long as the trace is not analysed.
fn strip(document: &Document, view: Viewport, width: usize) -> Columns {
    let rows = document.scene.sections.iter().flat_map(|section| &section.rows);
    let bubbles = rows.clone().filter(|row| matches!(row.kind, RowKind::Bubbles { .. }));
    let mut columns = Columns::default();
    if bubbles.clone().next().is_some() {
        columns.fill_average(bubbles.filter_map(|row| row.lanes.first()), view, width);
    } else {
        columns.fill_average(rows.take(1).filter_map(|row| row.lanes.first()), view, width);
    }
    columns
}
