//! Activity buffers: mapped, zeroed and touched before CUPTI needs them.

use crossbeam_channel::{Receiver, Sender, unbounded};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// When half of the memory is in use, programs with many threads get buffers of this size, so that it lasts.
const SMALL: usize = 256 << 10;

/// Bytes at the end of each buffer that CUPTI is not told of: the buffer's number.
const TAIL: usize = 64;

/// A buffer owned by whoever holds this: the pool, CUPTI, or the writer. Wherever one is dropped, its memory goes back
/// to the system.
#[derive(Debug)]
pub(super) struct Buffer {
    start: NonNull<u8>,
    /// Of the whole mapping.
    len: usize,
}

// SAFETY: a buffer is plain memory with one owner at a time.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Takes back what [`Self::into_raw`] gave.
    ///
    /// # Safety
    /// `start` and `len` are what that gave, and nobody else holds the buffer.
    pub(super) unsafe fn from_raw(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len: len + TAIL }
    }

    /// Gives the buffer away under a number, as its start and the bytes that may be used.
    pub(super) fn into_raw(self, number: u64) -> (NonNull<u8>, usize) {
        let buffer = ManuallyDrop::new(self);
        let room = buffer.room();
        // SAFETY: the tail lies behind the room, and we are the only owner.
        unsafe { buffer.start.add(room).cast::<u64>().write_unaligned(number) };
        (buffer.start, room)
    }

    /// The number under which it was given away last.
    pub(super) fn number(&self) -> u64 {
        // SAFETY: the tail lies behind the room, and is always initialised.
        unsafe { self.start.add(self.room()).cast::<u64>().read_unaligned() }
    }

    fn room(&self) -> usize {
        self.len - TAIL
    }

    /// The first `valid` bytes, or all if there are fewer.
    pub(super) fn bytes(&self, valid: usize) -> &[u8] {
        // SAFETY: the mapping has so many bytes, all initialised (zero, or written by CUPTI, which has given it back).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), valid.min(self.room())) }
    }

    fn zero(&mut self, valid: usize) {
        // SAFETY: as above, and we are the only owner.
        unsafe { std::ptr::write_bytes(self.start.as_ptr(), 0, valid.min(self.room())) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone, and is not used again.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// The buffers that are free. Taking one costs one pop; memory is mapped there only when none is ready.
#[derive(Debug)]
pub(super) struct Pool {
    large: usize,
    limit: usize,
    allocated: AtomicUsize,
    free: Free,
    free_small: Free,
}

/// Free buffers of one size.
#[derive(Debug)]
struct Free {
    put: Sender<Buffer>,
    take: Receiver<Buffer>,
}

impl Free {
    fn new() -> Self {
        let (put, take) = unbounded();
        Self { put, take }
    }
}

impl Pool {
    /// A pool of buffers of `large` bytes, which takes `limit` bytes at most.
    pub(super) fn new(large: usize, limit: usize) -> Self {
        let large = large.clamp(64 << 10, 128 << 20).next_multiple_of(4096);
        Self { large, limit, allocated: AtomicUsize::new(0), free: Free::new(), free_small: Free::new() }
    }

    /// Bytes of a large buffer.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.large
    }

    /// Bytes of all buffers, wherever they are.
    pub(super) fn bytes(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed) as u64
    }

    /// How many large buffers have as much memory as all there are, wherever they are.
    pub(super) fn mapped(&self) -> usize {
        self.allocated.load(Ordering::Relaxed).div_ceil(self.large)
    }

    /// How many large buffers have as much memory as all that are free.
    pub(super) fn ready(&self) -> usize {
        self.free.take.len() + self.free_small.take.len() * SMALL.min(self.large) / self.large
    }

    /// Maps and touches so many more buffers, or until the half of the memory for large ones is used up.
    pub(super) fn map(&self, count: usize) {
        for _ in 0..count {
            let Some(buffer) = self.allocate(self.large, self.limit / 2, true) else { return };
            let _ = self.free.put.send(buffer);
        }
    }

    /// Gives free buffers back to the system, as much memory as so many large ones have: small ones first, which were
    /// made when memory was short.
    pub(super) fn give_up(&self, count: usize) {
        let mut left = count.saturating_mul(self.large);
        while left > 0
            && let Ok(buffer) = self.free_small.take.try_recv().or_else(|_| self.free.take.try_recv())
        {
            left = left.saturating_sub(buffer.len);
            self.unmap(buffer);
        }
    }

    /// A zeroed buffer, or `None` when the memory is used up.
    pub(super) fn take(&self) -> Option<Buffer> {
        self.free
            .take
            .try_recv()
            .ok()
            .or_else(|| self.allocate(self.large, self.limit / 2, false))
            .or_else(|| self.free_small.take.try_recv().ok())
            .or_else(|| self.allocate(SMALL.min(self.large), self.limit, false))
    }

    /// Zeroes the used part of a buffer and makes it free again.
    pub(super) fn give_back(&self, mut buffer: Buffer, valid: usize) {
        buffer.zero(valid);
        let free = if buffer.len == self.large { &self.free } else { &self.free_small };
        let _ = free.put.send(buffer);
    }

    fn unmap(&self, buffer: Buffer) {
        self.allocated.fetch_sub(buffer.len, Ordering::Relaxed);
        drop(buffer);
    }

    fn allocate(&self, len: usize, limit: usize, touch: bool) -> Option<Buffer> {
        self.allocated
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| sum.checked_add(len).filter(|&sum| sum <= limit))
            .ok()?;
        let populate = if touch { libc::MAP_POPULATE } else { 0 };
        // SAFETY: a new anonymous mapping, which touches no memory of ours. It is zero.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | populate,
                -1,
                0,
            )
        };
        let buffer = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        if buffer.is_none() {
            self.allocated.fetch_sub(len, Ordering::Relaxed);
        }
        buffer.map(|start| Buffer { start, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_zeroed() {
        let pool = Pool::new(64 << 10, 1 << 20);
        pool.map(1);
        let buffer = pool.take().unwrap();
        let first = buffer.start;
        // SAFETY: the buffer is ours and 64 KiB long.
        unsafe { std::ptr::write_bytes(buffer.start.as_ptr(), 7, 1000) };
        pool.give_back(buffer, 1000);
        let again = pool.take().unwrap();
        assert_eq!(again.start, first);
        assert!(again.bytes(usize::MAX).iter().all(|&byte| byte == 0));
        let (start, len) = again.into_raw(77);
        assert!(len < 64 << 10, "the number stands behind what CUPTI may use");
        // SAFETY: what was just given, held by nobody else.
        assert_eq!(unsafe { Buffer::from_raw(start, len) }.number(), 77);
    }

    #[test]
    fn free_buffers_are_given_up() {
        let pool = Pool::new(1 << 20, 8 << 20);
        let allocated = || pool.allocated.load(Ordering::Relaxed);
        pool.map(3);
        assert_eq!((pool.ready(), allocated()), (3, 3 << 20));
        let held: Vec<Buffer> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(allocated(), 8 << 20);
        for buffer in held {
            pool.give_back(buffer, 10);
        }
        pool.give_up(3);
        assert_eq!((pool.free.take.len(), pool.ready(), allocated()), (4, 5, 5 << 20), "small ones first");
        pool.give_up(3);
        assert_eq!((pool.ready(), allocated()), (2, 2 << 20), "then large ones");
        pool.give_up(usize::MAX);
        assert_eq!((pool.ready(), allocated()), (0, 0));
    }

    #[test]
    fn what_is_mapped_is_held_or_ready_whatever_size_it_has() {
        let pool = Pool::new(1 << 20, 8 << 20);
        let mut held: Vec<Buffer> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((pool.mapped(), pool.ready()), (8, 0));
        // Small ones come back first, as large ones are held for long.
        while let Some(buffer) = held.pop() {
            pool.give_back(buffer, 10);
            let bytes: usize = held.iter().map(|buffer| buffer.len).sum();
            assert_eq!(pool.mapped() - pool.ready(), bytes.div_ceil(1 << 20));
        }
        pool.give_up(2);
        assert_eq!((pool.mapped(), pool.ready()), (6, 6));
    }

    #[test]
    fn memory_ends_at_the_limit_and_small_buffers_come_before() {
        let pool = Pool::new(1 << 20, 8 << 20);
        let mut sizes = Vec::new();
        let mut held = Vec::new();
        while let Some(buffer) = pool.take() {
            sizes.push(buffer.len);
            held.push(buffer);
        }
        assert_eq!(sizes.iter().sum::<usize>(), 8 << 20);
        assert_eq!(sizes.iter().filter(|&&len| len == 1 << 20).count(), 4);
        assert_eq!(sizes.iter().filter(|&&len| len == SMALL).count(), 16);
        for buffer in held {
            pool.give_back(buffer, 0);
        }
        assert_eq!(pool.take().unwrap().len, 1 << 20);
    }
}
