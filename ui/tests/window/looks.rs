//! What stands on the window can be read.

use std::path::PathBuf;

use bubblescope::trace::{Interval, Ns};
use bubblescope_ui::App;
use bubblescope_ui::panels::Tab;
use eframe::egui::{Key, Modifiers, Pos2, Rect, Role, Shape};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

use crate::{planted, press, replayed, settle};

/// Texts and what can be seen of them.
pub(crate) fn texts(harness: &Harness<'_, App>) -> Vec<(String, Rect)> {
    let lines = lines(harness);
    let texts = lines.chunk_by(|(of, ..), (other, ..)| of == other);
    texts
        .map(|lines| (lines[0].1.clone(), lines.iter().fold(Rect::NOTHING, |all, (.., rect)| all.union(*rect))))
        .collect()
}

/// Each line of each text: the number of the text, the text, and what can be seen of the line.
fn lines(harness: &Harness<'_, App>) -> Vec<(usize, String, Rect)> {
    fn collect(shape: &Shape, clip: Rect, count: &mut usize, lines: &mut Vec<(usize, String, Rect)>) {
        match shape {
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| collect(shape, clip, count, lines)),
            Shape::Text(text) => {
                *count += 1;
                for row in &text.galley.rows {
                    // The letters themselves, not the height of their line; their edges are smoothed.
                    let letters = row.visuals.mesh_bounds.translate(text.pos.to_vec2() + row.pos.to_vec2());
                    let rect = letters.shrink(0.5).intersect(clip);
                    if rect.is_positive() && !row.text().trim().is_empty() {
                        lines.push((*count, text.galley.text().to_owned(), rect));
                    }
                }
            }
            _ => {}
        }
    }
    let (mut count, mut found) = (0, Vec::new());
    harness.output().shapes.iter().for_each(|shape| collect(&shape.shape, shape.clip_rect, &mut count, &mut found));
    found
}

fn check(harness: &Harness<'_, App>, place: &str) {
    let texts = lines(harness);
    assert!(texts.len() > 20, "{place}: {texts:?}");
    for (at, (_, text, rect)) in texts.iter().enumerate() {
        for (_, other, taken) in &texts[..at] {
            let common = rect.intersect(*taken);
            assert!(!common.is_positive(), "{place}: {text:?} at {rect} lies over {other:?} at {taken}");
        }
        let number = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        let unit = text.split_whitespace().nth(1);
        if let (Some(number), Some("ns" | "µs" | "ms")) = (number, unit) {
            assert!(number <= 1_000.0 || !text.contains('.'), "{place}: {text:?} has too small a unit");
        }
    }
}

#[test]
fn no_text_lies_over_another_on_small_and_fine_screens() {
    for (name, scale) in [("sync", 1.0), ("launch-bound", 1.5), ("module-load", 2.0)] {
        let builder = Harness::builder().with_size([1280.0, 720.0]).with_pixels_per_point(scale);
        let mut harness = builder.build_eframe(|creation| App::new(&creation.egui_ctx, &[planted(name)]));
        settle(&mut harness);
        replayed(&mut harness);
        check(&harness, name);
        press(&mut harness, Key::B);
        let view = harness.state().timeline.view;
        // Wherever the length of what is measured comes to stand between the moments of the ruler.
        for part in 0..20 {
            let start = view.start() + view.span() * part / 20;
            harness.state_mut().timeline.measured = Some(Interval::new(Ns(start), Ns(start + view.span() / 9)));
            harness.run_steps(1);
            check(&harness, &format!("{name}, measured from {start}"));
        }
        harness.state_mut().panels.search.text = "cu".to_owned();
        for (tab, title) in Tab::ALL {
            harness.state_mut().panels.tab = tab;
            harness.run_steps(3);
            check(&harness, &format!("{name}, {title}"));
        }
    }
}

