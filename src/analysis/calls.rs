//! What each call means to an idle device: whether it can have drained it, and whether it kept the host busy.

use std::ops::Range;

use crate::trace::{ApiKind, CallIdx, Interval, Ns, ProcessIdx, ThreadIdx, Trace};

use super::cause::Cause;
use super::intervals::LaneMerge;
use super::near::Places;
use super::stats::Tally;
use super::waits::{WaitCause, Waits};

/// For every call whether it blocks or allocates, and as what.
pub(super) struct CallClasses(Vec<Class>);

#[derive(Clone, Copy)]
struct Class {
    drain: Option<Cause>,
    blocks: bool,
}

impl CallClasses {
    pub(super) fn new(trace: &Trace, waits: &Waits) -> Self {
        let allocates = |kind: &ApiKind| matches!(kind, ApiKind::Alloc | ApiKind::Free).then_some(Cause::Allocation);
        let unblocked = |kind| Class { drain: allocates(kind), blocks: false };
        let mut classes: Vec<Class> = trace.calls.kind.iter().map(unblocked).collect();
        for wait in waits.calls() {
            let class = &mut classes[wait.call.index()];
            class.blocks = true;
            class.drain = class.drain.or(Some(match wait.cause {
                WaitCause::BlockingCopy | WaitCause::PageableCopy | WaitCause::Memset => Cause::BlockingCopy,
                WaitCause::Free => Cause::Allocation,
                WaitCause::Sync
                | WaitCause::SpinBody
                | WaitCause::SpinEnd
                | WaitCause::BlockingLaunch
                | WaitCause::Recorded => Cause::Sync,
            }));
        }
        Self(classes)
    }

    /// [`Cause::Sync`], [`Cause::BlockingCopy`] or [`Cause::Allocation`] when the call can drain a device.
    #[inline]
    pub(super) fn drain(&self, call: CallIdx) -> Option<Cause> {
        self.0[call.index()].drain
    }

    /// Whether the call is among the [`Waits`].
    #[inline]
    pub(super) fn blocks(&self, call: CallIdx) -> bool {
        self.0[call.index()].blocks
    }
}

/// The calls of each thread that can drain a device.
pub(super) struct Drainers {
    threads: Vec<ThreadDrainers>,
    /// The threads of each process that have any.
    by_process: Vec<Vec<ThreadIdx>>,
}

#[derive(Default)]
struct ThreadDrainers {
    calls: Vec<CallIdx>,
    /// The latest end of each call and those before it.
    reach: Vec<Ns>,
}

impl Drainers {
    pub(super) fn new(trace: &Trace, classes: &CallClasses) -> Self {
        let mut threads = Vec::with_capacity(trace.threads.len());
        let mut by_process = vec![Vec::new(); trace.processes.len()];
        for index in 0..trace.threads.len() {
            let thread = ThreadIdx::from_index(index);
            let mut drainers = ThreadDrainers::default();
            let mut reach = Ns::MIN;
            for call in trace.thread_calls(thread).filter(|&call| classes.drain(call).is_some()) {
                reach = reach.max(trace.calls.end[call.index()]);
                drainers.calls.push(call);
                drainers.reach.push(reach);
            }
            if !drainers.calls.is_empty() {
                by_process[trace.threads[index].process.index()].push(thread);
            }
            threads.push(drainers);
        }
        Self { threads, by_process }
    }

    /// Every call that can drain a device, in the order of the call table.
    pub(super) fn all(&self) -> impl Iterator<Item = CallIdx> + '_ {
        self.threads.iter().flat_map(|drainers| drainers.calls.iter().copied())
    }

    /// For moments that come in order of time on each thread.
    pub(super) fn reader(&self) -> DrainerReader<'_> {
        DrainerReader { drainers: self, places: Places::new(self.threads.len()) }
    }
}

/// Reads [`Drainers`].
pub(super) struct DrainerReader<'a> {
    drainers: &'a Drainers,
    places: Places,
}

