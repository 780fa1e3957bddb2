//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use bubblescope::analysis::FindingId;
use bubblescope::analysis::replay::Change;
use bubblescope::report::{Amount, Share, parse_time};
use bubblescope::trace::Ns;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Finds the time a GPU stands idle because of its host, and the host call that caused it.
#[derive(Debug, Parser)]
#[command(
    name = "bubble-report",
    version,
    about,
    after_help = "`bubble-report TRACE` is short for `bubble-report analyze TRACE`."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare the bundled H200 recordings of `scalar-readback` and report on one of them (needs no GPU)
    Demo(DemoArgs),
    /// List the bundled workloads, their variants and options
    List,
    /// Record a bundled workload in a child process (needs a GPU)
    Run(RunArgs),
    /// Compare variants: of a bundled workload, live, or of two and more traces
    Compare(CompareArgs),
    /// Analyse a trace: where the device stood idle, and why
    Analyze(AnalyzeArgs),
    /// The CI gate: exit 1 when a trace breaks a limit or its idle time cannot be relied on
    Check(CheckArgs),
    /// Write a trace file or a compact spool from a recording, whole or cut
    Convert(ConvertArgs),
    /// Tell what is found: driver, GPUs, libcupti, versions, conflicts
    Doctor(DoctorArgs),
    /// One repetition of a workload, for the program's own use
    #[command(hide = true)]
    Child,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// The JSON contract, alone on standard output
    Json,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArgs {
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// Which workload, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkloadArgs {
    /// An option of the workload, as NAME=VALUE; `bubble-report list` shows them
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) options: Vec<(String, String)>,
    /// How graph launches are recorded: every node, or each launch as one op [default: node]
    #[arg(long, value_enum)]
    pub(crate) graphs: Option<Graphs>,
    /// The libcupti to load, in place of the one that is found; BUBBLESCOPE_CUPTI says the same
    #[arg(long, value_name = "PATH")]
    pub(crate) cupti: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Graphs {
    /// Every node is an op
    Node,
    /// A launch is one opaque op; cheapest
    Graph,
}

impl From<Graphs> for cupti::spool::Graphs {
    fn from(graphs: Graphs) -> Self {
        match graphs {
            Graphs::Node => Self::Node,
            Graphs::Graph => Self::Graph,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The workload; `bubble-report list` shows them
    pub(crate) workload: String,
    /// The variant; the workload's first when left out
    #[arg(long)]
    pub(crate) variant: Option<String>,
    /// Where to keep the recording: `.bubcap` keeps the raw spool, anything else the trace file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// How many of the longest bubbles to show
    #[arg(long, default_value_t = 10)]
    pub(crate) top: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// One workload, or two and more traces
    #[arg(required = true, value_name = "WORKLOAD|TRACE")]
    pub(crate) what: Vec<OsString>,
    /// Only these variants; the first is the one that others are measured against
    #[arg(long, value_delimiter = ',')]
    pub(crate) variants: Vec<String>,
    /// Repetitions of each variant, both unprofiled and profiled; each is a process of its own
    /// [default: 7]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// Folder to keep the recordings and the measured walls in
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) workload_args: WorkloadArgs,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    /// The trace: `.bubbles.parquet` or `.bubcap`; told by content, not by name
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// How many of the longest bubbles to show
    #[arg(long, default_value_t = 10)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Replay the recording with a change: no-sync, remove=API, async=API, usual=API, graph, pinned, no-stream-waits,
    /// no-default-stream, host=FACTOR, no-tracer[=NS]; several APIs are parted by commas;
    /// may be given several times, which also replays all of them together
    #[arg(long = "what-if", value_name = "CHANGE")]
    pub(crate) changes: Vec<Change>,
}

/// Which part of a trace to look at. Without any of these: the measured part of a bundled workload, else all of it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WindowArgs {
    /// Look at the whole trace, set-up and warm-up too
    #[arg(long, conflicts_with_all = ["from", "to", "nvtx", "iteration"])]
    pub(crate) whole: bool,
    /// Look from this moment on, counted from the trace's start: 800us, 1.5ms, 2s, or plain nanoseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["nvtx", "iteration"])]
    pub(crate) from: Option<Ns>,
    /// Look up to this moment
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["nvtx", "iteration"])]
    pub(crate) to: Option<Ns>,
    /// Look from the first start to the last end of the ranges with this name
    #[arg(long, value_name = "NAME", conflicts_with = "iteration")]
    pub(crate) nvtx: Option<String>,
    /// Look at one iteration of the repeating launch sequence, counted from 0
    #[arg(long, value_name = "N")]
    pub(crate) iteration: Option<usize>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("limits").required(true).multiple(true))]
pub(crate) struct CheckArgs {
    /// The trace
    pub(crate) trace: PathBuf,
    /// The most of its span that a device may be idle: 30% or 0.3
    #[arg(long, value_name = "SHARE", group = "limits")]
    pub(crate) max_idle: Option<Share>,
    /// The most that fixing the findings may recover: a share of the span or a time
    #[arg(long, value_name = "SHARE|TIME", group = "limits")]
    pub(crate) max_recoverable: Option<Amount>,
    /// The longest that a bubble may be: 50us, or plain nanoseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time, group = "limits")]
    pub(crate) max_bubble: Option<Ns>,
    /// A finding that may not be there, such as scalar-readback
    #[arg(long, value_name = "FINDING", group = "limits")]
    pub(crate) forbid: Vec<FindingId>,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The spool or trace
    pub(crate) input: PathBuf,
    /// The file to write: `.bubbles.parquet`, or `.bubcap` to compact a spool and free it of paths
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The libcupti to try, in place of the one that is found
    #[arg(long, value_name = "PATH")]
    pub(crate) cupti: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// Splits NAME=VALUE.
fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Puts `analyze` in front of a trace that stands where a command is expected.
pub(crate) fn with_default_command(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    use clap::CommandFactory as _;
    let mut args: Vec<OsString> = args.into_iter().collect();
    let Some(first) = args.get(1) else { return args };
    let text = first.to_string_lossy();
    let known = text == "help" || Cli::command().get_subcommands().any(|command| command.get_name() == text);
    if !known && !text.starts_with('-') {
        args.insert(1, "analyze".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn expanded(args: &[&str]) -> Vec<OsString> {
        with_default_command(args.iter().map(OsString::from))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_trace_alone_means_analyze() {
        assert_eq!(expanded(&["bubble-report", "t.bubcap"]), ["bubble-report", "analyze", "t.bubcap"]);
        assert_eq!(expanded(&["bubble-report", "list"]), ["bubble-report", "list"]);
        assert_eq!(expanded(&["bubble-report", "--help"]), ["bubble-report", "--help"]);
        assert_eq!(expanded(&["bubble-report"]), ["bubble-report"]);
    }
}
