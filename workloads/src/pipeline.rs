//! `pipeline`: chunks are copied to the device, worked on and copied back.
//!
//! The whole input and output lie in host memory, pageable or pinned as the variant says. With several streams each
//! has its own room on the device, so that its order alone keeps a chunk from overwriting the one before.

use crate::arithmetic::{first_difference, repeated, start, stir};
use crate::catalogue::{OptionInfo, VariantInfo, WorkloadInfo};
use crate::gpu::{DeviceBuffer, Event, Gpu, Graph, GraphExec, HostBuffer, Module, Stream};
use crate::outcome::hash_floats;
use crate::stir_all::{self, StirAll, THREADS};
use crate::{CudaError, Outcome, RunSpec, WorkloadError};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "pipeline",
    summary: "chunks of data copied to the device, worked on, and copied back",
    variants: &[
        VariantInfo::new("serial", "blocking copies of pageable memory, one chunk after the other"),
        VariantInfo::new("async-pageable", "copies called asynchronous, but of pageable memory; one stream"),
        VariantInfo::new("async-pinned", "asynchronous copies of pinned memory; one stream"),
        VariantInfo::new("streams-2", "two streams in turn, pinned memory: copies and kernels overlap"),
        VariantInfo::new("streams-4", "four streams in turn, pinned memory"),
        VariantInfo::new("graph", "the work of streams-4 as one graph with a fork and a join"),
    ],
    options: &[CHUNKS, CHUNK_SIZE, STEPS, WARMUP],
    run,
};

const CHUNKS: OptionInfo = OptionInfo::new("chunks", 64, 1, 256, "chunks");
const CHUNK_SIZE: OptionInfo =
    OptionInfo::new("chunk-size", 262_144, 256, 1 << 22, "numbers of 4 bytes in a chunk").multiple_of(THREADS as u64);
const STEPS: OptionInfo =
    OptionInfo::new("kernel-steps", 1_000, 1, 100_000_000, "steps of the kernel's inner loop: how long it is");
const WARMUP: OptionInfo = OptionInfo::new("warmup", 1, 0, 100, "passes over all chunks before");

/// The rate of the kernel.
const RATE: f32 = 3.9;

/// A variant of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Serial,
    AsyncPageable,
    AsyncPinned,
    Streams(usize),
    Graph,
}

impl Variant {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "serial" => Self::Serial,
            "async-pageable" => Self::AsyncPageable,
            "async-pinned" => Self::AsyncPinned,
            "streams-2" => Self::Streams(2),
            "streams-4" => Self::Streams(4),
            "graph" => Self::Graph,
            _ => return None,
        })
    }

    fn is_pinned(self) -> bool {
        !matches!(self, Self::Serial | Self::AsyncPageable)
    }

    fn streams(self) -> usize {
        match self {
            Self::Serial | Self::AsyncPageable | Self::AsyncPinned => 1,
            Self::Streams(streams) => streams,
            Self::Graph => 4,
        }
    }
}

/// A stream with its room on the device.
struct Track<'g> {
    stream: Stream<'g>,
    from: DeviceBuffer<'g, f32>,
    to: DeviceBuffer<'g, f32>,
    finished: Event<'g>,
}

struct Work<'g> {
    stir_all: StirAll<'g>,
    input: HostBuffer<'g, f32>,
    output: HostBuffer<'g, f32>,
    chunks: usize,
    chunk_size: usize,
    steps: u32,
    tracks: Vec<Track<'g>>,
    forked: Event<'g>,
}

impl<'g> Work<'g> {
    fn new(gpu: &'g Gpu, module: &'g Module<'g>, variant: Variant, spec: &RunSpec) -> Result<Self, CudaError> {
        let (chunks, chunk_size) = (spec.get_u32(&CHUNKS) as usize, spec.get_u32(&CHUNK_SIZE) as usize);
        let host =
            |len| if variant.is_pinned() { HostBuffer::pinned(gpu, len) } else { Ok(HostBuffer::pageable(gpu, len)) };
        let track = |_| {
            Ok(Track {
                stream: match variant {
                    Variant::Serial => Stream::legacy_default(gpu),
                    _ => Stream::non_blocking(gpu)?,
                },
                from: DeviceBuffer::new(gpu, chunk_size)?,
                to: DeviceBuffer::new(gpu, chunk_size)?,
                finished: Event::new(gpu)?,
            })
        };
        let work = Self {
            stir_all: StirAll::new(module)?,
            input: host(chunks * chunk_size)?,
            output: host(chunks * chunk_size)?,
            chunks,
            chunk_size,
            steps: spec.get_u32(&STEPS),
            tracks: (0..variant.streams()).map(track).collect::<Result<_, CudaError>>()?,
            forked: Event::new(gpu)?,
        };
        for chunk in 0..chunks {
            work.input.set_all(chunk * chunk_size, &repeated(&start(seed(chunk)), chunk_size));
        }
        Ok(work)
    }

