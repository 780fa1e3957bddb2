//! What goes wrong is said, and nothing panics.

use crate::driver::{Played, library};
use crate::small;
use workloads::catalogue;

/// Runs a variant that must fail; gives the exit code and the text.
fn failure(workload: &str, variant: &str, settings: &[(&str, &str)]) -> (i32, String) {
    let played = Played::run_with(workload, variant, small(workload), settings);
    (played.exit, played.result.unwrap_err())
}

#[test]
fn a_driver_without_a_gpu_or_too_old_or_not_starting() {
    for info in catalogue() {
        let variant = info.variants[0].name;
        let fail = |settings| failure(info.name, variant, settings);
        assert_eq!(fail(&[("MOCK_DRIVER_FAIL", "cuInit:100")]), (4, "the CUDA driver sees no GPU".to_owned()));
        let (exit, text) = fail(&[("MOCK_DRIVER_FAIL", "cuInit:999")]);
        assert!(exit == 4 && text.contains("cuInit") && text.contains("999"), "{exit} {text}");
        let (exit, text) = fail(&[("MOCK_DRIVER_FAIL", "cuDriverGetVersion:34")]);
        assert!(exit == 4 && text.contains("stub"), "{exit} {text}");
        let (exit, text) = fail(&[("MOCK_DRIVER_VERSION", "11080")]);
        assert!(exit == 4 && text.contains("11.8") && text.contains("12.0"), "{exit} {text}");
    }
}

#[test]
fn a_library_that_is_not_a_whole_driver() {
    let mut bytes = std::fs::read(library().join("libcuda.so.1")).unwrap();
    let name = b"\0cuGraphUpload\0";
    let places: Vec<_> = (0..bytes.len() - name.len()).filter(|&at| bytes[at..].starts_with(name)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| bytes[at + 1] = b'_');
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("libcuda.so.1"), bytes).unwrap();
    let played = Played::run_on(folder.path(), "scalar-readback", "sync", small("scalar-readback"), &[]);
    assert_eq!(played.exit, 4);
    assert!(played.result.unwrap_err().contains("lacks cuGraphUpload"));
}

#[test]
fn a_driver_without_conditional_nodes_cannot_run_one_variant_only() {
    let old = [("MOCK_DRIVER_VERSION", "12030")];
    let (exit, text) = failure("scalar-readback", "device-control", &old);
    assert!(exit == 4 && text.contains("device-control") && text.contains("12.4"), "{exit} {text}");
    let played = Played::run_with("scalar-readback", "graph", small("scalar-readback"), &old);
    assert_eq!(played.outcome().driver_version, 12_030);
    // A driver that cannot provide what the kernel calls refuses its module.
    let (exit, text) = failure("allocation", "pool", &[("MOCK_DRIVER_FAIL", "cuModuleLoadData:218")]);
    assert!(exit == 1 && text.contains("cuModuleLoadData") && text.contains("218"), "{exit} {text}");
}

#[test]
fn a_call_that_fails_in_the_middle_of_each_variant() {
    for info in catalogue() {
        for variant in info.variants {
            let calls = Played::run(info.name, variant.name, small(info.name)).calls();
            for call in
                ["cuLaunchKernel", "cuGraphLaunch", "cuStreamSynchronize", "cuMemcpyDtoHAsync_v2", "cuMemAlloc_v2"]
                    .into_iter()
                    .filter(|call| calls.iter().any(|made| made == call))
            {
                let (exit, text) =
                    failure(info.name, variant.name, &[("MOCK_DRIVER_FAIL", format!("{call}:719").as_str())]);
                let name = call.trim_end_matches("_v2");
                let expected = format!("{name} failed with CUDA_ERROR_LAUNCH_FAILED (719)");
                assert_eq!((exit, text), (1, expected), "{} {}", info.name, variant.name);
            }
        }
    }
}

#[test]
fn a_wrong_answer_is_noticed_in_every_variant() {
    // The last thing that every variant copies is its answer, and the pipeline's is what it copies anyway.
    for info in catalogue() {
        for variant in info.variants {
            let played = Played::run_with(info.name, variant.name, small(info.name), &[("MOCK_DRIVER_WRONG", "1")]);
            assert_eq!(played.exit, 1, "{} {}", info.name, variant.name);
            assert!(played.result.unwrap_err().starts_with("wrong answer"), "{} {}", info.name, variant.name);
        }
    }
}
