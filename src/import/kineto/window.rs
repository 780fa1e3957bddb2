//! A part of a long text, moved along it.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

/// So many bytes are read at a time.
const CHUNK: usize = 1 << 20;
/// Compressed text is believed up to this length whatever it expands from.
const EXPANDED_AT_LEAST: u64 = 256 << 20;
/// Beyond it, it may be so many times as long as what it expands from. Traces compress to a tenth or twentieth.
const MOST_EXPANSION: u64 = 200;

/// The part of a text that is being read, and where it stands in it.
pub(super) struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    chunk: usize,
    base: u64,
    before: Option<u8>,
    ended: bool,
    failure: Option<io::Error>,
}

impl<R: Read> Window<R> {
    pub(super) fn new(source: R) -> Self {
        Self::of(source, CHUNK)
    }

    /// Reads so many bytes at a time.
    pub(super) fn of(source: R, chunk: usize) -> Self {
        Self { source, buffer: Vec::new(), chunk, base: 0, before: None, ended: false, failure: None }
    }

    /// The text in the window.
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer
    }

    /// Where the window begins in the whole text.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// The last byte before the window that is no white space.
    pub(super) const fn before(&self) -> Option<u8> {
        self.before
    }

    /// Whether the text ends with the window.
    pub(super) const fn is_last(&self) -> bool {
        self.ended
    }

    /// Why reading ended before the text did, if that happened.
    pub(super) const fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// The same, taken out.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Drops the first `used` bytes and reads some more behind the rest.
    pub(super) fn advance(&mut self, used: usize) {
        let used = used.min(self.buffer.len());
        self.base += used as u64;
        self.before = self.buffer[..used].trim_ascii_end().last().copied().or(self.before);
        self.buffer.drain(..used);
        if self.ended {
            return;
        }
        let kept = self.buffer.len();
        // What did not fit is at least doubled, so that a long value is not looked at again and again.
        self.buffer.resize(kept + kept.max(self.chunk), 0);
        let mut filled = kept;
        while filled < self.buffer.len() {
            match self.source.read(&mut self.buffer[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => filled += read.min(self.buffer.len() - filled),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.ended = true;
                    break;
                }
            }
        }
        self.buffer.truncate(filled);
    }
}

/// Counts the bytes that go through.
struct Counted<R> {
    source: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

/// Expands gzip, of one member or several, as long as it expands no more than a trace can.
pub(super) struct Gunzip<R: Read> {
    decoder: MultiGzDecoder<io::BufReader<Counted<R>>>,
    compressed: Rc<Cell<u64>>,
    expanded: u64,
}

impl<R: Read> Gunzip<R> {
    pub(super) fn new(source: R) -> Self {
        let compressed = Rc::new(Cell::new(0));
        let counted = Counted { source, bytes: Rc::clone(&compressed) };
        Self { decoder: MultiGzDecoder::new(io::BufReader::with_capacity(1 << 16, counted)), compressed, expanded: 0 }
    }
}

impl<R: Read> Read for Gunzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = EXPANDED_AT_LEAST.max(self.compressed.get().saturating_mul(MOST_EXPANSION));
        if self.expanded > most {
            let text = format!("it expands to more than {MOST_EXPANSION} times its length, which no recording does");
            return Err(io::Error::other(text));
        }
        let read = self.decoder.read(into)?;
        self.expanded += read as u64;
        Ok(read)
    }
}
