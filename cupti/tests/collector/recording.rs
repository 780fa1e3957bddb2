//! Whole recordings.

use crate::allocated;
use crate::common::{self, Mock, Spool, run_child};
use cupti::loader::{CuptiSource, Driver, LoaderError};
use cupti::spool::{Ending, Graphs, Reader};
use cupti::{Config, Recorder, RecorderError, Summary};
use std::path::Path;
use std::time::Duration;

fn config() -> Config {
    Config {
        cupti: Some(common::library()),
        // Small, so that buffers fill and come round again.
        buffer_bytes: 64 << 10,
        buffers: 4,
        flush_interval: Duration::from_millis(5),
        ..Config::default()
    }
}

fn start(config: &Config, spool: &Path) -> Result<Recorder, RecorderError> {
    // SAFETY: the library is the mock, which needs no driver.
    Recorder::start_with(unsafe { Driver::assume(13_000) }, config, spool)
}

/// What the mock wrote has to be in the spool, each record once, and nothing else.
fn assert_nothing_lost(mock: &Mock, summary: &Summary, spool: &Spool) {
    assert_eq!(summary.records, mock.count("records"));
    assert_eq!(spool.records, summary.records);
    assert_eq!(spool.end.unwrap().buffers, summary.buffers);
    assert_eq!(spool.end.unwrap().bytes, summary.bytes);
    assert_eq!(spool.ending, Some(Ending::Complete));
    assert_eq!(summary.write_error, None);
    for rule in ["dirty_buffers", "reentered", "filtered_early"] {
        assert_eq!(mock.count(rule), 0, "{rule}");
    }
}

fn one_to(n: u32) -> Vec<u32> {
    (1..=n).collect()
}

