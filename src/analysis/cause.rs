//! The words for why a device was idle.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares a field-less enum with its words, which are also its serialised form.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word for it, as in the JSON report.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl From<$name> for usize {
            /// Its place in the order of declaration.
            fn from(word: $name) -> Self {
                word as Self
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(super) use words;

words! {
    /// The one reason that best explains a bubble.
    Cause {
        /// A synchronising call emptied the device and its wait lasted as long as the bubble's better half.
        Sync => "sync",
        /// A copy that waits for itself did the same, or the host moved a copy's pageable memory during most of it.
        BlockingCopy => "blocking-copy",
        /// Memory was allocated, mapped or freed.
        Allocation => "allocation",
        /// Code was loaded or compiled.
        ModuleLoad => "module-load",
        /// A graph was captured, instantiated or updated, or taken to the device by its first launch.
        GraphBuild => "graph-build",
        /// The profiler itself was at work.
        Profiler => "profiler",
        /// The host ran code of its own between its calls.
        HostBound => "host-bound",
        /// The host launched one op after the other, with other calls and little of its own between them, and the device
        /// was faster.
        LaunchBound => "launch-bound",
        /// The next op was enqueued in time and waited for another stream or an event.
        Dependency => "dependency",
        /// The device moved from one op to the next, both enqueued.
        Dispatch => "dispatch",
        /// A gap between two nodes of one graph launch.
        GraphInternal => "graph-internal",
        /// Something that was not recorded held the next op.
        Stalled => "stalled",
        /// The op that ended the bubble has no known launch.
        Unattributed => "unattributed",
    }
}

impl Cause {
    /// Why the device was idle, as a clause: `the host ran its own code between CUDA calls`.
    pub const fn because(self) -> &'static str {
        match self {
            Self::Sync => "the host waited for the GPU before launching more",
            Self::BlockingCopy => "a copy held the host up",
            Self::Allocation => "the host was allocating or freeing memory",
            Self::ModuleLoad => "GPU code was being loaded or compiled",
            Self::GraphBuild => "a CUDA graph was being built or changed",
            Self::Profiler => "the profiler itself kept the host",
            Self::HostBound => "the host ran its own code between CUDA calls",
            Self::LaunchBound => "the GPU was faster than the host could launch",
            Self::Dependency => "queued work waited for another stream or event",
            Self::Dispatch => "the GPU was switching between queued work",
            Self::GraphInternal => "the GPU was between two nodes of one graph",
            Self::Stalled => "something not recorded held queued work",
            Self::Unattributed => "work came whose launch was not recorded",
        }
    }

    /// Whether the call that goes with the cause is to blame; else it is only the launch that came late.
    pub const fn blames_call(self) -> bool {
        matches!(
            self,
            Self::Sync | Self::BlockingCopy | Self::Allocation | Self::ModuleLoad | Self::GraphBuild | Self::Profiler
        )
    }
}

words! {
    /// Where some nanoseconds of a bubble went.
    SegmentKind {
        /// The profiler was at work on the launching thread.
        Profiler => "profiler",
        /// Code was loaded or compiled.
        ModuleLoad => "module-load",
        /// A graph was captured, instantiated or updated.
        GraphBuild => "graph-build",
        /// Memory was allocated, mapped or freed.
        Allocation => "allocation",
        /// A blocking call was still on its way back to its caller.
        SyncReturn => "sync-return",
        /// A launch call was open.
        LaunchCall => "launch-call",
        /// Another API call was open.
        Api => "api",
        /// No API call was open: the host ran its own code.
        HostCode => "host-code",
        /// From the launch call's end, or the device running dry, to the op's start.
        LaunchLatency => "launch-latency",
        /// The op was enqueued in time and waited for another stream or an event.
        Dependency => "dependency",
        /// The device moved from one op to the next.
        Dispatch => "dispatch",
        /// A gap between two nodes of one graph launch.
        GraphInternal => "graph-internal",
        /// Something that was not recorded held the op.
        Stalled => "stalled",
        /// The op that ended the bubble has no known launch.
        Unattributed => "unattributed",
    }
}

