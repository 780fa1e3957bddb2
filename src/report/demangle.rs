//! Readable names of kernels.

use std::fmt;

use cpp_demangle::{DemangleOptions, Symbol};

/// The longest demangled name that is kept, in bytes. A mangled name can describe an exponentially long one.
const LONGEST: usize = 4096;

/// The readable form of a kernel's name: demangled if it is a mangled C++ name, otherwise itself.
pub fn demangle(name: &str) -> String {
    let demangled = || {
        let symbol = Symbol::new(name.strip_prefix("_Z").map(|_| name)?).ok()?;
        let mut text = Limited(String::new());
        symbol.structured_demangle(&mut text, &DemangleOptions::new().no_return_type()).ok()?;
        Some(text.0)
    };
    demangled().unwrap_or_else(|| name.to_owned())
}

/// Text up to [`LONGEST`] bytes; an error beyond it.
struct Limited(String);

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mangled_names_are_demangled_and_others_left_alone() {
        assert_eq!(demangle("_Z4axpyfPKfPf"), "axpy(float, float const*, float*)");
        for name in ["ampere_sgemm_128x64_nn", "Memcpy DtoH (Device -> Pinned)", "_Znot mangled", "_Z", ""] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn a_name_that_grows_without_bound_stays_mangled() {
        // Each S_ stands for all that came before: the text doubles with every pair.
        let mut name = "_Z1fI1A".to_owned();
        name.push_str(&"S_IS0_S0_E".repeat(200));
        name.push('E');
        assert!(demangle(&name).len() <= LONGEST.max(name.len()));
    }

    proptest! {
        #[test]
        fn any_text_can_be_demangled(name in "_Z[A-Za-z0-9_]{0,60}") {
            prop_assert!(demangle(&name).len() <= LONGEST.max(name.len()));
        }
    }
}
