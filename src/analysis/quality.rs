//! What the figures are worth.

use rustc_hash::FxHashMap;

use crate::trace::{ApiKind, CallIdx, CaptureMode, Interval, Ns, OpKind, Side, Trace, Unrecorded};

use super::cause::Cause;
use super::launches::Launches;
use super::options::Constants;
use super::result::{DeviceAnalysis, Quality};
use super::waits::{Wait, Waits, has_unknown_default_stream, unknown_stream_orders};
use super::words::{counted, grouped, time};

/// Judges the analysis.
pub(super) fn quality(
    trace: &Trace,
    window: Interval,
    devices: &[DeviceAnalysis],
    launches: &Launches,
    waits: &Waits,
    constants: &Constants,
) -> Quality {
    let losses = trace.meta.losses;
    let ops: u64 = devices.iter().map(|device| device.ops).sum();
    let spans: Ns = devices.iter().map(|device| device.span.len()).sum();
    let root = |cause| devices.iter().filter_map(|device| device.idle_by_root.get(&cause)).copied().sum::<Ns>();
    let stalled = root(Cause::Stalled);
    let over =
        |part: u64, whole: u64, percent: u64| part > 0 && part.saturating_mul(100) > whole.saturating_mul(percent);

    let mut reasons = Vec::new();
    let mut say = |wrong: bool, sentence: &dyn Fn() -> String| {
        if wrong {
            reasons.push(sentence());
        }
    };
    let gpu_not_captured = devices.is_empty() && launches.figures.count > 0;
    say(gpu_not_captured, &|| {
        format!(
            "GPU activity not captured: {} and no device work in the window",
            counted(launches.figures.count, "launch", "launches")
        )
    });
    for (number, one, many, what) in [
        (losses.dropped_records, "record was", "records were", "dropped while recording"),
        (losses.ops_without_time, "op has", "ops have", "no times"),
        (losses.unreadable_records, "record", "records", "could not be read"),
        (losses.impossible_times, "record has", "records have", "impossible times"),
    ] {
        say(number > 0, &|| format!("{} {what}", counted(number, one, many)));
    }
    say(losses.held_buffers > 0, &|| {
        let buffers = counted(losses.held_buffers, "buffer of records was", "buffers of records were");
        format!("{buffers} not given back by CUPTI before the end: how many records that is cannot be known")
    });
    let lost = launches.without_ops.saturating_sub(launches.at_the_end);
    say(!gpu_not_captured && over(lost, launches.figures.count, constants.missing_percent), &|| {
        let of = counted(launches.figures.count, "launch", "launches");
        let captured = match launches.perhaps_captured {
            0 => String::new(),
            some => format!(
                "; {} made during a stream capture of which the trace has only one end, and may have been captured",
                counted(some, "was", "were")
            ),
        };
        format!("{} of {of} {} no device work in the trace{captured}", grouped(lost), has(lost))
    });
    // A spool is in the order of time, so that what is missing lies behind its end.
    let torn = losses.is_damaged() && trace.meta.source.format != "bubcap";
    say(torn, &|| "the file is damaged, and device work may be missing anywhere".to_owned());
    let stalls = over(stalled.0.unsigned_abs(), spans.0.unsigned_abs(), constants.stalled_percent);
    let others = trace.meta.unrecorded.iter().filter(|process| matters(trace, process, devices));
    let others: Vec<String> = others.map(|process| unrecorded(trace, process)).collect();
    say(stalls, &|| {
        // Inside a container nobody may be able to tell.
        let unnamed =
            if others.is_empty() { ", such as another process on the GPU (`nvidia-smi` may name it)" } else { "" };
        format!("{} of idle time comes from something that was not recorded{unnamed}", time(stalled))
    });
    reasons.extend(others);

    let mut warnings = trace.meta.warnings.clone();
    let mut warn = |wrong: bool, sentence: &dyn Fn() -> String| {
        if wrong {
            warnings.push(sentence());
        }
    };
    warn(over(launches.orphans, ops, constants.missing_percent), &|| {
        let of = counted(ops, "op", "ops");
        let (orphans, has) = (grouped(launches.orphans), has(launches.orphans));
        format!("{orphans} of {of} {has} no launch in the trace: idle time before has no cause")
    });
    warn(!gpu_not_captured && launches.at_the_end > 0, &|| {
        let last = match launches.at_the_end {
            1 => "launch".to_owned(),
            many => format!("{} launches", grouped(many)),
        };
        let captured = match (launches.perhaps_captured_at_the_end, launches.at_the_end) {
            (false, _) => "",
            (true, 1) => ", or while a stream capture took it",
            (true, _) => ", or while a stream capture took some of them",
        };
        format!("the recording ended before the work of the last {last} ran{captured}")
    });
    warn(launches.figures.negative_latency > 0, &|| {
        let worst = launches.figures.worst_negative_latency;
        let ops = counted(launches.figures.negative_latency, "op starts before its", "ops start before their");
        format!("{ops} launch, by up to {}", time(-worst))
    });
    warn(losses.unfinished_ops > 0, &|| {
        format!("{} still running at the end", counted(losses.unfinished_ops, "op was", "ops were"))
    });
    warn(losses.duplicate_records > 0, &|| {
        let records = counted(losses.duplicate_records, "record was", "records were");
        format!("{records} in the source more than once: each was counted once")
    });
    warn(losses.cut_bytes > 0, &|| {
        format!("the source was cut: {} after its last whole record", counted(losses.cut_bytes, "byte", "bytes"))
    });
    let unknown = unknown_stream_orders(trace);
    warn(unknown > 0, &|| {
        let calls = counted(unknown, "call makes a stream", "calls make streams");
        let out = match trace.meta.source.format.as_str() {
            "kineto" => " (PyTorch's profiler records it with _ExperimentalConfig(enable_cuda_sync_events=True))",
            _ => "",
        };
        format!(
            "{calls} wait for another, and the source does not record for what{out}: what a graph, or streams that do \
             not wait, would gain is not told"
        )
    });
    warn(has_unknown_default_stream(trace), &|| {
        "the source does not tell which streams serialise with the legacy default stream: what they gain without that is \
         not told, and other gains take them for independent"
            .to_owned()
    });
    let edges = uncounted_at_the_edges(trace, window, devices);
    warn(over(edges.0.unsigned_abs(), spans.0.unsigned_abs(), EDGES_PERCENT), &|| {
        format!(
            "the window begins or ends in idle time: {} of it, before the first op and after the last, do not count",
            time(edges)
        )
    });
    let opaque = trace.meta.capture_mode == CaptureMode::Graph || trace.ops.kind.contains(&OpKind::Graph);
    if let Some(rest) = &trace.rest {
        let began_before = |wait: &Wait| {
            let call = trace.calls.interval(wait.call);
            call.start < rest.reach.start && call.end > window.start
        };
        let run_ahead = match waits.calls().iter().any(began_before) {
            true => "; the run-ahead of calls that began before counts only work that was not over by then",
            false => "",
        };
        let [from, to] = [rest.reach.start, rest.reach.end].map(time);
        warn(true, &|| {
            format!(
                "only what lies between {from} and {to} was looked at: what is usual is taken from there{run_ahead}"
            )
        });
    }
    warn(opaque, &|| "graph launches were recorded whole: idle time inside them is not seen".to_owned());

    Quality {
        idle_reliable: reasons.is_empty(),
        reasons,
        gpu_not_captured,
        losses,
        orphan_ops: launches.orphans,
        launches_without_ops: launches.without_ops,
        negative_latency: launches.figures.negative_latency,
        graph_ops: launches.graph_ops,
        graph_launch_idle: idle_in_graph_launches(trace, devices),
        profiler: profiler_inside_bubbles(trace, window, devices),
        stalled,
        capture_mode: trace.meta.capture_mode,
        warnings,
    }
}

