//! How the program ends: exit codes and the one line that goes with them.

use std::fmt;
use std::process::ExitCode;

/// What `record` ends with when it failed before the program started, as `env` and `timeout` do.
pub(crate) const BEFORE_START: u8 = 125;

/// What `record` ends with when the program is there and cannot be run.
pub(crate) const CANNOT_RUN: u8 = 126;

/// What `record` ends with when the program is not there.
pub(crate) const NOT_FOUND: u8 = 127;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was to hold does not: a gate's limits are broken, or variants disagree on the answer.
    Gate(anyhow::Error),
    /// The arguments or the input cannot be used.
    Unusable(anyhow::Error),
    /// There is nothing to analyse: no GPU activity in the input.
    Nothing(anyhow::Error),
    /// No usable GPU, driver or CUPTI.
    NoGpu(anyhow::Error),
}

/// What every command returns.
pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    /// The process's exit code, as the interface documents it.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Gate(_) => 1,
            Self::Unusable(_) => 2,
            Self::Nothing(_) => 3,
            Self::NoGpu(_) => 4,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The whole chain on one line: what failed, then why.
            Self::Gate(error) | Self::Unusable(error) | Self::Nothing(error) => write!(f, "{error:#}"),
            Self::NoGpu(error) => write!(f, "{error:#}; `bubble-report demo` shows recordings and needs no GPU"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Unusable(error)
    }
}
