//! Pictures of the timeline, with a caption above them: as pixels and as shapes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, TryRecvError, bounded};
use eframe::egui::{self, ColorImage, Pos2, Rect};

use super::App;
use super::files::in_background;
use crate::caption::{Caption, Laid};
use crate::svg;
use crate::theme::Palette;

/// A picture in pixels that is being made. It takes two frames or more: one shows the timeline, another its caption over
/// it, so that nothing of the timeline is hidden by it.
#[derive(Debug)]
pub(super) struct Picture {
    timeline: Rect,
    caption: Caption,
    path: PathBuf,
    taking: Taking,
}

/// Which frame is being taken; it comes when the window has painted it.
#[derive(Debug)]
enum Taking {
    Timeline(Receiver<Arc<ColorImage>>),
    Caption { timeline: Arc<ColorImage>, area: Rect, scale: f32, image: Receiver<Arc<ColorImage>> },
}

/// Takes a picture of the window, of this frame or the next.
fn take(ctx: &egui::Context) -> Receiver<Arc<ColorImage>> {
    let (send, image) = bounded(1);
    let wake = ctx.clone();
    ctx.request_screenshot(move |taken| {
        // Nobody waits for it any more when the window was closed.
        drop(send.send(taken));
        wake.request_repaint();
    });
    image
}

impl App {
    /// What the timeline shows, in words.
    fn caption(&self) -> Caption {
        let place = if self.docs.len() > 1 { self.panels.compare.place() } else { None };
        Caption::of(&self.docs, self.timeline.view, place.as_deref())
    }

    /// Begins with a picture in pixels.
    pub(super) fn save_png(&mut self, ctx: &egui::Context, timeline: Rect, path: PathBuf) {
        let taking = Taking::Timeline(take(ctx));
        self.picture = Some(Picture { timeline, caption: self.caption(), path, taking });
    }

    /// Goes on with the picture that is being made, and shows its caption over everything when it is its turn.
    pub(super) fn picture_ui(&mut self, ui: &egui::Ui) {
        let ctx = ui.ctx();
        let Some(mut picture) = self.picture.take() else { return };
        let laid = picture.caption.layout(ctx, picture.timeline.width(), &Palette::of(ui.visuals()));
        picture.taking = match picture.taking {
            Taking::Timeline(image) => match image.try_recv() {
                Ok(timeline) => {
                    let (screen, corner) = (ctx.content_rect(), picture.timeline.min);
                    let top = corner.y.min(screen.bottom() - laid.size.y).max(screen.top());
                    let area = Rect::from_min_size(Pos2::new(corner.x, top), laid.size);
                    Taking::Caption { timeline, area, scale: ctx.pixels_per_point(), image: take(ctx) }
                }
                Err(TryRecvError::Empty) => Taking::Timeline(image),
                Err(TryRecvError::Disconnected) => return self.messages.push(NO_PICTURE.to_owned()),
            },
            Taking::Caption { timeline, area, scale, image } => match image.try_recv() {
                Ok(caption) => {
                    let (write, below) = (self.writer(ctx, picture.path), picture.timeline);
                    // Encoding takes longer than a frame.
                    in_background(move || write(png(&[(&caption, area), (&timeline, below)], scale)));
                    return;
                }
                Err(TryRecvError::Empty) => Taking::Caption { timeline, area, scale, image },
                Err(TryRecvError::Disconnected) => return self.messages.push(NO_PICTURE.to_owned()),
            },
        };
        if let Taking::Caption { area, .. } = picture.taking {
            let layer = egui::LayerId::new(egui::Order::Debug, egui::Id::unique("caption"));
            ctx.layer_painter(layer).extend(laid.at(area.min));
        }
        // Where nothing else happens the frame would not be painted.
        ctx.request_repaint();
        self.picture = Some(picture);
    }

