//! The texts that are valid while reading a spool front to back.

use super::Text;
use rustc_hash::FxHashMap;

/// Which text each pointer means at this point of the spool. Feed it every [`super::Chunk::Strings`] in order, and
/// look up the pointers of the buffer that follows.
#[derive(Clone, Debug, Default)]
pub struct Strings(FxHashMap<u64, Box<str>>);

impl Strings {
    /// Takes in the texts of one chunk; they replace earlier ones of the same pointers.
    pub fn extend(&mut self, texts: Vec<Text>) {
        self.0.extend(texts.into_iter().map(|text| (text.pointer, text.text)));
    }

    /// The text behind `pointer`, if the recorder saw one.
    pub fn get(&self, pointer: u64) -> Option<&str> {
        self.0.get(&pointer).map(AsRef::as_ref)
    }
}
