//! `run`: a bundled workload, recorded here and now.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use bubblescope::atomic::write_atomically;
use bubblescope::capture::campaign::{self, Campaign, Plan};
use bubblescope::capture::child::RepetitionError;
use bubblescope::leftover::Scratch;
use bubblescope::report::Inflation;
use bubblescope::trace::Trace;
use workloads::{RunSpec, WorkloadInfo};

use crate::analyze::{Window, report_on};
use crate::args::{RunArgs, WorkloadArgs};
use crate::exit::{Failure, Outcome};
use crate::output::Kind;
use crate::{output, progress};

/// Repetitions with and without recording, for the inflation that is stated.
const REPETITIONS: u32 = 3;

/// Records one variant and reports on it.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    let info = workload(&args.workload)?;
    let variant = args.variant.as_deref().unwrap_or(info.variants[0].name);
    let spec = spec(info, variant, &args.workload_args)?;
    if let Some(path) = &args.output {
        output::check_target(path)?;
    }
    let folder = Scratch::new().context("cannot make a temporary folder for the recording")?;
    let campaign = live(vec![spec], REPETITIONS, folder.path(), &args.workload_args)?;
    if let Some(skipped) = campaign.skipped.first() {
        return Err(Failure::NoGpu(anyhow!("{}", skipped.reason)));
    }
    let spool = campaign.typical_spool(variant).context("no repetition was recorded")?;
    let spool = folder.path().join(spool);
    let trace = progress::open(&spool).map_err(anyhow::Error::from)?;
    let shown = match &args.output {
        Some(path) => {
            keep(&spool, &trace, path)?;
            path.display().to_string()
        }
        None => format!("{} {variant}", info.name),
    };
    let mut report = report_on(&trace, &shown, Window::Measured, args.top)?;
    report.quality.inflation = inflation(&campaign, variant);
    output::report(&report, args.format.format)?;
    if let Some(path) = &args.output {
        output::remark(&format!("kept as {}", path.display()));
    }
    Ok(())
}

/// Keeps a recording in the form that the file's name asks for.
fn keep(spool: &Path, trace: &Trace, path: &Path) -> anyhow::Result<()> {
    match Kind::of(path)? {
        Kind::Spool => {
            let mut from = File::open(spool).with_context(|| format!("cannot read {}", spool.display()))?;
            write_atomically(path, |out| io::copy(&mut from, out))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        kind => output::write_trace(trace, path, kind)?,
    }
    Ok(())
}

/// What recording added to the wall time.
fn inflation(campaign: &Campaign, variant: &str) -> Option<Inflation> {
    Inflation::new(campaign.median_wall(variant, false)?, campaign.median_wall(variant, true)?)
}

/// The workload with this name.
pub(crate) fn workload(name: &str) -> anyhow::Result<&'static WorkloadInfo> {
    let known = || workloads::catalogue().iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
    workloads::catalogue()
        .iter()
        .find(|info| info.name == name)
        .with_context(|| format!("there is no workload `{name}`; there are {}", known()))
}

/// One variant with the options from the command line.
pub(crate) fn spec(info: &WorkloadInfo, variant: &str, args: &WorkloadArgs) -> anyhow::Result<RunSpec> {
    let mut options = BTreeMap::new();
    for (name, value) in &args.options {
        ensure!(options.insert(name.clone(), value.clone()).is_none(), "option {name} is set twice");
    }
    Ok(RunSpec::new(info.name, variant, &options)?)
}

/// Runs a campaign on this machine.
pub(crate) fn live(
    specs: Vec<RunSpec>,
    repetitions: u32,
    folder: &Path,
    args: &WorkloadArgs,
) -> Result<Campaign, Failure> {
    let program: PathBuf = std::env::current_exe().context("cannot find this program's own file")?;
    let bar = progress::bar(u64::from(repetitions) * specs.len() as u64 * 2);
    let plan = Plan {
        program,
        specs,
        repetitions,
        folder: folder.to_owned(),
        config: cupti::Config {
            graphs: args.graphs.map(Into::into).unwrap_or_default(),
            events: true,
            cupti: args.cupti.clone(),
            ..cupti::Config::default()
        },
    };
    let result = campaign::run(&plan, |spec, profiled, _| {
        bar.set_message(format!("{}{}", spec.variant(), if profiled { ", recorded" } else { "" }));
        bar.inc(1);
    });
    bar.finish_and_clear();
    result.map_err(|error| match error {
        RepetitionError::NoGpu(_) => Failure::NoGpu(error.into()),
        error => Failure::Unusable(error.into()),
    })
}
