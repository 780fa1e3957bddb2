//! Every gesture and every key that moves, selects or measures.

use bubblescope::trace::{CallIdx, Interval, Ns, OpIdx};
use bubblescope_ui::document::{Item, Pick};
use bubblescope_ui::view::Viewport;
use bubblescope_ui::{App, testing};
use eframe::egui::{self, Event, Key, Modifiers, Pos2, Rect, Shape, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

use crate::{press, settle, window};

fn canvas(harness: &Harness<'_, App>) -> Rect {
    harness.get_by_label("timeline").rect()
}

fn view(harness: &Harness<'_, App>) -> Viewport {
    harness.state().timeline.view
}

fn selected(harness: &Harness<'_, App>) -> Option<Item> {
    harness.state().timeline.selected.map(|pick| pick.item)
}

pub(crate) fn wheel(harness: &mut Harness<'_, App>, at: Pos2, lines: Vec2, modifiers: Modifiers) {
    harness.hover_at(at);
    harness.run_steps(1);
    let event = Event::MouseWheel {
        unit: egui::MouseWheelUnit::Line,
        delta: lines,
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Wheel,
        modifiers,
    };
    harness.event_modifiers(event, modifiers);
    harness.run_steps(30);
}

fn drag(harness: &mut Harness<'_, App>, from: Pos2, to: Pos2, modifiers: Modifiers) {
    let button = |pos, pressed| Event::PointerButton { pos, button: egui::PointerButton::Primary, pressed, modifiers };
    harness.hover_at(from);
    harness.run_steps(1);
    harness.event_modifiers(button(from, true), modifiers);
    harness.run_steps(1);
    for part in 1..=4 {
        harness.event_modifiers(Event::PointerMoved(from + (to - from) * (part as f32 / 4.0)), modifiers);
        harness.run_steps(1);
    }
    harness.event_modifiers(button(to, false), modifiers);
    harness.run_steps(2);
}

fn click(harness: &mut Harness<'_, App>, at: Pos2, times: usize) {
    harness.hover_at(at);
    harness.run_steps(1);
    for _ in 0..times {
        harness.drag_at(at);
        harness.drop_at(at);
    }
    harness.run_steps(2);
}

/// The middle of an op on the screen, which must be in view.
fn place_of(harness: &Harness<'_, App>, op: OpIdx) -> Pos2 {
    let app = harness.state();
    let times = app.times(Pick { doc: 0, item: Item::Op(op) }).expect("an op of the trace");
    let stream = app.docs[0].trace.streams[app.docs[0].trace.ops.stream[op.index()].index()].id;
    let (canvas, row) = (canvas(harness), harness.get_by_label(&format!("Stream {stream}")).rect());
    let x = app.timeline.view.x_of(times.start.0.midpoint(times.end.0), canvas.width());
    // The first lane: a row is higher where ops overlap.
    Pos2::new(canvas.left() + x, row.top() + 11.0)
}

#[test]
fn dragging_moves_time_with_the_pointer() {
    let mut harness = window(2, 30);
    press(&mut harness, Key::W);
    press(&mut harness, Key::W);
    let (canvas, before) = (canvas(&harness), view(&harness));
    let (from, to) = (canvas.center(), canvas.center() + Vec2::new(-180.0, 0.0));
    let grabbed = before.time_at(from.x - canvas.left(), canvas.width());
    drag(&mut harness, from, to, Modifiers::NONE);
    let after = view(&harness);
    assert_eq!(after.span(), before.span());
    let there = after.x_of(grabbed, canvas.width()) + canvas.left();
    assert!((there - to.x).abs() < 2.0, "what was grabbed at {from} is at {there}, the pointer at {to}");
    assert_eq!(selected(&harness), None, "a drag selects nothing");
}

#[test]
fn the_wheel_with_shift_moves_and_alone_it_scrolls_the_rows() {
    let mut harness = window(2, 30);
    press(&mut harness, Key::W);
    let (at, before) = (canvas(&harness).center(), view(&harness));
    wheel(&mut harness, at, Vec2::new(0.0, -2.0), Modifiers::SHIFT);
    let moved = view(&harness);
    assert!(moved.start() > before.start() && moved.span() == before.span(), "down is later");
    wheel(&mut harness, at, Vec2::new(0.0, -2.0), Modifiers::NONE);
    assert_eq!(view(&harness), moved, "a plain wheel over the rows moves no time");
    let ruler = harness.get_by_label("ruler").rect().center();
    wheel(&mut harness, ruler, Vec2::new(0.0, 2.0), Modifiers::NONE);
    assert!(view(&harness).span() < moved.span(), "over the ruler it zooms");
}

#[test]
fn w_a_s_d_are_two_pairs_of_opposites() {
    let mut harness = window(2, 30);
    for _ in 0..3 {
        press(&mut harness, Key::W);
    }
    let start = view(&harness);
    press(&mut harness, Key::A);
    assert!(view(&harness).start() < start.start() && view(&harness).span() == start.span());
    press(&mut harness, Key::D);
    let pixel = start.span() / 500;
    assert!((view(&harness).start() - start.start()).abs() <= pixel, "D takes A back");
    press(&mut harness, Key::S);
    assert!(view(&harness).span() > start.span());
    press(&mut harness, Key::W);
    assert!((view(&harness).span() - start.span()).abs() <= pixel, "W takes S back");
}

#[test]
fn f_shows_what_is_measured_else_selected_else_everything() {
    let mut harness = window(2, 30);
    let all = view(&harness);
    press(&mut harness, Key::W);
    press(&mut harness, Key::F);
    assert_eq!(view(&harness), all, "nothing is selected");
    let pick = Pick { doc: 0, item: Item::Call(CallIdx(3)) };
    harness.state_mut().timeline.selected = Some(pick);
    press(&mut harness, Key::F);
    let times = harness.state().times(pick).unwrap();
    let shown = view(&harness);
    assert!(shown.start() <= times.start.0 && times.end.0 <= shown.end() && shown.span() < 4 * times.len().0);
    let measured = Interval::new(Ns(1_000_000), Ns(2_000_000));
    harness.state_mut().timeline.measured = Some(measured);
    press(&mut harness, Key::F);
    let shown = view(&harness);
    assert!(shown.start() <= 1_000_000 && shown.end() >= 2_000_000 && shown.span() < 1_200_000);
    press(&mut harness, Key::Num0);
    assert_eq!(view(&harness), all);
}

#[test]
fn arrows_walk_along_the_lane_in_both_directions() {
    let mut harness = window(2, 10);
    let trace = harness.state().docs[0].trace.clone();
    // The second stream: nothing in it overlaps.
    let ops: Vec<OpIdx> = trace.streams[1].ops.clone().map(OpIdx).collect();
    harness.state_mut().timeline.selected = Some(Pick { doc: 0, item: Item::Op(ops[2]) });
    for (key, expected) in
        [(Key::ArrowRight, 3), (Key::Period, 4), (Key::ArrowLeft, 3), (Key::Comma, 2), (Key::ArrowLeft, 1)]
    {
        press(&mut harness, key);
        assert_eq!(selected(&harness), Some(Item::Op(ops[expected])), "{key:?}");
    }
    press(&mut harness, Key::Escape);
    assert_eq!(selected(&harness), None);
    press(&mut harness, Key::W);
    let before = view(&harness);
    press(&mut harness, Key::ArrowRight);
    assert!(view(&harness).start() > before.start(), "without a selection they move the view");
}

#[test]
fn brackets_stop_at_the_last_bubble_and_go_back() {
    let mut harness = window(1, 6);
    let count = harness.state().docs[0].bubbles().count();
    press(&mut harness, Key::B);
    let order = |harness: &Harness<'_, App>| {
        let Some(Item::Bubble(at)) = selected(harness) else { panic!("no bubble") };
        at.index
    };
    for _ in 0..count {
        press(&mut harness, Key::CloseBracket);
    }
    assert_eq!(order(&harness) as usize, count - 1, "the last stays selected");
    for expected in (0..count as u32 - 1).rev() {
        press(&mut harness, if expected % 2 == 0 { Key::OpenBracket } else { Key::P });
        assert_eq!(order(&harness), expected);
    }
}

