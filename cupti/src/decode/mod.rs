//! Reads CUPTI's activity buffers without CUPTI.
//!
//! A buffer is a row of records, each starting with its kind. [`SizeTable`] knows how long a record of each kind is in
//! the CUPTI that wrote it; [`records`] steps through a buffer by it and decodes the kinds that matter. Newer CUPTIs
//! append fields to a record, so a field is read if the record is long enough to have it. Nothing here trusts the
//! bytes: whatever they are, decoding ends, and [`DecodeSummary`] says how much of them was understood.
//!
//! ```
//! # use cupti::decode::{Record, SizeTable, records};
//! let table = SizeTable::for_version(130_001);
//! # let buffer: &[u8] = &[];
//! let mut busy_ns = 0;
//! let mut records = records(&table, buffer);
//! for record in &mut records {
//!     if let Record::Kernel(kernel) = record {
//!         busy_ns += kernel.end.saturating_sub(kernel.start);
//!     }
//! }
//! assert_eq!(records.summary().fault, None);
//! ```

mod correlation;
mod field;
mod layout;
mod records;
mod sizes;
mod walk;

pub use correlation::CorrelationExtender;
pub use field::{ApiDomain, ObjectId, StringPtr};
pub use records::{
    ApiCall, Context, CudaEvent, Device, DeviceGraphTrace, ExternalCorrelation, GraphHostNode, GraphTrace, HostLaunch,
    Jit, Kernel, Marker, MarkerData, Memcpy, MemcpyPeer, Memory, Memset, Name, Overhead, Stream, Synchronization,
};
pub use sizes::SizeTable;
pub use walk::{Fault, FaultReason};

use std::collections::BTreeMap;

use cupti_sys::bindings as c;
use field::Field;
use walk::Walk;

/// What stands in an id that does not apply, in [`Synchronization`] (`CUPTI_SYNCHRONIZATION_INVALID_VALUE`).
pub const NOT_APPLICABLE: u32 = u32::MAX;

/// One decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is described at the type it holds")]
pub enum Record {
    Kernel(Kernel),
    Memcpy(Memcpy),
    MemcpyPeer(MemcpyPeer),
    Memset(Memset),
    Api(ApiCall),
    Synchronization(Synchronization),
    CudaEvent(CudaEvent),
    GraphTrace(GraphTrace),
    DeviceGraphTrace(DeviceGraphTrace),
    Overhead(Overhead),
    Context(Context),
    Stream(Stream),
    Device(Device),
    Marker(Marker),
    MarkerData(MarkerData),
    ExternalCorrelation(ExternalCorrelation),
    Jit(Jit),
    HostLaunch(HostLaunch),
    GraphHostNode(GraphHostNode),
    Name(Name),
    Memory(Memory),
}

impl Record {
    /// Decodes one record of `kind`. `None` if the kind is not one of the variants, or if the record is shorter than
    /// any CUPTI since 12.0 writes it.
    #[inline(always)]
    fn decode(kind: u32, bytes: &[u8]) -> Option<Self> {
        match kind {
            c::CUPTI_ACTIVITY_KIND_KERNEL | c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL => {
                Kernel::decode(bytes).map(Self::Kernel)
            }
            c::CUPTI_ACTIVITY_KIND_MEMCPY => Memcpy::decode(bytes).map(Self::Memcpy),
            c::CUPTI_ACTIVITY_KIND_MEMCPY2 => MemcpyPeer::decode(bytes).map(Self::MemcpyPeer),
            c::CUPTI_ACTIVITY_KIND_MEMSET => Memset::decode(bytes).map(Self::Memset),
            c::CUPTI_ACTIVITY_KIND_RUNTIME
            | c::CUPTI_ACTIVITY_KIND_DRIVER
            | c::CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API => ApiCall::decode(bytes).map(Self::Api),
            c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION => Synchronization::decode(bytes).map(Self::Synchronization),
            c::CUPTI_ACTIVITY_KIND_CUDA_EVENT => CudaEvent::decode(bytes).map(Self::CudaEvent),
            c::CUPTI_ACTIVITY_KIND_GRAPH_TRACE => GraphTrace::decode(bytes).map(Self::GraphTrace),
            c::CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE => DeviceGraphTrace::decode(bytes).map(Self::DeviceGraphTrace),
            c::CUPTI_ACTIVITY_KIND_OVERHEAD => Overhead::decode(bytes).map(Self::Overhead),
            c::CUPTI_ACTIVITY_KIND_CONTEXT => Context::decode(bytes).map(Self::Context),
            c::CUPTI_ACTIVITY_KIND_STREAM => Stream::decode(bytes).map(Self::Stream),
            c::CUPTI_ACTIVITY_KIND_DEVICE => Device::decode(bytes).map(Self::Device),
            c::CUPTI_ACTIVITY_KIND_MARKER => Marker::decode(bytes).map(Self::Marker),
            c::CUPTI_ACTIVITY_KIND_MARKER_DATA => MarkerData::decode(bytes).map(Self::MarkerData),
            c::CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION => {
                ExternalCorrelation::decode(bytes).map(Self::ExternalCorrelation)
            }
            c::CUPTI_ACTIVITY_KIND_JIT => Jit::decode(bytes).map(Self::Jit),
            c::CUPTI_ACTIVITY_KIND_HOST_LAUNCH => HostLaunch::decode(bytes).map(Self::HostLaunch),
            c::CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE => GraphHostNode::decode(bytes).map(Self::GraphHostNode),
            c::CUPTI_ACTIVITY_KIND_NAME => Name::decode(bytes).map(Self::Name),
            c::CUPTI_ACTIVITY_KIND_MEMORY2 => Memory::decode(bytes).map(Self::Memory),
            _ => None,
        }
    }
}

