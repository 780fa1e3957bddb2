//! Makes a trace out of spools.
//!
//! Each spool is one process. It is read twice: a first look (`survey`) finds what holds for the whole spool (record
//! sizes, devices, names of callbacks, clock readings, losses), then its records are converted one buffer at a time.
//! A spool that was cut or damaged gives everything before that place, and the trace says so.

mod clock;
mod company;
mod devices;
mod namesakes;
mod process;
mod reuse;
mod survey;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use cupti::spool::{Beside, Chunk, Drops, Ending, Header, SpoolError, extract};
use cupti_sys::bindings;
use thiserror::Error;

use crate::progress::{Cancelled, Unwatched, Watch, Watched, check};
use crate::report::text::counted;
use crate::trace::{
    BuildError, CaptureMode, Choice, Ns, ProcessIdx, Recorded, Trace, TraceBuilder, WorkloadRun, rfc3339,
};

use clock::{Clock, Reference};
use company::Presence;
pub(in crate::capture) use company::state_others;
use devices::Devices;
use namesakes::{Identity, Namesake, Namesakes};
use process::ProcessConverter;
use reuse::DeviceBuffers;
use survey::Survey;

/// Why spools do not make a trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// No spool was given.
    #[error("there is no recording to convert")]
    NoSpool,
    /// Nothing of a spool can be read.
    #[error("cannot use the recording {spool}")]
    Spool {
        /// The path of the spool, or its position among those given.
        spool: String,
        /// What is wrong with it.
        source: SpoolError,
    },
    /// A spool was cut before its first records.
    #[error("cannot use the recording {spool}: it was cut off at byte {offset}, before its first records")]
    Cut {
        /// The path of the spool, or its position among those given.
        spool: String,
        /// Where its last, incomplete chunk starts.
        offset: u64,
    },
    /// Another recording took the place of a spool, or a part of it went away.
    #[error("cannot use the recording {spool}: it changed while it was read; read it again")]
    Changed {
        /// The path of the spool, or its position among those given.
        spool: String,
    },
    /// The records do not fit into a trace.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It was no longer wanted.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Makes one trace of the spools at `paths`, one for each process.
///
/// # Errors
/// When a spool cannot be opened or has no whole header, or when there are too many records for one trace.
pub fn trace_from_spools(paths: &[&Path]) -> Result<Trace, ConvertError> {
    trace_from_spools_watched(paths, &Unwatched)
}

/// The same while somebody waits for it.
///
/// # Errors
/// As [`trace_from_spools`], and when it is cancelled.
pub fn trace_from_spools_watched(paths: &[&Path], watch: &dyn Watch) -> Result<Trace, ConvertError> {
    convert(&paths.iter().map(|path| Source::of_file(path)).collect::<Vec<_>>(), &[], watch).map(|(trace, _)| trace)
}

/// Which process of the trace a spool is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) process: ProcessIdx,
    /// Whether its system knows it by the number in the spool, though it may stand in the trace under another.
    pub(super) has_its_number: bool,
}

/// Makes one trace of spools and of what is known beside each, and tells which process each is of.
///
/// # Errors
/// As [`trace_from_spools`].
pub(super) fn trace_from_collected(paths: &[&Path], beside: &[Beside]) -> Result<(Trace, Vec<Home>), ConvertError> {
    convert(&paths.iter().map(|path| Source::of_file(path)).collect::<Vec<_>>(), beside, &Unwatched)
}

/// The same without what the processes did: their devices and contexts alone, which need little memory.
///
/// # Errors
/// As [`trace_from_spools`].
pub(super) fn outline_from_collected(paths: &[&Path], beside: &[Beside]) -> Result<(Trace, Vec<Home>), ConvertError> {
    const KINDS: [u32; 2] = [bindings::CUPTI_ACTIVITY_KIND_DEVICE, bindings::CUPTI_ACTIVITY_KIND_CONTEXT];
    let extracted = |path: &&Path| {
        let source = Source::of_file(path);
        let opened = source.open(&mut Reading { watch: &Unwatched, before: 0, total: 0 });
        let opened = opened.map_err(|source| SpoolError::Io { offset: 0, source });
        opened.and_then(|opened| extract(opened, &KINDS)).map_err(|error| source.failed(error))
    };
    let extracts = paths.iter().map(extracted).collect::<Result<Vec<_>, _>>()?;
    let sources: Vec<_> = paths.iter().zip(&extracts).map(|(path, bytes)| Source::Read(path, bytes)).collect();
    convert(&sources, beside, &Unwatched)
}

