//! Ways from a thing to what it hangs together with.

use std::path::PathBuf;

use bubblescope::trace::OpIdx;
use bubblescope_ui::App;
use bubblescope_ui::background::Wanted;
use bubblescope_ui::describe::describe;
use bubblescope_ui::document::{BubbleRef, Item, Pick};
use bubblescope_ui::panels::{BubbleRow, Tab};
use bubblescope_ui::table::arranged;
use eframe::egui::{Key, Modifiers, Role, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};

use crate::gestures::{arrows, wheel};
use crate::{planted, press, replayed, settle};

fn opened(path: PathBuf) -> Harness<'static, App> {
    let mut harness =
        Harness::builder().with_size([1300.0, 800.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &[path]));
    settle(&mut harness);
    harness
}

fn selected(harness: &Harness<'_, App>) -> Item {
    harness.state().timeline.selected.expect("a selection").item
}

fn bubble(harness: &Harness<'_, App>) -> BubbleRef {
    let Item::Bubble(at) = selected(harness) else { panic!("{:?} is no bubble", selected(harness)) };
    at
}

fn cause(harness: &Harness<'_, App>) -> &'static str {
    let (_, found) = harness.state().docs[0].bubble(bubble(harness)).expect("a bubble of the trace");
    found.root.cause.as_str()
}

/// The share of the view that the selection takes; all of it must be on screen.
fn share_of_view(harness: &Harness<'_, App>) -> f64 {
    let app = harness.state();
    let times = app.timeline.selected.and_then(|pick| app.times(pick)).expect("something of the trace");
    let view = app.timeline.view;
    assert!(view.start() <= times.start.0 && times.end.0 <= view.end(), "{times:?} is not in {view:?}");
    times.len().0 as f64 / view.span() as f64
}

/// A recording whose bubbles have three causes.
fn several_causes() -> PathBuf {
    planted("sync").with_file_name("../scalar-readback/kernels-4/sync.bubcap")
}

#[test]
fn a_click_on_a_cause_goes_to_its_longest_bubble_and_brackets_go_on_from_there() {
    let mut harness = opened(several_causes());
    // Its result takes a line of the overview.
    replayed(&mut harness);
    let causes: Vec<&str> = harness.state().docs[0].analysis().unwrap().devices[0]
        .idle_by_root
        .keys()
        .map(|cause| cause.as_str())
        .collect();
    assert!(causes.len() > 2, "{causes:?}");
    for wanted in causes {
        let line = |label: String| label.starts_with(&format!("{wanted}: "));
        let buttons =
            harness.get_all_by_role(Role::Button).filter(|node| node.accesskit_node().label().is_some_and(line));
        let [button] = &buttons.collect::<Vec<_>>()[..] else { panic!("not one line for {wanted}") };
        button.click();
        harness.run_steps(3);
        let doc = &harness.state().docs[0];
        let (at, found) = doc.bubbles().find(|(at, _)| *at == bubble(&harness)).unwrap();
        assert_eq!(found.root.cause.as_str(), wanted);
        let lengths = doc.bubbles().filter(|(_, bubble)| bubble.root.cause.as_str() == wanted);
        assert_eq!(Some(found.interval.len()), lengths.map(|(_, bubble)| bubble.interval.len()).max());
        assert!(share_of_view(&harness) > 0.019);
        press(&mut harness, Key::CloseBracket);
        assert_eq!(bubble(&harness).index, at.index + 1, "the next of all bubbles, whatever its cause");
    }
}

#[test]
fn brackets_go_through_the_filtered_bubbles_and_the_bar_says_so() {
    let mut harness = opened(several_causes());
    harness.state_mut().panels.tab = Tab::Bubbles;
    harness.run_steps(2);
    harness.get_by_label("Filter").focus();
    harness.run_steps(1);
    harness.get_by_label("Filter").type_text("cause: launch-bound");
    harness.run_steps(3);
    press(&mut harness, Key::Escape);
    let bubbles = harness.state().docs[0].bubbles();
    let bubbles = bubbles.filter(|(_, bubble)| bubble.root.cause.as_str() == "launch-bound").map(|(at, _)| at);
    let all: Vec<BubbleRef> = bubbles.collect();
    harness.get_by_label(&format!("] and [ go through {} bubbles with “cause: launch-bound”", all.len()));
    harness.state_mut().timeline.selected = Some(Pick { doc: 0, item: Item::Bubble(all[0]) });
    for expected in &all[1..8] {
        press(&mut harness, Key::CloseBracket);
        assert_eq!(bubble(&harness), *expected);
    }
    let there = bubble(&harness);
    press(&mut harness, Key::OpenBracket);
    press(&mut harness, Key::CloseBracket);
    assert_eq!(bubble(&harness), there);
    harness.get_by_label("All bubbles").click();
    harness.run_steps(2);
    press(&mut harness, Key::CloseBracket);
    assert_eq!(bubble(&harness).index, there.index + 1);
    assert!(harness.query_by_label_contains("] and [ go through").is_none());
    harness.state_mut().panels.bubbles.filter = "sync".to_owned();
    harness.run_steps(2);
    harness.get_by_label_contains("] and [ go through");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_steps(2);
    assert!(harness.query_by_label_contains("] and [ go through").is_none(), "nothing is open");
}

#[test]
fn the_table_scrolls_to_the_bubble_that_is_gone_to() {
    let mut harness = opened(several_causes());
    harness.state_mut().panels.tab = Tab::Bubbles;
    harness.run_steps(2);
    let docs = &harness.state().docs;
    let sorted = arranged(docs, BubbleRow::all(docs), (1, true, ""), &Wanted::default());
    press(&mut harness, Key::B);
    let (first, mut far) = (harness.get_by_label("bubbles row 0").rect(), 0);
    for _ in 0..12 {
        let at = sorted.iter().position(|row| row.at == bubble(&harness)).unwrap();
        let row = harness.get_by_label(&format!("bubbles row {at}")).rect();
        assert!(
            row.top() >= first.top() - 1.0 && row.bottom() <= 800.0,
            "row {at} is at {row}, the first was at {first}"
        );
        far = far.max(at);
        press(&mut harness, Key::CloseBracket);
        harness.run_steps(30);
    }
    assert!(far > 50, "rows far from each other are gone to: {far}");
    let at = first.center();
    wheel(&mut harness, at, Vec2::new(0.0, 10_000.0), Modifiers::NONE);
    harness.get_by_label("bubbles row 0");
}

#[test]
fn details_lead_to_what_they_name() {
    for name in ["sync", "dependency", "graph-internal"] {
        let mut harness = opened(planted(name));
        press(&mut harness, Key::B);
        let start = harness.state().timeline.selected.unwrap();
        let found = describe(&harness.state().docs[0], start.item).unwrap();
        let names: Vec<&str> = found.links.iter().map(|&(at, _)| found.facts[at].0).collect();
        let call = ["Call", "Wait by", "Next launch", "Next op's launch"].iter().any(|fact| names.contains(fact));
        assert!(call && ["Before", "After"].iter().all(|fact| names.contains(fact)), "{name}: {names:?}");
        let mut walked = 0;
        for (at, item) in found.links {
            harness.state_mut().timeline.selected = Some(start);
            harness.run_steps(2);
            let (fact, text) = &found.facts[at];
            let named = harness.get_all_by_role_and_label(Role::Link, text);
            // Things of one name follow each other as the facts do.
            let links: Vec<_> = named.collect();
            let same = found.facts[..at].iter().filter(|(_, other)| other == text).count();
            links[same.min(links.len() - 1)].click();
            harness.run_steps(3);
            assert_eq!(selected(&harness), item, "{name}: {fact}");
            assert!(share_of_view(&harness) > 0.019, "{name}: {fact} can be seen");
            walked += 1;
        }
        assert!(walked >= 3);
    }
}

#[test]
fn details_of_a_bubble_lead_to_its_finding() {
    let mut harness = opened(planted("pageable-copy"));
    replayed(&mut harness);
    press(&mut harness, Key::B);
    let found = describe(&harness.state().docs[0], selected(&harness)).unwrap();
    let (_, finding) = found.facts.iter().find(|(fact, _)| *fact == "Finding").unwrap();
    assert_eq!(harness.state().panels.tab, Tab::Overview);
    let link = harness.get_by_role_and_label(Role::Link, finding);
    let (inside, panel) = (link.rect(), harness.get_by_label("Zoom to it").rect());
    assert!(inside.left() > panel.left() && inside.right() <= harness.ctx.content_rect().right(), "it wraps: {inside}");
    link.click();
    harness.run_steps(3);
    assert_eq!(harness.state().panels.tab, Tab::Findings);
}

#[test]
fn a_link_shows_its_row_though_it_was_hidden_folded_or_filtered_away() {
    let mut harness = opened(planted("sync"));
    press(&mut harness, Key::B);
    let bubble = harness.state().timeline.selected;
    let found = describe(&harness.state().docs[0], bubble.unwrap().item).unwrap();
    let (_, call) = found.facts.iter().find(|(fact, _)| *fact == "Call").unwrap();
    for hidden_by in [Key::H, Key::C, Key::F] {
        harness.hover_at(harness.get_by_label("Thread 484 calls").rect().center());
        harness.run_steps(2);
        if hidden_by == Key::F {
            harness.state_mut().timeline.arrangement.filter = "bubbles".to_owned();
        } else {
            press(&mut harness, hidden_by);
        }
        harness.state_mut().timeline.selected = bubble;
        harness.run_steps(2);
        assert!(harness.query_by_label("Thread 484 calls").is_none(), "{hidden_by:?}");
        harness.get_by_role_and_label(Role::Link, call).click();
        harness.run_steps(3);
        assert!(matches!(selected(&harness), Item::Call(_)));
        harness.get_by_label("Thread 484 calls");
    }
}

#[test]
fn l_leads_back_to_where_it_came_from() {
    let mut harness = opened(planted("graph-internal"));
    let doc = &harness.state().docs[0];
    let graph = doc.trace.calls.indices().find(|&call| doc.trace.call_ops(call).len() > 50).unwrap();
    let nodes = doc.trace.call_ops(graph).to_vec();
    for node in [nodes[0], nodes[7]] {
        harness.state_mut().select(Pick { doc: 0, item: Item::Op(node) });
        for expected in [Item::Call(graph), Item::Op(node), Item::Call(graph)] {
            press(&mut harness, Key::L);
            assert_eq!(selected(&harness), expected);
        }
    }
    let replay = Item::Replay(harness.state().docs[0].trace.ops.stream[nodes[0].index()], graph);
    harness.state_mut().select(Pick { doc: 0, item: Item::Call(graph) });
    harness.state_mut().select(Pick { doc: 0, item: replay });
    for expected in [Item::Call(graph), replay] {
        press(&mut harness, Key::L);
        assert_eq!(selected(&harness), expected);
    }
    let mut harness = opened(planted("sync"));
    press(&mut harness, Key::B);
    let start = selected(&harness);
    press(&mut harness, Key::L);
    assert!(matches!(selected(&harness), Item::Call(_)), "{:?}", selected(&harness));
    press(&mut harness, Key::L);
    assert_eq!(selected(&harness), start, "a blocking call has no op, yet leads back");
}

#[test]
fn arrows_join_an_op_with_the_one_of_another_stream_that_it_waited_for() {
    let mut harness = opened(planted("dependency"));
    press(&mut harness, Key::B);
    assert_eq!(cause(&harness), "dependency");
    let app = harness.state();
    let (_, found) = app.docs[0].bubble(bubble(&harness)).unwrap();
    let handover = *app.docs[0].handovers.before(found.after).next().unwrap();
    let (first, then) = (handover.first.unwrap(), handover.then.unwrap());
    assert_eq!((first, then), (found.before, found.after));
    let canvas = harness.get_by_label("timeline").rect();
    let x = |harness: &Harness<'_, App>, time: i64| {
        canvas.left() + harness.state().timeline.view.x_of(time, canvas.width())
    };
    let trace = app.docs[0].trace.clone();
    let joins = |harness: &Harness<'_, App>, from: i64, to: i64| {
        let (from, to) = (x(harness, from), x(harness, to));
        arrows(harness).iter().any(|[start, end]| (start.x - from).abs() < 3.0 && (end.x - to).abs() < 3.0)
    };
    let (end, start) = (trace.ops.end[first.index()].0, trace.ops.start[then.index()].0);
    assert!(joins(&harness, end, start), "op to op: {:?}", arrows(&harness));
    for op in [first, then] {
        harness.state_mut().timeline.selected = Some(Pick { doc: 0, item: Item::Op(op) });
        harness.run_steps(2);
        assert!(joins(&harness, end, start), "either of them shows it");
    }
    // The calls came long before: their end of it is seen where they are.
    let (record, wait) = (handover.record.unwrap(), handover.wait.unwrap());
    harness.state_mut().timeline.selected = Some(Pick { doc: 0, item: Item::Op(then) });
    harness.run_steps(2);
    let text = describe(&harness.state().docs[0], Item::Op(then)).unwrap();
    let (at, _) = *text.links.iter().find(|(_, item)| *item == Item::Call(record)).expect("the record is named");
    harness.get_all_by_role_and_label(Role::Link, &text.facts[at].1).next().unwrap().click();
    harness.run_steps(4);
    assert_eq!(selected(&harness), Item::Call(record));
    let start_of = |call: bubblescope::trace::CallIdx| trace.calls.start[call.index()].0;
    assert!(joins(&harness, start_of(record), start_of(wait)), "record to wait: {:?}", arrows(&harness));
    let event = trace.events.iter().find(|event| event.correlation == trace.calls.correlation[record.index()]).unwrap();
    assert!(harness.query_by_label_contains(&format!("event {}", event.event)).is_some(), "the event is named");
    let none = OpIdx(trace.streams.iter().find(|stream| stream.ops.len() > 2).unwrap().ops.start);
    assert_eq!(harness.state().docs[0].handovers.before(none).count(), 0);
}

#[test]
fn the_place_that_evidence_names_can_be_seen() {
    for name in ["allocation", "host-bound"] {
        let mut harness = opened(planted(name));
        press(&mut harness, Key::X);
        replayed(&mut harness);
        harness.run_steps(2);
        let links: Vec<String> = {
            let links = harness.query_all_by_role(Role::Link);
            links
                .filter_map(|node| node.accesskit_node().label())
                .filter(|label| label.contains(" at ") && label.ends_with("s"))
                .collect()
        };
        assert!(!links.is_empty(), "{name} has evidence");
        for link in links {
            harness.get_all_by_label(&link).next().unwrap().scroll_to_me();
            harness.run_steps(3);
            harness.get_all_by_label(&link).next().unwrap().click();
            harness.run_steps(3);
            assert!(share_of_view(&harness) > 0.019, "{name}, {link}: {}", share_of_view(&harness));
        }
    }
}
