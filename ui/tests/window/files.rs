//! Opening and cancelling, comparing and exporting.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use bubblescope_ui::arrange::Place;
use bubblescope_ui::load::Loading;
use bubblescope_ui::panels::{Align, Tab};
use bubblescope_ui::{App, testing};
use eframe::egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

use crate::{press, replayed, save, settle, window};

/// Runs frames until something holds.
pub(crate) fn until(harness: &mut Harness<'_, App>, what: &str, done: impl Fn(&Harness<'_, App>) -> bool) {
    let start = Instant::now();
    while !done(harness) {
        assert!(start.elapsed() < Duration::from_secs(120), "it never comes: {what}");
        std::thread::sleep(Duration::from_millis(2));
        harness.run_steps(1);
    }
    harness.run_steps(2);
}

/// Opens a recording that is read until it is cancelled; tells whether reading has stopped.
pub(crate) fn endless(harness: &mut Harness<'_, App>) -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    let (told, ctx) = (Arc::clone(&stopped), harness.ctx.clone());
    harness.state_mut().open_with(&ctx, "endless", move |_, watch| {
        watch.progress(45, 100);
        while !watch.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        told.store(true, Ordering::Relaxed);
        anyhow::bail!("it was cancelled")
    });
    stopped
}

#[test]
fn a_cancelled_load_stops_and_leaves_the_window_as_it_was() {
    let mut harness = window(2, 20);
    press(&mut harness, Key::B);
    let before = |app: &App| (app.docs.len(), app.timeline.view, app.timeline.selected, app.recent.clone());
    until(&mut harness, "the replay", |harness| !harness.state().is_working());
    let was = before(harness.state());
    let stopped = endless(&mut harness);
    until(&mut harness, "progress", |harness| harness.query_by_label_contains("endless · 45 %").is_some());
    harness.get_by_label("Cancel").click();
    harness.run_steps(1);
    until(&mut harness, "the end", |_| stopped.load(Ordering::Relaxed));
    harness.run_steps(3);
    assert_eq!(before(harness.state()), was);
    assert_eq!(harness.state().messages.texts(), Vec::<&str>::new(), "nothing is told of what was asked for");
    assert!(!harness.state().is_working() && harness.query_by_label("Cancel").is_none());
}

#[test]
fn cancelling_the_only_load_leads_back_to_the_first_window() {
    let mut harness =
        Harness::builder().with_size([1000.0, 600.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &[]));
    endless(&mut harness);
    harness.run_steps(2);
    harness.get_by_label("Opening…");
    harness.get_by_label("Cancel").click();
    harness.run_steps(3);
    harness.get_by_label_contains("Drop traces here");
    // What is opened next is placed as if it were the first.
    let ctx = harness.ctx.clone();
    harness.state_mut().show(&ctx, "generated", testing::trace(1, 10));
    settle(&mut harness);
    let app = harness.state();
    assert!(app.timeline.view.start() <= 0 && app.timeline.view.end() >= app.docs[0].trace.end.0);
}

/// What opens a trace, and waits at each thing that it tells until it may go on. Dropping `go` lets it go on for good.
struct Held {
    /// How many things it has told, which nobody else counts once it has ended.
    told: Arc<AtomicUsize>,
    go: Sender<()>,
}

impl Held {
    fn open(harness: &mut Harness<'_, App>) -> Self {
        let (go, may_go) = channel();
        let told = Arc::new(AtomicUsize::new(0));
        let (count, ctx) = (Arc::clone(&told), harness.ctx.clone());
        let wake = move || {
            count.fetch_add(1, Ordering::Relaxed);
            ctx.request_repaint();
            let _ = may_go.recv();
        };
        let loading = Loading::start(Path::new("generated"), wake, |_, _| Ok(testing::trace(1, 10)));
        harness.state_mut().wait_for(loading);
        Self { told, go }
    }

    /// Lets it work to its end; gives how many things it told in all.
    fn end(self, harness: &mut Harness<'_, App>) -> usize {
        let Self { told, go } = self;
        drop(go);
        until(harness, "the end of the work", |_| Arc::strong_count(&told) == 1);
        told.load(Ordering::Relaxed)
    }
}

/// What is told of a trace before its replay: itself, and its analysis.
const BEFORE_REPLAY: usize = 2;

