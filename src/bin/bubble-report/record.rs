//! `record`: any program, recorded with all processes it starts.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use bubblescope::atomic::write_atomically;
use bubblescope::capture::library;
use bubblescope::capture::record::{self, Collected, NoTrace, Notice, Plan, Ran, RecordError, Spool, collect};
use bubblescope::leftover::{Held, Scratch};
use bubblescope::report::text::{bytes, contents};
use bubblescope::trace::{Trace, file};
use cupti::inject::Window as RecordingWindow;
use cupti::loader::Driver;
use cupti::spool::{Beside, annotate};

use crate::analyze::{Window, report_on};
use crate::args::{Format, RecordArgs};
use crate::exit::{BEFORE_START, CANNOT_RUN, NOT_FOUND};
use crate::output::{self, Kind};
use crate::progress;

/// Records a program and ends with its exit code.
pub(crate) fn record(args: &RecordArgs) -> ExitCode {
    let Prepared { plan, folder } = match prepare(args) {
        Ok(prepared) => prepared,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            return ExitCode::from(BEFORE_START);
        }
    };
    let ran = record::run(&plan, &mut |notice| say(&words(&notice)));
    match ran {
        Ok(ran) => {
            // The program is not to blame for what goes wrong from here on, so its exit code stays.
            if let Err(error) = finish(args, folder, &ran) {
                output::complain(&format!("{error:#}"));
            }
            ExitCode::from(ran.exit_code())
        }
        Err(error) => {
            let code = match &error {
                RecordError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
                RecordError::Start { .. } => CANNOT_RUN,
                _ => BEFORE_START,
            };
            output::complain(&format!("{:#}", anyhow::Error::from(error)));
            ExitCode::from(code)
        }
    }
}

/// How the names of the folders begin that processes leave their files in.
const FOLDERS: &str = ".bubble-report-";

/// All that a recording needs.
struct Prepared {
    plan: Plan,
    /// Where the processes leave their files.
    folder: Scratch,
}

/// Says something on standard error, which is the program's too.
fn say(message: &str) {
    output::remark(&format!("bubble-report: {message}"));
}

/// Finds out whatever would keep a recording from being kept before anything is started.
fn prepare(args: &RecordArgs) -> anyhow::Result<Prepared> {
    ensure!(
        args.format == Format::Text || args.report.is_some(),
        "--format json needs --report FILE: standard output is the program's"
    );
    if let Some(path) = &args.output {
        output::check_target(path)?;
    }
    if let Some(path) = &args.report {
        output::check_file(path)?;
    }
    // Beside what is kept in the end, so that there is room for it and it need not be copied. Processes may change their
    // working directory.
    let beside = args.output.as_deref().map_or(Path::new("."), output::folder_of);
    let beside = beside.canonicalize().with_context(|| format!("cannot use the folder {}", beside.display()))?;
    tell_of_abandoned(&beside);
    // The error names a folder that nobody asked for.
    let folder = Scratch::new_in(&beside, FOLDERS).map_err(|error| io::Error::from(error.kind()));
    let folder =
        folder.with_context(|| format!("cannot record into {}: name a file elsewhere with -o", beside.display()))?;
    let Some((program, arguments)) = args.command.split_first() else { anyhow::bail!("there is no program to record") };
    let library = library::locate(folder.path())?;
    let plan = Plan {
        program: program.clone(),
        arguments: arguments.to_vec(),
        library: library.path,
        folder: folder.path().to_owned(),
        config: cupti::Config {
            graphs: args.graphs.into(),
            nvtx: args.nvtx,
            memory: args.memory,
            events: args.events,
            all_apis: args.all_apis,
            cupti: args.cupti.clone(),
            ..cupti::Config::default()
        },
        window: RecordingWindow { delay: args.delay, duration: args.duration, range: args.capture_range.clone() },
    };
    Ok(Prepared { plan, folder })
}

/// Says where raw recordings lie that an earlier run could not make a trace of: nobody looks into hidden folders, and what a
/// killed `bubble-report` has recorded may be worth hours.
fn tell_of_abandoned(beside: &Path) {
    for folder in Scratch::abandoned(beside, FOLDERS) {
        let files = fs::read_dir(&folder).into_iter().flatten().flatten();
        let spools = files.filter(|file| file.path().extension().is_some_and(|end| end == "bubcap"));
        let found = spools.filter_map(|file| file.metadata().ok());
        let size: u64 = found.filter(fs::Metadata::is_file).map(|found| found.len()).sum();
        if size > 0 {
            say(&format!(
                "{} holds raw recordings ({}) of an earlier run that could not finish: `bubble-report analyze {}` reads \
                 them; remove the folder when you do not need them",
                folder.display(),
                bytes(size),
                for_shell(&folder)
            ));
        }
    }
}

/// A path as a shell takes it for one word.
fn for_shell(path: &Path) -> String {
    let path = path.display().to_string();
    // No path has a NUL, which alone has no quoted form.
    shlex::try_quote(&path).map(Cow::into_owned).unwrap_or(path)
}

