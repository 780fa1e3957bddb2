//! What a gate can demand, as people write it on a command line.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::analysis::FindingId;
use crate::analysis::words::{grouped, percent_of, time};
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

    /// What it allows, with all its digits; `None` of a finding, of which none is.
    pub fn allowed(self) -> Option<String> {
        match self {
            Self::MaxIdle(share) | Self::MaxRecoverable(Amount::Share(share)) => Some(share.to_string()),
            Self::MaxRecoverable(Amount::Time(most)) | Self::MaxBubble(most) => Some(exact(most)),
            Self::Forbid(_) => None,
        }
    }
}

/// A share of a whole: `0.3`, `30%`. What is finer than a billionth is rounded up, so that no share exceeds itself, however
/// many digits it is written with.
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

    /// A part of a whole as a percentage, in enough digits to tell on which side of this share it is.
    pub(super) fn tell(self, part: Ns, whole: Ns) -> String {
        if part < Ns::ZERO || whole <= Ns::ZERO {
            return percent_of(part, whole);
        }
        let (part_of, whole_of) = (i128::from(part.0), i128::from(whole.0));
        let share = i128::from(self.billionths);
        let apart = part_of * i128::from(Self::WHOLE) - whole_of * share;
        if apart == 0 {
            return self.to_string();
        }
        // Further away than a tenth of a per cent, which is what is shown of any share.
        if apart.abs() >= whole_of * i128::from(Self::WHOLE / 1000) {
            return percent_of(part, whole);
        }
        let own = decimals(self.billionths % (Self::WHOLE / 100), 7);
        let digits = (own.max(1)..=MOST_DIGITS).find_map(|digits| {
            let scale = 10_i128.pow(digits);
            let rounded = (part_of * 100 * scale + whole_of / 2) / whole_of;
            let side = (rounded * i128::from(Self::WHOLE / 100)).cmp(&(share * scale));
            let told = side == apart.cmp(&0) && (rounded > 0 || part_of == 0);
            told.then(|| format!("{} %", decimal(rounded.unsigned_abs(), digits)))
        });
        digits.unwrap_or_else(|| percent_of(part, whole))
    }
}

/// The most decimals of a percentage.
const MOST_DIGITS: u32 = 12;

/// How many of so many decimals are needed.
fn decimals(fraction: u64, places: u32) -> u32 {
    (0..places).find(|&fewer| fraction.is_multiple_of(10_u64.pow(places - fewer))).unwrap_or(places)
}

