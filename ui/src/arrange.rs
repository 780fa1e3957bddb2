//! Which rows are shown, where and how high. Pure: no drawing.
//!
//! Rows are known by their names, so an arrangement fits every trace that has rows of the same names, and is kept from
//! one start of the program to the next.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::rows::{Row, RowKind, Scene, Section};

/// The name of a section or a row as a number, the same in every trace and every run of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(u64);

impl Key {
    /// A number below `most` that the name always has.
    pub fn below(self, most: usize) -> usize {
        ((self.0 ^ self.0 >> 32) % most.max(1) as u64) as usize
    }

    /// The number of a name (FNV-1a, 64 bits: Fowler, Noll and Vo).
    pub fn of(name: &str) -> Self {
        let start = 0xcbf2_9ce4_8422_2325;
        Self(name.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }
}

/// Something that folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoldKey {
    /// All of a trace, by the position of its document.
    Trace(usize),
    /// A section: its rows are not shown.
    Section(Key),
    /// A row: its lanes become thin.
    Row(Key),
}

/// A line of the timeline by name: it stays the same line when others come, go or move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineKey {
    /// Position of the document.
    pub doc: usize,
    /// The name.
    pub key: FoldKey,
}

/// What can be done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowAct {
    /// Puts a row above the one before it.
    MoveUp,
    /// Puts a row below the one after it.
    MoveDown,
    /// Keeps a row in sight, or no longer.
    Pin,
    /// Collapses it, or expands it again.
    Fold,
    /// Hides a row.
    Hide,
}

/// What stands on a line of the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// The name of a trace.
    Trace {
        /// Position of the document.
        doc: usize,
    },
    /// The name of a section.
    Section {
        /// Position of the document.
        doc: usize,
        /// The section.
        section: usize,
    },
    /// A row.
    Row {
        /// Position of the document.
        doc: usize,
        /// The section.
        section: usize,
        /// The row.
        row: usize,
        /// Height of each of its lanes.
        lane_height: f32,
    },
}

/// A line of the timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Distance from the top of the first line.
    pub top: f32,
    /// Its height.
    pub height: f32,
    /// What stands there.
    pub place: Place,
}

/// Lines that follow each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// The lines, from top to bottom.
    pub lines: Vec<Line>,
    /// Height of all.
    pub height: f32,
}

impl Place {
    /// The name of the line; `None` for a place that is none of these documents.
    pub fn line_key(self, docs: &[Document]) -> Option<LineKey> {
        let section = |doc: usize, section: usize| docs.get(doc)?.scene.sections.get(section);
        Some(match self {
            Self::Trace { doc } => LineKey { doc, key: FoldKey::Trace(doc) },
            Self::Section { doc, section: at } => LineKey { doc, key: FoldKey::Section(section(doc, at)?.key) },
            Self::Row { doc, section: at, row, .. } => {
                LineKey { doc, key: FoldKey::Row(section(doc, at)?.rows.get(row)?.key) }
            }
        })
    }
}

impl Lines {
    fn push(&mut self, height: f32, place: Place) {
        self.lines.push(Line { top: self.height, height, place });
        self.height += height;
    }

    /// The lines that touch `[from, to)`.
    pub fn between(&self, from: f32, to: f32) -> &[Line] {
        let first = self.lines.partition_point(|line| line.top + line.height <= from);
        let last = self.lines.partition_point(|line| line.top < to);
        &self.lines[first..last.max(first)]
    }
}

/// Where every line stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// Rows that stay in sight.
    pub pinned: Lines,
    /// All others.
    pub scrolled: Lines,
    /// Rows that were hidden.
    pub hidden: usize,
}

