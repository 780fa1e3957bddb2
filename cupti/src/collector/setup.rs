//! Switching CUPTI on.

use super::kinds::{self, Need, version};
use super::spooler::{DRIVER_DOMAIN, RUNTIME_DOMAIN, callback_name};
use super::{Config, RecorderError, shared, watch};
use crate::decode::SizeTable;
use crate::loader::Cupti;
use cupti_sys::api::SubscriberParams;
use cupti_sys::{Api, bindings as sys};
use serde::Serialize;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A subscription, which keeps others from taking the buffers away unseen.
#[derive(Debug)]
pub(super) struct Setup {
    subscriber: AtomicPtr<c_void>,
}

impl Setup {
    pub(super) fn subscribe(cupti: &Cupti) -> Result<Self, RecorderError> {
        let api = &cupti.api;
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: a `Cupti` means that a driver is there; the callback lives as long as the process.
        let result = unsafe { (api.subscribe)(&raw mut subscriber, Some(watch::callback), std::ptr::null_mut()) };
        match result {
            0 => Ok(Self { subscriber: AtomicPtr::new(subscriber) }),
            sys::CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => Err(RecorderError::Busy { holder: holder(cupti) }),
            result => Err(refused(api, "cuptiSubscribe", result)),
        }
    }

    /// Asks to be told of a call. What a version does not know is not called there either.
    pub(super) fn watch(&self, api: &Api, (domain, id): (u32, u32)) {
        let subscriber = self.subscriber.load(Ordering::Acquire);
        if !subscriber.is_null() {
            // SAFETY: the handle is from `subscribe`. Nobody else enables callbacks at the same time: that is done while
            // the subscription is being set up, or under the lock of whoever holds it.
            unsafe { (api.enable_callback)(1, subscriber, domain, id) };
        }
    }

    /// Gives the subscription back, once.
    pub(super) fn give_up(&self, api: &Api) {
        let subscriber = self.subscriber.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !subscriber.is_null() {
            // SAFETY: the handle is from `subscribe`.
            unsafe { (api.unsubscribe)(subscriber) };
        }
    }
}

fn refused(api: &Api, call: &str, result: u32) -> RecorderError {
    // SAFETY: an `Api` in use means that a driver is there.
    let name = unsafe { api.result_name(result) };
    RecorderError::Cupti { call: call.to_owned(), result, name }
}

/// The name of the tool that has the subscription, where CUPTI tells.
fn holder(cupti: &Cupti) -> Option<String> {
    /// `CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN` twice.
    const ROOM: usize = 128;
    let subscribe_v2 = cupti.api.subscribe_v2?;
    let mut name: [c_char; ROOM] = [0; ROOM];
    let whole = size_of::<SubscriberParams>();
    let mut params = SubscriberParams {
        struct_size: if cupti.version < version::CUDA_13_2 { whole - 8 } else { whole },
        subscriber_name: c"bubblescope".as_ptr(),
        old_subscriber_name: name.as_mut_ptr(),
        old_subscriber_size: ROOM - 1,
        allow_multiple_subscribers: 0,
        padding: [0; 7],
    };
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: all pointers live through the call, and the structure says how long it is.
    let result =
        unsafe { subscribe_v2(&raw mut subscriber, Some(watch::callback), std::ptr::null_mut(), &raw mut params) };
    if result == 0 {
        // It went away in between. The error stands; nothing is left behind.
        // SAFETY: the handle is from the call above.
        unsafe { (cupti.api.unsubscribe)(subscriber) };
    }
    // SAFETY: the last byte is still zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
    (!name.is_empty()).then(|| name.into_owned())
}

/// One setting and what CUPTI said to it.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    name: &'static str,
    value: u64,
    result: u32,
}

