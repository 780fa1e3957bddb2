//! How busy a lane is in cells of every size: a pyramid with as much detail as there are intervals.
//!
//! A tile is a run of [`TILE`] cells. Tiles exist where there are at least three intervals for four cells, from the size
//! at which one tile holds the whole lane down to the size at which intervals are fewer; a burst in a quiet lane has
//! finer tiles than the rest. A tile keeps the cells that are not empty. So reading costs what the screen has columns,
//! and all tiles of a lane together take a few bytes an interval, whatever the intervals are like.

use std::ops::Range;

use bubblescope::trace::Ns;

use crate::lod::Level;

/// Cells of a tile.
pub const TILE: usize = 1 << TILE_BITS;
const TILE_BITS: u8 = 9;
/// Intervals from which on a part of a lane has a tile.
const DENSE: usize = TILE * 3 / 4;
/// Coarser cells are not needed: a tile of these spans all of time.
const COARSEST: u8 = 63 - TILE_BITS;
/// No interval.
const NONE: u32 = u32::MAX;
/// A full cell.
const FULL: u32 = (1 << 15) - 1;

/// What a cell of time that is not empty shows, in four bytes: share (15 bits), whether one interval fills it (1),
/// tint (7), position in its tile (9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell(u32);

impl Cell {
    fn new(at: usize, share: u32, sole: bool, tint: u8) -> Self {
        Self(share << 17 | u32::from(sole) << 16 | u32::from(tint & 127) << 9 | at as u32 & (TILE as u32 - 1))
    }

    /// Its position in the tile.
    pub fn at(self) -> usize {
        self.0 as usize & (TILE - 1)
    }

    /// The share of the cell's time that intervals fill: 1 only if all of it, else right to 1/32767. It is 0 if all of
    /// them have no length.
    pub fn share(self) -> f32 {
        (self.0 >> 17) as f32 / FULL as f32
    }

    /// The same of 32768.
    #[inline]
    pub fn parts_filled(self) -> u32 {
        let share = self.0 >> 17;
        share + (share >> 14)
    }

    /// Whether one interval fills the cell.
    pub fn is_sole(self) -> bool {
        self.0 & 1 << 16 != 0
    }

    /// The number of the tint of the interval that fills most of the cell.
    pub fn tint(self) -> u8 {
        (self.0 >> 9) as u8 & 127
    }
}

/// A stretch of a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    /// Many intervals.
    Cells {
        /// Size of the cells.
        level: Level,
        /// Number of the tile's first one.
        first: i64,
        /// Those of the tile that are not empty, in order.
        cells: &'a [Cell],
    },
    /// Few intervals, to be looked at one by one.
    Few {
        /// From when on.
        from: i64,
        /// Until when.
        to: i64,
    },
}

/// The tiles of one size.
#[derive(Clone, Debug, Default)]
struct Size {
    /// Numbers of the tiles, counted from time 0, in order.
    numbers: Vec<i64>,
    /// Where their cells begin, and where the last one's end.
    begins: Vec<u32>,
    /// Their cells.
    cells: Vec<Cell>,
}

/// The tiles of a lane.
#[derive(Clone, Debug, Default)]
pub struct Tiles {
    /// From the coarsest on, each of half the cells of the one before.
    sizes: Vec<Size>,
    /// Exponent of the coarsest.
    coarsest: u8,
}

/// What the intervals of a cell add up to.
#[derive(Clone, Copy, Debug)]
struct Sum {
    busy: i64,
    /// Time that the interval at `at` fills, the most of any.
    best: i64,
    at: u32,
}

impl Sum {
    const ZERO: Self = Self { busy: 0, best: 0, at: NONE };

    fn add(&mut self, time: i64, at: usize) {
        self.busy += time;
        if self.at == NONE || time > self.best {
            (self.best, self.at) = (time, at as u32);
        }
    }

    fn and(self, next: Self) -> Self {
        let (best, at) = if self.at == next.at {
            (self.best + next.best, self.at)
        } else if next.at != NONE && (self.at == NONE || next.best > self.best) {
            (next.best, next.at)
        } else {
            (self.best, self.at)
        };
        Self { busy: self.busy + next.busy, best, at }
    }
}

/// A lane while its tiles are made.
struct Making<'a> {
    start: &'a [Ns],
    end: &'a [Ns],
    tint: &'a [u8],
    tiles: Tiles,
}