/// The verb for so many.
const fn has(number: u64) -> &'static str {
    if number == 1 { "has" } else { "have" }
}

/// Idle time at the edges of a window is worth a word from this share of the span on.
const EDGES_PERCENT: u64 = 5;

/// How long the devices stood idle inside the window before their first op in it and after their last, where they had
/// work before and after the window.
fn uncounted_at_the_edges(trace: &Trace, window: Interval, devices: &[DeviceAnalysis]) -> Ns {
    let mut sum = Ns::ZERO;
    for device in devices {
        let ops = || trace.ops.indices().filter(|&op| trace.op_device(op) == device.device);
        let elsewhere = |side| trace.rest.as_deref().is_some_and(|rest| rest.worked(device.device, side));
        let before = || elsewhere(Side::Before) || ops().any(|op| trace.ops.start[op.index()] < window.start);
        let after = || elsewhere(Side::After) || ops().any(|op| trace.ops.end[op.index()] > window.end);
        if window.start > Ns::ZERO && before() {
            sum += (device.span.start - window.start).max_zero();
        }
        if window.end < trace.end && after() {
            sum += (window.end - device.span.end).max_zero();
        }
    }
    sum
}

/// Whether a process may have worked while idle time is counted, as far as it is known when and where it worked.
fn matters(trace: &Trace, process: &Unrecorded, devices: &[DeviceAnalysis]) -> bool {
    let on = |device: &&DeviceAnalysis| {
        process.devices.is_empty() || process.devices.contains(&trace.devices[device.device.index()].id)
    };
    let during = |device: &DeviceAnalysis| process.times.iter().any(|times| times.overlap(device.span) > Ns::ZERO);
    process.times.is_empty() || devices.iter().filter(on).any(during)
}

