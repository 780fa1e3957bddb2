//! Writes spools with chunks of every kind into a folder, for the fuzzer to start from:
//! `cargo run --example seeds -- corpus/spool`

use std::path::PathBuf;

use cupti::inject::{Effect, Fault};
use cupti::spool::{
    Anchor, Beside, CallbackName, Drops, End, Header, Machine, Other, RecordSize, Status, Text, Writer,
};

type Chunk = fn(&mut Writer<Vec<u8>>) -> std::io::Result<()>;

const CHUNKS: [(&str, Chunk); 10] = [
    ("beside", |spool| {
        let fault = Fault { pid: 7, message: "full".to_owned(), effect: Effect::EndsEarly, ..Fault::default() };
        let other = Other {
            pid: Some(8),
            name: "python".to_owned(),
            devices: vec!["ab".repeat(16)],
            reason: Some("another tool records it".to_owned()),
            lived: Some((1, 2)),
            has_spool: true,
        };
        spool.beside(&Beside { fault: Some(fault), others: vec![other], remarks: vec!["a remark".to_owned()] })
    }),
    ("sizes", |spool| spool.sizes(&[RecordSize { kind: 10, bytes: 216 }])),
    ("strings", |spool| spool.strings(0, &[Text { pointer: 0x7000_1000, text: "solve".into() }])),
    ("buffer", |spool| {
        let mut kernel = vec![0; 216];
        kernel[0] = 10;
        kernel[16] = 1;
        kernel[24] = 9;
        spool.buffer(0, &kernel.repeat(8))
    }),
    ("names", |spool| {
        spool.callback_names(&[CallbackName { domain: 2, cbid: 211, name: "cudaLaunchKernel_v7000".into() }])
    }),
    ("anchor", |spool| spool.anchor(&Anchor { realtime_ns: 1, monotonic_ns: 2, cupti_ns: 3, uncertainty_ns: 4 })),
    ("drops", |spool| {
        spool.drops(&Drops { records: 1, discarded_buffers: 2, discarded_bytes: 3, unwritten_buffers: 4 })
    }),
    ("status", |spool| spool.status(&Status { held_buffers: 2, off_since_ns: 5 })),
    ("note", |spool| spool.note("recorder", r#"{"process":{"pid_namespace":1,"start_ticks":2}}"#)),
    ("end", |spool| spool.end(&End { buffers: 1, bytes: 216, outstanding: 0 })),
];

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "corpus/spool".into()));
    std::fs::create_dir_all(&folder)?;
    let header = Header {
        cupti_version: 130_001,
        pid: 7,
        command_line: vec!["python".to_owned()],
        machine: Machine { boot: "boot".to_owned(), ..Machine::default() },
        ..Header::default()
    };
    let mut whole = Writer::new(Vec::new(), &header)?;
    for (name, chunk) in CHUNKS {
        let mut alone = Writer::new(Vec::new(), &header)?;
        chunk(&mut alone)?;
        std::fs::write(folder.join(name), alone.into_inner())?;
        chunk(&mut whole)?;
    }
    std::fs::write(folder.join("whole"), whole.into_inner())
}
