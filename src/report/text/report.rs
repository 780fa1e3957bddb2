//! The report on one recording.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Style;
use super::names::{elide, harmless, op, short};
use super::table::{Align, Cell, Table, paragraph};
use super::units::{bar, count, counted, factor, fraction, moment, percent, percent_of, time};
use super::words::{because, change, meanwhile};
use crate::analysis::{Cause, Confidence, SegmentKind, Severity};
use crate::report::contract::{Bubble, Device, Finding, Inflation, Quality, Report, Segment, SyncCall, WhatIf};
use crate::report::total;
use crate::trace::{CaptureMode, Ns};

/// Below this share of the span, idle time is not worth a word.
const NEGLIGIBLE: f64 = 0.02;
/// Rows of a breakdown below this share of the whole are summed up.
const SMALL: f64 = 0.005;

/// Writes `report` for people: the verdict, where idle time went, the costliest calls, the findings, the longest
/// bubbles, and what the figures are worth.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &Report, out: &mut impl Write, style: Style) -> io::Result<()> {
    let out: &mut dyn Write = out;
    verdict(report, out, style)?;
    recording(report, out, style)?;
    if !report.devices.is_empty() {
        devices(report, out, style)?;
        idle(report, out, style)?;
        iterations(report, out, style)?;
        calls(report, out, style)?;
        findings(report, out, style)?;
        what_if(report, out, style)?;
        bubbles(report, out, style)?;
    }
    quality(report, out, style)
}

/// The answer in one sentence; a warning before it when it cannot be relied on.
fn verdict(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let quality = &report.quality;
    if quality.gpu_not_captured {
        let text = "NO GPU ACTIVITY WAS CAPTURED. Work was launched, and none of it was recorded on a GPU: this says \
                    nothing about idle time.";
        paragraph(out, style, style.alarm(), "", text)?;
        return reasons(quality, out, style);
    }
    if report.devices.is_empty() {
        return paragraph(out, style, style.alarm(), "", "NOTHING TO ANALYSE: no GPU activity in this window.");
    }
    if !quality.idle_reliable {
        paragraph(out, style, style.alarm(), "", "THE IDLE TIME BELOW IS NOT RELIABLE.")?;
        reasons(quality, out, style)?;
        writeln!(out)?;
    }
    let Some(worst) = report.devices.iter().max_by_key(|device| (device.idle_ns, std::cmp::Reverse(device.device)))
    else {
        return Ok(());
    };
    paragraph(out, style, style.heading(), "", &headline(report, worst))?;
    if negligible(report) {
        return Ok(());
    }
    if let Some((cause, part)) = largest(&worst.idle_by_root) {
        let whose = blamed(report, cause).map_or_else(String::new, |api| format!(", in {api}"));
        let share = if part == worst.idle_ns { "All".to_owned() } else { percent_of(part, worst.idle_ns) };
        let text = format!("{share} of that: {}{whose}.", because(cause));
        paragraph(out, style, anstyle::Style::new(), "", &text)?;
    }
    if let Some(replay) = report.replay.as_ref().filter(|replay| !replay.withheld) {
        let best = replay.what_if.iter().max_by_key(|what| what.gain_ns);
        if let Some(gain) = replay.all_together.as_ref().or(best).filter(|gain| gain.gain_ns > Ns::ZERO) {
            let text = format!("Up to {} ({}) can be recovered.", time(gain.gain_ns), percent(gain.gain_fraction));
            paragraph(out, style, anstyle::Style::new(), "", &text)?;
        }
    }
    Ok(())
}

/// Why idle time is not reliable.
fn reasons(quality: &Quality, out: &mut dyn Write, style: Style) -> io::Result<()> {
    for reason in &quality.reasons {
        paragraph(out, style, style.alarm(), "  - ", reason)?;
    }
    Ok(())
}

/// Whether no device's idle time is worth a word.
fn negligible(report: &Report) -> bool {
    report.devices.iter().all(|device| device.idle_fraction < NEGLIGIBLE)
}

