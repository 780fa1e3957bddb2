//! Times, sizes and names as people read them.

use bubblescope::report::demangle;

/// A length of time with a unit that fits and about four digits: `1.234 ms`.
pub fn duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let (unit, name) = match ns {
        0..1_000 => return format!("{sign}{ns} ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let digits: u32 = match ns / unit {
        0..10 => 3,
        10..100 => 2,
        _ => 1,
    };
    // Integer rounding, so that no digit depends on floating point.
    let scale = 10_u64.pow(digits);
    let scaled = (u128::from(ns) * u128::from(scale) + u128::from(unit) / 2) / u128::from(unit);
    let (whole, fraction) = (scaled / u128::from(scale), scaled % u128::from(scale));
    format!("{sign}{whole}.{fraction:0width$} {name}", width = digits as usize)
}

/// A moment relative to the trace's start, to the nanosecond: `1.234 567 890 s`.
pub fn moment(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{sign}{seconds}.{:03} {:03} {:03} s", rest / 1_000_000, rest / 1_000 % 1_000, rest % 1_000)
}

/// A share as a percentage; a share that is not quite nothing or all does not read as `0 %` or `100 %`.
pub fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 {
        return "–".to_owned();
    }
    let permille = i128::from(part) * 1_000 / i128::from(whole);
    match permille {
        0 if part > 0 => "<0.1 %".to_owned(),
        1_000 if part == whole => "100 %".to_owned(),
        _ => format!("{}.{} %", permille / 10, (permille % 10).abs()),
    }
}

/// A number with thin groups of three digits: `1 234 567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// How many there are of something: `1 call`, `1 234 calls`.
pub fn things(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A number of bytes in binary units.
pub fn bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// Bytes per second from bytes and nanoseconds.
pub fn throughput(bytes: u64, ns: i64) -> Option<String> {
    (bytes > 0 && ns > 0).then(|| format!("{:.2} GB/s", bytes as f64 / ns as f64))
}

/// A readable name without return type, namespaces, template arguments and parameters, to fit into a box.
pub fn short(name: &str) -> String {
    let full = demangle(name).replace("(anonymous namespace)::", "");
    let mut plain = String::new();
    let mut depth = 0_u32;
    let mut function = false;
    for letter in full.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => {
                // `Memcpy DtoH (Device -> Pinned)` is a remark, `f(int)` are parameters.
                function = !plain.ends_with(' ');
                break;
            }
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let mut short = plain.trim();
    if function {
        short = short.rsplit(' ').next().unwrap_or(short);
        short = short.rsplit("::").next().unwrap_or(short);
    }
    if short.is_empty() { full } else { short.to_owned() }
}

/// Steps of a ruler: at least `least` nanoseconds, a 1, 2 or 5 of a power of ten.
pub fn ruler_step(least: f64) -> i64 {
    let mut step = 1_i64;
    for factor in [2, 5, 10].into_iter().cycle() {
        let base = 10_i64.pow(step.ilog10());
        if step as f64 >= least || step > i64::MAX / 20 {
            break;
        }
        step = base * factor;
    }
    step
}

/// A tick's label: as many digits as the step between ticks needs.
pub fn tick(time: i64, step: i64) -> String {
    let (unit, name) = match step {
        ..1_000 if time.abs() < 1_000_000 => (1, "ns"),
        ..1_000_000 if time.abs() < 1_000_000_000 => (1_000, "µs"),
        ..1_000_000_000 if time.abs() < 60_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (time / unit, (time % unit).abs());
    if rest == 0 {
        return format!("{}{} {name}", if time < 0 && whole == 0 { "-" } else { "" }, grouped(whole));
    }
    let digits = format!("{rest:0width$}", width = unit.ilog10() as usize);
    let sign = if time < 0 && whole == 0 { "-" } else { "" };
    format!("{sign}{}.{} {name}", grouped(whole), digits.trim_end_matches('0'))
}

fn grouped(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", count(number.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_four_digits_and_a_fitting_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.000 µs"),
            (1_234_567, "1.235 ms"),
            (12_345_678, "12.35 ms"),
            (999_999_999, "1000.0 ms"),
            (61_000_000_000, "61.00 s"),
            (-1_500, "-1.500 µs"),
            (i64::MIN, "-9223372036.9 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn moments_show_every_nanosecond() {
        assert_eq!(moment(1_234_567_890), "1.234 567 890 s");
        assert_eq!(moment(-5), "-0.000 000 005 s");
    }

    #[test]
    fn shares_near_the_ends_are_not_rounded_away() {
        assert_eq!(percent(1, 1_000_000), "<0.1 %");
        assert_eq!(percent(999_999, 1_000_000), "99.9 %");
        assert_eq!(percent(5, 5), "100 %");
        assert_eq!(percent(0, 5), "0.0 %");
        assert_eq!(percent(1, 0), "–");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!((things(1, "copy", "copies"), things(0, "op", "ops")), ("1 copy".to_owned(), "0 ops".to_owned()));
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(throughput(1_000, 500).as_deref(), Some("2.00 GB/s"));
    }

    #[test]
    fn short_names_fit_boxes() {
        for (name, text) in [
            ("_Z5saxpyfPKfPf", "saxpy"),
            (
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, float)",
                "vectorized_elementwise_kernel",
            ),
            ("void (anonymous namespace)::softmax_warp_forward<float, 5>(float*, int)", "softmax_warp_forward"),
            ("sm80_xmma_gemm_f32f32_tn_n", "sm80_xmma_gemm_f32f32_tn_n"),
            ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH"),
            ("aten::item", "aten::item"),
            (
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            ),
            ("", ""),
        ] {
            assert_eq!(short(name), text, "{name}");
        }
    }

    #[test]
    fn ruler_steps_are_round_and_wide_enough() {
        for (least, step) in [(0.1, 1), (1.5, 2), (3.0, 5), (7.0, 10), (130.0, 200), (2.1e9, 5_000_000_000)] {
            assert_eq!(ruler_step(least), step);
        }
        assert!(ruler_step(f64::MAX) > 0);
    }

    #[test]
    fn ticks_need_no_more_digits_than_their_step() {
        for (time, step, text) in [
            (0, 1_000, "0 µs"),
            (1_500, 500, "1 500 ns"),
            (1_500_000, 500_000, "1 500 µs"),
            (1_234_500_000, 100_000, "1 234.5 ms"),
            (120_500_000_000, 500_000_000, "120.5 s"),
            (-500_000_000, 1_000_000_000, "-0.5 s"),
        ] {
            assert_eq!(tick(time, step), text);
        }
    }
}
