//! Parts of traces that lie in memory as a whole.

use super::super::ids::{CallIdx, CorrelationId, OpIdx};
use super::super::model::{Calls, EventRecord, HostFunction, NamedRange, Ops, Overhead, Stream, Sync, Thread, Trace};
use super::super::time::Ns;
use super::super::{derived, link};
use super::{CallSeen, Choice, EventAwaited, Extent, OpSeen, RecordSeen, SURROUNDINGS, Seen};

impl Trace {
    /// The part of it from one moment to another, and [`SURROUNDINGS`]; from its start and to its end where they are not
    /// given. Time counts on from its start.
    pub fn part(self, from: Option<Ns>, to: Option<Ns>) -> Self {
        self.part_with(from, to, SURROUNDINGS)
    }

    /// The same with so much around it.
    pub(crate) fn part_with(mut self, from: Option<Ns>, to: Option<Ns>, around: Ns) -> Self {
        let mut extent = Extent::default();
        self.each(&mut |trace, event| match event {
            Event::Op(op) => extent.include_op(&trace.op_seen(op).0),
            Event::Call(call) => extent.include(&trace.call_seen(call).0),
            Event::Sync(sync) => extent.include(&sync_seen(sync).0),
            Event::Range(seen) | Event::Other(seen) => extent.include(&seen),
        });
        extent.events += self.events.len() as u64;
        // What lies at the end of the trace may have been taken out of it.
        extent.whole = extent.whole.map(|_| (0, self.end.0));
        let mut choice = Choice::new(extent, from, to, around);
        self.each(&mut |trace, event| match event {
            Event::Op(op) => choice.look_at_op(&trace.op_seen(op).0, trace.ops.graph[op.index()]),
            Event::Call(call) => {
                let (seen, call) = trace.call_seen(call);
                choice.look_at_call(&seen, &call, &trace.names);
            }
            Event::Sync(sync) => {
                let (seen, awaited) = sync_seen(sync);
                choice.look_at_sync(&seen, &awaited);
            }
            Event::Range(seen) => choice.look_at_range(&seen),
            Event::Other(seen) => drop(choice.look(&seen)),
        });
        choice.settle();
        if choice.asks_again() {
            for call in self.calls.indices() {
                let (seen, call) = self.call_seen(call);
                choice.begins(&seen, call.thread);
            }
            choice.settle_begins();
        }

        let mut rest = choice.rest();
        let ops: Vec<bool> = self
            .ops
            .indices()
            .map(|op| {
                let (seen, op) = self.op_seen(op);
                choice.has_op(&seen, &op, &mut rest)
            })
            .collect();
        let calls: Vec<bool> = self
            .calls
            .indices()
            .map(|call| {
                let (seen, call) = self.call_seen(call);
                choice.has_call(&seen, &call, &mut rest)
            })
            .collect();
        let Self { streams, threads, syncs, events, host_functions, ranges, overheads, .. } = &mut self;
        syncs.retain(|sync| rest.other(choice.has(&sync_seen(sync).0)));
        events.retain(|event| rest.other(choice.has_record(&record_seen(event))));
        host_functions.retain(|host| rest.other(choice.has(&host_seen(host, streams))));
        ranges.retain(|range| rest.other(choice.has_range(&range_seen(range, threads), range.thread)));
        overheads.retain(|overhead| rest.other(choice.has(&overhead_seen(overhead))));
        if rest.events == 0 {
            return self;
        }
        self.ops.retain(&ops);
        self.calls.retain(&calls);
        self.streams.iter_mut().for_each(|stream| stream.ops = 0..0);
        self.threads.iter_mut().for_each(|thread| (thread.calls, thread.ranges) = (0..0, 0..0));
        derived::set_lanes(&mut self);
        link::link(&mut self);
        self.rest = Some(Box::new(rest));
        self
    }

    /// Shows every event but the records of events.
    fn each(&self, see: &mut dyn FnMut(&Self, Event<'_>)) {
        self.ops.indices().for_each(|op| see(self, Event::Op(op)));
        self.calls.indices().for_each(|call| see(self, Event::Call(call)));
        self.syncs.iter().for_each(|sync| see(self, Event::Sync(sync)));
        self.host_functions.iter().for_each(|host| see(self, Event::Other(host_seen(host, &self.streams))));
        self.ranges.iter().for_each(|range| see(self, Event::Range(range_seen(range, &self.threads))));
        self.overheads.iter().for_each(|overhead| see(self, Event::Other(overhead_seen(overhead))));
    }

    fn op_seen(&self, op: OpIdx) -> (Seen, OpSeen) {
        let process = self.op_process(op);
        let (name, graph) = (self.ops.name[op.index()], self.ops.graph[op.index()]);
        let seen = Seen::of(process, self.ops.interval(op), self.ops.correlation[op.index()]);
        (seen, OpSeen { process, device: self.op_device(op), name, graph })
    }

    fn call_seen(&self, call: CallIdx) -> (Seen, CallSeen) {
        let process = self.call_process(call);
        let at = call.index();
        let seen = Seen::of(process, self.calls.interval(call), self.calls.correlation[at]);
        let (thread, name, result) = (self.calls.thread[at], self.calls.name[at], self.calls.result[at]);
        (seen, CallSeen { process, thread, name, result })
    }
}

/// An event of a trace.
enum Event<'t> {
    Op(OpIdx),
    Call(CallIdx),
    Sync(&'t Sync),
    Range(Seen),
    Other(Seen),
}

fn sync_seen(sync: &Sync) -> (Seen, EventAwaited) {
    let awaited = EventAwaited { event_sync: sync.event_sync, record: sync.awaited_record, event: sync.event };
    (Seen::of(sync.process, sync.interval, sync.correlation), awaited)
}

fn record_seen(event: &EventRecord) -> RecordSeen {
    RecordSeen { process: event.process, id: event.correlation, event_sync: event.event_sync, event: event.event }
}

fn host_seen(host: &HostFunction, streams: &[Stream]) -> Seen {
    Seen::of(streams[host.stream.index()].process, host.interval, host.correlation)
}

fn range_seen(range: &NamedRange, threads: &[Thread]) -> Seen {
    Seen::of(threads[range.thread.index()].process, range.interval, CorrelationId::NONE)
}

fn overhead_seen(overhead: &Overhead) -> Seen {
    Seen::of(overhead.process, overhead.interval, CorrelationId::NONE)
}

/// Keeps of a column what is to be kept.
fn retain<T>(column: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    column.retain(|_| keep.next() == Some(&true));
    column.shrink_to_fit();
}

impl Ops {
    fn retain(&mut self, keep: &[bool]) {
        let Self { start, end, stream, kind, name, correlation, bytes, graph, graph_node, detail, launch } = self;
        retain(start, keep);
        retain(end, keep);
        retain(stream, keep);
        retain(kind, keep);
        retain(name, keep);
        retain(correlation, keep);
        retain(bytes, keep);
        retain(graph, keep);
        retain(graph_node, keep);
        retain(detail, keep);
        launch.clear();
    }
}

impl Calls {
    fn retain(&mut self, keep: &[bool]) {
        let Self { start, end, thread, name, kind, correlation, result } = self;
        retain(start, keep);
        retain(end, keep);
        retain(thread, keep);
        retain(name, keep);
        retain(kind, keep);
        retain(correlation, keep);
        retain(result, keep);
    }
}
