//! What this process was asked to do, and how far it is.

use crate::range::{Search, Turn};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use cupti::collector::{self, Event, Failure, Masked, Reserved, Watch};
use cupti::inject::{CaptureRange, Effect, Fault, Place, REQUEST_VARIABLE, Request};
use cupti::loader::{Cupti, Driver, NVTX_BEFORE_CUDA_CRASHES};
use cupti::{Recorder, RecorderError};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long the end of a window waits for work that was started in it.
const DRAIN: Duration = Duration::from_secs(1);

/// How long the end of the process waits for a recording that is about to begin.
const BEGINNING: Duration = Duration::from_secs(1);

/// Takes NVTX over (`cuptiNvtxInitialize`).
type NvtxInitialize = unsafe extern "C" fn(*mut c_void) -> cupti::RawResult;

/// One process, recorded once. It is never dropped, since CUPTI may call until the last moment.
#[derive(Debug)]
pub(crate) struct Session {
    pid: u32,
    place: Place,
    request: Request,
    /// Whether CUPTI was taken by the parent this process was forked from.
    inherits: bool,
    state: Mutex<State>,
    /// Held while the recording begins.
    beginning: Mutex<()>,
    search: Option<Mutex<Search>>,
    /// Whether the delay is over.
    armed: AtomicBool,
    cuda_started: AtomicBool,
    /// Whether CUPTI was taken, or that was tried.
    reserved: AtomicBool,
    /// `CLOCK_REALTIME` when this began.
    began: i64,
    faults: Mutex<Faults>,
    signals: Sender<Signal>,
    inbox: Receiver<Signal>,
}

/// All that went wrong.
#[derive(Debug, Default)]
struct Faults {
    /// Each in one line.
    lines: Vec<String>,
    /// The worst that it did.
    effect: Effect,
    lost_buffers: u64,
    lost_records: u64,
    lived: Option<(i64, i64)>,
}

#[derive(Debug)]
enum State {
    /// CUDA has not started.
    Idle,
    /// CUPTI is ours, and the window has not begun.
    Waiting(Box<Reserved>),
    Recording(Recorder),
    /// On its way from one to another, or over.
    Gone,
}

/// For the thread that keeps the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Begun,
    RangeEnded,
}

static CURRENT: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

