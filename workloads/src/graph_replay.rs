//! `graph-replay`: many short kernels with a fork and a join, launched one by one, as a graph, or as one kernel.
//!
//! The kernels are in `kernels/graph_replay.cu`.

use crate::arithmetic::{repeated, start, stir};
use crate::catalogue::{OptionInfo, VariantInfo, WorkloadInfo};
use crate::gpu::{DeviceBuffer, DevicePtr, Event, Gpu, Graph, GraphExec, Grid, Kernel, Module, Place, Stream};
use crate::outcome::checked_answer;
use crate::{CudaError, Outcome, RunSpec, WorkloadError};

const PTX: &str = include_str!("../kernels/graph_replay.ptx");

/// Threads of a block.
const THREADS: u32 = 256;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "graph-replay",
    summary: "rounds of many short kernels with a fork and a join",
    variants: &[
        VariantInfo::new("sync-each", "a device synchronisation after every launch, as an error-checking macro does"),
        VariantInfo::new("launches", "every kernel launched by itself, no waiting"),
        VariantInfo::new("graph", "a round is one graph, launched again and again"),
        VariantInfo::new("graph-update", "as graph, with a new parameter before each launch"),
        VariantInfo::new("graph-rebuilt", "the graph captured and instantiated anew for each round: the mistake"),
        VariantInfo::new("fused", "a round is one kernel"),
    ],
    options: &[SIZE, BRANCH, STEPS, ITERATIONS, WARMUP],
    run,
};

const SIZE: OptionInfo = OptionInfo::new("size", 65_536, 256, 1 << 26, "numbers").multiple_of(THREADS as u64);
const BRANCH: OptionInfo =
    OptionInfo::new("branch-kernels", 5, 1, 64, "kernels in each of the two branches; a round has two more");
const STEPS: OptionInfo =
    OptionInfo::new("kernel-steps", 100, 1, 100_000_000, "steps of each kernel's inner loop: how long a kernel is");
const ITERATIONS: OptionInfo = OptionInfo::new("iterations", 200, 1, 10_000, "rounds");
const WARMUP: OptionInfo = OptionInfo::new("warmup", 20, 0, 10_000, "rounds before");

type Begin = (DevicePtr<f32>, DevicePtr<f32>, DevicePtr<f32>, DevicePtr<u32>, u32, u32, u32);
type Branch = (DevicePtr<f32>, DevicePtr<u32>, u32, u32, u32);
type Finish = (DevicePtr<f32>, DevicePtr<f32>, DevicePtr<f32>, u32, u32);
type Fused = (DevicePtr<f32>, u32, u32, u32, u32);

/// What `begin` is told when the device is to count the rounds.
const COUNT_YOURSELF: u32 = 0;

/// A variant of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    SyncEach,
    Launches,
    Graph,
    GraphUpdate,
    GraphRebuilt,
    Fused,
}

impl Variant {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "sync-each" => Self::SyncEach,
            "launches" => Self::Launches,
            "graph" => Self::Graph,
            "graph-update" => Self::GraphUpdate,
            "graph-rebuilt" => Self::GraphRebuilt,
            "fused" => Self::Fused,
            _ => return None,
        })
    }
}

/// The kernels and what they work on.
struct Work<'g> {
    gpu: &'g Gpu,
    size: u32,
    branch_kernels: u32,
    steps: u32,
    a: DeviceBuffer<'g, f32>,
    b: DeviceBuffer<'g, f32>,
    c: DeviceBuffer<'g, f32>,
    round: DeviceBuffer<'g, u32>,
    begin: Kernel<'g, Begin>,
    branch: Kernel<'g, Branch>,
    finish: Kernel<'g, Finish>,
    fused: Kernel<'g, Fused>,
    grid: Grid,
    main: Stream<'g>,
    side: Stream<'g>,
    forked: Event<'g>,
    joined: Event<'g>,
}

impl<'g> Work<'g> {
    fn new(gpu: &'g Gpu, module: &'g Module<'g>, spec: &RunSpec) -> Result<Self, CudaError> {
        let size = spec.get_u32(&SIZE);
        let buffer = || DeviceBuffer::new(gpu, size as usize);
        Ok(Self {
            gpu,
            size,
            branch_kernels: spec.get_u32(&BRANCH),
            steps: spec.get_u32(&STEPS),
            a: buffer()?,
            b: buffer()?,
            c: buffer()?,
            round: DeviceBuffer::new(gpu, 1)?,
            begin: module.kernel("begin")?,
            branch: module.kernel("branch")?,
            finish: module.kernel("finish")?,
            fused: module.kernel("fused")?,
            grid: Grid { blocks: size / THREADS, threads: THREADS },
            main: Stream::non_blocking(gpu)?,
            side: Stream::non_blocking(gpu)?,
            forked: Event::new(gpu)?,
            joined: Event::new(gpu)?,
        })
    }

    /// Sets the start, and waits until it is there.
    fn reset(&self) -> Result<(), CudaError> {
        self.c.write(&repeated(&start(0), self.size as usize))?;
        self.round.write(&[0])?;
        self.gpu.synchronize()
    }

    fn begin_arguments(&self, told: u32) -> Begin {
        (self.c.ptr(), self.a.ptr(), self.b.ptr(), self.round.ptr(), told, self.size, self.steps)
    }

