use super::frame::{Encoding, HEAD, Head, MAX_PAYLOAD, Tag};
use super::*;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = Box<str>> {
    "\\PC{0,40}".prop_map(Box::from)
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let size = (any::<u32>(), any::<u32>()).prop_map(|(kind, bytes)| RecordSize { kind, bytes });
    let one_text = (any::<u64>(), text()).prop_map(|(pointer, text)| Text { pointer, text });
    let name =
        (any::<u32>(), any::<u32>(), text()).prop_map(|(domain, cbid, name)| CallbackName { domain, cbid, name });
    prop_oneof![
        prop::collection::vec(size, 0..4).prop_map(Chunk::Sizes),
        (any::<u64>(), prop::collection::vec(one_text, 0..4)).prop_map(|(seq, texts)| Chunk::Strings { seq, texts }),
        (any::<u64>(), prop::collection::vec(any::<u8>(), 0..300), 1..20_usize)
            .prop_map(|(seq, bytes, times)| Chunk::Buffer { seq, bytes: bytes.repeat(times) }),
        prop::collection::vec(name, 0..4).prop_map(Chunk::CallbackNames),
        any::<(i64, i64, u64, u32)>().prop_map(|(realtime_ns, monotonic_ns, cupti_ns, uncertainty_ns)| {
            Chunk::Anchor(Anchor { realtime_ns, monotonic_ns, cupti_ns, uncertainty_ns })
        }),
        any::<(u64, u64, u64, u64)>().prop_map(|(records, discarded_buffers, discarded_bytes, unwritten_buffers)| {
            Chunk::Drops(Drops { records, discarded_buffers, discarded_bytes, unwritten_buffers })
        }),
        any::<(u64, i64, u64, u64)>().prop_map(|(held_buffers, off_since_ns, pool_bytes, heap_bytes)| {
            Chunk::Status(Status { held_buffers, off_since_ns, pool_bytes, heap_bytes })
        }),
        (text(), prop::collection::vec("\\PC{0,20}", 0..3)).prop_map(|(name, remarks)| {
            let other = Other { pid: Some(7), name: name.into(), lived: Some((1, i64::MAX)), ..Other::default() };
            Chunk::Beside(Box::new(Beside { fault: None, others: vec![other], remarks }))
        }),
        (text(), text()).prop_map(|(key, json)| Chunk::Note(Note { key, json })),
    ]
}

fn header() -> Header {
    Header {
        recorder: "test".into(),
        cupti_version: 130_001,
        driver_version: 13_000,
        pid: 7,
        exe: "/bin/true".into(),
        command_line: vec!["true".into(), "ü".into()],
        start_realtime_ns: 1_700_000_000_000_000_000,
        kinds: vec![10, 1],
        graphs: Graphs::Graph,
        sizes: vec![RecordSize { kind: 10, bytes: 216 }],
        ..Header::default()
    }
}

fn write(chunks: &[Chunk]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for chunk in chunks {
        writer.chunk(chunk).unwrap();
    }
    let written = writer.written();
    let bytes = writer.into_inner();
    assert_eq!(written, bytes.len() as u64);
    bytes
}

fn read(bytes: &[u8]) -> (Vec<Chunk>, Option<Ending>, Option<SpoolError>) {
    let mut reader = Reader::new(bytes).unwrap();
    assert_eq!(reader.header(), &header());
    let mut chunks = Vec::new();
    let mut error = None;
    for chunk in reader.by_ref() {
        match chunk {
            Ok(chunk) => chunks.push(chunk),
            Err(e) => error = Some(e),
        }
    }
    (chunks, reader.ending(), error)
}

