//! What a gate can demand, as people write it on a command line.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::analysis::FindingId;
use crate::trace::Ns;

/// Why a limit cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// Not a share of a whole.
    #[error("`{0}` is not a share: write 0.3 or 30%")]
    Share(String),
    /// A share above everything.
    #[error("`{0}` is more than the whole: write 30% or 0.3 for thirty per cent")]
    TooMuch(String),
    /// Not a length of time.
    #[error("`{0}` is not a length of time: write 800ns, 50us, 1.5ms or 2s")]
    Time(String),
    /// Neither of them.
    #[error("`{0}` is neither a share nor a length of time: write 5%, 0.05 or 2ms")]
    Amount(String),
}

/// One demand on a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No device may be idle for more of its span.
    MaxIdle(Share),
    /// The changes that were replayed may not gain more together.
    MaxRecoverable(Amount),
    /// No bubble may be longer.
    MaxBubble(Ns),
    /// There may be no such finding.
    Forbid(FindingId),
}

impl Limit {
    /// What it limits, in a word or two.
    pub fn what(self) -> String {
        match self {
            Self::MaxIdle(_) => "idle time".to_owned(),
            Self::MaxRecoverable(_) => "what is recoverable".to_owned(),
            Self::MaxBubble(_) => "the longest bubble".to_owned(),
            Self::Forbid(finding) => format!("finding {finding}"),
        }
    }
}

/// A share of a whole, exact to a billionth: `0.3`, `30%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    billionths: u64,
}

impl Share {
    /// Parts of a share that make the whole.
    const WHOLE: u64 = 1_000_000_000;

    /// Whether `part` is more than this share of `whole`.
    pub fn is_exceeded(self, part: Ns, whole: Ns) -> bool {
        i128::from(part.0) * i128::from(Self::WHOLE) > i128::from(whole.0) * i128::from(self.billionths)
    }
}

impl fmt::Display for Share {
    /// As a percentage with the digits that it has: `30 %`, `0.05 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.billionths / 10_000_000, self.billionths % 10_000_000);
        if rest == 0 {
            write!(f, "{whole} %")
        } else {
            write!(f, "{whole}.{} %", format!("{rest:07}").trim_end_matches('0'))
        }
    }
}

impl FromStr for Share {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(number) => (number, Self::WHOLE / 100),
            None => (text, Self::WHOLE),
        };
        let billionths = scaled(number, scale).ok_or_else(|| LimitError::Share(text.to_owned()))?;
        if billionths > Self::WHOLE {
            return Err(LimitError::TooMuch(text.to_owned()));
        }
        Ok(Self { billionths })
    }
}

/// A share of the span or a length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A share of the span.
    Share(Share),
    /// A length of time.
    Time(Ns),
}

impl FromStr for Amount {
    type Err = LimitError;

    /// Without a unit it is a share.
    fn from_str(text: &str) -> Result<Self, LimitError> {
        match text.parse() {
            Ok(share) => Ok(Self::Share(share)),
            Err(error @ LimitError::TooMuch(_)) => Err(error),
            Err(_) => parse_time(text).map(Self::Time).map_err(|_| LimitError::Amount(text.to_owned())),
        }
    }
}

/// Reads a length of time: `800ns`, `50us`, `50 µs`, `1.5ms`, `2s`. Without a unit it is nanoseconds.
///
/// # Errors
/// When it is none, is negative, or does not fit.
pub fn parse_time(text: &str) -> Result<Ns, LimitError> {
    const UNITS: [(&str, u64); 6] = [
        ("ns", 1),
        ("us", 1_000),
        ("\u{b5}s", 1_000),  // the micro sign
        ("\u{3bc}s", 1_000), // the Greek letter
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let trimmed = text.trim();
    let unit = UNITS.iter().find_map(|&(unit, size)| Some((trimmed.strip_suffix(unit)?, size)));
    let (number, size) = unit.unwrap_or((trimmed, 1));
    let ns = scaled(number, size).and_then(|ns| i64::try_from(ns).ok());
    ns.map(Ns).ok_or_else(|| LimitError::Time(text.to_owned()))
}

/// A plain decimal number times `scale`, cut to an integer; `None` when it is not one or does not fit.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let number = number.trim();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut sum = whole.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        // Places are powers of ten, so each digit's share is exact until it is less than one.
        place /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * place)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_exactly() {
        for (text, shown) in
            [("0.3", "30 %"), ("30%", "30 %"), (" 2.5 % ", "2.5 %"), ("1", "100 %"), ("0", "0 %"), (".05%", "0.05 %")]
        {
            assert_eq!(text.parse::<Share>().unwrap().to_string(), shown, "{text}");
        }
        for text in ["", "%", "-1%", "1e-3", "half", "0.3.1", "30 ms"] {
            assert_eq!(text.parse::<Share>(), Err(LimitError::Share(text.to_owned())), "{text}");
        }
        assert_eq!("30".parse::<Share>(), Err(LimitError::TooMuch("30".to_owned())));
        assert_eq!("101%".parse::<Share>(), Err(LimitError::TooMuch("101%".to_owned())));
    }

    /// 0.29 × 100 is less than 29 in floating point.
    #[test]
    fn a_share_is_not_exceeded_by_itself() {
        for percent in 0..=100 {
            let share: Share = format!("{percent}%").parse().unwrap();
            assert!(!share.is_exceeded(Ns(percent), Ns(100)), "{percent}");
            assert!(share.is_exceeded(Ns(percent * 1_000_000_000 + 1), Ns(100_000_000_000)), "{percent}");
        }
        assert!(!"100%".parse::<Share>().unwrap().is_exceeded(Ns::MAX, Ns::MAX));
    }

    #[test]
    fn times_are_read_with_their_units() {
        for (text, ns) in [
            ("500", 500),
            ("800ns", 800),
            ("50us", 50_000),
            ("50 µs", 50_000),
            ("50μs", 50_000),
            ("1.5ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("0.0000000019s", 1),
        ] {
            assert_eq!(parse_time(text), Ok(Ns(ns)), "{text}");
        }
        for text in ["", "ms", "-1ms", "1 h", "1e3", "99999999999s"] {
            assert_eq!(parse_time(text), Err(LimitError::Time(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn an_amount_is_a_share_unless_it_has_a_unit_of_time() {
        assert_eq!("5%".parse(), Ok(Amount::Share("0.05".parse().unwrap())));
        assert_eq!("0.05".parse(), Ok(Amount::Share("5%".parse().unwrap())));
        assert_eq!("2ms".parse(), Ok(Amount::Time(Ns(2_000_000))));
        assert_eq!("5".parse::<Amount>(), Err(LimitError::TooMuch("5".to_owned())));
        assert_eq!("lots".parse::<Amount>(), Err(LimitError::Amount("lots".to_owned())));
    }
}
