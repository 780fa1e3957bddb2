//! What latencies and gaps are usual in the recording, and so which work they held.

use super::super::model::{
    DEFAULT_GAP, DEFAULT_LATENCY, Flags, Follows, GAP_TOLERANCE, Model, Step, Usual, low_median, quantile,
    usual_node_gap,
};
use super::Maker;
use crate::trace::{ApiKind, CallIdx, CaptureMode, Ns};

/// From fewer samples than this of a latency or a gap, only one shorter than the default is taken to be usual.
const MIN_SAMPLES: usize = 5;

impl Maker<'_> {
    pub(super) fn sample_length(&mut self, call: CallIdx, step: &Step) {
        match self.trace.calls.kind[call.index()] {
            ApiKind::CopyAsync if !step.flags.has(Flags::STAGED) => self.submits.push(step.length),
            ApiKind::Launch => self.launches.push(step.length),
            ApiKind::GraphLaunch => self.graph_calls.push(step.length),
            _ => {}
        }
    }

    pub(super) fn finish(mut self, node_call: Ns) -> Model {
        let mut model = self.model;
        model.marks.sort_by_key(|mark| mark.work);
        model.usual = (0..self.trace.devices.len())
            .map(|device| {
                let [single, graph] = &mut self.latencies[device];
                let few = single.len() < MIN_SAMPLES;
                let single = low_median(single).map(|latency| if few { latency.min(DEFAULT_LATENCY) } else { latency });
                let graph = low_median(graph).or(single).unwrap_or(DEFAULT_LATENCY);
                let [direct, parted] = &mut self.gaps[device];
                let few = direct.len() < MIN_SAMPLES;
                let direct = low_median(direct).unwrap_or(DEFAULT_GAP);
                let direct = if few { direct.min(DEFAULT_GAP) } else { direct };
                let parted = low_median(parted).unwrap_or(direct);
                Usual { latency: [single.unwrap_or(graph).max_zero(), graph.max_zero()], gaps: [direct, parted] }
            })
            .collect();
        model.transition = quantile(&mut self.call_gaps, 1, 10).unwrap_or(Ns::ZERO).max_zero();
        let launch = low_median(&mut self.launches);
        model.launch = launch.unwrap_or(DEFAULT_LATENCY);
        model.submit = low_median(&mut self.submits).unwrap_or(model.launch);
        model.graph_call = low_median(&mut self.graph_calls);
        model.node_gap = usual_node_gap(self.trace);
        // With graph-level records the calls cost what they do without a recorder.
        let opaque = self.trace.meta.capture_mode == CaptureMode::Graph;
        model.node_call = if opaque { Ns::ZERO } else { node_call };
        mark_held(&mut model);
        model
    }
}

/// Tells which blocks were held by what they had to wait for, now that the usual gap is known.
fn mark_held(model: &mut Model) {
    let mut dependency = 0;
    for index in 0..model.steps.len() {
        let works = model.works_of(index);
        let mut bound = model.works[works].iter().filter(|work| work.binds).map(|work| work.gap).min();
        while let Some(next) = model.dependencies.get(dependency)
            && next.step as usize == index
        {
            if next.binds {
                bound = Some(next.gap);
            }
            dependency += 1;
        }
        let step = &mut model.steps[index];
        let Some(bound) = bound else { continue };
        let usual = model.usual[step.device as usize].gap(Follows::Directly).saturating_add(GAP_TOLERANCE);
        if step.flags.has(Flags::QUEUED) || (!step.flags.has(Flags::EMPTY) && bound <= usual) {
            step.flags.set(Flags::HELD);
        }
    }
}
