//! The comparison of variants, `bubblescope.compare/1`, and how it is made from repetitions.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::contract::{Report, Tool};
use super::schema::ns_by;
use super::{stats, total};
use crate::analysis::Cause;
use crate::trace::Ns;

/// The name and number of this schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CompareSchema {
    /// The first version.
    #[default]
    #[serde(rename = "bubblescope.compare/1")]
    V1,
}

/// What the variants of one piece of work cost, per iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compare {
    /// Name and number of the schema.
    pub schema: CompareSchema,
    /// What wrote it.
    pub tool: Tool,
    /// Whether the variants were run for this comparison or read from trace files.
    pub from: Origin,
    /// What makes one iteration of one variant the same work as one of another.
    pub aligned_by: Alignment,
    /// The bundled workload, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Its options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The machine and versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<String, String>,
    /// Whether the answers of all variants were compared.
    pub answer_checked: bool,
    /// Whether they are the same; `null` when not compared. The figures mean nothing when they differ.
    pub answers_agree: Option<bool>,
    /// Each variant; the first is what the others are compared with.
    pub variants: Vec<Variant>,
    /// Variants without figures.
    pub skipped: Vec<Skipped>,
    /// Anything else a reader must know, one sentence each.
    pub warnings: Vec<String>,
}

/// Where the figures of a comparison come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The variants were run, each repetition in a process of its own.
    #[default]
    Live,
    /// They were recorded before.
    Traces,
}

/// What makes one iteration of one variant the same work as one of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Alignment {
    /// The workload counts its iterations.
    #[default]
    Workload,
    /// The sequence of launches repeats.
    LaunchSequence,
    /// A range whose name repeats.
    Range {
        /// That name.
        name: String,
    },
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workload => f.write_str("the workload's own count"),
            Self::LaunchSequence => f.write_str("the launch sequence that repeats"),
            Self::Range { name } => write!(f, "the range `{name}` that repeats"),
        }
    }
}

/// What one variant costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Variant {
    /// Its name.
    pub variant: String,
    /// The trace file it was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Measured iterations of one repetition; 0 when it has no figures.
    pub iterations: u64,
    /// Why it has no figures; absent when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// What speaks against comparing its figures, a clause each: its trace was cut, or what its devices did is not the
    /// same work as in the first variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// The distinct answers of its repetitions: one when they agree.
    pub answers: Vec<String>,
    /// Wall time per iteration without any recording; `null` when not measured.
    pub unprofiled: Option<Wall>,
    /// Wall time per iteration while being recorded; `null` when not measured.
    pub profiled: Option<Wall>,
    /// `profiled` divided by `unprofiled`: what recording costs; `null` unless both were measured.
    pub inflation: Option<f64>,
    /// How much faster it is than the first variant; `null` when there is nothing to compare with, or the answers
    /// differ.
    pub speedup: Option<Speedup>,
    /// What its recording shows; `null` when it was not recorded.
    pub recorded: Option<PerIteration>,
}

/// Wall time per iteration over some repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wall {
    /// How many repetitions there were.
    pub repetitions: u64,
    /// The median.
    pub median_ns: Ns,
    /// Where the true median lies; `null` with a single repetition.
    pub interval: Option<WallInterval>,
}

/// An interval between two repetitions that holds the true median, whatever the distribution is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WallInterval {
    /// Its lower end.
    pub low_ns: Ns,
    /// Its upper end.
    pub high_ns: Ns,
    /// How sure that is: at least 0.95 from six repetitions on, less with fewer.
    pub level: f64,
}

/// How much faster a variant is than the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speedup {
    /// The first variant's median divided by this one's.
    pub ratio: f64,
    /// The least ratio that both intervals allow; `null` without intervals and for the first variant.
    pub low: Option<f64>,
    /// The greatest ratio that both intervals allow; `null` without intervals and for the first variant.
    pub high: Option<f64>,
    /// Which walls were compared.
    pub basis: Basis,
}

