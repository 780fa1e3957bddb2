//! Colours. One meaning has one colour in every view, and the colours of causes can be told apart by colour-blind
//! people (after Okabe and Ito, "Color Universal Design", 2008).

use bubblescope::analysis::{Cause, SegmentKind};
use bubblescope::trace::{ApiKind, Detail, MemoryKind, OpKind, RangeKind};
use eframe::egui::{self, Color32};

/// The colours of a timeline on a dark or a light background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Whether the background is dark.
    pub dark: bool,
    /// Behind lanes.
    pub canvas: Color32,
    /// Behind every second row.
    pub canvas_alternate: Color32,
    /// Behind names of sections.
    pub section: Color32,
    /// Behind panels and windows.
    pub panel: Color32,
    /// Lines of the time grid.
    pub grid: Color32,
    /// Ordinary text.
    pub text: Color32,
    /// Text of less weight.
    pub weak_text: Color32,
    /// Text that can be clicked.
    pub link: Color32,
    /// The selection.
    pub selection: Color32,
    /// A measured interval, translucent.
    pub measure: Color32,
    /// The arrow from a launch to its op.
    pub arrow: Color32,
}

/// How much of the colour of errors is in what stands behind messages.
pub const ALERT: f32 = 0.12;

/// Tones that kernels of different names have.
pub const KERNEL_TONES: usize = KERNELS.len();
/// Tones that ranges of different names have.
pub const RANGE_TONES: usize = RANGES.len();

/// Tones of one cool family: kernels differ from each other and never look like a cause.
const KERNELS: [Color32; 8] = [
    Color32::from_rgb(0x5b, 0x7f, 0xb5),
    Color32::from_rgb(0x7a, 0x73, 0xb8),
    Color32::from_rgb(0x4f, 0x93, 0xab),
    Color32::from_rgb(0x8b, 0x8f, 0xc9),
    Color32::from_rgb(0x6b, 0x9f, 0xcf),
    Color32::from_rgb(0x63, 0x66, 0x9e),
    Color32::from_rgb(0xa0, 0x92, 0xc4),
    Color32::from_rgb(0x3c, 0x75, 0x8c),
];

const RANGES: [Color32; 4] = [
    Color32::from_rgb(0x7d, 0x8b, 0x6f),
    Color32::from_rgb(0x8c, 0x82, 0x6c),
    Color32::from_rgb(0x6f, 0x8b, 0x85),
    Color32::from_rgb(0x86, 0x78, 0x86),
];

const BLOCKING: Color32 = Color32::from_rgb(0xd5, 0x5e, 0x00);

impl Palette {
    /// On a dark background.
    pub const DARK: Self = Self {
        dark: true,
        canvas: Color32::from_rgb(0x17, 0x19, 0x1e),
        canvas_alternate: Color32::from_rgb(0x1b, 0x1e, 0x24),
        section: Color32::from_rgb(0x26, 0x2a, 0x33),
        panel: Color32::from_rgb(0x1d, 0x20, 0x27),
        grid: Color32::from_rgb(0x2c, 0x30, 0x39),
        text: Color32::from_rgb(0xe2, 0xe5, 0xea),
        weak_text: Color32::from_rgb(0x93, 0x9a, 0xa8),
        link: Color32::from_rgb(0x6c, 0xb2, 0xff),
        selection: Color32::from_rgb(0xff, 0xff, 0xff),
        measure: Color32::from_rgba_premultiplied(0x1c, 0x26, 0x33, 0x30),
        arrow: Color32::from_rgb(0xff, 0xd5, 0x4f),
    };

    /// On a light background.
    pub const LIGHT: Self = Self {
        dark: false,
        canvas: Color32::from_rgb(0xff, 0xff, 0xff),
        canvas_alternate: Color32::from_rgb(0xf7, 0xf8, 0xfa),
        section: Color32::from_rgb(0xe6, 0xe9, 0xef),
        panel: Color32::from_rgb(0xf3, 0xf4, 0xf7),
        grid: Color32::from_rgb(0xe3, 0xe6, 0xeb),
        text: Color32::from_rgb(0x1f, 0x24, 0x2d),
        weak_text: Color32::from_rgb(0x5f, 0x67, 0x75),
        link: Color32::from_rgb(0x00, 0x5c, 0xb8),
        selection: Color32::from_rgb(0x10, 0x12, 0x16),
        measure: Color32::from_rgba_premultiplied(0x08, 0x12, 0x20, 0x20),
        arrow: Color32::from_rgb(0x6a, 0x1b, 0x9a),
    };