/// How idle the devices were, in one line.
fn headline(report: &Report, worst: &Device) -> String {
    let highest = report.devices.iter().map(|device| device.idle_fraction).fold(0.0, f64::max);
    let lowest = report.devices.iter().map(|device| device.idle_fraction).fold(1.0, f64::min);
    let many = report.devices.len();
    if negligible(report) {
        let who = if many > 1 { format!("Each of {many} GPUs was") } else { gpu(worst, "was") };
        let at_least = if many > 1 { "at least " } else { "" };
        return format!(
            "{who} busy {at_least}{} of the time: there is no idle time worth removing.",
            percent(1.0 - highest)
        );
    }
    let idle = format!(
        "{} of {}, in {}",
        time(worst.idle_ns),
        time(worst.span_ns),
        counted(worst.bubbles.count, "bubble", "bubbles")
    );
    if many > 1 {
        let range = format!("{} to {}", percent(lowest), percent(highest));
        format!("{many} GPUs were idle {range} of the time, GPU {} longest: {idle}.", worst.device)
    } else {
        format!("{} idle {} of the time: {idle}.", gpu(worst, "was"), percent(worst.idle_fraction))
    }
}

fn gpu(device: &Device, was: &str) -> String {
    if device.name.is_empty() {
        format!("GPU {} {was}", device.device)
    } else {
        format!("GPU {} ({}) {was}", device.device, harmless(&device.name))
    }
}

/// The call that caused the most bubbles, for causes that are calls.
fn blamed(report: &Report, cause: Cause) -> Option<String> {
    if !matches!(cause, Cause::Sync | Cause::BlockingCopy | Cause::Allocation) {
        return None;
    }
    let row = report.sync_calls.iter().max_by_key(|row| row.bubbles_caused_ns)?;
    (row.bubbles_caused_ns > Ns::ZERO).then(|| harmless(&row.api))
}

/// The entry with the most time, if any has some.
fn largest<K: Copy + Ord>(parts: &BTreeMap<K, Ns>) -> Option<(K, Ns)> {
    let most = parts.iter().max_by_key(|&(&key, &part)| (part, std::cmp::Reverse(key)));
    most.map(|(&key, &part)| (key, part)).filter(|&(_, part)| part > Ns::ZERO)
}

fn recording(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let source = &report.source;
    style.section(out, "Recording")?;
    let named = [source.path.as_str(), source.format.as_str()].into_iter().filter(|text| !text.is_empty());
    let mut what = named.collect::<Vec<_>>().join(", format ");
    if let Some(when) = &source.captured_on {
        what.push_str(&format!(", recorded {when}"));
    }
    let pairs = |pairs: &BTreeMap<String, String>, between: &str| {
        pairs.iter().map(|(name, value)| format!("{name}{between}{value}")).collect::<Vec<_>>().join(", ")
    };
    let run = source.workload.as_ref().map_or_else(String::new, |run| {
        let warmup = if run.warmup > 0 { format!(" after {} of warm-up", count(run.warmup)) } else { String::new() };
        let options = if run.options.is_empty() { String::new() } else { format!("; {}", pairs(&run.options, "=")) };
        let iterations = counted(run.iterations, "iteration", "iterations");
        format!("{}, variant {}: {iterations}{warmup}{options}", run.workload, run.variant)
    });
    let command = if run.is_empty() { source.command.clone().unwrap_or_default() } else { String::new() };
    let window = report.window;
    let length = time(Ns(window.end_ns.0.saturating_sub(window.start_ns.0)));
    let window = match window.start_ns {
        Ns::ZERO => format!("{length} analysed, from the start of the recording"),
        start => format!("{length} analysed, from {} after the start of the recording", moment(start)),
    };
    for text in [what, run, command, pairs(&source.machine, " "), window] {
        if !text.is_empty() {
            paragraph(out, style, style.faint(), "  ", &text)?;
        }
    }
    Ok(())
}

/// How the span of each device divides.
fn devices(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    style.section(out, "GPU time, from the first to the last work on each GPU")?;
    let mut table = Table::new(
        &[
            ("GPU", Align::Left),
            ("span", Align::Right),
            ("compute", Align::Right),
            ("copy only", Align::Right),
            ("idle", Align::Right),
            ("", Align::Right),
            ("bubbles", Align::Right),
            ("median", Align::Right),
            ("longest", Align::Right),
        ],
        0,
    );
    for device in &report.devices {
        let bubbles = &device.bubbles;
        let length = |ns: Ns| if bubbles.count == 0 { String::new() } else { time(ns) };
        let paint = if device.idle_fraction < NEGLIGIBLE { style.good() } else { style.costly() };
        table.row([
            device.device.to_string().into(),
            time(device.span_ns).into(),
            time(total([device.compute_only_ns, device.overlapped_ns])).into(),
            time(device.exposed_copy_ns).into(),
            Cell::painted(time(device.idle_ns), paint),
            Cell::painted(percent(device.idle_fraction), paint),
            count(bubbles.count).into(),
            length(bubbles.p50_ns).into(),
            length(bubbles.max_ns).into(),
        ]);
    }
    table.without_empty_columns().write(out, style, 2)?;
    let text = "A bubble is a stretch between two pieces of work in which the GPU has none at all, on any stream.";
    paragraph(out, style, style.faint(), "  ", text)?;
    for device in &report.devices {
        collectives(device, out, style)?;
    }
    Ok(())
}

