//! What happened, and which of CUPTI's rules were broken.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    /// Records written into buffers that were completed with a size above zero.
    Records,
    /// Launches that found no room for their records.
    Lost,
    /// Buffers that were not zero though the client said they are.
    DirtyBuffers,
    /// Calls into CUPTI from within a buffer callback.
    Reentered,
    /// Buffers that were asked for twice without being given back: two threads write into one.
    Shared,
    /// Records dropped since the client last asked.
    Dropped,
    /// Calls that were switched off one by one.
    Filtered,
    /// Of these, calls switched off while their kind was not on, which has no effect.
    FilteredEarly,
    /// The client asked for thread ids of the system.
    SystemThreadIds,
    /// The client said whether it wants all synchronisation records.
    AllSyncsSet,
    /// Attribute 9.
    PerThread,
    /// Attribute 0.
    DeviceBufferBytes,
    /// Attribute 2, once it is set.
    DeviceBufferLimit,
    /// Attribute 6.
    DeviceBuffers,
    /// NVTX was handed over.
    Nvtx,
    /// Kinds that are on.
    KindsOn,
    /// Kernels are recorded.
    Recording,
    /// Callbacks that are on.
    CallbacksOn,
    /// The client is subscribed.
    Subscribed,
}

const NAMES: [&str; 19] = [
    "records",
    "lost",
    "dirty_buffers",
    "reentered",
    "shared",
    "dropped",
    "filtered",
    "filtered_early",
    "system_thread_ids",
    "all_syncs_set",
    "per_thread",
    "device_buffer_bytes",
    "device_buffer_limit",
    "device_buffers",
    "nvtx",
    "kinds_on",
    "recording",
    "callbacks_on",
    "subscribed",
];

static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

impl Counter {
    pub(crate) fn add(self, n: u64) {
        COUNTS[self as usize].fetch_add(n, Ordering::SeqCst);
    }

    pub(crate) fn set(self, n: u64) {
        COUNTS[self as usize].store(n, Ordering::SeqCst);
    }

    pub(crate) fn get(self) -> u64 {
        COUNTS[self as usize].load(Ordering::SeqCst)
    }

    pub(crate) fn take(self) -> u64 {
        COUNTS[self as usize].swap(0, Ordering::SeqCst)
    }

    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        const ALL: [Counter; NAMES.len()] = [
            Counter::Records,
            Counter::Lost,
            Counter::DirtyBuffers,
            Counter::Reentered,
            Counter::Shared,
            Counter::Dropped,
            Counter::Filtered,
            Counter::FilteredEarly,
            Counter::SystemThreadIds,
            Counter::AllSyncsSet,
            Counter::PerThread,
            Counter::DeviceBufferBytes,
            Counter::DeviceBufferLimit,
            Counter::DeviceBuffers,
            Counter::Nvtx,
            Counter::KindsOn,
            Counter::Recording,
            Counter::CallbacksOn,
            Counter::Subscribed,
        ];
        ALL.into_iter().find(|&counter| NAMES[counter as usize].as_bytes() == name)
    }
}

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a callback of the client.
pub(crate) fn callback<T>(call: impl FnOnce() -> T) -> T {
    IN_CALLBACK.set(true);
    let result = call();
    IN_CALLBACK.set(false);
    result
}

/// Notes it when the client is in one of its callbacks.
pub(crate) fn outside_callback() {
    if IN_CALLBACK.get() {
        Counter::Reentered.add(1);
    }
}
