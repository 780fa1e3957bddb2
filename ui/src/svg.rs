//! What was painted, as a vector drawing (SVG 1.1).
//!
//! The drawing is made from the very shapes that a frame painted, so that it shows what the window shows.

use std::fmt::Write as _;

use eframe::egui::epaint::{
    CircleShape, ColorMode, CubicBezierShape, EllipseShape, Mesh, PathShape, PathStroke, QuadraticBezierShape,
    RectShape, StrokeKind, TextShape,
};
use eframe::egui::text::ByteIndex;
use eframe::egui::{Color32, FontFamily, Pos2, Rect, Shape, Stroke};

/// A drawing of the part `area` of what was painted, each shape within a rectangle of its own, in the order of painting.
/// Shapes with a picture on them and shapes that only a graphics card understands are left out; the timeline has none.
pub fn drawing<'a>(area: Rect, background: Color32, shapes: impl Iterator<Item = (Rect, &'a Shape)>) -> String {
    let mut svg = Svg { area, out: String::new(), clip: None, clips: 0 };
    let (width, height) = (area.width(), area.height());
    svg.line(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\">",
        number(width),
        number(height),
        number(width),
        number(height)
    ));
    svg.rect(area, background, 0.0, "");
    for (within, shape) in shapes {
        let clip = within.intersect(area);
        if clip.is_positive() && clip.intersects(shape.visual_bounding_rect()) {
            svg.clip_to(clip);
            svg.shape(shape);
        }
    }
    if svg.clip.is_some() {
        svg.line("</g>");
    }
    svg.line("</svg>");
    svg.out
}

/// A text that ends so near to the right edge of where it may be painted was set there.
const AT_THE_EDGE: f32 = 12.0;

struct Svg {
    area: Rect,
    out: String,
    clip: Option<Rect>,
    clips: usize,
}

/// At most two digits after the point, and none that say nothing.
fn number(value: f32) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `name="colour"` and its opacity; nothing painted for a colour that cannot be seen.
fn paint(name: &str, color: Color32) -> String {
    let [red, green, blue, alpha] = color.to_srgba_unmultiplied();
    match alpha {
        0 => format!(" {name}=\"none\""),
        255 => format!(" {name}=\"#{red:02x}{green:02x}{blue:02x}\""),
        _ => format!(
            " {name}=\"#{red:02x}{green:02x}{blue:02x}\" {name}-opacity=\"{}\"",
            number(f32::from(alpha) / 255.0)
        ),
    }
}

fn stroke_of(stroke: &Stroke) -> String {
    if stroke.is_empty() {
        return String::new();
    }
    format!("{} stroke-width=\"{}\"", paint("stroke", stroke.color), number(stroke.width))
}

fn path_stroke(stroke: &PathStroke) -> String {
    let color = match &stroke.color {
        ColorMode::Solid(color) => *color,
        ColorMode::UV(_) => return String::new(),
    };
    stroke_of(&Stroke::new(stroke.width, color))
}

/// Text as XML wants it; what XML cannot hold is shown as a replacement.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' | '\r' => out.push(' '),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

impl Svg {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// A position in the drawing.
    fn at(&self, point: Pos2) -> (String, String) {
        (number(point.x - self.area.left()), number(point.y - self.area.top()))
    }

    fn points(&self, points: &[Pos2]) -> String {
        let mut text = String::new();
        for &point in points {
            let (x, y) = self.at(point);
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{x},{y}", if text.is_empty() { "" } else { " " });
        }
        text
    }

