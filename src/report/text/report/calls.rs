//! The calls that made the host wait.

use std::io::{self, Write};

use super::names::{elide, harmless};
use super::table::{Align, Cell, Table, paragraph};
use super::units::{count, time};
use super::{Style, more};
use crate::report::contract::{Report, SyncCall};

/// The calls that made the host wait.
pub(super) fn calls(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if report.sync_calls.is_empty() {
        style.section(out, "Calls that wait for the GPU")?;
        let text = match report.has_host_calls() {
            true => "None: the host never waited for the GPU.",
            false => "Not known: no host call was recorded.",
        };
        return paragraph(out, style, anstyle::Style::new(), "  ", text);
    }
    let promised = report.sync_calls.iter().any(|row| row.recoverable_ns.is_some());
    let order = if promised { "the largest gain first" } else { "those that drained it longest first" };
    style.section(out, &format!("Calls that wait for the GPU, {order}"))?;
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
    let text = format!(
        "waited: host time in the call, which costs nothing while the GPU is busy. idle: the part of it in \
         which the GPU stood idle between its first and its last work. drained: bubbles that began during the call or behind its own copy, before the launch that ended them. caused: bubbles that exist because of it. refill: later \
         bubbles until work was queued ahead again.{}",
        if promised {
            " gain: what the span would lose without these calls, or, where they \
                         submit work such as copies, without their wait."
        } else {
            ""
        }
    );
    paragraph(out, style, style.faint(), "  ", &text)
}

fn call_name(row: &SyncCall) -> String {
    let api = harmless(&row.api);
    row.site.as_ref().map_or_else(|| api.clone(), |site| format!("{api} in {}", elide(&harmless(site), 32)))
}