/// Makes one trace of spools in memory, one for each process.
///
/// # Errors
/// When a spool has no whole header, or when there are too many records for one trace.
pub fn trace_from_bytes(spools: &[&[u8]]) -> Result<Trace, ConvertError> {
    let sources: Vec<_> = spools.iter().enumerate().map(|(at, bytes)| Source::Memory(at, bytes)).collect();
    convert(&sources, &[], &Unwatched).map(|(trace, _)| trace)
}

/// Makes a trace of one spool in memory that came from `path`, which errors name.
///
/// # Errors
/// As [`trace_from_bytes`].
pub(crate) fn trace_from_read(path: &Path, spool: &[u8], watch: &dyn Watch) -> Result<Trace, ConvertError> {
    convert(&[Source::Read(path, spool)], &[], watch).map(|(trace, _)| trace)
}

/// Where a spool is.
#[derive(Clone, Copy)]
enum Source<'s> {
    /// A file and how long it was at first: of one that is still being written, each look finds the same.
    File(&'s Path, u64),
    /// Read already, from a file that can be read only once.
    Read(&'s Path, &'s [u8]),
    Memory(usize, &'s [u8]),
}

impl<'s> Source<'s> {
    /// Its length is 0 when it cannot be told, which opening will then tell.
    fn of_file(path: &'s Path) -> Self {
        Self::File(path, path.metadata().map_or(0, |found| found.len()))
    }

    fn open(self, reading: &mut Reading<'s>) -> io::Result<Box<dyn Read + 's>> {
        Ok(match self {
            Self::File(path, bytes) => {
                Box::new(BufReader::with_capacity(1 << 16, reading.watched(File::open(path)?.take(bytes), bytes)))
            }
            Self::Read(_, bytes) | Self::Memory(_, bytes) => Box::new(reading.watched(bytes, self.bytes())),
        })
    }

    fn bytes(self) -> u64 {
        match self {
            Self::File(_, bytes) => bytes,
            Self::Read(_, bytes) | Self::Memory(_, bytes) => bytes.len() as u64,
        }
    }

    fn name(self) -> String {
        match self {
            Self::File(path, _) | Self::Read(path, _) => path.display().to_string(),
            Self::Memory(at, _) => format!("spool {}", at + 1),
        }
    }

    fn failed(self, source: SpoolError) -> ConvertError {
        ConvertError::Spool { spool: self.name(), source }
    }

    fn reader(self, reading: &mut Reading<'s>) -> Result<cupti::spool::Reader<Box<dyn Read + 's>>, ConvertError> {
        let file = self.open(reading).map_err(|source| self.failed(SpoolError::Io { offset: 0, source }))?;
        cupti::spool::Reader::new(file).map_err(|error| self.failed(error))
    }
}

/// How much of all spools has been read; each is read several times.
struct Reading<'w> {
    watch: &'w dyn Watch,
    before: u64,
    total: u64,
}

impl<'w> Reading<'w> {
    /// The next `bytes` bytes, which come from `source`.
    fn watched<R: Read>(&mut self, source: R, bytes: u64) -> Watched<'w, R> {
        let before = self.before;
        self.before = before.saturating_add(bytes);
        Watched::new(source, before, self.total, self.watch)
    }
}

/// `beside` is what is known beside the spools, one for each, where that does not stand in them. The processes stand in
/// the trace in the order of their start; which is whose is told in the order of the spools.
fn convert<'s>(
    sources: &[Source<'s>],
    beside: &[Beside],
    watch: &'s dyn Watch,
) -> Result<(Trace, Vec<Home>), ConvertError> {
    let mut spools = Spools::new(sources.to_vec(), beside, 2, watch)?;
    let filled = spools.fill(TraceBuilder::new())?;
    spools.finish(filled)
}

/// A part of spools that is not read yet: it is known how much it is.
pub(crate) struct Part<'s> {
    spools: Spools<'s>,
    choice: Choice,
}

impl<'s> Part<'s> {
    /// Looks at a spool to find what belongs to the part of its trace from one moment to another, and `around` it. Keeps
    /// nothing of it, so that it needs little memory however long the spool is.
    ///
    /// # Errors
    /// As [`trace_from_spools_watched`].
    pub(crate) fn of_file(
        path: &'s Path,
        (from, to): (Option<Ns>, Option<Ns>),
        around: Ns,
        watch: &'s dyn Watch,
    ) -> Result<Self, ConvertError> {
        Self::of(vec![Source::of_file(path)], (from, to), around, watch)
    }

