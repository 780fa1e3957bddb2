//! Finding and loading libcupti.
//!
//! A process must have one libcupti only: two copies share the driver's one place for a client and silence each other.
//! So the copy that is mapped already is taken first, whatever else was asked for. No function of CUPTI is called before
//! [`Driver`] says that a driver is there, because CUPTI 13.2 calls itself until the stack ends when libcuda cannot be
//! loaded.

mod driver;
mod find;
mod survey;

pub use driver::{Driver, DriverError, Gpu, gpus};
pub use find::{Candidate, CuptiSource};
pub use survey::{Conflict, Survey, survey};

use cupti_sys::{Api, LoadError};
use find::Places;
use std::path::{Path, PathBuf};

/// The environment variable that names the libcupti to use.
pub const CUPTI_VARIABLE: &str = "BUBBLESCOPE_CUPTI";

/// The oldest `cuptiGetVersion` that is served: CUDA 12.0 answers 18.
pub const OLDEST_VERSION: u32 = 18;

/// The `cuptiGetVersion` that crashes when NVTX is handed to it before CUDA starts: 13.0 without its update.
pub const NVTX_BEFORE_CUDA_CRASHES: u32 = 130_000;

/// Why no libcupti could be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// None was found, or none of those found could be loaded.
    #[error("no libcupti for CUDA {major} or older was found (set {CUPTI_VARIABLE} to its path); looked at: {}", list(.tried))]
    NotFound {
        /// The CUDA major version that was looked for.
        major: u32,
        /// What was looked at, and what came of it.
        tried: Vec<Tried>,
    },
    /// The library that was asked for, or that the process uses already, cannot be loaded.
    #[error(transparent)]
    Library(#[from] LoadError),
    /// It does not even tell its version.
    #[error("{path} refuses to work: cuptiGetVersion gives {result}")]
    Refused {
        /// The library.
        path: PathBuf,
        /// `CUptiResult`.
        result: u32,
    },
    /// It is older than CUDA 12.0.
    #[error("{path} is CUPTI API version {version}; the oldest that works is {OLDEST_VERSION} (CUDA 12.0)")]
    TooOld {
        /// The library.
        path: PathBuf,
        /// `cuptiGetVersion`.
        version: u32,
    },
}

/// One place that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// A library, a folder or a library's name.
    pub place: PathBuf,
    /// What came of it.
    pub outcome: String,
}

fn list(tried: &[Tried]) -> String {
    let places: Vec<String> = tried.iter().map(|t| format!("{} ({})", t.place.display(), t.outcome)).collect();
    if places.is_empty() { "nothing".to_owned() } else { places.join("; ") }
}

/// A libcupti that answers.
#[derive(Debug)]
pub struct Cupti {
    /// Its functions.
    pub api: Api,
    /// `cuptiGetVersion`.
    pub version: u32,
    /// How it was found.
    pub source: CuptiSource,
}

impl Cupti {
    /// Finds and loads libcupti: the one mapped already; the one `given`; the one [`CUPTI_VARIABLE`] names; then, for
    /// the major version of the mapped libcudart or else of the driver, Python's packages, the toolkits, and what the
    /// dynamic loader finds; then the same for older major versions.
    ///
    /// # Errors
    /// When none is found or the one found does not work.
    pub fn load(driver: &Driver, given: Option<&Path>) -> Result<Self, LoaderError> {
        if let Some(mapped) = find::mapped("libcupti.so").into_iter().next() {
            return Self::open(driver, &mapped, CuptiSource::Mapped);
        }
        if let Some(given) = given {
            return Self::open(driver, given, CuptiSource::Given);
        }
        if let Some(named) = std::env::var_os(CUPTI_VARIABLE).filter(|value| !value.is_empty()) {
            return Self::open(driver, Path::new(&named), CuptiSource::Given);
        }
        let known = Some(driver.major()).filter(|&major| major > 0);
        let newest = find::mapped_cudart_major().or(known).or_else(find::mapped_driver_major);
        let newest = newest.unwrap_or(find::NEWEST_MAJOR);
        let places = Places::of_this_process();
        let mut tried = Vec::new();
        for major in (find::OLDEST_MAJOR..=newest.max(find::OLDEST_MAJOR)).rev() {
            let candidates = places.candidates(major);
            let by_name = PathBuf::from(format!("libcupti.so.{major}"));
            let all = candidates
                .into_iter()
                .map(|candidate| (candidate.path, candidate.source))
                .chain(std::iter::once((by_name, CuptiSource::Loader)));
            for (path, source) in all {
                match Self::open(driver, &path, source) {
                    Ok(cupti) => return Ok(cupti),
                    Err(error) => tried.push(Tried { place: path, outcome: error.to_string() }),
                }
            }
        }
        tried.extend(places.folders().map(|place| Tried { place, outcome: "no other libcupti there".to_owned() }));
        Err(LoaderError::NotFound { major: newest, tried })
    }

    fn open(_driver: &Driver, path: &Path, source: CuptiSource) -> Result<Self, LoaderError> {
        // SAFETY: the file is named libcupti, or the user says that it is one.
        let api = unsafe { Api::load(path) }?;
        let mut version = 0;
        // SAFETY: a `Driver` exists, so CUPTI may be called; the pointer is valid.
        let result = unsafe { (api.get_version)(&raw mut version) };
        if result != 0 {
            return Err(LoaderError::Refused { path: path.to_owned(), result });
        }
        if version < OLDEST_VERSION {
            return Err(LoaderError::TooOld { path: path.to_owned(), version });
        }
        Ok(Self { api, version, source })
    }
}
