//! `validate`: checks every row in the same way as `import`, and writes nothing.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::model::spec::Spec;
use crate::ports::processor::{CostClass, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::text::{RowSchema, SchemaError, SchemaViolation, shortened};

/// The job type `validate`.
///
/// Its param `schema` is a JSON Schema (2020-12) for the row as an object. Without one every well-formed row is valid.
pub struct Validate;

impl JobType for Validate {
    fn name(&self) -> &str {
        "validate"
    }

    fn params(&self) -> &'static [&'static str] {
        &["schema"]
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(RowCheck { schema: compile_schema(spec)?, has_schema: spec.params.contains_key("schema") }))
    }
}

struct RowCheck {
    schema: RowSchema,
    has_schema: bool,
}

#[async_trait]
impl ItemProcessor for RowCheck {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        if self.has_schema {
            self.schema.validate(&item.record).map_err(violation)?;
        }
        Ok(ItemOutcome::Succeeded)
    }

    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.process(item).await
    }

    fn held_bytes(&self) -> usize {
        self.schema.held_bytes()
    }

    fn cost(&self) -> CostClass {
        CostClass::Fast
    }
}

pub(super) fn compile_schema(spec: &Spec) -> Result<RowSchema, ParamsError> {
    let schema = spec.params.get("schema");
    let compiled = RowSchema::compile(schema).map_err(|error| unusable_schema("params.schema", &error))?;
    require_columns(spec, schema)?;
    Ok(compiled)
}

/// Rejects a schema that requires a column which the file does not have: every row would fail.
fn require_columns(spec: &Spec, schema: Option<&Value>) -> Result<(), ParamsError> {
    let columns = &spec.head.columns;
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let missing = missing_columns(columns, required.into_iter().flatten().filter_map(Value::as_str));
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "requires columns that the file does not have, so every row would fail: {}. The file has the columns {}. Correct \
         the schema or the file.",
        name_some(&missing),
        name_some(columns)
    );
    Err(ParamsError::new("params.schema", message))
}

/// Those of these names that a file with these columns does not have. An empty file has no columns and no rows, and each
/// JSON row has fields of its own: then none is missing.
pub(super) fn missing_columns<'a>(columns: &[String], names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.filter(|name| !columns.is_empty() && !columns.iter().any(|column| column == name)).collect()
}

/// Maximum number of names in a message.
const NAMES_MAX: usize = 20;

/// These names, or the first of them and how many more there are.
pub(super) fn name_some(names: &[impl AsRef<str>]) -> String {
    let first: Vec<String> =
        names.iter().take(NAMES_MAX).map(|name| format!("`{}`", shortened(name.as_ref()))).collect();
    match names.len().saturating_sub(NAMES_MAX) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Rejects the schema in this field of the request.
pub(super) fn unusable_schema(field: &str, error: &SchemaError) -> ParamsError {
    ParamsError::new(field, format!("cannot be used as a schema. {error}"))
}

/// Checks the row and returns it as an object with typed values.
pub(super) fn check(schema: &RowSchema, item: &Item) -> Result<Map<String, Value>, ItemError> {
    schema.check(item.record.clone()).map_err(violation)
}

fn violation(violation: SchemaViolation) -> ItemError {
    let SchemaViolation { column, rule, message } = violation;
    ItemError { column, rule, ..ItemError::permanent("schema_violation", message) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::job_types::test_spec::spec;
    use crate::text::Format;

    #[test]
    fn a_schema_that_requires_a_column_which_the_file_lacks_is_refused() {
        let params = json!({ "schema": { "required": ["id", "email", "age"] } });
        let refused = |format, columns: &[&str]| Validate.prepare(&spec("validate", format, columns, &params)).err();
        let error = refused(Format::Csv, &["id", "mail"]).expect("refused");
        assert_eq!(error.field, "params.schema");
        assert!(error.message.contains("every row would fail: `email`, `age`. The file has the columns `id`, `mail`"));
        assert_eq!(refused(Format::Csv, &["age", "email", "id", "more"]), None);
        assert_eq!(refused(Format::Csv, &[]), None, "an empty file");
        assert_eq!(refused(Format::Jsonl, &[]), None, "each row has fields of its own");
        let many: Vec<String> = (0..1000).map(|number| format!("column{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let error = refused(Format::Csv, &many).expect("refused").to_string();
        assert!(error.contains("`column19` and 980 more") && error.len() < 1000, "{error}");
    }
}
