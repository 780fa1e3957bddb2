//! `bubble-report` as a process: what it prints where, and how it ends.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod interrupted;
mod place;
mod record;
mod room;

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

use place::program;

fn bubble_report() -> Command {
    let mut command = Command::new(program());
    command.env_remove("BUBBLESCOPE_CUPTI");
    command
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scalar-readback").join(name)
}

/// Runs to the end and gives exit code, standard output and standard error.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().expect("it was not killed"), text(&output.stdout), text(&output.stderr))
}

/// One line that says what is wrong, and nothing on standard output.
fn assert_refused(command: &mut Command, code: i32, words: &[&str]) {
    let (got, stdout, stderr) = outcome(command);
    assert_eq!(got, code, "{stderr}");
    assert_eq!(stdout, "");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "`{word}` is not in: {stderr}");
    }
}

#[test]
fn the_demo_compares_three_variants_and_says_that_it_replays() {
    let (code, stdout, stderr) = outcome(bubble_report().arg("demo"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    for words in ["nothing runs on a GPU now", "NVIDIA H200", "sync", "async", "graph", "cuMemcpyDtoH", "speed-up"] {
        assert!(stdout.contains(words), "{words}");
    }
    assert!(!stdout.contains('\u{1b}'), "no colour where there is no terminal");
}

#[test]
fn the_demo_as_json_has_walls_and_bubbles_in_the_order_of_the_variants_cost() {
    let (code, stdout, _) = outcome(bubble_report().args(["demo", "--format", "json"]));
    assert_eq!(code, 0);
    let demo: Value = serde_json::from_str(&stdout).unwrap();
    let comparisons = demo["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 3);
    for compare in comparisons {
        assert_eq!(compare["schema"], "bubblescope.compare/1");
        assert_eq!(compare["answers_agree"], true);
        let walls: Vec<i64> = compare["variants"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variant| variant["unprofiled"]["median_ns"].as_i64().unwrap())
            .collect();
        assert!(walls[0] > walls[1] && walls[1] > walls[2], "{walls:?}");
    }
}

#[test]
fn the_list_names_every_workload_variant_and_option() {
    let (code, stdout, _) = outcome(bubble_report().arg("list"));
    assert_eq!(code, 0);
    for workload in workloads::catalogue() {
        let variants = workload.variants.iter().map(|variant| variant.name);
        let options = workload.options.iter().map(|option| option.name);
        for name in [workload.name].into_iter().chain(variants).chain(options) {
            assert!(stdout.contains(name), "{name}");
        }
    }
}

#[test]
fn a_trace_alone_is_analysed_and_json_is_alone_on_standard_output() {
    let path = fixture("kernels-4/sync.bubcap");
    let (code, text, stderr) = outcome(bubble_report().arg(&path));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(text.contains("cuMemcpyDtoH") && text.contains("Idle time is reliable"), "{text}");
    let (code, json, stderr) = outcome(bubble_report().arg("analyze").arg(&path).args(["--format", "json"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["schema"], "bubblescope.report/1");
}

#[test]
fn a_converted_spool_gives_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.bubbles.parquet");
    let spool = fixture("kernels-4/graph.bubcap");
    let (code, stdout, _) = outcome(bubble_report().arg("convert").arg(&spool).arg("-o").arg(&trace));
    assert_eq!((code, stdout.as_str()), (0, ""));
    let report = |path: &Path| {
        let (code, json, _) = outcome(bubble_report().arg("analyze").arg(path).args(["--format", "json"]));
        assert_eq!(code, 0);
        let mut report: Value = serde_json::from_str(&json).unwrap();
        report["source"]["path"] = Value::Null;
        report
    };
    assert_eq!(report(&spool), report(&trace));
}

#[test]
fn traces_are_compared_by_iteration_and_by_the_answers_they_hold_without_claims_about_unprofiled_walls() {
    let paths = ["sync", "async", "graph"].map(|variant| fixture(&format!("kernels-4/{variant}.bubcap")));
    let (code, json, _) = outcome(bubble_report().arg("compare").args(&paths).args(["--format", "json"]));
    assert_eq!(code, 0);
    let compare: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&compare["answer_checked"], &compare["answers_agree"]), (&true.into(), &true.into()));
    for variant in compare["variants"].as_array().unwrap() {
        assert_eq!(variant["unprofiled"], Value::Null);
        assert_eq!(variant["iterations"], 200);
    }
}

#[test]
fn traces_of_other_work_are_compared_without_a_speed_up_and_end_as_variants_that_disagree() {
    let sync = fixture("kernels-4/sync.bubcap");
    for other in ["../workloads/timing/none.bubcap", "kernels-12/graph.bubcap"] {
        let paths = [&sync, &fixture(other)];
        let (code, json, stderr) = outcome(bubble_report().arg("compare").args(paths).args(["--format", "json"]));
        assert_eq!((code, stderr.trim_end().lines().count()), (1, 1), "{stderr}");
        assert!(stderr.contains("do not compute the same answer"), "{stderr}");
        let compare: Value = serde_json::from_str(&json).unwrap();
        let variant = &compare["variants"][1];
        assert_eq!(variant["speedup"], Value::Null);
        assert!(variant["marks"][0].as_str().unwrap().starts_with("not the same work: "), "{variant}");
        let (_, text, _) = outcome(bubble_report().arg("compare").args(paths));
        assert!(text.starts_with("THE VARIANTS DO NOT COMPUTE THE SAME ANSWER") && text.contains("(!)"), "{text}");
        assert_eq!(text.matches('×').count(), 1, "the first variant against itself: {text}");
    }
}

#[test]
fn waits_for_peers_that_are_not_in_the_recording_are_absent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nccl");
    let (code, json, stderr) = outcome(bubble_report().arg(&folder).args(["--format", "json"]));
    assert_eq!(code, 0, "{stderr}");
    let ranks: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(ranks["ranks"].as_array().unwrap().len(), 2);
    for rank in ranks["ranks"].as_array().unwrap() {
        assert!(rank["exposed_comm_ns"].as_i64().unwrap() > 0 && rank.get("waits_for_peer_ns").is_none(), "{rank}");
    }
    let (_, json, _) = outcome(bubble_report().arg(fixture("kernels-1/sync.bubcap")).args(["--format", "json"]));
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["devices"][0]["waits_for_peer_ns"], 0, "without collectives nothing is waited for");
}

