//! The JSON report, `bubblescope.report/1`.
//!
//! Names are stable, and a change of meaning is a new schema number. A field that was not computed is absent or
//! `null`, never 0 or a guess. Every field that ends in `_ns` is in integer nanoseconds; moments count from the
//! trace's start.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::ns_by;
use crate::analysis::{Cause, Confidence, FindingId, Rule, SegmentKind, Severity};
use crate::trace::{CaptureMode, Ns, StreamKind};

/// The name and number of this schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReportSchema {
    /// The first version.
    #[default]
    #[serde(rename = "bubblescope.report/1")]
    V1,
}

/// What a recording shows: where devices were idle, why, and what it costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Name and number of the schema.
    pub schema: ReportSchema,
    /// What wrote the report.
    pub tool: Tool,
    /// What was analysed.
    pub source: Source,
    /// The part of the trace that was looked at.
    pub window: Window,
    /// Each device with work in the window, in order of its number.
    pub devices: Vec<Device>,
    /// Calls that return only after device work, by API and site: the one whose `recoverable_ns` is the largest first, then
    /// those for which it is not known, the one that drained most first.
    pub sync_calls: Vec<SyncCall>,
    /// What changes would gain; absent when no change was replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// The repeating iterations; `null` when the program has none.
    pub iterations: Option<Iterations>,
    /// The processes of the recording.
    pub processes: Vec<Process>,
    /// The calls that submit device work.
    pub launches: Launches,
    /// Patterns that can be fixed, the one that recovers most first; absent when they were not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Finding>>,
    /// Why they were looked for and cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings_withheld: Option<String>,
    /// The longest bubbles, longest first.
    pub bubbles: Vec<Bubble>,
    /// What the figures are worth.
    pub quality: Quality,
}

impl Report {
    /// Whether any host call was recorded. Without, neither what waited nor what can be fixed is known.
    pub fn has_host_calls(&self) -> bool {
        self.processes.iter().flat_map(|process| &process.threads).any(|thread| thread.calls > 0)
    }
}

/// What wrote a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `bubblescope`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Default for Tool {
    fn default() -> Self {
        Self { name: "bubblescope".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// What was analysed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// The file, as it was named.
    pub path: String,
    /// The format that it was recorded in, which stays that of a recording that was converted: `bubcap`, `kineto` or `nsys`.
    pub format: String,
    /// When it was recorded, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_on: Option<String>,
    /// How graph launches appear among the ops.
    pub capture_mode: CaptureMode,
    /// The command that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The machine and versions it was recorded with.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine: BTreeMap<String, String>,
    /// The bundled workload that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
}

/// One run of a bundled workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Its name.
    pub workload: String,
    /// Its variant.
    pub variant: String,
    /// Every option's value.
    pub options: BTreeMap<String, String>,
    /// Measured iterations.
    pub iterations: u64,
    /// Iterations before them.
    pub warmup: u64,
    /// The answer that all variants must agree on.
    pub answer: String,
    /// Host time of the measured iterations, where the workload marked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ns: Option<Ns>,
}

/// A part of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Its first nanosecond.
    pub start_ns: Ns,
    /// The first nanosecond after it.
    pub end_ns: Ns,
}

/// What one device did. `compute_only_ns + overlapped_ns + exposed_copy_ns + idle_ns == span_ns`, exactly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its number.
    pub device: u32,
    /// Its product name; empty when unknown.
    pub name: String,
    /// From the first op's start to the last op's end inside the window.
    pub span_ns: Ns,
    /// Time with at least one op of any stream, context or process.
    pub busy_ns: Ns,
    /// Time with kernels and no copy.
    pub compute_only_ns: Ns,
    /// Time with kernels and copies at once.
    pub overlapped_ns: Ns,
    /// Time with copies or memsets under no kernel. It is busy time.
    pub exposed_copy_ns: Ns,
    /// Time of collective kernels (NCCL, RCCL, NVSHMEM) under no other kernel. It is inside the busy time.
    pub exposed_comm_ns: Ns,
    /// Time in which it was in a collective that another device had not reached yet. It is inside the busy time.
    /// Which devices form a group is told by when they run kernels of one name. Absent when it ran collectives and no other
    /// device of the recording did: what its peers did is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for_peer_ns: Option<Ns>,
    /// The same by the device that came last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerWait>,
    /// Time in the span without any op.
    pub idle_ns: Ns,
    /// Idle time as a share of the span, 0 to 1.
    pub idle_fraction: f64,
    /// Number of ops.
    pub ops: u64,
    /// Its bubbles.
    pub bubbles: BubbleFigures,
    /// Idle time by the root cause of its bubbles. Sums to `idle_ns`.
    #[schemars(schema_with = "ns_by::<Cause>")]
    pub idle_by_root: BTreeMap<Cause, Ns>,
    /// The calls that are to blame for bubbles, by cause and API, of whichever most idle time is first. What no call is to
    /// blame for is not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blamed: Vec<Blamed>,
    /// What the host did during bubbles that no call is to blame for, by cause, what the time went to and API, the most time
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_time: Vec<HostTime>,
    /// Idle time by where it went. Sums to `idle_ns`.
    #[schemars(schema_with = "ns_by::<SegmentKind>")]
    pub idle_by_segment: BTreeMap<SegmentKind, Ns>,
    /// Its streams. Their gaps are not idle time of the device and must not be added up.
    pub streams: Vec<Stream>,
}

