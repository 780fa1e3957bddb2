//! What the analysis says of recordings from an H200 in which the device idles for one known reason each.

#![expect(clippy::unwrap_used, reason = "a test helper that fails fails the test")]

mod recorded;

use std::collections::BTreeMap;

use bubblescope::analysis::{Bubble, Cause, Constants, Options, analyze, marked};
use bubblescope::open::open;
use bubblescope::report::{Aligned, Compare, ComparedTrace, Report};
use bubblescope::trace::{Interval, Ns, OpKind, Trace};
use recorded::Recorded;

/// Kernels of each variant.
const ITERATIONS: usize = 300;

/// A planted cause, and what must be said of the bubbles that it makes.
struct Plant {
    variant: &'static str,
    /// Which bubbles the plant makes.
    makes: fn(&Trace, &Bubble) -> bool,
    /// How many those are.
    bubbles: usize,
    root: Cause,
    /// The calls one of which the root names.
    blamed: &'static [&'static str],
    /// The calls one of which was open when the device ran dry; none when the plant lets no call wait.
    drained_by: &'static [&'static str],
}

fn every_bubble(_: &Trace, _: &Bubble) -> bool {
    true
}

fn between_nodes_of_one_replay(trace: &Trace, bubble: &Bubble) -> bool {
    trace.ops.launch(bubble.before).is_some() && trace.ops.launch(bubble.before) == trace.ops.launch(bubble.after)
}

fn before_a_copy(trace: &Trace, bubble: &Bubble) -> bool {
    trace.ops.kind[bubble.after.index()] == OpKind::Copy
}

const PLANTS: [Plant; 10] = [
    // The host waits for each kernel before it launches the next: the device is dry between any two.
    Plant {
        variant: "sync",
        makes: every_bubble,
        bubbles: ITERATIONS - 1,
        root: Cause::Sync,
        blamed: &["cuStreamSynchronize"],
        drained_by: &["cuStreamSynchronize"],
    },
    // The copy holds the host up until the kernel and the copy are done: it makes the gap before itself, as it is
    // submitted at once but not ahead, and the gap after itself.
    Plant {
        variant: "blocking-copy",
        makes: every_bubble,
        bubbles: 2 * ITERATIONS - 1,
        root: Cause::BlockingCopy,
        blamed: &["cuMemcpyDtoH"],
        drained_by: &["cuMemcpyDtoH"],
    },
    // The free waits for the kernel, and it and the next allocation keep the host from launching.
    Plant {
        variant: "allocation",
        makes: every_bubble,
        bubbles: ITERATIONS - 1,
        root: Cause::Allocation,
        blamed: &["cuMemFree", "cuMemAlloc"],
        drained_by: &["cuMemFree", "cuMemAlloc"],
    },
    // Loading takes longer than a kernel: the device is dry between any two.
    Plant {
        variant: "module-load",
        makes: every_bubble,
        bubbles: ITERATIONS - 1,
        root: Cause::ModuleLoad,
        blamed: &["cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel"],
        drained_by: &[],
    },
    // A launch takes longer than a kernel: the device is dry between any two.
    Plant {
        variant: "launch-bound",
        makes: every_bubble,
        bubbles: ITERATIONS - 1,
        root: Cause::LaunchBound,
        blamed: &["cuLaunchKernel"],
        drained_by: &[],
    },
    // The host computes for longer than a kernel takes: the device is dry between any two.
    Plant {
        variant: "host-bound",
        makes: every_bubble,
        bubbles: ITERATIONS - 1,
        root: Cause::HostBound,
        blamed: &["cuLaunchKernel"],
        drained_by: &[],
    },
    // Everything is enqueued while the first kernel holds the device; each of the others waits for its predecessor's
    // event.
    Plant {
        variant: "dependency",
        makes: every_bubble,
        bubbles: ITERATIONS,
        root: Cause::Dependency,
        blamed: &["cuStreamWaitEvent"],
        drained_by: &[],
    },
    // The plant is the chain: the three gaps before a replay are those of a queue.
    Plant {
        variant: "graph-internal",
        makes: between_nodes_of_one_replay,
        bubbles: ITERATIONS - 3,
        root: Cause::GraphInternal,
        blamed: &["cuGraphLaunch"],
        drained_by: &[],
    },
    // The host moves the pageable memory before the copy can start, which is that copy's own bubble and no drain; the
    // kernel is enqueued by the time the copy ends, and the gap before it is the queue's.
    Plant {
        variant: "pageable-copy",
        makes: before_a_copy,
        bubbles: ITERATIONS - 1,
        root: Cause::BlockingCopy,
        blamed: &["cuMemcpyHtoDAsync"],
        drained_by: &[],
    },
    // Everything is enqueued while the first kernel holds the device; each of the others is on another stream, and
    // waits as the legacy default stream makes it.
    Plant {
        variant: "default-stream",
        makes: every_bubble,
        bubbles: ITERATIONS,
        root: Cause::Dependency,
        blamed: &["cuLaunchKernel"],
        drained_by: &[],
    },
];

