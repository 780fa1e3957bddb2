//! Processes that were recorded in part or not at all.

use std::path::{Path, PathBuf};

use cupti::inject::{Effect, Fault};
use cupti::spool::{Beside, End, Header, Machine, Other, Status, Writer, annotate};

use super::super::{trace_from_bytes, trace_from_collected};
use super::{EPOCH, SECOND, anchor, convert, device, header, joined, kernel};
use crate::trace::{Interval, Ns};

/// How a recording begins and ends, in seconds, and its kernels' seconds on device `uuid`.
struct Part {
    pid: u32,
    uuid: u8,
    kernels: &'static [u64],
    begins: u64,
    late: bool,
    /// Where the clocks were read last.
    until: u64,
    /// Whether it was switched off then.
    off: bool,
    /// Bytes of its end that are missing.
    cut: usize,
}

impl Part {
    /// Of a process that is recorded from its start to its end.
    fn whole(pid: u32, kernels: &'static [u64]) -> Self {
        Self { pid, uuid: 0xaa, kernels, begins: 0, late: false, until: 10, off: false, cut: 0 }
    }

    fn spool(&self) -> Vec<u8> {
        let started = (EPOCH + self.begins * SECOND) as i64;
        let machine = Machine { boot: "boot".into(), ..Machine::default() };
        let header = Header { start_realtime_ns: started, begins_late: self.late, machine, ..header(self.pid) };
        let mut out = Writer::new(Vec::new(), &header).unwrap();
        out.anchor(&anchor((self.begins * SECOND) as i64)).unwrap();
        let mut records = vec![device(0, self.uuid)];
        records.extend(self.kernels.iter().map(|&at| kernel(at * SECOND, at * SECOND + 50, 7, 0)));
        if !self.kernels.is_empty() {
            out.buffer(0, &joined(&records)).unwrap();
        }
        out.anchor(&anchor((self.until * SECOND) as i64)).unwrap();
        if self.off {
            let off_since_ns = (EPOCH + self.until * SECOND) as i64;
            out.status(&Status { off_since_ns, ..Status::default() }).unwrap();
        }
        out.end(&End::default()).unwrap();
        let mut spool = out.into_inner();
        spool.truncate(spool.len() - self.cut);
        spool
    }
}

/// The bytes of the last chunk.
const END: usize = 16 + 24;

/// Who is stated as recorded in part, with the seconds that are missing.
fn missing(parts: &[Part], faults: &[Fault]) -> Vec<(u32, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    let mut beside = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        paths.push(folder.path().join(at.to_string()));
        std::fs::write(&paths[at], part.spool()).unwrap();
        let fault = faults.iter().find(|fault| fault.pid == part.pid).cloned();
        beside.push(Beside { fault, ..Beside::default() });
    }
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let (trace, _) = trace_from_collected(&paths, &beside).unwrap();
    let mut found = Vec::new();
    for process in &trace.meta.unrecorded {
        assert!(process.partly && process.devices == [0] && process.name == "python3 train.py");
        let fault = faults.iter().find(|fault| Some(fault.pid) == process.pid);
        assert!(fault.is_none_or(|fault| process.reason.as_ref() == Some(&fault.message)));
        let seconds = |time: Ns| (time.0 as u64).div_ceil(SECOND);
        found
            .extend(process.times.iter().map(|times| (process.pid.unwrap(), seconds(times.start), seconds(times.end))));
    }
    // Each kept alone with what is known beside it says the same of itself, as alone it has the device for itself.
    for (path, beside) in paths.iter().zip(&beside) {
        let mut out = Vec::new();
        annotate(std::fs::read(path).unwrap().as_slice(), &mut out, beside).unwrap();
        if let Ok(alone) = trace_from_bytes(&[&out]) {
            assert_eq!(alone.meta.unrecorded, []);
            assert_eq!(alone.meta.losses.dropped_records, beside.fault.as_ref().map_or(0, |fault| fault.lost_records));
        }
    }
    found
}

#[test]
fn a_process_that_was_recorded_in_part_is_stated_where_another_used_its_device() {
    let other = || Part::whole(2, &[0, 9]);
    let off = Part { until: 4, off: true, ..Part::whole(1, &[1, 3]) };
    assert_eq!(missing(&[off, other()], &[]), [(1, 4, 10)]);
    let late = Part { begins: 2, late: true, ..Part::whole(1, &[3, 4]) };
    assert_eq!(missing(&[other(), late], &[]), [(1, 0, 2)]);
    let within = Part { begins: 2, late: true, until: 4, off: true, ..Part::whole(1, &[3]) };
    assert_eq!(missing(&[other(), within], &[]), [(1, 0, 2), (1, 4, 10)]);
    // Cut before its end and within a chunk.
    for cut in [END, END + 7] {
        let killed = Part { until: 4, cut, ..Part::whole(1, &[1, 3]) };
        let until = if cut == END { 4 } else { 0 };
        assert_eq!(missing(&[killed, other()], &[]), [(1, until, 10)]);
    }
    // Before it used a device it may still have used any if it was recorded in part, but not if it was killed.
    for (part, expected) in [
        (Part { until: 4, off: true, ..Part::whole(1, &[]) }, &[(1, 4, 10)][..]),
        (Part { until: 4, cut: END, ..Part::whole(1, &[]) }, &[]),
    ] {
        assert_eq!(missing(&[part, other()], &[]), expected);
    }
}

