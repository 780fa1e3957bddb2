//! What events are recorded for.

use rustc_hash::FxHashSet;

use super::super::captures::Captures;
use super::Waits;
use crate::trace::{ApiKind, CallIdx, CorrelationId, ProcessIdx, ThreadIdx, Trace, base_name};

/// A record of an event for which a stream waits, as the correlation id of its call.
type ForStream = (ProcessIdx, CorrelationId);

impl Waits {
    /// The calls that record an event for some waiting calls and for nobody else, in the order of the call table: without
    /// these waits nobody needs them. None of a process that also uses events in ways that do not tell which: it reads
    /// their times, asks whether they are done other than in `waiting`, waits without a record of it, or hands them on to
    /// graphs or other processes.
    pub fn recorded_only_for(&self, trace: &Trace, waiting: &[CallIdx]) -> Vec<CallIdx> {
        let waiting: FxHashSet<CallIdx> = waiting.iter().copied().collect();
        let of_records = self.recorded_for_host.chunk_by(|a, b| a.0 == b.0);
        let only = of_records
            .filter(|waits| waits.iter().all(|(_, by)| by.is_some_and(|by| waiting.contains(&by))))
            .filter_map(|waits| waits[0].0);
        let mut only: Vec<CallIdx> = only.collect();
        if !only.is_empty() {
            let (for_streams, unclear) = (self.for_streams(trace), self.with_unclear_uses(trace, &waiting));
            only.retain(|&record| {
                let process = trace.call_process(record);
                let awaited = for_streams.contains(&(process, trace.calls.correlation[record.index()]));
                !awaited && !unclear.contains(&process)
            });
        }
        only
    }

    /// The calls that record an event for which neither the host nor a stream waits, of processes that read times of
    /// events, in the order of the call table: they are only for these times. None of a process that asks whether events
    /// are done or hands them on, as the records do not tell which, nor where the record of a wait is missing.
    pub fn recorded_for_time(&self, trace: &Trace) -> Vec<CallIdx> {
        if self.unresolved_events > 0 {
            return Vec::new();
        }
        let kind = |call: CallIdx| trace.calls.kind[call.index()];
        let hands_on = hands_on(trace);
        let mut timed = processes(trace, |call| kind(call) == ApiKind::EventElapsed);
        timed.extend(elsewhere(trace, |name| ApiKind::of(name) == ApiKind::EventElapsed));
        let mut asked = processes(trace, |call| kind(call) == ApiKind::EventQuery || hands_on(call));
        asked.extend(elsewhere(trace, |name| ApiKind::of(name) == ApiKind::EventQuery || hands_on_by_name(name)));
        let for_streams = self.for_streams(trace);
        let for_host: FxHashSet<CallIdx> = self.recorded_for_host.iter().filter_map(|&(record, _)| record).collect();
        let events = trace.events.iter().filter(|event| {
            let only_timed = timed.contains(&event.process) && !asked.contains(&event.process);
            only_timed && !for_streams.contains(&(event.process, event.correlation))
        });
        let mut found: Vec<CallIdx> =
            events.filter_map(|event| event.call).filter(|call| !for_host.contains(call)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The records for which streams wait.
    fn for_streams(&self, trace: &Trace) -> FxHashSet<ForStream> {
        self.streams.iter().map(|wait| (trace.streams[wait.stream.index()].process, wait.recorded)).collect()
    }

    /// The processes in which some call may use any event: which one is not told.
    fn with_unclear_uses(&self, trace: &Trace, waiting: &FxHashSet<CallIdx>) -> FxHashSet<ProcessIdx> {
        let for_host: FxHashSet<CallIdx> = self.recorded_for_host.iter().filter_map(|&(_, by)| by).collect();
        let told = self.streams.iter().filter(|wait| wait.recorded.is_some());
        let for_streams: FxHashSet<CallIdx> = told.filter_map(|wait| wait.call).collect();
        let hands_on = hands_on(trace);
        // What is captured waits for what was recorded in the same capture, and no host waits for that.
        let mut captures = None;
        let mut is_captured = |call| captures.get_or_insert_with(|| Captures::new(trace)).contains(call);
        let mut unclear = processes(trace, |call| match trace.calls.kind[call.index()] {
            ApiKind::EventElapsed => true,
            ApiKind::EventQuery => !waiting.contains(&call),
            ApiKind::EventSync => !waiting.contains(&call) && !for_host.contains(&call),
            ApiKind::StreamWait => !for_streams.contains(&call) && !is_captured(call),
            _ => hands_on(call),
        });
        // Of the waits among these calls the records are there, too, as far as any are.
        unclear.extend(elsewhere(trace, |name| {
            matches!(ApiKind::of(name), ApiKind::EventElapsed | ApiKind::EventQuery) || hands_on_by_name(name)
        }));
        unclear
    }
}

/// The processes that make a call of such a name in the part of the recording that the trace does not hold.
fn elsewhere(trace: &Trace, is: impl Fn(&str) -> bool) -> impl Iterator<Item = ProcessIdx> {
    trace.calls_elsewhere().filter(move |(_, name, _)| is(name)).map(|(process, ..)| process)
}

/// The processes with a call that lies in no other one and is such a one.
fn processes(trace: &Trace, mut is: impl FnMut(CallIdx) -> bool) -> FxHashSet<ProcessIdx> {
    let mut found = FxHashSet::default();
    for thread in (0..trace.threads.len()).map(ThreadIdx::from_index) {
        let mut outer = None;
        for call in trace.thread_calls(thread) {
            let end = trace.calls.end[call.index()];
            if outer.is_some_and(|outer| end <= outer) {
                continue;
            }
            outer = Some(end);
            if is(call) {
                found.insert(trace.call_process(call));
            }
        }
    }
    found
}

/// Whether a call gives an event to a graph, whose nodes wait for it, or to other processes.
fn hands_on(trace: &Trace) -> impl Fn(CallIdx) -> bool {
    let names: Vec<bool> = trace.names.iter().map(|(_, name)| hands_on_by_name(name)).collect();
    move |call| names.get(trace.calls.name[call.index()].index()) == Some(&true)
}

fn hands_on_by_name(name: &str) -> bool {
    ["IpcGetEventHandle", "EventWaitNode"].iter().any(|what| base_name(name).contains(what))
}