#[test]
fn a_cut_trace_is_compared_with_a_mark_or_without_figures() {
    let whole = fixture("kernels-1/sync.bubcap");
    let bytes = fs::read(&whole).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.bubcap");
    let (mut marked, mut unusable) = (0, 0);
    for part in 1..12 {
        fs::write(&cut, &bytes[..bytes.len() * part / 12 - 1]).unwrap();
        let (code, json, _) = outcome(bubble_report().arg("compare").args([&whole, &cut]).args(["--format", "json"]));
        if code != 0 {
            continue;
        }
        let compare: Value = serde_json::from_str(&json).unwrap();
        let broken = &compare["variants"][1];
        let has_figures = broken["profiled"].is_object();
        assert_eq!(broken["unusable"].is_string(), !has_figures, "{part}: {broken}");
        if has_figures {
            marked += 1;
            assert!(broken["marks"].to_string().contains("it was cut"), "{part}: {broken}");
        } else {
            unusable += 1;
            assert!(broken["speedup"].is_null() && broken["recorded"].is_null() && broken["iterations"] == 0);
        }
    }
    assert!(unusable > 0, "{marked} marked, {unusable} unusable");
}

#[test]
fn a_kept_campaign_is_compared_with_its_walls() {
    let (code, json, _) = outcome(bubble_report().arg("compare").arg(fixture("kernels-12")).args(["--format", "json"]));
    assert_eq!(code, 0);
    let compare: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(compare["answer_checked"], true);
    assert!(compare["variants"][0]["unprofiled"]["median_ns"].as_i64().unwrap() > 0);
}

