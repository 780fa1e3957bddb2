//! The kernels' arithmetic on the host, to the bit (`kernels/relax.cuh`), and where the numbers start.
//!
//! Starts repeat with [`PERIOD`], so results of work on each number alone do too, and the host needs to follow one
//! period only, whatever the size. The kernels do not know.

/// Numbers after which a start repeats.
pub(crate) const PERIOD: usize = 256;

/// One period of numbers between 0 and 1, without order; others for another seed.
pub(crate) fn start(seed: u32) -> Vec<f32> {
    (0..PERIOD as u32)
        .map(|i| {
            let mixed = (i ^ seed.wrapping_mul(0x85eb_ca77)).wrapping_mul(0x9e37_79b9);
            let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca6b);
            let fraction = (mixed ^ (mixed >> 13)) >> 16;
            #[expect(clippy::cast_precision_loss, reason = "16 bits fit a float exactly")]
            let fraction = fraction as f32 / 65_536.0;
            fraction
        })
        .collect()
}

/// A period repeated to `size` numbers.
pub(crate) fn repeated(period: &[f32], size: usize) -> Vec<f32> {
    period.iter().copied().cycle().take(size).collect()
}

/// `relax` of the kernels, but stops at a step that changes nothing: so would all later ones.
pub(crate) fn relax(mut x: f32, target: f32, steps: u32) -> f32 {
    for _ in 0..steps {
        let next = x + 0.5 * (target - x);
        if next.to_bits() == x.to_bits() {
            break;
        }
        x = next;
    }
    x
}

/// `stir` of the kernels.
pub(crate) fn stir(x: f32, rate: f32, steps: u32) -> f32 {
    relax(x, rate * x * (1.0 - x), steps)
}

/// The first number that is not what is expected, which repeats with the period of `expected`.
pub(crate) fn first_difference(found: &[f32], expected: &[f32]) -> Option<String> {
    let pairs = found.iter().zip(expected.iter().cycle()).enumerate();
    pairs
        .filter(|(_, (found, expected))| found.to_bits() != expected.to_bits())
        .map(|(i, (found, expected))| format!("number {i} is {found:e}, the host has {expected:e}"))
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_changes_nothing_is_the_last_that_could() {
        for steps in [0, 1, 5, 24, 30, 100, 1000] {
            for (x, target) in [(1.0, 0.5), (0.75, 0.750_000_06), (1.4, 0.000_1), (0.3, 0.300_000_04), (0.0, 0.0)] {
                let mut plain: f32 = x;
                for _ in 0..steps {
                    plain = plain + 0.5 * (target - plain);
                }
                assert_eq!(relax(x, target, steps).to_bits(), plain.to_bits(), "{steps} {x} {target}");
            }
        }
    }

    #[test]
    fn a_start_is_in_its_range_without_order_and_its_own() {
        for seed in 0..100 {
            let start = start(seed);
            assert_eq!(start.len(), PERIOD);
            assert!(start.iter().all(|x| (0.0..1.0).contains(x)));
            let rising = start.windows(2).filter(|pair| pair[0] < pair[1]).count();
            assert!((64..192).contains(&rising), "{rising}");
            assert_ne!(start, super::start(seed + 1));
        }
    }

    #[test]
    fn stirring_stays_in_range_and_tells_how_often_it_was_done() {
        for steps in [30, 500] {
            let mut x = start(0);
            let mut seen = std::collections::BTreeSet::new();
            for _ in 0..2_000 {
                x.iter_mut().for_each(|x| *x = stir(*x, 3.9, steps));
                assert!(x.iter().all(|x| (0.0..=1.0).contains(x)));
                assert!(seen.insert(x.iter().map(|x| x.to_bits()).collect::<Vec<_>>()), "came round");
            }
        }
    }

    #[test]
    fn a_difference_is_found_where_it_is() {
        let expected = start(0);
        let mut found = repeated(&expected, 600);
        assert_eq!(first_difference(&found, &expected), None);
        found[517] = -1.0;
        assert!(first_difference(&found, &expected).unwrap().starts_with("number 517 is -1e0"));
    }
}
