//! How the time of each device divides, and why it was idle.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::table::{Align, Cell, Table, paragraph};
use super::units::{bar, count, counted, fraction, percent, percent_of, time};
use super::verdict::because;
use super::{NEGLIGIBLE, Style, negligible};
use crate::analysis::{Because, SegmentKind};
use crate::report::contract::{Device, Report};
use crate::report::total;
use crate::trace::Ns;

/// Rows of a breakdown below this share of the whole are summed up.
const SMALL: f64 = 0.005;
/// From which share of the idle time on it is said beside its causes what of it recording may have made.
const WORTH_A_WORD: f64 = 0.05;
/// Further columns before a line beneath a row.
const BENEATH: usize = 4;

/// How the span of each device divides.
pub(super) fn devices(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
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
    let text = "copy only: copies or memsets and no kernel. A bubble is a stretch between two pieces of work in which the GPU \
                has none at all, on any stream.";
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
pub(super) fn idle(report: &Report, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let all = total(report.devices.iter().map(|device| device.idle_ns));
    if all == Ns::ZERO {
        return Ok(());
    }
    let whose = if report.devices.len() > 1 { " (all GPUs added up)" } else { "" };
    style.section(out, &format!("Why the GPU was idle: root causes of its bubbles{whose}"))?;
    let roots = sum(report.devices.iter().map(|device| &device.idle_by_root));
    let roots: Vec<(&str, Ns, Because)> =
        roots.into_iter().map(|(cause, part)| (cause.as_str(), part, because(&report.devices, cause, part))).collect();
    breakdown(out, style, &roots, all)?;
    let recording = report.quality.graph_launch_idle_ns;
    if report.quality.inflation.is_none() && fraction(recording, all) >= WORTH_A_WORD {
        let text = format!(
            "Some {} of the idle time may come from recording each op of a graph, which holds the graph's launch up: \
             without, there is less to gain as well.",
            time(recording)
        );
        paragraph(out, style, style.faint(), "  ", &text)?;
    }

    if negligible(report) {
        return Ok(());
    }
    style.section(out, "What the host and the GPU did in that time")?;
    let segments = sum(report.devices.iter().map(|device| &device.idle_by_segment));
    let meanwhile = |kind: SegmentKind| Because::plain(kind.meanwhile(), Ns::ZERO);
    let segments: Vec<(&str, Ns, Because)> =
        segments.into_iter().map(|(kind, part)| (kind.as_str(), part, meanwhile(kind))).collect();
    breakdown(out, style, &segments, all)
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

/// A table of parts of a whole, each with its name and meaning, the largest first; the very small ones are summed up.
fn breakdown(out: &mut dyn Write, style: Style, parts: &[(&str, Ns, Because)], whole: Ns) -> io::Result<()> {
    let columns = [("", Align::Left), ("", Align::Right), ("", Align::Right), ("", Align::Left), ("", Align::Sentence)];
    let mut table = Table::new(&columns, 4);
    let small = parts.iter().skip(1).filter(|&&(_, part, _)| fraction(part, whole) < SMALL).count();
    let shown = if small > 1 { parts.len() - small } else { parts.len() };
    let mut row = |name: &str, part: Ns, meaning: &str, most: &str| {
        let share = fraction(part, whole);
        table.row([
            name.into(),
            time(part).into(),
            percent(share).into(),
            Cell::painted(bar(share, 10), style.costly()),
            Cell::painted(meaning, style.faint()),
        ]);
        if !most.is_empty() {
            table.beneath(BENEATH, most.to_owned());
        }
    };
    for (name, part, because) in &parts[..shown] {
        row(name, *part, because.clause, &because.parts(""));
    }
    if small > 1 {
        let rest: Vec<&str> = parts[shown..].iter().map(|&(name, ..)| name).collect();
        row("others", total(parts[shown..].iter().map(|&(_, part, _)| part)), &rest.join(", "), "");
    }
    table.write(out, style, 2)
}
