//! The rows of a timeline. Pure: no drawing.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bubblescope::analysis::{Analysis, DeviceAnalysis};
use bubblescope::threads::on_several;
use bubblescope::trace::{
    CallIdx, Detail, DeviceIdx, Interval, MemoryKind, OpIdx, OpKind, ProcessIdx, RangeIdx, StreamIdx, StreamKind,
    ThreadIdx, Trace,
};

use crate::arrange::Key;
use crate::document::{BubbleRef, Item};
use crate::format;
use crate::lod::{Lane, Piece, Stretch, pack, pack_stretch};
use crate::tint::{Tint, Tones};

/// Of fewer events the rows are made by one thread.
const FEW_EVENTS: usize = 100_000;
/// Threads that make rows at most.
const MOST_WORKERS: usize = 8;

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// The bubbles of a device, a position in [`Analysis::devices`].
    Bubbles {
        /// Position in the analysis.
        device: u32,
    },
    /// The launches of graphs whose ops ran on a stream.
    Replays(StreamIdx),
    /// The ops of a stream.
    Stream(StreamIdx),
    /// What the copy engines of a device did in one direction, on whichever streams.
    Copies(DeviceIdx, Direction),
    /// The named ranges of a thread.
    Ranges(ThreadIdx),
    /// The API calls of a thread.
    Calls(ThreadIdx),
}

impl RowKind {
    /// The thing behind an item of one of the row's lanes.
    pub fn item(self, item: u32) -> Item {
        match self {
            Self::Bubbles { device } => Item::Bubble(BubbleRef { device, index: item }),
            Self::Replays(stream) => Item::Replay(stream, CallIdx(item)),
            Self::Stream(_) | Self::Copies(..) => Item::Op(OpIdx(item)),
            Self::Ranges(_) => Item::Range(RangeIdx(item)),
            Self::Calls(_) => Item::Call(CallIdx(item)),
        }
    }
}

/// Which way a copy goes: each has copy engines of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From host to device.
    HostToDevice,
    /// From device to host.
    DeviceToHost,
    /// Within a device or between two.
    DeviceToDevice,
    /// Any other, or not told.
    Other,
}

impl Direction {
    const ALL: [(Self, &'static str); 4] = [
        (Self::HostToDevice, "host to device"),
        (Self::DeviceToHost, "device to host"),
        (Self::DeviceToDevice, "device to device"),
        (Self::Other, "other"),
    ];

    fn of(detail: Detail) -> Self {
        let host = |memory| matches!(memory, MemoryKind::Pageable | MemoryKind::Pinned);
        match detail {
            Detail::Copy { from, to, .. } if host(from) && to.on_device() => Self::HostToDevice,
            Detail::Copy { from, to, .. } if from.on_device() && host(to) => Self::DeviceToHost,
            Detail::Copy { from, to, .. } if from.on_device() && to.on_device() => Self::DeviceToDevice,
            _ => Self::Other,
        }
    }
}

/// One row: as many lanes as it takes for no two of its intervals to overlap.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name among all rows.
    pub key: Key,
    /// What it shows.
    pub kind: RowKind,
    /// Its name.
    pub title: String,
    /// How much is in it.
    pub note: String,
    /// Its lanes, never empty.
    pub lanes: Vec<Lane>,
}

/// What a section's rows belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A device.
    Device(DeviceIdx),
    /// A process.
    Process(ProcessIdx),
}

/// Rows that belong together.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name among all sections.
    pub key: Key,
    /// What they belong to.
    pub owner: Owner,
    /// Its name.
    pub title: String,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Streams or threads without anything to show.
    pub empty: usize,
}

/// Every row of a trace: devices first, then processes.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The sections.
    pub sections: Vec<Section>,
    version: u64,
}

/// A number that no scene has had.
fn next_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Where a thing is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot {
    /// The section.
    pub section: usize,
    /// The row within it.
    pub row: usize,
    /// The lane within the row.
    pub lane: usize,
    /// The position within the lane.
    pub at: usize,
}

