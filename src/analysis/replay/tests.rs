//! Traces made by hand, whose answers are known to the nanosecond.

use super::*;
use crate::analysis::scene::Scene;
use crate::trace::{Detail, MemoryKind, OpKind, StreamKind, SyncKind};

const US: i64 = 1_000;

/// Without `api`, in the whole trace.
fn without(trace: &Trace, api: &str) -> Outcome {
    let waits = Waits::new(trace);
    Replay::new(trace, &waits, None).with(&[Change::Remove(CallSet::Apis(vec![api.to_owned()]))])
}

fn changed(trace: &Trace, changes: &[Change]) -> Outcome {
    let waits = Waits::new(trace);
    Replay::new(trace, &waits, None).with(changes)
}

fn call_of(trace: &Trace, correlation: u64) -> CallIdx {
    trace.calls.indices().find(|call| trace.calls.correlation[call.index()].0 == correlation).unwrap()
}

fn op_of(trace: &Trace, correlation: u64) -> OpIdx {
    trace.ops.indices().find(|op| trace.ops.correlation[op.index()].0 == correlation).unwrap()
}

/// `count` times: launch, a kernel of `kernel`, synchronise, then `host` of host code. Launch calls take 4 µs, latency
/// is 5 µs, a synchronisation returns 2 µs after its kernel and takes 2 µs when it finds it done.
fn synchronised_loop(count: i64, kernel: i64, host: i64) -> Trace {
    let mut scene = Scene::new();
    let mut at = 0;
    for index in 0..count {
        let id = index as u64 * 2 + 1;
        let op = (at + 5 * US, at + 5 * US + kernel);
        scene.launch(id, (at, at + 4 * US), 7, op);
        let sync = at + 4 * US + 100;
        let end = sync.max(op.1) + 2 * US;
        scene.stream_sync(id + 1, 7, sync, end);
        at = end + host;
    }
    scene.finish()
}

#[test]
fn a_host_bound_loop_loses_no_more_than_the_calls_themselves() {
    let trace = synchronised_loop(50, 500, 100 * US);
    let outcome = without(&trace, "cudaStreamSynchronize");
    // The kernel ends at 5.5 µs, so a synchronisation from 4.1 to 7.5 µs costs 3.4 µs and one transition of 100 ns.
    assert_eq!(outcome.gain, Some(Ns(49 * 3_500)));
    let idle = 49 * (7_500 + 100 * US - 500);
    assert!(outcome.gain.unwrap().get() * 20 < idle, "idle time is not what the calls cost");
}

#[test]
fn a_queue_bound_loop_gains_its_bubbles_but_for_the_dispatch_gap() {
    let trace = synchronised_loop(50, 100 * US, US);
    let outcome = without(&trace, "cudaStreamSynchronize");
    // A bubble of 2 + 1 + 5 µs per iteration; what remains is the default dispatch gap.
    assert_eq!(outcome.span, Ns(50 * 100 * US + 49 * US));
    assert_eq!(outcome.gain, Some(Ns(49 * 7 * US)));
}

#[test]
fn refilling_the_pipeline_counts() {
    // Two kernels of 20 µs per iteration, whose launches take 15 µs: after each wait the second one comes late too.
    let mut scene = Scene::new();
    let mut at = 0;
    for index in 0..20 {
        let id = index as u64 * 3 + 1;
        scene.launch(id, (at, at + 15 * US), 7, (at + 5 * US, at + 25 * US));
        scene.launch(id + 1, (at + 15 * US, at + 30 * US), 7, (at + 26 * US, at + 46 * US));
        scene.stream_sync(id + 2, 7, at + 30 * US, at + 48 * US);
        at += 48 * US;
    }
    let outcome = without(&scene.finish(), "cudaStreamSynchronize");
    // Without waits a kernel is launched every 15 µs and runs 20 µs: the device never runs dry.
    assert_eq!(outcome.span, Ns(40 * 20 * US + 39 * US));
}

