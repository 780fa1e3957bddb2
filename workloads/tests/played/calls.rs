//! The calls of each variant's measured part: those that it is about, and no others.

use crate::driver::Played;

const LAUNCH: &str = "cuLaunchKernel";
const COPY: &str = "cuMemcpyDtoHAsync_v2";
const RECORD: &str = "cuEventRecord";
const AWAIT: &str = "cuEventSynchronize";
const GRAPH: &str = "cuGraphLaunch";

/// `times` times the calls of `each`.
fn repeated(each: &[&'static str], times: usize) -> Vec<&'static str> {
    each.repeat(times)
}

fn measured(workload: &str, variant: &str, options: &[(&str, &str)]) -> Vec<String> {
    let played = Played::run(workload, variant, options);
    played.measured_calls().into_iter().map(str::to_owned).collect()
}

#[test]
fn scalar_readback() {
    for kernels in [1, 4, 12] {
        let text = kernels.to_string();
        let options = |more: &[(&'static str, &'static str)]| {
            let mut options = vec![("size", "256"), ("kernel-steps", "3"), ("iterations", "5"), ("warmup", "2")];
            options.extend_from_slice(more);
            options
        };
        let calls = |variant, more| {
            let mut options: Vec<(&str, &str)> = options(more);
            options.push(("kernels-per-iteration", &text));
            measured("scalar-readback", variant, &options)
        };
        let launches = vec![LAUNCH; kernels];
        let iteration = |more: &[&'static str]| [launches.as_slice(), more].concat();

        assert_eq!(calls("sync", &[]), repeated(&iteration(&["cuMemcpyDtoH_v2"]), 5));
        assert_eq!(calls("sync-pinned", &[]), repeated(&iteration(&[COPY, "cuStreamSynchronize"]), 5));
        assert_eq!(calls("event", &[]), repeated(&iteration(&[COPY, RECORD, AWAIT]), 5));
        assert_eq!(calls("none", &[]), repeated(&launches, 5));
        assert_eq!(calls("mapped-flag", &[]), repeated(&launches, 5));
        assert_eq!(calls("persistent", &[]), ["cuLaunchCooperativeKernel"]);
        assert_eq!(calls("device-control", &[]), [GRAPH]);
        // Five iterations are three batches of two.
        assert_eq!(calls("graph", &[("batch", "2")]), repeated(&[GRAPH, "cuStreamSynchronize"], 3));
        // The first two are not waited for; the fifth is, after two more have been launched.
        let enqueue = iteration(&[COPY, RECORD]);
        let lagging = [&[AWAIT], enqueue.as_slice()].concat();
        let expected = [repeated(&enqueue, 2), repeated(&lagging, 4), vec![AWAIT]].concat();
        assert_eq!(calls("async", &[("lag", "2")]), expected);
    }
}

#[test]
fn pipeline() {
    let calls =
        |variant| measured("pipeline", variant, &[("chunks", "6"), ("chunk-size", "256"), ("kernel-steps", "3")]);
    assert_eq!(calls("serial"), repeated(&["cuMemcpyHtoD_v2", LAUNCH, "cuMemcpyDtoH_v2"], 6));
    for variant in ["async-pageable", "async-pinned", "streams-2", "streams-4"] {
        assert_eq!(calls(variant), repeated(&["cuMemcpyHtoDAsync_v2", LAUNCH, COPY], 6), "{variant}");
    }
    assert_eq!(calls("graph"), [GRAPH]);
}

#[test]
fn graph_replay() {
    let options =
        [("size", "256"), ("branch-kernels", "2"), ("kernel-steps", "3"), ("iterations", "4"), ("warmup", "1")];
    let calls = |variant| measured("graph-replay", variant, &options);
    let fork = [RECORD, "cuStreamWaitEvent"];
    let round = [&[LAUNCH], fork.as_slice(), &[LAUNCH; 4], &fork, &[LAUNCH]].concat();
    assert_eq!(calls("launches"), repeated(&round, 4));
    let synchronised: Vec<_> = round
        .iter()
        .flat_map(|&call| if call == LAUNCH { vec![call, "cuCtxSynchronize"] } else { vec![call] })
        .collect();
    assert_eq!(calls("sync-each"), repeated(&synchronised, 4));
    assert_eq!(calls("graph"), repeated(&[GRAPH], 4));
    assert_eq!(calls("graph-update"), {
        // The node is looked up once.
        [vec!["cuGraphGetRootNodes"], repeated(&["cuGraphExecKernelNodeSetParams_v2", GRAPH], 4)].concat()
    });
    let before = ["cuStreamBeginCapture_v2"];
    let after = ["cuStreamEndCapture", "cuGraphInstantiateWithFlags", GRAPH, "cuGraphExecDestroy", "cuGraphDestroy"];
    assert_eq!(calls("graph-rebuilt"), repeated(&[before.as_slice(), &round, &after].concat(), 4));
    assert_eq!(calls("fused"), repeated(&[LAUNCH], 4));
}

#[test]
fn default_stream() {
    for variant in ["legacy", "non-blocking", "per-thread"] {
        let options = [("size", "256"), ("kernel-steps", "3"), ("iterations", "4")];
        assert_eq!(measured("default-stream", variant, &options), repeated(&[LAUNCH], 12), "{variant}");
    }
}

#[test]
fn allocation() {
    let options = [("size", "256"), ("kernel-steps", "3"), ("iterations", "4")];
    let calls = |variant| measured("allocation", variant, &options);
    assert_eq!(calls("malloc"), repeated(&["cuMemAlloc_v2", LAUNCH, LAUNCH, "cuMemFree_v2"], 4));
    assert_eq!(calls("pool"), repeated(&["cuMemAllocAsync", LAUNCH, LAUNCH, "cuMemFreeAsync"], 4));
    assert_eq!(calls("reuse"), repeated(&[LAUNCH, LAUNCH], 4));
}

#[test]
fn timing() {
    let options = [("size", "256"), ("kernel-steps", "3"), ("iterations", "4"), ("kernels-per-step", "2")];
    let calls = |variant| measured("timing", variant, &options);
    let sync = "cuCtxSynchronize";
    assert_eq!(calls("device-sync"), repeated(&[sync, LAUNCH, LAUNCH, sync], 4));
    let timed = repeated(&[RECORD, LAUNCH, LAUNCH, RECORD], 4);
    assert_eq!(calls("events"), [timed, vec!["cuStreamSynchronize"], vec!["cuEventElapsedTime"; 4]].concat());
    assert_eq!(calls("none"), repeated(&[LAUNCH, LAUNCH], 4));
}

#[test]
fn planted() {
    let options = |iterations| {
        [("size", "256"), ("kernel-steps", "64"), ("hold-steps", "5"), ("host-us", "1"), ("iterations", iterations)]
    };
    let calls = |variant| measured("planted", variant, &options("4"));
    assert_eq!(calls("sync"), repeated(&[LAUNCH, "cuStreamSynchronize"], 4));
    assert_eq!(calls("blocking-copy"), repeated(&[LAUNCH, "cuMemcpyDtoH_v2"], 4));
    assert_eq!(calls("allocation"), repeated(&["cuMemAlloc_v2", LAUNCH, "cuMemFree_v2"], 4));
    assert_eq!(calls("module-load"), repeated(&["cuModuleLoadData", "cuModuleGetFunction", LAUNCH], 4));
    assert_eq!(calls("launch-bound"), repeated(&[LAUNCH], 4));
    assert_eq!(calls("host-bound"), repeated(&[LAUNCH], 4));
    assert_eq!(calls("pageable-copy"), repeated(&["cuMemcpyHtoDAsync_v2", LAUNCH], 4));
    // These begin with a kernel that holds the device.
    let held = |each: &[&'static str], times| [vec![LAUNCH], repeated(each, times)].concat();
    assert_eq!(calls("dependency"), held(&[RECORD, "cuStreamWaitEvent", LAUNCH], 4));
    assert_eq!(calls("default-stream"), held(&[LAUNCH], 4));
    for (iterations, launches) in [("4", 1), ("100", 1), ("201", 3), ("300", 3)] {
        assert_eq!(measured("planted", "graph-internal", &options(iterations)), held(&[GRAPH], launches));
    }
}
