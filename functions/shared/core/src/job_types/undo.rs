//! `undo`: reverses what another job has written to a dataset.
//!
//! Its items are the records that the job has written, as the split finds them. A record on which the job's row still is
//! the latest one shows what was there before. All others are kept as they are.

use std::sync::Arc;

use super::change_records::Rewrite;
use super::import::{IMPORT, can_be_undone, dataset};
use super::prune::PRUNE;
use super::record_rewrite::{JOB_GUID, OverKeys, Rule};
use crate::model::changes::{Change, RowChange};
use crate::model::ids::JobGuid;
use crate::model::spec::{KeysOf, Source, Spec};
use crate::model::stored_record::Undoing;
use crate::ports::RecordStore;

/// The name of the job type.
pub const UNDO: &str = "undo";

/// The job type `undo`. A request to undo a job creates it.
///
/// | param | meaning |
/// |---|---|
/// | `jobGuid` | the job that it undoes |
pub fn undo(records: Option<Arc<dyn RecordStore>>) -> OverKeys {
    OverKeys { name: UNDO, params: &[JOB_GUID], lists_changes: true, rule, records }
}

fn rule(spec: &Spec, keys_of: KeysOf) -> Option<Rule> {
    let KeysOf::Job(undone) = keys_of else { return None };
    let by = spec.job_guid;
    Some(Box::new(move |stored| {
        let reversed = || Some(RowChange::bare(Change::Reversed));
        match stored.map_or(Undoing::NotOurs, |stored| stored.undo(undone, by)) {
            Undoing::Reverse(record) => Rewrite::Store(record, reversed()),
            Undoing::Reversed => Rewrite::Keep(reversed()),
            Undoing::Kept(by) => Rewrite::Keep(Some(RowChange { by: Some(by), ..RowChange::bare(Change::Kept) })),
            Undoing::NotOurs => Rewrite::Keep(Some(RowChange::bare(Change::Unchanged))),
        }
    }))
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
        (IMPORT | PRUNE, _) if spec.is_dry_run() => Err(NotUndoable::DryRun),
        (UNDO | PRUNE, Source::Dataset { dataset, .. }) => Ok(dataset.clone()),
        // Its params were checked when it was created.
        (IMPORT, _) if can_be_undone(spec) == Ok(false) => Err(NotUndoable::KeepsNoHistory),
        (IMPORT, _) => dataset(spec).map_err(|_| NotUndoable::NothingWritten),
        (other, _) => Err(NotUndoable::WritesNone(other.to_owned())),
    }
}