/// What a device's collectives cost it, and which device it waited for in them.
fn collectives(device: &Device, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if device.exposed_comm_ns > Ns::ZERO {
        let may = if device.peers.is_empty() { ", and may be waiting for a late peer" } else { "" };
        let text = format!(
            "GPU {} ran nothing but collective communication for {} ({} of its span). It counts as busy{may}.",
            device.device,
            time(device.exposed_comm_ns),
            percent_of(device.exposed_comm_ns, device.span_ns)
        );
        paragraph(out, style, style.faint(), "  ", &text)?;
    }
    for peer in device.peers.iter().take(style.rows) {
        let text = format!(
            "GPU {} waited {} ({} of its span) for GPU {}, which came last to {}.",
            device.device,
            time(peer.wait_ns),
            percent_of(peer.wait_ns, device.span_ns),
            peer.device,
            counted(peer.collectives, "collective", "collectives")
        );
        paragraph(out, style, style.costly(), "  ", &text)?;
    }
    Ok(())
}

/// Idle time by root cause and by where it went, over all devices.
fn idle(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let all = total(report.devices.iter().map(|device| device.idle_ns));
    if all == Ns::ZERO {
        return Ok(());
    }
    let whose = if report.devices.len() > 1 { " (all GPUs added up)" } else { "" };
    style.section(out, &format!("Why the GPU was idle: root causes of its bubbles{whose}"))?;
    let roots = sum(report.devices.iter().map(|device| &device.idle_by_root));
    breakdown(out, style, &roots, all, |cause| (cause.as_str(), because(cause)))?;

    if negligible(report) {
        return Ok(());
    }
    style.section(out, "What the host and the GPU did in that time")?;
    let segments = sum(report.devices.iter().map(|device| &device.idle_by_segment));
    breakdown(out, style, &segments, all, |kind| (kind.as_str(), meanwhile(kind)))
}

fn sum<'a, K: Copy + Ord + 'a>(maps: impl Iterator<Item = &'a BTreeMap<K, Ns>>) -> Vec<(K, Ns)> {
    let mut sums = BTreeMap::<K, Ns>::new();
    for (&key, &part) in maps.flatten() {
        let sum = sums.entry(key).or_default();
        *sum = total([*sum, part]);
    }
    let mut parts: Vec<(K, Ns)> = sums.into_iter().filter(|&(_, part)| part != Ns::ZERO).collect();
    parts.sort_by_key(|&(key, part)| (std::cmp::Reverse(part), key));
    parts
}

/// A table of parts of a whole, the largest first; the very small ones are summed up.
fn breakdown<K: Copy>(
    out: &mut dyn Write,
    style: Style,
    parts: &[(K, Ns)],
    whole: Ns,
    words: impl Fn(K) -> (&'static str, &'static str),
) -> io::Result<()> {
    let columns = [("", Align::Left), ("", Align::Right), ("", Align::Right), ("", Align::Left), ("", Align::Sentence)];
    let mut table = Table::new(&columns, 4);
    let small = parts.iter().skip(1).filter(|&&(_, part)| fraction(part, whole) < SMALL).count();
    let shown = if small > 1 { parts.len() - small } else { parts.len() };
    let mut row = |name: &str, part: Ns, meaning: &str| {
        let share = fraction(part, whole);
        table.row([
            name.into(),
            time(part).into(),
            percent(share).into(),
            Cell::painted(bar(share, 10), style.costly()),
            Cell::painted(meaning, style.faint()),
        ]);
    };
    for &(key, part) in &parts[..shown] {
        let (name, meaning) = words(key);
        row(name, part, meaning);
    }
    if small > 1 {
        let rest: Vec<&str> = parts[shown..].iter().map(|&(key, _)| words(key).0).collect();
        row("others", total(parts[shown..].iter().map(|&(_, part)| part)), &rest.join(", "));
    }
    table.write(out, style, 2)
}

