//! Spools of processes that have the same number.

use cupti::process::Birth;
use rustc_hash::FxHashMap;

use super::clock::Clock;
use super::survey::Survey;

/// What a spool says about the process it is of. Times are absolute.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// Which start of which machine it ran on; empty when unknown.
    boot: String,
    /// Its beginning, where the recorder could tell.
    birth: Option<Birth>,
    /// When recording began.
    pub(super) started: i64,
    /// When it was last known to go on.
    pub(super) last: i64,
}

/// What a spool is to an earlier one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Namesake {
    /// Of another process, on another machine or in another container.
    Elsewhere,
    /// Of another process, which got the number when the earlier one had ended.
    Later,
    /// Of the same process: its program replaced itself by another one.
    AfterExec,
}

impl Namesake {
    /// Whether the system gave it the same number, so that the earlier one had it no longer.
    pub(super) fn has_the_number(self) -> bool {
        match self {
            Self::Elsewhere => false,
            Self::Later | Self::AfterExec => true,
        }
    }
}

impl Identity {
    pub(super) fn of(survey: &Survey, clock: &Clock) -> Self {
        let header = &survey.header;
        let started = clock.of_realtime(header.start_realtime_ns);
        Self {
            pid: header.pid,
            boot: header.machine.boot.clone(),
            birth: survey.birth,
            started,
            last: survey.anchors.last().map_or(started, |anchor| clock.time(anchor.cupti_ns)),
        }
    }

    /// What this one is to another, which began before; `None` if that has another number.
    fn to(&self, earlier: &Self) -> Option<Namesake> {
        if self.pid != earlier.pid {
            return None;
        }
        if self.boot != earlier.boot || self.boot.is_empty() {
            return Some(Namesake::Elsewhere);
        }
        Some(match (self.birth, earlier.birth) {
            (Some(own), Some(theirs)) if own == theirs => Namesake::AfterExec,
            (Some(own), Some(theirs)) if own.pid_namespace == theirs.pid_namespace => Namesake::Later,
            (Some(_), Some(_)) => Namesake::Elsewhere,
            // Two processes of one time cannot be the same.
            _ if self.started < earlier.last => Namesake::Elsewhere,
            _ => Namesake::AfterExec,
        })
    }

    /// Whether the process of the `earlier` one had ended, or become this one, when this one began.
    pub(super) fn follows(&self, earlier: &Self) -> bool {
        self.started > earlier.started && self.to(earlier).is_some_and(Namesake::has_the_number)
    }
}

/// The spools so far, by number.
#[derive(Debug, Default)]
pub(super) struct Namesakes(FxHashMap<u32, Vec<Identity>>);

impl Namesakes {
    /// Adds a spool that began after those that were added, and tells what it is to them.
    pub(super) fn add(&mut self, identity: &Identity) -> Option<Namesake> {
        let same = self.0.entry(identity.pid).or_default();
        let namesake = same.iter().filter_map(|earlier| identity.to(earlier)).max();
        same.push(identity.clone());
        namesake
    }
}
