//! Decodes buffers that CUPTI filled on a GPU, and compares them with what a C program printed of the same records
//! through CUPTI's own structs.

#![expect(clippy::unwrap_used, reason = "a test that fails on what it does not find")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use cupti::decode::{ApiDomain, DecodeSummary, Record, SizeTable, StringPtr, records, strings};
use cupti_sys::bindings as c;

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The folder beside the project, if there is one.
fn corpus() -> Option<PathBuf> {
    let corpus = std::env::var_os("BUBBLESCOPE_CORPUS");
    if corpus.is_none() {
        println!("skipped: BUBBLESCOPE_CORPUS is not set");
    }
    corpus.map(|corpus| Path::new(&corpus).join("cupti"))
}

struct Recording {
    table: SizeTable,
    buffer: Vec<u8>,
    dump: String,
}

impl Recording {
    fn read(folder: &Path) -> Self {
        let dump = std::fs::read_to_string(folder.join("h200_cupti130001_dump.txt")).unwrap();
        let buffer = std::fs::read(folder.join("h200_cupti130001_raw.bin")).unwrap();
        let version = dump.lines().next().unwrap().strip_prefix("cupti ").unwrap();
        let table = SizeTable::for_version(version.parse().unwrap());
        assert!(table.is_exact());
        Self { table, buffer, dump }
    }

    /// The lines of the dump that describe records.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.dump.lines().filter(|line| ["D ", "R ", "K ", "O "].iter().any(|start| line.starts_with(start)))
    }
}

/// Ids that stand for names: each id has one name and each name one id.
#[derive(Default)]
struct Names<Id>(HashMap<Id, String>, HashMap<String, Id>);

impl<Id: Copy + Eq + std::hash::Hash + std::fmt::Debug> Names<Id> {
    fn agree(&mut self, id: Id, name: &str) {
        assert_eq!(self.0.entry(id).or_insert_with(|| name.to_owned()), name, "{id:?}");
        assert_eq!(*self.1.entry(name.to_owned()).or_insert(id), id, "{name}");
    }
}

/// The first records are printed; memsets and the like are not.
fn the_first_records_are_those_of_the_dump(recording: &Recording) {
    let mut functions = Names::default();
    let mut kernels = Names::default();
    let mut lines = recording.lines();
    for record in records(&recording.table, &recording.buffer).take(400) {
        let printed = match record {
            Record::Api(call) => {
                let line = lines.next().expect("a line for every call");
                let name = line.rsplit(' ').next().unwrap();
                functions.agree((call.domain, call.cbid), name);
                let letter = if call.domain == ApiDomain::Driver { 'D' } else { 'R' };
                let (start, end) = (call.start, call.end);
                (line, format!("{letter} {start} {end} dur {} corr {} {name}", end - start, call.correlation_id))
            }
            Record::Kernel(kernel) => {
                let line = lines.next().expect("a line for every kernel");
                let name = line.rsplit(' ').next().unwrap();
                kernels.agree(kernel.name, name);
                let (start, end) = (kernel.start, kernel.end);
                let shown = format!(
                    "K {start} {end} dur {} corr {} stream {} graph {} node {} q {} s {} name {name}",
                    end - start,
                    kernel.correlation_id,
                    kernel.stream_id,
                    kernel.graph_id,
                    kernel.graph_node_id,
                    kernel.queued,
                    kernel.submitted
                );
                (line, shown)
            }
            Record::Overhead(overhead) => {
                let shown = format!(
                    "O kind {} dur {} corr {}",
                    overhead.overhead_kind,
                    overhead.end - overhead.start,
                    overhead.correlation_id.unwrap()
                );
                (lines.next().expect("a line for every overhead"), shown)
            }
            Record::Memset(_) => continue,
            other => panic!("not in the first records: {other:?}"),
        };
        assert_eq!(printed.0, printed.1);
    }
    assert_eq!(lines.next(), None);
    functions.agree((ApiDomain::Runtime, c::CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000), "cudaLaunchKernel_v7000");
    functions.agree((ApiDomain::Driver, c::CUPTI_DRIVER_TRACE_CBID_cuDeviceGetAttribute), "cuDeviceGetAttribute");
    assert_eq!(kernels.0.len(), 2);
}