    /// The same of spools in memory.
    #[cfg(test)]
    pub(crate) fn of_bytes(
        spools: &[&'s [u8]],
        (from, to): (Option<Ns>, Option<Ns>),
        around: Ns,
    ) -> Result<Self, ConvertError> {
        let sources = spools.iter().enumerate().map(|(at, bytes)| Source::Memory(at, bytes)).collect();
        Self::of(sources, (from, to), around, &Unwatched)
    }

    fn of(
        sources: Vec<Source<'s>>,
        (from, to): (Option<Ns>, Option<Ns>),
        around: Ns,
        watch: &'s dyn Watch,
    ) -> Result<Self, ConvertError> {
        // To survey it, to measure it, to choose, perhaps to look again, and to take the part.
        let mut spools = Spools::new(sources, &[], 5, watch)?;
        let extent = spools.fill(TraceBuilder::measuring())?.builder.measured();
        let choice = Choice::new(extent, from, to, around);
        let mut choice = spools.fill(TraceBuilder::choosing(choice))?.builder.chosen();
        if choice.asks_again() {
            choice = spools.fill(TraceBuilder::beginning(choice))?.builder.chosen();
        }
        Ok(Self { spools, choice })
    }

    /// How many of so many events are in it, but for a few.
    pub(crate) fn share(&self) -> (u64, u64) {
        self.choice.share()
    }

    /// Makes a trace of it, which is what [`Trace::part`] gives of the whole, but for the launches that waited for a buffer
    /// of CUPTI's on the device ([`OverheadKind::ProfilerDeviceBuffer`](crate::trace::OverheadKind)).
    ///
    /// # Errors
    /// As [`trace_from_spools_watched`].
    pub(crate) fn read(mut self) -> Result<Trace, ConvertError> {
        let filled = self.spools.fill(TraceBuilder::of_part(self.choice))?;
        self.spools.finish(filled).map(|(trace, _)| trace)
    }
}

/// Spools that were surveyed, which can be read again and again.
struct Spools<'s> {
    sources: Vec<Source<'s>>,
    surveys: Vec<Survey>,
    /// The order of their start.
    order: Vec<usize>,
    reading: Reading<'s>,
}

/// A builder that was given every record of all spools.
struct Filled {
    builder: TraceBuilder,
    presences: Vec<Presence>,
    homes: Vec<Home>,
}

impl<'s> Spools<'s> {
    /// Surveys spools that are read so many times, this one included.
    fn new(
        sources: Vec<Source<'s>>,
        beside: &[Beside],
        times: u64,
        watch: &'s dyn Watch,
    ) -> Result<Self, ConvertError> {
        let bytes = sources.iter().fold(0_u64, |sum, source| sum.saturating_add(source.bytes()));
        let mut reading = Reading { watch, before: 0, total: bytes.saturating_mul(times) };
        let mut surveys = Vec::with_capacity(sources.len());
        for &source in &sources {
            surveys.push(Survey::of(source.reader(&mut reading)?).map_err(|error| source.failed(error))?);
        }
        for (survey, beside) in surveys.iter_mut().zip(beside) {
            survey.beside.clone_from(beside);
        }
        if let ([source], [survey]) = (&sources[..], &mut surveys[..])
            && survey.buffers == 0
        {
            refuse_damage(*source, survey)?;
        }
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.sort_by_key(|&at| surveys[at].header.start_realtime_ns);
        if order.is_empty() {
            return Err(ConvertError::NoSpool);
        }
        Ok(Self { sources, surveys, order, reading })
    }

