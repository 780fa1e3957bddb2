//! Sorts events into what a trace is made of.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::event::{Arguments, Category, Event, Id, Time};
use super::lexer::{Oddity, Text};
use super::own::Own;
use super::sentence;
use crate::import::Notes;
use crate::trace::{
    ApiKind, CallInput, CorrelationId, Detail, GraphId, MemoryKind, NameId, OpKind, OverheadKind, ProcessIdx,
    RangeKind, SyncKind, ThreadIdx, TraceBuilder,
};

/// Longer names are cut. Those of templates run to some thousand characters.
const LONGEST_NAME: usize = 16 << 10;
/// No recording is of times further from 1970, in nanoseconds: some 146 years.
const FARTHEST: i64 = i64::MAX / 2;
/// So many unknown categories are remembered, to name them.
const NAMED_CATEGORIES: usize = 5;

/// A stream as device work names it: a position in [`Collector::lanes`].
pub(super) type Lane = u32;

/// What tells streams apart, before their process is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaneKey {
    pub(super) device: u32,
    pub(super) context: Option<u32>,
    pub(super) stream: u32,
}

/// Device work whose process is not known yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawOp {
    pub(super) lane: Lane,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) correlation: CorrelationId,
    pub(super) graph: GraphId,
    pub(super) graph_node: u64,
    pub(super) bytes: u64,
    pub(super) name: NameId,
    pub(super) kind: OpKind,
    pub(super) detail: Detail,
}

/// A synchronisation whose process is not known yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSync {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) kind: SyncKind,
    pub(super) correlation: CorrelationId,
    pub(super) device: u32,
    pub(super) context: Option<u32>,
    pub(super) stream: Option<u32>,
    pub(super) awaited_stream: Option<u32>,
    pub(super) awaited_event: Option<u32>,
    pub(super) awaited_record: CorrelationId,
}

/// A thread in the file's own terms.
type ThreadKey = (i64, i64);

/// Takes events in any order.
pub(super) struct Collector {
    pub(super) builder: TraceBuilder,
    pub(super) ops: Vec<RawOp>,
    pub(super) syncs: Vec<RawSync>,
    pub(super) overheads: Vec<(i64, i64, OverheadKind)>,
    pub(super) lanes: Vec<LaneKey>,
    lane_ids: FxHashMap<LaneKey, Lane>,
    last_lane: Lane,
    /// By the number that stands for the process in the file, or stands in for its name.
    pub(super) processes: FxHashMap<i64, ProcessIdx>,
    pub(super) threads: FxHashMap<ThreadKey, ThreadIdx>,
    last_thread: Option<(ThreadKey, ProcessIdx, ThreadIdx)>,
    /// Numbers for processes and threads that have a name in the place of one.
    named: FxHashMap<Box<str>, i64>,
    pub(super) process_names: BTreeMap<i64, String>,
    pub(super) thread_names: BTreeMap<ThreadKey, String>,
    copies: FxHashMap<NameId, (MemoryKind, MemoryKind)>,
    api_kinds: FxHashMap<NameId, ApiKind>,
    /// Correlation ids of calls whose name has `Async`.
    pub(super) asynchronous: FxHashSet<u64>,
    pub(super) calls: u64,
    pub(super) ranges: u64,
    /// Events with a start and a length, of any category.
    pub(super) lasting: u64,
    /// Those that tell nothing by a category, and are of the autograd profiler before Kineto.
    pub(super) legacy: bool,
    pub(super) unknown: Vec<String>,
    /// What the trace holds that was exported here; `None` in files of others.
    pub(super) own: Option<Own>,
}

impl Collector {
    pub(super) fn new() -> Self {
        Self {
            builder: TraceBuilder::new(),
            ops: Vec::new(),
            syncs: Vec::new(),
            overheads: Vec::new(),
            lanes: Vec::new(),
            lane_ids: FxHashMap::default(),
            last_lane: 0,
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            last_thread: None,
            named: FxHashMap::default(),
            process_names: BTreeMap::new(),
            thread_names: BTreeMap::new(),
            copies: FxHashMap::default(),
            api_kinds: FxHashMap::default(),
            asynchronous: FxHashSet::default(),
            calls: 0,
            ranges: 0,
            lasting: 0,
            legacy: false,
            unknown: Vec::new(),
            own: None,
        }
    }

