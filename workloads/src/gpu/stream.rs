//! Streams and events.

use std::marker::PhantomData;

use cudarc::driver::sys;

use super::{Gpu, check};
use crate::CudaError;

/// A queue of device work.
#[derive(Debug)]
pub(crate) struct Stream<'g> {
    raw: sys::CUstream,
    owned: bool,
    owner: PhantomData<&'g Gpu>,
}

impl<'g> Stream<'g> {
    /// A stream that runs beside the legacy default stream.
    pub(crate) fn non_blocking(gpu: &'g Gpu) -> Result<Self, CudaError> {
        Self::create(gpu, sys::CUstream_flags::CU_STREAM_NON_BLOCKING)
    }

    /// A stream that waits for the legacy default stream and makes it wait.
    pub(crate) fn blocking(gpu: &'g Gpu) -> Result<Self, CudaError> {
        Self::create(gpu, sys::CUstream_flags::CU_STREAM_DEFAULT)
    }

    /// The default stream of this thread, which does as an ordinary blocking stream.
    pub(crate) fn per_thread_default(_gpu: &'g Gpu) -> Self {
        // `CU_STREAM_PER_THREAD` of cuda.h: a handle that is a number, not an address.
        Self { raw: std::ptr::without_provenance_mut(2), owned: false, owner: PhantomData }
    }

    /// The legacy default stream, which plain blocking copies are ordered behind.
    pub(crate) fn legacy_default(_gpu: &'g Gpu) -> Self {
        Self { raw: std::ptr::null_mut(), owned: false, owner: PhantomData }
    }

    fn create(_gpu: &'g Gpu, flags: sys::CUstream_flags) -> Result<Self, CudaError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current while a `Gpu` lives; the pointer is to a live variable.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut raw, flags as u32) })?;
        Ok(Self { raw, owned: true, owner: PhantomData })
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Waits until all work of the stream is done.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }

    /// Holds what is enqueued from now on until the event's last record is reached.
    pub(crate) fn wait(&self, event: &Event<'_>) -> Result<(), CudaError> {
        // SAFETY: stream and event are alive and of the same context.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw, event.raw, 0) })
    }

    /// Whether all work of the stream is done.
    pub(crate) fn is_idle(&self) -> Result<bool, CudaError> {
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.raw) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => check("cuStreamQuery", status).map(|()| true),
        }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: created in `create` and destroyed once; the driver finishes the stream's work first. A failure
            // has no consequence that could be handled here.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A point in a stream.
#[derive(Debug)]
pub(crate) struct Event<'g> {
    raw: sys::CUevent,
    owner: PhantomData<&'g Gpu>,
}

impl<'g> Event<'g> {
    /// An event that takes no time stamp.
    pub(crate) fn new(gpu: &'g Gpu) -> Result<Self, CudaError> {
        Self::create(gpu, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// An event that takes a time stamp.
    pub(crate) fn timed(gpu: &'g Gpu) -> Result<Self, CudaError> {
        Self::create(gpu, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn create(_gpu: &'g Gpu, flags: sys::CUevent_flags) -> Result<Self, CudaError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current while a `Gpu` lives; the pointer is to a live variable.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut raw, flags as u32) })?;
        Ok(Self { raw, owner: PhantomData })
    }

    /// Puts the event behind the work that the stream has now.
    pub(crate) fn record(&self, stream: &Stream<'_>) -> Result<(), CudaError> {
        // SAFETY: event and stream are alive and of the same context.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, stream.raw()) })
    }

    /// Waits until the work before the event's last record is done.
    pub(crate) fn synchronize(&self) -> Result<(), CudaError> {
        // SAFETY: the event is alive.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Milliseconds of the device's time from another event to this one. Both must be timed and reached.
    pub(crate) fn milliseconds_since(&self, earlier: &Self) -> Result<f32, CudaError> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive; the pointer is to a live variable.
        let status = unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, earlier.raw, self.raw) };
        check("cuEventElapsedTime", status)?;
        Ok(milliseconds)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: created in `create` and destroyed once; the driver allows it while the event is pending. A failure
        // has no consequence that could be handled here.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}
