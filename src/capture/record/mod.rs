//! Records a program and all processes it starts.
//!
//! [`run`] starts the program with the recorder library in its environment, waits, and hands on the signals it gets;
//! [`collect`] makes one trace of what the processes left in the plan's folder.

mod collect;
mod neighbours;
mod outliving;
mod run;

use std::io;

use thiserror::Error;

pub use collect::{Collected, NoTrace, Spool, collect};
pub use neighbours::Seen;
pub use run::{Notice, Plan, Ran, run};

/// Why a program was not recorded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Another recorder is to be loaded already.
    #[error("{variable} is set to {value}: CUDA loads one tool into a program; unset it to record")]
    Taken {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The environment for the target cannot be written down.
    #[error("cannot tell the target where to record to")]
    Environment(#[source] serde_json::Error),
    /// Signals cannot be taken.
    #[error("cannot take signals")]
    Signals(#[source] io::Error),
    /// The target does not start.
    #[error("cannot run {program}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The target was started and cannot be waited for.
    #[error("cannot wait for the target")]
    Wait(#[source] io::Error),
}
