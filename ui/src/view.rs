//! The part of time that a timeline shows, and how it moves. Pure: no drawing, no input.

use bubblescope::trace::{Interval, Ns};

/// The shown part of time: starts at `start` and spans the width of the canvas, however wide that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewport {
    start: i64,
    span: i64,
}

impl Viewport {
    /// The closest view: a nanosecond is then about a pixel, and whole nanoseconds are fine enough to pan by.
    pub const MIN_SPAN: i64 = 1_000;
    /// The widest view, about 73 years: leaves room to pan without overflow.
    const MAX_SPAN: i64 = i64::MAX / 4;

    /// A view from `start` over `span`, within the possible.
    pub fn new(start: i64, span: i64) -> Self {
        Self { start: start.clamp(-Self::MAX_SPAN, i64::MAX / 2), span: span.clamp(Self::MIN_SPAN, Self::MAX_SPAN) }
    }

    /// A view of `interval` with a margin of `margin` times its length on both sides.
    pub fn of(interval: Interval, margin: f64) -> Self {
        let length = interval.end.0.saturating_sub(interval.start.0).max(1);
        let margin = (length as f64 * margin) as i64;
        let span = length.saturating_add(margin.saturating_mul(2));
        let missing = (Self::MIN_SPAN - span).max(0);
        Self::new(interval.start.0.saturating_sub(margin + missing / 2), span)
    }

    /// When it starts.
    pub fn start(self) -> i64 {
        self.start
    }

    /// When it ends.
    pub fn end(self) -> i64 {
        self.start.saturating_add(self.span)
    }

    /// Nanoseconds from start to end.
    pub fn span(self) -> i64 {
        self.span
    }

    /// The interval it shows.
    pub fn interval(self) -> Interval {
        Interval::new(Ns(self.start), Ns(self.end()))
    }

    /// Nanoseconds per pixel on a canvas of this width.
    pub fn ns_per_px(self, width: f32) -> f64 {
        self.span as f64 / f64::from(width.max(1.0))
    }

    /// The horizontal position of a moment on a canvas of this width.
    pub fn x_of(self, time: i64, width: f32) -> f32 {
        (time.saturating_sub(self.start) as f64 / self.span as f64 * f64::from(width)) as f32
    }

    /// The moment at a horizontal position on a canvas of this width.
    pub fn time_at(self, x: f32, width: f32) -> i64 {
        self.start.saturating_add(self.share(f64::from(x) / f64::from(width.max(1.0))))
    }

    /// A share of the span.
    fn share(self, share: f64) -> i64 {
        (self.span as f64 * share).round() as i64
    }

    /// Zooms by `factor` (above 1: closer), keeping the moment at `at` (0 is the left edge, 1 the right) in place.
    #[must_use]
    pub fn zoomed(self, factor: f64, at: f64) -> Self {
        if !(factor.is_finite() && factor > 0.0) {
            return self;
        }
        let span = ((self.span as f64 / factor).round() as i64).clamp(Self::MIN_SPAN, Self::MAX_SPAN);
        let fixed = self.start.saturating_add(self.share(at));
        Self::new(fixed.saturating_sub((span as f64 * at).round() as i64), span)
    }

    /// A view on the way to another one: this one at 0, the other at 1. A moment that both show at the same place stays
    /// there all the way.
    #[must_use]
    pub fn towards(self, other: Self, way: f64) -> Self {
        if way.is_nan() || way >= 1.0 {
            return other;
        }
        let way = way.max(0.0);
        let [from, to] = [self.span as f64, other.span as f64];
        let span = from * (to / from).powf(way);
        let way = if self.span == other.span { way } else { (span - from) / (to - from) };
        let moved = (other.start as f64 - self.start as f64) * way;
        Self::new(self.start.saturating_add(moved as i64), span.round() as i64)
    }

    /// Moves by a share of the span; positive is later.
    #[must_use]
    pub fn panned(self, share: f64) -> Self {
        Self::new(self.start.saturating_add(self.share(share)), self.span)
    }

    /// Moves by nanoseconds; positive is later.
    #[must_use]
    pub fn moved(self, ns: i64) -> Self {
        Self::new(self.start.saturating_add(ns), self.span)
    }

