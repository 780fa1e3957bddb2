//! The documents of `docs/measurements` that a script writes are what it writes from the figures beside them.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The documents and plots under a folder, by name.
fn written(folder: &Path, into: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".svg") || name.ends_with(".md") {
            into.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_document_says_what_its_figures_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (name, measurements) = ("h200-host-device-sync", root.join("docs/measurements"));
    let scratch = tempfile::tempdir().unwrap();
    let (document, plots) = (scratch.path().join(format!("{name}.md")), scratch.path().join(name));
    let script = Command::new("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1")
        .arg(root.join("scripts/measure/host_device_sync.py"))
        .arg("write")
        .args([&measurements.join(name), &document, &plots])
        .output();
    let Ok(output) = script else {
        println!("skipped: no python3");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut expected = BTreeMap::from([(
        format!("{name}.md"),
        std::fs::read_to_string(measurements.join(format!("{name}.md"))).unwrap(),
    )]);
    written(&measurements.join(name), &mut expected);
    let mut found = BTreeMap::new();
    written(scratch.path(), &mut found);
    written(&plots, &mut found);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, text) in &expected {
        assert!(found[name] == *text, "{name} is not what `host_device_sync.py write` makes of the figures");
    }
}
