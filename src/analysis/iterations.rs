//! Finds the iterations of a program: the ranges that count them, or the sequence of launches that repeats.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

use crate::trace::{CallIdx, Interval, Ns, ProcessIdx, RangeKind, ThreadIdx, Trace};

use super::bubbles::Host;
use super::result::{DeviceAnalysis, IterationSource, Iterations};
use super::stats;
use super::sync_cost::{idle_within, site_name};

/// Fewer repetitions are no iterations.
const MIN_ITERATIONS: usize = 3;
/// Iterations must make up this share of the window's time or launches, in percent.
const MIN_COVERAGE: usize = 50;
/// A period must repeat at this share of the places looked at, in percent.
const MIN_MATCHES: usize = 90;
/// The period is looked for in so many of the last steps: where the program has settled.
const SAMPLE: usize = 1 << 16;
/// So many periods are tried, the most promising first.
const MAX_CANDIDATES: usize = 24;

/// The iterations in `window`, if the program has any.
pub(super) fn iterations(
    trace: &Trace,
    window: Interval,
    devices: &[DeviceAnalysis],
    host: &Host,
) -> Option<Iterations> {
    let device = devices.iter().max_by_key(|device| (device.ops, std::cmp::Reverse(device.device)))?;
    let busiest = device.streams.iter().max_by_key(|lane| (lane.ops, std::cmp::Reverse(lane.stream)))?;
    let process = trace.streams[busiest.stream.index()].process;
    let (source, intervals) = counted_ranges(trace, window, process, device.span)
        .or_else(|| repeating_launches(trace, window, process, host))?;
    let lengths = |intervals: &[Interval]| -> Vec<Ns> { intervals.iter().map(|interval| interval.len()).collect() };
    let mut all = lengths(&intervals);
    let usual = stats::low_median(&mut all)?;
    let warmup = intervals.iter().take_while(|interval| interval.len().0.saturating_mul(2) > usual.0.saturating_mul(3));
    let warmup = warmup.count().min(intervals.len() - 1);
    let settled = &intervals[warmup..];
    let mut lengths = lengths(settled);
    let mut idle: Vec<Ns> = settled.iter().map(|&interval| idle_within(device, interval)).collect();
    let mut starts: Vec<Ns> = host
        .waits
        .calls()
        .iter()
        .filter(|wait| trace.call_process(wait.call) == process)
        .map(|wait| trace.calls.start[wait.call.index()])
        .collect();
    starts.sort();
    let before = |moment: Ns| starts.partition_point(|&start| start < moment) as u64;
    let mut blocking: Vec<u64> = settled.iter().map(|interval| before(interval.end) - before(interval.start)).collect();
    Some(Iterations {
        source,
        count: settled.len() as u64,
        warmup: warmup as u64,
        period: stats::percentiles(&mut lengths),
        jitter: stats::rank(&mut lengths, 95).unwrap_or_default() - stats::rank(&mut lengths, 5).unwrap_or_default(),
        idle_p50: stats::low_median(&mut idle).unwrap_or_default(),
        blocking_calls_p50: stats::low_median(&mut blocking).unwrap_or(0),
        intervals,
    })
}