#[test]
fn a_stopped_replay_leaves_the_trace_and_says_why_there_are_no_findings() {
    let mut harness =
        Harness::builder().with_size([1200.0, 700.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &[]));
    let held = Held::open(&mut harness);
    held.go.send(()).unwrap();
    until(&mut harness, "the replay", |harness| harness.query_by_label("Stop").is_some());
    harness.get_by_label("Stop").click();
    harness.run_steps(3);
    assert!(!harness.state().is_working());
    assert_eq!(held.end(&mut harness), BEFORE_REPLAY, "it was given up");
    let app = harness.state();
    assert!(app.docs[0].analysis().is_some() && app.docs[0].full().is_none());
    press(&mut harness, Key::X);
    harness.get_by_label_contains("The replay was stopped");
    assert_eq!(harness.state().messages.texts(), Vec::<&str>::new());
}

#[test]
fn closing_a_trace_ends_the_work_on_it() {
    let mut harness =
        Harness::builder().with_size([1200.0, 700.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &[]));
    for (closed_while, told) in [("looking for bubbles in", 1), ("replaying changes of", BEFORE_REPLAY)] {
        let held = Held::open(&mut harness);
        (1..told).for_each(|_| held.go.send(()).unwrap());
        until(&mut harness, closed_while, |harness| harness.query_by_label_contains(closed_while).is_some());
        let trace = Arc::downgrade(&harness.state().docs[0].trace);
        harness.get_by_label("Close generated").click();
        harness.run_steps(2);
        assert!(harness.state().docs.is_empty() && !harness.state().is_working());
        until(&mut harness, "the window to let go of it", |_| trace.strong_count() == 1);
        assert_eq!(held.end(&mut harness), told, "{closed_while}: what was still to be done is not");
        until(&mut harness, "the end of the trace", |_| trace.strong_count() == 0);
    }
}

#[test]
fn a_trace_that_is_left_open_is_worked_through() {
    let mut harness =
        Harness::builder().with_size([1200.0, 700.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &[]));
    let held = Held::open(&mut harness);
    assert_eq!(held.end(&mut harness), BEFORE_REPLAY + 1);
    replayed(&mut harness);
    assert!(harness.state().docs[0].full().is_some());
}

pub(crate) fn recording(variant: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/scalar-readback/kernels-4");
    folder.join(variant).with_extension("bubcap")
}

pub(crate) fn opened(variants: &[&str]) -> Harness<'static, App> {
    let paths: Vec<PathBuf> = variants.iter().map(|variant| recording(variant)).collect();
    let mut harness =
        Harness::builder().with_size([1280.0, 720.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &paths));
    settle(&mut harness);
    harness
}

