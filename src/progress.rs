//! What long work tells while it goes on, and how it is told to stop.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use thiserror::Error;

/// Somebody who waits for long work. Its methods are called often and from any thread, so they must be quick.
pub trait Watch: Sync {
    /// Takes how much is done: `done` of `total`, in whatever unit the work has. It may stay at `total` for a while,
    /// and need not reach it.
    fn progress(&self, done: u64, total: u64);

    /// Whether the work is no longer wanted: it then ends soon, and its result is an error.
    fn is_cancelled(&self) -> bool;
}

/// Nobody waits for progress, and nobody cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&self, _done: u64, _total: u64) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// The work was no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it was cancelled")]
pub struct Cancelled;

/// A watch that work carries along and only asks whether to go on.
#[derive(Clone, Copy)]
pub(crate) struct Until<'w>(&'w dyn Watch);

impl<'w> Until<'w> {
    /// Until the work is done.
    pub(crate) const DONE: Until<'static> = Until(&Unwatched);

    /// Until the work is cancelled.
    pub(crate) fn cancelled(watch: &'w dyn Watch) -> Self {
        Self(watch)
    }

    /// Whether to give up.
    pub(crate) fn is_over(self) -> bool {
        self.0.is_cancelled()
    }

    /// The same in the turn of this number of a loop whose turns are short: it asks only now and then.
    #[inline]
    pub(crate) fn is_over_at(self, turn: usize) -> bool {
        turn % TURNS == TURNS - 1 && self.is_over()
    }

    /// Whether to go on.
    pub(crate) fn check(self) -> Result<(), Cancelled> {
        check(self.0)
    }
}

/// What comes of work that nobody cancels.
pub(crate) fn uncancelled<T>(work: impl FnOnce(Until<'static>) -> Result<T, Cancelled>) -> T {
    match work(Until::DONE) {
        Ok(done) => done,
        Err(Cancelled) => unreachable!("it gave up though nobody cancelled it"),
    }
}

/// So many short turns, of well below a microsecond each, lie between two looks.
const TURNS: usize = 1 << 14;

impl fmt::Debug for Until<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Until").field(&self.is_over()).finish()
    }
}

/// Whether to go on.
pub(crate) fn check(watch: &dyn Watch) -> Result<(), Cancelled> {
    if watch.is_cancelled() { Err(Cancelled) } else { Ok(()) }
}

/// Whether reading failed because it was cancelled.
pub(crate) fn was_cancelled(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Cancelled>)
}

/// A reader that tells how far it is.
pub(crate) struct Watched<'w, R> {
    source: R,
    done: u64,
    total: u64,
    watch: &'w dyn Watch,
}

impl<'w, R: Read> Watched<'w, R> {
    /// Reads `source` as the part of a work of `total` bytes that comes after `done` ones.
    pub(crate) fn new(source: R, done: u64, total: u64, watch: &'w dyn Watch) -> Self {
        Self { source, done, total, watch }
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        check(self.watch).map_err(io::Error::other)?;
        let read = self.source.read(into)?;
        self.done = self.done.saturating_add(read as u64);
        self.watch.progress(self.done.min(self.total), self.total);
        Ok(read)
    }
}

/// So many bytes are read between two looks at the watch.
const CHUNK: u64 = 8 << 20;

/// Reads a file of about `bytes` bytes as the first part of a work of `total` bytes.
pub(crate) fn read_file(mut file: File, bytes: u64, total: u64, watch: &dyn Watch) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // A file may claim any length: what does not fit is an error and no abort.
    content.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(io::Error::other)?;
    loop {
        check(watch).map_err(io::Error::other)?;
        if file.by_ref().take(CHUNK).read_to_end(&mut content)? == 0 {
            return Ok(content);
        }
        watch.progress((content.len() as u64).min(total), total);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Cancels after so many reports of progress.
    #[derive(Debug, Default)]
    pub(crate) struct Impatient {
        patience: u64,
        reports: AtomicU64,
        /// The last report, in thousandths.
        share: AtomicU64,
    }

    impl Impatient {
        pub(crate) fn of(patience: u64) -> Self {
            Self { patience, ..Self::default() }
        }

        pub(crate) fn reports(&self) -> u64 {
            self.reports.load(Ordering::Relaxed)
        }

        pub(crate) fn share(&self) -> u64 {
            self.share.load(Ordering::Relaxed)
        }
    }

    impl Watch for Impatient {
        fn progress(&self, done: u64, total: u64) {
            assert!(done <= total, "{done} of {total}");
            self.reports.fetch_add(1, Ordering::Relaxed);
            self.share.fetch_max((done * 1_000).checked_div(total).unwrap_or(0), Ordering::Relaxed);
        }

        fn is_cancelled(&self) -> bool {
            self.reports() >= self.patience
        }
    }

    #[test]
    fn a_watched_reader_counts_and_stops() {
        let bytes = [7_u8; 100];
        let watch = Impatient::of(u64::MAX);
        let mut reader = Watched::new(&bytes[..], 100, 200, &watch);
        let mut part = [0; 50];
        reader.read_exact(&mut part).unwrap();
        assert_eq!(watch.share(), 750);

        let watch = Impatient::of(1);
        let mut reader = Watched::new(&bytes[..], 0, 100, &watch);
        reader.read_exact(&mut part).unwrap();
        assert!(was_cancelled(&reader.read_exact(&mut part).unwrap_err()));
    }
}
