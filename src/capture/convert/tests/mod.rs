//! Spools made by hand, record by record.

mod damage;
mod part;
mod processes;
mod records;
mod reuse;
mod unrecorded;

use cupti::spool::{Anchor, CallbackName, End, Header, Machine, Text, Writer};
use cupti_sys::bindings as c;

use super::trace_from_bytes;
use crate::trace::Trace;

/// CUPTI of CUDA 13.0 update 1; its record sizes are those of the buffers here.
const VERSION: u32 = 130_001;
const EPOCH: u64 = 1_764_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;
const KERNEL_NAME: u64 = 0x7000_1000;
const RANGE_NAME: u64 = 0x7000_2000;
const DEVICE_NAME: u64 = 0x7000_3000;

/// A record made by hand: its kind, its size, and fields at CUPTI's offsets.
struct Bytes(Vec<u8>);

impl Bytes {
    fn new(kind: u32, size: usize) -> Self {
        let mut bytes = vec![0; size];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        Self(bytes)
    }

    fn put(mut self, at: usize, field: &[u8]) -> Self {
        self.0[at..at + field.len()].copy_from_slice(field);
        self
    }

    fn u8(self, at: usize, value: u8) -> Self {
        self.put(at, &[value])
    }

    fn u16(self, at: usize, value: u16) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    fn u32(self, at: usize, value: u32) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    fn u64(self, at: usize, value: u64) -> Self {
        self.put(at, &value.to_le_bytes())
    }

    fn times(self, at: usize, start: u64, end: u64) -> Self {
        self.u64(at, EPOCH + start).u64(at + 8, EPOCH + end)
    }
}

fn kernel(start: u64, end: u64, stream: u32, correlation: u32) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 216)
        .u16(6, 40)
        .times(16, start, end)
        .u32(44, 1)
        .u32(48, stream)
        .u32(52, 256)
        .u32(56, 1)
        .u32(60, 1)
        .u32(64, 128)
        .u32(68, 1)
        .u32(72, 1)
        .u32(92, correlation)
        .u64(104, KERNEL_NAME)
}

fn call(start: u64, end: u64, cbid: u32, correlation: u32) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_RUNTIME, 40)
        .u32(4, cbid)
        .times(8, start, end)
        .u32(24, 4242)
        .u32(28, 4243)
        .u32(32, correlation)
}

fn sync(kind: u32, start: u64, end: u64, context: u32, stream: u32, correlation: u32) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 56)
        .u32(4, kind)
        .times(8, start, end)
        .u32(24, correlation)
        .u32(28, context)
        .u32(32, stream)
        .u32(36, u32::MAX)
        .u64(40, u64::from(u32::MAX))
}

fn marker(flags: u32, time: u64, id: u32, name: u64) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_MARKER, 56)
        .u32(4, flags)
        .u64(8, EPOCH + time)
        .u32(16, id)
        .u32(20, c::CUPTI_ACTIVITY_OBJECT_THREAD)
        .u32(24, 4242)
        .u32(28, 4243)
        .u64(40, name)
}

fn device(id: u32, uuid: u8) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_DEVICE, 184)
        .u32(44, 132)
        .u32(104, 9)
        .u32(108, 0)
        .u32(112, id)
        .put(120, &[uuid; 16])
        .u64(136, DEVICE_NAME)
}

fn context(id: u32, device: u32, null_stream: u16) -> Bytes {
    Bytes::new(c::CUPTI_ACTIVITY_KIND_CONTEXT, 32).u32(4, id).u32(8, device).u16(14, null_stream)
}

fn joined(records: &[Bytes]) -> Vec<u8> {
    records.iter().flat_map(|record| record.0.iter().copied()).collect()
}

fn header(pid: u32) -> Header {
    Header {
        recorder: "bubblescope 0.1.0".into(),
        cupti_version: VERSION,
        driver_version: 13_000,
        pid,
        exe: "/usr/bin/python3".into(),
        command_line: vec!["python3".into(), "train.py".into()],
        start_realtime_ns: EPOCH as i64,
        kinds: vec![
            c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
            c::CUPTI_ACTIVITY_KIND_RUNTIME,
            c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        ],
        machine: Machine { os: "Linux 6.8".into(), cpus: 16, ..Machine::default() },
        ..Header::default()
    }
}

fn anchor(after: i64) -> Anchor {
    Anchor {
        realtime_ns: EPOCH as i64 + after,
        monotonic_ns: 77 + after,
        cupti_ns: EPOCH + after as u64,
        uncertainty_ns: 60,
    }
}

/// A spool with these buffers, ended in order.
fn spool(header: &Header, buffers: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Writer::new(Vec::new(), header).unwrap();
    out.anchor(&anchor(0)).unwrap();
    let text = |pointer, text: &str| Text { pointer, text: text.into() };
    out.strings(0, &[text(KERNEL_NAME, "solve"), text(RANGE_NAME, "step"), text(DEVICE_NAME, "NVIDIA H200")]).unwrap();
    let name = |cbid, name: &str| CallbackName { domain: c::CUPTI_CB_DOMAIN_RUNTIME_API, cbid, name: name.into() };
    out.callback_names(&[name(211, "cudaLaunchKernel_v7000"), name(131, "cudaStreamSynchronize_v3020")]).unwrap();
    for (seq, buffer) in buffers.iter().enumerate() {
        out.buffer(seq as u64, buffer).unwrap();
    }
    out.anchor(&anchor(1_000_000)).unwrap();
    out.end(&End::default()).unwrap();
    out.into_inner()
}

fn convert(spool: &[u8]) -> Trace {
    trace_from_bytes(&[spool]).unwrap()
}
