//! `import`: checks every row and upserts it into the records table.
//!
//! Of two rows with the same key the later one wins, ordered by job creation time and then row number. The order in
//! which chunks run, and repeated runs, do not matter: each record stores its [`RecordVersion`], and a write only
//! replaces an older version. Unless `undo` is false, it also keeps what was there before its job, see [`StoredRecord`].
//! `docs/decisions/` has the cost per row.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::change_records::{Rewrite, change_records};
use super::validate::{check, compile_schema};
use crate::model::changes::RowChange;
use crate::model::records::{
    Dataset, DatasetRecord, EXPIRES_IN_MAX, EXPIRES_IN_MIN, KEY_MAX_BYTES, RecordVersion, Upserted, Writer, dataset_of,
    is_dataset_name,
};
use crate::model::spec::{OutputFile, Spec};
use crate::model::stored_record::StoredRecord;
use crate::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::ports::{PortError, Reading, RecordStore, begin_item};
use crate::text::{Format, RowSchema, json_bytes};

/// The name of the job type.
pub const IMPORT: &str = "import";

/// Number of rows in a call to the record store. A multiple of 25, the limit of one DynamoDB batch request.
pub(super) const BATCH_ITEMS: usize = 250;

/// Number of rows that a dry run compares at once: 10 MB of records at most.
const COMPARED_AT_ONCE: usize = 25;

/// The param that says how long records are kept.
pub const EXPIRES_IN_PARAM: &str = "expiresInSeconds";

const KEY_MAX_COLUMNS: usize = 100;

/// The largest record, in bytes of its JSON: DynamoDB's item limit of 400 KB, minus space for the keys.
const RECORD_MAX_BYTES: usize = 390 * 1024;

/// The job type `import`.
///
/// | param | meaning |
/// |---|---|
/// | `dataset` | the dataset of the owner that receives the records |
/// | `key` | the columns that make up the key of a record: a name or a list of names; default: the row number |
/// | `schema` | a JSON Schema, as for `validate` |
/// | `outputs` | whether each row that succeeds leaves its key in the output file; default: no |
/// | `expiresInSeconds` | how long the records are kept after the creation of their jobs; default: for ever. The first import into a dataset decides |
/// | `undo` | whether the records keep what they replace, so that the job can be undone; default: yes |
///
/// With `dryRun` each row leaves what it would change.
pub struct Import {
    records: Option<Arc<dyn RecordStore>>,
}

impl Import {
    /// The type that writes to this store. Without a store (`None`) it can only check params.
    pub fn new(records: Option<Arc<dyn RecordStore>>) -> Self {
        Self { records }
    }
}

impl JobType for Import {
    fn name(&self) -> &str {
        IMPORT
    }

    fn params(&self) -> &'static [&'static str] {
        &["dataset", "key", "schema", "outputs", "undo", EXPIRES_IN_PARAM]
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(RowImport {
            records: self.records.clone(),
            if_new: written_dataset(spec)?,
            opened: OnceLock::new(),
            refused: OnceLock::new(),
            key: key_columns(spec)?,
            schema: compile_schema(spec)?,
            writer: Writer::new(spec.created_at, spec.job_guid),
            has_outputs: flag(spec, "outputs", false)?,
            keeps_history: can_be_undone(spec)?,
            records_exist: AtomicBool::new(false),
            is_dry_run: spec.is_dry_run(),
        }))
    }
}

/// The dataset name in the params.
pub(super) fn dataset(spec: &Spec) -> Result<String, ParamsError> {
    match spec.params.get("dataset") {
        Some(Value::String(name)) if is_dataset_name(name) => Ok(name.clone()),
        Some(_) => Err(ParamsError::new(
            "params.dataset",
            "must be a name of 1 to 128 letters, digits, `-`, `_` or `.`, such as `customers`, and not `.` or `..`.",
        )),
        None => Err(ParamsError::new("params.dataset", "is missing. Set it to the name of a dataset.")),
    }
}

/// True if an import with these params keeps what an undo of it needs.
pub fn can_be_undone(spec: &Spec) -> Result<bool, ParamsError> {
    flag(spec, "undo", true)
}

/// The dataset of an import as the import makes it if nobody has written to it.
pub fn written_dataset(spec: &Spec) -> Result<Dataset, ParamsError> {
    Ok(Dataset {
        name: dataset_of(&spec.owner, &dataset(spec)?),
        partitions: spec.new_dataset_partitions,
        expires_in: expires_in(spec)?,
    })
}

