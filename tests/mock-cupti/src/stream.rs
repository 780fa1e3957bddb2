//! Work that goes on for a time, with buffers as CUPTI has them: one for each thread, which a flush takes when its records
//! are complete; full ones come back when their work has ended, later and several at once.

use crate::work::{Filling, correlation, is_recording, launch_bytes};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Records that were begun together are paced together.
const LAUNCHES: u32 = 100;
/// How often full buffers are looked at.
const LOOK: Duration = Duration::from_millis(1);

/// How the rate changes with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// Always the same.
    Steady,
    /// Twice as high, then nothing, then a tenth, in each period; and in one of three periods the work ends late.
    Bursts(Duration),
}

impl Rate {
    pub(crate) fn with_period(milliseconds: u32) -> Self {
        if milliseconds == 0 { Self::Steady } else { Self::Bursts(Duration::from_millis(milliseconds.into())) }
    }

    /// Of the usual rate, in tenths.
    fn tenths(self, since: Duration) -> u64 {
        match self {
            Self::Steady => 10,
            Self::Bursts(period) => match 100 * (since.as_micros() % period.as_micros()) / period.as_micros() {
                ..65 => 20,
                65..75 => 0,
                _ => 1,
            },
        }
    }

    /// How long after its last launch the work of a buffer ends.
    fn lag(self, since: Duration) -> Duration {
        match self {
            Self::Bursts(period) if since.as_micros() / period.as_micros() % 3 == 1 => period / 5,
            Self::Bursts(period) => period / 100,
            Self::Steady => Duration::from_millis(5),
        }
    }
}

/// What one thread of the program has.
#[derive(Debug, Default)]
struct Lane {
    current: Option<Filling>,
    /// When the work of its records ends.
    complete_at: Option<Instant>,
    full: Vec<(Instant, Filling)>,
}

static LANES: Mutex<Vec<Arc<Mutex<Lane>>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `threads` threads for a time, which together make so many bytes of records a second; 0 is as many as they can.
pub(crate) fn run(threads: u32, length: Duration, bytes_per_second: u64, rate: Rate) {
    let begun = Instant::now();
    let lanes: Vec<_> = (0..threads).map(|_| Arc::new(Mutex::new(Lane::default()))).collect();
    lock(&LANES).extend(lanes.iter().cloned());
    let share = bytes_per_second / u64::from(threads.max(1));
    std::thread::scope(|scope| {
        let workers: Vec<_> = lanes.iter().map(|lane| scope.spawn(|| work(lane, begun, length, share, rate))).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(LOOK);
            give_full(Instant::now());
        }
    });
    // What is not full waits for a flush; the threads are gone.
    give_full(Instant::now() + Duration::from_secs(60));
}

fn work(lane: &Mutex<Lane>, begun: Instant, length: Duration, share: u64, rate: Rate) {
    let mut owed = 0;
    let mut last = begun;
    loop {
        let now = Instant::now();
        let since = now - begun;
        if since >= length {
            return;
        }
        let elapsed = u64::try_from((now - last).as_micros()).unwrap_or(u64::MAX);
        last = now;
        owed += (elapsed.min(100_000) * share / 1_000_000) * rate.tenths(since) / 10;
        let piece = u64::from(LAUNCHES) * launch_bytes() as u64;
        if share > 0 && owed < piece {
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        while is_recording() && (share == 0 || owed >= piece) {
            owed = owed.saturating_sub(piece);
            launches(&mut lock(lane), now + rate.lag(since));
            if share == 0 {
                break;
            }
        }
    }
}

fn launches(lane: &mut Lane, complete_at: Instant) {
    for _ in 0..LAUNCHES {
        if !lane.current.as_ref().is_some_and(Filling::has_room_for_a_launch) {
            if let Some(full) = lane.current.take() {
                lane.full.push((complete_at, full));
            }
            lane.current = Filling::request();
        }
        if let Some(buffer) = &mut lane.current {
            buffer.one_launch(correlation());
        }
    }
    lane.complete_at = Some(complete_at);
}

/// Gives back the full buffers whose work has ended by `now`.
fn give_full(now: Instant) {
    let mut full = Vec::new();
    for lane in lock(&LANES).iter() {
        full.extend(lock(lane).full.extract_if(.., |(at, _)| *at <= now).map(|(_, buffer)| buffer));
    }
    full.into_iter().for_each(Filling::complete);
}

/// Takes the buffers whose work has ended, or all of them.
pub(crate) fn take(forced: bool) -> Vec<Filling> {
    let now = Instant::now();
    let mut taken = Vec::new();
    let mut lanes = lock(&LANES);
    for lane in lanes.iter() {
        let mut lane = lock(lane);
        taken.extend(lane.full.extract_if(.., |(at, _)| forced || *at <= now).map(|(_, buffer)| buffer));
        if forced || lane.complete_at.is_some_and(|at| at <= now) {
            taken.extend(lane.current.take());
        }
    }
    // A lane is kept until its thread has ended and its buffers are given back.
    lanes.retain(|lane| {
        Arc::strong_count(lane) > 1 || {
            let lane = lock(lane);
            lane.current.is_some() || !lane.full.is_empty()
        }
    });
    taken
}
