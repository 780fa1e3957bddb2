//! Drives the whole window without a display.

mod bar;
mod files;
mod gestures;
mod looks;
mod moves;
mod pictures;
mod rows;
mod stops;
mod words;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bubblescope::analysis::{Constants, Options, analyze, marked};
use bubblescope_ui::document::Item;
use bubblescope_ui::panels::Tab;
use bubblescope_ui::{App, testing};
use eframe::egui::{self, Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

/// A window on a generated trace, analysed.
fn window(streams: u32, iterations: u64) -> Harness<'static, App> {
    let mut harness = Harness::builder().with_size([1200.0, 700.0]).build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        app.show(&creation.egui_ctx, "generated", testing::trace(streams, iterations));
        app
    });
    settle(&mut harness);
    harness
}

/// A recording of a program with one cause of idle time.
fn planted(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/planted").join(name).with_extension("bubcap")
}

/// Runs frames until everything is loaded.
fn settle(harness: &mut Harness<'_, App>) {
    let start = Instant::now();
    while harness.state().is_loading() {
        assert!(start.elapsed() < Duration::from_secs(120), "loading never ends");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(3);
}

fn press(harness: &mut Harness<'_, App>, key: Key) {
    harness.key_press(key);
    harness.run_steps(2);
}

#[test]
fn a_trace_opens_with_its_lanes() {
    let harness = window(2, 30);
    assert_eq!(harness.get_all_by_label("Bubbles").count(), 2, "the lane and the tab");
    for lane in ["GPU 0 NVIDIA H200", "Stream 7", "Stream 8", "train · pid 4711", "main 4711 calls"] {
        harness.get_by_label(lane);
    }
    let app = harness.state();
    assert!(app.timeline.drawn.columns > 100 && app.timeline.drawn.lanes >= 5, "{:?}", app.timeline.drawn);
    assert!(app.timeline.view.start() <= 0 && app.timeline.view.end() >= app.docs[0].trace.end.0);
}

#[test]
fn keys_zoom_move_and_go_back() {
    let mut harness = window(2, 30);
    let all = harness.state().timeline.view;
    press(&mut harness, Key::W);
    let closer = harness.state().timeline.view;
    assert!(closer.span() < all.span() && closer.start() > all.start());
    press(&mut harness, Key::D);
    let later = harness.state().timeline.view;
    assert!(later.start() > closer.start() && later.span() == closer.span());
    harness.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
    harness.run_steps(2);
    press(&mut harness, Key::Num0);
    assert_eq!(harness.state().timeline.view, all);
}

#[test]
fn a_key_moves_the_view_so_that_the_eye_can_follow() {
    let builder = Harness::builder().with_size([1200.0, 700.0]).with_step_dt(1.0 / 60.0);
    let mut harness = builder.build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        app.show(&creation.egui_ctx, "generated", testing::trace(2, 30));
        app
    });
    settle(&mut harness);
    let shown = |harness: &Harness<'_, App>| harness.get_by_label("timeline").value().unwrap_or_default();
    let mut seen = vec![shown(&harness)];
    harness.key_press(Key::W);
    for _ in 0..12 {
        harness.run_steps(1);
        let now = shown(&harness);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    assert!((5..=10).contains(&seen.len()), "{seen:?}");
    let there = harness.state().timeline.view;
    harness.key_press(Key::Num0);
    harness.run_steps(2);
    // A view that comes from elsewhere is shown at once.
    harness.state_mut().timeline.view = there;
    harness.run_steps(1);
    assert_eq!(seen.last(), Some(&shown(&harness)));
}

