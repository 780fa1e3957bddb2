//! The timeline as a widget. It shows documents and says what the user did; what it changes itself is how its rows are
//! arranged and scrolled.

use bubblescope::trace::{Interval, Ns};
use eframe::egui::scroll_area::ScrollBarVisibility;
use eframe::egui::{
    self, Align2, FontId, Painter, PointerButton, Pos2, Rangef, Rect, Response, Role, Sense, Stroke, Ui, UiBuilder,
    Vec2,
};

use crate::arrange::{Arrangement, FoldKey, Layout, LineKey, Lines, RowAct};
use crate::describe;
use crate::document::{Document, Pick};
use crate::format;
use crate::lanes::{self, Brushes, Canvas, Group, Under};
use crate::minimap::{self, Minimap};
use crate::names::names_ui;
use crate::ruler;
use crate::text::Widths;
use crate::theme::Palette;
use crate::tint::Tints;
use crate::view::Viewport;

/// Height of the rows that scroll, whatever is pinned above them.
const LEAST_SCROLLED: f32 = 80.0;

/// What the user did on the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Move the view.
    View(Viewport),
    /// Select a thing, or nothing.
    Select(Option<Pick>),
    /// Select a thing and zoom to it.
    ZoomTo(Pick),
    /// Select a thing and show it so that it can be seen, among what is around it.
    Show(Pick),
    /// Measure an interval of the common time scale, or stop measuring.
    Measure(Option<Interval>),
}

/// What the timeline shows, and what it remembers between frames.
#[derive(Debug)]
pub struct Timeline {
    /// The shown part of the common time scale.
    pub view: Viewport,
    /// Which rows are shown, and how.
    pub arrangement: Arrangement,
    /// What is selected.
    pub selected: Option<Pick>,
    /// What is measured.
    pub measured: Option<Interval>,
    /// Width of the names.
    pub names_width: f32,
    /// Whether the field that filters rows had the keyboard in the last frame.
    pub filtering: bool,
    /// Whether what is selected is described beside the timeline.
    pub described: bool,
    /// Where the pointer was over the canvas, as a share of its width.
    pub pointer: Option<f64>,
    /// Whether to paint without a texture, for a picture that is made of shapes alone.
    pub as_shapes: bool,
    /// Whether a picture is taken: what is shown only because of where the pointer is is left out.
    pub posing: bool,
    /// What the last frame drew.
    pub drawn: Drawn,
    /// The line that commands about rows mean: where the pointer last was, or what was last gone to.
    pub line: Option<LineKey>,
    reveal: Option<Reveal>,
    last_pointer: Option<Pos2>,
    /// Where the pointer was when a key was pressed last: until it moves, no text stands beside it.
    hushed: Option<Pos2>,
    measuring_from: Option<i64>,
    /// The view of the last frame.
    shown: Option<Viewport>,
    glide: Option<Glide>,
    minimap: Minimap,
    brushes: Brushes,
    widths: Option<(f32, Widths)>,
    tints: Option<Tints>,
}

/// What to scroll to.
#[derive(Clone, Copy, Debug)]
enum Reveal {
    Thing(Pick),
    Line(LineKey),
}

/// A move of the view that takes a few frames, so that the eye can follow.
#[derive(Clone, Copy, Debug)]
struct Glide {
    from: Viewport,
    to: Viewport,
    /// When it began, in seconds; `None` before its first frame.
    since: Option<f64>,
}

/// Seconds that a move takes.
const GLIDE: f64 = 0.12;

/// What a frame drew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Columns of lanes that show something.
    pub columns: usize,
    /// Names in boxes.
    pub labels: usize,
    /// Lanes on screen.
    pub lanes: usize,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            view: Viewport::new(0, 1_000_000),
            arrangement: Arrangement::default(),
            selected: None,
            measured: None,
            names_width: 220.0,
            filtering: false,
            described: false,
            hushed: None,
            pointer: None,
            as_shapes: false,
            posing: false,
            drawn: Drawn::default(),
            line: None,
            reveal: None,
            last_pointer: None,
            measuring_from: None,
            shown: None,
            glide: None,
            minimap: Minimap::default(),
            brushes: Brushes::default(),
            widths: None,
            tints: None,
        }
    }
}

impl Timeline {
    /// Scrolls so that a thing's row is visible in the next frame.
    pub fn reveal(&mut self, pick: Pick) {
        self.reveal = Some(Reveal::Thing(pick));
    }

