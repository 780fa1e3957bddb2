//! Who else uses the devices while a program is recorded, as NVML tells (`nvmlDeviceGetComputeRunningProcesses`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cupti::spool::Other;
use nvml_wrapper::Nvml;

use crate::trace::Trace;

/// How often the driver is asked.
const INTERVAL: Duration = Duration::from_millis(500);
/// How often at first, so that a short program is seen as well.
const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// So many questions follow each other quickly.
const FIRST: usize = 40;

/// The control program of MPS holds devices for its clients, which are listed themselves.
const MPS_SERVER: &str = "nvidia-cuda-mps";

/// Processes seen on devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// By the device's UUID in the form of [`Device::uuid`].
    devices: BTreeMap<String, OnDevice>,
    /// Whether the driver's process numbers are those of this process's namespace for certain.
    numbers_hold: bool,
}

/// What was seen on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OnDevice {
    /// The processes and their names, empty where it cannot be known.
    processes: BTreeMap<u32, String>,
    /// The most of them at one time.
    at_once: usize,
}

impl Seen {
    /// Takes in the processes that are on a device now.
    fn add(&mut self, device: &str, now: &[(u32, String)]) {
        let device = self.devices.entry(device.to_owned()).or_default();
        device.at_once = device.at_once.max(now.len());
        for (pid, name) in now {
            let known = device.processes.entry(*pid).or_default();
            if known.is_empty() {
                known.clone_from(name);
            }
        }
    }

    /// The processes that were on devices of the trace beside the known ones.
    ///
    /// Inside a container a driver of today gives the numbers that processes have there and leaves out all others, which
    /// therefore nobody can see; older ones give the host's numbers. So there numbers are believed only if a known process
    /// is among them. Otherwise there is a stranger on a device only if there were more processes than can have been known
    /// ones.
    pub(super) fn strangers(&self, trace: &Trace, known: &Known) -> Vec<Other> {
        let on = |uuid: &str| self.devices.get(uuid).filter(|_| !uuid.is_empty());
        let uuids = || trace.devices.iter().map(|device| device.uuid.as_str());
        let numbers_hold =
            self.numbers_hold || uuids().filter_map(on).any(|seen| known.pids.iter().any(|pid| seen.has(*pid)));
        let mut found: BTreeMap<u32, Other> = BTreeMap::new();
        let mut crowded = Vec::new();
        for uuid in uuids() {
            let Some(seen) = on(uuid) else { continue };
            if numbers_hold {
                for (&pid, name) in seen.processes.iter().filter(|(pid, _)| !known.pids.contains(pid)) {
                    let entry = found.entry(pid).or_insert_with(|| Other {
                        pid: Some(pid),
                        name: name.clone(),
                        ..Other::default()
                    });
                    entry.devices.push(uuid.to_owned());
                }
            } else if seen.at_once > known.at_most_on(uuid) {
                crowded.push(uuid.to_owned());
            }
        }
        let crowd = (!crowded.is_empty()).then(|| Other { devices: crowded, ..Other::default() });
        found.into_values().chain(crowd).collect()
    }
}

/// The processes that were recorded, or said that they were not.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pids: BTreeSet<u32>,
    /// Those with a context on a device, by its UUID.
    on: BTreeMap<String, BTreeSet<u32>>,
    /// Those that may have been on any device.
    anywhere: BTreeSet<u32>,
}

impl Known {
    /// The processes of a trace, which the system numbers `pids`, and where they were.
    pub(super) fn of(trace: &Trace, pids: &[u32]) -> Self {
        let mut known = Self::default();
        for context in &trace.contexts {
            let pid = pids[context.process.index()];
            known.on.entry(trace.devices[context.device.index()].uuid.clone()).or_default().insert(pid);
        }
        known
    }

    /// Adds a process, which may have been on other devices than those it was recorded on if it was recorded `in_part`
    /// or on none.
    pub(super) fn add(&mut self, pid: u32, in_part: bool) {
        self.pids.insert(pid);
        if in_part || !self.on.values().any(|on| on.contains(&pid)) {
            self.anywhere.insert(pid);
        }
    }

    /// How many of them can have been on a device.
    fn at_most_on(&self, uuid: &str) -> usize {
        let on = self.on.get(uuid);
        on.map_or(0, BTreeSet::len) + self.anywhere.iter().filter(|pid| !on.is_some_and(|on| on.contains(pid))).count()
    }
}

impl OnDevice {
    fn has(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }
}