    /// Adds a sentence for the reader.
    pub(super) fn warn(&mut self, sentence: String) {
        self.builder.meta.warnings.push(sentence);
    }

    /// Takes one event, which stands at this byte of the text.
    #[inline]
    pub(super) fn take(&mut self, event: &Event<'_>, at: u64, notes: &mut Notes) {
        if !event.oddities.is_empty() {
            event.oddities.iter().for_each(|oddity| notes.count(sentence(oddity), Some(at)));
        }
        match event.phase {
            b'X' => self.lasting(event, at, notes),
            b'M' => self.metadata(event),
            b'B' | b'E' => notes.count(
                ["event tells only a begin or an end: left out", "events tell only a begin or an end: left out"],
                Some(at),
            ),
            _ => {}
        }
    }

    #[inline]
    fn lasting(&mut self, event: &Event<'_>, at: u64, notes: &mut Notes) {
        self.lasting += 1;
        match event.category {
            Category::Unused => return,
            Category::EventRecord | Category::HostFunction if !self.is_own() => return,
            Category::Absent => {
                if let Id::Name(name) = event.process {
                    self.legacy |= matches!(name.raw, b"CPU functions" | b"CUDA functions");
                }
                return;
            }
            Category::Other => return self.unknown(event.category_text.unwrap_or(Text::EMPTY)),
            _ => {}
        }
        let Some((start, end)) = self.times(event, at, notes) else { return };
        if self.own_event(event, start, end) {
            return;
        }
        let name = self.name(event.name.unwrap_or(Text::EMPTY), at, notes);
        match event.category {
            Category::Kernel | Category::Copy | Category::Memset if !has_device(event) => {
                self.builder.meta.losses.unreadable_records += 1;
                notes.count(
                    ["op is on a device that cannot be: left out", "ops are on devices that cannot be: left out"],
                    Some(at),
                );
            }
            Category::Kernel => self.op(event, OpKind::Kernel, name, start, end),
            Category::Copy => self.op(event, OpKind::Copy, name, start, end),
            Category::Memset => self.op(event, OpKind::Memset, name, start, end),
            Category::Call => self.call(event, name, start, end),
            Category::Operator => self.range(event, name, start, end, RangeKind::Operator),
            Category::Annotation => self.range(event, name, start, end, RangeKind::Annotation),
            Category::Nvtx => self.range(event, name, start, end, RangeKind::Nvtx),
            Category::Sync => self.sync(event, start, end),
            Category::Overhead => {
                let kind = overhead_kind(event.name.map_or(&[], |name| name.raw));
                self.overheads.push((start, end, kind));
            }
            Category::EventRecord | Category::HostFunction | Category::Absent | Category::Unused | Category::Other => {}
        }
    }

    /// The start and end of an event as the builder takes them, if they can be true.
    fn times(&mut self, event: &Event<'_>, at: u64, notes: &mut Notes) -> Option<(i64, i64)> {
        let losses = &mut self.builder.meta.losses;
        let is_op = matches!(event.category, Category::Kernel | Category::Copy | Category::Memset);
        let (start, length) = match (event.start, event.length) {
            (Time::Ns(start), Time::Ns(length)) if length >= 0 => (start, length),
            (Time::Ns(_), Time::Ns(_) | Time::Absent) => {
                losses.ops_without_time += u64::from(is_op);
                notes.count(
                    [
                        "event has no end, as when recording ends before it does: left out",
                        "events have no end, as when recording ends before they do: left out",
                    ],
                    Some(at),
                );
                return None;
            }
            _ => {
                losses.unreadable_records += 1;
                notes.count(
                    ["event has no time that can be read: left out", "events have no time that can be read: left out"],
                    Some(at),
                );
                return None;
            }
        };
        let end = start.saturating_add(length);
        if start <= -FARTHEST || end >= FARTHEST {
            losses.impossible_times += 1;
            notes.count(
                ["event has times that no clock shows: left out", "events have times that no clock shows: left out"],
                Some(at),
            );
            return None;
        }
        let zero = self.builder.zero;
        Some((start.saturating_add(zero), end.saturating_add(zero)))
    }

