//! `scalar-readback`: an iterative solver that stops when a residual is small enough.
//!
//! The kernels and the meaning of the numbers are in `kernels/scalar_readback.cu`. The tolerance is the residual
//! that the host's reference has after the number of iterations asked for; residuals fall strictly, so the solver
//! converges after exactly that many, and nothing but the residual makes it stop: the loops themselves would go on
//! to twice as many before they gave up.

mod reference;
mod shapes;

use crate::arithmetic::{first_difference, repeated};
use crate::catalogue::{OptionInfo, VariantInfo, WorkloadInfo};
use crate::gpu::{DeviceBuffer, DevicePtr, Gpu, Grid, Kernel, Loop, Module, Place, Stream};
use crate::outcome::hash_floats;
use crate::{CudaError, Outcome, RunSpec, WorkloadError};
use reference::Solution;
use shapes::Variant;

const PTX: &str = include_str!("../../kernels/scalar_readback.ptx");

const KEEP_GOING_PTX: &str = include_str!("../../kernels/keep_going.ptx");

/// Threads of a block.
const THREADS: u32 = 256;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "scalar-readback",
    summary: "an iterative solver that stops when a residual, one number on the device, is small enough",
    variants: &[
        VariantInfo::new("sync", "a blocking 4-byte copy per iteration decides the next launch"),
        VariantInfo::new("sync-pinned", "the same through pinned memory: async copy, then a stream synchronisation"),
        VariantInfo::new("async", "the decision lags a few iterations behind, on pinned memory and events"),
        VariantInfo::new("graph", "batches of iterations as one graph, one copy and decision per batch"),
        VariantInfo::new("event", "as sync-pinned, but waits for an event instead of the stream"),
        VariantInfo::new("mapped-flag", "the device writes the residual to host memory, which the host polls"),
        VariantInfo::new("device-control", "a graph with a loop: the decision stays on the device"),
        VariantInfo::new("persistent", "one cooperative kernel decides for itself, with a barrier over the grid"),
        VariantInfo::reference("none", "no read-back: the number of iterations is known beforehand"),
    ],
    options: &[SIZE, KERNELS, STEPS, ITERATIONS, WARMUP, LAG, BATCH],
    run,
};

const SIZE: OptionInfo = OptionInfo::new("size", 65_536, 256, 1 << 26, "unknowns").multiple_of(THREADS as u64);
const KERNELS: OptionInfo =
    OptionInfo::new("kernels-per-iteration", 4, 1, 64, "kernels per iteration; the last also computes the residual");
const STEPS: OptionInfo =
    OptionInfo::new("kernel-steps", 500, 1, 100_000_000, "steps of each kernel's inner loop: how long a kernel is");
const ITERATIONS: OptionInfo =
    OptionInfo::new("iterations", 200, 1, 100_000, "iterations until the solver has converged");
const WARMUP: OptionInfo = OptionInfo::new("warmup", 20, 0, 100_000, "iterations of another solve before");
const LAG: OptionInfo = OptionInfo::new("lag", 4, 1, 1_024, "async: iterations that the decision lags behind");
const BATCH: OptionInfo = OptionInfo::new("batch", 10, 1, 1_024, "graph: iterations per graph");

/// What to solve.
#[derive(Debug, Clone, Copy)]
struct Problem {
    /// Unknowns, a multiple of the period of their start.
    size: u32,
    /// Sweeps, and so kernels, per iteration.
    sweeps: u32,
    /// Steps per sweep.
    steps: u32,
    /// How much of its two neighbours' sum each unknown asks for.
    coupling: f32,
}

impl Problem {
    /// Chosen so that `iterations` reduce the solution by about a factor of a thousand at most, however many they
    /// are: so each still changes the residual by far more than a float's precision.
    fn new(size: u32, sweeps: u32, steps: u32, iterations: u32) -> Self {
        let total = f64::from(sweeps) * f64::from(iterations);
        let decay_per_sweep = (1.0 - 7.0 / total).max(0.5);
        #[expect(clippy::cast_possible_truncation, reason = "the coupling is a float; any rounding will do")]
        let coupling = (decay_per_sweep / 2.0) as f32;
        Self { size, sweeps, steps, coupling }
    }
}

/// When a solve ends.
#[derive(Debug, Clone, Copy)]
struct Goal {
    /// Converged when the residual is not above this.
    tolerance: f32,
    /// Iterations after which it is known to converge; only the yardstick without read-back looks at them.
    iterations: u32,
}

impl Goal {
    fn reached_by(self, residual: f32) -> bool {
        residual <= self.tolerance
    }

    /// After how many iterations to give up.
    fn give_up(self) -> u32 {
        self.iterations.saturating_mul(2)
    }

    fn not_reached(self) -> WorkloadError {
        WorkloadError::WrongAnswer(format!("no convergence within {} iterations", self.give_up()))
    }
}

/// Places of the words of the kernels' `State`.
mod state {
    pub(super) const RESIDUAL: usize = 0;
    pub(super) const TOLERANCE: usize = 1;
    pub(super) const ITERATIONS: usize = 2;
    pub(super) const WORDS: usize = 10;
}

type Sweep = (DevicePtr<f32>, DevicePtr<f32>, DevicePtr<u32>, u32, u32, f32, u32, u32);
type SweepAndCheck = (DevicePtr<f32>, DevicePtr<f32>, DevicePtr<u32>, u32, u32, f32, u32, DevicePtr<u64>);
type KeepGoing = (Loop, DevicePtr<u32>, u32);
type SolvePersistent = (DevicePtr<f32>, DevicePtr<f32>, DevicePtr<u32>, u32, u32, f32, u32, u32);

