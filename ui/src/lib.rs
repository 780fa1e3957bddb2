//! Desktop timeline.
