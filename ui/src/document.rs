//! One opened trace with everything that is made from it once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bubblescope::analysis::{Analysis, Bubble, Cause, DeviceAnalysis, FullAnalysis, Rule, waits};
use bubblescope::trace::{CallIdx, DeviceIdx, Interval, NameId, Ns, OpIdx, RangeIdx, StreamIdx, ThreadIdx, Trace};

use crate::format;
use crate::handovers::{Handover, Handovers};
use crate::launches::{self, LaunchFigures};
use crate::rows::{self, Row, Scene};

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

/// What is known of a trace: more and more, as the background work gets through.
#[derive(Clone, Debug, Default)]
enum Known {
    /// Only what was recorded.
    #[default]
    Recording,
    /// Why the devices were idle.
    Analysis(Arc<Analysis>),
    /// What can be done about it, too.
    Full(Arc<FullAnalysis>),
}

/// Why the devices were idle, ready to be shown.
#[derive(Debug)]
pub struct Explanation {
    analysis: Arc<Analysis>,
    launches: Vec<LaunchFigures>,
    handovers: Handovers,
    bubbles: Vec<(DeviceIdx, Row)>,
    longest: Option<BubbleRef>,
}

impl Explanation {
    /// Prepares an analysis of a trace. Takes time in proportion to its calls and bubbles.
    pub fn new(trace: &Trace, analysis: Analysis) -> Self {
        let (launches, bubbles) = (launches::by_api(trace, &analysis), rows::bubbles(trace, &analysis));
        let longest = longest(&analysis, |_| true);
        Self { analysis: Arc::new(analysis), launches, handovers: Handovers::new(trace), bubbles, longest }
    }
}

/// All bubbles of an analysis, device by device in order of time.
fn bubbles_of(analysis: &Analysis) -> impl Iterator<Item = (BubbleRef, &Bubble)> {
    analysis.devices.iter().enumerate().flat_map(|(device, found)| {
        let named = move |index: usize| BubbleRef { device: device as u32, index: index as u32 };
        found.bubbles.iter().enumerate().map(move |(index, bubble)| (named(index), bubble))
    })
}

/// The longest of the bubbles that are looked for, and of equals the first.
fn longest(analysis: &Analysis, is: impl Fn(&Bubble) -> bool) -> Option<BubbleRef> {
    let bubbles = bubbles_of(analysis).filter(|(_, bubble)| is(bubble));
    bubbles.max_by_key(|(at, bubble)| (bubble.interval.len(), std::cmp::Reverse(*at))).map(|(at, _)| at)
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
    /// Its launches by API; empty until the analysis is through.
    pub launches: Arc<[LaunchFigures]>,
    /// Its ops that waited for ops of other streams; empty until the analysis is through.
    pub handovers: Arc<Handovers>,
    known: Known,
    longest: Option<BubbleRef>,
    replay_stopped: bool,
    /// Its rows.
    pub scene: Scene,
    /// Its place among the opened traces: files stand in the order in which they were asked for, not in which they
    /// were read.
    pub order: u64,
    /// Added to its times to place it on the common time scale.
    pub offset: i64,
    /// What to show first, in the trace's own time.
    focus: Interval,
    short_names: Arc<[Box<str>]>,
}

impl Document {
    /// Prepares a trace to be shown. Takes time in proportion to its events.
    pub fn new(path: &Path, trace: Arc<Trace>) -> Self {
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        let scene = Scene::new(&trace);
        let short_names = trace.names.iter().map(|(_, name)| format::short(name).into_boxed_str()).collect();
        let focus = focus(&trace);
        Self {
            name,
            path: path.to_owned(),
            trace,
            launches: [].into(),
            handovers: Arc::default(),
            known: Known::default(),
            longest: None,
            replay_stopped: false,
            scene,
            order: 0,
            offset: 0,
            focus,
            short_names,
        }
    }

    /// Takes in what the analysis found.
    pub fn set_analysis(&mut self, explanation: Explanation) {
        let Explanation { analysis, launches, handovers, bubbles, longest } = explanation;
        self.scene.set_bubbles(bubbles);
        self.known = Known::Analysis(analysis);
        self.longest = longest;
        self.launches = launches.into();
        self.handovers = Arc::new(handovers);
    }

    /// Takes in what the replay added to the analysis: the bubbles are the same.
    pub fn set_full(&mut self, full: Arc<FullAnalysis>) {
        self.known = Known::Full(full);
    }

    /// Why the devices were idle; `None` until the analysis is through.
    pub fn analysis(&self) -> Option<&Analysis> {
        match &self.known {
            Known::Recording => None,
            Known::Analysis(analysis) => Some(analysis),
            Known::Full(full) => Some(&full.analysis),
        }
    }

    /// What can be done about it; `None` until the replay is through.
    pub fn full(&self) -> Option<&Arc<FullAnalysis>> {
        match &self.known {
            Known::Full(full) => Some(full),
            Known::Recording | Known::Analysis(_) => None,
        }
    }

