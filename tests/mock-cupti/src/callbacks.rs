//! The callback API: the client is told of calls while they happen.

use crate::counters::Counter;
use crate::work;
use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) type Callback = Option<unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void)>;

#[derive(Debug)]
struct Subscription {
    callback: Callback,
    data: usize,
    on: Vec<(u32, u32)>,
}

static SUBSCRIPTION: Mutex<Subscription> = Mutex::new(Subscription { callback: None, data: 0, on: Vec::new() });

fn subscription() -> MutexGuard<'static, Subscription> {
    SUBSCRIPTION.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn subscribe(callback: Callback, data: *mut c_void) {
    let mut subscription = subscription();
    subscription.callback = callback;
    subscription.data = data as usize;
    Counter::Subscribed.set(1);
}

pub(crate) fn unsubscribe() {
    let mut subscription = subscription();
    subscription.callback = None;
    subscription.on.clear();
    Counter::CallbacksOn.set(0);
    Counter::Subscribed.set(0);
}

pub(crate) fn enable(on: bool, domain: u32, id: u32) {
    let mut subscription = subscription();
    subscription.on.retain(|&known| known != (domain, id));
    if on {
        subscription.on.push((domain, id));
    }
    Counter::CallbacksOn.set(subscription.on.len() as u64);
}

fn tell(domain: u32, id: u32, info: *const c_void) {
    let (callback, data) = {
        let subscription = subscription();
        if !subscription.on.contains(&(domain, id)) {
            return;
        }
        (subscription.callback, subscription.data)
    };
    if let Some(callback) = callback {
        // SAFETY: the client's callback, with what belongs to the domain.
        unsafe { callback(data as *mut c_void, domain, id, info) };
    }
}

/// `CUpti_CallbackData`, 72 bytes.
#[repr(C)]
struct CallInfo {
    site: u32,
    rest: [u64; 8],
}

pub(crate) fn call(domain: u32, id: u32) {
    const CONTEXT_ENDS: [(u32, u32); 5] = [(2, 164), (1, 11), (1, 322), (1, 389), (1, 545)];
    tell(domain, id, std::ptr::from_ref(&CallInfo { site: 0, rest: [0; 8] }).cast());
    if CONTEXT_ENDS.contains(&(domain, id)) {
        work::destroy_context();
    }
    tell(domain, id, std::ptr::from_ref(&CallInfo { site: 1, rest: [0; 8] }).cast());
}

/// `CUpti_NvtxData`.
#[repr(C)]
struct NvtxInfo {
    name: *const c_char,
    arguments: *const c_void,
    result: *const c_void,
}

pub(crate) fn nvtx(id: u32, arguments: *const c_void, result: *const c_void) {
    const NVTX: u32 = 5;
    tell(NVTX, id, std::ptr::from_ref(&NvtxInfo { name: c"nvtx".as_ptr(), arguments, result }).cast());
}