#[test]
fn a_final_wait_costs_nothing() {
    let mut scene = Scene::new();
    for index in 0..20 {
        let at = index * 4 * US;
        scene.launch(index as u64 + 1, (at, at + 3 * US), 7, (5 * US + index * 101 * US, 105 * US + index * 101 * US));
    }
    scene.stream_sync(21, 7, 80 * US, 2_100 * US);
    let outcome = without(&scene.finish(), "cudaStreamSynchronize");
    assert_eq!(outcome.gain, Some(Ns::ZERO));
}

#[test]
fn events_hold_other_streams_back() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 2 * US), 7, (5 * US, 55 * US));
    scene.stream_sync(2, 7, 3 * US, 57 * US);
    scene.launch(3, (58 * US, 60 * US), 8, (63 * US, 163 * US));
    scene.record_event(4, 61 * US, 8, 1, None);
    scene.wait_event(5, 62 * US, 9, 1, None);
    scene.launch(6, (63 * US, 65 * US), 9, (164_500, 180 * US));
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let replay = Replay::new(&trace, &waits, None);
    assert_eq!(replay.unchanged().span, Ns(175 * US));
    let timeline = replay.timeline(&[Change::Remove(CallSet::All)]);
    // The wait takes its 54 µs along, and a transition: the least gap between calls here is 900 ns.
    let shift = timeline.ops[op_of(&trace, 3).index()].unwrap().start - Ns(63 * US);
    assert_eq!(shift, Ns(-(54 * US) - 900));
    let held = timeline.ops[op_of(&trace, 6).index()].unwrap();
    assert_eq!(held, Interval::new(Ns(164_500) + shift, Ns(180 * US) + shift), "it keeps its distance from the event");
    assert_eq!(timeline.calls[call_of(&trace, 2).index()], None);
}

#[test]
fn a_blocking_copy_made_asynchronous_still_runs() {
    let build = |name: &str| {
        let mut scene = Scene::new();
        let mut at = 0;
        for index in 0..10 {
            let id = index as u64 * 2 + 1;
            scene.launch(id, (at, at + 2 * US), 7, (at + 5 * US, at + 55 * US));
            scene.call(name, id + 1, at + 2 * US, at + 60 * US);
            scene.copy((MemoryKind::Device, MemoryKind::Pageable), 7, id + 1, at + 56 * US, at + 57 * US);
            at += 60 * US;
        }
        scene.finish()
    };
    // Per iteration 50 µs and 1 µs of work and a dispatch gap of 1 µs after each, instead of 60 µs.
    let blocking = build("cudaMemcpy_v3020");
    assert_eq!(changed(&blocking, &[Change::Async(CallSet::All)]).gain, Some(Ns(9 * 7 * US)));
    assert_eq!(changed(&blocking, &[Change::Pinned]).gain, Some(Ns::ZERO), "it waits by name");
    // Without the copy at all, 50 µs and one gap.
    assert_eq!(without(&blocking, "cudaMemcpy").span, Ns(10 * 50 * US + 9 * US));
    let pageable = build("cudaMemcpyAsync_v3020");
    assert_eq!(changed(&pageable, &[Change::Pinned]).gain, Some(Ns(9 * 7 * US)));
}

#[test]
fn launches_submitted_as_one_graph() {
    // Launch-bound: a kernel of 1 µs every 5 µs, three different ones per iteration.
    let mut scene = Scene::new();
    for index in 0..30i64 {
        let (id, at) = (index as u64 + 1, index * 5 * US);
        scene.call("cudaLaunchKernel_v7000", id, at, at + 4 * US);
        let detail = crate::trace::Detail::Kernel {
            grid: [1 + index as u32 % 3, 1, 1],
            block: [32, 1, 1],
            cluster: [0; 3],
            registers: 0,
            static_shared: 0,
            dynamic_shared: 0,
        };
        scene.op(crate::trace::OpKind::Kernel, detail, 7, id, at + 5 * US, at + 6 * US);
    }
    let trace = scene.finish();
    let outcome = changed(&trace, &[Change::Graph]);
    // Ten graphs, each launched 4 µs, 750 ns for each further node, and 1 µs after the one before; nodes follow each other
    // by 80 ns.
    assert_eq!(outcome.span, Ns(9 * (5 * US + 2 * 750) + 3 * US + 160));
    assert!(!outcome.assumptions.is_empty());
    let nothing_to_join = synchronised_loop(10, 10 * US, US);
    assert_eq!(changed(&nothing_to_join, &[Change::Graph]).gain, Some(Ns::ZERO));
    // Without the waits, the same kernel over and over is one run.
    assert!(changed(&nothing_to_join, &[Change::Graph, Change::Async(CallSet::All)]).gain.unwrap() > Ns::ZERO);
}

