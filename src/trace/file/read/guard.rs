//! Panics of the Parquet decoder, which takes some malformed pages for bugs, become errors.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use super::TraceFileError;

thread_local! {
    /// Whether this thread is at work whose panics become errors.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread's panics become errors, and so are not told.
pub(in crate::trace::file) fn is_guarded() -> bool {
    GUARDED.try_with(Cell::get).unwrap_or(false)
}

/// Turns a panic of the Parquet decoder, which takes some malformed pages for bugs, into an error. Nothing is printed.
pub(in crate::trace::file) fn guarded<T>(
    work: impl FnOnce() -> Result<T, TraceFileError>,
) -> Result<T, TraceFileError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_guarded() {
                others(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

fn panicked(panic: &(dyn Any + Send)) -> TraceFileError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    TraceFileError::Damaged(format!("a page cannot be decoded: {}", text.unwrap_or("the decoder gave up")))
}