    /// The nearest view that shows no more than `bounds` with a tenth around it, and some of `bounds` in any case.
    #[must_use]
    pub fn clamped(self, bounds: Interval) -> Self {
        let length = bounds.end.0.saturating_sub(bounds.start.0).max(1);
        let widest = length.saturating_add(length / 5).max(Self::MIN_SPAN);
        let span = self.span.min(widest);
        // What a wider view had in its middle stays there.
        let start = self.start.saturating_add((self.span - span) / 2);
        let (low, high) = (bounds.start.0.saturating_sub(span / 2), bounds.end.0.saturating_sub(span / 2));
        Self::new(start.clamp(low, high.max(low)), span)
    }

    /// The nearest view of the same span that shows the whole of `interval`, or its start if it does not fit.
    #[must_use]
    pub fn showing(self, interval: Interval) -> Self {
        let margin = self.span / 10;
        if interval.start.0 >= self.start && interval.end.0 <= self.end() {
            return self;
        }
        let length = interval.end.0.saturating_sub(interval.start.0);
        if length > self.span {
            return Self::new(interval.start.0.saturating_sub(margin), self.span);
        }
        Self::new(interval.start.0.saturating_sub((self.span - length) / 2), self.span)
    }
}

/// Views, with what belongs to them, to go back and forward through.
///
/// Moves that follow each other within half a second (a wheel turned, a key held) count as one.
#[derive(Clone, Debug)]
pub struct History<T> {
    past: Vec<T>,
    future: Vec<T>,
    last_move: Option<f64>,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { past: Vec::new(), future: Vec::new(), last_move: None }
    }
}

impl<T: PartialEq> History<T> {
    /// Seconds between moves that count as separate.
    const PAUSE: f64 = 0.5;
    /// Views kept.
    const DEPTH: usize = 200;

    /// Notes that the view leaves `from` at `now`, in seconds.
    pub fn leave(&mut self, from: T, now: f64) {
        let separate = self.last_move.is_none_or(|last| now - last > Self::PAUSE);
        if separate && self.past.last() != Some(&from) {
            self.past.push(from);
            if self.past.len() > Self::DEPTH {
                self.past.remove(0);
            }
        }
        self.future.clear();
        self.last_move = Some(now);
    }

    /// The view before, to be shown instead of `current`.
    pub fn back(&mut self, current: T) -> Option<T> {
        let view = self.past.pop()?;
        self.future.push(current);
        self.last_move = None;
        Some(view)
    }

    /// The view that was left by going back.
    pub fn forward(&mut self, current: T) -> Option<T> {
        let view = self.future.pop()?;
        self.past.push(current);
        self.last_move = None;
        Some(view)
    }

    /// All that is kept.
    pub fn stops_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.past.iter_mut().chain(&mut self.future)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn view() -> impl Strategy<Value = Viewport> {
        (0_i64..1 << 50, 10_000_i64..1 << 50).prop_map(|(start, span)| Viewport::new(start, span))
    }

