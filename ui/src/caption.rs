//! What stands above a saved picture of the timeline, so that it says by itself what it shows: the traces, the part of
//! them, and what the colours mean.

use std::sync::Arc;

use bubblescope::analysis::Cause;
use bubblescope::trace::{ApiKind, Detail, MemoryKind, OpKind, Trace};
use eframe::egui::{Color32, Context, FontId, Galley, Pos2, Rect, Shape, Vec2};

use crate::document::Document;
use crate::format;
use crate::paint::Quads;
use crate::theme::Palette;
use crate::tint::{Tint, Tints};
use crate::view::Viewport;

/// Around everything.
const MARGIN: f32 = 8.0;
/// Between lines.
const LINE_GAP: f32 = 4.0;
/// Between two entries of the legend.
const ENTRY_GAP: f32 = 14.0;
/// Between a heading and its first colour.
const HEADING_GAP: f32 = 8.0;
/// Between a colour and its meaning.
const SWATCH_GAP: f32 = 5.0;
const SWATCH: Vec2 = Vec2::new(20.0, 10.0);

/// What a picture of the timeline shows, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caption {
    /// The traces, from top to bottom.
    pub names: String,
    /// The part of the time scale, and how the traces lie on it.
    pub span: String,
    /// What does not fit into the picture, if something does not.
    pub cut: Option<String>,
    /// What the colours mean, in groups with a heading.
    pub legend: Vec<(&'static str, Vec<(Tint, String)>)>,
}

/// A caption that is laid out: shapes from the top left corner on.
#[derive(Debug)]
pub struct Laid {
    /// Its size.
    pub size: Vec2,
    shapes: Vec<Shape>,
}

impl Laid {
    /// Its shapes, where its top left corner is at a point.
    pub fn at(&self, corner: Pos2) -> impl Iterator<Item = Shape> {
        self.shapes.iter().cloned().map(move |mut shape| {
            shape.translate(corner.to_vec2());
            shape
        })
    }
}

impl Caption {
    /// Describes what is shown of some traces; `place` says how they are laid over each other.
    pub fn of(docs: &[Document], view: Viewport, place: Option<&str>) -> Self {
        let names: Vec<String> = docs.iter().map(named).collect();
        let (from, to, long) = (view.start(), view.end(), view.span());
        let mut span = format!("{} to {}, {}", format::moment(from), format::moment(to), format::duration(long));
        if let Some(place) = place {
            span = format!("{span} · {place}");
        }
        let causes: Vec<Cause> = Cause::ALL.iter().copied().filter(|&cause| is_shown(docs, view, cause)).collect();
        let mut legend = Vec::new();
        if !causes.is_empty() {
            legend.push(("Idle:", causes.iter().map(|&cause| (Tint::cause(cause), cause.to_string())).collect()));
        } else if docs.iter().any(|doc| doc.analysis().is_none()) {
            legend.push(("Idle: its causes are not known yet", Vec::new()));
        }
        let copy = Detail::Copy { from: MemoryKind::Pinned, to: MemoryKind::Device, asynchronous: true };
        legend.push((
            "Work:",
            vec![
                (Tint::op(OpKind::Kernel, 0, Detail::None), "kernel".to_owned()),
                (Tint::op(OpKind::Copy, 0, copy), "copy or memset".to_owned()),
            ],
        ));
        let calls = calls_of(docs, view);
        if !calls.is_empty() {
            legend.push(("Calls:", calls));
        }
        Self { names: names.join("  ·  "), span, cut: None, legend }
    }