#[test]
fn nine_tenths_of_the_time_that_each_plant_makes_are_put_down_to_it() {
    for plant in &PLANTS {
        let variant = plant.variant;
        let recorded = Recorded::new(&format!("planted/{variant}.bubcap"));
        let trace = &recorded.trace;
        let device = recorded.device();
        let made: Vec<&Bubble> = device.bubbles.iter().filter(|bubble| (plant.makes)(trace, bubble)).collect();
        assert_eq!(made.len(), plant.bubbles, "{variant}");

        let time = |what: &dyn Fn(&Bubble) -> bool| -> i64 {
            made.iter().filter(|bubble| what(bubble)).map(|bubble| bubble.interval.len().get()).sum()
        };
        let all = time(&|_| true);
        let mostly = |part: i64, what: &str| {
            assert!(part * 10 >= all * 9, "{variant}: {part} of {all} ns {what}");
        };
        mostly(time(&|bubble| bubble.root.cause == plant.root), "have the right root");
        let named = |call: Option<_>, names: &[&str]| call.is_some_and(|call| names.contains(&trace.call_name(call)));
        mostly(time(&|bubble| named(bubble.root.call, plant.blamed)), "are blamed on the planted call");
        // The gap before the copy of a call that drains the device is that call's too, but not one that it drained.
        let before_its_own = |bubble: &Bubble| named(trace.ops.launch(bubble.after), plant.drained_by);
        assert!(made.iter().all(|bubble| !before_its_own(bubble) || bubble.drained_by.is_none()), "{variant}");
        let drained = time(&|bubble| {
            before_its_own(bubble) || named(bubble.drained_by.map(|drain| drain.call), plant.drained_by)
        });
        if plant.drained_by.is_empty() {
            let any = made.iter().filter(|bubble| bubble.drained_by.is_some()).count();
            assert_eq!(any, 0, "{variant}: nothing waits");
        } else {
            mostly(drained, "were drained by the planted call");
        }
    }
}

#[test]
fn no_plant_grows_another() {
    for plant in &PLANTS {
        let recorded = Recorded::new(&format!("planted/{}.bubcap", plant.variant));
        let device = recorded.device();
        // What the plants do not make is the queue's own time.
        let others: Vec<&Bubble> =
            device.bubbles.iter().filter(|bubble| !(plant.makes)(&recorded.trace, bubble)).collect();
        assert!(others.iter().all(|bubble| bubble.root.cause == Cause::Dispatch || bubble.root.cause == plant.root));
        assert!(recorded.analysis.quality.idle_reliable, "{}", plant.variant);
    }
}

#[test]
fn half_a_bubble_and_the_op_that_ends_it_are_half_a_bubble_idle() {
    for plant in &PLANTS {
        let recorded = Recorded::new(&format!("planted/{}.bubcap", plant.variant));
        let (trace, known) = (&recorded.trace, &recorded.analysis.devices);
        let longest = recorded.device().bubbles.iter().max_by_key(|bubble| bubble.interval.len()).unwrap();
        let middle = Ns(longest.interval.start.get().midpoint(longest.interval.end.get()));
        let interval = Interval::new(middle, trace.ops.end[longest.after.index()]);
        let found = marked(trace, known, interval, &Constants::default());
        let device = &found.devices[0];
        let idle = longest.interval.end - middle;
        assert_eq!(device.idle_by_root, BTreeMap::from([(longest.root.cause, idle)]), "{}", plant.variant);
        let figures = (device.idle_ns(), device.partition.span(), found.outside(device));
        assert_eq!(figures, (idle, interval.len(), Ns::ZERO), "{}", plant.variant);
        assert!(found.quality.idle_reliable && found.quality.warnings.is_empty(), "{:?}", found.quality);
        // An interval in which nothing ran at all is idle, too.
        let nothing = Interval::new(middle, longest.interval.end);
        let found = marked(trace, known, nothing, &Constants::default());
        assert_eq!((found.devices[0].idle_ns(), found.devices[0].ops), (nothing.len(), 0), "{}", plant.variant);
        assert!(!found.quality.gpu_not_captured);
    }
}

/// The comparison of some recordings of `tests/fixtures`.
fn compared(fixtures: &[String]) -> Compare {
    let found: Vec<(Aligned, Report)> = fixtures
        .iter()
        .map(|fixture| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
            let trace = open(&folder.join(fixture)).unwrap();
            let aligned = Aligned::find(fixture, &trace, &analyze(&trace, &Options::default())).unwrap();
            let report = aligned.report(fixture, &trace);
            (aligned, report)
        })
        .collect();
    let traces = fixtures.iter().zip(&found);
    let traces: Vec<ComparedTrace<'_>> =
        traces.map(|(path, (aligned, report))| ComparedTrace { path, aligned, report }).collect();
    Compare::of_traces(&traces).unwrap()
}

#[test]
fn other_work_is_marked_and_the_same_work_is_not() {
    let busy = |compare: &Compare| -> Vec<(String, i64)> {
        let variants = compare.variants.iter();
        variants.map(|each| (each.variant.clone(), each.recorded.as_ref().unwrap().busy_ns.get())).collect()
    };
    let marked = |compare: &Compare| -> Vec<String> {
        let variants = compare.variants.iter().filter(|each| !each.marks.is_empty());
        variants.map(|each| each.variant.clone()).collect()
    };
    let nothing: &[&str] = &[];
    for (folder, variants, other) in [
        ("scalar-readback/kernels-1", &["sync", "async", "graph"][..], nothing),
        ("scalar-readback/kernels-4", &["sync", "async", "graph"], nothing),
        ("scalar-readback/kernels-12", &["sync", "async", "graph"], nothing),
        ("workloads/allocation", &["malloc", "pool", "reuse"], nothing),
        ("workloads/default-stream", &["legacy", "non-blocking", "per-thread"], nothing),
        ("workloads/timing", &["device-sync", "events", "none"], nothing),
        ("workloads/graph-replay", &["launches", "graph", "graph-update", "graph-rebuilt", "sync-each"], nothing),
        ("planted", &["host-bound", "launch-bound"], &["launch-bound"]),
    ] {
        let paths: Vec<String> = variants.iter().map(|variant| format!("{folder}/{variant}.bubcap")).collect();
        let compare = compared(&paths);
        eprintln!("{folder}: {:?}", busy(&compare));
        assert_eq!(marked(&compare), other, "{folder}: {:?}", busy(&compare));
    }
}
