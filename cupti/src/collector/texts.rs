//! Fetching the texts behind the pointers in the records, before they go away.

use crate::decode::strings;
use crate::spool::Text;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// No text is taken longer than this.
const LONGEST: usize = 64 << 10;

/// The memory that known texts may take. A program that marks each of its steps with a text of its own, or compiles
/// kernels all the time, has ever more of them.
const ROOM: usize = 32 << 20;
/// What a text takes beside its own bytes, at most: its entry in a table that may be half empty, and its allocation.
const BESIDE: usize = 4 * size_of::<(u64, Seen)>() + 16;

/// The texts seen so far, by pointer. A pointer may be reused for another text once a module is unloaded, so in each
/// buffer the text of each pointer is compared once. When the texts take more memory than they may, those that were not
/// seen lately are forgotten, to be told again when they come back.
#[derive(Debug)]
pub(super) struct Texts {
    seen: FxHashMap<u64, Seen>,
    /// Memory that they take, and may take.
    bytes: usize,
    room: usize,
    scratch: Vec<u8>,
}

impl Default for Texts {
    fn default() -> Self {
        Self { seen: FxHashMap::default(), bytes: 0, room: ROOM, scratch: Vec::new() }
    }
}

#[derive(Debug)]
struct Seen {
    text: Box<[u8]>,
    buffer: u64,
}

impl Seen {
    fn bytes(&self) -> usize {
        self.text.len() + BESIDE
    }
}

impl Texts {
    /// Adds to `news` the texts of one record that were not known before.
    pub(super) fn of_record(&mut self, kind: u32, record: &[u8], buffer: u64, news: &mut Vec<Text>) {
        for pointer in strings(kind, record) {
            self.of_pointer(pointer.0, buffer, news);
        }
    }

    fn of_pointer(&mut self, pointer: u64, buffer: u64, news: &mut Vec<Text>) {
        if self.seen.get(&pointer).is_some_and(|seen| seen.buffer == buffer) {
            return;
        }
        if !read_text(pointer, &mut self.scratch) {
            return;
        }
        match self.seen.get_mut(&pointer) {
            Some(seen) if *seen.text == *self.scratch => seen.buffer = buffer,
            _ => {
                let text = String::from_utf8_lossy(&self.scratch).into_owned().into_boxed_str();
                news.push(Text { pointer, text });
                let seen = Seen { text: self.scratch.as_slice().into(), buffer };
                self.bytes += seen.bytes();
                self.bytes -= self.seen.insert(pointer, seen).map_or(0, |old| old.bytes());
                if self.bytes > self.room {
                    self.forget(buffer);
                }
            }
        }
    }

    /// Forgets what was not seen in this buffer, or everything if that leaves little room.
    fn forget(&mut self, buffer: u64) {
        self.seen.retain(|_, seen| seen.buffer == buffer);
        self.bytes = self.seen.values().map(Seen::bytes).sum();
        if self.bytes > self.room / 2 {
            self.seen.clear();
            self.bytes = 0;
        }
        self.seen.shrink_to_fit();
    }
}

/// Copies the zero-terminated text at `pointer` without its end. Gives `false` when there is no memory: the kernel does
/// the reading, so a text that is gone cannot crash the recorded program.
fn read_text(pointer: u64, into: &mut Vec<u8>) -> bool {
    const PIECE: u64 = 1024;
    const PAGE: u64 = 4096;
    into.clear();
    let mut at = pointer;
    while into.len() < LONGEST {
        // A piece never crosses a page, as the next page may not be there.
        let want = PIECE.min(PAGE - at % PAGE);
        let start = into.len();
        #[expect(clippy::cast_possible_truncation, reason = "at most a page")]
        let want = want as usize;
        into.resize(start + want, 0);
        if !copy_memory(at, &mut into[start..]) {
            into.clear();
            return false;
        }
        if let Some(end) = into[start..].iter().position(|&byte| byte == 0) {
            into.truncate(start + end);
            return true;
        }
        let Some(next) = at.checked_add(want as u64) else { break };
        at = next;
    }
    into.truncate(LONGEST);
    true
}

