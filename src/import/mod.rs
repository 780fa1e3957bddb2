//! Reads what other profilers wrote.
