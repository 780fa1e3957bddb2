//! Lanes that stand for several streams at once.

use super::super::model::NONE;
use crate::analysis::waits::{Target, Waits};
use crate::trace::{StreamKind, Trace};

/// The lanes of groups of streams; `NONE` where nothing waits for the group.
pub(super) struct GroupLanes {
    pub(super) context: Vec<u32>,
    pub(super) process: Vec<u32>,
    /// Per context: the default stream, the streams that serialise with it, and both.
    pub(super) default: Vec<[u32; 3]>,
}

impl GroupLanes {
    pub(super) fn new(trace: &Trace, waits: &Waits, lanes: &mut usize) -> Self {
        let mut groups = Self {
            context: vec![NONE; trace.contexts.len()],
            process: vec![NONE; trace.processes.len()],
            default: vec![[NONE; 3]; trace.contexts.len()],
        };
        let mut lane = |slot: &mut u32| {
            if *slot == NONE {
                *slot = *lanes as u32;
                *lanes += 1;
            }
        };
        for wait in waits.calls() {
            match wait.target {
                Target::Context(context) => lane(&mut groups.context[context.index()]),
                Target::Process(process) => lane(&mut groups.process[process.index()]),
                Target::DefaultStream(context) => lane(&mut groups.default[context.index()][2]),
                Target::Stream(_) | Target::Op(_) | Target::OpStart(_) | Target::Nothing => {}
            }
        }
        for stream in trace.streams.iter().filter(|stream| stream.kind == StreamKind::Null) {
            let [null, blocking, _] = &mut groups.default[stream.context.index()];
            lane(null);
            lane(blocking);
        }
        groups
    }

    /// The groups that a stream is in.
    pub(super) fn of(&self, trace: &Trace, stream: usize) -> impl Iterator<Item = u32> {
        let row = &trace.streams[stream];
        let [null, blocking, both] = self.default[row.context.index()];
        let default = match row.kind {
            StreamKind::Null => [null, both],
            StreamKind::Blocking => [blocking, both],
            StreamKind::NonBlocking | StreamKind::Unknown => [NONE, NONE],
        };
        [self.context[row.context.index()], self.process[row.process.index()], default[0], default[1]]
            .into_iter()
            .filter(|&lane| lane != NONE)
    }
}
