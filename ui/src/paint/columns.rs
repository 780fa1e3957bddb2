//! From a lane to screen columns: how much of each is busy, and which interval dominates it.
//!
//! Columns are physical pixels. A column shows the share of its time that intervals fill: exactly where they are few,
//! else from exact cells of about a column. So no interval and no gap vanishes, however far out the view is.

use eframe::egui::Color32;

use crate::lod::{Lane, Level};
use crate::tiles::{Cell, Part};
use crate::tint::{EDGE_LOOK, FULL, Tint, Tints};
use crate::view::Viewport;

/// An interval at least this many columns wide has an edge of its own and may carry a name.
const BOX_COLUMNS: f64 = 3.0;

/// A column in the units of positions.
const COLUMN: i64 = 1 << 16;
/// What is narrower is shown by shares alone: so many of it would make a pattern of their own.
const SQUARED: i64 = 2 * COLUMN;
/// A cell's share of 1.
const WHOLE: u32 = 1 << 15;
/// How far what a column shows may be from what fills it: cells are not as fine as the ends of intervals.
const SAME_SHARE: u32 = FULL / 10;
/// Columns right of the screen that a cell may reach into.
const MARGIN: usize = 2;

/// One screen column of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Column {
    /// Share of the column's time that intervals fill: [`COLUMN`] times [`WHOLE`] is all of it.
    filled: u32,
    /// The interval that fills most of the column: how much of it (24 bits) and its look (8); 0 when there is none.
    most: u32,
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
    /// Those on screen and [`MARGIN`] more.
    columns: Vec<Column>,
    boxes: Vec<WideBox>,
    /// Whether ends are kept.
    squares: bool,
    /// Positions in the lane of intervals that are at least [`SQUARED`] wide.
    ends: Vec<usize>,
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
    /// Units of positions.
    fine_per_ns: f64,
}

impl Scale {
    fn of(view: Viewport, width: usize) -> Self {
        let per_ns = width as f64 / view.span() as f64;
        Self { start: view.start(), per_ns, fine_per_ns: per_ns * COLUMN as f64 }
    }

    fn x(self, time: i64) -> f64 {
        time.saturating_sub(self.start) as f64 * self.per_ns
    }

    /// The same in the units of positions.
    fn position(self, time: i64) -> i64 {
        (time.saturating_sub(self.start) as f64 * self.fine_per_ns) as i64
    }

    /// Whether an interval fills anything of a column, or stands in it without a length.
    fn touches(self, (start, end): (i64, i64), column: i64) -> bool {
        let (start, end) = (self.position(start), self.position(end));
        let first = start.div_euclid(COLUMN);
        first == column || first < column && end > column * COLUMN
    }
}

impl Columns {
    /// Reads what the view shows of a lane into `width` columns.
    pub fn fill(&mut self, lane: &Lane, view: Viewport, width: usize) {
        self.clear(width);
        self.add_lane(lane, view);
        for found in &self.boxes {
            let at = (found.to - 1.0).round();
            if at >= 0.0
                && let Some(column) = self.columns.get_mut(at as usize)
            {
                column.make_edge();
            }
        }
    }

    /// The same for bars: whatever is wider than two columns ends where columns do, because one that it fills in part would
    /// be a step at its end. Columns that something else fills, too, stay as they are.
    pub fn fill_squared(&mut self, lane: &Lane, view: Viewport, width: usize) {
        self.squares = true;
        self.fill(lane, view, width);
        self.squares = false;
        let scale = Scale::of(view, width);
        let boxes = self.boxes.iter().map(|found| found.at as usize);
        for at in boxes.chain(self.ends.iter().copied()) {
            let (start, end) = lane.times(at);
            let (left, right) = (scale.position(start), scale.position(end));
            let before = at.checked_sub(1);
            let after = Some(at + 1).filter(|&after| after < lane.len());
            for (edge, filled, beside) in [(left, COLUMN - left % COLUMN, before), (right, right % COLUMN, after)] {
                let number = edge / COLUMN;
                if edge < 0 || beside.is_some_and(|beside| scale.touches(lane.times(beside), number)) {
                    continue;
                }
                let Some(column) = self.columns.get_mut(number as usize) else { continue };
                let filled = filled as u32 * WHOLE;
                if filled > 0 && column.filled.abs_diff(filled) < SAME_SHARE {
                    *column = if filled >= FULL / 2 { Column { filled: FULL, ..*column } } else { Column::default() };
                }
            }
        }
    }

