//! The recorder library inside a program: [`mock-target`](../../../tests/mock-cupti/src/bin/mock-target/main.rs) plays the
//! program, step by step.

use crate::common::{Built, Spool, built};
use cupti::Config;
use cupti::collector::realtime_ns;
use cupti::inject::{self, CaptureRange, Effect, Fault, REQUEST_VARIABLE, Request, Window};
use cupti::spool::Ending;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A program that has run.
struct Run {
    output: Output,
    folder: tempfile::TempDir,
}

/// What a run starts from.
struct Setting {
    folder: tempfile::TempDir,
    request: Request,
    options: &'static str,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Setting {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let request = Request {
            folder: folder.path().to_owned(),
            config: Config {
                cupti: Some(built().mock.clone()),
                // What is waited for comes soon.
                flush_interval: Duration::from_millis(20),
                ..Config::default()
            },
            ..Request::default()
        };
        Self { folder, request, options: "", variables: Vec::new() }
    }

    fn options(mut self, options: &'static str) -> Self {
        self.options = options;
        self
    }

    fn window(mut self, window: Window) -> Self {
        self.request.window = window;
        self
    }

    /// With buffers that hold all that a thread of a test records.
    fn large_buffers(mut self) -> Self {
        self.request.config.buffer_bytes = 8 << 20;
        self
    }

    fn cupti(mut self, cupti: Option<PathBuf>) -> Self {
        self.request.config.cupti = cupti;
        self
    }

    fn variable(mut self, name: &'static str, value: PathBuf) -> Self {
        self.variables.push((name, value));
        self
    }

    fn command(&self, program: &Path, steps: &[&str]) -> Command {
        let Built { mock, inject, .. } = built();
        let mut command = Command::new(program);
        command
            .args(steps)
            .env("TARGET_MOCK", mock)
            .env("MOCK_CUPTI", self.options)
            .env_remove("BUBBLESCOPE_CUPTI")
            .envs(inject::environment(&self.request, inject).unwrap())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(self, steps: &[&str]) -> Run {
        let output = self.command(&built().target, steps).output().unwrap();
        Run { output, folder: self.folder }
    }
}

impl Run {
    fn spools(&self) -> Vec<Spool> {
        inject::spools(self.folder.path()).unwrap().iter().map(|path| Spool::read(path)).collect()
    }

    fn spool(&self) -> Spool {
        let mut spools = self.spools();
        assert_eq!(spools.len(), 1, "{:?}", self.faults());
        spools.remove(0)
    }

    fn faults(&self) -> Vec<Fault> {
        inject::faults(self.folder.path()).unwrap().into_iter().map(|left| left.fault).collect()
    }

    fn fault(&self) -> Fault {
        let mut faults = self.faults();
        assert_eq!(faults.len(), 1);
        faults.remove(0)
    }

