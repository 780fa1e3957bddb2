//! Buffers on the device that are used again, told by the number and the length of launches.

use cupti::spool::{CallbackName, End, Text, Writer};
use cupti_sys::bindings as c;

use super::super::{Part, trace_from_bytes};
use super::{Bytes, KERNEL_NAME, anchor, call, header, joined, kernel};
use crate::analysis::{self, Cause};
use crate::report::{self, Report};
use crate::trace::{Ns, OverheadKind, Trace};

const LAUNCH: u32 = 211;
const GRAPH_LAUNCH: u32 = 311;
const COPY: u32 = 41;

/// Room for 1024 ops in each buffer, of which two are new at first.
const ATTRIBUTES: &str = r#"{"attributes":[{"name":"device_buffer_bytes","value":32768,"result":0},
    {"name":"device_buffers","value":2,"result":0}]}"#;

fn spool(recorder: &str, records: &[Bytes]) -> Vec<u8> {
    let mut out = Writer::new(Vec::new(), &header(4242)).unwrap();
    out.anchor(&anchor(0)).unwrap();
    out.note("recorder", recorder).unwrap();
    out.strings(0, &[Text { pointer: KERNEL_NAME, text: "solve".into() }]).unwrap();
    let name = |cbid, name: &str| CallbackName { domain: c::CUPTI_CB_DOMAIN_RUNTIME_API, cbid, name: name.into() };
    let names = [
        name(LAUNCH, "cudaLaunchKernel_v7000"),
        name(GRAPH_LAUNCH, "cudaGraphLaunch_v10000"),
        name(COPY, "cudaMemcpyAsync_v3020"),
    ];
    out.callback_names(&names).unwrap();
    out.buffer(0, &joined(records)).unwrap();
    out.anchor(&anchor(1_000_000_000)).unwrap();
    out.end(&End::default()).unwrap();
    out.into_inner()
}

fn trace(recorder: &str, records: &[Bytes]) -> Trace {
    trace_from_bytes(&[&spool(recorder, records)]).unwrap()
}

/// The correlation ids of the launches that are said to have waited for a buffer.
fn told(trace: &Trace) -> Vec<u64> {
    let of_buffers = trace.overheads.iter().filter(|one| one.kind == OverheadKind::ProfilerDeviceBuffer);
    of_buffers.map(|one| one.correlation.0).collect()
}

/// A program that calls one after the other and whose GPU is done before the next call.
#[derive(Default)]
struct Program {
    records: Vec<Bytes>,
    now: u64,
    calls: u32,
}

impl Program {
    fn call(&mut self, cbid: u32, length: u64, ops: u64, context: u32) {
        let (start, end) = (self.now + 1000, self.now + 1000 + length);
        self.calls += 1;
        self.records.push(call(start, end, cbid, self.calls));
        for op in 0..ops {
            let at = end + 500 + 100 * op;
            self.records.push(kernel(at, at + 80, 13 + context, self.calls).u32(44, context));
        }
        self.now = end + 600 + 100 * ops;
    }

    /// Launches so many kernels, of which those with these numbers, from 1 on, take long.
    fn launches(count: u32, long: &[u32]) -> Self {
        let mut program = Self::default();
        for number in 1..=count {
            program.call(LAUNCH, if long.contains(&number) { 300_000 } else { 5_000 }, 1, 1);
        }
        program
    }
}

#[test]
fn a_long_launch_is_the_profilers_where_a_used_buffer_is_taken_again() {
    // New buffers begin with ops 1 and 1025, used ones with 2049 and then each 1024th.
    let long = [1025, 2049, 2500, 3073, 4097, 4600, 5121];
    let trace = trace(ATTRIBUTES, &Program::launches(5500, &long).records);
    assert_eq!(told(&trace), [2049, 3073, 4097, 5121]);
    assert!(trace.overheads.is_sorted_by_key(|overhead| overhead.interval.start));
    let of = &trace.overheads[0];
    assert_eq!((of.interval.len(), of.thread), (Ns(300_000), Some(crate::trace::ThreadIdx(0))));

    let analysis = analysis::analyze(&trace, &analysis::Options::default());
    let bubbles = analysis.devices[0].bubbles.iter().filter(|bubble| bubble.interval.len() > Ns(200_000));
    let causes: Vec<Cause> = bubbles.map(|bubble| bubble.root.cause).collect();
    let (host, profiler) = (Cause::LaunchBound, Cause::Profiler);
    assert_eq!(causes, [host, profiler, host, profiler, profiler, host, profiler]);
}

