//! Patterns of calls that wait: read-backs, blocking copies, allocations, synchronisations, polls, timing.

use rustc_hash::{FxHashMap, FxHashSet};

use super::program::idle_of;
use super::subject::{Group, Idle, Subject, Words, examples};
use super::{Candidate, Evidence, FindingId};
use crate::analysis::cause::Cause;
use crate::analysis::copies::{is_from_host, is_to_host};
use crate::analysis::replay::{CallSet, Change};
use crate::analysis::stats::low_median;
use crate::analysis::waits::{CLOCK_SLACK, Target, Wait, WaitCause};
use crate::analysis::words::{bytes as size, grouped, rate, time, times};
use crate::progress::{Cancelled, Until};
use crate::trace::{ApiKind, CallIdx, Detail, MemoryKind, Ns, OpIdx, OpKind, ProcessIdx, Trace};

/// The waiting calls of a recording by pattern. Each call is in one place at most.
#[derive(Default)]
struct Sorted {
    copies: Vec<HostCopy>,
    allocations: Vec<CallIdx>,
    syncs: Vec<CallIdx>,
    /// Synchronisations with a reading of an event's time behind them.
    timing: Vec<CallIdx>,
    /// Readings of event times.
    readings: Vec<CallIdx>,
    spins: Vec<Spin>,
    memsets: Vec<CallIdx>,
}

/// A copy between host and device, with the wait that follows it.
struct HostCopy {
    call: CallIdx,
    op: OpIdx,
    /// The call waits for itself or stages pageable memory.
    blocks: bool,
    /// A synchronisation right behind it that waits for it.
    sync: Option<CallIdx>,
    /// The queries before that one, when it ends a spin.
    spin: Vec<CallIdx>,
}

/// Queries in a row.
struct Spin {
    end: CallIdx,
    body: Vec<CallIdx>,
}

/// Every candidate among the calls that wait.
pub(super) fn candidates(subject: &Subject<'_>, until: Until<'_>) -> Result<Vec<Candidate>, Cancelled> {
    let mut sorted = Sorted::default();
    for lane in subject.lanes() {
        sort_lane(subject, lane, &mut sorted);
        until.check()?;
    }
    let mut found: Vec<Candidate> = Vec::new();
    let copies = std::mem::take(&mut sorted.copies);
    found.extend(copy_candidates(subject, copies, &mut sorted));
    until.check()?;
    found.extend(allocation(subject, &sorted.allocations));
    until.check()?;
    found.extend(event_timing(subject, &mut sorted).or_else(|| events_for_time(subject)));
    until.check()?;
    found.extend(busy_polling(subject, &sorted.spins));
    until.check()?;
    found.extend(sync_after_launch(subject, &sorted.syncs));
    Ok(found)
}

/// Sorts the calls of one thread.
fn sort_lane(subject: &Subject<'_>, lane: &[CallIdx], sorted: &mut Sorted) {
    let trace = subject.trace;
    // The last copy with nothing submitted since, and the last synchronisation likewise.
    let (mut copy, mut sync): (Option<usize>, Option<usize>) = (None, None);
    let mut spin: Vec<CallIdx> = Vec::new();
    for &call in lane {
        let wait = subject.wait(call);
        let kind = trace.calls.kind[call.index()];
        if matches!(kind, ApiKind::Alloc | ApiKind::Free) {
            if !subject.is_final(call) {
                sorted.allocations.push(call);
            }
            continue;
        }
        if let Some(op) = host_copy(subject, call) {
            let blocks = wait.is_some() || is_pageable(subject, op);
            sync = None;
            copy = Some(sorted.copies.len());
            sorted.copies.push(HostCopy { call, op, blocks, sync: None, spin: Vec::new() });
            continue;
        }
        match wait.map(|wait| wait.cause) {
            Some(WaitCause::SpinBody) => spin.push(call),
            Some(WaitCause::Sync | WaitCause::SpinEnd) => {
                let wait = wait.copied();
                let spin = std::mem::take(&mut spin);
                let joins = copy.take().filter(|&at| {
                    let copy = &sorted.copies[at];
                    wait.is_some_and(|wait| covers(subject, &wait, copy.op))
                });
                if let Some(at) = joins {
                    (sorted.copies[at].sync, sorted.copies[at].spin) = (Some(call), spin);
                } else if spin.is_empty() {
                    sync = Some(sorted.syncs.len());
                    sorted.syncs.push(call);
                } else {
                    sorted.spins.push(Spin { end: call, body: spin });
                }
            }
            Some(WaitCause::BlockingLaunch) => {
                (copy, sync) = (None, None);
                sorted.syncs.push(call);
            }
            Some(WaitCause::Memset) => {
                (copy, sync) = (None, None);
                sorted.memsets.push(call);
            }
            _ if kind == ApiKind::EventElapsed => {
                sorted.readings.push(call);
                if let Some(at) = sync.take() {
                    sorted.timing.push(sorted.syncs.remove(at));
                }
            }
            _ if kind.submits() => (copy, sync) = (None, None),
            _ => {}
        }
    }
}

