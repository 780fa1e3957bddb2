//! The desktop timeline of Bubblescope.
//!
//! `lod`, `tiles`, `view`, `rows` and `format` are pure. `paint` and `lanes` draw, `timeline` is the widget that shows documents
//! and tells what the user did, `app` holds the state and changes it. So each is tested by itself.

pub mod app;
pub mod background;
pub mod command;
pub mod describe;
pub mod document;
pub mod format;
pub mod lanes;
pub mod load;
pub mod lod;
pub mod minimap;
pub mod paint;
pub mod panels;
pub mod rows;
pub mod strips;
pub mod table;
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod theme;
pub mod tiles;
pub mod timeline;
pub mod tint;
pub mod view;

pub use app::App;
