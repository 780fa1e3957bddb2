//! What the machine and the process are.

use crate::spool::Machine;
use std::fs;

pub(super) fn machine() -> Machine {
    Machine {
        os: os(),
        cpu: fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| cpu_model(&text)).unwrap_or_default(),
        cpus: std::thread::available_parallelism().map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned(),
    }
}

fn os() -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default();
    format!("{} {}", read("ostype").trim(), read("osrelease").trim()).trim().to_owned()
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

pub(super) fn exe() -> String {
    std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(super) fn command_line() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}