/// The op of a call that copies between host and device.
fn host_copy(subject: &Subject<'_>, call: CallIdx) -> Option<OpIdx> {
    let trace = subject.trace;
    if !matches!(trace.calls.kind[call.index()], ApiKind::CopyBlocking | ApiKind::CopyAsync) {
        return None;
    }
    let op = trace.call_ops(call).last().copied().filter(|op| trace.ops.kind[op.index()] == OpKind::Copy)?;
    (is_to_host(subject.trace, op) || is_from_host(subject.trace, op)).then_some(op)
}

fn is_pageable(subject: &Subject<'_>, op: OpIdx) -> bool {
    matches!(subject.trace.op_detail(op), Detail::Copy { from, to, .. } if [from, to].contains(&MemoryKind::Pageable))
}

/// Whether a wait is for an op, as far as the records tell.
fn covers(subject: &Subject<'_>, wait: &Wait, op: OpIdx) -> bool {
    let ops = &subject.trace.ops;
    if ops.end[op.index()] > subject.trace.calls.end[wait.call.index()].saturating_add(CLOCK_SLACK) {
        return false;
    }
    let stream = ops.stream[op.index()];
    match wait.target {
        Target::Op(awaited) | Target::OpStart(awaited) => awaited >= op && ops.stream[awaited.index()] == stream,
        Target::Stream(awaited) => awaited == stream,
        Target::DefaultStream(context) | Target::Context(context) => {
            subject.trace.streams[stream.index()].context == context
        }
        Target::Process(process) => subject.trace.op_process(op) == process,
        Target::Nothing => false,
    }
}

impl HostCopy {
    fn waits(&self, subject: &Subject<'_>) -> bool {
        self.sync.is_some() || subject.wait(self.call).is_some()
    }

    /// The copy and what waits for it.
    fn calls(&self) -> impl Iterator<Item = CallIdx> + '_ {
        std::iter::once(self.call).chain(self.spin.iter().copied()).chain(self.sync)
    }
}

/// The last of a copy's calls decides whether it ends the program.
fn is_final(subject: &Subject<'_>, copy: &HostCopy) -> bool {
    subject.is_final(copy.sync.unwrap_or(copy.call))
}

/// Read-backs of a few bytes, pageable asynchronous copies, and blocking copies, in this order. Synchronisations behind
/// copies that are none of these go back to the others.
fn copy_candidates(subject: &Subject<'_>, copies: Vec<HostCopy>, sorted: &mut Sorted) -> Vec<Candidate> {
    let trace = subject.trace;
    let mut kinds: [(FindingId, Vec<HostCopy>); 3] = [
        (FindingId::ScalarReadback, Vec::new()),
        (FindingId::PageableAsyncCopy, Vec::new()),
        (FindingId::BlockingCopyInLoop, Vec::new()),
    ];
    let mut rest: Vec<HostCopy> = Vec::new();
    for copy in copies {
        let bytes = trace.ops.bytes[copy.op.index()];
        let scalar = is_to_host(subject.trace, copy.op) && (1..=subject.limits.scalar_bytes).contains(&bytes);
        let asynchronous = trace.calls.kind[copy.call.index()] == ApiKind::CopyAsync;
        let kind = if is_final(subject, &copy) {
            None
        } else if scalar && copy.waits(subject) {
            Some(0)
        } else if asynchronous && copy.blocks {
            Some(1)
        } else if copy.blocks || copy.sync.is_some() {
            Some(2)
        } else {
            None
        };
        match kind {
            Some(kind) => kinds[kind].1.push(copy),
            None => rest.push(copy),
        }
    }
    let mut found = Vec::new();
    for (id, copies) in kinds {
        let calls: Vec<CallIdx> = copies.iter().map(|copy| copy.call).collect();
        let mut groups = subject.groups(&calls, |_| ());
        groups.retain(|group| subject.recurs(&subject.starts(&group.calls)));
        let ours: FxHashSet<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
        let (copies, others): (Vec<_>, Vec<_>) = copies.into_iter().partition(|copy| ours.contains(&copy.call));
        rest.extend(others);
        if !copies.is_empty() {
            found.push(copy_candidate(subject, id, &copies, &groups));
        }
    }
    for copy in rest {
        match copy.sync {
            Some(end) if !copy.spin.is_empty() => sorted.spins.push(Spin { end, body: copy.spin }),
            Some(sync) => sorted.syncs.push(sync),
            None => {}
        }
    }
    found
}

