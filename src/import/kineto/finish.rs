//! Makes the trace when every event is known.

use rustc_hash::{FxHashMap, FxHashSet};

use super::collect::{Collector, LaneKey, RawOp};
use super::header::Header;
use crate::import::{ImportError, Notes};
use crate::progress::Watch;
use crate::report::text::counted;
use crate::trace::{
    CaptureMode, ContextIdx, CorrelationId, Detail, DeviceIdx, EventInput, OpInput, ProcessIdx, StreamIdx, SyncInput,
    Trace, rfc3339,
};

/// Times before September 2001 are no Unix times: the clock has another origin.
const EARLIEST_UNIX_NS: i64 = 1_000_000_000_000_000_000;
/// An op must reach so far into its stream's later ops to be held for damaged: files round times to microseconds, and
/// the device may let neighbours overlap a little.
const MUCH_OVERLAP_NS: i64 = 100_000;
/// The context of work that tells none.
const UNTOLD_CONTEXT: u32 = 0;

impl Collector {
    /// Makes the trace.
    ///
    /// # Errors
    /// When there are events and none of a kind that is known, or too many.
    pub(super) fn finish(
        mut self,
        header: &Header,
        mut notes: Notes,
        lost: u64,
        damaged_at: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<Trace, ImportError> {
        let kept = self.ops.len() + self.syncs.len() + self.overheads.len();
        if kept as u64 + self.calls + self.ranges + self.own_events() == 0 && self.lasting > 0 {
            return Err(self.nothing(&notes));
        }
        if kept == 0 && self.is_own() {
            return self.into_trace(header, notes, lost, damaged_at, watch);
        }
        self.clip(&mut notes);
        let owners = Owners::new(&mut self);
        let mut placer = Placer::new(&self.lanes);
        let mut ambiguous = 0;
        for op in std::mem::take(&mut self.ops) {
            let key = self.lanes[op.lane as usize];
            let (process, sure) = owners.of(key.device, op.correlation, op.start);
            ambiguous += u64::from(!sure);
            let stream = placer.stream(&mut self, process, key);
            let detail = match op.detail {
                Detail::Copy { from, to, .. } => {
                    Detail::Copy { from, to, asynchronous: self.asynchronous.contains(&op.correlation.0) }
                }
                Detail::Memset { to, .. } => {
                    Detail::Memset { to, asynchronous: self.asynchronous.contains(&op.correlation.0) }
                }
                detail => detail,
            };
            let RawOp { start, end, kind, name, correlation, bytes, graph, graph_node, .. } = op;
            let input = OpInput { start, end, stream, kind, name, correlation, bytes, graph, graph_node, detail };
            self.builder.push_op(input);
        }
        notes.add(
            [
                "op has a correlation id that several processes used: linked to the call before it",
                "ops have a correlation id that several processes used: linked to the call before them",
            ],
            ambiguous,
            None,
        );
        self.place_syncs(&owners, &mut placer);
        for (start, end, kind) in std::mem::take(&mut self.overheads) {
            self.builder.push_overhead(start, end, kind, owners.main, None, CorrelationId::NONE);
        }
        for (key, name) in &self.process_names {
            if let Some(&process) = self.processes.get(key) {
                self.builder.set_process_name(process, name);
            }
        }
        for (key, name) in &self.thread_names {
            if let Some(&thread) = self.threads.get(key) {
                self.builder.set_thread_name(thread, name);
            }
        }
        let mut devices: Vec<(u32, DeviceIdx)> = placer.devices.into_iter().collect();
        devices.sort_unstable();
        header.describe(&mut self.builder, &devices);
        self.into_trace(header, notes, lost, damaged_at, watch)
    }

    fn into_trace(
        self,
        header: &Header,
        notes: Notes,
        lost: u64,
        damaged_at: Option<u64>,
        watch: &dyn Watch,
    ) -> Result<Trace, ImportError> {
        let Self { mut builder, calls, ranges, own, .. } = self;
        let meta = &mut builder.meta;
        meta.losses.unreadable_records += lost;
        meta.losses.damaged_at = damaged_at;
        if let Some(own) = own {
            let mut trace = builder.finish_watched(watch)?;
            own.put_right(&mut trace, damaged_at.is_some());
            notes.into_warnings(&mut trace.meta);
            return Ok(trace);
        }
        header.machine(meta);
        meta.source.format = "kineto".to_owned();
        meta.epoch_ns = header.base_ns;
        meta.recorded.calls = calls > 0;
        meta.recorded.ranges = ranges > 0;
        builder.drop_duplicates = true;
        let mut trace = builder.finish_watched(watch)?;
        let recorded = &mut trace.meta.recorded;
        recorded.ops = !trace.ops.is_empty();
        recorded.syncs = !trace.syncs.is_empty();
        recorded.events = !trace.events.is_empty();
        recorded.overheads = !trace.overheads.is_empty();
        if trace.meta.epoch_ns < EARLIEST_UNIX_NS {
            trace.meta.epoch_ns = 0;
        } else {
            trace.meta.source.captured_on = Some(rfc3339(trace.meta.epoch_ns));
        }
        if !trace.ops.is_empty() {
            // Kineto never asks CUPTI for graph launches as a whole.
            trace.meta.capture_mode = CaptureMode::Node;
        }
        notes.into_warnings(&mut trace.meta);
        Ok(trace)
    }

    /// Why nothing can be made of a file that has events.
    fn nothing(&self, notes: &Notes) -> ImportError {
        let losses = &self.builder.meta.losses;
        if losses.unreadable_records + losses.impossible_times + losses.ops_without_time == 0 {
            return ImportError::NotARecording(self.what_it_is());
        }
        let said = notes.sentences().collect::<Vec<_>>().join("; ");
        ImportError::Damaged(format!("of its {} none can be used: {said}", counted(self.lasting, "event", "events")))
    }

    /// What a file is whose events are all of unknown kinds.
    fn what_it_is(&self) -> String {
        if self.legacy {
            return "it was exported by PyTorch's autograd profiler, which tells no device and no call: record with \
                    torch.profiler.profile and export_chrome_trace"
                .to_owned();
        }
        let named = if self.unknown.is_empty() { String::new() } else { format!(" ({})", self.unknown.join(", ")) };
        format!(
            "it has {}{named}, and no kernel, copy or runtime call of a GPU profiler is among them",
            counted(self.lasting, "event", "events")
        )
    }

    /// Ends each op that reaches far over later ops of its own stream where the next one starts: a stream runs its ops
    /// one after the other, so its length is damaged. The nodes of a graph may overlap.
    fn clip(&mut self, notes: &mut Notes) {
        self.ops.sort_by_key(|op| (op.lane, op.start, op.end));
        let mut from = 0;
        while from < self.ops.len() {
            let lane = self.ops[from].lane;
            let to = from + self.ops[from..].partition_point(|op| op.lane == lane);
            let ops = &mut self.ops[from..to];
            for at in 0..ops.len().saturating_sub(1) {
                let (op, next) = (ops[at], ops[at + 1]);
                if op.end - next.start < MUCH_OVERLAP_NS || op.end < next.end || op.graph.is_some() {
                    continue;
                }
                let reached = ops[at + 1..].partition_point(|later| later.start < op.end);
                let last = ops[at + reached];
                let one_launch = op.correlation.is_some() && op.correlation == next.correlation;
                if reached >= 2 && last.end <= op.end && !one_launch {
                    ops[at].end = next.start;
                    self.builder.meta.losses.impossible_times += 1;
                    notes.count(
                        [
                            "op lasts far into later ops of its own stream, which none can: ended where the next starts",
                            "ops last far into later ops of their own stream, which none can: ended where the next starts",
                        ],
                        None,
                    );
                }
            }
            from = to;
        }
    }

    fn place_syncs(&mut self, owners: &Owners, placer: &mut Placer) {
        let mut records: FxHashSet<(ProcessIdx, CorrelationId)> = FxHashSet::default();
        for sync in std::mem::take(&mut self.syncs) {
            let (process, _) = owners.of(sync.device, sync.correlation, sync.start);
            let key = |stream| LaneKey { device: sync.device, context: sync.context, stream };
            let stream = sync.stream.map(|stream| placer.stream(self, process, key(stream)));
            let context = placer.context(self, process, sync.device, sync.context);
            if let (Some(stream), Some(event)) = (sync.awaited_stream, sync.awaited_event)
                && sync.awaited_record.is_some()
                && records.insert((process, sync.awaited_record))
            {
                let stream = placer.stream(self, process, key(stream));
                self.builder.push_event(EventInput {
                    process,
                    context: Some(context),
                    stream: Some(stream),
                    event,
                    event_sync: None,
                    device_time: 0,
                    correlation: sync.awaited_record,
                });
            }
            self.builder.push_sync(SyncInput {
                start: sync.start,
                end: sync.end,
                kind: sync.kind,
                process,
                context: Some(context),
                stream,
                event: sync.awaited_event,
                event_sync: None,
                awaited_record: sync.awaited_record,
                correlation: sync.correlation,
            });
        }
    }
}

/// Gives device work its stream in the trace.
struct Placer {
    contexts: FxHashMap<(ProcessIdx, u32, Option<u32>), ContextIdx>,
    devices: FxHashMap<u32, DeviceIdx>,
    /// The context of each device of which only one is told: work that tells none is taken to be in it.
    only: FxHashMap<u32, Option<u32>>,
    invented: u32,
}

impl Placer {
    fn new(lanes: &[LaneKey]) -> Self {
        let mut only: FxHashMap<u32, Option<u32>> = FxHashMap::default();
        for (device, context) in lanes.iter().filter_map(|lane| Some((lane.device, lane.context?))) {
            let seen = only.entry(device).or_insert(Some(context));
            *seen = seen.filter(|&seen| seen == context);
        }
        Self { contexts: FxHashMap::default(), devices: FxHashMap::default(), only, invented: 0 }
    }