    /// The average of several lanes.
    pub fn fill_average<'a>(&mut self, lanes: impl Iterator<Item = &'a Lane>, view: Viewport, width: usize) {
        let lanes: Vec<&Lane> = lanes.collect();
        let mut average = vec![Column::default(); width + MARGIN];
        for lane in &lanes {
            self.clear(width);
            self.add_lane(lane, view);
            for (average, column) in average.iter_mut().zip(&self.columns) {
                average.take(column.filled / lanes.len() as u32, column.most);
            }
        }
        self.columns = average;
        self.boxes.clear();
    }

    fn clear(&mut self, width: usize) {
        self.columns.clear();
        self.columns.resize(width + MARGIN, Column::default());
        self.boxes.clear();
        self.ends.clear();
    }

    /// Those on screen.
    fn shown(&self) -> &[Column] {
        &self.columns[..self.columns.len().saturating_sub(MARGIN)]
    }

    fn add_lane(&mut self, lane: &Lane, view: Viewport) {
        let width = self.shown().len();
        let scale = Scale::of(view, width);
        let level = Level::for_scale(view.ns_per_px(width as f32));
        let parts = lane.parts(level, view.start(), view.end());
        // Cells do not tell which intervals are boxes; where all are shorter none is looked for.
        let least = (BOX_COLUMNS / scale.per_ns) as i64;
        let with_boxes = parts.iter().any(|part| matches!(part, Part::Cells { .. }))
            && lane.has_longer(view.start(), view.end(), least);
        for part in parts {
            match part {
                Part::Few { from, to } => self.add_few(lane, scale, from, to),
                Part::Cells { level, first, cells } => self.add_cells(lane, scale, level, first, cells, with_boxes),
            }
        }
    }

    /// Adds intervals one by one.
    fn add_few(&mut self, lane: &Lane, scale: Scale, from: i64, to: i64) {
        let range = lane.touching(from, to);
        for (at, (start, end, tint)) in range.clone().zip(lane.intervals(range)) {
            let (left, right) = (scale.position(start.max(from)), scale.position(end.min(to)));
            self.add(left, right, WHOLE, tint.look());
            if self.squares && right - left >= SQUARED {
                self.ends.push(at);
            }
            // Roughly: whether it is a box is looked at again.
            if right - left >= (BOX_COLUMNS as i64 - 1) * COLUMN || start < from || end > to {
                self.add_box(scale, lane, at);
            }
        }
    }

    fn add_cells(&mut self, lane: &Lane, scale: Scale, level: Level, first: i64, cells: &[Cell], with_boxes: bool) {
        let width = level.ns() as f64 * scale.per_ns;
        let origin = scale.x(level.start_of(first));
        // Of the tile's cells those that are on screen.
        let skip = (-origin / width).floor().max(0.0) as usize;
        let end = ((self.shown().len() as f64 - origin) / width).ceil().max(0.0) as usize;
        let first_shown = cells.partition_point(|cell| cell.at() < skip);
        let last_shown = cells.partition_point(|cell| cell.at() < end);
        let cells = &cells[first_shown..last_shown.max(first_shown)];
        // With so many digits more that the last cell of a tile is where it belongs, too.
        let fine = |columns: f64| (columns * (COLUMN << 16) as f64) as i64;
        let (fine_origin, fine_width) = (fine(origin), fine(width));
        for cell in cells {
            let left = fine_origin + cell.at() as i64 * fine_width;
            let look = Tint::of_number(cell.tint()).look();
            self.add(left >> 16, (left + fine_width) >> 16, cell.parts_filled(), look);
        }
        if with_boxes {
            self.add_cell_boxes(lane, scale, level, first, cells);
        }
    }

    /// Finds the boxes among some cells: each fills a run of them, and parts of the cells before and after it.
    fn add_cell_boxes(&mut self, lane: &Lane, scale: Scale, level: Level, first: i64, cells: &[Cell]) {
        let least = BOX_COLUMNS / (level.ns() as f64 * scale.per_ns);
        let mut known = i64::MIN;
        let follows = |pair: &[Cell; 2]| pair[1].at() == pair[0].at() + 1;
        let mut at = 0;
        while at < cells.len() {
            if !cells[at].is_sole() {
                at += 1;
                continue;
            }
            let start = at;
            at += 1;
            while at < cells.len() && cells[at].is_sole() && follows(&[cells[at - 1], cells[at]]) {
                at += 1;
            }
            // What is beyond these cells is not known, so there may be as much as possible.
            let beside = |pair: Option<[Cell; 2]>, other: usize| match pair {
                None => 1.0,
                Some(pair) if follows(&pair) => f64::from(pair[other].share()),
                Some(_) => 0.0,
            };
            let before = start.checked_sub(1).map(|before| [cells[before], cells[start]]);
            let after = cells.get(at).map(|&after| [cells[at - 1], after]);
            if (at - start) as f64 + beside(before, 0) + beside(after, 1) < least {
                continue;
            }
            for cell in &cells[start..at] {
                let time = level.start_of(first + cell.at() as i64);
                // Each interval is looked up once.
                if time >= known
                    && let Some(found) = lane.at(time)
                {
                    known = lane.times(found).1;
                    self.add_box(scale, lane, found);
                }
            }
        }
    }

    /// Adds what lies between two positions, of which `share` is filled.
    #[inline]
    fn add(&mut self, left: i64, right: i64, share: u32, look: u8) {
        let left = left.max(0);
        let first = (left / COLUMN) as usize;
        let from = left % COLUMN;
        let to = from + (right - left).max(0);
        let Some([one, two, three]) = self.columns.get_mut(first..first + 3) else { return };
        // Most are not wider than this. There is no branch, because none could be foreseen.
        one.add(to.min(COLUMN) - from, 1, share, look);
        for (column, left) in [(two, COLUMN), (three, 2 * COLUMN)] {
            let part = (to - left).clamp(0, COLUMN);
            column.add(part, u32::from(part > 0), share, look);
        }
        if to > 3 * COLUMN {
            self.add_rest(first + 3, to - 3 * COLUMN, share, look);
        }
    }

    /// Adds what lies from the left of a column on.
    fn add_rest(&mut self, first: usize, length: i64, share: u32, look: u8) {
        let whole = (length / COLUMN) as usize;
        let columns = &mut self.columns[first..];
        let whole_shown = whole.min(columns.len());
        for column in &mut columns[..whole_shown] {
            column.add(COLUMN, 1, share, look);
        }
        if let Some(column) = columns.get_mut(whole).filter(|_| length % COLUMN > 0) {
            column.add(length % COLUMN, 1, share, look);
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
        self.shown().iter().filter(|column| column.most > 0).count()
    }

    /// Adds the colours of the columns, one after the other, to `pixels`.
    pub fn color(&self, tints: &Tints, pixels: &mut Vec<Color32>) {
        pixels.extend(self.shown().iter().map(|column| tints.seen(column.look(), column.filled)));
    }

    /// Runs of columns that look alike, without the empty ones.
    pub fn runs(&self, look: Look, tints: &Tints) -> impl Iterator<Item = Run> {
        let mut columns = self.shown().iter().enumerate().peekable();
        let of = move |column: &Column| match look {
            Look::Faint => (tints.seen(column.look(), column.filled), 1.0),
            Look::Bars => (tints.seen(column.look(), FULL), column.share().min(1.0)),
        };
        std::iter::from_fn(move || {
            let (from, (color, height)) =
                columns.find(|(_, column)| column.most > 0).map(|(at, column)| (at, of(column)))?;
            let mut to = from + 1;
            while columns.next_if(|(_, column)| column.most > 0 && of(column) == (color, height)).is_some() {
                to += 1;
            }
            Some(Run { from, to, color, height })
        })
    }
}