/// Ranges of one thread that share a name but for a counting number and make up most of the device's span.
fn counted_ranges(
    trace: &Trace,
    window: Interval,
    process: ProcessIdx,
    span: Interval,
) -> Option<(IterationSource, Vec<Interval>)> {
    let mut groups: FxHashMap<(ThreadIdx, &str), Vec<Interval>> = FxHashMap::default();
    for range in &trace.ranges {
        let name = trace.names.get(range.name);
        let stem = site_name(name);
        let inside = range.interval.start >= window.start && range.interval.end <= window.end;
        let counts = matches!(range.kind, RangeKind::Annotation | RangeKind::Nvtx) && stem.len() < name.len();
        if inside && counts && trace.threads[range.thread.index()].process == process {
            groups.entry((range.thread, stem)).or_default().push(range.interval);
        }
    }
    let covered = |intervals: &[Interval]| intervals.iter().map(|interval| interval.len()).sum::<Ns>();
    let (&(_, stem), intervals) = groups
        .iter()
        .filter(|(_, intervals)| {
            let apart = intervals.windows(2).all(|pair| pair[0].end <= pair[1].start);
            let enough = covered(intervals).0 / 100 >= span.len().0 / 10_000 * MIN_COVERAGE as i64;
            intervals.len() >= MIN_ITERATIONS && apart && enough
        })
        .max_by_key(|(key, intervals)| (covered(intervals), std::cmp::Reverse(intervals.len()), **key))?;
    // The next one's start ends an iteration, if it follows soon.
    let mut intervals = intervals.clone();
    for index in 1..intervals.len() {
        let next = intervals[index].start;
        let last = &mut intervals[index - 1];
        if next - last.end <= last.len() {
            last.end = next;
        }
    }
    Some((IterationSource::Range(stem.to_owned()), intervals))
}

/// One launching or blocking call and what it did, as a number that equal steps share.
struct Step {
    interval: Interval,
    call: CallIdx,
    what: u64,
}

fn hash(parts: impl IntoIterator<Item = u64>) -> u64 {
    let mut hasher = FxHasher::default();
    parts.into_iter().for_each(|part| hasher.write_u64(part));
    hasher.finish()
}

/// The launching and blocking calls of a process in order of time. Spinning queries are left out: their number varies.
fn steps(trace: &Trace, window: Interval, process: ProcessIdx, host: &Host) -> Vec<Step> {
    let mut steps = Vec::new();
    for thread in trace.threads.iter().filter(|thread| thread.process == process) {
        for call in thread.calls.clone().map(CallIdx) {
            let interval = trace.calls.interval(call);
            let kind = trace.calls.kind[call.index()];
            let ops = trace.call_ops(call);
            let blocks = host.classes.drain(call).is_some() && !kind.queries();
            if window.contains(interval.start) && (!ops.is_empty() || blocks) {
                let op_name = ops.first().map_or(u64::MAX, |op| u64::from(trace.ops.name[op.index()].0));
                steps.push(Step { interval, call, what: hash([kind as u64, op_name]) });
            }
        }
    }
    steps.sort_by_key(|step| (step.interval.start, step.call));
    steps
}

/// The intervals of the repetitions of the launch sequence.
fn repeating_launches(
    trace: &Trace,
    window: Interval,
    process: ProcessIdx,
    host: &Host,
) -> Option<(IterationSource, Vec<Interval>)> {
    let steps = steps(trace, window, process, host);
    let what: Vec<u64> = steps.iter().map(|step| step.what).collect();
    let period = period(&what)?;
    let starts = repetitions(&steps, &what, period);
    if starts.len() < MIN_ITERATIONS || starts.len() * period * 100 < what.len() * MIN_COVERAGE {
        return None;
    }
    let end_of_work = |step: &Step| {
        let ops = trace.call_ops(step.call).iter().map(|op| trace.ops.end[op.index()]);
        ops.fold(step.interval.end, Ns::max)
    };
    let intervals = starts.iter().enumerate().map(|(index, &from)| {
        let end = match starts.get(index + 1) {
            Some(&next) if next == from + period => steps[next].interval.start,
            _ => steps[from..from + period].iter().map(end_of_work).max().unwrap_or_default(),
        };
        Interval::new(steps[from].interval.start, end)
    });
    Some((IterationSource::LaunchSequence { launches: period }, intervals.collect()))
}

