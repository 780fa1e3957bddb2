//! CUPTI recorder and decoder.
