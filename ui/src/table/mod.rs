//! Tables of any length over the opened traces: only the rows on screen are laid out.
//!
//! A table is its columns, each with a function from a row to what its cell says. Sorting, filtering, copying, drawing
//! and clicking are the same for all of them.

mod cell;
mod draw;
mod filter;
mod select;

use std::sync::Arc;

use crossbeam_channel::{Receiver, bounded};
use eframe::egui;

pub use cell::{Cell, Unit};
pub use select::arranged;

use crate::background::{Background, Wanted};
use crate::clipboard::Copied;
use crate::document::Document;
use crate::format;

/// Gives what a row's cell says.
type CellOf<R> = for<'a> fn(&'a [Document], R) -> Cell<'a>;

/// A column of a table.
#[derive(Debug)]
pub struct Column<R> {
    title: &'static str,
    hint: &'static str,
    /// How wide it stays, if what it holds is wider, where there is too little room.
    width: f32,
    /// What its figures are, which stand on the right and sort from the greatest; `None` if it holds words.
    figures: Option<Unit>,
    /// Whether some of the figures are the least to expect.
    gains: bool,
    /// Whether it is shown only when several traces are open.
    of_several: bool,
    /// Whether it is shown only where a row says something there. All rows are looked at, of which there may be few.
    where_said: bool,
    cell: CellOf<R>,
}

impl<R> Column<R> {
    /// A column of words.
    pub const fn words(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { title, hint, width, figures: None, gains: false, of_several: false, where_said: false, cell }
    }

    /// A column of numbers of things.
    pub const fn counts(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { figures: Some(Unit::Count), ..Self::words(title, hint, width, cell) }
    }

    /// A column of lengths of time.
    pub const fn times(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { figures: Some(Unit::Time), ..Self::words(title, hint, width, cell) }
    }

    /// A column of moments of the trace.
    pub const fn moments(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { figures: Some(Unit::Moment), ..Self::words(title, hint, width, cell) }
    }

    /// A column of figures of which some are the least to expect.
    pub const fn gains(title: &'static str, hint: &'static str, width: f32, of: Unit, cell: CellOf<R>) -> Self {
        Self { figures: Some(of), gains: true, ..Self::words(title, hint, width, cell) }
    }

    /// The column that names the trace.
    pub const fn trace(cell: CellOf<R>) -> Self {
        Self { of_several: true, ..Self::words("Trace", "The file", 90.0, cell) }
    }

    /// A column of words that is shown only where a row says something there, in a table of few rows.
    pub const fn words_if_any(title: &'static str, hint: &'static str, width: f32, cell: CellOf<R>) -> Self {
        Self { where_said: true, ..Self::words(title, hint, width, cell) }
    }

    /// Whether it says nothing, with so many traces.
    fn is_left_out(&self, traces: usize) -> bool {
        self.of_several && traces < 2
    }
}

impl<R: Row> Column<R> {
    /// Whether it says nothing of these rows.
    fn is_silent(&self, docs: &[Document], rows: &[R]) -> bool {
        let says_nothing = |&row: &R| (self.cell)(docs, row).shown().is_empty();
        self.is_left_out(docs.len()) || self.where_said && rows.iter().all(says_nothing)
    }
}

/// A row of a table: names a thing of the opened traces.
pub trait Row: Copy + PartialEq + Send + Sync + 'static {
    /// What a row is.
    const ONE: &'static str;
    /// What the rows are, in the plural.
    const NAME: &'static str;
    /// The columns.
    const COLUMNS: &'static [Column<Self>];
    /// The column that sorts at first.
    const SORT: usize;
}

/// The rows of a table before they are sorted and filtered.
#[derive(Clone, Copy, Debug)]
pub struct Source<F> {
    /// Changes whenever there would be other rows.
    pub version: u64,
    /// About how many there are.
    pub len: usize,
    /// Gives every row.
    pub all: F,
}

/// Gives every row of some documents.
pub type AllOf<R> = fn(&[Document]) -> Vec<R>;

/// What a table's rows were made for: the version of their source, the column that sorts, whether the greatest is on
/// top, and the filter.
type Made = (u64, usize, bool, String);

/// How a table is sorted and filtered, and the rows that result.
#[derive(Debug)]
pub struct Table<R> {
    /// The column that sorts.
    pub sort: usize,
    /// Whether the greatest is on top.
    pub descending: bool,
    /// What a row must contain to be shown.
    pub filter: String,
    rows: Background<Made, Arc<[R]>>,
    copying: Option<Receiver<(usize, String)>>,
    /// What was copied last.
    copied: Option<Copied>,
    /// How wide the columns would be, for these rows and so many traces.
    natural: Option<(Arc<[R]>, usize, Vec<f32>)>,
    /// What was selected in the last frame.
    selected: Option<R>,
    /// Whether to scroll to the selection once its row is known.
    reveal: bool,
}

