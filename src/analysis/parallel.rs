//! Work on several threads, the results of which are taken in order.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::threads::on_several;

/// More threads than this gain little: memory is what limits.
const MAX_THREADS: usize = 8;

/// Does `work` on every item, several at once, and hands the results to `take` one by one, in the order of the items.
pub(super) fn in_order<I: Send, R: Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    work: impl Fn(I) -> R + Sync,
    mut take: impl FnMut(R) + Send,
) {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS).min(items.len());
    if threads <= 1 {
        items.map(work).for_each(take);
        return;
    }
    let items = Mutex::new(items.enumerate());
    // The place of the next result to be taken, and the results that wait for those before them.
    let results = Mutex::new((0, BTreeMap::new(), &mut take));
    let run = || {
        loop {
            let Some((place, item)) = lock(&items).next() else { return };
            let result = work(item);
            let (next, waiting, take) = &mut *lock(&results);
            waiting.insert(place, result);
            while let Some(result) = waiting.remove(next) {
                *next += 1;
                take(result);
            }
        }
    };
    on_several(threads, run);
}

/// A panic on one thread ends the others' work soon enough; it is resumed when all have ended.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for len in [0, 1, 2, 7, 500] {
            let items: Vec<u64> = (0..len).collect();
            let mut taken = Vec::new();
            // Every third item takes longer than those after it.
            let work = |&item: &u64| {
                thread::sleep(std::time::Duration::from_micros(if item % 3 == 0 { 200 } else { 0 }));
                item * 2
            };
            in_order(items.iter(), work, |result| taken.push(result));
            assert_eq!(taken, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    #[should_panic(expected = "the worker's own words")]
    fn a_panic_comes_out() {
        in_order(0..100, |item| assert!(item != 50, "the worker's own words"), |()| ());
    }
}
