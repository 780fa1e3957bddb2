//! `analyze` on several files or folders: one row for each device of each.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, anyhow};
use bubblescope::import::ImportError;
use bubblescope::open::{OpenError, recordings_in};
use bubblescope::progress::Unwatched;
use bubblescope::report::Report;
use bubblescope::report::ranks::Ranks;
use bubblescope::threads::on_several;
use bubblescope::trace::Trace;
use bubblescope::trace::file::TraceFileError;

use crate::analyze::{chosen, report_with};
use crate::args::{AnalyzeArgs, WindowArgs};
use crate::exit::{Failure, Outcome};
use crate::{output, progress};

/// A file to analyse.
struct File {
    path: PathBuf,
    /// Whether it was found in a folder: then it may be something else altogether.
    found: bool,
}

/// Why a file has no report.
enum Refusal {
    /// It was found in a folder and is no recording.
    NoRecording,
    Failed(Failure),
}

/// What came of the files that are named, or lie in folders that are.
pub(crate) struct Results {
    /// For each file, in order, its report or why there is none.
    pub(crate) files: Vec<(PathBuf, Result<Report, Failure>)>,
    /// Files in the folders that are no recordings.
    skipped: Vec<PathBuf>,
    /// Files that are named more than once, or lie in a folder that is named as well.
    twice: Vec<PathBuf>,
}

impl Results {
    /// Says which files were passed over.
    pub(crate) fn remark(&self) {
        for path in &self.twice {
            output::remark(&format!("{} is named more than once and counts once", path.display()));
        }
        const NAMED: usize = 3;
        let names = self.skipped.iter().take(NAMED).map(|path| path.display().to_string());
        let names: Vec<String> = names.collect();
        let more = match self.skipped.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        match self.skipped.len() {
            0 => {}
            1 => output::remark(&format!("1 other file is hidden or no recording: {}", names.join(", "))),
            many => {
                output::remark(&format!("{many} other files are hidden or no recordings: {}{more}", names.join(", ")));
            }
        }
    }

    /// The failure that those without a report are, if there are any: of all, the worst.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let failed = || self.files.iter().filter_map(|(_, result)| result.as_ref().err());
        let (bad, all) = (failed().count(), self.files.len());
        let first = failed().next()?;
        let nothing = failed().all(|failure| matches!(failure, Failure::Nothing(_)));
        let error = match (bad == all, nothing) {
            (true, _) => anyhow!("none of {all} files can be used; the first: {first}"),
            (false, true) if bad == 1 => anyhow!("1 of {all} files has nothing to analyse: {first}"),
            (false, true) => anyhow!("{bad} of {all} files have nothing to analyse; the first: {first}"),
            (false, false) if bad == 1 => anyhow!("1 of {all} files cannot be used: {first}"),
            (false, false) => anyhow!("{bad} of {all} files cannot be used; the first: {first}"),
        };
        Some(if nothing { Failure::Nothing(error) } else { Failure::Unusable(error) })
    }
}

/// Analyses every file and prints one report.
pub(crate) fn ranks(args: &AnalyzeArgs) -> Outcome {
    let results = reports(&args.traces, &args.window, &|trace, path| {
        report_with(trace, path, chosen(trace, path, &args.window)?, args.top, &args.changes)
    })?;
    let failure = results.failure();
    if results.files.iter().any(|(_, result)| result.is_ok()) {
        results.remark();
        let told = |(path, result): (PathBuf, Result<Report, Failure>)| {
            (path.display().to_string(), result.map_err(|failure| failure.to_string()))
        };
        output::ranks(&Ranks::new(results.files.into_iter().map(told)), args.format.format)?;
    }
    failure.map_or(Ok(()), Err)
}

/// What to do with a trace and the name of its file.
type Analyse<'a> = &'a (dyn Fn(&Trace, &str) -> Result<Report, Failure> + Sync);

