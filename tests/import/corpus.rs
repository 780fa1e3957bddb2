//! The folder of real traces with known answers.

use std::path::{Path, PathBuf};

use bubblescope::analysis::{Options, analyze};
use bubblescope::trace::{Ns, Trace};
use serde_json::{Value, json};

/// The corpus, unless it is not here.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("BUBBLESCOPE_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: BUBBLESCOPE_CORPUS is not set");
    }
    folder
}

/// The known answers of every file in one folder of the corpus whose name ends so.
pub(crate) fn expected(corpus: &Path, ending: &str) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(corpus.join("expected.json")).unwrap();
    let Value::Object(all) = serde_json::from_str(&text).unwrap() else { panic!("expected.json is an object") };
    let found: Vec<_> = all.into_iter().filter(|(name, _)| name.ends_with(ending)).collect();
    assert!(!found.is_empty(), "no {ending} in expected.json");
    found
}

/// Each device's figures in the form of the known answers.
pub(crate) fn figures(trace: &Trace) -> Value {
    let analysis = analyze(trace, &Options::default());
    let devices = analysis.devices.iter().map(|device| {
        let id = trace.devices[device.device.index()].id.to_string();
        let part = device.partition;
        let figures = json!({
            "ops": device.ops,
            "span_ns": part.span(),
            "busy_ns": part.busy(),
            "idle_ns": part.idle,
            "compute_only_ns": part.compute_only,
            "overlapped_ns": part.overlapped,
            "exposed_copy_ns": part.exposed_copy,
            "bubbles": device.bubbles.len(),
            "max_bubble_ns": device.bubbles.iter().map(|bubble| bubble.interval.len()).max().unwrap_or(Ns::ZERO),
        });
        (id, figures)
    });
    Value::Object(devices.collect())
}