impl Column {
    /// Adds a part of an interval, or of a cell of which a share is filled. It is there, though it may have no length,
    /// if `present` is 1.
    #[inline]
    fn add(&mut self, part: i64, present: u32, share: u32, look: u8) {
        let filled = part as u32 * share;
        self.take(filled, ((filled >> 8) + present) << 8 | u32::from(look));
    }

    /// Adds what is filled, the most of it by one interval; of equals the first stays.
    #[inline]
    fn take(&mut self, filled: u32, most: u32) {
        self.filled = self.filled.saturating_add(filled);
        self.most = if most > self.most | 0xff { most } else { self.most };
    }

    /// Makes it the last column of a box, unless it is empty.
    fn make_edge(&mut self) {
        if self.most > 0 {
            self.most |= u32::from(EDGE_LOOK);
        }
    }

    fn look(self) -> u8 {
        self.most as u8
    }

    fn share(self) -> f32 {
        self.filled as f32 / FULL as f32
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
        columns.shown().to_vec()
    }

    /// A lane of intervals, each after a gap, and the end of the last.
    fn laid_out(steps: Vec<(i64, i64)>) -> (Lane, i64) {
        let mut time = 0;
        let mut pieces = Vec::new();
        for (gap, length) in steps {
            time += gap + length;
            pieces.push(piece(time - length, time));
        }
        (pack(pieces.len(), |at| pieces[at]).swap_remove(0), time)
    }