/// The calls of one API that are to blame for bubbles of one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blamed {
    /// The root cause of the bubbles.
    pub cause: Cause,
    /// The API's name, without version suffixes.
    pub api: String,
    /// How many bubbles.
    pub bubbles: u64,
    /// Their length. It is inside the cause's part of `idle_by_root`.
    pub idle_ns: Ns,
}

/// Time of the host during bubbles of one cause: in the calls of one API, or in its own code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostTime {
    /// The root cause of the bubbles.
    pub cause: Cause,
    /// What the time went to: `launch-call` of calls that submit work.
    pub kind: SegmentKind,
    /// The API's name, without version suffixes. Absent for the host's own code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// How many calls.
    pub calls: u64,
    /// The time in them during the bubbles. It is inside the cause's part of `idle_by_root` and the kind's of
    /// `idle_by_segment`.
    pub idle_ns: Ns,
}

/// How long a device waited in collectives for another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeerWait {
    /// The number of the device that came last.
    pub device: u32,
    /// The collectives that it came last to.
    pub collectives: u64,
    /// Time waited for it.
    pub wait_ns: Ns,
}

/// Number and lengths of a device's bubbles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BubbleFigures {
    /// How many there are.
    pub count: u64,
    /// Median length.
    pub p50_ns: Ns,
    /// 95th percentile of the length.
    pub p95_ns: Ns,
    /// Length of the longest.
    pub max_ns: Ns,
    /// Length of the longest whose root cause is not the profiler; absent where that is the longest of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_besides_profiler_ns: Option<Ns>,
    /// Bubbles by length.
    pub histogram: Vec<HistogramBucket>,
}

impl BubbleFigures {
    /// Length of the longest that would be there without a recording as well; zero when there is none.
    pub fn longest_besides_profiler(&self) -> Ns {
        self.max_besides_profiler_ns.unwrap_or(self.max_ns)
    }
}

/// Bubbles of one range of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistogramBucket {
    /// Shortest length in it.
    pub from_ns: Ns,
    /// First length beyond it; `null` for the last, open one.
    pub to_ns: Option<Ns>,
    /// Bubbles in it.
    pub count: u64,
    /// Their idle time.
    pub total_ns: Ns,
}

/// What one stream did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Its id, as the source gives it.
    pub stream: u32,
    /// The id of its context.
    pub context: u32,
    /// The process that owns it.
    pub pid: u32,
    /// How it behaves towards the legacy default stream.
    pub kind: StreamKind,
    /// Number of its ops.
    pub ops: u64,
    /// Time with at least one of its ops.
    pub busy_ns: Ns,
    /// Time between its first and last op in which this stream, not the device, had nothing.
    pub stream_gap_ns: Ns,
}

