//! Small random timelines, a tick a nanosecond.

use bubblescope::trace::{
    CallInput, ContextIdx, CorrelationId, Detail, EventInput, GraphId, MemoryKind, OpInput, OpKind, OverheadKind,
    ProcessIdx, RangeKind, StreamIdx, StreamKind, SyncInput, SyncKind, ThreadIdx, Trace, TraceBuilder,
};

/// Numbers that look random and are the same on every machine (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `from..to`.
    pub(crate) fn range(&mut self, from: i64, to: i64) -> i64 {
        from + (self.next() % (to - from) as u64) as i64
    }

    /// True `percent` times of a hundred.
    pub(crate) fn chance(&mut self, percent: i64) -> bool {
        self.range(0, 100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.range(0, from.len() as i64) as usize]
    }
}

const CALLS: [&str; 19] = [
    "cudaLaunchKernel_v7000",
    "cuLaunchKernel",
    "cudaGraphLaunch_v10000",
    "cudaMemcpyAsync_v3020",
    "cudaMemcpy_v3020",
    "cudaMemsetAsync_v3020",
    "cudaStreamSynchronize_v3020",
    "cudaDeviceSynchronize_v3020",
    "cudaEventQuery_v3020",
    "cudaMalloc_v3020",
    "cudaFree_v3020",
    "cuModuleLoadData",
    "cudaGraphInstantiate_v12000",
    "cudaGetDevice_v3020",
    "cudaProfilerStart_v4000",
    "cudaEventRecord_v3020",
    "cudaStreamBeginCapture_v10000",
    "cudaStreamEndCapture_v10000",
    "cudaMallocAsync_v11020",
];
const KERNELS: [&str; 4] = ["gemm", "relu", "ncclDevKernel_AllReduce", "softmax"];
const RANGES: [&str; 4] = ["step 1", "step 2", "aten::item", "load"];
const OVERHEADS: [OverheadKind; 5] = [
    OverheadKind::ProfilerBuffer,
    OverheadKind::ProfilerInstrumentation,
    OverheadKind::LazyLoading,
    OverheadKind::Compiler,
    OverheadKind::CommandBufferFull,
];

struct World {
    random: Random,
    builder: TraceBuilder,
    processes: Vec<ProcessIdx>,
    /// Of each process: its threads and streams.
    threads: Vec<Vec<ThreadIdx>>,
    streams: Vec<Vec<(StreamIdx, ContextIdx)>>,
    correlation: u64,
    /// Nanoseconds a tick.
    tick: i64,
}

impl World {
    fn new(seed: u64, tick: i64) -> Self {
        let mut random = Random::new(seed);
        let mut builder = TraceBuilder::new();
        let (mut processes, mut threads, mut streams) = (Vec::new(), Vec::new(), Vec::new());
        let devices = random.range(1, 3) as u32;
        for pid in 1..random.range(2, 4) as u32 {
            let process = builder.process(pid);
            processes.push(process);
            threads.push((0..random.range(1, 4)).map(|tid| builder.thread(process, tid as u64)).collect());
            let mut lanes = Vec::new();
            for number in 0..devices {
                let device = builder.device(number);
                let context = builder.context(process, number + 1, device);
                for id in 0..random.range(1, 4) as u32 {
                    let stream = builder.stream(context, id);
                    let kinds = [StreamKind::Null, StreamKind::Blocking, StreamKind::NonBlocking, StreamKind::Unknown];
                    builder.set_stream_kind(stream, kinds[(id as usize + number as usize) % kinds.len()]);
                    lanes.push((stream, context));
                }
            }
            streams.push(lanes);
        }
        Self { random, builder, processes, threads, streams, correlation: 0, tick }
    }

    fn fresh(&mut self) -> u64 {
        self.correlation += 1;
        self.correlation
    }

    fn call(&mut self, thread: ThreadIdx, name: &str, correlation: u64, start: i64, end: i64) {
        let name = self.builder.name(name);
        let result = if self.random.chance(10) { 600 } else { 0 };
        let correlation = CorrelationId(correlation);
        let (start, end) = (start * self.tick, end * self.tick);
        self.builder.push_call(CallInput { start, end, thread, name, correlation, result });
    }

