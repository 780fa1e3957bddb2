//! Sentences for changes.

use crate::analysis::replay::{CallSet, Change};

/// A replayed change in words, from its name in the report; the name itself when it is not known.
pub(super) fn change(name: &str) -> String {
    let Ok(change) = name.parse::<Change>() else { return name.to_owned() };
    let words = match change {
        Change::Async(CallSet::All) => "no call waits for the GPU".to_owned(),
        Change::Remove(calls) => format!("without {calls}"),
        Change::Async(calls) => format!("{calls} made asynchronous"),
        Change::Graph => "runs of launches submitted as graphs".to_owned(),
        Change::Usual(calls) => format!("{calls} as short as usual"),
        Change::NoStreamWaits => "streams that do not wait for each other's events".to_owned(),
        Change::NoDefaultStream => "no stream serialised with the legacy default stream".to_owned(),
        Change::Pinned => "pageable copies made pinned".to_owned(),
        Change::Host { millionths: 500_000 } => "host code twice as fast".to_owned(),
        Change::Host { millionths } => format!("host code takes {} × its time", f64::from(millionths) / 1e6),
        Change::HostSteps { .. } => "repeated host code faster".to_owned(),
        Change::NoTracer(_) => "without the cost of recording".to_owned(),
    };
    format!("{words} ({name})")
}
