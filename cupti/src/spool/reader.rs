//! Reading a spool, whole or cut.

use super::frame::{Encoding, Growth, HEAD, Head, MAGIC, MAX_PAYLOAD, PREAMBLE, Tag};
use super::packing;
use super::{Anchor, CallbackName, Chunk, Drops, End, FORMAT_VERSION, Header, Note, RecordSize, Status, Text, beside};
use std::io::{self, Read};

/// Why a spool, or the rest of one, cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// The first bytes are not those of a spool.
    #[error("not a recording: it does not start with the first bytes of one")]
    NotASpool,
    /// Written by a newer format.
    #[error("the recording has format version {found}, this program reads up to {FORMAT_VERSION}")]
    Version {
        /// The version in the file.
        found: u32,
    },
    /// The file ends before its header is whole: there is nothing in it.
    #[error("the recording ends before its header is whole ({length} bytes)")]
    NoHeader {
        /// The length of the file.
        length: u64,
    },
    /// A chunk is damaged. What came before it is good.
    #[error("the chunk at byte {offset} is damaged: its checksum is wrong")]
    Checksum {
        /// Where the chunk starts.
        offset: u64,
    },
    /// A chunk claims a length no recorder writes.
    #[error("the chunk at byte {offset} claims {length} bytes")]
    TooLong {
        /// Where the chunk starts.
        offset: u64,
        /// What it claims.
        length: u32,
    },
    /// A chunk is whole but says nothing that can be understood.
    #[error("the chunk at byte {offset} cannot be read: {reason}")]
    Malformed {
        /// Where the chunk starts.
        offset: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The source failed.
    #[error("cannot read the recording at byte {offset}")]
    Io {
        /// Where reading failed.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// The copy of a spool cannot be written.
    #[error("cannot write the copy of the spool")]
    Write {
        /// Why.
        source: io::Error,
    },
}

impl SpoolError {
    /// Where the damaged chunk starts, if it is damage.
    pub fn damaged_at(&self) -> Option<u64> {
        match self {
            Self::Checksum { offset } | Self::TooLong { offset, .. } | Self::Malformed { offset, .. } => Some(*offset),
            Self::NotASpool | Self::Version { .. } | Self::NoHeader { .. } | Self::Io { .. } | Self::Write { .. } => {
                None
            }
        }
    }
}

/// How a spool ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the mark of a recording that was stopped in order.
    Complete,
    /// After a whole chunk, but without that mark: the recorded program was killed.
    Unfinished,
    /// Inside a chunk.
    Cut {
        /// Where that chunk starts.
        offset: u64,
        /// Bytes of it that are there.
        bytes: u64,
    },
}

/// Streams the chunks of a spool. It needs memory for one chunk, whatever lengths the file claims: memory grows with
/// what is really there, and all compressed chunks together with the file.
///
/// As an iterator it gives every whole chunk up to the end, the cut, or the first error; after an error it is done.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    offset: u64,
    header: Header,
    pub(super) stored: Vec<u8>,
    growth: Growth,
    skipped: u64,
    ending: Option<Ending>,
    done: bool,
}

/// One step of reading the frames.
enum Frame {
    Whole { offset: u64, head: Head },
    End,
    Cut { offset: u64, bytes: u64 },
}

