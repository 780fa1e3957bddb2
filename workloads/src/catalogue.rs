//! What there is to run.

use crate::{Outcome, RunSpec, WorkloadError};
use crate::{allocation, default_stream, graph_replay, pipeline, planted, scalar_readback, timing};

/// A workload: one piece of work in several variants.
#[derive(Debug)]
#[non_exhaustive]
pub struct WorkloadInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Its variants; the first is the one to compare against.
    pub variants: &'static [VariantInfo],
    /// Its options, the same for every variant.
    pub options: &'static [OptionInfo],
    pub(crate) run: fn(&RunSpec) -> Result<Outcome, WorkloadError>,
}

/// One shape of a workload.
#[derive(Debug)]
#[non_exhaustive]
pub struct VariantInfo {
    /// Its name on the command line, unique within the workload.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Whether it is only a yardstick for the others, not something to choose: not part of a default comparison.
    pub reference: bool,
}

/// An option of a workload. Every option is a whole number.
#[derive(Debug)]
#[non_exhaustive]
pub struct OptionInfo {
    /// Its name on the command line, without dashes in front.
    pub name: &'static str,
    /// Its value when not given.
    pub default: u64,
    /// The smallest value allowed.
    pub min: u64,
    /// The largest value allowed.
    pub max: u64,
    /// The value must be a multiple of this.
    pub multiple_of: u64,
    /// One line for people.
    pub help: &'static str,
}

impl WorkloadInfo {
    /// The variant of that name.
    pub fn variant(&self, name: &str) -> Option<&'static VariantInfo> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// The option of that name.
    pub fn option(&self, name: &str) -> Option<&'static OptionInfo> {
        self.options.iter().find(|option| option.name == name)
    }
}

impl VariantInfo {
    pub(crate) const fn new(name: &'static str, summary: &'static str) -> Self {
        Self { name, summary, reference: false }
    }

    pub(crate) const fn reference(name: &'static str, summary: &'static str) -> Self {
        Self { name, summary, reference: true }
    }
}

impl OptionInfo {
    pub(crate) const fn new(name: &'static str, default: u64, min: u64, max: u64, help: &'static str) -> Self {
        Self { name, default, min, max, multiple_of: 1, help }
    }

    pub(crate) const fn multiple_of(mut self, multiple_of: u64) -> Self {
        self.multiple_of = multiple_of;
        self
    }
}

/// Every workload, in the order to show them.
pub fn catalogue() -> &'static [WorkloadInfo] {
    static CATALOGUE: &[WorkloadInfo] = &[
        scalar_readback::INFO,
        pipeline::INFO,
        graph_replay::INFO,
        default_stream::INFO,
        allocation::INFO,
        timing::INFO,
        planted::INFO,
    ];
    CATALOGUE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn unique<'a>(names: impl Iterator<Item = &'a str>) -> bool {
        let mut seen = BTreeSet::new();
        names.into_iter().all(|name| seen.insert(name))
    }

    fn is_a_name(name: &str) -> bool {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }

    fn is_one_line(text: &str) -> bool {
        !text.is_empty() && text.len() <= 120 && !text.contains('\n') && text.trim() == text
    }

    #[test]
    fn names_are_unique_and_fit_a_command_line() {
        assert!(unique(catalogue().iter().map(|w| w.name)));
        for workload in catalogue() {
            assert!(is_a_name(workload.name), "{}", workload.name);
            assert!(unique(workload.variants.iter().map(|v| v.name)), "{}", workload.name);
            assert!(unique(workload.options.iter().map(|o| o.name)), "{}", workload.name);
            assert!(workload.variants.iter().all(|v| is_a_name(v.name)), "{}", workload.name);
            assert!(workload.options.iter().all(|o| is_a_name(o.name)), "{}", workload.name);
        }
    }

    #[test]
    fn everything_is_explained_in_a_line() {
        for workload in catalogue() {
            assert!(is_one_line(workload.summary), "{}", workload.name);
            assert!(workload.variants.iter().all(|v| is_one_line(v.summary)), "{}", workload.name);
            assert!(workload.options.iter().all(|o| is_one_line(o.help)), "{}", workload.name);
        }
    }

    #[test]
    fn every_workload_has_something_to_compare_and_its_defaults_are_allowed() {
        for workload in catalogue() {
            assert!(workload.variants.iter().filter(|v| !v.reference).count() >= 2, "{}", workload.name);
            assert!(!workload.variants[0].reference, "{}", workload.name);
            for option in workload.options {
                assert!((option.min..=option.max).contains(&option.default), "{} {}", workload.name, option.name);
                assert_eq!(option.default % option.multiple_of, 0, "{} {}", workload.name, option.name);
            }
        }
    }
}
