//! What a CUDA or HIP API call does, told from its name.

use serde::{Deserialize, Serialize};

/// What an API call does, as far as finding bubbles needs to know.
///
/// The class comes from the call's name alone. Whether a given call really blocked is decided from the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiKind {
    /// Launches one kernel.
    Launch,
    /// Launches an instantiated graph.
    GraphLaunch,
    /// Launches a host function on a stream.
    HostFunction,
    /// A copy whose name promises to wait for it (`cudaMemcpy`, `cuMemcpyDtoH`).
    CopyBlocking,
    /// A copy whose name promises not to wait.
    CopyAsync,
    /// A memset whose name has no `Async`.
    MemsetBlocking,
    /// A memset whose name has `Async`.
    MemsetAsync,
    /// Waits for a stream.
    StreamSync,
    /// Waits for everything in a device's context.
    DeviceSync,
    /// Waits for an event on the host.
    EventSync,
    /// Asks whether a stream is done.
    StreamQuery,
    /// Asks whether an event is done.
    EventQuery,
    /// Records an event.
    EventRecord,
    /// Reads the time between two events.
    EventElapsed,
    /// Makes a stream wait for an event, on the device.
    StreamWait,
    /// Creates or destroys events.
    EventManage,
    /// Creates or destroys streams, sets their attributes.
    StreamManage,
    /// Allocates device or pinned memory outside stream order, or reserves, imports or maps it.
    Alloc,
    /// Frees device or pinned memory outside stream order, or unmaps it.
    Free,
    /// Allocates or frees in stream order.
    AllocAsync,
    /// Loads or unloads modules, libraries and their functions.
    ModuleLoad,
    /// Captures, builds, instantiates, updates or destroys graphs.
    GraphBuild,
    /// Initialises, creates, resets or destroys contexts and devices.
    Context,
    /// Starts or stops a profiler.
    Profiler,
    /// Anything else.
    Other,
}

impl ApiKind {
    /// Whether the call launches kernels, one or those of a graph.
    pub const fn launches(self) -> bool {
        matches!(self, Self::Launch | Self::GraphLaunch)
    }

    /// Whether the call submits device work.
    pub const fn submits(self) -> bool {
        matches!(
            self,
            Self::Launch
                | Self::GraphLaunch
                | Self::HostFunction
                | Self::CopyBlocking
                | Self::CopyAsync
                | Self::MemsetBlocking
                | Self::MemsetAsync
        )
    }

    /// Whether the call's only purpose is to wait for device work.
    pub const fn synchronises(self) -> bool {
        matches!(self, Self::StreamSync | Self::DeviceSync | Self::EventSync)
    }

    /// Whether the call asks without waiting.
    pub const fn queries(self) -> bool {
        matches!(self, Self::StreamQuery | Self::EventQuery)
    }

    /// The class of the call named `name`, with or without version suffixes (`cudaLaunchKernel_v7000`,
    /// `cuMemcpyDtoHAsync_v2_ptsz`), CUDA runtime, CUDA driver or HIP.
    pub fn of(name: &str) -> Self {
        let base = base_name(name);
        let Some(stem) = base
            .strip_prefix("cuda")
            .or_else(|| base.strip_prefix("hipModule"))
            .or_else(|| base.strip_prefix("hip"))
            .or_else(|| base.strip_prefix("cu"))
        else {
            return Self::Other;
        };
        if base.starts_with("hipModule") && !stem.starts_with("Launch") {
            return Self::ModuleLoad;
        }
        classify(stem)
    }
}