    fn op(&mut self, stream: StreamIdx, correlation: u64, start: i64, end: i64, graph: u32, copy: bool) {
        let (kind, detail, name) = if copy {
            let memory = [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::Device];
            let (from, to) = (self.random.pick(&memory), self.random.pick(&memory));
            (OpKind::Copy, Detail::Copy { from, to, asynchronous: false }, "copy")
        } else {
            (OpKind::Kernel, Detail::None, self.random.pick(&KERNELS))
        };
        let name = self.builder.name(name);
        self.builder.push_op(OpInput {
            // Times of 0 mean "not collected", so the first tick is 1.
            start: (start + 1) * self.tick,
            end: (end + 1) * self.tick,
            stream,
            kind,
            name,
            correlation: CorrelationId(correlation),
            bytes: 4,
            graph: GraphId(graph),
            graph_node: 0,
            detail,
        });
    }

    /// Ranges and overheads, anywhere.
    fn decorate(&mut self, length: i64) {
        for process in 0..self.processes.len() {
            for _ in 0..self.random.range(0, 6) {
                let start = self.random.range(0, length);
                let end = start + self.random.range(0, 60);
                let thread = self.random.pick(&self.threads[process]);
                let name = self.random.pick(&RANGES);
                let name = self.builder.name(name);
                let (start, end) = (start * self.tick, end * self.tick);
                self.builder.push_range(start, end, thread, name, RangeKind::Nvtx);
            }
            for _ in 0..self.random.range(0, 3) {
                let start = self.random.range(0, length);
                let end = start + self.random.range(0, 20);
                let thread = self.random.chance(60).then(|| self.random.pick(&self.threads[process]));
                let kind = self.random.pick(&OVERHEADS);
                let none = CorrelationId::NONE;
                let (start, end) = (start * self.tick, end * self.tick);
                self.builder.push_overhead(start, end, kind, self.processes[process], thread, none);
            }
            for _ in 0..self.random.range(0, 2) {
                let start = self.random.range(0, length);
                let end = start + self.random.range(0, 20);
                let (stream, _) = self.random.pick(&self.streams[process]);
                let (start, end) = (start * self.tick, end * self.tick);
                self.builder.push_host_function(start, end, stream, CorrelationId::NONE, GraphId::NONE);
            }
        }
    }
}

/// Records that have nothing to do with each other, but for their correlation ids.
pub(crate) fn chaos(seed: u64) -> Trace {
    chaos_of(seed, 1)
}

/// The same, with so many nanoseconds to a tick.
pub(crate) fn chaos_of(seed: u64, tick: i64) -> Trace {
    let mut world = World::new(seed, tick);
    let length = world.random.range(20, 200);
    for process in 0..world.processes.len() {
        let mut ids = vec![0];
        for _ in 0..world.random.range(0, 25) {
            let id = if world.random.chance(85) { world.fresh() } else { world.random.pick(&ids) };
            ids.push(id);
            let start = world.random.range(0, length);
            let end = start + world.random.range(0, 15);
            let (thread, name) = (world.random.pick(&world.threads[process]), world.random.pick(&CALLS));
            world.call(thread, name, id, start, end);
        }
        for _ in 0..world.random.range(0, 25) {
            let (stream, _) = world.random.pick(&world.streams[process]);
            let start = world.random.range(0, length);
            let end = start + world.random.range(0, 10);
            let graph = u32::from(world.random.chance(20));
            let copy = world.random.chance(30);
            let id = world.random.pick(&ids);
            world.op(stream, id, start, end, graph, copy);
        }
    }
    world.decorate(length);
    world.builder.finish().unwrap()
}

