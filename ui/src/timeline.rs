//! The timeline as a widget. It shows documents and says what the user did; it changes nothing but its own scrolling.

use bubblescope::trace::{Interval, Ns};
use eframe::egui::{self, Align2, FontId, PointerButton, Pos2, Rangef, Rect, Role, Sense, Stroke, Ui, UiBuilder, Vec2};

use crate::describe;
use crate::document::{Document, Item, Pick};
use crate::format;
use crate::lanes::{self, Brushes, Canvas};
use crate::minimap;
use crate::rows::{Arrangement, FoldKey, Line, Place, layout, lines_between};
use crate::text::Widths;
use crate::theme::Palette;
use crate::view::Viewport;

/// Height of the ruler.
const RULER_HEIGHT: f32 = 28.0;
/// Least distance of two labelled ticks.
const TICK_DISTANCE: f32 = 110.0;

/// What the user did on the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Move the view.
    View(Viewport),
    /// Select a thing, or nothing.
    Select(Option<Pick>),
    /// Select a thing and zoom to it.
    ZoomTo(Pick),
    /// Measure an interval of the common time scale, or stop measuring.
    Measure(Option<Interval>),
    /// Fold or unfold.
    Fold(FoldKey),
    /// Show a row no longer.
    Hide(FoldKey),
    /// Show all rows again.
    ShowAllRows,
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
    /// Where the pointer was over the canvas, as a share of its width.
    pub pointer: Option<f64>,
    /// Whether to paint without a texture, for a picture that is made of shapes alone.
    pub as_shapes: bool,
    /// What the last frame drew.
    pub drawn: Drawn,
    reveal: Option<Pick>,
    measuring_from: Option<i64>,
    brushes: Brushes,
    widths: Option<(f32, Widths)>,
}

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
            pointer: None,
            as_shapes: false,
            drawn: Drawn::default(),
            reveal: None,
            measuring_from: None,
            brushes: Brushes::default(),
            widths: None,
        }
    }
}

impl Timeline {
    /// Scrolls so that a thing's row is visible in the next frame.
    pub fn reveal(&mut self, pick: Pick) {
        self.reveal = Some(pick);
    }

    /// Shows the documents in the rest of `ui`.
    pub fn show(&mut self, ui: &mut Ui, docs: &[Document]) -> Vec<Action> {
        let mut actions = Vec::new();
        let palette = Palette::of(ui.visuals());
        let full = ui.available_rect_before_wrap();
        ui.allocate_rect(full, Sense::hover());
        let names_width = self.names_width.clamp(80.0, (full.width() - 100.0).max(80.0));
        let split = (full.left() + names_width).round();
        let map_bottom = full.top() + minimap::height(docs.len());
        let map = Rect::from_min_max(Pos2::new(split, full.top()), Pos2::new(full.right(), map_bottom));
        let ruler = Rect::from_min_max(map.left_bottom(), Pos2::new(full.right(), map_bottom + RULER_HEIGHT));
        let body = Rect::from_min_max(Pos2::new(full.left(), ruler.bottom()), full.max);
        let canvas = Rect::from_min_max(Pos2::new(split, body.top()), body.max);
        let font = FontId::proportional(11.5);
        let scale = ui.ctx().pixels_per_point();
        if self.widths.as_ref().is_none_or(|(of, _)| *of != scale) {
            self.widths = Some((scale, Widths::of(ui.painter(), &font)));
        }

        ui.painter().rect_filled(full, 0.0, palette.canvas);
        let step = format::ruler_step(self.view.ns_per_px(canvas.width()) * f64::from(TICK_DISTANCE));
        let bounds = docs.iter().map(Document::interval);
        let bounds = bounds.reduce(|a, b| Interval::new(a.start.min(b.start), a.end.max(b.end)));
        let bounds = bounds.unwrap_or(self.view.interval());
        let moved = minimap::minimap_ui(ui, map, docs, self.view, bounds, &palette);
        actions.extend(moved.map(Action::View));
        self.ruler_ui(ui, ruler, step, &palette, &mut actions);
        self.filter_ui(ui, Rect::from_min_max(full.min, Pos2::new(split - 4.0, body.top())), &mut actions);
        let (lines, height) = layout(docs.iter().map(|doc| &doc.scene), &self.arrangement, docs.len() > 1);
        self.drawn = Drawn::default();
        ui.scope_builder(UiBuilder::new().max_rect(body), |ui| {
            egui::ScrollArea::vertical()
                .id_salt("rows")
                .auto_shrink(false)
                .content_margin(egui::Margin::ZERO)
                .show_viewport(ui, |ui, viewport| {
                    ui.set_height(height.max(viewport.height()));
                    let top = ui.max_rect().top();
                    self.reveal_row(ui, docs, &lines, top);
                    let shown = lines_between(&lines, viewport.top(), viewport.bottom());
                    let names = Rect::from_min_max(body.min, Pos2::new(split - 1.0, body.bottom()));
                    self.canvas_ui(ui, docs, &lines, shown, top, canvas, step, &palette, &mut actions);
                    self.names_ui(ui, docs, shown, top, names, &palette, &mut actions);
                });
        });
        self.splitter_ui(ui, full, split, &palette);
        actions
    }

