//! What is known about a thing, in words: for the hover text and the details.

use std::borrow::Cow;

use bubblescope::analysis::{
    self, Bubble, Cause, Confidence, DeviceAnalysis, Finding, RootCause, Rule, Segment, SegmentDetail, SegmentKind,
    host_time,
};
use bubblescope::report::demangle;
use bubblescope::trace::{CallIdx, Detail, MemoryKind, Ns, OpIdx, OpKind, RangeIdx, RangeKind, StreamIdx, StreamKind};

use crate::document::{BubbleRef, Document, Item};
use crate::format;
use crate::handovers::{Handover, Through, event_of};

/// The name of the fact which findings a bubble belongs to.
pub const FINDING: &str = "Finding";

/// A thing in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What kind of thing it is.
    pub kind: String,
    /// Its name.
    pub title: String,
    /// Facts as name and value, the most important first.
    pub facts: Vec<(&'static str, String)>,
    /// What some facts name, by their positions.
    pub links: Vec<(usize, Item)>,
}

/// The name of the fact that begins what is said of one of several waits.
pub const DEPENDENCY: &str = "Dependency";

/// Waits for events that are described at most of one thing.
const MOST_HANDOVERS: usize = 4;

/// Describes a thing; `None` for one of another trace.
pub fn describe(doc: &Document, item: Item) -> Option<Description> {
    let times = doc.times(item)?;
    let mut facts = vec![("Duration", format::duration(times.len().0)), ("Start", start_of(doc, times.start))];
    let (kind, title) = match item {
        Item::Op(op) => op_facts(doc, op, &mut facts),
        Item::Call(call) => call_facts(doc, call, &mut facts),
        Item::Range(range) => range_facts(doc, range, &mut facts),
        Item::Bubble(at) => bubble_facts(doc, at, &mut facts)?,
        Item::Replay(stream, call) => replay_facts(doc, stream, call, &mut facts),
    };
    let position = |name: &str| facts.iter().position(|(fact, _)| *fact == name);
    let named = named(doc, item).into_iter().flatten();
    let mut links: Vec<(usize, Item)> = named.filter_map(|(name, item)| Some((position(name)?, item))).collect();
    if let Item::Call(call) = item {
        caused_facts(doc, call, &mut facts, &mut links);
    }
    handover_facts(doc, item, &mut facts, &mut links);
    Some(Description { kind, title, facts, links })
}

/// A moment as the ruler shows it, and in the recording's own time where that is another.
fn start_of(doc: &Document, moment: Ns) -> String {
    let own = format::moment(moment.0);
    match doc.offset {
        0 => own,
        _ => format!("{} on the ruler; {own} in its recording", format::moment(doc.on_ruler(moment).0)),
    }
}

