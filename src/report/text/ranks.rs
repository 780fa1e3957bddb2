//! Several recordings side by side.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::Style;
use super::table::{Align, Cell, Table, labelled, paragraph};
use super::units::{count, counted, percent, time};
use crate::report::ranks::{Rank, Ranks};

/// Writes a row for each device of each file, the worst first, then what was found in them and what could not be used.
///
/// # Errors
/// Those of `out`.
pub fn render(ranks: &Ranks, out: &mut impl Write, style: Style) -> io::Result<()> {
    let out: &mut dyn Write = out;
    let shown = |path: &str| path.strip_prefix(common_folder(ranks)).unwrap_or(path).to_owned();
    match (ranks.ranks.first(), ranks.ranks.last()) {
        (Some(worst), Some(best)) => {
            paragraph(out, style, style.heading(), "", &headline(ranks, worst, best, &shown(&worst.path)))?;
            table(ranks, out, style, &shown)?;
        }
        _ => paragraph(out, style, style.alarm(), "", "NOTHING TO ANALYSE: no file has GPU activity.")?,
    }
    if ranks.ranks.iter().any(|rank| !rank.idle_reliable) {
        writeln!(out)?;
        let text = "! idle time is not reliable: bubble-report on the file alone says why";
        paragraph(out, style, style.alarm(), "", text)?;
    }
    if !ranks.findings.is_empty() {
        style.section(out, "What can be fixed")?;
        for found in &ranks.findings {
            let most = if found.files > 1 { "up to " } else { "" };
            let text = format!(
                "{} ({}; {most}{} in {})",
                found.title,
                counted(found.files, "file", "files"),
                time(found.recoverable_ns),
                shown(&found.path)
            );
            paragraph(out, style, anstyle::Style::new(), "  - ", &text)?;
        }
    }
    if !ranks.unusable.is_empty() {
        style.section(out, "Could not be used")?;
        for file in &ranks.unusable {
            let reason = file.reason.strip_prefix(&file.path).unwrap_or(&file.reason);
            labelled(
                out,
                style,
                (style.alarm(), "  - "),
                (anstyle::Style::new(), &format!("{}: {}", shown(&file.path), reason.trim_start_matches([':', ' ']))),
            )?;
        }
    }
    Ok(())
}

fn headline(ranks: &Ranks, worst: &Rank, best: &Rank, file: &str) -> String {
    let files = ranks.ranks.iter().map(|rank| &rank.path).collect::<BTreeSet<_>>().len();
    // The same GPU may stand in several files.
    let who = match (files, ranks.ranks.len()) {
        (1, many) => counted(many as u64, "GPU was", "GPUs were"),
        (many, _) => format!("The GPUs of {} were", counted(many as u64, "file", "files")),
    };
    let idle = if ranks.ranks.len() == 1 {
        percent(worst.device.idle_fraction)
    } else {
        format!("{} to {}", percent(best.device.idle_fraction), percent(worst.device.idle_fraction))
    };
    let spent = format!("{} of {}", time(worst.device.idle_ns), time(worst.device.span_ns));
    format!("{who} idle {idle} of the time; the worst is GPU {} in {file}: {spent}.", worst.device.device)
}

fn table(ranks: &Ranks, out: &mut dyn Write, style: Style, shown: &dyn Fn(&str) -> String) -> io::Result<()> {
    let columns = [
        ("file", Align::Left),
        ("GPU", Align::Right),
        ("span", Align::Right),
        ("idle", Align::Right),
        ("", Align::Right),
        ("bubbles", Align::Right),
        ("longest", Align::Right),
        ("mostly", Align::Left),
        ("collectives alone", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns, 0);
    for Rank { path, idle_reliable, device } in &ranks.ranks {
        let mostly = device.idle_by_root.iter().max_by_key(|&(_, &ns)| ns).map_or("", |(cause, _)| cause.as_str());
        let collective = if device.exposed_comm_ns.0 > 0 { time(device.exposed_comm_ns) } else { String::new() };
        let doubt = if *idle_reliable { Cell::default() } else { Cell::painted("!", style.alarm()) };
        table.row([
            shown(path).into(),
            device.device.to_string().into(),
            time(device.span_ns).into(),
            time(device.idle_ns).into(),
            percent(device.idle_fraction).into(),
            count(device.bubbles.count).into(),
            time(device.bubbles.max_ns).into(),
            mostly.into(),
            collective.into(),
            doubt,
        ]);
    }
    writeln!(out)?;
    table.without_empty_columns().write(out, style, 2)
}

/// The folder that every file lies in, with the stroke behind it.
fn common_folder(ranks: &Ranks) -> &str {
    let mut paths = ranks.ranks.iter().map(|rank| &rank.path).chain(ranks.unusable.iter().map(|file| &file.path));
    let Some(first) = paths.next() else { return "" };
    let mut folder = first.rfind('/').map_or("", |at| &first[..=at]);
    for path in paths {
        while !path.starts_with(folder) {
            let shorter = folder.strip_suffix('/').unwrap_or(folder).rfind('/');
            folder = shorter.map_or("", |at| &first[..=at]);
        }
    }
    folder
}