fn copy_candidate(subject: &Subject<'_>, id: FindingId, copies: &[HostCopy], groups: &[Group]) -> Candidate {
    let calls: Vec<CallIdx> = copies.iter().flat_map(HostCopy::calls).collect();
    let count = times(copies.len());
    let idle = subject.bubbles_of(&calls);
    let is_scalar = id == FindingId::ScalarReadback;
    // Who does not read the value back needs no event to know when it has come.
    let records = if is_scalar { subject.waits().recorded_only_for(subject.trace, &calls) } else { Vec::new() };
    let wait = is_scalar.then(|| Change::Async(CallSet::Calls(calls.clone())));
    let set = CallSet::Calls([calls, records.clone()].concat());
    let (title, words) = match id {
        FindingId::ScalarReadback => (
            scalar_title(&idle, copies.len()),
            Words {
                remedy: "Keep the value on the device. If it decides what runs next, let the device decide: a CUDA graph \
                         with a conditional node or a persistent kernel; or launch a batch of steps and look at the \
                         value once per batch. Where the host must know, copy to pinned memory with cudaMemcpyAsync, record an event and look at the \
                         value of an earlier step (cudaEventQuery): that saves the wait. What is given is \
                         without any copy: where the copies stay, the time that the GPU works for them stays too.",
                changes: vec![Change::Remove(set)],
                change: "no value read back".to_owned(),
            },
        ),
        FindingId::PageableAsyncCopy => (
            format!("Copies called asynchronous use pageable memory and keep the host waiting, {count}"),
            Words {
                remedy: "Allocate the host buffers as pinned memory (cudaMallocHost, cudaHostRegister, \
                         torch.Tensor.pin_memory with non_blocking=True): only then does cudaMemcpyAsync return at \
                         once, and only then can the copy run beside kernels, on a stream of its own. The GPU also \
                         reads pinned memory itself, which is usually faster than through the driver's buffer; as the \
                         gain does not count that, it is the least to expect.",
                changes: vec![Change::Async(set)],
                change: "these copies from pinned memory".to_owned(),
            },
        ),
        _ => (
            format!("The host waits for a copy between host and device, {count}"),
            Words {
                remedy: "Use cudaMemcpyAsync on a stream, with pinned host memory, and let the work that needs the \
                         data wait for it on the device (same stream, or cudaStreamWaitEvent); wait on the host only \
                         where the host reads the result, and with two buffers in turn.",
                changes: vec![Change::Async(set)],
                change: "these copies asynchronous, from pinned memory".to_owned(),
            },
        ),
    };
    let mut candidate = subject.candidate(id, title, groups, words);
    (candidate.estimate, candidate.wait) = (idle.total, wait);
    for (evidence, group) in candidate.evidence.iter_mut().zip(groups) {
        let ours: FxHashSet<CallIdx> = group.calls.iter().copied().collect();
        let of_group: Vec<&HostCopy> = copies.iter().filter(|copy| ours.contains(&copy.call)).collect();
        evidence.text = group_text(subject, group, &of_group);
    }
    if let Some(&first) = records.first() {
        let api = subject.trace.call_name(first);
        let text = format!("{api}: {} for these waits alone, so the gain is without them", times(records.len()));
        let at = examples(&subject.starts(&records));
        candidate.evidence.push(Evidence { text, api: Some(api.to_owned()), site: None, at });
    }
    candidate
}

