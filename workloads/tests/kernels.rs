//! The checked-in PTX is what a driver alone can load.

use std::path::{Path, PathBuf};

#[expect(clippy::unwrap_used, reason = "a test's helper")]
fn kernels(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    found.sort();
    found
}

/// What follows a directive that stands at the start of a line.
fn directive<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[test]
fn every_source_has_its_ptx_and_the_other_way_round() {
    let stems = |extension| kernels(extension).into_iter().map(|path| path.with_extension("")).collect::<Vec<_>>();
    assert!(!stems("cu").is_empty());
    assert_eq!(stems("cu"), stems("ptx"));
}

#[test]
fn the_oldest_supported_driver_takes_every_ptx() {
    for path in kernels("ptx") {
        let text = std::fs::read_to_string(&path).unwrap();
        // CUDA 12.0 knows PTX up to 8.0.
        let (major, minor) = directive(&text, ".version").and_then(|version| version.split_once('.')).unwrap();
        let version: (u32, u32) = (major.parse().unwrap(), minor.parse().unwrap());
        assert!(version <= (8, 0), "{}: {version:?}", path.display());
        assert_eq!(directive(&text, ".target"), Some("sm_75"), "{}", path.display());
        assert_eq!(directive(&text, ".address_size"), Some("64"), "{}", path.display());
        assert!(text.is_ascii() && !text.contains('\0'), "{}", path.display());
        // What is called but not defined must be what the driver itself provides.
        for called in text.lines().filter_map(|line| line.strip_prefix(".extern")) {
            assert_eq!(called.trim(), ".func cudaGraphSetConditional", "{}", path.display());
        }
    }
}
