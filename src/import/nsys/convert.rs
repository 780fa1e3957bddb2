//! Makes a trace of an export's tables.

use rustc_hash::{FxHashMap, FxHashSet};

use super::database::{Database, Row, Table};
use super::enums::{Enumerations, memory_label};
use super::lanes::{Lanes, NOT_APPLICABLE};
use super::strings::Strings;
use crate::import::{ImportError, Notes};
use crate::progress::Watch;
use crate::trace::{
    ApiKind, CallInput, CaptureMode, ContextIdx, CorrelationId, Detail, Device, EventInput, GraphId, MemoryKind,
    NameId, OpInput, OpKind, OverheadKind, ProcessIdx, RangeKind, Recorded, StreamIdx, StreamKind, SyncInput, SyncKind,
    ThreadIdx, Trace, TraceBuilder,
};

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

/// The event class of calls that were recorded once more with the stack they came from (`ENUM_NSYS_EVENT_CLASS`).
const BACKTRACE: i64 = 67;
/// The severity of errors in `DIAGNOSTIC_EVENT` (`ENUM_DIAGNOSTIC_SEVERITY_LEVEL`).
const ERROR: i64 = 3;

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

/// What every row of device work tells.
struct Work {
    start: i64,
    end: i64,
    process: ProcessIdx,
    device: u32,
    stream: StreamIdx,
    correlation: CorrelationId,
    graph: GraphId,
    graph_node: u64,
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

    fn table(&self, family: &[&str]) -> Option<&Table> {
        family.iter().find_map(|name| self.database.table(name))
    }

    fn calls(&mut self) -> Result<(), ImportError> {
        const COLUMNS: [&str; 7] =
            ["start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"];
        let mut async_names: FxHashMap<NameId, bool> = FxHashMap::default();
        let mut repeats: Vec<(ProcessIdx, CallInput)> = Vec::new();
        self.each(CALLS, &COLUMNS, |export, row| {
            let (process, thread) = export.lanes.thread(&mut export.builder, row.int(2));
            let name = match row.int(4) {
                Some(id) => export.strings.name(&mut export.builder, id),
                None => export.builder.name("(call without a name)"),
            };
            let call = CallInput {
                start: row.int(0)?,
                end: row.int(1)?,
                thread,
                name,
                correlation: correlation(row, 3),
                result: row.small(5).unwrap_or(0),
            };
            if row.int(6) == Some(BACKTRACE) {
                repeats.push((process, call));
                return Some(());
            }
            let asynchronous = async_names.entry(name).or_insert_with(|| {
                let text = export.strings.text(row.int(4).unwrap_or(-1)).unwrap_or_default();
                let kind = ApiKind::of(&text);
                export.launches_graphs |= kind == ApiKind::GraphLaunch;
                matches!(kind, ApiKind::CopyAsync | ApiKind::MemsetAsync)
            });
            if *asynchronous {
                export.asynchronous.insert((process, call.correlation));
            }
            export.builder.push_call(call);
            Some(())
        })?;
        self.repeated_calls(repeats)
    }

    /// Adds calls that were only recorded with their stacks; most were recorded plainly too.
    fn repeated_calls(&mut self, repeats: Vec<(ProcessIdx, CallInput)>) -> Result<(), ImportError> {
        if repeats.is_empty() {
            return Ok(());
        }
        let mut plain: FxHashSet<(ProcessIdx, CorrelationId)> = FxHashSet::default();
        self.each(CALLS, &["globalTid", "correlationId", "eventClass"], |export, row| {
            if row.int(2) != Some(BACKTRACE) {
                plain.insert((export.lanes.process(&mut export.builder, row.int(0)), correlation(row, 1)));
            }
            Some(())
        })?;
        for (process, call) in repeats {
            if !plain.contains(&(process, call.correlation)) {
                self.builder.push_call(call);
            }
        }
        Ok(())
    }

    /// Reads what every row of device work tells. Work that belongs to no stream gets the lane of migrations.
    fn work(&mut self, row: &Row<'_>, unified: bool) -> Option<Work> {
        let process = self.lanes.process(&mut self.builder, row.int(6));
        let device = row.int(2).map_or(Some(0), |id| u32::try_from(id).ok())?;
        let context = self.lanes.context(&mut self.builder, process, device, row.small(3));
        let stream = if unified {
            Lanes::migrations(&mut self.builder, context)
        } else {
            let id = row.int(4).map_or(Some(0), |id| u32::try_from(id).ok())?;
            self.builder.stream(context, id)
        };
        let correlation = if unified { CorrelationId::NONE } else { correlation(row, 5) };
        let graph_node = row.int(7).map_or(0, i64::cast_unsigned);
        if graph_node != 0 {
            self.nodes.insert((process, correlation));
        }
        Some(Work {
            start: row.int(0)?,
            end: row.int(1).unwrap_or(0),
            process,
            device,
            stream,
            correlation,
            graph: graph(row.small(8), graph_node),
            graph_node,
        })
    }

