//! Names by their id (`StringIds`).

use rustc_hash::FxHashMap;

use super::database::{Database, Lookup};
use crate::import::ImportError;
use crate::trace::{NameId, TraceBuilder};

/// The strings of an export. Only those that records name are read: the table also holds the environment and the
/// captured output.
pub(super) struct Strings<'d> {
    rowids: FxHashMap<i64, i64>,
    lookup: Option<Lookup<'d>>,
    names: FxHashMap<i64, NameId>,
}

impl<'d> Strings<'d> {
    pub(super) fn new(database: &'d Database<'_>) -> Result<Self, ImportError> {
        let mut strings = Self { rowids: FxHashMap::default(), lookup: None, names: FxHashMap::default() };
        if let Some(table) = database.table("StringIds") {
            strings.lookup = database.lookup(table, "value");
            if strings.lookup.is_some() {
                database.rowids(table, "id", |rowid, id| {
                    strings.rowids.insert(id, rowid);
                })?;
            }
        }
        Ok(strings)
    }

    /// The text with this id; `None` for an id that leads nowhere.
    pub(super) fn text(&mut self, id: i64) -> Option<String> {
        let rowid = *self.rowids.get(&id)?;
        self.lookup.as_mut()?.text(rowid)
    }

    /// The name with this id. An id that leads nowhere is shown in its place.
    pub(super) fn name(&mut self, builder: &mut TraceBuilder, id: i64) -> NameId {
        if let Some(&name) = self.names.get(&id) {
            return name;
        }
        let name = match self.text(id) {
            Some(text) => builder.name(&text),
            None => builder.name(&format!("(name {id})")),
        };
        self.names.insert(id, name);
        name
    }
}
