//! Recordings of other tools: small ones made here, and real ones where `BUBBLESCOPE_CORPUS` names a folder of them.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod corpus;
mod export;
mod kineto;
mod nsys;