    /// Reads all of them into a builder.
    fn fill(&mut self, mut builder: TraceBuilder) -> Result<Filled, ConvertError> {
        let Self { sources, surveys, order, reading } = self;
        if let Some(&first) = order.first() {
            describe_source(&mut builder, &surveys[first].header);
        }
        builder.meta.recorded = surveys.iter().map(|survey| recorded(&survey.header)).reduce(both).unwrap_or_default();
        builder.meta.capture_mode = capture_mode(surveys);

        let mut devices = Devices::default();
        let mut namesakes = Namesakes::default();
        let mut presences = Vec::new();
        let mut homes = vec![Home { process: ProcessIdx(0), has_its_number: true }; sources.len()];
        let joined = sources.len() > 1;
        let reference = order.iter().find_map(|&at| Reference::of(&surveys[at]));
        for &at in order.iter() {
            let (source, survey) = (sources[at], &surveys[at]);
            let warnings_before = builder.meta.warnings.len();
            let (mut clock, remark) = Clock::from_anchors(&survey.anchors);
            builder.meta.warnings.extend(remark);
            if let Some(reference) = &reference {
                builder.meta.warnings.extend(reference.align(survey, &mut clock));
            }
            if builder.meta.workload.is_none() {
                builder.meta.workload = workload(survey, &clock);
            }
            count_losses(&mut builder, survey);
            let index = builder.separate_process(Some(survey.header.pid));
            let identity = Identity::of(survey, &clock);
            let namesake = namesakes.add(&identity);
            homes[at] = Home { process: index, has_its_number: namesake.is_none_or(Namesake::has_the_number) };
            presences.push(Presence::of(survey, &clock, identity, index));
            let local = devices.of_process(survey);
            let mut process = ProcessConverter::new(&mut builder, local, survey, clock, index, namesake);
            let chunks = source.reader(reading)?;
            let is_same = *chunks.header() == survey.header;
            let mut buffers = 0;
            for chunk in chunks {
                check(reading.watch)?;
                // The survey has seen the same error and reported it.
                let Ok(chunk) = chunk else { break };
                buffers += u64::from(matches!(chunk, Chunk::Buffer { .. }));
                process.chunk(chunk);
            }
            process.finish();
            check(reading.watch)?;
            if !is_same || buffers != survey.buffers {
                return Err(ConvertError::Changed { spool: source.name() });
            }
            if joined {
                let pid = survey.header.pid;
                for warning in &mut builder.meta.warnings[warnings_before..] {
                    *warning = format!("process {pid}: {warning}");
                }
            }
        }
        Ok(Filled { builder, presences, homes })
    }

    /// Makes the trace.
    fn finish(self, filled: Filled) -> Result<(Trace, Vec<Home>), ConvertError> {
        let Filled { builder, presences, homes } = filled;
        let mut trace = builder.finish_watched(self.reading.watch)?;
        company::state_parts(&mut trace, &presences);
        company::state_beside(&mut trace, &self.surveys);
        let buffers = self.surveys.iter().zip(&homes);
        let buffers = buffers.filter_map(|(survey, home)| Some((home.process, DeviceBuffers::counted(survey)?)));
        reuse::state(&mut trace, &buffers.collect::<Vec<_>>());
        Ok((trace, homes))
    }
}

/// Of a spool without records, an empty trace would hide that it was cut or damaged before the first.
fn refuse_damage(source: Source<'_>, survey: &mut Survey) -> Result<(), ConvertError> {
    match std::mem::replace(&mut survey.ending, Ok(Ending::Unfinished)) {
        Ok(Ending::Cut { offset, .. }) => Err(ConvertError::Cut { spool: source.name(), offset }),
        Err(error) => Err(source.failed(error)),
        sound => {
            survey.ending = sound;
            Ok(())
        }
    }
}

