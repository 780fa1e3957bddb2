//! What can be set, and every constant of the rules.

use super::replay::{Change, DEFAULT_MAX_CHANGES};
use crate::trace::{Interval, Ns};

/// What to analyse and with which constants.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The part of the trace to look at; the whole trace when `None`. Ops that cross its edges are clipped.
    pub window: Option<Interval>,
    /// The constants of the rules.
    pub constants: Constants,
    /// What makes a pattern a finding.
    pub findings: FindingLimits,
    /// The replay tries at most so many changes for findings and for the cost of waiting, the most promising first: 16.
    pub max_changes: usize,
    /// Changes to replay besides.
    pub what_if: Vec<Change>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: None,
            constants: Constants::default(),
            findings: FindingLimits::default(),
            max_changes: DEFAULT_MAX_CHANGES,
            what_if: Vec::new(),
        }
    }
}

/// What makes a pattern a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingLimits {
    /// A device that is idle for less than this share of its span, in percent, is busy: 2.
    pub min_idle_percent: i64,
    /// A finding must recover this share of the span, in percent: 1.
    pub min_gain_percent: i64,
    /// Something that happens so often recurs: 8.
    pub min_repeats: usize,
    /// So does something that happens in half of the iterations, and in this many: 3.
    pub min_iterations: usize,
    /// A copy to the host of no more bytes is a value that the host looks at: 64.
    pub scalar_bytes: u64,
    /// Kernels of no more than this, in the median, are very short: 10 µs.
    pub tiny_kernel: Ns,
    /// Fewer launches are not many: 50.
    pub many_launches: usize,
    /// Host code of this length between two launches does more than launch: 50 µs.
    pub long_host_code: Ns,
}

impl Default for FindingLimits {
    fn default() -> Self {
        Self {
            min_idle_percent: 2,
            min_gain_percent: 1,
            min_repeats: 8,
            min_iterations: 3,
            scalar_bytes: 64,
            tiny_kernel: Ns::from_us(10),
            many_launches: 50,
            long_host_code: Ns::from_us(50),
        }
    }
}

/// The constants of the rules for segments and root causes, and of the replay where it has nothing recorded to go by.
///
/// They were tried on some 50 public recordings. Where a rule compares with the program's own behaviour, the constant
/// is a factor on a median of the same trace, kept within bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Lower bound of the usual latency λ from a launch call's start to its op's start: 2 µs.
    pub latency_min: Ns,
    /// Upper bound of λ: 20 µs.
    pub latency_max: Ns,
    /// λ when fewer than [`Self::latency_samples`] ops found the device empty: 5 µs.
    pub latency_default: Ns,
    /// Ops that must have found the device empty, pageable and blocking copies left out, before their median is used: 5.
    pub latency_samples: usize,
    /// An op enqueued in time that starts later than this after its predecessor, without a recorded wait, was held by
    /// something not recorded: 20 µs.
    pub stall_gap: Ns,
    /// The same where a kernel follows a copy or a copy a kernel, which is a matter of two engines: 60 µs. In the 16,446
    /// hand-overs between enqueued ops of 80 recordings, those that nothing seems to hold took 11 µs at most on
    /// data-centre GPUs, from V100 to H200, and 37 to 51 µs on a GeForce RTX 4060 Ti; the shortest of those that
    /// something holds took 63 µs. From kernel to kernel and from copy to copy 19 µs were the most.
    pub stall_handover: Ns,
    /// So was an op that starts later than this after its launch on an empty device: 50 µs.
    pub stall_latency: Ns,
    /// A launch call must last this long to be remarkable: 50 µs.
    pub long_launch: Ns,
    /// And this many times the median launch call: 20.
    pub long_launch_factor: i64,
    /// The host computed, rather than merely launched, when it made no launching or blocking call for this many times
    /// its median such gap: 4.
    pub host_gap_factor: i64,
    /// Lower bound of that limit: 50 µs.
    pub host_gap_min: Ns,
    /// Upper bound of that limit: 500 µs.
    pub host_gap_max: Ns,
    /// The host also computed when it made no such call, or ran nothing but its own code, for this long and its own code
    /// fills half of the bubble, however usual that is: a program whose every step is like this has no shorter gap to
    /// compare with. 100 µs, some twenty launches.
    pub host_gap_always: Ns,
    /// What a node adds to the call that launches its graph while every node is recorded, when no launch of a graph was
    /// recorded that would tell: 750 ns. On an H200: 16 to 17 µs for 12 nodes, 32 for 41, 96 for 121, where a single
    /// launch takes 5.
    pub graph_node_call: Ns,
    /// Idle figures are not reliable when more than this share of the span, in percent, is idle for a reason that was
    /// not recorded: 1.
    pub stalled_percent: u64,
    /// Nor when more than this share of the launches has no op: 1. A greater share of ops without a launch is warned of.
    pub missing_percent: u64,
}

impl Default for Constants {
    fn default() -> Self {
        Self {
            latency_min: Ns::from_us(2),
            latency_max: Ns::from_us(20),
            latency_default: Ns::from_us(5),
            latency_samples: 5,
            stall_gap: Ns::from_us(20),
            stall_handover: Ns::from_us(60),
            stall_latency: Ns::from_us(50),
            long_launch: Ns::from_us(50),
            long_launch_factor: 20,
            host_gap_factor: 4,
            host_gap_min: Ns::from_us(50),
            host_gap_max: Ns::from_us(500),
            host_gap_always: Ns::from_us(100),
            graph_node_call: Ns(750),
            stalled_percent: 1,
            missing_percent: 1,
        }
    }
}
