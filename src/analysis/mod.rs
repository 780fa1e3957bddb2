//! Finds bubbles in a trace and what they cost. Pure: no files, no clock, no CUPTI.