#[test]
fn a_folder_is_its_recordings_and_takes_the_place_of_what_is_open() {
    let folder = std::env::temp_dir().join(format!("bubblescope-{}-folder", std::process::id()));
    std::fs::create_dir_all(folder.join("deeper")).unwrap();
    let mut harness = window(1, 5);
    let ctx = harness.ctx.clone();
    let names = |harness: &Harness<'_, App>| -> Vec<String> {
        harness.state().docs.iter().map(|doc| doc.name.clone()).collect()
    };
    harness.state_mut().open_instead(&ctx, std::slice::from_ref(&folder));
    settle(&mut harness);
    assert_eq!(harness.state().messages.texts(), [format!("there is no recording in {}", folder.display())]);
    assert_eq!(names(&harness), ["generated"]);

    harness.state_mut().messages.clear();
    std::fs::write(folder.join("notes.txt"), "no recording").unwrap();
    for (from, to) in [("sync", "rank1.bubcap"), ("graph", "rank0.bubcap"), ("async", "deeper/other.bubcap")] {
        std::fs::copy(recording(from), folder.join(to)).unwrap();
    }
    harness.state_mut().open_instead(&ctx, std::slice::from_ref(&folder));
    settle(&mut harness);
    assert_eq!(names(&harness), ["rank0.bubcap", "rank1.bubcap"]);
    assert_eq!(harness.state().messages.texts(), Vec::<&str>::new());

    for rank in 2..11 {
        std::fs::copy(recording("sync"), folder.join(format!("rank{rank}.bubcap"))).unwrap();
    }
    harness.state_mut().open_instead(&ctx, std::slice::from_ref(&folder));
    settle(&mut harness);
    assert_eq!(names(&harness).len(), 8);
    let told = format!("{} holds 11 recordings, of which the first 8 are opened; ", folder.display());
    assert!(harness.state().messages.texts()[0].starts_with(&told), "{:?}", harness.state().messages);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_was_cut_says_so_above_the_timeline_whatever_its_format() {
    let whole = std::fs::read(recording("sync")).unwrap();
    let event =
        r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1.0,"dur":2.0,"args":{"stream":7,"device":0}}"#;
    let json = format!(r#"{{"traceEvents":[{event},{event},{{"ph":"X","na"#);
    for (name, content) in [("cut.bubcap", &whole[..whole.len() / 2]), ("cut.json", json.as_bytes())] {
        let file = std::env::temp_dir().join(format!("bubblescope-{}-{name}", std::process::id()));
        std::fs::write(&file, content).unwrap();
        let mut harness = Harness::builder()
            .with_size([1000.0, 600.0])
            .build_eframe(|creation| App::new(&creation.egui_ctx, std::slice::from_ref(&file)));
        settle(&mut harness);
        harness.run_steps(2);
        let told = harness.state().messages.texts().first().copied().expect("it is told");
        assert!(told.contains("cut off") && harness.query_by_label(told).is_some(), "{told}");
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_reload_keeps_what_is_open_until_it_is_read_anew_and_failing_keeps_it_too() {
    let copy = std::env::temp_dir().join(format!("bubblescope-{}-reload.bubcap", std::process::id()));
    std::fs::copy(recording("sync"), &copy).unwrap();
    let mut harness = Harness::builder()
        .with_size([1000.0, 600.0])
        .build_eframe(|creation| App::new(&creation.egui_ctx, std::slice::from_ref(&copy)));
    settle(&mut harness);
    assert_eq!(harness.state().recent, std::slice::from_ref(&copy));
    let events = harness.state().docs[0].trace.event_count();
    std::fs::copy(recording("graph"), &copy).unwrap();
    press(&mut harness, Key::F5);
    assert_eq!(harness.state().docs.len(), 1, "it stays meanwhile");
    until(&mut harness, "the other", |harness| harness.state().docs[0].trace.event_count() != events);
    settle(&mut harness);
    assert!(harness.state().docs[0].analysis().is_some());
    std::fs::remove_file(&copy).unwrap();
    press(&mut harness, Key::F5);
    until(&mut harness, "a message", |harness| !harness.state().messages.is_empty());
    assert_eq!(harness.state().docs.len(), 1, "what was read stays open");
}

#[test]
fn traces_with_iterations_are_laid_over_each_other_at_the_first_one_unasked() {
    let harness = &mut opened(&["sync", "async", "graph"]);
    until(harness, "the comparison, told in the bar", |harness| {
        let compare = &harness.state().panels.compare;
        compare.found().is_some() && harness.query_by_label("aligned at iteration 0").is_some()
    });
    let app = harness.state();
    assert_eq!(app.panels.compare.align(), Align::Iteration(0));
    let moments = app.panels.compare.overlay().unwrap().moments;
    for (doc, moment) in app.docs.iter().zip(&moments) {
        assert_eq!(moment.0 + doc.offset, moments[0].0, "{}", doc.name);
        let (focus, view) = (doc.focus(), app.timeline.view);
        assert!(view.start() <= focus.start.0 && focus.end.0 <= view.end(), "all of {} is in sight", doc.name);
    }
    harness.state_mut().panels.tab = Tab::Compare;
    harness.run_steps(2);
    harness.get_by_label("starts").click();
    harness.run_steps(3);
    harness.get_by_label("aligned at their starts");
    assert!(harness.state().docs.iter().all(|doc| doc.offset == 0));
}

#[test]
fn traces_without_iterations_stay_at_their_starts_and_say_so() {
    let mut harness = Harness::builder().with_size([1200.0, 700.0]).build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        for name in ["one", "two"] {
            app.show(&creation.egui_ctx, name, testing::trace(0, 0));
        }
        app
    });
    settle(&mut harness);
    until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
    assert_eq!(harness.state().panels.compare.align(), Align::Start);
    harness.get_by_label("aligned at their starts");
    harness.state_mut().panels.tab = Tab::Compare;
    harness.run_steps(2);
    harness.get_by_label_contains("No figures per iteration");
}

