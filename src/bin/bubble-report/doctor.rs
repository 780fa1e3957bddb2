//! `doctor`: what is found here.

use std::io::{self, Write};

use anyhow::{Context as _, anyhow};
use bubblescope::capture::doctor::{Diagnosis, examine};
use bubblescope::leftover::Scratch;

use crate::args::DoctorArgs;
use crate::args::Format;
use crate::exit::{Failure, Outcome};
use crate::output;

/// Prints what is found, and fails when nothing can be recorded here.
pub(crate) fn doctor(args: &DoctorArgs) -> Outcome {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let scratch = Scratch::new().context("cannot make a temporary folder")?;
    let diagnosis = examine(&program, scratch.path(), args.cupti.clone());
    match args.format.format {
        Format::Json => output::json(&diagnosis)?,
        Format::Text => output::page(|out, _| write(&diagnosis, out))?,
    }
    if diagnosis.can_record() {
        return Ok(());
    }
    let reason = diagnosis.gpus.err().or(diagnosis.recording.err()).unwrap_or_else(|| "there is no GPU".to_owned());
    Err(Failure::NoGpu(anyhow!("nothing can be recorded here: {reason}")))
}

fn write(diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let mut row = |what: &str, value: &str| writeln!(out, "{what:<14} {value}");
    match &diagnosis.driver {
        Ok(version) => row("driver", &format!("for CUDA up to {version}"))?,
        Err(reason) => row("driver", reason)?,
    }
    if let Some(version) = &diagnosis.kernel_module {
        row("kernel module", version)?;
    }
    match &diagnosis.gpus {
        Ok(gpus) if gpus.is_empty() => row("GPUs", "none")?,
        Ok(gpus) => {
            for (index, name) in gpus.iter().enumerate() {
                row(&format!("GPU {index}"), name)?;
            }
        }
        Err(reason) => row("GPUs", reason)?,
    }
    if diagnosis.libraries.is_empty() {
        row("libcupti", "none found; it comes with the CUDA toolkit and with PyTorch (pip: nvidia-cuda-cupti)")?;
    }
    for library in &diagnosis.libraries {
        let release = library.release.as_deref().map_or(String::new(), |release| format!(" ({release})"));
        row("libcupti", &format!("{}{release}", library.path.display()))?;
    }
    match &diagnosis.recorder {
        Ok(path) => row("recorder", &path.display().to_string())?,
        Err(reason) => row("recorder", reason)?,
    }
    for conflict in &diagnosis.conflicts {
        row("in the way?", conflict)?;
    }
    match &diagnosis.recording {
        Ok(recorded) => row("recording", &format!("works, with CUPTI {} from {}", recorded.version, recorded.library)),
        Err(reason) => row("recording", &format!("does not work: {reason}")),
    }
}