impl DrainerReader<'_> {
    /// The outermost call of a thread that was open at `moment`, both ends included.
    pub(super) fn open(&self, trace: &Trace, thread: ThreadIdx, moment: Ns) -> Option<CallIdx> {
        let drainers = &self.drainers.threads[thread.index()];
        let at = self.places.partition_point(thread.index(), &drainers.reach, |&reach| reach < moment);
        drainers.calls.get(at).copied().filter(|call| trace.calls.start[call.index()] <= moment)
    }

    /// Of the other threads' outermost calls that were open at the start of `within` the one that ended last, not
    /// after its end.
    pub(super) fn open_elsewhere(
        &self,
        trace: &Trace,
        process: ProcessIdx,
        not: ThreadIdx,
        within: Interval,
    ) -> Option<CallIdx> {
        let threads = self.drainers.by_process[process.index()].iter().copied().filter(|&thread| thread != not);
        threads
            .filter_map(|thread| self.open(trace, thread, within.start))
            .filter(|call| trace.calls.end[call.index()] <= within.end)
            .max_by_key(|call| (trace.calls.end[call.index()], std::cmp::Reverse(*call)))
    }
}

/// When the calls of each process that submitted work or blocked had ended.
pub(super) struct HostGaps {
    processes: Vec<ProcessGaps>,
}

struct ProcessGaps {
    /// The ends of those calls, sorted.
    ends: Vec<Ns>,
    /// The low median of the time from the last end of another such call to a call's start.
    median: Option<Ns>,
}

impl HostGaps {
    pub(super) fn new(trace: &Trace, classes: &CallClasses) -> Self {
        let matters = |call: &CallIdx| classes.blocks(*call) || !trace.call_ops(*call).is_empty();
        let mut lanes_of = vec![Vec::new(); trace.processes.len()];
        for thread in &trace.threads {
            lanes_of[thread.process.index()].push(thread.calls.clone());
        }
        let of_process = |lanes: &Vec<Range<u32>>| {
            let lanes = lanes.iter().cloned();
            let calls = lanes.clone().flatten().map(CallIdx).filter(matters);
            let mut ends: Vec<Ns> = calls.map(|call| trace.calls.end[call.index()]).collect();
            // A stable sort: the lanes are sorted runs already.
            ends.sort();
            let mut found = ProcessGaps { ends, median: None };
            let mut ended = 0;
            let mut gaps = Tally::default();
            for call in LaneMerge::new(&trace.calls.start, lanes).map(CallIdx).filter(matters) {
                let call = trace.calls.interval(call);
                while found.ends.get(ended).is_some_and(|&end| end <= call.start) {
                    ended += 1;
                }
                if let Some(gap) = found.gap(ended, call) {
                    gaps.add(gap.0);
                }
            }
            found.median = gaps.low_median().map(Ns);
            found
        };
        Self { processes: lanes_of.iter().map(of_process).collect() }
    }

    /// For calls that come in order of time.
    pub(super) fn reader(&self) -> HostGapReader<'_> {
        HostGapReader { processes: &self.processes, places: Places::new(self.processes.len()) }
    }
}

/// Reads [`HostGaps`].
pub(super) struct HostGapReader<'a> {
    processes: &'a [ProcessGaps],
    places: Places,
}

impl HostGapReader<'_> {
    /// How long before `call`, which is such a call, another one had ended.
    pub(super) fn before(&self, process: ProcessIdx, call: Interval) -> Option<Ns> {
        let gaps = &self.processes[process.index()];
        gaps.gap(self.places.partition_point(process.index(), &gaps.ends, |&end| end <= call.start), call)
    }

    /// The median of such times.
    pub(super) fn median(&self, process: ProcessIdx) -> Option<Ns> {
        self.processes[process.index()].median
    }
}

impl ProcessGaps {
    /// The time from the last of the first `ended` ends to the start of `call`, whose own end does not count.
    fn gap(&self, ended: usize, call: Interval) -> Option<Ns> {
        let last = ended.checked_sub(1 + usize::from(call.is_empty()))?;
        Some(call.start - self.ends[last])
    }
}