fn iterations(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(iterations) = &report.iterations else { return Ok(()) };
    let warmup = match iterations.warmup {
        0 => String::new(),
        warmup => format!(" after {} of warm-up", count(warmup)),
    };
    let text = format!(
        "{}{warmup}, each {} long (median; 95 % are under {}). In the median iteration the GPU is idle for {} ({}) and the \
         host makes {}.",
        counted(iterations.count, "iteration", "iterations"),
        time(iterations.period_p50_ns),
        time(iterations.period_p95_ns),
        time(iterations.idle_p50_ns),
        percent_of(iterations.idle_p50_ns, iterations.period_p50_ns),
        counted(iterations.blocking_calls_p50, "blocking call", "blocking calls"),
    );
    style.section(out, "Iterations")?;
    paragraph(out, style, anstyle::Style::new(), "  ", &text)
}

/// The calls that made the host wait.
fn calls(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if report.sync_calls.is_empty() {
        style.section(out, "Calls that wait for the GPU")?;
        let calls = report.processes.iter().flat_map(|process| &process.threads).any(|thread| thread.calls > 0);
        let text =
            if calls { "None: the host never waited for the GPU." } else { "Not known: no host call was recorded." };
        return paragraph(out, style, anstyle::Style::new(), "  ", text);
    }
    style.section(out, "Calls that wait for the GPU, the costliest first")?;
    let mut table = Table::new(
        &[
            ("call", Align::Left),
            ("calls", Align::Right),
            ("waited", Align::Right),
            ("idle", Align::Right),
            ("drained", Align::Right),
            ("caused", Align::Right),
            ("refill", Align::Right),
            ("gain", Align::Right),
        ],
        0,
    );
    for row in report.sync_calls.iter().take(style.rows) {
        table.row([
            call_name(row).into(),
            count(row.calls).into(),
            time(row.blocked_ns).into(),
            time(row.idle_while_blocked_ns).into(),
            time(row.bubbles_drained_ns).into(),
            time(row.bubbles_caused_ns).into(),
            time(row.refill_ns).into(),
            Cell::painted(row.recoverable_ns.map_or_else(String::new, time), style.costly()),
        ]);
    }
    table.without_empty_columns().write(out, style, 2)?;
    more(out, style, report.sync_calls.len())?;
    let promised = report.sync_calls.iter().any(|row| row.recoverable_ns.is_some());
    let text = format!(
        "waited: host time in the call, which costs nothing while the GPU is busy. idle: the part of it without GPU \
         work. drained: bubbles that began during the call. caused: bubbles that exist because of it. refill: later \
         bubbles until work was queued ahead again.{}",
        if promised { " gain: what the span would lose without these calls." } else { "" }
    );
    paragraph(out, style, style.faint(), "  ", &text)
}

fn call_name(row: &SyncCall) -> String {
    let api = harmless(&row.api);
    row.site.as_ref().map_or_else(|| api.clone(), |site| format!("{api} in {}", elide(&harmless(site), 32)))
}

/// Says that a table was cut.
fn more(out: &mut dyn Write, style: Style, rows: usize) -> io::Result<()> {
    match rows.saturating_sub(style.rows) {
        0 => Ok(()),
        rest => paragraph(out, style, style.faint(), "  ", &format!("… and {rest} more; --format json has them all.")),
    }
}

fn findings(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(findings) = &report.findings else {
        let Some(reason) = &report.findings_withheld else { return Ok(()) };
        style.section(out, "Findings")?;
        return paragraph(out, style, style.alarm(), "  ", &format!("Withheld: {reason}."));
    };
    style.section(out, "Findings")?;
    if findings.is_empty() {
        let text = "None: no known pattern here would recover enough to be worth changing.";
        return paragraph(out, style, style.good(), "  ", text);
    }
    let span = report.devices.iter().map(|device| device.span_ns).max().unwrap_or_default();
    for (index, finding) in findings.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        one_finding(finding, index + 1, span, out, style)?;
    }
    Ok(())
}

