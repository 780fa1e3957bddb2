//! How much the recorder has allocated: it is linked into these tests, the mock is a library of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that are allocated once nothing is being done any more.
pub(crate) fn at_rest() -> usize {
    let mut least = usize::MAX;
    let mut looks = 0;
    while looks < 5 {
        std::thread::sleep(Duration::from_millis(5));
        let now = BYTES.load(Ordering::Relaxed);
        looks = if now < least { 0 } else { looks + 1 };
        least = least.min(now);
    }
    least
}