    fn name(&mut self, text: Text<'_>, at: u64, notes: &mut Notes) -> NameId {
        let (text, whole) = text.decode();
        if !whole {
            notes.count(sentence(Oddity::Utf8), Some(at));
        }
        self.builder.name(&text[..text.floor_char_boundary(LONGEST_NAME)])
    }

    fn op(&mut self, event: &Event<'_>, kind: OpKind, name: NameId, start: i64, end: i64) {
        let arguments = &event.arguments;
        let lane = self.lane(event);
        let detail = match kind {
            OpKind::Kernel if arguments.grid != [0; 3] || arguments.registers != 0 => Detail::Kernel {
                grid: arguments.grid,
                block: arguments.block,
                cluster: [0; 3],
                registers: arguments.registers,
                // The file tells the sum of static and dynamic shared memory.
                static_shared: arguments.shared,
                dynamic_shared: 0,
            },
            OpKind::Kernel | OpKind::Graph => Detail::None,
            OpKind::Copy => {
                let text = event.name.unwrap_or(Text::EMPTY).raw;
                let (from, to) = *self.copies.entry(name).or_insert_with(|| copy_kinds(text));
                Detail::Copy { from, to, asynchronous: false }
            }
            OpKind::Memset => {
                let inside = event.name.and_then(|name| parenthesis(name.raw)).unwrap_or(&[]);
                Detail::Memset { to: memory_kind(inside), asynchronous: false }
            }
        };
        self.ops.push(RawOp {
            lane,
            start,
            end,
            correlation: CorrelationId(arguments.correlation),
            graph: GraphId(arguments.graph),
            graph_node: arguments.graph_node,
            bytes: arguments.bytes,
            name,
            kind,
            detail,
        });
    }

    /// The lane of device work: its arguments tell it, in some ages only the ids of process and thread do.
    fn lane(&mut self, event: &Event<'_>) -> Lane {
        let Arguments { device, context, stream, .. } = event.arguments;
        let key = LaneKey {
            device: device.unwrap_or_else(|| number(event.process)),
            context,
            stream: stream.map_or_else(|| number(event.thread), |stream| stream as u32),
        };
        if self.lanes.get(self.last_lane as usize) != Some(&key) {
            self.last_lane = *self.lane_ids.entry(key).or_insert_with(|| {
                self.lanes.push(key);
                (self.lanes.len() - 1) as Lane
            });
        }
        self.last_lane
    }

    fn call(&mut self, event: &Event<'_>, name: NameId, start: i64, end: i64) {
        let thread = self.thread(event);
        let correlation = CorrelationId(event.arguments.correlation);
        let kind = *self
            .api_kinds
            .entry(name)
            .or_insert_with(|| event.name.map_or(ApiKind::Other, |name| ApiKind::of(&name.decode().0)));
        if correlation.is_some() && matches!(kind, ApiKind::CopyAsync | ApiKind::MemsetAsync) {
            self.asynchronous.insert(correlation.0);
        }
        self.calls += 1;
        self.builder.push_call(CallInput { start, end, thread, name, correlation, result: 0 });
    }

    fn range(&mut self, event: &Event<'_>, name: NameId, start: i64, end: i64, kind: RangeKind) {
        let thread = self.thread(event);
        self.ranges += 1;
        self.builder.push_range(start, end, thread, name, kind);
    }

