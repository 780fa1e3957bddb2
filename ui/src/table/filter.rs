//! What is written into the field that filters a table, and what it asks of a row.

use super::{Cell, Column, Row, Unit};
use crate::document::Document;

/// What can be written into the field that filters.
pub(super) const HINT: &str = "Words that a row holds, each in any of its columns; \"words in quotes\" stand together. \
    “column: words” looks at one column only. “column: >50” and “column: <2 ms” compare figures: without a unit (ns, µs, \
    ms, s), lengths are in µs and moments in ms.";

/// Words that are looked for at most; there is no room for more in the field.
const MOST_WORDS: usize = 32;

/// What a row must hold: all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// Words in lower case that must stand somewhere.
    words: Vec<String>,
    /// Words in lower case that must stand in a column.
    in_column: Vec<(usize, String)>,
    bounds: Vec<(usize, Bound)>,
}

impl Filter {
    /// Reads what was written. A column's name is of all that follows it, up to the next one's.
    pub(super) fn of<R: Row>(text: &str) -> Self {
        let text = text.to_lowercase();
        let (mut found, mut column) = (Self::default(), None);
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            if let Some((at, after)) = column_of::<R>(rest) {
                (column, rest) = (Some(at), after.trim_start());
                continue;
            }
            if let Some((at, (bound, after))) = column.zip(Bound::of(rest)) {
                found.bounds.extend(bound.map(|bound| (at, bound)));
                rest = after.trim_start();
                continue;
            }
            let (word, after) = word_of(rest);
            rest = after.trim_start();
            match column {
                _ if word.is_empty() => {}
                Some(at) => found.in_column.push((at, word.to_owned())),
                None => found.words.push(word.to_owned()),
            }
        }
        found.words.truncate(MOST_WORDS);
        found
    }

    /// Whether it asks for nothing.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a row holds all of it.
    pub(super) fn holds<R: Row>(&self, docs: &[Document], row: R) -> bool {
        let cell = |at: &usize| (R::COLUMNS[*at].cell)(docs, row);
        if !self.bounds.iter().all(|(at, bound)| bound.holds(&cell(at)))
            || !self.in_column.iter().all(|(at, word)| holds(&cell(at).shown(), word))
        {
            return false;
        }
        // One bit for each word that was not found yet.
        let mut missing = u32::MAX.checked_shr(u32::BITS - self.words.len() as u32).unwrap_or(0);
        for column in R::COLUMNS {
            if missing == 0 {
                break;
            }
            let cell = (column.cell)(docs, row);
            let shown = cell.shown();
            for (at, word) in self.words.iter().enumerate() {
                if missing & 1 << at != 0 && holds(&shown, word) {
                    missing &= !(1 << at);
                }
            }
        }
        missing == 0
    }

    /// The bounds as they are understood, with their units.
    pub(super) fn understood<R: Row>(&self) -> Option<String> {
        let bounds = self.bounds.iter().filter_map(|(at, bound)| {
            let column = &R::COLUMNS[*at];
            let unit = if bound.unit.is_empty() { column.figures?.sign() } else { &bound.unit };
            let space = if unit.is_empty() { "" } else { " " };
            Some(format!("{} {} {}{space}{unit}", column.title.to_lowercase(), bound.sign(), bound.number))
        });
        let bounds: Vec<String> = bounds.collect();
        (!bounds.is_empty()).then(|| bounds.join(", "))
    }

    /// Why it fits no row, where that is because of how it is written: it names a column that is none, or a unit, or a
    /// bound of no column. A name with `::` is looked for as it stands.
    pub(super) fn problem<R: Row>(&self, traces: usize) -> Option<String> {
        for (at, bound) in &self.bounds {
            let column = &R::COLUMNS[*at];
            let (title, unit) = (column.title.to_lowercase(), &bound.unit);
            match column.figures {
                None => return Some(format!("the column “{title}” holds words, no figures")),
                Some(of) if !of.has(unit) => {
                    let units = of.units().iter().filter(|unit| **unit != "us").copied().collect::<Vec<_>>();
                    return Some(match units.as_slice() {
                        [] => format!("“{title}” is a number without a unit, not of “{unit}”"),
                        units => format!("“{unit}” is no unit of “{title}”, only: {}", units.join(", ")),
                    });
                }
                Some(_) => {}
            }
        }
        let words = self.words.iter().chain(self.in_column.iter().map(|(_, word)| word));
        let name = words.filter_map(|word| word.split_once(':')).find(|(_, rest)| !rest.starts_with(':'));
        if let Some((name, _)) = name.filter(|(name, _)| !name.is_empty()) {
            let shown = R::COLUMNS.iter().filter(|column| !column.is_left_out(traces));
            let names: Vec<String> = shown.map(|column| column.title.to_lowercase()).collect();
            return Some(format!("there is no column “{name}”, only: {}", names.join(", ")));
        }
        let bound = self.words.iter().find(|word| matches!(Bound::of(word), Some((Some(_), _))))?;
        Some(format!("“{bound}” is of no column: {}", example::<R>()))
    }
}

