//! Which rows of a table are shown, and in which order.

use std::borrow::Cow;

use super::{Cell, Column, Row};
use crate::background::Wanted;
use crate::document::Document;

/// Rows between two looks at whether they are still wanted.
const ROWS_PER_LOOK: usize = 4_096;

/// Sorts and filters rows. Gives up early, with any rows, when they are no longer `wanted`.
pub fn arranged<R: Row>(
    docs: &[Document],
    mut rows: Vec<R>,
    (sort, descending, filter): (usize, bool, &str),
    wanted: &Wanted,
) -> Vec<R> {
    let filter = filter.trim().to_lowercase();
    let (looked_at, filter) = searched::<R>(&filter);
    if let ([column], Some(bound)) = (looked_at, Bound::of(filter)) {
        rows.retain(|&row| bound.holds(&(column.cell)(docs, row)));
    } else if !filter.is_empty() {
        let holds = |column: &Column<R>, row| holds(&(column.cell)(docs, row).shown(), filter);
        let mut at = 0;
        rows.retain(|&row| {
            at += 1;
            let over = at % ROWS_PER_LOOK == 0 && wanted.is_over();
            !over && looked_at.iter().any(|column| holds(column, row))
        });
    }
    if wanted.is_over() {
        return rows;
    }
    if let Some(column) = R::COLUMNS.get(sort) {
        if column.figures {
            let mut keyed: Vec<(i64, R)> = rows.iter().map(|&row| ((column.cell)(docs, row).figure(), row)).collect();
            keyed.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
            rows = keyed.into_iter().map(|(_, row)| row).collect();
        } else {
            let text = |row| (column.cell)(docs, row).into_text();
            let mut keyed: Vec<(Cow<'_, str>, R)> = rows.iter().map(|&row| (text(row), row)).collect();
            keyed.sort_by(|(a, _), (b, _)| if descending { b.cmp(a) } else { a.cmp(b) });
            rows = keyed.into_iter().map(|(_, row)| row).collect();
        }
    }
    rows
}

/// What can be written into the field that filters.
pub(super) const FILTER_HINT: &str = "Words that a row holds; “column: words” looks at one column only. “column: >50” and “column: <2 ms” compare \
    figures: times are in µs unless ns, ms or s is written.";

/// A bound that a filter sets to figures: `>50`, `<= 1.5 ms`. Holds them exactly, as digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound<'a> {
    above: bool,
    or_equal: bool,
    digits: i128,
    decimals: u32,
    unit: &'a str,
}

impl<'a> Bound<'a> {
    /// Reads a bound; `None` if it is none, or not whole yet.
    fn of(text: &'a str) -> Option<Self> {
        let (above, rest) = match text.strip_prefix('>') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('<')?),
        };
        let (or_equal, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let rest = rest.trim();
        let end = rest
            .find(|letter: char| !(letter.is_ascii_digit() || letter == '.' || letter == ','))
            .unwrap_or(rest.len());
        let (number, unit) = (rest[..end].replace(',', ""), rest[end..].trim());
        let (whole, part) = number.split_once('.').unwrap_or((&number, ""));
        if whole.len() + part.len() > 18 {
            return None;
        }
        Some(Self {
            above,
            or_equal,
            digits: format!("{whole}{part}").parse().ok()?,
            decimals: part.len() as u32,
            unit,
        })
    }

    /// Whether a figure is within it; a cell that holds none never is.
    fn holds(self, cell: &Cell<'_>) -> bool {
        let unit = match (cell, self.unit) {
            (Cell::Duration(_) | Cell::Moment(_) | Cell::AtLeast(_), unit) => match unit {
                "ns" => 1,
                "" | "us" | "µs" | "μs" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                _ => return false,
            },
            (Cell::Count(_), "") => 1,
            // The figure of a share is in millionths.
            (Cell::Share(_, whole) | Cell::ShareAtLeast(_, whole), "" | "%") if whole.0 > 0 => 10_000,
            _ => return false,
        };
        let (figure, bound) = (i128::from(cell.figure()) * 10_i128.pow(self.decimals), self.digits * unit);
        (self.or_equal && figure == bound) || if self.above { figure > bound } else { figure < bound }
    }
}

