//! Results to standard output, words about them to standard error.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use bubblescope::atomic::{self, write_atomically};
use bubblescope::export;
use bubblescope::open::{Format, sniff};
use bubblescope::report::checked::Checked;
use bubblescope::report::gate::Verdict;
use bubblescope::report::ranks::Ranks;
use bubblescope::report::text::{self, Style};
use bubblescope::report::{self, Compare, Report};
use bubblescope::trace::{Trace, file};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use terminal_size::{Height, Width};

use crate::analyze::{Window, analysis_of};
use crate::args;

/// One line to standard error for a failure, unless that is a signal's doing which ends this process.
pub(crate) fn complain(message: &str) {
    bubblescope::signals::settle();
    let red = anstyle::AnsiColor::Red.on_default().bold();
    // With standard error closed there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{red}bubble-report:{red:#} {message}");
}

/// One line to standard error that is no failure.
pub(crate) fn remark(message: &str) {
    let _ = writeln!(anstream::stderr(), "{message}");
}

/// Writes a report in the form asked for.
pub(crate) fn report(report: &Report, format: args::Format) -> anyhow::Result<()> {
    match format {
        args::Format::Json => json(report),
        args::Format::Text => page(|out, style| text::render(report, out, style)),
    }
}

/// Writes a comparison in the form asked for.
pub(crate) fn comparison(compare: &Compare, format: args::Format) -> anyhow::Result<()> {
    match format {
        args::Format::Json => json(compare),
        args::Format::Text => page(|out, style| text::render_compare(compare, out, style)),
    }
}

/// Writes several recordings side by side in the form asked for.
pub(crate) fn ranks(ranks: &Ranks, format: args::Format) -> anyhow::Result<()> {
    match format {
        args::Format::Json => json(ranks),
        args::Format::Text => page(|out, style| text::render_ranks(ranks, out, style)),
    }
}

/// Writes the verdicts on files in the form asked for.
pub(crate) fn gate(
    verdicts: &[(String, Result<Verdict, String>)],
    checked: impl FnOnce() -> Checked,
    format: args::Format,
) -> anyhow::Result<()> {
    match format {
        args::Format::Json => json(&checked()),
        args::Format::Text => page(|out, style| text::render_gates(verdicts, out, style)),
    }
}

/// Writes JSON alone on standard output.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    delivered(io::stdout().lock().write_all(&json_text(value)?))
}

fn json_text(value: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    report::to_json(value).context("cannot write JSON")
}

/// Writes a report for people to standard error.
pub(crate) fn report_aside(report: &Report) -> anyhow::Result<()> {
    let page = laid_out(terminal_size::terminal_size_of(io::stderr()), |out, style| text::render(report, out, style))?;
    // With standard error closed there is nobody to tell.
    let _ = anstream::stderr().lock().write_all(&page);
    Ok(())
}

/// Writes a report to a file in the form asked for, text without colour.
pub(crate) fn report_to(report: &Report, format: args::Format, path: &Path) -> anyhow::Result<()> {
    let page = match format {
        args::Format::Json => json_text(report)?,
        args::Format::Text => {
            let mut page = Vec::new();
            text::render(report, &mut page, Style::PLAIN).context("cannot lay out the report")?;
            page
        }
    };
    write_atomically(path, |out| out.write_all(&page)).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a page of text, as wide as the terminal, in colour where it is one.
pub(crate) fn page(render: impl FnOnce(&mut Vec<u8>, Style) -> io::Result<()>) -> anyhow::Result<()> {
    let page = laid_out(terminal_size::terminal_size_of(io::stdout()), render)?;
    delivered(anstream::stdout().lock().write_all(&page))
}

/// Columns of a page: as many as `COLUMNS` or the terminal says, within these bounds, and the default elsewhere.
const COLUMNS: std::ops::RangeInclusive<usize> = 40..=140;

fn laid_out(
    terminal: Option<(Width, Height)>,
    render: impl FnOnce(&mut Vec<u8>, Style) -> io::Result<()>,
) -> anyhow::Result<Vec<u8>> {
    let mut style = Style::default();
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|&columns| columns > 0);
    if let Some(columns) = said.or(terminal.map(|(columns, _)| usize::from(columns.0))) {
        style.width = columns.clamp(*COLUMNS.start(), *COLUMNS.end());
    }
    let mut page = Vec::new();
    render(&mut page, style).context("cannot lay out the report")?;
    Ok(page)
}

