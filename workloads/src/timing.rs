//! `timing`: a program that wants to know how long each of its steps takes.

use std::time::Instant;

use crate::arithmetic::{repeated, start, stir};
use crate::catalogue::{OptionInfo, VariantInfo, WorkloadInfo};
use crate::gpu::{DeviceBuffer, Event, Gpu, Module, Stream};
use crate::outcome::checked_answer;
use crate::stir_all::{self, StirAll, THREADS};
use crate::{CudaError, Outcome, RunSpec, WorkloadError};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "timing",
    summary: "steps of a few kernels, each step timed",
    variants: &[
        VariantInfo::new("device-sync", "the host's clock before and after each step, with device synchronisations"),
        VariantInfo::new("events", "an event before and after each step, read after one wait at the end"),
        VariantInfo::new("none", "not timed"),
    ],
    options: &[SIZE, KERNELS, STEPS, ITERATIONS, WARMUP],
    run,
};

const SIZE: OptionInfo = OptionInfo::new("size", 65_536, 256, 1 << 26, "numbers").multiple_of(THREADS as u64);
const KERNELS: OptionInfo = OptionInfo::new("kernels-per-step", 4, 1, 64, "kernels in a step");
const STEPS: OptionInfo =
    OptionInfo::new("kernel-steps", 500, 1, 100_000_000, "steps of each kernel's inner loop: how long a kernel is");
const ITERATIONS: OptionInfo = OptionInfo::new("iterations", 200, 1, 10_000, "steps");
const WARMUP: OptionInfo = OptionInfo::new("warmup", 20, 0, 10_000, "steps before");

/// The rate of every kernel.
const RATE: f32 = 3.9;

/// A variant of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    DeviceSync,
    Events,
    None,
}

impl Variant {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "device-sync" => Self::DeviceSync,
            "events" => Self::Events,
            "none" => Self::None,
            _ => return None,
        })
    }
}

struct Work<'g> {
    gpu: &'g Gpu,
    stir_all: StirAll<'g>,
    stream: Stream<'g>,
    numbers: DeviceBuffer<'g, f32>,
    size: u32,
    kernels: u32,
    steps: u32,
    /// Two for each step of the longest run, if steps are timed with events.
    events: Vec<(Event<'g>, Event<'g>)>,
}

impl Work<'_> {
    /// Sets the start, and waits until it is there.
    fn reset(&self) -> Result<(), CudaError> {
        self.numbers.write(&repeated(&start(0), self.size as usize))?;
        self.gpu.synchronize()
    }

    fn step(&self) -> Result<(), CudaError> {
        let Self { stir_all, stream, numbers, size, steps, .. } = self;
        (0..self.kernels).try_for_each(|_| stir_all.launch(stream, (numbers, numbers), *size, RATE, *steps))
    }

    /// Runs steps; gives the milliseconds that each took, if they are timed.
    fn run(&self, variant: Variant, iterations: u32) -> Result<Vec<f64>, CudaError> {
        let mut times = Vec::with_capacity(iterations as usize);
        match variant {
            Variant::DeviceSync => {
                for _ in 0..iterations {
                    self.gpu.synchronize()?;
                    let start = Instant::now();
                    self.step()?;
                    self.gpu.synchronize()?;
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
            }
            Variant::Events => {
                let events = self.events.iter().take(iterations as usize);
                for (before, after) in events.clone() {
                    before.record(&self.stream)?;
                    self.step()?;
                    after.record(&self.stream)?;
                }
                self.stream.synchronize()?;
                for (before, after) in events {
                    times.push(after.milliseconds_since(before)?.into());
                }
            }
            Variant::None => (0..iterations).try_for_each(|_| self.step())?,
        }
        Ok(times)
    }
}

fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    let variant = spec.choose(Variant::from_name)?;
    let (size, kernels, steps) = (spec.get_u32(&SIZE), spec.get_u32(&KERNELS), spec.get_u32(&STEPS));
    let (iterations, warmup) = (spec.get_u32(&ITERATIONS), spec.get_u32(&WARMUP));
    let gpu = Gpu::open()?;
    let module = Module::load(&gpu, stir_all::PTX)?;
    let events = if variant == Variant::Events { iterations.max(warmup) } else { 0 };
    let work = Work {
        gpu: &gpu,
        stir_all: StirAll::new(&module)?,
        stream: Stream::non_blocking(&gpu)?,
        numbers: DeviceBuffer::new(&gpu, size as usize)?,
        size,
        kernels,
        steps,
        events: (0..events)
            .map(|_| Ok((Event::timed(&gpu)?, Event::timed(&gpu)?)))
            .collect::<Result<_, CudaError>>()?,
    };

    work.reset()?;
    work.run(variant, warmup)?;
    gpu.synchronize()?;
    work.reset()?;
    let mut times = Vec::new();
    let measured = gpu.measure(|| {
        times = work.run(variant, iterations)?;
        Ok(())
    })?;

    check_times(&times, measured.wall_ns)?;
    let answer = checked_answer(&work.numbers, size, &reference(iterations, kernels, steps))?;
    Ok(Outcome::new(&gpu, iterations.into(), warmup.into(), measured, answer))
}

/// Steps follow one another, so they cannot have taken longer than all of them together. The device's clock may
/// differ from the host's by a little.
fn check_times(milliseconds: &[f64], wall_ns: u64) -> Result<(), WorkloadError> {
    let sum: f64 = milliseconds.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "a comparison with a margin")]
    let wall = wall_ns as f64 / 1e6;
    if milliseconds.iter().all(|&time| time >= 0.0) && sum <= wall * 1.02 {
        Ok(())
    } else {
        Err(WorkloadError::WrongAnswer(format!(
            "steps that took {sum} ms in {wall} ms, or a step that took less than none"
        )))
    }
}

/// One period of the numbers at the end, on the host.
fn reference(iterations: u32, kernels: u32, steps: u32) -> Vec<f32> {
    let total = u64::from(iterations) * u64::from(kernels);
    start(0).into_iter().map(|x| (0..total).fold(x, |x, _| stir(x, RATE, steps))).collect()
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
    fn impossible_times_are_refused() {
        assert!(check_times(&[], 1_000).is_ok());
        assert!(check_times(&[0.4, 0.5], 1_000_000).is_ok());
        assert!(check_times(&[0.6, 0.6], 1_000_000).is_err());
        assert!(check_times(&[0.4, -0.1], 1_000_000).is_err());
        assert!(check_times(&[0.4, f64::NAN], 1_000_000).is_err());
    }

    #[test]
    fn a_lost_kernel_would_show() {
        assert!(first_difference(&reference(200, 4, 500), &reference(200, 3, 500)).is_some());
    }
}
