//! What the analysis says of recordings made on a real GPU, whose right answers are known.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "../replay/probe.rs"]
mod probe;

use std::path::Path;

use bubblescope::analysis::{
    Analysis, Bubble, Cause, Confidence, DeviceAnalysis, IterationSource, Options, SegmentKind, analyze,
};
use bubblescope::trace::{Interval, Ns, Trace};

fn analysis(trace: &Trace) -> Analysis {
    let analysis = analyze(trace, &Options::default());
    for device in &analysis.devices {
        assert_eq!(device.partition.span(), device.span.len());
        assert_eq!(device.idle_by_root.values().copied().sum::<Ns>(), device.idle_ns());
        assert_eq!(device.idle_by_segment.values().copied().sum::<Ns>(), device.idle_ns());
    }
    analysis
}

/// Checks the windows of a probe's file: iterations of `nk` short kernels, a long one and a tiny one.
fn check(path: &Path) -> usize {
    let windows = probe::read(path);
    for window in &windows {
        let found = analysis(&window.trace);
        let what = format!("L {} nk {} variant {}", window.long_loop, window.kernels, window.variant);
        let device = &found.devices[0];
        let drained = |api: &str| {
            let row = found.sync_calls.iter().find(|row| row.api == api);
            row.map_or(0, |row| row.drained_count)
        };
        // The kernels of an iteration with their launches, and what reads back or waits.
        let kernels = window.kernels as usize + 2;
        let (steps, blocking) = match window.variant {
            0 => (kernels + 2, 1),
            1 => (kernels + 2, 2),
            2 => (kernels, 0),
            _ => (2 * kernels, kernels as u64),
        };
        let copies = usize::from(window.variant < 2);
        let count = (window.trace.ops.len() / (kernels + copies)) as u64;
        let iterations = found.iterations.as_ref().unwrap();
        assert_eq!(iterations.source, IterationSource::LaunchSequence { launches: steps }, "{what}");
        assert_eq!(iterations.blocking_calls_p50, blocking, "{what}");
        assert!(iterations.count + iterations.warmup + 1 >= count, "{what}");
        match window.variant {
            // Nothing follows the last one.
            0 => assert_eq!(drained("cudaStreamSynchronize"), count - 1, "{what}"),
            1 => assert_eq!((drained("cudaMemcpy"), drained("cudaStreamSynchronize")), (count - 1, count), "{what}"),
            2 => {
                assert_eq!(drained("cudaStreamSynchronize"), 0, "{what}");
                let causes: Vec<Cause> = device.idle_by_root.keys().copied().collect();
                assert!(causes.iter().all(|cause| matches!(cause, Cause::LaunchBound | Cause::Dispatch)), "{what}");
            }
            _ => {
                let sync = device.idle_by_root.get(&Cause::Sync).copied().unwrap_or_default();
                assert!(sync.0 * 10 >= device.idle_ns().0 * 8, "{what}");
            }
        }
        assert!(found.quality.idle_reliable, "{what}: {:?}", found.quality.reasons);
    }
    windows.len()
}

/// PyTorch captures a training step: its backward pass launches from a thread of its own into the stream that the main
/// thread captures.
#[test]
fn launches_that_a_capture_records_never_run_and_lack_no_work() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compat/torch-graphs.bubcap");
    let found = analysis(&bubblescope::open::open(&fixture).unwrap());
    assert_eq!((found.launches.count, found.quality.launches_without_ops), (286, 0));
    assert!(found.quality.idle_reliable, "{:?}", found.quality.reasons);
}

/// What roots and drains say of each bubble, held against its segments and calls.
fn roots_are_true(what: &str, trace: &Trace, device: &DeviceAnalysis) {
    for bubble in &device.bubbles {
        let what = format!("{what}: {bubble:?}");
        let pieces = |kind| device.segments_of(bubble).iter().filter(move |piece| piece.kind == kind);
        let time = |kind| pieces(kind).map(|piece| piece.interval.len()).sum::<Ns>();
        let host = time(SegmentKind::HostCode);
        let stretch = pieces(SegmentKind::HostCode).map(|piece| piece.interval.len()).max().unwrap_or_default();
        match bubble.root.cause {
            Cause::LaunchBound => {
                let computed = host.get() * 2 >= bubble.interval.len().get() && stretch >= Ns::from_us(100);
                assert!(!computed, "the host computed for {stretch} ns: {what}");
            }
            Cause::HostBound => {
                use SegmentKind::{Allocation, Api, GraphBuild, ModuleLoad, Profiler, SyncReturn};
                for kind in [Profiler, ModuleLoad, GraphBuild, Allocation, SyncReturn, Api] {
                    assert!(host >= time(kind), "{} ns of {kind}, {host} of host code: {what}", time(kind));
                }
            }
            _ => {}
        }
        for call in pieces(SegmentKind::Api).filter_map(bubblescope::analysis::Segment::call) {
            let name = trace.call_name(call);
            let maps = ["cuMemSet", "cuMemMap", "cuMemAddress", "cuMemImport", "cuMemAlloc", "cuMemFree"];
            assert!(!maps.iter().any(|prefix| name.starts_with(prefix)), "{name}: {what}");
        }
        if let Some(drain) = bubble.drained_by.filter(|drain| drain.confidence == Confidence::Certain) {
            let (start, end) = (trace.calls.start[drain.call.index()], trace.calls.end[drain.call.index()]);
            assert!((start..=end).contains(&bubble.interval.start), "not open when the device ran dry: {what}");
        }
    }
}