/// A bound of the column that sorts, or of another with figures, as one can write it.
pub(super) fn example<R: Row>() -> String {
    let figures = |column: &&Column<R>| column.figures.is_some();
    let column = R::COLUMNS.get(R::SORT).filter(figures).or_else(|| R::COLUMNS.iter().find(figures));
    let unit = column.and_then(|column| column.figures).map_or("", Unit::sign);
    let name = column.map_or("column", |column| column.title).to_lowercase();
    if unit.is_empty() { format!("{name}: >50") } else { format!("{name}: >50 {unit}") }
}

/// The column that a text in lower case begins with the name of, and what comes after its colon.
fn column_of<R: Row>(text: &str) -> Option<(usize, &str)> {
    let after = |column: &Column<R>| {
        let (name, rest) = text.split_at_checked(column.title.len())?;
        let rest = rest.trim_start().strip_prefix(':')?;
        (name.eq_ignore_ascii_case(column.title) && !rest.starts_with(':')).then_some(rest)
    };
    R::COLUMNS.iter().enumerate().find_map(|(at, column)| Some((at, after(column)?)))
}

/// The first word of a text, or what stands in quotes at its beginning, and what comes after.
fn word_of(text: &str) -> (&str, &str) {
    if let Some(quoted) = text.strip_prefix(['"', '“', '„']) {
        return quoted.split_once(['"', '”', '“']).unwrap_or((quoted, ""));
    }
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// A bound that a filter sets to figures: `>50`, `<= 1.5 ms`. Holds them exactly, as digits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    above: bool,
    or_equal: bool,
    digits: i128,
    decimals: u32,
    /// The number as it was written.
    number: String,
    /// Empty if none was written.
    unit: String,
}

impl Bound {
    /// Reads a bound at the beginning of a text in lower case, and gives what comes after; no bound while its number is
    /// still to be written. `None` if it is none.
    fn of(text: &str) -> Option<(Option<Self>, &str)> {
        let (above, rest) = match text.strip_prefix('>') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('<')?),
        };
        let (or_equal, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let rest = rest.trim_start();
        if rest.is_empty() {
            return Some((None, rest));
        }
        let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.' || letter == ',';
        let (number, rest) = rest.split_at(rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len()));
        let plain = number.replace(',', "");
        let (whole, part) = plain.split_once('.').unwrap_or((&plain, ""));
        if whole.len() + part.len() > 18 {
            return None;
        }
        let digits = format!("{whole}{part}").parse().ok()?;
        // A unit follows at once, or is the next word if that is one.
        let (unit, after) = word_of(rest.trim_start());
        let (unit, rest) = if rest.starts_with(char::is_whitespace) && !Unit::ALL.iter().any(|of| of.has(unit)) {
            ("", rest)
        } else {
            (unit, after)
        };
        let (number, unit) = (number.to_owned(), unit.to_owned());
        Some((Some(Self { above, or_equal, digits, decimals: part.len() as u32, number, unit }), rest))
    }

    fn sign(&self) -> &'static str {
        match (self.above, self.or_equal) {
            (true, false) => ">",
            (true, true) => "≥",
            (false, false) => "<",
            (false, true) => "≤",
        }
    }

    /// Whether a figure is within it; a cell that holds none never is.
    fn holds(&self, cell: &Cell<'_>) -> bool {
        let Some(of) = cell.unit() else { return false };
        let Some(unit) = of.size(if self.unit.is_empty() { of.sign() } else { &self.unit }) else { return false };
        let (figure, bound) = (i128::from(cell.figure()) * 10_i128.pow(self.decimals), self.digits * unit);
        (self.or_equal && figure == bound) || if self.above { figure > bound } else { figure < bound }
    }
}