impl<R: Row> Default for Table<R> {
    fn default() -> Self {
        let descending = R::COLUMNS.get(R::SORT).is_some_and(|column| column.figures.is_some());
        let (rows, copying, copied) = (Background::default(), None, None);
        let (sort, filter) = (R::SORT, String::new());
        Self { sort, descending, filter, rows, copying, copied, natural: None, selected: None, reveal: false }
    }
}

/// Up to so many rows are sorted and filtered at once, which takes a few milliseconds; more by a thread of their own.
const FEW_ROWS: usize = 2_000;

impl<R: Row> Table<R> {
    /// The rows, sorted and filtered, and whether they are those that are wanted now: many rows come a few frames
    /// later, and until then the ones before are given.
    pub fn rows<F>(&mut self, ctx: &egui::Context, docs: &[Document], source: &Source<F>) -> (Arc<[R]>, bool)
    where
        F: Fn(&[Document]) -> Vec<R> + Clone + Send + 'static,
    {
        let wanted = (source.version, self.sort, self.descending, self.filter.clone());
        let (sort, descending, filter) = (self.sort, self.descending, self.filter.clone());
        if source.len <= FEW_ROWS {
            let make = || arranged(docs, (source.all)(docs), (sort, descending, &filter), &Wanted::default()).into();
            return (Arc::clone(self.rows.get_now(wanted, make)), true);
        }
        let rows = self.rows.get(ctx, wanted, || {
            let (docs, all) = (to_read(docs), source.all.clone());
            move |until: &Wanted| arranged(&docs, all(&docs), (sort, descending, &filter), until).into()
        });
        if let Some(rows) = rows {
            return (Arc::clone(rows), true);
        }
        (self.rows.last().map_or_else(|| [].into(), |(_, rows)| Arc::clone(rows)), false)
    }

    /// Whether the rows that are shown name things of the documents as they are now.
    fn is_current(&self, version: u64) -> bool {
        self.rows.last().is_some_and(|((of, ..), _)| *of == version)
    }

    /// Sorts by a column, or turns the order around.
    pub fn sort_by(&mut self, column: usize) {
        let figures = R::COLUMNS.get(column).is_some_and(|column| column.figures.is_some());
        self.descending = if self.sort == column { !self.descending } else { figures };
        self.sort = column;
    }

    /// Copies rows as comma-separated values, once they are written.
    fn copy(&mut self, ctx: &egui::Context, docs: &[Document], rows: &Arc<[R]>) {
        self.copied = None;
        if rows.len() <= FEW_ROWS {
            return self.put(ctx, rows.len(), csv(docs, rows));
        }
        let (send, written) = bounded(1);
        let (docs, rows, wake) = (to_read(docs), Arc::clone(rows), ctx.clone());
        let work = move || {
            // Nobody listens any more when the window was closed.
            drop(send.send((rows.len(), csv(&docs, &rows))));
            wake.request_repaint();
        };
        if std::thread::Builder::new().name("copy".to_owned()).spawn(work).is_ok() {
            self.copying = Some(written);
        }
    }

    /// Puts so many rows on the clipboard.
    fn put(&mut self, ctx: &egui::Context, rows: usize, text: String) {
        self.copied = Some(Copied::put(ctx, text, format::things(rows as u64, "row", "rows")));
    }
}

/// Rows as comma-separated values with a heading. Whether a gain is the least to expect stands in a column beside it.
fn csv<R: Row>(docs: &[Document], rows: &[R]) -> String {
    let beside = |column: &Column<R>| column.gains.then(|| format!("{}, at least", column.title));
    let titles = R::COLUMNS.iter().flat_map(|column| [Some(column.title.to_owned()), beside(column)]).flatten();
    let mut csv = titles.map(|title| Cell::text(title).csv()).collect::<Vec<_>>().join(",");
    csv.push('\n');
    for &row in rows {
        for (at, column) in R::COLUMNS.iter().enumerate() {
            if at > 0 {
                csv.push(',');
            }
            let cell = (column.cell)(docs, row);
            csv.push_str(&cell.csv());
            if column.gains {
                csv.push(',');
                csv.push_str(cell.csv_at_least());
            }
        }
        csv.push('\n');
    }
    csv
}

