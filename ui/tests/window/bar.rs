//! The bar, and what is told below it.

use std::path::{Path, PathBuf};

use bubblescope_ui::document::{Item, Pick};
use bubblescope_ui::{App, testing};
use eframe::egui::{Event, Key, Modifiers, Rect, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};

use crate::files::until;
use crate::looks::texts;
use crate::{planted, press, settle, window};

/// Whether nothing is in the making, whose coming would move what stands in the bar.
fn is_still(harness: &Harness<'_, App>) -> bool {
    let app = harness.state();
    !app.is_working() && (app.docs.len() < 2 || app.panels.compare.found().is_some())
}

/// An empty window.
fn empty(size: [f32; 2]) -> Harness<'static, App> {
    Harness::builder().with_size(size).build_eframe(|creation| App::new(&creation.egui_ctx, &[]))
}

fn open(harness: &mut Harness<'_, App>, path: &Path) {
    let ctx = harness.ctx.clone();
    harness.state_mut().open_instead(&ctx, &[path.to_owned()]);
    settle(harness);
}

fn told(harness: &Harness<'_, App>) -> Vec<String> {
    harness.state().messages.texts().into_iter().map(str::to_owned).collect()
}

#[test]
fn the_newest_message_is_always_in_sight_and_all_are_dismissed_at_once() {
    for size in [[640.0, 400.0], [900.0, 600.0], [1380.0, 860.0]] {
        let mut harness = empty(size);
        for at in 0..8 {
            open(&mut harness, &PathBuf::from(format!("/no/such/file-{at}.json")));
            assert_eq!(told(&harness).len(), at + 1);
            let newest = told(&harness)[0].clone();
            assert!(newest.contains(&format!("file-{at}.json")), "{newest}");
            let bar = harness.get_by_label("Files").rect().bottom();
            let seen = texts(&harness).into_iter().find(|(text, _)| *text == newest);
            let (_, seen) = seen.unwrap_or_else(|| panic!("{newest} is not in sight at {size:?}"));
            assert!(seen.top() > bar && seen.height() > 8.0, "{newest} at {seen}");
        }
        // As often as it is said, it stands there once.
        open(&mut harness, Path::new("/no/such/file-3.json"));
        assert_eq!(told(&harness).len(), 8);
        assert!(told(&harness)[0].contains("file-3.json"));
        harness.get_by_label("Dismiss all").click();
        harness.run_steps(2);
        assert!(told(&harness).is_empty() && harness.query_by_label("Dismiss all").is_none());
    }
}

#[test]
fn escape_dismisses_messages_before_it_ends_anything_else_but_what_lies_over_them() {
    let mut harness = window(1, 10);
    press(&mut harness, Key::B);
    let selected = harness.state().timeline.selected;
    assert!(selected.is_some());
    let ctx = harness.ctx.clone();
    harness.state_mut().open(&ctx, Path::new("/no/such/file.json"));
    until(&mut harness, "the message", |harness| !harness.state().messages.is_empty());
    press(&mut harness, Key::F1);
    press(&mut harness, Key::Escape);
    assert!(!harness.state().help && !told(&harness).is_empty());
    press(&mut harness, Key::Escape);
    assert_eq!((told(&harness).len(), harness.state().timeline.selected), (0, selected));
    press(&mut harness, Key::Escape);
    assert_eq!(harness.state().timeline.selected, None);
    // There is nothing else to do in an empty window.
    let mut harness = empty([900.0, 600.0]);
    open(&mut harness, Path::new("/no/such/file.json"));
    press(&mut harness, Key::Escape);
    assert!(told(&harness).is_empty());
}