/// A program of sorts: threads that launch, wait, copy, allocate and compute, devices that follow.
pub(crate) fn program(seed: u64) -> Trace {
    let mut world = World::new(seed, 1);
    let mut longest = 1;
    for process in 0..world.processes.len() {
        let mut clock = world.random.range(0, 20);
        let mut free = vec![0; world.streams[process].len()];
        let mut events: Vec<(u32, StreamIdx, i64)> = Vec::new();
        // What each stream must wait for, from its waits for events.
        let mut held = vec![0; free.len()];
        for _ in 0..world.random.range(3, 40) {
            let thread = world.random.pick(&world.threads[process]);
            let lane = world.random.range(0, free.len() as i64) as usize;
            let (stream, context) = world.streams[process][lane];
            let id = world.fresh();
            let start = clock;
            let mut end = start + world.random.range(1, 5);
            let device_work =
                |random: &mut Random, free: i64| (start + random.range(0, 7)).max(free + random.range(0, 3));
            match world.random.range(0, 18) {
                0..5 => {
                    let at = device_work(&mut world.random, free[lane].max(held[lane]));
                    let until = at + world.random.range(0, 25);
                    free[lane] = until;
                    let long = if world.random.chance(10) { 30 } else { 0 };
                    end += long;
                    if world.random.chance(30) {
                        world.call(thread, "cuLaunchKernel", id, start + 1, end - 1);
                    }
                    world.call(thread, "cudaLaunchKernel_v7000", id, start, end.max(start + 2));
                    if !world.random.chance(5) {
                        // The launches of some ops are not in the trace.
                        let known = if world.random.chance(5) { id + 10_000 } else { id };
                        world.op(stream, known, at, until, 0, false);
                    }
                }
                5 => {
                    let mut at = device_work(&mut world.random, free[lane]);
                    let copies = world.random.chance(25);
                    let graph = world.random.range(1, 5) as u32;
                    end += if world.random.chance(20) { 30 } else { 0 };
                    for _ in 0..world.random.range(1, 5) {
                        let until = at + world.random.range(0, 6);
                        world.op(stream, id, at, until, graph, copies);
                        at = until + world.random.range(0, 12) / 4;
                    }
                    free[lane] = at;
                    world.call(thread, "cudaGraphLaunch_v10000", id, start, end);
                }
                6 => {
                    let at = device_work(&mut world.random, free[lane]);
                    let until = at + world.random.range(1, 8);
                    free[lane] = until;
                    end = end.max(until + world.random.range(0, 4));
                    world.call(thread, "cudaMemcpy_v3020", id, start, end);
                    world.op(stream, id, at, until, 0, true);
                }
                7 | 8 => {
                    end = end.max(free[lane]) + world.random.range(0, 4);
                    world.call(thread, "cudaStreamSynchronize_v3020", id, start, end);
                    let recorded = world.random.chance(70);
                    if recorded {
                        sync(&mut world, process, SyncKind::Stream, id, (start, end), (stream, context), None);
                    }
                }
                9 => {
                    let name = world.random.pick(&CALLS[8..]);
                    end += world.random.range(0, 25);
                    world.call(thread, name, id, start, end);
                }
                10 | 13 | 14 => {
                    let event = world.random.range(1, 3) as u32;
                    world.call(thread, "cudaEventRecord_v3020", id, start, end);
                    let recorded = !world.random.chance(10);
                    if recorded {
                        events.retain(|&(known, ..)| known != event);
                        events.push((event, stream, free[lane]));
                        world.builder.push_event(EventInput {
                            process: world.processes[process],
                            context: Some(context),
                            stream: Some(stream),
                            event,
                            event_sync: None,
                            device_time: 0,
                            correlation: CorrelationId(id),
                        });
                    }
                }
                11 | 15 | 16 => {
                    let event = world.random.range(1, 3) as u32;
                    if let Some(&(_, _, until)) = events.iter().find(|&&(known, ..)| known == event) {
                        held[lane] = held[lane].max(until);
                    }
                    world.call(thread, "cudaStreamWaitEvent_v3020", id, start, end);
                    let kind = SyncKind::StreamWaitEvent;
                    sync(&mut world, process, kind, id, (start, end), (stream, context), Some(event));
                }
                12 => {
                    world.call(thread, "cudaStreamBeginCapture_v10000", id, start, end);
                    for _ in 0..world.random.range(1, 5) {
                        let (id, at) = (world.fresh(), end + world.random.range(0, 2));
                        end = at + world.random.range(1, 9);
                        world.call(thread, "cudaLaunchKernel_v7000", id, at, end);
                        // Another stream, which is not captured.
                        if world.random.chance(10) {
                            let from = free[lane].max(at + 1);
                            free[lane] = from + 5;
                            world.op(stream, id, from, from + 5, 0, false);
                        }
                    }
                    if !world.random.chance(10) {
                        let (id, at) = (world.fresh(), end);
                        end = at + world.random.range(1, 6);
                        world.call(thread, "cudaStreamEndCapture_v10000", id, at, end);
                    }
                }
                _ => end += world.random.range(0, 60),
            }
            // Threads hand over to each other at once, and sometimes overlap.
            clock = if world.random.chance(15) { start + 1 } else { end } + world.random.range(0, 6);
            longest = longest.max(clock);
        }
    }
    world.decorate(longest);
    world.builder.finish().unwrap()
}

fn sync(
    world: &mut World,
    process: usize,
    kind: SyncKind,
    correlation: u64,
    (start, end): (i64, i64),
    (stream, context): (StreamIdx, ContextIdx),
    event: Option<u32>,
) {
    world.builder.push_sync(SyncInput {
        start,
        end,
        kind,
        process: world.processes[process],
        context: Some(context),
        stream: Some(stream),
        event,
        event_sync: None,
        awaited_record: CorrelationId::NONE,
        correlation: CorrelationId(correlation),
    });
}
