//! Sentences for causes and segments.

use crate::analysis::replay::{CallSet, Change};
use crate::analysis::{Cause, SegmentKind};

/// Why a device was idle.
pub(super) fn because(cause: Cause) -> &'static str {
    match cause {
        Cause::Sync => "the host waited for the GPU before launching more",
        Cause::BlockingCopy => "the host waited in a copy before launching more",
        Cause::Allocation => "the host was allocating or freeing memory",
        Cause::ModuleLoad => "GPU code was being loaded or compiled",
        Cause::GraphBuild => "a CUDA graph was being built or changed",
        Cause::Profiler => "the profiler itself kept the host",
        Cause::HostBound => "the host ran its own code between CUDA calls",
        Cause::LaunchBound => "the GPU was faster than the host could launch",
        Cause::Dependency => "queued work waited for another stream or event",
        Cause::Dispatch => "the GPU was switching between queued work",
        Cause::GraphInternal => "the GPU was between two nodes of one graph",
        Cause::Stalled => "something not recorded held queued work",
        Cause::Unattributed => "work came whose launch was not recorded",
    }
}

/// What an idle device's time went to.
pub(super) fn meanwhile(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Profiler => "the profiler kept the host",
        SegmentKind::ModuleLoad => "GPU code was loaded or compiled",
        SegmentKind::GraphBuild => "a CUDA graph was built or changed",
        SegmentKind::Allocation => "memory was allocated or freed",
        SegmentKind::SyncReturn => "a blocking call had not returned yet",
        SegmentKind::LaunchCall => "the host was inside a launch call",
        SegmentKind::Api => "the host was inside another CUDA call",
        SegmentKind::HostCode => "the host ran its own code, outside CUDA",
        SegmentKind::LaunchLatency => "launched work was on its way to the GPU",
        SegmentKind::Dependency => "queued work waited for another stream or event",
        SegmentKind::Dispatch => "the GPU was switching to the next queued work",
        SegmentKind::GraphInternal => "between two nodes of one graph",
        SegmentKind::Stalled => "queued work was held by something not recorded",
        SegmentKind::Unattributed => "the next work's launch was not recorded",
    }
}

/// A replayed change in words, from its name in the report; the name itself when it is not known.
pub(super) fn change(name: &str) -> String {
    let Ok(change) = name.parse::<Change>() else { return name.to_owned() };
    let words = match change {
        Change::Async(CallSet::All) => "no call waits for the GPU".to_owned(),
        Change::Remove(calls) => format!("without {calls}"),
        Change::Async(calls) => format!("{calls} made asynchronous"),
        Change::Graph => "runs of launches submitted as graphs".to_owned(),
        Change::Usual(calls) => format!("{calls} as short as usual"),
        Change::NoStreamWaits => "streams that do not wait for each other's events".to_owned(),
        Change::NoDefaultStream => "no stream serialised with the legacy default stream".to_owned(),
        Change::Pinned => "pageable copies made pinned".to_owned(),
        Change::Host { millionths: 500_000 } => "host code twice as fast".to_owned(),
        Change::Host { millionths } => format!("host code takes {} × its time", f64::from(millionths) / 1e6),
        Change::NoTracer(_) => "without the cost of recording".to_owned(),
    };
    format!("{words} ({name})")
}