#[test]
fn several_traces_and_messages_can_be_read_too() {
    let mut paths: Vec<PathBuf> = ["sync", "host-bound", "graph-internal"].map(planted).into();
    paths.push(PathBuf::from("/no/such/file.bubbles.parquet"));
    let mut harness =
        Harness::builder().with_size([1280.0, 720.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &paths));
    settle(&mut harness);
    replayed(&mut harness);
    for (tab, title) in Tab::ALL {
        harness.state_mut().panels.tab = tab;
        harness.run_steps(3);
        check(&harness, title);
    }
}

#[test]
fn no_text_lies_over_another_in_a_small_window() {
    for (names, size) in [
        (&["sync"][..], [800.0, 500.0]),
        (&["graph-internal"], [640.0, 400.0]),
        (&["sync", "host-bound", "default-stream"], [800.0, 500.0]),
        (&["sync", "host-bound", "default-stream"], [640.0, 400.0]),
    ] {
        let paths: Vec<PathBuf> = names.iter().map(|name| planted(name)).collect();
        let builder = Harness::builder().with_size(size);
        let mut harness = builder.build_eframe(|creation| App::new(&creation.egui_ctx, &paths));
        settle(&mut harness);
        check(&harness, &format!("{names:?} at {size:?}, while it is replayed"));
        replayed(&mut harness);
        press(&mut harness, Key::B);
        harness.state_mut().panels.search.text = "cu".to_owned();
        for (tab, title) in Tab::ALL {
            harness.state_mut().panels.tab = tab;
            harness.run_steps(3);
            check(&harness, &format!("{names:?} at {size:?}, {title}"));
        }
        // The way to everything else is always there.
        for button in ["Files", "Window", "?"] {
            assert!(harness.get_by_label(button).rect().right() <= size[0], "{button} at {size:?}");
        }
    }
}

#[test]
fn no_hint_of_a_field_is_cut() {
    let mut harness = opened("sync");
    replayed(&mut harness);
    let mut hints = 0;
    for (tab, title) in Tab::ALL {
        harness.state_mut().panels.tab = tab;
        harness.run_steps(3);
        for shape in &harness.output().shapes {
            if let Shape::Text(text) = &shape.shape
                && text.galley.text().starts_with("words, or")
            {
                hints += 1;
                let whole = !text.galley.elided && shape.clip_rect.contains_rect(text.visual_bounding_rect());
                assert!(whole, "{title}: {:?}", text.galley.text());
            }
        }
    }
    assert!(hints >= 4, "{hints}");
}

#[test]
fn a_variant_stands_on_one_line_with_its_figures() {
    let mut harness = crate::files::opened(&["sync", "graph"]);
    harness.state_mut().panels.tab = Tab::Compare;
    crate::files::until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
    harness.run_steps(3);
    let figures: Vec<f32> = harness.get_all_by_label("200").map(|figure| figure.rect().center().y).collect();
    for (name, figure) in ["sync", "graph"].iter().zip(figures) {
        let mut names = harness.get_all_by_label(name).map(|name| name.rect().center().y);
        assert!(names.any(|y| (y - figure).abs() < 1.0), "{name}");
    }
}

#[test]
fn however_many_messages_there_are_the_timeline_stays_in_sight() {
    let missing = (0..60).map(|at| PathBuf::from(format!("/no/such/file-{at}.json")));
    let paths: Vec<PathBuf> = std::iter::once(planted("sync")).chain(missing).collect();
    let mut harness =
        Harness::builder().with_size([1000.0, 700.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &paths));
    settle(&mut harness);
    assert_eq!(harness.state().messages.texts().len(), 60);
    assert!(harness.get_by_label("timeline").rect().height() > 150.0);
    harness.get_by_label("Overview");
}

