//! What each group of blocking calls costs: the span without them, or without their waits.

use super::Replay;
use super::change::{CallSet, Change};
use crate::trace::{CallIdx, Ns, Trace};

/// A report replays at most this many groups of calls unless told otherwise.
pub const DEFAULT_MAX_CHANGES: usize = 16;

/// What the span would lose without each group of calls: never negative, `None` where the replay withholds its answer
/// or the group was not among the `limit` most promising ones, those in which most time was spent. Device work that a call
/// submits has to be done all the same: such a call is made without its wait, unless `is_spared` says that its work is
/// not needed either.
pub fn sync_cost(
    replay: &Replay<'_>,
    groups: &[Vec<CallIdx>],
    limit: usize,
    is_spared: impl Fn(&Trace, CallIdx) -> bool,
) -> Vec<Option<Ns>> {
    let mut costs = vec![None; groups.len()];
    if replay.is_withheld() {
        return costs;
    }
    let calls = &replay.trace.calls;
    let spent =
        |group: &Vec<CallIdx>| group.iter().fold(Ns::ZERO, |sum, &call| sum.saturating_add(calls.interval(call).len()));
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_cached_key(|&group| std::cmp::Reverse(spent(&groups[group])));
    order.truncate(limit);
    let trace = replay.trace;
    let change = |&group: &usize| -> Vec<Change> {
        let goes = |call: &CallIdx| trace.call_ops(*call).is_empty() || is_spared(trace, *call);
        let (removed, kept): (Vec<CallIdx>, Vec<CallIdx>) = groups[group].iter().partition(|call| goes(call));
        let changes = [Change::Remove(CallSet::Calls(removed)), Change::Async(CallSet::Calls(kept))];
        changes.into_iter().filter(|change| !change.calls().is_empty()).collect()
    };
    let changes: Vec<Vec<Change>> = order.iter().map(change).collect();
    for (group, outcome) in order.into_iter().zip(replay.each(&changes)) {
        costs[group] = outcome.gain.map(Ns::max_zero);
    }
    costs
}
