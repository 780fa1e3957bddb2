//! Keeps the cells of lanes from frame to frame.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lod::{Cells, Lane, Level};
use crate::view::Viewport;

/// Names a lane of one of the opened traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneKey {
    /// Position of the document.
    pub doc: usize,
    /// The section.
    pub section: usize,
    /// The row within it.
    pub row: usize,
    /// The lane within the row.
    pub lane: usize,
}

#[derive(Debug)]
struct Kept {
    level: Level,
    from: i64,
    to: i64,
    cells: Arc<Cells>,
}

/// The cells that were last needed of each lane, for more time than the view shows, so that panning finds them ready.
#[derive(Debug, Default)]
pub struct CellCache {
    kept: HashMap<LaneKey, Kept>,
}

impl CellCache {
    /// The cells of a lane at a level that cover the view.
    pub fn get(&mut self, key: LaneKey, lane: &Lane, level: Level, view: Viewport) -> Arc<Cells> {
        if let Some(kept) = self.kept.get(&key)
            && kept.level == level
            && kept.from <= view.start()
            && kept.to >= view.end()
        {
            return Arc::clone(&kept.cells);
        }
        let margin = view.span() / 2;
        let (from, to) = (view.start().saturating_sub(margin), view.end().saturating_add(margin));
        let cells = Arc::new(lane.cells(level, from, to));
        self.kept.insert(key, Kept { level, from, to, cells: Arc::clone(&cells) });
        cells
    }

    /// Forgets everything, because lanes changed.
    pub fn clear(&mut self) {
        self.kept.clear();
    }
}
