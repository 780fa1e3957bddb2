//! The device: memory, and work that waits until it must run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::kernels::Launch;
use crate::{CAPTURE_UNJOINED, Handle, INVALID_HANDLE, INVALID_VALUE, Result};

type Answer<T = ()> = std::result::Result<T, Result>;

/// The legacy default stream.
const LEGACY: Handle = 0;
/// The per-thread default stream.
const PER_THREAD: Handle = 2;

/// Runs a call with the device, which is one for the process.
pub(crate) fn with_device<R>(work: impl FnOnce(&mut Device) -> R) -> R {
    static DEVICE: Mutex<Option<Device>> = Mutex::new(None);
    let mut device = DEVICE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    work(device.get_or_insert_with(Device::default))
}

/// A piece of work.
#[derive(Debug, Clone)]
pub(crate) enum Task {
    Nothing,
    Kernel(Launch),
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Free(u64),
    /// The body of a loop in a graph that is not instantiated.
    LoopOf {
        body: Handle,
    },
    Loop {
        body: Vec<Node>,
    },
}

/// A piece of work in a graph, and the places of those it comes after.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    task: Task,
    after: Vec<usize>,
}

/// A piece of work that was enqueued, and the numbers of those it comes after.
#[derive(Debug)]
struct Op {
    /// None when it has run.
    task: Option<Task>,
    after: Vec<usize>,
}

#[derive(Debug)]
struct Stream {
    /// Whether it and the legacy default stream wait for each other.
    blocking: bool,
    last: Option<usize>,
    /// While it is captured: the nodes that the next one comes after.
    captured: Option<Vec<usize>>,
}

/// Where an event was recorded.
#[derive(Debug, Clone)]
enum Mark {
    Never,
    Op(usize),
    Captured(Vec<usize>),
}

#[derive(Debug)]
struct Memory {
    kind: &'static str,
    words: Vec<u64>,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Device {
    eager: bool,
    /// Whether to compute one number wrongly in every kernel.
    wrong: bool,
    ops: Vec<Op>,
    /// All ops before this one have run.
    all_run: usize,
    streams: BTreeMap<Handle, Stream>,
    events: BTreeMap<Handle, Mark>,
    graphs: BTreeMap<Handle, Vec<Node>>,
    /// The stream that a capture began on, and its graph.
    capture: Option<(Handle, Handle)>,
    memory: BTreeMap<u64, Memory>,
    modules: BTreeSet<Handle>,
    again: bool,
    last_handle: Handle,
}

impl Default for Device {
    fn default() -> Self {
        let default_stream = |blocking| Stream { blocking, last: None, captured: None };
        Self {
            eager: std::env::var_os("MOCK_DRIVER_EAGER").is_some(),
            wrong: std::env::var_os("MOCK_DRIVER_WRONG").is_some(),
            ops: Vec::new(),
            all_run: 0,
            streams: [(LEGACY, default_stream(false)), (PER_THREAD, default_stream(true))].into(),
            events: BTreeMap::new(),
            graphs: BTreeMap::new(),
            capture: None,
            memory: BTreeMap::new(),
            modules: BTreeSet::new(),
            again: false,
            last_handle: 100,
        }
    }
}

impl Device {
    fn handle(&mut self) -> Handle {
        self.last_handle += 1;
        self.last_handle
    }

    /// What exists and should not any more, apart from what belongs to the context.
    pub(crate) fn left_over(&self) -> Vec<&'static str> {
        let mut kinds: Vec<_> = self.memory.values().map(|memory| memory.kind).collect();
        kinds.extend(self.streams.keys().filter(|&&stream| stream > PER_THREAD).map(|_| "stream"));
        kinds.extend(self.events.keys().map(|_| "event"));
        kinds.extend(self.graphs.keys().map(|_| "graph"));
        kinds.extend(self.modules.iter().map(|_| "module"));
        kinds
    }

    // Memory.

