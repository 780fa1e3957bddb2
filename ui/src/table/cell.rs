//! What the cells of tables say: to people, to programs, and to what sorts and filters.

use std::borrow::Cow;

use bubblescope::trace::Ns;

use crate::format;

/// What figures of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Numbers of things.
    Count,
    /// Lengths of time.
    Time,
    /// Moments of the trace.
    Moment,
    /// Parts of a whole.
    Share,
}

impl Unit {
    pub(super) const ALL: [Self; 4] = [Self::Count, Self::Time, Self::Moment, Self::Share];

    /// What a figure is of when nobody says so: moments stand in milliseconds on the ruler and in tables; most lengths
    /// that matter here are some microseconds.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Time => "µs",
            Self::Moment => "ms",
            Self::Share => "%",
        }
    }

    /// What it can be written in.
    pub(super) const fn units(self) -> &'static [&'static str] {
        match self {
            Self::Count => &[],
            Self::Time | Self::Moment => &["ns", "µs", "us", "ms", "s"],
            Self::Share => &["%"],
        }
    }

    /// Whether it can be written in this, or in nothing.
    pub(super) fn has(self, unit: &str) -> bool {
        unit.is_empty() || self.size(unit).is_some()
    }

    /// How much of [`Cell::figure`] one of a unit is: of times nanoseconds, of shares millionths.
    pub(super) fn size(self, unit: &str) -> Option<i128> {
        match (self, unit) {
            (Self::Count, "") => Some(1),
            (Self::Time | Self::Moment, "ns") => Some(1),
            // Both letters that look like a small m.
            (Self::Time | Self::Moment, "us" | "µs" | "μs") => Some(1_000),
            (Self::Time | Self::Moment, "ms") => Some(1_000_000),
            (Self::Time | Self::Moment, "s") => Some(1_000_000_000),
            (Self::Share, "%") => Some(10_000),
            _ => None,
        }
    }
}

/// What a cell says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A length of time.
    Duration(Ns),
    /// A moment of the trace.
    Moment(Ns),
    /// A number of things.
    Count(u64),
    /// A part of a whole.
    Share(Ns, Ns),
    /// A length of time that is the least to expect.
    AtLeast(Ns),
    /// A part of a whole that is the least to expect.
    ShareAtLeast(Ns, Ns),
    /// Nothing is known.
    Unknown,
}

impl<'a> Cell<'a> {
    /// Words.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// A length of time, if it is known.
    pub fn maybe(duration: Option<Ns>) -> Self {
        duration.map_or(Self::Unknown, Self::Duration)
    }

    /// As people read it.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Duration(ns) => Cow::Owned(format::duration(ns.0)),
            Self::Moment(ns) => Cow::Owned(format::moment(ns.0)),
            Self::Count(count) => Cow::Owned(format::count(*count)),
            Self::Share(part, whole) => Cow::Owned(format::percent(part.0, whole.0)),
            Self::AtLeast(ns) => Cow::Owned(format!("at least {}", format::duration(ns.0))),
            Self::ShareAtLeast(part, whole) => Cow::Owned(format!("at least {}", format::percent(part.0, whole.0))),
            Self::Unknown => Cow::Borrowed("–"),
        }
    }

    /// The same, taken out.
    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            other => Cow::Owned(other.shown().into_owned()),
        }
    }

    /// What its figure is, if it holds one.
    pub(super) fn unit(&self) -> Option<Unit> {
        match self {
            Self::Duration(_) | Self::AtLeast(_) => Some(Unit::Time),
            Self::Moment(_) => Some(Unit::Moment),
            Self::Count(_) => Some(Unit::Count),
            Self::Share(_, whole) | Self::ShareAtLeast(_, whole) if whole.0 > 0 => Some(Unit::Share),
            Self::Text(_) | Self::Share(..) | Self::ShareAtLeast(..) | Self::Unknown => None,
        }
    }

    /// What it sorts by among figures; what is unknown is least.
    pub(super) fn figure(&self) -> i64 {
        match self {
            Self::Duration(ns) | Self::Moment(ns) | Self::AtLeast(ns) => ns.0,
            Self::Count(count) => i64::try_from(*count).unwrap_or(i64::MAX),
            Self::Share(part, whole) | Self::ShareAtLeast(part, whole) if whole.0 > 0 => {
                (i128::from(part.0) * 1_000_000 / i128::from(whole.0)).try_into().unwrap_or(i64::MAX)
            }
            Self::Text(_) | Self::Share(..) | Self::ShareAtLeast(..) | Self::Unknown => i64::MIN,
        }
    }

    /// As a program reads it: nanoseconds, plain numbers, shares from 0 to 1, quoted words.
    pub(super) fn csv(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            Self::Duration(_) | Self::Moment(_) | Self::AtLeast(_) | Self::Count(_) => self.figure().to_string(),
            Self::Share(_, whole) | Self::ShareAtLeast(_, whole) if whole.0 > 0 => {
                format!("{:.6}", self.figure() as f64 / 1e6)
            }
            Self::Share(..) | Self::ShareAtLeast(..) | Self::Unknown => String::new(),
        }
    }

    /// Whether it is the least to expect, as a program reads it.
    pub(super) fn csv_at_least(&self) -> &'static str {
        match self {
            Self::AtLeast(_) | Self::ShareAtLeast(..) => "true",
            Self::Unknown => "",
            _ => "false",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_exact_for_programs_and_readable_for_people() {
        for (cell, shown, csv) in [
            (Cell::Duration(Ns(1_234_567)), "1.23 ms", "1234567"),
            (Cell::Moment(Ns(5)), "0.000 ms", "5"),
            (Cell::Count(1_234), "1,234", "1234"),
            (Cell::Share(Ns(1), Ns(3)), "33.3 %", "0.333333"),
            (Cell::Share(Ns(1), Ns(0)), "–", ""),
            (Cell::AtLeast(Ns(1_234_567)), "at least 1.23 ms", "1234567"),
            (Cell::ShareAtLeast(Ns(1), Ns(3)), "at least 33.3 %", "0.333333"),
            (Cell::Unknown, "–", ""),
        ] {
            assert_eq!(cell.shown(), shown);
            assert_eq!(cell.csv(), csv);
        }
        assert!(Cell::Unknown.figure() < Cell::Duration(Ns(-1)).figure());
    }
}