    fn clip_to(&mut self, clip: Rect) {
        if self.clip == Some(clip) {
            return;
        }
        if self.clip.is_some() {
            self.line("</g>");
        }
        self.clip = Some(clip);
        self.clips += 1;
        let (id, (x, y)) = (self.clips, self.at(clip.min));
        let (width, height) = (number(clip.width()), number(clip.height()));
        self.line(&format!(
            "<clipPath id=\"c{id}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
        ));
        self.line(&format!("<g clip-path=\"url(#c{id})\">"));
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Noop | Shape::Callback(_) | Shape::Band(_) => {}
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| self.shape(shape)),
            Shape::Circle(circle) => self.circle(circle),
            Shape::Ellipse(ellipse) => self.ellipse(ellipse),
            Shape::LineSegment { points, stroke } => self.segment(*points, stroke),
            Shape::Path(path) => self.path(path),
            Shape::Rect(rect) => self.rect_shape(rect),
            Shape::Text(text) => self.text(text),
            Shape::Mesh(mesh) => self.mesh(mesh),
            Shape::QuadraticBezier(curve) => self.quadratic(curve),
            Shape::CubicBezier(curve) => self.cubic(curve),
        }
    }

    fn rect(&mut self, rect: Rect, fill: Color32, radius: f32, more: &str) {
        let (x, y) = self.at(rect.min);
        let (width, height) = (number(rect.width()), number(rect.height()));
        let radius = if radius > 0.0 { format!(" rx=\"{}\"", number(radius)) } else { String::new() };
        let fill = paint("fill", fill);
        self.line(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{radius}{fill}{more}/>"));
    }

    fn rect_shape(&mut self, shape: &RectShape) {
        if shape.brush.is_some() || (shape.fill.a() == 0 && shape.stroke.is_empty()) {
            return;
        }
        // SVG centres strokes on the edge.
        let half = shape.stroke.width / 2.0;
        let rect = match shape.stroke_kind {
            _ if shape.stroke.is_empty() => shape.rect,
            StrokeKind::Inside => shape.rect.shrink(half),
            StrokeKind::Middle => shape.rect,
            StrokeKind::Outside => shape.rect.expand(half),
        };
        self.rect(rect, shape.fill, f32::from(shape.corner_radius.nw), &stroke_of(&shape.stroke));
    }

    fn segment(&mut self, points: [Pos2; 2], stroke: &Stroke) {
        let ((x1, y1), (x2, y2)) = (self.at(points[0]), self.at(points[1]));
        let stroke = stroke_of(stroke);
        self.line(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"{stroke}/>"));
    }

    fn circle(&mut self, circle: &CircleShape) {
        let ((x, y), radius) = (self.at(circle.center), number(circle.radius));
        let (fill, stroke) = (paint("fill", circle.fill), stroke_of(&circle.stroke));
        self.line(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{fill}{stroke}/>"));
    }

    fn ellipse(&mut self, ellipse: &EllipseShape) {
        let ((x, y), (rx, ry)) = (self.at(ellipse.center), (number(ellipse.radius.x), number(ellipse.radius.y)));
        let (fill, stroke) = (paint("fill", ellipse.fill), stroke_of(&ellipse.stroke));
        self.line(&format!("<ellipse cx=\"{x}\" cy=\"{y}\" rx=\"{rx}\" ry=\"{ry}\"{fill}{stroke}/>"));
    }

    fn path(&mut self, path: &PathShape) {
        let element = if path.closed { "polygon" } else { "polyline" };
        let points = self.points(&path.points);
        let (fill, stroke) = (paint("fill", path.fill), path_stroke(&path.stroke));
        self.line(&format!("<{element} points=\"{points}\"{fill}{stroke}/>"));
    }

    fn quadratic(&mut self, curve: &QuadraticBezierShape) {
        let [from, by, to] = curve.points.map(|point| self.points(&[point]));
        let (fill, stroke) = (paint("fill", curve.fill), path_stroke(&curve.stroke));
        self.line(&format!("<path d=\"M{from} Q{by} {to}\"{fill}{stroke}/>"));
    }

    fn cubic(&mut self, curve: &CubicBezierShape) {
        let [from, first, second, to] = curve.points.map(|point| self.points(&[point]));
        let (fill, stroke) = (paint("fill", curve.fill), path_stroke(&curve.stroke));
        self.line(&format!("<path d=\"M{from} C{first} {second} {to}\"{fill}{stroke}/>"));
    }

    /// A mesh without a picture: two triangles that share an edge as one quadrilateral, the rest one by one.
    fn mesh(&mut self, mesh: &Mesh) {
        let mut triangles = mesh.indices.as_chunks::<3>().0.iter().peekable();
        while let Some(&[a, b, c]) = triangles.next() {
            let joined = triangles.next_if(|next| next[0] == c && next[1] == b).map(|next| next[2]);
            let corners = match joined {
                Some(d) => vec![a, b, d, c],
                None => vec![a, b, c],
            };
            let vertices: Option<Vec<_>> = corners.iter().map(|&at| mesh.vertices.get(at as usize)).collect();
            let Some(vertices) = vertices else { continue };
            let color = vertices[0].color;
            let points: Vec<Pos2> = vertices.iter().map(|vertex| vertex.pos).collect();
            let bounds = Rect::from_points(&points);
            if !bounds.intersects(self.clip.unwrap_or(self.area)) {
                continue;
            }
            let corner = |point: &Pos2| {
                (point.x == bounds.left() || point.x == bounds.right())
                    && (point.y == bounds.top() || point.y == bounds.bottom())
            };
            // Without it there would be seams between rectangles that touch.
            let sharp = " shape-rendering=\"crispEdges\"";
            if points.len() == 4 && points.iter().all(corner) {
                self.rect(bounds, color, 0.0, sharp);
            } else {
                let (points, fill) = (self.points(&points), paint("fill", color));
                self.line(&format!("<polygon points=\"{points}\"{fill}/>"));
            }
        }
    }

    /// Each row of a text, and of a row each part with a look of its own, fitted to the width it has on screen.
    fn text(&mut self, text: &TextShape) {
        let galley = &text.galley;
        let mut letters = galley.job.text.char_indices().filter(|(_, letter)| *letter != '\n');
        for row in &galley.rows {
            let mut run: Option<Run> = None;
            for glyph in &row.row.glyphs {
                let byte = letters.next().map_or(0, |(byte, _)| byte);
                let sections = galley.job.sections.iter();
                let section =
                    sections.clone().position(|section| section.byte_range.contains(&ByteIndex(byte))).unwrap_or(0);
                if run.as_ref().is_some_and(|run| run.section != section) {
                    self.run(text, run.take());
                }
                let left = text.pos + row.pos.to_vec2() + glyph.pos.to_vec2();
                let run = run.get_or_insert_with(|| Run { section, start: left, end: left.x, text: String::new() });
                run.text.push(glyph.chr);
                run.end = left.x + glyph.advance_width;
            }
            self.run(text, run);
        }
    }

    fn run(&mut self, text: &TextShape, run: Option<Run>) {
        let Some(run) = run.filter(|run| !run.text.trim().is_empty()) else { return };
        let Some(section) = text.galley.job.sections.get(run.section) else { return };
        let format = &section.format;
        let own = if format.color == Color32::PLACEHOLDER { text.fallback_color } else { format.color };
        let color = text.override_text_color.unwrap_or(own).gamma_multiply(text.opacity_factor);
        let family = match format.font_id.family {
            FontFamily::Monospace => "Hack, DejaVu Sans Mono, monospace",
            // Those after the first are no wider, so that a viewer without it that does not fit texts to their length
            // lets none run out of its place.
            _ => "Ubuntu Light, Ubuntu, Liberation Sans, Arial, Helvetica, DejaVu Sans Condensed, sans-serif",
        };
        // What stands at the right edge of its place stays there, however wide a viewer's letters are.
        let room = self.clip.unwrap_or(self.area).right() - run.end;
        let (anchor, end) = match text.angle == 0.0 && (0.0..AT_THE_EDGE).contains(&room) {
            true => (" text-anchor=\"end\"", Pos2::new(run.end, run.start.y)),
            false => ("", run.start),
        };
        let (x, y) = self.at(end);
        let turn = if text.angle == 0.0 {
            String::new()
        } else {
            let (x, y) = self.at(text.pos);
            format!(" transform=\"rotate({} {x} {y})\"", number(text.angle.to_degrees()))
        };
        let (size, width) = (number(format.font_id.size), number(run.end - run.start.x));
        let (fill, words) = (paint("fill", color), escaped(&run.text));
        self.line(&format!(
            "<text x=\"{x}\" y=\"{y}\"{anchor} font-family=\"{family}\" font-size=\"{size}\" textLength=\"{width}\" \
             lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\"{fill}{turn}>{words}</text>"
        ));
    }
}