    /// Shows the row of a thing, whatever hid it, and scrolls there in the next frame.
    pub fn expose(&mut self, docs: &[Document], pick: Pick) {
        let found = docs.get(pick.doc).and_then(|doc| {
            let spot = doc.scene.find(&doc.trace, pick.item, doc.times(pick.item)?.start.0)?;
            let section = doc.scene.sections.get(spot.section)?;
            Some((section, section.rows.get(spot.row)?))
        });
        if let Some((section, row)) = found {
            self.arrangement.expose(pick.doc, section, row);
        }
        self.reveal(pick);
    }

    /// The same timeline for a picture, at rest.
    pub fn posed(&self, as_shapes: bool) -> Self {
        Self {
            view: self.view,
            arrangement: self.arrangement.clone(),
            selected: self.selected,
            measured: self.measured,
            names_width: self.names_width,
            described: self.described,
            posing: true,
            as_shapes,
            ..Self::default()
        }
    }

    /// The height in which all rows are seen at once.
    pub fn height(&self, docs: &[Document]) -> f32 {
        let Layout { pinned, scrolled, .. } = self.layout(docs);
        let rows = pinned.height + scrolled.height.max(LEAST_SCROLLED);
        (minimap::height(docs.len()) + ruler::HEIGHT + rows).ceil()
    }

    /// Every line, from top to bottom, the pinned ones first.
    fn lines(&self, docs: &[Document]) -> Vec<LineKey> {
        let Layout { pinned, scrolled, .. } = self.layout(docs);
        let places = pinned.lines.iter().chain(&scrolled.lines).map(|line| line.place);
        places.filter_map(|place| place.line_key(docs)).collect()
    }

    fn layout(&self, docs: &[Document]) -> Layout {
        self.arrangement.layout(docs.iter().map(|doc| &doc.scene), docs.len() > 1)
    }

    /// Goes to the line above or below the current one.
    pub fn step_row(&mut self, docs: &[Document], below: bool) {
        let lines = self.lines(docs);
        let at = self.line.and_then(|line| lines.iter().position(|other| *other == line));
        let next = match (at, below) {
            (Some(at), true) => lines.get(at + 1),
            (Some(at), false) => at.checked_sub(1).and_then(|at| lines.get(at)),
            (None, true) => lines.first(),
            (None, false) => lines.last(),
        };
        if let Some(&line) = next {
            self.line = Some(line);
            self.reveal = Some(Reveal::Line(line));
        }
    }

    /// The height in which a few rows can be seen.
    pub fn least_height(docs: usize) -> f32 {
        minimap::height(docs) + ruler::HEIGHT + LEAST_SCROLLED + 16.0
    }

    /// Goes to the name of a trace.
    pub fn go_to_trace(&mut self, doc: usize) {
        let line = LineKey { doc, key: FoldKey::Trace(doc) };
        (self.line, self.reveal) = (Some(line), Some(Reveal::Line(line)));
    }

    /// Does something to the current line; what only rows can do is not done to others.
    pub fn arrange(&mut self, docs: &[Document], act: RowAct) {
        let Some(line) = self.line else { return };
        let Some(doc) = docs.get(line.doc) else { return };
        let row =
            |key| Some((doc.scene.sections.iter().find(|found| found.rows.iter().any(|row| row.key == key))?, key));
        let found = if let FoldKey::Row(key) = line.key { row(key) } else { None };
        let Some((section, row)) = found else {
            if act == RowAct::Fold {
                self.arrangement.toggle(line.key);
            }
            return;
        };
        if act == RowAct::Hide {
            // The row below takes its place, so that several can be hidden one after the other.
            let neighbour = |below| self.arrangement.neighbour(section, row, below);
            let next = neighbour(true).or_else(|| neighbour(false)).map_or(FoldKey::Section(section.key), FoldKey::Row);
            self.line = Some(LineKey { key: next, ..line });
        }
        self.arrangement.act(section, row, act);
        if act == RowAct::Fold {
            self.line = Some(LineKey { key: Arrangement::fold_of(section, row), ..line });
        }
        self.reveal = self.line.map(Reveal::Line);
    }

    /// Lets the eye follow from what the last frame showed to the present view.
    pub fn glide(&mut self) {
        let to = self.view;
        self.glide = self.shown.filter(|&from| from != to).map(|from| Glide { from, to, since: None });
    }

