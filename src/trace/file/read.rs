//! Reading a trace file: column by column on all cores, believing nothing.

use std::any::Any;
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;

use super::super::api::ApiKind;
use super::super::builder::set_ranges;
use super::super::ids::{ContextIdx, CorrelationId, DetailId, GraphId, NameId, ProcessIdx, StreamIdx, ThreadIdx};
use super::super::link;
use super::super::model::{
    Calls, EventRecord, HostFunction, NamedRange, OpKind, Ops, Overhead, OverheadKind, RangeKind, Sync, SyncKind, Trace,
};
use super::super::names::Names;
use super::super::time::{Interval, Ns};
use super::schema::{Checksum, Column, SCHEMA_PREFIX, Spelled, Table, TableRows, VERSION, key, most_rows};
use super::{TraceFileError, pages};
use crate::progress::{Unwatched, Watch, check, read_file};

/// Rows decoded at a time: small enough to stay in the second-level cache.
const BATCH: usize = 1 << 14;
/// What a column of times gives where it is null.
const NO_TIME: i64 = i64::MIN;
/// A name that is not among the trace's names.
const NO_NAME: NameId = NameId(u32::MAX);

/// Reads a trace file from a path.
///
/// # Errors
/// When the file cannot be read or is no trace file; see [`read`].
pub fn read_path(path: &Path) -> Result<Trace, TraceFileError> {
    read_path_watched(path, &Unwatched)
}

/// The same while somebody waits for it.
///
/// # Errors
/// As [`read_path`], and when it is cancelled.
pub fn read_path_watched(path: &Path, watch: &dyn Watch) -> Result<Trace, TraceFileError> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    // Then the columns are decoded, which counts as much.
    read_watched(read_file(file, bytes, bytes.saturating_mul(2), watch)?, watch)
}

/// Reads a trace file that is in memory.
///
/// Everything is checked, so that the trace keeps what [`Trace`] promises whatever the file holds.
///
/// # Errors
/// When the bytes are no trace file, one of a newer version, or a damaged one.
pub fn read(file: impl Into<Bytes>) -> Result<Trace, TraceFileError> {
    read_watched(file, &Unwatched)
}

/// The same while somebody waits for it.
///
/// # Errors
/// As [`read`], and when it is cancelled.
pub fn read_watched(file: impl Into<Bytes>, watch: &dyn Watch) -> Result<Trace, TraceFileError> {
    let file = file.into();
    guarded(|| read_checked(file, true, watch))
}

