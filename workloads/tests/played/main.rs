//! Every variant on a played driver: what it answers, and exactly which calls it makes.
//!
//! A case runs in a child process, which is this program again, because a process keeps the libcuda that it loads.
#![expect(clippy::unwrap_used, reason = "a test program")]

mod calls;
mod driver;
mod failures;

use driver::Played;
use workloads::catalogue;

/// The child's part: not a test of its own.
#[test]
fn child() {
    driver::run_as_child();
}

/// Sizes that let a case end in milliseconds.
fn small(workload: &str) -> &'static [(&'static str, &'static str)] {
    match workload {
        "scalar-readback" => &[("size", "512"), ("kernel-steps", "5"), ("iterations", "23"), ("warmup", "7")],
        "pipeline" => &[("chunks", "9"), ("chunk-size", "512"), ("kernel-steps", "5")],
        "planted" => &[
            ("size", "512"),
            ("kernel-steps", "70"),
            ("short-steps", "64"),
            ("hold-steps", "5"),
            ("host-us", "1"),
            // Two whole graphs and a rest.
            ("iterations", "209"),
            ("warmup", "3"),
        ],
        _ => &[("size", "512"), ("kernel-steps", "5"), ("iterations", "9"), ("warmup", "3")],
    }
}

#[test]
fn all_variants_give_the_same_answer_and_leave_nothing_behind() {
    for info in catalogue() {
        let mut answers = Vec::new();
        for variant in info.variants {
            let played = Played::run(info.name, variant.name, small(info.name));
            let outcome = played.outcome();
            assert_eq!(outcome.device_name, "Mock GPU");
            assert_eq!(outcome.driver_version, 13_000);
            answers.push((outcome.iterations, outcome.answer.clone()));
            let left: Vec<_> = played.calls().iter().filter(|call| call.starts_with("left over")).cloned().collect();
            assert_eq!(left, [""; 0], "{} {}", info.name, variant.name);
            assert_eq!(played.calls().last().map(String::as_str), Some("cuDevicePrimaryCtxRelease_v2"));
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{}: {answers:?}", info.name);
    }
}

#[test]
fn the_answer_of_the_solver_does_not_depend_on_how_far_ahead_it_runs() {
    for kernels in ["1", "4", "12"] {
        let mut answers = Vec::new();
        for (variant, option) in [("sync", ("lag", "1")), ("async", ("lag", "1")), ("async", ("lag", "9"))]
            .into_iter()
            .chain([("graph", ("batch", "1")), ("graph", ("batch", "7")), ("graph", ("batch", "40"))])
        {
            let mut options = small("scalar-readback").to_vec();
            options.extend([("kernels-per-iteration", kernels), option]);
            let played = Played::run("scalar-readback", variant, &options);
            assert_eq!(played.outcome().iterations, 23);
            answers.push(played.outcome().answer.clone());
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{kernels}: {answers:?}");
    }
}

#[test]
fn without_warm_up_and_with_the_least_of_everything_too() {
    for info in catalogue() {
        for variant in info.variants {
            let least: Vec<_> = info.options.iter().map(|option| (option.name, option.min.to_string())).collect();
            let least: Vec<_> = least.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let played = Played::run(info.name, variant.name, &least);
            assert_eq!(played.outcome().warmup, 0);
            assert_eq!(played.outcome().iterations, 1, "{} {}", info.name, variant.name);
        }
    }
}