#[test]
fn nodes_of_a_graph_move_together() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 2 * US), 7, (5 * US, 55 * US));
    scene.stream_sync(2, 7, 3 * US, 57 * US);
    scene.call("cudaGraphLaunch_v10000", 3, 58 * US, 62 * US);
    for (stream, start, end) in [(7, 65, 70), (8, 66, 80), (7, 71, 75)] {
        scene.kernel(stream, 3, start * US, end * US);
    }
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let timeline = Replay::new(&trace, &waits, None).timeline(&[Change::Remove(CallSet::All)]);
    let graph: Vec<_> = trace.call_ops(call_of(&trace, 3)).iter().map(|op| timeline.ops[op.index()].unwrap()).collect();
    // The first node is held by the kernel before it on its stream, for one default gap; the others keep their place.
    let at = |start: i64, end: i64| Interval::new(Ns(start * US), Ns(end * US));
    assert_eq!(graph, [at(56, 61), at(57, 71), at(62, 66)]);
}

#[test]
fn a_spin_waits_as_one() {
    let mut scene = Scene::new();
    let mut at = 0;
    for index in 0..10 {
        let id = index as u64 * 100 + 1;
        scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 25 * US));
        for query in 0..22 {
            let start = at + 4 * US + query * US;
            let result = if query == 21 { 0 } else { 600 };
            scene.call_returning("cudaStreamQuery_v3020", id + 1 + query as u64, start, start + 900, result);
        }
        at += 27 * US;
    }
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let replay = Replay::new(&trace, &waits, None);
    assert_eq!(replay.unchanged().span, Ns(9 * 27 * US + 20 * US));
    assert_eq!(replay.with(&[Change::Async(CallSet::All)]).span, Ns(10 * 20 * US + 9 * US));
}

#[test]
fn a_spin_without_anything_to_wait_for_takes_its_time() {
    let mut scene = Scene::new();
    for query in 0..3 {
        scene.call("cudaStreamQuery_v3020", query as u64 + 1, query * US, query * US + 900);
    }
    scene.launch(4, (3 * US, 5 * US), 7, (8 * US, 9 * US));
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    assert_eq!(Replay::new(&trace, &waits, None).timeline(&[]).ops, [Some(trace.ops.interval(OpIdx(0)))]);
}

#[test]
fn another_thread_goes_on_from_before_a_spin_or_from_its_end() {
    let start = |second: i64| {
        let mut scene = Scene::new();
        scene.call("cudaGetLastError_v10000", 1, 0, 100);
        for query in 0..20 {
            scene.call("cudaStreamQuery_v3020", query as u64 + 2, (query + 1) * US, (query + 1) * US + 900);
        }
        scene.on_thread(1, 2);
        scene.launch(30, (second, second + US), 7, (second + 5 * US, second + 6 * US));
        let trace = scene.finish();
        let waits = Waits::new(&trace);
        let timeline = Replay::new(&trace, &waits, None).timeline(&[]);
        timeline.calls[call_of(&trace, 30).index()].unwrap().start
    };
    for second in [500, 10 * US, 25 * US] {
        assert_eq!(start(second), Ns(second));
    }
}

#[test]
fn an_op_without_a_call_stays_in_place_under_a_skewed_clock() {
    let mut scene = Scene::new();
    scene.kernel(7, 0, 300, 400);
    scene.launch(1, (900, 1_000), 7, (850, 950));
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let recorded: Vec<_> = trace.ops.indices().map(|op| Some(trace.ops.interval(op))).collect();
    assert_eq!(Replay::new(&trace, &waits, None).timeline(&[]).ops, recorded);
}