thread_local! {
    /// Whether this thread is at work whose panics become errors.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread's panics become errors, and so are not told.
pub(super) fn is_guarded() -> bool {
    GUARDED.try_with(Cell::get).unwrap_or(false)
}

/// Turns a panic of the Parquet decoder, which takes some malformed pages for bugs, into an error. Nothing is printed.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, TraceFileError>) -> Result<T, TraceFileError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !is_guarded() {
                others(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

fn panicked(panic: &(dyn Any + Send)) -> TraceFileError {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    TraceFileError::Damaged(format!("a page cannot be decoded: {}", text.unwrap_or("the decoder gave up")))
}

fn damaged<T>(what: impl Into<String>) -> Result<T, TraceFileError> {
    Err(TraceFileError::Damaged(what.into()))
}

fn ensure(holds: bool, what: &str) -> Result<(), TraceFileError> {
    if holds { Ok(()) } else { damaged(what) }
}

/// Reads a trace file, and compares its checksum if asked to.
pub(super) fn read_checked(file: Bytes, compare_checksum: bool, watch: &dyn Watch) -> Result<Trace, TraceFileError> {
    let reader = SerializedFileReader::new(file.clone())?;
    let metadata = Metadata::of(reader.metadata())?;
    if compare_checksum {
        let Checksum { bytes, crc32 } = metadata.json(key::CHECKSUM)?;
        let data = usize::try_from(bytes).ok().and_then(|bytes| file.get(..bytes));
        ensure(data.map(crc32fast::hash) == Some(crc32), "its checksum differs")?;
    }
    let mut trace = read_tables(&metadata)?;
    let rows: TableRows = metadata.json(key::TABLES)?;
    let source = Source::of(&reader, rows, &file, &trace.names, watch)?;
    read_rows(&source, &mut trace)?;
    check(watch)?;
    link::link(&mut trace);
    Ok(trace)
}

/// The key-value metadata of the footer.
struct Metadata<'f> {
    values: FxHashMap<&'f str, &'f str>,
}

impl<'f> Metadata<'f> {
    fn of(footer: &'f ParquetMetaData) -> Result<Self, TraceFileError> {
        let pairs = footer.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
        let values: FxHashMap<&str, &str> =
            pairs.iter().filter_map(|pair| Some((pair.key.as_str(), pair.value.as_deref()?))).collect();
        let Some(schema) = values.get(key::SCHEMA) else {
            return Err(TraceFileError::NotATrace(format!("its metadata has no {}", key::SCHEMA)));
        };
        match schema.strip_prefix(SCHEMA_PREFIX).and_then(|version| version.parse::<u32>().ok()) {
            Some(VERSION) => Ok(Self { values }),
            Some(version) if version > VERSION => {
                Err(TraceFileError::NewerSchema { found: (*schema).to_owned(), supported: VERSION })
            }
            _ => Err(TraceFileError::NotATrace(format!("its schema is {schema}"))),
        }
    }

    fn json<T: DeserializeOwned>(&self, key: &'static str) -> Result<T, TraceFileError> {
        let text = self.values.get(key).copied().unwrap_or_default();
        serde_json::from_str(text).map_err(|source| TraceFileError::Metadata { key, source })
    }
}

/// Reads and checks everything but the rows.
fn read_tables(metadata: &Metadata<'_>) -> Result<Trace, TraceFileError> {
    let mut names = Names::default();
    let strings: Vec<String> = metadata.json(key::NAMES)?;
    for text in &strings {
        names.intern(text);
    }
    ensure(names.len() == strings.len(), "a name is listed twice")?;
    let trace = Trace {
        meta: metadata.json(key::META)?,
        names,
        end: metadata.json(key::END)?,
        processes: metadata.json(key::PROCESSES)?,
        devices: metadata.json(key::DEVICES)?,
        contexts: metadata.json(key::CONTEXTS)?,
        streams: metadata.json(key::STREAMS)?,
        threads: metadata.json(key::THREADS)?,
        details: metadata.json(key::DETAILS)?,
        ..Trace::default()
    };
    ensure(trace.end >= Ns::ZERO, "it ends before it starts")?;
    ensure(trace.devices.is_sorted_by(|a, b| a.id < b.id), "its devices are not in order")?;
    let process = |process: ProcessIdx| process.index() < trace.processes.len();
    let contexts = trace.contexts.iter();
    let mut contexts = contexts.map(|context| process(context.process) && context.device.index() < trace.devices.len());
    ensure(contexts.all(|fits| fits), "a context belongs nowhere")?;
    let mut streams = trace.streams.iter();
    let fits = streams.all(|stream| {
        let context = trace.contexts.get(stream.context.index());
        context.is_some_and(|context| (context.process, context.device) == (stream.process, stream.device))
    });
    ensure(fits, "a stream does not fit its context")?;
    ensure(trace.threads.iter().all(|thread| process(thread.process)), "a thread belongs to no process")?;
    Ok(trace)
}

/// From ids back to positions.
struct Lookup {
    processes: FxHashMap<u32, ProcessIdx>,
    contexts: FxHashMap<(u32, u32), ContextIdx>,
    streams: FxHashMap<(u32, u32, u32), StreamIdx>,
    threads: FxHashMap<(u32, u64), ThreadIdx>,
}

impl Lookup {
    fn of(trace: &Trace) -> Result<Self, TraceFileError> {
        let pid = |process: ProcessIdx| trace.processes[process.index()].pid;
        let rows = trace.processes.iter().enumerate();
        let processes: FxHashMap<_, _> = rows.map(|(at, row)| (row.pid, ProcessIdx::from_index(at))).collect();
        let rows = trace.contexts.iter().enumerate();
        let contexts: FxHashMap<_, _> =
            rows.map(|(at, row)| ((pid(row.process), row.id), ContextIdx::from_index(at))).collect();
        let rows = trace.streams.iter().enumerate();
        let streams: FxHashMap<_, _> = rows
            .map(|(at, row)| {
                let context = trace.contexts[row.context.index()].id;
                ((pid(row.process), context, row.id), StreamIdx::from_index(at))
            })
            .collect();
        let rows = trace.threads.iter().enumerate();
        let threads: FxHashMap<_, _> =
            rows.map(|(at, row)| ((pid(row.process), row.tid), ThreadIdx::from_index(at))).collect();
        let unique = processes.len() == trace.processes.len()
            && contexts.len() == trace.contexts.len()
            && streams.len() == trace.streams.len()
            && threads.len() == trace.threads.len();
        ensure(unique, "two lanes have the same id")?;
        Ok(Self { processes, contexts, streams, threads })
    }
}

/// Checks that no page claims more bytes than its row group can hold.
fn check_pages(reader: &SerializedFileReader<Bytes>, file: &Bytes, names: &Names) -> Result<(), TraceFileError> {
    // Levels and the encodings' own heads.
    const SLACK: u64 = 8 << 10;
    let length = |text: &str| text.len() as u64 + 5;
    let longest = names.iter().map(|(_, text)| length(text)).max().unwrap_or(0).max(SHORTEST_TEXT);
    let all_names = names.iter().map(|(_, text)| length(text)).sum::<u64>();
    for group in reader.metadata().row_groups() {
        let rows = group.num_rows().unsigned_abs();
        for chunk in group.columns() {
            let bounds = match chunk.column_type() {
                Physical::BYTE_ARRAY => pages::Bounds {
                    dictionary: all_names.saturating_add(SLACK),
                    data: rows
                        .saturating_mul(longest)
                        .min(longest.saturating_add(TEXT_PAGE_BYTES))
                        .saturating_add(SLACK),
                },
                _ => {
                    let numbers = rows.saturating_mul(10).saturating_add(SLACK);
                    pages::Bounds { dictionary: numbers, data: numbers }
                }
            };
            let (start, length) = chunk.byte_range();
            let range = usize::try_from(start).ok().zip(usize::try_from(length).ok());
            let data = range.and_then(|(start, length)| file.get(start..start.checked_add(length)?));
            let Some(data) = data else { return damaged("a column lies outside the file") };
            pages::check(data, bounds)?;
        }
    }
    Ok(())
}

/// A page of texts that stand for themselves is not longer, but for one text.
const TEXT_PAGE_BYTES: u64 = 32 << 20;
/// No text but a name is longer, with its length; and an index into a dictionary is shorter.
const SHORTEST_TEXT: u64 = 64;

/// The rows of the file.
struct Source<'f> {
    reader: &'f SerializedFileReader<Bytes>,
    rows: TableRows,
    /// The row groups of each table, in the order of [`Table::ALL`].
    groups: [Range<usize>; 7],
    /// The leaf of each column, in the order of [`Column::ALL`].
    leaves: [usize; 19],
    watch: &'f dyn Watch,
    /// The length of the file.
    bytes: u64,
    /// The length of all columns.
    columns: u64,
    /// How much of that is decoded, or being decoded.
    decoded: AtomicU64,
}

