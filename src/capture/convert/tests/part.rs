//! Parts of spools, read without the rest of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cupti::spool::{CallbackName, End, Text, Writer};
use cupti_sys::bindings as c;
use proptest::prelude::*;
use serde_json::Value;

use super::super::{ConvertError, Part, trace_from_bytes, trace_from_spools_watched};
use super::{
    Bytes, EPOCH, KERNEL_NAME, RANGE_NAME, anchor, call, context, device, header, joined, kernel, marker, sync,
};
use crate::analysis;
use crate::progress::Watch;
use crate::report::{self, Report};
use crate::trace::{CallIdx, Interval, Ns, Trace};

/// The recordings in a folder of fixtures and in those in it, in order.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let found = entries.into_iter().flat_map(|entry| match entry.is_dir() {
        true => recordings(&entry),
        false => vec![entry],
    });
    found.filter(|file| file.extension().is_some_and(|extension| extension == "bubcap")).collect()
}

fn fixtures() -> Vec<PathBuf> {
    let all = recordings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"));
    assert!(all.len() > 40, "{}", all.len());
    all
}

/// The trace with its details in the order in which ops first have them, which is not the order of their records.
fn in_order(mut trace: Trace) -> Trace {
    let mut details = Vec::new();
    for at in 0..trace.ops.len() {
        let detail = trace.details[trace.ops.detail[at].index()];
        let known = details.iter().position(|&known| known == detail).unwrap_or_else(|| {
            details.push(detail);
            details.len() - 1
        });
        trace.ops.detail[at].0 = known as u32;
    }
    trace.details = details;
    trace
}

/// A thousandth of the trace so many times.
fn thousandths(trace: &Trace, many: i64) -> Ns {
    Ns(trace.end.0 / 1_000 * many)
}

#[test]
fn a_part_of_a_recording_that_is_read_alone_is_that_of_the_whole() {
    for (at, path) in fixtures().iter().enumerate().step_by(2) {
        let bytes = fs::read(path).unwrap();
        let whole = trace_from_bytes(&[&bytes]).unwrap();
        // Another place in each.
        let from = (at as i64 * 377) % 900;
        let window = (Some(thousandths(&whole, from)), Some(thousandths(&whole, from + 30)));
        let around = Ns(at as i64 % 3 * 50_000);
        let read = Part::of_bytes(&[&bytes], window, around).unwrap().read().unwrap();
        let all = whole.event_count();
        let cut = whole.part_with(window.0, window.1, around);
        assert!(cut.event_count() < all && cut.rest.is_some(), "{}", path.display());
        assert!(in_order(read) == in_order(cut), "{} from {from}", path.display());
    }
}

/// The report as JSON.
fn reported(trace: &Trace, window: Interval) -> Value {
    let options = analysis::Options { window: Some(window), ..analysis::Options::default() };
    let options_of_report = report::Options { path: "recording".to_owned(), top: 1_000 };
    let report = Report::full(trace, &analysis::full(trace, &options), &options_of_report);
    serde_json::to_value(&report).unwrap()
}

/// The analysis of a part looks at its surroundings alone, so what is usual is usual there, and of a call that began
/// before them it is not known how much work it found enqueued. Where neither matters, the part says what the whole does.
#[test]
fn the_report_on_a_part_is_that_on_the_whole() {
    let steady = ["planted", "scalar-readback", "waits", "workloads", "compat"];
    let steady = |path: &PathBuf| steady.iter().any(|folder| path.iter().any(|part| part == *folder));
    let mut compared = 0;
    for (at, path) in fixtures().iter().filter(|path| steady(path)).enumerate().skip(1).step_by(2) {
        let whole = trace_from_bytes(&[&fs::read(path).unwrap()]).unwrap();
        let from = [150, 320, 460, 610, 800][at % 5];
        let window = Interval::new(thousandths(&whole, from), thousandths(&whole, from + 100));
        let part = whole.clone().part_with(Some(window.start), Some(window.end), thousandths(&whole, 100));
        assert!(part.event_count() < whole.event_count(), "{}", path.display());
        let (mut part, whole) = (reported(&part, window), reported(&whole, window));
        let warnings = part["quality"]["warnings"].as_array_mut().unwrap();
        let said = warnings.len();
        warnings.retain(|warning| !warning.as_str().unwrap().starts_with("only what lies between"));
        assert_eq!(warnings.len() + 1, said, "{}: it says what was looked at", path.display());
        compared += whole["bubbles"].as_array().unwrap().len();
        assert!(part == whole, "{} from {from}: {part:#} {whole:#}", path.display());
    }
    assert!(compared > 1_000, "{compared}");
}