/// The report on every file.
pub(crate) fn reports(named: &[PathBuf], window: &WindowArgs, analyse: Analyse<'_>) -> Result<Results, Failure> {
    let (mut files, skipped) = files(named)?;
    let twice = take_repeated(&mut files);
    let mut results = Results { files: Vec::new(), skipped, twice };
    let all = analyse_all(&files, window, analyse);
    for (file, result) in files.into_iter().zip(all) {
        match result {
            Err(Refusal::NoRecording) => results.skipped.push(file.path),
            Err(Refusal::Failed(failure)) => results.files.push((file.path, Err(failure))),
            Ok(report) => results.files.push((file.path, Ok(report))),
        }
    }
    if results.files.is_empty() { Err(no_recording(named)) } else { Ok(results) }
}

fn no_recording(all: &[PathBuf]) -> Failure {
    let named: Vec<String> = all.iter().map(|path| path.display().to_string()).collect();
    let folders = |path: &PathBuf| path.read_dir().into_iter().flatten().flatten().any(|entry| entry.path().is_dir());
    let hint = if all.iter().any(folders) { "; the folders in it are not searched" } else { "" };
    Failure::Unusable(anyhow!("there is no recording in {}{hint}", named.join(", ")))
}

/// The files that are named, and those in folders that are named, in order of their names; then the files of folders
/// that are no recordings.
fn files(named: &[PathBuf]) -> Result<(Vec<File>, Vec<PathBuf>), Failure> {
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for path in named {
        if !path.is_dir() {
            files.push(File { path: path.clone(), found: false });
            continue;
        }
        let cannot = || format!("cannot read the folder {}", path.display());
        let (recordings, others) = recordings_in(path).with_context(cannot)?;
        skipped.extend(others);
        files.extend(recordings.into_iter().map(|path| File { path, found: true }));
    }
    if files.is_empty() { Err(no_recording(named)) } else { Ok((files, skipped)) }
}

/// Takes out the files that stand there already, under whatever name.
fn take_repeated(files: &mut Vec<File>) -> Vec<PathBuf> {
    let (mut known, mut repeated) = (HashSet::new(), Vec::new());
    files.retain(|File { path, .. }| {
        let is_new = known.insert(path.canonicalize().unwrap_or_else(|_| path.clone()));
        if !is_new {
            repeated.push(path.clone());
        }
        is_new
    });
    repeated
}

/// The report on each file, several at a time.
fn analyse_all(files: &[File], window: &WindowArgs, analyse: Analyse<'_>) -> Vec<Result<Report, Refusal>> {
    let bar = progress::bar(files.len() as u64);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<Report, Refusal>>>> = Mutex::new(files.iter().map(|_| None).collect());
    let threads = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    on_several(threads, || {
        while let Some((index, file)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            files.get(index).map(|file| (index, file))
        } {
            let result = one(file, window, analyse);
            if let Ok(mut results) = results.lock() {
                results[index] = Some(result);
            }
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let lost = || Err(Refusal::Failed(Failure::Unusable(anyhow!("its analysis did not end"))));
    results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

fn one(file: &File, window: &WindowArgs, analyse: Analyse<'_>) -> Result<Report, Refusal> {
    let trace = progress::open_for_watched(&file.path, window, &Unwatched).map_err(|error| match error {
        error if file.found && is_foreign(&file.path, &error) => Refusal::NoRecording,
        error => Refusal::Failed(anyhow::Error::from(error).into()),
    })?;
    analyse(&trace, &file.path.display().to_string()).map_err(Refusal::Failed)
}

/// Whether a file in a folder is something else altogether, and not a recording that is damaged.
fn is_foreign(path: &Path, error: &OpenError) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_shared = ["json", "json.gz", "sqlite", "parquet"].iter().any(|ending| name.ends_with(ending));
    match error {
        OpenError::Import { source: ImportError::NotARecording(_), .. }
        | OpenError::TraceFile { source: TraceFileError::NotATrace(_), .. } => true,
        OpenError::Unknown { .. } => is_shared && !name.ends_with(".bubbles.parquet"),
        _ => false,
    }
}
