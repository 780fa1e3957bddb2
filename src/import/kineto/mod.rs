//! Reads the traces of PyTorch's profiler (Kineto): JSON in the form that chrome://tracing defined, as written since
//! 2021, plain or gzip.
//!
//! The text is read once, through a window that moves along it, so that memory follows the events that are kept. Where
//! it is damaged, reading goes on at the next event: an event that a tolerant second look can read is read, any other
//! is counted as lost.
//!
//! | in the file | in the trace |
//! |---|---|
//! | `kernel`, `gpu_memcpy`, `gpu_memset` | ops |
//! | `cuda_runtime`, `cuda_driver`, any other `…runtime` or `…driver` | API calls |
//! | `cpu_op`, `user_annotation`, `nvtx` | ranges |
//! | `cuda_sync` | synchronisations, and the event records that they name |
//! | `overhead` | overheads |
//! | anything else | nothing |
//!
//! Categories count in any case, and so do their names of 2021 (`Kernel`, `Memcpy`, `Runtime`, `Operator`). Python
//! functions are left out: there are several for each operator, and the operators and annotations name the place.
//! Rows of annotations on the device are no device work.
//!
//! A row of device work tells its device and no process. It belongs to the process that used its correlation id; where
//! several did, to the one whose device it is, else to the one that called last before it.
//!
//! A file that was [exported](crate::export::chrome()) here tells all that the trace held, and becomes that trace again.

mod collect;
mod event;
mod finish;
mod header;
mod lexer;
mod number;
mod own;
mod window;

use std::io::{self, Read};

use super::{ImportError, Notes};
use crate::import::notes::Kind;
use crate::progress::{Cancelled, Unwatched, Watch, Watched, was_cancelled};
use crate::report::text::counted;
use crate::trace::Trace;
use collect::Collector;
use event::{Found, event, next_event};
use header::Header;
use lexer::{Lexer, Oddity, Trouble};
use window::{Gunzip, Window};

/// The longest event that is read.
const MAX_EVENT: usize = 4 << 20;
/// The longest value beside the events that is read.
const MAX_VALUE: usize = 64 << 20;
/// The longest outline of a trace that was exported here: it holds all names, of which there may be millions.
const MAX_OUTLINE: usize = 1 << 30;

/// Whether a file that begins like this may be read here: it is JSON.
pub fn is_json(head: &[u8]) -> bool {
    matches!(without_mark(head).trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Whether a file that begins like this is gzip.
pub fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Makes a trace of JSON text, plain or gzip.
///
/// # Errors
/// When it is no trace, or nothing of it can be read.
pub fn read(source: impl Read) -> Result<Trace, ImportError> {
    read_watched(source, 0, &Unwatched)
}

/// The same of a text of `bytes` bytes, as it stands in its file, while somebody waits for it.
///
/// # Errors
/// As [`read`], and when it is cancelled.
pub fn read_watched(source: impl Read, bytes: u64, watch: &dyn Watch) -> Result<Trace, ImportError> {
    let mut source = Watched::new(source, 0, bytes, watch);
    let mut head = Vec::new();
    source.by_ref().take(2).read_to_end(&mut head).map_err(|source| ImportError::Read { at: 0, source })?;
    let gzip = is_gzip(&head);
    let whole = io::Cursor::new(head).chain(source);
    if gzip {
        Reader::new(Window::new(Gunzip::new(whole)), watch).read()
    } else {
        Reader::new(Window::new(whole), watch).read()
    }
}

/// Where in the text the window stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first byte.
    Start,
    /// Among the keys of the outermost object; `first` before any of them.
    Top { first: bool },
    /// In the list of events.
    Events,
    /// Behind damage, looking for the next event.
    Lost,
}

/// How a step ended.
enum Step {
    /// There is more to do.
    Go,
    /// What stands at the reader's position needs more text.
    More,
    /// What stands here cannot be read.
    Fault(usize),
    /// The outermost value is closed.
    Closed,
    /// The text was read.
    Done,
}

struct Reader<'w, R> {
    window: Window<R>,
    watch: &'w dyn Watch,
    at: usize,
    place: Place,
    /// Whether the outermost value is a list of events.
    bare: bool,
    /// Whether a list of events was found.
    found_events: bool,
    header: Header,
    collector: Collector,
    notes: Notes,
    lost: u64,
    damaged_at: Option<u64>,
    longest_value: usize,
}