/// Facts that name another thing, and that thing.
fn named(doc: &Document, item: Item) -> [Option<(&'static str, Item)>; 6] {
    let trace = &doc.trace;
    match item {
        Item::Op(op) => {
            [trace.ops.launch(op).map(|call| ("Launched by", Item::Call(call))), None, None, None, None, None]
        }
        Item::Call(call) => {
            [trace.call_ops(call).first().map(|&op| ("Submitted", Item::Op(op))), None, None, None, None, None]
        }
        Item::Bubble(at) => {
            let Some((device, bubble)) = doc.bubble(at) else { return [None; 6] };
            [
                into_default(doc, bubble).map(|(call, _)| (DEFAULT_STREAM, Item::Call(call))),
                holder(device, bubble).map(|(call, _)| (MOSTLY_IN, Item::Call(call))),
                bubble.root.call.map(|call| (root_call_name(doc, bubble, call), Item::Call(call))),
                bubble.drained_by.map(|drain| ("Drained by", Item::Call(drain.call))),
                Some(("Before", Item::Op(bubble.before))),
                Some(("After", Item::Op(bubble.after))),
            ]
        }
        Item::Replay(_, call) => [Some(("Launched by", Item::Call(call))), None, None, None, None, None],
        Item::Range(_) => [None; 6],
    }
}

/// Which op waited for which.
fn handover_facts(doc: &Document, item: Item, facts: &mut Vec<(&'static str, String)>, links: &mut Vec<(usize, Item)>) {
    let trace = &doc.trace;
    if let Item::Call(call) = item
        && let Some(event) = event_of(trace, call)
    {
        let stream = event.stream.map_or_else(String::new, |at| format!(" into {}", stream_name(doc, at)));
        facts.push(("Records", format!("event {}{stream}", event.event)));
    }
    // What ended a bubble is what it waited with.
    let (own, found): (Item, Vec<Handover>) = match item {
        Item::Bubble(at) => {
            let Some((_, bubble)) = doc.bubble(at) else { return };
            (Item::Op(bubble.after), doc.waits_of(bubble).take(MOST_HANDOVERS).collect())
        }
        _ => (item, doc.handovers_of(item).take(MOST_HANDOVERS).collect()),
    };
    let on_stream = |op: OpIdx| (op_on_stream(doc, op), Item::Op(op));
    let awaited = |op: OpIdx, through: Through| {
        let (text, item) = on_stream(op);
        match through {
            Through::Event => (text, item),
            Through::DefaultStream => (format!("{text}, through the legacy default stream"), item),
        }
    };
    let of_call = |call: CallIdx| {
        let item = Item::Call(call);
        (format!("{} ({})", trace.call_name(call), duration_of(doc, item)), item)
    };
    let of_record = |call: CallIdx| {
        let (text, item) = of_call(call);
        let event = event_of(trace, call).map_or_else(String::new, |event| format!(", event {}", event.event));
        (format!("{text}{event}"), item)
    };
    let mut found = found;
    // First what the thing itself waits for.
    found.sort_by_key(|handover| handover.then.map(Item::Op) != Some(own));
    let many = found.len();
    for (at, handover) in found.into_iter().enumerate() {
        if many > 1 {
            facts.push((DEPENDENCY, format!("{} of {many}", at + 1)));
        }
        // The call that records an event waits for nothing: it marks that moment of its stream.
        let first = if handover.record.map(Item::Call) == Some(own) { "Marked after" } else { "Waits for" };
        let parts = [
            (first, handover.first.map(|op| awaited(op, handover.through))),
            ("Event by", handover.record.map(of_record)),
            ("Wait by", handover.wait.map(of_call)),
            ("Holds back", handover.then.map(on_stream)),
        ];
        for (name, part) in parts {
            if let Some((text, part)) = part.filter(|(_, part)| *part != own) {
                links.push((facts.len(), part));
                facts.push((name, text));
            }
        }
    }
}

/// Bubbles that are looked through for those of one call.
const MOST_BUBBLES: usize = 20_000;

/// The bubbles that exist because of a call, and the first one that began while it was open. No bubble that ended before a
/// call is its doing.
fn caused_facts(
    doc: &Document,
    call: CallIdx,
    facts: &mut Vec<(&'static str, String)>,
    links: &mut Vec<(usize, Item)>,
) {
    let Some(&start) = doc.trace.calls.start.get(call.index()) else { return };
    let devices = doc.analysis().map_or(&[][..], |analysis| &analysis.devices);
    let after = devices.iter().enumerate().flat_map(|(device, found)| {
        let first = found.bubbles.partition_point(|bubble| bubble.interval.end <= start);
        let bubbles = found.bubbles.iter().enumerate().skip(first).take(MOST_BUBBLES);
        bubbles.map(move |(index, bubble)| (BubbleRef { device: device as u32, index: index as u32 }, bubble))
    });
    let (mut caused, mut drained): (Vec<(BubbleRef, &Bubble)>, _) = (Vec::new(), None);
    for (at, bubble) in after {
        if bubble.root.call == Some(call) && is_to_blame(&bubble.root) {
            caused.push((at, bubble));
        } else if drained.is_none() && bubble.drained_by.is_some_and(|drain| drain.call == call) {
            drained = Some((at, bubble));
        }
    }
    let mut add = |name: &'static str, text: String, at: BubbleRef| {
        links.push((facts.len(), Item::Bubble(at)));
        facts.push((name, text));
    };
    let one = |bubble: &Bubble| {
        let (long, at) = (bubble.interval.len(), doc.on_ruler(bubble.interval.start));
        format!("{} at {}", format::duration(long.0), format::moment(at.0))
    };
    caused.sort_by_key(|(at, bubble)| (bubble.interval.start, *at));
    match caused.as_slice() {
        [] => {}
        [(at, bubble)] => add(CAUSED, format!("a bubble of {}", one(bubble)), *at),
        [(first, bubble), ..] => {
            let whole = caused.iter().map(|(_, bubble)| bubble.interval.len()).sum::<Ns>();
            let count = format::count(caused.len() as u64);
            add(
                CAUSED,
                format!("{count} bubbles, {} together; the first of {}", format::duration(whole.0), one(bubble)),
                *first,
            );
            let longest = caused.iter().rev().max_by_key(|(_, bubble)| bubble.interval.len());
            if let Some((at, bubble)) = longest {
                add("Longest", one(bubble), *at);
            }
        }
    }
    if let Some((at, bubble)) = drained {
        add("Ran dry", format!("the GPU, while it was open: {} idle, {}", one(bubble), bubble.root.cause), at);
    }
}

/// The name of the fact which bubbles exist because of a call.
const CAUSED: &str = "Caused";

/// The name of the fact in which call most of a bubble passed, where that is another than the one of the root cause.
const MOSTLY_IN: &str = "Mostly in";

/// The call in which more than half of a bubble passed, and how much, unless the root cause names it anyway.
fn holder(device: &DeviceAnalysis, bubble: &Bubble) -> Option<(CallIdx, Ns)> {
    most_inside(device, bubble).filter(|&(call, _)| bubble.root.call != Some(call))
}

/// The call in which more than half of a bubble passed while the host was kept from submitting work, and how much.
fn most_inside(device: &DeviceAnalysis, bubble: &Bubble) -> Option<(CallIdx, Ns)> {
    let pieces = device.segments_of(bubble);
    let inside = |call: CallIdx| {
        let its = pieces.iter().filter(|piece| piece.call() == Some(call));
        its.map(|piece| piece.interval.len()).sum::<Ns>()
    };
    let most = pieces.iter().filter_map(Segment::call).map(|call| (call, inside(call))).max_by_key(|&(_, long)| long);
    most.filter(|&(_, long)| long.0 * 2 > bubble.interval.len().0)
}

fn stream_name(doc: &Document, stream: StreamIdx) -> String {
    doc.trace.streams.get(stream.index()).map_or_else(String::new, |stream| format!("stream {}", stream.id))
}

fn op_facts(doc: &Document, op: OpIdx, facts: &mut Vec<(&'static str, String)>) -> (String, String) {
    let trace = &doc.trace;
    let at = op.index();
    let stream = &trace.streams[trace.ops.stream[at].index()];
    facts.push(("Stream", stream.id.to_string()));
    match trace.ops.launch(op) {
        Some(call) => {
            latency_facts(doc, op, call, facts);
            facts.push(("Launched by", format!("{} ({})", trace.call_name(call), duration_of(doc, Item::Call(call)))));
        }
        None => facts.push(("Launched by", "not recorded".to_owned())),
    }
    let kind = match trace.ops.kind[at] {
        OpKind::Kernel => "Kernel",
        OpKind::Copy => "Copy",
        OpKind::Memset => "Memset",
        OpKind::Graph => "Graph launch",
    };
    match trace.op_detail(op) {
        Detail::None => {}
        Detail::Kernel { grid, block, cluster, registers, static_shared, dynamic_shared } => {
            facts.push(("Grid", dimensions(grid)));
            facts.push(("Block", dimensions(block)));
            if cluster.iter().any(|&blocks| blocks > 0) {
                facts.push(("Cluster", dimensions(cluster)));
            }
            facts.push(("Registers", format!("{registers} per thread")));
            let shared = u64::from(static_shared) + u64::from(dynamic_shared);
            if shared > 0 {
                facts.push(("Shared memory", format!("{} per block", format::bytes(shared))));
            }
        }
        Detail::Copy { from, to, asynchronous } => {
            facts.push(("From", memory(from).to_owned()));
            facts.push(("To", memory(to).to_owned()));
            facts.push(("Call", if asynchronous { "asynchronous" } else { "blocking" }.to_owned()));
        }
        Detail::Memset { to, .. } => facts.push(("To", memory(to).to_owned())),
    }
    if trace.ops.bytes[at] > 0 {
        facts.push(("Size", format::bytes(trace.ops.bytes[at])));
        let ns = trace.ops.interval(op).len().0;
        facts.extend(format::throughput(trace.ops.bytes[at], ns).map(|rate| ("Throughput", rate)));
    }
    if trace.ops.graph[at].is_some() {
        facts.push(("Graph", format!("{}{}", trace.ops.graph[at].0, place_in_graph(doc, op))));
    }
    if trace.ops.correlation[at].is_some() {
        facts.push(("Correlation", trace.ops.correlation[at].0.to_string()));
    }
    (kind.to_owned(), demangle(trace.op_name(op)))
}

fn call_facts(doc: &Document, call: CallIdx, facts: &mut Vec<(&'static str, String)>) -> (String, String) {
    let trace = &doc.trace;
    let at = call.index();
    facts.push(("Thread", thread_name(doc, call)));
    let ops = trace.call_ops(call);
    if let Some(&first) = ops.first() {
        let more =
            if ops.len() > 1 { format!(" and {} more", format::count(ops.len() as u64 - 1)) } else { String::new() };
        facts.push(("Submitted", format!("{}{more}", doc.short_name(trace.ops.name[first.index()]))));
        let first = ops.iter().copied().min_by_key(|op| trace.ops.start[op.index()]).unwrap_or(first);
        latency_facts(doc, first, call, facts);
    }
    if trace.calls.result[at] != 0 {
        facts.push(("Returned", format!("error {}", trace.calls.result[at])));
    }
    if trace.calls.correlation[at].is_some() {
        facts.push(("Correlation", trace.calls.correlation[at].0.to_string()));
    }
    let kind = if trace.calls.kind[at].synchronises() { "Blocking API call" } else { "API call" };
    (kind.to_owned(), trace.call_name(call).to_owned())
}

fn range_facts(doc: &Document, range: RangeIdx, facts: &mut Vec<(&'static str, String)>) -> (String, String) {
    let found = &doc.trace.ranges[range.index()];
    facts.push(("Thread", doc.trace.threads[found.thread.index()].tid.to_string()));
    let kind = match found.kind {
        RangeKind::Nvtx => "NVTX range",
        RangeKind::Operator => "Operator",
        RangeKind::Annotation => "Annotation",
    };
    (kind.to_owned(), doc.trace.names.get(found.name).to_owned())
}

fn bubble_facts(doc: &Document, at: BubbleRef, facts: &mut Vec<(&'static str, String)>) -> Option<(String, String)> {
    let (device, bubble) = doc.bubble(at)?;
    facts.push(("Root cause", format!("{} ({})", bubble.root.cause, confidence(bubble.root.confidence))));
    facts.push(("Why", meaning(doc, at, bubble)));
    let titles = findings_of(doc, bubble).map(|finding| format!("{} ({})", finding.title, finding.id));
    let titles: Vec<String> = titles.collect();
    if !titles.is_empty() {
        facts.push((FINDING, titles.join("; ")));
    }
    if let Some((call, long)) = holder(device, bubble) {
        let share = format::percent(long.0, bubble.interval.len().0);
        let (name, whole) = (doc.trace.call_name(call), duration_of(doc, Item::Call(call)));
        let inside = format::duration(long.0);
        facts.push((MOSTLY_IN, format!("{name}: {inside} of its {whole}, {share} of the bubble")));
    }
    let ahead = |call: CallIdx| {
        let ahead = bubble.interval.start.0.saturating_sub(doc.trace.calls.start[call.index()].0);
        match root_call_name(doc, bubble, call) {
            LAUNCH_BEFORE => format!(", called {} before the bubble", format::duration(ahead)),
            _ => String::new(),
        }
    };
    let named = |call: CallIdx| format!("{} ({})", doc.trace.call_name(call), duration_of(doc, Item::Call(call)));
    let default = into_default(doc, bubble);
    if let Some((call, op)) = default {
        // The launch of what ended the bubble may be the one: then it is said of it here.
        let ahead = if bubble.root.call == Some(call) { ahead(call) } else { String::new() };
        facts.push((DEFAULT_STREAM, format!("{} put {} into it{ahead}", named(call), op_name(doc, op))));
    }
    // What is said of the waits below names the call that made the next op wait.
    let waits: Vec<Option<CallIdx>> = doc.waits_of(bubble).take(MOST_HANDOVERS).map(|handover| handover.wait).collect();
    let elsewhere = |call| default.is_some_and(|(put, _)| put == call) || waits.contains(&Some(call));
    if let Some(call) = bubble.root.call.filter(|&call| !elsewhere(call)) {
        facts.push((root_call_name(doc, bubble, call), format!("{}{}", named(call), ahead(call))));
    }
    if let Some(site) = bubble.root.site {
        facts.push(("In range", range_name(doc, site).to_owned()));
    }
    if let Some(drain) = bubble.drained_by {
        facts.push(("Drained by", doc.trace.call_name(drain.call).to_owned()));
    }
    let stream = |op: OpIdx| doc.trace.ops.stream.get(op.index());
    for (name, op) in [("Before", bubble.before), ("After", bubble.after)] {
        // On one stream, it goes without saying.
        let same = stream(bubble.before) == stream(bubble.after);
        facts.push((name, if same { op_name(doc, op).to_owned() } else { op_on_stream(doc, op) }));
    }
    facts.push(("Judged by", why(bubble.root.rule).to_owned()));
    Some(("Bubble".to_owned(), format!("{} idle: {}", format::duration(bubble.interval.len().0), bubble.root.cause)))
}

/// The name of the fact which call put work into the legacy default stream, which others then waited for or which waited
/// for others.
const DEFAULT_STREAM: &str = "Default stream";

/// The call that put one of the two ops beside a bubble into the legacy default stream, where that made the bubble, and
/// the op.
fn into_default(doc: &Document, bubble: &Bubble) -> Option<(CallIdx, OpIdx)> {
    let trace = &doc.trace;
    let is_there = |op: &OpIdx| {
        let stream = trace.ops.stream.get(op.index()).and_then(|stream| trace.streams.get(stream.index()));
        stream.is_some_and(|stream| stream.kind == StreamKind::Null)
    };
    let op = [bubble.before, bubble.after].into_iter().find(is_there)?;
    let call = trace.ops.launch(op)?;
    (bubble.root.rule == Rule::LegacyDefaultStream).then_some((call, op))
}

/// The call that a bubble goes with: the one to blame, and then it is true; or only the one in which most of it passed.
pub fn call_of(doc: &Document, at: BubbleRef) -> Option<(CallIdx, bool)> {
    let (device, bubble) = doc.bubble(at)?;
    let root = bubble.root.call.filter(|_| is_to_blame(&bubble.root));
    let blamed = root.or_else(|| into_default(doc, bubble).map(|(call, _)| call));
    blamed.map(|call| (call, true)).or_else(|| most_inside(device, bubble).map(|(call, _)| (call, false)))
}

/// The name of a launch that was called before the bubble which its op ended.
const LAUNCH_BEFORE: &str = "Next op's launch";

/// What the call of a root cause is: the one to blame, or only the one that launches what ends the bubble.
fn root_call_name(doc: &Document, bubble: &Bubble, call: CallIdx) -> &'static str {
    let start = doc.trace.calls.start.get(call.index());
    match start.is_some_and(|&start| start < bubble.interval.start) {
        _ if is_to_blame(&bubble.root) => "Call",
        true => LAUNCH_BEFORE,
        false => "Next launch",
    }
}

/// Whether the call of a root cause is to blame, and not only the launch that came late or was held back.
pub fn is_to_blame(root: &RootCause) -> bool {
    root.cause.blames_call() || matches!(root.rule, Rule::RecordedWait | Rule::LaunchCallLong)
}

/// What the root cause of a bubble means there.
fn meaning(doc: &Document, at: BubbleRef, bubble: &Bubble) -> String {
    let because = bubble.root.cause.because();
    match (bubble.root.cause, bubble.root.rule) {
        (Cause::Dependency, Rule::LegacyDefaultStream) => format!("{because}, through the legacy default stream"),
        (Cause::HostBound, _) => {
            let code = doc.bubble(at).map_or(0, |(device, bubble)| {
                let segments = device.segments_of(bubble).iter().filter(|part| part.kind == SegmentKind::HostCode);
                segments.map(|segment| segment.interval.len().0).sum()
            });
            let which = match (bubble.root.site, doc.trace.ranges.is_empty()) {
                (Some(_), _) => "",
                (None, true) => "; which code the recording does not tell: `bubble-report record --nvtx` names ranges",
                (None, false) => "; no range was open there",
            };
            format!("{because}, for {} of it{which}", format::duration(code))
        }
        (Cause::BlockingCopy, _) if bubble.root.call == bubble.launch => {
            // Such a call submits its work in its own time.
            let short = match bubble.interval.len() < SWITCH {
                true => "; a gap so short may be no more than the GPU's way from one op to the next",
                false => "",
            };
            format!("{because}: the GPU waited for the copy itself, whose call was still at work{short}")
        }
        (Cause::LaunchBound, _) => {
            let device = doc.bubble(at).map(|(device, _)| device);
            let host = device.map_or_else(Vec::new, |device| host_time(&doc.trace, device, [bubble]));
            analysis::because(bubble.root.cause, bubble.interval.len(), &host).to_string()
        }
        _ => because.to_owned(),
    }
}

/// What is shorter than this lies between queued ops as well.
const SWITCH: Ns = Ns(5_000);

/// The findings that a bubble belongs to, the one that gains most first; none before the replay is through.
pub fn findings_of<'d>(doc: &'d Document, bubble: &Bubble) -> impl Iterator<Item = &'d Finding> {
    let (index, bubble) = (bubble.device, *bubble);
    let full = doc.full();
    let device = full.and_then(|full| full.analysis.devices.iter().find(|device| device.device == index));
    let found = full.map_or(&[][..], |full| &full.findings.found);
    found.iter().filter(move |finding| device.is_some_and(|device| finding.concerns(device, &bubble)))
}

/// The name of the fact how long after the start of its launch an op started.
const LAUNCH_TO_START: &str = "Launch to start";

/// How long an op took to start after its launch was called, and what it waited for as far as is known.
fn latency_facts(doc: &Document, op: OpIdx, call: CallIdx, facts: &mut Vec<(&'static str, String)>) {
    let trace = &doc.trace;
    let (launched, start) = (trace.calls.start[call.index()], trace.ops.start[op.index()]);
    let lane = &trace.streams[trace.ops.stream[op.index()].index()].ops;
    let ahead = (op.0 > lane.start).then(|| trace.ops.end[op.index() - 1]);
    let submitted = trace.calls.end[call.index()];
    // What is on its way to an empty device waits for nothing else, and nothing is queued before its call is over.
    if let Some(free) = ahead.filter(|&free| free > submitted && free <= start) {
        facts.push((
            "Queued for",
            format!(
                "{}, from its call's end, behind earlier work of its stream",
                format::duration((free - submitted).0)
            ),
        ));
        let waited = doc.handovers_of(Item::Op(op)).filter(|handover| handover.then == Some(op));
        let last = waited.filter_map(|handover| handover.first).max_by_key(|first| trace.ops.end[first.index()]);
        let why = match last.filter(|first| trace.ops.end[first.index()] > free) {
            Some(first) => format!(", when {} was over", op_on_stream(doc, first)),
            None => String::new(),
        };
        facts.push(("Then started", format!("{} after that work{why}", format::duration((start - free).0))));
    } else if let Some(free) = ahead.filter(|&free| free > launched && free <= start) {
        let [whole, busy] = [start, free].map(|until| format::duration((until - launched).0));
        facts.push((
            LAUNCH_TO_START,
            format!("{whole}, from the call's start; its stream had work for the first {busy}"),
        ));
    } else if launch_found_idle_device(doc, op, launched) {
        // Not the segment of a bubble that is called launch latency: that begins when the call is over.
        facts.push((LAUNCH_TO_START, format!("{}, from the call's start", format::duration((start - launched).0))));
    } else {
        facts.push((
            LAUNCH_TO_START,
            format!("{}, while the GPU had other work", format::duration((start - launched).0)),
        ));
    }
}

/// Whether a device had nothing to do from a launch until its op started.
fn launch_found_idle_device(doc: &Document, op: OpIdx, launched: Ns) -> bool {
    let start = doc.trace.ops.start[op.index()];
    let device = doc.trace.op_device(op);
    let analysis = doc.analysis();
    let Some(found) = analysis.and_then(|analysis| analysis.devices.iter().find(|found| found.device == device)) else {
        // Outside of what was analysed, or not analysed yet: then its own stream has to do.
        return true;
    };
    if !found.span.contains(start) || start == found.span.start {
        return true;
    }
    let next = found.bubbles.partition_point(|bubble| bubble.interval.end < start);
    found.bubbles.get(next).is_some_and(|bubble| bubble.interval.end == start && bubble.interval.start <= launched)
}

/// Which of the nodes of its graph's launch an op is, by start.
fn place_in_graph(doc: &Document, op: OpIdx) -> String {
    let trace = &doc.trace;
    let Some(call) = trace.ops.launch(op) else { return String::new() };
    let ops = trace.call_ops(call);
    let key = |op: OpIdx| (trace.ops.start[op.index()], op);
    let before = ops.iter().filter(|&&other| key(other) < key(op)).count() as u64;
    match ops.len() as u64 {
        0 | 1 => String::new(),
        all => format!(", op {} of {} of this launch", format::count(before + 1), format::count(all)),
    }
}

/// The short name of an op.
pub fn op_name(doc: &Document, op: OpIdx) -> &str {
    doc.trace.ops.name.get(op.index()).map_or("", |&name| doc.short_name(name))
}

/// The short name of an op with its stream.
pub fn op_on_stream(doc: &Document, op: OpIdx) -> String {
    let stream = doc.trace.ops.stream.get(op.index()).map_or_else(String::new, |&at| stream_name(doc, at));
    format!("{} on {stream}", op_name(doc, op))
}

/// The name of a range.
pub fn range_name(doc: &Document, range: RangeIdx) -> &str {
    doc.trace.ranges.get(range.index()).map_or("", |range| doc.trace.names.get(range.name))
}

/// The name to write into a thing's box.
pub fn label(doc: &Document, item: Item) -> Cow<'_, str> {
    let name = match item {
        Item::Op(op) => op_name(doc, op),
        Item::Call(call) if call.index() < doc.trace.calls.len() => doc.trace.call_name(call),
        Item::Call(_) => "",
        Item::Range(range) => range_name(doc, range),
        Item::Bubble(at) => doc.bubble(at).map_or("", |(_, bubble)| bubble.root.cause.as_str()),
        Item::Replay(stream, call) => {
            let nodes = doc.replay_nodes(stream, call).count() as u64;
            return Cow::Owned(format!(
                "{} · {}",
                graph_name(doc, stream, call),
                format::things(nodes, "node", "nodes")
            ));
        }
    };
    Cow::Borrowed(name)
}

/// The graph that a launch replayed.
fn graph_name(doc: &Document, stream: StreamIdx, call: CallIdx) -> String {
    let graph = doc.replay_nodes(stream, call).next().map_or(0, |op| doc.trace.ops.graph[op.index()].0);
    format!("graph {graph}")
}

fn replay_facts(
    doc: &Document,
    stream: StreamIdx,
    call: CallIdx,
    facts: &mut Vec<(&'static str, String)>,
) -> (String, String) {
    let trace = &doc.trace;
    let nodes = doc.replay_nodes(stream, call).count() as u64;
    facts.push(("Nodes", format::count(nodes)));
    let busy = doc.replay_nodes(stream, call).map(|op| trace.ops.interval(op).len().0).sum::<i64>();
    facts.push(("Ops together", format::duration(busy)));
    facts.push(("Launched by", format!("{} ({})", trace.call_name(call), duration_of(doc, Item::Call(call)))));
    if let Some(first) = doc.replay_nodes(stream, call).min_by_key(|op| trace.ops.start[op.index()]) {
        latency_facts(doc, first, call, facts);
    }
    ("Graph replay".to_owned(), graph_name(doc, stream, call))
}

/// The thread that made a call.
pub fn thread_name(doc: &Document, call: CallIdx) -> String {
    let thread = &doc.trace.threads[doc.trace.calls.thread[call.index()].index()];
    format!("{} {}", thread.name, thread.tid).trim().to_owned()
}

fn duration_of(doc: &Document, item: Item) -> String {
    doc.times(item).map_or_else(String::new, |times| format::duration(times.len().0))
}

fn dimensions(of: [u32; 3]) -> String {
    format!("{} × {} × {}", of[0], of[1], of[2])
}

fn memory(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Unknown => "unknown",
        MemoryKind::Pageable => "pageable host memory",
        MemoryKind::Pinned => "pinned host memory",
        MemoryKind::Device => "device memory",
        MemoryKind::Array => "device array",
        MemoryKind::Managed => "managed memory",
        MemoryKind::Peer => "another device",
    }
}

/// How sure a judgement is, in words.
pub fn confidence(confidence: Confidence) -> &'static str {
    confidence.as_str()
}

/// What a root cause means.
pub fn cause(cause: Cause) -> &'static str {
    cause.because()
}

/// What a rule saw.
pub fn why(rule: Rule) -> &'static str {
    match rule {
        Rule::QueuedGapTooLong => "the next op was enqueued in time, yet started very late after the one before",
        Rule::LatencyTooLong => "the op started very late after its launch, on an empty device",
        Rule::SameGraphLaunch => "the ops on both sides belong to one graph launch",
        Rule::RecordedWait => "a recorded stream wait lies before the op",
        Rule::StreamWasFree => "the op was enqueued and its own stream was free before the device ran dry",
        Rule::LegacyDefaultStream => {
            "the op before is on another stream, and one of the two is the legacy default stream: work on either waits for earlier work on the other"
        }
        Rule::QueuedBehind => "the op was enqueued behind the op that ended at the bubble's start",
        Rule::NoLaunch => "the op has no launch call in the trace",
        Rule::DrainFillsHalf => {
            "the call that was open when the device ran dry, or whose copy ended then, lasted at least half as long as the \
             bubble"
        }
        Rule::OwnLaunchFillsHalf => {
            "the call that submitted the next op holds its caller while memory is copied or staged; it was open when the \
             device ran dry and lasted at least half as long as the bubble"
        }
        Rule::FillsHalf => "calls of this kind fill at least half of the bubble",
        Rule::FirstLaunchLong => {
            "the launch call was far longer than usual, and it was the first of its kernel or graph"
        }
        Rule::LaunchCallLong => "the launch call was far longer than usual",
        Rule::HostGap => {
            "the process made no launching or blocking call for longer than it usually does, and mostly ran its own code"
        }
        Rule::HostCodeFillsHalf => "the host ran its own code for at least half as long as the bubble lasted",
        Rule::FillsMost => {
            "the process made no launching or blocking call for longer than it usually does, and this fills the most of \
             that time"
        }
        Rule::LaunchLate => {
            "the call that launched the next op was not over when the device ran dry, and no other rule fits"
        }
    }
}

