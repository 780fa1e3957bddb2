//! What an importer met that a reader should know.

use crate::report::text::counted;
use crate::trace::Meta;

/// What a kind of thing is and what was done, without its count: of one, and of several. `event has no end: left out` and
/// `events have no end: left out`.
pub(super) type Kind = [&'static str; 2];

/// Counts what is unusual in a source, each kind of thing once.
///
/// It should say what was done.
#[derive(Debug, Default)]
pub struct Notes {
    /// Few enough kinds that a list is quicker than a map.
    kinds: Vec<Note>,
}

#[derive(Debug)]
struct Note {
    what: Kind,
    count: u64,
    first_at: Option<u64>,
}

impl Notes {
    /// No notes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one more of `what`, met at this byte of the source where that means something.
    pub fn count(&mut self, what: Kind, at: Option<u64>) {
        self.add(what, 1, at);
    }

    /// Counts `count` more of `what`; none is no note.
    pub fn add(&mut self, what: Kind, count: u64, at: Option<u64>) {
        if count == 0 {
            return;
        }
        match self.kinds.iter_mut().find(|note| note.what == what) {
            Some(note) => {
                note.count = note.count.saturating_add(count);
                note.first_at = note.first_at.or(at);
            }
            None => self.kinds.push(Note { what, count, first_at: at }),
        }
    }

    /// Whether there is nothing to note.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The notes as sentences, in the order in which their kinds were met.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().map(|note| {
            let place = note.first_at.map_or(String::new(), |at| match note.count {
                1 => format!(" (at byte {at})"),
                _ => format!(" (the first at byte {at})"),
            });
            let [one, many] = note.what;
            format!("{}{place}", counted(note.count, one, many))
        })
    }

    /// Adds the notes to a trace's warnings.
    pub fn into_warnings(self, meta: &mut Meta) {
        meta.warnings.extend(self.sentences());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_once_with_its_first_place() {
        let mut notes = Notes::new();
        assert!(notes.is_empty());
        const LOST: Kind = ["event is lost", "events are lost"];
        notes.count(LOST, Some(17));
        notes.count(["mark left out", "marks left out"], None);
        notes.add(LOST, 2_000, Some(99));
        notes.add(["is never met", "are never met"], 0, Some(1));
        notes.count(["copy was cut", "copies were cut"], Some(5));
        let mut meta = Meta::default();
        notes.into_warnings(&mut meta);
        assert_eq!(
            meta.warnings,
            ["2,001 events are lost (the first at byte 17)", "1 mark left out", "1 copy was cut (at byte 5)"]
        );
    }
}
