//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bubblescope::analysis::FindingId;
use bubblescope::analysis::replay::Change;
use bubblescope::report::{Amount, Share, parse_time};
use bubblescope::trace::Ns;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use cupti::inject::CaptureRange;

use crate::exit::BEFORE_START;

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
    /// Record any CUDA program, with all processes it starts (needs a GPU)
    Record(RecordArgs),
    /// Compare variants: of a bundled workload, live, or of two and more traces
    Compare(CompareArgs),
    /// Analyse a trace: where the device stood idle, and why
    Analyze(AnalyzeArgs),
    /// The CI gate: exit 1 when a trace breaks a limit or its idle time cannot be relied on
    Check(CheckArgs),
    /// Write a trace file, Perfetto's JSON, CSV or a compact spool from a recording, whole or cut
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
    /// Where to keep the recording: `.bubcap` keeps the raw spool, `.bubbles.parquet` the trace file; `.json`, `.json.gz`
    /// and `.csv` as `convert` writes them
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

/// Runs a program unchanged, with its input, output and environment, and records all that it and the processes it starts
/// do with CUDA.
#[derive(Debug, Args)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct RecordArgs {
    /// Where to keep the recording: `.bubcap` keeps the raw spool of each process, `.bubbles.parquet` one trace file;
    /// `.json`, `.json.gz` and `.csv` as `convert` writes them [default: the program's or the script's name and
    /// `.bubbles.parquet`, numbered if that is there]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Begin this long after a process starts CUDA: 500ms, 10s
    #[arg(long, value_name = "TIME", value_parser = waiting_time)]
    pub(crate) delay: Option<Duration>,
    /// Record for this long; the program runs on
    #[arg(long, value_name = "TIME", value_parser = waiting_time)]
    pub(crate) duration: Option<Duration>,
    /// Record only what the program marks: from cudaProfilerStart to cudaProfilerStop, or the first NVTX range of a
    /// name
    #[arg(long, value_name = "cudaProfilerApi|nvtx:NAME", value_parser = capture_range)]
    pub(crate) capture_range: Option<CaptureRange>,
    /// How graph launches are recorded: every node, or each launch as one op
    #[arg(long, value_enum, default_value = "node")]
    pub(crate) graphs: Graphs,
    /// Record NVTX ranges
    #[arg(long)]
    pub(crate) nvtx: bool,
    /// Record allocations and frees of device memory
    #[arg(long)]
    pub(crate) memory: bool,
    /// Record CUDA events
    #[arg(long)]
    pub(crate) events: bool,
    /// Record also the calls that can neither block nor launch, such as cudaGetDevice
    #[arg(long)]
    pub(crate) all_apis: bool,
    /// The libcupti to load, in place of the one that is found; BUBBLESCOPE_CUPTI says the same
    #[arg(long, value_name = "PATH")]
    pub(crate) cupti: Option<PathBuf>,
    /// Form of the report; JSON needs --report
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Write the report to this file and not to standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// How many of the longest bubbles to show
    #[arg(long, default_value_t = 10)]
    pub(crate) top: usize,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

const RECORD_HELP: &str = "\
Standard output is the program's alone: what bubble-report says, and the report, go to standard error.
Exit code: the program's own; 128 and the signal's number when a signal ended it; 125 when bubble-report failed before
the program started; 126 when the program cannot be run, 127 when it is not there.
Ctrl-C goes to the program, which is waited for; a second one tells it to end and kills it after 5 s.
Recorded processes that outlive the program are waited for, up to 5 s.";

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
    /// The trace: `.bubbles.parquet`, `.bubcap`, PyTorch's `.json[.gz]`, Nsight Systems' `.sqlite`; told by content, not by name. Several, or a
    /// folder of them, such as the ranks of one program, give a row for each; `-` is standard input
    #[arg(required = true, value_name = "TRACE|DIR", value_parser = input())]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    /// How many of the longest bubbles to show
    #[arg(long, default_value_t = 10)]
    pub(crate) top: usize,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
    /// Replay the recording with a change: no-sync, remove=API, async=API, usual=API, graph, pinned, no-stream-waits,
    /// no-default-stream, host=FACTOR, no-tracer[=TIME]; several APIs are parted by commas;
    /// may be given several times, which also replays all of them together
    #[arg(long = "what-if", value_name = "CHANGE", value_parser = change)]
    pub(crate) changes: Vec<Change>,
}

