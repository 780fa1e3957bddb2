//! How a comparison is made from repetitions.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{
    Alignment, Basis, Compare, CompareSchema, Origin, PerIteration, Skipped, Speedup, Variant, Wall, WallInterval,
};
use crate::analysis::Cause;
use crate::report::contract::{Report, Tool};
use crate::report::{stats, total};
use crate::trace::Ns;

/// One run of one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repetition {
    /// The variant.
    pub variant: String,
    /// Wall time of its measured iterations.
    pub wall: Ns,
    /// How many those are.
    pub iterations: u64,
    /// What it computed.
    pub answer: Option<String>,
    /// What its recording shows; `None` for a run without recording.
    pub recorded: Option<Recorded>,
}

/// What the recording of one run shows over all measured iterations and devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Device busy time.
    pub busy: Ns,
    /// Bubble time by root cause.
    pub idle_by_root: BTreeMap<Cause, Ns>,
    /// Calls that return only after device work.
    pub sync_calls: u64,
    /// Whether its idle times can be relied on.
    pub idle_reliable: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

impl Recorded {
    /// The figures of a report on the measured iterations.
    pub fn of(report: &Report) -> Self {
        let mut idle_by_root = BTreeMap::new();
        for (&cause, &idle) in report.devices.iter().flat_map(|device| &device.idle_by_root) {
            let sum = idle_by_root.entry(cause).or_default();
            *sum = total([*sum, idle]);
        }
        Self {
            busy: total(report.devices.iter().map(|device| device.busy_ns)),
            idle_by_root,
            sync_calls: report.sync_calls.iter().map(|row| row.calls).sum(),
            idle_reliable: report.quality.idle_reliable,
            reasons: report.quality.reasons.clone(),
        }
    }

    fn idle(&self) -> Ns {
        total(self.idle_by_root.values().copied())
    }
}

/// What is known about a comparison before its repetitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// Where the figures come from.
    pub from: Origin,
    /// What makes iterations comparable.
    pub aligned_by: Alignment,
    /// The bundled workload.
    pub workload: Option<String>,
    /// Its options.
    pub options: BTreeMap<String, String>,
    /// The machine and versions.
    pub machine: BTreeMap<String, String>,
    /// Variants that could not run.
    pub skipped: Vec<Skipped>,
    /// Anything else a reader must know.
    pub warnings: Vec<String>,
}

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompareError {
    /// Nothing to compare.
    #[error("no variant has a finished run")]
    NoRepetition,
    /// A run without iterations has no figures per iteration.
    #[error("`{variant}` ran no measured iteration")]
    NoIteration {
        /// The variant.
        variant: String,
    },
    /// A trace does not tell which part of it is the same work as in the others.
    #[error(
        "{path} has no iterations to compare by: no bundled workload, no repeating launch sequence, no repeating range"
    )]
    NotAligned {
        /// The trace.
        path: String,
    },
    /// None of the traces has figures.
    #[error("{path}: {reason}")]
    Unusable {
        /// The first of them.
        path: String,
        /// Why it has none.
        reason: String,
    },
    /// Iterations that are told in different ways are not the same work.
    #[error("the iterations of {path} are told apart by {other}, those of the first trace by {first}")]
    AlignedDifferently {
        /// The trace.
        path: String,
        /// How its iterations are told.
        other: String,
        /// How those of the first trace are.
        first: String,
    },
}

/// Variants that computed different answers: their times must not be compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the variants do not compute the same answer: {}", describe(.answers))]
pub struct AnswersDiffer {
    /// Each variant with its distinct answers.
    pub answers: Vec<(String, Vec<String>)>,
}

/// Who gives which answer.
pub(in crate::report) fn describe(answers: &[(String, Vec<String>)]) -> String {
    let each = answers.iter().map(|(variant, answers)| match answers.as_slice() {
        [] => format!("{variant} gives none"),
        answers => format!("{variant} gives {}", answers.join(" and ")),
    });
    each.collect::<Vec<_>>().join(", ")
}

impl Compare {
    /// Compares the runs of some variants; the variant of the first run is what the others are compared with.
    ///
    /// Answers are compared when the variants were run for this. That they differ is not an error here: ask
    /// [`Self::answers_differ`].
    ///
    /// # Errors
    /// When there is no run, or a run without iterations.
    pub fn new(setting: Setting, repetitions: &[Repetition]) -> Result<Self, CompareError> {
        let mut names: Vec<&str> = Vec::new();
        for repetition in repetitions {
            if repetition.iterations == 0 {
                return Err(CompareError::NoIteration { variant: repetition.variant.clone() });
            }
            if !names.contains(&repetition.variant.as_str()) {
                names.push(&repetition.variant);
            }
        }
        let Setting { from, aligned_by, workload, options, machine, skipped, mut warnings } = setting;
        let mut variants: Vec<Variant> = Vec::with_capacity(names.len());
        for name in names {
            let runs: Vec<&Repetition> = repetitions.iter().filter(|run| run.variant == name).collect();
            if runs.iter().any(|run| run.iterations != runs[0].iterations) {
                warnings.push(format!("The repetitions of `{name}` did not all run the same number of iterations."));
            }
            variants.push(variant(name, &runs));
        }
        let first = variants.first().ok_or(CompareError::NoRepetition)?.clone();
        // A live run without an answer has failed; a trace need not hold one.
        let known = || variants.iter().filter(|variant| from == Origin::Live || !variant.answers.is_empty());
        let answer_checked = known().count() == variants.len();
        let agree = known().all(|variant| variant.answers.len() == 1)
            && known().zip(known().skip(1)).all(|(one, next)| one.answers == next.answers);
        let answers_agree = if agree { answer_checked.then_some(true) } else { Some(false) };
        // Of traces, each that differs from the first is told by itself.
        if from == Origin::Traces || answers_agree != Some(false) {
            for (index, variant) in variants.iter_mut().enumerate() {
                variant.speedup = speedup(&first, variant);
                if let (0, Some(speedup)) = (index, &mut variant.speedup) {
                    (speedup.low, speedup.high) = (None, None);
                }
            }
        }
        Ok(Self {
            schema: CompareSchema::V1,
            tool: Tool::default(),
            from,
            aligned_by,
            workload,
            options,
            machine,
            answer_checked,
            answers_agree,
            variants,
            skipped,
            warnings,
        })
    }

