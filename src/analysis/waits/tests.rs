use super::*;
use crate::analysis::scene::Scene;
use crate::trace::OpKind;

/// The wait of the call with this correlation id.
fn wait_of(trace: &Trace, correlation: u64) -> Option<(WaitCause, Target)> {
    let waits = Waits::new(trace);
    let call = trace.calls.indices().find(|call| trace.calls.correlation[call.index()].0 == correlation).unwrap();
    waits.of(call).map(|wait| (wait.cause, wait.target))
}

/// The op with this correlation id.
fn op_of(trace: &Trace, correlation: u64) -> OpIdx {
    trace.ops.indices().find(|op| trace.ops.correlation[op.index()].0 == correlation).unwrap()
}

#[test]
fn records_name_the_target() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 9_000));
    scene.stream_sync(2, 7, 1_500, 10_000);
    scene.call("cudaDeviceSynchronize_v3020", 3, 11_000, 12_000);
    scene.sync_record(SyncKind::Context, 3, (11_000, 12_000), None, None);
    scene.call("cudaFree_v3020", 4, 13_000, 14_000);
    scene.sync_record(SyncKind::Context, 4, (13_000, 14_000), None, None);
    scene.call("cudaDeviceSynchronize_v3020", 5, 15_000, 16_000);
    let trace = scene.finish();
    assert_eq!(wait_of(&trace, 1), None);
    assert_eq!(wait_of(&trace, 2), Some((WaitCause::Sync, Target::Stream(StreamIdx(0)))));
    assert_eq!(wait_of(&trace, 3), Some((WaitCause::Sync, Target::Context(ContextIdx(0)))));
    assert_eq!(wait_of(&trace, 4), Some((WaitCause::Free, Target::Context(ContextIdx(0)))));
    assert_eq!(wait_of(&trace, 5), Some((WaitCause::Sync, Target::Process(ProcessIdx(0)))));
}

#[test]
fn waiting_for_the_legacy_default_stream_waits_for_all_that_serialise_with_it() {
    let mut scene = Scene::new();
    scene.stream_kind(7, StreamKind::Null);
    scene.stream_sync(1, 7, 0, 1_000);
    let trace = scene.finish();
    assert_eq!(wait_of(&trace, 1), Some((WaitCause::Sync, Target::DefaultStream(ContextIdx(0)))));
}

