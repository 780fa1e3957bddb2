//! From CUPTI's clock to the trace's: `CLOCK_REALTIME` as it was at the start of the recording, without its jumps.

use cupti::spool::Anchor;

use super::survey::Survey;
use crate::trace::Ns;

/// Clocks that differ by no more than this, beyond the uncertainty of their readings, are the same clock.
const TOLERANCE_NS: i64 = 100_000;

/// How to map CUPTI's clock. Normally it is `CLOCK_REALTIME` and stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// What to add to `CLOCK_REALTIME` at the start to get CUPTI's clock.
    lead: i64,
    /// CUPTI's time at each reading, strictly increasing, and what to add to it. Empty: nothing, at any time.
    points: Vec<(i64, i64)>,
}

impl Clock {
    /// The clock that these readings describe, and a sentence for the reader when it is not plain `CLOCK_REALTIME`.
    ///
    /// `CLOCK_MONOTONIC` passes as fast as `CLOCK_REALTIME` but never jumps, so CUPTI's clock is compared with it.
    pub(super) fn from_anchors(anchors: &[Anchor]) -> (Self, Option<String>) {
        let readings: Vec<Reading> = anchors.iter().map(Reading::of).collect();
        let Some(first) = readings.first() else { return (Self::default(), None) };
        let apart = first.realtime.saturating_sub(first.cupti);
        let lead = if apart.saturating_abs() <= first.slack { 0 } else { apart.saturating_neg() };
        // How far CUPTI's clock has run away from the monotonic one since the first reading.
        let drift = |reading: &Reading| {
            let cupti = reading.cupti.saturating_sub(first.cupti);
            cupti.saturating_sub(reading.monotonic.saturating_sub(first.monotonic))
        };
        let steady =
            readings.iter().all(|reading| drift(reading).saturating_abs() <= reading.slack.saturating_add(first.slack));
        if steady && lead == 0 {
            return (Self::default(), None);
        }
        if steady {
            let clock = Self { lead, points: vec![(first.cupti, lead.saturating_neg())] };
            return (clock, Some("CUPTI's clock is not the system's: its times were converted".to_owned()));
        }
        if !readings.is_sorted_by(|a, b| a.cupti < b.cupti) {
            let remark = "the clock was set back while recording: times before and after are not comparable";
            return (Self::default(), Some(remark.to_owned()));
        }
        let points = readings
            .iter()
            .map(|reading| (reading.cupti, lead.saturating_neg().saturating_sub(drift(reading))))
            .collect();
        let remark = "the clock jumped or drifted while recording: times were corrected by readings of another clock";
        (Self { lead, points }, Some(remark.to_owned()))
    }

    /// The trace's time of CUPTI's `time`, which stays 0 if it is unknown.
    pub(super) fn time(&self, time: u64) -> i64 {
        if time == 0 { 0 } else { self.correct(i64::try_from(time).unwrap_or(i64::MAX)) }
    }

    /// The trace's time of a moment of `CLOCK_REALTIME`.
    pub(super) fn of_realtime(&self, time: i64) -> i64 {
        self.correct(time.saturating_add(self.lead))
    }

    /// Moves all times by `by`.
    fn shift(&mut self, by: i64) {
        if self.points.is_empty() {
            self.points.push((0, 0));
        }
        for (_, correction) in &mut self.points {
            *correction = correction.saturating_add(by);
        }
    }

    fn correct(&self, time: i64) -> i64 {
        let after = self.points.partition_point(|&(at, _)| at <= time);
        let correction = match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (None, None) => 0,
            (Some((_, correction)), None) | (None, Some(&(_, correction))) => correction,
            (Some((from, a)), Some(&(to, b))) => {
                let part = i128::from(b) - i128::from(a);
                let passed = i128::from(time) - i128::from(from);
                let length = (i128::from(to) - i128::from(from)).max(1);
                // Between two corrections, so it fits.
                i64::try_from(i128::from(a) + part * passed / length).unwrap_or(a)
            }
        };
        time.saturating_add(correction)
    }
}

/// The clock that several recordings of one machine are brought to: that of the first. Each takes `CLOCK_REALTIME` as it
/// was at its own start; if it was set in between, `CLOCK_MONOTONIC` tells by how much.
pub(super) struct Reference {
    boot: String,
    reading: Reading,
}

impl Reference {
    /// The first reading of a recording that tells on which start of which machine it was made.
    pub(super) fn of(survey: &Survey) -> Option<Self> {
        let boot = &survey.header.machine.boot;
        let reading = survey.anchors.first().filter(|_| !boot.is_empty())?;
        Some(Self { boot: boot.clone(), reading: Reading::of(reading) })
    }

