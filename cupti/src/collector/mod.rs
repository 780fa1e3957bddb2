//! The recorder: takes CUPTI's activity buffers and appends them to a spool while the program runs.
//!
//! The program's threads pay for what CUPTI does, for one pop from a pool when a buffer is full, and for nothing else.
//! One thread of ours fetches complete buffers and reads the clocks, another writes the spool. `cuptiFinalize` is never
//! called: it is unsafe while a program uses CUDA.

mod clock;
mod config;
mod file;
mod held;
mod kinds;
mod machine;
mod pool;
mod reserve;
mod setup;
mod shared;
mod signals;
mod spooler;
mod strides;
mod texts;
mod watch;

pub use config::Config;
pub use signals::Masked;
pub use watch::{Event, Listener, RangeText, Watch};

use crate::loader::{Cupti, Driver, DriverError, LoaderError};
use crate::process::Birth;
use crate::spool::{Drops, Header, RecordSize, Writer};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use cupti_sys::Api;
use file::SpoolFile;
use reserve::Reserve;
use setup::Setup;
use shared::{Message, SHARED, Shared};
use spooler::Spooler;
use std::fs::File;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The key of the note in a spool that tells how it is recorded, and by `process` which process it is of
/// ([`Birth`]).
pub const RECORDER_NOTE: &str = "recorder";

/// How long stopping waits for the writer: a disk may be slow, but a process must end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Told when the spool cannot be written any more, and again when more is lost, on a thread of the recorder.
pub type OnFault = fn(&Failure<'_>);

/// The spool cannot be written: it ends early, and recording has been switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// Why.
    pub error: &'a str,
    /// Buffers that were filled and not written so far, or not all of them.
    pub lost_buffers: u64,
    /// Records in them that were not written.
    pub lost_records: u64,
}

/// A recording in progress. At most one in the life of a process. If it is not stopped, it is ended when the process
/// exits; when the process is killed, the spool holds what had been fetched.
#[derive(Debug)]
pub struct Recorder {
    shared: &'static Shared,
}

/// What a recording came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Buffers in the spool.
    pub buffers: u64,
    /// Bytes of records in them.
    pub bytes: u64,
    /// Records in them, as far as they can be told apart.
    pub records: u64,
    /// Bytes behind a record that was not finished when CUPTI had to give its buffer back. They are in the spool too.
    pub unread_bytes: u64,
    /// What was lost.
    pub drops: Drops,
    /// Buffers that CUPTI has not given back.
    pub outstanding: u64,
    /// Why the spool ends early, if it could not be written to the end.
    pub write_error: Option<String>,
}

