//! The comparison of trace files: which part of each is the same work, and what that part costs.

use std::collections::BTreeMap;
use std::path::Path;

use super::compare::{Alignment, Compare, CompareError, Origin, Recorded, Repetition, Setting};
use super::contract::Report;
use super::convert;
use crate::analysis::{self, Analysis, IterationSource, analyze};
use crate::trace::{Interval, Trace};

/// The part of a trace that is the same work as a part of other traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// That part: whole iterations after warm-up.
    pub window: Interval,
    /// How many iterations it holds.
    pub iterations: u64,
    /// What told them apart.
    pub by: Alignment,
}

impl Aligned {
    /// Finds the iterations of a trace: a bundled workload's own count, otherwise what the analysis found repeating.
    /// [`Self::report`] analyses the trace again with the window that this gives.
    ///
    /// # Errors
    /// When nothing tells iterations apart. Whole traces are not compared: nothing says that they hold the same work.
    pub fn find(path: &str, trace: &Trace, analysis: &Analysis) -> Result<Self, CompareError> {
        let workload = trace.meta.workload.as_ref().filter(|run| run.iterations > 0);
        if let Some((window, run)) = workload.and_then(|run| Some((run.measured?, run)))
            && !window.is_empty()
        {
            return Ok(Self { window, iterations: run.iterations, by: Alignment::Workload });
        }
        let not_aligned = || CompareError::NotAligned { path: path.to_owned() };
        let found = analysis.iterations.as_ref().ok_or_else(not_aligned)?;
        let warmup = usize::try_from(found.warmup).unwrap_or(usize::MAX);
        let measured = found.intervals.get(warmup..).unwrap_or_default();
        let (Some(first), Some(last)) = (measured.first(), measured.last()) else { return Err(not_aligned()) };
        Ok(Self {
            window: Interval::new(first.start, last.end),
            iterations: measured.len() as u64,
            by: match &found.source {
                IterationSource::LaunchSequence { .. } => Alignment::LaunchSequence,
                IterationSource::Range(name) => Alignment::Range { name: name.clone() },
            },
        })
    }

    /// The report on that part of the trace, for [`Compare::of_traces`].
    pub fn report(&self, path: &str, trace: &Trace) -> Report {
        let analysis = analyze(trace, &analysis::Options { window: Some(self.window), ..Default::default() });
        Report::new(trace, &analysis, &convert::Options { path: path.to_owned(), top: 0 })
    }
}

/// One trace of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct ComparedTrace<'a> {
    /// Its file, as the user named it.
    pub path: &'a str,
    /// The part that is compared.
    pub aligned: &'a Aligned,
    /// The report on that part.
    pub report: &'a Report,
}

