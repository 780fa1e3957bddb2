//! Work that nobody wants any more ends soon, wherever it is.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::synced_loop;
use crate::analysis::{Constants, FullAnalysis, Options, full, half_way_watched, marked, marked_watched};
use crate::progress::{Cancelled, Watch};
use crate::trace::{Interval, Ns, Trace};

/// Cancels at a look, and counts them.
struct After {
    looks: AtomicUsize,
    patience: usize,
}

impl After {
    fn looks(patience: usize) -> Self {
        Self { looks: AtomicUsize::new(0), patience }
    }

    fn count(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }
}

impl Watch for After {
    fn progress(&self, _done: u64, _total: u64) {}

    fn is_cancelled(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= self.patience
    }
}

fn all(trace: &Trace, watch: &After) -> Result<FullAnalysis, Cancelled> {
    let options = Options::default();
    half_way_watched(trace, &options, watch)?.finish_watched(trace, &options, watch)
}

#[test]
fn an_analysis_is_given_up_at_every_look_and_hardly_looks_again() {
    let trace = synced_loop(300);
    let watch = After::looks(usize::MAX);
    let done = all(&trace, &watch).unwrap();
    assert_eq!(done, full(&trace, &Options::default()), "being watched changes nothing");
    assert!(!done.findings.found.is_empty(), "it has come to the replays of findings");
    let looks = watch.count();
    assert!(looks > 15, "{looks}");
    for patience in 0..looks {
        let watch = After::looks(patience);
        assert_eq!(all(&trace, &watch).unwrap_err(), Cancelled, "at look {patience} of {looks}");
        // What runs beside it looks for itself.
        assert!(watch.count() <= patience + 4, "{} looks after {patience}", watch.count());
    }
}

#[test]
fn a_long_replay_is_looked_at_all_the_time() {
    let looks = |rounds| {
        let watch = After::looks(usize::MAX);
        all(&synced_loop(rounds), &watch).unwrap();
        watch.count()
    };
    let (short, long) = (looks(300), looks(20_000));
    // Of the calls, 16,384 pass between two looks, in the preparation and in each of at least four walks.
    assert!(long >= short + 5 * 2, "{short} {long}");
}

#[test]
fn marking_an_interval_is_given_up_at_every_look() {
    let trace = synced_loop(300);
    let interval = Interval::new(Ns(100_000), Ns(5_000_000));
    let known = full(&trace, &Options::default()).analysis.devices;
    let mark = |watch: &After| marked_watched(&trace, &known, interval, &Constants::default(), watch);
    let watch = After::looks(usize::MAX);
    assert_eq!(mark(&watch).unwrap(), marked(&trace, &known, interval, &Constants::default()));
    for patience in 0..watch.count() {
        assert_eq!(mark(&After::looks(patience)).unwrap_err(), Cancelled);
    }
}