fn one_finding(finding: &Finding, number: usize, span: Ns, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let paint = match finding.severity {
        Severity::High => style.alarm(),
        Severity::Medium => style.costly(),
        Severity::Low => style.heading(),
    };
    let first = format!("  {number}. ");
    let indent = " ".repeat(first.len());
    paragraph(out, style, paint, &first, &finding.title)?;
    let worth = format!(
        "{} severity: {} recoverable ({} of the span), {} ({})",
        finding.severity,
        time(finding.recoverable_ns),
        percent_of(finding.recoverable_ns, span),
        counted(finding.count, "occurrence", "occurrences"),
        finding.id
    );
    paragraph(out, style, anstyle::Style::new(), &indent, &worth)?;
    for evidence in &finding.evidence {
        let mut text = evidence.text.clone();
        if !evidence.at_ns.is_empty() {
            let at: Vec<String> = evidence.at_ns.iter().take(3).copied().map(moment).collect();
            text.push_str(&format!(" (for example at {})", at.join(", ")));
        }
        paragraph(out, style, style.faint(), &format!("{indent}- "), &text)?;
    }
    paragraph(out, style, anstyle::Style::new(), &format!("{indent}Remedy: "), &finding.remedy)
}

/// What changes would gain.
fn what_if(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(replay) = &report.replay else { return Ok(()) };
    style.section(out, "What a change would gain")?;
    let error = percent(replay.unchanged_error.abs());
    if replay.withheld {
        let text = format!(
            "Withheld: replaying the recording without any change misses its length by {error}, too much for an answer."
        );
        return paragraph(out, style, style.alarm(), "  ", &text);
    }
    let columns = [
        ("change", Align::Left),
        ("gain", Align::Right),
        ("", Align::Right),
        ("new span", Align::Right),
        ("speed-up", Align::Right),
    ];
    let mut table = Table::new(&columns, 0);
    let mut row = |words: &str, what: &WhatIf| {
        let before = total([what.span_ns, what.gain_ns]);
        let speedup = if what.span_ns > Ns::ZERO { before.0 as f64 / what.span_ns.0 as f64 } else { f64::NAN };
        table.row([
            short(words, 60).into(),
            Cell::painted(time(what.gain_ns), style.costly()),
            Cell::painted(percent(what.gain_fraction), style.costly()),
            time(what.span_ns).into(),
            factor(speedup).into(),
        ]);
    };
    for what in replay.what_if.iter().take(style.rows) {
        row(&change(&what.change), what);
    }
    if let Some(what) = &replay.all_together {
        row("all of them together", what);
    }
    if replay.what_if.is_empty() {
        let text = format!(
            "Nothing was tried. Replayed without any change, the recording comes out within {error} of its length."
        );
        return paragraph(out, style, style.faint(), "  ", &text);
    }
    table.write(out, style, 2)?;
    more(out, style, replay.what_if.len())?;
    let mut assumptions: Vec<&str> = Vec::new();
    for assumption in replay.what_if.iter().chain(&replay.all_together).flat_map(|what| &what.assumptions) {
        if !assumptions.contains(&assumption.as_str()) {
            assumptions.push(assumption);
        }
    }
    for assumption in assumptions {
        paragraph(out, style, style.faint(), "  assumed: ", assumption)?;
    }
    let text = format!(
        "Gains do not add up. Replayed without any change, the recording comes out within {error} of its length."
    );
    paragraph(out, style, style.faint(), "  ", &text)
}

/// The longest bubbles.
fn bubbles(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if report.bubbles.is_empty() {
        return Ok(());
    }
    style.section(out, "Longest bubbles")?;
    let many = report.devices.len() > 1;
    let columns = [
        ("at", Align::Right),
        ("GPU", Align::Left),
        ("length", Align::Right),
        ("root cause", Align::Left),
        ("call", Align::Left),
        ("between", Align::Left),
    ];
    let mut table = Table::new(&columns, 5);
    let shown = &report.bubbles[..report.bubbles.len().min(style.rows)];
    for bubble in shown {
        let guess = if bubble.root.confidence == Confidence::Guess { "?" } else { "" };
        table.row([
            moment(bubble.start_ns).into(),
            if many { bubble.device.to_string() } else { String::new() }.into(),
            Cell::painted(time(bubble.dur_ns), style.costly()),
            format!("{}{guess}", bubble.root.cause).into(),
            whose(bubble).into(),
            format!("{} → {}", op(&bubble.before, 24), op(&bubble.after, 24)).into(),
        ]);
    }
    table.without_empty_columns().write(out, style, 2)?;
    if shown.iter().any(|bubble| bubble.root.confidence == Confidence::Guess) {
        paragraph(out, style, style.faint(), "  ", "?: a guess, which the records neither confirm nor rule out.")?;
    }
    Ok(())
}

