//! Level of detail: exact figures for any part of a lane, however many intervals it has.
//!
//! A [`Lane`] is a row of intervals that do not overlap. Prefix sums over blocks of intervals give the busy time of
//! any span, and a tree over the blocks the longest interval, both in logarithmic time. So a screen column that stands
//! for a million intervals still shows the exact share of time that they fill, and no gap disappears.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use bubblescope::trace::Interval;

/// Intervals per block of the index: the index then takes 0.5 bytes an interval, and scanning a block costs less than
/// a cache miss.
const BLOCK: usize = 32;

/// Intervals that follow each other without overlap, each standing for one item of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    start: Vec<i64>,
    end: Vec<i64>,
    item: Vec<u32>,
    /// Busy nanoseconds before each block.
    busy: Vec<i64>,
    /// A segment tree over blocks, leaves in the second half: position of the longest interval below a node.
    longest: Vec<u32>,
}

/// What one cell of time, or a run of cells that one interval fills, shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The first cell, counted from [`Cells::first`].
    pub at: u32,
    /// How many cells look like this.
    pub len: u32,
    /// The share of the time that intervals fill, exact before rounding to `f32`.
    pub share: f32,
    /// Intervals that touch the cell.
    pub count: u32,
    /// Position in the lane of the longest of them.
    pub longest: u32,
}

/// The cells of a part of a lane that are not empty, in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    /// Size of a cell.
    pub level: Level,
    /// Number of the cell that positions are counted from: it starts at `first << level`.
    pub first: i64,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// A size of cells: a power of two of nanoseconds, so that panning does not move their edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// The largest cells that are no wider than a screen column of `ns_per_px`.
    pub fn for_scale(ns_per_px: f64) -> Self {
        // A lossy conversion is fine: any level near the wanted one draws the same picture.
        let ns = (ns_per_px as i64).clamp(1, 1 << 60);
        Self(ns.ilog2() as u8)
    }

    /// Nanoseconds of a cell.
    pub fn ns(self) -> i64 {
        1 << self.0
    }

    /// The cell that holds a moment.
    pub fn cell_of(self, time: i64) -> i64 {
        time >> self.0
    }

    /// When a cell starts.
    pub fn start_of(self, cell: i64) -> i64 {
        cell.saturating_mul(self.ns())
    }
}

/// Puts intervals into as few lanes as needed for none to overlap; every interval is in exactly one.
///
/// Each goes into the first lane that is free, so properly nested intervals keep their order of nesting when an
/// enclosing one comes before those inside it.
pub fn pack(intervals: impl IntoIterator<Item = (Interval, u32)>) -> Vec<Lane> {
    let mut rows: Vec<(Interval, u32)> = intervals.into_iter().collect();
    if !rows.is_sorted_by_key(|(interval, _)| interval.start) {
        rows.sort_by_key(|(interval, _)| (interval.start, Reverse(interval.end)));
    }
    let mut lanes: Vec<Lane> = Vec::new();
    let mut taken: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    for (interval, item) in rows {
        let (start, end) = (interval.start.0, interval.end.0.max(interval.start.0));
        while let Some(&Reverse((until, lane))) = taken.peek() {
            if until > start {
                break;
            }
            taken.pop();
            free.push(Reverse(lane));
        }
        let lane = free.pop().map_or(lanes.len(), |Reverse(lane)| lane);
        if lane == lanes.len() {
            lanes.push(Lane::default());
        }
        lanes[lane].start.push(start);
        lanes[lane].end.push(end);
        lanes[lane].item.push(item);
        // An interval of no length takes a nanosecond, or a second one at the same moment would cover it.
        taken.push(Reverse((end.max(start.saturating_add(1)), lane)));
    }
    for lane in &mut lanes {
        lane.build_index();
    }
    lanes
}