/// Which part of a trace to look at. Without any of these: the measured part of a bundled workload, else all of it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WindowArgs {
    /// Look at the whole trace, set-up and warm-up too
    #[arg(long, conflicts_with_all = ["from", "to", "nvtx", "iteration"])]
    pub(crate) whole: bool,
    /// Look from this moment on, counted from the trace's start: 800us, 1.5ms, 2s, or plain nanoseconds; of a `.bubcap` only
    /// the part that is looked at takes memory
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["nvtx", "iteration"])]
    pub(crate) from: Option<Ns>,
    /// Look up to this moment
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["nvtx", "iteration"])]
    pub(crate) to: Option<Ns>,
    /// Look from the first start to the last end of the ranges with this name
    #[arg(long, value_name = "NAME", conflicts_with = "iteration")]
    pub(crate) nvtx: Option<String>,
    /// Look at one iteration of the repeating launch sequence, counted from 0, up to and with the op that begins the next
    #[arg(long, value_name = "N")]
    pub(crate) iteration: Option<usize>,
}

impl WindowArgs {
    /// From which moment to which one, if that is what is asked for.
    pub(crate) fn part(&self) -> Option<(Option<Ns>, Option<Ns>)> {
        (self.from.is_some() || self.to.is_some()).then_some((self.from, self.to))
    }
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("limits").required(true).multiple(true))]
pub(crate) struct CheckArgs {
    /// The trace, as for `analyze`: each of several, or of a folder, must keep the limits
    #[arg(required = true, value_name = "TRACE|DIR", value_parser = input())]
    pub(crate) traces: Vec<PathBuf>,
    /// The most of its span that a device may be idle: 30% or 0.3
    #[arg(long, value_name = "SHARE", group = "limits")]
    pub(crate) max_idle: Option<Share>,
    /// The most that fixing the findings may recover: a share of the span or a time
    #[arg(long, value_name = "SHARE|TIME", group = "limits")]
    pub(crate) max_recoverable: Option<Amount>,
    /// The longest that a bubble may be that the profiler did not make: 50us, or plain nanoseconds
    #[arg(long, value_name = "TIME", value_parser = parse_time, group = "limits")]
    pub(crate) max_bubble: Option<Ns>,
    /// A finding that may not be there, such as scalar-readback
    #[arg(long, value_name = "FINDING", group = "limits")]
    pub(crate) forbid: Vec<FindingId>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) window: WindowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The spool or trace; `-` is standard input
    #[arg(value_parser = input())]
    pub(crate) input: PathBuf,
    /// The file to write, its form told by its name: `.bubbles.parquet`; `.json` or `.json.gz` for Perfetto and
    /// chrome://tracing; `.csv`; or `.bubcap` to compact a spool and free it of paths
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[arg(long, hide = true, value_parser = whole_only)]
    from: Option<String>,
    #[arg(long, hide = true, value_parser = whole_only)]
    to: Option<String>,
    #[arg(long, hide = true, value_parser = whole_only)]
    nvtx: Option<String>,
    #[arg(long, hide = true, value_parser = whole_only)]
    iteration: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The libcupti to try, in place of the one that is found
    #[arg(long, value_name = "PATH")]
    pub(crate) cupti: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// A file to read. `-` stands for standard input.
fn input() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(|text| PathBuf::from(if text == "-" { "/dev/stdin".into() } else { text }))
}

/// Why an option that says which part of a trace to look at is no option of `convert`.
fn whole_only(_: &str) -> Result<String, String> {
    Err("convert writes whole recordings; analyze and check look at a part of one".to_owned())
}

/// A change. What recording costs has a unit, as every other time has, or is nanoseconds.
fn change(text: &str) -> Result<Change, String> {
    let cost = text.split_once('=').filter(|(word, _)| word.trim() == "no-tracer");
    let parsed = match cost {
        Some((word, cost)) => {
            let cost = parse_time(cost).map_err(|error| error.to_string())?;
            format!("{word}={}", cost.0).parse()
        }
        None => text.parse::<Change>(),
    };
    parsed.map_err(|error| error.to_string())
}

/// Splits NAME=VALUE.
fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// The shortest time to wait that can be meant.
const SHORTEST_WAIT: Ns = Ns(1_000_000);

