//! Work on several threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// More threads than this gain little: memory is what limits.
const MAX_THREADS: usize = 8;

/// Maps consecutive parts of `items`, each of at least `smallest`, at once; gives the results in order.
pub(super) fn map_parts<T: Sync, R: Send>(items: &[T], smallest: usize, map: impl Fn(&[T]) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let len = items.len().div_ceil(threads).max(smallest);
    if items.len() <= len {
        return vec![map(items)];
    }
    let map = &map;
    thread::scope(|scope| {
        let running: Vec<_> = items.chunks(len).map(|part| scope.spawn(move || map(part))).collect();
        running.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Does two things at once.
pub(super) fn both<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| resume_unwind(panic)), other)
    })
}
