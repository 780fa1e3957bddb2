//! CUPTI C interface.
