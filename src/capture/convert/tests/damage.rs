//! What was lost while recording, what is damaged, and what cannot be read.

use cupti::spool::{Drops, End, Ending, Reader, Status, Text, Writer};

use super::super::{ConvertError, Survey, trace_from_bytes, trace_from_spools};
use super::{Bytes, DEVICE_NAME, call, convert, device, header, joined, kernel, spool};
use crate::analysis::{Options, analyze};
use crate::report::text::counted;

#[test]
fn losses_are_counted_and_told() {
    let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
    out.drops(&Drops { records: 3, ..Drops::default() }).unwrap();
    out.drops(&Drops { records: 5, discarded_buffers: 2, discarded_bytes: 100, unwritten_buffers: 1 }).unwrap();
    let mut damaged = joined(&[call(0, 10, 211, 1)]);
    damaged.extend(900u32.to_le_bytes());
    damaged.extend([0; 8]);
    out.buffer(0, &damaged).unwrap();
    let mut flushed = joined(&[call(20, 30, 211, 2)]);
    flushed.extend([0; 40]);
    out.buffer(1, &flushed).unwrap();
    let trace = convert(&out.into_inner());
    assert_eq!(trace.calls.len(), 2);
    assert_eq!(trace.meta.losses.dropped_records, 5 + 2 + 1);
    assert_eq!(trace.meta.losses.cut_bytes, 12 + 40);
    let warnings = trace.meta.warnings.join("\n");
    for part in ["2 buffers were discarded (100 bytes)", "1 buffer is missing", "kind 900", "not stopped in order"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}

#[test]
fn a_spool_cut_anywhere_gives_its_whole_buffers() {
    let buffers: Vec<Vec<u8>> = (0..5)
        .map(|at| joined(&[call(at * 100, at * 100 + 10, 211, 1), kernel(at * 100 + 20, at * 100 + 30, 7, 1)]))
        .collect();
    let whole = spool(&header(4242), &buffers);
    for length in 0..=whole.len() {
        let cut = &whole[..length];
        let (kept, damaged_at) = match Reader::new(cut) {
            Ok(mut reader) => {
                let chunks = reader.by_ref();
                let kept = chunks.filter(|chunk| matches!(chunk, Ok(cupti::spool::Chunk::Buffer { .. }))).count();
                match reader.ending() {
                    Some(Ending::Cut { offset, .. }) => (kept, Some(offset)),
                    _ => (kept, None),
                }
            }
            Err(_) => {
                assert!(matches!(trace_from_bytes(&[cut]), Err(ConvertError::Spool { .. })));
                continue;
            }
        };
        if let (0, Some(at)) = (kept, damaged_at) {
            let refused = trace_from_bytes(&[cut]);
            assert!(matches!(refused, Err(ConvertError::Cut { offset, .. }) if offset == at), "cut at {length}");
            continue;
        }
        let trace = convert(cut);
        assert_eq!(trace.meta.losses.damaged_at, damaged_at, "cut at {length}");
        assert_eq!((trace.ops.len(), trace.calls.len()), (kept, kept), "cut at {length}");
        assert_eq!(trace.meta.warnings.is_empty(), length == whole.len());
    }
}

#[test]
fn what_stands_behind_the_end_of_a_spool_is_told() {
    let buffer = joined(&[call(0, 10, 211, 1), kernel(20, 30, 7, 1)]);
    let one = spool(&header(4242), &[buffer]);
    assert!(!convert(&one).meta.warnings.iter().any(|warning| warning.contains("behind")));
    for more in [&one[..], b"x"] {
        let both = convert(&[&one, more].concat());
        assert_eq!(both.ops.len(), 1);
        let said = format!("{} behind the end of the recording", counted(more.len() as u64, "byte", "bytes"));
        assert!(both.meta.warnings.iter().any(|warning| warning.starts_with(&said)), "{:?}", both.meta.warnings);
    }
}

#[test]
fn a_flipped_byte_anywhere_is_told_with_its_place() {
    let buffers: Vec<Vec<u8>> = (0..3)
        .map(|at| joined(&[call(at * 100, at * 100 + 10, 211, 1), kernel(at * 100 + 20, at * 100 + 30, 7, 1)]))
        .collect();
    let whole = spool(&header(4242), &buffers);
    let header_ends = usize::try_from(Reader::new(whole.as_slice()).unwrap().offset()).unwrap();
    let mut kept = [0; 4];
    for at in header_ends..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let told = match trace_from_bytes(&[&damaged]) {
            Ok(trace) => {
                kept[trace.ops.len()] += 1;
                let losses = trace.meta.losses;
                let place = losses.damaged_at.unwrap();
                assert!(losses.is_damaged() && losses.cut_bytes == whole.len() as u64 - place);
                assert!(trace.meta.warnings[0].contains(&format!("at byte {place}")), "{:?}", trace.meta.warnings);
                place
            }
            Err(ConvertError::Cut { offset, .. }) => offset,
            Err(ConvertError::Spool { source, .. }) => source.damaged_at().unwrap(),
            Err(error) => panic!("{error}"),
        };
        assert!(told <= at as u64, "the chunk of byte {at} starts before it, not at {told}");
    }
    assert!(kept[1] > 0 && kept[2] > 0, "whole chunks before the damage are kept: {kept:?}");
}

