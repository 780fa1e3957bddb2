//! Makes a [`Report`] of a trace and its analysis.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::contract::{
    Blamed, Bubble, BubbleFigures, Device, DrainedBy, HistogramBucket, HostTime, IterationSource, Iterations, Launches,
    PeerWait, Process, Quality, Report, ReportSchema, Root, RunAhead, Segment, Source, Stream, SyncCall, Thread, Tool,
    Window, Workload,
};
use super::demangle::demangle;
use crate::analysis::{self, Analysis, Cause, DeviceAnalysis, Percentiles, SyncCallRow};
use crate::trace::{CallIdx, DeviceIdx, Interval, NameId, Ns, OpIdx, RangeIdx, ThreadIdx, Trace};

/// What a report says beyond the analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The file, as the user named it.
    pub path: String,
    /// How many of the longest bubbles to list.
    pub top: usize,
}

impl Default for Options {
    /// No path, 20 bubbles.
    fn default() -> Self {
        Self { path: String::new(), top: 20 }
    }
}

impl Report {
    /// The report on `analysis`, which is of `trace`. Findings and gains are not part of it: see
    /// [`Report::full`].
    pub fn new(trace: &Trace, analysis: &Analysis, options: &Options) -> Self {
        let mut names = Names { trace, readable: FxHashMap::default() };
        Self {
            schema: ReportSchema::V1,
            tool: Tool::default(),
            source: source(trace, analysis, options),
            window: Window { start_ns: analysis.window.start, end_ns: analysis.window.end },
            devices: device_figures(trace, analysis),
            sync_calls: analysis.sync_calls.iter().map(sync_call).collect(),
            replay: None,
            iterations: analysis.iterations.as_ref().map(iterations),
            processes: processes(trace),
            launches: Launches {
                count: analysis.launches.count,
                call_p50_ns: analysis.launches.call_p50,
                latency_p50_ns: analysis.launches.latency_p50,
                negative_latency: analysis.launches.negative_latency,
                ops_per_launch_p50: analysis.launches.ops_per_launch_p50,
            },
            findings: None,
            findings_withheld: None,
            bubbles: longest(analysis, options.top).map(|(device, found)| names.bubble(device, found)).collect(),
            quality: quality(&analysis.quality),
        }
    }
}

fn source(trace: &Trace, analysis: &Analysis, options: &Options) -> Source {
    let meta = &trace.meta;
    Source {
        path: options.path.clone(),
        format: meta.source.format.clone(),
        captured_on: meta.source.captured_on.clone(),
        capture_mode: analysis.quality.capture_mode,
        command: meta.source.command.clone(),
        machine: meta.machine.clone(),
        workload: meta.workload.as_ref().map(|run| Workload {
            workload: run.workload.clone(),
            variant: run.variant.clone(),
            options: run.options.clone(),
            iterations: run.iterations,
            warmup: run.warmup,
            answer: run.answer.clone(),
            measured_ns: run.measured.map(Interval::len),
        }),
    }
}

fn device_figures(trace: &Trace, analysis: &Analysis) -> Vec<Device> {
    let in_collectives = in_collectives(trace);
    let alone = in_collectives.iter().filter(|&&ran| ran).count() == 1;
    let has_unknown_peers = |found: &DeviceAnalysis| alone && in_collectives.get(found.device.index()) == Some(&true);
    let devices = analysis.devices.iter();
    devices.map(|found| one_device(trace, found, !has_unknown_peers(found))).collect()
}

/// Whether each device runs kernels of collectives.
fn in_collectives(trace: &Trace) -> Vec<bool> {
    let mut ran = vec![false; trace.devices.len()];
    let names = analysis::collective_names(trace);
    if names.contains(&true) {
        let here = trace.ops.indices().map(|op| (trace.op_device(op), trace.ops.name[op.index()]));
        let elsewhere = trace.rest.iter().flat_map(|rest| &rest.ops).map(|&(_, device, name, _)| (device, name));
        for (device, _) in here.chain(elsewhere).filter(|(_, name)| names.get(name.index()) == Some(&true)) {
            if let Some(ran) = ran.get_mut(device.index()) {
                *ran = true;
            }
        }
    }
    ran
}

