//! What the analysis finds.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::trace::{CallIdx, CaptureMode, DeviceIdx, Interval, Losses, Ns, OpIdx, RangeIdx, StreamIdx, ThreadIdx};

use super::cause::{Cause, Confidence, Rule, SegmentKind};
use super::peers::PeerWaits;

/// Everything the analysis found in a window of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analysis {
    /// The part of the trace that was looked at.
    pub window: Interval,
    /// Each device that has ops in the window, in order of its number. An analysis can be copied without its bubbles.
    pub devices: Vec<Arc<DeviceAnalysis>>,
    /// Blocking calls by API and site: once replayed, the one whose gain is the largest first; before that, and where the
    /// gain is not known, the one that drained most.
    pub sync_calls: Vec<SyncCallRow>,
    /// Figures of the launches.
    pub launches: LaunchFigures,
    /// The repeating iterations, if the program has any.
    pub iterations: Option<Iterations>,
    /// What the figures are worth.
    pub quality: Quality,
}

/// What one device did in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceAnalysis {
    /// The device.
    pub device: DeviceIdx,
    /// From the first op's start to the last op's end inside the window.
    pub span: Interval,
    /// How the span divides.
    pub partition: Partition,
    /// Time of collective kernels under no other kernel. Inside busy, outside the partition.
    pub exposed_comm_ns: Ns,
    /// Time in collectives that another device had not reached.
    pub peer_waits: PeerWaits,
    /// The usual latency λ from a launch's start to its op's start that the rules used.
    pub usual_latency: Ns,
    /// Ops inside the window.
    pub ops: u64,
    /// Every bubble, in order of time.
    pub bubbles: Vec<Bubble>,
    /// The segments of all bubbles, in order of time; see [`Self::segments_of`].
    pub segments: Vec<Segment>,
    /// Idle time by root cause; causes without any are absent. Sums to the partition's idle time.
    pub idle_by_root: BTreeMap<Cause, Ns>,
    /// Idle time by segment; kinds without any are absent. Sums to the partition's idle time.
    pub idle_by_segment: BTreeMap<SegmentKind, Ns>,
    /// Each stream with ops in the window. Their gaps are not idle time and are never added up.
    pub streams: Vec<StreamFigures>,
    /// Lengths of the bubbles in steps of 1, 2 and 5, from the shortest to the longest that occurs.
    pub histogram: Vec<HistogramBucket>,
    /// Lengths of the bubbles.
    pub bubble_lengths: Percentiles,
}

impl DeviceAnalysis {
    /// Time with at least one op of any stream, context or process.
    pub fn busy_ns(&self) -> Ns {
        self.partition.busy()
    }

    /// Time in the span without any op.
    pub fn idle_ns(&self) -> Ns {
        self.partition.idle
    }

    /// The segments that tile `bubble`, in order of time.
    pub fn segments_of(&self, bubble: &Bubble) -> &[Segment] {
        let from = bubble.first_segment as usize;
        &self.segments[from..from + bubble.segment_count as usize]
    }
}

/// How a device's span divides. The four add up to the span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// Kernels and no copy.
    pub compute_only: Ns,
    /// Kernels and copies at once.
    pub overlapped: Ns,
    /// Copies or memsets under no kernel. Busy, never a bubble.
    pub exposed_copy: Ns,
    /// Nothing.
    pub idle: Ns,
}

impl Partition {
    /// Time with at least one op.
    pub fn busy(&self) -> Ns {
        self.compute_only + self.overlapped + self.exposed_copy
    }

    /// All four.
    pub fn span(&self) -> Ns {
        self.busy() + self.idle
    }
}

