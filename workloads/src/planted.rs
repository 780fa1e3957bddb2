//! `planted`: loops in which the device idles for one known reason each.
//!
//! Every variant stirs the same numbers equally often. Kernels are of two lengths, but [`SETTLED`] steps reach what
//! all further ones keep, so the answers agree.

use std::time::{Duration, Instant};

use crate::arithmetic::{repeated, start, stir};
use crate::catalogue::{OptionInfo, VariantInfo, WorkloadInfo};
use crate::gpu::{DeviceBuffer, Event, Gpu, Graph, GraphExec, HostBuffer, Module, Stream};
use crate::outcome::checked_answer;
use crate::stir_all::{self, StirAll, THREADS};
use crate::{CudaError, Outcome, RunSpec, WorkloadError};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "planted",
    summary: "one planted cause of idle time each, to test what a tool says about them",
    variants: &[
        VariantInfo::new("sync", "a stream synchronisation after each launch"),
        VariantInfo::new("blocking-copy", "a blocking copy of 4 bytes to the host after each launch"),
        VariantInfo::new("allocation", "device memory allocated before each launch and freed after it"),
        VariantInfo::new("module-load", "the kernel's module loaded anew before each launch"),
        VariantInfo::new("launch-bound", "kernels shorter than their launches, no waiting"),
        VariantInfo::new("host-bound", "the host computes after each launch for longer than the kernel, no waiting"),
        VariantInfo::new("dependency", "two streams in turn, each waiting for the other's event, launched far ahead"),
        VariantInfo::new("graph-internal", "chains of short kernels as a graph, launched far ahead"),
        VariantInfo::new("pageable-copy", "a copy called asynchronous, but of pageable memory, before each launch"),
        VariantInfo::new("default-stream", "every other kernel on the legacy default stream, launched far ahead"),
    ],
    options: &[SIZE, STEPS, SHORT_STEPS, HOLD_STEPS, HOST, ITERATIONS, WARMUP],
    run,
};

/// Steps after which a number that is stirred here does not change any more.
const SETTLED: u64 = 64;

const SIZE: OptionInfo = OptionInfo::new("size", 8_192, 256, 1 << 26, "numbers").multiple_of(THREADS as u64);
const STEPS: OptionInfo =
    OptionInfo::new("kernel-steps", 4_000, SETTLED, 100_000_000, "steps of a kernel's inner loop: how long it is");
const SHORT_STEPS: OptionInfo =
    OptionInfo::new("short-steps", 100, SETTLED, 100_000_000, "the same in launch-bound and graph-internal");
const HOLD_STEPS: OptionInfo = OptionInfo::new(
    "hold-steps",
    5_000,
    1,
    100_000,
    "steps per iteration of the kernel that holds the device while the host launches far ahead",
);
const HOST: OptionInfo =
    OptionInfo::new("host-us", 300, 0, 1_000_000, "microseconds that the host computes for after a launch");
const ITERATIONS: OptionInfo = OptionInfo::new("iterations", 300, 1, 10_000, "kernels");
const WARMUP: OptionInfo = OptionInfo::new("warmup", 20, 0, 10_000, "kernels before");

/// The rate of every kernel.
const RATE: f32 = 3.9;
/// Numbers that `allocation` makes room for: so many that the driver does not have the room at hand.
const ALLOCATED: usize = 1 << 21;
/// Numbers that `pageable-copy` copies: too many for the driver to put them aside at once.
const COPIED: usize = 1 << 20;
/// The most kernels in a graph.
const CHAIN: u32 = 100;

/// A variant of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Sync,
    BlockingCopy,
    Allocation,
    ModuleLoad,
    LaunchBound,
    HostBound,
    Dependency,
    GraphInternal,
    PageableCopy,
    DefaultStream,
}

impl Variant {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "sync" => Self::Sync,
            "blocking-copy" => Self::BlockingCopy,
            "allocation" => Self::Allocation,
            "module-load" => Self::ModuleLoad,
            "launch-bound" => Self::LaunchBound,
            "host-bound" => Self::HostBound,
            "dependency" => Self::Dependency,
            "graph-internal" => Self::GraphInternal,
            "pageable-copy" => Self::PageableCopy,
            "default-stream" => Self::DefaultStream,
            _ => return None,
        })
    }

    /// How long its kernels are.
    fn steps(self, spec: &RunSpec) -> u32 {
        spec.get_u32(if matches!(self, Self::LaunchBound | Self::GraphInternal) { &SHORT_STEPS } else { &STEPS })
    }
}