    fn push(&mut self, work: &Work, kind: OpKind, name: NameId, bytes: u64, detail: Detail) {
        self.builder.push_op(OpInput {
            start: work.start,
            end: work.end,
            stream: work.stream,
            kind,
            name,
            correlation: work.correlation,
            bytes,
            graph: work.graph,
            graph_node: work.graph_node,
            detail,
        });
    }

    fn kernels(&mut self) -> Result<(), ImportError> {
        let columns = with(&[
            "demangledName",
            "shortName",
            "mangledName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "clusterX",
            "clusterY",
            "clusterZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
        ]);
        self.each(KERNELS, &columns, |export, row| {
            let work = export.work(row, false)?;
            let name = match [9, 11, 10].into_iter().find_map(|column| row.int(column)) {
                Some(id) => export.strings.name(&mut export.builder, id),
                None => export.builder.name("(kernel without a name)"),
            };
            let number = |column: usize| row.small(column).unwrap_or(0);
            let detail = Detail::Kernel {
                grid: [number(12), number(13), number(14)],
                block: [number(15), number(16), number(17)],
                cluster: [number(18), number(19), number(20)],
                registers: number(21),
                static_shared: number(22),
                dynamic_shared: number(23),
            };
            export.push(&work, OpKind::Kernel, name, 0, detail);
            Some(())
        })
    }

