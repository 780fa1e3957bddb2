//! Which buffers CUPTI keeps back.

use std::collections::BTreeSet;

/// The buffers that CUPTI had before complete ones were last fetched, and did not give. Buffers are numbered in the order
/// in which they are handed out.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// All lower numbers had been handed out at the last fetch.
    fetched: u64,
    /// Those of them that have not come back.
    missing: BTreeSet<u64>,
    /// Higher numbers that have come back.
    early: BTreeSet<u64>,
}

impl Held {
    /// A buffer has come back.
    pub(super) fn returned(&mut self, number: u64) {
        if number < self.fetched {
            self.missing.remove(&number);
        } else {
            self.early.insert(number);
        }
    }

    /// Complete buffers were fetched when so many had been handed out.
    pub(super) fn fetched(&mut self, handed_out: u64) {
        let new = self.fetched..handed_out;
        self.fetched = self.fetched.max(handed_out);
        let early = &mut self.early;
        self.missing.extend(new.filter(|number| !early.remove(number)));
    }

    pub(super) fn count(&self) -> u64 {
        self.missing.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_outlasts_a_fetch_is_held() {
        let mut held = Held::default();
        held.fetched(0);
        held.returned(1);
        held.fetched(3);
        assert_eq!(held.count(), 2, "0 and 2");
        held.returned(4);
        held.returned(0);
        assert_eq!(held.count(), 1, "those handed out since do not count");
        held.fetched(5);
        assert_eq!(held.count(), 2, "2 and 3");
        held.returned(3);
        held.returned(2);
        assert_eq!(held.count(), 0);
        held.fetched(4);
        held.fetched(5);
        assert_eq!((held.count(), held.early.len()), (0, 0), "nothing is kept for long");
    }
}
