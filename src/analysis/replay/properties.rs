//! What must hold for any trace, on generated ones.

use proptest::prelude::*;

use super::*;
use crate::analysis::scene::Scene;
use crate::trace::{MemoryKind, StreamKind, SyncKind};

/// One thing that a generated program does.
#[derive(Clone, Debug)]
struct Act {
    kind: u8,
    thread: u8,
    stream: u8,
    /// Host time before it, length of the call, launch latency or return time, length of the op.
    times: [i64; 4],
}

fn act() -> impl Strategy<Value = Act> {
    let times = (0i64..30_000, 0i64..8_000, -500i64..9_000, 0i64..60_000);
    (0u8..16, 0u8..4, 0u8..4, times).prop_map(|(kind, thread, stream, (gap, call, latency, op))| Act {
        kind,
        thread,
        stream,
        times: [gap, call, latency, op],
    })
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), 0..80)
}

/// A program as its acts say, times consistent: ops of a stream follow each other, waits end after what they wait for.
/// Threads 0 and 1 are of one process, 2 and 3 of two more; streams 0 and 1 are on device 0, 2 and 3 on device 1.
fn program(acts: &[Act], origin: i64) -> Trace {
    let mut scene = Scene::new();
    scene.stream_kind(1, StreamKind::Null);
    let mut now = [origin; 4];
    let mut free = [[origin; 4]; 4];
    let mut latest = origin;
    for (index, act) in acts.iter().enumerate() {
        let id = index as u64 + 1;
        let thread = act.thread as usize;
        let pid = [1, 1, 2, 3][thread];
        let stream = u32::from(act.stream);
        scene.on_context(pid, stream / 2, 1 + stream / 2);
        scene.on_thread(pid, u64::from(act.thread));
        let [gap, length, latency, op] = act.times;
        // Work is submitted in the order of the acts, whichever thread does it.
        let start = (now[thread] + gap).max(latest);
        latest = start + 1;
        let lane = &mut free[pid as usize][act.stream as usize];
        let begin = (start + latency).max(*lane + 300);
        let mut end = start + length;
        match act.kind {
            0..6 => {
                scene.launch(id, (start, end), stream, (begin, begin + op));
                *lane = begin + op;
            }
            6 => {
                scene.call("cudaGraphLaunch_v10000", id, start, end);
                for node in 0..3 {
                    scene.kernel(stream, id, begin + node * (op + 80), begin + node * (op + 80) + op);
                }
                *lane = begin + 3 * op + 160;
            }
            7 => {
                end = begin + op + length;
                scene.call("cudaMemcpy_v3020", id, start, end);
                scene.copy((MemoryKind::Device, MemoryKind::Pageable), stream, id, begin, begin + op);
                *lane = begin + op;
            }
            8 => {
                scene.call("cudaMemcpyAsync_v3020", id, start, end);
                scene.copy((MemoryKind::Pageable, MemoryKind::Device), stream, id, begin, begin + op);
                *lane = begin + op;
            }
            9 | 10 => {
                end = end.max(*lane + length);
                scene.call("cudaStreamSynchronize_v3020", id, start, end);
                if pid == 1 {
                    scene.sync_record(SyncKind::Stream, id, (start, end), Some(stream), None);
                }
            }
            11 => {
                end = end.max(*lane + length);
                scene.call("cudaDeviceSynchronize_v3020", id, start, end);
            }
            12 if pid == 1 => {
                scene.record_event(id, start, stream, 1, None);
                end = start + 100;
            }
            13 if pid == 1 => {
                scene.wait_event(id, start, stream, 1, None);
                end = start + 100;
            }
            14 => scene.call("cudaStreamQuery_v3020", id, start, end),
            15 => {
                scene.kernel(stream, 0, begin, begin + op);
                *lane = begin + op;
            }
            _ => scene.call("cudaGetLastError_v3020", id, start, end),
        }
        now[thread] = end;
    }
    scene.finish()
}

fn changes() -> Vec<Vec<Change>> {
    let texts = ["no-sync", "remove=cudaMemcpy", "async=cudaMemcpy", "graph", "pinned", "host=0.5", "no-tracer"];
    let mut lists: Vec<Vec<Change>> = texts.iter().map(|text| vec![text.parse().unwrap()]).collect();
    lists.push(lists.iter().flatten().cloned().collect());
    lists
}

