//! The findings on recordings made on a real GPU: the pattern that each was made to show, and nothing on those made to
//! be clean.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bubblescope::analysis::replay::Change;
use bubblescope::analysis::{
    Bubble, Cause, Confidence, DeviceAnalysis, Finding, FindingId, FindingLimits, FullAnalysis, Options, Rule, Segment,
    SegmentKind, Severity, SyncCallRow, full,
};
use bubblescope::open::open;
use bubblescope::trace::{CallIdx, Ns, Trace};

const KERNELS: [u32; 3] = [1, 4, 12];

fn recording(path: &str) -> Trace {
    open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)).unwrap()
}

/// The analysis of the measured part.
fn measured(trace: &Trace) -> FullAnalysis {
    let window = trace.meta.workload.as_ref().unwrap().measured;
    full(trace, &Options { window, ..Options::default() })
}

fn full_of(trace: &Trace) -> FullAnalysis {
    full(trace, &Options::default())
}

fn ids(full: &FullAnalysis) -> Vec<FindingId> {
    assert_eq!(full.findings.withheld, None);
    full.findings.found.iter().map(|finding| finding.id).collect()
}

fn span(full: &FullAnalysis) -> Ns {
    full.analysis.devices[0].span.len()
}

/// Whether a promise is within 10 % of what was measured.
fn is_kept(promised: Ns, measured: Ns) -> bool {
    promised.0.abs_diff(measured.0) * 10 <= measured.0.unsigned_abs()
}

#[test]
fn what_reading_a_value_back_costs_is_what_doing_without_it_saved() {
    for kernels in KERNELS {
        let of = |variant: &str| measured(&recording(&format!("scalar-readback/kernels-{kernels}/{variant}.bubcap")));
        let (sync, none) = (of("sync"), of("none"));
        let saved = span(&sync) - span(&none);
        let finding = &sync.findings.found[0];
        assert_eq!((finding.id, finding.severity), (FindingId::ScalarReadback, Severity::High));
        assert!((195..=200).contains(&finding.count), "{}", finding.count);
        let row: &SyncCallRow = sync.analysis.sync_calls.iter().find(|row| row.api == "cuMemcpyDtoH").unwrap();
        let whole = row.recoverable.unwrap();
        println!(
            "{kernels} kernels: {saved} saved; {} promised by the finding, {whole} by the call",
            finding.recoverable
        );
        assert!(is_kept(finding.recoverable, saved), "{kernels}: {} of {saved}", finding.recoverable);
        assert!(is_kept(whole, saved), "{kernels}: {whole} of {saved}");
        assert!(row.drained_count >= row.calls() - 1, "{kernels}: {} of {}", row.drained_count, row.calls());
    }
}

/// Whichever calls read the value back, the promise is what the variant without any of them took.
#[test]
fn what_reading_a_value_back_costs_does_not_depend_on_the_calls_that_do_it() {
    for size in ["k1-10us", "k4-10us", "k1-100us"] {
        let of = |variant: &str| measured(&recording(&format!("waits/scalar-readback-{variant}-{size}.bubcap")));
        let none = span(&of("none"));
        for variant in ["sync", "sync-pinned", "event"] {
            let full = of(variant);
            let saved = span(&full) - none;
            let finding = &full.findings.found[0];
            println!("{variant} {size}: {saved} saved, {} promised", finding.recoverable);
            assert_eq!(finding.id, FindingId::ScalarReadback, "{variant} {size}");
            assert!(is_kept(finding.recoverable, saved), "{variant} {size}: {} of {saved}", finding.recoverable);
            let with_records = finding.evidence.iter().any(|line| line.api.as_deref() == Some("cuEventRecord"));
            assert_eq!(with_records, variant == "event", "{variant} {size}");
        }
    }
}

/// Once a read-back is out of the loop, not to wait for the one at its end is worth next to nothing, whatever else is
/// changed.
#[test]
fn a_last_wait_does_not_change_what_changes_gain_together() {
    for path in ["scalar-readback/kernels-4/sync", "scalar-readback/kernels-12/sync", "workloads/scalar-readback/event"]
    {
        let trace = recording(&format!("{path}.bubcap"));
        let window = trace.meta.workload.as_ref().unwrap().measured;
        let together = |texts: &[&str]| {
            let what_if = texts.iter().map(|text| text.parse::<Change>().unwrap()).collect();
            let full = full(&trace, &Options { window, what_if, ..Options::default() });
            full.replay.unwrap().all_together.unwrap().gain
        };
        let (less, more) = (together(&["graph"]), together(&["graph", "no-sync"]));
        assert!(more >= less && (more - less).0 * 100 <= less.0, "{path}: {less}, with no-sync {more}");
        assert_eq!(together(&["no-sync", "graph"]), more, "{path}");
    }
}