/// Classifies a name without its `cuda`, `cu` or `hip` prefix.
fn classify(stem: &str) -> ApiKind {
    use ApiKind as K;
    let has = |part: &str| stem.contains(part);
    let starts = |part: &str| stem.starts_with(part);
    if starts("GraphLaunch") {
        return K::GraphLaunch;
    }
    if starts("LaunchHostFunc") || starts("StreamAddCallback") {
        return K::HostFunction;
    }
    if starts("Launch") || starts("ExtLaunch") || starts("ModuleLaunch") || starts("ExtModuleLaunch") {
        return K::Launch;
    }
    if starts("Graph") || starts("StreamBeginCapture") || starts("StreamEndCapture") || starts("StreamUpdateCapture") {
        return K::GraphBuild;
    }
    if starts("StreamSynchronize") {
        return K::StreamSync;
    }
    if starts("DeviceSynchronize") || starts("CtxSynchronize") || starts("ThreadSynchronize") {
        return K::DeviceSync;
    }
    if starts("EventSynchronize") {
        return K::EventSync;
    }
    if starts("StreamQuery") {
        return K::StreamQuery;
    }
    if starts("EventQuery") {
        return K::EventQuery;
    }
    if starts("EventRecord") {
        return K::EventRecord;
    }
    if starts("EventElapsedTime") {
        return K::EventElapsed;
    }
    if starts("StreamWaitEvent") {
        return K::StreamWait;
    }
    if starts("Event") {
        return K::EventManage;
    }
    if starts("MallocAsync")
        || starts("MallocFromPoolAsync")
        || starts("FreeAsync")
        || starts("MemAllocAsync")
        || starts("MemAllocFromPoolAsync")
        || starts("MemFreeAsync")
    {
        return K::AllocAsync;
    }
    if starts("Malloc")
        || starts("HostAlloc")
        || starts("HostMalloc")
        || starts("HostRegister")
        || starts("ExtMalloc")
        || starts("MemAlloc")
        || starts("MemHostAlloc")
        || starts("MemHostRegister")
        || starts("MemCreate")
        || starts("MemMap")
        || starts("MemSetAccess")
        || starts("MemAddressReserve")
        || starts("MemImportFromShareableHandle")
        || starts("IpcOpenMemHandle")
        || starts("MulticastCreate")
        || starts("MulticastAddDevice")
        || starts("MulticastBind")
        || starts("ArrayCreate")
        || starts("Array3DCreate")
    {
        return K::Alloc;
    }
    if starts("Free")
        || starts("HostFree")
        || starts("HostUnregister")
        || starts("MemFree")
        || starts("MemHostUnregister")
        || starts("MemRelease")
        || starts("MemUnmap")
        || starts("MemAddressFree")
        || starts("IpcCloseMemHandle")
        || starts("MulticastUnbind")
        || starts("ArrayDestroy")
    {
        return K::Free;
    }
    if starts("Memcpy") {
        return if has("Async") { K::CopyAsync } else { K::CopyBlocking };
    }
    if starts("Memset") {
        return if has("Async") { K::MemsetAsync } else { K::MemsetBlocking };
    }
    if starts("MemPrefetch") {
        return K::CopyAsync;
    }
    if starts("Module") || starts("Library") || starts("Link") || starts("KernelGetFunction") || starts("FuncLoad") {
        return K::ModuleLoad;
    }
    if starts("ProfilerSt") {
        return K::Profiler;
    }
    if starts("Stream") {
        let asks = starts("StreamGet") || starts("StreamIsCapturing");
        return if asks { K::Other } else { K::StreamManage };
    }
    let context =
        ["Init", "CtxCreate", "CtxDestroy", "DevicePrimaryCtxRe", "DeviceReset", "SetDevice", "DeviceSetLimit"];
    if context.iter().any(|prefix| starts(prefix)) {
        return K::Context;
    }
    K::Other
}

/// What a call does to the stream captures of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureEdge {
    /// It begins one.
    Begin,
    /// It ends one.
    End,
}

impl CaptureEdge {
    /// What calls of this name do, told from it alone.
    pub fn of(name: &str) -> Option<Self> {
        let base = base_name(name);
        let stem = ["cuda", "cu", "hip"].iter().find_map(|prefix| base.strip_prefix(prefix))?;
        if stem.starts_with("StreamBeginCapture") {
            Some(Self::Begin)
        } else {
            stem.starts_with("StreamEndCapture").then_some(Self::End)
        }
    }
}

/// Whether the call named `name` brings code to the device, rather than looks up or lets go what was loaded: of the calls
/// of [`ApiKind::ModuleLoad`], those that load modules and libraries, link code, or finish loading a function that was
/// left for later.
pub fn loads_code(name: &str) -> bool {
    let base = base_name(name);
    let stem = ["cuda", "cu", "hip"].iter().find_map(|prefix| base.strip_prefix(prefix)).unwrap_or_default();
    ["ModuleLoad", "LibraryLoad", "LinkComplete", "FuncLoad"].iter().any(|prefix| stem.starts_with(prefix))
}

