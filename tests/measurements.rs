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

/// The documents without plots: what is written, by which script, of which figures.
const WRITTEN: [(&str, &str, &[&str]); 3] = [
    ("docs/compatibility.md", "scripts/compat/run.py", &["docs/compatibility/compat.json"]),
    (
        "docs/measurements/h200-record-overhead.md",
        "scripts/measure/record_overhead.py",
        &["docs/measurements/h200-record-overhead"],
    ),
    (
        "docs/measurements/h200-item.md",
        "scripts/measure/item_prediction.py",
        &["docs/measurements/h200-item/item.json"],
    ),
];

#[test]
fn documents_are_what_scripts_write_of_the_figures_beside_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (document, script, figures) in WRITTEN {
        let scratch = tempfile::tempdir().unwrap();
        let written = scratch.path().join("written.md");
        let output = Command::new("python3")
            .envs([("PYTHONDONTWRITEBYTECODE", "1"), ("PYTHONUTF8", "1")])
            .arg(root.join(script))
            .arg("write")
            .args(figures.iter().map(|figures| root.join(figures)))
            .arg(&written)
            .output();
        let Ok(output) = output else {
            println!("skipped: no python3");
            return;
        };
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        let (found, kept) =
            (std::fs::read_to_string(&written).unwrap(), std::fs::read_to_string(root.join(document)).unwrap());
        assert!(found == kept, "{document} is not what `{script} write` makes of the figures");
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

/// Two runs of the same length with memory that grows in known ways, one of them with buffers.
const GROWTH: &str = r"
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import record_overhead, record_overhead_write
def part(seconds, grows, pool):
    samples = [{'s': s, 'rss_kb': 300000 + (90000 if seconds > 30 and s > 20 else 0) + grows * s // 60, 'anon_kb': 1, 'pool_kb': pool, 'own_kb': pool and pool + 256 * s // 60} for s in range(1, seconds + 1)]
    found = {'samples': samples, 'counted': {'kernels': 9}, 'calls': 3, 'spool_bytes': 10, 'records_bytes': 50, 'drops': None}
    record_overhead.fit(found)
    return found
folder, kept = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
for name in ('overhead.json', 'stays.json'):
    (folder / name).write_text((kept / name).read_text())
machine = json.loads((kept / 'memory.json').read_text())['machine']
found = {'machine': machine, 'alone': part(30, 0, None), 'bare': part(240, 2560, None), 'recorded': part(240, 3072, 65536)}
(folder / 'memory.json').write_text(json.dumps(found))
record_overhead_write.write(folder, folder / 'written.md')
";

#[test]
fn growth_of_memory_is_told_beside_that_of_bare_cupti() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new("python3")
        .envs([("PYTHONDONTWRITEBYTECODE", "1"), ("PYTHONUTF8", "1")])
        .args(["-c", GROWTH])
        .args([&root.join("scripts/measure"), scratch.path(), &root.join("docs/measurements/h200-record-overhead")])
        .output();
    let Ok(output) = output else {
        println!("skipped: no python3");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(scratch.path().join("written.md")).unwrap();
    for said in [
        "less than 1 MiB a minute: all that the recorder has allocated | highest rate for 240 s | yes | 0.25 MiB | |",
        "less than 1 MiB a minute: the recorded process, with CUPTI in it | highest rate for 240 s | no | 3.00 MiB | |",
        "| and of less than 1 MiB a minute more than under bare CUPTI | highest rate for 240 s | yes | 0.50 MiB | |",
        "recorded: +3.00 MiB a minute, from 30 s to 240 s; under the bare client: +2.50 MiB a minute, from 30 s to 240 s",
        "the program alone: +0.00 MiB a minute, from 8 s to 30 s",
        "+0.50 MiB a minute, is the recorder's own.",
        "All that the recorder has allocated took 64.1 MiB at 30 s and 65.0 MiB at the end (+0.25 MiB a minute)",
    ] {
        assert!(text.contains(said), "`{said}` is not in: {text}");
    }
}

/// Two sets of turns in which recording adds 2.1 µs to 4 (in one set a little less), bare CUPTI 2, and Nsight Systems 2.8;
/// the machine's pace changes from one turn to the next and is the same for all.
const TURNS: &str = r"
import sys
sys.path.insert(0, sys.argv[1])
import record_overhead_write
def part(first, second):
    return [{'figures': {'loop': [round(1000 * us * pace) for pace in (1, 1.5, 0.8, 1.2, 2) * 4]}} for us in (first, second)]
found = {'programs': {'off': part(4, 4), 'bubblescope': part(6.1, 6.08), 'bare': part(6, 6), 'nsys': part(6.8, 6.04)}}
print('\n'.join(record_overhead_write.verdict(found)))
";

#[test]
fn what_recording_adds_is_compared_without_the_program_itself() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/measure");
    let output = Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").args(["-c", TURNS]).arg(&scripts).output();
    let Ok(output) = output else {
        println!("skipped: no python3");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // 2.1 and 2.08 of 2; of 2.8 and 2.04, on both sides of the limit.
    for said in [
        "| at most 1.05 × bare CUPTI | launch loop, per launch | yes | 1.045 (1.040 to 1.050), by set 1.050, 1.040 | 1.015 ",
        "| below nsys | launch loop, per launch | not to be told | 0.871 (0.750 to 1.020), by set 0.750, 1.020 | 0.952 ",
        "| below nsys | PyTorch inference, CUDA graph, per request | not measured | | |",
    ] {
        assert!(text.contains(said), "`{said}` is not in: {text}");
    }
}

/// Graphs launched each 100 µs, 40 µs of it inside the launch. With each 50th the thread takes another buffer, on which another
/// thread works: the next two launches take 60 and 30 µs more. In between a launch that hangs, and other launches for some time.
const LAUNCHES: &str = r"
import sys
sys.path.insert(0, sys.argv[1])
import buffer_changes
rows, at = [], 0
def row(kind, tid, length, name='', category=''):
    rows.append({'kind': kind, 'tid': tid, 'start_ns': str(at), 'dur_ns': str(length), 'name': name, 'category': category})
for number in range(1000):
    place = number % 50
    more = {1: 60000, 2: 30000}.get(place, 0)
    row('call', '7', 40000 + more, 'cudaGraphLaunch_v10000' if not 500 <= number < 520 else 'cudaLaunchKernel_v7000')
    if place == 0:
        at += 5000
        row('overhead', '7', 2000, category='profiler-buffer')
        at += 60000
        row('overhead', '9', 200000, category='profiler-buffer')
        row('overhead', '7', 1000, category='lazy-loading')
        at -= 65000
    at += 100000 + more + (5000000 if number == 730 else 0)
print(buffer_changes.behind_changes(rows))
print(buffer_changes.behind_changes(rows[:300]))
";

#[test]
fn launches_behind_a_change_of_buffers_are_told_from_the_others() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/measure");
    let output =
        Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").args(["-c", LAUNCHES]).arg(&scripts).output();
    let Ok(output) = output else {
        println!("skipped: no python3");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let usual = "100000, ".repeat(28) + "100000]";
    // Of the 20 buffers, the first belongs to the warm-up, two to other launches, and the last has no end.
    let expected = format!(
        "{{'changes': 16, 'launches': 50, 'usual_ns': 100000, 'usual_inside_ns': 40000, \
         'behind_ns': [100000, 160000, 130000, {usual}, 'inside_ns': [40000, 100000, 70000, {}, 'said_by_cupti_ns': 200000}}\nNone\n",
        usual.replace("100000", "40000")
    );
    assert_eq!(text, expected);
}

/// What a script is for and how it is called can be asked of it.
#[test]
fn scripts_say_how_they_are_called() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/measure");
    for name in ["recording_cost.py", "import_speed.py", "record_overhead.py"] {
        let command =
            Command::new("python3").env("PYTHONDONTWRITEBYTECODE", "1").arg(folder.join(name)).arg("--help").output();
        let Ok(output) = command else {
            println!("skipped: no python3");
            return;
        };
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert!(told.contains(&format!("{name} ")) && !told.contains("Traceback"), "{told}");
    }
}
