//! Makes one trace of what the recorded processes left.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use cupti::inject::{self, Fault};
use cupti::spool::{Chunk, Reader};

use super::neighbours::Seen;
use super::run::pid_of;
use crate::capture::convert::{ConvertError, trace_from_spools};
use crate::trace::{Trace, Unrecorded};

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
    pub trace: Option<Result<Trace, ConvertError>>,
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
    /// Unix time of its start, in nanoseconds.
    started: i64,
}

/// Collects from `folder`, into which `command` was recorded.
///
/// # Errors
/// When the folder cannot be read.
pub fn collect(folder: &Path, command: &[String], seen: &Seen) -> std::io::Result<Collected> {
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
    let faults = inject::faults(folder).unwrap_or_else(|error| {
        remarks.push(format!("what a process said about its recording cannot be read: {error}"));
        Vec::new()
    });
    let paths: Vec<&Path> = spools.iter().map(|spool| spool.path.as_path()).collect();
    let trace = (!paths.is_empty()).then(|| {
        let mut trace = trace_from_spools(&paths)?;
        trace.meta.source.command = Some(command.join(" "));
        trace.meta.warnings.extend(remarks.iter().cloned());
        trace.meta.warnings.extend(faults.iter().filter(|fault| !fault.before_recording).map(sentence));
        let mut recorded: BTreeSet<u32> = spools.iter().map(|spool| spool.pid).collect();
        let unrecorded = faults.iter().filter(|fault| fault.before_recording && !recorded.contains(&fault.pid));
        trace.meta.unrecorded = unrecorded.map(without_a_recording).collect();
        let with_spools = recorded.len();
        recorded.extend(faults.iter().map(|fault| fault.pid));
        // A process without a recording may be on any device.
        let elsewhere = recorded.len() - with_spools;
        let strangers = seen.unrecorded(&trace.devices, &recorded, |device| with_a_context(&trace, device) + elsewhere);
        trace.meta.unrecorded.extend(strangers);
        Ok(trace)
    });
    Ok(Collected { spools, faults, remarks, trace })
}

/// How many of the recorded processes had a context on a device.
fn with_a_context(trace: &Trace, device: u32) -> usize {
    let on = trace.contexts.iter().filter(|context| trace.devices[context.device.index()].id == device);
    on.map(|context| context.process).collect::<BTreeSet<_>>().len()
}

/// What a fault means, in one sentence.
pub fn sentence(fault: &Fault) -> String {
    let Fault { pid, message, before_recording, .. } = fault;
    let who = format!("process {pid}{}", in_parentheses(&name_of(fault)));
    if *before_recording {
        format!("{who} was not recorded: {message}")
    } else {
        format!("the recording of {who} is not complete: {message}")
    }
}

fn in_parentheses(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

/// The command line of the process, or its executable.
fn name_of(fault: &Fault) -> String {
    const LONGEST: usize = 80;
    let name = if fault.command_line.is_empty() { fault.exe.clone() } else { fault.command_line.join(" ") };
    match name.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name,
    }
}

fn without_a_recording(fault: &Fault) -> Unrecorded {
    Unrecorded { pid: Some(fault.pid), name: name_of(fault), devices: Vec::new(), reason: Some(fault.message.clone()) }
}

/// Reads a spool up to its first records.
fn look(path: &Path) -> Result<Spool, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(BufReader::new(file)).map_err(|error| error.to_string())?;
    let header = reader.header();
    let (pid, started) = (header.pid, header.start_realtime_ns);
    let has_records = reader.any(|chunk| matches!(chunk, Ok(Chunk::Buffer { .. })));
    Ok(Spool { pid, path: path.to_owned(), has_records, started })
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
        let path = folder.join(format!("{pid}-{started}.bubcap"));
        std::fs::write(&path, spool.into_inner()).unwrap();
        path
    }

    fn leave_fault(folder: &Path, pid: u32, before_recording: bool) {
        let fault = Fault {
            pid,
            command_line: vec!["python".to_owned(), "x".repeat(200)],
            message: "another tool records it".to_owned(),
            before_recording,
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
        leave_fault(folder.path(), 7, true);
        let collected = collected(folder.path());
        assert!(collected.trace.is_none() && collected.spools.is_empty() && collected.remarks.is_empty());
        let said = sentence(&collected.faults[0]);
        assert!(said.starts_with("process 7 (python x") && said.ends_with("not recorded: another tool records it"));
        assert!(said.chars().count() < 160, "{said}");
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
        leave_fault(folder.path(), 5, false);
        leave_fault(folder.path(), 9, true);
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