fn one_device(trace: &Trace, found: &DeviceAnalysis, knows_peers: bool) -> Device {
    let device = trace.devices.get(found.device.index());
    let partition = found.partition;
    let span = partition.span();
    Device {
        device: device_number(trace, found.device),
        name: device.map_or_else(String::new, |device| device.name.clone()),
        span_ns: span,
        busy_ns: partition.busy(),
        compute_only_ns: partition.compute_only,
        overlapped_ns: partition.overlapped,
        exposed_copy_ns: partition.exposed_copy,
        exposed_comm_ns: found.exposed_comm_ns,
        waits_for_peer_ns: knows_peers.then_some(found.peer_waits.total),
        peers: peers(trace, &found.peer_waits),
        idle_ns: partition.idle,
        idle_fraction: if span.0 > 0 { partition.idle.0 as f64 / span.0 as f64 } else { 0.0 },
        ops: found.ops,
        bubbles: bubble_figures(found),
        idle_by_root: found.idle_by_root.clone(),
        blamed: blamed(trace, found),
        host_time: analysis::host_time(trace, found, &found.bubbles).into_iter().map(host_time).collect(),
        idle_by_segment: found.idle_by_segment.clone(),
        streams: found.streams.iter().filter_map(|figures| stream(trace, figures)).collect(),
    }
}

/// Whose calls the bubbles of a device are, by cause.
fn blamed(trace: &Trace, found: &DeviceAnalysis) -> Vec<Blamed> {
    let mut by_call: BTreeMap<(Cause, &str), (u64, Ns)> = BTreeMap::new();
    for bubble in &found.bubbles {
        let Some(call) = bubble.root.call.filter(|_| bubble.root.cause.blames_call()) else { continue };
        let (bubbles, idle) = by_call.entry((bubble.root.cause, trace.call_name(call))).or_default();
        *bubbles += 1;
        *idle += bubble.interval.len();
    }
    let row = |((cause, api), (bubbles, idle_ns))| Blamed { cause, api: String::from(api), bubbles, idle_ns };
    let mut blamed: Vec<Blamed> = by_call.into_iter().map(row).collect();
    blamed.sort_by_key(|blamed| std::cmp::Reverse(blamed.idle_ns));
    blamed
}

fn host_time(found: analysis::HostTime) -> HostTime {
    let analysis::HostTime { cause, kind, api, calls, time } = found;
    HostTime { cause, kind, api, calls, idle_ns: time }
}

fn device_number(trace: &Trace, device: DeviceIdx) -> u32 {
    trace.devices.get(device.index()).map_or(device.0, |device| device.id)
}

/// The peers waited for, the longest wait first.
fn peers(trace: &Trace, waits: &analysis::PeerWaits) -> Vec<PeerWait> {
    let by_peer = waits.by_peer.iter().map(|(&peer, wait)| PeerWait {
        device: device_number(trace, peer),
        collectives: wait.collectives,
        wait_ns: wait.wait,
    });
    let mut peers: Vec<PeerWait> = by_peer.collect();
    peers.sort_by_key(|peer| std::cmp::Reverse(peer.wait_ns));
    peers
}

fn bubble_figures(found: &DeviceAnalysis) -> BubbleFigures {
    let Percentiles { p50, p95, max } = found.bubble_lengths;
    let bucket = |bucket: &analysis::HistogramBucket| HistogramBucket {
        from_ns: bucket.from,
        to_ns: bucket.to,
        count: bucket.count,
        total_ns: bucket.total,
    };
    let besides = found.bubbles.iter().filter(|bubble| bubble.root.cause != Cause::Profiler);
    let besides = besides.map(|bubble| bubble.interval.len()).max().unwrap_or(Ns::ZERO);
    BubbleFigures {
        count: found.bubbles.len() as u64,
        p50_ns: p50,
        p95_ns: p95,
        max_ns: max,
        max_besides_profiler_ns: (besides < max).then_some(besides),
        histogram: found.histogram.iter().map(bucket).collect(),
    }
}

fn stream(trace: &Trace, figures: &analysis::StreamFigures) -> Option<Stream> {
    let stream = trace.streams.get(figures.stream.index())?;
    Some(Stream {
        stream: stream.id,
        context: trace.contexts.get(stream.context.index())?.id,
        pid: trace.processes.get(stream.process.index())?.pid,
        kind: stream.kind,
        ops: figures.ops,
        busy_ns: figures.busy,
        stream_gap_ns: figures.stream_gap,
    })
}