    /// The view of this frame.
    fn on_the_way(&mut self, ui: &Ui) -> Viewport {
        // Whatever else moves the view ends the glide.
        let Some(glide) = self.glide.as_mut().filter(|glide| glide.to == self.view) else { return self.view };
        let (now, frame) = ui.input(|input| (input.time, f64::from(input.predicted_dt)));
        let since = *glide.since.get_or_insert(now - frame);
        let way = (now - since) / GLIDE;
        if way < 1.0 {
            ui.ctx().request_repaint();
        }
        // Fast at first, then slower.
        glide.from.towards(glide.to, 1.0 - (1.0 - way.min(1.0)).powi(2))
    }

    /// Shows the documents in the rest of `ui`.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document]) -> Vec<Action> {
        let target = self.view;
        // What the user does refers to what is shown.
        self.view = self.on_the_way(ui);
        self.shown = Some(self.view);
        let actions = self.view_ui(ui, docs);
        self.view = target;
        actions
    }

    fn view_ui(&mut self, ui: &mut Ui, docs: &[Document]) -> Vec<Action> {
        let mut actions = Vec::new();
        let palette = Palette::of(ui.visuals());
        self.hushed = ui.input(|input| {
            let key = input.events.iter().any(|event| matches!(event, egui::Event::Key { pressed: true, .. }));
            let pointer = input.pointer.latest_pos();
            if key { pointer } else { self.hushed.filter(|at| Some(*at) == pointer) }
        });
        let full = ui.available_rect_before_wrap();
        ui.allocate_rect(full, Sense::hover());
        let names_width = self.names_width.clamp(80.0, (full.width() - 100.0).max(80.0));
        let split = (full.left() + names_width).round();
        let map_bottom = full.top() + minimap::height(docs.len());
        let map = Rect::from_min_max(Pos2::new(split, full.top()), Pos2::new(full.right(), map_bottom));
        let ruler = Rect::from_min_max(map.left_bottom(), Pos2::new(full.right(), map_bottom + ruler::HEIGHT));
        let body = Rect::from_min_max(Pos2::new(full.left(), ruler.bottom()), full.max);
        let scale = ui.ctx().pixels_per_point();
        let widths = match self.widths.take() {
            Some((of, widths)) if of == scale => widths,
            _ => Widths::of(ui.painter(), &FontId::proportional(11.5)),
        };
        let tints =
            self.tints.take().filter(|tints| *tints.palette() == palette).unwrap_or_else(|| Tints::of(&palette));

        ui.painter().rect_filled(full, 0.0, palette.canvas);
        let bounds = docs.iter().map(Document::interval);
        let bounds = bounds.reduce(|a, b| Interval::new(a.start.min(b.start), a.end.max(b.end)));
        let bounds = bounds.unwrap_or(self.view.interval());
        let moved = self.minimap.show(ui, map, docs, self.view, bounds, &tints);
        actions.extend(moved.map(Action::View));
        self.ruler_ui(ui, ruler, &palette, &mut actions);
        let Layout { pinned, scrolled, hidden } = self.layout(docs);
        self.filter_ui(ui, Rect::from_min_max(full.min, Pos2::new(split - 4.0, body.top())), hidden, &palette);
        let pinned_bottom = body.top() + pinned.height.min((body.height() - LEAST_SCROLLED).max(0.0));
        let split_at = |area: Rect, x: f32| {
            let (mut left, mut right) = (area, area);
            (left.max.x, right.min.x) = (x - 1.0, x);
            (left, right)
        };
        let (mut upper, mut lower) = (body, body);
        (upper.max.y, lower.min.y) = (pinned_bottom, pinned_bottom);
        let ((pinned_names, pinned_area), (names, area)) = (split_at(upper, split), split_at(lower, split));
        let pinned = Group { lines: &pinned, area: pinned_area, top: body.top() };
        names_ui(ui, docs, &pinned, pinned_names, &mut self.arrangement, &palette, &widths);
        self.line_ui(ui, docs, &pinned, pinned_names, &palette);
        let on_pinned = ui.interact(pinned_area, ui.scope_id().with("pinned"), Sense::click_and_drag());
        self.pointer = None;
        // What a picture has no room for cannot be scrolled to.
        let bars = if self.posing { ScrollBarVisibility::AlwaysHidden } else { ScrollBarVisibility::VisibleWhenNeeded };
        ui.scope_builder(UiBuilder::new().max_rect(lower), |ui| {
            egui::ScrollArea::vertical()
                .id_salt("rows")
                .auto_shrink(false)
                .content_margin(egui::Margin::ZERO)
                .scroll_bar_visibility(bars)
                .show_viewport(ui, |ui, viewport| {
                    ui.set_height(scrolled.height.max(viewport.height()));
                    let top = ui.max_rect().top();
                    self.reveal_row(ui, docs, pinned.lines, &scrolled, top);
                    let scrolled = Group { lines: &scrolled, area, top };
                    let canvas = Canvas {
                        docs,
                        area: split_at(body, split).1,
                        groups: [pinned, scrolled],
                        view: self.view,
                        palette: &palette,
                        widths: &widths,
                    };
                    self.canvas_ui(ui, &canvas, &tints, &on_pinned, &mut actions);
                    names_ui(ui, docs, &scrolled, names, &mut self.arrangement, &palette, &widths);
                    self.line_ui(ui, docs, &scrolled, names, &palette);
                });
        });
        if pinned_area.height() > 0.0 {
            ui.painter().hline(full.x_range(), pinned_bottom - 0.5, Stroke::new(1.0, palette.weak_text));
        }
        self.splitter_ui(ui, full, split, &palette);
        self.widths = Some((scale, widths));
        self.tints = Some(tints);
        actions
    }

    /// The field above the names that filters rows.
    fn filter_ui(&mut self, ui: &mut Ui, area: Rect, hidden: usize, palette: &Palette) {
        if self.posing {
            // A picture says what is left out of it, and has no field to write into.
            let filter = self.arrangement.filter.trim();
            if !filter.is_empty() {
                let text = format!("Rows with “{filter}”");
                let at = Pos2::new(area.left() + 8.0, area.center().y);
                let painter = ui.painter_at(area);
                painter.text(at, Align2::LEFT_CENTER, text, FontId::proportional(11.5), palette.weak_text);
            }
            return;
        }
        ui.scope_builder(UiBuilder::new().max_rect(area.shrink(5.0)), |ui| {
            ui.horizontal_centered(|ui| {
                let clears = !self.arrangement.filter.is_empty();
                let beside = if hidden > 0 { 80.0 } else { 0.0 } + if clears { 24.0 } else { 0.0 };
                let width = ui.available_width() - beside;
                let field = egui::TextEdit::singleline(&mut self.arrangement.filter).hint_text("Filter rows");
                let response = ui.add(field.desired_width(width - 8.0));
                response.widget_info(|| egui::WidgetInfo::labeled(Role::TextInput, true, "Filter rows"));
                self.filtering = response.has_focus();
                if clears {
                    let clear = ui.small_button("×").on_hover_text("Clear the filter");
                    clear.widget_info(|| egui::WidgetInfo::labeled(Role::Button, true, "Clear the filter"));
                    if clear.clicked() {
                        self.arrangement.filter.clear();
                    }
                }
                if hidden > 0 && ui.button(format!("{hidden} hidden")).on_hover_text("Show all rows").clicked() {
                    self.arrangement.hidden.clear();
                }
            });
        });
    }

    /// The line between names and canvas, which can be dragged.
    fn splitter_ui(&mut self, ui: &Ui, full: Rect, split: f32, palette: &Palette) {
        let line = Rect::from_x_y_ranges(split - 3.0..=split + 2.0, full.y_range());
        let response = ui.interact(line, ui.scope_id().with("splitter"), Sense::drag());
        if response.dragged() {
            self.names_width += response.drag_delta().x;
        }
        let response = response.on_hover_and_drag_cursor(egui::CursorIcon::ResizeHorizontal);
        let color = if response.hovered() || response.dragged() { palette.weak_text } else { palette.grid };
        ui.painter().vline(split - 0.5, full.y_range(), Stroke::new(1.0, color));
    }

    /// Notes which line the pointer has moved to, and marks the current one.
    fn line_ui(&mut self, ui: &Ui, docs: &[Document], group: &Group<'_>, names: Rect, palette: &Palette) {
        let pointer = ui.input(|input| input.pointer.latest_pos());
        let shown = || group.shown().iter();
        if pointer != self.last_pointer
            && let Some(pointer) = pointer
            && ui.rect_contains_pointer(Rect::from_x_y_ranges(ui.clip_rect().x_range(), names.y_range()))
            && let Some(line) = shown().find(|line| group.y_of(line).contains(pointer.y))
        {
            self.last_pointer = Some(pointer);
            self.line = line.place.line_key(docs);
        }
        if let Some(line) = shown().find(|line| line.place.line_key(docs) == self.line) {
            let mark = Rect::from_x_y_ranges(names.left()..=names.left() + 3.0, group.y_of(line)).intersect(names);
            ui.painter().rect_filled(mark, 0.0, palette.selection);
        }
    }

    fn reveal_row(&mut self, ui: &Ui, docs: &[Document], pinned: &Lines, scrolled: &Lines, top: f32) {
        let of_line = |lines: &Lines, key: LineKey| {
            let line = lines.lines.iter().find(|line| line.place.line_key(docs) == Some(key))?;
            Some(Rangef::new(line.top, line.top + line.height))
        };
        let y = match self.reveal.take() {
            Some(Reveal::Thing(pick)) => {
                if let Some(line) = line_of(docs, pick) {
                    self.line = Some(line);
                }
                if lanes::lane_of(docs, pinned, pick).is_some() { None } else { lanes::lane_of(docs, scrolled, pick) }
            }
            Some(Reveal::Line(line)) => of_line(scrolled, line),
            None => None,
        };
        if let Some(y) = y {
            let rows = Rangef::new(top + y.min - 30.0, top + y.max + 30.0);
            ui.scroll_to_rect(Rect::from_x_y_ranges(ui.max_rect().x_range(), rows), None);
        }
    }

    fn ruler_ui(&mut self, ui: &Ui, area: Rect, palette: &Palette, actions: &mut Vec<Action>) {
        ruler::paint(&ui.painter_at(area), area, self.view, self.measured, palette);
        let response = ui.interact(area, ui.scope_id().with("ruler"), Sense::click_and_drag());
        response.widget_info(|| egui::WidgetInfo::labeled(Role::Canvas, true, "ruler"));
        self.measure(ui, &response, area, actions);
        self.zoom(ui, &response, area, true, actions);
        if response.clicked() {
            actions.push(Action::Measure(None));
        }
        response.on_hover_cursor(egui::CursorIcon::ResizeHorizontal);
    }

    /// Measures while the pointer is dragged.
    fn measure(&mut self, ui: &Ui, response: &Response, area: Rect, actions: &mut Vec<Action>) {
        if response.drag_started_by(PointerButton::Primary) {
            // The drag is told only after the pointer has moved; it began where the button went down.
            let origin = ui.input(|input| input.pointer.press_origin());
            self.measuring_from = origin.map(|origin| self.view.time_at(origin.x - area.left(), area.width()));
        }
        if let (Some(from), Some(pointer)) = (self.measuring_from, response.interact_pointer_pos()) {
            let to = self.view.time_at(pointer.x.clamp(area.left(), area.right()) - area.left(), area.width());
            actions.push(Action::Measure(Some(Interval::new(Ns(from.min(to)), Ns(from.max(to))))));
        }
        if response.drag_stopped() {
            self.measuring_from = None;
        }
    }

    /// Zooms and pans by wheel and pinch. A plain wheel zooms too where there is nothing to scroll.
    fn zoom(&mut self, ui: &Ui, response: &Response, area: Rect, plain: bool, actions: &mut Vec<Action>) {
        let Some(pointer) = response.hover_pos() else { return };
        let at = f64::from((pointer.x - area.left()) / area.width().max(1.0));
        self.pointer = Some(at);
        let (zoom, scroll) = ui.input(|input| (input.zoom_delta(), input.smooth_scroll_delta()));
        let wheel = if plain { (scroll.y / 200.0).exp() } else { 1.0 };
        let factor = f64::from(zoom * wheel);
        if factor != 1.0 {
            actions.push(Action::View(self.view.zoomed(factor, at)));
        } else if scroll.x != 0.0 {
            actions.push(Action::View(self.view.panned(f64::from(-scroll.x / area.width().max(1.0)))));
        }
    }

    fn canvas_ui(
        &mut self,
        ui: &Ui,
        canvas: &Canvas<'_>,
        tints: &Tints,
        on_pinned: &Response,
        actions: &mut Vec<Action>,
    ) {
        let area = canvas.groups[1].area;
        let response = ui.interact(area, ui.scope_id().with("canvas"), Sense::click_and_drag());
        response.widget_info(|| egui::WidgetInfo::labeled(Role::Canvas, true, "timeline"));
        let value = format!("{} to {}", format::moment(self.view.start()), format::moment(self.view.end()));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));

        // Pinned rows stand above the area that scrolls, to which the painter here is clipped.
        let mut painter = ui.painter().clone();
        painter.set_clip_rect(canvas.area);
        let step = ruler::step(self.view, canvas.area.width());
        self.drawn = lanes::paint(&painter, canvas, step, tints, &mut self.brushes, self.as_shapes);
        if let Some(measured) = self.measured {
            canvas.paint_band(&painter, measured, canvas.palette.measure);
        }
        if let Some(selected) = self.selected {
            canvas.paint_selection(&painter, selected);
        }
        for response in [&response, on_pinned] {
            self.input(ui, response, canvas, &painter, actions);
        }
    }

    /// What the user does with the pointer over the lanes.
    fn input(
        &mut self,
        ui: &Ui,
        response: &Response,
        canvas: &Canvas<'_>,
        painter: &Painter,
        actions: &mut Vec<Action>,
    ) {
        let area = canvas.area;
        self.zoom(ui, response, area, false, actions);
        if ui.input(|input| input.modifiers.shift) || self.measuring_from.is_some() {
            self.measure(ui, response, area, actions);
        } else if response.dragged() {
            let delta = response.drag_delta();
            actions.push(Action::View(self.view.panned(f64::from(-delta.x / area.width().max(1.0)))));
            ui.scroll_with_delta(Vec2::new(0.0, delta.y));
        }
        let pointer = response.hover_pos().filter(|_| !self.posing);
        let hovered = pointer.and_then(|pointer| canvas.under(pointer));
        let pick = hovered.map(|under| under.pick);
        if let Some(pick) = pick.filter(|&pick| Some(pick) != self.selected) {
            canvas.paint_outline(painter, pick, Stroke::new(1.0, canvas.palette.weak_text));
        }
        if response.double_clicked() {
            actions.extend(pick.map(Action::ZoomTo));
        } else if response.clicked() {
            actions.push(Action::Select(pick));
        }
        let told = self.hushed.is_some() || (self.described && pick == self.selected);
        if let (Some(under), Some(pointer)) = (hovered.filter(|_| !response.dragged() && !told), response.hover_pos()) {
            hover_ui(ui, canvas, under, pointer);
        }
    }
}