    pub(crate) fn allocate(&mut self, bytes: usize, kind: &'static str) -> u64 {
        // Not a number, read as floats.
        let words = vec![u64::MAX; bytes.div_ceil(8).max(1)];
        let address = words.as_ptr() as u64;
        self.memory.insert(address, Memory { kind, words, bytes });
        address
    }

    pub(crate) fn free(&mut self, address: u64) -> Answer {
        self.memory.remove(&address).map(|_| ()).ok_or(INVALID_VALUE)
    }

    /// Refuses a range that is not within one allocation.
    pub(crate) fn check_memory(&self, address: u64, bytes: usize) -> Answer {
        let (start, memory) = self.memory.range(..=address).next_back().ok_or(INVALID_VALUE)?;
        debug_assert_eq!(*start, memory.words.as_ptr() as u64);
        if address - start + bytes as u64 <= memory.bytes as u64 { Ok(()) } else { Err(INVALID_VALUE) }
    }

    // Modules, streams, events.

    pub(crate) fn add_module(&mut self) -> Handle {
        let module = self.handle();
        self.modules.insert(module);
        module
    }

    pub(crate) fn remove_module(&mut self, module: Handle) -> Answer {
        if self.modules.remove(&module) { Ok(()) } else { Err(INVALID_HANDLE) }
    }

    pub(crate) fn add_stream(&mut self, blocking: bool) -> Handle {
        let stream = self.handle();
        self.streams.insert(stream, Stream { blocking, last: None, captured: None });
        stream
    }

    pub(crate) fn remove_stream(&mut self, stream: Handle) -> Answer {
        self.run_stream(stream)?;
        self.streams.remove(&stream).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    pub(crate) fn add_event(&mut self) -> Handle {
        let event = self.handle();
        self.events.insert(event, Mark::Never);
        event
    }

    pub(crate) fn remove_event(&mut self, event: Handle) -> Answer {
        self.events.remove(&event).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    fn stream(&mut self, stream: Handle) -> Answer<&mut Stream> {
        self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)
    }

    // Work.

    /// Puts work behind the stream's, or into the graph that the stream is captured to.
    pub(crate) fn enqueue(&mut self, stream: Handle, task: Task) -> Answer {
        if let Some(after) = self.stream(stream)?.captured.clone() {
            let (_, graph) = self.capture.ok_or(INVALID_HANDLE)?;
            let nodes = self.graphs.get_mut(&graph).ok_or(INVALID_HANDLE)?;
            nodes.push(Node { task, after });
            let node = nodes.len() - 1;
            self.stream(stream)?.captured = Some(vec![node]);
            return Ok(());
        }
        self.push(stream, task, Vec::new()).map(|_| ())
    }

    fn push(&mut self, stream: Handle, task: Task, mut after: Vec<usize>) -> Answer<usize> {
        let legacy_last = self.stream(LEGACY)?.last;
        let Stream { blocking, last, .. } = *self.stream(stream)?;
        after.extend(last);
        if stream == LEGACY {
            after.extend(self.streams.values().filter(|other| other.blocking).filter_map(|other| other.last));
        } else if blocking {
            after.extend(legacy_last);
        }
        self.ops.push(Op { task: Some(task), after });
        let op = self.ops.len() - 1;
        self.stream(stream)?.last = Some(op);
        if self.eager {
            self.run(op);
        }
        Ok(op)
    }

    /// Runs a piece of work, and before it what it comes after.
    fn run(&mut self, op: usize) {
        let mut waiting = vec![op];
        while let Some(&op) = waiting.last() {
            if self.ops[op].task.is_none() {
                waiting.pop();
                continue;
            }
            let missing: Vec<usize> =
                self.ops[op].after.iter().copied().filter(|&before| self.ops[before].task.is_some()).collect();
            if missing.is_empty() {
                if let Some(task) = self.ops[op].task.take() {
                    self.perform(&task);
                }
            } else {
                waiting.extend(missing);
            }
        }
    }

    fn perform(&mut self, task: &Task) {
        match task {
            Task::Nothing | Task::LoopOf { .. } => {}
            Task::Kernel(launch) => {
                for address in launch.addresses() {
                    assert_eq!(self.check_memory(address, 4), Ok(()), "{launch:?} uses memory that is gone");
                }
                self.again = launch.run().unwrap_or(self.again);
                if self.wrong {
                    launch.spoil();
                }
            }
            Task::Copy { to, from, bytes } => unsafe {
                std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes);
            },
            Task::Free(address) => assert_eq!(self.free(*address), Ok(()), "pooled memory freed twice"),
            Task::Loop { body } => {
                self.again = true;
                while self.again {
                    body.iter().for_each(|node| self.perform(&node.task));
                }
            }
        }
    }