/// Whose fault a bubble is, as far as that is known.
fn whose(bubble: &Bubble) -> String {
    let root = &bubble.root;
    let blames = matches!(
        root.cause,
        Cause::Sync | Cause::BlockingCopy | Cause::Allocation | Cause::ModuleLoad | Cause::GraphBuild | Cause::Profiler
    );
    // The launch that came late was not always slow itself: one before it may have been.
    let longest = bubble.segments.iter().max_by_key(|segment| segment.dur_ns);
    if let (false, Some(Segment { kind: SegmentKind::LaunchCall, dur_ns, api: Some(api), .. })) = (blames, longest)
        && total([*dur_ns, *dur_ns]) >= bubble.dur_ns
    {
        return format!("in {}", short(api, 23));
    }
    match (&root.api, &root.site) {
        (Some(api), _) if blames => short(api, 26),
        (_, Some(site)) => format!("in {}", short(site, 23)),
        (Some(api), None) => format!("before {}", short(api, 19)),
        (None, None) => String::new(),
    }
}

/// What the figures are worth.
fn quality(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    style.section(out, "What these figures are worth")?;
    let quality = &report.quality;
    if quality.idle_reliable {
        paragraph(out, style, style.good(), "  ", "Idle time is reliable.")?;
    } else {
        let why = if quality.reasons.is_empty() { "" } else { ", for the reasons at the top" };
        paragraph(out, style, style.alarm(), "  ", &format!("IDLE TIME IS NOT RELIABLE{why}."))?;
    }
    let mut notes = losses(quality);
    if notes.is_empty() && quality.idle_reliable && quality.warnings.is_empty() {
        notes.push("Nothing was lost: no record was dropped, unreadable or without a time.".to_owned());
    }
    let graphs = match report.source.capture_mode {
        CaptureMode::Node => "CUDA graphs, if there are any, were recorded node by node.",
        CaptureMode::Graph => {
            "Each launch of a CUDA graph was recorded as one piece of work: gaps inside count as busy."
        }
        CaptureMode::Unknown => "The file does not tell whether CUDA graphs were recorded node by node or as a whole.",
    };
    notes.push(graphs.to_owned());
    match report.launches.negative_latency {
        0 => {}
        1 => notes.push("1 op starts before its launch: the clocks of host and GPU differ a little.".to_owned()),
        ops => notes
            .push(format!("{} ops start before their launch: the clocks of host and GPU differ a little.", count(ops))),
    }
    if quality.profiler_ns > Ns::ZERO {
        notes.push(format!("The profiler itself was at work during {} of the idle time.", time(quality.profiler_ns)));
    }
    notes.push(match quality.inflation {
        Some(Inflation { unprofiled_ns, profiled_ns, ratio }) => format!(
            "All times were taken while recording: an iteration takes {}, and {} without ({:+.0} %).",
            time(profiled_ns),
            time(unprofiled_ns),
            100.0 * (ratio - 1.0),
        ),
        None => "All times were taken while recording, which adds a microsecond or two to each launch; `bubble-report \
                 compare` measures how much."
            .to_owned(),
    });
    notes.extend(quality.warnings.iter().cloned());
    for note in notes {
        paragraph(out, style, anstyle::Style::new(), "  - ", &note)?;
    }
    Ok(())
}

/// What was lost, one sentence each.
fn losses(quality: &Quality) -> Vec<String> {
    let lost = [
        (quality.dropped_records, "record was dropped", "records were dropped", "while recording"),
        (quality.ops_without_time, "op has", "ops have", "no times and had to be left out"),
        (quality.unfinished_ops, "op was", "ops were", "still running when recording ended"),
        (quality.unreadable_records, "record", "records", "could not be read, or had impossible times"),
        (quality.cut_bytes, "byte", "bytes", "at the file's end belong to no whole record: it was cut off"),
        (quality.orphan_ops, "op has", "ops have", "no recorded launch"),
        (quality.launches_without_ops, "launch has", "launches have", "no recorded work"),
    ];
    let told = lost.iter().filter(|(number, ..)| *number > 0);
    told.map(|&(number, one, many, what)| format!("{} {what}.", counted(number, one, many))).collect()
}
