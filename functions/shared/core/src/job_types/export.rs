//! `export`: writes the records of a dataset to a CSV or JSON Lines file.
//!
//! The split reads the dataset partition by partition and stores a copy of each chunk's records. So there is one item
//! per record, and a chunk that is processed again gives the same rows.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::import::dataset;
use super::row_writer::{FIELD_EXISTS, RowParams, RowWriter};
use super::validate::unusable_schema;
use crate::model::records::RecordItem;
use crate::model::results::{FAILED_ROWS, UNPROCESSED_ROWS};
use crate::model::spec::{OutputFile, Spec};
use crate::ports::processor::{
    CostClass, InputKind, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError,
};
use crate::text::{Format, Record, RowSchema};

/// The job type `export`.
///
/// | param | meaning |
/// |---|---|
/// | `dataset` | a dataset of the owner |
/// | `format` | `jsonl` (default) or `csv` |
/// | `columns` | the fields to write, in this order; required for CSV, default for JSON Lines: all fields of the record |
/// | `keyColumn` | the name of a column that gets the record's key |
/// | `filter` | a JSON Schema (2020-12): records that violate it are not written |
/// | `compress` | `gzip` |
/// | `escapeFormulas` | whether cells that look like formulas are escaped, for CSV that people open in a spreadsheet |
///
/// Every record counts as an item, even if the filter excludes it.
pub struct Export;

impl JobType for Export {
    fn name(&self) -> &str {
        "export"
    }

    fn params(&self) -> &'static [&'static str] {
        &["dataset", "format", "columns", "keyColumn", "filter", "compress", "escapeFormulas"]
    }

    fn input(&self) -> InputKind {
        InputKind::Dataset
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        let dataset = dataset(spec)?;
        let params = RowParams {
            all: &spec.params,
            format: "format",
            default_format: Format::Jsonl,
            default_columns: None,
            own_names: HashMap::new(),
        };
        Ok(Arc::new(RecordExport {
            dataset,
            rows: RowWriter::of(params)?,
            key_column: key_column(&spec.params)?,
            filter: filter(&spec.params)?,
            gzip: gzip(&spec.params)?,
        }))
    }
}

fn key_column(params: &Map<String, Value>) -> Result<Option<String>, ParamsError> {
    match params.get("keyColumn") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) if !name.is_empty() => Ok(Some(name.clone())),
        Some(_) => Err(ParamsError::new("params.keyColumn", "must be the name of a column.")),
    }
}

/// The keywords that a schema of an object may have. JSON Schema ignores unknown keywords, so the filter
/// `{"city": "Rome"}` would match every record.
const KEYWORDS: [&str; 34] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "if",
    "maxProperties",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "properties",
    "propertyNames",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedProperties",
];

fn filter(params: &Map<String, Value>) -> Result<Option<RowSchema>, ParamsError> {
    let Some(schema) = params.get("filter").filter(|schema| !schema.is_null()) else { return Ok(None) };
    let mut keywords = schema.as_object().into_iter().flat_map(Map::keys);
    if let Some(keyword) = keywords.find(|keyword| !KEYWORDS.contains(&keyword.as_str())) {
        let message = format!(
            "must be a JSON Schema, but `{keyword}` is not a keyword of JSON Schema. To filter by a field, use \
             `{{\"properties\": {{\"{keyword}\": {{\"const\": …}}}}, \"required\": [\"{keyword}\"]}}`."
        );
        return Err(ParamsError::new("params.filter", message));
    }
    RowSchema::compile(Some(schema)).map(Some).map_err(|error| unusable_schema("params.filter", &error))
}

fn gzip(params: &Map<String, Value>) -> Result<bool, ParamsError> {
    match params.get("compress") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::String(how)) if how == "gzip" => Ok(true),
        Some(_) => Err(ParamsError::new("params.compress", "must be `gzip`. Omit it for an uncompressed file.")),
    }
}

struct RecordExport {
    dataset: String,
    rows: RowWriter,
    key_column: Option<String>,
    filter: Option<RowSchema>,
    gzip: bool,
}

#[async_trait]
impl ItemProcessor for RecordExport {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let Record::Json(record) = &item.record else { return Err(not_a_record()) };
        let RecordItem { key, mut fields } = serde_json::from_value(record.clone()).map_err(|_| not_a_record())?;
        if let Some(filter) = &self.filter
            && filter.check(Record::Json(Value::Object(fields.clone()))).is_err()
        {
            return Ok(ItemOutcome::Succeeded);
        }
        if let Some(column) = &self.key_column {
            let key = Value::String(key);
            if fields.insert(column.clone(), key.clone()).is_some_and(|field| field != key) {
                let message =
                    format!("the record already has a field `{column}`, with another value; choose another keyColumn");
                return Err(ItemError::permanent(FIELD_EXISTS, message).in_column(column.clone()));
            }
        }
        self.rows.row(fields).map(ItemOutcome::Output)
    }

    /// The only effect is the output file, so a dry run does the same.
    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.process(item).await
    }

    fn output(&self) -> Option<OutputFile> {
        // The result files of every job have these names, so a dataset with such a name gets a prefix.
        let name = match self.dataset.as_str() {
            FAILED_ROWS | UNPROCESSED_ROWS => format!("dataset-{}", self.dataset),
            dataset => dataset.to_owned(),
        };
        Some(self.rows.output(&name, self.gzip))
    }

    fn held_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, RowSchema::held_bytes)
    }

    fn cost(&self) -> CostClass {
        CostClass::Fast
    }
}

fn not_a_record() -> ItemError {
    ItemError::permanent("not_a_record", "the item is not a record of a dataset")
}
