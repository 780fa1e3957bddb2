//! Figures as people read them. The exact integers are in the JSON.

pub(super) use crate::analysis::words::{
    counted, fraction, grouped as count, moment, percent, percent_of, time, while_recording,
};

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
