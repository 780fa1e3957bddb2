//! Level of detail: exact figures for any part of a lane, however many intervals it has.
//!
//! A [`Lane`] is a row of intervals that do not overlap. [`Tiles`] hold the share of time that they
//! fill for cells of every size, so a screen column that stands for a million intervals shows the exact share and no gap
//! disappears. Prefix sums over blocks of intervals give the busy time of any span, and a tree over the blocks the
//! longest interval, both in logarithmic time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use bubblescope::trace::{Interval, Ns, StreamIdx, ThreadIdx, Trace};

use crate::tiles::{Part, Tiles};
use crate::tint::Tint;

/// Intervals per block of the index: the index then takes 0.5 bytes an interval, and scanning a block costs less than
/// a cache miss.
const BLOCK: usize = 32;

/// An interval to be put into a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When.
    pub interval: Interval,
    /// The item of a table that it stands for.
    pub item: u32,
    /// Its colour.
    pub tint: Tint,
}

/// Intervals that follow each other without overlap, each standing for one item of a table.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    times: Times,
    items: Items,
    tint: Vec<u8>,
    /// Busy nanoseconds before each block.
    busy: Vec<i64>,
    /// A segment tree over blocks, leaves in the second half: position of the longest interval below a node.
    longest: Vec<u32>,
    tiles: Tiles,
}

/// Where the times of a lane's intervals stand, sorted and without overlap.
#[derive(Clone, Debug)]
enum Times {
    /// In the lane.
    Own {
        /// Starts.
        start: Vec<Ns>,
        /// Ends.
        end: Vec<Ns>,
    },
    /// In the trace, which has them anyway.
    Of(Stretch),
}

impl Default for Times {
    fn default() -> Self {
        Self::Own { start: Vec::new(), end: Vec::new() }
    }
}

/// Ops or calls that follow each other in a trace.
#[derive(Clone, Debug)]
pub enum Stretch {
    /// Those of a stream.
    Ops(Arc<Trace>, StreamIdx),
    /// Those of a thread.
    Calls(Arc<Trace>, ThreadIdx),
}

impl Stretch {
    fn range(&self) -> Range<usize> {
        let range = match self {
            Self::Ops(trace, stream) => &trace.streams[stream.index()].ops,
            Self::Calls(trace, thread) => &trace.threads[thread.index()].calls,
        };
        range.start as usize..range.end as usize
    }

    fn start(&self) -> &[Ns] {
        match self {
            Self::Ops(trace, _) => &trace.ops.start[self.range()],
            Self::Calls(trace, _) => &trace.calls.start[self.range()],
        }
    }

    fn end(&self) -> &[Ns] {
        match self {
            Self::Ops(trace, _) => &trace.ops.end[self.range()],
            Self::Calls(trace, _) => &trace.calls.end[self.range()],
        }
    }
}

/// The items of a lane's intervals. Most lanes have all ops of a stream, one after the other.
#[derive(Clone, Debug, Default)]
enum Items {
    /// None yet.
    #[default]
    None,
    /// From this one on, without a gap.
    Run(u32),
    /// Any.
    List(Vec<u32>),
}

impl Items {
    fn get(&self, at: usize) -> u32 {
        match self {
            Self::None => 0,
            Self::Run(first) => first + at as u32,
            Self::List(items) => items[at],
        }
    }

    /// Adds the item of position `at`, the next one.
    fn push(&mut self, at: usize, item: u32) {
        match self {
            Self::None => *self = Self::Run(item),
            Self::Run(first) if first.checked_add(at as u32) == Some(item) => {}
            Self::Run(first) => *self = Self::List((*first..).take(at).chain([item]).collect()),
            Self::List(items) => items.push(item),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::None | Self::Run(_) => 0,
            Self::List(items) => items.capacity() * 4,
        }
    }
}

/// A size of cells: a power of two of nanoseconds, so that panning does not move their edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// The cells that are about as wide as a screen column of `ns_per_px`: 0.7 to 1.4 columns.
    pub fn for_scale(ns_per_px: f64) -> Self {
        // A lossy conversion is fine: any level near the wanted one draws the same picture.
        let ns = ((ns_per_px * std::f64::consts::SQRT_2) as i64).clamp(1, 1 << 60);
        Self(ns.ilog2() as u8)
    }

    /// Cells of `1 << exponent` nanoseconds.
    pub const fn new(exponent: u8) -> Self {
        Self(exponent)
    }

    /// The exponent.
    pub const fn exponent(self) -> u8 {
        self.0
    }

    /// Nanoseconds of a cell.
    pub fn ns(self) -> i64 {
        1 << self.0
    }

    /// When a cell starts.
    pub fn start_of(self, cell: i64) -> i64 {
        cell.saturating_mul(self.ns())
    }
}