/// Which walls a speed-up compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Those without any recording.
    Unprofiled,
    /// Those while being recorded, in which recording itself takes part.
    Profiled,
}

/// What a recording shows, per iteration, from the repetition with the median bubble time. All devices together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerIteration {
    /// Device busy time.
    pub busy_ns: Ns,
    /// Bubble time.
    pub bubble_ns: Ns,
    /// Bubble time by root cause. Sums to `bubble_ns`.
    #[schemars(schema_with = "ns_by::<Cause>")]
    pub bubble_ns_by_root: BTreeMap<Cause, Ns>,
    /// Calls that return only after device work.
    pub sync_calls: f64,
    /// Whether the bubble times of all repetitions can be relied on.
    pub idle_reliable: bool,
    /// Why not, one sentence each.
    pub reasons: Vec<String>,
}

/// A variant without figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Its name.
    pub variant: String,
    /// Why it was left out.
    pub reason: String,
}

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
pub(super) fn describe(answers: &[(String, Vec<String>)]) -> String {
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
        let agree = variants.iter().all(|variant| variant.answers.len() == 1 && variant.answers == first.answers);
        let answers_agree = (from == Origin::Live).then_some(agree);
        if answers_agree != Some(false) {
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
            answer_checked: from == Origin::Live,
            answers_agree,
            variants,
            skipped,
            warnings,
        })
    }

    /// The error to end with when the answers were compared and differ.
    pub fn answers_differ(&self) -> Option<AnswersDiffer> {
        (self.answers_agree == Some(false)).then(|| AnswersDiffer {
            answers: self.variants.iter().map(|variant| (variant.variant.clone(), variant.answers.clone())).collect(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{self, run};

    #[test]
    fn medians_intervals_ratios_and_inflation_are_exact() {
        let walls = [[20_000, 24_000, 10_000], [20_400, 24_800, 10_100], [20_200, 24_400, 10_400]];
        let mut runs = Vec::new();
        for [sync, recorded, graph] in walls {
            runs.push(run("sync", sync, 1_000, None));
            runs.push(run("sync", recorded, 1_000, Some(&[(Cause::Sync, 12_000)])));
            runs.push(run("graph", graph, 1_000, None));
        }
        let compare = Compare::new(Setting::default(), &runs).unwrap();
        let [sync, graph] = compare.variants.as_slice() else { panic!("{:?}", compare.variants) };
        let wall = |median: i64, low: i64, high: i64| {
            let interval = WallInterval { low_ns: Ns(low), high_ns: Ns(high), level: 0.75 };
            Some(Wall { repetitions: 3, median_ns: Ns(median), interval: Some(interval) })
        };
        assert_eq!(sync.unprofiled, wall(20_200, 20_000, 20_400));
        assert_eq!(sync.profiled, wall(24_400, 24_000, 24_800));
        assert_eq!(sync.inflation, Some(24_400.0 / 20_200.0));
        assert_eq!(sync.speedup, Some(Speedup { ratio: 1.0, low: None, high: None, basis: Basis::Unprofiled }));
        assert_eq!((graph.profiled, graph.inflation, &graph.recorded), (None, None, &None));
        let speedup = Speedup {
            ratio: 2.0,
            low: Some(20_000.0 / 10_400.0),
            high: Some(20_400.0 / 10_000.0),
            basis: Basis::Unprofiled,
        };
        assert_eq!(graph.speedup, Some(speedup));
        assert_eq!(sync.recorded.as_ref().map(|recorded| recorded.bubble_ns), Some(Ns(12_000)));
        assert_eq!((compare.answer_checked, compare.answers_agree), (true, Some(true)));
    }

    #[test]
    fn recorded_figures_come_from_the_repetition_with_the_median_bubble_time_and_its_parts_add_up() {
        let recorded = |total: &[(Cause, i64)], busy| Repetition {
            variant: "sync".to_owned(),
            wall: Ns(1_000),
            iterations: 3,
            answer: None,
            recorded: Some(Recorded {
                busy: Ns(busy),
                idle_by_root: total.iter().map(|&(cause, ns)| (cause, Ns(ns))).collect(),
                sync_calls: 4,
                idle_reliable: true,
                reasons: Vec::new(),
            }),
        };
        let median = [(Cause::Sync, 100), (Cause::LaunchBound, 100), (Cause::Dispatch, 100)];
        let runs = [recorded(&[(Cause::Sync, 900)], 1), recorded(&median, 301), recorded(&[(Cause::Sync, 1)], 2)];
        let compare = Compare::new(Setting { from: Origin::Traces, ..Setting::default() }, &runs).unwrap();
        let figures = compare.variants[0].recorded.as_ref().unwrap();
        assert_eq!((figures.busy_ns, figures.bubble_ns), (Ns(100), Ns(100)));
        let parts: Vec<(Cause, i64)> = figures.bubble_ns_by_root.iter().map(|(&cause, ns)| (cause, ns.0)).collect();
        assert_eq!(parts, [(Cause::Sync, 33), (Cause::LaunchBound, 34), (Cause::Dispatch, 33)]);
        assert_eq!(figures.sync_calls, 4.0 / 3.0);
    }

    #[test]
    fn one_repetition_that_is_not_reliable_makes_the_variant_so() {
        let mut runs = vec![run("sync", 10, 1, Some(&[(Cause::Sync, 5)])); 3];
        if let Some(recorded) = &mut runs[0].recorded {
            recorded.idle_reliable = false;
            recorded.reasons.push("7 records were dropped.".to_owned());
        }
        let compare = Compare::new(Setting::default(), &runs).unwrap();
        let figures = compare.variants[0].recorded.as_ref().unwrap();
        assert_eq!((figures.idle_reliable, figures.reasons.len()), (false, 1));
    }

    #[test]
    fn answers_that_differ_withhold_every_speed_up() {
        for answer in [Some("0"), None] {
            let mut runs = vec![run("sync", 10, 1, None), run("async", 5, 1, None), run("async", 5, 1, None)];
            runs[2].answer = answer.map(str::to_owned);
            let compare = Compare::new(Setting::default(), &runs).unwrap();
            assert_eq!((compare.answer_checked, compare.answers_agree), (true, Some(false)));
            assert!(compare.variants.iter().all(|variant| variant.speedup.is_none()));
            let differ = compare.answers_differ().unwrap();
            let other = answer.unwrap_or("no answer");
            assert_eq!(
                differ.to_string(),
                format!(
                    "the variants do not compute the same answer: sync gives 0x3f9d70a4, async gives 0x3f9d70a4 and \
                     {other}"
                )
            );
        }
        assert_eq!(samples::compared().answers_differ(), None);
        assert_eq!(samples::compared_traces().answers_differ(), None);
    }

    #[test]
    fn runs_that_give_no_figure_are_errors() {
        assert_eq!(Compare::new(Setting::default(), &[]), Err(CompareError::NoRepetition));
        let mut idle = run("sync", 10, 1, None);
        idle.iterations = 0;
        assert_eq!(
            Compare::new(Setting::default(), &[idle]),
            Err(CompareError::NoIteration { variant: "sync".to_owned() })
        );
    }

    #[test]
    fn json_names_the_schema_and_says_null_where_nothing_was_measured() {
        let json = serde_json::to_value(samples::compared_traces()).unwrap();
        assert_eq!(json["schema"], "bubblescope.compare/1");
        assert_eq!(json["answer_checked"], false);
        assert!(json["answers_agree"].is_null());
        assert!(json["variants"][0].as_object().unwrap().contains_key("unprofiled"));
        assert!(json["variants"][0]["unprofiled"].is_null());
        let again: Compare = serde_json::from_value(json).unwrap();
        assert_eq!(again, samples::compared_traces());
    }
}
