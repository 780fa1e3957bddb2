//! Interned strings.

use rustc_hash::FxHashMap;

use super::ids::NameId;

/// Every distinct string of a trace once.
#[derive(Clone, Debug, Default)]
pub struct Names {
    strings: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, NameId>,
}

impl Names {
    /// The id of `text`, new if it was not there.
    pub fn intern(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = NameId::from_index(self.strings.len());
        self.strings.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The id of `text`, if it occurs.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.ids.get(text).copied()
    }

    /// The string behind an id; empty for an id of another trace.
    pub fn get(&self, id: NameId) -> &str {
        self.strings.get(id.index()).map_or("", |text| text)
    }

    /// Number of distinct strings.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there is no string at all.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// All strings in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &str)> {
        self.strings.iter().enumerate().map(|(index, text)| (NameId::from_index(index), &**text))
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.strings == other.strings
    }
}
