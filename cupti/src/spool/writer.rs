//! Appending to a spool.

use super::frame::{Encoding, Growth, HEAD, Head, MAGIC, Tag};
use super::packing;
use super::pieces::{KEPT, RECORDED, pieces};
use super::{
    Anchor, Beside, CallbackName, Chunk, Drops, End, FORMAT_VERSION, Header, Note, RecordSize, Status, Text, beside,
};
use crate::decode::SizeTable;
use std::io::{self, IoSlice, Write};

/// Texts are written in chunks of about so many bytes.
const STRINGS_BYTES: usize = 1 << 20;

/// Writes chunks one after the other. Each chunk is handed over in one vectored write, so a buffered writer is not
/// needed; nothing is synchronised to the disk. Buffers are compressed, so that a disk keeps up with the highest rates.
///
/// After an error the spool may end in half a chunk: nothing more is written, and every later call fails.
#[derive(Debug)]
pub struct Writer<W> {
    pub(super) out: W,
    scratch: Vec<u8>,
    packed: Vec<u8>,
    written: u64,
    buffered: u64,
    growth: Growth,
    failed: bool,
    /// The sizes of the records so far.
    sizes: SizeTable,
}

impl<W: Write> Writer<W> {
    /// Starts a spool: the preamble and the header.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self {
            out,
            scratch: Vec::new(),
            packed: Vec::new(),
            written: 0,
            buffered: 0,
            growth: Growth::default(),
            failed: false,
            sizes: header.size_table(),
        };
        let mut preamble = MAGIC.to_vec();
        preamble.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        writer.out.write_all(&preamble)?;
        writer.written = preamble.len() as u64;
        let json = serde_json::to_vec(header)?;
        writer.plain(Tag::Header, &[&json])?;
        Ok(writer)
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of buffers that were written so far, as CUPTI filled them.
    pub(crate) fn buffered(&self) -> u64 {
        self.buffered
    }

    /// The writer underneath.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// The writer underneath.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Record sizes that the header does not have.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn sizes(&mut self, sizes: &[RecordSize]) -> io::Result<()> {
        self.learn(sizes);
        self.built(Tag::Sizes, Encoding::Plain, |payload| encode_sizes(payload, sizes))
    }

    /// Texts of the pointers in the buffer `seq`, which must not have been written yet.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn strings(&mut self, seq: u64, texts: &[Text]) -> io::Result<()> {
        let mut rest = texts;
        loop {
            let mut bytes = 0;
            let fits = |text: &&Text| {
                let before = bytes;
                bytes += text.text.len() + 12;
                before < STRINGS_BYTES
            };
            let (piece, after) = rest.split_at(rest.iter().take_while(fits).count());
            self.built(Tag::Strings, Encoding::Plain, |payload| encode_strings(payload, seq, piece))?;
            if after.is_empty() {
                return Ok(());
            }
            rest = after;
        }
    }

    /// The valid bytes of one buffer. They are written in pieces, of which the first ones may be there when a later one
    /// fails.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn buffer(&mut self, seq: u64, bytes: &[u8]) -> io::Result<()> {
        self.pieces(Encoding::Lz4, seq, bytes, RECORDED)
    }

    fn pieces(&mut self, encoding: Encoding, seq: u64, bytes: &[u8], about: usize) -> io::Result<()> {
        for piece in pieces(&self.sizes, bytes, about) {
            self.built(Tag::Buffer, encoding, |payload| encode_buffer(payload, seq, piece))?;
            self.buffered += piece.len() as u64;
        }
        Ok(())
    }

    fn learn(&mut self, sizes: &[RecordSize]) {
        for size in sizes {
            self.sizes.set(size.kind, size.bytes);
        }
    }

    /// Names of callback ids.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn callback_names(&mut self, names: &[CallbackName]) -> io::Result<()> {
        self.built(Tag::CallbackNames, Encoding::Plain, |payload| encode_names(payload, names))
    }

    /// One reading of the clocks.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn anchor(&mut self, anchor: &Anchor) -> io::Result<()> {
        self.built(Tag::Anchor, Encoding::Plain, |payload| encode_anchor(payload, anchor))
    }

    /// What was lost so far.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn drops(&mut self, drops: &Drops) -> io::Result<()> {
        self.built(Tag::Drops, Encoding::Plain, |payload| encode_drops(payload, drops))
    }

    /// How things stand.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn status(&mut self, status: &Status) -> io::Result<()> {
        self.built(Tag::Status, Encoding::Plain, |payload| encode_status(payload, status))
    }

    /// What whoever collected the spool knows beside it.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn beside(&mut self, beside: &Beside) -> io::Result<()> {
        let payload = beside::encode(beside)?;
        self.plain(Tag::Beside, &[&payload])
    }

    /// A free note.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn note(&mut self, key: &str, json: &str) -> io::Result<()> {
        self.built(Tag::Note, Encoding::Plain, |payload| encode_note(payload, key, json))
    }

    /// The end of a recording that was stopped in order.
    ///
    /// # Errors
    /// When the spool cannot be written.
    pub fn end(&mut self, end: &End) -> io::Result<()> {
        self.built(Tag::End, Encoding::Plain, |payload| encode_end(payload, end))?;
        self.out.flush()
    }

    /// Any chunk, as a recorder writes it.
    pub(super) fn chunk(&mut self, chunk: &Chunk) -> io::Result<()> {
        match chunk {
            Chunk::Sizes(sizes) => self.sizes(sizes),
            Chunk::Strings { seq, texts } => self.strings(*seq, texts),
            Chunk::Buffer { seq, bytes } => self.buffer(*seq, bytes),
            Chunk::CallbackNames(names) => self.callback_names(names),
            Chunk::Anchor(anchor) => self.anchor(anchor),
            Chunk::Drops(drops) => self.drops(drops),
            Chunk::Status(status) => self.status(status),
            Chunk::Beside(beside) => self.beside(beside),
            Chunk::Note(Note { key, json }) => self.note(key, json),
            Chunk::End(end) => self.end(end),
        }
    }

    /// Any chunk, compressed when that makes it smaller: for spools that are kept, not for recording.
    pub(super) fn compressed(&mut self, chunk: &Chunk) -> io::Result<()> {
        match chunk {
            Chunk::Sizes(sizes) => {
                self.learn(sizes);
                self.built(Tag::Sizes, Encoding::Zstd, |p| encode_sizes(p, sizes))
            }
            Chunk::Strings { seq, texts } => {
                self.built(Tag::Strings, Encoding::Zstd, |p| encode_strings(p, *seq, texts))
            }
            Chunk::Buffer { seq, bytes } => self.pieces(Encoding::Zstd, *seq, bytes, KEPT),
            Chunk::CallbackNames(names) => self.built(Tag::CallbackNames, Encoding::Zstd, |p| encode_names(p, names)),
            Chunk::Note(Note { key, json }) => self.built(Tag::Note, Encoding::Zstd, |p| encode_note(p, key, json)),
            // Few, and small as they are.
            Chunk::Anchor(_) | Chunk::Drops(_) | Chunk::Status(_) | Chunk::Beside(_) | Chunk::End(_) => {
                self.chunk(chunk)
            }
        }
    }

    /// Writes a chunk whose payload `build` appends to an empty buffer.
    fn built(&mut self, tag: Tag, encoding: Encoding, build: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut payload = std::mem::take(&mut self.scratch);
        payload.clear();
        build(&mut payload);
        let result = match encoding {
            Encoding::Plain => self.plain(tag, &[&payload]),
            Encoding::Zstd | Encoding::Lz4 => self.packed(tag, encoding, &payload),
        };
        self.scratch = payload;
        result
    }

    /// Writes a chunk compressed, if that makes it smaller and a reader takes it.
    fn packed(&mut self, tag: Tag, encoding: Encoding, payload: &[u8]) -> io::Result<()> {
        let mut packed = std::mem::take(&mut self.packed);
        let result = packing::compress(encoding, payload, &mut packed).and_then(|len| {
            let (plain, stored) = (checked_len(tag, payload.len())?, checked_len(tag, len.min(payload.len()))?);
            if stored == plain || self.growth.with(stored, plain).is_none() {
                return self.plain(tag, &[payload]);
            }
            let parts = [&packed[..len]];
            self.append(Head::new(tag, encoding, plain, stored, &parts), &parts)
        });
        self.packed = packed;
        result
    }

    fn plain(&mut self, tag: Tag, parts: &[&[u8]]) -> io::Result<()> {
        let len = checked_len(tag, parts.iter().map(|part| part.len()).sum())?;
        let head = Head::new(tag, Encoding::Plain, len, len, parts);
        self.append(head, parts)
    }

    fn append(&mut self, head: Head, parts: &[&[u8]]) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("the spool could not be written earlier"));
        }
        let head_bytes = head.to_bytes();
        let mut slices = Vec::with_capacity(parts.len() + 1);
        slices.push(IoSlice::new(&head_bytes));
        slices.extend(parts.iter().map(|part| IoSlice::new(part)));
        let result = write_all_vectored(&mut self.out, &mut slices);
        match result {
            Ok(()) => {
                self.written += (HEAD as u64) + u64::from(head.stored);
                self.growth = self.growth.with(head.stored, head.plain).unwrap_or(self.growth);
            }
            Err(_) => self.failed = true,
        }
        result
    }
}

