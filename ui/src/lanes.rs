//! Draws the lanes of a timeline and finds what lies under a point.

use bubblescope::trace::Interval;
use eframe::egui::epaint::PathStroke;
use eframe::egui::{Align2, Color32, Painter, Pos2, Rangef, Rect, Shape, Stroke, StrokeKind, Vec2};

use crate::describe;
use crate::document::{Document, Item, Pick};
use crate::paint::{Columns, Look, Quads};
use crate::rows::{LANE_HEIGHT, Line, Place, ROW_GAP, Row, RowKind};
use crate::strips::Strips;
use crate::text::Widths;
use crate::theme::{Palette, blend, text_on};
use crate::timeline::Drawn;
use crate::tint::Tints;
use crate::view::Viewport;

/// A box narrower than this has no name.
const LEAST_NAME: f32 = 30.0;
/// Names drawn at most in one frame.
const MOST_NAMES: usize = 600;
/// Arrows drawn at most from one launch.
const MOST_ARROWS: usize = 32;

/// The geometry of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Canvas<'a> {
    /// What is shown.
    pub docs: &'a [Document],
    /// Where on the screen.
    pub area: Rect,
    /// Where on the screen the first line would be, scrolled as it is.
    pub top: f32,
    /// The shown part of the common time scale.
    pub view: Viewport,
    /// Colours.
    pub palette: &'a Palette,
    /// Widths of letters.
    pub widths: &'a Widths,
}

/// What painting keeps from frame to frame to save allocations.
#[derive(Debug, Default)]
pub struct Brushes {
    columns: Columns,
    strips: Strips,
}

/// Paints the lines that are on screen; `as_shapes` without a texture, for pictures that are made of shapes alone.
pub fn paint(
    painter: &Painter,
    canvas: &Canvas<'_>,
    shown: &[Line],
    step: i64,
    brushes: &mut Brushes,
    as_shapes: bool,
) -> Drawn {
    let mut drawn = Drawn::default();
    let (mut below, mut above) = (Quads::default(), Quads::default());
    let mut names: Vec<(Pos2, String, Color32)> = Vec::new();
    let palette = canvas.palette;
    let tints = Tints::of(palette);
    let Brushes { columns, strips } = brushes;
    for line in shown {
        let rect = Rect::from_x_y_ranges(canvas.area.x_range(), canvas.y_of(line));
        match line.place {
            Place::Trace { .. } | Place::Section { .. } => below.add(rect, palette.section),
            Place::Row { row, .. } if row % 2 == 1 => below.add(rect, palette.canvas_alternate),
            Place::Row { .. } => {}
        }
    }
    canvas.grid(&mut below, step);
    let pixel = 1.0 / painter.pixels_per_point();
    let left = canvas.area.left();
    let width = (canvas.area.width() / pixel).round() as usize;
    let side = painter.ctx().input(|input| input.max_texture_side);
    strips.begin(width, side);
    for line in shown {
        let Place::Row { doc, section, row, lane_height } = line.place else { continue };
        let (document, found) = (&canvas.docs[doc], &canvas.docs[doc].scene.sections[section].rows[row]);
        let view = canvas.view.moved(document.offset.saturating_neg());
        for (at, lane) in found.lanes.iter().enumerate() {
            let y = canvas.lane_y(line, at, lane_height);
            if y.max < canvas.area.top() || y.min > canvas.area.bottom() {
                continue;
            }
            drawn.lanes += 1;
            columns.fill(lane, view, width);
            drawn.columns += columns.filled();
            match found.kind {
                RowKind::Bubbles { .. } => above.add_runs(columns.runs(Look::Bars, &tints), left, pixel, y),
                _ if as_shapes => above.add_runs(columns.runs(Look::Faint, &tints), left, pixel, y),
                _ => strips.add(columns, &tints, left, pixel, y),
            }
            for found_box in columns.boxes() {
                let from = (left + found_box.from * pixel).max(left);
                let to = (left + found_box.to * pixel).min(canvas.area.right());
                let tint = lane.tint(found_box.at as usize);
                let fill = tints.get(tint);
                if tint.striped() && to - from > 6.0 {
                    let inside = Rect::from_x_y_ranges(from..=to, y);
                    above.add_stripes(inside, 8.0, blend(fill, Color32::BLACK, 0.25));
                }
                if to - from < LEAST_NAME || y.span() < 12.0 || names.len() >= MOST_NAMES {
                    continue;
                }
                let item = found.kind.item(lane.item(found_box.at as usize));
                if let Some(text) = canvas.widths.fit(&describe::label(document, item), to - from - 8.0) {
                    let text = text.into_owned();
                    names.push((Pos2::new(from + 4.0, y.center()), text, text_on(fill)));
                }
            }
        }
    }
    drawn.labels = names.len();
    painter.add(below.into_mesh());
    painter.add(strips.finish(painter.ctx(), side));
    painter.add(above.into_mesh());
    for (at, text, color) in names {
        painter.text(at, Align2::LEFT_CENTER, text, canvas.widths.font().clone(), color);
    }
    drawn
}

