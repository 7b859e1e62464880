//! Job types that import into a table of the application: each row that passes its schema becomes an item.
//!
//! Of two rows with the same key the later one wins, as in `import`: each item names the job and the row that it comes
//! from, and a put only replaces an earlier one. It replaces the whole item, so the order of puts does not matter.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::validate::{check, compile_schema, missing_columns, name_some};
use crate::model::records::{RecordVersion, Writer};
use crate::model::spec::Spec;
use crate::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::ports::{ItemTable, PortError, TableItem, VERSION_ATTRIBUTE, begin_item};
use crate::text::RowSchema;

/// Number of rows that are put together. A batch that does not come to its end begins anew, so it is short.
const BATCH_ITEMS: usize = 64;

/// A job type that imports into a table.
///
/// | param | meaning |
/// |---|---|
/// | `schema` | a JSON Schema, as for `validate`; it decides the types of the attributes |
pub struct TableType {
    pub name: String,
    pub key: TableKey,
    /// `None` where params are only checked.
    pub table: Option<Arc<dyn ItemTable>>,
}

/// What the rows of a table must have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableKey {
    /// The attributes of the key: that of the partition first.
    pub attributes: Vec<String>,
    /// What the first of them begins with. `{owner}` stands for the owner of the job.
    pub prefix: String,
}

impl JobType for TableType {
    fn name(&self) -> &str {
        &self.name
    }

    fn params(&self) -> &'static [&'static str] {
        &["schema"]
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        let columns = &spec.head.columns;
        let TableKey { attributes, prefix } = &self.key;
        let missing = missing_columns(columns, attributes.iter().map(String::as_str));
        if !missing.is_empty() {
            let (missing, columns) = (name_some(&missing), name_some(columns));
            let message = format!(
                "imports into a table whose key has columns that the file does not have: {missing}. The file has the columns {columns}."
            );
            return Err(ParamsError::new("jobType", message));
        }
        if columns.iter().any(|name| name == VERSION_ATTRIBUTE) {
            let message = format!(
                "cannot import a column `{VERSION_ATTRIBUTE}`: Rowmill writes an attribute of this name. Rename the column."
            );
            return Err(ParamsError::new("jobType", message));
        }
        Ok(Arc::new(TableImport {
            schema: compile_schema(spec)?,
            key: TableKey { attributes: attributes.clone(), prefix: prefix.replace("{owner}", spec.owner.as_str()) },
            writer: Writer::new(spec.created_at, spec.job_guid),
            table: self.table.clone(),
        }))
    }
}

struct TableImport {
    schema: RowSchema,
    key: TableKey,
    writer: Writer,
    table: Option<Arc<dyn ItemTable>>,
}

#[async_trait]
impl ItemProcessor for TableImport {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut results = self.process_batch(std::slice::from_ref(item)).await;
        results.pop().unwrap_or_else(|| Err(unavailable(&"the table gave no answer")))
    }

    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let mut good = Vec::with_capacity(items.len());
        let rows: Vec<Result<(), ItemError>> =
            items.iter().map(|item| self.item_of(item).map(|of| good.push(of))).collect();
        let put = match &self.table {
            Some(table) => table.put(&good).await,
            None => Vec::new(),
        };
        let mut put = put.into_iter();
        let outcome = |row: Result<(), ItemError>| {
            row?;
            let put = put.next().ok_or_else(|| unavailable(&"this process has no connection to the table"))?;
            put.map(ItemOutcome::from).map_err(|error| refused(&error))
        };
        rows.into_iter().map(outcome).collect()
    }

    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.item_of(item).map(|_| ItemOutcome::Succeeded)
    }

    fn batch_items(&self) -> usize {
        BATCH_ITEMS
    }

    fn held_bytes(&self) -> usize {
        self.schema.held_bytes()
    }
}

impl TableImport {
    fn item_of(&self, item: &Item) -> Result<TableItem, ItemError> {
        begin_item(item.row);
        let attributes = check(&self.schema, item)?;
        self.check_key(&attributes)?;
        if attributes.contains_key(VERSION_ATTRIBUTE) {
            let message = "Rowmill writes an attribute of this name";
            return Err(ItemError::permanent("field_exists", message).in_column(VERSION_ATTRIBUTE));
        }
        Ok(TableItem { version: RecordVersion { by: self.writer, row: item.row }, attributes })
    }

    fn check_key(&self, attributes: &Map<String, Value>) -> Result<(), ItemError> {
        let error = |code, message: &str, column: &str| Err(ItemError::permanent(code, message).in_column(column));
        for column in &self.key.attributes {
            match attributes.get(column) {
                None | Some(Value::Null) => return error("missing_key", "the key is empty", column),
                Some(Value::String(text)) if text.is_empty() => {
                    return error("missing_key", "the key is empty", column);
                }
                Some(Value::String(_) | Value::Number(_)) => {}
                Some(_) => return error("invalid_key", "a key must be a string or a number", column),
            }
        }
        let Some(first) = self.key.attributes.first().filter(|_| !self.key.prefix.is_empty()) else { return Ok(()) };
        let begins = attributes[first].as_str().is_some_and(|text| text.starts_with(&self.key.prefix));
        if begins {
            Ok(())
        } else {
            error("key_not_allowed", "the key does not begin as those of this caller must", first)
        }
    }
}

fn refused(error: &PortError) -> ItemError {
    match error {
        PortError::Invalid { .. } => ItemError::permanent(
            "record_refused",
            "the table refuses this row: its key, or that of an index, is empty, too long or of another type; or it has more than 400 KB, more than 38 digits in a number, or more than 32 levels",
        ),
        error => unavailable(error),
    }
}

fn unavailable(why: &dyn std::fmt::Display) -> ItemError {
    ItemError::transient("table_unavailable", why.to_string())
}
