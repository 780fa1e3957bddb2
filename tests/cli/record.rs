//! `record`, with shell scripts as programs: they find the recording's folder in their environment, as the recorder
//! library does, and leave spools there that were recorded on a GPU.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bubblescope::capture::library;
use bubblescope::open::open;
use serde_json::Value;

use super::fixture;
use super::interrupted::until;
use super::place::{Going, Place, link_to, program, text};

/// Runs a script that is not recorded well or badly, and gives its exit code and standard error.
fn outcome(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    assert_eq!(text(&output.stdout), "", "standard output is the program's");
    (output.status.code().unwrap(), text(&output.stderr))
}

#[test]
fn the_exit_code_is_the_programs() {
    let place = Place::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("exit 125", 125), ("kill -9 $$", 137), ("kill -15 $$", 143)] {
        let (got, stderr) = outcome(&mut place.record(&[], script));
        assert_eq!(got, code, "{script}: {stderr}");
        assert!(stderr.contains("no process started CUDA"), "{stderr}");
    }
    assert_eq!(place.files(), BTreeSet::new(), "nothing was recorded and nothing is left");
}

#[test]
fn input_and_output_pass_byte_for_byte() {
    let bytes: Vec<u8> = (0..200_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let place = Place::new();
    let mut child = place
        .record(&[], "leave \"$1\" $$; cat; printf 'words\\n' >&2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn({
        let bytes = bytes.clone();
        move || stdin.write_all(&bytes).unwrap()
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, bytes);
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("words\n") && stderr.contains("recorded 1 process"), "{stderr}");
    assert!(stderr.contains("Idle time is reliable"), "the report is at the end: {stderr}");
}

#[test]
fn the_environment_and_the_folder_stay_as_they_were() {
    let place = Place::new();
    let seen = |command: &mut Command| -> BTreeSet<Vec<u8>> {
        let output = command.env("WITH_ODD_BYTES", "a=b\nc").env("EMPTY", "").output().unwrap();
        assert!(output.status.success());
        output.stdout.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
    };
    let script = "cat /proc/self/environ; pwd";
    let mut plain = Command::new("sh");
    plain.args(["-c", script]).current_dir(place.folder.path());
    plain.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    for variable in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "BUBBLESCOPE_INJECT"] {
        plain.env_remove(variable);
    }
    let plain = seen(&mut plain);
    let recorded = seen(place.bubble_report(&[]).args(["sh", "-c", script]));
    let added: Vec<String> = recorded.difference(&plain).map(|variable| text(variable)).collect();
    assert_eq!(plain.difference(&recorded).count(), 0);
    let names: Vec<&str> = added.iter().map(|variable| variable.split('=').next().unwrap()).collect();
    assert_eq!(names, ["BUBBLESCOPE_INJECT", "CUDA_INJECTION64_PATH"]);
}

#[test]
fn options_reach_the_recorder() {
    let place = Place::new();
    let request = |options: &[&str]| -> Value {
        let output = place.bubble_report(options).args(["sh", "-c", "printf %s \"$BUBBLESCOPE_INJECT\""]).output();
        serde_json::from_slice(&output.unwrap().stdout).unwrap()
    };
    let usual = request(&[]);
    for option in ["nvtx", "memory", "events", "all_apis"] {
        assert_eq!(usual["config"][option], false, "{option}");
        let asked = request(&[&format!("--{}", option.replace('_', "-"))]);
        assert_eq!(asked["config"][option], true, "{option}");
    }
    let asked = request(&["--graphs=graph", "--cupti", "/x/libcupti.so", "--delay", "2s", "--duration", "250ms"]);
    assert_ne!(usual["config"]["graphs"], asked["config"]["graphs"]);
    assert_eq!(asked["config"]["cupti"], "/x/libcupti.so");
    assert_eq!(asked["window"]["delay"]["secs"], 2);
    assert_eq!(asked["window"]["duration"]["nanos"], 250_000_000);
    assert_ne!(request(&["--capture-range", "nvtx:step"])["window"]["range"], usual["window"]["range"]);
}

