use super::*;
use proptest::prelude::*;

/// The kinds that are decoded.
const DECODED: [u32; 24] = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 17, 22, 36, 37, 38, 39, 48, 49, 51, 52, 53, 56, 58];

const VERSIONS: [u32; 16] =
    [18, 20, 21, 22, 23, 24, 26, 27, 28, 130_000, 130_001, 130_101, 130_202, 130_301, 130_401, 130_500];

/// A record of `kind` whose bytes after the kind are its offsets.
fn record(table: &SizeTable, kind: u32) -> Vec<u8> {
    let size = table.get(kind).unwrap();
    let mut bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
    bytes[..4].copy_from_slice(&kind.to_le_bytes());
    bytes
}

/// One record of every known kind.
fn every_kind(table: &SizeTable) -> Vec<u8> {
    table.iter().flat_map(|(kind, _)| record(table, kind)).collect()
}

#[cfg(target_pointer_width = "64")]
mod layout {
    use super::*;
    use crate::decode::layout::Place;
    use crate::decode::records::places;
    use std::mem::size_of;

    #[test]
    fn every_field_is_where_the_bindings_have_it() {
        for Place { record, field, at, length, c_at, c_length, .. } in places() {
            assert_eq!((at, length), (c_at, c_length), "{record}.{field}");
        }
    }

    #[test]
    fn a_field_is_optional_exactly_if_the_oldest_layout_lacks_it() {
        for Place { record, field, optional, at, length, least, c_size, .. } in places() {
            assert!(at + length <= c_size, "{record}.{field}");
            // Former padding may lie inside the oldest layout and be optional.
            assert!(optional || at + length <= least, "{record}.{field}");
            assert!(optional == (at + length > least) || field == "is_device_launched", "{record}.{field}");
        }
    }

    #[test]
    fn the_text_pointers_are_those_of_the_records() {
        let table = SizeTable::for_version(130_500);
        for kind in DECODED {
            let name = format!("{:?}", records(&table, &record(&table, kind)).next().unwrap());
            let name = name.split_once('(').unwrap().1.split_once(' ').unwrap().0.to_owned();
            let places = places();
            let texts = places.iter().filter(|place| place.record == name && place.text).map(|place| place.at);
            assert!(texts.eq(string_offsets(kind).iter().copied()), "{name}");
        }
    }

    #[test]
    fn the_newest_sizes_are_those_of_the_bindings() {
        let table = SizeTable::for_version(c::CUPTI_API_VERSION);
        assert!(table.is_exact());
        for (kind, size) in [
            (10, size_of::<c::CUpti_ActivityKernel13>()),
            (3, size_of::<c::CUpti_ActivityKernel13>()),
            (1, size_of::<c::CUpti_ActivityMemcpy7>()),
            (22, size_of::<c::CUpti_ActivityMemcpyPtoP4>()),
            (2, size_of::<c::CUpti_ActivityMemset5>()),
            (4, size_of::<c::CUpti_ActivityAPI>()),
            (5, size_of::<c::CUpti_ActivityAPI>()),
            (48, size_of::<c::CUpti_ActivityAPI>()),
            (38, size_of::<c::CUpti_ActivitySynchronization2>()),
            (36, size_of::<c::CUpti_ActivityCudaEvent3>()),
            (51, size_of::<c::CUpti_ActivityGraphTrace2>()),
            (53, size_of::<c::CUpti_ActivityDeviceGraphTrace>()),
            (56, size_of::<c::CUpti_ActivityGraphHostNode>()),
            (58, size_of::<c::CUpti_ActivityHostLaunch>()),
            (17, size_of::<c::CUpti_ActivityOverhead3>()),
            (9, size_of::<c::CUpti_ActivityContext4>()),
            (37, size_of::<c::CUpti_ActivityStream>()),
            (8, size_of::<c::CUpti_ActivityDevice6>()),
            (49, size_of::<c::CUpti_ActivityMemory4>()),
            (12, size_of::<c::CUpti_ActivityMarker2>()),
            (13, size_of::<c::CUpti_ActivityMarkerData2>()),
            (39, size_of::<c::CUpti_ActivityExternalCorrelation>()),
            (52, size_of::<c::CUpti_ActivityJit2>()),
            (11, size_of::<c::CUpti_ActivityName>()),
        ] {
            assert_eq!(table.get(kind), Some(size), "kind {kind}");
        }
    }
}

