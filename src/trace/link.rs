//! Joins device work to the host calls that caused it.

use rustc_hash::FxHashMap;

use super::ids::{CallIdx, CorrelationId, OpIdx, ProcessIdx};
use super::model::Trace;

/// How many times sparser than its calls a process's range of correlation ids may be and still get a direct table.
const DENSE: u64 = 8;

/// The outermost call of each correlation id of one process.
enum CallTable {
    /// Ids lie close together: position is id minus the first.
    Direct { first: u64, calls: Vec<u32> },
    /// Ids are scattered.
    Hashed(FxHashMap<CorrelationId, u32>),
}

impl CallTable {
    fn new(lowest: u64, highest: u64, count: usize) -> Self {
        let width = highest.saturating_sub(lowest).saturating_add(1);
        if width <= (count as u64).saturating_mul(DENSE).saturating_add(1024) {
            Self::Direct { first: lowest, calls: vec![u32::MAX; width as usize] }
        } else {
            Self::Hashed(FxHashMap::with_capacity_and_hasher(count, rustc_hash::FxBuildHasher))
        }
    }

    fn slot(&mut self, id: CorrelationId) -> &mut u32 {
        match self {
            Self::Direct { first, calls } => &mut calls[(id.0 - *first) as usize],
            Self::Hashed(map) => map.entry(id).or_insert(u32::MAX),
        }
    }

    fn get(&self, id: CorrelationId) -> u32 {
        match self {
            Self::Direct { first, calls } => {
                let at = id.0.checked_sub(*first).and_then(|at| usize::try_from(at).ok());
                at.and_then(|at| calls.get(at)).copied().unwrap_or(u32::MAX)
            }
            Self::Hashed(map) => map.get(&id).copied().unwrap_or(u32::MAX),
        }
    }
}

/// The outermost call of each correlation id, per process.
pub(super) struct CallLookup {
    tables: Vec<Option<CallTable>>,
}

impl CallLookup {
    /// Looks at every call once. Where calls of one id nest (a driver call inside a runtime call), the one that
    /// started first wins, and of two that started together the longer one.
    pub(super) fn new(trace: &Trace) -> Self {
        let calls = &trace.calls;
        let mut bounds: Vec<(u64, u64, usize)> = vec![(u64::MAX, 0, 0); trace.processes.len()];
        for index in 0..calls.len() {
            let id = calls.correlation[index];
            if id.is_some() {
                let bound = &mut bounds[trace.call_process(CallIdx::from_index(index)).index()];
                *bound = (bound.0.min(id.0), bound.1.max(id.0), bound.2 + 1);
            }
        }
        let mut tables: Vec<Option<CallTable>> = bounds
            .iter()
            .map(|&(lowest, highest, count)| (count > 0).then(|| CallTable::new(lowest, highest, count)))
            .collect();
        for index in 0..calls.len() {
            let id = calls.correlation[index];
            let process = trace.call_process(CallIdx::from_index(index)).index();
            if let (true, Some(table)) = (id.is_some(), tables[process].as_mut()) {
                let slot = table.slot(id);
                let key = |at: usize| (calls.start[at], -calls.end[at]);
                if *slot == u32::MAX || key(index) < key(*slot as usize) {
                    *slot = index as u32;
                }
            }
        }
        Self { tables }
    }

    /// The outermost call with this id in this process.
    pub(super) fn find(&self, process: ProcessIdx, id: CorrelationId) -> Option<CallIdx> {
        if !id.is_some() {
            return None;
        }
        let call = self.tables.get(process.index())?.as_ref()?.get(id);
        (call != u32::MAX).then_some(CallIdx(call))
    }
}

/// Fills every link of the trace from the correlation ids.
pub(super) fn link(trace: &mut Trace) {
    let lookup = CallLookup::new(trace);
    trace.ops.launch = trace
        .ops
        .indices()
        .map(|op| lookup.find(trace.op_process(op), trace.ops.correlation[op.index()]).map_or(u32::MAX, |call| call.0))
        .collect();
    for sync in &mut trace.syncs {
        sync.call = lookup.find(sync.process, sync.correlation);
    }
    for event in &mut trace.events {
        event.call = lookup.find(event.process, event.correlation);
    }
    group_ops_by_call(trace);
}

/// Builds the table from calls to their ops by counting.
fn group_ops_by_call(trace: &mut Trace) {
    let calls = trace.calls.len();
    let mut offsets = vec![0u32; calls + 1];
    for &call in &trace.ops.launch {
        if call != u32::MAX {
            offsets[call as usize + 1] += 1;
        }
    }
    for index in 0..calls {
        offsets[index + 1] += offsets[index];
    }
    let mut next = offsets.clone();
    let mut ops = vec![OpIdx(0); offsets[calls] as usize];
    for (index, &call) in trace.ops.launch.iter().enumerate() {
        if call != u32::MAX {
            let slot = &mut next[call as usize];
            ops[*slot as usize] = OpIdx::from_index(index);
            *slot += 1;
        }
    }
    let start = &trace.ops.start;
    for call in 0..calls {
        let group = &mut ops[offsets[call] as usize..offsets[call + 1] as usize];
        if group.len() > 1 && !group.is_sorted_by_key(|op| start[op.index()]) {
            group.sort_by_key(|op| (start[op.index()], *op));
        }
    }
    trace.call_op_offsets = offsets;
    trace.call_ops = ops;
}
