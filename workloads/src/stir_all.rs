//! The kernel that several workloads share.

use crate::CudaError;
use crate::gpu::{DevicePtr, Grid, Kernel, Module, Place, Stream};

/// Threads of a block. Sizes are multiples of it.
pub(crate) const THREADS: u32 = 256;

/// Its module.
pub(crate) const PTX: &str = include_str!("../kernels/stir.ptx");

type Parameters = (DevicePtr<f32>, DevicePtr<f32>, u32, f32, u32);

/// `stir_all` of `kernels/stir.cu`: stirs every number of one place into another, or into the same.
#[derive(Debug)]
pub(crate) struct StirAll<'m>(Kernel<'m, Parameters>);

impl<'m> StirAll<'m> {
    /// Looks the kernel up in a module of [`PTX`].
    pub(crate) fn new(module: &'m Module<'_>) -> Result<Self, CudaError> {
        Ok(Self(module.kernel("stir_all")?))
    }

    /// Launches it on the first `size` numbers.
    pub(crate) fn launch(
        &self,
        stream: &Stream<'_>,
        (from, to): (&impl Place<f32>, &impl Place<f32>),
        size: u32,
        rate: f32,
        steps: u32,
    ) -> Result<(), CudaError> {
        let grid = Grid { blocks: size.div_ceil(THREADS), threads: THREADS };
        self.0.launch(stream, grid, &(from.ptr(), to.ptr(), size, rate, steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{Arguments, parameters};

    #[test]
    fn the_kernel_takes_what_it_is_given() {
        assert_eq!(parameters(PTX, "stir_all").as_deref(), Some(Parameters::KINDS));
    }
}