#[test]
fn a_comparison_is_exported_as_its_contract_and_as_a_table() {
    let mut harness = opened(&["sync", "async", "graph"]);
    until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
    let file =
        |ending: &str| std::env::temp_dir().join(format!("bubblescope-{}-compared.{ending}", std::process::id()));
    save(&mut harness, Key::M, &file("json"));
    let json = std::fs::read(file("json")).unwrap();
    let compare: bubblescope::report::Compare = serde_json::from_slice(&json).unwrap();
    let figures = harness.state().panels.compare.figures().unwrap();
    assert!(bubblescope::report::to_json(figures).unwrap() == json, "it is what the command line would write");
    assert!(String::from_utf8_lossy(&json).contains("\"schema\": \"bubblescope.compare/1\""));
    let names: Vec<&str> = compare.variants.iter().map(|variant| variant.variant.as_str()).collect();
    assert_eq!(names, ["sync", "async", "graph"]);
    assert_eq!(compare.variants[0].path.as_deref(), recording("sync").to_str());

    save(&mut harness, Key::K, &file("csv"));
    let csv = std::fs::read_to_string(file("csv")).unwrap();
    assert_eq!(csv.lines().count(), 4);
    assert!(csv.starts_with("variant,path,iterations,"));
    for ending in ["json", "csv"] {
        std::fs::remove_file(file(ending)).unwrap();
    }

    harness.state_mut().panels.tab = Tab::Compare;
    harness.run_steps(2);
    harness.get_by_label("Copy as CSV").click();
    harness.run_steps(1);
    let copied = harness
        .output()
        .platform_output
        .commands
        .iter()
        .any(|command| matches!(command, eframe::egui::OutputCommand::CopyText(text) if *text == csv));
    assert!(copied, "the table is in the clipboard");
    harness.get_by_label("copied 3 rows");
    harness.run_steps(200);
    assert!(harness.query_by_label("copied 3 rows").is_none(), "it is no news any more");
}

