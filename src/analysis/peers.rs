//! How long a device waits in collectives for the device that comes last to them.
//!
//! A collective's kernel runs on every device that takes part, and ends on none before it has begun on all: a rank that
//! comes early spins, and looks busy. The records tell neither which devices form a communicator nor which kernels belong
//! to one collective. Two rules stand in for that, among kernels of one name:
//!
//! * Streams of different devices that run it equally often, and each time at one instant, are a communicator; its
//!   collectives are matched by their number.
//! * Where that leaves a stream over, because one of the ranks was recorded for a shorter time, all are matched in order
//!   of time: when one of the earliest ops that are left ends, it and all of them that run then are one collective. An op
//!   that runs alone has no partner and is passed over.

use std::collections::BTreeMap;

use crate::trace::{DeviceIdx, Interval, NameId, Ns, OpIdx, StreamIdx, Trace};

/// What a device waited for in collectives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerWaits {
    /// Time in which it was in at least one collective that another device had not reached. Inside its busy time.
    pub total: Ns,
    /// The same by the device that came last.
    pub by_peer: BTreeMap<DeviceIdx, PeerWait>,
}

/// The wait for one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerWait {
    /// Collectives that this device came to last.
    pub collectives: u64,
    /// Time waited for it in at least one of them.
    pub wait: Ns,
}

/// The waits of each device that waited. `collective` tells for each name whether it is a collective kernel's.
pub(super) fn peer_waits(trace: &Trace, collective: &[bool], window: Interval) -> BTreeMap<DeviceIdx, PeerWaits> {
    let mut waits: BTreeMap<(DeviceIdx, DeviceIdx), Vec<Interval>> = BTreeMap::new();
    let mut found = |members: &[Member]| {
        let start = |&(_, op): &Member| trace.ops.start[op.index()];
        // Of devices that come at the same moment, the first stands for all.
        let Some(last) = members.iter().rev().max_by_key(|member| start(member)) else { return };
        for member in members {
            let wait = Interval::new(start(member), start(last)).intersect(window);
            if !wait.is_empty() {
                waits.entry((member.0, last.0)).or_default().push(wait);
            }
        }
    };
    for mut lanes in of_each_name(trace, collective) {
        if let Some(rest) = &trace.rest {
            trim(trace, &mut lanes, rest.reach);
        }
        match communicators(trace, lanes) {
            Ok(communicators) => {
                for lanes in communicators {
                    for number in 0..lanes[0].ops.len() {
                        found(&lanes.iter().map(|lane| (lane.device, lane.ops[number])).collect::<Vec<Member>>());
                    }
                }
            }
            Err(lanes) => in_order_of_time(trace, &by_device(trace, lanes), &mut found),
        }
    }
    let mut of_device: BTreeMap<DeviceIdx, (Vec<Interval>, PeerWaits)> = BTreeMap::new();
    for ((device, peer), mut intervals) in waits {
        let (all, found) = of_device.entry(device).or_default();
        let wait = PeerWait { collectives: intervals.len() as u64, wait: covered(&mut intervals) };
        found.by_peer.insert(peer, wait);
        all.append(&mut intervals);
    }
    of_device
        .into_iter()
        .map(|(device, (mut all, found))| (device, PeerWaits { total: covered(&mut all), ..found }))
        .collect()
}

/// A device's part in a collective.
type Member = (DeviceIdx, OpIdx);

/// The ops of one name on a stream, or on a device, in order of time.
struct Lane {
    device: DeviceIdx,
    ops: Vec<OpIdx>,
}

/// For each collective kernel its lanes, one for each stream, in the order of devices and streams.
fn of_each_name(trace: &Trace, collective: &[bool]) -> Vec<Vec<Lane>> {
    if trace.devices.len() < 2 || !collective.contains(&true) {
        return Vec::new();
    }
    let mut by_name: BTreeMap<NameId, BTreeMap<(DeviceIdx, StreamIdx), Vec<OpIdx>>> = BTreeMap::new();
    for op in trace.ops.indices() {
        let name = trace.ops.name[op.index()];
        if collective.get(name.index()).copied().unwrap_or(false) && !trace.ops.kind[op.index()].is_copy() {
            let lane = (trace.op_device(op), trace.ops.stream[op.index()]);
            by_name.entry(name).or_default().entry(lane).or_default().push(op);
        }
    }
    let lanes = |lanes: BTreeMap<(DeviceIdx, StreamIdx), Vec<OpIdx>>| {
        let mut lanes: Vec<Lane> = lanes.into_iter().map(|((device, _), ops)| Lane { device, ops }).collect();
        lanes.iter_mut().for_each(|lane| sort(trace, lane));
        lanes
    };
    by_name.into_values().map(lanes).collect()
}