#[test]
fn a_spool_cannot_make_many_long_names_of_one() {
    let long = "n".repeat(60 << 10);
    let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
    out.strings(0, &[Text { pointer: DEVICE_NAME, text: long.into() }]).unwrap();
    let devices: Vec<Bytes> = (0..3000).map(|id| device(id, 0)).collect();
    out.buffer(0, &joined(&devices)).unwrap();
    let bytes = out.into_inner();
    let survey = Survey::of(Reader::new(bytes.as_slice()).unwrap()).unwrap();
    assert!((1..3000).contains(&survey.devices.len()));
    assert!(survey.devices.iter().all(|(_, name)| (1..300).contains(&name.len())));
}

#[test]
fn an_error_names_each_cause_once() {
    let whole = spool(&header(1), &[joined(&[call(0, 10, 211, 1)])]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.bubcap");
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let Err(error) = crate::open::open(&path) else { continue };
        let line = format!("{:#}", anyhow::Error::from(error));
        let mut parts: Vec<_> = line.split(": ").collect();
        parts.sort_unstable();
        assert!(parts.windows(2).all(|pair| pair[0] != pair[1]), "{line}");
        assert_eq!(line.matches("one.bubcap").count(), 1, "{line}");
    }
}

#[test]
fn buffers_that_were_not_given_back_are_counted_with_an_end_and_without() {
    for (statuses, end, held) in
        [(&[2, 3][..], None, 3), (&[2, 0], None, 0), (&[2], Some(1), 1), (&[2], Some(0), 0), (&[], None, 0)]
    {
        let mut out = Writer::new(Vec::new(), &header(1)).unwrap();
        out.buffer(0, &joined(&[kernel(0, 50, 7, 0)])).unwrap();
        for &held_buffers in statuses {
            out.status(&Status { held_buffers, ..Status::default() }).unwrap();
        }
        if let Some(outstanding) = end {
            out.end(&End { outstanding, ..End::default() }).unwrap();
        }
        let trace = convert(&out.into_inner());
        assert_eq!(trace.meta.losses.held_buffers, held);
        let quality = analyze(&trace, &Options::default()).quality;
        assert_eq!(quality.idle_reliable, held == 0, "{:?}", quality.reasons);
        assert_eq!(
            quality.reasons.iter().filter(|reason| reason.contains("not given back")).count(),
            usize::from(held > 0)
        );
    }
}

#[test]
fn paths_are_read_and_named_in_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bubcap");
    std::fs::write(&path, spool(&header(1), &[joined(&[call(0, 10, 211, 1)])])).unwrap();
    assert_eq!(trace_from_spools(&[&path]).unwrap().calls.len(), 1);
    let none = trace_from_spools(&[&folder.path().join("none.bubcap")]).unwrap_err();
    assert!(none.to_string().contains("none.bubcap"), "{none}");
    std::fs::write(&path, "something else").unwrap();
    assert!(trace_from_spools(&[&path]).unwrap_err().to_string().contains("a.bubcap"));
    assert!(matches!(trace_from_spools(&[]), Err(ConvertError::NoSpool)));
}
