//! The work: threads that launch kernels, the records of these, and the buffers they go into.

use crate::counters::{Counter, callback};
use crate::options::options;
use crate::stream;
use std::cell::UnsafeCell;
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) type Requested = Option<unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize)>;
pub(crate) type Completed = Option<unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize)>;

const KERNEL: u32 = 10;
const RUNTIME: u32 = 5;
const API_BYTES: usize = 40;
/// `cudaLaunchKernel_v7000`.
const LAUNCH: u32 = 211;

#[derive(Debug)]
struct State {
    requested: Requested,
    completed: Completed,
    zeroed: bool,
    kinds: Vec<u32>,
    /// Buffers that are not full, for the next flush.
    pending: Vec<Filling>,
    /// Buffers for the next forced flush.
    unfinished: Vec<Filling>,
    /// Where the buffers are that the client gave.
    given: Vec<usize>,
}

static STATE: Mutex<State> = Mutex::new(State {
    requested: None,
    completed: None,
    zeroed: false,
    kinds: Vec::new(),
    pending: Vec::new(),
    unfinished: Vec::new(),
    given: Vec::new(),
});

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether kernels are recorded.
static RECORDING: AtomicBool = AtomicBool::new(false);

/// Whether work is recorded.
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Ordering::SeqCst)
}

static CORRELATION: AtomicU32 = AtomicU32::new(0);

/// The number of one more launch.
pub(crate) fn correlation() -> u32 {
    CORRELATION.fetch_add(1, Ordering::SeqCst) + 1
}

struct Name(UnsafeCell<[u8; 32]>);
// SAFETY: it is changed only by `rename`, which tests call while nothing else runs.
unsafe impl Sync for Name {}
static NAME: Name = Name(UnsafeCell::new(*b"_Z6kernelPfi\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));

/// Where the name of a launch's kernel is.
fn name(correlation: u32) -> u64 {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    let name = |at: u32| CString::new(format!("_Z8kernel{at:02}Pfi")).unwrap_or_default();
    let names = NAMES.get_or_init(|| (0..options().names).map(name).collect());
    let one = names.get(correlation as usize % names.len().max(1));
    one.map_or(NAME.0.get() as u64, |name| name.as_ptr() as u64)
}

pub(crate) fn rename() {
    let name = b"_Z7anotherPfi\0";
    // SAFETY: it fits, and see `Name`.
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), NAME.0.get().cast(), name.len()) };
}

/// Sets one; whether it may have that value.
pub(crate) fn set_attribute(attribute: u32, value: u64) -> bool {
    match attribute {
        0 => Counter::DeviceBufferBytes.set(value),
        2 => Counter::DeviceBufferLimit.set(value),
        6 => {
            // 250 buffers on the device are the most unless another limit was set.
            let limit = Counter::DeviceBufferLimit.get();
            if value >= if limit == 0 { 250 } else { limit } {
                return false;
            }
            Counter::DeviceBuffers.set(value);
        }
        5 => state().zeroed = value != 0,
        9 => Counter::PerThread.set(value),
        _ => {}
    }
    true
}

pub(crate) fn register(requested: Requested, completed: Completed) {
    let mut state = state();
    state.requested = requested;
    state.completed = completed;
}

pub(crate) fn enable(kind: u32, on: bool) {
    let mut state = state();
    state.kinds.retain(|&k| k != kind);
    if on {
        state.kinds.push(kind);
    }
    Counter::KindsOn.set(state.kinds.len() as u64);
    let recording = state.kinds.contains(&KERNEL);
    RECORDING.store(recording, Ordering::SeqCst);
    Counter::Recording.set(recording.into());
}

pub(crate) fn filter(kind: u32, enable: u8) -> u32 {
    if enable == 0 {
        Counter::Filtered.add(1);
        if !state().kinds.contains(&kind) {
            Counter::FilteredEarly.add(1);
        }
    }
    0
}

pub(crate) fn stride(kind: u32) -> Option<usize> {
    match kind {
        KERNEL => Some(options().kernel_bytes),
        RUNTIME => Some(API_BYTES),
        _ => None,
    }
}

/// A buffer of the client that records are written into.
#[derive(Debug)]
pub(crate) struct Filling {
    start: *mut u8,
    size: usize,
    used: usize,
    records: u64,
}

// SAFETY: a buffer belongs to one thread at a time, as CUPTI's do.
unsafe impl Send for Filling {}

impl Filling {
    /// Asks the client for a buffer; `None` when it gives none.
    pub(crate) fn request() -> Option<Self> {
        let (requested, zeroed) = {
            let state = state();
            (state.requested?, state.zeroed)
        };
        let (mut start, mut size, mut max) = (std::ptr::null_mut(), 0, 1);
        // SAFETY: the client's callback, with places for its three results.
        callback(|| unsafe { requested(&raw mut start, &raw mut size, &raw mut max) });
        if start.is_null() {
            return None;
        }
        assert_eq!((start as usize % 8, max), (0, 0), "buffers are aligned and take as many records as fit");
        let mut state = state();
        if state.given.contains(&(start as usize)) {
            Counter::Shared.add(1);
        } else {
            // SAFETY: the client says that the buffer has this size.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start, size) };
            if !zeroed {
                bytes.fill(0);
            } else if !is_zero(bytes) {
                Counter::DirtyBuffers.add(1);
            }
        }
        state.given.push(start as usize);
        Some(Self { start, size, used: 0, records: 0 })
    }

