//! Recordings of other tools: small ones made here, and real ones where `BUBBLESCOPE_CORPUS` names a folder of them.

mod corpus;
mod export;
mod kineto;
mod nsys;