fn scalar_title(idle: &Idle, copies: usize) -> String {
    let dry = match idle.count as usize {
        dry if dry * 10 >= copies * 9 => ": each time the GPU runs dry".to_owned(),
        0 => String::new(),
        dry => format!("; the GPU runs dry {}", times(dry)),
    };
    format!("A few bytes are read back to the host, {}{dry}", times(copies))
}

/// How fast copies of pageable memory are, what runs beside them, and how fast those of pinned memory are.
fn speed_text(subject: &Subject<'_>, copies: &[&HostCopy]) -> String {
    let pageable: Vec<OpIdx> = copies.iter().map(|copy| copy.op).filter(|&op| is_pageable(subject, op)).collect();
    let ops = &subject.trace.ops;
    let moved = |some: &[OpIdx]| -> (u64, Ns) {
        let bytes = some.iter().fold(0_u64, |sum, op| sum.saturating_add(ops.bytes[op.index()]));
        (bytes, some.iter().map(|&op| ops.interval(op).len()).sum())
    };
    let (bytes, long) = moved(&pageable);
    // The time of small copies is not that of their bytes.
    let large = |op: &OpIdx| ops.bytes[op.index()] >= LARGE_COPY;
    let Some(speed) = rate(bytes, long).filter(|_| pageable.iter().all(large)) else { return String::new() };
    let beside = match subject.under_kernels(&pageable) {
        Ns::ZERO => "none of it beside a kernel".to_owned(),
        some => format!("{} of it beside kernels", time(some)),
    };
    let Some(&first) = pageable.first() else { return String::new() };
    let same_way = |op: &OpIdx| is_to_host(subject.trace, *op) == is_to_host(subject.trace, first);
    let pinned = ops.indices().filter(|op| {
        let detail = subject.trace.op_detail(*op);
        matches!(detail, Detail::Copy { from, to, .. } if [from, to].contains(&MemoryKind::Pinned)) && large(op)
    });
    let (pinned_bytes, pinned_long) = moved(&pinned.filter(same_way).collect::<Vec<OpIdx>>());
    let pinned = rate(pinned_bytes, pinned_long);
    let pinned = pinned.map_or_else(String::new, |speed| format!("; copies of pinned memory run at {speed} here"));
    format!("; on the GPU they take {} at {speed}, {beside}{pinned}", time(long))
}

/// From so many bytes on, the time of a copy tells how fast memory is.
const LARGE_COPY: u64 = 1 << 16;

/// Whether a call copies no more than so many bytes to the host.
pub(in crate::analysis) fn reads_scalar(trace: &Trace, call: CallIdx, scalar_bytes: u64) -> bool {
    let [op] = trace.call_ops(call) else { return false };
    is_to_host(trace, *op) && (1..=scalar_bytes).contains(&trace.ops.bytes[op.index()])
}

/// What the copies of a group and the waits behind them show.
fn group_text(subject: &Subject<'_>, group: &Group, copies: &[&HostCopy]) -> String {
    let mut sizes: Vec<u64> = copies.iter().map(|copy| subject.trace.ops.bytes[copy.op.index()]).collect();
    let bytes = low_median(&mut sizes).unwrap_or(0);
    let (least, most) = sizes.iter().fold((bytes, bytes), |(least, most), &bytes| (least.min(bytes), most.max(bytes)));
    let sizes = match size(bytes) {
        all if least == most => all,
        median => format!("{} to {} (median {median})", size(least), size(most)),
    };
    let site = group.site.as_ref().map_or_else(String::new, |site| format!(" in {site}"));
    let syncs: Vec<CallIdx> = copies.iter().filter_map(|copy| copy.sync).collect();
    let sync = syncs.first().copied().filter(|_| syncs.len() * 2 >= copies.len());
    let sync = sync.map_or_else(String::new, |call| format!(" and {} behind it", subject.trace.call_name(call)));
    let calls: Vec<CallIdx> = copies.iter().flat_map(|copy| copy.calls()).collect();
    let idle = subject.idle_text(&calls);
    let speed = speed_text(subject, copies);
    format!("{}{site} of {sizes}{sync}, {}{idle}{speed}", group.api, subject.how_often(group))
}