fn sync_call(row: &SyncCallRow) -> SyncCall {
    SyncCall {
        api: row.api.clone(),
        site: row.site.clone(),
        calls: row.calls(),
        blocked_ns: row.blocked,
        useful_wait_ns: row.useful_wait,
        idle_while_blocked_ns: row.idle_while_blocked,
        bubbles_drained_ns: row.bubbles_drained,
        bubbles_caused_ns: row.bubbles_caused,
        refill_ns: row.refill,
        recoverable_ns: row.recoverable,
        p50_ns: row.lengths.p50,
        p95_ns: row.lengths.p95,
        max_ns: row.lengths.max,
        run_ahead: Some(RunAhead {
            p50_ns: row.run_ahead.work.p50,
            p95_ns: row.run_ahead.work.p95,
            max_ns: row.run_ahead.work.max,
            ops_p50: row.run_ahead.ops_p50,
        }),
    }
}

fn iterations(found: &analysis::Iterations) -> Iterations {
    Iterations {
        source: match &found.source {
            analysis::IterationSource::LaunchSequence { launches } => {
                IterationSource::LaunchSequence { launches: *launches as u64 }
            }
            analysis::IterationSource::Range(name) => IterationSource::Range { name: name.clone() },
        },
        count: found.count,
        warmup: found.warmup,
        period_p50_ns: found.period.p50,
        period_p95_ns: found.period.p95,
        idle_p50_ns: found.idle_p50,
        blocking_calls_p50: found.blocking_calls_p50,
    }
}

fn processes(trace: &Trace) -> Vec<Process> {
    let mut processes: Vec<Process> = trace
        .processes
        .iter()
        .map(|process| Process { pid: process.pid, name: process.name.clone(), threads: Vec::new() })
        .collect();
    for (index, thread) in trace.threads.iter().enumerate() {
        let elsewhere = trace.rest.as_deref().and_then(|rest| rest.thread_calls.get(&ThreadIdx::from_index(index)));
        let calls = u64::from(thread.calls.end.saturating_sub(thread.calls.start));
        if let Some(process) = processes.get_mut(thread.process.index()) {
            process.threads.push(Thread {
                tid: thread.tid,
                name: thread.name.clone(),
                calls: calls.saturating_add(elsewhere.copied().unwrap_or(0)),
            });
        }
    }
    processes
}

/// The longest bubbles of all devices, longest first, of equals the earliest.
fn longest(analysis: &Analysis, top: usize) -> impl Iterator<Item = (&DeviceAnalysis, &analysis::Bubble)> + use<'_> {
    let key = |&(_, bubble): &(&DeviceAnalysis, &analysis::Bubble)| {
        (std::cmp::Reverse(bubble.interval.len()), bubble.interval.start, bubble.device)
    };
    // A few more than needed are kept before the rest is thrown away: there may be millions of bubbles.
    let room = top.saturating_mul(2).max(64);
    let mut kept: Vec<(&DeviceAnalysis, &analysis::Bubble)> = Vec::new();
    for device in &analysis.devices {
        for bubble in &device.bubbles {
            if kept.len() == room {
                kept.select_nth_unstable_by_key(top, key);
                kept.truncate(top);
            }
            kept.push((device, bubble));
        }
    }
    kept.sort_by_key(key);
    kept.truncate(top);
    kept.into_iter()
}

fn quality(found: &analysis::Quality) -> Quality {
    let losses = found.losses;
    Quality {
        idle_reliable: found.idle_reliable,
        reasons: found.reasons.clone(),
        gpu_not_captured: found.gpu_not_captured,
        dropped_records: losses.dropped_records,
        ops_without_time: losses.ops_without_time,
        unfinished_ops: losses.unfinished_ops,
        unreadable_records: losses.unreadable_records.saturating_add(losses.impossible_times),
        cut_bytes: losses.cut_bytes,
        orphan_ops: found.orphan_ops,
        launches_without_ops: found.launches_without_ops,
        profiler_ns: found.profiler,
        graph_ops: found.graph_ops,
        graph_launch_idle_ns: found.graph_launch_idle,
        inflation: None,
        warnings: found.warnings.clone(),
    }
}

/// The names in a trace, each kernel's demangled once.
struct Names<'a> {
    trace: &'a Trace,
    readable: FxHashMap<NameId, String>,
}