#[test]
fn no_value_is_read_back_where_none_is_waited_for() {
    for kernels in KERNELS {
        for variant in ["async", "graph", "none"] {
            let full = measured(&recording(&format!("scalar-readback/kernels-{kernels}/{variant}.bubcap")));
            assert!(!ids(&full).contains(&FindingId::ScalarReadback), "{kernels} {variant}");
        }
    }
}

#[test]
fn each_planted_cause_is_found() {
    for (planted, expected) in [
        ("allocation", Some(FindingId::AllocationInLoop)),
        ("blocking-copy", Some(FindingId::ScalarReadback)),
        ("default-stream", Some(FindingId::DefaultStream)),
        ("dependency", Some(FindingId::NoOverlap)),
        ("graph-internal", None),
        ("host-bound", Some(FindingId::HostBoundStep)),
        ("launch-bound", Some(FindingId::TinyLaunches)),
        ("module-load", Some(FindingId::LazyLoading)),
        ("pageable-copy", Some(FindingId::PageableAsyncCopy)),
        ("sync", Some(FindingId::SyncAfterLaunch)),
    ] {
        let full = measured(&recording(&format!("planted/{planted}.bubcap")));
        assert_eq!(ids(&full), Vec::from_iter(expected), "{planted}");
    }
}

/// Example times of a call are those of calls of that name.
fn shows_its_calls(finding: &Finding, trace: &Trace, what: &str) {
    for evidence in &finding.evidence {
        let Some(api) = &evidence.api else { continue };
        for &at in &evidence.at {
            let begins = |call: CallIdx| trace.calls.start[call.index()] == at && trace.call_name(call) == api;
            assert!(trace.calls.indices().any(begins), "{what}: {} at {at} is no {api}", finding.id);
        }
    }
}

/// Events that are only read once the work is done cost what the variant without them saved.
#[test]
fn what_recording_events_costs_is_what_doing_without_them_saved() {
    for (events, none) in [
        ("waits/timing-events-k1-10us", "waits/timing-none-k1-10us"),
        ("waits/timing-events-k4-10us", "waits/timing-none-k4-10us"),
        ("workloads/timing/events", "workloads/timing/none"),
    ] {
        let of = |path: &str| measured(&recording(&format!("{path}.bubcap")));
        let (full, none) = (of(events), of(none));
        let saved = span(&full) - span(&none);
        let finding = full.findings.found.iter().find(|finding| finding.id == FindingId::EventTiming).unwrap();
        println!("{events}: {saved} saved, {} promised", finding.recoverable);
        let miss = finding.recoverable.0.abs_diff(saved.0);
        assert!(miss * 25 <= span(&full).0.unsigned_abs(), "{events}: {} of {saved}", finding.recoverable);
        assert!(!ids(&none).contains(&FindingId::EventTiming));
    }
}

/// A gain that is said to be the least is not more than what was saved.
#[test]
fn the_least_gain_of_graphs_built_once_is_reached() {
    let of = |variant: &str| measured(&recording(&format!("workloads/graph-replay/{variant}.bubcap")));
    let (rebuilt, once) = (of("graph-rebuilt"), of("graph"));
    let saved = span(&rebuilt) - span(&once);
    let finding = &rebuilt.findings.found[0];
    assert!(finding.id == FindingId::GraphReinstantiated && finding.id.gains_at_least());
    assert!(finding.recoverable <= saved && finding.recoverable.0 * 2 >= saved.0, "{} of {saved}", finding.recoverable);
}

