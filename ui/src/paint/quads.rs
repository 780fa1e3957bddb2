//! Rectangles and stripes as triangles.

use eframe::egui::{Color32, Mesh, Pos2, Rangef, Rect};

use super::columns::Run;
use crate::theme::blend;
use crate::tint::{Tint, Tints};

/// Many rectangles as one mesh: a fiftieth of the cost of as many rectangle shapes.
#[derive(Debug, Default)]
pub struct Quads {
    mesh: Mesh,
}

impl Quads {
    /// Adds a rectangle.
    pub fn add(&mut self, rect: Rect, color: Color32) {
        self.mesh.add_colored_rect(rect, color);
    }

    /// Adds runs of columns, the first one at `left`, each `pixel` wide, that stand on the bottom of `y`.
    pub fn add_runs(&mut self, runs: impl Iterator<Item = Run>, left: f32, pixel: f32, y: Rangef) {
        for run in runs {
            // Something so small that it would have no height is still shown.
            let height = (y.span() * run.height / pixel).round().max(2.0) * pixel;
            let x = left + run.from as f32 * pixel..=left + run.to as f32 * pixel;
            self.add(Rect::from_x_y_ranges(x, (y.max - height).max(y.min)..=y.max), run.color);
        }
    }

    /// Adds what a tint has over its colour, within a rectangle: stripes, or nothing.
    pub fn add_pattern(&mut self, rect: Rect, tint: Tint, tints: &Tints) {
        if tint.striped() {
            self.add_stripes(rect, 8.0, blend(tints.get(tint), Color32::BLACK, 0.25));
        }
    }

    /// Adds stripes that fall to the left, within a rectangle.
    pub fn add_stripes(&mut self, rect: Rect, spacing: f32, color: Color32) {
        let (height, half) = (rect.height(), spacing / 4.0);
        let mut x = rect.left() - (rect.left() + rect.top()).rem_euclid(spacing);
        while x < rect.right() + height {
            // Each corner is pushed into the rectangle along its stripe.
            let corner = |x: f32| {
                let (mut top, mut bottom) = (Pos2::new(x, rect.top()), Pos2::new(x - height, rect.bottom()));
                if top.x > rect.right() {
                    top = Pos2::new(rect.right(), rect.top() + (top.x - rect.right()));
                }
                if bottom.x < rect.left() {
                    bottom = Pos2::new(rect.left(), rect.bottom() - (rect.left() - bottom.x));
                }
                (top, bottom)
            };
            let ((a, b), (c, d)) = (corner(x - half), corner(x + half));
            if a.y <= b.y && c.y <= d.y {
                let index = self.mesh.vertices.len() as u32;
                for point in [a, c, b, d] {
                    self.mesh.colored_vertex(point, color);
                }
                self.mesh.add_triangle(index, index + 1, index + 2);
                self.mesh.add_triangle(index + 2, index + 1, index + 3);
            }
            x += spacing;
        }
    }

    /// Number of rectangles, stripes included.
    pub fn len(&self) -> usize {
        self.mesh.vertices.len() / 4
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.mesh.is_empty()
    }

    /// The mesh.
    pub fn into_mesh(self) -> Mesh {
        self.mesh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_stay_inside() {
        let rect = Rect::from_min_max(Pos2::new(10.0, 20.0), Pos2::new(37.0, 33.0));
        let mut quads = Quads::default();
        quads.add_stripes(rect, 6.0, Color32::WHITE);
        assert!(quads.len() > 3);
        let mesh = quads.into_mesh();
        assert!(mesh.vertices.iter().all(|vertex| rect.expand(0.01).contains(vertex.pos)));
        assert!(mesh.is_valid());
    }
}