/// One maximal idle interval of a device inside its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bubble {
    /// The device.
    pub device: DeviceIdx,
    /// When nothing ran.
    pub interval: Interval,
    /// An op that ended at the bubble's start: one of the next op's graph launch or stream if there is one.
    pub before: OpIdx,
    /// The op that ended the bubble.
    pub after: OpIdx,
    /// Its launch.
    pub launch: Option<CallIdx>,
    /// The reason that best explains the bubble.
    pub root: RootCause,
    /// The call that was open when the device ran dry, or whose copy ended then, if any.
    pub drained_by: Option<Drain>,
    /// The draining call whose refill this bubble belongs to: the launches after that call's bubble came late one after
    /// the other, no op has been enqueued in time since, and the host had no other reason to be late.
    pub refill_of: Option<CallIdx>,
    /// Position of its first segment in [`DeviceAnalysis::segments`].
    pub(super) first_segment: u32,
    /// Number of its segments.
    pub(super) segment_count: u32,
}

/// The judgement why a bubble exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootCause {
    /// The reason.
    pub cause: Cause,
    /// How sure it is.
    pub confidence: Confidence,
    /// The rule that decided.
    pub rule: Rule,
    /// The call to blame or, when no call is, the launch that came late.
    pub call: Option<CallIdx>,
    /// The innermost range that was open where the time went.
    pub site: Option<RangeIdx>,
}

impl RootCause {
    /// The thread of its call.
    pub fn thread(&self, trace: &crate::trace::Trace) -> Option<ThreadIdx> {
        self.call.map(|call| trace.calls.thread[call.index()])
    }
}

/// The call that was open when the device ran dry, or whose copy ended then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// The call.
    pub call: CallIdx,
    /// [`Cause::Sync`], [`Cause::BlockingCopy`] or [`Cause::Allocation`].
    pub cause: Cause,
    /// Certain when it was open on the launching thread, likely when on another one or when it had returned before its
    /// copy ended.
    pub confidence: Confidence,
}

/// A piece of a bubble with one explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When.
    pub interval: Interval,
    /// What the time went to.
    pub kind: SegmentKind,
    /// The call or range behind it.
    pub what: SegmentDetail,
}

/// The call or range behind a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentDetail {
    /// Nothing recorded.
    None,
    /// This call was open, or is the launch concerned.
    Call(CallIdx),
    /// This range was open, innermost, at the middle of the segment.
    Range(RangeIdx),
}

impl Segment {
    /// The call behind it.
    pub fn call(&self) -> Option<CallIdx> {
        match self.what {
            SegmentDetail::Call(call) => Some(call),
            SegmentDetail::None | SegmentDetail::Range(_) => None,
        }
    }

    /// The range behind it.
    pub fn range(&self) -> Option<RangeIdx> {
        match self.what {
            SegmentDetail::Range(range) => Some(range),
            SegmentDetail::None | SegmentDetail::Call(_) => None,
        }
    }
}

/// What one stream did. Its gaps are not device idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFigures {
    /// The stream.
    pub stream: StreamIdx,
    /// Ops inside the window.
    pub ops: u64,
    /// From its first op's start to its last op's end.
    pub span: Interval,
    /// Time with at least one of its ops.
    pub busy: Ns,
    /// The rest of its own span: the time in which this stream, not the device, had nothing.
    pub stream_gap: Ns,
}

/// Bubbles of one range of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramBucket {
    /// Shortest length in it.
    pub from: Ns,
    /// First length beyond it; `None` for the last, open bucket.
    pub to: Option<Ns>,
    /// Bubbles in it.
    pub count: u64,
    /// Their idle time.
    pub total: Ns,
}

/// Ranks of a set of lengths (nearest rank, so each is one of the lengths).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// The median.
    pub p50: Ns,
    /// The 95th percentile.
    pub p95: Ns,
    /// The longest.
    pub max: Ns,
}

