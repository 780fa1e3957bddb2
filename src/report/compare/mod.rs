//! The comparison of variants, `bubblescope.compare/1`.

mod runs;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::Tool;
use super::schema::ns_by;
use crate::analysis::Cause;
use crate::trace::Ns;
pub(super) use runs::describe;
pub use runs::{AnswersDiffer, CompareError, Recorded, Repetition, Setting};

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
    /// Whether the answers of all variants are known and were compared.
    pub answer_checked: bool,
    /// Whether they are the same; `false` also where only some are known and those differ, `null` where those do not. The
    /// figures mean nothing when they differ.
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
    /// What speaks against comparing its figures, a clause each: its trace was cut, or it is not the same work as the first
    /// variant, as its workload, its answer or what its devices did tells.
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
    /// How much faster it is than the first variant; `null` when there is nothing to compare with, the answers differ, or
    /// a mark says that it is not the same work.
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