impl Scene {
    /// The rows of a trace, bubbles not yet among them.
    pub fn new(trace: &Arc<Trace>) -> Self {
        let keys = &mut Keys::default();
        let mut sections = Vec::new();
        for device in 0..trace.devices.len() {
            sections.push(device_section(trace, DeviceIdx::from_index(device), keys));
        }
        for process in 0..trace.processes.len() {
            sections.push(process_section(trace, ProcessIdx::from_index(process), keys));
        }
        fill(trace, &mut sections);
        for section in &mut sections {
            section.rows.retain(|row| !row.lanes.is_empty());
        }
        sections.retain(|section| !section.rows.is_empty());
        Self { sections, version: next_version() }
    }

    /// Puts the bubbles of each device on top of its streams.
    pub fn set_bubbles(&mut self, bubbles: Vec<(DeviceIdx, Row)>) {
        for section in &mut self.sections {
            section.rows.retain(|row| !matches!(row.kind, RowKind::Bubbles { .. }));
        }
        for (device, row) in bubbles {
            if let Some(section) = self.sections.iter_mut().find(|section| section.owner == Owner::Device(device)) {
                section.rows.insert(0, row);
            }
        }
        self.version = next_version();
    }

    /// A number that changes whenever the rows do, and that no other scene has.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Where a thing that starts at `start` is drawn.
    pub fn find(&self, trace: &Trace, item: Item, start: i64) -> Option<Spot> {
        let kind = match item {
            Item::Op(op) => RowKind::Stream(*trace.ops.stream.get(op.index())?),
            Item::Call(call) => RowKind::Calls(*trace.calls.thread.get(call.index())?),
            Item::Range(range) => RowKind::Ranges(trace.ranges.get(range.index())?.thread),
            Item::Bubble(at) => RowKind::Bubbles { device: at.device },
            Item::Replay(stream, _) => RowKind::Replays(stream),
        };
        for (section, found) in self.sections.iter().enumerate() {
            let Some(row) = found.rows.iter().position(|row| row.kind == kind) else { continue };
            for (lane, packed) in found.rows[row].lanes.iter().enumerate() {
                if let Some(at) = packed.at(start).filter(|&at| kind.item(packed.item(at)) == item) {
                    return Some(Spot { section, row, lane, at });
                }
            }
        }
        None
    }

    /// The lane of a spot and what its row shows.
    pub fn lane(&self, spot: Spot) -> Option<(RowKind, &Lane)> {
        let row = self.sections.get(spot.section)?.rows.get(spot.row)?;
        Some((row.kind, row.lanes.get(spot.lane)?))
    }

    /// Bytes that all lanes take.
    pub fn memory(&self) -> usize {
        let lanes = self.sections.iter().flat_map(|section| &section.rows).flat_map(|row| &row.lanes);
        lanes.map(Lane::memory).sum()
    }
}

/// A row of bubbles for each device.
pub fn bubbles(trace: &Trace, analysis: &Analysis) -> Vec<(DeviceIdx, Row)> {
    let row = |(position, found): (usize, &Arc<DeviceAnalysis>)| {
        let mut lanes = pack(found.bubbles.len(), |at| Piece {
            interval: found.bubbles[at].interval,
            item: at as u32,
            tint: Tint::cause(found.bubbles[at].root.cause),
        });
        if lanes.is_empty() {
            lanes.push(Lane::default());
        }
        let note = format!(
            "{} idle · {}",
            format::percent(found.idle_ns().0, found.span.len().0),
            format::things(found.bubbles.len() as u64, "bubble", "bubbles")
        );
        let kind = RowKind::Bubbles { device: position as u32 };
        let key = Key::of(&format!("{}/bubbles", device_title(trace, found.device)));
        (found.device, Row { key, kind, title: "Bubbles".to_owned(), note, lanes })
    };
    analysis.devices.iter().enumerate().map(row).collect()
}

/// Names that were given to rows. Two rows of the same name are numbered.
#[derive(Default)]
struct Keys(BTreeMap<String, usize>);

