//! Work on all cores, of which each part fills a slot of its own.

use std::sync::Mutex;

use super::{TraceFileError, damaged};
use crate::threads::on_several;

/// Results of the tasks that read the rows.
type Slot<T> = Option<Result<T, TraceFileError>>;

pub(super) fn take<T>(slot: Slot<T>) -> Result<T, TraceFileError> {
    slot.unwrap_or_else(|| damaged("a part was not read"))
}

/// Runs tasks on all cores, the first ones first.
pub(super) fn run_all(tasks: Vec<Box<dyn FnOnce() + Send + '_>>) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(tasks.len());
    let queue = Mutex::new(tasks.into_iter());
    let work = || {
        loop {
            let task = queue.lock().map_or(None, |mut queue| queue.next());
            match task {
                Some(task) => task(),
                None => return,
            }
        }
    };
    on_several(workers, work);
}

/// Makes a list of tasks that each fill a slot of their own.
macro_rules! tasks {
    ($($slot:ident = $work:expr;)*) => {
        $(let mut $slot = None;)*
        {
            let tasks: Vec<Box<dyn FnOnce() + Send + '_>> =
                vec![$(Box::new(|| $slot = Some(guarded(|| $work)))),*];
            run_all(tasks);
        }
        $(let $slot = take($slot)?;)*
    };
}

pub(super) use tasks;