/// Names of calls by their id.
const CALLS: [(u32, &str); 9] = [
    (211, "cudaLaunchKernel_v7000"),
    (131, "cudaStreamSynchronize_v3020"),
    (311, "cudaGraphLaunch_v10000"),
    (147, "cudaStreamWaitEvent_v3020"),
    (135, "cudaEventRecord_v3020"),
    (136, "cudaEventQuery_v3020"),
    (317, "cudaStreamBeginCapture_v10000"),
    (318, "cudaStreamEndCapture_v10000"),
    (20, "cudaMalloc_v3020"),
];

/// A record of some kind at some time, with some id, of this and that.
type Made = (u8, u64, u64, u32, u32);

fn made((kind, start, length, id, what): Made) -> Bytes {
    let end = start + length;
    let of_event = |kind| {
        let sync = sync(kind, start, end, 1 + what % 2, 7 + what, id).u32(36, what % 3);
        if what < 2 { sync.u64(40, u64::from(id % 7)) } else { sync }
    };
    match kind {
        0..=3 => kernel(start, end, 7 + what, id),
        // The body of a conditional node.
        4 => kernel(start, end, 7 + what, 0).u32(156, 1 + id % 3),
        5 => kernel(start, end, 7, id).u32(156, 9),
        // One that was still running, and one that cannot be.
        6 if what == 0 => kernel(start, end, 7, id).u64(24, 0),
        6 => kernel(end + 1, start, 7, id),
        7..=12 => call(start, end, CALLS[(id as usize + what as usize) % CALLS.len()].0, id)
            .u32(28, 4243 + what % 2)
            .u32(36, if what == 3 { 600 } else { 0 }),
        13 => sync(c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, start, end, 1, 7 + what, id),
        14 => of_event(c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT),
        15 => of_event(c::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE),
        16..=17 => Bytes::new(c::CUPTI_ACTIVITY_KIND_CUDA_EVENT, 56)
            .u32(4, id)
            .u32(8, 1 + what % 2)
            .u32(12, 7 + what)
            .u32(16, what % 3)
            .u64(40, EPOCH + start)
            .u64(48, u64::from(id % 7)),
        18 => marker(c::CUPTI_ACTIVITY_FLAG_MARKER_START, start, id, RANGE_NAME),
        19 => marker(c::CUPTI_ACTIVITY_FLAG_MARKER_END, start, id, 0),
        20 => Bytes::new(c::CUPTI_ACTIVITY_KIND_OVERHEAD, 56)
            .u32(4, c::CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING)
            .u32(8, c::CUPTI_ACTIVITY_OBJECT_THREAD)
            .u32(12, 4242)
            .u32(16, 4243)
            .times(24, start, end)
            .u32(40, id),
        _ => Bytes::new(c::CUPTI_ACTIVITY_KIND_HOST_LAUNCH, 40).times(8, start, end),
    }
}

