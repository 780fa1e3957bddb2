//! Kernels.

use std::ffi::{CString, c_void};
use std::marker::PhantomData;

use cudarc::driver::sys;

use super::{DevicePtr, Gpu, Loop, Stream, check};
use crate::CudaError;

/// A module of kernels, compiled by the driver from PTX.
#[derive(Debug)]
pub(crate) struct Module<'g> {
    raw: sys::CUmodule,
    ptx: &'static str,
    owner: PhantomData<&'g Gpu>,
}

impl<'g> Module<'g> {
    /// Compiles and loads PTX text.
    pub(crate) fn load(_gpu: &'g Gpu, ptx: &'static str) -> Result<Self, CudaError> {
        let image = CString::new(ptx).map_err(|_| invalid("cuModuleLoadData", "PTX text with a zero byte"))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the image is a terminated string that outlives the call; the pointer is to a live variable.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&raw mut raw, image.as_ptr().cast()) })?;
        Ok(Self { raw, ptx, owner: PhantomData })
    }

    /// The kernel of that name, whose parameters in the PTX must be of the kinds of `A`.
    pub(crate) fn kernel<A: Arguments>(&self, name: &'static str) -> Result<Kernel<'_, A>, CudaError> {
        if parameters(self.ptx, name).as_deref() != Some(A::KINDS) {
            return Err(invalid("cuModuleGetFunction", "a kernel with other parameters"));
        }
        let symbol = CString::new(name).map_err(|_| invalid("cuModuleGetFunction", "a name with a zero byte"))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is alive, the name a terminated string; the pointer is to a live variable.
        let status = unsafe { sys::cuModuleGetFunction(&raw mut raw, self.raw, symbol.as_ptr()) };
        check("cuModuleGetFunction", status)?;
        Ok(Kernel { raw, module: PhantomData, arguments: PhantomData })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: loaded in `load` and unloaded once; its kernels borrow it. A failure has no consequence that could
        // be handled here.
        let _ = unsafe { sys::cuModuleUnload(self.raw) };
    }
}

fn invalid(call: &'static str, what: &str) -> CudaError {
    CudaError { call, code: sys::CUresult::CUDA_ERROR_INVALID_VALUE as u32, name: what.to_owned() }
}

/// The kinds of a kernel's parameters in PTX text: `.u64`, `.u32` and `.f32`, in order.
pub(crate) fn parameters<'p>(ptx: &'p str, kernel: &str) -> Option<Vec<&'p str>> {
    let (_, rest) = ptx.split_once(&format!(".entry {kernel}("))?;
    let (list, _) = rest.split_once(')')?;
    let mut words = list.split_whitespace();
    let mut kinds = Vec::new();
    while let Some(word) = words.next() {
        if word == ".param" {
            kinds.push(words.next()?);
        }
    }
    Some(kinds)
}

/// A kernel that takes arguments of the kinds of `A`.
#[derive(Debug)]
pub(crate) struct Kernel<'m, A> {
    pub(super) raw: sys::CUfunction,
    module: PhantomData<&'m ()>,
    arguments: PhantomData<fn(A)>,
}

/// How many blocks of how many threads run a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub blocks: u32,
    pub threads: u32,
}