/// Height of a trace's name.
pub const TRACE_HEIGHT: f32 = 26.0;
/// Height of a section's name.
pub const SECTION_HEIGHT: f32 = 24.0;
/// Height of a lane.
pub const LANE_HEIGHT: f32 = 20.0;
/// Height of a lane of a folded row or of a row with very many lanes.
pub const THIN_LANE_HEIGHT: f32 = 5.0;
/// Heights that a lane can be given.
const LANE_HEIGHTS: std::ops::RangeInclusive<f32> = 3.0..=120.0;
/// Space below a row.
pub const ROW_GAP: f32 = 4.0;
/// A row with more lanes than this has thin ones.
const MANY_LANES: usize = 12;

/// Which rows are shown, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arrangement {
    /// Sections without their rows, rows with thin lanes. What is opened anew is shown whole, so this is not kept.
    #[serde(skip)]
    folded: BTreeSet<Key>,
    /// Traces without their rows. Not kept either.
    #[serde(skip)]
    folded_traces: BTreeSet<usize>,
    /// Rows that are not shown. Not kept either.
    #[serde(skip)]
    pub hidden: BTreeSet<Key>,
    /// Rows that stay in sight above the others, from top to bottom.
    pinned: Vec<Key>,
    /// Rows in an order of their own, by section.
    order: BTreeMap<Key, Vec<Key>>,
    /// Heights of lanes, by row.
    heights: BTreeMap<Key, f32>,
    /// What the title of a row or of its section must contain, upper and lower case alike. Not kept either.
    #[serde(skip)]
    pub filter: String,
}

impl Arrangement {
    /// Folds or unfolds.
    pub fn toggle(&mut self, key: FoldKey) {
        match key {
            FoldKey::Trace(doc) => {
                if !self.folded_traces.remove(&doc) {
                    self.folded_traces.insert(doc);
                }
            }
            FoldKey::Section(key) | FoldKey::Row(key) => {
                if !self.folded.remove(&key) {
                    self.folded.insert(key);
                }
            }
        }
    }

    /// Whether something is folded.
    pub fn is_folded(&self, key: FoldKey) -> bool {
        match key {
            FoldKey::Trace(doc) => self.folded_traces.contains(&doc),
            FoldKey::Section(key) | FoldKey::Row(key) => self.folded.contains(&key),
        }
    }

    /// Keeps a row in sight, or no longer.
    pub fn toggle_pin(&mut self, row: Key) {
        match self.pinned.iter().position(|&other| other == row) {
            Some(at) => {
                self.pinned.remove(at);
            }
            None => self.pinned.push(row),
        }
    }

    /// Whether a row is kept in sight.
    pub fn is_pinned(&self, row: Key) -> bool {
        self.pinned.contains(&row)
    }

    /// Puts a row where another one of its section, or of the pinned ones, is; the others make room.
    pub fn move_to(&mut self, section: &Section, row: Key, target: Key) {
        let order = if self.is_pinned(row) {
            &mut self.pinned
        } else {
            let natural: Vec<Key> = self.ordered(section).map(|at| section.rows[at].key).collect();
            let order = self.order.entry(section.key).or_default();
            // Rows of other traces follow.
            order.retain(|key| !natural.contains(key));
            order.splice(..0, natural);
            order
        };
        let place = |key| order.iter().position(|&other| other == key);
        if let (Some(from), Some(to)) = (place(row), place(target)) {
            let moved = order.remove(from);
            order.insert(to, moved);
        }
    }

    /// The row that is shown above or below another one of the same section, or of the pinned ones.
    pub fn neighbour(&self, section: &Section, row: Key, below: bool) -> Option<Key> {
        let shown = |key: &Key| *key == row || !self.hidden.contains(key);
        let order: Vec<Key> = if self.is_pinned(row) {
            self.pinned.iter().copied().filter(shown).collect()
        } else {
            let rows = self.ordered(section).map(|at| section.rows[at].key);
            rows.filter(|key| shown(key) && !self.is_pinned(*key)).collect()
        };
        let at = order.iter().position(|&other| other == row)?;
        order.get(if below { at + 1 } else { at.checked_sub(1)? }).copied()
    }

