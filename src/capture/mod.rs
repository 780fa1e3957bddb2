//! Records programs and turns recordings into traces.
//!
//! A repetition of a bundled workload always runs in a child process ([`child`]): an unprofiled one never loads
//! libcupti, because a process that once traced stays slower. [`campaign`] interleaves them. [`convert`] makes a trace
//! out of the spool that a profiled process left. [`record`] does it for any program and the processes it starts.

pub mod campaign;
pub mod child;
pub mod convert;
pub mod doctor;
pub mod library;
pub mod record;
