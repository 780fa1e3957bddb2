//! Launches in which CUPTI made one of its buffers on the device ready for use again.
//!
//! CUPTI keeps the times of device work in buffers on the device. When one is full, the launch that comes next takes
//! another (cupti_activity.h speaks of stalls in the critical path where that is a new one, at
//! `CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE`). When it is one that was used before, the launch takes long, and so do all
//! others of the process that begin meanwhile; no record tells of it. But a buffer has room for a known number of ops, so
//! it is known which launches these are: on an H200 with 16 buffers of 2 MiB, those around each 65,536th op from the
//! 1,048,576th on took 0.2 to 0.3 ms (docs/measurements/h200-record-overhead.md). They are told as overhead of the
//! profiler, lest a bubble be blamed on a call of the program.
//!
//! Told are only launches of few ops: of how long a launch of a large graph takes, nothing is known.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

use super::survey::Survey;
use crate::trace::{CallIdx, Interval, NameId, Ns, OpIdx, OpKind, Overhead, OverheadKind, ProcessIdx, Trace};

/// What an op takes of a buffer on the device: it holds 100,000 kernels, copies and memsets in 3,200,000 bytes
/// (cupti_activity.h, the default of `CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE`).
const BYTES_OF_AN_OP: u64 = 32;

/// How far the count may be off: launches of several threads are counted in the order of their start, which is not that
/// in which CUPTI gave them their place.
const NEAR: u64 = 64;

/// The fewest ops of a buffer of which one can say where it is full.
const FEWEST: u64 = 16 * NEAR;

/// How long a launch takes that makes a buffer ready, in nanoseconds for each op that it has room for. Measured were 3 to
/// 5; what is far from that has another reason.
const READY: (u64, u64) = (2, 16);

/// How many times as long as the middle one of its name such a launch is at least.
const LONG: i64 = 4;

/// How many launches are looked at for their middle length.
const SAMPLE: u64 = 4096;

/// What is said of a part of a recording that is long enough to have such launches.
const PART: &str = "launches that wait for CUPTI's own buffers on the GPU are not told from others: that takes the whole \
                    recording";

/// CUPTI's buffers on the device, in each context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceBuffers {
    /// How many ops one has room for.
    ops: u64,
    /// How many of them had not been used when recording began.
    unused: u64,
}

/// One of CUPTI's attributes as the recorder set it.
#[derive(Deserialize)]
struct Attribute {
    name: String,
    value: u64,
    result: u32,
}

/// Where a range of ops lies among the buffers.
enum Place {
    /// Where this buffer of all is needed, which was used before.
    Again(u64),
    /// In the middle of it.
    Middle(u64),
}

impl DeviceBuffers {
    /// As a recorder's note tells of the attributes it set, where CUPTI took them.
    pub(super) fn of(attributes: serde_json::Value) -> Option<Self> {
        let attributes: Vec<Attribute> = serde_json::from_value(attributes).ok()?;
        let value = |name: &str| {
            attributes.iter().find(|one| one.name == name && one.result == 0).map(|attribute| attribute.value)
        };
        let (ops, unused) = (value("device_buffer_bytes")? / BYTES_OF_AN_OP, value("device_buffers")?.max(1));
        (ops >= FEWEST).then_some(Self { ops, unused })
    }

    /// Those of a spool of which it is known how many ops there were. Where it begins late, CUPTI counts from there too.
    pub(super) fn counted(survey: &Survey) -> Option<Self> {
        let whole = survey.drops.is_empty() && survey.unread_bytes == 0 && survey.beside.fault.is_none();
        survey.device_buffers.filter(|_| whole)
    }

    /// How many ops go before a used buffer is needed.
    fn first(self) -> u64 {
        self.unused.saturating_mul(self.ops)
    }

    /// Where ops with these numbers are, if that is a place to look at, or close to it.
    fn place(self, from: u64, count: u64) -> Option<Place> {
        let around = |middle: u64| from <= middle + NEAR && middle < from + count + NEAR;
        let buffer = (from + count + NEAR).checked_sub(1)? / self.ops;
        let half = from / self.ops;
        if buffer >= self.unused && around(buffer * self.ops) {
            Some(Place::Again(buffer))
        } else if half >= self.unused && around(half * self.ops + self.ops / 2) {
            Some(Place::Middle(half))
        } else {
            None
        }
    }

