//! Writing a trace file.

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::atomic::write_atomically;

use super::super::ids::{ContextIdx, CorrelationId, GraphId, NameId, ProcessIdx, StreamIdx, ThreadIdx};
use super::super::model::{OpKind, Trace};
use super::super::time::Interval;
use super::TraceFileError;
use super::schema::{
    Checksum, Column, GROUP_ROWS, SCHEMA_PREFIX, Spelled, Table, TableRows, VERSION, key, message_type, padding,
};

/// Little is left for a high level to find after packing; this one writes about as fast as the disk.
const ZSTD_LEVEL: i32 = 3;
/// Larger than any realistic set of kernel names, so that names stay in the dictionary.
const DICTIONARY_BYTES: usize = 16 << 20;

/// Writes a trace file to a path as [`write_atomically`] does.
///
/// # Errors
/// When the trace is inconsistent or the file system fails.
pub fn write_path(trace: &Trace, path: &Path) -> Result<(), TraceFileError> {
    write_atomically(path, |output| write(trace, output))
}

/// Writes a trace file.
///
/// # Errors
/// When the trace breaks a guarantee of [`Trace`] that the file relies on, or the output fails.
pub fn write(trace: &Trace, output: impl Write + Send) -> Result<(), TraceFileError> {
    let table = Lanes::of(trace)?;
    let mut file = SerializedFileWriter::new(Checked::new(output), message_type()?, Arc::new(writer_properties()?))?;
    let rows = TableRows::of(trace);
    for kind in Table::ALL {
        let count = rows.get(kind);
        for from in (0..count).step_by(GROUP_ROWS) {
            write_group(&mut file, &table, kind, from..count.min(from + GROUP_ROWS))?;
        }
    }
    write_metadata(&mut file, trace, rows)?;
    file.flush()?;
    let checksum = file.inner().checksum();
    append_json(&mut file, key::CHECKSUM, &checksum)?;
    let total = Table::ALL.iter().map(|&kind| rows.get(kind) as u64).sum::<u64>();
    let missing = padding(total, checksum.bytes);
    if missing > 0 {
        let spaces = usize::try_from(missing).map_err(|_| TraceFileError::Inconsistent("too large".into()))?;
        file.append_key_value_metadata(KeyValue::new(key::PADDING.to_owned(), " ".repeat(spaces)));
    }
    file.close()?;
    Ok(())
}

fn writer_properties() -> Result<WriterProperties, TraceFileError> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("bubblescope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_data_page_row_count_limit(usize::MAX)
        .set_write_batch_size(1 << 14);
    for column in Column::ALL {
        let storage = column.storage();
        if let Some(encoding) = storage.encoding {
            let path = ColumnPath::from(storage.name);
            properties =
                properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
        }
    }
    Ok(properties.build())
}

fn append_json<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    key: &'static str,
    value: &impl Serialize,
) -> Result<(), TraceFileError> {
    let text = serde_json::to_string(value).map_err(|source| TraceFileError::Metadata { key, source })?;
    file.append_key_value_metadata(KeyValue::new(key.to_owned(), text));
    Ok(())
}

fn write_metadata<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    trace: &Trace,
    rows: TableRows,
) -> Result<(), TraceFileError> {
    file.append_key_value_metadata(KeyValue::new(key::SCHEMA.to_owned(), format!("{SCHEMA_PREFIX}{VERSION}")));
    append_json(file, key::META, &trace.meta)?;
    append_json(file, key::END, &trace.end)?;
    append_json(file, key::TABLES, &rows)?;
    append_json(file, key::NAMES, &trace.names.iter().map(|(_, text)| text).collect::<Vec<_>>())?;
    append_json(file, key::PROCESSES, &trace.processes)?;
    append_json(file, key::DEVICES, &trace.devices)?;
    append_json(file, key::CONTEXTS, &trace.contexts)?;
    append_json(file, key::STREAMS, &trace.streams)?;
    append_json(file, key::THREADS, &trace.threads)?;
    append_json(file, key::DETAILS, &trace.details)
}

/// One value of one row.
enum Cell {
    Null,
    /// The low bits are stored; unsigned values keep theirs.
    Int(i64),
    Text(ByteArray),
}

impl Cell {
    fn some(value: Option<u64>) -> Self {
        value.map_or(Self::Null, |value| Self::Int(value as i64))
    }

    fn correlation(id: CorrelationId) -> Self {
        Self::some(id.is_some().then_some(id.0))
    }

    fn graph(id: GraphId) -> Self {
        Self::some(id.is_some().then_some(u64::from(id.0)))
    }

