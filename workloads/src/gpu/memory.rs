//! Memory of the device, and host memory that copies and kernels can reach.

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

    pub(super) fn address(&self) -> &sys::CUdeviceptr {
        &self.address
    }
}

/// Memory that kernels can be given.
pub(crate) trait Place<T> {
    /// The address of the first value.
    fn ptr(&self) -> DevicePtr<T>;
}

/// Values in device memory.
#[derive(Debug)]
pub(crate) struct DeviceBuffer<'g, T> {
    address: sys::CUdeviceptr,
    len: usize,
    owner: PhantomData<(&'g Gpu, T)>,
}

impl<T> Place<T> for DeviceBuffer<'_, T> {
    fn ptr(&self) -> DevicePtr<T> {
        DevicePtr::new(self.address)
    }
}

impl<'g, T: Scalar> DeviceBuffer<'g, T> {
    /// Allocates room for `len` values, whose bits are whatever was there.
    pub(crate) fn new(_gpu: &'g Gpu, len: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        // SAFETY: a context is current while a `Gpu` lives; the pointer is to a live variable.
        check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&raw mut address, size_of::<T>() * len) })?;
        Ok(Self { address, len, owner: PhantomData })
    }

    /// Copies from the start of the buffer, blocking. Ordered behind the work of the legacy default stream only.
    pub(crate) fn read(&self, values: &mut [T]) -> Result<(), CudaError> {
        assert!(values.len() <= self.len, "more values than the buffer has");
        // SAFETY: the source is at least as long as the destination, any bits are a `T`, and the call returns when
        // the copy is done.
        let status = unsafe { sys::cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), self.address, size_of_val(values)) };
        check("cuMemcpyDtoH", status)
    }

    /// Copies to the start of the buffer, blocking until `values` may be changed again. Ordered as [`Self::read`].
    pub(crate) fn write(&self, values: &[T]) -> Result<(), CudaError> {
        assert!(values.len() <= self.len, "more values than the buffer has");
        // SAFETY: the destination is at least as long as the source, which the driver has read when it returns.
        let status = unsafe { sys::cuMemcpyHtoD_v2(self.address, values.as_ptr().cast(), size_of_val(values)) };
        check("cuMemcpyHtoD", status)
    }

    /// As [`Self::write`], of `count` values from place `at` of host memory on.
    pub(crate) fn upload(&self, from: &HostBuffer<'_, T>, at: usize, count: usize) -> Result<(), CudaError> {
        assert!(count <= self.len, "more values than the buffer has");
        let source: *const c_void = from.places(at, count).cast_const().cast();
        // SAFETY: source and destination hold `count` values.
        let status = unsafe { sys::cuMemcpyHtoD_v2(self.address, source, size_of::<T>() * count) };
        check("cuMemcpyHtoD", status)
    }

    /// As [`Self::read`], of `count` values to place `at` of host memory and on.
    pub(crate) fn download(&self, to: &HostBuffer<'_, T>, at: usize, count: usize) -> Result<(), CudaError> {
        assert!(count <= self.len, "more values than the buffer has");
        // SAFETY: source and destination hold `count` values, and any bits are a `T`.
        let status = unsafe {
            sys::cuMemcpyDtoH_v2(to.places(at, count).cast::<c_void>(), self.address, size_of::<T>() * count)
        };
        check("cuMemcpyDtoH", status)
    }

    /// Starts copying `count` values from place `at` of host memory on to the start of the buffer.
    pub(crate) fn upload_async(
        &self,
        from: &HostBuffer<'_, T>,
        at: usize,
        count: usize,
        stream: &Stream<'_>,
    ) -> Result<(), CudaError> {
        assert!(count <= self.len, "more values than the buffer has");
        let source: *const c_void = from.places(at, count).cast_const().cast();
        // SAFETY: source and destination hold `count` values; both wait for the device before they are freed.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(self.address, source, size_of::<T>() * count, stream.raw()) };
        check("cuMemcpyHtoDAsync", status)
    }

    /// Starts copying `count` values from the start of the buffer to place `at` of host memory and on.
    pub(crate) fn download_async(
        &self,
        to: &HostBuffer<'_, T>,
        at: usize,
        count: usize,
        stream: &Stream<'_>,
    ) -> Result<(), CudaError> {
        assert!(count <= self.len, "more values than the buffer has");
        let place = to.places(at, count).cast::<c_void>();
        // SAFETY: source and destination hold `count` values; both wait for the device before they are freed, and
        // the destination is only read volatile.
        let status = unsafe { sys::cuMemcpyDtoHAsync_v2(place, self.address, size_of::<T>() * count, stream.raw()) };
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

/// Values in device memory that is allocated and freed in the order of a stream.
#[derive(Debug)]
pub(crate) struct PooledBuffer<'s, T> {
    address: sys::CUdeviceptr,
    stream: &'s Stream<'s>,
    value: PhantomData<T>,
}

