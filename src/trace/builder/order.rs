//! The order of lanes and rows, which does not depend on the order in which records came.

use std::cmp::Reverse;

use super::super::ids::{CorrelationId, DeviceIdx, NameId, StreamIdx, ThreadIdx};
use super::super::model::RangeKind;
use super::intake::Intake;
use super::{CallInput, OpInput, TraceBuilder};

impl TraceBuilder {
    /// Keeps of equal records one.
    ///
    /// No thread makes two calls of one correlation id in the same nanoseconds, so equal calls show that the source
    /// holds records twice. Equal ops alone do not: a graph launch may run like nodes at once.
    pub(super) fn without_duplicates(&mut self) {
        self.calls.sort_by_key(call_order);
        let mut dropped = dedup(&mut self.calls, |a, b| a == b && a.correlation.is_some());
        if dropped > 0 {
            self.ops.sort_by_key(|(op, _)| op_order(op));
            dropped += dedup(&mut self.ops, |a, b| a.0 == b.0);
            self.ranges.sort_by_key(range_order);
            dropped += dedup(&mut self.ranges, |a, b| a == b);
        }
        self.meta.losses.duplicate_records = dropped;
    }

    /// Puts devices, streams and threads in order of their numbers, whatever order their records came in.
    pub(super) fn order_lanes(&mut self) {
        let devices = permutation(self.devices.len(), |index| self.devices[index].id);
        self.devices = reorder(&self.devices, &devices);
        for device in self.contexts.iter_mut().map(|context| &mut context.device) {
            *device = DeviceIdx(devices[device.index()]);
        }
        for stream in &mut self.streams {
            stream.device = self.contexts[stream.context.index()].device;
        }

        let streams = permutation(self.streams.len(), |index| {
            let stream = &self.streams[index];
            (stream.device, stream.process, self.contexts[stream.context.index()].id, stream.id)
        });
        self.streams = reorder(&self.streams, &streams);
        let moved = |stream: StreamIdx| StreamIdx(streams[stream.index()]);
        self.ops.iter_mut().for_each(|(op, _)| op.stream = moved(op.stream));
        self.syncs.iter_mut().for_each(|sync| sync.stream = sync.stream.map(moved));
        self.events.iter_mut().for_each(|event| event.stream = event.stream.map(moved));
        self.host_functions.iter_mut().for_each(|host| host.2 = moved(host.2));

        let threads = permutation(self.threads.len(), |index| {
            let thread = &self.threads[index];
            (thread.process, thread.tid)
        });
        self.threads = reorder(&self.threads, &threads);
        let moved = |thread: ThreadIdx| ThreadIdx(threads[thread.index()]);
        self.calls.iter_mut().for_each(|call| call.thread = moved(call.thread));
        self.ranges.iter_mut().for_each(|range| range.2 = moved(range.2));
        self.overheads.iter_mut().for_each(|overhead| overhead.4 = overhead.4.map(moved));
        if let Intake::Part(part) = &mut self.intake {
            part.1.reorder(&devices, &threads);
        }
    }
}

/// Keeps the first of neighbours that are the same; how many went.
fn dedup<T>(rows: &mut Vec<T>, same: impl Fn(&T, &T) -> bool) -> u64 {
    let before = rows.len();
    rows.dedup_by(|later, first| same(first, later));
    (before - rows.len()) as u64
}

pub(super) fn op_order(op: &OpInput) -> (StreamIdx, i64, i64, CorrelationId, u64) {
    (op.stream, op.start, op.end, op.correlation, op.graph_node)
}

pub(super) fn call_order(call: &CallInput) -> (ThreadIdx, i64, Reverse<i64>, CorrelationId) {
    (call.thread, call.start, Reverse(call.end), call.correlation)
}

pub(super) type RangeInput = (i64, i64, ThreadIdx, NameId, RangeKind);

pub(super) fn range_order(&(start, end, thread, name, _): &RangeInput) -> (ThreadIdx, i64, Reverse<i64>, NameId) {
    (thread, start, Reverse(end), name)
}

/// New position of each row when rows are sorted by `key`.
fn permutation<K: Ord>(len: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by_key(|&index| key(index));
    let mut to = vec![0; len];
    for (new, &old) in order.iter().enumerate() {
        to[old] = new as u32;
    }
    to
}

/// The rows in their new positions.
fn reorder<T: Clone>(rows: &[T], to: &[u32]) -> Vec<T> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&old| to[old]);
    order.into_iter().map(|old| rows[old].clone()).collect()
}