    /// Does something to a row of a section.
    pub fn act(&mut self, section: &Section, row: Key, act: RowAct) {
        match act {
            RowAct::MoveUp | RowAct::MoveDown => {
                if let Some(target) = self.neighbour(section, row, act == RowAct::MoveDown) {
                    self.move_to(section, row, target);
                }
            }
            RowAct::Pin => self.toggle_pin(row),
            RowAct::Hide => {
                self.hidden.insert(row);
            }
            RowAct::Fold => self.toggle(Self::fold_of(section, row)),
        }
    }

    /// What folds when a row is to: itself if it has several lanes, else its section.
    pub fn fold_of(section: &Section, row: Key) -> FoldKey {
        let several = section.rows.iter().any(|found| found.key == row && found.lanes.len() > 1);
        if several { FoldKey::Row(row) } else { FoldKey::Section(section.key) }
    }

    /// Whether any row is hidden.
    pub fn hides_any(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Shows every row again.
    pub fn show_all(&mut self) {
        self.hidden.clear();
    }

    /// Shows everything that may be shown: no row is hidden, filtered away or folded.
    pub fn show_whole(&mut self) {
        self.show_all();
        self.filter.clear();
        self.folded.clear();
        self.folded_traces.clear();
    }

    /// Shows a row of a document, whatever hid it. What did not hide it stays.
    pub fn expose(&mut self, doc: usize, section: &Section, row: &Row) {
        // What is pinned stands apart from what folds.
        if !self.is_pinned(row.key) {
            self.folded_traces.remove(&doc);
            self.folded.remove(&section.key);
        }
        self.hidden.remove(&row.key);
        if !self.shows(&self.filter.trim().to_lowercase(), section, row) {
            self.filter.clear();
        }
    }

    /// Whether a row is neither hidden nor filtered away. `filter` is in lower case.
    fn shows(&self, filter: &str, section: &Section, row: &Row) -> bool {
        let is_hidden = |row: &Row| self.hidden.contains(&row.key);
        let passes = |row: &Row| !is_hidden(row) && passes(filter, section, row);
        // The bubbles of a device say what its other rows mean: they stay with them.
        let stays = || matches!(row.kind, RowKind::Bubbles { .. }) && section.rows.iter().any(passes);
        !is_hidden(row) && (passes(row) || stays())
    }

    /// Sets the height of a row's lanes; `None` for the usual one.
    pub fn set_height(&mut self, row: Key, lane_height: Option<f32>) {
        match lane_height {
            Some(height) if height.is_finite() => {
                self.heights.insert(row, height.clamp(*LANE_HEIGHTS.start(), *LANE_HEIGHTS.end()));
            }
            _ => {
                self.heights.remove(&row);
            }
        }
    }

    /// Whether a row's lanes have a height of their own.
    pub fn has_height(&self, row: Key) -> bool {
        self.heights.contains_key(&row)
    }

    /// Positions of a section's rows in the order in which they are shown.
    fn ordered(&self, section: &Section) -> impl Iterator<Item = usize> {
        let moved = self.order.get(&section.key);
        let mut rows: Vec<usize> = (0..section.rows.len()).collect();
        // Bubbles come late, when a trace has been analysed, and are on top unless they were moved.
        rows.sort_by_key(|&at| {
            let row = &section.rows[at];
            let place = moved.and_then(|order| order.iter().position(|&key| key == row.key));
            match (place, row.kind) {
                (Some(place), _) => place as i64,
                (None, RowKind::Bubbles { .. }) => -1,
                (None, _) => i64::MAX,
            }
        });
        rows.into_iter()
    }

    /// Height of each lane of a row.
    fn lane_height(&self, row: &Row) -> f32 {
        let folded = row.lanes.len() > 1 && self.is_folded(FoldKey::Row(row.key));
        match self.heights.get(&row.key) {
            _ if folded => THIN_LANE_HEIGHT,
            Some(&height) => height.clamp(*LANE_HEIGHTS.start(), *LANE_HEIGHTS.end()),
            None if row.lanes.len() > MANY_LANES => THIN_LANE_HEIGHT,
            None => LANE_HEIGHT,
        }
    }

    /// Where every line stands; `names` when traces have a line of their own.
    pub fn layout<'a>(&self, scenes: impl IntoIterator<Item = &'a Scene>, names: bool) -> Layout {
        let filter = self.filter.trim().to_lowercase();
        let mut found = Layout::default();
        let mut pinned = Vec::new();
        let place = |doc: usize, section: usize, row: usize, of: &Row| {
            let lane_height = self.lane_height(of);
            let height = (of.lanes.len() as f32 * lane_height).max(LANE_HEIGHT) + ROW_GAP;
            (height, Place::Row { doc, section, row, lane_height })
        };
        for (doc, scene) in scenes.into_iter().enumerate() {
            let scrolled = &mut found.scrolled;
            if names {
                scrolled.push(TRACE_HEIGHT, Place::Trace { doc });
            }
            let folded = names && self.is_folded(FoldKey::Trace(doc));
            for (section, of) in scene.sections.iter().enumerate() {
                found.hidden += of.rows.iter().filter(|row| self.hidden.contains(&row.key)).count();
                let rows = self.ordered(of).map(|at| (at, &of.rows[at]));
                let rows: Vec<_> = rows.filter(|(_, row)| self.shows(&filter, of, row)).collect();
                let place_of = |&(at, row): &(usize, &Row)| place(doc, section, at, row);
                let of_pin = |row: &Row| self.pinned.iter().position(|&key| key == row.key);
                pinned.extend(rows.iter().filter_map(|row| Some((of_pin(row.1)?, place_of(row)))));
                if folded || !rows.iter().any(|(_, row)| of_pin(row).is_none()) {
                    continue;
                }
                scrolled.push(SECTION_HEIGHT, Place::Section { doc, section });
                if self.is_folded(FoldKey::Section(of.key)) {
                    continue;
                }
                for row in rows.iter().filter(|(_, row)| of_pin(row).is_none()) {
                    let (height, place) = place_of(row);
                    scrolled.push(height, place);
                }
            }
        }
        pinned.sort_by_key(|(at, _)| *at);
        for (_, (height, place)) in pinned {
            found.pinned.push(height, place);
        }
        found
    }
}