/// What the calls of one API, at one site, did that block, or that drained a device or explain a bubble without: calls that
/// allocate, and copies that the host makes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncCallRow {
    /// The API's name without version suffixes.
    pub api: String,
    /// The innermost range around the calls, with a trailing number cut off; `None` without ranges.
    pub site: Option<String>,
    /// Its calls in the window, in order of the trace.
    pub call_list: Vec<CallIdx>,
    /// Time inside the calls. Not a cost.
    pub blocked: Ns,
    /// The part of it in which a device of the process was busy.
    pub useful_wait: Ns,
    /// The part of it in which none was, and which lies inside the span: before a device's first op and after its last
    /// one it is neither busy nor idle. Of calls of several threads at once, each counts.
    pub idle_while_blocked: Ns,
    /// Whole bubbles that began while one of the calls was open.
    pub bubbles_drained: Ns,
    /// How many those are.
    pub drained_count: u64,
    /// Whole bubbles whose root cause is one of the calls.
    pub bubbles_caused: Ns,
    /// How many those are.
    pub caused_count: u64,
    /// Later bubbles, until the device had work queued again.
    pub refill: Ns,
    /// What the span would lose without these calls, from the replay; `None` until it ran or when it withheld. Device
    /// work that the calls submit is still done, without the wait, but for copies to the host of a few bytes.
    pub recoverable: Option<Ns>,
    /// Lengths of the calls.
    pub lengths: Percentiles,
    /// Work that was queued when the calls began, per call.
    pub run_ahead: RunAheadFigures,
}

impl SyncCallRow {
    /// Number of calls.
    pub fn calls(&self) -> u64 {
        self.call_list.len() as u64
    }
}

/// Device work enqueued and not finished at moments of host time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunAheadFigures {
    /// Device time still to run.
    pub work: Percentiles,
    /// The median number of ops.
    pub ops_p50: u64,
}

/// Figures of the launches in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchFigures {
    /// Calls that submit device work.
    pub count: u64,
    /// Median length of such a call.
    pub call_p50: Ns,
    /// Median time from a launch's start to its op's start, over ops that found the device empty.
    pub latency_p50: Ns,
    /// Ops that start before their launch: the clocks of host and device differ by at least as much.
    pub negative_latency: u64,
    /// The most negative latency, 0 if there is none.
    pub worst_negative_latency: Ns,
    /// Median number of ops per launch.
    pub ops_per_launch_p50: u64,
}

/// The repeating iterations of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iterations {
    /// What told where they begin.
    pub source: IterationSource,
    /// Iterations after warm-up.
    pub count: u64,
    /// Iterations before, whose length is not yet the usual one.
    pub warmup: u64,
    /// Length of an iteration on the device: from its first op to the next one's, where one follows at once.
    pub period: Percentiles,
    /// Distance between the 5th and the 95th percentile of the length.
    pub jitter: Ns,
    /// Median idle time within an iteration, of the device with the most ops.
    pub idle_p50: Ns,
    /// Median number of blocking calls of an iteration.
    pub blocking_calls_p50: u64,
    /// Each iteration, warm-up first.
    pub intervals: Vec<Interval>,
}

/// What told where iterations begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IterationSource {
    /// The sequence of launches repeats.
    LaunchSequence {
        /// Launching and blocking calls per iteration.
        launches: usize,
    },
    /// A range whose name repeats, a trailing number cut off.
    Range(String),
}

/// What the figures are worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Whether the idle figures can be relied on.
    pub idle_reliable: bool,
    /// Why not, one sentence each.
    pub reasons: Vec<String>,
    /// Whether launches were recorded and no device work: nothing can be said about idle time.
    pub gpu_not_captured: bool,
    /// What was lost while recording or reading.
    pub losses: Losses,
    /// Ops whose launch is not in the trace.
    pub orphan_ops: u64,
    /// Launching calls that returned success and have no op.
    pub launches_without_ops: u64,
    /// Ops that start before their launch.
    pub negative_latency: u64,
    /// Profiler overhead that lies inside bubbles.
    pub profiler: Ns,
    /// Ops that launches of graphs submitted, each recorded by itself: recording costs the host time for each of them.
    pub graph_ops: u64,
    /// Idle time that lies inside those launches and may come from recording, by a microsecond for each of their ops.
    pub graph_launch_idle: Ns,
    /// Idle time whose root is [`Cause::Stalled`].
    pub stalled: Ns,
    /// How graph launches were recorded.
    pub capture_mode: CaptureMode,
    /// Anything else a reader must know, one sentence each.
    pub warnings: Vec<String>,
}