#[test]
fn a_spool_cut_anywhere_is_used_or_refused_in_one_line() {
    let whole = fs::read(fixture("kernels-1/sync.bubcap")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.bubcap");
    let mut analysed = 0;
    for part in 0..=24 {
        let length = whole.len() * part / 24;
        fs::write(&path, &whole[..length]).unwrap();
        let (code, stdout, stderr) = outcome(bubble_report().arg(&path).arg("--whole"));
        match code {
            0 => {
                analysed += 1;
                assert!(stdout.contains("idle"), "{length}");
            }
            2 => {
                assert_eq!(stderr.trim_end().lines().count(), 1, "{length}: {stderr}");
                let says = ["is empty", "ends before its header", "was cut"].iter().any(|words| stderr.contains(words));
                assert!(says && !stderr.contains("has no GPU activity"), "{length}: {stderr}");
            }
            other => panic!("{length}: exit {other}: {stderr}"),
        }
    }
    assert!(analysed >= 1);
}

#[test]
fn a_gain_that_is_the_least_to_expect_says_so_in_every_form() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for (name, least) in [("planted/pageable-copy", true), ("planted/allocation", false)] {
        let path = fixtures.join(name).with_extension("bubcap");
        let (_, json, _) = outcome(bubble_report().arg(&path).args(["--format", "json"]));
        let report: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["findings"][0]["at_least"], least, "{name}");
        assert_eq!(report["replay"]["what_if"][0]["at_least"], least, "{name}");
        assert_eq!(report["replay"]["all_together"]["at_least"], least, "{name}");
        let (_, text, _) = outcome(bubble_report().arg(&path));
        assert_eq!(text.matches("at least ").count() > 1, least, "{name}: {text}");
        assert_eq!((text.contains("At least "), text.contains("Up to ")), (least, !least), "{name}: {text}");
    }
}

#[test]
fn a_kept_spool_that_is_cut_loses_only_its_tail() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, cut) = (folder.path().join("kept.bubcap"), folder.path().join("cut.bubcap"));
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/waits/timing-events-k1-10us.bubcap");
    let (code, ..) = outcome(bubble_report().arg("convert").arg(&recorded).arg("-o").arg(&kept));
    assert_eq!(code, 0);
    let [before, whole] = [&recorded, &kept].map(|path| fs::read(path).unwrap());
    assert!(whole.len() <= before.len() * 102 / 100, "{} of {}", whole.len(), before.len());
    let ops = |path: &Path| -> u64 {
        let (code, json, stderr) = outcome(bubble_report().arg(path).args(["--whole", "--format", "json"]));
        assert_eq!(code, 0, "{stderr}");
        let report: Value = serde_json::from_str(&json).unwrap();
        let cut = report["quality"]["warnings"].to_string().contains("was cut off");
        assert_eq!(cut, path.ends_with("cut.bubcap"), "{}", report["quality"]);
        report["devices"][0]["ops"].as_u64().unwrap()
    };
    let all = ops(&kept);
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let half = ops(&cut);
    assert!(half * 5 > all && half < all, "{half} of {all}");
    assert_eq!(ops(&recorded), all);
}

#[test]
fn unusable_input_is_exit_2_and_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    assert_refused(bubble_report().arg("analyze").arg(folder.path().join("missing")), 2, &["missing"]);
    assert_refused(bubble_report().arg("analyze").arg(file("empty", b"")), 2, &["empty"]);
    assert_refused(bubble_report().arg("analyze").arg(file("noise", &[7; 4096])), 2, &["noise"]);
    assert_refused(bubble_report().arg("analyze").arg(file("half.parquet", b"PAR1\0\0\0\0")), 2, &["half.parquet"]);
    assert_refused(bubble_report().arg("analyze").arg(folder.path()), 2, &[]);
    // Its recordings are two folders further down.
    let outer = fixture("..");
    assert_refused(bubble_report().arg(&outer), 2, &["no recording in", "folders in it are not searched"]);
    assert_refused(bubble_report().args(["run", "no-such-workload"]), 2, &["no-such-workload", "scalar-readback"]);
    assert_refused(bubble_report().args(["compare", "no-such-workload"]), 2, &["no-such-workload"]);
    assert_refused(bubble_report().args(["run", "scalar-readback", "--variant", "x"]), 2, &["x", "sync"]);
    assert_refused(bubble_report().args(["run", "scalar-readback", "--set", "size=tiny"]), 2, &["size", "tiny"]);
    let trace = fixture("kernels-1/sync.bubcap");
    assert_refused(
        bubble_report().arg("convert").arg(&trace).args(["-o", "/no/such/folder/t.parquet"]),
        2,
        &["/no/such"],
    );
}

#[test]
fn an_output_name_that_promises_another_form_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.xml", "t.jsonl", "t"] {
        let path = folder.path().join(name);
        assert_refused(
            bubble_report().arg("convert").arg(fixture("kernels-1/sync.bubcap")).arg("-o").arg(&path),
            2,
            &[name],
        );
        assert!(!path.exists());
    }
    let spool = folder.path().join("T.BUBCAP");
    let (code, ..) =
        outcome(bubble_report().arg("convert").arg(fixture("kernels-1/sync.bubcap")).arg("-o").arg(&spool));
    assert_eq!(code, 0);
    assert!(fs::read(&spool).unwrap().starts_with(&cupti::spool::MAGIC));
}