#[test]
fn what_is_told_goes_when_it_holds_no_longer() {
    let whole = std::fs::read(planted("sync")).unwrap();
    let cut = std::env::temp_dir().join(format!("bubblescope-{}-told.bubcap", std::process::id()));
    std::fs::write(&cut, &whole[..whole.len() * 9 / 10]).unwrap();
    let mut harness = empty([1000.0, 700.0]);
    open(&mut harness, Path::new("/no/such/first.json"));
    open(&mut harness, &cut);
    let is_cut = |told: &[String]| matches!(told, [one] if one.contains("was cut off"));
    assert!(is_cut(&told(&harness)), "the failure before it is gone: {:?}", told(&harness));
    // Of what is opened together one may fail: the others coming is no reason not to say so.
    let ctx = harness.ctx.clone();
    harness.state_mut().open_instead(&ctx, &["/no/such/second.json".into(), planted("host-bound")]);
    settle(&mut harness);
    assert!(matches!(&told(&harness)[..], [one] if one.contains("second.json")), "{:?}", told(&harness));
    open(&mut harness, &planted("sync"));
    assert_eq!(told(&harness), Vec::<String>::new());
    let ctx = harness.ctx.clone();
    harness.state_mut().open(&ctx, &cut);
    settle(&mut harness);
    assert!(is_cut(&told(&harness)));
    until(&mut harness, "the end of the work", is_still);
    harness.get_by_label(&format!("Close {}", cut.file_name().unwrap().display())).click();
    harness.run_steps(3);
    assert_eq!(told(&harness), Vec::<String>::new(), "it is not open any more");
    std::fs::remove_file(&cut).unwrap();
}

/// A window on several traces with names as they are in a folder of runs.
fn several(names: &[String], size: [f32; 2]) -> Harness<'static, App> {
    let mut harness = Harness::builder().with_size(size).build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &[]);
        names.iter().for_each(|name| app.show(&creation.egui_ctx, name, testing::trace(1, 4)));
        app
    });
    settle(&mut harness);
    until(&mut harness, "the end of the work", is_still);
    harness
}

/// Where the buttons are that close these traces.
fn close_buttons(harness: &Harness<'_, App>, names: &[String]) -> Vec<Option<Rect>> {
    names.iter().map(|name| harness.query_by_label(&format!("Close {name}")).map(|node| node.rect())).collect()
}

#[test]
fn every_open_trace_can_be_reached_at_any_width() {
    for (count, long, width, filter) in [
        (3, "", 1380.0, ""),
        (8, "", 1380.0, "length: >1"),
        (8, "-of-a-training-with-a-long-name", 1380.0, ""),
        (8, "-of-a-training-with-a-long-name", 900.0, "length: >1"),
        (5, "-of-a-training-with-a-long-name", 640.0, "length: >1"),
        (2, "-of-a-training-with-a-long-name", 640.0, ""),
    ] {
        let names: Vec<String> = (0..count).map(|at| format!("run-{at}{long}.bubbles.parquet")).collect();
        let case = format!("{count} of {} in {width}, filter {filter:?}", names[0]);
        let mut harness = several(&names, [width, 600.0]);
        harness.state_mut().panels.bubbles.filter = filter.to_owned();
        harness.run_steps(3);
        let end = harness.get_by_label("?").rect().left();
        let in_bar = close_buttons(&harness, &names);
        for button in in_bar.iter().flatten() {
            assert!(button.right() <= end, "{case}: {button} lies beyond {end}");
        }
        let shown = in_bar.iter().flatten().count();
        assert!(in_bar.iter().take(shown).all(Option::is_some), "{case}: the first ones stand in the bar");
        if shown < count {
            harness.get_by_label(&format!("{} more…", count - shown)).click();
            harness.run_steps(4);
            let screen = Rect::from_min_size(Default::default(), Vec2::new(width, 600.0));
            for (name, button) in names.iter().zip(close_buttons(&harness, &names)) {
                assert!(button.is_some_and(|button| screen.contains_rect(button)), "{case}: {name} at {button:?}");
            }
            for name in &names[shown..] {
                let whole =
                    texts(&harness).into_iter().any(|(text, at)| text == *name && at.width() > 4.5 * name.len() as f32);
                assert!(whole, "{case}: {name} is whole in the list");
            }
        }
        // A name leads to its trace, and the button beside it closes that.
        harness.get_by_label(&format!("Close {}", names[count - 1])).click();
        harness.run_steps(3);
        let left: Vec<&str> = harness.state().docs.iter().map(|doc| doc.name.as_str()).collect();
        assert_eq!(left, names[..count - 1].iter().map(String::as_str).collect::<Vec<_>>(), "{case}");
    }
}

