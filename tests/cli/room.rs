//! A recording with more events than there is memory for.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use cupti::spool::{Chunk, Reader, Writer};

use super::fixture;
use super::place::{Place, program, text};

/// So many bytes of records, and a limit on the address space in KiB in which they cannot be analysed.
const RECORDS: usize = 256 << 20;
const LIMIT: u32 = 250_000;

/// Writes a spool whose first buffer is there again and again.
fn leave_large(path: &Path) {
    let source = fs::read(fixture("kernels-1/sync.bubcap")).unwrap();
    let mut reader = Reader::new(&*source).unwrap();
    let mut out = Writer::new(Vec::new(), &reader.header().clone()).unwrap();
    let mut file = File::create(path).unwrap();
    let mut end = None;
    for chunk in &mut reader {
        match chunk.unwrap() {
            Chunk::Sizes(sizes) => out.sizes(&sizes).unwrap(),
            Chunk::Strings { seq, texts } => out.strings(seq, &texts).unwrap(),
            Chunk::CallbackNames(names) => out.callback_names(&names).unwrap(),
            Chunk::Anchor(anchor) => out.anchor(&anchor).unwrap(),
            Chunk::End(found) => end = Some(found),
            Chunk::Buffer { seq, bytes } => {
                let before = out.get_ref().len();
                out.buffer(seq, &bytes).unwrap();
                let again = &out.get_ref()[before..];
                file.write_all(out.get_ref()).unwrap();
                (0..RECORDS / bytes.len()).for_each(|_| file.write_all(again).unwrap());
                break;
            }
            _ => {}
        }
    }
    assert!(end.is_none(), "the buffer comes first");
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
    let said = record(&["-o", "t.bubbles.parquet", "--report", "r.txt"], script);
    assert!(said.contains("`bubble-report analyze t.bubcap`") && said.contains("--capture-range"), "{said}");
    assert!(record(&["-o", "t.json.gz"], script).contains("recorded t-2.bubcap"), "nothing is overwritten");
    assert!(record(&[], script).contains("recorded sh.bubcap"));
    assert!(record(&["-o", "u.bubcap"], &format!("leave \"$1\" 5000001; {script}")).contains("u-1.bubcap u-2.bubcap"));
    let kept = ["large", "sh.bubcap", "t-2.bubcap", "t.bubcap", "u-1.bubcap", "u-2.bubcap"].map(str::to_owned);
    assert_eq!(place.files(), BTreeSet::from(kept));
    let whole = fs::metadata(&large).unwrap().len();
    assert_eq!(fs::metadata(place.path("t.bubcap")).unwrap().len(), whole);

    // Whoever opens it is told before anything is read.
    let mut open = Command::new(program());
    open.arg("analyze").arg(place.path("t.bubcap"));
    let output = limited(&open).output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("holds more than fits here"), "{said}");
}
