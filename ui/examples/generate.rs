//! Writes a generated trace: `generate OUT.bubbles.parquet STREAMS ITERATIONS`.

use std::path::PathBuf;

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let out = PathBuf::from(arguments.next().context("the first argument is the file to write")?);
    let streams = arguments.next().context("the second argument is the number of streams")?.parse()?;
    let iterations = arguments.next().context("the third argument is the number of iterations")?.parse()?;
    let trace = bubblescope_ui::testing::trace(streams, iterations);
    bubblescope::trace::file::write_path(&trace, &out)?;
    println!("{} events in {}", trace.event_count(), out.display());
    Ok(())
}