scenarios! {
    normal_life("") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        mock.launch(1, 1000);
        recorder.note("window", r#"{"start":1}"#);
        mock.launch(3, 5000);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!(spool.kernels, one_to(16_000));
        assert_eq!(spool.calls, one_to(16_000));
        assert_eq!(spool.kernel_names, ["_Z6kernelPfi"]);
        assert_eq!(spool.callback_names, ["cudaLaunchKernel_v7000"]);
        assert!(summary.drops.is_empty());
        assert_eq!((summary.outstanding, summary.unread_bytes), (0, 0));
        assert_eq!(spool.notes.iter().map(|n| &*n.key).collect::<Vec<_>>(), ["recorder", "window"]);
        assert!(spool.anchors.len() >= 2);
        assert!(spool.anchors.iter().all(|a| (a.realtime_ns - i64::try_from(a.cupti_ns).unwrap()).abs() < 1_000_000));
        assert_eq!(mock.count("system_thread_ids"), 1);
        assert_eq!(mock.count("all_syncs_set"), 1);
        assert_eq!(mock.count("per_thread"), 1);
        assert_eq!(mock.count("device_buffer_bytes"), 2 << 20);
        assert_eq!((mock.count("device_buffers"), mock.count("device_buffer_limit")), (16, 250));
        // cudaGetDevice and cuCtxGetCurrent of the names the mock has.
        assert_eq!(mock.count("filtered"), 2);
        assert_eq!((spool.header.cupti_version, spool.header.driver_version), (130_001, 13_000));
        assert_eq!(spool.header.pid, std::process::id());
        assert_eq!(spool.header.graphs, Graphs::Node);
    };

    more_device_buffers_than_the_usual_limit("") |path| {
        let many = Config { device_buffers: 512, device_buffer_limit: 1000, ..config() };
        start(&many, path).unwrap().stop().unwrap();
        let mock = Mock::loaded();
        assert_eq!((mock.count("device_buffers"), mock.count("device_buffer_limit")), (512, 1000));
    };

    all_calls_when_asked("") |path| {
        let recorder = start(&Config { all_apis: true, ..config() }, path).unwrap();
        recorder.stop().unwrap();
        assert_eq!(Mock::loaded().count("filtered"), 0);
    };

    buffers_completed_on_another_thread("complete=worker") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        mock.launch(4, 2000);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!(spool.kernels, one_to(8000));
    };

    a_thousand_threads("") |path| {
        let recorder = start(&Config { memory_limit: 1 << 30, ..config() }, path).unwrap();
        let mock = Mock::loaded();
        mock.launch(1000, 20);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!(spool.kernels, one_to(20_000));
        assert!(summary.drops.is_empty());
        assert!(summary.buffers >= 1000);
        assert_eq!(mock.count("shared"), 0);
    };

    used_up_memory_is_counted("") |path| {
        // Room for 32 buffers, of 64 KiB as they cannot be smaller.
        let recorder = start(&Config { memory_limit: 2 << 20, ..config() }, path).unwrap();
        let mock = Mock::loaded();
        mock.launch(100, 100);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_eq!(mock.count("lost"), 0, "the library was always given a buffer");
        assert!(summary.drops.discarded_buffers > 0);
        assert_eq!(spool.drops, Some(summary.drops));
        // Every record is either in the spool or among those the summary says were lost.
        let lost_records = mock.count("records") - summary.records;
        assert_eq!(summary.drops.discarded_bytes, lost_records / 2 * (40 + 216));
        assert_eq!(spool.records, summary.records);
        assert!(spool.kernels.windows(2).all(|pair| pair[0] < pair[1]), "no record twice");
    };

    an_empty_buffer("") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        for _ in 0..20 {
            mock.empty_buffer();
        }
        mock.launch(1, 10);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!((summary.buffers, summary.outstanding), (1, 0));
    };

    work_that_still_runs("") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        mock.unfinished();
        mock.launch(1, 3);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        // Two kernels before the record that was not filled in; that one is told as unread.
        assert_eq!(summary.records, 2 + 6);
        assert_eq!(summary.unread_bytes, 216);
        assert_eq!(spool.kernels_without_end, [2]);
        assert_eq!(spool.kernels, one_to(5));
        // The bytes are all there.
        assert_eq!(spool.bytes, summary.bytes);
        assert_eq!(spool.bytes, 3 * 216 + 3 * (40 + 216));
        assert_eq!(mock.count("dirty_buffers"), 0);
    };

    dropped_records_are_told("") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        mock.drop_records(7);
        mock.launch(1, 1000);
        mock.drop_records(5);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!(summary.drops.records, 12);
        assert_eq!(spool.drops, Some(summary.drops));
    };

    a_name_that_changes("") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        mock.launch(1, 5);
        common::until("the first kernels", || Spool::read(path).kernels == one_to(5));
        mock.rename();
        mock.launch(1, 5);
        recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_eq!(spool.kernel_names, ["_Z6kernelPfi", "_Z7anotherPfi"]);
        assert_eq!(spool.kernels, one_to(10));
    };

    an_unknown_version_is_learned("version=139900;kernel_bytes=264") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        mock.launch(2, 500);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!(spool.size_of(10), Some(264));
        assert_eq!(spool.kernels, one_to(1000));
    };

    an_old_version("version=18;kernel_bytes=208") |path| {
        let optional: Vec<&str> = cupti_sys::Api::OPTIONAL.to_vec();
        let library = common::without(&optional, path);
        let recorder = start(&Config { cupti: Some(library.clone()), ..config() }, path).unwrap();
        let mock = Mock::at(&library);
        mock.launch(2, 500);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!(spool.kernels, one_to(1000));
        assert_eq!(spool.size_of(10), Some(208));
        assert_eq!(mock.count("per_thread"), 0, "its per-thread buffers are not safe");
    };

    a_missing_function_is_named("") |path| {
        for &symbol in cupti_sys::Api::REQUIRED {
            let library = common::without(&[symbol], path);
            let error = start(&Config { cupti: Some(library.clone()), ..config() }, path).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, RecorderError::Loader(LoaderError::Library(_))), "{text}");
            assert!(text.contains(symbol) && text.contains(library.to_str().unwrap()), "{text}");
        }
        // A process that could not be recorded can still try again.
        start(&config(), path).unwrap().stop().unwrap();
    };

    no_such_library("") |path| {
        let missing = path.with_file_name("nothing-here.so");
        let error = start(&Config { cupti: Some(missing.clone()), ..config() }, path).unwrap_err();
        assert!(error.to_string().contains(missing.to_str().unwrap()), "{error}");
        assert!(!path.exists());
    };

    another_tool_is_named("holder=CUPTI for Another Tool") |path| {
        let error = start(&config(), path).unwrap_err();
        assert!(matches!(&error, RecorderError::Busy { holder: Some(name) } if name == "CUPTI for Another Tool"));
        assert!(error.to_string().contains("CUPTI for Another Tool"));
        assert!(!path.exists());
    };

    another_tool_is_named_by_newer_versions("version=130202;holder=x") |path| {
        let error = start(&config(), path).unwrap_err();
        assert!(matches!(error, RecorderError::Busy { holder: Some(name) } if name == "x"));
    };

    another_tool_without_a_name("version=28;holder=x") |path| {
        let library = common::without(&["cuptiSubscribe_v2"], path);
        let error = start(&Config { cupti: Some(library), ..config() }, path).unwrap_err();
        assert!(matches!(error, RecorderError::Busy { holder: None }));
    };

    a_needed_kind_is_refused("refuse=10:21") |path| {
        let error = start(&config(), path).unwrap_err();
        assert!(matches!(&error, RecorderError::Cupti { result: 21, .. }));
        let text = error.to_string();
        assert!(text.contains("kind 10") && text.contains("CUPTI_ERROR_INVALID_KIND"), "{text}");
        assert!(!path.exists());
    };

    a_kind_that_may_be_missing("refuse=52:21") |path| {
        let recorder = start(&config(), path).unwrap();
        Mock::loaded().launch(1, 10);
        recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert!(!spool.header.kinds.contains(&52) && spool.header.kinds.contains(&10));
        assert!(spool.notes[0].json.contains(r#""refused":[[52,21]]"#), "{}", spool.notes[0].json);
        assert_eq!(spool.kernels, one_to(10));
    };

    a_clock_that_fails("timestamp=fails") |path| {
        let recorder = start(&config(), path).unwrap();
        Mock::loaded().launch(1, 10);
        recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert!(spool.anchors.is_empty());
        assert_eq!(spool.kernels, one_to(10));
    };

    a_process_is_recorded_once("") |path| {
        let first = start(&config(), path).unwrap();
        let other = path.with_file_name("other.bubcap");
        assert!(matches!(start(&config(), &other), Err(RecorderError::AlreadyStarted)));
        Mock::loaded().launch(1, 10);
        first.stop().unwrap();
        assert!(matches!(start(&config(), &other), Err(RecorderError::AlreadyStarted)));
        assert!(!other.exists());
        // After the end, work goes on and is not recorded.
        Mock::loaded().launch(2, 1000);
        assert_eq!(Spool::read(path).kernels, one_to(10));
    };

    a_spool_cut_at_every_byte("") |path| {
        let recorder = start(&config(), path).unwrap();
        Mock::loaded().launch(2, 3);
        recorder.note("window", "{}");
        recorder.stop().unwrap();
        let whole = std::fs::read(path).unwrap();
        let read = |bytes: &[u8]| -> Option<Vec<_>> { Some(Reader::new(bytes).ok()?.map(Result::unwrap).collect()) };
        let chunks = read(&whole).unwrap();
        let mut counts = Vec::new();
        for length in 0..whole.len() {
            let Some(kept) = read(&whole[..length]) else {
                assert!(counts.is_empty(), "once the header is whole there is always something");
                continue;
            };
            assert_eq!(kept, chunks[..kept.len()]);
            counts.push(kept.len());
        }
        assert!(counts.is_sorted());
        assert_eq!(counts.last(), Some(&(chunks.len() - 1)));
    };

    whether_cupti_can_be_had("") |path| {
        // SAFETY: the library is the mock, which needs no driver.
        let driver = unsafe { Driver::assume(13_000) };
        let cupti = cupti::collector::try_cupti(driver, Some(&common::library())).unwrap();
        assert_eq!((cupti.version, cupti.source), (130_001, CuptiSource::Given));
        // It has been given back.
        let recorder = start(&config(), path).unwrap();
        let again = cupti::collector::try_cupti(driver, Some(&common::library()));
        assert!(matches!(again, Err(RecorderError::Busy { .. })));
        recorder.stop().unwrap();
        // And once more: a process that lives on leaves CUPTI to others.
        cupti::collector::try_cupti(driver, Some(&common::library())).unwrap();
        let mock = Mock::loaded();
        assert_eq!((mock.count("kinds_on"), mock.count("callbacks_on"), mock.count("subscribed")), (0, 0, 0));
    };

    a_spool_that_cannot_be_created("") |path| {
        let error = start(&config(), &path.join("in/a/file")).unwrap_err();
        assert!(matches!(error, RecorderError::Spool { .. }));
        // CUPTI has been given back.
        start(&config(), path).unwrap().stop().unwrap();
    };

    a_full_disk("") |_| {
        let recorder = start(&config(), Path::new("/dev/full"));
        assert!(matches!(recorder, Err(RecorderError::Spool { .. })), "even the header needs room");
    };

    a_forked_child_leaves_the_recording_alone("") |path| {
        let recorder = start(&config(), path).unwrap();
        let mock = Mock::loaded();
        mock.launch(2, 1000);
        // SAFETY: the child calls only what is under test and leaves by `_exit` or `exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            recorder.note("from the child", "1");
            let stopped = recorder.stop();
            let code = i32::from(!matches!(stopped, Err(RecorderError::Forked)));
            // SAFETY: runs the exit handlers, the recorder's among them, which must do nothing here.
            unsafe { libc::exit(code) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        mock.launch(2, 1000);
        let summary = recorder.stop().unwrap();
        let spool = Spool::read(path);
        assert_nothing_lost(&mock, &summary, &spool);
        assert_eq!(spool.kernels, one_to(4000));
        assert_eq!(spool.notes.len(), 1);
    };

    memory_stays_the_same_at_a_steady_rate("") |path| memory_stays_the_same(path, 0);

    memory_stays_the_same_in_bursts("") |path| memory_stays_the_same(path, 20);

    unloadable_config_values_are_bent("") |path| {
        let odd = Config { buffer_bytes: 1, buffers: 0, flush_interval: Duration::ZERO, ..config() };
        let recorder = start(&odd, path).unwrap();
        let mock = Mock::loaded();
        mock.launch(1, 2000);
        let summary = recorder.stop().unwrap();
        assert_nothing_lost(&mock, &summary, &Spool::read(path));
    };
}

/// Rounds of the same work, with threads that stay, many that come and go, and contexts that are destroyed: after the
/// first ones, each leaves the memory as it found it.
fn memory_stays_the_same(path: &Path, period: u32) {
    const ROUNDS: usize = 8;
    let recorder = start(&config(), path).unwrap();
    let mock = Mock::loaded();
    let mut allocated = Vec::with_capacity(ROUNDS);
    // Some full buffers, for which the writer makes room.
    mock.launch(1, 1000);
    for round in 0..ROUNDS {
        mock.stream(4, Duration::from_millis(80), 8_000_000, period);
        for _ in 0..5 {
            mock.launch(8, 20);
            mock.destroy_context();
        }
        (0..500).for_each(|_| mock.empty_buffer());
        assert!(recorder.drain(Duration::from_secs(120)));
        // It stands behind all that came before.
        recorder.note("round", &round.to_string());
        common::until("the end of the round", || Spool::read(path).notes.len() == round + 2);
        allocated.push(allocated::at_rest());
    }
    let summary = recorder.stop().unwrap();
    let spool = Spool::read(path);
    assert_nothing_lost(&mock, &summary, &spool);
    // Queues have some blocks more or fewer, and many where a thread does not get its turn; eight bytes for each buffer
    // would be seen, or one for each record.
    let (first, last) = (allocated[..ROUNDS / 2].iter().max(), allocated[ROUNDS - 2..].iter().min());
    let (first, last) = (first.unwrap(), *last.unwrap());
    assert!(last < first + (8 << 10), "{allocated:?}");
    // A busy machine may need buffers for all of a round at once, but not for two.
    let most = spool.pool_bytes.iter().max().unwrap() / (64 << 10);
    assert!(most < 800 && summary.buffers > 300, "{most}, {summary:?}");
}

/// Scenarios whose child ends in a way of its own.
#[test]
fn a_process_that_exits_without_stopping() {
    let child = run_child("exits", "", &[]);
    child.assert_ended_well();
    let spool = Spool::read(&child.spool);
    assert_eq!(spool.ending, Some(Ending::Complete));
    assert_eq!(spool.kernels, one_to(3000));
}

#[test]
fn a_process_that_is_killed() {
    let child = run_child("is_killed", "", &[]);
    assert!(!child.output.status.success());
    let spool = Spool::read(&child.spool);
    assert!(matches!(spool.ending, Some(Ending::Unfinished | Ending::Cut { .. })), "{:?}", spool.ending);
    assert_eq!(spool.kernels, one_to(3000), "everything that was fetched before");
    assert_eq!(spool.kernel_names, ["_Z6kernelPfi"]);
}

/// The bodies of those.
pub(crate) const OWN_END: &[common::Scenario] = &[
    ("exits", |path| {
        record_and_leave_running(path);
        std::process::exit(0);
    }),
    ("is_killed", |path| {
        record_and_leave_running(path);
        common::until("all kernels", || Spool::read(path).kernels == one_to(3000));
        // SAFETY: the process ends here.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }),
];

fn record_and_leave_running(path: &Path) {
    start(&config(), path).unwrap();
    Mock::loaded().launch(3, 1000);
}