/// How long an import that makes such a dataset wants the records kept, and how long they are, if that differs.
pub fn other_expiry(if_new: &Dataset, there: &Dataset) -> Option<String> {
    let asked = if_new.expires_in.filter(|_| if_new.expires_in != there.expires_in)?;
    let kept = there.expires_in.map_or("for ever".to_owned(), |seconds| format!("for {seconds} seconds"));
    Some(format!("is {asked}, but the dataset keeps its records {kept}, which cannot be changed"))
}

fn expires_in(spec: &Spec) -> Result<Option<u32>, ParamsError> {
    let Some(given) = spec.params.get(EXPIRES_IN_PARAM).filter(|given| !given.is_null()) else { return Ok(None) };
    let seconds = given.as_u64().and_then(|seconds| u32::try_from(seconds).ok());
    match seconds.filter(|seconds| (EXPIRES_IN_MIN..=EXPIRES_IN_MAX).contains(seconds)) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(ParamsError::new(
            format!("params.{EXPIRES_IN_PARAM}"),
            format!("must be a whole number from {EXPIRES_IN_MIN} to {EXPIRES_IN_MAX}."),
        )),
    }
}

fn flag(spec: &Spec, name: &str, default: bool) -> Result<bool, ParamsError> {
    match spec.params.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ParamsError::new(format!("params.{name}"), "must be true or false.")),
    }
}

fn key_columns(spec: &Spec) -> Result<Vec<String>, ParamsError> {
    let error = |message: String| Err(ParamsError::new("params.key", message));
    let names: Vec<String> = match spec.params.get("key") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(name)) => vec![name.clone()],
        Some(list) => match serde_json::from_value(list.clone()) {
            Ok(names) => names,
            Err(_) => return error("must be the name of a column or a list of names.".into()),
        },
    };
    if names.is_empty() {
        return error("must name at least one column. Omit it to use the row number as the key.".into());
    }
    // An empty file has no columns and no rows, so any key is accepted.
    let columns = &spec.head.columns;
    let known = |name: &String| spec.head.dialect.format != Format::Csv || columns.is_empty() || columns.contains(name);
    if names.len() > KEY_MAX_COLUMNS {
        return error(format!("names more than the maximum of {KEY_MAX_COLUMNS} columns."));
    }
    match names.iter().find(|name| !known(name)) {
        Some(name) => error(format!(
            "names a column `{name}` that the file does not have. Its columns are {}.",
            columns.join(", ")
        )),
        None => Ok(names),
    }
}

struct RowImport {
    records: Option<Arc<dyn RecordStore>>,
    /// The dataset as this job makes it if nobody has written to it.
    if_new: Dataset,
    /// The dataset, opened before the first write or comparison of this process.
    opened: OnceLock<Dataset>,
    /// Why it cannot be opened to write to it.
    refused: OnceLock<ItemError>,
    key: Vec<String>,
    schema: RowSchema,
    writer: Writer,
    /// True if each row that succeeds has an output.
    has_outputs: bool,
    /// True if records keep what was there before them.
    keeps_history: bool,
    /// True if most records of the last batch existed before: then they are read before they are written.
    records_exist: AtomicBool,
    is_dry_run: bool,
}

