//! How long sorting, filtering and copying a table of a million bubbles takes, and how long of that the UI thread works.
//!
//! `cargo bench -p bubblescope-ui --bench tables -- [BUBBLES]` (default 1 000 000).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bubblescope::analysis::{Options, analyze};
use bubblescope_ui::background::Wanted;
use bubblescope_ui::document::{Document, Explanation};
use bubblescope_ui::panels::BubbleRow;
use bubblescope_ui::table::{Source, Table, arranged};
use bubblescope_ui::{format, testing};
use eframe::egui;

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Frames until the rows are there: how long all that took, and the longest of what the UI thread did.
fn until_ready(table: &mut Table<BubbleRow>, ctx: &egui::Context, docs: &[Document]) -> (Duration, Duration, usize) {
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    loop {
        let frame = Instant::now();
        let source = Source { version: 1, len: BubbleRow::count(docs), all: BubbleRow::all };
        let (rows, ready) = table.rows(ctx, docs, &source);
        longest = longest.max(frame.elapsed());
        if ready {
            return (start.elapsed(), longest, rows.len());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let bubbles = numbers.next().unwrap_or(1_000_000);
    let trace = Arc::new(testing::trace(1, bubbles));
    let explanation = Explanation::new(&trace, analyze(&trace, &Options::default()));
    let mut document = Document::new(Path::new("generated"), trace);
    document.set_analysis(explanation);
    let docs = [document];
    let ctx = egui::Context::default();
    let rows = BubbleRow::all(&docs);
    println!("{} bubbles", format::count(rows.len() as u64));
    let cases: [(&str, usize, &str); 5] = [
        ("sort by length", 1, ""),
        ("sort by cause", 2, ""),
        ("sort by call", 4, ""),
        ("filter `softmax`", 1, "softmax"),
        ("filter `no such text`", 1, "no such text"),
    ];
    println!("{:24}{:>14}{:>14}{:>22}{:>12}", "", "the work", "until shown", "UI thread at once", "rows");
    let mut table = Table::default();
    for (name, sort, filter) in cases {
        let start = Instant::now();
        arranged(&docs, rows.clone(), (sort, true, filter), &Wanted::default());
        let work = start.elapsed();
        (table.sort, table.descending, table.filter) = (sort, true, filter.to_owned());
        let (shown, frame, count) = until_ready(&mut table, &ctx, &docs);
        let (work, shown, frame) = (milliseconds(work), milliseconds(shown), milliseconds(frame));
        println!("{name:24}{work:>14}{shown:>14}{frame:>22}{:>12}", format::count(count as u64));
    }
}
