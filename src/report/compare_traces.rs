//! The comparison of trace files: which part of each is the same work, and what that part costs.

use std::collections::BTreeMap;
use std::path::Path;

use super::compare::{Alignment, Compare, CompareError, Origin, Recorded, Repetition, Setting, Variant};
use super::contract::Report;
use super::text::{counted, time};
use super::{convert, total};
use crate::analysis::{self, Analysis, IterationSource, analyze};
use crate::open::stem;
use crate::trace::{Interval, Ns, Trace};

/// The part of a trace that is the same work as a part of other traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// That part: whole iterations after warm-up.
    pub window: Interval,
    /// How many iterations it holds.
    pub iterations: u64,
    /// What told them apart.
    pub by: Alignment,
    /// Why nothing can be said per iteration; `None` when it can.
    pub unusable: Option<String>,
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
            let unusable = cut_before_the_end(trace, window, run.iterations);
            return Ok(Self { window, iterations: run.iterations, by: Alignment::Workload, unusable });
        }
        let not_aligned = || {
            let unusable = match trace.ops.is_empty() {
                true => "no GPU work was recorded",
                false if trace.meta.losses.is_damaged() => "it was cut before anything repeated",
                false => return Err(CompareError::NotAligned { path: path.to_owned() }),
            };
            let window = Interval::new(Ns::ZERO, trace.end);
            Ok(Self { window, iterations: 0, by: Alignment::Workload, unusable: Some(unusable.to_owned()) })
        };
        let Some(found) = analysis.iterations.as_ref() else { return not_aligned() };
        let warmup = usize::try_from(found.warmup).unwrap_or(usize::MAX);
        let measured = found.intervals.get(warmup..).unwrap_or_default();
        let (Some(first), Some(last)) = (measured.first(), measured.last()) else { return not_aligned() };
        Ok(Self {
            window: Interval::new(first.start, last.end),
            iterations: measured.len() as u64,
            by: match &found.source {
                IterationSource::LaunchSequence { .. } => Alignment::LaunchSequence,
                IterationSource::Range(name) => Alignment::Range { name: name.clone() },
            },
            unusable: None,
        })
    }

    /// The report on that part of the trace, for [`Compare::of_traces`].
    pub fn report(&self, path: &str, trace: &Trace) -> Report {
        let analysis = analyze(trace, &analysis::Options { window: Some(self.window), ..Default::default() });
        Report::new(trace, &analysis, &convert::Options { path: path.to_owned(), top: 0 })
    }
}

/// Whether a trace was cut more than an iteration before the end of those that it is said to hold.
fn cut_before_the_end(trace: &Trace, window: Interval, iterations: u64) -> Option<String> {
    if !trace.meta.losses.is_damaged() {
        return None;
    }
    let last = |ends: &[Ns]| ends.iter().max().copied().unwrap_or(Ns::ZERO);
    // What the host called and what a device did come in different parts of a recording.
    let reached = last(&trace.ops.end).min(last(&trace.calls.end)).max(window.start);
    let missing = window.end - reached;
    let iteration = window.len().0 / i64::try_from(iterations).unwrap_or(i64::MAX).max(1);
    (missing.0 > iteration).then(|| format!("it was cut {} before the end of its iterations", time(missing)))
}

/// Variants do the same work on the devices when the time that it takes per iteration differs by no more than a third of
/// the longer one: by that of the devices, or by that of all streams added up. Work that overlaps makes devices busy for
/// less (42 and 23 µs in the recordings of one workload) and streams for no less; work that others slow down, the other
/// way round. Without overlap, variants of one workload were off by up to 17 % (a graph against launches, 6.6 and 7.9 µs),
/// repeated recordings by less than 2 %.
const SAME_WORK: (i64, i64) = (2, 3);