#[test]
fn the_list_of_keys_and_the_recorder_fit_a_small_screen() {
    let size = [1280.0, 720.0];
    let mut harness = Harness::builder().with_size(size).build_eframe(|creation| App::new(&creation.egui_ctx, &[]));
    let screen = Rect::from_min_max(Pos2::ZERO, size.into());
    press(&mut harness, Key::F1);
    harness.run_steps(4);
    let shown = texts(&harness);
    for entry in bubblescope_ui::command::COMMANDS {
        let found = shown.iter().any(|(text, rect)| text == entry.title && screen.contains_rect(*rect));
        assert!(found, "{} is in sight: {shown:?}", entry.title);
    }
    press(&mut harness, Key::F1);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::N);
    harness.run_steps(4);
    assert!(screen.contains_rect(harness.get_by_label("Start recording").rect()));
}

/// Every rectangle that was painted, and where it may be seen.
fn rectangles(harness: &Harness<'_, App>) -> Vec<Rect> {
    let shapes = harness.output().shapes.iter();
    shapes
        .filter_map(|shape| {
            if let Shape::Rect(rect) = &shape.shape { Some(rect.rect.intersect(shape.clip_rect)) } else { None }
        })
        .filter(Rect::is_positive)
        .collect()
}

fn opened(name: &str) -> Harness<'static, App> {
    let mut harness = Harness::builder()
        .with_size([1280.0, 720.0])
        .build_eframe(|creation| App::new(&creation.egui_ctx, &[planted(name)]));
    settle(&mut harness);
    harness
}

#[test]
fn no_label_crosses_the_end_of_a_bar() {
    let harness = opened("launch-bound");
    let line = harness.get_all_by_label_contains("launch-bound: ").next().unwrap().rect();
    let bars: Vec<Rect> = rectangles(&harness).into_iter().filter(|rect| (2.0..7.0).contains(&rect.height())).collect();
    let bars: Vec<Rect> = bars.into_iter().filter(|bar| bar.top() >= line.top() && bar.width() > 1.0).collect();
    assert!(bars.len() > 6, "each line has a bar: {bars:?}");
    for (text, rect) in texts(&harness) {
        for bar in &bars {
            assert!(!rect.intersect(*bar).is_positive(), "{text:?} at {rect} lies over the bar at {bar}");
        }
    }
}

#[test]
fn the_line_below_a_link_stands_clear_of_its_letters() {
    let mut harness = opened("sync");
    press(&mut harness, Key::B);
    let link = harness.get_all_by_role(eframe::egui::Role::Link).next().unwrap();
    let at = link.rect().center();
    harness.hover_at(at);
    harness.run_steps(4);
    let mut lines = Vec::new();
    for shape in &harness.output().shapes {
        match &shape.shape {
            Shape::Text(text) if text.visual_bounding_rect().contains(at) => {
                assert_eq!(text.underline, eframe::egui::Stroke::NONE);
                let row = &text.galley.rows[0];
                lines.push(text.pos.y + row.pos.y + row.glyphs[0].pos.y);
            }
            _ => {}
        }
    }
    let [baseline] = lines[..] else { panic!("not one text at {at}: {lines:?}") };
    let line = rectangles(&harness)
        .into_iter()
        .find(|rect| rect.height() < 1.5 && (rect.top() - at.y).abs() < 12.0 && rect.x_range().contains(at.x));
    let line = line.expect("a line below the link");
    assert!((1.4..4.0).contains(&(line.top() - baseline)), "{line} for letters that stand on {baseline}");
}

#[test]
fn a_panel_that_goes_on_below_has_a_bar_to_scroll_by_without_the_pointer() {
    let mut harness = opened("sync");
    harness.state_mut().panels.tab = Tab::Quality;
    harness.run_steps(20);
    let tabs = harness.get_by_label("Quality").rect();
    let handle =
        |rect: &Rect| rect.left() > 1260.0 && rect.top() > tabs.bottom() && (12.0..200.0).contains(&rect.height());
    assert!(rectangles(&harness).iter().any(handle), "{:?}", rectangles(&harness));
}