    fn sync(&mut self, event: &Event<'_>, start: i64, end: i64) {
        let arguments = &event.arguments;
        let Some(kind) = sync_kind(event) else { return };
        let known = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        self.syncs.push(RawSync {
            start,
            end,
            kind,
            correlation: CorrelationId(arguments.correlation),
            device: arguments.device.unwrap_or_else(|| number(event.process)),
            context: arguments.context,
            // CUPTI's "no stream" is the largest number.
            stream: known(arguments.stream).filter(|&stream| stream != u32::MAX),
            awaited_stream: known(arguments.awaited_stream).filter(|&stream| stream != u32::MAX),
            awaited_event: known(arguments.awaited_event),
            awaited_record: CorrelationId(
                arguments.awaited_record.filter(|&id| id <= u64::from(u32::MAX)).unwrap_or(0),
            ),
        });
    }

    fn metadata(&mut self, event: &Event<'_>) {
        let Some(name) = event.arguments.name else { return };
        let name = || name.decode().0.trim().chars().take(256).collect::<String>();
        match (event.name.map(|name| name.raw), event.process, event.thread) {
            (Some(b"process_name"), Id::Number(process), _) => {
                self.process_names.insert(process, name());
            }
            (Some(b"thread_name"), Id::Number(process), Id::Number(thread)) => {
                self.thread_names.insert((process, thread), name());
            }
            _ => {}
        }
    }

    fn unknown(&mut self, category: Text<'_>) {
        if self.unknown.len() < NAMED_CATEGORIES {
            let name: String = category.decode().0.chars().filter(|letter| !letter.is_control()).take(40).collect();
            if !self.unknown.contains(&name) {
                self.unknown.push(name);
            }
        }
    }

    fn thread(&mut self, event: &Event<'_>) -> ThreadIdx {
        let key = (self.id(event.process), self.id(event.thread));
        if let Some((last, _, thread)) = self.last_thread
            && last == key
        {
            return thread;
        }
        let process = self.process(key.0, event.process);
        let builder = &mut self.builder;
        let thread = *self.threads.entry(key).or_insert_with(|| {
            let thread = builder.thread(process, key.1.cast_unsigned());
            if let Id::Name(name) = event.thread {
                builder.set_thread_name(thread, &name.decode().0.chars().take(256).collect::<String>());
            }
            thread
        });
        self.last_thread = Some((key, process, thread));
        thread
    }

    fn process(&mut self, key: i64, id: Id<'_>) -> ProcessIdx {
        if let Some(&process) = self.processes.get(&key) {
            return process;
        }
        let process = self.builder.separate_process(u32::try_from(key).ok());
        let pid = self.builder.pid(process);
        match id {
            Id::Name(name) => {
                self.builder.set_process_name(process, &name.decode().0.chars().take(256).collect::<String>());
            }
            Id::Number(number) if i64::from(pid) != number => {
                self.builder.set_process_name(process, &format!("process {number}"));
            }
            _ => {}
        }
        self.processes.insert(key, process);
        process
    }

    /// The number that stands for an id.
    fn id(&mut self, id: Id<'_>) -> i64 {
        match id {
            Id::None => 0,
            Id::Number(number) => number,
            Id::Name(name) => {
                let (text, _) = name.decode();
                if let Some(&number) = self.named.get(&*text) {
                    return number;
                }
                let number = i64::MIN + self.named.len() as i64;
                self.named.insert(text.into(), number);
                number
            }
        }
    }
}

/// What a synchronisation waited for.
pub(super) fn sync_kind(event: &Event<'_>) -> Option<SyncKind> {
    let told = event.arguments.sync_kind.or(event.name).unwrap_or(Text::EMPTY);
    Some(match told.raw.to_ascii_lowercase().as_slice() {
        b"event sync" => SyncKind::Event,
        b"stream wait event" => SyncKind::StreamWaitEvent,
        b"stream sync" => SyncKind::Stream,
        b"context sync" => SyncKind::Context,
        _ => return None,
    })
}

/// Whether a device can have the number that is given for it.
fn has_device(event: &Event<'_>) -> bool {
    match (event.arguments.device, event.process) {
        (Some(_), _) => true,
        (None, Id::Number(process)) => !event.arguments.odd_device && u32::try_from(process).is_ok(),
        (None, _) => !event.arguments.odd_device,
    }
}

