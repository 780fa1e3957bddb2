//! Gives slices of one lane tracks on which no two of them overlap in part: Perfetto drops such slices in silence.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::trace::{Interval, Ns};

/// Tracks of one lane on which slices may lie inside others. Every further one holds one slice at a time, so that a lane
/// of any content is packed in little time.
const NESTING: usize = 32;

/// The tracks of one lane.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// The ends of the open slices of each nesting track, innermost last; unused by a lane without nesting.
    open: Vec<Vec<Ns>>,
    most_nesting: usize,
    /// Tracks of single slices that are busy, the one that is free first on top.
    busy: BinaryHeap<Reverse<(Ns, usize)>>,
    /// Those that are free, the first on top.
    free: BinaryHeap<Reverse<usize>>,
    /// Tracks of single slices there are.
    single: usize,
}

impl Tracks {
    /// For slices that may lie wholly inside others, which is how calls and ranges are drawn.
    pub(super) fn nesting() -> Self {
        Self { most_nesting: NESTING, ..Self::default() }
    }

    /// For slices that are drawn side by side.
    pub(super) fn flat() -> Self {
        Self::default()
    }

    /// The track of a slice, from 0. Slices come in order of their start, of those that start together the longest first
    /// where they may nest.
    pub(super) fn place(&mut self, slice: Interval) -> usize {
        for (track, open) in self.open.iter_mut().enumerate() {
            while open.last().is_some_and(|&end| end <= slice.start) {
                open.pop();
            }
            if open.last().is_none_or(|&end| end >= slice.end) {
                open.push(slice.end);
                return track;
            }
        }
        if self.open.len() < self.most_nesting {
            self.open.push(vec![slice.end]);
            return self.open.len() - 1;
        }
        while let Some(&Reverse((end, track))) = self.busy.peek().filter(|Reverse((end, _))| *end <= slice.start) {
            debug_assert!(end <= slice.start);
            self.busy.pop();
            self.free.push(Reverse(track));
        }
        let track = self.free.pop().map_or_else(
            || {
                self.single += 1;
                self.single - 1
            },
            |Reverse(track)| track,
        );
        self.busy.push(Reverse((slice.end, track)));
        self.most_nesting + track
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slices() -> impl Strategy<Value = Vec<Interval>> {
        proptest::collection::vec((0..200_i64, 0..40_i64), 0..120).prop_map(|raw| {
            let mut slices: Vec<Interval> =
                raw.into_iter().map(|(start, len)| Interval::new(Ns(start), Ns(start + len))).collect();
            slices.sort_by_key(|slice| (slice.start, Reverse(slice.end)));
            slices
        })
    }

    fn apart(a: Interval, b: Interval) -> bool {
        a.end <= b.start || b.end <= a.start
    }

    fn inside(a: Interval, b: Interval) -> bool {
        (a.start <= b.start && b.end <= a.end) || (b.start <= a.start && a.end <= b.end)
    }

    proptest! {
        #[test]
        fn no_two_slices_of_a_track_overlap_in_part(slices in slices(), nests in any::<bool>()) {
            let mut tracks = if nests { Tracks::nesting() } else { Tracks::flat() };
            let placed: Vec<(usize, Interval)> = slices.iter().map(|&slice| (tracks.place(slice), slice)).collect();
            for (index, &(track, slice)) in placed.iter().enumerate() {
                for &(other, later) in &placed[index + 1..] {
                    let fine = apart(slice, later) || (nests && track < NESTING && inside(slice, later));
                    prop_assert!(track != other || fine, "{slice:?} and {later:?} on track {track}");
                }
            }
        }

        #[test]
        fn a_lane_without_overlap_has_one_track(lengths in proptest::collection::vec((0..9_i64, 0..9_i64), 0..50)) {
            let mut tracks = Tracks::flat();
            let mut at = 0;
            for (gap, length) in lengths {
                let start = at + gap;
                at = start + length;
                prop_assert_eq!(tracks.place(Interval::new(Ns(start), Ns(at))), 0);
            }
        }
    }
}