    /// The palette that fits egui's theme.
    pub fn of(visuals: &egui::Visuals) -> Self {
        if visuals.dark_mode { Self::DARK } else { Self::LIGHT }
    }

    /// Gives egui's widgets the colours of the timeline, in both themes.
    pub fn apply(ctx: &egui::Context) {
        for (theme, palette) in [(egui::Theme::Dark, Self::DARK), (egui::Theme::Light, Self::LIGHT)] {
            ctx.set_visuals_of(theme, palette.visuals());
        }
        // A bar that hides until the pointer comes near would not tell that there is more.
        let bars = egui::style::ScrollStyle {
            floating_width: 6.0,
            floating_allocated_width: 8.0,
            foreground_color: true,
            dormant_handle_opacity: 0.35,
            active_handle_opacity: 0.5,
            ..egui::style::ScrollStyle::thin()
        };
        ctx.all_styles_mut(|style| style.spacing.scroll = bars);
    }

    fn visuals(&self) -> egui::Visuals {
        let mut visuals = if self.dark { egui::Visuals::dark() } else { egui::Visuals::light() };
        visuals.panel_fill = self.panel;
        visuals.window_fill = self.panel;
        visuals.extreme_bg_color = self.canvas;
        visuals.faint_bg_color = self.canvas_alternate;
        visuals.widgets.noninteractive.fg_stroke.color = self.text;
        visuals.widgets.noninteractive.bg_stroke.color = self.grid;
        visuals.widgets.inactive.fg_stroke.color = self.text;
        visuals.weak_text_color = Some(self.weak_text);
        visuals.hyperlink_color = self.link;
        (visuals.error_fg_color, visuals.warn_fg_color) = match self.dark {
            true => (Color32::from_rgb(0xff, 0x9a, 0x94), Color32::from_rgb(0xff, 0xa0, 0x3c)),
            false => (Color32::from_rgb(0xa8, 0x1a, 0x1a), Color32::from_rgb(0x8f, 0x48, 0x00)),
        };
        visuals
    }

    /// An op's colour.
    pub fn op(&self, kind: OpKind, name: usize, detail: Detail) -> Color32 {
        match kind {
            OpKind::Kernel => KERNELS[name % KERNELS.len()],
            OpKind::Graph => self.replay(),
            OpKind::Memset => Color32::from_rgb(0x8f, 0x9b, 0x8a),
            OpKind::Copy => match detail {
                Detail::Copy { to: MemoryKind::Device, from: MemoryKind::Pageable | MemoryKind::Pinned, .. } => {
                    Color32::from_rgb(0x3a, 0xa8, 0x76)
                }
                Detail::Copy { from: MemoryKind::Device, to: MemoryKind::Pageable | MemoryKind::Pinned, .. } => {
                    Color32::from_rgb(0x9c, 0xb8, 0x3c)
                }
                _ => Color32::from_rgb(0x5c, 0xa9, 0xa0),
            },
        }
    }

    /// Kernels of whatever name.
    pub fn kernels(&self) -> Color32 {
        KERNELS[0]
    }

    /// Kernels and copies at once.
    pub fn overlapped(&self) -> Color32 {
        Color32::from_rgb(0x2a, 0x5f, 0x74)
    }

    /// Copies of whatever direction.
    pub fn copies(&self) -> Color32 {
        Color32::from_rgb(0x3a, 0xa8, 0x76)
    }

    /// The colour of a graph's replay.
    pub fn replay(&self) -> Color32 {
        Color32::from_rgb(0x3f, 0x6f, 0x9f)
    }