#[async_trait]
impl ItemProcessor for RowImport {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut results = self.process_batch(std::slice::from_ref(item)).await;
        results.pop().unwrap_or_else(|| Err(no_answer()))
    }

    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut results = self.dry_run_batch(std::slice::from_ref(item)).await;
        results.pop().unwrap_or_else(|| Err(no_answer()))
    }

    /// Compares each row with the record that is there. Two rows with the same key are both compared with that one.
    async fn dry_run_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let rows = items.iter().map(|item| {
            begin_item(item.row);
            self.upsert_of(item)
        });
        let rows: Vec<Result<DatasetRecord, ItemError>> = rows.collect();
        let mut results = Vec::with_capacity(rows.len());
        // Stored records may be much longer than the rows, so few of them are held at once.
        for rows in rows.chunks(COMPARED_AT_ONCE) {
            let keys: BTreeSet<&str> = rows.iter().flatten().map(|record| record.key.as_str()).collect();
            let stored = self.stored(&keys.into_iter().collect::<Vec<_>>()).await;
            let outcome = |record: &DatasetRecord| {
                let stored = stored.as_ref().map_err(ItemError::clone)?;
                Ok(ItemOutcome::Output(RowChange::of(record, stored.get(&record.key)).to_line()))
            };
            results.extend(rows.iter().map(|row| row.as_ref().map_err(ItemError::clone).and_then(outcome)));
        }
        results
    }

    fn output(&self) -> Option<OutputFile> {
        match self.is_dry_run {
            true => Some(OutputFile::changes()),
            false => self.has_outputs.then(OutputFile::lines),
        }
    }

    fn batch_items(&self) -> usize {
        BATCH_ITEMS
    }

    fn held_bytes(&self) -> usize {
        self.schema.held_bytes()
    }

    /// Writes the batch with few requests. Of several rows with the same key it writes only the last one. It writes an
    /// earlier row only if the store permanently refuses the later one.
    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let mut outcomes: Vec<Option<Result<ItemOutcome, ItemError>>> = vec![None; items.len()];
        // The rows of each key, ordered by version. Within a batch that is the order of the file.
        let mut by_key: HashMap<String, Vec<(usize, DatasetRecord)>> = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            begin_item(item.row);
            match self.upsert_of(item) {
                Ok(upsert) => by_key.entry(upsert.key.clone()).or_default().push((place, upsert)),
                Err(error) => outcomes[place] = Some(Err(error)),
            }
        }
        let mut rows: Vec<Vec<(usize, DatasetRecord)>> = by_key.into_values().collect();
        while !rows.is_empty() {
            let (places, upserts): (Vec<usize>, Vec<DatasetRecord>) = rows.iter_mut().filter_map(Vec::pop).unzip();
            let written = self.write(&upserts).await;
            let mut refused = Vec::new();
            for (((mut earlier, place), upsert), result) in rows.into_iter().zip(places).zip(&upserts).zip(written) {
                match &result {
                    Err(error) if !error.transient && !earlier.is_empty() => refused.push(earlier),
                    // If the row was written, it supersedes the earlier rows of its key. If its error is transient, the
                    // earlier rows get the same error and are retried with it.
                    _ => earlier.drain(..).for_each(|(place, upsert)| {
                        outcomes[place] = Some(result.clone().map(|_| self.outcome(&upsert, ItemOutcome::Superseded)));
                    }),
                }
                outcomes[place] = Some(result.map(|upserted| self.outcome(upsert, upserted.into())));
            }
            rows = refused;
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(no_answer()))).collect()
    }
}

impl RowImport {
    fn upsert_of(&self, item: &Item) -> Result<DatasetRecord, ItemError> {
        let fields = check(&self.schema, item)?;
        let key = self.key_of(&fields, item.row)?;
        let size = json_bytes(&fields);
        if size > RECORD_MAX_BYTES {
            let message = format!("the record has {size} bytes, but at most {RECORD_MAX_BYTES} are allowed");
            return Err(ItemError::permanent("record_too_large", message));
        }
        let version = RecordVersion { by: self.writer, row: item.row };
        Ok(DatasetRecord { key, version, fields })
    }

    fn key_of(&self, fields: &Map<String, Value>, row: u64) -> Result<String, ItemError> {
        let key = match self.key.as_slice() {
            [] => format!("{row:012}"),
            [column] => key_part(fields, column)?,
            // Several values become a JSON list, so that different keys never have the same text.
            columns => {
                let parts = columns.iter().map(|column| key_part(fields, column)).collect::<Result<Vec<_>, _>>()?;
                Value::from(parts).to_string()
            }
        };
        if key.len() > KEY_MAX_BYTES { Err(key_too_long(key.len())) } else { Ok(key) }
    }

    /// This outcome of a row, with its output if rows have one. It does not say whether another row took its place: a row
    /// that is written again is superseded by itself.
    fn outcome(&self, upsert: &DatasetRecord, outcome: ItemOutcome) -> ItemOutcome {
        match self.has_outputs {
            true => ItemOutcome::Output(json!({ "row": upsert.version.row, "key": upsert.key }).to_string()),
            false => outcome,
        }
    }

    /// The records with these keys that readers see, by key.
    async fn stored(&self, keys: &[&str]) -> Result<HashMap<String, DatasetRecord>, ItemError> {
        let records = self.records.as_ref().ok_or_else(no_records)?;
        let found = async {
            if self.opened.get().is_none()
                && let Some(dataset) = records.opened(&self.if_new.name).await?
            {
                self.opened.get_or_init(|| dataset);
            }
            match self.opened.get() {
                Some(dataset) => records.records(dataset, keys, Reading::Recent).await,
                None => Ok(Vec::new()),
            }
        };
        let found = found.await.map_err(|error| ItemError::transient("records_unavailable", error.to_string()))?;
        let visible = found.into_iter().filter_map(StoredRecord::visible);
        Ok(visible.map(|record| (record.key.clone(), record)).collect())
    }

