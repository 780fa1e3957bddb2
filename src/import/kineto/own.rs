//! What only files tell that were exported here: everything else that the trace held, so that they become that trace
//! again.

use super::collect::{Collector, overhead_kind, sync_kind};
use super::event::{Category, Event, OwnArguments};
use super::lexer::Text;
use crate::import::Notes;
use crate::trace::{
    CallInput, ContextIdx, CorrelationId, Detail, EventInput, GraphId, Interval, Losses, NameId, Ns, OpInput, OpKind,
    Outline, ProcessIdx, RangeKind, StreamIdx, SyncInput, ThreadIdx, Trace,
};

/// Where the export puts what the trace holds beside its events.
pub(super) const OUTLINE_KEY: &[u8] = b"bubblescope";
/// A builder takes some times of 0 for times that are not told. Those of our files count from the trace's start, so they
/// are moved before they go in.
const SHIFT: i64 = 1_000_000_000;

/// What the events of an exported trace refer to.
#[derive(Debug)]
pub(super) struct Own {
    outline: Outline,
    /// Events that were taken as they were exported.
    events: u64,
}

impl Own {
    fn process(&self, at: Option<u32>) -> Option<ProcessIdx> {
        at.filter(|&at| (at as usize) < self.outline.processes.len()).map(ProcessIdx)
    }

    fn thread(&self, at: Option<u32>) -> Option<ThreadIdx> {
        at.filter(|&at| (at as usize) < self.outline.threads.len()).map(ThreadIdx)
    }

    fn stream(&self, at: Option<u32>) -> Option<StreamIdx> {
        at.filter(|&at| (at as usize) < self.outline.streams.len()).map(StreamIdx)
    }

    fn context(&self, at: Option<u32>) -> Option<ContextIdx> {
        at.filter(|&at| (at as usize) < self.outline.contexts.len()).map(ContextIdx)
    }

    fn detail(&self, at: Option<u32>) -> Option<Detail> {
        self.outline.details.get(at? as usize).copied()
    }

    fn name(&self, at: u32) -> Option<NameId> {
        ((at as usize) < self.outline.names.len()).then_some(NameId(at))
    }
}

impl Collector {
    /// Whether the file was exported here.
    pub(super) const fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// How many events were taken as they were exported.
    pub(super) fn own_events(&self) -> u64 {
        self.own.as_ref().map_or(0, |own| own.events)
    }

    /// Takes what the trace holds beside its events. It stands before them.
    pub(super) fn restore(&mut self, text: &[u8], notes: &mut Notes) {
        let outline = serde_json::from_slice::<Outline>(text).ok().filter(|outline| self.builder.restore(outline));
        match outline {
            Some(outline) => {
                self.builder.zero = SHIFT;
                let meta = &mut self.builder.meta;
                meta.epoch_ns = meta.epoch_ns.saturating_sub(SHIFT);
                // What is lost from here on is added to that in the end: counts of a file may be as large as any.
                meta.losses = Losses::default();
                if let Some(measured) = meta.workload.as_mut().and_then(|run| run.measured.as_mut()) {
                    *measured = moved(*measured, Ns(SHIFT));
                }
                self.own = Some(Own { outline, events: 0 });
            }
            None => notes.count(
                [
                    "outline of a trace that was exported here cannot be used: its events are read as those of other tools",
                    "outlines of traces that were exported here cannot be used: their events are read as those of other tools",
                ],
                None,
            ),
        }
    }