/// The columns that a filter looks at, and what it looks for there: `cause: sync` looks at one column only.
fn searched<R: Row>(filter: &str) -> (&'static [Column<R>], &str) {
    let named = filter.split_once(':').and_then(|(name, text)| {
        let at = R::COLUMNS.iter().position(|column| column.title.eq_ignore_ascii_case(name.trim()))?;
        Some((&R::COLUMNS[at..=at], text.trim()))
    });
    named.unwrap_or((R::COLUMNS, filter))
}

/// What is wrong with a filter that names a column which is none; `None` if it does not. A name with `::` is looked for as
/// it stands.
pub(super) fn unknown_column<R: Row>(filter: &str, traces: usize) -> Option<String> {
    let (name, rest) = filter.trim().split_once(':')?;
    let is = |column: &Column<R>| column.title.eq_ignore_ascii_case(name.trim());
    if name.trim().is_empty() || rest.starts_with(':') || R::COLUMNS.iter().any(is) {
        return None;
    }
    let shown = R::COLUMNS.iter().filter(|column| !column.is_left_out(traces));
    let names: Vec<String> = shown.map(|column| column.title.to_lowercase()).collect();
    Some(format!("there is no column “{}”, only: {}", name.trim(), names.join(", ")))
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

    #[test]
    fn bounds_are_exact_and_know_units() {
        let holds = |bound: &str, cell: Cell<'_>| Bound::of(bound).is_some_and(|bound| bound.holds(&cell));
        for (bound, ns, held) in [
            (">50", 50_000, false),
            (">50", 50_001, true),
            (">=50", 50_000, true),
            ("< 1.5 ms", 1_499_999, true),
            ("<1.5ms", 1_500_000, false),
            (">2s", 2_000_000_001, true),
            (">7 ns", 8, true),
            (">7 apples", 8_000_000, false),
        ] {
            assert_eq!(holds(bound, Cell::Duration(Ns(ns))), held, "{bound} {ns}");
        }
        assert!(holds(">50", Cell::AtLeast(Ns(50_001))) && holds(">33 %", Cell::ShareAtLeast(Ns(1), Ns(3))));
        assert!(holds(">33 %", Cell::Share(Ns(1), Ns(3))) && !holds(">34", Cell::Share(Ns(1), Ns(3))));
        assert!(!holds("<1", Cell::Unknown) && !holds("<1", Cell::text("0")));
        for text in ["", ">", "<=", ">x", ">1.2.3", ">99999999999999999999", "50"] {
            assert_eq!(Bound::of(text), None, "{text}");
        }
    }

    #[test]
    fn equal_rows_stay_in_their_order_whichever_way_they_are_sorted() {
        let rows: Vec<Figure> = [(5, 0), (7, 1), (5, 2), (7, 3)].map(|(figure, order)| Figure { figure, order }).into();
        let sorted = arranged(&[], rows.clone(), (0, true, ""), &Wanted::default());
        assert_eq!(sorted.iter().map(|row| row.order).collect::<Vec<_>>(), [1, 3, 0, 2]);
        let sorted = arranged(&[], rows, (0, false, ""), &Wanted::default());
        assert_eq!(sorted.iter().map(|row| row.order).collect::<Vec<_>>(), [0, 2, 1, 3]);
    }

    #[test]
    fn a_column_that_is_none_is_told_with_those_there_are() {
        let told = |filter: &str| unknown_column::<Figure>(filter, 1);
        for filter in ["figgure: >10", " figgure :x", "FIGGURE:"] {
            let told = told(filter).unwrap().to_lowercase();
            assert_eq!(told, "there is no column “figgure”, only: figure", "{filter}");
        }
        for filter in ["figure: 1", "Figure:", "c10::add", ":x", "words", ""] {
            assert_eq!(told(filter), None, "{filter}");
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Figure {
        figure: u64,
        order: usize,
    }

    impl Row for Figure {
        const ONE: &'static str = "figure";
        const NAME: &'static str = "figures";
        const COLUMNS: &'static [Column<Self>] =
            &[Column::figures("Figure", "", 10.0, |_, row: Self| Cell::Count(row.figure))];
        const SORT: usize = 0;
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
