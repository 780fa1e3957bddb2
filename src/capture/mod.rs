//! Records programs and turns recordings into traces.

pub mod convert;