#[test]
fn copies_wait_as_their_records_show() {
    use MemoryKind::{Device, Pageable, Pinned, Unknown};
    // Call and op times, what was copied, the call's name, and what is expected.
    type Times = (i64, i64);
    type Expected = Option<(WaitCause, fn(OpIdx) -> Target)>;
    type Case = (&'static str, (MemoryKind, MemoryKind), Times, Times, Expected);
    let cases: [Case; 9] = [
        (
            "cudaMemcpy_v3020",
            (Device, Pageable),
            (0, 9_000),
            (3_000, 6_000),
            Some((WaitCause::BlockingCopy, Target::Op)),
        ),
        ("cudaMemcpy_v3020", (Device, Device), (0, 9_000), (3_000, 6_000), None),
        (
            "cudaMemcpy_v3020",
            (Unknown, Unknown),
            (0, 9_000),
            (3_000, 6_000),
            Some((WaitCause::BlockingCopy, Target::Op)),
        ),
        (
            "cudaMemcpy_v3020",
            (Pageable, Device),
            (0, 4_000),
            (3_000, 9_000),
            Some((WaitCause::BlockingCopy, Target::OpStart)),
        ),
        ("cudaMemcpy_v3020", (Pageable, Device), (0, 2_000), (3_000, 9_000), None),
        ("cudaMemcpyAsync_v3020", (Device, Pinned), (0, 9_000), (3_000, 6_000), None),
        (
            "cudaMemcpyAsync_v3020",
            (Device, Pageable),
            (0, 9_000),
            (3_000, 6_000),
            Some((WaitCause::PageableCopy, Target::Op)),
        ),
        (
            "cudaMemcpyAsync_v3020",
            (Pageable, Device),
            (0, 4_000),
            (3_000, 9_000),
            Some((WaitCause::PageableCopy, Target::OpStart)),
        ),
        ("cudaMemcpyAsync_v3020", (Pageable, Device), (0, 2_000), (3_000, 9_000), None),
    ];
    for (name, memory, call, op, expected) in cases {
        let mut scene = Scene::new();
        scene.call(name, 1, call.0, call.1);
        scene.copy(memory, 7, 1, op.0, op.1);
        let trace = scene.finish();
        let expected = expected.map(|(cause, target)| (cause, target(OpIdx(0))));
        assert_eq!(wait_of(&trace, 1), expected, "{name} {memory:?} {call:?} {op:?}");
    }
}

#[test]
fn a_memset_waits_only_when_it_shows() {
    let memset = |to, launch_end: i64, ahead: bool| {
        let mut scene = Scene::new();
        if ahead {
            scene.launch(1, (0, 1_000), 7, (2_000, 20_000));
        }
        scene.call("cudaMemset_v3020", 2, 5_000, launch_end);
        scene.op(OpKind::Memset, Detail::Memset { to, asynchronous: false }, 7, 2, 21_000, 22_000);
        wait_of(&scene.finish(), 2).map(|(cause, _)| cause)
    };
    assert_eq!(memset(MemoryKind::Device, 8_000, true), None);
    assert_eq!(memset(MemoryKind::Device, 23_000, false), None, "slow, but nothing to wait for");
    assert_eq!(memset(MemoryKind::Device, 23_000, true), Some(WaitCause::Memset));
    assert_eq!(memset(MemoryKind::Pinned, 23_000, false), Some(WaitCause::Memset));
}

#[test]
fn a_free_waits_unless_work_outlives_it() {
    let free = |free_end: i64| {
        let mut scene = Scene::new();
        scene.launch(1, (0, 1_000), 7, (2_000, 20_000));
        scene.call("cudaFree_v3020", 2, 5_000, free_end);
        wait_of(&scene.finish(), 2)
    };
    assert_eq!(free(21_000), Some((WaitCause::Free, Target::Context(ContextIdx(0)))));
    assert_eq!(free(8_000), None);
}

#[test]
fn nested_calls_make_one_wait_of_the_outermost() {
    let mut scene = Scene::new();
    // A driver call in a runtime call, with the same id; and an allocation that synchronises inside, with its own.
    scene.call("cudaStreamSynchronize_v3020", 1, 0, 5_000);
    scene.call("cuStreamSynchronize", 1, 100, 4_900);
    scene.sync_record(SyncKind::Stream, 1, (200, 4_800), Some(7), None);
    scene.call("cudaMalloc_v3020", 2, 6_000, 9_000);
    scene.call("cuCtxSynchronize", 3, 6_100, 8_000);
    // A device-to-device copy with its driver call inside waits for nothing.
    scene.call("cudaMemcpy_v3020", 4, 10_000, 19_000);
    scene.call("cuMemcpyDtoD_v2", 4, 10_100, 18_000);
    scene.copy((MemoryKind::Device, MemoryKind::Device), 7, 4, 12_000, 13_000);
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let names: Vec<_> = waits.calls().iter().map(|wait| (trace.call_name(wait.call), wait.cause)).collect();
    assert_eq!(names, [("cudaStreamSynchronize", WaitCause::Sync), ("cudaMalloc", WaitCause::Sync)]);
}

#[test]
fn queries_wait_only_in_a_spin() {
    let spin = |results: &[i32], gap: i64| {
        let mut scene = Scene::new();
        scene.launch(100, (-5_000, -4_000), 7, (-3_000, 900));
        for (index, &result) in results.iter().enumerate() {
            let start = index as i64 * (500 + gap);
            scene.call_returning("cudaEventQuery_v3020", index as u64 + 1, start, start + 500, result);
        }
        let waits = Waits::new(&scene.finish());
        waits.calls().iter().map(|wait| wait.cause).collect::<Vec<_>>()
    };
    use WaitCause::{SpinBody, SpinEnd};
    assert_eq!(spin(&[600, 600, 0], 100), [SpinBody, SpinBody, SpinEnd]);
    assert_eq!(spin(&[600, 0], 100), []);
    assert_eq!(spin(&[0, 0, 0, 600], 100), [SpinBody; 3].into_iter().chain([SpinEnd]).collect::<Vec<_>>());
    assert_eq!(spin(&[600, 600, 0, 0, 0], 100), [SpinBody, SpinBody, SpinEnd], "then three that found it done");
    assert_eq!(spin(&[0, 0, 0], 100), [SpinBody, SpinBody, SpinEnd], "a source without results");
    assert_eq!(spin(&[600, 600, 0], 1_000_000), [], "polls far apart");
}

#[test]
fn launches_block_only_where_all_long_kernels_show_it() {
    let trace = |late: i64| {
        let mut scene = Scene::new();
        for index in 0..10 {
            let at = index * 200_000;
            let end = if index == 0 { at + late } else { at + 105_000 };
            scene.launch(index as u64 + 1, (at, end), 7, (at + 3_000, at + 103_000));
        }
        scene.finish()
    };
    assert_eq!(wait_of(&trace(105_000), 4), Some((WaitCause::BlockingLaunch, Target::Op(OpIdx(3)))));
    assert_eq!(wait_of(&trace(5_000), 4), None);
}

/// Two records of one handle; the wait for the first comes after the second only in time of its record's id.
#[test]
fn event_waits_never_go_through_a_reused_handle_nor_backwards() {
    let scene = |wait_id: Option<u64>, record_ids: [Option<u64>; 3]| {
        let mut scene = Scene::new();
        scene.launch(1, (0, 1_000), 7, (2_000, 50_000));
        scene.record_event(2, 1_500, 7, 9, record_ids[0]);
        scene.launch(3, (3_000, 4_000), 8, (5_000, 30_000));
        scene.record_event(4, 5_500, 8, 9, record_ids[1]);
        scene.wait_event(5, 6_500, 20, 9, wait_id);
        scene.call("cudaEventSynchronize_v3020", 6, 7_000, 60_000);
        scene.sync_record(SyncKind::Event, 6, (7_000, 60_000), None, Some((9, wait_id)));
        scene.launch(7, (61_000, 62_000), 8, (63_000, 64_000));
        scene.record_event(8, 65_000, 8, 9, record_ids[2]);
        scene.finish()
    };
    let check = |wait_id, record_ids, expected: Option<u64>| {
        let trace = scene(wait_id, record_ids);
        let waits = Waits::new(&trace);
        let op = expected.map(|correlation| op_of(&trace, correlation));
        let awaited = waits.stream_waits()[0].awaited;
        assert_eq!(awaited, op.map_or(Awaited::Unknown, Awaited::Op), "{wait_id:?} {record_ids:?}");
        let target = wait_of(&trace, 6).unwrap().1;
        assert_eq!(target, op.map_or(Target::Process(ProcessIdx(0)), Target::Op));
        assert_eq!(waits.unresolved_events(), if op.is_none() { 2 } else { 0 });
    };
    // By the id that wait and record share.
    check(Some(70), [Some(70), Some(71), Some(72)], Some(1));
    check(Some(71), [Some(70), Some(71), Some(72)], Some(3));
    // The record of the id was made after the wait, or is missing: unresolved, whatever the handle says.
    check(Some(72), [Some(70), Some(71), Some(72)], None);
    check(Some(99), [Some(70), Some(71), Some(72)], None);
    // Without ids, the last record of the handle before the wait.
    check(None, [None; 3], Some(3));
}

#[test]
fn an_event_recorded_before_any_work_is_waited_for_in_vain() {
    let mut scene = Scene::new();
    scene.record_event(1, 0, 7, 9, None);
    scene.call("cudaEventSynchronize_v3020", 2, 1_000, 2_000);
    scene.sync_record(SyncKind::Event, 2, (1_000, 2_000), None, Some((9, None)));
    scene.launch(3, (3_000, 4_000), 7, (5_000, 6_000));
    let trace = scene.finish();
    assert_eq!(wait_of(&trace, 2), Some((WaitCause::Sync, Target::Nothing)));
}

#[test]
fn handles_of_other_contexts_are_other_events() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 3_000));
    scene.record_event(2, 1_100, 7, 9, None);
    scene.on_context(1, 1, 2);
    scene.launch(3, (1_300, 1_400), 7, (2_000, 3_000));
    scene.record_event(4, 1_500, 7, 9, None);
    scene.on_context(1, 0, 1);
    scene.wait_event(5, 2_000, 8, 9, None);
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    assert_eq!(waits.of_stream(StreamIdx(1)).len(), 1);
    assert_eq!(waits.stream_waits()[0].awaited, Awaited::Op(op_of(&trace, 1)));
}