/// What is said of a planted cause, and of the bubbles that it makes, goes together.
#[test]
fn what_is_said_of_planted_causes_agrees() {
    for (planted, said) in [
        (
            "allocation",
            "cuMemFree: 299 of its 300 calls; 298 bubbles began while the host waited, 34.8 ms long together",
        ),
        ("blocking-copy", "because the 444 µs that the GPU works for these calls go too"),
        ("default-stream", "work of different streams would also run at the same time"),
        ("dependency", "work of different streams would also run at the same time"),
        ("host-bound", "`bubble-report record --nvtx` names the program's NVTX ranges"),
        ("launch-bound", "the GPU was idle for 1.53 ms because launches came too slowly"),
        ("module-load", "Load each module once, before the loop, and keep its handle"),
        (
            "pageable-copy",
            "307 bubbles exist because of that, 7.52 ms long together; on the GPU they take 63.2 ms at \
                           19.9 GB/s, none of it beside a kernel",
        ),
        (
            "sync",
            "cuStreamSynchronize: 299 of its 300 calls; 299 bubbles began while the host waited, 3.52 ms long together",
        ),
    ] {
        let full = measured(&recording(&format!("planted/{planted}.bubcap")));
        let device = &full.analysis.devices[0];
        let idle = device.idle_ns();
        let finding = &full.findings.found[0];
        let texts = finding.evidence.iter().map(|evidence| evidence.text.as_str()).chain([finding.remedy]);
        assert!(texts.clone().any(|text| text.contains(said)), "{planted}: {:?}", texts.collect::<Vec<_>>());
        full.findings.found.iter().for_each(|finding| agrees(finding, &full, planted));
        // A gain beyond the idle time is explained, and no other.
        let explained = finding.evidence.iter().any(|evidence| evidence.text.starts_with("the gain is more than"));
        assert_eq!(explained, finding.recoverable > idle, "{planted}");
        // Nine tenths of the idle time belong to the finding; what the queue itself takes does not.
        let ours = device.bubbles.iter().filter(|bubble| finding.concerns(device, bubble));
        let ours: Ns = ours.map(|bubble| bubble.interval.len()).sum();
        let queue = device.idle_by_root.get(&Cause::Dispatch).copied().unwrap_or_default();
        assert!(ours.0 * 10 >= (idle - queue).0 * 9, "{planted}: {ours} of {idle}");
        for row in &full.analysis.sync_calls {
            assert!(row.idle_while_blocked <= idle, "{planted}: {} of {idle} in {}", row.idle_while_blocked, row.api);
            assert!(row.useful_wait + row.idle_while_blocked <= row.blocked);
            let gain = row.recoverable.unwrap();
            let most = finding.recoverable.max(idle);
            assert!(gain.0 * 100 <= most.0 * 101, "{planted}: {gain} of {idle} in {}", row.api);
        }
        let reads_results = matches!(planted, "blocking-copy" | "sync");
        let assumes =
            finding.assumptions.iter().any(|assumption| assumption.contains("the results that it waited for"));
        assert_eq!(assumes, reads_results, "{planted}: {:?}", finding.assumptions);
    }
}

/// A program that builds its graph anew in every step launches each for the first time: that is no set-up.
#[test]
fn first_launches_in_a_loop_are_no_set_up() {
    let full = measured(&recording("workloads/graph-replay/graph-rebuilt.bubcap"));
    let says: Vec<&str> = full.findings.found.iter().map(|finding| finding.title.as_str()).collect();
    assert!(!ids(&full).contains(&FindingId::OneTimeSetup), "{says:?}");
}

/// Of 598 calls of modules, half load one and half look a kernel up.
#[test]
fn modules_that_are_loaded_are_counted_without_look_ups() {
    let full = measured(&recording("planted/module-load.bubcap"));
    let found = &full.findings.found[0];
    assert_eq!((found.title.as_str(), found.count), ("Code is loaded or compiled in the loop, 299 times", 299));
    // PyTorch looks kernels up in every step.
    let trace = recording("compat/torch-eager.bubcap");
    let full = full_of(&trace);
    for finding in &full.findings.found {
        let looked_up = |call: &&CallIdx| trace.call_name(**call) == "cuKernelGetFunction";
        let count = finding.changes.iter().flat_map(Change::calls).filter(looked_up).count();
        assert!(count < 10, "{}: {count} look-ups", finding.title);
    }
}

