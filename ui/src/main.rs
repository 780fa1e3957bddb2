//! `bubblescope [TRACE…]`: opens traces in a window.

use std::path::PathBuf;
use std::process::ExitCode;

use bubblescope_ui::App;
use clap::Parser;
use eframe::egui;

/// See when and why a GPU stood idle.
#[derive(Debug, Parser)]
#[command(name = "bubblescope", version)]
struct Arguments {
    /// Traces to open: .bubbles.parquet, .bubcap, PyTorch or Kineto JSON, Nsight Systems .sqlite.
    traces: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Without it a save that is interrupted may leave its unfinished file, which is no reason to open no window.
    let _ = bubblescope::signals::take();
    bubblescope_ui::clipboard::listen();
    let viewport = egui::ViewportBuilder::default()
        .with_title("Bubblescope")
        .with_app_id("bubblescope")
        .with_inner_size([1500.0, 900.0])
        .with_min_inner_size([640.0, 400.0])
        .with_drag_and_drop(true);
    let options = eframe::NativeOptions { viewport, ..Default::default() };
    let run = eframe::run_native(
        "Bubblescope",
        options,
        Box::new(move |creation| {
            let mut app = App::new(&creation.egui_ctx, &[]);
            if let Some(storage) = creation.storage {
                app.restore(storage);
            }
            app.dialogs.native = true;
            app.gpu = creation.wgpu_render_state.as_ref().map(bubblescope_ui::app::Gpu::of);
            for path in &arguments.traces {
                app.open(&creation.egui_ctx, path);
            }
            Ok(Box::new(app))
        }),
    );
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bubblescope: no window could be opened: {error}. Without a display, use `bubble-report`.");
            ExitCode::from(2)
        }
    }
}
