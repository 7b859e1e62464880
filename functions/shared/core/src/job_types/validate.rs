//! `validate`: checks every row in the same way as `import`, and writes nothing.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::model::spec::Spec;
use crate::ports::processor::{CostClass, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::text::{RowSchema, SchemaError, SchemaViolation};

/// The job type `validate`.
///
/// Its param `schema` is a JSON Schema (2020-12) for the row as an object. Without a schema every well-formed row is
/// valid.
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

/// Compiles the schema in the job's params.
pub(super) fn compile_schema(spec: &Spec) -> Result<RowSchema, ParamsError> {
    RowSchema::compile(spec.params.get("schema")).map_err(|error| unusable_schema("params.schema", &error))
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
    ItemError { column: violation.column, ..ItemError::permanent("schema_violation", violation.message) }
}