#[test]
fn threads_that_hand_over_keep_their_order_and_processes_do_not_know_each_other() {
    let build = |second: u32| {
        let mut scene = Scene::new();
        scene.launch(1, (0, 2 * US), 7, (5 * US, 105 * US));
        scene.stream_sync(2, 7, 3 * US, 107 * US);
        if second == 1 {
            scene.on_thread(1, 2);
        } else {
            scene.on_context(2, 0, 2);
        }
        scene.launch(3, (110 * US, 112 * US), 20, (115 * US, 120 * US));
        scene.finish()
    };
    let start = |trace: &Trace| {
        let waits = Waits::new(trace);
        let timeline = Replay::new(trace, &waits, None).timeline(&[Change::Remove(CallSet::All)]);
        timeline.calls[call_of(trace, 3).index()].unwrap().start
    };
    // The wait ends the moment it would have begun, 1 µs after the launch; its gap is the transition.
    assert_eq!(start(&build(1)), Ns(2 * US + 3 * US));
    assert_eq!(start(&build(2)), Ns(110 * US));
}

#[test]
fn the_legacy_default_stream_waits_for_the_others() {
    let mut scene = Scene::new();
    scene.stream_kind(7, StreamKind::Null);
    scene.stream_kind(13, StreamKind::Blocking);
    scene.launch(1, (0, 2 * US), 13, (5 * US, 55 * US));
    scene.stream_sync(2, 13, 3 * US, 57 * US);
    scene.launch(3, (58 * US, 60 * US), 7, (63 * US, 70 * US));
    let trace = scene.finish();
    assert_eq!(without(&trace, "cudaStreamSynchronize").span, Ns(50 * US + US + 7 * US));
}

#[test]
fn what_is_done_once_keeps_its_length() {
    // Launches of 4 µs with 10 µs of host code between; before the sixth it is 10 ms, of which a part is told to be done
    // once.
    let mut scene = Scene::new();
    for index in 0..11 {
        let at = index * 14 * US + if index > 5 { 9_990 * US } else { 0 };
        scene.launch(index as u64 + 1, (at, at + 4 * US), 7, (at + 5 * US, at + 6 * US));
    }
    let trace = scene.finish();
    let from = Ns(5 * 14 * US + 4 * US);
    let process = trace.call_process(CallIdx(0));
    let gain = |once: &[(i64, i64)], more: &[Change]| {
        let once = once.iter().map(|&(a, b)| (process, Interval::new(from + Ns(a * US), from + Ns(b * US)))).collect();
        let changes = [&[Change::HostSteps { millionths: 500_000, once }], more].concat();
        changed(&trace, &changes).gain.unwrap()
    };
    let all = Ns(9 * 5 * US + 5_000 * US);
    assert_eq!(gain(&[], &[]), all);
    assert_eq!(gain(&[(0, 10_000)], &[]), Ns(9 * 5 * US));
    assert_eq!(gain(&[(1_000, 10_000)], &[]), Ns(9 * 5 * US + 500 * US));
    // Told twice, or in parts.
    assert_eq!(gain(&[(0, 6_000), (5_000, 10_000), (9_000, 10_000)], &[]), Ns(9 * 5 * US));
    assert_eq!(gain(&[(8_000, 9_000), (0, 2_000)], &[]), all - Ns(1_500 * US));
    // What the user asks for is of all host time.
    assert_eq!(gain(&[(0, 10_000)], &["host=0.5".parse().unwrap()]), all);
    assert_eq!(gain(&[(0, 10_000)], &["host=0.9".parse().unwrap()]), Ns(9 * 5 * US + 1_000 * US));
}

#[test]
fn host_and_tracer_are_scaled() {
    // Host-bound: 10 µs of host code per launch of 4 µs.
    let mut scene = Scene::new();
    for index in 0..11 {
        let at = index * 14 * US;
        scene.launch(index as u64 + 1, (at, at + 4 * US), 7, (at + 5 * US, at + 6 * US));
    }
    let trace = scene.finish();
    assert_eq!(changed(&trace, &["host=0.5".parse().unwrap()]).gain, Some(Ns(10 * 5 * US)));
    assert_eq!(changed(&trace, &["host=1".parse().unwrap()]).gain, Some(Ns::ZERO));
    assert_eq!(changed(&trace, &["no-tracer".parse().unwrap()]).gain, Some(Ns(10 * US)));
    assert_eq!(
        changed(&trace, &["no-tracer=100000".parse().unwrap()]).gain,
        Some(Ns(10 * 2 * US)),
        "no more than half"
    );
}

