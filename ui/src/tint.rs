//! Which colour a thing on the timeline has, as one byte: rows keep it beside every interval, so that painting a
//! million of them reads neither names nor details.

use bubblescope::analysis::Cause;
use bubblescope::trace::{ApiKind, Detail, MemoryKind, NameId, OpKind, RangeKind, Trace};
use eframe::egui::Color32;

use crate::arrange::Key;
use crate::theme::{KERNEL_TONES, Palette, RANGE_TONES, blend};

/// A colour by its meaning, the same in every palette. There are fewer than 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tint(u8);

/// Every kind of call, at the position of its discriminant.
pub(crate) const CALLS: [ApiKind; 25] = [
    ApiKind::Launch,
    ApiKind::GraphLaunch,
    ApiKind::HostFunction,
    ApiKind::CopyBlocking,
    ApiKind::CopyAsync,
    ApiKind::MemsetBlocking,
    ApiKind::MemsetAsync,
    ApiKind::StreamSync,
    ApiKind::DeviceSync,
    ApiKind::EventSync,
    ApiKind::StreamQuery,
    ApiKind::EventQuery,
    ApiKind::EventRecord,
    ApiKind::EventElapsed,
    ApiKind::StreamWait,
    ApiKind::EventManage,
    ApiKind::StreamManage,
    ApiKind::Alloc,
    ApiKind::Free,
    ApiKind::AllocAsync,
    ApiKind::ModuleLoad,
    ApiKind::GraphBuild,
    ApiKind::Context,
    ApiKind::Profiler,
    ApiKind::Other,
];

const COPY_IN: u8 = 0;
const COPY_OUT: u8 = 1;
const COPY_OTHER: u8 = 2;
const MEMSET: u8 = 3;
const REPLAY: u8 = 4;
const OPERATOR: u8 = 5;
const KERNEL: u8 = 6;
const RANGE: u8 = KERNEL + KERNEL_TONES as u8;
const CALL: u8 = RANGE + RANGE_TONES as u8;
const CAUSE: u8 = CALL + CALLS.len() as u8;

/// The tones of a trace's names, by their positions. A name has the same one in every trace.
#[derive(Clone, Debug)]
pub struct Tones(Box<[u8]>);

impl Tones {
    /// Finds them. Takes time in proportion to the names.
    pub fn of(trace: &Trace) -> Self {
        Self(trace.names.iter().map(|(_, name)| Key::of(name).below(KERNEL_TONES * RANGE_TONES) as u8).collect())
    }

    /// That of a name.
    pub fn get(&self, name: NameId) -> usize {
        self.0.get(name.index()).map_or(0, |&tone| usize::from(tone))
    }
}

impl Tint {
    /// A graph's replay.
    pub const REPLAY: Self = Self(REPLAY);

    /// An op's; `name` is the tone of its name.
    pub fn op(kind: OpKind, name: usize, detail: Detail) -> Self {
        let host = |memory| matches!(memory, MemoryKind::Pageable | MemoryKind::Pinned);
        Self(match (kind, detail) {
            (OpKind::Kernel, _) => KERNEL + (name % KERNEL_TONES) as u8,
            (OpKind::Graph, _) => REPLAY,
            (OpKind::Memset, _) => MEMSET,
            (OpKind::Copy, Detail::Copy { from, to: MemoryKind::Device, .. }) if host(from) => COPY_IN,
            (OpKind::Copy, Detail::Copy { from: MemoryKind::Device, to, .. }) if host(to) => COPY_OUT,
            (OpKind::Copy, _) => COPY_OTHER,
        })
    }

    /// A call's.
    pub fn call(kind: ApiKind) -> Self {
        Self(CALL + kind as u8)
    }

    /// A range's; `name` is the tone of its name.
    pub fn range(kind: RangeKind, name: usize) -> Self {
        Self(match kind {
            RangeKind::Operator => OPERATOR,
            RangeKind::Nvtx | RangeKind::Annotation => RANGE + (name % RANGE_TONES) as u8,
        })
    }

    /// That of a bubble of this cause.
    pub fn cause(cause: Cause) -> Self {
        let at = Cause::ALL.iter().position(|&other| other == cause).unwrap_or(0);
        Self(CAUSE + at as u8)
    }

    /// Whether stripes tell it from its neighbours for those who do not see its colour: copies from kernels, and
    /// bubbles that the host did not cause from those that it did.
    pub fn striped(self) -> bool {
        match self.0 {
            COPY_IN | COPY_OUT | COPY_OTHER | MEMSET => true,
            CAUSE.. => Cause::ALL.get(usize::from(self.0 - CAUSE)).is_some_and(|cause| {
                matches!(cause, Cause::Dependency | Cause::Dispatch | Cause::GraphInternal | Cause::Stalled)
            }),
            _ => false,
        }
    }

    /// Whether it is a bubble's.
    pub fn is_cause(self) -> bool {
        self.0 >= CAUSE
    }

    /// How [`Tints::seen`] knows it, from 1 to 127; with [`EDGE_LOOK`] added as the last column of a box.
    #[inline]
    pub fn look(self) -> u8 {
        (self.0 & 127) + 1
    }