#[test]
fn a_click_selects_and_a_double_click_zooms_to_it() {
    // A frame of the usual quarter of a second is too long for a double click.
    let mut harness = Harness::builder().with_size([1200.0, 700.0]).with_step_dt(1.0 / 60.0).build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        app.show(&creation.egui_ctx, "generated", testing::trace(2, 6));
        app
    });
    settle(&mut harness);
    let op = OpIdx(harness.state().docs[0].trace.streams[1].ops.start + 1);
    let at = place_of(&harness, op);
    let before = view(&harness);
    click(&mut harness, at, 1);
    assert_eq!((selected(&harness), view(&harness)), (Some(Item::Op(op)), before));
    harness.run_steps(60);
    click(&mut harness, at, 2);
    let times = harness.state().times(Pick { doc: 0, item: Item::Op(op) }).unwrap();
    let shown = view(&harness);
    assert!(shown.span() < 4 * times.len().0, "{shown:?} of {times:?}");
    assert!(shown.start() <= times.start.0 && times.end.0 <= shown.end());
    let empty = canvas(&harness).right_bottom() - Vec2::new(8.0, 4.0);
    harness.run_steps(60);
    click(&mut harness, empty, 1);
    assert_eq!(selected(&harness), None, "a click beside everything deselects");
}

