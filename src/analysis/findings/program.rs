//! Patterns of the program as a whole: how it launches, builds graphs, loads code, and what its host code does.

use std::collections::BTreeMap;

use super::subject::{Group, Subject, Words, examples};
use super::{Candidate, Evidence, FindingId, share_exceeds};
use crate::analysis::cause::{Cause, SegmentKind};
use crate::analysis::replay::{CallSet, Change};
use crate::analysis::result::{Bubble, DeviceAnalysis};
use crate::analysis::stats::low_median;
use crate::analysis::words::{counted, grouped, percent, time, times};
use crate::trace::{ApiKind, CallIdx, Interval, Ns, Overhead, OverheadKind, ProcessIdx, ThreadIdx, loads_code};

/// Every candidate of these.
pub(super) fn candidates(subject: &Subject<'_>) -> Vec<Candidate> {
    let graphs = graph_reinstantiated(subject);
    let found = [host_bound_step(subject), tiny_launches(subject), lazy_loading(subject), command_buffer_full(subject)];
    graphs.into_iter().chain(found.into_iter().flatten()).collect()
}

/// Idle time of all devices with this root.
pub(super) fn idle_of(subject: &Subject<'_>, cause: Cause) -> Ns {
    subject.analysis.devices.iter().filter_map(|device| device.idle_by_root.get(&cause).copied()).sum()
}

/// Idle time of all devices that went to this.
fn idle_in(subject: &Subject<'_>, kind: SegmentKind) -> Ns {
    subject.analysis.devices.iter().filter_map(|device| device.idle_by_segment.get(&kind).copied()).sum()
}

/// Which bubbles are steps that wait for the program's own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostSteps {
    /// [`FindingLimits::long_host_code`](crate::analysis::FindingLimits::long_host_code).
    long_code: Ns,
    /// What is longer is no step.
    longest: Ns,
}

impl HostSteps {
    /// Whether a bubble of `device` is one.
    pub(super) fn contain(self, device: &DeviceAnalysis, bubble: &Bubble) -> bool {
        bubble.interval.len() <= self.longest && waits_for_host_code(self.long_code, device, bubble)
    }
}

fn host_bound_step(subject: &Subject<'_>) -> Option<Candidate> {
    let long_code = subject.limits.long_host_code;
    let devices = subject.analysis.devices.iter();
    let mut bubbles: Vec<(&DeviceAnalysis, &Bubble)> = devices
        .flat_map(|device| device.bubbles.iter().map(move |bubble| (&**device, bubble)))
        .filter(|(device, bubble)| waits_for_host_code(long_code, device, bubble))
        .collect();
    bubbles.sort_by_key(|(_, bubble)| std::cmp::Reverse(bubble.interval.len()));
    let length = |bubbles: &[(_, &Bubble)]| -> Ns { bubbles.iter().map(|(_, bubble)| bubble.interval.len()).sum() };
    // One that is longer than all shorter ones together is no step.
    let mut shorter = length(&bubbles);
    let pauses = bubbles.iter().take_while(|(_, bubble)| {
        shorter -= bubble.interval.len();
        bubble.interval.len() > shorter
    });
    let pauses = pauses.count();
    bubbles.drain(..pauses);
    let longest = bubbles.first()?.1.interval.len();
    let idle = length(&bubbles);
    let moments: Vec<Ns> = bubbles.iter().map(|(_, bubble)| bubble.interval.start).collect();
    if !subject.keeps_recurring(&moments) || !share_exceeds(idle, subject.span.len(), subject.limits.min_idle_percent) {
        return None;
    }
    let site = bubbles.iter().find_map(|(_, bubble)| bubble.root.site);
    let site = site.map(|range| subject.trace.names.get(subject.trace.ranges[range.index()].name).to_owned());
    let within = site.as_ref().map_or_else(String::new, |site| format!(", the longest inside {site}"));
    let those = counted(bubbles.len() as u64, "bubble", "bubbles");
    let code: Ns = bubbles.iter().map(|(device, bubble)| host_code(device, bubble)).sum();
    let evidence = Evidence {
        text: format!(
            "the GPU was idle for {} in {those}{within}; for {} of it no CUDA call was open on the thread that launches \
             next",
            time(idle),
            time(code)
        ),
        api: None,
        site,
        at: moments.iter().take(3).copied().collect(),
    };
    let once = done_once(subject, longest);
    let left: Ns = once.iter().map(|(_, stretch)| stretch.len()).sum();
    let elsewhere = match idle_in(subject, SegmentKind::HostCode) - code - left {
        more if more > Ns::ZERO => format!(", {} in other idle time", time(more)),
        _ => String::new(),
    };
    let (all, left) = match left {
        Ns::ZERO => ("all of the program's own code", String::new()),
        left => {
            let stretches = counted(once.len() as u64, "stretch", "stretches");
            let left = format!(
                ". Left as long as it is: {} of idle time in {stretches}, longer than any of these bubbles: code that runs \
                 once",
                time(left)
            );
            ("the program's own code", left)
        }
    };
    let promise = format!(
        "the gain is that of {all} between CUDA calls in half its time: {} of it lies in these bubbles{elsewhere}, the \
         rest beside the GPU's work, where it holds up later launches too{left}",
        time(code)
    );
    let (changed, change) = if once.is_empty() {
        let change = Change::Host { millionths: 500_000 };
        (change.clone(), change.to_string())
    } else {
        let change = format!("{}: repeated host code twice as fast", FindingId::HostBoundStep);
        (Change::HostSteps { millionths: 500_000, once }, change)
    };
    let mut evidence = vec![evidence, Evidence { text: promise, ..Evidence::default() }];
    if subject.trace.ranges.is_empty() {
        let text = "the recording has no ranges to tell which code ran meanwhile: `bubble-report record --nvtx` names the \
                    program's NVTX ranges";
        evidence.push(Evidence { text: text.to_owned(), ..Evidence::default() });
    }
    Some(Candidate {
        id: FindingId::HostBoundStep,
        title: format!(
            "The GPU waits for the program's own host code, {} (gain: if it took half as long)",
            times(bubbles.len())
        ),
        count: bubbles.len() as u64,
        evidence,
        remedy: "Prepare the next step while the GPU works on this one (a thread of its own for loading and \
                 preprocessing, prefetching by a step or more), or make the host code shorter.",
        changes: vec![changed],
        change,
        wait: None,
        host_steps: Some(HostSteps { long_code, longest }),
        estimate: idle,
    })
}