    fn stream(&mut self, collector: &mut Collector, process: ProcessIdx, key: LaneKey) -> StreamIdx {
        let context = self.context(collector, process, key.device, key.context);
        collector.builder.stream(context, key.stream)
    }

    /// The context of a device. A trace knows contexts by their id in their process alone, so an id that two devices
    /// have gets a number of its own on the second.
    fn context(
        &mut self,
        collector: &mut Collector,
        process: ProcessIdx,
        device: u32,
        told: Option<u32>,
    ) -> ContextIdx {
        let builder = &mut collector.builder;
        let told = told.or_else(|| self.only.get(&device).copied().flatten());
        *self.contexts.entry((process, device, told)).or_insert_with(|| {
            let row = *self.devices.entry(device).or_insert_with(|| builder.device(device));
            let mut id = told.unwrap_or(UNTOLD_CONTEXT);
            while builder.find_context(process, id).is_some() {
                self.invented += 1;
                id = u32::MAX - self.invented;
            }
            builder.context(process, id, row)
        })
    }
}

/// Which process device work belongs to.
struct Owners {
    /// The process with the most calls, or the only one there is.
    main: ProcessIdx,
    /// Calls by correlation id, then start; empty with calls of one process alone.
    calls: Vec<(CorrelationId, i64, ProcessIdx)>,
    of_device: FxHashMap<u32, ProcessIdx>,
}

impl Owners {
    fn new(collector: &mut Collector) -> Self {
        let mut counts: FxHashMap<ProcessIdx, u64> = FxHashMap::default();
        for call in collector.builder.calls() {
            *counts.entry(collector.builder.process_of(call.thread)).or_default() += 1;
        }
        let most = counts.iter().map(|(&process, &count)| (count, std::cmp::Reverse(process))).max();
        let main = match most {
            Some((_, std::cmp::Reverse(process))) => process,
            None => {
                let first = collector.processes.values().min().copied();
                first.unwrap_or_else(|| collector.builder.process(0))
            }
        };
        let mut owners = Self { main, calls: Vec::new(), of_device: FxHashMap::default() };
        if counts.len() < 2 {
            return owners;
        }
        let builder = &collector.builder;
        let linked = builder.calls().iter().filter(|call| call.correlation.is_some());
        owners.calls = linked.map(|call| (call.correlation, call.start, builder.process_of(call.thread))).collect();
        owners.calls.sort_unstable();
        let mut votes: FxHashMap<(u32, ProcessIdx), u64> = FxHashMap::default();
        for op in &collector.ops {
            if let Candidates::One(process) = owners.candidates(op.correlation) {
                *votes.entry((collector.lanes[op.lane as usize].device, process)).or_default() += 1;
            }
        }
        let mut votes: Vec<(u64, u32, ProcessIdx)> =
            votes.into_iter().map(|((device, process), count)| (count, device, process)).collect();
        votes.sort_unstable_by_key(|&(count, device, process)| (count, std::cmp::Reverse((device, process))));
        owners.of_device = votes.into_iter().map(|(_, device, process)| (device, process)).collect();
        owners
    }

