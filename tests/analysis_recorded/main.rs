//! What the analysis says of recordings made on a real GPU, whose right answers are known.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test")]

#[path = "../replay/probe.rs"]
mod probe;

use std::path::Path;

use bubblescope::analysis::{Analysis, Cause, IterationSource, Options, analyze};
use bubblescope::trace::{Ns, Trace};

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
