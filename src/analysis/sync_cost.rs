//! What blocking calls did to the devices.

use rustc_hash::FxHashMap;

use crate::progress::{Cancelled, Until};
use crate::trace::{CallIdx, DeviceIdx, Interval, NameId, Ns, ProcessIdx, RangeIdx, StreamIdx, Trace};

use super::bubbles::Host;
use super::cause::Cause;
use super::host::RangeReader;
use super::intervals::clip;
use super::near::Places;
use super::result::{Bubble, DeviceAnalysis, RunAheadFigures, SyncCallRow};
use super::run_ahead::Lane;
use super::stats;
use super::waits::{Target, Wait};

/// One row per API and site of the calls that block, and of those that drained a device or explain a bubble without: calls
/// that allocate, and copies that the host makes itself.
///
/// # Errors
/// When it is over before.
pub(super) fn rows(
    trace: &Trace,
    window: Interval,
    devices: &[DeviceAnalysis],
    host: &Host,
    until: Until<'_>,
) -> Result<Vec<SyncCallRow>, Cancelled> {
    let mut keys = Keys::new(trace, host);
    let mut rows: Vec<Row> = Vec::new();
    // The row of each call, in the order of the call table.
    let mut members: Vec<(CallIdx, u32)> = Vec::new();
    let bubbles = || devices.iter().flat_map(|device| &device.bubbles);
    let mut calls: Vec<CallIdx> = host.drainers.all().chain(bubbles().filter_map(to_blame)).collect();
    calls.sort_unstable();
    calls.dedup();
    for call in calls {
        if clip(trace.calls.interval(call), window).is_some() {
            let row = keys.row(call, &mut rows);
            members.push((call, row));
        }
    }
    until.check()?;
    let busy = BusyTime::new(trace, devices);
    let waits = host.waits.calls();
    let places = Places::new(1);
    for (turn, &(call, row)) in members.iter().enumerate() {
        if until.is_over_at(turn) {
            return Err(Cancelled);
        }
        let wait = waits.get(places.partition_point(0, waits, |wait| wait.call < call));
        rows[row as usize].add_call(trace, call, window, wait.filter(|wait| wait.call == call), &busy);
    }
    // The calls of one thread come in order of time.
    let places = Places::new(trace.threads.len());
    let row_of = |call: CallIdx| {
        let thread = trace.calls.thread[call.index()];
        let at = places.partition_point(thread.index(), &members, |&(member, _)| member < call);
        members.get(at).filter(|&&(member, _)| member == call).map(|&(_, row)| row as usize)
    };
    for (turn, bubble) in bubbles().enumerate() {
        if until.is_over_at(turn) {
            return Err(Cancelled);
        }
        let length = bubble.interval.len();
        if let Some(row) = bubble.drained_by.and_then(|drain| row_of(drain.call)) {
            rows[row].figures.bubbles_drained += length;
            rows[row].figures.drained_count += 1;
        }
        if let Some(row) = to_blame(bubble).and_then(row_of) {
            rows[row].figures.bubbles_caused += length;
            rows[row].figures.caused_count += 1;
        }
        if let Some(row) = bubble.refill_of.and_then(row_of) {
            rows[row].figures.refill += length;
        }
    }
    until.check()?;
    add_run_ahead(trace, &members, &mut rows, host);
    until.check()?;
    let mut rows: Vec<SyncCallRow> = rows
        .into_iter()
        .filter(|row| row.blocks || row.figures.drained_count + row.figures.caused_count > 0)
        .map(Row::finish)
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &SyncCallRow| std::cmp::Reverse((row.bubbles_drained, row.bubbles_caused, row.blocked));
        key(a).cmp(&key(b)).then_with(|| (&a.api, &a.site).cmp(&(&b.api, &b.site)))
    });
    Ok(rows)
}

/// The call that a bubble is to blame on, if it has a price here.
fn to_blame(bubble: &Bubble) -> Option<CallIdx> {
    let priced = matches!(bubble.root.cause, Cause::Sync | Cause::BlockingCopy | Cause::Allocation);
    bubble.root.call.filter(|_| priced)
}

/// A row in the making.
struct Row {
    figures: SyncCallRow,
    /// Whether any of its calls is known to block.
    blocks: bool,
    lengths: Vec<Ns>,
    ahead_work: Vec<Ns>,
    ahead_ops: Vec<u64>,
}

impl Row {
    fn new(api: String, site: Option<String>) -> Self {
        let figures = SyncCallRow {
            api,
            site,
            call_list: Vec::new(),
            blocked: Ns::ZERO,
            useful_wait: Ns::ZERO,
            idle_while_blocked: Ns::ZERO,
            bubbles_drained: Ns::ZERO,
            drained_count: 0,
            bubbles_caused: Ns::ZERO,
            caused_count: 0,
            refill: Ns::ZERO,
            recoverable: None,
            lengths: super::result::Percentiles::default(),
            run_ahead: RunAheadFigures::default(),
        };
        Self { figures, blocks: false, lengths: Vec::new(), ahead_work: Vec::new(), ahead_ops: Vec::new() }
    }