/// When each process ran code of its own with the GPU idle for longer than in any of its steps: code that runs once.
fn done_once(subject: &Subject<'_>, longest: Ns) -> Vec<(ProcessIdx, Interval)> {
    let mut once = Vec::new();
    for device in &subject.analysis.devices {
        for bubble in device.bubbles.iter().filter(|bubble| bubble.interval.len() > longest) {
            let Some(launch) = bubble.launch else { continue };
            let process = subject.trace.call_process(launch);
            let code = device.segments_of(bubble).iter().filter(|part| part.kind == SegmentKind::HostCode);
            let stretches = code.map(|part| part.interval).filter(|stretch| stretch.len() > longest);
            once.extend(stretches.map(|stretch| (process, stretch)));
        }
    }
    once
}

/// Whether a launch came late because the program ran code of its own: that is the root, or, where steps are so alike
/// that the median tells nothing, it fills half of the bubble and is long.
fn waits_for_host_code(long_code: Ns, device: &DeviceAnalysis, bubble: &Bubble) -> bool {
    match bubble.root.cause {
        Cause::HostBound => true,
        Cause::LaunchBound => {
            let code = host_code(device, bubble);
            code >= long_code && code.0 >= bubble.interval.len().0 / 2
        }
        _ => false,
    }
}

/// For how long of a bubble no call was open on the thread that launches next.
fn host_code(device: &DeviceAnalysis, bubble: &Bubble) -> Ns {
    let segments = device.segments_of(bubble).iter();
    let code = segments.filter(|segment| segment.kind == SegmentKind::HostCode);
    code.map(|segment| segment.interval.len()).sum()
}

