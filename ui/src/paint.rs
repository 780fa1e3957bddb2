//! From a lane to quads: how much of each screen column is busy, which interval dominates it, and one mesh for all.
//!
//! Columns are physical pixels. A column shows the share of its time that intervals fill, exactly, so an edge between
//! two columns is as sharp as it can be and no interval and no gap vanishes, however far out the view is.

use std::ops::Range;

use eframe::egui::{Color32, Mesh, Pos2, Rangef, Rect};

use crate::lod::{Cells, Lane, Level};
use crate::theme::blend;
use crate::view::Viewport;

/// More intervals per column than this are drawn from cells, fewer one by one: about where both cost the same.
pub const INTERVALS_PER_COLUMN: usize = 4;
/// An interval at least this many columns wide has an edge of its own and may carry a name.
const BOX_COLUMNS: f32 = 3.0;
/// How much of its colour the faintest column has: whatever happened is visible.
const FAINTEST: f32 = 0.25;

/// One screen column of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    /// Share of the column's time that intervals fill.
    share: f32,
    /// Share that the dominant interval fills.
    best: f32,
    /// Position of the dominant interval in the lane, plus one; 0 when the column is empty.
    dominant: u32,
}

/// An interval wide enough to be seen as a box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WideBox {
    /// Left edge in columns, perhaps left of the first.
    pub from: f32,
    /// Right edge in columns, perhaps right of the last.
    pub to: f32,
    /// Position of the interval in the lane.
    pub at: u32,
}

/// The screen columns of one lane. Kept from lane to lane to save allocations.
#[derive(Debug, Default)]
pub struct Columns {
    columns: Vec<Column>,
    boxes: Vec<WideBox>,
}

/// How a share is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    /// Full height, mixed with the background.
    Mixed {
        /// The background.
        background: Color32,
    },
    /// As the height of a bar that stands on the lane's bottom.
    Bars,
}

impl Columns {
    /// Reads what the view shows of a lane into `width` columns.
    ///
    /// `cells` gives cells of a level for a part of time that covers the view; it is asked only when there are too many
    /// intervals to look at each.
    pub fn fill<'a>(
        &mut self,
        lane: &'a Lane,
        view: Viewport,
        width: usize,
        cells: impl FnOnce(&'a Lane, Level) -> std::sync::Arc<Cells>,
    ) {
        self.columns.clear();
        self.columns.resize(width, Column::default());
        self.boxes.clear();
        let canvas = width as f32;
        let shown = lane.touching(view.start(), view.end());
        if shown.len() <= width * INTERVALS_PER_COLUMN {
            for at in shown {
                let (start, end) = lane.times(at);
                let (from, to) = (view.x_of(start, canvas), view.x_of(end, canvas));
                self.add(from, to, 1.0, at as u32);
                self.add_box(from, to, at as u32);
            }
            return;
        }
        let cells = cells(lane, Level::for_scale(view.ns_per_px(canvas)));
        for cell in self.visible(&cells, view) {
            let cell = cells.cells[cell];
            let first = cells.first + i64::from(cell.at);
            let start = cells.level.start_of(first);
            let end = cells.level.start_of(first + i64::from(cell.len));
            let (from, to) = (view.x_of(start, canvas), view.x_of(end, canvas));
            self.add(from, to, cell.share, cell.longest);
            if cell.len > 1 {
                let (start, end) = lane.times(cell.longest as usize);
                self.add_box(view.x_of(start, canvas), view.x_of(end, canvas), cell.longest);
            }
        }
    }

    fn visible(&self, cells: &Cells, view: Viewport) -> Range<usize> {
        let from = cells.level.cell_of(view.start()) - cells.first;
        let to = cells.level.cell_of(view.end()) - cells.first;
        let first = cells.cells.partition_point(|cell| i64::from(cell.at) + i64::from(cell.len) <= from);
        let last = cells.cells.partition_point(|cell| i64::from(cell.at) <= to);
        first..last.max(first)
    }

    /// Adds an interval between two positions in columns, of which `share` is filled.
    fn add(&mut self, from: f32, to: f32, share: f32, at: u32) {
        let width = self.columns.len();
        let (left, right) = (from.max(0.0), to.min(width as f32));
        let first = left as usize;
        if first >= width || right < 0.0 {
            return;
        }
        let last = (right.ceil() as usize).clamp(first + 1, width);
        for column in first..last {
            let filled = ((right.min(column as f32 + 1.0) - left.max(column as f32)) * share).max(0.0);
            let target = &mut self.columns[column];
            target.share += filled;
            if target.dominant == 0 || filled > target.best {
                target.best = filled;
                target.dominant = at + 1;
            }
        }
    }

    fn add_box(&mut self, from: f32, to: f32, at: u32) {
        if to - from >= BOX_COLUMNS {
            self.boxes.push(WideBox { from, to, at });
        }
    }

    /// The intervals wide enough to be boxes.
    pub fn boxes(&self) -> &[WideBox] {
        &self.boxes
    }

