//! The names of processes, threads and devices, where the export comes from, and what it lacks.

use super::super::lanes::Lanes;
use super::{Export, META};
use crate::import::ImportError;
use crate::trace::{Device, ThreadIdx};

/// The severity of errors in `DIAGNOSTIC_EVENT` (`ENUM_DIAGNOSTIC_SEVERITY_LEVEL`).
const ERROR: i64 = 3;

impl Export<'_> {
    /// Names processes, threads and devices, and says where the export comes from and what it lacks.
    pub(super) fn describe(&mut self) -> Result<(), ImportError> {
        let mut names: Vec<(Option<i64>, ThreadIdx, i64)> = Vec::new();
        self.each(&["ThreadNames"], &["globalTid", "nameId", "priority"], |export, row| {
            if let (Some(thread), Some(name)) = (row.int(0).and_then(|id| export.lanes.known_thread(id)), row.int(1)) {
                names.push((row.int(2), thread, name));
            }
            Some(())
        })?;
        names.sort_unstable();
        for (_, thread, name) in names {
            if let Some(name) = self.strings.text(name) {
                self.builder.set_thread_name(thread, &name);
            }
        }
        self.each(&["PROCESSES"], &["globalPid", "name"], |export, row| {
            if let (Some(global), Some(name)) = (row.int(0), row.text(1))
                && let Some(process) = export.lanes.known_process(global)
            {
                Lanes::name_process(&mut export.builder, process, global, &name);
            }
            Some(())
        })?;
        self.gpus()?;
        self.origin()?;
        self.lacks();
        Ok(())
    }

    fn gpus(&mut self) -> Result<(), ImportError> {
        let used = self.lanes.used_gpus();
        let columns = ["id", "name", "uuid", "smCount", "computeMajor", "computeMinor"];
        self.each(&["TARGET_INFO_GPU"], &columns, |export, row| {
            let Some(id) = row.small(0).filter(|id| used.binary_search(id).is_ok()) else { return Some(()) };
            let device = Lanes::device(&mut export.builder, id);
            let uuid = row.text(2).unwrap_or_default();
            export.builder.describe_device(
                device,
                Device {
                    id,
                    name: row.text(1).unwrap_or_default(),
                    uuid: uuid.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_lowercase(),
                    multiprocessors: row.small(3).unwrap_or(0),
                    compute_capability: (row.small(4).unwrap_or(0), row.small(5).unwrap_or(0)),
                },
            );
            Some(())
        })
    }

    /// Versions and the time of the recording; nothing of the machine, its user or its paths.
    fn origin(&mut self) -> Result<(), ImportError> {
        self.builder.meta.source.format = "nsys".to_owned();
        let (mut shift, mut absolute) = (0, false);
        self.each(META, &["name", "value"], |export, row| {
            let Some(name) = row.text(0) else { return Some(()) };
            let shown = match name.as_str() {
                "EXPORT_PRODUCT_VERSION" => "Nsight Systems",
                "EXPORT_SCHEMA_VERSION" => "schema of the export",
                "EXPORT_CONFIG_TIME_SHIFT" => {
                    shift = row.text(1).and_then(|value| value.parse::<i64>().ok()).unwrap_or(0);
                    return Some(());
                }
                "EXPORT_PARAM_TIME_NORMALIZE" => {
                    absolute = row.text(1).as_deref() == Some("true");
                    return Some(());
                }
                _ => return Some(()),
            };
            if let Some(value) = row.text(1) {
                export.builder.meta.machine.insert(shown.to_owned(), value);
            }
            Some(())
        })?;
        self.each(&["TARGET_INFO_SESSION_START_TIME"], &["utcEpochNs", "utcTime"], |export, row| {
            let meta = &mut export.builder.meta;
            if !absolute {
                meta.epoch_ns = row.int(0).unwrap_or(0).saturating_sub(shift);
            }
            let is_time = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit() || b"-:T.".contains(&byte));
            meta.source.captured_on = row.text(1).filter(is_time).map(|text| format!("{text}Z"));
            Some(())
        })?;
        self.each(&["DIAGNOSTIC_EVENT"], &["severity"], |export, row| {
            if row.int(0).is_some_and(|severity| severity == ERROR) {
                export.notes.count(
                    [
                        "error that nsys itself reported while it recorded; its window shows it",
                        "errors that nsys itself reported while it recorded; its window shows them",
                    ],
                    None,
                );
            }
            Some(())
        })
    }

    /// Says which tables are absent where that decides what can be known.
    fn lacks(&mut self) {
        let meta = &mut self.builder.meta;
        let lack = match (meta.recorded.calls, meta.recorded.ops) {
            (true, true) => return,
            (false, false) => {
                "the export has no CUDA tables: nsys records them with --trace=cuda, if a process used CUDA"
            }
            (true, false) => {
                "the export has CUDA calls and no table of GPU work: nsys gets none under WSL2 or without permission"
            }
            (false, true) => "the export has no CUDA calls: launches, waits and their cost are unknown",
        };
        meta.warnings.push(lack.to_owned());
    }
}
