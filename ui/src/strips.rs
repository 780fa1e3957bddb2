//! The lanes on screen as rows of one small texture: a lane costs one rectangle and four bytes a column, where drawing
//! each column as a rectangle would cost a hundred.

use std::sync::Arc;

use eframe::egui::{
    Color32, ColorImage, Context, Mesh, Pos2, Rangef, Rect, Shape, TextureHandle, TextureOptions, pos2,
};

use crate::paint::Columns;
use crate::tint::Tints;

/// A texture grows in steps of this many columns and lanes, so that it is rarely made anew.
const STEP: [usize; 2] = [512, 64];

/// The lanes of a frame. Kept from frame to frame for its texture.
#[derive(Default)]
pub struct Strips {
    texture: Option<TextureHandle>,
    /// Columns of a lane.
    width: usize,
    /// Columns of the texture that are used: all of a lane's, or as many as a texture can have.
    used: usize,
    /// What the texture shows. It is drawn into again once the last frame's user has let go of it.
    image: Arc<ColorImage>,
    places: Vec<Rect>,
}

impl std::fmt::Debug for Strips {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strips").field("width", &self.width).field("places", &self.places.len()).finish()
    }
}

impl Strips {
    /// Starts a frame with lanes of `width` columns, on a machine whose textures have sides of up to `side`.
    pub fn begin(&mut self, width: usize, side: usize) {
        self.width = width;
        self.used = width.clamp(1, side.max(1));
        if Arc::get_mut(&mut self.image).is_none() {
            self.image = Arc::default();
        }
        self.pixels().clear();
        self.places.clear();
    }

    fn pixels(&mut self) -> &mut Vec<Color32> {
        &mut Arc::make_mut(&mut self.image).pixels
    }

    /// Adds a lane whose first column is at `left`, each `pixel` wide.
    pub fn add(&mut self, columns: &Columns, tints: &Tints, left: f32, pixel: f32, y: Rangef) {
        let (width, used) = (self.width, self.used);
        let rows = width.div_ceil(used);
        let pixels = self.pixels();
        let start = pixels.len();
        columns.color(tints, pixels);
        pixels.resize(start + rows * used, Color32::TRANSPARENT);
        for row in 0..rows {
            let from = left + (row * self.used) as f32 * pixel;
            self.places.push(Rect::from_x_y_ranges(from..=from + self.used as f32 * pixel, y));
        }
    }

    /// The shape of all lanes that were added.
    pub fn finish(&mut self, ctx: &Context, side: usize) -> Shape {
        // More lanes than a texture has rows would be smaller than pixels.
        let rows = self.places.len().min(side);
        if rows == 0 {
            return Shape::Noop;
        }
        let needed = [self.used, rows];
        let texture = match &mut self.texture {
            Some(texture) if (0..2).all(|axis| texture.size()[axis] >= needed[axis]) => texture,
            texture => {
                let size = [0, 1].map(|axis: usize| needed[axis].next_multiple_of(STEP[axis]).min(side));
                let empty = ColorImage::filled(size, Color32::TRANSPARENT);
                texture.insert(ctx.load_texture("lanes", empty, TextureOptions::NEAREST))
            }
        };
        let [width, height] = texture.size().map(|side| side as f32);
        let image = Arc::make_mut(&mut self.image);
        image.pixels.truncate(rows * self.used);
        image.size = needed;
        texture.set_partial([0, 0], Arc::clone(&self.image), TextureOptions::NEAREST);
        let mut mesh = Mesh::with_texture(texture.id());
        mesh.reserve_vertices(rows * 4);
        mesh.reserve_triangles(rows * 2);
        for (row, place) in self.places.iter().enumerate().take(rows) {
            let v = (row as f32 + 0.5) / height;
            let uv = Rect::from_min_max(Pos2::new(0.0, v), pos2(self.used as f32 / width, v));
            mesh.add_rect_with_uv(*place, uv, Color32::WHITE);
        }
        Shape::mesh(mesh)
    }
}

#[cfg(test)]
mod tests {
    use bubblescope::trace::{Interval, Ns};
    use eframe::egui::RawInput;

    use super::*;
    use crate::lod::{Piece, pack};
    use crate::theme::Palette;
    use crate::tint::Tint;
    use crate::view::Viewport;

    #[test]
    fn wide_lanes_and_many_of_them_fit_into_a_texture() {
        let piece = |at: usize| {
            let start = Ns(at as i64 * 100);
            Piece { interval: Interval::new(start, start + Ns(60)), item: at as u32, tint: Tint::REPLAY }
        };
        let lane = &pack(50, piece)[0];
        let tints = Tints::of(&Palette::DARK);
        let mut columns = Columns::default();
        let ctx = Context::default();
        for (width, side, lanes, rows) in [(300, 256, 3, 6), (100, 2048, 70, 70), (700, 256, 1, 3), (10, 64, 90, 64)] {
            let mut strips = Strips::default();
            let mut output = ctx.run_ui(RawInput::default(), |ui| {
                columns.fill(lane, Viewport::new(0, 5_000), width);
                strips.begin(width, side);
                for lane in 0..lanes {
                    let top = lane as f32 * 10.0;
                    strips.add(&columns, &tints, 5.0, 0.5, Rangef::new(top, top + 9.0));
                }
                let Shape::Mesh(mesh) = strips.finish(ui, side) else { panic!("no mesh") };
                assert_eq!(mesh.vertices.len(), rows * 4);
                assert!(mesh.vertices.iter().all(|vertex| (0.0..=1.0).contains(&vertex.uv.x)));
                let size = strips.texture.as_ref().unwrap().size();
                assert!(size[0] <= side && size[1] <= side, "{size:?}");
                if rows == lanes * width.div_ceil(side) {
                    let shown = mesh.vertices.iter().map(|vertex| vertex.pos.x).fold(0.0, f32::max);
                    assert!(shown >= 5.0 + width as f32 * 0.5, "no column is left out");
                }
            });
            output.textures_delta.clear();
        }
    }
}