impl<'f> Source<'f> {
    /// Finds the columns, and the row groups of each table.
    fn of(
        reader: &'f SerializedFileReader<Bytes>,
        rows: TableRows,
        file: &Bytes,
        names: &Names,
        watch: &'f dyn Watch,
    ) -> Result<Self, TraceFileError> {
        let bytes = file.len();
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut leaves = [0; 19];
        for (leaf, column) in leaves.iter_mut().zip(Column::ALL) {
            let storage = column.storage();
            let fits = |leaf: &usize| {
                let found = schema.column(*leaf);
                found.path().parts() == [storage.name]
                    && found.physical_type() == storage.physical
                    && found.max_def_level() == i16::from(storage.optional)
                    && found.max_rep_level() == 0
            };
            let Some(found) = (0..schema.num_columns()).find(fits) else {
                return Err(TraceFileError::NotATrace(format!("it has no column {} as it must be", storage.name)));
            };
            *leaf = found;
        }

        for group in reader.metadata().row_groups() {
            ensure(group.num_columns() == schema.num_columns(), "a row group lacks columns")?;
            let chunks_fit = group.columns().iter().all(|chunk| {
                let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
                let end = start.checked_add(chunk.compressed_size());
                start >= 0 && chunk.compressed_size() >= 0 && end.is_some_and(|end| end.unsigned_abs() <= bytes as u64)
            });
            ensure(chunks_fit, "a column lies outside the file")?;
        }

        let mut total = 0u64;
        let mut next = 0;
        let mut groups = std::array::from_fn(|_| 0..0);
        for (range, table) in groups.iter_mut().zip(Table::ALL) {
            let expected = rows.get(table) as u64;
            ensure(expected < u64::from(u32::MAX), "a table has too many rows")?;
            total += expected;
            let from = next;
            let mut found = 0u64;
            while found < expected && next < reader.num_row_groups() {
                let count = reader.metadata().row_group(next).num_rows();
                let count = u64::try_from(count).ok().filter(|&count| count > 0 && count <= expected - found);
                let Some(count) = count else { return damaged("a row group does not fit its table") };
                found += count;
                next += 1;
            }
            ensure(found == expected, "rows are missing")?;
            *range = from..next;
        }
        ensure(next == reader.num_row_groups(), "it has rows of no table")?;
        ensure(total <= most_rows(bytes as u64), "it has more rows than a file of its size can hold")?;
        check_pages(reader, file, names)?;
        let chunks = reader.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
        let columns = chunks.fold(0, |sum: u64, chunk| sum.saturating_add(chunk.compressed_size().unsigned_abs()));
        let bytes = bytes as u64;
        Ok(Self { reader, rows, groups, leaves, watch, bytes, columns, decoded: AtomicU64::new(0) })
    }