#[test]
fn spins_of_two_threads_stay_apart() {
    let mut scene = Scene::new();
    for index in 0..4 {
        scene.on_thread(1, 10 + index % 2);
        scene.call("cudaStreamQuery_v3020", index + 1, index as i64 * 1_000, index as i64 * 1_000 + 500);
    }
    assert_eq!(Waits::new(&scene.finish()).calls(), [], "two queries each");
}

/// The same as [`default_stream_wait`], by looking at every op.
fn default_stream_wait_of_all(trace: &Trace, op: OpIdx) -> Option<OpIdx> {
    let stream = |op: OpIdx| &trace.streams[trace.ops.stream[op.index()].index()];
    let launched = |op: OpIdx| trace.calls.start[trace.ops.launch(op).unwrap().index()];
    let serialised = |other: OpIdx| {
        let kinds = [stream(other).kind, stream(op).kind];
        stream(other).context == stream(op).context
            && kinds.contains(&StreamKind::Null)
            && kinds.contains(&StreamKind::Blocking)
    };
    let end = |op: OpIdx| trace.ops.end[op.index()];
    let earlier = trace.ops.indices().filter(|&other| other != op && launched(other) < launched(op));
    let (through, own): (Vec<OpIdx>, Vec<OpIdx>) = earlier
        .filter(|&other| serialised(other) || trace.ops.stream[other.index()] == trace.ops.stream[op.index()])
        .partition(|&other| serialised(other));
    let free = own.into_iter().map(end).max().unwrap_or(Ns::MIN);
    let last = through.into_iter().max_by_key(|&other| (end(other), other))?;
    (end(last) > free && end(last) > launched(op)).then_some(last)
}

