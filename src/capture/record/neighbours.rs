//! Who else uses the devices while a program is recorded, as NVML tells (`nvmlDeviceGetComputeRunningProcesses`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use nvml_wrapper::Nvml;

use crate::trace::{Device, Unrecorded};

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

    /// The processes that were on one of `devices` beside the `recorded` ones. In a container the driver's process
    /// numbers may be those of the host: there they are believed only if a recorded process is among them, and otherwise
    /// only that there are more on a device than may be `own`, by its number in the trace.
    pub(super) fn unrecorded(
        &self,
        devices: &[Device],
        recorded: &BTreeSet<u32>,
        own: impl Fn(u32) -> usize,
    ) -> Vec<Unrecorded> {
        let on = |uuid: &str| self.devices.get(uuid).filter(|_| !uuid.is_empty());
        let mut seen = devices.iter().filter_map(|device| on(&device.uuid));
        let numbers_hold = self.numbers_hold || seen.any(|seen| recorded.iter().any(|pid| seen.has(*pid)));
        let mut found: BTreeMap<u32, Unrecorded> = BTreeMap::new();
        let mut unknown = Vec::new();
        for device in devices {
            let Some(seen) = on(&device.uuid) else { continue };
            if numbers_hold {
                for (&pid, name) in seen.processes.iter().filter(|(pid, _)| !recorded.contains(pid)) {
                    let entry = found.entry(pid).or_insert_with(|| Unrecorded {
                        pid: Some(pid),
                        name: name.clone(),
                        ..Unrecorded::default()
                    });
                    entry.devices.push(device.id);
                }
            } else if seen.at_once > own(device.id) {
                unknown.push(device.id);
            }
        }
        let unknown = (!unknown.is_empty()).then(|| Unrecorded { devices: unknown, ..Unrecorded::default() });
        found.into_values().chain(unknown).collect()
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
    seen: Receiver<Seen>,
}

impl Neighbours {
    /// Starts watching.
    pub(super) fn watch() -> Self {
        let (stop, stopped) = channel();
        let (told, seen) = channel();
        // Without the thread nothing is seen, which is said nowhere: nothing can be said.
        let _ = std::thread::Builder::new().name("neighbours".to_owned()).spawn(move || {
            let _ = told.send(watch(&stopped));
        });
        Self { stop, seen }
    }

    /// What was seen until now.
    pub(super) fn seen(self) -> Seen {
        /// The driver may be slow to start, and what it saw then is of no use.
        const PATIENCE: Duration = Duration::from_millis(500);
        drop(self.stop);
        self.seen.recv_timeout(PATIENCE).unwrap_or_default()
    }
}

fn watch(stopped: &Receiver<()>) -> Seen {
    let mut seen = Seen { numbers_hold: in_first_namespace(), ..Seen::default() };
    let Ok(nvml) = Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init() else { return seen };
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
            seen.add(uuid, &now);
        }
        if stopped.recv_timeout(intervals.next().unwrap_or(INTERVAL)) != Err(RecvTimeoutError::Timeout) {
            return seen;
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

    fn device(id: u32, uuid: &str) -> Device {
        Device { id, uuid: uuid.to_owned(), ..Device::default() }
    }

    fn processes(pids: &[u32]) -> Vec<(u32, String)> {
        pids.iter().map(|&pid| (pid, format!("p{pid}"))).collect()
    }

    fn found(seen: &Seen, devices: &[Device], recorded: &[u32]) -> Vec<(Option<u32>, String, Vec<u32>)> {
        found_beside(seen, devices, recorded, |_| recorded.len())
    }

    fn found_beside(
        seen: &Seen,
        devices: &[Device],
        recorded: &[u32],
        own: impl Fn(u32) -> usize,
    ) -> Vec<(Option<u32>, String, Vec<u32>)> {
        let recorded = recorded.iter().copied().collect();
        let unrecorded = seen.unrecorded(devices, &recorded, own).into_iter();
        unrecorded.map(|process| (process.pid, process.name, process.devices)).collect()
    }

    #[test]
    fn a_stranger_on_a_device_of_the_trace_is_named() {
        let mut seen = Seen::default();
        seen.add("aa", &processes(&[10]));
        seen.add("aa", &processes(&[10, 77]));
        seen.add("bb", &processes(&[11, 77]));
        seen.add("cc", &processes(&[99]));
        let devices = [device(0, "aa"), device(3, "bb")];
        let stranger = (Some(77), "p77".to_owned(), vec![0, 3]);
        assert_eq!(found(&seen, &devices, &[10, 11]), [stranger]);
        assert_eq!(found(&seen, &devices, &[10, 11, 77]), []);
        assert_eq!(found(&seen, &devices[1..], &[11, 77]), []);
        assert_eq!(found(&seen, &[device(0, "")], &[10]), [], "a device that cannot be told");
    }

    #[test]
    fn numbers_of_another_namespace_are_not_believed() {
        let mut seen = Seen::default();
        seen.add("aa", &processes(&[4001]));
        let devices = [device(0, "aa")];
        assert_eq!(found(&seen, &devices, &[10]), [], "it may be the recorded process itself");
        seen.add("aa", &processes(&[4001, 4002]));
        assert_eq!(found(&seen, &devices, &[10]), [(None, String::new(), vec![0])], "two, and one was recorded");
        assert_eq!(found(&seen, &devices, &[10, 11]), []);
        seen.add("aa", &processes(&[4003]));
        assert_eq!(found(&seen, &devices, &[10, 11]), [], "three, but never at one time");
    }

    #[test]
    fn in_the_first_namespace_a_stranger_is_named_even_if_nothing_recorded_was_seen() {
        let mut seen = Seen { numbers_hold: true, ..Seen::default() };
        seen.add("aa", &processes(&[77]));
        assert_eq!(found(&seen, &[device(0, "aa")], &[10]), [(Some(77), "p77".to_owned(), vec![0])]);
    }

    #[test]
    fn numbers_of_another_namespace_are_counted_for_each_device() {
        let mut seen = Seen::default();
        // Two were recorded, one on each device, and a stranger is on the second.
        seen.add("aa", &processes(&[4001]));
        seen.add("bb", &processes(&[4002, 4003]));
        let devices = [device(0, "aa"), device(1, "bb")];
        assert_eq!(found_beside(&seen, &devices, &[10, 11], |_| 1), [(None, String::new(), vec![1])]);
        assert_eq!(found_beside(&seen, &devices, &[10, 11], |_| 2), []);
    }

    #[test]
    fn a_name_found_later_is_kept() {
        let mut seen = Seen::default();
        seen.add("aa", &[(5, String::new())]);
        seen.add("aa", &[(5, "python".to_owned())]);
        seen.add("aa", &[(5, "other".to_owned())]);
        assert_eq!(found(&seen, &[device(0, "aa")], &[]).len(), 1);
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
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
