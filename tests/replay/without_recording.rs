//! What the replay says of programs without the cost of recording, against the same programs when they were not recorded.

use std::path::Path;

use bubblescope::analysis::replay::{Change, Replay};
use bubblescope::analysis::waits::Waits;
use bubblescope::open::open;
use serde_json::Value;

/// The folders of the bundled campaigns: each has a recording of a variant and runs of it without.
const CAMPAIGNS: [&str; 9] = [
    "scalar-readback/kernels-1",
    "scalar-readback/kernels-4",
    "scalar-readback/kernels-12",
    "workloads/scalar-readback",
    "workloads/allocation",
    "workloads/default-stream",
    "workloads/graph-replay",
    "workloads/pipeline",
    "workloads/timing",
];

/// How long the measured part of a variant takes: while recorded, what the replay says without, and without. Nanoseconds.
struct Variant {
    name: String,
    has_graphs: bool,
    recorded: f64,
    predicted: f64,
    without: f64,
}

fn variants() -> Vec<Variant> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut found = Vec::new();
    for campaign in CAMPAIGNS {
        let folder = fixtures.join(campaign);
        let told: Value = serde_json::from_slice(&std::fs::read(folder.join("campaign.json")).unwrap()).unwrap();
        let runs = told["repetitions"].as_array().unwrap();
        for recorded in runs.iter().filter(|run| run["spool"].is_string()) {
            let wall = |run: &Value| run["wall_ns"].as_i64().unwrap() as f64;
            let mut without: Vec<f64> = runs
                .iter()
                .filter(|run| run["variant"] == recorded["variant"] && run["spool"].is_null())
                .map(wall)
                .collect();
            without.sort_unstable_by(f64::total_cmp);
            let trace = open(&folder.join(recorded["spool"].as_str().unwrap())).unwrap();
            let measured = trace.meta.workload.as_ref().unwrap().measured.unwrap();
            let waits = Waits::new(&trace);
            let gain = Replay::new(&trace, &waits, Some(measured)).with(&["no-tracer".parse::<Change>().unwrap()]).gain;
            let Some(gain) = gain else {
                println!("{campaign} {}: withheld", recorded["variant"]);
                continue;
            };
            found.push(Variant {
                name: format!("{campaign} {}", recorded["variant"]),
                has_graphs: trace.ops.graph.iter().any(|graph| graph.is_some()),
                recorded: wall(recorded),
                predicted: wall(recorded) - gain.get() as f64,
                without: without[without.len() / 2],
            });
        }
    }
    found
}

#[test]
fn what_recording_adds_is_taken_off() {
    let (mut graphs, mut held) = (0, 0);
    for Variant { name, has_graphs, recorded, predicted, without } in variants() {
        let (was, is) = (recorded / without, predicted / without);
        println!("{name:45} recorded {was:.3} of its length without, {is:.3} with the cost taken off");
        // What the host does beside the GPU's work may count for less than the replay takes it for.
        assert!(predicted <= recorded && predicted > 0.85 * recorded.min(without), "{name}: {is}");
        graphs += u32::from(has_graphs);
        // Where the launches of graphs set the pace, and not what their ops take on the GPU while each is recorded.
        if has_graphs && name.contains("/kernels-") {
            held += 1;
            assert!((0.97..1.11).contains(&is) && recorded - predicted > 0.5 * (recorded - without), "{name}: {is}");
        }
    }
    assert!(graphs >= 7 && held == 3, "{graphs} {held}");
}