#[test]
fn the_tracer_adds_to_the_launch_of_a_graph_with_each_op_that_is_recorded() {
    // Ten graphs, each launched for 40 µs when the one before has ended: of 20 nodes, of one that stands for all, and a copy
    // that the driver makes in 20 parts.
    let gain = |name: &str, nodes: i64, kind: OpKind, change: &str| {
        let mut scene = Scene::new();
        for index in 0..10 {
            let (at, id) = (index * 100 * US, index as u64 + 1);
            scene.call(name, id, at, at + 40 * US);
            for node in 0..nodes {
                let start = at + 41 * US + node * US;
                let detail = match kind {
                    OpKind::Copy => {
                        Detail::Copy { from: MemoryKind::Pageable, to: MemoryKind::Device, asynchronous: false }
                    }
                    _ => Detail::None,
                };
                scene.op(kind, detail, 7, id, start, start + US);
            }
        }
        changed(&scene.finish(), &[change.parse().unwrap()]).gain.unwrap()
    };
    let graph = "cudaGraphLaunch_v10000";
    // 1 µs for the call and 19 for its further ops, of each launch that another one follows.
    assert_eq!(gain(graph, 20, OpKind::Kernel, "no-tracer"), Ns(9 * 20 * US));
    assert_eq!(gain(graph, 20, OpKind::Kernel, "no-tracer=500"), Ns(9 * 10 * US));
    assert_eq!(gain(graph, 20, OpKind::Kernel, "no-tracer=100000"), Ns(9 * 30 * US), "no more than three quarters");
    assert_eq!(gain(graph, 1, OpKind::Graph, "no-tracer"), Ns(9 * US));
    assert_eq!(gain("cudaMemcpy_v3020", 20, OpKind::Copy, "no-tracer"), Ns(9 * US));
}

#[test]
fn a_wait_without_a_record_is_for_what_had_ended() {
    // Another stream's work goes on past the call: it was not waited for.
    let mut scene = Scene::new();
    scene.launch(1, (0, 2 * US), 8, (5 * US, 900 * US));
    scene.launch(2, (2 * US, 4 * US), 7, (6 * US, 56 * US));
    scene.call("cudaStreamSynchronize_v3020", 3, 5 * US, 58 * US);
    scene.launch(4, (60 * US, 62 * US), 7, (65 * US, 70 * US));
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let replay = Replay::new(&trace, &waits, None);
    let timeline = replay.timeline(&[]);
    assert_eq!(timeline.calls[call_of(&trace, 3).index()], Some(trace.calls.interval(call_of(&trace, 3))));
    assert_eq!(timeline.ops[op_of(&trace, 4).index()], Some(trace.ops.interval(op_of(&trace, 4))));
}

#[test]
fn a_window_leaves_what_was_submitted_before_it_in_place() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 2 * US), 7, (5 * US, 105 * US));
    scene.stream_sync(2, 7, 20 * US, 107 * US);
    scene.launch(3, (110 * US, 112 * US), 7, (115 * US, 120 * US));
    scene.launch(4, (500 * US, 502 * US), 7, (505 * US, 510 * US));
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let replay = Replay::new(&trace, &waits, Some(Interval::new(Ns(10 * US), Ns(200 * US))));
    assert_eq!(replay.unchanged().span, Ns(115 * US));
    let timeline = replay.timeline(&[Change::Remove(CallSet::All)]);
    assert_eq!(timeline.ops[0], Some(trace.ops.interval(OpIdx(0))));
    assert_eq!(timeline.ops[1].unwrap().start, Ns(106 * US));
    assert_eq!(timeline.ops[2], None);
}

