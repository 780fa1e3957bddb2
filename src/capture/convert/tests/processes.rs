//! Several processes in one trace.

use cupti::collector::RECORDER_NOTE;
use cupti::process::Birth;
use cupti::spool::{Anchor, End, Header, Machine, Writer};

use super::super::trace_from_bytes;
use super::{EPOCH, SECOND, anchor, call, context, device, header, joined, kernel, spool};
use crate::trace::OpIdx;

#[test]
fn processes_stand_side_by_side_and_share_devices_by_uuid() {
    // Each process calls its own device 0; the second sees the first's as 1.
    let first = [device(0, 0xaa), context(1, 0, 7), call(0, 10, 211, 1), kernel(20, 30, 7, 1)];
    let second = [
        device(0, 0xbb),
        device(1, 0xaa),
        context(1, 1, 7),
        context(2, 0, 7),
        call(0, 12, 211, 1),
        kernel(40, 50, 7, 1),
        kernel(40, 60, 7, 1).u32(44, 2),
    ];
    let spools = [spool(&header(10), &[joined(&first)]), spool(&header(11), &[joined(&second)])];
    let trace = trace_from_bytes(&[&spools[0], &spools[1]]).unwrap();
    let uuids: Vec<_> = trace.devices.iter().map(|device| (device.id, &device.uuid[..2])).collect();
    assert_eq!(uuids, [(0, "aa"), (1, "bb")]);
    let ops: Vec<_> = trace
        .ops
        .indices()
        .map(|op| (trace.op_device(op).0, trace.processes[trace.op_process(op).index()].pid))
        .collect();
    assert_eq!(ops, [(0, 10), (0, 11), (1, 11)]);
    for op in trace.ops.indices() {
        let call = trace.ops.launch(op).expect("every op has a launch");
        assert_eq!(trace.call_process(call), trace.op_process(op), "ids are those of a process");
    }
}

/// A spool of a process that began `after` nanoseconds, when the clock had been set by `set`, with one kernel at once.
fn begun(pid: u32, boot: &str, after: u64, set: i64) -> Vec<u8> {
    let machine = Machine { boot: boot.into(), ..Machine::default() };
    let started = (EPOCH + after).strict_add_signed(set);
    let header = Header { start_realtime_ns: started as i64, machine, ..header(pid) };
    let mut out = Writer::new(Vec::new(), &header).unwrap();
    let anchor =
        Anchor { realtime_ns: started as i64, monotonic_ns: 77 + after as i64, cupti_ns: started, uncertainty_ns: 60 };
    out.anchor(&anchor).unwrap();
    let start = started - EPOCH;
    out.buffer(0, &joined(&[device(0, 0xaa), kernel(start, start + 50, 7, 0)])).unwrap();
    out.end(&End::default()).unwrap();
    out.into_inner()
}

#[test]
fn processes_are_put_on_one_clock_though_it_was_set_between_them() {
    for set in [0, 3_600_000_000_000, 40_000_000_000, -500_000_000] {
        let spools = [begun(1, "boot", 0, 0), begun(2, "boot", SECOND, set), begun(3, "boot", 2 * SECOND, set)];
        let spools: Vec<&[u8]> = spools.iter().map(Vec::as_slice).collect();
        let trace = trace_from_bytes(&spools).unwrap();
        let mut starts: Vec<i64> = trace.ops.start.iter().map(|start| start.0).collect();
        starts.sort_unstable();
        assert_eq!(starts, [0, SECOND as i64, 2 * SECOND as i64], "set by {set}");
        let told = trace.meta.warnings.iter().filter(|warning| warning.contains("the clock was set by")).count();
        assert_eq!(told, if set == 0 { 0 } else { 2 }, "{:?}", trace.meta.warnings);
    }
    // Nothing is known about the clocks of two machines but that both show the time.
    for boots in [["one", "other"], ["", ""]] {
        let spools = [begun(1, boots[0], 0, 0), begun(2, boots[1], SECOND, 40)];
        let trace = trace_from_bytes(&[&spools[0], &spools[1]]).unwrap();
        assert_eq!(trace.meta.warnings, [""; 0]);
    }
}

#[test]
fn of_several_processes_each_warning_names_its_own() {
    let good = spool(&header(10), &[joined(&[kernel(0, 50, 7, 0)])]);
    let bad = spool(&header(11), &[joined(&[kernel(100, 150, 7, 0)]), joined(&[kernel(200, 250, 7, 0)])]);
    let cut = &bad[..bad.len() - 40];
    let trace = trace_from_bytes(&[&good, cut]).unwrap();
    assert!(!trace.meta.warnings.is_empty());
    assert!(trace.meta.warnings.iter().all(|warning| warning.starts_with("process 11: ")), "{:?}", trace.meta.warnings);
    let unharmed = trace_from_bytes(&[&good, &spool(&header(12), &[])]).unwrap();
    assert_eq!(unharmed.meta.warnings, [""; 0], "a process that did nothing on the device does no harm");
    assert_eq!(unharmed.ops.len(), 1);
}

