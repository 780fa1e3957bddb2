//! The timeline alone, without the window around it: what its rows do, and what it looks like.
//!
//! The pictures are made by a software Vulkan driver; without any driver they are skipped. After a wanted change of looks:
//! `UPDATE_SNAPSHOTS=1 cargo test -p bubblescope-ui --test timeline`.

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;

use bubblescope::analysis::analyze;
use bubblescope_ui::arrange::Place;
use bubblescope_ui::document::{Document, Explanation, Item, Pick};
use bubblescope_ui::load::options;
use bubblescope_ui::testing;
use bubblescope_ui::timeline::{Action, Timeline};
use bubblescope_ui::view::Viewport;
use eframe::egui::{self, Pos2, Vec2};
use egui_kittest::kittest::Queryable as _;
use egui_kittest::wgpu::WgpuTestRenderer;
use egui_kittest::{Harness, SnapshotOptions};

struct State {
    timeline: Timeline,
    docs: Vec<Document>,
    actions: Vec<Action>,
}

fn show(ui: &mut egui::Ui, state: &mut State) {
    let actions = state.timeline.show(ui, &state.docs);
    state.actions.extend(actions);
}

fn generated(streams: u32, iterations: u64) -> Document {
    analysed("generated", testing::trace(streams, iterations))
}

fn recording(variant: &str) -> Document {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/scalar-readback/kernels-4");
    let trace =
        bubblescope::open::open(&folder.join(variant).with_extension("bubcap")).expect("a recording of the repository");
    analysed(variant, trace)
}

fn analysed(name: &str, trace: bubblescope::trace::Trace) -> Document {
    let trace = Arc::new(trace);
    let mut document = Document::new(Path::new(name), Arc::clone(&trace));
    let analysis = analyze(&trace, &options(&trace));
    document.set_analysis(Explanation::new(&trace, analysis));
    document
}

fn state(docs: Vec<Document>) -> State {
    let mut timeline = Timeline::default();
    timeline.view = Viewport::of(docs[0].focus(), 0.02);
    State { timeline, docs, actions: Vec::new() }
}

fn widget(docs: Vec<Document>) -> Harness<'static, State> {
    let mut harness = Harness::builder().with_size([1000.0, 420.0]).build_ui_state(show, state(docs));
    harness.run_steps(3);
    harness
}

/// Titles of the rows that scroll and of those that are pinned, in order.
fn rows(harness: &Harness<'_, State>) -> [Vec<String>; 2] {
    let state = harness.state();
    let layout = state.timeline.arrangement.layout(state.docs.iter().map(|doc| &doc.scene), false);
    [layout.scrolled, layout.pinned].map(|lines| {
        let title = |place| match place {
            Place::Row { doc, section, row, .. } => Some(&state.docs[doc].scene.sections[section].rows[row].title),
            _ => None,
        };
        lines.lines.iter().filter_map(|line| title(line.place).cloned()).collect()
    })
}

fn menu(harness: &mut Harness<'_, State>, row: &str, entry: &str) {
    harness.get_by_label(row).click_secondary();
    harness.run_steps(3);
    // The label ends in the key that does the same.
    harness.get_by_label_contains(entry).click();
    harness.run_steps(3);
}

fn drag(harness: &mut Harness<'_, State>, from: Pos2, to: Pos2) {
    harness.hover_at(from);
    harness.run_steps(1);
    harness.drag_at(from);
    harness.run_steps(1);
    for part in 1..=8 {
        harness.hover_at(from + (to - from) * (part as f32 / 8.0));
        harness.run_steps(1);
    }
    harness.drop_at(to);
    harness.run_steps(2);
}

#[test]
fn rows_are_pinned_hidden_and_brought_back() {
    let mut harness = widget(vec![generated(3, 10)]);
    let all = rows(&harness);
    menu(&mut harness, "Stream 8", "Pin to the top");
    let [scrolled, pinned] = rows(&harness);
    assert_eq!(pinned, ["Stream 8"]);
    assert_eq!(scrolled.len() + 1, all[0].len());
    let place = harness.get_by_label("Stream 8").rect();
    assert!(place.bottom() <= harness.get_by_label("timeline").rect().top(), "it stands above what scrolls");
    menu(&mut harness, "Stream 8", "Unpin");
    assert_eq!(rows(&harness), all);
    menu(&mut harness, "Stream 7", "Hide");
    assert!(!rows(&harness)[0].contains(&"Stream 7".to_owned()));
    harness.get_by_label("1 hidden").click();
    harness.run_steps(2);
    assert_eq!(rows(&harness), all);
}

#[test]
fn a_pinned_row_is_clicked_where_it_is_seen() {
    let mut harness = widget(vec![generated(2, 4)]);
    menu(&mut harness, "Stream 8", "Pin to the top");
    let row = harness.get_by_label("Stream 8").rect();
    let canvas = harness.get_by_label("timeline").rect();
    let (op, times) = {
        let doc = &harness.state().docs[0];
        let op =
            doc.trace.ops.indices().find(|&op| doc.trace.streams[doc.trace.ops.stream[op.index()].index()].id == 8);
        (op.unwrap(), doc.times(Item::Op(op.unwrap())).unwrap())
    };
    let middle = times.start.0.midpoint(times.end.0);
    let x = canvas.left() + harness.state().timeline.view.x_of(middle, canvas.width());
    let at = Pos2::new(x, row.center().y);
    let drawn = harness.output().shapes.iter().filter(|shape| matches!(shape.shape, egui::Shape::Mesh(_)));
    assert!(drawn.clone().any(|shape| shape.clip_rect.contains(at)), "it is drawn there");
    harness.hover_at(at);
    harness.run_steps(1);
    harness.drag_at(at);
    harness.run_steps(1);
    harness.drop_at(at);
    harness.run_steps(2);
    let pick = Pick { doc: 0, item: Item::Op(op) };
    assert!(harness.state().actions.contains(&Action::Select(Some(pick))), "{:?}", harness.state().actions);
}