/// The bubbles of a finding, found again from what it changes and from what it says.
fn own<'a>(finding: &Finding, full: &'a FullAnalysis) -> Vec<(&'a DeviceAnalysis, &'a Bubble)> {
    let devices = full.analysis.devices.iter();
    let all = devices.flat_map(|device| device.bubbles.iter().map(move |bubble| (&**device, bubble)));
    let calls: BTreeSet<CallIdx> = finding.changes.iter().flat_map(Change::calls).copied().collect();
    let length = |(_, bubble): &(&DeviceAnalysis, &Bubble)| bubble.interval.len();
    let is_own = |&(device, bubble): &(&DeviceAnalysis, &Bubble)| {
        let (root, segments) = (&bubble.root, device.segments_of(bubble));
        match finding.id {
            FindingId::DefaultStream => root.rule == Rule::LegacyDefaultStream,
            FindingId::NoOverlap => root.cause == Cause::Dependency && root.rule != Rule::LegacyDefaultStream,
            FindingId::TinyLaunches => [Cause::LaunchBound, Cause::Dispatch].contains(&root.cause),
            FindingId::HostBoundStep => {
                let code = host_code(segments);
                let long = code >= FindingLimits::default().long_host_code && code.0 >= bubble.interval.len().0 / 2;
                root.cause == Cause::HostBound || root.cause == Cause::LaunchBound && long
            }
            FindingId::OneTimeSetup => {
                segments.iter().any(|segment| segment.call().is_some_and(|call| calls.contains(&call)))
            }
            _ => {
                let blames = root.cause.blames_call() || root.rule == Rule::LaunchCallLong;
                let of = [root.call.filter(|_| blames), bubble.drained_by.map(|drain| drain.call), bubble.refill_of];
                of.into_iter().flatten().any(|call| calls.contains(&call))
            }
        }
    };
    let mut own: Vec<(&DeviceAnalysis, &Bubble)> = all.filter(is_own).collect();
    if finding.id == FindingId::HostBoundStep {
        own.sort_by_key(|of| std::cmp::Reverse(length(of)));
        while own.len() as u64 > finding.count {
            let pause = own.remove(0);
            assert!(length(&pause) > own.iter().map(length).sum(), "only a pause is left out");
        }
        assert_eq!(own.len() as u64, finding.count);
    }
    own
}

fn host_code(segments: &[Segment]) -> Ns {
    let code = segments.iter().filter(|segment| segment.kind == SegmentKind::HostCode);
    code.map(|segment| segment.interval.len()).sum()
}

/// The nanoseconds that a time of a report says, to three digits.
fn nanoseconds(text: &str) -> f64 {
    let (number, unit) = text.rsplit_once(' ').unwrap();
    let scale = match unit {
        "ns" => 1.0,
        "µs" | "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => panic!("{text}"),
    };
    number.replace([',', '\u{202f}', '\u{a0}'], "").parse::<f64>().unwrap() * scale
}

fn says(text: &str, time: Ns) -> bool {
    (nanoseconds(text) - time.0 as f64).abs() * 100.0 <= time.0 as f64
}

