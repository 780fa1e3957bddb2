//! Calls of the program that the recorder is told of while they happen (CUPTI's callback API). Only the few calls below
//! are asked for, so all others cost nothing more.

use super::{Shared, shared};
use crate::collector::spooler::{DRIVER_DOMAIN, RUNTIME_DOMAIN};
use cupti_sys::bindings as sys;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// What happens in the program, on the thread that is told of it, inside the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// `cudaProfilerStart` or `cuProfilerStart` is about to return.
    ProfilerStarted,
    /// `cudaProfilerStop` or `cuProfilerStop` begins.
    ProfilerStops,
    /// An NVTX range was pushed on this thread's stack of the domain.
    RangePushed {
        /// The domain's handle; 0 is the default domain.
        domain: usize,
        /// Its text.
        text: RangeText<'a>,
    },
    /// The innermost NVTX range of this thread and domain was popped.
    RangePopped {
        /// The domain's handle.
        domain: usize,
    },
    /// An NVTX range that belongs to no thread was started.
    RangeStarted {
        /// Its id.
        id: u64,
        /// Its text.
        text: RangeText<'a>,
    },
    /// It was ended.
    RangeEnded {
        /// Its id.
        id: u64,
    },
    /// A text was registered, to be named by its handle.
    TextRegistered {
        /// The handle.
        handle: usize,
        /// The text.
        text: &'a CStr,
    },
}

/// The text of an NVTX range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeText<'a> {
    /// As it is.
    Text(&'a CStr),
    /// Registered before, under this handle.
    Registered(usize),
    /// None, or in wide characters, which nobody uses on Linux.
    Other,
}

/// A group of calls to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// The start and stop of the profiler API.
    Profiler,
    /// NVTX ranges.
    Ranges,
}

/// What is to be done when something happens. It runs inside calls of the program: it must be quick, call no CUDA, and
/// wait for no lock that another thread may hold in such a call.
pub type Listener = fn(&Event<'_>);

pub(super) static LISTENER: OnceLock<Listener> = OnceLock::new();

type Id = (u32, u32);

const PROFILER_START: [Id; 2] = [
    (RUNTIME_DOMAIN, sys::CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000),
    (DRIVER_DOMAIN, sys::CUPTI_DRIVER_TRACE_CBID_cuProfilerStart),
];
const PROFILER_STOP: [Id; 2] = [
    (RUNTIME_DOMAIN, sys::CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000),
    (DRIVER_DOMAIN, sys::CUPTI_DRIVER_TRACE_CBID_cuProfilerStop),
];
/// What destroys contexts. Records that were not fetched go with a context.
pub(super) const CONTEXT_ENDS: [Id; 5] = [
    (RUNTIME_DOMAIN, sys::CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020),
    (DRIVER_DOMAIN, sys::CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy),
    (DRIVER_DOMAIN, sys::CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2),
    (DRIVER_DOMAIN, sys::CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset),
    (DRIVER_DOMAIN, sys::CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxReset_v2),
];

/// `CUPTI_CBID_NVTX_*` of `cupti_nvtx_cbid.h`, the same from 12.0 to 13.5.
mod nvtx {
    pub(super) const START_A: u32 = 4;
    pub(super) const START_EX: u32 = 6;
    pub(super) const END: u32 = 7;
    pub(super) const PUSH_A: u32 = 8;
    pub(super) const PUSH_EX: u32 = 10;
    pub(super) const POP: u32 = 11;
    pub(super) const DOMAIN_START_EX: u32 = 31;
    pub(super) const DOMAIN_END: u32 = 32;
    pub(super) const DOMAIN_PUSH_EX: u32 = 33;
    pub(super) const DOMAIN_POP: u32 = 34;
    pub(super) const REGISTER_A: u32 = 39;
    pub(super) const ALL: [u32; 11] = [
        START_A,
        START_EX,
        END,
        PUSH_A,
        PUSH_EX,
        POP,
        DOMAIN_START_EX,
        DOMAIN_END,
        DOMAIN_PUSH_EX,
        DOMAIN_POP,
        REGISTER_A,
    ];
}

impl Watch {
    pub(super) fn ids(self) -> Vec<Id> {
        match self {
            Self::Profiler => PROFILER_START.into_iter().chain(PROFILER_STOP).collect(),
            Self::Ranges => nvtx::ALL.into_iter().map(|id| (sys::CUPTI_CB_DOMAIN_NVTX, id)).collect(),
        }
    }
}

/// `CUpti_CallbackFunc`.
///
/// # Safety
/// Called by CUPTI, with what belongs to the domain and the id.
pub(super) unsafe extern "C" fn callback(_data: *mut c_void, domain: u32, id: u32, info: *const c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if shared::is_forked() || info.is_null() {
            return;
        }
        if CONTEXT_ENDS.contains(&(domain, id)) {
            // SAFETY: CUPTI gives its data of an API call.
            if unsafe { enters(info) } {
                shared::SHARED.get().map(Shared::fetch);
            }
            return;
        }
        let Some(listener) = LISTENER.get() else { return };
        // SAFETY: as the caller says.
        if let Some(event) = unsafe { event(domain, id, info) } {
            listener(&event);
        }
    }));
}

