//! Where the rows of each table lie in the file, checked before anything is decoded.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::DataType;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::super::pages;
use super::super::schema::{Column, Table, TableRows, most_rows};
use super::columns::Cursor;
use super::{TraceFileError, damaged, ensure};
use crate::progress::{Watch, check};
use crate::trace::Names;

/// The rows of the file.
pub(super) struct Source<'f> {
    reader: &'f SerializedFileReader<Bytes>,
    pub(super) rows: TableRows,
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
    pub(super) fn of(
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
    pub(super) fn each_group(
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
    pub(super) fn cursor<T: DataType>(&self, group: usize, column: Column) -> Result<Cursor<T>, TraceFileError> {
        let leaf = self.leaves[column as usize];
        let chunk = self.reader.metadata().row_group(group).column(leaf).compressed_size().unsigned_abs();
        let decoded = self.decoded.fetch_add(chunk, Ordering::Relaxed).saturating_add(chunk).min(self.columns);
        // As a part of the file's length, which is what reading the file counted.
        let share = u128::from(self.bytes) * u128::from(decoded) / u128::from(self.columns.max(1));
        let done = self.bytes.saturating_add(u64::try_from(share).unwrap_or(self.bytes));
        self.watch.progress(done, self.bytes.saturating_mul(2));
        let reader = self.reader.get_row_group(group)?.get_column_reader(leaf)?;
        Ok(Cursor::new(get_typed_column_reader(reader)))
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
