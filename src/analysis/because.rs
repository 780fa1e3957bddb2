//! What the host did while devices were idle.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::trace::{CallIdx, NameId, Ns, Trace};

use super::cause::{Cause, SegmentKind};
use super::result::{Bubble, DeviceAnalysis};
use super::words::{counted, time};

/// Time of the host during bubbles of one cause, in the calls of one API as far as they did one kind of thing, or in its
/// own code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTime {
    /// The root cause of the bubbles.
    pub cause: Cause,
    /// What the time went to.
    pub kind: SegmentKind,
    /// The API's name, without version suffixes; `None` of the host's own code.
    pub api: Option<String>,
    /// How many calls.
    pub calls: u64,
    /// The time in them during the bubbles.
    pub time: Ns,
}

/// What makes a row.
type Key<Name> = (Cause, SegmentKind, Name);

/// Time, and the calls that it was spent in.
#[derive(Default)]
struct Spent {
    time: Ns,
    calls: Vec<CallIdx>,
}

/// What the host did during those of `bubbles`, which are of `device`, that no call is to blame for, the most time first.
pub fn host_time<'b>(
    trace: &Trace,
    device: &DeviceAnalysis,
    bubbles: impl IntoIterator<Item = &'b Bubble>,
) -> Vec<HostTime> {
    let mut found: BTreeMap<Key<Option<NameId>>, Spent> = BTreeMap::new();
    for bubble in bubbles.into_iter().filter(|bubble| !bubble.root.cause.blames_call()) {
        for segment in device.segments_of(bubble) {
            let call = segment.call().filter(|_| segment.kind.is_in_call());
            if call.is_none() && segment.kind != SegmentKind::HostCode {
                continue;
            }
            let name = call.map(|call| trace.calls.name[call.index()]);
            let spent = found.entry((bubble.root.cause, segment.kind, name)).or_default();
            spent.time += segment.interval.len();
            spent.calls.extend(call.filter(|call| spent.calls.last() != Some(call)));
        }
    }
    // The versions of one API are one.
    let mut by_api: BTreeMap<Key<Option<&str>>, Spent> = BTreeMap::new();
    for ((cause, kind, _), Spent { time, calls }) in found {
        let api = calls.first().map(|&call| trace.call_name(call));
        let all = by_api.entry((cause, kind, api)).or_default();
        all.time += time;
        all.calls.extend(calls);
    }
    let mut rows = Vec::with_capacity(by_api.len());
    for ((cause, kind, api), Spent { time, mut calls }) in by_api {
        calls.sort_unstable();
        calls.dedup();
        rows.push(HostTime { cause, kind, api: api.map(str::to_owned), calls: calls.len() as u64, time });
    }
    // A stable sort: of equals, the one that comes first by cause, kind and name.
    rows.sort_by_key(|row| Reverse(row.time));
    rows
}

/// Parts that are named at most.
const MOST_NAMED: usize = 2;
/// Calls that launch and take so long in the mean are slow themselves.
const LONG_LAUNCH: Ns = Ns::from_us(50);

/// Why a device was idle, as a clause like [`Cause::because`], and where most of that time went, if the cause does not say
/// it. Shown, it is both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Because {
    /// The clause.
    pub clause: &'static str,
    /// Lengths of time and where they went, the longest first.
    pub parts: Vec<(Ns, String)>,
    /// How long the device was idle for that reason.
    pub whole: Ns,
}

impl Because {
    /// A clause that needs no more.
    pub const fn plain(clause: &'static str, whole: Ns) -> Self {
        Self { clause, parts: Vec::new(), whole }
    }

    /// The parts in words: `4.30 ms in cudaStreamCreate (32 calls), 1.21 ms in cudaEventCreate (1 call)`. What `of` says
    /// stands behind the first time.
    pub fn parts(&self, mut of: &str) -> String {
        let named =
            self.parts.iter().map(|(long, place)| format!("{}{} {place}", time(*long), std::mem::take(&mut of)));
        named.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.clause)?;
        if self.parts.is_empty() { Ok(()) } else { write!(f, ", {}", self.parts(&format!(" of {}", time(self.whole)))) }
    }
}

