//! The calls in which the host was while devices were idle.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::trace::{CallIdx, NameId, Ns, Trace};

use super::cause::{Cause, SegmentKind};
use super::result::{Bubble, DeviceAnalysis};
use super::words::{counted, time};

/// The calls of one API in which the host was during bubbles of one cause, as far as they did one kind of thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The root cause of the bubbles.
    pub cause: Cause,
    /// What the time went to.
    pub kind: SegmentKind,
    /// The API's name, without version suffixes.
    pub api: String,
    /// How many calls.
    pub calls: u64,
    /// The time in them during the bubbles.
    pub time: Ns,
}

/// The calls in which the host was during those of `bubbles`, which are of `device`, that no call is to blame for, the
/// most time first.
pub fn inside<'b>(
    trace: &Trace,
    device: &DeviceAnalysis,
    bubbles: impl IntoIterator<Item = &'b Bubble>,
) -> Vec<Inside> {
    let mut found: BTreeMap<(Cause, SegmentKind, NameId), (Ns, Vec<CallIdx>)> = BTreeMap::new();
    for bubble in bubbles.into_iter().filter(|bubble| !bubble.root.cause.blames_call()) {
        for segment in device.segments_of(bubble).iter().filter(|segment| segment.kind.is_in_call()) {
            let Some(call) = segment.call() else { continue };
            let key = (bubble.root.cause, segment.kind, trace.calls.name[call.index()]);
            let (time, calls) = found.entry(key).or_default();
            *time += segment.interval.len();
            if calls.last() != Some(&call) {
                calls.push(call);
            }
        }
    }
    // The versions of one API are one.
    let mut by_api: BTreeMap<(Cause, SegmentKind, &str), (Ns, Vec<CallIdx>)> = BTreeMap::new();
    for ((cause, kind, _), (time, calls)) in found {
        let Some(&first) = calls.first() else { continue };
        let (sum, all) = by_api.entry((cause, kind, trace.call_name(first))).or_default();
        *sum += time;
        all.extend(calls);
    }
    let mut rows: Vec<Inside> = by_api
        .into_iter()
        .map(|((cause, kind, api), (time, mut calls))| {
            calls.sort_unstable();
            calls.dedup();
            Inside { cause, kind, api: api.to_owned(), calls: calls.len() as u64, time }
        })
        .collect();
    // A stable sort: of equals, the one that comes first by cause, kind and name.
    rows.sort_by_key(|row| Reverse(row.time));
    rows
}

/// APIs that are named at most.
const MOST_NAMED: usize = 2;
/// Calls that launch and take so long in the mean are slow themselves.
const LONG_LAUNCH: Ns = Ns::from_us(50);

/// Why a device was idle, as a clause like [`Cause::because`], and the calls that it speaks of. Shown, it is both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Because {
    /// The clause.
    pub clause: &'static str,
    /// The calls of each API and the time in them, the most first; empty where the clause speaks of none.
    pub calls: Vec<(String, u64, Ns)>,
    /// How long the device was idle for that reason.
    pub part: Ns,
}

impl Because {
    /// The calls in words: `4.30 ms in cudaStreamCreate (32 calls), 1.21 ms in cudaEventCreate (1 call)`. What `of` says
    /// stands behind the first time.
    pub fn calls(&self, mut of: &str) -> String {
        let named = self.calls.iter().map(|(api, calls, long)| {
            format!("{}{} in {api} ({})", time(*long), std::mem::take(&mut of), counted(*calls, "call", "calls"))
        });
        named.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.clause)?;
        if self.calls.is_empty() { Ok(()) } else { write!(f, ", {}", self.calls(&format!(" of {}", time(self.part)))) }
    }
}

/// Why a device was idle for `part`, the length of bubbles of `cause`. `inside` says in which calls the host was: where it
/// launched too late because it was in calls that launch nothing, or in single ones that took long, these are named.
pub fn because<'i>(cause: Cause, part: Ns, inside: impl IntoIterator<Item = &'i Inside>) -> Because {
    let plain = Because { clause: cause.because(), calls: Vec::new(), part };
    if cause != Cause::LaunchBound {
        return plain;
    }
    let rows = inside.into_iter().filter(|row| row.cause == cause);
    let (launches, others): (Vec<&Inside>, Vec<&Inside>) = rows.partition(|row| row.kind == SegmentKind::LaunchCall);
    let is_slow = |row: &&Inside| row.time.0 >= LONG_LAUNCH.0.saturating_mul(row.calls as i64);
    let slow: Vec<&Inside> = launches.into_iter().filter(is_slow).collect();
    let named = |clause, rows: &[&Inside]| most_of(part, rows).map(|calls| Because { clause, calls, part });
    named("other CUDA calls kept the host from launching more", &others)
        .or_else(|| named("the host was long in single calls that launch", &slow))
        .unwrap_or(plain)
}

/// The APIs in which most of the time of these calls passed, if it makes up half of `part`.
fn most_of(part: Ns, rows: &[&Inside]) -> Option<Vec<(String, u64, Ns)>> {
    let all = rows.iter().map(|row| row.time).sum::<Ns>();
    if all <= Ns::ZERO || all.0.saturating_mul(2) < part.0 {
        return None;
    }
    // Of one API, on whichever device and whatever its calls did.
    let mut by_api: Vec<(String, u64, Ns)> = Vec::new();
    for row in rows {
        match by_api.iter_mut().find(|(api, ..)| *api == row.api) {
            Some((_, calls, time)) => (*calls, *time) = (*calls + row.calls, *time + row.time),
            None => by_api.push((row.api.clone(), row.calls, row.time)),
        }
    }
    by_api.sort_by_key(|&(.., time)| Reverse(time));
    // Four fifths are enough.
    let mut told = Ns::ZERO;
    let is_enough = |long: Ns| {
        let enough = told.0.saturating_mul(5) >= all.0.saturating_mul(4);
        told += long;
        enough
    };
    let until = by_api.iter().map(|&(.., time)| time).position(is_enough).unwrap_or(by_api.len());
    by_api.truncate(until.min(MOST_NAMED));
    Some(by_api)
}