/// Whether so much busy time may be the same work.
fn is_same_work(one: Ns, other: Ns) -> bool {
    let (less, more) = (i128::from(one.min(other).0), i128::from(one.max(other).0));
    less * i128::from(SAME_WORK.1) >= more * i128::from(SAME_WORK.0)
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

impl ComparedTrace<'_> {
    /// How long the streams worked per iteration, all added up: a measure of the work, not of the device's time.
    fn in_streams(&self) -> Ns {
        let streams = self.report.devices.iter().flat_map(|device| &device.streams);
        let iterations = i64::try_from(self.aligned.iterations).unwrap_or(i64::MAX).max(1);
        Ns(total(streams.map(|stream| stream.busy_ns)).0 / iterations)
    }

    /// The bundled workload that it is of, if it is.
    fn workload(&self) -> Option<&str> {
        self.report.source.workload.as_ref().map(|run| run.workload.as_str())
    }

    /// Why it has no figures.
    fn unusable(&self) -> Option<String> {
        let nothing = || {
            let busy = total(self.report.devices.iter().map(|device| device.busy_ns));
            let why = match self.report.quality.gpu_not_captured {
                true => "its GPU activity was not captured",
                false if busy == Ns::ZERO => "no GPU work was recorded in its iterations",
                false => return None,
            };
            Some(why.to_owned())
        };
        self.aligned.unusable.clone().or_else(nothing)
    }
}

