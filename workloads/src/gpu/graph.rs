//! Graphs of work, launched as one.

use std::marker::PhantomData;

use cudarc::driver::sys;

use super::{Gpu, Stream, check};
use crate::CudaError;

/// Work and its order, not yet ready to run.
#[derive(Debug)]
pub(crate) struct Graph<'g> {
    raw: sys::CUgraph,
    owner: PhantomData<&'g Gpu>,
}

impl<'g> Graph<'g> {
    /// The work that `enqueue` puts on the stream, which is not run.
    pub(crate) fn capture(
        stream: &Stream<'g>,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.raw(), mode) })?;
        let enqueued = enqueue();
        let mut raw = std::ptr::null_mut();
        // SAFETY: the stream is alive and captures; the pointer is to a live variable. Must be called also after an
        // error, so that the capture ends.
        let status = unsafe { sys::cuStreamEndCapture(stream.raw(), &raw mut raw) };
        let graph = Self { raw, owner: PhantomData };
        enqueued?;
        check("cuStreamEndCapture", status)?;
        Ok(graph)
    }

    /// Makes the graph ready to run.
    pub(crate) fn instantiate(&self) -> Result<GraphExec<'g>, CudaError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the graph is alive; the pointer is to a live variable.
        let status = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut raw, self.raw, 0) };
        check("cuGraphInstantiate", status)?;
        Ok(GraphExec { raw, owner: PhantomData })
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: made by a capture and destroyed once. A failure has no consequence that could be handled here.
            let _ = unsafe { sys::cuGraphDestroy(self.raw) };
        }
    }
}

/// A graph that is ready to run. What its nodes use must outlive its last run.
#[derive(Debug)]
pub(crate) struct GraphExec<'g> {
    raw: sys::CUgraphExec,
    owner: PhantomData<&'g Gpu>,
}

impl GraphExec<'_> {
    /// Puts what the first launch would have to do on the device now.
    pub(crate) fn upload(&self, stream: &Stream<'_>) -> Result<(), CudaError> {
        // SAFETY: graph and stream are alive and of the same context.
        check("cuGraphUpload", unsafe { sys::cuGraphUpload(self.raw, stream.raw()) })
    }

    /// Starts the whole graph.
    pub(crate) fn launch(&self, stream: &Stream<'_>) -> Result<(), CudaError> {
        // SAFETY: graph and stream are alive and of the same context.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.raw, stream.raw()) })
    }
}

impl Drop for GraphExec<'_> {
    fn drop(&mut self) {
        // SAFETY: instantiated once and destroyed once; the driver lets a running launch finish. A failure has no
        // consequence that could be handled here.
        let _ = unsafe { sys::cuGraphExecDestroy(self.raw) };
    }
}
