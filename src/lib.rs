//! Bubblescope finds the time a GPU stands idle because of its host, and the host call that caused it.
//!
//! Data flows one way: [`capture`] makes a [`trace`], [`analysis`] reads it, [`report`] shows what was
//! found.

pub mod analysis;
pub mod atomic;
pub mod capture;
pub mod import;
pub mod open;
pub mod report;
pub mod trace;
