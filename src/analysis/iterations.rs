//! Finds the iterations of a program: the ranges that count them, or the sequence of launches that repeats.

use rustc_hash::{FxHashMap, FxHasher};
use std::cmp::Reverse;
use std::hash::Hasher;
use std::ops::Range;

use crate::trace::{CallIdx, Interval, Ns, ProcessIdx, RangeKind, ThreadIdx, Trace};

use super::bubbles::Host;
use super::intervals::LaneMerge;
use super::result::{DeviceAnalysis, IterationSource, Iterations};
use super::stats;
use super::sync_cost::{idle_within, site_name};

/// Fewer repetitions are no iterations.
const MIN_ITERATIONS: usize = 3;
/// Iterations must make up this share of the window's time or launches, in percent.
const MIN_COVERAGE: usize = 50;
/// The same for ranges that share a name without a number: `step` may be that, and `layer` or `epoch` as well.
const MIN_COVERAGE_BY_NAME: usize = 80;
/// A period must repeat at this share of the places looked at, in percent.
const MIN_MATCHES: usize = 90;
/// The period is looked for in so many of the last steps: where the program has settled.
const SAMPLE: usize = 1 << 16;
/// Iterations may overlap by so many percent of the time that they take together.
const MAX_OVERLAP: i128 = 5;
/// So many periods are tried, the most promising first.
const MAX_CANDIDATES: usize = 24;

/// One iteration as positions in the process's steps, and whether the next one follows at once.
struct Repetition {
    steps: Range<usize>,
    followed: bool,
}

/// The iterations in `window`, if the program has any.
///
/// Each lasts from its first op's start to the next one's, or to its last op's end: host time would tell how fast the
/// host enqueues, not how fast the program is.
pub(super) fn iterations(
    trace: &Trace,
    window: Interval,
    devices: &[DeviceAnalysis],
    host: &Host,
) -> Option<Iterations> {
    let device = devices.iter().max_by_key(|device| (device.ops, Reverse(device.device)))?;
    let busiest = device.streams.iter().max_by_key(|lane| (lane.ops, Reverse(lane.stream)))?;
    let process = trace.streams[busiest.stream.index()].process;
    let steps = steps(trace, window, process, host);
    let (source, repetitions) =
        counted_ranges(trace, window, process, &steps).or_else(|| repeating_launches(trace, window, &steps))?;
    let (intervals, blocking) = lay_out(trace, host, &steps, &repetitions);
    if intervals.len() < MIN_ITERATIONS || overlap(&intervals) {
        return None;
    }
    let lengths = |intervals: &[Interval]| -> Vec<Ns> { intervals.iter().map(|interval| interval.len()).collect() };
    let usual = stats::low_median(&mut lengths(&intervals))?;
    let slow = |interval: &&Interval| interval.len().0.saturating_mul(2) > usual.0.saturating_mul(3);
    let warmup = intervals.iter().take_while(slow).count().min(intervals.len() - 1);
    let settled = &intervals[warmup..];
    let mut lengths = lengths(settled);
    let mut idle: Vec<Ns> = settled.iter().map(|&interval| idle_within(device, interval)).collect();
    Some(Iterations {
        source,
        count: settled.len() as u64,
        warmup: warmup as u64,
        period: stats::percentiles(&mut lengths),
        jitter: stats::rank(&mut lengths, 95).unwrap_or_default() - stats::rank(&mut lengths, 5).unwrap_or_default(),
        idle_p50: stats::low_median(&mut idle).unwrap_or_default(),
        blocking_calls_p50: stats::low_median(&mut blocking[warmup..].to_vec()).unwrap_or(0),
        intervals,
    })
}

