//! The variants: how the host learns whether to go on. Each is the loop that a user would write.

use std::time::{Duration, Instant};

use super::{BATCH, Goal, ITERATIONS, KEEP_GOING_PTX, KeepGoing, LAG, Solver, THREADS, WARMUP};
use crate::gpu::{DevicePtr, Event, Graph, GraphExec, Grid, HostBuffer, Kernel, Module, Place, Stream};
use crate::{RunSpec, WorkloadError};

use cudarc::driver::sys::CUdevice_attribute::{
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
};

/// A variant of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    Sync,
    SyncPinned,
    Async,
    Graph,
    Event,
    MappedFlag,
    DeviceControl,
    Persistent,
    None,
}

/// A way to solve. What it needs is made once, before the warm-up.
pub(super) trait Shape {
    /// Solves until the goal is reached. Device work may still be under way at the end.
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError>;
}

impl Variant {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "sync" => Self::Sync,
            "sync-pinned" => Self::SyncPinned,
            "async" => Self::Async,
            "graph" => Self::Graph,
            "event" => Self::Event,
            "mapped-flag" => Self::MappedFlag,
            "device-control" => Self::DeviceControl,
            "persistent" => Self::Persistent,
            "none" => Self::None,
            _ => return None,
        })
    }

    pub(super) fn prepare<'g>(self, solver: &Solver<'g>, spec: &RunSpec) -> Result<Box<dyn Shape + 'g>, WorkloadError> {
        let gpu = solver.gpu;
        let stream = || Stream::non_blocking(gpu);
        let scalar = || HostBuffer::pinned(gpu, 1);
        Ok(match self {
            Self::Sync => Box::new(BlockingCopy { stream: Stream::legacy_default(gpu) }),
            Self::SyncPinned => Box::new(StreamSync { stream: stream()?, residual: scalar()? }),
            Self::Async => {
                let lag = spec.get_u32(&LAG);
                Box::new(Lagging {
                    stream: stream()?,
                    residuals: HostBuffer::pinned(gpu, lag as usize)?,
                    copied: (0..lag).map(|_| Event::new(gpu)).collect::<Result<_, _>>()?,
                })
            }
            Self::Graph => Box::new(Batches::new(solver, stream()?, scalar()?, spec.get_u32(&BATCH))?),
            Self::Event => Box::new(EventSync { stream: stream()?, residual: scalar()?, copied: Event::new(gpu)? }),
            Self::MappedFlag => {
                let mirror = HostBuffer::mapped(gpu, 1)?;
                Box::new(MappedFlag { stream: stream()?, on_device: mirror.device_ptr()?, mirror })
            }
            Self::DeviceControl => Box::new(DeviceControl::new(solver, stream()?, spec)?),
            Self::Persistent => Box::new(Persistent::new(solver, stream()?, spec.variant())?),
            Self::None => Box::new(NoReadback { stream: stream()? }),
        })
    }
}

/// `sync`. A plain blocking copy waits for the default stream, so that is where the kernels go.
struct BlockingCopy<'g> {
    stream: Stream<'g>,
}

impl Shape for BlockingCopy<'_> {
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        for _ in 0..goal.give_up() {
            solver.launch_iteration(&self.stream, DevicePtr::NULL)?;
            let mut residual = [0];
            solver.state.read(&mut residual)?;
            if goal.reached_by(f32::from_bits(residual[0])) {
                return Ok(());
            }
        }
        Err(goal.not_reached())
    }
}

/// `sync-pinned`.
struct StreamSync<'g> {
    stream: Stream<'g>,
    residual: HostBuffer<'g, u32>,
}

impl Shape for StreamSync<'_> {
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        for _ in 0..goal.give_up() {
            solver.launch_iteration(&self.stream, DevicePtr::NULL)?;
            solver.state.download_async(&self.residual, 0, 1, &self.stream)?;
            self.stream.synchronize()?;
            if goal.reached_by(f32::from_bits(self.residual.get(0))) {
                return Ok(());
            }
        }
        Err(goal.not_reached())
    }
}

