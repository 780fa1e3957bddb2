//! What an importer met that a reader should know.

use crate::trace::Meta;

/// Counts what is unusual in a source, each kind of thing once.
///
/// A kind is a sentence without its count, such as `events without a duration: left out`. It should say what was done.
#[derive(Debug, Default)]
pub struct Notes {
    /// Few enough kinds that a list is quicker than a map.
    kinds: Vec<Note>,
}

#[derive(Debug)]
struct Note {
    what: &'static str,
    count: u64,
    first_at: Option<u64>,
}

impl Notes {
    /// No notes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one more of `what`, met at this byte of the source where that means something.
    pub fn count(&mut self, what: &'static str, at: Option<u64>) {
        self.add(what, 1, at);
    }

    /// Counts `count` more of `what`; none is no note.
    pub fn add(&mut self, what: &'static str, count: u64, at: Option<u64>) {
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

    /// How many of `what` were counted.
    pub fn of(&self, what: &str) -> u64 {
        self.kinds.iter().find(|note| note.what == what).map_or(0, |note| note.count)
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
            format!("{} {}{place}", note.count, note.what)
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
        notes.count("events lost", Some(17));
        notes.count("marks left out", None);
        notes.add("events lost", 2, Some(99));
        notes.add("never met", 0, Some(1));
        notes.count("copies cut", Some(5));
        assert_eq!((notes.of("events lost"), notes.of("never met")), (3, 0));
        let mut meta = Meta::default();
        notes.into_warnings(&mut meta);
        assert_eq!(
            meta.warnings,
            ["3 events lost (the first at byte 17)", "1 marks left out", "1 copies cut (at byte 5)"]
        );
    }
}
