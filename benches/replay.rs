//! Time of the replay against the number of events, which it must follow linearly.
//!
//! `cargo bench --bench replay` generates training loops of 10^5, 10^6 and 10^7 events: steps of kernel launches from
//! two threads onto four streams of two devices, joined by events, with a graph launch, a copy and a wait per step.

use std::sync::OnceLock;

use bubblescope::analysis::replay::{CallSet, Change, Replay};
use bubblescope::analysis::waits::Waits;
use bubblescope::trace::{
    CallInput, ContextIdx, CorrelationId, Detail, EventInput, GraphId, OpInput, OpKind, ProcessIdx, StreamIdx,
    SyncInput, SyncKind, ThreadIdx, Trace, TraceBuilder,
};
use divan::Bencher;

const SIZES: [usize; 3] = [100_000, 1_000_000, 10_000_000];

fn main() {
    divan::main();
}

/// The trace of a size and its waits, made once.
fn recording(events: usize) -> &'static (Trace, Waits) {
    static RECORDINGS: [OnceLock<(Trace, Waits)>; 3] = [const { OnceLock::new() }; 3];
    let at = SIZES.iter().position(|&size| size == events).unwrap_or_default();
    RECORDINGS[at].get_or_init(|| {
        let trace = training_loop(events);
        let waits = Waits::new(&trace);
        (trace, waits)
    })
}

#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn find_waits(bencher: Bencher<'_, '_>, events: usize) {
    let (trace, _) = recording(events);
    bencher.bench(|| Waits::new(trace));
}

/// Makes a recording ready, which replays it twice to know the error.
#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn prepare(bencher: Bencher<'_, '_>, events: usize) {
    let (trace, waits) = recording(events);
    bencher.bench(|| Replay::new(trace, waits, None));
}

#[divan::bench(args = SIZES, sample_count = 3, sample_size = 1)]
fn one_replay(bencher: Bencher<'_, '_>, events: usize) {
    let (trace, waits) = recording(events);
    let replay = Replay::new(trace, waits, None);
    bencher.bench(|| replay.with(&[Change::Async(CallSet::All)]));
}

/// As many as a report makes by default.
#[divan::bench(args = SIZES, sample_count = 2, sample_size = 1)]
fn sixteen_replays(bencher: Bencher<'_, '_>, events: usize) {
    let (trace, waits) = recording(events);
    let replay = Replay::new(trace, waits, None);
    let changes: Vec<Vec<Change>> = (0..16)
        .map(|part| {
            let some = waits.calls().iter().skip(part).step_by(16).map(|wait| wait.call).collect();
            vec![Change::Remove(CallSet::Calls(some))]
        })
        .collect();
    bencher.bench(|| replay.each(&changes));
}

/// A loop in the making.
struct Loop {
    builder: TraceBuilder,
    process: ProcessIdx,
    contexts: [ContextIdx; 2],
    streams: [StreamIdx; 4],
    threads: [ThreadIdx; 2],
    /// When each stream is free.
    free: [i64; 4],
    now: i64,
    correlation: u64,
    events: usize,
    random: u64,
}

impl Loop {
    fn new() -> Self {
        let mut builder = TraceBuilder::new();
        let process = builder.process(1);
        let contexts = [0, 1].map(|device| {
            let device_idx = builder.device(device);
            builder.context(process, device + 1, device_idx)
        });
        let streams = [0, 1, 2, 3].map(|stream| builder.stream(contexts[stream / 2], stream as u32 + 7));
        let threads = [1, 2].map(|thread| builder.thread(process, thread));
        Self {
            builder,
            process,
            contexts,
            streams,
            threads,
            free: [0; 4],
            now: 0,
            correlation: 0,
            events: 0,
            random: 7,
        }
    }

    /// A length near `typical`, the same on every run (xorshift).
    fn length(&mut self, typical: i64) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        typical / 2 + (self.random % typical as u64) as i64
    }

    fn call(&mut self, name: &str, thread: usize, start: i64, end: i64) -> CorrelationId {
        self.correlation += 1;
        self.events += 1;
        let correlation = CorrelationId(self.correlation);
        let name = self.builder.name(name);
        self.builder.push_call(CallInput { start, end, thread: self.threads[thread], name, correlation, result: 0 });
        self.now = end + 400;
        correlation
    }

    /// A call of `nodes` ops.
    fn launch(&mut self, name: &str, kind: OpKind, thread: usize, stream: usize, nodes: i64) {
        let (start, end) = (self.now, self.now + self.length(3_000));
        let correlation = self.call(name, thread, start, end);
        for _ in 0..nodes {
            let begin = (start + self.length(5_000)).max(self.free[stream] + 100);
            self.free[stream] = begin + self.length(4_000);
            self.events += 1;
            let name = self.builder.name("op");
            self.builder.push_op(OpInput {
                start: begin,
                end: self.free[stream],
                stream: self.streams[stream],
                kind,
                name,
                correlation,
                bytes: 0,
                graph: GraphId(u32::from(nodes > 1)),
                graph_node: 0,
                detail: Detail::None,
            });
        }
    }

    fn sync(&mut self, kind: SyncKind, thread: usize, stream: usize) {
        let start = self.now;
        let (name, end) = match kind {
            SyncKind::StreamWaitEvent => ("cudaStreamWaitEvent", start + 300),
            _ => ("cudaStreamSynchronize", start.max(self.free[stream]) + 2_000),
        };
        let correlation = self.call(name, thread, start, end);
        self.events += 1;
        self.builder.push_sync(SyncInput {
            start,
            end,
            kind,
            process: self.process,
            context: Some(self.contexts[stream / 2]),
            stream: Some(self.streams[stream]),
            event: Some(1),
            event_sync: None,
            awaited_record: CorrelationId::NONE,
            correlation,
        });
    }

    fn record(&mut self, thread: usize, stream: usize) {
        let correlation = self.call("cudaEventRecord", thread, self.now, self.now + 300);
        self.events += 1;
        self.builder.push_event(EventInput {
            process: self.process,
            context: Some(self.contexts[stream / 2]),
            stream: Some(self.streams[stream]),
            event: 1,
            event_sync: None,
            device_time: 0,
            correlation,
        });
    }

    fn step(&mut self) {
        for launch in 0..40 {
            self.launch("cudaLaunchKernel", OpKind::Kernel, usize::from(launch > 20), launch % 4, 1);
        }
        self.launch("cudaGraphLaunch", OpKind::Kernel, 0, 0, 20);
        self.record(0, 0);
        self.sync(SyncKind::StreamWaitEvent, 0, 1);
        self.free[1] = self.free[1].max(self.free[0]);
        self.launch("cudaMemcpyAsync", OpKind::Copy, 0, 1, 1);
        self.sync(SyncKind::Stream, 0, 1);
    }
}

fn training_loop(events: usize) -> Trace {
    let mut program = Loop::new();
    while program.events < events {
        program.step();
    }
    program.builder.finish().expect("fewer than 2^32 events")
}