fn allocation(subject: &Subject<'_>, calls: &[CallIdx]) -> Option<Candidate> {
    let mut groups = subject.groups(calls, |_| ());
    groups.retain(|group| subject.keeps_recurring(&subject.starts(&group.calls)));
    let calls: Vec<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
    (!calls.is_empty()).then(|| {
        let title = format!("Memory is allocated or freed in the loop, {}", times(calls.len()));
        let words = Words {
            remedy: "Allocate once and use the memory again, or allocate in stream order from a pool \
                     (cudaMallocAsync and cudaFreeAsync): cudaMalloc takes long, and cudaFree waits for the whole \
                     device.",
            changes: vec![Change::Remove(CallSet::Calls(calls))],
            change: "no allocation in the loop".to_owned(),
        };
        subject.candidate(FindingId::AllocationInLoop, title, &groups, words)
    })
}

/// Synchronisations made to read the time between events.
fn event_timing(subject: &Subject<'_>, sorted: &mut Sorted) -> Option<Candidate> {
    sorted.timing.retain(|&call| !subject.is_final(call));
    let mut groups = subject.groups(&sorted.timing, |_| ());
    groups.retain(|group| subject.recurs(&subject.starts(&group.calls)));
    if groups.is_empty() {
        sorted.syncs.append(&mut sorted.timing);
        return None;
    }
    let mut calls: Vec<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
    let title = format!("The host waits in the loop to read the time between events, {}", times(calls.len()));
    let wait = Change::Async(CallSet::Calls(calls.clone()));
    calls.extend(&sorted.readings);
    let words = Words {
        remedy: "Record the events in the loop, but read them later: keep a ring of events and call \
                 cudaEventElapsedTime once an event of an earlier step is done (cudaEventQuery), or after the loop. \
                 Where nothing is measured any more, take the events out (cudaEventDisableTiming for those that only \
                 order work).",
        changes: vec![Change::Remove(CallSet::Calls(calls))],
        change: "event times read after the loop".to_owned(),
    };
    let candidate = subject.candidate(FindingId::EventTiming, title, &groups, words);
    Some(Candidate { wait: Some(wait), ..candidate })
}

/// Events recorded in the loop that nobody waits for: only to read the time between them.
fn events_for_time(subject: &Subject<'_>) -> Option<Candidate> {
    let trace = subject.trace;
    let recorded = subject.waits().recorded_for_time(trace);
    let is_ours = |call: &CallIdx| recorded.binary_search(call).is_ok();
    let calls: Vec<CallIdx> = subject.lanes().flatten().copied().filter(is_ours).collect();
    let mut groups = subject.groups(&calls, |_| ());
    // A host that runs ahead records them all in a burst, long before the GPU gets to them.
    groups.retain(|group| subject.recurs(&subject.starts(&group.calls)));
    let calls: Vec<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
    if calls.is_empty() {
        return None;
    }
    let title = format!("Events are recorded in the loop to read the time between them, {}", times(calls.len()));
    let words = Words {
        remedy: "The GPU stops between two kernels to note the time of an event. Record fewer of them: one pair around \
                 many steps instead of one around each, or in a few steps only. Where the time is not read any more, \
                 take them out, and make events that only order work with cudaEventDisableTiming.",
        changes: vec![Change::Remove(CallSet::Calls(calls))],
        change: "no events in the loop".to_owned(),
    };
    let mut candidate = subject.candidate(FindingId::EventTiming, title, &groups, words);
    candidate.estimate = idle_of(subject, Cause::Dispatch) + idle_of(subject, Cause::LaunchBound);
    let text = "neither the host nor a stream waits for these events, and the program reads times of events".to_owned();
    candidate.evidence.push(Evidence { text, ..Evidence::default() });
    Some(candidate)
}

