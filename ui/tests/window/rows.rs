//! Keys that arrange rows.

use bubblescope::trace::OpIdx;
use bubblescope_ui::App;
use bubblescope_ui::arrange::{FoldKey, Place};
use bubblescope_ui::document::{Item, Pick};
use bubblescope_ui::panels::Tab;
use eframe::egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

use crate::{press, window};

/// Titles of the lines that scroll, and of the pinned rows.
fn lines(harness: &Harness<'_, App>) -> [Vec<String>; 2] {
    let app = harness.state();
    let layout = app.timeline.arrangement.layout(app.docs.iter().map(|doc| &doc.scene), app.docs.len() > 1);
    [layout.scrolled, layout.pinned].map(|lines| {
        let title = |place| match place {
            Place::Trace { doc } => app.docs[doc].name.clone(),
            Place::Section { doc, section } => app.docs[doc].scene.sections[section].title.clone(),
            Place::Row { doc, section, row, .. } => app.docs[doc].scene.sections[section].rows[row].title.clone(),
        };
        lines.lines.iter().map(|line| title(line.place)).collect()
    })
}

fn current(harness: &Harness<'_, App>) -> Option<String> {
    let app = harness.state();
    let line = app.timeline.line?;
    let sections = &app.docs[line.doc].scene.sections;
    let rows = sections.iter().flat_map(|section| &section.rows);
    match line.key {
        FoldKey::Row(key) => rows.filter(|row| row.key == key).map(|row| row.title.clone()).next(),
        FoldKey::Section(key) => sections.iter().find(|found| found.key == key).map(|found| found.title.clone()),
        FoldKey::Trace(_) => None,
    }
}

fn press_with_alt(harness: &mut Harness<'_, App>, key: Key) {
    harness.key_press_modifiers(Modifiers::ALT, key);
    harness.run_steps(2);
}

fn place(lines: &[String], title: &str) -> usize {
    lines.iter().position(|line| line == title).unwrap_or_else(|| panic!("{title} is not among {lines:?}"))
}

#[test]
fn the_row_under_the_pointer_is_moved_pinned_and_hidden_by_keys() {
    let mut harness = window(3, 10);
    let [before, _] = lines(&harness);
    harness.hover_at(harness.get_by_label("Stream 8").rect().center());
    harness.run_steps(2);
    press_with_alt(&mut harness, Key::ArrowUp);
    let [moved, _] = lines(&harness);
    assert_eq!(place(&moved, "Stream 8") + 1, place(&moved, "Stream 7"), "{moved:?}");
    press_with_alt(&mut harness, Key::ArrowDown);
    assert_eq!(lines(&harness)[0], before);

    press(&mut harness, Key::K);
    assert_eq!(lines(&harness)[1], ["Stream 8"]);
    press(&mut harness, Key::K);
    assert_eq!(lines(&harness), [before.clone(), vec![]]);

    press(&mut harness, Key::H);
    assert!(!lines(&harness)[0].contains(&"Stream 8".to_owned()));
    assert_eq!(current(&harness).as_deref(), Some("Stream 9"), "the row below takes its place");
    press(&mut harness, Key::H);
    assert_eq!(lines(&harness)[0].len(), before.len() - 2);
    press(&mut harness, Key::U);
    assert_eq!(lines(&harness)[0], before);
}

#[test]
fn a_row_is_moved_past_hidden_ones_at_once() {
    let mut harness = window(3, 10);
    harness.hover_at(harness.get_by_label("Stream 8").rect().center());
    harness.run_steps(2);
    press(&mut harness, Key::H);
    assert_eq!(current(&harness).as_deref(), Some("Stream 9"));
    press_with_alt(&mut harness, Key::ArrowUp);
    let [moved, _] = lines(&harness);
    assert!(place(&moved, "Stream 9") < place(&moved, "Stream 7"), "{moved:?}");
}

#[test]
fn arrows_go_from_line_to_line_and_c_collapses() {
    let mut harness = window(2, 10);
    let [all, _] = lines(&harness);
    let mut seen = Vec::new();
    for _ in 0..all.len() + 2 {
        press(&mut harness, Key::ArrowDown);
        seen.extend(current(&harness));
    }
    seen.dedup();
    assert_eq!(seen, all, "every line is reached once, and the last one kept");
    press(&mut harness, Key::ArrowUp);
    assert_eq!(current(&harness), Some(all[all.len() - 2].clone()));

    // The first stream has two lanes, which become thin; a row of one lane takes its section with it.
    let height = |harness: &Harness<'_, App>, row: &str| harness.get_by_label(row).rect().height();
    while current(&harness).as_deref() != Some("Stream 7") {
        press(&mut harness, Key::ArrowUp);
    }
    let before = height(&harness, "Stream 7");
    press(&mut harness, Key::C);
    assert!(height(&harness, "Stream 7") < before);
    press(&mut harness, Key::C);
    assert_eq!(height(&harness, "Stream 7"), before);
    press(&mut harness, Key::ArrowDown);
    press(&mut harness, Key::C);
    assert!(!lines(&harness)[0].contains(&"Stream 8".to_owned()));
    assert_eq!(current(&harness).as_deref(), Some("GPU 0 NVIDIA H200"));
    press(&mut harness, Key::C);
    assert_eq!(lines(&harness)[0], all);
}