impl Compare {
    /// Compares traces by iteration; the first is what the others are compared with. Recording takes part in every
    /// wall time, and nothing says whether the answers are the same.
    ///
    /// # Errors
    /// When there is no trace, or their iterations are told apart in different ways.
    pub fn of_traces(traces: &[ComparedTrace<'_>]) -> Result<Self, CompareError> {
        let first = traces.first().ok_or(CompareError::NoRepetition)?;
        if let Some(other) = traces.iter().find(|trace| trace.aligned.by != first.aligned.by) {
            return Err(CompareError::AlignedDifferently {
                path: other.path.to_owned(),
                other: other.aligned.by.to_string(),
                first: first.aligned.by.to_string(),
            });
        }
        let names = names(traces);
        let mut warnings = Vec::new();
        let workloads: Vec<Option<&str>> =
            traces.iter().map(|trace| trace.report.source.workload.as_ref().map(|run| run.workload.as_str())).collect();
        let same_workload = workloads.iter().all(|workload| *workload == workloads[0]);
        if !same_workload {
            let each = names
                .iter()
                .zip(&workloads)
                .map(|(name, workload)| format!("{name} is {}", workload.unwrap_or("no bundled workload")));
            warnings.push(format!("These are different workloads: {}.", each.collect::<Vec<_>>().join(", ")));
        }
        let nothing = BTreeMap::new();
        let options: Vec<&BTreeMap<String, String>> = traces
            .iter()
            .map(|trace| trace.report.source.workload.as_ref().map_or(&nothing, |run| &run.options))
            .collect();
        let machines: Vec<&BTreeMap<String, String>> =
            traces.iter().map(|trace| &trace.report.source.machine).collect();
        let setting = Setting {
            from: Origin::Traces,
            aligned_by: first.aligned.by.clone(),
            workload: workloads[0].filter(|_| same_workload).map(str::to_owned),
            options: in_common("option", &names, &options, &mut warnings),
            machine: in_common("fact", &names, &machines, &mut warnings),
            skipped: Vec::new(),
            warnings,
        };
        let runs: Vec<Repetition> = traces.iter().zip(&names).map(|(trace, name)| repetition(trace, name)).collect();
        let mut compare = Self::new(setting, &runs)?;
        for (variant, trace) in compare.variants.iter_mut().zip(traces) {
            variant.path = Some(trace.path.to_owned());
        }
        if compare.variants.iter().any(|variant| variant.answers != compare.variants[0].answers) {
            let warning = "The answers that the recordings hold are not the same: do not compare their times.";
            compare.warnings.push(warning.to_owned());
        }
        Ok(compare)
    }
}

fn repetition(trace: &ComparedTrace<'_>, name: &str) -> Repetition {
    let answer = trace.report.source.workload.as_ref().map(|run| run.answer.clone());
    Repetition {
        variant: name.to_owned(),
        wall: trace.aligned.window.len(),
        iterations: trace.aligned.iterations,
        answer: answer.filter(|answer| !answer.is_empty()),
        recorded: Some(Recorded::of(trace.report)),
    }
}

/// Endings of trace files, which tell nothing in a table.
const ENDINGS: [&str; 6] = [".bubbles.parquet", ".bubcap", ".pt.trace.json.gz", ".json.gz", ".json", ".sqlite"];

/// A different name for each trace: its workload's variant, its file's name, or its path.
fn names(traces: &[ComparedTrace<'_>]) -> Vec<String> {
    let variant = |trace: &ComparedTrace<'_>| trace.report.source.workload.as_ref().map(|run| run.variant.clone());
    let file = |trace: &ComparedTrace<'_>| {
        let name = Path::new(trace.path).file_name()?.to_string_lossy().into_owned();
        let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|stem| !stem.is_empty());
        Some(stem.map_or_else(|| name.clone(), str::to_owned))
    };
    let distinct = |names: &Option<Vec<String>>| {
        let Some(names) = names else { return false };
        names.iter().enumerate().all(|(index, name)| !name.is_empty() && !names[..index].contains(name))
    };
    let variants: Option<Vec<String>> = traces.iter().map(variant).collect();
    let files: Option<Vec<String>> = traces.iter().map(file).collect();
    let numbered =
        || traces.iter().enumerate().map(|(index, trace)| format!("{}: {}", index + 1, trace.path)).collect();
    [variants, files].into_iter().find(distinct).flatten().unwrap_or_else(numbered)
}

