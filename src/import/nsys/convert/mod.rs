//! Makes a trace of an export's tables.

mod calls;
mod describe;
mod ops;
mod ranges;
mod syncs;

use rustc_hash::{FxHashMap, FxHashSet};

use super::database::{Database, Row};
use super::enums::Enumerations;
use super::lanes::Lanes;
use super::strings::Strings;
use crate::import::{ImportError, Notes};
use crate::progress::Watch;
use crate::trace::{CorrelationId, MemoryKind, NameId, OpKind, ProcessIdx, Recorded, Trace, TraceBuilder};

/// Tables of one family, whatever a version calls them.
const CALLS: &[&str] = &["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"];
const KERNELS: &[&str] = &["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"];
const COPIES: &[&str] = &["CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2"];
const MEMSETS: &[&str] = &["CUPTI_ACTIVITY_KIND_MEMSET"];
const GRAPHS: &[&str] = &["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"];
const HOST_FUNCTIONS: &[&str] = &["CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH"];
const SYNCS: &[&str] = &["CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"];
const EVENTS: &[&str] = &["CUPTI_ACTIVITY_KIND_CUDA_EVENT"];
const OVERHEADS: &[&str] = &["CUPTI_ACTIVITY_KIND_OVERHEAD"];
const PROFILER: &[&str] = &["PROFILER_OVERHEAD"];
const RANGES: &[&str] = &["NVTX_EVENTS"];
const META: &[&str] = &["META_DATA_EXPORT", "EXPORT_META_DATA"];

/// Every table that may be read as a whole.
pub(super) fn tables() -> impl Iterator<Item = &'static str> {
    let families =
        [CALLS, KERNELS, COPIES, MEMSETS, GRAPHS, HOST_FUNCTIONS, SYNCS, EVENTS, OVERHEADS, PROFILER, RANGES];
    families.into_iter().flatten().copied()
}

/// Columns that every table of device work has, and their places.
const OP: [&str; 9] =
    ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId", "graphId"];

/// Makes a trace of the export.
pub(super) fn convert(database: &Database<'_>, watch: &dyn Watch) -> Result<Trace, ImportError> {
    let any = |family: &[&str]| family.iter().any(|name| database.table(name).is_some());
    if !any(META) && !(any(&["StringIds"]) && (any(CALLS) || any(KERNELS) || any(COPIES))) {
        let what = "it is a SQLite database, but no export of Nsight Systems";
        return Err(ImportError::NotARecording(what.to_owned()));
    }
    let mut export = Export {
        database,
        builder: TraceBuilder::new(),
        strings: Strings::new(database)?,
        enums: Enumerations::read(database)?,
        lanes: Lanes::new(database)?,
        asynchronous: FxHashSet::default(),
        nodes: FxHashSet::default(),
        copy_names: FxHashMap::default(),
        launches_graphs: false,
        unreadable: 0,
        notes: Notes::new(),
    };
    export.builder.meta.recorded = Recorded {
        calls: any(CALLS),
        ops: [KERNELS, COPIES, MEMSETS, GRAPHS].into_iter().any(any),
        syncs: any(SYNCS),
        events: any(EVENTS),
        overheads: any(OVERHEADS),
        ranges: any(RANGES),
    };
    export.calls()?;
    export.kernels()?;
    export.copies()?;
    export.memsets()?;
    export.graphs()?;
    export.host_functions()?;
    export.syncs()?;
    export.events()?;
    export.streams()?;
    export.overheads()?;
    export.ranges()?;
    export.describe()?;
    export.builder.meta.losses.unreadable_records += export.unreadable;
    export.notes.into_warnings(&mut export.builder.meta);
    Ok(export.builder.finish_watched(watch)?)
}

/// An export on its way to a trace.
struct Export<'d> {
    database: &'d Database<'d>,
    builder: TraceBuilder,
    strings: Strings<'d>,
    enums: Enumerations,
    lanes: Lanes,
    /// Calls whose name promises not to wait for the copy or memset they make: nsys keeps no flag of it.
    asynchronous: FxHashSet<(ProcessIdx, CorrelationId)>,
    /// Launches of graphs whose nodes are recorded one by one.
    nodes: FxHashSet<(ProcessIdx, CorrelationId)>,
    copy_names: FxHashMap<(OpKind, i64, MemoryKind, MemoryKind), NameId>,
    /// Whether a call launches a graph.
    launches_graphs: bool,
    unreadable: u64,
    notes: Notes,
}

impl Export<'_> {
    /// Reads the named columns of every row of every table of a family. A row that `take` can make nothing of is
    /// counted.
    fn each(
        &mut self,
        family: &[&str],
        columns: &[&str],
        mut take: impl FnMut(&mut Self, &Row<'_>) -> Option<()>,
    ) -> Result<(), ImportError> {
        let database = self.database;
        for table in family.iter().filter_map(|name| database.table(name)) {
            database.scan(table, columns, |row| {
                if take(self, row).is_none() {
                    self.unreadable += 1;
                }
            })?;
        }
        Ok(())
    }
}

/// The columns of device work with some more behind them.
fn with(more: &[&'static str]) -> Vec<&'static str> {
    OP.iter().chain(more).copied().collect()
}

/// A correlation id; nothing that is negative can be one.
fn correlation(row: &Row<'_>, column: usize) -> CorrelationId {
    row.small(column).map_or(CorrelationId::NONE, CorrelationId)
}