/// A number that is given in units of its last decimal, without noughts at its end.
fn decimal(steps: u128, places: u32) -> String {
    let scale = 10_u128.pow(places);
    let fraction = format!("{:0places$}", steps % scale, places = places as usize);
    let fraction = if places == 0 { "" } else { fraction.trim_end_matches('0') };
    let whole = grouped(u64::try_from(steps / scale).unwrap_or(u64::MAX));
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

/// The unit in which people read a length of time, and how many decimals it has to the nanosecond.
fn unit_of(time: Ns) -> (&'static str, u32) {
    match time.0.unsigned_abs() {
        0..1_000 => ("ns", 0),
        1_000..1_000_000 => ("µs", 3),
        1_000_000..1_000_000_000 => ("ms", 6),
        _ => ("s", 9),
    }
}

/// A length of time with all its digits: `50 µs`, `73.62 µs`. It is not negative.
fn exact(time: Ns) -> String {
    let (unit, places) = unit_of(time);
    format!("{} {unit}", decimal(u128::from(time.0.unsigned_abs()), places))
}

/// A length of time in enough digits to tell on which side of `limit` it is.
pub(super) fn tell_time(found: Ns, limit: Ns) -> String {
    let (ns, most) = (i128::from(found.0), i128::from(limit.0));
    if found == limit {
        return exact(found);
    }
    // What is further away than a hundredth differs in three digits.
    if found < Ns::ZERO || (ns - most).abs() * 100 > most.max(ns) {
        return time(found);
    }
    let (unit, places) = unit_of(limit);
    let own = decimals(limit.0.unsigned_abs() % 10_u64.pow(places), places);
    let digits = (own.max(1).min(places)..=places).find_map(|digits| {
        let step = 10_i128.pow(places - digits);
        let rounded = (ns + step / 2) / step;
        let told = (rounded * step).cmp(&most) == ns.cmp(&most);
        told.then(|| format!("{} {unit}", decimal(rounded.unsigned_abs(), digits)))
    });
    digits.unwrap_or_else(|| time(found))
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
        let (whole, finer) = scaled(number, scale).ok_or_else(|| LimitError::Share(text.to_owned()))?;
        let billionths = whole.saturating_add(u64::from(finer));
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
    let ns = scaled(number, size).and_then(|(ns, _)| i64::try_from(ns).ok());
    ns.map(Ns).ok_or_else(|| LimitError::Time(text.to_owned()))
}

/// A plain decimal number times `scale`, cut to an integer, and whether something was cut; `None` when it is not one or does
/// not fit.
fn scaled(number: &str, scale: u64) -> Option<(u64, bool)> {
    let number = number.trim();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut sum = whole.checked_mul(scale)?;
    let (mut place, mut finer) = (scale, false);
    for digit in fraction.bytes() {
        // Places are powers of ten, so each digit's share is exact until it is less than one.
        place /= 10;
        sum = sum.checked_add(u64::from(digit - b'0') * place)?;
        finer |= place == 0 && digit != b'0';
    }
    Some((sum, finer))
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

    /// As the JSON of a report writes the idle share, which a gate may be given as its limit.
    #[test]
    fn a_share_is_not_exceeded_by_itself_with_all_its_digits() {
        for whole in [3, 7, 9_213_712, 98_765_432_101, 1_000_000_000_000_007] {
            for part in (0..50).map(|step| whole / 50 * step + step % whole).filter(|&part| part <= whole) {
                let limit: Share = (part as f64 / whole as f64).to_string().parse().unwrap();
                assert!(!limit.is_exceeded(Ns(part), Ns(whole)), "{part} of {whole}");
                let more = part + whole / 100_000_000 + 1;
                assert!(limit.is_exceeded(Ns(more), Ns(whole)), "{more} of {whole}, where {part} are allowed");
            }
        }
        assert_eq!("1.0000000001".parse::<Share>(), Err(LimitError::TooMuch("1.0000000001".to_owned())));
        assert_eq!("0.30000000000".parse::<Share>(), "30%".parse());
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

    /// Reads a figure back that was written for people.
    fn read(text: &str) -> f64 {
        let (number, unit) = text.rsplit_once(' ').unwrap();
        let scale = match unit {
            "s" => 1e9,
            "ms" => 1e6,
            "µs" => 1e3,
            _ => 1.0,
        };
        number.replace(',', "").trim_start_matches(['<', '>']).parse::<f64>().unwrap() * scale
    }

    /// What is read must be on the same side of the limit as what is meant.
    #[test]
    fn a_figure_beside_its_limit_reads_as_it_is() {
        for (found, limit, told, allowed) in [
            (59_456, 59_455, "59.456 µs", "59.455 µs"),
            (59_455, 59_455, "59.455 µs", "59.455 µs"),
            (59_456, 50_000, "59.5 µs", "50 µs"),
            (999, 1_000, "0.999 µs", "1 µs"),
            (1_001, 999, "1,001 ns", "999 ns"),
            (50_010, 50_000, "50.01 µs", "50 µs"),
            (0, 50_000, "0 ns", "50 µs"),
        ] {
            let (read, limit) = (tell_time(Ns(found), Ns(limit)), Limit::MaxBubble(Ns(limit)));
            assert_eq!((read, limit.allowed()), (told.to_owned(), Some(allowed.to_owned())));
        }
        for (part, whole, share, told) in [
            (5_050_938, 10_000_000, "50.50937%", "50.50938 %"),
            (5_050_937, 10_000_000, "50.50937%", "50.50937 %"),
            (505, 1_000, "50.48%", "50.5 %"),
            (50_461, 100_000, "50.48%", "50.46 %"),
            (0, 1_000, "0%", "0 %"),
            (3, 1_000_000, "0%", "0.0003 %"),
            (0, 1_000, "0.05%", "0 %"),
            (999_999, 1_000_000, "1", "99.9999 %"),
            (3, 1_000_000, "30%", "<0.1 %"),
        ] {
            assert_eq!(share.parse::<Share>().unwrap().tell(Ns(part), Ns(whole)), told);
        }
        // Figures all round limits of every size.
        for limit in
            [1, 7, 999, 1_000, 59_455, 50_000, 999_999, 1_000_000, 73_620_000, 2_000_000_000, 86_400_000_000_000]
        {
            for by in [0, 1, 2, 9, 10, 49, 51, 333, 5_000, 123_456] {
                for found in [limit - by, limit + by].into_iter().filter(|&found: &i64| found >= 0) {
                    let (told, allowed) = (tell_time(Ns(found), Ns(limit)), exact(Ns(limit)));
                    let order = read(&told).partial_cmp(&read(&allowed)).unwrap();
                    assert_eq!(order, found.cmp(&limit), "{told} of {found}, {allowed} allowed");
                    let share: Share = "50.50937%".parse().unwrap();
                    let whole = Ns(10_000_000_000);
                    let part = Ns(5_050_937_000 + found - limit);
                    let order = read(&share.tell(part, whole)).partial_cmp(&50.50937).unwrap();
                    assert_eq!(order, part.0.cmp(&5_050_937_000), "{}", share.tell(part, whole));
                }
            }
        }
        let whole: Share = "100%".parse().unwrap();
        assert_eq!((whole.tell(Ns::MAX, Ns::MAX), whole.tell(Ns(1), Ns(0))), ("100 %".to_owned(), "0 %".to_owned()));
        assert_eq!(tell_time(Ns::MAX, Ns::MAX), exact(Ns::MAX));
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