impl<A: Arguments> Kernel<'_, A> {
    /// Starts the kernel.
    pub(crate) fn launch(&self, stream: &Stream<'_>, grid: Grid, arguments: &A) -> Result<(), CudaError> {
        arguments.with_pointers(|pointers| {
            // SAFETY: kernel and stream are alive and of the same context; there is a pointer to a live value of the
            // right size for each of the kernel's parameters (`Module::kernel`), and they are read before the call
            // returns.
            let status = unsafe {
                sys::cuLaunchKernel(
                    self.raw,
                    grid.blocks,
                    1,
                    1,
                    grid.threads,
                    1,
                    1,
                    0,
                    stream.raw(),
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
            check("cuLaunchKernel", status)
        })
    }

    /// Starts the kernel with all of its blocks on the device at once.
    pub(crate) fn launch_cooperative(&self, stream: &Stream<'_>, grid: Grid, arguments: &A) -> Result<(), CudaError> {
        arguments.with_pointers(|pointers| {
            // SAFETY: as in `launch`.
            let status = unsafe {
                sys::cuLaunchCooperativeKernel(
                    self.raw,
                    grid.blocks,
                    1,
                    1,
                    grid.threads,
                    1,
                    1,
                    0,
                    stream.raw(),
                    pointers.as_mut_ptr(),
                )
            };
            check("cuLaunchCooperativeKernel", status)
        })
    }

    /// How many blocks of `threads` threads a multiprocessor holds at once.
    pub(crate) fn blocks_per_multiprocessor(&self, threads: u32) -> Result<u32, CudaError> {
        let mut blocks = 0;
        // SAFETY: the kernel is alive; the pointer is to a live variable.
        let status = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, self.raw, threads.cast_signed(), 0)
        };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", status)?;
        Ok(blocks.max(0).cast_unsigned())
    }
}

/// A value that a kernel takes.
pub(crate) trait Argument {
    /// Its kind in PTX.
    const KIND: &'static str;

    /// Where the value is.
    fn pointer(&self) -> *mut c_void;
}

impl Argument for u32 {
    const KIND: &'static str = ".u32";

    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

impl Argument for f32 {
    const KIND: &'static str = ".f32";

    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

impl Argument for Loop {
    const KIND: &'static str = ".u64";

    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(self.handle()).cast_mut().cast()
    }
}

impl<T> Argument for DevicePtr<T> {
    const KIND: &'static str = ".u64";

    fn pointer(&self) -> *mut c_void {
        std::ptr::from_ref(self.address()).cast_mut().cast()
    }
}

/// The arguments of a kernel, in order.
pub(crate) trait Arguments {
    /// Their kinds in PTX.
    const KINDS: &'static [&'static str];

    /// Calls `launch` with a pointer to each.
    fn with_pointers<R>(&self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R;
}

macro_rules! arguments {
    ($($kind:ident $field:tt),+) => {
        impl<$($kind: Argument),+> Arguments for ($($kind,)+) {
            const KINDS: &'static [&'static str] = &[$($kind::KIND),+];

            fn with_pointers<R>(&self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
                launch(&mut [$(self.$field.pointer()),+])
            }
        }
    };
}

arguments!(A 0);
arguments!(A 0, B 1);
arguments!(A 0, B 1, C 2);
arguments!(A 0, B 1, C 2, D 3);
arguments!(A 0, B 1, C 2, D 3, E 4);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
arguments!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = ".version 7.8\n.visible .entry first(\n\t.param .u64 first_param_0,\n\t.param .u32 first_param_1\n)\n{\n}\n.visible .entry none()\n{\n}\n.visible .entry aligned(\n\t.param .u64 .ptr .align 1 aligned_param_0,\n\t.param .f32 aligned_param_1\n)\n";

    #[test]
    fn parameters_are_read_from_the_text() {
        assert_eq!(parameters(PTX, "first").as_deref(), Some([".u64", ".u32"].as_slice()));
        assert_eq!(parameters(PTX, "none").as_deref(), Some([].as_slice()));
        assert_eq!(parameters(PTX, "aligned").as_deref(), Some([".u64", ".f32"].as_slice()));
        assert_eq!(parameters(PTX, "irst"), None);
        assert_eq!(parameters(PTX, "missing"), None);
    }

    #[test]
    fn arguments_are_pointed_at_in_order() {
        let arguments = (7_u32, 1.5_f32);
        let kinds = <(u32, f32) as Arguments>::KINDS;
        assert_eq!(kinds, [".u32", ".f32"]);
        arguments.with_pointers(|pointers| {
            assert_eq!(pointers.len(), 2);
            assert_eq!(pointers[0], std::ptr::from_ref(&arguments.0).cast_mut().cast());
            assert_eq!(pointers[1], std::ptr::from_ref(&arguments.1).cast_mut().cast());
        });
    }
}
