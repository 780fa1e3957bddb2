//! Records as a source gives them.

use super::super::ids::{ContextIdx, CorrelationId, GraphId, NameId, ProcessIdx, StreamIdx, ThreadIdx};
use super::super::model::{Detail, OpKind, SyncKind};

/// One op as a source gives it. Times are absolute, on the source's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpInput {
    /// Start, in nanoseconds. Start and end both 0 mean that the times could not be collected.
    pub start: i64,
    /// End, in nanoseconds. 0 with a start means that the op was still running.
    pub end: i64,
    /// The stream.
    pub stream: StreamIdx,
    /// The kind.
    pub kind: OpKind,
    /// The name.
    pub name: NameId,
    /// The correlation id.
    pub correlation: CorrelationId,
    /// Bytes copied or set.
    pub bytes: u64,
    /// The graph.
    pub graph: GraphId,
    /// The graph node.
    pub graph_node: u64,
    /// Launch shape or copy kind.
    pub detail: Detail,
}

/// One API call as a source gives it. Times are absolute, on the source's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInput {
    /// Start, in nanoseconds.
    pub start: i64,
    /// End, in nanoseconds.
    pub end: i64,
    /// The thread.
    pub thread: ThreadIdx,
    /// The name.
    pub name: NameId,
    /// The correlation id.
    pub correlation: CorrelationId,
    /// The returned value.
    pub result: i32,
}

/// One synchronisation as a source gives it. Times are absolute, on the source's clock.
#[derive(Clone, Copy, Debug)]
pub struct SyncInput {
    /// Start, in nanoseconds.
    pub start: i64,
    /// End, in nanoseconds.
    pub end: i64,
    /// What was waited for.
    pub kind: SyncKind,
    /// The process.
    pub process: ProcessIdx,
    /// The context.
    pub context: Option<ContextIdx>,
    /// The stream.
    pub stream: Option<StreamIdx>,
    /// The event's id.
    pub event: Option<u32>,
    /// The synchronisation id shared with the event record.
    pub event_sync: Option<u64>,
    /// The correlation id of the awaited event record, when the source names it.
    pub awaited_record: CorrelationId,
    /// The correlation id.
    pub correlation: CorrelationId,
}

/// One event record as a source gives it. The time is absolute, on the source's clock.
#[derive(Clone, Copy, Debug)]
pub struct EventInput {
    /// The process.
    pub process: ProcessIdx,
    /// The context.
    pub context: Option<ContextIdx>,
    /// The stream.
    pub stream: Option<StreamIdx>,
    /// The event's id.
    pub event: u32,
    /// The synchronisation id shared with the waits for it.
    pub event_sync: Option<u64>,
    /// When the device reached it; 0 when not collected.
    pub device_time: i64,
    /// The correlation id.
    pub correlation: CorrelationId,
}
