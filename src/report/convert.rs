//! Makes a [`Report`] of a trace and its analysis.

use rustc_hash::FxHashMap;

use super::contract::{
    Bubble, BubbleFigures, Device, DrainedBy, HistogramBucket, IterationSource, Iterations, Launches, Process, Quality,
    Report, ReportSchema, Root, RunAhead, Segment, Source, Stream, SyncCall, Thread, Tool, Window, Workload,
};
use super::demangle::demangle;
use crate::analysis::{self, Analysis, DeviceAnalysis, Percentiles, SyncCallRow};
use crate::trace::{CallIdx, Interval, NameId, OpIdx, RangeIdx, Trace};

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
    /// The report on `analysis`, which is of `trace`. Findings and the replay are not part of it: they are added.
    pub fn new(trace: &Trace, analysis: &Analysis, options: &Options) -> Self {
        let mut names = Names { trace, readable: FxHashMap::default() };
        Self {
            schema: ReportSchema::V1,
            tool: Tool::default(),
            source: source(trace, analysis, options),
            window: Window { start_ns: analysis.window.start, end_ns: analysis.window.end },
            devices: analysis.devices.iter().map(|device| device_figures(trace, device)).collect(),
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

fn device_figures(trace: &Trace, found: &DeviceAnalysis) -> Device {
    let device = trace.devices.get(found.device.index());
    let partition = found.partition;
    let span = partition.span();
    Device {
        device: device.map_or(found.device.0, |device| device.id),
        name: device.map_or_else(String::new, |device| device.name.clone()),
        span_ns: span,
        busy_ns: partition.busy(),
        compute_only_ns: partition.compute_only,
        overlapped_ns: partition.overlapped,
        exposed_copy_ns: partition.exposed_copy,
        exposed_comm_ns: found.exposed_comm_ns,
        idle_ns: partition.idle,
        idle_fraction: if span.0 > 0 { partition.idle.0 as f64 / span.0 as f64 } else { 0.0 },
        ops: found.ops,
        bubbles: bubble_figures(found),
        idle_by_root: found.idle_by_root.clone(),
        idle_by_segment: found.idle_by_segment.clone(),
        streams: found.streams.iter().filter_map(|figures| stream(trace, figures)).collect(),
    }
}

fn bubble_figures(found: &DeviceAnalysis) -> BubbleFigures {
    let Percentiles { p50, p95, max } = found.bubble_lengths;
    let bucket = |bucket: &analysis::HistogramBucket| HistogramBucket {
        from_ns: bucket.from,
        to_ns: bucket.to,
        count: bucket.count,
        total_ns: bucket.total,
    };
    BubbleFigures {
        count: found.bubbles.len() as u64,
        p50_ns: p50,
        p95_ns: p95,
        max_ns: max,
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
    for thread in &trace.threads {
        if let Some(process) = processes.get_mut(thread.process.index()) {
            process.threads.push(Thread {
                tid: thread.tid,
                name: thread.name.clone(),
                calls: u64::from(thread.calls.end.saturating_sub(thread.calls.start)),
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
