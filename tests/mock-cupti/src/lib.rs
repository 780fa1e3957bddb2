//! Mock CUPTI.