#[test]
fn what_is_saved_takes_the_place_of_what_was_there_as_a_whole() {
    let mut harness = opened(&["sync", "graph"]);
    until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
    let folder = std::env::temp_dir().join(format!("bubblescope-{}-over", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let at = |name: &str| folder.join(name);
    for (key, name) in [(Key::G, "svg"), (Key::E, "text"), (Key::J, "json"), (Key::M, "compared"), (Key::K, "csv")] {
        let file = at(name);
        std::fs::write(&file, "old").unwrap();
        // What stood there has another name, too: there it is seen whether anything was written into it.
        std::fs::hard_link(&file, at("before")).unwrap();
        harness.key_press_modifiers(Modifiers::COMMAND, key);
        harness.run_steps(3);
        harness.get_by_label("File").focus();
        harness.run_steps(1);
        harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
        harness.get_by_label("File").type_text(&file.display().to_string());
        harness.run_steps(2);
        harness.get_by_label("Save").click();
        harness.run_steps(2);
        harness.get_by_label("Replace").click();
        until(&mut harness, name, |_| std::fs::read(&file).unwrap() != b"old");
        assert_eq!(std::fs::read_to_string(at("before")).unwrap(), "old", "{name}");
        assert!(std::fs::read_to_string(&file).unwrap().ends_with('\n'), "{name} is whole");
        std::fs::remove_file(at("before")).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
    assert_eq!(harness.state().messages.texts(), Vec::<&str>::new());
    // Nothing else is left in it.
    std::fs::remove_dir(&folder).unwrap();
}

/// Hides, folds and filters whatever can be, and leaves the overview.
fn clutter(harness: &mut Harness<'_, App>) {
    harness.state_mut().panels.tab = Tab::Bubbles;
    harness.run_steps(2);
    for (field, text) in [("Filter", "sync"), ("Filter rows", "stream")] {
        harness.get_by_label(field).focus();
        harness.run_steps(1);
        harness.get_by_label(field).type_text(text);
        harness.run_steps(2);
        press(harness, Key::Enter);
    }
    for (row, key) in [("Stream 7", Key::K), ("Stream 8", Key::H), ("GPU 0 NVIDIA H200", Key::C)] {
        harness.hover_at(harness.get_by_label(row).rect().center());
        harness.run_steps(2);
        press(harness, key);
    }
    press(harness, Key::T);
    assert!(!harness.state().tables && harness.query_by_label("Stream 8").is_none());
}

fn assert_shows_everything(harness: &Harness<'_, App>) {
    let app = harness.state();
    assert!(app.tables && app.panels.tab == Tab::Overview);
    assert_eq!((app.panels.bubbles.filter.as_str(), app.timeline.arrangement.filter.as_str()), ("", ""));
    let layout = app.timeline.arrangement.layout(app.docs.iter().map(|doc| &doc.scene), app.docs.len() > 1);
    let rows: usize = app.docs.iter().flat_map(|doc| &doc.scene.sections).map(|section| section.rows.len()).sum();
    let is_row = |line: &&bubblescope_ui::arrange::Line| matches!(line.place, Place::Row { .. });
    let shown = [&layout.pinned, &layout.scrolled].map(|lines| lines.lines.iter().filter(is_row).count());
    assert_eq!((shown[0] + shown[1], layout.hidden), (rows, 0));
    assert!(shown[0] > 0, "what is pinned stays so");
}

#[test]
fn what_is_opened_is_shown_from_its_beginning_and_a_reload_changes_nothing() {
    let mut harness = window(2, 20);
    clutter(&mut harness);
    press(&mut harness, Key::F5);
    until(&mut harness, "the failure", |harness| !harness.state().messages.is_empty());
    assert!(
        !harness.state().tables && harness.state().panels.bubbles.filter == "sync",
        "a reload keeps how it is shown"
    );
    let ctx = harness.ctx.clone();
    harness.state_mut().show(&ctx, "another", testing::trace(2, 10));
    settle(&mut harness);
    assert_eq!(harness.state().docs.len(), 2);
    assert_shows_everything(&harness);
    // The second of two that are opened together comes when something may have been done already.
    let ctx = harness.ctx.clone();
    for name in ["third", "fourth"] {
        harness.state_mut().show(&ctx, name, testing::trace(1, 10));
    }
    let count = |harness: &Harness<'_, App>| harness.state().docs.len();
    until(&mut harness, "the third", |harness| count(harness) >= 3);
    harness.state_mut().panels.tab = Tab::Quality;
    until(&mut harness, "the fourth", |harness| count(harness) == 4);
    assert_eq!(harness.state().panels.tab, Tab::Quality);
}

/// What a window keeps, in memory.
#[derive(Default)]
struct Memory(std::collections::HashMap<String, String>);

impl eframe::Storage for Memory {
    fn get_string(&self, key: &str) -> Option<String> {
        self.0.get(key).cloned()
    }

    fn set_string(&mut self, key: &str, value: String) {
        self.0.insert(key.to_owned(), value);
    }

    fn remove_string(&mut self, key: &str) {
        self.0.remove(key);
    }

    fn flush(&mut self) {}
}

#[test]
fn the_next_start_keeps_the_layout_and_hides_nothing() {
    let mut harness = window(2, 20);
    clutter(&mut harness);
    harness.state_mut().timeline.names_width = 333.0;
    let mut kept = Memory::default();
    eframe::App::save(harness.state_mut(), &mut kept);
    let mut harness = Harness::builder().with_size([1200.0, 700.0]).build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        app.restore(&kept);
        app.show(&creation.egui_ctx, "generated", testing::trace(2, 20));
        app
    });
    settle(&mut harness);
    assert_shows_everything(&harness);
    assert_eq!(harness.state().timeline.names_width, 333.0);
}

#[test]
fn what_is_closed_is_freed_in_the_background() {
    let mut harness = window(2, 20);
    replayed(&mut harness);
    let trace = Arc::downgrade(&harness.state().docs[0].trace);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_steps(2);
    assert!(harness.state().docs.is_empty());
    until(&mut harness, "the end of the trace", |_| trace.upgrade().is_none());
}

fn names<'h>(harness: &'h Harness<'_, App>) -> Vec<&'h str> {
    harness.state().docs.iter().map(|doc| doc.name.as_str()).collect()
}

/// Gives a path to the window that asks for one.
fn choose(harness: &mut Harness<'_, App>, key: Key, path: &Path, button: &str) {
    harness.key_press_modifiers(Modifiers::COMMAND, key);
    harness.run_steps(3);
    harness.get_by_label("File").focus();
    harness.run_steps(1);
    harness.get_by_label("File").type_text(&path.display().to_string());
    harness.run_steps(2);
    harness.get_by_label(button).click();
    harness.run_steps(2);
}

#[test]
fn what_is_opened_takes_the_place_of_what_is_open_and_what_is_added_stands_beside_it() {
    let mut harness = opened(&["sync", "async"]);
    choose(&mut harness, Key::D, &recording("graph"), "Add");
    settle(&mut harness);
    assert_eq!(names(&harness), ["sync.bubcap", "async.bubcap", "graph.bubcap"]);
    // What cannot be read leaves what is open.
    choose(&mut harness, Key::O, Path::new("/no/such.bubcap"), "Open");
    until(&mut harness, "a message", |harness| !harness.state().messages.is_empty());
    assert_eq!(names(&harness).len(), 3);
    choose(&mut harness, Key::O, &recording("async"), "Open");
    settle(&mut harness);
    assert_eq!(names(&harness), ["async.bubcap"]);
    let ctx = harness.ctx.clone();
    harness.state_mut().open_instead(&ctx, &[recording("graph"), recording("sync")]);
    settle(&mut harness);
    assert_eq!(names(&harness), ["graph.bubcap", "sync.bubcap"], "several at once are compared");
}

#[test]
fn a_cancelled_opening_brings_back_what_it_took_the_place_of() {
    let mut harness = opened(&["sync", "async"]);
    replayed(&mut harness);
    let ctx = harness.ctx.clone();
    harness.state_mut().open_instead(&ctx, &[recording("graph")]);
    // Read, but not looked through yet.
    until_read(&mut harness);
    if harness.state().is_loading() {
        harness.state_mut().cancel(0);
        harness.run_steps(3);
        assert_eq!(names(&harness), ["sync.bubcap", "async.bubcap"]);
    }
}

/// Runs frames until the first of what is opened is read.
fn until_read(harness: &mut Harness<'_, App>) {
    let start = Instant::now();
    while names(harness) != ["graph.bubcap"] {
        assert!(start.elapsed() < Duration::from_secs(120), "it is never read");
        std::thread::sleep(Duration::from_millis(1));
        harness.run_steps(1);
    }
}

#[test]
fn one_of_several_traces_is_closed_by_key_or_beside_its_name() {
    let mut harness = opened(&["sync", "async", "graph"]);
    // What is in the making stands in the bar before the names.
    let compared =
        |harness: &Harness<'_, App>| !harness.state().is_working() && harness.state().panels.compare.found().is_some();
    until(&mut harness, "the comparison", compared);
    let at = harness.state().docs[1].longest_bubble(|_| true).unwrap();
    harness.state_mut().show_bubble(1, at);
    harness.run_steps(2);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_steps(3);
    assert_eq!(names(&harness), ["sync.bubcap", "graph.bubcap"], "that of the selection");
    assert_eq!(harness.state().timeline.selected, None);
    until(&mut harness, "the comparison", compared);
    harness.get_by_label("Close sync.bubcap").click();
    harness.run_steps(3);
    assert_eq!(names(&harness), ["graph.bubcap"]);
    harness.get_by_label("Close graph.bubcap").click();
    harness.run_steps(3);
    harness.get_by_label_contains("Drop traces here");
}

#[test]
fn the_report_of_all_traces_is_exported_and_the_dialog_says_so() {
    let mut harness = opened(&["sync", "async", "graph"]);
    replayed(&mut harness);
    let file = |ending: &str| std::env::temp_dir().join(format!("bubblescope-{}-all.{ending}", std::process::id()));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::E);
    harness.run_steps(3);
    harness.get_by_label("Export the report as text: all 3 traces");
    press(&mut harness, Key::Escape);
    save(&mut harness, Key::E, &file("txt"));
    let text = std::fs::read_to_string(file("txt")).unwrap();
    save(&mut harness, Key::J, &file("json"));
    let json = std::fs::read(file("json")).unwrap();
    let reports: Vec<bubblescope::report::Report> = serde_json::from_slice(&json).unwrap();
    assert_eq!(reports.len(), 3);
    let mut from = 0;
    for (doc, report) in harness.state().docs.iter().zip(&reports) {
        let analysis = doc.analysis().unwrap();
        assert_eq!(report.devices[0].idle_ns, analysis.devices[0].idle_ns(), "{}", doc.name);
        let found = text[from..].find(&doc.name);
        from += found.unwrap_or_else(|| panic!("{} is missing or out of order", doc.name));
    }
    for ending in ["txt", "json"] {
        std::fs::remove_file(file(ending)).unwrap();
    }
}

