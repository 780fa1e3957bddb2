//! Where traces of the same work can be laid over each other.

use std::collections::BTreeMap;

use bubblescope::analysis::{Analysis, site_name};
use bubblescope::trace::{Interval, Ns, Trace};

/// Iterations that are shown when traces are laid over each other at one.
const SHOWN_ITERATIONS: i64 = 12;
/// Iterations that can be chosen.
const MOST_ITERATIONS: u64 = 1_000_000;
/// Names of ranges that are offered.
const MOST_RANGES: usize = 200;

/// A trace of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The analysis of all of it.
    pub analysis: &'a Analysis,
    /// The part that is compared.
    pub window: Interval,
}

/// Where to lay traces over each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// The moment of each trace, in its own time.
    pub moments: Vec<Ns>,
    /// How much there is to see from there on.
    pub length: Ns,
}

/// A range that all traces have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangePlace {
    /// Its name, a trailing number cut off.
    pub name: String,
    /// Where it is first found in each trace.
    overlay: Overlay,
}

/// Where traces can be laid over each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Ranges, in the order of their names.
    pub ranges: Vec<RangePlace>,
    /// The starts of each trace's iterations after warm-up.
    starts: Vec<Vec<Ns>>,
    /// The longest usual iteration.
    period: Ns,
}

impl Places {
    /// How many iterations after warm-up all traces have.
    pub fn iterations(&self) -> usize {
        self.starts.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// At the start of an iteration after warm-up, with a few to see.
    pub fn at_iteration(&self, number: usize) -> Option<Overlay> {
        let moments: Option<Vec<Ns>> = self.starts.iter().map(|starts| starts.get(number).copied()).collect();
        Some(Overlay { moments: moments?, length: Ns(self.period.0.saturating_mul(SHOWN_ITERATIONS)) })
    }

    /// At the start of a range.
    pub fn at_range(&self, name: &str) -> Option<Overlay> {
        self.ranges.iter().find(|range| range.name == name).map(|range| range.overlay.clone())
    }
}

/// Finds where the traces can be laid over each other.
pub fn places(parts: &[Part<'_>]) -> Places {
    let starts: Vec<Vec<Ns>> = parts.iter().map(iteration_starts).collect();
    let usual = |starts: &Vec<Ns>| {
        let mut lengths: Vec<Ns> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied()
    };
    let period = starts.iter().filter_map(usual).max();
    let period = period.or_else(|| parts.iter().map(|part| part.window.len()).max()).unwrap_or_default();
    Places { ranges: ranges(parts), starts, period }
}

/// The starts of a trace's iterations in the compared part.
fn iteration_starts(part: &Part<'_>) -> Vec<Ns> {
    let found = part.analysis.iterations.as_ref();
    let starts = |skip: usize| -> Vec<Ns> {
        let after = found.iter().flat_map(|found| found.intervals.iter().skip(skip)).map(|iteration| iteration.start);
        after.collect()
    };
    let inside =
        |starts: &[Ns]| -> Vec<Ns> { starts.iter().copied().filter(|&start| part.window.contains(start)).collect() };
    let counted = part.trace.meta.workload.as_ref().filter(|run| run.measured == Some(part.window));
    if let Some(run) = counted.filter(|run| run.iterations > 0 && !part.window.is_empty()) {
        let inside = inside(&starts(0));
        if inside.len() as u64 == run.iterations {
            return inside;
        }
        // What repeats in the launches is not what the workload counts, as when a graph holds several iterations.
        let start = |number: u64| {
            let share = i128::from(part.window.len().0) * i128::from(number) / i128::from(run.iterations);
            Ns(part.window.start.0.saturating_add(i64::try_from(share).unwrap_or(i64::MAX)))
        };
        return (0..run.iterations.min(MOST_ITERATIONS)).map(start).collect();
    }
    let Some(found) = found else {
        return if part.window.is_empty() { Vec::new() } else { vec![part.window.start] };
    };
    let after = starts(usize::try_from(found.warmup).unwrap_or(usize::MAX));
    let inside = inside(&after);
    if inside.is_empty() { after } else { inside }
}

/// The ranges that all traces have: the first in the compared part, else the first of all.
fn ranges(parts: &[Part<'_>]) -> Vec<RangePlace> {
    let firsts: Vec<BTreeMap<&str, Interval>> = parts.iter().map(first_ranges).collect();
    let Some((first, others)) = firsts.split_first() else { return Vec::new() };
    let common = first.iter().filter_map(|(&name, &interval)| {
        let found: Option<Vec<Interval>> = others.iter().map(|other| other.get(name).copied()).collect();
        let all: Vec<Interval> = std::iter::once(interval).chain(found?).collect();
        let length = all.iter().map(|interval| interval.len()).max()?;
        let moments = all.iter().map(|interval| interval.start).collect();
        Some(RangePlace { name: name.to_owned(), overlay: Overlay { moments, length } })
    });
    common.take(MOST_RANGES).collect()
}

fn first_ranges<'a>(part: &Part<'a>) -> BTreeMap<&'a str, Interval> {
    let mut firsts: BTreeMap<&str, Interval> = BTreeMap::new();
    // Inside the compared part comes before outside of it, early before late.
    let rank = |interval: &Interval| (!part.window.contains(interval.start), interval.start);
    for range in &part.trace.ranges {
        let name = site_name(part.trace.names.get(range.name));
        let first = firsts.entry(name).or_insert(range.interval);
        if rank(&range.interval) < rank(first) {
            *first = range.interval;
        }
    }
    firsts
}

#[cfg(test)]
mod tests {
    use bubblescope::analysis::{Options, analyze};

    use super::*;
    use crate::testing;

    #[test]
    fn traces_have_places_in_common() {
        let traces = [testing::trace(1, 60), testing::trace(2, 40)];
        let analyses = traces.each_ref().map(|trace| analyze(trace, &Options::default()));
        let window = |trace: &Trace| Interval::new(Ns(3 * testing::ITERATION_NS), trace.end);
        let parts: Vec<Part<'_>> = traces
            .iter()
            .zip(&analyses)
            .map(|(trace, analysis)| Part { trace, analysis, window: window(trace) })
            .collect();
        let places = places(&parts);
        assert!((2..=40).contains(&places.iterations()), "{}", places.iterations());
        let overlay = places.at_iteration(1).unwrap();
        for (part, moment) in parts.iter().zip(&overlay.moments) {
            assert!(part.window.contains(*moment));
        }
        let period = analyses[0].iterations.as_ref().unwrap().period.p50;
        assert_eq!(overlay.length, Ns(SHOWN_ITERATIONS * period.0));
        assert!(places.at_iteration(1_000).is_none());

        let step = places.at_range("step").unwrap();
        for (part, &moment) in parts.iter().zip(&step.moments) {
            let inside = |start: Ns| part.window.contains(start);
            let first = part.trace.ranges.iter().map(|range| range.interval.start).filter(|&at| inside(at)).min();
            assert_eq!(Some(moment), first);
        }
        assert!(places.at_range("no such range").is_none());
    }
}
