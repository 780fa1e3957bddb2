//! Results to standard output, words about them to standard error.

use std::io::{self, Write as _};

use anyhow::Context as _;
use bubblescope::report::text::{self, Style};
use bubblescope::report::{Compare, Report};
use serde::Serialize;

use crate::args::Format;

/// One line to standard error for a failure.
pub(crate) fn complain(message: &str) {
    let red = anstyle::AnsiColor::Red.on_default().bold();
    // With standard error closed there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{red}bubble-report:{red:#} {message}");
}

/// One line to standard error that is no failure.
pub(crate) fn remark(message: &str) {
    let _ = writeln!(anstream::stderr(), "{message}");
}

/// Writes a report in the form asked for.
pub(crate) fn report(report: &Report, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => json(report),
        Format::Text => page(|out, style| text::render(report, out, style)),
    }
}

/// Writes a comparison in the form asked for.
pub(crate) fn comparison(compare: &Compare, format: Format) -> anyhow::Result<()> {
    match format {
        Format::Json => json(compare),
        Format::Text => page(|out, style| text::render_compare(compare, out, style)),
    }
}

/// Writes JSON alone on standard output.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(value).context("cannot write JSON")?;
    text.push(b'\n');
    delivered(io::stdout().lock().write_all(&text))
}

/// Writes a page of text, as wide as the terminal, in colour where it is one.
pub(crate) fn page(render: impl FnOnce(&mut Vec<u8>, Style) -> io::Result<()>) -> anyhow::Result<()> {
    let mut page = Vec::new();
    render(&mut page, Style::default()).context("cannot lay out the report")?;
    delivered(anstream::stdout().lock().write_all(&page))
}

/// A reader that has seen enough (`| head`) is no failure.
fn delivered(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}
