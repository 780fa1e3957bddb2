//! What CUPTI's callbacks reach, and the callbacks.
//!
//! CUPTI gives its buffer callbacks no pointer of ours, and may call them until the last moment of the process. So the
//! state is one static that is never dropped. The callbacks call neither CUDA nor CUPTI, take no lock and never unwind.

use super::clock;
use super::file::Identity;
use super::kinds::version;
use super::pool::{Buffer, Pool};
use super::setup::Setup;
use crate::spool::Anchor;
use crossbeam_channel::Sender;
use cupti_sys::Api;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// The one recording of this process.
pub(super) static SHARED: OnceLock<Shared> = OnceLock::new();

/// Set in a forked child for good: there is no recorder, as its threads do not exist there.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The process that is recorded; 0 before there is one.
static RECORDED: AtomicU32 = AtomicU32::new(0);

/// What is sent to the thread that writes the spool.
#[derive(Debug)]
pub(super) enum Message {
    /// A buffer that CUPTI has filled.
    Completed { buffer: Buffer, valid: usize },
    /// Complete buffers have been fetched, of those that CUPTI had been given before: so many. Comes with a reading of the
    /// clocks and the bytes of records that had arrived, and is the moment to look after the pool.
    Tick { at: Instant, anchor: Option<Anchor>, handed_out: u64, arrived: u64 },
    /// A note of the program.
    Note { key: String, json: String },
    /// End the spool and answer.
    Stop { answer: Sender<super::Summary> },
}

/// The recording, as seen from everywhere.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) api: Api,
    pub(super) pool: Pool,
    pub(super) messages: Sender<Message>,
    pub(super) counts: Counts,
    spool: Identity,
    stopped: AtomicBool,
    /// `CLOCK_REALTIME` when recording was switched off; 0 before.
    off_since: AtomicI64,
    /// What was set up, for taking it down.
    kept: OnceLock<Kept>,
}

#[derive(Debug)]
struct Kept {
    setup: Setup,
    version: u32,
    kinds: Vec<u32>,
}

/// Counted by the callbacks.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) handed_out: AtomicU64,
    pub(super) returned: AtomicU64,
    pub(super) returned_bytes: AtomicU64,
    pub(super) discarded_buffers: AtomicU64,
    pub(super) discarded_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn new(api: Api, pool: Pool, messages: Sender<Message>, spool: Identity) -> Self {
        RECORDED.store(std::process::id(), Ordering::Release);
        Self {
            api,
            pool,
            messages,
            counts: Counts::default(),
            spool,
            stopped: AtomicBool::new(false),
            off_since: AtomicI64::new(0),
            kept: OnceLock::new(),
        }
    }

    /// Keeps what was set up, and gives it.
    pub(super) fn keep(&self, setup: Setup, version: u32, kinds: Vec<u32>) -> &Setup {
        &self.kept.get_or_init(|| Kept { setup, version, kinds }).setup
    }

    /// Switches the kinds off, unless that may hang. Not to be called in a buffer callback.
    pub(super) fn switch_off(&self) {
        let now = clock::now(libc::CLOCK_REALTIME);
        let _ = self.off_since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed);
        let Some(kept) = self.kept.get().filter(|kept| kept.version != version::CUDA_13_0) else { return };
        for &kind in &kept.kinds {
            // SAFETY: an `Api` in use means that a driver is there; this is no buffer callback.
            unsafe { (self.api.activity_disable)(kind) };
        }
    }

    /// `CLOCK_REALTIME` when recording was first switched off; 0 before.
    pub(super) fn off_since(&self) -> i64 {
        self.off_since.load(Ordering::Acquire)
    }

    /// Gives CUPTI's place for a client back. Nothing more is recorded.
    pub(super) fn let_go(&self) {
        self.set_stopped();
        self.switch_off();
        if let Some(kept) = self.kept.get() {
            kept.setup.give_up(&self.api);
        }
    }

    /// Asks CUPTI for the buffers whose records are all complete.
    pub(super) fn fetch(&self) {
        // Before CUPTI has asked for a buffer there is nothing to fetch.
        if self.outstanding() > 0 {
            // SAFETY: an `Api` in use means that a driver is there; this is no buffer callback.
            unsafe { (self.api.activity_flush_all)(0) };
        }
    }

    /// From here on nothing more is recorded.
    pub(super) fn set_stopped(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    fn is_running(&self) -> bool {
        !self.stopped.load(Ordering::Acquire) && !is_forked()
    }

    fn hand_out(&self) -> Option<(NonNull<u8>, usize)> {
        let buffer = self.pool.take()?;
        let number = self.counts.handed_out.fetch_add(1, Ordering::Relaxed);
        Some(buffer.into_raw(number))
    }

    fn accept(&self, start: NonNull<u8>, len: usize, valid: usize) {
        if start == discard_buffer().0 {
            if valid > 0 {
                self.counts.discarded_buffers.fetch_add(1, Ordering::Relaxed);
                self.counts.discarded_bytes.fetch_add(valid as u64, Ordering::Relaxed);
            }
            return;
        }
        self.counts.returned.fetch_add(1, Ordering::Relaxed);
        self.counts.returned_bytes.fetch_add(valid as u64, Ordering::Relaxed);
        // SAFETY: CUPTI gives back a buffer that `hand_out` gave it, with the length it was told, and has done with it.
        let buffer = unsafe { Buffer::from_raw(start, len) };
        // When nobody listens any more, the spool has ended: the buffer is dropped with the message.
        let _ = self.messages.send(Message::Completed { buffer, valid });
    }

    /// The message of a moment, after a fetch before which so many buffers had been handed out.
    pub(super) fn tick(&self, handed_out: u64) -> Message {
        let arrived = self.counts.returned_bytes.load(Ordering::Relaxed);
        Message::Tick { at: Instant::now(), anchor: clock::anchor(&self.api), handed_out, arrived }
    }

    /// Buffers that CUPTI was given so far.
    pub(super) fn handed_out(&self) -> u64 {
        self.counts.handed_out.load(Ordering::Relaxed)
    }

    /// Buffers that CUPTI holds.
    pub(super) fn outstanding(&self) -> u64 {
        let returned = self.counts.returned.load(Ordering::Relaxed);
        self.handed_out().saturating_sub(returned)
    }
}

