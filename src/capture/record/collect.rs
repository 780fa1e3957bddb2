//! Makes one trace of what the recorded processes left.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use cupti::inject::{self, Effect, Fault, Left};
use cupti::spool::{Beside, Chunk, Other, Outline, Reader, outline};
use thiserror::Error;

use super::neighbours::{Known, Seen};
use super::outliving::{is_alive, pid_of};
use crate::capture::convert::{ConvertError, outline_from_collected, state_others, trace_from_collected};
use crate::memory::{self, Shortage};
use crate::report::text::bytes;
use crate::trace::{ProcessIdx, Trace};

/// What the recorded processes left.
#[derive(Debug)]
pub struct Collected {
    /// The spools that can be read, the earliest first.
    pub spools: Vec<Spool>,
    /// What kept processes from being recorded, wholly or in part.
    pub faults: Vec<Fault>,
    /// What else there is to say, one sentence each. The trace says it too.
    pub remarks: Vec<String>,
    /// All of them as one trace; `None` without a spool.
    pub trace: Option<Result<Trace, NoTrace>>,
}

/// Why there is no trace of what was recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NoTrace {
    /// The spools cannot be made a trace.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// It has more events than can be analysed here. The spools are good, and what is known beside them is complete.
    #[error("its {} of records need {shortage}", bytes(*record_bytes))]
    Room {
        /// Bytes of activity records in all spools.
        record_bytes: u64,
        /// The memory that lacks.
        shortage: Shortage,
    },
}

/// The spool of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spool {
    /// The process.
    pub pid: u32,
    /// The file.
    pub path: PathBuf,
    /// Whether it has records.
    pub has_records: bool,
    /// What is known beside it.
    pub beside: Beside,
    /// Whether its process still runs, and so may go on writing.
    pub is_written: bool,
    /// Unix time of its start, in nanoseconds.
    started: i64,
    outline: Outline,
    /// Its process, as one that spools of others lack; `None` if it used no device.
    own: Option<Other>,
    /// Whether the process may have used devices before or after, for all that is known.
    in_part: bool,
}

impl Spool {
    /// What is known beside this spool when it is kept apart from `all` others.
    pub fn beside_apart(&self, all: &[&Self]) -> Beside {
        let mut beside = self.beside.clone();
        let others = all.iter().filter(|other| other.path != self.path);
        beside.others.extend(others.filter_map(|other| other.own.clone()));
        beside
    }
}

/// Collects from `folder`, into which `command` was recorded.
///
/// # Errors
/// When the folder cannot be read.
pub fn collect(folder: &Path, command: &[String], seen: &Seen) -> io::Result<Collected> {
    collect_within(folder, command, seen, memory::available())
}

/// The same with so much memory, if that is known.
fn collect_within(folder: &Path, command: &[String], seen: &Seen, available: Option<u64>) -> io::Result<Collected> {
    let mut remarks = Vec::new();
    let mut spools = Vec::new();
    for path in inject::spools(folder)? {
        match look(&path) {
            Ok(spool) => spools.push(spool),
            Err(reason) => {
                let who = pid_of(&path).map_or("a process".to_owned(), |pid| format!("process {pid}"));
                remarks.push(format!("nothing is left of the recording of {who}: {reason}"));
            }
        }
    }
    spools.sort_by_key(|spool| (spool.started, spool.pid));
    let left = inject::faults(folder).unwrap_or_else(|error| {
        remarks.push(format!("what a process said about its recording cannot be read: {error}"));
        Vec::new()
    });
    let mut others = Vec::new();
    for Left { fault, spool } in &left {
        match spools.iter_mut().find(|known| known.path == *spool) {
            Some(spool) => spool.beside.fault = Some(fault.clone()),
            None if fault.effect == Effect::NotRecorded => others.push(without_a_recording(fault)),
            // Its spool is among the remarks.
            None => remarks.push(fault.sentence()),
        }
    }
    for spool in &mut spools {
        spool.beside.others.clone_from(&others);
        spool.beside.remarks.clone_from(&remarks);
    }
    let faults: Vec<Fault> = left.into_iter().map(|left| left.fault).collect();
    let record_bytes = spools.iter().fold(0, |sum: u64, spool| sum.saturating_add(spool.outline.record_bytes));
    let shortage = Shortage::of(memory::of_report(record_bytes), available);
    // Where it does not fit, what the trace of all tells of each other and of strangers has to be with them all the same.
    let part = if shortage.is_some() { Part::Outline } else { Part::Whole };
    let trace = (!spools.is_empty()).then(|| {
        let trace = together(&mut spools, part, &faults, command, seen)?;
        shortage.map_or(Ok(trace), |shortage| Err(NoTrace::Room { record_bytes, shortage }))
    });
    Ok(Collected { spools, faults, remarks, trace })
}

/// What a trace is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// Only which devices each process had.
    Outline,
}

