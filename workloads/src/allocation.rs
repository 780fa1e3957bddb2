//! `allocation`: each iteration needs scratch memory on the device.

use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;

use crate::arithmetic::{repeated, start, stir};
use crate::catalogue::{OptionInfo, VariantInfo, WorkloadInfo};
use crate::gpu::{DeviceBuffer, Gpu, Module, Place, PooledBuffer, Stream};
use crate::outcome::checked_answer;
use crate::stir_all::{self, StirAll, THREADS};
use crate::{CudaError, Outcome, RunSpec, WorkloadError};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "allocation",
    summary: "iterations of two kernels that need scratch memory between them",
    variants: &[
        VariantInfo::new("malloc", "allocated and freed in each iteration: freeing waits for the device"),
        VariantInfo::new("pool", "allocated and freed in each iteration in the order of the stream, from its pool"),
        VariantInfo::new("reuse", "allocated once"),
    ],
    options: &[SIZE, STEPS, ITERATIONS, WARMUP],
    run,
};

const SIZE: OptionInfo = OptionInfo::new("size", 1 << 20, 256, 1 << 26, "numbers").multiple_of(THREADS as u64);
const STEPS: OptionInfo =
    OptionInfo::new("kernel-steps", 100, 1, 100_000_000, "steps of each kernel's inner loop: how long a kernel is");
const ITERATIONS: OptionInfo = OptionInfo::new("iterations", 200, 1, 10_000, "iterations");
const WARMUP: OptionInfo = OptionInfo::new("warmup", 20, 0, 10_000, "iterations before");

/// The rates of the two kernels.
const RATES: [f32; 2] = [3.9, 3.8];

/// A variant of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Malloc,
    Pool,
    Reuse,
}

impl Variant {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "malloc" => Self::Malloc,
            "pool" => Self::Pool,
            "reuse" => Self::Reuse,
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
    steps: u32,
}

impl Work<'_> {
    /// Sets the start, and waits until it is there.
    fn reset(&self) -> Result<(), CudaError> {
        self.numbers.write(&repeated(&start(0), self.size as usize))?;
        self.gpu.synchronize()
    }

    fn launch_both(&self, scratch: &impl Place<f32>) -> Result<(), CudaError> {
        let Self { stir_all, stream, numbers, size, steps, .. } = self;
        stir_all.launch(stream, (numbers, scratch), *size, RATES[0], *steps)?;
        stir_all.launch(stream, (scratch, numbers), *size, RATES[1], *steps)
    }

    fn run(&self, scratch: &Scratch<'_>, iterations: u32) -> Result<(), CudaError> {
        for _ in 0..iterations {
            // What is allocated here is freed at the end of its line.
            match scratch {
                Scratch::Malloc => self.launch_both(&DeviceBuffer::new(self.gpu, self.size as usize)?)?,
                Scratch::Pool => self.launch_both(&PooledBuffer::new(&self.stream, self.size as usize)?)?,
                Scratch::Reuse(scratch) => self.launch_both(scratch)?,
            }
        }
        Ok(())
    }
}

/// Where scratch memory comes from.
enum Scratch<'g> {
    Malloc,
    Pool,
    Reuse(DeviceBuffer<'g, f32>),
}

fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    let variant = spec.choose(Variant::from_name)?;
    let (size, steps) = (spec.get_u32(&SIZE), spec.get_u32(&STEPS));
    let (iterations, warmup) = (spec.get_u32(&ITERATIONS), spec.get_u32(&WARMUP));
    let gpu = Gpu::open()?;
    let module = Module::load(&gpu, stir_all::PTX)?;
    let work = Work {
        gpu: &gpu,
        stir_all: StirAll::new(&module)?,
        stream: Stream::non_blocking(&gpu)?,
        numbers: DeviceBuffer::new(&gpu, size as usize)?,
        size,
        steps,
    };
    let scratch = match variant {
        Variant::Malloc => Scratch::Malloc,
        Variant::Pool if gpu.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 => {
            let reason = "the GPU or its driver has no memory pools".to_owned();
            return Err(WorkloadError::Unsupported { variant: spec.variant(), reason });
        }
        Variant::Pool => Scratch::Pool,
        Variant::Reuse => Scratch::Reuse(DeviceBuffer::new(&gpu, size as usize)?),
    };

    work.reset()?;
    work.run(&scratch, warmup)?;
    gpu.synchronize()?;
    work.reset()?;
    let measured = gpu.measure(|| Ok(work.run(&scratch, iterations)?))?;

    let answer = checked_answer(&work.numbers, size, &reference(iterations, steps))?;
    Ok(Outcome::new(&gpu, iterations.into(), warmup.into(), measured, answer))
}

/// One period of the numbers at the end, on the host.
fn reference(iterations: u32, steps: u32) -> Vec<f32> {
    let iteration = |x| RATES.iter().fold(x, |x, &rate| stir(x, rate, steps));
    start(0).into_iter().map(|x| (0..iterations).fold(x, |x, _| iteration(x))).collect()
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
    fn a_lost_iteration_would_show() {
        assert!(first_difference(&reference(200, 100), &reference(199, 100)).is_some());
    }
}