#[test]
fn every_version_decodes_the_kinds_it_has() {
    for version in VERSIONS {
        let table = SizeTable::for_version(version);
        let buffer = every_kind(&table);
        let mut records = records(&table, &buffer);
        let decoded = records.by_ref().count();
        assert_eq!(decoded, DECODED.iter().filter(|&&kind| table.get(kind).is_some()).count(), "{version}");
        let skipped: BTreeMap<u32, u64> =
            table.iter().filter(|(kind, _)| !DECODED.contains(kind)).map(|(kind, _)| (kind, 1)).collect();
        assert_eq!(
            records.summary(),
            DecodeSummary { records: decoded as u64, skipped, fault: None, unread_bytes: 0 },
            "{version}"
        );
    }
}

#[test]
fn a_field_appears_with_the_version_that_has_it() {
    let kernel = |version| {
        let table = SizeTable::for_version(version);
        let buffer = record(&table, 10);
        match records(&table, &buffer).next() {
            Some(Record::Kernel(kernel)) => kernel,
            other => panic!("{other:?}"),
        }
    };
    let newest = kernel(130_500);
    assert_eq!(newest.start, u64::from_le_bytes([16, 17, 18, 19, 20, 21, 22, 23]));
    assert_eq!(newest.correlation_id, u32::from_le_bytes([92, 93, 94, 95]));
    assert_eq!(newest.source_graph_id, Some(u32::from_le_bytes([232, 233, 234, 235])));
    let without_source = Kernel { source_graph_id: None, source_graph_node_id: None, ..newest };
    assert_eq!(kernel(130_301), without_source);
    assert_eq!(kernel(130_101), without_source);
    assert_eq!(kernel(130_001), Kernel { priority: None, ..without_source });
    assert_eq!(kernel(18), Kernel { priority: None, is_device_launched: None, ..without_source });
}

