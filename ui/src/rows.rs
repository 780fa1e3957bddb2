//! The rows of a timeline and where they stand. Pure: no drawing.

use std::collections::{BTreeMap, HashSet};

use bubblescope::analysis::Analysis;
use bubblescope::trace::{
    CallIdx, DeviceIdx, Interval, OpIdx, ProcessIdx, RangeIdx, StreamIdx, StreamKind, ThreadIdx, Trace,
};

use crate::document::{BubbleRef, Item};
use crate::format;
use crate::lod::{Lane, Piece, pack};
use crate::tint::Tint;

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
            Self::Stream(_) => Item::Op(OpIdx(item)),
            Self::Ranges(_) => Item::Range(RangeIdx(item)),
            Self::Calls(_) => Item::Call(CallIdx(item)),
        }
    }
}

/// One row: as many lanes as it takes for no two of its intervals to overlap.
#[derive(Clone, Debug)]
pub struct Row {
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
    pub fn new(trace: &Trace) -> Self {
        let devices = (0..trace.devices.len()).map(|device| device_section(trace, DeviceIdx::from_index(device)));
        let processes =
            (0..trace.processes.len()).map(|process| process_section(trace, ProcessIdx::from_index(process)));
        let sections = devices.chain(processes).filter(|section| !section.rows.is_empty()).collect();
        Self { sections }
    }

    /// Puts the bubbles of each device on top of its streams.
    pub fn set_bubbles(&mut self, trace: &Trace, analysis: &Analysis) {
        for section in &mut self.sections {
            section.rows.retain(|row| !matches!(row.kind, RowKind::Bubbles { .. }));
            let found = analysis.devices.iter().enumerate();
            let mut found = found.filter(|(_, found)| section.owner == Owner::Device(found.device));
            let Some((position, found)) = found.next() else { continue };
            let mut lanes = pack(found.bubbles.len(), |at| Piece {
                interval: found.bubbles[at].interval,
                item: at as u32,
                tint: Tint::cause(found.bubbles[at].root.cause),
            });
            if lanes.is_empty() {
                lanes.push(Lane::default());
            }
            let note = format!(
                "{} idle · {} bubbles",
                format::percent(found.idle_ns().0, found.span.len().0),
                format::count(found.bubbles.len() as u64)
            );
            let kind = RowKind::Bubbles { device: position as u32 };
            section.rows.insert(0, Row { kind, title: "Bubbles".to_owned(), note, lanes });
        }
        debug_assert!(trace.devices.len() >= analysis.devices.len());
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

fn device_section(trace: &Trace, device: DeviceIdx) -> Section {
    let described = &trace.devices[device.index()];
    let name = if described.name.is_empty() { "" } else { described.name.as_str() };
    let title = format!("GPU {} {name}", described.id).trim_end().to_owned();
    let many = trace.device_streams(device).map(|stream| trace.streams[stream.index()].process);
    let processes: HashSet<ProcessIdx> = many.collect();
    let mut section = Section { owner: Owner::Device(device), title, rows: Vec::new(), empty: 0 };
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
        let replays = replays(trace, stream);
        if !replays.is_empty() {
            section.rows.push(Row {
                kind: RowKind::Replays(stream),
                title: format!("Stream {} graphs", described.id),
                note: format!("{} replays", format::count(replays.len() as u64)),
                lanes: pack(replays.len(), |at| replays[at]),
            });
        }
        let pid = trace.processes[described.process.index()].pid;
        let process = if processes.len() > 1 { format!(" · pid {pid}") } else { String::new() };
        section.rows.push(Row {
            kind: RowKind::Stream(stream),
            title: format!("Stream {}{kind}{process}", described.id),
            note: format!("{} ops", format::count(described.ops.len() as u64)),
            lanes: pack(described.ops.len(), |at| op_piece(trace, OpIdx(described.ops.start + at as u32))),
        });
    }
    section
}

fn op_piece(trace: &Trace, op: OpIdx) -> Piece {
    let (kind, name) = (trace.ops.kind[op.index()], trace.ops.name[op.index()]);
    Piece { interval: trace.ops.interval(op), item: op.0, tint: Tint::op(kind, name.index(), trace.op_detail(op)) }
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

fn process_section(trace: &Trace, process: ProcessIdx) -> Section {
    let described = &trace.processes[process.index()];
    let name = if described.name.is_empty() { "Process" } else { described.name.as_str() };
    let title = format!("{name} · pid {}", described.pid);
    let mut section = Section { owner: Owner::Process(process), title, rows: Vec::new(), empty: 0 };
    for (index, thread) in trace.threads.iter().enumerate().filter(|(_, thread)| thread.process == process) {
        if thread.ranges.is_empty() && thread.calls.is_empty() {
            section.empty += 1;
            continue;
        }
        let idx = ThreadIdx::from_index(index);
        let name = if thread.name.is_empty() { "Thread" } else { thread.name.as_str() };
        if !thread.ranges.is_empty() {
            let ranges = trace.thread_ranges(idx);
            section.rows.push(Row {
                kind: RowKind::Ranges(idx),
                title: format!("{name} {} ranges", thread.tid),
                note: format!("{} ranges", format::count(thread.ranges.len() as u64)),
                lanes: pack(ranges.len(), |at| Piece {
                    interval: ranges[at].interval,
                    item: thread.ranges.start + at as u32,
                    tint: Tint::range(ranges[at].kind, ranges[at].name.index()),
                }),
            });
        }
        if !thread.calls.is_empty() {
            section.rows.push(Row {
                kind: RowKind::Calls(idx),
                title: format!("{name} {} calls", thread.tid),
                note: format!("{} calls", format::count(thread.calls.len() as u64)),
                lanes: pack(thread.calls.len(), |at| {
                    let call = CallIdx(thread.calls.start + at as u32);
                    let tint = Tint::call(trace.calls.kind[call.index()]);
                    Piece { interval: trace.calls.interval(call), item: call.0, tint }
                }),
            });
        }
    }
    section
}

/// Names a section or a row of one of the opened traces, to remember that it is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoldKey {
    /// All of a trace.
    Trace(usize),
    /// A section.
    Section(usize, Owner),
    /// A row: its lanes become thin.
    Row(usize, RowKind),
}

/// What stands on a line of the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The name of a trace.
    Trace {
        /// Position of the document.
        doc: usize,
    },
    /// The name of a section.
    Section {
        /// Position of the document.
        doc: usize,
        /// The section.
        section: usize,
    },
    /// A row.
    Row {
        /// Position of the document.
        doc: usize,
        /// The section.
        section: usize,
        /// The row.
        row: usize,
        /// Height of each of its lanes.
        lane_height: f32,
    },
}