#[test]
fn roots_say_what_the_host_did() {
    let roots = |path: &Path, long: &[i64]| {
        let trace = bubblescope::open::open(path).unwrap();
        let found = analysis(&trace);
        let what = path.display().to_string();
        found.devices.iter().for_each(|device| roots_are_true(&what, &trace, device));
        // Where the host computed, and calls came last.
        for start in long {
            let bubbles = || found.devices.iter().flat_map(|device| &device.bubbles);
            let bubble = bubbles().find(|bubble| bubble.interval.start == Ns(*start)).unwrap();
            assert_eq!(bubble.root.cause, Cause::HostBound, "{what}: {bubble:?}");
        }
    };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    roots(&fixtures.join("compat/torch-loader.bubcap"), &[4_686_546_770, 4_589_037_167]);
    roots(&fixtures.join("nccl/nccl-late-1-2.bubcap"), &[990_700_379, 1_091_118_405]);
    for file in ["compat/jax", "nccl/nccl-late-1-1", "workloads/graph-replay/launches", "workloads/allocation/pool"] {
        roots(&fixtures.join(file).with_extension("bubcap"), &[]);
    }
    for file in ["workloads/pipeline/serial", "workloads/pipeline/async-pageable", "planted/pageable-copy"] {
        roots(&fixtures.join(file).with_extension("bubcap"), &[]);
    }
    let Some(corpus) = std::env::var_os("BUBBLESCOPE_CORPUS") else {
        println!("skipped: BUBBLESCOPE_CORPUS is not set");
        return;
    };
    let corpus = Path::new(&corpus);
    roots(&corpus.join("kineto/resnet50_bare_array_2021.json.gz"), &[40_839_000]);
    for file in ["kineto/graph_replay_6streams.json.gz", "nsys/h100_2gpu_1s.sqlite", "nsys/saxpy_2022.sqlite"] {
        roots(&corpus.join(file), &[]);
    }
}

/// Set-up copies from pageable memory, which take their time, and has few kernels.
#[test]
fn the_roots_of_a_loop_are_the_same_with_and_without_its_set_up() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for file in ["scalar-readback/kernels-1/none", "scalar-readback/kernels-4/none", "workloads/timing/none"] {
        let trace = bubblescope::open::open(&folder.join(file).with_extension("bubcap")).unwrap();
        let measured: Interval = trace.meta.workload.as_ref().and_then(|run| run.measured).unwrap();
        let part = analyze(&trace, &Options { window: Some(measured), ..Options::default() });
        let whole = analysis(&trace);
        let cause = |bubble: &Bubble| (bubble.interval, bubble.root.cause);
        let inside = |bubble: &&Bubble| part.devices[0].span.start < bubble.interval.start;
        let whole: Vec<_> = whole.devices[0].bubbles.iter().filter(inside).map(cause).collect();
        let part: Vec<_> = part.devices[0].bubbles.iter().map(cause).collect();
        assert!(part.len() > 100, "{file}");
        assert_eq!(whole[..part.len()], part, "{file}");
    }
}

#[test]
fn each_read_back_drains_one_bubble_of_its_iteration() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/replay/probe_L1000_nk4.txt");
    assert_eq!(check(&fixture), 2);
}

#[test]
fn so_it_is_on_every_recording_of_the_probe() {
    let Some(corpus) = std::env::var_os("BUBBLESCOPE_CORPUS") else {
        println!("skipped: BUBBLESCOPE_CORPUS is not set");
        return;
    };
    for file in ["probe_L1000.txt.gz", "probe_L16000.txt.gz"] {
        assert_eq!(check(&Path::new(&corpus).join("replay").join(file)), 12);
    }
}
