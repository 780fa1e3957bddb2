//! The calls that submit device work, by API.

use std::collections::BTreeMap;

use bubblescope::analysis::Analysis;
use bubblescope::trace::{CallIdx, Ns, Trace, base_name};

/// The launches of one API, which is that of [`Self::longest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFigures {
    /// Calls with device work.
    pub count: u64,
    /// Median length of a call.
    pub call_p50: Ns,
    /// 95th percentile of the length of a call.
    pub call_p95: Ns,
    /// Median time from a call's start to its op's start, of ops that found the device empty; `None` without any.
    pub latency_p50: Option<Ns>,
    /// Median number of ops that a call submitted.
    pub ops_p50: u64,
    /// All ops that the calls submitted.
    pub ops: u64,
    /// The longest call, of equals the first.
    pub longest: CallIdx,
    /// Its length.
    pub call_max: Ns,
}

#[derive(Debug, Default)]
struct Samples {
    lengths: Vec<Ns>,
    latencies: Vec<Ns>,
    ops: Vec<u64>,
    longest: Option<(Ns, CallIdx)>,
}

/// The launches in the part of `trace` that `analysis` is of, by API. A call counts when it has device work.
pub fn by_api(trace: &Trace, analysis: &Analysis) -> Vec<LaunchFigures> {
    // Each name is looked at once. Several may be versions of one API.
    let mut apis: BTreeMap<&str, usize> = BTreeMap::new();
    let api_of = |(_, name)| {
        let next = apis.len();
        *apis.entry(base_name(name)).or_insert(next)
    };
    let api_of_name: Vec<usize> = trace.names.iter().map(api_of).collect();
    let api_of = |call: CallIdx| api_of_name[trace.calls.name[call.index()].index()];
    let mut samples: Vec<Samples> = Vec::new();
    samples.resize_with(apis.len(), Samples::default);
    for call in trace.calls.indices() {
        let start = trace.calls.start[call.index()];
        let ops = trace.call_ops(call).len() as u64;
        if ops == 0 || start < analysis.window.start || start >= analysis.window.end {
            continue;
        }
        let length = trace.calls.interval(call).len();
        let of = &mut samples[api_of(call)];
        of.lengths.push(length);
        of.ops.push(ops);
        if of.longest.is_none_or(|(longest, _)| length > longest) {
            of.longest = Some((length, call));
        }
    }
    for bubble in analysis.devices.iter().flat_map(|device| &device.bubbles) {
        let Some(call) = bubble.launch else { continue };
        let start = trace.calls.start[call.index()];
        if bubble.interval.contains(start) {
            samples[api_of(call)].latencies.push(bubble.interval.end - start);
        }
    }
    apis.into_values().filter_map(|api| figures(std::mem::take(&mut samples[api]))).collect()
}

fn figures(mut of: Samples) -> Option<LaunchFigures> {
    let (call_max, longest) = of.longest?;
    Some(LaunchFigures {
        count: of.lengths.len() as u64,
        call_p50: rank(&mut of.lengths, 50)?,
        call_p95: rank(&mut of.lengths, 95)?,
        latency_p50: rank(&mut of.latencies, 50),
        ops_p50: rank(&mut of.ops, 50)?,
        ops: of.ops.iter().sum(),
        longest,
        call_max,
    })
}

/// The nearest rank: one of the values, `None` without any.
fn rank<T: Copy + Ord>(values: &mut [T], percent: usize) -> Option<T> {
    let last = values.len().checked_sub(1)?;
    let at = (values.len() * percent).div_ceil(100).saturating_sub(1).min(last);
    Some(*values.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use bubblescope::analysis::{Options, analyze};

    use super::*;
    use crate::testing;

    #[test]
    fn launches_are_counted_by_api() {
        let trace = testing::trace(2, 40);
        let analysis = analyze(&trace, &Options::default());
        let found = by_api(&trace, &analysis);
        let of = |name: &str| found.iter().find(|figures| trace.call_name(figures.longest) == name).unwrap();
        let (launch, copy) = (of("cudaLaunchKernel"), of("cudaMemcpyAsync"));
        assert_eq!((launch.count, launch.ops, launch.ops_p50), (80, 90, 1), "every fourth step has a second kernel");
        assert_eq!((launch.call_p50, launch.call_p95, launch.call_max), (Ns(4_000), Ns(4_000), Ns(4_000)));
        assert_eq!(launch.latency_p50, Some(Ns(6_000)));
        assert_eq!((copy.count, copy.call_p50, copy.latency_p50), (40, Ns(3_000), None));
        assert_eq!(launch.longest, trace.calls.indices().find(|&call| !trace.call_ops(call).is_empty()).unwrap());
        assert_eq!(found.iter().map(|figures| figures.count).sum::<u64>(), analysis.launches.count);
    }

    #[test]
    fn ranks_are_values() {
        assert_eq!(rank::<i32>(&mut [], 50), None);
        assert_eq!(rank(&mut [3], 95), Some(3));
        assert_eq!(rank(&mut [4, 1, 3, 2], 50), Some(2));
        let mut all: Vec<usize> = (1..=100).collect();
        assert_eq!(rank(&mut all, 95), Some(95));
    }
}
