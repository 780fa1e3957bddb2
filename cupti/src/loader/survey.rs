//! What a machine has, for people who want to know why recording does not work.

use super::driver::{Driver, DriverError, device_nodes};
use super::find::{Candidate, NEWEST_MAJOR, OLDEST_MAJOR, Places};
use super::{CUPTI_VARIABLE, find};
use std::path::PathBuf;

/// Something in the environment that may keep the recorder from working.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The environment variable.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What it does.
    pub effect: &'static str,
}

/// What was found. No function of CUPTI was called for it and CUDA was not started.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The driver.
    pub driver: Result<Driver, DriverError>,
    /// The kernel module's version, such as `580.159.03`.
    pub kernel_module: Option<String>,
    /// The device nodes.
    pub device_nodes: Vec<PathBuf>,
    /// Every libcupti found, in the order in which the recorder would try them for the newest major version.
    pub candidates: Vec<Candidate>,
    /// What [`CUPTI_VARIABLE`] names.
    pub given: Option<PathBuf>,
    /// What may be in the way.
    pub conflicts: Vec<Conflict>,
}

/// Looks around.
pub fn survey() -> Survey {
    let driver = Driver::probe();
    let newest = driver.as_ref().map_or(NEWEST_MAJOR, |driver| driver.major().max(NEWEST_MAJOR));
    let places = Places::of_this_process();
    Survey {
        kernel_module: std::fs::read_to_string("/proc/driver/nvidia/version")
            .ok()
            .and_then(|text| module_version(&text)),
        device_nodes: device_nodes(),
        candidates: (OLDEST_MAJOR..=newest).rev().flat_map(|major| places.candidates(major)).collect(),
        given: std::env::var_os(CUPTI_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from),
        conflicts: conflicts(&|name| std::env::var(name).ok()),
        driver,
    }
}

impl Survey {
    /// The libcupti this process has mapped already.
    pub fn mapped(&self) -> Vec<PathBuf> {
        find::mapped("libcupti.so")
    }
}

fn conflicts(variable: &dyn Fn(&str) -> Option<String>) -> Vec<Conflict> {
    const KNOWN: [(&str, &str); 3] = [
        (
            "CUDA_INJECTION64_PATH",
            "another tool is loaded into every CUDA process, and CUPTI serves one tool at a time",
        ),
        ("NVTX_INJECTION64_PATH", "NVTX ranges go to another library, which may load a second libcupti"),
        ("CUDA_INJECTION32_PATH", "another tool is loaded into every CUDA process"),
    ];
    KNOWN
        .into_iter()
        .filter_map(|(name, effect)| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(Conflict { variable: name, value, effect })
        })
        .collect()
}

/// The version in `/proc/driver/nvidia/version`: the first word of the first line that is made of numbers and points.
fn module_version(text: &str) -> Option<String> {
    text.lines()
        .next()?
        .split_whitespace()
        .find(|word| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survey_never_fails() {
        let survey = survey();
        if survey.driver.is_err() && survey.device_nodes.is_empty() {
            assert_eq!(survey.kernel_module, None);
        }
    }

    #[test]
    fn variables_in_the_way_are_named() {
        let set = |name: &str| (name == "NVTX_INJECTION64_PATH").then(|| "/x/libcupti.so".to_owned());
        let found = conflicts(&set);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].variable, found[0].value.as_str()), ("NVTX_INJECTION64_PATH", "/x/libcupti.so"));
        assert!(conflicts(&|_| Some(String::new())).is_empty());
    }

    #[test]
    fn the_kernel_module_tells_its_version() {
        let text =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build\nGCC version: 13.2";
        assert_eq!(module_version(text).as_deref(), Some("580.159.03"));
        assert_eq!(module_version("nothing"), None);
    }
}
