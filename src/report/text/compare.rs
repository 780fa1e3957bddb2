//! The comparison of variants.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style as Paint;
use unicode_width::UnicodeWidthStr;

use super::Style;
use super::names::{elide, harmless};
use super::table::{Align, Cell, Table, paragraph};
use super::units::{counted, factor, per_iteration, percent, percent_of, time};
use crate::analysis::Cause;
use crate::report::compare::{Alignment, AnswersDiffer, Basis, Compare, Origin, Variant, Wall, describe};
use crate::report::total;
use crate::trace::Ns;

/// Columns of a page that has room for the intervals.
const WIDE: usize = 92;

/// Columns of the longest name of a cause.
const CAUSE: usize = 14;
/// Columns that an explanation needs to be worth having.
const MEANING: usize = 34;

/// Writes `compare` for people: who is faster and by how much, the table behind it, where the bubbles come from, and
/// what the figures are worth.
///
/// # Errors
/// Those of `out`.
pub fn render(compare: &Compare, out: &mut impl Write, style: Style) -> io::Result<()> {
    let out: &mut dyn Write = out;
    if let Some(AnswersDiffer { answers }) = compare.answers_differ() {
        let text = format!(
            "THE VARIANTS DO NOT COMPUTE THE SAME ANSWER: {}. Their times must not be compared.",
            describe(&answers)
        );
        paragraph(out, style, style.alarm(), "", &text)?;
    } else {
        paragraph(out, style, style.heading(), "", &verdict(compare))?;
        let idle = idle_shares(compare);
        if !idle.is_empty() {
            paragraph(out, style, Paint::new(), "", &format!("The GPU idles {}.", list(&idle)))?;
        }
    }
    setting(compare, out, style)?;
    if !compare.variants.is_empty() {
        figures(compare, out, style)?;
        roots(compare, out, style)?;
    }
    worth(compare, out, style)
}

/// The answer in one sentence.
fn verdict(compare: &Compare) -> String {
    let Some(first) = compare.variants.first() else { return "Nothing to compare: no variant ran.".to_owned() };
    let first = harmless(&first.variant);
    if let Some(why) = compare.variants.first().and_then(|first| first.unusable.as_ref()) {
        return format!("{first} has no figures, and nothing can be compared with it: {why}.");
    }
    let what = compare.workload.as_ref().map_or_else(String::new, |workload| format!("{}: ", harmless(workload)));
    let faster = compare.variants.iter().skip(1).filter_map(|variant| Some((variant, variant.speedup?.ratio)));
    let others = faster.enumerate().map(|(index, (variant, ratio))| {
        let runs = if index == 0 { "runs " } else { "" };
        format!("{} {runs}at {}", harmless(&variant.variant), factor(ratio))
    });
    let others: Vec<String> = others.collect();
    let is_apart = |variant: &&Variant| variant.unusable.is_none() && variant.speedup.is_none();
    let apart: Vec<String> =
        compare.variants.iter().skip(1).filter(is_apart).map(|variant| harmless(&variant.variant)).collect();
    let apart = (!apart.is_empty()).then(|| format!("{} cannot be compared with {first}", list(&apart)));
    match (others.as_slice(), apart) {
        ([], None) => format!("{what}only {first} has figures, and nothing to compare them with."),
        ([], Some(apart)) => format!("{what}{apart}, for the reason below."),
        (others, None) => format!("{what}{} the speed of {first}.", list(others)),
        (others, Some(apart)) => format!("{what}{} the speed of {first}; {apart}.", list(others)),
    }
}