/// Sets everything that has to be set before the callbacks are registered. Nothing of it is worth failing for.
pub(super) fn attributes(cupti: &Cupti, config: &Config) -> Vec<Setting> {
    let api = &cupti.api;
    let mut settings = Vec::new();
    let mut note = |name, value: usize, result| settings.push(Setting { name, value: value as u64, result });
    // The ids of `gettid`, not cut-off pthread handles.
    let thread_ids = sys::CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
    // SAFETY: a `Cupti` means that a driver is there.
    note("thread_id_type", 1, unsafe { (api.set_thread_id_type)(thread_ids) });
    note("zeroed_buffers", 1, set(api, sys::CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 1_u8));
    // The per-thread flush of 12.6 is not thread-safe, and 12.6 GA cannot be told from its update.
    if cupti.version >= version::CUDA_12_8 {
        note("per_thread_buffers", 1, set(api, sys::CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1_u8));
    }
    let (size, count) = (config.device_buffer_bytes, config.device_buffers);
    note("device_buffer_bytes", size, set(api, sys::CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, size));
    // The limit first: it has to be above the other.
    let limit = config.device_buffer_limit;
    note("device_buffer_limit", limit, set(api, sys::CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, limit));
    note("device_buffers", count, set(api, sys::CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, count));
    if let Some(all_syncs) = api.activity_enable_all_sync_records {
        // The headers disagree about the default.
        let value = u8::from(config.all_syncs);
        // SAFETY: as above.
        note("all_syncs", value.into(), unsafe { all_syncs(value) });
    }
    if let Some(device_times) = api.activity_enable_cuda_event_device_timestamps
        && config.events
    {
        // SAFETY: as above.
        note("event_device_times", 1, unsafe { device_times(1) });
    }
    settings
}

fn set<T>(api: &Api, attribute: sys::CUpti_ActivityAttribute, mut value: T) -> u32 {
    let mut size = size_of::<T>();
    // SAFETY: the size is that of the value, whose type is the attribute's by the header.
    unsafe { (api.activity_set_attribute)(attribute, &raw mut size, (&raw mut value).cast::<c_void>()) }
}

/// What was switched on.
#[derive(Debug, Default)]
pub(super) struct Enabled {
    /// The kinds that are recorded.
    pub(super) kinds: Vec<u32>,
    /// Kinds that the library refused, with its result.
    pub(super) refused: Vec<(u32, u32)>,
    /// Calls that are not recorded.
    pub(super) left_out: Vec<String>,
}

/// Registers the callbacks and switches the kinds on.
pub(super) fn enable(api: &Api, version: u32, config: &Config) -> Result<Enabled, RecorderError> {
    // SAFETY: an `Api` in use means that a driver is there; the callbacks live as long as the process.
    let result =
        unsafe { (api.activity_register_callbacks)(Some(shared::buffer_requested), Some(shared::buffer_completed)) };
    if result != 0 {
        return Err(refused(api, "cuptiActivityRegisterCallbacks", result));
    }
    let mut enabled = Enabled::default();
    for (kind, need) in kinds::wanted(config, version) {
        // SAFETY: as above.
        let result = unsafe { (api.activity_enable)(kind) };
        match (result, need) {
            (0, _) => enabled.kinds.push(kind),
            (_, Need::May) => enabled.refused.push((kind, result)),
            (_, Need::Must) => {
                for &kind in &enabled.kinds {
                    // SAFETY: as above.
                    unsafe { (api.activity_disable)(kind) };
                }
                return Err(refused(api, &format!("cuptiActivityEnable of kind {kind}"), result));
            }
        }
    }
    // After the kinds: enabling a kind switches all its calls on again.
    if !config.all_apis {
        for (domain, switch) in
            [(DRIVER_DOMAIN, api.activity_enable_driver_api), (RUNTIME_DOMAIN, api.activity_enable_runtime_api)]
        {
            let Some(switch) = switch else { continue };
            leave_out_noise(api, domain, switch, &mut enabled.left_out);
        }
    }
    Ok(enabled)
}

fn leave_out_noise(api: &Api, domain: u32, switch: unsafe extern "C" fn(u32, u8) -> u32, left_out: &mut Vec<String>) {
    /// Beyond every id of 13.5.
    const LAST_CBID: u32 = 2000;
    for cbid in 1..=LAST_CBID {
        let Some(name) = callback_name(api, domain, cbid).and_then(|name| name.to_str().ok()) else { continue };
        // SAFETY: an `Api` in use means that a driver is there.
        if kinds::is_noise(name) && unsafe { switch(cbid, 0) } == 0 {
            left_out.push(name.to_owned());
        }
    }
}

/// The record sizes of this version. The library is asked where it can tell (13.2 and later).
pub(super) fn sizes(api: &Api, version: u32, kinds: &[u32]) -> SizeTable {
    let mut table = SizeTable::for_version(version);
    let Some(get_size) = api.activity_get_struct_size else { return table };
    for &kind in kinds {
        let mut size = 0;
        // SAFETY: an `Api` in use means that a driver is there; the pointer is valid.
        let result = unsafe { get_size(kind, version, &raw mut size) };
        if result == 0
            && let Ok(size) = u32::try_from(size)
        {
            table.set(kind, size);
        }
    }
    table
}
