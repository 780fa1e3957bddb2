//! Which way copies go.

use crate::trace::{Detail, MemoryKind, OpIdx, OpKind, Trace};

/// Whether an op copies to the host's memory. Where the records do not tell the memory, the name does: Kineto writes
/// `Memcpy DtoH` alone (and `CopyDeviceToHost` on AMD's GPUs), and exports of Nsight Systems may lack the memories.
pub(super) fn is_to_host(trace: &Trace, op: OpIdx) -> bool {
    match trace.op_detail(op) {
        Detail::Copy { to, .. } if to != MemoryKind::Unknown => is_host(to),
        Detail::Copy { .. } | Detail::None => says(trace, op, &["DtoH", "AtoH", "DeviceToHost"]),
        _ => false,
    }
}

/// Whether an op copies from the host's memory; see [`is_to_host`].
pub(super) fn is_from_host(trace: &Trace, op: OpIdx) -> bool {
    match trace.op_detail(op) {
        Detail::Copy { from, .. } if from != MemoryKind::Unknown => is_host(from),
        Detail::Copy { .. } | Detail::None => says(trace, op, &["HtoD", "HtoA", "HostToDevice"]),
        _ => false,
    }
}

fn is_host(memory: MemoryKind) -> bool {
    matches!(memory, MemoryKind::Pageable | MemoryKind::Pinned)
}

fn says(trace: &Trace, op: OpIdx, ways: &[&str]) -> bool {
    trace.ops.kind[op.index()] == OpKind::Copy && ways.iter().any(|way| trace.op_name(op).contains(way))
}