fn busy_polling(subject: &Subject<'_>, spins: &[Spin]) -> Option<Candidate> {
    let ends: Vec<CallIdx> = spins.iter().map(|spin| spin.end).filter(|&call| !subject.is_final(call)).collect();
    let mut groups = subject.groups(&ends, |_| ());
    groups.retain(|group| subject.recurs(&subject.starts(&group.calls)));
    let ours: FxHashSet<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
    let spins: Vec<&Spin> = spins.iter().filter(|spin| ours.contains(&spin.end)).collect();
    if spins.is_empty() {
        return None;
    }
    let calls: Vec<CallIdx> =
        spins.iter().flat_map(|spin| spin.body.iter().copied().chain(std::iter::once(spin.end))).collect();
    let queries = grouped(calls.len() as u64);
    let title = format!("The host asks in a spin whether work is done, {}: {queries} queries", times(spins.len()));
    let words = Words {
        remedy: "Let the device order the work (cudaStreamWaitEvent, or one stream) instead of the host; where the \
                 host must know, do other work first and ask once, or sleep in cudaEventSynchronize on an event with \
                 cudaEventBlockingSync.",
        changes: vec![Change::Async(CallSet::Calls(calls))],
        change: "no waiting in a spin".to_owned(),
    };
    Some(subject.candidate(FindingId::BusyPolling, title, &groups, words))
}

/// What else the host waits for.
fn sync_after_launch(subject: &Subject<'_>, syncs: &[CallIdx]) -> Option<Candidate> {
    let syncs: Vec<CallIdx> = syncs.iter().copied().filter(|&call| !subject.is_final(call)).collect();
    let mut groups = subject.groups(&syncs, |_| ());
    groups.retain(|group| subject.recurs(&subject.starts(&group.calls)));
    let calls: Vec<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
    if calls.is_empty() {
        return None;
    }
    let often = after_launches(&mut launches_before(subject, &calls));
    let title = format!("The host waits for the GPU after {often}, {}", times(calls.len()));
    let words = Words {
        remedy: "Take the wait out where the host does not read a result: work on one stream keeps its order, and \
                 cudaStreamWaitEvent orders streams without the host. To measure, record events and read them after \
                 the loop; to bound the queue, wait for an event of a few steps ago. Also see that \
                 CUDA_LAUNCH_BLOCKING is not set.",
        changes: vec![Change::Async(CallSet::Calls(calls))],
        change: "no such wait".to_owned(),
    };
    Some(subject.candidate(FindingId::SyncAfterLaunch, title, &groups, words))
}

/// How many launches each of some calls follows, since the one before it of its process; of the first of each process
/// nothing is told.
fn launches_before(subject: &Subject<'_>, calls: &[CallIdx]) -> Vec<usize> {
    let trace = subject.trace;
    let mut starts: FxHashMap<ProcessIdx, Vec<Ns>> = FxHashMap::default();
    for &call in calls {
        starts.entry(trace.call_process(call)).or_default().push(subject.start(call));
    }
    starts.values_mut().for_each(|starts| starts.sort_unstable());
    let mut launches: FxHashMap<ProcessIdx, Vec<usize>> =
        starts.iter().map(|(&process, starts)| (process, vec![0; starts.len() + 1])).collect();
    for &call in subject.lanes().flatten().filter(|call| trace.calls.kind[call.index()].submits()) {
        let process = trace.call_process(call);
        if let (Some(starts), Some(launches)) = (starts.get(&process), launches.get_mut(&process)) {
            launches[starts.partition_point(|&start| start < subject.start(call))] += 1;
        }
    }
    // Before the first and after the last of them.
    launches.values().flat_map(|counts| counts[1..counts.len() - 1].iter().copied()).collect()
}

/// After how many launches something happens, from how many came before each time.
pub(super) fn after_launches(counts: &mut Vec<usize>) -> String {
    let all = counts.len();
    counts.retain(|&count| count > 0);
    // A wait right behind another one does not change after how many launches the host waits.
    let or_none = if counts.len() * 10 < all * 9 && !counts.is_empty() { " or none" } else { "" };
    let median = low_median(counts).unwrap_or(1);
    let same = counts.iter().filter(|&&count| count == median).count();
    let words = match (median, same * 10 >= counts.len() * 9) {
        (1, true) => "every launch".to_owned(),
        (launches, true) => format!("every {launches} launches"),
        (1, false) => "1 launch (median)".to_owned(),
        (launches, false) => format!("{launches} launches (median)"),
    };
    words + or_none
}
