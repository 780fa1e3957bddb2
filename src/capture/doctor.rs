//! What this machine has: driver, GPUs, libcupti, what may be in the way, and whether recording works.

use std::path::{Path, PathBuf};

use cupti::Config;
use cupti::loader::{CUPTI_VARIABLE, DriverError, Survey, survey};
use serde::Serialize;

use super::child::{self, Probe, Recorded, Recording, RepetitionError};
use super::library;

/// The schema of a [`Diagnosis`] as JSON: every field is always there, and what could not be found out is null beside an
/// `error` that says why.
pub const SCHEMA: &str = "bubblescope.doctor/1";

/// What was found on this machine. As JSON it has the form of [`SCHEMA`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "Document")]
pub struct Diagnosis {
    /// CUDA version of the driver, such as `13.0`, or why there is none.
    pub driver: Result<String, String>,
    /// Version of the kernel module, such as `580.159.03`.
    pub kernel_module: Option<String>,
    /// The names of the GPUs, or why there are none.
    pub gpus: Result<Vec<String>, String>,
    /// Every libcupti found, the first to be tried first; the others are not, if it was asked for.
    pub libraries: Vec<Library>,
    /// The recorder library that is loaded into programs, or why there is none, or none that is kept.
    pub recorder: Result<PathBuf, String>,
    /// What may be in the way.
    pub conflicts: Vec<String>,
    /// What recorded in a try, or why recording does not work.
    pub recording: Result<Recorded, String>,
}

/// Who named a libcupti.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LibrarySource {
    /// An option of the program.
    Option,
    /// The environment variable [`CUPTI_VARIABLE`].
    Environment,
    /// Nobody: it was found.
    Found,
}

/// One libcupti.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its file.
    pub path: PathBuf,
    /// Who named it.
    pub source: LibrarySource,
    /// Its release, as far as its file tells.
    pub release: Option<String>,
}

impl Diagnosis {
    /// Whether programs can be recorded here.
    pub fn can_record(&self) -> bool {
        self.recording.is_ok() && self.gpus.as_ref().is_ok_and(|gpus| !gpus.is_empty())
    }
}

/// A [`Diagnosis`] as it is written down.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    driver: DriverDocument,
    kernel_module: Option<String>,
    gpus: GpusDocument,
    libraries: Vec<Library>,
    recorder: RecorderDocument,
    conflicts: Vec<String>,
    recording: RecordingDocument,
}

#[derive(Serialize)]
struct DriverDocument {
    cuda: Option<String>,
    error: Option<String>,
}

#[derive(Serialize)]
struct GpusDocument {
    names: Option<Vec<String>>,
    error: Option<String>,
}

#[derive(Serialize)]
struct RecorderDocument {
    path: Option<PathBuf>,
    error: Option<String>,
}

#[derive(Serialize)]
struct RecordingDocument {
    library: Option<String>,
    version: Option<u32>,
    kinds: Option<Vec<u32>>,
    error: Option<String>,
}

fn split<T>(result: Result<T, String>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(error)),
    }
}

impl From<Diagnosis> for Document {
    fn from(found: Diagnosis) -> Self {
        let (cuda, driver_error) = split(found.driver);
        let (names, gpus_error) = split(found.gpus);
        let (path, recorder_error) = split(found.recorder);
        let (recorded, error) = split(found.recording);
        let (library, version, kinds) =
            recorded.map_or((None, None, None), |r| (Some(r.library), Some(r.version), Some(r.kinds)));
        Self {
            schema: SCHEMA,
            driver: DriverDocument { cuda, error: driver_error },
            kernel_module: found.kernel_module,
            gpus: GpusDocument { names, error: gpus_error },
            libraries: found.libraries,
            recorder: RecorderDocument { path, error: recorder_error },
            conflicts: found.conflicts,
            recording: RecordingDocument { library, version, kinds, error },
        }
    }
}

/// Looks around, and tries a recording in a child process of `program`, because a broken driver may end the process.
pub fn examine(program: &Path, scratch: &Path, cupti: Option<PathBuf>) -> Diagnosis {
    let survey = survey();
    let (libraries, missing) = libraries(&survey, cupti.as_deref());
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
    let in_the_way = survey.conflicts.iter();
    let in_the_way =
        in_the_way.map(|conflict| format!("{}={}: {}", conflict.variable, conflict.value, conflict.effect));
    Diagnosis {
        driver: driver_version(&survey),
        kernel_module: survey.kernel_module.clone(),
        gpus: probe.gpus,
        libraries,
        recorder: recorder(scratch),
        conflicts: missing.into_iter().chain(in_the_way).collect(),
        recording: probe.recording,
    }
}

/// The recorder library that stays where it is.
fn recorder(scratch: &Path) -> Result<PathBuf, String> {
    let library = library::locate(scratch).map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    match library.not_kept {
        Some(reason) => Err(format!("is written to a temporary folder for each recording: {reason}")),
        None => Ok(library.path),
    }
}

/// What the driver is for, also where it has no GPU to drive.
fn driver_version(survey: &Survey) -> Result<String, String> {
    match &survey.driver {
        Ok(driver) => Ok(driver.version()),
        Err(DriverError::NoDevice { version }) => Ok(*version),
        Err(error) => Err(error.to_string()),
    }
    .map(|version| format!("{}.{}", version / 1000, version % 1000 / 10))
}

