//! Parts of a trace to look at.

use super::words::moment;
use thiserror::Error;

use crate::trace::{Interval, Ns, Trace};

use super::result::Iterations;
use super::sync_cost::site_name;

/// Why there is no such part of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WindowError {
    /// Nothing of the trace lies between the given moments.
    #[error("nothing {}: the recording runs from 0 ns to {}", asked(*.from, *.to), moment(*.end))]
    Empty {
        /// The first moment asked for.
        from: Ns,
        /// The moment after the last, if one was asked for.
        to: Option<Ns>,
        /// The trace's end.
        end: Ns,
    },
    /// No range has this name.
    #[error("no range is named \"{name}\"{}", .similar.as_ref().map_or(String::new(), |similar| format!("; there is \"{similar}\"")))]
    NoRange {
        /// The name asked for.
        name: String,
        /// A name that contains it, whatever the case.
        similar: Option<String>,
    },
    /// The program does not repeat.
    #[error("no iterations were found: nothing repeats often enough")]
    NoIterations,
    /// There are not so many iterations.
    #[error("no iteration {asked}: there are {count}, from 0 on")]
    NoIteration {
        /// The number asked for.
        asked: usize,
        /// How many there are.
        count: usize,
    },
}

fn asked(from: Ns, to: Option<Ns>) -> String {
    match to {
        Some(to) => format!("between {} and {}", moment(from), moment(to)),
        None => format!("from {} on", moment(from)),
    }
}

/// From one moment to another; from the trace's start and to its end where they are not given.
///
/// # Errors
/// [`WindowError::Empty`] when nothing of the trace lies between them.
pub fn between(trace: &Trace, from: Option<Ns>, to: Option<Ns>) -> Result<Interval, WindowError> {
    let from = from.unwrap_or(Ns::ZERO);
    let window = Interval::new(from, to.unwrap_or(trace.end)).intersect(Interval::new(Ns::ZERO, trace.end));
    if window.is_empty() { Err(WindowError::Empty { from, to, end: trace.end }) } else { Ok(window) }
}

/// From the first start to the last end of the ranges with this name, a counting number at its end left out if need be
/// (`ProfilerStep` for `ProfilerStep#3`).
///
/// # Errors
/// [`WindowError::NoRange`] when there is none.
pub fn of_range(trace: &Trace, name: &str) -> Result<Interval, WindowError> {
    let spanned = |wanted: &dyn Fn(&str) -> bool| {
        let ranges = trace.ranges.iter().filter(|range| wanted(trace.names.get(range.name)));
        ranges
            .map(|range| range.interval)
            .reduce(|all, range| Interval::new(all.start.min(range.start), all.end.max(range.end)))
    };
    spanned(&|known| known == name).or_else(|| spanned(&|known| site_name(known) == name)).ok_or_else(|| {
        let wanted = name.to_lowercase();
        let mut names = trace.ranges.iter().map(|range| trace.names.get(range.name));
        let similar = names.find(|known| known.to_lowercase().contains(&wanted)).map(str::to_owned);
        WindowError::NoRange { name: name.to_owned(), similar }
    })
}

/// One iteration of an analysis of the whole trace, counted from 0, warm-up included: up to and with the first
/// nanosecond of the next one, as the idle time before that is this iteration's.
///
/// # Errors
/// [`WindowError::NoIterations`] when there are none, [`WindowError::NoIteration`] when there are fewer.
pub fn of_iteration(iterations: Option<&Iterations>, index: usize) -> Result<Interval, WindowError> {
    let intervals = &iterations.ok_or(WindowError::NoIterations)?.intervals;
    let count = intervals.len();
    let iteration = intervals.get(index).copied().ok_or(WindowError::NoIteration { asked: index, count })?;
    Ok(Interval::new(iteration.start, iteration.end.saturating_add(Ns(1))))
}
