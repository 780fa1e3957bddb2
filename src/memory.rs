//! Whether there is memory for what is to be read: a recording of hours has more events than many machines can hold.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::report::text::bytes;

/// Less memory than something needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Bytes that it needs, about.
    pub needed: u64,
    /// Bytes that this process may still take.
    pub available: u64,
}

impl Shortage {
    /// What is short for something that needs so many bytes, of so many that are `available` if that is known.
    pub fn of(needed: u64, available: Option<u64>) -> Option<Self> {
        available.filter(|&available| available < needed).map(|available| Self { needed, available })
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {} of memory, and {} are free", bytes(self.needed), bytes(self.available))
    }
}

/// Bytes of memory that a trace takes while it is made of so many bytes of activity records, at least.
///
/// A kernel and its launch are about 300 bytes of records; measured on recordings of 12 million events.
pub fn of_trace(record_bytes: u64) -> u64 {
    record_bytes
}

/// Bytes of memory that are taken until the report of so many bytes of activity records is made: 1.7 times as many with
/// 12 million events, and some to spare, as a process that the system ends says nothing.
pub fn of_report(record_bytes: u64) -> u64 {
    record_bytes.saturating_mul(2)
}

/// Bytes that this process may still take before the system, its control group or its own limit ends it; `None` where
/// none of them tells.
pub fn available() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let system = read("/proc/meminfo").and_then(|text| of_system(&text));
    let group = read("/proc/self/cgroup").and_then(|text| of_groups(&text, Path::new("/sys/fs/cgroup")));
    let limit = read("/proc/self/limits")
        .zip(read("/proc/self/status"))
        .and_then(|(limits, status)| of_limit(&limits, &status));
    [system, group, limit].into_iter().flatten().min()
}

/// The kilobytes that a line of `/proc/meminfo` or `/proc/PID/status` gives, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Of `/proc/meminfo`: what can be had without swapping, and what can be swapped out.
fn of_system(meminfo: &str) -> Option<u64> {
    Some(kilobytes(meminfo, "MemAvailable")?.saturating_add(kilobytes(meminfo, "SwapFree").unwrap_or(0)))
}

/// Of the limit on the address space (`ulimit -v`): `/proc/self/limits` and `/proc/self/status`.
fn of_limit(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kilobytes(status, "VmSize")?))
}

/// Of the control groups that a process is in by its `/proc/self/cgroup`, each of which may have a limit. Files that the
/// system keeps in memory for a group go first when it needs more.
fn of_groups(cgroup: &str, root: &Path) -> Option<u64> {
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let files = |path: &Path, keys: [&str; 2]| -> u64 {
        let text = fs::read_to_string(path).unwrap_or_default();
        let value =
            |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse::<u64>().ok());
        keys.into_iter().filter_map(value).fold(0, u64::saturating_add)
    };
    let mut least: Option<u64> = None;
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, limit, usage, keys) = if controllers.is_empty() {
            (root.to_owned(), "memory.max", "memory.current", ["inactive_file", "active_file"])
        } else if controllers.split(',').any(|controller| controller == "memory") {
            let keys = ["total_inactive_file", "total_active_file"];
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", keys)
        } else {
            continue;
        };
        // In a container its own group is the root of what it sees, whatever the path says.
        for group in Path::new(group.trim_start_matches('/')).ancestors() {
            let folder = root.join(group);
            let Some((limit, usage)) = number(&folder.join(limit)).zip(number(&folder.join(usage))) else { continue };
            let free = limit.saturating_sub(usage.saturating_sub(files(&folder.join("memory.stat"), keys)));
            least = Some(least.map_or(free, |least| least.min(free)));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_what_is_free_and_what_can_be_swapped() {
        let text =
            "MemTotal:       24651336 kB\nMemFree:         1000 kB\nMemAvailable:   2000 kB\nSwapFree:        500 kB\n";
        assert_eq!(of_system(text), Some(2500 * 1024));
        assert_eq!(of_system("MemTotal: 5 kB\n"), None);
        assert_eq!(of_system("MemAvailable: 99999999999999999999 kB\n"), None);
        assert!(available().is_some_and(|bytes| bytes > 1 << 20), "on this machine");
    }

    #[test]
    fn a_limit_on_the_address_space_leaves_what_is_not_mapped() {
        let limits = |soft: &str| {
            format!(
                "Limit   Soft Limit   Hard Limit   Units\nMax address space         {soft}          unlimited      bytes\n"
            )
        };
        assert_eq!(of_limit(&limits("4096000"), "VmPeak:  900 kB\nVmSize:\t  1000 kB\n"), Some(4_096_000 - 1_024_000));
        assert_eq!(of_limit(&limits("4096"), "VmSize: 1000 kB\n"), Some(0));
        assert_eq!(of_limit(&limits("unlimited"), "VmSize: 1000 kB\n"), None);
    }

    #[test]
    fn the_tightest_group_counts_and_files_kept_in_memory_do_not() {
        let root = tempfile::tempdir().unwrap();
        let group = |path: &str, files: &[(&str, &str)]| {
            let folder = root.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        };
        group(
            "a",
            &[
                ("memory.max", "10000\n"),
                ("memory.current", "9000\n"),
                ("memory.stat", "anon 5\ninactive_file 100\nactive_file 3000\n"),
            ],
        );
        group("a/b", &[("memory.max", "max\n"), ("memory.current", "8000\n")]);
        assert_eq!(of_groups("0::/a/b\n", root.path()), Some(10_000 - 5_900));
        assert_eq!(of_groups("0::/elsewhere\n", root.path()), None, "no group with a limit");
        group("", &[("memory.max", "2000\n"), ("memory.current", "1500\n")]);
        assert_eq!(of_groups("0::/a/b\n", root.path()), Some(500));
        assert_eq!(of_groups("0::/elsewhere\n", root.path()), Some(500), "what a container sees of its own group");
        group(
            "memory/c",
            &[
                ("memory.limit_in_bytes", "700\n"),
                ("memory.usage_in_bytes", "600\n"),
                ("memory.stat", "total_inactive_file 50\n"),
            ],
        );
        assert_eq!(of_groups("5:cpu,memory:/c\n3:pids:/a\n", root.path()), Some(150));
        assert_eq!(of_groups("", root.path()), None);
    }

    #[test]
    fn what_is_short_is_told_in_round_figures() {
        assert_eq!(Shortage::of(10, Some(10)), None);
        assert_eq!(Shortage::of(10, None), None);
        let shortage = Shortage::of(91_290_000_000, Some(950_000_000)).unwrap();
        assert_eq!(shortage.to_string(), "about 85.0 GiB of memory, and 906 MiB are free");
    }
}
