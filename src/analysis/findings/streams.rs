//! Patterns of streams: the legacy default stream, and streams that never overlap.

use std::collections::BTreeMap;

use super::subject::{Subject, examples};
use super::{Candidate, Evidence, FindingId};
use crate::analysis::replay::Change;
use crate::analysis::result::{DeviceAnalysis, StreamFigures};
use crate::analysis::words::{counted, time, times};
use crate::trace::{Interval, Ns, OpIdx, StreamKind};

/// Every candidate among the streams.
pub(super) fn candidates(subject: &Subject<'_>) -> Vec<Candidate> {
    default_stream(subject).into_iter().chain(no_overlap(subject)).collect()
}

/// Work on the legacy default stream among work of streams that serialise with it.
fn default_stream(subject: &Subject<'_>) -> Option<Candidate> {
    let trace = subject.trace;
    let mut moments: Vec<Ns> = Vec::new();
    let mut evidence: Vec<Evidence> = Vec::new();
    for device in &subject.analysis.devices {
        let row = |figures: &&StreamFigures| &trace.streams[figures.stream.index()];
        for null in device.streams.iter().filter(|lane| row(lane).kind == StreamKind::Null) {
            let serialised = device.streams.iter().filter(|lane| {
                row(lane).kind == StreamKind::Blocking && row(lane).context == row(&null).context && lane.ops > 0
            });
            let lanes: Vec<&StreamFigures> = serialised.collect();
            let spans = lanes.iter().map(|lane| lane.span);
            let Some(hull) = spans.reduce(|all, one| Interval::new(all.start.min(one.start), all.end.max(one.end)))
            else {
                continue;
            };
            let among: Vec<OpIdx> =
                trace.stream_ops(null.stream).filter(|op| hull.contains(trace.ops.start[op.index()])).collect();
            let at: Vec<Ns> = among.iter().map(|op| trace.ops.start[op.index()]).collect();
            let (api, calls) = launched_by(subject, &among).map_or((None, at.clone()), |(api, at)| (Some(api), at));
            if !subject.recurs(&at) {
                continue;
            }
            let others: Vec<String> = lanes.iter().map(|lane| row(lane).id.to_string()).collect();
            evidence.push(Evidence {
                text: format!(
                    "{} on the legacy default stream ({}){} while stream{} {} had work",
                    counted(at.len() as u64, "op", "ops"),
                    row(&null).id,
                    api.as_ref().map_or_else(String::new, |api| format!(", submitted by {api},")),
                    if others.len() == 1 { "" } else { "s" },
                    others.join(", ")
                ),
                at: examples(&calls),
                api,
                ..Evidence::default()
            });
            moments.extend(at);
        }
    }
    (!moments.is_empty()).then(|| Candidate {
        id: FindingId::DefaultStream,
        title: format!("The legacy default stream makes other streams wait, {}", times(moments.len())),
        count: moments.len() as u64,
        evidence,
        remedy: "Launch on a stream of its own, create the streams with cudaStreamNonBlocking, or build with \
                 --default-stream per-thread: then work on different streams can overlap.",
        changes: vec![Change::NoDefaultStream],
        change: Change::NoDefaultStream.to_string(),
        wait: None,
        host_steps: None,
        estimate: dependency_idle(subject),
    })
}

/// The call that most of some ops were submitted by, and when.
fn launched_by(subject: &Subject<'_>, ops: &[OpIdx]) -> Option<(String, Vec<Ns>)> {
    let trace = subject.trace;
    let mut calls: BTreeMap<&str, Vec<Ns>> = BTreeMap::new();
    for call in ops.iter().filter_map(|&op| trace.ops.launch(op)) {
        calls.entry(trace.call_name(call)).or_default().push(subject.start(call));
    }
    let (api, mut at) = calls.into_iter().max_by_key(|(_, at)| at.len())?;
    at.sort_unstable();
    Some((api.to_owned(), at))
}

/// Idle time while queued work waited for other streams.
fn dependency_idle(subject: &Subject<'_>) -> Ns {
    let idle = subject
        .analysis
        .devices
        .iter()
        .filter_map(|device| device.idle_by_root.get(&crate::analysis::Cause::Dependency).copied());
    idle.sum()
}

/// Streams that are told to wait for each other and never run at the same time.
fn no_overlap(subject: &Subject<'_>) -> Option<Candidate> {
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut waits = 0;
    for device in &subject.analysis.devices {
        let Some((lanes, at)) = apart(subject, device) else { continue };
        waits += at.len();
        let ids: Vec<String> =
            lanes.iter().map(|lane| subject.trace.streams[lane.stream.index()].id.to_string()).collect();
        let busy: Ns = lanes.iter().map(|lane| lane.busy).sum();
        evidence.push(Evidence {
            text: format!(
                "streams {} have {} of work and run one at a time; they wait for events of each other {}",
                ids.join(", "),
                time(busy),
                times(at.len())
            ),
            at: examples(&at),
            ..Evidence::default()
        });
    }
    (!evidence.is_empty()).then(|| Candidate {
        id: FindingId::NoOverlap,
        title: "Several streams never run at the same time: each waits for another's event".to_owned(),
        count: waits as u64,
        evidence,
        remedy: "See which of the waits the data really needs, and wait for the event of that work alone \
                 (cudaStreamWaitEvent after the producer's cudaEventRecord, not after everything before it); where \
                 every step needs the one before, one stream does the same with less.",
        changes: vec![Change::NoStreamWaits],
        change: Change::NoStreamWaits.to_string(),
        wait: None,
        host_steps: None,
        estimate: dependency_idle(subject),
    })
}

/// The streams of a device that do much of its work and never overlap, and when they were told to wait.
fn apart<'d>(subject: &Subject<'_>, device: &'d DeviceAnalysis) -> Option<(Vec<&'d StreamFigures>, Vec<Ns>)> {
    let limits = subject.limits;
    let total: Ns = device.streams.iter().map(|lane| lane.busy).sum();
    let mut lanes: Vec<&StreamFigures> = device
        .streams
        .iter()
        .filter(|lane| lane.ops as usize >= limits.min_repeats && lane.busy.0 >= total.0 / 20)
        .collect();
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane.busy));
    let second = lanes.get(1)?;
    let overlapped = total.saturating_sub(device.busy_ns());
    if overlapped.0 > second.busy.0 / 100 {
        return None;
    }
    let at: Vec<Ns> = lanes
        .iter()
        .flat_map(|lane| subject.waits().of_stream(lane.stream))
        .filter_map(|wait| Some(subject.start(wait.call?)))
        .filter(|&start| subject.analysis.window.contains(start))
        .collect();
    subject.recurs(&at).then_some((lanes, at))
}