/// Why a device was idle for `whole`, the length of bubbles of `cause`. `host` says what the host did: where it launched
/// too late because it was in calls that launch nothing, in single ones that took long, or in its own code, that is said.
pub fn because<'i>(cause: Cause, whole: Ns, host: impl IntoIterator<Item = &'i HostTime>) -> Because {
    let plain = Because::plain(cause.because(), whole);
    if cause != Cause::LaunchBound {
        return plain;
    }
    let (mut others, mut slow, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for row in host.into_iter().filter(|row| row.cause == cause) {
        match row.kind {
            SegmentKind::HostCode => own.push(row),
            SegmentKind::LaunchCall if row.time.0 >= LONG_LAUNCH.0.saturating_mul(row.calls as i64) => slow.push(row),
            SegmentKind::LaunchCall => {}
            _ => others.push(row),
        }
    }
    let most = |clause, rows: &[&HostTime]| most_of(whole, rows).map(|parts| Because { clause, parts, whole });
    most("other CUDA calls kept the host from launching more", &others)
        .or_else(|| most("the host was long in single calls that launch", &slow))
        .or_else(|| most(cause.because(), &own))
        .unwrap_or(plain)
}

/// Where most of this time of the host went, if it makes up half of `whole`.
fn most_of(whole: Ns, rows: &[&HostTime]) -> Option<Vec<(Ns, String)>> {
    let all = rows.iter().map(|row| row.time).sum::<Ns>();
    if all <= Ns::ZERO || all.0.saturating_mul(2) < whole.0 {
        return None;
    }
    // Of one API, on whichever device and whatever its calls did.
    let mut by_api: BTreeMap<Option<&str>, (u64, Ns)> = BTreeMap::new();
    for row in rows {
        let (calls, time) = by_api.entry(row.api.as_deref()).or_default();
        (*calls, *time) = (*calls + row.calls, *time + row.time);
    }
    let mut by_api: Vec<_> = by_api.into_iter().collect();
    by_api.sort_by_key(|&(_, (_, time))| Reverse(time));
    let mut told = Ns::ZERO;
    let mut parts = Vec::new();
    for (api, (calls, time)) in by_api.into_iter().take(MOST_NAMED) {
        // Four fifths are enough.
        if told.0.saturating_mul(5) < all.0.saturating_mul(4) {
            let place = api.map(|api| format!("in {api} ({})", counted(calls, "call", "calls")));
            parts.push((time, place.unwrap_or_else(|| "in the host's own code between its calls".to_owned())));
        }
        told += time;
    }
    Some(parts)
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
    /// lengths in µs, 1 µs apart, or none for so long where there is no name, and then launches once more.
    fn said(calls: &[(&str, i64)]) -> (Cause, String) {
        let mut scene = Scene::new();
        for index in 0..10 {
            let at = index * 6 * US;
            scene.launch(index as u64 + 1, (at, at + 5 * US), 7, (at + 5_500, at + 7_500));
        }
        let mut at = 60 * US;
        for (index, &(name, long)) in calls.iter().enumerate() {
            if !name.is_empty() {
                scene.call(name, 200 + index as u64, at, at + long * US);
            }
            at += long * US + US;
        }
        scene.launch(100, (at, at + 5 * US), 7, (at + 5_500, at + 9 * US));
        let trace = scene.finish();
        let found = analyze(&trace, &Options::default());
        let device = &found.devices[0];
        let bubble = device.bubbles.last().unwrap();
        let rows = host_time(&trace, device, [bubble]);
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
        // The host's own code, too short to be host-bound, makes launching slow too.
        let own = launched(said(&[("", 35)]));
        assert!(own.starts_with(plain) && own.ends_with(" in the host's own code between its calls"), "{own}");
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
        let rows = host_time(&trace, device, &device.bubbles);
        let row = |api: &str| {
            rows.iter().find(|row| row.api.as_deref() == Some(api)).map(|row| (row.kind, row.calls, row.time))
        };
        assert_eq!(row("cudaStreamCreateWithPriority"), Some((SegmentKind::Api, 1, Ns(160 * US))));
        assert_eq!(row("cuMemAlloc"), Some((SegmentKind::Allocation, 3, Ns(30 * US))));
        assert_eq!(row("cudaLaunchKernel"), Some((SegmentKind::LaunchCall, 1, Ns(5 * US))));
    }
}
