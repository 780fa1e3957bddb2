//! Several recordings side by side, `bubblescope.ranks/1`: one row for each device of each file, the worst first.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::{Device, Report, Tool};
use crate::analysis::FindingId;
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

/// What one device of one file did: the fields of a device in `bubblescope.report/1`, and where they come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// The file, as it was named.
    pub path: String,
    /// Whether the idle figures can be relied on.
    pub idle_reliable: bool,
    /// What the device did.
    #[serde(flatten)]
    pub device: Device,
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
                    let idle_reliable = report.quality.idle_reliable;
                    let devices = report.devices.into_iter();
                    all.ranks.extend(devices.map(|device| Rank { path: path.clone(), idle_reliable, device }));
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
            let shares = b.device.idle_fraction.total_cmp(&a.device.idle_fraction);
            shares.then_with(|| (&a.path, a.device.device).cmp(&(&b.path, b.device.device)))
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
        let rank = &ranks.ranks[0].device;
        assert_eq!(rank.busy_ns + rank.idle_ns, rank.span_ns);
        assert_eq!(rank.idle_by_root.values().copied().sum::<Ns>(), rank.idle_ns);
        let json = serde_json::to_value(&ranks).unwrap();
        assert_eq!(json["schema"], "bubblescope.ranks/1");
        assert_eq!(serde_json::from_value::<Ranks>(json).unwrap(), ranks);
    }
}