/// Copies memory of this process that may not be there.
fn copy_memory(from: u64, to: &mut [u8]) -> bool {
    static FORBIDDEN: AtomicBool = AtomicBool::new(false);
    let Ok(address) = usize::try_from(from) else { return false };
    if !FORBIDDEN.load(Ordering::Relaxed) {
        let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: to.len() };
        // SAFETY: the kernel checks the remote address; the local one is `to`.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
        if usize::try_from(copied) == Ok(to.len()) {
            return true;
        }
        let error = std::io::Error::last_os_error().raw_os_error();
        if !matches!(error, Some(libc::EPERM | libc::ENOSYS)) {
            return false;
        }
        FORBIDDEN.store(true, Ordering::Relaxed);
    }
    // SAFETY: the kernel does not let us ask. CUPTI gave this pointer in a record it has just completed and documents it
    // as a text; the piece lies within one page of it.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::kinds::kind;

    fn kernel(pointer: u64) -> [u8; 208] {
        let mut record = [0; 208];
        record[104..112].copy_from_slice(&pointer.to_le_bytes());
        record
    }

    #[test]
    fn a_text_is_told_once_and_again_when_it_changed() {
        let mut text = *b"first\0";
        let record = kernel(text.as_ptr() as u64);
        let mut texts = Texts::default();
        let mut news = Vec::new();
        texts.of_record(kind::CONCURRENT_KERNEL, &record, 0, &mut news);
        texts.of_record(kind::CONCURRENT_KERNEL, &record, 0, &mut news);
        texts.of_record(kind::CONCURRENT_KERNEL, &record, 1, &mut news);
        assert_eq!(news.iter().map(|t| &*t.text).collect::<Vec<_>>(), ["first"]);
        text[0] = b'F';
        std::hint::black_box(&mut text);
        texts.of_record(kind::CONCURRENT_KERNEL, &record, 2, &mut news);
        assert_eq!(news.iter().map(|t| &*t.text).collect::<Vec<_>>(), ["first", "First"]);
    }

    #[test]
    fn ever_new_texts_take_no_more_than_their_room_and_are_told_again() {
        const ROOM: usize = 64 << 10;
        let all: Vec<String> = (0..5000).map(|at| format!("step {at}\0")).collect();
        // One of them in every buffer, the others in one each, or all in one buffer.
        for each in [20, all.len()] {
            let mut texts = Texts { room: ROOM, ..Texts::default() };
            let (mut known, mut told) = (FxHashMap::default(), 0);
            for (buffer, some) in (0..).zip(all.chunks(each)) {
                let mut news = Vec::new();
                for text in some.iter().chain(&all[..1]) {
                    texts.of_record(kind::CONCURRENT_KERNEL, &kernel(text.as_ptr() as u64), buffer, &mut news);
                    assert!(texts.bytes <= ROOM && texts.seen.capacity() * size_of::<(u64, Seen)>() <= ROOM);
                }
                told += news.len();
                known.extend(news.into_iter().map(|news| (news.pointer, news.text)));
                for text in some.iter().chain(&all[..1]) {
                    assert_eq!(*known[&(text.as_ptr() as u64)], text[..text.len() - 1]);
                }
            }
            assert!(told <= all.len() + all.len() / 50, "{told} for {}", all.len());
        }
    }

    #[test]
    fn texts_across_pages_and_up_to_the_last_byte_of_memory() {
        const PAGE: usize = 4096;
        // SAFETY: a new mapping of three pages, of which the last is taken away.
        let start = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                3 * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            libc::munmap(start.add(2 * PAGE), PAGE);
            std::ptr::write_bytes(start.cast::<u8>(), b'x', 2 * PAGE);
            start.cast::<u8>()
        };
        let mut text = Vec::new();
        // Without an end before the missing page: no text, no crash.
        assert!(!read_text(start as u64 + 10, &mut text));
        // SAFETY: the last byte of the second page.
        unsafe { *start.add(2 * PAGE - 1) = 0 };
        assert!(read_text(start as u64 + 10, &mut text));
        assert_eq!(text.len(), 2 * PAGE - 1 - 10);
        assert!(!read_text(8, &mut text));
        assert!(!read_text(u64::MAX - 4, &mut text));
    }

    #[test]
    fn a_record_too_short_for_its_field_has_no_text() {
        let mut news = Vec::new();
        Texts::default().of_record(kind::MEMORY2, &[0xff; 40], 0, &mut news);
        assert!(news.is_empty());
    }
}
