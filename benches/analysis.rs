//! How long the analysis takes and how much it allocates, from 10⁵ to 10⁷ events.
//!
//! `cargo bench --bench analysis`. The figure to hold: 10⁷ events in 2 s and 1 GiB on two cores, and linear growth.

use bubblescope::analysis::{Options, analyze};
use bubblescope::trace::{
    CallInput, CorrelationId, Detail, GraphId, OpInput, OpKind, RangeKind, SyncInput, SyncKind, Trace, TraceBuilder,
};
use divan::counter::ItemsCount;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

#[divan::bench(args = [100_000, 1_000_000, 10_000_000], sample_count = 3, sample_size = 1)]
fn whole_trace(bencher: divan::Bencher<'_, '_>, events: usize) {
    let trace = generate(events);
    bencher
        .counter(ItemsCount::new(trace.event_count()))
        .bench_local(|| analyze(divan::black_box(&trace), &Options::default()));
}

/// Iterations of ten launches on four streams by one of two threads, queries between them, and a synchronisation. In
/// every other iteration the kernels are long enough to queue up.
fn generate(events: usize) -> Trace {
    const LAUNCHES: i64 = 10;
    let mut builder = TraceBuilder::new();
    let process = builder.process(1);
    let device = builder.device(0);
    let context = builder.context(process, 1, device);
    let streams: Vec<_> = (7..11).map(|id| builder.stream(context, id)).collect();
    let threads: Vec<_> = (1..3).map(|tid| builder.thread(process, tid)).collect();
    let names: Vec<_> = (0..LAUNCHES).map(|index| builder.name(&format!("kernel_{index}"))).collect();
    let [launch, wait, query] =
        ["cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020", "cudaGetDevice_v3020"].map(|name| builder.name(name));
    let step = builder.name("step");
    let (mut clock, mut correlation, mut pushed) = (0, 0, 0);
    let mut free = [0; 4];
    for iteration in 0.. {
        if pushed >= events {
            break;
        }
        let thread = threads[iteration % 2];
        let began = clock;
        let mut call = |builder: &mut TraceBuilder, name, start, end| {
            correlation += 1;
            let correlation = CorrelationId(correlation);
            builder.push_call(CallInput { start, end, thread, name, correlation, result: 0 });
            correlation
        };
        let length = if iteration % 2 == 0 { 1_500 } else { 9_000 };
        for index in 0..LAUNCHES {
            let lane = (index % 4) as usize;
            if index % 4 == 0 {
                call(&mut builder, query, clock, clock + 200);
            }
            clock += 300;
            let correlation = call(&mut builder, launch, clock, clock + 2_000);
            let start = (clock + 3_500 + index % 3).max(free[lane] + 900);
            free[lane] = start + length;
            builder.push_op(OpInput {
                start,
                end: free[lane],
                stream: streams[lane],
                kind: OpKind::Kernel,
                name: names[index as usize],
                correlation,
                bytes: 0,
                graph: GraphId::NONE,
                graph_node: 0,
                detail: Detail::None,
            });
            clock += 2_300;
        }
        let end = clock.max(free[1]) + 2_000;
        let correlation = call(&mut builder, wait, clock, end);
        builder.push_sync(SyncInput {
            start: clock,
            end,
            kind: SyncKind::Stream,
            process,
            context: Some(context),
            stream: Some(streams[1]),
            event: None,
            event_sync: None,
            awaited_record: CorrelationId::NONE,
            correlation,
        });
        clock = end + 1_000;
        builder.push_range(began, clock, thread, step, RangeKind::Nvtx);
        pushed += 2 * LAUNCHES as usize + 3 + 3;
    }
    builder.finish().expect("a trace of few enough events")
}