/// `event`.
struct EventSync<'g> {
    stream: Stream<'g>,
    residual: HostBuffer<'g, u32>,
    copied: Event<'g>,
}

impl Shape for EventSync<'_> {
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        for _ in 0..goal.give_up() {
            solver.launch_iteration(&self.stream, DevicePtr::NULL)?;
            solver.state.download_async(&self.residual, 0, 1, &self.stream)?;
            self.copied.record(&self.stream)?;
            self.copied.synchronize()?;
            if goal.reached_by(f32::from_bits(self.residual.get(0))) {
                return Ok(());
            }
        }
        Err(goal.not_reached())
    }
}

/// `async`. A place of the ring is looked at when its turn comes again, one lag later. What was launched meanwhile
/// finds the solver done and returns at once.
struct Lagging<'g> {
    stream: Stream<'g>,
    residuals: HostBuffer<'g, u32>,
    copied: Vec<Event<'g>>,
}

impl Shape for Lagging<'_> {
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        let lag = self.copied.len();
        // The last iteration is looked at one lag after it was launched.
        for iteration in 0..(goal.give_up() as usize).saturating_add(lag) {
            let place = iteration % lag;
            if iteration >= lag {
                self.copied[place].synchronize()?;
                if goal.reached_by(f32::from_bits(self.residuals.get(place))) {
                    return Ok(());
                }
            }
            solver.launch_iteration(&self.stream, DevicePtr::NULL)?;
            solver.state.download_async(&self.residuals, place, 1, &self.stream)?;
            self.copied[place].record(&self.stream)?;
        }
        Err(goal.not_reached())
    }
}

/// `graph`. Iterations of a batch beyond the last find the solver done and return at once.
struct Batches<'g> {
    stream: Stream<'g>,
    residual: HostBuffer<'g, u32>,
    batch: u32,
    graph: GraphExec<'g>,
}

impl<'g> Batches<'g> {
    fn new(
        solver: &Solver<'g>,
        stream: Stream<'g>,
        residual: HostBuffer<'g, u32>,
        batch: u32,
    ) -> Result<Self, WorkloadError> {
        let graph = Graph::capture(&stream, || {
            (0..batch).try_for_each(|_| solver.launch_iteration(&stream, DevicePtr::NULL))?;
            solver.state.download_async(&residual, 0, 1, &stream)
        })?;
        let graph = graph.instantiate()?;
        graph.upload(&stream)?;
        Ok(Self { stream, residual, batch, graph })
    }
}

impl Shape for Batches<'_> {
    fn solve(&mut self, _solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        for _ in 0..goal.give_up().div_ceil(self.batch) {
            self.graph.launch(&self.stream)?;
            self.stream.synchronize()?;
            if goal.reached_by(f32::from_bits(self.residual.get(0))) {
                return Ok(());
            }
        }
        Err(goal.not_reached())
    }
}

/// `mapped-flag`. The last kernel of an iteration writes the number of iterations and the residual to host memory
/// in one word.
struct MappedFlag<'g> {
    stream: Stream<'g>,
    mirror: HostBuffer<'g, u64>,
    on_device: DevicePtr<u64>,
}

impl MappedFlag<'_> {
    /// Polls until the device has finished `iterations`; gives the residual. Makes no driver call unless the device
    /// takes unusually long, to learn whether it has failed.
    fn wait_for(&self, iterations: u64) -> Result<f32, WorkloadError> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let start = Instant::now();
        loop {
            for _ in 0..10_000 {
                let word = self.mirror.get(0);
                if word >> 32 == iterations {
                    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the residual")]
                    return Ok(f32::from_bits(word as u32));
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > PATIENCE && self.stream.is_idle()? && self.mirror.get(0) >> 32 != iterations {
                return Err(WorkloadError::WrongAnswer(format!("iteration {iterations} was never reported")));
            }
        }
    }
}