/// A device or stream from the id that stands in its place: `7`, `"stream 7"`.
fn number(id: Id<'_>) -> u32 {
    match id {
        Id::None => 0,
        Id::Number(number) => u32::try_from(number).unwrap_or(0),
        Id::Name(name) => {
            let digits = name.raw.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            let digits = &name.raw[name.raw.len() - digits..];
            super::number::unsigned(digits).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
        }
    }
}

/// What stands between the last parentheses.
fn parenthesis(name: &[u8]) -> Option<&[u8]> {
    let from = memchr::memrchr(b'(', name)? + 1;
    let len = memchr::memchr(b')', &name[from..])?;
    Some(&name[from..from + len])
}

/// The memories of a copy, from its name: `Memcpy HtoD (Pageable -> Device)`, or `Memcpy DtoH` alone.
fn copy_kinds(name: &[u8]) -> (MemoryKind, MemoryKind) {
    if let Some(inside) = parenthesis(name)
        && let Some(arrow) = memchr::memmem::find(inside, b"->")
    {
        return (memory_kind(&inside[..arrow]), memory_kind(&inside[arrow + 2..]));
    }
    let side = |letter: u8| match letter {
        b'D' => MemoryKind::Device,
        b'A' => MemoryKind::Array,
        b'P' => MemoryKind::Peer,
        _ => MemoryKind::Unknown,
    };
    match name.strip_prefix(b"Memcpy ") {
        Some([from, b't', b'o', to, ..]) => (side(*from), side(*to)),
        _ => (MemoryKind::Unknown, MemoryKind::Unknown),
    }
}

fn memory_kind(name: &[u8]) -> MemoryKind {
    match name.trim_ascii().to_ascii_lowercase().as_slice() {
        b"pageable" => MemoryKind::Pageable,
        b"pinned" => MemoryKind::Pinned,
        b"device" | b"device static" => MemoryKind::Device,
        b"array" => MemoryKind::Array,
        b"managed" | b"managed static" => MemoryKind::Managed,
        b"peer" => MemoryKind::Peer,
        _ => MemoryKind::Unknown,
    }
}

/// What Kineto names the kinds of overhead (`overheadKindString`), and what we do.
pub(super) fn overhead_kind(name: &[u8]) -> OverheadKind {
    match name.to_ascii_lowercase().as_slice() {
        b"driver compiler" | b"compiler" => OverheadKind::Compiler,
        b"buffer flush" | b"activity buffer request" | b"profiler-buffer" => OverheadKind::ProfilerBuffer,
        b"instrumentation" | b"profiler-instrumentation" => OverheadKind::ProfilerInstrumentation,
        b"resource" | b"uvm activity init" | b"profiler-resource" => OverheadKind::ProfilerResource,
        b"profiler-device-buffer" => OverheadKind::ProfilerDeviceBuffer,
        b"runtime triggered module loading" | b"module-loading" => OverheadKind::ModuleLoading,
        b"lazy function loading" | b"lazy-loading" => OverheadKind::LazyLoading,
        b"command buffer full" | b"command-buffer-full" => OverheadKind::CommandBufferFull,
        _ => OverheadKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memories_of_a_copy_are_told_from_its_name() {
        use MemoryKind as M;
        for (name, kinds) in [
            ("Memcpy HtoD (Pageable -> Device)", (M::Pageable, M::Device)),
            ("Memcpy DtoH (Device -> Pinned)", (M::Device, M::Pinned)),
            ("Memcpy DtoD (Device -> Device)", (M::Device, M::Device)),
            ("Memcpy DtoD", (M::Device, M::Device)),
            ("Memcpy DtoH", (M::Device, M::Unknown)),
            ("CopyHostToDevice", (M::Unknown, M::Unknown)),
            ("Memcpy (", (M::Unknown, M::Unknown)),
            ("", (M::Unknown, M::Unknown)),
        ] {
            assert_eq!(copy_kinds(name.as_bytes()), kinds, "{name}");
        }
        assert_eq!(parenthesis(b"Memset (Device)").map(memory_kind), Some(M::Device));
    }
}