/// The numbers, and the kernel for them.
struct Work<'g> {
    gpu: &'g Gpu,
    stir_all: StirAll<'g>,
    numbers: DeviceBuffer<'g, f32>,
    /// What the kernel that holds the device works on.
    held: DeviceBuffer<'g, f32>,
    size: u32,
    steps: u32,
    hold_steps: u32,
}

impl Work<'_> {
    /// Sets the start, and waits until it is there.
    fn reset(&self) -> Result<(), CudaError> {
        self.numbers.write(&repeated(&start(0), self.size as usize))?;
        self.gpu.synchronize()
    }

    fn launch(&self, stream: &Stream<'_>) -> Result<(), CudaError> {
        self.launch_with(&self.stir_all, stream)
    }

    fn launch_with(&self, stir_all: &StirAll<'_>, stream: &Stream<'_>) -> Result<(), CudaError> {
        stir_all.launch(stream, (&self.numbers, &self.numbers), self.size, RATE, self.steps)
    }

    /// Keeps the stream busy for longer than the host needs to launch that many kernels.
    fn hold(&self, stream: &Stream<'_>, iterations: u32) -> Result<(), CudaError> {
        let steps = self.hold_steps.saturating_mul(iterations);
        self.stir_all.launch(stream, (&self.held, &self.held), THREADS, RATE, steps)
    }
}

