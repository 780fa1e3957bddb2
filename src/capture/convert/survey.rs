//! The first look at a spool: what holds for all of it.

use std::io::Read;

use cupti::collector::RECORDER_NOTE;
use cupti::decode::{self, Record, SizeTable, records};
use cupti::process::Birth;
use cupti::spool::{Anchor, Beside, Chunk, Drops, End, Ending, Header, Reader, SpoolError, Status, Strings};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::reuse::DeviceBuffers;
use crate::report::text::counted;
use crate::trace::WorkloadRun;

/// The key of the note that tells which bundled workload ran.
const WORKLOAD_NOTE: &str = "workload";

/// No machine has more devices; a damaged spool may claim any number.
const MOST_DEVICES: usize = 1024;

/// A name of a device or a thread, up to a length that keeps a table of them small whatever a spool says.
pub(super) fn short(name: &str) -> &str {
    const LONGEST: usize = 256;
    &name[..name.floor_char_boundary(LONGEST)]
}

/// What is of use in the recorder's note on itself.
#[derive(Deserialize)]
struct RecorderNote {
    process: Option<Birth>,
    #[serde(default)]
    attributes: serde_json::Value,
}

/// What holds for a whole spool.
pub(super) struct Survey {
    pub(super) header: Header,
    pub(super) sizes: SizeTable,
    pub(super) anchors: Vec<Anchor>,
    /// Buffers of records.
    pub(super) buffers: u64,
    /// The length of the spool.
    pub(super) bytes: u64,
    /// Device records with the names behind their pointers.
    pub(super) devices: Vec<(decode::Device, Box<str>)>,
    /// Names of callbacks by domain and id.
    pub(super) callbacks: FxHashMap<(u32, u32), Box<str>>,
    pub(super) drops: Drops,
    pub(super) status: Status,
    pub(super) beside: Beside,
    /// Which process it is of, where the recorder could tell.
    pub(super) birth: Option<Birth>,
    /// CUPTI's buffers on the device, where the recorder could set them.
    pub(super) device_buffers: Option<DeviceBuffers>,
    pub(super) workload: Option<WorkloadRun>,
    pub(super) end: Option<End>,
    /// How the spool ends, or why its rest cannot be read.
    pub(super) ending: Result<Ending, SpoolError>,
    /// Bytes of buffers that were not decoded.
    pub(super) unread_bytes: u64,
    /// Sentences for the reader.
    pub(super) remarks: Vec<String>,
}

impl Survey {
    /// Reads a spool to its end.
    ///
    /// # Errors
    /// When reading fails. Damage is no failure: it is kept in `ending`.
    pub(super) fn of<R: Read>(mut reader: Reader<R>) -> Result<Self, SpoolError> {
        let header = reader.header().clone();
        let mut sizes = SizeTable::for_version(header.cupti_version);
        for size in &header.sizes {
            sizes.set(size.kind, size.bytes);
        }
        let mut survey = Self {
            header,
            sizes,
            anchors: Vec::new(),
            buffers: 0,
            bytes: 0,
            devices: Vec::new(),
            callbacks: FxHashMap::default(),
            drops: Drops::default(),
            status: Status::default(),
            beside: Beside::default(),
            birth: None,
            device_buffers: None,
            workload: None,
            end: None,
            ending: Ok(Ending::Unfinished),
            unread_bytes: 0,
            remarks: Vec::new(),
        };
        let mut strings = Strings::default();
        let mut damage = None;
        for chunk in &mut reader {
            match chunk {
                Ok(chunk) => survey.chunk(chunk, &mut strings),
                Err(error @ SpoolError::Io { .. }) => return Err(error),
                Err(error) => damage = Some(error),
            }
        }
        let read = reader.offset();
        survey.bytes = reader.skip_rest()?;
        if reader.ending() == Some(Ending::Complete) && survey.bytes > read {
            survey.remarks.push(format!(
                "{} behind the end of the recording were not read: perhaps the file holds another one",
                counted(survey.bytes - read, "byte", "bytes")
            ));
        }
        survey.ending = damage.map_or_else(|| Ok(reader.ending().unwrap_or(Ending::Unfinished)), Err);
        Ok(survey)
    }

    fn chunk(&mut self, chunk: Chunk, strings: &mut Strings) {
        match chunk {
            Chunk::Sizes(sizes) => {
                for size in sizes {
                    self.sizes.set(size.kind, size.bytes);
                }
            }
            Chunk::Strings { texts, .. } => strings.extend(texts),
            Chunk::Buffer { seq, bytes } => self.buffer(seq, &bytes, strings),
            Chunk::CallbackNames(names) => {
                self.callbacks.extend(names.into_iter().map(|name| ((name.domain, name.cbid), name.name)));
            }
            Chunk::Anchor(anchor) => self.anchors.push(anchor),
            // Each counts from the start of the recording.
            Chunk::Drops(drops) => self.drops = drops,
            Chunk::Status(status) => self.status = status,
            Chunk::Beside(beside) => self.beside = *beside,
            Chunk::Note(note) if &*note.key == WORKLOAD_NOTE => match serde_json::from_str(&note.json) {
                Ok(run) => self.workload = Some(run),
                Err(error) => self.remarks.push(format!("the note about the workload cannot be read: {error}")),
            },
            Chunk::Note(note) if &*note.key == RECORDER_NOTE => {
                let told: Option<RecorderNote> = serde_json::from_str(&note.json).ok();
                let Some(told) = told else { return };
                self.birth = told.process.or(self.birth);
                self.device_buffers = DeviceBuffers::of(told.attributes).or(self.device_buffers);
            }
            Chunk::Note(_) => {}
            Chunk::End(end) => self.end = Some(end),
        }
    }

    fn buffer(&mut self, seq: u64, bytes: &[u8], strings: &Strings) {
        self.buffers += 1;
        let mut decoded = records(&self.sizes, bytes);
        for record in &mut decoded {
            if let Record::Device(device) = record {
                let name = short(strings.get(device.name.0).unwrap_or_default());
                match self.devices.iter().position(|(known, _)| known.id == device.id) {
                    Some(at) => self.devices[at] = (device, name.into()),
                    None if self.devices.len() < MOST_DEVICES => self.devices.push((device, name.into())),
                    None => {}
                }
            }
        }
        let summary = decoded.summary();
        self.unread_bytes += summary.unread_bytes;
        // A forced flush leaves records that were not written at the end of a buffer; anything else is remarkable.
        if let Some(fault) = summary.fault.filter(|fault| fault.reason != decode::FaultReason::Unwritten) {
            self.remarks.push(format!("buffer {seq} cannot be decoded {fault}"));
        }
    }
}
