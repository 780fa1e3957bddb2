//! Figures and counts as people read them: in the sentences of the analysis, in the text reports and in the window. The
//! exact integers are in the JSON.

use super::quality::RECORDING_A_GRAPH_OP;
use crate::trace::Ns;

/// A number with its thousands apart.
pub fn grouped(number: u64) -> String {
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
pub fn counted(number: u64, one: &str, many: &str) -> String {
    match number {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        number => format!("{} {many}", grouped(number)),
    }
}

/// What is true of all times of a recording: that they were taken while recording, and what that adds, with what it comes to
/// for the ops that launches of graphs submitted, and how much of that may be idle time of the GPU. The sentence is not ended.
/// (Measured on an H200: 1.9 to 2.4 µs for a launch, 0.7 to 1.9 for an op of a graph,
/// `docs/measurements/h200-record-overhead.md`.)
pub fn while_recording(graph_ops: u64, graph_launch_idle: Ns) -> String {
    let mut text = "All times were taken while recording, which adds a microsecond or two to each launch".to_owned();
    if graph_ops > 0 {
        let ops = match graph_ops {
            1 => "one".to_owned(),
            ops => format!("{} of them", grouped(ops)),
        };
        let ops_ns = i64::try_from(graph_ops).unwrap_or(i64::MAX).saturating_mul(RECORDING_A_GRAPH_OP.0);
        text += &format!(
            ", and about one for each op of a graph that is launched: with {ops} here some {}",
            time(Ns(ops_ns))
        );
        if graph_launch_idle > Ns::ZERO {
            text += &format!(", of which {} may be idle time of the GPU", time(graph_launch_idle));
        }
    }
    text
}

/// A number of times: `once`, `12 times`.
pub(crate) fn times(number: usize) -> String {
    match number {
        1 => "once".to_owned(),
        number => format!("{} times", grouped(number as u64)),
    }
}

/// A length of time with three significant digits: `850 ns`, `8.60 µs`, `412 µs`, `1.23 ms`, `12.3 s`.
pub fn time(ns: Ns) -> String {
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

/// A moment, exact to the microsecond so that it can be found: `35.139 ms`, `12.345678 s`.
pub fn moment(ns: Ns) -> String {
    let sign = if ns.0 < 0 { "-" } else { "" };
    let us = ns.0.unsigned_abs() / 1_000;
    if us < 1_000_000 {
        format!("{sign}{}.{:03} ms", us / 1_000, us % 1_000)
    } else {
        format!("{sign}{}.{:06} s", grouped(us / 1_000_000), us % 1_000_000)
    }
}

/// A share, rounded: `41.3 %`. What is neither nothing nor all is never shown as such.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if !percent.is_finite() {
        "-".to_owned()
    } else if percent < 0.0 {
        format!("-{}", self::percent(-fraction))
    } else if percent == 0.0 {
        "0 %".to_owned()
    } else if percent == 100.0 {
        "100 %".to_owned()
    } else if percent < 0.05 {
        "<0.1 %".to_owned()
    } else if (99.95..100.0).contains(&percent) {
        ">99.9 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// A share of a length of time, `0 %` of nothing.
pub fn percent_of(part: Ns, whole: Ns) -> String {
    percent(fraction(part, whole))
}

/// A part of a whole, 0 of nothing.
pub(crate) fn fraction(part: Ns, whole: Ns) -> f64 {
    if whole.0 > 0 { part.0 as f64 / whole.0 as f64 } else { 0.0 }
}

/// A number of bytes in binary units, with three significant digits where it is not whole: `1 byte`, `850 bytes`,
/// `4 MiB`, `1.23 GiB`.
pub fn bytes(number: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1 << 10 {
        return counted(number, "byte", "bytes").replace("no bytes", "0 bytes");
    }
    for (power, unit) in units.into_iter().enumerate() {
        let size = 1_u64 << (10 * (power + 1));
        if number.is_multiple_of(size) && number / size < 1 << 10 {
            return format!("{} {unit}", number / size);
        }
        // What rounds to 1024 of a unit is one of the next.
        if number < (size << 10).saturating_sub(size / 2) {
            return format!("{} {unit}", three_digits(number as f64 / size as f64));
        }
    }
    format!("{} EiB", three_digits(number as f64 / (1_u64 << 60) as f64))
}

/// Bytes per second of so many bytes in so much time: `19.9 GB/s`, `3.57 MB/s`; `None` when there is nothing to divide.
pub fn rate(bytes: u64, time: Ns) -> Option<String> {
    if bytes == 0 || time <= Ns::ZERO {
        return None;
    }
    let mut rate = bytes as f64 / time.0 as f64 * 1e9;
    for unit in ["B/s", "kB/s", "MB/s", "GB/s"] {
        if rate < 999.5 {
            return Some(format!("{} {unit}", three_digits(rate)));
        }
        rate /= 1e3;
    }
    Some(format!("{} TB/s", three_digits(rate)))
}

/// A number that is not negative with three significant digits, or whole from 100 on.
fn three_digits(number: f64) -> String {
    let digits = match number {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$}")
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
    fn moments_can_be_found() {
        assert_eq!(moment(Ns(0)), "0.000 ms");
        assert_eq!(moment(Ns(35_139_999)), "35.139 ms");
        assert_eq!(moment(Ns(12_345_678_901)), "12.345678 s");
        assert_eq!(moment(Ns(-1_000)), "-0.001 ms");
    }

    #[test]
    fn shares_are_rounded_and_never_to_nothing_or_all() {
        for (fraction, text) in [
            (0.0, "0 %"),
            (0.0001, "<0.1 %"),
            (0.413, "41.3 %"),
            (0.998_96, "99.9 %"),
            (0.999_51, ">99.9 %"),
            (1.0, "100 %"),
            (1.5, "150.0 %"),
            (-0.000_1, "-<0.1 %"),
            (-0.25, "-25.0 %"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(percent(fraction), text);
        }
        assert_eq!(percent_of(Ns(1), Ns(0)), "0 %");
        // Two thirds are nearer to 66.7 % than to 66.6 %.
        assert_eq!(percent_of(Ns(2), Ns(3)), "66.7 %");
    }

    #[test]
    fn bytes_and_rates_have_three_digits_and_a_fitting_unit() {
        for (number, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (4, "4 bytes"),
            (1_023, "1,023 bytes"),
            (1_024, "1 KiB"),
            (1_536, "1.50 KiB"),
            (49_152, "48 KiB"),
            (1_048_575, "1.00 MiB"),
            (4 << 20, "4 MiB"),
            (1_234_567_890, "1.15 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(number), text, "{number}");
        }
        for (bytes, ns, text) in [
            (4, 1_120, "3.57 MB/s"),
            (1_000, 500, "2.00 GB/s"),
            (1_258_291_200, 63_200_000, "19.9 GB/s"),
            (1, 1_000_000_000, "1.00 B/s"),
            (u64::MAX, 1, "18446744073709552 TB/s"),
        ] {
            assert_eq!(rate(bytes, Ns(ns)).as_deref(), Some(text));
        }
        assert_eq!((rate(0, Ns(1)), rate(1, Ns(0)), rate(1, Ns(-1))), (None, None, None));
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

    #[test]
    fn what_recording_adds_is_told_for_each_op_of_a_graph_too() {
        let alone = "All times were taken while recording, which adds a microsecond or two to each launch";
        assert_eq!(while_recording(0, Ns::ZERO), alone);
        for (ops, idle, said) in [
            (1, 0, "one here some 1.00 µs"),
            (4_000, 0, "4,000 of them here some 4.00 ms"),
            (4_000, 2_500_000, "4,000 of them here some 4.00 ms, of which 2.50 ms may be idle time of the GPU"),
        ] {
            let whole = format!("{alone}, and about one for each op of a graph that is launched: with {said}");
            assert_eq!(while_recording(ops, Ns(idle)), whole);
        }
        assert!(while_recording(u64::MAX, Ns::ZERO).contains("here some"));
    }
}
