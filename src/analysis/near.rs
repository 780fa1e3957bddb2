//! Searches of sorted lanes that begin where the last one ended.

use std::cell::Cell;

/// For each of several sorted lanes the place where the last search in it ended.
///
/// Bubbles are explained in order of time, so the answer to the next question lies beside that to the last one, and a
/// search that begins there reads what the cache still holds. Where it begins never changes what it finds.
pub(super) struct Places(Vec<Cell<usize>>);

impl Places {
    pub(super) fn new(lanes: usize) -> Self {
        Self(vec![Cell::new(0); lanes])
    }

    /// What [`slice::partition_point`] of `lane` gives. `items` need not be the whole lane, but must be the same each
    /// time for the search to be short.
    #[inline]
    pub(super) fn partition_point<T>(&self, lane: usize, items: &[T], holds: impl Fn(&T) -> bool) -> usize {
        let place = &self.0[lane];
        let found = partition_point_near(items, place.get(), holds);
        place.set(found);
        found
    }
}

/// What [`slice::partition_point`] gives, found in steps that double with the distance from `guess`.
#[inline]
fn partition_point_near<T>(items: &[T], guess: usize, holds: impl Fn(&T) -> bool) -> usize {
    // All before `low` hold, and none from `high` on.
    let (mut low, mut high) = (0, items.len());
    let mut step = 1;
    let mut at = guess;
    if at < high && holds(&items[at]) {
        low = at + 1;
        loop {
            at = low - 1 + step;
            if at >= high {
                break;
            }
            if !holds(&items[at]) {
                high = at;
                break;
            }
            low = at + 1;
            step *= 2;
        }
    } else {
        high = at.min(high);
        while low < high {
            at = high.saturating_sub(step);
            if holds(&items[at]) {
                low = at + 1;
                break;
            }
            high = at;
            step *= 2;
        }
    }
    low + items[low..high].partition_point(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guess_never_changes_the_answer() {
        for len in 0..40 {
            let items: Vec<usize> = (0..len).map(|at| at / 3).collect();
            for bound in 0..15 {
                let wanted = items.partition_point(|&item| item < bound);
                for guess in 0..len + 3 {
                    assert_eq!(partition_point_near(&items, guess, |&item| item < bound), wanted, "{len} {guess}");
                }
            }
        }
    }

    #[test]
    fn lanes_do_not_disturb_each_other() {
        let places = Places::new(2);
        let items: Vec<i64> = (0..1_000).collect();
        for bound in [900, 3, 500, 501, 0, 1_000] {
            assert_eq!(places.partition_point(0, &items, |&item| item < bound), bound as usize);
            assert_eq!(places.partition_point(1, &items, |&item| item < 1_000 - bound), 1_000 - bound as usize);
        }
    }
}