/// The device time of each repetition that has ops, and its number of blocking calls.
fn lay_out(trace: &Trace, host: &Host, steps: &[Step], repetitions: &[Repetition]) -> (Vec<Interval>, Vec<u64>) {
    let (mut intervals, mut blocking): (Vec<Interval>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut followed = false;
    for repetition in repetitions {
        let steps = &steps[repetition.steps.clone()];
        let ops = steps.iter().flat_map(|step| trace.call_ops(step.call)).map(|&op| trace.ops.interval(op));
        let hull = ops.reduce(|all, op| Interval::new(all.start.min(op.start), all.end.max(op.end)));
        let Some(hull) = hull else { continue };
        if let Some(last) = intervals.last_mut().filter(|last| followed && last.start <= hull.start) {
            last.end = hull.start;
        }
        followed = repetition.followed;
        intervals.push(hull);
        blocking.push(steps.iter().filter(|step| host.classes.blocks(step.call)).count() as u64);
    }
    (intervals, blocking)
}

/// Whether iterations run beside each other for more than a small part of their time, as on several streams: then how long
/// each takes does not tell how fast they follow each other.
fn overlap(intervals: &[Interval]) -> bool {
    let hull =
        intervals.iter().copied().reduce(|all, one| Interval::new(all.start.min(one.start), all.end.max(one.end)));
    let together: i128 = intervals.iter().map(|interval| i128::from(interval.len().0)).sum();
    hull.is_some_and(|hull| together * 100 > i128::from(hull.len().0) * (100 + MAX_OVERLAP))
}

/// Ranges of one thread that share a name, which best holds a counting number, and most of the steps lie in.
fn counted_ranges(
    trace: &Trace,
    window: Interval,
    process: ProcessIdx,
    steps: &[Step],
) -> Option<(IterationSource, Vec<Repetition>)> {
    let mut groups: FxHashMap<(bool, ThreadIdx, &str), Vec<Interval>> = FxHashMap::default();
    for range in &trace.ranges {
        let inside = range.interval.start >= window.start && range.interval.end <= window.end;
        let may_count = matches!(range.kind, RangeKind::Annotation | RangeKind::Nvtx);
        if inside && may_count && trace.threads[range.thread.index()].process == process {
            let name = trace.names.get(range.name);
            let stem = site_name(name);
            groups.entry((stem.len() < name.len(), range.thread, stem)).or_default().push(range.interval);
        }
    }
    let within = |range: &Interval| {
        let from = steps.partition_point(|step| trace.calls.start[step.call.index()] < range.start);
        from..steps.partition_point(|step| trace.calls.start[step.call.index()] < range.end).max(from)
    };
    let covered = |ranges: &[Interval]| ranges.iter().map(|range| within(range).len()).sum::<usize>();
    let enough = |counted: bool| if counted { MIN_COVERAGE } else { MIN_COVERAGE_BY_NAME };
    let (_, key) = groups
        .iter()
        .filter(|(_, ranges)| {
            let apart = ranges.windows(2).all(|pair| pair[0].end <= pair[1].start);
            ranges.len() >= MIN_ITERATIONS && apart
        })
        .map(|(&key, ranges)| ((key.0, covered(ranges), Reverse(ranges.len())), key))
        .filter(|&((counted, covered, _), _)| covered * 100 >= steps.len() * enough(counted))
        .max()?;
    let ranges = &groups[&key];
    let repetitions = ranges.iter().enumerate().map(|(index, range)| {
        let followed = ranges.get(index + 1).is_some_and(|next| next.start - range.end <= range.len());
        Repetition { steps: within(range), followed }
    });
    Some((IterationSource::Range(key.2.to_owned()), repetitions.collect()))
}

/// One launching or blocking call and what it did, as a number that equal steps share.
struct Step {
    call: CallIdx,
    what: u32,
}

fn hash(parts: impl IntoIterator<Item = u32>) -> u64 {
    let mut hasher = FxHasher::default();
    parts.into_iter().for_each(|part| hasher.write_u32(part));
    hasher.finish()
}

/// The launching and blocking calls of a process in order of time. Spinning queries are left out: their number varies.
fn steps(trace: &Trace, window: Interval, process: ProcessIdx, host: &Host) -> Vec<Step> {
    let threads = trace.threads.iter().filter(|thread| thread.process == process);
    let calls = LaneMerge::new(&trace.calls.start, threads.map(|thread| thread.calls.clone())).map(CallIdx);
    let inside = calls.filter(|call| window.contains(trace.calls.start[call.index()]));
    inside
        .filter_map(|call| {
            let kind = trace.calls.kind[call.index()];
            let ops = trace.call_ops(call);
            let blocks = || host.classes.drain(call).is_some() && !kind.queries();
            let op_name = ops.first().map_or(u32::MAX, |op| trace.ops.name[op.index()].0);
            (!ops.is_empty() || blocks()).then(|| Step { call, what: hash([kind as u32, op_name]) as u32 })
        })
        .collect()
}

/// The repetitions of the launch sequence.
fn repeating_launches(trace: &Trace, window: Interval, steps: &[Step]) -> Option<(IterationSource, Vec<Repetition>)> {
    let what: Vec<u32> = steps.iter().map(|step| step.what).collect();
    let period = period(&what)?;
    let starts = repetitions(trace, steps, &what, period);
    if starts.len() < MIN_ITERATIONS || starts.len() * period * 100 < what.len() * MIN_COVERAGE {
        return None;
    }
    let repetitions = starts.iter().enumerate().map(|(index, &from)| Repetition {
        steps: from..from + period,
        followed: starts.get(index + 1) == Some(&(from + period)),
    });
    let mut repetitions: Vec<Repetition> = repetitions.collect();
    let times = told_apart(trace, window, steps, &mut repetitions);
    Some((IterationSource::LaunchSequence { launches: period * times }, repetitions))
}

/// Joins repetitions to the iterations that the recording of a workload tells of; how many make one. An iteration may
/// repeat a sequence itself, which by the launches alone looks like as many iterations.
fn told_apart(trace: &Trace, window: Interval, steps: &[Step], repetitions: &mut Vec<Repetition>) -> usize {
    let run = trace.meta.workload.as_ref().filter(|run| run.iterations > 0);
    let Some((iterations, measured)) = run.and_then(|run| Some((run.iterations as usize, run.measured?))) else {
        return 1;
    };
    if measured.overlap(window) < measured.len() {
        return 1;
    }
    let start = |repetition: &Repetition| trace.calls.start[steps[repetition.steps.start].call.index()];
    let first = repetitions.partition_point(|repetition| start(repetition) < measured.start);
    let count = repetitions[first..].partition_point(|repetition| start(repetition) < measured.end);
    // One may be torn at the edge.
    let times = (count + iterations / 2) / iterations;
    if times < 2 || count.abs_diff(times * iterations) >= times {
        return 1;
    }
    let skipped = first % times;
    let joined = repetitions[skipped..].chunks_exact(times).map(|parts| Repetition {
        steps: parts[0].steps.start..parts[times - 1].steps.end,
        followed: parts[times - 1].followed,
    });
    *repetitions = joined.collect();
    times
}

/// After how many steps the sequence repeats.
///
/// Within an iteration parts may repeat too, such as layers; they differ at the iteration's edges. So the period is the
/// shortest among those after which nearly everything repeats. Candidates are the distances at which short runs of
/// steps return.
fn period(what: &[u32]) -> Option<usize> {
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
fn repetitions(trace: &Trace, steps: &[Step], what: &[u32], period: usize) -> Vec<usize> {
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
        let pause = trace.calls.start[steps[at].call.index()] - trace.calls.end[steps[at - 1].call.index()];
        let pauses = &mut pauses[(at - longest.start) % period];
        *pauses = pauses.saturating_add(pause.max_zero().0);
    }
    let phase = (0..period).max_by_key(|&phase| (pauses[phase], Reverse(phase))).unwrap_or(0);
    let model = &what[longest.start + phase..longest.start + phase + period];
    // Compare hashes of whole repetitions, which roll along the sequence.
    let base = 0x1000_0000_01b3_u64;
    let power = (0..period).fold(1u64, |power, _| power.wrapping_mul(base));
    let roll = |hash: u64, step: u32| hash.wrapping_mul(base).wrapping_add(u64::from(step));
    let wanted = model.iter().fold(0u64, |hash, &step| roll(hash, step));
    let mut starts: Vec<usize> = Vec::new();
    let mut rolling = 0u64;
    for at in 0..what.len() {
        rolling = roll(rolling, what[at]);
        if at >= period {
            rolling = rolling.wrapping_sub(power.wrapping_mul(u64::from(what[at - period])));
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
