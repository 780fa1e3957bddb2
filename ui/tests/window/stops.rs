//! Which trace keys mean where several are open, ways back, and leaving step by step.

use bubblescope::trace::{Interval, Ns};
use bubblescope_ui::App;
use bubblescope_ui::document::{Item, Pick};
use bubblescope_ui::panels::Tab;
use bubblescope_ui::view::Viewport;
use eframe::egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};

use crate::files::{opened, until};
use crate::{press, replayed, window};

/// Three recordings, laid over each other.
fn three() -> Harness<'static, App> {
    let mut harness = opened(&["sync", "async", "graph"]);
    until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
    harness
}

/// Every bubble of every trace by its start on the ruler.
fn bubbles(app: &App) -> Vec<(Interval, Pick)> {
    let of_doc = |doc: usize| {
        app.docs[doc]
            .bubbles()
            .map(move |(at, bubble)| (app.docs[doc].shifted(bubble.interval), Pick { doc, item: Item::Bubble(at) }))
    };
    let mut all: Vec<_> = (0..app.docs.len()).flat_map(of_doc).collect();
    all.sort_by_key(|(times, pick)| (times.start, pick.doc));
    all
}

fn back(harness: &mut Harness<'_, App>) {
    harness.key_press_modifiers(Modifiers::ALT, Key::ArrowLeft);
    harness.run_steps(2);
}

#[test]
fn without_a_selection_keys_mean_all_traces_and_with_one_its_own() {
    let mut harness = three();
    let all = bubbles(harness.state());
    let longest = |of: Option<usize>| {
        let ours = all.iter().filter(|(_, pick)| of.is_none_or(|of| of == pick.doc));
        ours.map(|(times, _)| times.len()).max().unwrap()
    };
    let selected = |harness: &Harness<'_, App>| harness.state().timeline.selected.unwrap();
    let length = |harness: &Harness<'_, App>| harness.state().times(selected(harness)).unwrap().len();
    press(&mut harness, Key::B);
    assert_eq!(length(&harness), longest(None));
    for doc in 0..3 {
        harness.state_mut().timeline.selected = all.iter().map(|(_, pick)| *pick).find(|pick| pick.doc == doc);
        press(&mut harness, Key::B);
        assert_eq!((selected(&harness).doc, length(&harness)), (doc, longest(Some(doc))));
    }
    // From the left of the view on, in whichever trace; backward from its right.
    for (at, (times, _)) in all.iter().enumerate().step_by(all.len() / 7) {
        let view = Viewport::new(times.start.0 - 3, 2_000_000);
        let app = harness.state_mut();
        (app.timeline.view, app.timeline.selected) = (view, None);
        press(&mut harness, Key::CloseBracket);
        assert_eq!(harness.state().times(selected(&harness)).unwrap().start, times.start, "the {at}th");
        let app = harness.state_mut();
        (app.timeline.view, app.timeline.selected) = (view, None);
        press(&mut harness, Key::OpenBracket);
        let last = all.iter().rev().find(|(times, _)| times.start.0 < view.end()).unwrap();
        assert_eq!(harness.state().times(selected(&harness)).unwrap().start, last.0.start);
    }
    let docs = [0, 1, 2].map(|doc| all.iter().any(|(_, pick)| pick.doc == doc));
    assert_eq!(docs, [true; 3]);
    // A filter that lets through only another trace's leads there.
    let name = harness.state().docs[2].name.clone();
    harness.state_mut().panels.bubbles.filter = format!("trace: {name}");
    press(&mut harness, Key::Num0);
    harness.state_mut().timeline.selected = Some(all.iter().find(|(_, pick)| pick.doc == 0).unwrap().1);
    press(&mut harness, Key::CloseBracket);
    until(&mut harness, "the filtered bubbles", |harness| selected(harness).doc == 2);
}

#[test]
fn details_and_links_tell_the_time_that_the_ruler_shows() {
    let mut harness = three();
    replayed(&mut harness);
    let moment = bubblescope_ui::format::moment;
    for doc in 0..3 {
        let app = harness.state_mut();
        let at = app.docs[doc].longest_bubble(|_| true).unwrap();
        app.timeline.selected = Some(Pick { doc, item: Item::Bubble(at) });
        app.panels.tab = Tab::Bubbles;
        let own = app.docs[doc].bubble(at).unwrap().1.interval.start;
        let (own, shown) = (moment(own.0), moment(app.docs[doc].on_ruler(own).0));
        let shifted = app.docs[doc].offset != 0;
        harness.run_steps(3);
        let expected = if shifted { format!("{shown} on the ruler; {own} in its recording") } else { own };
        assert!(harness.query_by_label(&expected).is_some(), "{expected} of trace {doc}");
        let texts = crate::looks::texts(&harness);
        assert!(texts.iter().any(|(text, _)| *text == shown), "{shown} is in the table");

        press(&mut harness, Key::X);
        harness.run_steps(2);
        let app = harness.state();
        let full = app.docs[doc].full().unwrap();
        let (device, bubble) = app.docs[doc].bubble(at).unwrap();
        let Some(first) = full.findings.found.first() else { continue };
        let finding = full.findings.found.iter().find(|finding| finding.concerns(device, bubble)).unwrap_or(first);
        assert!(harness.query_all_by_label(&finding.title).count() > 0, "{} of trace {doc}", finding.title);
        let moments: Vec<Ns> = finding.evidence.iter().flat_map(|evidence| evidence.at.clone()).collect();
        let labels: Vec<String> =
            harness.query_all_by_role(Role::Link).filter_map(|node| node.accesskit_node().label()).collect();
        for at in moments {
            let shown = moment(app.docs[doc].on_ruler(at).0);
            assert!(labels.iter().any(|label| label.ends_with(&shown)), "{shown}: {labels:?}");
        }
    }
    assert!(harness.state().docs.iter().any(|doc| doc.offset != 0));
}