/// A line of the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Distance from the top of the first line.
    pub top: f32,
    /// Its height.
    pub height: f32,
    /// What stands there.
    pub place: Place,
}

/// Height of a trace's name.
pub const TRACE_HEIGHT: f32 = 26.0;
/// Height of a section's name.
pub const SECTION_HEIGHT: f32 = 24.0;
/// Height of a lane.
pub const LANE_HEIGHT: f32 = 20.0;
/// Height of a lane of a folded row or of a row with very many lanes.
pub const THIN_LANE_HEIGHT: f32 = 5.0;
/// Space below a row.
pub const ROW_GAP: f32 = 4.0;
/// A row with more lanes than this has thin ones.
const MANY_LANES: usize = 12;

/// Which rows are shown, and how.
#[derive(Clone, Debug, Default)]
pub struct Arrangement {
    /// Traces and sections without their rows, rows with thin lanes.
    pub folded: HashSet<FoldKey>,
    /// Rows that are not shown.
    pub hidden: HashSet<FoldKey>,
    /// What the title of a row or of its section must contain, upper and lower case alike.
    pub filter: String,
}

impl Arrangement {
    /// Folds or unfolds.
    pub fn toggle(&mut self, key: FoldKey) {
        if !self.folded.remove(&key) {
            self.folded.insert(key);
        }
    }

    /// Whether a row is shown when its section is open.
    fn shows(&self, doc: usize, section: &Section, row: &Row, filter: &str) -> bool {
        let named = |title: &str| title.to_lowercase().contains(filter);
        !self.hidden.contains(&FoldKey::Row(doc, row.kind))
            && (filter.is_empty() || named(&row.title) || named(&section.title))
    }
}

