//! Launches in which CUPTI made one of its buffers on the device ready for use again.
//!
//! CUPTI keeps the times of device work in buffers on the device. When one is full, the launch that comes next takes
//! another; when that one was used before, the launch takes long, and so do all others of the process that begin
//! meanwhile (cupti_activity.h speaks of stalls in the critical path at `CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE`). No
//! record tells of it. But a buffer has room for a known number of ops, so it is known which launches these are: on an
//! H200 with 16 buffers of 2 MiB, those around each 65,536th op from the 1,048,576th on take 0.2 to 0.3 ms
//! (docs/measurements/h200-record-overhead.md). They are told as overhead of the profiler, lest a bubble be blamed on a
//! call of the program.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::trace::{ApiKind, CallIdx, Ns, OpIdx, OpKind, Overhead, OverheadKind, ProcessIdx, Trace};

/// What an op takes of a buffer on the device: it holds 100,000 in 3,200,000 bytes (cupti_activity.h, the default of
/// `CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE`).
const BYTES_OF_AN_OP: u64 = 32;

/// How far the count may be off: launches of several threads are counted in the order of their start, which is not that
/// in which CUPTI gave them their place.
const NEAR: u64 = 64;

/// How many times as long as the middle one of its name a launch has to be.
const LONG: i64 = 4;

/// How many launches of a name are looked at for their middle length.
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

/// A call that submitted ops.
struct Submission {
    start: Ns,
    call: CallIdx,
    ops: u64,
}

/// The launches of a process in which a buffer was made ready again.
fn waits(trace: &Trace, process: ProcessIdx, buffers: DeviceBuffers) -> Vec<CallIdx> {
    let mut found = Vec::new();
    for (index, _) in trace.contexts.iter().enumerate().filter(|(_, context)| context.process == process) {
        let streams = trace.streams.iter().filter(|stream| stream.context.index() == index);
        let ops: u64 = streams.map(|stream| stream.ops.len() as u64).sum();
        if buffers.again(0, ops).is_some() {
            found.extend(waits_of(trace, &submissions(trace, process, index), buffers));
        }
    }
    found
}

/// What a process submitted to a context, in the order of the calls' start.
fn submissions(trace: &Trace, process: ProcessIdx, context: usize) -> Vec<Submission> {
    let threads = trace.threads.iter().filter(|thread| thread.process == process);
    let calls = threads.flat_map(|thread| thread.calls.clone()).map(CallIdx);
    let mut found: Vec<Submission> = calls
        .filter_map(|call| {
            let ops = trace.call_ops(call);
            let stream = trace.ops.stream[ops.first()?.index()];
            let start = trace.calls.start[call.index()];
            let whole = |op: &&OpIdx| trace.ops.kind[op.index()] == OpKind::Graph;
            let ops = ops.iter().filter(|op| !whole(op)).count() as u64;
            (trace.streams[stream.index()].context.index() == context).then_some(Submission { start, call, ops })
        })
        .collect();
    found.sort_by_key(|submission| submission.start);
    found
}

/// Which of them waited for a buffer: launches of few ops that are where a buffer is full, and long. Where most that are
/// there are as short as others, this CUPTI has its buffers otherwise, and there are none.
fn waits_of(trace: &Trace, submissions: &[Submission], buffers: DeviceBuffers) -> Vec<CallIdx> {
    let long = Long::of(trace, submissions);
    let (mut met, mut seen, mut found) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let mut before = 0;
    for one in submissions {
        let launches = matches!(trace.calls.kind[one.call.index()], ApiKind::Launch | ApiKind::GraphLaunch);
        if launches
            && one.ops <= NEAR
            && let Some(buffer) = buffers.again(before, one.ops)
        {
            met.insert(buffer);
            if long.is(trace, one.call) {
                seen.insert(buffer);
                found.push(one.call);
            }
        }
        before += one.ops;
    }
    if seen.len() * 2 >= met.len() { found } else { Vec::new() }
}

/// From which length on a launch is a long one, by its name.
struct Long(Vec<Option<Ns>>);

impl Long {
    fn of(trace: &Trace, submissions: &[Submission]) -> Self {
        let mut samples: Vec<Vec<i64>> = vec![Vec::new(); trace.names.len()];
        let step = (submissions.len() / SAMPLE).max(1);
        for one in submissions.iter().step_by(step) {
            samples[trace.calls.name[one.call.index()].index()].push(trace.calls.interval(one.call).len().0);
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
