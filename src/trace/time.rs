//! Time: integer nanoseconds, never floating point.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// Nanoseconds: a moment as an offset from the trace's start, or a length of time.
///
/// Arithmetic holds at the ends of the range (some 292 years) instead of wrapping or panicking, so that damaged times in
/// a file can make figures meaningless but nothing worse.
///
/// The absolute epoch of a trace's start is kept once, in [`Meta::epoch_ns`](crate::trace::Meta::epoch_ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Ns(pub i64);

impl Ns {
    /// Zero nanoseconds.
    pub const ZERO: Self = Self(0);
    /// Earlier than any moment.
    pub const MIN: Self = Self(i64::MIN);
    /// Later than any moment.
    pub const MAX: Self = Self(i64::MAX);

    /// The number of nanoseconds.
    #[inline]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// A number of microseconds.
    pub const fn from_us(us: i64) -> Self {
        Self(us * 1_000)
    }

    /// Microseconds, for display only.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The sum, held at the ends of the range.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, held at the ends of the range.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The value, or zero when negative.
    #[inline]
    #[must_use]
    pub fn max_zero(self) -> Self {
        Self(self.0.max(0))
    }
}

impl Add for Ns {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Sub for Ns {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Neg for Ns {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl AddAssign for Ns {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Ns {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Ns {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::add)
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

/// A half-open interval `[start, end)` of host or device time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// First nanosecond inside.
    pub start: Ns,
    /// First nanosecond after it.
    pub end: Ns,
}

impl Interval {
    /// The interval from `start` to `end`.
    #[inline]
    pub const fn new(start: Ns, end: Ns) -> Self {
        Self { start, end }
    }

    /// Its length; negative when `end` is before `start`.
    #[inline]
    pub fn len(self) -> Ns {
        self.end - self.start
    }

    /// Whether it holds no nanosecond.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// What both intervals hold; empty when they do not meet.
    #[inline]
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// The length of what both hold, never negative.
    #[inline]
    pub fn overlap(self, other: Self) -> Ns {
        self.intersect(other).len().max_zero()
    }

    /// Whether `moment` lies inside.
    #[inline]
    pub fn contains(self, moment: Ns) -> bool {
        self.start <= moment && moment < self.end
    }
}

/// A moment of Unix time as RFC 3339 text, to the second.
pub fn rfc3339(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_764_000_000, "2025-11-24T16:00:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1_000_000_000), text);
        }
    }
}