#[test]
fn the_key_closes_the_trace_in_use_wherever_the_pointer_is_and_says_which() {
    let names: Vec<String> = ["one", "two", "three", "four"].map(str::to_owned).into();
    let mut harness = several(&names, [1380.0, 860.0]);
    let left = |harness: &Harness<'_, App>| -> Vec<String> {
        harness.state().docs.iter().map(|doc| doc.name.clone()).collect()
    };
    // The pointer over the rows of the first.
    harness.hover_at(harness.get_by_label("timeline").rect().left_top() + Vec2::new(40.0, 50.0));
    harness.run_steps(3);
    assert_eq!(harness.state().timeline.line.map(|line| line.doc), Some(0));
    let says = |harness: &mut Harness<'_, App>, name: &str| {
        press(harness, Key::F1);
        harness.run_steps(2);
        harness.get_by_label(&format!("Close the trace: {name}"));
        press(harness, Key::F1);
    };
    says(&mut harness, "four");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_steps(3);
    assert_eq!(left(&harness), ["one", "two", "three"], "the last that was opened");
    harness.get_by_label("closed four");
    let at = harness.state().docs[1].longest_bubble(|_| true).unwrap();
    harness.state_mut().timeline.selected = Some(Pick { doc: 1, item: Item::Bubble(at) });
    harness.run_steps(2);
    says(&mut harness, "two");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::W);
    harness.run_steps(3);
    assert_eq!(left(&harness), ["one", "three"], "that of the selection");
}

#[test]
fn a_name_in_the_bar_leads_to_its_rows() {
    let names: Vec<String> = (0..6).map(|at| format!("run-{at}")).collect();
    let mut harness = several(&names, [1380.0, 600.0]);
    let timeline = harness.get_by_label("timeline").rect();
    let name = |harness: &Harness<'_, App>, in_bar: bool| {
        let mut found = texts(harness).into_iter().filter(|(text, _)| text == "run-5").map(|(_, rect)| rect);
        found.rfind(|rect| (rect.top() < timeline.top()) == in_bar)
    };
    harness.state_mut().tables = false;
    harness.state_mut().timeline.arrangement.show_all();
    let in_bar = name(&harness, true).expect("it is open");
    harness.hover_at(in_bar.center());
    harness.run_steps(1);
    harness.drag_at(in_bar.center());
    harness.run_steps(1);
    harness.drop_at(in_bar.center());
    harness.run_steps(4);
    assert_eq!(harness.state().timeline.line.map(|line| line.doc), Some(5));
    let row = name(&harness, false).expect("its name is in sight among the rows");
    assert!(row.top() > timeline.top());
}

#[test]
fn what_needs_something_open_is_greyed_while_nothing_is() {
    let harness = empty([1380.0, 860.0]);
    let open = window(1, 4);
    for (label, always) in [("Measured part", false), ("Fit", false), ("Theme", true), ("?", true)] {
        assert_eq!(!harness.get_by_label(label).accesskit_node().is_disabled(), always, "{label}");
        assert!(!open.get_by_label(label).accesskit_node().is_disabled(), "{label}");
    }
}

/// A window that is about to record this command.
#[cfg(unix)]
fn recorder(command: &str, size: [f32; 2]) -> Harness<'static, App> {
    let mut harness = empty(size);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::N);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorder.sh");
    harness.state_mut().recorder.program = Some(program);
    harness.state_mut().recorder.command = command.to_owned();
    harness.run_steps(3);
    harness.get_by_label("A command").click();
    harness.run_steps(2);
    harness
}

