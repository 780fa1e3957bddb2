//! What to record.

use crate::spool::Graphs;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What to record, and how much memory it may take. The default is what Bubblescope's analysis needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// How work inside CUDA graphs is recorded.
    pub graphs: Graphs,
    /// NVTX ranges and marks.
    pub nvtx: bool,
    /// Every device allocation and free.
    pub memory: bool,
    /// CUDA event records (`CUPTI_ACTIVITY_KIND_CUDA_EVENT`), where the library can switch them on by themselves
    /// (CUDA 12.9 and later; older ones give them with the synchronisations).
    pub events: bool,
    /// Also the calls that only ask for a state and are never a cause of idle time, such as `cudaGetDevice`.
    pub all_apis: bool,
    /// Also synchronisation records of event and stream queries that found the work unfinished.
    pub all_syncs: bool,
    /// The libcupti to load; otherwise it is looked for.
    pub cupti: Option<PathBuf>,
    /// Bytes of one activity buffer. CUPTI keeps what it needs to know of each call until the buffer with its record is full,
    /// in memory of the thread that made the call; so large buffers cost more than their own size.
    pub buffer_bytes: usize,
    /// Buffers made ready before recording starts.
    pub buffers: usize,
    /// The most memory that activity buffers may take. What would need more is dropped and counted.
    pub memory_limit: usize,
    /// How often complete buffers are fetched and the clocks are read.
    #[serde(with = "millis")]
    pub flush_interval: Duration,
    /// Bytes of one of CUPTI's buffers on the device. It takes memory of the host for each as well.
    pub device_buffer_bytes: usize,
    /// How many of those are made ready in each context.
    pub device_buffers: usize,
    /// How many of those there may be in each context, more than are made ready. CUPTI takes another one where all are in
    /// use, uses them again when their records are complete, and has no times for work beyond.
    pub device_buffer_limit: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            graphs: Graphs::Node,
            nvtx: false,
            memory: false,
            events: false,
            all_apis: false,
            all_syncs: false,
            cupti: None,
            buffer_bytes: 512 << 10,
            buffers: 64,
            memory_limit: 1 << 30,
            flush_interval: Duration::from_millis(250),
            device_buffer_bytes: 2 << 20,
            device_buffers: 16,
            device_buffer_limit: 250,
        }
    }
}

/// A duration as whole milliseconds.
mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
