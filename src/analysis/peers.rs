//! How long a device waits in collectives for the device that comes last to them.
//!
//! A collective's kernel runs on every device that takes part, and ends on none before it has begun on all: a rank that
//! comes early spins, and looks busy. The records do not tell which kernels belong to one collective. Devices that run
//! a collective kernel of the same name are taken as one group, whose collectives are matched in order of time: one of
//! each device that all run at some instant.

use std::collections::BTreeMap;

use crate::trace::{DeviceIdx, Interval, NameId, Ns, OpIdx, Trace};

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
    for lanes in groups(trace, collective) {
        for_each_match(trace, &lanes, |members| {
            let start = |&(_, op): &(DeviceIdx, OpIdx)| trace.ops.start[op.index()];
            // Of devices that come at the same moment, the first stands for all.
            let Some(last) = members.iter().rev().max_by_key(|member| start(member)) else { return };
            for member in members {
                let wait = Interval::new(start(member), start(last)).intersect(window);
                if !wait.is_empty() {
                    waits.entry((member.0, last.0)).or_default().push(wait);
                }
            }
        });
    }
    let mut by_device: BTreeMap<DeviceIdx, (Vec<Interval>, PeerWaits)> = BTreeMap::new();
    for ((device, peer), mut intervals) in waits {
        let (all, found) = by_device.entry(device).or_default();
        let wait = PeerWait { collectives: intervals.len() as u64, wait: covered(&mut intervals) };
        found.by_peer.insert(peer, wait);
        all.append(&mut intervals);
    }
    by_device
        .into_iter()
        .map(|(device, (mut all, found))| (device, PeerWaits { total: covered(&mut all), ..found }))
        .collect()
}

/// The ops of one device, in order of time.
type Lane = (DeviceIdx, Vec<OpIdx>);

/// For each collective that more than one device runs, its ops by device.
fn groups(trace: &Trace, collective: &[bool]) -> Vec<Vec<Lane>> {
    if trace.devices.len() < 2 || !collective.contains(&true) {
        return Vec::new();
    }
    let mut by_name: BTreeMap<NameId, BTreeMap<DeviceIdx, Vec<OpIdx>>> = BTreeMap::new();
    for op in trace.ops.indices() {
        let name = trace.ops.name[op.index()];
        if collective.get(name.index()).copied().unwrap_or(false) && !trace.ops.kind[op.index()].is_copy() {
            by_name.entry(name).or_default().entry(trace.op_device(op)).or_default().push(op);
        }
    }
    let mut groups: Vec<Vec<Lane>> = by_name.into_values().map(|lanes| lanes.into_iter().collect()).collect();
    groups.retain(|lanes| lanes.len() > 1);
    for (_, ops) in groups.iter_mut().flatten() {
        ops.sort_by_key(|op| trace.ops.start[op.index()]);
    }
    groups
}

/// Calls `found` with one op of each lane for each collective.
///
/// The earliest ops that are left are a match when they share an instant. When they do not, one of them is over before
/// another lane's next begins: it has no partner, because its peer was not recorded then, and is passed over.
fn for_each_match(trace: &Trace, lanes: &[Lane], mut found: impl FnMut(&[(DeviceIdx, OpIdx)])) {
    let mut next = vec![0_usize; lanes.len()];
    let mut members = Vec::with_capacity(lanes.len());
    loop {
        members.clear();
        members.extend(lanes.iter().zip(&next).filter_map(|((device, ops), &at)| Some((*device, *ops.get(at)?))));
        if members.len() < lanes.len() {
            return;
        }
        let Some(latest) = members.iter().map(|(_, op)| trace.ops.start[op.index()]).max() else { return };
        let mut matched = true;
        for ((_, op), at) in members.iter().zip(&mut next) {
            if trace.ops.end[op.index()] <= latest {
                *at += 1;
                matched = false;
            }
        }
        if matched {
            found(&members);
            next.iter_mut().for_each(|at| *at += 1);
        }
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