/// Whether this is a forked child of the recorded process. One that was made by the bare system call runs no handler,
/// and is known by its number.
pub(super) fn is_forked() -> bool {
    let recorded = RECORDED.load(Ordering::Acquire);
    FORKED.load(Ordering::Acquire) || (recorded != 0 && recorded != std::process::id())
}

/// Where records go that nobody can keep. CUPTI before 12.9 crashes when it is given no buffer.
#[repr(align(4096))]
struct Discard(UnsafeCell<[u8; DISCARD_LEN]>);

const DISCARD_LEN: usize = 256 << 10;

// SAFETY: only CUPTI writes into it, and nobody reads it.
unsafe impl Sync for Discard {}

static DISCARD: Discard = Discard(UnsafeCell::new([0; DISCARD_LEN]));

fn discard_buffer() -> (NonNull<u8>, usize) {
    // A static is never at address zero; the alternative is unreachable and harmless.
    (NonNull::new(DISCARD.0.get().cast()).unwrap_or(NonNull::dangling()), DISCARD_LEN)
}

/// `CUpti_BuffersCallbackRequestFunc`: runs on a thread of the program, inside a CUDA call.
///
/// # Safety
/// Called by CUPTI, with valid pointers.
pub(super) unsafe extern "C" fn buffer_requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let given = catch_unwind(|| SHARED.get().filter(|shared| shared.is_running()).and_then(Shared::hand_out));
    let (start, len) = given.ok().flatten().unwrap_or_else(discard_buffer);
    // SAFETY: CUPTI passes places for the three results; 0 records means as many as fit.
    unsafe {
        *buffer = start.as_ptr();
        *size = len;
        *max_records = 0;
    }
}

/// `CUpti_BuffersCallbackCompleteFunc`: runs on a thread of CUPTI, or on one that flushes.
///
/// # Safety
/// Called by CUPTI, with a buffer that [`buffer_requested`] gave.
pub(super) unsafe extern "C" fn buffer_completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let (Some(shared), Some(start)) = (SHARED.get(), NonNull::new(buffer))
            && !is_forked()
        {
            shared.accept(start, size, valid);
        }
    }));
}

/// Runs in a forked child, where only async-signal-safe calls are allowed: there is no recorder here, and the spool
/// belongs to the parent.
pub(super) unsafe extern "C" fn in_forked_child() {
    FORKED.store(true, Ordering::Release);
    if let Some(shared) = SHARED.get() {
        shared.spool.close_in_child();
    }
}
