//! The spool (`*.bubcap`): what the recorder writes while the program runs.
//!
//! A spool stands for itself: it holds the raw activity buffers and everything needed to read them without CUPTI,
//! that is the record sizes of the version that wrote them, the texts behind the pointers inside them, the names of
//! the callback ids and readings of the clocks.
//!
//! ```text
//! file   = magic (8 bytes) , format version (u32) , chunk*
//! chunk  = tag u8 , encoding u8 , zero u16 , stored length u32 , plain length u32 , crc32 u32 , payload
//! ```
//! Encodings: 0 is as it is, 1 zstd, 2 one LZ4 block, which format version 2 added. All numbers are little-endian. The checksum covers the first twelve bytes of the chunk and its stored payload. The
//! first chunk is the [`Header`], the last an [`End`]; a spool that was cut anywhere still gives every whole chunk.
//! Texts come before the buffer which holds their pointers, and a later text for the same pointer replaces an earlier
//! one: a pointer means what the last text before its buffer said. Chunks with an unknown tag are skipped. A long buffer
//! is in several chunks of one number, each of whole records, so that a cut costs no more than the last of them.

mod beside;
mod compact;
mod extract;
mod frame;
mod outline;
mod packing;
mod pieces;
mod reader;
mod strings;
mod writer;

pub use beside::{Beside, Other, annotate};
pub use compact::{Paths, compact};
pub use extract::extract;
pub use frame::MAGIC;
pub use outline::{Outline, outline};
pub use reader::{Ending, Reader, SpoolError};
pub use strings::Strings;
pub use writer::Writer;

use crate::decode::SizeTable;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The newest format version this code writes and reads.
pub const FORMAT_VERSION: u32 = 2;

/// The size in bytes of one kind of activity record in the buffers of a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordSize {
    /// `CUpti_ActivityKind`.
    pub kind: u32,
    /// Bytes from one record of this kind to the next.
    pub bytes: u32,
}

/// How work inside CUDA graphs is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Graphs {
    /// One record for each node of each launch.
    #[default]
    Node,
    /// One record for each launch of a graph: cheapest, and no record of what is inside.
    Graph,
}

/// What the machine was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Kernel name and release.
    pub os: String,
    /// The processor's model name.
    pub cpu: String,
    /// Logical processors the recorded process could use.
    pub cpus: u32,
    /// Which start of the system it was (`boot_id`, random(4)): `CLOCK_MONOTONIC` counts from it. Empty when unknown.
    pub boot: String,
}

/// The first chunk: what was recorded, where and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Name and version of the recorder.
    pub recorder: String,
    /// `cuptiGetVersion` of the library that filled the buffers.
    pub cupti_version: u32,
    /// The file that library was loaded from.
    pub cupti_path: String,
    /// `cuDriverGetVersion`: `1000 * major + 10 * minor`; 0 when it was not asked.
    pub driver_version: u32,
    /// The recorded process.
    pub pid: u32,
    /// Its executable.
    pub exe: String,
    /// Its arguments, the first being the name it was called by.
    pub command_line: Vec<String>,
    /// `CLOCK_REALTIME` at the start of recording, in nanoseconds since 1970.
    pub start_realtime_ns: i64,
    /// The activity kinds that were enabled.
    pub kinds: Vec<u32>,
    /// How graphs are recorded.
    pub graphs: Graphs,
    /// Record sizes known when the recording started; [`Chunk::Sizes`] adds to them.
    pub sizes: Vec<RecordSize>,
    /// What the machine was.
    pub machine: Machine,
    /// Whether the process had started CUDA before, so that work of its own may have come earlier.
    pub begins_late: bool,
}

impl Header {
    /// The record sizes of the buffers that follow; [`Chunk::Sizes`] changes them.
    pub fn size_table(&self) -> SizeTable {
        let mut table = SizeTable::for_version(self.cupti_version);
        for size in &self.sizes {
            table.set(size.kind, size.bytes);
        }
        table
    }

