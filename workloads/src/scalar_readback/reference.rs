//! The solver on the host, to the bit.
//!
//! The start repeats around the ring, so the solution always does too, and the host needs to follow one period
//! only, whatever the size. The kernels do not know.

use super::{Goal, Problem};
use crate::arithmetic::{self, relax};

/// What a solve ends with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Solution {
    /// Iterations done.
    pub iterations: u32,
    /// The largest |x|.
    pub residual: f32,
    /// One period of the unknowns.
    pub x: Vec<f32>,
}

impl Solution {
    /// The goal that a solve reaches with this solution.
    pub(super) fn goal(&self) -> Goal {
        Goal { tolerance: self.residual, iterations: self.iterations }
    }
}

/// One period of the unknowns at the start: between 0.5 and 1.5, without order.
pub(super) fn start() -> Vec<f32> {
    arithmetic::start(0).into_iter().map(|x| 0.5 + x).collect()
}

/// Solves until the residual is not above the one after `iterations` iterations, which is after that many unless
/// an earlier one was as small already.
pub(super) fn solve(problem: &Problem, iterations: u32) -> Solution {
    let mut x = start();
    let mut best = Solution { iterations: 0, residual: f32::INFINITY, x: x.clone() };
    for iteration in 1..=iterations {
        for _ in 0..problem.sweeps {
            x = sweep(problem, &x);
        }
        let residual = x.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        if residual < best.residual {
            best = Solution { iterations: iteration, residual, x: x.clone() };
        }
    }
    best
}

fn sweep(problem: &Problem, from: &[f32]) -> Vec<f32> {
    (0..from.len())
        .map(|i| {
            let left = from[(i + from.len() - 1) % from.len()];
            let right = from[(i + 1) % from.len()];
            let target = problem.coupling * (left + right);
            relax(from[i], target, problem.steps)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernels line by line, block by block, over the whole ring, with the state that the device keeps.
    struct Device {
        a: Vec<f32>,
        b: Vec<f32>,
        residual: f32,
        iterations: u32,
        done: bool,
    }

    impl Device {
        fn new(problem: &Problem) -> Self {
            let a: Vec<f32> = start().into_iter().cycle().take(problem.size as usize).collect();
            Self { b: vec![f32::NAN; a.len()], a, residual: 0.0, iterations: 0, done: false }
        }

        fn iteration(&mut self, problem: &Problem, tolerance: f32) {
            for sweep in 0..problem.sweeps {
                if self.done {
                    return;
                }
                let odd = (self.iterations.wrapping_mul(problem.sweeps).wrapping_add(sweep)) & 1 == 1;
                let (from, to) = if odd { (&self.b, &mut self.a) } else { (&self.a, &mut self.b) };
                let size = from.len();
                let mut largest = 0.0_f32;
                for i in 0..size {
                    let left = from[if i == 0 { size - 1 } else { i - 1 }];
                    let right = from[if i + 1 == size { 0 } else { i + 1 }];
                    let target = problem.coupling * (left + right);
                    let mut x = from[i];
                    for _ in 0..problem.steps {
                        x = x + 0.5 * (target - x);
                    }
                    to[i] = x;
                    largest = largest.max(x.abs());
                }
                if sweep == problem.sweeps - 1 {
                    self.residual = largest;
                    self.iterations += 1;
                    self.done = largest <= tolerance;
                }
            }
        }

        fn x(&self, problem: &Problem) -> &[f32] {
            if (self.iterations * problem.sweeps) % 2 == 1 { &self.b } else { &self.a }
        }
    }

    fn bits(x: &[f32]) -> Vec<u32> {
        x.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn one_period_on_the_host_stands_for_the_whole_ring_and_overshoot_changes_nothing() {
        for (size, sweeps, steps, iterations) in [(512, 1, 3, 9), (768, 3, 1, 5), (1024, 4, 60, 6), (256, 12, 40, 2)] {
            let problem = Problem::new(size, sweeps, steps, iterations);
            let expected = solve(&problem, iterations);
            let goal = expected.goal();
            let mut device = Device::new(&problem);
            for _ in 0..iterations + 7 {
                device.iteration(&problem, goal.tolerance);
            }
            assert!(device.done);
            assert_eq!(device.iterations, expected.iterations);
            assert_eq!(device.residual.to_bits(), expected.residual.to_bits());
            let whole: Vec<f32> = expected.x.iter().copied().cycle().take(size as usize).collect();
            assert_eq!(bits(device.x(&problem)), bits(&whole));
        }
    }

    #[test]
    fn it_converges_exactly_when_asked() {
        for sweeps in [1, 4, 12] {
            for steps in [1, 2, 500] {
                for (iterations, asked) in [(1, 1), (2, 1), (3, 3), (200, 20), (200, 200)] {
                    let problem = Problem::new(256, sweeps, steps, iterations);
                    let solution = solve(&problem, asked);
                    assert_eq!(solution.iterations, asked, "{sweeps} {steps} {iterations}");
                    assert!(solution.residual > 1e-6, "{sweeps} {steps} {iterations}: {}", solution.residual);
                }
            }
        }
    }

    #[test]
    fn many_iterations_still_fall_strictly() {
        let problem = Problem::new(256, 1, 500, 10_000);
        assert_eq!(solve(&problem, 10_000).iterations, 10_000);
    }
}