    /// The field above the names that filters rows.
    fn filter_ui(&mut self, ui: &mut Ui, area: Rect, actions: &mut Vec<Action>) {
        ui.scope_builder(UiBuilder::new().max_rect(area.shrink(5.0)), |ui| {
            ui.horizontal_centered(|ui| {
                let hidden = self.arrangement.hidden.len();
                let width = ui.available_width() - if hidden > 0 { 80.0 } else { 0.0 };
                let field = egui::TextEdit::singleline(&mut self.arrangement.filter).hint_text("Filter rows");
                let response = ui.add(field.desired_width(width - 8.0));
                response.widget_info(|| egui::WidgetInfo::labeled(Role::TextInput, true, "Filter rows"));
                if hidden > 0 && ui.button(format!("{hidden} hidden")).on_hover_text("Show all rows").clicked() {
                    actions.push(Action::ShowAllRows);
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

    fn reveal_row(&mut self, ui: &Ui, docs: &[Document], lines: &[Line], top: f32) {
        let Some(pick) = self.reveal.take() else { return };
        if let Some(y) = lanes::lane_of(docs, lines, pick) {
            let rows = Rangef::new(top + y.min - 30.0, top + y.max + 30.0);
            ui.scroll_to_rect(Rect::from_x_y_ranges(ui.max_rect().x_range(), rows), None);
        }
    }

    fn ruler_ui(&mut self, ui: &Ui, ruler: Rect, step: i64, palette: &Palette, actions: &mut Vec<Action>) {
        let painter = ui.painter_at(ruler);
        let font = FontId::proportional(11.0);
        let width = ruler.width();
        let mut time = self.view.start().div_euclid(step) * step;
        while time <= self.view.end() {
            let x = ruler.left() + self.view.x_of(time, width);
            painter.vline(x.round() + 0.5, ruler.bottom() - 7.0..=ruler.bottom(), Stroke::new(1.0, palette.weak_text));
            let text = format::tick(time, step);
            painter.text(
                Pos2::new(x + 4.0, ruler.bottom() - 6.0),
                Align2::LEFT_BOTTOM,
                text,
                font.clone(),
                palette.weak_text,
            );
            for minor in 1..5 {
                let x = ruler.left() + self.view.x_of(time.saturating_add(step / 5 * minor), width);
                if step >= 5 {
                    painter.vline(
                        x.round() + 0.5,
                        ruler.bottom() - 3.0..=ruler.bottom(),
                        Stroke::new(1.0, palette.grid),
                    );
                }
            }
            time = time.saturating_add(step);
        }
        painter.hline(ruler.x_range(), ruler.bottom() - 0.5, Stroke::new(1.0, palette.grid));

        let response = ui.interact(ruler, ui.scope_id().with("ruler"), Sense::click_and_drag());
        response.widget_info(|| egui::WidgetInfo::labeled(Role::Canvas, true, "ruler"));
        self.measure(ui, &response, ruler, actions);
        self.zoom(ui, &response, ruler, true, actions);
        if response.clicked() {
            actions.push(Action::Measure(None));
        }
        if let Some(measured) = self.measured {
            let (from, to) = (self.view.x_of(measured.start.0, width), self.view.x_of(measured.end.0, width));
            let band = Rect::from_x_y_ranges(ruler.left() + from..=ruler.left() + to, ruler.y_range());
            painter.rect_filled(band, 0.0, palette.measure);
            let text = format::duration(measured.len().0);
            let centre = Pos2::new(band.center().x.clamp(ruler.left() + 40.0, ruler.right() - 40.0), ruler.top() + 8.0);
            painter.text(centre, Align2::CENTER_CENTER, text, FontId::proportional(12.0), palette.text);
        }
        response.on_hover_cursor(egui::CursorIcon::ResizeHorizontal);
    }

    /// Measures while the pointer is dragged.
    fn measure(&mut self, ui: &Ui, response: &egui::Response, area: Rect, actions: &mut Vec<Action>) {
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
    fn zoom(&mut self, ui: &Ui, response: &egui::Response, area: Rect, plain: bool, actions: &mut Vec<Action>) {
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

    #[expect(clippy::too_many_arguments, reason = "all of it is the geometry of one frame")]
    fn canvas_ui(
        &mut self,
        ui: &Ui,
        docs: &[Document],
        lines: &[Line],
        shown: &[Line],
        top: f32,
        area: Rect,
        step: i64,
        palette: &Palette,
        actions: &mut Vec<Action>,
    ) {
        let response = ui.interact(area, ui.scope_id().with("canvas"), Sense::click_and_drag());
        response.widget_info(|| egui::WidgetInfo::labeled(Role::Canvas, true, "timeline"));
        let value = format!("{} to {}", format::moment(self.view.start()), format::moment(self.view.end()));
        ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(value));
        self.pointer = None;
        self.zoom(ui, &response, area, false, actions);
        if ui.input(|input| input.modifiers.shift) || self.measuring_from.is_some() {
            self.measure(ui, &response, area, actions);
        } else if response.dragged() {
            let delta = response.drag_delta();
            actions.push(Action::View(self.view.panned(f64::from(-delta.x / area.width().max(1.0)))));
            ui.scroll_with_delta(Vec2::new(0.0, delta.y));
        }

        let painter = ui.painter_at(area);
        let Some((_, widths)) = &self.widths else { return };
        let canvas = Canvas { docs, area, top, view: self.view, palette, widths };
        self.drawn = lanes::paint(&painter, &canvas, shown, step, &mut self.brushes, self.as_shapes);

        let hovered = response.hover_pos().and_then(|pointer| canvas.pick_at(shown, pointer));
        if let Some(measured) = self.measured {
            canvas.paint_band(&painter, measured, palette.measure);
        }
        if let Some(selected) = self.selected {
            canvas.paint_selection(&painter, lines, selected);
        }
        if let Some(pick) = hovered.filter(|&pick| Some(pick) != self.selected) {
            canvas.paint_outline(&painter, lines, pick, Stroke::new(1.0, palette.weak_text));
        }
        if response.double_clicked() {
            actions.extend(hovered.map(Action::ZoomTo));
        } else if response.clicked() {
            actions.push(Action::Select(hovered));
        }
        if let Some(pick) = hovered.filter(|_| !response.dragged()) {
            hover_ui(ui, &response, docs, pick, palette);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "all of it is the geometry of one frame")]
    fn names_ui(
        &self,
        ui: &Ui,
        docs: &[Document],
        shown: &[Line],
        top: f32,
        area: Rect,
        palette: &Palette,
        actions: &mut Vec<Action>,
    ) {
        let painter = ui.painter_at(area);
        let Some((_, widths)) = &self.widths else { return };
        for line in shown {
            let rect = Rect::from_x_y_ranges(area.x_range(), top + line.top..=top + line.top + line.height);
            let (key, title, note, indent, header) = match line.place {
                Place::Trace { doc } => (FoldKey::Trace(doc), docs[doc].name.as_str(), String::new(), 4.0, true),
                Place::Section { doc, section } => {
                    let found = &docs[doc].scene.sections[section];
                    let empty = if found.empty > 0 { format!("{} empty", found.empty) } else { String::new() };
                    (FoldKey::Section(doc, found.owner), found.title.as_str(), empty, 6.0, true)
                }
                Place::Row { doc, section, row, .. } => {
                    let found = &docs[doc].scene.sections[section].rows[row];
                    (FoldKey::Row(doc, found.kind), found.title.as_str(), found.note.clone(), 20.0, false)
                }
            };
            let response = ui.interact(rect.intersect(area), ui.scope_id().with(key), Sense::click());
            response.widget_info(|| egui::WidgetInfo::labeled(Role::Button, true, title));
            if response.clicked() {
                actions.push(Action::Fold(key));
            }
            if !header {
                response.context_menu(|ui| {
                    if ui.button("Hide this row").clicked() {
                        actions.push(Action::Hide(key));
                    }
                    if ui.button("Show all rows").clicked() {
                        actions.push(Action::ShowAllRows);
                    }
                });
            }
            let fill = match (header, response.hovered()) {
                (true, _) => palette.section,
                (false, true) => palette.canvas_alternate,
                (false, false) => palette.canvas,
            };
            painter.rect_filled(rect, 0.0, fill);
            let mut left = rect.left() + indent;
            if header {
                let at = Pos2::new(left + 5.0, rect.center().y);
                painter.add(fold_mark(at, self.arrangement.folded.contains(&key), palette.weak_text));
                left += 16.0;
            }
            let middle = if header { rect.center().y } else { rect.top() + 10.0 };
            let width = rect.right() - left - 6.0;
            if let Some(text) = widths.fit(title, width) {
                let color = palette.text;
                painter.text(Pos2::new(left, middle), Align2::LEFT_CENTER, text, widths.font().clone(), color);
            }
            let rest = width - widths.width(title) - 10.0;
            if rest >= widths.width(&note) {
                let at = Pos2::new(rect.right() - 6.0, middle);
                painter.text(at, Align2::RIGHT_CENTER, &note, widths.font().clone(), palette.weak_text);
            } else if rect.height() > 38.0
                && !header
                && let Some(text) = widths.fit(&note, width)
            {
                let at = Pos2::new(left, middle + 15.0);
                painter.text(at, Align2::LEFT_CENTER, text, widths.font().clone(), palette.weak_text);
            }
            response.on_hover_text(if note.is_empty() { title.to_owned() } else { format!("{title}\n{note}") });
        }
    }
}

/// The triangle before a name that folds: down when open, right when folded.
fn fold_mark(centre: Pos2, folded: bool, color: egui::Color32) -> egui::Shape {
    let corners =
        if folded { [(-2.5, -4.0), (3.0, 0.0), (-2.5, 4.0)] } else { [(-4.0, -2.5), (4.0, -2.5), (0.0, 3.0)] };
    let points = corners.map(|(x, y)| centre + Vec2::new(x, y)).to_vec();
    egui::Shape::convex_polygon(points, color, Stroke::NONE)
}

/// The text at the pointer.
fn hover_ui(ui: &Ui, response: &egui::Response, docs: &[Document], pick: Pick, palette: &Palette) {
    let Some(found) = docs.get(pick.doc).and_then(|doc| describe::describe(doc, pick.item)) else { return };
    let layer = ui.layer_id();
    let tooltip = egui::Tooltip::always_open(ui.ctx().clone(), layer, response.id, egui::PopupAnchor::Pointer);
    tooltip.gap(14.0).width(420.0).show(|ui| {
        ui.strong(&found.title);
        ui.colored_label(palette.weak_text, &found.kind);
        let most = if matches!(pick.item, Item::Bubble(_)) { 9 } else { 6 };
        egui::Grid::new("facts").num_columns(2).spacing([12.0, 2.0]).show(ui, |ui| {
            for (name, value) in found.facts.iter().take(most) {
                ui.colored_label(palette.weak_text, *name);
                ui.label(value);
                ui.end_row();
            }
        });
    });
}
