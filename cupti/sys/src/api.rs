//! The functions of one loaded libcupti.
//!
//! What CUDA 12.0 exports is required, everything newer is an `Option`, so that one binary serves 12.0 to 13.5. The
//! signatures are those of `cupti_activity.h`, `cupti_callbacks.h`, `cupti_result.h` and `cupti_version.h`, with
//! enumerations as `u32`. Nothing here calls a function: CUPTI 13.2 recurses until the stack ends when no driver can
//! be loaded, so the caller has to know that there is one first.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};

/// `CUptiResult`.
pub type RawResult = u32;
/// `CUpti_ActivityKind`.
pub type Kind = u32;
/// `CUpti_SubscriberHandle`.
pub type SubscriberHandle = *mut c_void;
/// `CUpti_BuffersCallbackRequestFunc`: `buffer`, `size`, `maxNumRecords`.
pub type BufferRequested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`: `context`, `streamId`, `buffer`, `size`, `validSize`.
pub type BufferCompleted = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// `CUpti_CallbackFunc`: `userdata`, `domain`, `cbid`, `cbdata`.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// `CUpti_SubscriberParams` as CUDA 13.2 and later have it; 13.0 and 13.1 know its first 32 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct SubscriberParams {
    /// Bytes of this structure that are filled in.
    pub struct_size: usize,
    /// Our name; may be null.
    pub subscriber_name: *const c_char,
    /// Where the name of the present holder is written; may be null.
    pub old_subscriber_name: *mut c_char,
    /// Room there; 64 holds every name.
    pub old_subscriber_size: usize,
    /// 1 to allow others beside us (13.3 and later, driver 610 and later).
    pub allow_multiple_subscribers: u8,
    /// Zero.
    pub padding: [u8; 7],
}

/// Why a library cannot be used as CUPTI.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// `dlopen` failed.
    #[error("{path} cannot be loaded: {reason}")]
    Open {
        /// The library.
        path: PathBuf,
        /// What the dynamic loader says.
        reason: String,
    },
    /// It lacks a function that every CUPTI since 12.0 has.
    #[error("{path} is not a CUPTI this program can use: it has no {symbol}")]
    Symbol {
        /// The library.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
    },
}

macro_rules! api {
    (
        required { $( $(#[$doc:meta])* $field:ident = $symbol:literal : $type:ty, )* }
        optional { $( $(#[$odoc:meta])* $ofield:ident = $osymbol:literal : $otype:ty, )* }
    ) => {
        /// The functions of one loaded libcupti. Its library stays loaded for the rest of the process: CUPTI's own
        /// threads may run in it until the end.
        #[derive(Debug)]
        pub struct Api {
            path: PathBuf,
            $( $(#[$doc])* pub $field: $type, )*
            $( $(#[$odoc])* pub $ofield: Option<$otype>, )*
        }

        impl Api {
            /// The functions that must be there.
            pub const REQUIRED: &'static [&'static str] = &[$( $symbol, )*];
            /// The functions that are used where they are there.
            pub const OPTIONAL: &'static [&'static str] = &[$( $osymbol, )*];

            fn from_library(path: PathBuf, library: &Library) -> Result<Self, LoadError> {
                Ok(Self {
                    $( $field: {
                        let address = symbol(library, concat!($symbol, "\0").as_bytes())
                            .ok_or_else(|| LoadError::Symbol { path: path.clone(), symbol: $symbol })?;
                        // SAFETY: the address is not null and is that of the C function with this signature in every
                        // CUPTI from 12.0 to 13.5.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
                    }, )*
                    $( $ofield: symbol(library, concat!($osymbol, "\0").as_bytes()).map(|address| {
                        // SAFETY: as above, in every CUPTI that exports it.
                        unsafe { std::mem::transmute::<*mut c_void, $otype>(address) }
                    }), )*
                    path,
                })
            }
        }
    };
}

api! {
    required {
        /// The API version of this library.
        get_version = "cuptiGetVersion": unsafe extern "C" fn(*mut u32) -> RawResult,
        /// The name of a result.
        get_result_string = "cuptiGetResultString": unsafe extern "C" fn(RawResult, *mut *const c_char) -> RawResult,
        /// The clock of the records, in nanoseconds.
        get_timestamp = "cuptiGetTimestamp": unsafe extern "C" fn(*mut u64) -> RawResult,
        /// The name of a callback id.
        get_callback_name = "cuptiGetCallbackName": unsafe extern "C" fn(u32, u32, *mut *const c_char) -> RawResult,
        /// Registers the one subscriber: handle, callback, user data.
        subscribe = "cuptiSubscribe":
            unsafe extern "C" fn(*mut SubscriberHandle, Option<Callback>, *mut c_void) -> RawResult,
        /// Gives the subscription back.
        unsubscribe = "cuptiUnsubscribe": unsafe extern "C" fn(SubscriberHandle) -> RawResult,
        /// Switches one callback on or off: on, subscriber, domain, id.
        enable_callback = "cuptiEnableCallback":
            unsafe extern "C" fn(u32, SubscriberHandle, u32, u32) -> RawResult,
        /// Sets how thread ids are made (`CUpti_ActivityThreadIdType`).
        set_thread_id_type = "cuptiSetThreadIdType": unsafe extern "C" fn(u32) -> RawResult,
        /// Sets an attribute: attribute, size of the value, value.
        activity_set_attribute = "cuptiActivitySetAttribute":
            unsafe extern "C" fn(u32, *mut usize, *mut c_void) -> RawResult,
        /// Registers the two buffer callbacks.
        activity_register_callbacks = "cuptiActivityRegisterCallbacks":
            unsafe extern "C" fn(Option<BufferRequested>, Option<BufferCompleted>) -> RawResult,
        /// Starts recording a kind.
        activity_enable = "cuptiActivityEnable": unsafe extern "C" fn(Kind) -> RawResult,
        /// Stops recording a kind.
        activity_disable = "cuptiActivityDisable": unsafe extern "C" fn(Kind) -> RawResult,
        /// Asks for buffers: 0 for complete ones, 1 for all.
        activity_flush_all = "cuptiActivityFlushAll": unsafe extern "C" fn(u32) -> RawResult,
        /// The record after the one given, in a buffer: buffer, valid size, record.
        activity_get_next_record = "cuptiActivityGetNextRecord":
            unsafe extern "C" fn(*mut u8, usize, *mut *mut c_void) -> RawResult,
        /// Records dropped since the last call: context, stream, count.
        activity_get_num_dropped_records = "cuptiActivityGetNumDroppedRecords":
            unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> RawResult,
    }
    optional {
        /// 12.2: what went wrong, in words.
        get_error_message = "cuptiGetErrorMessage": unsafe extern "C" fn(RawResult, *mut *const c_char) -> RawResult,
        /// 12.5: whether one driver call is recorded.
        activity_enable_driver_api = "cuptiActivityEnableDriverApi": unsafe extern "C" fn(u32, u8) -> RawResult,
        /// 12.5: whether one runtime call is recorded.
        activity_enable_runtime_api = "cuptiActivityEnableRuntimeApi": unsafe extern "C" fn(u32, u8) -> RawResult,
        /// 12.8: whether queries that found unfinished work give records.
        activity_enable_all_sync_records = "cuptiActivityEnableAllSyncRecords":
            unsafe extern "C" fn(u8) -> RawResult,
        /// 13.0: whether CUDA event records have device times.
        activity_enable_cuda_event_device_timestamps = "cuptiActivityEnableCudaEventDeviceTimestamps":
            unsafe extern "C" fn(u8) -> RawResult,
        /// 13.0: registers a subscriber, and names the present holder.
        subscribe_v2 = "cuptiSubscribe_v2":
            unsafe extern "C" fn(*mut SubscriberHandle, Option<Callback>, *mut c_void, *mut SubscriberParams) -> RawResult,
        /// 13.2: the size of a record: kind, library version, size.
        activity_get_struct_size = "cuptiActivityGetStructSize":
            unsafe extern "C" fn(Kind, u32, *mut usize) -> RawResult,
        /// Takes over NVTX (version 2 and 3 of its injection interface). A result as of every function, where NVTX's own
        /// interface wants 1 for success (CUPTI's documentation, "NVTX").
        nvtx_initialize = "cuptiNvtxInitialize": unsafe extern "C" fn(*mut c_void) -> RawResult,
        /// Takes over NVTX version 3.
        nvtx_initialize2 = "cuptiNvtxInitialize2": unsafe extern "C" fn(*mut c_void) -> RawResult,
    }
}

impl Api {
    /// Loads the library at `path` (or, for a plain file name, the one the dynamic loader finds) and looks its
    /// functions up. The library is never unloaded.
    ///
    /// # Errors
    /// When it cannot be loaded or lacks a required function.
    ///
    /// # Safety
    /// The library's initialisers run; it must be a CUPTI.
    pub unsafe fn load(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: the caller says that it is a CUPTI, whose initialisers touch nothing but the library itself.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| LoadError::Open {
            path: path.to_owned(),
            reason: std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string),
        })?;
        let api = Self::from_library(path.to_owned(), &library);
        if api.is_ok() {
            std::mem::forget(library);
        }
        api
    }

    /// The path it was loaded by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of a result, such as `CUPTI_ERROR_NOT_INITIALIZED`.
    ///
    /// # Safety
    /// A driver must be there: see the module.
    pub unsafe fn result_name(&self, result: RawResult) -> String {
        let mut name = std::ptr::null();
        // SAFETY: the caller vouches for the driver; `name` is a valid place for a pointer.
        if unsafe { (self.get_result_string)(result, &raw mut name) } != 0 || name.is_null() {
            return format!("result {result}");
        }
        // SAFETY: on success CUPTI gives a static, terminated string.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

/// The address of a function, which `name` ends with a zero.
fn symbol(library: &Library, name: &[u8]) -> Option<*mut c_void> {
    // SAFETY: the symbol is only looked up, as a bare address.
    let symbol = unsafe { library.get::<*mut c_void>(name) }.ok()?;
    let address = symbol.into_raw();
    (!address.is_null()).then_some(address)
}
