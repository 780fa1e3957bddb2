//! What ran on devices and in their streams: kernels, copies, graphs, host functions.

use super::super::database::Row;
use super::super::enums::memory_label;
use super::super::lanes::Lanes;
use super::{COPIES, Export, GRAPHS, HOST_FUNCTIONS, KERNELS, MEMSETS, OP, correlation, with};
use crate::import::ImportError;
use crate::trace::{
    CaptureMode, CorrelationId, Detail, GraphId, MemoryKind, NameId, OpInput, OpKind, ProcessIdx, StreamIdx,
};

/// What every row of device work tells.
struct Work {
    start: i64,
    end: i64,
    process: ProcessIdx,
    device: u32,
    stream: StreamIdx,
    correlation: CorrelationId,
    graph: GraphId,
    graph_node: u64,
}

impl Export<'_> {
    /// Reads what every row of device work tells. Work that belongs to no stream gets the lane of migrations.
    fn work(&mut self, row: &Row<'_>, unified: bool) -> Option<Work> {
        let process = self.lanes.process(&mut self.builder, row.int(6));
        let device = row.int(2).map_or(Some(0), |id| u32::try_from(id).ok())?;
        let context = self.lanes.context(&mut self.builder, process, device, row.small(3));
        let stream = if unified {
            Lanes::migrations(&mut self.builder, context)
        } else {
            let id = row.int(4).map_or(Some(0), |id| u32::try_from(id).ok())?;
            self.builder.stream(context, id)
        };
        let correlation = if unified { CorrelationId::NONE } else { correlation(row, 5) };
        let graph_node = row.int(7).map_or(0, i64::cast_unsigned);
        if graph_node != 0 {
            self.nodes.insert((process, correlation));
        }
        Some(Work {
            start: row.int(0)?,
            end: row.int(1).unwrap_or(0),
            process,
            device,
            stream,
            correlation,
            graph: graph(row.small(8), graph_node),
            graph_node,
        })
    }

    fn push(&mut self, work: &Work, kind: OpKind, name: NameId, bytes: u64, detail: Detail) {
        self.builder.push_op(OpInput {
            start: work.start,
            end: work.end,
            stream: work.stream,
            kind,
            name,
            correlation: work.correlation,
            bytes,
            graph: work.graph,
            graph_node: work.graph_node,
            detail,
        });
    }

    pub(super) fn kernels(&mut self) -> Result<(), ImportError> {
        let columns = with(&[
            "demangledName",
            "shortName",
            "mangledName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "clusterX",
            "clusterY",
            "clusterZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
        ]);
        self.each(KERNELS, &columns, |export, row| {
            let work = export.work(row, false)?;
            let name = match [9, 11, 10].into_iter().find_map(|column| row.int(column)) {
                Some(id) => export.strings.name(&mut export.builder, id),
                None => export.builder.name("(kernel without a name)"),
            };
            let number = |column: usize| row.small(column).unwrap_or(0);
            let detail = Detail::Kernel {
                grid: [number(12), number(13), number(14)],
                block: [number(15), number(16), number(17)],
                cluster: [number(18), number(19), number(20)],
                registers: number(21),
                static_shared: number(22),
                dynamic_shared: number(23),
            };
            export.push(&work, OpKind::Kernel, name, 0, detail);
            Some(())
        })
    }

    pub(super) fn copies(&mut self) -> Result<(), ImportError> {
        let columns =
            with(&["copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "bytes", "migrationCause"]);
        self.each(COPIES, &columns, |export, row| {
            let kind = row.int(9).unwrap_or(0);
            let copy = export.enums.copy(kind);
            let unified = copy.unified || row.int(15).is_some_and(|cause| cause != 0);
            let work = export.work(row, unified)?;
            let side = |kind: Option<i64>, device: Option<i64>, otherwise: MemoryKind| match (kind, device) {
                (_, Some(device)) if device != i64::from(work.device) && otherwise.on_device() => MemoryKind::Peer,
                (Some(kind), _) => export.enums.memory(kind),
                (None, _) => otherwise,
            };
            let from = side(row.int(10), row.int(12), copy.from.memory());
            let to = side(row.int(11), row.int(13), copy.to.memory());
            let name = *export.copy_names.entry((OpKind::Copy, kind, from, to)).or_insert_with(|| {
                let (prefix, direction) =
                    (if unified { "Unified memory" } else { "Memcpy" }, [copy.from.letter(), copy.to.letter()]);
                let [f, t] = direction;
                let sides = format!("({} -> {})", memory_label(from), memory_label(to));
                export.builder.name(&format!("{prefix} {f}to{t} {sides}"))
            });
            let asynchronous = unified || export.asynchronous.contains(&(work.process, work.correlation));
            let bytes = row.int(14).map_or(0, i64::cast_unsigned);
            export.push(&work, OpKind::Copy, name, bytes, Detail::Copy { from, to, asynchronous });
            Some(())
        })
    }

    pub(super) fn memsets(&mut self) -> Result<(), ImportError> {
        self.each(MEMSETS, &with(&["memKind", "bytes"]), |export, row| {
            let work = export.work(row, false)?;
            let to = row.int(9).map_or(MemoryKind::Unknown, |kind| export.enums.memory(kind));
            let key = (OpKind::Memset, 0, to, to);
            let name = *export
                .copy_names
                .entry(key)
                .or_insert_with(|| export.builder.name(&format!("Memset ({})", memory_label(to))));
            let asynchronous = export.asynchronous.contains(&(work.process, work.correlation));
            let bytes = row.int(10).map_or(0, i64::cast_unsigned);
            export.push(&work, OpKind::Memset, name, bytes, Detail::Memset { to, asynchronous });
            Some(())
        })
    }

    /// Graph launches recorded whole. One whose nodes were recorded too would count twice.
    pub(super) fn graphs(&mut self) -> Result<(), ImportError> {
        let mut whole = 0_u64;
        self.each(GRAPHS, &with(&["graphExecId"]), |export, row| {
            let mut work = export.work(row, false)?;
            if export.nodes.contains(&(work.process, work.correlation)) {
                export.notes.count(
                    [
                        "graph launch left out: its nodes are recorded one by one",
                        "graph launches left out: their nodes are recorded one by one",
                    ],
                    None,
                );
                return Some(());
            }
            whole += 1;
            let id = row.small(8).or(row.small(9)).unwrap_or(0);
            // A launch that is known to be a graph's is one, whatever number it lacks.
            work.graph = GraphId(id.max(1));
            let name = export.builder.name(&format!("graph {id}"));
            export.push(&work, OpKind::Graph, name, 0, Detail::None);
            Some(())
        })?;
        self.builder.meta.capture_mode = match (whole > 0, self.nodes.is_empty()) {
            (true, true) => CaptureMode::Graph,
            (false, false) => CaptureMode::Node,
            // Where nothing launches graphs, no node is missing.
            (false, true) if self.builder.meta.recorded.calls && !self.launches_graphs => CaptureMode::Node,
            _ => CaptureMode::Unknown,
        };
        Ok(())
    }

    pub(super) fn host_functions(&mut self) -> Result<(), ImportError> {
        self.each(HOST_FUNCTIONS, &OP, |export, row| {
            let work = export.work(row, false)?;
            let Work { start, end, stream, correlation, graph, .. } = work;
            export.builder.push_host_function(start, end, stream, correlation, graph);
            Some(())
        })
    }
}

/// The graph of an op: as told, else as the upper half of its node's number, which CUPTI numbers through.
fn graph(told: Option<u32>, node: u64) -> GraphId {
    match told {
        Some(id) if id != 0 => GraphId(id),
        _ if node == 0 => GraphId::NONE,
        _ => GraphId(((node >> 32) as u32).max(1)),
    }
}
