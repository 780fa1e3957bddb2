//! The thread that writes the spool.

use super::file::SpoolFile;
use super::held::Held;
use super::reserve::{Change, Reserve, Stock};
use super::shared::{Message, Shared};
use super::strides::Strides;
use super::texts::Texts;
use super::{Failure, OnFault, Summary, kinds::kind, pool::Buffer};
use crate::decode::{SizeTable, record_ends};
use crate::heap;
use crate::spool::{CallbackName, Drops, End, Status, Text, Writer};
use crossbeam_channel::Receiver;
pub(super) use cupti_sys::bindings::{
    CUPTI_CB_DOMAIN_DRIVER_API as DRIVER_DOMAIN, CUPTI_CB_DOMAIN_RUNTIME_API as RUNTIME_DOMAIN,
};
use rustc_hash::FxHashSet;
use std::ffi::CStr;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A change of the heap that is smaller is not worth a chunk.
const HEAP_STEP: usize = 64 << 10;

/// Everything that thread knows.
#[derive(Debug)]
pub(super) struct Spooler {
    shared: &'static Shared,
    on_fault: OnFault,
    out: Writer<SpoolFile>,
    reserve: Reserve,
    strides: Strides,
    texts: Texts,
    new_texts: Vec<Text>,
    named: FxHashSet<(u32, u32)>,
    new_names: Vec<CallbackName>,
    seq: u64,
    summary: Summary,
    written_drops: Drops,
    held: Held,
    written_status: Status,
    /// What could not be written, and how much of that has been told.
    lost: Lost,
    told: Lost,
}

/// What the spool lacks because it could not be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lost {
    buffers: u64,
    records: u64,
}

impl Spooler {
    pub(super) fn new(
        shared: &'static Shared,
        out: Writer<SpoolFile>,
        sizes: SizeTable,
        reserve: Reserve,
        on_fault: OnFault,
    ) -> Self {
        Self {
            shared,
            on_fault,
            out,
            reserve,
            strides: Strides::new(sizes),
            texts: Texts::default(),
            new_texts: Vec::new(),
            named: FxHashSet::default(),
            new_names: Vec::new(),
            seq: 0,
            summary: Summary::default(),
            written_drops: Drops::default(),
            held: Held::default(),
            written_status: Status::default(),
            lost: Lost::default(),
            told: Lost::default(),
        }
    }

