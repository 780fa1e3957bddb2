//! Bubblescope finds the time a GPU stands idle because of its host, and the host call that caused it.
//!
//! Data flows one way: [`capture`] and [`import`] make a [`trace`], [`analysis`] reads it, [`report`] shows what was
//! found, and [`export`] hands it to other programs.

pub mod analysis;
pub mod atomic;
pub mod capture;
pub mod export;
pub mod import;
pub mod leftover;
pub mod memory;
pub mod open;
pub mod progress;
pub mod report;
pub mod signals;
pub mod threads;
pub mod trace;
