//! What the search for patterns knows of a recording.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Candidate, Evidence, FindingId, FindingLimits, Options};
use crate::analysis::bubbles::Host;
use crate::analysis::cause::Cause;
use crate::analysis::replay::Change;
use crate::analysis::result::{Analysis, Bubble};
use crate::analysis::sync_cost::{covered, site_name};
use crate::analysis::waits::{Wait, Waits};
use crate::analysis::words::{counted, grouped, time, times};
use crate::progress::Until;
use crate::trace::{CallIdx, Interval, NameId, Ns, OpIdx, OpKind, ThreadIdx, Trace};

/// A recording, its analysis, and the calls of each thread.
pub(super) struct Subject<'a> {
    pub(super) trace: &'a Trace,
    pub(super) host: &'a Host,
    pub(super) analysis: &'a Analysis,
    pub(super) limits: &'a FindingLimits,
    /// A launch call at least this long is remarkable.
    pub(super) long_launch: Ns,
    /// For each thread, its calls in the window that are nested in no other, in order.
    lanes: Vec<Vec<CallIdx>>,
    /// For each process, when its last call with device work began.
    last_submit: Vec<Ns>,
    /// From the first to the last op of any device.
    pub(super) span: Interval,
    /// When it is over, what takes long ends early, with any answer.
    until: Until<'a>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        host: &'a Host,
        analysis: &'a Analysis,
        options: &'a Options,
        until: Until<'a>,
    ) -> Self {
        let mut last_submit = vec![Ns::MIN; trace.processes.len()];
        let lanes = (0..trace.threads.len())
            .map(|thread| {
                let thread = ThreadIdx::from_index(thread);
                let mut end = Ns::MIN;
                let mut lane = Vec::new();
                for call in trace.thread_calls(thread) {
                    let time = trace.calls.interval(call);
                    if analysis.window.contains(time.start) && !trace.call_ops(call).is_empty() {
                        let last = &mut last_submit[trace.call_process(call).index()];
                        *last = (*last).max(time.start);
                    }
                    if time.end > end {
                        end = time.end;
                        if analysis.window.contains(time.start) {
                            lane.push(call);
                        }
                    }
                }
                lane
            })
            .collect();
        let spans = analysis.devices.iter().map(|device| device.span);
        let span = spans.reduce(|all, one| Interval::new(all.start.min(one.start), all.end.max(one.end)));
        Self {
            trace,
            host,
            analysis,
            limits: &options.findings,
            long_launch: options.constants.long_launch,
            lanes,
            last_submit,
            span: span.unwrap_or_default(),
            until,
        }
    }

    /// The outermost calls of each thread.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &[CallIdx]> {
        self.lanes.iter().map(Vec::as_slice)
    }

    /// The outermost calls of a thread.
    pub(super) fn lane(&self, thread: ThreadIdx) -> &[CallIdx] {
        &self.lanes[thread.index()]
    }

    pub(super) fn waits(&self) -> &Waits {
        &self.host.waits
    }

    pub(super) fn wait(&self, call: CallIdx) -> Option<&Wait> {
        self.host.waits.of(call)
    }

    pub(super) fn start(&self, call: CallIdx) -> Ns {
        self.trace.calls.start[call.index()]
    }

    /// Whether the process submits no work after the call.
    pub(super) fn is_final(&self, call: CallIdx) -> bool {
        self.start(call) >= self.last_submit[self.trace.call_process(call).index()]
    }

    /// Whether moments are a loop: many, or in half of the iterations.
    pub(super) fn recurs(&self, moments: &[Ns]) -> bool {
        if moments.len() >= self.limits.min_repeats {
            return true;
        }
        let Some(iterations) = &self.analysis.iterations else { return false };
        let settled = iterations.intervals.get(iterations.warmup as usize..).unwrap_or_default();
        let hit = settled.iter().filter(|interval| moments.iter().any(|&moment| interval.contains(moment))).count();
        hit >= self.limits.min_iterations && hit * 2 >= settled.len()
    }

    /// Whether moments are a loop that goes on through the recording, rather than a burst at its start.
    pub(super) fn keeps_recurring(&self, moments: &[Ns]) -> bool {
        let (Some(first), Some(last)) = (moments.iter().min(), moments.iter().max()) else { return false };
        self.recurs(moments) && last.saturating_sub(*first).0 >= self.span.len().0 / 2
    }

    /// When the program has settled, if iterations tell.
    pub(super) fn settled(&self) -> Option<Interval> {
        let iterations = self.analysis.iterations.as_ref()?;
        let settled = iterations.intervals.get(iterations.warmup as usize..)?;
        Some(Interval::new(settled.first()?.start, settled.last()?.end))
    }

    /// The calls that recur, in groups of one name, site and `key` each, the largest first.
    pub(super) fn groups<K: Copy + Eq + std::hash::Hash + Ord>(
        &self,
        calls: &[CallIdx],
        key: impl Fn(CallIdx) -> K,
    ) -> Vec<Group> {
        let mut at: FxHashMap<(NameId, Option<NameId>, K), usize> = FxHashMap::default();
        let mut groups: Vec<Group> = Vec::new();
        for &call in calls {
            let site = self.range_around(call);
            let group = *at.entry((self.trace.calls.name[call.index()], site, key(call))).or_insert_with(|| {
                let site = site.map(|name| site_name(self.trace.names.get(name)).to_owned());
                groups.push(Group { api: self.trace.call_name(call).to_owned(), site, calls: Vec::new() });
                groups.len() - 1
            });
            groups[group].calls.push(call);
        }
        // Ranges that count their repetitions have one name each; the stems join them, and versions of one API.
        groups.sort_by(|a, b| (&a.api, &a.site).cmp(&(&b.api, &b.site)));
        let mut joined: Vec<Group> = Vec::new();
        for group in groups {
            match joined.last_mut().filter(|last| last.api == group.api && last.site == group.site) {
                Some(last) => last.calls.extend(group.calls),
                None => joined.push(group),
            }
        }
        for group in &mut joined {
            group.calls.sort_by_key(|&call| (self.start(call), call));
        }
        joined.sort_by_key(|group| std::cmp::Reverse(group.calls.len()));
        joined
    }

    /// The innermost range around a call, a trailing number cut off.
    pub(super) fn site(&self, call: CallIdx) -> Option<String> {
        let range = self.range_around(call)?;
        Some(site_name(self.trace.names.get(range)).to_owned())
    }

    /// The name of the innermost range around a call.
    fn range_around(&self, call: CallIdx) -> Option<NameId> {
        let thread = self.trace.calls.thread[call.index()];
        let range = self.host.ranges.innermost(self.trace, thread, self.start(call))?;
        Some(self.trace.ranges[range.index()].name)
    }

    /// When each of some calls began.
    pub(super) fn starts(&self, calls: &[CallIdx]) -> Vec<Ns> {
        calls.iter().map(|&call| self.start(call)).collect()
    }

    /// Bubbles that have to do with calls: drained by one, or their root.
    pub(super) fn bubbles_of(&self, calls: &[CallIdx]) -> Idle {
        self.bubbles_among(calls, calls)
    }

    /// The same of some calls out of `all` of one pattern: a bubble whose root is one of the others is theirs.
    fn bubbles_among(&self, calls: &[CallIdx], all: &[CallIdx]) -> Idle {
        let sorted = |calls: &[CallIdx]| {
            let mut sorted = calls.to_vec();
            sorted.sort_unstable();
            sorted
        };
        let (own, all) = (sorted(calls), sorted(all));
        let among =
            |calls: &[CallIdx], call: Option<CallIdx>| call.is_some_and(|call| calls.binary_search(&call).is_ok());
        let ours = |call: Option<CallIdx>| among(&own, call);
        let mut idle = Idle::default();
        let bubbles = self.analysis.devices.iter().flat_map(|device| device.bubbles.iter().map(move |b| (device, b)));
        for (turn, (device, bubble)) in bubbles.enumerate() {
            if self.until.is_over_at(turn) {
                break;
            }
            let blamed = bubble.root.call.filter(|_| bubble.root.cause.blames_call());
            let theirs = among(&all, blamed) && !ours(blamed);
            if theirs {
                let parts = device.segments_of(bubble).iter().filter(|part| ours(part.call()));
                idle.beside += parts.map(|part| part.interval.len()).sum::<Ns>();
            }
            let drained = ours(bubble.drained_by.map(|drain| drain.call)) && !theirs;
            if drained {
                idle.drained += bubble.interval.len();
                idle.count += 1;
                if !ours(blamed) {
                    *idle.others.entry(bubble.root.cause).or_default() += bubble.interval.len();
                }
            }
            if ours(blamed) {
                idle.caused += bubble.interval.len();
                idle.caused_count += 1;
            }
            if drained || ours(bubble.root.call) || ours(bubble.refill_of) {
                idle.total += bubble.interval.len();
            }
        }
        idle
    }

    /// The bubbles of every device.
    pub(super) fn bubbles(&self) -> impl Iterator<Item = &Bubble> {
        self.analysis.devices.iter().flat_map(|device| &device.bubbles)
    }

    /// The evidence that calls are, by API and site.
    pub(super) fn evidence(&self, groups: &[Group], more: impl Fn(&Group) -> String) -> Vec<Evidence> {
        groups
            .iter()
            .take(3)
            .map(|group| {
                let site = group.site.as_ref().map_or_else(String::new, |site| format!(" in {site}"));
                let text = format!("{}{site}: {}{}", group.api, self.how_often(group), more(group));
                let at = examples(&self.starts(&group.calls));
                Evidence { text, api: Some(group.api.clone()), site: group.site.clone(), at }
            })
            .collect()
    }

    /// What the bubbles that some calls caused show, or else those that began while they waited, as the end of a sentence.
    pub(super) fn idle_text(&self, calls: &[CallIdx]) -> String {
        self.idle_text_among(calls, calls)
    }

    /// How often calls of one name at one site follow a pattern, and how many there are besides.
    pub(super) fn how_often(&self, group: &Group) -> String {
        let (ours, rows) = (group.calls.len(), &self.analysis.sync_calls);
        let row = rows.iter().find(|row| row.api == group.api && row.site == group.site);
        match row.map(|row| row.call_list.len()).filter(|&all| all > ours) {
            Some(all) => format!("{} of its {} calls", grouped(ours as u64), grouped(all as u64)),
            None => times(ours),
        }
    }

    /// The same of some calls out of `all` of one pattern. Each bubble counts with one of them, so what passed of it in
    /// others is said as well.
    fn idle_text_among(&self, calls: &[CallIdx], all: &[CallIdx]) -> String {
        let idle = self.bubbles_among(calls, all);
        let beside = match idle.beside {
            Ns::ZERO => String::new(),
            beside => {
                let beside = time(beside);
                format!(
                    "; {beside} more of idle time passed in it, in bubbles that count with the finding's other calls"
                )
            }
        };
        idle.own_text() + &beside
    }

    /// A candidate whose change concerns calls.
    pub(super) fn candidate(&self, id: FindingId, title: String, groups: &[Group], words: Words) -> Candidate {
        let calls: Vec<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
        Candidate {
            id,
            title,
            count: calls.len() as u64,
            evidence: self.evidence(groups, |group| self.idle_text_among(&group.calls, &calls)),
            remedy: words.remedy,
            changes: words.changes,
            change: format!("{}: {}", id, words.change),
            wait: None,
            host_steps: None,
            estimate: self.bubbles_of(&calls).total,
        }
    }

    /// How much of the time of some ops lies under kernels of their device.
    pub(super) fn under_kernels(&self, ops: &[OpIdx]) -> Ns {
        let trace = self.trace;
        let all = &trace.ops;
        let mut kernels: Vec<Interval> = Vec::new();
        let mut under = |&op: &OpIdx| -> Ns {
            let (device, time) = (trace.op_device(op), all.interval(op));
            kernels.clear();
            for stream in trace.streams.iter().filter(|stream| stream.device == device) {
                let lane = &all.start[stream.ops.start as usize..stream.ops.end as usize];
                // One that began before may reach into the copy; a stream runs one after the other.
                let first = lane.partition_point(|&start| start < time.start).saturating_sub(1);
                let met = (first..lane.len()).take_while(|&at| lane[at] < time.end);
                let met = met.map(|at| OpIdx(stream.ops.start + at as u32));
                let met = met.filter(|op| matches!(all.kind[op.index()], OpKind::Kernel | OpKind::Graph));
                kernels.extend(met.map(|op| all.interval(op).intersect(time)));
            }
            covered(&mut kernels)
        };
        ops.iter().map(&mut under).sum()
    }
}

