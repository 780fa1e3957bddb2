//! Running a variant in a child process on the played driver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use workloads::{Outcome, RunSpec};

const SPEC: &str = "PLAYED_SPEC";
const ANSWER: &str = "the child says: ";

/// A variant that was run.
pub(crate) struct Played {
    pub(crate) exit: i32,
    pub(crate) result: Result<Outcome, String>,
    log: Vec<(i64, String)>,
}

impl Played {
    /// Runs a variant that must succeed.
    pub(crate) fn run(workload: &str, variant: &str, options: &[(&str, &str)]) -> Self {
        let played = Self::run_with(workload, variant, options, &[]);
        assert!(played.result.is_ok(), "{workload} {variant} {options:?}: {:?}", played.result);
        played
    }

    /// Runs a variant with settings of the played driver.
    pub(crate) fn run_with(workload: &str, variant: &str, options: &[(&str, &str)], settings: &[(&str, &str)]) -> Self {
        Self::run_on(library(), workload, variant, options, settings)
    }

    /// Runs a variant on the driver of that folder.
    pub(crate) fn run_on(
        folder: &Path,
        workload: &str,
        variant: &str,
        options: &[(&str, &str)],
        settings: &[(&str, &str)],
    ) -> Self {
        let options: BTreeMap<String, String> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let spec = RunSpec::new(workload, variant, &options).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let log = scratch.path().join("log");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["child", "--exact", "--nocapture", "--test-threads", "1"])
            .env("LD_LIBRARY_PATH", folder)
            .env(SPEC, serde_json::to_string(&spec).unwrap())
            .env("MOCK_DRIVER_LOG", &log)
            .envs(settings.iter().copied());
        if variant == "mapped-flag" {
            // It polls memory, so the device must work without being waited for.
            command.env("MOCK_DRIVER_EAGER", "1");
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let answer = text.lines().find_map(|line| Some(line.split_once(ANSWER)?.1)).unwrap_or_else(|| {
            panic!("{workload} {variant} died: {}\n{text}\n{}", output.status, String::from_utf8_lossy(&output.stderr))
        });
        let (exit, result) = serde_json::from_str(answer).unwrap();
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let log = log.lines().filter_map(|line| line.split_once(' '));
        Self { exit, result, log: log.map(|(time, call)| (time.parse().unwrap(), call.to_owned())).collect() }
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        self.result.as_ref().unwrap()
    }

    /// All calls, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.log.iter().map(|(_, call)| call.clone()).collect()
    }

    /// The calls of the measured part, in order, without the synchronisation that ends it.
    pub(crate) fn measured_calls(&self) -> Vec<&str> {
        let (start, end) = self.outcome().measured_realtime_ns;
        let inside = self.log.iter().filter(|(time, _)| (start..=end).contains(time));
        let mut calls: Vec<_> = inside.map(|(_, call)| call.as_str()).collect();
        assert_eq!(calls.pop(), Some("cuCtxSynchronize"));
        calls
    }
}

/// Runs what the parent asks for, if there is one.
pub(crate) fn run_as_child() {
    let Ok(spec) = std::env::var(SPEC) else { return };
    let spec: RunSpec = serde_json::from_str(&spec).unwrap();
    let result = workloads::run(&spec);
    let exit = result.as_ref().map_or_else(|error| i32::from(error.exit_code()), |_| 0);
    let answer = (exit, result.map_err(|error| error.to_string()));
    println!("{ANSWER}{}", serde_json::to_string(&answer).unwrap());
}

/// The folder of the played driver, under the name by which programs load it.
pub(crate) fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // It stays: nothing is dropped at the end of a test program.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("played-driver");
        std::fs::create_dir_all(&folder).unwrap();
        // In one step, beside other runs of these tests.
        let fresh = tempfile::NamedTempFile::new_in(&folder).unwrap();
        std::fs::copy(built(), fresh.path()).unwrap();
        fresh.persist(folder.join("libcuda.so.1")).unwrap();
        folder
    })
}

fn built() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "mock-driver", "--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut files = messages.filter_map(|message| message["filenames"].as_array().cloned()).flatten();
    files
        .find_map(|file| Some(PathBuf::from(file.as_str()?)).filter(|file| file.ends_with("libmock_driver.so")))
        .unwrap()
}