    /// Runs everything, the newest first where nothing forbids it.
    pub(crate) fn run_all(&mut self) {
        (self.all_run..self.ops.len()).rev().for_each(|op| self.run(op));
        self.all_run = self.ops.len();
    }

    pub(crate) fn run_stream(&mut self, stream: Handle) -> Answer {
        let Stream { last, ref captured, .. } = *self.stream(stream)?;
        if captured.is_some() {
            // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
            return Err(900);
        }
        if let Some(op) = last {
            self.run(op);
        }
        Ok(())
    }

    /// Work of the legacy default stream that the call waits for.
    pub(crate) fn run_blocking(&mut self, task: Task) -> Answer {
        let op = self.push(LEGACY, task, Vec::new())?;
        self.run(op);
        Ok(())
    }

    pub(crate) fn is_idle(&mut self, stream: Handle) -> Answer<bool> {
        let last = self.stream(stream)?.last;
        Ok(last.is_none_or(|op| self.ops[op].task.is_none()))
    }

    pub(crate) fn record_event(&mut self, event: Handle, stream: Handle) -> Answer {
        let mark = match self.stream(stream)?.captured.clone() {
            Some(nodes) => Mark::Captured(nodes),
            None => Mark::Op(self.push(stream, Task::Nothing, Vec::new())?),
        };
        *self.events.get_mut(&event).ok_or(INVALID_HANDLE)? = mark;
        Ok(())
    }

    pub(crate) fn wait_event(&mut self, stream: Handle, event: Handle) -> Answer {
        match self.events.get(&event).cloned().ok_or(INVALID_HANDLE)? {
            Mark::Never => {}
            Mark::Op(op) => {
                self.push(stream, Task::Nothing, vec![op])?;
            }
            // The stream joins the capture.
            Mark::Captured(nodes) => self.stream(stream)?.captured.get_or_insert_default().extend(nodes),
        }
        Ok(())
    }

    pub(crate) fn run_event(&mut self, event: Handle) -> Answer {
        match self.events.get(&event).cloned().ok_or(INVALID_HANDLE)? {
            Mark::Never => Ok(()),
            Mark::Op(op) => {
                self.run(op);
                Ok(())
            }
            Mark::Captured(_) => Err(INVALID_VALUE),
        }
    }

    pub(crate) fn is_reached(&self, event: Handle) -> Answer<bool> {
        match self.events.get(&event).ok_or(INVALID_HANDLE)? {
            Mark::Op(op) => Ok(self.ops[*op].task.is_none()),
            Mark::Never | Mark::Captured(_) => Err(INVALID_VALUE),
        }
    }

    // Graphs.

    pub(crate) fn add_graph(&mut self) -> Handle {
        let graph = self.handle();
        self.graphs.insert(graph, Vec::new());
        graph
    }

    /// Removes a graph or an instantiated one. Launches of it have their own copy of the work.
    pub(crate) fn remove_graph(&mut self, graph: Handle) -> Answer {
        for node in self.graphs.remove(&graph).ok_or(INVALID_HANDLE)? {
            if let Task::LoopOf { body } = node.task {
                self.graphs.remove(&body);
            }
        }
        Ok(())
    }