/// What the calls of one API, at one site, did that block, or that drained a device or explain a bubble without: calls that
/// allocate, and copies that the host makes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncCall {
    /// The API's name, without version suffixes.
    pub api: String,
    /// The innermost range around the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// How many calls there were.
    pub calls: u64,
    /// Time inside the calls. Not a cost.
    pub blocked_ns: Ns,
    /// The part of it in which a device was busy.
    pub useful_wait_ns: Ns,
    /// The part of it in which none was, inside the devices' spans: time before a device's first op and after its last
    /// one is neither busy nor idle.
    pub idle_while_blocked_ns: Ns,
    /// Whole bubbles whose `drained_by` is one of the calls. A bubble that began during the very launch that ended it is
    /// not among them, nor one whose launch another thread made while the call was still open.
    pub bubbles_drained_ns: Ns,
    /// Whole bubbles whose root cause is one of the calls.
    pub bubbles_caused_ns: Ns,
    /// Later bubbles, until an op was enqueued in time again.
    pub refill_ns: Ns,
    /// What the span would lose without these calls: the promise. Device work that the calls submit is still done,
    /// without the wait, but for copies to the host of a few bytes. Absent when no replay ran or it was withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoverable_ns: Option<Ns>,
    /// Median length of a call.
    pub p50_ns: Ns,
    /// 95th percentile of the length of a call.
    pub p95_ns: Ns,
    /// Length of the longest call.
    pub max_ns: Ns,
    /// Device work queued when the calls began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ahead: Option<RunAhead>,
}

/// Device work enqueued and not finished when a call began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunAhead {
    /// Median device time still to run.
    pub p50_ns: Ns,
    /// 95th percentile of it.
    pub p95_ns: Ns,
    /// The most.
    pub max_ns: Ns,
    /// Median number of ops.
    pub ops_p50: u64,
}

/// What changes would gain, from replaying the recording's dependencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// How far the replay of the unchanged recording is off its span, as a share of the span.
    pub unchanged_error: f64,
    /// Whether that error is too large for answers to be given.
    pub withheld: bool,
    /// Time between the first op of any device and the last one in which no device worked. What more than that is gained
    /// comes of work that overlaps or goes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<Ns>,
    /// Each change on its own, the most promising first. Gains do not add up.
    pub what_if: Vec<WhatIf>,
    /// All changes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_together: Option<WhatIf>,
    /// The remedies of all findings at once, without what was asked for besides: what the report promises. Absent when
    /// there are no findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedies_together: Option<WhatIf>,
}

/// What one change would gain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The change.
    pub change: String,
    /// The span with it.
    pub span_ns: Ns,
    /// What the span loses.
    pub gain_ns: Ns,
    /// That as a share of the span.
    pub gain_fraction: f64,
    /// Whether that is the least to expect, as of the finding whose remedy it is.
    #[serde(default)]
    pub at_least: bool,
    /// What the answer takes for granted.
    pub assumptions: Vec<String>,
}

/// The repeating iterations of a program. Warm-up is counted and left out of every other figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Iterations {
    /// What told where they begin.
    pub source: IterationSource,
    /// Iterations after warm-up.
    pub count: u64,
    /// Iterations before.
    pub warmup: u64,
    /// Median length, start to start.
    pub period_p50_ns: Ns,
    /// 95th percentile of the length.
    pub period_p95_ns: Ns,
    /// Median idle time within an iteration, of the device with the most ops.
    pub idle_p50_ns: Ns,
    /// Median number of blocking calls that begin within an iteration.
    pub blocking_calls_p50: u64,
}

/// What told where iterations begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum IterationSource {
    /// The sequence of launches repeats.
    LaunchSequence {
        /// Launches per iteration.
        launches: u64,
    },
    /// A range whose name repeats.
    Range {
        /// That name, a trailing number cut off.
        name: String,
    },
}

/// One process of the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command or name; empty when unknown.
    pub name: String,
    /// Its recorded threads.
    pub threads: Vec<Thread>,
}

/// One host thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Its id.
    pub tid: u64,
    /// Its name; empty when unknown.
    pub name: String,
    /// API calls that it made in the whole trace.
    pub calls: u64,
}

/// The calls that submit device work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Launches {
    /// How many there were.
    pub count: u64,
    /// Median length of such a call.
    pub call_p50_ns: Ns,
    /// Median time from a launch's start to its op's start, over ops that found the device empty.
    pub latency_p50_ns: Ns,
    /// Ops that start before their launch: the clocks of host and device differ. Shown, not clipped.
    pub negative_latency: u64,
    /// Median number of ops per launch.
    pub ops_per_launch_p50: u64,
}

/// A pattern that can be fixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which pattern.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// One line for people.
    pub title: String,
    /// What the span would lose with the remedy, from the replay.
    pub recoverable_ns: Ns,
    /// Whether that is the least to expect, because the remedy gains more than a replay can tell: copies of pinned memory
    /// are faster, too.
    #[serde(default)]
    pub at_least: bool,
    /// How often the pattern occurs.
    pub count: u64,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// What to do about it.
    pub remedy: String,
}

