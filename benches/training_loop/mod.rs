//! A generated trace that looks like a recorded one.

use bubblescope::trace::{
    CallInput, CorrelationId, Detail, EventInput, GraphId, MemoryKind, OpInput, OpKind, RangeKind, SyncInput, SyncKind,
    Trace, TraceBuilder,
};

/// Random numbers that are the same on every run (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> i64 {
        (self.next() % limit) as i64
    }

    /// Mostly near `typical`, now and then far above it, as durations are.
    fn duration(&mut self, typical: u64) -> i64 {
        let base = typical as i64 * 3 / 4 + self.below(typical / 2 + 1);
        if self.below(50) == 0 { base * (2 + self.below(8)) } else { base }
    }
}

/// A training loop: steps of kernel launches from one thread onto one stream, copies on a second, a reader thread with
/// blocking copies, a synchronisation and an event per step. Each step launches the same kernels with the same shapes.
pub(crate) fn training_loop(events: usize) -> Trace {
    let mut random = Random(7);
    let mut builder = TraceBuilder::new();
    let process = builder.process(4242);
    let device = builder.device(0);
    let context = builder.context(process, 1, device);
    let streams = [builder.stream(context, 7), builder.stream(context, 13), builder.stream(context, 14)];
    let threads = [builder.thread(process, 4242), builder.thread(process, 4300)];
    let launch = builder.name("cudaLaunchKernel_v7000");
    let copy_call = builder.name("cudaMemcpyAsync_v3020");
    let query = builder.name("cudaStreamIsCapturing_v10000");
    let synchronise = builder.name("cudaStreamSynchronize_v3020");
    let record = builder.name("cudaEventRecordWithFlags_v11010");
    let copy_name = builder.name("Memcpy HtoD (Pinned -> Device)");
    let operators = ["aten::mm", "aten::add_", "aten::native_layer_norm", "aten::copy_"].map(|name| builder.name(name));
    let kernels: Vec<_> = (0..160)
        .map(|at| {
            let name = format!(
                "_ZN2at6native29vectorized_elementwise_kernelILi{at}ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm{at}EEEEviT0_T1_"
            );
            let detail = Detail::Kernel {
                grid: [(at * 37) % 500 + 1, 1, 1],
                block: [128, 1, 1],
                cluster: [0; 3],
                registers: 32 + at % 90,
                static_shared: 0,
                dynamic_shared: 1024 * (at % 4),
            };
            (builder.name(&name), detail, 2_000 + random.below(60_000) as u64)
        })
        .collect();

    let mut host = 1_700_000_000_000_000_000i64;
    let mut free = [host; 3];
    let mut correlation = 0;
    let mut count = 0;
    while count < events {
        for at in 0..1_200usize {
            let (name, detail, typical) = kernels[at % kernels.len()];
            let opened = host;
            if at % 3 == 0 {
                correlation += 1;
                let call = CallInput {
                    start: host,
                    end: host + 150 + random.below(200),
                    thread: threads[0],
                    name: query,
                    correlation: CorrelationId(correlation),
                    result: 0,
                };
                host = call.end + random.duration(600);
                builder.push_call(call);
                count += 1;
            }
            correlation += 1;
            let end = host + random.duration(4_000);
            let copies = at % 40 == 39;
            builder.push_call(CallInput {
                start: host,
                end,
                thread: threads[0],
                name: if copies { copy_call } else { launch },
                correlation: CorrelationId(correlation),
                result: 0,
            });
            let lane = if copies { 1 } else { usize::from(at % 17 == 16) * 2 };
            let start = (host + random.duration(5_000)).max(free[lane]);
            // Device clocks tick every 32 ns.
            let start = start / 32 * 32;
            let length = if copies { random.duration(9_000) } else { random.duration(typical) } / 32 * 32;
            free[lane] = start + length + 900 + random.below(300);
            builder.push_op(OpInput {
                start,
                end: start + length,
                stream: streams[lane],
                kind: if copies { OpKind::Copy } else { OpKind::Kernel },
                name: if copies { copy_name } else { name },
                correlation: CorrelationId(correlation),
                bytes: if copies { 4 << (random.below(20)) } else { 0 },
                graph: GraphId::NONE,
                graph_node: 0,
                detail: if copies {
                    Detail::Copy { from: MemoryKind::Pinned, to: MemoryKind::Device, asynchronous: true }
                } else {
                    detail
                },
            });
            host = end + random.duration(2_500);
            count += 2;
            if at % 4 == 0 {
                builder.push_range(opened, host, threads[0], operators[at / 4 % 4], RangeKind::Operator);
                host += 300 + random.below(500);
                count += 1;
            }
        }
        correlation += 2;
        builder.push_call(CallInput {
            start: host,
            end: host + 900,
            thread: threads[0],
            name: record,
            correlation: CorrelationId(correlation - 1),
            result: 0,
        });
        builder.push_event(EventInput {
            process,
            context: Some(context),
            stream: Some(streams[0]),
            event: 3,
            event_sync: None,
            device_time: 0,
            correlation: CorrelationId(correlation - 1),
        });
        let (start, end) = (host + 1_500, (host + 3_000).max(free[0]));
        builder.push_call(CallInput {
            start,
            end,
            thread: threads[0],
            name: synchronise,
            correlation: CorrelationId(correlation),
            result: 0,
        });
        builder.push_sync(SyncInput {
            start: start + 200,
            end: end - 100,
            kind: SyncKind::Stream,
            process,
            context: Some(context),
            stream: Some(streams[0]),
            event: None,
            event_sync: None,
            awaited_record: CorrelationId::NONE,
            correlation: CorrelationId(correlation),
        });
        builder.push_call(CallInput {
            start: host - 20_000,
            end: host - 5_000,
            thread: threads[1],
            name: query,
            correlation: CorrelationId::NONE,
            result: 0,
        });
        host = end + random.duration(8_000);
        count += 5;
    }
    builder.finish().expect("a generated trace fits")
}
