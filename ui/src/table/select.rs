//! Which rows of a table are shown, and in which order.

use std::borrow::Cow;

use super::Row;
use super::filter::Filter;
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
    let filter = Filter::of::<R>(filter);
    if !filter.is_empty() {
        let mut at = 0;
        rows.retain(|&row| {
            at += 1;
            let over = at % ROWS_PER_LOOK == 0 && wanted.is_over();
            !over && filter.holds(docs, row)
        });
    }
    if wanted.is_over() {
        return rows;
    }
    if let Some(column) = R::COLUMNS.get(sort) {
        if column.figures.is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column};

    #[test]
    fn equal_rows_stay_in_their_order_whichever_way_they_are_sorted() {
        let rows: Vec<Figure> = [(5, 0), (7, 1), (5, 2), (7, 3)].map(|(figure, order)| Figure { figure, order }).into();
        let sorted = arranged(&[], rows.clone(), (0, true, ""), &Wanted::default());
        assert_eq!(sorted.iter().map(|row| row.order).collect::<Vec<_>>(), [1, 3, 0, 2]);
        let sorted = arranged(&[], rows, (0, false, ""), &Wanted::default());
        assert_eq!(sorted.iter().map(|row| row.order).collect::<Vec<_>>(), [0, 2, 1, 3]);
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
            &[Column::counts("Figure", "", 10.0, |_, row: Self| Cell::Count(row.figure))];
        const SORT: usize = 0;
    }
}
