//! `convert`: any recording to the form that the output's name asks for.

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use bubblescope::atomic::write_atomically;
use bubblescope::report::text::counted;
use cupti::spool::{Paths, compact as compact_spool};

use crate::args::ConvertArgs;
use crate::exit::Outcome;
use crate::output::{self, Kind};
use crate::progress::open;

/// Writes what the output's name asks for.
pub(crate) fn convert(args: &ConvertArgs) -> Outcome {
    let (input, target) = (&args.input, &args.output);
    let kind = Kind::of(target)?;
    // A file that is converted onto itself holds the same afterwards, unless that form cannot be opened again.
    if kind == Kind::Csv || input.canonicalize().ok() != target.canonicalize().ok() {
        output::refuse_to_lose(target, kind)?;
    }
    match kind {
        Kind::Spool => compact(input, target)?,
        kind => {
            let trace = open(input).map_err(anyhow::Error::from)?;
            output::write_trace(&trace, target, kind)?;
            let events = counted(trace.event_count() as u64, "event", "events");
            output::remark(&format!("{}: {events}", target.display()));
            trace.meta.warnings.iter().for_each(|warning| output::remark(warning));
        }
    }
    Ok(())
}

/// Compresses a spool and leaves out the paths of the machine it was made on, as for giving it away.
fn compact(input: &Path, output: &Path) -> anyhow::Result<()> {
    let from = File::open(input).with_context(|| format!("cannot read {}", input.display()))?;
    let compacted = write_atomically(output, |out| compact_spool(from, out, Paths::Leave).map_err(anyhow::Error::from));
    compacted.with_context(|| format!("cannot compact {} to {}", input.display(), output.display()))?;
    Ok(())
}
