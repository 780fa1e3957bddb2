//! A recording with more events than there is memory for.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use super::fixture;
use super::place::{Place, program, text};

/// So many bytes of records, and a limit on the address space in KiB in which they cannot be analysed.
const RECORDS: usize = 192 << 20;
const LIMIT: u32 = 180_000;

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
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -v {LIMIT} && exec \"$0\" \"$@\"")]);
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