/// Puts `count` intervals into as few lanes as needed for none to overlap; every interval is in exactly one.
///
/// Each goes into the first lane that is free, so properly nested intervals keep their order of nesting when an
/// enclosing one comes before those inside it.
pub fn pack(count: usize, piece: impl Fn(usize) -> Piece) -> Vec<Lane> {
    if (0..count).is_sorted_by_key(|at| piece(at).interval.start) {
        return pack_sorted((0..count).map(piece));
    }
    let mut sorted: Vec<Piece> = (0..count).map(piece).collect();
    sorted.sort_by_key(|piece| (piece.interval.start, Reverse(piece.interval.end)));
    pack_sorted(sorted.into_iter())
}

/// Like [`pack`]. `tint` tells the colour of an op or call. If one lane is enough, it does not copy their times.
pub fn pack_stretch(stretch: Stretch, tint: impl Fn(usize) -> Tint) -> Vec<Lane> {
    let (range, start, end) = (stretch.range(), stretch.start(), stretch.end());
    // An interval of no length takes a nanosecond, as in `pack_sorted`.
    let mut follow = start.iter().zip(end).zip(start.iter().skip(1));
    let follow = follow.all(|((&start, &end), &next)| next >= end && next > start);
    if range.is_empty() || !follow {
        return pack(range.len(), |at| Piece {
            interval: Interval::new(start[at], end[at]),
            item: (range.start + at) as u32,
            tint: tint(range.start + at),
        });
    }
    let items = Items::Run(range.start as u32);
    let tint = range.map(|at| tint(at).number()).collect();
    let mut lane = Lane { times: Times::Of(stretch), items, tint, ..Lane::default() };
    lane.build_index();
    vec![lane]
}

fn pack_sorted(pieces: impl Iterator<Item = Piece>) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    let mut taken: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let expected = pieces.size_hint().0;
    for Piece { interval, item, tint } in pieces {
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
        if lanes[lane].is_empty() && lane == 0 {
            lanes[lane].reserve(expected);
        }
        lanes[lane].push(start, end, item, tint);
        // An interval of no length takes a nanosecond, or a second one at the same moment would cover it.
        taken.push(Reverse((end.max(start.saturating_add(1)), lane)));
    }
    for lane in &mut lanes {
        lane.build_index();
    }
    lanes
}

impl Lane {
    fn reserve(&mut self, count: usize) {
        if let Times::Own { start, end } = &mut self.times {
            start.reserve_exact(count);
            end.reserve_exact(count);
        }
        self.tint.reserve_exact(count);
    }

    fn push(&mut self, from: i64, to: i64, item: u32, tint: Tint) {
        if let Times::Own { start, end } = &mut self.times {
            start.push(Ns(from));
            end.push(Ns(to));
        }
        self.items.push(self.tint.len(), item);
        self.tint.push(tint.number());
    }

    fn start(&self) -> &[Ns] {
        match &self.times {
            Times::Own { start, .. } => start,
            Times::Of(stretch) => stretch.start(),
        }
    }

    fn end(&self) -> &[Ns] {
        match &self.times {
            Times::Own { end, .. } => end,
            Times::Of(stretch) => stretch.end(),
        }
    }

    fn build_index(&mut self) {
        if let Times::Own { start, end } = &mut self.times {
            start.shrink_to_fit();
            end.shrink_to_fit();
        }
        self.tint.shrink_to_fit();
        let (start, end) = (self.start(), self.end());
        let blocks = start.len().div_ceil(BLOCK);
        let mut before = Vec::with_capacity(blocks);
        let mut longest = vec![0; blocks * 2];
        let mut busy = 0_i64;
        for block in 0..blocks {
            before.push(busy);
            let range = block * BLOCK..((block + 1) * BLOCK).min(start.len());
            let lengths = start[range.clone()].iter().zip(&end[range.clone()]).map(|(&start, &end)| (end - start).0);
            busy = busy.saturating_add(lengths.sum());
            longest[blocks + block] = self.longest_scanned(range) as u32;
        }
        for node in (1..blocks).rev() {
            longest[node] = self.longer(longest[node * 2], longest[node * 2 + 1]);
        }
        let tiles = Tiles::of(start, end, &self.tint);
        (self.busy, self.longest, self.tiles) = (before, longest, tiles);
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.tint.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tint.is_empty()
    }

    /// Start and end of the interval at a position.
    pub fn times(&self, at: usize) -> (i64, i64) {
        (self.start()[at].0, self.end()[at].0)
    }

    /// Start, end and colour of the intervals at some positions.
    pub fn intervals(&self, range: Range<usize>) -> impl Iterator<Item = (i64, i64, Tint)> {
        let times = self.start()[range.clone()].iter().zip(&self.end()[range.clone()]);
        times.zip(&self.tint[range]).map(|((start, end), &tint)| (start.0, end.0, Tint::of_number(tint)))
    }

    /// The item of the interval at a position.
    pub fn item(&self, at: usize) -> u32 {
        self.items.get(at)
    }

    /// The colour of the interval at a position.
    pub fn tint(&self, at: usize) -> Tint {
        Tint::of_number(self.tint[at])
    }

