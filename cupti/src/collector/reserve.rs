//! How many buffers to keep ready.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What arrives in this time is kept ready: the writer may stand still for so long before the program needs memory that
/// is not.
const AHEAD: Duration = Duration::from_millis(250);
/// The rate is taken over so long.
const OVER: Duration = Duration::from_secs(1);
/// Fewer are kept after records have come slowly for so long.
const CALM: Duration = Duration::from_secs(10);
/// Looks at the pool that have to agree before it is changed: how many buffers CUPTI holds differs from one to the next.
const LOOKS: usize = 8;

/// Keeps as many buffers ready as fill in [`AHEAD`], in powers of two and give or take a quarter, so that a steady rate
/// keeps a steady memory.
#[derive(Debug)]
pub(super) struct Reserve {
    /// Bytes of a buffer.
    buffer: usize,
    least: usize,
    most: usize,
    wanted: usize,
    /// Since when a quarter of them or fewer would do.
    calm_since: Option<Instant>,
    /// Bytes that had arrived, over the last [`OVER`].
    arrived: VecDeque<(Instant, u64)>,
    /// Buffers that CUPTI did not hold at the last [`LOOKS`].
    spare: VecDeque<usize>,
}

/// What is to be done with the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// Map so many more buffers.
    Map(usize),
    /// Unmap so many free ones.
    Unmap(usize),
}

impl Reserve {
    /// At least `least` buffers of `buffer` bytes, and at most `most` unless that is fewer.
    pub(super) fn new(buffer: usize, least: usize, most: usize) -> Self {
        Self {
            buffer: buffer.max(1),
            least,
            most: most.max(least),
            wanted: least,
            calm_since: None,
            arrived: VecDeque::new(),
            spare: VecDeque::new(),
        }
    }

    /// What to do when until `at` so many bytes have arrived, and `spare` buffers are free or on their way to be.
    pub(super) fn change(&mut self, at: Instant, arrived: u64, spare: usize) -> Change {
        let wanted = self.wanted;
        self.reconsider(at, arrived);
        if self.wanted != wanted {
            self.spare.clear();
        }
        self.spare.push_back(spare);
        if spare < self.wanted.div_ceil(2) {
            return self.changed(Change::Map(self.wanted - spare));
        }
        if self.spare.len() < LOOKS {
            return Change::None;
        }
        let (fewest, most) = self.spare.iter().fold((usize::MAX, 0), |(low, high), &s| (low.min(s), high.max(s)));
        self.spare.pop_front();
        if most < self.wanted - self.wanted / 4 {
            return self.changed(Change::Map(self.wanted - most));
        }
        if fewest > self.wanted + self.wanted / 4 {
            return self.changed(Change::Unmap(fewest - self.wanted));
        }
        Change::None
    }

    fn changed(&mut self, change: Change) -> Change {
        self.spare.clear();
        change
    }

