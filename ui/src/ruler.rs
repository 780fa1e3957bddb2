//! The ruler above the lanes.

use bubblescope::trace::Interval;
use eframe::egui::{Align2, FontId, Painter, Pos2, Rect, Stroke, Vec2};

use crate::format;
use crate::theme::Palette;
use crate::view::Viewport;

/// Height of the ruler.
pub const HEIGHT: f32 = 28.0;
/// Least distance of two labelled ticks.
const TICK_DISTANCE: f32 = 110.0;
/// Around the length of what is measured.
const MARGIN: Vec2 = Vec2::new(4.0, 1.0);

/// Nanoseconds between two labelled ticks.
pub fn step(view: Viewport, width: f32) -> i64 {
    format::ruler_step(view.ns_per_px(width) * f64::from(TICK_DISTANCE))
}

/// Paints ticks and their moments, and the measured interval.
pub fn paint(painter: &Painter, ruler: Rect, view: Viewport, measured: Option<Interval>, palette: &Palette) {
    let width = ruler.width();
    let step = step(view, width);
    let x_of = |time: i64| ruler.left() + view.x_of(time, width);
    let tick = |time: i64, length: f32, color| {
        let x = x_of(time).round() + 0.5;
        painter.vline(x, ruler.bottom() - length..=ruler.bottom(), Stroke::new(1.0, color));
    };
    // Away from what is measured, its length would be read as that of what is in sight.
    let measured = measured.filter(|measured| measured.start.0 < view.end() && measured.end.0 > view.start());
    let label = measured.map(|measured| {
        let text = format::duration(measured.len().0);
        let text = painter.layout_no_wrap(text, FontId::proportional(12.0), palette.text);
        // In the middle of what is in sight of it.
        let [from, to] = [measured.start, measured.end].map(|at| x_of(at.0).clamp(ruler.left(), ruler.right()));
        let room = (text.size().x / 2.0 + MARGIN.x).min(ruler.width() / 2.0);
        let centre = from.midpoint(to).clamp(ruler.left() + room, ruler.right() - room);
        let centre = Pos2::new(centre, ruler.top() + 9.0);
        (Align2::CENTER_CENTER.anchor_size(centre, text.size()), text)
    });
    let mut time = view.start().div_euclid(step) * step;
    while time <= view.end() {
        tick(time, 7.0, palette.weak_text);
        let at = Pos2::new(x_of(time) + 4.0, ruler.bottom() - 6.0);
        // The end of a moment whose start is cut off would be read as another moment.
        if at.x >= ruler.left() {
            let text = format::tick(time, step);
            let text = painter.layout_no_wrap(text, FontId::proportional(11.0), palette.weak_text);
            let place = Align2::LEFT_BOTTOM.anchor_size(at, text.size());
            let covered = label.as_ref().is_some_and(|(label, _)| label.expand2(MARGIN).intersects(place));
            if !covered && place.right() <= ruler.right() {
                painter.galley(place.min, text, palette.weak_text);
            }
        }
        for minor in 1..if step >= 5 { 5 } else { 1 } {
            tick(time.saturating_add(step / 5 * minor), 3.0, palette.grid);
        }
        time = time.saturating_add(step);
    }
    painter.hline(ruler.x_range(), ruler.bottom() - 0.5, Stroke::new(1.0, palette.grid));
    if let (Some(measured), Some((place, text))) = (measured, label) {
        let from = x_of(measured.start.0).clamp(ruler.left() - 20.0, ruler.right() + 20.0);
        let to = x_of(measured.end.0).clamp(ruler.left() - 20.0, ruler.right() + 20.0);
        painter.rect_filled(Rect::from_x_y_ranges(from..=to, ruler.y_range()), 0.0, palette.measure);
        painter.rect_filled(place.expand2(MARGIN), 2.0, palette.section);
        painter.galley(place.min, text, palette.text);
    }
}
