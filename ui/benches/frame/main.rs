//! UI-thread time of every frame over a scripted zoom and pan, from everything to one op and back, caches cold.
//!
//! `cargo bench -p bubblescope-ui --bench frame -- [EVENTS…]` (default 100 000, 1 000 000 and 10 000 000). There is no
//! window and no GPU: what is timed is building the frame and turning it into triangles, which is what the UI thread does.
//!
//! `cargo bench -p bubblescope-ui --bench frame -- open [EVENTS]` (default 10 000 000) writes a trace file and times the
//! way from opening it to the first picture.

mod opening;
#[path = "../../../benches/training_loop/mod.rs"]
mod training_loop;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bubblescope::trace::{CorrelationId, Detail, GraphId, Interval, Ns, OpInput, OpKind, Trace, TraceBuilder};
use bubblescope_ui::document::Document;
use bubblescope_ui::format;
use bubblescope_ui::lod::{Piece, pack};
use bubblescope_ui::timeline::{Action, Timeline};
use bubblescope_ui::tint::Tint;
use bubblescope_ui::view::Viewport;
use eframe::egui;

const LANES: u32 = 200;
/// Times the script is run, each time from cold caches. Of each frame the least time counts: the others were interrupted.
const RUNS: usize = 12;
/// Of more events the rows alone are made.
const MOST_WITH_TRACE: u64 = 20_000_000;
/// As high as it takes for 40 lanes to be on screen.
const SIZE: egui::Vec2 = egui::vec2(1920.0, 1034.0);

/// A trace of `events` kernels over 200 streams, with short and long gaps.
fn trace(events: u64) -> Trace {
    let mut builder = TraceBuilder::new();
    let process = builder.process(1);
    let device = builder.device(0);
    let context = builder.context(process, 1, device);
    let names: Vec<_> = (0..64).map(|name| builder.name(&format!("kernel_{name}"))).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: i64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as i64
    };
    for lane in 0..LANES {
        let stream = builder.stream(context, lane);
        let mut time = 1_000 + random(5_000);
        for _ in 0..events / u64::from(LANES) {
            let gap = match random(100) {
                0..90 => 300 + random(900),
                90..99 => 4_000,
                _ => 40_000,
            };
            let length = 1_500 + random(12_000);
            builder.push_op(OpInput {
                start: time + gap,
                end: time + gap + length,
                stream,
                kind: OpKind::Kernel,
                name: names[random(64) as usize],
                correlation: CorrelationId::NONE,
                bytes: 0,
                graph: GraphId::NONE,
                graph_node: 0,
                detail: Detail::None,
            });
            time += gap + length;
        }
    }
    builder.finish().unwrap_or_default()
}