    /// Lays it out, so wide. Nothing in it is cut: what is too long goes on in the next line.
    pub fn layout(&self, ctx: &Context, width: f32, palette: &Palette) -> Laid {
        let tints = Tints::of(palette);
        let inner = (width - 2.0 * MARGIN).max(1.0);
        let text = |text: &str, size: f32, color: Color32| {
            ctx.fonts_mut(|fonts| fonts.layout(text.to_owned(), FontId::proportional(size), color, inner))
        };
        let mut flow = Flow { at: Pos2::new(MARGIN, MARGIN), right: MARGIN + inner, line: 0.0, shapes: Vec::new() };
        flow.text(text(&self.names, 14.0, palette.text), palette.text);
        flow.end_line();
        flow.text(text(&self.span, 12.0, palette.weak_text), palette.weak_text);
        flow.end_line();
        if let Some(cut) = &self.cut {
            flow.text(text(cut, 12.0, palette.text), palette.text);
            flow.end_line();
        }
        for (heading, entries) in &self.legend {
            let heading = text(heading, 12.0, palette.weak_text);
            let first = entries.first().map(|(_, meaning)| text(meaning, 12.0, palette.text));
            // A heading stays with its first entry.
            let room =
                heading.size().x + first.map_or(0.0, |first| HEADING_GAP + SWATCH.x + SWATCH_GAP + first.size().x);
            flow.make_room(room);
            flow.text(heading, palette.weak_text);
            flow.at.x += HEADING_GAP;
            for (tint, meaning) in entries {
                let meaning = text(meaning, 12.0, palette.text);
                flow.make_room(SWATCH.x + SWATCH_GAP + meaning.size().x);
                flow.swatch(*tint, &tints, meaning.size().y);
                flow.text(meaning, palette.text);
                flow.at.x += ENTRY_GAP;
            }
            flow.at.x += ENTRY_GAP - HEADING_GAP;
        }
        flow.end_line();
        let size = Vec2::new(width, (flow.at.y - LINE_GAP + MARGIN).ceil());
        let whole = Rect::from_min_size(Pos2::ZERO, size);
        let border = Rect::from_min_max(Pos2::new(0.0, size.y - 1.0), whole.max);
        let mut shapes =
            vec![Shape::rect_filled(whole, 0.0, palette.panel), Shape::rect_filled(border, 0.0, palette.grid)];
        shapes.append(&mut flow.shapes);
        Laid { size, shapes }
    }
}

/// Things in lines.
struct Flow {
    at: Pos2,
    right: f32,
    /// Height of the line so far.
    line: f32,
    shapes: Vec<Shape>,
}

impl Flow {
    /// Goes to the next line unless so much fits into this one.
    fn make_room(&mut self, width: f32) {
        if self.at.x > MARGIN && self.at.x + width > self.right {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        if self.at.x > MARGIN {
            self.at = Pos2::new(MARGIN, self.at.y + self.line + LINE_GAP);
            self.line = 0.0;
        }
    }

    fn text(&mut self, galley: Arc<Galley>, color: Color32) {
        let size = galley.size();
        self.shapes.push(Shape::galley(self.at, galley, color));
        self.at.x += size.x;
        self.line = self.line.max(size.y);
    }

    /// A colour in the middle of a line so high.
    fn swatch(&mut self, tint: Tint, tints: &Tints, line: f32) {
        let corner = Pos2::new(self.at.x, (self.at.y + (line - SWATCH.y) / 2.0).round());
        let rect = Rect::from_min_size(corner, SWATCH);
        let mut quads = Quads::default();
        quads.add(rect, tints.get(tint));
        quads.add_pattern(rect, tint, tints);
        self.shapes.push(Shape::mesh(quads.into_mesh()));
        self.at.x += SWATCH.x + SWATCH_GAP;
    }
}

/// A trace by its name and what it ran on.
fn named(doc: &Document) -> String {
    match devices(&doc.trace) {
        Some(devices) => format!("{} ({devices})", doc.name),
        None => doc.name.clone(),
    }
}

/// The devices of a trace: `NVIDIA H200`, `8 × NVIDIA H200`, `2 GPUs`.
fn devices(trace: &Trace) -> Option<String> {
    let (first, more) = trace.devices.split_first()?;
    let alike = more.iter().all(|other| other.name == first.name) && !first.name.is_empty();
    match (trace.devices.len(), alike) {
        (1, true) => Some(first.name.clone()),
        (1, false) => None,
        (count, true) => Some(format!("{count} × {}", first.name)),
        (count, false) => Some(format!("{count} GPUs")),
    }
}

/// Whether a bubble of this cause is in view.
fn is_shown(docs: &[Document], view: Viewport, cause: Cause) -> bool {
    docs.iter().any(|doc| {
        let shown = doc.unshifted(view.interval());
        let devices = doc.analysis().into_iter().flat_map(|analysis| &analysis.devices);
        devices.filter(|device| device.idle_by_root.contains_key(&cause)).any(|device| {
            // Bubbles of a device follow each other.
            let first = device.bubbles.partition_point(|bubble| bubble.interval.end <= shown.start);
            let mut inside = device.bubbles[first..].iter().take_while(|bubble| bubble.interval.start < shown.end);
            inside.any(|bubble| bubble.root.cause == cause)
        })
    })
}

/// What the colours of the calls in view mean; calls of one colour are of one kind here.
fn calls_of(docs: &[Document], view: Viewport) -> Vec<(Tint, String)> {
    let mut shown: Vec<Color32> = Vec::new();
    for doc in docs {
        let (calls, within) = (&doc.trace.calls, doc.unshifted(view.interval()));
        for ((start, end), kind) in calls.start.iter().zip(&calls.end).zip(&calls.kind) {
            if *start < within.end && *end > within.start {
                let color = Palette::DARK.call(*kind);
                if !shown.contains(&color) {
                    shown.push(color);
                }
            }
        }
    }
    let meanings = CALLS.into_iter().filter(|(kind, _)| shown.contains(&Palette::DARK.call(*kind)));
    meanings.map(|(kind, meaning)| (Tint::call(kind), meaning.to_owned())).collect()
}

/// A call of each colour, and what all of that colour do.
const CALLS: [(ApiKind, &str); 8] = [
    (ApiKind::Launch, "launches work"),
    (ApiKind::CopyAsync, "starts a copy or memset"),
    (ApiKind::CopyBlocking, "copies and waits"),
    (ApiKind::StreamSync, "waits for the GPU"),
    (ApiKind::Alloc, "allocates or frees memory"),
    (ApiKind::ModuleLoad, "loads code"),
    (ApiKind::GraphBuild, "builds a graph"),
    (ApiKind::Other, "does something else"),
];

#[cfg(test)]
mod tests {
    use eframe::egui::RawInput;

