//! Buffers on the device that are used again, told by the number and the length of launches.

use cupti::spool::{CallbackName, Drops, End, Header, Text, Writer};
use cupti_sys::bindings as c;

use super::super::{Part, trace_from_bytes};
use super::{Bytes, EPOCH, KERNEL_NAME, anchor, call, header, joined, kernel};
use crate::analysis::{self, Cause};
use crate::report::{self, Report};
use crate::trace::{Ns, OverheadKind, ProcessIdx, Trace};

const LAUNCH: u32 = 211;
const GRAPH_LAUNCH: u32 = 311;
const COPY: u32 = 41;

/// Of a launch, and of one in which a buffer for 1024 ops is made ready.
const USUAL: u64 = 500;
const LONG: u64 = 8_000;

/// Room for 1024 ops in each buffer, of which two are new at first.
const ATTRIBUTES: &str = r#"{"attributes":[{"name":"device_buffer_bytes","value":32768,"result":0},
    {"name":"device_buffers","value":2,"result":0}]}"#;

const NONE: [u64; 0] = [];

fn spool_of(header: &Header, recorder: &str, drops: &Drops, records: &[Bytes]) -> Vec<u8> {
    let mut out = Writer::new(Vec::new(), header).unwrap();
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
    out.drops(drops).unwrap();
    out.anchor(&anchor(1_000_000_000)).unwrap();
    out.end(&End::default()).unwrap();
    out.into_inner()
}

fn spool(recorder: &str, records: &[Bytes]) -> Vec<u8> {
    spool_of(&header(4242), recorder, &Drops::default(), records)
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
    fn launches(count: u32, is_long: impl Fn(u32) -> bool) -> Self {
        let mut program = Self::default();
        for number in 1..=count {
            program.call(LAUNCH, if is_long(number) { LONG } else { USUAL }, 1, 1);
        }
        program
    }

    fn with_long(count: u32, long: &[u32]) -> Self {
        Self::launches(count, |number| long.contains(&number))
    }
}

fn told_of(count: u32, long: &[u32]) -> Vec<u64> {
    told(&trace(ATTRIBUTES, &Program::with_long(count, long).records))
}

#[test]
fn a_long_launch_is_the_profilers_where_a_used_buffer_is_taken_again() {
    // New buffers begin with ops 1 and 1025, used ones with 2049 and then each 1024th.
    let long = [1025, 2049, 2300, 3073, 4097, 4400, 5121];
    let trace = trace(ATTRIBUTES, &Program::with_long(5500, &long).records);
    assert_eq!(told(&trace), [2049, 3073, 4097, 5121]);
    assert!(trace.overheads.is_sorted_by_key(|overhead| overhead.interval.start));
    let of = &trace.overheads[0];
    let wait = Ns((LONG - USUAL) as i64);
    assert_eq!((of.interval.len(), of.thread), (wait, Some(crate::trace::ThreadIdx(0))));

    let analysis = analysis::analyze(&trace, &analysis::Options::default());
    let bubbles = analysis.devices[0].bubbles.iter().filter(|bubble| bubble.interval.len() > Ns(5_000));
    let causes: Vec<Cause> = bubbles.map(|bubble| bubble.root.cause).collect();
    let (host, profiler) = (Cause::LaunchBound, Cause::Profiler);
    assert_eq!(causes, [host, profiler, host, profiler, profiler, host, profiler]);
}

#[test]
fn the_longest_bubble_is_told_without_those_of_the_profiler() {
    let longest = |long: &[u32]| {
        let trace = trace(ATTRIBUTES, &Program::with_long(3200, long).records);
        let analysis = analysis::analyze(&trace, &analysis::Options::default());
        let report = Report::new(&trace, &analysis, &report::Options { path: "t.bubcap".to_owned(), top: 1 });
        let bubbles = &report.devices[0].bubbles;
        (bubbles.max_ns, bubbles.max_besides_profiler_ns)
    };
    // From the end of a kernel 1,120 until the next call, the call, and 500 until its kernel starts.
    let (usual, long) = (Ns(2_120), Ns(9_620));
    assert_eq!(longest(&[]), (usual, None));
    assert_eq!(longest(&[2049, 3073]), (long, Some(usual)));
    assert_eq!(longest(&[2049, 2300, 3073]), (long, None));
}

#[test]
fn a_launch_may_be_counted_64_ops_off() {
    assert_eq!(told_of(5500, &[2049 - 64, 3073 + 64, 4097, 5121]), [2049 - 64, 3073 + 64, 4097, 5121]);
    assert_eq!(told_of(5500, &[2049 - 65, 3073, 4097, 5121]), [3073, 4097, 5121]);
    assert_eq!(told_of(5500, &[2049, 3073 + 65, 4097, 5121]), [2049, 4097, 5121]);
}

