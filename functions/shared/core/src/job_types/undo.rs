//! `undo`: reverses what another job has written to a dataset.
//!
//! Its items are the records that the job has written, as the split finds them. A record on which the job's row still is
//! the latest one shows what was there before. All others are kept as they are.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

use super::change_records::{Rewrite, change_records};
use super::import::{BATCH_ITEMS, IMPORT, can_be_undone, dataset, item_error, no_records};
use crate::model::changes::{Change, RowChange};
use crate::model::ids::JobGuid;
use crate::model::records::{Dataset, RecordItem, dataset_of};
use crate::model::spec::{OutputFile, Source, Spec};
use crate::model::stored_record::Undoing;
use crate::ports::processor::{InputKind, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::ports::{PortError, Reading, RecordStore, begin_item};
use crate::text::Record;

/// The name of the job type.
pub const UNDO: &str = "undo";

/// The param that names the job to undo.
pub const UNDONE_JOB: &str = "jobGuid";

/// The job type `undo`. A request to undo a job creates it.
///
/// | param | meaning |
/// |---|---|
/// | `jobGuid` | the job that it undoes |
pub struct Undo {
    records: Option<Arc<dyn RecordStore>>,
}

impl Undo {
    /// The type that changes this store. Without a store (`None`) it can only check params.
    pub fn new(records: Option<Arc<dyn RecordStore>>) -> Self {
        Self { records }
    }
}

impl JobType for Undo {
    fn name(&self) -> &str {
        UNDO
    }

    fn params(&self) -> &'static [&'static str] {
        &[UNDONE_JOB]
    }

    fn input(&self) -> InputKind {
        InputKind::Undone
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        let Source::Dataset { dataset, of: Some(undone) } = &spec.source else { return Err(undo_by_path()) };
        Ok(Arc::new(RecordUndo {
            records: self.records.clone(),
            dataset: dataset_of(&spec.owner, dataset),
            opened: OnceLock::new(),
            undone: *undone,
            by: spec.job_guid,
        }))
    }
}

/// The problem of a request for a job of this type.
pub fn undo_by_path() -> ParamsError {
    let message = "must not be `undo`: send `POST /api/jobs/{jobGuid}/undo` with the name of the job to undo.";
    ParamsError::new("jobType", message)
}

/// Why a job cannot be undone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotUndoable {
    #[error("jobs of type `{0}` write no records")]
    WritesNone(String),
    #[error("it is a dry run, which writes no records")]
    DryRun,
    #[error("it was created with the param `\"undo\": false`, so its records do not keep what was there before")]
    KeepsNoHistory,
    #[error("no job has written to its dataset")]
    NothingWritten,
    #[error("it was undone before, and job {0} has brought its records back; undo that job")]
    UndoneAgain(JobGuid),
}

/// The dataset that a job of this spec has written, if the job can be undone.
///
/// # Errors
/// Why it cannot be undone.
pub fn undoable_dataset(spec: &Spec) -> Result<String, NotUndoable> {
    match (spec.job_type.as_str(), &spec.source) {
        (UNDO, Source::Dataset { dataset, .. }) => Ok(dataset.clone()),
        (IMPORT, _) if spec.is_dry_run() => Err(NotUndoable::DryRun),
        // Its params were checked when it was created.
        (IMPORT, _) if can_be_undone(spec) == Ok(false) => Err(NotUndoable::KeepsNoHistory),
        (IMPORT, _) => dataset(spec).map_err(|_| NotUndoable::NothingWritten),
        (other, _) => Err(NotUndoable::WritesNone(other.to_owned())),
    }
}

struct RecordUndo {
    records: Option<Arc<dyn RecordStore>>,
    dataset: String,
    /// The dataset, opened before the first batch of this process.
    opened: OnceLock<Dataset>,
    /// The job that is undone.
    undone: JobGuid,
    /// The job that undoes it.
    by: JobGuid,
}

#[async_trait]
impl ItemProcessor for RecordUndo {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut results = self.process_batch(std::slice::from_ref(item)).await;
        results.pop().unwrap_or_else(|| Err(unavailable(&"no result")))
    }

    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let keys: Vec<Result<String, ItemError>> = items.iter().map(key_of).collect();
        let known: Vec<&str> = keys.iter().flatten().map(String::as_str).collect();
        let mut undone = match self.undo(&known).await {
            Ok(undone) => undone.into_iter(),
            Err(error) => return items.iter().map(|_| Err(error.clone())).collect(),
        };
        let outcome = |(item, key): (&Item, Result<String, ItemError>)| {
            let key = key?;
            let found = undone.next().unwrap_or_else(|| Err(PortError::unavailable("undoing a job", "no result")));
            let change = found.map_err(|error| item_error(&error))?;
            Ok(ItemOutcome::Output(RowChange { row: item.row, key, ..change }.to_line()))
        };
        items.iter().zip(keys).map(outcome).collect()
    }

    fn output(&self) -> Option<OutputFile> {
        Some(OutputFile::changes())
    }

    fn batch_items(&self) -> usize {
        BATCH_ITEMS
    }
}

impl RecordUndo {
    async fn undo(&self, keys: &[&str]) -> Result<Vec<Result<RowChange, PortError>>, ItemError> {
        let records = self.records.as_ref().ok_or_else(no_records)?;
        let dataset = match self.opened.get() {
            Some(dataset) => dataset,
            None => match records.opened(&self.dataset).await {
                Ok(Some(dataset)) => self.opened.get_or_init(|| dataset),
                Ok(None) => return Err(unavailable(&"the row of the dataset was removed")),
                Err(error) => return Err(unavailable(&error)),
            },
        };
        // What a record was a second ago does not tell what this undo leaves alone.
        let changed = change_records(&**records, dataset, keys, Some(Reading::Latest), |_, stored| {
            let undoing = stored.map_or(Undoing::NotOurs, |stored| stored.undo(self.undone, self.by));
            match undoing {
                Undoing::Reverse(record) => Rewrite::Store(record, RowChange::bare(Change::Reversed)),
                Undoing::Reversed => Rewrite::Keep(RowChange::bare(Change::Reversed)),
                Undoing::Kept(by) => Rewrite::Keep(RowChange { by: Some(by), ..RowChange::bare(Change::Kept) }),
                Undoing::NotOurs => Rewrite::Keep(RowChange::bare(Change::Unchanged)),
            }
        });
        Ok(changed.await)
    }
}

fn key_of(item: &Item) -> Result<String, ItemError> {
    begin_item(item.row);
    let record = match &item.record {
        Record::Json(record) => serde_json::from_value(record.clone()).ok(),
        _ => None,
    };
    let not_a_record = || ItemError::permanent("not_a_record", "the item is not a record of a dataset");
    record.map(|RecordItem { key, .. }| key).ok_or_else(not_a_record)
}

fn unavailable(why: &dyn std::fmt::Display) -> ItemError {
    ItemError::transient("records_unavailable", why.to_string())
}