impl Session {
    /// This process's session; `None` when it was asked for nothing that can be read.
    pub(crate) fn of_this_process() -> Option<&'static Self> {
        static CREATION: Mutex<()> = Mutex::new(());
        let _guard = lock(&CREATION);
        if let Some(session) = Self::existing() {
            return Some(session);
        }
        let session = Box::leak(Box::new(Self::new(request()?, Self::of_the_parent())));
        CURRENT.store(session, Ordering::Release);
        stay_loaded();
        // A panic here is written down, and never printed into the program's output.
        std::panic::set_hook(Box::new(|panic| {
            if let Some(session) = Self::existing() {
                session.fault(&format!("a fault of the recorder: {panic}"), Effect::EndsEarly);
            }
        }));
        Some(session)
    }

    /// The session, unless there is none or it belongs to the parent this process was forked from.
    fn existing() -> Option<&'static Self> {
        // SAFETY: it is null or a leaked session.
        let session = unsafe { CURRENT.load(Ordering::Acquire).as_ref() };
        session.filter(|session| session.pid == std::process::id())
    }

    /// The session of the process this one was forked from, as it was then.
    fn of_the_parent() -> Option<&'static Self> {
        // SAFETY: it is null or a leaked session.
        unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
    }

    fn new(request: Request, parent: Option<&Self>) -> Self {
        let (signals, inbox) = unbounded();
        // A thread that had a lock when the parent forked does not exist here and will never open it: then the child
        // begins anew.
        let search = match &request.window.range {
            Some(CaptureRange::Nvtx { name }) => {
                let known = parent.and_then(|parent| parent.search.as_ref()?.try_lock().ok()?.for_child().into());
                Some(Mutex::new(known.unwrap_or_else(|| Search::new(name.clone()))))
            }
            Some(CaptureRange::CudaProfilerApi) | None => None,
        };
        let state = match parent.and_then(|parent| parent.state.try_lock().ok()) {
            Some(mut state) if matches!(*state, State::Waiting(_)) => {
                match std::mem::replace(&mut *state, State::Gone) {
                    State::Waiting(reserved) => State::Waiting(Box::new(reserved.inherited())),
                    other => other,
                }
            }
            _ => State::Idle,
        };
        Self {
            pid: std::process::id(),
            place: Place::for_this_process(&request.folder),
            // Without a delay from the first moment on: the program may mark its range before any thread of ours runs.
            armed: AtomicBool::new(request.window.delay.is_none()),
            request,
            inherits: matches!(state, State::Waiting(_)),
            state: Mutex::new(state),
            beginning: Mutex::new(()),
            search,
            cuda_started: AtomicBool::new(false),
            reserved: AtomicBool::new(false),
            began: collector::realtime_ns(),
            faults: Mutex::default(),
            signals,
            inbox,
        }
    }

    /// CUDA starts in this process: the recording begins, or waits for its window.
    pub(crate) fn cuda_starts(&'static self) {
        self.cuda_started.store(true, Ordering::Release);
        self.reserve(self.assumed_driver());
        // Within the start of CUDA, so that nothing comes before.
        if !self.request.window.begins_late() {
            self.begin();
        }
    }

    /// NVTX starts in a library of this process.
    ///
    /// # Safety
    /// The argument is what NVTX gives, and `which` chooses the function for this version of NVTX.
    pub(crate) unsafe fn nvtx_starts(
        &'static self,
        which: fn(&cupti::Api) -> Option<NvtxInitialize>,
        argument: *mut c_void,
    ) -> bool {
        let started = self.cuda_started.load(Ordering::Acquire);
        // Without a driver CUPTI must not be called, and there is nothing to record.
        let Ok(driver) = (if started { Ok(self.assumed_driver()) } else { Driver::probe() }) else { return false };
        let loaded = Cupti::load(&driver, self.request.config.cupti.as_deref());
        let Ok(cupti) = loaded.inspect_err(|error| self.fault(&chain(error), Effect::Incomplete)) else { return false };
        if cupti.version == NVTX_BEFORE_CUDA_CRASHES && !started {
            let message = "NVTX ranges are missing: CUPTI 13.0.0 cannot take them before CUDA starts; 13.0.1 can";
            self.fault(message, Effect::Incomplete);
            return false;
        }
        let Some(initialize) = which(&cupti.api) else {
            self.fault("NVTX ranges are missing: this CUPTI does not take them", Effect::Incomplete);
            return false;
        };
        // SAFETY: as the caller says.
        let result = unsafe { initialize(argument) };
        let taken = result == cupti::CUPTI_SUCCESS;
        if !taken {
            // SAFETY: the table is of a loaded CUPTI.
            let name = unsafe { cupti.api.result_name(result) };
            self.fault(&format!("NVTX ranges are missing: CUPTI does not take them over ({name})"), Effect::Incomplete);
        }
        // Texts may be registered from the first call on.
        if taken && self.search.is_some() {
            self.reserve(driver);
        }
        taken
    }

    fn assumed_driver(&self) -> Driver {
        // SAFETY: libcuda itself has called us.
        unsafe { Driver::assume(self.request.driver_version) }
    }

    /// Takes CUPTI, and starts what waits for the window.
    fn reserve(&'static self, driver: Driver) {
        static AT_EXIT: Once = Once::new();
        let mut state = lock(&self.state);
        if self.reserved.swap(true, Ordering::AcqRel) {
            return;
        }
        if !self.inherits {
            *state = State::Gone;
            match Reserved::take(driver, &self.request.config) {
                Ok(reserved) => {
                    match self.request.window.range {
                        Some(CaptureRange::CudaProfilerApi) => reserved.listen(Watch::Profiler, heard),
                        Some(CaptureRange::Nvtx { .. }) => reserved.listen(Watch::Ranges, heard),
                        None => {}
                    }
                    *state = State::Waiting(Box::new(reserved));
                }
                Err(error) => self.fault(&chain(&error), Effect::NotRecorded),
            }
        }
        drop(state);
        if !self.request.window.is_everything() {
            // A forked child has the handlers of its parent.
            // SAFETY: a function of this library, which stays loaded.
            AT_EXIT.call_once(|| unsafe {
                libc::atexit(never_begun);
            });
            if let Err(error) = collector::spawn("bubbles-window", || self.keep_window()) {
                self.fault(&chain(&error), Effect::NotRecorded);
            }
        }
    }

    /// Begins, if it has not.
    fn begin(&self) {
        let _beginning = lock(&self.beginning);
        let mut state = lock(&self.state);
        if !matches!(*state, State::Waiting(_)) {
            return;
        }
        let State::Waiting(reserved) = std::mem::replace(&mut *state, State::Gone) else { return };
        drop(state);
        match reserved.begin(&self.place.spool(), self.request.window.begins_late(), recording_fault) {
            Ok(recorder) => {
                *lock(&self.state) = State::Recording(recorder);
                let _ = self.signals.send(Signal::Begun);
            }
            Err(error) => self.fault(&chain(&error), Effect::NotRecorded),
        }
    }

    fn end(&self) {
        let state = std::mem::replace(&mut *lock(&self.state), State::Gone);
        let State::Recording(recorder) = state else { return };
        recorder.switch_off();
        recorder.drain(DRAIN);
        if let Err(error @ RecorderError::WriterLost) = recorder.stop() {
            self.fault(&chain(&error), Effect::EndsEarly);
        }
    }

    /// Runs on a thread of its own.
    fn keep_window(&self) {
        let window = &self.request.window;
        std::thread::sleep(window.delay.unwrap_or_default());
        self.armed.store(true, Ordering::Release);
        if window.begins_late() && window.range.is_none() {
            without_signals(|| self.begin());
        }
        let mut until = None;
        loop {
            let signal = match until {
                Some(until) => self.inbox.recv_deadline(until),
                None => self.inbox.recv().map_err(RecvTimeoutError::from),
            };
            match signal {
                Ok(Signal::Begun) => until = window.duration.and_then(|d| Instant::now().checked_add(d)),
                Ok(Signal::RangeEnded) | Err(_) => break,
            }
        }
        self.end();
    }

    fn hear(&self, event: &Event<'_>) {
        let armed = self.armed.load(Ordering::Acquire);
        let turn = match (&self.search, event) {
            (Some(search), event) => {
                // SAFETY: `gettid` has no conditions.
                let thread = unsafe { libc::gettid() };
                lock(search).hear(event, thread, armed)
            }
            (None, Event::ProfilerStarted) => armed.then_some(Turn::Begins),
            (None, Event::ProfilerStops) => Some(Turn::Ends),
            (None, _) => None,
        };
        match turn {
            Some(Turn::Begins) => without_signals(|| self.begin()),
            Some(Turn::Ends) => {
                if let State::Recording(recorder) = &*lock(&self.state) {
                    recorder.switch_off();
                    let _ = self.signals.send(Signal::RangeEnded);
                }
            }
            None => {}
        }
    }

    /// Writes down what went wrong and what that did to the recording.
    fn fault(&self, message: &str, effect: Effect) {
        self.faults(message, effect, |_| {});
    }

    fn faults(&self, message: &str, effect: Effect, further: impl FnOnce(&mut Faults)) {
        let mut faults = lock(&self.faults);
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        if !faults.lines.contains(&line) {
            faults.lines.push(line);
        }
        faults.effect = faults.effect.max(effect);
        further(&mut faults);
        let fault = Fault {
            lost_buffers: faults.lost_buffers,
            lost_records: faults.lost_records,
            lived: faults.lived,
            ..Fault::of_this_process(faults.lines.join("; "), faults.effect)
        };
        // If even this cannot be written, there is nobody to tell: the output belongs to the program.
        let _ = self.place.report(&fault);
    }
}

