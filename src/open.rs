//! Opens any recording this crate can read, told by its content and not by its name.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use cupti::spool::outline;
use flate2::read::MultiGzDecoder;
use memchr::memmem;
use thiserror::Error;

use crate::capture::convert::{self, ConvertError};
use crate::import::{ImportError, kineto, nsys};
use crate::memory::{self, Shortage};
use crate::progress::{Unwatched, Watch};
use crate::report::text::bytes;
use crate::trace::file::{self, TraceFileError};
use crate::trace::{Ns, SURROUNDINGS, Trace};

/// The most bytes that are kept of what can be read only once.
const MOST_KEPT: u64 = 4 << 30;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A trace file (`*.bubbles.parquet`).
    TraceFile,
    /// A spool (`*.bubcap`).
    Spool,
    /// JSON, plain or gzip: a trace of PyTorch's profiler, if it is a recording.
    Json,
    /// A SQLite export of Nsight Systems.
    Nsys,
}

impl Format {
    /// What a regular file is; `None` of anything else, and of what cannot be read.
    fn of_file(path: &Path) -> Option<Self> {
        let mut head = Vec::new();
        File::open(path)
            .ok()
            .filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?
            .take(64)
            .read_to_end(&mut head)
            .ok()?;
        sniff(&head)
    }
}

/// How much of a recording is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// All of it.
    Whole,
    /// The part from one moment to another.
    Part,
}

impl Asked {
    /// How to ask for less.
    const fn less(self) -> &'static str {
        match self {
            Self::Whole => "`bubble-report analyze` with --from and --to reads only a part of it",
            Self::Part => "a shorter part takes less",
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "its",
            Self::Part => "the part's",
        })
    }
}

/// Why a recording cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is empty.
    #[error("{} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It was no longer wanted.
    #[error("opening {} was cancelled", path.display())]
    Cancelled {
        /// The file.
        path: PathBuf,
    },
    /// The content is no format that is known here.
    #[error(
        "{} is no trace file (.bubbles.parquet), recording (.bubcap), PyTorch trace (.json, .json.gz) or SQLite export of \
         Nsight Systems{hint}",
        path.display()
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it looks like and what to do about it; empty or starting with a separator.
        hint: String,
    },
    /// What can be read only once (a pipe) has more bytes than are kept in memory.
    #[error("{} gives more than {} GiB and is no regular file: save it as one first", path.display(), MOST_KEPT >> 30)]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The recording of another tool cannot be made a trace.
    #[error("cannot use {}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ImportError,
    },
    /// The spool cannot be made a trace.
    #[error(transparent)]
    Spool(ConvertError),
    /// The spool has more events than there is memory for.
    #[error("{} holds more than fits here: {asked} {} of records need {shortage}; {}", path.display(), bytes(*record_bytes), asked.less())]
    Room {
        /// The file.
        path: PathBuf,
        /// Bytes of activity records in what was asked for.
        record_bytes: u64,
        /// The memory that lacks.
        shortage: Shortage,
        /// What was asked for.
        asked: Asked,
    },
    /// The trace file cannot be read.
    #[error("cannot use the trace file {}", path.display())]
    TraceFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: TraceFileError,
    },
}

/// Tells what `head`, the first bytes of a file, belong to.
pub fn sniff(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        Some(Format::TraceFile)
    } else if head.starts_with(&cupti::spool::MAGIC) {
        Some(Format::Spool)
    } else if kineto::is_gzip(head) || kineto::is_json(head) {
        Some(Format::Json)
    } else if head.starts_with(nsys::MAGIC) {
        Some(Format::Nsys)
    } else {
        None
    }
}

/// What an unknown file looks like, as advice.
fn hint(path: &Path, head: &[u8]) -> String {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if head.starts_with(b"version https://git-lfs.github.com/spec/") {
        "; it is the pointer of a file that Git LFS keeps: get the file itself with `git lfs pull`".to_owned()
    } else if ["nsys-rep", "qdrep", "qdstrm"].contains(&extension.as_str()) {
        // Only Nsight Systems reads its own reports, and their content has no mark that it promises to keep.
        let [from, to] = [path.to_owned(), path.with_extension("sqlite")].map(|path| path.display().to_string());
        format!("; export a report of Nsight Systems first: nsys export --type sqlite --output '{to}' '{from}'")
    } else {
        String::new()
    }
}

/// Opens a recording. What is no regular file, such as a pipe, is read once, into memory.
///
/// # Errors
/// When the file cannot be read, is of no known format, or is damaged beyond use.
pub fn open(path: &Path) -> Result<Trace, OpenError> {
    open_watched(path, &Unwatched)
}

