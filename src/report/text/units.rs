//! Figures as people read them. The exact integers are in the JSON.

pub(super) use crate::analysis::words::{counted, grouped as count, time};
use crate::trace::Ns;

/// A moment, exact to the microsecond so that it can be found: `35.139 ms`, `12.345678 s`.
pub(super) fn moment(ns: Ns) -> String {
    let sign = if ns.0 < 0 { "-" } else { "" };
    let us = ns.0.unsigned_abs() / 1_000;
    if us < 1_000_000 {
        format!("{sign}{}.{:03} ms", us / 1_000, us % 1_000)
    } else {
        format!("{sign}{}.{:06} s", count(us / 1_000_000), us % 1_000_000)
    }
}

/// A share: `41.3 %`. What is neither nothing nor all is never shown as such.
pub(super) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if !percent.is_finite() {
        "-".to_owned()
    } else if percent == 0.0 {
        "0 %".to_owned()
    } else if percent == 100.0 {
        "100 %".to_owned()
    } else if percent > 0.0 && percent < 0.05 {
        "<0.1 %".to_owned()
    } else if (99.95..100.0).contains(&percent) {
        ">99.9 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// A share of a length of time.
pub(super) fn percent_of(part: Ns, whole: Ns) -> String {
    percent(fraction(part, whole))
}

/// A part of a whole, 0 of nothing.
pub(super) fn fraction(part: Ns, whole: Ns) -> f64 {
    if whole.0 > 0 { part.0 as f64 / whole.0 as f64 } else { 0.0 }
}

/// A factor with three significant digits: `1.00×`, `12.3×`, `145×`.
pub(super) fn factor(ratio: f64) -> String {
    if !ratio.is_finite() {
        "-".to_owned()
    } else if ratio < 9.995 {
        format!("{ratio:.2}×")
    } else if ratio < 99.95 {
        format!("{ratio:.1}×")
    } else {
        format!("{ratio:.0}×")
    }
}

/// A number per iteration: whole when it is, else with as many digits as tell something.
pub(super) fn per_iteration(number: f64) -> String {
    if !number.is_finite() {
        "-".to_owned()
    } else if (number - number.round()).abs() < 0.005 && (number == 0.0 || number >= 0.5) {
        count(number.round() as u64)
    } else if number < 0.01 {
        "<0.01".to_owned()
    } else {
        format!("{number:.2}")
    }
}

/// A bar of `width` cells, filled to `fraction` in eighths.
pub(super) fn bar(fraction: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fraction.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    text.push_str(EIGHTHS[eighths % 8]);
    if text.is_empty() && fraction > 0.0 {
        text.push('▏');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_can_be_found() {
        assert_eq!(moment(Ns(0)), "0.000 ms");
        assert_eq!(moment(Ns(35_139_999)), "35.139 ms");
        assert_eq!(moment(Ns(12_345_678_901)), "12.345678 s");
        assert_eq!(moment(Ns(-1_000)), "-0.001 ms");
    }

    #[test]
    fn shares_never_round_to_nothing_or_all() {
        for (fraction, text) in
            [(0.0, "0 %"), (0.0001, "<0.1 %"), (0.413, "41.3 %"), (0.99999, ">99.9 %"), (1.0, "100 %"), (f64::NAN, "-")]
        {
            assert_eq!(percent(fraction), text);
        }
        assert_eq!(percent_of(Ns(1), Ns(0)), "0 %");
    }

    #[test]
    fn factors_and_rates() {
        assert_eq!(factor(1.0), "1.00×");
        assert_eq!(factor(9.996), "10.0×");
        assert_eq!(factor(145.2), "145×");
        assert_eq!(per_iteration(2.0), "2");
        assert_eq!(per_iteration(0.126), "0.13");
        assert_eq!(per_iteration(0.001), "<0.01");
        assert_eq!(per_iteration(0.0), "0");
    }

    #[test]
    fn bars_show_every_part_that_is_there() {
        assert_eq!(bar(0.0, 8), "");
        assert_eq!(bar(0.0001, 8), "▏");
        assert_eq!(bar(0.5, 8), "████");
        assert_eq!(bar(2.0, 4), "████");
    }
}