/// After how many steps the sequence repeats.
///
/// Within an iteration parts may repeat too, such as layers; they differ at the iteration's edges. So the period is the
/// shortest among those after which nearly everything repeats. Candidates are the distances at which short runs of
/// steps return.
fn period(what: &[u64]) -> Option<usize> {
    let sample = &what[what.len().saturating_sub(SAMPLE)..];
    let mut votes: FxHashMap<usize, usize> = FxHashMap::default();
    for run in [1, 4, 16] {
        let mut last: FxHashMap<u64, usize> = FxHashMap::default();
        for (at, window) in sample.windows(run).enumerate() {
            if let Some(before) = last.insert(hash(window.iter().copied()), at) {
                // Longer distances come up less often.
                *votes.entry(at - before).or_default() += at - before;
            }
        }
    }
    let mut candidates: Vec<(usize, usize)> = votes.into_iter().map(|(distance, votes)| (votes, distance)).collect();
    candidates.sort_unstable_by(|a, b| b.cmp(a));
    candidates.truncate(MAX_CANDIDATES);
    let matches = |distance: usize| {
        let compared = sample.len() - distance;
        let same = sample[distance..].iter().zip(sample).filter(|(a, b)| a == b).count();
        (compared >= distance * (MIN_ITERATIONS - 1)).then_some((same, compared))
    };
    let rated: Vec<(usize, usize)> = candidates
        .iter()
        .filter_map(|&(_, distance)| {
            let (same, compared) = matches(distance)?;
            // In parts of ten thousand, so that a few odd iterations do not make twice the period look better.
            Some((same * 10_000 / compared.max(1), distance))
        })
        .filter(|&(share, _)| share >= MIN_MATCHES * 100)
        .collect();
    let best = rated.iter().map(|&(share, _)| share).max()?;
    rated.iter().filter(|&&(share, _)| share + 100 >= best).map(|&(_, distance)| distance).min()
}

/// Where the repetitions begin: each at the step before which the host usually pauses longest.
fn repetitions(steps: &[Step], what: &[u64], period: usize) -> Vec<usize> {
    // The longest run in which every step equals the one a period ahead.
    let (mut longest, mut from) = (0..0, 0);
    for at in period..=what.len() {
        if at == what.len() || what[at] != what[at - period] {
            let run = from..at;
            if run.len() > longest.len() {
                longest = run;
            }
            from = (at + 1).saturating_sub(period);
        }
    }
    if longest.len() < MIN_ITERATIONS * period {
        return Vec::new();
    }
    let mut pauses = vec![0i64; period];
    for at in longest.clone().skip(1).take(period * 1_000) {
        let pause = (steps[at].interval.start - steps[at - 1].interval.end).max_zero();
        let pauses = &mut pauses[(at - longest.start) % period];
        *pauses = pauses.saturating_add(pause.0);
    }
    let phase = (0..period).max_by_key(|&phase| (pauses[phase], std::cmp::Reverse(phase))).unwrap_or(0);
    let model = &what[longest.start + phase..longest.start + phase + period];
    // Compare hashes of whole repetitions, which roll along the sequence.
    let base = 0x1000_0000_01b3_u64;
    let power = (0..period).fold(1u64, |power, _| power.wrapping_mul(base));
    let roll = |hash: u64, step: u64| hash.wrapping_mul(base).wrapping_add(step | 1);
    let wanted = model.iter().fold(0, |hash, &step| roll(hash, step));
    let mut starts: Vec<usize> = Vec::new();
    let mut rolling = 0u64;
    for at in 0..what.len() {
        rolling = roll(rolling, what[at]);
        if at >= period {
            rolling = rolling.wrapping_sub(power.wrapping_mul(what[at - period] | 1));
        }
        let from = (at + 1).wrapping_sub(period);
        let free = starts.last().is_none_or(|&last| from >= last + period);
        if at + 1 >= period && rolling == wanted && free && what[from..=at] == *model {
            starts.push(from);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_that_of_the_whole_iteration() {
        // Embedding, twelve equal layers of three, head, optimiser.
        let mut iteration = vec![1];
        (0..12).for_each(|_| iteration.extend([2, 3, 4]));
        iteration.extend([5, 6]);
        let mut sequence = vec![9, 9, 8];
        (0..20).for_each(|_| sequence.extend(&iteration));
        sequence.extend([7, 7]);
        assert_eq!(period(&sequence), Some(iteration.len()));
        assert_eq!(period(&[1, 2, 3, 4, 5, 6, 7]), None);
        assert_eq!(period(&[]), None);
        assert_eq!(period(&[1; 40]), Some(1));
    }
}