#[test]
fn former_padding_is_not_read() {
    let launched = |version, kind| {
        let table = SizeTable::for_version(version);
        match records(&table, &record(&table, kind)).next() {
            Some(Record::Memcpy(memcpy)) => memcpy.is_device_launched,
            Some(Record::Memset(memset)) => memset.is_device_launched,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((launched(24, 1), launched(26, 1)), (None, Some(84)));
    assert_eq!((launched(130_301, 2), launched(130_401, 2)), (None, Some(84)));
}

#[test]
fn a_record_shorter_than_any_known_is_stepped_over() {
    let mut table = SizeTable::for_version(18);
    assert!(table.set(10, 200));
    let buffer = record(&table, 10);
    let mut records = records(&table, &buffer);
    assert_eq!(records.next(), None);
    assert_eq!(records.summary(), DecodeSummary { skipped: [(10, 1)].into(), ..DecodeSummary::default() });
}

#[test]
fn domains_of_calls_follow_the_kind() {
    let table = SizeTable::for_version(18);
    let domains: Vec<_> = [5, 4, 48]
        .iter()
        .map(|&kind| match records(&table, &record(&table, kind)).next() {
            Some(Record::Api(call)) => call.domain,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(domains, [ApiDomain::Runtime, ApiDomain::Driver, ApiDomain::InternalLaunch]);
}

#[test]
fn a_buffer_ends_at_what_cannot_be_read() {
    let table = SizeTable::for_version(130_001);
    let good = record(&table, 5);
    for (tail, reason) in [
        (vec![0; 64], FaultReason::Unwritten),
        (99_u32.to_le_bytes().repeat(8), FaultReason::UnknownKind(99)),
        (u32::MAX.to_le_bytes().repeat(8), FaultReason::UnknownKind(u32::MAX)),
        (record(&table, 10)[..215].to_vec(), FaultReason::Cut(10)),
        (vec![5, 0, 0], FaultReason::CutKind),
    ] {
        let buffer = [good.clone(), good.clone(), tail.clone()].concat();
        let mut records = records(&table, &buffer);
        assert_eq!(records.by_ref().count(), 2);
        assert_eq!(records.next(), None);
        let fault = Some(Fault { offset: 80, reason });
        assert_eq!(
            records.summary(),
            DecodeSummary { records: 2, skipped: BTreeMap::new(), fault, unread_bytes: tail.len() as u64 }
        );
    }
}

/// What holds for every byte string.
fn check(table: &SizeTable, buffer: &[u8]) {
    let mut iterator = records(table, buffer);
    let decoded: Vec<Record> = iterator.by_ref().collect();
    assert_eq!(iterator.next(), None);
    let summary = iterator.summary();
    assert_eq!(summary.records, decoded.len() as u64);
    assert_eq!(summary.fault.is_none(), summary.unread_bytes == 0);
    let read = summary.fault.map_or(buffer.len() as u64, |fault| fault.offset);
    assert_eq!(read + summary.unread_bytes, buffer.len() as u64);

    // Stepping by hand gives the same records.
    let mut at = 0;
    let mut steps = 0;
    while at < read as usize {
        at += table.get(u32::from_le_bytes(buffer[at..at + 4].try_into().unwrap())).unwrap();
        steps += 1;
    }
    assert_eq!(at as u64, read);
    assert_eq!(steps, summary.records + summary.skipped.values().sum::<u64>());

    let texts = decoded.iter().flat_map(|record| match record {
        Record::Kernel(kernel) => vec![kernel.name],
        Record::Device(device) => vec![device.name],
        Record::Name(name) => vec![name.name],
        Record::Marker(marker) => vec![marker.name, marker.domain],
        Record::Memory(memory) => vec![memory.name, memory.source.unwrap_or_default()],
        Record::Jit(jit) => vec![jit.cache_path],
        _ => vec![],
    });
    assert!(
        texts
            .filter(|text| !text.is_null())
            .eq(Walk::new(table, buffer).flat_map(|(kind, record)| strings(kind, record)))
    );
}

fn any_table() -> impl Strategy<Value = SizeTable> {
    // Learned sizes keep the decoded kinds at the length of some version, as the library would.
    (prop::sample::select(&VERSIONS[..]), prop::collection::vec((60..1100_u32, 0..70_000_u32), 0..4)).prop_map(
        |(version, learned)| {
            let mut table = SizeTable::for_version(version);
            for (kind, size) in learned {
                table.set(kind, size);
            }
            table
        },
    )
}

proptest! {
    #[test]
    fn no_byte_string_is_too_much(table in any_table(), buffer in prop::collection::vec(any::<u8>(), 0..600)) {
        check(&table, &buffer);
    }

    #[test]
    fn rows_of_kinds_decode_or_end(
        table in any_table(),
        words in prop::collection::vec(prop_oneof![8 => 0..64_u32, 1 => any::<u32>()], 0..400),
        cut in 0..4_usize,
    ) {
        let mut buffer: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        buffer.truncate(buffer.len().saturating_sub(cut));
        check(&table, &buffer);
    }

    #[test]
    fn damaged_buffers_decode_up_to_the_damage(
        table in any_table(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut buffer = every_kind(&table);
        buffer.extend(every_kind(&table));
        for (at, byte) in damage {
            let at = at.index(buffer.len());
            buffer[at] = byte;
        }
        buffer.truncate(cut.index(buffer.len() + 1));
        check(&table, &buffer);
    }
}