    /// Calls `work` for each row group of a table with its number of rows.
    fn each_group(
        &self,
        table: Table,
        mut work: impl FnMut(usize, usize) -> Result<(), TraceFileError>,
    ) -> Result<(), TraceFileError> {
        for group in self.groups[table as usize].clone() {
            check(self.watch)?;
            let rows = self.reader.metadata().row_group(group).num_rows();
            work(group, usize::try_from(rows).unwrap_or(0))?;
        }
        Ok(())
    }

    /// Opens one column of one row group.
    fn cursor<T: DataType>(&self, group: usize, column: Column) -> Result<Cursor<T>, TraceFileError> {
        let leaf = self.leaves[column as usize];
        let chunk = self.reader.metadata().row_group(group).column(leaf).compressed_size().unsigned_abs();
        let decoded = self.decoded.fetch_add(chunk, Ordering::Relaxed).saturating_add(chunk).min(self.columns);
        // As a part of the file's length, which is what reading the file counted.
        let share = u128::from(self.bytes) * u128::from(decoded) / u128::from(self.columns.max(1));
        let done = self.bytes.saturating_add(u64::try_from(share).unwrap_or(self.bytes));
        self.watch.progress(done, self.bytes.saturating_mul(2));
        let reader = self.reader.get_row_group(group)?.get_column_reader(leaf)?;
        Ok(Cursor { reader: get_typed_column_reader(reader), values: Vec::new(), levels: Vec::new() })
    }

    /// Reads a whole column of a table; `absent` stands where it is null.
    fn column<T: DataType, O: Copy>(
        &self,
        table: Table,
        column: Column,
        absent: O,
        mut convert: impl FnMut(&T::T) -> O,
    ) -> Result<Vec<O>, TraceFileError> {
        let mut out = Vec::with_capacity(self.rows.get(table));
        self.each_group(table, |group, rows| {
            let mut cursor = self.cursor::<T>(group, column)?;
            let mut left = rows;
            while left > 0 {
                let batch = left.min(BATCH);
                cursor.read(batch, &mut out, absent, &mut convert)?;
                left -= batch;
            }
            Ok(())
        })?;
        Ok(out)
    }

    fn int32<O: Copy>(
        &self,
        table: Table,
        column: Column,
        absent: O,
        convert: impl Fn(u32) -> O,
    ) -> Result<Vec<O>, TraceFileError> {
        self.column::<Int32Type, O>(table, column, absent, |&value| convert(value as u32))
    }

    fn int64<O: Copy>(
        &self,
        table: Table,
        column: Column,
        absent: O,
        convert: impl Fn(u64) -> O,
    ) -> Result<Vec<O>, TraceFileError> {
        self.column::<Int64Type, O>(table, column, absent, |&value| convert(value as u64))
    }

    fn correlations(&self, table: Table, column: Column) -> Result<Vec<CorrelationId>, TraceFileError> {
        self.int64(table, column, CorrelationId::NONE, CorrelationId)
    }

    fn graphs(&self, table: Table) -> Result<Vec<GraphId>, TraceFileError> {
        self.int32(table, Column::Graph, GraphId::NONE, GraphId)
    }

    /// Reads a column of strings, looking each distinct string up once.
    fn strings<O: Copy>(
        &self,
        table: Table,
        column: Column,
        absent: O,
        find: impl Fn(&[u8]) -> O,
    ) -> Result<Vec<O>, TraceFileError> {
        let mut cache = StringCache { last: (0, 0, absent), seen: FxHashMap::default() };
        self.column::<ByteArrayType, O>(table, column, absent, |text| cache.get(text, &find))
    }

