//! Times, sizes and names as people read them.

use bubblescope::report::{demangle, text};
use bubblescope::trace::Ns;

/// A length of time as the reports write it: `1.23 ms`.
pub fn duration(ns: i64) -> String {
    text::time(Ns(ns))
}

/// A moment relative to the trace's start as the reports write it: `35.139 ms`, `12.345678 s`.
pub fn moment(ns: i64) -> String {
    text::moment(Ns(ns))
}

/// A share as a percentage, `–` of nothing; what is neither nothing nor all does not read as `0 %` or `100 %`.
pub fn percent(part: i64, whole: i64) -> String {
    if whole <= 0 { "–".to_owned() } else { text::percent_of(Ns(part), Ns(whole)) }
}

/// A number with its thousands apart: `1,234,567`.
pub fn count(number: u64) -> String {
    text::grouped(number)
}

/// How many there are of something: `1 call`, `1,234 calls`.
pub fn things(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A number of bytes in binary units: `4 bytes`, `1.50 KiB`.
pub fn bytes(bytes: u64) -> String {
    text::bytes(bytes)
}

/// Bytes per second from bytes and nanoseconds, in a unit that fits.
pub fn throughput(bytes: u64, ns: i64) -> Option<String> {
    text::rate(bytes, Ns(ns))
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
    fn figures_read_as_in_the_reports() {
        assert_eq!((duration(1_234_567), moment(1_234_567_890)), ("1.23 ms".to_owned(), "1.234567 s".to_owned()));
        // Two thirds, rounded.
        assert_eq!((percent(2, 3), percent(1, 0)), ("66.7 %".to_owned(), "–".to_owned()));
        assert_eq!((percent(1, 1_000_000), percent(999_999, 1_000_000)), ("<0.1 %".to_owned(), ">99.9 %".to_owned()));
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!((things(1, "copy", "copies"), things(0, "op", "ops")), ("1 copy".to_owned(), "0 ops".to_owned()));
        assert_eq!((bytes(4), bytes(1_536)), ("4 bytes".to_owned(), "1.50 KiB".to_owned()));
        assert_eq!(throughput(4, 1_120).as_deref(), Some("3.57 MB/s"));
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
            (1_500, 500, "1,500 ns"),
            (1_500_000, 500_000, "1,500 µs"),
            (1_234_500_000, 100_000, "1,234.5 ms"),
            (120_500_000_000, 500_000_000, "120.5 s"),
            (-500_000_000, 1_000_000_000, "-0.5 s"),
        ] {
            assert_eq!(tick(time, step), text);
        }
    }
}