/// The same reason for having no GPU and no recording.
fn both(reason: &str) -> Probe {
    Probe { gpus: Err(reason.to_owned()), recording: Err(reason.to_owned()) }
}

fn said(error: &RepetitionError) -> String {
    format!("trying it ended the process: {error}")
}

/// Every libcupti there is, and what to say if the one asked for is not there.
fn libraries(survey: &Survey, option: Option<&Path>) -> (Vec<Library>, Option<String>) {
    let by_option = option.map(|path| (path, LibrarySource::Option));
    let by_variable = survey.given.as_deref().map(|path| (path, LibrarySource::Environment));
    let mut libraries = Vec::new();
    let mut missing = None;
    if let Some((path, source)) = by_option.or(by_variable) {
        // A name without a folder is looked for by the dynamic loader.
        if path.components().count() > 1 && !path.exists() {
            let who = if source == LibrarySource::Option { "the option --cupti" } else { CUPTI_VARIABLE };
            missing = Some(format!("{who} names {}, which is not there, and no other is tried", path.display()));
        } else {
            let known = survey.candidates.iter().find(|candidate| candidate.path == path);
            let release = known.and_then(|candidate| candidate.release.clone());
            libraries.push(Library { path: path.to_owned(), source, release });
        }
    }
    for candidate in &survey.candidates {
        if libraries.iter().all(|library| library.path != candidate.path) {
            libraries.push(Library {
                path: candidate.path.clone(),
                source: LibrarySource::Found,
                release: candidate.release.clone(),
            });
        }
    }
    (libraries, missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cupti::loader::{Candidate, CuptiSource};

    fn surveyed(given: Option<PathBuf>, candidate: &Path) -> Survey {
        Survey {
            driver: Err(DriverError::NoDevice { version: 13_010 }),
            kernel_module: None,
            device_nodes: Vec::new(),
            candidates: vec![Candidate {
                path: candidate.to_owned(),
                source: CuptiSource::Toolkit,
                major: 13,
                release: Some("13.1".to_owned()),
            }],
            given,
            conflicts: Vec::new(),
        }
    }

    #[test]
    fn the_library_asked_for_comes_first_if_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, none] = ["one", "two", "none"].map(|name| folder.path().join(name));
        std::fs::write(&one, "").unwrap();
        std::fs::write(&two, "").unwrap();
        let listed = |option: Option<&Path>, variable: Option<&Path>| {
            let (libraries, missing) = libraries(&surveyed(variable.map(Path::to_owned), &two), option);
            let rows: Vec<_> = libraries.into_iter().map(|library| (library.path, library.source)).collect();
            (rows, missing)
        };
        use LibrarySource as S;
        assert_eq!(listed(None, None), (vec![(two.clone(), S::Found)], None));
        let both = |source| (vec![(one.clone(), source), (two.clone(), S::Found)], None);
        assert_eq!(listed(Some(&one), None), both(S::Option));
        assert_eq!(listed(None, Some(&one)), both(S::Environment));
        assert_eq!(listed(Some(&one), Some(&none)), both(S::Option), "the variable does not count then");
        assert_eq!(listed(Some(&two), None), (vec![(two.clone(), S::Option)], None), "it is listed once");
        let bare = PathBuf::from("libcupti.so.13");
        assert_eq!(listed(Some(&bare), None).0[0], (bare.clone(), S::Option));
        for (option, variable, who) in [(Some(&none), None, "--cupti"), (None, Some(&none), CUPTI_VARIABLE)] {
            let (rows, missing) = listed(option.map(PathBuf::as_path), variable.map(PathBuf::as_path));
            assert_eq!(rows, [(two.clone(), S::Found)], "what is not there is not listed as found");
            assert!(missing.unwrap().contains(who));
        }
    }

    #[test]
    fn a_driver_without_a_gpu_tells_its_version() {
        assert_eq!(driver_version(&surveyed(None, Path::new("x"))).as_deref(), Ok("13.1"));
    }

    /// Every path of names in a JSON value.
    fn shape(value: &serde_json::Value, at: &str, into: &mut Vec<String>) {
        into.push(at.to_owned());
        for (name, value) in value.as_object().into_iter().flatten() {
            shape(value, &format!("{at}/{name}"), into);
        }
    }

    #[test]
    fn the_json_has_one_shape() {
        let none = || "none".to_owned();
        let bad = Diagnosis {
            driver: Err(none()),
            kernel_module: None,
            gpus: Err(none()),
            libraries: Vec::new(),
            recorder: Err(none()),
            conflicts: Vec::new(),
            recording: Err(none()),
        };
        let good = Diagnosis {
            driver: Ok("13.0".to_owned()),
            gpus: Ok(vec!["NVIDIA H200".to_owned()]),
            recorder: Ok("/x/libbubblescope_inject.so".into()),
            recording: Ok(Recorded { library: "libcupti.so.13".to_owned(), version: 130_001, kinds: vec![10] }),
            ..bad.clone()
        };
        let [good, bad] = [good, bad].map(|found| serde_json::to_value(found).unwrap());
        let [mut one, mut other] = [Vec::new(), Vec::new()];
        shape(&good, "", &mut one);
        shape(&bad, "", &mut other);
        assert_eq!(one, other);
        assert_eq!(good["schema"], SCHEMA);
        for part in ["driver", "gpus", "recorder", "recording"] {
            assert!(good[part]["error"].is_null() && bad[part]["error"] == "none");
        }
        assert_eq!(good["recording"]["version"], 130_001);
    }
}