    fn rows(&self, correlation: CorrelationId) -> &[(CorrelationId, i64, ProcessIdx)] {
        if !correlation.is_some() {
            return &[];
        }
        let from = self.calls.partition_point(|call| call.0 < correlation);
        let len = self.calls[from..].partition_point(|call| call.0 == correlation);
        &self.calls[from..from + len]
    }

    fn candidates(&self, correlation: CorrelationId) -> Candidates<'_> {
        let rows = self.rows(correlation);
        match rows.first() {
            None => Candidates::None,
            Some(&(.., process)) if rows.iter().all(|row| row.2 == process) => Candidates::One(process),
            Some(_) => Candidates::Several(rows),
        }
    }

    /// The owner of work, and whether it is the only one that it can have.
    fn of(&self, device: u32, correlation: CorrelationId, start: i64) -> (ProcessIdx, bool) {
        if self.calls.is_empty() {
            return (self.main, true);
        }
        let of_device = self.of_device.get(&device).copied();
        match self.candidates(correlation) {
            Candidates::None => (of_device.unwrap_or(self.main), true),
            Candidates::One(process) => (process, true),
            Candidates::Several(rows) => {
                if let Some(process) = of_device
                    && rows.iter().any(|row| row.2 == process)
                {
                    return (process, true);
                }
                let before = rows.partition_point(|row| row.1 <= start);
                (rows[before.saturating_sub(1)].2, false)
            }
        }
    }
}

/// The processes that used a correlation id.
enum Candidates<'a> {
    None,
    One(ProcessIdx),
    Several(&'a [(CorrelationId, i64, ProcessIdx)]),
}
