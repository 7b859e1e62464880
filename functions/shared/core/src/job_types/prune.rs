//! `prune`: removes the records of a dataset that an import has not got, so that the dataset has what the file has.
//!
//! Its items are the records that were written before the import, and not by it. An undo brings them back.

use std::sync::Arc;

use super::change_records::Rewrite;
use super::import::{IMPORT, dataset};
use super::record_rewrite::{JOB_GUID, OverKeys, Rule};
use crate::model::changes::{Change, RowChange};
use crate::model::job::Job;
use crate::model::job::states::JobOutcome;
use crate::model::spec::{KeysOf, Spec};
use crate::model::stored_record::Pruning;
use crate::ports::RecordStore;

/// The name of the job type.
pub const PRUNE: &str = "prune";

/// The job type `prune`. A request to prune after an import creates it.
///
/// | param | meaning |
/// |---|---|
/// | `jobGuid` | the import whose dataset it prunes |
///
/// With `dryRun` it counts and lists the records, and removes none.
pub fn prune(records: Option<Arc<dyn RecordStore>>) -> OverKeys {
    OverKeys { name: PRUNE, params: &[JOB_GUID], lists_changes: true, rule, records }
}

fn rule(spec: &Spec, keys_of: KeysOf) -> Option<Rule> {
    let KeysOf::MissingIn(import) = keys_of else { return None };
    let by = spec.job_guid;
    Some(Box::new(move |stored| {
        let change = |change| Some(RowChange::bare(change));
        match stored.map_or(Pruning::NotMissing, |stored| stored.prune(import, by)) {
            Pruning::Remove(record) => Rewrite::Store(record, change(Change::Remove)),
            Pruning::Removed => Rewrite::Keep(change(Change::Remove)),
            Pruning::NotMissing => Rewrite::Keep(change(Change::Unchanged)),
        }
    }))
}

/// Why the dataset of a job cannot be pruned after it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotPrunable {
    #[error("jobs of type `{0}` import no file")]
    NoImport(String),
    #[error("it is a dry run, which writes no records")]
    DryRun,
    #[error("not all of its rows succeeded, so records that the file has would be removed; redrive it until all have")]
    NotWhole,
    #[error("it has no rows, so all records would be removed; delete the dataset if that is wanted")]
    Empty,
    #[error("it was undone")]
    Undone,
}

/// The dataset that can be pruned after this job, which has ended.
///
/// # Errors
/// Why it cannot be pruned.
pub fn prunable_dataset(job: &Job, spec: &Spec) -> Result<String, NotPrunable> {
    if spec.job_type != IMPORT {
        return Err(NotPrunable::NoImport(spec.job_type.clone()));
    }
    if spec.is_dry_run() {
        return Err(NotPrunable::DryRun);
    }
    if job.undone_by.is_some() {
        return Err(NotPrunable::Undone);
    }
    match job.end().map(|end| &end.outcome) {
        Some(Ok(JobOutcome::Succeeded)) => dataset(spec).map_err(|_| NotPrunable::NoImport(spec.job_type.clone())),
        Some(Ok(JobOutcome::Empty)) => Err(NotPrunable::Empty),
        _ => Err(NotPrunable::NotWhole),
    }
}
