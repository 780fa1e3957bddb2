//! The metadata: everything but the rows.

use parquet::file::metadata::ParquetMetaData;
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;

use super::super::schema::{SCHEMA_PREFIX, VERSION, key};
use super::{TraceFileError, ensure};
use crate::trace::{Names, Ns, ProcessIdx, Trace};

/// The key-value metadata of the footer.
pub(super) struct Metadata<'f> {
    values: FxHashMap<&'f str, &'f str>,
}

impl<'f> Metadata<'f> {
    pub(super) fn of(footer: &'f ParquetMetaData) -> Result<Self, TraceFileError> {
        let pairs = footer.file_metadata().key_value_metadata().map_or(&[][..], Vec::as_slice);
        let values: FxHashMap<&str, &str> =
            pairs.iter().filter_map(|pair| Some((pair.key.as_str(), pair.value.as_deref()?))).collect();
        let Some(schema) = values.get(key::SCHEMA) else {
            return Err(TraceFileError::NotATrace(format!("its metadata has no {}", key::SCHEMA)));
        };
        match schema.strip_prefix(SCHEMA_PREFIX).and_then(|version| version.parse::<u32>().ok()) {
            Some(VERSION) => Ok(Self { values }),
            Some(version) if version > VERSION => {
                Err(TraceFileError::NewerSchema { found: (*schema).to_owned(), supported: VERSION })
            }
            _ => Err(TraceFileError::NotATrace(format!("its schema is {schema}"))),
        }
    }

    pub(super) fn json<T: DeserializeOwned>(&self, key: &'static str) -> Result<T, TraceFileError> {
        let text = self.values.get(key).copied().unwrap_or_default();
        serde_json::from_str(text).map_err(|source| TraceFileError::Metadata { key, source })
    }
}

/// Reads and checks everything but the rows.
pub(super) fn read_tables(metadata: &Metadata<'_>) -> Result<Trace, TraceFileError> {
    let mut names = Names::default();
    let strings: Vec<String> = metadata.json(key::NAMES)?;
    for text in &strings {
        names.intern(text);
    }
    ensure(names.len() == strings.len(), "a name is listed twice")?;
    let trace = Trace {
        meta: metadata.json(key::META)?,
        names,
        end: metadata.json(key::END)?,
        processes: metadata.json(key::PROCESSES)?,
        devices: metadata.json(key::DEVICES)?,
        contexts: metadata.json(key::CONTEXTS)?,
        streams: metadata.json(key::STREAMS)?,
        threads: metadata.json(key::THREADS)?,
        details: metadata.json(key::DETAILS)?,
        ..Trace::default()
    };
    ensure(trace.end >= Ns::ZERO, "it ends before it starts")?;
    ensure(trace.devices.is_sorted_by(|a, b| a.id < b.id), "its devices are not in order")?;
    let process = |process: ProcessIdx| process.index() < trace.processes.len();
    let contexts = trace.contexts.iter();
    let mut contexts = contexts.map(|context| process(context.process) && context.device.index() < trace.devices.len());
    ensure(contexts.all(|fits| fits), "a context belongs nowhere")?;
    let mut streams = trace.streams.iter();
    let fits = streams.all(|stream| {
        let context = trace.contexts.get(stream.context.index());
        context.is_some_and(|context| (context.process, context.device) == (stream.process, stream.device))
    });
    ensure(fits, "a stream does not fit its context")?;
    ensure(trace.threads.iter().all(|thread| process(thread.process)), "a thread belongs to no process")?;
    Ok(trace)
}
