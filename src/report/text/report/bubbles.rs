//! The longest bubbles.

use std::collections::BTreeMap;
use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::Style;
use super::names::{op, short};
use super::table::{Align, Cell, Table, paragraph};
use super::units::{moment, time};
use crate::analysis::{Cause, Confidence, Rule, SegmentKind};
use crate::report::contract::{Bubble, Report, Segment};
use crate::report::total;
use crate::trace::Ns;

/// Columns before the table.
const INDENT: usize = 2;
/// Further columns before a line beneath a row.
const FURTHER: usize = 4;

/// The longest bubbles.
pub(super) fn bubbles(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
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
    let shown = &report.bubbles[..report.bubbles.len().min(style.rows)];
    let row = |bubble: &Bubble, between: String| {
        let guess = if bubble.root.confidence == Confidence::Guess { "?" } else { "" };
        [
            moment(bubble.start_ns).into(),
            if many { bubble.device.to_string() } else { String::new() }.into(),
            Cell::painted(time(bubble.dur_ns), style.costly()),
            format!("{}{guess}", bubble.root.cause).into(),
            whose(bubble).into(),
            Cell::painted(between, style.faint()),
        ]
    };
    let between = |bubble: &Bubble, room: usize| format!("{} → {}", op(&bubble.before, room), op(&bubble.after, room));
    let mut table = Table::new(&columns, 4);
    for bubble in shown {
        table.row(row(bubble, between(bubble, usize::MAX)));
    }
    let mut table = table.without_empty_columns();
    // Names that do not fit beside the figures go beneath them, where there is room to tell one from another.
    if table.width() + INDENT > style.width {
        let room = style.width.saturating_sub(INDENT + FURTHER + " → ".width()) / 2;
        table = Table::new(&columns, 4);
        for bubble in shown {
            table.row(row(bubble, String::new()));
            table.beneath(FURTHER, between(bubble, room));
        }
        table = table.without_empty_columns();
    }
    table.write(out, style, INDENT)?;
    if shown.iter().any(|bubble| bubble.root.confidence == Confidence::Guess) {
        paragraph(out, style, style.faint(), "  ", "?: a guess, which the records neither confirm nor rule out.")?;
    }
    if shown.iter().all(|bubble| bubble.root.cause == Cause::Profiler) {
        paragraph(out, style, style.faint(), "  ", &beside_the_profilers(report))?;
    }
    Ok(())
}

/// What there is besides bubbles that come from recording, of which there are enough to hide it.
fn beside_the_profilers(report: &Report) -> String {
    let longest = report.devices.iter().map(|device| device.bubbles.longest_besides_profiler()).max();
    match longest.filter(|&longest| longest > Ns::ZERO) {
        Some(longest) => format!("They come from recording itself. The longest other bubble lasts {}.", time(longest)),
        None => "They come from recording itself. There are no others.".to_owned(),
    }
}

/// Whose fault a bubble is, as far as that is known.
fn whose(bubble: &Bubble) -> String {
    let root = &bubble.root;
    if root.rule == Rule::LegacyDefaultStream {
        return "legacy default stream".to_owned();
    }
    let blames = root.cause.blames_call();
    // The launch that came late was not always slow itself: calls before it may have been.
    if let Some(api) = mostly_in(bubble).filter(|_| !blames) {
        return format!("in {}", short(api, 23));
    }
    match (&root.api, &root.site) {
        (Some(api), _) if blames => short(api, 26),
        (_, Some(site)) => format!("in {}", short(site, 23)),
        (Some(api), None) => format!("{} {}", place(bubble, api), short(api, 19)),
        (None, None) => String::new(),
    }
}

/// The API in whose calls the host was for at least half of a bubble.
fn mostly_in(bubble: &Bubble) -> Option<&str> {
    let mut by_api: BTreeMap<&str, Ns> = BTreeMap::new();
    for segment in bubble.segments.iter().filter(|segment| segment.kind.is_in_call()) {
        if let Some(api) = &segment.api {
            let inside = by_api.entry(api).or_default();
            *inside = total([*inside, segment.dur_ns]);
        }
    }
    let (api, inside) = by_api.into_iter().max_by_key(|&(_, inside)| inside)?;
    (total([inside, inside]) >= bubble.dur_ns).then_some(api)
}