/// Where the lane of a thing stands, measured from the top of the first line.
pub fn lane_of(docs: &[Document], lines: &[Line], pick: Pick) -> Option<Rangef> {
    let doc = docs.get(pick.doc)?;
    let spot = doc.scene.find(&doc.trace, pick.item, doc.times(pick.item)?.start.0)?;
    lines.iter().find_map(|line| match line.place {
        Place::Row { doc, section, row, lane_height } if (doc, section, row) == (pick.doc, spot.section, spot.row) => {
            let top = line.top + ROW_GAP / 2.0 + spot.lane as f32 * lane_height;
            Some(Rangef::new(top, top + lane_height))
        }
        _ => None,
    })
}

impl Canvas<'_> {
    fn y_of(&self, line: &Line) -> Rangef {
        Rangef::new(self.top + line.top, self.top + line.top + line.height)
    }

    fn lane_y(&self, line: &Line, lane: usize, lane_height: f32) -> Rangef {
        let top = self.top + line.top + ROW_GAP / 2.0 + lane as f32 * lane_height;
        let gap = if lane_height >= LANE_HEIGHT { 1.0 } else { 0.0 };
        Rangef::new(top.round(), (top + lane_height - gap).round())
    }

    fn x_of(&self, time: i64) -> f32 {
        self.area.left() + self.view.x_of(time, self.area.width())
    }

    fn grid(&self, quads: &mut Quads, step: i64) {
        let mut time = self.view.start().div_euclid(step) * step;
        while time <= self.view.end() {
            let x = self.x_of(time).round();
            quads.add(Rect::from_x_y_ranges(x..=x + 1.0, self.area.y_range()), self.palette.grid);
            time = time.saturating_add(step);
        }
    }

    /// The thing under a point: the one that is open at its moment, else the longest within a pixel.
    pub fn pick_at(&self, shown: &[Line], point: Pos2) -> Option<Pick> {
        let line = shown.iter().find(|line| self.y_of(line).contains(point.y))?;
        let Place::Row { doc, section, row, lane_height } = line.place else { return None };
        let document = self.docs.get(doc)?;
        let found: &Row = document.scene.sections.get(section)?.rows.get(row)?;
        let lane = ((point.y - self.top - line.top - ROW_GAP / 2.0) / lane_height).max(0.0) as usize;
        let lane = found.lanes.get(lane)?;
        let x = point.x - self.area.left();
        let time = |x: f32| self.view.time_at(x, self.area.width()).saturating_sub(document.offset);
        let at = lane.at(time(x)).or_else(|| lane.longest_in(time(x - 1.0), time(x + 1.0).saturating_add(1)))?;
        Some(Pick { doc, item: found.kind.item(lane.item(at)) })
    }

    fn rect_of(&self, lines: &[Line], pick: Pick) -> Option<Rect> {
        let doc = self.docs.get(pick.doc)?;
        let times = doc.shifted(doc.times(pick.item)?);
        let y = lane_of(self.docs, lines, pick)?;
        // Rectangles far beyond the screen would lose their edges to the precision of f32.
        let clamp = |x: f32| x.clamp(self.area.left() - 20.0, self.area.right() + 20.0);
        let (from, to) = (clamp(self.x_of(times.start.0)), clamp(self.x_of(times.end.0)));
        Some(Rect::from_x_y_ranges(from..=to.max(from + 1.0), self.top + y.min..=self.top + y.max - 1.0))
    }

    /// Outlines a thing.
    pub fn paint_outline(&self, painter: &Painter, lines: &[Line], pick: Pick, stroke: Stroke) {
        if let Some(rect) = self.rect_of(lines, pick) {
            painter.rect_stroke(rect, 0.0, stroke, StrokeKind::Outside);
        }
    }

    /// Shades an interval of the common time scale over all rows.
    pub fn paint_band(&self, painter: &Painter, interval: Interval, fill: Color32) {
        let clamp = |x: f32| x.clamp(self.area.left() - 20.0, self.area.right() + 20.0);
        let (from, to) = (clamp(self.x_of(interval.start.0)), clamp(self.x_of(interval.end.0)));
        painter.rect_filled(Rect::from_x_y_ranges(from..=to.max(from + 1.0), self.area.y_range()), 0.0, fill);
        for x in [from, to] {
            painter.vline(x.round() + 0.5, self.area.y_range(), Stroke::new(1.0, self.palette.weak_text));
        }
    }

    /// Shows what is selected and how it hangs together with other things.
    pub fn paint_selection(&self, painter: &Painter, lines: &[Line], pick: Pick) {
        let Some(doc) = self.docs.get(pick.doc) else { return };
        match pick.item {
            Item::Bubble(at) => {
                let Some((_, bubble)) = doc.bubble(at) else { return };
                let fill = self.palette.cause(bubble.root.cause).gamma_multiply(0.12);
                self.paint_band(painter, doc.shifted(bubble.interval), fill);
                if let Some(call) = bubble.launch {
                    self.arrow(painter, lines, pick.doc, Item::Call(call), Item::Op(bubble.after));
                }
                if let Some(call) = bubble.root.call {
                    let blamed = Pick { doc: pick.doc, item: Item::Call(call) };
                    self.paint_outline(painter, lines, blamed, Stroke::new(2.0, self.palette.arrow));
                }
            }
            Item::Op(op) => {
                if let Some(call) = doc.trace.ops.launch(op) {
                    self.arrow(painter, lines, pick.doc, Item::Call(call), pick.item);
                }
            }
            Item::Call(call) => {
                for &op in doc.trace.call_ops(call).iter().take(MOST_ARROWS) {
                    self.arrow(painter, lines, pick.doc, pick.item, Item::Op(op));
                }
            }
            Item::Replay(_, call) => self.arrow(painter, lines, pick.doc, Item::Call(call), pick.item),
            Item::Range(_) => {}
        }
        self.paint_outline(painter, lines, pick, Stroke::new(2.0, self.palette.selection));
    }

    /// An arrow from the start of one thing to the start of another.
    fn arrow(&self, painter: &Painter, lines: &[Line], doc: usize, from: Item, to: Item) {
        let place = |item: Item| self.rect_of(lines, Pick { doc, item });
        let (Some(from), Some(to)) = (place(from), place(to)) else { return };
        let down = to.center().y > from.center().y;
        let start = Pos2::new(from.left() + 1.0, if down { from.bottom() } else { from.top() });
        let end = Pos2::new(to.left() + 1.0, if down { to.top() } else { to.bottom() });
        let reach = ((end.y - start.y) / 2.0).abs().max(10.0) * if down { 1.0 } else { -1.0 };
        let points = [start, start + Vec2::new(0.0, reach), end - Vec2::new(0.0, reach), end];
        let color = self.palette.arrow;
        painter.add(Shape::CubicBezier(eframe::egui::epaint::CubicBezierShape::from_points_stroke(
            points,
            false,
            Color32::TRANSPARENT,
            PathStroke::new(1.5, color),
        )));
        let tip = if down { -5.0 } else { 5.0 };
        let head = vec![end, end + Vec2::new(-3.5, tip), end + Vec2::new(3.5, tip)];
        painter.add(Shape::convex_polygon(head, color, Stroke::NONE));
    }
}
