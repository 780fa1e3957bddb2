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
mod run;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::exit::Outcome;

fn main() -> ExitCode {
    let cli = Cli::parse_from(args::with_default_command(std::env::args_os()));
    match perform(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(&failure.to_string());
            failure.code()
        }
    }
}

fn perform(command: Command) -> Outcome {
    match command {
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
    }
}