/// Where a bubble lies beside the call that its root cause names and does not blame, as a preposition.
fn place(bubble: &Bubble, api: &str) -> &'static str {
    match bubble.root.rule {
        // The call was over when the device ran dry: it made what ended the bubble wait, or launched it.
        Rule::RecordedWait if api.contains("Wait") => "held by",
        Rule::QueuedGapTooLong
        | Rule::SameGraphLaunch
        | Rule::RecordedWait
        | Rule::LegacyDefaultStream
        | Rule::StreamWasFree
        | Rule::QueuedBehind => "queued by",
        // Most of it is the way from the launch to its op.
        Rule::LatencyTooLong => "after",
        _ if begins_in_launch(bubble) => "after",
        _ => "before",
    }
}

/// Whether the launch of the op that ended a bubble had begun when the bubble did: then nothing lies before it.
fn begins_in_launch(bubble: &Bubble) -> bool {
    let mut before = bubble.segments.as_slice();
    if let [head @ .., Segment { kind: SegmentKind::LaunchLatency, .. }] = before {
        before = head;
    }
    if let [head @ .., Segment { kind: SegmentKind::LaunchCall, api, .. }] = before
        && *api == bubble.root.api
    {
        before = head;
    }
    before.is_empty() && !bubble.segments.is_empty()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::analysis;
    use crate::open::open;
    use crate::report;

    /// Every bubble of real recordings, against the times of the calls.
    #[test]
    fn what_is_said_of_the_call_is_so() {
        let mut said = std::collections::BTreeMap::<&str, u64>::new();
        for name in
            ["planted/dependency", "scalar-readback/kernels-4/graph", "scalar-readback/kernels-4/none", "planted/sync"]
        {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("bubcap");
            let trace = open(&path).unwrap();
            let analysis = analysis::analyze(&trace, &analysis::Options::default());
            let report = Report::new(&trace, &analysis, &report::Options { top: usize::MAX, ..Default::default() });
            let bubbles = analysis.devices.iter().flat_map(|device| &device.bubbles);
            let found: std::collections::BTreeMap<_, _> =
                bubbles.map(|bubble| ((bubble.device.0, bubble.interval.start), bubble)).collect();
            for told in &report.bubbles {
                let bubble = found[&(told.device, told.start_ns)];
                let (whose, at) = (whose(told), bubble.interval);
                let Some(launch) = bubble.root.call.map(|call| trace.calls.interval(call)) else { continue };
                let words = ["queued by ", "held by ", "after ", "before "];
                let Some(word) = words.into_iter().find(|word| whose.starts_with(word)) else { continue };
                *said.entry(word).or_default() += 1;
                assert!(
                    match word {
                        "queued by " | "held by " => launch.end <= at.start,
                        "after " => launch.start <= at.start,
                        _ => launch.start > at.start,
                    },
                    "{name}: {whose}, called {launch:?}, bubble {at:?}, {:?}",
                    bubble.root
                );
            }
        }
        assert!(["queued by ", "held by ", "before "].iter().all(|word| said.contains_key(word)), "{said:?}");
    }

    #[test]
    fn bubbles_of_the_profiler_do_not_hide_the_longest_other_one() {
        let mut report = report::samples::sync_bound();
        let text = |report: &Report| {
            let mut out = Vec::new();
            bubbles(report, &mut out, Style::default()).unwrap();
            String::from_utf8(out).unwrap()
        };
        for bubble in report.bubbles.iter_mut().skip(1) {
            bubble.root.cause = Cause::Profiler;
        }
        assert!(!text(&report).contains("recording itself"));
        report.bubbles[0].root.cause = Cause::Profiler;
        report.devices[0].bubbles.max_besides_profiler_ns = Some(Ns(4_200));
        assert!(text(&report).contains("They come from recording itself. The longest other bubble lasts 4.20 µs."));
        report.devices[0].bubbles.max_besides_profiler_ns = Some(Ns::ZERO);
        assert!(text(&report).contains("There are no others."));
    }

    #[test]
    fn a_wait_behind_the_launch_is_not_before_it() {
        let mut bubble = report::samples::sync_bound().bubbles.remove(2);
        assert_eq!(whose(&bubble), "before cuLaunchKernel");
        bubble.segments.remove(0);
        assert_eq!(whose(&bubble), "after cuLaunchKernel");
        (bubble.root.cause, bubble.root.rule) = (Cause::Stalled, Rule::LatencyTooLong);
        assert_eq!(whose(&bubble), "after cuLaunchKernel");
        bubble.root.rule = Rule::QueuedGapTooLong;
        assert_eq!(whose(&bubble), "queued by cuLaunchKernel");
    }
}