/// A variant, ready to run a number of iterations.
enum Plant<'g> {
    Sync(Stream<'g>),
    BlockingCopy(Stream<'g>),
    Allocation(Stream<'g>),
    /// With the modules that were loaded: a kernel that may still run needs its own.
    ModuleLoad(Stream<'g>, Vec<Module<'g>>),
    LaunchBound(Stream<'g>),
    HostBound(Stream<'g>, Duration),
    Dependency([(Stream<'g>, Event<'g>); 2]),
    GraphInternal(Stream<'g>, Chains<'g>),
    PageableCopy(Stream<'g>, HostBuffer<'g, f32>, DeviceBuffer<'g, f32>),
    DefaultStream {
        legacy: Stream<'g>,
        ordinary: [Stream<'g>; 2],
    },
}

impl<'g> Plant<'g> {
    fn new(variant: Variant, work: &Work<'g>, spec: &RunSpec, iterations: u32) -> Result<Self, CudaError> {
        let gpu = work.gpu;
        let stream = || Stream::non_blocking(gpu);
        Ok(match variant {
            Variant::Sync => Self::Sync(stream()?),
            Variant::BlockingCopy => Self::BlockingCopy(Stream::legacy_default(gpu)),
            Variant::Allocation => Self::Allocation(stream()?),
            Variant::ModuleLoad => Self::ModuleLoad(stream()?, Vec::with_capacity(iterations as usize)),
            Variant::LaunchBound => Self::LaunchBound(stream()?),
            Variant::HostBound => Self::HostBound(stream()?, Duration::from_micros(spec.get(&HOST))),
            Variant::Dependency => Self::Dependency([(stream()?, Event::new(gpu)?), (stream()?, Event::new(gpu)?)]),
            Variant::GraphInternal => {
                let stream = stream()?;
                let chains = Chains::new(work, &stream, iterations)?;
                Self::GraphInternal(stream, chains)
            }
            Variant::PageableCopy => {
                Self::PageableCopy(stream()?, HostBuffer::pageable(gpu, COPIED), DeviceBuffer::new(gpu, COPIED)?)
            }
            Variant::DefaultStream => Self::DefaultStream {
                legacy: Stream::legacy_default(gpu),
                ordinary: [Stream::blocking(gpu)?, Stream::blocking(gpu)?],
            },
        })
    }

    fn run(&mut self, work: &Work<'g>, iterations: u32) -> Result<(), CudaError> {
        let mut each = 0..iterations;
        match self {
            Self::Sync(stream) => each.try_for_each(|_| {
                work.launch(stream)?;
                stream.synchronize()
            }),
            Self::BlockingCopy(stream) => each.try_for_each(|_| {
                work.launch(stream)?;
                work.numbers.read(&mut [0.0])
            }),
            Self::Allocation(stream) => each.try_for_each(|_| {
                let _freed_at_the_end = DeviceBuffer::<f32>::new(work.gpu, ALLOCATED)?;
                work.launch(stream)
            }),
            Self::ModuleLoad(stream, modules) => each.try_for_each(|_| {
                let module = Module::load(work.gpu, stir_all::PTX)?;
                work.launch_with(&StirAll::new(&module)?, stream)?;
                modules.push(module);
                Ok(())
            }),
            Self::LaunchBound(stream) => each.try_for_each(|_| work.launch(stream)),
            Self::HostBound(stream, time) => each.try_for_each(|_| {
                work.launch(stream)?;
                compute_for(*time);
                Ok(())
            }),
            Self::Dependency([(first, of_first), (second, of_second)]) => {
                work.hold(first, iterations)?;
                each.try_for_each(|iteration| {
                    let (from, event, to) = if iteration % 2 == 0 {
                        (&*first, &*of_first, &*second)
                    } else {
                        (&*second, &*of_second, &*first)
                    };
                    event.record(from)?;
                    to.wait(event)?;
                    work.launch(to)
                })
            }
            Self::GraphInternal(stream, chains) => {
                work.hold(stream, iterations)?;
                chains.launch(stream)
            }
            Self::PageableCopy(stream, from, to) => each.try_for_each(|_| {
                to.upload_async(from, 0, COPIED, stream)?;
                work.launch(stream)
            }),
            Self::DefaultStream { legacy, ordinary: [first, second] } => {
                work.hold(first, iterations)?;
                // The default stream is between the other two, so that one order is possible only.
                each.try_for_each(|iteration| {
                    work.launch(match iteration % 4 {
                        0 | 2 => legacy,
                        1 => second,
                        _ => first,
                    })
                })
            }
        }
    }
}

/// Kernels one after the other as a graph of at most [`CHAIN`], launched as often as that goes, and one with the rest.
struct Chains<'g> {
    whole: Option<GraphExec<'g>>,
    launches: u32,
    rest: Option<GraphExec<'g>>,
}

impl<'g> Chains<'g> {
    fn new(work: &Work<'g>, stream: &Stream<'g>, kernels: u32) -> Result<Self, CudaError> {
        let chain = |kernels: u32| {
            if kernels == 0 {
                return Ok(None);
            }
            let exec = Graph::capture(stream, || (0..kernels).try_for_each(|_| work.launch(stream)))?.instantiate()?;
            exec.upload(stream)?;
            Ok(Some(exec))
        };
        let launches = kernels / CHAIN;
        Ok(Self { whole: if launches > 0 { chain(CHAIN)? } else { None }, launches, rest: chain(kernels % CHAIN)? })
    }

    fn launch(&self, stream: &Stream<'_>) -> Result<(), CudaError> {
        if let Some(whole) = &self.whole {
            (0..self.launches).try_for_each(|_| whole.launch(stream))?;
        }
        self.rest.as_ref().map_or(Ok(()), |rest| rest.launch(stream))
    }
}

/// Keeps this thread computing, without a call of the driver.
fn compute_for(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    let variant = spec.choose(Variant::from_name)?;
    let (size, steps) = (spec.get_u32(&SIZE), variant.steps(spec));
    let (iterations, warmup) = (spec.get_u32(&ITERATIONS), spec.get_u32(&WARMUP));
    let gpu = Gpu::open()?;
    let module = Module::load(&gpu, stir_all::PTX)?;
    let work = Work {
        gpu: &gpu,
        stir_all: StirAll::new(&module)?,
        numbers: DeviceBuffer::new(&gpu, size as usize)?,
        held: DeviceBuffer::new(&gpu, THREADS as usize)?,
        size,
        steps,
        hold_steps: spec.get_u32(&HOLD_STEPS),
    };
    work.held.write(&repeated(&start(1), THREADS as usize))?;

    work.reset()?;
    let mut before = Plant::new(variant, &work, spec, warmup)?;
    before.run(&work, warmup)?;
    gpu.synchronize()?;
    let mut plant = Plant::new(variant, &work, spec, iterations)?;
    work.reset()?;
    let measured = gpu.measure(|| Ok(plant.run(&work, iterations)?))?;

    let answer = checked_answer(&work.numbers, size, &reference(iterations, steps))?;
    Ok(Outcome::new(&gpu, iterations.into(), warmup.into(), measured, answer))
}

/// One period of the numbers at the end, on the host.
fn reference(iterations: u32, steps: u32) -> Vec<f32> {
    start(0).into_iter().map(|x| (0..iterations).fold(x, |x, _| stir(x, RATE, steps))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::first_difference;

    #[test]
    fn every_variant_of_the_catalogue_is_one() {
        assert!(INFO.variants.iter().all(|variant| Variant::from_name(variant.name).is_some()));
        assert_eq!(Variant::from_name("nonsense"), None);
    }

    #[test]
    fn kernels_of_every_length_give_the_same_numbers() {
        let settled = u32::try_from(SETTLED).unwrap();
        for iterations in [1, 20, 300, 10_000] {
            let base = reference(iterations, settled);
            assert!([settled + 1, 100, 4_000].iter().all(|&steps| reference(iterations, steps) == base));
        }
    }

    #[test]
    fn a_lost_kernel_would_show() {
        assert!(first_difference(&reference(300, 100), &reference(299, 100)).is_some());
    }
}