impl Keys {
    fn take(&mut self, name: String) -> Key {
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { Key::of(&name) } else { Key::of(&format!("{name}#{count}")) }
    }
}

fn device_title(trace: &Trace, device: DeviceIdx) -> String {
    let described = &trace.devices[device.index()];
    format!("GPU {} {}", described.id, described.name).trim_end().to_owned()
}

fn device_section(trace: &Trace, device: DeviceIdx, keys: &mut Keys) -> Section {
    let described = &trace.devices[device.index()];
    let title = device_title(trace, device);
    let many = trace.device_streams(device).map(|stream| trace.streams[stream.index()].process);
    let processes: HashSet<ProcessIdx> = many.collect();
    let own = format!("GPU {}", described.id);
    let key = keys.take(own.clone());
    let mut section = Section { key, owner: Owner::Device(device), title, rows: Vec::new(), empty: 0 };
    for stream in trace.device_streams(device) {
        let described = &trace.streams[stream.index()];
        if described.ops.is_empty() {
            section.empty += 1;
            continue;
        }
        let kind = match described.kind {
            StreamKind::Null => " (default)",
            StreamKind::Unknown | StreamKind::Blocking | StreamKind::NonBlocking => "",
        };
        let own = format!("{own}/stream {}", described.id);
        if trace.stream_ops(stream).any(|op| trace.ops.graph[op.index()].is_some()) {
            let title = format!("Stream {} graphs", described.id);
            section.rows.push(Row::new(keys.take(format!("{own}/graphs")), RowKind::Replays(stream), title));
        }
        let pid = trace.processes[described.process.index()].pid;
        let process = if processes.len() > 1 { format!(" · pid {pid}") } else { String::new() };
        let title = format!("Stream {}{kind}{process}", described.id);
        section.rows.push(Row::new(keys.take(own), RowKind::Stream(stream), title));
    }
    // With a single stream they would say what the stream says.
    if section.rows.iter().filter(|row| matches!(row.kind, RowKind::Stream(_))).count() > 1 {
        for (direction, name) in Direction::ALL {
            let key = keys.take(format!("{own}/copies {name}"));
            section.rows.push(Row::new(key, RowKind::Copies(device, direction), format!("Copies {name}")));
        }
    }
    section
}

impl Row {
    fn new(key: Key, kind: RowKind, title: String) -> Self {
        Self { key, kind, title, note: String::new(), lanes: Vec::new() }
    }

    /// Makes the lanes.
    fn fill(&mut self, trace: &Arc<Trace>, tones: &Tones) {
        let (one, many);
        ((one, many), self.lanes) = match self.kind {
            // They come from the analysis.
            RowKind::Bubbles { .. } => return,
            RowKind::Stream(stream) => {
                let stretch = Stretch::Ops(Arc::clone(trace), stream);
                (("op", "ops"), pack_stretch(stretch, |at| op_tint(trace, tones, OpIdx::from_index(at))))
            }
            RowKind::Replays(stream) => {
                let replays = replays(trace, stream);
                (("replay", "replays"), pack(replays.len(), |at| replays[at]))
            }
            RowKind::Copies(device, direction) => {
                let ops = trace.device_streams(device).flat_map(|stream| trace.stream_ops(stream));
                let is = |&op: &OpIdx| trace.ops.kind[op.index()] == OpKind::Copy;
                let copies: Vec<OpIdx> =
                    ops.filter(is).filter(|&op| Direction::of(trace.op_detail(op)) == direction).collect();
                (("copy", "copies"), pack(copies.len(), |at| op_piece(trace, tones, copies[at])))
            }
            RowKind::Ranges(thread) => {
                let (ranges, first) = (trace.thread_ranges(thread), trace.threads[thread.index()].ranges.start);
                let piece = |at: usize| Piece {
                    interval: ranges[at].interval,
                    item: first + at as u32,
                    tint: Tint::range(ranges[at].kind, tones.get(ranges[at].name)),
                };
                (("range", "ranges"), pack(ranges.len(), piece))
            }
            RowKind::Calls(thread) => {
                let stretch = Stretch::Calls(Arc::clone(trace), thread);
                (("call", "calls"), pack_stretch(stretch, |at| Tint::call(trace.calls.kind[at])))
            }
        };
        let count: usize = self.lanes.iter().map(Lane::len).sum();
        self.note = format::things(count as u64, one, many);
    }
}