impl<'s, T: Scalar> PooledBuffer<'s, T> {
    /// Allocates room for `len` values in the order of the stream, which alone may use it. The device must have
    /// memory pools.
    pub(crate) fn new(stream: &'s Stream<'s>, len: usize) -> Result<Self, CudaError> {
        let mut address = 0;
        // SAFETY: the stream is alive; the pointer is to a live variable.
        let status = unsafe { sys::cuMemAllocAsync(&raw mut address, size_of::<T>() * len, stream.raw()) };
        check("cuMemAllocAsync", status)?;
        Ok(Self { address, stream, value: PhantomData })
    }
}

impl<T> Place<T> for PooledBuffer<'_, T> {
    fn ptr(&self) -> DevicePtr<T> {
        DevicePtr::new(self.address)
    }
}

impl<T> Drop for PooledBuffer<'_, T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` and freed once, behind the stream's work that uses it. A failure has no
        // consequence that could be handled here.
        let _ = unsafe { sys::cuMemFreeAsync(self.address, self.stream.raw()) };
    }
}

/// Values in host memory, which the device may change at any time: they are only read and written whole and
/// volatile.
#[derive(Debug)]
pub(crate) struct HostBuffer<'g, T> {
    first: *mut T,
    len: usize,
    locked: bool,
    owner: PhantomData<&'g Gpu>,
}

impl<'g, T: Scalar> HostBuffer<'g, T> {
    /// `len` values of zero in ordinary memory.
    pub(crate) fn pageable(_gpu: &'g Gpu, len: usize) -> Self {
        let values = vec![T::default(); len].into_boxed_slice();
        Self { first: Box::into_raw(values).cast(), len, locked: false, owner: PhantomData }
    }

    /// `len` values of zero in page-locked memory.
    pub(crate) fn pinned(_gpu: &'g Gpu, len: usize) -> Result<Self, CudaError> {
        Self::lock(len, 0)
    }

    /// `len` values of zero in page-locked memory that kernels can reach at [`Self::device_ptr`].
    pub(crate) fn mapped(_gpu: &'g Gpu, len: usize) -> Result<Self, CudaError> {
        Self::lock(len, sys::CU_MEMHOSTALLOC_DEVICEMAP)
    }

    fn lock(len: usize, flags: u32) -> Result<Self, CudaError> {
        let mut first: *mut c_void = std::ptr::null_mut();
        // SAFETY: a context is current while a `Gpu` lives; the pointer is to a live variable.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&raw mut first, size_of::<T>() * len, flags) })?;
        let buffer = Self { first: first.cast(), len, locked: true, owner: PhantomData };
        (0..len).for_each(|index| buffer.set(index, T::default()));
        Ok(buffer)
    }

    /// Where kernels find the first value of a mapped buffer.
    pub(crate) fn device_ptr(&self) -> Result<DevicePtr<T>, CudaError> {
        let mut address = 0;
        // SAFETY: the driver refuses memory that is not its own; the pointer is to a live variable.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, self.first.cast(), 0) };
        check("cuMemHostGetDevicePointer", status)?;
        Ok(DevicePtr::new(address))
    }

    /// The value at `index` now.
    pub(crate) fn get(&self, index: usize) -> T {
        // SAFETY: in bounds, aligned (pages or a box of `T`), and any bits are a `T`. Volatile, because the device may
        // write at any time; naturally aligned words of up to 64 bit do not tear.
        unsafe { self.places(index, 1).read_volatile() }
    }

    /// Sets the value at `index`.
    pub(crate) fn set(&self, index: usize, value: T) {
        // SAFETY: as in `get`.
        unsafe { self.places(index, 1).write_volatile(value) };
    }

    /// Sets the values from `at` on.
    pub(crate) fn set_all(&self, at: usize, values: &[T]) {
        values.iter().enumerate().for_each(|(index, value)| self.set(at + index, *value));
    }

    /// All values now.
    pub(crate) fn to_vec(&self) -> Vec<T> {
        (0..self.len).map(|index| self.get(index)).collect()
    }

    /// The address of `count` values from `at` on, all of which exist.
    fn places(&self, at: usize, count: usize) -> *mut T {
        assert!(at.checked_add(count).is_some_and(|end| end <= self.len), "beyond the buffer");
        self.first.wrapping_add(at)
    }
}

impl<T> Drop for HostBuffer<'_, T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `pageable` as a box of `len` values or in `lock` by the driver, and freed once. Copies
        // may still be under way after an error, hence the wait. Failures have no consequence that could be handled
        // here.
        unsafe {
            let _ = sys::cuCtxSynchronize();
            if self.locked {
                let _ = sys::cuMemFreeHost(self.first.cast());
            } else {
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.first, self.len)));
            }
        }
    }
}
