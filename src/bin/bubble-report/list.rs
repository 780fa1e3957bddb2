//! `list`: the bundled workloads.

use std::io::{self, Write};

use workloads::WorkloadInfo;

use crate::exit::Outcome;
use crate::output;

/// Prints every workload with its variants and options.
pub(crate) fn list() -> Outcome {
    output::page(|out, _| workloads::catalogue().iter().try_for_each(|workload| describe(workload, out)))?;
    Ok(())
}

fn describe(workload: &WorkloadInfo, out: &mut impl Write) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
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
    writeln!(out)
}
