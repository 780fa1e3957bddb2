//! Stepping from record to record.

use super::SizeTable;

/// Why a buffer could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {reason}")]
pub struct Fault {
    /// Where the record starts that could not be read.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: FaultReason,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultReason {
    /// Its kind is 0: CUPTI gave the buffer back before it wrote the record, which a forced flush does.
    #[error("a record that was not written")]
    Unwritten,
    /// The size of its kind is not known.
    #[error("a record of unknown kind {0}")]
    UnknownKind(u32),
    /// The buffer ends inside it.
    #[error("the buffer ends inside a record of kind {0}")]
    Cut(u32),
    /// The buffer ends inside its kind.
    #[error("the buffer ends inside the kind of a record")]
    CutKind,
}

/// The records of one buffer as kinds and bytes.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    table: &'a SizeTable,
    buffer: &'a [u8],
    /// From the next record on.
    rest: &'a [u8],
    fault: Option<FaultReason>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(table: &'a SizeTable, buffer: &'a [u8]) -> Self {
        Self { table, buffer, rest: buffer, fault: None }
    }

    pub(super) fn fault(&self) -> Option<Fault> {
        let offset = (self.buffer.len() - self.rest.len()) as u64;
        self.fault.map(|reason| Fault { offset, reason })
    }

    /// Bytes that were not stepped over.
    pub(super) fn unread(&self) -> u64 {
        self.rest.len() as u64
    }

    fn step(&self) -> Result<(u32, &'a [u8], &'a [u8]), FaultReason> {
        let kind = u32::from_le_bytes(*self.rest.first_chunk().ok_or(FaultReason::CutKind)?);
        if kind == 0 {
            return Err(FaultReason::Unwritten);
        }
        let size = self.table.get(kind).ok_or(FaultReason::UnknownKind(kind))?;
        let (record, rest) = self.rest.split_at_checked(size).ok_or(FaultReason::Cut(kind))?;
        Ok((kind, record, rest))
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (u32, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.fault.is_some() {
            return None;
        }
        match self.step() {
            Ok((kind, record, rest)) => {
                self.rest = rest;
                Some((kind, record))
            }
            Err(reason) => {
                self.fault = Some(reason);
                None
            }
        }
    }
}