impl<'w, R: Read> Reader<'w, R> {
    fn new(window: Window<R>, watch: &'w dyn Watch) -> Self {
        Self {
            window,
            watch,
            at: 0,
            place: Place::Start,
            bare: false,
            found_events: false,
            header: Header::default(),
            collector: Collector::new(),
            notes: Notes::new(),
            lost: 0,
            damaged_at: None,
            longest_value: MAX_VALUE,
        }
    }

    fn read(mut self) -> Result<Trace, ImportError> {
        self.window.advance(0);
        loop {
            let step = match self.place {
                Place::Start => self.start()?,
                Place::Top { first } => self.top(first),
                Place::Events => self.events(),
                Place::Lost => self.search(),
            };
            let step = match step {
                Step::More if self.window.is_last() => self.end_of_text(),
                Step::More if self.window.text().len() - self.at > self.longest() => self.fault(self.at),
                Step::Fault(at) => self.fault(at),
                step => step,
            };
            match step {
                Step::More => {
                    self.window.advance(self.at);
                    self.at = 0;
                }
                Step::Closed => {
                    self.behind();
                    return self.finish();
                }
                Step::Done => return self.finish(),
                Step::Go | Step::Fault(_) => {}
            }
        }
    }

    fn position(&self, at: usize) -> u64 {
        self.window.base() + at as u64
    }

    fn longest(&self) -> usize {
        let Place::Top { first } = self.place else { return MAX_EVENT };
        match Lexer::new(self.window.text(), self.at).key(first) {
            Ok(Some(own::OUTLINE_KEY)) => MAX_OUTLINE,
            _ => self.longest_value,
        }
    }

    /// Steps into the outermost value.
    fn start(&mut self) -> Result<Step, ImportError> {
        let text = self.window.text();
        let mut lexer = Lexer::new(text, text.len() - without_mark(text).len());
        match lexer.peek() {
            Ok(b'{') => {
                lexer.step();
                self.place = Place::Top { first: true };
            }
            Ok(b'[') => {
                lexer.step();
                (self.place, self.bare, self.found_events) = (Place::Events, true, true);
            }
            Err(Trouble::More) if !self.window.is_last() => {
                self.at = lexer.at();
                return Ok(Step::More);
            }
            Err(_) => {
                return Err(match self.window.take_failure() {
                    Some(source) => ImportError::Read { at: self.position(0), source },
                    None => ImportError::NotARecording("it holds no text".to_owned()),
                });
            }
            Ok(_) => return Err(ImportError::NotARecording("it is no JSON".to_owned())),
        }
        self.at = lexer.at();
        Ok(Step::Go)
    }

    /// Reads one key of the outermost object and its value.
    fn top(&mut self, first: bool) -> Step {
        let mut lexer = Lexer::new(self.window.text(), self.at);
        let step = match lexer.key(first) {
            Ok(None) => {
                self.at = lexer.at();
                return Step::Closed;
            }
            Ok(Some(key)) => match lexer.peek() {
                Ok(b'[') if key == b"traceEvents" => {
                    lexer.step();
                    (self.place, self.found_events, self.at) = (Place::Events, true, lexer.at());
                    return Step::Go;
                }
                Ok(_) => {
                    let from = lexer.at();
                    lexer.skip().map(|()| match &self.window.text()[from..lexer.at()] {
                        outline if key == own::OUTLINE_KEY => self.collector.restore(outline, &mut self.notes),
                        value => self.header.take(key, value),
                    })
                }
                Err(trouble) => Err(trouble),
            },
            Err(trouble) => Err(trouble),
        };
        match step {
            Ok(()) => {
                self.at = lexer.at();
                self.place = Place::Top { first: false };
                Step::Go
            }
            Err(Trouble::More) => Step::More,
            Err(Trouble::Syntax(at)) => Step::Fault(at),
        }
    }