/// Letters of a row with one look.
struct Run {
    section: usize,
    start: Pos2,
    end: f32,
    text: String,
}

#[cfg(test)]
mod tests {
    use eframe::egui::{self, FontId, Vec2};

    use super::*;

    /// Everything that `add` paints, as a drawing of 200 by 100 points.
    fn drawn(mut add: impl FnMut(&egui::Painter)) -> String {
        let ctx = egui::Context::default();
        let area = Rect::from_min_size(Pos2::ZERO, Vec2::new(200.0, 100.0));
        let input = || egui::RawInput { screen_rect: Some(area), ..egui::RawInput::default() };
        let mut output = ctx.run_ui(input(), |ui| add(ui.painter()));
        output.textures_delta.clear();
        let shapes = output.shapes.iter().map(|clipped| (clipped.clip_rect, &clipped.shape));
        drawing(area, Color32::BLACK, shapes)
    }

    #[test]
    fn shapes_become_elements() {
        let svg = drawn(|painter| {
            let rect = Rect::from_min_max(Pos2::new(10.0, 20.0), Pos2::new(30.0, 44.5));
            painter.rect_filled(rect, 3.0, Color32::RED);
            painter.line_segment([Pos2::new(1.0, 2.0), Pos2::new(3.0, 4.0)], Stroke::new(1.5, Color32::WHITE));
            let mut mesh = Mesh::default();
            mesh.add_colored_rect(rect, Color32::from_rgba_unmultiplied(0, 0, 255, 51));
            painter.add(mesh);
        });
        for part in [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"100\" viewBox=\"0 0 200 100\">",
            "<rect x=\"10\" y=\"20\" width=\"20\" height=\"24.5\" rx=\"3\" fill=\"#ff0000\"/>",
            "<line x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4\" stroke=\"#ffffff\" stroke-width=\"1.5\"/>",
            "width=\"20\" height=\"24.5\" fill=\"#0000ff\" fill-opacity=\"0.2\" shape-rendering=\"crispEdges\"/>",
        ] {
            assert!(svg.contains(part), "{part} is missing in\n{svg}");
        }
        assert_eq!(svg.matches("<g").count(), svg.matches("</g>").count());
    }

