//! Drives the whole window without a display.

use std::time::{Duration, Instant};

use bubblescope::analysis::{Options, analyze};
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

/// Runs frames until everything is loaded.
fn settle(harness: &mut Harness<'_, App>) {
    let start = Instant::now();
    while harness.state().is_loading() {
        assert!(start.elapsed() < Duration::from_secs(20), "loading never ends");
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
    assert_eq!(harness.state().messages.len(), 2);
    assert!(harness.query_all_by_label_contains("broken.bubbles.parquet").count() > 0);
    assert!(harness.query_all_by_label_contains("/does/not/exist").count() > 0);
    let dismiss = harness.get_all_by_label("Dismiss").next().unwrap();
    dismiss.click();
    harness.run_steps(2);
    assert_eq!(harness.state().messages.len(), 1);
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
        assert!(start.elapsed() < Duration::from_secs(20), "the figures never come");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(2);
    let app = harness.state();
    let options = Options { window: Some(measured), ..Options::default() };
    let figures = analyze(&app.docs[0].trace, &options);
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
            app.show(&creation.egui_ctx, name, testing::trace(streams, 20));
        }
        app
    });
    settle(&mut harness);
    harness.get_by_label("Compare").click();
    let start = Instant::now();
    while harness.query_by_label("Where an iteration goes").is_none() {
        assert!(start.elapsed() < Duration::from_secs(20), "the comparison never comes");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    for name in ["sync", "async", "graph"] {
        assert!(harness.query_all_by_label(name).count() >= 2, "{name} has a heading and a row");
    }
    harness.get_by_label("first measured iterations").click();
    harness.run_steps(3);
    let app = harness.state();
    let found = app.panels.compare.found().unwrap();
    let placed: Vec<i64> = app.docs.iter().zip(&found.starts).map(|(doc, start)| start.0 + doc.offset).collect();
    assert!(placed.iter().all(|&start| start == placed[0]), "the compared parts start together");
}