    /// Paints the columns at `left`, each `pixel` wide, between `y`.
    pub fn paint(
        &self,
        quads: &mut Quads,
        left: f32,
        pixel: f32,
        y: Rangef,
        look: Look,
        color_of: impl Fn(u32) -> Color32,
    ) {
        let mut run: Option<(usize, Color32, f32)> = None;
        let mut flush = |run: Option<(usize, Color32, f32)>, to: usize| {
            if let Some((from, color, top)) = run {
                let rect = Rect::from_x_y_ranges(left + from as f32 * pixel..=left + to as f32 * pixel, top..=y.max);
                quads.add(rect, color);
            }
        };
        for (at, column) in self.columns.iter().enumerate() {
            let next = column.dominant.checked_sub(1).map(|dominant| {
                let color = color_of(dominant);
                match look {
                    Look::Mixed { background } if column.share < 0.999 => {
                        (blend(background, color, FAINTEST + (1.0 - FAINTEST) * column.share), y.min)
                    }
                    Look::Mixed { .. } => (color, y.min),
                    Look::Bars => {
                        let height = (y.span() * column.share.min(1.0) / pixel).round().max(2.0) * pixel;
                        (color, y.max - height)
                    }
                }
            });
            match (run, next) {
                (Some((_, color, top)), Some((next_color, next_top))) if color == next_color && top == next_top => {}
                _ => {
                    flush(run, at);
                    run = next.map(|(color, top)| (at, color, top));
                }
            }
        }
        flush(run, self.columns.len());
        // A shade of the box itself marks its end: a line of background would look like idle time.
        for edge in &self.boxes {
            let at = (edge.to - 1.0).round();
            if at >= 0.0 && at < self.columns.len() as f32 {
                let color = blend(color_of(edge.at), Color32::BLACK, 0.35);
                let x = left + at * pixel;
                quads.add(Rect::from_x_y_ranges(x..=x + pixel, y), color);
            }
        }
    }
}

/// Many rectangles as one mesh: a fiftieth of the cost of as many rectangle shapes.
#[derive(Debug, Default)]
pub struct Quads {
    mesh: Mesh,
}

impl Quads {
    /// Adds a rectangle.
    pub fn add(&mut self, rect: Rect, color: Color32) {
        self.mesh.add_colored_rect(rect, color);
    }

    /// Adds stripes that fall to the left, within a rectangle.
    pub fn add_stripes(&mut self, rect: Rect, spacing: f32, color: Color32) {
        let (height, half) = (rect.height(), spacing / 4.0);
        let mut x = rect.left() - (rect.left() + rect.top()).rem_euclid(spacing);
        while x < rect.right() + height {
            // Each corner is pushed into the rectangle along its stripe.
            let corner = |x: f32| {
                let (mut top, mut bottom) = (Pos2::new(x, rect.top()), Pos2::new(x - height, rect.bottom()));
                if top.x > rect.right() {
                    top = Pos2::new(rect.right(), rect.top() + (top.x - rect.right()));
                }
                if bottom.x < rect.left() {
                    bottom = Pos2::new(rect.left(), rect.bottom() - (rect.left() - bottom.x));
                }
                (top, bottom)
            };
            let ((a, b), (c, d)) = (corner(x - half), corner(x + half));
            if a.y <= b.y && c.y <= d.y {
                let index = self.mesh.vertices.len() as u32;
                for point in [a, c, b, d] {
                    self.mesh.colored_vertex(point, color);
                }
                self.mesh.add_triangle(index, index + 1, index + 2);
                self.mesh.add_triangle(index + 2, index + 1, index + 3);
            }
            x += spacing;
        }
    }

    /// Number of rectangles, stripes included.
    pub fn len(&self) -> usize {
        self.mesh.vertices.len() / 4
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.mesh.is_empty()
    }

    /// The mesh.
    pub fn into_mesh(self) -> Mesh {
        self.mesh
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bubblescope::trace::{Interval, Ns};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::lod::pack;

    fn shares(lane: &Lane, view: Viewport, width: usize) -> Vec<Column> {
        let mut columns = Columns::default();
        columns.fill(lane, view, width, |lane, level| Arc::new(lane.cells(level, view.start(), view.end())));
        columns.columns
    }

    proptest! {
        #[test]
        fn columns_hold_the_busy_time_at_every_zoom(
            steps in vec((1_i64..400, 1_i64..400), 1..2000),
            from in 0_i64..100_000,
            span in 1_000_i64..500_000,
            width in 10_usize..300,
        ) {
            let mut time = 0;
            let intervals = steps.iter().map(|&(gap, length)| {
                time += gap + length;
                (Interval::new(Ns(time - length), Ns(time)), 0)
            });
            let lane = &pack(intervals)[0];
            let view = Viewport::new(from, span);
            let columns = shares(lane, view, width);
            let busy = lane.busy(view.start(), view.end()) as f64;
            let ns_per_px = view.ns_per_px(width as f32);
            let drawn: f64 = columns.iter().map(|column| f64::from(column.share)).sum::<f64>() * ns_per_px;
            // A cell that crosses an edge of the view may be counted on the wrong side of it.
            prop_assert!((drawn - busy).abs() <= 2.0 * ns_per_px + busy * 1e-3, "{drawn} of {busy}");
            for (at, column) in columns.iter().enumerate() {
                prop_assert!(column.share <= 1.01);
                let (start, end) = (view.time_at(at as f32, width as f32), view.time_at(at as f32 + 1.0, width as f32));
                if lane.busy(start + 1, end - 1) > 0 {
                    prop_assert!(column.dominant > 0, "nothing disappears");
                }
            }
        }
    }

    #[test]
    fn an_instant_is_visible() {
        let lane = &pack([(Interval::new(Ns(500), Ns(500)), 0)])[0];
        let columns = shares(lane, Viewport::new(0, 1_000_000), 100);
        assert_eq!(columns.iter().filter(|column| column.dominant > 0).count(), 1);
    }

    #[test]
    fn stripes_stay_inside() {
        let rect = Rect::from_min_max(Pos2::new(10.0, 20.0), Pos2::new(37.0, 33.0));
        let mut quads = Quads::default();
        quads.add_stripes(rect, 6.0, Color32::WHITE);
        assert!(quads.len() > 3);
        let mesh = quads.into_mesh();
        assert!(mesh.vertices.iter().all(|vertex| rect.expand(0.01).contains(vertex.pos)));
        assert!(mesh.is_valid());
    }
}