    fn spelled<E: Spelled>(&self, table: Table, column: Column) -> Result<Vec<E>, TraceFileError> {
        let found = self.strings(table, column, None, |text| E::from_spelling(text))?;
        found
            .into_iter()
            .collect::<Option<Vec<E>>>()
            .ok_or_else(|| TraceFileError::Damaged(format!("unknown {} of a {}", column.storage().name, table.kind())))
    }

    fn names(&self, table: Table, names: &Names) -> Result<Vec<NameId>, TraceFileError> {
        let find = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| names.find(text)).unwrap_or(NO_NAME);
        let found = self.strings(table, Column::Name, NO_NAME, find)?;
        ensure(found.iter().all(|&name| name != NO_NAME), "a name that is not among its names")?;
        Ok(found)
    }

    /// Reads where events started and ended.
    fn times(&self, table: Table, end: Ns) -> Result<(Vec<Ns>, Vec<Ns>), TraceFileError> {
        let mut starts = Vec::with_capacity(self.rows.get(table));
        let mut ends = Vec::with_capacity(self.rows.get(table));
        let mut lengths = Vec::new();
        let mut fits = true;
        self.each_group(table, |group, rows| {
            let mut start = self.cursor::<Int64Type>(group, Column::Start)?;
            let mut length = self.cursor::<Int64Type>(group, Column::Dur)?;
            let mut left = rows;
            while left > 0 {
                let batch = left.min(BATCH);
                let from = starts.len();
                lengths.clear();
                start.read(batch, &mut starts, Ns(NO_TIME), |&value| Ns(value))?;
                length.read(batch, &mut lengths, NO_TIME, |&value| value)?;
                ends.extend(starts[from..].iter().zip(&lengths).map(|(&start, &length)| {
                    // Of two non-negative numbers a sum that overflows is negative, and so below its start.
                    let stop = Ns(start.0.wrapping_add(length));
                    fits &= start >= Ns::ZERO && length >= 0 && stop >= start && stop <= end;
                    stop
                }));
                left -= batch;
            }
            Ok(())
        })?;
        ensure(fits, "a record lies outside the trace")?;
        Ok((starts, ends))
    }

    fn intervals(&self, table: Table, end: Ns) -> Result<Vec<Interval>, TraceFileError> {
        let (starts, ends) = self.times(table, end)?;
        Ok(starts.into_iter().zip(ends).map(|(start, end)| Interval::new(start, end)).collect())
    }

    /// Reads which lane each row is on: `find` is asked once for each run of rows of one place.
    fn lanes<L: Copy>(
        &self,
        table: Table,
        mut find: impl FnMut(&Place) -> Option<L>,
    ) -> Result<Vec<L>, TraceFileError> {
        let on_stream = matches!(table, Table::Ops | Table::Syncs | Table::Events | Table::HostFunctions);
        let mut lanes = Vec::with_capacity(self.rows.get(table));
        let (mut pids, mut contexts, mut streams, mut tids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut last: Option<(Place, L)> = None;
        self.each_group(table, |group, rows| {
            let mut pid = self.cursor::<Int32Type>(group, Column::Pid)?;
            let mut context = self.cursor::<Int32Type>(group, Column::Context)?;
            let mut stream = self.cursor::<Int32Type>(group, Column::Stream)?;
            let mut tid = self.cursor::<Int64Type>(group, Column::Tid)?;
            let mut left = rows;
            while left > 0 {
                let batch = left.min(BATCH);
                pids.clear();
                pid.read(batch, &mut pids, 0, |&value| value as u32)?;
                if on_stream {
                    contexts.clear();
                    streams.clear();
                    context.read(batch, &mut contexts, None, |&value| Some(value as u32))?;
                    stream.read(batch, &mut streams, None, |&value| Some(value as u32))?;
                } else {
                    tids.clear();
                    tid.read(batch, &mut tids, None, |&value| Some(value as u64))?;
                }
                for row in 0..batch {
                    let place = if on_stream {
                        Place { pid: pids[row], context: contexts[row], stream: streams[row], tid: None }
                    } else {
                        Place { pid: pids[row], context: None, stream: None, tid: tids[row] }
                    };
                    let lane = match last {
                        Some((known, lane)) if known == place => lane,
                        _ => match find(&place) {
                            Some(lane) => lane,
                            None => return damaged(format!("a row of an unknown place: {place:?}")),
                        },
                    };
                    last = Some((place, lane));
                    lanes.push(lane);
                }
                left -= batch;
            }
            Ok(())
        })?;
        Ok(lanes)
    }

    /// Reads the process, context and stream of records that may have no stream.
    fn homes(&self, table: Table, lookup: &Lookup) -> Result<Vec<Home>, TraceFileError> {
        self.lanes(table, |place| {
            let process = *lookup.processes.get(&place.pid)?;
            let context = match place.context {
                Some(id) => Some(*lookup.contexts.get(&(place.pid, id))?),
                None => None,
            };
            let stream = match (place.stream, place.context) {
                (Some(id), Some(context)) => Some(*lookup.streams.get(&(place.pid, context, id))?),
                (Some(_), None) => return None,
                (None, _) => None,
            };
            Some(Home { process, context, stream })
        })
    }

    fn streams(&self, table: Table, lookup: &Lookup) -> Result<Vec<StreamIdx>, TraceFileError> {
        self.lanes(table, |place| lookup.streams.get(&(place.pid, place.context?, place.stream?)).copied())
    }

    fn threads(&self, table: Table, lookup: &Lookup) -> Result<Vec<ThreadIdx>, TraceFileError> {
        self.lanes(table, |place| lookup.threads.get(&(place.pid, place.tid?)).copied())
    }
}