#[test]
fn what_fails_before_the_start_is_125_and_starts_nothing() {
    let place = Place::new();
    fs::create_dir(place.path("folder.bubcap")).unwrap();
    let started = place.path("started");
    let refused = |options: &[&str], variables: &[(&str, &str)], words: &[&str]| {
        let (code, stderr) = outcome(place.record(options, "touch started").envs(variables.iter().copied()));
        assert_eq!(code, 125, "{stderr}");
        for word in words {
            assert!(stderr.contains(word), "`{word}` is not in: {stderr}");
        }
        assert!(!started.exists(), "{options:?}");
        stderr
    };
    for (options, words) in [
        (&["-o", "/no/such/t.bubcap"][..], "/no/such"),
        (&["-o", "t.xyz"], "t.xyz"),
        (&["--report", "/no/such/r.json"], "/no/such"),
        (&["--format", "json"], "--report"),
        (&["-o", "folder.bubcap"], "folder.bubcap"),
        (&["-o", "folder.bubcap/"], "folder.bubcap"),
        (&["-o", "folder.bubcap/t.json/t.json"], "t.json"),
        (&["--report", "folder.bubcap"], "folder.bubcap"),
    ] {
        assert_eq!(refused(options, &[], &[words]).trim_end().lines().count(), 1);
    }
    refused(&["--capture-range", "cupti"], &[], &["nvtx:NAME"]);
    refused(&["--no-such-option"], &[], &["--no-such-option"]);
    let other = [("CUDA_INJECTION64_PATH", "/opt/nsys/inject.so")];
    refused(&[], &other, &["CUDA_INJECTION64_PATH", "/opt/nsys/inject.so", "unset"]);
    refused(&[], &[("BUBBLESCOPE_INJECT", "{}")], &["BUBBLESCOPE_INJECT"]);
    assert_eq!(place.bubble_report(&[]).output().unwrap().status.code(), Some(125), "there is no command");
    let help = place.bubble_report(&["--help"]).output().unwrap();
    assert!(help.status.success() && text(&help.stdout).contains("125"));
}

#[test]
fn a_program_that_cannot_be_run_is_126_or_127() {
    let place = Place::new();
    let file = place.path("text");
    fs::write(&file, "no program").unwrap();
    let run = |program: &Path| outcome(place.bubble_report(&[]).arg(program));
    let (code, stderr) = run(Path::new("no-such-program"));
    assert_eq!((code, stderr.trim_end().lines().count()), (127, 1), "{stderr}");
    assert!(stderr.contains("no-such-program"));
    assert_eq!(run(&place.path("missing")).0, 127);
    let (code, stderr) = run(&file);
    assert_eq!((code, stderr.trim_end().lines().count()), (126, 1), "{stderr}");
    assert_eq!(run(place.folder.path()).0, 126);
    assert_eq!(place.files(), BTreeSet::from(["text".to_owned()]));
}

#[test]
fn a_recording_is_kept_where_and_as_it_is_asked_for() {
    let place = Place::new();
    let script = "cd /; leave \"$1\" $$";
    let (code, stderr) = outcome(&mut place.record(&["-o", "t.bubbles.parquet"], script));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("t.bubbles.parquet"), "{stderr}");
    let expected = open(&fixture("kernels-1/sync.bubcap")).unwrap();
    let trace = open(&place.path("t.bubbles.parquet")).unwrap();
    assert_eq!((trace.ops, trace.calls), (expected.ops, expected.calls));
    assert!(trace.meta.source.command.unwrap().starts_with("sh -c"));

    assert_eq!(outcome(&mut place.record(&["-o", "t.bubcap"], script)).0, 0);
    assert_eq!(fs::read(place.path("t.bubcap")).unwrap(), fs::read(fixture("kernels-1/sync.bubcap")).unwrap());

    let words = ["--report", "r.txt", "-o", "t.bubbles.parquet"];
    let (_, stderr) = outcome(&mut place.record(&words, script));
    assert_eq!(stderr.trim_end().lines().count(), 1, "only the summary: {stderr}");
    assert!(fs::read_to_string(place.path("r.txt")).unwrap().contains("Idle time is reliable"));
    let json = ["--report", "r.json", "--format", "json", "-o", "t.bubbles.parquet"];
    outcome(&mut place.record(&json, script));
    let report: Value = serde_json::from_slice(&fs::read(place.path("r.json")).unwrap()).unwrap();
    assert_eq!(report["schema"], "bubblescope.report/1");
    assert_eq!(place.files().len(), 4, "{:?}", place.files());
}