    /// The number that the index of a lane keeps, below 127.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The tint of a number that [`Tint::number`] gave.
    pub fn of_number(number: u8) -> Self {
        Self(number)
    }

    fn color(self, palette: &Palette) -> Color32 {
        let copy = |from, to| palette.op(OpKind::Copy, 0, Detail::Copy { from, to, asynchronous: true });
        let at = usize::from(self.0);
        let within = |first: u8| at - usize::from(first);
        match self.0 {
            COPY_IN => copy(MemoryKind::Pinned, MemoryKind::Device),
            COPY_OUT => copy(MemoryKind::Device, MemoryKind::Pinned),
            COPY_OTHER => copy(MemoryKind::Device, MemoryKind::Device),
            MEMSET => palette.op(OpKind::Memset, 0, Detail::None),
            REPLAY => palette.replay(),
            OPERATOR => palette.range(RangeKind::Operator, 0),
            KERNEL..RANGE => palette.op(OpKind::Kernel, within(KERNEL), Detail::None),
            RANGE..CALL => palette.range(RangeKind::Nvtx, within(RANGE)),
            CALL..CAUSE => palette.call(CALLS[within(CALL)]),
            CAUSE.. => Cause::ALL.get(within(CAUSE)).map_or(palette.weak_text, |&cause| palette.cause(cause)),
        }
    }
}

/// All of a column, of which [`Tints::seen`] shows shares.
pub const FULL: u32 = 1 << 31;
/// Added to a look: the last column of a box.
pub const EDGE_LOOK: u8 = 128;
/// Steps of opacity by which a share is shown.
const STEPS: usize = 64;
/// How much of its colour the faintest column has: whatever happened is visible.
const FAINTEST: f32 = 0.25;
/// How much darker the last column of a box is: a line of background would look like idle time.
const EDGE: f32 = 0.35;

/// The colours of all tints in one palette.
#[derive(Clone, Debug)]
pub struct Tints {
    palette: Palette,
    /// By look and share. Nothing is seen of look 0.
    seen: Box<[[Color32; STEPS + 1]; 256]>,
}

impl Tints {
    /// Those of a palette.
    pub fn of(palette: &Palette) -> Self {
        let opacity = |step: usize| FAINTEST + (1.0 - FAINTEST) * step as f32 / STEPS as f32;
        let mut seen = Box::new([[Color32::TRANSPARENT; STEPS + 1]; 256]);
        for look in 1..EDGE_LOOK {
            let color = Tint(look - 1).color(palette);
            seen[usize::from(look)] = std::array::from_fn(|step| color.gamma_multiply(opacity(step)));
            seen[usize::from(look | EDGE_LOOK)] = [blend(color, Color32::BLACK, EDGE); STEPS + 1];
        }
        Self { palette: *palette, seen }
    }

    /// The palette.
    pub fn palette(&self) -> &Palette {
        &self.palette
    }

    /// The colour of a tint.
    pub fn get(&self, tint: Tint) -> Color32 {
        self.seen[usize::from(tint.look())][STEPS]
    }

    /// The colour, premultiplied, of a look that fills a share of a column, of [`FULL`]. The last column of a box has
    /// the same one whatever it is filled.
    #[inline]
    pub fn seen(&self, look: u8, share: u32) -> Color32 {
        let step = ((share >> (FULL.ilog2() - STEPS.ilog2() - 1)) + 1) >> 1;
        self.seen[usize::from(look)][(step as usize).min(STEPS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_has_the_colour_of_its_thing() {
        assert!(usize::from(CAUSE) + Cause::ALL.len() < 127, "a lane keeps seven bits, and a look of 0 is nothing");
        for palette in [Palette::DARK, Palette::LIGHT] {
            let tints = Tints::of(&palette);
            for (at, kind) in CALLS.into_iter().enumerate() {
                assert_eq!(kind as usize, at);
                assert_eq!(tints.get(Tint::call(kind)), palette.call(kind), "{kind:?}");
            }
            for &cause in Cause::ALL {
                assert_eq!(tints.get(Tint::cause(cause)), palette.cause(cause), "{cause}");
            }
            for name in 0..20 {
                for kind in [RangeKind::Nvtx, RangeKind::Annotation, RangeKind::Operator] {
                    assert_eq!(tints.get(Tint::range(kind, name)), palette.range(kind, name));
                }
                for kind in [OpKind::Kernel, OpKind::Memset, OpKind::Graph] {
                    assert_eq!(tints.get(Tint::op(kind, name, Detail::None)), palette.op(kind, name, Detail::None));
                }
            }
            let memories = [MemoryKind::Unknown, MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::Device];
            for (from, to) in memories.iter().flat_map(|&from| memories.map(|to| (from, to))) {
                let detail = Detail::Copy { from, to, asynchronous: false };
                assert_eq!(tints.get(Tint::op(OpKind::Copy, 0, detail)), palette.op(OpKind::Copy, 0, detail));
            }
            assert_eq!(tints.get(Tint::REPLAY), palette.replay());
        }
    }
}
