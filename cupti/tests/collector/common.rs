//! The mock library, the child processes, and a reading of the spool that shares nothing with the decoder.

use cupti::spool::{Anchor, Chunk, Drops, End, Ending, Header, Note, Reader, Status, Strings};
use libloading::os::unix::Library;
use std::ffi::{CString, c_char};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A scenario's name, and its body, which is told where to put a spool.
pub(crate) type Scenario = (&'static str, fn(&Path));

pub(crate) const SCENARIO: &str = "COLLECTOR_TEST_SCENARIO";
pub(crate) const SPOOL: &str = "COLLECTOR_TEST_SPOOL";
const LIBRARY: &str = "COLLECTOR_TEST_LIBRARY";

/// What the tests run, built by cargo.
#[derive(Debug)]
pub(crate) struct Built {
    /// The library that plays CUPTI.
    pub(crate) mock: PathBuf,
    /// The program that plays a CUDA program.
    pub(crate) target: PathBuf,
    /// The recorder library.
    pub(crate) inject: PathBuf,
}

pub(crate) fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "mock-cupti", "--package", "bubblescope-inject"])
            .args(["--message-format", "json"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let files: Vec<PathBuf> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|message| message["filenames"].as_array().cloned())
            .flatten()
            .filter_map(|file| Some(PathBuf::from(file.as_str()?)))
            .collect();
        let file =
            |name: &str| files.iter().find(|file| file.ends_with(name)).expect("cargo tells where it is").clone();
        Built { mock: file("libmock_cupti.so"), target: file("mock-target"), inject: file("libbubblescope_inject.so") }
    })
}

/// Where the mock is; children are told.
pub(crate) fn library() -> PathBuf {
    std::env::var_os(LIBRARY).map_or_else(|| built().mock.clone(), PathBuf::from)
}

/// A child that has ended. Its spool goes away with it.
pub(crate) struct Child {
    pub(crate) output: Output,
    pub(crate) spool: PathBuf,
    _folder: tempfile::TempDir,
}

impl Child {
    pub(crate) fn assert_ended_well(&self) {
        let (out, err) = (String::from_utf8_lossy(&self.output.stdout), String::from_utf8_lossy(&self.output.stderr));
        assert!(self.output.status.success(), "the child ended with {}\n{out}\n{err}", self.output.status);
    }
}

/// Runs a scenario in a child, with the mock's options and further environment variables.
pub(crate) fn run_child(scenario: &str, options: &str, environment: &[(&str, &Path)]) -> Child {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("test.bubcap");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads", "1"])
        .env(SCENARIO, scenario)
        .env(SPOOL, &spool)
        .env(LIBRARY, library())
        .env("MOCK_CUPTI", options)
        .env_remove("BUBBLESCOPE_CUPTI")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    Child { output, spool, _folder: folder }
}

/// A copy of the mock, beside `beside`, that lacks some functions: their names in its symbol table are changed, so they
/// are not found. Functions it never had are passed over.
pub(crate) fn without(symbols: &[&str], beside: &Path) -> PathBuf {
    let mut bytes = fs::read(library()).unwrap();
    let mut at = 0;
    let mut places = Vec::new();
    for name in bytes.split(|&byte| byte == 0) {
        if symbols.iter().any(|symbol| symbol.as_bytes() == name) {
            places.push(at);
        }
        at += name.len() + 1;
    }
    for place in places {
        bytes[place] = b'_';
    }
    let path = beside.with_file_name(format!("libmock_without_{}.so", symbols.concat().len()));
    // A new file each time: an earlier one may still be mapped.
    let _ = fs::remove_file(&path);
    fs::write(&path, bytes).unwrap();
    path
}

/// The mock that the recorder has loaded.
pub(crate) struct Mock(Library);

impl Mock {
    pub(crate) fn loaded() -> Self {
        Self::at(&library())
    }

    pub(crate) fn at(path: &Path) -> Self {
        // SAFETY: the mock has no initialisers that matter; a second opening gives the same copy.
        Self(unsafe { Library::open(Some(path), libc::RTLD_NOW) }.unwrap())
    }

    fn function<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the callers name functions of the mock with their signatures.
        *unsafe { self.0.get::<T>(name.as_bytes()) }.unwrap()
    }

    pub(crate) fn launch(&self, threads: u32, launches: u32) {
        self.function::<extern "C" fn(u32, u32)>("mock_launch")(threads, launches);
    }

    /// Threads that launch for a time, so many bytes of records a second all together; in bursts of this
    /// period, in milliseconds, if it is not 0.
    pub(crate) fn stream(&self, threads: u32, length: Duration, bytes_per_second: u64, period: u32) {
        let stream = self.function::<extern "C" fn(u32, u32, u64, u32)>("mock_stream");
        stream(threads, u32::try_from(length.as_millis()).unwrap(), bytes_per_second, period);
    }

    /// `cuCtxDestroy_v2`.
    pub(crate) fn destroy_context(&self) {
        self.function::<extern "C" fn(u32, u32)>("mock_call")(1, 322);
    }

    pub(crate) fn unfinished(&self) {
        self.function::<extern "C" fn()>("mock_unfinished")();
    }

    pub(crate) fn empty_buffer(&self) {
        self.function::<extern "C" fn()>("mock_empty_buffer")();
    }

    pub(crate) fn rename(&self) {
        self.function::<extern "C" fn()>("mock_rename")();
    }

    pub(crate) fn drop_records(&self, count: u64) {
        self.function::<extern "C" fn(u64)>("mock_drop")(count);
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        let name = CString::new(name).unwrap();
        let count = self.function::<extern "C" fn(*const c_char) -> i64>("mock_counter")(name.as_ptr());
        u64::try_from(count).expect("a known counter")
    }
}