#[test]
fn converting_a_file_onto_itself_or_from_garbage_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["own.bubcap", "own.bubbles.parquet"] {
        let path = folder.path().join(name);
        fs::copy(fixture("kernels-1/graph.bubcap"), &path).unwrap();
        let before = bubblescope::open::open(&path).unwrap();
        let (code, _, stderr) = outcome(bubble_report().arg("convert").arg(&path).arg("-o").arg(&path));
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(bubblescope::open::open(&path).unwrap(), before);
        let kept = fs::read(&path).unwrap();
        let garbage = folder.path().join("garbage");
        fs::write(&garbage, "no recording").unwrap();
        assert_refused(bubble_report().arg("convert").arg(&garbage).arg("-o").arg(&path), 2, &["garbage"]);
        assert_eq!(fs::read(&path).unwrap(), kept);
    }
}

#[test]
fn what_a_comparison_cannot_honour_is_refused() {
    let kept = fixture("kernels-4");
    assert_refused(bubble_report().arg("compare").arg(&kept).args(["--repetitions", "3"]), 2, &["--repetitions"]);
    assert_refused(bubble_report().arg("compare").arg(&kept).args(["--set", "size=256"]), 2, &["--set"]);
    assert_refused(bubble_report().arg("compare").arg(&kept).args(["--variants", "sync,x"]), 2, &["x"]);
    assert_refused(
        bubble_report().args(["compare", "scalar-readback", "--variants", "sync,sync"]),
        2,
        &["sync", "twice"],
    );
    assert_refused(
        bubble_report().args(["run", "scalar-readback", "--set", "lag=5", "--set", "lag=9"]),
        2,
        &["lag", "twice"],
    );
    assert_refused(bubble_report().args(["run", "scalar-readback", "-o", "/no/such/t.bubcap"]), 2, &["/no/such"]);
    let (code, json, _) =
        outcome(bubble_report().arg("compare").arg(&kept).args(["--variants", "sync,graph", "--format", "json"]));
    assert_eq!(code, 0);
    let compare: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(compare["variants"].as_array().unwrap().len(), 2);
}

#[test]
fn the_gate_passes_and_fails_on_the_recordings_as_it_should() {
    let check = |name: &str, limits: &[&str]| outcome(bubble_report().arg("check").arg(fixture(name)).args(limits));
    let limits =
        ["--max-idle", "25%", "--max-recoverable", "20%", "--max-bubble", "200us", "--forbid", "scalar-readback"];
    let (code, stdout, _) = check("kernels-4/graph.bubcap", &limits);
    assert_eq!(code, 0, "{stdout}");
    let (code, stdout, stderr) = check("kernels-4/sync.bubcap", &limits);
    assert_eq!(code, 1, "{stdout}");
    assert_eq!(stdout.matches("FAILED").count(), 3, "{stdout}");
    assert!(stdout.contains("50.5 %") && stderr.contains("3 demands"), "{stdout}{stderr}");
    let (code, ..) = check("kernels-4/sync.bubcap", &[]);
    assert_eq!(code, 2, "a gate without a limit is no gate");
    let (code, _, stderr) = check("kernels-4/sync.bubcap", &["--forbid", "no-such-finding"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("no-such-finding"));
}

#[test]
fn windows_and_changes_are_taken_from_the_command_line() {
    let path = fixture("kernels-12/sync.bubcap");
    let report = |args: &[&str]| {
        let (code, json, stderr) =
            outcome(bubble_report().arg("analyze").arg(&path).args(args).args(["--format", "json"]));
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str::<Value>(&json).unwrap()
    };
    let part = report(&["--from", "240ms", "--to", "245ms"]);
    assert_eq!((&part["window"]["start_ns"], &part["window"]["end_ns"]), (&240_000_000.into(), &245_000_000.into()));
    let one = report(&["--iteration", "7"]);
    assert_eq!(one["devices"][0]["ops"], 14, "twelve kernels and a copy, and the first nanosecond of the next step");
    let what_if = report(&["--what-if", "remove=cuMemcpyDtoH"]);
    let none = reported_span(&fixture("kernels-12/none.bubcap"));
    let answer = &what_if["replay"]["what_if"][0];
    assert_eq!(answer["change"], "remove=cuMemcpyDtoH");
    let predicted = answer["gain_ns"].as_i64().unwrap();
    let measured = reported_span(&path) - none;
    assert!((predicted - measured).abs() * 10 < measured, "{predicted} against {measured}");
    let begins_late = ["sync.bubcap: nothing from 10.000000 s on: the recording runs from 0 ns to 324.132 ms"];
    assert_refused(bubble_report().arg(&path).args(["--from", "10s"]), 2, &begins_late);
    let turned = ["--from", "2ms", "--to", "1ms"];
    assert_refused(bubble_report().arg(&path).args(turned), 2, &["sync.bubcap: nothing between 2.000 ms and 1.000 ms"]);
    assert_refused(
        bubble_report().arg(&path).args(["--nvtx", "step"]),
        2,
        &["sync.bubcap: no range is named \"step\""],
    );
    let unknown = ["--what-if", "remove=cuNoSuchCall"];
    assert_refused(bubble_report().arg(&path).args(unknown), 2, &["no call of cuNoSuchCall"]);
}

#[test]
fn what_is_said_of_a_part_is_true_of_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compat/torch-eager.bubcap");
    // It makes this call, but seconds before.
    let part = ["--from", "3.6s", "--to", "3.7s", "--what-if", "remove=cudaGetDeviceProperties"];
    let (code, stdout, stderr) = outcome(bubble_report().arg(&path).args(part));
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    // What was cut off may have been there.
    let cut = folder.path().join("cut.bubcap");
    fs::write(&cut, &fs::read(&path).unwrap()[..60_000]).unwrap();
    assert_refused(
        bubble_report().arg(&cut).args(["--from", "4s"]),
        2,
        &["cut.bubcap: nothing from 4", "cut off at byte"],
    );
    let after = ["--from", "3s", "--to", "3.1s"];
    assert_refused(bubble_report().arg(&cut).args(after), 3, &["no GPU activity from 3.0", "cut off at byte"]);
}