/// Whether the title of a row or of its section holds what is filtered by, in lower case.
fn passes(filter: &str, section: &Section, row: &Row) -> bool {
    filter.is_empty() || [&row.title, &section.title].iter().any(|title| title.to_lowercase().contains(filter))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bubblescope::analysis::{Options, analyze};

    use super::*;
    use crate::rows::bubbles;
    use crate::testing;

    fn rows(scene: &Scene, lines: &Lines) -> Vec<Key> {
        let row = |line: &Line| match line.place {
            Place::Row { section, row, .. } => Some(scene.sections[section].rows[row].key),
            _ => None,
        };
        lines.lines.iter().filter_map(row).collect()
    }

    #[test]
    fn lines_follow_each_other_and_folding_hides_rows() {
        let scene = Scene::new(&Arc::new(testing::trace(2, 5)));
        let mut arrangement = Arrangement::default();
        let all = arrangement.layout([&scene], false).scrolled;
        for pair in all.lines.windows(2) {
            assert_eq!(pair[0].top + pair[0].height, pair[1].top);
        }
        assert_eq!(all.height, all.lines.last().map_or(0.0, |line| line.top + line.height));
        assert_eq!(all.between(all.lines[1].top, all.lines[2].top), &all.lines[1..2]);
        let key = FoldKey::Section(scene.sections[0].key);
        arrangement.toggle(key);
        let fewer = arrangement.layout([&scene], false).scrolled;
        assert_eq!(fewer.lines.len() + scene.sections[0].rows.len(), all.lines.len());
        arrangement.toggle(key);
        assert_eq!(arrangement.layout([&scene], false).scrolled, all);
        arrangement.toggle(FoldKey::Trace(0));
        assert_eq!(arrangement.layout([&scene], true).scrolled.lines.len(), 1);
    }

    #[test]
    fn hidden_and_filtered_rows_take_their_empty_section_with_them() {
        let scene = Scene::new(&Arc::new(testing::trace(2, 5)));
        let count = |arrangement: &Arrangement| arrangement.layout([&scene], false).scrolled.lines.len();
        let all = count(&Arrangement::default());
        let hidden = BTreeSet::from([scene.sections[0].rows[0].key, Key::of("a row of another trace")]);
        let hiding = Arrangement { hidden, ..Arrangement::default() };
        assert_eq!(count(&hiding), all - 1);
        assert_eq!(hiding.layout([&scene], false).hidden, 1);
        let filtered = |filter: &str| count(&Arrangement { filter: filter.to_owned(), ..Arrangement::default() });
        assert_eq!(filtered(" STREAM 7 "), 2);
        assert_eq!(filtered("gpu 0"), 1 + scene.sections[0].rows.len(), "a section's name shows all its rows");
        assert_eq!(filtered("nothing is called this"), 0);
    }

    #[test]
    fn exposing_a_row_shows_it_and_undoes_nothing_that_did_not_hide_it() {
        let trace = Arc::new(testing::trace(3, 5));
        let mut scene = Scene::new(&trace);
        scene.set_bubbles(bubbles(&trace, &analyze(&trace, &Options::default())));
        let shown = |arrangement: &Arrangement, row: &Row| {
            let layout = arrangement.layout([&scene], true);
            [layout.pinned, layout.scrolled].iter().any(|lines| rows(&scene, lines).contains(&row.key))
        };
        let all = || scene.sections.iter().flat_map(|section| section.rows.iter().map(move |row| (section, row)));
        let keys: Vec<Key> = all().map(|(_, row)| row.key).collect();
        for filter in ["", "stream", "bubbles", "main", "gpu 0", "nothing is called this"] {
            // Each of these: every row or none is hidden or pinned, or only those of one parity.
            for (hide, pin) in (0..4).flat_map(|hide| (0..4).map(move |pin| (hide, pin))) {
                for fold in 0..4 {
                    let of = |which: usize| keys.iter().enumerate().filter(move |(at, _)| which >> (at % 2) & 1 == 1);
                    let mut before = Arrangement { filter: filter.to_owned(), ..Arrangement::default() };
                    before.hidden.extend(of(hide).map(|(_, key)| key));
                    before.pinned.extend(of(pin).map(|(_, key)| key));
                    if fold & 1 == 1 {
                        before.toggle(FoldKey::Trace(0));
                    }
                    if fold & 2 == 2 {
                        scene.sections.iter().for_each(|section| before.toggle(FoldKey::Section(section.key)));
                    }
                    for (section, row) in all() {
                        let what = format!("{}, filter {filter}, hide {hide}, pin {pin}, fold {fold}", row.title);
                        let mut after = before.clone();
                        after.expose(0, section, row);
                        assert!(shown(&after, row), "{what}");
                        if shown(&before, row) {
                            assert!(after == before, "{what}: it was shown already");
                        }
                        // Whatever is put back hides it.
                        let undone = [
                            Arrangement { filter: before.filter.clone(), ..after.clone() },
                            Arrangement { hidden: before.hidden.clone(), ..after.clone() },
                            Arrangement { folded: before.folded.clone(), ..after.clone() },
                            Arrangement { folded_traces: before.folded_traces.clone(), ..after.clone() },
                        ];
                        for undone in undone.iter().filter(|undone| **undone != after) {
                            assert!(!shown(undone, row), "{what}: it did not hide it");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn pinned_rows_stand_apart_in_their_own_order() {
        let scene = Scene::new(&Arc::new(testing::trace(3, 5)));
        let section = &scene.sections[0];
        let (first, last) = (section.rows[0].key, section.rows[2].key);
        let mut arrangement = Arrangement::default();
        let all = rows(&scene, &arrangement.layout([&scene], false).scrolled);
        arrangement.toggle_pin(last);
        arrangement.toggle_pin(first);
        let layout = arrangement.layout([&scene], false);
        assert_eq!(rows(&scene, &layout.pinned), [last, first]);
        assert_eq!(layout.pinned.lines[0].top, 0.0);
        let rest = rows(&scene, &layout.scrolled);
        assert_eq!(rest.len() + 2, all.len());
        assert!(!rest.contains(&first) && !rest.contains(&last));
        arrangement.move_to(section, first, last);
        assert_eq!(rows(&scene, &arrangement.layout([&scene], false).pinned), [first, last]);
        arrangement.toggle_pin(last);
        arrangement.toggle_pin(first);
        assert_eq!(rows(&scene, &arrangement.layout([&scene], false).scrolled), all);
    }

    #[test]
    fn rows_move_within_their_section() {
        let scene = Scene::new(&Arc::new(testing::trace(4, 5)));
        let section = &scene.sections[0];
        let keys: Vec<Key> = section.rows.iter().map(|row| row.key).collect();
        let mut arrangement = Arrangement::default();
        let order = |arrangement: &Arrangement| -> Vec<Key> {
            let shown = rows(&scene, &arrangement.layout([&scene], false).scrolled);
            shown.into_iter().filter(|key| keys.contains(key)).collect()
        };
        let before = order(&arrangement);
        arrangement.move_to(section, keys[0], keys[2]);
        assert_eq!(order(&arrangement)[..4], [keys[1], keys[2], keys[0], keys[3]]);
        assert_eq!(arrangement.neighbour(section, keys[0], true), Some(keys[3]));
        assert_eq!(arrangement.neighbour(section, keys[0], false), Some(keys[2]));
        assert_eq!(arrangement.neighbour(section, keys[1], false), None);
        arrangement.move_to(section, keys[0], keys[1]);
        assert_eq!(order(&arrangement), before);
        arrangement.move_to(section, keys[0], Key::of("a row of another section"));
        assert_eq!(order(&arrangement), before);
    }

    #[test]
    fn heights_are_kept_within_reason() {
        let scene = Scene::new(&Arc::new(testing::trace(1, 5)));
        let key = scene.sections[0].rows[0].key;
        let mut arrangement = Arrangement::default();
        let height = |arrangement: &Arrangement| arrangement.layout([&scene], false).scrolled.lines[1].height;
        let usual = height(&arrangement);
        arrangement.set_height(key, Some(50.0));
        assert!(height(&arrangement) > 2.0 * usual);
        for odd in [f32::NAN, f32::INFINITY, -1.0, 1e9] {
            arrangement.set_height(key, Some(odd));
            assert!((1.0..2000.0).contains(&height(&arrangement)), "{odd}");
        }
        arrangement.set_height(key, None);
        assert_eq!(height(&arrangement), usual);
    }

    #[test]
    fn names_make_keys_that_last() {
        assert_eq!(Key::of(""), Key(0xcbf2_9ce4_8422_2325));
        assert_eq!(Key::of("a"), Key(0xaf63_dc4c_8601_ec8c), "as published");
        let (one, other) = (Scene::new(&Arc::new(testing::trace(2, 5))), Scene::new(&Arc::new(testing::trace(2, 9))));
        let keys = |scene: &Scene| -> Vec<Key> {
            scene.sections.iter().flat_map(|section| section.rows.iter().map(|row| row.key)).collect()
        };
        assert_eq!(keys(&one), keys(&other), "another trace of the same program has the same rows");
        let distinct: BTreeSet<Key> = keys(&one).into_iter().collect();
        assert_eq!(distinct.len(), keys(&one).len());
    }
}