proptest! {
    #[test]
    fn what_is_written_is_read(mut chunks in prop::collection::vec(chunk(), 0..8), end in any::<(u64, u64, u64)>()) {
        chunks.push(Chunk::End(End { buffers: end.0, bytes: end.1, outstanding: end.2 }));
        let bytes = write(&chunks);
        let (got, ending, error) = read(&bytes);
        prop_assert_eq!(&got, &chunks);
        prop_assert_eq!(ending, Some(Ending::Complete));
        prop_assert!(error.is_none());

        let mut small = Vec::new();
        compact(bytes.as_slice(), &mut small, Paths::Keep).unwrap();
        prop_assert_eq!(read(&small).0, chunks);
    }

    #[test]
    fn every_cut_keeps_all_whole_chunks(chunks in prop::collection::vec(chunk(), 0..6), packed in any::<bool>()) {
        let mut bytes = write(&chunks);
        if packed {
            let plain = std::mem::take(&mut bytes);
            compact(plain.as_slice(), &mut bytes, Paths::Keep).unwrap();
        }
        // Where each chunk ends, found by reading the whole.
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        let mut ends = vec![reader.offset() as usize];
        while let Some(chunk) = reader.next() {
            chunk.unwrap();
            ends.push(reader.offset() as usize);
        }
        for length in 0..=bytes.len() {
            let cut = &bytes[..length];
            let whole = ends.iter().filter(|&&end| end <= length).count();
            let Some(whole) = whole.checked_sub(1) else {
                let nothing = matches!(Reader::new(cut), Err(SpoolError::NoHeader { .. } | SpoolError::NotASpool));
                prop_assert!(nothing);
                continue;
            };
            let (got, ending, error) = read(cut);
            prop_assert_eq!(&got[..], &chunks[..whole]);
            prop_assert!(error.is_none());
            let expected = if ends[whole] == length {
                Ending::Unfinished
            } else {
                Ending::Cut { offset: ends[whole] as u64, bytes: (length - ends[whole]) as u64 }
            };
            prop_assert_eq!(ending, Some(expected));
        }
    }

    #[test]
    fn a_changed_byte_is_noticed_and_what_came_before_is_kept(
        chunks in prop::collection::vec(chunk(), 1..6), at in any::<prop::sample::Index>(), change in 1..=255u8,
    ) {
        let mut bytes = write(&chunks);
        let start = Reader::new(bytes.as_slice()).unwrap().offset() as usize;
        let at = start + at.index(bytes.len() - start);
        bytes[at] ^= change;
        let (got, ending, error) = read(&bytes);
        prop_assert!(got.len() < chunks.len());
        prop_assert_eq!(&got[..], &chunks[..got.len()]);
        // A longer claimed length looks like a cut; everything else is an error.
        let noticed = error.is_some() || matches!(ending, Some(Ending::Cut { .. }));
        prop_assert!(noticed);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), behind_header in any::<bool>()) {
        let mut spool = if behind_header { write(&[]) } else { Vec::new() };
        spool.extend(bytes);
        if let Ok(reader) = Reader::new(spool.as_slice()) {
            for chunk in reader {
                let _ = chunk;
            }
        }
    }

    /// Chunks whose checksum is right but whose payload is anything.
    #[test]
    fn random_payloads_never_panic(tag in 0..14u8, encoding in 0..3u8, plain in any::<u16>(),
                                   payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut spool = write(&[]);
        let mut head = frame::Head {
            tag, encoding, zero: 0, stored: payload.len() as u32,
            plain: if encoding == 0 { payload.len() as u32 } else { u32::from(plain) }, crc: 0,
        };
        head.crc = head.checksum(&[&payload]);
        spool.extend(head.to_bytes());
        spool.extend(&payload);
        for chunk in Reader::new(spool.as_slice()).unwrap() {
            let _ = chunk;
        }
    }
}

#[test]
fn a_length_without_bytes_takes_no_memory() {
    let mut spool = write(&[]);
    let before = spool.len() as u64;
    let head = frame::Head { tag: 4, encoding: 0, zero: 0, stored: MAX_PAYLOAD, plain: MAX_PAYLOAD, crc: 0 };
    spool.extend(head.to_bytes());
    let mut reader = Reader::new(spool.as_slice()).unwrap();
    assert!(reader.next().is_none());
    assert_eq!(reader.ending(), Some(Ending::Cut { offset: before, bytes: HEAD as u64 }));
    assert!(reader.stored.capacity() < 1 << 16);
}

