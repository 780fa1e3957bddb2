//! Reads tables of a database that nobody vouches for: read-only, without evaluating anything it defines, and never
//! more rows than its bytes can hold.

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use rustc_hash::FxHashMap;

use crate::import::ImportError;
use crate::progress::{Watch, check};

/// The fewest bytes that a row takes: a pointer, its two lengths, and the header of its record.
const LEAST_ROW: u64 = 4;

/// The longest that reading may take: so long, and so much more for each MiB. Sound databases take a hundredth of it;
/// one whose rows lead to the same pages again and again could take forever.
const TIME: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(1));

/// What passes between two looks counts for no more than this: the process may have been stopped meanwhile.
const LONGEST_TURN: Duration = Duration::from_millis(500);

/// Rows between two looks at the clock.
const ROWS_PER_LOOK: u64 = 64;

/// The way out of a damaged export.
const AGAIN: &str = "export it again: nsys export --type sqlite NAME.nsys-rep";

/// An open database.
pub(super) struct Database<'w> {
    connection: Connection,
    /// Ordinary tables by their name in lower case.
    tables: FxHashMap<String, Table>,
    /// Rows that may still be read before the database must be damaged: more than its bytes can hold.
    rows_left: Cell<u64>,
    /// The same of bytes of text.
    text_left: Cell<u64>,
    /// When reading must have ended.
    time_left: Cell<Duration>,
    looked: Cell<Instant>,
    watch: &'w dyn Watch,
    /// Rows that were read.
    rows_read: Cell<u64>,
    /// Rows that are to be read, as far as that is known.
    rows: u64,
}

/// One ordinary table.
pub(super) struct Table {
    name: String,
    /// Stored columns. Generated ones are left out: they would be evaluated.
    columns: Vec<String>,
}

impl Table {
    /// The table's own spelling of a column's name.
    fn column(&self, name: &str) -> Option<&str> {
        self.columns.iter().find(|column| column.eq_ignore_ascii_case(name)).map(String::as_str)
    }

    /// Whether the table has a column of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.column(name).is_some()
    }
}

/// One row: the columns that were asked for, in that order. Those the table lacks read as absent.
pub(super) struct Row<'r> {
    row: &'r rusqlite::Row<'r>,
    text_left: &'r Cell<u64>,
}

impl Row<'_> {
    /// An integer; `None` when absent, NULL or of another type.
    pub(super) fn int(&self, column: usize) -> Option<i64> {
        match self.row.get_ref(column) {
            Ok(ValueRef::Integer(number)) => Some(number),
            _ => None,
        }
    }

    /// An integer that fits a narrower type; `None` when absent or out of its range.
    pub(super) fn small<T: TryFrom<i64>>(&self, column: usize) -> Option<T> {
        self.int(column).and_then(|number| T::try_from(number).ok())
    }

    /// A text; `None` when absent, NULL or of another type. Bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self, column: usize) -> Option<String> {
        match self.row.get_ref(column) {
            Ok(ValueRef::Text(bytes)) => {
                let left = self.text_left.get().checked_sub(bytes.len() as u64);
                self.text_left.set(left.unwrap_or(0));
                left.map(|_| String::from_utf8_lossy(bytes).into_owned())
            }
            _ => None,
        }
    }
}

impl<'w> Database<'w> {
    /// Opens the database in `path`, a regular file of `bytes` bytes.
    pub(super) fn open(path: &Path, bytes: u64, watch: &'w dyn Watch) -> Result<Self, ImportError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(address(path), flags).map_err(damaged("its header"))?;
        connection
            .execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA query_only = ON;")
            .map_err(damaged("its header"))?;
        let mebibytes = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        let mut database = Self {
            connection,
            tables: FxHashMap::default(),
            rows_left: Cell::new(bytes / LEAST_ROW),
            text_left: Cell::new(bytes),
            time_left: Cell::new(TIME.0.saturating_add(TIME.1.saturating_mul(mebibytes))),
            looked: Cell::new(Instant::now()),
            watch,
            rows_read: Cell::new(0),
            rows: 0,
        };
        database.tables = database.list()?;
        Ok(database)
    }

    /// The ordinary tables. Views and virtual tables have no page of their own and are left alone.
    fn list(&self) -> Result<FxHashMap<String, Table>, ImportError> {
        let broken = damaged("its list of tables");
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0";
        let mut names = Vec::new();
        self.each(sql, "its list of tables", |row| names.extend(row.text(0)))?;
        let mut tables = FxHashMap::default();
        for name in names {
            let mut statement = self
                .connection
                .prepare(&format!("SELECT name FROM pragma_table_info({})", quoted(&name, '\'')))
                .map_err(&broken)?;
            let columns = statement.query_map([], |row| row.get::<_, String>(0)).map_err(&broken)?;
            // A name that is not UTF-8 is none that is asked for.
            let columns = columns.filter_map(Result::ok).collect();
            tables.insert(name.to_lowercase(), Table { name, columns });
        }
        Ok(tables)
    }