    /// A call's colour: calls that block stand out.
    pub fn call(&self, kind: ApiKind) -> Color32 {
        match kind {
            kind if kind.synchronises() => BLOCKING,
            ApiKind::CopyBlocking => Color32::from_rgb(0xcc, 0x79, 0xa7),
            ApiKind::Alloc | ApiKind::Free => Color32::from_rgb(0xe6, 0x9f, 0x00),
            ApiKind::ModuleLoad => Color32::from_rgb(0xc9, 0xbd, 0x2d),
            ApiKind::GraphBuild => Color32::from_rgb(0xa0, 0x7a, 0x4a),
            ApiKind::Launch | ApiKind::GraphLaunch => Color32::from_rgb(0x5f, 0x86, 0xa8),
            ApiKind::CopyAsync | ApiKind::MemsetAsync | ApiKind::MemsetBlocking => Color32::from_rgb(0x5c, 0xa9, 0xa0),
            _ => Color32::from_rgb(0x80, 0x87, 0x93),
        }
    }

    /// A range's colour.
    pub fn range(&self, kind: RangeKind, name: usize) -> Color32 {
        match kind {
            RangeKind::Operator => Color32::from_rgb(0x6f, 0x7a, 0x8b),
            RangeKind::Nvtx | RangeKind::Annotation => RANGES[name % RANGES.len()],
        }
    }

    /// The colour of a root cause.
    pub fn cause(&self, cause: Cause) -> Color32 {
        match cause {
            Cause::Sync => BLOCKING,
            Cause::BlockingCopy => Color32::from_rgb(0xcc, 0x79, 0xa7),
            Cause::Allocation => Color32::from_rgb(0xe6, 0x9f, 0x00),
            Cause::ModuleLoad => Color32::from_rgb(0xf0, 0xe4, 0x42),
            Cause::GraphBuild => Color32::from_rgb(0xa0, 0x7a, 0x4a),
            Cause::Profiler => Color32::from_rgb(0xb0, 0xa0, 0xd0),
            Cause::HostBound => Color32::from_rgb(0x00, 0x72, 0xb2),
            Cause::LaunchBound => Color32::from_rgb(0x56, 0xb4, 0xe9),
            Cause::Dependency => Color32::from_rgb(0x00, 0x9e, 0x73),
            Cause::Dispatch => Color32::from_rgb(0x9a, 0xa3, 0xb0),
            Cause::GraphInternal => Color32::from_rgb(0x7f, 0xb8, 0x9b),
            Cause::Stalled => Color32::from_rgb(0xe0, 0x3c, 0x8a),
            Cause::Unattributed => Color32::from_rgb(0x6b, 0x70, 0x7a),
        }
    }

    /// The colour of a kind of segment: that of the cause it belongs to.
    pub fn segment(&self, kind: SegmentKind) -> Color32 {
        self.cause(match kind {
            SegmentKind::Profiler => Cause::Profiler,
            SegmentKind::ModuleLoad => Cause::ModuleLoad,
            SegmentKind::GraphBuild => Cause::GraphBuild,
            SegmentKind::Allocation => Cause::Allocation,
            SegmentKind::SyncReturn => Cause::Sync,
            SegmentKind::LaunchCall => Cause::LaunchBound,
            SegmentKind::Api => Cause::BlockingCopy,
            SegmentKind::HostCode => Cause::HostBound,
            SegmentKind::LaunchLatency | SegmentKind::Dispatch => Cause::Dispatch,
            SegmentKind::Dependency => Cause::Dependency,
            SegmentKind::GraphInternal => Cause::GraphInternal,
            SegmentKind::Stalled => Cause::Stalled,
            SegmentKind::Unattributed => Cause::Unattributed,
        })
    }
}

/// A colour between two.
pub fn blend(from: Color32, to: Color32, share: f32) -> Color32 {
    from.lerp_to_gamma(to, share.clamp(0.0, 1.0))
}