/// The pairs that all maps have; a warning for each name whose values differ.
fn in_common(
    what: &str,
    names: &[String],
    maps: &[&BTreeMap<String, String>],
    warnings: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut common = BTreeMap::new();
    let mut keys: Vec<&String> = maps.iter().flat_map(|map| map.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let values: Vec<Option<&String>> = maps.iter().map(|map| map.get(key)).collect();
        match values.as_slice() {
            [Some(value), others @ ..] if others.iter().all(|other| *other == Some(*value)) => {
                common.insert(key.clone(), (*value).clone());
            }
            values => {
                let each = names
                    .iter()
                    .zip(values)
                    .map(|(name, value)| format!("{} in {name}", value.map_or("not known", String::as_str)));
                warnings.push(format!("The {what} {key} differs: {}.", each.collect::<Vec<_>>().join(", ")));
            }
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Cause, Iterations, Percentiles};
    use crate::report::contract::Workload;
    use crate::report::samples;
    use crate::trace::{Ns, WorkloadRun};

    fn aligned(by: Alignment) -> Aligned {
        Aligned { window: Interval::new(Ns(100), Ns(10_100)), iterations: 10, by }
    }

    fn report(variant: &str, answer: &str) -> Report {
        let mut report = samples::clean();
        report.devices = vec![samples::device(0, 6_000, 0, &[(Cause::Sync, 3_000), (Cause::Dispatch, 14)], 20)];
        report.source.workload = Some(Workload {
            workload: "scalar-readback".to_owned(),
            variant: variant.to_owned(),
            answer: answer.to_owned(),
            ..Workload::default()
        });
        report
    }

    #[test]
    fn a_bundled_workload_is_aligned_by_its_own_count() {
        let mut trace = Trace::default();
        let measured = Some(Interval::new(Ns(5), Ns(25)));
        trace.meta.workload = Some(WorkloadRun { iterations: 4, measured, ..WorkloadRun::default() });
        let found = Aligned::find("t", &trace, &Analysis::default()).unwrap();
        assert_eq!(found, Aligned { window: Interval::new(Ns(5), Ns(25)), iterations: 4, by: Alignment::Workload });
    }

    #[test]
    fn other_traces_are_aligned_by_what_repeats_after_warm_up_or_refused() {
        let mut analysis = Analysis::default();
        let refused = Err(CompareError::NotAligned { path: "t".to_owned() });
        assert_eq!(Aligned::find("t", &Trace::default(), &analysis), refused);

        let each = |index: i64| Interval::new(Ns(index * 10), Ns(index * 10 + 10));
        analysis.iterations = Some(Iterations {
            source: IterationSource::Range("step".to_owned()),
            count: 3,
            warmup: 2,
            period: Percentiles::default(),
            jitter: Ns::ZERO,
            idle_p50: Ns::ZERO,
            blocking_calls_p50: 0,
            intervals: (0..5).map(each).collect(),
        });
        let by = Alignment::Range { name: "step".to_owned() };
        let expected = Aligned { window: Interval::new(Ns(20), Ns(50)), iterations: 3, by };
        assert_eq!(Aligned::find("t", &Trace::default(), &analysis), Ok(expected));

        if let Some(iterations) = &mut analysis.iterations {
            iterations.warmup = 5;
        }
        assert_eq!(Aligned::find("t", &Trace::default(), &analysis), refused);
    }

    #[test]
    fn traces_are_compared_per_iteration_and_say_what_they_are_not() {
        let by_count = aligned(Alignment::Workload);
        let (one, mut two) = (report("sync", "1.5"), report("graph", "1.5"));
        two.source.machine.insert("driver".to_owned(), "580.1".to_owned());
        let traces = [("a/sync.parquet", &one), ("b/graph.parquet", &two)].map(|(path, report)| ComparedTrace {
            path,
            aligned: &by_count,
            report,
        });
        let compare = Compare::of_traces(&traces).unwrap();
        assert_eq!((compare.answer_checked, compare.answers_agree), (false, None));
        assert_eq!(compare.workload.as_deref(), Some("scalar-readback"));
        assert_eq!(compare.warnings, ["The fact driver differs: 570.86.15 in sync, 580.1 in graph."]);
        assert!(!compare.machine.contains_key("driver") && compare.machine.contains_key("GPU"));
        let sync = &compare.variants[0];
        assert_eq!((sync.variant.as_str(), sync.path.as_deref()), ("sync", Some("a/sync.parquet")));
        assert_eq!(sync.unprofiled, None);
        assert_eq!(sync.profiled.unwrap().median_ns, Ns(1_000));
        assert_eq!(sync.profiled.unwrap().interval, None);
        let recorded = sync.recorded.as_ref().unwrap();
        assert_eq!((recorded.busy_ns, recorded.bubble_ns), (Ns(600), Ns(301)));
    }

    #[test]
    fn answers_that_differ_are_told_although_they_are_not_checked() {
        let by_count = aligned(Alignment::Workload);
        let (one, two) = (report("sync", "1.5"), report("sync", "2.5"));
        let traces = [("a/x.parquet", &one), ("b/x.parquet", &two)].map(|(path, report)| ComparedTrace {
            path,
            aligned: &by_count,
            report,
        });
        let compare = Compare::of_traces(&traces).unwrap();
        assert!(compare.warnings[0].starts_with("The answers that the recordings hold are not the same"));
        let names: Vec<&str> = compare.variants.iter().map(|variant| variant.variant.as_str()).collect();
        assert_eq!(names, ["1: a/x.parquet", "2: b/x.parquet"]);
    }

    #[test]
    fn other_traces_are_named_by_their_files_without_endings() {
        let aligned = aligned(Alignment::LaunchSequence);
        let report = samples::clean();
        let traces = ["a/before.bubbles.parquet", "b/after.json.gz", "b/.json", "odd"].map(|path| ComparedTrace {
            path,
            aligned: &aligned,
            report: &report,
        });
        assert_eq!(names(&traces), ["before", "after", ".json", "odd"]);
        assert_eq!(names(&[traces[0], traces[0]]), ["1: a/before.bubbles.parquet", "2: a/before.bubbles.parquet"]);
    }

    #[test]
    fn iterations_told_apart_in_different_ways_are_refused() {
        let (one, two) = (aligned(Alignment::Workload), aligned(Alignment::LaunchSequence));
        let report = samples::clean();
        let traces = [("a", &one), ("b", &two)].map(|(path, aligned)| ComparedTrace { path, aligned, report: &report });
        let error = Compare::of_traces(&traces).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the iterations of b are told apart by the launch sequence that repeats, those of the first trace by the \
             workload's own count"
        );
    }
}