#[test]
fn devices_are_told_apart() {
    let mut scene = Scene::new();
    scene.launch(1, (0, 2 * US), 7, (5 * US, 55 * US));
    scene.call("cudaDeviceSynchronize_v3020", 2, 3 * US, 57 * US);
    scene.sync_record(SyncKind::Context, 2, (3 * US, 57 * US), None, None);
    scene.on_context(1, 1, 2);
    scene.launch(3, (58 * US, 60 * US), 7, (63 * US, 163 * US));
    let trace = scene.finish();
    let outcome = without(&trace, "cudaDeviceSynchronize");
    let spans: Vec<_> = outcome.devices.iter().map(|device| (device.device, device.span)).collect();
    assert_eq!(spans, [(DeviceIdx(0), Ns(50 * US)), (DeviceIdx(1), Ns(100 * US))]);
    assert!(outcome.span < Ns(158 * US), "they overlap now");
}

#[test]
fn groups_of_calls_are_priced_and_the_costliest_first() {
    let trace = synchronised_loop(20, 100 * US, US);
    let waits = Waits::new(&trace);
    let replay = Replay::new(&trace, &waits, None);
    let syncs: Vec<CallIdx> = waits.calls().iter().map(|wait| wait.call).collect();
    let (some, last) = (syncs[..15].to_vec(), syncs[19..].to_vec());
    let groups = [last.clone(), some.clone(), syncs.clone()];
    let costs = sync_cost(&replay, &groups, 16, |_, _| false);
    assert_eq!(costs, [Some(Ns::ZERO), Some(Ns(15 * 7 * US)), Some(Ns(19 * 7 * US))]);
    assert_eq!(sync_cost(&replay, &groups, 1, |_, _| false), [None, None, Some(Ns(19 * 7 * US))]);
    for (group, cost) in groups.into_iter().zip(costs) {
        let alone = replay.with(&[Change::Remove(CallSet::Calls(group))]);
        assert_eq!(alone.gain, cost, "side by side or alone");
    }
}

#[test]
fn an_empty_trace_has_no_span() {
    let trace = Trace::default();
    let waits = Waits::default();
    let outcome = Replay::new(&trace, &waits, None).with(&[Change::Graph, Change::Remove(CallSet::All)]);
    assert_eq!((outcome.span, outcome.gain), (Ns::ZERO, Some(Ns::ZERO)));
    assert_eq!(outcome.devices, []);
}

/// Steps of four kernels of 2 µs, launched 6 µs apart: one, then one on each of two streams, then one behind both. With
/// `forks`, the second stream waits for the first kernel and the last kernel for the second stream.
fn fork_and_join(count: i64, forks: bool) -> Trace {
    let mut scene = Scene::new();
    for index in 0..count {
        let (id, at) = (index as u64 * 10 + 1, index * 24 * US);
        let kernel =
            |launch: i64| ((at + launch * 6 * US, at + launch * 6 * US + 4 * US), at + launch * 6 * US + 5 * US);
        let launch = |scene: &mut Scene, id: u64, stream: u32, number: i64| {
            let (call, start) = kernel(number);
            scene.launch(id, call, stream, (start, start + 2 * US));
        };
        launch(&mut scene, id, 7, 0);
        if forks {
            scene.record_event(id + 1, at + 4_200, 7, 1, Some(id));
            scene.wait_event(id + 2, at + 4_400, 8, 1, Some(id));
        }
        launch(&mut scene, id + 3, 7, 1);
        launch(&mut scene, id + 4, 8, 2);
        if forks {
            scene.record_event(id + 5, at + 16_200, 8, 2, Some(id + 5));
            scene.wait_event(id + 6, at + 16_400, 7, 2, Some(id + 5));
        }
        launch(&mut scene, id + 7, 7, 3);
    }
    scene.finish()
}

#[test]
fn a_graph_takes_in_the_streams_that_it_forks_to() {
    let changed = |trace: &Trace| changed(trace, &[Change::Graph]).span;
    let recorded = |trace: &Trace| {
        let waits = Waits::new(trace);
        Replay::new(trace, &waits, None).unchanged().span
    };
    let forks = fork_and_join(20, true);
    assert_eq!(recorded(&forks), Ns(20 * 24 * US - 4 * US));
    // A graph of three kernels one behind the other, and the way from one graph to the next.
    assert!(changed(&forks) < Ns(20 * 10 * US), "{}", changed(&forks));
    // Nothing says that the second stream's work may be captured with the first one's: two launches are left per step.
    let apart = fork_and_join(20, false);
    assert!(changed(&apart) >= Ns(20 * 12 * US), "{}", changed(&apart));
}

