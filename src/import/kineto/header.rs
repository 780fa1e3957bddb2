//! What stands beside the events.

use serde_json::Value;

use super::number::{integer, unsigned};
use crate::trace::{Device, DeviceIdx, Meta, TraceBuilder};

/// Longer descriptions of devices are not looked at.
const MAX_PROPERTIES: usize = 1 << 20;

/// The values of the outermost object that say something about the recording.
#[derive(Debug, Default)]
pub(super) struct Header {
    /// What the times of the events are relative to, in nanoseconds of Unix time; 0 when they are not.
    pub(super) base_ns: i64,
    devices: Vec<Device>,
    machine: Vec<(&'static str, String)>,
    /// The first keys, to say what a file is that is no trace.
    keys: Vec<String>,
    is_own: bool,
}

impl Header {
    /// Takes one value.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) {
        if self.keys.len() < 4 {
            let key = String::from_utf8_lossy(&key[..key.len().min(40)]);
            self.keys.push(key.chars().filter(|character| !character.is_control()).collect());
        }
        let version =
            |value: &[u8]| unsigned(value).map(|number| format!("{}.{}", number / 1_000, number % 1_000 / 10));
        match key {
            b"schema" => self.is_own |= value.starts_with(b"\"bubblescope."),
            b"baseTimeNanoseconds" => self.base_ns = integer(unquoted(value)).unwrap_or(0),
            b"deviceProperties" | b"computeProperties" if value.len() <= MAX_PROPERTIES => {
                let all: Vec<Value> = serde_json::from_slice(value).unwrap_or_default();
                self.devices.extend(all.iter().filter_map(device));
            }
            b"distributedInfo" if value.len() <= MAX_PROPERTIES => self.distributed(value),
            b"cuda_driver_version" => self.fact("driver", version(value).map(|version| format!("CUDA {version}"))),
            b"cuda_runtime_version" => self.fact("CUDA runtime", version(value)),
            b"cupti_version" => self.fact("CUPTI", unsigned(value).map(|number| number.to_string())),
            b"hip_driver_version" => self.fact("HIP driver", unsigned(value).map(|number| number.to_string())),
            b"hip_runtime_version" => self.fact("HIP runtime", unsigned(value).map(|number| number.to_string())),
            _ => {}
        }
    }

    fn fact(&mut self, name: &'static str, value: Option<String>) {
        self.machine.extend(value.map(|value| (name, value)));
    }

    fn distributed(&mut self, value: &[u8]) {
        let Ok(info) = serde_json::from_slice::<Value>(value) else { return };
        let of = info["world_size"].as_u64().map_or(String::new(), |size| format!(" of {size}"));
        self.fact("rank", info["rank"].as_u64().map(|rank| format!("{rank}{of}")));
        self.fact("backend", info["backend"].as_str().map(|backend| backend.chars().take(40).collect()));
    }

    /// Describes the devices that the events are of.
    pub(super) fn describe(&self, builder: &mut TraceBuilder, devices: &[(u32, DeviceIdx)]) {
        for &(id, device) in devices {
            if let Some(known) = self.devices.iter().find(|known| known.id == id) {
                builder.describe_device(device, known.clone());
            }
        }
    }

    /// Adds what is known about the machine.
    pub(super) fn machine(&self, meta: &mut Meta) {
        meta.machine.extend(self.machine.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    }

    /// What a file without events is.
    pub(super) fn what_it_is(&self) -> String {
        if self.is_own {
            return "it is a report of this program, not a recording".to_owned();
        }
        let keys = if self.keys.is_empty() { "empty".to_owned() } else { format!("of {}", self.keys.join(", ")) };
        format!("it is JSON without traceEvents ({keys}): no trace of PyTorch's profiler")
    }
}

fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value)
}

fn device(properties: &Value) -> Option<Device> {
    let number = |keys: [&str; 2]| {
        let value = keys.iter().find_map(|key| properties[*key].as_u64());
        value.and_then(|value| u32::try_from(value).ok())
    };
    Some(Device {
        id: number(["id", "id"])?,
        name: properties["name"].as_str().unwrap_or_default().chars().take(256).collect(),
        uuid: String::new(),
        multiprocessors: number(["numSms", "multiProcessorCount"]).unwrap_or(0),
        compute_capability: (
            number(["computeMajor", "major"]).unwrap_or(0),
            number(["computeMinor", "minor"]).unwrap_or(0),
        ),
    })
}
