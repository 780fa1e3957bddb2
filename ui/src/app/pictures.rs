//! Pictures of the timeline, with a caption above them: as pixels and as shapes.
//!
//! They are painted beside the window, as high as everything needs that stands on the timeline: the window shows only what
//! it has room for.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use eframe::egui::epaint::{ClippedShape, ImageDelta};
use eframe::egui::{self, Rect, Vec2};
use eframe::egui_wgpu::{self, RendererOptions, ScreenDescriptor};
use eframe::wgpu;

use super::files::in_background;
use super::{About, App};
use crate::caption::Caption;
use crate::svg;
use crate::theme::Palette;

/// Pixels that a picture is high at most: what shows pictures has limits, and memory too.
const MOST_PIXELS: f32 = 16_384.0;
/// Pixels of a picture that are painted at once at most.
const TILE: u32 = 4_096;
/// Frames of a picture at most: names that must be laid out come a few at a time.
const MOST_FRAMES: usize = 100;
/// How long the graphics card may take for a part of a picture.
const PATIENCE: Duration = Duration::from_secs(20);

/// What paints pictures into memory.
#[derive(Clone, Debug)]
pub struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Gpu {
    /// The one that paints the window.
    pub fn of(state: &egui_wgpu::RenderState) -> Self {
        Self { device: state.device.clone(), queue: state.queue.clone() }
    }
}

/// All that stands on the timeline, painted below a caption.
struct Sheet {
    ctx: egui::Context,
    size: Vec2,
    scale: f32,
    background: egui::Color32,
    shapes: Vec<ClippedShape>,
    /// What textures are made of, in the order in which that came.
    textures: Vec<(egui::TextureId, ImageDelta)>,
}

impl Sheet {
    /// Paints it as wide as `width`; `as_shapes` without a texture.
    fn paint(like: &egui::Context, app: &App, width: f32, as_shapes: bool, texture_side: usize) -> Self {
        let (theme, scale) = (like.theme(), like.pixels_per_point());
        let ctx = egui::Context::default();
        Palette::apply(&ctx);
        ctx.set_theme(theme);
        let palette = Palette::of(&ctx.style_of(theme).visuals);
        let mut timeline = app.timeline.posed(as_shapes);
        let mut caption = app.caption();
        let most = (MOST_PIXELS / scale).floor();
        let body = timeline.height(&app.docs);
        let (mut textures, mut shapes, mut size) = (Vec::new(), Vec::new(), Vec2::new(width, most));
        for _ in 0..MOST_FRAMES {
            let mut input = egui::RawInput { max_texture_side: Some(texture_side), ..egui::RawInput::default() };
            input.screen_rect = Some(Rect::from_min_size(egui::Pos2::ZERO, size));
            input.viewports.entry(egui::ViewportId::ROOT).or_default().native_pixels_per_point = Some(scale);
            let mut wanted = size;
            let mut output = ctx.run_ui(input, |ui| {
                let mut laid = caption.layout(ui.ctx(), width, &palette);
                if laid.size.y + body > most && caption.cut.is_none() {
                    caption.cut = Some(format!(
                        "Only the upper {} of {} pixels: a picture is no higher. Fold or hide rows for the rest.",
                        crate::format::count(MOST_PIXELS as u64),
                        crate::format::count(((laid.size.y + body) * scale) as u64)
                    ));
                    laid = caption.layout(ui.ctx(), width, &palette);
                }
                wanted.y = (laid.size.y + body).ceil().min(most);
                let painter = ui.painter().clone();
                let area = Rect::from_min_max(egui::pos2(0.0, laid.size.y), size.to_pos2());
                ui.scope_builder(egui::UiBuilder::new().max_rect(area), |ui| timeline.show(ui, &app.docs));
                painter.extend(laid.at(egui::Pos2::ZERO));
            });
            // The order matters only within one texture.
            let deltas = output.textures_delta.set.drain();
            textures.extend(deltas.flat_map(|(id, deltas)| deltas.into_iter().map(move |delta| (id, delta))));
            output.textures_delta.clear();
            shapes = output.shapes;
            if size == wanted && !ctx.has_requested_repaint() {
                break;
            }
            size = wanted;
        }
        Self { ctx, size, scale, background: palette.canvas, shapes, textures }
    }

    /// As a drawing.
    fn drawing(&self) -> String {
        let area = Rect::from_min_size(egui::Pos2::ZERO, self.size);
        let shapes = self.shapes.iter().map(|clipped| (clipped.clip_rect, &clipped.shape));
        svg::drawing(area, self.background, shapes)
    }