/// A call's name without the suffixes that versions and per-thread default streams add to it.
///
/// CUPTI reports `cudaLaunchKernel_v7000` and `cuMemcpyDtoHAsync_v2_ptsz`; CUDA 13 has an internal
/// `___cudaLaunchKernel_v13000` in the place of `cudaLaunchKernel`.
pub fn base_name(name: &str) -> &str {
    let mut name = name.trim_start_matches('_');
    loop {
        let stripped = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name);
        let stripped = match stripped.rfind("_v") {
            Some(at) if at + 2 < stripped.len() && stripped[at + 2..].bytes().all(|byte| byte.is_ascii_digit()) => {
                &stripped[..at]
            }
            _ => stripped,
        };
        if stripped.len() == name.len() {
            return name;
        }
        name = stripped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_stream_suffixes_are_stripped() {
        for (name, base) in [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("___cudaLaunchKernel_v13000", "cudaLaunchKernel"),
            ("cuMemcpyDtoHAsync_v2_ptsz", "cuMemcpyDtoHAsync"),
            ("cudaMemcpy_ptds_v7000", "cudaMemcpy"),
            ("cuStreamSynchronize", "cuStreamSynchronize"),
            ("cuda_v", "cuda_v"),
            ("", ""),
        ] {
            assert_eq!(base_name(name), base, "{name}");
        }
    }

    #[test]
    fn looking_up_is_no_loading() {
        let loading = ["cuModuleLoadData", "cuModuleLoadDataEx_v2", "cuLibraryLoadFromFile", "cudaLibraryLoadData"];
        for name in loading.into_iter().chain(["hipModuleLoad", "cuLinkComplete", "cuFuncLoad"]) {
            assert!(loads_code(name) && ApiKind::of(name) == ApiKind::ModuleLoad, "{name}");
        }
        let others = ["cuModuleGetFunction", "cuKernelGetFunction", "cuLibraryGetKernel", "cuModuleUnload"];
        for name in others.into_iter().chain(["hipModuleGetFunction", "cuLinkAddData", "cuLinkCreate", "ModuleLoad"]) {
            assert!(!loads_code(name), "{name}");
        }
    }

    #[test]
    fn memory_that_is_reserved_mapped_or_shared_is_allocated_and_freed() {
        let alloc = ["cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemMapArrayAsync_ptsz", "cuMemSetAccess"];
        let shared = ["cuMemImportFromShareableHandle", "cudaIpcOpenMemHandle_v4010", "cuIpcOpenMemHandle_v2"];
        let multicast = ["cuMulticastCreate", "cuMulticastAddDevice", "cuMulticastBindMem", "cuMulticastBindAddr_v2"];
        for name in alloc.into_iter().chain(shared).chain(multicast).chain(["hipMemSetAccess", "hipMemAddressReserve"])
        {
            assert_eq!(ApiKind::of(name), ApiKind::Alloc, "{name}");
        }
        let free = ["cuMemRelease", "cuMemUnmap", "cuMemAddressFree", "cuIpcCloseMemHandle", "cuMulticastUnbind"];
        for name in free.into_iter().chain(["hipMemUnmap", "hipIpcCloseMemHandle"]) {
            assert_eq!(ApiKind::of(name), ApiKind::Free, "{name}");
        }
        // These only ask, hand a name on, or rule over a pool.
        let others = ["cuMemGetAllocationGranularity", "cuMemGetAccess", "cuMemExportToShareableHandle"];
        for name in others.into_iter().chain(["cudaMemPoolSetAccess", "cuMulticastGetGranularity", "cuMemGetInfo"]) {
            assert_eq!(ApiKind::of(name), ApiKind::Other, "{name}");
        }
        assert_eq!(ApiKind::of("cudaMemset_v3020"), ApiKind::MemsetBlocking);
    }

    #[test]
    fn names_are_classified() {
        use ApiKind as K;
        for (name, kind) in [
            ("cudaLaunchKernelExC_v11060", K::Launch),
            ("cuLaunchKernel", K::Launch),
            ("cuLaunchCooperativeKernel", K::Launch),
            ("hipLaunchKernel", K::Launch),
            ("hipModuleLaunchKernel", K::Launch),
            ("hipExtModuleLaunchKernel", K::Launch),
            ("cudaGraphLaunch_v10000", K::GraphLaunch),
            ("cudaLaunchHostFunc_v10000", K::HostFunction),
            ("cudaGraphInstantiate_v12000", K::GraphBuild),
            ("cudaStreamEndCapture_v10000", K::GraphBuild),
            ("cudaMemcpy_v3020", K::CopyBlocking),
            ("cuMemcpyDtoH_v2", K::CopyBlocking),
            ("cuMemcpyDtoHAsync_v2", K::CopyAsync),
            ("cudaMemcpy2DToArrayAsync", K::CopyAsync),
            ("hipMemcpyWithStream", K::CopyBlocking),
            ("cuMemsetD32Async", K::MemsetAsync),
            ("cudaMemset_v3020", K::MemsetBlocking),
            ("cuCtxSynchronize", K::DeviceSync),
            ("cudaDeviceSynchronize_v3020", K::DeviceSync),
            ("cudaEventSynchronize_v3020", K::EventSync),
            ("cudaEventRecordWithFlags_v11010", K::EventRecord),
            ("cudaStreamWaitEvent_v3020", K::StreamWait),
            ("cudaMalloc_v3020", K::Alloc),
            ("cudaMallocHost_v3020", K::Alloc),
            ("cudaMallocAsync_v11020", K::AllocAsync),
            ("cuMemAllocAsync", K::AllocAsync),
            ("cudaFree_v3020", K::Free),
            ("cuMemFree_v2", K::Free),
            ("cudaFreeAsync_v11020", K::AllocAsync),
            ("cuModuleLoadData", K::ModuleLoad),
            ("cuLibraryLoadData", K::ModuleLoad),
            ("hipModuleLoad", K::ModuleLoad),
            ("cudaStreamIsCapturing_v10000", K::Other),
            ("cudaStreamCreateWithFlags_v5000", K::StreamManage),
            ("cudaGetDevice_v3020", K::Other),
            ("cuKernelGetName", K::Other),
            ("cuInit", K::Context),
            ("aten::item", K::Other),
        ] {
            assert_eq!(ApiKind::of(name), kind, "{name}");
        }
    }
}
