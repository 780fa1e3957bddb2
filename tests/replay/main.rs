//! The replay against recordings: what it predicts for a program without its waits, and what the same program took
//! that never had them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod probe;
mod recorded_pairs;
mod without_recording;

use std::path::{Path, PathBuf};

use bubblescope::analysis::replay::{CallSet, Change, MAX_UNCHANGED_ERROR, Replay};
use bubblescope::analysis::waits::Waits;
use bubblescope::open::open;
use bubblescope::trace::{ApiKind, CallIdx, Interval, Ns, Trace};
use probe::Window;

/// One recording with waits, predicted without them, against the recording without.
struct Pair {
    label: String,
    span: f64,
    without: f64,
    replay: Option<f64>,
    unchanged_error: f64,
    bubbles: f64,
    api: f64,
}

impl Pair {
    fn new(label: String, trace: &Trace, without: &Trace) -> Self {
        let waits = Waits::new(trace);
        let replay = Replay::new(trace, &waits, None);
        let removed = read_back(trace);
        let outcome = replay.with(&[Change::Remove(CallSet::Calls(removed.clone()))]);
        let recorded = span(trace);
        let less = |gain: Ns| (recorded - gain).get() as f64;
        Self {
            label,
            span: recorded.get() as f64,
            without: span(without).get() as f64,
            replay: outcome.gain.map(less),
            unchanged_error: replay.unchanged_error(),
            bubbles: less(drained(trace, &removed)),
            api: less(removed.iter().map(|&call| trace.calls.interval(call).len()).sum()),
        }
    }

    /// The error of a predicted span, as part of the span that was recorded without the waits.
    fn error(&self, predicted: f64) -> f64 {
        (predicted - self.without) / self.without
    }
}

/// Every synchronisation and copy but those synchronisations that no launch follows: what the variant without waits does not have.
fn read_back(trace: &Trace) -> Vec<CallIdx> {
    let wanted = |kind: ApiKind| kind.synchronises() || matches!(kind, ApiKind::CopyAsync | ApiKind::CopyBlocking);
    let mut calls: Vec<CallIdx> = trace.calls.indices().filter(|call| wanted(trace.calls.kind[call.index()])).collect();
    // Calls come thread by thread.
    calls.sort_by_key(|call| trace.calls.start[call.index()]);
    let last_launch =
        trace.ops.indices().filter_map(|op| trace.ops.launch(op)).map(|call| trace.calls.start[call.index()]);
    let last_launch = last_launch.max().unwrap();
    calls.retain(|call| trace.calls.start[call.index()] < last_launch || trace.calls.kind[call.index()].submits());
    calls
}

fn span(trace: &Trace) -> Ns {
    *trace.ops.end.iter().max().unwrap() - *trace.ops.start.iter().min().unwrap()
}

/// The naive answer: all the idle time that began while one of these calls was open.
fn drained(trace: &Trace, calls: &[CallIdx]) -> Ns {
    let mut ops: Vec<Interval> = trace.ops.indices().map(|op| trace.ops.interval(op)).collect();
    ops.sort_by_key(|op| op.start);
    let mut busy_until = ops[0].start;
    let mut sum = Ns::ZERO;
    for op in ops {
        let open = |call: &&CallIdx| {
            let time = trace.calls.interval(**call);
            time.start <= busy_until && busy_until <= time.end
        };
        if op.start > busy_until && calls.iter().find(open).is_some() {
            sum += op.start - busy_until;
        }
        busy_until = busy_until.max(op.end);
    }
    sum
}

/// Each variant with waits against the one without, of the same sizes.
fn pairs(windows: &[Window]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for with in windows.iter().filter(|window| window.variant != 2) {
        let same =
            |other: &&Window| other.variant == 2 && other.kernels == with.kernels && other.long_loop == with.long_loop;
        let label = format!("L={} nk={} variant {}", with.long_loop, with.kernels, with.variant);
        pairs.push(Pair::new(label, &with.trace, &windows.iter().find(same).unwrap().trace));
    }
    pairs
}

struct Errors {
    mean: f64,
    sorted: Vec<f64>,
}

fn errors(pairs: &[Pair], predicted: impl Fn(&Pair) -> Option<f64>) -> Errors {
    let mut sorted: Vec<f64> =
        pairs.iter().filter_map(|pair| predicted(pair).map(|span| pair.error(span).abs())).collect();
    sorted.sort_by(f64::total_cmp);
    Errors { mean: sorted.iter().sum::<f64>() / sorted.len() as f64, sorted }
}