#[test]
fn a_header_to_give_away_names_no_folder() {
    let mut before = header();
    before.cupti_path = "/home/me/venv/libcupti.so.13".into();
    before.command_line[0] = "/home/me/true".into();
    let json = serde_json::to_string(&before.without_paths()).unwrap();
    assert!(!json.contains('/'), "{json}");
    assert!(json.contains("libcupti.so.13") && json.contains("true"));
}

#[test]
fn an_unknown_chunk_is_passed_over() {
    let mut spool = write(&[]);
    let mut head = frame::Head { tag: 200, encoding: 0, zero: 0, stored: 3, plain: 3, crc: 0 };
    head.crc = head.checksum(&[b"abc"]);
    spool.extend(head.to_bytes());
    spool.extend(b"abc");
    let note = Chunk::Note(Note { key: "k".into(), json: "1".into() });
    let whole = write(std::slice::from_ref(&note));
    let start = Reader::new(whole.as_slice()).unwrap().offset() as usize;
    spool.extend(&whole[start..]);
    let mut reader = Reader::new(spool.as_slice()).unwrap();
    assert_eq!(reader.next().unwrap().unwrap(), note);
    assert_eq!(reader.skipped(), 1);
}

/// `spool` with one more chunk of any payload.
fn with_chunk(mut spool: Vec<u8>, tag: Tag, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    spool.extend(Head::new(tag, Encoding::Plain, length, length, &[payload]).to_bytes());
    spool.extend(payload);
    spool
}

#[test]
fn what_later_recorders_add_is_passed_over() {
    let known = [7u64.to_le_bytes(), (-5i64).to_le_bytes(), 9u64.to_le_bytes(), 11u64.to_le_bytes()].concat();
    for (status, pool_bytes, heap_bytes) in
        [(&known[..16], 0, 0), (&known[..24], 9, 0), (&known, 9, 11), (&[&known, &b"more"[..]].concat(), 9, 11)]
    {
        let spool = with_chunk(write(&[]), Tag::Status, status);
        let expected = Status { held_buffers: 7, off_since_ns: -5, pool_bytes, heap_bytes };
        assert_eq!(read(&spool).0, [Chunk::Status(expected)]);
    }
    let spool = with_chunk(write(&[]), Tag::Beside, b"\x02\0\0\0of another form");
    let mut later = Reader::new(spool.as_slice()).unwrap();
    assert!(later.next().is_none());
    assert_eq!((later.skipped(), later.ending()), (1, Some(Ending::Unfinished)));
    for malformed in [&b"\x01\0\0"[..], b"\x01\0\0\0no JSON"] {
        assert!(matches!(read(&with_chunk(write(&[]), Tag::Beside, malformed)).2, Some(SpoolError::Malformed { .. })));
    }
}

#[test]
fn a_spool_is_annotated_wherever_it_was_cut() {
    let whole = write(&[Chunk::Buffer { seq: 0, bytes: vec![7; 100] }, Chunk::End(End::default())]);
    let header = Reader::new(whole.as_slice()).unwrap().offset() as usize;
    let said = Beside { remarks: vec!["see /home/me/file.txt there".into()], ..Beside::default() };
    for length in header..=whole.len() {
        let cut = &whole[..length];
        let mut out = Vec::new();
        annotate(cut, &mut out, &said).unwrap();
        let (mut chunks, ending, error) = read(&out);
        assert_eq!(chunks.remove(0), Chunk::Beside(Box::new(said.clone())));
        let added = (out.len() - length) as u64;
        let (before, its_ending, _) = read(cut);
        let moved = match its_ending {
            Some(Ending::Cut { offset, bytes }) => Some(Ending::Cut { offset: offset + added, bytes }),
            other => other,
        };
        assert_eq!((chunks, ending, error.is_none()), (before, moved, true), "cut at {length}");
    }
    let (mut out, mut given) = (Vec::new(), Vec::new());
    annotate(whole.as_slice(), &mut out, &said).unwrap();
    compact(out.as_slice(), &mut given, Paths::Leave).unwrap();
    let first = Reader::new(given.as_slice()).unwrap().next().unwrap().unwrap();
    let Chunk::Beside(left) = first else { panic!("it is kept") };
    assert_eq!(left.remarks, ["see file.txt there"]);
}

