//! A comparison as a table with one row for each variant.

use std::io::{self, Write};

use super::csv::{number, text};
use crate::analysis::Cause;
use crate::report::Compare;
use crate::report::compare::{Basis, PerIteration, Wall};

/// The columns before those of the root causes. Times are nanoseconds per iteration; what was not measured is empty. Of
/// several marks in one cell, each ends with a semicolon but the last.
const COLUMNS: [&str; 19] = [
    "variant",
    "path",
    "iterations",
    "unprofiled_ns",
    "unprofiled_low_ns",
    "unprofiled_high_ns",
    "profiled_ns",
    "profiled_low_ns",
    "profiled_high_ns",
    "speedup",
    "speedup_low",
    "speedup_high",
    "speedup_basis",
    "busy_ns",
    "bubble_ns",
    "sync_calls",
    "idle_reliable",
    "unusable",
    "marks",
];

/// Writes the variants of a comparison, a row each, in the names of its JSON contract; `bubble_<cause>_ns` for each root
/// cause, which sum to `bubble_ns`.
///
/// # Errors
/// When `out` cannot be written.
pub fn comparison_csv(compare: &Compare, out: &mut impl Write) -> io::Result<()> {
    let mut line = COLUMNS.join(",");
    for cause in Cause::ALL {
        line.push_str(&format!(",bubble_{}_ns", cause.as_str().replace('-', "_")));
    }
    writeln!(out, "{line}")?;
    for variant in &compare.variants {
        line.clear();
        text(&mut line, &variant.variant);
        text(&mut line, variant.path.as_deref().unwrap_or_default());
        number(&mut line, variant.unusable.is_none().then_some(variant.iterations));
        wall(&mut line, variant.unprofiled);
        wall(&mut line, variant.profiled);
        let speedup = variant.speedup;
        number(&mut line, speedup.map(|speedup| speedup.ratio));
        number(&mut line, speedup.and_then(|speedup| speedup.low));
        number(&mut line, speedup.and_then(|speedup| speedup.high));
        let basis = speedup.map(|speedup| match speedup.basis {
            Basis::Unprofiled => "unprofiled",
            Basis::Profiled => "profiled",
        });
        text(&mut line, basis.unwrap_or_default());
        recorded(&mut line, variant.recorded.as_ref());
        text(&mut line, variant.unusable.as_deref().unwrap_or_default());
        text(&mut line, &variant.marks.join("; "));
        bubbles(&mut line, variant.recorded.as_ref());
        // Every cell begins with the comma that ends the one before.
        writeln!(out, "{}", line.strip_prefix(',').unwrap_or(&line))?;
    }
    Ok(())
}

fn wall(line: &mut String, wall: Option<Wall>) {
    let interval = wall.and_then(|wall| wall.interval);
    number(line, wall.map(|wall| wall.median_ns.0));
    number(line, interval.map(|interval| interval.low_ns.0));
    number(line, interval.map(|interval| interval.high_ns.0));
}

fn recorded(line: &mut String, recorded: Option<&PerIteration>) {
    number(line, recorded.map(|recorded| recorded.busy_ns.0));
    number(line, recorded.map(|recorded| recorded.bubble_ns.0));
    number(line, recorded.map(|recorded| recorded.sync_calls));
    number(line, recorded.map(|recorded| recorded.idle_reliable));
}

fn bubbles(line: &mut String, recorded: Option<&PerIteration>) {
    for cause in Cause::ALL {
        let ns = recorded.map(|recorded| recorded.bubble_ns_by_root.get(cause).copied().unwrap_or_default());
        number(line, ns.map(|ns| ns.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn a_comparison_is_a_table_whose_cells_fit_their_columns() {
        let mut compare = samples::compared();
        compare.variants[0].variant = "a, \"b\"".to_owned();
        compare.variants[1].marks = vec!["it was cut".to_owned(), "other work".to_owned()];
        compare.variants[1].unusable = Some("for a reason".to_owned());
        let mut csv = Vec::new();
        comparison_csv(&compare, &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + compare.variants.len());
        let columns: Vec<&str> = lines[0].split(',').collect();
        assert!(lines[1].starts_with("\"a, \"\"b\"\"\","), "{}", lines[1]);
        for (line, variant) in lines[1..].iter().zip(&compare.variants).skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells.len(), columns.len(), "{line}");
            let cell = |name: &str| cells[columns.iter().position(|column| *column == name).unwrap()];
            let unprofiled = variant.unprofiled.map(|wall| wall.median_ns.0.to_string()).unwrap_or_default();
            assert_eq!((cell("variant"), cell("unprofiled_ns")), (variant.variant.as_str(), unprofiled.as_str()));
            assert_eq!(cell("marks"), variant.marks.join("; "));
            assert_eq!(cell("unusable"), variant.unusable.as_deref().unwrap_or_default());
            let Some(recorded) = &variant.recorded else { continue };
            assert_eq!(cell("bubble_ns"), recorded.bubble_ns.0.to_string());
            let causes =
                columns.iter().zip(&cells).filter(|(name, _)| name.starts_with("bubble_") && **name != "bubble_ns");
            let sum: i64 = causes.map(|(_, cell)| cell.parse::<i64>().unwrap()).sum();
            assert_eq!(sum, recorded.bubble_ns.0);
        }
    }
}