impl Compare {
    /// Compares traces by iteration; the first is what the others are compared with. Recording takes part in every
    /// wall time, and nothing says whether the answers are the same.
    ///
    /// # Errors
    /// When there is no trace, none has figures, or their iterations are told apart in different ways.
    pub fn of_traces(traces: &[ComparedTrace<'_>]) -> Result<Self, CompareError> {
        let first = traces.first().ok_or(CompareError::NoRepetition)?;
        let unusable: Vec<Option<String>> = traces.iter().map(ComparedTrace::unusable).collect();
        let usable = || traces.iter().zip(&unusable).filter(|(_, why)| why.is_none()).map(|(trace, _)| trace);
        let Some(first) = usable().next() else {
            let reason = unusable.into_iter().flatten().next().unwrap_or_default();
            return Err(CompareError::Unusable { path: first.path.to_owned(), reason });
        };
        if let Some(other) = usable().find(|trace| trace.aligned.by != first.aligned.by) {
            return Err(CompareError::AlignedDifferently {
                path: other.path.to_owned(),
                other: other.aligned.by.to_string(),
                first: first.aligned.by.to_string(),
            });
        }
        let names = names(traces);
        let mut warnings = Vec::new();
        let workloads: Vec<Option<&str>> = traces.iter().map(ComparedTrace::workload).collect();
        let same_workload = workloads.iter().all(|workload| *workload == workloads[0]);
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
        for ((variant, trace), unusable) in compare.variants.iter_mut().zip(traces).zip(unusable) {
            variant.path = Some(trace.path.to_owned());
            if trace.report.quality.cut_bytes > 0 {
                let bytes = counted(trace.report.quality.cut_bytes, "byte", "bytes");
                variant.marks.push(format!("it was cut: {bytes} after its last whole record"));
            }
            if unusable.is_some() {
                variant.iterations = 0;
                (variant.unusable, variant.profiled, variant.speedup, variant.recorded) = (unusable, None, None, None);
            }
        }
        compare.mark_other_work(traces);
        Ok(compare)
    }
}

impl Compare {
    /// Marks the variants that are not of the same work as the first. They have no speed-up, nor has any where the first one
    /// has no figures.
    fn mark_other_work(&mut self, traces: &[ComparedTrace<'_>]) {
        let Some((first, others)) = self.variants.split_first_mut() else { return };
        let Some((first_trace, traces)) = traces.split_first() else { return };
        for (other, trace) in others.iter_mut().zip(traces) {
            let apart = other_work((first, first_trace), (other, trace));
            if apart.is_some() || first.unusable.is_some() {
                other.speedup = None;
            }
            other.marks.extend(apart.map(|apart| format!("not the same work: {apart}")));
        }
    }
}

/// What tells that a variant is not of the same work as the first, as a clause: its workload, its answer or its time on the
/// devices. Where one of the two has no figures there is nothing to tell.
fn other_work(
    (first, first_trace): (&Variant, &ComparedTrace<'_>),
    (other, trace): (&Variant, &ComparedTrace<'_>),
) -> Option<String> {
    let busy = |variant: &Variant| variant.recorded.as_ref().map(|recorded| recorded.busy_ns);
    let (first_busy, busy) = busy(first).zip(busy(other))?;
    let name = &first.variant;
    let [first_workload, workload] = [first_trace, trace].map(ComparedTrace::workload);
    if workload != first_workload {
        let [first_workload, workload] = [first_workload, workload].map(|name| name.unwrap_or("no bundled workload"));
        return Some(format!("it is {workload}, and {name} is {first_workload}"));
    }
    if let ([first_answer], [answer]) = (first.answers.as_slice(), other.answers.as_slice())
        && answer != first_answer
    {
        return Some(format!("its answer is {answer}, and that of {name} is {first_answer}"));
    }
    let differs = !is_same_work(busy, first_busy) && !is_same_work(trace.in_streams(), first_trace.in_streams());
    differs.then(|| format!("the GPU is busy for {} per iteration, for {} in {name}", time(busy), time(first_busy)))
}

fn repetition(trace: &ComparedTrace<'_>, name: &str) -> Repetition {
    let answer = trace.report.source.workload.as_ref().map(|run| run.answer.clone());
    Repetition {
        variant: name.to_owned(),
        wall: trace.aligned.window.len(),
        iterations: trace.aligned.iterations.max(1),
        answer: answer.filter(|answer| !answer.is_empty()),
        recorded: Some(Recorded::of(trace.report)),
    }
}

/// A different name for each trace: its workload's variant, its file's name, or its path.
fn names(traces: &[ComparedTrace<'_>]) -> Vec<String> {
    let variant = |trace: &ComparedTrace<'_>| trace.report.source.workload.as_ref().map(|run| run.variant.clone());
    let file = |trace: &ComparedTrace<'_>| Some(stem(&Path::new(trace.path).file_name()?.to_string_lossy()).to_owned());
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
        Aligned { window: Interval::new(Ns(100), Ns(10_100)), iterations: 10, by, unusable: None }
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
        let window = Interval::new(Ns(5), Ns(25));
        let whole = Aligned { window, iterations: 4, by: Alignment::Workload, unusable: None };
        assert_eq!(Aligned::find("t", &trace, &Analysis::default()), Ok(whole.clone()));
        // Four iterations of 5 ns: what lacks the last one is used, what lacks more is not.
        trace.meta.losses.damaged_at = Some(1);
        for (op, call, missing) in
            [(20, 30, None), (19, 30, Some("6 ns")), (30, 5, Some("20 ns")), (1, 2, Some("20 ns"))]
        {
            (trace.ops.end, trace.calls.end) = (vec![Ns(op)], vec![Ns(call)]);
            let unusable = missing.map(|missing| format!("it was cut {missing} before the end of its iterations"));
            let cut = Aligned { unusable, ..whole.clone() };
            assert_eq!(Aligned::find("t", &trace, &Analysis::default()), Ok(cut), "{op} {call}");
        }
    }

    #[test]
    fn other_traces_are_aligned_by_what_repeats_after_warm_up_or_refused() {
        let mut analysis = Analysis::default();
        let refused = Err(CompareError::NotAligned { path: "t".to_owned() });
        let mut worked = Trace::default();
        worked.ops.start.push(Ns(1));
        assert_eq!(Aligned::find("t", &worked, &analysis), refused);
        let unusable = |trace: &Trace, analysis: &Analysis| Aligned::find("t", trace, analysis).unwrap().unusable;
        assert_eq!(unusable(&Trace::default(), &analysis).as_deref(), Some("no GPU work was recorded"));

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
        let expected = Aligned { window: Interval::new(Ns(20), Ns(50)), iterations: 3, by, unusable: None };
        assert_eq!(Aligned::find("t", &Trace::default(), &analysis), Ok(expected));

        if let Some(iterations) = &mut analysis.iterations {
            iterations.warmup = 5;
        }
        assert_eq!(Aligned::find("t", &worked, &analysis), refused);
        worked.meta.losses.damaged_at = Some(1);
        assert_eq!(unusable(&worked, &analysis).as_deref(), Some("it was cut before anything repeated"));
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
        assert_eq!((compare.answer_checked, compare.answers_agree), (true, Some(true)));
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

    /// Whatever tells that the work is another.
    #[test]
    fn what_is_not_the_same_work_has_no_speed_up_in_any_form() {
        let by_count = aligned(Alignment::Workload);
        let one = report("sync", "1.5");
        let mut workload = report("other", "1.5");
        workload.source.workload.as_mut().unwrap().workload = "timing".to_owned();
        let mut none = report("other", "1.5");
        none.source.workload = None;
        let mut busier = report("other", "1.5");
        (busier.devices[0].busy_ns, busier.devices[0].streams[0].busy_ns) = (Ns(60_000), Ns(60_000));
        let kinds = [
            (report("other", "1.5"), None),
            (report("other", ""), None),
            (report("other", "2.5"), Some("its answer is 2.5, and that of ")),
            (workload, Some("it is timing, and ")),
            (none, Some("it is no bundled workload, and ")),
            (busier, Some("the GPU is busy for 6.00 µs per iteration, for 600 ns in ")),
        ];
        for (other, apart) in &kinds {
            let like = report("like", "1.5");
            let traces = [("a/sync.bubcap", &one), ("b/other.bubcap", other), ("b/like.bubcap", &like)]
                .map(|(path, report)| ComparedTrace { path, aligned: &by_count, report });
            let compare = Compare::of_traces(&traces).unwrap();
            assert!(compare.variants[2].speedup.is_some() && compare.variants[2].marks.is_empty());
            let variant = &compare.variants[1];
            assert_eq!(variant.speedup.is_none(), apart.is_some(), "{apart:?}");
            let marks = apart.map(|apart| format!("not the same work: {apart}"));
            assert_eq!(variant.marks.len(), usize::from(apart.is_some()));
            assert!(
                variant.marks.iter().zip(&marks).all(|(mark, begin)| mark.starts_with(begin)),
                "{:?}",
                variant.marks
            );
            let mut text = Vec::new();
            crate::report::text::render_compare(&compare, &mut text, crate::report::text::Style::PLAIN).unwrap();
            let text = String::from_utf8(text).unwrap();
            let row = text.lines().find(|line| line.trim_start().starts_with("other")).unwrap();
            assert_eq!((row.contains("(!)"), row.contains('×')), (apart.is_some(), apart.is_none()), "{text}");
            let other_answer = apart.is_some_and(|apart| apart.contains("answer"));
            assert_eq!(compare.answers_differ().is_some(), other_answer);
            assert_eq!(compare.answers_agree == Some(false), other_answer);
            assert_eq!(text.contains("other cannot be compared"), apart.is_some() && !other_answer, "{text}");
            assert_eq!(text.contains("DO NOT COMPUTE THE SAME ANSWER"), other_answer, "{text}");
        }
    }

    #[test]
    fn one_true_thing_is_said_of_the_answers_of_traces() {
        let by_count = aligned(Alignment::Workload);
        let same = "The recordings hold the same answer: 1.5.";
        let unknown = "Whether the variants compute the same answer is not known";
        let differ = "THE VARIANTS DO NOT COMPUTE THE SAME ANSWER: one gives 1.5, two gives 2.5.";
        let mut all = [same, unknown, differ];
        for (answers, said, checked, agree) in [
            (["1.5", "1.5"], same, true, Some(true)),
            (["1.5", ""], unknown, false, None),
            (["", ""], unknown, false, None),
            (["1.5", "2.5"], differ, true, Some(false)),
        ] {
            let reports = [report("one", answers[0]), report("two", answers[1])];
            let traces = [0, 1].map(|at| ComparedTrace { path: "t", aligned: &by_count, report: &reports[at] });
            let compare = Compare::of_traces(&traces).unwrap();
            assert_eq!((compare.answer_checked, compare.answers_agree), (checked, agree), "{answers:?}");
            let mut text = Vec::new();
            crate::report::text::render_compare(&compare, &mut text, crate::report::text::Style::PLAIN).unwrap();
            let text = String::from_utf8(text).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
            all.sort_by_key(|words| *words != said);
            assert!(text.contains(all[0]) && !text.contains(all[1]) && !text.contains(all[2]), "{answers:?}: {text}");
            assert_eq!(
                text.matches("answer").count() + text.matches("ANSWER").count(),
                1 + usize::from(said == differ)
            );
        }
    }

    #[test]
    fn traces_of_one_name_are_told_apart_by_their_paths() {
        let by_count = aligned(Alignment::Workload);
        let (one, two) = (report("sync", "1.5"), report("sync", "1.5"));
        let traces = [("a/x.parquet", &one), ("b/x.parquet", &two)].map(|(path, report)| ComparedTrace {
            path,
            aligned: &by_count,
            report,
        });
        let compare = Compare::of_traces(&traces).unwrap();
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
    fn a_trace_without_figures_has_none_and_says_why() {
        let by_count = aligned(Alignment::Workload);
        let cut = Aligned { unusable: Some("it was cut".to_owned()), ..aligned(Alignment::LaunchSequence) };
        let (good, mut nothing) = (report("sync", "1.5"), report("graph", "1.5"));
        nothing.devices.clear();
        let no_work = "no GPU work was recorded in its iterations";
        let good = ComparedTrace { path: "a", aligned: &by_count, report: &good };
        let broken = [
            (ComparedTrace { path: "b", aligned: &by_count, report: &nothing }, no_work),
            (ComparedTrace { path: "b", aligned: &cut, report: &nothing }, "it was cut"),
        ];
        for (broken, why) in broken {
            for (at, traces) in [(1, [good, broken]), (0, [broken, good])] {
                let compare = Compare::of_traces(&traces).unwrap();
                let variant = &compare.variants[at];
                assert_eq!((variant.unusable.as_deref(), variant.iterations), (Some(why), 0));
                assert!(variant.profiled.is_none() && variant.speedup.is_none() && variant.recorded.is_none());
                let other = &compare.variants[1 - at];
                assert_eq!((&other.unusable, other.iterations, other.speedup.is_some()), (&None, 10, at == 1));
                assert!(other.profiled.is_some() && other.recorded.is_some());
            }
            let reason = why.to_owned();
            assert_eq!(Compare::of_traces(&[broken]), Err(CompareError::Unusable { path: "b".to_owned(), reason }));
        }
    }

    #[test]
    fn a_cut_trace_and_other_work_are_marked() {
        let by_count = aligned(Alignment::Workload);
        let (one, mut two) = (report("sync", "1.5"), report("graph", "1.5"));
        two.quality.cut_bytes = 7;
        let marks = |two: &Report| {
            let traces =
                [("a", &one), ("b", two)].map(|(path, report)| ComparedTrace { path, aligned: &by_count, report });
            let compare = Compare::of_traces(&traces).unwrap();
            assert!(compare.variants[0].marks.is_empty());
            compare.variants[1].marks.clone()
        };
        let cut = "it was cut: 7 bytes after its last whole record";
        assert_eq!(marks(&two), [cut]);
        for (busy, same) in [(4_000, true), (3_900, false), (9_000, true), (9_100, false)] {
            (two.devices[0].busy_ns, two.devices[0].streams[0].busy_ns) = (Ns(busy), Ns(6_000));
            // The same work that overlaps makes the device busy for less.
            assert_eq!(marks(&two).len(), 1, "{busy} in streams of 6,000");
            two.devices[0].streams[0].busy_ns = Ns(busy);
            assert_eq!(marks(&two).len(), if same { 1 } else { 2 }, "{busy} against 6,000");
        }
        let other = "not the same work: the GPU is busy for 910 ns per iteration, for 600 ns in sync";
        assert_eq!(marks(&two), [cut, other]);
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