    fn start(interval: Interval) -> Self {
        Self::Int(interval.start.0)
    }

    fn length(interval: Interval) -> Self {
        Self::Int(interval.end.0.wrapping_sub(interval.start.0))
    }

    fn spelled(value: impl Spelled) -> Self {
        Self::Text(ByteArray::from(value.spelling()))
    }
}

/// The ids that say where a row belongs.
#[derive(Clone, Copy, Default)]
struct Place {
    pid: u32,
    device: Option<u32>,
    context: Option<u32>,
    stream: Option<u32>,
    tid: Option<u64>,
}

/// A trace with what its rows look up.
struct Lanes<'t> {
    trace: &'t Trace,
    contexts: Vec<Place>,
    streams: Vec<Place>,
    threads: Vec<Place>,
    names: Vec<ByteArray>,
    op_kinds: [ByteArray; 4],
}

fn inconsistent<T>(what: impl Into<String>) -> Result<T, TraceFileError> {
    Err(TraceFileError::Inconsistent(what.into()))
}

fn unique<K: std::hash::Hash + Eq>(what: &str, keys: impl Iterator<Item = K>) -> Result<(), TraceFileError> {
    let mut seen = FxHashSet::default();
    for key in keys {
        if !seen.insert(key) {
            return inconsistent(format!("two {what} have the same id"));
        }
    }
    Ok(())
}

impl<'t> Lanes<'t> {
    /// Looks everything up once, and refuses a trace that ids do not describe.
    fn of(trace: &'t Trace) -> Result<Self, TraceFileError> {
        unique("processes", trace.processes.iter().map(|process| process.pid))?;
        unique("contexts", trace.contexts.iter().map(|context| (context.process, context.id)))?;
        unique("streams", trace.streams.iter().map(|stream| (stream.context, stream.id)))?;
        unique("threads", trace.threads.iter().map(|thread| (thread.process, thread.tid)))?;

        let pid = |process: ProcessIdx| match trace.processes.get(process.index()) {
            Some(process) => Ok(process.pid),
            None => inconsistent("an unknown process"),
        };
        let mut contexts = Vec::with_capacity(trace.contexts.len());
        for context in &trace.contexts {
            let Some(device) = trace.devices.get(context.device.index()) else {
                return inconsistent("a context on an unknown device");
            };
            contexts.push(Place {
                pid: pid(context.process)?,
                device: Some(device.id),
                context: Some(context.id),
                ..Place::default()
            });
        }
        let mut streams = Vec::with_capacity(trace.streams.len());
        for stream in &trace.streams {
            match trace.contexts.get(stream.context.index()) {
                Some(context) if (context.process, context.device) == (stream.process, stream.device) => {
                    streams.push(Place { stream: Some(stream.id), ..contexts[stream.context.index()] });
                }
                _ => return inconsistent("a stream that does not fit its context"),
            }
        }
        let mut threads = Vec::with_capacity(trace.threads.len());
        for thread in &trace.threads {
            threads.push(Place { pid: pid(thread.process)?, tid: Some(thread.tid), ..Place::default() });
        }
        let names = trace.names.iter().map(|(_, text)| ByteArray::from(text)).collect();
        let op_kinds =
            [OpKind::Kernel, OpKind::Copy, OpKind::Memset, OpKind::Graph].map(|kind| ByteArray::from(kind.spelling()));
        let lanes = Self { trace, contexts, streams, threads, names, op_kinds };
        lanes.check()?;
        Ok(lanes)
    }

    /// Checks that ids lead back to where each row of the small tables belongs, and that every position exists.
    fn check(&self) -> Result<(), TraceFileError> {
        let Trace { ops, calls, processes, .. } = self.trace;
        let streams = ops.stream.iter().all(|stream| stream.index() < self.streams.len());
        let threads = calls.thread.iter().all(|thread| thread.index() < self.threads.len());
        let op_names = ops.name.iter().all(|name| name.index() < self.names.len());
        let call_names = calls.name.iter().all(|name| name.index() < self.names.len());
        let ranges = self.trace.ranges.iter();
        let mut ranges = ranges.map(|range| (range.thread.index(), range.name.index()));
        let ranges = ranges.all(|(thread, name)| thread < self.threads.len() && name < self.names.len());
        let mut hosts = self.trace.host_functions.iter();
        let hosts = hosts.all(|host| host.stream.index() < self.streams.len());
        if !(streams && threads && op_names && call_names && ranges && hosts) {
            return inconsistent("a position beyond its table");
        }
        let fits = |process: ProcessIdx, context: Option<ContextIdx>, stream: Option<StreamIdx>| {
            let Some(pid) = processes.get(process.index()).map(|process| process.pid) else { return false };
            let context_fits = context.is_none_or(|at| self.contexts.get(at.index()).is_some_and(|at| at.pid == pid));
            let stream_fits = stream.is_none_or(|at| {
                self.trace.streams.get(at.index()).is_some_and(|stream| Some(stream.context) == context)
            });
            context_fits && stream_fits
        };
        let syncs = self.trace.syncs.iter().all(|sync| fits(sync.process, sync.context, sync.stream));
        let events = self.trace.events.iter().all(|event| fits(event.process, event.context, event.stream));
        let overheads = self.trace.overheads.iter().all(|overhead| {
            fits(overhead.process, None, None)
                && overhead.thread.is_none_or(|at| {
                    self.trace.threads.get(at.index()).is_some_and(|thread| thread.process == overhead.process)
                })
        });
        if syncs && events && overheads { Ok(()) } else { inconsistent("a record that does not fit its process") }
    }

