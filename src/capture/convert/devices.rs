//! Which devices of several processes are the same.

use std::fmt::Write as _;

use cupti::decode;
use rustc_hash::FxHashMap;

use super::survey::Survey;
use crate::trace::{Device, DeviceIdx, TraceBuilder};

/// The devices of all processes. A process numbers its devices itself (`CUDA_VISIBLE_DEVICES`), so devices are the same
/// when their UUIDs are.
#[derive(Default)]
pub(super) struct Devices {
    /// Number and description of each device, by UUID.
    known: FxHashMap<String, Device>,
    numbers: Vec<u32>,
}

/// The devices of one process, by the process's own numbers.
pub(super) type LocalDevices = FxHashMap<u32, Device>;

impl Devices {
    /// Takes in the device records of one process.
    pub(super) fn of_process(&mut self, survey: &Survey) -> LocalDevices {
        let mut local = LocalDevices::default();
        for (record, name) in &survey.devices {
            let uuid = uuid(record);
            let device = match self.known.get(&uuid) {
                Some(device) => device.clone(),
                None => {
                    let device = Device {
                        id: self.free_number(record.id),
                        name: name.to_string(),
                        uuid: uuid.clone(),
                        multiprocessors: record.num_multiprocessors,
                        compute_capability: (record.compute_capability_major, record.compute_capability_minor),
                    };
                    self.numbers.push(device.id);
                    if !uuid.is_empty() {
                        self.known.insert(uuid, device.clone());
                    }
                    device
                }
            };
            local.insert(record.id, device);
        }
        local
    }

    /// The number itself if no other device has it, else the lowest that is free.
    fn free_number(&self, number: u32) -> u32 {
        let free = |number: &u32| !self.numbers.contains(number);
        if free(&number) { number } else { (0..=u32::MAX).find(free).unwrap_or(number) }
    }
}

/// The UUID of a device, or of the instance of it that the process sees, as lower-case hexadecimal.
fn uuid(record: &decode::Device) -> String {
    let divided = record.is_mig_enabled != 0 && record.mig_uuid != [0; 16];
    let bytes = if divided { record.mig_uuid } else { record.uuid };
    if bytes == [0; 16] {
        return String::new();
    }
    bytes.iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The device in the trace that the process calls `number`; described if there is a record of it.
pub(super) fn device_in_trace(builder: &mut TraceBuilder, local: &LocalDevices, number: u32) -> DeviceIdx {
    match local.get(&number) {
        Some(device) => {
            let index = builder.device(device.id);
            builder.describe_device(index, device.clone());
            index
        }
        None => builder.device(number),
    }
}