    pub(crate) fn has_room_for_a_launch(&self) -> bool {
        self.used + launch_bytes() <= self.size
    }

    /// The records of a launch and its kernel.
    pub(crate) fn one_launch(&mut self, correlation: u32) {
        self.api(correlation);
        self.kernel(correlation, true);
    }

    fn put(&mut self, bytes: usize, fields: &[(usize, &[u8])]) {
        for (offset, field) in fields {
            // SAFETY: the record fits, and the fields lie in the record.
            unsafe {
                std::ptr::copy_nonoverlapping(field.as_ptr(), self.start.add(self.used + offset), field.len());
            }
        }
        self.used += bytes;
        self.records += 1;
    }

    fn api(&mut self, correlation: u32) {
        let time = time(correlation);
        self.put(
            API_BYTES,
            &[
                (0, &RUNTIME.to_le_bytes()),
                (4, &LAUNCH.to_le_bytes()),
                (8, &time.to_le_bytes()),
                (16, &(time + 400).to_le_bytes()),
                (24, &std::process::id().to_le_bytes()),
                (32, &correlation.to_le_bytes()),
            ],
        );
    }

    fn kernel(&mut self, correlation: u32, finished: bool) {
        let time = time(correlation) + 200;
        let end = if finished { time + 600 } else { 0 };
        self.put(
            options().kernel_bytes,
            &[
                (0, &KERNEL.to_le_bytes()),
                (16, &time.to_le_bytes()),
                (24, &end.to_le_bytes()),
                (92, &correlation.to_le_bytes()),
                (104, &name(correlation).to_le_bytes()),
            ],
        );
    }

    pub(crate) fn complete(self) {
        if options().complete_on_worker {
            let _ = std::thread::spawn(move || self.complete_here()).join();
        } else {
            self.complete_here();
        }
    }

    fn complete_here(self) {
        let completed = {
            let mut state = state();
            if let Some(at) = state.given.iter().position(|&start| start == self.start as usize) {
                state.given.swap_remove(at);
            }
            state.completed
        };
        if self.used > 0 {
            Counter::Records.add(self.records);
        }
        if let Some(completed) = completed {
            // SAFETY: the client's callback, with the buffer it gave; no context and no stream, as CUPTI does.
            callback(|| unsafe { completed(std::ptr::null_mut(), 0, self.start, self.size, self.used) });
        }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // SAFETY: any bytes make a number.
    let (head, middle, tail) = unsafe { bytes.align_to::<u128>() };
    middle.iter().all(|&number| number == 0) && head.iter().chain(tail).all(|&byte| byte == 0)
}

/// Bytes of the records of a launch and its kernel.
pub(crate) fn launch_bytes() -> usize {
    API_BYTES + options().kernel_bytes
}

/// When a launch happens.
fn time(correlation: u32) -> u64 {
    if options().times_now { crate::now() } else { u64::from(correlation) * 1000 }
}

pub(crate) fn launch(threads: u32, launches: u32) {
    let barrier = Barrier::new(threads as usize);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let started = std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, || {
                let mut buffer = None;
                if is_recording() {
                    buffer = Filling::request();
                }
                // All threads hold a buffer before the first gives one back.
                barrier.wait();
                for _ in 0..launches {
                    one_launch(&mut buffer);
                }
                if let Some(buffer) = buffer {
                    state().pending.push(buffer);
                }
            });
            started.expect("a thread");
        }
    });
}

fn one_launch(buffer: &mut Option<Filling>) {
    let correlation = correlation();
    if !is_recording() {
        return;
    }
    if !buffer.as_ref().is_some_and(Filling::has_room_for_a_launch) {
        if let Some(full) = buffer.take() {
            full.complete();
        }
        *buffer = Filling::request();
    }
    match buffer {
        Some(buffer) => buffer.one_launch(correlation),
        None => {
            Counter::Lost.add(1);
            Counter::Dropped.add(2);
        }
    }
}

pub(crate) fn unfinished() {
    let Some(mut buffer) = Filling::request() else { return };
    let correlation = CORRELATION.fetch_add(2, Ordering::SeqCst) + 1;
    buffer.kernel(correlation, true);
    buffer.kernel(correlation + 1, false);
    // A record that was set aside and not filled in: its kind is still 0.
    buffer.used += options().kernel_bytes;
    state().unfinished.push(buffer);
}

pub(crate) fn empty_buffer() {
    if let Some(buffer) = Filling::request() {
        buffer.complete();
    }
}

/// A context ends, and with it what was not fetched.
pub(crate) fn destroy_context() {
    let mut state = state();
    let (pending, unfinished) = (state.pending.len(), state.unfinished.len());
    Counter::Lost.add((pending + unfinished) as u64);
    state.pending.clear();
    state.unfinished.clear();
}

pub(crate) fn flush(forced: bool) {
    let buffers = {
        let mut state = state();
        let mut buffers = std::mem::take(&mut state.pending);
        if forced {
            buffers.append(&mut state.unfinished);
        }
        buffers
    };
    for buffer in buffers.into_iter().chain(stream::take(forced)) {
        buffer.complete();
    }
}