    proptest! {
        #[test]
        fn zooming_in_and_out_is_identity_to_a_pixel(view in view(), factor in 1.0_f64..10.0, at in 0.0_f64..=1.0) {
            let there = view.zoomed(factor, at).zoomed(1.0 / factor, at);
            let pixel = view.ns_per_px(1000.0).ceil() as i64;
            prop_assert!((there.start() - view.start()).abs() <= pixel);
            prop_assert!((there.end() - view.end()).abs() <= pixel);
        }

        #[test]
        fn zooming_keeps_the_moment_under_the_pointer(view in view(), factor in 0.1_f64..10.0, x in 0.0_f32..1000.0) {
            let before = view.time_at(x, 1000.0);
            let zoomed = view.zoomed(factor, f64::from(x) / 1000.0);
            prop_assert!((zoomed.x_of(before, 1000.0) - x).abs() <= 1.0);
        }

        #[test]
        fn the_way_of_a_zoom_keeps_the_moment_too(
            view in view(), factor in 0.1_f64..10.0, x in 0.0_f32..1000.0, way in 0.0_f64..1.0,
        ) {
            let other = view.zoomed(factor, f64::from(x) / 1000.0);
            let between = view.towards(other, way);
            let (least, most) = (view.span().min(other.span()), view.span().max(other.span()));
            prop_assert!((least - 1..=most + 1).contains(&between.span()));
            prop_assert!((between.x_of(view.time_at(x, 1000.0), 1000.0) - x).abs() <= 1.0);
        }

        #[test]
        fn a_way_leads_from_view_to_view(from in view(), to in view()) {
            prop_assert_eq!(from.towards(to, 0.0), from);
            for there in [1.0, 2.0, f64::NAN] {
                prop_assert_eq!(from.towards(to, there), to);
            }
        }

        #[test]
        fn positions_and_moments_are_inverse(view in view(), x in 0.0_f32..1000.0) {
            prop_assert!((view.x_of(view.time_at(x, 1000.0), 1000.0) - x).abs() < 0.2);
        }

        #[test]
        fn a_clamped_view_shows_some_of_its_bounds(
            start in any::<i64>(), span in any::<i64>(), from in 0_i64..1 << 50, len in 0_i64..1 << 50,
        ) {
            let bounds = Interval::new(Ns(from), Ns(from + len));
            let view = Viewport::new(start, span).clamped(bounds);
            prop_assert!(view.start() <= bounds.end.0 && view.end() >= bounds.start.0);
            prop_assert_eq!(view.clamped(bounds), view);
        }

        #[test]
        fn a_clamped_view_of_an_interval_still_shows_all_of_it(
            from in 0_i64..1 << 50, len in 1_000_i64..1 << 50, share in (0.0_f64..=1.0, 0.0_f64..=1.0), margin in 0.0_f64..4.0,
        ) {
            let at = |share: f64| Ns(from + (len as f64 * share) as i64);
            let interval = Interval::new(at(share.0.min(share.1)), at(share.0.max(share.1)));
            let view = Viewport::of(interval, margin).clamped(Interval::new(Ns(from), Ns(from + len)));
            prop_assert!(view.start() <= interval.start.0 + 1 && view.end() >= interval.end.0 - 1, "{view:?} of {interval:?}");
        }

        #[test]
        fn nothing_overflows(start in any::<i64>(), span in any::<i64>(), factor in any::<f64>(), at in any::<f64>(), time in any::<i64>()) {
            let view = Viewport::new(start, span).zoomed(factor, at).panned(at);
            prop_assert!(view.span() >= Viewport::MIN_SPAN && view.end() > view.start());
            let _ = (view.towards(Viewport::new(time, time), factor), view.x_of(time, 1000.0), view.time_at(at as f32, 1000.0), view.moved(time));
        }

        #[test]
        fn a_view_of_an_interval_holds_it(start in 0_i64..1 << 50, len in 0_i64..1 << 50, margin in 0.0_f64..1.0) {
            let interval = Interval::new(Ns(start), Ns(start + len));
            let view = Viewport::of(interval, margin);
            prop_assert!(view.start() <= start && view.end() >= start + len);
        }
    }

    #[test]
    fn history_goes_back_and_forward() {
        let views = [0, 10_000, 20_000].map(|start| Viewport::new(start, 5_000));
        let mut history = History::default();
        history.leave(views[0], 0.0);
        history.leave(views[1], 1.0);
        assert_eq!(history.back(views[2]), Some(views[1]));
        assert_eq!(history.back(views[1]), Some(views[0]));
        assert_eq!(history.back(views[0]), None);
        assert_eq!(history.forward(views[0]), Some(views[1]));
        history.leave(views[1], 5.0);
        assert_eq!(history.forward(views[2]), None);
    }

    #[test]
    fn a_turn_of_the_wheel_is_one_step() {
        let mut history = History::default();
        for step in 0..20 {
            history.leave(Viewport::new(step, 5_000), step as f64 * 0.05);
        }
        assert_eq!(history.back(Viewport::new(99, 5_000)), Some(Viewport::new(0, 5_000)));
        assert_eq!(history.back(Viewport::new(0, 5_000)), None);
    }
}
