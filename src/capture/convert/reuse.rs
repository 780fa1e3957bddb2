//! Launches in which CUPTI made one of its buffers on the device ready for use again.
//!
//! CUPTI keeps the times of device work in buffers on the device. When one is full, the launch that comes next takes
//! another; when that one was used before, the launch takes long, and so do all others of the process that begin
//! meanwhile (cupti_activity.h speaks of stalls in the critical path at `CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE`). No
//! record tells of it. But a buffer has room for a known number of ops, so it is known which launches these are: on an
//! H200 with 16 buffers of 2 MiB, those around each 65,536th op from the 1,048,576th on take 0.2 to 0.3 ms
//! (docs/measurements/h200-record-overhead.md). They are told as overhead of the profiler, lest a bubble be blamed on a
//! call of the program.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use serde::Deserialize;

use crate::trace::{ApiKind, CallIdx, ContextIdx, Ns, OpKind, Overhead, OverheadKind, ProcessIdx, Trace};

/// What an op takes of a buffer on the device: it holds 100,000 in 3,200,000 bytes (cupti_activity.h, the default of
/// `CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE`).
const BYTES_OF_AN_OP: u64 = 32;

/// How far the count may be off: launches of several threads are counted in the order of their start, which is not that
/// in which CUPTI gave them their place.
const NEAR: u64 = 64;

/// How many times as long as the middle one of its name a launch has to be.
const LONG: i64 = 4;

/// How many calls are looked at for the middle lengths.
const SAMPLE: usize = 4096;

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

impl DeviceBuffers {
    /// As a recorder's note tells of the attributes it set, where CUPTI took them.
    pub(super) fn of(attributes: serde_json::Value) -> Option<Self> {
        let attributes: Vec<Attribute> = serde_json::from_value(attributes).ok()?;
        let value = |name: &str| {
            attributes.iter().find(|one| one.name == name && one.result == 0).map(|attribute| attribute.value)
        };
        let (ops, unused) = (value("device_buffer_bytes")? / BYTES_OF_AN_OP, value("device_buffers")?);
        (ops > 0).then_some(Self { ops, unused })
    }

    /// Which use of a buffer again falls to ops with these numbers, or close to them: which buffer of all it would be.
    fn again(self, from: u64, count: u64) -> Option<u64> {
        // Of small buffers every launch is close to the end of one.
        let near = NEAR.min(self.ops / 16);
        let buffer = (from + count + near).checked_sub(1)? / self.ops;
        (buffer >= self.unused.max(1) && buffer * self.ops + near >= from).then_some(buffer)
    }
}

/// States for each of these processes the launches that waited for a buffer on the device.
pub(super) fn state(trace: &mut Trace, processes: &[(ProcessIdx, DeviceBuffers)]) {
    // In a part of a recording it is not known how many ops there were before.
    if trace.rest.is_some() {
        return;
    }
    let mut found = Vec::new();
    for &(process, buffers) in processes {
        found.extend(waits(trace, process, buffers).into_iter().map(|call| Overhead {
            interval: trace.calls.interval(call),
            kind: OverheadKind::ProfilerDeviceBuffer,
            process,
            thread: Some(trace.calls.thread[call.index()]),
            correlation: trace.calls.correlation[call.index()],
        }));
    }
    if !found.is_empty() {
        trace.overheads.append(&mut found);
        trace.overheads.sort_by_key(|overhead| overhead.interval.start);
    }
}

/// The launches of a process in which a buffer was made ready again.
fn waits(trace: &Trace, process: ProcessIdx, buffers: DeviceBuffers) -> Vec<CallIdx> {
    let mut found = Vec::new();
    for (index, _) in trace.contexts.iter().enumerate().filter(|(_, context)| context.process == process) {
        let context = ContextIdx::from_index(index);
        let streams = trace.streams.iter().filter(|stream| stream.context == context);
        let ops: u64 = streams.map(|stream| stream.ops.len() as u64).sum();
        if buffers.again(0, ops).is_some() {
            found.extend(waits_in(trace, process, context, buffers));
        }
    }
    found
}

/// Those of one context: launches of few ops that are where a buffer is full, and long. Where most that are there are as
/// short as others, this CUPTI has its buffers otherwise, and there are none.
fn waits_in(trace: &Trace, process: ProcessIdx, context: ContextIdx, buffers: DeviceBuffers) -> Vec<CallIdx> {
    let long = Long::of(trace, process);
    let (mut met, mut seen, mut found) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let mut before = 0;
    for call in calls_in_time(trace, process) {
        let ops = ops_in(trace, call, context);
        let launches = matches!(trace.calls.kind[call.index()], ApiKind::Launch | ApiKind::GraphLaunch);
        if launches
            && (1..=NEAR).contains(&ops)
            && let Some(buffer) = buffers.again(before, ops)
        {
            met.insert(buffer);
            if long.is(trace, call) {
                seen.insert(buffer);
                found.push(call);
            }
        }
        before += ops;
    }
    if seen.len() * 2 >= met.len() { found } else { Vec::new() }
}

/// How many ops that take room in a buffer a call submitted to a context.
fn ops_in(trace: &Trace, call: CallIdx, context: ContextIdx) -> u64 {
    let ops = trace.call_ops(call).iter().map(|op| op.index());
    let takes_room = |&op: &usize| {
        trace.ops.kind[op] != OpKind::Graph && trace.streams[trace.ops.stream[op].index()].context == context
    };
    ops.filter(takes_room).count() as u64
}

/// The calls of all threads of a process by their start.
fn calls_in_time(trace: &Trace, process: ProcessIdx) -> impl Iterator<Item = CallIdx> {
    let next = move |row: u32, end: u32| (row < end).then(|| Reverse((trace.calls.start[row as usize], row, end)));
    let threads = trace.threads.iter().filter(|thread| thread.process == process);
    let mut heads: BinaryHeap<_> = threads.filter_map(|thread| next(thread.calls.start, thread.calls.end)).collect();
    std::iter::from_fn(move || {
        let Reverse((_, row, end)) = heads.pop()?;
        heads.extend(next(row + 1, end));
        Some(CallIdx(row))
    })
}

/// From which length on a call is a long one, by its name.
struct Long(Vec<Option<Ns>>);

impl Long {
    fn of(trace: &Trace, process: ProcessIdx) -> Self {
        let threads = || trace.threads.iter().filter(|thread| thread.process == process);
        let calls: usize = threads().map(|thread| thread.calls.len()).sum();
        let step = (calls / SAMPLE).max(1);
        let mut samples: Vec<Vec<i64>> = vec![Vec::new(); trace.names.len()];
        for call in threads().flat_map(|thread| thread.calls.clone().step_by(step)).map(CallIdx) {
            samples[trace.calls.name[call.index()].index()].push(trace.calls.interval(call).len().0);
        }
        let middle = |mut sample: Vec<i64>| {
            let at = sample.len() / 2;
            (!sample.is_empty()).then(|| Ns(sample.select_nth_unstable(at).1.saturating_mul(LONG)))
        };
        Self(samples.into_iter().map(middle).collect())
    }

    fn is(&self, trace: &Trace, call: CallIdx) -> bool {
        self.0[trace.calls.name[call.index()].index()].is_some_and(|long| trace.calls.interval(call).len() >= long)
    }
}
