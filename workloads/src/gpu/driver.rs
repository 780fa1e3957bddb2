//! Finding and starting the driver, and its errors.
//!
//! cudarc loads libcuda and each of its functions on first use and panics when one is missing. So everything that
//! this package calls is looked up here before the first call, and a machine without a driver gets an error.

use std::ffi::CStr;

use cudarc::driver::sys;

use crate::{CudaError, NoGpu};

/// The oldest driver that has every call used here: CUDA 12.0.
const OLDEST: i32 = 12_000;

/// Every driver call of this package that a driver of version [`OLDEST`] has.
const CALLS: &[&str] = &[
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphGetRootNodes",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuGraphUpload",
    "cuInit",
    "cuLaunchCooperativeKernel",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemAlloc_v2",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyHtoD_v2",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// Whether a library that looks like the driver can be loaded.
pub(crate) fn is_present() -> bool {
    // SAFETY: loads a library by its well-known names; libcuda's initialisers may run in any process.
    unsafe { sys::is_culib_present() }
}

/// The calls for graphs with conditional nodes, which came with later drivers.
const CONDITIONAL_CALLS: &[&str] = &["cuGraphAddNode", "cuGraphConditionalHandleCreate", "cuStreamBeginCaptureToGraph"];

/// Whether the driver has graphs with conditional nodes.
pub(super) fn has_conditional_nodes() -> bool {
    CONDITIONAL_CALLS.iter().copied().try_for_each(require).is_ok()
}

/// Loads and starts the driver; gives its CUDA version.
pub(super) fn start() -> Result<i32, NoGpu> {
    if !is_present() {
        return Err(NoGpu::DriverMissing);
    }
    require("cuDriverGetVersion")?;
    require("cuGetErrorName")?;
    let mut version = 0;
    // SAFETY: the function is there; the pointer is to a live variable. Needs no started driver.
    match unsafe { sys::cuDriverGetVersion(&raw mut version) } {
        sys::CUresult::CUDA_ERROR_STUB_LIBRARY => return Err(NoGpu::DriverStub),
        status => check("cuDriverGetVersion", status).map_err(NoGpu::Start)?,
    }
    if version < OLDEST {
        return Err(NoGpu::DriverTooOld { found: version, needed: OLDEST });
    }
    CALLS.iter().copied().try_for_each(require)?;
    // SAFETY: the function is there and takes 0 only.
    match unsafe { sys::cuInit(0) } {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => return Err(NoGpu::NoDevice),
        status => check("cuInit", status).map_err(NoGpu::Start)?,
    }
    let mut count = 0;
    // SAFETY: the driver is started; the pointer is to a live variable.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) }).map_err(NoGpu::Start)?;
    if count < 1 { Err(NoGpu::NoDevice) } else { Ok(version) }
}

/// Refuses a library without the function, which cudarc would panic about.
fn require(symbol: &'static str) -> Result<(), NoGpu> {
    // SAFETY: the library was found to be loadable; the symbol is looked up, not called.
    let found = unsafe { sys::culib().get::<unsafe extern "C" fn()>(symbol.as_bytes()) };
    found.map(|_| ()).map_err(|_| NoGpu::DriverIncomplete { symbol })
}

/// The error of a call, if its status is one.
pub(crate) fn check(call: &'static str, status: sys::CUresult) -> Result<(), CudaError> {
    if status == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = std::ptr::null();
    // SAFETY: the pointer is to a live variable. The driver writes a static string, or null for an unknown code.
    let known = unsafe { sys::cuGetErrorName(status, &raw mut name) } == sys::CUresult::CUDA_SUCCESS;
    let name = if known && !name.is_null() {
        // SAFETY: a static, terminated string of the driver, as just checked.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    } else {
        "an unknown error".to_owned()
    };
    Err(CudaError { call, code: status as u32, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The calls that appear in the sources of this package, by the way every one of them is written.
    fn calls_in_the_sources() -> BTreeSet<String> {
        let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut calls = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for rest in text.split("sys::cu").skip(1) {
                    let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                    if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                        calls.insert(format!("cu{name}"));
                    }
                }
            }
        }
        calls
    }

    #[test]
    fn every_call_is_looked_up_before_it_can_be_made() {
        let listed: BTreeSet<String> = CALLS.iter().chain(CONDITIONAL_CALLS).map(|call| (*call).to_owned()).collect();
        assert_eq!(calls_in_the_sources(), listed);
    }
}