/// A spool of one process with these records, a few in each buffer.
fn spool_of(pid: u32, uuid: u8, records: &[Made]) -> Vec<u8> {
    let mut out = Writer::new(Vec::new(), &header(pid)).unwrap();
    out.anchor(&anchor(0)).unwrap();
    let text = |pointer, text: &str| Text { pointer, text: text.into() };
    out.strings(0, &[text(KERNEL_NAME, "solve"), text(RANGE_NAME, "step")]).unwrap();
    let name =
        |(cbid, name): (u32, &str)| CallbackName { domain: c::CUPTI_CB_DOMAIN_RUNTIME_API, cbid, name: name.into() };
    out.callback_names(&CALLS.map(name)).unwrap();
    out.buffer(0, &joined(&[device(0, uuid), context(1, 0, 7)])).unwrap();
    for (seq, some) in records.chunks(9).enumerate() {
        // From the middle on kernels have another name.
        if seq == 4 {
            out.strings(seq as u64 + 1, &[text(KERNEL_NAME, "solve again")]).unwrap();
        }
        let some: Vec<Bytes> = some.iter().copied().map(made).collect();
        out.buffer(seq as u64 + 1, &joined(&some)).unwrap();
    }
    out.end(&End::default()).unwrap();
    out.into_inner()
}

/// Does something in the middle of reading.
struct Meanwhile<F> {
    done: F,
    at: u64,
    reports: AtomicU64,
}

