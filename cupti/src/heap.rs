//! How much memory the recorder has allocated, told apart from what CUPTI and the program allocate in the same process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted. A library that has it as its `#[global_allocator]` counts its own allocations and
/// nobody else's.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        counted(layout, unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        counted(layout, unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller says.
        let moved = unsafe { System.realloc(at, layout, size) };
        if !moved.is_null() {
            BYTES.fetch_add(size, Ordering::Relaxed);
            BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        moved
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(at, layout) }
    }
}

fn counted(layout: Layout, at: *mut u8) -> *mut u8 {
    if !at.is_null() {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
    }
    at
}

/// Bytes that are allocated now; 0 where [`Counting`] is not the allocator.
pub fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}
