//! Whether there is an NVIDIA driver, found out without starting CUDA.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;

/// `CUDA_ERROR_STUB_LIBRARY` (cuda.h): what every function of the toolkit's stub libcuda gives.
const STUB_LIBRARY: c_int = 34;

/// Why CUDA cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// There is no `libcuda.so.1`.
    #[error("no NVIDIA driver: libcuda.so.1 cannot be loaded ({reason})")]
    NotFound {
        /// What the dynamic loader says.
        reason: String,
    },
    /// `libcuda.so.1` is the toolkit's stub, which is for linking only.
    #[error(
        "no NVIDIA driver: libcuda.so.1 is the CUDA toolkit's stub; take its folder `stubs` out of LD_LIBRARY_PATH"
    )]
    Stub,
    /// It is there but does not work.
    #[error("the NVIDIA driver does not answer: {call} gives {result}")]
    Failed {
        /// The call.
        call: &'static str,
        /// `CUresult`.
        result: c_int,
    },
    /// The library is there, but no GPU.
    #[error("no NVIDIA GPU: libcuda.so.1 is there, but none of {} is", nodes_text())]
    NoDevice {
        /// `cuDriverGetVersion`.
        version: u32,
    },
}

/// The proof that an NVIDIA driver is there, so that CUPTI may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    version: u32,
}

impl Driver {
    /// Looks for the driver: libcuda loads, is not the stub, tells its version, and a device node is there. CUDA is not
    /// started.
    ///
    /// # Errors
    /// What is missing.
    pub fn probe() -> Result<Self, DriverError> {
        let driver = Self { version: LibCuda::load()?.version()? };
        if device_nodes().is_empty() {
            return Err(DriverError::NoDevice { version: driver.version });
        }
        Ok(driver)
    }

    /// A driver that is known to be there, without looking: because libcuda itself called us (injection), or because
    /// the library which will be loaded as CUPTI is known not to need one (tests). Its version may be 0 when it cannot
    /// be asked for.
    ///
    /// # Safety
    /// CUPTI will be called. It crashes the process if it needs a driver and there is none.
    pub const unsafe fn assume(version: u32) -> Self {
        Self { version }
    }

    /// `cuDriverGetVersion`: `1000 * major + 10 * minor` of the newest CUDA the driver serves; 0 when it is not known.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The CUDA major version.
    pub fn major(&self) -> u32 {
        self.version / 1000
    }
}

/// One GPU as the driver shows it to this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number in this process.
    pub index: u32,
    /// Its name.
    pub name: String,
}

/// The GPUs. This starts CUDA in the process, which may take a second and cannot be undone: call it in a child.
///
/// # Errors
/// When there is no driver or it does not start.
pub fn gpus() -> Result<Vec<Gpu>, DriverError> {
    let cuda = LibCuda::load()?;
    cuda.version()?;
    cuda.devices()
}

/// Where the kernel shows NVIDIA GPUs: the desktop and server driver, WSL, Tegra.
const NODES: [&str; 6] =
    ["/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu", "/dev/nvmap"];

fn nodes_text() -> String {
    NODES.join(", ")
}

/// The device nodes that are there.
pub(super) fn device_nodes() -> Vec<PathBuf> {
    NODES.iter().map(PathBuf::from).filter(|node| node.exists()).collect()
}

type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
type Init = unsafe extern "C" fn(u32) -> c_int;
type GetName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;

/// libcuda, which stays loaded.
struct LibCuda(std::mem::ManuallyDrop<Library>);

impl LibCuda {
    fn load() -> Result<Self, DriverError> {
        // SAFETY: libcuda's initialisers start nothing; every CUDA program runs them.
        let library = unsafe { Library::open(Some("libcuda.so.1"), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            DriverError::NotFound { reason }
        })?;
        Ok(Self(std::mem::ManuallyDrop::new(library)))
    }

    fn function<T>(&self, name: &'static str) -> Result<T, DriverError> {
        // SAFETY: the callers below name functions of cuda.h with their signatures.
        unsafe { self.0.get::<T>(name.as_bytes()) }
            .map(|symbol| {
                let address = symbol.into_raw();
                // SAFETY: `T` is a function pointer, of the size of the address.
                unsafe { std::mem::transmute_copy(&address) }
            })
            .map_err(|error| DriverError::NotFound { reason: error.to_string() })
    }

    fn version(&self) -> Result<u32, DriverError> {
        let get_version: GetVersion = self.function("cuDriverGetVersion")?;
        let mut version = 0;
        // SAFETY: the pointer is valid; cuDriverGetVersion is allowed before cuInit.
        check("cuDriverGetVersion", unsafe { get_version(&raw mut version) })?;
        u32::try_from(version)
            .ok()
            .filter(|&version| version > 0)
            .ok_or(DriverError::Failed { call: "cuDriverGetVersion", result: 0 })
    }

    fn devices(&self) -> Result<Vec<Gpu>, DriverError> {
        let init: Init = self.function("cuInit")?;
        let get_count: GetVersion = self.function("cuDeviceGetCount")?;
        let get_name: GetName = self.function("cuDeviceGetName")?;
        // SAFETY: cuInit takes 0.
        check("cuInit", unsafe { init(0) })?;
        let mut count = 0;
        // SAFETY: the pointer is valid and CUDA is initialised.
        check("cuDeviceGetCount", unsafe { get_count(&raw mut count) })?;
        (0..count)
            .map(|index| {
                let mut name: [c_char; 256] = [0; 256];
                // SAFETY: there is room for 255 characters and the end. A device's handle is its number (cuDeviceGet).
                check("cuDeviceGetName", unsafe { get_name(name.as_mut_ptr(), 255, index) })?;
                // SAFETY: the last byte is still zero.
                let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
                Ok(Gpu { index: index.unsigned_abs(), name })
            })
            .collect()
    }
}

fn check(call: &'static str, result: c_int) -> Result<(), DriverError> {
    match result {
        0 => Ok(()),
        STUB_LIBRARY => Err(DriverError::Stub),
        result => Err(DriverError::Failed { call, result }),
    }
}
