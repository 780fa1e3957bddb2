//! How many buffers to keep.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What arrives in this time is kept ready: the writer may stand still for so long before the program needs memory that
/// is not.
const AHEAD: Duration = Duration::from_millis(400);
/// The rate is taken over so long.
const OVER: Duration = Duration::from_secs(1);
/// What is kept follows what was needed over so long.
const USUAL: Duration = Duration::from_secs(10);
/// Buffers beyond that go back once they were not needed for so long.
const GRACE: Duration = Duration::from_secs(2);

/// Of looks that follow each other more quickly only one in so long is kept.
const EACH: Duration = Duration::from_millis(125);

/// Keeps as many buffers as are usually needed: those that CUPTI holds, and those that fill in [`AHEAD`].
///
/// The rate of a program that does the same all the time differs by a third from one second to the next, and how many
/// buffers CUPTI holds by more. Its memory has to stay the same nonetheless. So the number that is kept changes only when
/// the need has become another for good: it is raised when half as many again were needed half of the time, and lowered
/// when half of it was enough all the time. What the pool maps beyond it, since all its buffers are in use for a
/// moment, goes back afterwards.
#[derive(Debug)]
pub(super) struct Reserve {
    /// Bytes of a buffer.
    buffer: usize,
    least: usize,
    most: usize,
    /// Buffers that are kept, wherever they are.
    kept: usize,
    /// Until when that is raised to what is needed half of the time: from a change on until [`USUAL`] has passed.
    follows_until: Option<Instant>,
    /// Bytes that had arrived, over the last [`OVER`].
    arrived: VecDeque<(Instant, u64)>,
    /// What was needed over the last [`USUAL`].
    needed: VecDeque<(Instant, usize)>,
    /// How few buffers were to spare, and since when that is looked at.
    fewest: Option<(Instant, usize)>,
}

/// The buffers at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stock {
    /// All, wherever they are.
    pub(super) mapped: usize,
    /// Those that are free or on their way to be.
    pub(super) spare: usize,
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
    /// For buffers of `buffer` bytes, of which so many are `mapped`. At least `least` are kept ready, and at most `most`
    /// unless that is fewer.
    pub(super) fn new(buffer: usize, mapped: usize, least: usize, most: usize) -> Self {
        Self {
            buffer: buffer.max(1),
            least,
            most: most.max(least),
            kept: mapped,
            follows_until: None,
            arrived: VecDeque::with_capacity(looks_in(OVER)),
            needed: VecDeque::with_capacity(looks_in(USUAL)),
            fewest: None,
        }
    }

    /// What to do when until `at` so many bytes have arrived.
    pub(super) fn change(&mut self, at: Instant, arrived: u64, stock: Stock) -> Change {
        let Stock { mapped, spare } = stock;
        let ahead = self.ahead(at, arrived);
        self.settle(at, mapped.saturating_sub(spare).saturating_add(ahead));
        if mapped < self.kept {
            self.fewest = None;
            return Change::Map(self.kept - mapped);
        }
        let (since, fewest) = self.fewest.unwrap_or((at, usize::MAX));
        let fewest = fewest.min(spare.saturating_sub(ahead / 2));
        if at.saturating_duration_since(since) < GRACE {
            self.fewest = Some((since, fewest));
            return Change::None;
        }
        self.fewest = None;
        match fewest.min(mapped - self.kept) {
            0 => Change::None,
            unneeded => Change::Unmap(unneeded),
        }
    }

    /// How many buffers fill in [`AHEAD`].
    fn ahead(&mut self, at: Instant, arrived: u64) -> usize {
        while self.arrived.get(1).is_some_and(|&(then, _)| at.saturating_duration_since(then) >= OVER) {
            self.arrived.pop_front();
        }
        if self.arrived.back().is_none_or(|&(then, _)| at.saturating_duration_since(then) >= EACH) {
            self.arrived.push_back((at, arrived));
        }
        let (then, before) = self.arrived.front().copied().unwrap_or((at, arrived));
        let over = at.saturating_duration_since(then).max(OVER);
        let bytes = u128::from(arrived.saturating_sub(before)) * AHEAD.as_nanos() / over.as_nanos();
        let buffers = usize::try_from(bytes.div_ceil(self.buffer as u128)).unwrap_or(usize::MAX);
        buffers.clamp(self.least, self.most)
    }

    /// Raises or lowers what is kept.
    fn settle(&mut self, at: Instant, need: usize) {
        match self.needed.back_mut() {
            Some((then, last)) if at.saturating_duration_since(*then) < EACH => *last = need.max(*last),
            _ => self.needed.push_back((at, need)),
        }
        let mut whole = false;
        while self.needed.front().is_some_and(|&(then, _)| at.saturating_duration_since(then) > USUAL) {
            self.needed.pop_front();
            whole = true;
        }
        let mut needed: Vec<usize> = self.needed.iter().map(|&(_, need)| need).collect();
        needed.sort_unstable();
        let (Some(&most), Some(&half)) = (needed.last(), needed.get(needed.len() / 2)) else { return };
        let follows_until = *self.follows_until.get_or_insert(at + USUAL);
        if half > self.kept.saturating_add(self.kept / 2) {
            self.kept = half;
            self.follows_until = Some(at + USUAL);
        } else if half > self.kept && at < follows_until {
            self.kept = half;
        } else if whole && most <= self.kept / 2 {
            self.kept = most;
        }
    }
}

