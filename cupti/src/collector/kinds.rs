//! What is switched on, by what the loaded version offers.

use super::Config;
use crate::spool::Graphs;

/// `cuptiGetVersion` of CUDA releases which changed what can be asked for (from 13.0 on: `10000 * major + 100 * minor`).
pub(super) mod version {
    pub(in crate::collector) const CUDA_12_8: u32 = 26;
    pub(in crate::collector) const CUDA_12_9: u32 = 27;
    /// Switching kernels off may deadlock there, which 130001 mends.
    pub(in crate::collector) const CUDA_13_0: u32 = 130_000;
    pub(in crate::collector) const CUDA_13_1: u32 = 130_100;
    pub(in crate::collector) const CUDA_13_2: u32 = 130_200;
}

/// `CUpti_ActivityKind`.
pub(super) mod kind {
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL as CONCURRENT_KERNEL;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_CONTEXT as CONTEXT;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_CUDA_EVENT as CUDA_EVENT;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_DEVICE as DEVICE;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_DRIVER as DRIVER;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE as GRAPH_HOST_NODE;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_GRAPH_TRACE as GRAPH_TRACE;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_GREEN_CONTEXT as GREEN_CONTEXT;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_HOST_LAUNCH as HOST_LAUNCH;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API as INTERNAL_LAUNCH_API;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_JIT as JIT;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_MARKER as MARKER;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_MARKER_DATA as MARKER_DATA;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_MEMCPY as MEMCPY;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_MEMORY_POOL as MEMORY_POOL;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_MEMORY2 as MEMORY2;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_MEMSET as MEMSET;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_NAME as NAME;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_OVERHEAD as OVERHEAD;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_RUNTIME as RUNTIME;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_STREAM as STREAM;
    pub(in crate::collector) use cupti_sys::bindings::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION as SYNCHRONIZATION;
}

/// Whether a recording makes sense without a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Without it recording is refused.
    Must,
    /// Without it the recording says less.
    May,
}

/// The kinds to switch on, in this order.
pub(super) fn wanted(config: &Config, version: u32) -> Vec<(u32, Need)> {
    use Need::{May, Must};
    let mut kinds = vec![
        (kind::CONCURRENT_KERNEL, Must),
        (kind::MEMCPY, Must),
        (kind::MEMSET, Must),
        (kind::RUNTIME, Must),
        (kind::DRIVER, Must),
        (kind::SYNCHRONIZATION, Must),
        (kind::OVERHEAD, May),
        (kind::DEVICE, May),
        (kind::CONTEXT, May),
        (kind::STREAM, May),
        (kind::INTERNAL_LAUNCH_API, May),
        (kind::JIT, May),
    ];
    if config.graphs == Graphs::Graph {
        kinds.push((kind::GRAPH_TRACE, Must));
    }
    if version >= version::CUDA_13_1 {
        kinds.extend([(kind::HOST_LAUNCH, May), (kind::GRAPH_HOST_NODE, May)]);
    }
    if version >= version::CUDA_13_2 {
        kinds.push((kind::GREEN_CONTEXT, May));
    }
    if config.events && version >= version::CUDA_12_9 {
        kinds.push((kind::CUDA_EVENT, May));
    }
    if config.nvtx {
        // MARKER has to come before MARKER_DATA.
        kinds.extend([(kind::MARKER, Must), (kind::MARKER_DATA, May), (kind::NAME, May)]);
    }
    if config.memory {
        kinds.extend([(kind::MEMORY2, Must), (kind::MEMORY_POOL, May)]);
    }
    kinds
}

/// Calls that only ask for or set a state of the host, take no time worth knowing and come in great numbers.
/// `cuKernelGetName` is CUPTI's own, once for each launch; the call configuration is pushed and popped around each
/// `<<<>>>`. Calls that launch, copy, wait, allocate, load or poll are never among them, nor those that are known to be
/// slow (`cudaGetDeviceProperties`, `cudaMemGetInfo`): each may be the cause of idle time.
const NOISE: &[&str] = &[
    "__cudaGetKernel",
    "__cudaGetProcAddress",
    "__cudaPopCallConfiguration",
    "__cudaPushCallConfiguration",
    "cudaDeviceGetAttribute",
    "cudaDeviceGetDefaultMemPool",
    "cudaDeviceGetMemPool",
    "cudaDeviceGetStreamPriorityRange",
    "cudaDriverGetVersion",
    "cudaFuncGetAttributes",
    "cudaFuncGetName",
    "cudaFuncGetParamInfo",
    "cudaGetDevice",
    "cudaGetDeviceCount",
    "cudaGetDeviceFlags",
    "cudaGetDriverEntryPoint",
    "cudaGetDriverEntryPointByVersion",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetExportTable",
    "cudaGetFuncBySymbol",
    "cudaGetKernel",
    "cudaGetLastError",
    "cudaMemPoolGetAttribute",
    "cudaOccupancyAvailableDynamicSMemPerBlock",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cudaOccupancyMaxActiveClusters",
    "cudaOccupancyMaxPotentialClusterSize",
    "cudaPeekAtLastError",
    "cudaPointerGetAttributes",
    "cudaRuntimeGetVersion",
    "cudaSetDevice",
    "cudaStreamGetCaptureInfo",
    "cudaStreamGetDevice",
    "cudaStreamGetFlags",
    "cudaStreamGetId",
    "cudaStreamGetPriority",
    "cudaStreamIsCapturing",
    "cudaThreadExchangeStreamCaptureMode",
    "cuCtxGetApiVersion",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetFlags",
    "cuCtxGetId",
    "cuCtxGetStreamPriorityRange",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetMemPool",
    "cuDevicePrimaryCtxGetState",
    "cuDriverGetVersion",
    "cuFuncGetAttribute",
    "cuFuncGetModule",
    "cuFuncGetName",
    "cuFuncGetParamInfo",
    "cuFuncIsLoaded",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuKernelGetAttribute",
    "cuKernelGetLibrary",
    "cuKernelGetName",
    "cuKernelGetParamInfo",
    "cuMemPoolGetAttribute",
    "cuOccupancyAvailableDynamicSMemPerBlock",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cuOccupancyMaxActiveClusters",
    "cuOccupancyMaxPotentialBlockSize",
    "cuOccupancyMaxPotentialBlockSizeWithFlags",
    "cuOccupancyMaxPotentialClusterSize",
    "cuPointerGetAttribute",
    "cuPointerGetAttributes",
    "cuStreamGetCaptureInfo",
    "cuStreamGetCtx",
    "cuStreamGetDevice",
    "cuStreamGetFlags",
    "cuStreamGetId",
    "cuStreamGetPriority",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
];

