//! Small generated traces for tests, benchmarks and pictures.

use bubblescope::trace::{
    CallInput, CorrelationId, Detail, Device, GraphId, MemoryKind, OpInput, OpKind, RangeKind, Trace, TraceBuilder,
};

/// Nanoseconds between two generated iterations.
pub const ITERATION_NS: i64 = 200_000;

/// A trace of one device: `streams` streams and `iterations` of the same step.
///
/// A step launches a kernel on every stream, copies a scalar back and waits for it (`cudaStreamSynchronize`), so the
/// device is idle at the end of every iteration. Two kernels of the first stream overlap.
///
/// # Panics
/// Never: the generated records make a trace.
pub fn trace(streams: u32, iterations: u64) -> Trace {
    let mut builder = TraceBuilder::new();
    builder.meta.source.format = "generated".to_owned();
    let process = builder.process(4_711);
    builder.set_process_name(process, "train");
    let device = builder.device(0);
    builder
        .describe_device(device, Device { name: "NVIDIA H200".to_owned(), multiprocessors: 132, ..Device::default() });
    let context = builder.context(process, 1, device);
    let thread = builder.thread(process, 4_711);
    builder.set_thread_name(thread, "main");
    let streams: Vec<_> = (0..streams).map(|stream| builder.stream(context, 7 + stream)).collect();
    let kernels = ["gemm_kernel", "softmax_kernel", "layer_norm", "_Z5saxpyfPKfPf"].map(|name| builder.name(name));
    let (copy, step) = (builder.name("Memcpy DtoH (Device -> Pageable)"), builder.name("step"));
    let launch = builder.name("cudaLaunchKernel_v7000");
    let (memcpy, sync) = (builder.name("cudaMemcpyAsync_v3020"), builder.name("cudaStreamSynchronize_v3020"));
    let kernel_detail = Detail::Kernel {
        grid: [256, 1, 1],
        block: [128, 1, 1],
        cluster: [0; 3],
        registers: 32,
        static_shared: 0,
        dynamic_shared: 0,
    };
    let mut correlation = 0;
    let mut next = move || {
        correlation += 1;
        CorrelationId(correlation)
    };
    for iteration in 0..iterations {
        let start = 1_000_000_000 + iteration as i64 * ITERATION_NS;
        let mut host = start;
        let mut device_end = start;
        for (at, &stream) in streams.iter().enumerate() {
            let id = next();
            builder.push_call(CallInput {
                start: host,
                end: host + 4_000,
                thread,
                name: launch,
                correlation: id,
                result: 0,
            });
            let begin = host + 6_000;
            let overlapped = if at == 0 && iteration % 4 == 3 { 2 } else { 1 };
            for part in 0..overlapped {
                let op = OpInput {
                    start: begin + part * 10_000,
                    end: begin + 60_000 + 5_000 * at as i64 + part * 10_000,
                    stream,
                    kind: OpKind::Kernel,
                    name: kernels[(at + iteration as usize) % kernels.len()],
                    correlation: id,
                    bytes: 0,
                    graph: GraphId::NONE,
                    graph_node: 0,
                    detail: kernel_detail,
                };
                builder.push_op(op);
                device_end = device_end.max(op.end);
            }
            host += 5_000;
        }
        let id = next();
        builder.push_call(CallInput {
            start: host,
            end: host + 3_000,
            thread,
            name: memcpy,
            correlation: id,
            result: 0,
        });
        if let Some(&stream) = streams.first() {
            builder.push_op(OpInput {
                start: device_end,
                end: device_end + 1_500,
                stream,
                kind: OpKind::Copy,
                name: copy,
                correlation: id,
                bytes: 4,
                graph: GraphId::NONE,
                graph_node: 0,
                detail: Detail::Copy { from: MemoryKind::Device, to: MemoryKind::Pageable, asynchronous: true },
            });
        }
        let id = next();
        let woken = device_end + 4_000;
        builder.push_call(CallInput {
            start: host + 3_500,
            end: woken,
            thread,
            name: sync,
            correlation: id,
            result: 0,
        });
        builder.push_range(start - 500, start + ITERATION_NS - 1_000, thread, step, RangeKind::Nvtx);
    }
    builder.finish().unwrap_or_default()
}
