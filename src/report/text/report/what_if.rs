//! What changes would gain.

use std::io::{self, Write};

use super::names::short;
use super::table::{Align, Cell, Table, paragraph};
use super::units::{factor, percent, time};
use super::words::change;
use super::{Style, more};
use crate::report::contract::{Report, WhatIf};
use crate::report::total;
use crate::trace::Ns;

/// What changes would gain.
pub(super) fn what_if(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(replay) = &report.replay else { return Ok(()) };
    style.section(out, "What a change would gain")?;
    let error = percent(replay.unchanged_error.abs());
    if replay.withheld {
        let text = format!(
            "Withheld: replaying the recording without any change misses its length by {error}, too much for an answer."
        );
        return paragraph(out, style, style.alarm(), "  ", &text);
    }
    if !report.quality.idle_reliable && !replay.what_if.is_empty() {
        let text = "NOT RELIABLE, as idle time is not: what was not recorded takes no part in a replay.";
        paragraph(out, style, style.alarm(), "  ", text)?;
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
            Cell::painted(
                format!("{}{}", if what.at_least { "at least " } else { "" }, time(what.gain_ns)),
                style.costly(),
            ),
            Cell::painted(percent(what.gain_fraction), style.costly()),
            time(what.span_ns).into(),
            factor(speedup).into(),
        ]);
    };
    for what in replay.what_if.iter().take(style.rows) {
        row(&change(&what.change), what);
    }
    // One change together with itself says nothing new.
    let together = replay.all_together.as_ref().filter(|_| replay.what_if.len() > 1);
    if let Some(what) = together {
        row(&format!("all {} together", replay.what_if.len()), what);
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