    /// What the lane shows between two moments: cells no larger than those of `level` where there are many intervals,
    /// and elsewhere the intervals themselves. Both are few: their number depends on the number of cells asked for, and
    /// not on that of intervals.
    pub fn parts(&self, level: Level, from: i64, to: i64) -> Vec<Part<'_>> {
        self.tiles.parts(level, from, to)
    }

    /// Bytes on the heap. Times that only the trace keeps are not among them.
    pub fn memory(&self) -> usize {
        let times = match &self.times {
            Times::Own { start, end } => (start.capacity() + end.capacity()) * size_of::<Ns>(),
            Times::Of(_) => 0,
        };
        times
            + self.items.memory()
            + self.tint.capacity()
            + self.busy.capacity() * 8
            + self.longest.capacity() * 4
            + self.tiles.memory()
    }

    /// Positions of the intervals that touch `[from, to)`.
    pub fn touching(&self, from: i64, to: i64) -> Range<usize> {
        let (start, end) = (self.start(), self.end());
        let mut first = end.partition_point(|end| end.0 < from);
        while first < self.len() && end[first].0 == from && start[first].0 < from {
            first += 1;
        }
        let last = start.partition_point(|start| start.0 < to);
        first..last.max(first)
    }

    /// The position of the interval open at a moment.
    pub fn at(&self, time: i64) -> Option<usize> {
        let after = self.start().partition_point(|start| start.0 <= time);
        let at = after.checked_sub(1)?;
        let (start, end) = self.times(at);
        (end.max(start + 1) > time).then_some(at)
    }

    /// Whether an interval that touches `[from, to)` is at least so long.
    pub fn has_longer(&self, from: i64, to: i64, length: i64) -> bool {
        // Of all intervals the longest is known without a search.
        let longer = |at: usize| self.length(at) >= length;
        self.longest.get(1).is_some_and(|&at| longer(at as usize)) && self.longest_in(from, to).is_some_and(longer)
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
        let count = self.start().partition_point(|start| start.0 < time);
        match count.checked_sub(1) {
            None => 0,
            Some(last) => self.busy_of_first(count) - self.end()[last].0.saturating_sub(time).max(0),
        }
    }

    /// Lengths of the first `count` intervals together.
    fn busy_of_first(&self, count: usize) -> i64 {
        let block = (count / BLOCK).min(self.busy.len().saturating_sub(1));
        let before = self.busy.get(block).copied().unwrap_or(0);
        before + (block * BLOCK..count).map(|at| self.length(at)).sum::<i64>()
    }

    fn length(&self, at: usize) -> i64 {
        let (start, end) = self.times(at);
        end - start
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
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn piece(start: i64, end: i64, item: u32) -> Piece {
        Piece { interval: Interval::new(Ns(start), Ns(end)), item, tint: Tint::REPLAY }
    }

    /// A lane of intervals with these gaps before and these lengths.
    fn lane(steps: &[(i64, i64)]) -> Lane {
        let mut time = 0;
        let intervals: Vec<Piece> = steps
            .iter()
            .enumerate()
            .map(|(index, &(gap, length))| {
                let start = time + gap;
                time = start + length;
                piece(start, time, index as u32)
            })
            .collect();
        pack(intervals.len(), |at| intervals[at]).into_iter().next().unwrap_or_default()
    }

    fn naive_busy(lane: &Lane, from: i64, to: i64) -> i64 {
        let times = (0..lane.len()).map(|at| lane.times(at));
        times.map(|(start, end)| (end.min(to) - start.max(from)).max(0)).sum()
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
        fn packing_keeps_every_interval_and_overlaps_none(rows in vec((0_i64..200, 0_i64..40), 0..200)) {
            let lanes = pack(rows.len(), |at| piece(rows[at].0, rows[at].0 + rows[at].1, at as u32));
            let mut seen: Vec<u32> = lanes.iter().flat_map(|lane| (0..lane.len()).map(|at| lane.item(at))).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..rows.len() as u32).collect::<Vec<_>>());
            for lane in &lanes {
                for at in 0..lane.len() {
                    let (start, end) = rows[lane.item(at) as usize];
                    prop_assert_eq!(lane.times(at), (start, start + end));
                    if at > 0 {
                        let before = lane.times(at - 1);
                        prop_assert!(before.1 <= lane.times(at).0 && before.0 < lane.times(at).0);
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
            let naive = (0..lane.len()).find(|&at| lane.times(at).0 <= time && time < lane.times(at).1);
            prop_assert_eq!(lane.at(time), naive);
        }
    }

    #[test]
    fn intervals_at_the_end_of_time_are_handled() {
        let far = i64::MAX - 1;
        let lanes = pack(2, |at| [piece(0, far, 0), piece(far, far, 1)][at]);
        assert_eq!(lanes[0].busy(0, i64::MAX), far);
        assert_eq!(lanes[0].parts(Level::for_scale(1e18), 0, i64::MAX).len(), 1);
    }
}