/// Decodes the records of one buffer that was written by the CUPTI of `table`.
pub fn records<'a>(table: &'a SizeTable, buffer: &'a [u8]) -> Records<'a> {
    Records { walk: Walk::new(table, buffer), records: 0, skipped: BTreeMap::new() }
}

/// Where each record of a buffer ends, up to one that cannot be stepped over.
pub(crate) fn record_ends<'a>(table: &'a SizeTable, buffer: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut end = 0;
    Walk::new(table, buffer).map(move |(_, record)| {
        end += record.len();
        end
    })
}

/// The records of one buffer, in the order in which they stand there; made by [`records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    walk: Walk<'a>,
    records: u64,
    skipped: BTreeMap<u32, u64>,
}

impl Records<'_> {
    /// What was read so far; after the last record, of the whole buffer.
    pub fn summary(&self) -> DecodeSummary {
        DecodeSummary {
            records: self.records,
            skipped: self.skipped.clone(),
            fault: self.walk.fault(),
            unread_bytes: self.walk.unread(),
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        loop {
            let (kind, bytes) = self.walk.next()?;
            if let Some(record) = Record::decode(kind, bytes) {
                self.records += 1;
                return Some(record);
            }
            *self.skipped.entry(kind).or_default() += 1;
        }
    }
}

impl std::iter::FusedIterator for Records<'_> {}

/// How much of a buffer was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodeSummary {
    /// Records that were decoded.
    pub records: u64,
    /// Records that were stepped over, by kind: their size is known, but their fields are of no use here.
    pub skipped: BTreeMap<u32, u64>,
    /// Why decoding ended before the end of the buffer, if it did.
    pub fault: Option<Fault>,
    /// Bytes from the fault to the end of the buffer.
    pub unread_bytes: u64,
}

/// Every text pointer of one record that is not null: the fields of type [`StringPtr`] of [`records`], without decoding
/// the rest. A recorder has to read the texts behind them while the recorded process has them. A record
/// of a length other than its CUPTI's gives pointers that are none, so nothing may follow them blindly.
pub fn strings(kind: u32, record: &[u8]) -> impl Iterator<Item = StringPtr> {
    string_offsets(kind).iter().map(|&at| StringPtr::read(record, at)).filter(|pointer| !pointer.is_null())
}

/// Where a record of `kind` has pointers to texts. One that a record is too short for reads as null.
fn string_offsets(kind: u32) -> &'static [usize] {
    match kind {
        c::CUPTI_ACTIVITY_KIND_KERNEL | c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL => &[104],
        c::CUPTI_ACTIVITY_KIND_DEVICE => &[136],
        c::CUPTI_ACTIVITY_KIND_NAME => &[24],
        c::CUPTI_ACTIVITY_KIND_MARKER => &[40, 48],
        c::CUPTI_ACTIVITY_KIND_MEMORY2 => &[64, 120],
        c::CUPTI_ACTIVITY_KIND_JIT => &[56],
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
