//! Finding the NVTX range that is to be recorded among all that the program marks.

use cupti::collector::{Event, RangeText};

/// What an event means for the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The range begins.
    Begins,
    /// The range ends.
    Ends,
}

/// Looks for the first range with a text.
#[derive(Debug)]
pub(crate) struct Search {
    name: String,
    /// Under which the program has registered the text, one in each domain.
    handles: Vec<usize>,
    found: Found,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// On a thread's stack, with so many ranges on it from this one on.
    Pushed {
        thread: i32,
        domain: usize,
        depth: u32,
    },
    Started {
        id: u64,
    },
    Ended,
}

impl Search {
    pub(crate) fn new(name: String) -> Self {
        Self { name, handles: Vec::new(), found: Found::Nothing }
    }

    /// The search of a forked child: with the texts that were registered before, which it has too.
    pub(crate) fn for_child(&self) -> Self {
        Self { name: self.name.clone(), handles: self.handles.clone(), found: Found::Nothing }
    }

    /// Hears of an event on a thread. Before it is `armed`, no range begins.
    pub(crate) fn hear(&mut self, event: &Event<'_>, thread: i32, armed: bool) -> Option<Turn> {
        match (self.found, *event) {
            (_, Event::TextRegistered { handle, text }) if text.to_bytes() == self.name.as_bytes() => {
                if !self.handles.contains(&handle) {
                    self.handles.push(handle);
                }
                None
            }
            (Found::Nothing, Event::RangePushed { domain, text }) if armed && self.is_meant(text) => {
                self.found = Found::Pushed { thread, domain, depth: 1 };
                Some(Turn::Begins)
            }
            (Found::Nothing, Event::RangeStarted { id, text }) if armed && self.is_meant(text) => {
                self.found = Found::Started { id };
                Some(Turn::Begins)
            }
            (Found::Pushed { thread: of, domain: within, depth }, Event::RangePushed { domain, .. })
                if (of, within) == (thread, domain) =>
            {
                self.found = Found::Pushed { thread, domain, depth: depth.saturating_add(1) };
                None
            }
            (Found::Pushed { thread: of, domain: within, depth }, Event::RangePopped { domain })
                if (of, within) == (thread, domain) =>
            {
                let depth = depth.saturating_sub(1);
                self.found = if depth == 0 { Found::Ended } else { Found::Pushed { thread, domain, depth } };
                (depth == 0).then_some(Turn::Ends)
            }
            (Found::Started { id: of }, Event::RangeEnded { id }) if of == id => {
                self.found = Found::Ended;
                Some(Turn::Ends)
            }
            _ => None,
        }
    }

    fn is_meant(&self, text: RangeText<'_>) -> bool {
        match text {
            RangeText::Text(text) => text.to_bytes() == self.name.as_bytes(),
            RangeText::Registered(handle) => self.handles.contains(&handle),
            RangeText::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(text: &'static std::ffi::CStr) -> Event<'static> {
        Event::RangePushed { domain: 0, text: RangeText::Text(text) }
    }

    const POP: Event<'static> = Event::RangePopped { domain: 0 };

    #[test]
    fn a_pushed_range_ends_with_its_own_pop() {
        let mut search = Search::new("step".to_owned());
        assert_eq!(search.hear(&push(c"step"), 1, false), None, "not yet");
        assert_eq!(search.hear(&POP, 1, true), None);
        assert_eq!(search.hear(&push(c"steps"), 1, true), None);
        assert_eq!(search.hear(&push(c"step"), 1, true), Some(Turn::Begins));
        assert_eq!(search.hear(&push(c"step"), 1, true), None, "one within the other");
        assert_eq!(search.hear(&POP, 2, true), None, "another thread");
        assert_eq!(search.hear(&Event::RangePopped { domain: 9 }, 1, true), None, "another domain");
        assert_eq!(search.hear(&POP, 1, true), None);
        assert_eq!(search.hear(&POP, 1, true), Some(Turn::Ends));
        assert_eq!(search.hear(&push(c"step"), 1, true), None, "the first only");
        assert_eq!(search.hear(&POP, 1, true), None);
    }

    #[test]
    fn a_started_range_ends_with_its_id_on_any_thread() {
        let mut search = Search::new("step".to_owned());
        let start = Event::RangeStarted { id: 4, text: RangeText::Text(c"step") };
        assert_eq!(search.hear(&start, 1, true), Some(Turn::Begins));
        assert_eq!(search.hear(&Event::RangeEnded { id: 5 }, 1, true), None);
        assert_eq!(search.hear(&Event::RangeEnded { id: 4 }, 2, true), Some(Turn::Ends));
    }

    #[test]
    fn registered_texts_are_known_by_their_handles() {
        let mut search = Search::new("step".to_owned());
        let named = |handle| Event::RangePushed { domain: 3, text: RangeText::Registered(handle) };
        for (handle, text) in [(10, c"other"), (11, c"step"), (12, c"step")] {
            assert_eq!(search.hear(&Event::TextRegistered { handle, text }, 1, false), None);
        }
        assert_eq!(search.hear(&named(10), 1, true), None);
        assert_eq!(search.hear(&named(12), 1, true), Some(Turn::Begins));
    }
}