#[test]
fn a_cut_recording_says_so_at_the_top_and_shows_what_it_holds() {
    let whole = std::fs::read(recording("sync")).unwrap();
    let mut opened = 0;
    for share in [3, 5, 7, 9] {
        let cut = std::env::temp_dir().join(format!("bubblescope-{}-cut-{share}.bubcap", std::process::id()));
        std::fs::write(&cut, &whole[..whole.len() * share / 10]).unwrap();
        let mut harness = Harness::builder()
            .with_size([1200.0, 700.0])
            .build_eframe(|creation| App::new(&creation.egui_ctx, std::slice::from_ref(&cut)));
        settle(&mut harness);
        std::fs::remove_file(&cut).unwrap();
        let app = harness.state();
        assert!(app.messages.texts().iter().all(|message| !message.contains("spool")), "{:?}", app.messages);
        let Some(doc) = app.docs.first() else {
            assert!(app.messages.texts()[0].contains("cannot use the recording"), "{:?}", app.messages);
            continue;
        };
        opened += 1;
        assert!(app.messages.texts()[0].contains("was cut off; what came before is shown"), "{:?}", app.messages);
        assert!(doc.trace.meta.warnings.iter().all(|warning| !warning.contains("spool")));
        let view = app.timeline.view.interval();
        let starts = doc.trace.calls.start.iter().chain(&doc.trace.ops.start);
        assert!(starts.clone().count() == 0 || starts.clone().any(|start| view.contains(*start)), "{share}: {view:?}");
    }
    assert!(opened > 0);
}