    /// Reads events to the end of their list or of the window.
    fn events(&mut self) -> Step {
        let (text, base) = (self.window.text(), self.window.base());
        let mut lexer = Lexer::new(text, self.at);
        loop {
            let Ok(byte) = lexer.peek() else {
                self.at = lexer.at();
                return Step::More;
            };
            let from = lexer.at();
            let read = match byte {
                b',' => {
                    lexer.step();
                    continue;
                }
                b']' if self.bare => {
                    lexer.step();
                    return match lexer.peek() {
                        Err(_) if self.window.is_last() => {
                            self.at = lexer.at();
                            Step::Closed
                        }
                        Err(_) => {
                            self.at = from;
                            Step::More
                        }
                        // Inside a damaged event, an inner list may have ended.
                        Ok(_) => Step::Fault(lexer.at()),
                    };
                }
                b']' => {
                    lexer.step();
                    self.at = lexer.at();
                    self.place = Place::Top { first: false };
                    return Step::Go;
                }
                b'{' => event(&mut lexer, self.collector.is_own())
                    .map(|event| self.collector.take(&event, base + from as u64, &mut self.notes)),
                _ => lexer.skip(),
            };
            match read {
                Ok(()) => {}
                Err(Trouble::More) => {
                    self.at = from;
                    return Step::More;
                }
                Err(Trouble::Syntax(_)) => return Step::Fault(from),
            }
        }
    }

    /// Gets over something at `from` that cannot be read.
    fn fault(&mut self, from: usize) -> Step {
        if matches!(self.place, Place::Top { .. }) {
            let what = if self.found_events {
                ["stretch of damaged text behind the events", "stretches of damaged text behind the events"]
            } else {
                ["stretch of damaged text before the events", "stretches of damaged text before the events"]
            };
            let position = self.position(from);
            self.notes.count(what, Some(position));
            (self.place, self.at) = (Place::Lost, from);
            return Step::Go;
        }
        let (text, last) = (self.window.text(), self.window.is_last());
        let full = text.len() - from > MAX_EVENT;
        let (end, next) = match next_event(text, from + 1, self.window.before(), last) {
            Found::At(at) => (at, Some(at)),
            Found::NoneBefore(_) if last => (text.len(), None),
            Found::NoneBefore(at) if full => (at, None),
            Found::NoneBefore(_) => {
                self.at = from;
                return Step::More;
            }
        };
        let mut lexer = Lexer::loose(&text[..end], from);
        let read = event(&mut lexer, self.collector.is_own());
        let position = self.window.base() + from as u64;
        match (read, next) {
            (Ok(event), _) if event.is_event => {
                self.collector.take(&event, position, &mut self.notes);
                self.at = lexer.at();
            }
            (read, next) => {
                self.at = next.unwrap_or(end);
                if next.is_none() && last && read.is_err_and(|trouble| trouble == Trouble::More) {
                    return self.cut(position, "it ends inside an event");
                }
                self.lost += 1;
                self.notes.count(["event could not be read", "events could not be read"], Some(position));
                if next.is_none() {
                    self.place = Place::Lost;
                }
            }
        }
        Step::Go
    }

    /// Looks for the next event behind damage.
    fn search(&mut self) -> Step {
        let (before, last) = (self.window.before(), self.window.is_last());
        match next_event(self.window.text(), self.at, before, last) {
            Found::At(at) => {
                (self.at, self.place, self.found_events) = (at, Place::Events, true);
                Step::Go
            }
            Found::NoneBefore(at) => {
                self.at = at;
                Step::More
            }
        }
    }

    /// The text has ended where more was to come.
    fn end_of_text(&mut self) -> Step {
        let left = self.window.text().len() - self.at;
        match self.place {
            Place::Events if left > 0 => self.fault(self.at),
            Place::Events if self.bare && self.window.failure().is_none() => {
                // The format allows a bare list to stay open.
                self.notes.count(
                    [
                        "list of events is not closed: perhaps more was to come",
                        "lists of events are not closed: perhaps more was to come",
                    ],
                    None,
                );
                Step::Done
            }
            Place::Events | Place::Top { .. } => {
                let end = self.position(self.window.text().len());
                self.cut(end, "it ends early")
            }
            Place::Start | Place::Lost => Step::Done,
        }
    }

    /// Reads what stands behind the outermost value: the source may fail there, as one whose checksum differs does, and
    /// more than one recording may be in the file.
    fn behind(&mut self) {
        let mut more = None;
        loop {
            let is_text = |byte: &u8| !byte.is_ascii_whitespace() && *byte != 0;
            let found = self.window.text()[self.at..].iter().position(is_text);
            more = more.or(found.map(|place| self.position(self.at + place)));
            if self.window.is_last() {
                break;
            }
            self.window.advance(self.window.text().len());
            self.at = 0;
        }
        let end = self.position(self.window.text().len());
        if let Some(failure) = self.window.failure().filter(|failure| !was_cancelled(failure)) {
            self.collector.warn(format!("the file is damaged: {failure} at byte {end} of its text"));
            self.damaged_at.get_or_insert(end);
        }
        if let Some(at) = more {
            let left = counted(end - at, "byte", "bytes");
            self.collector
                .warn(format!("{left} of text behind the end of the recording, from byte {at} on, were not read"));
            self.damaged_at.get_or_insert(at);
        }
    }

