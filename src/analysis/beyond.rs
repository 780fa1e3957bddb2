//! Gains that are more than idle time: the span gets shorter by more than the time in which nothing ran only when work
//! that now runs at different times overlaps, or is not done at all.

use crate::trace::{Interval, Ns};

use super::result::{Analysis, DeviceAnalysis};
use super::sync_cost::covered;

impl Analysis {
    /// Time between the first op of any device and the last one in which no device worked. Of one device it is its idle
    /// time; of several it may be less than that of any, where they work in turns, and more than that of all, where one
    /// begins after another has ended.
    pub fn idle_of_all(&self) -> Ns {
        if let [device] = self.devices.as_slice() {
            return device.idle_ns();
        }
        let spans = self.devices.iter().map(|device| device.span);
        let hull = spans.reduce(|all, one| Interval::new(all.start.min(one.start), all.end.max(one.end)));
        let mut busy: Vec<Interval> = self.devices.iter().flat_map(|device| busy(device)).collect();
        hull.map_or(Ns::ZERO, |hull| hull.len().saturating_sub(covered(&mut busy)))
    }
}

/// What lies between a device's bubbles, in its span.
fn busy(device: &DeviceAnalysis) -> impl Iterator<Item = Interval> {
    let starts = std::iter::once(device.span.start).chain(device.bubbles.iter().map(|bubble| bubble.interval.end));
    let ends = device.bubbles.iter().map(|bubble| bubble.interval.start).chain([device.span.end]);
    starts.zip(ends).map(|(start, end)| Interval::new(start, end))
}

/// The end of a sentence on a gain that is more than `idle`, the time in which none of so many devices worked; empty when
/// it is not.
pub fn beyond_idle(gain: Ns, idle: Ns, devices: usize) -> &'static str {
    if gain <= idle {
        ""
    } else if devices > 1 {
        ", more than the time in which no GPU worked: work would also overlap or go away"
    } else {
        ", more than the idle time: work would also overlap or go away"
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::scene::Scene;
    use crate::analysis::{Options, analyze};

    #[test]
    fn only_more_than_idle_time_is_beyond_it() {
        for devices in [1, 8] {
            assert_eq!(beyond_idle(Ns(5), Ns(5), devices), "");
        }
        assert!(beyond_idle(Ns(6), Ns(5), 1).starts_with(", more than the idle time:"));
        assert!(beyond_idle(Ns(6), Ns(5), 8).starts_with(", more than the time in which no GPU worked:"));
    }

    proptest! {
        #[test]
        fn it_is_every_nanosecond_in_which_none_works(
            ops in prop::collection::vec((0_u32..3, 0_i64..60, 1_i64..12), 1..12),
        ) {
            let mut scene = Scene::new();
            for (at, &(device, start, length)) in ops.iter().enumerate() {
                scene.on_context(1, device, device + 1);
                scene.kernel(7, at as u64 + 1, start, start + length);
            }
            let first = ops.iter().map(|&(_, start, _)| start).min().unwrap_or_default();
            let last = ops.iter().map(|&(_, start, length)| start + length).max().unwrap_or_default();
            let works = |moment: &i64| ops.iter().any(|&(_, start, length)| (start..start + length).contains(moment));
            let idle = (first..last).filter(|moment| !works(moment)).count();
            prop_assert_eq!(analyze(&scene.finish(), &Options::default()).idle_of_all(), Ns(idle as i64));
        }
    }
}
