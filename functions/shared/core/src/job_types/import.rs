//! `import`: checks every row and upserts it into the records table.
//!
//! Of two rows with one key the later one wins, by (job creation, row), whatever order chunks run in and however often
//! they are repeated: each record carries the [`RecordVersion`] it comes from, and is only written over an earlier one.
//! What a row costs is written down in `docs/decisions/`.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::size::json_bytes;
use super::validate::{check, compile_schema};
use crate::model::records::{RecordVersion, Upsert, Upserted, dataset_of};
use crate::model::spec::Spec;
use crate::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::ports::{PortError, RecordStore};
use crate::text::{Format, RowSchema};

/// Rows handed to the record store at once. A multiple of the 25 that one batch request of DynamoDB takes.
const BATCH_ITEMS: usize = 250;

/// The longest key, in bytes: DynamoDB's limit for a sort key.
const KEY_MAX_BYTES: usize = 1024;

/// The largest record, in bytes of its JSON: DynamoDB's limit of 400 KB for an item, less its keys.
const RECORD_MAX_BYTES: usize = 390 * 1024;

/// The job type `import`.
///
/// Params: `dataset`, where the records go, one of the owner's; `key`, the columns whose values name a record (one name
/// or a list; default: the row number); `schema`, as of `validate`.
pub struct Import {
    records: Option<Arc<dyn RecordStore>>,
}

impl Import {
    /// The type, writing to these records; `None` where params are only checked.
    pub fn new(records: Option<Arc<dyn RecordStore>>) -> Self {
        Self { records }
    }
}

impl JobType for Import {
    fn name(&self) -> &str {
        "import"
    }

    fn params(&self) -> &'static [&'static str] {
        &["dataset", "key", "schema"]
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(RowImport {
            records: self.records.clone(),
            dataset: dataset_of(&spec.owner, &dataset(spec)?),
            key: key_columns(spec)?,
            schema: compile_schema(spec)?,
            job_created_at: spec.created_at,
        }))
    }
}

/// The dataset that the params name.
pub(super) fn dataset(spec: &Spec) -> Result<String, ParamsError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match spec.params.get("dataset") {
        Some(Value::String(name)) if (1..=128).contains(&name.len()) && name.chars().all(allowed) => Ok(name.clone()),
        Some(_) => Err(ParamsError::new(
            "params.dataset",
            "must be a name of 1 to 128 letters, digits, `-`, `_` or `.`; give one such as \"customers\"",
        )),
        None => Err(ParamsError::new("params.dataset", "is missing; say which dataset the rows go to")),
    }
}

fn key_columns(spec: &Spec) -> Result<Vec<String>, ParamsError> {
    let error = |message: String| Err(ParamsError::new("params.key", message));
    let names: Vec<String> = match spec.params.get("key") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(name)) => vec![name.clone()],
        Some(list) => match serde_json::from_value(list.clone()) {
            Ok(names) => names,
            Err(_) => return error("must be a column name or a list of column names".into()),
        },
    };
    if names.is_empty() {
        return error("must name at least one column; leave it out to use the row number".into());
    }
    // An empty file has no columns and no rows: any key will do.
    let columns = &spec.head.columns;
    let known = |name: &String| spec.head.dialect.format != Format::Csv || columns.is_empty() || columns.contains(name);
    match names.iter().find(|name| !known(name)) {
        Some(name) => error(format!("the file has no column `{name}`; its columns are {}", columns.join(", "))),
        None => Ok(names),
    }
}

struct RowImport {
    records: Option<Arc<dyn RecordStore>>,
    dataset: String,
    key: Vec<String>,
    schema: RowSchema,
    job_created_at: Timestamp,
}