/// What a notice says to people.
fn words(notice: &Notice) -> String {
    let processes = |pids: &[u32]| {
        let numbers: Vec<String> = pids.iter().map(ToString::to_string).collect();
        format!("{} {}", if pids.len() == 1 { "process" } else { "processes" }, numbers.join(", "))
    };
    match notice {
        Notice::Interrupted => "waiting for the program to end; interrupt again to end it".to_owned(),
        Notice::Ending => "ending the program".to_owned(),
        Notice::Killing => "killing the program".to_owned(),
        Notice::Outlived(pids) => {
            let verb = if pids.len() == 1 { "runs" } else { "run" };
            format!("waiting a little for {}, which still {verb}", processes(pids))
        }
        Notice::LeftRunning(pids) => {
            let (verb, they) = if pids.len() == 1 { ("runs", "it does") } else { ("run", "they do") };
            format!("{} still {verb}; what {they} from now on is not in the recording", processes(pids))
        }
    }
}

/// Keeps the recording and reports on it.
fn finish(args: &RecordArgs, folder: Scratch, ran: &Ran) -> anyhow::Result<()> {
    let command: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let spinner = progress::spinner("reading the recording");
    let collected = collect(folder.path(), &command, &ran.seen);
    spinner.finish_and_clear();
    let collected = collected.with_context(|| format!("cannot read the folder {}", folder.path().display()))?;
    collected.remarks.iter().for_each(|remark| say(remark));
    collected.faults.iter().for_each(|fault| output::complain(&fault.sentence()));
    let Collected { spools, faults, trace, .. } = collected;
    let Some(trace) = trace else {
        if faults.is_empty() {
            say(&nothing(args));
        }
        return Ok(());
    };
    let spinner = progress::spinner("writing the trace");
    let kept = match trace {
        Ok(trace) => keep(args, &spools, &trace).map(|kept| (kept, Ok(trace))),
        Err(lack @ NoTrace::Room { .. }) => keep_as_written(args, &spools).map(|kept| (kept, Err(lack))),
        Err(error) => Err(error.into()),
    };
    spinner.finish_and_clear();
    let (kept, trace) = match kept {
        Ok(kept) => kept,
        Err(error) if spools.iter().any(|spool| spool.has_records) => {
            return Err(error.context(format!("the raw recordings are kept in {}", folder.keep().display())));
        }
        Err(error) => return Err(error),
    };
    // What was recorded is in a file of its own now.
    drop(folder);
    let size: u64 = kept.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum();
    let names: Vec<String> = kept.iter().map(|path| path.display().to_string()).collect();
    match trace {
        Ok(trace) => {
            say(&format!("recorded {}: {} ({})", contents(&trace), names.join(", "), bytes(size)));
            report(args, &trace, &names.join(", "))
        }
        Err(lack) => {
            say(&format!("recorded {} ({}), and kept it as it was written: {lack}", names.join(", "), bytes(size)));
            let words: Vec<String> = kept.iter().map(|path| for_shell(path)).collect();
            say(&format!(
                "`bubble-report analyze {}` reports on it where there is more, and here on a part of it: --from 10s \
                 --to 20s; --duration, --delay and --capture-range record a part of a program",
                words.join(" ")
            ));
            Ok(())
        }
    }
}

/// Why there is nothing.
fn nothing(args: &RecordArgs) -> String {
    let mut text =
        "nothing was recorded: no process started CUDA, or those that did were not given the environment that \
                    bubble-report sets for them (sudo, ssh and containers do not pass it on)"
            .to_owned();
    if args.delay.is_some() || args.capture_range.is_some() {
        text.push_str(", or what --delay and --capture-range ask for did not come");
    }
    if let Err(error) = Driver::probe() {
        text = format!("{text}; {error}");
    }
    text
}

fn report(args: &RecordArgs, trace: &Trace, shown: &str) -> anyhow::Result<()> {
    let report = progress::during("analysing", || report_on(trace, shown, Window::Measured, args.top));
    let report = match report {
        Ok(report) => report,
        Err(failure) => {
            say(&failure.to_string());
            return Ok(());
        }
    };
    match &args.report {
        Some(path) => output::report_to(&report, args.format, path),
        None => output::report_aside(&report),
    }
}

/// Keeps a recording in the form that the file's name asks for, and tells the files.
fn keep(args: &RecordArgs, spools: &[Spool], trace: &Trace) -> anyhow::Result<Vec<PathBuf>> {
    let Some(path) = &args.output else { return Ok(vec![keep_numbered(trace, &stem(&args.command))?]) };
    match Kind::of(path)? {
        kind @ (Kind::TraceFile | Kind::Chrome | Kind::ChromeGzip | Kind::Csv) => {
            output::write_trace(trace, path, kind)?;
            Ok(vec![path.clone()])
        }
        Kind::Spool => keep_spools(spools, path),
    }
}