/// Makes the lanes of all rows, several at a time.
fn fill(trace: &Arc<Trace>, sections: &mut [Section]) {
    let most = if trace.event_count() < FEW_EVENTS { 1 } else { MOST_WORKERS };
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(most));
    let tones = Tones::of(trace);
    let rows = Mutex::new(sections.iter_mut().flat_map(|section| &mut section.rows));
    let work = || {
        let next = || rows.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(row) = next() {
            row.fill(trace, &tones);
        }
    };
    on_several(workers, work);
}

fn op_piece(trace: &Trace, tones: &Tones, op: OpIdx) -> Piece {
    Piece { interval: trace.ops.interval(op), item: op.0, tint: op_tint(trace, tones, op) }
}

fn op_tint(trace: &Trace, tones: &Tones, op: OpIdx) -> Tint {
    Tint::op(trace.ops.kind[op.index()], tones.get(trace.ops.name[op.index()]), trace.op_detail(op))
}

/// From the first to the last op of each launch of a graph that ran several ops on a stream.
fn replays(trace: &Trace, stream: StreamIdx) -> Vec<Piece> {
    let mut replays: BTreeMap<CallIdx, (Interval, usize)> = BTreeMap::new();
    for op in trace.stream_ops(stream).filter(|op| trace.ops.graph[op.index()].is_some()) {
        let Some(call) = trace.ops.launch(op) else { continue };
        let (start, end) = (trace.ops.start[op.index()], trace.ops.end[op.index()]);
        let (replay, nodes) = replays.entry(call).or_insert((Interval::new(start, end), 0));
        *replay = Interval::new(replay.start.min(start), replay.end.max(end));
        *nodes += 1;
    }
    let several = replays.into_iter().filter(|(_, (_, nodes))| *nodes > 1);
    several.map(|(call, (interval, _))| Piece { interval, item: call.0, tint: Tint::REPLAY }).collect()
}