    /// The program ended as it would have without us, and nothing stands in its output.
    #[track_caller]
    fn assert_untouched(&self) -> &Self {
        let (out, err) = (String::from_utf8_lossy(&self.output.stdout), String::from_utf8_lossy(&self.output.stderr));
        assert!(self.output.status.success(), "{}\n{out}\n{err}", self.output.status);
        assert_eq!((&*out, &*err), ("", ""));
        self
    }
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> Vec<u32> {
    range.collect()
}

#[test]
fn every_end_in_order_is_a_complete_recording() {
    for (end, code) in [("", 0), ("exit:3", 3), ("exit-elsewhere:4", 4)] {
        let mut steps = vec!["say", "inject:1", "launch:3:1000", "unfinished"];
        steps.extend(Some(end).filter(|end| !end.is_empty()));
        let run = Setting::new().run(&steps);
        assert_eq!(run.output.status.code(), Some(code), "{end}");
        assert_eq!((&*run.output.stdout, &*run.output.stderr), (&b"out\n"[..], &b"err\n"[..]), "{end}");
        let spool = run.spool();
        assert_eq!(spool.ending, Some(Ending::Complete), "{end}");
        assert_eq!(spool.kernels, numbers(1..=3002), "{end}");
        assert_eq!(spool.kernels_without_end, [3002], "{end}");
        assert!(spool.header.exe.ends_with("mock-target"), "{}", spool.header.exe);
        assert_eq!(spool.header.command_line[1..], steps);
        assert!(run.faults().is_empty());
    }
}

#[test]
fn a_sudden_end_loses_only_what_was_not_fetched() {
    assert!(Config::default().flush_interval < Duration::from_secs(1));
    for (end, code, signal) in [
        ("_exit:5", Some(5), None),
        ("abort", None, Some(libc::SIGABRT)),
        ("kill:9", None, Some(libc::SIGKILL)),
        ("kill:15", None, Some(libc::SIGTERM)),
    ] {
        let run = Setting::new().run(&["inject:1", "launch:3:1000", "settled", "launch:1:5", end]);
        assert_eq!((run.output.status.code(), run.output.status.signal()), (code, signal), "{end}");
        let spool = run.spool();
        assert_ne!(spool.ending, Some(Ending::Complete), "{end}");
        assert_eq!(spool.kernels[..3000], numbers(1..=3000), "{end}");
    }
}

#[test]
fn a_forked_child_is_silent_and_one_that_starts_cuda_itself_is_not() {
    let run = Setting::new().run(&["inject:1", "launch:1:100", "fork", "launch:1:50", "end", "launch:1:10"]);
    let spool = run.assert_untouched().spool();
    assert_eq!((spool.kernels, spool.ending), (numbers(1..=110), Some(Ending::Complete)));

    let run = Setting::new().run(&["fork", "inject:1", "launch:1:50", "end", "inject:1", "launch:1:10"]);
    let spools = run.assert_untouched().spools();
    let mut counts: Vec<_> = spools.iter().map(|spool| spool.kernels.len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [10, 50]);
    assert_ne!(spools[0].header.pid, spools[1].header.pid);
}

#[test]
fn a_program_that_executes_another_is_recorded_and_so_is_the_other() {
    let steps = ["inject:1", "launch:1:100", "fork", "exec", "inject:1", "launch:1:50", "exit:0", "end", "launch:1:10"];
    let run = Setting::new().run(&steps);
    let mut spools = run.assert_untouched().spools();
    spools.sort_by_key(|spool| spool.kernels.len());
    assert_eq!(spools.iter().map(|spool| spool.kernels.len()).collect::<Vec<_>>(), [50, 110]);
    assert_ne!(spools[0].header.pid, spools[1].header.pid);

    // In the same process: the same pid, and a spool for each program.
    let run = Setting::new().run(&["inject:1", "launch:1:100", "settled", "exec", "inject:1", "launch:1:50"]);
    let spools = run.assert_untouched().spools();
    assert_eq!(spools.iter().map(|spool| spool.kernels.len()).collect::<Vec<_>>(), [100, 50]);
    assert_eq!(spools[0].header.pid, spools[1].header.pid);
}

#[test]
fn another_tool_is_named_and_the_program_runs_on() {
    let run = Setting::new().options("holder=CUPTI for Another Tool").run(&["inject:1", "launch:1:10"]);
    assert!(run.assert_untouched().spools().is_empty());
    let fault = run.fault();
    assert!(fault.message.contains("CUPTI for Another Tool"), "{}", fault.message);
    assert!(fault.effect == Effect::NotRecorded && fault.pid > 0 && fault.exe.ends_with("mock-target"));
    assert_eq!(fault.command_line[1..], ["inject:1", "launch:1:10"]);
}

#[test]
fn a_missing_library_is_named() {
    let run = Setting::new().cupti(Some("/nothing/libcupti.so.13".into())).run(&["inject:1", "launch:1:10"]);
    let fault = run.assert_untouched().fault();
    assert!(
        fault.effect == Effect::NotRecorded && fault.message.contains("/nothing/libcupti.so.13"),
        "{}",
        fault.message
    );
}

#[test]
fn a_kind_that_is_refused_is_told() {
    let run = Setting::new().options("refuse=10:21").run(&["inject:1", "launch:1:10", "count:subscribed:0"]);
    let fault = run.assert_untouched().fault();
    assert!(fault.message.contains("kind 10"), "{}", fault.message);
    assert!(run.spools().is_empty());
}

#[test]
fn of_two_versions_the_one_that_fits_the_process_is_taken() {
    let root = tempfile::tempdir().unwrap();
    let copy = |path: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(&built().mock, &path).unwrap();
        path
    };
    let (twelve, thirteen) = (copy("twelve/libcupti.so.12"), copy("thirteen/libcupti.so.13"));
    let cudart = copy("cuda/lib64/libcudart.so.12");
    let own = copy("cuda/extras/CUPTI/lib64/libcupti.so.12");
    let packaged = copy("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
    let extension = copy("venv/lib/python3.12/site-packages/torch/_C.so");
    let run = |loaded: &[&Path]| {
        let load: Vec<String> = loaded.iter().map(|path| format!("load:{}", path.display())).collect();
        let steps: Vec<&str> = load.iter().map(String::as_str).chain(["inject:1"]).collect();
        let places = std::env::join_paths([twelve.parent().unwrap(), thirteen.parent().unwrap()]).unwrap();
        let mut setting = Setting::new().cupti(None).variable("LD_LIBRARY_PATH", places.into());
        setting.request.driver_version = 13_000;
        // Nothing of the machine this runs on.
        for name in
            ["PATH", "HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "PYTHONPATH", "PYENV_ROOT"]
        {
            setting = setting.variable(name, PathBuf::new());
        }
        PathBuf::from(setting.run(&steps).assert_untouched().spool().header.cupti_path)
    };
    if Path::new("/usr/local/cuda").exists() {
        println!("skipped: this machine has a toolkit of its own");
        return;
    }
    assert_eq!(run(&[]), thirteen, "what the driver serves");
    assert_eq!(run(&[&cudart]), own, "what belongs to the process's libcudart");
    assert_eq!(run(&[&extension]), packaged, "what belongs to the process's Python packages");
    assert_eq!(run(&[&cudart, &extension, &twelve]), twelve, "what the process has loaded itself");
}

#[test]
fn a_file_that_cannot_be_written_is_told_where_that_is_possible() {
    // Nowhere to write anything: the program does not notice.
    for folder in ["/proc/self", "/nothing/here"] {
        let mut setting = Setting::new();
        setting.request.folder = folder.into();
        let expected = if folder == "/proc/self" { "inject:1" } else { "inject:0" };
        setting.run(&[expected, "launch:1:10"]).assert_untouched();
    }
    // A file that may not grow: from the first byte, and later.
    Setting::new().run(&["limit:0", "inject:1", "launch:1:10"]).assert_untouched();
    let steps = ["limit:150000", "inject:1", "launch:1:100", "settled", "launch:4:5000"];
    // From then on the program pays for nothing.
    let run = Setting::new().large_buffers().run(&[&steps[..], &["until:kinds_on:0", "launch:1:1000"]].concat());
    let spool = run.assert_untouched().spool();
    assert_eq!(spool.kernels, numbers(1..=100));
    assert_eq!(spool.ending, Some(Ending::Unfinished), "whole chunks only");
    let fault = run.fault();
    assert!(fault.effect == Effect::EndsEarly && fault.message.contains("cannot be written"), "{}", fault.message);
    assert_eq!(fault.message.matches("cannot be written").count(), 1, "{}", fault.message);
    // Each thread had one buffer, and each launch two records in it.
    assert!((1..=4).contains(&fault.lost_buffers), "{fault:?}");
    assert!((10_000..=40_000).contains(&fault.lost_records), "{fault:?}");
}

#[test]
fn each_record_of_a_buffer_that_is_written_in_part_is_in_the_spool_or_lost() {
    let steps = ["inject:1", "launch:1:15000", "sleep:700"];
    let whole = Setting::new().large_buffers().run(&steps);
    whole.assert_untouched();
    let size = std::fs::metadata(&inject::spools(whole.folder.path()).unwrap()[0]).unwrap().len();
    let mut in_part = 0;
    for sixth in 1..6 {
        let limit = format!("limit:{}", size * sixth / 6);
        let run = Setting::new().large_buffers().run(&[&[limit.as_str()], &steps[..]].concat());
        let (spool, fault) = (run.assert_untouched().spool(), run.fault());
        assert_eq!(spool.records + fault.lost_records, 2 * 15_000, "{limit}: {fault:?}");
        assert_eq!(fault.lost_buffers, 1);
        in_part += usize::from(spool.records > 0);
    }
    assert!(in_part > 0);
}

#[test]
fn buffers_that_cupti_keeps_are_counted_however_the_program_ends() {
    // What still runs is waited for by no fetch; at an end in order it is taken as it is.
    for (steps, held, outstanding) in [
        (&["unfinished", "settled", "kill:9"][..], 1, None),
        (&["unfinished", "unfinished", "settled", "_exit:0"], 2, None),
        (&["settled", "kill:9"], 0, None),
        (&["unfinished", "settled", "exit:0"], 0, Some(0)),
        // What goes with a context is never given back.
        (&["unfinished", "call:2:164", "exit:0"], 1, Some(1)),
    ] {
        let run = Setting::new().run(&[&["inject:1", "launch:1:100"], steps].concat());
        let spool = run.spool();
        assert_eq!(spool.status.held_buffers, held, "{steps:?}");
        assert_eq!(spool.end.map(|end| end.outstanding), outstanding, "{steps:?}");
        assert_eq!(spool.kernels[..100], numbers(1..=100), "{steps:?}");
    }
}

#[test]
fn what_the_recorder_itself_takes_of_the_memory_is_told() {
    let run = |buffer_bytes| {
        let mut setting = Setting::new();
        setting.request.config.buffer_bytes = buffer_bytes;
        setting.run(&["inject:1", "launch:1:20000", "settled", "exit:0"]).assert_untouched().spool().status
    };
    // A buffer is compressed as a whole, from one copy into another.
    let (small, large) = (run(128 << 10), run(1 << 20));
    assert!((128 << 10..1 << 20).contains(&small.heap_bytes), "{small:?}");
    assert!((2 << 20..4 << 20).contains(&large.heap_bytes), "{large:?}");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let setting = Setting::new();
    let kept = tempfile::tempdir().unwrap();
    // A small disk of its own, in a mount namespace, whose files are fetched before it goes away.
    let script = r#"mount -t tmpfs -o size=64k none "$0" || exit 99; "$@"; code=$?; cp "$0"/* "$KEPT"; exit $code"#;
    let target = &built().target;
    let output = setting
        .command(Path::new("unshare"), &[])
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(setting.folder.path())
        .arg(target)
        .args(["inject:1", "launch:1:100", "settled", "launch:4:20000", "exit:7"])
        .env("KEPT", kept.path())
        .output();
    let output = match output {
        // Of `unshare` itself, of the script, and without `unshare`.
        Ok(Output { status, .. }) if matches!(status.code(), Some(1 | 99)) => {
            println!("skipped: no mount namespace here");
            return;
        }
        Err(error) => {
            println!("skipped: unshare cannot be started: {error}");
            return;
        }
        Ok(output) => output,
    };
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!((&*output.stdout, &*output.stderr), (&b""[..], &b""[..]));
    let spools = inject::spools(kept.path()).unwrap();
    let spool = Spool::read(&spools[0]);
    assert_eq!((spool.kernels, spool.ending), (numbers(1..=100), Some(Ending::Unfinished)));
    let faults = inject::faults(kept.path()).unwrap();
    assert_eq!(faults.len(), 1, "there is room to say it");
    let Fault { message, effect, .. } = &faults[0].fault;
    assert!(*effect == Effect::EndsEarly && message.contains("No space left"), "{message}");
}

#[test]
fn descriptors_that_a_program_closes_are_its_own_from_then_on() {
    let run = Setting::new().run(&["inject:1", "launch:1:100", "settled", "close", "launch:1:100", "until:kinds_on:0"]);
    let spool = run.assert_untouched().spool();
    assert_eq!(spool.kernels, numbers(1..=100));
    assert!(run.fault().message.contains("closed the recorder's file"), "{}", run.fault().message);
}

#[test]
fn a_request_that_cannot_be_read_stops_nothing() {
    let run = |text: &str| {
        let setting = Setting::new();
        let text = text.replace("FOLDER", setting.folder.path().to_str().unwrap());
        let setting = setting.variable(REQUEST_VARIABLE, text.into());
        let run = setting.run(&["inject:0", "launch:1:10"]);
        run.assert_untouched();
        run
    };
    assert!(run("").faults().is_empty());
    assert!(run("not JSON").faults().is_empty());
    let fault = run(r#"{"folder":"FOLDER","config":5}"#).fault();
    assert!(fault.effect == Effect::NotRecorded && fault.message.contains(REQUEST_VARIABLE), "{}", fault.message);
}

fn milliseconds(n: u64) -> Option<Duration> {
    Some(Duration::from_millis(n))
}

#[test]
fn a_window_in_time_begins_after_its_delay() {
    let window = Window { delay: milliseconds(200), ..Window::default() };
    let run = Setting::new().window(window).run(&["inject:1", "until:recording:1", "launch:2:100"]);
    let spool = run.assert_untouched().spool();
    assert_eq!((spool.kernels, spool.ending), (numbers(1..=200), Some(Ending::Complete)));
    assert!(run.faults().is_empty() && spool.header.begins_late && spool.status.off_since_ns == 0);

    let window = Window { delay: milliseconds(600_000), duration: milliseconds(500), range: None };
    let begun = realtime_ns();
    let run = Setting::new().window(window).run(&["inject:1", "count:kinds_on:0", "launch:1:100"]);
    assert!(run.assert_untouched().spools().is_empty());
    let fault = run.fault();
    assert!(fault.message.contains("before the delay was over"), "{}", fault.message);
    let (from, to) = fault.lived.unwrap();
    assert!(begun < from && from < to && to < realtime_ns(), "{begun} {fault:?}");
}

#[test]
fn a_window_in_time_ends_after_its_duration() {
    for delay in [None, milliseconds(100)] {
        let window = Window { delay, duration: milliseconds(200), range: None };
        // The end is sudden: the recording was complete before.
        let steps =
            ["inject:1", "until:subscribed:0", "count:kinds_on:0", "count:callbacks_on:0", "launch:1:100", "_exit:0"];
        let begun = realtime_ns();
        let run = Setting::new().window(window).run(&steps);
        let spool = run.assert_untouched().spool();
        assert_eq!((spool.kernels, spool.ending), (Vec::new(), Some(Ending::Complete)));
        assert!(run.faults().is_empty());
        let off = spool.status.off_since_ns - spool.header.start_realtime_ns;
        // The clock that tells the time of day may go a little slower than the one that is waited by.
        assert!(190_000_000 < off && spool.status.off_since_ns < realtime_ns(), "off after {off} ns");
        let late = Duration::from_nanos(u64::try_from(spool.header.start_realtime_ns - begun).unwrap());
        assert!(spool.header.begins_late == delay.is_some() && delay.unwrap_or_default() * 9 / 10 <= late, "{late:?}");
    }
}

#[test]
fn a_window_that_is_open_at_the_end_is_complete() {
    let window = Window { delay: None, duration: milliseconds(60_000), range: None };
    let run = Setting::new().window(window).run(&["inject:1", "launch:1:100"]);
    let spool = run.assert_untouched().spool();
    assert_eq!((spool.kernels, spool.ending), (numbers(1..=100), Some(Ending::Complete)), "from the first launch on");
    assert!(!spool.header.begins_late && spool.status.off_since_ns == 0, "from its start to its end");
}

#[test]
fn the_profiler_api_marks_what_is_recorded() {
    let range = Some(CaptureRange::CudaProfilerApi);
    for domain in [("call:2:171", "call:2:172"), ("call:1:308", "call:1:309")] {
        let (start, stop) = domain;
        let steps = [
            "inject:1",
            "launch:1:100",
            start,
            "launch:1:50",
            stop,
            "count:kinds_on:0",
            "launch:1:100",
            start,
            "launch:1:100",
            "until:subscribed:0",
        ];
        let run = Setting::new().window(Window { range: range.clone(), ..Window::default() }).run(&steps);
        let spool = run.assert_untouched().spool();
        assert_eq!((spool.kernels, spool.ending), (numbers(101..=150), Some(Ending::Complete)));
    }
    let window = Window { range, ..Window::default() };
    let run = Setting::new().window(window).run(&["inject:1", "launch:1:10"]);
    assert!(run.assert_untouched().fault().message.contains("cudaProfilerStart"), "{}", run.fault().message);
}

#[test]
fn work_that_outlasts_its_window_has_no_end() {
    let window = Window { range: Some(CaptureRange::CudaProfilerApi), ..Window::default() };
    let steps = ["inject:1", "call:2:171", "unfinished", "call:2:172", "until:subscribed:0", "_exit:0"];
    let run = Setting::new().window(window).run(&steps);
    let spool = run.assert_untouched().spool();
    assert_eq!((spool.kernels, spool.kernels_without_end), (numbers(1..=2), vec![2]));
    assert_eq!(spool.ending, Some(Ending::Complete), "it was waited for, but not for ever");
}

#[test]
fn an_nvtx_range_marks_what_is_recorded() {
    let window = Window { range: Some(CaptureRange::Nvtx { name: "step".to_owned() }), ..Window::default() };
    let steps = [
        "inject:1",
        "nvtx:1",
        "count:nvtx:1",
        "push:other",
        "launch:1:100",
        "push:step",
        "launch:1:50",
        "push:inner",
        "pop",
        "launch:1:50",
        "pop",
        "launch:1:100",
        "pop",
    ];
    // NVTX cannot be handed over before CUDA starts where there is no driver, so it comes second here.
    let run = Setting::new().window(window).run(&steps);
    let spool = run.assert_untouched().spool();
    assert_eq!((spool.kernels, spool.ending), (numbers(101..=200), Some(Ending::Complete)));
}

#[test]
fn a_child_forked_before_the_range_is_recorded_too() {
    let window = Window { range: Some(CaptureRange::Nvtx { name: "step".to_owned() }), ..Window::default() };
    let step = |launches| ["push:step", launches, "pop", "launch:1:3"];
    let steps = [
        &["inject:1", "nvtx:1", "push:other", "pop", "fork", "launch:1:2", "inject:1"][..],
        &step("launch:1:50"),
        &["count:kinds_on:0", "end"],
        &step("launch:1:10"),
    ];
    let run = Setting::new().window(window.clone()).run(&steps.concat());
    let spools = run.assert_untouched().spools();
    assert!(run.faults().is_empty(), "{:?}", run.faults());
    let mut counts: Vec<_> = spools.iter().map(|spool| spool.kernels.len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [10, 50]);
    assert!(spools.iter().all(|spool| spool.ending == Some(Ending::Complete)));

    // A child that marks no range says so for itself.
    let steps = ["inject:1", "nvtx:1", "fork", "inject:1", "end", "push:step", "launch:1:10", "pop"];
    let run = Setting::new().window(window).run(&steps);
    let (spool, fault) = (run.assert_untouched().spool(), run.fault());
    assert_eq!(spool.kernels.len(), 10);
    assert!(fault.message.contains("never entered") && fault.pid != spool.header.pid, "{fault:?}");
}

#[test]
fn nvtx_without_a_driver_stays_off() {
    let mut setting = Setting::new();
    setting.request.config.nvtx = true;
    if cupti::loader::Driver::probe().is_ok() {
        println!("skipped: there is a driver here");
        return;
    }
    let run = setting.run(&["nvtx:0", "say", "exit:3"]);
    assert_eq!(run.output.status.code(), Some(3));
    assert_eq!((&*run.output.stdout, &*run.output.stderr), (&b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn records_of_a_context_are_fetched_before_it_is_destroyed() {
    for call in ["call:2:164", "call:1:322", "call:1:389", "call:1:545"] {
        let run = Setting::new().run(&["inject:1", "launch:1:100", call, "launch:1:10"]);
        assert_eq!(run.assert_untouched().spool().kernels, numbers(1..=110), "{call}");
    }
}
