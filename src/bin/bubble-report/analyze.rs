//! `analyze`: one trace, one report.

use anyhow::anyhow;
use bubblescope::analysis::{self, Analysis};
use bubblescope::open::open;
use bubblescope::report::{self, Report};
use bubblescope::trace::{Interval, Trace};

use crate::args::AnalyzeArgs;
use crate::exit::{Failure, Outcome};
use crate::output;

/// Analyses one trace and prints the report.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Outcome {
    let path = args.trace.display().to_string();
    let trace = open(&args.trace).map_err(anyhow::Error::from)?;
    let window = if args.whole { Window::Whole } else { Window::Measured };
    let report = report_on(&trace, &path, window, args.top)?;
    output::report(&report, args.format.format)?;
    Ok(())
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

/// Analyses a part of a trace.
pub(crate) fn analysis_of(trace: &Trace, window: Window) -> Analysis {
    let part = match window {
        Window::Measured => trace.meta.workload.as_ref().and_then(|run| run.measured),
        Window::Whole => None,
        Window::Part(part) => Some(part),
    };
    analysis::analyze(trace, &analysis::Options { window: part, ..Default::default() })
}

/// The report on a part of a trace.
///
/// # Errors
/// When there is no device activity to report on.
pub(crate) fn report_on(trace: &Trace, path: &str, window: Window, top: usize) -> Result<Report, Failure> {
    if trace.ops.is_empty() {
        let launches = trace.calls.kind.iter().filter(|kind| kind.submits()).count();
        return Err(Failure::Nothing(if launches > 0 {
            anyhow!("{path} has {launches} launches and no record of device work: GPU activity was not captured")
        } else {
            anyhow!("{path} has no GPU activity")
        }));
    }
    let analysis = analysis_of(trace, window);
    if analysis.devices.is_empty() {
        return Err(Failure::Nothing(anyhow!(
            "{path} has no GPU activity in its measured part; --whole looks at all of it"
        )));
    }
    Ok(Report::new(trace, &analysis, &report::Options { path: path.to_owned(), top }))
}