impl<F: Fn() + Sync> Watch for Meanwhile<F> {
    fn progress(&self, _: u64, _: u64) {
        if self.reports.fetch_add(1, Ordering::Relaxed) == self.at {
            (self.done)();
        }
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Makes a file of what is there, reads a part of it, and all of it, and meanwhile, at each moment, makes it another.
fn read_meanwhile(
    there: &[u8],
    another: &[u8],
    seen: impl Fn(Result<Trace, ConvertError>, Result<Trace, ConvertError>),
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.bubcap");
    let read = |at: u64, part: bool| {
        fs::write(&path, there).unwrap();
        let done = || fs::write(&path, another).unwrap();
        let watch = Meanwhile { done, at, reports: AtomicU64::new(0) };
        let read = if part {
            let window = (Some(Ns(1_000)), Some(Ns(2_000)));
            Part::of_file(&path, window, Ns(20), &watch).and_then(Part::read)
        } else {
            trace_from_spools_watched(&[&path], &watch)
        };
        (read, watch.reports.into_inner())
    };
    let (_, reports) = read(u64::MAX, true);
    assert!(reports >= 4, "{reports}");
    for at in 0..reports {
        seen(read(at, true).0, read(at, false).0);
    }
}

fn steady(count: u32) -> Vec<Made> {
    (0..count)
        .flat_map(|at| [(7, u64::from(at) * 30, 10, at + 1, 0), (0, u64::from(at) * 30 + 12, 9, at + 1, 0)])
        .collect()
}

#[test]
fn a_recording_that_goes_on_while_it_is_read_is_what_it_was_at_first() {
    let whole = spool_of(1, 0xab, &steady(120));
    for there in [whole.len() * 2 / 3, whole.len() - 1, whole.len()] {
        let there = &whole[..there];
        let expected = trace_from_bytes(&[there]).unwrap();
        let window = (Some(Ns(1_000)), Some(Ns(2_000)));
        let part = expected.clone().part_with(window.0, window.1, Ns(20));
        assert!(part.rest.is_some());
        read_meanwhile(there, &whole, |read, all| {
            assert_eq!(in_order(read.unwrap()), in_order(part.clone()));
            assert_eq!(all.unwrap(), expected);
        });
    }
}

#[test]
fn a_recording_that_becomes_another_while_it_is_read_is_refused_if_it_is_not_what_it_was() {
    let there = spool_of(1, 0xab, &steady(120));
    let shorter = &there[..there.len() / 2];
    let longer = spool_of(2, 0xab, &steady(240));
    let expected = trace_from_bytes(&[&there]).unwrap();
    for another in [shorter, &longer, b""] {
        let refused = AtomicU64::new(0);
        read_meanwhile(&there, another, |read, all| {
            for read in [read, all] {
                match read {
                    Ok(trace) => assert_eq!(trace.end, expected.end),
                    Err(error) => {
                        refused.fetch_add(1, Ordering::Relaxed);
                        let told = error.to_string();
                        assert!(told.contains("one.bubcap"), "{told}");
                        assert!(matches!(error, ConvertError::Changed { .. } | ConvertError::Spool { .. }), "{told}");
                    }
                }
            }
        });
        assert!(refused.into_inner() > 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Records in any order, of two processes, of which one may have been cut off: whatever part is asked for, reading it alone gives what cutting it out of
    /// the whole does, and it has every event that touches what was asked for.
    #[test]
    fn a_part_of_any_records_that_is_read_alone_is_that_of_the_whole(
        records in [0, 1].map(|_| prop::collection::vec((0_u8..22, 1_u64..3_000, 0_u64..200, 1_u32..40, 0_u32..4), 0..90)),
        window in (prop::option::of(-50_i64..3_000), prop::option::of(0_i64..3_300)),
        around in prop::sample::select(vec![0_i64, 20, 400]),
        cut in prop::option::weighted(0.2, 0_usize..1_000),
    ) {
        let [one, two] = &records;
        let mut spools = [spool_of(1, 0xab, one), spool_of(2, 0xcd, two)];
        if let Some(thousandths) = cut {
            let length = spools[0].len();
            spools[0].truncate(length * thousandths / 1_000);
        }
        let spools = [&*spools[0], &*spools[1]];
        let window = (window.0.map(Ns), window.1.map(Ns));
        let Ok(whole) = trace_from_bytes(&spools) else {
            prop_assert!(Part::of_bytes(&spools, window, Ns(around)).is_err());
            return Ok(());
        };
        let part = Part::of_bytes(&spools, window, Ns(around)).unwrap();
        let (here, _) = part.share();
        let read = part.read().unwrap();
        let asked = Interval::new(window.0.unwrap_or(Ns::ZERO).max(Ns::ZERO), window.1.unwrap_or(whole.end).min(whole.end));
        let touching = |interval: Interval| interval.start <= asked.end && interval.end >= asked.start;
        let ops = |trace: &Trace| trace.ops.indices().filter(|&op| touching(trace.ops.interval(op))).count();
        let calls = |trace: &Trace| trace.calls.indices().filter(|&call| touching(trace.calls.interval(call))).count();
        let ranges = |trace: &Trace| trace.ranges.iter().filter(|range| touching(range.interval)).count();
        if asked.is_empty() {
            prop_assert_eq!(here, 0);
        } else {
            prop_assert_eq!([ops(&read), calls(&read), ranges(&read)], [ops(&whole), calls(&whole), ranges(&whole)]);
            // What has a launch has the same one.
            for op in read.ops.indices().filter(|&op| touching(read.ops.interval(op))) {
                let launch = read.ops.launch(op).map(|call| read.calls.interval(call));
                let same = whole.ops.indices().filter(|&other| {
                    let (a, b) = (&read.ops, &whole.ops);
                    (a.start[op.index()], a.end[op.index()], a.correlation[op.index()], a.stream[op.index()])
                        == (b.start[other.index()], b.end[other.index()], b.correlation[other.index()], b.stream[other.index()])
                });
                let launches: Vec<_> = same.map(|op| whole.ops.launch(op).map(|call| whole.calls.interval(call))).collect();
                prop_assert!(launches.contains(&launch), "{:?} {:?}", launch, launches);
            }
        }
        // What is kept of calls stands in the same ranges.
        let enclosing = |trace: &Trace, call: CallIdx| {
            let (thread, start) = (trace.calls.thread[call.index()], trace.calls.start[call.index()]);
            trace.ranges.iter().filter(|range| range.thread == thread && range.interval.contains(start)).count()
        };
        for call in read.calls.indices() {
            let same = whole.calls.indices().find(|&other| {
                let (a, b) = (&read.calls, &whole.calls);
                (a.start[call.index()], a.thread[call.index()]) == (b.start[other.index()], b.thread[other.index()])
            });
            prop_assert_eq!(same.map(|same| enclosing(&whole, same)), Some(enclosing(&read, call)));
        }
        let (all, cut) = (whole.event_count() as u64, whole.part_with(window.0, window.1, Ns(around)));
        let missing = cut.rest.as_ref().map_or(0, |rest| rest.events);
        prop_assert_eq!(cut.event_count() as u64 + missing, all);
        prop_assert_eq!(in_order(read), in_order(cut));
    }
}
