//! Opens traces in the background, so that the window never waits.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bubblescope::analysis::{FullAnalysis, Options, half_way_watched};
use bubblescope::progress::Watch;
use bubblescope::trace::Trace;
use crossbeam_channel::{Receiver, TryRecvError, bounded};

use crate::document::{Document, Explanation};

/// Reads a trace, whatever format it has.
fn read(path: &Path, watch: &dyn Watch) -> anyhow::Result<Trace> {
    Ok(bubblescope::open::open_watched(path, watch)?)
}

/// What is analysed of a trace, as by `bubble-report`: of a workload's run the measured part, else everything.
pub fn options(trace: &Trace) -> Options {
    Options { window: trace.meta.workload.as_ref().and_then(|run| run.measured), ..Options::default() }
}

/// What a loading thread has to tell, in this order unless it fails.
#[derive(Debug)]
pub enum Loaded {
    /// The trace is read and can be shown.
    Document(Box<Document>),
    /// It is analysed: why the devices were idle.
    Analysis(Box<Explanation>),
    /// It is replayed: what can be done about it.
    Full(Arc<FullAnalysis>),
    /// It cannot be opened: one line that names the file and the reason.
    Failed(String),
}

/// How far a trace that is being opened has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The file is read.
    #[default]
    Reading,
    /// The trace is shown, and bubbles and their causes are looked for.
    Analysing,
    /// The bubbles are shown, and the recording is replayed with changes to find what they would gain.
    Replaying,
}

impl Stage {
    /// How many there are.
    pub const COUNT: u8 = 3;

    /// What is being done.
    pub fn doing(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Analysing => "looking for bubbles in",
            Self::Replaying => "replaying changes of",
        }
    }

    /// Its place among all, from 1 on.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// What the loading thread and the window tell each other meanwhile.
#[derive(Debug, Default)]
struct Meanwhile {
    cancelled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Watch for Meanwhile {
    fn progress(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// A trace that is being opened. Dropping it cancels that.
#[derive(Debug)]
pub struct Loading {
    /// The file.
    pub path: PathBuf,
    /// Place of the trace among the opened ones.
    pub order: u64,
    /// How far it has come.
    pub stage: Stage,
    /// The traces that stood in its place, to be put back when it is cancelled.
    pub before: Vec<Document>,
    /// It takes the place of every trace that was asked for up to this one.
    pub instead_of: Option<u64>,
    /// Whether it is a file that can be opened again.
    pub is_file: bool,
    /// The order of the first of those that are read at the same time. The window shows them from their beginning when one
    /// of them comes, and leaves what was done since alone when the others do.
    pub together: u64,
    meanwhile: Arc<Meanwhile>,
    started: Instant,
    results: Receiver<Loaded>,
}

impl Loading {
    /// Starts to open a file. `wake` is called whenever there is something to take.
    pub fn file(path: &Path, wake: impl Fn() + Send + 'static) -> Self {
        let mut loading = Self::start(path, wake, read);
        loading.is_file = true;
        loading
    }

    /// Starts to show what `read` gives.
    pub fn start(
        path: &Path,
        wake: impl Fn() + Send + 'static,
        read: impl FnOnce(&Path, &dyn Watch) -> anyhow::Result<Trace> + Send + 'static,
    ) -> Self {
        let (send, results) = bounded(3);
        let file = path.to_owned();
        let failed = send.clone();
        let meanwhile = Arc::new(Meanwhile::default());
        let watch = Arc::clone(&meanwhile);
        let work = move || {
            // A receiver that is gone means that the user cancelled: nothing is left to do.
            let tell = |loaded| {
                let told = send.send(loaded).is_ok();
                wake();
                told
            };
            match read(&file, &*watch) {
                Err(error) => {
                    tell(Loaded::Failed(format!("{error:#}")));
                }
                Ok(trace) => {
                    let trace = Arc::new(trace);
                    if watch.is_cancelled()
                        || !tell(Loaded::Document(Box::new(Document::new(&file, Arc::clone(&trace)))))
                    {
                        return;
                    }
                    let options = options(&trace);
                    let Ok(half_way) = half_way_watched(&trace, &options, &*watch) else { return };
                    let explanation = Explanation::new(&trace, half_way.analysis.clone());
                    if !watch.is_cancelled() && tell(Loaded::Analysis(Box::new(explanation))) {
                        // When it is cancelled there is nothing to tell.
                        if let Ok(full) = half_way.finish_watched(&trace, &options, &*watch) {
                            tell(Loaded::Full(Arc::new(full)));
                        }
                    }
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("load".to_owned()).spawn(work) {
            // The channel has room for it, and its other end is ours.
            drop(failed.try_send(Loaded::Failed(format!("{}: no thread: {error}", path.display()))));
        }
        Self {
            path: path.to_owned(),
            order: 0,
            stage: Stage::default(),
            before: Vec::new(),
            instead_of: None,
            is_file: false,
            together: 0,
            meanwhile,
            started: Instant::now(),
            results,
        }
    }

    /// How long it has been going on.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// How much of the file is read, in percent; `None` when that is not known, or something else is done.
    pub fn percent(&self) -> Option<u64> {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (done, total) = (of(&self.meanwhile.done), of(&self.meanwhile.total));
        let percent = u128::from(done) * 100 / u128::from(total.max(1));
        (self.stage == Stage::Reading && total > 0).then(|| u64::try_from(percent).unwrap_or(100).min(100))
    }

    /// What has arrived; `Err` when no more will come.
    pub fn take(&mut self) -> Result<Option<Loaded>, Ended> {
        match self.results.try_recv() {
            Ok(loaded) => {
                self.stage = match loaded {
                    Loaded::Document(_) => Stage::Analysing,
                    Loaded::Analysis(..) => Stage::Replaying,
                    Loaded::Full(_) | Loaded::Failed(_) => self.stage,
                };
                Ok(Some(loaded))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Ended),
        }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.meanwhile.cancelled.store(true, Ordering::Relaxed);
    }
}

/// The loading thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;
