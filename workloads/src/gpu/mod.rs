//! Thin typed wrappers over the CUDA driver API, for one thread and the first visible device.
//!
//! One wrapper call is exactly one driver call, so that a program written with them makes the calls it seems to
//! make and no others. Handles borrow what they live in: nothing outlives its context. cudarc's own safe layer is
//! not used because it adds calls of its own (it makes the context current before each).
#![expect(unsafe_code, reason = "the CUDA driver API is foreign code")]

mod driver;
mod graph;
mod memory;
mod module;
mod stream;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cudarc::driver::sys;

#[cfg(test)]
pub(crate) use driver::is_present as driver_is_present;
pub(crate) use graph::{Graph, GraphExec, Loop};
pub(crate) use memory::{DeviceBuffer, DevicePtr, HostBuffer, Place, PooledBuffer};
#[cfg(test)]
pub(crate) use module::{Arguments, parameters};
pub(crate) use module::{Grid, Kernel, Module};
pub(crate) use stream::{Event, Stream};

use crate::{CudaError, WorkloadError};
use driver::check;

/// The primary context of the first visible device, current on this thread.
#[derive(Debug)]
pub(crate) struct Gpu {
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    driver_version: i32,
}

/// How long the measured part took, and when it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub wall_ns: u64,
    pub realtime_ns: (i64, i64),
}

impl Gpu {
    /// Finds the driver and makes the first device's primary context current on this thread.
    pub(crate) fn open() -> Result<Self, WorkloadError> {
        let driver_version = driver::start()?;
        let mut device = 0;
        // SAFETY: the driver is loaded and started; the pointer is to a live variable.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut device, 0) })?;
        let mut name = [0_u8; 256];
        // SAFETY: the buffer is writable for the length given, and the driver writes a terminated string into it.
        check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), 256, device) })?;
        let name = name.split(|&byte| byte == 0).next().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        let mut context = std::ptr::null_mut();
        // SAFETY: the device exists; the pointer is to a live variable.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) })?;
        let gpu = Self { device, context, name, driver_version };
        // SAFETY: the context was just retained, and `gpu` keeps it until it is dropped.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })?;
        Ok(gpu)
    }

    /// The device's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The driver's CUDA version: 13000 is 13.0.
    pub(crate) fn driver_version(&self) -> i32 {
        self.driver_version
    }

    /// Whether graphs can have conditional nodes: since CUDA 12.4 for certain.
    pub(crate) fn has_conditional_nodes(&self) -> bool {
        self.driver_version >= 12_040 && driver::has_conditional_nodes()
    }

    /// An attribute of the device.
    pub(crate) fn attribute(&self, attribute: sys::CUdevice_attribute) -> Result<i32, CudaError> {
        let mut value = 0;
        // SAFETY: the device exists; the pointer is to a live variable.
        let status = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, self.device) };
        check("cuDeviceGetAttribute", status)?;
        Ok(value)
    }

    /// Waits until the device has finished all work of this context.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the context is current on this thread: `Gpu` is not `Send` in use, it lives in one call of `run`.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// Times `work` from an idle device until all that it started is finished.
    pub(crate) fn measure(&self, work: impl FnOnce() -> Result<(), WorkloadError>) -> Result<Measured, WorkloadError> {
        self.synchronize()?;
        let start_realtime = realtime_ns();
        let start = Instant::now();
        work()?;
        self.synchronize()?;
        let wall = start.elapsed();
        let end_realtime = realtime_ns();
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        Ok(Measured { wall_ns, realtime_ns: (start_realtime, end_realtime) })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: retained in `open`, and nothing that borrows this context is alive any more. A failure has no
        // consequence that could be handled here.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Nanoseconds since the epoch; before it, 0.
fn realtime_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