/// Where every line stands, and the height of all.
pub fn layout<'a>(
    scenes: impl IntoIterator<Item = &'a Scene>,
    arrangement: &Arrangement,
    names: bool,
) -> (Vec<Line>, f32) {
    let filter = arrangement.filter.trim().to_lowercase();
    let folded = |key: FoldKey| arrangement.folded.contains(&key);
    let mut lines = Vec::new();
    let mut top = 0.0;
    let mut push = |height: f32, place: Place| {
        lines.push(Line { top, height, place });
        top += height;
    };
    for (doc, scene) in scenes.into_iter().enumerate() {
        if names {
            push(TRACE_HEIGHT, Place::Trace { doc });
            if folded(FoldKey::Trace(doc)) {
                continue;
            }
        }
        for (section, found) in scene.sections.iter().enumerate() {
            let shows = |row: &&Row| arrangement.shows(doc, found, row, &filter);
            if !found.rows.iter().any(|row| shows(&row)) {
                continue;
            }
            push(SECTION_HEIGHT, Place::Section { doc, section });
            if folded(FoldKey::Section(doc, found.owner)) {
                continue;
            }
            for (row, found) in found.rows.iter().enumerate().filter(|(_, row)| shows(row)) {
                let thin = found.lanes.len() > 1 && folded(FoldKey::Row(doc, found.kind));
                let lane_height = if thin || found.lanes.len() > MANY_LANES { THIN_LANE_HEIGHT } else { LANE_HEIGHT };
                let height = (found.lanes.len() as f32 * lane_height).max(LANE_HEIGHT) + ROW_GAP;
                push(height, Place::Row { doc, section, row, lane_height });
            }
        }
    }
    (lines, top)
}

/// The lines that touch `[from, to)`.
pub fn lines_between(lines: &[Line], from: f32, to: f32) -> &[Line] {
    let first = lines.partition_point(|line| line.top + line.height <= from);
    let last = lines.partition_point(|line| line.top < to);
    &lines[first..last.max(first)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn every_op_call_and_range_is_drawn_once() {
        let trace = testing::trace(3, 50);
        let scene = Scene::new(&trace);
        let mut items: Vec<Item> = Vec::new();
        for row in scene.sections.iter().flat_map(|section| &section.rows) {
            for lane in &row.lanes {
                items.extend((0..lane.len()).map(|at| row.kind.item(lane.item(at))));
            }
        }
        let distinct: HashSet<Item> = items.iter().copied().collect();
        assert_eq!(items.len(), distinct.len());
        assert_eq!(items.len(), trace.ops.len() + trace.calls.len() + trace.ranges.len());
    }

    #[test]
    fn things_are_found_where_they_are_drawn() {
        let trace = testing::trace(2, 20);
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

    #[test]
    fn lines_follow_each_other_and_folding_hides_rows() {
        let trace = testing::trace(2, 5);
        let scene = Scene::new(&trace);
        let mut arrangement = Arrangement::default();
        let (lines, height) = layout([&scene], &arrangement, false);
        for pair in lines.windows(2) {
            assert_eq!(pair[0].top + pair[0].height, pair[1].top);
        }
        assert_eq!(height, lines.last().map_or(0.0, |line| line.top + line.height));
        let seen = lines_between(&lines, lines[1].top, lines[2].top);
        assert_eq!(seen, &lines[1..2]);
        arrangement.toggle(FoldKey::Section(0, scene.sections[0].owner));
        let (fewer, _) = layout([&scene], &arrangement, false);
        assert_eq!(fewer.len() + scene.sections[0].rows.len(), lines.len());
        arrangement.toggle(FoldKey::Section(0, scene.sections[0].owner));
        assert_eq!(layout([&scene], &arrangement, false).0, lines);
    }

    #[test]
    fn hidden_and_filtered_rows_take_their_empty_section_with_them() {
        let trace = testing::trace(2, 5);
        let scene = Scene::new(&trace);
        let count = |arrangement: &Arrangement| layout([&scene], arrangement, false).0.len();
        let all = count(&Arrangement::default());
        let hidden = HashSet::from([FoldKey::Row(0, scene.sections[0].rows[0].kind)]);
        assert_eq!(count(&Arrangement { hidden, ..Arrangement::default() }), all - 1);
        let filtered = |filter: &str| count(&Arrangement { filter: filter.to_owned(), ..Arrangement::default() });
        assert_eq!(filtered(" STREAM 7 "), 2);
        assert_eq!(filtered("gpu 0"), 1 + scene.sections[0].rows.len(), "a section's name shows all its rows");
        assert_eq!(filtered("nothing is called this"), 0);
    }
}
