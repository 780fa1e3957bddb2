//! A shared library that plays the CUDA driver, and a device, to the workloads.
//!
//! It does work as late as the rules allow and in the wrong order if they allow that: nothing that was enqueued runs
//! before somebody waits for it, and then the newest first, unless the order of a stream, an event, a graph or the
//! legacy default stream forbids it. So a program that does not wait for what it needs gets wrong numbers.
//! Kernels are played by their names (`kernels`). Handles and memory are checked; what is left over when the context
//! goes is reported.
//!
//! | environment variable | meaning |
//! |---|---|
//! | `MOCK_DRIVER_LOG` | a file that gets a line per call: nanoseconds since the epoch, and the function |
//! | `MOCK_DRIVER_EAGER` | work runs at once: for programs that poll memory |
//! | `MOCK_DRIVER_FAIL` | `FUNCTION:RESULT`: every call of the function gives this result and does nothing |
//! | `MOCK_DRIVER_WRONG` | every kernel gets one bit wrong |
//! | `MOCK_DRIVER_VERSION` | what `cuDriverGetVersion` answers (13000) |

#![expect(unsafe_code, reason = "plays a C library")]
#![expect(missing_docs, clippy::missing_safety_doc, reason = "the functions are documented by the driver API")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "one reason for all: pointers come from the caller, who keeps the driver's rules or fails the test"
)]

mod device;
mod kernels;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use device::{Device, Task, with_device};

type Result = c_int;
type Handle = usize;

const SUCCESS: Result = 0;
const INVALID_VALUE: Result = 1;
const NO_DEVICE: Result = 100;
const INVALID_HANDLE: Result = 400;
const NOT_FOUND: Result = 500;
const NOT_READY: Result = 600;
const CAPTURE_UNJOINED: Result = 904;
/// The device of the attributes that are asked for.
const MULTIPROCESSORS: c_int = 3;

/// Notes the call; gives the result it is to have, if it is to have another than its own.
fn call(name: &str) -> Option<Result> {
    static LOG: OnceLock<Option<Mutex<std::fs::File>>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let path = std::env::var_os("MOCK_DRIVER_LOG")?;
        std::fs::File::create(path).ok().map(Mutex::new)
    });
    if let Some(file) = log {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        // One write per line: it is on disk, in the kernel's eyes, whatever becomes of the process.
        let line = format!("{now} {name}\n");
        let _ = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner).write_all(line.as_bytes());
    }
    static FAIL: OnceLock<Option<(String, Result)>> = OnceLock::new();
    let fail = FAIL.get_or_init(|| {
        let text = std::env::var("MOCK_DRIVER_FAIL").ok()?;
        let (function, result) = text.split_once(':')?;
        Some((function.to_owned(), result.parse().ok()?))
    });
    fail.as_ref().filter(|(function, _)| function == name).map(|(_, result)| *result)
}

/// Defines functions of the driver: each notes its call and runs its body with the device.
macro_rules! driver {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) |$device:pat_param| $body:block)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) -> Result {
                if let Some(result) = call(stringify!($name)) {
                    return result;
                }
                with_device(|$device| -> std::result::Result<(), Result> { $body }).err().unwrap_or(SUCCESS)
            }
        )+
    };
}

