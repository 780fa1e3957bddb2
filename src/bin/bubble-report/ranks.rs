//! `analyze` on several files or folders: one row for each device of each.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, anyhow};
use bubblescope::import::ImportError;
use bubblescope::open::{OpenError, open};
use bubblescope::report::Report;
use bubblescope::report::ranks::Ranks;

use crate::analyze::{chosen, report_with};
use crate::args::AnalyzeArgs;
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

/// Analyses every file and prints one report.
pub(crate) fn ranks(args: &AnalyzeArgs) -> Outcome {
    let (files, mut skipped) = files(&args.traces)?;
    let (mut results, mut nothing) = (Vec::new(), true);
    for (file, result) in files.iter().zip(analyse_all(&files, args)) {
        let result = match result {
            Err(Refusal::NoRecording) => {
                skipped += 1;
                continue;
            }
            Err(Refusal::Failed(failure)) => {
                nothing &= matches!(failure, Failure::Nothing(_));
                Err(failure.to_string())
            }
            Ok(report) => Ok(report),
        };
        results.push((file.path.display().to_string(), result));
    }
    if results.is_empty() {
        return Err(no_recording(&args.traces));
    }
    let all = results.len();
    let ranks = Ranks::new(results);
    if ranks.ranks.is_empty() {
        let first = ranks.unusable.first().map_or("", |file| &file.reason);
        let none = anyhow!("none of {all} files can be used; the first: {first}");
        return Err(if nothing { Failure::Nothing(none) } else { Failure::Unusable(none) });
    }
    output::ranks(&ranks, args.format.format)?;
    if skipped > 0 {
        output::remark(&format!("{skipped} other files in the folders are no recordings"));
    }
    match ranks.unusable.len() {
        0 => Ok(()),
        bad => Err(Failure::Unusable(anyhow!("{bad} of {all} files cannot be used"))),
    }
}

fn no_recording(named: &[PathBuf]) -> Failure {
    let named: Vec<String> = named.iter().map(|path| path.display().to_string()).collect();
    Failure::Unusable(anyhow!("there is no recording in {}", named.join(", ")))
}

/// The files that are named, and those in folders that are named, in order of their names. Counts the files of folders
/// whose name tells that they are none.
fn files(named: &[PathBuf]) -> Result<(Vec<File>, usize), Failure> {
    let (mut files, mut skipped) = (Vec::new(), 0);
    for path in named {
        if !path.is_dir() {
            files.push(File { path: path.clone(), found: false });
            continue;
        }
        let cannot = || format!("cannot read the folder {}", path.display());
        let mut inside: Vec<PathBuf> = Vec::new();
        for entry in path.read_dir().with_context(cannot)? {
            inside.push(entry.with_context(cannot)?.path());
        }
        inside.retain(|file| file.is_file());
        inside.sort();
        let all = inside.len();
        inside.retain(|file| is_recording(file));
        skipped += all - inside.len();
        files.extend(inside.into_iter().map(|path| File { path, found: true }));
    }
    if files.is_empty() { Err(no_recording(named)) } else { Ok((files, skipped)) }
}

/// Whether a file in a folder may be a recording, by its name.
fn is_recording(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let endings = [".parquet", ".bubcap", ".sqlite", ".nsys-rep", ".json", ".json.gz"];
    let hidden = name.starts_with('.');
    !hidden && endings.iter().any(|ending| name.ends_with(ending))
}

/// The report on each file, several at a time.
fn analyse_all(files: &[File], args: &AnalyzeArgs) -> Vec<Result<Report, Refusal>> {
    let bar = progress::bar(files.len() as u64);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<Report, Refusal>>>> = Mutex::new(files.iter().map(|_| None).collect());
    let threads = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, file)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    files.get(index).map(|file| (index, file))
                } {
                    let result = analyse(file, args);
                    if let Ok(mut results) = results.lock() {
                        results[index] = Some(result);
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let lost = || Err(Refusal::Failed(Failure::Unusable(anyhow!("its analysis did not end"))));
    results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

fn analyse(file: &File, args: &AnalyzeArgs) -> Result<Report, Refusal> {
    let trace = open(&file.path).map_err(|error| match error {
        OpenError::Import { source: ImportError::NotARecording(_), .. } if file.found => Refusal::NoRecording,
        error => Refusal::Failed(anyhow::Error::from(error).into()),
    })?;
    let report = || {
        let window = chosen(&trace, &args.window)?;
        report_with(&trace, &file.path.display().to_string(), window, args.top, &args.changes)
    };
    report().map_err(Refusal::Failed)
}
