//! Memory of the device, and host memory that the device can reach.

use std::ffi::c_void;
use std::marker::PhantomData;

use cudarc::driver::sys;

use super::{Gpu, Stream, check};
use crate::CudaError;

/// Values that any bits make and that a device reads as the host does.
pub(crate) trait Scalar: Copy + Default {}
impl Scalar for u32 {}
impl Scalar for u64 {}
impl Scalar for f32 {}

/// An address for kernels to use. It may dangle: a kernel that uses it then fails on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DevicePtr<T> {
    address: sys::CUdeviceptr,
    value: PhantomData<*const T>,
}

impl<T> DevicePtr<T> {
    /// The address that stands for nothing.
    pub(crate) const NULL: Self = Self::new(0);

    const fn new(address: sys::CUdeviceptr) -> Self {
        Self { address, value: PhantomData }
    }
}

/// Values in device memory.
#[derive(Debug)]
pub(crate) struct DeviceBuffer<'g, T> {
    address: sys::CUdeviceptr,
    len: usize,
    owner: PhantomData<(&'g Gpu, T)>,
}

impl<'g, T: Scalar> DeviceBuffer<'g, T> {
    /// Allocates room for `len` values, whose bits are whatever was there.
    pub(crate) fn new(_gpu: &'g Gpu, len: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        // SAFETY: a context is current while a `Gpu` lives; the pointer is to a live variable.
        check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&raw mut address, size_of::<T>() * len) })?;
        Ok(Self { address, len, owner: PhantomData })
    }

    /// The address of the first value.
    pub(crate) fn ptr(&self) -> DevicePtr<T> {
        DevicePtr::new(self.address)
    }

    /// Copies from the start of the buffer, blocking. Ordered behind the work of the legacy default stream only.
    pub(crate) fn read(&self, values: &mut [T]) -> Result<(), CudaError> {
        assert!(values.len() <= self.len, "more values than the buffer has");
        // SAFETY: the source is at least as long as the destination, any bits are a `T`, and the call returns when
        // the copy is done.
        let status = unsafe { sys::cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), self.address, size_of_val(values)) };
        check("cuMemcpyDtoH", status)
    }

    /// Copies to the start of the buffer, blocking until `values` may be changed again.
    pub(crate) fn write(&self, values: &[T]) -> Result<(), CudaError> {
        assert!(values.len() <= self.len, "more values than the buffer has");
        // SAFETY: the destination is at least as long as the source, which the driver has read when it returns.
        let status = unsafe { sys::cuMemcpyHtoD_v2(self.address, values.as_ptr().cast(), size_of_val(values)) };
        check("cuMemcpyHtoD", status)
    }

    /// Starts copying the first value to place `index` of a pinned buffer.
    pub(crate) fn read_first_async(
        &self,
        to: &PinnedBuffer<'_, T>,
        index: usize,
        stream: &Stream<'_>,
    ) -> Result<(), CudaError> {
        assert!(self.len > 0, "an empty buffer");
        let place = to.place(index);
        // SAFETY: source and destination hold a value each; the destination is only ever read volatile, and waits
        // for the device before it is freed.
        let status =
            unsafe { sys::cuMemcpyDtoHAsync_v2(place.cast::<c_void>(), self.address, size_of::<T>(), stream.raw()) };
        check("cuMemcpyDtoHAsync", status)
    }
}

impl<T> Drop for DeviceBuffer<'_, T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` and freed once; the driver waits for work that uses it. A failure has no
        // consequence that could be handled here.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// Values in page-locked host memory, which the device may change at any time: they are only read and written
/// whole and volatile.
#[derive(Debug)]
pub(crate) struct PinnedBuffer<'g, T> {
    first: *mut T,
    len: usize,
    owner: PhantomData<&'g Gpu>,
}

impl<'g, T: Scalar> PinnedBuffer<'g, T> {
    /// Allocates `len` values of zero.
    pub(crate) fn new(_gpu: &'g Gpu, len: usize) -> Result<Self, CudaError> {
        Self::allocate(len, 0)
    }

    /// Allocates `len` values of zero that kernels can reach at [`Self::device_ptr`].
    pub(crate) fn mapped(_gpu: &'g Gpu, len: usize) -> Result<Self, CudaError> {
        Self::allocate(len, sys::CU_MEMHOSTALLOC_DEVICEMAP)
    }

    fn allocate(len: usize, flags: u32) -> Result<Self, CudaError> {
        let mut first: *mut c_void = std::ptr::null_mut();
        // SAFETY: a context is current while a `Gpu` lives; the pointer is to a live variable.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&raw mut first, size_of::<T>() * len, flags) })?;
        let buffer = Self { first: first.cast(), len, owner: PhantomData };
        for index in 0..len {
            buffer.set(index, T::default());
        }
        Ok(buffer)
    }

    /// Where kernels find the first value.
    pub(crate) fn device_ptr(&self) -> Result<DevicePtr<T>, CudaError> {
        let mut address = 0;
        // SAFETY: the buffer is page-locked memory of the current context; the pointer is to a live variable.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, self.first.cast(), 0) };
        check("cuMemHostGetDevicePointer", status)?;
        Ok(DevicePtr::new(address))
    }

    /// The value at `index` now.
    pub(crate) fn get(&self, index: usize) -> T {
        // SAFETY: in bounds, aligned (the allocation is page-aligned), and any bits are a `T`. Volatile, because the
        // device may write at any time; naturally aligned words of up to 64 bit do not tear.
        unsafe { self.place(index).read_volatile() }
    }

    /// Sets the value at `index`.
    pub(crate) fn set(&self, index: usize, value: T) {
        // SAFETY: as in `get`.
        unsafe { self.place(index).write_volatile(value) };
    }

    fn place(&self, index: usize) -> *mut T {
        assert!(index < self.len, "beyond the buffer");
        self.first.wrapping_add(index)
    }
}

impl<T> Drop for PinnedBuffer<'_, T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `allocate` and freed once. Copies may still be under way after an error, hence the
        // wait. Failures have no consequence that could be handled here.
        unsafe {
            let _ = sys::cuCtxSynchronize();
            let _ = sys::cuMemFreeHost(self.first.cast());
        }
    }
}

/// Makes the value an argument of kernels.
pub(super) trait Address {
    fn address(&self) -> &sys::CUdeviceptr;
}

impl<T> Address for DevicePtr<T> {
    fn address(&self) -> &sys::CUdeviceptr {
        &self.address
    }
}
