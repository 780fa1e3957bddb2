//! What people read, kept as snapshots.

use std::path::Path;

use super::{Style, render, render_compare, render_gate};
use crate::analysis::replay::Change;
use crate::analysis::{self, Cause, FindingId};
use crate::open::open;
use crate::report::compare::Compare;
use crate::report::contract::{Blamed, Inflation, Quality, Report};
use crate::report::{Limit, gate, samples};
use crate::trace::Ns;
use unicode_width::UnicodeWidthStr;

fn text(report: &Report, style: Style) -> String {
    let mut out = Vec::new();
    render(report, &mut out, style).unwrap();
    String::from_utf8(out).unwrap()
}

fn compare_text(compare: &Compare, style: Style) -> String {
    let mut out = Vec::new();
    render_compare(compare, &mut out, style).unwrap();
    String::from_utf8(out).unwrap()
}

/// Every sample with its name, in a style.
fn every(style: Style) -> Vec<(&'static str, String)> {
    vec![
        ("clean", text(&samples::clean(), style)),
        ("sync_bound", text(&samples::sync_bound(), style)),
        ("unreliable", text(&samples::unreliable(), style)),
        ("many_devices", text(&samples::many_devices(), style)),
        ("not_captured", text(&samples::not_captured(), style)),
        ("empty", text(&Report::default(), style)),
        ("compared", compare_text(&samples::compared(), style)),
        ("compared_traces", compare_text(&samples::compared_traces(), style)),
        ("compared_many", compare_text(&many_variants(), style)),
        ("compared_nothing", compare_text(&Compare::default(), style)),
    ]
}

/// More variants, with longer names, than a table has room for.
fn many_variants() -> Compare {
    let name = |index: usize| format!("variant-number-{index}-with-a-long-name");
    let roots = |index: i64| [(Cause::Sync, 9_000 * index), (Cause::GraphInternal, 120)];
    let runs: Vec<_> = (1..=5)
        .map(|index| samples::run(&name(index), 20_000 * index as i64, 10, Some(&roots(index as i64))))
        .collect();
    Compare::new(Default::default(), &runs).unwrap()
}

