//! What this machine has: driver, GPUs, libcupti, what may be in the way, and whether recording works.

use std::path::{Path, PathBuf};

use cupti::Config;
use cupti::loader::{Survey, survey};
use serde::Serialize;

use super::child::{self, Probe, Recorded, Recording, RepetitionError};

/// What was found on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// CUDA version of the driver, such as `13.0`, or why there is none.
    pub driver: Result<String, String>,
    /// Version of the kernel module, such as `580.159.03`.
    pub kernel_module: Option<String>,
    /// The names of the GPUs, or why there are none.
    pub gpus: Result<Vec<String>, String>,
    /// Every libcupti found, the first to be tried first.
    pub libraries: Vec<Library>,
    /// What may be in the way.
    pub conflicts: Vec<String>,
    /// What recorded in a try, or why recording does not work.
    pub recording: Result<Recorded, String>,
}

/// One libcupti.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its file.
    pub path: PathBuf,
    /// Its release, as far as its file tells.
    pub release: Option<String>,
}

impl Diagnosis {
    /// Whether programs can be recorded here.
    pub fn can_record(&self) -> bool {
        self.recording.is_ok() && self.gpus.as_ref().is_ok_and(|gpus| !gpus.is_empty())
    }
}

/// Looks around, and tries a recording in a child process of `program`, because a broken driver may end the process.
pub fn examine(program: &Path, scratch: &Path, cupti: Option<PathBuf>) -> Diagnosis {
    let survey = survey();
    let probe = match &survey.driver {
        Ok(_) => {
            let recording = Recording {
                spool: scratch.join("probe.bubcap"),
                config: Config { events: true, cupti, ..Config::default() },
            };
            child::probe(program, recording).unwrap_or_else(|error| both(&said(&error)))
        }
        Err(error) => both(&error.to_string()),
    };
    Diagnosis {
        driver: survey
            .driver
            .as_ref()
            .map(|driver| format!("{}.{}", driver.version() / 1000, driver.version() % 1000 / 10))
            .map_err(ToString::to_string),
        kernel_module: survey.kernel_module.clone(),
        gpus: probe.gpus,
        libraries: libraries(&survey),
        conflicts: survey
            .conflicts
            .iter()
            .map(|conflict| format!("{}={}: {}", conflict.variable, conflict.value, conflict.effect))
            .collect(),
        recording: probe.recording,
    }
}

/// The same reason for having no GPU and no recording.
fn both(reason: &str) -> Probe {
    Probe { gpus: Err(reason.to_owned()), recording: Err(reason.to_owned()) }
}

fn said(error: &RepetitionError) -> String {
    format!("trying it ended the process: {error}")
}

fn libraries(survey: &Survey) -> Vec<Library> {
    let given = survey.given.iter().map(|path| Library { path: path.clone(), release: None });
    let found = survey
        .candidates
        .iter()
        .map(|candidate| Library { path: candidate.path.clone(), release: candidate.release.clone() });
    given.chain(found).collect()
}