    fn add_call(&mut self, trace: &Trace, call: CallIdx, window: Interval, wait: Option<&Wait>, busy: &BusyTime<'_>) {
        let interval = trace.calls.interval(call);
        let inside = interval.intersect(window);
        let process = trace.call_process(call);
        let waited = match wait.and_then(|wait| target_device(trace, wait.target)) {
            Some(device) => busy.of_device(device, inside),
            None => busy.of_process(process, inside),
        };
        self.blocks |= wait.is_some();
        self.figures.call_list.push(call);
        self.figures.blocked += inside.len();
        self.figures.useful_wait += waited.busy;
        self.figures.idle_while_blocked += waited.idle;
        self.lengths.push(interval.len());
    }

    fn finish(mut self) -> SyncCallRow {
        self.figures.lengths = stats::percentiles(&mut self.lengths);
        self.figures.run_ahead = RunAheadFigures {
            work: stats::percentiles(&mut self.ahead_work),
            ops_p50: stats::low_median(&mut self.ahead_ops).unwrap_or(0),
        };
        self.figures
    }
}

/// The device whose work a call waited for; `None` when it may be any of its process's.
fn target_device(trace: &Trace, target: Target) -> Option<DeviceIdx> {
    match target {
        Target::Stream(stream) => Some(trace.streams[stream.index()].device),
        Target::DefaultStream(context) | Target::Context(context) => Some(trace.contexts[context.index()].device),
        Target::Op(op) | Target::OpStart(op) => Some(trace.op_device(op)),
        Target::Process(_) | Target::Nothing => None,
    }
}

/// Finds the row of each call.
struct Keys<'a> {
    trace: &'a Trace,
    ranges: RangeReader<'a>,
    /// Row by API name and by the name of the range around; both as recorded.
    by_ids: FxHashMap<(NameId, Option<NameId>), u32>,
    by_names: FxHashMap<(String, Option<String>), u32>,
}

impl<'a> Keys<'a> {
    fn new(trace: &'a Trace, host: &'a Host) -> Self {
        Self { trace, ranges: host.ranges.reader(trace), by_ids: FxHashMap::default(), by_names: FxHashMap::default() }
    }

    fn row(&mut self, call: CallIdx, rows: &mut Vec<Row>) -> u32 {
        let trace = self.trace;
        let thread = trace.calls.thread[call.index()];
        let range = self.ranges.innermost(trace, thread, trace.calls.start[call.index()]);
        let range_name = range.map(|range: RangeIdx| trace.ranges[range.index()].name);
        let by_names = &mut self.by_names;
        *self.by_ids.entry((trace.calls.name[call.index()], range_name)).or_insert_with(|| {
            let api = trace.call_name(call).to_owned();
            let site = range_name.map(|name| site_name(trace.names.get(name)).to_owned());
            *by_names.entry((api.clone(), site.clone())).or_insert_with(|| {
                rows.push(Row::new(api, site));
                rows.len() as u32 - 1
            })
        })
    }
}

/// A range's name without the number that counts its repetitions: `ProfilerStep#3`, `iteration 17`, `step_4`.
pub fn site_name(name: &str) -> &str {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let counted = stem.len() < name.len() && stem.ends_with(['#', ' ', '_', ':', '=', '-', '/', '.', '[', '(']);
    let stem = stem.trim_end_matches(['#', ' ', '_', ':', '=', '-', '/', '.', '[', '(']);
    if counted && !stem.is_empty() { stem } else { name }
}

/// Idle time of a device's span inside `within`.
pub(super) fn idle_within(device: &DeviceAnalysis, within: Interval) -> Ns {
    let bubbles = &device.bubbles;
    let first = bubbles.partition_point(|bubble| bubble.interval.end <= within.start);
    let met = bubbles[first..].iter().take_while(|bubble| bubble.interval.start < within.end);
    met.map(|bubble| bubble.interval.overlap(within)).sum()
}

/// What devices did in some time. The time outside their spans is neither.
#[derive(Clone, Copy, Debug, Default)]
struct Did {
    /// Any of them was busy.
    busy: Ns,
    /// None of them was busy, and the time lies in the span of one.
    idle: Ns,
}

/// When devices were busy.
struct BusyTime<'a> {
    devices: Vec<Option<DeviceBusy<'a>>>,
    /// The devices on which each process has ops.
    of_process: Vec<Vec<DeviceIdx>>,
}

struct DeviceBusy<'a> {
    analysis: &'a DeviceAnalysis,
    /// Searches for a call's start, and for its end.
    places: Places,
    /// Idle time before each bubble, and of all of them.
    idle_before: Vec<Ns>,
}