/// What recording adds to graphs is beside the causes where it is much of the idle time, and how to do without it where
/// that can be done.
#[test]
fn what_recording_adds_to_graphs_is_told_where_it_counts() {
    let said = |graph_launch_idle_ns, format: &str, inflation| {
        let mut report = samples::many_devices();
        report.source.format = format.to_owned();
        report.quality = Quality { graph_launch_idle_ns, inflation, ..report.quality };
        let text = text(&report, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
        [
            text.contains("of the idle time may come from recording each op of a graph"),
            text.contains("with 40,000 of them here some 40.0 ms"),
            text.contains("`record --graphs graph` does not add that."),
        ]
    };
    // Of 420 ms idle time.
    assert_eq!(said(Ns(21_000_000), "bubcap", None), [true, true, true]);
    assert_eq!(said(Ns(20_900_000), "kineto", None), [false, true, false]);
    let measured = Inflation { unprofiled_ns: Ns(100), profiled_ns: Ns(150), ratio: 1.5 };
    assert_eq!(said(Ns(40_000_000), "bubcap", Some(measured)), [false; 3]);
}

#[test]
fn texts() {
    for (name, text) in every(Style::PLAIN) {
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn answers_that_differ_are_loud() {
    let runs = [samples::run("sync", 10, 1, None), {
        let mut other = samples::run("async", 5, 1, None);
        other.answer = Some("0x00000000".to_owned());
        other
    }];
    let compare = Compare::new(Default::default(), &runs).unwrap();
    insta::assert_snapshot!("answers_differ", compare_text(&compare, Style::PLAIN));
}

/// Where there is no pattern, the largest cause is named all the same, and whether it is one event or many.
#[test]
fn the_largest_cause_is_named_without_a_finding() {
    let mut report = samples::sync_bound();
    report.findings = Some(Vec::new());
    let told = |report: &Report| text(report, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    let many = told(&report);
    assert!(many.contains("of it; of 1,000 bubbles the longest lasts 73.7 µs."), "{many}");
    assert!(!many.contains(" once, at "), "{many}");
    report.devices[0].bubbles.count = 1;
    let only = told(&report);
    assert!(only.contains("of it, in the only bubble.") && !only.contains(" bubbles the longest"), "{only}");
    report.devices[0].bubbles.count = 2;
    let device = &mut report.devices[0];
    device.idle_by_root.insert(Cause::ModuleLoad, device.idle_ns);
    device.blamed.clear();
    report.bubbles[0].dur_ns = device.idle_ns;
    report.bubbles[0].root.cause = Cause::ModuleLoad;
    report.bubbles[0].root.api = Some("cuModuleLoadData".to_owned());
    let once = told(&report);
    assert!(once.contains("GPU code was being loaded or compiled; "), "{once}");
    assert!(once.contains("No pattern that repeats"), "{once}");
    assert!(once.contains("of that once, at 36.201 ms, in cuModuleLoadData"), "{once}");
}

/// What is the least of one gain and the most of another is neither of all together.
#[test]
fn a_gain_of_several_kinds_is_about_so_much() {
    let mut report = samples::sync_bound();
    let told = |report: &Report| text(report, Style::PLAIN);
    assert!(told(&report).contains("\nUp to "));
    let replay = report.replay.as_mut().unwrap();
    replay.what_if[0].at_least = true;
    assert!(told(&report).contains("\nAbout "));
    let replay = report.replay.as_mut().unwrap();
    replay.remedies_together.as_mut().unwrap().at_least = true;
    assert!(told(&report).contains("\nAt least "));
}

/// What is asked is answered in the table of changes. It promises nothing, whatever it is, and takes nothing away.
#[test]
fn nothing_is_promised_because_it_was_asked() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, promises) in [("planted/sync", true), ("workloads/pipeline/async-pinned", false)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("bubcap");
        let trace = open(&path).unwrap();
        let told = |asked: &[Change]| {
            let full = analysis::full(&trace, &analysis::Options { what_if: asked.to_vec(), ..Default::default() });
            let text = text(&Report::full(&trace, &full, &crate::report::Options::default()), Style::PLAIN);
            (words(text.split_once("\n\n").unwrap().0), full.replay.unwrap().what_if)
        };
        let (head, _) = told(&[]);
        assert_eq!(head.contains("can be recovered"), promises, "{name}: {head}");
        let asked = ["host=0.5", "host=0", "host=2", "no-sync", "graph", "pinned", "no-tracer", "no-stream-waits"];
        let apis = ["remove=cuLaunchKernel", "async=cuMemcpyDtoHAsync", "usual=cuLaunchKernel"];
        let each: Vec<Change> = asked.iter().chain(&apis).map(|text| text.parse().unwrap()).collect();
        for some in each.chunks(1).chain([each.as_slice()]) {
            let (asked, answers) = told(some);
            assert_eq!(asked, head, "{name}: {some:?}");
            for change in some {
                assert!(answers.iter().any(|what| what.change == change.to_string()), "{name}: {change}");
            }
        }
    }
}

/// A device that only copies is busy, and yet does little.
#[test]
fn a_device_that_copies_most_of_the_time_is_said_to() {
    let copies = |share: i64| {
        let mut report = samples::clean();
        for device in &mut report.devices {
            device.exposed_copy_ns = Ns(device.span_ns.0 * share / 100);
            device.compute_only_ns = Ns(device.busy_ns.0 - device.overlapped_ns.0 - device.exposed_copy_ns.0);
        }
        let text = text(&report, Style::PLAIN);
        text.lines().take(2).collect::<Vec<_>>().join(" ")
    };
    let (few, many) = (copies(40), copies(60));
    assert!(few.contains("no idle time worth removing.") && !few.contains("copies"), "{few}");
    assert!(many.contains("no idle time worth removing, but 60.0 % of the time is copies without a kernel"), "{many}");
}

/// What reasons and warnings tell is told once, and as a sentence.
#[test]
fn nothing_lost_is_told_twice() {
    let told = |report: &Report| text(report, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    for (lost, warning, line) in [
        (5, "5 of 90 ops have no launch in the trace: idle time before has no cause", "5 ops have no recorded launch."),
        (5, "the recording ended before the work of the last 5 launches ran", "5 launches have no recorded work."),
        (5, "5 ops were still running at the end", "5 ops were still running when recording ended."),
        (5_123, "the source was cut: 5,123 bytes after its last whole record", "5,123 bytes at the file's end belong"),
    ] {
        let mut report = samples::clean();
        let figure = |report: &mut Report, number: u64| match line {
            _ if line.contains("recorded launch") => report.quality.orphan_ops = number,
            _ if line.contains("launches") => report.quality.launches_without_ops = number,
            _ if line.contains("ops were") => report.quality.unfinished_ops = number,
            _ => report.quality.cut_bytes = number,
        };
        figure(&mut report, lost);
        assert!(told(&report).contains(line), "{line}");
        report.quality.warnings.push(warning.to_owned());
        let sentence = format!("{}{}.", warning[..1].to_uppercase(), &warning[1..]);
        assert!(!told(&report).contains(line) && told(&report).contains(&sentence), "{}", told(&report));
        // Another figure is another fact.
        figure(&mut report, 6);
        assert!(told(&report).contains(&line.replacen(&crate::analysis::words::grouped(lost), "6", 1)), "{line}");
    }
    let mut report = samples::clean();
    report.quality.idle_reliable = false;
    report.quality.reasons = vec!["91.3 ms of idle time comes from something that was not recorded".to_owned()];
    assert!(told(&report).contains("was not recorded. "), "{}", told(&report));
}

/// All of a gain is not a part of it.
#[test]
fn a_gain_that_is_all_set_up_is_said_to_be() {
    let mut report = samples::sync_bound();
    let findings = report.findings.as_mut().unwrap();
    findings[0].id = FindingId::OneTimeSetup;
    assert!(text(&report, Style::PLAIN).contains("can be recovered, all of it from set-up that is done once."));
    report.findings.as_mut().unwrap()[0].recoverable_ns = Ns(7_000_000);
    assert!(text(&report, Style::PLAIN).contains("can be recovered, 7.00 ms of it from set-up that is done once."));
}

/// Findings are withheld where idle time is not reliable, and so are promises.
#[test]
fn gains_of_an_unreliable_recording_are_marked_and_not_promised() {
    let told = |report: &Report| text(report, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut report = samples::sync_bound();
    let reliable = told(&report);
    assert!(reliable.contains("can be recovered") && !reliable.contains("NOT RELIABLE"), "{reliable}");
    report.quality = samples::unreliable().quality;
    report.findings = None;
    let told = told(&report);
    let (before, gains) = told.split_once("What a change would gain").unwrap();
    assert!(gains.trim_start().starts_with("NOT RELIABLE") && !before.contains("can be recovered"), "{told}");
}

/// A recording of devices alone.
#[test]
fn without_host_calls_nothing_is_said_to_be_well() {
    let mut report = samples::sync_bound();
    report.findings = Some(Vec::new());
    report.sync_calls.clear();
    for process in &mut report.processes {
        process.threads.iter_mut().for_each(|thread| thread.calls = 0);
    }
    let told = text(&report, Style::PLAIN);
    let findings = told.split_once("\nFindings\n").unwrap().1.split_once("\n\n").unwrap().0;
    assert!(findings.contains("Not known: no host call was recorded") && !findings.contains("None"), "{findings}");
}

/// The longest bubble may be another call's than most idle time, and another cause's calls may have caused more.
#[test]
fn the_calls_of_most_idle_time_are_named() {
    let mut report = samples::sync_bound();
    let (cause, part) = (Cause::ModuleLoad, report.devices[0].idle_ns);
    report.devices[0].idle_by_root = [(cause, part)].into();
    report.bubbles[0].root.cause = cause;
    report.bubbles[0].root.api = Some("cuModuleGetFunction".to_owned());
    let mut told = |parts: &[(&str, i64)]| {
        let blamed = |&(api, ns)| Blamed { cause, api: String::from(api), bubbles: 1, idle_ns: Ns(ns) };
        report.devices[0].blamed = parts.iter().map(blamed).collect();
        report.devices[0]
            .blamed
            .insert(0, Blamed { cause: Cause::Sync, api: "cuCtxSynchronize".to_owned(), bubbles: 9, idle_ns: part });
        let text = text(&report, Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
        text.split_once("All of that: ").unwrap().1.to_owned()
    };
    let because = "GPU code was being loaded or compiled";
    assert!(told(&[("cuModuleLoadData", part.0)]).starts_with(&format!("{because}; cuModuleLoadData is to blame.")));
    let most = told(&[("cuModuleLoadData", part.0 * 3 / 4), ("cuModuleGetFunction", part.0 / 4)]);
    assert!(most.starts_with(&format!("{because}; cuModuleLoadData is to blame for 75.0 % of it.")), "{most}");
    let nearly = told(&[("cuModuleLoadData", part.0 - 1), ("cuModuleGetFunction", 1)]);
    assert!(nearly.starts_with(&format!("{because}; cuModuleLoadData is to blame for >99.9 % of it.")), "{nearly}");
}

#[test]
fn gates() {
    let limits = [
        Limit::MaxIdle("55%".parse().unwrap()),
        Limit::MaxIdle("30%".parse().unwrap()),
        Limit::MaxRecoverable("5%".parse().unwrap()),
        Limit::MaxBubble(Ns(73_620)),
        Limit::Forbid(FindingId::ScalarReadback),
        Limit::Forbid(FindingId::BusyPolling),
    ];
    let told = |report: &Report, limits: &[Limit]| {
        let mut out = Vec::new();
        render_gate(&gate::check(report, limits), &mut out, Style::PLAIN).unwrap();
        String::from_utf8(out).unwrap()
    };
    insta::assert_snapshot!("gate_broken", told(&samples::sync_bound(), &limits));
    insta::assert_snapshot!("gate_unreliable", told(&samples::unreliable(), &limits));
    insta::assert_snapshot!("gate_kept", told(&samples::clean(), &limits[..1]));
    insta::assert_snapshot!("gate_empty", told(&samples::clean(), &[]));
}

#[test]
fn lines_fit_the_page_and_end_in_no_blank() {
    for width in [80, 100, 140] {
        for (name, text) in every(Style { width, ..Style::PLAIN }) {
            for line in text.lines() {
                assert!(line.width() <= width, "{name} at {width}: {line}");
                assert!(!line.ends_with(' '), "{name} at {width}: {line:?}");
            }
        }
    }
}

#[test]
fn paragraphs_fit_a_narrow_page() {
    for (name, text) in every(Style { width: 40, ..Style::PLAIN }) {
        // No number ends a line that its unit does not follow on.
        let units = ["ns", "µs", "ms", "s", "%"];
        let begins =
            |line: &str| units.contains(&line.trim_start().split([' ', ',', '.', ')']).next().unwrap_or_default());
        assert!(!text.lines().any(begins), "{name}: {text}");
        // Tables are as wide as their figures; no cell of one ends in a full stop.
        let sentences: Vec<&str> = text.lines().filter(|line| line.ends_with('.')).collect();
        assert!(!sentences.is_empty() && sentences.iter().all(|line| line.width() <= 40), "{name}: {text}");
    }
}

#[test]
fn colour_changes_nothing_else() {
    let coloured = every(Style::default());
    assert!(coloured.iter().any(|(_, text)| text.contains('\u{1b}')));
    let stripped = coloured.into_iter().map(|(name, text)| (name, anstream::adapter::strip_str(&text).to_string()));
    assert_eq!(stripped.collect::<Vec<_>>(), every(Style::PLAIN));
}
