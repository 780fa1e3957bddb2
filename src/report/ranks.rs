//! Several recordings side by side, `bubblescope.ranks/1`: one row for each device of each file, the worst first.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::{Report, Tool};
use super::schema::ns_by;
use crate::analysis::{Cause, FindingId};
use crate::trace::Ns;

/// The name and number of this schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RanksSchema {
    /// The first version.
    #[default]
    #[serde(rename = "bubblescope.ranks/1")]
    V1,
}

/// What several recordings show, such as those of the ranks of one program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranks {
    /// Name and number of the schema.
    pub schema: RanksSchema,
    /// What wrote this.
    pub tool: Tool,
    /// Each device of each file, the one that was idle for the largest share of its span first.
    pub ranks: Vec<Rank>,
    /// Patterns that can be fixed, the one found in most files first.
    pub findings: Vec<RankFinding>,
    /// Files that could not be used, in the order in which they were given.
    pub unusable: Vec<Unusable>,
}

/// What one device of one file did. `compute_only_ns + overlapped_ns + exposed_copy_ns + idle_ns == span_ns`, exactly.
/// Fields mean what they mean in `bubblescope.report/1`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// The file, as it was named.
    pub path: String,
    /// The device's number.
    pub device: u32,
    /// Its product name; empty when unknown.
    pub name: String,
    /// From the first op's start to the last op's end.
    pub span_ns: Ns,
    /// Time with at least one op.
    pub busy_ns: Ns,
    /// Time with kernels and no copy.
    pub compute_only_ns: Ns,
    /// Time with kernels and copies at once.
    pub overlapped_ns: Ns,
    /// Time with copies or memsets under no kernel.
    pub exposed_copy_ns: Ns,
    /// Time of collective kernels under no other kernel, inside the busy time: a rank that waits for a late peer.
    pub exposed_comm_ns: Ns,
    /// Time without any op.
    pub idle_ns: Ns,
    /// That as a share of the span, 0 to 1.
    pub idle_fraction: f64,
    /// Number of ops.
    pub ops: u64,
    /// Number of bubbles.
    pub bubbles: u64,
    /// Length of the longest.
    pub max_bubble_ns: Ns,
    /// Idle time by root cause. Sums to `idle_ns`.
    #[schemars(schema_with = "ns_by::<Cause>")]
    pub idle_by_root: BTreeMap<Cause, Ns>,
    /// Whether the idle figures can be relied on.
    pub idle_reliable: bool,
}

/// A pattern that can be fixed, over all files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankFinding {
    /// Which pattern.
    pub id: FindingId,
    /// In how many files it was found.
    pub files: u64,
    /// The most that it costs a file: what that file's span would lose with the remedy.
    pub recoverable_ns: Ns,
    /// The file that it costs so much.
    pub path: String,
    /// One line for people, of that file.
    pub title: String,
}

/// A file that could not be used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unusable {
    /// The file, as it was named.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl Ranks {
    /// Puts the reports on files side by side; a file without a report comes with the reason.
    pub fn new(files: impl IntoIterator<Item = (String, Result<Report, String>)>) -> Self {
        let mut all = Self::default();
        let mut findings: BTreeMap<FindingId, RankFinding> = BTreeMap::new();
        for (path, report) in files {
            match report {
                Ok(report) => {
                    all.ranks.extend(report.devices.iter().map(|device| Rank {
                        path: path.clone(),
                        device: device.device,
                        name: device.name.clone(),
                        span_ns: device.span_ns,
                        busy_ns: device.busy_ns,
                        compute_only_ns: device.compute_only_ns,
                        overlapped_ns: device.overlapped_ns,
                        exposed_copy_ns: device.exposed_copy_ns,
                        exposed_comm_ns: device.exposed_comm_ns,
                        idle_ns: device.idle_ns,
                        idle_fraction: device.idle_fraction,
                        ops: device.ops,
                        bubbles: device.bubbles.count,
                        max_bubble_ns: device.bubbles.max_ns,
                        idle_by_root: device.idle_by_root.clone(),
                        idle_reliable: report.quality.idle_reliable,
                    }));
                    for found in report.findings.into_iter().flatten() {
                        let entry = findings.entry(found.id).or_insert_with(|| RankFinding {
                            id: found.id,
                            files: 0,
                            recoverable_ns: Ns::MIN,
                            path: String::new(),
                            title: String::new(),
                        });
                        entry.files += 1;
                        if found.recoverable_ns > entry.recoverable_ns {
                            entry.recoverable_ns = found.recoverable_ns;
                            entry.path.clone_from(&path);
                            entry.title = found.title;
                        }
                    }
                }
                Err(reason) => all.unusable.push(Unusable { path, reason }),
            }
        }
        all.ranks.sort_by(|a, b| {
            b.idle_fraction.total_cmp(&a.idle_fraction).then_with(|| (&a.path, a.device).cmp(&(&b.path, b.device)))
        });
        all.findings = findings.into_values().collect();
        all.findings.sort_by_key(|found| std::cmp::Reverse((found.files, found.recoverable_ns)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn the_worst_come_first_and_what_cannot_be_used_is_listed() {
        let mut worse = samples::sync_bound();
        worse.devices[0].idle_fraction = 0.9;
        let files = [
            ("a".to_owned(), Ok(samples::sync_bound())),
            ("b".to_owned(), Err("it is empty".to_owned())),
            ("c".to_owned(), Ok(worse)),
        ];
        let ranks = Ranks::new(files);
        let order: Vec<&str> = ranks.ranks.iter().map(|rank| rank.path.as_str()).collect();
        assert_eq!((order.first(), order.len()), (Some(&"c"), 2));
        assert_eq!(ranks.unusable, [Unusable { path: "b".to_owned(), reason: "it is empty".to_owned() }]);
        let expected = samples::sync_bound().findings.unwrap_or_default();
        assert_eq!(ranks.findings.len(), expected.len());
        assert!(!expected.is_empty() && ranks.findings.iter().all(|found| found.files == 2));
        let rank = &ranks.ranks[0];
        assert_eq!(rank.busy_ns + rank.idle_ns, rank.span_ns);
        assert_eq!(rank.idle_by_root.values().copied().sum::<Ns>(), rank.idle_ns);
        let json = serde_json::to_value(&ranks).unwrap();
        assert_eq!(json["schema"], "bubblescope.ranks/1");
        assert_eq!(serde_json::from_value::<Ranks>(json).unwrap(), ranks);
    }
}
