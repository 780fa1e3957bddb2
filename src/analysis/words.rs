//! Figures and counts as people read them, in the sentences of the analysis and in the text reports. The exact integers
//! are in the JSON.

use crate::trace::Ns;

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with the word for what it counts: `1 bubble`, `2 bubbles`, `no bubbles`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        number => format!("{} {many}", grouped(number)),
    }
}

/// A number of times: `once`, `12 times`.
pub(crate) fn times(number: usize) -> String {
    match number {
        1 => "once".to_owned(),
        number => format!("{} times", grouped(number as u64)),
    }
}

/// A length of time with three significant digits: `850 ns`, `8.60 µs`, `412 µs`, `1.23 ms`, `12.3 s`.
pub(crate) fn time(ns: Ns) -> String {
    let sign = if ns.0 < 0 { "-" } else { "" };
    let ns = ns.0.unsigned_abs();
    if ns < 1_000 {
        return format!("{sign}{ns} ns");
    }
    for (unit, size) in [("µs", 1_000u64), ("ms", 1_000_000), ("s", 1_000_000_000)] {
        for (digits, step) in [(2, size / 100), (1, size / 10), (0, size)] {
            let steps = ns.saturating_add(step / 2) / step;
            if steps < 1_000 {
                let scale = 10u64.pow(digits);
                return match digits {
                    0 => format!("{sign}{steps} {unit}"),
                    digits => {
                        format!("{sign}{}.{:0width$} {unit}", steps / scale, steps % scale, width = digits as usize)
                    }
                };
            }
        }
    }
    format!("{sign}{} s", grouped(ns.saturating_add(500_000_000) / 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_three_digits_across_every_edge() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_994, "9.99 µs"),
            (9_995, "10.0 µs"),
            (99_949, "99.9 µs"),
            (99_950, "100 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_234_567, "1.23 ms"),
            (2_450_120_000, "2.45 s"),
            (59_999_999_999, "60.0 s"),
            (999_499_999_999, "999 s"),
            (1_234_567_890_123, "1,235 s"),
            (-8_600, "-8.60 µs"),
        ] {
            assert_eq!(time(Ns(ns)), text, "{ns}");
        }
        assert_eq!(time(Ns::MIN), "-9,223,372,037 s");
    }

    #[test]
    fn counts_and_their_words() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(0, "bubble", "bubbles"), "no bubbles");
        assert_eq!(counted(1, "bubble", "bubbles"), "1 bubble");
        assert_eq!(counted(2_000, "bubble", "bubbles"), "2,000 bubbles");
        assert_eq!((times(1), times(2_000)), ("once".to_owned(), "2,000 times".to_owned()));
    }
}
