//! Which variant of which workload to run, with which options.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{OptionInfo, WorkloadError, WorkloadInfo, catalogue};

/// A variant of a workload and a value for each of its options. There is no spec that cannot be run for its form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "RawSpec")]
pub struct RunSpec {
    info: Known,
    variant: &'static str,
    options: BTreeMap<&'static str, u64>,
}

/// A workload of the catalogue, compared by its name.
#[derive(Debug, Clone, Copy)]
struct Known(&'static WorkloadInfo);

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Known {}

/// The form in which a spec travels.
#[derive(Serialize, Deserialize)]
struct RawSpec {
    workload: String,
    variant: String,
    options: BTreeMap<String, String>,
}

/// Why a spec cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No workload has this name.
    #[error("there is no workload '{name}'; there are {known}")]
    UnknownWorkload {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The workload has no variant of this name.
    #[error("workload '{workload}' has no variant '{name}'; it has {known}")]
    UnknownVariant {
        /// The workload.
        workload: &'static str,
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The workload has no option of this name.
    #[error("workload '{workload}' has no option '{name}'; it has {known}")]
    UnknownOption {
        /// The workload.
        workload: &'static str,
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The value is not a whole number, or not one of those allowed.
    #[error("option '{name}' of workload '{workload}' cannot be '{value}'; it takes {allowed}")]
    BadValue {
        /// The workload.
        workload: &'static str,
        /// The option.
        name: &'static str,
        /// What was asked for.
        value: String,
        /// What may be asked for.
        allowed: String,
    },
}

impl RunSpec {
    /// Checks the names and values against the catalogue; options that are not given take their defaults.
    ///
    /// # Errors
    /// [`SpecError`] names the first thing that is not in the catalogue, and what is.
    pub fn new(workload: &str, variant: &str, options: &BTreeMap<String, String>) -> Result<Self, SpecError> {
        let Some(info) = catalogue().iter().find(|info| info.name == workload) else {
            let known = list(catalogue().iter().map(|info| info.name));
            return Err(SpecError::UnknownWorkload { name: workload.to_owned(), known });
        };
        let Some(variant) = info.variant(variant) else {
            let known = list(info.variants.iter().map(|variant| variant.name));
            return Err(SpecError::UnknownVariant { workload: info.name, name: variant.to_owned(), known });
        };
        let mut values: BTreeMap<_, _> = info.options.iter().map(|option| (option.name, option.default)).collect();
        for (name, value) in options {
            let Some(option) = info.option(name) else {
                let known = list(info.options.iter().map(|option| option.name));
                return Err(SpecError::UnknownOption { workload: info.name, name: name.clone(), known });
            };
            values.insert(option.name, parse(info, option, value)?);
        }
        Ok(Self { info: Known(info), variant: variant.name, options: values })
    }

    /// The workload's entry in the catalogue.
    pub fn info(&self) -> &'static WorkloadInfo {
        self.info.0
    }

    /// The workload's name.
    pub fn workload(&self) -> &'static str {
        self.info.0.name
    }

    /// The variant's name.
    pub fn variant(&self) -> &'static str {
        self.variant
    }

    /// Every option of the workload with its value, whether it was given or is the default.
    pub fn options(&self) -> &BTreeMap<&'static str, u64> {
        &self.options
    }

    /// The variant in the workload's own terms.
    pub(crate) fn choose<V>(&self, from_name: impl Fn(&str) -> Option<V>) -> Result<V, WorkloadError> {
        from_name(self.variant).ok_or_else(|| WorkloadError::Unsupported {
            variant: self.variant,
            reason: "the workload does not have it".to_owned(),
        })
    }

    /// The value of an option, which is 0 if the workload has none of that name.
    pub(crate) fn get(&self, option: &OptionInfo) -> u64 {
        self.options.get(option.name).copied().unwrap_or(0)
    }

    /// The value of an option whose maximum fits 32 bits.
    pub(crate) fn get_u32(&self, option: &OptionInfo) -> u32 {
        u32::try_from(self.get(option)).unwrap_or(u32::MAX)
    }
}