#[test]
fn the_focus_goes_with_a_key_that_changes_the_tab() {
    let mut harness = opened("sync");
    harness.get_by_label("Quality").focus();
    harness.run_steps(2);
    assert!(harness.get_by_label("Quality").is_focused());
    press(&mut harness, Key::X);
    assert_eq!(harness.state().panels.tab, Tab::Findings);
    assert!(
        !harness.get_by_label("Quality").is_focused()
            && harness.get_by_role_and_label(eframe::egui::Role::Button, "Findings").is_focused()
    );
}

#[test]
fn the_help_explains_stripes() {
    let mut harness = opened("sync");
    press(&mut harness, Key::F1);
    harness.run_steps(3);
    let screen = Rect::from_min_max(Pos2::ZERO, Pos2::new(1280.0, 720.0));
    assert!(screen.contains_rect(harness.get_by_label_contains("a copy or a memset").rect()));
}

/// What cells of a table say stands apart, and no wide hole is between a column and the next.
#[test]
fn columns_are_as_wide_as_what_they_hold() {
    let mut harness = opened("sync");
    harness.state_mut().panels.tab = Tab::Bubbles;
    harness.run_steps(4);
    let rows = harness.get_by_label("bubbles row 0").rect();
    let mut cells: Vec<(String, Rect)> =
        texts(&harness).into_iter().filter(|(_, rect)| rows.y_range().contains(rect.center().y)).collect();
    cells.retain(|(_, rect)| rect.left() >= rows.left() && rect.right() <= rows.right());
    cells.sort_by(|(_, a), (_, b)| a.left().total_cmp(&b.left()));
    assert!(cells.len() >= 8, "{cells:?}");
    for pair in cells.windows(2) {
        let gap = pair[1].1.left() - pair[0].1.right();
        assert!((10.0..230.0).contains(&gap), "{gap} between {} and {}", pair[0].0, pair[1].0);
    }
    assert!(cells.iter().filter(|(text, _)| text.contains(" on stream ")).count() == 2, "{cells:?}");
}

/// Nothing in a cell is cut while there is room beside it, in whatever row.
#[test]
fn no_cell_is_cut_while_there_is_room() {
    let mut harness = Harness::builder()
        .with_size([1900.0, 900.0])
        .build_eframe(|creation| App::new(&creation.egui_ctx, &[planted("allocation")]));
    settle(&mut harness);
    // From all ends of the table of bubbles.
    let orders = (0..8).flat_map(|sort| [true, false].map(|descending| (Tab::Bubbles, sort, descending)));
    for (tab, sort, descending) in orders.chain([(Tab::SyncCalls, 0, true), (Tab::Launches, 0, true)]) {
        let panels = &mut harness.state_mut().panels;
        panels.tab = tab;
        (panels.bubbles.sort, panels.bubbles.descending) = (sort, descending);
        harness.run_steps(3);
        let panel = harness.get_by_label("Filter").rect();
        let cut = texts(&harness).into_iter().filter(|(text, at)| text.ends_with('…') && at.top() > panel.top());
        assert_eq!(cut.collect::<Vec<_>>(), [], "{tab:?} by column {sort}");
    }
}

/// What the panel of the recording's quality says stays within the window.
#[test]
fn what_the_figures_are_worth_is_not_cut_at_the_edge() {
    for width in [1280.0, 1000.0] {
        let builder = Harness::builder().with_size([width, 900.0]);
        let mut harness = builder.build_eframe(|creation| App::new(&creation.egui_ctx, &[planted("graph-internal")]));
        settle(&mut harness);
        harness.state_mut().panels.tab = Tab::Quality;
        harness.run_steps(6);
        let top = harness.get_by_label("The recording").rect().top();
        let ends = harness.get_all_by_role(eframe::egui::Role::Label).map(|label| label.rect());
        let beyond: Vec<Rect> = ends.filter(|rect| rect.top() >= top && rect.right() > width).collect();
        assert_eq!(beyond, [], "{width}");
        harness.get_by_label("node by node");
    }
}