/// Many launches of kernels too short to hide the launches.
fn tiny_launches(subject: &Subject<'_>) -> Option<Candidate> {
    let trace = subject.trace;
    let lengths = |call: CallIdx| -> Ns { trace.call_ops(call).iter().map(|&op| trace.ops.interval(op).len()).sum() };
    let of_kind = |kind: ApiKind| {
        let calls = subject.lanes().flatten().copied();
        calls.filter(move |call| trace.calls.kind[call.index()] == kind && !trace.call_ops(*call).is_empty())
    };
    let limits = subject.limits;
    let (mut short, long): (Vec<CallIdx>, Vec<CallIdx>) =
        of_kind(ApiKind::Launch).partition(|&call| lengths(call) <= limits.tiny_kernel);
    let all = short.len() + long.len();
    let idle = idle_of(subject, Cause::LaunchBound) + idle_of(subject, Cause::Dispatch);
    // Where most launches are of graphs, the work is launched together already. How many kernels those hold tells nothing
    // about the launches beside them.
    let single = all >= of_kind(ApiKind::GraphLaunch).count();
    if short.len() < limits.many_launches
        || short.len() < long.len()
        || !single
        || !share_exceeds(idle, subject.span.len(), limits.min_idle_percent)
    {
        return None;
    }
    short.sort_by_key(|&call| (subject.start(call), call));
    let many = grouped(short.len() as u64);
    let of_short: Ns = short.iter().map(|&call| lengths(call)).sum();
    let of_long: Ns = long.iter().map(|&call| lengths(call)).sum();
    let median = low_median(&mut short.iter().map(|&call| lengths(call)).collect::<Vec<Ns>>()).unwrap_or_default();
    let launch_bound = idle_of(subject, Cause::LaunchBound);
    let text = if long.is_empty() {
        format!("{many} kernel launches, a kernel takes {} (median)", time(median))
    } else {
        format!(
            "{many} of {} kernel launches are of kernels of at most {}, which take {} (median); the other {} hold {} of \
             the kernels' time, and the gain is that of all in graphs",
            grouped(all as u64),
            time(limits.tiny_kernel),
            time(median),
            grouped(long.len() as u64),
            percent(of_long.0 as f64 / (of_short + of_long).0.max(1) as f64),
        )
    };
    let mut evidence = vec![Evidence { text, ..Evidence::default() }];
    let mut apis: BTreeMap<&str, Vec<CallIdx>> = BTreeMap::new();
    short.iter().for_each(|&call| apis.entry(trace.call_name(call)).or_default().push(call));
    let mut apis: Vec<(&str, Vec<CallIdx>)> = apis.into_iter().collect();
    apis.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.len()));
    if let [(api, calls)] = apis.as_slice() {
        (evidence[0].api, evidence[0].at) = (Some((*api).to_owned()), examples(&subject.starts(calls)));
    } else {
        evidence.extend(apis.iter().take(3).map(|(api, calls)| Evidence {
            text: format!("{api}: {}", times(calls.len())),
            api: Some((*api).to_owned()),
            site: None,
            at: examples(&subject.starts(calls)),
        }));
    }
    if launch_bound > Ns::ZERO {
        let text = format!("the GPU was idle for {} because launches came too slowly", time(launch_bound));
        evidence.push(Evidence { text, ..Evidence::default() });
    }
    Some(Candidate {
        id: FindingId::TinyLaunches,
        title: format!("{many} launches of very short kernels, {} each (median)", time(median)),
        count: short.len() as u64,
        evidence,
        remedy: "Capture the sequence once (cudaStreamBeginCapture, torch.cuda.graphs) and launch it as one CUDA graph \
                 per step, or fuse the kernels: a graph's kernels follow each other without a launch in between.",
        changes: vec![Change::Graph],
        change: Change::Graph.to_string(),
        wait: None,
        host_steps: None,
        estimate: idle,
    })
}

/// Graphs built anew again and again: the capture or the building, the instantiation, the destruction.
fn graph_reinstantiated(subject: &Subject<'_>) -> Option<Candidate> {
    let trace = subject.trace;
    let instantiates = |call: CallIdx| {
        trace.calls.kind[call.index()] == ApiKind::GraphBuild && trace.call_name(call).contains("GraphInstantiate")
    };
    let mut built: Vec<CallIdx> = Vec::new();
    let mut removed: Vec<CallIdx> = Vec::new();
    for lane in subject.lanes() {
        let ours: Vec<CallIdx> = lane.iter().copied().filter(|&call| instantiates(call)).collect();
        if !subject.keeps_recurring(&subject.starts(&ours)) {
            continue;
        }
        built.extend(&ours);
        let builds = |call: &CallIdx| {
            trace.calls.kind[call.index()] == ApiKind::GraphBuild || subject.host.captures.contains(*call)
        };
        removed.extend(lane.iter().copied().filter(builds));
    }
    (!built.is_empty()).then(|| {
        let groups = subject.groups(&built, |_| ());
        let title = format!("A graph is built and instantiated in the loop, {}", times(built.len()));
        let estimate = subject.bubbles_of(&removed).total;
        let words = Words {
            remedy: "Instantiate once and launch the same executable graph again; where only parameters change, set \
                     them with cudaGraphExecKernelNodeSetParams or cudaGraphExecUpdate. The first launch of a graph takes \
                     longer than a later one; as the gain does not count that, it is the least to expect.",
            changes: vec![Change::Remove(CallSet::Calls(removed))],
            change: "graphs built once".to_owned(),
        };
        let candidate = subject.candidate(FindingId::GraphReinstantiated, title, &groups, words);
        Candidate { estimate, ..candidate }
    })
}