    /// Where a row belongs.
    fn place(&self, table: Table, row: usize) -> Place {
        let trace = self.trace;
        let on = |process: ProcessIdx, context: Option<ContextIdx>, stream: Option<StreamIdx>| match (stream, context) {
            (Some(stream), _) => self.streams[stream.index()],
            (None, Some(context)) => self.contexts[context.index()],
            (None, None) => Place { pid: trace.processes[process.index()].pid, ..Place::default() },
        };
        let thread = |thread: ThreadIdx| self.threads[thread.index()];
        match table {
            Table::Ops => self.streams[trace.ops.stream[row].index()],
            Table::Calls => thread(trace.calls.thread[row]),
            Table::Syncs => {
                let sync = &trace.syncs[row];
                on(sync.process, sync.context, sync.stream)
            }
            Table::Events => {
                let event = &trace.events[row];
                on(event.process, event.context, event.stream)
            }
            Table::HostFunctions => self.streams[trace.host_functions[row].stream.index()],
            Table::Ranges => thread(trace.ranges[row].thread),
            Table::Overheads => {
                let overhead = &trace.overheads[row];
                overhead.thread.map_or_else(|| on(overhead.process, None, None), thread)
            }
        }
    }

    /// One value of one row.
    fn cell(&self, table: Table, column: Column, row: usize) -> Cell {
        match column {
            Column::Pid => Cell::some(Some(self.place(table, row).pid.into())),
            Column::Device => Cell::some(self.place(table, row).device.map(u64::from)),
            Column::Context => Cell::some(self.place(table, row).context.map(u64::from)),
            Column::Stream => Cell::some(self.place(table, row).stream.map(u64::from)),
            Column::Tid => Cell::some(self.place(table, row).tid),
            _ => match table {
                Table::Ops => self.op_cell(column, row),
                Table::Calls => self.call_cell(column, row),
                _ => self.other_cell(table, column, row),
            },
        }
    }

    fn name(&self, name: NameId) -> Cell {
        Cell::Text(self.names[name.index()].clone())
    }

    fn op_cell(&self, column: Column, row: usize) -> Cell {
        let ops = &self.trace.ops;
        match column {
            Column::Kind => Cell::Text(self.op_kinds[ops.kind[row] as usize].clone()),
            Column::Start => Cell::Int(ops.start[row].0),
            Column::Dur => Cell::length(Interval::new(ops.start[row], ops.end[row])),
            Column::Name => self.name(ops.name[row]),
            Column::Correlation => Cell::correlation(ops.correlation[row]),
            Column::Bytes => Cell::some(Some(ops.bytes[row]).filter(|&bytes| ops.kind[row].is_copy() || bytes != 0)),
            Column::Graph => Cell::graph(ops.graph[row]),
            Column::Node => Cell::some(Some(ops.graph_node[row]).filter(|&node| node != 0)),
            Column::Detail => Cell::Int(i64::from(ops.detail[row].0)),
            _ => Cell::Null,
        }
    }

    fn call_cell(&self, column: Column, row: usize) -> Cell {
        let calls = &self.trace.calls;
        match column {
            Column::Kind => Cell::Text(ByteArray::from(Table::Calls.kind())),
            Column::Start => Cell::Int(calls.start[row].0),
            Column::Dur => Cell::length(Interval::new(calls.start[row], calls.end[row])),
            Column::Name => self.name(calls.name[row]),
            Column::Correlation => Cell::correlation(calls.correlation[row]),
            Column::Result => Cell::Int(i64::from(calls.result[row])),
            _ => Cell::Null,
        }
    }