/// The share of each variant's GPU time that is idle.
fn idle_shares(compare: &Compare) -> Vec<String> {
    let recorded = compare.variants.iter().filter_map(|variant| Some((variant, variant.recorded.as_ref()?)));
    recorded
        .enumerate()
        .map(|(index, (variant, recorded))| {
            let share = percent_of(recorded.bubble_ns, total([recorded.busy_ns, recorded.bubble_ns]));
            let of_what = if index == 0 { " of the time" } else { "" };
            format!("{share}{of_what} in {}", harmless(&variant.variant))
        })
        .collect()
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

fn setting(compare: &Compare, out: &mut dyn Write, style: Style) -> io::Result<()> {
    for (facts, between) in [(&compare.options, "="), (&compare.machine, " ")] {
        let pairs: Vec<String> = facts.iter().map(|(name, value)| format!("{name}{between}{value}")).collect();
        if !pairs.is_empty() {
            paragraph(out, style, style.faint(), "  ", &pairs.join(", "))?;
        }
    }
    Ok(())
}

fn figures(compare: &Compare, out: &mut dyn Write, style: Style) -> io::Result<()> {
    style.section(out, "Per iteration")?;
    let spread = if least_level(compare) < 0.95 { "fastest to slowest" } else { "95 % interval" };
    let mut table = Table::new(
        &[
            ("variant", Align::Left),
            ("wall time", Align::Right),
            (spread, Align::Right),
            ("recorded", Align::Right),
            ("slowed", Align::Right),
            ("busy", Align::Right),
            ("idle", Align::Right),
            ("waits", Align::Right),
            ("speed-up", Align::Right),
        ],
        0,
    );
    for variant in &compare.variants {
        let wall = variant.unprofiled.or(variant.profiled);
        let recorded = variant.recorded.as_ref();
        // What was not measured in any variant has no column.
        let absent = if variant.unusable.is_some() { "-" } else { "" };
        let figure = |ns: Option<Ns>| ns.map_or_else(|| absent.to_owned(), time);
        let speedup = variant.speedup.map(|speedup| speedup.ratio);
        let faster = if speedup.is_some_and(|ratio| ratio > 1.005) { style.good() } else { Paint::new() };
        table.row([
            Cell::painted(
                format!("{}{}", variant.variant, if is_marked(variant) { " (!)" } else { "" }),
                style.heading(),
            ),
            variant.unprofiled.map_or_else(String::new, |wall| time(wall.median_ns)).into(),
            wall.filter(|_| style.width >= WIDE).map_or_else(String::new, interval).into(),
            figure(variant.profiled.map(|wall| wall.median_ns)).into(),
            variant.inflation.map_or_else(String::new, factor).into(),
            figure(recorded.map(|recorded| recorded.busy_ns)).into(),
            Cell::painted(figure(recorded.map(|recorded| recorded.bubble_ns)), style.costly()),
            recorded.map_or_else(|| absent.to_owned(), |recorded| per_iteration(recorded.sync_calls)).into(),
            Cell::painted(speedup.map_or_else(|| absent.to_owned(), factor), faster),
        ]);
    }
    table.without_empty_columns().write(out, style, 2)?;
    let mut legend = Vec::new();
    if compare.variants.iter().any(|variant| variant.unprofiled.is_some()) {
        legend.push("wall time: without any recording.");
    }
    if compare.variants.iter().any(|variant| variant.profiled.is_some()) {
        legend.push("recorded: wall time while being recorded.");
    }
    if compare.variants.iter().any(|variant| variant.inflation.is_some()) {
        legend.push("slowed: by recording.");
    }
    if compare.variants.iter().any(|variant| variant.recorded.is_some()) {
        legend.push("busy, idle: GPU time while being recorded. waits: calls in which the host waits for the GPU.");
    }
    if compare.variants.iter().any(is_marked) {
        legend.push("(!): see what these figures are worth.");
    }
    paragraph(out, style, style.faint(), "  ", &legend.join(" "))
}

/// Whether something speaks against its figures.
fn is_marked(variant: &Variant) -> bool {
    let unreliable = variant.recorded.as_ref().is_some_and(|recorded| !recorded.idle_reliable);
    variant.unusable.is_some() || !variant.marks.is_empty() || unreliable
}

/// The interval of a wall, in the unit of its upper end.
fn interval(wall: Wall) -> String {
    wall.interval.map_or_else(String::new, |interval| {
        let (low, high) = (time(interval.low_ns), time(interval.high_ns));
        match (low.split_once(' '), high.split_once(' ')) {
            (Some((figure, unit)), Some((_, same))) if unit == same => format!("{figure} to {high}"),
            _ => format!("{low} to {high}"),
        }
    })
}

/// Bubble time by root cause, a column per variant.
fn roots(compare: &Compare, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let recorded: Vec<(&Variant, &BTreeMap<Cause, Ns>)> = compare
        .variants
        .iter()
        .filter_map(|variant| Some((variant, &variant.recorded.as_ref()?.bubble_ns_by_root)))
        .collect();
    let most = |cause: Cause| recorded.iter().filter_map(|(_, roots)| roots.get(&cause)).max().copied();
    let mut causes: Vec<(Cause, Ns)> =
        Cause::ALL.iter().filter_map(|&cause| Some((cause, most(cause).filter(|&ns| ns > Ns::ZERO)?))).collect();
    if causes.is_empty() {
        return Ok(());
    }
    causes.sort_by_key(|&(cause, most)| (std::cmp::Reverse(most), cause));
    style.section(out, "GPU idle per iteration, by root cause")?;
    // Every variant has a column of the same width, as wide as its name if there is room.
    let room = style.width.saturating_sub(2 + CAUSE) / recorded.len().max(1);
    let heading_width = room.saturating_sub(2).max(8);
    let headings: Vec<String> =
        recorded.iter().map(|(variant, _)| elide(&harmless(&variant.variant), heading_width)).collect();
    let used = 2 + CAUSE + headings.iter().map(|heading| heading.width().max(8) + 2).sum::<usize>();
    let meaning = |cause: Cause| if used + MEANING <= style.width { cause.because() } else { "" };

    let mut columns = vec![("", Align::Left)];
    columns.extend(recorded.iter().map(|_| ("", Align::Right)));
    columns.push(("", Align::Sentence));
    let elastic = columns.len() - 1;
    let mut table = Table::new(&columns, elastic);
    let named = headings.into_iter().map(|heading| Cell::painted(heading, style.faint()));
    table.row_of([Cell::default()].into_iter().chain(named).collect());
    for (cause, _) in causes {
        let figure =
            |roots: &BTreeMap<Cause, Ns>| Cell::from(roots.get(&cause).map_or_else(|| "-".to_owned(), |&ns| time(ns)));
        let mut row: Vec<Cell> = vec![cause.as_str().into()];
        row.extend(recorded.iter().map(|(_, roots)| figure(roots)));
        row.push(Cell::painted(meaning(cause), style.faint()));
        table.row_of(row);
    }
    table.write(out, style, 2)
}

/// What the figures are worth.
fn worth(compare: &Compare, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if compare.variants.is_empty() && compare.skipped.is_empty() {
        return Ok(());
    }
    style.section(out, "What these figures are worth")?;
    for variant in &compare.variants {
        for why in variant.unusable.iter().map(|why| format!("no figures, as {why}")).chain(variant.marks.clone()) {
            paragraph(out, style, style.alarm(), "  - ", &format!("`{}`: {why}.", harmless(&variant.variant)))?;
        }
        if let Some(recorded) = variant.recorded.as_ref().filter(|recorded| !recorded.idle_reliable) {
            let first = format!("THE IDLE TIME OF `{}` IS NOT RELIABLE.", harmless(&variant.variant));
            let text = std::iter::once(first.as_str()).chain(recorded.reasons.iter().map(String::as_str));
            paragraph(out, style, style.alarm(), "  - ", &text.collect::<Vec<_>>().join(" "))?;
        }
    }
    for skipped in &compare.skipped {
        let text = format!("`{}` was left out: {}", skipped.variant, skipped.reason);
        paragraph(out, style, style.alarm(), "  - ", &text)?;
    }
    let notes = if compare.variants.is_empty() { compare.warnings.clone() } else { notes(compare) };
    for note in notes {
        paragraph(out, style, Paint::new(), "  - ", &note)?;
    }
    Ok(())
}

fn notes(compare: &Compare) -> Vec<String> {
    let mut notes = Vec::new();
    match (compare.from, compare.answers_agree) {
        (Origin::Live, Some(true)) => {
            let answer = compare.variants.first().and_then(|variant| variant.answers.first());
            let answer = answer.map_or_else(String::new, |answer| format!(": {answer}"));
            notes.push(format!("All variants computed the same answer{answer}."));
        }
        (_, Some(false)) => {}
        _ => notes.extend(held_answers(compare)),
    }
    match compare.from {
        Origin::Live => notes.push(repetitions(compare)),
        Origin::Traces => notes.push(format!(
            "Read from trace files: the wall times were taken while recording, which adds a microsecond or two to each \
             launch, and about one for each op that the launch of a graph submits. Iterations are told apart by {}{}.",
            compare.aligned_by,
            if compare.aligned_by == Alignment::Workload {
                ""
            } else {
                ", and taken to be the same work in every file"
            }
        )),
    }
    let level = least_level(compare);
    if level < 0.95 {
        notes.push(format!(
            "With so few repetitions, the range from the fastest to the slowest holds the true median with only {}.",
            percent(level)
        ));
    }
    let unsure: Vec<String> = compare
        .variants
        .iter()
        .filter(|variant| {
            variant
                .speedup
                .and_then(|speedup| speedup.low.zip(speedup.high))
                .is_some_and(|(low, high)| low <= 1.0 && high >= 1.0)
        })
        .map(|variant| format!("`{}`", variant.variant))
        .collect();
    if !unsure.is_empty() {
        let is = if unsure.len() == 1 { "is" } else { "are" };
        notes.push(format!("{} {is} too close to the first variant to say which is faster.", list(&unsure)));
    }
    if compare
        .variants
        .iter()
        .skip(1)
        .filter_map(|variant| variant.speedup)
        .any(|speedup| speedup.basis == Basis::Profiled)
        && compare.from == Origin::Live
    {
        notes.push("Some speed-ups compare recorded walls, as runs without recording are missing.".to_owned());
    }
    notes.extend(compare.warnings.iter().cloned());
    notes
}

/// What is known of the answers that traces hold; where they differ, that stands at the top.
fn held_answers(compare: &Compare) -> Option<String> {
    if compare.answers_differ().is_some() {
        return None;
    }
    let without = compare.variants.iter().filter(|variant| variant.answers.is_empty());
    let without: Vec<String> = without.map(|variant| format!("`{}`", harmless(&variant.variant))).collect();
    let unknown = "Whether the variants compute the same answer is not known";
    Some(match without.len() {
        0 => format!("The recordings hold the same answer: {}.", compare.variants.first()?.answers.join(" and ")),
        all if all == compare.variants.len() => format!("{unknown}: the recordings hold none."),
        1 => format!("{unknown}: {} holds none.", list(&without)),
        _ => format!("{unknown}: {} hold none.", list(&without)),
    })
}

/// How sure the least sure interval is.
fn least_level(compare: &Compare) -> f64 {
    let level = |variant: &Variant| Some(variant.unprofiled.or(variant.profiled)?.interval?.level);
    compare.variants.iter().filter_map(level).fold(1.0, f64::min)
}

/// How the runs were made.
fn repetitions(compare: &Compare) -> String {
    let most = |wall: fn(&Variant) -> Option<Wall>| {
        compare.variants.iter().filter_map(wall).map(|wall| wall.repetitions).max().unwrap_or(0)
    };
    let (without, with) = (most(|variant| variant.unprofiled), most(|variant| variant.profiled));
    let runs = match (without, with) {
        (without, 0) => format!("{} without recording", counted(without, "run", "runs")),
        (0, with) => counted(with, "recorded run", "recorded runs"),
        (without, with) => format!("{} without recording and {with} with, in turn", counted(without, "run", "runs")),
    };
    let iterations = compare.variants.first().map_or(0, |variant| variant.iterations);
    format!(
        "Medians over {runs}, each in a process of its own: {} after warm-up.",
        counted(iterations, "measured iteration", "measured iterations"),
    )
}