#[test]
fn what_a_node_adds_to_a_launch_can_be_set() {
    let trace = fork_and_join(20, true);
    let waits = Waits::new(&trace);
    let span = |graph_node_call| {
        let constants = Constants { graph_node_call, ..Constants::default() };
        Replay::with_constants(&trace, &waits, None, &constants).with(&[Change::Graph]).span
    };
    assert_eq!(
        span(Constants::default().graph_node_call),
        Replay::new(&trace, &waits, None).with(&[Change::Graph]).span
    );
    // Two nodes after the first one in each of the graphs, whose launches nothing hides.
    let longer = span(Ns(20 * US)) - span(Ns::ZERO);
    assert!(longer > Ns(19 * 2 * 10 * US), "{longer}");
}

#[test]
fn no_node_starts_before_its_graph() {
    let trace = fork_and_join(20, true);
    let waits = Waits::new(&trace);
    let timeline = Replay::new(&trace, &waits, None).timeline(&[Change::Graph]);
    let heads = trace.ops.indices().filter(|op| trace.ops.correlation[op.index()].0 % 10 == 1);
    for head in heads {
        let id = trace.ops.correlation[head.index()].0;
        let begin = timeline.ops[head.index()].unwrap();
        for node in [id + 3, id + 4, id + 7] {
            assert!(timeline.ops[op_of(&trace, node).index()].unwrap().start >= begin.end);
        }
    }
}

#[test]
fn a_program_is_no_shorter_without_its_first_or_last_op() {
    let mut scene = Scene::new();
    scene.call("cudaMemcpy_v3020", 1, 0, 20 * US);
    scene.copy((MemoryKind::Pageable, MemoryKind::Device), 7, 1, 10 * US, 12 * US);
    for index in 0..20 {
        let at = 5_000 * US + index * 30 * US;
        scene.launch(index as u64 + 2, (at, at + 4 * US), 7, (at + 5 * US, at + 25 * US));
    }
    scene.call("cudaMemcpy_v3020", 99, 9_000 * US, 9_020 * US);
    scene.copy((MemoryKind::Device, MemoryKind::Pageable), 7, 99, 9_010 * US, 9_012 * US);
    let outcome = without(&scene.finish(), "cudaMemcpy");
    assert!(outcome.gain.unwrap() < Ns(50 * US), "{outcome:?}");
}

#[test]
fn pageable_copies_stage_no_more_when_pinned() {
    let mut scene = Scene::new();
    for index in 0..20 {
        let (id, at) = (index as u64 * 2 + 1, index * 150 * US);
        scene.call("cudaMemcpyAsync_v3020", id, at, at + 100 * US);
        scene.copy((MemoryKind::Pageable, MemoryKind::Device), 7, id, at + 102 * US, at + 122 * US);
        scene.launch(id + 1, (at + 101 * US, at + 105 * US), 7, (at + 123 * US, at + 143 * US));
    }
    let trace = scene.finish();
    let waits = Waits::new(&trace);
    let replay = Replay::new(&trace, &waits, None);
    assert!(!replay.is_withheld());
    // The host's own 45 µs per step and two calls of 4 µs remain, and 42 µs of work.
    assert!(replay.with(&[Change::Pinned]).span < Ns(20 * 60 * US));
}

#[test]
fn calls_can_take_no_longer_than_usual() {
    let mut scene = Scene::new();
    for index in 0..20 {
        let at = index * 30 * US + if index > 10 { 400 * US } else { 0 };
        let end = at + if index == 10 { 404 * US } else { 4 * US };
        scene.launch(index as u64 + 1, (at, end), 7, (end + US, end + 21 * US));
    }
    let trace = scene.finish();
    let outcome = changed(&trace, &[Change::Usual(CallSet::Apis(vec!["cudaLaunchKernel".to_owned()]))]);
    assert_eq!(outcome.gain, Some(Ns(400 * US)));
}

