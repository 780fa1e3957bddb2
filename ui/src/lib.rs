//! The desktop timeline of Bubblescope.
//!
//! `lod`, `tiles`, `view`, `rows`, `arrange`, `align`, `handovers`, `svg` and `format` are pure. `paint`, `lanes` and `caption` draw,
//! `timeline` is the widget that shows documents and tells what the user did, `panels` show what is known, `app` holds the
//! state and changes it. So each is tested by itself.

pub mod align;
pub mod app;
pub mod arrange;
pub mod background;
pub mod caption;
pub mod clipboard;
pub mod command;
pub mod describe;
pub mod dialog;
pub mod document;
pub mod format;
pub mod handovers;
pub mod lanes;
pub mod launches;
pub mod load;
pub mod lod;
pub mod minimap;
pub mod names;
pub mod paint;
pub mod panels;
pub mod recorder;
pub mod rows;
pub mod ruler;
pub mod strips;
pub mod svg;
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