#[test]
fn a_part_without_work_is_named_as_the_user_named_it() {
    let path = fixture("kernels-12/sync.bubcap");
    let part = ["--from", "0", "--to", "1us"];
    assert_refused(bubble_report().arg(&path).args(part), 3, &["from 0.000 ms to 0.001 ms", "its work lies between"]);
    let (_, _, stderr) = outcome(bubble_report().arg(&path).args(part));
    assert!(!stderr.contains("--whole"), "{stderr}");
}

#[test]
fn a_file_that_is_named_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("-dash.bubcap");
    fs::copy(fixture("kernels-1/graph.bubcap"), &path).unwrap();
    let named = [&path, &folder.path().join(".").join("-dash.bubcap")];
    for named in [named.to_vec(), vec![&path, &folder.path().to_owned()]] {
        let (code, stdout, stderr) = outcome(bubble_report().args(&named));
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.starts_with("1 GPU was idle") && stderr.contains("counts once"), "{stdout}{stderr}");
    }
    let (code, _, stderr) = outcome(bubble_report().current_dir(folder.path()).args(["--", "-dash.bubcap"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn prose_fits_the_columns_that_are_there() {
    let page = |columns: &str| {
        let (_, stdout, _) = outcome(bubble_report().arg(fixture("kernels-4/sync.bubcap")).env("COLUMNS", columns));
        let sentences = stdout.lines().filter(|line| line.ends_with('.')).map(|line| line.chars().count());
        sentences.max().unwrap()
    };
    assert!(page("40") <= 40 && page("100") > 60 && page("100") <= 100);
    assert!(page("none") > 60);
}

#[test]
fn no_recording_is_lost_to_a_file_of_another_form() {
    let folder = tempfile::tempdir().unwrap();
    let spool = fixture("kernels-1/sync.bubcap");
    let trace = folder.path().join("t.bubbles.parquet");
    assert_eq!(outcome(bubble_report().arg("convert").arg(&spool).arg("-o").arg(&trace)).0, 0);
    for name in ["x.csv", "x.json", "x.json.gz", "x.bubbles.parquet", "x.bubcap"] {
        let there = folder.path().join(name);
        for (held, own) in [(&spool, "x.bubcap"), (&trace, "x.bubbles.parquet")] {
            fs::copy(held, &there).unwrap();
            let before = fs::read(&there).unwrap();
            let convert = || {
                let mut command = bubble_report();
                command.arg("convert").arg(&spool).arg("-o").arg(&there);
                command
            };
            if name == own {
                assert_eq!(outcome(&mut convert()).0, 0);
            } else {
                assert_refused(&mut convert(), 2, &[name, "would be lost"]);
                assert_eq!(fs::read(&there).unwrap(), before);
            }
        }
        // Its own older self, or whatever is no recording, goes as ever.
        fs::write(&there, "{}").unwrap();
        assert_eq!(outcome(bubble_report().arg("convert").arg(&spool).arg("-o").arg(&there)).0, 0, "{name}");
    }
}

fn reported_span(path: &Path) -> i64 {
    let (_, json, _) = outcome(bubble_report().arg("analyze").arg(path).args(["--format", "json"]));
    serde_json::from_str::<Value>(&json).unwrap()["devices"][0]["span_ns"].as_i64().unwrap()
}

#[test]
fn a_recording_without_gpu_activity_is_exit_3() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.bubbles.parquet");
    let trace = bubblescope::trace::TraceBuilder::new().finish().unwrap();
    bubblescope::trace::file::write_path(&trace, &path).unwrap();
    assert_refused(bubble_report().arg("analyze").arg(&path), 3, &["no GPU activity"]);
}

#[test]
fn several_recordings_have_a_row_each_the_worst_first() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [("none", "rank0"), ("sync", "rank1")] {
        let from = fixture(&format!("kernels-4/{from}.bubcap"));
        std::fs::copy(from, folder.path().join(to).with_extension("bubcap")).unwrap();
    }
    std::fs::write(folder.path().join("notes.txt"), "no recording").unwrap();
    std::fs::write(folder.path().join("settings.json"), "{\"colour\": 3}").unwrap();
    let (code, stdout, stderr) = outcome(bubble_report().arg(folder.path()));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("2 other files") && stderr.contains("settings.json"), "{stderr}");
    let lines: Vec<usize> = ["rank1", "rank0"].map(|rank| stdout.find(&format!("  {rank}")).unwrap()).into();
    assert!(lines[0] < lines[1], "{stdout}");
    assert!(stdout.starts_with("The GPUs of 2 files were idle"), "both may be of the same GPU: {stdout}");
    assert!(!stdout.contains(&folder.path().display().to_string()), "{stdout}");

    std::fs::write(folder.path().join("rank2.bubcap"), b"cut").unwrap();
    let (code, stdout, stderr) = outcome(bubble_report().arg(folder.path()).args(["--format", "json"]));
    assert_eq!(code, 2, "one of them cannot be used: {stderr}");
    let ranks: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(ranks["schema"], "bubblescope.ranks/1");
    let shares: Vec<f64> =
        ranks["ranks"].as_array().unwrap().iter().map(|r| r["idle_fraction"].as_f64().unwrap()).collect();
    assert!(shares.len() == 2 && shares[0] > shares[1], "{shares:?}");
    assert!(ranks["unusable"][0]["path"].as_str().unwrap().ends_with("rank2.bubcap"));
    // Nothing but files without GPU activity is wrong: that is another code.
    let host_only = fixture_trace_without_gpu(folder.path());
    std::fs::rename(host_only, folder.path().join("rank2.bubcap")).unwrap();
    std::fs::write(folder.path().join("other.parquet"), "no recording").unwrap();
    let (code, _, stderr) = outcome(bubble_report().arg(folder.path()));
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("1 of 3 files has nothing to analyse") && stderr.contains("other.parquet"), "{stderr}");
    let found = |id: &str| ranks["findings"].as_array().unwrap().iter().find(|found| found["id"] == id).cloned();
    let readback = found("scalar-readback").unwrap();
    assert_eq!(readback["files"], 1);
    assert!(readback["path"].as_str().unwrap().ends_with("rank1.bubcap"));
}

