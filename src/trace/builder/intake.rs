//! What a builder does with events: it keeps them all, or looks at them again and again and then keeps a part.

use super::super::ids::ThreadIdx;
use super::super::names::Names;
use super::super::part::{CallSeen, Choice, EventAwaited, Extent, OpSeen, RecordSeen, Rest, Seen};
use super::super::time::Ns;
use super::TraceBuilder;

/// What a builder does with events.
#[derive(Debug, Default)]
pub(super) enum Intake {
    /// It keeps them.
    #[default]
    All,
    /// It looks how far they extend.
    Measure(Extent),
    /// It looks which belong to a part.
    Choose(Box<Choice>),
    /// It looks where the calls of a part began.
    Begin(Box<Choice>),
    /// It keeps those of a part.
    Part(Box<(Choice, Rest)>),
}

impl Intake {
    /// Whether to keep an op.
    pub(super) fn op(&mut self, seen: &Seen, op: &OpSeen) -> bool {
        match self {
            Self::All => true,
            Self::Measure(extent) => {
                extent.include_op(seen);
                false
            }
            Self::Choose(choice) => {
                choice.look_at_op(seen, op.graph);
                false
            }
            Self::Begin(_) => false,
            Self::Part(part) => part.0.has_op(seen, op, &mut part.1),
        }
    }

    /// Whether to keep a call.
    pub(super) fn call(&mut self, seen: &Seen, call: &CallSeen, names: &Names) -> bool {
        match self {
            Self::Choose(choice) => {
                choice.look_at_call(seen, call, names);
                false
            }
            Self::Begin(choice) => {
                choice.begins(seen, call.thread);
                false
            }
            Self::Part(part) => part.0.has_call(seen, call, &mut part.1),
            Self::All | Self::Measure(_) => self.other(seen),
        }
    }

    /// Whether to keep a synchronisation.
    pub(super) fn sync(&mut self, seen: &Seen, awaited: &EventAwaited) -> bool {
        match self {
            Self::Choose(choice) => {
                choice.look_at_sync(seen, awaited);
                false
            }
            Self::All | Self::Measure(_) | Self::Begin(_) | Self::Part(_) => self.other(seen),
        }
    }

    /// Whether to keep a range.
    pub(super) fn range(&mut self, seen: &Seen, thread: ThreadIdx) -> bool {
        match self {
            Self::Choose(choice) => {
                choice.look_at_range(seen);
                false
            }
            Self::Part(part) => part.1.other(part.0.has_range(seen, thread)),
            Self::All | Self::Measure(_) | Self::Begin(_) => self.other(seen),
        }
    }

    /// Whether to keep the record of an event, which has no time on the host.
    pub(super) fn record(&mut self, record: &RecordSeen) -> bool {
        match self {
            Self::All => true,
            Self::Measure(_) | Self::Choose(_) | Self::Begin(_) => false,
            Self::Part(part) => part.1.other(part.0.has_record(record)),
        }
    }

    /// Whether to keep anything else.
    pub(super) fn other(&mut self, seen: &Seen) -> bool {
        match self {
            Self::All => true,
            Self::Measure(extent) => {
                extent.include(seen);
                false
            }
            Self::Choose(choice) => {
                choice.look(seen);
                false
            }
            Self::Begin(_) => false,
            Self::Part(part) => part.1.other(part.0.has(seen)),
        }
    }
}

impl TraceBuilder {
    /// A builder that keeps no event and looks how far they extend.
    pub(crate) fn measuring() -> Self {
        Self { intake: Intake::Measure(Extent::default()), ..Self::default() }
    }

    /// How far the events extend, of a builder that looked at it.
    pub(crate) fn measured(self) -> Extent {
        if let Intake::Measure(extent) = self.intake { extent } else { Extent::default() }
    }

    /// A builder that keeps no event and looks which belong to a part.
    pub(crate) fn choosing(choice: Choice) -> Self {
        Self { intake: Intake::Choose(Box::new(choice)), ..Self::default() }
    }

    /// A builder that keeps no event and looks where the calls of a part began.
    pub(crate) fn beginning(choice: Choice) -> Self {
        Self { intake: Intake::Begin(Box::new(choice)), ..Self::default() }
    }

    /// Which events belong to the part, as far as a builder knows that looked at it.
    pub(crate) fn chosen(self) -> Choice {
        match self.intake {
            Intake::Choose(mut choice) => {
                choice.settle();
                *choice
            }
            Intake::Begin(mut choice) => {
                choice.settle_begins();
                *choice
            }
            _ => Choice::new(Extent::default(), None, None, Ns::ZERO),
        }
    }

    /// A builder that keeps the events of a part. It must be given the same as those that looked at them.
    pub(crate) fn of_part(choice: Choice) -> Self {
        let rest = choice.rest();
        Self { intake: Intake::Part(Box::new((choice, rest))), ..Self::default() }
    }
}
