//! The JSON contract and the text report.
