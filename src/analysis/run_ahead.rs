//! How much device work was enqueued and not finished at moments of host time.

use crate::trace::{Ns, OpIdx, StreamIdx, Trace};

/// Device work enqueued and not finished at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunAhead {
    /// Ops whose launch had returned and that had not ended.
    pub ops: u64,
    /// Device time that they still had to run, one after the other.
    pub work: Ns,
}

/// The run-ahead on `streams` at each of `moments`, which must be in order of time.
///
/// An op counts from the moment its launch and those of all ops before it on its stream have returned. Ops without a
/// known launch do not count.
pub fn run_ahead(trace: &Trace, streams: &[StreamIdx], moments: &[Ns]) -> Vec<RunAhead> {
    let mut found = vec![RunAhead::default(); moments.len()];
    for &stream in streams {
        let mut lane = Lane::new(trace, stream);
        for (found, &moment) in found.iter_mut().zip(moments) {
            let more = lane.at(moment);
            found.ops += more.ops;
            found.work += more.work;
        }
    }
    found
}

/// A stream's ops as time passes: `done..enqueued` are those that count, but for a few that ended out of order.
pub(super) struct Lane<'t> {
    trace: &'t Trace,
    done: u32,
    enqueued: u32,
    end: u32,
    /// Sums over `done..enqueued`.
    ahead: RunAhead,
}

impl<'t> Lane<'t> {
    pub(super) fn new(trace: &'t Trace, stream: StreamIdx) -> Self {
        let ops = trace.streams[stream.index()].ops.clone();
        Self { trace, done: ops.start, enqueued: ops.start, end: ops.end, ahead: RunAhead::default() }
    }

    /// The run-ahead at `moment`, which must not be before the last one asked for.
    pub(super) fn at(&mut self, moment: Ns) -> RunAhead {
        let ops = &self.trace.ops;
        while self.enqueued < self.end && self.launched(self.enqueued).is_none_or(|returned| returned <= moment) {
            let share = self.share(self.enqueued);
            self.ahead.ops += share.ops;
            self.ahead.work += share.work;
            self.enqueued += 1;
        }
        while self.done < self.enqueued && ops.end[self.done as usize] <= moment {
            let share = self.share(self.done);
            self.ahead.ops -= share.ops;
            self.ahead.work -= share.work;
            self.done += 1;
        }
        // Those that have begun count only with what is left of them.
        let mut ahead = self.ahead;
        for op in self.done..self.enqueued {
            let interval = ops.interval(OpIdx(op));
            if interval.start >= moment && !interval.is_empty() {
                break;
            }
            let share = self.share(op);
            if interval.end <= moment {
                ahead.ops -= share.ops;
                ahead.work -= share.work;
            } else if share.ops > 0 {
                ahead.work -= (moment - interval.start).max_zero();
            }
        }
        ahead
    }

    /// When the launch of an op returned.
    fn launched(&self, op: u32) -> Option<Ns> {
        self.trace.ops.launch(OpIdx(op)).map(|call| self.trace.calls.end[call.index()])
    }

    /// What a whole op counts.
    fn share(&self, op: u32) -> RunAhead {
        if self.launched(op).is_none() {
            return RunAhead::default();
        }
        RunAhead { ops: 1, work: self.trace.ops.interval(OpIdx(op)).len() }
    }
}