    fn reconsider(&mut self, at: Instant, arrived: u64) {
        while self.arrived.get(1).is_some_and(|&(then, _)| at.saturating_duration_since(then) >= OVER) {
            self.arrived.pop_front();
        }
        self.arrived.push_back((at, arrived));
        let Some(&(then, before)) = self.arrived.front() else { return };
        let over = at.saturating_duration_since(then);
        if over < OVER {
            return;
        }
        let bytes = u128::from(arrived.saturating_sub(before)) * AHEAD.as_nanos() / over.as_nanos().max(1);
        let needed = usize::try_from(bytes.div_ceil(self.buffer as u128)).unwrap_or(usize::MAX);
        let step = needed.checked_next_power_of_two().unwrap_or(usize::MAX).clamp(self.least, self.most);
        // A rate near a step takes the higher one and keeps it.
        if step.saturating_mul(4) <= self.wanted {
            let since = *self.calm_since.get_or_insert(at);
            if at.saturating_duration_since(since) >= CALM {
                self.wanted = step.saturating_mul(2);
                self.calm_since = None;
            }
        } else {
            self.calm_since = None;
            self.wanted = self.wanted.max(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: usize = 1 << 20;

    /// A pool of which CUPTI holds some buffers, looked at four times a second.
    struct Pool {
        reserve: Reserve,
        allocated: usize,
        at: Instant,
        arrived: u64,
    }

    impl Pool {
        fn new() -> Self {
            let reserve = Reserve::new(BUFFER, 4, 64);
            Self { reserve, allocated: 4, at: Instant::now(), arrived: 0 }
        }

        /// Lets records come at a rate for a while; `held` says how many buffers CUPTI holds at each look.
        fn live(&mut self, seconds: usize, per_second: u64, held: impl Fn(usize) -> usize) {
            for look in 0..4 * seconds {
                self.at += Duration::from_millis(250);
                self.arrived += per_second / 4;
                self.allocated = self.allocated.max(held(look));
                match self.reserve.change(self.at, self.arrived, self.allocated - held(look)) {
                    Change::None => {}
                    Change::Map(count) => self.allocated += count,
                    Change::Unmap(count) => self.allocated -= count,
                }
            }
        }
    }

    #[test]
    fn what_arrives_in_a_quarter_of_a_second_is_kept_ready_beside_what_cupti_holds() {
        let mut pool = Pool::new();
        pool.live(10, 0, |_| 2);
        assert_eq!(pool.allocated, 4 + 2);
        pool.live(10, 80 << 20, |_| 5);
        assert_eq!(pool.allocated, 32 + 5, "twenty, in steps of two");
        pool.live(10, 1 << 40, |_| 5);
        assert_eq!(pool.allocated, 64 + 5, "no more than may be");
        pool.live(30, 0, |_| 0);
        assert_eq!(pool.allocated, 8);
    }

    #[test]
    fn little_more_or_less_at_cupti_changes_nothing() {
        let mut pool = Pool::new();
        pool.live(10, 80 << 20, |_| 5);
        let before = pool.allocated;
        for held in [6, 9, 13, 5, 1, 4] {
            pool.live(5, 80 << 20, |_| held);
            assert_eq!(pool.allocated, before, "{held}");
        }
        pool.live(5, 80 << 20, |_| 20);
        assert_eq!(pool.allocated, 32 + 20);
    }

    #[test]
    fn a_steady_rate_keeps_a_steady_memory() {
        for rate in [1_u64, 12 << 20, 60 << 20, 68 << 20, 120 << 20] {
            let mut pool = Pool::new();
            let held = |look: usize| 3 + look * 7 % 5;
            pool.live(8, rate, held);
            let after = pool.allocated;
            for second in 0..240 {
                // A rate that differs by a tenth, and now and then almost nothing.
                let now = if second % 17 == 0 { 0 } else { rate * (95 + second % 11) / 100 };
                pool.live(1, now, held);
                assert_eq!(pool.allocated, after, "{rate} bytes a second, after {second} s");
            }
        }
    }

    #[test]
    fn what_a_stall_took_goes_back() {
        let mut pool = Pool::new();
        pool.live(8, 40 << 20, |_| 5);
        let before = pool.allocated;
        pool.allocated += 40;
        pool.live(3, 40 << 20, |_| 5);
        assert_eq!(pool.allocated, before);
    }

    #[test]
    fn pauses_change_nothing_and_a_long_calm_does() {
        let mut pool = Pool::new();
        pool.live(8, 120 << 20, |_| 1);
        let busy = pool.allocated;
        pool.live(5, 0, |_| 1);
        assert_eq!(pool.allocated, busy);
        pool.live(2, 120 << 20, |_| 1);
        pool.live(9, 0, |_| 1);
        assert_eq!(pool.allocated, busy, "the pause began anew");
        pool.live(6, 0, |_| 1);
        assert!(pool.allocated < busy / 2, "{}", pool.allocated);
    }
}