#[test]
fn what_a_table_copies_is_told_for_a_while() {
    let mut harness = window(1, 10);
    harness.state_mut().panels.tab = Tab::Bubbles;
    harness.run_steps(2);
    let count = harness.state().docs[0].bubbles().count();
    let told = format!("copied {count} rows");
    assert!(harness.query_by_label(&told).is_none());
    harness.get_by_label("Copy as CSV").click();
    harness.run_steps(1);
    let commands = &harness.output().platform_output.commands;
    let lines = commands.iter().find_map(|command| match command {
        eframe::egui::OutputCommand::CopyText(text) => Some(text.lines().count()),
        _ => None,
    });
    assert_eq!(lines, Some(count + 1), "it is handed to the desktop");
    harness.get_by_label(&told);
    harness.run_steps(200);
    assert!(harness.query_by_label(&told).is_none(), "it is no news any more");
}

#[test]
fn a_filter_without_a_hit_says_of_how_many() {
    let mut harness = window(1, 10);
    harness.state_mut().panels.tab = Tab::Bubbles;
    let count = harness.state().docs[0].bubbles().count();
    let longer = harness.state().docs[0].bubbles().filter(|(_, bubble)| bubble.interval.len().0 > 50_000).count();
    harness.state_mut().panels.bubbles.filter = "length: >1 s".to_owned();
    harness.run_steps(3);
    harness.get_by_label(&format!("no bubble matches, of {count}"));
    for filter in ["lenght: >10", "drained: x"] {
        harness.state_mut().panels.bubbles.filter = filter.to_owned();
        harness.run_steps(3);
        let name = filter.split(':').next().unwrap();
        let told = format!("there is no column “{name}”, only: start, length, cause, confidence, call, drained by,");
        harness.get_by_label_contains(&told);
    }
    harness.state_mut().panels.bubbles.filter = "length: >50".to_owned();
    harness.run_steps(3);
    harness.get_by_label("length > 50 µs");
    let expected = bubblescope_ui::format::things(longer as u64, "bubble", "bubbles");
    assert!(longer == 0 || harness.query_by_label(&expected).is_some(), "{expected}");
    assert!(longer > 0, "the generated bubbles are long enough");
}
