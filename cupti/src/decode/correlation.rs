//! Correlation ids that never repeat.

/// Extends CUPTI's 32-bit correlation ids to 64 bits.
///
/// CUPTI numbers the API calls of a process from 1 and wraps after 2³² of them, which a busy process does in hours.
/// Fed the ids of **one process in time order**, this counts the wraps: each id becomes the number nearest to the one
/// before it that has the same low 32 bits. Ids may therefore come out of order by up to 2³¹, in both directions, and
/// gaps of up to 2³¹ calls that were not recorded do no harm. Within the first 2³² ids nothing changes.
///
/// 0 stands for "no correlation" (`CUPTI_CORRELATION_ID_UNKNOWN`); it stays 0 and counts for nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct CorrelationExtender {
    last: Option<u64>,
}

impl CorrelationExtender {
    /// An extender that has seen no id.
    pub fn new() -> Self {
        Self::default()
    }

    /// The 64-bit form of `id`, the next in time order.
    pub fn extend(&mut self, id: u32) -> u64 {
        if id == 0 {
            return 0;
        }
        let extended = match self.last {
            None => u64::from(id),
            Some(last) => {
                // The shorter way from the id before, forwards or backwards.
                let step = id.wrapping_sub(last as u32).cast_signed();
                match last.checked_add_signed(i64::from(step)) {
                    Some(extended) => extended,
                    // Older than the first id seen, from an epoch that has no number here.
                    None => return u64::from(id),
                }
            }
        };
        self.last = Some(extended);
        extended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extend_all(ids: impl IntoIterator<Item = u32>) -> Vec<u64> {
        let mut extender = CorrelationExtender::new();
        ids.into_iter().map(|id| extender.extend(id)).collect()
    }

    #[test]
    fn ids_that_do_not_wrap_are_unchanged() {
        assert_eq!(extend_all([1, 2, 5, 4, 1_000_000, 3]), [1, 2, 5, 4, 1_000_000, 3]);
    }

    #[test]
    fn a_wrap_starts_the_next_epoch() {
        let epoch = 1 << 32;
        assert_eq!(
            extend_all([u32::MAX - 1, u32::MAX, 1, 2]),
            [u64::from(u32::MAX) - 1, u64::from(u32::MAX), epoch + 1, epoch + 2]
        );
    }

    #[test]
    fn late_ids_around_a_wrap_stay_in_their_epoch() {
        let epoch = 1 << 32;
        assert_eq!(
            extend_all([u32::MAX - 1, 1, u32::MAX, 3, 2]),
            [u64::from(u32::MAX) - 1, epoch + 1, u64::from(u32::MAX), epoch + 3, epoch + 2]
        );
    }

    #[test]
    fn zero_is_no_correlation_and_does_not_disturb() {
        assert_eq!(extend_all([0, u32::MAX, 0, 1, 0]), [0, u64::from(u32::MAX), 0, (1 << 32) + 1, 0]);
    }

    #[test]
    fn an_id_from_before_the_first_does_not_start_an_epoch() {
        assert_eq!(extend_all([2, u32::MAX, 3]), [2, u64::from(u32::MAX), 3]);
    }

    proptest! {
        #[test]
        fn many_wraps_with_gaps_and_disorder_are_undone(
            first in 1..u32::MAX,
            steps in prop::collection::vec((0..1_u64 << 30, 0..1_u64 << 29), 1..200),
        ) {
            // True numbers: growing by gaps of up to 2³⁰, each seen up to 2²⁹ too late.
            let mut frontier = u64::from(first) + (1 << 29);
            let mut truth = vec![frontier];
            for (gap, late) in steps {
                frontier += gap;
                truth.push(frontier - late);
            }
            let offset = truth[0] & !u64::from(u32::MAX);
            for (&number, extended) in truth.iter().zip(extend_all(truth.iter().map(|&number| number as u32))) {
                if number as u32 != 0 && number >= offset {
                    prop_assert_eq!(extended, number - offset);
                }
            }
        }
    }
}
