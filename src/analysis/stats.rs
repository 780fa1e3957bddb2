//! Ranks of integer lengths.

use crate::trace::Ns;

use super::result::{HistogramBucket, Percentiles};

/// The element of rank `percent` (nearest rank) of `values`, which are reordered; `None` when there are none.
pub(super) fn rank<T: Ord + Copy>(values: &mut [T], percent: usize) -> Option<T> {
    let at = (values.len() * percent).div_ceil(100).saturating_sub(1);
    (!values.is_empty()).then(|| *values.select_nth_unstable(at).1)
}

/// The lower of the two middle elements of `values`, which are reordered.
pub(super) fn low_median<T: Ord + Copy>(values: &mut [T]) -> Option<T> {
    rank(values, 50)
}

/// Median, 95th percentile and maximum of `values`, which are reordered.
pub(super) fn percentiles(values: &mut [Ns]) -> Percentiles {
    Percentiles {
        p50: rank(values, 50).unwrap_or_default(),
        p95: rank(values, 95).unwrap_or_default(),
        max: values.iter().copied().max().unwrap_or_default(),
    }
}

/// Values of which ranks are asked. Of millions the small ones are counted, which takes no memory for each.
#[derive(Default)]
pub(super) struct Tally {
    /// How often each value from 0 on occurs; empty until there are many.
    counts: Vec<u32>,
    counted: usize,
    /// The values that have no place in `counts`.
    others: Vec<i64>,
}

impl Tally {
    /// Counting begins at so many values.
    const MANY: usize = 1 << 15;
    /// Values below this are counted. Nearly all are: lengths of launches, of bubbles, and of what lies between.
    const SMALL: usize = 1 << 16;

    #[inline]
    pub(super) fn add(&mut self, value: i64) {
        match usize::try_from(value).ok().and_then(|value| self.counts.get_mut(value)) {
            Some(count) => {
                *count += 1;
                self.counted += 1;
            }
            None => self.add_other(value),
        }
    }

    fn add_other(&mut self, value: i64) {
        self.others.push(value);
        if self.counts.is_empty() && self.others.len() >= Self::MANY {
            self.counts = vec![0; Self::SMALL];
            for value in std::mem::take(&mut self.others) {
                self.add(value);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.counted + self.others.len()
    }

    /// The element of rank `percent` (nearest rank); `None` when there are none.
    pub(super) fn rank(&mut self, percent: usize) -> Option<i64> {
        if self.counted == 0 {
            return rank(&mut self.others, percent);
        }
        let at = (self.len() * percent).div_ceil(100).saturating_sub(1);
        let negative = self.others.iter().filter(|&&value| value < 0).count();
        if at < negative {
            return Some(*self.others.select_nth_unstable(at).1);
        }
        let mut left = at - negative;
        for (value, &count) in self.counts.iter().enumerate() {
            match left.checked_sub(count as usize) {
                Some(more) => left = more,
                None => return Some(value as i64),
            }
        }
        Some(*self.others.select_nth_unstable(negative + left).1)
    }

    /// The lower of the two middle elements.
    pub(super) fn low_median(&mut self) -> Option<i64> {
        self.rank(50)
    }

    /// Median, 95th percentile and maximum.
    pub(super) fn percentiles(&mut self) -> Percentiles {
        let mut rank = |percent| Ns(self.rank(percent).unwrap_or_default());
        Percentiles { p50: rank(50), p95: rank(95), max: rank(100) }
    }
}

impl FromIterator<Ns> for Tally {
    fn from_iter<I: IntoIterator<Item = Ns>>(values: I) -> Self {
        let mut tally = Self::default();
        values.into_iter().for_each(|value| tally.add(value.0));
        tally
    }
}

/// Lengths in buckets with bounds 1 µs, 2 µs, 5 µs, 10 µs … 1 s.
pub(super) struct Histogram {
    bounds: Vec<Ns>,
    buckets: Vec<HistogramBucket>,
}

impl Histogram {
    pub(super) fn new() -> Self {
        let bounds: Vec<Ns> = (3..9)
            .flat_map(|power| [1, 2, 5].map(|step| Ns(step * 10_i64.pow(power))))
            .chain([Ns(1_000_000_000)])
            .collect();
        let buckets = (0..=bounds.len()).map(|at| HistogramBucket {
            from: if at == 0 { Ns::ZERO } else { bounds[at - 1] },
            to: bounds.get(at).copied(),
            count: 0,
            total: Ns::ZERO,
        });
        Self { buckets: buckets.collect(), bounds }
    }

    #[inline]
    pub(super) fn add(&mut self, length: Ns) {
        let bucket = &mut self.buckets[self.bounds.partition_point(|&bound| bound <= length)];
        bucket.count += 1;
        bucket.total += length;
    }

    /// From the first to the last bucket that holds any.
    pub(super) fn filled(self) -> Vec<HistogramBucket> {
        let filled = |bucket: &HistogramBucket| bucket.count > 0;
        let Some(first) = self.buckets.iter().position(filled) else { return Vec::new() };
        let last = self.buckets.iter().rposition(filled).unwrap_or(first);
        self.buckets[first..=last].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_elements() {
        assert_eq!(rank::<i64>(&mut [], 50), None);
        assert_eq!(low_median(&mut [4, 1, 3, 2]), Some(2));
        assert_eq!(rank(&mut [5], 95), Some(5));
        let mut hundred: Vec<i64> = (1..=100).rev().collect();
        assert_eq!(rank(&mut hundred, 95), Some(95));
    }

    #[test]
    fn the_histogram_counts_every_length_once() {
        let lengths = [Ns(1), Ns(999), Ns(1_000), Ns(4_999), Ns(2_000_000_000)];
        let histogram = |lengths: &[Ns]| {
            let mut histogram = Histogram::new();
            lengths.iter().for_each(|&length| histogram.add(length));
            histogram.filled()
        };
        let buckets = histogram(&lengths);
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 5);
        assert_eq!(buckets.iter().map(|bucket| bucket.total).sum::<Ns>(), lengths.into_iter().sum());
        assert_eq!((buckets[0].from, buckets[0].to, buckets[0].count), (Ns(0), Some(Ns(1_000)), 2));
        assert_eq!(buckets.last().map(|bucket| (bucket.from, bucket.to)), Some((Ns(1_000_000_000), None)));
        assert!(histogram(&[]).is_empty());
    }

    #[test]
    fn a_tally_ranks_as_sorting_does() {
        let many = Tally::MANY as i64;
        // A few, many small ones, and many with negative and large ones among them.
        let mixed = (0..2 * many).map(|at| match at % 10 {
            0 => -at,
            1 => at * 1_000_000,
            _ => at.wrapping_mul(7919) % 90_000,
        });
        for values in [vec![], vec![3, -1, 2], (0..many + 10).map(|at| at % 7).collect(), mixed.collect()] {
            let mut tally: Tally = values.iter().copied().map(Ns).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            assert_eq!(tally.len(), values.len());
            for percent in [1, 5, 12, 50, 88, 95, 100] {
                assert_eq!(tally.rank(percent), rank(&mut sorted.clone(), percent), "{} {percent}", values.len());
            }
            let mut lengths: Vec<Ns> = values.into_iter().map(Ns).collect();
            assert_eq!(tally.percentiles(), percentiles(&mut lengths));
        }
    }
}
