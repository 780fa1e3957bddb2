//! A shared library that plays CUPTI to the recorder.
//!
//! It exports the functions the recorder uses, keeps CUPTI's rules and counts where the recorder breaks them. The
//! environment variable `MOCK_CUPTI` says how it behaves, as `key=value` pairs with `;` between them:
//!
//! | key | meaning |
//! |---|---|
//! | `version` | what `cuptiGetVersion` answers (130001) |
//! | `kernel_bytes` | size of a kernel record (216) |
//! | `holder` | another client holds CUPTI, and this is its name |
//! | `refuse` | `KIND:RESULT`: enabling this kind gives this result |
//! | `complete` | `worker`: buffers are completed on a thread of the library's own |
//! | `timestamp` | `fails`: `cuptiGetTimestamp` does not work |
//! | `times` | `now`: records have the time at which they are made, not one that follows from their correlation id |
//! | `names` | so many kernels, each with a name of its own at a place of its own (0: one) |
//!
//! Under the name `libcuda.so.1` it plays libcuda: `MOCK_CUDA` is the result of its functions (0), so 34 makes it the
//! toolkit's stub.
//!
//! The functions named `mock_*` make it do work. It shares no code with the recorder, so that both cannot be wrong in
//! the same way.

#![expect(unsafe_code, reason = "plays a C library")]
#![expect(missing_docs, clippy::missing_safety_doc, reason = "the functions are documented by CUPTI")]

mod callbacks;
mod counters;
mod cuda;
mod options;
mod stream;
mod work;

use counters::{Counter, outside_callback};
use options::options;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SUCCESS: u32 = 0;
const INVALID_PARAMETER: u32 = 1;
const MAX_LIMIT_REACHED: u32 = 12;
const INVALID_KIND: u32 = 21;
const MULTIPLE_SUBSCRIBERS: u32 = 39;
const UNKNOWN: u32 = 999;