/// What a finding says of its bubbles is true of them, and they lead to it.
fn agrees(finding: &Finding, full: &FullAnalysis, what: &str) {
    let own = own(finding, full);
    let place = |device: &DeviceAnalysis, bubble: &Bubble| (device.device, bubble.interval.start);
    let places: BTreeSet<_> = own.iter().map(|(device, bubble)| place(device, bubble)).collect();
    let mut causes: BTreeMap<String, Ns> = BTreeMap::new();
    for device in &full.analysis.devices {
        for bubble in &device.bubbles {
            let is_own = places.contains(&place(device, bubble));
            assert_eq!(finding.concerns(device, bubble), is_own, "{what}: {} at {}", finding.id, bubble.interval.start);
            if is_own {
                *causes.entry(bubble.root.cause.to_string()).or_default() += bubble.interval.len();
            }
        }
    }
    let texts: Vec<&str> = finding.evidence.iter().map(|evidence| evidence.text.as_str()).collect();
    let said = |said: &str| texts.iter().find_map(|text| Some(text.split_once(said)?.1));
    let alone = said(" have the root cause ");
    assert_eq!(alone, causes.keys().next().map(String::as_str).filter(|_| causes.len() == 1), "{what}: {texts:?}");
    let parts: Vec<&str> = said(" have the root causes ").into_iter().flat_map(|all| all.split(", ")).collect();
    assert_eq!(parts.len(), if causes.len() > 1 { causes.len().min(4) } else { 0 }, "{what}: {texts:?}");
    let parts: Vec<(&str, &str)> = parts.iter().map(|part| part.split_once(' ').unwrap()).collect();
    let unnamed = |cause: &str| parts.iter().all(|(named, _)| *named != cause);
    let others: Ns = causes.iter().filter(|(cause, _)| unnamed(cause)).map(|(_, &idle)| idle).sum();
    for &(cause, time) in &parts {
        let idle = if cause == "others" { others } else { causes[cause] };
        assert!(says(time, idle), "{what}: {cause} {time} of {causes:?}");
    }
    let idle: Ns = own.iter().map(|(_, bubble)| bubble.interval.len()).sum();
    if finding.id == FindingId::HostBoundStep {
        let text = texts[0].strip_prefix("the GPU was idle for ").unwrap();
        let (total, rest) = text.split_once(" in ").unwrap();
        assert!(says(total, idle), "{what}: {total} of {idle}");
        let code = own.iter().map(|(device, bubble)| host_code(device.segments_of(bubble))).sum();
        let said = rest.split_once("; for ").and_then(|(_, rest)| rest.split_once(" of it no CUDA call was open"));
        assert!(says(said.unwrap().0, code), "{what}: {text} of {code}");
        assert!(code <= idle);
        let longest = own.iter().map(|(_, bubble)| bubble.interval.len()).max().unwrap();
        let bubbles = full.analysis.devices.iter().flat_map(|device| &device.bubbles);
        let no_longer: Ns = bubbles.map(|bubble| bubble.interval.len()).filter(|&long| long <= longest).sum();
        assert!(finding.recoverable <= no_longer, "{what}: {} of {no_longer}", finding.recoverable);
    }
    if finding.id == FindingId::OneTimeSetup {
        let said = finding.title.split_once("is idle for ").and_then(|(_, rest)| rest.split_once(" in "));
        let (title, _) = said.unwrap();
        assert!(nanoseconds(title) <= idle.0 as f64 * 1.01, "{what}: {} of {idle}", finding.title);
        let calls: BTreeSet<CallIdx> = finding.changes.iter().flat_map(Change::calls).copied().collect();
        let parts = own.iter().flat_map(|(device, bubble)| device.segments_of(bubble));
        let ours = parts.filter(|segment| segment.call().is_some_and(|call| calls.contains(&call)));
        // What is launched is still on its way to the GPU when its call is over, which is no set-up.
        let in_calls = ours.filter(|segment| segment.kind.is_in_call());
        let set_up: Ns = in_calls.map(|segment| segment.interval.len()).sum();
        assert!(nanoseconds(title) <= set_up.0 as f64 * 1.01, "{what}: {title} of {set_up}");
        let share = texts.iter().find_map(|text| text.strip_prefix("set-up is ")?.split_once(" of the "));
        let nearly_all = nanoseconds(title) >= idle.0 as f64 * 0.9;
        assert_eq!(share.is_none(), nearly_all, "{what}: {title} of {idle}: {texts:?}");
        if let Some((part, rest)) = share {
            let whole = rest.split_once(" that its bubbles last").unwrap().0;
            assert!(part == title && says(whole, idle), "{what}: {title} of {idle}: {texts:?}");
        }
    }
}

/// The recordings below a directory of the fixtures.
fn recordings(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(recordings(&path));
        } else if path.extension().is_some_and(|extension| extension == "bubcap") {
            found.push(path);
        }
    }
    found
}

/// Of all findings in all recordings, of the measured part where there is one; of planted causes also in the whole.
#[test]
fn what_is_said_of_the_bubbles_of_findings_is_true_of_them() {
    let mut compared: BTreeSet<FindingId> = BTreeSet::new();
    for path in recordings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")) {
        let trace = open(&path).unwrap();
        let measured = trace.meta.workload.as_ref().and_then(|run| run.measured);
        let whole = measured.is_none() || path.components().any(|part| part.as_os_str() == "planted");
        for window in measured.map(Some).into_iter().chain(whole.then_some(None)) {
            let full = full(&trace, &Options { window, max_changes: 8, ..Options::default() });
            for finding in &full.findings.found {
                agrees(finding, &full, &format!("{} {window:?}", path.display()));
                shows_its_calls(finding, &trace, &path.display().to_string());
                compared.insert(finding.id);
            }
        }
    }
    assert!(compared.contains(&FindingId::HostBoundStep) && compared.contains(&FindingId::OneTimeSetup));
    assert!(compared.len() >= 10, "{compared:?}");
}