    /// Takes an event as it was exported; false when it does not tell all that this takes.
    pub(super) fn own_event(&mut self, event: &Event<'_>, start: i64, end: i64) -> bool {
        let Some(own) = &self.own else { return false };
        let arguments = &event.arguments;
        let at: OwnArguments = arguments.own;
        let correlation = CorrelationId(arguments.correlation);
        let (process, thread) = (own.process(at.process), own.thread(at.thread));
        let (context, stream, detail) = (own.context(at.context), own.stream(at.stream), own.detail(at.detail));
        // What is given must be there.
        if at.thread.is_some() != thread.is_some()
            || at.context.is_some() != context.is_some()
            || at.stream.is_some() != stream.is_some()
        {
            return false;
        }
        let graph = GraphId(arguments.graph);
        match (event.category, process, thread, stream, detail) {
            (Category::Kernel | Category::Copy | Category::Memset, _, _, Some(stream), Some(detail)) => {
                let kind = match event.category {
                    Category::Copy => OpKind::Copy,
                    Category::Memset => OpKind::Memset,
                    _ if at.whole_graph => OpKind::Graph,
                    _ => OpKind::Kernel,
                };
                let Some(name) = self.own_name(event) else { return false };
                let (bytes, graph_node) = (arguments.bytes, arguments.graph_node);
                let op = OpInput { start, end, stream, kind, name, correlation, bytes, graph, graph_node, detail };
                self.builder.push_op(op);
            }
            (Category::Call, _, Some(thread), ..) => {
                let Some(name) = self.own_name(event) else { return false };
                self.builder.push_call(CallInput { start, end, thread, name, correlation, result: at.result });
            }
            (Category::Operator | Category::Annotation | Category::Nvtx, _, Some(thread), ..) => {
                let kind = match event.category {
                    Category::Operator => RangeKind::Operator,
                    Category::Annotation => RangeKind::Annotation,
                    _ => RangeKind::Nvtx,
                };
                let Some(name) = self.own_name(event) else { return false };
                self.builder.push_range(start, end, thread, name, kind);
            }
            (Category::Sync, Some(process), ..) => {
                let Some(kind) = sync_kind(event) else { return false };
                self.builder.push_sync(SyncInput {
                    start,
                    end,
                    kind,
                    process,
                    context,
                    stream,
                    event: arguments.awaited_event.and_then(|event| u32::try_from(event).ok()),
                    event_sync: at.event_sync,
                    awaited_record: CorrelationId(arguments.awaited_record.unwrap_or(0)),
                    correlation,
                });
            }
            (Category::EventRecord, Some(process), ..) => {
                let Some(event) = at.event else { return false };
                self.builder.push_event(EventInput {
                    process,
                    context,
                    stream,
                    event,
                    event_sync: at.event_sync,
                    device_time: at.device_ns.map_or(0, |time| time.saturating_add(SHIFT)),
                    correlation,
                });
            }
            (Category::HostFunction, _, _, Some(stream), _) => {
                self.builder.push_host_function(start, end, stream, correlation, graph);
            }
            (Category::Overhead, Some(process), ..) => {
                let kind = overhead_kind(event.name.unwrap_or(Text::EMPTY).raw);
                self.builder.push_overhead(start, end, kind, process, thread, correlation);
            }
            _ => return false,
        }
        if let Some(own) = &mut self.own {
            own.events += 1;
        }
        true
    }

    /// The name that was recorded of what an event is.
    fn own_name(&mut self, event: &Event<'_>) -> Option<NameId> {
        match (event.arguments.own.symbol, &self.own) {
            (Some(symbol), Some(own)) => own.name(symbol),
            _ => Some(self.builder.name(&event.name.unwrap_or(Text::EMPTY).decode().0)),
        }
    }
}

impl Own {
    /// Puts right what is said of the trace as a whole, where it was exported, once its events are in place. Times in it
    /// count from the trace's first record, which is not what it was if the first ones were taken out.
    pub(super) fn put_right(&self, trace: &mut Trace, is_damaged: bool) {
        let exported = &self.outline.meta;
        let origin = trace.meta.epoch_ns.saturating_sub(exported.epoch_ns);
        for process in &mut trace.meta.unrecorded {
            for times in &mut process.times {
                *times = moved(*times, Ns(origin.saturating_neg()));
            }
        }
        if exported.epoch_ns == 0 {
            trace.meta.epoch_ns = 0;
        }
        trace.meta.losses = exported.losses.and(trace.meta.losses);
        if is_damaged {
            // What is missing may have stood anywhere, whatever the trace was recorded in.
            "kineto".clone_into(&mut trace.meta.source.format);
        }
    }
}

/// An interval, later by so much.
fn moved(interval: Interval, by: Ns) -> Interval {
    let start = interval.start.saturating_add(by);
    Interval::new(start, interval.end.saturating_add(by).max(start))
}