    /// What this frame painted as a drawing.
    pub(super) fn drawing(&self, ui: &egui::Ui, timeline: Rect) -> String {
        let ctx = ui.ctx();
        let palette = Palette::of(ui.visuals());
        let caption: Laid = self.caption().layout(ctx, timeline.width(), &palette);
        let above = Rect::from_min_size(timeline.min - egui::vec2(0.0, caption.size.y), caption.size);
        let caption: Vec<egui::Shape> = caption.at(above.min).collect();
        let layer = ui.layer_id();
        ctx.graphics(|layers| {
            let painted = layers.get(layer).into_iter().flat_map(egui::layers::PaintList::all_entries);
            let painted = painted.map(|clipped| (clipped.clip_rect.intersect(timeline), &clipped.shape));
            let caption = caption.iter().map(|shape| (above, shape));
            svg::drawing(above.union(timeline), palette.canvas, caption.chain(painted))
        })
    }
}

/// Why a picture was not saved.
const NO_PICTURE: &str = "cannot save the picture: the window gave none";

/// Parts of pictures of the window, `scale` pixels per point, one below the other as a PNG file. What is narrower than
/// the widest is filled up on its right with its last colour.
fn png(parts: &[(&ColorImage, Rect)], scale: f32) -> Result<Vec<u8>, String> {
    let parts: Vec<Part<'_>> = parts.iter().map(|&(image, part)| Part::of(image, part, scale)).collect();
    let width = parts.iter().map(|part| part.width).max().unwrap_or(0);
    let height = parts.iter().map(|part| part.height).sum();
    if parts.iter().any(|part| part.width == 0 || part.height == 0) {
        return Err("there is no timeline to save".to_owned());
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(4 * width * height);
    for row in parts.iter().flat_map(Part::rows) {
        let last = row.last().copied().unwrap_or_default();
        let filled = row.iter().copied().chain(std::iter::repeat_n(last, width - row.len()));
        bytes.extend(filled.flat_map(|pixel| pixel.to_array()));
    }
    encoded(&bytes, width, height).map_err(|error| format!("cannot make a PNG file: {error}"))
}

/// A part of a picture, in pixels.
struct Part<'i> {
    image: &'i ColorImage,
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl<'i> Part<'i> {
    fn of(image: &'i ColorImage, part: Rect, scale: f32) -> Self {
        let [width, height] = image.size;
        let pixel = |at: f32, most: usize| ((at * scale).round().max(0.0) as usize).min(most);
        let (left, right) = (pixel(part.left(), width), pixel(part.right(), width));
        let (top, bottom) = (pixel(part.top(), height), pixel(part.bottom(), height));
        Self { image, left, top, width: right.saturating_sub(left), height: bottom.saturating_sub(top) }
    }

    fn rows(&self) -> impl Iterator<Item = &'i [egui::Color32]> {
        let (image, left, width) = (self.image, self.left, self.width);
        (self.top..self.top + self.height).map(move |row| {
            let from = row * image.size[0] + left;
            &image.pixels[from..from + width]
        })
    }
}

/// Pixels of four bytes as a PNG file.
fn encoded(pixels: &[u8], width: usize, height: usize) -> io::Result<Vec<u8>> {
    let size = |pixels: usize| u32::try_from(pixels).map_err(io::Error::other);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size(width)?, size(height)?);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use eframe::egui::Color32;

    use super::*;

    #[test]
    fn a_picture_holds_just_its_parts_one_below_the_other() {
        let pixels = (0..40 * 30).map(|at| Color32::from_rgb((at % 40) as u8, (at / 40) as u8, 7)).collect();
        let image = ColorImage::new([40, 30], pixels);
        // Twice as many pixels as points.
        let above = Rect::from_min_max(Pos2::new(6.0, 0.0), Pos2::new(15.0, 1.0));
        let part = Rect::from_min_max(Pos2::new(5.0, 2.0), Pos2::new(15.0, 100.0));
        let file = png(&[(&image, above), (&image, part)], 2.0).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut read = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut read).unwrap();
        assert_eq!((info.width, info.height), (20, 28));
        let row = |row: usize| &read[row * 80..(row + 1) * 80];
        assert_eq!((&row(1)[..4], &row(1)[76..]), (&[12, 1, 7, 255][..], &[29, 1, 7, 255][..]));
        assert_eq!(row(2)[..4], [10, 4, 7, 255]);
        assert_eq!(row(27)[76..], [29, 29, 7, 255]);
        assert!(png(&[(&image, above), (&image, Rect::NOTHING)], 1.0).is_err());
    }
}