fn print(pairs: &[Pair]) {
    println!(
        "{:26} {:>9} {:>9} {:>8} {:>9} {:>8} {:>8} {:>8}",
        "pair", "with µs", "without", "replay", "unchanged", "replay", "bubbles", "API"
    );
    for pair in pairs {
        let error = |span: f64| format!("{:+.1} %", 100.0 * pair.error(span));
        println!(
            "{:26} {:9.1} {:9.1} {:>8} {:>7.1} % {:>8} {:>8} {:>8}",
            pair.label,
            pair.span / 1e3,
            pair.without / 1e3,
            pair.replay.map_or("withheld".to_owned(), |span| format!("{:.1}", span / 1e3)),
            100.0 * pair.unchanged_error,
            pair.replay.map_or(String::new(), error),
            error(pair.bubbles),
            error(pair.api),
        );
    }
    for (name, of) in [
        ("replay", errors(pairs, |pair| pair.replay)),
        ("bubble time drained", errors(pairs, |pair| Some(pair.bubbles))),
        ("API time", errors(pairs, |pair| Some(pair.api))),
    ] {
        let worst: Vec<String> =
            of.sorted.iter().rev().take(3).map(|error| format!("{:.1} %", 100.0 * error)).collect();
        println!("{name:26} mean error {:.2} %, worst {}", 100.0 * of.mean, worst.join(", "));
    }
}

/// What is asked of the replay: within 3 % of the span on average, all but one within 8 %, at most a tenth withheld.
fn check(pairs: &[Pair]) {
    print(pairs);
    let replay = errors(pairs, |pair| pair.replay);
    let withheld = pairs.iter().filter(|pair| pair.replay.is_none()).count();
    assert!(withheld * 10 <= pairs.len(), "{withheld} of {} answers withheld", pairs.len());
    assert!(pairs.iter().all(|pair| pair.replay.is_some() == (pair.unchanged_error <= MAX_UNCHANGED_ERROR)));
    assert!(replay.mean <= 0.03, "mean error {:.4}", replay.mean);
    assert!(replay.sorted.iter().rev().nth(1).is_none_or(|&error| error <= 0.08), "{:?}", replay.sorted);
}

/// The replay must do better than either naive answer.
fn check_against_naive(pairs: &[Pair]) {
    let replay = errors(pairs, |pair| pair.replay);
    for naive in [errors(pairs, |pair| Some(pair.bubbles)), errors(pairs, |pair| Some(pair.api))] {
        assert!(replay.mean < naive.mean);
    }
}

fn corpus() -> Option<PathBuf> {
    let corpus = std::env::var_os("BUBBLESCOPE_CORPUS");
    if corpus.is_none() {
        println!("skipped: BUBBLESCOPE_CORPUS is not set");
    }
    corpus.map(PathBuf::from)
}

#[test]
fn removed_waits_are_predicted_on_a_recorded_pair() {
    let windows = probe::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/replay/probe_L1000_nk4.txt"));
    assert_eq!(windows.len(), 2);
    let pairs = pairs(&windows);
    check(&pairs);
    check_against_naive(&pairs);
}

#[test]
fn removed_waits_are_predicted_on_all_probe_pairs() {
    let Some(corpus) = corpus() else { return };
    let mut all = Vec::new();
    for file in ["probe_L1000.txt.gz", "probe_L16000.txt.gz"] {
        all.extend(pairs(&probe::read(&corpus.join("replay").join(file))));
    }
    assert_eq!(all.len(), 18);
    check(&all);
    check_against_naive(&all);
}

#[test]
fn training_steps_gain_what_they_gained() {
    let Some(corpus) = corpus() else { return };
    let read = |name: &str| open(&corpus.join("replay").join(format!("torch_{name}.json.gz"))).unwrap();
    // Bound by the device: a wait in every step costs a few per cent, and the replay says how many.
    let without = read("mid_none");
    let pairs: Vec<Pair> =
        ["mid_item", "mid_sync"].map(|name| Pair::new(name.to_owned(), &read(name), &without)).into();
    check(&pairs);
    assert!(pairs.iter().all(|pair| pair.error(pair.replay.unwrap()).abs() <= 0.01));
    // Bound by the host, whose noise between recordings is larger than what there is to gain: next to nothing.
    for name in ["tiny_item", "tiny_sync"] {
        let pair = Pair::new(name.to_owned(), &read(name), &read("tiny_none"));
        print(std::slice::from_ref(&pair));
        let gain = pair.span - pair.replay.unwrap();
        assert!((0.0..0.03 * pair.span).contains(&gain), "{name} gains {gain} of {}", pair.span);
    }
}