/// The dump ends with ` kind K: COUNT` lines.
fn the_counts_are_those_of_the_dump(recording: &Recording) {
    let expected: BTreeMap<u32, usize> = recording
        .dump
        .lines()
        .filter_map(|line| line.strip_prefix(" kind ")?.split_once(": "))
        .map(|(kind, count)| (kind.parse().unwrap(), count.parse().unwrap()))
        .collect();

    let mut found = BTreeMap::new();
    let mut records = records(&recording.table, &recording.buffer);
    for record in &mut records {
        let kind = match record {
            Record::Memcpy(_) => c::CUPTI_ACTIVITY_KIND_MEMCPY,
            Record::Memset(_) => c::CUPTI_ACTIVITY_KIND_MEMSET,
            Record::Api(call) if call.domain == ApiDomain::Driver => c::CUPTI_ACTIVITY_KIND_DRIVER,
            Record::Api(_) => c::CUPTI_ACTIVITY_KIND_RUNTIME,
            Record::Kernel(_) => c::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
            Record::Overhead(_) => c::CUPTI_ACTIVITY_KIND_OVERHEAD,
            Record::Synchronization(_) => c::CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
            other => panic!("not recorded: {other:?}"),
        };
        *found.entry(kind).or_insert(0) += 1;
    }
    assert_eq!(found, expected);
    let all = DecodeSummary { records: expected.values().sum::<usize>() as u64, ..DecodeSummary::default() };
    assert_eq!(records.summary(), all);
}

/// The whole recording makes sense: the work belongs to calls, at plausible times.
fn what_the_dump_does_not_show_is_plausible(recording: &Recording) {
    let decoded: Vec<Record> = records(&recording.table, &recording.buffer).collect();
    let calls: HashMap<u32, u64> = decoded
        .iter()
        .filter_map(|record| match record {
            Record::Api(call) => Some((call.correlation_id, call.start)),
            _ => None,
        })
        .collect();
    let mut names = Vec::new();
    for record in &decoded {
        let (start, end, correlation) = match record {
            Record::Kernel(kernel) => {
                names.push(kernel.name);
                assert!([kernel.grid_x, kernel.grid_y, kernel.grid_z, kernel.block_x].iter().all(|&size| size > 0));
                assert_eq!((kernel.is_device_launched, kernel.priority), (Some(0), None));
                (kernel.start, kernel.end, kernel.correlation_id)
            }
            Record::Memcpy(copy) => {
                assert!(copy.bytes > 0);
                assert!([1, 2, 8].contains(&copy.copy_kind), "{copy:?}");
                (copy.start, copy.end, copy.correlation_id)
            }
            Record::Memset(set) => {
                assert!(set.bytes > 0);
                (set.start, set.end, set.correlation_id)
            }
            Record::Synchronization(sync) => {
                assert!((1..=4).contains(&sync.sync_type), "{sync:?}");
                assert_eq!(sync.return_value, Some(0));
                assert!(sync.start <= sync.end);
                continue;
            }
            _ => continue,
        };
        assert!(start < end);
        let launched = calls.get(&correlation).unwrap_or_else(|| panic!("{record:?} has no call"));
        // Within the second after its launch; device and host clocks may differ by a little.
        assert!((launched.saturating_sub(100_000)..launched + 1_000_000_000).contains(&start), "{record:?}");
    }
    let mut rest = recording.buffer.as_slice();
    let mut texts: Vec<StringPtr> = Vec::new();
    while let Some(kind) = rest.first_chunk().copied().map(u32::from_le_bytes) {
        let (bytes, after) = rest.split_at(recording.table.get(kind).unwrap());
        texts.extend(strings(kind, bytes));
        rest = after;
    }
    assert_eq!(texts, names);
}

#[test]
fn the_bundled_recording_decodes_as_dumped() {
    let recording = Recording::read(&bundled());
    the_first_records_are_those_of_the_dump(&recording);
    the_counts_are_those_of_the_dump(&recording);
    what_the_dump_does_not_show_is_plausible(&recording);
}

#[test]
fn the_corpus_recording_decodes_as_dumped() {
    let Some(folder) = corpus() else { return };
    let recording = Recording::read(&folder);
    the_first_records_are_those_of_the_dump(&recording);
    the_counts_are_those_of_the_dump(&recording);
    what_the_dump_does_not_show_is_plausible(&recording);
}

/// With sizes of another version the buffer cannot be walked, and that is noticed.
#[test]
fn sizes_of_another_version_end_in_a_fault() {
    let recording = Recording::read(&bundled());
    for version in [18, 130_101, 130_500] {
        let table = SizeTable::for_version(version);
        let mut records = records(&table, &recording.buffer);
        let decoded = records.by_ref().count();
        assert!(decoded < 400, "{version}");
        assert!(records.summary().fault.is_some(), "{version}");
    }
}