#[test]
fn the_longest_bubble_is_told_without_those_of_the_profiler() {
    let longest = |long: &[u32]| {
        let trace = trace(ATTRIBUTES, &Program::launches(3200, long).records);
        let analysis = analysis::analyze(&trace, &analysis::Options::default());
        let report = Report::new(&trace, &analysis, &report::Options { path: "t.bubcap".to_owned(), top: 1 });
        let bubbles = &report.devices[0].bubbles;
        (bubbles.max_ns, bubbles.max_besides_profiler_ns)
    };
    // From the end of a kernel 1,120 until the next call, the call, and 500 until its kernel starts.
    let (usual, long) = (Ns(6_620), Ns(301_620));
    assert_eq!(longest(&[]), (usual, None));
    assert_eq!(longest(&[2049, 3073]), (long, Some(usual)));
    assert_eq!(longest(&[2049, 2500, 3073]), (long, None));
}

#[test]
fn a_launch_may_be_counted_a_few_ops_off() {
    // Of 1024 ops a sixteenth, 64, on either side.
    let near = Program::launches(4200, &[2049 - 64, 3073 + 63, 4097]);
    assert_eq!(told(&trace(ATTRIBUTES, &near.records)), [2049 - 64, 3073 + 63, 4097]);
    let far = Program::launches(4200, &[2049 - 66, 3073 + 66, 4097]);
    assert_eq!(told(&trace(ATTRIBUTES, &far.records)), [] as [u64; 0]);
}

#[test]
fn all_threads_wait_that_launch_then() {
    let mut records = Vec::new();
    for number in 0..1480_u32 {
        let (start, long) = (1000 + 10_000 * u64::from(number), number == 1025);
        for thread in 0..2_u32 {
            let end = start + if long { 9_000 } else { 1_000 };
            let correlation = 2 * number + thread + 1;
            records.push(call(start + u64::from(thread), end, LAUNCH, correlation).u32(28, 4243 + thread));
            records.push(kernel(end + 10, end + 50, 13 + thread, correlation));
        }
    }
    let trace = trace(ATTRIBUTES, &records);
    assert_eq!(told(&trace), [2051, 2052]);
    let threads: Vec<_> = trace.overheads.iter().map(|overhead| overhead.thread.unwrap()).collect();
    assert_ne!(threads[0], threads[1]);
}

#[test]
fn where_most_launches_there_are_short_there_are_no_such_buffers() {
    let half = Program::launches(6000, &[2049, 4097]);
    assert_eq!(told(&trace(ATTRIBUTES, &half.records)), [2049, 4097]);
    let fewer = Program::launches(6000, &[4097]);
    assert_eq!(told(&trace(ATTRIBUTES, &fewer.records)), [] as [u64; 0]);
}

#[test]
fn nothing_is_told_where_cupti_has_its_buffers_otherwise() {
    let records = Program::launches(3200, &[2049, 3073]).records;
    assert_eq!(told(&trace(ATTRIBUTES, &records)), [2049, 3073]);
    let refused = ATTRIBUTES.replacen("\"result\":0", "\"result\":1", 1);
    let tiny = ATTRIBUTES.replace("32768", "31");
    for recorder in ["{}", "[]", r#"{"attributes":[]}"#, r#"{"attributes":7}"#, &refused, &tiny] {
        assert_eq!(told(&trace(recorder, &records)), [] as [u64; 0], "{recorder}");
    }
}

#[test]
fn kernels_of_graphs_and_other_calls_ops_count() {
    let mut program = Program::default();
    // 21 ops each time, so that the 98th time reaches op 2048 in its graph.
    for turn in 1..=160 {
        let long = if turn == 98 || turn == 147 { 400_000 } else { 0 };
        program.call(GRAPH_LAUNCH, 10_000 + long, 20, 1);
        // A copy may take long by itself.
        program.call(COPY, if turn == 98 || turn == 97 { 400_000 } else { 3_000 }, 1, 1);
    }
    assert_eq!(told(&trace(ATTRIBUTES, &program.records)), [2 * 98 - 1, 2 * 147 - 1]);
}

#[test]
fn each_context_has_its_own_buffers() {
    let mut program = Program::default();
    for number in 1..=2 * 2100_u32 {
        let length = if number == 2 * 2049 || number == 2049 { 300_000 } else { 5_000 };
        program.call(LAUNCH, length, 1, 1 + number % 2);
    }
    assert_eq!(told(&trace(ATTRIBUTES, &program.records)), [2 * 2049]);
}

#[test]
fn a_part_of_a_recording_does_not_tell_how_many_ops_there_were_before() {
    let program = Program::launches(3200, &[2049, 3073]);
    let spool = spool(ATTRIBUTES, &program.records);
    let half = Ns(program.now as i64 / 2);
    let part = Part::of_bytes(&[&spool], (Some(half), None), Ns::ZERO).unwrap().read().unwrap();
    assert!(part.ops.len() < 2000, "{}", part.ops.len());
    assert_eq!(told(&part), [] as [u64; 0]);
}
