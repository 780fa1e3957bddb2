//! Many repetitions of several variants, interleaved, so that a machine whose speed drifts is fair to all of them.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cupti::Config;
use serde::{Deserialize, Serialize};
use workloads::RunSpec;

use super::child::{self, Recording, Repeat, RepetitionError};
use crate::atomic::write_atomically;
use crate::trace::Ns;

/// What to run and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program whose `child` command runs one repetition.
    pub program: PathBuf,
    /// The variants in the order in which they are to be compared.
    pub specs: Vec<RunSpec>,
    /// Repetitions of each variant, both unprofiled and profiled.
    pub repetitions: u32,
    /// Folder for the spools.
    pub folder: PathBuf,
    /// What to record of the profiled repetitions, and how.
    pub config: Config,
}

/// One repetition that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repetition {
    /// The variant.
    pub variant: String,
    /// Name of the spool in the campaign's folder; an unprofiled repetition has none.
    pub spool: Option<String>,
    /// Wall time of the measured part, in nanoseconds.
    pub wall_ns: u64,
    /// Iterations in the measured part.
    pub iterations: u64,
    /// The answer, as text.
    pub answer: String,
}

impl Repetition {
    /// Whether CUPTI recorded it.
    pub fn is_profiled(&self) -> bool {
        self.spool.is_some()
    }
}

/// A variant that did not run here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The variant.
    pub variant: String,
    /// Why.
    pub reason: String,
}

/// Everything a campaign gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// The workload.
    pub workload: String,
    /// The device it ran on.
    pub device: String,
    /// The variants that ran, in the order asked for.
    pub variants: Vec<String>,
    /// Every repetition, in the order in which they ran.
    pub repetitions: Vec<Repetition>,
    /// The variants that this GPU, driver or CUDA cannot run.
    pub skipped: Vec<Skipped>,
}

impl Campaign {
    /// The repetitions of a variant, with or without recording, from the shortest wall per iteration to the longest.
    fn by_wall(&self, variant: &str, profiled: bool) -> Vec<&Repetition> {
        let mut found: Vec<&Repetition> = self
            .repetitions
            .iter()
            .filter(|repetition| repetition.variant == variant && repetition.is_profiled() == profiled)
            .collect();
        found.sort_by_key(|repetition| repetition.wall_ns / repetition.iterations.max(1));
        found
    }

    /// Forgets every variant but these.
    pub fn keep_variants(&mut self, variants: &[&str]) {
        let kept = |name: &String| variants.contains(&name.as_str());
        self.variants.retain(kept);
        self.repetitions.retain(|repetition| kept(&repetition.variant));
        self.skipped.retain(|skipped| kept(&skipped.variant));
    }

    /// The spool of the recorded repetition with the median wall.
    pub fn typical_spool(&self, variant: &str) -> Option<&str> {
        let found = self.by_wall(variant, true);
        found.get(found.len() / 2)?.spool.as_deref()
    }

    /// The median wall per iteration of a variant, with or without recording.
    pub fn median_wall(&self, variant: &str, profiled: bool) -> Option<Ns> {
        let found = self.by_wall(variant, profiled);
        let median = found.get(found.len() / 2)?;
        i64::try_from(median.wall_ns / median.iterations.max(1)).ok().map(Ns)
    }

    /// Writes the campaign beside its spools.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write_atomically(&folder.join(CAMPAIGN_FILE), |out| out.write_all(&text))
    }

    /// Reads the campaign of a folder.
    ///
    /// # Errors
    /// When the file cannot be read or is no campaign.
    pub fn load(folder: &Path) -> io::Result<Self> {
        Self::parse(&fs::read(folder.join(CAMPAIGN_FILE))?)
    }

    /// Reads a campaign from the text of its file.
    ///
    /// # Errors
    /// When it is no campaign, or names a spool outside its folder.
    pub fn parse(text: &[u8]) -> io::Result<Self> {
        let campaign: Self = serde_json::from_slice(text)?;
        let inside = |name: &str| !name.is_empty() && !name.contains(['/', '\\']) && name != "..";
        match campaign
            .repetitions
            .iter()
            .filter_map(|repetition| repetition.spool.as_deref())
            .find(|name| !inside(name))
        {
            Some(name) => Err(io::Error::other(format!("`{name}` is not a file of the campaign's own folder"))),
            None => Ok(campaign),
        }
    }
}

/// Runs the plan: in each round every variant once unprofiled and once profiled. `progress` is told before each.
///
/// # Errors
/// When a repetition fails for another reason than that the machine cannot run its variant.
pub fn run(plan: &Plan, mut progress: impl FnMut(&RunSpec, bool, u32)) -> Result<Campaign, RepetitionError> {
    let mut campaign = Campaign {
        workload: plan.specs.first().map(|spec| spec.workload().to_owned()).unwrap_or_default(),
        ..Campaign::default()
    };
    for round in 0..plan.repetitions {
        for spec in &plan.specs {
            let variant = spec.variant();
            if campaign.skipped.iter().any(|skipped| skipped.variant == variant) {
                continue;
            }
            // Which of the two goes first alternates, so that neither always finds the machine warmer.
            for profiled in if round % 2 == 0 { [false, true] } else { [true, false] } {
                progress(spec, profiled, round);
                match repeat(plan, spec, profiled, round) {
                    Ok((repetition, device)) => {
                        campaign.device = device;
                        campaign.repetitions.push(repetition);
                    }
                    Err(RepetitionError::Unsupported(reason)) => {
                        campaign.skipped.push(Skipped { variant: variant.to_owned(), reason });
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    campaign.variants = plan
        .specs
        .iter()
        .map(|spec| spec.variant().to_owned())
        .filter(|variant| campaign.repetitions.iter().any(|repetition| &repetition.variant == variant))
        .collect();
    Ok(campaign)
}

/// Runs one repetition.
fn repeat(plan: &Plan, spec: &RunSpec, profiled: bool, round: u32) -> Result<(Repetition, String), RepetitionError> {
    let spool = profiled.then(|| spool_name(spec, round));
    let recording = spool.as_ref().map(|name| Recording { spool: plan.folder.join(name), config: plan.config.clone() });
    let outcome = child::repeat(&plan.program, Repeat { spec: spec.clone(), recording })?;
    let repetition = Repetition {
        variant: spec.variant().to_owned(),
        spool,
        wall_ns: outcome.wall_ns,
        iterations: outcome.iterations,
        answer: outcome.answer,
    };
    Ok((repetition, outcome.device_name))
}

/// The name of a repetition's spool: variant and round, rounds counted from 1.
fn spool_name(spec: &RunSpec, round: u32) -> String {
    format!("{}-{:02}.bubcap", spec.variant(), round + 1)
}

/// The name of the file that keeps a [`Campaign`] beside its spools.
pub const CAMPAIGN_FILE: &str = "campaign.json";

/// Whether a folder holds a kept campaign.
pub fn is_campaign(folder: &Path) -> bool {
    folder.join(CAMPAIGN_FILE).is_file()
}
