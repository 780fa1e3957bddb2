//! The longest bubbles.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::Style;
use super::names::{op, short};
use super::table::{Align, Cell, Table, paragraph};
use super::units::{moment, time};
use crate::analysis::{Confidence, Rule, SegmentKind};
use crate::report::contract::{Bubble, Report, Segment};
use crate::report::total;

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
    Ok(())
}

/// Whose fault a bubble is, as far as that is known.
fn whose(bubble: &Bubble) -> String {
    let root = &bubble.root;
    if root.rule == Rule::LegacyDefaultStream {
        return "legacy default stream".to_owned();
    }
    let blames = root.cause.blames_call();
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
