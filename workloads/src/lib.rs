//! Reference workloads: small CUDA programs in several shapes, written as a user would write them.
//!
//! Every variant of a workload does the same work and computes the same answer, bit for bit; they differ in how
//! the host and the device wait for each other. [`catalogue`] lists them, [`RunSpec`] names one with its options,
//! [`run`] runs it on the first visible GPU of this process.
//!
//! They know nothing of profiling. Only a driver is needed: the kernels are embedded as PTX, with their sources and
//! the command that compiles them in `kernels/`.

mod allocation;
mod arithmetic;
mod catalogue;
mod default_stream;
mod error;
mod gpu;
mod graph_replay;
mod outcome;
mod pipeline;
mod planted;
mod scalar_readback;
mod spec;
mod stir_all;
mod timing;

pub use catalogue::{OptionInfo, VariantInfo, WorkloadInfo, catalogue};
pub use error::{CudaError, NoGpu, WorkloadError};
pub use outcome::Outcome;
pub use spec::{RunSpec, SpecError};

/// Runs one variant of one workload in this process, checks its answer and says how long the measured part took.
///
/// The measured part begins after the warm-up, with the device idle, and ends when the device has finished all of
/// its work.
///
/// # Errors
/// [`WorkloadError`]: no usable driver or GPU, a variant this machine cannot run, a failed CUDA call, or an answer
/// that is not the expected one.
pub fn run(spec: &RunSpec) -> Result<Outcome, WorkloadError> {
    (spec.info().run)(spec)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn without_a_driver_every_variant_says_so() {
        for info in catalogue() {
            for variant in info.variants {
                let spec = RunSpec::new(info.name, variant.name, &BTreeMap::new()).unwrap();
                if gpu::driver_is_present() {
                    println!("skipped: there is a driver here");
                    return;
                }
                let error = run(&spec).unwrap_err();
                assert_eq!(error, WorkloadError::NoGpu(NoGpu::DriverMissing), "{} {}", info.name, variant.name);
                assert_eq!(error.exit_code(), 4);
            }
        }
    }
}