/// The request; a fault is left where it can be when there is one that cannot be read.
fn request() -> Option<Request> {
    let text = std::env::var_os(REQUEST_VARIABLE)?;
    let text = text.to_str()?;
    match serde_json::from_str::<Request>(text) {
        Ok(request) if request.folder.is_dir() => Some(request),
        Ok(_) => None,
        Err(error) => {
            let value: serde_json::Value = serde_json::from_str(text).ok()?;
            let folder = PathBuf::from(value.get("folder")?.as_str()?);
            let message = format!("{REQUEST_VARIABLE} cannot be understood: {error}");
            let _ = Place::for_this_process(&folder).report(&Fault::of_this_process(message, Effect::NotRecorded));
            None
        }
    }
}

fn heard(event: &Event<'_>) {
    if let Some(session) = Session::existing() {
        session.hear(event);
    }
}

fn recording_fault(failure: &Failure<'_>) {
    let Some(session) = Session::existing() else { return };
    let Failure { error, lost_buffers, lost_records } = *failure;
    let message = format!("the recording ends early: the spool cannot be written: {error}");
    session.faults(&message, Effect::EndsEarly, |faults| {
        faults.lost_buffers = lost_buffers;
        faults.lost_records = lost_records;
    });
}

extern "C" fn never_begun() {
    let _ = catch_unwind(|| {
        let Some(session) = Session::existing() else { return };
        // One that begins right now is ended after this, in its own handler, and not cut off before its first byte.
        let until = Instant::now() + BEGINNING;
        while matches!(session.beginning.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !matches!(*lock(&session.state), State::Waiting(_)) {
            return;
        }
        let reason = match &session.request.window.range {
            _ if !session.armed.load(Ordering::Acquire) => "the process ended before the delay was over".to_owned(),
            Some(CaptureRange::CudaProfilerApi) => "cudaProfilerStart was never called".to_owned(),
            Some(CaptureRange::Nvtx { name }) => format!("the NVTX range {name:?} was never entered"),
            None => return,
        };
        let message = format!("the recording never began: {reason}");
        without_signals(|| {
            session.faults(&message, Effect::NotRecorded, |faults| {
                faults.lived = Some((session.began, collector::realtime_ns()));
            });
        });
    });
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps this library loaded until the process ends, since its threads and handlers run in it.
fn stay_loaded() {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let here: *const c_void = std::ptr::from_ref(&CURRENT).cast();
    // SAFETY: the address is one of this library, and the structure is written on success.
    unsafe {
        if libc::dladdr(here, info.as_mut_ptr()) != 0 {
            let name = info.assume_init().dli_fname;
            if !name.is_null() && Path::new(&*CStr::from_ptr(name).to_string_lossy()).is_absolute() {
                libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
            }
        }
    }
}

/// Runs `work` on this thread so that its writing cannot end the program: a file that may not grow (`SIGXFSZ`) gives an
/// error instead of a signal.
pub(crate) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    let _masked = Masked::against_long_files();
    work()
}
