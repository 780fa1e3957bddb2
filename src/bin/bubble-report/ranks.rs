//! `analyze` on several files or folders: one row for each device of each.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, anyhow};
use bubblescope::open::open;
use bubblescope::report::Report;
use bubblescope::report::ranks::Ranks;

use crate::analyze::{chosen, report_with};
use crate::args::AnalyzeArgs;
use crate::exit::{Failure, Outcome};
use crate::{output, progress};

/// Analyses every file and prints one report.
pub(crate) fn ranks(args: &AnalyzeArgs) -> Outcome {
    let (files, skipped) = files(&args.traces)?;
    let results = analyse_all(&files, args);
    let nothing = results.iter().all(|result| matches!(result, Err(Failure::Nothing(_))));
    let ranks = Ranks::new(files.iter().zip(results).map(|(file, result)| {
        let result = result.map_err(|failure| failure.to_string());
        (file.display().to_string(), result)
    }));
    if ranks.ranks.is_empty() {
        let first = ranks.unusable.first().map_or("", |file| &file.reason);
        let none = anyhow!("none of {} files can be used; the first: {first}", files.len());
        return Err(if nothing { Failure::Nothing(none) } else { Failure::Unusable(none) });
    }
    output::ranks(&ranks, args.format.format)?;
    if skipped > 0 {
        output::remark(&format!("{skipped} other files in the folders are no recordings"));
    }
    match ranks.unusable.len() {
        0 => Ok(()),
        bad => Err(Failure::Unusable(anyhow!("{bad} of {} files cannot be used", files.len()))),
    }
}

/// The files that are named, and those in folders that are named, in order of their names. Counts the files of folders
/// that are no recording by content or name.
fn files(named: &[PathBuf]) -> anyhow::Result<(Vec<PathBuf>, usize)> {
    let (mut files, mut skipped) = (Vec::new(), 0);
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
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
        files.append(&mut inside);
    }
    if files.is_empty() {
        let folders: Vec<String> = named.iter().map(|path| path.display().to_string()).collect();
        return Err(anyhow!("there is no recording in {}", folders.join(", ")));
    }
    Ok((files, skipped))
}

/// Whether a file in a folder is meant as a recording. A name that says so is enough: that such a file cannot be used
/// must be told.
fn is_recording(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let endings = [".parquet", ".bubcap", ".sqlite", ".nsys-rep", ".json", ".json.gz"];
    let hidden = name.starts_with('.');
    !hidden && endings.iter().any(|ending| name.ends_with(ending))
}

/// The report on each file, several at a time.
fn analyse_all(files: &[PathBuf], args: &AnalyzeArgs) -> Vec<Result<Report, Failure>> {
    let bar = progress::bar(files.len() as u64);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<Report, Failure>>>> = Mutex::new(files.iter().map(|_| None).collect());
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
    let lost = || Err(Failure::Unusable(anyhow!("its analysis did not end")));
    results.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}

fn analyse(file: &Path, args: &AnalyzeArgs) -> Result<Report, Failure> {
    let trace = open(file).map_err(anyhow::Error::from)?;
    let window = chosen(&trace, &args.window)?;
    report_with(&trace, &file.display().to_string(), window, args.top, &args.changes)
}