fn process_section(trace: &Trace, process: ProcessIdx, keys: &mut Keys) -> Section {
    let described = &trace.processes[process.index()];
    let name = if described.name.is_empty() { "Process" } else { described.name.as_str() };
    let title = format!("{name} · pid {}", described.pid);
    // Its number is another one in every run.
    let key = keys.take(name.to_owned());
    let mut section = Section { key, owner: Owner::Process(process), title, rows: Vec::new(), empty: 0 };
    let process_name = name;
    for (index, thread) in trace.threads.iter().enumerate().filter(|(_, thread)| thread.process == process) {
        if thread.ranges.is_empty() && thread.calls.is_empty() {
            section.empty += 1;
            continue;
        }
        let idx = ThreadIdx::from_index(index);
        let name = if thread.name.is_empty() { "Thread" } else { thread.name.as_str() };
        let own = format!("{process_name}/{name}");
        if !thread.ranges.is_empty() {
            let title = format!("{name} {} ranges", thread.tid);
            section.rows.push(Row::new(keys.take(format!("{own}/ranges")), RowKind::Ranges(idx), title));
        }
        if !thread.calls.is_empty() {
            let title = format!("{name} {} calls", thread.tid);
            section.rows.push(Row::new(keys.take(format!("{own}/calls")), RowKind::Calls(idx), title));
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::testing;

    #[test]
    fn every_op_call_and_range_is_drawn_once() {
        let trace = Arc::new(testing::trace(3, 50));
        let scene = Scene::new(&trace);
        let mut items: Vec<Item> = Vec::new();
        let mut copies = 0;
        for row in scene.sections.iter().flat_map(|section| &section.rows) {
            if matches!(row.kind, RowKind::Copies(..)) {
                copies += row.lanes.iter().map(Lane::len).sum::<usize>();
                continue;
            }
            for lane in &row.lanes {
                items.extend((0..lane.len()).map(|at| row.kind.item(lane.item(at))));
            }
        }
        let distinct: HashSet<Item> = items.iter().copied().collect();
        assert_eq!(items.len(), distinct.len());
        assert_eq!(items.len(), trace.ops.len() + trace.calls.len() + trace.ranges.len());
        assert_eq!(copies, trace.ops.kind.iter().filter(|&&kind| kind == OpKind::Copy).count());
    }

    #[test]
    fn a_kernel_has_the_same_colour_in_every_trace() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/scalar-readback/kernels-4");
        let mut tints: HashMap<String, Tint> = HashMap::new();
        let mut again = 0;
        for variant in ["sync", "async", "graph"] {
            let trace = bubblescope::open::open(&folder.join(variant).with_extension("bubcap")).unwrap();
            let trace = Arc::new(trace);
            let scene = Scene::new(&trace);
            let mut seen: HashSet<&str> = HashSet::new();
            for op in trace.ops.indices().filter(|op| trace.ops.kind[op.index()] == OpKind::Kernel) {
                let spot = scene.find(&trace, Item::Op(op), trace.ops.start[op.index()].0).unwrap();
                let tint = scene.lane(spot).unwrap().1.tint(spot.at);
                let name = trace.op_name(op);
                again += usize::from(seen.insert(name) && tints.contains_key(name));
                assert_eq!(*tints.entry(name.to_owned()).or_insert(tint), tint, "{name} in {variant}");
            }
        }
        assert!(again > 1, "the variants share kernels");
    }

    #[test]
    fn lanes_of_the_trace_are_those_of_copies() {
        let trace = Arc::new(testing::trace(3, 50));
        let mut shared = 0;
        for row in Scene::new(&trace).sections.iter().flat_map(|section| &section.rows) {
            let item = |at: usize| Interval::new(trace.calls.start[at], trace.calls.end[at]);
            let (range, piece): (_, Box<dyn Fn(usize) -> Piece>) = match row.kind {
                RowKind::Stream(stream) => {
                    let range = trace.streams[stream.index()].ops.clone();
                    (range, Box::new(|at| op_piece(&trace, &Tones::of(&trace), OpIdx::from_index(at))))
                }
                RowKind::Calls(thread) => {
                    let tint = |at: usize| Tint::call(trace.calls.kind[at]);
                    let piece = move |at: usize| Piece { interval: item(at), item: at as u32, tint: tint(at) };
                    (trace.threads[thread.index()].calls.clone(), Box::new(piece))
                }
                _ => continue,
            };
            let copied = pack(range.len(), |at| piece(range.start as usize + at));
            assert_eq!(row.lanes.len(), copied.len());
            for (lane, copied) in row.lanes.iter().zip(&copied) {
                shared += usize::from(lane.memory() < copied.memory());
                assert_eq!(lane.len(), copied.len());
                for at in 0..lane.len() {
                    let of = |lane: &Lane| (lane.times(at), lane.item(at), lane.tint(at));
                    assert_eq!(of(lane), of(copied));
                    let (start, end) = lane.times(at);
                    let about = |lane: &Lane| {
                        (lane.at(start), lane.touching(start - 5, end + 5), lane.longest_in(0, end), lane.busy(0, end))
                    };
                    assert_eq!(about(lane), about(copied));
                }
            }
        }
        assert_eq!(shared, 3, "two streams and a thread; ops overlap on the first stream");
    }

    #[test]
    fn things_are_found_where_they_are_drawn() {
        let trace = Arc::new(testing::trace(2, 20));
        let scene = Scene::new(&trace);
        for op in trace.ops.indices() {
            let spot = scene.find(&trace, Item::Op(op), trace.ops.start[op.index()].0).unwrap();
            let (kind, lane) = scene.lane(spot).unwrap();
            assert_eq!(kind.item(lane.item(spot.at)), Item::Op(op));
        }
        for call in trace.calls.indices() {
            assert!(scene.find(&trace, Item::Call(call), trace.calls.start[call.index()].0).is_some());
        }
    }
}