/// Makes one trace of the spools, and adds to each what only the trace of all tells.
fn together(
    spools: &mut [Spool],
    part: Part,
    faults: &[Fault],
    command: &[String],
    seen: &Seen,
) -> Result<Trace, ConvertError> {
    let paths: Vec<&Path> = spools.iter().map(|spool| spool.path.as_path()).collect();
    let beside: Vec<Beside> = spools.iter().map(|spool| spool.beside.clone()).collect();
    let (mut trace, homes) = match part {
        Part::Whole => trace_from_collected(&paths, &beside)?,
        Part::Outline => outline_from_collected(&paths, &beside)?,
    };
    trace.meta.source.command = Some(command.join(" "));
    // One that has its number after another stands in the trace under a number of its own, but the driver knows the first.
    let mut pids: Vec<u32> = trace.processes.iter().map(|process| process.pid).collect();
    for (spool, home) in spools.iter().zip(&homes).filter(|(_, home)| home.has_its_number) {
        pids[home.process.index()] = spool.pid;
    }
    let mut known = Known::of(&trace, &pids);
    for spool in spools.iter() {
        known.add(spool.pid, spool.in_part || spool.beside.fault.is_some());
    }
    faults.iter().for_each(|fault| known.add(fault.pid, true));
    let strangers = seen.strangers(&trace, &known);
    state_others(&mut trace, &strangers);
    for (spool, home) in spools.iter_mut().zip(homes) {
        spool.beside.others.extend(strangers.iter().cloned());
        spool.own = match part {
            Part::Whole => own(&trace, spool.pid, home.process),
            Part::Outline => own_by_contexts(&trace, spool, home.process),
        };
    }
    Ok(trace)
}

/// A process of the trace as one that other spools lack: when it worked, and on which devices.
fn own(trace: &Trace, pid: u32, process: ProcessIdx) -> Option<Other> {
    let streams = trace.streams.iter().filter(|stream| stream.process == process && !stream.ops.is_empty());
    let mut other = own_other(trace, pid, process);
    let mut lived: Option<(i64, i64)> = None;
    for stream in streams {
        let device = &trace.devices[stream.device.index()].uuid;
        if !other.devices.contains(device) {
            other.devices.push(device.clone());
        }
        for op in stream.ops.clone().map(|op| op as usize) {
            let [start, end] =
                [trace.ops.start[op], trace.ops.end[op]].map(|time| trace.meta.epoch_ns.saturating_add(time.0));
            lived = Some(lived.map_or((start, end), |(from, to)| (from.min(start), to.max(end))));
        }
    }
    other.lived = Some(lived?);
    Some(other)
}

/// The same of a trace in which nothing is done: the process may have used all devices that it could, until the last
/// reading of its clocks.
fn own_by_contexts(trace: &Trace, spool: &Spool, process: ProcessIdx) -> Option<Other> {
    let mut other = own_other(trace, spool.pid, process);
    for context in trace.contexts.iter().filter(|context| context.process == process) {
        let device = &trace.devices[context.device.index()].uuid;
        if !other.devices.contains(device) {
            other.devices.push(device.clone());
        }
    }
    let until = spool.outline.last_anchor.map_or(i64::MAX, |anchor| anchor.realtime_ns);
    other.lived = Some((spool.started, until.max(spool.started)));
    (!other.devices.is_empty()).then_some(other)
}

fn own_other(trace: &Trace, pid: u32, process: ProcessIdx) -> Other {
    Other {
        pid: Some(pid),
        name: trace.processes[process.index()].name.clone(),
        reason: Some("it has a spool of its own".to_owned()),
        has_spool: true,
        ..Other::default()
    }
}

fn without_a_recording(fault: &Fault) -> Other {
    Other {
        pid: Some(fault.pid),
        name: fault.name(),
        reason: Some(fault.message.clone()),
        lived: fault.lived,
        ..Other::default()
    }
}