#[test]
fn streams_without_waits_run_side_by_side() {
    let mut scene = Scene::new();
    scene.stream_kind(7, StreamKind::Null);
    scene.stream_kind(8, StreamKind::Blocking);
    for index in 0..40 {
        let (call, start) = (index * 5 * US, 6 * US + index * 21 * US);
        scene.launch(index as u64 + 1, (call, call + 4 * US), 7 + (index % 2) as u32, (start, start + 20 * US));
    }
    let outcome = changed(&scene.finish(), &[Change::NoDefaultStream]);
    assert!(outcome.span < Ns(22 * 21 * US), "{outcome:?}");
}

/// Three kernels of 20 µs per step on a stream that never runs dry, 1 µs apart, and 8 µs behind an event.
#[test]
fn the_device_does_not_stop_for_events_that_are_not_recorded() {
    let mut scene = Scene::new();
    let mut start = 10 * US;
    for index in 0..60i64 {
        let (id, at) = (index as u64 * 2 + 1, index * 5 * US);
        if index > 0 {
            start += if index % 3 == 0 { 28 * US } else { 21 * US };
        }
        if index % 3 == 0 {
            scene.record_event(id + 1, at, 7, 1, None);
        }
        scene.launch(id, (at + US, at + 4 * US), 7, (start, start + 20 * US));
    }
    let trace = scene.finish();
    assert_eq!(without(&trace, "cudaEventRecord").gain, Some(Ns(19 * 7 * US)));
    assert_eq!(without(&trace, "cudaEventElapsedTime").gain, Some(Ns::ZERO));
}

/// Every kernel is followed by a copy, queued, with the time that a device takes to change to it and back. No kernel
/// follows a kernel, so that nothing in the recording tells how soon it would.
#[test]
fn without_the_copies_between_them_kernels_follow_each_other_directly() {
    let mut scene = Scene::new();
    let mut start = 10 * US;
    for index in 0..20i64 {
        let (id, at) = (index as u64 * 2 + 1, index * 5 * US);
        scene.launch(id, (at, at + 2 * US), 7, (start, start + 50 * US));
        scene.call("cudaMemcpyAsync_v3020", id + 1, at + 2_100, at + 4 * US);
        scene.copy((MemoryKind::Device, MemoryKind::Pinned), 7, id + 1, start + 57 * US, start + 58 * US);
        start += 62 * US;
    }
    let trace = scene.finish();
    assert_eq!(without(&trace, "cudaMemcpyAsync").span, Ns(20 * 50 * US + 19 * US));
    assert_eq!(changed(&trace, &[]).span, Ns(19 * 62 * US + 58 * US));
}

#[test]
fn what_no_capture_would_take_is_no_graph() {
    // Per step a kernel on each of two streams; the second one waits for the first, or for work before the step.
    let joined = |outside: bool, join: bool| {
        let mut scene = Scene::new();
        scene.launch(1, (0, 2 * US), 9, (5 * US, 6 * US));
        scene.record_event(2, 3 * US, 9, 3, Some(2));
        for index in 0..20 {
            let (id, at) = (index as u64 * 10 + 11, (index + 1) * 20 * US);
            scene.launch(id, (at, at + 4 * US), 7, (at + 5 * US, at + 7 * US));
            scene.record_event(id + 1, at + 4_200, 7, 1, Some(id));
            let on = if outside { (3, 2) } else { (1, id) };
            scene.wait_event(id + 2, at + 4_400, 8, on.0, Some(on.1));
            scene.launch(id + 3, (at + 6 * US, at + 10 * US), 8, (at + 11 * US, at + 13 * US));
            if join {
                scene.record_event(id + 4, at + 10_200, 8, 2, Some(id + 4));
                scene.wait_event(id + 5, at + 10_400, 7, 2, Some(id + 4));
            }
        }
        changed(&scene.finish(), &[Change::Graph]).gain.unwrap()
    };
    assert!(joined(false, true) > Ns(19 * 5 * US));
    assert_eq!(joined(false, false), Ns::ZERO, "the second stream is not joined");
    assert_eq!(joined(true, true), Ns::ZERO, "it waits for work outside");
}
