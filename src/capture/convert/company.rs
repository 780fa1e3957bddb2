//! Who else worked on the devices of a trace while it was not recorded: other processes, and the recorded ones outside
//! the time in which they were recorded.

use std::collections::BTreeSet;

use cupti::inject::{Effect, short_name};
use cupti::spool::{Ending, Other};
use rustc_hash::FxHashMap;

use super::clock::Clock;
use super::namesakes::Identity;
use super::survey::Survey;
use crate::trace::{Context, DeviceIdx, Interval, Ns, ProcessIdx, Trace, Unrecorded};

/// When one process was recorded. Times are absolute.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    process: ProcessIdx,
    identity: Identity,
    name: String,
    /// From then on, if work may have come before.
    from: Option<i64>,
    /// Until then, if work may have come after.
    until: Option<i64>,
    /// Why the recording ends then.
    reason: Option<String>,
    /// Whether the process may have used a device of which its recording knows nothing.
    elsewhere: bool,
}

impl Presence {
    pub(super) fn of(survey: &Survey, clock: &Clock, identity: Identity, process: ProcessIdx) -> Self {
        let header = &survey.header;
        let off_since = survey.status.off_since_ns;
        let fault = survey.beside.fault.as_ref().filter(|fault| fault.effect == Effect::EndsEarly);
        let (until, reason) = match survey.ending {
            Ok(Ending::Complete) => ((off_since != 0).then(|| clock.of_realtime(off_since)), None),
            _ => {
                let why = fault.map_or("its recording was not stopped in order", |fault| &fault.message);
                // What was complete then had been fetched.
                (Some(identity.last), Some(why.to_owned()))
            }
        };
        Self {
            process,
            name: short_name(&header.command_line, &header.exe),
            from: header.begins_late.then_some(identity.started),
            identity,
            until,
            reason,
            // One that was recorded from its start and used no device until it was killed is of no account.
            elsewhere: header.begins_late || off_since != 0 || fault.is_some(),
        }
    }

    /// When the process may have worked unrecorded, inside the trace.
    fn missing(&self, all: &[Self], trace: &Trace) -> Vec<Interval> {
        // Whose number another got, or that replaced itself by another, ended there at the latest.
        let follows = |other: &&Identity| other.follows(&self.identity);
        let next = all.iter().map(|other| &other.identity).filter(follows).map(|other| other.started).min();
        let before = self.from.map(|from| Interval::new(Ns::ZERO, offset(trace, from)));
        let after = self
            .until
            .map(|until| Interval::new(offset(trace, until), next.map_or(Ns::MAX, |next| offset(trace, next))));
        let inside = before.into_iter().chain(after).map(|times| times.intersect(Interval::new(Ns::ZERO, trace.end)));
        inside.filter(|times| !times.is_empty()).collect()
    }
}

/// The trace's time of an absolute one.
fn offset(trace: &Trace, absolute: i64) -> Ns {
    Ns(absolute.saturating_sub(trace.meta.epoch_ns))
}

/// States which processes were recorded only in part while others used the same device.
pub(super) fn state_parts(trace: &mut Trace, all: &[Presence]) {
    for presence in all {
        let times = presence.missing(all, trace);
        let (own, others): (Vec<&Context>, Vec<&Context>) =
            trace.contexts.iter().partition(|context| context.process == presence.process);
        let is_own = |device: DeviceIdx| own.iter().any(|context| context.device == device);
        let shared: BTreeSet<DeviceIdx> = others
            .iter()
            .map(|context| context.device)
            .filter(|&device| if own.is_empty() { presence.elsewhere } else { is_own(device) })
            .collect();
        if times.is_empty() || shared.is_empty() {
            continue;
        }
        let devices = shared.iter().map(|device| trace.devices[device.index()].id).collect();
        trace.meta.unrecorded.push(Unrecorded {
            pid: Some(presence.identity.pid),
            name: presence.name.clone(),
            devices,
            reason: presence.reason.clone(),
            partly: true,
            times,
        });
    }
}

/// States which `others` used the devices of the trace and are not in it.
pub(in crate::capture) fn state_others(trace: &mut Trace, others: &[Other]) {
    for other in others {
        // A device that the trace does not have is of no account.
        let devices: Vec<u32> = trace
            .devices
            .iter()
            .filter(|device| !device.uuid.is_empty() && other.devices.contains(&device.uuid))
            .map(|device| device.id)
            .collect();
        let whole = Interval::new(Ns::ZERO, trace.end);
        let lived =
            other.lived.map(|(from, to)| Interval::new(offset(trace, from), offset(trace, to)).intersect(whole));
        if (devices.is_empty() && !other.devices.is_empty()) || lived.is_some_and(Interval::is_empty) {
            continue;
        }
        let unrecorded = Unrecorded {
            pid: other.pid,
            name: other.name.clone(),
            devices,
            reason: other.reason.clone(),
            partly: false,
            times: lived.into_iter().collect(),
        };
        if !trace.meta.unrecorded.contains(&unrecorded) {
            trace.meta.unrecorded.push(unrecorded);
        }
    }
}

/// States what whoever collected the spools knew beside them.
pub(super) fn state_beside(trace: &mut Trace, surveys: &[Survey]) {
    let mut read: FxHashMap<u32, usize> = FxHashMap::default();
    surveys.iter().for_each(|survey| *read.entry(survey.header.pid).or_default() += 1);
    for survey in surveys {
        let beside = &survey.beside;
        for said in beside.remarks.iter().cloned().chain(beside.fault.iter().map(cupti::inject::Fault::sentence)) {
            if !trace.meta.warnings.contains(&said) {
                trace.meta.warnings.push(said);
            }
        }
        let mut there: FxHashMap<u32, usize> = FxHashMap::from_iter([(survey.header.pid, 1)]);
        let elsewhere = beside.others.iter().filter(|other| other.has_spool).filter_map(|other| other.pid);
        elsewhere.for_each(|pid| *there.entry(pid).or_default() += 1);
        // Where several spools are of one number, none of them is read for certain until all are.
        let missing = |other: &&Other| match other.pid {
            Some(pid) if other.has_spool => read.get(&pid) < there.get(&pid),
            _ => true,
        };
        let others: Vec<Other> = beside.others.iter().filter(missing).cloned().collect();
        state_others(trace, &others);
    }
}
