//! From opening a trace file to the first picture, through the window's own code.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bubblescope::trace::file;
use bubblescope_ui::document::Document;
use bubblescope_ui::load::options;
use bubblescope_ui::{App, format};
use eframe::egui;

use crate::training_loop::training_loop;
use crate::{SIZE, run_time};

/// Times a file is opened. The least time counts: the others were interrupted.
const RUNS: usize = 5;

/// When the window showed what, after it was asked to open a file.
#[derive(Debug)]
struct Shown {
    /// The first frame with rows.
    rows: Duration,
    /// The first with bubbles.
    bubbles: Duration,
    /// The first with findings.
    findings: Duration,
    /// For how long the window's thread ran for these three frames, and at most for another.
    ran: [Duration; 4],
}

/// Opens a file in a window that nobody sees.
fn open(path: &Path) -> Shown {
    let ctx = egui::Context::default();
    let (send, woken) = channel();
    // When the window is closed nobody listens any more.
    ctx.set_request_repaint_callback(move |_| send.send(()).unwrap_or_default());
    let start = Instant::now();
    let mut app = App::new(&ctx, &[path.to_owned()]);
    let (mut rows, mut bubbles, mut findings) = (None, None, None);
    let mut ran = [Duration::ZERO; 4];
    loop {
        let shown_at = Instant::now();
        let input = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(egui::Pos2::ZERO, SIZE)),
            time: Some(start.elapsed().as_secs_f64()),
            ..egui::RawInput::default()
        };
        let begin = run_time(start);
        let mut output = ctx.run_ui(input, |ui| app.frame(ui));
        drop(ctx.tessellate(output.shapes, output.pixels_per_point));
        output.textures_delta.clear();
        let took = run_time(start) - begin;
        assert!(app.messages.is_empty(), "{:?}", app.messages);
        let now = start.elapsed();
        let doc = app.docs.first();
        let drawn = doc.is_some() && app.timeline.drawn.columns > 0;
        let news = [
            (drawn, &mut rows),
            (doc.is_some_and(|doc| doc.analysis().is_some()), &mut bubbles),
            (doc.is_some_and(|doc| doc.full().is_some()), &mut findings),
        ];
        let mut which = 3;
        for (at, (known, since)) in news.into_iter().enumerate() {
            if known && since.is_none() {
                *since = Some(now);
                which = at;
            }
        }
        ran[which] = ran[which].max(took);
        if let (Some(rows), Some(bubbles), Some(findings)) = (rows, bubbles, findings) {
            return Shown { rows, bubbles, findings, ran };
        }
        // As a screen does, that shows sixty frames a second.
        std::thread::sleep(Duration::from_millis(16).saturating_sub(shown_at.elapsed()));
        assert!(woken.recv_timeout(Duration::from_secs(100)).is_ok(), "nobody wakes the window");
        while woken.try_recv().is_ok() {}
    }
}

/// Bytes of memory that this program has; nothing elsewhere than on Linux.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).map_or(0, |kib: u64| kib << 10)
}

/// Writes a file of `events` events and opens it.
pub(crate) fn measure(events: usize) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first_picture.bubbles.parquet");
    let trace = training_loop(events);
    let count = trace.event_count();
    file::write_path(&trace, &path).expect("the target folder can be written to");
    drop(trace);
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    println!("{count} events in a file of {}:", format::bytes(bytes));

    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let least = |work: &dyn Fn() -> Duration| (0..RUNS).map(|_| work()).min().unwrap_or_default();
    let timed = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let read = || bubblescope::open::open(&path).expect("it was just written");
    let reading = least(&|| timed(&mut || drop(read())));
    let before = resident();
    let trace = Arc::new(read());
    let trace_bytes = resident().saturating_sub(before) as f64 / count as f64;
    let rows = least(&|| timed(&mut || drop(Document::new(&path, Arc::clone(&trace)))));
    let analysis = least(&|| timed(&mut || drop(bubblescope::analysis::analyze(&trace, &options(&trace)))));
    let (ops, others) = (trace.ops.len(), count - trace.ops.len());
    let document = Document::new(&path, Arc::clone(&trace));
    let row_bytes = document.scene.memory() as f64 / count as f64;
    println!(
        "  alone: read in {:.0} ms, rows made in {:.0} ms, bubbles found in {:.0} ms",
        ms(reading),
        ms(rows),
        ms(analysis)
    );
    println!("  {ops} ops and {others} others, a trace of {trace_bytes:.1} and rows of {row_bytes:.1} bytes an event");
    drop((document, trace));

    let best = (0..RUNS).map(|_| open(&path)).min_by_key(|shown| shown.rows).expect("it runs at least once");
    println!(
        "  in the window: rows after {:.0} ms, bubbles after {:.0} ms, findings after {:.0} ms; these frames took {:.1?}, {:.1?} and {:.1?}, \
         others at most {:.1?}",
        ms(best.rows),
        ms(best.bubbles),
        ms(best.findings),
        best.ran[0],
        best.ran[1],
        best.ran[2],
        best.ran[3]
    );
    drop(std::fs::remove_file(&path));
}