#[test]
fn rows_are_dragged_to_another_place_and_height() {
    let mut harness = widget(vec![generated(3, 10)]);
    let [before, _] = rows(&harness);
    let (from, to) = (harness.get_by_label("Stream 7").rect(), harness.get_by_label("Stream 9").rect());
    drag(&mut harness, from.center(), to.center() + Vec2::new(0.0, 4.0));
    let [after, _] = rows(&harness);
    let place = |rows: &[String], title: &str| rows.iter().position(|row| row == title).unwrap();
    assert!(place(&before, "Stream 7") < place(&before, "Stream 9"));
    assert_eq!(place(&after, "Stream 7"), place(&after, "Stream 9") + 1, "{after:?}");
    assert!(harness.state().actions.is_empty(), "nothing else happened: {:?}", harness.state().actions);

    let row = harness.get_by_label("Stream 8").rect();
    let edge = row.center_bottom() - Vec2::new(0.0, 2.0);
    drag(&mut harness, edge, edge + Vec2::new(0.0, 40.0));
    let higher = harness.get_by_label("Stream 8").rect();
    assert!((higher.height() - row.height() - 40.0).abs() < 8.0, "{row} became {higher}");
    menu(&mut harness, "Stream 8", "Usual height");
    assert_eq!(harness.get_by_label("Stream 8").rect().height(), row.height());
}

#[test]
fn an_arrangement_is_kept_as_text() {
    let mut harness = widget(vec![generated(3, 10)]);
    menu(&mut harness, "Stream 8", "Pin to the top");
    let wanted = rows(&harness);
    menu(&mut harness, "Stream 7", "Hide");
    let text = serde_json::to_string(&harness.state().timeline.arrangement).unwrap();
    let mut other = widget(vec![generated(3, 25)]);
    other.state_mut().timeline.arrangement = serde_json::from_str(&text).unwrap();
    other.run_steps(2);
    assert_eq!(rows(&other), wanted, "another recording of the same program has the same rows, and none is hidden");
    assert_eq!(serde_json::from_str::<bubblescope_ui::arrange::Arrangement>("{}").unwrap(), Default::default());
}

/// A picture of some documents, or `None` without a driver that could make it.
fn picture(size: [f32; 2], scale: f32, theme: egui::Theme, state: State) -> Option<Harness<'static, State>> {
    let Ok(renderer) = catch_unwind(WgpuTestRenderer::new) else {
        println!("skipped: no Vulkan driver");
        return None;
    };
    let builder = Harness::builder().with_size(size).with_pixels_per_point(scale).with_theme(theme);
    let mut harness = builder.with_render_cursor(false).renderer(renderer).build_ui_state(show, state);
    harness.run_steps(3);
    Some(harness)
}

fn compare(harness: &mut Harness<'_, State>, name: &str) {
    // Versions of the driver differ in the last bit of a blended colour, and in which pixel an edge falls into.
    let options = SnapshotOptions::new().threshold(1.5).max_failed_pixels(60);
    harness.snapshot_options(name, &options);
}

/// The bubble that many readers of the recording look for first.
fn longest(doc: &Document) -> Item {
    let longest = doc.bubbles().max_by_key(|(at, bubble)| (bubble.interval.len(), std::cmp::Reverse(*at)));
    Item::Bubble(longest.expect("a bubble").0)
}

#[test]
fn picture_of_everything() {
    let state = state(vec![recording("sync")]);
    if let Some(mut harness) = picture([900.0, 230.0], 1.0, egui::Theme::Dark, state) {
        compare(&mut harness, "everything");
    }
}

#[test]
fn picture_of_a_bubble_on_a_fine_screen() {
    let mut state = state(vec![recording("sync")]);
    let bubble = longest(&state.docs[0]);
    state.timeline.view = Viewport::of(state.docs[0].times(bubble).unwrap(), 1.0);
    state.timeline.selected = Some(Pick { doc: 0, item: bubble });
    if let Some(mut harness) = picture([600.0, 230.0], 2.0, egui::Theme::Light, state) {
        compare(&mut harness, "bubble");
    }
}

#[test]
fn picture_of_three_variants() {
    let mut state = state(["sync", "async", "graph"].map(recording).into());
    let start = state.docs[0].focus().start.0;
    for doc in &mut state.docs[1..] {
        doc.offset = start - doc.focus().start.0;
    }
    state.timeline.view = Viewport::new(start - 20_000, 700_000);
    if let Some(mut harness) = picture([900.0, 600.0], 1.0, egui::Theme::Light, state) {
        compare(&mut harness, "variants");
    }
}