    proptest! {
        #[test]
        fn columns_hold_the_busy_time_at_every_zoom(
            steps in vec((1_i64..400, 1_i64..400), 1..2000),
            from in 0_i64..100_000,
            span in 1_000_i64..500_000,
            width in 10_usize..300,
        ) {
            let (lane, _) = laid_out(steps);
            let view = Viewport::new(from, span);
            let columns = shares(&lane, view, width);
            let busy = lane.busy(view.start(), view.end()) as f64;
            let ns_per_px = view.ns_per_px(width as f32);
            let drawn: f64 = columns.iter().map(|column| f64::from(column.share())).sum::<f64>() * ns_per_px;
            // A cell that crosses an edge of the view may be counted on the wrong side of it.
            prop_assert!((drawn - busy).abs() <= 3.0 * ns_per_px + busy * 1e-3, "{drawn} of {busy}");
            for (at, column) in columns.iter().enumerate() {
                prop_assert!(column.share() <= 1.01);
                let (start, end) = (view.time_at(at as f32, width as f32), view.time_at(at as f32 + 1.0, width as f32));
                if lane.busy(start + 1, end - 1) > 0 {
                    prop_assert!(column.most > 0, "nothing disappears");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_wide_interval_is_a_box_once(
            steps in vec((0_i64..6, prop_oneof![1_i64..9, 1_i64..90]), 1..4000),
            from in 0.0_f64..1.0,
            span in 1_000_i64..60_000,
            width in 10_usize..4000,
        ) {
            let (lane, time) = laid_out(steps);
            let view = Viewport::new((time as f64 * from) as i64, span);
            let mut columns = Columns::default();
            columns.fill(&lane, view, width);
            let found: Vec<u32> = columns.boxes().iter().map(|found| found.at).collect();
            let scale = Scale::of(view, width);
            let wide = |at: &u32| {
                let (start, end) = lane.times(*at as usize);
                scale.x(end) - scale.x(start) >= BOX_COLUMNS
            };
            prop_assert!(found.is_sorted() && found.iter().all(wide));
            // Of one that reaches beyond the screen enough must be on it.
            let wide_on_screen = |at: &u32| {
                let (start, end) = lane.times(*at as usize);
                scale.x(end.min(view.end())) - scale.x(start.max(view.start())) >= BOX_COLUMNS
            };
            let shown = lane.touching(view.start(), view.end()).map(|at| at as u32);
            let missing = shown.filter(wide_on_screen).find(|at| !found.contains(at));
            prop_assert_eq!(missing, None);
            for found in columns.boxes() {
                // All of a box is full, but where the cells of its ends are spread over columns.
                let whole = (found.from + 2.0).max(0.0) as usize..(found.to - 2.0).clamp(0.0, width as f32) as usize;
                let mut inside = whole.filter_map(|at| columns.shown().get(at));
                prop_assert!(inside.all(|column| column.share() > 0.999 && column.look() == Tint::REPLAY.look()));
            }
        }
    }

    #[test]
    fn a_squared_box_has_no_steps_and_hides_nothing_beside_it() {
        // Columns of 10 ns: boxes with ends within columns, and between two of them one column that both share.
        let pieces = [piece(23, 87), piece(96, 134), piece(136, 198), piece(306, 330), piece(404, 418)];
        let lane = &pack(pieces.len(), |at| pieces[at])[0];
        let mut columns = Columns::default();
        columns.fill(lane, Viewport::new(0, 1_000), 100);
        let before: Vec<f32> = columns.shown().iter().map(|column| column.share()).collect();
        assert!((before[2] - 0.7).abs() < 0.01 && (before[9] - 0.4).abs() < 0.01 && (before[13] - 0.8).abs() < 0.01);
        columns.fill_squared(lane, Viewport::new(0, 1_000), 100);
        let after: Vec<f32> = columns.shown().iter().map(|column| column.share()).collect();
        let full: Vec<usize> = (0..100).filter(|&at| after[at] > 0.999).collect();
        assert_eq!(full, [2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 14, 15, 16, 17, 18, 19, 31, 32]);
        let partly: Vec<usize> = (0..100).filter(|&at| after[at] > 0.0 && after[at] < 0.999).collect();
        assert_eq!(partly, [13, 40, 41], "the gap between two boxes is still seen, and the shares of what is narrow");
        // Columns of 100 ns: what is beside the box is so short that the column is hardly fuller than of the box alone.
        let pieces = [piece(230, 830), piece(850, 855)];
        let lane = &pack(pieces.len(), |at| pieces[at])[0];
        columns.fill_squared(lane, Viewport::new(0, 10_000), 100);
        let shares: Vec<f32> = columns.shown().iter().map(|column| column.share()).collect();
        assert!((shares[8] - 0.35).abs() < 0.001, "{}", shares[8]);
    }

    proptest! {
        #[test]
        fn squared_columns_show_what_is_in_them_and_steps_only_where_something_else_is(
            steps in vec((prop_oneof![1_i64..8, 1_i64..150], prop_oneof![0_i64..10, 0_i64..150, 100_i64..500]), 1..40),
        ) {
            const NS: i64 = 64;
            const WIDTH: usize = 100;
            let mut end = 0;
            let fits = |&(gap, length): &(i64, i64)| {
                end += gap + length;
                end <= NS * WIDTH as i64
            };
            let (lane, _) = laid_out(steps.into_iter().take_while(fits).collect());
            let mut columns = Columns::default();
            columns.fill_squared(&lane, Viewport::new(0, NS * WIDTH as i64), WIDTH);
            for (at, column) in columns.shown().iter().enumerate() {
                let (from, to) = (at as i64 * NS, (at as i64 + 1) * NS);
                let all = (0..lane.len()).map(|at| lane.times(at));
                let touching = |&(start, end): &(i64, i64)| start < to && (end > from || start >= from);
                let inside: Vec<(i64, i64)> = all.filter(touching).collect();
                let filled: i64 = inside.iter().map(|&(start, end)| end.min(to) - start.max(from)).sum();
                let (filled, shown) = match inside[..] {
                    [] => (0, false),
                    [(start, end)] if end - start >= 2 * NS => (if filled * 2 >= NS { NS } else { 0 }, filled * 2 >= NS),
                    _ => (filled, true),
                };
                prop_assert_eq!(column.most > 0, shown, "column {} with {:?}", at, &inside);
                let share = filled as f32 / NS as f32;
                prop_assert!((column.share() - share).abs() < 1e-4, "column {at} with {inside:?}: {}", column.share());
            }
        }

        #[test]
        fn nothing_beside_a_squared_box_vanishes_among_cells(
            steps in vec((1_i64..6, prop_oneof![20 => 0_i64..20, 1 => 1_i64..400]), 500..3000),
            from in 0.0_f64..1.0,
            span in 1_000_i64..60_000,
            width in 10_usize..2000,
        ) {
            let (lane, time) = laid_out(steps);
            let view = Viewport::new((time as f64 * from) as i64, span);
            let mut columns = Columns::default();
            columns.fill_squared(&lane, view, width);
            let time_at = |column: usize| view.time_at(column as f32, width as f32);
            for (at, column) in columns.shown().iter().enumerate() {
                // Within it by more than rounding.
                let (from, to) = (time_at(at) + 1, time_at(at + 1) - 1);
                let inside = lane.touching(from, to.max(from));
                let narrow = |at: usize| {
                    let (start, end) = lane.times(at);
                    ((end - start) as f64) < 2.0 * view.ns_per_px(width as f32)
                };
                if inside.len() > 1 || inside.clone().any(narrow) {
                    prop_assert!(column.most > 0, "column {at} of {width} with {inside:?}");
                }
            }
        }
    }

    #[test]
    fn an_instant_is_visible() {
        let lane = &pack(1, |_| piece(500, 500))[0];
        let columns = shares(lane, Viewport::new(0, 1_000_000), 100);
        assert_eq!(columns.iter().filter(|column| column.most > 0).count(), 1);
    }
}
