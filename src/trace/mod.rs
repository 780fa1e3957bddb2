//! The model of a recording: ops, calls, syncs and ranges in columns, and the file they are kept in.
//!
//! This module knows nothing of analysis, CUPTI or how a trace is drawn.

mod api;
mod builder;
mod derived;
pub mod file;
mod ids;
mod link;
mod meta;
mod model;
mod names;
mod outline;
mod part;
mod time;

pub use api::{ApiKind, CaptureEdge, base_name, loads_code};
pub use builder::{BuildError, CallInput, EventInput, OpInput, SyncInput, TraceBuilder};
pub use ids::{
    CallIdx, ContextIdx, CorrelationId, DetailId, DeviceIdx, GraphId, NameId, OpIdx, ProcessIdx, RangeIdx, StreamIdx,
    ThreadIdx,
};
pub use meta::{CaptureMode, Losses, Meta, Recorded, Source, Unrecorded, WorkloadRun};
pub use model::{
    Calls, Context, Detail, Device, EventRecord, HostFunction, MemoryKind, NamedRange, OpKind, Ops, Overhead,
    OverheadKind, Process, RangeKind, Stream, StreamKind, Sync, SyncKind, Thread, Trace,
};
pub use names::Names;
pub use outline::Outline;
pub(crate) use part::Choice;
pub use part::{Rest, SURROUNDINGS, Side};
pub use time::{Interval, Ns, rfc3339};