#[async_trait]
impl ItemProcessor for RowImport {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let upsert = self.upsert_of(item)?;
        let mut written = self.write(std::slice::from_ref(&upsert)).await;
        written.pop().unwrap_or_else(|| Err(no_answer()))
    }

    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.upsert_of(item).map(|_| ItemOutcome::Succeeded)
    }

    fn batch_items(&self) -> usize {
        BATCH_ITEMS
    }

    /// Writes the batch with few requests: of several rows with one key the last, and one before it only where that one is
    /// refused for good.
    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let mut outcomes: Vec<Option<Result<ItemOutcome, ItemError>>> = vec![None; items.len()];
        // The rows of each key in the order of their versions, which is that of the file.
        let mut open: HashMap<String, Vec<(usize, Upsert)>> = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            match self.upsert_of(item) {
                Ok(upsert) => open.entry(upsert.key.clone()).or_default().push((place, upsert)),
                Err(error) => outcomes[place] = Some(Err(error)),
            }
        }
        let mut rows: Vec<Vec<(usize, Upsert)>> = open.into_values().collect();
        while !rows.is_empty() {
            let (places, upserts): (Vec<usize>, Vec<Upsert>) = rows.iter_mut().filter_map(Vec::pop).unzip();
            let written = self.write(&upserts).await;
            let mut refused = Vec::new();
            for ((mut earlier, place), result) in rows.into_iter().zip(places).zip(written) {
                match &result {
                    Err(error) if !error.transient && !earlier.is_empty() => refused.push(earlier),
                    // Written, or to be tried again: either way nothing is left to do for the rows before it, but theirs
                    // is to be tried again with it.
                    _ => earlier.drain(..).for_each(|(place, _)| {
                        outcomes[place] = Some(result.clone().map(|_| ItemOutcome::Superseded));
                    }),
                }
                outcomes[place] = Some(result);
            }
            rows = refused;
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(no_answer()))).collect()
    }
}

impl RowImport {
    fn upsert_of(&self, item: &Item) -> Result<Upsert, ItemError> {
        let fields = check(&self.schema, item)?;
        let key = self.key_of(&fields, item.row)?;
        let size = json_bytes(&fields);
        if size > RECORD_MAX_BYTES {
            let message = format!("the record takes {size} bytes, more than the {RECORD_MAX_BYTES} a record may have");
            return Err(ItemError::permanent("record_too_large", message));
        }
        let version = RecordVersion::new(self.job_created_at, item.job_guid, item.row);
        Ok(Upsert { key, version, fields })
    }

    fn key_of(&self, fields: &Map<String, Value>, row: u64) -> Result<String, ItemError> {
        let key = match self.key.as_slice() {
            [] => format!("{row:012}"),
            [column] => key_part(fields, column)?,
            // Several values become a JSON list, in which no two different keys can look the same.
            columns => {
                let parts = columns.iter().map(|column| key_part(fields, column)).collect::<Result<Vec<_>, _>>()?;
                Value::from(parts).to_string()
            }
        };
        if key.len() > KEY_MAX_BYTES {
            let message = format!("the key takes {} bytes, more than the {KEY_MAX_BYTES} a key may have", key.len());
            return Err(ItemError::permanent("key_too_long", message));
        }
        Ok(key)
    }

    async fn write(&self, upserts: &[Upsert]) -> Vec<Result<ItemOutcome, ItemError>> {
        let Some(records) = &self.records else {
            let error = ItemError::transient("no_records", "this process has no records table");
            return vec![Err(error); upserts.len()];
        };
        let written = records.upsert(&self.dataset, upserts).await;
        written.into_iter().map(|result| result.map(ItemOutcome::from).map_err(|error| item_error(&error))).collect()
    }
}

impl From<Upserted> for ItemOutcome {
    fn from(upserted: Upserted) -> Self {
        match upserted {
            Upserted::Written => Self::Succeeded,
            Upserted::Superseded => Self::Superseded,
        }
    }
}

/// A store that cannot be reached may be back soon; a record it does not understand will not be understood later.
fn item_error(error: &PortError) -> ItemError {
    match error {
        PortError::Invalid { .. } => ItemError::permanent("record_refused", "the records table does not take this row"),
        _ => ItemError::transient("records_unavailable", error.to_string()),
    }
}

fn no_answer() -> ItemError {
    ItemError::transient("records_unavailable", "the records table gave no answer for this row")
}

fn key_part(fields: &Map<String, Value>, column: &str) -> Result<String, ItemError> {
    let missing = || ItemError::permanent("missing_key", "the key is empty").in_column(column);
    match fields.get(column) {
        None | Some(Value::Null) => Err(missing()),
        Some(Value::String(text)) if text.is_empty() => Err(missing()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(_) => Err(ItemError::permanent("invalid_key", "a key is a text, number or boolean").in_column(column)),
    }
}
