//! From a lane to colours: how much of each screen column is busy, and which interval dominates it.
//!
//! Columns are physical pixels. A column shows the share of its time that intervals fill: exactly where they are few,
//! else from exact cells of about a column. So no interval and no gap vanishes, however far out the view is.

use eframe::egui::{Color32, Mesh, Pos2, Rangef, Rect};

use crate::lod::{Lane, Level};
use crate::tiles::{Cell, Part};
use crate::tint::{Tint, Tints};
use crate::view::Viewport;

/// An interval at least this many columns wide has an edge of its own and may carry a name.
const BOX_COLUMNS: f64 = 3.0;

/// One screen column of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    /// Share of the column's time that intervals fill.
    share: f32,
    /// Share that the dominant interval fills.
    best: f32,
    /// Number of the tint of the dominant interval, plus one; 0 when the column is empty.
    tint: u8,
    /// Whether it is the last column of a box.
    edge: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Full height, the fainter the smaller the share.
    Faint,
    /// As the height of a bar that stands on the lane's bottom.
    Bars,
}

/// A run of columns that look alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The first column.
    pub from: usize,
    /// The column after the last.
    pub to: usize,
    /// Their colour, premultiplied.
    pub color: Color32,
    /// How high they are: 1 is the whole lane.
    pub height: f32,
}

/// From time to columns.
#[derive(Clone, Copy)]
struct Scale {
    start: i64,
    per_ns: f64,
}

impl Scale {
    fn x(self, time: i64) -> f64 {
        time.saturating_sub(self.start) as f64 * self.per_ns
    }
}

impl Columns {
    /// Reads what the view shows of a lane into `width` columns.
    pub fn fill(&mut self, lane: &Lane, view: Viewport, width: usize) {
        self.columns.clear();
        self.columns.resize(width, Column::default());
        self.boxes.clear();
        self.add_lane(lane, view);
        for found in &self.boxes {
            let at = (found.to - 1.0).round();
            if at >= 0.0
                && let Some(column) = self.columns.get_mut(at as usize)
            {
                column.edge = true;
            }
        }
    }

    /// The average of several lanes.
    pub fn fill_average<'a>(&mut self, lanes: impl Iterator<Item = &'a Lane>, view: Viewport, width: usize) {
        self.columns.clear();
        self.columns.resize(width, Column::default());
        let mut count = 0.0_f32;
        for lane in lanes {
            self.add_lane(lane, view);
            count += 1.0;
        }
        self.boxes.clear();
        for column in &mut self.columns {
            column.share /= count.max(1.0);
        }
    }

    fn add_lane(&mut self, lane: &Lane, view: Viewport) {
        let width = self.columns.len() as f32;
        let scale = Scale { start: view.start(), per_ns: f64::from(width) / view.span() as f64 };
        let level = Level::for_scale(view.ns_per_px(width));
        for part in lane.parts(level, view.start(), view.end()) {
            match part {
                Part::Few { from, to } => {
                    for at in lane.touching(from, to) {
                        let (start, end) = lane.times(at);
                        let (left, right) = (scale.x(start.max(from)), scale.x(end.min(to)));
                        self.add(left, right, 1.0, lane.tint(at).number());
                        if (right - left) >= BOX_COLUMNS || start < from || end > to {
                            self.add_box(scale, lane, at);
                        }
                    }
                }
                Part::Cells { level, first, cells } => self.add_cells(lane, scale, level, first, cells),
            }
        }
    }

    fn add_cells(&mut self, lane: &Lane, scale: Scale, level: Level, first: i64, cells: &[Cell]) {
        let width = level.ns() as f64 * scale.per_ns;
        let origin = scale.x(level.start_of(first));
        // Of the tile's cells those that are on screen.
        let skip = (-origin / width).floor().max(0.0) as usize;
        let end = ((self.columns.len() as f64 - origin) / width).ceil().max(0.0) as usize;
        let first_shown = cells.partition_point(|cell| cell.at() < skip);
        // A box fills at least so many cells in a row.
        let least = ((BOX_COLUMNS / width) as usize).saturating_sub(1);
        let (mut run, mut before, mut known) = (0, usize::MAX, i64::MIN);
        for cell in cells[first_shown..].iter().take_while(|cell| cell.at() < end) {
            let at = cell.at();
            let left = origin + at as f64 * width;
            self.add(left, left + width, cell.share(), cell.tint());
            if !cell.is_sole() {
                run = 0;
                continue;
            }
            run = if before.wrapping_add(1) == at { run + 1 } else { 1 };
            before = at;
            let start = level.start_of(first + at as i64);
            // Each interval is looked up once.
            if run >= least
                && start >= known
                && let Some(found) = lane.at(start)
            {
                known = lane.times(found).1;
                self.add_box(scale, lane, found);
            }
        }
    }

    /// Adds what lies between two positions in columns, of which `share` is filled.
    fn add(&mut self, from: f64, to: f64, share: f32, tint: u8) {
        let width = self.columns.len();
        let (left, right) = (from.max(0.0) as f32, to.min(width as f64) as f32);
        // Positions are not negative, so that cutting off is rounding down: other ways to round cost a call.
        let (first, last) = (left as usize, right as usize);
        if first >= width || right < 0.0 {
            return;
        }
        if first >= last {
            self.columns[first].add(((right - left) * share).max(0.0), tint);
            return;
        }
        self.columns[first].add((first as f32 + 1.0 - left) * share, tint);
        for column in &mut self.columns[first + 1..last] {
            column.add(share, tint);
        }
        let rest = right - last as f32;
        if rest > 0.0
            && let Some(column) = self.columns.get_mut(last)
        {
            column.add(rest * share, tint);
        }
    }

    fn add_box(&mut self, scale: Scale, lane: &Lane, at: usize) {
        let (start, end) = lane.times(at);
        let (from, to) = (scale.x(start), scale.x(end));
        if to - from >= BOX_COLUMNS && self.boxes.last().is_none_or(|last| last.at as usize != at) {
            self.boxes.push(WideBox { from: from as f32, to: to as f32, at: at as u32 });
        }
    }

    /// The intervals wide enough to be boxes.
    pub fn boxes(&self) -> &[WideBox] {
        &self.boxes
    }

    /// How many columns show something.
    pub fn filled(&self) -> usize {
        self.columns.iter().filter(|column| column.tint > 0).count()
    }

    /// Puts the colours of the columns, one after the other, into `pixels`.
    pub fn color(&self, tints: &Tints, pixels: &mut [Color32]) {
        for (column, pixel) in self.columns.iter().zip(pixels) {
            *pixel = column.color(tints);
        }
    }

    /// Runs of columns that look alike, without the empty ones.
    pub fn runs(&self, look: Look, tints: &Tints) -> impl Iterator<Item = Run> {
        let mut columns = self.columns.iter().enumerate().peekable();
        let of = move |column: &Column| match look {
            Look::Faint => (column.color(tints), 1.0),
            Look::Bars => (column.full_color(tints), column.share.min(1.0)),
        };
        std::iter::from_fn(move || {
            let (from, (color, height)) =
                columns.find(|(_, column)| column.tint > 0).map(|(at, column)| (at, of(column)))?;
            let mut to = from + 1;
            while columns.next_if(|(_, column)| column.tint > 0 && of(column) == (color, height)).is_some() {
                to += 1;
            }
            Some(Run { from, to, color, height })
        })
    }
}

