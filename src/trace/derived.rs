//! What follows from a trace's rows, whoever makes it of them.

use std::ops::Range;

use super::api::ApiKind;
use super::ids::NameId;
use super::model::Trace;
use super::names::Names;

/// Tells each stream and thread which rows are its own. The rows are sorted by lane.
pub(super) fn set_lanes(trace: &mut Trace) {
    let Trace { streams, threads, ops, calls, ranges, .. } = trace;
    each_lane(ops.len(), |row| ops.stream[row].index(), |lane, range| streams[lane].ops = range);
    each_lane(calls.len(), |row| calls.thread[row].index(), |lane, range| threads[lane].calls = range);
    each_lane(ranges.len(), |row| ranges[row].thread.index(), |lane, range| threads[lane].ranges = range);
}

/// Walks rows sorted by lane and tells each lane its range.
fn each_lane(len: usize, lane_of: impl Fn(usize) -> usize, mut set: impl FnMut(usize, Range<u32>)) {
    let mut from = 0;
    while from < len {
        let lane = lane_of(from);
        let mut to = from + 1;
        while to < len && lane_of(to) == lane {
            to += 1;
        }
        set(lane, from as u32..to as u32);
        from = to;
    }
}

/// The kind of each call, told by its name.
pub(super) fn call_kinds(calls: &[NameId], names: &Names) -> Vec<ApiKind> {
    let mut known = vec![None; names.len()];
    calls.iter().map(|&name| *known[name.index()].get_or_insert_with(|| ApiKind::of(names.get(name)))).collect()
}
