//! Builds the recorder library `cupti/inject`, which the library carries: an installed `bubble-report` is one file.
//!
//! The library is built by a cargo of its own, in a folder of its own below the target folder: so there is no lock to
//! wait for, every profile, check and lint shares one build, and nothing of how the outer build is done (its flags, its
//! wrappers) gets into other people's processes.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libbubblescope_inject.so";

/// How the variables of the outer build begin that must not decide how the library is built.
const NOT_HANDED_DOWN: [&str; 9] = [
    "CARGO_BUILD_",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "CLIPPY_ARGS",
    "RUSTC_W",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUST_LOG",
];

fn main() {
    for path in ["build.rs", "Cargo.toml", "Cargo.lock", "cupti/Cargo.toml", "cupti/src", "cupti/inject", "cupti/sys"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if variable("CARGO_CFG_TARGET_OS") == "linux" {
        let out = PathBuf::from(variable("OUT_DIR"));
        let built = build(&target_folder(&out).join("inject"));
        if let Err(error) = std::fs::copy(&built, out.join(LIBRARY)) {
            panic!("{} cannot be copied: {error}", built.display());
        }
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// The target folder: the output folder is `TARGET/[TRIPLE/]PROFILE/build/PACKAGE/out`.
fn target_folder(out: &Path) -> &Path {
    out.ancestors()
        .skip(1)
        .find(|path| path.ends_with("build"))
        .and_then(|build| build.parent()?.parent())
        .unwrap_or(out)
}

/// Builds the library below `folder`, and says where it is.
fn build(folder: &Path) -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "bubblescope-inject",
            "--profile",
            "inject",
            "--target-dir",
        ])
        .arg(folder)
        .current_dir(variable("CARGO_MANIFEST_DIR"));
    for (name, _) in env::vars_os() {
        if NOT_HANDED_DOWN.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            cargo.env_remove(name);
        }
    }
    let mut built = folder.to_owned();
    let target = variable("TARGET");
    if target != variable("HOST") {
        cargo.args(["--target", &target]);
        built.push(target);
    }
    match cargo.status() {
        Ok(status) if status.success() => built.join("inject").join(LIBRARY),
        Ok(status) => panic!("the recorder library does not build: cargo ended with {status}"),
        Err(error) => panic!("the recorder library does not build: cargo cannot be started: {error}"),
    }
}
