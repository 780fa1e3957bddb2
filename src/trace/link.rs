//! Joins device work to the host calls that caused it.

use rustc_hash::FxHashMap;

use super::api::ApiKind;
use super::ids::{CallIdx, CorrelationId, OpIdx, ProcessIdx, ThreadIdx};
use super::model::Trace;
use super::time::Ns;

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

/// Fills every link of the trace from the correlation ids, and those of conditional nodes' bodies by time.
pub(super) fn link(trace: &mut Trace) {
    let lookup = CallLookup::new(trace);
    trace.ops.launch = trace
        .ops
        .indices()
        .map(|op| lookup.find(trace.op_process(op), trace.ops.correlation[op.index()]).map_or(u32::MAX, |call| call.0))
        .collect();
    link_bodies(trace);
    for sync in &mut trace.syncs {
        sync.call = lookup.find(sync.process, sync.correlation);
    }
    for event in &mut trace.events {
        event.call = lookup.find(event.process, event.correlation);
    }
    group_ops_by_call(trace);
}

/// Links the ops that carry a graph id and no correlation id, which is how CUPTI records the bodies of conditional
/// nodes: each to the latest graph launch of its process that began before it and has no ops by correlation id.
///
/// No record says which launch such an op belongs to. It may be an earlier one than it is linked to when several
/// launches of the kind were enqueued at once. A graph of which other nodes were recorded keeps those alone, and the
/// bodies in it have no launch.
fn link_bodies(trace: &mut Trace) {
    let ops = &trace.ops;
    let is_body = |op: &OpIdx| ops.graph[op.index()].is_some() && !ops.correlation[op.index()].is_some();
    let bodies: Vec<OpIdx> = ops.indices().filter(is_body).collect();
    if bodies.is_empty() {
        return;
    }
    let launches = bare_graph_launches(trace);
    for op in bodies {
        let launches = &launches[trace.op_process(op).index()];
        let begun = launches.partition_point(|&(start, _)| start < trace.ops.start[op.index()]);
        if let Some(latest) = begun.checked_sub(1) {
            trace.ops.launch[op.index()] = launches[latest].1.0;
        }
    }
}

/// The starts of each process's successful graph launches that no op carries the correlation id of, in order. A launch
/// inside another one (a driver call inside a runtime call) is part of that.
fn bare_graph_launches(trace: &Trace) -> Vec<Vec<(Ns, CallIdx)>> {
    let calls = &trace.calls;
    let mut has_ops = vec![false; calls.len()];
    for &call in trace.ops.launch.iter().filter(|&&call| call != u32::MAX) {
        has_ops[call as usize] = true;
    }
    let mut launches: Vec<CallIdx> = Vec::new();
    for thread in 0..trace.threads.len() {
        let mut outer: Option<CallIdx> = None;
        let of_graphs = |call: &CallIdx| calls.kind[call.index()] == ApiKind::GraphLaunch;
        for call in trace.thread_calls(ThreadIdx::from_index(thread)).filter(of_graphs) {
            match outer.filter(|outer| calls.end[call.index()] <= calls.end[outer.index()]) {
                Some(outer) => has_ops[outer.index()] |= has_ops[call.index()],
                None => {
                    outer = Some(call);
                    launches.push(call);
                }
            }
        }
    }
    let mut of_processes: Vec<Vec<(Ns, CallIdx)>> = vec![Vec::new(); trace.processes.len()];
    for call in launches {
        if !has_ops[call.index()] && calls.result[call.index()] == 0 {
            of_processes[trace.call_process(call).index()].push((calls.start[call.index()], call));
        }
    }
    for launches in &mut of_processes {
        launches.sort_unstable();
    }
    of_processes
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

#[cfg(test)]
mod tests {
    use super::super::builder::{CallInput, OpInput, TraceBuilder};
    use super::super::ids::GraphId;
    use super::super::model::{Detail, OpKind};
    use super::*;

    /// A trace of one process of those calls (name, correlation, start, end, result) and kernels (correlation, graph,
    /// start); gives the start of each kernel's launch.
    fn launched(calls: &[(&str, u64, i64, i64, i32)], kernels: &[(u64, u32, i64)]) -> Vec<Option<i64>> {
        let mut builder = TraceBuilder::new();
        let process = builder.process(1);
        let device = builder.device(0);
        let context = builder.context(process, 1, device);
        let (stream, thread) = (builder.stream(context, 7), builder.thread(process, 1));
        for &(name, correlation, start, end, result) in calls {
            let name = builder.name(name);
            builder.push_call(CallInput { start, end, thread, name, correlation: CorrelationId(correlation), result });
        }
        for &(correlation, graph, start) in kernels {
            let name = builder.name("kernel");
            builder.push_op(OpInput {
                start,
                end: start + 1,
                stream,
                kind: OpKind::Kernel,
                name,
                correlation: CorrelationId(correlation),
                bytes: 0,
                graph: GraphId(graph),
                graph_node: 0,
                detail: Detail::None,
            });
        }
        let trace = builder.finish().unwrap();
        let launches = trace.ops.indices().map(|op| trace.ops.launch(op));
        let origin = trace.meta.epoch_ns;
        launches.map(|launch| launch.map(|call| trace.calls.start[call.index()].0 + origin)).collect()
    }

    #[test]
    fn a_conditional_nodes_body_belongs_to_the_latest_graph_launch_without_ops() {
        let calls = [
            ("cuGraphLaunch", 1, 10, 15, 0),
            ("cuGraphLaunch", 2, 30, 35, 0),
            ("cuGraphLaunch", 3, 50, 55, 0),
            ("cuGraphLaunch", 4, 70, 75, 1),
        ];
        // The launch at 30 has an op by its correlation id, the one at 70 failed.
        let kernels = [(0, 5, 9), (0, 5, 10), (0, 5, 20), (2, 6, 40), (0, 5, 41), (0, 5, 60), (0, 5, 80)];
        assert_eq!(launched(&calls, &kernels), [None, None, Some(10), Some(30), Some(10), Some(50), Some(50)]);
    }

    #[test]
    fn without_a_graph_or_with_an_unknown_correlation_there_is_no_launch() {
        let calls = [("cuGraphLaunch", 1, 10, 15, 0), ("cuLaunchKernel", 2, 16, 17, 0)];
        assert_eq!(launched(&calls, &[(0, 0, 20), (9, 5, 30)]), [None, None]);
    }

    #[test]
    fn a_launch_inside_another_is_part_of_it() {
        let kernels = [(0, 5, 30)];
        let bare = [("cudaGraphLaunch_v10000", 1, 10, 20, 0), ("cuGraphLaunch", 1, 12, 18, 0)];
        assert_eq!(launched(&bare, &kernels), [Some(10)]);
        let apart = [("cudaGraphLaunch_v10000", 1, 10, 20, 0), ("cuGraphLaunch", 2, 12, 18, 0)];
        assert_eq!(launched(&apart, &kernels), [Some(10)]);
        assert_eq!(launched(&apart, &[(2, 5, 25), (0, 5, 30)]), [Some(12), None]);
    }
}