/// Whether a text contains another that is in lower case, upper and lower case alike.
fn holds(text: &str, lower: &str) -> bool {
    if text.is_ascii() && lower.is_ascii() {
        let (text, lower) = (text.as_bytes(), lower.as_bytes());
        text.windows(lower.len()).any(|part| part.eq_ignore_ascii_case(lower))
    } else {
        text.to_lowercase().contains(lower)
    }
}

#[cfg(test)]
mod tests {
    use bubblescope::trace::Ns;

    use super::*;

    /// A row of a table with a column of each kind.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Told;

    impl Row for Told {
        const ONE: &'static str = "row";
        const NAME: &'static str = "rows";
        const COLUMNS: &'static [Column<Self>] = &[
            Column::words("Drained by", "", 10.0, |_, _: Self| Cell::text("cuMemAlloc_v2")),
            Column::words("Cause", "", 10.0, |_, _: Self| Cell::text("blocking copy")),
            Column::moments("Start", "", 10.0, |_, _: Self| Cell::Moment(Ns(250_000_000))),
            Column::times("Length", "", 10.0, |_, _: Self| Cell::Duration(Ns(60_000))),
            Column::counts("Calls", "", 10.0, |_, _: Self| Cell::Count(299)),
            Column::gains("Of the span", "", 10.0, Unit::Share, |_, _: Self| Cell::ShareAtLeast(Ns(1), Ns(3))),
            Column::words("Trace", "", 10.0, |_, _: Self| Cell::text("run-08")),
        ];
        const SORT: usize = 3;
    }

    #[test]
    fn all_words_must_stand_in_a_row_each_anywhere() {
        for (filter, held) in [
            ("cumemalloc run-08", true),
            ("RUN-08   cumemalloc", true),
            ("cumemalloc run-09", false),
            ("copy blocking", true),
            ("\"copy blocking\"", false),
            ("“blocking copy” 299", true),
            ("\"blocking copy", true),
            ("run-08 cause: copy blocking", true),
            ("run-08 cause: run-08", false),
            ("cause: copy drained by: alloc length: >50", true),
            ("cause: copy drained by: copy", false),
            ("drained   by: alloc", false),
            ("", true),
            ("\"\"", true),
        ] {
            assert_eq!(Filter::of::<Told>(filter).holds(&[], Told), held, "{filter}");
        }
        let many = "copy ".repeat(40);
        assert!(Filter::of::<Told>(&many).holds(&[], Told));
        assert!(!Filter::of::<Told>(&format!("nothing {many}")).holds(&[], Told));
    }

    #[test]
    fn a_figure_without_a_unit_means_the_unit_that_is_told() {
        for (filter, held, told) in [
            ("start: >200", true, "start > 200 ms"),
            ("start: >300", false, "start > 300 ms"),
            ("start:>200ms", true, "start > 200 ms"),
            ("start: < 0.3 s", true, "start < 0.3 s"),
            ("length: >50", true, "length > 50 µs"),
            ("length: >50 <60", false, "length > 50 µs, length < 60 µs"),
            ("length: >=60 µs run-08", false, "length ≥ 60 µs"),
            ("run-08 length: <=60 us", true, "length ≤ 60 us"),
            ("length: >0.01 ms start: <1s", true, "length > 0.01 ms, start < 1 s"),
            ("calls: >1,0", true, "calls > 1,0"),
            ("of the span: >33", true, "of the span > 33 %"),
            ("of the span: >34%", false, "of the span > 34 %"),
        ] {
            let filter = (filter, Filter::of::<Told>(filter));
            assert_eq!(filter.1.holds(&[], Told), held, "{}", filter.0);
            assert_eq!(filter.1.understood::<Told>().as_deref(), Some(told), "{}", filter.0);
        }
        // A bound that is still being written hides nothing.
        for begun in ["length:", "length: >", "length: >=", "start: > "] {
            let filter = Filter::of::<Told>(begun);
            assert!(filter.holds(&[], Told) && filter.understood::<Told>().is_none(), "{begun}");
        }
        assert_eq!(example::<Told>(), "length: >50 µs");
    }

    #[test]
    fn bounds_are_exact_and_know_units() {
        let holds = |bound: &str, cell: Cell<'_>| matches!(Bound::of(bound), Some((Some(bound), rest)) if rest.trim().is_empty() && bound.holds(&cell));
        for (bound, ns, held) in [
            (">50", 50_000, false),
            (">50", 50_001, true),
            (">=50", 50_000, true),
            ("< 1.5 ms", 1_499_999, true),
            ("<1.5ms", 1_500_000, false),
            (">2s", 2_000_000_001, true),
            (">7 ns", 8, true),
            (">7apples", 8_000_000, false),
            (">7 apples", 8_000_000, false),
        ] {
            assert_eq!(holds(bound, Cell::Duration(Ns(ns))), held, "{bound} {ns}");
        }
        assert!(holds(">50", Cell::AtLeast(Ns(50_001))) && holds(">33 %", Cell::ShareAtLeast(Ns(1), Ns(3))));
        assert!(holds(">33 %", Cell::Share(Ns(1), Ns(3))) && !holds(">34", Cell::Share(Ns(1), Ns(3))));
        assert!(!holds("<1", Cell::Unknown) && !holds("<1", Cell::text("0")) && !holds(">1 ms", Cell::Count(7)));
        for text in ["", ">x", ">1.2.3", ">99999999999999999999", "50"] {
            assert_eq!(Bound::of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_filter_is_told() {
        let columns = "drained by, cause, start, length, calls, of the span, trace";
        for (filter, told) in [
            ("lenght: >10", format!("there is no column “lenght”, only: {columns}")),
            ("run-08 LENGHT:", format!("there is no column “lenght”, only: {columns}")),
            (">20", "“>20” is of no column: length: >50 µs".to_owned()),
            ("calls: >7 ms", "“calls” is a number without a unit, not of “ms”".to_owned()),
            ("length: >7apples", "“apples” is no unit of “length”, only: ns, µs, ms, s".to_owned()),
            ("cause: >7", "the column “cause” holds words, no figures".to_owned()),
        ] {
            assert_eq!(Filter::of::<Told>(filter).problem::<Told>(1), Some(told), "{filter}");
            assert!(!Filter::of::<Told>(filter).holds(&[], Told), "{filter}");
        }
        for fine in ["length: 1", "Length:", "c10::add", ":x", "words", ""] {
            assert_eq!(Filter::of::<Told>(fine).problem::<Told>(1), None, "{fine}");
        }
    }

    #[test]
    fn letters_of_either_case_are_found() {
        for (text, lower, found) in [("cudaMemcpy", "mem", true), ("GRÖSSE", "größe", false), ("Größe", "größ", true)]
        {
            assert_eq!(holds(text, lower), found, "{text} {lower}");
        }
        assert!(!holds("a", "ab") && !holds("", "a"));
    }
}
