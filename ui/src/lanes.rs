//! Draws the lanes of a timeline and finds what lies under a point.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bubblescope::analysis::Cause;
use bubblescope::trace::Interval;
use eframe::egui::epaint::PathStroke;
use eframe::egui::{Align2, Color32, Painter, Pos2, Rangef, Rect, Shape, Stroke, StrokeKind, Vec2};

use crate::arrange::{LANE_HEIGHT, Line, Lines, Place, ROW_GAP};
use crate::describe;
use crate::document::{BubbleRef, Document, Item, Pick};
use crate::handovers::Handover;
use crate::paint::{Columns, Look, Quads};
use crate::rows::{Row, RowKind};
use crate::strips::Strips;
use crate::text::Widths;
use crate::theme::{Palette, text_on};
use crate::timeline::Drawn;
use crate::tint::Tints;
use crate::view::Viewport;

/// A box narrower than this has no name.
const LEAST_NAME: f32 = 30.0;
/// Names drawn at most in one frame.
const MOST_NAMES: usize = 600;
/// Names laid out at most in one frame: laying out takes ten times as long as painting what was laid out before.
const NEW_NAMES: usize = 60;
/// Arrows drawn at most from one launch.
const MOST_ARROWS: usize = 32;
/// Height of a bubble's segments on the row of a thread.
const SEGMENT_HEIGHT: f32 = 5.0;

/// What lies under a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Under {
    /// The thing that is open at the point's moment, else the longest within a pixel.
    pub pick: Pick,
    /// Things of the lane in the point's column.
    pub count: usize,
    /// Time of the column that they fill.
    pub busy: i64,
    /// Time of the column.
    pub of: i64,
}

/// Lines and where on the screen they are.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The lines.
    pub lines: &'a Lines,
    /// Where they may be painted.
    pub area: Rect,
    /// Where the first line would be, scrolled as it is.
    pub top: f32,
}

impl<'a> Group<'a> {
    /// The lines that are on screen.
    pub fn shown(&self) -> &'a [Line] {
        self.lines.between(self.area.top() - self.top, self.area.bottom() - self.top)
    }

    /// From top to bottom of a line.
    pub fn y_of(&self, line: &Line) -> Rangef {
        Rangef::new(self.top + line.top, self.top + line.top + line.height)
    }
}

/// The geometry of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Canvas<'a> {
    /// What is shown.
    pub docs: &'a [Document],
    /// Where on the screen.
    pub area: Rect,
    /// The lines that stay in sight, and those that scroll.
    pub groups: [Group<'a>; 2],
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
    strips: [Strips; 2],
    names: Names,
}

/// Names that were laid out in the frame before and are cheap to paint again, and those of this frame.
#[derive(Debug, Default)]
struct Names {
    known: HashSet<u64>,
    shown: HashSet<u64>,
    new: usize,
    put_off: usize,
}

impl Names {
    fn begin(&mut self) {
        std::mem::swap(&mut self.known, &mut self.shown);
        self.shown.clear();
        (self.new, self.put_off) = (0, 0);
    }

    /// Whether a name can be painted now. Of those that must be laid out first only some can: the next frames bring
    /// the others.
    fn affords(&mut self, name: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let name = hasher.finish();
        if !self.known.contains(&name) && !self.shown.contains(&name) {
            if self.new == NEW_NAMES {
                self.put_off += 1;
                return false;
            }
            self.new += 1;
        }
        self.shown.insert(name);
        true
    }
}

/// Paints the lines that are on screen; `as_shapes` without a texture, for pictures that are made of shapes alone.
pub fn paint(
    painter: &Painter,
    canvas: &Canvas<'_>,
    step: i64,
    tints: &Tints,
    brushes: &mut Brushes,
    as_shapes: bool,
) -> Drawn {
    let mut drawn = Drawn::default();
    let Brushes { columns, strips, names } = brushes;
    names.begin();
    for (group, strips) in canvas.groups.iter().zip(strips) {
        if group.area.height() > 0.0 {
            let painter = painter.with_clip_rect(group.area);
            let means = (!as_shapes).then_some((strips, &mut *names));
            paint_group(&painter, canvas, group, step, tints, columns, means, &mut drawn);
        }
    }
    if names.put_off > 0 {
        painter.ctx().request_repaint();
    }
    drawn
}