    /// Whether a launch is as long as one that makes a buffer ready.
    fn is_ready_after(self, length: Ns) -> bool {
        let length = u64::try_from(length.0).unwrap_or(0);
        (self.ops.saturating_mul(READY.0)..=self.ops.saturating_mul(READY.1)).contains(&length)
    }
}

/// States for each of these processes the launches that waited for a buffer on the device.
pub(super) fn state(trace: &mut Trace, processes: &[(ProcessIdx, DeviceBuffers)]) {
    // In a part of a recording it is not known how many ops there were before.
    if let Some(rest) = &trace.rest {
        let events = rest.events + trace.event_count() as u64;
        // Most ops have a call of their own.
        if processes.iter().any(|(_, buffers)| events / 2 > buffers.first()) {
            trace.meta.warnings.push(PART.to_owned());
        }
        return;
    }
    let mut ops = vec![0_u64; trace.contexts.len()];
    for stream in &trace.streams {
        ops[stream.context.index()] += stream.ops.len() as u64;
    }
    let reached = |process: ProcessIdx, first: u64| {
        trace.contexts.iter().zip(&ops).any(|(context, &ops)| context.process == process && ops > first)
    };
    let mut found = Vec::new();
    for &(process, buffers) in processes {
        if reached(process, buffers.first()) {
            found.extend(waits(trace, process, buffers));
        }
    }
    if !found.is_empty() {
        trace.overheads.append(&mut found);
        trace.overheads.sort_by_key(|overhead| (overhead.interval.start, overhead.interval.end));
    }
}

/// What was met in one context.
#[derive(Default)]
struct Count {
    ops: u64,
    /// When the ops without a launch began that are not counted yet, the first of them last.
    unlaunched: Vec<Ns>,
    /// Used buffers that were needed.
    needed: BTreeSet<u64>,
    /// Those of them with a long launch there.
    long: BTreeSet<u64>,
    /// Buffers with a long launch in their middle, which has another reason.
    by_chance: BTreeSet<u64>,
    found: Vec<CallIdx>,
}

impl Count {
    /// Counts the ops whose launch was not recorded, such as those launched while recording began.
    fn pass(&mut self, now: Ns) {
        while self.unlaunched.pop_if(|start| *start <= now).is_some() {
            self.ops += 1;
        }
    }

    /// Whether the launches found are what they are taken for: they stand where a buffer is full, more than once and at
    /// most of these places, and hardly where one is half full.
    fn holds(&self) -> bool {
        let long = self.long.len();
        long >= 2 && long * 2 >= self.needed.len() && self.by_chance.len() * 4 <= long
    }
}

/// Whether an op takes a place in a buffer on the device of its own.
fn takes_place(trace: &Trace, op: OpIdx) -> bool {
    trace.ops.kind[op.index()] != OpKind::Graph
}

/// Nothing met yet in each of the contexts, of which those of the process know their ops without a launch.
fn counts(trace: &Trace, process: ProcessIdx) -> Vec<Count> {
    let mut counts: Vec<Count> = trace.contexts.iter().map(|_| Count::default()).collect();
    for stream in &trace.streams {
        let context = stream.context.index();
        if trace.contexts[context].process != process {
            continue;
        }
        let ops = stream.ops.clone().map(OpIdx);
        let unlaunched = ops.filter(|&op| trace.ops.launch(op).is_none() && takes_place(trace, op));
        counts[context].unlaunched.extend(unlaunched.map(|op| trace.ops.start[op.index()]));
    }
    for count in &mut counts {
        count.unlaunched.sort_unstable_by_key(|&start| Reverse(start));
    }
    counts
}