    /// The table of this name, in any case.
    pub(super) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(&name.to_lowercase())
    }

    /// Says which tables will be read, so that it can be told how far reading is.
    pub(super) fn expect<'t>(&mut self, tables: impl IntoIterator<Item = &'t str>) {
        let rows = |name: &str| {
            let table = self.table(name)?;
            // Rows are numbered from 1 on, and few are ever missing.
            let last = format!("SELECT max(rowid) FROM {}", quoted(&table.name, '"'));
            let last: Option<i64> = self.connection.query_row(&last, [], |row| row.get(0)).ok()?;
            u64::try_from(last?).ok()
        };
        let rows = tables.into_iter().filter_map(rows).fold(0, u64::saturating_add);
        self.rows = rows.min(self.rows_left.get());
    }

    /// Reads the named columns of every row of `table`.
    pub(super) fn scan(&self, table: &Table, columns: &[&str], row: impl FnMut(&Row<'_>)) -> Result<(), ImportError> {
        self.each(&select(table, columns, ""), &format!("table {}", table.name), row)
    }

    /// Reads rows until there are no more, or more than the file can hold.
    fn each(&self, sql: &str, place: &str, mut row: impl FnMut(&Row<'_>)) -> Result<(), ImportError> {
        let broken = damaged(place);
        let mut statement = self.connection.prepare(sql).map_err(&broken)?;
        let mut rows = statement.query([]).map_err(&broken)?;
        while let Some(found) = rows.next().map_err(&broken)? {
            let left = self.rows_left.get();
            self.rows_left.set(left.saturating_sub(1));
            row(&Row { row: found, text_left: &self.text_left });
            if left == 0 || self.text_left.get() == 0 {
                return Err(Self::impossible(place, "its rows are more than its bytes can hold"));
            }
            self.rows_read.set(self.rows_read.get() + 1);
            if left.is_multiple_of(ROWS_PER_LOOK) {
                check(self.watch)?;
                self.watch.progress(self.rows_read.get().min(self.rows), self.rows);
                let now = Instant::now();
                let turn = now.duration_since(self.looked.replace(now)).min(LONGEST_TURN);
                let Some(left) = self.time_left.get().checked_sub(turn) else {
                    return Err(Self::impossible(place, "its pages lead in circles"));
                };
                self.time_left.set(left);
            }
        }
        Ok(())
    }

    fn impossible(place: &str, reason: &str) -> ImportError {
        ImportError::Damaged(format!("{place} is damaged ({reason}); {AGAIN}"))
    }

    /// Prepares to look up one text column of `table` by rowid; `None` for a table without rowids.
    pub(super) fn lookup(&self, table: &Table, column: &str) -> Option<Lookup<'_>> {
        let sql = select(table, &[column], " WHERE rowid = ?1");
        let statement = self.connection.prepare(&sql).ok()?;
        Some(Lookup { statement, text_left: &self.text_left })
    }

    /// Reads a column of integers together with the rowids.
    pub(super) fn rowids(&self, table: &Table, column: &str, mut row: impl FnMut(i64, i64)) -> Result<(), ImportError> {
        let sql = select(table, &["rowid", column], "");
        self.each(&sql, &format!("table {}", table.name), |found| {
            if let (Some(rowid), Some(value)) = (found.int(0), found.int(1)) {
                row(rowid, value);
            }
        })
    }
}

/// A prepared look-up by rowid.
pub(super) struct Lookup<'c> {
    statement: rusqlite::Statement<'c>,
    text_left: &'c Cell<u64>,
}

impl Lookup<'_> {
    /// The text in the row with this rowid.
    pub(super) fn text(&mut self, rowid: i64) -> Option<String> {
        let mut rows = self.statement.query([rowid]).ok()?;
        let text_left = self.text_left;
        rows.next().ok()?.and_then(|row| Row { row, text_left }.text(0))
    }
}

/// A query for columns by name, NULL in the place of those that the table lacks.
fn select(table: &Table, columns: &[&str], condition: &str) -> String {
    let mut sql = String::from("SELECT ");
    for (index, &column) in columns.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let value = match (column, table.column(column)) {
            ("rowid", _) => "rowid".to_owned(),
            (_, Some(name)) => quoted(name, '"'),
            (_, None) => "NULL".to_owned(),
        };
        let _ = write!(sql, "{separator}{value}");
    }
    let _ = write!(sql, " FROM {}{condition}", quoted(&table.name, '"'));
    sql
}

/// A name or text as SQL spells it.
fn quoted(text: &str, mark: char) -> String {
    let doubled = text.replace(mark, &format!("{mark}{mark}"));
    format!("{mark}{doubled}{mark}")
}

/// Names the place in which SQLite found something wrong.
fn damaged(place: &str) -> impl Fn(rusqlite::Error) -> ImportError {
    let place = place.to_owned();
    move |error| ImportError::Damaged(format!("{place} is damaged ({error}); {AGAIN}"))
}

/// The address by which SQLite opens a file that it must neither change nor lock, nor look for a journal of.
fn address(path: &Path) -> String {
    // An empty authority, so that a path that starts with two strokes is not taken for one.
    let mut address = String::from(if path.is_absolute() { "file://" } else { "file:" });
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address.push_str("?immutable=1");
    address
}