/// The line of a thing.
fn line_of(docs: &[Document], pick: Pick) -> Option<LineKey> {
    let doc = docs.get(pick.doc)?;
    let spot = doc.scene.find(&doc.trace, pick.item, doc.times(pick.item)?.start.0)?;
    Some(LineKey { doc: pick.doc, key: FoldKey::Row(doc.scene.sections.get(spot.section)?.rows.get(spot.row)?.key) })
}

/// Facts of a thing that stand at the pointer; the details have them all.
const MOST_FACTS: usize = 5;

/// The text at the pointer, which stays over the lanes.
fn hover_ui(ui: &Ui, canvas: &Canvas<'_>, under: Under, pointer: Pos2) {
    let pick = under.pick;
    let Some(found) = canvas.docs.get(pick.doc).and_then(|doc| describe::describe(doc, pick.item)) else { return };
    // Towards the middle, where there is room.
    let middle = canvas.area.center();
    let (pivot, away) = match (pointer.x > middle.x, pointer.y > middle.y) {
        (false, false) => (Align2::LEFT_TOP, Vec2::new(14.0, 14.0)),
        (true, false) => (Align2::RIGHT_TOP, Vec2::new(-14.0, 14.0)),
        (false, true) => (Align2::LEFT_BOTTOM, Vec2::new(14.0, -14.0)),
        (true, true) => (Align2::RIGHT_BOTTOM, Vec2::new(-14.0, -14.0)),
    };
    let area = egui::Area::new(ui.scope_id().with("at the pointer")).order(egui::Order::Tooltip).interactable(false);
    area.pivot(pivot).fixed_pos(pointer + away).constrain_to(canvas.area).show(ui.ctx(), |ui| {
        egui::Frame::popup(ui.style()).show(ui, |ui| {
            ui.set_max_width(340.0_f32.min(canvas.area.width() - 20.0));
            ui.strong(&found.title);
            let weak = canvas.palette.weak_text;
            ui.colored_label(weak, &found.kind);
            if under.count > 1 {
                let filled = format::percent(under.busy, under.of);
                let (count, of) = (format::count(under.count as u64), format::duration(under.of));
                ui.label(format!("The longest of {count} in this column of {of}, {filled} filled"));
            }
            egui::Grid::new("facts").num_columns(2).spacing([12.0, 2.0]).max_col_width(230.0).show(ui, |ui| {
                for (name, value) in found.facts.iter().take(MOST_FACTS) {
                    ui.colored_label(weak, *name);
                    ui.label(value);
                    ui.end_row();
                }
            });
        });
    });
}