/// Code loaded after the program has settled.
fn lazy_loading(subject: &Subject<'_>) -> Option<Candidate> {
    let trace = subject.trace;
    let settled = subject.settled()?;
    let of_modules = |call: &CallIdx| trace.calls.kind[call.index()] == ApiKind::ModuleLoad;
    // What loads by its name; what was seen to load; and, where nothing else tells, what took remarkably long.
    let loads = |call: &CallIdx| of_modules(call) && loads_code(trace.call_name(*call));
    let mut calls =
        calls_around(subject, |overhead| overhead.kind.is_loading() && settled.contains(overhead.interval.start));
    let long = |call: &CallIdx| trace.calls.interval(*call).len() >= subject.long_launch;
    let roots = subject
        .bubbles()
        .filter(|bubble| bubble.root.cause == Cause::ModuleLoad && settled.contains(bubble.interval.start));
    let roots = roots.filter_map(|bubble| bubble.root.call);
    calls.extend(roots.filter(|call| loads(call) || !of_modules(call) || long(call)));
    let mut others: Vec<CallIdx> = Vec::new();
    for &call in subject.lanes().flatten().filter(|call| of_modules(call) && settled.contains(subject.start(**call))) {
        let list = if loads(&call) { &mut calls } else { &mut others };
        list.push(call);
    }
    calls.sort_unstable();
    calls.dedup();
    let explicit: Vec<CallIdx> = calls.iter().copied().filter(loads).collect();
    let again = subject.keeps_recurring(&subject.starts(&explicit));
    let (what, count, remedy) = if again {
        // Handles of what is loaded once need not be looked up again.
        calls.extend(others);
        calls.sort_unstable();
        calls.dedup();
        (
            "Code is loaded or compiled in the loop",
            explicit.len(),
            "Load each module once, before the loop, and keep its handle and those of its functions: cuModuleLoadData and \
             cuModuleGetFunction (or cuLibraryLoadData and cuLibraryGetKernel) in each step load the same code anew. \
             Where a library loads it, launch every kernel once while warming up, or set CUDA_MODULE_LOADING=EAGER.",
        )
    } else {
        (
            "Code is still being loaded or compiled after the warm-up",
            calls.len(),
            "Load before the loop: set CUDA_MODULE_LOADING=EAGER, or launch every kernel once while warming up; ship \
             code for this GPU's architecture, so that nothing is compiled at run time.",
        )
    };
    if calls.is_empty() {
        return None;
    }
    let groups = subject.groups(&calls, |_| ());
    let title = format!("{what}, {}", times(count));
    let (removed, held): (Vec<CallIdx>, Vec<CallIdx>) = calls.iter().partition(|call| of_modules(call));
    let words = Words {
        remedy,
        changes: vec![Change::Remove(CallSet::Calls(removed)), Change::Usual(CallSet::Calls(held))],
        change: "code loaded before the loop".to_owned(),
    };
    let candidate = subject.candidate(FindingId::LazyLoading, title, &groups, words);
    Some(Candidate { count: count as u64, ..candidate })
}

fn command_buffer_full(subject: &Subject<'_>) -> Option<Candidate> {
    let mut calls = calls_around(subject, |overhead| overhead.kind == OverheadKind::CommandBufferFull);
    calls.sort_unstable();
    calls.dedup();
    let mut groups: Vec<Group> = subject.groups(&calls, |_| ());
    groups.retain(|group| subject.recurs(&subject.starts(&group.calls)));
    let calls: Vec<CallIdx> = groups.iter().flat_map(|group| group.calls.iter().copied()).collect();
    (!calls.is_empty()).then(|| {
        let title = format!("Launches waited because the command buffer was full, {}", times(calls.len()));
        let words = Words {
            remedy: "Submit less, larger work: one CUDA graph per step, or fused kernels; launch for other streams \
                     first, so that none of them runs dry; a larger queue (CUDA_SCALE_LAUNCH_QUEUES=4x) helps where \
                     the driver has it.",
            changes: vec![Change::Usual(CallSet::Calls(calls))],
            change: "no launch held by a full command buffer".to_owned(),
        };
        subject.candidate(FindingId::CommandBufferFull, title, &groups, words)
    })
}

/// The calls during which some overhead happened.
fn calls_around(subject: &Subject<'_>, wanted: impl Fn(&Overhead) -> bool) -> Vec<CallIdx> {
    let trace = subject.trace;
    let on = |thread: ThreadIdx, moment: Ns| {
        let lane = subject.lane(thread);
        let begun = lane.partition_point(|&call| subject.start(call) <= moment);
        let call = *lane.get(begun.checked_sub(1)?)?;
        (trace.calls.end[call.index()] >= moment).then_some(call)
    };
    let of = |overhead: &Overhead| match overhead.thread {
        Some(thread) => on(thread, overhead.interval.start),
        None => (0..trace.threads.len())
            .map(ThreadIdx::from_index)
            .filter(|thread| trace.threads[thread.index()].process == overhead.process)
            .find_map(|thread| on(thread, overhead.interval.start)),
    };
    trace.overheads.iter().filter(|overhead| wanted(overhead)).filter_map(of).collect()
}