impl Shape for MappedFlag<'_> {
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        self.mirror.set(0, 0);
        for iteration in 1..=u64::from(goal.give_up()) {
            solver.launch_iteration(&self.stream, self.on_device)?;
            if goal.reached_by(self.wait_for(iteration)?) {
                return Ok(());
            }
        }
        Err(goal.not_reached())
    }
}

/// `device-control`. The body of the loop is one iteration and a kernel that decides whether there is another.
struct DeviceControl<'g> {
    stream: Stream<'g>,
    graph: GraphExec<'g>,
    /// What the graph runs; dropped after it.
    _module: Module<'g>,
}

impl<'g> DeviceControl<'g> {
    fn new(solver: &Solver<'g>, stream: Stream<'g>, spec: &RunSpec) -> Result<Self, WorkloadError> {
        let unsupported = |reason: String| WorkloadError::Unsupported { variant: spec.variant(), reason };
        if !solver.gpu.has_conditional_nodes() {
            return Err(unsupported("the driver has no conditional graph nodes (they came with CUDA 12.4)".to_owned()));
        }
        // The longest that the loop may run is part of the graph, so it is the larger of the two solves'.
        let give_up = spec.get_u32(&ITERATIONS).max(spec.get_u32(&WARMUP)).saturating_mul(2);
        let cannot_compile =
            |error| unsupported(format!("the driver cannot compile a kernel that steers a graph: {error}"));
        let module = Module::load(solver.gpu, KEEP_GOING_PTX).map_err(cannot_compile)?;
        // A driver that loads lazily compiles only now.
        let keep_going: Kernel<'_, KeepGoing> = module.kernel("keep_going").map_err(cannot_compile)?;
        let graph = Graph::capture_loop(solver.gpu, &stream, |again| {
            solver.launch_iteration(&stream, DevicePtr::NULL)?;
            keep_going.launch(&stream, Grid { blocks: 1, threads: 1 }, &(again, solver.state.ptr(), give_up))
        })?;
        let graph = graph.instantiate()?;
        graph.upload(&stream)?;
        Ok(Self { stream, graph, _module: module })
    }
}

impl Shape for DeviceControl<'_> {
    fn solve(&mut self, _solver: &Solver<'_>, _goal: Goal) -> Result<(), WorkloadError> {
        self.graph.launch(&self.stream)?;
        Ok(())
    }
}

/// `persistent`.
struct Persistent<'g> {
    stream: Stream<'g>,
    grid: Grid,
}

impl<'g> Persistent<'g> {
    fn new(solver: &Solver<'g>, stream: Stream<'g>, variant: &'static str) -> Result<Self, WorkloadError> {
        let unsupported = |reason: &str| WorkloadError::Unsupported { variant, reason: reason.to_owned() };
        if solver.gpu.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? == 0 {
            return Err(unsupported("the GPU has no cooperative launch"));
        }
        let processors = solver.gpu.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(0).cast_unsigned();
        let at_once = processors.saturating_mul(solver.solve_persistent.blocks_per_multiprocessor(THREADS)?);
        if at_once == 0 {
            return Err(unsupported("the GPU cannot hold one block of the kernel"));
        }
        Ok(Self { stream, grid: Grid { blocks: solver.grid.blocks.min(at_once), threads: THREADS } })
    }
}

impl Shape for Persistent<'_> {
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        let super::Problem { size, sweeps, steps, coupling } = solver.problem;
        let arguments =
            (solver.a.ptr(), solver.b.ptr(), solver.state.ptr(), size, steps, coupling, sweeps, goal.give_up());
        solver.solve_persistent.launch_cooperative(&self.stream, self.grid, &arguments)?;
        Ok(())
    }
}

/// `none`: what the work costs when nothing has to be known.
struct NoReadback<'g> {
    stream: Stream<'g>,
}

impl Shape for NoReadback<'_> {
    fn solve(&mut self, solver: &Solver<'_>, goal: Goal) -> Result<(), WorkloadError> {
        for _ in 0..goal.iterations {
            solver.launch_iteration(&self.stream, DevicePtr::NULL)?;
        }
        Ok(())
    }
}
