//! Drives the whole window without a display.

use std::time::{Duration, Instant};

use bubblescope_ui::document::Item;
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
    for lane in ["GPU 0 NVIDIA H200", "Bubbles", "Stream 7", "Stream 8", "train · pid 4711", "main 4711 calls"] {
        harness.get_by_label(lane);
    }
    let app = harness.state();
    assert!(app.timeline.drawn.quads > 100 && app.timeline.drawn.lanes >= 5, "{:?}", app.timeline.drawn);
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