#[test]
fn the_row_of_what_is_found_becomes_the_current_one() {
    let mut harness = window(3, 10);
    let op = OpIdx(harness.state().docs[0].trace.streams[2].ops.start);
    harness.state_mut().select(Pick { doc: 0, item: Item::Op(op) });
    harness.run_steps(2);
    assert_eq!(current(&harness).as_deref(), Some("Stream 9"));
    press(&mut harness, Key::B);
    assert_eq!(current(&harness).as_deref(), Some("Bubbles"));
}

#[test]
fn a_right_click_offers_the_same_with_the_keys() {
    let mut harness = window(3, 10);
    harness.get_by_label("Stream 8").click_secondary();
    harness.run_steps(3);
    for (entry, key) in
        [("Pin to the top", "K"), ("Move up", "Alt+Up"), ("Move down", "Alt+Down"), ("Hide", "H"), ("Collapse", "C")]
    {
        let found = harness.query_all_by_label_contains(entry).any(|node| format!("{node:?}").contains(key));
        assert!(found, "{entry} has the key {key}");
    }
    harness.get_by_label_contains("Move down").click();
    harness.run_steps(3);
    let [moved, _] = lines(&harness);
    assert!(place(&moved, "Stream 8") > place(&moved, "Stream 9"), "{moved:?}");
}

#[test]
fn a_right_click_on_a_section_collapses_it() {
    let mut harness = window(2, 10);
    let [all, _] = lines(&harness);
    for (entry, left) in [("Collapse", all.len() - 4), ("Expand", all.len())] {
        harness.get_by_label("GPU 0 NVIDIA H200").click_secondary();
        harness.run_steps(3);
        harness.get_by_label_contains(entry).click();
        harness.run_steps(3);
        assert_eq!(lines(&harness)[0].len(), left, "{entry}");
    }
}

fn filter(harness: &mut Harness<'_, App>, text: &str) {
    harness.get_by_label("Filter rows").focus();
    harness.run_steps(1);
    harness.get_by_label("Filter rows").type_text(text);
    harness.run_steps(2);
    press(harness, Key::Enter);
}

#[test]
fn the_bubbles_of_a_device_stay_with_the_rows_that_a_filter_leaves() {
    let mut harness = window(3, 10);
    filter(&mut harness, "stream 8");
    assert_eq!(lines(&harness)[0], ["GPU 0 NVIDIA H200", "Bubbles", "Stream 8"]);
    harness.hover_at(harness.get_by_label("Stream 8").rect().center());
    harness.run_steps(2);
    press(&mut harness, Key::K);
    assert_eq!(
        lines(&harness),
        [["GPU 0 NVIDIA H200", "Bubbles"].map(String::from).to_vec(), vec!["Stream 8".to_owned()]]
    );
    press(&mut harness, Key::K);
    press(&mut harness, Key::H);
    assert_eq!(lines(&harness)[0], [""; 0], "with its last row a device goes");
    let mut harness = window(3, 10);
    filter(&mut harness, "main 4711 calls");
    assert_eq!(lines(&harness)[0], ["train · pid 4711", "main 4711 calls"]);
}

#[test]
fn going_to_a_bubble_keeps_a_filter_that_shows_the_bubbles() {
    let mut harness = window(3, 10);
    let [all, _] = lines(&harness);
    for (text, left) in
        [("stream", &["GPU 0 NVIDIA H200", "Bubbles", "Stream 7", "Stream 8", "Stream 9"][..]), ("main", &[])]
    {
        harness.state_mut().timeline.arrangement.filter = text.to_owned();
        harness.state_mut().panels.tab = Tab::Bubbles;
        harness.run_steps(2);
        harness.get_by_label("bubbles row 0").click();
        harness.run_steps(2);
        let selected = harness.state().timeline.selected;
        assert!(matches!(selected.map(|pick| pick.item), Some(Item::Bubble(_))), "{selected:?}");
        let expected =
            if left.is_empty() { &all[..] } else { &left.iter().map(|&line| line.to_owned()).collect::<Vec<_>>() };
        assert_eq!(lines(&harness)[0], expected, "{text}");
    }
}