/// Looks that are kept at most for so long.
fn looks_in(time: Duration) -> usize {
    usize::try_from(time.as_millis() / EACH.as_millis()).unwrap_or(0) + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: usize = 512 << 10;
    const MB: u64 = 1_000_000;

    /// A pool of which CUPTI holds some buffers, looked at four times a second.
    struct Pool {
        reserve: Reserve,
        mapped: usize,
        at: Instant,
        arrived: u64,
        looks: usize,
    }

    impl Pool {
        fn new() -> Self {
            let reserve = Reserve::new(BUFFER, 64, 32, 512);
            Self { reserve, mapped: 64, at: Instant::now(), arrived: 0, looks: 0 }
        }

        /// Lets records come at a rate for a while; `held` says how many buffers CUPTI holds at each look.
        fn live(&mut self, looks: usize, per_second: u64, held: impl Fn(usize) -> usize) {
            for _ in 0..looks {
                self.at += Duration::from_millis(250);
                self.arrived += per_second / 4;
                self.looks += 1;
                let held = held(self.looks);
                self.mapped = self.mapped.max(held);
                let stock = Stock { mapped: self.mapped, spare: self.mapped - held };
                match self.reserve.change(self.at, self.arrived, stock) {
                    Change::None => {}
                    Change::Map(count) => self.mapped += count,
                    Change::Unmap(count) => self.mapped = self.mapped.checked_sub(count).unwrap(),
                }
            }
        }
    }

    /// A sequence of numbers without a pattern.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    #[test]
    fn what_arrives_in_less_than_half_a_second_is_kept_ready_beside_what_cupti_holds() {
        let mut pool = Pool::new();
        pool.live(60, 0, |_| 2);
        assert_eq!(pool.mapped, 64, "as at first");
        pool.live(80, 300 * BUFFER as u64, |_| 5);
        assert_eq!(pool.mapped, 120 + 5);
        pool.live(80, 1 << 40, |_| 5);
        assert_eq!(pool.mapped, 512 + 5, "no more than may be");
        pool.live(60, 0, |_| 0);
        assert_eq!(pool.mapped, 32);
    }

    /// As on a shared machine: the rate differs by a third from one second to the next and drifts up by a tenth over the
    /// minutes, and once in a while CUPTI holds much more for a second or two.
    #[test]
    fn a_rate_that_stays_keeps_memory_as_it_is() {
        for seed in 0..12 {
            for rate in [MB, 20 * MB, 70 * MB, 150 * MB, 212 * MB, 260 * MB, 400 * MB] {
                for phases in [[2, 2, 2, 2], [4, 4, 1, 0]] {
                    let mut chance = Chance(seed);
                    let mut pool = Pool::new();
                    let mut sizes = Vec::new();
                    for second in 0..240 {
                        let drifted = rate * (80 + chance.below(56)) / 100 * (2000 + second) / 2000;
                        let stands = second % 7 == 0 && chance.below(4) == 0;
                        for _ in 0..4 {
                            let held = 6 + chance.below(60) + if stands { chance.below(480) } else { 0 };
                            let now = drifted * phases[usize::try_from(second % 4).unwrap()] / 2;
                            pool.live(1, now, |_| usize::try_from(held).unwrap());
                            sizes.push((pool.reserve.kept, pool.mapped));
                        }
                    }
                    let ((usual, _), after) = (sizes[4 * 30], &sizes[4 * 30..]);
                    assert!(after.iter().all(|&(kept, _)| kept == usual), "{rate} bytes a second, {phases:?}, {seed}");
                    let more = after.iter().filter(|&&(_, mapped)| mapped > usual + usual / 4).count();
                    assert!(
                        more < after.len() / 3,
                        "{more} of {}: {rate} bytes a second, {phases:?}, {seed}",
                        after.len()
                    );
                }
            }
        }
    }

    #[test]
    fn what_was_mapped_for_a_moment_goes_back() {
        let mut pool = Pool::new();
        pool.live(60, 100 * MB, |_| 5);
        let before = pool.mapped;
        pool.live(6, 100 * MB, |_| 400);
        assert!(pool.mapped >= 400);
        pool.live(24, 100 * MB, |_| 5);
        assert_eq!(pool.mapped, before);
    }

    #[test]
    fn what_is_needed_from_now_on_is_kept() {
        let mut pool = Pool::new();
        pool.live(60, 100 * MB, |_| 5);
        pool.live(60, 100 * MB, |_| 400);
        let raised = pool.mapped;
        assert!(raised >= 400);
        pool.live(20, 100 * MB, |_| 5);
        assert_eq!(pool.mapped, raised);
        pool.live(60, 100 * MB, |_| 5);
        assert!(pool.mapped < 100, "{}", pool.mapped);
    }

    #[test]
    fn pauses_change_nothing_and_a_long_calm_does() {
        let mut pool = Pool::new();
        pool.live(60, 250 * MB, |_| 5);
        let busy = pool.mapped;
        pool.live(20, 0, |_| 1);
        assert_eq!(pool.mapped, busy);
        pool.live(8, 250 * MB, |_| 5);
        pool.live(36, 0, |_| 1);
        assert_eq!(pool.mapped, busy, "the pause began anew");
        pool.live(30, 0, |_| 1);
        assert!(pool.mapped <= busy / 2, "{} of {busy}", pool.mapped);
    }
}
