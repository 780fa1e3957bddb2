//! Judges why a bubble exists, and finds the call that drained the device.

use std::sync::OnceLock;

use crate::trace::{CallIdx, Detail, Interval, MemoryKind, Ns, RangeIdx};

use super::calls::{CallClasses, DrainerReader, HostGapReader};
use super::cause::{Cause, Confidence, Rule, SegmentKind};
use super::partition::Gap;
use super::result::{Drain, RootCause, Segment, SegmentDetail};
use super::segments::{Explainer, FirstLaunches, Hold, Readiness};

/// What is needed to judge the bubbles of one device.
pub(super) struct Judge<'a> {
    pub(super) explainer: &'a Explainer<'a>,
    pub(super) classes: &'a CallClasses,
    pub(super) drainers: DrainerReader<'a>,
    pub(super) host_gaps: HostGapReader<'a>,
    /// A launch call at least this long is remarkable.
    pub(super) long_launch: Ns,
    pub(super) first_launches: &'a OnceLock<FirstLaunches>,
}

/// The cause, how sure it is, by which rule, and the call to blame.
type Verdict = (Cause, Confidence, Rule, Option<CallIdx>);

/// The time that segments of one kind take, and the longest of them.
#[derive(Clone, Copy)]
struct Share<'s> {
    total: Ns,
    longest: &'s Segment,
}

/// What can fill a bubble beside launches and host code, in the order in which equal shares are decided.
const FILLERS: [SegmentKind; 5] = [
    SegmentKind::Profiler,
    SegmentKind::ModuleLoad,
    SegmentKind::GraphBuild,
    SegmentKind::Allocation,
    SegmentKind::SyncReturn,
];