/// Keeps spools under a name, or under that name with numbers.
fn keep_spools(spools: &[Spool], path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    // A process that started CUDA and did nothing is not worth a file beside others.
    let mut worth: Vec<&Spool> = spools.iter().filter(|spool| spool.has_records).collect();
    if worth.is_empty() {
        worth = spools.iter().take(1).collect();
    }
    let move_spool = |spool: &Spool, path| move_spool(spool, &spool.beside_apart(&worth), path);
    if let [spool] = worth[..] {
        return Ok(vec![move_spool(spool, path.to_owned())?]);
    }
    let mut numbers = 1u32..;
    let mut free = || numbers.by_ref().map(|number| numbered(path, number)).find(|path| !path.exists());
    worth.iter().map(|spool| move_spool(spool, free().unwrap_or_else(|| path.to_owned()))).collect()
}

/// Keeps a recording that cannot be made a trace as it was written. A name that nobody asked for is a free one.
fn keep_as_written(args: &RecordArgs, spools: &[Spool]) -> anyhow::Result<Vec<PathBuf>> {
    let path = match &args.output {
        Some(path) if matches!(Kind::of(path)?, Kind::Spool) => path.clone(),
        Some(path) => free_name(&output::without_ending(path)),
        None => free_name(Path::new(&stem(&args.command))),
    };
    keep_spools(spools, &path)
}

/// `t` as `t.bubcap`, or with the first number that is free.
fn free_name(stem: &Path) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(".bubcap");
    let path = PathBuf::from(path);
    let mut names = std::iter::once(path.clone()).chain((2u32..).map(|number| numbered(&path, number)));
    names.find(|path| !path.exists()).unwrap_or(path)
}

/// `t.bubcap` as `t-2.bubcap`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{number}.bubcap"))
}

/// Moves a spool to its place, and adds to it what is known beside it.
fn move_spool(
    Spool { path: spool, is_written, .. }: &Spool,
    beside: &Beside,
    path: PathBuf,
) -> anyhow::Result<PathBuf> {
    if !beside.is_empty() {
        let from = File::open(spool).with_context(|| format!("cannot read {}", spool.display()))?;
        write_atomically(&path, |out| annotate(from, out, beside).map_err(anyhow::Error::from))
            .with_context(|| format!("cannot write {}", path.display()))?;
        return Ok(path);
    }
    let is_other = fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file());
    // What is no regular file is written into. A process that goes on would fill a file that was moved for as long as it
    // runs, and writes no more when its own is removed.
    if is_other || *is_written || fs::rename(spool, &path).is_err() {
        let mut from = File::open(spool).with_context(|| format!("cannot read {}", spool.display()))?;
        write_atomically(&path, |out| io::copy(&mut from, out))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(path)
}

/// Keeps a trace under the first name in the working directory that is free.
fn keep_numbered(trace: &Trace, stem: &str) -> anyhow::Result<PathBuf> {
    for number in 1u32.. {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = PathBuf::from(format!("{stem}{suffix}.bubbles.parquet"));
        let held = match Held::new(&path) {
            Ok(held) => held,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
        };
        file::write_path(trace, &path).with_context(|| format!("cannot write {}", path.display()))?;
        held.keep();
        return Ok(path);
    }
    anyhow::bail!("every name from {stem}.bubbles.parquet on is taken")
}

/// What a recording of a command is called: the script's name if there is one, else the program's.
fn stem(command: &[OsString]) -> String {
    const SCRIPTS: [&str; 4] = ["py", "jl", "sh", "ipynb"];
    let is_script = |word: &&OsString| {
        let extension = Path::new(word).extension();
        extension.is_some_and(|extension| SCRIPTS.iter().any(|script| extension == OsStr::new(script)))
    };
    let named = command.iter().find(is_script).or(command.first());
    let stem = named.and_then(|word| {
        let path = Path::new(word);
        // `python3.12` has no extension, though it looks like one.
        if is_script(&word) { path.file_stem() } else { path.file_name() }
    });
    stem.map_or_else(|| "recording".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_can_be_pasted_into_a_shell() {
        assert_eq!(for_shell(Path::new("/runs/.bubble-report-1")), "/runs/.bubble-report-1");
        for path in ["my runs/a.bubcap", "$HOME;'\"`ls`", "a\\b\n", "~", ""] {
            let script = format!("printf %s {}", for_shell(Path::new(path)));
            let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), path);
        }
    }

    #[test]
    fn a_recording_is_named_after_the_script_or_the_program() {
        let named = |command: &[&str]| stem(&command.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(named(&["/usr/bin/python3.12", "-u", "src/train.py", "--lr", "3"]), "train");
        assert_eq!(named(&["torchrun", "--nproc-per-node=2", "-m", "x"]), "torchrun");
        assert_eq!(named(&["./a.out"]), "a.out");
        assert_eq!(named(&["bash", "run.sh"]), "run");
        assert_eq!(named(&["/"]), "recording");
        assert_eq!(named(&[]), "recording");
    }
}