#[test]
fn bubbles_of_the_legacy_default_stream_say_so_for_certain() {
    let full = measured(&recording("planted/default-stream.bubcap"));
    let bubbles = &full.analysis.devices[0].bubbles;
    let named = |bubble: &&bubblescope::analysis::Bubble| {
        (bubble.root.rule, bubble.root.confidence) == (Rule::LegacyDefaultStream, Confidence::Certain)
    };
    assert_eq!((bubbles.len(), bubbles.iter().filter(named).count()), (300, 300));
}

/// What a program does once, before and after its loop, is no pattern of the loop.
#[test]
fn whole_recordings_show_the_same_patterns() {
    for kernels in KERNELS {
        let trace = recording(&format!("scalar-readback/kernels-{kernels}/sync.bubcap"));
        let (part, whole) = (measured(&trace), full(&trace, &Options::default()));
        let patterns = ids(&whole).into_iter().filter(|&id| id != FindingId::OneTimeSetup);
        assert_eq!(ids(&part), Vec::from_iter(patterns), "{kernels}");
    }
}

#[test]
fn an_item_in_a_gpu_bound_loop_is_promised_what_doing_without_it_saves() {
    let all = |name: &str| full(&recording(&format!("item/{name}.bubcap")), &Options::default());
    // Bound by the GPU: the promise is the loop without it, within 1 %.
    let (item, none) = (all("item-4096"), all("none-4096"));
    let found = item.findings.found.iter().find(|finding| finding.id == FindingId::ScalarReadback);
    let promised = span(&item) - found.map(|finding| finding.recoverable).unwrap();
    assert!(promised.0.abs_diff(span(&none).0) * 100 <= span(&none).0.unsigned_abs(), "{promised} of {}", span(&none));
    // Bound by the host: that is the bottleneck, says the report, and nothing is gained by not waiting.
    let item = all("item-512");
    let found = ids(&item);
    assert!(!found.contains(&FindingId::ScalarReadback), "{found:?}");
    assert!(found.contains(&FindingId::HostBoundStep), "{found:?}");
    let roots = &item.analysis.devices[0].idle_by_root;
    let host = roots.get(&Cause::LaunchBound).copied().unwrap_or_default()
        + roots.get(&Cause::HostBound).copied().unwrap_or_default();
    let idle = item.analysis.devices[0].idle_ns();
    assert!(host.0 * 10 > idle.0 * 9, "the host is the bottleneck: {roots:?}");
    for row in &item.analysis.sync_calls {
        let gain = row.recoverable.unwrap_or_default();
        assert!(gain.0 * 100 <= span(&item).0, "{}: {gain} of {}", row.api, span(&item));
    }
}

/// Public recordings whose idle time has one cause, which happens once.
#[test]
fn what_happens_once_is_named() {
    let Some(corpus) = std::env::var_os("BUBBLESCOPE_CORPUS") else {
        return println!("skipped: BUBBLESCOPE_CORPUS is not set");
    };
    for (file, cause) in [
        ("kineto/simple_add.json.gz", "cudaFree"),
        ("kineto/event_sync_multi_stream.json.gz", "cudaMalloc"),
        ("nsys/memcpy_4streams_2026.sqlite", "cudaLaunchKernel"),
    ] {
        let full = full(&open(&Path::new(&corpus).join(file)).unwrap(), &Options::default());
        let [found] = full.findings.found.as_slice() else { panic!("{file}: {:?}", full.findings) };
        assert_eq!(found.id, FindingId::OneTimeSetup, "{file}");
        assert_eq!(found.evidence[0].api.as_deref(), Some(cause), "{file}");
    }
}

/// A bubble is counted with one of the calls of a finding: their numbers add up to no more than there are.
#[test]
fn no_bubble_is_counted_with_two_calls() {
    for planted in ["allocation", "blocking-copy", "sync"] {
        let full = measured(&recording(&format!("planted/{planted}.bubcap")));
        let finding = &full.findings.found[0];
        let counted = finding.evidence.iter().filter_map(|evidence| {
            let (_, bubbles) = evidence.text.split_once("; ")?;
            bubbles.split_once(" bubble")?.0.replace(',', "").parse::<usize>().ok()
        });
        let device = &full.analysis.devices[0];
        let ours = device.bubbles.iter().filter(|bubble| finding.concerns(device, bubble)).count();
        assert_eq!(counted.sum::<usize>(), ours, "{planted}: {:?}", finding.evidence);
    }
}