/// Waits for something that comes, however slow the machine is.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}: it does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a spool holds.
#[derive(Debug)]
pub(crate) struct Spool {
    pub(crate) header: Header,
    pub(crate) ending: Option<Ending>,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// Correlation ids of kernel records, in order.
    pub(crate) kernels: Vec<u32>,
    pub(crate) kernels_without_end: Vec<u32>,
    /// Correlation ids of runtime calls, in order.
    pub(crate) calls: Vec<u32>,
    /// The names kernels had, in order of appearance.
    pub(crate) kernel_names: Vec<String>,
    pub(crate) callback_names: Vec<String>,
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) drops: Option<Drops>,
    pub(crate) status: Status,
    /// Bytes of all buffers, each time they were told.
    pub(crate) pool_bytes: Vec<u64>,
    pub(crate) notes: Vec<Note>,
    pub(crate) end: Option<End>,
    sizes: Vec<(u32, usize)>,
}

impl Spool {
    pub(crate) fn read(path: &Path) -> Self {
        let file = fs::read(path).unwrap();
        let mut reader = Reader::new(file.as_slice()).unwrap();
        let header = reader.header().clone();
        let mut spool = Self {
            sizes: header.sizes.iter().map(|s| (s.kind, s.bytes as usize)).collect(),
            header,
            ending: None,
            records: 0,
            bytes: 0,
            kernels: Vec::new(),
            kernels_without_end: Vec::new(),
            calls: Vec::new(),
            kernel_names: Vec::new(),
            callback_names: Vec::new(),
            anchors: Vec::new(),
            drops: None,
            status: Status::default(),
            pool_bytes: Vec::new(),
            notes: Vec::new(),
            end: None,
        };
        let mut strings = Strings::default();
        let mut next_seq = 0;
        for chunk in reader.by_ref() {
            match chunk.unwrap() {
                Chunk::Sizes(sizes) => {
                    for size in sizes {
                        spool.sizes.retain(|(kind, _)| *kind != size.kind);
                        spool.sizes.push((size.kind, size.bytes as usize));
                    }
                }
                Chunk::Strings { seq, texts } => {
                    assert_eq!(seq, next_seq, "texts come before their buffer");
                    strings.extend(texts);
                }
                Chunk::Buffer { seq, bytes } => {
                    // A long buffer is in several pieces of one number.
                    assert!(seq == next_seq || seq + 1 == next_seq, "{seq} follows {next_seq}");
                    next_seq = seq + 1;
                    spool.buffer(&bytes, &strings);
                }
                Chunk::CallbackNames(names) => spool.callback_names.extend(names.into_iter().map(|n| n.name.into())),
                Chunk::Anchor(anchor) => spool.anchors.push(anchor),
                Chunk::Drops(drops) => spool.drops = Some(drops),
                Chunk::Status(status) => {
                    spool.status = status;
                    spool.pool_bytes.push(status.pool_bytes);
                }
                Chunk::Beside(_) => panic!("a recorder knows nothing beside"),
                Chunk::Note(note) => spool.notes.push(note),
                Chunk::End(end) => spool.end = Some(end),
            }
        }
        spool.ending = reader.ending();
        spool.kernels.sort_unstable();
        spool.calls.sort_unstable();
        spool
    }

    pub(crate) fn size_of(&self, kind: u32) -> Option<usize> {
        self.sizes.iter().find(|(k, _)| *k == kind).map(|(_, bytes)| *bytes)
    }

    fn buffer(&mut self, bytes: &[u8], strings: &Strings) {
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while rest.len() >= 8 {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let long = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().unwrap());
            let kind = word(0);
            let Some(size) = self.size_of(kind) else { break };
            match kind {
                10 => {
                    self.kernels.push(word(92));
                    if long(24) == 0 {
                        self.kernels_without_end.push(word(92));
                    }
                    let name = strings.get(long(104)).expect("the name of every kernel");
                    if !self.kernel_names.iter().any(|known| known == name) {
                        self.kernel_names.push(name.to_owned());
                    }
                }
                5 => self.calls.push(word(32)),
                other => panic!("the mock writes no kind {other}"),
            }
            self.records += 1;
            rest = &rest[size..];
        }
    }
}