/// The ids that say where a row belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    pid: u32,
    context: Option<u32>,
    stream: Option<u32>,
    tid: Option<u64>,
}

/// Where a record belongs.
#[derive(Clone, Copy)]
struct Home {
    process: ProcessIdx,
    context: Option<ContextIdx>,
    stream: Option<StreamIdx>,
}

/// One column of one row group while it is read.
struct Cursor<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Cursor<T> {
    /// Reads exactly `rows` more rows.
    fn read<O: Copy>(
        &mut self,
        rows: usize,
        out: &mut Vec<O>,
        absent: O,
        mut convert: impl FnMut(&T::T) -> O,
    ) -> Result<(), TraceFileError> {
        self.values.clear();
        self.levels.clear();
        let (records, values, _) = self.reader.read_records(rows, Some(&mut self.levels), None, &mut self.values)?;
        ensure(records == rows && values == self.values.len(), "a column is shorter than its row group")?;
        if values == rows {
            out.extend(self.values.iter().map(convert));
            return Ok(());
        }
        ensure(self.levels.len() == rows, "a column is shorter than its row group")?;
        let mut values = self.values.iter();
        out.extend(self.levels.iter().map(|&level| {
            let value = if level == 0 { None } else { values.next() };
            value.map_or(absent, &mut convert)
        }));
        Ok(())
    }
}

/// What each distinct string of a column stands for. Strings of one dictionary share their memory, so that the place
/// of a string tells which one it is; an entry keeps its string alive, so that no other can take its place.
struct StringCache<O> {
    last: (usize, usize, O),
    seen: FxHashMap<(usize, usize), (ByteArray, O)>,
}

/// Beyond this many places of strings, the file has no dictionary and remembering them does not help.
const CACHED_STRINGS: usize = 1 << 16;

impl<O: Copy> StringCache<O> {
    #[inline]
    fn get(&mut self, text: &ByteArray, find: impl Fn(&[u8]) -> O) -> O {
        let place = (text.data().as_ptr().addr(), text.len());
        if (self.last.0, self.last.1) == place && place.1 != 0 {
            return self.last.2;
        }
        if let Some((_, value)) = self.seen.get(&place).filter(|_| place.1 != 0) {
            self.last = (place.0, place.1, *value);
            return *value;
        }
        let value = find(text.data());
        if self.seen.len() < CACHED_STRINGS {
            self.seen.insert(place, (text.clone(), value));
            self.last = (place.0, place.1, value);
        }
        value
    }
}

/// Results of the tasks that read the rows.
type Slot<T> = Option<Result<T, TraceFileError>>;

fn take<T>(slot: Slot<T>) -> Result<T, TraceFileError> {
    slot.unwrap_or_else(|| damaged("a part was not read"))
}

