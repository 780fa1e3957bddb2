//! Numbers that nsys gives meaning to in tables of their own (`ENUM_*`), which old exports lack.

use rustc_hash::FxHashMap;

use super::database::Database;
use crate::import::ImportError;
use crate::trace::{MemoryKind, OverheadKind};

/// The meanings of one column's numbers.
pub(super) struct Enumeration {
    /// As the export gives them.
    told: FxHashMap<i64, String>,
    /// As all known versions have them, from 0.
    usual: &'static [&'static str],
}

impl Enumeration {
    fn read(database: &Database<'_>, table: &str, usual: &'static [&'static str]) -> Result<Self, ImportError> {
        let mut told = FxHashMap::default();
        if let Some(table) = database.table(table) {
            database.scan(table, &["id", "name"], |row| {
                if let (Some(id), Some(name)) = (row.int(0), row.text(1)) {
                    told.insert(id, name);
                }
            })?;
        }
        Ok(Self { told, usual })
    }

    /// The name behind a number; empty when unknown.
    fn name(&self, id: i64) -> &str {
        let usual = || usize::try_from(id).ok().and_then(|id| self.usual.get(id)).copied();
        self.told.get(&id).map(String::as_str).or_else(usual).unwrap_or("")
    }
}

/// The enumerations that matter here.
pub(super) struct Enumerations {
    copies: Enumeration,
    memory: Enumeration,
    overheads: Enumeration,
}

impl Enumerations {
    pub(super) fn read(database: &Database<'_>) -> Result<Self, ImportError> {
        Ok(Self {
            copies: Enumeration::read(
                database,
                "ENUM_CUDA_MEMCPY_OPER",
                &[
                    "UNKNOWN", "HTOD", "DTOH", "HTOA", "ATOH", "ATOA", "ATOD", "DTOA", "DTOD", "HTOH", "PTOP",
                    "UVM_HTOD", "UVM_DTOH", "UVM_DTOD",
                ],
            )?,
            memory: Enumeration::read(
                database,
                "ENUM_CUDA_MEM_KIND",
                &["PAGEABLE", "PINNED", "DEVICE", "ARRAY", "MANAGED", "DEVICE_STATIC", "MANAGED_STATIC", "UNKNOWN"],
            )?,
            overheads: Enumeration::read(
                database,
                "ENUM_CUPTI_OVERHEAD_TYPE",
                &[
                    "UNDEFINED",
                    "UNKNOWN",
                    "DRIVER_COMPILER",
                    "CUPTI_BUFFER_FLUSH",
                    "CUPTI_INSTRUMENTATION",
                    "CUPTI_RESOURCE",
                    "RUNTIME_TRIGGERED_MODULE_LOADING",
                    "LAZY_FUNCTION_LOADING",
                    "COMMAND_BUFFER_FULL",
                ],
            )?,
        })
    }

    /// What a copy is: its direction, and whether unified memory made it.
    pub(super) fn copy(&self, id: i64) -> CopyKind {
        let name = self.copies.name(id);
        let last = name.rsplit('_').next().unwrap_or("");
        let side = |at: usize| match last.as_bytes().get(at) {
            Some(b'H') => Side::Host,
            Some(b'D') => Side::Device,
            Some(b'A') => Side::Array,
            Some(b'P') => Side::Peer,
            _ => Side::Unknown,
        };
        let (from, to) = if last.len() == 4 && last.contains("TO") { (side(0), side(3)) } else { Default::default() };
        CopyKind { from, to, unified: name.contains("UVM_") }
    }

    /// Where memory lives.
    pub(super) fn memory(&self, id: i64) -> MemoryKind {
        let name = self.memory.name(id);
        let is = |kind: &str| name == kind || name.ends_with(&format!("MEMORY_KIND_{kind}"));
        if is("PAGEABLE") {
            MemoryKind::Pageable
        } else if is("PINNED") {
            MemoryKind::Pinned
        } else if is("DEVICE") || is("DEVICE_STATIC") {
            MemoryKind::Device
        } else if is("ARRAY") {
            MemoryKind::Array
        } else if is("MANAGED") || is("MANAGED_STATIC") {
            MemoryKind::Managed
        } else {
            MemoryKind::Unknown
        }
    }

    /// What made overhead.
    pub(super) fn overhead(&self, id: i64) -> OverheadKind {
        let name = self.overheads.name(id);
        let is = |kind: &str| name.ends_with(kind);
        if is("DRIVER_COMPILER") {
            OverheadKind::Compiler
        } else if is("BUFFER_FLUSH") || is("BUFFER_REQUEST") {
            OverheadKind::ProfilerBuffer
        } else if is("INSTRUMENTATION") {
            OverheadKind::ProfilerInstrumentation
        } else if is("CUPTI_RESOURCE") || is("UVM_ACTIVITY_INIT") {
            OverheadKind::ProfilerResource
        } else if is("MODULE_LOADING") {
            OverheadKind::ModuleLoading
        } else if is("LAZY_FUNCTION_LOADING") {
            OverheadKind::LazyLoading
        } else if is("COMMAND_BUFFER_FULL") {
            OverheadKind::CommandBufferFull
        } else {
            OverheadKind::Unknown
        }
    }
}

/// What a copy is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CopyKind {
    /// Where it reads.
    pub(super) from: Side,
    /// Where it writes.
    pub(super) to: Side,
    /// Whether it is a migration of unified memory, which no call asked for.
    pub(super) unified: bool,
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Side {
    #[default]
    Unknown,
    Host,
    Device,
    Array,
    Peer,
}

impl Side {
    /// The letter that profilers use.
    pub(super) const fn letter(self) -> char {
        match self {
            Self::Unknown => '?',
            Self::Host => 'H',
            Self::Device => 'D',
            Self::Array => 'A',
            Self::Peer => 'P',
        }
    }

    /// The memory at this end, as far as the direction alone tells.
    pub(super) const fn memory(self) -> MemoryKind {
        match self {
            Self::Unknown | Self::Host => MemoryKind::Unknown,
            Self::Device => MemoryKind::Device,
            Self::Array => MemoryKind::Array,
            Self::Peer => MemoryKind::Peer,
        }
    }
}

/// The name that profilers give to a kind of memory.
pub(super) const fn memory_label(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Unknown => "Unknown",
        MemoryKind::Pageable => "Pageable",
        MemoryKind::Pinned => "Pinned",
        MemoryKind::Device => "Device",
        MemoryKind::Array => "Array",
        MemoryKind::Managed => "Managed",
        MemoryKind::Peer => "Peer",
    }
}