#[test]
fn the_view_that_a_run_opens_with_is_gone_back_to() {
    for variants in [&["sync"][..], &["sync", "async", "graph"]] {
        let mut harness = opened(variants);
        if variants.len() > 1 {
            until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
        }
        let start = harness.state().timeline.view;
        press(&mut harness, Key::Num0);
        let all = harness.state().timeline.view;
        assert!(all.span() > start.span());
        press(&mut harness, Key::M);
        assert_eq!(harness.state().timeline.view, start);
        press(&mut harness, Key::Home);
        harness.get_by_label("Measured part").click();
        harness.run_steps(2);
        assert_eq!(harness.state().timeline.view, start);
    }
}

#[test]
fn escape_takes_one_step_out() {
    let mut harness = window(2, 20);
    press(&mut harness, Key::B);
    let bubble = harness.state().timeline.selected;
    harness.state_mut().timeline.measured = Some(Interval::new(Ns(0), Ns(1_000_000)));
    let state = |harness: &Harness<'_, App>| {
        let app = harness.state();
        (app.timeline.measured.is_some(), app.timeline.selected)
    };
    press(&mut harness, Key::Questionmark);
    press(&mut harness, Key::Escape);
    assert!(!harness.state().help && state(&harness) == (true, bubble));
    for key in [Key::O, Key::G, Key::E, Key::N] {
        harness.key_press_modifiers(Modifiers::COMMAND, key);
        harness.run_steps(3);
        let shown = |harness: &Harness<'_, App>| harness.state().dialogs.is_shown() || harness.state().recorder.open;
        assert!(shown(&harness), "{key:?}");
        press(&mut harness, Key::Escape);
        assert!(!shown(&harness) && state(&harness) == (true, bubble), "{key:?}");
    }
    harness.get_by_label("Files").click();
    harness.run_steps(3);
    press(&mut harness, Key::Escape);
    assert_eq!(state(&harness), (true, bubble), "a menu is closed alone");
    harness.get_by_label("Filter rows").focus();
    harness.run_steps(1);
    harness.get_by_label("Filter rows").type_text("stream");
    harness.run_steps(2);
    press(&mut harness, Key::Escape);
    assert_eq!((harness.state().timeline.arrangement.filter.as_str(), state(&harness)), ("", (true, bubble)));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::F);
    harness.run_steps(3);
    press(&mut harness, Key::Escape);
    assert_eq!(state(&harness), (true, bubble), "a field is left alone");
    press(&mut harness, Key::Escape);
    assert_eq!(state(&harness), (false, bubble));
    press(&mut harness, Key::Escape);
    assert_eq!(state(&harness), (false, None));
}

#[test]
fn the_filter_of_rows_is_cleared_by_a_click() {
    let mut harness = window(2, 20);
    assert!(harness.query_by_label("Clear the filter").is_none());
    harness.state_mut().timeline.arrangement.filter = "stream".to_owned();
    harness.run_steps(2);
    harness.get_by_label("Clear the filter").click();
    harness.run_steps(2);
    assert_eq!(harness.state().timeline.arrangement.filter, "");
}

#[test]
fn going_back_shows_what_was_selected_there() {
    let mut harness = three();
    let mut stops = Vec::new();
    let stop = |harness: &Harness<'_, App>| (harness.state().timeline.view, harness.state().timeline.selected);
    for key in [Key::B, Key::M, Key::CloseBracket, Key::L, Key::Num0] {
        harness.run_steps(60);
        stops.push(stop(&harness));
        press(&mut harness, key);
    }
    let last = stop(&harness);
    for expected in stops.iter().rev() {
        if stop(&harness) == *expected {
            continue;
        }
        back(&mut harness);
        assert_eq!(stop(&harness), *expected);
    }
    while stop(&harness) != last {
        let before = stop(&harness);
        harness.key_press_modifiers(Modifiers::ALT, Key::ArrowRight);
        harness.run_steps(2);
        assert_ne!(stop(&harness), before, "it goes forward");
    }
}