impl<R: Read> Reader<R> {
    /// Reads the preamble and the header.
    ///
    /// # Errors
    /// When `source` is not a spool, is too new, ends before its header is whole, or cannot be read.
    pub fn new(source: R) -> Result<Self, SpoolError> {
        let mut reader = Self {
            source,
            offset: 0,
            header: Header::default(),
            stored: Vec::new(),
            growth: Growth::default(),
            skipped: 0,
            ending: None,
            done: false,
        };
        let mut preamble = [0; PREAMBLE];
        let got = reader.fill(&mut preamble)?;
        let (magic, version) = preamble.split_at(MAGIC.len());
        if got < MAGIC.len() {
            return Err(if got > 0 && MAGIC.starts_with(&magic[..got]) {
                SpoolError::NoHeader { length: reader.offset }
            } else {
                SpoolError::NotASpool
            });
        }
        if magic != MAGIC {
            return Err(SpoolError::NotASpool);
        }
        if got < PREAMBLE {
            return Err(SpoolError::NoHeader { length: reader.offset });
        }
        let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
        if version == 0 || version > FORMAT_VERSION {
            return Err(SpoolError::Version { found: version });
        }
        let Frame::Whole { offset, head } = reader.frame()? else {
            return Err(SpoolError::NoHeader { length: reader.offset });
        };
        if Tag::from_u8(head.tag) != Some(Tag::Header) {
            return Err(SpoolError::Malformed { offset, reason: "the first chunk is not a header" });
        }
        let payload = reader.payload(offset, Tag::Header, &head)?;
        reader.header = serde_json::from_slice(&payload)
            .map_err(|_| SpoolError::Malformed { offset, reason: "the header is not the JSON of a header" })?;
        Ok(reader)
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How the spool ends; `None` until the end has been reached, and after an error.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Chunks of a kind or a version this program does not know, which were passed over.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads what is left without looking at it, and gives the offset of the end.
    ///
    /// # Errors
    /// When the source fails.
    pub fn skip_rest(&mut self) -> Result<u64, SpoolError> {
        self.done = true;
        let mut piece = [0; 1 << 13];
        while self.fill(&mut piece)? > 0 {}
        Ok(self.offset)
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>, SpoolError> {
        loop {
            let (offset, head) = match self.frame()? {
                Frame::Whole { offset, head } => (offset, head),
                Frame::End => {
                    self.ending = Some(Ending::Unfinished);
                    return Ok(None);
                }
                Frame::Cut { offset, bytes } => {
                    self.ending = Some(Ending::Cut { offset, bytes });
                    return Ok(None);
                }
            };
            let Some(tag) = Tag::from_u8(head.tag) else {
                self.skipped += 1;
                continue;
            };
            let payload = self.payload(offset, tag, &head)?;
            let parsed = parse(tag, payload).map_err(|reason| SpoolError::Malformed { offset, reason })?;
            let Some(chunk) = parsed else {
                self.skipped += 1;
                continue;
            };
            if matches!(chunk, Chunk::End(_)) {
                self.ending = Some(Ending::Complete);
                self.done = true;
            }
            return Ok(Some(chunk));
        }
    }

    /// Reads one head and its stored payload into `self.stored`, and checks the sum.
    fn frame(&mut self) -> Result<Frame, SpoolError> {
        let offset = self.offset;
        let mut head = [0; HEAD];
        let got = self.fill(&mut head)?;
        if got == 0 {
            return Ok(Frame::End);
        }
        if got < HEAD {
            return Ok(Frame::Cut { offset, bytes: got as u64 });
        }
        let head = Head::from_bytes(&head);
        if let Some(length) = [head.stored, head.plain].into_iter().find(|&len| len > MAX_PAYLOAD) {
            return Err(SpoolError::TooLong { offset, length });
        }
        self.stored.clear();
        let result = (&mut self.source).take(u64::from(head.stored)).read_to_end(&mut self.stored);
        self.offset += self.stored.len() as u64;
        result.map_err(|source| SpoolError::Io { offset: self.offset, source })?;
        if self.stored.len() < head.stored as usize {
            return Ok(Frame::Cut { offset, bytes: self.offset - offset });
        }
        if head.checksum(&[&self.stored]) != head.crc {
            return Err(SpoolError::Checksum { offset });
        }
        Ok(Frame::Whole { offset, head })
    }

    /// The plain payload of the frame just read.
    fn payload(&mut self, offset: u64, tag: Tag, head: &Head) -> Result<Vec<u8>, SpoolError> {
        let malformed = |reason| SpoolError::Malformed { offset, reason };
        let encoding = Encoding::from_u8(head.encoding).ok_or(malformed("its encoding is unknown"))?;
        if encoding == Encoding::Plain && head.plain != head.stored {
            return Err(malformed("its two lengths differ"));
        }
        if head.plain > tag.longest() {
            return Err(SpoolError::TooLong { offset, length: head.plain });
        }
        self.growth = self
            .growth
            .with(head.stored, head.plain)
            .ok_or(malformed("it decompresses to more than a spool of this size can hold"))?;
        if encoding == Encoding::Plain {
            return Ok(std::mem::take(&mut self.stored));
        }
        let plain =
            packing::decompress(encoding, &self.stored, head.plain).map_err(|_| malformed("it does not decompress"))?;
        if plain.len() != head.plain as usize {
            return Err(malformed("it decompresses to another length than it says"));
        }
        Ok(plain)
    }

    /// Reads until `into` is full or the source ends; gives the number of bytes read.
    fn fill(&mut self, into: &mut [u8]) -> Result<usize, SpoolError> {
        let mut got = 0;
        while got < into.len() {
            match self.source.read(&mut into[got..]) {
                Ok(0) => break,
                Ok(n) => {
                    got += n;
                    self.offset += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(SpoolError::Io { offset: self.offset, source }),
            }
        }
        Ok(got)
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Chunk, SpoolError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_chunk().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.done = true;
        }
        next
    }
}

type Parsed<T> = Result<T, &'static str>;

/// A chunk; `None` if it is of a version that is not known here.
pub(super) fn parse(tag: Tag, payload: Vec<u8>) -> Parsed<Option<Chunk>> {
    let mut fields = Fields(&payload);
    let chunk = match tag {
        Tag::Header => return Err("a second header"),
        Tag::Buffer => {
            let seq = fields.u64()?;
            let mut bytes = payload;
            bytes.drain(..8);
            return Ok(Some(Chunk::Buffer { seq, bytes }));
        }
        Tag::Sizes => Chunk::Sizes(fields.many(|f| Ok(RecordSize { kind: f.u32()?, bytes: f.u32()? }))?),
        Tag::Strings => Chunk::Strings {
            seq: fields.u64()?,
            texts: fields.many(|f| Ok(Text { pointer: f.u64()?, text: f.text()? }))?,
        },
        Tag::CallbackNames => Chunk::CallbackNames(
            fields.many(|f| Ok(CallbackName { domain: f.u32()?, cbid: f.u32()?, name: f.text()? }))?,
        ),
        Tag::Anchor => Chunk::Anchor(Anchor {
            realtime_ns: fields.i64()?,
            monotonic_ns: fields.i64()?,
            cupti_ns: fields.u64()?,
            uncertainty_ns: fields.u32()?,
        }),
        Tag::Drops => Chunk::Drops(Drops {
            records: fields.u64()?,
            discarded_buffers: fields.u64()?,
            discarded_bytes: fields.u64()?,
            unwritten_buffers: fields.u64()?,
        }),
        Tag::Status => {
            let (held_buffers, off_since_ns) = (fields.u64()?, fields.i64()?);
            let mut added = || if fields.0.is_empty() { Ok(0) } else { fields.u64() };
            let (pool_bytes, heap_bytes) = (added()?, added()?);
            let status = Status { held_buffers, off_since_ns, pool_bytes, heap_bytes };
            // What a later recorder has added.
            fields.0 = &[];
            Chunk::Status(status)
        }
        Tag::Beside => return Ok(beside::decode(&payload)?.map(|beside| Chunk::Beside(Box::new(beside)))),
        Tag::Note => Chunk::Note(Note { key: fields.text()?, json: fields.text()? }),
        Tag::End => Chunk::End(End { buffers: fields.u64()?, bytes: fields.u64()?, outstanding: fields.u64()? }),
    };
    if fields.0.is_empty() { Ok(Some(chunk)) } else { Err("there are bytes left over") }
}

/// Takes little-endian fields off a payload.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("it is too short")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Parsed<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Parsed<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn text(&mut self) -> Parsed<Box<str>> {
        let len = self.u32()? as usize;
        let (taken, rest): (&'a [u8], _) = self.0.split_at_checked(len).ok_or("a text is too short")?;
        self.0 = rest;
        std::str::from_utf8(taken).map(Box::from).map_err(|_| "a text is not UTF-8")
    }

    /// As many `T` as there are.
    fn many<T>(&mut self, one: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut all = Vec::new();
        while !self.0.is_empty() {
            all.push(one(self)?);
        }
        Ok(all)
    }
}