#[test]
fn the_wheel_zooms_at_the_pointer() {
    let mut harness = window(2, 30);
    let canvas = harness.get_by_label("timeline").rect();
    let pointer = egui::pos2(canvas.left() + canvas.width() * 0.25, canvas.center().y);
    let at =
        |harness: &Harness<'_, App>| harness.state().timeline.view.time_at(pointer.x - canvas.left(), canvas.width());
    let before = (at(&harness), harness.state().timeline.view.span());
    harness.hover_at(pointer);
    harness.run_steps(1);
    harness.event_modifiers(
        egui::Event::MouseWheel {
            unit: egui::MouseWheelUnit::Line,
            delta: egui::vec2(0.0, 3.0),
            phase: egui::TouchPhase::Move,
            source: egui::MouseWheelSource::Wheel,
            modifiers: Modifiers::COMMAND,
        },
        Modifiers::COMMAND,
    );
    harness.run_steps(20);
    let after = (at(&harness), harness.state().timeline.view.span());
    assert!(after.1 < before.1);
    assert!((after.0 - before.0).abs() <= before.1 / 400, "the moment under the pointer stays");
}

#[test]
fn brackets_walk_from_bubble_to_bubble() {
    let mut harness = window(1, 10);
    press(&mut harness, Key::B);
    let selected = |harness: &Harness<'_, App>| harness.state().timeline.selected;
    let Some(Item::Bubble(longest)) = selected(&harness).map(|pick| pick.item) else { panic!("no bubble selected") };
    let lengths: Vec<i64> = harness.state().docs[0].bubbles().map(|(_, bubble)| bubble.interval.len().0).collect();
    let (_, found) = harness.state().docs[0].bubble(longest).unwrap();
    assert_eq!(Some(&found.interval.len().0), lengths.iter().max());
    let cause = found.root.cause.as_str();
    assert!(harness.query_all_by_label_contains(cause).count() > 0, "the details name the cause");

    press(&mut harness, Key::Escape);
    press(&mut harness, Key::Num0);
    let mut seen = Vec::new();
    for _ in 0..lengths.len() + 2 {
        press(&mut harness, Key::OpenBracket);
        seen.push(selected(&harness).map(|pick| pick.item));
    }
    for _ in 0..lengths.len() + 2 {
        press(&mut harness, Key::CloseBracket);
        seen.push(selected(&harness).map(|pick| pick.item));
    }
    seen.sort_by_key(|item| format!("{item:?}"));
    seen.dedup();
    assert_eq!(seen.len(), lengths.len(), "every bubble is reached");
}

#[test]
fn a_broken_file_is_told_in_the_window() {
    let file = std::env::temp_dir().join(format!("bubblescope-{}-broken.bubbles.parquet", std::process::id()));
    std::fs::write(&file, b"not a trace").unwrap();
    let paths = [file.clone(), std::path::PathBuf::from("/does/not/exist.bubbles.parquet")];
    let mut harness =
        Harness::builder().with_size([1000.0, 500.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &paths));
    settle(&mut harness);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(harness.state().messages.texts().len(), 2);
    assert!(harness.query_all_by_label_contains("broken.bubbles.parquet").count() > 0);
    assert!(harness.query_all_by_label_contains("/does/not/exist").count() > 0);
    let dismiss = harness.get_all_by_label("Dismiss").next().unwrap();
    dismiss.click();
    harness.run_steps(2);
    assert_eq!(harness.state().messages.texts().len(), 1);
}

#[test]
fn help_lists_the_keys() {
    let mut harness = window(1, 2);
    press(&mut harness, Key::Questionmark);
    harness.get_by_label("Next bubble");
    press(&mut harness, Key::Escape);
    assert!(harness.query_by_label("Next bubble").is_none());
}

#[test]
fn a_click_in_the_table_goes_to_the_bubble() {
    let mut harness = window(1, 10);
    harness.state_mut().panels.tab = Tab::Bubbles;
    harness.run_steps(2);
    harness.get_by_label("bubbles row 0").click();
    harness.run_steps(2);
    let app = harness.state();
    let Some(Item::Bubble(at)) = app.timeline.selected.map(|pick| pick.item) else { panic!("no bubble selected") };
    let (_, bubble) = app.docs[0].bubble(at).unwrap();
    let longest = app.docs[0].bubbles().map(|(_, bubble)| bubble.interval.len()).max();
    assert_eq!(Some(bubble.interval.len()), longest, "the longest is on top");
    let view = app.timeline.view;
    assert!(view.start() <= bubble.interval.start.0 && bubble.interval.end.0 <= view.end());
}

