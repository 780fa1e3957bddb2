//! What each group of blocking calls costs: the span without them.

use super::Replay;
use super::change::{CallSet, Change};
use crate::trace::{CallIdx, Ns};

/// A report replays at most this many groups of calls unless told otherwise.
pub const DEFAULT_MAX_CHANGES: usize = 16;

/// What the span would lose without each group of calls: never negative, `None` where the replay withholds its answer
/// or the group was not among the `limit` most promising ones, those in which most time was spent.
pub fn sync_cost(replay: &Replay<'_>, groups: &[Vec<CallIdx>], limit: usize) -> Vec<Option<Ns>> {
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
    let changes: Vec<Vec<Change>> =
        order.iter().map(|&group| vec![Change::Remove(CallSet::Calls(groups[group].clone()))]).collect();
    for (group, outcome) in order.into_iter().zip(replay.each(&changes)) {
        costs[group] = outcome.gain.map(Ns::max_zero);
    }
    costs
}