/// The longest stream's work: no replay in which all ops happen can be shorter.
fn least_span(trace: &Trace) -> Ns {
    let work = |stream: usize| -> Ns {
        trace.stream_ops(crate::trace::StreamIdx::from_index(stream)).map(|op| trace.ops.interval(op).len()).sum()
    };
    (0..trace.streams.len()).map(work).max().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Ops keep their length and their order on a stream, calls their order on a thread, and no more is gained than
    /// there is.
    #[test]
    fn times_stay_sane(acts in acts()) {
        let trace = program(&acts, 0);
        let waits = Waits::new(&trace);
        let replay = Replay::new(&trace, &waits, None);
        for list in changes().iter().chain([&Vec::new()]) {
            let timeline = replay.timeline(list);
            let keeps_all = !list.iter().any(|change| matches!(change, Change::Remove(_)));
            for (index, op) in timeline.ops.iter().enumerate() {
                prop_assert!(op.is_some() || !keeps_all);
                let recorded = trace.ops.interval(OpIdx::from_index(index)).len();
                prop_assert!(op.is_none_or(|op| op.len() == recorded));
            }
            for stream in 0..trace.streams.len() {
                let ops = trace.stream_ops(crate::trace::StreamIdx::from_index(stream));
                let times: Vec<Interval> = ops.filter_map(|op| timeline.ops[op.index()]).collect();
                prop_assert!(times.windows(2).all(|pair| pair[0].end <= pair[1].start), "{list:?} {times:?}");
            }
            for thread in 0..trace.threads.len() {
                let calls = trace.thread_calls(crate::trace::ThreadIdx::from_index(thread));
                let times: Vec<Interval> = calls.filter_map(|call| timeline.calls[call.index()]).collect();
                prop_assert!(times.windows(2).all(|pair| pair[0].end <= pair[1].start), "{list:?} {times:?}");
                prop_assert!(times.iter().all(|time| time.start <= time.end));
            }
            let outcome = replay.with(list);
            if keeps_all {
                prop_assert!(outcome.span >= least_span(&trace));
            }
        }
    }

    /// A program whose times are consistent is reproduced as it was, and a change that changes nothing gains nothing.
    #[test]
    fn nothing_changed_is_nothing_gained(acts in acts()) {
        let trace = program(&acts, 0);
        let waits = Waits::new(&trace);
        let replay = Replay::new(&trace, &waits, None);
        let unchanged = replay.unchanged();
        let recorded: Vec<_> = trace.ops.indices().map(|op| Some(trace.ops.interval(op))).collect();
        prop_assert_eq!(replay.timeline(&[]).ops, recorded);
        let nothing = [Change::Remove(CallSet::Calls(Vec::new())), "host=1".parse().unwrap(), "no-tracer=0".parse().unwrap()];
        prop_assert_eq!(&replay.with(&nothing).devices, &unchanged.devices);
        prop_assert!(unchanged.gain.is_none_or(|gain| gain == Ns::ZERO));
        for list in changes() {
            let (alone, devices) = (replay.with(&list), replay.each(&[Vec::new(), list.clone()]).remove(1));
            prop_assert_eq!(alone, devices);
        }
    }

    /// In which order changes are given is of no account, nor is a change that another one goes further than.
    #[test]
    fn changes_have_no_order(acts in acts(), turn in 0usize..8) {
        let trace = program(&acts, 0);
        let waits = Waits::new(&trace);
        let replay = Replay::new(&trace, &waits, None);
        let mut all: Vec<Change> = changes().pop().unwrap();
        all.push(Change::Usual(CallSet::All));
        all.extend(["host=0.5", "host=2", "host=0.9", "no-tracer=1500", "no-tracer=100"].map(|text| text.parse().unwrap()));
        let forth = replay.with(&all);
        all.reverse();
        all.rotate_left(turn);
        prop_assert_eq!(replay.with(&all), forth);
        let gone = Change::Remove(CallSet::All);
        for weaker in ["no-sync", "pinned", "usual=cudaMemcpy"] {
            let both = [gone.clone(), weaker.parse().unwrap()];
            let waiting: Vec<CallIdx> = waits.calls().iter().map(|wait| wait.call).collect();
            let timeline = replay.timeline(&both);
            prop_assert!(waiting.iter().all(|call| timeline.calls[call.index()].is_none()), "{weaker}");
        }
    }

    /// When a trace begins is of no account.
    #[test]
    fn time_has_no_origin(acts in acts(), origin in -1_000_000_000_000i64..1_000_000_000_000) {
        let (here, there) = (program(&acts, 0), program(&acts, origin));
        let spans = |trace: &Trace| {
            let waits = Waits::new(trace);
            let replay = Replay::new(trace, &waits, None);
            changes().iter().map(|list| replay.with(list)).collect::<Vec<_>>()
        };
        prop_assert_eq!(spans(&here), spans(&there));
    }

    /// Any window of any trace is replayed without a panic, and holds no more than the trace.
    #[test]
    fn windows_of_all_kinds(acts in acts(), from in -10_000i64..2_000_000, length in -10_000i64..1_000_000) {
        let trace = program(&acts, 0);
        let waits = Waits::new(&trace);
        let window = Interval::new(Ns(from), Ns(from + length));
        let replay = Replay::new(&trace, &waits, Some(window));
        prop_assert!(replay.unchanged().span >= Ns::ZERO);
        for list in changes() {
            prop_assert!(replay.with(&list).span >= Ns::ZERO);
        }
    }
}

proptest! {
    /// Records that make no sense at all do no harm.
    #[test]
    fn damaged_traces_do_no_harm(
        calls in prop::collection::vec((any::<i64>(), 0i64..i64::MAX / 4, 0u64..8, 0usize..9), 0..30),
        ops in prop::collection::vec((any::<i64>(), 0i64..i64::MAX / 4, 0u64..8, 0u32..3), 0..30),
    ) {
        let names = [
            "cudaLaunchKernel", "cudaMemcpy", "cudaFree", "cudaStreamSynchronize", "cudaStreamQuery",
            "cudaEventSynchronize", "cudaMemset", "cudaGraphLaunch", "x",
        ];
        let mut scene = Scene::new();
        for (start, length, id, name) in calls {
            let start = start / 2;
            scene.on_thread(1, id % 2);
            scene.call(names[name], id, start, start.saturating_add(length));
            scene.sync_record(SyncKind::Event, id, (start, start), None, Some((1, None)));
            scene.wait_event(id + 1, start / 2, 1, 1, None);
            scene.record_event(id, start / 4, 2, 1, None);
        }
        for (start, length, id, stream) in ops {
            let start = start / 2;
            scene.kernel(stream, id, start, start.saturating_add(length));
        }
        let trace = scene.finish();
        let waits = Waits::new(&trace);
        let replay = Replay::new(&trace, &waits, None);
        for list in changes() {
            replay.with(&list);
        }
    }
}
