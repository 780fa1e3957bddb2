//! The JSON Schemas of what Bubblescope writes, generated from the types that write it.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::checked::Checked;
use super::compare::Compare;
use super::contract::Report;
use super::ranks::Ranks;
use crate::trace::Ns;

impl JsonSchema for Ns {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Ns")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "format": "int64" })
    }
}

/// The schema of lengths of time by `K`, in which only the words of `K` are names.
pub(super) fn ns_by<K: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let (names, ns) = (generator.subschema_for::<K>(), generator.subschema_for::<Ns>());
    json_schema!({ "type": "object", "propertyNames": names, "additionalProperties": ns })
}

/// One schema with the name it is published under.
pub struct Published {
    /// File name under `schemas/`.
    pub file: &'static str,
    /// The schema.
    pub schema: Schema,
}

/// Every schema of this version.
pub fn published() -> [Published; 4] {
    [
        Published { file: "bubblescope.report-1.schema.json", schema: schema_of::<Report>() },
        Published { file: "bubblescope.compare-1.schema.json", schema: schema_of::<Compare>() },
        Published { file: "bubblescope.check-1.schema.json", schema: schema_of::<Checked>() },
        Published { file: "bubblescope.ranks-1.schema.json", schema: schema_of::<Ranks>() },
    ]
}

/// The schema of what serialising `T` writes (JSON Schema 2020-12).
fn schema_of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The schemas in the repository are those of the types. `BUBBLESCOPE_BLESS=1` writes them.
    #[test]
    fn checked_in_schemas_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for Published { file, schema } in published() {
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            let path = folder.join(file);
            if std::env::var_os("BUBBLESCOPE_BLESS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let kept = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(kept == text, "{file} differs from the types: BUBBLESCOPE_BLESS=1 cargo test schema");
        }
    }
}
