//! One event of a trace, read without building what is not needed of it.

use super::lexer::{Lexer, Oddities, Text, Trouble, Value};
use super::number::{integer, nanoseconds, unsigned};

/// What kind of event it is, told from its category in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Category {
    /// It has none.
    #[default]
    Absent,
    Kernel,
    Copy,
    Memset,
    /// A call into a runtime or driver library.
    Call,
    Operator,
    Annotation,
    /// An NVTX range, in files that were exported here.
    Nvtx,
    Sync,
    /// The recording of a CUDA event.
    EventRecord,
    /// A host function in stream order, in files that were exported here.
    HostFunction,
    Overhead,
    /// Known, and of no use here: flow arrows, annotations projected onto the device, Python functions, spans of the
    /// profiler itself, counters.
    Unused,
    /// Not known.
    Other,
}

impl Category {
    fn of(text: &[u8]) -> Self {
        // As it is spelled since 2022.
        match text {
            b"cpu_op" => return Self::Operator,
            b"python_function" | b"ac2g" | b"fwdbwd" | b"cpu_instant_event" => return Self::Unused,
            b"cuda_runtime" | b"cuda_driver" => return Self::Call,
            b"kernel" => return Self::Kernel,
            _ => {}
        }
        let mut lower = [0; 32];
        let Some(lower) = lower.get_mut(..text.len()) else { return Self::Other };
        lower.copy_from_slice(text);
        lower.make_ascii_lowercase();
        match &*lower {
            b"" => Self::Absent,
            b"kernel" => Self::Kernel,
            b"gpu_memcpy" | b"memcpy" => Self::Copy,
            b"gpu_memset" | b"memset" => Self::Memset,
            b"cpu_op" | b"operator" => Self::Operator,
            b"user_annotation" => Self::Annotation,
            b"cuda_sync" => Self::Sync,
            b"cuda_event" => Self::EventRecord,
            b"overhead" | b"cuda_overhead" => Self::Overhead,
            b"nvtx" => Self::Nvtx,
            b"host_function" => Self::HostFunction,
            b"python_function"
            | b"ac2g"
            | b"async"
            | b"fwdbwd"
            | b"forward_backward"
            | b"cpu_instant_event"
            | b"gpu_user_annotation"
            | b"trace"
            | b"collective_comm"
            | b"gpu_pm_counter"
            | b"cuda_profiler_range" => Self::Unused,
            _ if lower.ends_with(b"runtime") || lower.ends_with(b"driver") => Self::Call,
            _ => Self::Other,
        }
    }

    /// Whether the arguments of such an event are needed, in a file that was exported here or in any other.
    const fn needs_arguments(self, own: bool) -> bool {
        own || matches!(self, Self::Absent | Self::Kernel | Self::Copy | Self::Memset | Self::Call | Self::Sync)
    }
}

/// A process or thread id: profilers write numbers, numbers in quotation marks, and names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Id<'a> {
    #[default]
    None,
    Number(i64),
    Name(Text<'a>),
}

impl<'a> Id<'a> {
    fn of(value: Value<'a>) -> Self {
        match value {
            Value::Word(word) => integer(word).map_or(Self::None, Self::Number),
            Value::Text(text) => match integer(text.raw) {
                Some(number) if text.raw.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') => {
                    Self::Number(number)
                }
                _ => Self::Name(text),
            },
            Value::Nested => Self::None,
        }
    }
}

/// A moment or a length as it stands in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Time {
    #[default]
    Absent,
    Ns(i64),
    /// Something stands there, and it is no number.
    Broken,
}

impl Time {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Word(b"null") | Value::Nested => Self::Absent,
            Value::Word(text) | Value::Text(Text { raw: text, .. }) => nanoseconds(text).map_or(Self::Broken, Self::Ns),
        }
    }
}

/// The arguments that are of use. Absent ones are `None` or 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arguments<'a> {
    pub(super) correlation: u64,
    pub(super) device: Option<u32>,
    /// The device is given, as what no device can be.
    pub(super) odd_device: bool,
    pub(super) context: Option<u32>,
    /// Negative for "none".
    pub(super) stream: Option<i64>,
    pub(super) bytes: u64,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) registers: u32,
    pub(super) shared: u32,
    pub(super) graph: u32,
    pub(super) graph_node: u64,
    pub(super) name: Option<Text<'a>>,
    pub(super) sync_kind: Option<Text<'a>>,
    pub(super) awaited_stream: Option<i64>,
    pub(super) awaited_event: Option<i64>,
    pub(super) awaited_record: Option<u64>,
    pub(super) own: OwnArguments,
}

