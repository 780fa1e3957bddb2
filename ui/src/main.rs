//! Desktop timeline.
fn main() {}
