//! `compare`: sync against async against graph, live or from traces.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use bubblescope::capture::campaign::{self, CAMPAIGN_FILE, Campaign};
use bubblescope::leftover::Scratch;
use bubblescope::report::{Aligned, Alignment, Compare, ComparedTrace, Origin, Recorded, Repetition, Setting, Skipped};
use bubblescope::trace::{Ns, Trace};

use crate::analyze::{Window, analysis_of, refuse_nothing, report_on};
use crate::args::{CompareArgs, WorkloadArgs};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::progress::open;
use crate::run::{live, spec, workload};

/// Repetitions of each variant; from six on an interval around the median is one of 95 %.
const REPETITIONS: u32 = 7;

/// Compares what the command line names.
pub(crate) fn compare(args: &CompareArgs) -> Outcome {
    let compare = match args.what.as_slice() {
        [folder] if campaign::is_campaign(Path::new(folder)) => {
            refuse_live_options(args)?;
            kept(Path::new(folder), &args.variants)?
        }
        [one] if is_workload(one) => measured(args, &one.to_string_lossy())?,
        [one] if !Path::new(one).exists() => {
            workload(&one.to_string_lossy())?;
            return Ok(());
        }
        [_] => return Err(Failure::Unusable(anyhow!("a comparison takes one workload, or two traces and more"))),
        traces => {
            refuse_live_options(args)?;
            if !args.variants.is_empty() {
                return Err(Failure::Unusable(anyhow!(
                    "--variants chooses among a workload's variants; name the traces instead"
                )));
            }
            recorded(traces)?
        }
    };
    output::comparison(&compare, args.format.format)?;
    match compare.answers_differ() {
        Some(differ) => Err(Failure::Gate(differ.into())),
        None => Ok(()),
    }
}

/// What only says how to run something has no place where nothing is run.
fn refuse_live_options(args: &CompareArgs) -> anyhow::Result<()> {
    let WorkloadArgs { options, graphs, cupti } = &args.workload_args;
    let given = [
        ("--repetitions", args.repetitions.is_some()),
        ("--output", args.output.is_some()),
        ("--set", !options.is_empty()),
        ("--graphs", graphs.is_some()),
        ("--cupti", cupti.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => bail!("{option} says how to run a workload; recordings are compared as they are"),
        None => Ok(()),
    }
}

fn is_workload(name: &OsString) -> bool {
    workloads::catalogue().iter().any(|info| info.name == name.as_os_str())
}

/// Where a comparison's recordings go.
enum Folder<'a> {
    /// Kept for the user, who named it.
    Kept(&'a Path),
    /// Removed with all that is in it.
    Temporary(Scratch),
}

impl<'a> Folder<'a> {
    fn new(output: Option<&'a Path>) -> anyhow::Result<Self> {
        let Some(output) = output else {
            let scratch = Scratch::new().context("cannot make a temporary folder for the recordings")?;
            return Ok(Self::Temporary(scratch));
        };
        std::fs::create_dir_all(output).with_context(|| format!("cannot make the folder {}", output.display()))?;
        Ok(Self::Kept(output))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(scratch) => scratch.path(),
        }
    }
}

/// Runs every variant on this machine.
fn measured(args: &CompareArgs, name: &str) -> Result<Compare, Failure> {
    let info = workload(name)?;
    let chosen: Vec<&str> = if args.variants.is_empty() {
        info.variants.iter().filter(|variant| !variant.reference).map(|variant| variant.name).collect()
    } else {
        args.variants.iter().map(String::as_str).collect()
    };
    if let Some(twice) = chosen.iter().enumerate().find(|(index, name)| chosen[..*index].contains(name)) {
        return Err(Failure::Unusable(anyhow!("variant {} is named twice", twice.1)));
    }
    let specs =
        chosen.iter().map(|variant| spec(info, variant, &args.workload_args)).collect::<anyhow::Result<Vec<_>>>()?;
    let folder = Folder::new(args.output.as_deref())?;
    let folder = folder.path();
    let result = live(specs, args.repetitions.unwrap_or(REPETITIONS), folder, &args.workload_args);
    if result.is_err() {
        // Only when it is empty, as it is when the first repetition failed.
        let _ = std::fs::remove_dir(folder);
    }
    let campaign = result?;
    if campaign.repetitions.is_empty() {
        let reasons: Vec<&str> = campaign.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
        return Err(Failure::NoGpu(anyhow!("no variant can run here: {}", reasons.join("; "))));
    }
    campaign.save(folder).with_context(|| format!("cannot write {}", folder.join(CAMPAIGN_FILE).display()))?;
    of_campaign(&campaign, |spool| open(&folder.join(spool)).map_err(anyhow::Error::from))
}