    use super::*;

    /// A caption of four traces with every cause, laid out in a window.
    fn laid(width: f32) -> Laid {
        let tinted = |cause: &Cause| (Tint::cause(*cause), cause.to_string());
        let caption = Caption {
            names: ["sync.bubcap (NVIDIA H200)"; 4].join("  ·  "),
            span: "1,234.567 ms to 2,345.678 ms, 1.11 s · aligned at iteration 3".to_owned(),
            cut: Some("Only the upper 16,384 of 20,000 pixels: a picture is no higher.".to_owned()),
            legend: vec![("Idle:", Cause::ALL.iter().map(tinted).collect()), ("Not known:", Vec::new())],
        };
        let ctx = Context::default();
        let mut laid = None;
        let mut output = ctx.run_ui(RawInput::default(), |ui| {
            laid = Some(caption.layout(ui.ctx(), width, &Palette::DARK));
        });
        output.textures_delta.clear();
        laid.unwrap()
    }

    #[test]
    fn every_colour_of_a_call_has_a_meaning_of_its_own() {
        let colors: Vec<Color32> = CALLS.iter().map(|(kind, _)| Palette::DARK.call(*kind)).collect();
        for kind in crate::tint::CALLS {
            let meant = colors.iter().filter(|color| **color == Palette::DARK.call(kind)).count();
            assert_eq!(meant, 1, "{kind:?}");
        }
    }

    #[test]
    fn nothing_in_a_caption_overlaps_or_is_cut_however_narrow_it_is() {
        for width in [140.0, 200.0, 333.0, 600.0, 1000.0, 3000.0] {
            let laid = laid(width);
            let inside = Rect::from_min_size(Pos2::ZERO, laid.size);
            let shapes: Vec<Rect> = laid.shapes[2..].iter().map(Shape::visual_bounding_rect).collect();
            assert!(shapes.len() > 2 * Cause::ALL.len());
            for (at, shape) in shapes.iter().enumerate() {
                assert!(inside.contains_rect(*shape), "{shape:?} of {inside:?}");
                let over = shapes[..at].iter().find(|other| other.shrink(0.5).intersects(shape.shrink(0.5)));
                assert_eq!(over, None, "at {width}");
            }
        }
        let (narrow, wide) = (laid(200.0), laid(3000.0));
        assert!(narrow.size.y > 3.0 * wide.size.y && wide.size.y < 90.0, "{} {}", narrow.size.y, wide.size.y);
    }
}
