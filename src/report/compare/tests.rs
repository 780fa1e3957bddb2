//! Comparisons made of known runs.

use super::*;
use crate::report::samples::{self, run};

#[test]
fn medians_intervals_ratios_and_inflation_are_exact() {
    let walls = [[20_000, 24_000, 10_000], [20_400, 24_800, 10_100], [20_200, 24_400, 10_400]];
    let mut runs = Vec::new();
    for [sync, recorded, graph] in walls {
        runs.push(run("sync", sync, 1_000, None));
        runs.push(run("sync", recorded, 1_000, Some(&[(Cause::Sync, 12_000)])));
        runs.push(run("graph", graph, 1_000, None));
    }
    let compare = Compare::new(Setting::default(), &runs).unwrap();
    let [sync, graph] = compare.variants.as_slice() else { panic!("{:?}", compare.variants) };
    let wall = |median: i64, low: i64, high: i64| {
        let interval = WallInterval { low_ns: Ns(low), high_ns: Ns(high), level: 0.75 };
        Some(Wall { repetitions: 3, median_ns: Ns(median), interval: Some(interval) })
    };
    assert_eq!(sync.unprofiled, wall(20_200, 20_000, 20_400));
    assert_eq!(sync.profiled, wall(24_400, 24_000, 24_800));
    assert_eq!(sync.inflation, Some(24_400.0 / 20_200.0));
    assert_eq!(sync.speedup, Some(Speedup { ratio: 1.0, low: None, high: None, basis: Basis::Unprofiled }));
    assert_eq!((graph.profiled, graph.inflation, &graph.recorded), (None, None, &None));
    let speedup = Speedup {
        ratio: 2.0,
        low: Some(20_000.0 / 10_400.0),
        high: Some(20_400.0 / 10_000.0),
        basis: Basis::Unprofiled,
    };
    assert_eq!(graph.speedup, Some(speedup));
    assert_eq!(sync.recorded.as_ref().map(|recorded| recorded.bubble_ns), Some(Ns(12_000)));
    assert_eq!((compare.answer_checked, compare.answers_agree), (true, Some(true)));
}

#[test]
fn recorded_figures_come_from_the_repetition_with_the_median_bubble_time_and_its_parts_add_up() {
    let recorded = |total: &[(Cause, i64)], busy| Repetition {
        variant: "sync".to_owned(),
        wall: Ns(1_000),
        iterations: 3,
        answer: None,
        recorded: Some(Recorded {
            busy: Ns(busy),
            idle_by_root: total.iter().map(|&(cause, ns)| (cause, Ns(ns))).collect(),
            sync_calls: 4,
            idle_reliable: true,
            reasons: Vec::new(),
        }),
    };
    let median = [(Cause::Sync, 100), (Cause::LaunchBound, 100), (Cause::Dispatch, 100)];
    let runs = [recorded(&[(Cause::Sync, 900)], 1), recorded(&median, 301), recorded(&[(Cause::Sync, 1)], 2)];
    let compare = Compare::new(Setting { from: Origin::Traces, ..Setting::default() }, &runs).unwrap();
    let figures = compare.variants[0].recorded.as_ref().unwrap();
    assert_eq!((figures.busy_ns, figures.bubble_ns), (Ns(100), Ns(100)));
    let parts: Vec<(Cause, i64)> = figures.bubble_ns_by_root.iter().map(|(&cause, ns)| (cause, ns.0)).collect();
    assert_eq!(parts, [(Cause::Sync, 33), (Cause::LaunchBound, 34), (Cause::Dispatch, 33)]);
    assert_eq!(figures.sync_calls, 4.0 / 3.0);
}

#[test]
fn one_repetition_that_is_not_reliable_makes_the_variant_so() {
    let mut runs = vec![run("sync", 10, 1, Some(&[(Cause::Sync, 5)])); 3];
    if let Some(recorded) = &mut runs[0].recorded {
        recorded.idle_reliable = false;
        recorded.reasons.push("7 records were dropped.".to_owned());
    }
    let compare = Compare::new(Setting::default(), &runs).unwrap();
    let figures = compare.variants[0].recorded.as_ref().unwrap();
    assert_eq!((figures.idle_reliable, figures.reasons.len()), (false, 1));
}

#[test]
fn answers_that_differ_withhold_every_speed_up() {
    for answer in [Some("0"), None] {
        let mut runs = vec![run("sync", 10, 1, None), run("async", 5, 1, None), run("async", 5, 1, None)];
        runs[2].answer = answer.map(str::to_owned);
        let compare = Compare::new(Setting::default(), &runs).unwrap();
        assert_eq!((compare.answer_checked, compare.answers_agree), (true, Some(false)));
        assert!(compare.variants.iter().all(|variant| variant.speedup.is_none()));
        let differ = compare.answers_differ().unwrap();
        let other = answer.unwrap_or("no answer");
        assert_eq!(
            differ.to_string(),
            format!(
                "the variants do not compute the same answer: sync gives 0x3f9d70a4, async gives 0x3f9d70a4 and \
                 {other}"
            )
        );
    }
    assert_eq!(samples::compared().answers_differ(), None);
    assert_eq!(samples::compared_traces().answers_differ(), None);
}

#[test]
fn runs_that_give_no_figure_are_errors() {
    assert_eq!(Compare::new(Setting::default(), &[]), Err(CompareError::NoRepetition));
    let mut idle = run("sync", 10, 1, None);
    idle.iterations = 0;
    assert_eq!(
        Compare::new(Setting::default(), &[idle]),
        Err(CompareError::NoIteration { variant: "sync".to_owned() })
    );
}

#[test]
fn json_names_the_schema_and_says_null_where_nothing_was_measured() {
    let json = serde_json::to_value(samples::compared_traces()).unwrap();
    assert_eq!(json["schema"], "bubblescope.compare/1");
    assert_eq!((&json["answer_checked"], &json["answers_agree"]), (&true.into(), &true.into()));
    assert!(json["variants"][0].as_object().unwrap().contains_key("unprofiled"));
    assert!(json["variants"][0]["unprofiled"].is_null());
    let again: Compare = serde_json::from_value(json).unwrap();
    assert_eq!(again, samples::compared_traces());
}
