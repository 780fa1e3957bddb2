//! Headless reports.
fn main() {}