#[test]
fn all_threads_wait_that_launch_then() {
    let mut records = Vec::new();
    for number in 0..1750_u32 {
        let (start, long) = (1000 + 20_000 * u64::from(number), [1025, 1537].contains(&number));
        for thread in 0..2_u32 {
            let end = start + if long { 9_000 } else { 1_000 };
            let correlation = 2 * number + thread + 1;
            records.push(call(start + u64::from(thread), end, LAUNCH, correlation).u32(28, 4243 + thread));
            records.push(kernel(end + 10, end + 50, 13 + thread, correlation));
        }
    }
    let trace = trace(ATTRIBUTES, &records);
    assert_eq!(told(&trace), [2051, 2052, 3075, 3076]);
    let threads: Vec<_> = trace.overheads.iter().map(|overhead| overhead.thread.unwrap()).collect();
    assert_ne!(threads[0], threads[1]);
}

#[test]
fn where_it_may_be_chance_nothing_is_told() {
    // Buffers are needed again with 2049, 3073, 4097 and 5121.
    assert_eq!(told_of(6000, &[2049, 4097]), [2049, 4097]);
    assert_eq!(told_of(6000, &[4097]), NONE, "less than half of them");
    assert_eq!(told_of(3000, &[2049]), NONE, "once");
    let half_full = 2560;
    assert_eq!(told_of(6000, &[2049, half_full, 4097]), NONE);
    assert_eq!(told_of(6000, &[2049, 3073, half_full, 4097, 5121]), [2049, 3073, 4097, 5121]);
    for share in [20, 50, 100, 200] {
        let some = Program::launches(20_000, |number| (number.wrapping_mul(2_654_435_761) >> 8) % share == 0);
        assert_eq!(told(&trace(ATTRIBUTES, &some.records)), NONE, "one of {share}");
    }
}

#[test]
fn a_launch_far_longer_or_shorter_than_it_takes_has_another_reason() {
    let of = |length: u64| {
        let mut program = Program::default();
        for number in 1..=3200 {
            program.call(LAUNCH, if [2049, 3073].contains(&number) { length } else { 200 }, 1, 1);
        }
        told(&trace(ATTRIBUTES, &program.records))
    };
    // 2 to 16 ns for each of 1024 ops.
    for (length, says) in [(2_047, false), (2_048, true), (16_384, true), (16_385, false)] {
        assert_eq!(of(length), if says { vec![2049, 3073] } else { vec![] }, "{length}");
    }
}

#[test]
fn what_a_record_explains_is_not_told() {
    let mut program = Program::with_long(3200, &[2049, 3073]);
    let at = |launch: usize| u64::from_le_bytes(program.records[2 * (launch - 1)].0[8..16].try_into().unwrap()) - EPOCH;
    let (start, other) = (at(2049), at(2050));
    let load = |start: u64, thread: u32| {
        Bytes::new(c::CUPTI_ACTIVITY_KIND_OVERHEAD, 56)
            .u32(4, c::CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING)
            .u32(8, c::CUPTI_ACTIVITY_OBJECT_THREAD)
            .u32(12, 4242)
            .u32(16, thread)
            .times(24, start, start + 100)
    };
    program.records.push(load(other, 4243));
    program.records.push(load(start, 9999));
    assert_eq!(told(&trace(ATTRIBUTES, &program.records)), [2049, 3073]);
    program.records.push(load(start, 4243));
    assert_eq!(told(&trace(ATTRIBUTES, &program.records)), [3073]);
}

#[test]
fn nothing_is_told_where_cupti_has_its_buffers_otherwise() {
    let records = Program::with_long(3200, &[2049, 3073]).records;
    assert_eq!(told(&trace(ATTRIBUTES, &records)), [2049, 3073]);
    let refused = ATTRIBUTES.replacen("\"result\":0", "\"result\":1", 1);
    let (tiny, huge) = (ATTRIBUTES.replace("32768", "32767"), ATTRIBUTES.replace("32768", "18446744073709551615"));
    let many = ATTRIBUTES.replace("\"value\":2", "\"value\":18446744073709551615");
    for recorder in ["{}", "[]", r#"{"attributes":[]}"#, r#"{"attributes":7}"#, &refused, &tiny, &huge, &many] {
        assert_eq!(told(&trace(recorder, &records)), NONE, "{recorder}");
    }
    let none_new = ATTRIBUTES.replace("\"value\":2", "\"value\":0");
    assert_eq!(told(&trace(&none_new, &records)), [2049, 3073]);
}

#[test]
fn nothing_is_told_where_ops_were_not_counted() {
    let records = Program::with_long(3200, &[2049, 3073]).records;
    let of = |header: &Header, drops: &Drops| {
        told(&trace_from_bytes(&[&spool_of(header, ATTRIBUTES, drops, &records)]).unwrap())
    };
    assert_eq!(of(&header(4242), &Drops::default()), [2049, 3073]);
    assert_eq!(of(&header(4242), &Drops { records: 1, ..Drops::default() }), NONE);
    assert_eq!(of(&header(4242), &Drops { discarded_buffers: 1, ..Drops::default() }), NONE);
    let late = Header { begins_late: true, ..header(4242) };
    assert_eq!(of(&late, &Drops::default()), [2049, 3073], "CUPTI counts from there too");
}