impl<'a> BusyTime<'a> {
    fn new(trace: &Trace, analyses: &'a [DeviceAnalysis]) -> Self {
        let mut devices: Vec<Option<DeviceBusy<'a>>> = Vec::new();
        devices.resize_with(trace.devices.len(), || None);
        let mut of_process = vec![Vec::new(); trace.processes.len()];
        for analysis in analyses {
            let mut idle = Ns::ZERO;
            let idle_before = std::iter::once(Ns::ZERO).chain(analysis.bubbles.iter().map(|bubble| {
                idle += bubble.interval.len();
                idle
            }));
            let idle_before = idle_before.collect();
            devices[analysis.device.index()] = Some(DeviceBusy { analysis, places: Places::new(2), idle_before });
            for lane in &analysis.streams {
                let process: &mut Vec<DeviceIdx> = &mut of_process[trace.streams[lane.stream.index()].process.index()];
                if process.last() != Some(&analysis.device) {
                    process.push(analysis.device);
                }
            }
        }
        Self { devices, of_process }
    }

    /// What the device did in `within`.
    fn of_device(&self, device: DeviceIdx, within: Interval) -> Did {
        self.devices[device.index()].as_ref().map_or(Did::default(), |busy| busy.within(within))
    }

    /// What the devices of the process did in `within`.
    fn of_process(&self, process: ProcessIdx, within: Interval) -> Did {
        match self.of_process[process.index()][..] {
            [] => Did::default(),
            [device] => self.of_device(device, within),
            ref devices => {
                let devices = || devices.iter().filter_map(|device| self.devices[device.index()].as_ref());
                let mut parts: Vec<Interval> = devices().flat_map(|busy| busy.parts(within)).collect();
                let mut spans: Vec<Interval> = devices().map(|busy| within.intersect(busy.analysis.span)).collect();
                let busy = covered(&mut parts);
                Did { busy, idle: covered(&mut spans) - busy }
            }
        }
    }
}

/// The time that intervals cover together.
pub(super) fn covered(parts: &mut [Interval]) -> Ns {
    parts.sort_unstable();
    let mut reach = Ns::MIN;
    let mut total = Ns::ZERO;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        total += (part.end - part.start.max(reach)).max_zero();
        reach = reach.max(part.end);
    }
    total
}

impl DeviceBusy<'_> {
    fn within(&self, within: Interval) -> Did {
        let inside = within.intersect(self.analysis.span);
        if inside.is_empty() {
            return Did::default();
        }
        let idle = self.idle_until(1, inside.end) - self.idle_until(0, inside.start);
        Did { busy: inside.len() - idle, idle }
    }

    /// Idle time of the span up to `moment`.
    fn idle_until(&self, place: usize, moment: Ns) -> Ns {
        let bubbles = &self.analysis.bubbles;
        let begun = self.places.partition_point(place, bubbles, |bubble| bubble.interval.start < moment);
        let Some(last) = begun.checked_sub(1) else { return Ns::ZERO };
        self.idle_before[last] + bubbles[last].interval.end.min(moment) - bubbles[last].interval.start
    }

    /// The busy parts of `within`, in order of time.
    fn parts(&self, within: Interval) -> Vec<Interval> {
        let inside = within.intersect(self.analysis.span);
        let bubbles = &self.analysis.bubbles;
        let first = bubbles.partition_point(|bubble| bubble.interval.end <= inside.start);
        let mut parts = Vec::new();
        let mut from = inside.start;
        for bubble in bubbles[first..].iter().take_while(|bubble| bubble.interval.start < inside.end) {
            parts.push(Interval::new(from, bubble.interval.start));
            from = bubble.interval.end;
        }
        parts.push(Interval::new(from, inside.end));
        parts.retain(|part| !part.is_empty());
        parts
    }
}

/// Adds the work queued on the process's streams when each call began.
fn add_run_ahead(trace: &Trace, members: &[(CallIdx, u32)], rows: &mut [Row], host: &Host) {
    let mut by_time: Vec<(ProcessIdx, Ns, u32)> = members
        .iter()
        .filter(|(call, _)| host.classes.blocks(*call))
        .map(|&(call, row)| (trace.call_process(call), trace.calls.start[call.index()], row))
        .collect();
    by_time.sort();
    for calls in by_time.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(process, ..)) = calls.first() else { continue };
        let streams = trace.streams.iter().enumerate().filter(|(_, stream)| stream.process == process);
        let mut lanes: Vec<Lane<'_>> =
            streams.map(|(index, _)| Lane::new(trace, StreamIdx::from_index(index))).collect();
        for &(_, moment, row) in calls {
            let (mut ops, mut work) = (0, Ns::ZERO);
            for lane in &mut lanes {
                let ahead = lane.at(moment);
                ops += ahead.ops;
                work += ahead.work;
            }
            rows[row as usize].ahead_ops.push(ops);
            rows[row as usize].ahead_work.push(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::site_name;

    #[test]
    fn a_counting_number_is_cut_off() {
        for (name, site) in [
            ("ProfilerStep#3", "ProfilerStep"),
            ("iteration 17", "iteration"),
            ("step_4", "step"),
            ("aten::item", "aten::item"),
            ("aten::conv2d", "aten::conv2d"),
            ("fp16", "fp16"),
            ("12", "12"),
            ("#12", "#12"),
            ("", ""),
        ] {
            assert_eq!(site_name(name), site, "{name}");
        }
    }
}