/// Whether a call begins, rather than ends.
///
/// # Safety
/// `info` is a `CUpti_CallbackData`.
unsafe fn enters(info: *const c_void) -> bool {
    // SAFETY: it starts with the call site.
    unsafe { info.cast::<u32>().read() == sys::CUPTI_API_ENTER }
}

/// # Safety
/// `info` is what CUPTI gives for the domain and the id: a `CUpti_CallbackData` or a `CUpti_NvtxData`.
unsafe fn event<'a>(domain: u32, id: u32, info: *const c_void) -> Option<Event<'a>> {
    match domain {
        DRIVER_DOMAIN | RUNTIME_DOMAIN => {
            // SAFETY: as the caller says.
            let enters = unsafe { enters(info) };
            match (domain, id) {
                call if PROFILER_START.contains(&call) && !enters => Some(Event::ProfilerStarted),
                call if PROFILER_STOP.contains(&call) && enters => Some(Event::ProfilerStops),
                _ => None,
            }
        }
        // SAFETY: as the caller says.
        sys::CUPTI_CB_DOMAIN_NVTX => unsafe { range_event(id, &*info.cast()) },
        _ => None,
    }
}

/// `CUpti_NvtxData`.
#[repr(C)]
struct NvtxData {
    name: *const c_char,
    /// A structure with the call's arguments (`generated_nvtx_meta.h`): each one pointer-sized, in order.
    arguments: *const usize,
    returned: *const u64,
}

/// `nvtxEventAttributes_t` of versions 1 to 3.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: usize,
}

/// # Safety
/// The data are those of an NVTX call with this id.
unsafe fn range_event<'a>(id: u32, data: &NvtxData) -> Option<Event<'a>> {
    // SAFETY: there are as many arguments as the call has.
    let argument = |place: usize| unsafe { data.arguments.add(place).read() };
    // SAFETY: where a call returns something, that is a range's id or a handle.
    let returned = || unsafe { data.returned.as_ref() }.copied();
    // SAFETY: where it is used, the argument is a text of the program.
    let text = |place| unsafe { text(argument(place)) };
    // SAFETY: where it is used, the argument is the range's attributes.
    let attributes = |place| unsafe { attributes_text(argument(place)) };
    Some(match id {
        nvtx::PUSH_A => Event::RangePushed { domain: 0, text: text(0).map_or(RangeText::Other, RangeText::Text) },
        nvtx::PUSH_EX => Event::RangePushed { domain: 0, text: attributes(0) },
        nvtx::DOMAIN_PUSH_EX => Event::RangePushed { domain: argument(0), text: attributes(1) },
        nvtx::POP => Event::RangePopped { domain: 0 },
        nvtx::DOMAIN_POP => Event::RangePopped { domain: argument(0) },
        nvtx::START_A => {
            Event::RangeStarted { id: returned()?, text: text(0).map_or(RangeText::Other, RangeText::Text) }
        }
        nvtx::START_EX => Event::RangeStarted { id: returned()?, text: attributes(0) },
        nvtx::DOMAIN_START_EX => Event::RangeStarted { id: returned()?, text: attributes(1) },
        nvtx::END => Event::RangeEnded { id: argument(0) as u64 },
        nvtx::DOMAIN_END => Event::RangeEnded { id: argument(1) as u64 },
        nvtx::REGISTER_A => Event::TextRegistered { handle: usize::try_from(returned()?).ok()?, text: text(1)? },
        _ => return None,
    })
}