#[expect(clippy::too_many_arguments, reason = "all of it is the geometry of one frame and what it is painted with")]
fn paint_group(
    painter: &Painter,
    canvas: &Canvas<'_>,
    group: &Group<'_>,
    step: i64,
    tints: &Tints,
    columns: &mut Columns,
    mut means: Option<(&mut Strips, &mut Names)>,
    drawn: &mut Drawn,
) {
    let (mut below, mut above) = (Quads::default(), Quads::default());
    let mut names: Vec<(Pos2, String, Color32)> = Vec::new();
    let palette = canvas.palette;
    for line in group.shown() {
        let rect = Rect::from_x_y_ranges(canvas.area.x_range(), group.y_of(line));
        match line.place {
            Place::Trace { .. } | Place::Section { .. } => below.add(rect, palette.section),
            Place::Row { row, .. } if row % 2 == 1 => below.add(rect, palette.canvas_alternate),
            Place::Row { .. } => {}
        }
    }
    canvas.grid(&mut below, group.area.y_range(), step);
    let pixel = 1.0 / painter.pixels_per_point();
    let left = canvas.area.left();
    let width = (canvas.area.width() / pixel).round() as usize;
    let side = painter.ctx().input(|input| input.max_texture_side);
    if let Some((strips, _)) = &mut means {
        strips.begin(width, side);
    }
    for line in group.shown() {
        let Place::Row { doc, section, row, lane_height } = line.place else { continue };
        let (document, found) = (&canvas.docs[doc], &canvas.docs[doc].scene.sections[section].rows[row]);
        let view = canvas.view.moved(document.offset.saturating_neg());
        for (at, lane) in found.lanes.iter().enumerate() {
            let y = lane_y(group, line, at, lane_height);
            if y.max < group.area.top() || y.min > group.area.bottom() {
                continue;
            }
            drawn.lanes += 1;
            let bars = matches!(found.kind, RowKind::Bubbles { .. });
            if bars {
                columns.fill_squared(lane, view, width);
            } else {
                columns.fill(lane, view, width);
            }
            drawn.columns += columns.filled();
            match (found.kind, &mut means) {
                (RowKind::Bubbles { .. }, _) => above.add_runs(columns.runs(Look::Bars, tints), left, pixel, y),
                (_, None) => above.add_runs(columns.runs(Look::Faint, tints), left, pixel, y),
                (_, Some((strips, _))) => strips.add(columns, tints, left, pixel, y),
            }
            for found_box in columns.boxes() {
                let edge = |column: f32| left + if bars { column.round() } else { column } * pixel;
                let (from, to) = (edge(found_box.from).max(left), edge(found_box.to).min(canvas.area.right()));
                let tint = lane.tint(found_box.at as usize);
                let fill = tints.get(tint);
                if to - from > 6.0 {
                    above.add_pattern(Rect::from_x_y_ranges(from..=to, y), tint, tints);
                }
                if to - from < LEAST_NAME || y.span() < 12.0 || names.len() >= MOST_NAMES {
                    continue;
                }
                let item = found.kind.item(lane.item(found_box.at as usize));
                if let Some(text) = canvas.widths.fit(&describe::label(document, item), to - from - 8.0)
                    && means.as_mut().is_none_or(|(_, names)| names.affords(&text))
                {
                    if tint.striped() {
                        // Letters are hard to read on stripes.
                        let behind = from + 1.0..=(from + 7.0 + canvas.widths.width(&text)).min(to - 1.0);
                        above.add(Rect::from_x_y_ranges(behind, y.shrink(1.0)), fill);
                    }
                    names.push((Pos2::new(from + 4.0, y.center()), text.into_owned(), text_on(fill)));
                }
            }
        }
    }
    drawn.labels += names.len();
    painter.add(below.into_mesh());
    if let Some((strips, _)) = means {
        painter.add(strips.finish(painter.ctx(), side));
    }
    painter.add(above.into_mesh());
    for (at, text, color) in names {
        painter.text(at, Align2::LEFT_CENTER, text, canvas.widths.font().clone(), color);
    }
}