    #[test]
    fn text_is_escaped_and_keeps_its_place() {
        let svg = drawn(|painter| {
            let font = FontId::proportional(12.0);
            painter.text(Pos2::new(20.0, 30.0), egui::Align2::LEFT_TOP, "a<b> & \"c\"", font, Color32::WHITE);
        });
        assert!(svg.contains(">a&lt;b&gt; &amp; \"c\"</text>"), "{svg}");
        assert!(svg.contains("<text x=\"20\"") && svg.contains("font-size=\"12\""), "{svg}");
        assert_eq!(escaped("a\u{1}\tb"), "a\u{fffd} b");
    }

    #[test]
    fn what_stands_at_the_right_edge_of_its_place_stays_there() {
        let svg = drawn(|painter| {
            let place = Rect::from_min_max(Pos2::new(10.0, 10.0), Pos2::new(110.0, 40.0));
            let painter = painter.with_clip_rect(place);
            let add = |x: f32, align: egui::Align2, text: &str| {
                painter.text(Pos2::new(x, 20.0), align, text, FontId::proportional(12.0), Color32::WHITE);
            };
            add(104.0, egui::Align2::RIGHT_CENTER, "at the end");
            add(10.0, egui::Align2::LEFT_CENTER, "left");
        });
        let line = |text: &str| svg.lines().find(|line| line.ends_with(&format!(">{text}</text>"))).unwrap().to_owned();
        let end = line("at the end");
        let x: f32 = end.strip_prefix("<text x=\"").unwrap().split_once('"').unwrap().0.parse().unwrap();
        assert!((x - 104.0).abs() < 1.0 && end.contains("text-anchor=\"end\""), "{end}");
        assert!(line("left").starts_with("<text x=\"10\"") && !line("left").contains("text-anchor"), "{svg}");
    }

    #[test]
    fn what_is_outside_is_left_out() {
        let svg = drawn(|painter| {
            let far = Rect::from_min_size(Pos2::new(500.0, 500.0), Vec2::splat(10.0));
            painter.rect_filled(far, 0.0, Color32::GREEN);
        });
        assert!(!svg.contains("#00ff00"), "{svg}");
    }
}
