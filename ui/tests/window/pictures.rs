//! Pictures that are saved say by themselves what they show.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use bubblescope::analysis::Cause;
use bubblescope_ui::App;
use bubblescope_ui::app::Gpu;
use bubblescope_ui::theme::Palette;
use eframe::egui::{self, Key, Theme};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

use crate::files::{opened, recording, until};
use crate::{press, save, settle};

/// The causes of the bubbles that the timeline shows.
fn shown_causes(app: &App) -> BTreeSet<Cause> {
    let of = |doc: &bubblescope_ui::document::Document| {
        let view = doc.unshifted(app.timeline.view.interval());
        let shown = |at: &bubblescope::analysis::Bubble| at.interval.start < view.end && at.interval.end > view.start;
        doc.bubbles().filter(|(_, bubble)| shown(bubble)).map(|(_, bubble)| bubble.root.cause).collect::<Vec<_>>()
    };
    app.docs.iter().flat_map(of).collect()
}

/// The pixels of a PNG file, row by row.
fn pixels(file: &Path) -> Vec<Vec<[u8; 4]>> {
    let start = Instant::now();
    loop {
        // It takes the place of what was there as a whole, but may not be there yet.
        if let Ok(bytes) = std::fs::read(file) {
            let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("it is a PNG file");
            let mut read = vec![0; reader.output_buffer_size().expect("it fits into memory")];
            let info = reader.next_frame(&mut read).expect("it holds a picture");
            let pixels = read.as_chunks::<4>().0;
            return pixels.chunks(info.width as usize).map(<[[u8; 4]]>::to_vec).collect();
        }
        assert!(start.elapsed() < Duration::from_secs(120), "no picture comes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A window so high on some recordings, which can paint pictures.
fn painting(variants: &[&str], height: f32) -> Harness<'static, App> {
    let paths: Vec<_> = variants.iter().map(|variant| recording(variant)).collect();
    let mut harness = Harness::builder().with_size([1280.0, height]).wgpu().build_eframe(|creation| {
        let mut app = App::new(&creation.egui_ctx, &paths);
        app.gpu = creation.wgpu_render_state.as_ref().map(Gpu::of);
        app
    });
    settle(&mut harness);
    harness
}

/// Saves a drawing, and gives it.
fn drawing(harness: &mut Harness<'_, App>, name: &str) -> String {
    let file = std::env::temp_dir().join(format!("bubblescope-{}-{name}.svg", std::process::id()));
    save(harness, Key::G, &file);
    let drawing = std::fs::read_to_string(&file).expect("it is saved");
    std::fs::remove_file(&file).expect("it is there");
    drawing
}

/// However little of it the window shows, a picture holds all that is not folded or hidden, of every trace that it names.
#[test]
fn a_picture_holds_every_row_of_all_its_traces() {
    let mut harness = painting(&["sync", "async", "graph"], 520.0);
    until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
    let app = harness.state();
    let window = harness.get_by_label("timeline").rect().height();
    let wanted = app.timeline.height(&app.docs);
    assert!(wanted > 2.0 * window, "{wanted} points do not fit into {window}");
    let titles = |app: &App| -> Vec<String> {
        let sections = app.docs.iter().flat_map(|doc| &doc.scene.sections);
        sections.flat_map(|section| &section.rows).map(|row| row.title.clone()).collect()
    };
    let titles = titles(app);
    let names: Vec<String> = app.docs.iter().map(|doc| doc.name.clone()).collect();
    let whole = drawing(&mut harness, "rows");
    let count = |drawing: &str, text: &str| drawing.matches(&format!(">{text}</text>")).count();
    for title in &titles {
        let alike = titles.iter().filter(|other| *other == title).count();
        assert_eq!(count(&whole, title), alike, "{title}");
    }
    for name in &names {
        assert_eq!(count(&whole, name), 1, "{name}");
    }
    let file = std::env::temp_dir().join(format!("bubblescope-{}-rows.png", std::process::id()));
    save(&mut harness, Key::P, &file);
    let read = pixels(&file);
    std::fs::remove_file(&file).expect("it is there");
    assert!(read.len() as f32 > wanted, "{} rows of pixels hold {wanted}", read.len());
    // What is folded is not in it.
    let line = bubblescope_ui::arrange::FoldKey::Trace(1);
    harness.state_mut().timeline.arrangement.toggle(line);
    harness.run_steps(2);
    let folded = drawing(&mut harness, "folded");
    assert_eq!(count(&folded, &names[1]), 1);
    assert_eq!(count(&folded, "Bubbles"), 2);
}

/// A picture has an end, and says so.
#[test]
fn a_picture_too_high_says_what_is_left_out() {
    let mut harness = crate::window(900, 2);
    let drawing = drawing(&mut harness, "high");
    assert!(drawing.contains("height=\"16384\""), "{}", &drawing[..200]);
    assert!(drawing.contains("Only the upper 16,384 of "), "{}", &drawing[..2_000]);
}

#[test]
fn saved_pictures_name_their_traces_the_part_that_is_shown_and_its_causes() {
    for (theme, views) in [(Theme::Dark, 2), (Theme::Light, 1)] {
        let mut harness = painting(&["sync", "graph"], 720.0);
        harness.ctx.set_theme(theme);
        until(&mut harness, "the comparison", |harness| harness.state().panels.compare.found().is_some());
        let whole = shown_causes(harness.state());
        press(&mut harness, Key::B);
        harness.run_steps(20);
        for _ in 0..views {
            let causes = shown_causes(harness.state());
            check(&mut harness, theme, &causes);
            press(&mut harness, Key::Num0);
            harness.run_steps(20);
            assert!(whole.is_superset(&causes));
        }
        assert_eq!(shown_causes(harness.state()), whole);
    }
}

/// After saving, the bar tells the file and still tells how idle the GPU was; a picture says how its rows were filtered.
#[test]
fn what_was_saved_stands_beside_the_idle_figure() {
    let mut harness = opened(&["sync"]);
    harness.state_mut().timeline.arrangement.filter = "stream".to_owned();
    harness.run_steps(3);
    let file = std::env::temp_dir().join(format!("bubblescope-{}-beside.svg", std::process::id()));
    save(&mut harness, Key::G, &file);
    until(&mut harness, "the sentence", |harness| harness.query_by_label_contains("saved ").is_some());
    assert!(harness.query_by_label_contains("GPU 0: ").is_some());
    assert!(std::fs::read_to_string(&file).expect("it is saved").contains(">Rows with “stream”</text>"));
    std::fs::remove_file(&file).expect("it is there");
}

fn check(harness: &mut Harness<'_, App>, theme: Theme, causes: &BTreeSet<Cause>) {
    let file = |ending: &str| {
        std::env::temp_dir().join(format!("bubblescope-{}-{theme:?}-picture.{ending}", std::process::id()))
    };
    save(harness, Key::G, &file("svg"));
    let drawing = std::fs::read_to_string(file("svg")).expect("it is saved");
    let says = |text: &str| drawing.contains(&format!(">{text}</text>"));
    assert!(!says("Filter rows"), "a picture has no field to write into");
    assert!(says("sync.bubcap (NVIDIA H200)  ·  graph.bubcap (NVIDIA H200)"), "{drawing}");
    let shown = bubblescope_ui::format::duration(harness.state().timeline.view.span());
    assert!(drawing.contains(&format!(", {shown}")), "{shown}");
    for &cause in Cause::ALL {
        assert_eq!(says(&cause.to_string()), causes.contains(&cause), "{cause}");
    }
    std::fs::remove_file(file("svg")).expect("it is there");

    // The button to save lies over the timeline, and so does the pointer now.
    save(harness, Key::P, &file("png"));
    let read = pixels(&file("png"));
    std::fs::remove_file(file("png")).expect("it is there");
    // Below the caption stands the timeline as the window shows it, and what it has no room for.
    harness.event(egui::Event::PointerGone);
    harness.run_steps(3);
    let start = Instant::now();
    // Where a processor with much else to do paints it, that takes longer than one try may.
    let window = loop {
        match harness.render() {
            Ok(painted) => break painted,
            Err(why) => assert!(start.elapsed() < Duration::from_secs(120), "it is never painted: {why}"),
        }
        harness.run_steps(1);
    };
    let canvas = harness.get_by_label("timeline").rect();
    let top = harness.get_by_label("minimap").rect().top().round() as usize;
    // Without the bar that scrolls.
    let (left, right) = (canvas.left().ceil() as usize, canvas.right() as usize - 20);
    let height = harness.state().timeline.height(&harness.state().docs) as usize;
    let rows = height.min(canvas.bottom() as usize - top);
    let shown = window.rows().skip(top).map(|row| row.skip(left).take(right - left).map(|pixel| pixel.0));
    let below = read[read.len() - height..].iter().take(rows).flat_map(|row| &row[left..right]);
    // Tests paint the pointer itself, of no more than so many pixels; no text stands beside it in a picture.
    let differing = shown.take(rows).flatten().zip(below).filter(|(one, other)| one != *other).count();
    assert!(differing < 500, "{differing} pixels are not as the window shows them");
    let caption: BTreeSet<[u8; 4]> = read[..60].iter().flatten().copied().collect();
    let palette = if theme == Theme::Dark { Palette::DARK } else { Palette::LIGHT };
    for &cause in causes {
        assert!(caption.contains(&palette.cause(cause).to_array()), "{cause} has its colour in the caption");
    }
    assert!(caption.contains(&palette.panel.to_array()) && caption.contains(&palette.text.to_array()));
}
