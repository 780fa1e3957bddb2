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

/// The label of a tick of a ruler whose ticks are so many nanoseconds apart: a moment as [`moment`] writes it, with as many
/// digits as tell it from the next one, so that labels beside each other have equally many.
pub fn tick(time: i64, step: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    let short = time.saturating_abs() < SECOND && step < SECOND;
    let (unit, name) = if short { (1_000_000_i64, "ms") } else { (SECOND, "s") };
    let (whole, rest) = (time / unit, (time % unit).abs());
    let sign = if time < 0 && whole == 0 && rest != 0 { "-" } else { "" };
    let digits = unit.ilog10().saturating_sub(step.max(1).ilog10()) as usize;
    if digits == 0 {
        return format!("{sign}{} {name}", grouped(whole));
    }
    let rest = format!("{rest:0width$}", width = unit.ilog10() as usize);
    format!("{sign}{}.{} {name}", grouped(whole), &rest[..digits])
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
    fn ticks_beside_each_other_are_moments_with_equally_many_digits() {
        for (time, step, text) in [
            (0, 50_000_000, "0 ms"),
            (0, 20_000, "0.00 ms"),
            (0, 20_000_000_000, "0 s"),
            (1_500, 500, "0.0015 ms"),
            (191_300_000, 20_000, "191.30 ms"),
            (191_320_000, 20_000, "191.32 ms"),
            (999_000_000, 1_000_000, "999 ms"),
            (1_234_500_000, 500_000, "1.2345 s"),
            (1_235_000_000, 500_000, "1.2350 s"),
            (120_500_000_000, 500_000_000, "120.5 s"),
            (120_000_000_000, 5_000_000_000, "120 s"),
            (-500_000_000, 100_000_000, "-500 ms"),
            (-500, 500, "-0.0005 ms"),
            (7, 1, "0.000007 ms"),
        ] {
            assert_eq!(tick(time, step), text);
            if time % 1_000 == 0 && time > 0 {
                let unit = text.split(' ').nth(1).unwrap();
                assert!(moment(time).ends_with(unit), "{text} is in the unit of {}", moment(time));
            }
        }
    }

    #[test]
    fn no_two_ticks_of_a_ruler_have_one_label() {
        for exponent in 0..12 {
            for factor in [1, 2, 5] {
                let step = factor * 10_i64.pow(exponent);
                let labels: Vec<String> = (-3..400).map(|at| tick(at * step, step)).collect();
                for pair in labels.windows(2) {
                    assert_ne!(pair[0], pair[1], "{step}");
                }
            }
        }
    }
}