#[test]
fn without_a_name_nothing_is_overwritten() {
    let place = Place::new();
    let script = "leave \"$1\" $$";
    for _ in 0..3 {
        assert_eq!(outcome(&mut place.record(&[], script)).0, 0);
    }
    let names = ["sh-2.bubbles.parquet", "sh-3.bubbles.parquet", "sh.bubbles.parquet"].map(str::to_owned);
    assert_eq!(place.files(), BTreeSet::from(names));
}

#[test]
fn several_processes_become_one_trace() {
    let place = Place::new();
    let script = "leave \"$1\" 5000001; leave \"$2\" 5000002; exit 9";
    let (code, stderr) = outcome(&mut place.record(&["-o", "t.bubbles.parquet"], script));
    assert_eq!(code, 9);
    assert!(stderr.contains("recorded 2 processes"), "{stderr}");
    let whole = open(&place.path("t.bubbles.parquet")).unwrap();
    let parts = ["kernels-1/sync.bubcap", "kernels-4/graph.bubcap"].map(|name| open(&fixture(name)).unwrap());
    assert_eq!(whole.ops.len(), parts.iter().map(|part| part.ops.len()).sum::<usize>());
    assert_eq!((whole.devices.len(), &whole.devices[0].uuid), (1, &parts[0].devices[0].uuid), "one GPU");

    let (_, stderr) = outcome(&mut place.record(&["-o", "t.bubcap"], script));
    assert!(stderr.contains("t-1.bubcap") && stderr.contains("t-2.bubcap"), "{stderr}");
    let lengths: BTreeSet<usize> =
        ["t-1.bubcap", "t-2.bubcap"].iter().map(|name| open(&place.path(name)).unwrap().ops.len()).collect();
    assert_eq!(lengths, parts.iter().map(|part| part.ops.len()).collect());
}

#[test]
fn a_killed_program_leaves_what_was_recorded() {
    let place = Place::new();
    let script = "head -c 11700 \"$1\" > \"$folder/$$-1.bubcap\"; kill -9 $$";
    let (code, stderr) = outcome(&mut place.record(&["-o", "t.bubbles.parquet"], script));
    assert_eq!(code, 137, "{stderr}");
    let trace = open(&place.path("t.bubbles.parquet")).unwrap();
    assert!(!trace.ops.is_empty() && trace.meta.losses.is_damaged());

    // At once: before anything was recorded, beside a process that was.
    let script = "head -c 10 \"$1\" > \"$folder/5000041-1.bubcap\"; leave \"$1\" 5000042; kill -9 $$";
    let (code, stderr) = outcome(&mut place.record(&["-o", "t.bubbles.parquet"], script));
    assert_eq!(code, 137, "{stderr}");
    assert!(stderr.contains("process 5000041") && stderr.contains("recorded 1 process"), "{stderr}");
    let script = "head -c 10 \"$1\" > \"$folder/5000041-1.bubcap\"";
    let (code, stderr) = outcome(&mut place.record(&[], script));
    assert_eq!(code, 0);
    assert!(stderr.contains("process 5000041"), "{stderr}");
}

#[test]
fn a_process_that_was_not_recorded_is_told_and_makes_idle_time_unreliable() {
    let place = Place::new();
    let fault =
        r#"{"pid":77,"command_line":["python","other.py"],"message":"nsys records it","effect":"not_recorded"}"#;
    let script = format!("echo '{fault}' > \"$folder/77-1.fault.json\"; leave \"$1\" 5000005");
    let options = ["-o", "t.bubbles.parquet", "--report", "r.json", "--format", "json"];
    let (code, stderr) = outcome(&mut place.record(&options, &script));
    assert_eq!(code, 0);
    assert!(stderr.contains("process 77 (python other.py)") && stderr.contains("nsys records it"), "{stderr}");
    let report: Value = serde_json::from_slice(&fs::read(place.path("r.json")).unwrap()).unwrap();
    assert_eq!(report["quality"]["idle_reliable"], false);
    assert!(report["quality"]["reasons"].to_string().contains("process 77 (python other.py)"));
    // The trace file says the same.
    let output = Command::new(program()).arg(place.path("t.bubbles.parquet")).output();
    assert!(text(&output.unwrap().stdout).contains("process 77"));
}

