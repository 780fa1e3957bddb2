//! Reading the clocks together.

use crate::spool::Anchor;
use cupti_sys::Api;

/// Readings of which the quickest is kept.
const TRIES: u32 = 50;

/// `CLOCK_REALTIME`, `CLOCK_MONOTONIC` and CUPTI's clock at one moment; `None` when CUPTI does not tell its own.
pub(super) fn anchor(api: &Api) -> Option<Anchor> {
    (0..TRIES).filter_map(|_| reading(api)).min_by_key(|anchor| anchor.uncertainty_ns)
}

fn reading(api: &Api) -> Option<Anchor> {
    let before = now(libc::CLOCK_MONOTONIC);
    let realtime_ns = now(libc::CLOCK_REALTIME);
    let mut cupti_ns = 0;
    // SAFETY: an `Api` in use means that a driver is there; the pointer is valid.
    let result = unsafe { (api.get_timestamp)(&raw mut cupti_ns) };
    let after = now(libc::CLOCK_MONOTONIC);
    let gap = after - before;
    (result == 0).then(|| Anchor {
        realtime_ns,
        monotonic_ns: before + gap / 2,
        cupti_ns,
        uncertainty_ns: u32::try_from(gap).unwrap_or(u32::MAX),
    })
}

/// A clock of the system, in nanoseconds.
pub(super) fn now(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid, and both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
