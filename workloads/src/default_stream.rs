//! `default-stream`: independent work on three streams, one of which is a default stream.

use crate::arithmetic::{first_difference, repeated, start, stir};
use crate::catalogue::{OptionInfo, VariantInfo, WorkloadInfo};
use crate::gpu::{DeviceBuffer, Gpu, Module, Stream};
use crate::outcome::hash_floats;
use crate::stir_all::{self, StirAll, THREADS};
use crate::{CudaError, Outcome, RunSpec, WorkloadError};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "default-stream",
    summary: "independent work on two streams and, between them, on a default stream",
    variants: &[
        VariantInfo::new("legacy", "the legacy default stream between two ordinary streams: they wait for each other"),
        VariantInfo::new("non-blocking", "the legacy default stream between two non-blocking streams: all overlap"),
        VariantInfo::new("per-thread", "the per-thread default stream between two ordinary streams: all overlap"),
    ],
    options: &[SIZE, STEPS, ITERATIONS, WARMUP],
    run,
};

const SIZE: OptionInfo = OptionInfo::new("size", 8_192, 256, 1 << 26, "numbers per stream; few leave room to overlap")
    .multiple_of(THREADS as u64);
const STEPS: OptionInfo =
    OptionInfo::new("kernel-steps", 3_000, 1, 100_000_000, "steps of each kernel's inner loop: how long a kernel is");
const ITERATIONS: OptionInfo = OptionInfo::new("iterations", 200, 1, 10_000, "kernels on each stream");
const WARMUP: OptionInfo = OptionInfo::new("warmup", 20, 0, 10_000, "kernels on each stream before");

/// The rate of every kernel.
const RATE: f32 = 3.9;

/// A variant of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Legacy,
    NonBlocking,
    PerThread,
}

impl Variant {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "legacy" => Self::Legacy,
            "non-blocking" => Self::NonBlocking,
            "per-thread" => Self::PerThread,
            _ => return None,
        })
    }

    /// The three streams in the order of launching; the default stream is the second.
    fn streams(self, gpu: &Gpu) -> Result<[Stream<'_>; 3], CudaError> {
        Ok(match self {
            Self::Legacy => [Stream::blocking(gpu)?, Stream::legacy_default(gpu), Stream::blocking(gpu)?],
            Self::NonBlocking => [Stream::non_blocking(gpu)?, Stream::legacy_default(gpu), Stream::non_blocking(gpu)?],
            Self::PerThread => [Stream::blocking(gpu)?, Stream::per_thread_default(gpu), Stream::blocking(gpu)?],
        })
    }
}

fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    let variant = spec.choose(Variant::from_name)?;
    let (size, steps) = (spec.get_u32(&SIZE), spec.get_u32(&STEPS));
    let (iterations, warmup) = (spec.get_u32(&ITERATIONS), spec.get_u32(&WARMUP));
    let gpu = Gpu::open()?;
    let module = Module::load(&gpu, stir_all::PTX)?;
    let stir_all = StirAll::new(&module)?;
    let streams = variant.streams(&gpu)?;
    let numbers = [0, 1, 2].map(|_| DeviceBuffer::<f32>::new(&gpu, size as usize));
    let [first, second, third] = numbers;
    let numbers = [first?, second?, third?];

    let reset = || {
        for (seed, numbers) in (0..).zip(&numbers) {
            numbers.write(&repeated(&start(seed), size as usize))?;
        }
        gpu.synchronize()
    };
    let work = |iterations| {
        for _ in 0..iterations {
            for (stream, numbers) in streams.iter().zip(&numbers) {
                stir_all.launch(stream, (numbers, numbers), size, RATE, steps)?;
            }
        }
        Ok::<_, WorkloadError>(())
    };
    reset()?;
    work(warmup)?;
    gpu.synchronize()?;
    reset()?;
    let measured = gpu.measure(|| work(iterations))?;

    let mut all = Vec::new();
    for (seed, numbers) in (0..).zip(&numbers) {
        let mut found = vec![0.0; size as usize];
        numbers.read(&mut found)?;
        if let Some(difference) = first_difference(&found, &reference(seed, iterations, steps)) {
            return Err(WorkloadError::WrongAnswer(format!("on stream {seed}, {difference}")));
        }
        all.append(&mut found);
    }
    Ok(Outcome::new(&gpu, iterations.into(), warmup.into(), measured, hash_floats(&all)))
}

/// One period of a stream's numbers at the end, on the host.
fn reference(seed: u32, iterations: u32, steps: u32) -> Vec<f32> {
    start(seed).into_iter().map(|x| (0..iterations).fold(x, |x, _| stir(x, RATE, steps))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_of_the_catalogue_is_one() {
        assert!(INFO.variants.iter().all(|variant| Variant::from_name(variant.name).is_some()));
        assert_eq!(Variant::from_name("nonsense"), None);
    }

    #[test]
    fn a_lost_kernel_or_a_swapped_stream_would_show() {
        let base = reference(0, 200, 3_000);
        assert!(first_difference(&base, &reference(0, 199, 3_000)).is_some());
        assert!(first_difference(&base, &reference(1, 200, 3_000)).is_some());
    }
}