/// Reads a spool up to its first records.
fn look(path: &Path) -> Result<Spool, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(BufReader::new(file)).map_err(|error| error.to_string())?;
    let header = reader.header();
    let (pid, started, in_part) = (header.pid, header.start_realtime_ns, header.begins_late);
    let has_records = reader.any(|chunk| matches!(chunk, Ok(Chunk::Buffer { .. })));
    let is_written = pid_of(path).is_some_and(is_alive);
    let beside = Beside::default();
    let outline = File::open(path).and_then(outline).map_err(|error| error.to_string())?;
    Ok(Spool { pid, path: path.to_owned(), has_records, beside, is_written, started, outline, own: None, in_part })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cupti::spool::{End, Header, Writer};

    /// Leaves a spool as a process `pid` does that started at `started`.
    fn leave(folder: &Path, pid: u32, started: i64) -> PathBuf {
        let header =
            Header { pid, start_realtime_ns: started, command_line: vec![format!("p{pid}")], ..Header::default() };
        let mut spool = Writer::new(Vec::new(), &header).unwrap();
        spool.end(&End::default()).unwrap();
        let path = folder.join(format!("{pid}-1.bubcap"));
        std::fs::write(&path, spool.into_inner()).unwrap();
        path
    }

    fn leave_fault(folder: &Path, pid: u32, effect: Effect) {
        let fault = Fault {
            pid,
            command_line: vec!["python".to_owned(), "x".repeat(200)],
            message: "another tool records it".to_owned(),
            effect,
            ..Fault::default()
        };
        std::fs::write(folder.join(format!("{pid}-1.fault.json")), serde_json::to_vec(&fault).unwrap()).unwrap();
    }

    fn collected(folder: &Path) -> Collected {
        collect(folder, &["python".to_owned(), "train.py".to_owned()], &Seen::default()).unwrap()
    }

    #[test]
    fn a_folder_without_spools_is_no_trace_and_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        leave_fault(folder.path(), 7, Effect::NotRecorded);
        let collected = collected(folder.path());
        assert!(collected.trace.is_none() && collected.spools.is_empty() && collected.remarks.is_empty());
        let said = collected.faults[0].sentence();
        assert!(said.starts_with("process 7 (python x") && said.ends_with("not recorded: another tool records it"));
        assert!(said.chars().count() < 160, "{said}");
    }

    /// What is known beside spools that are kept apart does not depend on whether there was memory for all of them.
    #[test]
    fn what_does_not_fit_is_told_of_the_others_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scalar-readback");
        for (pid, name) in [(5, "kernels-1/sync.bubcap"), (6, "kernels-4/graph.bubcap")] {
            std::fs::copy(fixtures.join(name), folder.path().join(format!("{pid}-1.bubcap"))).unwrap();
        }
        leave_fault(folder.path(), 9, Effect::NotRecorded);
        let within =
            |available| collect_within(folder.path(), &["python".to_owned()], &Seen::default(), available).unwrap();
        let (whole, short) = (within(None), within(Some(1 << 10)));
        assert!(whole.trace.unwrap().is_ok());
        let said = short.trace.unwrap().err().unwrap().to_string();
        assert!(said.contains("of records need about") && said.contains("and 1 KiB are free"), "{said}");
        assert_eq!(short.spools.len(), 2);
        for (whole_one, short_one) in whole.spools.iter().zip(&short.spools) {
            let beside = [(whole_one, &whole.spools), (short_one, &short.spools)]
                .map(|(spool, all)| spool.beside_apart(&all.iter().collect::<Vec<_>>()));
            let [mut expected, mut found] = beside;
            assert_eq!(expected.others.len(), 2, "the other spool and the process that was not recorded");
            for (expected, found) in expected.others.iter_mut().zip(&mut found.others) {
                if let Some((from, to)) = expected.lived.take() {
                    let lived = found.lived.take().unwrap();
                    assert!(lived.0 <= from && lived.1 >= to, "{lived:?} {from} {to}");
                }
            }
            assert_eq!(found, expected);
        }
        let left = inject::spools(folder.path()).unwrap();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn processes_stand_in_the_order_of_their_start() {
        let folder = tempfile::tempdir().unwrap();
        for (pid, started) in [(3, 200), (20, 100), (1, 300)] {
            leave(folder.path(), pid, started);
        }
        let collected = collected(folder.path());
        assert_eq!(collected.spools.iter().map(|spool| spool.pid).collect::<Vec<_>>(), [20, 3, 1]);
        let trace = collected.trace.unwrap().unwrap();
        assert_eq!(trace.meta.source.command.as_deref(), Some("python train.py"));
        assert_eq!(trace.meta.warnings, [""; 0]);
    }

    #[test]
    fn what_is_missing_is_told_by_process() {
        let folder = tempfile::tempdir().unwrap();
        leave(folder.path(), 5, 100);
        let cut = leave(folder.path(), 6, 100);
        std::fs::write(&cut, &std::fs::read(&cut).unwrap()[..20]).unwrap();
        std::fs::write(folder.path().join("8-1.bubcap"), "").unwrap();
        leave_fault(folder.path(), 5, Effect::Incomplete);
        leave_fault(folder.path(), 9, Effect::NotRecorded);
        let collected = collected(folder.path());
        assert_eq!(collected.spools.len(), 1);
        let meta = collected.trace.unwrap().unwrap().meta;
        let warnings = meta.warnings.join("\n");
        for part in
            ["recording of process 6", "recording of process 8", "recording of process 5 (python x", "is not complete"]
        {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
        let unrecorded: Vec<_> = meta.unrecorded.iter().map(|process| (process.pid, &process.reason)).collect();
        assert_eq!(unrecorded, [(Some(9), &Some("another tool records it".to_owned()))]);
    }
}
