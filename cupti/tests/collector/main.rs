//! The recorder and the loader against a library that plays CUPTI and libcuda. A process can be recorded once, so every
//! test runs its scenario in a child: this program again, with the scenario's name in the environment.

#![expect(unsafe_code, reason = "loads the mock and vouches for its needing no driver")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

/// A list of scenarios, and a test for each which runs it in a child.
macro_rules! scenarios {
    ($( $name:ident($options:literal) $body:expr; )*) => {
        pub(crate) const SCENARIOS: &[crate::common::Scenario] = &[$( (stringify!($name), $body), )*];
        $(
            #[test]
            fn $name() {
                crate::common::run_child(stringify!($name), $options, &[]).assert_ended_well();
            }
        )*
    };
}

mod allocated;
mod common;
mod driver;
mod inject;
mod recording;

/// Not a test of its own: the body of the scenario that the environment names.
#[test]
fn child() {
    let Ok(scenario) = std::env::var(common::SCENARIO) else { return };
    let mut scenarios =
        recording::SCENARIOS.iter().chain(recording::OWN_END).chain(driver::SCENARIOS).chain(driver::BODIES);
    let (_, body) = scenarios.find(|(name, _)| *name == scenario).expect("a known scenario");
    body(Path::new(&std::env::var_os(common::SPOOL).unwrap()));
}
