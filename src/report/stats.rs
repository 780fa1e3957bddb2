//! The median of a few repetitions and how sure it is.

use crate::trace::Ns;

/// How often the interval of a median is meant to hold the true one.
const LEVEL: f64 = 0.95;

/// An interval that holds the true median with a known probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MedianInterval {
    /// Its lower end, one of the values.
    pub(super) low: Ns,
    /// Its upper end, one of the values.
    pub(super) high: Ns,
    /// The probability.
    pub(super) level: f64,
}

/// The median: the middle value, or the mean of the middle two, rounded down.
pub(super) fn median(sorted: &[Ns]) -> Option<Ns> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    Some(Ns((i128::from(lower.0) + i128::from(upper.0)).div_euclid(2) as i64))
}

/// The interval between two order statistics that holds the true median with at least 95 %, whatever the values'
/// distribution: each value lies below the median with probability ½, so the number that do is binomial.
///
/// Fewer than six values cannot reach 95 %: then the interval is theirs from the least to the greatest, and its level
/// says what that is worth. One value has none.
pub(super) fn median_interval(sorted: &[Ns]) -> Option<MedianInterval> {
    if sorted.len() < 2 {
        return None;
    }
    let (rank, level) = interval_rank(sorted.len());
    Some(MedianInterval { low: sorted[rank], high: sorted[sorted.len() - 1 - rank], level })
}

/// How many values lie outside the interval at either end, and the interval's level.
fn interval_rank(count: usize) -> (usize, f64) {
    // Binomial weights up to a common factor, from the middle outwards, so that neither end overflows or underflows.
    let middle = count / 2;
    let mut weights = vec![1.0; count + 1];
    for below in (0..middle).rev() {
        weights[below] = weights[below + 1] * (below + 1) as f64 / (count - below) as f64;
    }
    for below in middle + 1..=count {
        weights[below] = weights[below - 1] * (count - below + 1) as f64 / below as f64;
    }
    let total: f64 = weights.iter().sum();
    let mut outside = weights[0];
    let (mut rank, mut level) = (0, 1.0 - 2.0 * outside / total);
    while rank + 1 < count.div_ceil(2) {
        outside += weights[rank + 1];
        let narrower = 1.0 - 2.0 * outside / total;
        if narrower < LEVEL {
            break;
        }
        (rank, level) = (rank + 1, narrower);
    }
    (rank, level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[i64]) -> Vec<Ns> {
        values.iter().copied().map(Ns).collect()
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&values(&[7])), Some(Ns(7)));
        assert_eq!(median(&values(&[1, 4])), Some(Ns(2)));
        assert_eq!(median(&values(&[1, 2, 9])), Some(Ns(2)));
        assert_eq!(median(&values(&[i64::MAX - 2, i64::MAX])), Some(Ns(i64::MAX - 1)));
    }

    /// The ranks that tables of the sign test's interval for the median give (Conover, Practical Nonparametric
    /// Statistics; there the rank counts from 1).
    #[test]
    fn ranks_are_those_of_the_sign_test() {
        for (count, rank) in [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (40, 14), (100, 40)]
        {
            assert_eq!(interval_rank(count).0 + 1, rank, "{count} values");
        }
    }

    #[test]
    fn levels_are_exact_binomial_sums() {
        assert_eq!(interval_rank(2).1, 0.5);
        assert_eq!(interval_rank(5).1, 1.0 - 2.0 / 32.0);
        assert!((interval_rank(9).1 - (1.0 - 2.0 * 10.0 / 512.0)).abs() < 1e-12);
        let (rank, level) = interval_rank(100_000);
        assert!((49_600..49_750).contains(&rank) && (0.95..0.951).contains(&level), "{rank} {level}");
    }

    #[test]
    fn few_values_give_their_range_and_say_what_it_is_worth() {
        assert_eq!(median_interval(&values(&[3])), None);
        let interval = median_interval(&values(&[3, 5, 9])).unwrap();
        assert_eq!((interval.low, interval.high, interval.level), (Ns(3), Ns(9), 0.75));
    }
}
