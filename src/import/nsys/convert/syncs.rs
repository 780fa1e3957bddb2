//! Who waits for whom: synchronisations, event records, and how streams behave.

use super::super::database::Row;
use super::super::lanes::NOT_APPLICABLE;
use super::{EVENTS, Export, SYNCS, correlation, with};
use crate::import::ImportError;
use crate::trace::{ContextIdx, CorrelationId, EventInput, ProcessIdx, StreamIdx, StreamKind, SyncInput, SyncKind};

impl Export<'_> {
    pub(super) fn syncs(&mut self) -> Result<(), ImportError> {
        let columns = with(&["syncType", "deprecatedSyncType", "eventId", "eventSyncId"]);
        self.each(SYNCS, &columns, |export, row| {
            let (process, context, stream) = export.home(row);
            let event = applicable(row, 11).and_then(|id| u32::try_from(id).ok());
            let number = row.int(9).or(row.int(10));
            export.builder.push_sync(SyncInput {
                start: row.int(0)?,
                end: row.int(1)?,
                kind: sync_kind(event.is_some(), stream.is_some(), number),
                process,
                context,
                stream,
                event,
                event_sync: applicable(row, 12).map(i64::cast_unsigned),
                awaited_record: CorrelationId::NONE,
                correlation: correlation(row, 5),
            });
            Some(())
        })
    }

    pub(super) fn events(&mut self) -> Result<(), ImportError> {
        self.each(EVENTS, &with(&["timestamp", "eventId", "eventSyncId"]), |export, row| {
            let (process, context, stream) = export.home(row);
            export.builder.push_event(EventInput {
                process,
                context,
                stream,
                event: row.small(10)?,
                event_sync: applicable(row, 11).map(i64::cast_unsigned),
                device_time: row.int(9).unwrap_or(0),
                correlation: correlation(row, 5),
            });
            Some(())
        })
    }

    /// The process, context and stream of a record, as far as they apply.
    fn home(&mut self, row: &Row<'_>) -> (ProcessIdx, Option<ContextIdx>, Option<StreamIdx>) {
        let process = self.lanes.process(&mut self.builder, row.int(6));
        let id = |column: usize| applicable(row, column).and_then(|id| u32::try_from(id).ok());
        // These records know no device: nsys writes 0. Device work has told the devices of contexts.
        let context = id(3).map(|context| match self.builder.find_context(process, context) {
            Some(known) => known,
            None => self.lanes.context(&mut self.builder, process, id(2).unwrap_or(0), Some(context)),
        });
        let stream = context.and_then(|context| Some(self.builder.stream(context, id(4)?)));
        (process, context, stream)
    }

    /// How streams behave, as far as something happened on them.
    pub(super) fn streams(&mut self) -> Result<(), ImportError> {
        let columns = ["processId", "contextId", "streamId", "flag"];
        self.each(&["TARGET_INFO_CUDA_STREAM"], &columns, |export, row| {
            // `ENUM_CUPTI_STREAM_TYPE`, which is CUpti_ActivityStreamFlag.
            let kind = match row.int(3) {
                Some(1) => StreamKind::Blocking,
                Some(2) => StreamKind::NonBlocking,
                Some(3) => StreamKind::Null,
                _ => return Some(()),
            };
            export.set_kind([row.small(0), row.small(1), row.small(2)], kind);
            Some(())
        })?;
        let columns = ["processId", "contextId", "nullStreamId"];
        self.each(&["TARGET_INFO_CUDA_CONTEXT_INFO"], &columns, |export, row| {
            export.set_kind([row.small(0), row.small(1), row.small(2)], StreamKind::Null);
            Some(())
        })
    }

    fn set_kind(&mut self, [pid, context, stream]: [Option<u32>; 3], kind: StreamKind) {
        let process = pid.and_then(|pid| self.builder.find_process(pid));
        let context = process.zip(context).and_then(|(process, id)| self.builder.find_context(process, id));
        let stream = context.zip(stream).and_then(|(context, id)| self.builder.find_stream(context, id));
        if let Some(stream) = stream {
            self.builder.set_stream_kind(stream, kind);
        }
    }
}

/// An id, unless it is absent or stands for "does not apply".
fn applicable(row: &Row<'_>, column: usize) -> Option<i64> {
    row.int(column).filter(|&id| id >= 0 && id != NOT_APPLICABLE)
}

/// What was waited for. The type in the table cannot be relied on: releases of 2025 and 2026 number the same waits 2 or
/// 3. Which ids apply can: a wait for an event has no stream, and one for a stream no event (`CUpti_ActivitySynchronization2`).
const fn sync_kind(event: bool, stream: bool, number: Option<i64>) -> SyncKind {
    match (event, stream, number) {
        (true, true, Some(1)) | (true, false, _) | (false, false, Some(1)) => SyncKind::Event,
        (true, true, _) => SyncKind::StreamWaitEvent,
        (false, true, _) => SyncKind::Stream,
        (false, false, _) => SyncKind::Context,
    }
}