    /// Launches one round, with `after_launch` after each of its kernels.
    fn launch_round(&self, after_launch: impl Fn() -> Result<(), CudaError>) -> Result<(), CudaError> {
        let branch = |stream, x: &DeviceBuffer<'_, f32>, position| {
            self.branch.launch(stream, self.grid, &(x.ptr(), self.round.ptr(), position, self.size, self.steps))
        };
        self.begin.launch(&self.main, self.grid, &self.begin_arguments(COUNT_YOURSELF))?;
        after_launch()?;
        self.forked.record(&self.main)?;
        self.side.wait(&self.forked)?;
        for position in 0..self.branch_kernels {
            branch(&self.main, &self.a, position)?;
            after_launch()?;
            branch(&self.side, &self.b, self.branch_kernels + position)?;
            after_launch()?;
        }
        self.joined.record(&self.side)?;
        self.main.wait(&self.joined)?;
        let arguments = (self.c.ptr(), self.a.ptr(), self.b.ptr(), self.size, self.steps);
        self.finish.launch(&self.main, self.grid, &arguments)?;
        after_launch()
    }

    fn capture_round(&self) -> Result<Graph<'g>, CudaError> {
        Graph::capture(&self.main, || self.launch_round(|| Ok(())))
    }
}

/// A variant, ready to run.
enum Shape<'g> {
    SyncEach,
    Launches,
    Graph(GraphExec<'g>),
    GraphUpdate { graph: Graph<'g>, exec: GraphExec<'g> },
    GraphRebuilt,
    Fused,
}

impl<'g> Shape<'g> {
    fn new(variant: Variant, work: &Work<'g>) -> Result<Self, CudaError> {
        let ready = |graph: &Graph<'g>| {
            let exec = graph.instantiate()?;
            exec.upload(&work.main)?;
            Ok::<_, CudaError>(exec)
        };
        Ok(match variant {
            Variant::SyncEach => Self::SyncEach,
            Variant::Launches => Self::Launches,
            Variant::Graph => Self::Graph(ready(&work.capture_round()?)?),
            Variant::GraphUpdate => {
                let graph = work.capture_round()?;
                Self::GraphUpdate { exec: ready(&graph)?, graph }
            }
            Variant::GraphRebuilt => Self::GraphRebuilt,
            Variant::Fused => Self::Fused,
        })
    }

    /// Runs rounds 1 to `rounds`.
    fn run(&self, work: &Work<'g>, rounds: u32) -> Result<(), CudaError> {
        match self {
            Self::SyncEach => (1..=rounds).try_for_each(|_| work.launch_round(|| work.gpu.synchronize())),
            Self::Launches => (1..=rounds).try_for_each(|_| work.launch_round(|| Ok(()))),
            Self::Graph(exec) => (1..=rounds).try_for_each(|_| exec.launch(&work.main)),
            Self::GraphUpdate { graph, exec } => {
                let begin = graph.root()?;
                (1..=rounds).try_for_each(|round| {
                    exec.set_kernel_arguments(begin, &work.begin, work.grid, &work.begin_arguments(round))?;
                    exec.launch(&work.main)
                })
            }
            Self::GraphRebuilt => {
                (1..=rounds).try_for_each(|_| work.capture_round()?.instantiate()?.launch(&work.main))
            }
            Self::Fused => (1..=rounds).try_for_each(|round| {
                let arguments = (work.c.ptr(), round, work.branch_kernels, work.size, work.steps);
                work.fused.launch(&work.main, work.grid, &arguments)
            }),
        }
    }
}

/// One period of c after `rounds` rounds, on the host.
fn reference(rounds: u32, branch_kernels: u32, steps: u32) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "numbers below 8")]
    let rate = |round: u32, position: u32| 3.6 + 0.05 * ((round + position) % 8) as f32;
    let mut c = start(0);
    for round in 1..=rounds {
        for c in &mut c {
            let mut a = stir(*c, 3.9, steps);
            let mut b = stir(1.0 - 0.5 * *c, 3.8, steps);
            for position in 0..branch_kernels {
                a = stir(a, rate(round, position), steps);
                b = stir(b, rate(round, branch_kernels + position), steps);
            }
            *c = stir(0.5 * (a + b), 3.7, steps);
        }
    }
    c
}

fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    let variant = spec.choose(Variant::from_name)?;
    let gpu = Gpu::open()?;
    let module = Module::load(&gpu, PTX)?;
    let work = Work::new(&gpu, &module, spec)?;
    let shape = Shape::new(variant, &work)?;

    let (iterations, warmup) = (spec.get_u32(&ITERATIONS), spec.get_u32(&WARMUP));
    work.reset()?;
    shape.run(&work, warmup)?;
    gpu.synchronize()?;
    work.reset()?;
    let measured = gpu.measure(|| Ok(shape.run(&work, iterations)?))?;

    let answer = checked_answer(&work.c, work.size, &reference(iterations, work.branch_kernels, work.steps))?;
    Ok(Outcome::new(&gpu, iterations.into(), warmup.into(), measured, answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{Arguments, parameters};
    use crate::outcome::hash_floats;

    #[test]
    fn the_kernels_take_what_they_are_given() {
        assert_eq!(parameters(PTX, "begin").as_deref(), Some(Begin::KINDS));
        assert_eq!(parameters(PTX, "branch").as_deref(), Some(Branch::KINDS));
        assert_eq!(parameters(PTX, "finish").as_deref(), Some(Finish::KINDS));
        assert_eq!(parameters(PTX, "fused").as_deref(), Some(Fused::KINDS));
    }

    #[test]
    fn every_variant_of_the_catalogue_is_one() {
        assert!(INFO.variants.iter().all(|variant| Variant::from_name(variant.name).is_some()));
        assert_eq!(Variant::from_name("nonsense"), None);
    }

    #[test]
    fn every_round_kernel_and_step_shows_in_the_answer() {
        let answer = |rounds, kernels, steps| hash_floats(&reference(rounds, kernels, steps));
        let base = answer(20, 3, 10);
        assert_ne!(base, answer(19, 3, 10));
        assert_ne!(base, answer(20, 2, 10));
        assert_ne!(base, answer(20, 3, 9));
    }
}