/// Why recording cannot start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// There is no driver or no GPU.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// There is no libcupti that works.
    #[error(transparent)]
    Loader(#[from] LoaderError),
    /// Another tool has CUPTI in this process.
    #[error("another tool records this process already: {}; stop it, or record without it", .holder.as_deref().unwrap_or("its name is not known"))]
    Busy {
        /// What the other calls itself, where CUPTI tells (CUDA 13.0 and later).
        holder: Option<String>,
    },
    /// CUPTI refuses.
    #[error("CUPTI refuses: {call} gives {name} ({result})")]
    Cupti {
        /// What was called.
        call: String,
        /// `CUptiResult`.
        result: u32,
        /// Its name.
        name: String,
    },
    /// The spool cannot be created.
    #[error("cannot write the spool {path}")]
    Spool {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread of the recorder")]
    Thread(#[source] std::io::Error),
    /// This process has been recorded before.
    #[error("this process is or has been recorded already; a process can be recorded once")]
    AlreadyStarted,
    /// The recording has been ended.
    #[error("the recording has ended already")]
    AlreadyStopped,
    /// This is a forked child of the recorded process.
    #[error("this is a forked child of the recorded process: the recording belongs to the parent")]
    Forked,
    /// The thread that writes the spool does not answer.
    #[error("the spool was not ended: its writer does not answer")]
    WriterLost,
}

/// The process in which a recording is started or has been; 0 when there is none. A forked child is another process.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// What stops the thread that flushes; taken by whoever ends the recording.
static FLUSHER: Mutex<Option<Flusher>> = Mutex::new(None);

#[derive(Debug)]
struct Flusher {
    stop: Sender<()>,
    stopped: Receiver<()>,
}

impl Recorder {
    /// Starts recording this process into a new spool at `spool`. Call it before the first use of CUDA in the process:
    /// kernels that are loaded later are cheaper to record, and what came before is not seen.
    ///
    /// # Errors
    /// When there is no NVIDIA driver or no CUPTI, when CUPTI refuses, or when the spool cannot be created. The process
    /// can go on unrecorded.
    pub fn start(config: &Config, spool: &Path) -> Result<Self, RecorderError> {
        Self::start_with(Driver::probe()?, config, spool)
    }

    /// [`Self::start`] with a driver that was found otherwise.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_with(driver: Driver, config: &Config, spool: &Path) -> Result<Self, RecorderError> {
        Reserved::take(driver, config)?.begin(spool, false, |_| ())
    }

    /// Adds a note to the spool: a key and a JSON text. Notes stand in the order of the calls.
    pub fn note(&self, key: &str, json: &str) {
        if !shared::is_forked() {
            let _ = self.shared.messages.send(Message::Note { key: key.to_owned(), json: json.to_owned() });
        }
    }

    /// Switches recording off: what begins from now on is not recorded. [`Self::stop`] has still to be called. This may
    /// be done inside a call of the program.
    pub fn switch_off(&self) {
        self.shared.switch_off();
    }

    /// Waits until CUPTI has given back every buffer, which it does when their records are complete. Switch recording off
    /// first. Whether that is so in time is told.
    pub fn drain(&self, at_most: Duration) -> bool {
        let begin = Instant::now();
        self.shared.fetch();
        while self.shared.outstanding() > 0 {
            if begin.elapsed() >= at_most {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
            self.shared.fetch();
        }
        true
    }

    /// Fetches all records, also of work that still runs, ends the spool, and lets go of CUPTI as far as that is safe in
    /// a process that lives on. Wait for the work first (see [`Self::drain`]): a record of work that still runs has no
    /// end, and is never given again.
    ///
    /// # Errors
    /// In a forked child, or when the writer does not answer.
    pub fn stop(self) -> Result<Summary, RecorderError> {
        finish(self.shared, Afterwards::LivesOn)
    }
}

/// CUPTI's one place for a client, taken, and everything set that has to be set before contexts are made. Nothing is
/// recorded yet. When it is dropped the place stays taken; see [`Self::give_up`].
#[derive(Debug)]
pub struct Reserved {
    driver: Driver,
    config: Config,
    cupti: Cupti,
    setup: Setup,
    attributes: Vec<setup::Setting>,
}

impl Reserved {
    /// Loads CUPTI and takes the place.
    ///
    /// # Errors
    /// When there is no CUPTI, or when it refuses. The process can go on unrecorded.
    pub fn take(driver: Driver, config: &Config) -> Result<Self, RecorderError> {
        if shared::is_forked() {
            return Err(RecorderError::Forked);
        }
        let this = std::process::id();
        if STARTED.swap(this, Ordering::AcqRel) == this {
            return Err(RecorderError::AlreadyStarted);
        }
        let taken = Cupti::load(&driver, config.cupti.as_deref())
            .map_err(RecorderError::from)
            .and_then(|cupti| Ok((Setup::subscribe(&cupti)?, cupti)));
        match taken {
            Ok((setup, cupti)) => {
                let attributes = setup::attributes(&cupti, config);
                Ok(Self { driver, config: config.clone(), cupti, setup, attributes })
            }
            Err(error) => {
                STARTED.store(0, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Takes over in a forked child what its parent had taken and not begun: the child has a copy of CUPTI in the same
    /// state, in which the place is taken.
    #[must_use]
    pub fn inherited(self) -> Self {
        STARTED.store(std::process::id(), Ordering::Release);
        self
    }

    /// The functions of CUPTI.
    pub fn api(&self) -> &Api {
        &self.cupti.api
    }

    /// Asks to be told of calls, also while nothing is recorded. A process has one listener, the first.
    pub fn listen(&self, watch: Watch, listener: Listener) {
        let _ = watch::LISTENER.set(listener);
        for id in watch.ids() {
            self.setup.watch(&self.cupti.api, id);
        }
    }

    /// Starts recording into a new spool at `spool`; `late` if the process may have used CUDA before.
    ///
    /// # Errors
    /// When CUPTI refuses, or when the spool cannot be created. The place is given back.
    pub fn begin(self, spool: &Path, late: bool, on_fault: OnFault) -> Result<Recorder, RecorderError> {
        let begun = begin(self, spool, late, on_fault);
        // Once CUPTI knows our callbacks there is no second try.
        if begun.is_err() && SHARED.get().is_none() {
            STARTED.store(0, Ordering::Release);
        }
        begun
    }

    /// Gives the place back.
    pub fn give_up(self) {
        self.setup.give_up(&self.cupti.api);
        STARTED.store(0, Ordering::Release);
    }
}

/// This process's executable and arguments.
pub(crate) fn this_process() -> (String, Vec<String>) {
    (machine::exe(), machine::command_line())
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(crate) fn monotonic_ns() -> i64 {
    clock::now(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME` in nanoseconds.
pub fn realtime_ns() -> i64 {
    clock::now(libc::CLOCK_REALTIME)
}

/// Loads CUPTI, and takes and gives back its one place for a client: whether recording could start. Call it in a child,
/// since a library is never unloaded and the driver may be started.
///
/// # Errors
/// Why recording could not start; [`RecorderError::Busy`] names the tool that is in the way.
pub fn try_cupti(driver: Driver, given: Option<&Path>) -> Result<Cupti, RecorderError> {
    let cupti = Cupti::load(&driver, given)?;
    Setup::subscribe(&cupti)?.give_up(&cupti.api);
    Ok(cupti)
}

fn begin(reserved: Reserved, path: &Path, late: bool, on_fault: OnFault) -> Result<Recorder, RecorderError> {
    let Reserved { driver, config, cupti, setup, attributes } = reserved;
    let config = &config;
    let spool_error = |source| RecorderError::Spool { path: path.to_owned(), source };
    let file = match File::create(path).and_then(SpoolFile::new) {
        Ok(file) => file,
        Err(error) => {
            setup.give_up(&cupti.api);
            return Err(spool_error(error));
        }
    };

    let pool = pool::Pool::new(config.buffer_bytes, config.memory_limit);
    pool.map(config.buffers);
    let (messages, inbox) = unbounded();
    let Cupti { api, version, .. } = cupti;
    let shared = Shared::new(api, pool, messages, file.identity());
    if SHARED.set(shared).is_err() {
        return Err(RecorderError::AlreadyStarted);
    }
    let shared = SHARED.get().ok_or(RecorderError::AlreadyStarted)?;

    let enabled = match setup::enable(&shared.api, version, config) {
        Ok(enabled) => enabled,
        Err(error) => {
            shared.set_stopped();
            setup.give_up(&shared.api);
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
    };
    let setup = shared.keep(setup, version, enabled.kinds.clone());
    for id in watch::CONTEXT_ENDS {
        setup.watch(&shared.api, id);
    }
    let sizes = setup::sizes(&shared.api, version, &enabled.kinds);
    let header = Header {
        recorder: concat!("bubblescope ", env!("CARGO_PKG_VERSION")).to_owned(),
        cupti_version: version,
        cupti_path: shared.api.path().display().to_string(),
        driver_version: driver.version(),
        pid: std::process::id(),
        exe: machine::exe(),
        command_line: machine::command_line(),
        start_realtime_ns: clock::now(libc::CLOCK_REALTIME),
        kinds: enabled.kinds.clone(),
        graphs: config.graphs,
        sizes: sizes.iter().map(|(kind, bytes)| RecordSize { kind, bytes }).collect(),
        machine: machine::machine(),
        begins_late: late,
    };
    let out = match Writer::new(file, &header) {
        Ok(out) => out,
        Err(error) => {
            shared.let_go();
            return Err(spool_error(error));
        }
    };
    let note = serde_json::json!({
        "config": config, "attributes": attributes, "refused": enabled.refused, "left_out": enabled.left_out,
        "process": Birth::of_this_process(),
    });
    let _ = shared.messages.send(Message::Note { key: RECORDER_NOTE.to_owned(), json: note.to_string() });
    let _ = shared.messages.send(shared.tick(0));

    let most = config.memory_limit / 4 / shared.pool.buffer_bytes();
    let reserve = Reserve::new(shared.pool.buffer_bytes(), shared.pool.mapped(), config.buffers.div_ceil(2), most);
    let spooler = Spooler::new(shared, out, sizes, reserve, on_fault);
    spawn("bubbles-spool", move || spooler.run(&inbox)).inspect_err(|_| shared.let_go())?;
    let (stop, stop_inbox) = bounded(1);
    let (stopped_sender, stopped) = bounded(1);
    let interval = config.flush_interval.max(Duration::from_millis(1));
    spawn("bubbles-flush", move || {
        flush(shared, interval, &stop_inbox);
        let _ = stopped_sender.send(());
    })
    .inspect_err(|_| shared.let_go())?;
    *FLUSHER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Flusher { stop, stopped });

    // SAFETY: the handlers are functions of this library, which is never unloaded, and may run at any time.
    unsafe {
        libc::pthread_atfork(None, None, Some(shared::in_forked_child));
        libc::atexit(at_exit);
    }
    Ok(Recorder { shared })
}

/// Fetches complete buffers and reads the clocks, until told to stop.
fn flush(shared: &Shared, interval: Duration, stop: &Receiver<()>) {
    while stop.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        // Before, so that it counts only what the fetch could give.
        let handed_out = shared.handed_out();
        shared.fetch();
        if shared.messages.send(shared.tick(handed_out)).is_err() {
            // Nobody writes any more, so nothing need be recorded.
            shared.switch_off();
            return;
        }
    }
}

extern "C" fn at_exit() {
    let _ = catch_unwind(|| SHARED.get().map(|shared| finish(shared, Afterwards::Ends)));
}

/// What comes after the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Afterwards {
    /// The process goes on.
    LivesOn,
    /// The process ends.
    Ends,
}

/// Ends the recording, once. Whoever comes second waits until it has ended, since the process may end then.
fn finish(shared: &'static Shared, afterwards: Afterwards) -> Result<Summary, RecorderError> {
    if shared::is_forked() {
        return Err(RecorderError::Forked);
    }
    let begin = Instant::now();
    let mut flusher = loop {
        match FLUSHER.try_lock() {
            Ok(flusher) => break flusher,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if begin.elapsed() > PATIENCE => return Err(RecorderError::WriterLost),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let Some(Flusher { stop, stopped }) = flusher.take() else { return Err(RecorderError::AlreadyStopped) };
    if afterwards == Afterwards::LivesOn {
        shared.switch_off();
    }
    let _ = stop.send(());
    let _ = stopped.recv_timeout(PATIENCE);
    let handed_out = shared.handed_out();
    // Also buffers with records of work that still runs.
    let forced = cupti_sys::bindings::CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
    // SAFETY: an `Api` in use means that a driver is there; this is no thread of CUPTI.
    unsafe { (shared.api.activity_flush_all)(forced) };
    shared.set_stopped();
    let _ = shared.messages.send(shared.tick(handed_out));
    let (answer, summary) = bounded(1);
    shared.messages.send(Message::Stop { answer }).map_err(|_| RecorderError::WriterLost)?;
    let summary = summary.recv_timeout(PATIENCE).map_err(|_| RecorderError::WriterLost)?;
    if afterwards == Afterwards::LivesOn {
        shared.let_go();
        shared.pool.give_up(usize::MAX);
    }
    Ok(summary)
}

/// Starts a thread of the recorder, which takes no signals: those are for the program's own threads. A panic ends the
/// thread and nothing else.
///
/// # Errors
/// When the system has no room for a thread.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), RecorderError> {
    // A new thread inherits the mask of the one that starts it.
    let _masked = Masked::all();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _ = catch_unwind(std::panic::AssertUnwindSafe(body));
    });
    thread.map(drop).map_err(RecorderError::Thread)
}