impl Names<'_> {
    fn op(&mut self, op: OpIdx) -> String {
        let Some(&name) = self.trace.ops.name.get(op.index()) else { return String::new() };
        self.readable.entry(name).or_insert_with(|| demangle(self.trace.names.get(name))).clone()
    }

    fn api(&self, call: CallIdx) -> String {
        self.trace.call_name(call).to_owned()
    }

    fn tid(&self, call: CallIdx) -> u64 {
        let thread = self.trace.calls.thread[call.index()];
        self.trace.threads.get(thread.index()).map_or(0, |thread| thread.tid)
    }

    fn range(&self, range: RangeIdx) -> Option<String> {
        self.trace.ranges.get(range.index()).map(|range| self.trace.names.get(range.name).to_owned())
    }

    fn bubble(&mut self, device: &DeviceAnalysis, found: &analysis::Bubble) -> Bubble {
        let root = found.root;
        let id = self.trace.devices.get(found.device.index()).map_or(found.device.0, |device| device.id);
        Bubble {
            device: id,
            start_ns: found.interval.start,
            dur_ns: found.interval.len(),
            before: self.op(found.before),
            after: self.op(found.after),
            root: Root {
                cause: root.cause,
                api: root.call.map(|call| self.api(call)),
                site: root.site.and_then(|site| self.range(site)),
                tid: root.call.map(|call| self.tid(call)),
                confidence: root.confidence,
                rule: root.rule,
            },
            drained_by: found.drained_by.map(|drain| DrainedBy {
                api: self.api(drain.call),
                tid: self.tid(drain.call),
                confidence: drain.confidence,
            }),
            segments: device.segments_of(found).iter().map(|segment| self.segment(segment)).collect(),
        }
    }

    fn segment(&self, segment: &analysis::Segment) -> Segment {
        Segment {
            kind: segment.kind,
            start_ns: segment.interval.start,
            dur_ns: segment.interval.len(),
            api: segment.call().map(|call| self.api(call)),
            range: segment.range().and_then(|range| self.range(range)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Confidence, SegmentKind, analyze};
    use crate::trace::{CallInput, CorrelationId, Detail, GraphId, OpInput, OpKind, TraceBuilder};

    /// Two kernels in each of `rounds` rounds, the host waiting after the second.
    fn trace(rounds: u64) -> Trace {
        let mut builder = TraceBuilder::new();
        let process = builder.process(4242);
        let device = builder.device(3);
        let context = builder.context(process, 1, device);
        let stream = builder.stream(context, 7);
        let thread = builder.thread(process, 99);
        let kernel = builder.name("_Z4stepPf");
        let launch = builder.name("cuLaunchKernel");
        let wait = builder.name("cuStreamSynchronize");
        for round in 0..rounds {
            let at = |us: i64| round as i64 * 100_000 + us * 1_000;
            let mut id = round * 3;
            for (call, op) in [((0, 4), (10, 30)), ((5, 9), (31, 50))] {
                id += 1;
                let correlation = CorrelationId(id);
                builder.push_call(CallInput {
                    start: at(call.0),
                    end: at(call.1),
                    thread,
                    name: launch,
                    correlation,
                    result: 0,
                });
                builder.push_op(OpInput {
                    start: at(op.0),
                    end: at(op.1),
                    stream,
                    kind: OpKind::Kernel,
                    name: kernel,
                    correlation,
                    bytes: 0,
                    graph: GraphId::NONE,
                    graph_node: 0,
                    detail: Detail::None,
                });
            }
            let correlation = CorrelationId(id + 1);
            builder.push_call(CallInput { start: at(10), end: at(98), thread, name: wait, correlation, result: 0 });
        }
        builder.meta.source.format = "generated".to_owned();
        builder.finish().unwrap()
    }

    fn report(top: usize) -> Report {
        let trace = trace(3);
        let analysis = analyze(&trace, &analysis::Options::default());
        Report::new(&trace, &analysis, &Options { path: "t.bubbles.parquet".to_owned(), top })
    }

    #[test]
    fn a_report_holds_what_the_analysis_found() {
        let report = report(20);
        let [device] = report.devices.as_slice() else { panic!("{:?}", report.devices) };
        assert_eq!(device.device, 3);
        assert_eq!((device.span_ns, device.busy_ns, device.idle_ns), (Ns(240_000), Ns(117_000), Ns(123_000)));
        assert_eq!(device.idle_fraction, 123.0 / 240.0);
        assert_eq!((device.bubbles.count, device.bubbles.max_ns), (5, Ns(60_000)));
        assert_eq!(device.idle_by_root.values().copied().sum::<Ns>(), device.idle_ns);
        assert_eq!(device.idle_by_segment.values().copied().sum::<Ns>(), device.idle_ns);
        let [blamed] = device.blamed.as_slice() else { panic!("{:?}", device.blamed) };
        assert_eq!((blamed.cause, blamed.api.as_str(), blamed.bubbles), (Cause::Sync, "cuStreamSynchronize", 2));
        assert_eq!(blamed.idle_ns, device.idle_by_root[&Cause::Sync]);
        assert_eq!((device.streams[0].stream, device.streams[0].pid), (7, 4242));
        assert_eq!(report.processes[0].threads[0].calls, 9);
        assert_eq!(report.sync_calls[0].api, "cuStreamSynchronize");
        assert_eq!((report.sync_calls[0].calls, report.sync_calls[0].recoverable_ns), (3, None));
        assert_eq!(report.launches.count, 6);
        assert!(report.quality.idle_reliable);

        let bubble = &report.bubbles[0];
        assert_eq!((bubble.device, bubble.start_ns, bubble.dur_ns), (3, Ns(50_000), Ns(60_000)));
        assert_eq!((bubble.before.as_str(), bubble.after.as_str()), ("step(float*)", "step(float*)"));
        assert_eq!((bubble.root.cause, bubble.root.tid), (Cause::Sync, Some(99)));
        let drained_by = bubble.drained_by.as_ref().unwrap();
        assert_eq!((drained_by.api.as_str(), drained_by.confidence), ("cuStreamSynchronize", Confidence::Certain));
        assert_eq!(bubble.segments[0].kind, SegmentKind::SyncReturn);
        assert_eq!(bubble.segments.iter().map(|segment| segment.dur_ns).sum::<Ns>(), bubble.dur_ns);
    }

    #[test]
    fn the_longest_bubbles_come_first_and_only_as_many_as_asked_for() {
        let lengths = |top| -> Vec<i64> { report(top).bubbles.iter().map(|bubble| bubble.dur_ns.0).collect() };
        assert_eq!(lengths(20), [60_000, 60_000, 1_000, 1_000, 1_000]);
        assert_eq!(lengths(3), [60_000, 60_000, 1_000]);
        assert_eq!(lengths(0), [0; 0]);

        // More bubbles than are ever held at once.
        let many = trace(500);
        let analysis = analyze(&many, &analysis::Options::default());
        let listed = Report::new(&many, &analysis, &Options { top: 600, ..Options::default() }).bubbles;
        let mut all: Vec<(i64, i64)> = analysis.devices[0]
            .bubbles
            .iter()
            .map(|bubble| (-bubble.interval.len().0, bubble.interval.start.0))
            .collect();
        all.sort_unstable();
        let listed: Vec<(i64, i64)> = listed.iter().map(|bubble| (-bubble.dur_ns.0, bubble.start_ns.0)).collect();
        assert_eq!(listed, all[..600]);
        let few = Report::new(&many, &analysis, &Options { top: 7, ..Options::default() }).bubbles;
        let few: Vec<(i64, i64)> = few.iter().map(|bubble| (-bubble.dur_ns.0, bubble.start_ns.0)).collect();
        assert_eq!(few, all[..7]);
    }

    #[test]
    fn json_has_the_contract_names_and_reads_back() {
        let report = report(2);
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["schema"], "bubblescope.report/1");
        let nothing = serde_json::to_value(Report::default()).unwrap();
        assert!(nothing["iterations"].is_null() && nothing.as_object().unwrap().contains_key("iterations"));
        for absent in ["replay", "findings"] {
            assert!(!json.as_object().unwrap().contains_key(absent), "{absent}");
        }
        assert!(!json["sync_calls"][0].as_object().unwrap().contains_key("recoverable_ns"));
        assert_eq!(json["devices"][0]["idle_by_root"]["sync"], 120_000);
        assert_eq!(json["source"]["capture_mode"], "unknown");
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
    }
}