#[test]
fn a_click_in_the_table_of_calls_goes_to_a_call() {
    let mut harness = window(1, 10);
    harness.get_by_label("Sync calls").click();
    harness.run_steps(2);
    harness.get_by_label("kinds of blocking calls row 0").click();
    harness.run_steps(2);
    let app = harness.state();
    let Some(Item::Call(call)) = app.timeline.selected.map(|pick| pick.item) else { panic!("no call selected") };
    assert_eq!(app.docs[0].trace.call_name(call), "cudaStreamSynchronize");
}

#[test]
fn dragging_on_the_ruler_measures_what_the_library_says() {
    let mut harness = window(2, 20);
    let ruler = harness.get_by_label("ruler").rect();
    let y = ruler.center().y;
    harness.hover_at(egui::pos2(ruler.left() + 300.0, y));
    harness.run_steps(1);
    harness.drag_at(egui::pos2(ruler.left() + 300.0, y));
    harness.run_steps(1);
    for x in [340.0, 500.0] {
        harness.hover_at(egui::pos2(ruler.left() + x, y));
        harness.run_steps(1);
    }
    harness.drop_at(egui::pos2(ruler.left() + 500.0, y));
    harness.run_steps(2);
    let measured = harness.state().timeline.measured.unwrap();
    let view = harness.state().timeline.view;
    let expected = view.time_at(300.0, ruler.width());
    assert!((measured.start.0 - expected).abs() <= view.span() / 500, "it starts where the button went down");
    let start = Instant::now();
    while harness.state().panels.measured.figures().is_none_or(|(of, _)| of != measured) {
        assert!(start.elapsed() < Duration::from_secs(120), "the figures never come");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(2);
    let app = harness.state();
    let known = &app.docs[0].analysis().unwrap().devices;
    let figures = marked(&app.docs[0].trace, known, measured, &Constants::default());
    assert_eq!(app.panels.measured.figures().unwrap().1, std::slice::from_ref(&figures));
    let idle = bubblescope_ui::format::duration(figures.devices[0].idle_ns().0);
    assert!(harness.query_all_by_label_contains(&idle).count() > 0, "{idle} is shown");
}

#[test]
fn search_goes_from_hit_to_hit() {
    let mut harness = window(1, 12);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::F);
    harness.run_steps(3);
    harness.get_by_label("Search names").type_text("softmax");
    harness.run_steps(3);
    let mut starts = Vec::new();
    for _ in 0..3 {
        press(&mut harness, Key::Enter);
        let app = harness.state();
        let Some(Item::Op(op)) = app.timeline.selected.map(|pick| pick.item) else { panic!("no op selected") };
        assert_eq!(app.docs[0].trace.op_name(op), "softmax_kernel");
        starts.push(app.docs[0].trace.ops.start[op.index()]);
    }
    assert!(starts.is_sorted() && starts[0] < starts[2]);
    let before = harness.state().timeline.view;
    press(&mut harness, Key::W);
    assert_eq!(harness.state().timeline.view, before, "typing moves nothing");
}

#[test]
fn traces_are_stacked_and_compared() {
    let mut harness = Harness::builder().with_size([1200.0, 900.0]).build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        for (name, streams) in [("sync", 1), ("async", 2), ("graph", 3)] {
            app.show(&creation.egui_ctx, name, testing::trace(streams, 80));
        }
        app
    });
    settle(&mut harness);
    harness.get_by_label("Compare").click();
    let start = Instant::now();
    while harness.query_by_label("Where an iteration goes").is_none() {
        assert!(start.elapsed() < Duration::from_secs(120), "the comparison never comes");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    for name in ["sync", "async", "graph"] {
        assert!(harness.query_all_by_label(name).count() >= 2, "{name} has a heading and a row");
    }
    for name in ["iteration", "range"] {
        harness.get_by_role_and_label(egui::Role::RadioButton, name).click();
        harness.run_steps(3);
        let app = harness.state();
        let moments = app.panels.compare.overlay().unwrap().moments;
        let placed: Vec<i64> = app.docs.iter().zip(&moments).map(|(doc, moment)| moment.0 + doc.offset).collect();
        assert!(placed.iter().all(|&start| start == placed[0]), "{name}: the compared parts start together");
        let view = app.timeline.view;
        assert!(view.start() <= placed[0] && placed[0] < view.end());
        assert!(view.span() < 60 * testing::ITERATION_NS, "{name}: a few iterations are shown, not all");
    }
    harness.get_by_label("starts").click();
    harness.run_steps(3);
    let app = harness.state();
    assert!(app.docs.iter().all(|doc| doc.offset == 0));
    assert!(app.timeline.view.span() > 80 * testing::ITERATION_NS, "everything is shown again");
}