#[test]
fn processes_of_one_id_stay_apart() {
    let one = spool(&header(1), &[joined(&[call(0, 10, 211, 1), kernel(20, 30, 7, 1)])]);
    let trace = trace_from_bytes(&[&one, &one]).unwrap();
    assert_eq!((trace.processes.len(), trace.ops.len()), (2, 2));
    assert_ne!(trace.ops.launch(OpIdx(0)), trace.ops.launch(OpIdx(1)));
    assert!(trace.processes.iter().any(|process| process.name.contains("process 1 of another")));
}

/// A spool of process 7 that is known to have gone on from one second to another.
fn lasted(boot: &str, seconds: std::ops::Range<u64>, birth: Option<(u64, u64)>) -> Vec<u8> {
    let machine = Machine { boot: boot.into(), ..Machine::default() };
    let (from, to) = (seconds.start * SECOND, seconds.end * SECOND);
    let header = Header { start_realtime_ns: (EPOCH + from) as i64, machine, ..header(7) };
    let mut out = Writer::new(Vec::new(), &header).unwrap();
    let process = birth.map(|(pid_namespace, start_ticks)| Birth { pid_namespace, start_ticks });
    out.note(RECORDER_NOTE, &serde_json::json!({ "config": {}, "process": process }).to_string()).unwrap();
    out.anchor(&anchor(from as i64)).unwrap();
    out.buffer(0, &joined(&[device(0, 0xaa), kernel(from, from + 50, 7, 0)])).unwrap();
    out.anchor(&anchor(to as i64)).unwrap();
    out.into_inner()
}

#[test]
fn what_processes_of_one_number_are_to_each_other_is_told() {
    type Birth = Option<(u64, u64)>;
    let names = |spools: [(&str, std::ops::Range<u64>, Birth); 2]| {
        let [first, second] = spools.map(|(boot, seconds, birth)| lasted(boot, seconds, birth));
        let told = |spools: &[&[u8]]| {
            let trace = trace_from_bytes(spools).unwrap();
            let starts = trace.processes.iter().enumerate().map(|(at, process)| {
                let own = trace.ops.indices().find(|&op| trace.op_process(op).index() == at).unwrap();
                (
                    process.pid,
                    trace.ops.start[own.index()],
                    process.name.replace("python3 train.py", "").trim().to_owned(),
                )
            });
            starts.collect::<Vec<_>>()
        };
        let found = told(&[&first, &second]);
        assert_eq!(told(&[&second, &first]), found, "in the order of time, however they come");
        assert!(found.is_sorted_by_key(|(_, start, _)| *start), "{found:?}");
        assert_eq!((found[0].0, &*found[0].2), (7, ""));
        found[1].2.clone()
    };
    const EXEC: &str = "(process 7 after exec)";
    const LATER: &str = "(a later process 7)";
    const ELSEWHERE: &str = "(process 7 of another machine or container)";
    let born = Some((1, 500));
    for (first, second, expected) in [
        // Where the recorder did not tell which process it is, time tells.
        (("a", 0..3, None), ("a", 3..5, None), EXEC),
        (("a", 0..3, None), ("a", 4..5, born), EXEC),
        (("a", 0..3, None), ("a", 2..5, None), ELSEWHERE),
        (("a", 0..3, born), ("a", 3..5, born), EXEC),
        (("a", 0..3, born), ("a", 3..5, Some((1, 900))), LATER),
        (("a", 0..3, born), ("a", 3..5, Some((2, 500))), ELSEWHERE),
        (("a", 0..3, born), ("a", 1..5, Some((2, 501))), ELSEWHERE),
        (("a", 0..3, born), ("b", 4..5, born), ELSEWHERE),
        (("", 0..3, None), ("", 4..5, None), ELSEWHERE),
    ] {
        assert_eq!(names([first.clone(), second.clone()]), expected, "{first:?} {second:?}");
    }
}

#[test]
fn one_process_may_become_many_programs_and_one_number_go_to_many_processes() {
    for (ages, word) in [(0, "(process 7 after exec)"), (1, "(a later process 7)")] {
        let spools: Vec<Vec<u8>> = (0..4).map(|at| lasted("a", at..at + 1, Some((1, 500 + ages * at)))).collect();
        let spools: Vec<&[u8]> = spools.iter().rev().map(Vec::as_slice).collect();
        let trace = trace_from_bytes(&spools).unwrap();
        let told: Vec<bool> = trace.processes.iter().map(|process| process.name.ends_with(word)).collect();
        assert_eq!(told, [false, true, true, true], "{word}");
        assert_eq!(trace.meta.unrecorded, [], "each ends where the next begins: {word}");
    }
}
