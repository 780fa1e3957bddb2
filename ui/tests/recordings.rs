//! The window on recordings made on an H200: the same work with a synchronisation per step, without, and as a graph.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bubblescope::analysis::{FindingId, analyze};
use bubblescope_ui::App;
use bubblescope_ui::document::Item;
use bubblescope_ui::load::options;
use bubblescope_ui::panels::Tab;
use eframe::egui::{self, Key};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

fn recording(variant: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/scalar-readback/kernels-4");
    folder.join(variant).with_extension("bubcap")
}

/// A window that has opened and analysed these recordings.
fn window(variants: &[&str]) -> Harness<'static, App> {
    let paths: Vec<PathBuf> = variants.iter().map(|variant| recording(variant)).collect();
    let mut harness =
        Harness::builder().with_size([1300.0, 900.0]).build_eframe(|creation| App::new(&creation.egui_ctx, &paths));
    let start = Instant::now();
    while harness.state().is_loading() {
        assert!(start.elapsed() < Duration::from_secs(120), "loading never ends");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(3);
    assert_eq!(harness.state().messages.texts(), Vec::<&str>::new());
    assert_eq!(harness.state().docs.len(), variants.len());
    harness
}

#[test]
fn the_longest_bubble_is_found_by_key_and_by_table_with_its_cause() {
    let mut harness = window(&["sync"]);
    let trace = bubblescope::open::open(&recording("sync")).unwrap();
    let analysis = analyze(&trace, &options(&trace));
    let bubbles = || analysis.devices.iter().flat_map(|device| &device.bubbles);
    let longest = bubbles().map(|bubble| bubble.interval.len()).max().unwrap();

    let measured = trace.meta.workload.as_ref().and_then(|run| run.measured).unwrap();
    let view = harness.state().timeline.view;
    assert!(view.start() <= measured.start.0 && measured.end.0 <= view.end(), "the measured part is shown first");
    assert!(view.span() < 2 * measured.len().0);
    harness.key_press(Key::B);
    harness.run_steps(3);
    let by_key = harness.state().timeline.selected.unwrap();
    harness.state_mut().timeline.selected = None;
    harness.state_mut().panels.tab = Tab::Bubbles;
    harness.run_steps(2);
    harness.get_by_label("bubbles row 0").click();
    harness.run_steps(3);
    let by_table = harness.state().timeline.selected.unwrap();
    for pick in [by_key, by_table] {
        let Item::Bubble(at) = pick.item else { panic!("{pick:?} is no bubble") };
        assert_eq!(harness.state().docs[0].bubble(at).unwrap().1.interval.len(), longest);
    }
    let causes: Vec<&str> =
        bubbles().filter(|bubble| bubble.interval.len() == longest).map(|bubble| bubble.root.cause.as_str()).collect();
    let shown = |cause: &&str| harness.query_all_by_label_contains(cause).count() > 0;
    assert!(causes.iter().any(shown), "the details name one of {causes:?}");
}

#[test]
fn walking_visits_the_bubbles_in_order_of_time() {
    let mut harness = window(&["sync"]);
    let mut last = None;
    for _ in 0..20 {
        harness.key_press(Key::CloseBracket);
        harness.run_steps(2);
        let app = harness.state();
        let pick = app.timeline.selected.unwrap();
        let times = app.times(pick).unwrap();
        assert!(last.is_none_or(|last| times.start > last));
        assert!(app.timeline.view.start() <= times.start.0 && times.end.0 <= app.timeline.view.end());
        last = Some(times.start);
    }
}

#[test]
fn three_variants_are_compared() {
    let mut harness = window(&["sync", "async", "graph"]);
    harness.state_mut().panels.tab = Tab::Compare;
    let start = Instant::now();
    while harness.state().panels.compare.found().is_none() {
        assert!(start.elapsed() < Duration::from_secs(120), "the comparison never comes");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(2);
    let found = harness.state().panels.compare.found().unwrap();
    let compare = found.compare.as_ref().unwrap();
    assert_eq!(compare.variants.len(), 3);
    let names: Vec<&str> = harness.state().docs.iter().map(|doc| doc.name.as_str()).collect();
    assert_eq!(names, ["sync.bubcap", "async.bubcap", "graph.bubcap"], "the order of the command line");
    let bubbles: Vec<i64> =
        compare.variants.iter().map(|variant| variant.recorded.as_ref().unwrap().bubble_ns.0).collect();
    assert!(bubbles[1] < bubbles[0], "without the synchronisations the device is less idle: {bubbles:?}");
    for ns in bubbles {
        let text = bubblescope_ui::format::duration(ns);
        assert!(harness.query_all_by_label(&text).count() > 0, "{text} is shown");
    }
    assert!(harness.query_all_by_label_contains("graphs").count() > 0, "replays have a row");

    let whole = harness.state().timeline.view.span();
    harness.get_by_role_and_label(egui::Role::RadioButton, "iteration").click();
    harness.run_steps(3);
    let app = harness.state();
    let overlay = app.panels.compare.overlay().unwrap();
    let first = overlay.moments[0].0;
    assert!(app.timeline.view.span() < whole / 2, "a few iterations are shown, not all");
    for (doc, moment) in app.docs.iter().zip(&overlay.moments) {
        assert_eq!(moment.0 + doc.offset, first, "{} is laid over the first", doc.name);
        let run = doc.trace.meta.workload.as_ref().unwrap();
        let measured = run.measured.unwrap();
        let late = moment.0 - measured.start.0;
        assert!(
            (0..measured.len().0 / run.iterations as i64).contains(&late),
            "{}: the first after warm-up, not {late} ns later",
            doc.name
        );
    }
    assert!(app.timeline.view.start() < first && first < app.timeline.view.end());
}

#[test]
fn the_read_back_is_found_with_its_remedy_and_a_click_goes_there() {
    let mut harness = window(&["sync"]);
    harness.key_press(Key::X);
    let start = Instant::now();
    while harness.state().is_working() {
        assert!(start.elapsed() < Duration::from_secs(120), "the replay never ends");
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(3);
    let full = harness.state().docs[0].full().unwrap().clone();
    let finding = &full.findings.found[0];
    assert_eq!(finding.id, FindingId::ScalarReadback);
    harness.get_by_label("findings row 0");
    let gain = bubblescope_ui::format::duration(finding.recoverable.0);
    for text in [finding.title.as_str(), finding.remedy, &gain] {
        assert!(harness.query_all_by_label_contains(text).count() > 0, "{text} is shown");
    }
    let moment = finding.evidence.iter().find_map(|evidence| evidence.at.first()).unwrap();
    let link = format!("cuMemcpyDtoH at {}", bubblescope_ui::format::moment(moment.0));
    harness.get_all_by_label_contains(&link).next().unwrap().scroll_to_me();
    harness.run_steps(3);
    harness.get_all_by_label_contains(&link).next().unwrap().click();
    harness.run_steps(3);
    let app = harness.state();
    let pick = app.timeline.selected.unwrap();
    assert!(matches!(pick.item, Item::Call(_)), "{pick:?}");
    let times = app.times(pick).unwrap();
    assert_eq!(times.start, *moment);
    assert!(app.timeline.view.start() <= times.start.0 && times.end.0 <= app.timeline.view.end());
}