/// Watches the devices from a thread of its own, if NVML is there.
pub(super) struct Neighbours {
    stop: Sender<()>,
    ended: Receiver<()>,
    seen: Arc<Mutex<Seen>>,
}

impl Neighbours {
    /// Starts watching.
    pub(super) fn watch() -> Self {
        let (stop, stopped) = channel();
        let (tell, ended) = channel();
        let seen = Arc::new(Mutex::new(Seen { numbers_hold: in_first_namespace(), ..Seen::default() }));
        let shared = Arc::clone(&seen);
        // Without the thread nothing is seen, which is said nowhere: nothing can be said.
        let _ = std::thread::Builder::new().name("neighbours".to_owned()).spawn(move || {
            watch(&stopped, &shared);
            let _ = tell.send(());
        });
        Self { stop, ended, seen }
    }

    /// What was seen until now.
    pub(super) fn seen(self) -> Seen {
        /// For a look that has begun: the driver may be slow, most of all to start.
        const PATIENCE: Duration = Duration::from_millis(500);
        drop(self.stop);
        let _ = self.ended.recv_timeout(PATIENCE);
        lock(&self.seen).clone()
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(stopped: &Receiver<()>, seen: &Mutex<Seen>) {
    let Ok(nvml) = Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init() else { return };
    let devices: Vec<_> = (0..nvml.device_count().unwrap_or(0))
        .filter_map(|index| {
            let device = nvml.device_by_index(index).ok()?;
            let uuid = plain_uuid(&device.uuid().ok()?)?;
            Some((device, uuid))
        })
        .collect();
    let mut intervals = std::iter::repeat_n(FIRST_INTERVAL, FIRST).chain(std::iter::repeat(INTERVAL));
    loop {
        for (device, uuid) in &devices {
            let Ok(processes) = device.running_compute_processes() else { continue };
            let name = |pid| process_name(pid).or_else(|| nvml.sys_process_name(pid, 256).ok()).unwrap_or_default();
            let mut now: Vec<_> = processes.iter().map(|process| (process.pid, name(process.pid))).collect();
            now.retain(|(pid, name)| *pid != 0 && !name.contains(MPS_SERVER));
            now.sort_unstable();
            now.dedup_by_key(|(pid, _)| *pid);
            lock(seen).add(uuid, &now);
        }
        if stopped.recv_timeout(intervals.next().unwrap_or(INTERVAL)) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Whether this process is in the namespace of process numbers that the system started with, which is the driver's.
fn in_first_namespace() -> bool {
    /// `PROC_PID_INIT_INO` (Linux, `include/linux/proc_ns.h`).
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == FIRST)
}

fn process_name(pid: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim().to_owned())
}

/// `GPU-1f2e…-…` (`nvmlDeviceGetUUID`) as lower-case hexadecimal without dashes.
fn plain_uuid(uuid: &str) -> Option<String> {
    let digits: String = uuid.strip_prefix("GPU-")?.chars().filter(|digit| *digit != '-').collect();
    let is_uuid = digits.len() == 32 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    is_uuid.then(|| digits.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Device, TraceBuilder};

    fn processes(pids: &[u32]) -> Vec<(u32, String)> {
        pids.iter().map(|&pid| (pid, format!("p{pid}"))).collect()
    }

    /// A trace with these devices, on each of which these processes have a context.
    fn trace(devices: &[(&str, &[u32])]) -> Trace {
        let mut builder = TraceBuilder::new();
        for (id, (uuid, pids)) in (0..).zip(devices) {
            let device = builder.device(id);
            builder.describe_device(device, Device { uuid: (*uuid).to_owned(), ..Device::default() });
            for &pid in *pids {
                let process = builder.process(pid);
                builder.context(process, id, device);
            }
        }
        builder.finish().unwrap()
    }

    fn numbers(trace: &Trace) -> Vec<u32> {
        trace.processes.iter().map(|process| process.pid).collect()
    }

    /// The strangers when all of the trace and the `further` ones are known.
    fn strangers(seen: &Seen, devices: &[(&str, &[u32])], further: &[u32]) -> Vec<(Option<u32>, String, Vec<String>)> {
        let trace = trace(devices);
        let mut known = Known::of(&trace, &numbers(&trace));
        trace
            .processes
            .iter()
            .map(|process| process.pid)
            .chain(further.iter().copied())
            .for_each(|pid| known.add(pid, false));
        let strangers = seen.strangers(&trace, &known).into_iter();
        strangers.map(|other| (other.pid, other.name, other.devices)).collect()
    }

    fn uuids(uuids: &[&str]) -> Vec<String> {
        uuids.iter().map(|&uuid| uuid.to_owned()).collect()
    }

    #[test]
    fn a_stranger_on_a_device_of_the_trace_is_named() {
        let mut seen = Seen::default();
        seen.add("aa", &processes(&[10]));
        seen.add("aa", &processes(&[10, 77]));
        seen.add("bb", &processes(&[11, 77]));
        seen.add("cc", &processes(&[99]));
        let stranger = (Some(77), "p77".to_owned(), uuids(&["aa", "bb"]));
        assert_eq!(strangers(&seen, &[("aa", &[10]), ("bb", &[11])], &[]), [stranger]);
        assert_eq!(strangers(&seen, &[("aa", &[10]), ("bb", &[11])], &[77]), []);
        assert_eq!(strangers(&seen, &[("bb", &[11])], &[77]), []);
        assert_eq!(strangers(&seen, &[("", &[10])], &[]), [], "a device that cannot be told");
    }

    #[test]
    fn numbers_of_another_namespace_are_not_believed() {
        let mut seen = Seen::default();
        seen.add("aa", &processes(&[4001]));
        assert_eq!(strangers(&seen, &[("aa", &[10])], &[]), [], "it may be the recorded process itself");
        seen.add("aa", &processes(&[4001, 4002]));
        let one = [(None, String::new(), uuids(&["aa"]))];
        assert_eq!(strangers(&seen, &[("aa", &[10])], &[]), one, "two, and one was recorded");
        assert_eq!(strangers(&seen, &[("aa", &[10, 11])], &[]), []);
        assert_eq!(strangers(&seen, &[("aa", &[10])], &[11]), [], "one of which it is not known where it was");
        seen.add("aa", &processes(&[4003]));
        assert_eq!(strangers(&seen, &[("aa", &[10, 11])], &[]), [], "three, but never at one time");
    }

    #[test]
    fn processes_on_one_device_do_not_hide_a_stranger_on_another() {
        let mut seen = Seen::default();
        seen.add("aa", &processes(&[4001]));
        seen.add("bb", &processes(&[4002, 4009]));
        let devices: [(&str, &[u32]); 2] = [("aa", &[10]), ("bb", &[11])];
        assert_eq!(strangers(&seen, &devices, &[]), [(None, String::new(), uuids(&["bb"]))]);
        let trace = trace(&devices);
        let mut known = Known::of(&trace, &numbers(&trace));
        known.add(10, true);
        known.add(11, false);
        assert_eq!(seen.strangers(&trace, &known), [], "one that was recorded in part may have been there before");
    }

    #[test]
    fn a_process_that_became_another_program_does_not_hide_a_stranger() {
        let mut seen = Seen::default();
        seen.add("aa", &processes(&[4001, 4002]));
        let trace = trace(&[("aa", &[10, 11])]);
        assert_eq!(seen.strangers(&trace, &Known::of(&trace, &[10, 11])), []);
        assert_eq!(seen.strangers(&trace, &Known::of(&trace, &[10, 10])).len(), 1);
    }

    #[test]
    fn in_the_first_namespace_a_stranger_is_named_even_if_nothing_recorded_was_seen() {
        let mut seen = Seen { numbers_hold: true, ..Seen::default() };
        seen.add("aa", &processes(&[77]));
        assert_eq!(strangers(&seen, &[("aa", &[10])], &[]), [(Some(77), "p77".to_owned(), uuids(&["aa"]))]);
    }

    #[test]
    fn a_name_found_later_is_kept() {
        let mut seen = Seen::default();
        seen.add("aa", &[(5, String::new())]);
        seen.add("aa", &[(5, "python".to_owned())]);
        seen.add("aa", &[(5, "other".to_owned())]);
        assert_eq!(seen.devices["aa"].at_once, 1);
        assert_eq!(seen.devices["aa"].processes[&5], "python");
    }

    #[test]
    fn uuids_are_compared_in_one_form() {
        let uuid = "GPU-1F2e3d4c-0000-1111-2222-33334444aaaa";
        assert_eq!(plain_uuid(uuid).as_deref(), Some("1f2e3d4c00001111222233334444aaaa"));
        for other in ["MIG-1f2e3d4c-0000-1111-2222-33334444aaaa", "GPU-1f2e", "", "GPU-"] {
            assert_eq!(plain_uuid(other), None);
        }
    }

    #[test]
    fn watching_ends_when_asked_with_or_without_a_driver() {
        let started = std::time::Instant::now();
        let _ = Neighbours::watch().seen();
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