#[test]
fn the_name_of_the_output_tells_its_form() {
    use std::io::Read as _;
    let folder = tempfile::tempdir().unwrap();
    let spool = fixture("kernels-4/sync.bubcap");
    let converted = |name: &str| {
        let path = folder.path().join(name);
        let (code, _, stderr) = outcome(bubble_report().arg("convert").arg(&spool).arg("-o").arg(&path));
        assert_eq!(code, 0, "{stderr}");
        std::fs::read(path).unwrap()
    };
    let plain = converted("t.json");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*converted("t.json.gz")).read_to_end(&mut unpacked).unwrap();
    assert!(plain == unpacked && plain.starts_with(b"{\"schemaVersion\":1"));
    let table = String::from_utf8(converted("T.CSV")).unwrap();
    assert!(table.starts_with("kind,category,name,start_ns,dur_ns,") && table.contains("\nbubble,"));
}

#[test]
fn a_folder_is_checked_file_by_file_for_people_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    // A recording is told by its content.
    for (from, to) in [("none", "rank0.bubcap"), ("sync", "rank1")] {
        let from = fixture(&format!("kernels-4/{from}.bubcap"));
        std::fs::copy(from, folder.path().join(to)).unwrap();
    }
    std::fs::write(folder.path().join("settings.json"), "{}").unwrap();
    let check = |options: &[&str]| outcome(bubble_report().arg("check").arg(folder.path()).args(options));
    let (code, stdout, stderr) = check(&["--max-idle", "99%", "--forbid", "scalar-readback"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("1 demand is not met by") && stderr.contains("rank1"), "{stderr}");
    assert!(stdout.contains("rank0.bubcap") && stdout.contains("The gate passed"), "{stdout}");
    let (code, stdout, _) = check(&["--forbid", "scalar-readback", "--format", "json"]);
    assert_eq!(code, 1);
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&told["schema"], &told["passed"]), (&"bubblescope.check/1".into(), &false.into()));
    let files = told["files"].as_array().unwrap();
    let passed: Vec<bool> = files.iter().map(|file| file["passed"].as_bool().unwrap()).collect();
    assert_eq!(passed, [true, false]);
    let limit = &files[1]["limits"][0];
    assert_eq!((&limit["limit"], &limit["finding"]), (&"forbid".into(), &"scalar-readback".into()));
    assert_eq!((&limit["outcome"], &limit["count"]), (&"broken".into(), &199.into()));
    assert_eq!(check(&["--max-idle", "99%"]).0, 0);
    std::fs::write(folder.path().join("rank2.bubcap"), b"cut").unwrap();
    let (code, stdout, stderr) = check(&["--max-idle", "99%", "--format", "json"]);
    assert_eq!(code, 2, "{stderr}");
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["passed"], false);
    assert!(told["files"][2]["error"].is_string(), "{stdout}");
}

