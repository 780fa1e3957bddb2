//! Intervals of threads besides calls: overhead and NVTX ranges.

use super::super::database::Row;
use super::{Export, OVERHEADS, PROFILER, RANGES, correlation};
use crate::import::ImportError;
use crate::trace::{OverheadKind, RangeKind};

impl Export<'_> {
    /// CUPTI's overhead, and nsys's own, all of which is the profiler's.
    pub(super) fn overheads(&mut self) -> Result<(), ImportError> {
        let columns = ["start", "end", "globalTid", "correlationId", "overheadType"];
        for (family, of_nsys) in [(OVERHEADS, false), (PROFILER, true)] {
            self.each(family, &columns, |export, row| {
                let told = row.int(4).map_or(OverheadKind::Unknown, |kind| export.enums.overhead(kind));
                let kind = if of_nsys && !told.is_profiler() { OverheadKind::ProfilerResource } else { told };
                let (start, end, correlation) = (row.int(0)?, row.int(1)?, correlation(row, 3));
                let process = export.lanes.process(&mut export.builder, row.int(2));
                let thread = row.int(2).map(|id| export.lanes.thread(&mut export.builder, Some(id)).1);
                export.builder.push_overhead(start, end, kind, process, thread, correlation);
                Some(())
            })?;
        }
        Ok(())
    }

    pub(super) fn ranges(&mut self) -> Result<(), ImportError> {
        let columns = ["start", "end", "eventType", "text", "textId", "globalTid"];
        let typed =
            RANGES.iter().find_map(|name| self.database.table(name)).is_some_and(|table| table.has("eventType"));
        self.each(RANGES, &columns, |export, row| {
            let (is_range, is_mark) = match row.int(2) {
                // `ENUM_NSYS_EVENT_TYPE`: push and pop, start and end; the second pair comes from text files.
                Some(59 | 60 | 70 | 71) => (true, false),
                Some(34 | 65) => (false, true),
                Some(39 | 72) => {
                    export.name_thread(row);
                    return Some(());
                }
                None if !typed => (row.int(1).is_some(), row.int(1).is_none()),
                _ => (false, false),
            };
            if !is_range && !is_mark {
                return Some(());
            }
            let start = row.int(0)?;
            let end = match row.int(1) {
                Some(end) => end,
                None if is_mark => start,
                None => {
                    export.notes.count(
                        [
                            "range left out: it was not closed while nsys recorded",
                            "ranges left out: they were not closed while nsys recorded",
                        ],
                        None,
                    );
                    return Some(());
                }
            };
            let (_, thread) = export.lanes.thread(&mut export.builder, row.int(5));
            let (name, kind) = match (row.text(3), row.int(4)) {
                (Some(text), _) => match operator(&text) {
                    Some(operator) => (export.builder.name(operator), RangeKind::Operator),
                    None => (export.builder.name(&text), RangeKind::Nvtx),
                },
                (None, Some(id)) => (export.strings.name(&mut export.builder, id), RangeKind::Nvtx),
                (None, None) => (export.builder.name("(range without a name)"), RangeKind::Nvtx),
            };
            export.builder.push_range(start, end, thread, name, kind);
            Some(())
        })
    }

    /// Names a thread as an NVTX event says.
    fn name_thread(&mut self, row: &Row<'_>) {
        let text = row.text(3).or_else(|| self.strings.text(row.int(4)?));
        if let (Some(text), Some(thread)) = (text, row.int(5).and_then(|id| self.lanes.known_thread(id))) {
            self.builder.set_thread_name(thread, &text);
        }
    }
}

/// The operator in a range that PyTorch's `emit_nvtx` opened: it appends numbers that differ in every call, as in
/// `aten::copy_, op_id = 317164` and `aten::mm, seq = 5, sizes = [[2, 2], [2, 2]]`.
fn operator(text: &str) -> Option<&str> {
    let at = [", seq = ", ", op_id = ", ", sizes = "].into_iter().filter_map(|mark| text.find(mark)).min()?;
    Some(&text[..at])
}
