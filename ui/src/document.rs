//! One opened trace with everything that is made from it once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bubblescope::analysis::{Analysis, Bubble, DeviceAnalysis};
use bubblescope::trace::{CallIdx, Interval, NameId, Ns, OpIdx, RangeIdx, StreamIdx, Trace};

use crate::format;
use crate::rows::Scene;

/// One thing on a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// An op.
    Op(OpIdx),
    /// An API call.
    Call(CallIdx),
    /// A named range.
    Range(RangeIdx),
    /// A bubble.
    Bubble(BubbleRef),
    /// What one launch of a graph ran on one stream.
    Replay(StreamIdx, CallIdx),
}

/// Where a bubble stands in an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BubbleRef {
    /// Position of its device in [`Analysis::devices`].
    pub device: u32,
    /// Its position among the bubbles of the device.
    pub index: u32,
}

/// A thing on the timeline of one of the opened traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pick {
    /// Position of the document.
    pub doc: usize,
    /// The thing.
    pub item: Item,
}

/// One opened trace.
#[derive(Debug)]
pub struct Document {
    /// Name to show: the file's name.
    pub name: String,
    /// Where it was read from.
    pub path: PathBuf,
    /// The recording.
    pub trace: Arc<Trace>,
    /// What was found in it; `None` until the analysis is through.
    pub analysis: Option<Arc<Analysis>>,
    /// Its rows.
    pub scene: Scene,
    /// Its place among the opened traces: files stand in the order in which they were asked for, not in which they
    /// were read.
    pub order: u64,
    /// Added to its times to place it on the common time scale.
    pub offset: i64,
    short_names: Vec<Box<str>>,
}

impl Document {
    /// Prepares a trace to be shown. Takes time in proportion to its events.
    pub fn new(path: &Path, trace: Arc<Trace>) -> Self {
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        let scene = Scene::new(&trace);
        let short_names = trace.names.iter().map(|(_, name)| format::short(name).into_boxed_str()).collect();
        Self { name, path: path.to_owned(), trace, analysis: None, scene, order: 0, offset: 0, short_names }
    }

    /// Takes in what the analysis found.
    pub fn set_analysis(&mut self, analysis: Arc<Analysis>) {
        self.scene.set_bubbles(&self.trace, &analysis);
        self.analysis = Some(analysis);
    }

    /// A readable form of a name that fits into a box.
    pub fn short_name(&self, name: NameId) -> &str {
        self.short_names.get(name.index()).map_or("", |name| name)
    }

    /// The whole time of the trace on the common time scale.
    pub fn interval(&self) -> Interval {
        self.shifted(Interval::new(Ns::ZERO, self.trace.end))
    }

    /// What to show first, on the common time scale: a workload's measured part, else all unless the devices worked in
    /// less than half of it.
    pub fn focus(&self) -> Interval {
        if let Some(measured) = self.trace.meta.workload.as_ref().and_then(|run| run.measured) {
            return self.shifted(measured);
        }
        let (first, last) = (self.trace.ops.start.iter().min(), self.trace.ops.end.iter().max());
        let (Some(&first), Some(&last)) = (first, last) else { return self.interval() };
        let ops = Interval::new(first, last);
        if ops.len().0 < self.trace.end.0 / 2 { self.shifted(ops) } else { self.interval() }
    }

    /// An interval of the trace on the common time scale.
    pub fn shifted(&self, interval: Interval) -> Interval {
        let shift = |ns: Ns| Ns(ns.0.saturating_add(self.offset));
        Interval::new(shift(interval.start), shift(interval.end))
    }

    /// An interval of the common time scale in the trace's own time.
    pub fn unshifted(&self, interval: Interval) -> Interval {
        let shift = |ns: Ns| Ns(ns.0.saturating_sub(self.offset));
        Interval::new(shift(interval.start), shift(interval.end))
    }

    /// When a thing happened, in the trace's own time.
    pub fn times(&self, item: Item) -> Option<Interval> {
        let trace = &self.trace;
        match item {
            Item::Op(op) => (op.index() < trace.ops.len()).then(|| trace.ops.interval(op)),
            Item::Call(call) => (call.index() < trace.calls.len()).then(|| trace.calls.interval(call)),
            Item::Range(range) => trace.ranges.get(range.index()).map(|range| range.interval),
            Item::Bubble(at) => self.bubble(at).map(|(_, bubble)| bubble.interval),
            Item::Replay(stream, call) => {
                let nodes = self.replay_nodes(stream, call).map(|op| trace.ops.interval(op));
                nodes.reduce(|a, b| Interval::new(a.start.min(b.start), a.end.max(b.end)))
            }
        }
    }

    /// The ops that a launch of a graph ran on a stream.
    pub fn replay_nodes(&self, stream: StreamIdx, call: CallIdx) -> impl Iterator<Item = OpIdx> {
        let ops = if call.index() < self.trace.calls.len() { self.trace.call_ops(call) } else { &[] };
        ops.iter().copied().filter(move |op| self.trace.ops.stream[op.index()] == stream)
    }

    /// A bubble and its device.
    pub fn bubble(&self, at: BubbleRef) -> Option<(&DeviceAnalysis, &Bubble)> {
        let device = self.analysis.as_ref()?.devices.get(at.device as usize)?;
        Some((device, device.bubbles.get(at.index as usize)?))
    }

    /// All bubbles, device by device in order of time.
    pub fn bubbles(&self) -> impl Iterator<Item = (BubbleRef, &Bubble)> {
        let devices = self.analysis.iter().flat_map(|analysis| analysis.devices.iter().enumerate());
        devices.flat_map(|(device, found)| {
            found
                .bubbles
                .iter()
                .enumerate()
                .map(move |(index, bubble)| (BubbleRef { device: device as u32, index: index as u32 }, bubble))
        })
    }
}
