//! `list`: the bundled workloads.

use std::io::{self, Write as _};

use anyhow::Context as _;

use crate::exit::Outcome;

/// Prints every workload with its variants and options.
pub(crate) fn list() -> Outcome {
    write().context("cannot write to standard output")?;
    Ok(())
}

fn write() -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let bold = anstyle::Style::new().bold();
    for workload in workloads::catalogue() {
        writeln!(out, "{bold}{}{bold:#}  {}", workload.name, workload.summary)?;
        writeln!(out, "  variants")?;
        let width = workload.variants.iter().map(|variant| variant.name.len()).max().unwrap_or(0);
        for variant in workload.variants {
            writeln!(out, "    {:width$}  {}", variant.name, variant.summary)?;
        }
        writeln!(out, "  options (--set NAME=VALUE)")?;
        let width = workload.options.iter().map(|option| option.name.len()).max().unwrap_or(0);
        for option in workload.options {
            writeln!(out, "    {:width$}  {} (default {})", option.name, option.help, option.default)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