#[test]
fn a_part_that_is_not_missing_in_the_trace_is_not_stated() {
    let other = || Part::whole(2, &[0, 5]);
    let after = Part { until: 6, off: true, ..Part::whole(1, &[1, 5]) };
    assert_eq!(missing(&[after, other()], &[]), [], "it ends when the other's work is over");
    let later = Part { begins: 2, ..Part::whole(1, &[3]) };
    assert_eq!(missing(&[later, other()], &[]), [], "it started later and was recorded from its start");
    let elsewhere = Part { uuid: 0xbb, until: 2, off: true, ..Part::whole(1, &[1]) };
    assert_eq!(missing(&[elsewhere, other()], &[]), [], "it has another device");
    let alone = Part { begins: 1, late: true, until: 2, off: true, ..Part::whole(1, &[1]) };
    assert_eq!(missing(&[alone], &[]), [], "the window is the window");
    let alone = Part { until: 2, cut: END, ..Part::whole(1, &[1, 3]) };
    assert_eq!(missing(&[alone], &[]), []);
    // A program that became another one: the second recording begins where the first must have ended.
    let first = Part { until: 1, cut: END, ..Part::whole(1, &[0]) };
    let second = Part { begins: 2, ..Part::whole(1, &[3]) };
    assert_eq!(missing(&[first, second, other()], &[]), [(1, 1, 2)]);
}

#[test]
fn a_spool_that_could_not_be_written_to_its_end_says_why_and_counts_what_is_lost() {
    let fault = Fault {
        pid: 1,
        message: "the disk is full".into(),
        effect: Effect::EndsEarly,
        lost_buffers: 2,
        lost_records: 70,
        ..Fault::default()
    };
    let early = || Part { until: 4, cut: END, ..Part::whole(1, &[1, 3]) };
    assert_eq!(missing(&[early(), Part::whole(2, &[0, 9])], std::slice::from_ref(&fault)), [(1, 4, 10)]);
    let mut kept = Vec::new();
    let beside = Beside { fault: Some(fault), ..Beside::default() };
    annotate(early().spool().as_slice(), &mut kept, &beside).unwrap();
    let meta = convert(&kept).meta;
    assert_eq!((meta.losses.dropped_records, meta.unrecorded.len()), (70, 0));
    assert!(meta.warnings.iter().any(|warning| warning.contains("the disk is full")), "{:?}", meta.warnings);
}

#[test]
fn what_is_known_beside_a_spool_is_stated_once_and_only_where_it_matters() {
    let at = |second: u64| (EPOCH + second * SECOND) as i64;
    let uuid = |byte: &str| vec![byte.repeat(16)];
    let named = |name: &str| Other { name: name.into(), ..Other::default() };
    let others = vec![
        named("anywhere"),
        Other { devices: uuid("aa"), lived: Some((at(0) - 7, at(2))), ..named("here") },
        Other { devices: uuid("cc"), ..named("on a device of no account") },
        Other { lived: Some((at(0) - 7, at(0))), ..named("before") },
        Other { pid: Some(2), has_spool: true, ..named("read too") },
        Other { pid: Some(3), has_spool: true, ..named("not read") },
    ];
    let beside = Beside { others, remarks: vec!["a remark".into()], fault: None };
    let spools = [Part::whole(1, &[0, 9]), Part::whole(2, &[1])].map(|part| {
        let mut beside = beside.clone();
        // None names itself.
        beside.others.retain(|other| other.pid != Some(part.pid));
        let mut out = Vec::new();
        annotate(part.spool().as_slice(), &mut out, &beside).unwrap();
        out
    });
    let meta = trace_from_bytes(&[&spools[0], &spools[1]]).unwrap().meta;
    let found: Vec<_> =
        meta.unrecorded.iter().map(|process| (&*process.name, &*process.devices, &*process.times)).collect();
    let until_two = [Interval::new(Ns(0), Ns(2 * SECOND as i64))];
    assert_eq!(found, [("anywhere", &[][..], &[][..]), ("here", &[0], &until_two), ("not read", &[], &[])]);
    assert_eq!(meta.warnings, ["a remark"]);
    assert_eq!(convert(&spools[0]).meta.unrecorded.len(), 4, "one more of which the recording is missing");
}

#[test]
fn of_spools_of_one_number_all_have_to_be_read() {
    let spool = |name: &str| {
        let other = Other { pid: Some(1), has_spool: true, name: name.into(), ..Other::default() };
        let mut out = Vec::new();
        let beside = Beside { others: vec![other], ..Beside::default() };
        annotate(Part::whole(1, &[0, 9]).spool().as_slice(), &mut out, &beside).unwrap();
        out
    };
    let [first, second] = ["second", "first"].map(spool);
    assert_eq!(convert(&first).meta.unrecorded.len(), 1);
    assert_eq!(trace_from_bytes(&[&first, &second]).unwrap().meta.unrecorded, []);
}