#[test]
fn views_are_gone_back_and_forward_through() {
    let mut harness = window(2, 30);
    let mut views = vec![view(&harness)];
    for key in [Key::W, Key::D, Key::B] {
        // Moves that follow each other at once count as one.
        harness.run_steps(60);
        press(&mut harness, key);
        views.push(view(&harness));
    }
    for expected in views.iter().rev().skip(1) {
        harness.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
        harness.run_steps(2);
        assert_eq!(view(&harness), *expected);
    }
    for expected in &views[1..] {
        harness.key_press_modifiers(Modifiers::ALT, Key::ArrowRight);
        harness.run_steps(2);
        assert_eq!(view(&harness), *expected);
    }
    press(&mut harness, Key::Backspace);
    assert_eq!(view(&harness), views[2], "backspace goes back, too");
}

#[test]
fn shift_and_drag_measures_on_the_rows() {
    let mut harness = window(2, 20);
    let (canvas, view) = (canvas(&harness), view(&harness));
    let at = |x: f32| Pos2::new(canvas.left() + x, canvas.top() + 20.0);
    drag(&mut harness, at(420.0), at(180.0), Modifiers::SHIFT);
    let measured = harness.state().timeline.measured.unwrap();
    let pixel = view.span() / 300;
    for (moment, x) in [(measured.start, 180.0), (measured.end, 420.0)] {
        assert!((moment.0 - view.time_at(x, canvas.width())).abs() <= pixel, "{measured:?}");
    }
    assert_eq!(harness.state().timeline.view, view, "nothing moved");
    let ruler = harness.get_by_label("ruler").rect().center();
    click(&mut harness, ruler, 1);
    assert_eq!(harness.state().timeline.measured, None, "a click on the ruler ends it");
}

#[test]
fn the_minimap_goes_to_where_it_is_clicked_and_dragged() {
    let mut harness = window(2, 60);
    for _ in 0..8 {
        press(&mut harness, Key::W);
    }
    let span = view(&harness).span();
    let map = harness.get_by_label("minimap").rect();
    let bounds = harness.state().bounds();
    for share in [0.8, 0.25] {
        let at = Pos2::new(map.left() + map.width() * share, map.center().y);
        click(&mut harness, at, 1);
        let view = view(&harness);
        let middle = view.start() + view.span() / 2;
        let wanted = bounds.start.0 + (bounds.len().0 as f64 * f64::from(share)) as i64;
        assert_eq!(view.span(), span, "it keeps the zoom");
        assert!((middle - wanted).abs() < bounds.len().0 / 20, "{middle} for {wanted}");
    }
    let before = view(&harness);
    let from = Pos2::new(map.left() + map.width() * 0.25, map.center().y);
    drag(&mut harness, from, from + Vec2::new(map.width() * 0.3, 0.0), Modifiers::NONE);
    let moved = view(&harness).start() - before.start();
    assert!((moved as f64 / bounds.len().0 as f64 - 0.3).abs() < 0.05, "it follows a drag: {moved}");
}

#[test]
fn search_counts_what_it_finds() {
    let mut harness = window(2, 25);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::F);
    harness.run_steps(3);
    harness.get_by_label("Search names").type_text("streamSYNC");
    harness.run_steps(3);
    let trace = harness.state().docs[0].trace.clone();
    let count = trace.calls.indices().filter(|&call| trace.call_name(call).contains("StreamSync")).count();
    assert!(count > 1);
    harness.get_by_label(&format!("{count} in all. Enter goes to the next."));
    harness.get_by_label("1 name");
}

