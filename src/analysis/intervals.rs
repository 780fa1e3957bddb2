//! Ops of many streams in order of their start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::trace::{DeviceIdx, Interval, Ns, OpIdx, Trace};

/// The ops of a device that start before the window's end, by start, then table order: a merge of the streams, which
/// are sorted already.
pub(super) struct LaneMerge<'t> {
    starts: &'t [Ns],
    /// For each stream the start and position of its next op, and where its ops end.
    heads: BinaryHeap<Reverse<(Ns, u32, u32)>>,
}

impl<'t> LaneMerge<'t> {
    pub(super) fn new(trace: &'t Trace, device: DeviceIdx, window: Interval) -> Self {
        let starts = &trace.ops.start[..];
        let heads = trace.device_streams(device).filter_map(|stream| {
            let ops = trace.streams[stream.index()].ops.clone();
            let lane = &starts[ops.start as usize..ops.end as usize];
            let end = ops.start + lane.partition_point(|&start| start < window.end) as u32;
            (ops.start < end).then(|| Reverse((starts[ops.start as usize], ops.start, end)))
        });
        Self { starts, heads: heads.collect() }
    }
}

impl Iterator for LaneMerge<'_> {
    type Item = OpIdx;

    #[inline]
    fn next(&mut self) -> Option<OpIdx> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((_, op, end)) = *head;
        if op + 1 < end {
            *head = Reverse((self.starts[op as usize + 1], op + 1, end));
        } else {
            PeekMut::pop(head);
        }
        Some(OpIdx(op))
    }
}

/// What of an op lies in the window; `None` when nothing does. An op without length lies where it starts.
#[inline]
pub(super) fn clip(op: Interval, window: Interval) -> Option<Interval> {
    let inside = op.start < window.end && (op.end > window.start || (op.is_empty() && op.start >= window.start));
    inside.then(|| op.intersect(window))
}