/// A document whose rows have `events` intervals, which stand for the few ops of a small trace: only rows are in memory.
fn rows_alone(events: u64) -> (Document, Interval) {
    let mut doc = Document::new(Path::new("generated"), Arc::new(trace(20_000)));
    let ops = doc.trace.ops.len();
    let count = (events / u64::from(LANES)) as usize;
    let mixed = |at: usize, lane: usize| {
        let mut mixed = (at as u64 ^ (lane as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 29;
        mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
    };
    let rows = &mut doc.scene.sections[0].rows;
    for (lane, row) in rows.iter_mut().enumerate() {
        row.lanes = pack(count, |at| {
            let mixed = mixed(at, lane);
            let start = at as i64 * 9_000 + (mixed % 3_000) as i64;
            let length = 1_500 + (mixed >> 20 & 0xfff) as i64;
            let tint = Tint::op(OpKind::Kernel, at % 64, Detail::None);
            Piece { interval: Interval::new(Ns(start), Ns(start + length)), item: (at % ops) as u32, tint }
        });
    }
    (doc, Interval::new(Ns::ZERO, Ns(count as i64 * 9_000)))
}

/// Views from everything to one op, some panning there, and back.
fn script(whole: Interval) -> Vec<Viewport> {
    let all = Viewport::of(whole, 0.02);
    let mut views = vec![all];
    let mut view = all;
    while view.span() > 20_000 {
        view = view.zoomed(1.15, 0.37);
        views.push(view);
    }
    for step in 0..60 {
        view = view.panned(if step % 2 == 0 { 0.21 } else { 0.04 });
        views.push(view);
    }
    while view.span() < all.span() {
        view = view.zoomed(1.0 / 1.15, 0.63).panned(0.01);
        views.push(view);
    }
    for _ in 0..40 {
        view = view.zoomed(1.03, 0.5).panned(0.02);
        views.push(view);
    }
    views
}

/// Time that this thread has run, without the time in which others had its core; elsewhere than on Linux the time on the
/// clock.
fn run_time(begin: Instant) -> Duration {
    // Giving way brings the kernel's account up to date.
    std::thread::yield_now();
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = account.and_then(|account| account.split(' ').next()?.parse().ok());
    ran.map_or_else(|| begin.elapsed(), Duration::from_nanos)
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

fn measure(events: u64) {
    let (docs, whole, prepared);
    if events > MOST_WITH_TRACE {
        let start = Instant::now();
        let (doc, interval) = rows_alone(events);
        (docs, whole, prepared) = ([doc], interval, start.elapsed());
    } else {
        let trace = Arc::new(trace(events));
        let start = Instant::now();
        let doc = Document::new(Path::new("generated"), trace);
        prepared = start.elapsed();
        (whole, docs) = (doc.interval(), [doc]);
    }
    let (mut build, mut both, mut lanes, mut columns) = (Vec::new(), Vec::new(), 0, 0);
    let begin = Instant::now();
    for run in 0..RUNS {
        let ctx = egui::Context::default();
        let mut timeline = Timeline::default();
        for (frame, view) in script(whole).into_iter().enumerate() {
            let input = egui::RawInput {
                screen_rect: Some(egui::Rect::from_min_size(egui::Pos2::ZERO, SIZE)),
                time: Some(frame as f64 / 60.0),
                ..egui::RawInput::default()
            };
            timeline.view = view;
            let start = run_time(begin);
            let mut output = ctx.run_ui(input, |ui| {
                let actions = timeline.show(ui, &docs);
                assert!(actions.iter().all(|action| !matches!(action, Action::View(_))));
            });
            let built = run_time(begin) - start;
            let triangles = ctx.tessellate(output.shapes, output.pixels_per_point);
            let all = run_time(begin) - start;
            output.textures_delta.clear();
            drop(triangles);
            lanes = timeline.drawn.lanes;
            columns = columns.max(timeline.drawn.columns);
            // The first frame also makes the font's texture, once for the whole run of a program.
            if let Some(frame) = frame.checked_sub(1) {
                let name = || {
                    let drawn = timeline.drawn;
                    let width = format::duration(view.span());
                    format!("frame {frame}, {width} wide, {} names, {} columns", drawn.labels, drawn.columns)
                };
                if run == 0 {
                    build.push((built, name()));
                    both.push(all);
                } else {
                    build[frame].0 = build[frame].0.min(built);
                    both[frame] = both[frame].min(all);
                }
            }
        }
    }
    let slowest = build.iter().max().map_or_else(String::new, |(_, name)| name.clone());
    let slow = build.iter().filter(|(time, _)| time.as_micros() > 2_000).count();
    let mut build: Vec<Duration> = build.into_iter().map(|(time, _)| time).collect();
    let bytes = docs[0].scene.memory() as f64 / events as f64;
    println!(
        "{events:>10} events, {lanes} of {LANES} lanes shown: rows ready in {prepared:.0?}, {bytes:.1} bytes an event; \
         {} frames, at most {columns} columns: building p50 {:.2?} p99 {:.2?} max {:.2?} ({}), {slow} frames above 2 ms, with triangles p50 {:.2?} p99 {:.2?}",
        both.len(),
        percentile(&mut build, 50),
        percentile(&mut build, 99),
        percentile(&mut build, 100),
        slowest,
        percentile(&mut both, 50),
        percentile(&mut both, 99),
    );
}

fn main() {
    let asked: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    // `cargo test` runs benches too: a small one, to know that they work.
    let testing = !std::env::args().any(|argument| argument == "--bench");
    if std::env::args().any(|argument| argument == "open") {
        return opening::measure(asked.first().map_or(10_000_000, |&events| events as usize));
    }
    if testing {
        opening::measure(2_000);
    }
    let sizes: &[u64] = match (asked.is_empty(), testing) {
        (false, _) => &asked,
        (true, true) => &[2_000],
        (true, false) => &[100_000, 1_000_000, 10_000_000],
    };
    for &events in sizes {
        measure(events);
    }
}