#[test]
fn launches_are_listed_and_a_click_goes_to_the_longest() {
    let mut harness = window(2, 20);
    harness.get_by_label("Launches").click();
    harness.run_steps(2);
    harness.get_by_label("kinds of launches row 0").click();
    harness.run_steps(2);
    let app = harness.state();
    let Some(Item::Call(call)) = app.timeline.selected.map(|pick| pick.item) else { panic!("no call selected") };
    assert_eq!(app.docs[0].trace.call_name(call), "cudaLaunchKernel", "the most frequent is on top");
    assert!(app.docs[0].launches.iter().any(|launch| launch.longest == call));
}

/// Waits until the replay is through.
fn replayed(harness: &mut Harness<'_, App>) {
    let start = Instant::now();
    while harness.state().is_working() {
        assert!(start.elapsed() < Duration::from_secs(120), "the replay never ends");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(3);
}

#[test]
fn findings_are_withheld_with_a_reason_or_shown_with_a_remedy() {
    let mut harness = window(1, 40);
    press(&mut harness, Key::X);
    assert_eq!(harness.state().panels.tab, Tab::Findings);
    replayed(&mut harness);
    let full = harness.state().docs[0].full().unwrap().clone();
    match full.findings.found.first() {
        Some(finding) => assert!(harness.query_all_by_label(finding.remedy).count() > 0),
        None => {
            let reason = full.findings.withheld.clone().unwrap_or_else(|| "Nothing to fix was found".to_owned());
            assert!(harness.query_all_by_label_contains(&reason).count() > 0, "{reason}");
        }
    }
    harness.get_by_label("Quality").click();
    harness.run_steps(2);
    let error = full.replay.as_ref().unwrap().unchanged_error;
    let error = format!("{} of the span", bubblescope::report::text::percent(error));
    assert!(harness.query_all_by_label_contains(&error).count() > 0, "{error} is shown");
}

/// Saves with a command whose window suggests a file beside the trace, into a file of our own.
fn save(harness: &mut Harness<'_, App>, key: Key, file: &std::path::Path) {
    harness.key_press_modifiers(Modifiers::COMMAND, key);
    harness.run_steps(3);
    let field = harness.get_by_label("File");
    field.focus();
    harness.run_steps(1);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
    harness.get_by_label("File").type_text(&file.display().to_string());
    harness.run_steps(2);
    harness.get_by_label("Save").click();
    let start = Instant::now();
    // It is there as a whole or not at all.
    while !file.exists() {
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", harness.state().messages);
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
}

#[test]
fn the_timeline_is_saved_as_a_drawing_and_the_report_exported() {
    let mut harness = window(2, 10);
    replayed(&mut harness);
    press(&mut harness, Key::B);
    let file = |ending: &str| std::env::temp_dir().join(format!("bubblescope-{}-saved.{ending}", std::process::id()));
    save(&mut harness, Key::G, &file("svg"));
    let drawing = std::fs::read_to_string(file("svg")).unwrap();
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"));
    for name in ["Stream 7", "Stream 8", "main 4711 calls"] {
        assert!(drawing.contains(&format!(">{name}</text>")), "{name} is in the drawing");
    }
    assert!(drawing.matches("<rect").count() > 20);
    assert!(!drawing.contains("Overview"), "only the timeline is saved");

    save(&mut harness, Key::J, &file("json"));
    let json: bubblescope::report::Report = serde_json::from_slice(&std::fs::read(file("json")).unwrap()).unwrap();
    let analysis = analyze(&harness.state().docs[0].trace, &Options::default());
    assert_eq!(json.devices[0].idle_ns, analysis.devices[0].idle_ns());
    assert!(json.replay.is_some(), "the exported report has been replayed");
    save(&mut harness, Key::E, &file("txt"));
    assert!(std::fs::read_to_string(file("txt")).unwrap().contains("GPU 0"));
    for ending in ["svg", "json", "txt"] {
        std::fs::remove_file(file(ending)).unwrap();
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told() {
    let mut harness = window(1, 2);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::G);
    harness.run_steps(3);
    harness.get_by_label("File").focus();
    harness.run_steps(1);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
    harness.get_by_label("File").type_text("/no/such/folder/t.svg");
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    let start = Instant::now();
    while harness.state().messages.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing is told");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    assert!(harness.state().messages.texts()[0].starts_with("cannot write /no/such/folder/t.svg: "));
}

#[test]
fn an_empty_window_offers_what_was_open_before() {
    let recent = std::path::PathBuf::from("/somewhere/before.bubbles.parquet");
    let mut harness = Harness::builder().with_size([1000.0, 600.0]).build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        app.recent.push(recent.clone());
        app
    });
    harness.run_steps(2);
    harness.get_by_label("Open…");
    harness.get_by_label("/somewhere/before.bubbles.parquet").click();
    harness.run_steps(2);
    settle(&mut harness);
    assert_eq!(harness.state().messages.texts().len(), 1, "the file is gone");
    assert!(harness.state().messages.texts()[0].contains("before.bubbles.parquet"));
}

#[test]
fn menus_do_what_keys_do() {
    let mut harness = window(1, 10);
    harness.get_by_label("Bubbles and ops").click();
    harness.run_steps(3);
    harness.get_by_label_contains("Longest bubble").click();
    harness.run_steps(3);
    let selected = harness.state().timeline.selected;
    assert!(matches!(selected.map(|pick| pick.item), Some(Item::Bubble(_))), "{selected:?}");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_steps(3);
    assert!(harness.state().docs.is_empty());
    harness.get_by_label("Record…");
}

#[cfg(unix)]
#[test]
fn what_is_recorded_is_opened_with_what_the_recorder_said() {
    let recorder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorder.sh");
    let output = std::env::temp_dir().join(format!("bubblescope-{}-recorded.bubcap", std::process::id()));
    let mut harness =
        Harness::builder().with_size([1200.0, 800.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &[]));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::N);
    harness.state_mut().recorder.program = Some(recorder);
    harness.state_mut().recorder.command = "python 'my train.py'".to_owned();
    harness.run_steps(3);
    harness.get_by_label("A command").click();
    harness.run_steps(2);
    harness.get_by_label("Into").focus();
    harness.run_steps(1);
    harness.get_by_label("Into").type_text(&output.display().to_string());
    harness.run_steps(2);
    harness.get_by_label("Start recording").click();
    let start = Instant::now();
    while harness.state().docs.is_empty() {
        let lines: Vec<&str> = harness.state().recorder.lines().collect();
        assert!(start.elapsed() < Duration::from_secs(120), "{lines:?} {:?}", harness.state().messages);
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    settle(&mut harness);
    std::fs::remove_file(&output).unwrap();
    let said = format!("recording into {}: python my train.py", output.display());
    assert!(harness.state().recorder.lines().any(|line| line == said));
    harness.get_by_label(&said);
    assert!(!harness.state().docs[0].trace.ops.is_empty());

    harness.state_mut().recorder.command = "fail".to_owned();
    harness.run_steps(1);
    harness.get_by_label("Start recording").click();
    let start = Instant::now();
    while harness.query_by_label_contains("exit code 7").is_none() {
        assert!(start.elapsed() < Duration::from_secs(120), "the failure is never told");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
}
