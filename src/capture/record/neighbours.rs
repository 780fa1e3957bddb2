//! Who else uses the devices while a program is recorded, as NVML tells (`nvmlDeviceGetComputeRunningProcesses`).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use nvml_wrapper::Nvml;

use crate::trace::{Device, Unrecorded};

/// How often the driver is asked.
const INTERVAL: Duration = Duration::from_millis(500);

/// The control program of MPS holds devices for its clients, which are listed themselves.
const MPS_SERVER: &str = "nvidia-cuda-mps";

/// Processes seen on devices, by the device's UUID in the form of [`Device::uuid`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(BTreeMap<String, OnDevice>);

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
        let device = self.0.entry(device.to_owned()).or_default();
        device.at_once = device.at_once.max(now.len());
        for (pid, name) in now {
            let known = device.processes.entry(*pid).or_default();
            if known.is_empty() {
                known.clone_from(name);
            }
        }
    }

    /// The processes that were on one of `devices` beside the `recorded` ones. In a container the driver's process
    /// numbers may be those of the host: they are believed only if a recorded process is among them, and otherwise only
    /// that there are more than were recorded.
    pub(super) fn unrecorded(&self, devices: &[Device], recorded: &BTreeSet<u32>) -> Vec<Unrecorded> {
        let on = |uuid: &str| self.0.get(uuid).filter(|_| !uuid.is_empty());
        let numbers_hold =
            devices.iter().filter_map(|device| on(&device.uuid)).any(|seen| recorded.iter().any(|pid| seen.has(*pid)));
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
            } else if seen.at_once > recorded.len() {
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
    let mut seen = Seen::default();
    let Ok(nvml) = Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init() else { return seen };
    let devices: Vec<_> = (0..nvml.device_count().unwrap_or(0))
        .filter_map(|index| {
            let device = nvml.device_by_index(index).ok()?;
            let uuid = plain_uuid(&device.uuid().ok()?)?;
            Some((device, uuid))
        })
        .collect();
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
        if stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return seen;
        }
    }
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
        let recorded = recorded.iter().copied().collect();
        let unrecorded = seen.unrecorded(devices, &recorded).into_iter();
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
    fn a_name_found_later_is_kept() {
        let mut seen = Seen::default();
        seen.add("aa", &[(5, String::new())]);
        seen.add("aa", &[(5, "python".to_owned())]);
        seen.add("aa", &[(5, "other".to_owned())]);
        assert_eq!(found(&seen, &[device(0, "aa")], &[]).len(), 1);
        assert_eq!(seen.0["aa"].processes[&5], "python");
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