/// A reader that has seen enough (`| head`) is no failure.
fn delivered(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// What a file to be written is, told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A spool.
    Spool,
    /// A trace file.
    TraceFile,
    /// Chrome's JSON, for Perfetto.
    Chrome,
    /// The same, compressed with gzip.
    ChromeGzip,
    /// A table of events and bubbles.
    Csv,
}

impl Kind {
    /// The endings that name each.
    const ENDINGS: [(&str, Self); 5] = [
        (".bubcap", Self::Spool),
        (".parquet", Self::TraceFile),
        (".json", Self::Chrome),
        (".json.gz", Self::ChromeGzip),
        (".csv", Self::Csv),
    ];

    /// The kind that `path` names.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match Self::ENDINGS.into_iter().find(|(ending, _)| without(&name, ending).is_some()) {
            Some((_, kind)) => Ok(kind),
            None => bail!(
                "{} names no known form: write NAME.bubbles.parquet, .bubcap, .json, .json.gz or .csv",
                path.display()
            ),
        }
    }
}

/// `path` without the ending that names its kind.
pub(crate) fn without_ending(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = Kind::ENDINGS.iter().find_map(|(ending, _)| without(&name, ending)).unwrap_or(&name);
    let stem = without(stem, ".bubbles").unwrap_or(stem);
    path.with_file_name(if stem.is_empty() { &name } else { stem })
}

/// A name without an ending, in letters of either case.
fn without<'n>(name: &'n str, ending: &str) -> Option<&'n str> {
    let (stem, end) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
    end.eq_ignore_ascii_case(ending).then_some(stem)
}

/// Writes a trace to `path` in a form that needs no spool.
pub(crate) fn write_trace(trace: &Trace, path: &Path, kind: Kind) -> anyhow::Result<()> {
    let analysis = || analysis_of(trace, Window::Whole);
    let written = match kind {
        Kind::Spool => bail!("{}: only a spool can be kept as one; write NAME.bubbles.parquet", path.display()),
        Kind::TraceFile => file::write_path(trace, path).map_err(anyhow::Error::from),
        Kind::Chrome => write_atomically(path, |out| export::chrome(trace, &analysis(), out)).map_err(Into::into),
        Kind::ChromeGzip => write_atomically(path, |out| {
            let mut gzip = GzEncoder::new(out, Compression::fast());
            export::chrome(trace, &analysis(), &mut gzip)?;
            gzip.finish().map(drop)
        })
        .map_err(Into::into),
        Kind::Csv => write_atomically(path, |out| export::csv(trace, &analysis(), out)).map_err(Into::into),
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Whether a recording can be kept as `path`, found out before anything is recorded.
pub(crate) fn check_target(path: &Path) -> anyhow::Result<()> {
    refuse_to_lose(path, Kind::of(path)?)?;
    check_file(path)
}

/// Refuses to replace a recording by a file of the other form that its name promises: nobody expects one there.
pub(crate) fn refuse_to_lose(path: &Path, kind: Kind) -> anyhow::Result<()> {
    let mut head = Vec::new();
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    if !is_file || File::open(path).and_then(|file| file.take(64).read_to_end(&mut head)).is_err() {
        return Ok(());
    }
    let (form, of_name) = match sniff(&head) {
        Some(Format::Spool) => ("a recording (.bubcap)", Kind::Spool),
        Some(Format::TraceFile) => ("a Parquet file", Kind::TraceFile),
        Some(Format::Nsys) => bail!("{} is an SQLite file, and would be lost: write to another name", path.display()),
        Some(Format::Json) | None => return Ok(()),
    };
    ensure!(kind == of_name, "{} is {form}, and would be lost: write to another name", path.display());
    Ok(())
}

/// Whether a file can be written at `path`.
pub(crate) fn check_file(path: &Path) -> anyhow::Result<()> {
    atomic::check(path).with_context(|| format!("cannot write {}", path.display()))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_names_the_kind_and_can_be_taken_away() {
        for (name, kind, stem) in [
            ("a/t.bubcap", Some(Kind::Spool), "a/t"),
            ("a/t.bubbles.parquet", Some(Kind::TraceFile), "a/t"),
            ("T.Parquet", Some(Kind::TraceFile), "T"),
            ("t.v2.json.GZ", Some(Kind::ChromeGzip), "t.v2"),
            ("é.json", Some(Kind::Chrome), "é"),
            (".csv", Some(Kind::Csv), ".csv"),
            ("csv", None, "csv"),
            ("t.é", None, "t.é"),
        ] {
            assert_eq!(Kind::of(Path::new(name)).ok(), kind, "{name}");
            assert_eq!(without_ending(Path::new(name)), Path::new(stem), "{name}");
        }
    }
}