#[test]
fn a_full_disk_stops_the_writer_for_good() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let n = bytes.len().min(self.0);
            self.0 -= n;
            if n == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(n) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let room = write(&[]).len() + HEAD + 4;
    let mut writer = Writer::new(Full(room), &header()).unwrap();
    assert_eq!(writer.buffer(0, &[1; 100]).unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    writer.out.0 = 1 << 20;
    assert!(writer.note("k", "1").is_err(), "a chunk after half a chunk could not be found again");
}

#[test]
fn later_texts_replace_earlier_ones() {
    let mut strings = Strings::default();
    strings.extend(vec![Text { pointer: 1, text: "a".into() }, Text { pointer: 2, text: "b".into() }]);
    strings.extend(vec![Text { pointer: 1, text: "c".into() }]);
    assert_eq!((strings.get(1), strings.get(2), strings.get(3)), (Some("c"), Some("b"), None));
}

/// A chunk of `length` zeros, which compression makes tiny.
fn bomb(tag: Tag, encoding: Encoding, length: u32) -> Vec<u8> {
    let plain = vec![0; length as usize];
    let packed = match encoding {
        Encoding::Plain => plain,
        Encoding::Zstd => zstd::bulk::compress(&plain, 1).unwrap(),
        Encoding::Lz4 => lz4_flex::block::compress(&plain),
    };
    let head = Head::new(tag, encoding, length, packed.len() as u32, &[&packed]);
    [&head.to_bytes()[..], &packed].concat()
}

