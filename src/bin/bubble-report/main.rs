//! `bubble-report`: records, analyses and compares CUDA programs without a window.

mod analyze;
mod args;
mod check;
mod compare;
mod convert;
mod demo;
mod doctor;
mod exit;
mod list;
mod output;
mod progress;
mod ranks;
mod record;
mod run;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::exit::Failure;

fn main() -> ExitCode {
    let args = args::with_default_command(std::env::args_os());
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            // With the stream closed there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(args::code_of(&error, &args));
        }
    };
    let code = perform(cli.command).unwrap_or_else(|failure| {
        output::complain(&failure.to_string());
        failure.code()
    });
    bubblescope::signals::settle();
    code
}

fn perform(command: Command) -> Result<ExitCode, Failure> {
    // A workload's process is left as any program's is.
    if !matches!(command, Command::Child) {
        // Without them a signal leaves temporary files behind, which is no reason to stop here.
        let _ = bubblescope::signals::take();
    }
    let done = match command {
        Command::Record(args) => return Ok(record::record(&args)),
        Command::Demo(args) => demo::demo(&args),
        Command::List => list::list(),
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Analyze(args) => analyze::analyze(&args),
        Command::Check(args) => check::check(&args),
        Command::Convert(args) => convert::convert(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Child => {
            bubblescope::capture::child::serve().context("the child's side of the pipe")?;
            Ok(())
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}
