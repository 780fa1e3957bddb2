//! CUPTI recorder and decoder.

pub mod collector;
pub mod spool;

pub use collector::{Config, Recorder, RecorderError, Summary};