#[cfg(unix)]
#[test]
fn no_button_of_the_recorder_takes_the_place_of_another() {
    for size in [[900.0, 600.0], [1380.0, 860.0]] {
        let mut harness = recorder("stubborn", size);
        let buttons = ["Start recording", "Stop", "End it now"];
        let state = |harness: &Harness<'_, App>| {
            let nodes = buttons.map(|label| harness.get_by_label(label));
            (nodes.map(|node| node.rect()), nodes.map(|node| !node.accesskit_node().is_disabled()))
        };
        let (places, enabled) = state(&harness);
        assert_eq!(enabled, [true, false, false]);
        for (at, place) in places.iter().enumerate() {
            assert!(places[..at].iter().all(|other| !other.intersects(*place)), "{places:?}");
            assert!(Rect::from_min_size(Default::default(), size.into()).contains_rect(*place), "{places:?}");
        }
        harness.get_by_label("A bundled workload").click();
        harness.run_steps(3);
        assert_eq!(state(&harness).0, places, "whatever is recorded");
        harness.get_by_label("A command").click();
        harness.run_steps(2);
        harness.get_by_label("Start recording").click();
        until(&mut harness, "the program", |harness| harness.state().recorder.lines().any(|line| line == "ready"));
        assert_eq!(state(&harness), (places, [false, true, false]));
        // It goes on while the window is closed, and the bar says so.
        press(&mut harness, Key::Escape);
        assert!(!harness.state().recorder.open && harness.state().recorder.is_running());
        harness.get_by_label("Recording…").click();
        harness.run_steps(3);
        harness.get_by_label("Stop").click();
        until(&mut harness, "the refusal", |harness| harness.state().recorder.lines().any(|line| line == "not yet"));
        assert_eq!(state(&harness), (places, [false, false, true]));
        harness.get_by_label("End it now").click();
        until(&mut harness, "the end", |harness| !harness.state().recorder.is_running());
        assert_eq!(state(&harness), (places, [true, false, false]));
        assert!(harness.query_by_label("Recording…").is_none());
        harness.get_by_label_contains("Nothing was recorded.");
    }
}

#[cfg(unix)]
#[test]
fn a_run_that_recorded_nothing_says_so_and_why() {
    let mut harness = recorder("nothing", [1000.0, 700.0]);
    harness.get_by_label("Start recording").click();
    let told = "Nothing was recorded. No process started CUDA, or only with an environment that it was not given.";
    until(&mut harness, "the status", |harness| harness.query_by_label(told).is_some());
    let seen = texts(&harness).into_iter().find(|(text, _)| text == told).expect("it is in sight").1;
    let screen = Rect::from_min_size(Default::default(), [1000.0, 700.0].into());
    assert!(screen.contains_rect(seen), "{seen}");
    assert!(harness.query_by_label_contains("into /").is_none(), "there is no such file");
    assert!(harness.state().messages.is_empty(), "it is told in one place");
    harness.get_by_label("A bundled workload").click();
    harness.run_steps(2);
    assert!(harness.query_by_label(told).is_none(), "that was another recording");
    harness.get_by_label("A command").click();
    harness.run_steps(2);
    harness.get_by_label(told);
    // Nobody looks at the window that records.
    let go = std::env::temp_dir().join(format!("bubblescope-{}-go", std::process::id()));
    harness.state_mut().recorder.command = format!("nothing {}", go.display());
    harness.run_steps(2);
    harness.get_by_label("Start recording").click();
    until(&mut harness, "the start", |harness| harness.state().recorder.is_running());
    press(&mut harness, Key::Escape);
    assert!(!harness.state().recorder.open);
    std::fs::write(&go, "").unwrap();
    until(&mut harness, "the message", |harness| !harness.state().messages.is_empty());
    assert_eq!(harness.state().messages.texts(), [told]);
    std::fs::remove_file(&go).unwrap();
}

