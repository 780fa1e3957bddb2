//! Size of the trace file, and the time it takes to write and to read it.
//!
//! `cargo bench --bench trace_file` generates 10 million events of a training loop and prints the bytes per event
//! before the times.

use std::sync::LazyLock;

use bubblescope::trace::{Trace, file};
use training_loop::training_loop;

mod training_loop;

/// Events of the generated trace.
const EVENTS: usize = 10_000_000;

static TRACE: LazyLock<Trace> = LazyLock::new(|| training_loop(EVENTS));
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    file::write(&TRACE, &mut bytes).expect("a generated trace can be written");
    bytes
});

fn main() {
    let (bytes, events) = (FILE.len(), TRACE.event_count());
    println!("{events} events in {bytes} bytes: {:.2} bytes per event", bytes as f64 / events as f64);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} ops, {} calls; read on {cores} cores", TRACE.ops.len(), TRACE.calls.len());
    divan::main();
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn read_10m_events(bencher: divan::Bencher<'_, '_>) {
    bencher.with_inputs(|| FILE.clone()).bench_values(|bytes| file::read(bytes).expect("it was just written"));
}

#[divan::bench(sample_count = 2, sample_size = 1)]
fn write_10m_events(bencher: divan::Bencher<'_, '_>) {
    bencher.bench(|| file::write(&TRACE, std::io::sink()));
}
