//! What a trace holds beside its events.

use serde::{Deserialize, Serialize};

use super::meta::Meta;
use super::model::{Context, Detail, Device, Process, Stream, Thread, Trace};

/// Everything of a trace but its events: what they refer to by position, and what is known of the whole. Written beside
/// the events of a format that knows none of it, so that the trace can be read from it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outline {
    /// Where the trace comes from and what it is worth.
    pub meta: Meta,
    /// Every string of the trace.
    pub names: Vec<String>,
    /// Processes.
    pub processes: Vec<Process>,
    /// Devices.
    pub devices: Vec<Device>,
    /// CUDA contexts.
    pub contexts: Vec<Context>,
    /// Streams, without their ops.
    pub streams: Vec<Stream>,
    /// Host threads, without their calls and ranges.
    pub threads: Vec<Thread>,
    /// Details shared by ops of the same shape.
    pub details: Vec<Detail>,
}

impl Outline {
    /// The outline of a trace.
    pub fn of(trace: &Trace) -> Self {
        Self {
            meta: trace.meta.clone(),
            names: trace.names.iter().map(|(_, text)| text.to_owned()).collect(),
            processes: trace.processes.clone(),
            devices: trace.devices.clone(),
            contexts: trace.contexts.clone(),
            streams: trace.streams.clone(),
            threads: trace.threads.clone(),
            details: trace.details.clone(),
        }
    }
}