/// The members of a collective end within this of each other, as far as the clocks of their devices tell.
const ENDS_TOGETHER: Ns = Ns::from_us(50);
/// No more than this is left out at an edge of a part.
const MOST_TRIMMED: Ns = Ns::from_us(500_000);

/// Leaves out the collectives at the edges of a part, which may not be there on all devices: from the edge to the first
/// moment at which none ends.
fn trim(trace: &Trace, lanes: &mut [Lane], reach: Interval) {
    let end = |op: &OpIdx| trace.ops.end[op.index()];
    let mut ends: Vec<Ns> = lanes.iter().flat_map(|lane| lane.ops.iter().map(end)).collect();
    ends.sort_unstable();
    let first = match reach.start {
        Ns::ZERO => Ns::MIN,
        start => start + trimmed(ends.iter().map(|&end| end - start)),
    };
    let last = match reach.end {
        end if end >= trace.end => Ns::MAX,
        edge => edge - trimmed(ends.iter().rev().map(|&end| edge - end)),
    };
    lanes.iter_mut().for_each(|lane| lane.ops.retain(|op| (first..=last).contains(&end(op))));
}

/// How much to leave out, by how far inside the edge collectives end, the least first.
fn trimmed(ends: impl Iterator<Item = Ns>) -> Ns {
    let mut trimmed = Ns::ZERO;
    for end in ends {
        if (end - trimmed).0.saturating_abs() <= ENDS_TOGETHER.0 {
            trimmed = end + ENDS_TOGETHER + Ns(1);
        }
    }
    // Where they follow each other without a pause, no moment is better than the edge.
    if trimmed > MOST_TRIMMED { Ns::ZERO } else { trimmed }
}

fn sort(trace: &Trace, lane: &mut Lane) {
    lane.ops.sort_by_key(|op| trace.ops.start[op.index()]);
}

/// The communicators that all lanes make; the lanes, if some of them are of none.
fn communicators(trace: &Trace, lanes: Vec<Lane>) -> Result<Vec<Vec<Lane>>, Vec<Lane>> {
    let together = |one: &Lane, other: &Lane| {
        let overlap = |(a, b): (&OpIdx, &OpIdx)| {
            let (a, b) = (trace.ops.interval(*a), trace.ops.interval(*b));
            a.start.max(b.start) < a.end.min(b.end)
        };
        one.device != other.device && one.ops.len() == other.ops.len() && one.ops.iter().zip(&other.ops).all(overlap)
    };
    let mut found: Vec<Vec<Lane>> = Vec::new();
    let mut left = lanes;
    while !left.is_empty() {
        let mut communicator = vec![left.remove(0)];
        for lane in std::mem::take(&mut left) {
            let belongs = communicator.iter().all(|member| together(member, &lane));
            if belongs { &mut communicator } else { &mut left }.push(lane);
        }
        found.push(communicator);
    }
    if found.iter().all(|lanes| lanes.len() > 1) {
        return Ok(found);
    }
    let mut lanes: Vec<Lane> = found.into_iter().flatten().collect();
    lanes.sort_by_key(|lane| lane.device);
    Err(lanes)
}

/// One lane for each device.
fn by_device(trace: &Trace, lanes: Vec<Lane>) -> Vec<Lane> {
    let mut joined: Vec<Lane> = Vec::new();
    for lane in lanes {
        match joined.last_mut().filter(|last| last.device == lane.device) {
            Some(last) => {
                last.ops.extend(lane.ops);
                sort(trace, last);
            }
            None => joined.push(lane),
        }
    }
    joined
}

