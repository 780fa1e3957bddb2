//! Names of columns, tables, keys and enumerations in the file.

use std::sync::Arc;

use parquet::basic::{Encoding, Type as Physical};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use serde::{Deserialize, Serialize};

use super::super::model::{OpKind, OverheadKind, RangeKind, SyncKind, Trace};
use super::TraceFileError;

/// The newest schema that this version reads, and the one it writes.
pub(super) const VERSION: u32 = 1;
/// What `bubblescope.schema` holds before the version.
pub(super) const SCHEMA_PREFIX: &str = "bubblescope.trace/";

/// Rows of a row group, at most. The unit tests have small ones, so that small traces need several.
pub(super) const GROUP_ROWS: usize = if cfg!(test) { 1 << 6 } else { 1 << 20 };

/// A reader refuses more rows than this many per byte of the file, so that a small file cannot make it fill the memory.
const ROWS_PER_BYTE: u64 = 64;
/// Rows that a file of any size may have.
const FREE_ROWS: u64 = 1 << 20;

/// The most rows that a reader accepts in a file of so many bytes.
pub(super) const fn most_rows(bytes: u64) -> u64 {
    bytes.saturating_mul(ROWS_PER_BYTE).saturating_add(FREE_ROWS)
}

/// How many bytes a writer must add to a file of so many rows and bytes for a reader to accept it.
pub(super) const fn padding(rows: u64, bytes: u64) -> u64 {
    rows.saturating_sub(FREE_ROWS).div_ceil(ROWS_PER_BYTE).saturating_sub(bytes)
}

/// Keys of the footer's metadata.
pub(super) mod key {
    pub(in super::super) const SCHEMA: &str = "bubblescope.schema";
    pub(in super::super) const META: &str = "bubblescope.meta";
    pub(in super::super) const END: &str = "bubblescope.end_ns";
    pub(in super::super) const TABLES: &str = "bubblescope.tables";
    pub(in super::super) const NAMES: &str = "bubblescope.names";
    pub(in super::super) const PROCESSES: &str = "bubblescope.processes";
    pub(in super::super) const DEVICES: &str = "bubblescope.devices";
    pub(in super::super) const CONTEXTS: &str = "bubblescope.contexts";
    pub(in super::super) const STREAMS: &str = "bubblescope.streams";
    pub(in super::super) const THREADS: &str = "bubblescope.threads";
    pub(in super::super) const DETAILS: &str = "bubblescope.details";
    pub(in super::super) const CHECKSUM: &str = "bubblescope.checksum";
    pub(in super::super) const PADDING: &str = "bubblescope.padding";
}

/// The bytes before the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checksum {
    pub(super) bytes: u64,
    pub(super) crc32: u32,
}

/// Number of rows of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableRows {
    pub(super) ops: usize,
    pub(super) calls: usize,
    pub(super) syncs: usize,
    pub(super) events: usize,
    pub(super) host_functions: usize,
    pub(super) ranges: usize,
    pub(super) overheads: usize,
}

impl TableRows {
    pub(super) fn of(trace: &Trace) -> Self {
        Self {
            ops: trace.ops.len(),
            calls: trace.calls.len(),
            syncs: trace.syncs.len(),
            events: trace.events.len(),
            host_functions: trace.host_functions.len(),
            ranges: trace.ranges.len(),
            overheads: trace.overheads.len(),
        }
    }

    pub(super) const fn get(&self, table: Table) -> usize {
        match table {
            Table::Ops => self.ops,
            Table::Calls => self.calls,
            Table::Syncs => self.syncs,
            Table::Events => self.events,
            Table::HostFunctions => self.host_functions,
            Table::Ranges => self.ranges,
            Table::Overheads => self.overheads,
        }
    }
}

/// The tables whose rows the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Ops,
    Calls,
    Syncs,
    Events,
    HostFunctions,
    Ranges,
    Overheads,
}

impl Table {
    /// In file order.
    pub(super) const ALL: [Self; 7] =
        [Self::Ops, Self::Calls, Self::Syncs, Self::Events, Self::HostFunctions, Self::Ranges, Self::Overheads];

    /// What its rows have in `kind`; ops have their own kinds.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Ops => "",
            Self::Calls => "call",
            Self::Syncs => "sync",
            Self::Events => "event",
            Self::HostFunctions => "host-function",
            Self::Ranges => "range",
            Self::Overheads => "overhead",
        }
    }
}

/// The columns of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Kind,
    Start,
    Dur,
    Name,
    Category,
    Device,
    Pid,
    Context,
    Stream,
    Tid,
    Correlation,
    Bytes,
    Graph,
    Node,
    Detail,
    Result,
    Event,
    EventSync,
    Awaited,
}

/// How one column is stored.
pub(super) struct Storage {
    pub(super) name: &'static str,
    pub(super) physical: Physical,
    /// The type as Parquet's schema language writes it after the name.
    annotation: &'static str,
    pub(super) optional: bool,
    /// `None`: dictionary.
    pub(super) encoding: Option<Encoding>,
}