    pub(crate) fn roots(&self, graph: Handle) -> Answer<Vec<usize>> {
        let nodes = self.graphs.get(&graph).ok_or(INVALID_HANDLE)?;
        Ok((0..nodes.len()).filter(|&node| nodes[node].after.is_empty()).collect())
    }

    pub(crate) fn begin_capture(&mut self, stream: Handle, graph: Option<Handle>) -> Answer {
        if stream == LEGACY || self.capture.is_some() {
            return Err(INVALID_VALUE);
        }
        let graph = graph.unwrap_or_else(|| self.add_graph());
        self.stream(stream)?.captured = Some(Vec::new());
        self.capture = Some((stream, graph));
        Ok(())
    }

    /// Ends a capture. What its first stream does not come after in the end is not joined.
    pub(crate) fn end_capture(&mut self, stream: Handle) -> Answer<Handle> {
        let (first, graph) = self.capture.take().ok_or(INVALID_VALUE)?;
        let mut open = self.stream(first)?.captured.clone().unwrap_or_default();
        self.streams.values_mut().for_each(|stream| stream.captured = None);
        let nodes = self.graphs.get(&graph).ok_or(INVALID_HANDLE)?;
        let mut joined = BTreeSet::new();
        while let Some(node) = open.pop() {
            if joined.insert(node) {
                open.extend(&nodes[node].after);
            }
        }
        if first != stream || joined.len() != nodes.len() { Err(CAPTURE_UNJOINED) } else { Ok(graph) }
    }

    pub(crate) fn add_condition(&mut self, graph: Handle) -> Answer<u64> {
        self.graphs.get(&graph).ok_or(INVALID_HANDLE)?;
        // There is at most one loop at a time, so the condition can be named after its graph.
        Ok(graph as u64)
    }

    /// Adds a loop to a graph; gives where its body's handle is.
    pub(crate) fn add_loop(&mut self, graph: Handle, condition: u64) -> Answer<*mut Handle> {
        if condition != graph as u64 {
            return Err(INVALID_VALUE);
        }
        let body = self.add_graph();
        let nodes = self.graphs.get_mut(&graph).ok_or(INVALID_HANDLE)?;
        nodes.push(Node { task: Task::LoopOf { body }, after: Vec::new() });
        // Lives for as long as the process: the driver's would live for as long as the node.
        Ok(Box::into_raw(Box::new(body)))
    }

    pub(crate) fn instantiate(&mut self, graph: Handle) -> Answer<Handle> {
        let mut nodes = self.graphs.get(&graph).cloned().ok_or(INVALID_HANDLE)?;
        for node in &mut nodes {
            if let Task::LoopOf { body } = node.task {
                node.task = Task::Loop { body: self.graphs.get(&body).cloned().ok_or(INVALID_HANDLE)? };
            }
        }
        let exec = self.handle();
        self.graphs.insert(exec, nodes);
        Ok(exec)
    }

    pub(crate) fn set_node(&mut self, exec: Handle, node: usize, task: Task) -> Answer {
        let node = self.graphs.get_mut(&exec).and_then(|nodes| nodes.get_mut(node)).ok_or(INVALID_HANDLE)?;
        match (&node.task, &task) {
            (Task::Kernel(old), Task::Kernel(new)) if old.is_of_the_same_kernel(new) => node.task = task,
            _ => return Err(INVALID_VALUE),
        }
        Ok(())
    }

    pub(crate) fn launch_graph(&mut self, exec: Handle, stream: Handle) -> Answer {
        let nodes = self.graphs.get(&exec).cloned().ok_or(INVALID_HANDLE)?;
        let entry = self.push(stream, Task::Nothing, Vec::new())?;
        let first = self.ops.len();
        for Node { task, after } in nodes {
            let after = if after.is_empty() { vec![entry] } else { after.iter().map(|node| first + node).collect() };
            self.ops.push(Op { task: Some(task), after });
        }
        let all = (first..self.ops.len()).collect();
        self.push(stream, Task::Nothing, all).map(|_| ())
    }
}