#[test]
fn what_an_op_waited_for_through_the_default_stream_is_what_ended_last_of_all_before_it() {
    let mut scene = Scene::new();
    for (id, kind) in
        [(7, StreamKind::Null), (13, StreamKind::Blocking), (14, StreamKind::Blocking), (15, StreamKind::NonBlocking)]
    {
        scene.stream_kind(id, kind);
    }
    // Streams take turns; each op starts when what it has to wait for is over, and lasts as long as its number says.
    let streams = [13, 14, 7, 15, 13, 7, 7, 14, 15, 13, 14, 13, 7, 14];
    let mut free = [0_i64; 16];
    for turn in 0..40_usize {
        let (stream, at) = (streams[turn % streams.len()], turn as i64 * 1_000 + if turn >= 20 { 60_000 } else { 0 });
        let blocking = free[13].max(free[14]);
        let others = match stream {
            7 => blocking,
            13 | 14 => free[7],
            _ => 0,
        };
        let start = (at + 3_000).max(free[stream as usize]).max(others);
        let end = start + 500 + (turn as i64 * 7_919) % 5_000;
        free[stream as usize] = end;
        scene.launch(turn as u64 + 1, (at, at + 900), stream, (start, end));
    }
    let trace = scene.finish();
    let found: Vec<_> = trace.ops.indices().map(|op| default_stream_wait(&trace, op)).collect();
    let all: Vec<_> = trace.ops.indices().map(|op| default_stream_wait_of_all(&trace, op)).collect();
    assert_eq!(found, all);
    assert!(found.iter().flatten().count() > 10 && found.iter().any(Option::is_none), "{found:?}");
    assert_eq!(default_stream_wait(&trace, OpIdx(u32::MAX)), None);
}