/// Calls of one name at one site.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) api: String,
    pub(super) site: Option<String>,
    /// In order of time.
    pub(super) calls: Vec<CallIdx>,
}

/// What is done about calls.
pub(super) struct Words {
    pub(super) remedy: &'static str,
    pub(super) changes: Vec<Change>,
    pub(super) change: String,
}

/// Idle time that has to do with calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Idle {
    /// Bubbles that began while one of the calls waited.
    pub(super) drained: Ns,
    pub(super) count: u64,
    /// Bubbles whose root is one of the calls.
    pub(super) caused: Ns,
    pub(super) caused_count: u64,
    /// The part of them whose root is none of the calls, by root.
    pub(super) others: BTreeMap<Cause, Ns>,
    /// Those, the bubbles whose root is one of the calls, and refills.
    pub(super) total: Ns,
    /// What passed in the calls of bubbles that count with others.
    pub(super) beside: Ns,
}

impl Idle {
    /// What the bubbles show that some calls caused, or else those that began while they waited.
    fn own_text(&self) -> String {
        if self.caused > self.drained {
            let bubbles = counted(self.caused_count, "bubble exists", "bubbles exist");
            return format!("; {bubbles} because of that, {}", long(self.caused_count, self.caused));
        }
        if self.count == 0 {
            return String::new();
        }
        let bubbles = counted(self.count, "bubble", "bubbles");
        let drained = format!("; {bubbles} began while the host waited, {}", long(self.count, self.drained));
        // The call emptied the device, and something else kept it empty: both must be said, or the two contradict.
        match self.others.iter().max_by_key(|&(_, &long)| long) {
            Some((cause, &long)) if long.0 > self.drained.0 / 2 => {
                let part = if long == self.drained { "All".to_owned() } else { time(long) };
                format!(
                    "{drained}. {part} of that has another root cause, {cause}: the promise is that the host gets there \
                     while the GPU still runs, not that it goes away"
                )
            }
            _ => drained,
        }
    }
}

/// How long so many things are together.
fn long(count: u64, total: Ns) -> String {
    let together = if count == 1 { "" } else { " together" };
    format!("{} long{together}", time(total))
}

/// A few moments out of many: away from the ends, where programs start and stop.
pub(super) fn examples(moments: &[Ns]) -> Vec<Ns> {
    let mut chosen: Vec<Ns> =
        [1, 2, 3].iter().filter_map(|quarter| moments.get(moments.len() * quarter / 4)).copied().collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}