impl Column {
    fn add(&mut self, filled: f32, tint: u8) {
        self.share += filled;
        if self.tint == 0 || filled > self.best {
            self.best = filled;
            self.tint = tint + 1;
        }
    }

    fn full_color(&self, tints: &Tints) -> Color32 {
        match self.tint.checked_sub(1).map(Tint::of_number) {
            None => Color32::TRANSPARENT,
            Some(tint) if self.edge => tints.edge(tint),
            Some(tint) => tints.get(tint),
        }
    }

    fn color(&self, tints: &Tints) -> Color32 {
        match self.tint.checked_sub(1).map(Tint::of_number) {
            None => Color32::TRANSPARENT,
            Some(tint) if self.edge => tints.edge(tint),
            Some(tint) => tints.faint(tint, self.share),
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

    /// Adds runs of columns, the first one at `left`, each `pixel` wide, that stand on the bottom of `y`.
    pub fn add_runs(&mut self, runs: impl Iterator<Item = Run>, left: f32, pixel: f32, y: Rangef) {
        for run in runs {
            // Something so small that it would have no height is still shown.
            let height = (y.span() * run.height / pixel).round().max(2.0) * pixel;
            let x = left + run.from as f32 * pixel..=left + run.to as f32 * pixel;
            self.add(Rect::from_x_y_ranges(x, (y.max - height).max(y.min)..=y.max), run.color);
        }
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
    use bubblescope::trace::{Interval, Ns};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::lod::{Piece, pack};

    fn piece(start: i64, end: i64) -> Piece {
        Piece { interval: Interval::new(Ns(start), Ns(end)), item: 0, tint: Tint::REPLAY }
    }

    fn shares(lane: &Lane, view: Viewport, width: usize) -> Vec<Column> {
        let mut columns = Columns::default();
        columns.fill(lane, view, width);
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
            let mut pieces = Vec::new();
            for (gap, length) in steps {
                time += gap + length;
                pieces.push(piece(time - length, time));
            }
            let lane = &pack(pieces.len(), |at| pieces[at])[0];
            let view = Viewport::new(from, span);
            let columns = shares(lane, view, width);
            let busy = lane.busy(view.start(), view.end()) as f64;
            let ns_per_px = view.ns_per_px(width as f32);
            let drawn: f64 = columns.iter().map(|column| f64::from(column.share)).sum::<f64>() * ns_per_px;
            // A cell that crosses an edge of the view may be counted on the wrong side of it.
            prop_assert!((drawn - busy).abs() <= 3.0 * ns_per_px + busy * 1e-3, "{drawn} of {busy}");
            for (at, column) in columns.iter().enumerate() {
                prop_assert!(column.share <= 1.01);
                let (start, end) = (view.time_at(at as f32, width as f32), view.time_at(at as f32 + 1.0, width as f32));
                if lane.busy(start + 1, end - 1) > 0 {
                    prop_assert!(column.tint > 0, "nothing disappears");
                }
            }
        }
    }

    #[test]
    fn an_instant_is_visible() {
        let lane = &pack(1, |_| piece(500, 500))[0];
        let columns = shares(lane, Viewport::new(0, 1_000_000), 100);
        assert_eq!(columns.iter().filter(|column| column.tint > 0).count(), 1);
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
