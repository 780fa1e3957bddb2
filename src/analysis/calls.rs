//! What each call means to an idle device: whether it can have drained it, and whether it kept the host busy.

use crate::trace::{ApiKind, CallIdx, Interval, Ns, ProcessIdx, ThreadIdx, Trace};

use super::cause::Cause;
use super::waits::{WaitCause, Waits};

/// For every call whether it blocks or allocates, and as what.
pub(super) struct CallClasses(Vec<Option<Cause>>);

impl CallClasses {
    pub(super) fn new(trace: &Trace, waits: &Waits) -> Self {
        let allocates = |kind: &ApiKind| matches!(kind, ApiKind::Alloc | ApiKind::Free).then_some(Cause::Allocation);
        let mut classes: Vec<Option<Cause>> = trace.calls.kind.iter().map(allocates).collect();
        for wait in waits.calls() {
            let class = &mut classes[wait.call.index()];
            *class = class.or(Some(match wait.cause {
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
        self.0[call.index()]
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

    /// The outermost call of a thread that was open at `moment`, both ends included.
    pub(super) fn open(&self, trace: &Trace, thread: ThreadIdx, moment: Ns) -> Option<CallIdx> {
        let drainers = &self.threads[thread.index()];
        let at = drainers.reach.partition_point(|&reach| reach < moment);
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
        let threads = self.by_process[process.index()].iter().copied().filter(|&thread| thread != not);
        threads
            .filter_map(|thread| self.open(trace, thread, within.start))
            .filter(|call| trace.calls.end[call.index()] <= within.end)
            .max_by_key(|call| (trace.calls.end[call.index()], std::cmp::Reverse(*call)))
    }

    /// Every call that can drain a device, in the order of the call table.
    pub(super) fn all(&self) -> impl Iterator<Item = CallIdx> + '_ {
        self.threads.iter().flat_map(|drainers| drainers.calls.iter().copied())
    }
}

/// When the calls of each process that submitted work or blocked had ended.
pub(super) struct HostGaps {
    processes: Vec<ProcessGaps>,
}

#[derive(Default)]
struct ProcessGaps {
    /// The ends of those calls, sorted.
    ends: Vec<Ns>,
    /// The low median of the time from the last end of another such call to a call's start.
    median: Option<Ns>,
}

impl HostGaps {
    pub(super) fn new(trace: &Trace, waits: &Waits) -> Self {
        let mut processes: Vec<ProcessGaps> = Vec::new();
        processes.resize_with(trace.processes.len(), ProcessGaps::default);
        let mut calls: Vec<Vec<Interval>> = vec![Vec::new(); trace.processes.len()];
        let mut blocking = waits.calls().iter().map(|wait| wait.call).peekable();
        for call in trace.calls.indices() {
            let blocks = blocking.next_if_eq(&call).is_some();
            if blocks || !trace.call_ops(call).is_empty() {
                let process = trace.call_process(call).index();
                processes[process].ends.push(trace.calls.end[call.index()]);
                calls[process].push(trace.calls.interval(call));
            }
        }
        for (process, mut calls) in processes.iter_mut().zip(calls) {
            // Stable sorts: the lanes are sorted runs already.
            process.ends.sort();
            calls.sort();
            let mut ended = 0;
            let mut gaps: Vec<Ns> = Vec::with_capacity(calls.len());
            for call in calls {
                while process.ends.get(ended).is_some_and(|&end| end <= call.start) {
                    ended += 1;
                }
                gaps.extend(process.gap(ended, call));
            }
            process.median = super::stats::low_median(&mut gaps);
        }
        Self { processes }
    }

    /// How long before `call`, which is such a call, another one had ended.
    pub(super) fn before(&self, process: ProcessIdx, call: Interval) -> Option<Ns> {
        let process = &self.processes[process.index()];
        process.gap(process.ends.partition_point(|&end| end <= call.start), call)
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