/// Who else used CUDA, and where.
fn unrecorded(trace: &Trace, process: &Unrecorded) -> String {
    let who = match (process.pid, process.name.as_str()) {
        (Some(pid), "") => format!("process {pid}"),
        (Some(pid), name) => format!("process {pid} ({name})"),
        (None, "") => "a process that cannot be seen from here".to_owned(),
        (None, name) => format!("a process ({name})"),
    };
    let device = |id: &u32| match trace.devices.iter().find(|device| device.id == *id) {
        Some(device) if !device.name.is_empty() => format!("device {id} ({})", device.name),
        _ => format!("device {id}"),
    };
    let what = match process.devices.iter().map(device).collect::<Vec<_>>() {
        devices if devices.is_empty() => "used CUDA".to_owned(),
        devices => format!("was on {} too", devices.join(", ")),
    };
    let recorded = if process.partly { in_part(&process.times, trace.end) } else { "was not recorded".to_owned() };
    let why = process.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{who} {what} and {recorded}{why}")
}

/// In which part of the trace a process was recorded that was not `missing` from all of it.
fn in_part(missing: &[Interval], end: Ns) -> String {
    let from = missing.iter().find(|missing| missing.start <= Ns::ZERO).map(|missing| time(missing.end));
    let until = missing.iter().find(|missing| missing.end >= end).map(|missing| time(missing.start));
    if missing.iter().any(|missing| missing.start <= Ns::ZERO && missing.end >= end) {
        return "was not recorded at that time".to_owned();
    }
    match (from, until, missing.first()) {
        (Some(from), Some(until), _) => format!("was recorded only from {from} until {until}"),
        (Some(from), None, _) => format!("was recorded only from {from} on"),
        (None, Some(until), _) => format!("was recorded only until {until}"),
        (None, None, Some(times)) => format!("was not recorded from {} until {}", time(times.start), time(times.end)),
        (None, None, None) => "was not recorded all the time".to_owned(),
    }
}

/// Profiler overhead of any thread that lies inside bubbles, whether or not it explains them. Overlapping records
/// count once.
/// What recording adds to the launch of a graph for each of its ops, about: 0.7 to 1.9 µs on an H200 with CUPTI 13.0
/// (`docs/measurements/h200-record-overhead.md`).
pub(super) const RECORDING_A_GRAPH_OP: Ns = Ns(1_000);

/// Idle time inside the launches of graphs that end it, for each up to what recording adds.
fn idle_in_graph_launches(trace: &Trace, devices: &[DeviceAnalysis]) -> Ns {
    let mut inside = FxHashMap::<CallIdx, Ns>::default();
    for bubble in devices.iter().flat_map(|device| &device.bubbles) {
        if let Some(call) = bubble.launch.filter(|&call| trace.calls.kind[call.index()] == ApiKind::GraphLaunch) {
            // Most bubbles between the ops of a graph begin when its launch has returned.
            let overlap = bubble.interval.overlap(trace.calls.interval(call));
            if overlap > Ns::ZERO {
                *inside.entry(call).or_default() += overlap;
            }
        }
    }
    let added = |call| {
        let nodes = trace.call_ops(call).iter().filter(|op| trace.ops.kind[op.index()] != OpKind::Graph).count();
        Ns(RECORDING_A_GRAPH_OP.0.saturating_mul(i64::try_from(nodes).unwrap_or(i64::MAX)))
    };
    inside.into_iter().map(|(call, idle)| idle.min(added(call))).sum()
}

fn profiler_inside_bubbles(trace: &Trace, window: Interval, devices: &[DeviceAnalysis]) -> Ns {
    let mut union: Vec<Interval> = Vec::new();
    for overhead in trace.overheads.iter().filter(|overhead| overhead.kind.is_profiler()) {
        let interval = overhead.interval.intersect(window);
        match union.last_mut() {
            _ if interval.is_empty() => {}
            Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
            _ => union.push(interval),
        }
    }
    let inside = |device: &DeviceAnalysis| -> Ns {
        let bubbles = &device.bubbles;
        union
            .iter()
            .flat_map(|part| {
                let first = bubbles.partition_point(|bubble| bubble.interval.end <= part.start);
                let met = bubbles[first..].iter().take_while(|bubble| bubble.interval.start < part.end);
                met.map(|bubble| bubble.interval.overlap(*part))
            })
            .sum()
    };
    devices.iter().map(inside).sum()
}