/// What shows a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// One line for people.
    pub text: String,
    /// The API called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The innermost range around the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// Where to look: a few moments at which it happens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_ns: Vec<Ns>,
}

/// One maximal idle interval of a device inside its span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bubble {
    /// The device's number.
    pub device: u32,
    /// When it began.
    pub start_ns: Ns,
    /// How long it lasted.
    pub dur_ns: Ns,
    /// The op that ended when it began.
    pub before: String,
    /// The op that ended it.
    pub after: String,
    /// Why it exists: a judgement.
    pub root: Root,
    /// The blocking or allocating call that left the device without work; `null` when there was none.
    pub drained_by: Option<DrainedBy>,
    /// Where its nanoseconds went, in order of time. They tile it exactly.
    pub segments: Vec<Segment>,
}

/// The reason that best explains a bubble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Root {
    /// The reason.
    pub cause: Cause,
    /// The call to blame or, when none is, the launch that came late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The innermost range that was open where the time went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The thread of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u64>,
    /// How sure the judgement is.
    pub confidence: Confidence,
    /// The rule that decided.
    pub rule: Rule,
}

/// The blocking or allocating call that left a device without work. It began before the launch that ended the bubble:
/// the call of the launching thread that was open when the device ran dry; else the blocking copy whose op ended then; else
/// a call of another thread that was open then and ended before that launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainedBy {
    /// The call.
    pub api: String,
    /// The thread that made it.
    pub tid: u64,
    /// How sure it is that this call drained the device: certain when it was open on the launching thread, likely when
    /// on another one or when it had returned before its copy ended.
    pub confidence: Confidence,
}

/// A piece of a bubble with one explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// What the time went to.
    pub kind: SegmentKind,
    /// When it began.
    pub start_ns: Ns,
    /// How long it lasted.
    pub dur_ns: Ns,
    /// The call that was open, or the launch concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The range that was open, innermost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
}

/// What the figures are worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quality {
    /// Whether the idle figures can be relied on.
    pub idle_reliable: bool,
    /// Why not, one sentence each.
    pub reasons: Vec<String>,
    /// Whether launches were recorded and no device work: nothing can be said about idle time.
    pub gpu_not_captured: bool,
    /// Records that CUPTI or the recorder dropped.
    pub dropped_records: u64,
    /// Ops whose times could not be collected. They are left out.
    pub ops_without_time: u64,
    /// Ops that were still running when recording ended. They count up to the trace's end.
    pub unfinished_ops: u64,
    /// Records that could not be read, or whose times cannot be true. They are left out.
    pub unreadable_records: u64,
    /// Bytes after the last whole record of a cut file.
    pub cut_bytes: u64,
    /// Ops whose launch is not in the trace.
    pub orphan_ops: u64,
    /// Launches that succeeded and have no op.
    pub launches_without_ops: u64,
    /// Profiler overhead inside bubbles.
    pub profiler_ns: Ns,
    /// Ops that launches of graphs submitted, each recorded by itself: recording added about a microsecond of host time for
    /// each (`docs/measurements/h200-record-overhead.md`).
    #[serde(default)]
    pub graph_ops: u64,
    /// Idle time that lies inside those launches and may come from recording, by a microsecond for each of their ops.
    #[serde(default)]
    pub graph_launch_idle_ns: Ns,
    /// What recording added to the same work without recording, when both were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inflation: Option<Inflation>,
    /// Anything else a reader must know, one sentence each.
    pub warnings: Vec<String>,
}

/// What recording added: the same work, measured without and with it. Medians of the wall time per iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inflation {
    /// Without recording.
    pub unprofiled_ns: Ns,
    /// While being recorded, as every other figure of the report.
    pub profiled_ns: Ns,
    /// The second divided by the first.
    pub ratio: f64,
}

impl Inflation {
    /// Compares two walls; `None` when the one without recording is not positive.
    pub fn new(unprofiled_ns: Ns, profiled_ns: Ns) -> Option<Self> {
        (unprofiled_ns > Ns::ZERO).then(|| Self {
            unprofiled_ns,
            profiled_ns,
            ratio: profiled_ns.0 as f64 / unprofiled_ns.0 as f64,
        })
    }
}