/// The solver's part on the device, the same for every variant.
struct Solver<'g> {
    gpu: &'g Gpu,
    problem: Problem,
    a: DeviceBuffer<'g, f32>,
    b: DeviceBuffer<'g, f32>,
    /// The kernels' `State`. Its first word is the residual, as bits.
    state: DeviceBuffer<'g, u32>,
    sweep: Kernel<'g, Sweep>,
    sweep_and_check: Kernel<'g, SweepAndCheck>,
    solve_persistent: Kernel<'g, SolvePersistent>,
    grid: Grid,
}

impl<'g> Solver<'g> {
    fn new(gpu: &'g Gpu, module: &'g Module<'g>, problem: Problem) -> Result<Self, CudaError> {
        Ok(Self {
            gpu,
            problem,
            a: DeviceBuffer::new(gpu, problem.size as usize)?,
            b: DeviceBuffer::new(gpu, problem.size as usize)?,
            state: DeviceBuffer::new(gpu, state::WORDS)?,
            sweep: module.kernel("sweep")?,
            sweep_and_check: module.kernel("sweep_and_check")?,
            solve_persistent: module.kernel("solve_persistent")?,
            grid: Grid { blocks: problem.size / THREADS, threads: THREADS },
        })
    }

    /// Sets the start of a solve, and waits until it is there.
    fn reset(&self, goal: Goal) -> Result<(), CudaError> {
        self.a.write(&repeated(&reference::start(), self.problem.size as usize))?;
        let mut words = [0; state::WORDS];
        words[state::TOLERANCE] = goal.tolerance.to_bits();
        self.state.write(&words)?;
        self.gpu.synchronize()
    }

    /// Launches the kernels of one iteration, whichever it is: the device counts.
    fn launch_iteration(&self, stream: &Stream<'_>, mirror: DevicePtr<u64>) -> Result<(), CudaError> {
        let Problem { size, sweeps, steps, coupling } = self.problem;
        let (a, b, state) = (self.a.ptr(), self.b.ptr(), self.state.ptr());
        for sweep in 0..sweeps - 1 {
            self.sweep.launch(stream, self.grid, &(a, b, state, size, steps, coupling, sweep, sweeps))?;
        }
        self.sweep_and_check.launch(stream, self.grid, &(a, b, state, size, steps, coupling, sweeps, mirror))
    }

    /// Compares what the device has with the reference, bit for bit. The device must be idle.
    fn check(&self, expected: &Solution) -> Result<String, WorkloadError> {
        let mut words = [0; state::WORDS];
        self.state.read(&mut words)?;
        let iterations = words[state::ITERATIONS];
        let residual = words[state::RESIDUAL];
        if iterations != expected.iterations || residual != expected.residual.to_bits() {
            return Err(WorkloadError::WrongAnswer(format!(
                "the device stopped after {iterations} iterations at a residual of {:e}, the host after {} at {:e}",
                f32::from_bits(residual),
                expected.iterations,
                expected.residual,
            )));
        }
        let odd = (u64::from(iterations) * u64::from(self.problem.sweeps)) % 2 == 1;
        let mut x = vec![0.0; self.problem.size as usize];
        if odd { &self.b } else { &self.a }.read(&mut x)?;
        if let Some(difference) = first_difference(&x, &expected.x) {
            return Err(WorkloadError::WrongAnswer(difference));
        }
        Ok(format!("{iterations}:{residual:08x}:{}", hash_floats(&x)))
    }
}

fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    let variant = spec.choose(Variant::from_name)?;
    let gpu = Gpu::open()?;
    let (iterations, warmup) = (spec.get_u32(&ITERATIONS), spec.get_u32(&WARMUP));
    let problem = Problem::new(spec.get_u32(&SIZE), spec.get_u32(&KERNELS), spec.get_u32(&STEPS), iterations);
    let module = Module::load(&gpu, PTX)?;
    let solver = Solver::new(&gpu, &module, problem)?;
    let mut shape = variant.prepare(&solver, spec)?;

    // On the host first, so that nothing but the reset comes between the warm-up and the measured part.
    let expected = reference::solve(&problem, iterations);
    if warmup > 0 {
        let goal = reference::solve(&problem, warmup).goal();
        solver.reset(goal)?;
        shape.solve(&solver, goal)?;
        gpu.synchronize()?;
    }
    let goal = expected.goal();
    solver.reset(goal)?;
    let measured = gpu.measure(|| shape.solve(&solver, goal))?;
    let answer = solver.check(&expected)?;

    Ok(Outcome::new(&gpu, expected.iterations.into(), warmup.into(), measured, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{Arguments, parameters};

    #[test]
    fn the_kernels_take_what_they_are_given() {
        assert_eq!(parameters(PTX, "sweep").as_deref(), Some(Sweep::KINDS));
        assert_eq!(parameters(PTX, "sweep_and_check").as_deref(), Some(SweepAndCheck::KINDS));
        assert_eq!(parameters(KEEP_GOING_PTX, "keep_going").as_deref(), Some(KeepGoing::KINDS));
        assert_eq!(parameters(PTX, "solve_persistent").as_deref(), Some(SolvePersistent::KINDS));
    }

    #[test]
    fn every_variant_of_the_catalogue_is_one() {
        for variant in INFO.variants {
            assert!(Variant::from_name(variant.name).is_some(), "{}", variant.name);
        }
        assert_eq!(Variant::from_name("nonsense"), None);
    }
}