#[test]
fn kernels_of_graphs_and_other_calls_ops_count() {
    let graphs = |kernels: u64, turns: &[u32]| {
        let mut program = Program::default();
        for turn in 1..=4000 / (kernels + 1) as u32 {
            let long = turns.contains(&turn);
            program.call(GRAPH_LAUNCH, if long { 9_000 } else { 1_000 }, kernels, 1);
            // A copy may take long by itself.
            program.call(COPY, if long { 9_000 } else { 1_000 }, 1, 1);
        }
        told(&trace(ATTRIBUTES, &program.records))
    };
    // 21 ops each time, so that the 98th time reaches op 2048 in its graph, and the 147th op 3072.
    assert_eq!(graphs(20, &[98, 147]), [2 * 98 - 1, 2 * 147 - 1]);
    // Of a graph of many it is not known how long it takes.
    assert_eq!(graphs(64, &[32, 48]), [2 * 32 - 1, 2 * 48 - 1]);
    assert_eq!(graphs(65, &[32, 47]), NONE);
}

#[test]
fn ops_whose_launch_was_not_recorded_count() {
    // Those launched while recording began, of which some run later, and of one context only.
    let of = |context: u32| {
        let mut program = Program::default();
        for number in 0..100 {
            let start = 10 * u64::from(number);
            program.records.push(kernel(start, start + 9, 77, 1_000_000 + number).u32(44, context));
        }
        for number in 1..=5500 {
            let is_long = [2049, 2973, 3073, 3997, 4097, 4941].contains(&number);
            program.call(LAUNCH, if is_long { LONG } else { USUAL }, 1, 1);
            if number == 4000 {
                let start = program.now + 10;
                program.records.extend(
                    (0..80).map(|op| kernel(start + op, start + op + 1, 78, 2_000_000 + op as u32).u32(44, context)),
                );
            }
        }
        told(&trace(ATTRIBUTES, &program.records))
    };
    // Ops 2049, 3073, 4097 and 5121, with 100 and, before the last, 180 that have no launch.
    assert_eq!(of(1), [2973, 3997, 4941]);
    assert_eq!(of(2), [2049, 3073, 4097]);
}

#[test]
fn each_context_has_its_own_buffers() {
    let mut program = Program::default();
    for number in 1..=2 * 3100_u32 {
        let length = if [2 * 2049, 2 * 3073, 2049].contains(&number) { LONG } else { USUAL };
        program.call(LAUNCH, length, 1, 1 + number % 2);
    }
    assert_eq!(told(&trace(ATTRIBUTES, &program.records)), [2 * 2049, 2 * 3073]);
}

#[test]
fn each_process_has_its_own_buffers() {
    let records = Program::with_long(3200, &[2049, 3073]).records;
    let later = Header { start_realtime_ns: header(1).start_realtime_ns + 1000, ..header(7) };
    let ours = spool_of(&later, ATTRIBUTES, &Drops::default(), &records);
    let other = spool_of(&header(8), "{}", &Drops::default(), &records);
    let trace = trace_from_bytes(&[&ours, &other]).unwrap();
    assert_eq!(told(&trace).len(), 2);
    let processes: Vec<ProcessIdx> = trace.overheads.iter().map(|overhead| overhead.process).collect();
    assert!(processes.iter().all(|process| trace.processes[process.index()].pid == 7), "{processes:?}");
}

#[test]
fn a_long_recording_that_alternates_is_sampled_fairly() {
    let mut program = Program::default();
    for number in 1..=20_000_u32 {
        let buffer_again = number > 2048 && number % 1024 == 1;
        program.call(LAUNCH, if buffer_again { LONG } else { USUAL }, 1, 1);
        program.call(COPY, 9_000, 0, 1);
    }
    assert_eq!(told(&trace(ATTRIBUTES, &program.records)).len(), 18);
}

#[test]
fn a_part_of_a_recording_does_not_tell_how_many_ops_there_were_before() {
    let program = Program::with_long(3200, &[2049, 3073]);
    let half_of = |program: &Program| {
        let (spool, half) = (spool(ATTRIBUTES, &program.records), Ns(program.now as i64 / 2));
        Part::of_bytes(&[&spool], (Some(half), None), Ns::ZERO).unwrap().read().unwrap()
    };
    let part = half_of(&program);
    assert!(part.ops.len() < 2000, "{}", part.ops.len());
    assert_eq!(told(&part), NONE);
    let said = |trace: &Trace| trace.meta.warnings.iter().any(|warning| warning.contains("takes the whole recording"));
    assert!(said(&part), "{:?}", part.meta.warnings);

    let all = trace(ATTRIBUTES, &program.records);
    let short = half_of(&Program::with_long(2000, &[]));
    assert!(!said(&all) && !said(&short));
}
