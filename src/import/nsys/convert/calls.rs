//! Calls of the runtime and the driver.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CALLS, Export, correlation};
use crate::import::ImportError;
use crate::trace::{ApiKind, CallInput, CorrelationId, NameId, ProcessIdx};

/// The event class of calls that were recorded once more with the stack they came from (`ENUM_NSYS_EVENT_CLASS`).
const BACKTRACE: i64 = 67;

impl Export<'_> {
    pub(super) fn calls(&mut self) -> Result<(), ImportError> {
        const COLUMNS: [&str; 7] =
            ["start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"];
        let mut async_names: FxHashMap<NameId, bool> = FxHashMap::default();
        let mut repeats: Vec<(ProcessIdx, CallInput)> = Vec::new();
        self.each(CALLS, &COLUMNS, |export, row| {
            let (process, thread) = export.lanes.thread(&mut export.builder, row.int(2));
            let name = match row.int(4) {
                Some(id) => export.strings.name(&mut export.builder, id),
                None => export.builder.name("(call without a name)"),
            };
            let call = CallInput {
                start: row.int(0)?,
                end: row.int(1)?,
                thread,
                name,
                correlation: correlation(row, 3),
                result: row.small(5).unwrap_or(0),
            };
            if row.int(6) == Some(BACKTRACE) {
                repeats.push((process, call));
                return Some(());
            }
            let asynchronous = async_names.entry(name).or_insert_with(|| {
                let text = export.strings.text(row.int(4).unwrap_or(-1)).unwrap_or_default();
                let kind = ApiKind::of(&text);
                export.launches_graphs |= kind == ApiKind::GraphLaunch;
                matches!(kind, ApiKind::CopyAsync | ApiKind::MemsetAsync)
            });
            if *asynchronous {
                export.asynchronous.insert((process, call.correlation));
            }
            export.builder.push_call(call);
            Some(())
        })?;
        self.repeated_calls(repeats)
    }

    /// Adds calls that were only recorded with their stacks; most were recorded plainly too.
    fn repeated_calls(&mut self, repeats: Vec<(ProcessIdx, CallInput)>) -> Result<(), ImportError> {
        if repeats.is_empty() {
            return Ok(());
        }
        let mut plain: FxHashSet<(ProcessIdx, CorrelationId)> = FxHashSet::default();
        self.each(CALLS, &["globalTid", "correlationId", "eventClass"], |export, row| {
            if row.int(2) != Some(BACKTRACE) {
                plain.insert((export.lanes.process(&mut export.builder, row.int(0)), correlation(row, 1)));
            }
            Some(())
        })?;
        for (process, call) in repeats {
            if !plain.contains(&(process, call.correlation)) {
                self.builder.push_call(call);
            }
        }
        Ok(())
    }
}
