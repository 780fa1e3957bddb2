//! Columns, decoded into the model's types.

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use rustc_hash::FxHashMap;

use super::super::schema::{Column, Spelled, Table};
use super::source::Source;
use super::{TraceFileError, ensure};
use crate::trace::{CorrelationId, GraphId, Interval, NameId, Names, Ns};

/// Rows decoded at a time: small enough to stay in the second-level cache.
pub(super) const BATCH: usize = 1 << 14;
/// What a column of times gives where it is null.
const NO_TIME: i64 = i64::MIN;
/// A name that is not among the trace's names.
const NO_NAME: NameId = NameId(u32::MAX);

impl Source<'_> {
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

    pub(super) fn int32<O: Copy>(
        &self,
        table: Table,
        column: Column,
        absent: O,
        convert: impl Fn(u32) -> O,
    ) -> Result<Vec<O>, TraceFileError> {
        self.column::<Int32Type, O>(table, column, absent, |&value| convert(value as u32))
    }

    pub(super) fn int64<O: Copy>(
        &self,
        table: Table,
        column: Column,
        absent: O,
        convert: impl Fn(u64) -> O,
    ) -> Result<Vec<O>, TraceFileError> {
        self.column::<Int64Type, O>(table, column, absent, |&value| convert(value as u64))
    }

    pub(super) fn correlations(&self, table: Table, column: Column) -> Result<Vec<CorrelationId>, TraceFileError> {
        self.int64(table, column, CorrelationId::NONE, CorrelationId)
    }

    pub(super) fn graphs(&self, table: Table) -> Result<Vec<GraphId>, TraceFileError> {
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

    pub(super) fn spelled<E: Spelled>(&self, table: Table, column: Column) -> Result<Vec<E>, TraceFileError> {
        let found = self.strings(table, column, None, |text| E::from_spelling(text))?;
        found
            .into_iter()
            .collect::<Option<Vec<E>>>()
            .ok_or_else(|| TraceFileError::Damaged(format!("unknown {} of a {}", column.storage().name, table.kind())))
    }

    pub(super) fn names(&self, table: Table, names: &Names) -> Result<Vec<NameId>, TraceFileError> {
        let find = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| names.find(text)).unwrap_or(NO_NAME);
        let found = self.strings(table, Column::Name, NO_NAME, find)?;
        ensure(found.iter().all(|&name| name != NO_NAME), "a name that is not among its names")?;
        Ok(found)
    }

    /// Reads where events started and ended.
    pub(super) fn times(&self, table: Table, end: Ns) -> Result<(Vec<Ns>, Vec<Ns>), TraceFileError> {
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

    pub(super) fn intervals(&self, table: Table, end: Ns) -> Result<Vec<Interval>, TraceFileError> {
        let (starts, ends) = self.times(table, end)?;
        Ok(starts.into_iter().zip(ends).map(|(start, end)| Interval::new(start, end)).collect())
    }
}

/// One column of one row group while it is read.
pub(super) struct Cursor<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> Cursor<T> {
    pub(super) fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, values: Vec::new(), levels: Vec::new() }
    }

    /// Reads exactly `rows` more rows.
    pub(super) fn read<O: Copy>(
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