/// A time for people to wait. A number without a unit is nanoseconds, which is not what anybody means here.
fn waiting_time(text: &str) -> Result<Duration, String> {
    let time = parse_time(text).map_err(|error| error.to_string())?;
    if time < SHORTEST_WAIT {
        return Err("that is less than 1 ms; write a unit: 500ms, 10s".to_owned());
    }
    Ok(Duration::from_nanos(time.0.unsigned_abs()))
}

/// What the program marks as the part to record.
fn capture_range(text: &str) -> Result<CaptureRange, String> {
    match text.split_once(':') {
        None if text.eq_ignore_ascii_case("cudaProfilerApi") => Ok(CaptureRange::CudaProfilerApi),
        Some(("nvtx", name)) if !name.is_empty() => Ok(CaptureRange::Nvtx { name: name.to_owned() }),
        _ => Err("expected cudaProfilerApi or nvtx:NAME".to_owned()),
    }
}

/// The code for arguments that cannot be used: of `record` it must not be taken for the program's.
pub(crate) fn code_of(error: &clap::Error, args: &[OsString]) -> u8 {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    if code != 0 && args.get(1).is_some_and(|command| command == "record") { BEFORE_START } else { code }
}

/// Puts `analyze` in front of a trace that stands where a command is expected.
pub(crate) fn with_default_command(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    use clap::CommandFactory as _;
    let mut args: Vec<OsString> = args.into_iter().collect();
    let Some(first) = args.get(1) else { return args };
    let text = first.to_string_lossy();
    let known = text == "help" || Cli::command().get_subcommands().any(|command| command.get_name() == text);
    if !known && (["-", "--"].contains(&&*text) || !text.starts_with('-')) {
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
    fn what_is_recorded_and_when_is_read() {
        let record = |args: &[&str]| {
            let args = ["bubble-report", "record"].iter().chain(args).chain(&["--", "python", "-o", "x", "--", "y"]);
            let Command::Record(args) = Cli::try_parse_from(args).map_err(|error| error.to_string())?.command else {
                panic!("another command")
            };
            assert_eq!(args.command, ["python", "-o", "x", "--", "y"], "the program's arguments are its own");
            Ok::<_, String>(args)
        };
        let args = record(&["--delay", "1500ms", "--duration", "10s", "--capture-range", "nvtx:epoch: 3"]).unwrap();
        assert_eq!((args.delay, args.duration), (Some(Duration::from_millis(1500)), Some(Duration::from_secs(10))));
        assert_eq!(args.capture_range, Some(CaptureRange::Nvtx { name: "epoch: 3".to_owned() }));
        let args = record(&["--capture-range=cudaProfilerApi"]).unwrap();
        assert_eq!(args.capture_range, Some(CaptureRange::CudaProfilerApi));
        assert!(record(&["--duration", "10"]).unwrap_err().contains("10s"), "ten nanoseconds are not meant");
        for wrong in ["nvtx", "nvtx:", "cupti", ""] {
            assert!(record(&["--capture-range", wrong]).unwrap_err().contains("nvtx:NAME"), "{wrong}");
        }
    }

    #[test]
    fn the_cost_of_recording_takes_a_unit_as_other_times_do() {
        for (text, ns) in [("no-tracer=1us", "1000"), ("no-tracer = 1.5 µs", "1500"), ("no-tracer=800", "800")] {
            assert_eq!(change(text), format!("no-tracer={ns}").parse::<Change>().map_err(|error| error.to_string()));
        }
        assert!(change("no-tracer").is_ok() && change("host=0.5").is_ok());
        for wrong in ["no-tracer=", "no-tracer=fast", "no-tracer=-1us", "host=1us"] {
            assert!(change(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_trace_alone_means_analyze() {
        assert_eq!(expanded(&["bubble-report", "t.bubcap"]), ["bubble-report", "analyze", "t.bubcap"]);
        assert_eq!(expanded(&["bubble-report", "-"]), ["bubble-report", "analyze", "-"]);
        assert_eq!(expanded(&["bubble-report", "--", "-t"]), ["bubble-report", "analyze", "--", "-t"]);
        assert_eq!(expanded(&["bubble-report", "list"]), ["bubble-report", "list"]);
        assert_eq!(expanded(&["bubble-report", "--help"]), ["bubble-report", "--help"]);
        assert_eq!(expanded(&["bubble-report"]), ["bubble-report"]);
    }
}