/// Moves the edge between the timeline and the panel below it.
fn drag_edge(harness: &mut Harness<'_, App>, to: f32) {
    let timeline = harness.get_by_label("timeline").rect();
    // On the panel's side of it: on the other the rows lie over it.
    let from = timeline.center_bottom() + Vec2::new(0.0, 2.0);
    harness.hover_at(from);
    harness.run_steps(1);
    harness.drag_at(from);
    harness.run_steps(1);
    harness.hover_at(from + Vec2::new(0.0, to - from.y));
    harness.run_steps(2);
    harness.drop_at(from + Vec2::new(0.0, to - from.y));
    harness.run_steps(2);
}

#[test]
fn the_panels_leave_the_timeline_room_however_the_window_is_sized() {
    let mut harness = Harness::builder()
        .with_size([1600.0, 1300.0])
        .build_eframe(|creation| App::new(&creation.egui_ctx, &[planted("sync")]));
    settle(&mut harness);
    let height = |harness: &Harness<'_, App>| harness.get_by_label("timeline").rect().height();
    let before = height(&harness);
    drag_edge(&mut harness, 300.0);
    let least = height(&harness);
    assert!(least < before && (60.0..260.0).contains(&least), "{before}, {least}");
    for size in [[900.0, 600.0], [640.0, 400.0], [900.0, 600.0]] {
        harness.set_size(size.into());
        harness.run_steps(4);
        let timeline = harness.get_by_label("timeline").rect();
        assert!(timeline.height() >= 90.0 && timeline.width() > 150.0, "{timeline} in {size:?}");
        let tabs = harness.get_by_label("Overview").rect();
        assert!(tabs.bottom() < size[1] - 40.0, "{tabs} in {size:?}");
    }
}

#[test]
fn the_overview_is_seen_whole_where_the_rows_leave_room_until_the_user_decides() {
    let mut harness = Harness::builder()
        .with_size([1380.0, 860.0])
        .build_eframe(|creation| App::new(&creation.egui_ctx, &[planted("sync")]));
    settle(&mut harness);
    until(&mut harness, "the end of the work", is_still);
    harness.run_steps(3);
    let panel = |harness: &Harness<'_, App>| 860.0 - harness.get_by_label("timeline").rect().bottom();
    let needed = harness.state().panels.overview_height.expect("it is shown");
    assert!(needed > 280.0 && panel(&harness) >= needed - 1.0, "{} for {needed}", panel(&harness));
    drag_edge(&mut harness, 700.0);
    let chosen = panel(&harness);
    assert!((100.0..200.0).contains(&chosen), "{chosen}");
    harness.run_steps(5);
    assert_eq!(panel(&harness), chosen);
}