#[test]
fn a_search_begins_where_one_looks_and_says_its_place() {
    let mut harness = three();
    let kernel = |app: &App, doc: usize| {
        let trace = &app.docs[doc].trace;
        let starts = trace.ops.indices().map(|op| (trace.op_name(op).to_owned(), trace.ops.start[op.index()]));
        starts.map(|(name, start)| (name, app.docs[doc].on_ruler(start))).collect::<Vec<_>>()
    };
    let app = harness.state();
    let all: Vec<(String, Ns)> = (0..3).flat_map(|doc| kernel(app, doc)).collect();
    let name = bubblescope::report::demangle(&all[all.len() / 2].0);
    let name = name[..name.find(['(', '<']).unwrap_or(name.len())].to_owned();
    harness.key_press_modifiers(Modifiers::COMMAND, Key::F);
    harness.run_steps(3);
    harness.get_by_label("Search names").type_text(&name);
    harness.run_steps(3);
    let middle = all[all.len() / 2].1;
    harness.state_mut().timeline.view = Viewport::new(middle.0 - 100, 5_000_000);
    let begun = |harness: &Harness<'_, App>| {
        let pick = harness.state().timeline.selected.unwrap();
        harness.state().times(pick).unwrap().start
    };
    press(&mut harness, Key::Enter);
    until(&mut harness, "a hit", |harness| harness.state().timeline.selected.is_some());
    let first = begun(&harness);
    assert!(first >= middle - Ns(100) && first.0 < middle.0 + 5_000_000, "{first:?} from {middle:?}");
    let place = |harness: &Harness<'_, App>| {
        let label = harness.get_by_label_contains("Enter goes to the next").accesskit_node().value();
        let label = label.or(harness.get_by_label_contains("Enter goes to the next").accesskit_node().label()).unwrap();
        let (at, of) = label.split_once(". Enter").unwrap().0.split_once(" of ").unwrap();
        [at, of].map(|number| number.replace(',', "").parse::<usize>().unwrap())
    };
    let [at, of] = place(&harness);
    assert!(at > 1 && of >= at, "{at} of {of}");
    press(&mut harness, Key::Enter);
    harness.run_steps(3);
    assert_eq!(place(&harness), [at % of + 1, of]);
    assert!(begun(&harness) >= first || at == of);
}

/// Where the text at the pointer stands, by the name of its first fact.
fn at_pointer(harness: &Harness<'_, App>) -> Option<eframe::egui::Rect> {
    let facts = harness.query_all_by_label("Duration");
    facts.map(|node| node.rect()).find(|rect| rect.right() < harness.get_by_label("Zoom to it").rect().left())
}

#[test]
fn the_text_at_the_pointer_stays_over_the_lanes_and_goes_when_keys_move_the_view() {
    let mut harness = window(2, 6);
    press(&mut harness, Key::B);
    let canvas = harness.get_by_label("timeline").rect();
    let row = harness.get_by_label("Stream 8").rect();
    let mut shown = 0;
    for share in [0.02, 0.3, 0.5, 0.7, 0.9, 0.97, 0.995] {
        harness.hover_at(eframe::egui::pos2(canvas.left() + canvas.width() * share, row.top() + 11.0));
        harness.run_steps(4);
        let Some(text) = at_pointer(&harness) else { continue };
        shown += 1;
        assert!(canvas.expand(1.0).contains_rect(text), "{text} over {canvas}");
        harness.key_press(Key::L);
        harness.run_steps(4);
        assert_eq!(at_pointer(&harness), None, "a key hides it");
        press(&mut harness, Key::B);
    }
    assert!(shown > 0);
    // What is selected is described beside.
    let app = harness.state();
    let pick = app.timeline.selected.unwrap();
    let times = app.times(pick).unwrap();
    let x = canvas.left() + app.timeline.view.x_of(times.start.0.midpoint(times.end.0), canvas.width());
    let lane = harness.get_all_by_label("Bubbles").map(|node| node.rect()).min_by(|a, b| a.top().total_cmp(&b.top()));
    harness.hover_at(eframe::egui::pos2(x, lane.unwrap().center().y));
    harness.run_steps(4);
    assert_eq!(at_pointer(&harness), None);
    press(&mut harness, Key::Q);
    harness.hover_at(eframe::egui::pos2(x + 1.0, lane.unwrap().center().y));
    harness.run_steps(4);
    assert!(harness.query_all_by_label("Duration").count() > 0, "without the details it is shown");
}

#[test]
fn l_says_what_it_needs_and_ctrl_0_makes_letters_as_they_were() {
    let mut harness = window(1, 4);
    press(&mut harness, Key::L);
    harness.get_by_label_contains("Select an op, a call or a bubble first");
    let before = harness.ctx.zoom_factor();
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Plus);
    harness.run_steps(3);
    assert!(harness.ctx.zoom_factor() > before);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Num0);
    harness.run_steps(3);
    assert_eq!(harness.ctx.zoom_factor(), before);
}