impl SegmentKind {
    /// What the time went to, as a clause: `the host was inside a call that submits work`.
    pub const fn meanwhile(self) -> &'static str {
        match self {
            Self::Profiler => "the profiler kept the host",
            Self::ModuleLoad => "GPU code was loaded or compiled",
            Self::GraphBuild => "a CUDA graph was built or changed",
            Self::Allocation => "memory was allocated or freed",
            Self::SyncReturn => "a blocking call had not returned yet",
            Self::LaunchCall => "the host was inside a call that submits work",
            Self::Api => "the host was inside another CUDA call",
            Self::HostCode => "the host ran its own code, outside CUDA",
            Self::LaunchLatency => "launched work was on its way to the GPU",
            Self::Dependency => "queued work waited for another stream or event",
            Self::Dispatch => "the GPU was switching to the next queued work",
            Self::GraphInternal => "between two nodes of one graph",
            Self::Stalled => "queued work was held by something not recorded",
            Self::Unattributed => "the next work's launch was not recorded",
        }
    }
}

words! {
    /// How sure a judgement is.
    Confidence {
        /// The records leave no other reading.
        Certain => "certain",
        /// The records fit, and another reading is possible.
        Likely => "likely",
        /// The best that can be said with what was recorded.
        Guess => "guess",
    }
}

words! {
    /// The rule that decided a root cause.
    Rule {
        /// The next op was enqueued in time, yet started more than the stall limit after its predecessor.
        QueuedGapTooLong => "queued-gap-too-long",
        /// The op started more than the stall limit after its launch, with the device empty.
        LatencyTooLong => "latency-too-long",
        /// The ops on both sides belong to one graph launch.
        SameGraphLaunch => "same-graph-launch",
        /// A recorded stream wait lies before the op.
        RecordedWait => "recorded-wait",
        /// The op before is on another stream, and one of the two is the legacy default stream, which the other serialises
        /// with.
        LegacyDefaultStream => "legacy-default-stream",
        /// The op was enqueued and its own stream was free before the device ran dry.
        StreamWasFree => "stream-was-free",
        /// The op was enqueued behind the op that ended at the bubble's start.
        QueuedBehind => "queued-behind",
        /// The op has no launch call in the trace.
        NoLaunch => "no-launch",
        /// The call that was open when the device ran dry, or whose copy ended then, lasted at least half as long as the
        /// bubble.
        DrainFillsHalf => "drain-fills-half",
        /// The launch of the next op waits for its own work, was open when the device ran dry, and lasted at least half as
        /// long as the bubble.
        OwnLaunchFillsHalf => "own-launch-fills-half",
        /// Calls of one kind fill at least half of the bubble. The first launch of a graph counts with the calls that
        /// built it inside the bubble.
        FillsHalf => "fills-half",
        /// One launch call was far longer than launches usually are, and it was the first of its kernel or graph.
        FirstLaunchLong => "first-launch-long",
        /// One launch call was far longer than launches usually are.
        LaunchCallLong => "launch-call-long",
        /// The process made no launching or blocking call for longer than it usually does, and host code fills at least
        /// half of that time or of the bubble.
        HostGap => "host-gap",
        /// Host code fills at least half of the bubble, and for long enough to launch many ops the host ran nothing else, or
        /// the process made no launching or blocking call.
        HostCodeFillsHalf => "host-code-fills-half",
        /// The process made no launching or blocking call for longer than it usually does, nothing fills half of the
        /// bubble, and this fills the most of it.
        FillsMost => "fills-most",
        /// No other rule fits: the device waited for its launch.
        LaunchLate => "launch-late",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kebab_case_and_serialise_as_themselves() {
        let kebab = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        for cause in Cause::ALL {
            assert!(kebab(cause.as_str()));
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
        }
        for kind in SegmentKind::ALL {
            assert!(kebab(kind.as_str()));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
