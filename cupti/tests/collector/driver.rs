//! Whether there is a driver, with none, a stub and a working one; and the real libcupti without a driver.

use crate::common::{self, run_child};
use cupti::loader::{CuptiSource, Driver, DriverError, gpus, survey};
use cupti::{Config, Recorder, RecorderError};
use std::path::{Path, PathBuf};

scenarios! {
    a_survey_lists_what_there_is("") |_| {
        let survey = survey();
        assert_eq!(survey.driver.is_ok(), Driver::probe().is_ok());
        assert!(survey.mapped().is_empty(), "a survey loads nothing");
        assert!(survey.candidates.iter().all(|candidate| candidate.path.exists()));
    };
}

/// Bodies for the tests below.
pub(crate) const BODIES: &[common::Scenario] = &[
    ("stub", |path| {
        assert_eq!(Driver::probe(), Err(DriverError::Stub));
        assert_eq!(gpus(), Err(DriverError::Stub));
        let error = Recorder::start(&Config { cupti: Some(common::library()), ..Config::default() }, path).unwrap_err();
        assert!(error.to_string().starts_with("no NVIDIA driver"), "{error}");
        assert!(!path.exists());
    }),
    ("broken_driver", |_| {
        assert_eq!(Driver::probe(), Err(DriverError::Failed { call: "cuDriverGetVersion", result: 999 }));
    }),
    ("working_driver", |_| {
        // Whether there are device nodes is a matter of the machine.
        match Driver::probe() {
            Ok(driver) => assert_eq!((driver.version(), driver.major()), (13_000, 13)),
            Err(error) => assert!(matches!(error, DriverError::NoDevice { .. }), "{error}"),
        }
        let gpus = gpus().unwrap();
        assert_eq!(gpus.iter().map(|gpu| &*gpu.name).collect::<Vec<_>>(), ["Mock GPU A", "Mock GPU B"]);
    }),
    ("no_driver", |path| {
        let error = Recorder::start(&Config::default(), path).unwrap_err();
        assert!(matches!(error, RecorderError::Driver(DriverError::NotFound { .. })), "{error}");
        assert!(error.to_string().starts_with("no NVIDIA driver: libcuda.so.1"), "{error}");
        assert!(!path.exists());
        let survey = survey();
        assert!(survey.driver.is_err());
        assert_eq!(survey.given.as_deref(), std::env::var_os("BUBBLESCOPE_CUPTI").as_deref().map(Path::new));
        let packages = std::env::var_os("PYTHONPATH").unwrap();
        let candidate = survey.candidates.iter().find(|c| c.path.starts_with(&packages)).expect("the wheel's library");
        assert_eq!(candidate.source, CuptiSource::Python);
        println!("release {}", candidate.release.as_deref().unwrap());
    }),
];

/// Runs a body where `libcuda.so.1` is the mock, whose functions give `result`.
fn with_mock_cuda(body: &str, result: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(common::library(), folder.path().join("libcuda.so.1")).unwrap();
    run_child(body, "", &[("LD_LIBRARY_PATH", folder.path()), ("MOCK_CUDA", Path::new(result))]).assert_ended_well();
}

#[test]
fn the_stub_is_no_driver() {
    with_mock_cuda("stub", "34");
}

#[test]
fn a_driver_that_does_not_answer() {
    with_mock_cuda("broken_driver", "999");
}

#[test]
fn a_driver_that_works() {
    with_mock_cuda("working_driver", "0");
}

/// The libcupti of NVIDIA's packages crash or answer nonsense without a driver, each version in its own way. The packages
/// lie in the folder that `BUBBLESCOPE_CUPTI_PACKAGES` names, each in a folder `NAME-VERSION`.
#[test]
fn real_libraries_without_a_driver() {
    let Some(folder) = std::env::var_os("BUBBLESCOPE_CUPTI_PACKAGES") else {
        println!("skipped: BUBBLESCOPE_CUPTI_PACKAGES is not set");
        return;
    };
    if !matches!(Driver::probe(), Err(DriverError::NotFound { .. })) {
        println!("skipped: this machine has a driver");
        return;
    }
    let packages: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    if packages.is_empty() {
        println!("skipped: there are no packages in BUBBLESCOPE_CUPTI_PACKAGES");
    }
    for package in packages {
        let library = library_in(&package).unwrap_or_else(|| panic!("no libcupti in {}", package.display()));
        let child = run_child(
            "no_driver",
            "",
            &[
                ("BUBBLESCOPE_CUPTI", &library),
                ("LD_LIBRARY_PATH", library.parent().unwrap()),
                ("PYTHONPATH", &package),
            ],
        );
        child.assert_ended_well();
        let output = String::from_utf8_lossy(&child.output.stdout);
        let (_, version) = package.file_name().unwrap().to_str().unwrap().rsplit_once('-').unwrap();
        assert!(output.contains(&format!("release {version}")), "{output}");
    }
}

/// `nvidia/*/lib/libcupti.so.N` of an unpacked package.
fn library_in(package: &Path) -> Option<PathBuf> {
    let libraries = std::fs::read_dir(package.join("nvidia")).ok()?.flatten().map(|entry| entry.path().join("lib"));
    let files = libraries.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut found = files.map(|file| file.path()).filter(|file| {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix("libcupti.so.").is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
    });
    found.next()
}