    /// Sees to it that no output of an earlier pass is taken for one of the next.
    fn forget_output(&self) {
        self.output.set_all(0, &vec![0.0; self.chunks * self.chunk_size]);
    }

    fn stir(&self, track: &Track<'_>) -> Result<(), CudaError> {
        let size = u32::try_from(self.chunk_size).unwrap_or(u32::MAX);
        self.stir_all.launch(&track.stream, (&track.from, &track.to), size, RATE, self.steps)
    }

    /// One chunk after the other with blocking copies.
    fn run_blocking(&self) -> Result<(), CudaError> {
        let track = &self.tracks[0];
        for chunk in 0..self.chunks {
            let at = chunk * self.chunk_size;
            track.from.upload(&self.input, at, self.chunk_size)?;
            self.stir(track)?;
            track.to.download(&self.output, at, self.chunk_size)?;
        }
        Ok(())
    }

    /// All chunks in turn on the streams, without waiting.
    fn enqueue(&self) -> Result<(), CudaError> {
        for (chunk, track) in (0..self.chunks).zip(self.tracks.iter().cycle()) {
            let at = chunk * self.chunk_size;
            track.from.upload_async(&self.input, at, self.chunk_size, &track.stream)?;
            self.stir(track)?;
            track.to.download_async(&self.output, at, self.chunk_size, &track.stream)?;
        }
        Ok(())
    }

    /// The same as a graph: the first stream is forked to the others, which join it at the end.
    fn capture(&self) -> Result<Graph<'g>, CudaError> {
        let (first, others) = (&self.tracks[0], &self.tracks[1..]);
        Graph::capture(&first.stream, || {
            self.forked.record(&first.stream)?;
            others.iter().try_for_each(|track| track.stream.wait(&self.forked))?;
            self.enqueue()?;
            others.iter().try_for_each(|track| {
                track.finished.record(&track.stream)?;
                first.stream.wait(&track.finished)
            })
        })
    }

    /// Compares the output with the host's, bit for bit.
    fn check(&self) -> Result<String, WorkloadError> {
        let output = self.output.to_vec();
        for (chunk, found) in output.chunks(self.chunk_size).enumerate() {
            let expected: Vec<f32> = start(seed(chunk)).into_iter().map(|x| stir(x, RATE, self.steps)).collect();
            if let Some(difference) = first_difference(found, &expected) {
                return Err(WorkloadError::WrongAnswer(format!("in chunk {chunk}, {difference}")));
            }
        }
        Ok(hash_floats(&output))
    }
}

/// Every chunk has its own numbers.
fn seed(chunk: usize) -> u32 {
    u32::try_from(chunk).unwrap_or(u32::MAX)
}

/// A variant, ready to run.
enum Shape<'g> {
    Blocking,
    Streams,
    Graph(GraphExec<'g>),
}

impl Shape<'_> {
    fn run(&self, work: &Work<'_>) -> Result<(), CudaError> {
        match self {
            Self::Blocking => work.run_blocking(),
            Self::Streams => work.enqueue(),
            Self::Graph(graph) => graph.launch(&work.tracks[0].stream),
        }
    }
}

fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    let variant = spec.choose(Variant::from_name)?;
    let gpu = Gpu::open()?;
    let module = Module::load(&gpu, stir_all::PTX)?;
    let work = Work::new(&gpu, &module, variant, spec)?;
    let shape = match variant {
        Variant::Serial => Shape::Blocking,
        Variant::AsyncPageable | Variant::AsyncPinned | Variant::Streams(_) => Shape::Streams,
        Variant::Graph => {
            let graph = work.capture()?.instantiate()?;
            graph.upload(&work.tracks[0].stream)?;
            Shape::Graph(graph)
        }
    };

    let warmup = spec.get(&WARMUP);
    (0..warmup).try_for_each(|_| shape.run(&work))?;
    gpu.synchronize()?;
    work.forget_output();
    let measured = gpu.measure(|| Ok(shape.run(&work)?))?;
    let answer = work.check()?;
    let chunks = work.chunks as u64;
    Ok(Outcome::new(&gpu, chunks, warmup * chunks, measured, answer))
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
    fn only_the_variants_that_say_so_use_pageable_memory() {
        for variant in INFO.variants {
            let pinned = Variant::from_name(variant.name).is_some_and(Variant::is_pinned);
            assert_eq!(pinned, !variant.summary.contains("pageable"), "{}", variant.name);
        }
    }

    #[test]
    fn a_swapped_chunk_would_show() {
        let chunk = |chunk| start(seed(chunk)).into_iter().map(|x| stir(x, RATE, 30)).collect::<Vec<_>>();
        assert!(first_difference(&chunk(3), &chunk(4)).is_some());
    }
}