impl Tiles {
    /// Sums up intervals that are sorted and do not overlap.
    pub fn of(start: &[Ns], end: &[Ns], tint: &[u8]) -> Self {
        let (Some(&Ns(first)), Some(&Ns(last))) = (start.first(), end.last()) else { return Self::default() };
        let tile_of = |time: i64, exponent: u8| time >> (exponent + TILE_BITS);
        let mut coarsest = 0;
        while coarsest < COARSEST && tile_of(first, coarsest) != tile_of(last, coarsest) {
            coarsest += 1;
        }
        let mut making = Making { start, end, tint, tiles: Self { sizes: Vec::new(), coarsest } };
        let mut rest = 0..start.len();
        // All is one tile, unless it lies on both sides of time 0.
        for number in tile_of(first, coarsest)..=tile_of(last, coarsest) {
            let (here, later) = making.split(rest, start_of(number + 1, coarsest + TILE_BITS));
            if here.len() >= DENSE {
                making.fill(0, number, here);
            }
            rest = later;
        }
        for size in &mut making.tiles.sizes {
            size.numbers.shrink_to_fit();
            size.begins.shrink_to_fit();
            size.cells.shrink_to_fit();
        }
        making.tiles
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let of = |size: &Size| {
            size.numbers.capacity() * 8 + size.begins.capacity() * 4 + size.cells.capacity() * size_of::<Cell>()
        };
        self.sizes.iter().map(of).sum::<usize>() + self.sizes.capacity() * size_of::<Size>()
    }

    /// What lies between two moments, in cells no larger than those of `level`. The first and the last cells may reach
    /// beyond.
    pub fn parts(&self, level: Level, from: i64, to: i64) -> Vec<Part<'_>> {
        let depth = self.coarsest.saturating_sub(level.exponent());
        let level = Level::new(self.coarsest - depth);
        let mut parts = Vec::new();
        let mut time = from;
        if let Some(size) = self.sizes.get(usize::from(depth)) {
            let shift = level.exponent() + TILE_BITS;
            let first = size.numbers.partition_point(|&number| number < from >> shift);
            for (&number, cells) in size.numbers.iter().zip(size.begins.windows(2)).skip(first) {
                let (start, end) = (start_of(number, shift), start_of(number + 1, shift));
                if start >= to {
                    break;
                }
                if time < start {
                    parts.push(Part::Few { from: time, to: start });
                }
                let cells = &size.cells[cells[0] as usize..cells[1] as usize];
                parts.push(Part::Cells { level, first: number << TILE_BITS, cells });
                time = end;
            }
        }
        if time < to {
            parts.push(Part::Few { from: time, to });
        }
        parts
    }
}

