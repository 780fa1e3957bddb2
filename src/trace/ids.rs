//! Identifiers: positions in a trace's tables, and the numbers CUDA gives to things.

use serde::{Deserialize, Serialize};

/// Declares a newtype for a position in one of a trace's tables.
macro_rules! index {
    ($($(#[$doc:meta])* $name:ident => $table:literal;)*) => {$(
        $(#[$doc])*
        #[doc = concat!("\n\nA position in [`Trace::", $table, "`](crate::trace::Trace::", $table, ").")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position as a slice index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The newtype of a slice index. Tables hold fewer than 2³² − 1 rows, which the builder enforces.
            #[inline]
            pub const fn from_index(index: usize) -> Self {
                Self(index as u32)
            }
        }
    )*};
}

index! {
    /// One op (a kernel, copy, memset or opaque graph launch).
    OpIdx => "ops";
    /// One API call.
    CallIdx => "calls";
    /// One stream of one context.
    StreamIdx => "streams";
    /// One CUDA context.
    ContextIdx => "contexts";
    /// One device.
    DeviceIdx => "devices";
    /// One host thread.
    ThreadIdx => "threads";
    /// One process.
    ProcessIdx => "processes";
    /// One named host range.
    RangeIdx => "ranges";
    /// One interned string.
    NameId => "names";
    /// One set of details shared by ops of the same shape.
    DetailId => "details";
}

/// Links an API call to the work it submitted, within one process.
///
/// CUPTI's 32-bit ids are extended to 64 bits before they get here. Zero means "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CorrelationId(pub u64);

impl CorrelationId {
    /// No correlation recorded.
    pub const NONE: Self = Self(0);

    /// Whether an id was recorded.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

/// A CUDA graph as CUPTI numbers it (`graphId`). Zero means "not part of a graph".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GraphId(pub u32);

impl GraphId {
    /// Not part of a graph.
    pub const NONE: Self = Self(0);

    /// Whether the op belongs to a graph.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}
