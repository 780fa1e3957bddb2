//! How much the recorder has allocated: it is linked into these tests, the mock is a library of its own.

use std::time::Duration;

#[global_allocator]
static ALLOCATOR: cupti::heap::Counting = cupti::heap::Counting;

/// Bytes that are allocated once nothing is being done any more.
pub(crate) fn at_rest() -> usize {
    let mut least = usize::MAX;
    let mut looks = 0;
    while looks < 5 {
        std::thread::sleep(Duration::from_millis(5));
        let now = cupti::heap::bytes();
        looks = if now < least { 0 } else { looks + 1 };
        least = least.min(now);
    }
    least
}
