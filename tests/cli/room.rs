//! A recording with more events than there is memory for.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use cupti::spool::{CallbackName, End, Header, Text, Writer};
use cupti_sys::bindings::{
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API,
};
use serde_json::Value;

use super::fixture;
use super::place::{Place, program, text};

/// So many bytes of records, and a limit on the address space in KiB in which they cannot be analysed.
const RECORDS: usize = 192 << 20;
const LIMIT: u32 = 180_000;
/// A limit in which those of 100,000 launches cannot be, of which the program itself takes the greater part.
const LIMIT_OF_PART: u32 = 50_000;

/// Writes a spool whose largest chunk, a buffer, is there again and again.
fn leave_large(path: &Path) {
    /// Of the preamble, and of what stands before each payload: the tag, the encoding, two bytes, and two lengths.
    const PREAMBLE: usize = 12;
    const HEAD: usize = 16;
    let spool = fs::read(fixture("kernels-1/sync.bubcap")).unwrap();
    let mut chunks = Vec::new();
    let mut rest = &spool[PREAMBLE..];
    while rest.len() >= HEAD {
        let length = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap()) as usize;
        let (chunk, after) = rest.split_at(HEAD + length(4));
        chunks.push((length(8), chunk));
        rest = after;
    }
    let largest = (0..chunks.len()).max_by_key(|&at| chunks[at].0).unwrap();
    let mut file = File::create(path).unwrap();
    file.write_all(&spool[..PREAMBLE]).unwrap();
    for (at, (plain, chunk)) in chunks.into_iter().enumerate() {
        let times = if at == largest { RECORDS.div_ceil(plain) } else { 1 };
        (0..times).for_each(|_| file.write_all(chunk).unwrap());
    }
}

/// A command in which no more than the limit can be mapped.
fn limited(command: &Command) -> Command {
    limited_to(LIMIT, command)
}

/// The same with so many KiB.
fn limited_to(limit: u32, command: &Command) -> Command {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -v {limit} && exec \"$0\" \"$@\"")]);
    limited.arg(command.get_program()).args(command.get_args());
    command.get_envs().for_each(|(name, value)| {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    });
    command.get_current_dir().map(|folder| limited.current_dir(folder));
    limited
}

#[test]
fn what_does_not_fit_into_memory_is_kept_as_it_was_written() {
    let place = Place::new();
    let large = place.path("large");
    leave_large(&large);
    let script = "leave large $$; exit 9";
    let record = |options: &[&str], script: &str| {
        let output = limited(&place.record(options, script)).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(9), String::new()));
        let said = text(&output.stderr);
        assert!(said.contains("kept it as it was written") && said.contains("of memory, and"), "{said}");
        said
    };
    fs::write(place.path("t.bubcap"), "another").unwrap();
    let said = record(&["-o", "t.bubbles.parquet", "--report", "r.txt"], script);
    assert!(said.contains("`bubble-report analyze t-2.bubcap`") && said.contains("--capture-range"), "{said}");
    assert!(record(&["-o", "u.bubcap"], &format!("leave \"$1\" 5000001; {script}")).contains("u-1.bubcap u-2.bubcap"));
    let kept = ["large", "t-2.bubcap", "t.bubcap", "u-1.bubcap", "u-2.bubcap"].map(str::to_owned);
    assert_eq!(place.files(), BTreeSet::from(kept));
    let whole = fs::metadata(&large).unwrap().len();
    assert_eq!(fs::metadata(place.path("t-2.bubcap")).unwrap().len(), whole);
    assert_eq!(fs::read(place.path("t.bubcap")).unwrap(), b"another", "nobody named it");

    // Whoever opens it is told before anything is read.
    let mut open = Command::new(program());
    open.arg("analyze").arg(place.path("t-2.bubcap"));
    let output = limited(&open).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("holds more than fits here"), "{said}");
}

/// Writes a spool of so many launches, one each millisecond, with their kernels or without.
fn leave_long(path: &Path, launches: u32, kernels: bool) {
    const EPOCH: u64 = 1_764_000_000_000_000_000;
    let start_realtime_ns = EPOCH as i64;
    // CUPTI of CUDA 13.0 update 1: kernels have 216 bytes and calls 40.
    let header = Header { cupti_version: 130_001, pid: 4242, start_realtime_ns, ..Header::default() };
    let mut out = Writer::new(File::create(path).unwrap(), &header).unwrap();
    out.strings(0, &[Text { pointer: 1, text: "solve".into() }]).unwrap();
    let name = |cbid, name: &str| CallbackName { domain: CUPTI_CB_DOMAIN_RUNTIME_API, cbid, name: name.into() };
    out.callback_names(&[name(211, "cudaLaunchKernel_v7000")]).unwrap();
    let mut buffer = Vec::new();
    let put = |bytes: &mut [u8], at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    for launch in 0..launches {
        let time = EPOCH + u64::from(launch) * 1_000_000;
        let mut call = [0; 40];
        put(&mut call, 0, &CUPTI_ACTIVITY_KIND_RUNTIME.to_le_bytes());
        put(&mut call, 4, &211_u32.to_le_bytes());
        put(&mut call, 8, &time.to_le_bytes());
        put(&mut call, 16, &(time + 5_000).to_le_bytes());
        put(&mut call, 24, &[4242_u32.to_le_bytes(), 4242_u32.to_le_bytes(), (launch + 1).to_le_bytes()].concat());
        let mut kernel = [0; 216];
        put(&mut kernel, 0, &CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL.to_le_bytes());
        put(&mut kernel, 16, &(time + 8_000).to_le_bytes());
        put(&mut kernel, 24, &(time + 600_000).to_le_bytes());
        put(&mut kernel, 44, &[1_u32.to_le_bytes(), 7_u32.to_le_bytes()].concat());
        put(&mut kernel, 92, &(launch + 1).to_le_bytes());
        put(&mut kernel, 104, &1_u64.to_le_bytes());
        buffer.extend_from_slice(&call);
        if kernels {
            buffer.extend_from_slice(&kernel);
        }
        if buffer.len() > 1 << 19 || launch + 1 == launches {
            out.buffer(u64::from(launch), &buffer).unwrap();
            buffer.clear();
        }
    }
    out.end(&End::default()).unwrap();
}

#[test]
fn of_a_recording_with_more_events_than_fit_into_memory_a_part_is_read() {
    let place = Place::new();
    let long = place.path("long.bubcap");
    leave_long(&long, 100_000, true);
    let analyze = |options: &[&str]| {
        let mut analyze = Command::new(program());
        analyze.arg("analyze").arg(&long).args(["--format", "json"]).args(options);
        let output = limited_to(LIMIT_OF_PART, &analyze).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, said) = analyze(&[]);
    assert!(code == Some(2) && said.contains("with --from and --to"), "{said}");
    let (code, report, said) = analyze(&["--from", "60s", "--to", "61s"]);
    assert_eq!(code, Some(0), "{said}");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["devices"][0]["ops"], 1000);
    assert_eq!(report["devices"][0]["busy_ns"], 1000 * 592_000);
    assert_eq!(report["processes"][0]["threads"][0]["calls"], 100_000, "of the whole recording");
}

#[test]
fn of_a_recording_without_device_work_a_part_is_refused_as_the_whole_is() {
    let place = Place::new();
    let long = place.path("long.bubcap");
    leave_long(&long, 9_000, false);
    for (options, launches) in [(&[][..], "9,000 launches"), (&["--from", "3s", "--to", "4s"], "has launches")] {
        let output = Command::new(program()).arg("analyze").arg(&long).args(options).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(launches) && said.contains("GPU activity was not captured"), "{said}");
    }
}