/// Black or white, whichever can be read on a colour.
pub fn text_on(color: Color32) -> Color32 {
    let luma = 299 * u32::from(color.r()) + 587 * u32::from(color.g()) + 114 * u32::from(color.b());
    if luma > 140_000 { Color32::from_rgb(0x10, 0x12, 0x16) } else { Color32::WHITE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_colours_of_their_own() {
        for (at, &cause) in Cause::ALL.iter().enumerate() {
            for &other in &Cause::ALL[..at] {
                let (a, b) = (Palette::DARK.cause(cause), Palette::DARK.cause(other));
                let apart: u32 = (0..3).map(|channel| u32::from(a[channel].abs_diff(b[channel]))).sum();
                assert!(apart > 40, "{cause} and {other} look alike");
            }
        }
    }

    /// What an eye without one kind of cones sees of a colour (Machado, Oliveira and Fernandes, "A Physiologically-based
    /// Model for Simulation of Color Vision Deficiency", 2009, complete deficiency), in linear light.
    fn seen_by(color: Color32, matrix: [[f32; 3]; 3]) -> [f32; 3] {
        let linear = |channel: u8| {
            let value = f32::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let rgb = [color.r(), color.g(), color.b()].map(linear);
        matrix.map(|row| (0..3).map(|at| row[at] * rgb[at]).sum::<f32>().clamp(0.0, 1.0))
    }

    /// How far apart two colours are seen, in CIE L*a*b*.
    fn apart(a: [f32; 3], b: [f32; 3]) -> f32 {
        let lab = |[r, g, b]: [f32; 3]| {
            let f = |t: f32| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
            let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
            let y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
            let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
            [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
        };
        let (a, b) = (lab(a), lab(b));
        (0..3).map(|at| (a[at] - b[at]).powi(2)).sum::<f32>().sqrt()
    }

    #[test]
    fn everybody_can_tell_the_parts_of_a_span_apart_and_none_looks_like_waiting() {
        let whole = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let protan = [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ];
        let deutan =
            [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]];
        let tritan = [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ];
        for palette in [Palette::DARK, Palette::LIGHT] {
            let parts = [palette.kernels(), palette.overlapped(), palette.copies(), palette.canvas, BLOCKING];
            for eye in [whole, protan, deutan, tritan] {
                let marked = apart(seen_by(palette.arrow, eye), seen_by(BLOCKING, eye));
                assert!(marked > 20.0, "the call to blame is outlined in a colour only {marked} apart from its own");
                for (at, &part) in parts.iter().enumerate() {
                    for &other in &parts[..at] {
                        let apart = apart(seen_by(part, eye), seen_by(other, eye));
                        assert!(apart > 10.0, "{part:?} and {other:?} are only {apart} apart");
                    }
                }
            }
        }
    }

    /// How well a colour is read on another, from 1 to 21 (WCAG 2.1, "contrast ratio").
    fn contrast(text: Color32, behind: Color32) -> f32 {
        let linear = |channel: u8| {
            let value = f32::from(channel) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let light = |color: Color32| {
            0.2126 * linear(color.r()) + 0.7152 * linear(color.g()) + 0.0722 * linear(color.b()) + 0.05
        };
        let (text, behind) = (light(text), light(behind));
        text.max(behind) / text.min(behind)
    }

    #[test]
    fn what_is_told_can_be_read_in_both_themes() {
        for palette in [Palette::DARK, Palette::LIGHT] {
            let visuals = palette.visuals();
            let alert = blend(visuals.panel_fill, visuals.error_fg_color, ALERT);
            let errors = (visuals.error_fg_color, [palette.panel, palette.canvas, alert]);
            let warnings = (visuals.warn_fg_color, [palette.panel, palette.canvas, palette.canvas_alternate]);
            let others = (palette.text, [palette.panel, palette.canvas, alert]);
            for (color, grounds) in [errors, warnings, others] {
                for ground in grounds {
                    // What WCAG asks for of small letters.
                    let found = contrast(color, ground);
                    assert!(found >= 4.5, "{color:?} on {ground:?}: {found}");
                }
            }
        }
    }

    #[test]
    fn text_can_be_read_on_every_colour() {
        assert_eq!(text_on(Color32::WHITE), Color32::from_rgb(0x10, 0x12, 0x16));
        assert_eq!(text_on(Color32::BLACK), Color32::WHITE);
    }
}