#[test]
fn a_dash_is_standard_input_and_convert_takes_no_window() {
    let spool = fixture("kernels-4/sync.bubcap");
    let piped = |args: &[&str]| {
        let mut command = bubble_report();
        command.args(args).pipe_stdin(&spool).unwrap();
        outcome(&mut command)
    };
    let (code, stdout, stderr) = piped(&["-", "--format", "json"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["devices"].as_array().unwrap().len(), 1);
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("t.csv");
    assert_eq!(piped(&["convert", "-", "-o", table.to_str().unwrap()]).0, 0);
    assert!(std::fs::metadata(table).unwrap().len() > 1_000);
    for option in ["--from", "--to", "--nvtx", "--iteration"] {
        let (code, _, stderr) = piped(&["convert", "-", "-o", "t.csv", option, "1"]);
        assert_eq!(code, 2);
        assert!(stderr.contains("convert writes whole recordings"), "{stderr}");
    }
}

/// A spool without any record, in this folder.
fn fixture_trace_without_gpu(folder: &Path) -> std::path::PathBuf {
    let mut spool = cupti::spool::Writer::new(Vec::new(), &cupti::spool::Header::default()).unwrap();
    spool.end(&cupti::spool::End::default()).unwrap();
    let path = folder.join("nothing");
    std::fs::write(&path, spool.into_inner()).unwrap();
    path
}

/// On a machine that has a driver these commands would run, so there is nothing to see there.
#[test]
fn without_a_driver_live_commands_are_exit_4_and_one_line() {
    if Path::new("/dev/nvidiactl").exists() || Path::new("/dev/nvidia0").exists() {
        println!("skipped: this machine has an NVIDIA driver");
        return;
    }
    assert_refused(bubble_report().args(["run", "scalar-readback"]), 4, &["driver", "bubble-report demo"]);
    assert_refused(bubble_report().args(["compare", "scalar-readback"]), 4, &["driver", "bubble-report demo"]);
    let (code, stdout, stderr) = outcome(bubble_report().arg("doctor"));
    assert_eq!(code, 4);
    assert!(stdout.contains("driver") && stderr.trim_end().lines().count() == 1, "{stdout}{stderr}");
}