    /// Notes that the replay was not wanted.
    pub fn stop_replay(&mut self) {
        self.replay_stopped = true;
    }

    /// Whether no replay will come.
    pub fn replay_is_stopped(&self) -> bool {
        self.replay_stopped
    }

    /// The same without its rows, for another thread to read in. Copies little more than pointers.
    pub fn without_rows(&self) -> Self {
        Self {
            name: self.name.clone(),
            path: self.path.clone(),
            trace: Arc::clone(&self.trace),
            launches: Arc::clone(&self.launches),
            handovers: Arc::clone(&self.handovers),
            known: self.known.clone(),
            longest: self.longest,
            replay_stopped: self.replay_stopped,
            scene: Scene::default(),
            order: self.order,
            offset: self.offset,
            focus: self.focus,
            short_names: Arc::clone(&self.short_names),
        }
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
        self.shifted(self.focus)
    }

    /// An interval of the trace on the common time scale.
    pub fn shifted(&self, interval: Interval) -> Interval {
        Interval::new(self.on_ruler(interval.start), self.on_ruler(interval.end))
    }

    /// A moment of the trace on the common time scale, which the ruler shows.
    pub fn on_ruler(&self, moment: Ns) -> Ns {
        Ns(moment.0.saturating_add(self.offset))
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
        let device = self.analysis()?.devices.get(at.device as usize)?;
        Some((device, device.bubbles.get(at.index as usize)?))
    }

    /// All bubbles, device by device in order of time.
    pub fn bubbles(&self) -> impl Iterator<Item = (BubbleRef, &Bubble)> {
        self.analysis().into_iter().flat_map(bubbles_of)
    }

    /// The waits that made a bubble, for events or through the legacy default stream: none where something else did.
    pub fn waits_of(&self, bubble: &Bubble) -> impl Iterator<Item = Handover> {
        let through = default_stream_wait(bubble);
        let events = bubble.root.cause == Cause::Dependency && through.is_none();
        self.handovers.before(bubble.after).copied().filter(move |_| events).chain(through)
    }

    /// The waits that a thing has a part in.
    pub fn handovers_of(&self, item: Item) -> impl Iterator<Item = Handover> {
        let through = if let Item::Op(op) = item { self.default_stream_wait(op) } else { None };
        self.handovers.of(item).copied().chain(through)
    }

    /// What an op waited for through the legacy default stream. Of an op that ended a bubble the analysis has said it.
    fn default_stream_wait(&self, op: OpIdx) -> Option<Handover> {
        match self.bubble_before(op) {
            Some(bubble) => default_stream_wait(bubble),
            None => {
                waits::default_stream_wait(&self.trace, op).map(|first| Handover::through_default_stream(first, op))
            }
        }
    }

    /// The bubble that an op ended.
    fn bubble_before(&self, op: OpIdx) -> Option<&Bubble> {
        let (start, device) = (*self.trace.ops.start.get(op.index())?, self.trace.op_device(op));
        let found = self.analysis()?.devices.iter().find(|found| found.device == device)?;
        let at = found.bubbles.partition_point(|bubble| bubble.interval.end < start);
        found.bubbles.get(at).filter(|bubble| bubble.after == op)
    }

    /// The longest of the bubbles that are looked for, and of equals the first.
    pub fn longest_bubble(&self, is: impl Fn(&Bubble) -> bool) -> Option<BubbleRef> {
        longest(self.analysis()?, is)
    }

    /// The longest of all bubbles, which is known without a look at the others.
    pub fn longest_of_all(&self) -> Option<BubbleRef> {
        self.longest
    }

    /// The bubble that follows, or comes before, a moment; of bubbles that start then, those in front of or behind
    /// `at` of this order: by start, then by device.
    pub fn next_bubble(&self, from: Ns, at: Option<BubbleRef>, forward: bool) -> Option<BubbleRef> {
        let devices = self.analysis()?.devices.iter().enumerate();
        let key = (from, at);
        let found = devices.filter_map(|(device, found)| {
            let named = |index: usize| BubbleRef { device: device as u32, index: index as u32 };
            let start = |index: usize| Some((found.bubbles.get(index)?.interval.start, Some(named(index))));
            // Bubbles of one device follow each other.
            let first = found.bubbles.partition_point(|bubble| bubble.interval.start < from);
            if forward {
                (first..).map_while(start).find(|other| *other > key)
            } else {
                let last = found.bubbles.partition_point(|bubble| bubble.interval.start <= from);
                (0..last).rev().map_while(start).find(|other| *other < key)
            }
        });
        if forward { found.min()?.1 } else { found.max()?.1 }
    }