    /// Brings the clock of another recording to this one, and tells if that changed something.
    pub(super) fn align(&self, survey: &Survey, clock: &mut Clock) -> Option<String> {
        let other = Self::of(survey).filter(|other| other.boot == self.boot)?.reading;
        let set_by = |reading: &Reading| reading.realtime.saturating_sub(reading.monotonic);
        let apart = set_by(&self.reading).saturating_sub(set_by(&other));
        if apart.saturating_abs() <= self.reading.slack.saturating_add(other.slack) {
            return None;
        }
        clock.shift(apart);
        Some(format!(
            "the clock was set by {} after an earlier process had begun: times were corrected",
            Ns(apart.saturating_neg())
        ))
    }
}

/// One reading of the clocks.
struct Reading {
    realtime: i64,
    monotonic: i64,
    cupti: i64,
    /// What two clocks may differ by in this reading and still be the same.
    slack: i64,
}

impl Reading {
    fn of(anchor: &Anchor) -> Self {
        Self {
            realtime: anchor.realtime_ns,
            monotonic: anchor.monotonic_ns,
            cupti: i64::try_from(anchor.cupti_ns).unwrap_or(i64::MAX),
            slack: TOLERANCE_NS + i64::from(anchor.uncertainty_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_764_000_000_000_000_000;

    /// A reading `after` nanoseconds, when `CLOCK_REALTIME` has jumped by `jump` and CUPTI's clock is `lead` before it.
    fn anchor(after: i64, jump: i64, lead: i64) -> Anchor {
        Anchor {
            realtime_ns: START + after + jump,
            monotonic_ns: 5_000_000_000 + after,
            cupti_ns: (START + after + jump + lead) as u64,
            uncertainty_ns: 100,
        }
    }

    #[test]
    fn the_usual_clock_stays_as_it_is() {
        let anchors = [anchor(0, 0, 0), anchor(1_000_000_000, 0, 300), anchor(2_000_000_000, 700, 0)];
        assert_eq!(Clock::from_anchors(&anchors), (Clock::default(), None));
        assert_eq!(Clock::from_anchors(&[]), (Clock::default(), None));
        assert_eq!(Clock::default().time(0), 0);
        assert_eq!(Clock::default().time(u64::MAX), i64::MAX);
        assert_eq!(Clock::default().of_realtime(17), 17);
    }

    #[test]
    fn another_clock_is_brought_to_realtime() {
        let lead = -START + 77;
        let (clock, remark) = Clock::from_anchors(&[anchor(0, 0, lead), anchor(1_000_000_000, 0, lead)]);
        assert!(remark.is_some());
        assert_eq!(clock.time(77 + 500), START + 500);
        assert_eq!(clock.of_realtime(START + 500), START + 500);
        assert_eq!(clock.time(0), 0, "unknown stays unknown");
    }

    #[test]
    fn a_jump_forwards_is_taken_out() {
        let jump = 3_000_000_000;
        let anchors = [
            anchor(0, 0, 0),
            anchor(1_000_000_000, 0, 0),
            anchor(2_000_000_000, jump, 0),
            anchor(3_000_000_000, jump, 0),
        ];
        let (clock, remark) = Clock::from_anchors(&anchors);
        assert!(remark.is_some());
        for anchor in &anchors {
            let passed = anchor.monotonic_ns - 5_000_000_000;
            assert_eq!(clock.time(anchor.cupti_ns), START + passed);
            assert_eq!(clock.of_realtime(anchor.realtime_ns), START + passed);
        }
        let times: Vec<i64> = (0..6_000).map(|ms| clock.time((START + ms * 1_000_000) as u64)).collect();
        assert!(times.is_sorted(), "order is kept across the jump");
    }

    #[test]
    fn a_jump_backwards_is_told() {
        let (clock, remark) = Clock::from_anchors(&[anchor(0, 0, 0), anchor(1_000_000_000, -5_000_000_000, 0)]);
        assert_eq!(clock, Clock::default());
        assert!(remark.is_some_and(|text| text.contains("set back")));
    }

    #[test]
    fn senseless_readings_do_no_harm() {
        let extreme = |realtime_ns, monotonic_ns, cupti_ns| Anchor {
            realtime_ns,
            monotonic_ns,
            cupti_ns,
            uncertainty_ns: u32::MAX,
        };
        let anchors = [extreme(i64::MIN, i64::MAX, 0), extreme(i64::MAX, i64::MIN, 5), extreme(0, 0, u64::MAX)];
        let (clock, _) = Clock::from_anchors(&anchors);
        for time in [1, 3, 5, 1 << 40, u64::MAX] {
            let _ = (clock.time(time), clock.of_realtime(time as i64));
        }
    }
}