fn checked_len(tag: Tag, len: usize) -> io::Result<u32> {
    u32::try_from(len)
        .ok()
        .filter(|&len| len <= tag.longest())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("a chunk of {len} bytes is too long")))
}

/// `Write::write_all_vectored`, which is not stable.
fn write_all_vectored(out: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match out.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut slices, n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn put_text(payload: &mut Vec<u8>, text: &str) {
    let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
    payload.extend_from_slice(&len.to_le_bytes());
    payload.extend_from_slice(text.as_bytes());
}

fn encode_buffer(payload: &mut Vec<u8>, seq: u64, bytes: &[u8]) {
    payload.extend_from_slice(&seq.to_le_bytes());
    payload.extend_from_slice(bytes);
}

fn encode_sizes(payload: &mut Vec<u8>, sizes: &[RecordSize]) {
    for size in sizes {
        payload.extend_from_slice(&size.kind.to_le_bytes());
        payload.extend_from_slice(&size.bytes.to_le_bytes());
    }
}

fn encode_strings(payload: &mut Vec<u8>, seq: u64, texts: &[Text]) {
    payload.extend_from_slice(&seq.to_le_bytes());
    for text in texts {
        payload.extend_from_slice(&text.pointer.to_le_bytes());
        put_text(payload, &text.text);
    }
}

fn encode_names(payload: &mut Vec<u8>, names: &[CallbackName]) {
    for name in names {
        payload.extend_from_slice(&name.domain.to_le_bytes());
        payload.extend_from_slice(&name.cbid.to_le_bytes());
        put_text(payload, &name.name);
    }
}

fn encode_anchor(payload: &mut Vec<u8>, anchor: &Anchor) {
    payload.extend_from_slice(&anchor.realtime_ns.to_le_bytes());
    payload.extend_from_slice(&anchor.monotonic_ns.to_le_bytes());
    payload.extend_from_slice(&anchor.cupti_ns.to_le_bytes());
    payload.extend_from_slice(&anchor.uncertainty_ns.to_le_bytes());
}

fn encode_drops(payload: &mut Vec<u8>, drops: &Drops) {
    for count in [drops.records, drops.discarded_buffers, drops.discarded_bytes, drops.unwritten_buffers] {
        payload.extend_from_slice(&count.to_le_bytes());
    }
}

fn encode_status(payload: &mut Vec<u8>, status: &Status) {
    payload.extend_from_slice(&status.held_buffers.to_le_bytes());
    payload.extend_from_slice(&status.off_since_ns.to_le_bytes());
    payload.extend_from_slice(&status.pool_bytes.to_le_bytes());
    payload.extend_from_slice(&status.heap_bytes.to_le_bytes());
}

fn encode_note(payload: &mut Vec<u8>, key: &str, json: &str) {
    put_text(payload, key);
    put_text(payload, json);
}

fn encode_end(payload: &mut Vec<u8>, end: &End) {
    for count in [end.buffers, end.bytes, end.outstanding] {
        payload.extend_from_slice(&count.to_le_bytes());
    }
}