fn lane_y(group: &Group<'_>, line: &Line, lane: usize, lane_height: f32) -> Rangef {
    let top = group.top + line.top + ROW_GAP / 2.0 + lane as f32 * lane_height;
    let gap = if lane_height >= LANE_HEIGHT { 1.0 } else { 0.0 };
    Rangef::new(top.round(), (top + lane_height - gap).round())
}

/// Where the lane of a thing stands, measured from the top of the first line.
pub fn lane_of(docs: &[Document], lines: &Lines, pick: Pick) -> Option<Rangef> {
    let doc = docs.get(pick.doc)?;
    let spot = doc.scene.find(&doc.trace, pick.item, doc.times(pick.item)?.start.0)?;
    lines.lines.iter().find_map(|line| match line.place {
        Place::Row { doc, section, row, lane_height } if (doc, section, row) == (pick.doc, spot.section, spot.row) => {
            let top = line.top + ROW_GAP / 2.0 + spot.lane as f32 * lane_height;
            Some(Rangef::new(top, top + lane_height))
        }
        _ => None,
    })
}

impl Canvas<'_> {
    fn x_of(&self, time: i64) -> f32 {
        self.area.left() + self.view.x_of(time, self.area.width())
    }

    fn grid(&self, quads: &mut Quads, y: Rangef, step: i64) {
        let mut time = self.view.start().div_euclid(step) * step;
        while time <= self.view.end() {
            let x = self.x_of(time).round();
            quads.add(Rect::from_x_y_ranges(x..=x + 1.0, y), self.palette.grid);
            time = time.saturating_add(step);
        }
    }

    /// What lies under a point.
    pub fn under(&self, point: Pos2) -> Option<Under> {
        let group = self.groups.iter().find(|group| group.area.contains(point))?;
        let line = group.shown().iter().find(|line| group.y_of(line).contains(point.y))?;
        let Place::Row { doc, section, row, lane_height } = line.place else { return None };
        let document = self.docs.get(doc)?;
        let found: &Row = document.scene.sections.get(section)?.rows.get(row)?;
        let lane = ((point.y - group.top - line.top - ROW_GAP / 2.0) / lane_height).max(0.0) as usize;
        let lane = found.lanes.get(lane)?;
        let x = point.x - self.area.left();
        let time = |x: f32| self.view.time_at(x, self.area.width()).saturating_sub(document.offset);
        let (from, to) = (time(x - 0.5), time(x + 0.5).max(time(x - 0.5).saturating_add(1)));
        let at = lane.at(time(x)).or_else(|| lane.longest_in(time(x - 1.0), time(x + 1.0).saturating_add(1)))?;
        Some(Under {
            pick: Pick { doc, item: found.kind.item(lane.item(at)) },
            count: lane.touching(from, to).len(),
            busy: lane.busy(from, to),
            of: to.saturating_sub(from),
        })
    }

    /// Where a thing is drawn, and the area that it is seen in.
    fn rect_of(&self, pick: Pick) -> Option<(Rect, Rect)> {
        let doc = self.docs.get(pick.doc)?;
        let times = doc.shifted(doc.times(pick.item)?);
        let mut places = self.groups.iter().filter_map(|group| Some((group, lane_of(self.docs, group.lines, pick)?)));
        let (group, y) = places.next()?;
        let top = group.top;
        // Rectangles far beyond the screen would lose their edges to the precision of f32.
        let clamp = |x: f32| x.clamp(self.area.left() - 20.0, self.area.right() + 20.0);
        let (from, to) = (clamp(self.x_of(times.start.0)), clamp(self.x_of(times.end.0)));
        let rect = Rect::from_x_y_ranges(from..=to.max(from + 1.0), top + y.min..=top + y.max - 1.0);
        Some((rect, group.area))
    }

    /// Outlines a thing.
    pub fn paint_outline(&self, painter: &Painter, pick: Pick, stroke: Stroke) {
        if let Some((rect, area)) = self.rect_of(pick) {
            painter.with_clip_rect(area).rect_stroke(rect, 0.0, stroke, StrokeKind::Outside);
        }
    }

    /// Outlines a thing that is to blame for nothing.
    fn paint_dashes(&self, painter: &Painter, pick: Pick, stroke: Stroke) {
        if let Some((rect, area)) = self.rect_of(pick) {
            let rect = rect.expand(1.0);
            let corners = [rect.left_top(), rect.right_top(), rect.right_bottom(), rect.left_bottom(), rect.left_top()];
            painter.with_clip_rect(area).extend(Shape::dashed_line(&corners, stroke, 4.0, 3.0));
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

    /// Shades an interval of the common time scale over the rows of a trace.
    fn paint_band_of(&self, painter: &Painter, doc: usize, interval: Interval, fill: Color32) {
        if self.docs.len() < 2 {
            return self.paint_band(painter, interval, fill);
        }
        for group in &self.groups {
            let of_doc = |line: &&Line| match line.place {
                Place::Trace { doc: of } | Place::Section { doc: of, .. } | Place::Row { doc: of, .. } => of == doc,
            };
            for line in group.shown().iter().filter(of_doc) {
                let mut area = group.area.intersect(Rect::from_x_y_ranges(group.area.x_range(), group.y_of(line)));
                (area.min.x, area.max.x) = (self.area.left(), self.area.right());
                Canvas { area, ..*self }.paint_band(painter, interval, fill);
            }
        }
    }

    /// Shows what is selected and how it hangs together with other things.
    pub fn paint_selection(&self, painter: &Painter, pick: Pick) {
        let Some(doc) = self.docs.get(pick.doc) else { return };
        match pick.item {
            Item::Bubble(at) => {
                let Some((_, bubble)) = doc.bubble(at) else { return };
                let fill = self.palette.cause(bubble.root.cause).gamma_multiply(0.12);
                self.paint_band_of(painter, pick.doc, doc.shifted(bubble.interval), fill);
                self.paint_segments(painter, pick.doc, at);
                let held = doc.waits_of(bubble).take(MOST_ARROWS);
                held.for_each(|handover| self.paint_handover(painter, pick.doc, &handover));
                if let Some(call) = bubble.launch {
                    self.arrow(painter, pick.doc, Item::Call(call), Item::Op(bubble.after));
                }
                if let Some(call) = bubble.root.call {
                    let call = Pick { doc: pick.doc, item: Item::Call(call) };
                    match describe::is_to_blame(&bubble.root) {
                        true => self.paint_outline(painter, call, Stroke::new(2.0, self.palette.arrow)),
                        false => self.paint_dashes(painter, call, Stroke::new(1.0, self.palette.arrow)),
                    }
                }
            }
            Item::Op(op) => {
                let held = doc.handovers_of(pick.item).take(MOST_ARROWS);
                held.for_each(|handover| self.paint_handover(painter, pick.doc, &handover));
                if let Some(call) = doc.trace.ops.launch(op) {
                    self.arrow(painter, pick.doc, Item::Call(call), pick.item);
                }
            }
            Item::Call(call) => {
                let held = doc.handovers_of(pick.item).take(MOST_ARROWS);
                held.for_each(|handover| self.paint_handover(painter, pick.doc, &handover));
                for &op in doc.trace.call_ops(call).iter().take(MOST_ARROWS) {
                    self.arrow(painter, pick.doc, pick.item, Item::Op(op));
                }
            }
            Item::Replay(_, call) => self.arrow(painter, pick.doc, Item::Call(call), pick.item),
            Item::Range(_) => {}
        }
        self.paint_outline(painter, pick, Stroke::new(2.0, self.palette.selection));
    }

    /// Where the bubble's time went, on the row of the thread that should have launched.
    fn paint_segments(&self, painter: &Painter, doc: usize, at: BubbleRef) {
        let Some(document) = self.docs.get(doc) else { return };
        let Some((device, bubble)) = document.bubble(at) else { return };
        let call = bubble.launch.or(bubble.root.call);
        let place = call.and_then(|call| self.rect_of(Pick { doc, item: Item::Call(call) }));
        let Some((row, area)) = place else { return };
        // In the gap below the row, where no name is.
        let y = Rangef::new(row.bottom() + 3.0 - SEGMENT_HEIGHT, row.bottom() + 3.0);
        let mut quads = Quads::default();
        let clamp = |time: i64| self.x_of(time).clamp(self.area.left() - 20.0, self.area.right() + 20.0);
        for segment in device.segments_of(bubble) {
            let times = document.shifted(segment.interval);
            let (from, to) = (clamp(times.start.0), clamp(times.end.0));
            if to > from {
                let rect = Rect::from_x_y_ranges(from..=to.max(from + 1.0), y);
                quads.add(rect, self.palette.canvas);
                quads.add(rect.shrink2(Vec2::new(0.0, 1.0)), self.palette.segment(segment.kind));
            }
        }
        painter.with_clip_rect(area).add(quads.into_mesh());
    }

    /// Arrows from the op that was waited for to the op that was held back: on the device, and over the calls that recorded
    /// the event and waited for it if they are on screen.
    fn paint_handover(&self, painter: &Painter, doc: usize, handover: &Handover) {
        let ops = [handover.first, handover.then].map(|op| op.map(Item::Op));
        let calls = [handover.record, handover.wait].map(|call| call.map(Item::Call));
        let color = self.palette.cause(Cause::Dependency);
        if let [Some(first), Some(then)] = ops {
            self.curve(painter, doc, [(first, true), (then, false)], color);
        }
        let on_screen = |item: Item| {
            let rect = self.rect_of(Pick { doc, item }).map(|(rect, _)| rect);
            rect.is_some_and(|rect| rect.left() <= self.area.right() && rect.right() >= self.area.left())
        };
        if calls.into_iter().flatten().any(on_screen) {
            let chain: Vec<Item> = [ops[0], calls[0], calls[1], ops[1]].into_iter().flatten().collect();
            for pair in chain.windows(2) {
                self.curve(painter, doc, [(pair[0], Some(pair[0]) == ops[0]), (pair[1], false)], color);
            }
            for item in calls.into_iter().flatten() {
                self.paint_outline(painter, Pick { doc, item }, Stroke::new(1.5, color));
            }
        }
    }

    /// An arrow from the start of one thing to the start of another.
    fn arrow(&self, painter: &Painter, doc: usize, from: Item, to: Item) {
        self.curve(painter, doc, [(from, false), (to, false)], self.palette.arrow);
    }

    /// An arrow from one thing to another, each from or to its start or its end.
    fn curve(&self, painter: &Painter, doc: usize, ends: [(Item, bool); 2], color: Color32) {
        let place = |(item, end): (Item, bool)| {
            let (rect, _) = self.rect_of(Pick { doc, item })?;
            let x = if end { rect.right() - 1.0 } else { rect.left() + 1.0 };
            Some(Rect::from_x_y_ranges(x..=x, rect.y_range()))
        };
        let [Some(from), Some(to)] = ends.map(place) else { return };
        let (start, end, along) = if from.y_range() == to.y_range() {
            // Within a lane it arches over what is between.
            (from.left_top(), to.left_top(), -1.0)
        } else if to.center().y > from.center().y {
            (from.left_bottom(), to.left_top(), 1.0)
        } else {
            (from.left_top(), to.left_bottom(), -1.0)
        };
        let reach = ((end.y - start.y) / 2.0).abs().max(10.0) * along;
        // It arrives from the side that it left to.
        let back = if start.y == end.y { -reach } else { reach };
        let points = [start, start + Vec2::new(0.0, reach), end - Vec2::new(0.0, back), end];
        painter.add(Shape::CubicBezier(eframe::egui::epaint::CubicBezierShape::from_points_stroke(
            points,
            false,
            Color32::TRANSPARENT,
            PathStroke::new(1.5, color),
        )));
        let tip = if back > 0.0 { -5.0 } else { 5.0 };
        let head = vec![end, end + Vec2::new(-3.5, tip), end + Vec2::new(3.5, tip)];
        painter.add(Shape::convex_polygon(head, color, Stroke::NONE));
    }
}