/// Whether a call of this name, with its version suffix, is left out by default.
pub(super) fn is_noise(name: &str) -> bool {
    NOISE.contains(&without_suffix(name))
}

/// `cudaGetDevice` of `cudaGetDevice_v3020`, `cuCtxGetCurrent` of `cuCtxGetCurrent`, `cudaMemset` of
/// `cudaMemset_ptds_v7000`.
fn without_suffix(name: &str) -> &str {
    let mut name = name;
    loop {
        let Some((start, suffix)) = name.rsplit_once('_') else { return name };
        let version = suffix
            .strip_prefix('v')
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        if !version && suffix != "ptsz" && suffix != "ptds" {
            return name;
        }
        name = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enabled(config: &Config, version: u32) -> Vec<u32> {
        wanted(config, version).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn kinds_follow_the_version() {
        let config = Config { events: true, ..Config::default() };
        assert!(!enabled(&config, 26).contains(&kind::CUDA_EVENT), "not to be had by itself before 12.9");
        assert!(enabled(&config, 27).contains(&kind::CUDA_EVENT));
        assert!(!enabled(&config, 130_001).contains(&kind::HOST_LAUNCH));
        assert!(enabled(&config, 130_101).contains(&kind::HOST_LAUNCH));
        assert!(!enabled(&config, 130_101).contains(&kind::GREEN_CONTEXT));
        assert!(enabled(&config, 130_202).contains(&kind::GREEN_CONTEXT));
    }

    #[test]
    fn the_names_of_noise_say_that_they_only_ask() {
        // A name from the list that is none of these has to be looked at again.
        let harmless =
            ["Get", "Is", "Peek", "Occupancy", "Set", "CallConfiguration", "Current", "ExchangeStreamCapture"];
        let suspect = ["Launch", "Memcpy", "Memset", "Synchronize", "Wait", "Malloc", "Alloc", "Free", "Load", "Query"];
        for name in NOISE {
            assert!(harmless.iter().any(|word| name.contains(word)), "{name}");
            assert!(*name == "cuFuncIsLoaded" || !suspect.iter().any(|word| name.contains(word)), "{name}");
        }
    }

    #[test]
    fn marker_comes_before_its_data() {
        let kinds = enabled(&Config { nvtx: true, ..Config::default() }, 27);
        let at = |wanted| kinds.iter().position(|&kind| kind == wanted);
        assert!(at(kind::MARKER) < at(kind::MARKER_DATA));
    }

    #[test]
    fn what_may_cause_idle_time_is_never_noise() {
        for name in [
            "cudaGetDevice_v3020",
            "cuCtxGetCurrent",
            "cudaStreamIsCapturing_ptsz_v10000",
            "cuKernelGetName",
            "__cudaPushCallConfiguration_v7000",
            "cuCtxPushCurrent_v2",
        ] {
            assert!(is_noise(name), "{name}");
        }
        for name in [
            "cudaLaunchKernel_v7000",
            "cudaLaunchKernel_ptsz_v7000",
            "cudaEventQuery_v3020",
            "cuStreamQuery",
            "cudaMemcpyAsync_v3020",
            "cudaMalloc_v3020",
            "cuModuleLoadData",
            "cudaGetDevice_v",
            "cudaGetDeviceProperties_v2_v12000",
            "cudaMemGetInfo_v3020",
            "cudaEventElapsedTime_v3020",
            "cudaStreamWaitEvent_v3020",
            "cudaFree_v3020",
            "cuKernelGetFunction",
            "cuCtxSynchronize",
        ] {
            assert!(!is_noise(name), "{name}");
        }
    }
}
