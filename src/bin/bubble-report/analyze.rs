//! `analyze`: one trace, one report; several, a row for each.

use anyhow::{anyhow, bail};
use bubblescope::analysis::replay::{CallSet, Change};
use bubblescope::analysis::windows::{self, WindowError};
use bubblescope::analysis::{self, Analysis};
use bubblescope::report::text::{counted, moment};
use bubblescope::report::{self, Report};
use bubblescope::trace::{ApiKind, Interval, Trace, base_name};

use crate::args::{AnalyzeArgs, WindowArgs};
use crate::exit::{Failure, Outcome};
use crate::progress::{self, open_for};
use crate::{output, ranks};

/// Analyses what is named and prints the report.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Outcome {
    let trace = match args.traces.as_slice() {
        [one] if !one.is_dir() => one,
        _ => return ranks::ranks(args),
    };
    let path = trace.display().to_string();
    let trace = open_for(trace, &args.window).map_err(anyhow::Error::from)?;
    let window = chosen(&trace, &path, &args.window)?;
    let report = progress::during("analysing", || report_with(&trace, &path, window, args.top, &args.changes))?;
    output::report(&report, args.format.format)?;
    Ok(())
}

/// Refuses a change to calls of which there is none: nothing would come of it, and a slip would read as an answer.
fn check_calls(trace: &Trace, changes: &[Change]) -> anyhow::Result<()> {
    let known = |api: &str| {
        let here = trace.calls.name.iter().map(|&name| trace.names.get(name));
        let mut names = here.chain(trace.calls_elsewhere().map(|(_, name, _)| name));
        names.any(|name| base_name(name) == api)
    };
    for change in changes {
        let (Change::Remove(CallSet::Apis(apis))
        | Change::Async(CallSet::Apis(apis))
        | Change::Usual(CallSet::Apis(apis))) = change
        else {
            continue;
        };
        if !apis.iter().any(|api| known(api)) {
            bail!("--what-if {change}: there is no call of {} in the recording", apis.join(" or "));
        }
    }
    Ok(())
}

/// The part of a trace that the command line asks for.
pub(crate) fn chosen(trace: &Trace, path: &str, args: &WindowArgs) -> anyhow::Result<Window> {
    chosen_in(trace, args).map_err(|error| anyhow!("{path}: {error}{}", lost(trace)))
}

fn chosen_in(trace: &Trace, args: &WindowArgs) -> Result<Window, WindowError> {
    Ok(if let Some(name) = &args.nvtx {
        Window::Part(windows::of_range(trace, name)?)
    } else if let Some(index) = args.iteration {
        let whole = analysis_of(trace, Window::Measured);
        Window::Part(windows::of_iteration(whole.iterations.as_ref(), index)?)
    } else if let Some((from, to)) = args.part() {
        Window::Part(windows::between(trace, from, to)?)
    } else if args.whole {
        Window::Whole
    } else {
        Window::Measured
    })
}

/// Which part of a trace to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// The measured part of a bundled workload, the whole trace of anything else.
    Measured,
    /// Everything.
    Whole,
    /// This part.
    Part(Interval),
}

impl Window {
    /// Its bounds; `None` for everything.
    fn part(self, trace: &Trace) -> Option<Interval> {
        match self {
            Self::Measured => trace.meta.workload.as_ref().and_then(|run| run.measured),
            Self::Whole => None,
            Self::Part(part) => Some(part),
        }
    }
}

/// Analyses a part of a trace.
pub(crate) fn analysis_of(trace: &Trace, window: Window) -> Analysis {
    analysis::analyze(trace, &analysis::Options { window: window.part(trace), ..Default::default() })
}

/// The report on a part of a trace.
///
/// # Errors
/// When there is no device activity to report on.
pub(crate) fn report_on(trace: &Trace, path: &str, window: Window, top: usize) -> Result<Report, Failure> {
    report_with(trace, path, window, top, &[])
}

/// Refuses a recording without device activity, and says why it has none.
pub(crate) fn refuse_nothing(trace: &Trace, path: &str) -> Result<(), Failure> {
    if !trace.ops.is_empty() || trace.rest.as_ref().is_some_and(|rest| !rest.work.is_empty()) {
        return Ok(());
    }
    let reasons = warnings(trace);
    if trace.meta.losses.is_damaged() {
        return Err(Failure::Unusable(anyhow!(
            "{path} was cut or damaged, and no GPU activity stands before that{reasons}"
        )));
    }
    let mut elsewhere = trace.calls_elsewhere();
    let launches = match trace.calls.kind.iter().filter(|kind| kind.submits()).count() {
        _ if elsewhere.any(|(_, name, _)| ApiKind::of(name).submits()) => Some("launches".to_owned()),
        0 => None,
        here => Some(counted(here as u64, "launch", "launches")),
    };
    let what = launches.map_or_else(
        || "has no GPU activity".to_owned(),
        |launches| format!("has {launches} and no record of device work: GPU activity was not captured"),
    );
    Err(Failure::Nothing(anyhow!("{path} {what}{reasons}")))
}

/// What is to be known of a recording, to follow an error.
fn warnings(trace: &Trace) -> String {
    trace.meta.warnings.iter().map(|warning| format!("; {warning}")).collect()
}

/// The same where what is asked for may have been lost.
fn lost(trace: &Trace) -> String {
    if trace.meta.losses.is_damaged() { warnings(trace) } else { String::new() }
}

/// In which part of a trace no work is, and where there is some.
fn where_none(trace: &Trace, window: Window) -> String {
    let Window::Part(part) = window else {
        return "in its measured part; --whole looks at all of it".to_owned();
    };
    let here = || {
        let first = trace.ops.start.iter().min().copied().unwrap_or_default();
        Interval::new(first, trace.ops.end.iter().max().copied().unwrap_or_default())
    };
    let Interval { start: first, end: last } = trace.rest.as_ref().map_or_else(here, |rest| rest.work);
    let [from, to, first, last] = [part.start, part.end, first, last].map(moment);
    format!("from {from} to {to}; its work lies between {first} and {last}{}", lost(trace))
}

/// The same with what `changes` would gain besides the findings.
pub(crate) fn report_with(
    trace: &Trace,
    path: &str,
    window: Window,
    top: usize,
    changes: &[Change],
) -> Result<Report, Failure> {
    refuse_nothing(trace, path)?;
    check_calls(trace, changes)?;
    let options =
        analysis::Options { window: window.part(trace), what_if: changes.to_vec(), ..analysis::Options::default() };
    let full = analysis::full(trace, &options);
    if full.analysis.devices.is_empty() {
        return Err(Failure::Nothing(anyhow!("{path} has no GPU activity {}", where_none(trace, window))));
    }
    Ok(Report::full(trace, &full, &report::Options { path: path.to_owned(), top }))
}