/// The correlation ids of the calls that record events for the host's wait alone, where `more` happens besides. The event
/// of call 2 is waited for by call 3.
fn recorded_for_the_wait(waiting: &[u64], more: impl FnOnce(&mut Scene)) -> Vec<u64> {
    let mut scene = Scene::new();
    scene.launch(1, (0, 1_000), 7, (2_000, 9_000));
    scene.record_event(2, 1_500, 7, 9, Some(70));
    scene.call("cudaEventSynchronize_v3020", 3, 3_000, 10_000);
    scene.sync_record(SyncKind::Event, 3, (3_000, 10_000), None, Some((9, Some(70))));
    more(&mut scene);
    let trace = scene.finish();
    let id = |call: CallIdx| trace.calls.correlation[call.index()].0;
    let waiting: Vec<CallIdx> = trace.calls.indices().filter(|&call| waiting.contains(&id(call))).collect();
    Waits::new(&trace).recorded_only_for(&trace, &waiting).into_iter().map(id).collect()
}

#[test]
fn an_event_that_anybody_else_may_use_is_not_recorded_for_a_wait_alone() {
    assert_eq!(recorded_for_the_wait(&[3], |_| {}), [2]);
    let none: [u64; 0] = [];
    assert_eq!(recorded_for_the_wait(&[], |_| {}), none);
    // Calls that use events and do not tell which.
    for name in [
        "cudaEventQuery_v3020",
        "cuEventQuery",
        "hipEventQuery",
        "cudaEventElapsedTime_v3020",
        "cuEventElapsedTime_v2",
        "cudaEventSynchronize_v3020",
        "cuEventSynchronize",
        "cudaStreamWaitEvent_v3020",
        "cuStreamWaitEvent_ptsz",
        "cudaIpcGetEventHandle_v4010",
        "cuGraphAddEventWaitNode",
    ] {
        for at in [2_000, 20_000] {
            let other = |pid| {
                recorded_for_the_wait(&[3], |scene| {
                    scene.on_thread(pid, 90);
                    scene.call(name, 10, at, at + 100);
                })
            };
            assert_eq!(other(1), none, "{name} at {at}");
            assert_eq!(other(2), [2], "{name} at {at}: an event of another process is another");
        }
        // A library's own use of events lies in a call of another kind, a runtime's in one of the same.
        let inside = |outer: &str, waiting: &[u64]| {
            recorded_for_the_wait(waiting, |scene| {
                scene.call(outer, 10, 20_000, 20_900);
                scene.call(name, 11, 20_100, 20_200);
            })
        };
        assert_eq!(inside("cudaGraphLaunch_v10000", &[3]), [2], "{name}");
        assert_eq!(inside("cudaEventQuery_v3020", &[3]), none, "{name}");
        assert_eq!(inside("cudaEventQuery_v3020", &[3, 10]), [2], "{name}: part of the wait");
    }
    // Calls whose record tells which.
    let told = |sync| {
        recorded_for_the_wait(&[3], |scene: &mut Scene| {
            scene.record_event(12, 1_700, 7, 10, Some(71));
            scene.wait_event(13, 2_000, 8, 10, sync);
        })
    };
    assert_eq!((told(Some(70)), told(Some(71))), (none.to_vec(), vec![2]));
    let told = |sync, waiting: &[u64]| {
        recorded_for_the_wait(waiting, |scene: &mut Scene| {
            scene.record_event(12, 1_700, 7, 10, Some(71));
            scene.call("cudaEventSynchronize_v3020", 13, 11_000, 12_000);
            scene.sync_record(SyncKind::Event, 13, (11_000, 12_000), None, Some((10, sync)));
        })
    };
    assert_eq!((told(Some(70), &[3]), told(Some(71), &[3])), (none.to_vec(), vec![2]));
    assert_eq!((told(Some(70), &[3, 13]), told(Some(71), &[3, 13])), (vec![2], vec![2, 12]));
    // What is captured is no wait yet.
    let captured = recorded_for_the_wait(&[3], |scene| {
        scene.call("cudaStreamBeginCapture_v10000", 10, 20_000, 20_100);
        scene.call("cudaStreamWaitEvent_v3020", 11, 20_200, 20_300);
        scene.call("cudaStreamEndCapture_v10000", 12, 20_400, 20_500);
    });
    assert_eq!(captured, [2]);
    // A stream that is asked needs no event.
    assert_eq!(recorded_for_the_wait(&[3], |scene| scene.call("cudaStreamQuery_v3020", 10, 20_000, 20_100)), [2]);
}