/// The length of what is measured stands within what is in sight of it.
#[test]
fn the_label_of_what_is_measured_stays_in_sight_of_it() {
    use bubblescope::trace::{Interval, Ns};
    let mut harness = opened("sync");
    let view = harness.state().timeline.view;
    let at = |share: f64| Ns(view.start() + (view.span() as f64 * share) as i64);
    for (from, to) in [(-0.8, 0.3), (0.2, 0.5), (0.7, 1.9), (-1.0, 2.0)] {
        let measured = Interval::new(at(from), at(to));
        harness.state_mut().timeline.measured = Some(measured);
        harness.run_steps(3);
        let ruler = harness.get_by_label("ruler").rect();
        let length = bubblescope_ui::format::duration(measured.len().0);
        let labels: Vec<Rect> = texts(&harness)
            .into_iter()
            .filter(|(text, rect)| *text == length && ruler.contains(rect.center()))
            .map(|(_, rect)| rect)
            .collect();
        let [label] = labels[..] else { panic!("{length}: {labels:?}") };
        let x = |share: f64| ruler.left() + ruler.width() * share.clamp(0.0, 1.0) as f32;
        assert!(x(from) <= label.left() && label.right() <= x(to), "{from} to {to}: {label}");
    }
    // Over another part of the timeline it would be read as the length of something there.
    for (from, to) in [(-0.8, -0.3), (1.2, 1.9)] {
        let measured = Interval::new(at(from), at(to));
        harness.state_mut().timeline.measured = Some(measured);
        harness.run_steps(3);
        let ruler = harness.get_by_label("ruler").rect();
        let length = bubblescope_ui::format::duration(measured.len().0);
        let told = texts(&harness).into_iter().any(|(text, at)| text == length && ruler.contains(at.center()));
        assert!(!told, "{from} to {to}");
    }
}

/// Rectangles of this height, whole also where they are clipped.
fn bars(harness: &Harness<'_, App>, height: f32) -> Vec<Rect> {
    fn collect(shape: &Shape, height: f32, bars: &mut Vec<Rect>) {
        match shape {
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| collect(shape, height, bars)),
            Shape::Rect(bar) if (bar.rect.height() - height).abs() < 0.01 => bars.push(bar.rect),
            _ => {}
        }
    }
    let mut bars = Vec::new();
    harness.output().shapes.iter().for_each(|shape| collect(&shape.shape, height, &mut bars));
    bars
}

#[test]
fn bars_of_compared_traces_take_the_room_that_there_is() {
    let widest = [640.0, 900.0, 1380.0, 2560.0].map(|width| {
        let mut harness = crate::files::opened(&["sync", "async", "graph"]);
        harness.set_size([width, 700.0].into());
        harness.state_mut().panels.tab = Tab::Compare;
        crate::files::until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
        harness.run_steps(4);
        // A bar for each cause, beside busy time.
        let bars = bars(&harness, 16.0);
        assert!(bars.len() > 6, "{bars:?}");
        let end = bars.iter().map(Rect::right).fold(0.0, f32::max);
        assert!(end <= width || width < 700.0, "{end} in {width}");
        end - bars.iter().map(Rect::left).fold(f32::INFINITY, f32::min)
    });
    assert!(widest.is_sorted() && widest[0] > 150.0 && widest[3] > 2.0 * widest[1], "{widest:?}");
}

#[test]
fn a_column_in_which_nothing_is_said_leaves_its_room_to_others() {
    let mut with_ranges = crate::window(1, 10);
    let mut without = crate::files::opened(&["sync"]);
    for (harness, shown) in [(&mut with_ranges, true), (&mut without, false)] {
        harness.state_mut().panels.tab = Tab::SyncCalls;
        harness.run_steps(3);
        let heading = |title: &str| harness.query_by_role_and_label(Role::ColumnHeader, title).is_some();
        assert!(heading("API") && heading("Blocked"));
        assert_eq!(heading("Site"), shown);
    }
}