/// Opens a recording while somebody waits for it.
///
/// # Errors
/// As [`open`], and [`OpenError::Cancelled`].
pub fn open_watched(path: &Path, watch: &dyn Watch) -> Result<Trace, OpenError> {
    let opened = read(path, watch);
    // Whatever came of it, it may be a part of what is in the file.
    if watch.is_cancelled() { Err(OpenError::Cancelled { path: path.to_owned() }) } else { opened }
}

/// Opens the part of a recording from one moment to another, as [`Trace::part`] says. Of a spool no more than that gets
/// into memory; anything else is read as a whole.
///
/// # Errors
/// As [`open_watched`].
pub fn open_part_watched(
    path: &Path,
    (from, to): (Option<Ns>, Option<Ns>),
    watch: &dyn Watch,
) -> Result<Trace, OpenError> {
    let opened = match Format::of_file(path) {
        Some(Format::Spool) => read_part(path, (from, to), watch),
        _ => read(path, watch).map(|trace| trace.part(from, to)),
    };
    if watch.is_cancelled() { Err(OpenError::Cancelled { path: path.to_owned() }) } else { opened }
}

/// The files in a folder that are recordings, by their content or by their names, and the other ones, both in order of
/// their names. Hidden ones are of the others. Folders in it are not searched.
///
/// # Errors
/// When the folder cannot be read.
pub fn recordings_in(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in folder.read_dir()? {
        files.push(entry?.path());
    }
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files.into_iter().partition(|file| is_recording(file)))
}

/// Endings of recordings' names, those of PyTorch's profiler among them; of two that fit, the longer comes first.
const ENDINGS: [&str; 7] =
    [".bubbles.parquet", ".bubcap", ".pt.trace.json.gz", ".pt.trace.json", ".json.gz", ".json", ".sqlite"];

/// A recording's name without the ending that tells its form, unless it has no more than that.
pub fn stem(name: &str) -> &str {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).filter(|stem| !stem.is_empty()).unwrap_or(name)
}

/// Whether a file in a folder is to be opened. What has the name of a recording is, whatever it holds: it may be damaged.
fn is_recording(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let endings = [".parquet", ".bubcap", ".sqlite", ".nsys-rep", ".json", ".json.gz"];
    let hidden = name.starts_with('.');
    !hidden && (endings.iter().any(|ending| name.ends_with(ending)) || holds_recording(file).unwrap_or(false))
}

/// The first bytes of a file, by which JSON of any name is told to be a trace.
const TELLING: u64 = 64 << 10;

/// Whether a file begins as a recording does.
fn holds_recording(file: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(file)?.take(TELLING).read_to_end(&mut head)?;
    Ok(match sniff(&head) {
        Some(Format::Json) => is_trace_json(&head),
        found => found.is_some(),
    })
}

/// Whether a file that begins like this, plain or gzip, is a trace rather than any other JSON.
fn is_trace_json(head: &[u8]) -> bool {
    let mut unpacked = Vec::new();
    let text = if kineto::is_gzip(head) {
        // It ends in the middle, which keeps nobody from reading what comes before.
        let _ = MultiGzDecoder::new(head).take(TELLING).read_to_end(&mut unpacked);
        &unpacked
    } else {
        head
    };
    let keys = ["\"traceEvents\"", "\"schemaVersion\"", "\"ph\""];
    kineto::is_json(text) && keys.iter().any(|key| memmem::find(text, key.as_bytes()).is_some())
}

/// Reads a part of a spool in a regular file.
fn read_part(path: &Path, window: (Option<Ns>, Option<Ns>), watch: &dyn Watch) -> Result<Trace, OpenError> {
    let part = convert::Part::of_file(path, window, SURROUNDINGS, watch).map_err(OpenError::Spool)?;
    let (here, all) = part.share();
    let share = u128::from(record_bytes(path)) * u128::from(here) / u128::from(all.max(1));
    room(path, u64::try_from(share).unwrap_or(u64::MAX), Asked::Part)?;
    part.read().map_err(OpenError::Spool)
}

/// Bytes of activity records in a spool. A source that fails is told by whoever reads it.
fn record_bytes(path: &Path) -> u64 {
    File::open(path).and_then(outline).map_or(0, |outline| outline.record_bytes)
}

/// Whether there is room for so many bytes of records. Without, the system would end this process in the middle of it.
fn room(path: &Path, record_bytes: u64, asked: Asked) -> Result<(), OpenError> {
    match Shortage::of(memory::of_trace(record_bytes), memory::available()) {
        None => Ok(()),
        Some(shortage) => Err(OpenError::Room { path: path.to_owned(), record_bytes, shortage, asked }),
    }
}