    /// The error to end with when the answers differ, or those that some of the traces hold.
    pub fn answers_differ(&self) -> Option<AnswersDiffer> {
        let told = self.variants.iter().filter(|variant| self.from == Origin::Live || !variant.answers.is_empty());
        (self.answers_agree == Some(false)).then(|| AnswersDiffer {
            answers: told.map(|variant| (variant.variant.clone(), variant.answers.clone())).collect(),
        })
    }
}

/// The figures of one variant from its runs.
fn variant(name: &str, runs: &[&Repetition]) -> Variant {
    let mut answers: Vec<String> = Vec::new();
    for run in runs {
        // A run without an answer never agrees with one that has an answer.
        let answer = run.answer.clone().unwrap_or_else(|| "no answer".to_owned());
        if !answers.contains(&answer) {
            answers.push(answer);
        }
    }
    if runs.iter().all(|run| run.answer.is_none()) {
        answers.clear();
    }
    let unprofiled = wall(runs.iter().filter(|run| run.recorded.is_none()));
    let profiled = wall(runs.iter().filter(|run| run.recorded.is_some()));
    let inflation = profiled.zip(unprofiled).and_then(|(with, without)| ratio(with.median_ns, without.median_ns));
    Variant {
        variant: name.to_owned(),
        path: None,
        iterations: runs.first().map_or(0, |run| run.iterations),
        unusable: None,
        marks: Vec::new(),
        answers,
        unprofiled,
        profiled,
        inflation,
        speedup: None,
        recorded: per_iteration(runs),
    }
}

/// The median wall per iteration and its interval; `None` without runs.
fn wall<'a>(runs: impl Iterator<Item = &'a &'a Repetition>) -> Option<Wall> {
    let mut walls: Vec<Ns> = runs.map(|run| share(run.wall, run.iterations)).collect();
    walls.sort_unstable();
    let interval = stats::median_interval(&walls);
    Some(Wall {
        repetitions: walls.len() as u64,
        median_ns: stats::median(&walls)?,
        interval: interval.map(|found| WallInterval { low_ns: found.low, high_ns: found.high, level: found.level }),
    })
}

/// The figures of the recorded run with the median bubble time per iteration (the lower of two in the middle).
fn per_iteration(runs: &[&Repetition]) -> Option<PerIteration> {
    let mut recorded: Vec<(u64, &Recorded)> =
        runs.iter().filter_map(|run| Some((run.iterations, run.recorded.as_ref()?))).collect();
    recorded.sort_by_key(|(iterations, figures)| share(figures.idle(), *iterations));
    let &(iterations, figures) = recorded.get(recorded.len().checked_sub(1)? / 2)?;

    // Rounded sums, not rounded parts, so that the parts sum to the rounded whole.
    let mut sum = Ns::ZERO;
    let mut shared = Ns::ZERO;
    let mut bubble_ns_by_root = BTreeMap::new();
    for (&cause, &idle) in &figures.idle_by_root {
        sum = total([sum, idle]);
        let next = share(sum, iterations);
        bubble_ns_by_root.insert(cause, next - shared);
        shared = next;
    }
    let mut reasons: Vec<String> = Vec::new();
    for reason in recorded.iter().flat_map(|(_, figures)| &figures.reasons) {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    Some(PerIteration {
        busy_ns: share(figures.busy, iterations),
        bubble_ns: shared,
        bubble_ns_by_root,
        sync_calls: figures.sync_calls as f64 / iterations as f64,
        idle_reliable: recorded.iter().all(|(_, figures)| figures.idle_reliable),
        reasons,
    })
}

/// One iteration's share, rounded to the nearest nanosecond.
fn share(whole: Ns, iterations: u64) -> Ns {
    let (whole, iterations) = (i128::from(whole.0), i128::from(iterations.max(1)));
    Ns((2 * whole + iterations).div_euclid(2 * iterations) as i64)
}

/// How much faster `this` is than `first`, from runs without recording if both have them.
fn speedup(first: &Variant, this: &Variant) -> Option<Speedup> {
    let unprofiled = first.unprofiled.zip(this.unprofiled).map(|walls| (walls, Basis::Unprofiled));
    let profiled = first.profiled.zip(this.profiled).map(|walls| (walls, Basis::Profiled));
    let ((first, this), basis) = unprofiled.or(profiled)?;
    let intervals = first.interval.zip(this.interval);
    Some(Speedup {
        ratio: ratio(first.median_ns, this.median_ns)?,
        low: intervals.and_then(|(first, this)| ratio(first.low_ns, this.high_ns)),
        high: intervals.and_then(|(first, this)| ratio(first.high_ns, this.low_ns)),
        basis,
    })
}

/// A quotient of two lengths of time, if there is one.
fn ratio(numerator: Ns, denominator: Ns) -> Option<f64> {
    (denominator.0 > 0).then(|| numerator.0 as f64 / denominator.0 as f64)
}
