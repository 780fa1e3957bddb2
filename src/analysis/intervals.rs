//! Rows of many lanes in order of their start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::ops::Range;

use crate::trace::{DeviceIdx, Interval, Ns, OpIdx, Trace};

/// The start and position of a lane's next row, and where its rows end.
type Head = (Ns, u32, u32);

/// The rows of a table by start, then position: a merge of its lanes, each of which is sorted already.
pub(super) struct LaneMerge<'t> {
    starts: &'t [Ns],
    /// The lane whose row comes next.
    first: Option<Head>,
    others: BinaryHeap<Reverse<Head>>,
}

impl<'t> LaneMerge<'t> {
    /// Merges `lanes`, ranges of a table with these `starts`.
    pub(super) fn new(starts: &'t [Ns], lanes: impl Iterator<Item = Range<u32>>) -> Self {
        let heads = lanes.filter(|lane| !lane.is_empty());
        let mut others: BinaryHeap<Reverse<Head>> =
            heads.map(|lane| Reverse((starts[lane.start as usize], lane.start, lane.end))).collect();
        let first = others.pop().map(|Reverse(head)| head);
        Self { starts, first, others }
    }
}

impl Iterator for LaneMerge<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let (_, row, end) = self.first?;
        if row + 1 < end {
            let mut head = (self.starts[row as usize + 1], row + 1, end);
            if let Some(mut other) = self.others.peek_mut().filter(|other| other.0 < head) {
                mem::swap(&mut other.0, &mut head);
            }
            self.first = Some(head);
        } else {
            self.first = self.others.pop().map(|Reverse(head)| head);
        }
        Some(row)
    }
}

/// The ops of a device that start before the window's end, by start, then table order.
pub(super) fn device_ops(trace: &Trace, device: DeviceIdx, window: Interval) -> impl Iterator<Item = OpIdx> {
    let lanes = trace.device_streams(device).map(|stream| {
        let ops = trace.streams[stream.index()].ops.clone();
        let lane = &trace.ops.start[ops.start as usize..ops.end as usize];
        ops.start..ops.start + lane.partition_point(|&start| start < window.end) as u32
    });
    LaneMerge::new(&trace.ops.start, lanes).map(OpIdx)
}

/// What of an op lies in the window; `None` when nothing does. An op without length lies where it starts.
#[inline]
pub(super) fn clip(op: Interval, window: Interval) -> Option<Interval> {
    let inside = op.start < window.end && (op.end > window.start || (op.is_empty() && op.start >= window.start));
    inside.then(|| op.intersect(window))
}
