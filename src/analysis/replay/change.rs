//! What to change before the replay, and how people write it.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use crate::analysis::quality::RECORDING_A_GRAPH_OP;
use crate::analysis::waits::Waits;
use crate::analysis::words::counted;
use crate::trace::{CallIdx, Interval, Ns, ProcessIdx, Trace, base_name};

/// Blocking calls to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallSet {
    /// Every blocking call.
    All,
    /// Every call of these names, versions and stream suffixes left out (`cudaStreamSynchronize`).
    Apis(Vec<String>),
    /// These calls.
    Calls(Vec<CallIdx>),
}

impl CallSet {
    /// The calls that it means.
    pub(super) fn calls<'s>(&'s self, trace: &'s Trace, waits: &'s Waits) -> Box<dyn Iterator<Item = CallIdx> + 's> {
        match self {
            Self::All => Box::new(waits.calls().iter().map(|wait| wait.call)),
            Self::Apis(apis) => {
                let named = |name| apis.iter().any(|api| base_name(name) == api);
                // Once for each name: there may be millions of calls.
                let meant: Vec<bool> = trace.names.iter().map(|(_, name)| named(name)).collect();
                let calls = &trace.calls;
                Box::new(calls.indices().filter(move |call| meant.get(calls.name[call.index()].index()) == Some(&true)))
            }
            Self::Calls(calls) => Box::new(calls.iter().copied()),
        }
    }
}

/// One change to a recorded program. Several are replayed together, once; their gains do not add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The calls, and the device work they submit, are not made.
    Remove(CallSet),
    /// The calls do not wait: pure waits are not made, copies and memsets return once submitted.
    Async(CallSet),
    /// The calls take no longer than is usual for their kind, and their launch latency neither: nothing held them up.
    Usual(CallSet),
    /// Each run of launches to one stream and those that it forks to, with nothing between them, is submitted as one
    /// graph.
    Graph,
    /// Pageable asynchronous copies neither wait nor stage, as if their memory were page-locked.
    Pinned,
    /// Streams do not wait for events of other streams.
    NoStreamWaits,
    /// No stream serialises with the legacy default stream.
    NoDefaultStream,
    /// Host time between calls takes this many millionths of what it took.
    Host {
        /// 500,000 for a host twice as fast.
        millionths: u32,
    },
    /// The same of what the host does again and again: what it does once takes as long as it took.
    HostSteps {
        /// As of [`Change::Host`].
        millionths: u32,
        /// When each process did what it does once.
        once: Vec<(ProcessIdx, Interval)>,
    },
    /// The tracer is absent: each call and each launch latency is shorter by what the tracer added.
    NoTracer(TracerCost),
}

impl Change {
    /// The calls that it changes, where it is told which; none of a change of all calls or of APIs by name.
    pub fn calls(&self) -> &[CallIdx] {
        match self {
            Self::Remove(CallSet::Calls(calls))
            | Self::Async(CallSet::Calls(calls))
            | Self::Usual(CallSet::Calls(calls)) => calls,
            _ => &[],
        }
    }
}

/// What recording adds, to be taken off. No more than half of a time is ever taken off, of the launch of a graph whose ops were
/// recorded three quarters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TracerCost {
    /// Added to each API call.
    pub per_call: Ns,
    /// Added to each latency from a launch call's start to its op's start.
    pub per_latency: Ns,
    /// Added to both by each op of a graph besides the first, where they were recorded one by one.
    pub per_graph_op: Ns,
}

impl TracerCost {
    /// The greater of each of two.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            per_call: self.per_call.max(other.per_call),
            per_latency: self.per_latency.max(other.per_latency),
            per_graph_op: self.per_graph_op.max(other.per_graph_op),
        }
    }

    /// What it adds to the launch of a graph by so many ops besides the first.
    pub(super) fn of_graph(self, more: usize) -> Ns {
        Ns(self.per_graph_op.get().saturating_mul(i64::try_from(more).unwrap_or(i64::MAX)))
    }
}

impl Default for TracerCost {
    /// Fitted on H200 recordings of CUPTI 13.0 against unprofiled runs of the same program: 1.0 µs each, and of an op of a
    /// graph 0.7 to 1.9.
    fn default() -> Self {
        Self { per_call: Ns(1_000), per_latency: Ns(1_000), per_graph_op: RECORDING_A_GRAPH_OP }
    }
}

/// Why a text names no change.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseChangeError {
    /// The word before any `=` is not a change.
    #[error(
        "unknown change `{0}`: expected no-sync, remove=API, async=API, usual=API, graph, pinned, no-stream-waits, \
         no-default-stream, host=FACTOR or no-tracer[=TIME]"
    )]
    Unknown(String),
    /// The change needs a value.
    #[error("`{change}` needs a value: `{change}={example}`")]
    MissingValue {
        /// The change.
        change: &'static str,
        /// A value it takes.
        example: &'static str,
    },
    /// The change takes no value.
    #[error("`{0}` takes no value")]
    UnexpectedValue(&'static str),
    /// The factor is not a number, or not from 0 to 1000.
    #[error("`{0}` is no factor for the host's time: expected a number from 0 to 1000, 0.5 for twice as fast")]
    Factor(String),
    /// The tracer's cost is not a number of nanoseconds.
    #[error("`{0}` is no tracer cost: expected nanoseconds per call, as no-tracer=1000")]
    Cost(String),
}

impl FromStr for Change {
    type Err = ParseChangeError;