/// Calls `found` with the members of each collective, of which there are two or more.
fn in_order_of_time(trace: &Trace, lanes: &[Lane], found: &mut impl FnMut(&[Member])) {
    let mut next = vec![0_usize; lanes.len()];
    let mut members: Vec<Member> = Vec::with_capacity(lanes.len());
    loop {
        let earliest = |(lane, &at): (&Lane, &usize)| lane.ops.get(at).map(|op| trace.ops.interval(*op));
        let fronts = || lanes.iter().zip(&next).map(earliest).enumerate();
        let first = fronts().filter_map(|(lane, op)| Some((op?, lane))).min_by_key(|&(op, lane)| (op.end, lane));
        let Some((first, lane)) = first else { return };
        // What takes no time shares no instant.
        let running = |op: Option<Interval>| op.is_some_and(|op| op.start < first.end);
        let together: Vec<usize> = match first.is_empty() {
            true => vec![lane],
            false => fronts().filter(|&(_, op)| running(op)).map(|(lane, _)| lane).collect(),
        };
        if together.len() > 1 {
            members.clear();
            members.extend(together.iter().map(|&lane| (lanes[lane].device, lanes[lane].ops[next[lane]])));
            found(&members);
        }
        together.iter().for_each(|&lane| next[lane] += 1);
    }
}

/// How much time `intervals` cover. Sorts them.
fn covered(intervals: &mut [Interval]) -> Ns {
    intervals.sort_by_key(|interval| interval.start);
    let (mut sum, mut reached) = (Ns::ZERO, Ns::MIN);
    for interval in intervals {
        sum += (interval.end - interval.start.max(reached)).max_zero();
        reached = reached.max(interval.end);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scene::Scene;
    use crate::analysis::{DeviceAnalysis, Options, analyze};

    /// Kernels of one collective, as (device, stream, start, end); what each device waits for which.
    fn waits_for_peers(ops: &[(u32, u32, i64, i64)]) -> Vec<(u32, u32, u64, i64)> {
        let mut scene = Scene::new();
        for (index, &(device, stream, start, end)) in ops.iter().enumerate() {
            scene.on_context(1, device, device + 1);
            let id = index as u64 + 1;
            scene.launch_named("ncclDevKernel_AllReduce", id, (start - 10, start - 5), stream, (start, end));
        }
        let trace = scene.finish();
        let found = analyze(&trace, &Options::default());
        let of = |device: &DeviceAnalysis| {
            let from = trace.devices[device.device.index()].id;
            let waits = device.peer_waits.by_peer.clone();
            let to = |peer: DeviceIdx| trace.devices[peer.index()].id;
            waits
                .into_iter()
                .map(move |(peer, wait)| (from, to(peer), wait.collectives, wait.wait.0))
                .collect::<Vec<_>>()
        };
        found.devices.iter().flat_map(|device| of(device)).collect()
    }

    #[test]
    fn a_rank_that_is_recorded_no_longer_ends_the_matching_of_no_other() {
        let mut ops = Vec::new();
        for round in 0..10 {
            let at = 1_000 + round * 1_000;
            ops.extend([(0, 7, at, at + 500), (1, 7, at + 200, at + 500)]);
            if round < 4 {
                ops.push((2, 7, at + 300, at + 500));
            }
        }
        let mut expected = vec![(0, 1, 6, 6 * 200), (0, 2, 4, 4 * 300), (1, 2, 4, 4 * 100)];
        assert_eq!(waits_for_peers(&ops), expected);
        // Nor does one that starts late, or that misses some in the middle.
        ops.retain(|&(device, _, start, _)| device != 2 || start > 3_000);
        expected[0] = (0, 1, 8, 8 * 200);
        expected[1] = (0, 2, 2, 2 * 300);
        expected[2] = (1, 2, 2, 2 * 100);
        assert_eq!(waits_for_peers(&ops), expected);
    }

    #[test]
    fn two_communicators_are_told_apart() {
        // Pairs at their own pace, of which one's collectives overlap those of the other at times.
        let mut ops = Vec::new();
        for round in 0..12 {
            let at = 1_000 + round * 1_000;
            ops.extend([(0, 7, at, at + 500), (1, 7, at + 200, at + 500)]);
            let at = 1_100 + round * 700;
            ops.extend([(2, 7, at, at + 400), (3, 7, at + 50, at + 400)]);
        }
        assert_eq!(waits_for_peers(&ops), [(0, 1, 12, 12 * 200), (2, 3, 12, 12 * 50)]);
        // A device in two of them, on a stream each.
        let mut ops = Vec::new();
        for round in 0..12 {
            let at = 1_000 + round * 1_000;
            ops.extend([(0, 7, at, at + 500), (1, 7, at + 200, at + 500)]);
            let at = 1_100 + round * 700;
            ops.extend([(0, 8, at, at + 400), (2, 7, at + 50, at + 400)]);
        }
        assert_eq!(waits_for_peers(&ops), [(0, 1, 12, 12 * 200), (0, 2, 12, 12 * 50)]);
    }
}