    fn cut(&mut self, at: u64, how: &str) -> Step {
        let why = self.window.failure().map_or_else(String::new, |failure| format!(" ({failure})"));
        self.collector.warn(format!("the file was cut: {how} at byte {at} of its text{why}"));
        self.damaged_at.get_or_insert(at);
        Step::Done
    }

    fn finish(self) -> Result<Trace, ImportError> {
        if self.window.failure().is_some_and(was_cancelled) {
            return Err(Cancelled.into());
        }
        if !self.found_events {
            return Err(match (self.window.failure(), self.damaged_at, self.notes.sentences().next()) {
                (Some(failure), ..) => ImportError::Damaged(failure.to_string()),
                (None, Some(at), _) => ImportError::Damaged(format!("its JSON ends at byte {at} before any event")),
                (None, None, Some(note)) => ImportError::Damaged(note),
                (None, None, None) => ImportError::NotARecording(self.header.what_it_is()),
            });
        }
        self.collector.finish(&self.header, self.notes, self.lost, self.damaged_at, self.watch)
    }
}

/// What is said of an event that is no JSON and was read all the same.
const fn sentence(oddity: Oddity) -> Kind {
    match oddity {
        Oddity::Control => [
            "event with a control character inside a string: read as it stands",
            "events with a control character inside a string: read as it stands",
        ],
        Oddity::Escape => [
            "event with a backslash that escapes nothing: read as it stands",
            "events with a backslash that escapes nothing: read as it stands",
        ],
        Oddity::Utf8 => [
            "event with bytes that are no UTF-8: read with a replacement character",
            "events with bytes that are no UTF-8: read with a replacement character",
        ],
        Oddity::NotANumber => [
            "event with NaN or Infinity in the place of a number: read without it",
            "events with NaN or Infinity in the place of a number: read without it",
        ],
        Oddity::Quote => [
            "event with quotation marks inside a string that are not escaped: read as they stand",
            "events with quotation marks inside a string that are not escaped: read as they stand",
        ],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::Analysis;
    use crate::export::chrome;
    use crate::trace::{CallInput, CorrelationId, TraceBuilder};

    /// A trace may have millions of names.
    #[test]
    fn the_outline_may_be_longer_than_other_values() {
        let mut builder = TraceBuilder::new();
        let process = builder.process(7);
        let (thread, name) = (builder.thread(process, 7), builder.name(&"x".repeat(1_000)));
        builder.push_call(CallInput { start: 5, end: 9, thread, name, correlation: CorrelationId(1), result: 0 });
        let trace = builder.finish().unwrap();
        let mut text = Vec::new();
        chrome(&trace, &Analysis::default(), &mut text).unwrap();
        let mut reader = Reader::new(Window::of(&*text, 16), &Unwatched);
        reader.longest_value = 100;
        assert_eq!(reader.read().unwrap(), trace);
    }

    /// A trace, some of whose bytes are changed.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let pair = |index: i64| {
            let (start, end) = (index * 40, index * 40 + 10);
            format!(
                r#"{{"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": {start}, "dur": 5,
                "args": {{"correlation": {index}}}}},
                {{"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": {end}, "dur": 20,
                "args": {{"device": 0, "stream": 7, "correlation": {index}, "grid": [1, 2, 3]}}}}"#
            )
        };
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
        (1..5i64, changes).prop_map(move |(count, changes)| {
            let events: Vec<String> = (1..=count).map(pair).collect();
            let text = format!("{{\"a\": [1, {{}}], \"traceEvents\": [{}], \"b\": 0}}", events.join(","));
            let mut bytes = text.into_bytes();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn the_window_does_not_show_in_what_is_read(text in text(), chunk in 1..200usize) {
            let whole = Reader::new(Window::new(&*text), &Unwatched).read();
            let parts = Reader::new(Window::of(&*text, chunk), &Unwatched).read();
            match (whole, parts) {
                (Ok(whole), Ok(parts)) => prop_assert_eq!(whole, parts),
                (Err(whole), Err(parts)) => prop_assert_eq!(whole.to_string(), parts.to_string()),
                (whole, parts) => prop_assert!(false, "{:?} and {:?}", whole, parts),
            }
        }
    }
}