    /// What a thing hangs together with: an op or a replay with its launch, a launch with what it submitted, a bubble
    /// with the call to blame or the launch that came late, a call with the op that it holds back or marks, else with
    /// the longest bubble that it is to blame for.
    pub fn other_end(&self, item: Item) -> Option<Item> {
        match item {
            Item::Op(op) => self.trace.ops.launch(op).map(Item::Call),
            Item::Call(call) => self.submitted(call).or_else(|| {
                let held = self.handovers.of(item).find_map(|handover| match handover.wait {
                    Some(wait) if wait == call => handover.then,
                    _ => handover.first,
                });
                held.map(Item::Op).or_else(|| self.longest_bubble(|bubble| blames(bubble, call)).map(Item::Bubble))
            }),
            Item::Bubble(at) => {
                let (_, bubble) = self.bubble(at)?;
                bubble.root.call.or(bubble.launch).map(Item::Call)
            }
            Item::Replay(_, call) => Some(Item::Call(call)),
            Item::Range(_) => None,
        }
    }

    /// The first op that a call submitted, or the replay that it is part of if that has a band of its own.
    fn submitted(&self, call: CallIdx) -> Option<Item> {
        let &op = self.trace.call_ops(call).first()?;
        let replay = Item::Replay(self.trace.ops.stream[op.index()], call);
        let start = self.times(replay)?.start.0;
        Some(self.scene.find(&self.trace, replay, start).map_or(Item::Op(op), |_| replay))
    }

    /// What happened at a moment that evidence names: the call of this API that began then, else the bubble, op or call
    /// that did, else the bubble around it.
    pub fn at_moment(&self, api: Option<&str>, moment: Ns) -> Option<Item> {
        let call = |api| self.call_at(api, moment).map(Item::Call);
        let op = || self.trace.ops.start.iter().position(|&start| start == moment).map(OpIdx::from_index).map(Item::Op);
        let around = self.bubble_at(moment);
        let begins = around.filter(|&at| self.bubble(at).is_some_and(|(_, bubble)| bubble.interval.start == moment));
        let named = api.and_then(|api| call(Some(api)));
        named.or(begins.map(Item::Bubble)).or_else(op).or_else(|| call(None)).or(around.map(Item::Bubble))
    }

    /// The call, of this API if it is given, that began at a moment.
    fn call_at(&self, api: Option<&str>, moment: Ns) -> Option<CallIdx> {
        let start = |call: CallIdx| self.trace.calls.start[call.index()];
        (0..self.trace.threads.len()).find_map(|thread| {
            let calls = self.trace.thread_calls(ThreadIdx::from_index(thread));
            let mut calls = calls.skip_while(|&call| start(call) < moment).take_while(|&call| start(call) == moment);
            calls.find(|&call| api.is_none_or(|api| self.trace.call_name(call) == api))
        })
    }

    /// The bubble at a moment, of the first device that has one.
    fn bubble_at(&self, moment: Ns) -> Option<BubbleRef> {
        let devices = self.analysis()?.devices.iter().enumerate();
        devices.into_iter().find_map(|(device, found)| {
            let index = found.bubbles.partition_point(|bubble| bubble.interval.start <= moment).checked_sub(1)?;
            let at = BubbleRef { device: device as u32, index: index as u32 };
            found.bubbles[index].interval.contains(moment).then_some(at)
        })
    }
}

/// What the op after a bubble waited for through the legacy default stream.
fn default_stream_wait(bubble: &Bubble) -> Option<Handover> {
    let waited = bubble.root.cause == Cause::Dependency && bubble.root.rule == Rule::LegacyDefaultStream;
    waited.then(|| Handover::through_default_stream(bubble.before, bubble.after))
}

/// Whether a call is to blame for a bubble, or was open when it began.
pub fn blames(bubble: &Bubble, call: CallIdx) -> bool {
    bubble.root.call == Some(call) || bubble.drained_by.is_some_and(|drain| drain.call == call)
}

fn focus(trace: &Trace) -> Interval {
    let starts = || trace.ops.start.iter().chain(&trace.calls.start);
    let measured = trace.meta.workload.as_ref().and_then(|run| run.measured);
    // A recording that was cut off may end before it.
    if let Some(measured) = measured.filter(|measured| starts().any(|start| measured.contains(*start))) {
        return measured;
    }
    let whole = Interval::new(Ns::ZERO, trace.end);
    // Streams are sorted by start, but a long op may end after those that started later.
    let streams = trace.streams.iter().filter(|stream| !stream.ops.is_empty());
    let first = streams.map(|stream| trace.ops.start[stream.ops.start as usize]).min();
    let ops = first.zip(trace.ops.end.iter().max());
    // What was recorded of a program whose ops are not in the file is its calls.
    let calls = || trace.calls.start.iter().min().copied().zip(trace.calls.end.iter().max());
    let Some((first, &last)) = ops.or_else(calls) else { return whole };
    if last.0.saturating_sub(first.0) < trace.end.0 / 2 { Interval::new(first, last) } else { whole }
}