driver! {
    fn cuInit(_flags: c_uint) |_| { Ok(()) }

    fn cuDriverGetVersion(version: *mut c_int) |_| {
        let given = std::env::var("MOCK_DRIVER_VERSION").ok().and_then(|text| text.parse().ok());
        unsafe { *version = given.unwrap_or(13_000) };
        Ok(())
    }

    fn cuGetErrorName(result: Result, name: *mut *const c_char) |_| {
        let text = match result {
            INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
            NO_DEVICE => c"CUDA_ERROR_NO_DEVICE",
            INVALID_HANDLE => c"CUDA_ERROR_INVALID_HANDLE",
            719 => c"CUDA_ERROR_LAUNCH_FAILED",
            _ => return Err(INVALID_VALUE),
        };
        unsafe { *name = text.as_ptr() };
        Ok(())
    }

    fn cuDeviceGetCount(count: *mut c_int) |_| {
        unsafe { *count = 1 };
        Ok(())
    }

    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) |_| {
        unsafe { *device = ordinal };
        Ok(())
    }

    fn cuDeviceGetName(name: *mut c_char, len: c_int, _device: c_int) |_| {
        let text = c"Mock GPU".to_bytes_with_nul();
        assert!(usize::try_from(len).is_ok_and(|len| len >= text.len()), "room for the name");
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len()) };
        Ok(())
    }

    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) |_| {
        // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT is 16; the others asked for are yes or no.
        unsafe { *value = if attribute == 16 { MULTIPROCESSORS } else { 1 } };
        Ok(())
    }

    fn cuDevicePrimaryCtxRetain(context: *mut Handle, _device: c_int) |_| {
        unsafe { *context = 1 };
        Ok(())
    }

    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) |device| {
        device.run_all();
        for kind in device.left_over() {
            call(&format!("left over: {kind}"));
        }
        *device = Device::default();
        Ok(())
    }

    fn cuCtxSetCurrent(_context: Handle) |_| { Ok(()) }

    fn cuCtxSynchronize() |device| {
        device.run_all();
        Ok(())
    }

    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) |device| {
        unsafe { *address = device.allocate(bytes, "device memory") };
        Ok(())
    }

    fn cuMemFree_v2(address: u64) |device| {
        device.run_all();
        device.free(address)
    }

    fn cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: Handle) |device| {
        unsafe { *address = device.allocate(bytes, "pooled memory") };
        Ok(())
    }

    fn cuMemFreeAsync(address: u64, stream: Handle) |device| {
        device.enqueue(stream, Task::Free(address))
    }

    fn cuMemHostAlloc(address: *mut u64, bytes: usize, _flags: c_uint) |device| {
        unsafe { *address = device.allocate(bytes, "pinned memory") };
        Ok(())
    }

    fn cuMemFreeHost(address: u64) |device| {
        device.run_all();
        device.free(address)
    }

    fn cuMemHostGetDevicePointer_v2(on_device: *mut u64, address: u64, _flags: c_uint) |device| {
        device.check_memory(address, 1)?;
        unsafe { *on_device = address };
        Ok(())
    }

    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) |device| {
        device.check_memory(from, bytes)?;
        device.run_blocking(Task::Copy { to, from, bytes })
    }

    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) |device| {
        device.check_memory(to, bytes)?;
        device.run_blocking(Task::Copy { to, from, bytes })
    }

    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) |device| {
        device.check_memory(from, bytes)?;
        device.enqueue(stream, Task::Copy { to, from, bytes })
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) |device| {
        device.check_memory(to, bytes)?;
        device.enqueue(stream, Task::Copy { to, from, bytes })
    }

    fn cuModuleLoadData(module: *mut Handle, image: *const c_char) |device| {
        let text = unsafe { CStr::from_ptr(image) }.to_string_lossy();
        if !text.starts_with(".version") {
            return Err(INVALID_VALUE);
        }
        unsafe { *module = device.add_module() };
        Ok(())
    }

    fn cuModuleUnload(module: Handle) |device| { device.remove_module(module) }

    fn cuModuleGetFunction(function: *mut Handle, _module: Handle, name: *const c_char) |_| {
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        unsafe { *function = kernels::find(&name).ok_or(NOT_FOUND)? };
        Ok(())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, _kernel: Handle, _threads: c_int, _shared: usize) |_| {
        unsafe { *blocks = 1 };
        Ok(())
    }

    fn cuStreamCreate(stream: *mut Handle, flags: c_uint) |device| {
        unsafe { *stream = device.add_stream(flags == 0) };
        Ok(())
    }

    fn cuStreamDestroy_v2(stream: Handle) |device| { device.remove_stream(stream) }

    fn cuStreamSynchronize(stream: Handle) |device| { device.run_stream(stream) }

    fn cuStreamQuery(stream: Handle) |device| {
        if device.is_idle(stream)? { Ok(()) } else { Err(NOT_READY) }
    }

    fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) |device| { device.wait_event(stream, event) }

    fn cuEventCreate(event: *mut Handle, _flags: c_uint) |device| {
        unsafe { *event = device.add_event() };
        Ok(())
    }

    fn cuEventDestroy_v2(event: Handle) |device| { device.remove_event(event) }

    fn cuEventRecord(event: Handle, stream: Handle) |device| { device.record_event(event, stream) }

    fn cuEventSynchronize(event: Handle) |device| { device.run_event(event) }

    fn cuEventElapsedTime(milliseconds: *mut f32, earlier: Handle, later: Handle) |device| {
        if !device.is_reached(earlier)? || !device.is_reached(later)? {
            return Err(NOT_READY);
        }
        unsafe { *milliseconds = 1e-6 };
        Ok(())
    }

    fn cuStreamBeginCapture_v2(stream: Handle, _mode: c_uint) |device| { device.begin_capture(stream, None) }

    fn cuStreamBeginCaptureToGraph(
        stream: Handle, graph: Handle, _dependencies: Handle, _data: Handle, count: usize, _mode: c_uint
    ) |device| {
        assert_eq!(count, 0, "no dependencies");
        device.begin_capture(stream, Some(graph))
    }

    fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) |device| {
        unsafe { *graph = device.end_capture(stream)? };
        Ok(())
    }

    fn cuGraphCreate(graph: *mut Handle, _flags: c_uint) |device| {
        unsafe { *graph = device.add_graph() };
        Ok(())
    }

    fn cuGraphDestroy(graph: Handle) |device| { device.remove_graph(graph) }

    fn cuGraphGetRootNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) |device| {
        let roots = device.roots(graph)?;
        assert!(roots.len() <= unsafe { *count }, "room for the roots");
        for (place, root) in roots.iter().enumerate() {
            // A handle names a node by its place, from 1 on.
            unsafe { *nodes.add(place) = root + 1 };
        }
        unsafe { *count = roots.len() };
        Ok(())
    }

    fn cuGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, _flags: u64) |device| {
        unsafe { *exec = device.instantiate(graph)? };
        Ok(())
    }

    fn cuGraphExecDestroy(exec: Handle) |device| { device.remove_graph(exec) }

    fn cuGraphUpload(exec: Handle, _stream: Handle) |device| { device.roots(exec).map(|_| ()) }

    fn cuGraphLaunch(exec: Handle, stream: Handle) |device| { device.launch_graph(exec, stream) }

    fn cuGraphExecKernelNodeSetParams_v2(exec: Handle, node: Handle, parameters: *const KernelNodeParameters) |device| {
        let p = unsafe { &*parameters };
        if [p.blocks[1], p.blocks[2], p.threads[1], p.threads[2]] != [1; 4] || p.shared != 0 || !p.extra.is_null() {
            return Err(INVALID_VALUE);
        }
        let launch = unsafe { kernels::Launch::new(p.kernel, p.blocks[0], p.threads[0], p.arguments) };
        device.set_node(exec, node - 1, Task::Kernel(launch))
    }

    fn cuGraphConditionalHandleCreate(
        handle: *mut u64, graph: Handle, _context: Handle, default: c_uint, flags: c_uint
    ) |device| {
        // CU_GRAPH_COND_ASSIGN_DEFAULT is 1.
        if (default, flags) != (1, 1) {
            return Err(INVALID_VALUE);
        }
        unsafe { *handle = device.add_condition(graph)? };
        Ok(())
    }

    fn cuGraphAddNode(
        node: *mut Handle, graph: Handle, _dependencies: Handle, count: usize, parameters: *mut ConditionalNodeParameters
    ) |device| {
        let p = unsafe { &mut *parameters };
        // CU_GRAPH_NODE_TYPE_CONDITIONAL is 13, CU_GRAPH_COND_TYPE_WHILE is 1.
        if count != 0 || p.kind != 13 || p.condition_kind != 1 || p.bodies != 1 {
            return Err(INVALID_VALUE);
        }
        p.body = device.add_loop(graph, p.condition)?;
        unsafe { *node = 1 };
        Ok(())
    }

    fn cuLaunchKernel(
        kernel: Handle, x: c_uint, _y: c_uint, _z: c_uint, threads: c_uint, _ty: c_uint, _tz: c_uint, _shared: c_uint,
        stream: Handle, arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) |device| {
        let launch = unsafe { kernels::Launch::new(kernel, x, threads, arguments) };
        device.enqueue(stream, Task::Kernel(launch))
    }

    fn cuLaunchCooperativeKernel(
        kernel: Handle, x: c_uint, _y: c_uint, _z: c_uint, threads: c_uint, _ty: c_uint, _tz: c_uint, _shared: c_uint,
        stream: Handle, arguments: *mut *mut c_void
    ) |device| {
        if x > MULTIPROCESSORS.cast_unsigned() {
            // CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
            return Err(720);
        }
        let launch = unsafe { kernels::Launch::new(kernel, x, threads, arguments) };
        device.enqueue(stream, Task::Kernel(launch))
    }
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` of cuda.h.
#[repr(C)]
pub struct KernelNodeParameters {
    kernel: Handle,
    blocks: [c_uint; 3],
    threads: [c_uint; 3],
    shared: c_uint,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
    kern: Handle,
    context: Handle,
}

/// `CUgraphNodeParams` of cuda.h with `CUDA_CONDITIONAL_NODE_PARAMS` in its union.
#[repr(C)]
pub struct ConditionalNodeParameters {
    kind: c_uint,
    reserved: [c_int; 3],
    condition: u64,
    condition_kind: c_uint,
    bodies: c_uint,
    body: *mut Handle,
    context: Handle,
}
