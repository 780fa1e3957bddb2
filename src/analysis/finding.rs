//! The names of findings and how much they matter. They are stable: reports and limits spell them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cause::words;

words! {
    /// A pattern that people can fix.
    FindingId {
        /// A few bytes are read back to the host again and again.
        ScalarReadback => "scalar-readback",
        /// The host waits after every launch.
        SyncAfterLaunch => "sync-after-launch",
        /// A copy that returns only when it is done, again and again.
        BlockingCopyInLoop => "blocking-copy-in-loop",
        /// An asynchronous copy of pageable memory, which waits after all.
        PageableAsyncCopy => "pageable-async-copy",
        /// Memory is allocated or freed again and again.
        AllocationInLoop => "allocation-in-loop",
        /// The legacy default stream makes other streams wait.
        DefaultStream => "default-stream",
        /// Several streams that never run at the same time.
        NoOverlap => "no-overlap",
        /// Each step waits for the program's own host code.
        HostBoundStep => "host-bound-step",
        /// Many launches of very short kernels.
        TinyLaunches => "tiny-launches",
        /// A graph is instantiated again and again.
        GraphReinstantiated => "graph-reinstantiated",
        /// Events are used to measure time in the loop.
        EventTiming => "event-timing",
        /// Code is still being loaded after warm-up.
        LazyLoading => "lazy-loading",
        /// Launches waited because the command buffer was full.
        CommandBufferFull => "command-buffer-full",
        /// The host asks again and again whether work is done.
        BusyPolling => "busy-polling",
        /// What a program does once to get ready, inside the time that was looked at.
        OneTimeSetup => "one-time-setup",
    }
}

words! {
    /// How much a finding matters, from the share of the span that it would recover.
    Severity {
        /// A tenth of the span or more.
        High => "high",
        /// At least 3 % of the span.
        Medium => "medium",
        /// Less.
        Low => "low",
    }
}

impl FindingId {
    /// Whether fixing it gains more than a replay can tell: copies of pinned memory are faster, too, and so is a launch of
    /// a graph that was launched before.
    pub const fn gains_at_least(self) -> bool {
        matches!(self, Self::PageableAsyncCopy | Self::GraphReinstantiated)
    }
}

/// A name that is no finding's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no finding `{name}`; there are {}", FindingId::ALL.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownFinding {
    /// The name.
    pub name: String,
}

impl FromStr for FindingId {
    type Err = UnknownFinding;

    fn from_str(name: &str) -> Result<Self, UnknownFinding> {
        let found = Self::ALL.iter().copied().find(|id| id.as_str() == name);
        found.ok_or_else(|| UnknownFinding { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_by_the_names_they_are_written_with() {
        for &id in FindingId::ALL {
            assert_eq!(id.as_str().parse(), Ok(id));
            assert_eq!(serde_json::to_value(id).unwrap(), id.as_str());
        }
        let error = "scalar".parse::<FindingId>().unwrap_err();
        assert!(error.to_string().starts_with("there is no finding `scalar`; there are scalar-readback, "));
    }
}