/// Runs tasks on all cores, the first ones first.
fn run_all(tasks: Vec<Box<dyn FnOnce() + Send + '_>>) {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(tasks.len());
    let queue = Mutex::new(tasks.into_iter());
    let work = || {
        loop {
            let task = queue.lock().map_or(None, |mut queue| queue.next());
            match task {
                Some(task) => task(),
                None => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
}

/// Makes a list of tasks that each fill a slot of their own.
macro_rules! tasks {
    ($($slot:ident = $work:expr;)*) => {
        $(let mut $slot = None;)*
        {
            let tasks: Vec<Box<dyn FnOnce() + Send + '_>> =
                vec![$(Box::new(|| $slot = Some(guarded(|| $work)))),*];
            run_all(tasks);
        }
        $(let $slot = take($slot)?;)*
    };
}

/// Reads the rows of every table into the trace, and checks them.
fn read_rows(source: &Source<'_>, trace: &mut Trace) -> Result<(), TraceFileError> {
    use Column as C;
    use Table as T;
    let lookup = Lookup::of(trace)?;
    let (lookup, end, names) = (&lookup, trace.end, &trace.names);
    tasks! {
        call_times = source.times(T::Calls, end);
        op_times = source.times(T::Ops, end);
        call_names = source.names(T::Calls, names);
        op_names = source.names(T::Ops, names);
        call_lanes = source.threads(T::Calls, lookup);
        op_lanes = source.streams(T::Ops, lookup);
        call_correlations = source.correlations(T::Calls, C::Correlation);
        op_correlations = source.correlations(T::Ops, C::Correlation);
        op_kinds = source.spelled::<OpKind>(T::Ops, C::Kind);
        results = source.int32(T::Calls, C::Result, 0, |value| value as i32);
        bytes = source.int64(T::Ops, C::Bytes, 0, |value| value);
        nodes = source.int64(T::Ops, C::Node, 0, |value| value);
        details = source.int32(T::Ops, C::Detail, DetailId(u32::MAX), DetailId);
        graphs = source.graphs(T::Ops);
        syncs = read_syncs(source, lookup, end);
        ranges = read_ranges(source, lookup, names, end);
        events = read_events(source, lookup);
        host_functions = read_host_functions(source, lookup, end);
        overheads = read_overheads(source, lookup, end);
    }
    ensure(details.iter().all(|detail| detail.index() < trace.details.len()), "an op with unknown details")?;
    let call_kinds = call_kinds(&call_names, names);
    trace.ops = Ops {
        start: op_times.0,
        end: op_times.1,
        stream: op_lanes,
        kind: op_kinds,
        name: op_names,
        correlation: op_correlations,
        bytes,
        graph: graphs,
        graph_node: nodes,
        detail: details,
        launch: Vec::new(),
    };
    trace.calls = Calls {
        start: call_times.0,
        end: call_times.1,
        thread: call_lanes,
        name: call_names,
        kind: call_kinds,
        correlation: call_correlations,
        result: results,
    };
    (trace.syncs, trace.events, trace.host_functions) = (syncs, events, host_functions);
    (trace.ranges, trace.overheads) = (ranges, overheads);
    check_order(trace)?;
    let Trace { streams, threads, ops, calls, ranges, .. } = trace;
    set_ranges(ops.len(), |row| ops.stream[row].index(), |lane, range| streams[lane].ops = range);
    set_ranges(calls.len(), |row| calls.thread[row].index(), |lane, range| threads[lane].calls = range);
    set_ranges(ranges.len(), |row| ranges[row].thread.index(), |lane, range| threads[lane].ranges = range);
    Ok(())
}

fn call_kinds(calls: &[NameId], names: &Names) -> Vec<ApiKind> {
    let mut known = vec![None; names.len()];
    calls.iter().map(|&name| *known[name.index()].get_or_insert_with(|| ApiKind::of(names.get(name)))).collect()
}

/// Whether `before(row - 1, row)` holds for every row but the first.
fn ordered(len: usize, before: impl Fn(usize, usize) -> bool) -> bool {
    (1..len).all(|row| before(row - 1, row))
}

/// Checks that rows are in the order that [`Trace`] promises.
fn check_order(trace: &Trace) -> Result<(), TraceFileError> {
    let ops = &trace.ops;
    let sorted = ordered(ops.len(), |a, b| {
        (ops.stream[a], ops.start[a], ops.end[a]) <= (ops.stream[b], ops.start[b], ops.end[b])
    });
    ensure(sorted, "its ops are not in order")?;
    let calls = &trace.calls;
    let sorted = ordered(calls.len(), |a, b| {
        (calls.thread[a], calls.start[a], calls.end[b]) <= (calls.thread[b], calls.start[b], calls.end[a])
    });
    ensure(sorted, "its calls are not in order")?;
    let sorted = trace.ranges.is_sorted_by(|a, b| {
        (a.thread, a.interval.start, b.interval.end) <= (b.thread, b.interval.start, a.interval.end)
    });
    ensure(sorted, "its ranges are not in order")?;
    ensure(trace.syncs.is_sorted_by_key(|sync| sync.interval.start), "its synchronisations are not in order")?;
    ensure(trace.events.is_sorted_by_key(|event| (event.process, event.correlation)), "its events are not in order")?;
    let sorted = trace.host_functions.is_sorted_by_key(|host| host.interval.start);
    ensure(sorted, "its host functions are not in order")?;
    ensure(trace.overheads.is_sorted_by_key(|overhead| overhead.interval.start), "its overheads are not in order")
}

fn read_syncs(source: &Source<'_>, lookup: &Lookup, end: Ns) -> Result<Vec<Sync>, TraceFileError> {
    let table = Table::Syncs;
    let intervals = source.intervals(table, end)?;
    let kinds = source.spelled::<SyncKind>(table, Column::Category)?;
    let homes = source.homes(table, lookup)?;
    let events = source.int32(table, Column::Event, None, Some)?;
    let event_syncs = source.int64(table, Column::EventSync, None, Some)?;
    let awaited = source.correlations(table, Column::Awaited)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let rows = intervals.into_iter().enumerate();
    let sync = |(row, interval): (usize, Interval)| Sync {
        interval,
        kind: kinds[row],
        process: homes[row].process,
        context: homes[row].context,
        stream: homes[row].stream,
        event: events[row],
        event_sync: event_syncs[row],
        awaited_record: awaited[row],
        correlation: correlations[row],
        call: None,
    };
    Ok(rows.map(sync).collect())
}

fn read_events(source: &Source<'_>, lookup: &Lookup) -> Result<Vec<EventRecord>, TraceFileError> {
    let table = Table::Events;
    let homes = source.homes(table, lookup)?;
    let times = source.int64(table, Column::Start, None, |value| Some(Ns(value as i64)))?;
    let ids = source.int32(table, Column::Event, None, Some)?;
    let event_syncs = source.int64(table, Column::EventSync, None, Some)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let mut events = Vec::with_capacity(homes.len());
    for (row, home) in homes.into_iter().enumerate() {
        let Some(event) = ids[row] else { return damaged("an event without an id") };
        events.push(EventRecord {
            process: home.process,
            context: home.context,
            stream: home.stream,
            event,
            event_sync: event_syncs[row],
            device_time: times[row],
            correlation: correlations[row],
            call: None,
        });
    }
    Ok(events)
}

fn read_host_functions(source: &Source<'_>, lookup: &Lookup, end: Ns) -> Result<Vec<HostFunction>, TraceFileError> {
    let table = Table::HostFunctions;
    let intervals = source.intervals(table, end)?;
    let streams = source.streams(table, lookup)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let graphs = source.graphs(table)?;
    let rows = intervals.into_iter().enumerate();
    let host = |(row, interval): (usize, Interval)| HostFunction {
        interval,
        stream: streams[row],
        correlation: correlations[row],
        graph: graphs[row],
    };
    Ok(rows.map(host).collect())
}

fn read_ranges(
    source: &Source<'_>,
    lookup: &Lookup,
    names: &Names,
    end: Ns,
) -> Result<Vec<NamedRange>, TraceFileError> {
    let table = Table::Ranges;
    let intervals = source.intervals(table, end)?;
    let threads = source.threads(table, lookup)?;
    let names = source.names(table, names)?;
    let kinds = source.spelled::<RangeKind>(table, Column::Category)?;
    let rows = intervals.into_iter().enumerate();
    let range = |(row, interval): (usize, Interval)| NamedRange {
        interval,
        thread: threads[row],
        name: names[row],
        kind: kinds[row],
    };
    Ok(rows.map(range).collect())
}

fn read_overheads(source: &Source<'_>, lookup: &Lookup, end: Ns) -> Result<Vec<Overhead>, TraceFileError> {
    let table = Table::Overheads;
    let intervals = source.intervals(table, end)?;
    let kinds = source.spelled::<OverheadKind>(table, Column::Category)?;
    let correlations = source.correlations(table, Column::Correlation)?;
    let places = source.lanes(table, |place| {
        let process = *lookup.processes.get(&place.pid)?;
        let thread = match place.tid {
            Some(tid) => Some(*lookup.threads.get(&(place.pid, tid))?),
            None => None,
        };
        Some((process, thread))
    })?;
    let rows = intervals.into_iter().enumerate();
    let overhead = |(row, interval): (usize, Interval)| Overhead {
        interval,
        kind: kinds[row],
        process: places[row].0,
        thread: places[row].1,
        correlation: correlations[row],
    };
    Ok(rows.map(overhead).collect())
}
