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

/// The lengths in buckets with bounds 1 µs, 2 µs, 5 µs, 10 µs … 1 s, from the first to the last bucket that holds any.
pub(super) fn histogram(lengths: impl Iterator<Item = Ns>) -> Vec<HistogramBucket> {
    let bounds: Vec<Ns> = (3..9)
        .flat_map(|power| [1, 2, 5].map(|step| Ns(step * 10_i64.pow(power))))
        .chain([Ns(1_000_000_000)])
        .collect();
    let mut buckets: Vec<HistogramBucket> = (0..=bounds.len())
        .map(|at| HistogramBucket {
            from: if at == 0 { Ns::ZERO } else { bounds[at - 1] },
            to: bounds.get(at).copied(),
            count: 0,
            total: Ns::ZERO,
        })
        .collect();
    for length in lengths {
        let bucket = &mut buckets[bounds.partition_point(|&bound| bound <= length)];
        bucket.count += 1;
        bucket.total += length;
    }
    let filled = |bucket: &HistogramBucket| bucket.count > 0;
    let Some(first) = buckets.iter().position(filled) else { return Vec::new() };
    let last = buckets.iter().rposition(filled).unwrap_or(first);
    buckets[first..=last].to_vec()
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
        let buckets = histogram(lengths.into_iter());
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 5);
        assert_eq!(buckets.iter().map(|bucket| bucket.total).sum::<Ns>(), lengths.into_iter().sum());
        assert_eq!((buckets[0].from, buckets[0].to, buckets[0].count), (Ns(0), Some(Ns(1_000)), 2));
        assert_eq!(buckets.last().map(|bucket| (bucket.from, bucket.to)), Some((Ns(1_000_000_000), None)));
        assert!(histogram(std::iter::empty()).is_empty());
    }
}