/// The documents for another thread to read in.
fn to_read(docs: &[Document]) -> Vec<Document> {
    docs.iter().map(Document::without_rows).collect()
}

#[cfg(test)]
mod tests {
    use bubblescope::trace::Ns;

    use super::*;

    const WORDS: [(&str, u64); 3] = [("sync \"now\"", 9), ("copy", 100), ("Sync", 20)];

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Word(usize);

    impl Row for Word {
        const ONE: &'static str = "word";
        const NAME: &'static str = "words";
        const COLUMNS: &'static [Column<Self>] = &[
            Column::words("Word", "", 10.0, |_, row: Self| Cell::text(WORDS[row.0].0)),
            Column::counts("Figure", "", 10.0, |_, row: Self| Cell::Count(WORDS[row.0].1)),
            Column::gains("Gain", "", 10.0, Unit::Time, |_, row: Self| match row.0 {
                0 => Cell::Unknown,
                1 => Cell::Duration(Ns(7)),
                _ => Cell::AtLeast(Ns(8)),
            }),
        ];
        const SORT: usize = 1;
    }

    fn words(_: &[Document]) -> Vec<Word> {
        vec![Word(0), Word(1), Word(2)]
    }

    #[test]
    fn rows_are_sorted_filtered_and_copied() {
        let ctx = egui::Context::default();
        let numbers = |table: &mut Table<Word>| {
            let (rows, ready) = table.rows(&ctx, &[], &Source { version: 0, len: 3, all: words });
            assert!(ready, "few rows are there at once");
            rows.iter().map(|row| row.0).collect::<Vec<_>>()
        };
        let mut table = Table::default();
        assert_eq!(numbers(&mut table), [1, 2, 0]);
        table.sort_by(1);
        assert_eq!(numbers(&mut table), [0, 2, 1]);
        table.sort_by(0);
        assert_eq!(numbers(&mut table), [2, 1, 0]);
        table.filter = "SYNC".to_owned();
        assert_eq!(numbers(&mut table), [2, 0]);
        table.filter = "word: now".to_owned();
        assert_eq!(numbers(&mut table), [0]);
        for other in ["figure: sync", "sync:"] {
            table.filter = other.to_owned();
            assert_eq!(numbers(&mut table), [0_usize; 0], "{other} is in no such column");
        }
        table.filter = " Figure :100 ".to_owned();
        assert_eq!(numbers(&mut table), [1]);
        table.filter = "now sync".to_owned();
        assert_eq!(numbers(&mut table), [0]);
        assert_eq!(
            csv(&[], &[Word(2), Word(0), Word(1)]),
            "\"Word\",\"Figure\",\"Gain\",\"Gain, at least\"\n\"Sync\",20,8,true\n\"sync \"\"now\"\"\",9,,\n\"copy\",100,7,false\n"
        );
        for (filter, rows) in [
            ("figure: >20", &[1][..]),
            ("figure: >= 20", &[1, 2]),
            ("FIGURE:<20.5", &[2, 0]),
            ("figure: <1,000", &[1, 2, 0]),
            ("figure: >20 ms", &[]),
            ("word: >2", &[]),
            (">20", &[]),
        ] {
            table.filter = filter.to_owned();
            table.sort = 1;
            table.descending = true;
            assert_eq!(numbers(&mut table), rows, "{filter}");
        }
        table.filter.clear();
        let one = Source { version: 1, len: 1, all: |_: &[Document]| vec![Word(0)] };
        assert_eq!(*table.rows(&ctx, &[], &one).0, [Word(0)], "a new version is read again");
    }

    #[test]
    fn many_rows_come_later_and_never_those_of_an_older_question() {
        let ctx = egui::Context::default();
        let all = |_: &[Document]| (0..100_000).map(|at| Word(at % 3)).collect::<Vec<_>>();
        let source = Source { version: 0, len: 100_000, all };
        let mut table: Table<Word> = Table { filter: "copy".to_owned(), ..Table::default() };
        assert!(!table.rows(&ctx, &[], &source).1, "they are not made within a frame");
        table.filter = "now".to_owned();
        let start = std::time::Instant::now();
        let rows = loop {
            let (rows, ready) = table.rows(&ctx, &[], &source);
            if ready {
                break rows;
            }
            assert!(start.elapsed().as_secs() < 120, "the rows never come");
            std::thread::sleep(std::time::Duration::from_millis(1));
        };
        assert_eq!((rows.len(), rows[0]), (33_334, Word(0)));
    }
}