/// When the cell or tile of a number starts.
fn start_of(number: i64, exponent: u8) -> i64 {
    (i128::from(number) << exponent).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl Making<'_> {
    /// Sums up a tile, and the finer ones that it has, from the intervals that touch it.
    fn fill(&mut self, depth: u8, number: i64, range: Range<usize>) -> Vec<Sum> {
        let exponent = self.tiles.coarsest - depth;
        let mut sums = vec![Sum::ZERO; TILE];
        if exponent == 0 {
            self.scan(0, number << TILE_BITS, range, &mut sums);
        } else {
            let middle = number * 2 + 1;
            let (left, right) = self.split(range, start_of(middle, exponent + TILE_BITS - 1));
            for (half, range) in [(0, left), (1, right)] {
                let target = &mut sums[half * (TILE / 2)..(half + 1) * (TILE / 2)];
                if range.len() >= DENSE {
                    let finer = self.fill(depth + 1, number * 2 + half as i64, range);
                    for (sum, pair) in target.iter_mut().zip(finer.chunks_exact(2)) {
                        *sum = pair[0].and(pair[1]);
                    }
                } else {
                    let first = (number << TILE_BITS) + (half * (TILE / 2)) as i64;
                    self.scan(exponent, first, range, target);
                }
            }
        }
        self.keep(depth, number, &sums);
        sums
    }

    /// Those of some intervals that touch what is before a moment, and those that touch what is after it.
    fn split(&self, range: Range<usize>, moment: i64) -> (Range<usize>, Range<usize>) {
        let after = range.start + self.start[range.clone()].partition_point(|start| start.0 < moment);
        let crosses = after > range.start && self.end[after - 1].0 > moment;
        (range.start..after, after - usize::from(crosses)..range.end)
    }

    /// Adds intervals to the cells from number `first` on.
    fn scan(&self, exponent: u8, first: i64, range: Range<usize>, sums: &mut [Sum]) {
        let (from, to) = (start_of(first, exponent), start_of(first + sums.len() as i64, exponent));
        for at in range {
            let (start, end) = (self.start[at].0.max(from), self.end[at].0.min(to));
            let mut cell = ((start >> exponent) - first) as usize;
            let mut time = start;
            while let Some(sum) = sums.get_mut(cell) {
                let until = start_of(first + cell as i64 + 1, exponent).min(end);
                sum.add(until - time, at);
                if until >= end {
                    break;
                }
                time = until;
                cell += 1;
            }
        }
    }

    /// Keeps the cells of a tile.
    fn keep(&mut self, depth: u8, number: i64, sums: &[Sum]) {
        let cell_ns = 1_i64 << (self.tiles.coarsest - depth);
        let filled = sums.iter().enumerate().filter(|(_, sum)| sum.at != NONE);
        let cells = filled.map(|(at, sum)| {
            let share = (sum.busy as f64 / cell_ns as f64 * f64::from(FULL)).round() as u32;
            let share = if sum.busy >= cell_ns { FULL } else { share.clamp(u32::from(sum.busy > 0), FULL - 1) };
            Cell::new(at, share, sum.best >= cell_ns, self.tint[sum.at as usize])
        });
        let sizes = &mut self.tiles.sizes;
        if sizes.len() <= usize::from(depth) {
            sizes.resize_with(usize::from(depth) + 1, || Size { begins: vec![0], ..Size::default() });
        }
        let size = &mut sizes[usize::from(depth)];
        size.numbers.push(number);
        size.cells.extend(cells);
        size.begins.push(size.cells.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Intervals with these gaps before and these lengths, in bursts of eight.
    fn times(steps: &[(i64, i64)], pause: i64) -> (Vec<i64>, Vec<i64>, Vec<u8>) {
        let mut time = 0;
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for (at, &(gap, length)) in steps.iter().enumerate() {
            let gap = if at % 1024 == 0 { gap + pause } else { gap };
            starts.push(time + gap);
            time += gap + length;
            ends.push(time);
        }
        let tints = (0..steps.len()).map(|at| (at % 100) as u8).collect();
        (starts, ends, tints)
    }

    fn tiles(starts: &[i64], ends: &[i64], tints: &[u8]) -> Tiles {
        let [starts, ends] = [starts, ends].map(|times| times.iter().copied().map(Ns).collect::<Vec<Ns>>());
        Tiles::of(&starts, &ends, tints)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn every_cell_shows_the_naive_share(
            steps in vec((0_i64..30, 1_i64..40), 1..6000),
            pause in 0_i64..2_000_000,
            exponent in 0_u8..24,
            (from, to) in (0.0_f64..1.0, 0.0_f64..1.0),
        ) {
            let (starts, ends, tints) = times(&steps, pause);
            let tiles = tiles(&starts, &ends, &tints);
            let span = ends[ends.len() - 1];
            let (from, to) = ((from.min(to) * span as f64) as i64, (from.max(to) * span as f64) as i64 + 1);
            let mut time = from;
            for part in tiles.parts(Level::new(exponent), from, to) {
                match part {
                    Part::Few { from, to } => {
                        prop_assert_eq!(from, time);
                        time = to;
                        let few = (0..starts.len()).filter(|&at| starts[at] < to && ends[at] > from).count() as i64;
                        let cells = ((to - from) >> exponent) + 2 * TILE as i64;
                        prop_assert!(few <= cells, "{few} intervals in {cells} cells");
                    }
                    Part::Cells { level, first, cells } => {
                        prop_assert!(level.exponent() <= exponent);
                        prop_assert!(level.start_of(first) <= time);
                        time = level.start_of(first + TILE as i64);
                        let mut at = ends.partition_point(|&end| end <= level.start_of(first));
                        prop_assert!(cells.is_sorted_by_key(|cell| cell.at()));
                        let mut filled = cells.iter().peekable();
                        for (position, number) in (0..TILE).zip(first..) {
                            let (start, end) = (level.start_of(number), level.start_of(number + 1));
                            let (mut busy, mut best) = (0, 0);
                            while at < starts.len() && starts[at] < end {
                                let part = ends[at].min(end) - starts[at].max(start);
                                (busy, best) = (busy + part, best.max(part));
                                if ends[at] > end {
                                    break;
                                }
                                at += 1;
                            }
                            let Some(cell) = filled.next_if(|cell| cell.at() == position) else {
                                prop_assert_eq!(busy, 0);
                                continue;
                            };
                            let share = busy as f64 / level.ns() as f64;
                            prop_assert!((f64::from(cell.share()) - share).abs() < 2.0 / 32767.0);
                            prop_assert_eq!(cell.share() == 1.0, busy == level.ns());
                            prop_assert_eq!(cell.is_sole(), best == level.ns());
                        }
                    }
                }
            }
            prop_assert!(time >= to, "nothing is left out");
            prop_assert!(tiles.memory() <= steps.len() * 16 + 4096, "{}", tiles.memory() / steps.len());
        }
    }

    #[test]
    fn the_ends_of_time_are_handled() {
        let many = (0..2000).map(|at| i64::MIN + at * 2);
        let starts: Vec<i64> = many.chain((0..2000).map(|at| i64::MAX - 4000 + at * 2)).collect();
        let ends: Vec<i64> = starts.iter().map(|start| start + 1).collect();
        let tiles = tiles(&starts, &ends, &vec![0; starts.len()]);
        for exponent in 0..60 {
            for (from, to) in [(i64::MIN, i64::MAX), (i64::MAX - 10, i64::MAX), (i64::MIN, i64::MIN + 9)] {
                assert!(!tiles.parts(Level::new(exponent), from, to).is_empty());
            }
        }
    }

    #[test]
    fn instants_are_not_lost() {
        let starts: Vec<i64> = (0..2000).map(|at| at * 1000).collect();
        let tiles = tiles(&starts, &starts, &vec![3; starts.len()]);
        let parts = tiles.parts(Level::new(12), 0, 2_000_000);
        let Part::Cells { cells, .. } = parts[0] else { panic!("{:?}", parts[0]) };
        assert!(cells.len() > 480 && cells.iter().all(|cell| cell.share() == 0.0 && cell.tint() == 3));
    }
}