static SUBSCRIBED: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> u32 {
    // SAFETY: the caller gives a place for the result.
    unsafe { *version = options().version };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(result: u32, text: *mut *const c_char) -> u32 {
    let name = match result {
        INVALID_KIND => c"CUPTI_ERROR_INVALID_KIND",
        MULTIPLE_SUBSCRIBERS => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        _ => c"CUPTI_ERROR_UNKNOWN",
    };
    // SAFETY: the caller gives a place for the result.
    unsafe { *text = name.as_ptr() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(timestamp: *mut u64) -> u32 {
    if options().timestamp_fails {
        return UNKNOWN;
    }
    // SAFETY: the caller gives a place for the result.
    unsafe { *timestamp = now() };
    SUCCESS
}

/// `CLOCK_REALTIME` in nanoseconds.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    u64::try_from(now).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(domain: u32, cbid: u32, name: *mut *const c_char) -> u32 {
    let text = match (domain, cbid) {
        (1, 307) => c"cuLaunchKernel",
        (1, 304) => c"cuCtxGetCurrent",
        (1, 2) => c"cuInit",
        (2, 211) => c"cudaLaunchKernel_v7000",
        (2, 17) => c"cudaGetDevice_v3020",
        (2, 41) => c"cudaMemcpyAsync_v3020",
        _ => return INVALID_PARAMETER,
    };
    // SAFETY: the caller gives a place for the result.
    unsafe { *name = text.as_ptr() };
    SUCCESS
}

fn subscribe(subscriber: *mut *mut c_void, callback: callbacks::Callback, data: *mut c_void) -> u32 {
    outside_callback();
    if options().holder.is_some() || SUBSCRIBED.swap(true, Ordering::SeqCst) {
        return MULTIPLE_SUBSCRIBERS;
    }
    callbacks::subscribe(callback, data);
    // SAFETY: the caller gives a place for the handle, which means nothing to it.
    unsafe { *subscriber = std::ptr::without_provenance_mut(1) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    subscriber: *mut *mut c_void,
    callback: callbacks::Callback,
    data: *mut c_void,
) -> u32 {
    subscribe(subscriber, callback, data)
}

/// `CUpti_SubscriberParams` up to what CUDA 13.0 knows.
#[repr(C)]
pub struct SubscriberParams {
    struct_size: usize,
    name: *const c_char,
    old_name: *mut c_char,
    old_size: usize,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe_v2(
    subscriber: *mut *mut c_void,
    callback: callbacks::Callback,
    data: *mut c_void,
    params: *mut SubscriberParams,
) -> u32 {
    let expected = if options().version < 130_200 { 32 } else { 40 };
    // SAFETY: the caller gives a structure that starts like this one.
    let params = unsafe { &*params };
    if params.struct_size != expected {
        return INVALID_PARAMETER;
    }
    let result = subscribe(subscriber, callback, data);
    if let (MULTIPLE_SUBSCRIBERS, Some(holder)) = (result, &options().holder) {
        let len = holder.len().min(params.old_size.saturating_sub(1));
        // SAFETY: the caller says that there is room for `old_size` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(holder.as_ptr(), params.old_name.cast(), len);
            *params.old_name.add(len) = 0;
        }
    }
    result
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(_: *mut c_void) -> u32 {
    SUBSCRIBED.store(false, Ordering::SeqCst);
    callbacks::unsubscribe();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(enable: u32, _: *mut c_void, domain: u32, id: u32) -> u32 {
    outside_callback();
    callbacks::enable(enable != 0, domain, id);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiNvtxInitialize(_: *mut c_void) -> u32 {
    Counter::Nvtx.add(1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiNvtxInitialize2(_: *mut c_void) -> u32 {
    Counter::Nvtx.add(1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetThreadIdType(kind: u32) -> u32 {
    if kind == 1 {
        Counter::SystemThreadIds.add(1);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *mut c_void) -> u32 {
    outside_callback();
    // SAFETY: the caller gives both pointers.
    let size = unsafe { *size };
    let expected = if matches!(attribute, 5 | 9) { 1 } else { 8 };
    if size != expected {
        return INVALID_PARAMETER;
    }
    // SAFETY: the value has this size.
    let value = unsafe { if size == 1 { u64::from(*value.cast::<u8>()) } else { *value.cast::<u64>() } };
    if work::set_attribute(attribute, value) { SUCCESS } else { INVALID_PARAMETER }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(requested: work::Requested, completed: work::Completed) -> u32 {
    outside_callback();
    work::register(requested, completed);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> u32 {
    outside_callback();
    match options().refuse {
        Some((refused, result)) if refused == kind => result,
        _ => {
            work::enable(kind, true);
            SUCCESS
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> u32 {
    outside_callback();
    work::enable(kind, false);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableDriverApi(_cbid: u32, enable: u8) -> u32 {
    work::filter(4, enable)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableRuntimeApi(_cbid: u32, enable: u8) -> u32 {
    work::filter(5, enable)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableAllSyncRecords(_enable: u8) -> u32 {
    Counter::AllSyncsSet.add(1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(flag: u32) -> u32 {
    outside_callback();
    work::flush(flag == 1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> u32 {
    outside_callback();
    // SAFETY: the caller gives a place for the record; a record given lies in the buffer.
    let current = unsafe { *record };
    let next = if current.is_null() {
        0
    } else {
        let offset = current as usize - buffer as usize;
        // SAFETY: a record starts with its kind.
        let kind = unsafe { current.cast::<u32>().read_unaligned() };
        let Some(stride) = work::stride(kind) else { return INVALID_KIND };
        offset + stride
    };
    if next + 8 > valid {
        return MAX_LIMIT_REACHED;
    }
    // SAFETY: `next` lies in the buffer.
    let next = unsafe { buffer.add(next) };
    // SAFETY: a record starts with its kind.
    if work::stride(unsafe { next.cast::<u32>().read_unaligned() }).is_none() {
        return INVALID_KIND;
    }
    // SAFETY: the caller gives a place for the record.
    unsafe { *record = next };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(_: *mut c_void, _: u32, dropped: *mut usize) -> u32 {
    outside_callback();
    let count = Counter::Dropped.take();
    // SAFETY: the caller gives a place for the result.
    unsafe { *dropped = usize::try_from(count).unwrap_or(usize::MAX) };
    SUCCESS
}

/// Runs `threads` threads at once, each of which launches `launches` kernels.
#[unsafe(no_mangle)]
pub extern "C" fn mock_launch(threads: u32, launches: u32) {
    work::launch(threads, launches);
}

/// Runs `threads` threads for a time, which launch as fast as they can, or so that all together make so many bytes of
/// records a second; in bursts of this period, if it is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn mock_stream(threads: u32, milliseconds: u32, bytes_per_second: u64, period: u32) {
    let rate = stream::Rate::with_period(period);
    stream::run(threads, Duration::from_millis(milliseconds.into()), bytes_per_second, rate);
}

/// Fills a buffer with one finished kernel, one that still runs, and a record that was never filled in, for the next
/// forced flush.
#[unsafe(no_mangle)]
pub extern "C" fn mock_unfinished() {
    work::unfinished();
}

/// Asks for a buffer and gives it back unused.
#[unsafe(no_mangle)]
pub extern "C" fn mock_empty_buffer() {
    work::empty_buffer();
}

/// From now on the kernel's name is another text at the same place.
#[unsafe(no_mangle)]
pub extern "C" fn mock_rename() {
    work::rename();
}

/// Says that `count` records were dropped.
#[unsafe(no_mangle)]
pub extern "C" fn mock_drop(count: u64) {
    Counter::Dropped.add(count);
}

/// Plays a call of the program: the client is told of its begin and its end, if it asked for that. A call that destroys a
/// context takes the records with it that have not been fetched.
#[unsafe(no_mangle)]
pub extern "C" fn mock_call(domain: u32, id: u32) {
    callbacks::call(domain, id);
}

/// Plays an NVTX call, with a structure of arguments and a result.
#[unsafe(no_mangle)]
pub extern "C" fn mock_nvtx(id: u32, arguments: *const c_void, result: *const c_void) {
    callbacks::nvtx(id, arguments, result);
}

/// What was counted under a name, see `Counter`; -1 for an unknown name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mock_counter(name: *const c_char) -> i64 {
    // SAFETY: the caller gives a terminated text.
    let name = unsafe { CStr::from_ptr(name) };
    Counter::named(name.to_bytes()).map_or(-1, |counter| i64::try_from(counter.get()).unwrap_or(i64::MAX))
}