impl SegmentKind {
    /// Whether the host was inside a call then, and that is what the time went to.
    pub const fn is_in_call(self) -> bool {
        matches!(
            self,
            Self::Profiler
                | Self::ModuleLoad
                | Self::GraphBuild
                | Self::Allocation
                | Self::SyncReturn
                | Self::LaunchCall
                | Self::Api
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scene::Scene;
    use crate::analysis::{Options, analyze};

    const US: i64 = 1_000;

    /// What is said of the last bubble after ten launches in a row, in which the host makes `calls` of these names and
    /// lengths in µs, 1 µs apart, and then launches once more.
    fn said(calls: &[(&str, i64)]) -> (Cause, String) {
        let mut scene = Scene::new();
        for index in 0..10 {
            let at = index * 6 * US;
            scene.launch(index as u64 + 1, (at, at + 5 * US), 7, (at + 5_500, at + 7_500));
        }
        let mut at = 60 * US;
        for (index, &(name, long)) in calls.iter().enumerate() {
            scene.call(name, 200 + index as u64, at, at + long * US);
            at += long * US + US;
        }
        scene.launch(100, (at, at + 5 * US), 7, (at + 5_500, at + 9 * US));
        let trace = scene.finish();
        let found = analyze(&trace, &Options::default());
        let device = &found.devices[0];
        let bubble = device.bubbles.last().unwrap();
        let rows = inside(&trace, device, [bubble]);
        // What is said of some calls is inside of the bubble.
        let whole = rows.iter().map(|row| row.time).sum::<Ns>();
        assert!(whole <= bubble.interval.len() && rows.is_sorted_by(|a, b| a.time >= b.time), "{rows:?}");
        (bubble.root.cause, because(bubble.root.cause, bubble.interval.len(), &rows).to_string())
    }

    #[test]
    fn calls_that_kept_the_host_from_launching_are_named_with_their_share() {
        let plain = Cause::LaunchBound.because();
        let launched = |said: (Cause, String)| {
            assert_eq!(said.0, Cause::LaunchBound);
            said.1
        };
        assert_eq!(launched(said(&[])), plain);
        // Whatever they are called, and whether one call or many.
        for name in ["cudaStreamCreateWithPriority", "cudaEventRecord_v3020", "cudaGetDeviceProperties_v2_v12000"] {
            let api = crate::trace::base_name(name);
            let one = launched(said(&[(name, 300)]));
            let before = "other CUDA calls kept the host from launching more, ";
            assert_eq!(one, format!("{before}299 µs of 305 µs in {api} (1 call)"));
            let many = launched(said(&[(name, 14); 20]));
            assert_eq!(many, format!("{before}279 µs of 304 µs in {api} (20 calls)"));
        }
        // Several of which none fills half; what is little is not named.
        let several = launched(said(&[
            ("cudaStreamCreateWithPriority", 100),
            ("cudaEventCreate", 90),
            ("cudaGetDevice_v3020", 20),
            ("cudaStreamCreateWithPriority", 40),
        ]));
        let expected =
            "139 µs of 258 µs in cudaStreamCreateWithPriority (2 calls), 90.0 µs in cudaEventCreate (1 call)";
        assert!(several.ends_with(expected), "{several}");
        // Calls that launch: short ones are what the cause says, long ones are named.
        let long = launched(said(&[("cudaMemsetAsync_v3020", 300)]));
        assert!(long.starts_with("the host was long in single calls that launch, 299 µs of "), "{long}");
        assert!(long.ends_with(" in cudaMemsetAsync (1 call)"), "{long}");
        assert_eq!(launched(said(&[("cudaMemsetAsync_v3020", 14); 20])), plain);
        // Less than half of the time is not the reason.
        assert_eq!(launched(said(&[("cudaGetDevice_v3020", 2)])), plain);
        // Other causes have their own words.
        assert_eq!(said(&[("cudaMalloc_v3020", 300)]), (Cause::Allocation, Cause::Allocation.because().to_owned()));
    }

    #[test]
    fn calls_are_counted_once_whatever_lies_in_them() {
        let mut scene = Scene::new();
        scene.launch(1, (0, 5 * US), 7, (6 * US, 8 * US));
        scene.call("cudaStreamCreateWithPriority", 2, 10 * US, 200 * US);
        // These outrank the call around them.
        for (index, at) in [20, 60, 100].into_iter().enumerate() {
            scene.call("cuMemAlloc_v2", 3 + index as u64, at * US, (at + 10) * US);
        }
        scene.launch(10, (201 * US, 206 * US), 7, (207 * US, 208 * US));
        let trace = scene.finish();
        let found = analyze(&trace, &Options::default());
        let device = &found.devices[0];
        let rows = inside(&trace, device, &device.bubbles);
        let row = |api: &str| rows.iter().find(|row| row.api == api).map(|row| (row.kind, row.calls, row.time));
        assert_eq!(row("cudaStreamCreateWithPriority"), Some((SegmentKind::Api, 1, Ns(160 * US))));
        assert_eq!(row("cuMemAlloc"), Some((SegmentKind::Allocation, 3, Ns(30 * US))));
        assert_eq!(row("cudaLaunchKernel"), Some((SegmentKind::LaunchCall, 1, Ns(5 * US))));
    }
}
