//! What the gate found, `bubblescope.check/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::Tool;
use super::gate::{Check, Figure, Outcome, Verdict};
use super::limits::Limit;
use crate::analysis::FindingId;
use crate::trace::Ns;

/// The name and number of this schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CheckSchema {
    /// The first version.
    #[default]
    #[serde(rename = "bubblescope.check/1")]
    V1,
}

/// Whether recordings keep limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// Name and number of the schema.
    pub schema: CheckSchema,
    /// What wrote this.
    pub tool: Tool,
    /// Whether every file keeps every limit.
    pub passed: bool,
    /// Each file, in the order in which they were given.
    pub files: Vec<CheckedFile>,
}

/// Whether one file keeps the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedFile {
    /// The file, as it was named.
    pub path: String,
    /// Whether it keeps every limit and its idle time is reliable.
    pub passed: bool,
    /// Why it cannot be used; absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why its idle time is not reliable; empty when it is.
    pub unreliable: Vec<String>,
    /// Each limit; one that several devices break stands here once for each.
    pub limits: Vec<CheckedLimit>,
}

/// One limit and what it met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedLimit {
    /// The option that sets it, such as `max-idle`.
    pub limit: String,
    /// What it allows, as in the text; absent for a finding that is forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// The finding that is forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingId>,
    /// What came of it.
    pub outcome: CheckedOutcome,
    /// Why nothing is known, when that is the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The device that the figure is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// The figure: idle time, gain, length of the bubble, or what the finding recovers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_ns: Option<Ns>,
    /// The span that the figure is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<Ns>,
    /// How often the finding occurs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What a limit met. What is not known does not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckedOutcome {
    /// It is kept.
    Kept,
    /// It is broken.
    Broken,
    /// There is no figure.
    #[default]
    Unknown,
}

impl Checked {
    /// The verdicts on files, or why there is none.
    pub fn new(verdicts: &[(String, Result<Verdict, String>)]) -> Self {
        let files: Vec<CheckedFile> = verdicts.iter().map(|(path, verdict)| file(path, verdict)).collect();
        let passed = !files.is_empty() && files.iter().all(|file| file.passed);
        Self { passed, files, ..Self::default() }
    }
}

fn file(path: &str, verdict: &Result<Verdict, String>) -> CheckedFile {
    let path = path.to_owned();
    match verdict {
        Ok(verdict) => CheckedFile {
            path,
            passed: verdict.passed(),
            error: None,
            unreliable: verdict.unreliable.clone(),
            limits: verdict.checks.iter().map(limit).collect(),
        },
        Err(reason) => CheckedFile { path, error: Some(reason.clone()), ..CheckedFile::default() },
    }
}

fn limit(check: &Check) -> CheckedLimit {
    let (name, finding) = match check.limit {
        Limit::MaxIdle(_) => ("max-idle", None),
        Limit::MaxRecoverable(_) => ("max-recoverable", None),
        Limit::MaxBubble(_) => ("max-bubble", None),
        Limit::Forbid(finding) => ("forbid", Some(finding)),
    };
    let allowed = check.limit.allowed();
    let (outcome, figure, reason) = match &check.outcome {
        Outcome::Kept(figure) => (CheckedOutcome::Kept, Some(figure), None),
        Outcome::Broken(figure) => (CheckedOutcome::Broken, Some(figure), None),
        Outcome::Unknown(reason) => (CheckedOutcome::Unknown, None, Some(reason.clone())),
    };
    let plain = CheckedLimit { limit: name.to_owned(), allowed, finding, outcome, reason, ..CheckedLimit::default() };
    match figure {
        Some(&Figure::Idle { device, idle, span }) => {
            CheckedLimit { device: Some(device), value_ns: Some(idle), span_ns: Some(span), ..plain }
        }
        Some(&Figure::Recoverable { gain, span }) => {
            CheckedLimit { value_ns: Some(gain), span_ns: Some(span), ..plain }
        }
        Some(&Figure::Bubble { device, length, .. }) => {
            CheckedLimit { device: Some(device), value_ns: Some(length), ..plain }
        }
        Some(&Figure::Finding { count, recoverable }) => {
            CheckedLimit { count: Some(count), value_ns: Some(recoverable), ..plain }
        }
        None => plain,
    }
}
