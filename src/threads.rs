//! Work on several threads, of which a process may get fewer than there are processors.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// Runs `work` on this thread and on so many others that there are `threads` of them, or as many as the system lets the
/// process start. It has to end by itself when nothing is left to do; a panic on any of them comes out here.
pub fn on_several(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        let others = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, &work).ok());
        let others: Vec<_> = others.collect();
        work();
        others.into_iter().for_each(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
    });
}

/// Does two things at once, or one after the other where the system lets the process start no thread.
pub fn at_once<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    let one = Mutex::new(Some(one));
    let take = || one.lock().unwrap_or_else(PoisonError::into_inner).take();
    let once = || take().map(|one| one());
    thread::scope(|scope| {
        let started = Builder::new().spawn_scoped(scope, once);
        let other = other();
        let one = match started {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => once(),
        };
        one.map(|one| (one, other))
    })
    .unwrap_or_else(|| unreachable!("it was done on the thread, or here where there is none"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_of_them_work_and_nothing_is_done_twice() {
        for threads in [0, 1, 2, 5] {
            let (runs, left) = (AtomicUsize::new(0), Mutex::new((0..100).collect::<Vec<_>>()));
            let done = Mutex::new(Vec::new());
            on_several(threads, || {
                runs.fetch_add(1, Ordering::Relaxed);
                while let Some(item) = left.lock().map_or(None, |mut left| left.pop()) {
                    done.lock().map(|mut done| done.push(item)).unwrap_or_default();
                }
            });
            let mut done = done.into_inner().unwrap_or_default();
            done.sort_unstable();
            assert_eq!((runs.into_inner(), done), (threads.max(1), (0..100).collect()));
        }
        let text = String::from("moved");
        assert_eq!(at_once(move || text + "!", || 3), ("moved!".to_owned(), 3));
    }

    #[test]
    #[should_panic(expected = "the worker's own words")]
    fn a_panic_of_one_comes_out() {
        at_once(|| panic!("the worker's own words"), || ());
    }
}