impl Lane {
    fn build_index(&mut self) {
        let blocks = self.start.len().div_ceil(BLOCK);
        self.busy = Vec::with_capacity(blocks);
        self.longest = vec![0; blocks * 2];
        let mut busy = 0_i64;
        for block in 0..blocks {
            self.busy.push(busy);
            let range = block * BLOCK..((block + 1) * BLOCK).min(self.start.len());
            busy = busy.saturating_add(range.clone().map(|at| self.length(at)).sum());
            self.longest[blocks + block] = self.longest_scanned(range) as u32;
        }
        for node in (1..blocks).rev() {
            let (left, right) = (self.longest[node * 2], self.longest[node * 2 + 1]);
            self.longest[node] = self.longer(left, right);
        }
        self.start.shrink_to_fit();
        self.end.shrink_to_fit();
        self.item.shrink_to_fit();
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Start and end of the interval at a position.
    pub fn times(&self, at: usize) -> (i64, i64) {
        (self.start[at], self.end[at])
    }

    /// The item of the interval at a position.
    pub fn item(&self, at: usize) -> u32 {
        self.item[at]
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.start.capacity() * 8
            + self.end.capacity() * 8
            + self.item.capacity() * 4
            + self.busy.capacity() * 8
            + self.longest.capacity() * 4
    }

    /// Positions of the intervals that touch `[from, to)`.
    pub fn touching(&self, from: i64, to: i64) -> Range<usize> {
        let mut first = self.end.partition_point(|&end| end < from);
        while first < self.len() && self.end[first] == from && self.start[first] < from {
            first += 1;
        }
        let last = self.start.partition_point(|&start| start < to);
        first..last.max(first)
    }

    /// The position of the interval open at a moment.
    pub fn at(&self, time: i64) -> Option<usize> {
        let after = self.start.partition_point(|&start| start <= time);
        let at = after.checked_sub(1)?;
        (self.end[at].max(self.start[at] + 1) > time).then_some(at)
    }

    /// The longest interval that touches `[from, to)`.
    pub fn longest_in(&self, from: i64, to: i64) -> Option<usize> {
        let range = self.touching(from, to);
        (!range.is_empty()).then(|| self.longest_of(range))
    }

    /// Time within `[from, to)` that intervals fill.
    pub fn busy(&self, from: i64, to: i64) -> i64 {
        (self.busy_before(to) - self.busy_before(from)).max(0)
    }

    fn busy_before(&self, time: i64) -> i64 {
        let count = self.start.partition_point(|&start| start < time);
        match count.checked_sub(1) {
            None => 0,
            Some(last) => self.busy_of_first(count) - self.end[last].saturating_sub(time).max(0),
        }
    }

    /// Lengths of the first `count` intervals together.
    fn busy_of_first(&self, count: usize) -> i64 {
        let block = (count / BLOCK).min(self.busy.len().saturating_sub(1));
        let before = self.busy.get(block).copied().unwrap_or(0);
        before + (block * BLOCK..count).map(|at| self.length(at)).sum::<i64>()
    }

    fn length(&self, at: usize) -> i64 {
        self.end[at] - self.start[at]
    }

    /// Of two positions the one with the longer interval, the first if equal.
    fn longer(&self, a: u32, b: u32) -> u32 {
        let (first, second) = (a.min(b), a.max(b));
        if self.length(second as usize) > self.length(first as usize) { second } else { first }
    }

    fn longest_scanned(&self, range: Range<usize>) -> usize {
        let first = range.start;
        range.fold(first, |best, at| if self.length(at) > self.length(best) { at } else { best })
    }

    /// Position of the longest interval in a range of positions that is not empty.
    fn longest_of(&self, range: Range<usize>) -> usize {
        if range.len() < 2 * BLOCK {
            return self.longest_scanned(range);
        }
        let blocks = range.start.div_ceil(BLOCK)..range.end / BLOCK;
        let head = self.longest_scanned(range.start..(blocks.start * BLOCK).max(range.start + 1)) as u32;
        let tail = self.longest_scanned((blocks.end * BLOCK).min(range.end - 1)..range.end) as u32;
        let mut best = self.longer(head, tail);
        let leaves = self.busy.len();
        let (mut low, mut high) = (blocks.start + leaves, blocks.end + leaves);
        while low < high {
            if low % 2 == 1 {
                best = self.longer(best, self.longest[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                best = self.longer(best, self.longest[high]);
            }
            low /= 2;
            high /= 2;
        }
        best as usize
    }

    /// The cells of `[from, to)` that hold anything.
    pub fn cells(&self, level: Level, from: i64, to: i64) -> Cells {
        let first = level.cell_of(from);
        let end_cell = level.cell_of(to.saturating_sub(1)).saturating_add(1);
        let mut cells = Vec::new();
        let touching = self.touching(level.start_of(first), level.start_of(end_cell));
        let mut at = touching.start;
        let mut cell = first;
        while at < touching.end {
            cell = cell.max(level.cell_of(self.start[at]));
            if cell >= end_cell {
                break;
            }
            let (cell_start, cell_end) = (level.start_of(cell), level.start_of(cell + 1));
            if self.start[at] <= cell_start && self.end[at] >= cell_end {
                let until = level.cell_of(self.end[at]).min(end_cell);
                cells.push(Cell {
                    at: clamp_u32(cell - first),
                    len: clamp_u32(until - cell),
                    share: 1.0,
                    count: 1,
                    longest: at as u32,
                });
                cell = until;
                at += usize::from(self.end[at] <= level.start_of(until));
                continue;
            }
            let next = self.first_from(at, cell_end);
            let before = (cell_start - self.start[at]).max(0);
            let after = (self.end[next - 1] - cell_end).max(0);
            let busy = self.busy_between(at..next) - before - after;
            cells.push(Cell {
                at: clamp_u32(cell - first),
                len: 1,
                share: (busy as f64 / level.ns() as f64) as f32,
                count: clamp_u32((next - at) as i64),
                longest: self.longest_of(at..next) as u32,
            });
            at = if self.end[next - 1] > cell_end { next - 1 } else { next };
            cell += 1;
        }
        Cells { level, first, cells }
    }

    /// The first position after `at` whose interval starts at or after `time`, found by galloping.
    fn first_from(&self, at: usize, time: i64) -> usize {
        let (mut low, mut step) = (at, 1);
        loop {
            let probe = low + step;
            match self.start.get(probe) {
                Some(&start) if start < time => {
                    low = probe;
                    step *= 2;
                }
                _ => break,
            }
        }
        let high = (low + step).min(self.len());
        low + 1 + self.start[low + 1..high].partition_point(|&start| start < time)
    }

    fn busy_between(&self, range: Range<usize>) -> i64 {
        if range.len() < BLOCK {
            return range.map(|at| self.length(at)).sum();
        }
        self.busy_of_first(range.end) - self.busy_of_first(range.start)
    }
}

fn clamp_u32(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use bubblescope::trace::Ns;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A lane of intervals with these gaps before and these lengths.
    fn lane(steps: &[(i64, i64)]) -> Lane {
        let mut time = 0;
        let intervals = steps.iter().enumerate().map(|(index, &(gap, length))| {
            let start = time + gap;
            time = start + length;
            (Interval::new(Ns(start), Ns(time)), index as u32)
        });
        pack(intervals).into_iter().next().unwrap_or_default()
    }

    fn naive_busy(lane: &Lane, from: i64, to: i64) -> i64 {
        (0..lane.len()).map(|at| (lane.end[at].min(to) - lane.start[at].max(from)).max(0)).sum()
    }

    proptest! {
        #[test]
        fn busy_time_is_the_naive_sum(steps in vec((0_i64..50, 1_i64..50), 0..400), from in -10_i64..9000, len in 0_i64..9000) {
            let lane = lane(&steps);
            prop_assert_eq!(lane.busy(from, from + len), naive_busy(&lane, from, from + len));
        }

        #[test]
        fn the_longest_is_the_first_longest(steps in vec((1_i64..9, 0_i64..30), 1..600), a in 0_usize..600, b in 0_usize..600) {
            let lane = lane(&steps);
            let (a, b) = (a.min(lane.len() - 1), b.min(lane.len() - 1));
            let range = a.min(b)..a.max(b) + 1;
            let longest = range.clone().map(|at| lane.length(at)).max().unwrap_or(0);
            let first = range.clone().find(|&at| lane.length(at) == longest);
            prop_assert_eq!(Some(lane.longest_of(range)), first);
        }

        #[test]
        fn each_cell_shows_the_naive_share(
            steps in vec((1_i64..60, 0_i64..300), 0..300),
            scale in 1.0_f64..2000.0,
            from in 0_i64..3000,
            len in 1_i64..40_000,
        ) {
            let lane = lane(&steps);
            let level = Level::for_scale(scale);
            let found = lane.cells(level, from, from + len);
            prop_assert!(level.ns() as f64 <= scale);
            let mut next = 0;
            let mut total = 0.0;
            for cell in &found.cells {
                prop_assert!(cell.at >= next, "cells are in order and do not overlap");
                next = cell.at + cell.len;
                let start = level.start_of(found.first + i64::from(cell.at));
                let end = level.start_of(found.first + i64::from(next));
                let busy = naive_busy(&lane, start, end);
                prop_assert!((f64::from(cell.share) - busy as f64 / (end - start) as f64).abs() < 1e-6);
                let touching = (0..lane.len())
                    .filter(|&at| lane.start[at] < end && (lane.end[at] > start || lane.start[at] >= start));
                let count = touching.clone().count();
                prop_assert_eq!(cell.count as usize, count);
                let longest = touching.map(|at| lane.length(at)).max().unwrap_or(-1);
                prop_assert_eq!(lane.length(cell.longest as usize), longest);
                total += busy as f64;
            }
            let start = level.start_of(found.first);
            let end = level.start_of(level.cell_of(from + len - 1) + 1);
            prop_assert_eq!(total as i64, naive_busy(&lane, start, end), "no busy time is left out");
        }

        #[test]
        fn packing_keeps_every_interval_and_overlaps_none(rows in vec((0_i64..200, 0_i64..40), 0..200)) {
            let intervals = rows.iter().enumerate().map(|(at, &(start, len))| (Interval::new(Ns(start), Ns(start + len)), at as u32));
            let lanes = pack(intervals);
            let mut seen: Vec<u32> = lanes.iter().flat_map(|lane| lane.item.iter().copied()).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..rows.len() as u32).collect::<Vec<_>>());
            for lane in &lanes {
                for at in 0..lane.len() {
                    let (start, end) = rows[lane.item(at) as usize];
                    prop_assert_eq!(lane.times(at), (start, start + end));
                    if at > 0 {
                        prop_assert!(lane.end[at - 1] <= lane.start[at] && lane.start[at - 1] < lane.start[at]);
                    }
                }
            }
            // No more lanes than intervals that are open at one moment, one of no length counting as a nanosecond.
            let depth = (0..240).map(|t| rows.iter().filter(|&&(start, len)| start <= t && t < start + len.max(1)).count()).max();
            prop_assert_eq!(lanes.len(), depth.unwrap_or(0));
        }

        #[test]
        fn a_moment_finds_its_interval(steps in vec((0_i64..9, 1_i64..9), 1..100), time in -2_i64..1000) {
            let lane = lane(&steps);
            let naive = (0..lane.len()).find(|&at| lane.start[at] <= time && time < lane.end[at]);
            prop_assert_eq!(lane.at(time), naive);
        }
    }

    #[test]
    fn intervals_at_the_end_of_time_are_handled() {
        let far = i64::MAX - 1;
        let lanes = pack([(Interval::new(Ns(0), Ns(far)), 0), (Interval::new(Ns(far), Ns(far)), 1)]);
        let cells = lanes[0].cells(Level::for_scale(1e18), 0, i64::MAX);
        assert_eq!(cells.cells.iter().map(|cell| cell.count).max(), Some(2));
        assert_eq!(lanes[0].busy(0, i64::MAX), far);
    }
}