    fn other_cell(&self, table: Table, column: Column, row: usize) -> Cell {
        let trace = self.trace;
        match (table, column) {
            (_, Column::Kind) => Cell::Text(ByteArray::from(table.kind())),

            (Table::Syncs, Column::Start) => Cell::start(trace.syncs[row].interval),
            (Table::Syncs, Column::Dur) => Cell::length(trace.syncs[row].interval),
            (Table::Syncs, Column::Category) => Cell::spelled(trace.syncs[row].kind),
            (Table::Syncs, Column::Correlation) => Cell::correlation(trace.syncs[row].correlation),
            (Table::Syncs, Column::Event) => Cell::some(trace.syncs[row].event.map(u64::from)),
            (Table::Syncs, Column::EventSync) => Cell::some(trace.syncs[row].event_sync),
            (Table::Syncs, Column::Awaited) => Cell::correlation(trace.syncs[row].awaited_record),

            (Table::Events, Column::Start) => {
                trace.events[row].device_time.map_or(Cell::Null, |time| Cell::Int(time.0))
            }
            (Table::Events, Column::Correlation) => Cell::correlation(trace.events[row].correlation),
            (Table::Events, Column::Event) => Cell::some(Some(trace.events[row].event.into())),
            (Table::Events, Column::EventSync) => Cell::some(trace.events[row].event_sync),

            (Table::HostFunctions, Column::Start) => Cell::start(trace.host_functions[row].interval),
            (Table::HostFunctions, Column::Dur) => Cell::length(trace.host_functions[row].interval),
            (Table::HostFunctions, Column::Correlation) => Cell::correlation(trace.host_functions[row].correlation),
            (Table::HostFunctions, Column::Graph) => Cell::graph(trace.host_functions[row].graph),

            (Table::Ranges, Column::Start) => Cell::start(trace.ranges[row].interval),
            (Table::Ranges, Column::Dur) => Cell::length(trace.ranges[row].interval),
            (Table::Ranges, Column::Name) => self.name(trace.ranges[row].name),
            (Table::Ranges, Column::Category) => Cell::spelled(trace.ranges[row].kind),

            (Table::Overheads, Column::Start) => Cell::start(trace.overheads[row].interval),
            (Table::Overheads, Column::Dur) => Cell::length(trace.overheads[row].interval),
            (Table::Overheads, Column::Category) => Cell::spelled(trace.overheads[row].kind),
            (Table::Overheads, Column::Correlation) => Cell::correlation(trace.overheads[row].correlation),

            _ => Cell::Null,
        }
    }
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    lanes: &Lanes<'_>,
    table: Table,
    rows: Range<usize>,
) -> Result<(), TraceFileError> {
    let mut group = file.next_row_group()?;
    for column in Column::ALL {
        let Some(writer) = group.next_column()? else { return inconsistent("a column without a place") };
        let cells = rows.clone().map(|row| lanes.cell(table, column, row));
        let optional = column.storage().optional;
        match column.storage().physical {
            Physical::INT32 => write_column::<Int32Type>(writer, cells, optional, |cell| match cell {
                Cell::Int(value) => Some(value as i32),
                _ => None,
            })?,
            Physical::INT64 => write_column::<Int64Type>(writer, cells, optional, |cell| match cell {
                Cell::Int(value) => Some(value),
                _ => None,
            })?,
            _ => write_column::<ByteArrayType>(writer, cells, optional, |cell| match cell {
                Cell::Text(text) => Some(text),
                _ => None,
            })?,
        }
    }
    group.close()?;
    Ok(())
}

fn write_column<T: DataType>(
    mut writer: SerializedColumnWriter<'_>,
    cells: impl ExactSizeIterator<Item = Cell>,
    optional: bool,
    convert: impl Fn(Cell) -> Option<T::T>,
) -> Result<(), TraceFileError> {
    let mut levels = Vec::with_capacity(cells.len());
    let mut values = Vec::with_capacity(cells.len());
    for cell in cells {
        let value = convert(cell);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    writer.typed::<T>().write_batch(&values, optional.then_some(&levels), None)?;
    writer.close()?;
    Ok(())
}

/// An output that keeps a checksum of what passes through.
struct Checked<W> {
    output: W,
    bytes: u64,
    crc32: crc32fast::Hasher,
}

impl<W> Checked<W> {
    fn new(output: W) -> Self {
        Self { output, bytes: 0, crc32: crc32fast::Hasher::new() }
    }

    fn checksum(&self) -> Checksum {
        Checksum { bytes: self.bytes, crc32: self.crc32.clone().finalize() }
    }
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.output.write(data)?;
        self.bytes += written as u64;
        self.crc32.update(&data[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