#[test]
fn the_text_at_the_pointer_tells_name_times_stream_and_launch_latency() {
    let mut harness = window(2, 6);
    let trace = harness.state().docs[0].trace.clone();
    let op = OpIdx(trace.streams[1].ops.start + 1);
    let at = place_of(&harness, op);
    harness.hover_at(at);
    harness.run_steps(4);
    let times = trace.ops.interval(op);
    let latency = times.start - trace.calls.start[trace.ops.launch(op).unwrap().index()];
    let duration = bubblescope_ui::format::duration;
    for text in [
        bubblescope::report::demangle(trace.op_name(op)),
        duration(times.len().0),
        bubblescope_ui::format::moment(times.start.0),
        // Its stream was free; what ran beside it on the other one is no launch latency.
        format!("{}, while the GPU had other work", duration(latency.0)),
        trace.streams[1].id.to_string(),
    ] {
        assert!(harness.query_all_by_label(&text).count() > 0, "{text} is shown");
    }
    assert_eq!(selected(&harness), None);
    harness.hover_at(harness.get_by_label("Bubbles and ops").rect().center());
    harness.run_steps(4);
    assert_eq!(harness.query_all_by_label("Launch to start").count(), 0, "it goes when the pointer does");
}

/// Ends of the curves that the last frame drew.
pub(crate) fn arrows(harness: &Harness<'_, App>) -> Vec<[Pos2; 2]> {
    let curves = harness.output().shapes.iter().filter_map(|clipped| match &clipped.shape {
        Shape::CubicBezier(curve) => Some([curve.points[0], curve.points[3]]),
        _ => None,
    });
    curves.collect()
}

#[test]
fn an_arrow_joins_an_op_and_its_launch_and_l_follows_it_there_and_back() {
    let mut harness = window(2, 6);
    assert!(arrows(&harness).is_empty());
    let trace = harness.state().docs[0].trace.clone();
    let op = OpIdx(trace.streams[1].ops.start + 1);
    let call = trace.ops.launch(op).unwrap();
    let at = place_of(&harness, op);
    click(&mut harness, at, 1);
    let (canvas, view) = (canvas(&harness), view(&harness));
    let x = |time: Ns| canvas.left() + view.x_of(time.0, canvas.width());
    let [[from, to]] = arrows(&harness)[..] else { panic!("not one arrow: {:?}", arrows(&harness)) };
    assert!((from.x - x(trace.calls.start[call.index()])).abs() < 3.0, "it starts at the call");
    assert!((to.x - x(trace.ops.start[op.index()])).abs() < 3.0, "it ends at the op");
    let rows = ["main 4711 calls", "Stream 8"].map(|row| harness.get_by_label(row).rect().y_range());
    assert!(rows[0].expand(2.0).contains(from.y) && rows[1].expand(2.0).contains(to.y), "{from} {to} {rows:?}");
    for item in [Item::Call(call), Item::Op(op)] {
        press(&mut harness, Key::L);
        assert_eq!(selected(&harness), Some(item));
        assert_eq!(arrows(&harness).len(), 1);
    }
}

#[test]
fn a_selected_bubble_is_joined_to_the_launch_that_came_late() {
    let mut harness = window(1, 6);
    press(&mut harness, Key::B);
    let Some(Item::Bubble(at)) = selected(&harness) else { panic!("no bubble") };
    assert!(harness.state().docs[0].bubble(at).unwrap().1.launch.is_some());
    assert_eq!(arrows(&harness).len(), 1);
    for text in ["Root cause", "Before", "After", "Judged by", "Why", "Where the time went"] {
        harness.get_by_label(text);
    }
}

#[test]
fn every_key_of_the_list_does_something() {
    use bubblescope_ui::command::COMMANDS;
    let mut harness = window(2, 6);
    press(&mut harness, Key::F1);
    for entry in COMMANDS {
        assert!(harness.query_all_by_label(entry.title).count() > 0, "{} is listed", entry.title);
        for key in entry.keys {
            assert!(harness.query_all_by_label_contains(&key.text()).count() > 0, "{} is listed", key.text());
        }
    }
}