    fn copies(&mut self) -> Result<(), ImportError> {
        let columns =
            with(&["copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "bytes", "migrationCause"]);
        self.each(COPIES, &columns, |export, row| {
            let kind = row.int(9).unwrap_or(0);
            let copy = export.enums.copy(kind);
            let unified = copy.unified || row.int(15).is_some_and(|cause| cause != 0);
            let work = export.work(row, unified)?;
            let side = |kind: Option<i64>, device: Option<i64>, otherwise: MemoryKind| match (kind, device) {
                (_, Some(device)) if device != i64::from(work.device) && otherwise.on_device() => MemoryKind::Peer,
                (Some(kind), _) => export.enums.memory(kind),
                (None, _) => otherwise,
            };
            let from = side(row.int(10), row.int(12), copy.from.memory());
            let to = side(row.int(11), row.int(13), copy.to.memory());
            let name = *export.copy_names.entry((OpKind::Copy, kind, from, to)).or_insert_with(|| {
                let (prefix, direction) =
                    (if unified { "Unified memory" } else { "Memcpy" }, [copy.from.letter(), copy.to.letter()]);
                let [f, t] = direction;
                let sides = format!("({} -> {})", memory_label(from), memory_label(to));
                export.builder.name(&format!("{prefix} {f}to{t} {sides}"))
            });
            let asynchronous = unified || export.asynchronous.contains(&(work.process, work.correlation));
            let bytes = row.int(14).map_or(0, i64::cast_unsigned);
            export.push(&work, OpKind::Copy, name, bytes, Detail::Copy { from, to, asynchronous });
            Some(())
        })
    }

    fn memsets(&mut self) -> Result<(), ImportError> {
        self.each(MEMSETS, &with(&["memKind", "bytes"]), |export, row| {
            let work = export.work(row, false)?;
            let to = row.int(9).map_or(MemoryKind::Unknown, |kind| export.enums.memory(kind));
            let key = (OpKind::Memset, 0, to, to);
            let name = *export
                .copy_names
                .entry(key)
                .or_insert_with(|| export.builder.name(&format!("Memset ({})", memory_label(to))));
            let asynchronous = export.asynchronous.contains(&(work.process, work.correlation));
            let bytes = row.int(10).map_or(0, i64::cast_unsigned);
            export.push(&work, OpKind::Memset, name, bytes, Detail::Memset { to, asynchronous });
            Some(())
        })
    }

    /// Graph launches recorded whole. One whose nodes were recorded too would count twice.
    fn graphs(&mut self) -> Result<(), ImportError> {
        let mut whole = 0_u64;
        self.each(GRAPHS, &with(&["graphExecId"]), |export, row| {
            let mut work = export.work(row, false)?;
            if export.nodes.contains(&(work.process, work.correlation)) {
                export.notes.count("graph launches left out: their nodes are recorded one by one", None);
                return Some(());
            }
            whole += 1;
            let id = row.small(8).or(row.small(9)).unwrap_or(0);
            // A launch that is known to be a graph's is one, whatever number it lacks.
            work.graph = GraphId(id.max(1));
            let name = export.builder.name(&format!("graph {id}"));
            export.push(&work, OpKind::Graph, name, 0, Detail::None);
            Some(())
        })?;
        self.builder.meta.capture_mode = match (whole > 0, self.nodes.is_empty()) {
            (true, true) => CaptureMode::Graph,
            (false, false) => CaptureMode::Node,
            // Where nothing launches graphs, no node is missing.
            (false, true) if self.builder.meta.recorded.calls && !self.launches_graphs => CaptureMode::Node,
            _ => CaptureMode::Unknown,
        };
        Ok(())
    }

    fn host_functions(&mut self) -> Result<(), ImportError> {
        self.each(HOST_FUNCTIONS, &OP, |export, row| {
            let work = export.work(row, false)?;
            let Work { start, end, stream, correlation, graph, .. } = work;
            export.builder.push_host_function(start, end, stream, correlation, graph);
            Some(())
        })
    }

    fn syncs(&mut self) -> Result<(), ImportError> {
        let columns = with(&["syncType", "deprecatedSyncType", "eventId", "eventSyncId"]);
        self.each(SYNCS, &columns, |export, row| {
            let (process, context, stream) = export.home(row);
            let event = applicable(row, 11).and_then(|id| u32::try_from(id).ok());
            let number = row.int(9).or(row.int(10));
            export.builder.push_sync(SyncInput {
                start: row.int(0)?,
                end: row.int(1)?,
                kind: sync_kind(event.is_some(), stream.is_some(), number),
                process,
                context,
                stream,
                event,
                event_sync: applicable(row, 12).map(i64::cast_unsigned),
                awaited_record: CorrelationId::NONE,
                correlation: correlation(row, 5),
            });
            Some(())
        })
    }

    fn events(&mut self) -> Result<(), ImportError> {
        self.each(EVENTS, &with(&["timestamp", "eventId", "eventSyncId"]), |export, row| {
            let (process, context, stream) = export.home(row);
            export.builder.push_event(EventInput {
                process,
                context,
                stream,
                event: row.small(10)?,
                event_sync: applicable(row, 11).map(i64::cast_unsigned),
                device_time: row.int(9).unwrap_or(0),
                correlation: correlation(row, 5),
            });
            Some(())
        })
    }

    /// The process, context and stream of a record, as far as they apply.
    fn home(&mut self, row: &Row<'_>) -> (ProcessIdx, Option<ContextIdx>, Option<StreamIdx>) {
        let process = self.lanes.process(&mut self.builder, row.int(6));
        let id = |column: usize| applicable(row, column).and_then(|id| u32::try_from(id).ok());
        // These records know no device: nsys writes 0. Device work has told the devices of contexts.
        let context = id(3).map(|context| match self.builder.find_context(process, context) {
            Some(known) => known,
            None => self.lanes.context(&mut self.builder, process, id(2).unwrap_or(0), Some(context)),
        });
        let stream = context.and_then(|context| Some(self.builder.stream(context, id(4)?)));
        (process, context, stream)
    }

    /// How streams behave, as far as something happened on them.
    fn streams(&mut self) -> Result<(), ImportError> {
        let columns = ["processId", "contextId", "streamId", "flag"];
        self.each(&["TARGET_INFO_CUDA_STREAM"], &columns, |export, row| {
            // `ENUM_CUPTI_STREAM_TYPE`, which is CUpti_ActivityStreamFlag.
            let kind = match row.int(3) {
                Some(1) => StreamKind::Blocking,
                Some(2) => StreamKind::NonBlocking,
                Some(3) => StreamKind::Null,
                _ => return Some(()),
            };
            export.set_kind([row.small(0), row.small(1), row.small(2)], kind);
            Some(())
        })?;
        let columns = ["processId", "contextId", "nullStreamId"];
        self.each(&["TARGET_INFO_CUDA_CONTEXT_INFO"], &columns, |export, row| {
            export.set_kind([row.small(0), row.small(1), row.small(2)], StreamKind::Null);
            Some(())
        })
    }

    fn set_kind(&mut self, [pid, context, stream]: [Option<u32>; 3], kind: StreamKind) {
        let process = pid.and_then(|pid| self.builder.find_process(pid));
        let context = process.zip(context).and_then(|(process, id)| self.builder.find_context(process, id));
        let stream = context.zip(stream).and_then(|(context, id)| self.builder.find_stream(context, id));
        if let Some(stream) = stream {
            self.builder.set_stream_kind(stream, kind);
        }
    }

    /// CUPTI's overhead, and nsys's own, all of which is the profiler's.
    fn overheads(&mut self) -> Result<(), ImportError> {
        let columns = ["start", "end", "globalTid", "correlationId", "overheadType"];
        for (family, of_nsys) in [(OVERHEADS, false), (PROFILER, true)] {
            self.each(family, &columns, |export, row| {
                let told = row.int(4).map_or(OverheadKind::Unknown, |kind| export.enums.overhead(kind));
                let kind = if of_nsys && !told.is_profiler() { OverheadKind::ProfilerResource } else { told };
                let (start, end, correlation) = (row.int(0)?, row.int(1)?, correlation(row, 3));
                let process = export.lanes.process(&mut export.builder, row.int(2));
                let thread = row.int(2).map(|id| export.lanes.thread(&mut export.builder, Some(id)).1);
                export.builder.push_overhead(start, end, kind, process, thread, correlation);
                Some(())
            })?;
        }
        Ok(())
    }

    fn ranges(&mut self) -> Result<(), ImportError> {
        let columns = ["start", "end", "eventType", "text", "textId", "globalTid"];
        let typed = self.table(RANGES).is_some_and(|table| table.has("eventType"));
        self.each(RANGES, &columns, |export, row| {
            let (is_range, is_mark) = match row.int(2) {
                // `ENUM_NSYS_EVENT_TYPE`: push and pop, start and end; the second pair comes from text files.
                Some(59 | 60 | 70 | 71) => (true, false),
                Some(34 | 65) => (false, true),
                Some(39 | 72) => {
                    export.name_thread(row);
                    return Some(());
                }
                None if !typed => (row.int(1).is_some(), row.int(1).is_none()),
                _ => (false, false),
            };
            if !is_range && !is_mark {
                return Some(());
            }
            let start = row.int(0)?;
            let end = match row.int(1) {
                Some(end) => end,
                None if is_mark => start,
                None => {
                    export.notes.count("ranges left out: they were not closed while nsys recorded", None);
                    return Some(());
                }
            };
            let (_, thread) = export.lanes.thread(&mut export.builder, row.int(5));
            let (name, kind) = match (row.text(3), row.int(4)) {
                (Some(text), _) => match operator(&text) {
                    Some(operator) => (export.builder.name(operator), RangeKind::Operator),
                    None => (export.builder.name(&text), RangeKind::Nvtx),
                },
                (None, Some(id)) => (export.strings.name(&mut export.builder, id), RangeKind::Nvtx),
                (None, None) => (export.builder.name("(range without a name)"), RangeKind::Nvtx),
            };
            export.builder.push_range(start, end, thread, name, kind);
            Some(())
        })
    }

    /// Names a thread as an NVTX event says.
    fn name_thread(&mut self, row: &Row<'_>) {
        let text = row.text(3).or_else(|| self.strings.text(row.int(4)?));
        if let (Some(text), Some(thread)) = (text, row.int(5).and_then(|id| self.lanes.known_thread(id))) {
            self.builder.set_thread_name(thread, &text);
        }
    }

    /// Names processes, threads and devices, and says where the export comes from and what it lacks.
    fn describe(&mut self) -> Result<(), ImportError> {
        let mut names: Vec<(Option<i64>, ThreadIdx, i64)> = Vec::new();
        self.each(&["ThreadNames"], &["globalTid", "nameId", "priority"], |export, row| {
            if let (Some(thread), Some(name)) = (row.int(0).and_then(|id| export.lanes.known_thread(id)), row.int(1)) {
                names.push((row.int(2), thread, name));
            }
            Some(())
        })?;
        names.sort_unstable();
        for (_, thread, name) in names {
            if let Some(name) = self.strings.text(name) {
                self.builder.set_thread_name(thread, &name);
            }
        }
        self.each(&["PROCESSES"], &["globalPid", "name"], |export, row| {
            if let (Some(global), Some(name)) = (row.int(0), row.text(1))
                && let Some(process) = export.lanes.known_process(global)
            {
                Lanes::name_process(&mut export.builder, process, global, &name);
            }
            Some(())
        })?;
        self.gpus()?;
        self.origin()?;
        self.lacks();
        Ok(())
    }

    fn gpus(&mut self) -> Result<(), ImportError> {
        let used = self.lanes.used_gpus();
        let columns = ["id", "name", "uuid", "smCount", "computeMajor", "computeMinor"];
        self.each(&["TARGET_INFO_GPU"], &columns, |export, row| {
            let Some(id) = row.small(0).filter(|id| used.binary_search(id).is_ok()) else { return Some(()) };
            let device = Lanes::device(&mut export.builder, id);
            let uuid = row.text(2).unwrap_or_default();
            export.builder.describe_device(
                device,
                Device {
                    id,
                    name: row.text(1).unwrap_or_default(),
                    uuid: uuid.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_lowercase(),
                    multiprocessors: row.small(3).unwrap_or(0),
                    compute_capability: (row.small(4).unwrap_or(0), row.small(5).unwrap_or(0)),
                },
            );
            Some(())
        })
    }

    /// Versions and the time of the recording; nothing of the machine, its user or its paths.
    fn origin(&mut self) -> Result<(), ImportError> {
        self.builder.meta.source.format = "nsys".to_owned();
        let (mut shift, mut absolute) = (0, false);
        self.each(META, &["name", "value"], |export, row| {
            let Some(name) = row.text(0) else { return Some(()) };
            let shown = match name.as_str() {
                "EXPORT_PRODUCT_VERSION" => "Nsight Systems",
                "EXPORT_SCHEMA_VERSION" => "schema of the export",
                "EXPORT_CONFIG_TIME_SHIFT" => {
                    shift = row.text(1).and_then(|value| value.parse::<i64>().ok()).unwrap_or(0);
                    return Some(());
                }
                "EXPORT_PARAM_TIME_NORMALIZE" => {
                    absolute = row.text(1).as_deref() == Some("true");
                    return Some(());
                }
                _ => return Some(()),
            };
            if let Some(value) = row.text(1) {
                export.builder.meta.machine.insert(shown.to_owned(), value);
            }
            Some(())
        })?;
        self.each(&["TARGET_INFO_SESSION_START_TIME"], &["utcEpochNs", "utcTime"], |export, row| {
            let meta = &mut export.builder.meta;
            if !absolute {
                meta.epoch_ns = row.int(0).unwrap_or(0).saturating_sub(shift);
            }
            let is_time = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit() || b"-:T.".contains(&byte));
            meta.source.captured_on = row.text(1).filter(is_time).map(|text| format!("{text}Z"));
            Some(())
        })?;
        self.each(&["DIAGNOSTIC_EVENT"], &["severity"], |export, row| {
            if row.int(0).is_some_and(|severity| severity == ERROR) {
                export.notes.count("errors that nsys itself reported while it recorded; its window shows them", None);
            }
            Some(())
        })
    }

    /// Says which tables are absent where that decides what can be known.
    fn lacks(&mut self) {
        let meta = &mut self.builder.meta;
        let lack = match (meta.recorded.calls, meta.recorded.ops) {
            (true, true) => return,
            (false, false) => {
                "the export has no CUDA tables: nsys records them with --trace=cuda, if a process used CUDA"
            }
            (true, false) => {
                "the export has CUDA calls and no table of GPU work: nsys gets none under WSL2 or without permission"
            }
            (false, true) => "the export has no CUDA calls: launches, waits and their cost are unknown",
        };
        meta.warnings.push(lack.to_owned());
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

/// An id, unless it is absent or stands for "does not apply".
fn applicable(row: &Row<'_>, column: usize) -> Option<i64> {
    row.int(column).filter(|&id| id >= 0 && id != NOT_APPLICABLE)
}

/// The graph of an op: as told, else as the upper half of its node's number, which CUPTI numbers through.
fn graph(told: Option<u32>, node: u64) -> GraphId {
    match told {
        Some(id) if id != 0 => GraphId(id),
        _ if node == 0 => GraphId::NONE,
        _ => GraphId(((node >> 32) as u32).max(1)),
    }
}

/// The operator in a range that PyTorch's `emit_nvtx` opened: it appends numbers that differ in every call, as in
/// `aten::copy_, op_id = 317164` and `aten::mm, seq = 5, sizes = [[2, 2], [2, 2]]`.
fn operator(text: &str) -> Option<&str> {
    let at = [", seq = ", ", op_id = ", ", sizes = "].into_iter().filter_map(|mark| text.find(mark)).min()?;
    Some(&text[..at])
}

/// What was waited for. The type in the table cannot be relied on: releases of 2025 and 2026 number the same waits 2 or
/// 3. Which ids apply can: a wait for an event has no stream, and one for a stream no event (`CUpti_ActivitySynchronization2`).
const fn sync_kind(event: bool, stream: bool, number: Option<i64>) -> SyncKind {
    match (event, stream, number) {
        (true, true, Some(1)) | (true, false, _) | (false, false, Some(1)) => SyncKind::Event,
        (true, true, _) => SyncKind::StreamWaitEvent,
        (false, true, _) => SyncKind::Stream,
        (false, false, _) => SyncKind::Context,
    }
}
