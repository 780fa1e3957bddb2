//! Figures in the sentences of findings and of what a report is worth.

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

/// A length of time, in words.
pub(crate) fn micros(time: Ns) -> String {
    match time.0 {
        ..1_000 => format!("{} ns", time.0),
        1_000..1_000_000 => format!("{:.1} µs", time.as_us()),
        1_000_000..1_000_000_000 => format!("{:.2} ms", time.as_us() / 1e3),
        _ => format!("{:.2} s", time.as_us() / 1e6),
    }
}
