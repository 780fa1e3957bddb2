//! What a device did in an interval that somebody marked: all of the interval counts, from its first nanosecond to its
//! last.
//!
//! A window ([`Options::window`](super::Options::window)) is a recording of its own: its span begins with the first op
//! inside. Who marks an interval by hand asks about that interval. A bubble that reaches beyond it is cut there and keeps
//! its root cause, and so are its segments.

use std::sync::Arc;

use crate::progress::{Cancelled, Until, Watch, uncancelled};
use crate::trace::{DeviceIdx, Interval, Ns, Trace};

use super::bubbles::{self, Host, Sums};
use super::cause::{Cause, SegmentKind};
use super::options::Constants;
use super::partition::{self, Sweep};
use super::peers::{self, PeerWaits};
use super::result::{Bubble, DeviceAnalysis, Partition, Quality, Segment, SyncCallRow};
use super::stats::{Histogram, Tally};
use super::{launches, open_ended, quality, sync_cost};

/// What an interval holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Marked {
    /// The interval.
    pub interval: Interval,
    /// Each device that has ops in the trace. Its [`span`](DeviceAnalysis::span) is the part of the interval between its
    /// first and its last op of the trace, its bubbles and segments are cut at the interval's edges, and all figures are
    /// of what is left of them.
    pub devices: Vec<Arc<DeviceAnalysis>>,
    /// Blocking calls in it, with what of their bubbles lies in it.
    pub sync_calls: Vec<SyncCallRow>,
    /// What the figures are worth.
    pub quality: Quality,
}

impl Marked {
    /// The part of the interval in which a device had not worked yet, or would not work any more: it is neither busy nor
    /// idle. With the partition it adds up to the interval.
    pub fn outside(&self, device: &DeviceAnalysis) -> Ns {
        self.interval.len() - device.span.len()
    }
}

/// The bubbles around an interval.
enum Around {
    Known(Arc<DeviceAnalysis>),
    Swept(Sweep),
}

/// Looks at an interval of a trace. Bubbles are those of `known` where it reaches to both edges of the interval, else those
/// of the whole trace.
pub fn marked(trace: &Trace, known: &[Arc<DeviceAnalysis>], interval: Interval, constants: &Constants) -> Marked {
    uncancelled(|until| marked_until(trace, known, interval, constants, until))
}

/// The same while somebody waits for it. How far it is is not told.
///
/// # Errors
/// When it is cancelled.
pub fn marked_watched(
    trace: &Trace,
    known: &[Arc<DeviceAnalysis>],
    interval: Interval,
    constants: &Constants,
    watch: &dyn Watch,
) -> Result<Marked, Cancelled> {
    marked_until(trace, known, interval, constants, Until::cancelled(watch))
}

fn marked_until(
    trace: &Trace,
    known: &[Arc<DeviceAnalysis>],
    interval: Interval,
    constants: &Constants,
    until: Until<'_>,
) -> Result<Marked, Cancelled> {
    let whole = Interval::new(Ns::ZERO, trace.end);
    let inside = interval.intersect(whole);
    let bounds = if inside.is_empty() { inside } else { open_ended(inside, whole) };
    let collective = partition::collective_names(trace);
    let (host, (mut peer_waits, swept)) = Host::new(trace, until, |classes| {
        let sweep = |device, window| partition::sweep(trace, device, window, &collective, classes, until);
        let devices = (0..trace.devices.len()).map(DeviceIdx::from_index);
        let around = |device: DeviceIdx| {
            let reaches = |span: Interval| span.start <= inside.start && inside.end <= span.end;
            let known = known.iter().find(|known| known.device == device && reaches(known.span));
            known
                .map(|known| Around::Known(Arc::clone(known)))
                .or_else(|| sweep(device, open_ended(whole, whole)).map(Around::Swept))
        };
        let swept: Vec<_> =
            devices.filter_map(|device| Some((device, sweep(device, bounds), around(device)?))).collect();
        until.check()?;
        Ok((peers::peer_waits(trace, &collective, bounds), swept))
    })?;
    let (mut devices, mut streams) = (Vec::new(), Vec::new());
    for (device, within, around) in swept {
        let around = match around {
            Around::Known(known) => known,
            Around::Swept(sweep) => Arc::new(bubbles::device(trace, device, sweep, constants, &host, until)?),
        };
        devices.push(cut(&around, inside, within.as_ref(), peer_waits.remove(&device).unwrap_or_default()));
        streams.push(within.map(|within| within.streams).unwrap_or_default());
    }
    until.check()?;
    // Whose devices those are says the whole trace.
    let sync_calls = sync_cost::rows(trace, bounds, &devices, &host, until)?;
    until.check()?;
    let launches = launches::launches(trace, bounds, &devices, &host.captures);
    let quality = quality::quality(trace, bounds, &devices, &launches, &host.waits, constants);
    let within = devices.into_iter().zip(streams);
    let devices = within.map(|(device, streams)| Arc::new(DeviceAnalysis { streams, ..device })).collect();
    Ok(Marked { interval, devices, sync_calls, quality })
}

/// What of a device's analysis lies `inside`, where its ops do what `within` says.
fn cut(around: &DeviceAnalysis, inside: Interval, within: Option<&Sweep>, peer_waits: PeerWaits) -> DeviceAnalysis {
    let span = around.span.intersect(inside);
    let span = Interval::new(span.start, span.end.max(span.start));
    let (mut bubbles, mut segments) = (Vec::new(), Vec::new());
    let (mut by_root, mut by_segment) = (Sums::new(Cause::ALL), Sums::new(SegmentKind::ALL));
    let (mut lengths, mut histogram) = (Tally::default(), Histogram::new());
    let first = around.bubbles.partition_point(|bubble| bubble.interval.end <= inside.start);
    for bubble in around.bubbles[first..].iter().take_while(|bubble| bubble.interval.start < inside.end) {
        let interval = bubble.interval.intersect(inside);
        by_root.add(bubble.root.cause, interval.len());
        lengths.add(interval.len().0);
        histogram.add(interval.len());
        let first_segment = segments.len();
        let pieces = around.segments_of(bubble).iter();
        let pieces = pieces.map(|segment| Segment { interval: segment.interval.intersect(inside), ..*segment });
        segments.extend(pieces.filter(|segment| !segment.interval.is_empty()));
        for segment in &segments[first_segment..] {
            by_segment.add(segment.kind, segment.interval.len());
        }
        let segment_count = (segments.len() - first_segment) as u32;
        bubbles.push(Bubble { interval, first_segment: first_segment as u32, segment_count, ..*bubble });
    }
    let did = within.map(|within| within.partition).unwrap_or_default();
    DeviceAnalysis {
        device: around.device,
        span,
        partition: Partition { idle: span.len() - did.busy(), ..did },
        exposed_comm_ns: within.map_or(Ns::ZERO, |within| within.exposed_comm),
        peer_waits,
        usual_latency: around.usual_latency,
        ops: within.map_or(0, |within| within.ops),
        idle_by_root: by_root.filled(),
        idle_by_segment: by_segment.filled(),
        histogram: histogram.filled(),
        bubble_lengths: lengths.percentiles(),
        bubbles,
        segments,
        streams: around.streams.clone(),
    }
}