    /// Without the folders of this machine, for spools that are given away: of the executable, the library
    /// and absolute paths among the arguments only the file name is kept.
    #[must_use]
    pub fn without_paths(mut self) -> Self {
        for text in self.command_line.iter_mut().chain([&mut self.exe, &mut self.cupti_path]) {
            if let Some(name) = file_name(text) {
                *text = name;
            }
        }
        self
    }
}

/// The last part of an absolute path; `None` for any other text.
fn file_name(text: &str) -> Option<String> {
    let path = Path::new(text);
    path.is_absolute().then(|| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
}

/// The text behind one pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The pointer, as it stands in the records.
    pub pointer: u64,
    /// What stood there; bytes that were not UTF-8 have been replaced.
    pub text: Box<str>,
}

/// The name of one callback id (`cuptiGetCallbackName`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackName {
    /// `CUpti_CallbackDomain`: 1 is the driver API, 2 the runtime API.
    pub domain: u32,
    /// The id within its domain.
    pub cbid: u32,
    /// The name with its version suffix, such as `cudaLaunchKernel_v7000`.
    pub name: Box<str>,
}

/// One reading of the clocks, all within `uncertainty_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// `CLOCK_REALTIME` in nanoseconds.
    pub realtime_ns: i64,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub monotonic_ns: i64,
    /// `cuptiGetTimestamp`: the clock of the records.
    pub cupti_ns: u64,
    /// The time the three readings took.
    pub uncertainty_ns: u32,
}

/// What was lost since the start of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Records that CUPTI says it dropped (`cuptiActivityGetNumDroppedRecords`).
    pub records: u64,
    /// Buffers full of records that went into the discard buffer, because the recorder's memory was used up.
    pub discarded_buffers: u64,
    /// Bytes of records in those.
    pub discarded_bytes: u64,
    /// Buffers that could not be written to the spool.
    pub unwritten_buffers: u64,
}

impl Drops {
    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How things stand with the recording, written when that has changed. Later recorders may add to it: a reader takes
/// what it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Buffers that CUPTI had before complete ones were last fetched, and did not give: work in them was not finished.
    /// Their records are not in the spool.
    pub held_buffers: u64,
    /// `CLOCK_REALTIME` when recording was switched off while the process lived on; 0 while it is on.
    pub off_since_ns: i64,
    /// Bytes of activity buffers, in use or ready. 0 when an earlier recorder did not tell.
    pub pool_bytes: u64,
    /// What the recorder has allocated beside them, in steps of 64 KiB. 0 when it did not tell.
    pub heap_bytes: u64,
}

/// A free note: a key and a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub key: Box<str>,
    /// JSON.
    pub json: Box<str>,
}

/// The last chunk of a recording that was stopped in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Buffers in the spool.
    pub buffers: u64,
    /// Bytes of records in them.
    pub bytes: u64,
    /// Buffers that CUPTI had not given back.
    pub outstanding: u64,
}

/// One part of a spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Record sizes learned while recording.
    Sizes(Vec<RecordSize>),
    /// Texts behind the pointers of the buffer `seq` and later ones.
    Strings {
        /// The buffer in which they were first seen.
        seq: u64,
        /// Pointers and texts.
        texts: Vec<Text>,
    },
    /// One activity buffer as CUPTI filled it, or a piece of one.
    Buffer {
        /// Counts from 0 in the order of completion; the pieces of one buffer share its number.
        seq: u64,
        /// Its valid bytes: whole records.
        bytes: Vec<u8>,
    },
    /// Names of callback ids seen for the first time.
    CallbackNames(Vec<CallbackName>),
    /// One reading of the clocks.
    Anchor(Anchor),
    /// What was lost so far.
    Drops(Drops),
    /// How things stand.
    Status(Status),
    /// A free note.
    Note(Note),
    /// What whoever collected the spool knew beside it.
    Beside(Box<Beside>),
    /// The recording was stopped in order.
    End(End),
}

#[cfg(test)]
mod tests;