/// # Safety
/// `address` is 0 or that of a terminated text.
unsafe fn text<'a>(address: usize) -> Option<&'a CStr> {
    // SAFETY: as the caller says.
    (address != 0).then(|| unsafe { CStr::from_ptr(address as *const c_char) })
}

/// # Safety
/// `address` is 0 or that of an `nvtxEventAttributes_t`.
unsafe fn attributes_text<'a>(address: usize) -> RangeText<'a> {
    /// `NVTX_MESSAGE_TYPE_ASCII` and `NVTX_MESSAGE_TYPE_REGISTERED`.
    const ASCII: i32 = 1;
    const REGISTERED: i32 = 3;
    // SAFETY: as the caller says.
    let Some(attributes) = (unsafe { (address as *const Attributes).as_ref() }) else { return RangeText::Other };
    if usize::from(attributes.size) < size_of::<Attributes>() {
        return RangeText::Other;
    }
    match attributes.message_type {
        // SAFETY: the message is a text by its type.
        ASCII => unsafe { text(attributes.message) }.map_or(RangeText::Other, RangeText::Text),
        REGISTERED => RangeText::Registered(attributes.message),
        _ => RangeText::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<'a>(id: u32, arguments: &[usize], returned: Option<&u64>) -> Option<Event<'a>> {
        let data = NvtxData {
            name: std::ptr::null(),
            arguments: arguments.as_ptr(),
            returned: returned.map_or(std::ptr::null(), std::ptr::from_ref),
        };
        // SAFETY: the tests give the arguments of the call.
        unsafe { event(sys::CUPTI_CB_DOMAIN_NVTX, id, (&raw const data).cast()) }
    }

    #[test]
    fn ranges_are_told_with_their_text() {
        let name = c"step";
        let address = name.as_ptr() as usize;
        let with = |message_type, message| Attributes {
            version: 3,
            size: 48,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type,
            message,
        };
        let (plain, registered, wide) = (with(1, address), with(3, 77), with(2, address));
        let at = |attributes: &Attributes| std::ptr::from_ref(attributes) as usize;
        let text = RangeText::Text(name);
        assert_eq!(told(8, &[address], None), Some(Event::RangePushed { domain: 0, text }));
        assert_eq!(told(8, &[0], None), Some(Event::RangePushed { domain: 0, text: RangeText::Other }));
        assert_eq!(told(10, &[at(&plain)], None), Some(Event::RangePushed { domain: 0, text }));
        assert_eq!(told(33, &[5, at(&plain)], None), Some(Event::RangePushed { domain: 5, text }));
        let pushed = Event::RangePushed { domain: 5, text: RangeText::Registered(77) };
        assert_eq!(told(33, &[5, at(&registered)], None), Some(pushed));
        assert_eq!(told(33, &[5, at(&wide)], None), Some(Event::RangePushed { domain: 5, text: RangeText::Other }));
        assert_eq!(told(34, &[5], None), Some(Event::RangePopped { domain: 5 }));
        assert_eq!(told(31, &[5, at(&plain)], Some(&9)), Some(Event::RangeStarted { id: 9, text }));
        assert_eq!(told(32, &[5, 9], None), Some(Event::RangeEnded { id: 9 }));
        assert_eq!(told(39, &[5, address], Some(&77)), Some(Event::TextRegistered { handle: 77, text: name }));
        assert_eq!(told(39, &[5, address], None), None, "without an answer there is no handle");
        assert_eq!(told(1, &[address], None), None, "a mark");
    }

    #[test]
    fn the_profiler_starts_when_its_call_ends_and_stops_when_it_begins() {
        let told = |domain, id, site: u32| {
            let info = [u64::from(site); 9];
            // SAFETY: a `CUpti_CallbackData` has 72 bytes and starts with the site.
            unsafe { event(domain, id, info.as_ptr().cast()) }
        };
        for (domain, id) in PROFILER_START {
            assert_eq!((told(domain, id, 0), told(domain, id, 1)), (None, Some(Event::ProfilerStarted)));
        }
        for (domain, id) in PROFILER_STOP {
            assert_eq!((told(domain, id, 0), told(domain, id, 1)), (Some(Event::ProfilerStops), None));
        }
        assert_eq!(told(RUNTIME_DOMAIN, 211, 1), None);
    }
}