/// The time of a process in launches in which a buffer was made ready again.
fn waits(trace: &Trace, process: ProcessIdx, buffers: DeviceBuffers) -> Vec<Overhead> {
    let middles = middles(trace, process);
    let usual = |call: CallIdx| middles.get(&trace.calls.name[call.index()]).copied();
    let is_long = |call: CallIdx| {
        let length = trace.calls.interval(call).len();
        buffers.is_ready_after(length) && usual(call).is_some_and(|usual| length.0 / LONG >= usual.0)
    };
    let mut counts = counts(trace, process);
    for call in calls_in_time(trace, process) {
        let mut ops = trace.call_ops(call).iter().copied().filter(|&op| takes_place(trace, op));
        let Some(first) = ops.next() else { continue };
        let ops = 1 + ops.count() as u64;
        let count = &mut counts[trace.streams[trace.ops.stream[first.index()].index()].context.index()];
        count.pass(trace.calls.start[call.index()]);
        let from = count.ops;
        count.ops += ops;
        if ops > NEAR || !trace.calls.kind[call.index()].launches() {
            continue;
        }
        match buffers.place(from, ops) {
            Some(Place::Again(buffer)) => {
                count.needed.insert(buffer);
                if is_long(call) {
                    count.long.insert(buffer);
                    count.found.push(call);
                }
            }
            Some(Place::Middle(buffer)) if is_long(call) => {
                count.by_chance.insert(buffer);
            }
            _ => {}
        }
    }
    let found = counts.into_iter().filter(Count::holds).flat_map(|count| count.found).collect();
    without_recorded_reason(trace, process, found)
        .into_iter()
        .map(|call| {
            let Interval { start, end } = trace.calls.interval(call);
            Overhead {
                // The rest of it is the launch.
                interval: Interval::new(start, end - usual(call).unwrap_or(Ns::ZERO)),
                kind: OverheadKind::ProfilerDeviceBuffer,
                process,
                thread: Some(trace.calls.thread[call.index()]),
                correlation: trace.calls.correlation[call.index()],
            }
        })
        .collect()
}

/// Of these calls those in which no record tells what they were long for.
fn without_recorded_reason(trace: &Trace, process: ProcessIdx, mut calls: Vec<CallIdx>) -> Vec<CallIdx> {
    calls.sort_by_key(|call| (trace.calls.thread[call.index()], trace.calls.start[call.index()]));
    let mut explained: FxHashSet<CallIdx> = FxHashSet::default();
    for lane in calls.chunk_by(|a, b| trace.calls.thread[a.index()] == trace.calls.thread[b.index()]) {
        let thread = trace.calls.thread[lane[0].index()];
        let overheads = trace.overheads.iter().filter(|one| one.process == process);
        for overhead in overheads.filter(|one| one.thread.is_none_or(|one| one == thread)) {
            let Interval { start, end } = overhead.interval;
            let first = lane.partition_point(|call| trace.calls.end[call.index()] <= start);
            explained.extend(lane[first..].iter().take_while(|call| trace.calls.start[call.index()] < end));
        }
    }
    calls.retain(|call| !explained.contains(call));
    calls
}

/// The calls of all threads of a process by their start.
fn calls_in_time(trace: &Trace, process: ProcessIdx) -> impl Iterator<Item = CallIdx> {
    let next = move |row: u32, end: u32| (row < end).then(|| Reverse((trace.calls.start[row as usize], row, end)));
    let threads = trace.threads.iter().filter(move |thread| thread.process == process);
    let mut heads: BinaryHeap<_> = threads.filter_map(|thread| next(thread.calls.start, thread.calls.end)).collect();
    std::iter::from_fn(move || {
        let Reverse((_, row, end)) = heads.pop()?;
        heads.extend(next(row + 1, end));
        Some(CallIdx(row))
    })
}

/// The middle length of a process's launches, by their name.
fn middles(trace: &Trace, process: ProcessIdx) -> FxHashMap<NameId, Ns> {
    let threads = || trace.threads.iter().filter(|thread| thread.process == process);
    let calls: u64 = threads().map(|thread| thread.calls.len() as u64).sum();
    let step = (calls / SAMPLE).max(1);
    let mut samples: FxHashMap<NameId, Vec<Ns>> = FxHashMap::default();
    // Not each so-manieth, which in a loop would always be the same of its calls.
    let chosen = |row: &u32| (u64::from(*row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % step == 0;
    for call in threads().flat_map(|thread| thread.calls.clone()).filter(chosen).map(CallIdx) {
        if trace.calls.kind[call.index()].launches() {
            samples.entry(trace.calls.name[call.index()]).or_default().push(trace.calls.interval(call).len());
        }
    }
    let middle = |mut sample: Vec<Ns>| {
        let at = sample.len() / 2;
        *sample.select_nth_unstable(at).1
    };
    samples.into_iter().map(|(name, sample)| (name, middle(sample))).collect()
}