const STRING: &str = "(STRING)";
const UINT32: &str = "(INTEGER(32,false))";
const UINT64: &str = "(INTEGER(64,false))";

impl Column {
    /// In file order.
    pub(super) const ALL: [Self; 19] = [
        Self::Kind,
        Self::Start,
        Self::Dur,
        Self::Name,
        Self::Category,
        Self::Device,
        Self::Pid,
        Self::Context,
        Self::Stream,
        Self::Tid,
        Self::Correlation,
        Self::Bytes,
        Self::Graph,
        Self::Node,
        Self::Detail,
        Self::Result,
        Self::Event,
        Self::EventSync,
        Self::Awaited,
    ];

    pub(super) const fn storage(self) -> Storage {
        use Physical::{BYTE_ARRAY, INT32, INT64};
        const DELTA: Option<Encoding> = Some(Encoding::DELTA_BINARY_PACKED);
        let (name, physical, annotation, optional, encoding) = match self {
            Self::Kind => ("kind", BYTE_ARRAY, STRING, false, None),
            Self::Start => ("start_ns", INT64, "", true, DELTA),
            Self::Dur => ("dur_ns", INT64, "", true, DELTA),
            Self::Name => ("name", BYTE_ARRAY, STRING, true, None),
            Self::Category => ("category", BYTE_ARRAY, STRING, true, None),
            Self::Device => ("device", INT32, UINT32, true, None),
            Self::Pid => ("pid", INT32, UINT32, false, None),
            Self::Context => ("context", INT32, UINT32, true, None),
            Self::Stream => ("stream", INT32, UINT32, true, None),
            Self::Tid => ("tid", INT64, UINT64, true, None),
            Self::Correlation => ("correlation", INT64, UINT64, true, DELTA),
            Self::Bytes => ("bytes", INT64, UINT64, true, None),
            Self::Graph => ("graph", INT32, UINT32, true, None),
            Self::Node => ("node", INT64, UINT64, true, None),
            Self::Detail => ("detail", INT32, UINT32, true, None),
            Self::Result => ("result", INT32, "", true, None),
            Self::Event => ("event", INT32, UINT32, true, None),
            Self::EventSync => ("event_sync", INT64, UINT64, true, DELTA),
            Self::Awaited => ("awaited_correlation", INT64, UINT64, true, DELTA),
        };
        Storage { name, physical, annotation, optional, encoding }
    }
}

/// The schema of the file.
pub(super) fn message_type() -> Result<TypePtr, TraceFileError> {
    use std::fmt::Write as _;
    let mut text = String::from("message bubblescope_trace {\n");
    for column in Column::ALL {
        let Storage { name, physical, annotation, optional, .. } = column.storage();
        let repetition = if optional { "OPTIONAL" } else { "REQUIRED" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{repetition} {physical} {name} {annotation};");
    }
    text.push('}');
    Ok(Arc::new(parse_message_type(&text)?))
}

/// An enumeration that the file spells out.
pub(super) trait Spelled: Copy + PartialEq + 'static {
    const SPELLINGS: &'static [(Self, &'static str)];

    fn spelling(self) -> &'static str {
        Self::SPELLINGS.iter().find(|(value, _)| *value == self).map_or("", |(_, text)| text)
    }

    fn from_spelling(text: &[u8]) -> Option<Self> {
        Self::SPELLINGS.iter().find(|(_, spelling)| spelling.as_bytes() == text).map(|&(value, _)| value)
    }
}

impl Spelled for OpKind {
    const SPELLINGS: &'static [(Self, &'static str)] =
        &[(Self::Kernel, "kernel"), (Self::Copy, "copy"), (Self::Memset, "memset"), (Self::Graph, "graph")];
}

impl Spelled for SyncKind {
    const SPELLINGS: &'static [(Self, &'static str)] = &[
        (Self::Event, "event"),
        (Self::StreamWaitEvent, "stream-wait-event"),
        (Self::Stream, "stream"),
        (Self::Context, "context"),
    ];
}

impl Spelled for RangeKind {
    const SPELLINGS: &'static [(Self, &'static str)] =
        &[(Self::Nvtx, "nvtx"), (Self::Operator, "operator"), (Self::Annotation, "annotation")];
}

impl Spelled for OverheadKind {
    const SPELLINGS: &'static [(Self, &'static str)] = &[
        (Self::Compiler, "compiler"),
        (Self::ProfilerBuffer, "profiler-buffer"),
        (Self::ProfilerInstrumentation, "profiler-instrumentation"),
        (Self::ProfilerResource, "profiler-resource"),
        (Self::ProfilerDeviceBuffer, "profiler-device-buffer"),
        (Self::ModuleLoading, "module-loading"),
        (Self::LazyLoading, "lazy-loading"),
        (Self::CommandBufferFull, "command-buffer-full"),
        (Self::Unknown, "unknown"),
    ];
}
