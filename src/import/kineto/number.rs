//! Numbers from decimal text, without floating point.

/// A power of ten beyond which every number is 0 or out of range.
const FAR: i32 = 60;

/// A decimal number of microseconds as nanoseconds, rounded to the nearest and held at the ends of the range. `None` when
/// the text is no number.
pub(super) fn nanoseconds(text: &[u8]) -> Option<i64> {
    decimal(text, 3)
}

/// A decimal number as an integer, rounded and held at the ends of the range.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    decimal(text, 0)
}

/// A decimal number as an unsigned integer, held at the ends of the range.
pub(super) fn unsigned(text: &[u8]) -> Option<u64> {
    if let Some((number, 0)) = plain(text) {
        return Some(number);
    }
    if let Ok(number) = std::str::from_utf8(text).ok()?.parse() {
        return Some(number);
    }
    match integer(text)? {
        i64::MAX if text.iter().all(u8::is_ascii_digit) => Some(u64::MAX),
        number => Some(number.try_into().unwrap_or(0)),
    }
}

/// The digits of a number without sign and exponent that is not long, and how many of them are behind the point.
fn plain(text: &[u8]) -> Option<(u64, usize)> {
    // Eighteen digits fit into 64 bits, signed or not.
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut number = 0;
    let mut point = text.len() - 1;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + u64::from(byte - b'0'),
            b'.' if point == text.len() - 1 && at > 0 => point = at,
            _ => return None,
        }
    }
    Some((number, text.len() - 1 - point))
}

/// `text · 10^shift`, rounded to the nearest and held at the ends of the range.
fn decimal(text: &[u8], shift: u32) -> Option<i64> {
    if let Some((number, fraction)) = plain(text)
        && let Some(zeros) = shift.checked_sub(fraction as u32)
        && let Some(result) = i64::try_from(number).ok().and_then(|number| number.checked_mul(10i64.pow(zeros)))
    {
        return Some(result);
    }
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mut mantissa: u64 = 0;
    // What the mantissa is to be multiplied by, as a power of ten.
    let mut power = shift as i32;
    let (mut any, mut fraction) = (false, false);
    // The first digit that found no place in the mantissa decides its rounding.
    let mut dropped: Option<u8> = None;
    let mut rest = digits;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                let digit = u64::from(byte - b'0');
                let longer = match dropped {
                    None => mantissa.checked_mul(10).and_then(|ten| ten.checked_add(digit)),
                    Some(_) => None,
                };
                match longer {
                    Some(longer) => {
                        mantissa = longer;
                        power -= i32::from(fraction);
                    }
                    None => {
                        dropped.get_or_insert(byte - b'0');
                        power = power.saturating_add(i32::from(!fraction));
                    }
                }
            }
            b'.' if !fraction => fraction = true,
            b'e' | b'E' if any => {
                let exponent = std::str::from_utf8(after).ok()?;
                let far = i64::from(FAR) * 4;
                let exponent: i64 = match exponent.parse() {
                    Ok(exponent) => exponent,
                    Err(_) if exponent.len() > 1 && exponent[1..].bytes().all(|byte| byte.is_ascii_digit()) => {
                        if exponent.starts_with('-') {
                            -far
                        } else {
                            far
                        }
                    }
                    Err(_) => return None,
                };
                power = power.saturating_add(exponent.clamp(-far, far) as i32);
                rest = &[];
                continue;
            }
            _ => return None,
        }
        rest = after;
    }
    if !any {
        return None;
    }
    let magnitude = scale(mantissa, power, dropped);
    Some(if negative { 0i64.saturating_sub_unsigned(magnitude) } else { i64::try_from(magnitude).unwrap_or(i64::MAX) })
}

/// `mantissa · 10^power`, rounded to the nearest, at most `u64::MAX`.
fn scale(mantissa: u64, power: i32, dropped: Option<u8>) -> u64 {
    if mantissa == 0 || power < -FAR {
        return 0;
    }
    if power > FAR {
        return u64::MAX;
    }
    let ten = 10u128.checked_pow(power.unsigned_abs());
    let wide = u128::from(mantissa);
    let result = match (power, ten) {
        (0, _) => Some(wide + u128::from(dropped.is_some_and(|digit| digit >= 5))),
        (1.., Some(ten)) => wide.checked_mul(ten),
        (1.., None) => None,
        (_, Some(ten)) => Some((wide + ten / 2) / ten),
        (_, None) => Some(0),
    };
    result.and_then(|result| u64::try_from(result).ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_become_nanoseconds_to_the_last_digit() {
        for (text, ns) in [
            ("0", 0),
            ("5", 5_000),
            ("-1", -1_000),
            ("1419247332972.313", 1_419_247_332_972_313),
            ("1712195495519689.0", 1_712_195_495_519_689_000),
            ("0.001", 1),
            ("0.0004", 0),
            ("0.0005", 1),
            ("-0.0005", -1),
            ("3.7760000000000000000000000000000001", 3_776),
            ("1751410836.1229999999", 1_751_410_836_123),
            (".5", 500),
            ("5128442878692.898", 5_128_442_878_692_898),
            ("999999999999999.999", 999_999_999_999_999_999),
            ("99999999999999.9999", 100_000_000_000_000_000),
            ("7.", 7_000),
            ("1.5e6", 1_500_000_000),
            ("1.5E+3", 1_500_000),
            ("25e-1", 2_500),
            ("1e-999999999999999999999", 0),
            ("9223372036854775.807", i64::MAX),
            ("-9223372036854775.808", i64::MIN),
            ("9223372036854775.808", i64::MAX),
            ("18446744073709551616", i64::MAX),
            ("99999999999999999999999999999999999999999999999", i64::MAX),
            ("1e999999999999999999999", i64::MAX),
            ("-1e300", i64::MIN),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Some(ns), "{text}");
        }
        for text in ["", "-", ".", "NaN", "1e", "1.2.3", "0x10", "1 2", "--1", "e5", "1e+-3"] {
            assert_eq!(nanoseconds(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn integers_hold_at_the_ends_of_their_range() {
        assert_eq!(unsigned(b"10159970886766084423"), Some(10_159_970_886_766_084_423));
        assert_eq!(unsigned(b"99999999999999999999"), Some(u64::MAX));
        assert_eq!(unsigned(b"-1"), Some(0));
        assert_eq!(unsigned(b"12.0"), Some(12));
        assert_eq!(integer(b"-1"), Some(-1));
        assert_eq!(integer(b"stream"), None);
    }
}
