//! Processes, threads, devices and streams by the numbers that nsys gives them.

use rustc_hash::FxHashMap;

use super::database::Database;
use crate::import::ImportError;
use crate::trace::{ContextIdx, DeviceIdx, ProcessIdx, Stream, StreamIdx, ThreadIdx, TraceBuilder};

/// Bits of a global thread id that number the thread; the same number of bits above them number the process, and the
/// rest the machine.
const ID_BITS: u32 = 24;
/// "Does not apply", as CUPTI says it.
pub(super) const NOT_APPLICABLE: i64 = u32::MAX as i64;

/// Where records belong.
#[derive(Default)]
pub(super) struct Lanes {
    /// Processes by their global id without the thread's bits.
    processes: FxHashMap<i64, ProcessIdx>,
    /// Threads by their global id.
    threads: FxHashMap<i64, ThreadIdx>,
    /// The GPU behind each process's own device number.
    gpus: FxHashMap<(u32, u32), u32>,
    /// The device of each context.
    contexts: FxHashMap<(ProcessIdx, u32), u32>,
}

/// The operating system's number of a process, from a global process id without the thread's bits.
fn pid(key: i64) -> u32 {
    (key & ((1 << ID_BITS) - 1)) as u32
}

impl Lanes {
    /// Reads which GPU each process means by a number: `CUDA_VISIBLE_DEVICES` can differ.
    pub(super) fn new(database: &Database<'_>) -> Result<Self, ImportError> {
        let mut lanes = Self::default();
        if let Some(table) = database.table("TARGET_INFO_CUDA_DEVICE") {
            database.scan(table, &["pid", "cudaId", "gpuId"], |row| {
                if let (Some(pid), Some(cuda), Some(gpu)) = (row.small(0), row.small(1), row.small(2)) {
                    lanes.gpus.insert((pid, cuda), gpu);
                }
            })?;
        }
        Ok(lanes)
    }

    /// The process of a global process or thread id. A record without one belongs to the only process there is.
    pub(super) fn process(&mut self, builder: &mut TraceBuilder, global: Option<i64>) -> ProcessIdx {
        let key = match (global, self.processes.len()) {
            (Some(global), _) => global >> ID_BITS,
            (None, 1) => self.processes.keys().next().copied().unwrap_or(0),
            (None, _) => 0,
        };
        if let Some(&process) = self.processes.get(&key) {
            return process;
        }
        let process = builder.separate_process(Some(pid(key)));
        self.processes.insert(key, process);
        Self::name_process(builder, process, key << ID_BITS, "");
        process
    }

    /// Names a process of this global id, and tells its number if another has it.
    pub(super) fn name_process(builder: &mut TraceBuilder, process: ProcessIdx, global: i64, name: &str) {
        let pid = pid(global >> ID_BITS);
        let told =
            if builder.pid(process) == pid { "" } else { &format!(" (process {pid} of another machine or container)") };
        builder.set_process_name(process, format!("{name}{told}").trim());
    }

    /// The process with this global id, if a record named it.
    pub(super) fn known_process(&self, global: i64) -> Option<ProcessIdx> {
        self.processes.get(&(global >> ID_BITS)).copied()
    }

    /// The thread with this global id, if a record named it.
    pub(super) fn known_thread(&self, global: i64) -> Option<ThreadIdx> {
        self.threads.get(&global).copied()
    }

    /// The thread of a global thread id.
    pub(super) fn thread(&mut self, builder: &mut TraceBuilder, global: Option<i64>) -> (ProcessIdx, ThreadIdx) {
        let process = self.process(builder, global);
        let Some(global) = global else { return (process, builder.thread(process, 0)) };
        let tid = global.cast_unsigned() & ((1 << ID_BITS) - 1);
        let thread = *self.threads.entry(global).or_insert_with(|| builder.thread(process, tid));
        (process, thread)
    }

    /// The context with this id of a process on one of the process's devices. Without an id, each device has one.
    pub(super) fn context(
        &mut self,
        builder: &mut TraceBuilder,
        process: ProcessIdx,
        device: u32,
        id: Option<u32>,
    ) -> ContextIdx {
        let gpu = self.gpus.get(&(builder.pid(process), device)).copied().unwrap_or(device);
        let mut id = id.unwrap_or(gpu);
        if *self.contexts.entry((process, id)).or_insert(gpu) != gpu {
            // A context is on one device. One that seems to be on two stands for two whose ids were lost.
            id = u32::MAX - gpu;
        }
        let device = builder.device(gpu);
        builder.context(process, id, device)
    }

    /// The lane of a device's unified-memory migrations.
    pub(super) fn migrations(builder: &mut TraceBuilder, context: ContextIdx) -> StreamIdx {
        builder.stream(context, Stream::MIGRATIONS)
    }

    /// The GPUs that records named, by number.
    pub(super) fn used_gpus(&self) -> Vec<u32> {
        let mut gpus: Vec<u32> = self.contexts.values().copied().collect();
        gpus.sort_unstable();
        gpus.dedup();
        gpus
    }

    /// The device of a GPU's number.
    pub(super) fn device(builder: &mut TraceBuilder, gpu: u32) -> DeviceIdx {
        builder.device(gpu)
    }
}