/// A comparison that was measured before and kept.
fn kept(folder: &Path, variants: &[String]) -> Result<Compare, Failure> {
    let mut campaign =
        Campaign::load(folder).with_context(|| format!("cannot use {}", folder.join(CAMPAIGN_FILE).display()))?;
    if let Some(unknown) = variants.iter().find(|name| !campaign.variants.contains(name)) {
        return Err(Failure::Unusable(anyhow!(
            "there is no variant {unknown}; there are {}",
            campaign.variants.join(", ")
        )));
    }
    if !variants.is_empty() {
        campaign.keep_variants(&variants.iter().map(String::as_str).collect::<Vec<_>>());
    }
    of_campaign(&campaign, |spool| open(&folder.join(spool)).map_err(anyhow::Error::from))
}

/// The comparison of a campaign whose spools `open` opens.
pub(crate) fn of_campaign(
    campaign: &Campaign,
    open: impl Fn(&str) -> anyhow::Result<Trace>,
) -> Result<Compare, Failure> {
    let mut setting = Setting {
        from: Origin::Live,
        aligned_by: Alignment::Workload,
        workload: Some(campaign.workload.clone()),
        skipped: campaign
            .skipped
            .iter()
            .map(|skipped| Skipped { variant: skipped.variant.clone(), reason: skipped.reason.clone() })
            .collect(),
        ..Setting::default()
    };
    let mut repetitions = Vec::with_capacity(campaign.repetitions.len());
    for repetition in &campaign.repetitions {
        let recorded = match &repetition.spool {
            Some(spool) => {
                let trace = open(spool)?;
                setting.machine.extend(trace.meta.machine.clone());
                if let Some(run) = &trace.meta.workload {
                    setting.options.extend(run.options.clone());
                }
                Some(Recorded::of(&report_on(&trace, spool, Window::Measured, 0)?))
            }
            None => None,
        };
        repetitions.push(Repetition {
            variant: repetition.variant.clone(),
            wall: Ns(i64::try_from(repetition.wall_ns).unwrap_or(i64::MAX)),
            iterations: repetition.iterations,
            answer: Some(repetition.answer.clone()),
            recorded,
        });
    }
    repetitions.sort_by_key(|repetition| campaign.variants.iter().position(|name| *name == repetition.variant));
    Ok(Compare::new(setting, &repetitions).map_err(anyhow::Error::from)?)
}

/// Compares traces that were recorded before, each in the part that is the same work.
fn recorded(paths: &[OsString]) -> Result<Compare, Failure> {
    let found = paths
        .iter()
        .map(|path| {
            let path = PathBuf::from(path);
            let shown = path.display().to_string();
            let trace = open(&path).map_err(anyhow::Error::from)?;
            let aligned =
                Aligned::find(&shown, &trace, &analysis_of(&trace, Window::Measured)).map_err(anyhow::Error::from)?;
            let nothing = refuse_nothing(&trace, &shown);
            let report = aligned.report(&shown, &trace);
            Ok(((shown, aligned, report), nothing))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let (found, nothing): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    if nothing.iter().all(Result::is_err) {
        nothing.into_iter().collect::<Result<(), Failure>>()?;
    }
    let traces: Vec<ComparedTrace<'_>> =
        found.iter().map(|(path, aligned, report)| ComparedTrace { path, aligned, report }).collect();
    Ok(Compare::of_traces(&traces).map_err(anyhow::Error::from)?)
}