/// The arguments that only files have which were exported here: mostly positions in the outline.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnArguments {
    pub(super) process: Option<u32>,
    pub(super) thread: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) stream: Option<u32>,
    pub(super) detail: Option<u32>,
    /// The name that is recorded, where another is shown.
    pub(super) symbol: Option<u32>,
    pub(super) whole_graph: bool,
    pub(super) result: i32,
    pub(super) event: Option<u32>,
    pub(super) event_sync: Option<u64>,
    pub(super) device_ns: Option<i64>,
}

/// One event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Event<'a> {
    /// The phase: `X` for what has a start and a length, `M` for metadata; 0 when absent.
    pub(super) phase: u8,
    pub(super) category: Category,
    /// The category as it is written.
    pub(super) category_text: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    pub(super) process: Id<'a>,
    pub(super) thread: Id<'a>,
    pub(super) start: Time,
    pub(super) length: Time,
    pub(super) arguments: Arguments<'a>,
    /// Whether it has any key at all that events have.
    pub(super) is_event: bool,
    /// What was wrong with it and read all the same.
    pub(super) oddities: Oddities,
}

/// Reads the event that stands at the lexer's position; `own` says that the file was exported here.
#[inline]
pub(super) fn event<'a>(lexer: &mut Lexer<'a>, own: bool) -> Result<Event<'a>, Trouble> {
    lexer.oddities = Oddities::default();
    let mut event = Event::default();
    lexer.enter()?;
    let mut first = true;
    while let Some(key) = lexer.key(first)? {
        first = false;
        match key {
            b"ph" => {
                if let Value::Text(text) = word(lexer)? {
                    event.phase = text.raw.first().copied().unwrap_or(0);
                    event.is_event = true;
                }
            }
            b"cat" => {
                if let Value::Text(text) = word(lexer)? {
                    event.category = Category::of(text.raw);
                    event.category_text = Some(text);
                }
            }
            b"name" => {
                if let Value::Text(text) = lexer.value()? {
                    event.name = Some(text);
                }
            }
            b"pid" => event.process = Id::of(lexer.value()?),
            b"tid" => event.thread = Id::of(lexer.value()?),
            b"ts" => event.start = Time::of(lexer.value()?),
            b"dur" => event.length = Time::of(lexer.value()?),
            b"args" if event.category.needs_arguments(own) && lexer.peek()? == b'{' => {
                arguments(lexer, &mut event.arguments, own)?;
            }
            _ => lexer.skip()?,
        }
    }
    event.oddities = lexer.oddities;
    Ok(event)
}

/// A value that only profilers write: a quotation mark in it was to end it, or another value.
fn word<'a>(lexer: &mut Lexer<'a>) -> Result<Value<'a>, Trouble> {
    match lexer.value()? {
        Value::Text(text) if text.raw.contains(&b'"') => Err(Trouble::Syntax(lexer.at())),
        value => Ok(value),
    }
}

fn arguments<'a>(lexer: &mut Lexer<'a>, into: &mut Arguments<'a>, own: bool) -> Result<(), Trouble> {
    lexer.enter()?;
    let mut first = true;
    while let Some(key) = lexer.key(first)? {
        first = false;
        match key {
            b"correlation" => into.correlation = whole(lexer.value()?).unwrap_or(0),
            b"device" => {
                let value = lexer.value()?;
                into.device = small(value);
                into.odd_device = into.device.is_none() && value != Value::Word(b"null");
            }
            b"context" => into.context = small(lexer.value()?),
            b"stream" => into.stream = signed(lexer.value()?),
            b"bytes" => into.bytes = whole(lexer.value()?).unwrap_or(0),
            b"grid" => into.grid = triple(lexer)?,
            b"block" => into.block = triple(lexer)?,
            b"registers per thread" => into.registers = small(lexer.value()?).unwrap_or(0),
            b"shared memory" => into.shared = small(lexer.value()?).unwrap_or(0),
            b"graph id" => into.graph = small(lexer.value()?).unwrap_or(0),
            b"graph node id" => into.graph_node = whole(lexer.value()?).unwrap_or(0),
            b"name" => into.name = text(lexer.value()?),
            b"cuda_sync_kind" => into.sync_kind = text(lexer.value()?),
            b"wait_on_stream" => into.awaited_stream = signed(lexer.value()?),
            b"wait_on_cuda_event_id" => into.awaited_event = signed(lexer.value()?),
            b"wait_on_cuda_event_record_corr_id" => into.awaited_record = whole(lexer.value()?),
            _ if own => own_argument(lexer, key, &mut into.own)?,
            _ => lexer.skip()?,
        }
    }
    Ok(())
}