impl Judge<'_> {
    /// The blocking or allocating call that was open when the device ran dry, or whose copy ended then, and that began
    /// before the launch that came late: a later one cannot have kept it. Nor can that launch itself, which ends the
    /// bubble: a blocking copy drains the device at its end and not between the last kernel and its own op.
    pub(super) fn drain(&self, gap: &Gap, launch: CallIdx) -> Option<Drain> {
        let trace = self.explainer.trace;
        let thread = trace.calls.thread[launch.index()];
        let drain = |call, confidence| {
            let cause = self.classes.drain(call)?;
            Some(Drain { call, cause, confidence })
        };
        let dry = gap.interval.start;
        let launched = trace.calls.start[launch.index()];
        let earlier = |call: &CallIdx| *call != launch && trace.calls.start[call.index()] <= launched;
        let own = self.drainers.open(trace, thread, dry).filter(earlier);
        if let Some(call) = own.or(gap.own_copy.filter(earlier)) {
            // A copy may end after its call, which then did not hold the host until the device was dry.
            return drain(call, if self.is_open(call, dry) { Confidence::Certain } else { Confidence::Likely });
        }
        let process = trace.call_process(launch);
        let call = self.drainers.open_elsewhere(trace, process, thread, Interval::new(dry, launched))?;
        drain(call, Confidence::Likely)
    }

    /// The launch itself if it was open when the device ran dry and blocks: it kept the device waiting for its own op.
    fn itself(&self, gap: &Gap, launch: CallIdx) -> Option<Drain> {
        let cause = self.classes.drain(launch)?;
        let open = self.is_open(launch, gap.interval.start);
        open.then_some(Drain { call: launch, cause, confidence: Confidence::Certain })
    }

    /// Whether a call is open at `moment`, both ends included.
    fn is_open(&self, call: CallIdx, moment: Ns) -> bool {
        let calls = &self.explainer.trace.calls;
        calls.start[call.index()] <= moment && moment <= calls.end[call.index()]
    }

    /// The reason that best explains a bubble: the first rule that fits.
    pub(super) fn root(
        &self,
        gap: &Gap,
        readiness: Readiness,
        drained_by: Option<Drain>,
        segments: &[Segment],
    ) -> RootCause {
        let launch = self.explainer.trace.ops.launch(gap.after);
        let stalled = segments.iter().any(|segment| segment.kind == SegmentKind::Stalled);
        let held = |cause, confidence, rule, call| {
            if stalled {
                (Cause::Stalled, Confidence::Likely, Rule::QueuedGapTooLong, launch)
            } else {
                (cause, confidence, rule, call)
            }
        };
        let (cause, confidence, rule, call) = match readiness {
            Readiness::Unknown => (Cause::Unattributed, Confidence::Guess, Rule::NoLaunch, None),
            Readiness::SameGraph => held(Cause::GraphInternal, Confidence::Certain, Rule::SameGraphLaunch, launch),
            Readiness::Enqueued(Hold::Wait { call, resolved }) => {
                let confidence = if resolved { Confidence::Certain } else { Confidence::Likely };
                (Cause::Dependency, confidence, Rule::RecordedWait, call.or(launch))
            }
            Readiness::Enqueued(Hold::HostFunction) => {
                (Cause::Dependency, Confidence::Certain, Rule::RecordedWait, launch)
            }
            Readiness::Enqueued(Hold::DefaultStream) => {
                held(Cause::Dependency, Confidence::Certain, Rule::LegacyDefaultStream, launch)
            }
            Readiness::Enqueued(Hold::OtherStream) => {
                held(Cause::Dependency, Confidence::Guess, Rule::StreamWasFree, launch)
            }
            Readiness::Enqueued(Hold::Queue) => held(Cause::Dispatch, Confidence::Certain, Rule::QueuedBehind, launch),
            Readiness::Starved { launch } => self.starved(gap, launch, drained_by, segments),
        };
        RootCause { cause, confidence, rule, call, site: self.site(cause, call, segments) }
    }

    fn starved(&self, gap: &Gap, launch: CallIdx, drained_by: Option<Drain>, segments: &[Segment]) -> Verdict {
        let calls = &self.explainer.trace.calls;
        let fills_half = |length: Ns| length.0.saturating_mul(2) >= gap.interval.len().0;
        let kinds = segments.iter().fold(0_u32, |kinds, segment| kinds | 1 << segment.kind as u8);
        let share = |kind| if kinds & (1 << kind as u8) == 0 { None } else { share(segments, kind) };
        // An op that seems to start before its launch leaves the reading of host time open.
        let likely =
            if calls.start[launch.index()] < gap.interval.end { Confidence::Likely } else { Confidence::Guess };

        if share(SegmentKind::Stalled).is_some_and(|share| fills_half(share.total)) {
            return (Cause::Stalled, likely, Rule::LatencyTooLong, Some(launch));
        }
        let drain = drained_by.or_else(|| self.itself(gap, launch));
        if let Some(drain) = drain.filter(|drain| fills_half(calls.interval(drain.call).len())) {
            let rule = if drained_by.is_some() { Rule::DrainFillsHalf } else { Rule::OwnLaunchFillsHalf };
            return (drain.cause, drain.confidence, rule, Some(drain.call));
        }
        let shares = FILLERS.iter().rev().filter_map(|&kind| {
            let mut share = share(kind)?;
            if matches!(kind, SegmentKind::GraphBuild | SegmentKind::ModuleLoad) {
                share.total += self.first_launch(launch, self.filler_cause(share.longest), segments);
            }
            Some(share)
        });
        if let Some(filler) = shares.max_by_key(|share| share.total).filter(|share| fills_half(share.total)) {
            let cause = self.filler_cause(filler.longest);
            // Loading that no call was seen to do is the first launch's.
            let own = || (cause == Cause::ModuleLoad && self.first_work(launch) == Some(cause)).then_some(launch);
            return (cause, likely, Rule::FillsHalf, filler.longest.call().or_else(own));
        }
        if let Some(long) = share(SegmentKind::LaunchCall).map(|share| share.longest)
            && long.interval.len() >= self.explainer.constants.long_launch
            && fills_half(long.interval.len())
            && let Some(call) = long.call()
            && self.stages(call)
        {
            return (Cause::BlockingCopy, likely, Rule::FillsHalf, Some(call));
        }
        if let Some(long) = share(SegmentKind::LaunchCall).map(|share| share.longest)
            && long.interval.len() >= self.long_launch
            && fills_half(long.interval.len())
            && let Some(call) = long.call()
        {
            return match self.first_work(call) {
                Some(cause) => (cause, likely, Rule::FirstLaunchLong, Some(call)),
                None => (Cause::LaunchBound, likely, Rule::LaunchCallLong, Some(call)),
            };
        }
        let since = self.since_last_call(gap, launch);
        if let Some(rule) = self.host_computed(gap, launch, since, share(SegmentKind::HostCode)) {
            return (Cause::HostBound, likely, rule, Some(launch));
        }
        // A gap that lies mostly in the bubble and is no launching, and nothing fills half: the most of it decides.
        let inside = before_launch(gap, calls.interval(launch)).len();
        if since >= self.long_gap(launch) && inside.0.saturating_mul(2) >= since.0 {
            let shares = SegmentKind::ALL.iter().rev().filter_map(|&kind| share(kind));
            match shares.max_by_key(|share| share.total).map(|share| share.longest) {
                Some(most) if most.kind == SegmentKind::HostCode => {
                    return (Cause::HostBound, likely, Rule::FillsMost, Some(launch));
                }
                Some(most) if FILLERS.contains(&most.kind) && most.kind != SegmentKind::SyncReturn => {
                    return (self.filler_cause(most), likely, Rule::FillsMost, most.call());
                }
                _ => {}
            }
        }
        (Cause::LaunchBound, likely, Rule::LaunchLate, Some(launch))
    }

    /// The time in `launch` itself if it is a first one that this cause is behind: it takes to the device the graph that
    /// was built before it, or its kernel's code, of whose loading only a part has records.
    fn first_launch(&self, launch: CallIdx, cause: Cause, segments: &[Segment]) -> Ns {
        if self.first_work(launch) != Some(cause) {
            return Ns::ZERO;
        }
        let own = |segment: &&Segment| segment.kind == SegmentKind::LaunchCall && segment.call() == Some(launch);
        segments.iter().filter(own).map(|segment| segment.interval.len()).sum()
    }

    /// What a launch has done beside launching if it is a first one.
    fn first_work(&self, call: CallIdx) -> Option<Cause> {
        let trace = self.explainer.trace;
        self.first_launches.get_or_init(|| FirstLaunches::new(trace)).work(trace, call)
    }

    /// Whether the host itself moves data during a call before its op can start: pageable memory goes to the device by
    /// way of a buffer of the driver's. Such a call may return before its op starts, and then it waits for nothing.
    fn stages(&self, call: CallIdx) -> bool {
        let trace = self.explainer.trace;
        trace
            .call_ops(call)
            .iter()
            .any(|&op| matches!(trace.op_detail(op), Detail::Copy { from: MemoryKind::Pageable, .. }))
    }

    fn filler_cause(&self, segment: &Segment) -> Cause {
        match segment.kind {
            SegmentKind::Profiler => Cause::Profiler,
            SegmentKind::ModuleLoad => Cause::ModuleLoad,
            SegmentKind::GraphBuild => Cause::GraphBuild,
            SegmentKind::Allocation => Cause::Allocation,
            _ => segment.call().and_then(|call| self.classes.drain(call)).unwrap_or(Cause::Sync),
        }
    }

    /// How long before `launch` its process had made no call that launches or blocks. What it did before its first one is
    /// not known, but that it made none since the device ran dry.
    fn since_last_call(&self, gap: &Gap, launch: CallIdx) -> Ns {
        let trace = self.explainer.trace;
        let call = trace.calls.interval(launch);
        let before = self.host_gaps.before(trace.call_process(launch), call);
        before.unwrap_or_else(|| before_launch(gap, call).len())
    }

    /// A time between such calls that is longer than they usually leave.
    fn long_gap(&self, launch: CallIdx) -> Ns {
        let constants = self.explainer.constants;
        let usual = self.host_gaps.median(self.explainer.trace.call_process(launch)).unwrap_or_default();
        let limit = Ns(usual.0.saturating_mul(constants.host_gap_factor));
        limit.min(constants.host_gap_max).max(constants.host_gap_min)
    }

    /// The rule by which the host computed before `launch`, rather than merely launched: its own code fills half of the
    /// bubble, or of the time `since` the process last launched or blocked, and it did so for longer than it usually does,
    /// or for long in any program. `host_code` is what the bubble has of it.
    fn host_computed(&self, gap: &Gap, launch: CallIdx, since: Ns, host_code: Option<Share<'_>>) -> Option<Rule> {
        let trace = self.explainer.trace;
        let call = trace.calls.interval(launch);
        let half = |part: Ns, whole: Ns| part.0.saturating_mul(2) >= whole.0;
        let (total, longest) =
            host_code.map_or((Ns::ZERO, Ns::ZERO), |share| (share.total, share.longest.interval.len()));
        let fills_half = half(total, gap.interval.len());
        // A launch may come a little late after long host code: of such a bubble the host's code is the lesser part, or
        // none, and yet the reason.
        let mostly_computed = || {
            let thread = trace.calls.thread[launch.index()];
            let alone = Interval::new(call.start - since, call.start);
            half(total, before_launch(gap, call).len()) && half(self.explainer.host_code(thread, alone), since)
        };
        if since >= self.long_gap(launch) && (fills_half || mostly_computed()) {
            Some(Rule::HostGap)
        } else {
            let long = since.max(longest) >= self.explainer.constants.host_gap_always;
            (fills_half && long).then_some(Rule::HostCodeFillsHalf)
        }
    }

    /// The range around the longest stretch of host code, or around the call to blame.
    fn site(&self, cause: Cause, call: Option<CallIdx>, segments: &[Segment]) -> Option<RangeIdx> {
        let trace = self.explainer.trace;
        if trace.ranges.is_empty() {
            return None;
        }
        if cause == Cause::HostBound
            && let Some(SegmentDetail::Range(range)) =
                share(segments, SegmentKind::HostCode).map(|share| share.longest.what)
        {
            return Some(range);
        }
        let call = call?;
        let thread = trace.calls.thread[call.index()];
        self.explainer.ranges.innermost(trace, thread, trace.calls.start[call.index()])
    }
}

/// The part of a bubble before a launch.
fn before_launch(gap: &Gap, call: Interval) -> Interval {
    let bubble = gap.interval;
    Interval::new(bubble.start, call.start.clamp(bubble.start, bubble.end))
}

/// The segments of one kind together, and the first of the longest.
fn share(segments: &[Segment], kind: SegmentKind) -> Option<Share<'_>> {
    let of_kind = segments.iter().filter(|segment| segment.kind == kind);
    of_kind.fold(None, |share: Option<Share<'_>>, segment| {
        Some(match share {
            None => Share { total: segment.interval.len(), longest: segment },
            Some(share) => {
                let longer = segment.interval.len() > share.longest.interval.len();
                let longest = if longer { segment } else { share.longest };
                Share { total: share.total + segment.interval.len(), longest }
            }
        })
    })
}
