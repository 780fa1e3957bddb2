//! Why a workload could not be run.

/// A CUDA driver call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed with {name} ({code})")]
pub struct CudaError {
    /// The driver call.
    pub call: &'static str,
    /// Its `CUresult`.
    pub code: u32,
    /// The name of that result, as `cuGetErrorName` gives it.
    pub name: String,
}

/// Why this process can use no GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGpu {
    /// No `libcuda` can be loaded.
    #[error("no CUDA driver found (libcuda.so.1 cannot be loaded)")]
    DriverMissing,
    /// The library that was loaded lacks a call that every driver of a supported version has.
    #[error("the CUDA driver library lacks {symbol}: not a whole driver, or a stub")]
    DriverIncomplete {
        /// The missing call.
        symbol: &'static str,
    },
    /// The library that was loaded is the CUDA toolkit's, which is for linking only.
    #[error("libcuda.so is the CUDA toolkit's stub, not a driver; take its folder `stubs` out of LD_LIBRARY_PATH")]
    DriverStub,
    /// The driver is older than the workloads need.
    #[error("the CUDA driver is for CUDA {}.{}; at least {}.{} is needed", found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10)]
    DriverTooOld {
        /// Its version, as `cuDriverGetVersion` gives it.
        found: i32,
        /// The lowest version that will do.
        needed: i32,
    },
    /// There is a driver, but no device that this process may use.
    #[error("the CUDA driver sees no GPU")]
    NoDevice,
    /// The driver could not be started.
    #[error("the CUDA driver cannot be started: {0}")]
    Start(CudaError),
}

/// Why a workload could not be run, or its result not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// There is no usable GPU here.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// This GPU or driver cannot run the variant; others may run.
    #[error("variant '{variant}' cannot run here: {reason}")]
    Unsupported {
        /// The variant.
        variant: &'static str,
        /// What it needs that is not there.
        reason: String,
    },
    /// A CUDA call failed.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The device computed something else than the host expects.
    #[error("wrong answer: {0}")]
    WrongAnswer(String),
}

impl WorkloadError {
    /// The process exit code that says this: 4 without a usable GPU (or one that can run the variant), 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoGpu(_) | Self::Unsupported { .. } => 4,
            Self::Cuda(_) | Self::WrongAnswer(_) => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_as_people_write_them() {
        let text = NoGpu::DriverTooOld { found: 11080, needed: 12000 }.to_string();
        assert!(text.contains("CUDA 11.8") && text.contains("12.0"), "{text}");
    }

    #[test]
    fn a_machine_without_a_gpu_is_exit_code_4() {
        assert_eq!(WorkloadError::from(NoGpu::DriverMissing).exit_code(), 4);
        assert_eq!(WorkloadError::WrongAnswer("x".to_owned()).exit_code(), 1);
    }
}