#[test]
fn no_chunk_grows_beyond_what_the_file_can_hold() {
    let tags = (0..=u8::MAX).filter_map(Tag::from_u8);
    for (tag, encoding) in tags.flat_map(|tag| [(tag, Encoding::Zstd), (tag, Encoding::Lz4)]) {
        // Alone too long for its kind, together too much for the file.
        for (length, count) in [((tag.longest() + 1).min(64 << 20), 1), (tag.longest().min(3 << 20), 200)] {
            let mut spool = write(&[]);
            spool.extend(bomb(tag, encoding, length).repeat(count));
            let mut bytes = 0;
            let mut refused = false;
            for chunk in Reader::new(spool.as_slice()).unwrap() {
                match chunk {
                    Ok(Chunk::Buffer { bytes: buffer, .. }) => bytes += buffer.len(),
                    Ok(Chunk::Sizes(sizes)) => bytes += sizes.len() * 8,
                    Ok(Chunk::Strings { texts, .. }) => bytes += texts.len() * 12,
                    Ok(Chunk::CallbackNames(names)) => bytes += names.len() * 12,
                    Ok(_) => {}
                    Err(SpoolError::TooLong { .. } | SpoolError::Malformed { .. }) => refused = true,
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(refused || length <= 64 << 10, "{tag:?}: {count} of {length}");
            assert!(bytes <= spool.len() * 128 + (8 << 20), "{tag:?}: {bytes} bytes of {}", spool.len());
        }
    }
}

#[test]
fn buffers_are_written_small_by_a_recorder_and_smaller_for_keeping() {
    // Records of one kind that differ by some counters, as launches do.
    let mut bytes = Vec::new();
    for launch in 0..20_000_u64 {
        let mut record = [0_u8; 144];
        record[0] = 10;
        record[16..24].copy_from_slice(&(1_700_000_000_000_000_000 + launch * 2_317).to_le_bytes());
        record[24..32].copy_from_slice(&(1_700_000_000_000_001_411 + launch * 2_317).to_le_bytes());
        record[60..64].copy_from_slice(&(launch as u32).to_le_bytes());
        bytes.extend_from_slice(&record);
    }
    let chunks = [Chunk::Buffer { seq: 0, bytes }];
    let recorded = write(&chunks);
    let mut kept = Vec::new();
    compact(recorded.as_slice(), &mut kept, Paths::Keep).unwrap();
    assert!(recorded.len() < 20_000 * 144 / 3, "{}", recorded.len());
    assert!(kept.len() < recorded.len() / 2, "{} of {}", kept.len(), recorded.len());
    for spool in [recorded, kept] {
        let (got, _, error) = read(&spool);
        assert!(error.is_none() && got == chunks, "{error:?}");
    }
}

#[test]
fn a_compact_spool_is_never_too_small_to_be_read() {
    let chunks: Vec<_> = (0..12).map(|seq| Chunk::Buffer { seq, bytes: vec![0; 2 << 20] }).collect();
    let mut small = Vec::new();
    compact(write(&chunks).as_slice(), &mut small, Paths::Keep).unwrap();
    assert!(small.len() < 12 * (2 << 20) / 4);
    let (got, _, error) = read(&small);
    assert!(error.is_none() && got == chunks, "{error:?}");
}

#[test]
fn many_texts_are_written_in_chunks_that_are_read() {
    let texts: Vec<_> = (0..70).map(|pointer| Text { pointer, text: "x".repeat(300 << 10).into() }).collect();
    let spool = write(&[Chunk::Strings { seq: 5, texts: texts.clone() }]);
    let mut got = Vec::new();
    for chunk in Reader::new(spool.as_slice()).unwrap() {
        let Chunk::Strings { seq: 5, texts } = chunk.unwrap() else { panic!("only texts were written") };
        got.extend(texts);
    }
    assert!(got == texts);
}

#[test]
fn an_error_names_each_cause_once_and_what_failed() {
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = compact(write(&[]).as_slice(), Broken, Paths::Keep).unwrap_err();
    assert!(matches!(error, SpoolError::Write { .. }), "the source is good: {error}");
    assert!(!error.to_string().contains("no space"), "a cause is told by `source` alone");
}

#[test]
fn the_rest_can_be_passed_over() {
    let spool = write(&[Chunk::Buffer { seq: 0, bytes: vec![7; 40_000] }]);
    let mut reader = Reader::new(spool.as_slice()).unwrap();
    assert_eq!(reader.skip_rest().unwrap(), spool.len() as u64);
    assert!(reader.next().is_none());
}

/// A buffer of so many kernel records that differ by some counters, by the sizes of [`header`].
fn kernels(count: u64) -> Vec<u8> {
    let record = |launch: u64| {
        let mut record = [0_u8; 216];
        record[0] = 10;
        record[16..24].copy_from_slice(&(1_700_000_000_000_000_000 + launch * 2_317).to_le_bytes());
        record[60..64].copy_from_slice(&(launch as u32).to_le_bytes());
        record
    };
    (0..count).flat_map(record).collect()
}

#[test]
fn a_long_buffer_is_cut_into_pieces_of_whole_records_and_a_cut_loses_only_the_tail() {
    let bytes = kernels(40_000);
    let recorded = write(&[Chunk::Buffer { seq: 3, bytes: bytes.clone() }, Chunk::End(End::default())]);
    let mut kept = Vec::new();
    compact(recorded.as_slice(), &mut kept, Paths::Keep).unwrap();
    for (spool, about) in [(recorded, 1_usize << 20), (kept, 384 << 10)] {
        let buffers = |spool: &[u8]| -> Vec<Vec<u8>> {
            let chunks = read(spool).0.into_iter();
            chunks
                .filter_map(|chunk| match chunk {
                    Chunk::Buffer { seq, bytes } => {
                        assert_eq!(seq, 3);
                        Some(bytes)
                    }
                    _ => None,
                })
                .collect()
        };
        let pieces = buffers(&spool);
        assert_eq!(pieces.concat(), bytes);
        assert!(pieces.len() >= bytes.len() / about / 2 && pieces.len() > 3);
        for piece in &pieces {
            assert!(piece.len() % 216 == 0 && piece.len() <= 2 * about + 216 && piece.len() * 2 > about);
        }
        for part in 1..16 {
            let length = spool.len() * part / 16;
            let kept = buffers(&spool[..length]).concat();
            assert!(bytes.starts_with(&kept) && kept.len() % 216 == 0);
            // Compression is even here: no more is lost than two pieces.
            assert!(kept.len() + 4 * about >= bytes.len() * part / 16, "{part}: {}", kept.len());
        }
    }
    // Without a known size nothing can be cut.
    let strange = vec![9; 3 << 20];
    assert_eq!(
        read(&write(&[Chunk::Buffer { seq: 0, bytes: strange.clone() }])).0,
        [Chunk::Buffer { seq: 0, bytes: strange }]
    );
}

proptest! {
    #[test]
    fn an_outline_tells_what_a_reader_finds(chunks in prop::collection::vec(chunk(), 0..12), part in 0.0..=1.0) {
        let mut spool = write(&chunks);
        // Wherever it is cut.
        spool.truncate((spool.len() as f64 * part) as usize);
        let told = outline(std::io::Cursor::new(&spool)).unwrap();
        let mut found = Outline::default();
        let reader = Reader::new(spool.as_slice());
        for chunk in reader.into_iter().flatten().flatten() {
            match chunk {
                // The number stands before the records.
                Chunk::Buffer { bytes, .. } => found.record_bytes += bytes.len() as u64 + 8,
                Chunk::Anchor(anchor) => found.last_anchor = Some(anchor),
                _ => {}
            }
        }
        prop_assert_eq!(told.last_anchor, found.last_anchor);
        // Of a chunk that is cut the length is known all the same.
        prop_assert!(told.record_bytes >= found.record_bytes);
        if part == 1.0 {
            prop_assert_eq!(told.record_bytes, found.record_bytes);
        }
    }
}

#[test]
fn an_extract_has_the_wanted_records_and_nothing_that_others_need() {
    let record = |kind: u32, len: usize| [&kind.to_le_bytes()[..], &vec![7; len - 4]].concat();
    let table = header().size_table();
    let [kernel, device] = [10, 8].map(|kind| record(kind, table.get(kind).unwrap()));
    let texts = vec![Text { pointer: 1, text: "k".into() }];
    let note = |key: &str| Chunk::Note(Note { key: key.into(), json: "{}".into() });
    let spool = write(&[
        Chunk::Strings { seq: 0, texts },
        Chunk::Buffer { seq: 0, bytes: [&kernel[..], &device, &kernel].concat() },
        note("a"),
        Chunk::Buffer { seq: 1, bytes: kernel.repeat(3) },
        Chunk::Sizes(vec![RecordSize { kind: 10, bytes: 224 }]),
        Chunk::Buffer { seq: 2, bytes: [record(10, 224), device.clone(), device.clone()].concat() },
        Chunk::End(End::default()),
    ]);
    let expected = [
        Chunk::Buffer { seq: 0, bytes: device.clone() },
        note("a"),
        Chunk::Sizes(vec![RecordSize { kind: 10, bytes: 224 }]),
        Chunk::Buffer { seq: 2, bytes: device.repeat(2) },
        Chunk::End(End::default()),
    ];
    assert_eq!(read(&extract(spool.as_slice(), &[8]).unwrap()).0, expected);
    // Of one that is cut, what is whole.
    let end = HEAD + 24;
    let cut = extract(&spool[..spool.len() - end - 1], &[8]).unwrap();
    assert_eq!(read(&cut).0, expected[..3]);
    assert!(extract(&spool[..5], &[8]).is_err());
}
