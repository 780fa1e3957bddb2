//! What is known about a trace as a whole: where it comes from, how it was recorded, what was lost.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::Interval;

/// What is known about a trace as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// What the trace was made from.
    pub source: Source,
    /// Unix time of the trace's zero, in nanoseconds; 0 when the source's clock has no known epoch.
    pub epoch_ns: i64,
    /// How graph launches were recorded.
    pub capture_mode: CaptureMode,
    /// Which record families the recorder had switched on.
    pub recorded: Recorded,
    /// The machine and versions the trace was recorded with, as name and value, ready to show.
    pub machine: BTreeMap<String, String>,
    /// The bundled workload that ran, if it was one.
    pub workload: Option<WorkloadRun>,
    /// What was lost or could not be read on the way here.
    pub losses: Losses,
    /// GPU processes that ran beside the recorded ones.
    pub unrecorded: Vec<Unrecorded>,
    /// Sentences for the reader about anything unusual in the source.
    pub warnings: Vec<String>,
}

/// Where a trace comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The format it was read from: `bubcap`, `kineto`, `nsys-sqlite`, `generated`.
    pub format: String,
    /// The command that was recorded, when known.
    pub command: Option<String>,
    /// Day and time of the recording, RFC 3339, when known.
    pub captured_on: Option<String>,
}

/// How graph launches appear among the ops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureMode {
    /// Each node of a replayed graph is an op.
    Node,
    /// A graph launch is one opaque op.
    Graph,
    /// The source does not tell.
    #[default]
    Unknown,
}

/// Which record families the recorder had switched on. Absent is not the same as empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recorded {
    /// Runtime or driver API calls.
    pub calls: bool,
    /// Kernels, copies and memsets.
    pub ops: bool,
    /// Synchronisation records.
    pub syncs: bool,
    /// CUDA event records.
    pub events: bool,
    /// Profiler and driver overhead.
    pub overheads: bool,
    /// NVTX or framework ranges.
    pub ranges: bool,
}

/// One run of a bundled workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadRun {
    /// Workload name, for example `scalar-readback`.
    pub workload: String,
    /// Variant name, for example `sync`.
    pub variant: String,
    /// Every option's value, as text.
    pub options: BTreeMap<String, String>,
    /// Iterations that were measured, warm-up not counted.
    pub iterations: u64,
    /// Iterations before the measured ones.
    pub warmup: u64,
    /// The answer that all variants must agree on, as text.
    pub answer: String,
    /// The measured part of the trace: set-up and warm-up left out.
    pub measured: Option<Interval>,
}

/// A process that used CUDA while others were recorded, and was not, or not all the time: devices may have been busy for
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unrecorded {
    /// Its number, if it can be known.
    pub pid: Option<u32>,
    /// Its name; empty when unknown.
    pub name: String,
    /// The devices it was seen on, by [`Device::id`](super::Device::id); empty when unknown.
    pub devices: Vec<u32>,
    /// Why it was not recorded, when that is known.
    pub reason: Option<String>,
    /// Whether it was recorded outside `times`.
    pub partly: bool,
    /// When it may have used devices without being recorded; empty: all the time.
    pub times: Vec<Interval>,
}

/// What was lost or could not be read. Figures count records where they do not say otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Records that CUPTI or the recorder dropped.
    pub dropped_records: u64,
    /// Ops whose times could not be collected (start and end both 0). They are not among the ops.
    pub ops_without_time: u64,
    /// Ops still running when recording ended (end 0). They are among the ops, up to the trace's end.
    pub unfinished_ops: u64,
    /// Records of a known kind that could not be read.
    pub unreadable_records: u64,
    /// Buffers of records that CUPTI had not given back when the recording ended. How many records they hold cannot be
    /// known.
    pub held_buffers: u64,
    /// Bytes after the last whole record or chunk.
    pub cut_bytes: u64,
    /// Records whose times are out of range, or whose end lies before their start.
    pub impossible_times: u64,
    /// Records that the source holds more than once, each beyond the first. They are not in the trace.
    pub duplicate_records: u64,
    /// The byte of the source from which on it was cut or damaged; the trace holds what comes before. Of several such
    /// sources, that of the first.
    pub damaged_at: Option<u64>,
}

impl Losses {
    /// Whether the source was cut or damaged, so that anything that seems missing may have been behind that place.
    /// [`Meta::warnings`] says what happened.
    pub fn is_damaged(&self) -> bool {
        self.damaged_at.is_some()
    }

    /// These and `more` together.
    pub(crate) fn and(self, more: Self) -> Self {
        Self {
            dropped_records: self.dropped_records.saturating_add(more.dropped_records),
            ops_without_time: self.ops_without_time.saturating_add(more.ops_without_time),
            unfinished_ops: self.unfinished_ops.saturating_add(more.unfinished_ops),
            unreadable_records: self.unreadable_records.saturating_add(more.unreadable_records),
            held_buffers: self.held_buffers.saturating_add(more.held_buffers),
            cut_bytes: self.cut_bytes.saturating_add(more.cut_bytes),
            impossible_times: self.impossible_times.saturating_add(more.impossible_times),
            duplicate_records: self.duplicate_records.saturating_add(more.duplicate_records),
            damaged_at: self.damaged_at.or(more.damaged_at),
        }
    }
}
