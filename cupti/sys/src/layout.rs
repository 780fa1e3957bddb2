//! The generated types have the layout that libcupti writes: sizes and offsets below were measured with a C compiler
//! on the headers of CUPTI 13.5 (and, for kinds up to 13.1, seen as strides of the library itself).

use std::mem::{align_of, offset_of, size_of};

use crate::bindings::*;

#[test]
fn records_have_the_sizes_of_cupti_13_5() {
    macro_rules! sizes {
        ($($record:ident $size:literal)*) => {
            $(assert_eq!((size_of::<$record>(), align_of::<$record>()), ($size, 8), stringify!($record));)*
        };
    }
    sizes! {
        CUpti_ActivityKernel13 248
        CUpti_ActivityMemcpy7 112
        CUpti_ActivityMemcpyPtoP4 96
        CUpti_ActivityMemset5 104
        CUpti_ActivityAPI 40
        CUpti_ActivitySynchronization2 56
        CUpti_ActivityCudaEvent3 80
        CUpti_ActivityGraphTrace2 56
        CUpti_ActivityDeviceGraphTrace 56
        CUpti_ActivityGraphHostNode 56
        CUpti_ActivityHostLaunch 48
        CUpti_ActivityOverhead3 56
        CUpti_ActivityContext4 40
        CUpti_ActivityDevice6 192
        CUpti_ActivityMemory4 128
        CUpti_ActivityMarker2 56
        CUpti_ActivityMarkerData2 40
        CUpti_ActivityExternalCorrelation 24
        CUpti_ActivityJit2 72
        CUpti_ActivityName 32
        CUpti_CallbackData 72
        CUpti_SubscriberParams 40
    }
    assert_eq!(size_of::<CUpti_ActivityStream>(), 24);
}

#[test]
fn fields_stand_where_cupti_13_5_writes_them() {
    macro_rules! offsets {
        ($($record:ident.$field:ident $offset:literal)*) => {
            $(assert_eq!(offset_of!($record, $field), $offset, stringify!($record.$field));)*
        };
    }
    offsets! {
        CUpti_ActivityKernel13.start 16
        CUpti_ActivityKernel13.correlationId 92
        CUpti_ActivityKernel13.name 104
        CUpti_ActivityKernel13.graphNodeId 144
        CUpti_ActivityKernel13.sourceGraphNodeId 240
        CUpti_ActivityMemcpy7.correlationId 44
        CUpti_ActivityMemcpy7.sourceGraphNodeId 104
        CUpti_ActivityMemcpyPtoP4.correlationId 60
        CUpti_ActivityMemset5.graphNodeId 64
        CUpti_ActivitySynchronization2.cudaEventSyncId 40
        CUpti_ActivityCudaEvent3.deviceTimestamp 40
        CUpti_ActivityDevice6.uuid 120
        CUpti_ActivityDevice6.name 136
        CUpti_ActivityMemory4.source 120
        CUpti_ActivityMarker2.name 40
        CUpti_CallbackData.functionName 8
        CUpti_CallbackData.correlationId 64
    }
}

#[test]
fn numbers_are_those_of_the_headers() {
    assert_eq!(CUPTI_API_VERSION, 130_500);
    assert_eq!(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 10);
    assert_eq!(CUPTI_ACTIVITY_KIND_MEMCPY2, 22);
    assert_eq!(CUPTI_ACTIVITY_KIND_GREEN_CONTEXT, 59);
    assert_eq!(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39);
    assert_eq!(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 5);
    assert_eq!(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 211);
    assert_eq!(CUPTI_DRIVER_TRACE_CBID_cuDeviceGetAttribute, 9);
}