#[test]
fn recorded_processes_that_outlive_the_program_are_waited_for() {
    let place = Place::new();
    // It lives until somebody opens the pipe.
    let script = "mkfifo go; cat go > /dev/null 2>&1 & leave \"$1\" $!; leave \"$2\" $$; echo ready; exit 4";
    let mut going = Going::start(&place, script);
    going.hears("waiting a little");
    drop(fs::File::options().write(true).open(place.path("go")).unwrap());
    let output = going.end();
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("recorded 2 processes"), "{}", text(&output.stderr));
}

#[test]
fn what_a_program_leaves_in_the_background_is_named_and_not_waited_for_for_ever() {
    let place = Place::new();
    let script = "(setsid sh -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1 &)
        until [ -s pid ]; do sleep 0.01; done; exit 5";
    let (code, stderr) = outcome(&mut place.record(&[], script));
    let left = fs::read_to_string(place.path("pid")).unwrap();
    assert!(Command::new("kill").arg(left.trim()).status().unwrap().success(), "it still runs: {stderr}");
    assert_eq!(code, 5);
    assert!(stderr.contains("still runs; what it does from now on is not in the recording"), "{stderr}");

    // What one that was recorded writes from then on is in no file that is kept.
    let script = "export folder
        (setsid sh -c 'cp \"$1\" \"$folder/$$-1.bubcap\"; exec 9>> \"$folder/$$-1.bubcap\"; echo $$ > late
        until [ -e over ]; do sleep 0.01; done; echo late >&9; echo written > late' sh \"$1\" > /dev/null 2>&1 &)
        until [ -s late ]; do sleep 0.01; done";
    let (code, stderr) = outcome(&mut place.record(&["-o", "t.bubcap"], script));
    assert!(code == 0 && stderr.contains("still runs"), "{stderr}");
    fs::write(place.path("over"), "").unwrap();
    until(|| (fs::read(place.path("late")).unwrap() == b"written\n").then_some(()));
    assert_eq!(fs::read(place.path("t.bubcap")).unwrap(), fs::read(fixture("kernels-1/sync.bubcap")).unwrap());
}

#[test]
fn a_disk_that_is_full_when_the_trace_is_written_costs_no_recording() {
    let place = Place::new();
    // The library has its place before the disk is full.
    outcome(&mut place.record(&[], ""));
    let mut command = Command::new("sh");
    // In units of 512 bytes: enough for the spool and not for the export.
    command.args(["-c", "ulimit -f 100; exec \"$@\"", "sh"]);
    let record = place.record(&["-o", "t.json"], "leave \"$1\" $$; exit 4");
    command.arg(record.get_program()).args(record.get_args()).current_dir(place.folder.path());
    // The same cache folder as that of the first recording.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    let (code, stderr) = outcome(&mut command);
    assert_eq!(code, 4, "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    let kept = stderr.split("kept in ").nth(1).and_then(|rest| rest.split(": ").next()).unwrap();
    let spools: Vec<PathBuf> = fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(fs::read(&spools[0]).unwrap(), fs::read(fixture("kernels-1/sync.bubcap")).unwrap());
    assert_eq!((spools.len(), place.files().len()), (1, 1), "{:?}", place.files());
}

#[test]
fn the_library_needs_neither_a_cache_nor_temporary_files() {
    let place = Place::new();
    let mut command = place.bubble_report(&[]);
    command.args([
        "sh",
        "-c",
        "cmp \"$CUDA_INJECTION64_PATH\" \"$CUDA_INJECTION64_PATH\" && printf %s \"$CUDA_INJECTION64_PATH\"",
    ]);
    let output = command.env("XDG_CACHE_HOME", "/proc/none").env("TMPDIR", "/proc/none").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let library = PathBuf::from(text(&output.stdout));
    assert!(library.starts_with(place.folder.path().canonicalize().unwrap()), "{library:?}");
    assert_eq!(place.files(), BTreeSet::new());
}

#[test]
fn an_interrupt_ends_the_program_politely_and_the_recording_is_kept() {
    let place = Place::new();
    let script = "trap 'leave \"$1\" $$; echo bye; exit 42' INT; echo ready; while :; do sleep 0.05; done";
    let mut going = Going::start(&place, script);
    going.signal("INT");
    going.hears("waiting for the program");
    let output = going.end();
    assert_eq!(output.status.code(), Some(42), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "bye\n");
    assert!(text(&output.stderr).contains("recorded 1 process"));
    assert!(!open(&place.path("t.bubbles.parquet")).unwrap().ops.is_empty());
}

#[test]
fn a_program_that_does_not_listen_is_killed_in_the_end() {
    let place = Place::new();
    let script = "trap '' INT TERM; leave \"$1\" $$; echo ready; while :; do sleep 0.05; done";
    let mut going = Going::start(&place, script);
    going.signal("INT");
    going.hears("waiting for the program");
    going.signal("INT");
    going.hears("ending");
    // After a while.
    going.hears("killing");
    let output = going.end();
    assert_eq!(output.status.code(), Some(137), "{}", text(&output.stderr));
    assert!(!open(&place.path("t.bubbles.parquet")).unwrap().ops.is_empty());
}

#[test]
fn other_signals_are_handed_on() {
    for (name, code) in [("TERM", 143), ("HUP", 129), ("USR1", 138)] {
        let place = Place::new();
        let going = Going::start(&place, "echo ready; exec sleep 600");
        going.signal(name);
        let output = going.end();
        assert_eq!((output.status.signal(), output.status.code()), (None, Some(code)), "{}", text(&output.stderr));
    }
}

#[test]
fn what_was_ignored_stays_ignored() {
    let place = Place::new();
    // As a shell starts commands in the background.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT HUP; exec \"$@\"", "sh"]);
    let record = place.record(&[], "kill -INT $$; kill -HUP $$; kill -INT $PPID; sleep 0.1; exit 6");
    command.arg(record.get_program()).args(record.get_args()).current_dir(place.folder.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("waiting for the program"), "{}", text(&output.stderr));
}

#[test]
fn a_library_beside_the_program_is_preferred_to_the_one_it_carries() {
    let place = Place::new();
    let folder = place.folder.path().canonicalize().unwrap();
    let loaded = |program: &Path| {
        let mut command = Command::new(program);
        command.args(["record", "--", "sh", "-c", "printf %s \"$CUDA_INJECTION64_PATH\""]);
        command.env_remove("CUDA_INJECTION64_PATH").env_remove("BUBBLESCOPE_INJECT");
        let output = command.env("XDG_CACHE_HOME", folder.join("cache")).current_dir(&folder).output().unwrap();
        PathBuf::from(text(&output.stdout))
    };
    let program = link_to(&folder.join("bin"));
    let carried = loaded(&program);
    assert!(carried.starts_with(folder.join("cache")) && carried.ends_with(library::FILE_NAME), "{carried:?}");
    let beside = folder.join("bin").join(library::FILE_NAME);
    fs::write(&beside, "another").unwrap();
    assert_eq!(loaded(&program), beside);
}

/// The library that plays CUPTI and the program that plays a CUDA program, built by cargo.
fn mock() -> (String, String) {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "mock-cupti", "--message-format", "json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let messages: Vec<Value> =
        text(&output.stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let files = messages.iter().filter_map(|message| message["filenames"].as_array()).flatten();
    let files: Vec<&str> = files.filter_map(Value::as_str).collect();
    let file = |name: &str| (*files.iter().find(|file| Path::new(file).ends_with(name)).unwrap()).to_owned();
    (file("libmock_cupti.so"), file("mock-target"))
}

/// The recorder library itself in programs that play CUDA programs.
#[test]
fn programs_are_recorded_from_end_to_end() {
    let (cupti, target) = mock();
    let place = Place::new();
    let record = |script: &str, options: &str| {
        let mut command = place.bubble_report(&["--cupti", &cupti, "-o", "t.bubbles.parquet"]);
        command.args(["sh", "-c", script, &target]).env("TARGET_MOCK", &cupti).env("MOCK_CUPTI", options);
        let (code, stderr) = outcome(&mut command);
        let trace = open(&place.path("t.bubbles.parquet")).ok();
        let _ = fs::remove_file(place.path("t.bubbles.parquet"));
        (code, stderr, trace)
    };
    let (code, stderr, trace) = record("exec \"$0\" inject:1 launch:2:500 exit:7", "");
    let trace = trace.unwrap();
    assert_eq!((code, trace.ops.len(), trace.calls.len(), trace.processes.len()), (7, 1000, 1000, 1), "{stderr}");
    assert!(stderr.contains("1 process, 1,000 kernels"), "{stderr}");

    let tree = "\"$0\" inject:1 launch:1:300 & \"$0\" inject:1 launch:1:400 & wait; \"$0\" inject:1 & wait; exit 5";
    let (code, stderr, trace) = record(tree, "");
    let trace = trace.unwrap();
    assert_eq!((code, trace.ops.len()), (5, 700), "{stderr}");
    let mut kernels = vec![0; trace.processes.len()];
    trace.ops.indices().for_each(|op| kernels[trace.op_process(op).index()] += 1);
    kernels.sort_unstable();
    assert_eq!(kernels[kernels.len() - 2..], [300, 400], "{kernels:?}");

    let (code, stderr, trace) = record("exec \"$0\" inject:1 launch:1:300 settled kill:9", "");
    assert_eq!((code, trace.map(|trace| trace.ops.len())), (137, Some(300)), "{stderr}");

    // Whatever a program does to its descriptors, its folder, its parents or its children's environment.
    for (script, kernels) in [
        ("exec \"$0\" close-standard inject:1 launch:1:50 print exit:4", 50),
        ("exec \"$0\" close inject:1 launch:1:50 exit:4", 50),
        ("mkdir sub; cd sub; rmdir ../sub; exec \"$0\" inject:1 launch:1:50 exit:4", 50),
        ("\"$0\" inject:1 launch:1:40 say | (\"$0\" inject:1 launch:1:30; cat > /dev/null); exit 4", 70),
        (
            "(setsid \"$0\" inject:1 launch:1:50 touch:begun sleep:500 > /dev/null 2>&1 &)
            until [ -e begun ]; do sleep 0.01; done; exit 4",
            50,
        ),
        ("env -i TARGET_MOCK=\"$TARGET_MOCK\" \"$0\" launch:1:9; exec \"$0\" inject:1 launch:1:50 exit:4", 50),
    ] {
        let (code, stderr, trace) = record(script, "");
        assert_eq!((code, trace.map(|trace| trace.ops.len())), (4, Some(kernels)), "{script}: {stderr}");
    }

    let (_, stderr, trace) = record("exec \"$0\" inject:1 launch:1:30 settled exec inject:1 launch:1:40", "times=now");
    let trace = trace.unwrap();
    let told: Vec<bool> = trace.processes.iter().map(|process| process.name.contains("after exec)")).collect();
    assert_eq!((told, trace.ops.len()), (vec![false, true], 70), "{stderr}");
    assert!(!format!("{:?}", trace.processes).contains("container"));

    let (code, stderr, trace) = record("exec \"$0\" inject:1 launch:1:300 exit:6", "holder=another profiler");
    assert_eq!((code, trace.is_none()), (6, true));
    assert!(stderr.contains("another profiler"), "{stderr}");
}

/// What a report says of how far idle time can be relied on.
fn reasons(report: &Path) -> String {
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let reasons = report["quality"]["reasons"].to_string();
    assert_eq!(report["quality"]["idle_reliable"], reasons == "[]");
    reasons
}

/// The same for a recording.
fn reasons_of(recording: &Path) -> String {
    let kept = recording.with_extension("reasons.json");
    let output = Command::new(program()).arg(recording).args(["--format", "json"]).output();
    fs::write(&kept, output.unwrap().stdout).unwrap();
    reasons(&kept)
}

/// Every way in which the mock's processes are not recorded to their end, and what is said of it, from the trace and
/// from the kept spools.
#[test]
fn what_was_not_recorded_is_said_of_the_trace_and_of_kept_spools() {
    let (cupti, target) = mock();
    let record = |options: &[&str], script: &str| {
        let place = Place::new();
        let fixed = ["--cupti", &cupti, "-o", "t.bubcap", "--report", "r.json", "--format", "json"];
        let mut command = place.bubble_report(&[&fixed, options].concat());
        command.args(["sh", "-c", script, &target]).env("TARGET_MOCK", &cupti).env("MOCK_CUPTI", "times=now");
        let (_, stderr) = outcome(&mut command);
        assert!(place.path("r.json").exists(), "{script}: {stderr}");
        let said = reasons(&place.path("r.json"));
        if place.path("t.bubcap").exists() {
            assert_eq!(reasons_of(&place.path("t.bubcap")), said, "of the kept spool");
        }
        (place, said)
    };

    // How long the mock's work waited for its turn on this machine is another matter.
    let all_there = |said: &str| {
        let reasons: Vec<String> = serde_json::from_str(said).unwrap();
        reasons.iter().all(|reason| reason.contains("idle time comes from something that was not recorded"))
    };

    // Ended in order, one after the other.
    let (_, said) = record(&[], "\"$0\" inject:1 launch:1:50; \"$0\" inject:1 launch:1:50");
    assert!(all_there(&said), "{said}");

    // A buffer with work that has not finished is lost with the process.
    let (_, said) = record(&[], "exec \"$0\" inject:1 launch:1:300 unfinished settled kill:9");
    assert!(said.contains("1 buffer of records was not given back"), "{said}");
    let (_, said) = record(&[], "exec \"$0\" inject:1 launch:1:300 settled kill:9");
    assert!(all_there(&said), "what is fetched in time is not lost: {said}");

    // One that cannot write on, beside one that can.
    let other = "\"$0\" inject:1 launch:1:50 await:broken launch:1:50";
    // By a short name, which is told whole.
    let broken = "ln -s \"$0\" broken-one; ./broken-one limit:150000 inject:1 launch:1:100 settled launch:4:5000 until:kinds_on:0 touch:broken";
    let (place, said) = record(&[], &format!("{other} & {{ {broken}; }} & wait"));
    for part in ["records were dropped", "broken-one limit:150000", "was recorded only until", "cannot be written"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let apart = ["t-1.bubcap", "t-2.bubcap"].map(|name| reasons_of(&place.path(name)));
    let (broken, whole): (Vec<_>, Vec<_>) = apart.iter().partition(|said| said.contains("records were dropped"));
    assert_eq!((broken.len(), whole.len()), (1, 1), "{apart:?}");

    // Alone, what is recorded for a time is all that counts; beside another that goes on, it is not.
    let (_, said) = record(&["--duration", "4s"], "exec \"$0\" inject:1 launch:1:50 until:kinds_on:0 launch:1:50");
    assert!(all_there(&said), "{said}");
    let early = "ln -s \"$0\" early-one; ./early-one inject:1 launch:1:20 until:kinds_on:0 touch:early launch:1:20";
    let late = "\"$0\" await:early inject:1 launch:1:20 sleep:100 launch:1:20";
    let (_, said) = record(&["--duration", "4s"], &format!("{{ {early}; }} & {late} & wait"));
    assert!(said.contains("./early-one inject:1") && said.contains("was recorded only until"), "{said}");
}

#[test]
fn a_folder_that_takes_no_recording_is_named_and_nothing_else() {
    let (code, stderr) = outcome(Command::new(program()).current_dir("/proc").args(["record", "--", "true"]));
    assert_eq!(code, 125, "{stderr}");
    assert!(stderr.contains("cannot record into /proc") && stderr.contains("-o"), "{stderr}");
    assert!(!stderr.contains(".bubble-report-"), "{stderr}");
}
