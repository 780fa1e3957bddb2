//! From a lane to colours: what its screen columns show, and the triangles that show it.

mod columns;
mod quads;

pub use columns::{Columns, Look, Run, WideBox};
pub use quads::Quads;