    /// Writes what arrives until it is told to stop.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            match message {
                Message::Completed { buffer, valid } => self.buffer(buffer, valid),
                Message::Tick { at, anchor, handed_out, arrived } => {
                    self.held.fetched(handed_out);
                    if let Some(anchor) = anchor {
                        self.write(|out| out.anchor(&anchor));
                    }
                    self.drops();
                    self.status();
                    self.tell_losses();
                    self.look_after_pool(at, arrived, messages.len());
                }
                Message::Note { key, json } => self.write(|out| out.note(&key, &json)),
                Message::Stop { answer } => {
                    let _ = answer.send(self.end());
                    return;
                }
            }
        }
    }

    fn look_after_pool(&mut self, at: Instant, arrived: u64, waiting: usize) {
        let pool = &self.shared.pool;
        let stock = Stock { mapped: pool.mapped(), spare: pool.ready().saturating_add(waiting) };
        match self.reserve.change(at, arrived, stock) {
            Change::None => {}
            Change::Map(count) => pool.map(count),
            Change::Unmap(count) => pool.give_up(count),
        }
    }

    fn buffer(&mut self, buffer: Buffer, valid: usize) {
        self.held.returned(buffer.number());
        let bytes = buffer.bytes(valid);
        if bytes.is_empty() {
            self.shared.pool.give_back(buffer, valid);
            return;
        }
        let before = self.summary.records;
        self.scan(bytes);
        let sizes = self.strides.take_news();
        if !sizes.is_empty() {
            self.write(|out| out.sizes(&sizes));
        }
        if !self.new_names.is_empty() {
            let names = std::mem::take(&mut self.new_names);
            self.write(|out| out.callback_names(&names));
        }
        if !self.new_texts.is_empty() {
            let texts = std::mem::take(&mut self.new_texts);
            let seq = self.seq;
            self.write(|out| out.strings(seq, &texts));
        }
        let (seq, buffered) = (self.seq, self.out.buffered());
        self.write(|out| out.buffer(seq, bytes));
        if self.summary.write_error.is_some() {
            self.summary.drops.unwritten_buffers += 1;
            self.lost.buffers += 1;
            self.lost.records += self.summary.records - before;
            // The first pieces may have been written.
            let written = usize::try_from(self.out.buffered() - buffered).unwrap_or(0);
            self.lost.records -= record_ends(self.strides.table(), &bytes[..written]).count() as u64;
            if self.told == Lost::default() {
                self.tell_losses();
            }
        } else {
            self.summary.buffers += 1;
            self.summary.bytes += bytes.len() as u64;
            self.seq += 1;
        }
        self.shared.pool.give_back(buffer, valid);
        self.drops();
    }

    /// Notes every record's texts and callback ids.
    fn scan(&mut self, bytes: &[u8]) {
        let mut offset = 0;
        while let Some((kind, stride)) = self.strides.step(&self.shared.api, bytes, offset) {
            let record = &bytes[offset..offset + stride];
            match kind {
                kind::DRIVER => self.callback(DRIVER_DOMAIN, record),
                kind::RUNTIME => self.callback(RUNTIME_DOMAIN, record),
                kind::OVERHEAD => free_overhead_data(record),
                _ => self.texts.of_record(kind, record, self.seq, &mut self.new_texts),
            }
            self.summary.records += 1;
            offset += stride;
        }
        self.summary.unread_bytes += (bytes.len() - offset) as u64;
    }

    fn callback(&mut self, domain: u32, record: &[u8]) {
        let Some(cbid) = record.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes) else {
            return;
        };
        if self.named.insert((domain, cbid))
            && let Some(name) = callback_name(&self.shared.api, domain, cbid)
        {
            self.new_names.push(CallbackName { domain, cbid, name: name.to_string_lossy().into() });
        }
    }

    /// Asks what was dropped, and writes it down when it has changed.
    fn drops(&mut self) {
        let mut dropped = 0;
        // SAFETY: an `Api` in use means that a driver is there; no context and stream 0 mean all; we hold no lock.
        let result =
            unsafe { (self.shared.api.activity_get_num_dropped_records)(std::ptr::null_mut(), 0, &raw mut dropped) };
        if result == 0 {
            self.summary.drops.records += dropped as u64;
        }
        let counts = &self.shared.counts;
        let drops = Drops {
            discarded_buffers: counts.discarded_buffers.load(Ordering::Relaxed),
            discarded_bytes: counts.discarded_bytes.load(Ordering::Relaxed),
            ..self.summary.drops
        };
        self.summary.drops = drops;
        if drops != self.written_drops {
            self.written_drops = drops;
            self.write(|out| out.drops(&drops));
        }
    }

    /// Writes down how things stand when that has changed.
    fn status(&mut self) {
        let status = Status {
            held_buffers: self.held.count(),
            off_since_ns: self.shared.off_since(),
            pool_bytes: self.shared.pool.bytes(),
            heap_bytes: heap::bytes().next_multiple_of(HEAP_STEP) as u64,
        };
        if status != self.written_status {
            self.written_status = status;
            self.write(|out| out.status(&status));
        }
    }

    /// Tells how much is lost if that has grown.
    fn tell_losses(&mut self) {
        if let Some(error) = &self.summary.write_error
            && self.told != self.lost
        {
            self.told = self.lost;
            let Lost { buffers, records } = self.lost;
            (self.on_fault)(&Failure { error, lost_buffers: buffers, lost_records: records });
        }
    }

    fn end(mut self) -> Summary {
        self.drops();
        self.tell_losses();
        self.summary.outstanding = self.shared.outstanding();
        let end =
            End { buffers: self.summary.buffers, bytes: self.summary.bytes, outstanding: self.summary.outstanding };
        self.write(|out| out.end(&end));
        self.summary
    }

    /// Writes, unless an earlier write failed.
    fn write(&mut self, write: impl FnOnce(&mut Writer<SpoolFile>) -> std::io::Result<()>) {
        if self.summary.write_error.is_none()
            && let Err(error) = write(&mut self.out)
        {
            // Half a chunk is of no use, and without it there may be room to say what happened.
            self.out.get_ref().cut(self.out.written());
            // What would be recorded from now on is lost: the program need not pay for it.
            self.shared.switch_off();
            let error = error.to_string();
            (self.on_fault)(&Failure { error: &error, lost_buffers: 0, lost_records: 0 });
            self.summary.write_error = Some(error);
        }
    }
}

/// What the library calls a callback id.
pub(super) fn callback_name(api: &cupti_sys::Api, domain: u32, cbid: u32) -> Option<&'static CStr> {
    let mut name = std::ptr::null();
    // SAFETY: an `Api` in use means that a driver is there; the pointer is valid.
    let result = unsafe { (api.get_callback_name)(domain, cbid, &raw mut name) };
    // SAFETY: on success it is a terminated string of the library, which is never unloaded.
    (result == 0 && !name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

/// Frees what an overhead record points to, as its header asks (`CUpti_ActivityOverhead3::overheadData`): a program that
/// fills its command buffer all the time would otherwise lose memory.
fn free_overhead_data(record: &[u8]) {
    const OVERHEAD_DATA: usize = 48;
    let Some(bytes) = record.get(OVERHEAD_DATA..OVERHEAD_DATA + 8).and_then(|bytes| bytes.try_into().ok()) else {
        return;
    };
    let address = usize::from_le_bytes(bytes);
    // SAFETY: the record has the field, so by the header this is null or memory from malloc that is ours to free. The
    // record is seen once.
    unsafe { libc::free(address as *mut libc::c_void) };
}
