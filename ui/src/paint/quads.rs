//! Rectangles and stripes as triangles.

use eframe::egui::{Color32, Mesh, Pos2, Rangef, Rect};

use super::columns::Run;
use crate::theme::blend;
use crate::tint::{Tint, Tints};

/// To which side stripes fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the upper right to the lower left.
    Left,
    /// From the upper left to the lower right.
    Right,
}

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
            // Copies and bubbles have greens that not everybody can tell apart: their stripes fall to different sides.
            let (spacing, side) = if tint.is_cause() { (12.0, Side::Right) } else { (8.0, Side::Left) };
            self.add_stripes(rect, spacing, side, blend(tints.get(tint), Color32::BLACK, 0.25));
        }
    }

    /// Adds stripes that fall to a side, within a rectangle.
    pub fn add_stripes(&mut self, rect: Rect, spacing: f32, side: Side, color: Color32) {
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
                    let x = match side {
                        Side::Left => point.x,
                        Side::Right => rect.left() + (rect.right() - point.x),
                    };
                    self.mesh.colored_vertex(Pos2::new(x, point.y), color);
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
    use bubblescope::analysis::Cause;
    use bubblescope::trace::{Detail, MemoryKind, OpKind};
    use eframe::egui::epaint::Vertex;

    use super::*;
    use crate::theme::Palette;

    #[test]
    fn stripes_stay_inside() {
        let rect = Rect::from_min_max(Pos2::new(10.0, 20.0), Pos2::new(37.0, 33.0));
        for side in [Side::Left, Side::Right] {
            let mut quads = Quads::default();
            quads.add_stripes(rect, 6.0, side, Color32::WHITE);
            assert!(quads.len() > 3);
            let mesh = quads.into_mesh();
            assert!(mesh.vertices.iter().all(|vertex| rect.expand(0.01).contains(vertex.pos)));
            assert!(mesh.is_valid());
        }
    }

    #[test]
    fn stripes_of_copies_and_bubbles_fall_to_different_sides() {
        let tints = Tints::of(&Palette::DARK);
        let rect = Rect::from_min_max(Pos2::new(0.0, 0.0), Pos2::new(60.0, 12.0));
        // Of a stripe that touches neither end, the first vertex is above, the third below.
        let falls_right = |tint: Tint| {
            let mut quads = Quads::default();
            quads.add_pattern(rect, tint, &tints);
            let mesh = quads.into_mesh();
            let whole = |stripe: &&[Vertex]| stripe[0].pos.y == rect.top() && stripe[2].pos.y == rect.bottom();
            let stripe = mesh.vertices.as_chunks::<4>().0.iter().map(<[Vertex; 4]>::as_slice).find(whole);
            stripe.map(|stripe| stripe[2].pos.x > stripe[0].pos.x)
        };
        let copy = Detail::Copy { from: MemoryKind::Pinned, to: MemoryKind::Device, asynchronous: true };
        assert_eq!(falls_right(Tint::op(OpKind::Copy, 0, copy)), Some(false));
        assert_eq!(falls_right(Tint::op(OpKind::Memset, 0, Detail::None)), Some(false));
        assert_eq!(falls_right(Tint::op(OpKind::Kernel, 0, Detail::None)), None);
        let striped: Vec<Tint> =
            Cause::ALL.iter().map(|&cause| Tint::cause(cause)).filter(|tint| tint.striped()).collect();
        assert!(striped.len() > 2);
        for tint in striped {
            assert_eq!(falls_right(tint), Some(true), "{tint:?}");
        }
    }
}