#[test]
fn names_and_buttons_in_the_bar_stay_where_they_are_whatever_is_told_beside_them() {
    for (count, width) in [(1, 640.0), (1, 900.0), (1, 1380.0), (3, 640.0), (3, 900.0), (3, 1380.0), (8, 2560.0)] {
        let names: Vec<String> = (0..count).map(|at| format!("run-{at}-of-a-training.bubbles.parquet")).collect();
        let mut harness = Harness::builder().with_size([width, 600.0]).build_eframe(|creation| {
            let mut app = App::new(&creation.egui_ctx, &[]);
            names.iter().for_each(|name| app.show(&creation.egui_ctx, name, testing::trace(1, 40)));
            app
        });
        settle(&mut harness);
        let bar = harness.get_by_label("Files").rect();
        let places = |harness: &Harness<'_, App>| {
            let letters =
                texts(harness).into_iter().filter(|(text, at)| text.starts_with("run-") && at.top() < bar.bottom());
            let letters: Vec<(String, Rect)> = letters.collect();
            (close_buttons(harness, &names), letters)
        };
        let before = places(&harness);
        assert!(
            count > 1 && width < 700.0 || before.0[0].is_some() && before.1.len() == before.0.iter().flatten().count()
        );
        let beyond = before.0.iter().flatten().map(Rect::right).fold(0.0, f32::max);
        let check = |harness: &Harness<'_, App>, case: &str| {
            assert_eq!(places(harness), before, "{case} beside {count} in {width}");
            let others = ["Stop", "Cancel", "All bubbles", "aligned at iteration 0", "saved it"];
            for other in others.iter().filter_map(|label| harness.query_by_label(label)) {
                let (at, end) = (other.rect(), harness.get_by_label("?").rect().left());
                assert!(at.left() >= beyond && at.right() <= end, "{case} beside {count} in {width}: {at}");
            }
        };
        // The replays end, and the comparison comes.
        let mut frames = 0;
        while !is_still(&harness) {
            std::thread::sleep(std::time::Duration::from_millis(1));
            harness.run_steps(1);
            check(&harness, &format!("frame {frames}"));
            frames += 1;
        }
        harness.run_steps(2);
        check(&harness, "the end of the work");
        let told = harness.query_by_label("aligned at iteration 0").is_some();
        assert!(count == 1 || width < 1300.0 || told, "{count} in {width}");
        let stopped = crate::files::endless(&mut harness);
        until(&mut harness, "progress", |harness| harness.query_by_label("Cancel").is_some());
        check(&harness, "a file that is read");
        harness.state_mut().panels.bubbles.filter = "length: >1".to_owned();
        harness.run_steps(3);
        check(&harness, "a filter and a file");
        harness.get_by_label("Cancel").click();
        until(&mut harness, "the end", |_| stopped.load(std::sync::atomic::Ordering::Relaxed));
        harness.run_steps(2);
        check(&harness, "a filter");
        assert!(width < 900.0 || harness.query_by_label("All bubbles").is_some(), "{count} in {width}");
    }
}

/// What is seen in each of the first frames in which something is, from a press of a key on.
fn first_frames(harness: &mut Harness<'_, App>, key: (Modifiers, Key), seen: &str) -> Vec<Vec<(String, Rect)>> {
    let (modifiers, key) = key;
    // By itself: a whole press of a key takes several frames.
    harness.event(Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers });
    let frames = (0..8).map(|_| {
        harness.run_steps(1);
        texts(harness)
    });
    frames.filter(|frame| frame.iter().any(|(text, _)| text == seen)).collect()
}

#[test]
fn a_window_stands_where_it_stays_from_its_first_frame_on() {
    for size in [[640.0, 400.0], [900.0, 600.0], [1380.0, 860.0], [2560.0, 1440.0]] {
        for (key, seen) in [
            ((Modifiers::NONE, Key::F1), "Next bubble"),
            ((Modifiers::COMMAND, Key::N), "Start recording"),
            ((Modifiers::COMMAND, Key::G), "Save"),
        ] {
            let mut harness = window(1, 4);
            harness.set_size(size.into());
            until(&mut harness, "the end of the work", is_still);
            let shown = first_frames(&mut harness, key, seen);
            assert!(shown.len() > 4, "{seen} in {size:?}: {}", shown.len());
            for (at, frame) in shown.iter().enumerate() {
                let last = &shown[shown.len() - 1];
                let moved: Vec<_> = frame.iter().zip(last).filter(|(then, now)| then != now).collect();
                assert!(moved.is_empty() && frame.len() == last.len(), "{seen} in {size:?}, frame {at}: {moved:?}");
            }
            let screen = Rect::from_min_size(Default::default(), size.into());
            let listed = |text: &str| shown[0].iter().any(|(shown, at)| shown == text && screen.contains_rect(*at));
            assert!(key.1 != Key::F1 || listed("Open…") && listed("Ctrl+O"), "{size:?}");
        }
    }
}