    /// Reads `no-sync`, `remove=API`, `async=API`, `usual=API`, `graph`, `pinned`, `no-stream-waits`,
    /// `no-default-stream`, `host=FACTOR` or `no-tracer[=TIME]`. Several APIs are parted by commas.
    fn from_str(text: &str) -> Result<Self, ParseChangeError> {
        let text = text.trim();
        let (word, value) = match text.split_once('=') {
            Some((word, value)) => (word.trim(), Some(value.trim())),
            None => (text, None),
        };
        let bare = |name, change| match value {
            None => Ok(change),
            Some(_) => Err(ParseChangeError::UnexpectedValue(name)),
        };
        let valued = |change, example| {
            let value = value.filter(|value| !value.is_empty());
            value.ok_or(ParseChangeError::MissingValue { change, example })
        };
        let api = |change| {
            let example = "cudaStreamSynchronize";
            let names = valued(change, example)?.split(',').map(str::trim);
            let names: Vec<String> =
                names.filter(|name| !name.is_empty()).map(|name| base_name(name).to_owned()).collect();
            if names.is_empty() {
                Err(ParseChangeError::MissingValue { change, example })
            } else {
                Ok(CallSet::Apis(names))
            }
        };
        match word {
            "no-sync" => bare("no-sync", Self::Async(CallSet::All)),
            "remove" => Ok(Self::Remove(api("remove")?)),
            "async" => Ok(Self::Async(api("async")?)),
            "graph" => bare("graph", Self::Graph),
            "usual" => Ok(Self::Usual(api("usual")?)),
            "pinned" => bare("pinned", Self::Pinned),
            "no-stream-waits" => bare("no-stream-waits", Self::NoStreamWaits),
            "no-default-stream" => bare("no-default-stream", Self::NoDefaultStream),
            "host" => {
                let value = valued("host", "0.5")?;
                let factor = value.parse::<f64>().ok().filter(|factor| (0.0..=1_000.0).contains(factor));
                let factor = factor.ok_or_else(|| ParseChangeError::Factor(value.to_owned()))?;
                Ok(Self::Host { millionths: (factor * 1e6).round() as u32 })
            }
            "no-tracer" => match value {
                None => Ok(Self::NoTracer(TracerCost::default())),
                Some(value) => {
                    let cost = value.parse::<u32>().map_err(|_| ParseChangeError::Cost(value.to_owned()))?;
                    let cost = Ns(i64::from(cost));
                    Ok(Self::NoTracer(TracerCost { per_call: cost, per_latency: cost, per_graph_op: cost }))
                }
            },
            _ => Err(ParseChangeError::Unknown(word.to_owned())),
        }
    }
}

impl fmt::Display for CallSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("every blocking call"),
            Self::Apis(names) => f.write_str(&names.join(",")),
            Self::Calls(calls) => f.write_str(&counted(calls.len() as u64, "call", "calls")),
        }
    }
}

impl fmt::Display for Change {
    /// The text that [`Change::from_str`] reads, where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Async(CallSet::All) => f.write_str("no-sync"),
            Self::Remove(calls) => write!(f, "remove={calls}"),
            Self::Async(calls) => write!(f, "async={calls}"),
            Self::Usual(calls) => write!(f, "usual={calls}"),
            Self::Graph => f.write_str("graph"),
            Self::NoStreamWaits => f.write_str("no-stream-waits"),
            Self::NoDefaultStream => f.write_str("no-default-stream"),
            Self::Pinned => f.write_str("pinned"),
            Self::Host { millionths } => write!(f, "host={}", f64::from(*millionths) / 1e6),
            Self::HostSteps { millionths, .. } => write!(f, "repeated host={}", f64::from(*millionths) / 1e6),
            Self::NoTracer(cost) if *cost == TracerCost::default() => f.write_str("no-tracer"),
            Self::NoTracer(cost) => write!(f, "no-tracer={}", cost.per_call.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_back() {
        for text in [
            "no-sync",
            "remove=cudaStreamSynchronize",
            "remove=cudaMemcpyAsync,cudaStreamSynchronize",
            "async=cudaMemcpy",
            "usual=cudaLaunchKernel",
            "graph",
            "pinned",
            "no-stream-waits",
            "no-default-stream",
            "host=0.5",
            "no-tracer",
            "no-tracer=700",
        ] {
            let change: Change = text.parse().unwrap();
            assert_eq!(change.to_string(), text);
        }
        let versioned: Change = " remove = cudaMemcpy_v3020 ".parse().unwrap();
        assert_eq!(versioned, Change::Remove(CallSet::Apis(vec!["cudaMemcpy".to_owned()])));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |text: &str| text.parse::<Change>().unwrap_err();
        assert_eq!(error("faster"), ParseChangeError::Unknown("faster".to_owned()));
        assert_eq!(error(""), ParseChangeError::Unknown(String::new()));
        assert!(matches!(error("remove"), ParseChangeError::MissingValue { change: "remove", .. }));
        for text in ["remove=", "remove= , "] {
            assert!(matches!(error(text), ParseChangeError::MissingValue { change: "remove", .. }));
        }
        assert_eq!(error("graph=2"), ParseChangeError::UnexpectedValue("graph"));
        for factor in ["-1", "NaN", "inf", "x", "1001"] {
            assert_eq!(error(&format!("host={factor}")), ParseChangeError::Factor(factor.to_owned()));
        }
        assert_eq!(error("no-tracer=-3"), ParseChangeError::Cost("-3".to_owned()));
    }
}