    /// As a PNG file.
    fn png(self, gpu: &Gpu) -> Result<Vec<u8>, String> {
        let side = |points: f32| (points * self.scale).round().max(1.0) as u32;
        let (width, height) = (side(self.size.x), side(self.size.y));
        if width > gpu.device.limits().max_texture_dimension_2d {
            return Err(format!("cannot save the picture: it is {width} pixels wide"));
        }
        let format = wgpu::TextureFormat::Rgba8Unorm;
        let mut renderer = egui_wgpu::Renderer::new(&gpu.device, format, RendererOptions::PREDICTABLE);
        for (id, delta) in &self.textures {
            renderer.update_texture(&gpu.device, &gpu.queue, *id, delta);
        }
        let mut pixels = Vec::with_capacity(4 * width as usize * height as usize);
        for top in (0..height).step_by(TILE as usize) {
            let up = Vec2::new(0.0, -(top as f32) / self.scale);
            let shapes = self.shapes.iter().map(|clipped| {
                let mut shape = clipped.shape.clone();
                shape.translate(up);
                ClippedShape { clip_rect: clipped.clip_rect.translate(up), shape, ..*clipped }
            });
            let meshes = self.ctx.tessellate(shapes.collect(), self.scale);
            let size = [width, TILE.min(height - top)];
            let screen = ScreenDescriptor { size_in_pixels: size, pixels_per_point: self.scale };
            pixels.extend(gpu.painted(&mut renderer, format, &meshes, &screen)?);
        }
        encoded(&pixels, width, height).map_err(|error| format!("cannot make a PNG file: {error}"))
    }
}

impl Gpu {
    /// A part of a picture: four bytes for each pixel, row by row.
    fn painted(
        &self,
        renderer: &mut egui_wgpu::Renderer,
        format: wgpu::TextureFormat,
        meshes: &[egui::ClippedPrimitive],
        screen: &ScreenDescriptor,
    ) -> Result<Vec<u8>, String> {
        let [width, height] = screen.size_in_pixels;
        let size = wgpu::Extent3d { width, height, depth_or_array_layers: 1 };
        let texture = self.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("picture"),
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        // Rows of a buffer begin at such multiples.
        let row = (4 * width).next_multiple_of(wgpu::COPY_BYTES_PER_ROW_ALIGNMENT);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("picture"),
            size: u64::from(row) * u64::from(height),
            usage: wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut commands = renderer.update_buffers(&self.device, &self.queue, &mut encoder, meshes, screen);
        {
            let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
            let pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &view,
                    resolve_target: None,
                    ops: wgpu::Operations {
                        load: wgpu::LoadOp::Clear(wgpu::Color::BLACK),
                        store: wgpu::StoreOp::Store,
                    },
                    depth_slice: None,
                })],
                ..Default::default()
            });
            renderer.render(&mut pass.forget_lifetime(), meshes, screen);
        }
        let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(row), rows_per_image: None };
        let into = wgpu::TexelCopyBufferInfo { buffer: &buffer, layout };
        encoder.copy_texture_to_buffer(texture.as_image_copy(), into, size);
        commands.push(encoder.finish());
        self.queue.submit(commands);

        let (send, mapped) = mpsc::channel();
        buffer.slice(..).map_async(wgpu::MapMode::Read, move |result| drop(send.send(result)));
        let failed = |error: &dyn std::fmt::Display| format!("cannot save the picture: {error}");
        let wait = wgpu::PollType::Wait { submission_index: None, timeout: Some(PATIENCE) };
        self.device.poll(wait).map_err(|error| failed(&error))?;
        let mapped = mapped.recv_timeout(PATIENCE).map_err(|error| failed(&error))?;
        mapped.map_err(|error| failed(&error))?;
        let bytes = buffer.slice(..).get_mapped_range().map_err(|error| failed(&error))?;
        Ok(bytes.chunks(row as usize).flat_map(|row| &row[..4 * width as usize]).copied().collect())
    }
}

impl App {
    /// What the timeline shows, in words.
    fn caption(&self) -> Caption {
        let place = if self.docs.len() > 1 { self.panels.compare.place() } else { None };
        Caption::of(&self.docs, self.timeline.view, place.as_deref())
    }

    /// Saves a picture in pixels, as wide as the timeline.
    pub(super) fn save_png(&mut self, ctx: &egui::Context, width: f32, path: PathBuf) {
        let Some(gpu) = self.gpu.clone() else {
            return self.messages.push(About::Saving, "cannot save the picture: nothing can paint it".to_owned());
        };
        let side = gpu.device.limits().max_texture_dimension_2d as usize;
        let sheet = Sheet::paint(ctx, self, width, false, side);
        let write = self.writer(ctx, path);
        // Painting and encoding take longer than a frame.
        in_background(move || write(sheet.png(&gpu)));
    }

    /// Saves a drawing, as wide as the timeline.
    pub(super) fn save_svg(&self, ctx: &egui::Context, width: f32, path: PathBuf) {
        let side = ctx.input(|input| input.max_texture_side);
        let sheet = Sheet::paint(ctx, self, width, true, side);
        let write = self.writer(ctx, path);
        in_background(move || write(Ok(sheet.drawing().into_bytes())));
    }
}

/// Pixels of four bytes as a PNG file.
fn encoded(pixels: &[u8], width: u32, height: u32) -> io::Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}
