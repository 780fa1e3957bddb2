//! Graphs of work, launched as one.

use std::marker::PhantomData;

use cudarc::driver::sys;

use super::module::Arguments;
use super::{Gpu, Grid, Kernel, Stream, check};
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

    /// The work that `enqueue` puts on the stream, run at least once and again for as long as the device asks for it
    /// through the handle that `enqueue` is given. The driver must have conditional nodes.
    pub(crate) fn capture_loop(
        gpu: &'g Gpu,
        stream: &Stream<'g>,
        enqueue: impl FnOnce(Loop) -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current while a `Gpu` lives; the pointer is to a live variable.
        check("cuGraphCreate", unsafe { sys::cuGraphCreate(&raw mut raw, 0) })?;
        let graph = Self { raw, owner: PhantomData };
        let mut handle = 0;
        // SAFETY: graph and context are alive; the pointer is to a live variable.
        let status = unsafe {
            sys::cuGraphConditionalHandleCreate(
                &raw mut handle,
                graph.raw,
                gpu.context,
                1,
                sys::CU_GRAPH_COND_ASSIGN_DEFAULT,
            )
        };
        check("cuGraphConditionalHandleCreate", status)?;

        let conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
            size: 1,
            phGraph_out: std::ptr::null_mut(),
            ctx: gpu.context,
        };
        let mut union = sys::CUgraphNodeParams_st__bindgen_ty_1 { reserved1: [0; 29] };
        union.conditional = conditional;
        let mut parameters = sys::CUgraphNodeParams {
            type_: sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            reserved0: [0; 3],
            __bindgen_anon_1: union,
            reserved2: 0,
        };
        let mut node = std::ptr::null_mut();
        // SAFETY: the graph is alive, there are no dependencies, the parameters are those of a conditional node with
        // all reserved fields zero, and the pointers are to live variables.
        let status = unsafe { sys::cuGraphAddNode(&raw mut node, graph.raw, std::ptr::null(), 0, &raw mut parameters) };
        check("cuGraphAddNode", status)?;
        // SAFETY: the call above has set the pointer to an array of one graph, which lives as long as the node.
        let body = unsafe { *parameters.__bindgen_anon_1.conditional.phGraph_out };

        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: stream and graph are alive; there are no dependencies.
        let status = unsafe {
            sys::cuStreamBeginCaptureToGraph(stream.raw(), body, std::ptr::null(), std::ptr::null(), 0, mode)
        };
        check("cuStreamBeginCaptureToGraph", status)?;
        let enqueued = enqueue(Loop { handle });
        let mut captured = std::ptr::null_mut();
        // SAFETY: the stream is alive and captures; the pointer is to a live variable. What it is set to is the body,
        // which belongs to its node.
        let status = unsafe { sys::cuStreamEndCapture(stream.raw(), &raw mut captured) };
        enqueued?;
        check("cuStreamEndCapture", status)?;
        Ok(graph)
    }

    /// The node that everything else in the graph comes after. The graph must have one.
    pub(crate) fn root(&self) -> Result<Node<'_>, CudaError> {
        let mut raw = std::ptr::null_mut();
        let mut count = 1;
        // SAFETY: the graph is alive; the pointers are to room for one node and to the number 1.
        let status = unsafe { sys::cuGraphGetRootNodes(self.raw, &raw mut raw, &raw mut count) };
        check("cuGraphGetRootNodes", status)?;
        Ok(Node { raw, graph: PhantomData })
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

/// A node of a graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    raw: sys::CUgraphNode,
    graph: PhantomData<&'a ()>,
}

/// By which a kernel in the body of a loop says whether the body runs again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop {
    handle: sys::CUgraphConditionalHandle,
}

impl Loop {
    pub(super) fn handle(&self) -> &sys::CUgraphConditionalHandle {
        &self.handle
    }
}

/// A graph that is ready to run. What its nodes use must outlive its last run.
#[derive(Debug)]
pub(crate) struct GraphExec<'g> {
    raw: sys::CUgraphExec,
    owner: PhantomData<&'g Gpu>,
}

impl GraphExec<'_> {
    /// Gives a kernel's node, of the graph that this one was made from, other arguments from the next launch on.
    pub(crate) fn set_kernel_arguments<A: Arguments>(
        &self,
        node: Node<'_>,
        kernel: &Kernel<'_, A>,
        grid: Grid,
        arguments: &A,
    ) -> Result<(), CudaError> {
        arguments.with_pointers(|pointers| {
            let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
                func: kernel.raw,
                gridDimX: grid.blocks,
                gridDimY: 1,
                gridDimZ: 1,
                blockDimX: grid.threads,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: 0,
                kernelParams: pointers.as_mut_ptr(),
                extra: std::ptr::null_mut(),
                kern: std::ptr::null_mut(),
                ctx: std::ptr::null_mut(),
            };
            // SAFETY: graphs and kernel are alive; there is a pointer to a live value of the right size for each of
            // the kernel's parameters (`Module::kernel`), and they are read before the call returns. The driver
            // refuses a node that is not of this graph.
            let status = unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.raw, node.raw, &raw const parameters) };
            check("cuGraphExecKernelNodeSetParams", status)
        })
    }

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
