//! Which process, context, stream or thread each row belongs to.

use parquet::data_type::{Int32Type, Int64Type};
use rustc_hash::FxHashMap;

use super::super::schema::{Column, Table};
use super::columns::BATCH;
use super::source::Source;
use super::{TraceFileError, damaged, ensure};
use crate::trace::{ContextIdx, ProcessIdx, StreamIdx, ThreadIdx, Trace};

/// From ids back to positions.
pub(super) struct Lookup {
    processes: FxHashMap<u32, ProcessIdx>,
    contexts: FxHashMap<(u32, u32), ContextIdx>,
    streams: FxHashMap<(u32, u32, u32), StreamIdx>,
    threads: FxHashMap<(u32, u64), ThreadIdx>,
}

impl Lookup {
    pub(super) fn of(trace: &Trace) -> Result<Self, TraceFileError> {
        let pid = |process: ProcessIdx| trace.processes[process.index()].pid;
        let rows = trace.processes.iter().enumerate();
        let processes: FxHashMap<_, _> = rows.map(|(at, row)| (row.pid, ProcessIdx::from_index(at))).collect();
        let rows = trace.contexts.iter().enumerate();
        let contexts: FxHashMap<_, _> =
            rows.map(|(at, row)| ((pid(row.process), row.id), ContextIdx::from_index(at))).collect();
        let rows = trace.streams.iter().enumerate();
        let streams: FxHashMap<_, _> = rows
            .map(|(at, row)| {
                let context = trace.contexts[row.context.index()].id;
                ((pid(row.process), context, row.id), StreamIdx::from_index(at))
            })
            .collect();
        let rows = trace.threads.iter().enumerate();
        let threads: FxHashMap<_, _> =
            rows.map(|(at, row)| ((pid(row.process), row.tid), ThreadIdx::from_index(at))).collect();
        let unique = processes.len() == trace.processes.len()
            && contexts.len() == trace.contexts.len()
            && streams.len() == trace.streams.len()
            && threads.len() == trace.threads.len();
        ensure(unique, "two lanes have the same id")?;
        Ok(Self { processes, contexts, streams, threads })
    }
}

/// The ids that say where a row belongs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    pid: u32,
    context: Option<u32>,
    stream: Option<u32>,
    tid: Option<u64>,
}

/// Where a record belongs.
#[derive(Clone, Copy)]
pub(super) struct Home {
    pub(super) process: ProcessIdx,
    pub(super) context: Option<ContextIdx>,
    pub(super) stream: Option<StreamIdx>,
}

impl Source<'_> {
    /// Reads which lane each row is on: `find` is asked once for each run of rows of one place.
    fn lanes<L: Copy>(
        &self,
        table: Table,
        mut find: impl FnMut(&Place) -> Option<L>,
    ) -> Result<Vec<L>, TraceFileError> {
        let on_stream = matches!(table, Table::Ops | Table::Syncs | Table::Events | Table::HostFunctions);
        let mut lanes = Vec::with_capacity(self.rows.get(table));
        let (mut pids, mut contexts, mut streams, mut tids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut last: Option<(Place, L)> = None;
        self.each_group(table, |group, rows| {
            let mut pid = self.cursor::<Int32Type>(group, Column::Pid)?;
            let mut context = self.cursor::<Int32Type>(group, Column::Context)?;
            let mut stream = self.cursor::<Int32Type>(group, Column::Stream)?;
            let mut tid = self.cursor::<Int64Type>(group, Column::Tid)?;
            let mut left = rows;
            while left > 0 {
                let batch = left.min(BATCH);
                pids.clear();
                pid.read(batch, &mut pids, 0, |&value| value as u32)?;
                if on_stream {
                    contexts.clear();
                    streams.clear();
                    context.read(batch, &mut contexts, None, |&value| Some(value as u32))?;
                    stream.read(batch, &mut streams, None, |&value| Some(value as u32))?;
                } else {
                    tids.clear();
                    tid.read(batch, &mut tids, None, |&value| Some(value as u64))?;
                }
                for row in 0..batch {
                    let place = if on_stream {
                        Place { pid: pids[row], context: contexts[row], stream: streams[row], tid: None }
                    } else {
                        Place { pid: pids[row], context: None, stream: None, tid: tids[row] }
                    };
                    let lane = match last {
                        Some((known, lane)) if known == place => lane,
                        _ => match find(&place) {
                            Some(lane) => lane,
                            None => return damaged(format!("a row of an unknown place: {place:?}")),
                        },
                    };
                    last = Some((place, lane));
                    lanes.push(lane);
                }
                left -= batch;
            }
            Ok(())
        })?;
        Ok(lanes)
    }

    /// Reads the process, context and stream of records that may have no stream.
    pub(super) fn homes(&self, table: Table, lookup: &Lookup) -> Result<Vec<Home>, TraceFileError> {
        self.lanes(table, |place| {
            let process = *lookup.processes.get(&place.pid)?;
            let context = match place.context {
                Some(id) => Some(*lookup.contexts.get(&(place.pid, id))?),
                None => None,
            };
            let stream = match (place.stream, place.context) {
                (Some(id), Some(context)) => Some(*lookup.streams.get(&(place.pid, context, id))?),
                (Some(_), None) => return None,
                (None, _) => None,
            };
            Some(Home { process, context, stream })
        })
    }

    /// Reads the process and thread of records that may have no thread.
    pub(super) fn owners(
        &self,
        table: Table,
        lookup: &Lookup,
    ) -> Result<Vec<(ProcessIdx, Option<ThreadIdx>)>, TraceFileError> {
        self.lanes(table, |place| {
            let process = *lookup.processes.get(&place.pid)?;
            let thread = match place.tid {
                Some(tid) => Some(*lookup.threads.get(&(place.pid, tid))?),
                None => None,
            };
            Some((process, thread))
        })
    }

    pub(super) fn streams(&self, table: Table, lookup: &Lookup) -> Result<Vec<StreamIdx>, TraceFileError> {
        self.lanes(table, |place| lookup.streams.get(&(place.pid, place.context?, place.stream?)).copied())
    }

    pub(super) fn threads(&self, table: Table, lookup: &Lookup) -> Result<Vec<ThreadIdx>, TraceFileError> {
        self.lanes(table, |place| lookup.threads.get(&(place.pid, place.tid?)).copied())
    }
}