fn describe_source(builder: &mut TraceBuilder, header: &Header) {
    let meta = &mut builder.meta;
    meta.source.format = "bubcap".to_owned();
    meta.source.command = (!header.command_line.is_empty()).then(|| header.command_line.join(" "));
    meta.source.captured_on = (header.start_realtime_ns > 0).then(|| rfc3339(header.start_realtime_ns));
    let facts = [
        ("recorder", header.recorder.clone()),
        ("CUPTI", cupti_version(header.cupti_version)),
        ("CUPTI library", header.cupti_path.clone()),
        ("driver", driver_version(header.driver_version)),
        ("operating system", header.machine.os.clone()),
        ("processor", header.machine.cpu.clone()),
        ("processors", if header.machine.cpus == 0 { String::new() } else { header.machine.cpus.to_string() }),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    meta.machine.extend(known.map(|(name, value)| (name.to_owned(), value)));
}

/// `cuptiGetVersion` for people: from CUDA 13.0 on it is `10000 * major + 100 * minor + update`, before it a counter.
fn cupti_version(version: u32) -> String {
    match version {
        0 => String::new(),
        1..10_000 => format!("API version {version}"),
        _ => format!("{}.{}.{} ({version})", version / 10_000, version / 100 % 100, version % 100),
    }
}

/// `cuDriverGetVersion` for people.
fn driver_version(version: u32) -> String {
    if version == 0 { String::new() } else { format!("CUDA {}.{}", version / 1_000, version % 1_000 / 10) }
}

fn recorded(header: &Header) -> Recorded {
    use cupti_sys::bindings as c;
    let any = |kinds: &[u32]| kinds.iter().any(|kind| header.kinds.contains(kind));
    Recorded {
        calls: any(&[c::CUPTI_ACTIVITY_KIND_RUNTIME, c::CUPTI_ACTIVITY_KIND_DRIVER]),
        ops: any(&[c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, c::CUPTI_ACTIVITY_KIND_KERNEL]),
        syncs: any(&[c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION]),
        events: any(&[c::CUPTI_ACTIVITY_KIND_CUDA_EVENT])
            || (header.cupti_version < FIRST_WITH_SEPARATE_EVENTS && any(&[c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION])),
        overheads: any(&[c::CUPTI_ACTIVITY_KIND_OVERHEAD]),
        ranges: any(&[c::CUPTI_ACTIVITY_KIND_MARKER]),
    }
}

/// `cuptiGetVersion` of CUDA 12.9: before it, event records come with synchronisation records and cannot be enabled by
/// themselves.
const FIRST_WITH_SEPARATE_EVENTS: u32 = 27;

fn both(a: Recorded, b: Recorded) -> Recorded {
    Recorded {
        calls: a.calls && b.calls,
        ops: a.ops && b.ops,
        syncs: a.syncs && b.syncs,
        events: a.events && b.events,
        overheads: a.overheads && b.overheads,
        ranges: a.ranges && b.ranges,
    }
}

fn capture_mode(surveys: &[Survey]) -> CaptureMode {
    use cupti::spool::Graphs;
    let mode = |survey: &Survey| match survey.header.graphs {
        Graphs::Node => CaptureMode::Node,
        Graphs::Graph => CaptureMode::Graph,
    };
    let first = surveys.first().map_or(CaptureMode::Unknown, mode);
    if surveys.iter().all(|survey| mode(survey) == first) { first } else { CaptureMode::Unknown }
}

/// The workload that the recorded process says it ran. Its times come as `CLOCK_REALTIME`.
fn workload(survey: &Survey, clock: &Clock) -> Option<WorkloadRun> {
    let mut run = survey.workload.clone()?;
    if let Some(measured) = &mut run.measured {
        measured.start = Ns(clock.of_realtime(measured.start.0));
        measured.end = Ns(clock.of_realtime(measured.end.0));
    }
    Some(run)
}

/// Adds what a spool says about its own losses.
fn count_losses(builder: &mut TraceBuilder, survey: &Survey) {
    let meta = &mut builder.meta;
    let losses = &mut meta.losses;
    let Drops { records, discarded_buffers, discarded_bytes, unwritten_buffers } = survey.drops;
    // How many records a lost buffer held is not known, so each counts for the fewest that it can have been.
    let largest = survey.sizes.iter().map(|(_, bytes)| u64::from(bytes)).max().unwrap_or(1).max(1);
    let discarded = (discarded_bytes / largest).max(discarded_buffers);
    let unwritten = survey.beside.fault.as_ref().map_or(0, |fault| fault.lost_records.max(fault.lost_buffers));
    for lost in [records, discarded, unwritten_buffers, unwritten] {
        losses.dropped_records = losses.dropped_records.saturating_add(lost);
    }
    // Without an end in order it is what CUPTI kept back when complete buffers were last fetched. What came back later and
    // could not be written has been counted.
    let held = survey.end.map_or(survey.status.held_buffers, |end| end.outstanding);
    losses.held_buffers = losses.held_buffers.saturating_add(if unwritten > 0 { 0 } else { held });
    losses.cut_bytes = losses.cut_bytes.saturating_add(survey.unread_bytes);
    if discarded_buffers > 0 {
        meta.warnings.push(format!(
            "the recorder's memory was used up: {} discarded ({})",
            counted(discarded_buffers, "buffer was", "buffers were"),
            counted(discarded_bytes, "byte", "bytes")
        ));
    }
    if unwritten_buffers > 0 {
        meta.warnings.push(format!(
            "the recording could not be written: {} missing",
            counted(unwritten_buffers, "buffer is", "buffers are")
        ));
    }
    match &survey.ending {
        Ok(Ending::Complete) => {}
        Ok(Ending::Unfinished) => {
            meta.warnings.push("the recording was not stopped in order: its last moments may be missing".to_owned());
        }
        Ok(Ending::Cut { offset, bytes }) => {
            losses.cut_bytes = losses.cut_bytes.saturating_add(*bytes);
            losses.damaged_at = losses.damaged_at.or(Some(*offset));
            meta.warnings.push(format!("the recording was cut off at byte {offset}: what followed is missing"));
        }
        Err(error) => {
            let lost = survey.bytes.saturating_sub(error.damaged_at().unwrap_or(survey.bytes));
            losses.cut_bytes = losses.cut_bytes.saturating_add(lost);
            losses.damaged_at = losses.damaged_at.or(error.damaged_at());
            meta.warnings.push(format!(
                "the recording is damaged and its last {} cannot be read: {error}",
                counted(lost, "byte", "bytes")
            ));
        }
    }
    meta.warnings.extend(survey.remarks.iter().cloned());
}