/// What a kind of segment means.
pub fn segment(kind: SegmentKind) -> &'static str {
    kind.meanwhile()
}

/// The call or range behind a segment.
pub fn behind<'d>(doc: &'d Document, segment: &Segment) -> Option<&'d str> {
    match segment.what {
        SegmentDetail::None => None,
        SegmentDetail::Call(call) => Some(doc.trace.call_name(call)),
        SegmentDetail::Range(range) => Some(range_name(doc, range)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::testing;

    #[test]
    fn ops_and_calls_are_described_with_their_link() {
        let trace = testing::trace(2, 4);
        let doc = Document::new(Path::new("a.bubbles.parquet"), Arc::new(trace));
        let op = doc.trace.ops.indices().next().unwrap();
        let found = describe(&doc, Item::Op(op)).unwrap();
        assert_eq!((found.kind.as_str(), found.title.as_str()), ("Kernel", "gemm_kernel"));
        let fact = |name: &str| found.facts.iter().find(|(fact, _)| *fact == name).map(|(_, value)| value.clone());
        assert_eq!(fact("Launch to start").as_deref(), Some("6.00 µs, from the call's start"));
        assert_eq!(fact("Duration").as_deref(), Some("60.0 µs"));
        assert_eq!(fact("Grid").as_deref(), Some("256 × 1 × 1"));
        let call = doc.trace.ops.launch(op).unwrap();
        assert_eq!(label(&doc, Item::Call(call)), "cudaLaunchKernel");
        assert!(describe(&doc, Item::Call(CallIdx(999_999))).is_none());
    }
}