fn own_argument(lexer: &mut Lexer<'_>, key: &[u8], into: &mut OwnArguments) -> Result<(), Trouble> {
    match key {
        b"process" => into.process = small(lexer.value()?),
        b"thread" => into.thread = small(lexer.value()?),
        b"at_context" => into.context = small(lexer.value()?),
        b"lane" => into.stream = small(lexer.value()?),
        b"detail" => into.detail = small(lexer.value()?),
        b"symbol" => into.symbol = small(lexer.value()?),
        b"whole graph" => into.whole_graph = small(lexer.value()?) == Some(1),
        b"result" => into.result = signed(lexer.value()?).and_then(|value| value.try_into().ok()).unwrap_or(0),
        b"event_id" => into.event = small(lexer.value()?),
        b"event_sync" => into.event_sync = whole(lexer.value()?),
        b"device_ns" => into.device_ns = signed(lexer.value()?),
        _ => lexer.skip()?,
    }
    Ok(())
}

fn text(value: Value<'_>) -> Option<Text<'_>> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn digits(value: Value<'_>) -> &[u8] {
    match value {
        Value::Word(word) => word,
        Value::Text(text) => text.raw,
        Value::Nested => &[],
    }
}

fn signed(value: Value<'_>) -> Option<i64> {
    integer(digits(value))
}

/// A number that is not negative.
fn whole(value: Value<'_>) -> Option<u64> {
    let digits = digits(value);
    if digits.first() == Some(&b'-') { None } else { unsigned(digits) }
}

fn small(value: Value<'_>) -> Option<u32> {
    whole(value).and_then(|number| u32::try_from(number).ok())
}

fn triple(lexer: &mut Lexer<'_>) -> Result<[u32; 3], Trouble> {
    Ok(lexer.words::<3>()?.map(|word| unsigned(word).and_then(|number| number.try_into().ok()).unwrap_or(0)))
}

/// The keys by which an event is known when the text around it is damaged.
const EVENT_KEYS: [&[u8]; 10] = [b"ph", b"name", b"cat", b"pid", b"tid", b"ts", b"dur", b"id", b"args", b"s"];
/// No event begins with a longer stretch of white space, brace and key.
const BEGINNING: usize = 64;

/// What [`next_event`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An event seems to begin here.
    At(usize),
    /// None before this position, and what follows is too little to tell.
    NoneBefore(usize),
}

/// The next place from `from` on where an event seems to begin: an opening brace behind a comma or another bracket, and
/// then a key that events have. `before` is what stands before the text, and `last` says that nothing follows it.
pub(super) fn next_event(text: &[u8], from: usize, before: Option<u8>, last: bool) -> Found {
    let tail = text.len().saturating_sub(BEGINNING);
    for at in memchr::memchr_iter(b'{', text.get(from..).unwrap_or(&[])) {
        let at = from + at;
        let before = text[..at].trim_ascii_end().last().copied().or(before);
        if before.is_some_and(|byte| !matches!(byte, b',' | b'[' | b'}')) {
            continue;
        }
        if begins_with_key(text[at + 1..].trim_ascii_start()) {
            return Found::At(at);
        }
        if at >= tail && !last {
            return Found::NoneBefore(at);
        }
    }
    Found::NoneBefore(text.len())
}

/// Whether the text begins with a key that events have.
pub(super) fn begins_with_key(text: &[u8]) -> bool {
    let Some(key) = text.strip_prefix(b"\"") else { return false };
    let Some(len) = key.iter().take(8).position(|&byte| byte == b'"') else { return false };
    EVENT_KEYS.contains(&&key[..len]) && key[len + 1..].trim_ascii_start().starts_with(b":")
}