    /// Opens the dataset to write to it, unless it keeps its records for another time.
    async fn open(&self, records: &dyn RecordStore) -> Result<&Dataset, ItemError> {
        if let Some(refused) = self.refused.get() {
            return Err(refused.clone());
        }
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let unavailable = |error: PortError| ItemError::transient("records_unavailable", error.to_string());
        // One that it does not fit does not name this job as its writer.
        if self.if_new.expires_in.is_some()
            && let Some(there) = records.opened(&self.if_new.name).await.map_err(unavailable)?
        {
            self.refuse_other_expiry(&there)?;
        }
        let dataset = records.open(&self.if_new, self.writer).await.map_err(unavailable)?;
        self.refuse_other_expiry(&dataset)?;
        Ok(self.opened.get_or_init(|| dataset))
    }

    /// Another import has made it since this job was created.
    fn refuse_other_expiry(&self, dataset: &Dataset) -> Result<(), ItemError> {
        let Some(why) = other_expiry(&self.if_new, dataset) else { return Ok(()) };
        let error = ItemError::permanent("other_expiry", format!("`{EXPIRES_IN_PARAM}` {why}"));
        Err(self.refused.get_or_init(|| error).clone())
    }

    async fn write(&self, upserts: &[DatasetRecord]) -> Vec<Result<Upserted, ItemError>> {
        let Some(records) = &self.records else {
            return vec![Err(no_records()); upserts.len()];
        };
        let dataset = match self.open(&**records).await {
            Ok(dataset) => dataset,
            Err(error) => return vec![Err(error); upserts.len()],
        };
        let written = match self.keeps_history {
            false => records.upsert(dataset, upserts).await,
            true => {
                let keys: Vec<&str> = upserts.iter().map(|upsert| upsert.key.as_str()).collect();
                let (reading, existed) =
                    (self.records_exist.load(Relaxed).then_some(Reading::Recent), AtomicUsize::new(0));
                let rule = |place: usize, stored: Option<&StoredRecord>| {
                    existed.fetch_add(usize::from(stored.is_some()), Relaxed);
                    upserted(&upserts[place], stored)
                };
                let written = change_records(&**records, dataset, &keys, reading, rule).await;
                self.records_exist.store(existed.into_inner() * 2 > keys.len(), Relaxed);
                written
            }
        };
        written.into_iter().map(|result| result.map_err(|error| item_error(&error))).collect()
    }
}

/// What a row makes of the record of its key.
fn upserted(row: &DatasetRecord, stored: Option<&StoredRecord>) -> Rewrite<Upserted> {
    let next = match stored {
        None => Some(StoredRecord::first(row.clone())),
        Some(stored) => stored.with(row),
    };
    next.map_or(Rewrite::Keep(Upserted::Superseded), |next| Rewrite::Store(Box::new(next), Upserted::Written))
}

impl From<Upserted> for ItemOutcome {
    fn from(upserted: Upserted) -> Self {
        match upserted {
            Upserted::Written => Self::Succeeded,
            Upserted::Superseded => Self::Superseded,
        }
    }
}

/// An invalid record stays invalid, so its error is permanent. All other errors of the store are transient.
pub(super) fn item_error(error: &PortError) -> ItemError {
    match error {
        PortError::Invalid { .. } => ItemError::permanent("record_refused", "the records table rejects this row"),
        _ => ItemError::transient("records_unavailable", error.to_string()),
    }
}

pub(super) fn no_records() -> ItemError {
    ItemError::transient("no_records", "this process has no records table")
}

fn no_answer() -> ItemError {
    ItemError::transient("records_unavailable", "the records table returned no result for this row")
}

fn key_too_long(bytes: usize) -> ItemError {
    let message = format!("the key has {bytes} bytes, but at most {KEY_MAX_BYTES} are allowed");
    ItemError::permanent("key_too_long", message)
}

fn key_part(fields: &Map<String, Value>, column: &str) -> Result<String, ItemError> {
    let missing = || ItemError::permanent("missing_key", "the key is empty").in_column(column);
    match fields.get(column) {
        None | Some(Value::Null) => Err(missing()),
        Some(Value::String(text)) if text.is_empty() => Err(missing()),
        // Checked before it is copied: a key may name the same long cell many times.
        Some(Value::String(text)) if text.len() > KEY_MAX_BYTES => Err(key_too_long(text.len())),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(_) => {
            Err(ItemError::permanent("invalid_key", "a key must be a string, number or boolean").in_column(column))
        }
    }
}