fn parse(info: &WorkloadInfo, option: &'static OptionInfo, value: &str) -> Result<u64, SpecError> {
    match value.parse::<u64>() {
        Ok(number) if (option.min..=option.max).contains(&number) && number % option.multiple_of == 0 => Ok(number),
        _ => {
            let mut allowed = format!("a whole number from {} to {}", option.min, option.max);
            if option.multiple_of > 1 {
                allowed += &format!(", a multiple of {}", option.multiple_of);
            }
            Err(SpecError::BadValue { workload: info.name, name: option.name, value: value.to_owned(), allowed })
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

impl From<RunSpec> for RawSpec {
    fn from(spec: RunSpec) -> Self {
        Self {
            workload: spec.workload().to_owned(),
            variant: spec.variant().to_owned(),
            options: spec.options.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect(),
        }
    }
}

// Not derived: that would ask for input that lives forever, because of the names borrowed from the catalogue.
impl<'de> Deserialize<'de> for RunSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawSpec::deserialize(deserializer)?;
        Self::new(&raw.workload, &raw.variant, &raw.options).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_variant_can_be_named_and_gets_the_defaults() {
        for info in catalogue() {
            for variant in info.variants {
                let spec = RunSpec::new(info.name, variant.name, &BTreeMap::new()).unwrap();
                assert_eq!((spec.workload(), spec.variant()), (info.name, variant.name));
                for option in info.options {
                    assert_eq!(spec.get(option), option.default);
                }
            }
        }
    }

    #[test]
    fn a_given_option_replaces_its_default_only() {
        let spec = RunSpec::new("scalar-readback", "sync", &options(&[("iterations", "7")])).unwrap();
        assert_eq!(spec.options()["iterations"], 7);
        for option in spec.info().options.iter().filter(|option| option.name != "iterations") {
            assert_eq!(spec.get(option), option.default);
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = RunSpec::new("nonsense", "sync", &BTreeMap::new()).unwrap_err();
        assert!(matches!(error, SpecError::UnknownWorkload { .. }));
        assert!(error.to_string().contains("scalar-readback"), "{error}");
        let error = RunSpec::new("scalar-readback", "nonsense", &BTreeMap::new()).unwrap_err();
        assert!(matches!(error, SpecError::UnknownVariant { .. }));
        assert!(error.to_string().contains("sync-pinned"), "{error}");
        let error = RunSpec::new("scalar-readback", "sync", &options(&[("nonsense", "1")])).unwrap_err();
        assert!(matches!(error, SpecError::UnknownOption { .. }));
        assert!(error.to_string().contains("iterations"), "{error}");
    }

    #[test]
    fn values_outside_the_allowed_ones_are_refused_for_every_option() {
        for info in catalogue() {
            for option in info.options {
                let mut bad = vec!["".to_owned(), "x".to_owned(), "-1".to_owned(), "1.5".to_owned(), " 1".to_owned()];
                bad.extend(option.min.checked_sub(option.multiple_of).map(|below| below.to_string()));
                bad.extend(option.max.checked_add(option.multiple_of).map(|above| above.to_string()));
                bad.push("18446744073709551616".to_owned());
                if option.multiple_of > 1 {
                    bad.push((option.default + 1).to_string());
                }
                for value in bad {
                    let given = options(&[(option.name, &value)]);
                    let error = RunSpec::new(info.name, info.variants[0].name, &given).unwrap_err();
                    assert!(matches!(error, SpecError::BadValue { .. }), "{} {value}: {error}", option.name);
                }
                for value in [option.min, option.max].iter().filter(|value| *value % option.multiple_of == 0) {
                    let given = options(&[(option.name, &value.to_string())]);
                    assert!(RunSpec::new(info.name, info.variants[0].name, &given).is_ok(), "{} {value}", option.name);
                }
            }
        }
    }

    #[test]
    fn a_spec_survives_json_and_a_bad_one_is_refused_there_too() {
        let spec = RunSpec::new("scalar-readback", "graph", &options(&[("iterations", "40")])).unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<RunSpec>(&text).unwrap(), spec);
        let text = text.replace("\"40\"", "\"forty\"");
        assert!(serde_json::from_str::<RunSpec>(&text).unwrap_err().to_string().contains("forty"));
    }
}
