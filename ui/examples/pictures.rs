//! Makes the pictures of the README from the bundled recordings, without a display: `pictures FOLDER`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use bubblescope::analysis::Cause;
use bubblescope_ui::App;
use bubblescope_ui::panels::Tab;
use eframe::egui::{self, Role, Theme};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

/// A window that has opened, analysed and replayed recordings.
fn window(variants: &[&str], theme: Theme, height: f32) -> Harness<'static, App> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/scalar-readback/kernels-4");
    let paths: Vec<PathBuf> = variants.iter().map(|variant| folder.join(format!("{variant}.bubcap"))).collect();
    let builder = Harness::builder().with_size(egui::vec2(1400.0, height)).with_theme(theme);
    let mut harness = builder.build_eframe(|creation| App::new(&creation.egui_ctx, &paths));
    wait(&mut harness, |app| !app.is_working());
    harness
}

/// Runs frames until something holds, and a few more.
fn wait(harness: &mut Harness<'_, App>, until: impl Fn(&App) -> bool) {
    while !until(harness.state()) {
        std::thread::sleep(Duration::from_millis(5));
        harness.run_steps(1);
    }
    harness.run_steps(6);
}

fn main() -> anyhow::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).context("the argument is the folder for the pictures")?);
    for (theme, ending) in [(Theme::Dark, "dark"), (Theme::Light, "light")] {
        let save = |harness: &mut Harness<'_, App>, name: &str| -> anyhow::Result<()> {
            let picture = harness.render().map_err(|error| anyhow!("cannot render: {error}"))?;
            Ok(picture.save(folder.join(format!("{name}-{ending}.png")))?)
        };
        let mut harness = window(&["sync"], theme, 760.0);
        save(&mut harness, "overview")?;

        let app = harness.state_mut();
        let blocking = app.docs[0].bubbles().filter(|(_, bubble)| bubble.root.cause == Cause::BlockingCopy);
        let longest = blocking.max_by_key(|(_, bubble)| bubble.interval.len()).map(|(at, _)| at);
        app.show_bubble(0, longest.context("no bubble of a blocking copy")?);
        app.panels.tab = Tab::Findings;
        harness.run_steps(6);
        save(&mut harness, "bubble")?;

        let mut harness = window(&["sync", "async", "graph"], theme, 960.0);
        harness.state_mut().panels.tab = Tab::Compare;
        harness.state_mut().details = false;
        wait(&mut harness, |app| app.panels.compare.found().is_some());
        harness.get_by_role_and_label(Role::RadioButton, "iteration").click();
        harness.run_steps(3);
        harness.event(egui::Event::PointerGone);
        harness.run_steps(3);
        save(&mut harness, "compare")?;
    }
    Ok(())
}