fn read(path: &Path, watch: &dyn Watch) -> Result<Trace, OpenError> {
    let unreadable = |source| OpenError::Unreadable { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    let once = !found.is_file();
    let mut head = Vec::new();
    file.by_ref().take(if once { MOST_KEPT + 1 } else { 64 }).read_to_end(&mut head).map_err(unreadable)?;
    if head.len() as u64 > MOST_KEPT {
        return Err(OpenError::TooLong { path: path.to_owned() });
    }
    if head.is_empty() {
        return Err(OpenError::Empty { path: path.to_owned() });
    }
    match sniff(&head) {
        Some(Format::TraceFile) => {
            let trace = if once { file::read_watched(head, watch) } else { file::read_path_watched(path, watch) };
            trace.map_err(|source| OpenError::TraceFile { path: path.to_owned(), source })
        }
        Some(Format::Spool) => {
            let trace = if once {
                convert::trace_from_read(path, &head, watch)
            } else {
                room(path, record_bytes(path), Asked::Whole)?;
                convert::trace_from_spools_watched(&[path], watch)
            };
            trace.map_err(OpenError::Spool)
        }
        Some(Format::Json) => {
            let trace = if once {
                kineto::read_watched(&*head, head.len() as u64, watch)
            } else {
                file.rewind().map_err(unreadable)?;
                kineto::read_watched(file, found.len(), watch)
            };
            trace.map_err(|source| OpenError::Import { path: path.to_owned(), source })
        }
        Some(Format::Nsys) => {
            nsys::import_watched(path, watch).map_err(|source| OpenError::Import { path: path.to_owned(), source })
        }
        None => Err(OpenError::Unknown { path: path.to_owned(), hint: hint(path, &head) }),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::export;
    use crate::progress::tests::Impatient;
    use crate::trace::TraceBuilder;

    /// An export of Nsight Systems with enough rows to look at the watch now and then.
    fn nsys_export(path: &Path) {
        let sql = "
            CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
            INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000');
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
                correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i * 10, i * 10 + 5, 0, 16777216, i, 1, 0 FROM n;";
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    }

    #[test]
    fn every_format_tells_how_far_it_is_and_stops_when_it_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/planted/sync.bubcap");
        let trace = open(&spool).unwrap();
        let at = |name: &str| folder.path().join(name);
        file::write_path(&trace, &at("trace.bubbles.parquet")).unwrap();
        let mut json = Vec::new();
        export::chrome(&trace, &crate::analysis::Analysis::default(), &mut json).unwrap();
        std::fs::write(at("trace.json"), json).unwrap();
        nsys_export(&at("trace.sqlite"));
        for path in [spool, at("trace.bubbles.parquet"), at("trace.json"), at("trace.sqlite")] {
            let patient = Impatient::of(u64::MAX);
            open_watched(&path, &patient).unwrap();
            let reports = patient.reports();
            assert!(reports > 2 && patient.share() > 600, "{}: {patient:?}", path.display());
            for patience in [0, 1, reports / 2] {
                let watch = Impatient::of(patience);
                let opened = open_watched(&path, &watch);
                assert!(matches!(opened, Err(OpenError::Cancelled { .. })), "{}", path.display());
                // Threads that decode columns may each be in one.
                let late = std::thread::available_parallelism().map_or(1, usize::from) as u64 * 8;
                assert!(watch.reports() <= patience + late, "{}: it went on", path.display());
            }
        }
    }

    #[test]
    fn an_ending_is_taken_off_once_and_whole() {
        for (name, without) in [
            ("a.bubbles.parquet", "a"),
            ("host_1.170000.pt.trace.json.gz", "host_1.170000"),
            ("host_1.170000.pt.trace.json", "host_1.170000"),
            ("a.bubcap.json", "a.bubcap"),
            ("a.json.gz", "a"),
            ("a.parquet", "a.parquet"),
            (".json", ".json"),
            ("odd", "odd"),
        ] {
            assert_eq!(stem(name), without);
        }
        let shadowed = |at: usize| ENDINGS[..at].iter().any(|earlier| ENDINGS[at].ends_with(earlier));
        assert!(!(0..ENDINGS.len()).any(shadowed), "each can be found");
    }

    #[test]
    fn what_does_not_fit_says_how_less_would() {
        let said = |asked| {
            let shortage = Shortage { needed: 90 << 30, available: 1 << 30 };
            OpenError::Room { path: "a.bubcap".into(), record_bytes: 90 << 30, shortage, asked }.to_string()
        };
        let (whole, part) = (said(Asked::Whole), said(Asked::Part));
        assert!(whole.contains("its 90 GiB of records need") && whole.contains("--from and --to"), "{whole}");
        assert!(part.contains("the part's 90 GiB") && part.contains("a shorter part"), "{part}");
    }

    #[test]
    fn a_part_of_any_recording_is_opened_and_stops_when_it_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compat/torch-eager.bubcap");
        let whole = open(&spool).unwrap();
        let other = folder.path().join("trace.bubbles.parquet");
        file::write_path(&whole, &other).unwrap();
        let window = (None, Some(Ns(whole.end.0 / 10)));
        let part = whole.part(window.0, window.1);
        assert!(part.rest.is_some());
        for path in [&spool, &other] {
            let patient = Impatient::of(u64::MAX);
            let opened = open_part_watched(path, window, &patient).unwrap();
            assert_eq!((&opened.ops.start, &opened.rest), (&part.ops.start, &part.rest), "{}", path.display());
            assert!(patient.share() > 600, "{patient:?}");
            for patience in [0, 1, patient.reports() / 2] {
                let opened = open_part_watched(path, window, &Impatient::of(patience));
                assert!(matches!(opened, Err(OpenError::Cancelled { .. })), "{}", path.display());
            }
        }
        assert!(matches!(
            open_part_watched(&folder.path().join("no"), window, &Unwatched),
            Err(OpenError::Unreadable { .. })
        ));
    }

    #[test]
    fn recordings_in_a_folder_are_told_by_content_whatever_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let spool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/planted/sync.bubcap");
        let trace = open(&spool).unwrap();
        let mut json = Vec::new();
        export::chrome(&trace, &crate::analysis::Analysis::default(), &mut json).unwrap();
        let gzip = |text: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, text).unwrap();
            gzip.finish().unwrap()
        };
        std::fs::copy(&spool, at("run1")).unwrap();
        std::fs::copy(&spool, at(".hidden")).unwrap();
        file::write_path(&trace, &at("run2.2026")).unwrap();
        std::fs::write(at("run3"), &json).unwrap();
        std::fs::write(at("run4.gz"), gzip(&json)).unwrap();
        nsys_export(&at("run5.db"));
        std::fs::write(at("run6"), "[{\"ph\": \"X\", \"ts\": 1}").unwrap();
        std::fs::write(at("cut.bubcap"), "cut").unwrap();
        for (name, other) in
            [("empty", ""), ("log", "[12:00] ph"), ("settings", "{\"colour\": 3}"), ("notes.txt", "run1")]
        {
            std::fs::write(at(name), other).unwrap();
            std::fs::write(at(&format!("{name}.gz")), gzip(other.as_bytes())).unwrap();
        }
        std::fs::create_dir(at("folder")).unwrap();
        let (recordings, others) = recordings_in(folder.path()).unwrap();
        let named = ["cut.bubcap", "run1", "run2.2026", "run3", "run4.gz", "run5.db", "run6"];
        assert_eq!(recordings, named.map(at));
        assert_eq!(others.len(), 9, "{others:?}");
        assert!(recordings[1..6].iter().all(|path| open(path).is_ok()));
    }

    /// Opens what a pipe gives.
    fn through_a_pipe(bytes: Vec<u8>) -> Result<Trace, OpenError> {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            // A reader that has seen enough closes its end.
            move || drop(std::fs::write(pipe, bytes))
        });
        let opened = open(&pipe);
        writer.join().unwrap();
        opened
    }

    #[test]
    fn a_pipe_is_read_as_a_file_is() {
        let trace = TraceBuilder::new().finish().unwrap();
        let mut bytes = Vec::new();
        file::write(&trace, &mut bytes).unwrap();
        assert_eq!(through_a_pipe(bytes).unwrap(), trace);

        let mut spool = cupti::spool::Writer::new(Vec::new(), &cupti::spool::Header::default()).unwrap();
        spool.end(&cupti::spool::End::default()).unwrap();
        let spool = spool.into_inner();
        assert_eq!(through_a_pipe(spool.clone()).unwrap().meta.source.format, "bubcap");
        let cut = through_a_pipe(spool[..spool.len() - 1].to_vec()).unwrap_err();
        assert!(cut.to_string().contains("pipe: it was cut"), "{cut}");

        assert!(matches!(through_a_pipe(vec![b'x'; 100_000]), Err(OpenError::Unknown { .. })));
        assert!(matches!(through_a_pipe(Vec::new()), Err(OpenError::Empty { .. })));
        assert!(matches!(open(Path::new("/dev/null")), Err(OpenError::Empty { .. })));
        assert!(matches!(open(Path::new("/")), Err(OpenError::Unreadable { .. })));
    }
}
