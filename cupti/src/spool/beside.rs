//! What is known about a recording that its own process cannot have written down.

use super::{Reader, SpoolError, Writer, file_name};
use crate::inject::Fault;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The newest version of the payload this code writes and reads: a little-endian `u32`, then JSON.
const VERSION: u32 = 1;

/// What whoever collected a spool knew beside it. It follows the header of a spool that is kept, if there is anything
/// to say; readers that do not know it pass it over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beside {
    /// What went wrong with the recording of this process.
    pub fault: Option<Fault>,
    /// Processes that used CUDA at the time and are not in this spool.
    pub others: Vec<Other>,
    /// What else there is to say, one sentence each.
    pub remarks: Vec<String>,
}

/// A process that used CUDA and is not in this spool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Other {
    /// Its number, if it can be known.
    pub pid: Option<u32>,
    /// Its name; empty when unknown.
    pub name: String,
    /// The UUIDs of the devices it was on, as lower-case hexadecimal; empty when unknown.
    pub devices: Vec<String>,
    /// Why it is not in the spool, when that is known.
    pub reason: Option<String>,
    /// From when to when it used CUDA at most (`CLOCK_REALTIME`, nanoseconds), when that is known.
    pub lived: Option<(i64, i64)>,
    /// Whether it has a spool of its own, so that it is missing only where that is not read as well.
    pub has_spool: bool,
}

impl Beside {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Keeps only the last part of every absolute path, for spools that are given away.
    pub(super) fn leave_paths(&mut self) {
        let fault = self.fault.iter_mut().flat_map(Fault::texts);
        let others = self.others.iter_mut().flat_map(|other| [&mut other.name].into_iter().chain(&mut other.reason));
        for text in fault.chain(others).chain(&mut self.remarks) {
            let words = text.split(' ').map(|word| file_name(word).unwrap_or_else(|| word.to_owned()));
            *text = words.collect::<Vec<_>>().join(" ");
        }
    }
}

pub(super) fn encode(beside: &Beside) -> io::Result<Vec<u8>> {
    let mut payload = VERSION.to_le_bytes().to_vec();
    serde_json::to_writer(&mut payload, beside)?;
    Ok(payload)
}

/// `None` for a later version.
pub(super) fn decode(payload: &[u8]) -> Result<Option<Beside>, &'static str> {
    let (version, json) = payload.split_first_chunk().ok_or("it is too short")?;
    match u32::from_le_bytes(*version) {
        VERSION => serde_json::from_slice(json).map(Some).map_err(|_| "it is not the JSON it should be"),
        _ => Ok(None),
    }
}

/// Copies a spool with `beside` behind its header; all else stays as it is, also what was cut or damaged.
///
/// # Errors
/// When the source has no whole header, or one of the two fails.
pub fn annotate(mut source: impl Read, out: impl Write, beside: &Beside) -> Result<(), SpoolError> {
    let header = Reader::new(&mut source)?.header().clone();
    let unwritten = |source: io::Error| SpoolError::Write { source };
    let mut writer = Writer::new(out, &header).map_err(unwritten)?;
    writer.beside(beside).map_err(unwritten)?;
    io::copy(&mut source, &mut writer.into_inner()).map_err(unwritten)?;
    Ok(())
}
